/*
** kernels_neon.c: the set of every 64-bit ARM processor.
*/
#include "kernel_sets.h"

#ifdef BERT_KERNELS_NEON

#include "set_neon.h"

#define TILE_ROWS 8
#define TILE_VECTORS 3
#define FEW_SUMS 26
#define FEW_ROWS 16
#define OUTER_ROWS 6

static int always(void) {
  return 1;
}

#include "vector_kernels.h"

const kernels kernels_neon =
    VECTOR_KERNELS("neon", always, NULL, pack_rows_neon, packed_linear_neon);

#else
typedef int no_neon_here; /* ISO C wants a declaration in every file */
#endif
