/*
** classify.c: bert_classify and bert_rerank as scalars, which run once a row.
*/
#include "tasks.h"

#include <string.h>

/* ---- Classes ------------------------------------------------------------------ */

static const char *label_itself(const char *label) {
  return label;
}

bert_status classified_make(loaded_model *m, sqlite3_value *text, const classify_options *o,
                            classified *out, bert_error *error) {
  bert_text first, second = {o->source.text_b, 0};
  bert_token_options how = {o->source.max_tokens, 1, 0};
  int nomem = 0;
  bert_status status = task_find_head(m, BERT_HEAD_CLASSIFY, &out->head, error);
  if (status != BERT_OK) return status;
  loaded_model_hold(m);
  out->model = m;
  status = task_choose_labels(out->head, o->labels, label_itself, &out->chosen, error);
  if (status != BERT_OK) return status;
  if (!value_text(text, &first, &nomem)) return error_nomem(error, "reading the text");
  if (second.data != NULL) second.size = strlen(second.data); /* an option holds no NUL */
  return task_scores(m, out->head, out->head->score, first, second.data != NULL ? &second : NULL,
                     &how, &out->scores, &out->truncated, error);
}

void classified_clear(classified *c) {
  loaded_model_drop(c->model);
  sqlite3_free(c->scores);
  sqlite3_free(c->chosen);
  memset(c, 0, sizeof *c);
}

/* The chosen label with the highest score, of equal ones the first; *count is how
** many are chosen. */
static int best_label(const classified *c, int *count) {
  int best = -1;
  *count = 0;
  for (int i = 0; i < c->head->width; i++) {
    if (!c->chosen[i]) continue;
    if (best < 0 || c->scores[i] > c->scores[best]) best = i;
    ++*count;
  }
  return best;
}

static bert_status result_best(sqlite3_context *context, const classified *c, bert_error *error) {
  int count, best = best_label(c, &count);
  if (c->head->problem != BERT_PROBLEM_REGRESSION) {
    sqlite3_result_text(context, c->head->labels[best], -1, SQLITE_TRANSIENT);
    return BERT_OK;
  }
  if (count > 1)
    return error_set(error, BERT_ARGUMENT,
                     "the model gives %d values for a text; use the table, "
                     "SELECT * FROM bert_classify(…), or name one in the option \"labels\"",
                     count);
  sqlite3_result_double(context, (double)c->scores[best]);
  return BERT_OK;
}

/* bert_classify(text [, options]) */
static void call_classify(sqlite3_context *context, int argc, sqlite3_value **argv) {
  static const option_spec specs[] = {CLASSIFY_OPTIONS};
  bert_error error = {0};
  classify_options o = {0};
  classified c = {0};
  options *parsed = NULL;
  loaded_model *m;
  if (sqlite3_value_type(argv[0]) == SQLITE_NULL) return;
  bert_status status = options_parse("bert_classify", argc > 1 ? argv[1] : NULL, specs,
                                     sizeof specs / sizeof specs[0], &o, &parsed, &error);
  if (status == BERT_OK) status = function_model(context, argc, 1, o.source.model, &m, &error);
  if (status == BERT_OK) status = classified_make(m, argv[0], &o, &c, &error);
  if (status == BERT_OK) status = result_best(context, &c, &error);
  classified_clear(&c);
  options_free(parsed);
  if (status != BERT_OK) result_error(context, "bert_classify", &error);
}

/* ---- Re-ranking ------------------------------------------------------------------ */

typedef struct rerank_options {
  const char *model; /* NULL: the default */
  int max_tokens;    /* 0: the model's own */
} rerank_options;

static const option_spec rerank_specs[] = {
    {"model", OPTION_TEXT, offsetof(rerank_options, model), 0, 0, NULL},
    {"max_tokens", OPTION_INT, offsetof(rerank_options, max_tokens), 1, INT_MAX, NULL}};

static bert_status rerank(sqlite3_context *context, int argc, const bert_text *texts,
                          const rerank_options *o, bert_error *error) {
  loaded_model *m;
  const bert_head *head;
  float *score = NULL;
  /* CrossEncoder.predict gives the tokenizer a list of pairs, also of one. */
  bert_token_options how = {o->max_tokens, 1, 1};
  bert_status status = function_model(context, argc, 2, o->model, &m, error);
  if (status == BERT_OK) status = task_find_head(m, BERT_HEAD_CLASSIFY, &head, error);
  if (status != BERT_OK) return status;
  if (head->width != 1)
    return error_set(error, BERT_ARGUMENT,
                     "the model \"%s\" gives %d labels for a pair, a re-ranker one number; use "
                     "bert_classify(query, json_object('model', '%s', 'text_b', passage))",
                     error_quote(m->name).text, head->width, error_quote(m->name).text);
  status = task_scores(m, head, head->rerank, texts[0], &texts[1], &how, &score, NULL, error);
  if (status == BERT_OK) sqlite3_result_double(context, (double)score[0]);
  sqlite3_free(score);
  return status;
}

/* bert_rerank(query, passage [, options]) */
static void call_rerank(sqlite3_context *context, int argc, sqlite3_value **argv) {
  bert_error error = {0};
  bert_text texts[2];
  rerank_options o = {0};
  options *parsed = NULL;
  int nomem = 0;
  for (int i = 0; i < 2; i++) {
    if (value_text(argv[i], &texts[i], &nomem)) continue;
    if (nomem) sqlite3_result_error_nomem(context);
    return;
  }
  bert_status status =
      options_parse("bert_rerank", argc > 2 ? argv[2] : NULL, rerank_specs,
                    sizeof rerank_specs / sizeof rerank_specs[0], &o, &parsed, &error);
  if (status == BERT_OK) status = rerank(context, argc, texts, &o, &error);
  options_free(parsed);
  if (status != BERT_OK) result_error(context, "bert_rerank", &error);
}

enum { PURE = SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS };

const function_entry functions_tasks[] = {{"bert_classify", 1, 2, PURE, call_classify, 0},
                                          {"bert_rerank", 2, 3, PURE, call_rerank, 0},
                                          {NULL, 0, 0, 0, NULL, 0}};
