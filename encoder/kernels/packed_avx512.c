/*
** packed_avx512.c: the packed products in AVX-512 F, VL, BW and DQ, without
** instructions for either precision: terms are widened first.
*/
#include "kernel_sets.h"

#ifdef BERT_KERNELS_X86

#include <immintrin.h>

/* After the headers, as in kernels_avx512.c. */
#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq"))),                   \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq")
#endif

#include "packed_512.h"

/* ---- bf16: the terms of a group with even and odd numbers, as floats -------- */

typedef V bf16_sum;
typedef struct bf16_terms {
  V even, odd;
} bf16_terms;

INLINE bf16_sum bf16_zero(void) {
  return _mm512_setzero_ps();
}

INLINE bf16_terms bf16_widen(__m512i pairs) {
  __m512i upper = _mm512_set1_epi32((int)0xffff0000u);
  return (bf16_terms){_mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)),
                      _mm512_castsi512_ps(_mm512_and_si512(pairs, upper))};
}

INLINE bf16_terms bf16_columns(const char *p) {
  return bf16_widen(_mm512_loadu_si512(p));
}

INLINE bf16_terms bf16_row(const char *p) {
  int pair;
  memcpy(&pair, p, sizeof pair);
  return bf16_widen(_mm512_set1_epi32(pair));
}

INLINE bf16_sum bf16_add(bf16_sum sum, bf16_terms x, bf16_terms w) {
  return _mm512_fmadd_ps(x.odd, w.odd, _mm512_fmadd_ps(x.even, w.even, sum));
}

/* Twice as many registers for the terms. */
#define TILES_WIDENED(T) TILES_TO_12(T, 1) TILES_TO_12(T, 2) TILES_TO_4(T, 3) TILES_TO_4(T, 4)
static const packed_shape shapes_widened[] = {{4, 4, 4}, {SIZE_MAX, 12, 2}};
#define bf16_TILES TILES_WIDENED
#define bf16_shapes shapes_widened

#define PRODUCT bf16
#include "packed_tiles.h"
#undef PRODUCT

/* ---- int8: the terms with even and odd numbers, as int16 ------------------- */

typedef I int8_sum;
typedef struct int8_terms {
  __v32hi even, odd; /* as __m512i, gcc 12 would keep copies of them */
} int8_terms;

INLINE int8_sum int8_zero(void) {
  return (I)_mm512_setzero_si512();
}

INLINE int8_terms int8_columns(const char *p) {
  __m512i codes = _mm512_loadu_si512(p);
  return (int8_terms){(__v32hi)_mm512_srai_epi16(_mm512_slli_epi16(codes, 8), 8),
                      (__v32hi)_mm512_srai_epi16(codes, 8)};
}

INLINE int8_terms int8_row(const char *p) {
  int four;
  memcpy(&four, p, sizeof four);
  __m512i codes = _mm512_set1_epi32(four);
  return (int8_terms){(__v32hi)_mm512_and_si512(codes, _mm512_set1_epi16(0xff)),
                      (__v32hi)_mm512_srli_epi16(codes, 8)};
}

INLINE int8_sum int8_add(int8_sum sum, int8_terms x, int8_terms w) {
  I even = (I)_mm512_madd_epi16((__m512i)x.even, (__m512i)w.even);
  I odd = (I)_mm512_madd_epi16((__m512i)x.odd, (__m512i)w.odd);
  return sum + even + odd;
}

#define int8_TILES TILES_WIDENED
#define int8_shapes shapes_widened

#define PRODUCT int8
#include "packed_tiles.h"
#undef PRODUCT

/* ---- the operations --------------------------------------------------------- */

void pack_rows_avx512(packed_precision p, const float *x, size_t ldx, size_t rows, size_t depth,
                      void *block, packed_rows *out) {
  pack_rows(p, x, ldx, rows, depth, block, out);
}

void packed_linear_avx512(const packed_rows *x, const packed_weights *w, size_t first, size_t last,
                          const float *bias, float *y, size_t ldy) {
  packed_job job = {x, w, last, bias, y, ldy};
  if (w->precision == PRECISION_BF16)
    bf16_linear(&job, first);
  else
    int8_linear(&job, first);
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else
typedef int no_packed_avx512_here; /* ISO C wants a declaration in every file */
#endif
