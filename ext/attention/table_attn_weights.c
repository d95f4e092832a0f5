/*
** table_attn_weights.c: attn_weights(text [, layer [, head [, options]]]) as a
** table, one row for each query and key of each head.
**
** All heads of a long text are millions of rows, so they are made as they are
** read: the cursor holds a few rows of one head, or one head where word pieces
** are merged or rows renormalized. A weight or score is computed when its column
** is read and not before: a condition on other columns, or count(*), costs none.
*/
#include "attention.h"

#include <string.h>

enum {
  COLUMN_LAYER,
  COLUMN_HEAD,
  COLUMN_Q_POS,
  COLUMN_Q_TOKEN,
  COLUMN_K_POS,
  COLUMN_K_TOKEN,
  COLUMN_WEIGHT,
  COLUMN_SCORE,
  COLUMN_TRUNCATED
};
enum { ARGUMENT_TEXT, ARGUMENT_LAYER, ARGUMENT_HEAD, ARGUMENT_OPTIONS };
enum { LAYER, HEAD, QUERY, KEY, AXES };
enum { BLOCK_ROWS = 16 };

static const char function[] = "attn_weights";

/* Rows [first, stop) of one head: tokens, or units where `whole`. */
typedef struct block {
  float *values; /* [BLOCK_ROWS, tokens], or [count, count] of the view */
  size_t layer, head, first, stop;
} block;

typedef struct weights_cursor {
  inspection *seen;
  axis axes[AXES];
  label_cache labels;
  int whole; /* 1: weights only come as a whole head */
  block weights, scores;
} weights_cursor;

static void weights_clear(void *cursor) {
  weights_cursor *c = cursor;
  labels_clear(&c->labels);
  sqlite3_free(c->weights.values);
  sqlite3_free(c->scores.values);
  inspection_close(c->seen);
  memset(c, 0, sizeof *c);
}

/* Layer or head as an argument; absent and NULL stand for all. */
static bert_status narrow(axis *a, sqlite3_value *argument, const char *name, bert_error *error) {
  int number = -1;
  bert_status status = value_int(argument, name, 0, (int)a->count - 1, &number, error);
  if (status == BERT_OK && number >= 0) axis_keep(a, (size_t)number);
  return status;
}

static bert_status weights_start(void *cursor, const table_call *call, bert_error *error) {
  weights_cursor *c = cursor;
  table_options o = {inspection_defaults};
  bert_status status = inspection_for_table(function, call, ARGUMENT_OPTIONS, table_specs,
                                            table_specs_count, &o, &c->seen, error);
  if (status != BERT_OK) return status;
  axis_set(&c->axes[LAYER], (size_t)c->seen->layers, call->pushed[COLUMN_LAYER]);
  axis_set(&c->axes[HEAD], (size_t)c->seen->heads, call->pushed[COLUMN_HEAD]);
  axis_set(&c->axes[QUERY], c->seen->view->count, call->pushed[COLUMN_Q_POS]);
  axis_set(&c->axes[KEY], c->seen->view->count, call->pushed[COLUMN_K_POS]);
  status = narrow(&c->axes[LAYER], call->arguments[ARGUMENT_LAYER], "layer", error);
  if (status == BERT_OK)
    status = narrow(&c->axes[HEAD], call->arguments[ARGUMENT_HEAD], "head", error);
  axes_begin(c->axes, AXES);
  c->whole = c->seen->words || c->seen->view->renormalize;
  return status;
}

static bert_status weights_next(void *cursor, bert_error *error) {
  (void)error;
  axes_next(((weights_cursor *)cursor)->axes, AXES);
  return BERT_OK;
}

static int weights_at_end(const void *cursor) {
  return axes_at_end(((const weights_cursor *)cursor)->axes);
}

static sqlite3_int64 weights_row(const void *cursor) {
  return axes_row(((const weights_cursor *)cursor)->axes, AXES);
}

/* ---- Numbers ------------------------------------------------------------- */

static int holds(const weights_cursor *c, const block *b, size_t row) {
  return b->values != NULL && b->layer == c->axes[LAYER].at && b->head == c->axes[HEAD].at &&
         row >= b->first && row < b->stop;
}

/* Makes `b` that of rows [first, stop) of the present head; it holds none until
** they are computed. */
static bert_status begin_block(const weights_cursor *c, block *b, size_t first, size_t stop,
                               sqlite3_uint64 room, bert_error *error) {
  if (b->values == NULL) b->values = sqlite3_malloc64(room * sizeof *b->values);
  if (b->values == NULL) return error_nomem(error, "computing attention");
  b->layer = c->axes[LAYER].at;
  b->head = c->axes[HEAD].at;
  b->first = first;
  b->stop = stop;
  return BERT_OK;
}

/* The whole head, in units. */
static bert_status load_head(weights_cursor *c, block *b, bert_error *error) {
  sqlite3_uint64 n = c->seen->view->count;
  bert_status status = begin_block(c, b, 0, (size_t)n, n * n, error);
  if (status != BERT_OK) return status;
  status = inspection_weights(c->seen, (int)b->layer, (int)b->head, b->values, error);
  if (status != BERT_OK) b->stop = 0;
  return status;
}

/* Token `row` and those after it, or it alone when no other query is asked for. */
static bert_status load_rows(weights_cursor *c, block *b, size_t row, bert_error *error) {
  size_t n = c->seen->view->tokens, rows = n - row < BLOCK_ROWS ? n - row : BLOCK_ROWS;
  int is_score = b == &c->scores;
  if (c->axes[QUERY].stop - c->axes[QUERY].first == 1) rows = 1;
  bert_status status = begin_block(c, b, row, row + rows, (sqlite3_uint64)BLOCK_ROWS * n, error);
  if (status != BERT_OK) return status;
  status = bert_pass_attention_rows(c->seen->pass, (int)b->layer, (int)b->head, row, rows,
                                    c->seen->temperature, is_score ? NULL : b->values,
                                    is_score ? b->values : NULL, error);
  if (status != BERT_OK) b->stop = 0;
  return status;
}

/* The weight or score of the present row, from the block that holds it. */
static bert_status result_number(sqlite3_context *context, weights_cursor *c, block *b,
                                 bert_error *error) {
  const bert_view *view = c->seen->view;
  size_t query = c->axes[QUERY].at, key = c->axes[KEY].at, width = view->count;
  bert_status status = BERT_OK;
  if (!c->whole || b == &c->scores) {
    query = view->units[query].first;
    key = view->units[key].first;
    width = view->tokens;
    if (!holds(c, b, query)) status = load_rows(c, b, query, error);
  } else if (!holds(c, b, query)) {
    status = load_head(c, b, error);
  }
  if (status == BERT_OK)
    sqlite3_result_double(context, (double)b->values[(query - b->first) * width + key]);
  return status;
}

static bert_status weights_column(void *cursor, sqlite3_context *context, int column,
                                  bert_error *error) {
  weights_cursor *c = cursor;
  switch (column) {
  case COLUMN_LAYER: sqlite3_result_int64(context, (sqlite3_int64)c->axes[LAYER].at); break;
  case COLUMN_HEAD: sqlite3_result_int64(context, (sqlite3_int64)c->axes[HEAD].at); break;
  case COLUMN_Q_POS: sqlite3_result_int64(context, (sqlite3_int64)c->axes[QUERY].at); break;
  case COLUMN_K_POS: sqlite3_result_int64(context, (sqlite3_int64)c->axes[KEY].at); break;
  case COLUMN_Q_TOKEN: return label_result(context, &c->labels, c->seen, c->axes[QUERY].at, error);
  case COLUMN_K_TOKEN: return label_result(context, &c->labels, c->seen, c->axes[KEY].at, error);
  case COLUMN_WEIGHT: return result_number(context, c, &c->weights, error);
  case COLUMN_SCORE:
    /* A word made of several tokens has no score of its own: NULL. */
    return c->seen->words ? BERT_OK : result_number(context, c, &c->scores, error);
  case COLUMN_TRUNCATED: sqlite3_result_int(context, c->seen->truncated); break;
  default: break;
  }
  return BERT_OK;
}

const table_function table_attn_weights = {
    .name = function,
    .columns = "layer INTEGER, head INTEGER, q_pos INTEGER, q_token TEXT, k_pos INTEGER, "
               "k_token TEXT, weight REAL, score REAL",
    .hidden = "truncated INTEGER",
    .arguments = "in_text, in_layer, in_head, options",
    .usage = "needs a text, as in attn_weights('some text') or attn_weights('some text', 2, 0)",
    .required = 1,
    .flags = SQLITE_VTAB_INNOCUOUS,
    .pushable = 1u << COLUMN_LAYER | 1u << COLUMN_HEAD | 1u << COLUMN_Q_POS | 1u << COLUMN_K_POS,
    .rows = 100000,
    .cursor_size = sizeof(weights_cursor),
    .start = weights_start,
    .next = weights_next,
    .at_end = weights_at_end,
    .column = weights_column,
    .row = weights_row,
    .clear = weights_clear,
};
