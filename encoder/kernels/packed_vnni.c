/*
** packed_vnni.c: the products of int8 by VPDPBUSD, of the processors that have
** AVX512-VNNI (Cascade Lake, Ice Lake, Zen 4 and later).
*/
#include "kernel_sets.h"

#ifdef BERT_KERNELS_X86

#include "set_avx512.h"

TARGET_BEGIN(AVX512 ",avx512vnni")

#include "packed_512.h"

enum { int8_ROW_STEP = 4 };
typedef I int8_sum;
typedef W int8_terms;

INLINE int8_sum int8_zero(void) {
  return (I){0};
}

INLINE int8_terms int8_columns(const char *p) {
  return w_load(p);
}

INLINE int8_terms int8_row(const char *p) {
  return int8_word(p);
}

INLINE int8_sum int8_add(int8_sum sum, int8_terms x, int8_terms w) {
  return (I)_mm512_dpbusd_epi32((__m512i)sum, x, w);
}

#define int8_TILES TILES_OF_GROUPS
#define int8_shapes shapes_of_groups

#define PRODUCT int8
#include "packed_tiles.h"
#undef PRODUCT

void packed_linear_vnni(const packed_rows *x, const packed_weights *w, size_t first, size_t last,
                        const float *bias, float *y, size_t ldy) {
  packed_job job = {x, w, last, bias, y, ldy};
  if (w->precision == PRECISION_INT8)
    int8_linear(&job, first);
  else
    packed_linear_avx512(x, w, first, last, bias, y, ldy);
}

TARGET_END

#else
typedef int no_packed_vnni_here; /* ISO C wants a declaration in every file */
#endif
