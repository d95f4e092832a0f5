/*
** vector_few.h: linear with few rows; see vector_linear.h.
**
** Weights are turned in registers and used there, again for each tile of rows. It
** costs nothing where a processor shuffles beside multiplying, and less than the way
** through a panel elsewhere. Each number of x is used for one vector of columns only:
** where vectors are short, loading it becomes the limit, and FEW_MOST is low.
*/
enum { FEW_DEPTH = 4 * MOST_DEPTH /* of x, packed at once: 48 KB at most */ };

/* A block of depth of LANES columns, for all rows. */
typedef struct few_block {
  const float *w;    /* [LANES, depth; ldw] */
  const float *next; /* [LANES, depth; ldw], fetched meanwhile */
  const float *bias; /* [LANES] in the last block of depth; else NULL */
  size_t ldw, ldy, depth;
  int fresh; /* 1 in the first block of depth: y holds nothing yet */
} few_block;

/* packed[depth / 4, rows, 4] = x[rows, depth; ldx], in the order of its use. */
static void pack_tile(const float *x, size_t ldx, size_t rows, size_t depth, float *packed) {
  for (size_t d = 0; d < depth; d += 4) {
    for (size_t r = 0; r < rows; r++, packed += 4) memcpy(packed, x + r * ldx + d, 4 * sizeof *x);
  }
}

/* y[R, LANES; ldy] = packed[depth / 4, R, 4] w^T, or y + that; + bias. R is a constant
** where this is used. */
INLINE void few_tile(const size_t R, const few_block *b, const float *packed, float *y) {
  V sum[FEW_ROWS];
  UNROLL for (size_t r = 0; r < R; r++) sum[r] = v_set1(0.0f);
  for (size_t line = 0; line < b->depth; line += LINE) {
    size_t end = least(b->depth, line + LINE);
    fetch_rows(b->next + line, b->ldw, LANES);
    for (size_t d = line; d < end; d += 4) {
      V w[4];
      v_load_turned(b->w + d, b->ldw, w);
      UNROLL for (size_t i = 0; i < 4; i++) {
        UNROLL for (size_t r = 0; r < R; r++) sum[r] =
            v_fma(v_set1(packed[d * R + 4 * r + i]), w[i], sum[r]);
      }
    }
  }
  UNROLL for (size_t r = 0; r < R; r++) {
    V out = b->fresh ? sum[r] : v_add(v_load(y + r * b->ldy), sum[r]);
    v_store(y + r * b->ldy, b->bias != NULL ? v_add(out, v_load(b->bias)) : out);
  }
}

#define FEW_CASE(R)                                                                                \
  case R: few_tile(R, b, packed, y); break;
static void few_tile_of(size_t rows, const few_block *b, const float *packed, float *y) {
  switch (rows) {
    FEW_CASE(1)
    FEW_CASE(2)
    FEW_CASE(3)
    FEW_CASE(4)
    FEW_CASE(5)
    FEW_CASE(6)
    FEW_CASE(7)
    FEW_CASE(8)
#if FEW_ROWS > 8
    FEW_CASE(9)
    FEW_CASE(10)
#endif
#if FEW_ROWS > 10
    FEW_CASE(11)
    FEW_CASE(12)
    FEW_CASE(13)
    FEW_CASE(14)
    FEW_CASE(15)
    FEW_CASE(16)
#endif
  }
}

/* Calls few_tile for all rows. packed holds [rows, depth], tile by tile, of which the
** block starts at `d`. */
INLINE void few_tiles(const few_block *b, const float *packed, size_t depth, size_t d, float *y,
                      size_t rows) {
  size_t tiles = (rows + FEW_ROWS - 1) / FEW_ROWS;
  for (size_t t = 0; t < tiles; t++) {
    size_t r = tile_row(t, tiles, rows), height = tile_row(t + 1, tiles, rows) - r;
    few_tile_of(height, b, packed + r * depth + d * height, y + r * b->ldy);
  }
}

/* rows <= FEW_MOST, cols in whole vectors, depth in fours. */
static void few_rows(const float *x, size_t ldx, const float *w, size_t ldw, const float *bias,
                     float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  _Alignas(64) float packed[FEW_DEPTH * FEW_MOST];
  size_t step = block_depth(depth), room = FEW_DEPTH / step * step;
  size_t tiles = (rows + FEW_ROWS - 1) / FEW_ROWS;
  for (size_t first = 0; first < depth; first += room) {
    size_t n = least(depth - first, room);
    for (size_t t = 0; t < tiles; t++) {
      size_t r = tile_row(t, tiles, rows), height = tile_row(t + 1, tiles, rows) - r;
      pack_tile(x + r * ldx + first, ldx, height, n, packed + r * n);
    }
    for (size_t c = 0; c < cols; c += LANES) {
      for (size_t d = 0; d < n; d += step) {
        const float *at = w + c * ldw + first + d;
        few_block b = {.w = at, .next = at, .ldw = ldw, .ldy = ldy, .fresh = first + d == 0};
        b.depth = least(n - d, step);
        if (c + LANES < cols) b.next += LANES * ldw;
        if (bias != NULL && first + d + b.depth == depth) b.bias = bias + c;
        few_tiles(&b, packed, n, d, y + c, rows);
      }
    }
  }
}
