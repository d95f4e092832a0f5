/*
** product_checks.c: linear and the two products of attention, against sums in
** double precision, and against themselves for any split.
**
** A sum of n float products in lanes errs by a random walk of roundings; all
** bounds are a fraction of the sum of absolute products, the scale on which
** rounding acts.
*/
#include "kernel_checks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Of the sum of |x w|: 4 units of rounding. */
static const double TOLERANCE = 4 * 0x1p-24;

/* sum of a[i * step_a] b[i * step_b] in double; *size: the same of absolute values. */
static double exact_sum(const float *a, size_t step_a, const float *b, size_t step_b, size_t count,
                        double *size) {
  double sum = 0;
  *size = 0;
  for (size_t i = 0; i < count; i++) {
    double term = (double)a[i * step_a] * (double)b[i * step_b];
    sum += term;
    *size += fabs(term);
  }
  return sum;
}

/* ---- linear ------------------------------------------------------------- */

typedef struct linear_case {
  matrix x, w, bias, y;
} linear_case;

static linear_case linear_make(size_t rows, size_t cols, size_t depth, size_t gap,
                               enum matrix_place place) {
  linear_case t = {matrix_make(rows, depth, gap, place), matrix_make(cols, depth, gap, place),
                   matrix_make(1, cols, 0, place), matrix_make(rows, cols, gap, place)};
  matrix_random(&t.x);
  matrix_random(&t.w);
  matrix_random(&t.bias);
  return t;
}

static void linear_free(linear_case *t) {
  matrix_free(&t->x);
  matrix_free(&t->w);
  matrix_free(&t->bias);
  matrix_free(&t->y);
}

static void linear_run(const kernels *set, const linear_case *t, int with_bias) {
  set->linear(t->x.at, t->x.ld, t->w.at, t->w.ld, with_bias ? t->bias.at : NULL, t->y.at, t->y.ld,
              t->y.rows, t->y.cols, t->x.cols);
}

static void compare_linear(const linear_case *t, int with_bias, int *failures) {
  for (size_t r = 0; r < t->y.rows; r++) {
    for (size_t c = 0; c < t->y.cols; c++) {
      double size,
          sum = exact_sum(t->x.at + r * t->x.ld, 1, t->w.at + c * t->w.ld, 1, t->x.cols, &size);
      if (with_bias) {
        sum += (double)t->bias.at[c];
        size += fabs((double)t->bias.at[c]);
      }
      double got = (double)t->y.at[r * t->y.ld + c];
      if (!(fabs(got - sum) <= TOLERANCE * size)) {
        check_failed(failures, "linear %zu x %zu, depth %zu: y[%zu, %zu] is %.9g, not %.9g",
                     t->y.rows, t->y.cols, t->x.cols, r, c, got, sum);
      }
    }
  }
  if (!matrix_gaps_intact(&t->y)) check_failed(failures, "linear wrote between rows");
}

int check_linear(const kernels *set) {
  static const size_t all_rows[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 13, 17};
  static const size_t all_cols[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 33};
  static const size_t depths[] = {0,  1,  2,  3,  4,  5,  7,   8,   9,   15,  16,
                                  17, 31, 32, 33, 63, 65, 100, 383, 384, 385, 1536};
  int failures = 0, turn = 0;
  for (size_t i = 0; i < COUNT(all_rows); i++) {
    for (size_t j = 0; j < COUNT(all_cols); j++) {
      for (size_t k = 0; k < COUNT(depths); k++, turn++) {
        linear_case t = linear_make(all_rows[i], all_cols[j], depths[k], turn % 3 == 0 ? 5 : 0,
                                    turn % 2 == 0 ? MATRIX_ENDS_AT_GUARD : MATRIX_STARTS_AT_GUARD);
        int with_bias = turn % 5 != 0;
        linear_run(set, &t, with_bias);
        compare_linear(&t, with_bias, &failures);
        linear_free(&t);
      }
    }
  }
  return failures;
}

/* The product of t in parts of depth, the first by linear, compared with t.y to the bit. */
static void compare_added(const kernels *set, const linear_case *t, int *failures) {
  size_t rows = t->y.rows, cols = t->y.cols, depth = t->x.cols;
  matrix y = matrix_make(rows, cols, 3, MATRIX_ENDS_AT_GUARD);
  for (size_t d = 0, n; d < depth; d += n) {
    linear_function *part = d == 0 ? set->linear : set->linear_add;
    n = depth - d < LINEAR_BLOCK ? depth - d : LINEAR_BLOCK;
    part(t->x.at + d, t->x.ld, t->w.at + d, t->w.ld, d + n == depth ? t->bias.at : NULL, y.at, y.ld,
         rows, cols, n);
  }
  for (size_t r = 0; r < rows; r++) {
    for (size_t c = 0; c < cols; c++) {
      float whole = t->y.at[r * t->y.ld + c], added = y.at[r * y.ld + c];
      if (!same_number(whole, added))
        check_failed(failures, "linear_add %zu x %zu, depth %zu: y[%zu, %zu] is %.9g, not %.9g",
                     rows, cols, depth, r, c, (double)added, (double)whole);
    }
  }
  if (!matrix_gaps_intact(&y)) check_failed(failures, "linear_add wrote between rows");
  matrix_free(&y);
}

int check_linear_add(const kernels *set) {
  static const size_t all_rows[] = {1, 2, 7, 13, 33, 70};
  static const size_t all_cols[] = {1, 5, 16, 33, 49, 100};
  static const size_t depths[] = {385, 400, 767, 768, 1000, 1537};
  int failures = 0;
  if (set->linear_add == NULL) {
    if (strcmp(set->name, "scalar") != 0)
      check_failed(&failures, "%s has no linear_add", set->name);
    return failures;
  }
  for (size_t i = 0; i < COUNT(all_rows); i++) {
    for (size_t j = 0; j < COUNT(all_cols); j++) {
      for (size_t k = 0; k < COUNT(depths); k++) {
        linear_case t = linear_make(all_rows[i], all_cols[j], depths[k], (i + j + k) % 2 * 5,
                                    MATRIX_ENDS_AT_GUARD);
        linear_run(set, &t, 1);
        compare_added(set, &t, &failures);
        linear_free(&t);
      }
    }
  }
  return failures;
}

/* Computes a copy of t's product in parts, cut after `row` rows and `col`
** columns and element by element, and compares the bits. */
static void compare_parts(const kernels *set, const linear_case *t, size_t row, size_t col,
                          int *failures) {
  size_t rows = t->y.rows, cols = t->y.cols, depth = t->x.cols;
  const matrix *x = &t->x, *w = &t->w;
  matrix y = matrix_make(rows, cols, 0, MATRIX_ENDS_AT_GUARD);
  size_t row_cuts[] = {0, row, rows}, col_cuts[] = {0, col, cols};
  for (size_t i = 0; i < 2; i++) {
    for (size_t j = 0; j < 2; j++) {
      size_t r = row_cuts[i], c = col_cuts[j];
      set->linear(x->at + r * x->ld, x->ld, w->at + c * w->ld, w->ld, t->bias.at + c,
                  y.at + r * y.ld + c, y.ld, row_cuts[i + 1] - r, col_cuts[j + 1] - c, depth);
    }
  }
  for (size_t r = 0; r < rows; r++) {
    for (size_t c = 0; c < cols; c++) {
      float whole = t->y.at[r * t->y.ld + c], alone;
      set->linear(x->at + r * x->ld, x->ld, w->at + c * w->ld, w->ld, t->bias.at + c, &alone, 1, 1,
                  1, depth);
      if (!same_number(whole, y.at[r * y.ld + c]) || !same_number(whole, alone)) {
        check_failed(failures,
                     "linear %zu x %zu, depth %zu: y[%zu, %zu] is %.9g, cut %.9g, alone %.9g", rows,
                     cols, depth, r, c, (double)whole, (double)y.at[r * y.ld + c], (double)alone);
      }
    }
  }
  matrix_free(&y);
}

int check_linear_splits(const kernels *set) {
  static const size_t depths[] = {1, 7, 16, 31, 33, 100, 384, 385, 1537};
  int failures = 0;
  for (size_t k = 0; k < COUNT(depths); k++) {
    linear_case t = linear_make(19, 37, depths[k], k % 2 * 3, MATRIX_ENDS_AT_GUARD);
    linear_run(set, &t, 1);
    for (size_t row = 0; row <= 19; row += 3)
      compare_parts(set, &t, row, row * 2 - row / 3, &failures);
    linear_free(&t);
  }
  return failures;
}

/* The product, and that each row alone gives the same bits. */
static void compare_alone(const kernels *set, size_t rows, size_t cols, size_t depth,
                          int *failures) {
  linear_case t = linear_make(rows, cols, depth, 0, MATRIX_ENDS_AT_GUARD);
  matrix y = matrix_make(1, cols, 0, MATRIX_ENDS_AT_GUARD);
  linear_run(set, &t, 1);
  compare_linear(&t, 1, failures);
  for (size_t r = 0; r < rows; r++) {
    set->linear(t.x.at + r * t.x.ld, t.x.ld, t.w.at, t.w.ld, t.bias.at, y.at, y.ld, 1, cols, depth);
    if (memcmp(y.at, t.y.at + r * t.y.ld, cols * sizeof *y.at) != 0) {
      check_failed(failures, "linear %zu x %zu, depth %zu: row %zu alone differs", rows, cols,
                   depth, r);
    }
  }
  matrix_free(&y);
  linear_free(&t);
}

/* More columns than one panel, more rows than one pass. */
int check_linear_panels(const kernels *set) {
  static const size_t sizes[][3] = {{70, 701, 384}, {30, 130, 1536}, {9, 40, 4099},
                                    {3, 1030, 64},  {14, 401, 1537}, {16, 801, 100}};
  int failures = 0;
  for (size_t k = 0; k < COUNT(sizes); k++)
    compare_alone(set, sizes[k][0], sizes[k][1], sizes[k][2], &failures);
  return failures;
}

/* Every height of a tile, and where one form gives way to another. */
int check_linear_heights(const kernels *set) {
  static const size_t depths[] = {100, 102, 772};
  int failures = 0;
  for (size_t rows = 1; rows <= 40; rows++) {
    for (size_t k = 0; k < COUNT(depths); k++)
      compare_alone(set, rows, 36 + rows % 5, depths[k], &failures);
  }
  return failures;
}

/* A NaN or an infinity shows in its own row or column and nowhere else. */
int check_linear_not_finite(const kernels *set) {
  static const size_t depths[] = {1, 7, 16, 33, 100};
  int failures = 0;
  for (size_t k = 0; k < COUNT(depths); k++) {
    size_t depth = depths[k];
    linear_case t = linear_make(14, 10, depth, 0, MATRIX_ENDS_AT_GUARD);
    t.x.at[13 * t.x.ld + depth - 1] = NAN;
    t.x.at[3 * t.x.ld + depth / 2] = INFINITY;
    t.w.at[9 * t.w.ld + depth - 1] = NAN;
    linear_run(set, &t, 1);
    for (size_t r = 0; r < 14; r++) {
      for (size_t c = 0; c < 10; c++) {
        float got = t.y.at[r * t.y.ld + c], factor = t.w.at[c * t.w.ld + depth / 2];
        int right = r == 13 || c == 9 ? isnan(got)
                    : r == 3          ? isinf(got) && (got > 0) == (factor > 0)
                                      : isfinite(got);
        if (!right)
          check_failed(&failures, "depth %zu: y[%zu, %zu] is %g", depth, r, c, (double)got);
      }
    }
    linear_free(&t);
  }
  return failures;
}

/* ---- attention ---------------------------------------------------------- */

static const size_t some_counts[] = {0, 1, 2, 3, 5, 6, 7, 13, 16, 17, 33, 65};
static const size_t some_widths[] = {0,  1,  2,  3,  5,  7,   8,   15,  16, 17,
                                     31, 32, 33, 64, 65, 100, 128, 129, 300};

static void compare_scores(const kernels *set, size_t queries, size_t keys, size_t width,
                           size_t gap, enum matrix_place place, int *failures) {
  matrix q = matrix_make(queries, width, gap, place), k = matrix_make(keys, width, gap, place);
  matrix y = matrix_make(queries, keys, gap, place);
  float scale = 0.25f + (float)width;
  matrix_random(&q);
  matrix_random(&k);
  set->attention_scores(q.at, q.ld, k.at, k.ld, scale, y.at, y.ld, queries, keys, width);
  for (size_t i = 0; i < queries; i++) {
    for (size_t j = 0; j < keys; j++) {
      double size, sum = exact_sum(q.at + i * q.ld, 1, k.at + j * k.ld, 1, width, &size);
      double got = (double)y.at[i * y.ld + j], want = (double)scale * sum;
      if (!(fabs(got - want) <= 2 * TOLERANCE * (double)scale * size)) {
        check_failed(failures, "scores %zu x %zu, width %zu: [%zu, %zu] is %.9g, not %.9g", queries,
                     keys, width, i, j, got, want);
      }
    }
  }
  if (!matrix_gaps_intact(&y)) check_failed(failures, "attention_scores wrote between rows");
  matrix_free(&q);
  matrix_free(&k);
  matrix_free(&y);
}

int check_scores(const kernels *set) {
  int failures = 0, turn = 0;
  for (size_t i = 0; i < COUNT(some_counts); i++) {
    for (size_t j = 0; j < COUNT(some_counts); j++) {
      for (size_t k = 0; k < COUNT(some_widths); k++, turn++) {
        compare_scores(set, some_counts[i], some_counts[j], some_widths[k], turn % 3 == 0 ? 7 : 0,
                       turn % 2 == 0 ? MATRIX_ENDS_AT_GUARD : MATRIX_STARTS_AT_GUARD, &failures);
      }
    }
  }
  return failures;
}

static void compare_context(const kernels *set, size_t queries, size_t keys, size_t width,
                            size_t gap, enum matrix_place place, int *failures) {
  matrix p = matrix_make(queries, keys, gap, place), v = matrix_make(keys, width, gap, place);
  matrix y = matrix_make(queries, width, gap, place);
  matrix_random(&p);
  matrix_random(&v);
  set->attention_context(p.at, p.ld, v.at, v.ld, y.at, y.ld, queries, keys, width);
  for (size_t i = 0; i < queries; i++) {
    for (size_t j = 0; j < width; j++) {
      double size, want = exact_sum(p.at + i * p.ld, 1, v.at + j, v.ld, keys, &size);
      double got = (double)y.at[i * y.ld + j];
      if (!(fabs(got - want) <= 2 * TOLERANCE * size)) {
        check_failed(failures, "context %zu x %zu, keys %zu: [%zu, %zu] is %.9g, not %.9g", queries,
                     width, keys, i, j, got, want);
      }
    }
  }
  if (!matrix_gaps_intact(&y)) check_failed(failures, "attention_context wrote between rows");
  matrix_free(&p);
  matrix_free(&v);
  matrix_free(&y);
}

int check_context(const kernels *set) {
  int failures = 0, turn = 0;
  for (size_t i = 0; i < COUNT(some_counts); i++) {
    for (size_t j = 0; j < COUNT(some_counts); j++) {
      for (size_t k = 0; k < COUNT(some_widths); k++, turn++) {
        compare_context(set, some_counts[i], some_counts[j], some_widths[k], turn % 3 == 0 ? 7 : 0,
                        turn % 2 == 0 ? MATRIX_ENDS_AT_GUARD : MATRIX_STARTS_AT_GUARD, &failures);
      }
    }
  }
  return failures;
}

/* Every element alone against the whole, for scores (k, then y of `keys`
** columns) and for the context (weights = the scores, then y of `width`). */
static void compare_single(const kernels *set, size_t queries, size_t keys, size_t width,
                           int *failures) {
  matrix q = matrix_make(queries, width, 0, MATRIX_ENDS_AT_GUARD);
  matrix k = matrix_make(keys, width, 3, MATRIX_ENDS_AT_GUARD);
  matrix s = matrix_make(queries, keys, 1, MATRIX_ENDS_AT_GUARD);
  matrix y = matrix_make(queries, width, 2, MATRIX_ENDS_AT_GUARD);
  matrix_random(&q);
  matrix_random(&k);
  set->attention_scores(q.at, q.ld, k.at, k.ld, 0.3f, s.at, s.ld, queries, keys, width);
  set->attention_context(s.at, s.ld, k.at, k.ld, y.at, y.ld, queries, keys, width);
  for (size_t i = 0; i < queries; i++) {
    float alone;
    for (size_t j = 0; j < keys; j++) {
      set->attention_scores(q.at + i * q.ld, q.ld, k.at + j * k.ld, k.ld, 0.3f, &alone, 1, 1, 1,
                            width);
      if (!same_number(alone, s.at[i * s.ld + j])) {
        check_failed(failures, "scores %zu x %zu, width %zu: [%zu, %zu] differs alone", queries,
                     keys, width, i, j);
      }
    }
    for (size_t d = 0; d < width; d++) {
      set->attention_context(s.at + i * s.ld, s.ld, k.at + d, k.ld, &alone, 1, 1, keys, 1);
      if (!same_number(alone, y.at[i * y.ld + d])) {
        check_failed(failures, "context %zu x %zu, keys %zu: [%zu, %zu] differs alone", queries,
                     width, keys, i, d);
      }
    }
  }
  matrix_free(&q);
  matrix_free(&k);
  matrix_free(&s);
  matrix_free(&y);
}

int check_attention_splits(const kernels *set) {
  static const size_t sizes[][3] = {{1, 1, 1},    {5, 3, 7},     {13, 13, 32}, {7, 40, 33},
                                    {20, 17, 64}, {33, 65, 100}, {8, 31, 129}, {4, 100, 270}};
  int failures = 0;
  for (size_t i = 0; i < COUNT(sizes); i++) {
    compare_single(set, sizes[i][0], sizes[i][1], sizes[i][2], &failures);
  }
  return failures;
}
