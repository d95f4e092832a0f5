/*
** kernels_sse2.c: the set of x86-64 processors without AVX2.
*/
#include "kernel_sets.h"

#ifdef BERT_KERNELS_X86

#include "set_sse2.h"

/* 12 sums, a factor, a product that waits to be added, and two of the three vectors, of
** which the compiler reads the third from memory again: 6 rows by 2 vectors leave none in
** memory but repeat more factors in all lanes, and are 9% slower. */
#define TILE_ROWS 4
#define TILE_VECTORS 3
#define FEW_SUMS 12
#define FEW_ROWS 13
#define OUTER_ROWS 6

static int always(void) {
  return 1;
}

#include "vector_kernels.h"

const kernels kernels_sse2 =
    VECTOR_KERNELS("sse2", always, NULL, pack_rows_sse2, packed_linear_sse2);

#else
typedef int no_sse2_here; /* ISO C wants a declaration in every file */
#endif
