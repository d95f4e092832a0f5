/*
** set_neon.h: the vocabulary of vector_kernels.h and packed_vectors.h in NEON of
** AArch64, which every such processor has: 32 registers of 4 floats.
*/
#ifndef BERT_SET_NEON_H
#define BERT_SET_NEON_H

#include "kernel_sets.h"

#include <arm_neon.h>
#include <string.h>

enum { LANES = 4, CHAINS = 4, STEP = 4 };

typedef float32x4_t V;
typedef float64x2_t D;

/* ---- memory ------------------------------------------------------------- */

INLINE V v_load(const float *p) {
  return vld1q_f32(p);
}

INLINE void v_store(float *p, V v) {
  vst1q_f32(p, v);
}

/* There are no masked loads: the floats go through registers one by one. */
INLINE V v_load_part_or(const float *p, size_t n, V fill) {
  V v = fill;
  if (n > 0) v = vld1q_lane_f32(p, v, 0);
  if (n > 1) v = vld1q_lane_f32(p + 1, v, 1);
  if (n > 2) v = vld1q_lane_f32(p + 2, v, 2);
  return v;
}

INLINE V v_load_part(const float *p, size_t n) {
  return v_load_part_or(p, n, vdupq_n_f32(0.0f));
}

INLINE void v_store_part(float *p, V v, size_t n) {
  if (n > 0) vst1q_lane_f32(p, v, 0);
  if (n > 1) vst1q_lane_f32(p + 1, v, 1);
  if (n > 2) vst1q_lane_f32(p + 2, v, 2);
}

INLINE V v_from_half(const uint16_t *p) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}

INLINE V v_from_bfloat16(const uint16_t *p) {
  return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}

/* ---- arithmetic --------------------------------------------------------- */

INLINE V v_set1(float x) {
  return vdupq_n_f32(x);
}

INLINE V v_add(V a, V b) {
  return vaddq_f32(a, b);
}

INLINE V v_sub(V a, V b) {
  return vsubq_f32(a, b);
}

INLINE V v_mul(V a, V b) {
  return vmulq_f32(a, b);
}

INLINE V v_div(V a, V b) {
  return vdivq_f32(a, b);
}

INLINE V v_fma(V a, V b, V c) {
  return vfmaq_f32(c, a, b);
}

INLINE V v_fnma(V a, V b, V c) {
  return vfmsq_f32(c, a, b);
}

INLINE V v_min(V a, V b) {
  return vminq_f32(a, b);
}

INLINE V v_max(V a, V b) {
  return vmaxq_f32(a, b);
}

INLINE V v_max_or_nan(V a, V b) {
  return vmaxq_f32(a, b);
}

INLINE V v_abs(V x) {
  return vabsq_f32(x);
}

INLINE V v_copysign(V size, V sign) {
  return vbslq_f32(vdupq_n_u32(0x80000000u), sign, size);
}

/* 2^n, n whole, in the range of normal numbers. */
INLINE V two_to(int32x4_t n) {
  return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23));
}

/* In two steps, for 2^n alone may be out of range; the first is exact. */
INLINE V v_ldexp(V x, V n) {
  int32x4_t whole = vcvtq_s32_f32(n), half = vshrq_n_s32(whole, 1);
  return vmulq_f32(vmulq_f32(x, two_to(half)), two_to(vsubq_s32(whole, half)));
}

INLINE V v_if_less(V a, V b, V y, V z) {
  return vbslq_f32(vcltq_f32(a, b), y, z);
}

/* ---- over the lanes ----------------------------------------------------- */

/* Neighbouring lanes first, then the two pairs. */
INLINE float v_sum(V v) {
  return vaddvq_f32(v);
}

INLINE float v_max_lane(V v) {
  return vmaxvq_f32(v);
}

INLINE V v_set_chains(const float *p) {
  return v_load(p);
}

/* Two pairs of rows interleaved, then halves exchanged. */
INLINE void v_turn_fours(V v[4]) {
  float32x4x2_t a = vtrnq_f32(v[0], v[1]), b = vtrnq_f32(v[2], v[3]);
  v[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
  v[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
  v[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
  v[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
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
  return vdupq_n_f64(0.0);
}

INLINE D d_low(V v) {
  return vcvt_f64_f32(vget_low_f32(v));
}

INLINE D d_high(V v) {
  return vcvt_high_f64_f32(v);
}

INLINE D d_add(D a, D b) {
  return vaddq_f64(a, b);
}

INLINE D d_sub(D a, D b) {
  return vsubq_f64(a, b);
}

INLINE D d_fma(D a, D b, D c) {
  return vfmaq_f64(c, a, b);
}

INLINE double d_sum(D v) {
  return vaddvq_f64(v);
}

/* ---- codes -------------------------------------------------------------- */

enum { CODES = 16 };
typedef int16x8x2_t I16;
typedef int32x4_t I32;

INLINE I16 c_load_query(const int16_t *p) {
  I16 c = {{vld1q_s16(p), vld1q_s16(p + 8)}};
  return c;
}

INLINE I16 c_load(const int8_t *p) {
  int8x16_t codes = vld1q_s8(p);
  I16 c = {{vmovl_s8(vget_low_s8(codes)), vmovl_high_s8(codes)}};
  return c;
}

INLINE I32 s_zero(void) {
  return vdupq_n_s32(0);
}

INLINE I32 s_add(I32 s, I16 a, I16 b) {
  s = vmlal_s16(s, vget_low_s16(a.val[0]), vget_low_s16(b.val[0]));
  s = vmlal_high_s16(s, a.val[0], b.val[0]);
  s = vmlal_s16(s, vget_low_s16(a.val[1]), vget_low_s16(b.val[1]));
  return vmlal_high_s16(s, a.val[1], b.val[1]);
}

INLINE void s_sum4(const I32 s[4], int32_t *out) {
  vst1q_s32(out, vpaddq_s32(vpaddq_s32(s[0], s[1]), vpaddq_s32(s[2], s[3])));
}

/* ---- packed products ---------------------------------------------------- */

/* Row codes become signed, so that both factors are within 128 and 127. */
enum { ROW_OFFSET = 128 };
typedef int32x4_t I;
typedef uint32x4_t W;
typedef int16x8_t H;

/* As packed.c has it. */
INLINE W v_to_bf16(V x) {
  uint32x4_t bits = vreinterpretq_u32_f32(x);
  uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  uint32x4_t nan = vorrq_u32(bits, vdupq_n_u32(0x400000));
  return vbslq_u32(vceqq_f32(x, x), rounded, nan);
}

INLINE void w_store_upper(uint16_t *p, W w) {
  vst1_u16(p, vshrn_n_u32(w, 16));
}

INLINE void v_store_codes(uint8_t *p, V x, int32_t zero) {
  int32x4_t codes = vaddq_s32(vcvtnq_s32_f32(x), vdupq_n_s32(zero));
  uint16x4_t words = vmovn_u32(vreinterpretq_u32_s32(codes));
  uint8x8_t bytes = vmovn_u16(vcombine_u16(words, words));
  uint32_t four = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
  memcpy(p, &four, sizeof four);
}

INLINE V v_from_sums(I sums, const int32_t *columns, int32_t zero) {
  return vcvtq_f32_s32(vmlsq_n_s32(sums, vld1q_s32(columns), zero));
}

INLINE W w_load(const char *p) {
  return vreinterpretq_u32_u8(vld1q_u8((const uint8_t *)p));
}

INLINE W w_set1(uint32_t word) {
  return vdupq_n_u32(word);
}

INLINE V v_lower(W w) {
  return vreinterpretq_f32_u32(vshlq_n_u32(w, 16));
}

INLINE V v_upper(W w) {
  return vreinterpretq_f32_u32(vandq_u32(w, vdupq_n_u32(0xffff0000u)));
}

INLINE H h_even(W w) {
  return vshrq_n_s16(vshlq_n_s16(vreinterpretq_s16_u32(w), 8), 8);
}

INLINE H h_odd(W w) {
  return vshrq_n_s16(vreinterpretq_s16_u32(w), 8);
}

INLINE H h_row_even(W w) {
  return h_even(w);
}

INLINE H h_row_odd(W w) {
  return h_odd(w);
}

/* Two products are at most 2 * 128 * 127: their sum fits in 16 bits. */
INLINE I i_add(I sum, H x_even, H w_even, H x_odd, H w_odd) {
  return vpadalq_s16(sum, vmlaq_s16(vmulq_s16(x_even, w_even), x_odd, w_odd));
}

#endif
