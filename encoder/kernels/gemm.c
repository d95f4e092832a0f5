/*
** gemm.c: large products, by OpenBLAS where that is faster than the set's own
** linear. The only file that includes cblas.h; BERT_NO_BLAS builds without.
*/
#include "kernel_sets.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#ifndef BERT_NO_BLAS
#include <cblas.h>
#endif

/* -1: by set and size; 0: never; 1: whenever the sizes allow. */
static atomic_int use_blas = -1;

void gemm_use_blas(int use) {
  atomic_store(&use_blas, use);
}

#ifndef BERT_NO_BLAS

static int fits_blas(size_t rows, size_t cols, size_t depth, size_t ldx, size_t ldw, size_t ldy) {
  size_t limit = INT_MAX;
  return rows > 0 && cols > 0 && depth > 0 && rows <= limit && cols <= limit && depth <= limit &&
         ldx <= limit && ldw <= limit && ldy <= limit;
}

/* Whether OpenBLAS is the better choice for this set. The vector sets have a
** linear of their own that is as fast; see the table in README.md. */
static int prefers_blas(const kernels *set, size_t rows) {
  int use = atomic_load(&use_blas);
  if (use >= 0) return use;
  return strcmp(set->name, "scalar") == 0 && rows >= 4;
}

/* y starts as the bias, which the product is then added to. */
static void blas_linear(const float *x, size_t ldx, const float *w, size_t ldw, const float *bias,
                        float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  if (bias != NULL) {
    for (size_t r = 0; r < rows; r++) memcpy(y + r * ldy, bias, cols * sizeof(float));
  }
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)cols, (int)depth, 1.0f, x,
              (int)ldx, w, (int)ldw, bias != NULL ? 1.0f : 0.0f, y, (int)ldy);
}

void gemm_linear(const kernels *set, const float *x, size_t ldx, const float *w, size_t ldw,
                 const float *bias, float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  if (prefers_blas(set, rows) && fits_blas(rows, cols, depth, ldx, ldw, ldy)) {
    blas_linear(x, ldx, w, ldw, bias, y, ldy, rows, cols, depth);
  } else {
    set->linear(x, ldx, w, ldw, bias, y, ldy, rows, cols, depth);
  }
}

const char *gemm_describe(void) {
  return openblas_get_config();
}

#else

void gemm_linear(const kernels *set, const float *x, size_t ldx, const float *w, size_t ldw,
                 const float *bias, float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  set->linear(x, ldx, w, ldw, bias, y, ldy, rows, cols, depth);
}

const char *gemm_describe(void) {
  return "none";
}

#endif
