/*
** kernels_avx512.c: the set of AVX-512 F, VL, BW and DQ, and those that are it with
** other packed products.
*/
#include "kernel_sets.h"

#ifdef BERT_KERNELS_X86

#include "set_avx512.h"

#define TILE_ROWS 8
#define TILE_VECTORS 3
#define FEW_SUMS 26
#define FEW_ROWS 16
#define OUTER_ROWS 12

TARGET_BEGIN(AVX512)

#include "vector_kernels.h"

TARGET_END

const kernels kernels_avx512 =
    VECTOR_KERNELS("avx512", cpu_has_avx512, NULL, pack_rows_avx512, packed_linear_avx512);

/* The same with instructions for less precision. */
const kernels kernels_avx512vnni =
    VECTOR_KERNELS("avx512vnni", cpu_has_vnni, "avx512", pack_rows_avx512, packed_linear_vnni);
#ifdef BERT_KERNELS_BF16
const kernels kernels_avx512bf16 =
    VECTOR_KERNELS("avx512bf16", cpu_has_bf16, "avx512", pack_rows_bf16, packed_linear_bf16);
#endif
#ifdef BERT_KERNELS_AMX
const kernels kernels_amx =
    VECTOR_KERNELS("amx", cpu_has_amx, "avx512", pack_rows_bf16, packed_linear_amx);
#endif

#else
typedef int no_avx512_here; /* ISO C wants a declaration in every file */
#endif
