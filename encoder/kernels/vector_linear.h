/*
** vector_linear.h: y = x w^T + bias, written once for all sets; see
** vector_kernels.h.
**
** Lanes are columns of y where there are many rows, rows where there are few;
** no sum ever runs over lanes. An element is the sum of its blocks of
** block_depth(depth) terms, added in their order, and a block is one chain of
** fused steps in the order of its terms. Both forms compute just that, so an element
** depends on its row of x, its row of w and depth alone, whichever form and tile
** it falls in.
*/

enum { MOST_DEPTH = 96, LINE = 16, TILE_COLS = TILE_VECTORS * LANES };

/* Terms of a block: a quarter of all, in whole lines, so that even short sums come
** in parts, which keeps their error small. At most MOST_DEPTH, so that the panel
** stays in the first-level cache; from 96 to 384 all are as fast with many rows. */
INLINE size_t block_depth(size_t depth) {
  size_t lines = (depth / 4 + LINE - 1) / LINE;
  return lines == 0 ? LINE : least(lines * LINE, MOST_DEPTH);
}

/* Asks for a[rows, LINE; lda] ahead of its use. Weights come from memory where
** few rows of x pass, and the processor's own prefetchers stop at the end of each
** page, which holds two or three rows. */
INLINE void fetch_rows(const float *a, size_t lda, size_t rows) {
  for (size_t r = 0; r < rows; r++) __builtin_prefetch(a + r * lda, 0, 2);
}

/* ---- Many rows -------------------------------------------------------------- */

/* A block of depth of a panel of at most TILE_COLS columns, for all rows. */
typedef struct panel_block {
  const float *w;    /* [cols, depth; ldw], turned into `panel` by the first tile;
                        NULL when that is done */
  const float *next; /* [next_cols, depth; ldw], fetched meanwhile */
  const float *bias; /* [cols] in the last block of depth; else NULL */
  float *panel;      /* [depth, TILE_COLS] */
  size_t ldx, ldw, ldy, cols, next_cols, depth;
  int fresh; /* 1 in the first block of depth: y holds nothing yet */
} panel_block;

INLINE void turn_line(const panel_block *b, size_t d, size_t n) {
  fetch_rows(b->next + d, b->ldw, b->next_cols);
  turn_matrix(b->w + d, b->ldw, b->cols, n, b->panel + d * TILE_COLS, TILE_COLS);
}

/* y[R, (C - 1) * LANES + last] = sum, or y + sum; + bias. */
INLINE void close_tile(const size_t R, const size_t C, const panel_block *b, size_t last,
                       V sum[TILE_ROWS][TILE_VECTORS], float *y) {
  UNROLL for (size_t r = 0; r < R; r++) {
    UNROLL for (size_t c = 0; c < C; c++) {
      float *p = y + r * b->ldy + c * LANES;
      const float *bias = b->bias + c * LANES;
      int whole = c + 1 < C || last == LANES;
      V out = sum[r][c];
      if (!b->fresh) out = v_add(whole ? v_load(p) : v_load_part(p, last), out);
      if (b->bias != NULL) out = v_add(out, whole ? v_load(bias) : v_load_part(bias, last));
      if (whole)
        v_store(p, out);
      else
        v_store_part(p, out, last);
    }
  }
}

/* R rows of x[., depth; ldx] by the C vectors of the panel: R and C are constants
** where this is used. */
INLINE void panel_tile(const size_t R, const size_t C, const panel_block *b, const float *x,
                       float *y) {
  V sum[TILE_ROWS][TILE_VECTORS];
  UNROLL for (size_t r = 0; r < R; r++) {
    UNROLL for (size_t c = 0; c < C; c++) sum[r][c] = v_set1(0.0f);
  }
  for (size_t line = 0; line < b->depth; line += LINE) {
    size_t end = b->depth - line < LINE ? b->depth : line + LINE;
    if (b->w != NULL) turn_line(b, line, end - line);
    for (size_t d = line; d < end; d++) {
      V row[TILE_VECTORS];
      UNROLL for (size_t c = 0; c < C; c++) row[c] = v_load(b->panel + d * TILE_COLS + c * LANES);
      UNROLL for (size_t r = 0; r < R; r++) {
        V factor = v_set1(x[r * b->ldx + d]);
        UNROLL for (size_t c = 0; c < C; c++) sum[r][c] = v_fma(factor, row[c], sum[r][c]);
      }
    }
  }
  close_tile(R, C, b, b->cols - (C - 1) * LANES, sum, y);
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

/* All rows; heights of tiles differ by one at most. */
static void run_block(panel_block *b, const float *x, float *y, size_t rows) {
  size_t tiles = (rows + TILE_ROWS - 1) / TILE_ROWS, vectors = (b->cols + LANES - 1) / LANES;
  for (size_t t = 0; t < tiles; t++) {
    size_t r = t * rows / tiles, height = (t + 1) * rows / tiles - r;
    if (vectors == 1) panel_tiles_1(height, b, x + r * b->ldx, y + r * b->ldy);
    if (vectors == 2) panel_tiles_2(height, b, x + r * b->ldx, y + r * b->ldy);
    if (vectors == 3) panel_tiles_3(height, b, x + r * b->ldx, y + r * b->ldy);
    b->w = NULL;
  }
}

static void many_rows(const float *x, size_t ldx, const float *w, size_t ldw, const float *bias,
                      float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  _Alignas(64) float panel[MOST_DEPTH * TILE_COLS];
  size_t step = block_depth(depth);
  for (size_t c = 0; c < cols; c += TILE_COLS) {
    size_t d = 0;
    do {
      size_t n = least(depth - d, step), width = least(cols - c, TILE_COLS);
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

/* ---- Few rows --------------------------------------------------------------- */

/* From FEW_LEAST to FEW_ROWS rows turning w costs more than the lanes that stay
** empty when x is turned instead. Twelve sums are enough to keep the multipliers
** busy and leave room for the rest under every set. */
enum {
  FEW_LEAST = 12,
  FEW_ROWS = 16,
  FEW_VECTORS = FEW_ROWS / LANES,
  FEW_COLS = 12 / FEW_VECTORS,
  FEW_DEPTH = 4 * MOST_DEPTH, /* turned at once: 24 KB */
  FEW_STRIP = 384,            /* columns whose sums wait on the stack: 24 KB */
  FEW_AHEAD = 24              /* columns between a row of w that is read and one fetched */
};

/* One block of depth: total[FEW_COLS, FEW_ROWS], or nothing when `fresh`, +=
** w[FEW_COLS, depth; ldw] turned[depth, FEW_ROWS]. next[FEW_COLS, depth; ldw] is
** fetched meanwhile. */
INLINE void few_tile(const float *w, size_t ldw, const float *turned, size_t depth,
                     const float *next, int fresh, float *total) {
  V sum[FEW_COLS][FEW_VECTORS];
  UNROLL for (size_t c = 0; c < FEW_COLS; c++) {
    UNROLL for (size_t v = 0; v < FEW_VECTORS; v++) sum[c][v] = v_set1(0.0f);
  }
  for (size_t line = 0; line < depth; line += LINE) {
    size_t end = least(depth, line + LINE);
    fetch_rows(next + line, ldw, FEW_COLS);
    for (size_t d = line; d < end; d++) {
      V x[FEW_VECTORS];
      UNROLL for (size_t v = 0; v < FEW_VECTORS; v++) x[v] =
          v_load(turned + d * FEW_ROWS + v * LANES);
      UNROLL for (size_t c = 0; c < FEW_COLS; c++) {
        V factor = v_set1(w[c * ldw + d]);
        UNROLL for (size_t v = 0; v < FEW_VECTORS; v++) sum[c][v] = v_fma(factor, x[v], sum[c][v]);
      }
    }
  }
  UNROLL for (size_t c = 0; c < FEW_COLS; c++) {
    UNROLL for (size_t v = 0; v < FEW_VECTORS; v++) {
      float *p = total + c * FEW_ROWS + v * LANES;
      v_store(p, fresh ? sum[c][v] : v_add(v_load(p), sum[c][v]));
    }
  }
}

/* y[rows, cols; ldy] = total[cols, FEW_ROWS]^T + bias. */
static void close_strip(const float *total, const float *bias, float *y, size_t ldy, size_t rows,
                        size_t cols) {
  for (size_t c = 0; c < cols; c += LANES) {
    float t[FEW_ROWS * LANES];
    size_t n = least(cols - c, LANES);
    turn_rows(total + c * FEW_ROWS, FEW_ROWS, n, FEW_ROWS, t, LANES);
    for (size_t r = 0; r < rows; r++) {
      V out = v_load(t + r * LANES);
      float *p = y + r * ldy + c;
      if (bias != NULL) out = v_add(out, n == LANES ? v_load(bias + c) : v_load_part(bias + c, n));
      if (n == LANES)
        v_store(p, out);
      else
        v_store_part(p, out, n);
    }
  }
}

/* rows <= FEW_ROWS, cols in whole tiles. */
static void few_rows(const float *x, size_t ldx, const float *w, size_t ldw, const float *bias,
                     float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  _Alignas(64) float turned[FEW_DEPTH * FEW_ROWS], total[FEW_STRIP * FEW_ROWS];
  size_t step = block_depth(depth), room = FEW_DEPTH / step * step;
  for (size_t first = 0; first < cols; first += FEW_STRIP) {
    size_t width = least(cols - first, FEW_STRIP);
    for (size_t d = 0; d < depth; d += room) {
      size_t n = least(depth - d, room);
      for (size_t r = 0; r < FEW_ROWS; r += LANES)
        turn_rows(x + r * ldx + d, ldx, r < rows ? least(rows - r, LANES) : 0, n, turned + r,
                  FEW_ROWS);
      for (size_t c = 0; c < width; c += FEW_COLS) {
        const float *tile = w + (first + c) * ldw + d;
        const float *next = first + c + FEW_AHEAD < cols ? tile + FEW_AHEAD * ldw : tile;
        for (size_t b = 0; b < n; b += step)
          few_tile(tile + b, ldw, turned + b * FEW_ROWS, least(n - b, step), next + b, d + b == 0,
                   total + c * FEW_ROWS);
      }
    }
    close_strip(total, bias != NULL ? bias + first : NULL, y + first, ldy, rows, width);
  }
}

static void linear(const float *x, size_t ldx, const float *w, size_t ldw, const float *bias,
                   float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  size_t done = 0;
  if (rows >= FEW_LEAST && rows <= FEW_ROWS && depth > 0) {
    done = cols / FEW_COLS * FEW_COLS;
    few_rows(x, ldx, w, ldw, bias, y, ldy, rows, done, depth);
  }
  many_rows(x, ldx, w + done * ldw, ldw, bias != NULL ? bias + done : NULL, y + done, ldy, rows,
            cols - done, depth);
}
