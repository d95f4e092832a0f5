/*
** queue.c: rows that are known to have changed.
**
** The queue only says where to look. A row may stand in it many times, and may
** have changed back, or be gone: what is true is read from the row itself.
*/
#include "vtab.h"

/* Runs a statement whose only parameter is a row. */
static int run_with_row(vtab *v, statement_id id, sqlite3_int64 row) {
  sqlite3_stmt *s;
  int rc = vtab_statement(v, id, &s);
  if (rc != SQLITE_OK) return rc;
  sqlite3_bind_int64(s, 1, row);
  return vtab_run(v, s);
}

int queue_add(vtab *v, sqlite3_int64 row) {
  return run_with_row(v, QUEUE_PUT, row);
}

int queue_delete(vtab *v, sqlite3_int64 last) {
  return run_with_row(v, QUEUE_DELETE, last);
}

int queue_is_empty(vtab *v, int *empty) {
  sqlite3_stmt *s;
  *empty = 1;
  int rc = vtab_statement(v, QUEUE_EMPTY, &s);
  if (rc != SQLITE_OK) return rc;
  if (sqlite3_step(s) == SQLITE_ROW) *empty = 0;
  return vtab_fail_sqlite(v, sqlite3_reset(s));
}
