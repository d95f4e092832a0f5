/*
** packed_checks.c: products in less precision against sums in double precision
** of numbers rounded here in other ways than there; int8 to the bit.
*/
#include "kernel_checks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const packed_precision both[] = {PRECISION_BF16, PRECISION_INT8};
static const char *const precision_names[] = {"float32", "bf16", "int8"};

/* ---- rounding anew -------------------------------------------------------- */

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static float from_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The nearer of the two bfloat16 around x, of which the one whose last bit is 0
** where both are as near; infinity stands where 2^128 would. */
static float nearest_bf16(float x) {
  if (isnan(x) || isinf(x)) return x;
  uint32_t below = bits_of(fabsf(x)) & 0xffff0000u, above = below + 0x10000;
  double low = (double)from_bits(below), size = fabs((double)x);
  double high = above == 0x7f800000 ? 0x1p128 : (double)from_bits(above);
  int up = high - size < size - low || (high - size <= size - low && (below & 0x10000) != 0);
  return copysignf(from_bits(up ? above : below), x);
}

/* codes[count] of x[count] as int8 has them, and their scale. */
static float nearest_codes(const float *x, size_t count, int *codes) {
  float most = 0;
  int finite = 1;
  for (size_t i = 0; i < count; i++) {
    most = fmaxf(most, fabsf(x[i]));
    finite = finite && isfinite(x[i]);
    codes[i] = 0;
  }
  if (!finite) return NAN;
  if (most < 0x1p-100f) return 0;
  float inverse = 127 / most;
  for (size_t i = 0; i < count; i++) codes[i] = (int)nearbyintf(x[i] * inverse);
  return most / 127;
}

/* codes[count] of x[count] as a row has them, less that of 0, which is *zero. */
static float nearest_row_codes(const float *x, size_t count, int *codes, int *zero) {
  float low = 0, high = 0;
  int finite = 1;
  *zero = 0;
  for (size_t i = 0; i < count; i++) {
    low = fminf(low, x[i]);
    high = fmaxf(high, x[i]);
    finite = finite && isfinite(x[i]);
    codes[i] = 0;
  }
  float half = high / 2 - low / 2;
  if (!finite) return NAN;
  if (half < 0x1p-100f) return 0;
  float inverse = 127 / half;
  for (size_t i = 0; i < count; i++) codes[i] = (int)nearbyintf(x[i] * inverse);
  *zero = -(int)nearbyintf(low * inverse);
  return half / 127;
}

/* ---- a product ------------------------------------------------------------ */

/* Blocks lie before a page that may not be touched, as the matrices do. */
typedef struct packed_case {
  packed_precision precision;
  matrix x, w, bias, y, x_block, w_block;
  packed_rows rows;
  packed_weights weights;
} packed_case;

static matrix block_make(uint64_t bytes) {
  return matrix_make(1, (size_t)bytes / sizeof(float), 0, MATRIX_ENDS_AT_GUARD);
}

static packed_case case_make(packed_precision p, size_t rows, size_t cols, size_t depth, size_t gap,
                             enum matrix_place place) {
  packed_case t = {.precision = p,
                   .x = matrix_make(rows, depth, gap, place),
                   .w = matrix_make(cols, depth, gap, place),
                   .bias = matrix_make(1, cols, 0, place),
                   .y = matrix_make(rows, cols, gap, place),
                   .x_block = block_make(packed_rows_bytes(p, rows, depth)),
                   .w_block = block_make(packed_bytes(p, cols, depth))};
  matrix_random(&t.x);
  matrix_random(&t.w);
  matrix_random(&t.bias);
  return t;
}

static void case_free(packed_case *t) {
  matrix_free(&t->x);
  matrix_free(&t->w);
  matrix_free(&t->bias);
  matrix_free(&t->y);
  matrix_free(&t->x_block);
  matrix_free(&t->w_block);
}

static void case_pack(const kernels *set, packed_case *t) {
  set->pack_rows(t->precision, t->x.at, t->x.ld, t->x.rows, t->x.cols, t->x_block.at, &t->rows);
  packed_make(t->precision, t->w.at, t->w.ld, t->w.rows, t->w.cols, t->w_block.at, &t->weights);
}

static void case_run(const kernels *set, packed_case *t, int with_bias) {
  case_pack(set, t);
  set->packed_linear(&t->rows, &t->weights, 0, t->y.cols, with_bias ? t->bias.at : NULL, t->y.at,
                     t->y.ld);
}

/* Of the sum of |x w|: bf16 sums one chain, whose roundings are a random walk. */
static double tolerance(size_t depth) {
  return (4 + sqrt((double)depth) / 4) * 0x1p-24;
}

static void compare_bf16(const packed_case *t, const float *x, const float *w, float bias,
                         float got, int *failures) {
  double sum = (double)bias, size = fabs(sum);
  for (size_t d = 0; d < t->x.cols; d++) {
    double term = (double)nearest_bf16(x[d]) * (double)nearest_bf16(w[d]);
    sum += term;
    size += fabs(term);
  }
  if (!(fabs((double)got - sum) <= tolerance(t->x.cols) * size)) {
    check_failed(failures, "bf16 %zu x %zu, depth %zu: %.9g, not %.9g", t->y.rows, t->y.cols,
                 t->x.cols, (double)got, sum);
  }
}

static void compare_int8(const packed_case *t, const float *x, const float *w, float bias,
                         float got, int *failures) {
  static int x_codes[PACKED_MOST_DEPTH], w_codes[PACKED_MOST_DEPTH];
  int zero;
  float x_scale = nearest_row_codes(x, t->x.cols, x_codes, &zero);
  float w_scale = nearest_codes(w, t->x.cols, w_codes);
  int64_t sum = 0;
  for (size_t d = 0; d < t->x.cols; d++) sum += x_codes[d] * w_codes[d];
  float want = (float)sum * (x_scale * w_scale) + bias;
  if (!same_number(got, want)) {
    check_failed(failures, "int8 %zu x %zu, depth %zu: %.9g, not %.9g", t->y.rows, t->y.cols,
                 t->x.cols, (double)got, (double)want);
  }
}

static void case_compare(const packed_case *t, int with_bias, int *failures) {
  for (size_t r = 0; r < t->y.rows; r++) {
    for (size_t c = 0; c < t->y.cols; c++) {
      const float *x = t->x.at + r * t->x.ld, *w = t->w.at + c * t->w.ld;
      float got = t->y.at[r * t->y.ld + c], bias = with_bias ? t->bias.at[c] : 0;
      if (t->precision == PRECISION_BF16)
        compare_bf16(t, x, w, bias, got, failures);
      else
        compare_int8(t, x, w, bias, got, failures);
    }
  }
  if (!matrix_gaps_intact(&t->y)) check_failed(failures, "packed_linear wrote between rows");
}

/* ---- the checks ----------------------------------------------------------- */

static void compare_sizes(const kernels *set, size_t rows, size_t cols, size_t depth, int turn,
                          int *failures) {
  for (size_t i = 0; i < COUNT(both); i++) {
    packed_case t = case_make(both[i], rows, cols, depth, turn % 3 == 0 ? 5 : 0,
                              turn % 2 == 0 ? MATRIX_ENDS_AT_GUARD : MATRIX_STARTS_AT_GUARD);
    case_run(set, &t, turn % 5 != 0);
    case_compare(&t, turn % 5 != 0, failures);
    case_free(&t);
  }
}

int check_packed_linear(const kernels *set) {
  static const size_t all_cols[] = {0, 1, 15, 16, 17, 31, 33, 48, 49, 64, 65, 97};
  static const size_t depths[] = {0, 1, 2, 3, 4, 5, 31, 33, 63, 64, 65, 129, 385};
  int failures = 0, turn = 0;
  for (size_t rows = 0; rows <= 40; rows++, turn++) {
    for (size_t j = 0; j < COUNT(all_cols); j++, turn++)
      compare_sizes(set, rows, all_cols[j], depths[(size_t)turn % COUNT(depths)], turn, &failures);
  }
  for (size_t k = 0; k < COUNT(depths); k++, turn++) {
    for (size_t rows = 1; rows <= 18; rows++, turn++)
      compare_sizes(set, rows, 50, depths[k], turn, &failures);
  }
  return failures;
}

/* As a model has them: many panels, many rows, long sums. */
int check_packed_panels(const kernels *set) {
  static const size_t sizes[][3] = {{70, 401, 384}, {30, 130, 1536}, {9, 40, 4099}, {3, 1030, 64}};
  int failures = 0;
  for (size_t k = 0; k < COUNT(sizes); k++)
    compare_sizes(set, sizes[k][0], sizes[k][1], sizes[k][2], (int)k + 1, &failures);
  return failures;
}

/* Columns first to last of row r alone, packed alone, against the whole. */
static void compare_part(const kernels *set, const packed_case *t, size_t r, size_t first,
                         size_t last, int *failures) {
  size_t cols = t->y.cols, depth = t->x.cols;
  matrix block = block_make(packed_rows_bytes(t->precision, 1, depth));
  matrix y = matrix_make(1, cols, 0, MATRIX_ENDS_AT_GUARD);
  packed_rows row;
  set->pack_rows(t->precision, t->x.at + r * t->x.ld, t->x.ld, 1, depth, block.at, &row);
  set->packed_linear(&row, &t->weights, first, last, t->bias.at, y.at, y.ld);
  for (size_t c = 0; c < cols; c++) {
    float want = c >= first && c < last ? t->y.at[r * t->y.ld + c] : NAN;
    if (!same_number(y.at[c], want))
      check_failed(failures, "%s, depth %zu: y[%zu, %zu] of columns %zu to %zu is %.9g, not %.9g",
                   precision_names[t->precision], depth, r, c, first, last, (double)y.at[c],
                   (double)want);
  }
  matrix_free(&block);
  matrix_free(&y);
}

/* Rows first to first + count of x. */
static packed_rows rows_part(const packed_rows *x, size_t first, size_t count) {
  packed_rows part = *x;
  part.rows = count;
  part.codes = (const char *)x->codes + first * x->stride;
  if (x->scales != NULL) part.scales = x->scales + first;
  if (x->zeros != NULL) part.zeros = x->zeros + first;
  return part;
}

/* `count` rows from r on, as a part of what was packed, against the whole. */
static void compare_rows(const kernels *set, const packed_case *t, size_t r, size_t count,
                         int *failures) {
  matrix y = matrix_make(count, t->y.cols, 3, MATRIX_ENDS_AT_GUARD);
  packed_rows part = rows_part(&t->rows, r, count);
  set->packed_linear(&part, &t->weights, 0, t->y.cols, t->bias.at, y.at, y.ld);
  for (size_t i = 0; i < count; i++) {
    if (memcmp(y.at + i * y.ld, t->y.at + (r + i) * t->y.ld, t->y.cols * sizeof *y.at) != 0)
      check_failed(failures, "%s, depth %zu: row %zu of %zu from %zu differs",
                   precision_names[t->precision], t->x.cols, i, count, r);
  }
  matrix_free(&y);
}

int check_packed_splits(const kernels *set) {
  static const size_t depths[] = {1, 7, 64, 100, 385, 1537};
  enum { ROWS = 37, COLS = 107 };
  int failures = 0;
  for (size_t k = 0; k < 2 * COUNT(depths); k++) {
    packed_case t = case_make(both[k % 2], ROWS, COLS, depths[k / 2], k % 3, MATRIX_ENDS_AT_GUARD);
    case_run(set, &t, 1);
    for (size_t r = 0; r < ROWS; r++) {
      size_t first = r * 16 % 112, last = first + r * 7 % 50;
      compare_part(set, &t, r, 0, COLS, &failures);
      compare_part(set, &t, r, first, last < COLS ? last : COLS, &failures);
      for (size_t count = 1; r % 6 == 0 && r + count <= ROWS; count++)
        compare_rows(set, &t, r, count, &failures);
    }
    case_free(&t);
  }
  return failures;
}

/* A NaN or an infinity shows in its own row or column and nowhere else: as a NaN in
** int8, whose scale it spoils. A row of zeros gives the bias. */
int check_packed_not_finite(const kernels *set) {
  static const size_t depths[] = {1, 7, 16, 33, 100};
  int failures = 0;
  for (size_t k = 0; k < 2 * COUNT(depths); k++) {
    size_t depth = depths[k / 2];
    packed_case t = case_make(both[k % 2], 14, 20, depth, 0, MATRIX_ENDS_AT_GUARD);
    t.x.at[13 * t.x.ld + depth - 1] = NAN;
    t.x.at[3 * t.x.ld + depth / 2] = INFINITY;
    t.w.at[9 * t.w.ld + depth - 1] = NAN;
    for (size_t d = 0; d < depth; d++) t.x.at[5 * t.x.ld + d] = d % 2 == 0 ? 0.0f : -0.0f;
    for (size_t d = 0; d < depth; d++) t.x.at[6 * t.x.ld + d] = d % 2 == 0 ? 1e-40f : -1e-37f;
    case_run(set, &t, 1);
    for (size_t r = 0; r < 14; r++) {
      for (size_t c = 0; c < 20; c++) {
        float got = t.y.at[r * t.y.ld + c], factor = t.w.at[c * t.w.ld + depth / 2];
        int right = r == 13 || c == 9               ? isnan(got)
                    : r == 5 || r == 6              ? got == t.bias.at[c]
                    : r != 3                        ? isfinite(got)
                    : both[k % 2] == PRECISION_INT8 ? isnan(got)
                                                    : isinf(got) && (got > 0) == (factor > 0);
        if (!right)
          check_failed(&failures, "%s, depth %zu: y[%zu, %zu] is %g", precision_names[both[k % 2]],
                       depth, r, c, (double)got);
      }
    }
    case_free(&t);
  }
  return failures;
}

/* All products of one sign and as large as they can be: no sum may overflow. */
int check_packed_extreme(const kernels *set) {
  static const size_t depths[] = {4, 64, 1000, PACKED_MOST_DEPTH};
  int failures = 0;
  for (size_t k = 0; k < COUNT(depths); k++) {
    for (int signs = 0; signs < 4; signs++) {
      packed_case t = case_make(PRECISION_INT8, 3, 5, depths[k], 0, MATRIX_ENDS_AT_GUARD);
      for (size_t i = 0; i < 3 * depths[k]; i++) t.x.at[i] = signs & 1 ? 3.0f : -3.0f;
      for (size_t i = 0; i < 5 * depths[k]; i++) t.w.at[i] = signs & 2 ? 0.1f : -0.1f;
      case_run(set, &t, 1);
      case_compare(&t, 1, &failures);
      case_free(&t);
    }
  }
  return failures;
}

/* ---- what pack_rows writes ------------------------------------------------ */

/* The numbers that are hard to round, both signs of each. */
static float hard_number(size_t i) {
  static const uint32_t upper[] = {0,      1,      0x7f,   0x80,   0x3f7f, 0x3f80, 0x3f81,
                                   0x4000, 0x7f7e, 0x7f7f, 0x7f80, 0x7f81, 0x7fc0, 0x7fff};
  static const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
  size_t n = i / 2;
  uint32_t bits = upper[n % COUNT(upper)] << 16 | lower[n / COUNT(upper) % COUNT(lower)];
  return from_bits(bits | (i % 2 == 0 ? 0 : 0x80000000u));
}

/* Term d of a row of bf16. */
static float bf16_term(const packed_rows *rows, size_t r, size_t d) {
  const char *row = (const char *)rows->codes + r * rows->stride;
  return rows->wide ? ((const float *)(const void *)row)[d]
                    : from_bits((uint32_t)((const uint16_t *)(const void *)row)[d] << 16);
}

static void compare_bf16_row(const packed_rows *rows, size_t r, const float *x, int *failures) {
  size_t terms = rows->stride / (rows->wide ? sizeof(float) : sizeof(uint16_t));
  for (size_t d = 0; d < terms; d++) {
    float got = bf16_term(rows, r, d), want = d < rows->depth ? nearest_bf16(x[d]) : 0;
    if (!same_number(got, want))
      check_failed(failures, "bf16 of %.9g is %.9g, not %.9g", d < rows->depth ? (double)x[d] : 0,
                   (double)got, (double)want);
  }
}

static void compare_int8_row(const packed_rows *rows, size_t r, const float *x, int *failures) {
  const uint8_t *codes = (const uint8_t *)rows->codes + r * rows->stride;
  int want[2048] = {0};
  int zero;
  float scale = nearest_row_codes(x, rows->depth, want, &zero);
  if (!same_number(rows->scales[r], scale) || rows->zeros[r] != zero)
    check_failed(failures, "the scale of row %zu is %.9g, not %.9g, or the code of 0 %d, not %d", r,
                 (double)rows->scales[r], (double)scale, rows->zeros[r], zero);
  for (size_t d = 0; d < rows->stride; d++) {
    int code = codes[d] - rows->zeros[r], right = d < rows->depth ? want[d] : 0;
    if (code != right)
      check_failed(failures, "code %zu of row %zu is %d, not %d", d, r, code, right);
  }
}

int check_pack_rows(const kernels *set) {
  static const size_t depths[] = {1,  2,  3,  7,  8,  15,  16,  17,  31,
                                  32, 33, 63, 64, 65, 100, 385, 1536};
  enum { ROWS = 9 };
  int failures = 0;
  for (size_t k = 0; k < 2 * COUNT(depths); k++) {
    size_t depth = depths[k / 2];
    packed_case t = case_make(both[k % 2], ROWS, 1, depth, k % 3,
                              k % 4 < 2 ? MATRIX_ENDS_AT_GUARD : MATRIX_STARTS_AT_GUARD);
    for (size_t d = 0; d < depth; d++) {
      t.x.at[d] = hard_number(d * 7 + k);
      t.x.at[t.x.ld + d] = (float)(int)(d % 255) - 127.0f + (d % 3 == 0 ? 0.5f : 0.0f);
      t.x.at[2 * t.x.ld + d] = 0.0f;
      t.x.at[3 * t.x.ld + d] *= 0x1p-99f;
      t.x.at[4 * t.x.ld + d] *= 0x1p127f;
      t.x.at[5 * t.x.ld + d] *= 0x1p-130f;
    }
    t.x.at[6 * t.x.ld + depth - 1] = NAN;
    t.x.at[7 * t.x.ld + depth / 2] = -INFINITY;
    case_pack(set, &t);
    for (size_t r = 0; r < ROWS; r++) {
      const float *x = t.x.at + r * t.x.ld;
      if (both[k % 2] == PRECISION_BF16)
        compare_bf16_row(&t.rows, r, x, &failures);
      else
        compare_int8_row(&t.rows, r, x, &failures);
    }
    case_free(&t);
  }
  return failures;
}

/* Weights [17, 5] by hand: their places, and the zeros around them. */
int check_packed_layout(const kernels *set) {
  int failures = 0;
  packed_case t = case_make(PRECISION_BF16, 0, 17, 5, 2, MATRIX_ENDS_AT_GUARD);
  case_pack(set, &t);
  const uint16_t *panels = t.weights.panels; /* [2, 16, 16, 2] */
  for (size_t i = 0; i < 2 * 16 * 16 * 2; i++) {
    size_t c = i / 512 * 16 + i / 2 % 16, d = i % 512 / 32 * 2 + i % 2;
    float want = c < 17 && d < 5 ? nearest_bf16(t.w.at[c * t.w.ld + d]) : 0;
    if (!same_number(from_bits((uint32_t)panels[i] << 16), want))
      check_failed(&failures, "bf16 weight %zu is not that of column %zu, term %zu", i, c, d);
  }
  case_free(&t);
  t = case_make(PRECISION_INT8, 0, 17, 5, 2, MATRIX_ENDS_AT_GUARD);
  case_pack(set, &t);
  const int8_t *codes = t.weights.panels; /* [2, 16, 16, 4] */
  for (size_t c = 0; c < 32; c++) {
    int want[5] = {0}, sum = 0;
    float scale = c < 17 ? nearest_codes(t.w.at + c * t.w.ld, 5, want) : 0;
    for (size_t d = 0; d < 64; d++) {
      size_t at = c / 16 * 1024 + d / 4 * 64 + c % 16 * 4 + d % 4;
      sum += codes[at];
      if (codes[at] != (d < 5 ? want[d] : 0))
        check_failed(&failures, "int8 weight [%zu, %zu] is wrong", c, d);
    }
    if (t.weights.sums[c] != sum || !same_number(t.weights.scales[c], scale))
      check_failed(&failures, "the sum or the scale of column %zu is wrong", c);
  }
  case_free(&t);
  if (packed_bytes(PRECISION_FLOAT32, 5, 5) != 0 || packed_bytes(PRECISION_BF16, 17, 33) != 4096 ||
      packed_bytes(PRECISION_INT8, 17, 5) != 2048 + 32 * 8 ||
      packed_rows_bytes(PRECISION_INT8, 17, 65) != 17 * 128 + 192 ||
      packed_rows_bytes(PRECISION_BF16, 17, 33) != 17 * 256 ||
      packed_bytes(PRECISION_BF16, SIZE_MAX, 2) != UINT64_MAX ||
      packed_rows_bytes(PRECISION_INT8, 2, SIZE_MAX / 2) != UINT64_MAX)
    check_failed(&failures, "the bytes of a block are wrong");
  return failures;
}
