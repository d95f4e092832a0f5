/*
** test_ext_vtab_write.c: INSERT, UPDATE and DELETE of a virtual table that keeps
** its texts, and when their vectors are made.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "scratch.h"
#include "sqldb.h"

#define SMALL "tests/golden/families/bert-mean"
#define CHECK "INSERT INTO notes(notes) VALUES('integrity-check');"
#define PENDING "SELECT pending FROM bert_status WHERE name = 'notes'"
#define ROWS "SELECT group_concat(row || ':' || first || '+' || count, ' ') FROM notes_rows"
#define TEXTS "SELECT group_concat(rowid || body || ifnull(tag, ''), ' ') FROM notes"
#define FRESH                                                                                      \
  "SELECT count(*), min(bert_l2(vector, bert_embed(c0)) < 1e-6) FROM notes_vectors JOIN "          \
  "notes_content ON notes_content.id = row"

static int open_notes(void **state) {
  sqlite3 *db = sqldb_open(NULL);
  assert_runs(
      db, "SELECT bert_load('" SMALL "', 'small'); CREATE VIRTUAL TABLE notes USING bertsql(body, "
          "tag UNINDEXED); INSERT INTO notes(body, tag) VALUES('a', 'x'), ('b', NULL), ('c', 'z')");
  *state = db;
  return 0;
}

static int close_notes(void **state) {
  sqldb_close(*state);
  return 0;
}

/* ---- INSERT --------------------------------------------------------------- */

static void test_insert(void **state) {
  sqlite3 *db = *state;
  assert_rows(db, TEXTS, "1ax 2b 3cz");
  assert_rows(db, ROWS, "1:1+1 2:2+1 3:3+1");
  assert_rows(db, "SELECT last_insert_rowid()", "3");
  assert_runs(db, CHECK
              "INSERT INTO notes(rowid, body) VALUES(-5, 'minus'); INSERT INTO notes VALUES(NULL, "
              "'only'), ('', 'empty'), (12, 12), (x'61', x'00')");
  assert_rows(db, "SELECT last_insert_rowid()", "7");
  assert_rows(db, "SELECT row, count, hash IS NULL FROM notes_rows WHERE row NOT IN (1, 2, 3)",
              "-5|1|0 4|0|1 5|1|0 6|1|0 7|1|0");
  assert_rows(db, "SELECT typeof(c0) FROM notes_content",
              "text text text text null text integer blob");
  assert_rows(db, PENDING, "0");
  assert_rows(db, "SELECT count(*) FROM notes_queue", "0");
  assert_rows(db, FRESH, "7|1");
  assert_runs(db, CHECK);
}

static void test_vectors_are_made_at_commit(void **state) {
  sqlite3 *db = *state;
  assert_runs(
      db, "BEGIN; INSERT INTO notes(body) VALUES('d'), ('e'); UPDATE notes SET body = 'aa' WHERE "
          "rowid = 1;");
  assert_rows(db, "SELECT count(*) FROM notes_vectors", "3");
  assert_rows(db, PENDING, "3");
  assert_runs(db, CHECK "DELETE FROM notes WHERE rowid IN (3, 4); COMMIT;" CHECK);
  assert_rows(db, PENDING, "0");
  assert_rows(db, ROWS, "1:3+1 2:2+1 5:4+1");
  assert_rows(db, "SELECT last_insert_rowid()", "5");
  assert_rows(db, FRESH, "3|1");
}

static void test_refresh_inside_a_transaction(void **state) {
  sqlite3 *db = *state;
  assert_runs(
      db, "BEGIN; INSERT INTO notes(body) VALUES('d'), ('e'), ('f'); INSERT INTO notes(notes, k) "
          "VALUES('refresh', 2)");
  assert_rows(db, PENDING, "1");
  assert_rows(db, "SELECT row FROM notes_queue", "6");
  assert_runs(db, CHECK "INSERT INTO notes(notes) VALUES('refresh')");
  assert_rows(db, PENDING, "0");
  assert_runs(db, "COMMIT;" CHECK);
  assert_rows(db, "SELECT last_insert_rowid()", "6");
  assert_runs(db, "INSERT INTO notes(notes) VALUES('rebuild');" CHECK);
  assert_rows(db, ROWS, "1:1+1 2:2+1 3:3+1 4:4+1 5:5+1 6:6+1");
}

static void test_rollback(void **state) {
  sqlite3 *db = *state;
  assert_runs(db, "BEGIN; INSERT INTO notes(body) VALUES('d'); DELETE FROM notes WHERE rowid = 1; "
                  "ROLLBACK;" CHECK);
  assert_rows(db, TEXTS, "1ax 2b 3cz");
  assert_rows(db, ROWS, "1:1+1 2:2+1 3:3+1");
  assert_runs(db,
              "BEGIN; INSERT INTO notes(body) VALUES('d'); SAVEPOINT s; INSERT INTO notes(body) "
              "VALUES('e'); UPDATE notes SET body = 'bb' WHERE rowid = 2; ROLLBACK TO s;" CHECK
              "INSERT INTO notes(body) VALUES('f'); RELEASE s; COMMIT;" CHECK);
  assert_rows(db, TEXTS, "1ax 2b 3cz 4d 5f");
  assert_rows(db, FRESH, "5|1");
  assert_rows(db, PENDING, "0");
}

/* ---- Conflicts ------------------------------------------------------------ */

static void test_conflicts_of_insert(void **state) {
  sqlite3 *db = *state;
  int rc;
  sqlite3_free(sqldb_answer(db, "INSERT INTO notes(rowid, body) VALUES(2, 'new')", &rc));
  assert_int_equal(rc, SQLITE_CONSTRAINT);
  assert_error(db, "INSERT INTO notes(rowid, body) VALUES(2, 'new')",
               "UNIQUE constraint failed: notes.rowid");
  assert_runs(db, "INSERT OR IGNORE INTO notes(rowid, body) VALUES(2, 'new')");
  assert_rows(db, "SELECT last_insert_rowid()", "3");
  assert_rows(db, ROWS, "1:1+1 2:2+1 3:3+1");
  /* ABORT takes the whole statement back, FAIL keeps what came before. */
  assert_error(db, "INSERT INTO notes(rowid, body) VALUES(8, 'h'), (2, 'new')", "UNIQUE");
  assert_rows(db, TEXTS, "1ax 2b 3cz");
  assert_error(db, "INSERT OR FAIL INTO notes(rowid, body) VALUES(8, 'h'), (2, 'new')", "UNIQUE");
  assert_rows(db, TEXTS, "1ax 2b 3cz 8h");
  assert_rows(db, PENDING, "0");
  assert_runs(
      db, CHECK
      "INSERT OR REPLACE INTO notes(rowid, body) VALUES(2, 'new'), (9, 'i'), (9, 'j');" CHECK);
  assert_rows(db, TEXTS, "1ax 2new 3cz 8h 9j");
  assert_rows(db, FRESH, "5|1");
  assert_runs(db, "BEGIN; INSERT INTO notes(body) VALUES('k')");
  assert_error(db, "INSERT OR ROLLBACK INTO notes(rowid, body) VALUES(2, 'x')", "UNIQUE");
  assert_int_equal(sqlite3_get_autocommit(db), 1);
  assert_rows(db, TEXTS, "1ax 2new 3cz 8h 9j");
  assert_error(db, "INSERT INTO notes(rowid, body) VALUES('x', 'x')", "mismatch");
  assert_runs(db, "INSERT INTO notes(rowid, body) VALUES('10', 'k'), (11.0, 'l');" CHECK);
}

static void test_conflicts_of_update(void **state) {
  sqlite3 *db = *state;
  assert_error(db, "UPDATE notes SET rowid = 2 WHERE rowid = 1",
               "UNIQUE constraint failed: notes.rowid");
  assert_runs(db, "UPDATE OR IGNORE notes SET rowid = 2");
  assert_rows(db, TEXTS, "1ax 2b 3cz");
  assert_runs(db, CHECK "UPDATE OR REPLACE notes SET rowid = 2 WHERE rowid = 1;" CHECK);
  assert_rows(db, TEXTS, "2ax 3cz");
  assert_rows(db, FRESH, "2|1");
  assert_error(db, "UPDATE notes SET rowid = 'x' WHERE rowid = 2", "whole number");
  assert_error(db, "UPDATE notes SET rowid = NULL WHERE rowid = 2", "whole number");
  assert_runs(db, "UPDATE notes SET rowid = '20' WHERE rowid = 2; UPDATE notes SET rowid = 30.0 "
                  "WHERE rowid = 3;" CHECK);
  assert_rows(db, TEXTS, "20ax 30cz");
  assert_runs(db, "UPDATE OR REPLACE notes SET rowid = 7;" CHECK);
  assert_rows(db, "SELECT count(*), min(rowid) FROM notes", "1|7");
  assert_rows(db, FRESH, "1|1");
}

/* ---- UPDATE and DELETE ---------------------------------------------------- */

static void test_update(void **state) {
  sqlite3 *db = *state;
  assert_runs(db, "UPDATE notes SET tag = 'w' WHERE rowid < 3; UPDATE notes SET body = body;");
  assert_rows(db, ROWS, "1:1+1 2:2+1 3:3+1");
  assert_rows(db, TEXTS, "1aw 2bw 3cz");
  assert_runs(
      db,
      "UPDATE notes SET body = NULL WHERE rowid = 1; UPDATE notes SET body = 'bb' WHERE rowid = "
      "2; UPDATE notes SET rowid = 9, tag = NULL WHERE rowid = 3;" CHECK);
  assert_rows(db, "SELECT row, count, hash IS NULL FROM notes_rows", "1|0|1 2|1|0 9|1|0");
  assert_rows(db, "SELECT last_insert_rowid(), changes()", "3|1");
  assert_runs(db, "UPDATE notes SET body = 'back' WHERE body IS NULL;" CHECK);
  assert_rows(db, FRESH, "3|1");
  assert_runs(db, "CREATE TABLE new(id INTEGER, t); INSERT INTO new VALUES(2, 'from'), (77, 'x'); "
                  "UPDATE notes SET "
                  "body = new.t FROM new WHERE new.id = notes.rowid;" CHECK);
  assert_rows(db, TEXTS, "1backw 2fromw 9c");
  assert_rows(db, FRESH, "3|1");
}

static void test_delete(void **state) {
  sqlite3 *db = *state;
  assert_runs(db, "DELETE FROM notes WHERE rowid = 2;" CHECK);
  assert_rows(db, ROWS, "1:1+1 3:3+1");
  assert_runs(db, "DELETE FROM notes;" CHECK "DELETE FROM notes;");
  assert_rows(db, "SELECT count(*) FROM notes_vectors", "0");
  assert_rows(db, "SELECT count(*) FROM notes_rows", "0");
  assert_runs(db, "INSERT INTO notes(body) VALUES('new');" CHECK);
  assert_rows(db, TEXTS, "1new");
}

/* ---- Wrong use, and the model --------------------------------------------- */

static void test_hidden_columns_cannot_be_set(void **state) {
  sqlite3 *db = *state;
  assert_error(db, "INSERT INTO notes(body, embedding) VALUES('x', x'00')",
               "column embedding cannot be set");
  assert_error(db, "INSERT INTO notes(body, k) VALUES('x', 3)", "goes with a command");
  assert_error(db, "INSERT INTO notes(body, status) VALUES('x', 3)", "column status");
  assert_error(db, "INSERT INTO notes(notes) VALUES('hello')", "no command 'hello'");
  assert_error(db, "UPDATE notes SET distance = 1", "column distance cannot be set");
  assert_error(db, "UPDATE notes SET notes = 'refresh'", "column notes is for commands");
  assert_runs(db, "INSERT INTO notes(body, k, status) VALUES('d', NULL, NULL); UPDATE notes SET k "
                  "= NULL;" CHECK);
  assert_rows(db, TEXTS, "1ax 2b 3cz 4d");
}

static void test_model_is_needed_at_insert(void **state) {
  sqlite3 *db = *state;
  assert_runs(db,
              "SELECT bert_unload('small'); SELECT bert_load('models/all-MiniLM-L6-v2', 'other')");
  assert_error(db, "INSERT INTO notes(body) VALUES('d')", "it was made with the model small");
  assert_error(db, "UPDATE notes SET body = 'd' WHERE rowid = 1",
               "it was made with the model small");
  assert_error(db, "UPDATE notes SET rowid = 8 WHERE rowid = 1",
               "it was made with the model small");
  assert_runs(
      db, "UPDATE notes SET tag = 'w'; DELETE FROM notes WHERE rowid = 3; INSERT INTO notes(tag) "
          "VALUES('no text'); UPDATE notes SET body = NULL WHERE rowid = 2;" CHECK);
  assert_rows(db, TEXTS, "1aw");
  assert_rows(db, ROWS, "1:1+1 2:0+0 3:0+0");
  /* A model that goes away between INSERT and COMMIT. */
  assert_runs(db, "SELECT bert_load('" SMALL
                  "', 'small'); BEGIN; INSERT INTO notes(body) VALUES('d'); SELECT "
                  "bert_unload('small');");
  assert_error(db, "COMMIT", "small");
  sqlite3_free(sqldb_answer(db, "ROLLBACK", NULL));
  assert_runs(db, "SELECT bert_load('" SMALL "', 'small');" CHECK);
  assert_rows(db, PENDING, "0");
}

static void test_attached_and_reopened(void **state) {
  char *directory = scratch_copy(SMALL "/1_Pooling");
  char sql[1200], path[600];
  sqlite3 *db = *state;
  snprintf(path, sizeof path, "%s/t.db", directory);
  snprintf(sql, sizeof sql,
           "ATTACH '%s' AS far; CREATE VIRTUAL TABLE far.memo USING bertsql(body); INSERT INTO "
           "memo(body) VALUES('one'), ('two'); BEGIN; INSERT INTO notes(body) VALUES('d'); "
           "INSERT INTO memo(body) VALUES('three'); COMMIT; DETACH far;" CHECK,
           path);
  assert_runs(db, sql);
  assert_rows(db, PENDING, "0");
  sqlite3 *other = sqldb_open(path);
  assert_rows(other, "SELECT count(*) FROM memo_vectors", "3");
  assert_runs(other,
              "INSERT INTO memo(memo) VALUES('integrity-check'); DELETE FROM memo WHERE rowid = 1; "
              "SELECT bert_load('" SMALL
              "', 'any'); INSERT INTO memo(body) VALUES('four'); INSERT INTO "
              "memo(memo) VALUES('integrity-check')");
  assert_rows(other, "SELECT group_concat(row) FROM memo_vectors", "2,3,4");
  sqldb_close(other);
  scratch_free(directory);
}

#define NOTES_TEST(f) cmocka_unit_test_setup_teardown(f, open_notes, close_notes)

int main(void) {
  const struct CMUnitTest tests[] = {
      NOTES_TEST(test_insert),
      NOTES_TEST(test_vectors_are_made_at_commit),
      NOTES_TEST(test_refresh_inside_a_transaction),
      NOTES_TEST(test_rollback),
      NOTES_TEST(test_conflicts_of_insert),
      NOTES_TEST(test_conflicts_of_update),
      NOTES_TEST(test_update),
      NOTES_TEST(test_delete),
      NOTES_TEST(test_hidden_columns_cannot_be_set),
      NOTES_TEST(test_model_is_needed_at_insert),
      NOTES_TEST(test_attached_and_reopened),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
