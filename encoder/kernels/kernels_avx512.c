/*
** kernels_avx512.c: the vocabulary of vector_kernels.h in AVX-512 F, VL, BW and
** DQ: 32 registers of 16 floats, masks for partial vectors.
*/
#include "kernel_sets.h"

#ifdef BERT_KERNELS_X86

#include <immintrin.h>

/* After the headers, so that only the functions of this file may use these
** instructions; no compiler flag is needed. */
#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq"))),                   \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq")
#endif

#define INLINE static inline __attribute__((always_inline))

enum { LANES = 16 };
#define TILE_ROWS 6

typedef __m512 V;
typedef __m512d D;
typedef __m128 F4;

/* ---- memory ------------------------------------------------------------- */

INLINE V v_load(const float *p) {
  return _mm512_loadu_ps(p);
}

INLINE void v_store(float *p, V v) {
  _mm512_storeu_ps(p, v);
}

INLINE __mmask16 first_lanes(size_t n) {
  return (__mmask16)((1u << n) - 1);
}

INLINE V v_load_part(const float *p, size_t n) {
  return _mm512_maskz_loadu_ps(first_lanes(n), p);
}

INLINE V v_load_part_or(const float *p, size_t n, V fill) {
  return _mm512_mask_loadu_ps(fill, first_lanes(n), p);
}

INLINE void v_store_part(float *p, V v, size_t n) {
  _mm512_mask_storeu_ps(p, first_lanes(n), v);
}

INLINE V v_from_half(const uint16_t *p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

INLINE V v_from_bfloat16(const uint16_t *p) {
  __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)p);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

/* ---- arithmetic --------------------------------------------------------- */

INLINE V v_set1(float x) {
  return _mm512_set1_ps(x);
}

INLINE V v_add(V a, V b) {
  return _mm512_add_ps(a, b);
}

INLINE V v_sub(V a, V b) {
  return _mm512_sub_ps(a, b);
}

INLINE V v_mul(V a, V b) {
  return _mm512_mul_ps(a, b);
}

INLINE V v_div(V a, V b) {
  return _mm512_div_ps(a, b);
}

INLINE V v_fma(V a, V b, V c) {
  return _mm512_fmadd_ps(a, b, c);
}

INLINE V v_fnma(V a, V b, V c) {
  return _mm512_fnmadd_ps(a, b, c);
}

INLINE V v_min(V a, V b) {
  return _mm512_min_ps(a, b);
}

INLINE V v_max(V a, V b) {
  return _mm512_max_ps(a, b);
}

/* The instruction gives b for a NaN in either; a NaN in a is put back. */
INLINE V v_max_or_nan(V a, V b) {
  __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
  return _mm512_mask_mov_ps(_mm512_max_ps(a, b), nan, a);
}

INLINE V v_abs(V x) {
  return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), x);
}

INLINE V v_copysign(V size, V sign) {
  return _mm512_or_ps(size, _mm512_and_ps(_mm512_set1_ps(-0.0f), sign));
}

INLINE V v_round(V x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

INLINE V v_ldexp(V x, V n) {
  return _mm512_scalef_ps(x, n);
}

INLINE V v_if_less(V a, V b, V y, V z) {
  return _mm512_mask_mov_ps(z, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y);
}

/* ---- over the lanes ----------------------------------------------------- */

INLINE __m128 fold_sum(V v) {
  __m256 half = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

INLINE float v_sum(V v) {
  __m128 x = fold_sum(v);
  x = _mm_add_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}

/* Lanes 8 apart, then 4, 2, 1: for each of the four the same order. */
INLINE F4 v_sum4(V a, V b, V c, V d) {
  __m128 x = fold_sum(a), y = fold_sum(b), z = fold_sum(c), w = fold_sum(d);
  __m128 xy = _mm_add_ps(_mm_unpacklo_ps(x, y), _mm_unpackhi_ps(x, y));
  __m128 zw = _mm_add_ps(_mm_unpacklo_ps(z, w), _mm_unpackhi_ps(z, w));
  return _mm_add_ps(_mm_movelh_ps(xy, zw), _mm_movehl_ps(zw, xy));
}

INLINE float v_max_lane(V v) {
  __m256 half = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  __m128 x = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  x = _mm_max_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}

INLINE F4 f4_load(const float *p) {
  return _mm_loadu_ps(p);
}

INLINE void f4_store(float *p, F4 x) {
  _mm_storeu_ps(p, x);
}

INLINE F4 f4_add(F4 a, F4 b) {
  return _mm_add_ps(a, b);
}

/* Four rounds, each swapping blocks of a size between pairs of rows: single
** lanes and pairs within quarters, then the quarters. */
INLINE void v_transpose(V row[LANES]) {
  V t[LANES];
  for (int i = 0; i < 16; i += 4) {
    V a = _mm512_unpacklo_ps(row[i], row[i + 1]), b = _mm512_unpackhi_ps(row[i], row[i + 1]);
    V c = _mm512_unpacklo_ps(row[i + 2], row[i + 3]);
    V d = _mm512_unpackhi_ps(row[i + 2], row[i + 3]);
    t[i] = _mm512_shuffle_ps(a, c, 0x44);
    t[i + 1] = _mm512_shuffle_ps(a, c, 0xee);
    t[i + 2] = _mm512_shuffle_ps(b, d, 0x44);
    t[i + 3] = _mm512_shuffle_ps(b, d, 0xee);
  }
  for (int i = 0; i < 4; i++) {
    V a = _mm512_shuffle_f32x4(t[i], t[i + 4], 0x88),
      b = _mm512_shuffle_f32x4(t[i], t[i + 4], 0xdd);
    V c = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0x88);
    V d = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0xdd);
    row[i] = _mm512_shuffle_f32x4(a, c, 0x88);
    row[i + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
    row[i + 8] = _mm512_shuffle_f32x4(a, c, 0xdd);
    row[i + 12] = _mm512_shuffle_f32x4(b, d, 0xdd);
  }
}

/* ---- doubles ------------------------------------------------------------ */

INLINE D d_zero(void) {
  return _mm512_setzero_pd();
}

INLINE D d_low(V v) {
  return _mm512_cvtps_pd(_mm512_castps512_ps256(v));
}

INLINE D d_high(V v) {
  return _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
}

INLINE D d_add(D a, D b) {
  return _mm512_add_pd(a, b);
}

INLINE D d_sub(D a, D b) {
  return _mm512_sub_pd(a, b);
}

INLINE D d_fma(D a, D b, D c) {
  return _mm512_fmadd_pd(a, b, c);
}

INLINE double d_sum(D v) {
  __m256d half = _mm256_add_pd(_mm512_castpd512_pd256(v), _mm512_extractf64x4_pd(v, 1));
  __m128d x = _mm_add_pd(_mm256_castpd256_pd128(half), _mm256_extractf128_pd(half, 1));
  return _mm_cvtsd_f64(_mm_add_sd(x, _mm_unpackhi_pd(x, x)));
}

#include "vector_kernels.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const kernels kernels_avx512 = VECTOR_KERNELS("avx512", cpu_has_avx512);

#else
typedef int no_avx512_here; /* ISO C wants a declaration in every file */
#endif
