/*
** kernels_avx512.c: the sets of x86-64 processors with AVX-512 F, VL, BW and DQ.
*/
#include "kernel_sets.h"

#ifdef BERT_KERNELS_X86

#include <immintrin.h>

/* After the headers, so that only the functions of this file may use these
** instructions; no compiler flag is needed. */
#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq"))),                   \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq")
#endif

#include "set_avx512.h"

#define TILE_ROWS 8
#define TILE_VECTORS 3
#define FEW_ROWS 16
#define FEW_MOST 32

#include "vector_kernels.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const kernels kernels_avx512 =
    VECTOR_KERNELS("avx512", cpu_has_avx512, NULL, pack_rows_avx512, packed_linear_avx512);

/* The same with instructions for less precision. */
const kernels kernels_avx512vnni =
    VECTOR_KERNELS("avx512vnni", cpu_has_vnni, "avx512", pack_rows_avx512, packed_linear_vnni);
const kernels kernels_avx512bf16 =
    VECTOR_KERNELS("avx512bf16", cpu_has_bf16, "avx512", pack_rows_avx512, packed_linear_bf16);
const kernels kernels_amx =
    VECTOR_KERNELS("amx", cpu_has_amx, "avx512", pack_rows_avx512, packed_linear_amx);

#else
typedef int no_avx512_here; /* ISO C wants a declaration in every file */
#endif
