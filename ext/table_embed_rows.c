/*
** table_embed_rows.c: bert_embed_rows(sql [, options]), the rows of a SELECT
** embedded in batches over all threads.
**
** The inner SELECT runs on the connection of the outer statement, and is read
** as far as one batch at a time. If the outer statement writes, it may write to
** the very table that the SELECT reads, and rows it has just inserted could come
** up in the scan again and again. SQLite itself then sets the rows of its own
** SELECTs aside first; it cannot look into ours, so we do the same, by a CTE
** that must be materialized. It lies where temporary tables lie, by default in
** a file and not in memory.
*/
#include "ext.h"

#include <string.h>

enum { ROWS_KEY, ROWS_EMBEDDING, ROWS_TOKENS, ROWS_TRUNCATED };

enum { ARGUMENT_SQL, ARGUMENT_OPTIONS };

typedef struct rows_cursor {
  embed_settings settings;
  embed_batch *batch;
  sqlite3_stmt *select;
  int done; /* 1: the SELECT has no more rows */
  size_t row;
} rows_cursor;

static void rows_clear(void *cursor) {
  rows_cursor *r = cursor;
  sqlite3_finalize(r->select);
  embed_batch_free(r->batch);
  embed_settings_clear(&r->settings);
  memset(r, 0, sizeof(*r));
}

/* ---- The inner SELECT -------------------------------------------------- */

/* What SQLite says of the SELECT, with a prefix that tells it from what is
** wrong with the statement around it. */
static bert_status select_error(sqlite3 *db, int rc, bert_error *error) {
  if ((rc & 0xff) == SQLITE_NOMEM) return error_nomem(error, "running its SELECT");
  if ((rc & 0xff) == SQLITE_INTERRUPT) return error_set(error, BERT_INTERRUPTED, "interrupted");
  return error_set(error, BERT_ARGUMENT, "in its SELECT: %s", sqlite3_errmsg(db));
}

static int is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

/* Past white space and comments; `semicolons` too, if asked. */
static const char *skip_blank(const char *sql, int semicolons) {
  for (;;) {
    if (is_space(*sql) || (semicolons && *sql == ';')) {
      sql++;
    } else if (sql[0] == '-' && sql[1] == '-') {
      while (*sql != 0 && *sql != '\n') sql++;
    } else if (sql[0] == '/' && sql[1] == '*') {
      const char *end = strstr(sql + 2, "*/");
      sql = end != NULL ? end + 2 : sql + strlen(sql);
    } else {
      return sql;
    }
  }
}

static int begins_with_select(const char *sql) {
  sql = skip_blank(sql, 0);
  return sqlite3_strnicmp(sql, "SELECT", 6) == 0 || sqlite3_strnicmp(sql, "WITH", 4) == 0 ||
         sqlite3_strnicmp(sql, "VALUES", 6) == 0;
}

static bert_status check_select(sqlite3_stmt *s, const char *sql, const char *tail,
                                bert_error *error) {
  if (s == NULL) return error_set(error, BERT_ARGUMENT, "the SQL is empty; it must be a SELECT");
  if (!begins_with_select(sql) || !sqlite3_stmt_readonly(s))
    return error_set(error, BERT_ARGUMENT, "the SQL must be a SELECT of a key and a text");
  if (*skip_blank(tail, 1) != 0)
    return error_set(error, BERT_ARGUMENT,
                     "the SQL must be one SELECT, but more follows after its semicolon");
  if (sqlite3_bind_parameter_count(s) != 0)
    return error_set(error, BERT_ARGUMENT,
                     "the SELECT has a parameter, which cannot be bound here; put the value "
                     "into the SQL, with quote() or format('%%Q')");
  if (sqlite3_column_count(s) != 2)
    return error_set(error, BERT_ARGUMENT,
                     "the SELECT must have two columns, a key and a text, but has %d",
                     sqlite3_column_count(s));
  return BERT_OK;
}

/* 1 when a statement that writes is under way, which may be the one around us. */
static int writing(sqlite3 *db) {
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, NULL); s != NULL; s = sqlite3_next_stmt(db, s))
    if (sqlite3_stmt_busy(s) && !sqlite3_stmt_readonly(s)) return 1;
  return 0;
}

/* Prepares the SELECT in sql[size] so that all its rows are read before the
** first is given. A comment that was left open is closed at the second try. */
static int prepare_aside(sqlite3 *db, const char *sql, int size, sqlite3_stmt **out) {
  static const char *const closings[] = {"\n)", "*/)"};
  int rc = SQLITE_ERROR;
  if (size > 0 && sql[size - 1] == ';') size--;
  for (int i = 0; i < 2 && rc == SQLITE_ERROR; i++) {
    char *aside = sqlite3_mprintf("WITH bert_embed_rows_aside AS MATERIALIZED (%.*s%s "
                                  "SELECT * FROM bert_embed_rows_aside",
                                  size, sql, closings[i]);
    if (aside == NULL) return SQLITE_NOMEM;
    rc = sqlite3_prepare_v2(db, aside, -1, out, NULL);
    sqlite3_free(aside);
  }
  return rc;
}

static bert_status prepare(rows_cursor *r, sqlite3 *db, const char *sql, bert_error *error) {
  const char *tail = sql;
  bert_status status;
  int rc = sqlite3_prepare_v2(db, sql, -1, &r->select, &tail);
  if (rc != SQLITE_OK) return select_error(db, rc, error);
  status = check_select(r->select, sql, tail, error);
  if (status != BERT_OK || !writing(db)) return status;
  sqlite3_finalize(r->select);
  r->select = NULL;
  rc = prepare_aside(db, sql, (int)(tail - sql), &r->select);
  return rc == SQLITE_OK ? BERT_OK : select_error(db, rc, error);
}

/* ---- Batches ----------------------------------------------------------- */

static bert_status add_row(rows_cursor *r, bert_error *error) {
  sqlite3_value *key = sqlite3_column_value(r->select, 0);
  bert_text text = {NULL, 0};
  if (sqlite3_column_type(r->select, 1) == SQLITE_NULL)
    return embed_batch_add(r->batch, key, NULL, error);
  text.data = (const char *)sqlite3_column_text(r->select, 1);
  text.size = (size_t)sqlite3_column_bytes(r->select, 1);
  if (text.data == NULL && sqlite3_errcode(sqlite3_db_handle(r->select)) == SQLITE_NOMEM)
    return error_nomem(error, "reading a text");
  return embed_batch_add(r->batch, key, &text, error);
}

static bert_status fill(rows_cursor *r, bert_error *error) {
  bert_status status = BERT_OK;
  embed_batch_begin(r->batch);
  r->row = 0;
  while (status == BERT_OK && !r->done && !embed_batch_full(r->batch)) {
    int rc = sqlite3_step(r->select);
    if (rc == SQLITE_ROW)
      status = add_row(r, error);
    else if (rc == SQLITE_DONE)
      r->done = 1;
    else
      status = select_error(sqlite3_db_handle(r->select), rc, error);
  }
  return status == BERT_OK ? embed_batch_run(r->batch, error) : status;
}

/* ---- The table --------------------------------------------------------- */

static bert_status read_sql(sqlite3_value *value, const char **sql, bert_error *error) {
  bert_text text;
  int nomem = 0;
  if (sqlite3_value_type(value) != SQLITE_TEXT)
    return error_set(error, BERT_ARGUMENT, "the SQL must be a text");
  if (!value_text(value, &text, &nomem)) return error_nomem(error, "reading the SQL");
  if (memchr(text.data, 0, text.size) != NULL)
    return error_set(error, BERT_ARGUMENT, "the SQL holds a NUL byte");
  *sql = text.data; /* SQLite ends a text with NUL */
  return BERT_OK;
}

static bert_status rows_start(void *cursor, const table_call *call, bert_error *error) {
  rows_cursor *r = cursor;
  loaded_model *model = NULL;
  const char *sql = NULL;
  bert_status status = read_sql(call->arguments[ARGUMENT_SQL], &sql, error);
  if (status == BERT_OK)
    status = embed_settings_read("bert_embed_rows", call->arguments[ARGUMENT_OPTIONS], &r->settings,
                                 error);
  if (status == BERT_OK) status = prepare(r, connection_db(call->connection), sql, error);
  if (status == BERT_OK) status = table_model(call, r->settings.model, &model, error);
  if (status == BERT_OK)
    status = embed_batch_create(call->connection, model, "bert_embed_rows", &r->settings.embed,
                                &r->batch, error);
  return status == BERT_OK ? fill(r, error) : status;
}

static bert_status rows_next(void *cursor, bert_error *error) {
  rows_cursor *r = cursor;
  r->row++;
  return r->row < embed_batch_count(r->batch) || r->done ? BERT_OK : fill(r, error);
}

static int rows_at_end(const void *cursor) {
  const rows_cursor *r = cursor;
  return r->row >= embed_batch_count(r->batch);
}

static bert_status rows_column(void *cursor, sqlite3_context *context, int column,
                               bert_error *error) {
  const rows_cursor *r = cursor;
  embed_row row = embed_batch_row(r->batch, r->row);
  (void)error;
  if (column == ROWS_KEY) {
    sqlite3_result_value(context, row.key);
  } else if (row.vector != NULL) {
    switch (column) {
    case ROWS_EMBEDDING: result_vector_copy(context, row.vector, embed_batch_dim(r->batch)); break;
    case ROWS_TOKENS: sqlite3_result_int(context, row.result.tokens); break;
    case ROWS_TRUNCATED: sqlite3_result_int(context, row.result.truncated); break;
    default: break;
    }
  }
  return BERT_OK;
}

const table_function table_embed_rows = {
    .name = "bert_embed_rows",
    .columns = "key, embedding BLOB, n_tokens INTEGER, truncated INTEGER",
    .arguments = "in_sql, options",
    .usage = "needs a SELECT of a key and a text, as in "
             "bert_embed_rows('SELECT id, body FROM docs')",
    .required = 1,
    .flags = SQLITE_VTAB_DIRECTONLY,
    .rows = 1000,
    .cursor_size = sizeof(rows_cursor),
    .start = rows_start,
    .next = rows_next,
    .at_end = rows_at_end,
    .column = rows_column,
    .clear = rows_clear,
};
