/*
** packed_vnni.c: the products of int8 by VPDPBUSD, of the processors that have
** AVX512-VNNI (Cascade Lake, Ice Lake, Zen 4 and later).
*/
#include "kernel_sets.h"

#ifdef BERT_KERNELS_X86

#include <immintrin.h>

/* After the headers, as in kernels_avx512.c. */
#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq,avx512vnni"))),        \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq,avx512vnni")
#endif

#include "packed_512.h"

typedef I int8_sum;
typedef __m512i int8_terms;

INLINE int8_sum int8_zero(void) {
  return (I)_mm512_setzero_si512();
}

INLINE int8_terms int8_columns(const char *p) {
  return _mm512_loadu_si512(p);
}

INLINE int8_terms int8_row(const char *p) {
  int four;
  memcpy(&four, p, sizeof four);
  return _mm512_set1_epi32(four);
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

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else
typedef int no_packed_vnni_here; /* ISO C wants a declaration in every file */
#endif
