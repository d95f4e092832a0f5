/*
** statistics.c: one head in a few numbers, summed in double.
**
** Entropy and the shares on separators, punctuation and neighbours are those of
** Clark et al. 2019 (What Does BERT Look At?), the mean of the largest weight
** is the confidence of Voita et al. 2019 (Analyzing Multi-Head Self-Attention),
** the distance that of Vig and Belinkov 2019 (Analyzing the Structure of
** Attention), and the norms are weighted as in Kobayashi et al. 2020 (Attention
** is Not Only a Weight).
*/
#include <math.h>
#include <string.h>

#include "analysis.h"

/* Sums over rows; what is divided by what stands in `finish`. */
typedef struct totals {
  double mass, distance, signed_distance, norm;
} totals;

/* Adds row[n], the weights of query `i`. Of equal largest weights the first
** counts as the largest. */
static void add_row(const bert_view *view, const float *row, size_t i, const float *norms,
                    bert_head_statistics *s, totals *t) {
  size_t n = view->count, largest = 0;
  for (size_t j = 0; j < n; j++) {
    double a = (double)row[j], distance = (double)j - (double)i;
    if (a > 0) s->entropy -= a * log(a);
    if (view->units[j].separator) s->sep += a;
    if (view->units[j].punctuation) s->punct += a;
    if (norms != NULL) t->norm += a * (double)norms[j];
    t->mass += a;
    t->distance += a * fabs(distance);
    t->signed_distance += a * distance;
    if (row[j] > row[largest]) largest = j;
  }
  s->diag += (double)row[i];
  s->first += (double)row[0];
  if (i > 0) s->prev += (double)row[i - 1];
  if (i + 1 < n) s->next += (double)row[i + 1];
  s->max_prob += (double)row[largest];
  s->positional += largest + 1 == i || largest == i + 1;
}

/* Sums to means. */
static void finish(bert_head_statistics *s, const totals *t, size_t count) {
  double n = (double)count;
  double *means[] = {&s->entropy, &s->diag,     &s->first,     &s->sep,
                     &s->punct,   &s->max_prob, &s->positional};
  for (size_t i = 0; i < sizeof means / sizeof *means; i++) *means[i] /= n;
  if (count > 1) {
    s->prev /= n - 1;
    s->next /= n - 1;
    s->entropy_norm = s->entropy / log(n);
  }
  if (t->mass > 0) {
    s->mean_distance = t->distance / t->mass;
    s->signed_distance = t->signed_distance / t->mass;
  }
  s->norm_mean = t->norm / (n * n);
}

/* The weights are compared as floats: 0.9f is what a caller calls 0.9. */
static int is_collapsed(const float *weights, size_t n) {
  for (size_t j = 0; j < n; j++) {
    size_t rows = 0;
    for (size_t i = 0; i < n; i++) rows += weights[i * n + j] >= (float)COLLAPSED_WEIGHT;
    if ((double)rows >= COLLAPSED_ROWS * (double)n) return 1;
  }
  return 0;
}

void bert_head_summarize(const bert_view *view, const float *weights, const float *value_norms,
                         bert_head_statistics *out) {
  size_t n = view->count;
  totals t = {0, 0, 0, 0};
  memset(out, 0, sizeof *out);
  for (size_t i = 0; i < n; i++) add_row(view, weights + i * n, i, value_norms, out, &t);
  if (n > 0) finish(out, &t, n);
  if (value_norms == NULL) out->norm_mean = NAN;
  out->collapsed = is_collapsed(weights, n);
  out->label = head_label(out, n);
}
