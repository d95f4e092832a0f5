/*
** vector_attention.h: the two products of attention, written once for all
** sets; see vector_kernels.h.
**
** Both are sums of rows: one number of a, times one row of b, added to a row of
** the result. In the context b is v as it lies; for the scores b is k turned by
** 90 degrees, a block at a time, on the stack. Either way an element is one
** chain of fused steps in the order of its terms, whatever tile it falls in.
*/
enum {
  KEY_BLOCK = 2 * LANES, /* keys turned at once */
  WIDTH_BLOCK = 128      /* dimensions turned at once: at most 16 KB */
};

/* sum[r][c] += a[r][i] b[i][c * LANES …] for i < count, in that order. R and C
** are constants where this is used; the last vector of b has `last` numbers. */
INLINE void outer_sum(const size_t R, const size_t C, const float *a, size_t lda, const float *b,
                      size_t ldb, size_t count, size_t last, V sum[OUTER_ROWS][2]) {
  for (size_t i = 0; i < count; i++) {
    V row[2];
    UNROLL for (size_t c = 0; c < C; c++) {
      const float *p = b + i * ldb + c * LANES;
      row[c] = c + 1 < C || last == LANES ? v_load(p) : v_load_part(p, last);
    }
    UNROLL for (size_t r = 0; r < R; r++) {
      V factor = v_set1(a[r * lda + i]);
      UNROLL for (size_t c = 0; c < C; c++) sum[r][c] = v_fma(factor, row[c], sum[r][c]);
    }
  }
}

/* One tile of y[R, (C - 1) * LANES + last; ldy] = scale * (y + a b), or without
** y when `fresh`. */
INLINE void outer_tile(const size_t R, const size_t C, const float *a, size_t lda, const float *b,
                       size_t ldb, size_t count, size_t last, int padded, int fresh, float scale,
                       float *y, size_t ldy) {
  V sum[OUTER_ROWS][2];
  UNROLL for (size_t r = 0; r < R; r++) {
    UNROLL for (size_t c = 0; c < C; c++) {
      const float *p = y + r * ldy + c * LANES;
      if (fresh)
        sum[r][c] = v_set1(0.0f);
      else
        sum[r][c] = c + 1 < C || last == LANES ? v_load(p) : v_load_part(p, last);
    }
  }
  if (padded || last == LANES)
    outer_sum(R, C, a, lda, b, ldb, count, LANES, sum);
  else
    outer_sum(R, C, a, lda, b, ldb, count, last, sum);
  V s = v_set1(scale);
  UNROLL for (size_t r = 0; r < R; r++) {
    UNROLL for (size_t c = 0; c < C; c++) {
      float *p = y + r * ldy + c * LANES;
      V out = v_mul(sum[r][c], s);
      if (c + 1 < C || last == LANES)
        v_store(p, out);
      else
        v_store_part(p, out, last);
    }
  }
}

#define OUTER_CASE(R, C)                                                                           \
  case R:                                                                                          \
    outer_tile(R, C, a, lda, b, ldb, count, last, padded, fresh, scale, y, ldy);                   \
    break

#if OUTER_ROWS > 6
#define OUTER_CASES_TO_12(C)                                                                       \
  OUTER_CASE(7, C);                                                                                \
  OUTER_CASE(8, C);                                                                                \
  OUTER_CASE(9, C);                                                                                \
  OUTER_CASE(10, C);                                                                               \
  OUTER_CASE(11, C);                                                                               \
  OUTER_CASE(12, C);
#else
#define OUTER_CASES_TO_12(C)
#endif

#define DEFINE_OUTER_TILES(C)                                                                      \
  static void outer_tiles_##C(size_t rows, const float *a, size_t lda, const float *b, size_t ldb, \
                              size_t count, size_t last, int padded, int fresh, float scale,       \
                              float *y, size_t ldy) {                                              \
    switch (rows) {                                                                                \
      OUTER_CASE(1, C);                                                                            \
      OUTER_CASE(2, C);                                                                            \
      OUTER_CASE(3, C);                                                                            \
      OUTER_CASE(4, C);                                                                            \
      OUTER_CASE(5, C);                                                                            \
      OUTER_CASE(6, C);                                                                            \
      OUTER_CASES_TO_12(C)                                                                         \
    }                                                                                              \
  }
DEFINE_OUTER_TILES(1)
DEFINE_OUTER_TILES(2)

/* y[rows, cols; ldy] = scale * (y + a[rows, count; lda] b[count, cols; ldb]) for
** cols <= 2 LANES, or without y when `fresh`. `padded`: b may be read up to
** whole vectors. */
static void outer_product(const float *a, size_t lda, const float *b, size_t ldb, size_t count,
                          int padded, int fresh, float scale, float *y, size_t ldy, size_t rows,
                          size_t cols) {
  size_t tiles = (rows + OUTER_ROWS - 1) / OUTER_ROWS, r = 0;
  for (size_t t = 0; t < tiles; t++) {
    size_t height = (rows - r + (tiles - t) - 1) / (tiles - t);
    const float *from = a + r * lda;
    float *to = y + r * ldy;
    if (cols <= LANES) {
      outer_tiles_1(height, from, lda, b, ldb, count, cols, padded, fresh, scale, to, ldy);
    } else {
      outer_tiles_2(height, from, lda, b, ldb, count, cols - LANES, padded, fresh, scale, to, ldy);
    }
    r += height;
  }
}

static void attention_scores(const float *q, size_t ldq, const float *k, size_t ldk, float scale,
                             float *scores, size_t lds, size_t queries, size_t keys, size_t width) {
  float turned[WIDTH_BLOCK * KEY_BLOCK]; /* [width, KEY_BLOCK] */
  const turn_layout layout = {KEY_BLOCK, 4 * KEY_BLOCK, 8 * KEY_BLOCK};
  for (size_t j = 0; j < keys; j += KEY_BLOCK) {
    size_t n = keys - j < KEY_BLOCK ? keys - j : KEY_BLOCK;
    size_t d = 0;
    do {
      size_t depth = width - d < WIDTH_BLOCK ? width - d : WIDTH_BLOCK;
      turn_matrix(k + j * ldk + d, ldk, n, depth, turned, &layout);
      outer_product(q + d, ldq, turned, KEY_BLOCK, depth, 1, d == 0,
                    d + depth == width ? scale : 1.0f, scores + j, lds, queries, n);
      d += depth;
    } while (d < width);
  }
}

static void attention_context(const float *weights, size_t ldw, const float *v, size_t ldv,
                              float *y, size_t ldy, size_t queries, size_t keys, size_t width) {
  for (size_t d = 0; d < width; d += 2 * LANES) {
    size_t n = width - d < 2 * LANES ? width - d : 2 * LANES;
    outer_product(weights, ldw, v + d, ldv, keys, 0, 1, 1.0f, y + d, ldy, queries, n);
  }
}
