/*
** vector_checks.c: what works number by number or sums two vectors: add_scaled,
** maximum, multiply, rotate, dot, squared_distance, and the widening of stored weights.
*/
#include "kernel_checks.h"

#include <math.h>
#include <string.h>

enum { LONGEST = 400 };

/* Two random vectors that end at a guard, and a copy of the second. */
typedef struct pair_case {
  matrix a, b;
  float before[LONGEST];
} pair_case;

static pair_case pair_make(size_t count) {
  pair_case t = {matrix_make(1, count, 0, MATRIX_ENDS_AT_GUARD),
                 matrix_make(1, count, 0, MATRIX_ENDS_AT_GUARD),
                 {0}};
  matrix_random(&t.a);
  matrix_random(&t.b);
  if (count > 0) memcpy(t.before, t.b.at, count * sizeof *t.before);
  return t;
}

static void pair_free(pair_case *t) {
  matrix_free(&t->a);
  matrix_free(&t->b);
}

/* One rounding where the set has a fused step, two where it has not; and the
** same bits at any place. */
int check_add_scaled(const kernels *set) {
  int failures = 0;
  for (size_t count = 0; count < LONGEST; count = count * 9 / 8 + 1) {
    pair_case t = pair_make(count);
    set->add_scaled(0.7f, t.a.at, t.b.at, count);
    for (size_t i = 0; i < count; i++) {
      double product = (double)0.7f * (double)t.a.at[i], want = product + (double)t.before[i];
      float alone = t.before[i];
      set->add_scaled(0.7f, t.a.at + i, &alone, 1);
      if (!(fabs((double)t.b.at[i] - want) <= 0x1p-24 * (fabs(product) + fabs(want))) ||
          !same_number(alone, t.b.at[i])) {
        check_failed(&failures, "add_scaled %zu: y[%zu] is %.9g, not %.9g", count, i,
                     (double)t.b.at[i], want);
      }
    }
    pair_free(&t);
  }
  return failures;
}

int check_maximum(const kernels *set) {
  static const float special[] = {-INFINITY, -3.0f, 0.0f, 2.5f, INFINITY, NAN};
  enum { SPECIAL = sizeof special / sizeof *special };
  int failures = 0;
  for (size_t count = 0; count < 70; count++) {
    pair_case t = pair_make(count);
    for (size_t i = 0; i < count; i++) {
      if (i % 2 == 0) continue;
      t.a.at[i] = special[(i + count) % SPECIAL];
      t.before[i] = t.b.at[i] = special[(i / SPECIAL + count) % SPECIAL];
    }
    set->maximum(t.a.at, t.b.at, count);
    for (size_t i = 0; i < count; i++) {
      float a = t.a.at[i], b = t.before[i], want = isnan(a) || isnan(b) ? NAN : a > b ? a : b;
      if (!same_number(want, t.b.at[i])) {
        check_failed(&failures, "maximum(%g, %g) is %g", (double)a, (double)b, (double)t.b.at[i]);
      }
    }
    pair_free(&t);
  }
  return failures;
}

int check_multiply(const kernels *set) {
  int failures = 0;
  for (size_t count = 0; count < 100; count++) {
    pair_case t = pair_make(count);
    set->multiply(t.a.at, t.b.at, count);
    for (size_t i = 0; i < count; i++)
      if (!same_number(t.a.at[i] * t.before[i], t.b.at[i]))
        check_failed(&failures, "multiply %zu: y[%zu] is %.9g", count, i, (double)t.b.at[i]);
    pair_free(&t);
  }
  return failures;
}

/* a x + b y where both products may be rounded before the sum. */
static int near_sum(float got, float a, float x, float b, float y) {
  double first = (double)a * (double)x, second = (double)b * (double)y;
  return fabs((double)got - (first + second)) <= 0x1p-23 * (fabs(first) + fabs(second));
}

/* Right, and the same bits wherever a pair lies. */
int check_rotate(const kernels *set) {
  int failures = 0;
  for (size_t half = 0; half < 100; half++) {
    pair_case t = pair_make(2 * half); /* a: cosines, then sines; b: what is turned */
    const float *cosines = t.a.at, *sines = t.a.at + half, *x = t.before;
    set->rotate(cosines, sines, t.b.at, half);
    for (size_t i = 0; i < half; i++) {
      float alone[2] = {x[i], x[i + half]}, low = t.b.at[i], high = t.b.at[i + half];
      set->rotate(cosines + i, sines + i, alone, 1);
      if (!near_sum(low, x[i], cosines[i], -x[i + half], sines[i]) ||
          !near_sum(high, x[i + half], cosines[i], x[i], sines[i]) || !same_number(alone[0], low) ||
          !same_number(alone[1], high))
        check_failed(&failures, "rotate %zu: pair %zu is %.9g, %.9g", half, i, (double)low,
                     (double)high);
    }
    pair_free(&t);
  }
  return failures;
}

int check_distances(const kernels *set) {
  int failures = 0;
  for (size_t count = 0; count < LONGEST; count = count * 9 / 8 + 1) {
    pair_case t = pair_make(count);
    double sum = 0, size = 0, distance = 0;
    for (size_t i = 0; i < count; i++) {
      double a = (double)t.a.at[i], b = (double)t.b.at[i];
      sum += a * b;
      size += fabs(a * b);
      distance += (a - b) * (a - b);
    }
    double got = set->dot(t.a.at, t.b.at, count);
    if (!(fabs(got - sum) <= 1e-13 * size)) {
      check_failed(&failures, "dot of %zu is %.17g, not %.17g", count, got, sum);
    }
    got = set->squared_distance(t.a.at, t.b.at, count);
    if (!(fabs(got - distance) <= 1e-13 * distance)) {
      check_failed(&failures, "squared_distance of %zu is %.17g, not %.17g", count, got, distance);
    }
    if (set->squared_distance(t.a.at, t.a.at, count) != 0) {
      check_failed(&failures, "a vector of %zu is not at distance 0 from itself", count);
    }
    pair_free(&t);
  }
  float large[2] = {3e38f, 3e38f};
  if (!isfinite(set->dot(large, large, 2)))
    check_failed(&failures, "dot of large numbers overflows");
  return failures;
}

/* A half by its definition: (-1)^sign 2^(exponent - 15) 1.fraction. */
static float half_value(unsigned h) {
  unsigned exponent = h >> 10 & 31, fraction = h & 1023;
  double size = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, (int)exponent - 25);
  if (exponent == 31) size = fraction == 0 ? (double)INFINITY : (double)NAN;
  return (float)((h & 0x8000) != 0 ? -size : size);
}

static float bfloat16_value(unsigned b) {
  uint32_t bits = (uint32_t)b << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* All 65536 numbers, in pieces of every length so that each goes through whole
** vectors and through the rest. */
int check_widening(const kernels *set) {
  int failures = 0;
  size_t length = 0;
  for (size_t first = 0; first < 65536; first += length) {
    length = length % 67 + 1;
    if (first + length > 65536) length = 65536 - first;
    matrix in = matrix_make(1, (length + 1) / 2, 0, MATRIX_ENDS_AT_GUARD);
    matrix out = matrix_make(1, length, 0, MATRIX_ENDS_AT_GUARD);
    uint16_t *x = (uint16_t *)(void *)in.at + (length & 1); /* ends at the guard */
    for (size_t i = 0; i < length; i++) x[i] = (uint16_t)(first + i);
    set->from_half(x, out.at, length);
    for (size_t i = 0; i < length; i++) {
      if (!same_number(out.at[i], half_value(x[i]))) {
        check_failed(&failures, "half %04x is %g", x[i], (double)out.at[i]);
      }
    }
    set->from_bfloat16(x, out.at, length);
    for (size_t i = 0; i < length; i++) {
      if (!same_number(out.at[i], bfloat16_value(x[i]))) {
        check_failed(&failures, "bfloat16 %04x is %g", x[i], (double)out.at[i]);
      }
    }
    matrix_free(&in);
    matrix_free(&out);
  }
  return failures;
}
