/*
** packed.c: the layout of packed weights and rows, and how weights come into it.
**
** One layout serves all instructions: VDPBF16PS and VPDPBUSD take a group, 64
** bytes of 16 columns, as a vector; AMX takes 16 groups as a tile; sets without
** either widen the terms of a group. Rounding stands here in plain C, in the
** vector sets in packed_vectors.h, with the same bits.
*/
#include "kernel_sets.h"

#include <math.h>
#include <string.h>

static size_t packed_terms(packed_precision p) {
  return p == PRECISION_BF16 ? 2 : 4;
}

static size_t round_up(size_t n, size_t step) {
  return (n + step - 1) / step * step;
}

size_t packed_row_bytes(packed_precision p, size_t depth) {
  return round_up(depth * 4 / packed_terms(p), PACKED_ROW_STEP);
}

/* Beyond these no memory holds the block, and its size could overflow. */
static int too_large(size_t count, size_t depth) {
  return count >= (size_t)1 << 31 || depth >= (size_t)1 << 30;
}

uint64_t packed_bytes(packed_precision p, size_t cols, size_t depth) {
  if (p == PRECISION_FLOAT32) return 0;
  if (too_large(cols, depth)) return UINT64_MAX;
  uint64_t padded = round_up(cols, PACKED_COLUMNS);
  uint64_t beside = p == PRECISION_INT8 ? sizeof(float) + sizeof(int32_t) : 0;
  return padded * (packed_row_bytes(p, depth) + beside);
}

uint64_t packed_rows_bytes(packed_precision p, size_t rows, size_t depth) {
  if (p == PRECISION_FLOAT32) return 0;
  if (too_large(rows, depth)) return UINT64_MAX;
  uint64_t row = packed_row_bytes(p, depth);
  if (p == PRECISION_BF16) return rows * 2 * row;
  return rows * row + round_up(rows * (sizeof(float) + sizeof(int32_t)), PACKED_ROW_STEP);
}

/* *out of packed_make, without what the block holds. */
static void packed_open(packed_precision p, size_t cols, size_t depth, const void *block,
                        packed_weights *out) {
  size_t padded = round_up(cols, PACKED_COLUMNS), row = packed_row_bytes(p, depth);
  const char *panels = block;
  *out = (packed_weights){p, cols, depth, row * PACKED_COLUMNS, panels, NULL, NULL};
  if (p != PRECISION_INT8) return;
  out->scales = (const float *)(const void *)(panels + padded * row);
  out->sums = (const int32_t *)(const void *)(out->scales + padded);
}

void packed_rows_open(packed_precision p, int wide, size_t rows, size_t depth, void *block,
                      packed_rows *out) {
  size_t stride = packed_row_bytes(p, depth);
  if (p != PRECISION_BF16) wide = 0;
  *out = (packed_rows){p, wide, rows, depth, wide ? 2 * stride : stride, block, NULL, NULL};
  if (p != PRECISION_INT8) return;
  out->scales = (const float *)(const void *)((const char *)block + rows * stride);
  out->zeros = (const int32_t *)(const void *)(out->scales + rows);
}

/* ---- scales ---------------------------------------------------------------- */

/* Of numbers that are spread over 254 steps, `half` being half of their range. Below
** 2^-100 the inverse would come near the largest float and past it. */
static packed_scale scale_of(float half) {
  if (!(half <= 0x1.fffffep127f)) return (packed_scale){NAN, 0.0f, 0};
  if (half < 0x1p-100f) return (packed_scale){0.0f, 0.0f, 0};
  return (packed_scale){half / 127.0f, 127.0f / half, 0};
}

/* The lowest number gets code 0. The highest is 254 steps above it, and both are
** rounded: it gets 255 at most. */
packed_scale packed_rows_scale(const packed_rows *x, size_t r, float low, float high) {
  packed_scale s = scale_of(0.5f * high - 0.5f * low);
  if (s.inverse != 0.0f) s.zero = -(int32_t)nearbyintf(low * s.inverse);
  ((float *)(uintptr_t)x->scales)[r] = s.scale;
  ((int32_t *)(uintptr_t)x->zeros)[r] = s.zero;
  return s;
}

void packed_range(const float *x, size_t count, float *low, float *high) {
  int finite = 1;
  *low = *high = 0.0f;
  for (size_t i = 0; i < count; i++) {
    finite = finite && isfinite(x[i]);
    if (x[i] < *low) *low = x[i];
    if (x[i] > *high) *high = x[i];
  }
  if (!finite) *low = *high = NAN;
}

/* ---- rounding ------------------------------------------------------------- */

/* To the nearest, ties to even: half of the last place that stays, less one bit
** where the number is even, carries into it. A NaN keeps its upper half, and
** becomes quiet, so that it stays one. */
static uint16_t to_bf16(uint32_t bits) {
  uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  uint32_t nan = bits | 0x400000;
  return (uint16_t)(((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded) >> 16);
}

void packed_to_bf16(const float *x, uint16_t *codes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, x + i, sizeof bits);
    codes[i] = to_bf16(bits);
  }
}

/* In the sum with 3 * 2^22 the last place is 1: it is rounded to a whole number, to
** even in the middle, whose lowest byte is the code. */
void packed_to_int8(const float *x, float inverse, int8_t *codes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    float sum = x[i] * inverse + 0x1.8p23f;
    uint32_t bits;
    memcpy(&bits, &sum, sizeof bits);
    codes[i] = (int8_t)(uint8_t)bits;
  }
}

/* The largest |x|; NaN or an infinity where there is one. Without their signs the
** bits of floats are ordered as the floats are, NaN above all. packed_range would do as
** well, but finding both ends takes 0.3 ns a number more (gcc 12; packing takes 1). */
static float largest(const float *x, size_t count) {
  enum { LANES = 8 };
  uint32_t lane[LANES] = {0}, bits[LANES];
  size_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    memcpy(bits, x + i, sizeof bits);
    for (size_t l = 0; l < LANES; l++) {
      int32_t size = (int32_t)(bits[l] & 0x7fffffff), most = (int32_t)lane[l];
      lane[l] = (uint32_t)(size > most ? size : most);
    }
  }
  for (size_t l = 0; i < count; i++, l++) {
    memcpy(bits, x + i, sizeof *bits);
    uint32_t size = bits[0] & 0x7fffffff;
    if (size > lane[l]) lane[l] = size;
  }
  for (size_t l = 1; l < LANES; l++) {
    if (lane[l] > lane[0]) lane[0] = lane[l];
  }
  float most;
  memcpy(&most, lane, sizeof most);
  return most;
}

/* ---- weights -------------------------------------------------------------- */

/* A word is what one column has of a group: 2 terms of bf16, 4 codes of int8. That
** many of 16 columns wait here before they go to their panel, whose lines are so
** written once. */
enum { WORDS = 128 };
typedef struct column_words {
  union {
    uint32_t word[WORDS];
    uint16_t bf16[2 * WORDS];
    int8_t int8[4 * WORDS];
  } column[PACKED_COLUMNS];
} column_words;

/* Packs terms d to d + n, n <= what WORDS hold, of the columns at w[count, depth;
** ldw] into panel + d: zeros after the columns and up to `padded` words. Adds the
** codes to sums[count]. */
static void pack_words(packed_precision p, const float *w, size_t ldw, size_t count, size_t n,
                       size_t padded, const float *inverse, int32_t *sums, uint32_t *panel) {
  column_words words;
  memset(&words, 0, sizeof words);
  for (size_t c = 0; c < count; c++) {
    if (p == PRECISION_BF16) {
      packed_to_bf16(w + c * ldw, words.column[c].bf16, n);
    } else if (inverse[c] != 0.0f) {
      packed_to_int8(w + c * ldw, inverse[c], words.column[c].int8, n);
      int32_t sum = 0;
      for (size_t i = 0; i < n; i++) sum += words.column[c].int8[i];
      sums[c] += sum;
    }
  }
  for (size_t g = 0; g < padded; g++) {
    for (size_t c = 0; c < PACKED_COLUMNS; c++) {
      panel[g * PACKED_COLUMNS + c] = words.column[c].word[g];
    }
  }
}

/* One panel: `count` columns, 16 at most. */
static void pack_panel(packed_precision p, const float *w, size_t ldw, size_t count, size_t depth,
                       float *scales, int32_t *sums, uint32_t *panel) {
  float inverse[PACKED_COLUMNS] = {0};
  size_t terms = packed_terms(p), words = packed_row_bytes(p, depth) / sizeof *panel;
  if (p == PRECISION_INT8) {
    memset(scales, 0, PACKED_COLUMNS * sizeof *scales);
    memset(sums, 0, PACKED_COLUMNS * sizeof *sums);
    for (size_t c = 0; c < count; c++) {
      packed_scale s = scale_of(largest(w + c * ldw, depth));
      scales[c] = s.scale;
      inverse[c] = s.inverse;
    }
  }
  for (size_t g = 0; g < words; g += WORDS) {
    size_t d = g * terms, left = depth > d ? depth - d : 0;
    size_t n = left < WORDS * terms ? left : WORDS * terms;
    pack_words(p, w + (n > 0 ? d : 0), ldw, count, n, words - g < WORDS ? words - g : WORDS,
               inverse, sums, panel + g * PACKED_COLUMNS);
  }
}

void packed_make(packed_precision p, const float *w, size_t ldw, size_t cols, size_t depth,
                 void *block, packed_weights *out) {
  char *panels = block;
  packed_open(p, cols, depth, block, out);
  if (p == PRECISION_FLOAT32) return;
  size_t beside = round_up(cols, PACKED_COLUMNS);
  float *scales = (float *)(void *)(panels + beside / PACKED_COLUMNS * out->panel);
  int32_t *sums = (int32_t *)(void *)(scales + beside);
  for (size_t c = 0; c < cols; c += PACKED_COLUMNS) {
    size_t count = cols - c < PACKED_COLUMNS ? cols - c : PACKED_COLUMNS;
    uint32_t *panel = (uint32_t *)(void *)(panels + c / PACKED_COLUMNS * out->panel);
    if (p == PRECISION_INT8)
      pack_panel(p, w + c * ldw, ldw, count, depth, scales + c, sums + c, panel);
    else
      pack_panel(p, w + c * ldw, ldw, count, depth, NULL, NULL, panel);
  }
}
