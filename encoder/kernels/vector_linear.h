/*
** vector_linear.h: y = x w^T + bias, written once for all sets; see
** vector_kernels.h.
**
** Both x and w lie contiguous along depth, so nothing is packed or copied: a
** tile of TILE_ROWS rows by TILE_COLS columns holds one vector of partial sums
** per element and walks along depth, LANES terms a step. Term d of an element
** goes to lane d % LANES; v_sum_tile then adds the lanes in one order. So an
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

/* One tile; R is a constant where this is used: y[R, TILE_COLS; ldy] from
** x[R, depth; ldx], w and bias[TILE_COLS]. */
INLINE void dot_tile(const size_t R, const float *x, size_t ldx, const w_rows *w,
                     const float *bias, float *y, size_t ldy, size_t depth) {
  V sum[TILE_ROWS][TILE_COLS];
  size_t d = 0;
  UNROLL for (size_t r = 0; r < R; r++) {
    UNROLL for (size_t c = 0; c < TILE_COLS; c++) sum[r][c] = v_set1(0.0f);
  }
  for (; d + LANES <= depth; d += LANES) DOT_STEP(v_load);
  if (d < depth) DOT_STEP(LOAD_REST);
  F4 start = f4_load(bias);
  UNROLL for (size_t r = 0; r < R; r++) {
    F4 out = v_sum4(sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
    f4_store(y + r * ldy, f4_add(out, start));
  }
}

#define DEFINE_DOT_TILE(R)                                                                         \
  static void dot_tile_##R(const float *x, size_t ldx, const w_rows *w, const float *bias,         \
                           float *y, size_t ldy, size_t depth) {                                   \
    dot_tile(R, x, ldx, w, bias, y, ldy, depth);                                                   \
  }
DEFINE_DOT_TILE(1)
DEFINE_DOT_TILE(2)
DEFINE_DOT_TILE(3)
#if TILE_ROWS > 3
DEFINE_DOT_TILE(4)
DEFINE_DOT_TILE(5)
DEFINE_DOT_TILE(6)
#endif

typedef void dot_tile_function(const float *x, size_t ldx, const w_rows *w, const float *bias,
                               float *y, size_t ldy, size_t depth);
static dot_tile_function *const dot_tiles[TILE_ROWS + 1] = {
    NULL,       dot_tile_1, dot_tile_2, dot_tile_3,
#if TILE_ROWS > 3
    dot_tile_4, dot_tile_5, dot_tile_6,
#endif
};

/* A tile at the right edge, cols < TILE_COLS: a whole one beside y, of which the
** columns that exist are copied. */
static void edge_tile(size_t height, const float *x, size_t ldx, const w_rows *w,
                      const float *bias, float *y, size_t ldy, size_t cols, size_t depth) {
  float start[TILE_COLS] = {0}, out[TILE_ROWS][TILE_COLS];
  for (size_t c = 0; c < cols; c++) start[c] = bias[c];
  dot_tiles[height](x, ldx, w, start, out[0], TILE_COLS, depth);
  for (size_t r = 0; r < height; r++) {
    for (size_t c = 0; c < cols; c++) y[r * ldy + c] = out[r][c];
  }
}

/* y[height, cols; ldy], height <= TILE_ROWS, tile after tile. */
static void tile_row(size_t height, const float *x, size_t ldx, const float *w, size_t ldw,
                     const float *bias, float *y, size_t ldy, size_t cols, size_t depth) {
  static const float none[TILE_COLS];
  for (size_t c = 0; c < cols; c += TILE_COLS) {
    size_t width = cols - c < TILE_COLS ? cols - c : TILE_COLS;
    const float *start = bias != NULL ? bias + c : none;
    w_rows rows;
    for (size_t i = 0; i < TILE_COLS; i++) {
      rows.row[i] = w + (c + (i < width ? i : width - 1)) * ldw;
    }
    if (width == TILE_COLS) dot_tiles[height](x, ldx, &rows, start, y + c, ldy, depth);
    else edge_tile(height, x, ldx, &rows, start, y + c, ldy, width, depth);
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
    size_t width = cols - first < panel ? cols - first : panel, r = 0;
    for (size_t t = tiles; t > 0; t--) {
      size_t height = (rows - r + t - 1) / t; /* the heights differ by one at most */
      tile_row(height, x + r * ldx, ldx, w + first * ldw, ldw, bias != NULL ? bias + first : NULL,
               y + r * ldy + first, ldy, width, depth);
      r += height;
    }
  }
}
