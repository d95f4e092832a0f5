/*
** kernels_scalar.c: the reference, in plain C: one loop per formula.
**
** It is also what runs on a processor that has no set of its own, so its long sums go
** over several independent lanes, which a compiler turns into the vector registers
** that every target has. Where a formula loses digits in float32 it is
** computed in double; transcendental functions are those of the C library.
** Built with -ffp-contract=off, so that a product and a sum are two roundings
** on every target.
*/
#include "kernel_sets.h"

#include <math.h>
#include <string.h>

enum { LANES = 16 };

static int always(void) {
  return 1;
}

/* ---- sums -------------------------------------------------------------- */

/* sum of a[i] b[i]: term i goes to lane i % LANES; the lanes are then added in
** halves: 0 with 8, 0 with 4, … */
static float dot_lanes(const float *restrict a, const float *restrict b, size_t count) {
  float lane[LANES] = {0};
  size_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    for (size_t l = 0; l < LANES; l++) lane[l] += a[i + l] * b[i + l];
  }
  for (size_t l = 0; i + l < count; l++) lane[l] += a[i + l] * b[i + l];
  for (size_t half = LANES / 2; half > 0; half /= 2) {
    for (size_t l = 0; l < half; l++) lane[l] += lane[l + half];
  }
  return lane[0];
}

static double fold_lanes(double lane[LANES]) {
  for (size_t half = LANES / 2; half > 0; half /= 2) {
    for (size_t l = 0; l < half; l++) lane[l] += lane[l + half];
  }
  return lane[0];
}

static double scalar_dot(const float *a, const float *b, size_t count) {
  double lane[LANES] = {0};
  for (size_t i = 0; i < count; i++) lane[i % LANES] += (double)a[i] * (double)b[i];
  return fold_lanes(lane);
}

static double scalar_squared_distance(const float *a, const float *b, size_t count) {
  double lane[LANES] = {0};
  for (size_t i = 0; i < count; i++) {
    double difference = (double)a[i] - (double)b[i];
    lane[i % LANES] += difference * difference;
  }
  return fold_lanes(lane);
}

/* ---- products ---------------------------------------------------------- */

/* Rows in blocks that stay in the cache while the columns pass over them. */
static void scalar_linear(const float *x, size_t ldx, const float *w, size_t ldw, const float *bias,
                          float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  enum { ROWS = 16 };
  for (size_t first = 0; first < rows; first += ROWS) {
    size_t stop = rows - first < ROWS ? rows : first + ROWS;
    for (size_t c = 0; c < cols; c++) {
      float b = bias != NULL ? bias[c] : 0.0f;
      for (size_t r = first; r < stop; r++) {
        y[r * ldy + c] = dot_lanes(x + r * ldx, w + c * ldw, depth) + b;
      }
    }
  }
}

static void scalar_attention_scores(const float *q, size_t ldq, const float *k, size_t ldk,
                                    float scale, float *scores, size_t lds, size_t queries,
                                    size_t keys, size_t width) {
  for (size_t i = 0; i < queries; i++) {
    for (size_t j = 0; j < keys; j++) {
      scores[i * lds + j] = scale * dot_lanes(q + i * ldq, k + j * ldk, width);
    }
  }
}

static void scalar_add_scaled(float a, const float *x, float *y, size_t count) {
  for (size_t i = 0; i < count; i++) y[i] += a * x[i];
}

static void scalar_attention_context(const float *weights, size_t ldw, const float *v, size_t ldv,
                                     float *y, size_t ldy, size_t queries, size_t keys,
                                     size_t width) {
  for (size_t i = 0; i < queries; i++) {
    float *row = y + i * ldy; /* [width] */
    memset(row, 0, width * sizeof(float));
    for (size_t j = 0; j < keys; j++) {
      scalar_add_scaled(weights[i * ldw + j], v + j * ldv, row, width);
    }
  }
}

/* ---- element by element ------------------------------------------------ */

/* x/2 (1 + erf(x / sqrt 2)), as x/2 erfc(-x / sqrt 2) so that no digits are
** lost where erf is near -1. */
static float gelu(float x) {
  return (float)(0.5 * (double)x * erfc(-(double)x * 0.70710678118654752440));
}

/* (1 + tanh u) / 2 is 1 / (1 + exp -2u): again nothing cancels. */
static float gelu_tanh(float x) {
  double z = (double)x;
  double u = 0.79788456080286535588 * (z + 0.044715 * z * z * z);
  return (float)(z / (1.0 + exp(-2.0 * u)));
}

static float activation_of(activation kind, float x) {
  switch (kind) {
  case ACTIVATION_GELU: return gelu(x);
  case ACTIVATION_GELU_TANH: return gelu_tanh(x);
  case ACTIVATION_RELU: return x < 0.0f ? 0.0f : x;
  case ACTIVATION_SILU: return (float)((double)x / (1.0 + exp(-(double)x)));
  case ACTIVATION_TANH: return (float)tanh((double)x);
  case ACTIVATION_IDENTITY: break;
  }
  return x;
}

static void scalar_activate(activation kind, float *x, size_t count) {
  if (kind == ACTIVATION_IDENTITY) return;
  for (size_t i = 0; i < count; i++) x[i] = activation_of(kind, x[i]);
}

static void scalar_maximum(const float *x, float *y, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (x[i] > y[i] || isnan(x[i])) y[i] = x[i];
  }
}

static void scalar_multiply(const float *x, float *y, size_t count) {
  for (size_t i = 0; i < count; i++) y[i] *= x[i];
}

static void scalar_rotate(const float *cosines, const float *sines, float *x, size_t half) {
  for (size_t i = 0; i < half; i++) {
    float a = x[i], b = x[i + half];
    x[i] = a * cosines[i] - b * sines[i];
    x[i + half] = b * cosines[i] + a * sines[i];
  }
}

/* ---- row by row -------------------------------------------------------- */

/* Mean and 1 / sqrt(variance + epsilon) of x + residual, [cols]. */
static void row_moments(const float *x, const float *residual, size_t cols, float epsilon,
                        double *mean, double *scale) {
  double lane[LANES] = {0};
  for (size_t i = 0; i < cols; i++) {
    float z = residual != NULL ? x[i] + residual[i] : x[i];
    lane[i % LANES] += (double)z;
  }
  *mean = fold_lanes(lane) / (double)cols;
  memset(lane, 0, sizeof lane);
  for (size_t i = 0; i < cols; i++) {
    float z = residual != NULL ? x[i] + residual[i] : x[i];
    double deviation = (double)z - *mean;
    lane[i % LANES] += deviation * deviation;
  }
  *scale = 1.0 / sqrt(fold_lanes(lane) / (double)cols + (double)epsilon);
}

static void scalar_layer_norm(const float *x, size_t ldx, const float *residual, size_t ldr,
                              const float *gain, const float *bias, float epsilon, float *y,
                              size_t ldy, size_t rows, size_t cols) {
  for (size_t r = 0; r < rows; r++) {
    const float *in = x + r * ldx;                                   /* [cols] */
    const float *add = residual != NULL ? residual + r * ldr : NULL; /* [cols] */
    float *out = y + r * ldy;                                        /* [cols] */
    double mean, scale;
    row_moments(in, add, cols, epsilon, &mean, &scale);
    for (size_t i = 0; i < cols; i++) {
      float z = add != NULL ? in[i] + add[i] : in[i];
      double normal = ((double)z - mean) * scale * (double)gain[i];
      out[i] = (float)(bias != NULL ? normal + (double)bias[i] : normal);
    }
  }
}

static void softmax_row(float *x, size_t cols) {
  float max = x[0];
  for (size_t i = 1; i < cols; i++) {
    if (x[i] > max) max = x[i];
  }
  double lane[LANES] = {0};
  for (size_t i = 0; i < cols; i++) {
    x[i] = expf(x[i] - max);
    lane[i % LANES] += (double)x[i];
  }
  float scale = (float)(1.0 / fold_lanes(lane));
  for (size_t i = 0; i < cols; i++) x[i] *= scale;
}

static void scalar_softmax(float *x, size_t ldx, size_t rows, size_t cols) {
  if (cols == 0) return;
  for (size_t r = 0; r < rows; r++) softmax_row(x + r * ldx, cols);
}

/* ---- widening ---------------------------------------------------------- */

static void scalar_dot_codes(const int16_t *query, const int8_t *codes, int32_t *sums, size_t rows,
                             size_t depth) {
  for (size_t r = 0; r < rows; r++) {
    const int8_t *row = codes + r * depth;
    int32_t lane[LANES] = {0}, sum = 0;
    size_t j = 0;
    for (; j + LANES <= depth; j += LANES) {
      for (size_t l = 0; l < LANES; l++) lane[l] += query[j + l] * row[j + l];
    }
    for (; j < depth; j++) sum += query[j] * row[j];
    for (size_t l = 0; l < LANES; l++) sum += lane[l];
    sums[r] = sum;
  }
}

/* Sign 1, exponent 5 (bias 15), fraction 10. A subnormal half is its fraction
** times 2^-24, which float32 holds as a normal number. A NaN keeps its payload
** and becomes quiet, as the processors' own conversion makes it. */
static float half_to_float(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16;
  uint32_t exponent = (h >> 10) & 0x1f;
  uint32_t fraction = h & 0x3ff;
  uint32_t bits;
  float value;
  if (exponent == 0) {
    value = (float)fraction * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  if (exponent == 31) {
    bits = sign | 0x7f800000 | fraction << 13 | (fraction != 0 ? 0x400000 : 0);
  } else {
    bits = sign | (exponent + 112) << 23 | fraction << 13;
  }
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void scalar_from_half(const uint16_t *x, float *y, size_t count) {
  for (size_t i = 0; i < count; i++) y[i] = half_to_float(x[i]);
}

/* bfloat16 is the upper half of a float32. */
static void scalar_from_bfloat16(const uint16_t *x, float *y, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint32_t bits = (uint32_t)x[i] << 16;
    memcpy(y + i, &bits, sizeof bits);
  }
}

const kernels kernels_scalar = {
    .name = "scalar",
    .supported = always,
    .pack_rows = pack_rows_scalar,
    .packed_linear = packed_linear_scalar,
    .linear = scalar_linear,
    .activate = scalar_activate,
    .layer_norm = scalar_layer_norm,
    .attention_scores = scalar_attention_scores,
    .softmax = scalar_softmax,
    .attention_context = scalar_attention_context,
    .add_scaled = scalar_add_scaled,
    .maximum = scalar_maximum,
    .multiply = scalar_multiply,
    .rotate = scalar_rotate,
    .dot = scalar_dot,
    .squared_distance = scalar_squared_distance,
    .dot_codes = scalar_dot_codes,
    .from_half = scalar_from_half,
    .from_bfloat16 = scalar_from_bfloat16,
};
