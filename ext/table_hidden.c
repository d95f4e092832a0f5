/*
** table_hidden.c: bert_hidden(text [, layer [, options]]), the vector of each
** token after a layer.
**
** Without in_layer the table holds the last layer only, so `WHERE layer = 2`
** alone leaves no row: the layer to compute is an argument. What is asked of
** layer and pos in WHERE is used to leave out work that no row would show.
*/
#include "ext.h"

#include <string.h>

enum { HIDDEN_LAYER, HIDDEN_POS, HIDDEN_TOKEN, HIDDEN_VECTOR, HIDDEN_TRUNCATED };

enum { ARGUMENT_TEXT, ARGUMENT_LAYER, ARGUMENT_OPTIONS };

typedef struct hidden_cursor {
  tokenized source;
  options *parsed;
  bert_pass *pass;    /* NULL where no vector is read */
  sqlite3_value *pos; /* borrowed: the only position asked for, or NULL */
  int layer;
  size_t row, count;
} hidden_cursor;

static const option_spec hidden_options[] = {TEXT_OPTIONS};

static void hidden_clear(void *cursor) {
  hidden_cursor *h = cursor;
  bert_pass_free(h->pass);
  tokenized_clear(&h->source);
  options_free(h->parsed);
  memset(h, 0, sizeof(*h));
}

/* To the first row from here on that is asked for. */
static void skip(hidden_cursor *h) {
  while (h->row < h->count && pushed_excludes(h->pos, (sqlite3_int64)h->row)) h->row++;
}

static bert_status run(hidden_cursor *h, const table_call *call, bert_error *error) {
  int last = bert_describe(h->source.model->model)->layers;
  if ((call->used >> HIDDEN_VECTOR & 1) == 0 || h->row >= h->count) return BERT_OK;
  return bert_run(h->source.model->encoder, h->source.tokens,
                  h->layer == last ? 0 : BERT_KEEP_HIDDEN, &h->pass, error);
}

static bert_status hidden_start(void *cursor, const table_call *call, bert_error *error) {
  hidden_cursor *h = cursor;
  text_options o = {0};
  bert_status status = options_parse("bert_hidden", call->arguments[ARGUMENT_OPTIONS],
                                     hidden_options, 3, &o, &h->parsed, error);
  if (status == BERT_OK)
    status = tokenized_make(call, call->arguments[ARGUMENT_TEXT], &o, 1, &h->source, error);
  if (status != BERT_OK) return status;
  h->layer = bert_describe(h->source.model->model)->layers;
  status = value_int(call->arguments[ARGUMENT_LAYER], "layer", 0, h->layer, &h->layer, error);
  if (status != BERT_OK) return status;
  h->pos = call->pushed[HIDDEN_POS];
  if (!pushed_excludes(call->pushed[HIDDEN_LAYER], h->layer)) h->count = h->source.tokens->count;
  skip(h);
  return run(h, call, error);
}

static bert_status hidden_next(void *cursor, bert_error *error) {
  hidden_cursor *h = cursor;
  (void)error;
  h->row++;
  skip(h);
  return BERT_OK;
}

static int hidden_at_end(const void *cursor) {
  const hidden_cursor *h = cursor;
  return h->row >= h->count;
}

static sqlite3_int64 hidden_row(const void *cursor) {
  return (sqlite3_int64)((const hidden_cursor *)cursor)->row;
}

static void result_hidden(sqlite3_context *context, const hidden_cursor *h) {
  int width = bert_describe(h->source.model->model)->hidden_size;
  const float *vectors = h->pass != NULL ? bert_pass_hidden(h->pass, h->layer) : NULL;
  /* vectors [tokens, width] */
  if (vectors != NULL) result_vector_copy(context, vectors + h->row * (size_t)width, width);
}

static bert_status hidden_column(void *cursor, sqlite3_context *context, int column,
                                 bert_error *error) {
  const hidden_cursor *h = cursor;
  (void)error;
  switch (column) {
  case HIDDEN_LAYER: sqlite3_result_int(context, h->layer); break;
  case HIDDEN_POS: sqlite3_result_int64(context, (sqlite3_int64)h->row); break;
  case HIDDEN_TOKEN: tokenized_result_token(context, &h->source, h->row); break;
  case HIDDEN_VECTOR: result_hidden(context, h); break;
  case HIDDEN_TRUNCATED: sqlite3_result_int(context, h->source.tokens->truncated); break;
  default: break;
  }
  return BERT_OK;
}

const table_function table_hidden = {
    .name = "bert_hidden",
    .columns = "layer INTEGER, pos INTEGER, token TEXT, vector BLOB",
    .hidden = "truncated INTEGER",
    .arguments = "in_text, in_layer, options",
    .usage = "needs a text, as in bert_hidden('some text') or bert_hidden('some text', 3)",
    .required = 1,
    .flags = SQLITE_VTAB_INNOCUOUS,
    .pushable = 1u << HIDDEN_LAYER | 1u << HIDDEN_POS,
    .rows = 100,
    .cursor_size = sizeof(hidden_cursor),
    .start = hidden_start,
    .next = hidden_next,
    .at_end = hidden_at_end,
    .column = hidden_column,
    .row = hidden_row,
    .clear = hidden_clear,
};
