/*
** vector_linear.h: y = x w^T + bias, written once for all sets; see
** vector_kernels.h.
**
** An element is the sum of its blocks of MOST_DEPTH terms, a block that of its four
** chains, all added in their order. Chain i has the terms i, i + 4, i + 8, … of the
** block, as fused steps in that order. With eight chains they are 8 apart, and chains i and
** i + 4 are added before the four. All forms below compute just that, so an element
** depends on its row of x, its row of w and depth alone, whichever form and tile it
** falls in.
**
** w lies along depth. Chains are what lets a vector take CHAINS numbers of depth as
** they lie, from LANES / CHAINS columns:
**   vector_few.h      few rows: so it does, and chains are added at the end
**   vector_panel.h    many rows: w is turned into a panel, once for all rows, and a lane
**                     is a column; one chain after the other
*/

enum { MOST_DEPTH = LINEAR_BLOCK, CACHE_LINE = 16, TILE_COLS = TILE_VECTORS * LANES };

/* Terms of the block that begins at term d. */
INLINE size_t block_depth(size_t depth, size_t d) {
  return least(depth - d, MOST_DEPTH);
}

/* Rows of x are reached from every third of them: for so many pointers there are registers.
** Row r of x[R; ldx] is from[r / 3] + r % 3 * ldx. */
#define THIRDS(R) (((R) + 2) / 3)
INLINE void third_rows(const size_t R, const float *x, size_t ldx, const float **from) {
  UNROLL for (size_t i = 0; i < THIRDS(R); i++) from[i] = x + 3 * i * ldx;
}

#include "vector_few.h"
#include "vector_panel.h"

static void linear(const float *x, size_t ldx, const float *w, size_t ldw, const float *bias,
                   float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  size_t done = rows > 0 && rows <= FEW_MOST && depth > 0 ? cols / LANES * LANES : 0;
  if (done > 0) few_rows(x, ldx, w, ldw, bias, y, ldy, rows, done, depth);
  many_rows(x, ldx, w + done * ldw, ldw, bias != NULL ? bias + done : NULL, y + done, ldy, rows,
            cols - done, depth, 0);
}

static void linear_add(const float *x, size_t ldx, const float *w, size_t ldw, const float *bias,
                       float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  many_rows(x, ldx, w, ldw, bias, y, ldy, rows, cols, depth, 1);
}
