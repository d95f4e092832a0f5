/*
** packed_avx2.c: the packed products in AVX2 and FMA.
*/
#include "kernel_sets.h"

#ifdef BERT_KERNELS_X86

#include "set_avx2.h"

TARGET_BEGIN(AVX2)

#include "packed_vectors.h"

/* The vectors of one panel, or of two for one row. */
#define WIDENED_TILES(T) T(1, 2) T(2, 2) T(3, 2) T(4, 2) T(1, 4)
static const packed_shape widened_shapes[] = {{1, 1, 4}, {SIZE_MAX, 4, 2}};

#include "packed_widened.h"

WIDENED_OPERATIONS(pack_rows_avx2, packed_linear_avx2)

TARGET_END

#else
typedef int no_packed_avx2_here; /* ISO C wants a declaration in every file */
#endif
