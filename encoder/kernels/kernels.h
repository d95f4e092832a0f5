/*
** kernels.h: the arithmetic of the encoder. The map of this folder:
**
**   kernels_scalar.c  the reference: plain C, one loop per formula
**   kernels_avx2.c    AVX2 and FMA
**   kernels_avx512.c  AVX-512 F, VL, BW, DQ
**   kernels_sse2.c    SSE2, which every x86-64 processor has
**   kernels_neon.c    ARM NEON, where the target is ARM
**   set_*.h           the vocabulary of vectors in the instructions of each
**   vector_*.h        the operations of these four, written once for all
**   packed.c          weights in less precision: their layout and rounding
**   packed_*.c        products with them
**   dispatch.c        which set this processor runs; BERTSQL_KERNELS
**   cpu.c             what the processor has (cpuid, xgetbv)
**   gemm.c            the products of the scalar set through OpenBLAS; the only
**                     file that includes cblas.h
**
** Each operation has one contract, given here, and one implementation per set.
** Rules for every implementation:
**   - pointers need no alignment, sizes may be any, 0 included; nothing is
**     read or written outside the shapes given;
**   - a number of the result depends only on the numbers its formula names:
**     never on how many rows or columns were asked for, where they lie in
**     memory, or on the thread. Sums run over their terms in an order fixed
**     by their length alone. This is what makes the vector of a text the same
**     to the bit alone, in any batch and on any number of threads;
**   - NaN and infinity pass through as IEEE 754 has them; none is invented
**     from finite inputs that have a finite result.
**
** x[rows, depth; ldx] means row r starts at x + r * ldx.
*/
#ifndef BERT_KERNELS_H
#define BERT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* Activations, by their names in config.json. */
typedef enum activation {
  ACTIVATION_GELU,      /* x Phi(x) = x/2 (1 + erf(x / sqrt 2)) */
  ACTIVATION_GELU_TANH, /* gelu_new, gelu_pytorch_tanh:
                           x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
  ACTIVATION_RELU,      /* max(x, 0) */
  ACTIVATION_SILU,      /* x / (1 + exp -x); silu, swish */
  ACTIVATION_TANH,
  ACTIVATION_IDENTITY
} activation;
enum { ACTIVATION_COUNT = ACTIVATION_IDENTITY + 1 };

/* ---- products in less precision (packed.c, packed_*.c) -------------------
**
** Weights and rows are rounded once and laid out for the processor's own
** instructions, then multiplied any number of times. The rounding is the same in
** every set, and so is the layout of weights, which any set can multiply.
**
** bf16: numbers are rounded to the nearest bfloat16, ties to even; products are
** exact and are summed in float32. Sets differ in the last bits, and some take
** numbers and sums below 2^-126 as 0.
** int8: a column of w is scale * code, code in [-127, 127] the nearest whole
** number, scale = max |w| / 127. A row of x is scale * (code - zero), code in
** [0, 255], its range from min(x, 0) to max(x, 0) spread over 254 steps: rows are
** lopsided, after a GELU above all, and would else leave half of the codes unused.
** Sums are exact, and
**   y = sum * (scale of the row * scale of the column) + bias
** in float32, in that order: the same bits in every set. A row or column whose
** numbers are all below 2^-100 counts as zeros; one with a NaN or an infinity
** gives NaN. depth is at most PACKED_MOST_DEPTH, beyond which sums overflow. */
typedef enum packed_precision {
  PRECISION_FLOAT32,
  PRECISION_BF16,
  PRECISION_INT8
} packed_precision;
enum {
  PACKED_GROUP = 64,        /* bytes: 2 (bf16) or 4 (int8) terms of 16 columns */
  PACKED_COLUMNS = 16,      /* of a panel */
  PACKED_ROW_STEP = 64,     /* bytes of a row: 16 groups, the depth of one tile of AMX */
  PACKED_MOST_DEPTH = 65536 /* of int8 */
};

/* Weights [cols, depth] in panels of 16 columns, one after the other; a panel is
** [groups][16][terms], filled up with zeros to whole panels and to a multiple of
** 16 groups. Points into the block that packed_make was given. */
typedef struct packed_weights {
  packed_precision precision;
  size_t cols, depth;
  size_t panel;        /* bytes from one panel to the next */
  const void *panels;  /* 64-aligned */
  const float *scales; /* int8: [cols], then zeros to whole panels; else NULL */
  const int32_t *sums; /* int8: of the codes of a column, as scales; else NULL */
} packed_weights;

/* Rows [rows, depth], each padded to a multiple of PACKED_ROW_STEP bytes, in the form in
** which the set that packed them multiplies. Points into the block that pack_rows was
** given. */
typedef struct packed_rows {
  packed_precision precision;
  int wide; /* 1: rows of bf16 are floats with the values of bfloat16 */
  size_t rows, depth;
  size_t stride;        /* bytes from one row to the next */
  const void *codes;    /* uint16 of bfloat16, or floats; or uint8 of codes */
  const float *scales;  /* int8: [rows]; else NULL */
  const int32_t *zeros; /* int8: [rows], the code of 0; else NULL */
} packed_rows;

/* Bytes of the block that weights [cols, depth] or rows [rows, depth] need; 0 for
** float32, UINT64_MAX for sizes that no memory holds. */
uint64_t packed_bytes(packed_precision p, size_t cols, size_t depth);
uint64_t packed_rows_bytes(packed_precision p, size_t rows, size_t depth);

/* Packs w[cols, depth; ldw] into block[packed_bytes], aligned to 64 bytes. */
void packed_make(packed_precision p, const float *w, size_t ldw, size_t cols, size_t depth,
                 void *block, packed_weights *out);

/* y[rows, cols; ldy] = x[rows, depth; ldx] w[cols, depth; ldw]^T + bias[cols]
** bias may be NULL. This is torch's Linear: w as it lies in the checkpoint.
** y overlaps none of the others. */
typedef void linear_function(const float *x, size_t ldx, const float *w, size_t ldw,
                             const float *bias, float *y, size_t ldy, size_t rows, size_t cols,
                             size_t depth);

/* Terms after which a sum may be cut; see kernels.linear_add. */
enum { LINEAR_BLOCK = 384 };

typedef struct kernels {
  const char *name;
  int (*supported)(void); /* 1 on a processor that can run this set */

  /* NULL, or the set whose functions this one has but for the packed products:
  ** what tests those of float32 need not run again. */
  const char *float32_of;

  linear_function *linear;

  /* The same, added to y. A product may be made in parts of depth, from its first terms to
  ** its last, each of LINEAR_BLOCK but for the last: the first part by linear, the bias with
  ** the last. It is the whole one then, to the bit. NULL in a set that does not promise it. */
  linear_function *linear_add;

  /* Rounds x[rows, depth; ldx] into block[packed_rows_bytes], aligned to 64 bytes. */
  void (*pack_rows)(packed_precision p, const float *x, size_t ldx, size_t rows, size_t depth,
                    void *block, packed_rows *out);

  /* Columns first to last of y[rows, cols; ldy] = x w^T + bias[cols], where x and w
  ** have one precision and one depth. y and bias (or NULL) are those of column 0;
  ** first is a multiple of 16. Packed weights that follow w in memory may be
  ** fetched into the cache. */
  void (*packed_linear)(const packed_rows *x, const packed_weights *w, size_t first, size_t last,
                        const float *bias, float *y, size_t ldy);

  /* x[count] = activation(x). */
  void (*activate)(activation kind, float *x, size_t count);

  /* y[rows, cols; ldy] = LayerNorm(x[rows, cols; ldx] + residual[rows, cols; ldr])
  **                    = (z - mean z) / sqrt(var z + epsilon) * gain + bias
  ** residual may be NULL for none; bias may be NULL; var is the mean squared
  ** deviation (Ba, Kiros, Hinton 2016). y may be x or residual itself. */
  void (*layer_norm)(const float *x, size_t ldx, const float *residual, size_t ldr,
                     const float *gain, const float *bias, float epsilon, float *y, size_t ldy,
                     size_t rows, size_t cols);

  /* scores[queries, keys; lds] = scale * q[queries, width; ldq] k[keys, width; ldk]^T */
  void (*attention_scores)(const float *q, size_t ldq, const float *k, size_t ldk, float scale,
                           float *scores, size_t lds, size_t queries, size_t keys, size_t width);

  /* Each row of x[rows, cols; ldx] becomes exp(x - max x) / sum exp(x - max x). */
  void (*softmax)(float *x, size_t ldx, size_t rows, size_t cols);

  /* y[queries, width; ldy] = weights[queries, keys; ldw] v[keys, width; ldv] */
  void (*attention_context)(const float *weights, size_t ldw, const float *v, size_t ldv, float *y,
                            size_t ldy, size_t queries, size_t keys, size_t width);

  /* y[count] += a * x[count]; sums rows in pooling. */
  void (*add_scaled)(float a, const float *x, float *y, size_t count);

  /* y[count] = max(x[count], y[count]); NaN wins. */
  void (*maximum)(const float *x, float *y, size_t count);

  /* y[count] *= x[count]; the gate of a gated feed-forward layer. */
  void (*multiply)(const float *x, float *y, size_t count);

  /* Turns each pair (x[i], x[i + half]) of x[2 * half] by an angle of which
  ** cosines[half] and sines[half] are given: rotary positions (Su et al. 2021,
  ** equation 34, with the halves of a vector as the pairs, as GPT-NeoX has it). */
  void (*rotate)(const float *cosines, const float *sines, float *x, size_t half);

  /* sum of a[i] b[i], and of (a[i] - b[i])^2, in double throughout: a product of
  ** two floats is exact there, so the error is below (count + 3) 2^-53 times the
  ** sum of the absolute terms. The bounds of search/scan.c stand on that. */
  double (*dot)(const float *a, const float *b, size_t count);
  double (*squared_distance)(const float *a, const float *b, size_t count);

  /* sums[r] = sum of query[j] codes[r, j] over j, codes[rows, depth], exact. The
  ** caller's numbers are such that 128 sum |query[j]| fits in 32 bits. */
  void (*dot_codes)(const int16_t *query, const int8_t *codes, int32_t *sums, size_t rows,
                    size_t depth);

  /* Widening of stored weights: IEEE half and bfloat16 to float32, exact. */
  void (*from_half)(const uint16_t *x, float *y, size_t count);
  void (*from_bfloat16)(const uint16_t *x, float *y, size_t count);
} kernels;

/* The set in use; chosen at the first call. */
const kernels *kernels_current(void);

/* Chooses by name, capitals or not, NULL for the best; 0 when there is no such set or this
** processor cannot run it. */
int kernels_choose(const char *name);

/* All sets compiled in, best first; NULL-terminated. Tests and benchmarks walk
** this list, so a set that is in it is a set that is tested. */
const kernels *const *kernels_all(void);

/* The set named, if compiled in and supported here; else NULL. */
const kernels *kernels_find(const char *name);

/* As kernels.linear, by the set's own or, for the scalar set, by OpenBLAS where that can
** be held to the rules above. What depends on a model goes this way, always. */
void gemm_linear(const kernels *set, const float *x, size_t ldx, const float *w, size_t ldw,
                 const float *bias, float *y, size_t ldy, size_t rows, size_t cols, size_t depth);

/* 1 where set->linear_add adds to gemm_linear's products. */
int gemm_adds(const kernels *set);

/* Which of the two gemm_linear takes, for tests and benchmarks: 1 OpenBLAS
** whatever the set, 0 always the set's own, -1 (the default) by the set. */
void gemm_use_blas(int use);

/* What OpenBLAS says of itself; "none" when built without it. */
const char *gemm_describe(void);

#endif
