/*
** logits.c: the heads of a checkpoint: which there are, the logits of a pass, and
** scores from logits.
*/
#include <math.h>
#include <string.h>

#include "model.h"

/* ---- What there is ------------------------------------------------------- */

/* The choice of transformers' text-classification pipeline. */
static bert_score pipeline_score(const head_config *c) {
  if (c->problem == BERT_PROBLEM_REGRESSION) return BERT_SCORE_LOGIT;
  if (c->problem == BERT_PROBLEM_MANY_LABELS || c->label_count == 1) return BERT_SCORE_SIGMOID;
  return BERT_SCORE_SOFTMAX;
}

/* That of sentence-transformers' CrossEncoder. */
static bert_score rerank_score(const sentence_config *s, const head_config *c) {
  if (s->rerank_given) return s->rerank;
  if (c->rerank_given) return c->rerank;
  return c->label_count == 1 ? BERT_SCORE_SIGMOID : BERT_SCORE_LOGIT;
}

static void describe_head(bert_model *m, bert_head_kind kind) {
  const head_config *c = &m->head_config;
  bert_head *h = &m->heads[kind];
  if (m->weights.head[kind].out.weight == NULL) return;
  h->width = m->weights.head[kind].out.out;
  if (kind == BERT_HEAD_FILL) {
    h->score = BERT_SCORE_SOFTMAX;
    return;
  }
  h->labels = (const char *const *)c->labels;
  h->problem = c->problem;
  h->score = kind == BERT_HEAD_CLASSIFY ? pipeline_score(c) : BERT_SCORE_SOFTMAX;
  h->rerank = rerank_score(&m->sentence, c);
}

/* A checkpoint has a classifier of one kind at most. */
static const char *task_names(const bert_model *m) {
  static const char *const names[2][4] = {
      {"embed", "embed,classify", "embed,classify,rerank", "embed,entities"},
      {"embed,fill", "embed,classify,fill", "embed,classify,rerank,fill", "embed,entities,fill"}};
  int classes = m->heads[BERT_HEAD_CLASSIFY].width, head = 0;
  if (m->heads[BERT_HEAD_ENTITIES].width > 0) head = 3;
  if (classes > 0) head = classes == 1 ? 2 : 1;
  return names[m->heads[BERT_HEAD_FILL].width > 0][head];
}

/* ---- The mask token -------------------------------------------------------- */

/* mask_token of a file, a string or an added token with its content; -1 when the file
** or the token is not there. */
static bert_status mask_of_file(const bert_model *m, const char *name, int32_t *id,
                                bert_error *error) {
  json_document *document = NULL;
  bert_status status =
      file_read_json(m->transformer_directory, name, 1, JSON_OBJECT, &document, error);
  if (status != BERT_OK || document == NULL) return status;
  const json_value *v = json_get(json_root(document), "mask_token");
  if (v != NULL && v->type == JSON_OBJECT) v = json_get(v, "content");
  if (v != NULL && v->type == JSON_STRING)
    *id = tokenizer_find(m->tokenizer, (bert_text){v->string, v->size});
  json_free(document);
  return status;
}

static bert_status find_mask(bert_model *m, bert_error *error) {
  static const char *const files[] = {"tokenizer_config.json", "special_tokens_map.json"};
  static const char *const usual[] = {"[MASK]", "<mask>"};
  m->mask_token = -1;
  for (size_t i = 0; i < sizeof files / sizeof *files && m->mask_token < 0; i++) {
    bert_status status = mask_of_file(m, files[i], &m->mask_token, error);
    if (status != BERT_OK) return status;
  }
  for (size_t i = 0; i < sizeof usual / sizeof *usual && m->mask_token < 0; i++)
    m->mask_token = tokenizer_find(m->tokenizer, (bert_text){usual[i], strlen(usual[i])});
  return BERT_OK;
}

bert_status heads_describe(bert_model *m, bert_error *error) {
  m->mask_token = -1;
  for (int kind = 0; kind < HEAD_KINDS; kind++) describe_head(m, (bert_head_kind)kind);
  m->description.tasks = task_names(m);
  return m->heads[BERT_HEAD_FILL].width > 0 ? find_mask(m, error) : BERT_OK;
}

const bert_head *bert_find_head(const bert_model *model, bert_head_kind kind) {
  if ((int)kind < 0 || (int)kind >= HEAD_KINDS || model->heads[kind].width == 0) return NULL;
  return &model->heads[kind];
}

int32_t bert_mask_token(const bert_model *model) {
  return model->mask_token;
}

/* ---- Logits ----------------------------------------------------------------- */

static bert_status check_request(const bert_pass *p, bert_head_kind kind, const size_t *which,
                                 size_t count, bert_error *error) {
  const bert_model *m = p->model;
  if (bert_find_head(m, kind) == NULL)
    return error_set(error, BERT_ARGUMENT, "the model has no such head; its tasks are %s",
                     m->description.tasks);
  for (size_t i = 0; i < count && kind != BERT_HEAD_CLASSIFY; i++) {
    size_t token = which == NULL ? i : which[i];
    if (token >= p->tokens)
      return error_set(error, BERT_ARGUMENT, "there is no token %zu: the pass has %zu", token,
                       p->tokens);
  }
  return BERT_OK;
}

static bert_status check_logits(const bert_model *m, const float *logits, size_t count,
                                bert_error *error) {
  for (size_t i = 0; i < count; i++)
    if (!isfinite(logits[i]))
      return error_set(error, BERT_NUMERIC,
                       "the logits are not finite numbers: the weights in %s are damaged",
                       m->transformer_directory);
  return BERT_OK;
}

bert_status bert_pass_logits(const bert_pass *pass, bert_head_kind kind, const size_t *which,
                             size_t count, float *logits, bert_error *error) {
  const bert_model *m = pass->model;
  bert_status status = check_request(pass, kind, which, count, error);
  if (status != BERT_OK) return status;
  const task_head *h = &m->weights.head[kind];
  const float *hidden = bert_pass_hidden(pass, m->config.layers); /* [tokens, hidden] */
  size_t width = (size_t)m->heads[kind].width, rows = kind == BERT_HEAD_CLASSIFY ? 1 : count;
  float *scratch = memory_alloc(memory_product(head_scratch(&m->weights), sizeof *scratch));
  if (scratch == NULL) return error_nomem(error, "computing logits");
  for (size_t i = 0; i < rows; i += HEAD_ROWS) {
    head_rows r = {pass->tokens, kind == BERT_HEAD_CLASSIFY ? NULL : which, i, rows - i};
    if (r.count > HEAD_ROWS) r.count = HEAD_ROWS;
    head_apply(pass->set, &m->weights, h, hidden, &r, scratch, logits + i * width);
  }
  memory_free(scratch);
  return check_logits(m, logits, rows * width, error);
}

/* ---- Scores ------------------------------------------------------------------ */

static void softmax_scores(const float *logits, size_t width, float *scores) {
  double largest = -INFINITY, sum = 0;
  for (size_t i = 0; i < width; i++)
    if ((double)logits[i] > largest) largest = (double)logits[i];
  for (size_t i = 0; i < width; i++) sum += exp((double)logits[i] - largest);
  for (size_t i = 0; i < width; i++) scores[i] = (float)(exp((double)logits[i] - largest) / sum);
}

void bert_scores(bert_score score, const float *logits, size_t width, float *scores) {
  if (score == BERT_SCORE_SOFTMAX) {
    softmax_scores(logits, width, scores);
    return;
  }
  for (size_t i = 0; i < width; i++) {
    double x = (double)logits[i];
    scores[i] = score == BERT_SCORE_SIGMOID ? (float)(1 / (1 + exp(-x))) : logits[i];
  }
}
