/*
** cursor.c: a query under way, as SQLite sees it: xFilter, xNext, xColumn.
**
** A row is known by its number in the source and, where it shows a vector, by the
** vector's id. Columns are looked up when they are read.
*/
#include "query.h"

#include <string.h>

static vtab *table_of(const cursor *c) {
  return (vtab *)c->base.pVtab;
}

/* ---- Opening and closing ------------------------------------------------- */

int cursor_open(sqlite3_vtab *table, sqlite3_vtab_cursor **out) {
  cursor *c = sqlite3_malloc64(sizeof *c);
  (void)table;
  if (c == NULL) return SQLITE_NOMEM;
  memset(c, 0, sizeof *c);
  c->at_end = 1;
  *out = &c->base;
  return SQLITE_OK;
}

/* No statement stays open at a row: it would keep a transaction open. */
static void leave_row(cursor *c) {
  sqlite3_reset(c->content);
  sqlite3_reset(c->vector);
  c->content_is_at = 0;
  c->vector_is_at = 0;
}

static void end_query(cursor *c) {
  leave_row(c);
  sqlite3_reset(c->scan);
  nearest_close(c->nearest);
  c->nearest = NULL;
  rowset_clear(&c->rows);
  c->at_end = 1;
}

int cursor_close(sqlite3_vtab_cursor *base) {
  cursor *c = (cursor *)base;
  end_query(c);
  sqlite3_finalize(c->scan);
  sqlite3_finalize(c->content);
  sqlite3_finalize(c->vector);
  sqlite3_value_free(c->match);
  sqlite3_free(c->query);
  sqlite3_free(c->kept);
  sqlite3_free(c);
  return SQLITE_OK;
}

/* ---- Going through the rows ---------------------------------------------- */

static int advance(cursor *c) {
  leave_row(c);
  int rc = c->is_search ? hits_next(c) : scan_next(c);
  if (rc != SQLITE_OK || c->at_end) end_query(c);
  return rc;
}

int cursor_next(sqlite3_vtab_cursor *base) {
  cursor *c = (cursor *)base;
  int rc = vtab_enter(table_of(c));
  return rc == SQLITE_OK ? vtab_leave(table_of(c), advance(c)) : rc;
}

static int start(cursor *c, int plan, const plan_term *terms, int count) {
  vtab *v = table_of(c);
  if (plan_find(terms, count, 'M') != NULL) return hits_start(c, terms, count);
  if (plan_find(terms, count, 'K') != NULL)
    return vtab_fail(v, SQLITE_ERROR,
                     "k says how many of the nearest rows are wanted, so it needs a MATCH: WHERE "
                     "%s MATCH 'some words' AND k = 10",
                     v->name);
  return scan_start(c, plan, terms, count);
}

static int filter(cursor *c, int plan, const char *arguments, int argc, sqlite3_value **argv) {
  int rc = config_check(table_of(c));
  if (rc == SQLITE_OK) rc = source_follow(table_of(c)); /* v->key is right from here on */
  if (rc != SQLITE_OK) return rc;
  plan_term *terms = sqlite3_malloc64(((sqlite3_uint64)argc + 1) * sizeof *terms);
  if (terms == NULL) return SQLITE_NOMEM;
  rc = plan_read(arguments, argc, argv, terms);
  c->at_end = 0;
  if (rc == SQLITE_OK) rc = start(c, plan, terms, argc);
  sqlite3_free(terms);
  if (rc == SQLITE_OK && !c->at_end) return advance(c);
  end_query(c);
  return rc;
}

int cursor_filter(sqlite3_vtab_cursor *base, int plan, const char *arguments, int argc,
                  sqlite3_value **argv) {
  cursor *c = (cursor *)base;
  end_query(c);
  int rc = vtab_enter(table_of(c));
  return rc == SQLITE_OK ? vtab_leave(table_of(c), filter(c, plan, arguments, argc, argv)) : rc;
}

int cursor_eof(sqlite3_vtab_cursor *base) {
  return ((cursor *)base)->at_end;
}

int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
  *rowid = ((cursor *)base)->row;
  return SQLITE_OK;
}

/* ---- Columns of the source ----------------------------------------------- */

static char *content_sql(const vtab *v) {
  sqlite3_str *out = sqlite3_str_new(v->db);
  sqlite3_str_appendall(out, "SELECT ");
  for (int i = 0; i < v->declared.count; i++) {
    if (i > 0) sqlite3_str_appendall(out, ", ");
    source_append_column(out, v, i);
  }
  sqlite3_str_appendall(out, " FROM ");
  source_append_table(out, v);
  sqlite3_str_appendf(out, " WHERE \"%w\" = ?1", v->key);
  return sqlite3_str_finish(out);
}

/* Steps a statement to what it has for the current row. */
static int step_to(vtab *v, sqlite3_stmt *s, int *is_at) {
  int rc = sqlite3_step(s);
  *is_at = 1;
  if (rc == SQLITE_ROW || rc == SQLITE_DONE) return SQLITE_OK;
  rc = sqlite3_reset(s);
  *is_at = 0;
  return vtab_fail_sqlite(v, rc);
}

static int content_column(cursor *c, sqlite3_context *context, int column) {
  vtab *v = table_of(c);
  int rc = SQLITE_OK;
  if (!c->is_search && c->scan_has_content) {
    sqlite3_result_value(context, sqlite3_column_value(c->scan, column + 2));
    return rc;
  }
  if (!c->content_is_at) {
    if (c->content == NULL) rc = scan_prepare(v, content_sql(v), &c->content);
    if (rc == SQLITE_OK) rc = sqlite3_bind_int64(c->content, 1, c->row);
    if (rc == SQLITE_OK) rc = step_to(v, c->content, &c->content_is_at);
  }
  /* Without a row, which is gone since, every column is NULL. */
  if (rc == SQLITE_OK && sqlite3_data_count(c->content) > 0)
    sqlite3_result_value(context, sqlite3_column_value(c->content, column));
  return rc;
}

/* ---- Columns of the vector ----------------------------------------------- */

/* By id, or the first vector of a row; in both cases only if it is the row's. */
static const char sql_by_id[] =
    "SELECT chunk, start, stop, tokens, truncated, vector FROM @vectors "
    "WHERE id = ?1 AND row = ?2";
static const char sql_first[] =
    "SELECT chunk, start, stop, tokens, truncated, vector FROM @vectors "
    "WHERE id = (SELECT first FROM @rows WHERE row = ?2 AND count > 0) AND row = ?2";

/* A cursor may go from a scan to a search: the statement is that of the last. */
static int find_vector(cursor *c) {
  vtab *v = table_of(c);
  int rc = SQLITE_OK, by_id = c->has_id;
  if (c->vector_is_at) return rc;
  if (c->vector_is_by_id != by_id) {
    sqlite3_finalize(c->vector);
    c->vector = NULL;
  }
  c->vector_is_by_id = by_id;
  if (c->vector == NULL) rc = vtab_prepare(v, &c->vector, by_id ? sql_by_id : sql_first, NULL);
  if (rc == SQLITE_OK && by_id) rc = sqlite3_bind_int64(c->vector, 1, c->id);
  if (rc == SQLITE_OK) rc = sqlite3_bind_int64(c->vector, 2, c->row);
  return rc == SQLITE_OK ? step_to(v, c->vector, &c->vector_is_at) : rc;
}

static int embedding_column(cursor *c, sqlite3_context *context) {
  vtab *v = table_of(c);
  const float *numbers; /* [dim] */
  float *scratch = sqlite3_malloc64(sizeof(float) * (sqlite3_uint64)v->dim);
  if (scratch == NULL) return SQLITE_NOMEM;
  int rc = store_read_vector(v, c->vector, 5, scratch, &numbers);
  if (rc == SQLITE_OK) result_vector_copy(context, numbers, v->dim);
  sqlite3_free(scratch);
  return rc;
}

static int vector_column(cursor *c, sqlite3_context *context, int hidden) {
  int rc = find_vector(c);
  if (rc != SQLITE_OK || sqlite3_data_count(c->vector) == 0) return rc;
  if (hidden == HIDDEN_EMBEDDING) return embedding_column(c, context);
  sqlite3_result_value(context, sqlite3_column_value(c->vector, hidden - HIDDEN_CHUNK));
  return SQLITE_OK;
}

/* ---- status -------------------------------------------------------------- */

/* What the text of the row is now against what its vectors were made of. */
static void result_status(sqlite3_context *context, const joined_text *text, stored_row *row) {
  unsigned char hash[HASH_BYTES];
  if (text->is_null && !row->has_hash)
    sqlite3_result_text(context, "no text", -1, SQLITE_STATIC);
  else if (!stored_row_is_of(row, text, hash))
    sqlite3_result_text(context, "pending", -1, SQLITE_STATIC);
  else if (row->error != NULL)
    sqlite3_result_text(context, row->error, -1, SQLITE_TRANSIENT);
  else
    sqlite3_result_text(context, "ok", -1, SQLITE_STATIC);
}

static int status_column(cursor *c, sqlite3_context *context) {
  vtab *v = table_of(c);
  joined_text text = {0};
  stored_row row = {0};
  int found = 0, rc = source_text(v, c->row, &text, &found);
  if (rc == SQLITE_OK && found) rc = store_row(v, c->row, &row);
  if (rc == SQLITE_OK && found) result_status(context, &text, &row);
  stored_row_clear(&row);
  joined_text_free(&text);
  return rc;
}

/* ---- xColumn ------------------------------------------------------------- */

static int hidden_column(cursor *c, sqlite3_context *context, int hidden) {
  switch (hidden) {
  case HIDDEN_TABLE:
    /* Where SQLite checks t = 'text' again, it is true. */
    if (c->is_search && c->match != NULL) sqlite3_result_value(context, c->match);
    return SQLITE_OK;
  case HIDDEN_K:
    if (c->is_search && c->has_k) sqlite3_result_int64(context, c->k);
    return SQLITE_OK;
  case HIDDEN_DISTANCE:
    if (c->is_search) sqlite3_result_double(context, c->distance);
    return SQLITE_OK;
  case HIDDEN_STATUS: return status_column(c, context);
  default: return vector_column(c, context, hidden);
  }
}

/* UPDATE reads every column. Hidden ones that it does not change are not looked
** up: xUpdate sees them by sqlite3_value_nochange. */
static int read_column(cursor *c, sqlite3_context *context, int column) {
  int count = table_of(c)->declared.count;
  if (column < count) return content_column(c, context, column);
  if (sqlite3_vtab_nochange(context)) return SQLITE_OK;
  return hidden_column(c, context, column - count);
}

int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column) {
  cursor *c = (cursor *)base;
  int rc = vtab_enter(table_of(c));
  return rc == SQLITE_OK ? vtab_leave(table_of(c), read_column(c, context, column)) : rc;
}
