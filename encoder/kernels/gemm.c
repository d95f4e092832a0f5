/*
** gemm.c: large products, by OpenBLAS where that is faster than the set's own
** linear. The only file that includes cblas.h; BERT_NO_BLAS builds without.
**
** Our own threads call OpenBLAS, each product on one thread. It takes a build
** of OpenBLAS with threads to allow that: Debian's serial build gives wrong
** products when two threads call it at once (README.md has the experiment). A
** build with threads starts one per core when it is loaded, which then belong
** to no one; below it is told to start none.
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

/* OpenBLAS reads its environment variables through these functions, in a
** constructor that runs when the library is loaded: too early to call
** openblas_set_num_threads, and a variable set for it would be seen by the
** whole process. Defined here they take the place of its own in a static link,
** so that our copy has one thread and prints nothing, and a copy of the host
** keeps its settings. They are weak: an OpenBLAS that needs more of them brings
** its own, and then only starts idle threads. */
#define INSTEAD_OF_ENVIRONMENT(name, value)                                                        \
  int name(void);                                                                                  \
  __attribute__((weak)) int name(void) {                                                           \
    return value;                                                                                  \
  }
INSTEAD_OF_ENVIRONMENT(openblas_num_threads_env, 1)
INSTEAD_OF_ENVIRONMENT(openblas_goto_num_threads_env, 0)
INSTEAD_OF_ENVIRONMENT(openblas_omp_num_threads_env, 0)
INSTEAD_OF_ENVIRONMENT(openblas_omp_adaptive_env, 0)
INSTEAD_OF_ENVIRONMENT(openblas_block_factor, 0)
INSTEAD_OF_ENVIRONMENT(openblas_thread_timeout, 0)
INSTEAD_OF_ENVIRONMENT(openblas_verbose, 0)
void openblas_read_env(void);
__attribute__((weak)) void openblas_read_env(void) {}

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
  return strcmp(set->name, "scalar") == 0 && rows >= 6;
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

/* An OpenBLAS call holds one of a fixed number of buffers, twice as many as the
** threads it was built for and at least 50; when they run out it prints and
** crashes. Who would be one too many computes for himself. */
enum { BLAS_CALLERS = 32 };
static atomic_int callers;

void gemm_linear(const kernels *set, const float *x, size_t ldx, const float *w, size_t ldw,
                 const float *bias, float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  if (!prefers_blas(set, rows) || !fits_blas(rows, cols, depth, ldx, ldw, ldy)) {
    set->linear(x, ldx, w, ldw, bias, y, ldy, rows, cols, depth);
    return;
  }
  if (atomic_fetch_add(&callers, 1) < BLAS_CALLERS) {
    blas_linear(x, ldx, w, ldw, bias, y, ldy, rows, cols, depth);
  } else {
    set->linear(x, ldx, w, ldw, bias, y, ldy, rows, cols, depth);
  }
  atomic_fetch_sub(&callers, 1);
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
