/*
** recipe.c: bert_embed_options against the model, and what they make of the
** hidden states of a sequence. It does what sentence-transformers' encode does
** with the same directory and the same arguments.
*/
#include <string.h>

#include "model.h"

/* ---- Prompts ----------------------------------------------------------- */

static const prompt *find_prompt(const sentence_config *s, const char *name) {
  for (int i = 0; i < s->prompt_count; i++)
    if (strcmp(s->prompts[i].name, name) == 0) return &s->prompts[i];
  return NULL;
}

/* The names for the text that is searched, in the order in which
** sentence-transformers' encode_document tries them. */
static const char *const document_roles[] = {"document", "passage", "corpus"};
enum { DOCUMENT_ROLES = sizeof document_roles / sizeof document_roles[0] };

static int is_document_role(const char *kind) {
  for (int i = 0; i < DOCUMENT_ROLES; i++)
    if (strcmp(kind, document_roles[i]) == 0) return 1;
  return 0;
}

static bert_status no_such_prompt(const sentence_config *s, const char *kind, bert_error *error) {
  char names[400] = "query, passage, document, corpus";
  for (int i = 0; i < s->prompt_count; i++) {
    const char *name = s->prompts[i].name;
    if (is_document_role(name) || strcmp(name, "query") == 0) continue;
    if (strlen(names) + strlen(name) + 3 > sizeof names) break;
    strcat(strcat(names, ", "), name);
  }
  return error_set(error, BERT_ARGUMENT, "the model has no prompt \"%s\"; it has %s", kind, names);
}

static bert_status prompt_of_kind(const sentence_config *s, const char *kind, const char **text,
                                  bert_error *error) {
  const prompt *p = find_prompt(s, kind);
  int document = is_document_role(kind);
  for (int i = 0; i < DOCUMENT_ROLES && p == NULL && document; i++)
    p = find_prompt(s, document_roles[i]);
  if (p == NULL && !document && strcmp(kind, "query") != 0) return no_such_prompt(s, kind, error);
  *text = p ? p->text : "";
  return BERT_OK;
}

static bert_status choose_prompt(recipe *r, const bert_embed_options *o, bert_error *error) {
  const sentence_config *s = &r->model->sentence;
  bert_status status = BERT_OK;
  r->prompt = "";
  if (o->prompt != NULL)
    r->prompt = o->prompt;
  else if (o->kind != NULL)
    status = prompt_of_kind(s, o->kind, &r->prompt, error);
  else if (s->default_prompt >= 0)
    r->prompt = s->prompts[s->default_prompt].text;
  r->prompt_size = strlen(r->prompt);
  return status;
}

/* A model may leave the tokens of the prompt out of pooling (include_prompt is
** false): as many as the prompt alone has, but for the special token that
** closes it. */
static bert_status count_skipped(recipe *r, bert_error *error) {
  bert_text text = {r->prompt, r->prompt_size};
  bert_tokens *tokens = NULL;
  if (r->model->sentence.include_prompt || r->prompt_size == 0) return BERT_OK;
  bert_status status =
      tokenizer_encode(r->model->tokenizer, text, NULL, r->limit, 1, &tokens, error);
  if (status != BERT_OK) return status;
  r->skip = tokens->count;
  if (r->skip > 0 && tokens->special[r->skip - 1]) r->skip--;
  tokens_free(tokens);
  return BERT_OK;
}

/* ---- Pooling and modules ----------------------------------------------- */

static bert_status choose_pooling(recipe *r, const bert_embed_options *o, bert_error *error) {
  const bert_model *m = r->model;
  r->pooling_count = m->sentence.pooling_count;
  memcpy(r->poolings, m->sentence.poolings, sizeof r->poolings);
  if (o->pooling != NULL) {
    int kind = pooling_from_name(o->pooling);
    if (kind < 0)
      return error_set(error, BERT_ARGUMENT,
                       "no such pooling: \"%s\"; there are cls, mean, max, mean_sqrt_len, "
                       "weightedmean, lasttoken, pooler",
                       o->pooling);
    r->poolings[0] = (pooling)kind;
    r->pooling_count = 1;
  }
  for (int i = 0; i < r->pooling_count; i++)
    if (r->poolings[i] == POOLING_POOLER && !m->weights.has_pooler)
      return error_set(error, BERT_ARGUMENT, "pooling \"pooler\": the model has no pooler");
  r->pooled_width = r->pooling_count * m->config.hidden_size;
  return BERT_OK;
}

/* How many of the model's modules run: all, but for a Normalize at the end that
** was switched off. Another pooling may not fit the module that follows. */
static bert_status choose_modules(recipe *r, const bert_embed_options *o, bert_error *error) {
  const sentence_config *s = &r->model->sentence;
  int width = r->pooled_width;
  r->modules = s->module_count;
  if (o->normalize < 0)
    while (r->modules > 0 && s->modules[r->modules - 1].type == MODULE_NORMALIZE) r->modules--;
  r->widest = width;
  for (int i = 0; i < r->modules; i++) {
    if (s->modules[i].type == MODULE_NORMALIZE) continue;
    if (s->modules[i].in != width)
      return error_set(
          error, BERT_ARGUMENT, "pooling \"%s\" gives %d numbers, but the model's %s takes %d",
          o->pooling ? o->pooling : "", width,
          s->modules[i].type == MODULE_DENSE ? "Dense" : "LayerNorm", s->modules[i].in);
    width = s->modules[i].out;
    if (width > r->widest) r->widest = width;
  }
  r->dim = width;
  r->normalize = o->normalize > 0 || (o->normalize == 0 && r->model->description.normalize);
  return BERT_OK;
}

static bert_status choose_dims(recipe *r, const bert_embed_options *o, bert_error *error) {
  if (o->dims == 0) return BERT_OK;
  if (o->dims < 1 || o->dims > r->dim)
    return error_set(error, BERT_ARGUMENT, "dims is %d, but must be from 1 to %d", o->dims, r->dim);
  r->dim = o->dims;
  return BERT_OK;
}

bert_status recipe_make(const bert_model *model, const bert_embed_options *options, recipe *out,
                        bert_error *error) {
  static const bert_embed_options defaults;
  const bert_embed_options *o = options ? options : &defaults;
  recipe r = {.model = model, .set = kernels_current()};
  bert_status status = token_limit(model, o->max_tokens, 0, &r.limit, error);
  if (status == BERT_OK) status = choose_prompt(&r, o, error);
  if (status == BERT_OK) status = count_skipped(&r, error);
  if (status == BERT_OK) status = choose_pooling(&r, o, error);
  if (status == BERT_OK) status = choose_modules(&r, o, error);
  if (status == BERT_OK) status = choose_dims(&r, o, error);
  if (status == BERT_OK) *out = r;
  return status;
}

/* ---- Applying ---------------------------------------------------------- */

static void apply_dense(const kernels *set, const dense *d, const float *x, float *y) {
  size_t in = (size_t)d->map.in, out = (size_t)d->map.out;
  gemm_linear(set, x, in, d->map.weight, in, d->map.bias, y, out, 1, out, in);
  set->activate(d->activation, y, out);
}

void recipe_apply(const recipe *r, const float *hidden, size_t tokens, float *scratch, float *out) {
  const bert_model *m = r->model;
  float *x = scratch, *y = scratch + r->widest; /* [widest] each */
  size_t width = (size_t)r->pooled_width;
  size_t skip = r->skip < tokens ? r->skip : tokens - 1;
  for (int i = 0; i < r->pooling_count; i++)
    pool(r->set, &m->weights, r->poolings[i], hidden, tokens, skip,
         x + (size_t)i * (size_t)m->config.hidden_size);
  for (int i = 0; i < r->modules; i++) {
    if (m->sentence.modules[i].type == MODULE_NORMALIZE) {
      normalize(r->set, x, width);
      continue;
    }
    if (m->sentence.modules[i].type == MODULE_LAYER_NORM) {
      const norm *n = &m->dense[i].norm;
      r->set->layer_norm(x, width, NULL, 0, n->gain, n->bias, n->epsilon, x, width, 1, width);
      continue;
    }
    apply_dense(r->set, &m->dense[i], x, y);
    width = (size_t)m->dense[i].map.out;
    float *swap = x;
    x = y;
    y = swap;
  }
  memcpy(out, x, (size_t)r->dim * sizeof *out);
  int normalized = r->modules > 0 && m->sentence.modules[r->modules - 1].type == MODULE_NORMALIZE;
  if (r->normalize && !(normalized && (size_t)r->dim == width))
    normalize(r->set, out, (size_t)r->dim);
}
