/*
** set_avx512.h: the vocabulary of vector_kernels.h and packed_vectors.h in
** AVX-512 F, VL, BW and DQ: 32 registers of 16 floats, masks for partial vectors.
*/
#ifndef BERT_SET_AVX512_H
#define BERT_SET_AVX512_H

#include "kernel_sets.h"

#include <immintrin.h>
#include <string.h>

/* For TARGET_BEGIN. */
#define AVX512 "avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq"

TARGET_BEGIN(AVX512)

enum { LANES = 16, CHAINS = 8, STEP = 8 };

typedef __m512 V;
typedef __m512d D;

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

INLINE V v_ldexp(V x, V n) {
  return _mm512_scalef_ps(x, n);
}

INLINE V v_if_less(V a, V b, V y, V z) {
  return _mm512_mask_mov_ps(z, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y);
}

/* ---- over the lanes ----------------------------------------------------- */

/* To 8 lanes: those 8 apart are added. */
INLINE __m256 fold_to_8(V v) {
  return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
}

INLINE __m128 fold_sum(V v) {
  __m256 half = fold_to_8(v);
  return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

INLINE float v_sum(V v) {
  __m128 x = fold_sum(v);
  x = _mm_add_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}

INLINE float v_max_lane(V v) {
  __m256 half = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  __m128 x = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  x = _mm_max_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}

INLINE V v_set_chains(const float *p) {
  return _mm512_broadcast_f32x8(_mm256_loadu_ps(p));
}

INLINE void v_turn_fours(V v[4]) {
  V a = _mm512_unpacklo_ps(v[0], v[1]), b = _mm512_unpackhi_ps(v[0], v[1]);
  V c = _mm512_unpacklo_ps(v[2], v[3]), d = _mm512_unpackhi_ps(v[2], v[3]);
  v[0] = _mm512_shuffle_ps(a, c, 0x44);
  v[1] = _mm512_shuffle_ps(a, c, 0xee);
  v[2] = _mm512_shuffle_ps(b, d, 0x44);
  v[3] = _mm512_shuffle_ps(b, d, 0xee);
}

/* Put in place while they are loaded. */
INLINE V v_load_fours(const float *p, size_t stride) {
  V v = _mm512_castps128_ps512(_mm_loadu_ps(p));
  v = _mm512_mask_broadcast_f32x4(v, 0x00f0, _mm_loadu_ps(p + stride));
  v = _mm512_mask_broadcast_f32x4(v, 0x0f00, _mm_loadu_ps(p + 2 * stride));
  return _mm512_mask_broadcast_f32x4(v, 0xf000, _mm_loadu_ps(p + 3 * stride));
}

INLINE V load_two_eights(const float *p, const float *q) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(p)), _mm256_loadu_ps(q), 1);
}

/* One operation, beside a load; four places would need two a vector. */
INLINE void v_load_lines(const float *p, size_t stride, V out[STEP / CHAINS]) {
  out[0] = load_two_eights(p, p + stride);
}

INLINE V v_load_sums(const float *p, size_t more) {
  V a = v_load(p), b = v_load(p + more);
  return v_add(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
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

/* ---- codes -------------------------------------------------------------- */

enum { CODES = 32 };
typedef __m512i I16;
typedef __m512i I32;

INLINE I16 c_load_query(const int16_t *p) {
  return _mm512_loadu_si512(p);
}

INLINE I16 c_load(const int8_t *p) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

INLINE I32 s_zero(void) {
  return _mm512_setzero_si512();
}

INLINE I32 s_add(I32 s, I16 a, I16 b) {
  return _mm512_add_epi32(s, _mm512_madd_epi16(a, b));
}

INLINE __m256i s_fold(I32 s) {
  return _mm256_add_epi32(_mm512_castsi512_si256(s), _mm512_extracti64x4_epi64(s, 1));
}

INLINE void s_sum4(const I32 s[4], int32_t *out) {
  __m256i pairs = _mm256_hadd_epi32(_mm256_hadd_epi32(s_fold(s[0]), s_fold(s[1])),
                                    _mm256_hadd_epi32(s_fold(s[2]), s_fold(s[3])));
  __m128i sums = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  _mm_storeu_si128((__m128i *)(void *)out, sums);
}

/* ---- packed products ---------------------------------------------------- */

enum { ROW_OFFSET = 0 };
typedef __v16si I; /* as __m512i, gcc 12 would copy sums at each step */
typedef __m512i W;
typedef __v32hi H; /* as __m512i, gcc 12 would keep copies of them */

/* As packed.c has it. */
INLINE W v_to_bf16(V x) {
  __m512i bits = _mm512_castps_si512(x);
  __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  __m512i nan = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  return _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan);
}

INLINE void w_store_upper(uint16_t *p, W w) {
  _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(w, 16)));
}

INLINE void v_store_codes(uint8_t *p, V x, int32_t zero) {
  __m512i codes = _mm512_cvt_roundps_epi32(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  codes = _mm512_add_epi32(codes, _mm512_set1_epi32(zero));
  _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(codes));
}

INLINE V v_from_sums(I sums, const int32_t *columns, int32_t zero) {
  __m512i excess = _mm512_mullo_epi32(_mm512_loadu_si512(columns), _mm512_set1_epi32(zero));
  return _mm512_cvtepi32_ps(_mm512_sub_epi32((__m512i)sums, excess));
}

INLINE W w_load(const char *p) {
  return _mm512_loadu_si512(p);
}

INLINE W w_set1(uint32_t word) {
  return _mm512_set1_epi32((int)word);
}

INLINE V v_lower(W w) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(w, 16));
}

INLINE V v_upper(W w) {
  return _mm512_castsi512_ps(_mm512_and_si512(w, _mm512_set1_epi32((int)0xffff0000u)));
}

INLINE H h_even(W w) {
  return (H)_mm512_srai_epi16(_mm512_slli_epi16(w, 8), 8);
}

INLINE H h_odd(W w) {
  return (H)_mm512_srai_epi16(w, 8);
}

INLINE H h_row_even(W w) {
  return (H)_mm512_and_si512(w, _mm512_set1_epi16(0xff));
}

INLINE H h_row_odd(W w) {
  return (H)_mm512_srli_epi16(w, 8);
}

INLINE I i_add(I sum, H x_even, H w_even, H x_odd, H w_odd) {
  I even = (I)_mm512_madd_epi16((__m512i)x_even, (__m512i)w_even);
  I odd = (I)_mm512_madd_epi16((__m512i)x_odd, (__m512i)w_odd);
  return sum + even + odd;
}

TARGET_END

#endif
