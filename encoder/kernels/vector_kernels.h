/*
** vector_kernels.h: the operations of kernels.h in terms of a small vocabulary
** of vectors. A set_*.h defines it in one set of instructions; kernels_*.c includes
** that and this file, which gives the set's table.
**
** The vocabulary:
**   V                      a vector of LANES floats
**   v_load, v_store        LANES floats at any address
**   v_load_part(p, n)      n < LANES floats; the other lanes 0
**   v_load_part_or(p, n, fill)  the other lanes as in fill
**   v_store_part(p, v, n)  n < LANES floats; neither touches memory past p + n
**   v_set1 v_add v_sub v_mul v_div v_abs v_copysign(size, sign)
**   v_fma(a, b, c)         a b + c;  v_fnma: c - a b
**   FUSED                  1, or not defined, where these and d_fma round once; 0
**                          where the product is rounded, too. Then also: d_set1,
**                          d_mul, d_div, and v_join(low, high), two D rounded to a V
**   v_min, v_max (a, b)    b, or NaN, where either is NaN
**   v_max_or_nan(a, b)     NaN where either is NaN
**   v_ldexp(x, n)          x 2^n, rounded once; x in [1/2, 2], |n| <= 152 whole
**   v_if_less(a, b, y, z)  y where a < b, else z (also for NaN)
**   v_sum, v_max_lane      over the lanes, to a float
**   CHAINS                 4 or 8, chains of a block of linear
**   v_set_chains(p)        CHAINS numbers, repeated
**   v_load_fours(p, stride)   4 numbers from each of LANES / 4 places
**   v_load_lines(p, stride, V out[STEP / CHAINS])   STEP numbers, 4 or 8, from each of
**                          LANES / CHAINS places; out has CHAINS of each first, then the next
**   v_load_sums(p, more)   with four chains, v_load(p); with eight, of the columns at p and of
**                          those at p + more: chains i and i + 4 added
**   v_turn_fours(V v[4])   the 4 by 4 numbers that lie in the same four lanes are turned
**   v_from_half, v_from_bfloat16 (const uint16_t *)   LANES numbers
**   D, d_zero, d_add, d_sub, d_fma, d_sum, d_low(V), d_high(V)
**                          doubles: the lower and the upper half of a vector
**   I16, I32               CODES numbers of 16 bits; sums in 32 bits, in lanes of
**                          the set's choice
**   c_load_query(p), c_load(p)   CODES numbers of int16 or of int8
**   s_zero, s_add(s, a, b) s and the products of a and b, exact
**   s_sum4(I32[4], out)     over the lanes of four, to out[4]
**   TILE_ROWS, TILE_VECTORS   rows, at most 8, and vectors, at most 3, of a tile of
**                          linear with many rows, by the number of registers
**   FEW_ROWS               rows of a tile of linear with few, 13 or 16: as many sums as leave
**                          registers for a number of x and some of w
**   FEW_SUMS               sums of a tile that has them for two or four vectors of columns
**   OUTER_ROWS             queries of a tile of attention, 6 or 12
** Names here are static: each set has its own copy of everything.
*/
#include <math.h>
#include <string.h>

#ifndef FUSED
#define FUSED 1
#endif

#include "vector_turn.h"

/* The operations, which use it. */
#include "vector_attention.h"
#include "vector_codes.h"
#include "vector_linear.h"
#include "vector_math.h"
#include "vector_rows.h"

/* FLOAT32_OF as in kernels.h; the packed products are from packed_*.c. */
#define VECTOR_KERNELS(NAME, SUPPORTED, FLOAT32_OF, PACK_ROWS, PACKED_LINEAR)                      \
  {                                                                                                \
    .name = NAME, .supported = SUPPORTED, .float32_of = FLOAT32_OF, .pack_rows = PACK_ROWS,        \
    .packed_linear = PACKED_LINEAR, .linear = linear, .linear_add = linear_add,                    \
    .activate = activate, .layer_norm = layer_norm, .attention_scores = attention_scores,          \
    .softmax = softmax, .attention_context = attention_context, .add_scaled = add_scaled,          \
    .maximum = maximum, .multiply = multiply, .rotate = rotate, .dot = dot,                        \
    .squared_distance = squared_distance, .dot_codes = dot_codes, .from_half = from_half,          \
    .from_bfloat16 = from_bfloat16,                                                                \
  }
