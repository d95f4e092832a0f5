/*
** pooling.c: the contextual vectors of a sequence to one vector, as the Pooling
** module of sentence-transformers (Reimers and Gurevych 2019) does it.
*/
#include <math.h>
#include <string.h>

#include "forward.h"

static void pool_sum(const kernels *set, const float *hidden, size_t rows, size_t width,
                     float divisor, float *out) {
  memset(out, 0, width * sizeof *out);
  for (size_t i = 0; i < rows; i++) set->add_scaled(1.0f, hidden + i * width, out, width);
  for (size_t i = 0; i < width; i++) out[i] /= divisor;
}

/* Weights 1, 2, … count from the start of the sequence, also when its first rows are
** left out. */
static void pool_weighted(const kernels *set, const float *hidden, size_t first, size_t tokens,
                          size_t width, float *out) {
  double sum = 0;
  memset(out, 0, width * sizeof *out);
  for (size_t i = first; i < tokens; i++) {
    set->add_scaled((float)(i + 1), hidden + i * width, out, width);
    sum += (double)(i + 1);
  }
  for (size_t i = 0; i < width; i++) out[i] /= (float)sum;
}

static void pool_max(const kernels *set, const float *hidden, size_t rows, size_t width,
                     float *out) {
  memcpy(out, hidden, width * sizeof *out);
  for (size_t i = 1; i < rows; i++) set->maximum(hidden + i * width, out, width);
}

static void pool_pooler(const kernels *set, const encoder_weights *w, const float *hidden,
                        float *out) {
  size_t width = (size_t)w->hidden;
  gemm_linear(set, hidden, width, w->pooler.weight, width, w->pooler.bias, out, width, 1, width,
              width);
  set->activate(ACTIVATION_TANH, out, width);
}

void pool(const kernels *set, const encoder_weights *w, pooling kind, const float *hidden,
          size_t tokens, size_t skip, float *out) {
  size_t width = (size_t)w->hidden, rows = tokens - skip;
  const float *from = hidden + skip * width; /* [rows, hidden] */
  switch (kind) {
  case POOLING_CLS: memcpy(out, from, width * sizeof *out); break;
  case POOLING_MEAN: pool_sum(set, from, rows, width, (float)rows, out); break;
  case POOLING_MEAN_SQRT_LEN: pool_sum(set, from, rows, width, sqrtf((float)rows), out); break;
  case POOLING_WEIGHTED_MEAN: pool_weighted(set, hidden, skip, tokens, width, out); break;
  case POOLING_LAST_TOKEN: memcpy(out, hidden + (tokens - 1) * width, width * sizeof *out); break;
  case POOLING_MAX: pool_max(set, from, rows, width, out); break;
  case POOLING_POOLER: pool_pooler(set, w, hidden, out); break;
  }
}

void normalize(const kernels *set, float *x, size_t width) {
  double length = sqrt(set->dot(x, x, width));
  double divisor = length > 1e-12 ? length : 1e-12;
  for (size_t i = 0; i < width; i++) x[i] = (float)(x[i] / divisor);
}
