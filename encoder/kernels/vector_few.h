/*
** vector_few.h: linear with few rows; see vector_linear.h.
**
** A sum is a vector: LANES / 4 columns, of each its four chains. Those columns lie 4
** apart, so that four such vectors, turned by fours, are the chains of LANES columns.
*/
enum {
  FEW_MOST = 32,   /* rows up to which this form is the fastest, in every set */
  FEW_ROOM = 20480 /* numbers of x packed at once, 80 KB: of 13 rows four blocks */
};

/* Terms of LANES columns for all rows: a block of depth, in whole vectors, or what is left
** of it. */
typedef struct few_block {
  const float *w;    /* [LANES, depth; ldw] */
  const float *next; /* fetched meanwhile, in the same order */
  size_t ldw, depth;
  int fresh; /* 1: chains begin here */
} few_block;

/* depth in whole vectors. */
INLINE size_t few_rounded(size_t depth) {
  return (depth + LANES - 1) / LANES * LANES;
}

/* packed[depth / 4, rows, 4] = x[rows, depth; ldx], in the order of its use, depth
** rounded up by -0: times the +0 of such a weight, it changes no sum. */
static void pack_tile(const float *x, size_t ldx, size_t rows, size_t depth, float *packed) {
  size_t d = 0;
  for (; d + 4 <= depth; d += 4, packed += 4 * rows) {
    _Pragma("GCC unroll 4") for (size_t r = 0; r < rows; r++)
        memcpy(packed + 4 * r, x + r * ldx + d, 4 * sizeof *x);
  }
  for (; d < few_rounded(depth); d += 4) {
    for (size_t r = 0; r < rows; r++, packed += 4) {
      for (size_t i = 0; i < 4; i++) packed[i] = d + i < depth ? x[r * ldx + d + i] : -0.0f;
    }
  }
}

/* Asks for what is multiplied soon of C times LANES / 4 columns, w[C; ldw] being the first of
** each: into the first-level cache what comes two lines later, into the second what comes
** `gap` bytes later. Neither need exist, hence whole numbers. */
INLINE void few_fetch(const size_t C, const float *w, size_t ldw, uintptr_t gap) {
  for (size_t i = 0; i < LANES; i += 4) {
    for (size_t c = 0; c < C; c++) {
      uintptr_t row = (uintptr_t)(w + (i + c) * ldw);
      __builtin_prefetch((const void *)(row + 2 * LINE * sizeof *w), 0, 3);
      __builtin_prefetch((const void *)(row + gap), 0, 2);
    }
  }
}

/* sum[R, C] += STEP terms of C times LANES / 4 columns; w[C; ldw] is the first of each. R
** and C are constants where this is used. */
INLINE void few_step(const size_t R, const size_t C, const float *w, size_t ldw,
                     const float *packed, V sum[FEW_ROWS][4]) {
  V term[4][STEP / 4];
  UNROLL for (size_t c = 0; c < C; c++) v_load_lines(w + c * ldw, 4 * ldw, term[c]);
  UNROLL for (size_t q = 0; q < STEP / 4; q++) {
    UNROLL for (size_t r = 0; r < R; r++) {
      V x = v_set4(packed + (q * R + r) * 4);
      UNROLL for (size_t c = 0; c < C; c++) sum[r][c] = v_fma(x, term[c][q], sum[r][c]);
    }
  }
}

/* sums[C, R, LANES]: those of C times LANES / 4 columns, from the first'th on. */
INLINE void few_sums(const size_t R, const size_t C, const few_block *b, size_t first,
                     const float *packed, float *sums) {
  V sum[FEW_ROWS][4];
  UNROLL for (size_t c = 0; c < C; c++) {
    UNROLL for (size_t r = 0; r < R; r++) sum[r][c] =
        b->fresh ? v_set1(0.0f) : v_load(sums + (c * R + r) * LANES);
  }
  uintptr_t gap = (uintptr_t)b->next - (uintptr_t)b->w;
  for (size_t d = 0; d < b->depth; d += STEP) {
    const float *w = b->w + first * b->ldw + d;
    if (d % LINE == 0) few_fetch(C, w, b->ldw, gap);
    few_step(R, C, w, b->ldw, packed + d * R, sum);
  }
  UNROLL for (size_t c = 0; c < C; c++) {
    UNROLL for (size_t r = 0; r < R; r++) v_store(sums + (c * R + r) * LANES, sum[r][c]);
  }
}

/* sums[4, R, LANES]. As many at once as there are registers: each loads x but once. */
INLINE void few_sums_of_rows(const size_t R, const few_block *b, const float *packed, float *sums) {
  const size_t C = 4 * R <= FEW_SUMS ? 4 : 2 * R <= FEW_SUMS ? 2 : 1;
  for (size_t first = 0; first < 4; first += C)
    few_sums(R, C, b, first, packed, sums + first * R * LANES);
}

#define FEW_CASE(R)                                                                                \
  case R: few_sums_of_rows(R, b, packed, sums); break;
static void few_all_sums(size_t rows, const few_block *b, const float *packed, float *sums) {
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

/* The same with what is left of the block, n < LANES terms from w[LANES, n; ldw]. */
static void few_rest(size_t rows, const float *w, size_t ldw, size_t n, int fresh,
                     const float *packed, float *sums) {
  float line[LANES * LANES] = {0};
  for (size_t c = 0; c < LANES; c++) memcpy(line + c * LANES, w + c * ldw, n * sizeof *w);
  few_block b = {line, line, LANES, LANES, fresh};
  few_all_sums(rows, &b, packed, sums);
}

/* y[rows, LANES; ldy] = the four chains of sums[4, rows, LANES], or y + them when not
** `fresh`; + bias[LANES], which may be NULL. */
static void few_close(const float *sums, size_t rows, int fresh, const float *bias, float *y,
                      size_t ldy) {
  for (size_t r = 0; r < rows; r++, y += ldy) {
    V chain[4];
    UNROLL for (size_t i = 0; i < 4; i++) chain[i] = v_load(sums + (i * rows + r) * LANES);
    v_turn_fours(chain);
    V out = fresh ? chain[0] : v_add(v_load(y), chain[0]);
    UNROLL for (size_t i = 1; i < 4; i++) out = v_add(out, chain[i]);
    v_store(y, bias != NULL ? v_add(out, v_load(bias)) : out);
  }
}

/* A product with rows that are packed already. */
typedef struct few_product {
  const float *w;    /* [cols, depth; ldw] */
  const float *bias; /* [cols], or NULL */
  float *y;          /* [rows, cols; ldy] */
  size_t ldw, ldy, rows, cols, depth;
} few_product;

/* Its columns c to c + LANES, the block of n terms from the d'th on, of which
** packed[rows, n rounded up] has x, tile by tile. `next` is where w goes on. */
static void few_columns(const few_product *p, size_t c, size_t d, size_t n, const float *next,
                        const float *packed) {
  _Alignas(64) float sums[4 * FEW_ROWS * LANES];
  const float *w = p->w + c * p->ldw + d, *bias = NULL;
  size_t tiles = (p->rows + FEW_ROWS - 1) / FEW_ROWS, whole = n / LANES * LANES;
  few_block b = {w, next, p->ldw, whole, 1};
  if (d + n == p->depth && p->bias != NULL) bias = p->bias + c;
  for (size_t t = 0; t < tiles; t++) {
    size_t r = tile_row(t, tiles, p->rows), height = tile_row(t + 1, tiles, p->rows) - r;
    const float *x = packed + r * few_rounded(n);
    if (whole > 0) few_all_sums(height, &b, x, sums);
    if (whole < n)
      few_rest(height, w + whole, p->ldw, n - whole, whole == 0, x + whole * height, sums);
    few_close(sums, height, d == 0, bias, p->y + r * p->ldy + c, p->ldy);
  }
}

/* Its terms first to last, of which packed[rows, last - first] has x, block by block. w is
** read in its order. */
static void few_terms(const few_product *p, size_t first, size_t last, const float *packed) {
  for (size_t c = 0; c < p->cols; c += LANES) {
    const float *row = p->w + c * p->ldw;
    const float *after = c + LANES < p->cols ? row + LANES * p->ldw + first : p->w + last;
    for (size_t d = first, n; d < last; d += n) {
      n = block_depth(p->depth, d);
      few_columns(p, c, d, n, d + n < last ? row + d + n : after, packed + (d - first) * p->rows);
    }
  }
}

/* packed[rows, depth rounded up] = x[rows, depth; ldx], block by block, tile by tile. */
static void few_pack(const float *x, size_t ldx, size_t rows, size_t depth, float *packed) {
  size_t tiles = (rows + FEW_ROWS - 1) / FEW_ROWS;
  for (size_t d = 0, n; d < depth; d += n) {
    n = block_depth(depth, d);
    for (size_t t = 0; t < tiles; t++) {
      size_t r = tile_row(t, tiles, rows), height = tile_row(t + 1, tiles, rows) - r;
      pack_tile(x + r * ldx + d, ldx, height, n, packed + d * rows + r * few_rounded(n));
    }
  }
}

/* 0 < rows <= FEW_MOST, depth > 0, cols in whole vectors. */
static void few_rows(const float *x, size_t ldx, const float *w, size_t ldw, const float *bias,
                     float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  _Alignas(64) float packed[FEW_ROOM];
  size_t most = FEW_ROOM / (rows * MOST_DEPTH) * MOST_DEPTH;
  few_product p = {w, bias, y, ldw, ldy, rows, cols, depth};
  for (size_t first = 0; first < depth; first += most) {
    size_t n = least(depth - first, most);
    few_pack(x + first, ldx, rows, n, packed);
    few_terms(&p, first, first + n, packed);
  }
}
