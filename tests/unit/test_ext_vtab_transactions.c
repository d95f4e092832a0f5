/*
** test_ext_vtab_transactions.c: BEGIN, ROLLBACK, SAVEPOINT, conflict clauses and
** statements that fail half way: a virtual table takes part in them as any table
** does.
*/
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tabledb.h"

/* notes keeps its own texts, docs_emb follows docs. */
static int open_tables(void **state) {
  sqlite3 *db = tabledb_open(NULL);
  tabledb_make_docs(db, "");
  assert_runs(db, "CREATE VIRTUAL TABLE notes USING bertsql(body, lang UNINDEXED, model='tiny');"
                  "INSERT INTO notes(rowid, body, lang) VALUES(1, 'time flies', 'en'),"
                  "(2, 'a red apple', 'en'), (3, NULL, 'xx')");
  *state = db;
  return 0;
}

static int close_tables(void **state) {
  sqlite3 *db = *state;
  if (!sqlite3_get_autocommit(db)) assert_runs(db, "ROLLBACK");
  assert_sound(db, "notes");
  assert_sound(db, "docs_emb");
  assert_finds_itself(db, "notes", "notes_content", "id", "c0");
  sqldb_close(db);
  return 0;
}

/* All that is stored, to be compared before and after. */
#define STORED                                                                                     \
  "SELECT group_concat(id || c0 || c1) FROM notes_content;"                                        \
  "SELECT group_concat(row || hex(hash) || first || count) FROM notes_rows;"                       \
  "SELECT group_concat(id || row || hex(vector)) FROM notes_vectors;"                              \
  "SELECT count(*) FROM notes_queue; SELECT group_concat(key || value) FROM notes_config"

#define NEAREST(text) "SELECT rowid FROM notes WHERE notes MATCH '" text "' AND k = 1"

/* ---- Transactions ----------------------------------------------------------- */

static void rollback_takes_everything_back(void **state) {
  char *before = sqldb_answer(*state, STORED, NULL);
  assert_runs(*state, "BEGIN; INSERT INTO notes(body) VALUES('new'); UPDATE notes SET body = 'old' "
                      "WHERE rowid = 1; DELETE FROM notes WHERE rowid = 2");
  assert_answer(*state, "SELECT group_concat(body) FROM notes", "old,new");
  assert_answer(*state, NEAREST("old"), "1");
  assert_answer(*state, NEAREST("new"), "4");
  assert_runs(*state, "ROLLBACK");
  assert_answer(*state, STORED, before);
  assert_answer(*state, NEAREST("a red apple"), "2");
  sqlite3_free(before);
}

static void commands_are_rolled_back(void **state) {
  char *before = sqldb_answer(*state, STORED, NULL);
  assert_runs(*state, "BEGIN; INSERT INTO notes(notes) VALUES('rebuild');"
                      "INSERT INTO notes(notes) VALUES('optimize'); ROLLBACK");
  assert_answer(*state, STORED, before);
  assert_runs(*state, "BEGIN; UPDATE docs SET body = 'x'; INSERT INTO docs_emb(docs_emb) "
                      "VALUES('refresh'); ROLLBACK");
  assert_answer(*state, "SELECT pending FROM bert_status WHERE name = 'docs_emb'", "0");
  sqlite3_free(before);
}

static void savepoints_nest(void **state) {
  assert_runs(*state, "SAVEPOINT a; INSERT INTO notes(body) VALUES('first');"
                      "SAVEPOINT b; INSERT INTO notes(body) VALUES('second');"
                      "UPDATE notes SET body = 'changed' WHERE rowid = 4; ROLLBACK TO b");
  assert_answer(*state, "SELECT group_concat(body) FROM notes", "time flies,a red apple,first");
  assert_answer(*state,
                "SELECT count(*) FROM notes WHERE notes MATCH 'changed' AND distance < "
                "1e-5",
                "0");
  assert_runs(*state, "INSERT INTO notes(body) VALUES('third'); RELEASE b; ROLLBACK TO a");
  assert_answer(*state, "SELECT count(*) FROM notes", "3");
  assert_runs(*state, "INSERT INTO notes(body) VALUES('fourth'); RELEASE a");
  assert_answer(*state, NEAREST("fourth"), "4");
  assert_answer(*state, "SELECT count(*) FROM notes_queue", "0");
}

/* MATCH embeds what is queued; taking that back must bring the queue back. */
static void rollback_to_after_a_match(void **state) {
  assert_runs(*state, "BEGIN; INSERT INTO notes(body) VALUES('first'); SAVEPOINT a");
  assert_answer(*state, NEAREST("first"), "4");
  assert_runs(*state, "ROLLBACK TO a");
  assert_answer(*state, NEAREST("first"), "4");
  assert_runs(*state, "ROLLBACK TO a; COMMIT");
  assert_answer(*state, "SELECT count(*), (SELECT count(*) FROM notes_queue) FROM notes_vectors",
                "3|0");
}

static void rows_have_their_vectors_at_commit(void **state) {
  assert_runs(*state, "BEGIN; INSERT INTO notes(body) VALUES('x'), ('y')");
  assert_answer(*state, "SELECT count(*) FROM notes_vectors", "2");
  assert_runs(*state, "COMMIT");
  assert_answer(*state, "SELECT count(*) FROM notes_vectors", "4");
  assert_answer(*state, "SELECT group_concat(length(embedding)) FROM notes", "128,128,128,128");
}

/* Whatever the table is called by then, and without a MATCH to help. */
static void a_renamed_table_has_its_vectors_at_commit(void **state) {
#define LEFT(name) "SELECT count(*), (SELECT count(*) FROM " name "_queue) FROM " name "_vectors"
  assert_runs(*state, "BEGIN; INSERT INTO notes(body) VALUES('x'); ALTER TABLE notes RENAME TO n;"
                      "COMMIT");
  assert_answer(*state, LEFT("n"), "3|0");
  assert_runs(*state,
              "BEGIN; INSERT INTO n(body) VALUES('y'); ALTER TABLE n RENAME TO m; INSERT INTO "
              "m(body) VALUES('z'); ALTER TABLE m RENAME TO notes; COMMIT");
  assert_answer(*state, LEFT("notes"), "5|0");
  assert_runs(*state, "BEGIN; INSERT INTO notes(body) VALUES('w'); SAVEPOINT s; ALTER TABLE notes "
                      "RENAME TO n; INSERT INTO n(body) VALUES('v'); ROLLBACK TO s; COMMIT");
  assert_answer(*state, LEFT("notes"), "6|0");
}

/* The model went away before COMMIT: an error, and the transaction is gone. */
static void a_commit_that_cannot_embed_takes_all_back(void **state) {
  assert_runs(*state, "BEGIN; INSERT INTO notes(body) VALUES('x'); CREATE TABLE more(x);"
                      "SELECT bert_unload('tiny')");
  char place[PATH_MAX];
  assert_non_null(realpath(TINY_MODEL, place));
  char *expected = sqlite3_mprintf("notes: it was made with the model tiny from %s", place);
  assert_error(*state, "COMMIT", expected);
  sqlite3_free(expected);
  assert_int_equal(sqlite3_get_autocommit(*state), 1);
  assert_answer(*state, "SELECT count(*) FROM notes", "3");
  assert_error(*state, "SELECT * FROM more", "no such table");
  assert_runs(*state, "SELECT bert_load('" TINY_MODEL "', 'tiny')");
  assert_runs(*state, "INSERT INTO notes(body) VALUES('x')");
}

static void a_table_made_in_a_transaction_goes_with_it(void **state) {
  assert_runs(*state, "BEGIN; CREATE VIRTUAL TABLE t USING bertsql(body);"
                      "INSERT INTO t(body) VALUES('x')");
  assert_answer(*state, "SELECT rowid FROM t WHERE t MATCH 'x' AND k = 3", "1");
  assert_runs(*state, "ROLLBACK");
  assert_tables(*state, "t", "(no rows)");
  assert_error(*state, "SELECT * FROM t", "no such table");
  assert_runs(*state, "SAVEPOINT s; CREATE VIRTUAL TABLE t USING bertsql(body);"
                      "INSERT INTO t(body) VALUES('x'); ROLLBACK TO s; RELEASE s");
  assert_tables(*state, "t", "(no rows)");
  assert_runs(*state, "BEGIN; CREATE VIRTUAL TABLE t USING bertsql(body);"
                      "INSERT INTO t(body) VALUES('x'); COMMIT");
  assert_sound(*state, "t");
  assert_runs(*state, "BEGIN; INSERT INTO t(body) VALUES('y'); DROP TABLE t; COMMIT");
  assert_tables(*state, "t", "(no rows)");
}

static void a_drop_is_rolled_back(void **state) {
  char *before = sqldb_answer(*state, STORED, NULL);
  assert_runs(*state, "BEGIN; INSERT INTO notes(body) VALUES('x'); DROP TABLE notes; ROLLBACK");
  assert_answer(*state, STORED, before);
  assert_runs(*state, "BEGIN; INSERT INTO notes(body) VALUES('x'); SAVEPOINT s; DROP TABLE notes;"
                      "ROLLBACK TO s");
  assert_answer(*state, NEAREST("x"), "4");
  assert_runs(*state, "COMMIT");
  sqlite3_free(before);
}

/* SQLite looks at the views last of all, when everything has its new name. */
static void a_rename_that_a_view_forbids(void **state) {
  assert_runs(*state, "CREATE VIEW near AS SELECT rowid FROM notes WHERE notes = 'x' AND k = 1;"
                      "BEGIN; INSERT INTO notes(body) VALUES('x')");
  assert_error(*state, "ALTER TABLE notes RENAME TO n", "error in view near after rename");
  assert_answer(*state, "SELECT * FROM near", "4");
  assert_runs(*state, "INSERT INTO notes(body) VALUES('y'); COMMIT");
  assert_answer(*state, "SELECT count(*), (SELECT count(*) FROM notes_queue) FROM notes_vectors",
                "4|0");
  assert_runs(*state, "DROP VIEW near; PRAGMA legacy_alter_table = 1;"
                      "ALTER TABLE notes RENAME TO n; ALTER TABLE n RENAME TO notes");
}

/* A query that was begun before goes on, or ends with SQLite's own error. */
static void a_query_meets_a_rollback(void **state) {
  static const char *const rollbacks[] = {
      "BEGIN; INSERT INTO notes(body) VALUES('x'); ROLLBACK",
      "SAVEPOINT s; UPDATE notes SET body = 'x'; ROLLBACK TO s; RELEASE s",
      "BEGIN; INSERT INTO notes(notes) VALUES('rebuild'); ROLLBACK",
      "BEGIN; CREATE TABLE more(x); DELETE FROM notes; ROLLBACK"};
  static const char *const queries[] = {
      "SELECT rowid, body, embedding FROM notes",
      "SELECT rowid, body, embedding FROM notes WHERE notes = 'x'"};
  for (size_t i = 0; i < sizeof rollbacks / sizeof rollbacks[0] * 2; i++) {
    sqlite3_stmt *cursor = sqldb_prepare(*state, queries[i % 2]);
    int rc = sqlite3_step(cursor);
    assert_int_equal(rc, SQLITE_ROW);
    assert_runs(*state, rollbacks[i / 2]);
    while (rc == SQLITE_ROW) rc = sqlite3_step(cursor);
    assert_true(rc == SQLITE_DONE || (rc & 0xff) == SQLITE_ABORT);
    sqlite3_finalize(cursor);
    assert_sound(*state, "notes");
  }
}

/* ---- Statements that fail half way ------------------------------------------ */

static void a_failed_insert_of_many_leaves_nothing(void **state) {
  char *before = sqldb_answer(*state, STORED, NULL);
  assert_error(*state, "INSERT INTO notes(rowid, body) VALUES(10, 'a'), (11, 'b'), (2, 'c')",
               "constraint failed");
  assert_answer(*state, STORED, before);
  assert_runs(*state, "BEGIN; INSERT INTO notes(rowid, body) VALUES(9, 'kept')");
  assert_error(*state, "INSERT INTO notes(rowid, body) VALUES(10, 'a'), (11, 'b'), (2, 'c')",
               "constraint failed");
  assert_error(*state,
               "INSERT INTO notes(rowid, body) SELECT value, 'x' || abs(CASE value WHEN 12 "
               "THEN -9223372036854775808 ELSE 1 END) FROM json_each('[10, 11, 12]')",
               "integer overflow");
  assert_error(*state, "UPDATE notes SET rowid = 5 - rowid WHERE rowid > 1", "constraint failed");
  assert_answer(*state, "SELECT group_concat(rowid) FROM notes", "1,2,3,9");
  assert_runs(*state, "COMMIT");
  assert_answer(*state, NEAREST("kept"), "9");
  assert_answer(*state, "SELECT count(*) FROM notes_vectors", "3");
  sqlite3_free(before);
}

static void wrong_writes_are_errors(void **state) {
  char *before = sqldb_answer(*state, STORED, NULL);
  assert_error(*state, "INSERT INTO notes(rowid, body) VALUES('x', 'y')", "");
  assert_error(*state, "INSERT INTO notes(body, embedding) VALUES('x', x'00')", "embedding");
  assert_error(*state, "UPDATE notes SET distance = 1", "distance");
  assert_error(*state, "INSERT INTO notes(notes) VALUES('refersh')", "refresh");
  assert_error(*state, "INSERT INTO docs_emb(body) VALUES('x')", "docs");
  assert_error(*state, "UPDATE docs_emb SET body = 'x'", "docs");
  assert_error(*state, "DELETE FROM docs_emb", "docs");
  assert_answer(*state, STORED, before);
  sqlite3_free(before);
}

/* ---- Conflict clauses -------------------------------------------------------- */

#define CLASH(clause) "INSERT " clause " INTO notes(rowid, body) VALUES(8, 'a'), (2, 'b'), (9, 'c')"

static void insert_or_ignore(void **state) {
  assert_runs(*state, CLASH("OR IGNORE"));
  assert_answer(*state, "SELECT group_concat(rowid || body) FROM notes WHERE body NOT NULL",
                "1time flies,2a red apple,8a,9c");
}

static void insert_or_replace(void **state) {
  assert_runs(*state, CLASH("OR REPLACE") "; REPLACE INTO notes(rowid, body) VALUES(3, 'd')");
  assert_answer(*state, "SELECT group_concat(rowid || body) FROM notes", "1time flies,2b,3d,8a,9c");
  assert_answer(*state, NEAREST("b"), "2");
  assert_answer(*state, "SELECT count(*) FROM notes_vectors", "5");
}

static void insert_or_fail(void **state) {
  assert_error(*state, CLASH("OR FAIL"), "constraint failed");
  assert_answer(*state, "SELECT group_concat(rowid) FROM notes", "1,2,3,8");
  assert_answer(*state, NEAREST("a"), "8");
}

static void insert_or_abort(void **state) {
  assert_runs(*state, "BEGIN; INSERT INTO notes(rowid, body) VALUES(7, 'kept')");
  assert_error(*state, CLASH("OR ABORT"), "constraint failed");
  assert_runs(*state, "COMMIT");
  assert_answer(*state, "SELECT group_concat(rowid) FROM notes", "1,2,3,7");
}

static void insert_or_rollback(void **state) {
  assert_runs(*state, "BEGIN; INSERT INTO notes(rowid, body) VALUES(7, 'lost')");
  assert_error(*state, CLASH("OR ROLLBACK"), "constraint failed");
  assert_int_equal(sqlite3_get_autocommit(*state), 1);
  assert_answer(*state, "SELECT group_concat(rowid) FROM notes", "1,2,3");
}

static void update_or_replace(void **state) {
  assert_error(*state, "UPDATE notes SET rowid = 2 WHERE rowid = 1", "constraint failed");
  assert_runs(*state, "UPDATE OR IGNORE notes SET rowid = 2 WHERE rowid = 1");
  assert_answer(*state, "SELECT group_concat(rowid) FROM notes", "1,2,3");
  assert_runs(*state, "UPDATE OR REPLACE notes SET rowid = 2 WHERE rowid = 1");
  assert_answer(*state, "SELECT group_concat(rowid || coalesce(body, '')) FROM notes",
                "2time flies,3");
  assert_answer(*state, NEAREST("a red apple"), "2");
  assert_runs(*state, "UPDATE notes SET rowid = 7, body = 'moved' WHERE rowid = 2");
  assert_answer(*state, NEAREST("moved"), "7");
  assert_answer(*state, "SELECT count(*) FROM notes_vectors", "1");
}

/* SQLite has no UPSERT for virtual tables; the table says nothing of its own. */
static void upsert_is_refused_by_sqlite(void **state) {
  assert_error(*state,
               "INSERT INTO notes(rowid, body) VALUES(1, 'x') ON CONFLICT DO UPDATE SET body = 'y'",
               "UPSERT not implemented for virtual table \"notes\"");
  assert_runs(*state, "INSERT INTO docs VALUES(1, 'x', 'upserted', 1) ON CONFLICT(id) DO UPDATE "
                      "SET body = excluded.body; INSERT INTO docs_emb(docs_emb) VALUES('refresh')");
  assert_answer(*state, "SELECT rowid FROM docs_emb WHERE docs_emb MATCH 'upserted' AND k = 1",
                "1");
}

/* ---- What SQLite counts ------------------------------------------------------- */

static void rowid_and_changes_are_those_of_the_statement(void **state) {
  sqlite3 *db = *state;
  assert_runs(db, "CREATE TABLE plain(x); INSERT INTO plain(rowid) VALUES(1000);"
                  "INSERT INTO notes(rowid, body) VALUES(77, 'x')");
  assert_answer(db, "SELECT last_insert_rowid(), changes()", "77|1");
  assert_runs(db, "BEGIN; INSERT INTO notes(body) VALUES('y'), ('z'), (NULL)");
  assert_answer(db, "SELECT last_insert_rowid(), changes()", "80|3");
  assert_runs(db, "COMMIT");
  assert_answer(db, "SELECT last_insert_rowid()", "80");
  assert_runs(db, "INSERT INTO plain(rowid) VALUES(1001);"
                  "SELECT rowid FROM notes WHERE notes MATCH 'x' AND k = 1");
  assert_answer(db, "SELECT last_insert_rowid(), changes()", "1001|1");
  assert_runs(db, "BEGIN; INSERT INTO notes(body) VALUES('w'); INSERT INTO plain(rowid) VALUES(5);"
                  "COMMIT");
  assert_answer(db, "SELECT last_insert_rowid()", "5");
  assert_runs(db, "UPDATE notes SET body = 'v' WHERE rowid > 78");
  assert_answer(db, "SELECT last_insert_rowid(), changes()", "5|3");
  assert_runs(db, "DELETE FROM notes WHERE rowid > 78");
  assert_answer(db, "SELECT last_insert_rowid(), changes()", "5|3");
}

static void a_command_is_no_inserted_row(void **state) {
  sqlite3 *db = *state;
  static const char *const commands[] = {"refresh", "rebuild", "optimize", "integrity-check"};
  assert_runs(db, "INSERT INTO notes(rowid, body) VALUES(77, 'x'); UPDATE docs SET body = 'other'");
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    char *sql = sqlite3_mprintf("INSERT INTO docs_emb(docs_emb) VALUES(%Q)", commands[i]);
    assert_runs(db, sql);
    sqlite3_free(sql);
    assert_answer(db, "SELECT last_insert_rowid()", "77");
  }
}

/* SQLite's own limits: no RETURNING of UPDATE and DELETE, and no rowid in that of
** INSERT. */
static void returning_is_what_sqlite_makes_it(void **state) {
  assert_answer(*state, "INSERT INTO notes(body) VALUES('x') RETURNING body", "x");
  assert_error(*state, "UPDATE notes SET body = 'y' RETURNING body", "UPDATE RETURNING is not");
  assert_error(*state, "DELETE FROM notes RETURNING body", "DELETE RETURNING is not");
}

/* SQLite begins no savepoint for a statement that writes one row, and that a MATCH
** refreshes it does not know. What fails in the middle leaves nothing all the same. */
static void a_failed_statement_leaves_nothing_in_a_transaction(void **state) {
  static const char *const statements[] = {
      "INSERT INTO d(d) VALUES('refresh')",
      "INSERT OR FAIL INTO d(d) VALUES('refresh')",
      "INSERT INTO d(d) VALUES('rebuild')",
      "SELECT rowid FROM d WHERE d MATCH 'x'",
      "INSERT INTO other VALUES((SELECT rowid FROM d WHERE d MATCH 'x' AND k = 1))",
      "INSERT INTO other SELECT rowid FROM d WHERE d MATCH 'x'",
      "DELETE FROM other WHERE a = (SELECT rowid FROM d WHERE d MATCH 'x' AND k = 1)",
      "INSERT INTO n(body) VALUES('stop')",
      "UPDATE n SET body = 'stop' WHERE rowid = 1",
      "UPDATE n SET rowid = 7 WHERE rowid = 1",
      "DELETE FROM n WHERE rowid = 2"};
  static const char stored[] =
      "SELECT (SELECT count(*) FROM d_rows), (SELECT count(*) FROM d_vectors), (SELECT count(*) "
      "FROM n_content), (SELECT count(*) FROM n_queue), (SELECT sum(id) FROM n_vectors), (SELECT "
      "group_concat(c0) FROM n_content), (SELECT count(*) FROM other)";
  sqlite3 *db = tabledb_open(NULL);
  assert_runs(db,
              "CREATE TABLE docs(id INTEGER PRIMARY KEY, body); CREATE TABLE other(a);"
              "INSERT INTO docs(body) VALUES('a'), ('b'), ('c'); INSERT INTO other VALUES(1);"
              "CREATE VIRTUAL TABLE d USING bertsql(body, content='docs', auto=1);"
              "CREATE VIRTUAL TABLE n USING bertsql(body);"
              "INSERT INTO n(body) VALUES('one'), ('two');"
              "CREATE TRIGGER s1 BEFORE INSERT ON d_rows WHEN new.row = 3 BEGIN SELECT "
              "  RAISE(ABORT, 'stopped'); END;"
              "CREATE TRIGGER s2 BEFORE INSERT ON n_queue BEGIN SELECT RAISE(ABORT, 'stopped'); "
              "  END;"
              "CREATE TRIGGER s3 BEFORE DELETE ON n_rows BEGIN SELECT RAISE(ABORT, 'stopped'); "
              "  END; BEGIN; INSERT INTO docs(body) VALUES('d')");
  for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
    assert_error(db, statements[i], "stopped");
    assert_answer(db, stored, "0|0|2|0|3|one,two|1");
    assert_int_equal(sqlite3_get_autocommit(db), 0);
  }
  assert_runs(db, "COMMIT");
  assert_answer(db, stored, "0|0|2|0|3|one,two|1");
  assert_runs(db,
              "DROP TRIGGER s1; DROP TRIGGER s2; DROP TRIGGER s3;"
              "INSERT INTO d(d) VALUES('refresh'); UPDATE n SET body = 'three' WHERE rowid = 1");
  assert_finds_itself(db, "d", "docs", "id", "body");
  assert_sound(db, "d");
  assert_sound(db, "n");
  assert_error(db, "SELECT whole_of_bertsql(1)", "is for bertsql's own statements");
  sqldb_close(db);
}

int main(void) {
#define WITH_TABLES(f) cmocka_unit_test_setup_teardown(f, open_tables, close_tables)
  const struct CMUnitTest tests[] = {
      WITH_TABLES(rollback_takes_everything_back),
      WITH_TABLES(commands_are_rolled_back),
      WITH_TABLES(savepoints_nest),
      WITH_TABLES(rollback_to_after_a_match),
      WITH_TABLES(rows_have_their_vectors_at_commit),
      WITH_TABLES(a_renamed_table_has_its_vectors_at_commit),
      WITH_TABLES(a_commit_that_cannot_embed_takes_all_back),
      WITH_TABLES(a_table_made_in_a_transaction_goes_with_it),
      WITH_TABLES(a_drop_is_rolled_back),
      WITH_TABLES(a_rename_that_a_view_forbids),
      WITH_TABLES(a_query_meets_a_rollback),
      WITH_TABLES(a_failed_insert_of_many_leaves_nothing),
      cmocka_unit_test(a_failed_statement_leaves_nothing_in_a_transaction),
      WITH_TABLES(wrong_writes_are_errors),
      WITH_TABLES(insert_or_ignore),
      WITH_TABLES(insert_or_replace),
      WITH_TABLES(insert_or_fail),
      WITH_TABLES(insert_or_abort),
      WITH_TABLES(insert_or_rollback),
      WITH_TABLES(update_or_replace),
      WITH_TABLES(upsert_is_refused_by_sqlite),
      WITH_TABLES(rowid_and_changes_are_those_of_the_statement),
      WITH_TABLES(a_command_is_no_inserted_row),
      WITH_TABLES(returning_is_what_sqlite_makes_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
