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

/* The whole product, as in kernels.h, in `tiles` rows of tiles. */
typedef struct product {
  const float *x, *w, *bias;
  float *y;
  size_t rows, cols, depth, ldx, ldw, ldy, tiles;
} product;

/* The tile in row t of tiles and from column c, the depth from d to d + n. At
** the right edge a whole tile is made beside y, and the columns that exist are
** copied. */
static void run_tile(const product *p, size_t t, size_t c, size_t d, size_t n, V *sums) {
  static const float no_bias[TILE_COLS];
  size_t r = t * p->rows / p->tiles; /* heights differ by one at most */
  size_t height = (t + 1) * p->rows / p->tiles - r;
  size_t width = p->cols - c < TILE_COLS ? p->cols - c : TILE_COLS;
  const V *before = d > 0 ? sums : NULL;
  V *after = d + n < p->depth ? sums : NULL;
  const float *x = p->x + r * p->ldx + d, *bias = p->bias != NULL ? p->bias + c : no_bias;
  float *y = p->y + r * p->ldy + c;
  w_rows w;
  for (size_t i = 0; i < TILE_COLS; i++) {
    w.row[i] = p->w + (c + (i < width ? i : width - 1)) * p->ldw + d;
  }
  if (width == TILE_COLS) {
    dot_tiles[height](x, p->ldx, &w, n, before, after, bias, y, p->ldy);
    return;
  }
  float start[TILE_COLS] = {0}, out[TILE_ROWS][TILE_COLS];
  for (size_t i = 0; i < width; i++) start[i] = bias[i];
  dot_tiles[height](x, p->ldx, &w, n, before, after, start, out[0], TILE_COLS);
  for (size_t i = 0; after == NULL && i < height; i++) {
    for (size_t j = 0; j < width; j++) y[i * p->ldy + j] = out[i][j];
  }
}

/* Three loops keep the caches in use, and none changes a sum:
**   a panel of columns, whose rows of w stay in the second-level cache while all
**   rows of x pass;
**   a group of rows of tiles, whose rows of x stay in the first-level cache while
**   the panel passes, so that a row of w is fetched once for all of them;
**   a block of depth, so that the rows of x of one tile at least do fit there.
**   The sums of the tiles that are open between blocks, at most OPEN_TILES, wait
**   on the stack. */
enum { PANEL_BYTES = 256 * 1024, GROUP_BYTES = 26 * 1024, OPEN_TILES = 8 };

/* Asks for the rows of w of the tile from column c ahead of their use. While few
** rows of x pass, w comes from memory, and the processor's own prefetchers stop
** at the end of each page, which holds two or three rows. */
INLINE void fetch_ahead(const product *p, size_t c, size_t d, size_t n) {
  for (size_t i = c; i < c + TILE_COLS && i < p->cols; i++) {
    const char *row = (const char *)(p->w + i * p->ldw + d);
    for (size_t byte = 0; byte < n * sizeof(float); byte += 64)
      __builtin_prefetch(row + byte, 0, 2);
  }
}

/* The tiles in rows t to t_end and columns c to c_end: at most OPEN_TILES. */
static void run_tiles(const product *p, size_t t, size_t t_end, size_t c, size_t c_end) {
  V sums[OPEN_TILES][TILE_ROWS * TILE_COLS];
  size_t d = 0;
  do {
    size_t n = p->depth - d < DEPTH_BLOCK ? p->depth - d : DEPTH_BLOCK, open = 0;
    for (size_t col = c; col < c_end; col += TILE_COLS) {
      if (t == 0) fetch_ahead(p, col + 2 * TILE_COLS, d, n);
      for (size_t row = t; row < t_end; row++) run_tile(p, row, col, d, n, sums[open++]);
    }
    d += n;
  } while (d < p->depth);
}

INLINE size_t clamp(size_t low, size_t value, size_t high) {
  return value < low ? low : value > high ? high : value;
}

static void linear(const float *x, size_t ldx, const float *w, size_t ldw, const float *bias,
                   float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  product p = {x, w, bias, y, rows, cols, depth, ldx, ldw, ldy, (rows + TILE_ROWS - 1) / TILE_ROWS};
  size_t block = (depth < DEPTH_BLOCK ? depth : DEPTH_BLOCK) * sizeof(float) + 1;
  size_t fit = GROUP_BYTES / block; /* rows of x, and of w for one tile */
  size_t group = clamp(1, fit > TILE_COLS ? (fit - TILE_COLS) / TILE_ROWS : 1, OPEN_TILES);
  size_t strip = OPEN_TILES / group * TILE_COLS;
  size_t panel = clamp(1, PANEL_BYTES / (depth * sizeof(float) + 1) / strip, cols) * strip;
  for (size_t first = 0; first < cols; first += panel) {
    size_t stop = cols - first < panel ? cols : first + panel;
    for (size_t t = 0; t < p.tiles; t += group) {
      size_t t_end = p.tiles - t < group ? p.tiles : t + group;
      for (size_t c = first; c < stop; c += strip) {
        run_tiles(&p, t, t_end, c, stop - c < strip ? stop : c + strip);
      }
    }
  }
}
