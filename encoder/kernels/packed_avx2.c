/*
** packed_avx2.c: the packed products in AVX2 and FMA: terms are widened first, as
** in packed_avx512.c.
*/
#include "kernel_sets.h"

#ifdef BERT_KERNELS_X86

#include <immintrin.h>
#include <string.h>

/* After the headers, as in kernels_avx2.c. */
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

#include "set_avx2.h"

typedef __v8si I;

/* Eight numbers of at most 16 bits in lanes of 32: each half packs its own. */
INLINE __m128i to_16_bits(__m256i x) {
  __m256i halves = _mm256_packus_epi32(x, x);
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(halves, 0x08));
}

/* As packed.c has it. */
INLINE void v_store_bf16(uint16_t *p, V x) {
  __m256i bits = _mm256_castps_si256(x);
  __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  __m256i nan = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  __m256i all = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, nan, is_nan), 16);
  _mm_storeu_si128((__m128i *)(void *)p, to_16_bits(all));
}

INLINE void v_store_codes(uint8_t *p, V x, int32_t zero) {
  V whole = _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256i codes = _mm256_add_epi32(_mm256_cvtps_epi32(whole), _mm256_set1_epi32(zero));
  __m128i words = to_16_bits(codes);
  _mm_storel_epi64((__m128i *)(void *)p, _mm_packus_epi16(words, words));
}

INLINE V v_from_sums(I sums, const int32_t *columns, int32_t zero) {
  __m256i codes = _mm256_loadu_si256((const __m256i *)(const void *)columns);
  __m256i excess = _mm256_mullo_epi32(codes, _mm256_set1_epi32(zero));
  return _mm256_cvtepi32_ps(_mm256_sub_epi32((__m256i)sums, excess));
}

#include "packed_vectors.h"

/* The vectors of one panel, or of two for one row. */
#define TILES(T) T(1, 2) T(2, 2) T(3, 2) T(4, 2) T(1, 4)
static const packed_shape shapes[] = {{1, 1, 4}, {SIZE_MAX, 4, 2}};

/* ---- bf16: the terms of a group with even and odd numbers, as floats -------- */

typedef V bf16_sum;
typedef struct bf16_terms {
  V even, odd;
} bf16_terms;

INLINE bf16_sum bf16_zero(void) {
  return _mm256_setzero_ps();
}

INLINE bf16_terms bf16_widen(__m256i pairs) {
  __m256i upper = _mm256_set1_epi32((int)0xffff0000u);
  return (bf16_terms){_mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)),
                      _mm256_castsi256_ps(_mm256_and_si256(pairs, upper))};
}

INLINE bf16_terms bf16_columns(const char *p) {
  return bf16_widen(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

INLINE bf16_terms bf16_row(const char *p) {
  int pair;
  memcpy(&pair, p, sizeof pair);
  return bf16_widen(_mm256_set1_epi32(pair));
}

INLINE bf16_sum bf16_add(bf16_sum sum, bf16_terms x, bf16_terms w) {
  return _mm256_fmadd_ps(x.odd, w.odd, _mm256_fmadd_ps(x.even, w.even, sum));
}

#define bf16_TILES TILES
#define bf16_shapes shapes

#define PRODUCT bf16
#include "packed_tiles.h"
#undef PRODUCT

/* ---- int8: the terms with even and odd numbers, as int16 -------------------
**
** VPMADDUBSW would take them as they are, but its sums of two products stop at
** 32767. */

typedef I int8_sum;
typedef struct int8_terms {
  __v16hi even, odd;
} int8_terms;

INLINE int8_sum int8_zero(void) {
  return (I)_mm256_setzero_si256();
}

INLINE int8_terms int8_columns(const char *p) {
  __m256i codes = _mm256_loadu_si256((const __m256i *)(const void *)p);
  return (int8_terms){(__v16hi)_mm256_srai_epi16(_mm256_slli_epi16(codes, 8), 8),
                      (__v16hi)_mm256_srai_epi16(codes, 8)};
}

INLINE int8_terms int8_row(const char *p) {
  int four;
  memcpy(&four, p, sizeof four);
  __m256i codes = _mm256_set1_epi32(four);
  return (int8_terms){(__v16hi)_mm256_and_si256(codes, _mm256_set1_epi16(0xff)),
                      (__v16hi)_mm256_srli_epi16(codes, 8)};
}

INLINE int8_sum int8_add(int8_sum sum, int8_terms x, int8_terms w) {
  I even = (I)_mm256_madd_epi16((__m256i)x.even, (__m256i)w.even);
  I odd = (I)_mm256_madd_epi16((__m256i)x.odd, (__m256i)w.odd);
  return sum + even + odd;
}

#define int8_TILES TILES
#define int8_shapes shapes

#define PRODUCT int8
#include "packed_tiles.h"
#undef PRODUCT

/* ---- the operations --------------------------------------------------------- */

void pack_rows_avx2(packed_precision p, const float *x, size_t ldx, size_t rows, size_t depth,
                    void *block, packed_rows *out) {
  pack_rows(p, x, ldx, rows, depth, block, out);
}

void packed_linear_avx2(const packed_rows *x, const packed_weights *w, size_t first, size_t last,
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
typedef int no_packed_avx2_here; /* ISO C wants a declaration in every file */
#endif
