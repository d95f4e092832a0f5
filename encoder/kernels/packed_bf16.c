/*
** packed_bf16.c: the products of bfloat16 by VDPBF16PS, of the processors that
** have AVX512-BF16 (Cooper Lake, Zen 4 and later).
**
** The instruction adds the two products of a pair one after the other, rounds to
** nearest and takes numbers below 2^-126 as 0, whatever the host has set.
*/
#include "kernel_sets.h"

#ifdef BERT_KERNELS_X86

#include <immintrin.h>

/* After the headers, as in kernels_avx512.c. */
#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq,avx512bf16"))),        \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq,avx512bf16")
#endif

#include "packed_512.h"

typedef V bf16_sum;
typedef __m512i bf16_terms;

INLINE bf16_sum bf16_zero(void) {
  return _mm512_setzero_ps();
}

INLINE bf16_terms bf16_columns(const char *p) {
  return _mm512_loadu_si512(p);
}

INLINE bf16_terms bf16_row(const char *p) {
  int pair;
  memcpy(&pair, p, sizeof pair);
  return _mm512_set1_epi32(pair);
}

INLINE bf16_sum bf16_add(bf16_sum sum, bf16_terms x, bf16_terms w) {
  return _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)w);
}

#define bf16_TILES TILES_OF_GROUPS
#define bf16_shapes shapes_of_groups

#define PRODUCT bf16
#include "packed_tiles.h"
#undef PRODUCT

void packed_linear_bf16(const packed_rows *x, const packed_weights *w, size_t first, size_t last,
                        const float *bias, float *y, size_t ldy) {
  packed_job job = {x, w, last, bias, y, ldy};
  if (w->precision == PRECISION_BF16)
    bf16_linear(&job, first);
  else
    packed_linear_vnni(x, w, first, last, bias, y, ldy);
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else
typedef int no_packed_bf16_here; /* ISO C wants a declaration in every file */
#endif
