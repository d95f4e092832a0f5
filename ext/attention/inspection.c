/*
** inspection.c: one text run through one model, for everything that looks
** inside it.
**
** A person who inspects a text asks for one head after the other, each in a
** statement of its own. So the connection keeps its last pass: 72 heads of one
** text cost one run of the model. What is kept is queries, keys and values,
** from which the weights of a head are made when they are asked for; the view
** (words, special tokens) is made anew for each inspection.
*/
#include "attention.h"

#include <string.h>

/* A pass and what it was made from; counted. */
typedef struct kept_pass {
  int owners;
  loaded_model *model;    /* held */
  char *texts;            /* text and text_b, one after the other */
  bert_text text, text_b; /* in texts; text_b.data is NULL without a pair */
  int max_tokens;         /* as given in the options */
  bert_tokens *tokens;
  bert_pass *pass;
} kept_pass;

static void kept_drop(kept_pass *k) {
  if (k == NULL || --k->owners > 0) return;
  bert_pass_free(k->pass);
  bert_tokens_free(k->tokens);
  loaded_model_drop(k->model);
  sqlite3_free(k->texts);
  sqlite3_free(k);
}

void connection_forget_pass(connection *c) {
  struct kept_pass **kept = connection_kept_pass(c);
  kept_drop(*kept);
  *kept = NULL;
}

/* ---- Finding or running -------------------------------------------------- */

static int same_text(bert_text a, bert_text b) {
  return (a.data == NULL) == (b.data == NULL) && a.size == b.size &&
         (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* A pass of other kernels than those of now is another one: who changes them compares. */
static int is_kept(const kept_pass *k, const loaded_model *model, bert_text text, bert_text text_b,
                   int max_tokens) {
  return k != NULL && k->model == model && k->max_tokens == max_tokens &&
         strcmp(bert_pass_kernels(k->pass), bert_kernels()) == 0 && same_text(k->text, text) &&
         same_text(k->text_b, text_b);
}

/* Copies both texts into one block. An empty text still has an address, which
** tells a pair with an empty second text from no pair. */
static int copy_texts(kept_pass *k, bert_text text, bert_text text_b) {
  k->texts = sqlite3_malloc64((sqlite3_uint64)text.size + text_b.size + 1);
  if (k->texts == NULL) return 0;
  if (text.size > 0) memcpy(k->texts, text.data, text.size);
  if (text_b.size > 0) memcpy(k->texts + text.size, text_b.data, text_b.size);
  k->text = (bert_text){k->texts, text.size};
  if (text_b.data != NULL) k->text_b = (bert_text){k->texts + text.size, text_b.size};
  return 1;
}

static bert_status run(kept_pass *k, bert_error *error) {
  bert_token_options limit = {k->max_tokens, 1, 0};
  const bert_text *second = k->text_b.data != NULL ? &k->text_b : NULL;
  bert_status status = bert_tokenize(k->model->model, k->text, second, &limit, &k->tokens, error);
  if (status != BERT_OK) return status;
  return bert_run(k->model->encoder, k->tokens, BERT_KEEP_ATTENTION, &k->pass, error);
}

static bert_status make_kept(loaded_model *model, bert_text text, bert_text text_b, int max_tokens,
                             kept_pass **out, bert_error *error) {
  kept_pass *k = sqlite3_malloc64(sizeof *k);
  if (k == NULL) return error_nomem(error, "inspecting a text");
  memset(k, 0, sizeof *k);
  k->owners = 1;
  k->max_tokens = max_tokens;
  k->model = model;
  loaded_model_hold(model);
  bert_status status =
      copy_texts(k, text, text_b) ? run(k, error) : error_nomem(error, "inspecting a text");
  if (status == BERT_OK)
    *out = k;
  else
    kept_drop(k);
  return status;
}

/* The pass for these arguments, the connection's if it is the last one's. Held.
** Norms of values are read from the weight files, so those are looked at even
** when nothing is run. The connection keeps no pass of a model that it has unloaded,
** which only a running statement still holds. */
static bert_status find_pass(connection *c, loaded_model *model, bert_text text,
                             const inspection_options *o, kept_pass **out, bert_error *error) {
  bert_text text_b = {o->text_b, o->text_b ? strlen(o->text_b) : 0};
  kept_pass **kept = connection_kept_pass(c), *found = *kept;
  if (text.data == NULL) text.data = ""; /* as an empty BLOB has it */
  bert_status status = bert_check(model->model, error);
  if (status != BERT_OK) return status;
  if (!is_kept(found, model, text, text_b, o->max_tokens)) {
    status = make_kept(model, text, text_b, o->max_tokens, &found, error);
    if (status != BERT_OK) return status;
    *out = found;
    if (registry_loaded(c, model->name) != model) return BERT_OK;
    connection_forget_pass(c);
    *kept = found;
  }
  found->owners++;
  *out = found;
  return BERT_OK;
}

/* ---- Inspections --------------------------------------------------------- */

static bert_status fill(inspection *i, const inspection_options *o, bert_error *error) {
  const kept_pass *k = i->kept;
  const bert_description *d = bert_describe(k->model->model);
  bert_view_options view = {o->words, !o->special, o->renormalize};
  i->model = k->model;
  i->tokens = k->tokens;
  i->pass = k->pass;
  i->text = k->text;
  i->text_b = k->text_b;
  i->truncated = k->tokens->truncated;
  i->layers = d->layers;
  i->heads = d->heads;
  i->words = o->words;
  i->temperature = o->temperature;
  return bert_view_make(k->model->model, k->tokens, &view, &i->view, error);
}

bert_status inspection_open(connection *c, loaded_model *model, bert_text text,
                            const inspection_options *o, inspection **out, bert_error *error) {
  inspection *i = sqlite3_malloc64(sizeof *i);
  if (i == NULL) return error_nomem(error, "inspecting a text");
  memset(i, 0, sizeof *i);
  bert_status status = find_pass(c, model, text, o, &i->kept, error);
  if (status == BERT_OK) status = fill(i, o, error);
  if (status == BERT_OK)
    *out = i;
  else
    inspection_close(i);
  return status;
}

void inspection_close(inspection *i) {
  if (i == NULL) return;
  bert_view_free(i->view);
  kept_drop(i->kept);
  sqlite3_free(i);
}

/* ---- Arguments ----------------------------------------------------------- */

bert_status inspection_for_table(const char *function, const table_call *call, int options_at,
                                 const option_spec *specs, size_t count, table_options *o,
                                 inspection **out, bert_error *error) {
  options *parsed = NULL;
  loaded_model *model;
  bert_text text;
  int nomem;
  bert_status status =
      options_parse(function, call->arguments[options_at], specs, count, o, &parsed, error);
  if (status != BERT_OK) return status;
  if (!value_text(call->arguments[0], &text, &nomem))
    status = error_nomem(error, "reading the text");
  if (status == BERT_OK) status = table_model(call, o->inspect.model, &model, error);
  if (status == BERT_OK)
    status = inspection_open(call->connection, model, text, &o->inspect, out, error);
  options_free(parsed);
  return status;
}

/* ---- Weights ------------------------------------------------------------- */

bert_status inspection_weights(const inspection *i, int layer, int head, float *weights,
                               bert_error *error) {
  size_t n = i->view->tokens;
  if (i->view->count == n && !i->view->renormalize)
    return bert_pass_attention_rows(i->pass, layer, head, 0, n, i->temperature, weights, NULL,
                                    error);
  float *all = sqlite3_malloc64((sqlite3_uint64)n * n * sizeof *all); /* [n, n] */
  if (all == NULL) return error_nomem(error, "computing attention");
  bert_status status =
      bert_pass_attention_rows(i->pass, layer, head, 0, n, i->temperature, all, NULL, error);
  if (status == BERT_OK) bert_view_apply(i->view, all, weights);
  sqlite3_free(all);
  return status;
}
