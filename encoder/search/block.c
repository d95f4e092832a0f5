/*
** block.c: vectors quantized to int8, packed in blocks that can be stored.
**
** Everything is computed here in double, in an order that no processor changes:
** the same vectors give the same bytes everywhere. The error that is stored is a
** bound, so it covers the rounding of its own computation; by how much, each
** place says. u = 2^-53 is the rounding of one operation in double.
*/
#include <math.h>
#include <string.h>

#include "search_parts.h"

enum { HEADER_BYTES = 16, ENTRY_BYTES = 28 }; /* an entry without its codes */
enum { LARGEST_CODE = 127 };

static const unsigned char magic[4] = {'b', 'q', 'b', '1'};

/* ---- Little-endian numbers, at any address ------------------------------ */

static void put_u32(unsigned char *at, uint32_t x) {
  for (int i = 0; i < 4; i++) at[i] = (unsigned char)(x >> (8 * i));
}

static void put_i64(unsigned char *at, int64_t x) {
  for (int i = 0; i < 8; i++) at[i] = (unsigned char)((uint64_t)x >> (8 * i));
}

static void put_f32(unsigned char *at, float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  put_u32(at, bits);
}

static int64_t get_i64(const unsigned char *at) {
  uint64_t bits = (uint64_t)get_u32(at) | (uint64_t)get_u32(at + 4) << 32;
  int64_t x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

int64_t search_block_id(const search_block *view, size_t index) {
  return get_i64(view->ids + 8 * index);
}

int64_t search_block_row(const search_block *view, size_t index) {
  return get_i64(view->rows + 8 * index);
}

search_entry search_block_entry(const search_block *view, size_t index) {
  return entry_at(view, index);
}

/* ---- The layout ---------------------------------------------------------- */

uint64_t search_block_size(size_t count, size_t dim) {
  if (count > UINT32_MAX || dim > UINT32_MAX) return UINT64_MAX;
  /* At most 2^32 (2^32 + 28): only that sum can leave 64 bits. */
  uint64_t entries = memory_product(count, (uint64_t)dim + ENTRY_BYTES);
  return entries > UINT64_MAX - HEADER_BYTES ? UINT64_MAX : entries + HEADER_BYTES;
}

/* The parts of a block whose header is known to be right. */
static search_block parts_of(const unsigned char *bytes, size_t count, size_t dim) {
  search_block parts = {.count = count, .dim = dim};
  parts.ids = bytes + HEADER_BYTES;
  parts.rows = parts.ids + 8 * count;
  parts.scale = parts.rows + 8 * count;
  parts.error = parts.scale + 4 * count;
  parts.norm = parts.error + 4 * count;
  parts.codes = (const int8_t *)(parts.norm + 4 * count);
  return parts;
}

void search_block_begin(void *block, search_metric metric, size_t count, size_t dim) {
  unsigned char *at = block;
  memcpy(at, magic, sizeof magic);
  put_u32(at + 4, (uint32_t)metric);
  put_u32(at + 8, (uint32_t)count);
  put_u32(at + 12, (uint32_t)dim);
}

bert_status search_block_view(const void *bytes, uint64_t size, search_metric metric, size_t dim,
                              search_block *view, bert_error *error) {
  const unsigned char *at = bytes;
  if (size < HEADER_BYTES || memcmp(at, magic, sizeof magic) != 0)
    return error_set(error, BERT_INVALID, "a block of %llu bytes does not begin with bqb1",
                     (unsigned long long)size);
  uint32_t kind = get_u32(at + 4), count = get_u32(at + 8), width = get_u32(at + 12);
  if (kind != (uint32_t)metric)
    return error_set(error, BERT_INVALID, "a block is of metric %lu, not %d", (unsigned long)kind,
                     (int)metric);
  if (width != dim)
    return error_set(error, BERT_INVALID, "a block holds vectors of %lu numbers, not %zu",
                     (unsigned long)width, dim);
  if (search_block_size(count, dim) != size)
    return error_set(error, BERT_INVALID,
                     "a block of %llu bytes says that it holds %lu vectors of %zu numbers",
                     (unsigned long long)size, (unsigned long)count, dim);
  *view = parts_of(at, count, dim);
  return BERT_OK;
}

/* ---- Quantizing ---------------------------------------------------------- */

static float float_not_below(double x) {
  float nearest = (float)x;
  return (double)nearest < x ? nextafterf(nearest, INFINITY) : nearest;
}

/* The largest |x[j]|; infinity where one is not finite. Without the sign, the bits
** of floats are in the order of their sizes, NaN above infinity. */
static double largest_of(const float *x, size_t dim) {
  uint32_t largest = 0;
  for (size_t j = 0; j < dim; j++) {
    uint32_t bits;
    memcpy(&bits, x + j, sizeof bits);
    bits &= 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  float size;
  memcpy(&size, &largest, sizeof size);
  return isfinite(size) ? (double)size : INFINITY;
}

/* Sums go over four lanes, so that one addition need not wait for the one before. */
enum { LANES = 4 };
static double add_lanes(const double lane[LANES]) {
  return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

/* Sums of squares of floats neither overflow nor vanish in double. */
static double norm_of(const float *x, size_t dim) {
  double lane[LANES] = {0};
  size_t j = 0;
  for (; j + LANES <= dim; j += LANES)
    for (size_t l = 0; l < LANES; l++) lane[l] += (double)x[j + l] * (double)x[j + l];
  for (size_t l = 0; j + l < dim; l++) lane[l] += (double)x[j + l] * (double)x[j + l];
  return sqrt(add_lanes(lane));
}

/* To the nearest whole number, for |x| < 2^51: the sum has no bits below 1. */
static double round_whole(double x) {
  const double shift = 0x1.8p52;
  return (x + shift) - shift;
}

/* The code of y, and the square of what is lost. */
static inline int quantize_one(double y, double scale, double per_code, double *lost) {
  double code = round_whole(y * per_code);
  code = code < LARGEST_CODE ? code : LARGEST_CODE;
  code = code > -LARGEST_CODE ? code : -LARGEST_CODE;
  double rest = y - scale * code; /* the product is exact: 24 and 7 bits */
  *lost += rest * rest;
  return (int)code;
}

/* codes[dim] of factor * x with the scale given; *squares is the sum of their
** squares, the result that of the squares of what is lost. */
static double quantize(const float *x, size_t dim, double factor, double scale, int8_t *codes,
                       int64_t *squares) {
  double lost[LANES] = {0}, per_code = 1 / scale;
  int64_t sum = 0;
  for (size_t j = 0; j < dim; j += LANES) {
    size_t most = dim - j < LANES ? dim - j : LANES;
    for (size_t l = 0; l < most; l++) {
      int code = quantize_one(factor * (double)x[j + l], scale, per_code, &lost[l]);
      codes[j + l] = (int8_t)code;
      sum += (int64_t)code * code;
    }
  }
  *squares = sum;
  return add_lanes(lost);
}

void search_block_set(void *block, size_t index, int64_t id, int64_t row, const float *x) {
  unsigned char *at = block;
  search_block parts = parts_of(at, get_u32(at + 8), get_u32(at + 12));
  size_t dim = parts.dim;
  int cosine = get_u32(at + 4) == SEARCH_COSINE;
  double largest = largest_of(x, dim), factor = 1;
  int8_t *codes = (int8_t *)(at + ((const unsigned char *)parts.codes - at)) + index * dim;
  search_entry entry = {0, 0, 0};
  if (cosine && largest > 0 && isfinite(largest)) factor = 1 / norm_of(x, dim);
  if (!isfinite(largest) || (cosine && largest == 0)) {
    entry.error = INFINITY;
    memset(codes, 0, dim);
  } else if (largest == 0) {
    memset(codes, 0, dim); /* exact */
  } else {
    /* factor x is within (dim / 2 + 3) u of the true quotient, a sum of squares
    ** and its root within (dim + 4) u; `slack` is above twice that. */
    double slack = ((double)dim + 16) * 0x1p-52;
    int64_t squares;
    entry.scale = float_not_below(largest * factor / LARGEST_CODE);
    double lost = quantize(x, dim, factor, (double)entry.scale, codes, &squares);
    entry.error = float_not_below(sqrt(lost) * (1 + slack) + (cosine ? slack : 0));
    entry.norm = float_not_below((double)entry.scale * sqrt((double)squares) * (1 + 0x1p-50));
  }
  put_i64(at + (parts.ids - at) + 8 * index, id);
  put_i64(at + (parts.rows - at) + 8 * index, row);
  put_f32(at + (parts.scale - at) + 4 * index, entry.scale);
  put_f32(at + (parts.error - at) + 4 * index, entry.error);
  put_f32(at + (parts.norm - at) + 4 * index, entry.norm);
}
