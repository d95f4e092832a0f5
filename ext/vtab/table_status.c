/*
** table_status.c: bert_status, the bertsql tables of all databases that are
** open, and how far their vectors are.
**
** The rows are taken when the scan starts. Nothing here embeds, so that it works
** without the model.
*/
#include "vtab.h"

#include <string.h>

enum {
  STATUS_NAME,
  STATUS_ROWS,
  STATUS_PENDING,
  STATUS_FAILED,
  STATUS_LAST_ERROR,
  STATUS_MODEL,
  STATUS_PRECISION,
  STATUS_SCHEMA
};

typedef struct status_row {
  char *schema, *name, *model, *precision, *last_error;
  sqlite3_int64 rows, failed, pending;
  int known; /* 0: only the error is */
} status_row;

typedef struct status_cursor {
  status_row *rows; /* [count] */
  size_t count, room, row;
  const char *only;  /* the name asked for, during start; NULL: all */
  int count_pending; /* 1: the column is read */
} status_cursor;

static void status_clear(void *cursor) {
  status_cursor *k = cursor;
  for (size_t i = 0; i < k->count; i++) {
    sqlite3_free(k->rows[i].schema);
    sqlite3_free(k->rows[i].name);
    sqlite3_free(k->rows[i].model);
    sqlite3_free(k->rows[i].precision);
    sqlite3_free(k->rows[i].last_error);
  }
  sqlite3_free(k->rows);
  memset(k, 0, sizeof *k);
}

/* ---- One table --------------------------------------------------------- */

/* Counts what t_rows says; the last error is that of the largest row. */
static int count_rows(vtab *v, status_row *r) {
  static const char sql[] =
      "SELECT count(*) FILTER (WHERE count > 0), count(error), "
      "(SELECT 'row ' || row || ': ' || error FROM @rows WHERE error NOT NULL "
      "ORDER BY row DESC LIMIT 1) FROM @rows";
  sqlite3_stmt *s = NULL;
  int rc = vtab_prepare(v, &s, sql, NULL);
  if (rc != SQLITE_OK) return rc;
  if (sqlite3_step(s) == SQLITE_ROW) {
    r->rows = sqlite3_column_int64(s, 0);
    r->failed = sqlite3_column_int64(s, 1);
    if (r->failed > 0) {
      r->last_error = sqlite3_mprintf("%s", sqlite3_column_text(s, 2));
      if (r->last_error == NULL) rc = SQLITE_NOMEM;
    }
  }
  int end = sqlite3_finalize(s);
  return rc != SQLITE_OK ? rc : vtab_fail_sqlite(v, end);
}

/* What is pending takes a look at every text of a table without triggers, so it is
** counted for whoever asks. */
static int examine(vtab *v, status_row *r, int count_pending) {
  int rc = config_check(v);
  if (rc == SQLITE_OK) rc = source_check(v);
  if (rc == SQLITE_OK) rc = config_get_text(v, "model", &r->model);
  if (rc == SQLITE_OK) rc = model_recorded_precision(v, &r->precision);
  if (rc == SQLITE_OK) rc = count_rows(v, r);
  if (rc == SQLITE_OK && count_pending) rc = refresh_pending(v, &r->pending);
  r->known = rc == SQLITE_OK;
  return rc;
}

/* A table that cannot be examined has its row too, with the reason. */
static int status_of(vtab *v, status_row *r, int count_pending) {
  int rc = vtab_enter(v);
  if (rc == SQLITE_OK) rc = vtab_leave(v, examine(v, r, count_pending));
  int kind = rc & 0xff;
  if (rc == SQLITE_OK || kind == SQLITE_NOMEM || kind == SQLITE_INTERRUPT) return rc;
  sqlite3_free(r->last_error);
  r->last_error =
      sqlite3_mprintf("%s", v->base.zErrMsg != NULL ? v->base.zErrMsg : sqlite3_errstr(rc));
  return r->last_error != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

/* ---- All tables -------------------------------------------------------- */

static status_row *add_row(status_cursor *k) {
  if (!array_grow((void **)&k->rows, &k->room, k->count + 1, sizeof *k->rows)) return NULL;
  memset(&k->rows[k->count], 0, sizeof k->rows[0]);
  return &k->rows[k->count++];
}

/* A statement that names a table connects it, if it can be. */
static int touch(sqlite3 *db, const char *schema, const char *name) {
  sqlite3_stmt *s = NULL;
  char *sql = sqlite3_mprintf("SELECT 1 FROM \"%w\".\"%w\" WHERE 0", schema, name);
  if (sql == NULL) return SQLITE_NOMEM;
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
  sqlite3_free(sql);
  sqlite3_finalize(s);
  return rc;
}

static int list_table(status_cursor *k, connection *c, const char *schema, const char *name) {
  sqlite3 *db = connection_db(c);
  if (k->only != NULL && sqlite3_stricmp(k->only, name) != 0) return SQLITE_OK;
  int rc = touch(db, schema, name);
  vtab *v = vtab_connected(c, schema, name);
  if ((rc & 0xff) == SQLITE_NOMEM) return rc;
  if (rc == SQLITE_OK && v == NULL) return SQLITE_OK; /* of another module */
  status_row *r = add_row(k);
  if (r == NULL) return SQLITE_NOMEM;
  r->schema = sqlite3_mprintf("%s", schema);
  r->name = sqlite3_mprintf("%s", name);
  if (v == NULL) r->last_error = sqlite3_mprintf("%s", sqlite3_errmsg(db));
  if (r->schema == NULL || r->name == NULL || (v == NULL && r->last_error == NULL))
    return SQLITE_NOMEM;
  return v != NULL ? status_of(v, r, k->count_pending) : SQLITE_OK;
}

/* The virtual tables of a schema whose CREATE names bertsql. */
static int list_schema(status_cursor *k, connection *c, const char *schema) {
  sqlite3_stmt *s = NULL;
  char *sql = sqlite3_mprintf("SELECT name FROM \"%w\".sqlite_schema WHERE type = 'table' AND "
                              "rootpage = 0 AND sql LIKE '%%USING%%bertsql%%' ORDER BY name",
                              schema);
  if (sql == NULL) return SQLITE_NOMEM;
  int rc = sqlite3_prepare_v2(connection_db(c), sql, -1, &s, NULL);
  sqlite3_free(sql);
  int listed = SQLITE_OK;
  while (rc == SQLITE_OK && listed == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
    listed = list_table(k, c, schema, (const char *)sqlite3_column_text(s, 0));
  int end = sqlite3_finalize(s);
  return listed != SQLITE_OK ? listed : rc != SQLITE_OK ? rc : end;
}

static int list_all(status_cursor *k, connection *c) {
  sqlite3_stmt *s = NULL;
  int rc = sqlite3_prepare_v2(connection_db(c),
                              "SELECT name FROM pragma_database_list ORDER BY seq", -1, &s, NULL);
  int listed = SQLITE_OK;
  while (rc == SQLITE_OK && listed == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
    listed = list_schema(k, c, (const char *)sqlite3_column_text(s, 0));
  int end = sqlite3_finalize(s);
  return listed != SQLITE_OK ? listed : rc != SQLITE_OK ? rc : end;
}

/* SQLite compares the name again; what is no text it may convert, so all are listed. */
static const char *name_asked_for(const table_call *call) {
  sqlite3_value *name = call->pushed[STATUS_NAME];
  if (name == NULL || sqlite3_value_type(name) != SQLITE_TEXT) return NULL;
  return (const char *)sqlite3_value_text(name);
}

static bert_status status_start(void *cursor, const table_call *call, bert_error *error) {
  status_cursor *k = cursor;
  k->only = name_asked_for(call);
  k->count_pending = (call->used >> STATUS_PENDING & 1) != 0;
  int rc = list_all(k, call->connection) & 0xff;
  if (rc == SQLITE_NOMEM) return error_nomem(error, "listing the tables");
  if (rc == SQLITE_INTERRUPT) return error_set(error, BERT_INTERRUPTED, "interrupted");
  if (rc == SQLITE_OK) return BERT_OK;
  return error_set(error, BERT_IO, "%s", sqlite3_errmsg(connection_db(call->connection)));
}

static bert_status status_next(void *cursor, bert_error *error) {
  (void)error;
  ((status_cursor *)cursor)->row++;
  return BERT_OK;
}

static int status_at_end(const void *cursor) {
  const status_cursor *k = cursor;
  return k->row >= k->count;
}

static bert_status status_column(void *cursor, sqlite3_context *context, int column,
                                 bert_error *error) {
  const status_cursor *k = cursor;
  const status_row *r = &k->rows[k->row];
  const char *text = NULL;
  (void)error;
  switch (column) {
  case STATUS_NAME: text = r->name; break;
  case STATUS_LAST_ERROR: text = r->last_error; break;
  case STATUS_MODEL: text = r->model; break;
  case STATUS_PRECISION: text = r->precision; break;
  case STATUS_SCHEMA: text = r->schema; break;
  case STATUS_ROWS:
    if (r->known) sqlite3_result_int64(context, r->rows);
    break;
  case STATUS_PENDING:
    if (r->known) sqlite3_result_int64(context, r->pending);
    break;
  case STATUS_FAILED:
    if (r->known) sqlite3_result_int64(context, r->failed);
    break;
  default: break;
  }
  if (text != NULL) sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
  return BERT_OK;
}

const table_function table_status = {
    .name = "bert_status",
    .columns = "name TEXT, \"rows\" INTEGER, pending INTEGER, failed INTEGER, last_error TEXT, "
               "model TEXT, precision TEXT",
    .hidden = "schema TEXT",
    .flags = SQLITE_VTAB_INNOCUOUS,
    .pushable = 1u << STATUS_NAME,
    .rows = 5,
    .cursor_size = sizeof(status_cursor),
    .start = status_start,
    .next = status_next,
    .at_end = status_at_end,
    .column = status_column,
    .clear = status_clear,
};
