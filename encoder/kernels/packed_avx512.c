/*
** packed_avx512.c: the packed products in AVX-512 F, VL, BW and DQ, without
** instructions for either precision.
*/
#include "kernel_sets.h"

#ifdef BERT_KERNELS_X86

#include "set_avx512.h"

TARGET_BEGIN(AVX512)

#include "packed_512.h"

/* Twice as many registers for the terms as TILES_OF_GROUPS has. */
#define WIDENED_TILES(T) TILES_TO_12(T, 1) TILES_TO_12(T, 2) TILES_TO_4(T, 3) TILES_TO_4(T, 4)
static const packed_shape widened_shapes[] = {{4, 4, 4}, {SIZE_MAX, 12, 2}};

#include "packed_widened.h"

WIDENED_OPERATIONS(pack_rows_avx512, packed_linear_avx512)

TARGET_END

#else
typedef int no_packed_avx512_here; /* ISO C wants a declaration in every file */
#endif
