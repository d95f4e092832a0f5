/*
** code_checks.c: dot_codes, whose sums every set must give exactly.
*/
#include "kernel_checks.h"

/* `bytes` bytes that end where a page begins that may not be touched. */
static void *guarded(matrix *m, size_t bytes) {
  size_t floats = (bytes + sizeof(float) - 1) / sizeof(float);
  *m = matrix_make(1, floats, 0, MATRIX_ENDS_AT_GUARD);
  return (char *)m->at + (floats * sizeof(float) - bytes);
}

/* The query at an odd number of int16 from where a vector would be aligned. */
typedef struct code_case {
  size_t rows, depth;
  matrix query_pages, code_pages, sum_pages;
  int16_t *query; /* [depth] */
  int8_t *codes;  /* [rows, depth] */
  int32_t *sums;  /* [rows] */
} code_case;

static code_case case_make(size_t rows, size_t depth) {
  code_case c = {.rows = rows, .depth = depth};
  c.query = guarded(&c.query_pages, depth * sizeof *c.query);
  c.codes = guarded(&c.code_pages, rows * depth);
  c.sums = guarded(&c.sum_pages, rows * sizeof *c.sums);
  return c;
}

static void case_free(code_case *c) {
  matrix_free(&c->query_pages);
  matrix_free(&c->code_pages);
  matrix_free(&c->sum_pages);
}

static void case_check(const kernels *set, const code_case *c, int *failures) {
  for (size_t r = 0; r < c->rows; r++) c->sums[r] = -1;
  set->dot_codes(c->query, c->codes, c->sums, c->rows, c->depth);
  for (size_t r = 0; r < c->rows; r++) {
    int64_t sum = 0;
    for (size_t j = 0; j < c->depth; j++)
      sum += (int64_t)c->query[j] * (int64_t)c->codes[r * c->depth + j];
    if (c->sums[r] != sum)
      check_failed(failures, "row %zu of [%zu, %zu] is %ld, not %lld", r, c->rows, c->depth,
                   (long)c->sums[r], (long long)sum);
  }
}

/* The largest query that the contract allows for this depth. */
static int largest_query(size_t depth) {
  size_t most = depth == 0 ? INT16_MAX : INT32_MAX / (128 * depth);
  return most > INT16_MAX ? INT16_MAX : (int)most;
}

int check_codes(const kernels *set) {
  int failures = 0;
  for (size_t depth = 0; depth < 1200; depth = depth < 140 ? depth + 1 : depth * 5 / 4) {
    for (size_t rows = 0; rows < 14; rows++) {
      code_case c = case_make(rows, depth);
      for (size_t j = 0; j < depth; j++)
        c.query[j] = (int16_t)(largest_query(depth) * check_random());
      for (size_t i = 0; i < rows * depth; i++) c.codes[i] = (int8_t)(127.9 * check_random());
      case_check(set, &c, &failures);
      case_free(&c);
    }
  }
  return failures;
}

/* All products of one sign, and as large as they can be; also -128. */
int check_codes_extreme(const kernels *set) {
  static const size_t depths[] = {1, 2, 15, 16, 31, 32, 33, 384, 512, 768, 4097, 65537};
  static const int8_t values[] = {127, -127, -128};
  int failures = 0;
  for (size_t d = 0; d < sizeof depths / sizeof *depths; d++) {
    for (size_t v = 0; v < sizeof values; v++) {
      for (int sign = -1; sign <= 1; sign += 2) {
        code_case c = case_make(5, depths[d]);
        for (size_t j = 0; j < c.depth; j++) c.query[j] = (int16_t)(sign * largest_query(c.depth));
        for (size_t i = 0; i < c.rows * c.depth; i++) c.codes[i] = values[v];
        case_check(set, &c, &failures);
        case_free(&c);
      }
    }
  }
  return failures;
}
