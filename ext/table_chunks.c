/*
** table_chunks.c: bert_chunks(text, max_tokens, overlap [, options]), a long
** text in pieces that the model can read whole.
*/
#include "ext.h"

#include <string.h>

enum { CHUNK_CHUNK, CHUNK_TEXT, CHUNK_START, CHUNK_STOP, CHUNK_TOKENS };

enum { ARGUMENT_TEXT, ARGUMENT_MAX_TOKENS, ARGUMENT_OVERLAP, ARGUMENT_OPTIONS };

typedef struct chunks_cursor {
  bert_text text; /* borrowed from the argument */
  bert_chunk *chunks;
  size_t count, row;
} chunks_cursor;

typedef struct chunks_settings {
  const char *model;
} chunks_settings;

static const option_spec chunks_options[] = {
    {"model", OPTION_TEXT, offsetof(chunks_settings, model), 0, 0, NULL},
};

static void chunks_clear(void *cursor) {
  chunks_cursor *k = cursor;
  bert_chunks_free(k->chunks);
  memset(k, 0, sizeof(*k));
}

/* An argument without a default. The encoder knows its true range. */
static bert_status read_size(sqlite3_value *value, const char *name, int low, int *out,
                             bert_error *error) {
  if (value == NULL)
    return error_set(error, BERT_ARGUMENT, "%s is NULL, and must be a number of tokens", name);
  return value_int(value, name, low, INT_MAX, out, error);
}

static bert_status split(chunks_cursor *k, const table_call *call, const char *name, int max_tokens,
                         int overlap, bert_error *error) {
  loaded_model *model;
  bert_status status = table_model(call, name, &model, error);
  int nomem = 0;
  if (status != BERT_OK) return status;
  if (!value_text(call->arguments[ARGUMENT_TEXT], &k->text, &nomem))
    return error_nomem(error, "reading the text");
  return bert_split(model->model, k->text, max_tokens, overlap, &k->chunks, &k->count, error);
}

static bert_status chunks_start(void *cursor, const table_call *call, bert_error *error) {
  chunks_settings chosen = {0};
  options *parsed = NULL;
  int max_tokens = 0, overlap = 0;
  bert_status status =
      read_size(call->arguments[ARGUMENT_MAX_TOKENS], "max_tokens", 1, &max_tokens, error);
  if (status == BERT_OK)
    status = read_size(call->arguments[ARGUMENT_OVERLAP], "overlap", 0, &overlap, error);
  if (status == BERT_OK)
    status = options_parse("bert_chunks", call->arguments[ARGUMENT_OPTIONS], chunks_options, 1,
                           &chosen, &parsed, error);
  if (status == BERT_OK) status = split(cursor, call, chosen.model, max_tokens, overlap, error);
  options_free(parsed);
  return status;
}

static bert_status chunks_next(void *cursor, bert_error *error) {
  (void)error;
  ((chunks_cursor *)cursor)->row++;
  return BERT_OK;
}

static int chunks_at_end(const void *cursor) {
  const chunks_cursor *k = cursor;
  return k->row >= k->count;
}

static bert_status chunks_column(void *cursor, sqlite3_context *context, int column,
                                 bert_error *error) {
  const chunks_cursor *k = cursor;
  const bert_chunk *chunk = &k->chunks[k->row];
  (void)error;
  switch (column) {
  case CHUNK_CHUNK: sqlite3_result_int64(context, (sqlite3_int64)k->row); break;
  case CHUNK_TEXT:
    if (chunk->stop == chunk->start) /* an empty text may have no address */
      sqlite3_result_text(context, "", 0, SQLITE_STATIC);
    else
      sqlite3_result_text64(context, k->text.data + chunk->start, chunk->stop - chunk->start,
                            SQLITE_TRANSIENT, SQLITE_UTF8);
    break;
  case CHUNK_START: sqlite3_result_int64(context, (sqlite3_int64)chunk->start); break;
  case CHUNK_STOP: sqlite3_result_int64(context, (sqlite3_int64)chunk->stop); break;
  case CHUNK_TOKENS: sqlite3_result_int(context, chunk->tokens); break;
  default: break;
  }
  return BERT_OK;
}

const table_function table_chunks = {
    .name = "bert_chunks",
    .columns = "chunk INTEGER, text TEXT, start INTEGER, stop INTEGER, n_tokens INTEGER",
    .arguments = "in_text, in_max_tokens, in_overlap, options",
    .usage = "needs a text, the tokens of a chunk and of the overlap, as in "
             "bert_chunks('some text', 200, 20)",
    .required = 3,
    .flags = SQLITE_VTAB_INNOCUOUS,
    .rows = 10,
    .cursor_size = sizeof(chunks_cursor),
    .start = chunks_start,
    .next = chunks_next,
    .at_end = chunks_at_end,
    .column = chunks_column,
    .clear = chunks_clear,
};
