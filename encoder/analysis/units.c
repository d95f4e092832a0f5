/*
** units.c: attention between tokens to attention between units.
**
** Mass that goes to a word is the sum of what goes to its pieces; mass that
** comes from a word is the mean over its pieces, since each of them has a whole
** row to give (Clark et al. 2019, section 4.1). Sums are in double and are
** rounded once, so that a unit of one token keeps its bits.
*/
#include "analysis.h"

/* The mean over the queries of one unit of what goes to the keys of another. */
static double unit_weight(const bert_view *view, const float *weights, const bert_unit *query,
                          const bert_unit *key) {
  double sum = 0;
  for (size_t i = query->first; i < query->last; i++) {
    const float *row = weights + i * view->tokens; /* [tokens] */
    for (size_t j = key->first; j < key->last; j++) sum += (double)row[j];
  }
  return sum / (double)(query->last - query->first);
}

/* A row whose mass went wholly to units that are left out stays 0. */
static void divide_by_sum(float *row, size_t count) {
  double sum = 0;
  for (size_t j = 0; j < count; j++) sum += (double)row[j];
  if (!(sum > 0)) return;
  for (size_t j = 0; j < count; j++) row[j] = (float)((double)row[j] / sum);
}

void bert_view_apply(const bert_view *view, const float *weights, float *out) {
  for (size_t a = 0; a < view->count; a++) {
    float *row = out + a * view->count; /* [count] */
    for (size_t b = 0; b < view->count; b++)
      row[b] = (float)unit_weight(view, weights, &view->units[a], &view->units[b]);
    if (view->renormalize) divide_by_sum(row, view->count);
  }
}

void bert_view_norms(const bert_view *view, const float *norms, float *out) {
  for (size_t a = 0; a < view->count; a++) {
    const bert_unit *u = &view->units[a];
    double sum = 0;
    for (size_t j = u->first; j < u->last; j++) sum += (double)norms[j];
    out[a] = (float)(sum / (double)(u->last - u->first));
  }
}
