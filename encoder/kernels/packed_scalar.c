/*
** packed_scalar.c: the packed products in plain C, the reference of the others.
**
** The sixteen columns of a group are sixteen sums side by side, which a compiler
** turns into the vector registers that every target has.
*/
#include "kernel_sets.h"

#include <string.h>

void pack_rows_scalar(packed_precision p, const float *x, size_t ldx, size_t rows, size_t depth,
                      void *block, packed_rows *out) {
  packed_rows_open(p, 0, rows, depth, block, out);
  for (size_t r = 0; r < rows && p != PRECISION_FLOAT32; r++) {
    const float *from = x + r * ldx; /* [depth] */
    char *to = (char *)block + r * out->stride;
    memset(to, 0, out->stride);
    if (p == PRECISION_BF16) {
      packed_to_bf16(from, (uint16_t *)(void *)to, depth);
      continue;
    }
    float low, high;
    packed_range(from, depth, &low, &high);
    packed_scale s = packed_rows_scale(out, r, low, high);
    if (s.inverse != 0.0f) packed_to_int8(from, s.inverse, (int8_t *)to, depth);
    for (size_t i = 0; i < out->stride; i++) to[i] = (char)(to[i] + s.zero);
  }
}

static float widened(uint32_t upper) {
  float x;
  memcpy(&x, &upper, sizeof x);
  return x;
}

/* sum[c] += the terms of one group in column c, the first of a pair first. */
static void add_bf16(const void *row, const uint32_t *panel, size_t groups,
                     float sum[PACKED_COLUMNS]) {
  for (size_t g = 0; g < groups; g++, panel += PACKED_COLUMNS) {
    uint16_t pair[2];
    memcpy(pair, (const char *)row + g * sizeof pair, sizeof pair);
    float first = widened((uint32_t)pair[0] << 16), second = widened((uint32_t)pair[1] << 16);
    for (size_t c = 0; c < PACKED_COLUMNS; c++) {
      uint16_t w[2];
      memcpy(w, panel + c, sizeof w);
      sum[c] += first * widened((uint32_t)w[0] << 16);
      sum[c] += second * widened((uint32_t)w[1] << 16);
    }
  }
}

static void add_int8(const void *row, const uint32_t *panel, size_t groups,
                     int32_t sum[PACKED_COLUMNS]) {
  const int8_t *codes = (const int8_t *)panel;
  const uint8_t *x = row;
  for (size_t g = 0; g < groups; g++, x += 4, codes += PACKED_GROUP) {
    for (size_t c = 0; c < PACKED_COLUMNS; c++) {
      for (size_t t = 0; t < 4; t++) sum[c] += x[t] * codes[4 * c + t];
    }
  }
}

/* out[16] = the products of row r of x and one panel of w, without bias. */
static void one_panel(const packed_rows *x, const packed_weights *w, size_t r, size_t col,
                      float out[PACKED_COLUMNS]) {
  const char *row = (const char *)x->codes + r * x->stride;
  const char *panel = (const char *)w->panels + col / PACKED_COLUMNS * w->panel;
  size_t groups = w->panel / PACKED_GROUP;
  if (w->precision == PRECISION_BF16) {
    memset(out, 0, PACKED_COLUMNS * sizeof *out);
    add_bf16(row, (const uint32_t *)(const void *)panel, groups, out);
    return;
  }
  int32_t sum[PACKED_COLUMNS] = {0};
  add_int8(row, (const uint32_t *)(const void *)panel, groups, sum);
  for (size_t c = 0; c < PACKED_COLUMNS; c++) {
    int64_t exact = (int64_t)sum[c] - (int64_t)x->zeros[r] * w->sums[col + c];
    out[c] = (float)exact * (x->scales[r] * w->scales[col + c]);
  }
}

void packed_linear_scalar(const packed_rows *x, const packed_weights *w, size_t first, size_t last,
                          const float *bias, float *y, size_t ldy) {
  for (size_t col = first; col < last; col += PACKED_COLUMNS) {
    size_t count = last - col < PACKED_COLUMNS ? last - col : PACKED_COLUMNS;
    for (size_t r = 0; r < x->rows; r++) {
      float out[PACKED_COLUMNS];
      one_panel(x, w, r, col, out);
      for (size_t c = 0; c < count; c++) {
        y[r * ldy + col + c] = out[c] + (bias != NULL ? bias[col + c] : 0.0f);
      }
    }
  }
}
