/*
** packed_vectors.h: what the packed products of all vector sets share: rounding
** rows, the last steps of int8, and what a tile needs to know. Who includes it
** includes a set_*.h first, whose vocabulary, beside that of vector_kernels.h, has
**   I                      a vector of LANES int32
**   v_to_bf16(x)           words W whose upper half is x, rounded as packed.c does
**   w_store_upper(p, w)    the upper halves of LANES words to uint16_t
**   v_upper(w)             the same as floats
**   v_store_codes(p, x, z) LANES whole numbers nearest to x, plus z, to uint8_t
**   v_from_sums(I, p, z)   sums of codes to floats, without what the code of 0 adds
**                          to each: z times the sum of the column's codes, int32_t *p
**   W                      LANES groups, words of 32 bits; w_load(p), w_set1(word)
**   ROW_OFFSET             what a row's codes lose before they are multiplied: 0, or
**                          128 where the instructions take signed codes
*/
#ifndef BERT_PACKED_VECTORS_H
#define BERT_PACKED_VECTORS_H

#include <string.h>

/* ---- rows ----------------------------------------------------------------- */

/* As packed_range. What is not finite leaves a NaN in x - x. */
INLINE void range(const float *x, size_t count, float *low, float *high) {
  V least = v_set1(0.0f), most = v_set1(0.0f), wrong = v_set1(0.0f);
  float lanes[3 * LANES];
  for (size_t i = 0; i < count; i += LANES) {
    V v = i + LANES <= count ? v_load(x + i) : v_load_part(x + i, count - i);
    least = v_min(v, least);
    most = v_max(v, most);
    wrong = v_add(wrong, v_sub(v, v));
  }
  v_store(lanes, least);
  v_store(lanes + LANES, most);
  v_store(lanes + 2 * LANES, wrong);
  packed_range(lanes, 3 * LANES, low, high);
}

/* codes[stride / 2] = x[depth] and zeros. */
INLINE void round_bf16(const float *x, size_t depth, uint16_t *codes, size_t stride) {
  size_t i = 0;
  for (; i + LANES <= depth; i += LANES) w_store_upper(codes + i, v_to_bf16(v_load(x + i)));
  if (i < depth) {
    w_store_upper(codes + i, v_to_bf16(v_load_part(x + i, depth - i)));
    i += LANES;
  }
  if (2 * i < stride) memset(codes + i, 0, stride - 2 * i);
}

/* The same as floats, numbers[stride / 4]. */
INLINE void widen_bf16(const float *x, size_t depth, float *numbers, size_t stride) {
  size_t i = 0;
  for (; i + LANES <= depth; i += LANES) v_store(numbers + i, v_upper(v_to_bf16(v_load(x + i))));
  if (i < depth) {
    v_store(numbers + i, v_upper(v_to_bf16(v_load_part(x + i, depth - i))));
    i += LANES;
  }
  if (4 * i < stride) memset(numbers + i, 0, stride - 4 * i);
}

/* codes[stride] of x[depth], and the code of 0 behind. */
INLINE void round_int8(const float *x, size_t depth, packed_scale s, uint8_t *codes,
                       size_t stride) {
  V factor = v_set1(s.inverse);
  size_t i = 0;
  if (s.inverse != 0.0f) {
    for (; i + LANES <= depth; i += LANES)
      v_store_codes(codes + i, v_mul(v_load(x + i), factor), s.zero);
    if (i < depth) {
      v_store_codes(codes + i, v_mul(v_load_part(x + i, depth - i), factor), s.zero);
      i += LANES;
    }
  }
  if (i < stride) memset(codes + i, s.zero, stride - i);
}

INLINE void pack_rows(packed_precision p, int wide, const float *x, size_t ldx, size_t rows,
                      size_t depth, void *block, packed_rows *out) {
  packed_rows_open(p, wide, rows, depth, block, out);
  for (size_t r = 0; r < rows && p != PRECISION_FLOAT32; r++) {
    const float *from = x + r * ldx; /* [depth] */
    char *to = (char *)block + r * out->stride;
    if (p == PRECISION_BF16) {
      if (out->wide)
        widen_bf16(from, depth, (float *)(void *)to, out->stride);
      else
        round_bf16(from, depth, (uint16_t *)(void *)to, out->stride);
      continue;
    }
    float low, high;
    range(from, depth, &low, &high);
    round_int8(from, depth, packed_rows_scale(out, r, low, high), (uint8_t *)to, out->stride);
  }
}

/* ---- products ------------------------------------------------------------- */

/* How many rows and vectors of columns a tile has for products of up to `rows`
** rows; the last shape of a list is for all others. */
typedef struct packed_shape {
  size_t rows, tile_rows, vectors;
} packed_shape;

/* One group of a row in all lanes: of bf16 that is not wide, and of int8 as it is
** multiplied. */
INLINE W bf16_word(const char *p) {
  uint32_t word;
  memcpy(&word, p, sizeof word);
  return w_set1(word);
}

INLINE W int8_word(const char *p) {
  uint32_t word;
  memcpy(&word, p, sizeof word);
  return w_set1(word ^ ROW_OFFSET * 0x01010101u);
}

/* The products of row r and LANES columns from `col`, without bias: as the sums are
** in bf16, which needs none of the others. */
INLINE V bf16_value(V sums, const packed_job *job, size_t r, size_t col) {
  (void)job, (void)r, (void)col;
  return sums;
}

INLINE V int8_value(I sums, const packed_job *job, size_t r, size_t col) {
  V scale = v_mul(v_set1(job->x->scales[r]), v_load(job->w->scales + col));
  return v_mul(v_from_sums(sums, job->w->sums + col, job->x->zeros[r] - ROW_OFFSET), scale);
}

/* y of row r and `count` columns from `col`, which may be fewer than LANES. */
INLINE void store_value(const packed_job *job, size_t r, size_t col, size_t count, V value) {
  float *y = job->y + r * job->ldy + col;
  const float *bias = job->bias != NULL ? job->bias + col : NULL;
  if (count >= LANES) {
    v_store(y, v_add(value, bias != NULL ? v_load(bias) : v_set1(0.0f)));
  } else if (count > 0) {
    v_store_part(y, v_add(value, bias != NULL ? v_load_part(bias, count) : v_set1(0.0f)), count);
  }
}

#endif
