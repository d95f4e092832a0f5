/*
** whole.c: work inside a statement of the user's that is done whole or not at all.
**
** Of a statement that fails in a transaction SQLite takes back what it wrote, but
** only if it began a savepoint for it, and it begins none for one that it expects
** to write a single row: what fails in the middle of INSERT INTO t(t)
** VALUES('refresh') would leave half of it behind. SAVEPOINT is refused while a
** statement writes. So the work is done by a function that an INSERT … SELECT of
** ours calls: for that one SQLite begins a savepoint. It inserts nothing.
*/
#include "vtab.h"

static const char pointer_type[] = "bertsql work";

typedef struct whole {
  vtab *v;
  vtab_work *work;
  void *argument;
  int rc;
} whole;

static void call_work(sqlite3_context *context, int argc, sqlite3_value **argv) {
  whole *w = argc == 1 ? sqlite3_value_pointer(argv[0], pointer_type) : NULL;
  if (w == NULL) {
    sqlite3_result_error(context, WHOLE_FUNCTION " is for bertsql's own statements", -1);
    return;
  }
  w->rc = w->work(w->v, w->argument);
  if (w->rc != SQLITE_OK)
    sqlite3_result_error_code(context, w->rc);
  else
    sqlite3_result_int(context, 0);
}

int whole_register(sqlite3 *db) {
  return sqlite3_create_function_v2(db, WHOLE_FUNCTION, 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL,
                                    call_work, NULL, NULL, NULL);
}

int vtab_whole(vtab *v, vtab_work *work, void *argument) {
  whole w = {v, work, argument, SQLITE_OK};
  sqlite3_stmt *s;
  int rc = vtab_statement(v, WHOLE, &s);
  if (rc != SQLITE_OK) return rc;
  rc = sqlite3_bind_pointer(s, 1, &w, pointer_type, NULL);
  if (rc != SQLITE_OK) return vtab_fail_sqlite(v, rc);
  sqlite3_step(s);
  rc = sqlite3_reset(s);
  sqlite3_clear_bindings(s);
  return w.rc != SQLITE_OK ? w.rc : vtab_fail_sqlite(v, rc);
}
