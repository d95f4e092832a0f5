/*
** table_attn_neurons.c: attn_neurons(text, layer, head [, options]), the query
** and key vectors of one head, number by number.
**
** The sum of `product` over dim, divided by the square root of the head's size,
** is the score that attn_weights shows. Vectors belong to tokens: words have
** none, and what only changes weights is no option here.
*/
#include "attention.h"

#include <string.h>

enum {
  COLUMN_Q_POS,
  COLUMN_K_POS,
  COLUMN_DIM,
  COLUMN_Q,
  COLUMN_K,
  COLUMN_PRODUCT,
  COLUMN_TRUNCATED
};
enum { ARGUMENT_TEXT, ARGUMENT_LAYER, ARGUMENT_HEAD, ARGUMENT_OPTIONS };
enum { QUERY, KEY, DIM, AXES };

static const char function[] = "attn_neurons";

typedef struct neurons_cursor {
  inspection *seen;
  axis axes[AXES];
  const float *q, *k; /* [tokens, head size; stride] in the pass */
  size_t stride;
} neurons_cursor;

static const option_spec neurons_specs[] = {
    {"model", OPTION_TEXT, offsetof(table_options, inspect.model), 0, 0, NULL},
    {"text_b", OPTION_TEXT, offsetof(table_options, inspect.text_b), 0, 0, NULL},
    {"words", OPTION_BOOL, offsetof(table_options, inspect.words), 0, 0, NULL},
    {"special", OPTION_BOOL, offsetof(table_options, inspect.special), 0, 0, NULL},
    {"max_tokens", OPTION_INT, offsetof(table_options, inspect.max_tokens), 1, INT_MAX, NULL}};

static void neurons_clear(void *cursor) {
  neurons_cursor *c = cursor;
  inspection_close(c->seen);
  memset(c, 0, sizeof *c);
}

static bert_status find_vectors(neurons_cursor *c, const table_call *call, bert_error *error) {
  int layer = 0, head = 0;
  bert_status status =
      inspection_index(call->arguments[ARGUMENT_LAYER], "layer", c->seen->layers, &layer, error);
  if (status == BERT_OK)
    status = inspection_index(call->arguments[ARGUMENT_HEAD], "head", c->seen->heads, &head, error);
  if (status != BERT_OK) return status;
  c->q = bert_pass_vectors(c->seen->pass, BERT_QUERY, layer, head, &c->stride);
  c->k = bert_pass_vectors(c->seen->pass, BERT_KEY, layer, head, &c->stride);
  return BERT_OK;
}

static bert_status neurons_start(void *cursor, const table_call *call, bert_error *error) {
  neurons_cursor *c = cursor;
  table_options o = {inspection_defaults};
  bert_status status =
      inspection_for_table(function, call, ARGUMENT_OPTIONS, neurons_specs,
                           sizeof neurons_specs / sizeof neurons_specs[0], &o, &c->seen, error);
  if (status == BERT_OK && o.inspect.words)
    status = error_set(error, BERT_ARGUMENT,
                       "option \"words\" must be false here: only tokens have query and key "
                       "vectors, words have none");
  if (status == BERT_OK) status = find_vectors(c, call, error);
  if (status != BERT_OK) return status;
  const bert_description *d = bert_describe(c->seen->model->model);
  axis_set(&c->axes[QUERY], c->seen->view->count, call->pushed[COLUMN_Q_POS]);
  axis_set(&c->axes[KEY], c->seen->view->count, call->pushed[COLUMN_K_POS]);
  axis_set(&c->axes[DIM], (size_t)(d->hidden_size / d->heads), call->pushed[COLUMN_DIM]);
  axes_begin(c->axes, AXES);
  return BERT_OK;
}

static bert_status neurons_next(void *cursor, bert_error *error) {
  (void)error;
  axes_next(((neurons_cursor *)cursor)->axes, AXES);
  return BERT_OK;
}

static int neurons_at_end(const void *cursor) {
  return axes_at_end(((const neurons_cursor *)cursor)->axes);
}

static sqlite3_int64 neurons_row(const void *cursor) {
  return axes_row(((const neurons_cursor *)cursor)->axes, AXES);
}

/* The present number of the vector of unit `u`, which is one token. */
static double number(const neurons_cursor *c, const float *vectors, size_t u) {
  size_t token = c->seen->view->units[u].first;
  return (double)vectors[token * c->stride + c->axes[DIM].at];
}

static bert_status neurons_column(void *cursor, sqlite3_context *context, int column,
                                  bert_error *error) {
  const neurons_cursor *c = cursor;
  double q = number(c, c->q, c->axes[QUERY].at), k = number(c, c->k, c->axes[KEY].at);
  (void)error;
  switch (column) {
  case COLUMN_Q_POS: sqlite3_result_int64(context, (sqlite3_int64)c->axes[QUERY].at); break;
  case COLUMN_K_POS: sqlite3_result_int64(context, (sqlite3_int64)c->axes[KEY].at); break;
  case COLUMN_DIM: sqlite3_result_int64(context, (sqlite3_int64)c->axes[DIM].at); break;
  case COLUMN_Q: sqlite3_result_double(context, q); break;
  case COLUMN_K: sqlite3_result_double(context, k); break;
  case COLUMN_PRODUCT: sqlite3_result_double(context, q * k); break;
  case COLUMN_TRUNCATED: sqlite3_result_int(context, c->seen->truncated); break;
  default: break;
  }
  return BERT_OK;
}

const table_function table_attn_neurons = {
    .name = function,
    .columns = "q_pos INTEGER, k_pos INTEGER, dim INTEGER, q REAL, k REAL, product REAL",
    .hidden = "truncated INTEGER",
    .arguments = "in_text, in_layer, in_head, options",
    .usage = "needs a text, a layer and a head, as in attn_neurons('some text', 2, 0)",
    .required = 3,
    .flags = SQLITE_VTAB_INNOCUOUS,
    .pushable = 1u << COLUMN_Q_POS | 1u << COLUMN_K_POS | 1u << COLUMN_DIM,
    .rows = 10000,
    .cursor_size = sizeof(neurons_cursor),
    .start = neurons_start,
    .next = neurons_next,
    .at_end = neurons_at_end,
    .column = neurons_column,
    .row = neurons_row,
    .clear = neurons_clear,
};
