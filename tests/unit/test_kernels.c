/*
** test_kernels.c: every set of kernels that is compiled in goes through all of
** kernel_checks.h; then dispatch, and gemm_linear with and without OpenBLAS,
** from many threads at once.
*/
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "dice.h"
#include "kernel_checks.h"

/* ---- the sets ------------------------------------------------------------ */

typedef struct set_check {
  const kernels *set;
  const kernel_check *check;
} set_check;

static void run_check(void **state) {
  const set_check *pair = *state;
  assert_int_equal(pair->check->run(pair->set), 0);
}

/* ---- dispatch ------------------------------------------------------------ */

static void names_choose_sets(void **state) {
  size_t count = 0;
  for (const kernels *const *set = kernels_all(); *set != NULL; set++, count++) {
    int runs = (*set)->supported();
    assert_ptr_equal(kernels_find((*set)->name), runs ? *set : NULL);
    assert_int_equal(kernels_choose((*set)->name), runs);
    if (runs) assert_ptr_equal(kernels_current(), *set);
  }
  assert_true(count >= 1);
  assert_string_equal(kernels_all()[count - 1]->name, "scalar");
  assert_true(kernels_all()[count - 1]->supported());
  assert_null(kernels_find("no such set"));
  assert_ptr_equal(kernels_find("Scalar"), kernels_find("scalar"));
  const kernels *before = kernels_current();
  assert_int_equal(kernels_choose("no such set"), 0);
  assert_ptr_equal(kernels_current(), before);
  assert_int_equal(kernels_choose(NULL), 1);
  assert_ptr_equal(kernels_current(), kernels_find(NULL));
}

/* The name of the set chosen at the first call under BERTSQL_KERNELS=value, in a
** child because the choice is made once; 1 when it is `want`. */
static int first_choice_is(const char *value, const char *want) {
  pid_t child = fork();
  if (child == 0) {
    setenv("BERTSQL_KERNELS", value, 1);
    _exit(strcmp(kernels_current()->name, want) == 0 ? 0 : 1);
  }
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* Runs before anything else has chosen. */
static void environment_chooses(void **state) {
  assert_true(first_choice_is("scalar", "scalar"));
  assert_true(first_choice_is("SCALAR", "scalar"));
  assert_true(first_choice_is("no such set", kernels_find(NULL)->name));
  assert_true(first_choice_is("", kernels_find(NULL)->name));
}

/* ---- gemm ---------------------------------------------------------------- */

enum { ROWS = 40, COLS = 70, DEPTH = 200 };

typedef struct product {
  float x[ROWS * DEPTH], w[COLS * DEPTH], bias[COLS];
  float own[ROWS * COLS], blas[ROWS * COLS];
} product;

static product *product_make(void) {
  product *p = malloc(sizeof *p);
  assert_non_null(p);
  for (size_t i = 0; i < ROWS * DEPTH; i++) p->x[i] = (float)check_random();
  for (size_t i = 0; i < COLS * DEPTH; i++) p->w[i] = (float)check_random();
  for (size_t i = 0; i < COLS; i++) p->bias[i] = (float)check_random();
  return p;
}

static double largest_difference(const float *a, const float *b, size_t count) {
  double largest = 0;
  for (size_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)a[i] - (double)b[i]));
  return largest;
}

static void both_ways_agree(void **state) {
  static const size_t sizes[][3] = {
      {1, 1, 1},   {1, COLS, DEPTH}, {ROWS, 1, 3}, {ROWS, COLS, DEPTH},
      {13, 33, 0}, {0, 5, 5},        {5, 0, 5}};
  product *p = product_make();
  for (const kernels *const *set = kernels_all(); *set != NULL; set++) {
    if (!(*set)->supported() || (*set)->float32_of != NULL) continue;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      const float *bias = i % 2 == 0 ? p->bias : NULL;
      size_t rows = sizes[i][0], cols = sizes[i][1], depth = sizes[i][2];
      memset(p->own, 0, sizeof p->own);
      memset(p->blas, 0, sizeof p->blas);
      gemm_use_blas(0);
      gemm_linear(*set, p->x, DEPTH, p->w, DEPTH, bias, p->own, COLS, rows, cols, depth);
      gemm_use_blas(1);
      gemm_linear(*set, p->x, DEPTH, p->w, DEPTH, bias, p->blas, COLS, rows, cols, depth);
      assert_true(largest_difference(p->own, p->blas, ROWS * COLS) <= 1e-5);
      gemm_use_blas(-1);
      gemm_linear(*set, p->x, DEPTH, p->w, DEPTH, bias, p->blas, COLS, rows, cols, depth);
      assert_true(largest_difference(p->own, p->blas, ROWS * COLS) <= 1e-5);
    }
  }
  free(p);
}

/* Compares y[ROWS, COLS] of p from row `row` and column `col` on, and before them, with
** the products made apart. */
static void compare_cut(const kernels *set, const product *p, const float *whole, size_t row,
                        size_t col) {
  static float y[ROWS * COLS];
  memset(y, 0xff, sizeof y);
  size_t rows[] = {0, row, ROWS}, cols[] = {0, col, COLS};
  for (size_t i = 0; i < 2; i++) {
    for (size_t j = 0; j < 2; j++) {
      size_t r = rows[i], c = cols[j];
      gemm_linear(set, p->x + r * DEPTH, DEPTH, p->w + c * DEPTH, DEPTH, p->bias + c,
                  y + r * COLS + c, COLS, rows[i + 1] - r, cols[j + 1] - c, DEPTH);
    }
  }
  assert_memory_equal(y, whole, sizeof y);
}

/* Where the sums are OpenBLAS's, too: rows that share a call, columns that a thread
** takes. */
static void any_split_gives_the_same_bits(void **state) {
  product *p = product_make();
  for (const kernels *const *set = kernels_all(); *set != NULL; set++) {
    if (!(*set)->supported() || (*set)->float32_of != NULL) continue;
    for (int use = -1; use <= 1; use += 2) {
      gemm_use_blas(use);
      gemm_linear(*set, p->x, DEPTH, p->w, DEPTH, p->bias, p->own, COLS, ROWS, COLS, DEPTH);
      for (size_t row = 0; row <= ROWS; row++) compare_cut(*set, p, p->own, row, row * 7 % COLS);
      for (size_t col = 0; col <= COLS; col += 16) compare_cut(*set, p, p->own, ROWS, col);
    }
  }
  gemm_use_blas(-1);
  free(p);
}

/* Returns how many products are not what one thread alone gets. */
static void *repeat_product(void *user) {
  product *p = user;
  intptr_t wrong = 0;
  float *y = malloc(sizeof p->blas);
  if (y == NULL) return (void *)-1;
  for (int i = 0; i < dice_rounds(100, 3); i++) {
    gemm_linear(kernels_find("scalar"), p->x, DEPTH, p->w, DEPTH, p->bias, y, COLS, ROWS, COLS,
                DEPTH);
    wrong += memcmp(y, p->blas, sizeof p->blas) != 0;
  }
  free(y);
  return (void *)wrong;
}

/* OpenBLAS is called from several threads at once: it must be a build that
** allows that, and more threads than it has buffers must not crash it. */
static void blas_in_many_threads(void **state) {
  enum { THREADS = 200 };
  pthread_t threads[THREADS];
  product *p = product_make();
  const kernels *set = kernels_find("scalar");
  gemm_use_blas(0);
  gemm_linear(set, p->x, DEPTH, p->w, DEPTH, p->bias, p->own, COLS, ROWS, COLS, DEPTH);
  gemm_use_blas(1);
  gemm_linear(set, p->x, DEPTH, p->w, DEPTH, p->bias, p->blas, COLS, ROWS, COLS, DEPTH);
  assert_memory_not_equal(p->own, p->blas, sizeof p->own); /* so it was OpenBLAS */
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, repeat_product, p), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *wrong;
    assert_int_equal(pthread_join(threads[i], &wrong), 0);
    assert_ptr_equal(wrong, NULL);
  }
  gemm_use_blas(-1);
  free(p);
}

static size_t threads_of_this_process(void) {
  size_t count = 0;
  DIR *tasks = opendir("/proc/self/task");
  assert_non_null(tasks);
  for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}

/* A threaded OpenBLAS would start one per core before main. */
static void blas_starts_no_threads(void **state) {
#ifdef __SANITIZE_THREAD__
  assert_in_range(threads_of_this_process(), 1, 2); /* one may be the sanitizer's */
#else
  assert_int_equal(threads_of_this_process(), 1);
#endif
}

static void blas_describes_itself(void **state) {
  assert_non_null(strstr(gemm_describe(), "OpenBLAS"));
}

/* ---- all ----------------------------------------------------------------- */

enum { MOST = 256 };
static struct CMUnitTest tests[MOST];
static size_t test_count;

static void add_checks(const kernels *set, const kernel_check *check) {
  static set_check pairs[MOST];
  static char names[MOST][80];
  for (; check->name != NULL && test_count < MOST; check++, test_count++) {
    char *name = names[test_count];
    pairs[test_count] = (set_check){set, check};
    snprintf(name, sizeof names[0], "%s: %s", set->name, check->name);
    tests[test_count] = (struct CMUnitTest){name, run_check, NULL, NULL, &pairs[test_count]};
  }
}

int main(void) {
  const struct CMUnitTest first[] = {
      cmocka_unit_test(environment_chooses),           cmocka_unit_test(names_choose_sets),
      cmocka_unit_test(blas_starts_no_threads),        cmocka_unit_test(both_ways_agree),
      cmocka_unit_test(any_split_gives_the_same_bits), cmocka_unit_test(blas_in_many_threads),
      cmocka_unit_test(blas_describes_itself),
  };
  memcpy(tests, first, sizeof first);
  test_count = sizeof first / sizeof *first;
  for (const kernels *const *set = kernels_all(); *set != NULL; set++) {
    if (!(*set)->supported()) {
      print_message("kernel set %s: skipped, this processor lacks it\n", (*set)->name);
      continue;
    }
    if ((*set)->float32_of == NULL) add_checks(*set, kernel_checks);
    add_checks(*set, packed_checks);
  }
  add_checks(amx_emulated(), packed_checks);
  return _cmocka_run_group_tests("kernels", tests, test_count, NULL, NULL);
}
