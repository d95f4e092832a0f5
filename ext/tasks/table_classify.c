/*
** table_classify.c: bert_classify(text [, options]) as a table: the labels with
** their scores, highest first.
*/
#include "tasks.h"

#include <string.h>

enum { CLASSIFY_LABEL, CLASSIFY_SCORE, CLASSIFY_TRUNCATED };

enum { ARGUMENT_TEXT, ARGUMENT_OPTIONS };

typedef struct classify_cursor {
  classified result;
  options *parsed;
  const void **order; /* [count], pointers to scores */
  size_t row, count;
} classify_cursor;

static const option_spec classify_specs[] = {
    CLASSIFY_OPTIONS, {"top_k", OPTION_INT, offsetof(classify_options, top_k), 1, INT_MAX, NULL}};

static void classify_clear(void *cursor) {
  classify_cursor *c = cursor;
  classified_clear(&c->result);
  sqlite3_free(c->order);
  options_free(c->parsed);
  memset(c, 0, sizeof *c);
}

/* The higher score first; of equal ones that of the first label. */
static int compare(const void *a, const void *b) {
  const float *x = a, *y = b;
  if (*x > *y) return -1;
  if (*x < *y) return 1;
  return x < y ? -1 : x > y;
}

static bert_status order_labels(classify_cursor *c, int top_k, bert_error *error) {
  const classified *r = &c->result;
  c->order = sqlite3_malloc64(sizeof *c->order * (sqlite3_uint64)r->head->width);
  if (c->order == NULL) return error_nomem(error, "ordering labels");
  for (int i = 0; i < r->head->width; i++)
    if (r->chosen[i]) c->order[c->count++] = &r->scores[i];
  sort_pointers(c->order, c->count, compare);
  if (top_k > 0 && c->count > (size_t)top_k) c->count = (size_t)top_k;
  return BERT_OK;
}

static bert_status classify_start(void *cursor, const table_call *call, bert_error *error) {
  classify_cursor *c = cursor;
  classify_options o = {0};
  loaded_model *m;
  bert_status status =
      options_parse("bert_classify", call->arguments[ARGUMENT_OPTIONS], classify_specs,
                    sizeof classify_specs / sizeof *classify_specs, &o, &c->parsed, error);
  if (status == BERT_OK) status = table_model(call, o.source.model, &m, error);
  if (status == BERT_OK)
    status = classified_make(m, call->arguments[ARGUMENT_TEXT], &o, &c->result, error);
  return status == BERT_OK ? order_labels(c, o.top_k, error) : status;
}

static bert_status classify_next(void *cursor, bert_error *error) {
  (void)error;
  ((classify_cursor *)cursor)->row++;
  return BERT_OK;
}

static int classify_at_end(const void *cursor) {
  const classify_cursor *c = cursor;
  return c->row >= c->count;
}

static bert_status classify_column(void *cursor, sqlite3_context *context, int column,
                                   bert_error *error) {
  const classify_cursor *c = cursor;
  const float *score = c->order[c->row];
  (void)error;
  switch (column) {
  case CLASSIFY_LABEL:
    sqlite3_result_text(context, c->result.head->labels[score - c->result.scores], -1,
                        SQLITE_TRANSIENT);
    break;
  case CLASSIFY_SCORE: sqlite3_result_double(context, (double)*score); break;
  case CLASSIFY_TRUNCATED: sqlite3_result_int(context, c->result.truncated); break;
  default: break;
  }
  return BERT_OK;
}

const table_function table_classify = {
    .name = "bert_classify",
    .columns = "label TEXT, score REAL",
    .hidden = "truncated INTEGER",
    .arguments = "in_text, options",
    .usage = "needs a text, as in bert_classify('some text')",
    .required = 1,
    .flags = SQLITE_VTAB_INNOCUOUS,
    .rows = 5,
    .cursor_size = sizeof(classify_cursor),
    .start = classify_start,
    .next = classify_next,
    .at_end = classify_at_end,
    .column = classify_column,
    .clear = classify_clear,
};
