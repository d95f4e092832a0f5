/*
** vector_panel.h: linear with many rows; see vector_linear.h.
**
** A block of w is turned into a panel that stays in the first-level cache while all
** rows of x pass it.
*/
/* A block of depth of a panel of at most TILE_COLS columns, for all rows. */
typedef struct panel_block {
  const float *w;    /* [cols, depth; ldw], turned into `panel` by the first tile;
                        NULL when that is done */
  const float *next; /* [next_cols, depth; ldw], fetched meanwhile */
  const float *bias; /* [cols] in the last block of depth; else NULL */
  float *panel;      /* [CHAINS, steps of the first chain, TILE_COLS] */
  size_t ldx, ldw, ldy, cols, next_cols, depth;
  int fresh; /* 1 in the first block of depth: y holds nothing yet */
} panel_block;

/* Terms of a chain; the first has the most. */
INLINE size_t chain_steps(const panel_block *b, size_t chain) {
  return (b->depth + CHAINS - 1 - chain) / CHAINS;
}

INLINE void turn_line(const panel_block *b, size_t d) {
  size_t n = least(b->depth - d, LINE);
  fetch_rows(b->next + d, b->ldw, b->next_cols);
  turn_matrix(b->w + d, b->ldw, b->cols, n, b->panel + d / CHAINS * TILE_COLS,
              chain_steps(b, 0) * TILE_COLS, TILE_COLS);
}

/* y[R, (C - 1) * LANES + last] = sum, or y + sum; + bias. */
INLINE void close_tile(const size_t R, const size_t C, const panel_block *b, size_t chain,
                       size_t last, V sum[TILE_ROWS][TILE_VECTORS], float *y) {
  int adds = !b->fresh || chain > 0, ends = b->bias != NULL && chain + 1 == CHAINS;
  UNROLL for (size_t r = 0; r < R; r++) {
    UNROLL for (size_t c = 0; c < C; c++) {
      float *p = y + r * b->ldy + c * LANES;
      const float *bias = b->bias + c * LANES;
      int whole = c + 1 < C || last == LANES;
      V out = sum[r][c];
      if (adds) out = v_add(whole ? v_load(p) : v_load_part(p, last), out);
      if (ends) out = v_add(out, whole ? v_load(bias) : v_load_part(bias, last));
      if (whole)
        v_store(p, out);
      else
        v_store_part(p, out, last);
    }
  }
}

/* sum[R, C] += steps of a chain: x[R; ldx], 4 apart, times panel[steps, TILE_COLS]. */
INLINE void panel_steps(const size_t R, const size_t C, const float *x, size_t ldx,
                        const float *panel, size_t steps, V sum[TILE_ROWS][TILE_VECTORS]) {
  for (size_t k = 0; k < steps; k++, panel += TILE_COLS) {
    V row[TILE_VECTORS];
    UNROLL for (size_t c = 0; c < C; c++) row[c] = v_load(panel + c * LANES);
    UNROLL for (size_t r = 0; r < R; r++) {
      V factor = v_set1(x[r * ldx + CHAINS * k]);
      UNROLL for (size_t c = 0; c < C; c++) sum[r][c] = v_fma(factor, row[c], sum[r][c]);
    }
  }
}

/* A chain of R rows of x[., depth; ldx] by the C vectors of the panel: R and C are
** constants where this is used. */
INLINE void panel_chain(const size_t R, const size_t C, const panel_block *b, size_t chain,
                        const float *x, V sum[TILE_ROWS][TILE_VECTORS]) {
  size_t steps = chain_steps(b, chain);
  const float *panel = b->panel + chain * chain_steps(b, 0) * TILE_COLS;
  UNROLL for (size_t r = 0; r < R; r++) {
    UNROLL for (size_t c = 0; c < C; c++) sum[r][c] = v_set1(0.0f);
  }
  if (chain == 0 && b->w != NULL) {
    for (size_t d = 0; d < b->depth; d += LINE) {
      size_t k = d / CHAINS;
      turn_line(b, d);
      panel_steps(R, C, x + d, b->ldx, panel + k * TILE_COLS, least(steps - k, LINE / CHAINS),
                  sum);
    }
  } else {
    panel_steps(R, C, x + chain, b->ldx, panel, steps, sum);
  }
}

INLINE void panel_tile(const size_t R, const size_t C, const panel_block *b, const float *x,
                       float *y) {
  for (size_t chain = 0; chain < CHAINS; chain++) {
    V sum[TILE_ROWS][TILE_VECTORS];
    panel_chain(R, C, b, chain, x, sum);
    close_tile(R, C, b, chain, b->cols - (C - 1) * LANES, sum, y);
  }
}

#define PANEL_CASE(R, C)                                                                           \
  case R:                                                                                          \
    panel_tile(R, C, b, x, y);                                                                     \
    break;
#if TILE_ROWS > 6
#define PANEL_CASES_TO_8(C) PANEL_CASE(7, C) PANEL_CASE(8, C)
#else
#define PANEL_CASES_TO_8(C)
#endif
#if TILE_ROWS > 4
#define PANEL_CASES_TO_6(C) PANEL_CASE(5, C) PANEL_CASE(6, C)
#else
#define PANEL_CASES_TO_6(C)
#endif
#define DEFINE_PANEL_TILES(C)                                                                      \
  static void panel_tiles_##C(size_t rows, const panel_block *b, const float *x, float *y) {       \
    switch (rows) {                                                                                \
      PANEL_CASE(1, C)                                                                             \
      PANEL_CASE(2, C)                                                                             \
      PANEL_CASE(3, C)                                                                             \
      PANEL_CASE(4, C)                                                                             \
      PANEL_CASES_TO_6(C)                                                                          \
      PANEL_CASES_TO_8(C)                                                                          \
    }                                                                                              \
  }
DEFINE_PANEL_TILES(1)
DEFINE_PANEL_TILES(2)
#if TILE_VECTORS > 2
DEFINE_PANEL_TILES(3)
#else
#define panel_tiles_3 panel_tiles_2
#endif

/* All rows. */
static void run_block(panel_block *b, const float *x, float *y, size_t rows) {
  size_t tiles = (rows + TILE_ROWS - 1) / TILE_ROWS, vectors = (b->cols + LANES - 1) / LANES;
  for (size_t t = 0; t < tiles; t++) {
    size_t r = tile_row(t, tiles, rows), height = tile_row(t + 1, tiles, rows) - r;
    if (vectors == 1) panel_tiles_1(height, b, x + r * b->ldx, y + r * b->ldy);
    if (vectors == 2) panel_tiles_2(height, b, x + r * b->ldx, y + r * b->ldy);
    if (vectors == 3) panel_tiles_3(height, b, x + r * b->ldx, y + r * b->ldy);
    b->w = NULL;
  }
}

static void many_rows(const float *x, size_t ldx, const float *w, size_t ldw, const float *bias,
                      float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  _Alignas(64) float panel[MOST_DEPTH * TILE_COLS];
  for (size_t c = 0; c < cols; c += TILE_COLS) {
    size_t d = 0;
    do {
      size_t n = block_depth(depth, d), width = least(cols - c, TILE_COLS);
      int ends = d + n == depth;
      panel_block b = {
          w + c * ldw + d, w + c * ldw + d + n, NULL, panel, ldx, ldw, ldy, width, width, n,
          d == 0};
      if (ends) {
        b.bias = bias != NULL ? bias + c : NULL;
        b.next = w + (c + width) * ldw;
        b.next_cols = least(cols - c - width, TILE_COLS);
      }
      run_block(&b, x + d, y + c, rows);
      d += n;
    } while (d < depth);
  }
}
