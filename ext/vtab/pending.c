/*
** pending.c: how much refresh has yet to do, and refresh before a query.
*/
#include "vtab.h"

#include <string.h>

/* ---- Counting ----------------------------------------------------------- */

/* Rows of `s` (row, indexed columns) that are not in step. */
static int count_swept(vtab *v, joined_text *text, sqlite3_int64 *count) {
  unsigned char hash[HASH_BYTES];
  sqlite3_stmt *s;
  sqlite3_int64 row;
  int same = 0;
  int rc = vtab_statement(v, SOURCE_AFTER, &s);
  if (rc != SQLITE_OK) return rc;
  refresh_from_start(s);
  while ((rc = refresh_step(v, s, &row)) == SQLITE_ROW) {
    rc = source_join(v, s, 1, text);
    if (rc == SQLITE_OK) rc = refresh_compare(v, row, text, hash, &same);
    if (rc != SQLITE_OK) break;
    *count += !same;
  }
  sqlite3_reset(s);
  return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Rows in the queue that are there and not in step. */
static int count_queued(vtab *v, joined_text *text, sqlite3_int64 *count) {
  unsigned char hash[HASH_BYTES];
  sqlite3_stmt *s;
  sqlite3_int64 row;
  int found, same = 0;
  int rc = vtab_statement(v, QUEUE_ROWS, &s);
  if (rc != SQLITE_OK) return rc;
  refresh_from_start(s);
  while ((rc = refresh_step(v, s, &row)) == SQLITE_ROW) {
    rc = source_text(v, row, text, &found);
    if (rc == SQLITE_OK && found) rc = refresh_compare(v, row, text, hash, &same);
    if (rc != SQLITE_OK) break;
    *count += found && !same;
  }
  sqlite3_reset(s);
  return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int count_orphans(vtab *v, sqlite3_int64 *count) {
  sqlite3_stmt *s;
  sqlite3_int64 row;
  int rc = vtab_statement(v, ORPHANS, &s);
  if (rc != SQLITE_OK) return rc;
  while ((rc = refresh_step(v, s, &row)) == SQLITE_ROW) ++*count;
  sqlite3_reset(s);
  return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int refresh_pending(vtab *v, sqlite3_int64 *pending) {
  joined_text text = {NULL, 0, 0, 0};
  int by_queue = 0;
  *pending = 0;
  int rc = source_check(v);
  if (rc == SQLITE_OK) rc = refresh_by_queue(v, &by_queue);
  if (rc == SQLITE_OK)
    rc = by_queue ? count_queued(v, &text, pending) : count_swept(v, &text, pending);
  if (rc == SQLITE_OK) rc = count_orphans(v, pending);
  joined_text_free(&text);
  return rc;
}

/* ---- Before a query ----------------------------------------------------- */

#define SAVEPOINT_NAME "bertsql_refresh"

/* Takes back what a refresh wrote before it failed. While the connection is
** interrupted no statement can be prepared or run that would do it, but SQLite
** takes the whole transaction back when a statement that writes is interrupted:
** `writer` is one that changes nothing, for that. Where the savepoint began the
** transaction, that goes as a whole: RELEASE would be a COMMIT, which may be what
** failed, because another process reads. */
static void take_back(vtab *v, int began, sqlite3_stmt *writer) {
  const char *sql = began ? "ROLLBACK" : "ROLLBACK TO " SAVEPOINT_NAME "; RELEASE " SAVEPOINT_NAME;
  int rc = sqlite3_exec(v->db, sql, NULL, NULL, NULL);
  if ((rc & 0xff) != SQLITE_INTERRUPT || sqlite3_get_autocommit(v->db)) return;
  sqlite3_step(writer);
  sqlite3_reset(writer);
}

static int refresh_promised(vtab *v, void *argument) {
  (void)argument;
  return v->declared.content == NULL ? refresh_queue(v) : refresh_run(v, 0);
}

/* Inside a statement that only reads, each statement of ours would be committed
** by itself; a savepoint keeps them together, and takes no lock before something is
** written. Inside a statement that writes SQLite refuses savepoints with SQLITE_BUSY. */
static int refresh_together(vtab *v, sqlite3_stmt *writer) {
  int began = sqlite3_get_autocommit(v->db);
  int rc = sqlite3_exec(v->db, "SAVEPOINT " SAVEPOINT_NAME, NULL, NULL, NULL);
  if ((rc & 0xff) == SQLITE_BUSY) return vtab_whole(v, refresh_promised, NULL);
  if (rc != SQLITE_OK) return vtab_fail_sqlite(v, rc);
  rc = refresh_promised(v, NULL);
  if (rc == SQLITE_OK)
    rc = vtab_fail_sqlite(v, sqlite3_exec(v->db, "RELEASE " SAVEPOINT_NAME, NULL, NULL, NULL));
  if (rc != SQLITE_OK) take_back(v, began, writer);
  return rc;
}

static int refresh_as_whole(vtab *v) {
  sqlite3_int64 last = sqlite3_last_insert_rowid(v->db);
  sqlite3_stmt *writer = NULL;
  int rc = vtab_prepare(v, &writer, "DELETE FROM @config WHERE key = ''", NULL);
  if (rc == SQLITE_OK) rc = refresh_together(v, writer);
  sqlite3_finalize(writer);
  sqlite3_set_last_insert_rowid(v->db, last);
  return rc;
}

/* 1 when nothing can be written: a file opened so, or PRAGMA query_only. Where
** that cannot be told, writing will. */
static int is_read_only(vtab *v) {
  sqlite3_stmt *s = NULL;
  int read_only = sqlite3_db_readonly(v->db, v->schema) == 1;
  if (read_only) return 1;
  if (sqlite3_prepare_v2(v->db, "PRAGMA query_only", -1, &s, NULL) == SQLITE_OK &&
      sqlite3_step(s) == SQLITE_ROW)
    read_only = sqlite3_column_int(s, 0);
  sqlite3_finalize(s);
  return read_only;
}

int refresh_for_query(vtab *v) {
  int empty = 0, rc = SQLITE_OK;
  if (v->declared.content == NULL)
    rc = queue_is_empty(v, &empty);
  else
    empty = !v->declared.automatic;
  /* What cannot be written is searched as it is. */
  return rc == SQLITE_OK && !empty && !is_read_only(v) ? refresh_as_whole(v) : rc;
}
