/*
** vector_panel.h: linear with many rows; see vector_linear.h.
**
** A block of w is turned into a panel, which all rows of x pass, a tile at a time. What
** comes next is asked for meanwhile, a little with each line of depth: asked for all at
** once, it would hold up the tile at hand.
*/
/* A block of depth of a panel of at most TILE_COLS columns, for all rows. */
typedef struct panel_block {
  const float *w;    /* [cols, depth; ldw], turned into `panel` by the first tile;
                        NULL when that is done */
  const float *next; /* [next_cols, depth; ldw], the panel after this */
  const float *bias; /* [cols] in the last block of depth; else NULL */
  float *panel;      /* [CHAINS, steps of the first chain, TILE_COLS] */
  size_t ldx, ldw, ldy, cols, next_cols, depth;
  size_t next_first, next_last; /* the columns of `next` that the tile at hand asks for */
  int fresh;                    /* 1 in the first block of depth: y holds nothing yet */
} panel_block;

/* Terms of a chain; the first has the most. */
INLINE size_t chain_steps(const panel_block *b, size_t chain) {
  return (b->depth + CHAINS - 1 - chain) / CHAINS;
}

/* Depth goes in lines: so many terms that each chain has eight. */
enum { LINE = 8 * CHAINS };

/* Asks for a line of depth at an address that need not exist, into the first-level cache (near)
** or the second. */
INLINE void fetch_terms(uintptr_t line, const int near) {
  UNROLL for (size_t i = 0; i < LINE; i += CACHE_LINE) {
    if (near)
      __builtin_prefetch((const void *)(line + i * sizeof(float)), 0, 3);
    else
      __builtin_prefetch((const void *)(line + i * sizeof(float)), 0, 2);
  }
}

/* A line of depth of the panel. The next one is asked for, into the first-level cache: the
** processor's own prefetchers stop at the end of each page, which holds two or three rows.
** At the end of w it does not exist, hence whole numbers. */
INLINE void turn_line(const panel_block *b, size_t d) {
  for (size_t c = 0; c < b->cols; c++)
    fetch_terms((uintptr_t)(b->w + c * b->ldw) + (d + LINE) * sizeof *b->w, 1);
  size_t apart = chain_steps(b, 0) * TILE_COLS; /* from a chain to the next */
  /* The fourth term after one is the next of its chain or, of eight, in the fourth chain after. */
  const turn_layout layout = {apart, CHAINS == 8 ? 4 * apart : TILE_COLS, 8 / CHAINS * TILE_COLS};
  turn_matrix(b->w + d, b->ldw, b->cols, least(b->depth - d, LINE),
              b->panel + d / CHAINS * TILE_COLS, &layout);
}

/* Asks for a line of depth of what comes after a tile of R rows: of the rows of x behind it,
** which need not exist, and of this tile's columns of w. Rows that were asked for in the first
** half of the chains would have left the first-level cache again. */
INLINE void fetch_line(const size_t R, const panel_block *b, size_t chain, const float *x,
                       size_t d) {
  const size_t half = CHAINS / 2, rows = (R + half - 1) / half;  /* in each of the later half */
  size_t turn = CHAINS == 8 ? chain % 4 * 2 + chain / 4 : chain; /* 0 for the first, … */
  if (turn >= half) {
    size_t row = R + (turn - half) * rows;
    uintptr_t behind = (uintptr_t)x + (row * b->ldx + d) * sizeof *x;
    UNROLL for (size_t r = 0; r < rows; r++) fetch_terms(behind + r * b->ldx * sizeof *x, 1);
  }
  for (size_t c = b->next_first + chain; c < b->next_last; c += CHAINS)
    fetch_terms((uintptr_t)b->next + (c * b->ldw + d) * sizeof *b->next, 0);
}

/* y[R, C * LANES; ldy] = sum, or y + sum. */
INLINE void close_whole(const size_t R, const size_t C, int adds, V sum[TILE_ROWS][TILE_VECTORS],
                        float *y, size_t ldy) {
  if (adds) {
    UNROLL for (size_t r = 0; r < R; r++) {
      UNROLL for (size_t c = 0; c < C; c++) {
        float *p = y + r * ldy + c * LANES;
        v_store(p, v_add(v_load(p), sum[r][c]));
      }
    }
  } else {
    UNROLL for (size_t r = 0; r < R; r++) {
      UNROLL for (size_t c = 0; c < C; c++) v_store(y + r * ldy + c * LANES, sum[r][c]);
    }
  }
}

/* y[R, (C - 1) * LANES + last] = sum, or y + sum; + bias. Most chains end without bias, on
** whole vectors: asked once, not for each vector, that leaves the multipliers no gap. */
INLINE void close_tile(const size_t R, const size_t C, const panel_block *b, size_t chain,
                       size_t last, V sum[TILE_ROWS][TILE_VECTORS], float *y) {
  int adds = !b->fresh || chain > 0, ends = b->bias != NULL && chain + 1 == 4;
  if (!ends && last == LANES) {
    close_whole(R, C, adds, sum, y, b->ldy);
    return;
  }
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

/* sum[R, C] += steps of a chain: x[R; ldx], CHAINS apart, times panel[steps, TILE_COLS]. */
INLINE void panel_steps(const size_t R, const size_t C, const float *x, size_t ldx,
                        const float *panel, size_t steps, V sum[TILE_ROWS][TILE_VECTORS]) {
  const float *from[THIRDS(TILE_ROWS)];
  third_rows(R, x, ldx, from);
  _Pragma("GCC unroll 8") for (size_t k = 0; k < steps; k++, panel += TILE_COLS) {
    V row[TILE_VECTORS];
    UNROLL for (size_t c = 0; c < C; c++) row[c] = v_load(panel + c * LANES);
    UNROLL for (size_t r = 0; r < R; r++) {
      V factor = v_set1(from[r / 3][r % 3 * ldx + CHAINS * k]);
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
  for (size_t d = 0; d < b->depth; d += LINE, panel += LINE / CHAINS * TILE_COLS) {
    if (chain == 0 && b->w != NULL) turn_line(b, d);
    fetch_line(R, b, chain, x, d);
    if (d + LINE <= b->depth) /* a constant, to unroll by */
      panel_steps(R, C, x + d + chain, b->ldx, panel, LINE / CHAINS, sum);
    else
      panel_steps(R, C, x + d + chain, b->ldx, panel, steps - d / CHAINS, sum);
  }
}

/* sum = a[R, C * LANES] + sum. */
INLINE void add_sums(const size_t R, const size_t C, const float *a,
                     V sum[TILE_ROWS][TILE_VECTORS]) {
  UNROLL for (size_t r = 0; r < R; r++) {
    UNROLL for (size_t c = 0; c < C; c++) sum[r][c] =
        v_add(v_load(a + (r * C + c) * LANES), sum[r][c]);
  }
}

INLINE void panel_tile(const size_t R, const size_t C, const panel_block *b, const float *x,
                       float *y) {
  for (size_t chain = 0; chain < 4; chain++) {
    V sum[TILE_ROWS][TILE_VECTORS];
    panel_chain(R, C, b, chain, x, sum);
    if (CHAINS == 8) {
      _Alignas(64) float first[TILE_ROWS * TILE_COLS]; /* [R, C * LANES] */
      close_whole(R, C, 0, sum, first, C * LANES);
      panel_chain(R, C, b, chain + 4, x, sum);
      add_sums(R, C, first, sum);
    }
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
/* Inlined into its caller, gcc 12 would keep pointers of the inner loops in memory. */
#define DEFINE_PANEL_TILES(C)                                                                      \
  __attribute__((noinline)) static void panel_tiles_##C(size_t rows, const panel_block *b,         \
                                                        const float *x, float *y) {                \
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
    b->next_first = tile_row(t, tiles, b->next_cols);
    b->next_last = tile_row(t + 1, tiles, b->next_cols);
    if (vectors == 1) panel_tiles_1(height, b, x + r * b->ldx, y + r * b->ldy);
    if (vectors == 2) panel_tiles_2(height, b, x + r * b->ldx, y + r * b->ldy);
    if (vectors == 3) panel_tiles_3(height, b, x + r * b->ldx, y + r * b->ldy);
    b->w = NULL;
  }
}

/* `adds`: y holds something already. */
static void many_rows(const float *x, size_t ldx, const float *w, size_t ldw, const float *bias,
                      float *y, size_t ldy, size_t rows, size_t cols, size_t depth, int adds) {
  _Alignas(64) float panel[MOST_DEPTH * TILE_COLS];
  for (size_t c = 0; c < cols; c += TILE_COLS) {
    size_t d = 0;
    do {
      size_t n = block_depth(depth, d), width = least(cols - c, TILE_COLS);
      int ends = d + n == depth;
      panel_block b = {
          w + c * ldw + d, w + c * ldw + d + n, NULL, panel, ldx, ldw, ldy, width, width, n, 0, 0,
          d == 0 && !adds};
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
