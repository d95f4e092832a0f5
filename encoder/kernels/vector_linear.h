/*
** vector_linear.h: y = x w^T + bias, written once for all sets; see
** vector_kernels.h.
**
** Both x and w lie contiguous along depth, so nothing is packed or copied: a
** tile of TILE_ROWS rows by TILE_COLS columns holds one vector of partial sums
** per element and walks along depth, LANES terms a step. Term d of an element
** goes to lane d % LANES; v_sum4 and v_sum8 then add the lanes, both in one order. So an
** element's value depends on its row of x, its row of w and depth alone,
** whatever tile it falls in; smaller tiles at the edges do the same per
** element. One row streams w once; many rows reuse it from the caches.
*/

/* The rows of w of one tile. At the right edge the last row stands in for the
** ones that are missing; what it yields there is not stored. */
typedef struct w_rows {
  const float *row[TILE_COLS]; /* [depth] each */
} w_rows;

/* sum[r][c] += x[r][d] w[c][d] for one vector of d, R rows. */
#define DOT_STEP(LOAD)                                                                             \
  do {                                                                                             \
    V b[TILE_COLS];                                                                                \
    UNROLL for (size_t c = 0; c < TILE_COLS; c++) b[c] = LOAD(w->row[c] + d);                      \
    UNROLL for (size_t r = 0; r < R; r++) {                                                        \
      V a = LOAD(x + r * ldx + d);                                                                 \
      UNROLL for (size_t c = 0; c < TILE_COLS; c++) sum[r][c] = v_fma(a, b[c], sum[r][c]);         \
    }                                                                                              \
  } while (0)
#define LOAD_REST(p) v_load_part(p, depth - d)

/* One tile over x[R, depth; ldx] and w; R is a constant where this is used. A
** long depth comes in blocks: the sums then begin as `sums` left them (NULL for
** the first block) and end there (NULL for the last, which yields
** y[R, TILE_COLS; ldy] = sums + bias[TILE_COLS]). */
INLINE void dot_tile(const size_t R, const float *x, size_t ldx, const w_rows *w, size_t depth,
                     const V *before, V *after, const float *bias, float *y, size_t ldy) {
  V sum[TILE_ROWS][TILE_COLS];
  size_t d = 0;
  if (before == NULL) {
    UNROLL for (size_t r = 0; r < R; r++) {
      UNROLL for (size_t c = 0; c < TILE_COLS; c++) sum[r][c] = v_set1(0.0f);
    }
  } else {
    UNROLL for (size_t r = 0; r < R; r++) {
      UNROLL for (size_t c = 0; c < TILE_COLS; c++) sum[r][c] = before[r * TILE_COLS + c];
    }
  }
  for (; d + LANES <= depth; d += LANES) DOT_STEP(v_load);
  if (d < depth) DOT_STEP(LOAD_REST);
  if (after != NULL) {
    UNROLL for (size_t r = 0; r < R; r++) {
      UNROLL for (size_t c = 0; c < TILE_COLS; c++) after[r * TILE_COLS + c] = sum[r][c];
    }
    return;
  }
  F4 start = f4_load(bias);
  UNROLL for (size_t r = 0; r + 1 < R; r += 2) {
    F4 upper, lower;
    v_sum8(sum[r], sum[r + 1], &upper, &lower);
    f4_store(y + r * ldy, f4_add(upper, start));
    f4_store(y + (r + 1) * ldy, f4_add(lower, start));
  }
  if (R % 2 == 1) f4_store(y + (R - 1) * ldy, f4_add(v_sum4(sum[R - 1]), start));
}

#define DEFINE_DOT_TILE(R)                                                                         \
  static void dot_tile_##R(const float *x, size_t ldx, const w_rows *w, size_t depth,              \
                           const V *before, V *after, const float *bias, float *y, size_t ldy) {   \
    dot_tile(R, x, ldx, w, depth, before, after, bias, y, ldy);                                    \
  }
DEFINE_DOT_TILE(1)
DEFINE_DOT_TILE(2)
DEFINE_DOT_TILE(3)
#if TILE_ROWS > 3
DEFINE_DOT_TILE(4)
DEFINE_DOT_TILE(5)
DEFINE_DOT_TILE(6)
#endif

typedef void dot_tile_function(const float *x, size_t ldx, const w_rows *w, size_t depth,
                               const V *before, V *after, const float *bias, float *y, size_t ldy);
static dot_tile_function *const dot_tiles[TILE_ROWS + 1] = {
    NULL,       dot_tile_1, dot_tile_2, dot_tile_3,
#if TILE_ROWS > 3
    dot_tile_4, dot_tile_5, dot_tile_6,
#endif
};

/* What one tile after another is made from: x[rows, depth; ldx] with rows <=
** TILE_ROWS, w[cols, depth; ldw], bias[cols] or NULL, y[rows, cols; ldy]. */
typedef struct tile_row {
  const float *x, *w, *bias;
  float *y;
  size_t rows, cols, depth, ldx, ldw, ldy;
} tile_row;

/* The tile at column c, the depth from d to d + n. At the right edge a whole
** tile is made beside y, and the columns that exist are copied. */
static void run_tile(const tile_row *t, size_t c, size_t d, size_t n, V *sums) {
  static const float no_bias[TILE_COLS];
  size_t width = t->cols - c < TILE_COLS ? t->cols - c : TILE_COLS;
  const V *before = d > 0 ? sums : NULL;
  V *after = d + n < t->depth ? sums : NULL;
  const float *bias = t->bias != NULL ? t->bias + c : no_bias;
  w_rows w;
  for (size_t i = 0; i < TILE_COLS; i++) {
    w.row[i] = t->w + (c + (i < width ? i : width - 1)) * t->ldw + d;
  }
  if (width == TILE_COLS) {
    dot_tiles[t->rows](t->x + d, t->ldx, &w, n, before, after, bias, t->y + c, t->ldy);
    return;
  }
  float start[TILE_COLS] = {0}, out[TILE_ROWS][TILE_COLS];
  for (size_t i = 0; i < width; i++) start[i] = bias[i];
  dot_tiles[t->rows](t->x + d, t->ldx, &w, n, before, after, start, out[0], TILE_COLS);
  for (size_t r = 0; after == NULL && r < t->rows; r++) {
    for (size_t i = 0; i < width; i++) t->y[r * t->ldy + c + i] = out[r][i];
  }
}

/* A few tiles side by side, one block of depth after the other: DEPTH_BLOCK terms
** of their rows of x stay in the first-level cache, and the sums wait on the
** stack. */
static void run_tile_row(const tile_row *t) {
  enum { TILES = 8 };
  V sums[TILES][TILE_ROWS * TILE_COLS];
  for (size_t first = 0; first < t->cols; first += TILES * TILE_COLS) {
    size_t d = 0;
    do {
      size_t n = t->depth - d < DEPTH_BLOCK ? t->depth - d : DEPTH_BLOCK;
      for (size_t i = 0; i < TILES && first + i * TILE_COLS < t->cols; i++) {
        run_tile(t, first + i * TILE_COLS, d, n, sums[i]);
      }
      d += n;
    } while (d < t->depth);
  }
}

/* A panel is the rows of w that are used again and again while the rows of x
** pass by: small enough to stay in the second-level cache. Where x itself is
** small it stays in the first-level cache instead, and w passes once. */
enum { PANEL_BYTES = 256 * 1024, SMALL_X_BYTES = 24 * 1024 };

static size_t panel_cols(size_t rows, size_t depth) {
  size_t row_bytes = depth * sizeof(float) + 1;
  if (rows * row_bytes <= SMALL_X_BYTES) return TILE_COLS;
  size_t cols = PANEL_BYTES / row_bytes / TILE_COLS * TILE_COLS;
  return cols > TILE_COLS ? cols : TILE_COLS;
}

static void linear(const float *x, size_t ldx, const float *w, size_t ldw, const float *bias,
                   float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  size_t panel = panel_cols(rows, depth);
  size_t tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;
  for (size_t first = 0; first < cols; first += panel) {
    tile_row t = {.w = w + first * ldw,
                  .bias = bias != NULL ? bias + first : NULL,
                  .cols = cols - first < panel ? cols - first : panel,
                  .depth = depth,
                  .ldx = ldx,
                  .ldw = ldw,
                  .ldy = ldy};
    size_t r = 0;
    for (size_t rest = tiles; rest > 0; rest--, r += t.rows) {
      t.rows = (rows - r + rest - 1) / rest; /* the heights differ by one at most */
      t.x = x + r * ldx;
      t.y = y + r * ldy + first;
      run_tile_row(&t);
    }
  }
}
