/*
** table_tokens.c: bert_tokens(text [, options]), how the model cuts a text.
**
** It shows the whole text, and marks in `used` what the model would see of it.
** Reading tokens is shared with the tables that look inside the model.
*/
#include "ext.h"

#include <string.h>

bert_status tokenized_make(const table_call *call, sqlite3_value *text, const text_options *o,
                           int only_used, tokenized *out, bert_error *error) {
  bert_token_options how = {o->max_tokens, only_used, 0};
  loaded_model *model;
  int nomem = 0;
  bert_status status = table_model(call, o->model, &model, error);
  if (status != BERT_OK) return status;
  loaded_model_hold(model);
  out->model = model;
  if (!value_text(text, &out->texts[0], &nomem)) return error_nomem(error, "reading the text");
  if (o->text_b != NULL) {
    out->texts[1].data = o->text_b;
    out->texts[1].size = strlen(o->text_b); /* an option holds no NUL */
  }
  return bert_tokenize(model->model, out->texts[0], o->text_b != NULL ? &out->texts[1] : NULL, &how,
                       &out->tokens, error);
}

void tokenized_clear(tokenized *t) {
  bert_tokens_free(t->tokens);
  loaded_model_drop(t->model);
  memset(t, 0, sizeof(*t));
}

void tokenized_result_token(sqlite3_context *context, const tokenized *t, size_t row) {
  bert_text token = bert_token_string(t->model->model, t->tokens->ids[row]);
  if (token.data != NULL)
    sqlite3_result_text64(context, token.data, token.size, SQLITE_TRANSIENT, SQLITE_UTF8);
}

/* ---- The table --------------------------------------------------------- */

enum {
  TOKEN_POS,
  TOKEN_ID,
  TOKEN_TOKEN,
  TOKEN_TEXT,
  TOKEN_START,
  TOKEN_STOP,
  TOKEN_WORD,
  TOKEN_SPECIAL,
  TOKEN_SEGMENT,
  TOKEN_USED
};

enum { ARGUMENT_TEXT, ARGUMENT_OPTIONS };

typedef struct tokens_cursor {
  tokenized source;
  options *parsed;
  size_t row;
} tokens_cursor;

static const option_spec tokens_options[] = {TEXT_OPTIONS};

static void tokens_clear(void *cursor) {
  tokens_cursor *t = cursor;
  tokenized_clear(&t->source);
  options_free(t->parsed);
  memset(t, 0, sizeof(*t));
}

static bert_status tokens_start(void *cursor, const table_call *call, bert_error *error) {
  tokens_cursor *t = cursor;
  text_options o = {0};
  bert_status status = options_parse("bert_tokens", call->arguments[ARGUMENT_OPTIONS],
                                     tokens_options, 3, &o, &t->parsed, error);
  if (status != BERT_OK) return status;
  return tokenized_make(call, call->arguments[ARGUMENT_TEXT], &o, 0, &t->source, error);
}

static bert_status tokens_next(void *cursor, bert_error *error) {
  (void)error;
  ((tokens_cursor *)cursor)->row++;
  return BERT_OK;
}

static int tokens_at_end(const void *cursor) {
  const tokens_cursor *t = cursor;
  return t->row >= t->source.tokens->count;
}

/* The bytes of the source that the token stands for; NULL for what was added. */
static void result_piece(sqlite3_context *context, const tokenized *s, size_t row) {
  const bert_tokens *t = s->tokens;
  if (t->special[row]) return;
  sqlite3_result_text64(context, s->texts[t->segments[row] == 1].data + t->starts[row],
                        t->stops[row] - t->starts[row], SQLITE_TRANSIENT, SQLITE_UTF8);
}

static bert_status tokens_column(void *cursor, sqlite3_context *context, int column,
                                 bert_error *error) {
  const tokens_cursor *c = cursor;
  const bert_tokens *t = c->source.tokens;
  size_t row = c->row;
  (void)error;
  switch (column) {
  case TOKEN_POS: sqlite3_result_int64(context, (sqlite3_int64)row); break;
  case TOKEN_ID: sqlite3_result_int(context, t->ids[row]); break;
  case TOKEN_TOKEN: tokenized_result_token(context, &c->source, row); break;
  case TOKEN_TEXT: result_piece(context, &c->source, row); break;
  case TOKEN_START: sqlite3_result_int64(context, (sqlite3_int64)t->starts[row]); break;
  case TOKEN_STOP: sqlite3_result_int64(context, (sqlite3_int64)t->stops[row]); break;
  case TOKEN_WORD:
    /* NULL, so that count(DISTINCT word) counts words. */
    if (t->words[row] >= 0) sqlite3_result_int(context, t->words[row]);
    break;
  case TOKEN_SPECIAL: sqlite3_result_int(context, t->special[row]); break;
  case TOKEN_SEGMENT: sqlite3_result_int(context, t->segments[row]); break;
  case TOKEN_USED: sqlite3_result_int(context, t->used[row]); break;
  default: break;
  }
  return BERT_OK;
}

const table_function table_tokens = {
    .name = "bert_tokens",
    .columns = "pos INTEGER, id INTEGER, token TEXT, text TEXT, start INTEGER, stop INTEGER, "
               "word INTEGER, special INTEGER, segment INTEGER, used INTEGER",
    .arguments = "in_text, options",
    .usage = "needs a text, as in bert_tokens('some text')",
    .required = 1,
    .flags = SQLITE_VTAB_INNOCUOUS,
    .rows = 100,
    .cursor_size = sizeof(tokens_cursor),
    .start = tokens_start,
    .next = tokens_next,
    .at_end = tokens_at_end,
    .column = tokens_column,
    .clear = tokens_clear,
};
