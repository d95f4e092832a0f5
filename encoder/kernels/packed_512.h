/*
** packed_512.h: what packed_vectors.h needs beside set_avx512.h, for the sets
** that differ in how they multiply; included after their target pragma.
*/
#include <string.h>

#include "set_avx512.h"

typedef __v16si I; /* as __m512i, gcc 12 would copy sums at each step */

/* As packed.c has it. */
INLINE void v_store_bf16(uint16_t *p, V x) {
  __m512i bits = _mm512_castps_si512(x);
  __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  __m512i nan = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  __m512i all = _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan);
  _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(all, 16)));
}

INLINE void v_store_codes(uint8_t *p, V x, int32_t zero) {
  __m512i codes = _mm512_cvt_roundps_epi32(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  codes = _mm512_add_epi32(codes, _mm512_set1_epi32(zero));
  _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(codes));
}

INLINE V v_from_sums(I sums, const int32_t *columns, int32_t zero) {
  __m512i excess = _mm512_mullo_epi32(_mm512_loadu_si512(columns), _mm512_set1_epi32(zero));
  return _mm512_cvtepi32_ps(_mm512_sub_epi32((__m512i)sums, excess));
}

#include "packed_vectors.h"

/* Tiles of 1 to 4, 7 and 12 rows. */
#define TILES_TO_4(T, C) T(1, C) T(2, C) T(3, C) T(4, C)
#define TILES_TO_7(T, C) TILES_TO_4(T, C) T(5, C) T(6, C) T(7, C)
#define TILES_TO_12(T, C) TILES_TO_7(T, C) T(8, C) T(9, C) T(10, C) T(11, C) T(12, C)

/* For instructions that multiply groups as they are. Eight rows of 3 vectors would
** fit too, but their addresses do not. */
#define TILES_OF_GROUPS(T) TILES_TO_7(T, 1) TILES_TO_7(T, 2) TILES_TO_7(T, 3) TILES_TO_4(T, 4)
static const packed_shape shapes_of_groups[] = {{4, 4, 4}, {SIZE_MAX, 7, 3}};
