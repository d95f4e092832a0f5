/*
** test_ext_vtab_recursion.c: tables whose own SQL leads back to them. Each is an
** error, and the connection can be closed afterwards.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tabledb.h"

#define LEADS_BACK "it is used by what it reads or writes itself"
#define MATCH "SELECT count(*) FROM t WHERE t MATCH 'one' AND k = 9"

static int open_notes(void **state) {
  sqlite3 *db = tabledb_open(NULL);
  assert_runs(db, "CREATE VIRTUAL TABLE t USING bertsql(body, model='tiny');"
                  "INSERT INTO t(body) VALUES('one'), ('two')");
  *state = db;
  return 0;
}

static int close_notes(void **state) {
  sqldb_close(*state);
  return 0;
}

/* The table works again once the trigger is gone. */
static void try_trigger(sqlite3 *db, const char *trigger, const char *write) {
  assert_runs(db, trigger);
  assert_error(db, write, LEADS_BACK);
  assert_runs(db, "DROP TRIGGER loop");
  assert_answer(db, MATCH, "2");
  assert_runs(db, "BEGIN; INSERT INTO t(body) VALUES('three'); " MATCH "; ROLLBACK");
  assert_sound(db, "t");
}

static void a_trigger_on_the_queue(void **state) {
  try_trigger(*state, "CREATE TRIGGER loop AFTER INSERT ON t_queue BEGIN " MATCH "; END",
              "INSERT INTO t(body) VALUES('three')");
  try_trigger(*state,
              "CREATE TRIGGER loop AFTER INSERT ON t_queue BEGIN INSERT INTO t(body) VALUES('x'); "
              "END",
              "INSERT INTO t(body) VALUES('three')");
  try_trigger(*state, "CREATE TRIGGER loop AFTER DELETE ON t_queue BEGIN " MATCH "; END",
              "INSERT INTO t(body) VALUES('three')");
}

static void a_trigger_on_a_shadow_table(void **state) {
  try_trigger(*state,
              "CREATE TRIGGER loop AFTER INSERT ON t_content BEGIN INSERT INTO t(body) "
              "VALUES('x'); END",
              "INSERT INTO t(body) VALUES('three')");
  try_trigger(*state, "CREATE TRIGGER loop AFTER DELETE ON t_rows BEGIN DELETE FROM t; END",
              "DELETE FROM t WHERE rowid = 1");
  try_trigger(*state,
              "CREATE TRIGGER loop AFTER INSERT ON t_vectors BEGIN INSERT INTO t(t) "
              "VALUES('rebuild'); END",
              "INSERT INTO t(t) VALUES('rebuild')");
}

/* Also on the connection that made it, which is left with it. */
static void a_trigger_that_stays(void **state) {
  assert_runs(*state, "CREATE TRIGGER loop AFTER INSERT ON t_queue BEGIN " MATCH "; END");
  assert_error(*state, "INSERT INTO t(body) VALUES('three')", LEADS_BACK);
}

static void a_view_as_shadow_table(void **state) {
  sqlite3 *db = *state;
  assert_runs(db, "ALTER TABLE t_vectors RENAME TO kept;"
                  "CREATE VIEW t_vectors AS SELECT kept.* FROM kept, t WHERE t MATCH 'one'");
  assert_error(db, MATCH, LEADS_BACK);
  assert_error(db, "SELECT embedding FROM t", LEADS_BACK);
  assert_error(db, "INSERT INTO t(t) VALUES('integrity-check')", LEADS_BACK);
  assert_runs(db, "DROP VIEW t_vectors; ALTER TABLE kept RENAME TO t_vectors");
  assert_answer(db, MATCH, "2");
  assert_runs(db, "ALTER TABLE t_content RENAME TO kept;"
                  "CREATE VIEW t_content AS SELECT rowid AS id, body AS c0 FROM t");
  assert_error(db, "SELECT body FROM t", LEADS_BACK);
  assert_error(db, MATCH, LEADS_BACK);
  assert_answer(db, "SELECT pending, last_error LIKE '%used by what it reads%' FROM bert_status",
                "NULL|1");
}

/* Answers the first column of the first row of a query. */
static void ask(sqlite3_context *context, int argc, sqlite3_value **argv) {
  sqlite3 *db = sqlite3_context_db_handle(context);
  sqlite3_stmt *s = NULL;
  if (sqlite3_prepare_v2(db, (const char *)sqlite3_value_text(argv[0]), -1, &s, NULL) ==
          SQLITE_OK &&
      sqlite3_step(s) == SQLITE_ROW)
    sqlite3_result_value(context, sqlite3_column_value(s, 0));
  if (sqlite3_finalize(s) != SQLITE_OK) sqlite3_result_error(context, sqlite3_errmsg(db), -1);
}

static void a_function_in_the_content_table(void **state) {
  sqlite3 *db = *state;
  sqlite3_create_function(db, "ask", 1, SQLITE_UTF8 | SQLITE_INNOCUOUS | SQLITE_DETERMINISTIC, NULL,
                          ask, NULL, NULL);
  assert_runs(db, "CREATE TABLE docs(id INTEGER PRIMARY KEY, body, "
                  "  more AS (body || ask('SELECT count(*) FROM d WHERE d MATCH ''one''')));"
                  "INSERT INTO docs(body) VALUES('one'), ('two');"
                  "CREATE VIRTUAL TABLE d USING bertsql(more, content='docs', auto=1)");
  assert_error(db, "INSERT INTO d(d) VALUES('refresh')", LEADS_BACK);
  assert_error(db, "SELECT status FROM d", LEADS_BACK);
  assert_error(db, "SELECT rowid FROM d WHERE d MATCH 'one'", LEADS_BACK);
}

int main(void) {
#define WITH_NOTES(f) cmocka_unit_test_setup_teardown(f, open_notes, close_notes)
  const struct CMUnitTest tests[] = {
      WITH_NOTES(a_trigger_on_the_queue),
      WITH_NOTES(a_trigger_on_a_shadow_table),
      WITH_NOTES(a_trigger_that_stays),
      WITH_NOTES(a_view_as_shadow_table),
      WITH_NOTES(a_function_in_the_content_table),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
