/*
** gemm.c: products by OpenBLAS, for the set that has nothing better. The only file
** that includes cblas.h; BERT_NO_BLAS builds without.
**
** OpenBLAS adds the terms of an element in an order that depends on the sizes of the
** product and on where in it the element lies, and the order differs from processor
** to processor. So it is called with blocks of one width and depth, and of a few
** heights of which a test at the first call has shown that here they give the same
** bits in every place. README.md has the experiments.
**
** Our own threads call OpenBLAS, each product on one thread. It takes a build
** of OpenBLAS with threads to allow that: Debian's serial build gives wrong
** products when two threads call it at once (README.md has the experiment). A
** build with threads starts one per core when it is loaded, which then belong
** to no one; below it is told to start none.
*/
#include "kernel_sets.h"

#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#ifndef BERT_NO_BLAS
#include <cblas.h>
#endif

/* -1: by set; 0: never; 1: whatever the set. */
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

/* ---- One block ------------------------------------------------------------- */

enum { BLOCK_COLS = 32, BLOCK_DEPTH = 128, HEIGHTS = 3, MOST_ROWS = 32 };
static const size_t heights[HEIGHTS] = {8, 16, MOST_ROWS};

/* What lies beyond the ends of x and w is 0, in copies of the blocks there. */
typedef struct block_room {
  float x[MOST_ROWS * BLOCK_DEPTH];  /* [height, BLOCK_DEPTH] */
  float w[BLOCK_COLS * BLOCK_DEPTH]; /* [BLOCK_COLS, BLOCK_DEPTH] */
  float y[MOST_ROWS * BLOCK_COLS];   /* [height, BLOCK_COLS] */
} block_room;

/* y[height, BLOCK_COLS] += x[height, BLOCK_DEPTH; ldx] w[BLOCK_COLS, BLOCK_DEPTH; ldw]^T */
static void add_block(size_t height, const float *x, size_t ldx, const float *w, size_t ldw,
                      float *y) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)height, BLOCK_COLS, BLOCK_DEPTH, 1.0f,
              x, (int)ldx, w, (int)ldw, 1.0f, y, BLOCK_COLS);
}

/* ---- The heights that agree ------------------------------------------------- */

/* Two orders of summation give different bits for 5 of 6 random sums: so many of them
** tell any two orders apart. */
enum { TRIALS = 16 };

/* Knuth's generator of 32 bits, as a number in [-1, 1). */
static float next_number(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(int32_t)*state * 0x1p-31f;
}

/* Makes all rows of x alike, all of w, and all numbers of y. */
static void make_alike(block_room *room, uint32_t *state) {
  for (size_t d = 0; d < BLOCK_DEPTH; d++) {
    float x = next_number(state), w = next_number(state);
    for (size_t r = 0; r < MOST_ROWS; r++) room->x[r * BLOCK_DEPTH + d] = x;
    for (size_t c = 0; c < BLOCK_COLS; c++) room->w[c * BLOCK_DEPTH + d] = w;
  }
  room->y[0] = next_number(state);
  for (size_t i = 1; i < MOST_ROWS * BLOCK_COLS; i++) room->y[i] = room->y[0];
}

/* The heights at which every element had the bits of the first one of the smallest:
** bit i stands for heights[i]; 0 when that one itself did not. */
static int find_heights(block_room *room) {
  uint32_t state = 1;
  int found = (1 << HEIGHTS) - 1;
  for (int trial = 0; trial < TRIALS; trial++) {
    float y[MOST_ROWS * BLOCK_COLS], first = 0.0f;
    make_alike(room, &state);
    for (int h = 0; h < HEIGHTS; h++) {
      memcpy(y, room->y, sizeof y);
      add_block(heights[h], room->x, BLOCK_DEPTH, room->w, BLOCK_DEPTH, y);
      if (h == 0) first = y[0];
      for (size_t i = 0; i < heights[h] * BLOCK_COLS; i++)
        if (memcmp(&y[i], &first, sizeof first) != 0) found &= ~(1 << h);
    }
  }
  return found & 1 ? found : 0;
}

/* An OpenBLAS call holds one of a fixed number of buffers, twice as many as the
** threads it was built for and at least 50; when they run out it prints and
** crashes. Who would be one too many waits. */
enum { BLAS_CALLERS = 32 };
static atomic_int callers;

static void enter_blas(void) {
  while (atomic_fetch_add(&callers, 1) >= BLAS_CALLERS) {
    atomic_fetch_sub(&callers, 1);
    sched_yield();
  }
}

static void leave_blas(void) {
  atomic_fetch_sub(&callers, 1);
}

/* -1 before the first call; threads that make it at once find the same. */
static atomic_int usable_heights = -1;

static int usable(void) {
  int found = atomic_load(&usable_heights);
  if (found >= 0) return found;
  block_room room;
  enter_blas();
  found = find_heights(&room);
  leave_blas();
  atomic_store(&usable_heights, found);
  return found;
}

/* ---- Products in blocks ------------------------------------------------------- */

/* The arguments of gemm_linear. */
typedef struct product {
  const float *x, *w, *bias;
  float *y;
  size_t ldx, ldw, ldy, rows, cols, depth;
} product;

/* The block [height, BLOCK_DEPTH] that starts with a[rows, depth; *ld]: there, or
** filled up with zeros in room. */
static const float *whole_block(const float *a, size_t *ld, size_t rows, size_t depth,
                                size_t height, float *room) {
  if (rows == height && depth == BLOCK_DEPTH && *ld >= BLOCK_DEPTH && *ld <= INT_MAX) return a;
  memset(room, 0, height * BLOCK_DEPTH * sizeof *room);
  for (size_t r = 0; r < rows; r++)
    memcpy(room + r * BLOCK_DEPTH, a + r * *ld, depth * sizeof *room);
  *ld = BLOCK_DEPTH;
  return room;
}

/* y[rows, cols] of p from row r and column c: the bias, to which the products of
** BLOCK_DEPTH terms after BLOCK_DEPTH terms are added. */
static void make_block(const product *p, size_t height, size_t r, size_t c, block_room *room) {
  size_t rows = least(p->rows - r, height), cols = least(p->cols - c, BLOCK_COLS);
  memset(room->y, 0, sizeof room->y);
  for (size_t i = 0; i < rows && p->bias != NULL; i++)
    memcpy(room->y + i * BLOCK_COLS, p->bias + c, cols * sizeof *room->y);
  for (size_t d = 0; d < p->depth; d += BLOCK_DEPTH) {
    size_t depth = least(p->depth - d, BLOCK_DEPTH), ldx = p->ldx, ldw = p->ldw;
    const float *x = whole_block(p->x + r * ldx + d, &ldx, rows, depth, height, room->x);
    const float *w = whole_block(p->w + c * ldw + d, &ldw, cols, depth, BLOCK_COLS, room->w);
    add_block(height, x, ldx, w, ldw, room->y);
  }
  for (size_t i = 0; i < rows; i++)
    memcpy(p->y + (r + i) * p->ldy + c, room->y + i * BLOCK_COLS, cols * sizeof *room->y);
}

/* The tallest usable block that `rows` rows fill, or the smallest. */
static size_t next_height(int found, size_t rows) {
  int h = HEIGHTS - 1;
  while (h > 0 && (!(found >> h & 1) || heights[h] > rows)) h--;
  return heights[h];
}

static void blas_linear(const product *p, int found) {
  block_room room;
  enter_blas();
  for (size_t c = 0; c < p->cols; c += BLOCK_COLS) {
    size_t height = 0;
    for (size_t r = 0; r < p->rows; r += height) {
      height = next_height(found, p->rows - r);
      make_block(p, height, r, c, &room);
    }
  }
  leave_blas();
}

/* The vector sets have a linear of their own that is as fast or faster; see the
** tables in README.md. */
static int prefers_blas(const kernels *set) {
  int use = atomic_load(&use_blas);
  return use >= 0 ? use : strcmp(set->name, "scalar") == 0;
}

/* However small the product: a text alone must take the way of a batch. */
void gemm_linear(const kernels *set, const float *x, size_t ldx, const float *w, size_t ldw,
                 const float *bias, float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  int found = prefers_blas(set) ? usable() : 0;
  if (found != 0)
    blas_linear(&(product){x, w, bias, y, ldx, ldw, ldy, rows, cols, depth}, found);
  else
    set->linear(x, ldx, w, ldw, bias, y, ldy, rows, cols, depth);
}

int gemm_adds(const kernels *set) {
  return set->linear_add != NULL && !(prefers_blas(set) && usable() != 0);
}

const char *gemm_describe(void) {
  return openblas_get_config();
}

#else

void gemm_linear(const kernels *set, const float *x, size_t ldx, const float *w, size_t ldw,
                 const float *bias, float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  set->linear(x, ldx, w, ldw, bias, y, ldy, rows, cols, depth);
}

int gemm_adds(const kernels *set) {
  return set->linear_add != NULL;
}

const char *gemm_describe(void) {
  return "none";
}

#endif
