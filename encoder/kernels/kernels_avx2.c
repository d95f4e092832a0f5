/*
** kernels_avx2.c: the set of AVX2, FMA and F16C.
*/
#include "kernel_sets.h"

#ifdef BERT_KERNELS_X86

#include "set_avx2.h"

#define TILE_ROWS 4
#define TILE_VECTORS 3
#define FEW_SUMS 12
#define FEW_ROWS 13
#define OUTER_ROWS 6

TARGET_BEGIN(AVX2)

#include "vector_kernels.h"

TARGET_END

const kernels kernels_avx2 =
    VECTOR_KERNELS("avx2", cpu_has_avx2, NULL, pack_rows_avx2, packed_linear_avx2);

#else
typedef int no_avx2_here; /* ISO C wants a declaration in every file */
#endif
