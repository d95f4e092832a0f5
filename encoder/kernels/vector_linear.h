/*
** vector_linear.h: y = x w^T + bias, written once for all sets; see
** vector_kernels.h.
**
** An element is the sum of its blocks of block_depth(depth) terms, added in their
** order, and a block is one chain of fused steps in the order of its terms. No sum
** ever runs over lanes. All forms below compute just that, so an element depends on
** its row of x, its row of w and depth alone, whichever form and tile it falls in.
**
** w lies along depth, and lanes are columns of y, so that it has to be turned:
**   vector_few.h      few rows: in registers
**   vector_panel.h    many rows: into a panel, once for all rows
**   vector_upright.h  in between, with short vectors: x is turned, lanes are rows
*/

enum { MOST_DEPTH = 96, LINE = 16, TILE_COLS = TILE_VECTORS * LANES };

/* Terms of a block: a quarter of all, in whole lines, so that even short sums come
** in parts, which keeps their error small. At most MOST_DEPTH, so that the panel
** stays in the first-level cache; from 96 to 384 all are as fast with many rows. */
INLINE size_t block_depth(size_t depth) {
  size_t lines = (depth / 4 + LINE - 1) / LINE;
  return lines == 0 ? LINE : least(lines * LINE, MOST_DEPTH);
}

/* Asks for a[rows, LINE; lda] ahead of its use. Weights come from memory where
** few rows of x pass, and the processor's own prefetchers stop at the end of each
** page, which holds two or three rows. */
INLINE void fetch_rows(const float *a, size_t lda, size_t rows) {
  for (size_t r = 0; r < rows; r++) __builtin_prefetch(a + r * lda, 0, 2);
}

#ifndef UPRIGHT_LEAST
#define UPRIGHT_LEAST (FEW_MOST + 1)
#endif

#include "vector_few.h"
#include "vector_panel.h"
#if FEW_MOST < 16
#include "vector_upright.h"
#endif

/* Does as many columns as a form for few rows can, from the first, and says how many. */
static size_t linear_few(const float *x, size_t ldx, const float *w, size_t ldw, const float *bias,
                         float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  size_t done = 0;
  if (rows <= FEW_MOST && depth > 0 && depth % 4 == 0) {
    done = cols / LANES * LANES;
    few_rows(x, ldx, w, ldw, bias, y, ldy, rows, done, depth);
#if FEW_MOST < 16
  } else if (rows >= UPRIGHT_LEAST && rows <= UPRIGHT_ROWS && depth > 0) {
    done = cols / UPRIGHT_COLS * UPRIGHT_COLS;
    upright_rows(x, ldx, w, ldw, bias, y, ldy, rows, done, depth);
#endif
  }
  return done;
}

static void linear(const float *x, size_t ldx, const float *w, size_t ldw, const float *bias,
                   float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  size_t done = linear_few(x, ldx, w, ldw, bias, y, ldy, rows, cols, depth);
  many_rows(x, ldx, w + done * ldw, ldw, bias != NULL ? bias + done : NULL, y + done, ldy, rows,
            cols - done, depth);
}
