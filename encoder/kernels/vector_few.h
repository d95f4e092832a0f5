/*
** vector_few.h: linear with few rows; see vector_linear.h.
**
** A sum is a vector: LANES / CHAINS columns, of each its chains. Those columns lie 4
** apart, so that four such vectors (eight, folded to four), turned by fours, are the chains of
** LANES columns.
*/
enum {
  FEW_MOST = 32 /* rows up to which this form is the fastest, in every set */
};

/* Terms of LANES columns for all rows: a block of depth, in whole vectors, or what is left
** of it. */
typedef struct few_block {
  const float *w;    /* [LANES, depth; ldw] */
  const float *next; /* fetched meanwhile, in the same order */
  size_t ldw, depth;
  int fresh; /* 1: chains begin here */
} few_block;

/* The first column of vector i of CHAINS. */
INLINE size_t few_column(size_t i) {
  return i % 4 + i / 4 * 4 * (LANES / CHAINS);
}

/* Asks for what is multiplied soon of C times LANES / CHAINS columns, w[C; ldw] being the first of
** each: into the first-level cache what comes two lines later, into the second what comes
** `gap` bytes later. Neither need exist, hence whole numbers. */
INLINE void few_fetch(const size_t C, const float *w, size_t ldw, uintptr_t gap) {
  for (size_t i = 0; i < LANES / CHAINS; i++) {
    for (size_t c = 0; c < C; c++) {
      uintptr_t row = (uintptr_t)(w + (4 * i + c) * ldw);
      __builtin_prefetch((const void *)(row + 2 * CACHE_LINE * sizeof *w), 0, 3);
      __builtin_prefetch((const void *)(row + gap), 0, 2);
    }
  }
}

/* sum[R, C] += STEP terms of C times LANES / CHAINS columns; w[C; ldw] is the first of each. Of x
** every third row is given. R and C are constants where this is used. */
INLINE void few_step(const size_t R, const size_t C, const float *w, size_t ldw,
                     const float *const from[THIRDS(FEW_ROWS)], size_t ldx, V sum[FEW_ROWS][4]) {
  V term[4][STEP / CHAINS];
  UNROLL for (size_t c = 0; c < C; c++) v_load_lines(w + c * ldw, 4 * ldw, term[c]);
  UNROLL for (size_t q = 0; q < STEP / CHAINS; q++) {
    UNROLL for (size_t r = 0; r < R; r++) {
      V x = v_set_chains(&from[r / 3][r % 3 * ldx + CHAINS * q]);
      UNROLL for (size_t c = 0; c < C; c++) sum[r][c] = v_fma(x, term[c][q], sum[r][c]);
    }
  }
}

/* sums[C, R, LANES]: C vectors of columns from the first'th on, all of the same four. */
INLINE void few_sums(const size_t R, const size_t C, const few_block *b, size_t first,
                     const float *x, size_t ldx, float *sums) {
  V sum[FEW_ROWS][4];
  const float *from[THIRDS(FEW_ROWS)];
  third_rows(R, x, ldx, from);
  UNROLL for (size_t c = 0; c < C; c++) {
    UNROLL for (size_t r = 0; r < R; r++) sum[r][c] =
        b->fresh ? v_set1(0.0f) : v_load(sums + (c * R + r) * LANES);
  }
  uintptr_t gap = (uintptr_t)b->next - (uintptr_t)b->w;
  const float *w = b->w + few_column(first) * b->ldw;
  for (size_t d = 0; d < b->depth; d += STEP, w += STEP) {
    if (d % CACHE_LINE == 0) few_fetch(C, w, b->ldw, gap);
    few_step(R, C, w, b->ldw, from, ldx, sum);
    UNROLL for (size_t i = 0; i < THIRDS(R); i++) from[i] += STEP;
  }
  UNROLL for (size_t c = 0; c < C; c++) {
    UNROLL for (size_t r = 0; r < R; r++) v_store(sums + (c * R + r) * LANES, sum[r][c]);
  }
}

/* sums[CHAINS, R, LANES]. As many at once as there are registers: each loads x but once. */
INLINE void few_sums_of_rows(const size_t R, const few_block *b, const float *x, size_t ldx,
                             float *sums) {
  const size_t C = 4 * R <= FEW_SUMS ? 4 : 2 * R <= FEW_SUMS ? 2 : 1;
  for (size_t first = 0; first < CHAINS; first += C)
    few_sums(R, C, b, first, x, ldx, sums + first * R * LANES);
}

#define FEW_CASE(R)                                                                                \
  case R: few_sums_of_rows(R, b, x, ldx, sums); break;
static void few_all_sums(size_t rows, const few_block *b, const float *x, size_t ldx, float *sums) {
  switch (rows) {
    FEW_CASE(1)
    FEW_CASE(2)
    FEW_CASE(3)
    FEW_CASE(4)
    FEW_CASE(5)
    FEW_CASE(6)
    FEW_CASE(7)
    FEW_CASE(8)
    FEW_CASE(9)
    FEW_CASE(10)
    FEW_CASE(11)
    FEW_CASE(12)
    FEW_CASE(13)
#if FEW_ROWS > 13
    FEW_CASE(14)
    FEW_CASE(15)
    FEW_CASE(16)
#endif
  }
}

/* The same with what is left of the block, n < LANES terms of x[rows, n; ldx] and
** w[LANES, n; ldw]. Where x has none it is -0: times the +0 of such a weight, it changes no
** sum. */
static void few_rest(size_t rows, const float *w, size_t ldw, size_t n, int fresh, const float *x,
                     size_t ldx, float *sums) {
  float columns[LANES * LANES] = {0}, terms[FEW_ROWS * LANES];
  for (size_t c = 0; c < LANES; c++) memcpy(columns + c * LANES, w + c * ldw, n * sizeof *w);
  for (size_t r = 0; r < rows; r++) {
    for (size_t i = 0; i < LANES; i++) terms[r * LANES + i] = i < n ? x[r * ldx + i] : -0.0f;
  }
  few_block b = {columns, columns, LANES, LANES, fresh};
  few_all_sums(rows, &b, terms, LANES, sums);
}

/* y[rows, LANES; ldy] = the chains of sums[CHAINS, rows, LANES], or y + them when not
** `fresh`; + bias[LANES], which may be NULL. */
static void few_close(const float *sums, size_t rows, int fresh, const float *bias, float *y,
                      size_t ldy) {
  for (size_t r = 0; r < rows; r++, y += ldy) {
    V chain[4];
    UNROLL for (size_t i = 0; i < 4; i++) chain[i] =
        v_load_sums(sums + (i * rows + r) * LANES, 4 * rows * LANES);
    v_turn_fours(chain);
    V out = fresh ? chain[0] : v_add(v_load(y), chain[0]);
    UNROLL for (size_t i = 1; i < 4; i++) out = v_add(out, chain[i]);
    v_store(y, bias != NULL ? v_add(out, v_load(bias)) : out);
  }
}

/* y[rows, cols; ldy] = x[rows, depth; ldx] w[cols, depth; ldw]^T + bias[cols], or NULL. */
typedef struct few_product {
  const float *x, *w, *bias;
  float *y;
  size_t ldx, ldw, ldy, rows, cols, depth;
} few_product;

/* Its columns c to c + LANES, the block of n terms from the d'th on, tile by tile. `next` is
** where w goes on. */
static void few_columns(const few_product *p, size_t c, size_t d, size_t n, const float *next) {
  _Alignas(64) float sums[CHAINS * FEW_ROWS * LANES];
  const float *w = p->w + c * p->ldw + d, *bias = NULL;
  size_t tiles = (p->rows + FEW_ROWS - 1) / FEW_ROWS, whole = n / LANES * LANES;
  few_block b = {w, next, p->ldw, whole, 1};
  if (d + n == p->depth && p->bias != NULL) bias = p->bias + c;
  for (size_t t = 0; t < tiles; t++) {
    size_t r = tile_row(t, tiles, p->rows), height = tile_row(t + 1, tiles, p->rows) - r;
    const float *x = p->x + r * p->ldx + d;
    if (whole > 0) few_all_sums(height, &b, x, p->ldx, sums);
    if (whole < n)
      few_rest(height, w + whole, p->ldw, n - whole, whole == 0, x + whole, p->ldx, sums);
    few_close(sums, height, d == 0, bias, p->y + r * p->ldy + c, p->ldy);
  }
}

/* 0 < rows <= FEW_MOST, depth > 0, cols in whole vectors. w is read in its order. */
static void few_rows(const float *x, size_t ldx, const float *w, size_t ldw, const float *bias,
                     float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  few_product p = {x, w, bias, y, ldx, ldw, ldy, rows, cols, depth};
  for (size_t c = 0; c < cols; c += LANES) {
    const float *row = w + c * ldw, *after = c + LANES < cols ? row + LANES * ldw : w;
    for (size_t d = 0, n; d < depth; d += n) {
      n = block_depth(depth, d);
      few_columns(&p, c, d, n, d + n < depth ? row + d + n : after);
    }
  }
}
