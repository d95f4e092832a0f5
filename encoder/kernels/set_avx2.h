/*
** set_avx2.h: the vocabulary of vector_kernels.h and packed_vectors.h in AVX2, FMA
** and F16C: 16 registers of 8 floats.
*/
#ifndef BERT_SET_AVX2_H
#define BERT_SET_AVX2_H

#include "kernel_sets.h"

#include <immintrin.h>
#include <string.h>

/* For TARGET_BEGIN. */
#define AVX2 "avx2,fma,f16c"

TARGET_BEGIN(AVX2)

enum { LANES = 8, CHAINS = 4, STEP = 8 };

typedef __m256 V;
typedef __m256d D;

/* ---- memory ------------------------------------------------------------- */

INLINE V v_load(const float *p) {
  return _mm256_loadu_ps(p);
}

INLINE void v_store(float *p, V v) {
  _mm256_storeu_ps(p, v);
}

/* All bits of the first n lanes: a window on eight ones before eight zeros. */
static const int32_t lane_window[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

INLINE __m256i first_lanes(size_t n) {
  return _mm256_loadu_si256((const __m256i *)(const void *)(lane_window + (8 - n)));
}

INLINE V v_load_part(const float *p, size_t n) {
  return _mm256_maskload_ps(p, first_lanes(n));
}

INLINE V v_load_part_or(const float *p, size_t n, V fill) {
  __m256i mask = first_lanes(n);
  return _mm256_blendv_ps(fill, _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask));
}

INLINE void v_store_part(float *p, V v, size_t n) {
  _mm256_maskstore_ps(p, first_lanes(n), v);
}

INLINE V v_from_half(const uint16_t *p) {
  return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

INLINE V v_from_bfloat16(const uint16_t *p) {
  __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}

/* ---- arithmetic --------------------------------------------------------- */

INLINE V v_set1(float x) {
  return _mm256_set1_ps(x);
}

INLINE V v_add(V a, V b) {
  return _mm256_add_ps(a, b);
}

INLINE V v_sub(V a, V b) {
  return _mm256_sub_ps(a, b);
}

INLINE V v_mul(V a, V b) {
  return _mm256_mul_ps(a, b);
}

INLINE V v_div(V a, V b) {
  return _mm256_div_ps(a, b);
}

INLINE V v_fma(V a, V b, V c) {
  return _mm256_fmadd_ps(a, b, c);
}

INLINE V v_fnma(V a, V b, V c) {
  return _mm256_fnmadd_ps(a, b, c);
}

INLINE V v_min(V a, V b) {
  return _mm256_min_ps(a, b);
}

INLINE V v_max(V a, V b) {
  return _mm256_max_ps(a, b);
}

/* The instruction gives b for a NaN in either; a NaN in a is put back. */
INLINE V v_max_or_nan(V a, V b) {
  V nan = _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
  return _mm256_blendv_ps(_mm256_max_ps(a, b), a, nan);
}

INLINE V v_abs(V x) {
  return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

INLINE V v_copysign(V size, V sign) {
  return _mm256_or_ps(size, _mm256_and_ps(_mm256_set1_ps(-0.0f), sign));
}

/* 2^n, n whole, in the range of normal numbers. */
INLINE V two_to(__m256i n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

/* In two steps, for 2^n alone may be out of range; the first is exact. */
INLINE V v_ldexp(V x, V n) {
  __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
  return _mm256_mul_ps(_mm256_mul_ps(x, two_to(half)), two_to(_mm256_sub_epi32(whole, half)));
}

INLINE V v_if_less(V a, V b, V y, V z) {
  return _mm256_blendv_ps(z, y, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}

/* ---- over the lanes ----------------------------------------------------- */

INLINE __m128 fold_sum(V v) {
  return _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
}

INLINE float v_sum(V v) {
  __m128 x = fold_sum(v);
  x = _mm_add_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}

INLINE float v_max_lane(V v) {
  __m128 x = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  x = _mm_max_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}

INLINE V v_set_chains(const float *p) {
  return _mm256_broadcast_ps((const __m128 *)(const void *)p);
}

INLINE void v_turn_fours(V v[4]) {
  V a = _mm256_unpacklo_ps(v[0], v[1]), b = _mm256_unpackhi_ps(v[0], v[1]);
  V c = _mm256_unpacklo_ps(v[2], v[3]), d = _mm256_unpackhi_ps(v[2], v[3]);
  v[0] = _mm256_shuffle_ps(a, c, 0x44);
  v[1] = _mm256_shuffle_ps(a, c, 0xee);
  v[2] = _mm256_shuffle_ps(b, d, 0x44);
  v[3] = _mm256_shuffle_ps(b, d, 0xee);
}

INLINE V v_load_fours(const float *p, size_t stride) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + stride), 1);
}

INLINE void v_load_lines(const float *p, size_t stride, V out[STEP / CHAINS]) {
  out[0] = v_load_fours(p, stride);
  out[1] = v_load_fours(p + 4, stride);
}

INLINE V v_load_sums(const float *p, size_t more) {
  (void)more;
  return v_load(p);
}

/* ---- doubles ------------------------------------------------------------ */

INLINE D d_zero(void) {
  return _mm256_setzero_pd();
}

INLINE D d_low(V v) {
  return _mm256_cvtps_pd(_mm256_castps256_ps128(v));
}

INLINE D d_high(V v) {
  return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
}

INLINE D d_add(D a, D b) {
  return _mm256_add_pd(a, b);
}

INLINE D d_sub(D a, D b) {
  return _mm256_sub_pd(a, b);
}

INLINE D d_fma(D a, D b, D c) {
  return _mm256_fmadd_pd(a, b, c);
}

INLINE double d_sum(D v) {
  __m128d x = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return _mm_cvtsd_f64(_mm_add_sd(x, _mm_unpackhi_pd(x, x)));
}

/* ---- codes -------------------------------------------------------------- */

enum { CODES = 16 };
typedef __m256i I16;
typedef __m256i I32;

INLINE I16 c_load_query(const int16_t *p) {
  return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

INLINE I16 c_load(const int8_t *p) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
}

INLINE I32 s_zero(void) {
  return _mm256_setzero_si256();
}

INLINE I32 s_add(I32 s, I16 a, I16 b) {
  return _mm256_add_epi32(s, _mm256_madd_epi16(a, b));
}

INLINE void s_sum4(const I32 s[4], int32_t *out) {
  __m256i pairs = _mm256_hadd_epi32(_mm256_hadd_epi32(s[0], s[1]), _mm256_hadd_epi32(s[2], s[3]));
  __m128i sums = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  _mm_storeu_si128((__m128i *)(void *)out, sums);
}

/* ---- packed products ---------------------------------------------------- */

enum { ROW_OFFSET = 0 };
typedef __v8si I;
typedef __m256i W;
typedef __v16hi H;

/* Eight numbers of at most 16 bits in lanes of 32: each half packs its own. */
INLINE __m128i to_16_bits(__m256i x) {
  __m256i halves = _mm256_packus_epi32(x, x);
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(halves, 0x08));
}

/* As packed.c has it. */
INLINE W v_to_bf16(V x) {
  __m256i bits = _mm256_castps_si256(x);
  __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  __m256i nan = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(rounded, nan, is_nan);
}

INLINE void w_store_upper(uint16_t *p, W w) {
  _mm_storeu_si128((__m128i *)(void *)p, to_16_bits(_mm256_srli_epi32(w, 16)));
}

INLINE void v_store_codes(uint8_t *p, V x, int32_t zero) {
  V nearest = _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256i codes = _mm256_add_epi32(_mm256_cvtps_epi32(nearest), _mm256_set1_epi32(zero));
  __m128i words = to_16_bits(codes);
  _mm_storel_epi64((__m128i *)(void *)p, _mm_packus_epi16(words, words));
}

INLINE V v_from_sums(I sums, const int32_t *columns, int32_t zero) {
  __m256i codes = _mm256_loadu_si256((const __m256i *)(const void *)columns);
  __m256i excess = _mm256_mullo_epi32(codes, _mm256_set1_epi32(zero));
  return _mm256_cvtepi32_ps(_mm256_sub_epi32((__m256i)sums, excess));
}

INLINE W w_load(const char *p) {
  return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

INLINE W w_set1(uint32_t word) {
  return _mm256_set1_epi32((int)word);
}

INLINE V v_lower(W w) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(w, 16));
}

INLINE V v_upper(W w) {
  return _mm256_castsi256_ps(_mm256_and_si256(w, _mm256_set1_epi32((int)0xffff0000u)));
}

INLINE H h_even(W w) {
  return (H)_mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8);
}

INLINE H h_odd(W w) {
  return (H)_mm256_srai_epi16(w, 8);
}

INLINE H h_row_even(W w) {
  return (H)_mm256_and_si256(w, _mm256_set1_epi16(0xff));
}

INLINE H h_row_odd(W w) {
  return (H)_mm256_srli_epi16(w, 8);
}

/* VPMADDUBSW would take codes as they are, but its sums of two products stop at
** 32767. */
INLINE I i_add(I sum, H x_even, H w_even, H x_odd, H w_odd) {
  I even = (I)_mm256_madd_epi16((__m256i)x_even, (__m256i)w_even);
  I odd = (I)_mm256_madd_epi16((__m256i)x_odd, (__m256i)w_odd);
  return sum + even + odd;
}

TARGET_END

#endif
