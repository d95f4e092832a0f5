/*
** heads.c: what a checkpoint was trained for: one or two layers on top of the
** encoder, whose results are logits. All heads of all families have one form,
** out(norm(activation(dense(x)))), of which the first three may be missing.
*/
#include <stdio.h>
#include <string.h>

#include "forward.h"

enum { HEAD_NAME = 256 };

/* What binding one head needs. */
typedef struct head_binder {
  const model_config *config;
  const head_config *settings;
  const tensor_file *file;
  encoder_weights *weights;
  bert_error *error;
} head_binder;

/* ---- Which heads there are ---------------------------------------------- */

static int ends_with(const char *text, const char *end) {
  size_t size = strlen(text), tail = strlen(end);
  return size >= tail && strcmp(text + size - tail, end) == 0;
}

static int has_tensor(const tensor_file *file, const char *name, const char *suffix) {
  char full[HEAD_NAME];
  if (name == NULL) return 0;
  snprintf(full, sizeof full, "%s%s", name, suffix);
  return tensors_find(file, full) != NULL;
}

/* The decoder's weight is mostly that of the word embeddings, and then not in the
** file a second time. */
static int has_fill(const head_binder *b, const head_names *n) {
  if (n->out == NULL || !has_tensor(b->file, n->dense, ".weight")) return 0;
  return has_tensor(b->file, n->out, ".weight") || has_tensor(b->file, n->out, ".bias") ||
         has_tensor(b->file, n->out_bias, "") || ends_with(b->config->architecture, "ForMaskedLM");
}

/* ---- Binding -------------------------------------------------------------- */

/* Only ModernBERT's config says whether there are biases; others have them. */
static int is_biased(const head_binder *b, int said) {
  return !b->weights->family->bare_heads || said;
}

static activation dense_activation(const head_binder *b, int name) {
  if (name == OF_HIDDEN_LAYERS) return b->weights->hidden_activation;
  return name == OF_CLASSIFIER ? b->settings->dense_activation : (activation)name;
}

/* dense and norm, as far as `n` has them; *width is that of x before and after. */
static bert_status bind_lower(const head_binder *b, const head_names *n, int inner, task_head *h,
                              int *width) {
  bert_status status = BERT_OK;
  if (n->dense != NULL) {
    h->activation = dense_activation(b, n->activation);
    status = weights_bind_linear(b->weights, b->file, n->dense, *width, inner,
                                 is_biased(b, b->settings->dense_bias), &h->dense, b->error);
    *width = inner;
  }
  if (status == BERT_OK && n->norm != NULL)
    status = weights_bind_norm(b->weights, b->file, n->norm, *width, b->config->layer_norm_epsilon,
                               is_biased(b, b->config->norm_bias), &h->norm, b->error);
  return status;
}

static bert_status bind_classifier(const head_binder *b, const head_names *n, task_head *h) {
  int width = b->weights->hidden;
  bert_status status = bind_lower(b, n, width, h, &width);
  if (status == BERT_OK)
    status = weights_bind_linear(b->weights, b->file, n->out, width, b->settings->label_count, 1,
                                 &h->out, b->error);
  if (status == BERT_OK && h->pooled && !b->weights->has_pooler)
    status = error_set(b->error, BERT_INVALID,
                       "the weights lack the pooler that the classifier works on");
  return status;
}

/* The decoder's bias has stood under two names, of which both may be there. */
static bert_status bind_decoder_bias(const head_binder *b, const head_names *n, task_head *h) {
  char own[HEAD_NAME];
  snprintf(own, sizeof own, "%s.bias", n->out);
  const char *name = n->out_bias;
  if (name == NULL || tensors_find(b->file, own) != NULL) name = own;
  if (!is_biased(b, b->settings->fill_bias)) return BERT_OK;
  return weights_bind_vector(b->weights, b->file, name, b->weights->vocab, &h->out.bias, b->error);
}

static bert_status bind_fill(const head_binder *b, const head_names *n, task_head *h) {
  encoder_weights *w = b->weights;
  int width = w->hidden;
  bert_status status = bind_lower(b, n, w->embedding, h, &width);
  if (status == BERT_OK && has_tensor(b->file, n->out, ".weight"))
    status = weights_bind_linear(w, b->file, n->out, width, w->vocab, 0, &h->out, b->error);
  else if (status == BERT_OK)
    h->out = (linear){.weight = w->word, .in = width, .out = w->vocab};
  return status == BERT_OK ? bind_decoder_bias(b, n, h) : status;
}

bert_status heads_bind(const model_config *config, const head_config *c, const tensor_file *file,
                       encoder_weights *w, bert_error *error) {
  const family *f = w->family;
  head_binder b = {config, c, file, w, error};
  task_head *classify = &w->head[BERT_HEAD_CLASSIFY];
  bert_status status = BERT_OK;
  if (f->classify.out != NULL && ends_with(config->architecture, "ForSequenceClassification")) {
    classify->pooled = f->classify_pooled;
    classify->mean = c->mean && f->classify.activation == OF_CLASSIFIER;
    status = bind_classifier(&b, &f->classify, classify);
  }
  if (f->entities.out != NULL && ends_with(config->architecture, "ForTokenClassification"))
    status = bind_classifier(&b, &f->entities, &w->head[BERT_HEAD_ENTITIES]);
  if (status == BERT_OK && has_fill(&b, &f->fill))
    status = bind_fill(&b, &f->fill, &w->head[BERT_HEAD_FILL]);
  return status;
}

/* ---- Logits --------------------------------------------------------------- */

size_t head_scratch(const encoder_weights *w) {
  size_t widest = (size_t)(w->hidden > w->embedding ? w->hidden : w->embedding);
  return HEAD_ROWS * ((size_t)w->hidden + widest);
}

/* x[rows, hidden]: what the head works on. */
static void gather(const kernels *set, const encoder_weights *w, const task_head *h,
                   const float *hidden, const head_rows *r, float *x) {
  size_t width = (size_t)w->hidden;
  if (h->pooled || h->mean) {
    pool(set, w, h->pooled ? POOLING_POOLER : POOLING_MEAN, hidden, r->tokens, 0, x);
    return;
  }
  for (size_t i = 0; i < r->count; i++) {
    size_t token = r->first + i;
    if (r->which != NULL) token = r->which[token];
    memcpy(x + i * width, hidden + token * width, width * sizeof *x);
  }
}

/* y[rows, out] = l(x[rows, in]). */
static void apply(const kernels *set, const linear *l, const float *x, float *y, size_t rows) {
  size_t in = (size_t)l->in, out = (size_t)l->out;
  gemm_linear(set, x, in, l->weight, in, l->bias, y, out, rows, out, in);
}

void head_apply(const kernels *set, const encoder_weights *w, const task_head *h,
                const float *hidden, const head_rows *r, float *scratch, float *logits) {
  float *x = scratch, *inner = scratch + HEAD_ROWS * (size_t)w->hidden;
  gather(set, w, h, hidden, r, x);
  if (h->dense.weight != NULL) {
    apply(set, &h->dense, x, inner, r->count);
    set->activate(h->activation, inner, r->count * (size_t)h->dense.out);
    x = inner;
  }
  if (h->norm.gain != NULL) {
    size_t width = (size_t)h->out.in;
    set->layer_norm(x, width, NULL, 0, h->norm.gain, h->norm.bias, h->norm.epsilon, x, width,
                    r->count, width);
  }
  apply(set, &h->out, x, logits, r->count);
}
