/*
** packed_sse2.c: the packed products in SSE2.
*/
#include "kernel_sets.h"

#ifdef BERT_KERNELS_X86

#include "set_sse2.h"

#include "packed_vectors.h"

/* The vectors of one panel. Sums and terms of 4 rows take more registers than there are,
** but terms that are widened once for 4 rows are worth it: 15% over 2 rows. */
#define WIDENED_TILES(T) T(1, 4) T(2, 4) T(3, 4) T(4, 4)
static const packed_shape widened_shapes[] = {{SIZE_MAX, 4, 4}};

#include "packed_widened.h"

WIDENED_OPERATIONS(pack_rows_sse2, packed_linear_sse2)

#else
typedef int no_packed_sse2_here; /* ISO C wants a declaration in every file */
#endif
