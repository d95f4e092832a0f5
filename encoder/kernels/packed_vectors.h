/*
** packed_vectors.h: what the packed products of all vector sets share: rounding
** rows, the last steps of int8, and what a tile needs to know. A packed_*.c
** defines this part of the vocabulary of vector_kernels.h first:
**   V, LANES, INLINE; v_load v_load_part v_store v_store_part v_set1 v_add v_sub
**   v_mul v_abs v_max
** and
**   I                      a vector of LANES int32
**   v_store_bf16(p, x)     LANES numbers to uint16_t, rounded as packed.c does
**   v_store_codes(p, x)    LANES whole numbers nearest to x, plus 128, to uint8_t
**   v_from_sums(I, p)      sums of codes to floats: of the row's codes + 128, so 128
**                          times the sums of the columns' codes, int32_t *p, go off
*/
#ifndef BERT_PACKED_VECTORS_H
#define BERT_PACKED_VECTORS_H

/* Loops over registers must be unrolled whole, or the registers become memory. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* ---- rows ----------------------------------------------------------------- */

/* The largest |x[count]|, NaN or an infinity where there is one: x - x is then NaN. */
INLINE float largest(const float *x, size_t count) {
  V most = v_set1(0.0f), wrong = v_set1(0.0f);
  float lanes[2 * LANES];
  size_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    V v = v_load(x + i);
    most = v_max(v_abs(v), most);
    wrong = v_add(wrong, v_sub(v, v));
  }
  if (i < count) {
    V v = v_load_part(x + i, count - i);
    most = v_max(v_abs(v), most);
    wrong = v_add(wrong, v_sub(v, v));
  }
  v_store(lanes, most);
  v_store(lanes + LANES, wrong);
  return packed_most(lanes, 2 * LANES);
}

/* codes[stride / 2] = x[depth] and zeros. */
INLINE void round_bf16(const float *x, size_t depth, uint16_t *codes, size_t stride) {
  size_t i = 0;
  for (; i + LANES <= depth; i += LANES) v_store_bf16(codes + i, v_load(x + i));
  if (i < depth) {
    v_store_bf16(codes + i, v_load_part(x + i, depth - i));
    i += LANES;
  }
  if (2 * i < stride) memset(codes + i, 0, stride - 2 * i);
}

/* codes[stride] = x[depth] * inverse + 128, and 128; inverse as in packed_scale. */
INLINE void round_int8(const float *x, size_t depth, float inverse, uint8_t *codes, size_t stride) {
  V factor = v_set1(inverse);
  size_t i = 0;
  if (inverse != 0.0f) {
    for (; i + LANES <= depth; i += LANES) v_store_codes(codes + i, v_mul(v_load(x + i), factor));
    if (i < depth) {
      v_store_codes(codes + i, v_mul(v_load_part(x + i, depth - i), factor));
      i += LANES;
    }
  }
  if (i < stride) memset(codes + i, 128, stride - i);
}

INLINE void pack_rows(packed_precision p, const float *x, size_t ldx, size_t rows, size_t depth,
                      void *block, packed_rows *out) {
  float *scales = packed_rows_open(p, rows, depth, block, out), inverse;
  for (size_t r = 0; r < rows && p != PRECISION_FLOAT32; r++) {
    const float *from = x + r * ldx; /* [depth] */
    char *to = (char *)block + r * out->stride;
    if (p == PRECISION_BF16) {
      round_bf16(from, depth, (uint16_t *)(void *)to, out->stride);
      continue;
    }
    scales[r] = packed_scale(largest(from, depth), &inverse);
    round_int8(from, depth, inverse, (uint8_t *)to, out->stride);
  }
}

/* ---- products ------------------------------------------------------------- */

/* How many rows and vectors of columns a tile has for products of up to `rows`
** rows; the last shape of a list is for all others. */
typedef struct packed_shape {
  size_t rows, tile_rows, vectors;
} packed_shape;

/* The products of row r and LANES columns from `col`, without bias: as the sums are
** in bf16, which needs none of the others. */
INLINE V bf16_value(V sums, const packed_job *job, size_t r, size_t col) {
  (void)job, (void)r, (void)col;
  return sums;
}

INLINE V int8_value(I sums, const packed_job *job, size_t r, size_t col) {
  V scale = v_mul(v_set1(job->x->scales[r]), v_load(job->w->scales + col));
  return v_mul(v_from_sums(sums, job->w->sums + col), scale);
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
