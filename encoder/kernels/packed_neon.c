/*
** packed_neon.c: the packed products in NEON.
*/
#include "kernel_sets.h"

#ifdef BERT_KERNELS_NEON

#include "set_neon.h"

#include "packed_vectors.h"

/* The vectors of one panel, or of two for few rows. */
#define WIDENED_TILES(T) T(1, 4) T(2, 4) T(3, 4) T(4, 4) T(1, 8) T(2, 8)
static const packed_shape widened_shapes[] = {{2, 2, 8}, {SIZE_MAX, 4, 4}};

#include "packed_widened.h"

WIDENED_OPERATIONS(pack_rows_neon, packed_linear_neon)

#else
typedef int no_packed_neon_here; /* ISO C wants a declaration in every file */
#endif
