/*
** formula_checks.c: activations, LayerNorm and softmax against their formulas
** in double precision.
*/
#include "kernel_checks.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static float from_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The distance between neighbouring floats at x, which is what one unit in the
** last place is worth there. */
static double ulp(double x) {
  double size = fabs(x);
  if (size < (double)FLT_MIN) return 0x1p-149;
  return ldexp(1.0, ilogb(size) - 23);
}

/* ---- activations -------------------------------------------------------- */

static const char *const activation_names[ACTIVATION_COUNT] = {
    "gelu", "gelu_tanh", "relu", "silu", "tanh", "identity",
};

static double exact_activation(activation kind, double x) {
  switch (kind) {
  case ACTIVATION_GELU: return 0.5 * x * erfc(-x * 0.70710678118654752440);
  case ACTIVATION_GELU_TANH:
    return x / (1 + exp(-2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)));
  case ACTIVATION_RELU: return x < 0 ? 0 : x;
  case ACTIVATION_SILU: return x / (1 + exp(-x));
  case ACTIVATION_TANH: return tanh(x);
  case ACTIVATION_IDENTITY: break;
  }
  return x;
}

/* What each may err by at x, its exact value being y. GELU is held to x and not
** to y: its formula, 1 + erf, has lost the digits of a small y already, in the
** reference too. 2^-125 is where 1 + exp(-x) overflows. */
static double allowed_error(activation kind, double x, double y) {
  switch (kind) {
  case ACTIVATION_GELU: return 1.5e-7 * fabs(x) + 0x1p-149;
  case ACTIVATION_GELU_TANH: return 2 * ulp(y) + 1e-7 * fabs(x);
  case ACTIVATION_SILU: return 3 * ulp(y) + 0x1p-120;
  case ACTIVATION_TANH: return 2.5 * ulp(y);
  case ACTIVATION_RELU:
  case ACTIVATION_IDENTITY: break;
  }
  return 0;
}

/* Compares count results y of the inputs x; *worst becomes the largest error as
** a part of the one allowed. */
static void compare_activations(activation kind, const float *x, const float *y, size_t count,
                                double *worst, int *failures) {
  for (size_t i = 0; i < count; i++) {
    double want = exact_activation(kind, (double)x[i]);
    double error = fabs((double)y[i] - want);
    double allowed = allowed_error(kind, (double)x[i], want);
    if ((double)y[i] == want || (isinf(y[i]) && (double)y[i] * want > (double)FLT_MAX)) continue;
    if (!(error <= allowed)) {
      check_failed(failures, "%s(%.9g) is %.9g, not %.9g", activation_names[kind], (double)x[i],
                   (double)y[i], want);
    }
    if (allowed > 0 && error / allowed > *worst) *worst = error / allowed;
  }
}

/* Finite floats of both signs, a prime number of floats apart, in blocks. */
int check_activations(const kernels *set) {
  enum { BLOCK = 1000, STEP = 4093 };
  int failures = 0;
  for (int kind = 0; kind < ACTIVATION_COUNT; kind++) {
    double worst = 0;
    uint32_t bits = 0;
    while (bits < 0x7f800000) {
      float x[BLOCK], y[BLOCK];
      size_t count = 0;
      for (; count + 1 < BLOCK && bits < 0x7f800000; bits += STEP) {
        x[count++] = from_bits(bits);
        x[count++] = from_bits(bits | 0x80000000);
      }
      memcpy(y, x, count * sizeof *y);
      set->activate((activation)kind, y, count);
      compare_activations((activation)kind, x, y, count, &worst, &failures);
    }
    if (worst > 0) printf("    %s: %.2f of the error allowed\n", activation_names[kind], worst);
  }
  return failures;
}

int check_activation_positions(const kernels *set) {
  enum { LENGTH = 70 };
  int failures = 0;
  for (int kind = 0; kind < ACTIVATION_COUNT; kind++) {
    float x[LENGTH], alone[LENGTH];
    for (size_t i = 0; i < LENGTH; i++) {
      alone[i] = x[i] = (float)(8 * check_random());
      set->activate((activation)kind, alone + i, 1);
    }
    for (size_t count = 0; count <= LENGTH; count++) {
      matrix y = matrix_make(1, count, 0, MATRIX_ENDS_AT_GUARD);
      if (count > 0) memcpy(y.at, x, count * sizeof *x);
      set->activate((activation)kind, y.at, count);
      for (size_t i = 0; i < count; i++) {
        if (!same_number(y.at[i], alone[i])) {
          check_failed(&failures, "%s: number %zu of %zu differs alone", activation_names[kind], i,
                       count);
        }
      }
      matrix_free(&y);
    }
  }
  return failures;
}

/* Where the formula has a limit, as IEEE 754 arithmetic on it has it: gelu and
** silu of -infinity are -infinity times 0. */
int check_activation_special(const kernels *set) {
  static const struct {
    activation kind;
    float in, out;
  } cases[] = {
      {ACTIVATION_GELU, 0.0f, 0.0f},
      {ACTIVATION_GELU, INFINITY, INFINITY},
      {ACTIVATION_GELU, -INFINITY, NAN},
      {ACTIVATION_GELU, NAN, NAN},
      {ACTIVATION_GELU, -1e30f, -0.0f},
      {ACTIVATION_GELU, 3e38f, 3e38f},
      {ACTIVATION_GELU_TANH, INFINITY, INFINITY},
      {ACTIVATION_GELU_TANH, -INFINITY, NAN},
      {ACTIVATION_GELU_TANH, NAN, NAN},
      {ACTIVATION_GELU_TANH, -1e30f, -0.0f},
      {ACTIVATION_GELU_TANH, 3e38f, 3e38f},
      {ACTIVATION_RELU, NAN, NAN},
      {ACTIVATION_RELU, -INFINITY, 0.0f},
      {ACTIVATION_RELU, INFINITY, INFINITY},
      {ACTIVATION_SILU, INFINITY, INFINITY},
      {ACTIVATION_SILU, -INFINITY, NAN},
      {ACTIVATION_SILU, NAN, NAN},
      {ACTIVATION_SILU, -1e30f, -0.0f},
      {ACTIVATION_TANH, INFINITY, 1.0f},
      {ACTIVATION_TANH, -INFINITY, -1.0f},
      {ACTIVATION_TANH, NAN, NAN},
      {ACTIVATION_TANH, -0.0f, -0.0f},
      {ACTIVATION_TANH, 0x1p-149f, 0x1p-149f},
      {ACTIVATION_IDENTITY, NAN, NAN},
  };
  int failures = 0;
  for (size_t i = 0; i < COUNT(cases); i++) {
    for (size_t count = 1; count <= 33; count += 16) {
      float x[33];
      for (size_t j = 0; j < count; j++) x[j] = cases[i].in;
      set->activate(cases[i].kind, x, count);
      for (size_t j = 0; j < count; j++) {
        if (!same_number(x[j], cases[i].out)) {
          check_failed(&failures, "%s(%g) is %g, not %g", activation_names[cases[i].kind],
                       (double)cases[i].in, (double)x[j], (double)cases[i].out);
        }
      }
    }
  }
  return failures;
}

/* ---- LayerNorm ---------------------------------------------------------- */

/* Compares y[cols] with the formula on z[cols], which is x + residual rounded to
** float as the contract has it. A float mean is off by half a unit of the mean,
** hence the part that grows with mean / deviation. */
static void compare_norm(const float *z, const float *gain, const float *bias, float epsilon,
                         const float *y, size_t cols, int *failures) {
  double mean = 0, variance = 0;
  for (size_t i = 0; i < cols; i++) mean += (double)z[i] / (double)cols;
  for (size_t i = 0; i < cols; i++) {
    variance += ((double)z[i] - mean) * ((double)z[i] - mean) / (double)cols;
  }
  double scale = 1 / sqrt(variance + (double)epsilon);
  for (size_t i = 0; i < cols; i++) {
    double normal = ((double)z[i] - mean) * scale, g = (double)gain[i];
    double b = bias != NULL ? (double)bias[i] : 0, want = normal * g + b;
    double allowed =
        3e-7 * (fabs(normal * g) + fabs(b)) + 1.5e-7 * fabs(g) * (1 + fabs(mean) * scale);
    if (!(fabs((double)y[i] - want) <= allowed)) {
      check_failed(failures, "layer_norm, %zu columns: y[%zu] is %.9g, not %.9g", cols, i,
                   (double)y[i], want);
    }
  }
}

typedef struct norm_case {
  matrix x, residual, gain, bias, z, y;
} norm_case;

/* `into`: 0 a matrix of its own, 1 x, 2 the residual. */
static void run_norm(const kernels *set, norm_case *t, int with_residual, int with_bias, int into,
                     int *failures) {
  size_t rows = t->x.rows, cols = t->x.cols;
  matrix *y = into == 1 ? &t->x : into == 2 ? &t->residual : &t->y;
  for (size_t r = 0; r < rows; r++) {
    for (size_t c = 0; c < cols; c++) {
      float z = t->x.at[r * t->x.ld + c];
      if (with_residual) z += t->residual.at[r * t->residual.ld + c];
      t->z.at[r * t->z.ld + c] = z;
    }
  }
  set->layer_norm(t->x.at, t->x.ld, with_residual ? t->residual.at : NULL, t->residual.ld,
                  t->gain.at, with_bias ? t->bias.at : NULL, 1e-12f, y->at, y->ld, rows, cols);
  for (size_t r = 0; r < rows; r++) {
    compare_norm(t->z.at + r * t->z.ld, t->gain.at, with_bias ? t->bias.at : NULL, 1e-12f,
                 y->at + r * y->ld, cols, failures);
  }
  if (!matrix_gaps_intact(y)) check_failed(failures, "layer_norm wrote between rows");
}

int check_layer_norm(const kernels *set) {
  static const size_t sizes[] = {2,  3,  5,  7,   8,   15,  16,  17,  31,
                                 33, 63, 65, 100, 383, 384, 385, 1536};
  int failures = 0;
  for (size_t i = 0; i < COUNT(sizes); i++) {
    for (int turn = 0; turn < 12; turn++) {
      size_t cols = sizes[i], rows = 4;
      enum matrix_place place = turn % 2 == 0 ? MATRIX_ENDS_AT_GUARD : MATRIX_STARTS_AT_GUARD;
      norm_case t = {matrix_make(rows, cols, 3, place), matrix_make(rows, cols, 5, place),
                     matrix_make(1, cols, 0, place),    matrix_make(1, cols, 0, place),
                     matrix_make(rows, cols, 0, place), matrix_make(rows, cols, 1, place)};
      matrix *all[] = {&t.x, &t.residual, &t.gain, &t.bias, &t.z, &t.y};
      for (size_t m = 0; m < 4; m++) matrix_random(all[m]);
      run_norm(set, &t, turn % 4 < 2 || turn % 3 == 2, turn % 4 % 2, turn % 3, &failures);
      for (size_t m = 0; m < COUNT(all); m++) matrix_free(all[m]);
    }
  }
  set->layer_norm(NULL, 0, NULL, 0, NULL, NULL, 1e-12f, NULL, 0, 0, 384);
  return failures;
}

/* Rows with a mean far from 0, equal numbers, one column, tiny, large and huge ones;
** and a row gives the same bits alone. */
int check_layer_norm_hard(const kernels *set) {
  enum { COLS = 100, ROWS = 7 };
  int failures = 0;
  float x[ROWS][COLS], y[ROWS][COLS], gain[COLS], alone[COLS];
  for (size_t c = 0; c < COLS; c++) {
    gain[c] = 1;
    x[0][c] = (float)(1000 + check_random());
    x[1][c] = 3.5f;
    x[2][c] = (float)(1e-6 * check_random());
    x[3][c] = (float)(1e15 * check_random());
    x[4][c] = c == 17 ? 100.0f : 0.0f;
    x[5][c] = (float)(1e25 * check_random()); /* whose squares, */
    x[6][c] = c % 3 == 0 ? 1e38f : 3e38f;     /* and whose sum, are beyond float32 */
  }
  set->layer_norm(x[0], COLS, NULL, 0, gain, NULL, 1e-12f, y[0], COLS, ROWS, COLS);
  for (size_t r = 0; r < ROWS; r++) {
    compare_norm(x[r], gain, NULL, 1e-12f, y[r], COLS, &failures);
    set->layer_norm(x[r], COLS, NULL, 0, gain, NULL, 1e-12f, alone, COLS, 1, COLS);
    if (memcmp(alone, y[r], sizeof alone) != 0) check_failed(&failures, "row %zu differs alone", r);
  }
  for (size_t c = 0; c < COLS; c++) {
    if (y[1][c] != 0) check_failed(&failures, "equal numbers gave %g", (double)y[1][c]);
  }
  set->layer_norm(x[0], 1, NULL, 0, gain, gain, 1e-5f, y[0], 1, 1, 1);
  if (y[0][0] != 1.0f) check_failed(&failures, "one column gave %g", (double)y[0][0]);
  x[0][0] = NAN;
  set->layer_norm(x[0], COLS, NULL, 0, gain, NULL, 1e-12f, y[0], COLS, 2, COLS);
  for (size_t c = 0; c < COLS; c++) {
    if (!isnan(y[0][c]) || y[1][c] != 0) check_failed(&failures, "NaN in row 0: column %zu", c);
  }
  return failures;
}

/* ---- softmax ------------------------------------------------------------ */

/* Against exact exp and sum. x - max is rounded to float before exp, which turns
** its error into a relative one of the result. */
static void compare_softmax(const float *x, const float *y, size_t cols, int *failures) {
  double max = -INFINITY, sum = 0;
  for (size_t i = 0; i < cols; i++) max = fmax(max, (double)x[i]);
  for (size_t i = 0; i < cols; i++) sum += exp((double)x[i] - max);
  for (size_t i = 0; i < cols; i++) {
    double d = (double)x[i] - max, want = exp(d) / sum;
    double allowed = want * (3e-7 + 0x1p-24 * fabs(d)) + 0x1.8p-149;
    if (!(fabs((double)y[i] - want) <= allowed)) {
      check_failed(failures, "softmax, %zu columns: x - max = %.9g gives %.9g, not %.9g", cols, d,
                   (double)y[i], want);
    }
  }
}

int check_softmax(const kernels *set) {
  static const size_t sizes[] = {1,  2,  3,  5,  7,  8,   9,   13,  15,  16,
                                 17, 31, 33, 63, 65, 100, 126, 512, 1025};
  static const double spreads[] = {0, 1e-3, 1, 10, 60, 1000};
  int failures = 0;
  for (size_t i = 0; i < COUNT(sizes); i++) {
    for (size_t s = 0; s < COUNT(spreads); s++) {
      size_t cols = sizes[i], rows = 3;
      matrix x = matrix_make(rows, cols, s % 3,
                             s % 2 == 0 ? MATRIX_ENDS_AT_GUARD : MATRIX_STARTS_AT_GUARD);
      matrix y = matrix_make(rows, cols, s % 3, MATRIX_ENDS_AT_GUARD),
             alone = matrix_make(1, cols, 0, MATRIX_ENDS_AT_GUARD);
      for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < cols; c++) {
          y.at[r * y.ld + c] = x.at[r * x.ld + c] = (float)(spreads[s] * (check_random() + 0.3));
        }
      }
      set->softmax(y.at, y.ld, rows, cols);
      for (size_t r = 0; r < rows; r++) {
        compare_softmax(x.at + r * x.ld, y.at + r * y.ld, cols, &failures);
        memcpy(alone.at, x.at + r * x.ld, cols * sizeof *x.at);
        set->softmax(alone.at, alone.ld, 1, cols);
        if (memcmp(alone.at, y.at + r * y.ld, cols * sizeof *x.at) != 0) {
          check_failed(&failures, "softmax, %zu columns: row %zu differs alone", cols, r);
        }
      }
      if (!matrix_gaps_intact(&y)) check_failed(&failures, "softmax wrote between rows");
      matrix_free(&x);
      matrix_free(&y);
      matrix_free(&alone);
    }
  }
  set->softmax(NULL, 0, 0, 7);
  set->softmax(NULL, 0, 7, 0);
  return failures;
}

/* exp over its whole range, and rows with numbers that are not finite. */
int check_softmax_special(const kernels *set) {
  enum { COLS = 1200 };
  int failures = 0;
  float x[COLS], y[COLS];
  for (int block = 0; block < 20; block++) {
    for (size_t c = 1; c < COLS; c++) x[c] = (float)(-104.5 * fabs(check_random()));
    x[0] = 0;
    memcpy(y, x, sizeof y);
    set->softmax(y, COLS, 1, COLS);
    compare_softmax(x, y, COLS, &failures);
  }
  static const struct {
    float in[3], out[3];
  } cases[] = {
      {{0, -INFINITY, 0}, {0.5f, 0, 0.5f}},
      {{-INFINITY, -3, -INFINITY}, {0, 1, 0}},
      {{3e38f, -3e38f, 3e38f}, {0.5f, 0, 0.5f}},
      {{-3e38f, -3e38f, -INFINITY}, {0.5f, 0.5f, 0}},
      {{-INFINITY, -INFINITY, -INFINITY}, {NAN, NAN, NAN}},
      {{0, NAN, 0}, {NAN, NAN, NAN}},
      {{NAN, 0, 0}, {NAN, NAN, NAN}},
      {{0, 0, NAN}, {NAN, NAN, NAN}},
      {{INFINITY, 0, 0}, {NAN, 0, 0}},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    memcpy(y, cases[i].in, sizeof cases[i].in);
    set->softmax(y, 3, 1, 3);
    int infinite = isinf(cases[i].in[0]) && cases[i].in[0] > 0; /* inf - inf: the whole row */
    for (size_t c = 0; c < 3; c++) {
      if (infinite ? !isnan(y[c]) : !same_number(y[c], cases[i].out[c])) {
        check_failed(&failures, "softmax, case %zu: y[%zu] is %g", i, c, (double)y[c]);
      }
    }
  }
  return failures;
}
