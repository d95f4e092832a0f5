/*
** packed_bf16.c: the products of bfloat16 by VDPBF16PS, of the processors that
** have AVX512-BF16 (Cooper Lake, Zen 4 and later).
**
** The instruction adds the two products of a pair one after the other, rounds to
** nearest and takes numbers below 2^-126 as 0, whatever the host has set.
*/
#include "kernel_sets.h"

#ifdef BERT_KERNELS_BF16

#include "set_avx512.h"

TARGET_BEGIN(AVX512 ",avx512bf16")

#include "packed_512.h"

enum { bf16_ROW_STEP = 4 };
typedef V bf16_sum;
typedef W bf16_terms;

INLINE bf16_sum bf16_zero(void) {
  return v_set1(0.0f);
}

INLINE bf16_terms bf16_columns(const char *p) {
  return w_load(p);
}

INLINE bf16_terms bf16_row(const char *p) {
  return bf16_word(p);
}

INLINE bf16_sum bf16_add(bf16_sum sum, bf16_terms x, bf16_terms w) {
  return _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)w);
}

#define bf16_TILES TILES_OF_GROUPS
#define bf16_shapes shapes_of_groups

#define PRODUCT bf16
#include "packed_tiles.h"
#undef PRODUCT

void pack_rows_bf16(packed_precision p, const float *x, size_t ldx, size_t rows, size_t depth,
                    void *block, packed_rows *out) {
  pack_rows(p, 0, x, ldx, rows, depth, block, out);
}

void packed_linear_bf16(const packed_rows *x, const packed_weights *w, size_t first, size_t last,
                        const float *bias, float *y, size_t ldy) {
  packed_job job = {x, w, last, bias, y, ldy};
  if (w->precision == PRECISION_BF16)
    bf16_linear(&job, first);
  else
    packed_linear_vnni(x, w, first, last, bias, y, ldy);
}

TARGET_END

#else
typedef int no_packed_bf16_here; /* ISO C wants a declaration in every file */
#endif
