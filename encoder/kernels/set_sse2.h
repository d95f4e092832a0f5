/*
** set_sse2.h: the vocabulary of vector_kernels.h and packed_vectors.h in SSE2, which
** every x86-64 processor has: 16 registers of 4 floats, no fused steps, no masked loads.
*/
#ifndef BERT_SET_SSE2_H
#define BERT_SET_SSE2_H

#include "kernel_sets.h"

#include <emmintrin.h>
#include <string.h>

enum { LANES = 4, CHAINS = 4, STEP = 4 };
#define FUSED 0

typedef __m128 V;
typedef __m128d D;

/* ---- arithmetic --------------------------------------------------------- */

INLINE V v_set1(float x) {
  return _mm_set1_ps(x);
}

INLINE V v_add(V a, V b) {
  return _mm_add_ps(a, b);
}

INLINE V v_sub(V a, V b) {
  return _mm_sub_ps(a, b);
}

INLINE V v_mul(V a, V b) {
  return _mm_mul_ps(a, b);
}

INLINE V v_div(V a, V b) {
  return _mm_div_ps(a, b);
}

INLINE V v_fma(V a, V b, V c) {
  return _mm_add_ps(_mm_mul_ps(a, b), c);
}

INLINE V v_fnma(V a, V b, V c) {
  return _mm_sub_ps(c, _mm_mul_ps(a, b));
}

INLINE V v_min(V a, V b) {
  return _mm_min_ps(a, b);
}

INLINE V v_max(V a, V b) {
  return _mm_max_ps(a, b);
}

/* y where the mask's bits are set, else z. */
INLINE V choose(V mask, V y, V z) {
  return _mm_or_ps(_mm_and_ps(mask, y), _mm_andnot_ps(mask, z));
}

INLINE V v_if_less(V a, V b, V y, V z) {
  return choose(_mm_cmplt_ps(a, b), y, z);
}

/* The instruction gives b for a NaN in either; a NaN in a is put back. */
INLINE V v_max_or_nan(V a, V b) {
  return choose(_mm_cmpunord_ps(a, a), a, _mm_max_ps(a, b));
}

INLINE V v_abs(V x) {
  return _mm_andnot_ps(_mm_set1_ps(-0.0f), x);
}

INLINE V v_copysign(V size, V sign) {
  return _mm_or_ps(size, _mm_and_ps(_mm_set1_ps(-0.0f), sign));
}

/* For |x| < 2^31, and NaN becomes a number: enough for exponents. */
/* 2^n, n whole, in the range of normal numbers. */
INLINE V two_to(__m128i n) {
  return _mm_castsi128_ps(_mm_slli_epi32(_mm_add_epi32(n, _mm_set1_epi32(127)), 23));
}

/* In two steps, for 2^n alone may be out of range; the first is exact. */
INLINE V v_ldexp(V x, V n) {
  __m128i whole = _mm_cvtps_epi32(n), half = _mm_srai_epi32(whole, 1);
  return _mm_mul_ps(_mm_mul_ps(x, two_to(half)), two_to(_mm_sub_epi32(whole, half)));
}

/* ---- memory ------------------------------------------------------------- */

INLINE V v_load(const float *p) {
  return _mm_loadu_ps(p);
}

INLINE void v_store(float *p, V v) {
  _mm_storeu_ps(p, v);
}

INLINE V v_load_part(const float *p, size_t n) {
  if (n == 0) return _mm_setzero_ps();
  if (n == 1) return _mm_load_ss(p);
  V two = _mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)p));
  return n == 2 ? two : _mm_movelh_ps(two, _mm_load_ss(p + 2));
}

/* All bits of the first n lanes. */
INLINE V first_lanes(size_t n) {
  return _mm_castsi128_ps(_mm_cmplt_epi32(_mm_setr_epi32(0, 1, 2, 3), _mm_set1_epi32((int)n)));
}

INLINE V v_load_part_or(const float *p, size_t n, V fill) {
  return choose(first_lanes(n), v_load_part(p, n), fill);
}

INLINE void v_store_part(float *p, V v, size_t n) {
  if (n >= 2) _mm_storel_pi((__m64 *)(void *)p, v);
  if (n == 3) _mm_store_ss(p + 2, _mm_movehl_ps(v, v));
  if (n == 1) _mm_store_ss(p, v);
}

/* A half is sign 1, exponent 5 (bias 15), fraction 10. The exponent of a normal number
** moves from one bias to the other, that of infinity and NaN by as much again; a NaN
** becomes quiet. A subnormal number is its fraction times 2^-24. */
INLINE V v_from_half(const uint16_t *p) {
  __m128i x = _mm_loadl_epi64((const __m128i *)(const void *)p), bias = _mm_set1_epi32(112 << 23);
  x = _mm_unpacklo_epi16(x, _mm_setzero_si128());
  __m128i size = _mm_and_si128(x, _mm_set1_epi32(0x7fff));
  __m128i bits = _mm_add_epi32(_mm_slli_epi32(size, 13), bias);
  __m128i infinite = _mm_cmpgt_epi32(size, _mm_set1_epi32(0x7bff));
  __m128i nan = _mm_cmpgt_epi32(size, _mm_set1_epi32(0x7c00));
  bits = _mm_add_epi32(bits, _mm_and_si128(infinite, bias));
  bits = _mm_or_si128(bits, _mm_and_si128(nan, _mm_set1_epi32(0x400000)));
  V small = _mm_castsi128_ps(_mm_cmplt_epi32(size, _mm_set1_epi32(0x400)));
  V value = choose(small, _mm_mul_ps(_mm_cvtepi32_ps(size), _mm_set1_ps(0x1p-24f)),
                   _mm_castsi128_ps(bits));
  return v_copysign(value, _mm_castsi128_ps(_mm_slli_epi32(x, 16)));
}

INLINE V v_from_bfloat16(const uint16_t *p) {
  __m128i x = _mm_loadl_epi64((const __m128i *)(const void *)p);
  return _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), x));
}

/* ---- over the lanes ----------------------------------------------------- */

INLINE float v_sum(V v) {
  V x = _mm_add_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
}

INLINE float v_max_lane(V v) {
  V x = _mm_max_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_max_ss(x, _mm_shuffle_ps(x, x, 1)));
}

INLINE V v_set_chains(const float *p) {
  return v_load(p);
}

/* Pairs of rows interleaved, then halves exchanged. */
INLINE void v_turn_fours(V v[4]) {
  V a = _mm_unpacklo_ps(v[0], v[1]), b = _mm_unpackhi_ps(v[0], v[1]);
  V c = _mm_unpacklo_ps(v[2], v[3]), d = _mm_unpackhi_ps(v[2], v[3]);
  v[0] = _mm_movelh_ps(a, c);
  v[1] = _mm_movehl_ps(c, a);
  v[2] = _mm_movelh_ps(b, d);
  v[3] = _mm_movehl_ps(d, b);
}

INLINE V v_load_fours(const float *p, size_t stride) {
  (void)stride;
  return v_load(p);
}

INLINE void v_load_lines(const float *p, size_t stride, V out[STEP / CHAINS]) {
  out[0] = v_load_fours(p, stride);
}

INLINE V v_load_sums(const float *p, size_t more) {
  (void)more;
  return v_load(p);
}

/* ---- doubles ------------------------------------------------------------ */

INLINE D d_zero(void) {
  return _mm_setzero_pd();
}

INLINE D d_low(V v) {
  return _mm_cvtps_pd(v);
}

INLINE D d_high(V v) {
  return _mm_cvtps_pd(_mm_movehl_ps(v, v));
}

INLINE D d_set1(double x) {
  return _mm_set1_pd(x);
}

INLINE V v_join(D low, D high) {
  return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}

INLINE D d_mul(D a, D b) {
  return _mm_mul_pd(a, b);
}

INLINE D d_div(D a, D b) {
  return _mm_div_pd(a, b);
}

INLINE D d_add(D a, D b) {
  return _mm_add_pd(a, b);
}

INLINE D d_sub(D a, D b) {
  return _mm_sub_pd(a, b);
}

INLINE D d_fma(D a, D b, D c) {
  return _mm_add_pd(_mm_mul_pd(a, b), c);
}

INLINE double d_sum(D v) {
  return _mm_cvtsd_f64(_mm_add_sd(v, _mm_unpackhi_pd(v, v)));
}

/* ---- codes -------------------------------------------------------------- */

enum { CODES = 16 };
typedef struct {
  __m128i low, high;
} I16;
typedef __m128i I32;

INLINE I16 c_load_query(const int16_t *p) {
  I16 c = {_mm_loadu_si128((const __m128i *)(const void *)p),
           _mm_loadu_si128((const __m128i *)(const void *)(p + 8))};
  return c;
}

/* A code goes to the upper half of 16 bits and is moved down with its sign. */
INLINE I16 c_load(const int8_t *p) {
  __m128i codes = _mm_loadu_si128((const __m128i *)(const void *)p);
  I16 c = {_mm_srai_epi16(_mm_unpacklo_epi8(codes, codes), 8),
           _mm_srai_epi16(_mm_unpackhi_epi8(codes, codes), 8)};
  return c;
}

INLINE I32 s_zero(void) {
  return _mm_setzero_si128();
}

INLINE I32 s_add(I32 s, I16 a, I16 b) {
  s = _mm_add_epi32(s, _mm_madd_epi16(a.low, b.low));
  return _mm_add_epi32(s, _mm_madd_epi16(a.high, b.high));
}

INLINE void s_sum4(const I32 s[4], int32_t *out) {
  __m128i a = _mm_add_epi32(_mm_unpacklo_epi32(s[0], s[1]), _mm_unpackhi_epi32(s[0], s[1]));
  __m128i b = _mm_add_epi32(_mm_unpacklo_epi32(s[2], s[3]), _mm_unpackhi_epi32(s[2], s[3]));
  __m128i sums = _mm_add_epi32(_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b));
  _mm_storeu_si128((__m128i *)(void *)out, sums);
}

/* ---- packed products ---------------------------------------------------- */

enum { ROW_OFFSET = 0 };
typedef __v4si I;
typedef __m128i W;
typedef __v8hi H;

/* As packed.c has it. */
INLINE W v_to_bf16(V x) {
  __m128i bits = _mm_castps_si128(x);
  __m128i odd = _mm_and_si128(_mm_srli_epi32(bits, 16), _mm_set1_epi32(1));
  __m128i rounded = _mm_add_epi32(bits, _mm_add_epi32(odd, _mm_set1_epi32(0x7fff)));
  __m128i nan = _mm_or_si128(bits, _mm_set1_epi32(0x400000));
  V all = choose(_mm_cmpunord_ps(x, x), _mm_castsi128_ps(nan), _mm_castsi128_ps(rounded));
  return _mm_castps_si128(all);
}

/* Moved down with its sign, a number of 16 bits is packed as it is. */
INLINE void w_store_upper(uint16_t *p, W w) {
  __m128i upper = _mm_srai_epi32(w, 16);
  _mm_storel_epi64((__m128i *)(void *)p, _mm_packs_epi32(upper, upper));
}

INLINE void v_store_codes(uint8_t *p, V x, int32_t zero) {
  __m128i codes = _mm_add_epi32(_mm_cvtps_epi32(x), _mm_set1_epi32(zero));
  __m128i words = _mm_packs_epi32(codes, codes);
  int four = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
  memcpy(p, &four, sizeof four);
}

/* The lower 32 bits of products of 64, of the lanes with even and odd numbers. */
INLINE V v_from_sums(I sums, const int32_t *columns, int32_t zero) {
  __m128i codes = _mm_loadu_si128((const __m128i *)(const void *)columns);
  __m128i factor = _mm_set1_epi32(zero);
  __m128i even = _mm_mul_epu32(codes, factor);
  __m128i odd = _mm_mul_epu32(_mm_srli_epi64(codes, 32), factor);
  __m128i excess = _mm_unpacklo_epi32(_mm_shuffle_epi32(even, 0x08), _mm_shuffle_epi32(odd, 0x08));
  return _mm_cvtepi32_ps(_mm_sub_epi32((__m128i)sums, excess));
}

INLINE W w_load(const char *p) {
  return _mm_loadu_si128((const __m128i *)(const void *)p);
}

INLINE W w_set1(uint32_t word) {
  return _mm_set1_epi32((int)word);
}

INLINE V v_lower(W w) {
  return _mm_castsi128_ps(_mm_slli_epi32(w, 16));
}

INLINE V v_upper(W w) {
  return _mm_castsi128_ps(_mm_and_si128(w, _mm_set1_epi32((int)0xffff0000u)));
}

INLINE H h_even(W w) {
  return (H)_mm_srai_epi16(_mm_slli_epi16(w, 8), 8);
}

INLINE H h_odd(W w) {
  return (H)_mm_srai_epi16(w, 8);
}

INLINE H h_row_even(W w) {
  return (H)_mm_and_si128(w, _mm_set1_epi16(0xff));
}

INLINE H h_row_odd(W w) {
  return (H)_mm_srli_epi16(w, 8);
}

INLINE I i_add(I sum, H x_even, H w_even, H x_odd, H w_odd) {
  I even = (I)_mm_madd_epi16((__m128i)x_even, (__m128i)w_even);
  I odd = (I)_mm_madd_epi16((__m128i)x_odd, (__m128i)w_odd);
  return sum + even + odd;
}

#endif
