/*
** packed_512.h: the tiles of the packed products in AVX-512, for the sets that
** differ in how they multiply; included after set_avx512.h and TARGET_BEGIN.
*/
#include "packed_vectors.h"

/* Tiles of 1 to 4, 7 and 12 rows. */
#define TILES_TO_4(T, C) T(1, C) T(2, C) T(3, C) T(4, C)
#define TILES_TO_7(T, C) TILES_TO_4(T, C) T(5, C) T(6, C) T(7, C)
#define TILES_TO_12(T, C) TILES_TO_7(T, C) T(8, C) T(9, C) T(10, C) T(11, C) T(12, C)

/* For instructions that multiply groups as they are. Eight rows of 3 vectors would
** fit too, but their addresses do not. */
#define TILES_OF_GROUPS(T) TILES_TO_7(T, 1) TILES_TO_7(T, 2) TILES_TO_7(T, 3) TILES_TO_4(T, 4)
static const packed_shape shapes_of_groups[] = {{4, 4, 4}, {SIZE_MAX, 7, 3}};
