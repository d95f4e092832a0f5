/*
** vector_rows.h: what works row by row or number by number: LayerNorm,
** softmax, pooling sums, gates, rotation, distances, widening. Written once for all sets; see
** vector_kernels.h.
**
** Sums run over LANES lanes: term i goes to lane i % LANES. SUM_BLOCK vectors are
** summed on their own before they join the total, so that a long row does not
** add small terms to a large sum; the lanes are then added by v_sum.
*/
enum { SUM_BLOCK = 16 };

/* ---- LayerNorm ---------------------------------------------------------- */

/* y[cols] = x + residual (which may be NULL); the sum of y. */
INLINE float store_sum(const float *x, const float *residual, float *y, size_t cols) {
  V sum = v_set1(0.0f);
  size_t i = 0;
  while (i + LANES <= cols) {
    V block = v_set1(0.0f);
    for (int n = 0; n < SUM_BLOCK && i + LANES <= cols; n++, i += LANES) {
      V z = v_load(x + i);
      if (residual != NULL) z = v_add(z, v_load(residual + i));
      v_store(y + i, z);
      block = v_add(block, z);
    }
    sum = v_add(sum, block);
  }
  if (i < cols) {
    V z = v_load_part(x + i, cols - i);
    if (residual != NULL) z = v_add(z, v_load_part(residual + i, cols - i));
    v_store_part(y + i, z, cols - i);
    sum = v_add(sum, z);
  }
  return v_sum(sum);
}

/* sum of (y - mean)^2 over y[cols]. The lanes past the end are filled with the
** mean and so add nothing. */
INLINE float sum_of_squares(const float *y, float mean, size_t cols) {
  V m = v_set1(mean), sum = v_set1(0.0f);
  size_t i = 0;
  while (i + LANES <= cols) {
    V block = v_set1(0.0f);
    for (int n = 0; n < SUM_BLOCK && i + LANES <= cols; n++, i += LANES) {
      V d = v_sub(v_load(y + i), m);
      block = v_fma(d, d, block);
    }
    sum = v_add(sum, block);
  }
  if (i < cols) {
    V d = v_sub(v_load_part_or(y + i, cols - i, m), m);
    sum = v_fma(d, d, sum);
  }
  return v_sum(sum);
}

/* y[cols] = (y - mean) * scale * gain + bias. */
INLINE void normalize_row(float *y, float mean, float scale, const float *gain, const float *bias,
                          size_t cols) {
  V m = v_set1(mean), s = v_set1(scale);
  size_t i = 0;
  for (; i + LANES <= cols; i += LANES) {
    V normal = v_mul(v_sub(v_load(y + i), m), s);
    V b = bias != NULL ? v_load(bias + i) : v_set1(0.0f);
    v_store(y + i, v_fma(normal, v_load(gain + i), b));
  }
  if (i < cols) {
    V normal = v_mul(v_sub(v_load_part(y + i, cols - i), m), s);
    V b = bias != NULL ? v_load_part(bias + i, cols - i) : v_set1(0.0f);
    v_store_part(y + i, v_fma(normal, v_load_part(gain + i, cols - i), b), cols - i);
  }
}

/* Some rows go through each step together: in one row a step waits for the sum of the
** one before. */
enum { NORM_ROWS = 4 };

/* Two passes, as the formula says: the mean of squares minus the square of the
** mean loses the variance of a row with a large mean. */
static void layer_norm(const float *x, size_t ldx, const float *residual, size_t ldr,
                       const float *gain, const float *bias, float epsilon, float *y, size_t ldy,
                       size_t rows, size_t cols) {
  for (size_t first = 0; first < rows; first += NORM_ROWS) {
    float mean[NORM_ROWS], scale[NORM_ROWS], *out = y + first * ldy; /* [n, cols; ldy] */
    size_t n = least(rows - first, NORM_ROWS);
    for (size_t r = 0; r < n; r++) {
      const float *added = residual != NULL ? residual + (first + r) * ldr : NULL; /* [cols] */
      mean[r] = store_sum(x + (first + r) * ldx, added, out + r * ldy, cols) / (float)cols;
    }
    for (size_t r = 0; r < n; r++) {
      float variance = sum_of_squares(out + r * ldy, mean[r], cols) / (float)cols;
      scale[r] = 1.0f / sqrtf(variance + epsilon);
    }
    for (size_t r = 0; r < n; r++) {
      float *row = out + r * ldy; /* [cols] */
      if (scale[r] > 0)
        normalize_row(row, mean[r], scale[r], gain, bias, cols);
      else /* squares of numbers near 1e19 and beyond overflow; there it sums in double */
        kernels_scalar.layer_norm(row, cols, NULL, 0, gain, bias, epsilon, row, cols, 1, cols);
    }
  }
}

/* ---- softmax ------------------------------------------------------------ */

INLINE float row_max(const float *x, size_t cols) {
  V lowest = v_set1(-HUGE_VALF), max = lowest;
  size_t i = 0;
  for (; i + LANES <= cols; i += LANES) max = v_max(v_load(x + i), max);
  if (i < cols) max = v_max(v_load_part_or(x + i, cols - i, lowest), max);
  return v_max_lane(max);
}

static const float ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}; /* >= LANES */

/* exp(x[n] - m) for n < LANES, and 0 in the other lanes. They are filled with m first: the
** exp of -infinity is a number so small that processors take a hundred cycles for it. */
INLINE V v_exp_part(const float *x, size_t n, V m) {
  return v_mul(v_exp_below(v_sub(v_load_part_or(x, n, m), m)), v_load_part(ones, n));
}

/* x[cols] = exp(x - max); the sum of it. */
INLINE float store_exp(float *x, float max, size_t cols) {
  V m = v_set1(max), sum = v_set1(0.0f);
  size_t i = 0;
  while (i + LANES <= cols) {
    V block = v_set1(0.0f);
    for (int n = 0; n < SUM_BLOCK && i + LANES <= cols; n++, i += LANES) {
      V e = v_exp_below(v_sub(v_load(x + i), m));
      v_store(x + i, e);
      block = v_add(block, e);
    }
    sum = v_add(sum, block);
  }
  if (i < cols) {
    V e = v_exp_part(x + i, cols - i, m);
    v_store_part(x + i, e, cols - i);
    sum = v_add(sum, e);
  }
  return v_sum(sum);
}

INLINE void scale_row(float *x, float scale, size_t cols) {
  V s = v_set1(scale);
  size_t i = 0;
  for (; i + LANES <= cols; i += LANES) v_store(x + i, v_mul(v_load(x + i), s));
  if (i < cols) v_store_part(x + i, v_mul(v_load_part(x + i, cols - i), s), cols - i);
}

/* A row that fits into a vector stays there: the steps of softmax, and its bits, without
** the way through memory between them. */
INLINE void softmax_short(float *x, size_t cols) {
  V m = v_set1(row_max(x, cols));
  V e = cols == LANES ? v_exp_below(v_sub(v_load(x), m)) : v_exp_part(x, cols, m);
  e = v_mul(e, v_set1(1.0f / v_sum(e)));
  if (cols == LANES)
    v_store(x, e);
  else
    v_store_part(x, e, cols);
}

/* Some rows go through each step together: in one short row every step waits for
** the one before. */
enum { SOFTMAX_ROWS = 8 };

static void softmax(float *x, size_t ldx, size_t rows, size_t cols) {
  if (cols == 0) return;
  if (cols <= LANES) {
    for (size_t r = 0; r < rows; r++) softmax_short(x + r * ldx, cols);
    return;
  }
  for (size_t first = 0; first < rows; first += SOFTMAX_ROWS) {
    float *row = x + first * ldx; /* [n, cols; ldx] */
    float max[SOFTMAX_ROWS], sum[SOFTMAX_ROWS];
    size_t n = least(rows - first, SOFTMAX_ROWS);
    for (size_t r = 0; r < n; r++) max[r] = row_max(row + r * ldx, cols);
    for (size_t r = 0; r < n; r++) sum[r] = store_exp(row + r * ldx, max[r], cols);
    for (size_t r = 0; r < n; r++) scale_row(row + r * ldx, 1.0f / sum[r], cols);
  }
}

/* ---- number by number --------------------------------------------------- */

static void add_scaled(float a, const float *x, float *y, size_t count) {
  V scale = v_set1(a);
  size_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    v_store(y + i, v_fma(scale, v_load(x + i), v_load(y + i)));
  }
  if (i < count) {
    size_t n = count - i;
    v_store_part(y + i, v_fma(scale, v_load_part(x + i, n), v_load_part(y + i, n)), n);
  }
}

static void maximum(const float *x, float *y, size_t count) {
  size_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    v_store(y + i, v_max_or_nan(v_load(x + i), v_load(y + i)));
  }
  if (i < count) {
    size_t n = count - i;
    v_store_part(y + i, v_max_or_nan(v_load_part(x + i, n), v_load_part(y + i, n)), n);
  }
}

static void multiply(const float *x, float *y, size_t count) {
  size_t i = 0;
  for (; i + LANES <= count; i += LANES) v_store(y + i, v_mul(v_load(x + i), v_load(y + i)));
  if (i < count) {
    size_t n = count - i;
    v_store_part(y + i, v_mul(v_load_part(x + i, n), v_load_part(y + i, n)), n);
  }
}

/* *a and *b become a cos - b sin and b cos + a sin. */
INLINE void turn_pair(V cosine, V sine, V *a, V *b) {
  V turned = v_fnma(*b, sine, v_mul(*a, cosine));
  *b = v_fma(*a, sine, v_mul(*b, cosine));
  *a = turned;
}

static void rotate(const float *cosines, const float *sines, float *x, size_t half) {
  size_t i = 0;
  for (; i + LANES <= half; i += LANES) {
    V a = v_load(x + i), b = v_load(x + half + i);
    turn_pair(v_load(cosines + i), v_load(sines + i), &a, &b);
    v_store(x + i, a);
    v_store(x + half + i, b);
  }
  if (i < half) {
    size_t n = half - i;
    V a = v_load_part(x + i, n), b = v_load_part(x + half + i, n);
    turn_pair(v_load_part(cosines + i, n), v_load_part(sines + i, n), &a, &b);
    v_store_part(x + i, a, n);
    v_store_part(x + half + i, b, n);
  }
}

/* ---- sums in double ----------------------------------------------------- */

/* A product of two floats is exact in double. */
static double dot(const float *a, const float *b, size_t count) {
  D low = d_zero(), high = d_zero();
  for (size_t i = 0; i < count; i += LANES) {
    size_t n = count - i;
    V u = n >= LANES ? v_load(a + i) : v_load_part(a + i, n);
    V v = n >= LANES ? v_load(b + i) : v_load_part(b + i, n);
    low = d_fma(d_low(u), d_low(v), low);
    high = d_fma(d_high(u), d_high(v), high);
  }
  return d_sum(d_add(low, high));
}

static double squared_distance(const float *a, const float *b, size_t count) {
  D low = d_zero(), high = d_zero();
  for (size_t i = 0; i < count; i += LANES) {
    size_t n = count - i;
    V u = n >= LANES ? v_load(a + i) : v_load_part(a + i, n);
    V v = n >= LANES ? v_load(b + i) : v_load_part(b + i, n);
    D e = d_sub(d_low(u), d_low(v)), f = d_sub(d_high(u), d_high(v));
    low = d_fma(e, e, low);
    high = d_fma(f, f, high);
  }
  return d_sum(d_add(low, high));
}

/* ---- widening ----------------------------------------------------------- */

static void from_half(const uint16_t *x, float *y, size_t count) {
  size_t i = 0;
  for (; i + LANES <= count; i += LANES) v_store(y + i, v_from_half(x + i));
  if (i < count) {
    uint16_t rest[LANES] = {0};
    memcpy(rest, x + i, (count - i) * sizeof *rest);
    v_store_part(y + i, v_from_half(rest), count - i);
  }
}

static void from_bfloat16(const uint16_t *x, float *y, size_t count) {
  size_t i = 0;
  for (; i + LANES <= count; i += LANES) v_store(y + i, v_from_bfloat16(x + i));
  if (i < count) {
    uint16_t rest[LANES] = {0};
    memcpy(rest, x + i, (count - i) * sizeof *rest);
    v_store_part(y + i, v_from_bfloat16(rest), count - i);
  }
}
