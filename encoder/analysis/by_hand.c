/*
** by_hand.c: self-attention and positions as a textbook computes them, in
** double and in the plainest loops: softmax(scale q k^T / temperature) v
** (Vaswani et al. 2017, equation 1).
*/
#include <math.h>

#include "analysis.h"

/* y[rows, out] = x[rows, in] w[in, out], or x itself where w is NULL. */
static void multiply(const double *x, const double *w, size_t rows, size_t in, size_t out,
                     double *y) {
  for (size_t r = 0; r < rows; r++) {
    for (size_t c = 0; c < out; c++) {
      double sum = w == NULL ? x[r * in + c] : 0;
      for (size_t d = 0; w != NULL && d < in; d++) sum += x[r * in + d] * w[d * out + c];
      y[r * out + c] = sum;
    }
  }
}

static bert_status check_finite(const char *what, const double *x, size_t rows, size_t cols,
                                bert_error *error) {
  for (size_t i = 0; i < rows * cols; i++)
    if (!isfinite(x[i]))
      return error_set(error, BERT_NUMERIC,
                       "%s, row %zu, column %zu is not a finite number: the input is too large",
                       what, i / cols, i % cols);
  return BERT_OK;
}

static bert_status check_width(const char *name, const double *w, size_t out, size_t width,
                               bert_error *error) {
  if (w != NULL || out == width) return BERT_OK;
  return error_set(error, BERT_ARGUMENT,
                   "%s is not given, so its result has the %zu columns of x, not %zu", name, width,
                   out);
}

static bert_status check_input(const bert_self_attention_input *in, bert_error *error) {
  bert_status status = check_width("w_q", in->w_q, in->query_width, in->width, error);
  if (status == BERT_OK) status = check_width("w_k", in->w_k, in->query_width, in->width, error);
  if (status == BERT_OK) status = check_width("w_v", in->w_v, in->value_width, in->width, error);
  if (status != BERT_OK) return status;
  if (!isfinite(in->scale))
    return error_set(error, BERT_ARGUMENT, "scale is %g; it must be a finite number", in->scale);
  if (!(in->temperature > 0))
    return error_set(error, BERT_ARGUMENT, "temperature is %g; it must be above 0",
                     in->temperature);
  return BERT_OK;
}

/* scores[n, n] = scale * q[n, width] k[n, width]^T */
static void score(const bert_self_attention_input *in, const double *q, const double *k,
                  double *scores) {
  size_t n = in->tokens, width = in->query_width;
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < n; j++) {
      double sum = 0;
      for (size_t d = 0; d < width; d++) sum += q[i * width + d] * k[j * width + d];
      scores[i * n + j] = in->scale * sum;
    }
  }
}

/* The softmax of a row over the keys that mask[n] shows; 0 when it shows none.
** Exponents are taken below the largest score, so that none overflows. */
static int softmax_row(const double *scores, const uint8_t *mask, size_t n, double temperature,
                       double *weights) {
  double largest = -INFINITY, sum = 0;
  for (size_t j = 0; j < n; j++)
    if ((mask == NULL || mask[j]) && scores[j] > largest) largest = scores[j];
  if (largest == -INFINITY) return 0;
  for (size_t j = 0; j < n; j++) {
    int seen = mask == NULL || mask[j];
    weights[j] = seen ? exp((scores[j] - largest) / temperature) : 0;
    sum += weights[j];
  }
  for (size_t j = 0; j < n; j++) weights[j] /= sum;
  return 1;
}

static bert_status weigh(const bert_self_attention_input *in, const double *scores, double *weights,
                         bert_error *error) {
  size_t n = in->tokens;
  for (size_t i = 0; i < n; i++) {
    const uint8_t *mask = in->mask != NULL ? in->mask + i * n : NULL; /* [n] */
    if (!softmax_row(scores + i * n, mask, n, in->temperature, weights + i * n))
      return error_set(error, BERT_ARGUMENT,
                       "the mask hides every key from row %zu; let it see at least one", i);
  }
  return BERT_OK;
}

bert_status bert_self_attention(const bert_self_attention_input *in, double *q, double *k,
                                double *v, double *scores, double *weights, double *context,
                                bert_error *error) {
  size_t n = in->tokens;
  bert_status status = check_input(in, error);
  if (status != BERT_OK) return status;
  multiply(in->x, in->w_q, n, in->width, in->query_width, q);
  multiply(in->x, in->w_k, n, in->width, in->query_width, k);
  multiply(in->x, in->w_v, n, in->width, in->value_width, v);
  score(in, q, k, scores);
  status = check_finite("v", v, n, in->value_width, error);
  if (status == BERT_OK) status = check_finite("scores", scores, n, n, error);
  if (status == BERT_OK) status = weigh(in, scores, weights, error);
  if (status == BERT_OK) multiply(weights, v, n, n, in->value_width, context);
  return status;
}

void bert_positional_encoding(size_t count, size_t width, double *out) {
  for (size_t p = 0; p < count; p++) {
    for (size_t c = 0; c < width; c++) {
      double pair = (double)(c - c % 2);
      double angle = (double)p / pow(10000, pair / (double)width);
      out[p * width + c] = c % 2 ? cos(angle) : sin(angle);
    }
  }
}
