/*
** packed_widened.h: the packed products of instructions that take neither bf16 nor
** int8: the terms of a group become floats or int16 first. Who includes it includes
** packed_vectors.h before, and defines
**   WIDENED_TILES(T)       T(R, C) for each tile, see packed_tiles.h
**   widened_shapes         packed_shape[]
** Its words, beside those of packed_vectors.h:
**   v_lower(W)             as v_upper, of the lower halves
**   H                      2 LANES int16
**   h_even(W), h_odd(W)    the codes with even or odd numbers, signed
**   h_row_even, h_row_odd  the same of a row, whose codes are unsigned where
**                          ROW_OFFSET is 0
**   i_add(s, a, b, c, d)   s and the products a b + c d of two neighbours, exact
*/

/* ---- bf16: the terms with even and odd numbers, as floats ------------------- */

/* Rows are wide: they are floats already, for each of their groups meets many columns. */
enum { bf16_ROW_STEP = 2 * sizeof(float) };

typedef V bf16_sum;
typedef struct bf16_terms {
  V even, odd;
} bf16_terms;

INLINE bf16_sum bf16_zero(void) {
  return v_set1(0.0f);
}

INLINE bf16_terms bf16_columns(const char *p) {
  W pairs = w_load(p);
  return (bf16_terms){v_lower(pairs), v_upper(pairs)};
}

INLINE bf16_terms bf16_row(const char *p) {
  float pair[2];
  memcpy(pair, p, sizeof pair);
  return (bf16_terms){v_set1(pair[0]), v_set1(pair[1])};
}

INLINE bf16_sum bf16_add(bf16_sum sum, bf16_terms x, bf16_terms w) {
  return v_fma(x.odd, w.odd, v_fma(x.even, w.even, sum));
}

#define bf16_TILES WIDENED_TILES
#define bf16_shapes widened_shapes

#define PRODUCT bf16
#include "packed_tiles.h"
#undef PRODUCT

/* ---- int8: the terms with even and odd numbers, as int16 -------------------- */

enum { int8_ROW_STEP = 4 };
typedef I int8_sum;
typedef struct int8_terms {
  H even, odd;
} int8_terms;

INLINE int8_sum int8_zero(void) {
  return (I){0};
}

INLINE int8_terms int8_columns(const char *p) {
  W codes = w_load(p);
  return (int8_terms){h_even(codes), h_odd(codes)};
}

INLINE int8_terms int8_row(const char *p) {
  W codes = int8_word(p);
  return (int8_terms){h_row_even(codes), h_row_odd(codes)};
}

INLINE int8_sum int8_add(int8_sum sum, int8_terms x, int8_terms w) {
  return i_add(sum, x.even, w.even, x.odd, w.odd);
}

#define int8_TILES WIDENED_TILES
#define int8_shapes widened_shapes

#define PRODUCT int8
#include "packed_tiles.h"
#undef PRODUCT

/* ---- the operations --------------------------------------------------------- */

/* Defines both by the names that kernel_sets.h declares. */
#define WIDENED_OPERATIONS(PACK_ROWS, PACKED_LINEAR)                                               \
  void PACK_ROWS(packed_precision p, const float *x, size_t ldx, size_t rows, size_t depth,        \
                 void *block, packed_rows *out) {                                                  \
    pack_rows(p, 1, x, ldx, rows, depth, block, out);                                              \
  }                                                                                                \
                                                                                                   \
  void PACKED_LINEAR(const packed_rows *x, const packed_weights *w, size_t first, size_t last,     \
                     const float *bias, float *y, size_t ldy) {                                    \
    packed_job job = {x, w, last, bias, y, ldy};                                                   \
    if (w->precision == PRECISION_BF16)                                                            \
      bf16_linear(&job, first);                                                                    \
    else                                                                                           \
      int8_linear(&job, first);                                                                    \
  }
