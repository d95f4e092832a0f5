/*
** kernels_avx2.c: the set of x86-64 processors with AVX2, FMA and F16C.
*/
#include "kernel_sets.h"

#ifdef BERT_KERNELS_X86

#include <immintrin.h>

/* After the headers, so that only the functions of this file may use these
** instructions; no compiler flag is needed. */
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

#include "set_avx2.h"

#define TILE_ROWS 4
#define TILE_VECTORS 3
#define FEW_ROWS 10
#define FEW_MOST 10

#include "vector_kernels.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const kernels kernels_avx2 =
    VECTOR_KERNELS("avx2", cpu_has_avx2, NULL, pack_rows_avx2, packed_linear_avx2);

#else
typedef int no_avx2_here; /* ISO C wants a declaration in every file */
#endif
