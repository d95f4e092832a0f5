/*
** pass_attention.c: the attention of a pass that was kept.
**
** Everything is computed from the kept queries, keys and values, one head and a
** block of queries at a time: what is asked for costs its own size in memory,
** and nothing quadratic is kept.
*/
#include <math.h>
#include <string.h>

#include "../analysis/analysis.h"
#include "model.h"

const float *pass_qkv(const bert_pass *pass, int layer, int head) {
  const model_config *c = &pass->model->config;
  if (pass->qkv == NULL || layer < 0 || layer >= c->layers || head < 0 || head >= c->heads)
    return NULL;
  return pass->qkv + (size_t)layer * pass->tokens * 3 * (size_t)c->hidden_size;
}

/* ---- Errors ------------------------------------------------------------- */

/* As pass_qkv, with an error. */
static bert_status find_qkv(const bert_pass *pass, int layer, int head, const float **qkv,
                            bert_error *error) {
  const model_config *c = &pass->model->config;
  *qkv = pass_qkv(pass, layer, head);
  if (pass->qkv == NULL) return error_set(error, BERT_ARGUMENT, "this pass kept no attention");
  if (*qkv == NULL)
    return error_set(error, BERT_ARGUMENT,
                     "layer %d, head %d does not exist; layers are 0 to %d, heads 0 to %d", layer,
                     head, c->layers - 1, c->heads - 1);
  return BERT_OK;
}

static bert_status check_temperature(double temperature, bert_error *error) {
  if (temperature > 0) return BERT_OK;
  return error_set(error, BERT_ARGUMENT, "temperature is %g; it must be above 0", temperature);
}

static bert_status check_numbers(const bert_pass *pass, int layer, int head, const char *what,
                                 const float *x, size_t count, bert_error *error) {
  for (size_t i = 0; i < count; i++)
    if (!isfinite(x[i]))
      return error_set(error, BERT_NUMERIC,
                       "the %s of layer %d, head %d are not finite numbers: the weights in %s "
                       "are damaged",
                       what, layer, head, pass->model->transformer_directory);
  return BERT_OK;
}

bert_status pass_check_attention(const bert_pass *pass, float *scratch, bert_error *error) {
  const model_config *c = &pass->model->config;
  for (int layer = 0; pass->qkv != NULL && layer < c->layers; layer++) {
    for (int head = 0; head < c->heads; head++) {
      for (size_t first = 0; first < pass->tokens; first += QUERY_ROWS) {
        size_t rows = pass->tokens - first < QUERY_ROWS ? pass->tokens - first : QUERY_ROWS;
        bert_status status =
            bert_pass_attention_rows(pass, layer, head, first, rows, 1, scratch, NULL, error);
        if (status != BERT_OK) return status;
      }
    }
  }
  return BERT_OK;
}

/* ---- Weights and scores --------------------------------------------------- */

/* x[rows, cols] = softmax(x / temperature). The largest of a row is taken away
** before the division, in double, so that a tiny temperature overflows nothing;
** what lies further below than a float reaches has weight 0 at any rate. */
static void tempered_softmax(const kernels *set, float *x, size_t rows, size_t cols,
                             double temperature) {
  for (size_t i = 0; i < rows; i++) {
    float *row = x + i * cols, largest = row[0]; /* [cols] */
    for (size_t j = 1; j < cols; j++)
      if (row[j] > largest) largest = row[j];
    for (size_t j = 0; j < cols; j++) {
      double below = ((double)row[j] - (double)largest) / temperature;
      row[j] = below < -1e30 ? -1e30F : (float)below;
    }
  }
  set->softmax(x, cols, rows, cols);
}

static void fill_weights(const bert_pass *pass, int layer, const head_queries *h,
                         double temperature, float *weights) {
  const encoder_weights *w = &pass->model->weights;
  const float *qkv = pass_qkv(pass, layer, h->head); /* [tokens, 3 * hidden] */
  if (temperature == 1) {
    attention_weights(pass->set, w, &w->layer[layer], qkv, h, weights);
    return;
  }
  attention_scores(pass->set, w, qkv, h, weights);
  attention_mask(&w->layer[layer], h, weights);
  tempered_softmax(pass->set, weights, h->queries, h->tokens, temperature);
}

bert_status bert_pass_attention_rows(const bert_pass *pass, int layer, int head, size_t first,
                                     size_t queries, double temperature, float *weights,
                                     float *scores, bert_error *error) {
  const float *qkv; /* [tokens, 3 * hidden] */
  size_t n = pass->tokens;
  bert_status status = find_qkv(pass, layer, head, &qkv, error);
  if (status == BERT_OK) status = check_temperature(temperature, error);
  if (status != BERT_OK) return status;
  if (first > n || queries > n - first)
    return error_set(error, BERT_ARGUMENT,
                     "queries %zu and the %zu from it on: the pass has only %zu tokens", first,
                     queries, n);
  head_queries h = {n, head, first, queries};
  if (scores != NULL) {
    attention_scores(pass->set, &pass->model->weights, qkv, &h, scores);
    status = check_numbers(pass, layer, head, "attention scores", scores, queries * n, error);
  }
  if (status == BERT_OK && weights != NULL) {
    fill_weights(pass, layer, &h, temperature, weights);
    status = check_numbers(pass, layer, head, "attention weights", weights, queries * n, error);
  }
  return status;
}

bert_status bert_pass_attention(const bert_pass *pass, int layer, int head, float *weights,
                                bert_error *error) {
  return bert_pass_attention_rows(pass, layer, head, 0, pass->tokens, 1, weights, NULL, error);
}

/* ---- Norms of transformed values ------------------------------------------ */

static double norm_of(const float *x, size_t width) {
  double sum = 0;
  for (size_t i = 0; i < width; i++) sum += (double)x[i] * (double)x[i];
  return sqrt(sum);
}

bert_status bert_pass_value_norms(const bert_pass *pass, int layer, int head, float *norms,
                                  bert_error *error) {
  const encoder_weights *w = &pass->model->weights;
  size_t hidden = (size_t)w->hidden, width = (size_t)w->head_width, n = pass->tokens;
  const float *qkv; /* [tokens, 3 * hidden] */
  bert_status status = find_qkv(pass, layer, head, &qkv, error);
  if (status != BERT_OK) return status;
  float *moved = memory_alloc(QUERY_ROWS * (uint64_t)hidden * sizeof *moved); /* [rows, hidden] */
  if (moved == NULL) return error_nomem(error, "measuring value vectors");
  const float *value = qkv + 2 * hidden + (size_t)head * width; /* [tokens, width; 3 * hidden] */
  const float *columns =                                        /* [hidden, width; hidden] */
      w->layer[layer].attention_output.weight + (size_t)head * width;
  for (size_t first = 0; first < n; first += QUERY_ROWS) {
    size_t rows = n - first < QUERY_ROWS ? n - first : QUERY_ROWS;
    gemm_linear(pass->set, value + first * 3 * hidden, 3 * hidden, columns, hidden, NULL, moved,
                hidden, rows, hidden, width);
    for (size_t i = 0; i < rows; i++) norms[first + i] = (float)norm_of(moved + i * hidden, hidden);
  }
  memory_free(moved);
  return check_numbers(pass, layer, head, "value vectors", norms, n, error);
}

/* ---- Rollout --------------------------------------------------------------- */

/* Of which two blocks are held beside the matrices. */
enum { ROLLOUT_ROWS = 64 };

/* sums[rows, tokens]: the attention of queries [first, first + rows) summed over
** heads. one[rows, tokens] is scratch. */
static bert_status sum_heads(const bert_pass *pass, int layer, double temperature, size_t first,
                             size_t rows, float *one, float *sums, bert_error *error) {
  size_t count = rows * pass->tokens;
  memset(sums, 0, count * sizeof *sums);
  for (int head = 0; head < pass->model->config.heads; head++) {
    bert_status status =
        bert_pass_attention_rows(pass, layer, head, first, rows, temperature, one, NULL, error);
    if (status != BERT_OK) return status;
    pass->set->add_scaled(1, one, sums, count);
  }
  return BERT_OK;
}

bert_status bert_pass_rollout_step(const bert_pass *pass, int layer, double temperature,
                                   const float *before, float *rollout, bert_error *error) {
  const float *qkv;
  size_t n = pass->tokens, block = ROLLOUT_ROWS * n;
  bert_status status = find_qkv(pass, layer, 0, &qkv, error);
  if (status == BERT_OK) status = check_temperature(temperature, error);
  if (status != BERT_OK) return status;
  float *one = memory_alloc(memory_product(2 * (uint64_t)block, sizeof *one));
  if (one == NULL) return error_nomem(error, "computing attention rollout");
  for (size_t first = 0; first < n && status == BERT_OK; first += ROLLOUT_ROWS) {
    size_t rows = n - first < ROLLOUT_ROWS ? n - first : ROLLOUT_ROWS;
    float *out = rollout + first * n, *mixed = before != NULL ? one + block : out; /* [rows, n] */
    status = sum_heads(pass, layer, temperature, first, rows, one, mixed, error);
    if (status != BERT_OK) break;
    rollout_mix(mixed, first, rows, n, pass->model->config.heads);
    if (before != NULL) pass->set->attention_context(mixed, n, before, n, out, n, rows, n, n);
  }
  memory_free(one);
  return status;
}

bert_status bert_pass_rollout(const bert_pass *pass, int layer, double temperature, float *rollout,
                              bert_error *error) {
  const float *qkv;
  uint64_t matrix = memory_product(memory_product(pass->tokens, pass->tokens), sizeof *rollout);
  bert_status status = find_qkv(pass, layer, 0, &qkv, error);
  if (status != BERT_OK) return status;
  float *other = memory_alloc(matrix); /* [tokens, tokens] */
  if (other == NULL) return error_nomem(error, "computing attention rollout");
  /* The two take turns, so that the last layer's lands in `rollout`. */
  for (int l = 0; l <= layer && status == BERT_OK; l++) {
    int last_turn = (layer - l) % 2 == 0;
    const float *before = l == 0 ? NULL : last_turn ? other : rollout;
    status =
        bert_pass_rollout_step(pass, l, temperature, before, last_turn ? rollout : other, error);
  }
  memory_free(other);
  return status;
}
