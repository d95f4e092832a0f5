/*
** packed_neon.c: the packed products in ARM NEON, of every 64-bit ARM processor:
** terms are widened first, as in packed_avx512.c.
*/
#include "kernel_sets.h"

#ifdef BERT_KERNELS_NEON

#include <string.h>

#include "set_neon.h"

typedef int32x4_t I;

/* As packed.c has it. */
INLINE void v_store_bf16(uint16_t *p, V x) {
  uint32x4_t bits = vreinterpretq_u32_f32(x);
  uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  uint32x4_t nan = vorrq_u32(bits, vdupq_n_u32(0x400000));
  vst1_u16(p, vshrn_n_u32(vbslq_u32(vceqq_f32(x, x), rounded, nan), 16));
}

INLINE void v_store_codes(uint8_t *p, V x, int32_t zero) {
  int32x4_t codes = vaddq_s32(vcvtnq_s32_f32(x), vdupq_n_s32(zero));
  uint16x4_t words = vmovn_u32(vreinterpretq_u32_s32(codes));
  uint8x8_t bytes = vmovn_u16(vcombine_u16(words, words));
  uint32_t four = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
  memcpy(p, &four, sizeof four);
}

/* Of the row's codes 128 is taken off before they are multiplied. */
INLINE V v_from_sums(I sums, const int32_t *columns, int32_t zero) {
  return vcvtq_f32_s32(vmlsq_n_s32(sums, vld1q_s32(columns), zero - 128));
}

#include "packed_vectors.h"

/* The vectors of one panel, or of two for few rows. */
#define TILES(T) T(1, 4) T(2, 4) T(3, 4) T(4, 4) T(1, 8) T(2, 8)
static const packed_shape shapes[] = {{2, 2, 8}, {SIZE_MAX, 4, 4}};

/* ---- bf16: the terms of a group with even and odd numbers, as floats -------- */

typedef V bf16_sum;
typedef struct bf16_terms {
  V even, odd;
} bf16_terms;

INLINE bf16_sum bf16_zero(void) {
  return vdupq_n_f32(0.0f);
}

INLINE bf16_terms bf16_widen(uint32x4_t pairs) {
  return (bf16_terms){vreinterpretq_f32_u32(vshlq_n_u32(pairs, 16)),
                      vreinterpretq_f32_u32(vandq_u32(pairs, vdupq_n_u32(0xffff0000u)))};
}

INLINE bf16_terms bf16_columns(const char *p) {
  return bf16_widen(vreinterpretq_u32_u8(vld1q_u8((const uint8_t *)p)));
}

INLINE bf16_terms bf16_row(const char *p) {
  uint32_t pair;
  memcpy(&pair, p, sizeof pair);
  return bf16_widen(vdupq_n_u32(pair));
}

INLINE bf16_sum bf16_add(bf16_sum sum, bf16_terms x, bf16_terms w) {
  return vfmaq_f32(vfmaq_f32(sum, x.even, w.even), x.odd, w.odd);
}

#define bf16_TILES TILES
#define bf16_shapes shapes

#define PRODUCT bf16
#include "packed_tiles.h"
#undef PRODUCT

/* ---- int8: the terms with even and odd numbers, as int16 -------------------
**
** Both factors are within 127, so that the sum of two products fits in 16 bits. */

typedef I int8_sum;
typedef struct int8_terms {
  int16x8_t even, odd;
} int8_terms;

INLINE int8_sum int8_zero(void) {
  return vdupq_n_s32(0);
}

INLINE int8_terms int8_widen(int16x8_t codes) {
  return (int8_terms){vshrq_n_s16(vshlq_n_s16(codes, 8), 8), vshrq_n_s16(codes, 8)};
}

INLINE int8_terms int8_columns(const char *p) {
  return int8_widen(vreinterpretq_s16_u8(vld1q_u8((const uint8_t *)p)));
}

INLINE int8_terms int8_row(const char *p) {
  uint32_t four;
  memcpy(&four, p, sizeof four);
  return int8_widen(vreinterpretq_s16_u32(vdupq_n_u32(four ^ 0x80808080u)));
}

INLINE int8_sum int8_add(int8_sum sum, int8_terms x, int8_terms w) {
  return vpadalq_s16(sum, vmlaq_s16(vmulq_s16(x.even, w.even), x.odd, w.odd));
}

#define int8_TILES TILES
#define int8_shapes shapes

#define PRODUCT int8
#include "packed_tiles.h"
#undef PRODUCT

/* ---- the operations --------------------------------------------------------- */

void pack_rows_neon(packed_precision p, const float *x, size_t ldx, size_t rows, size_t depth,
                    void *block, packed_rows *out) {
  pack_rows(p, x, ldx, rows, depth, block, out);
}

void packed_linear_neon(const packed_rows *x, const packed_weights *w, size_t first, size_t last,
                        const float *bias, float *y, size_t ldy) {
  packed_job job = {x, w, last, bias, y, ldy};
  if (w->precision == PRECISION_BF16)
    bf16_linear(&job, first);
  else
    int8_linear(&job, first);
}

#else
typedef int no_packed_neon_here; /* ISO C wants a declaration in every file */
#endif
