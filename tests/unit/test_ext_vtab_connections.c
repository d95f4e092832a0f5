/*
** test_ext_vtab_connections.c: several connections to one database: WAL, writers
** that meet, read-only ones, and those without bertsql.
*/
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tabledb.h"

#define PENDING "SELECT pending FROM bert_status WHERE name = 'docs_emb'"
#define REFRESH "INSERT INTO docs_emb(docs_emb) VALUES('refresh')"
#define NEAREST(text) "SELECT rowid FROM docs_emb WHERE docs_emb MATCH '" text "' AND k = 1"

/* A database with docs, docs_emb with triggers, and notes. */
static sqlite3 *make_database(const char *path, const char *journal) {
  sqlite3 *db = tabledb_open(path);
  char *sql = sqlite3_mprintf("PRAGMA journal_mode = %s", journal);
  assert_runs(db, sql);
  sqlite3_free(sql);
  tabledb_make_docs(db, ", triggers=1");
  assert_runs(db, "CREATE VIRTUAL TABLE notes USING bertsql(body, model='tiny');"
                  "INSERT INTO notes(body) VALUES('time flies'), ('a red apple')");
  return db;
}

static void close_both(sqlite3 *a, sqlite3 *b) {
  assert_sound(a, "docs_emb");
  assert_sound(b, "notes");
  assert_finds_itself(b, "docs_emb", "docs", "id", "body");
  sqldb_close(a);
  sqldb_close(b);
}

/* ---- Readers and a writer ------------------------------------------------------ */

static void what_one_writes_the_other_sees(void **state) {
  static const char *const journals[] = {"delete", "wal"};
  for (size_t i = 0; i < 2; i++) {
    const char *path = tabledb_beside(state, journals[i]);
    sqlite3 *a = make_database(path, journals[i]), *b = tabledb_open(path);
    assert_answer(b, NEAREST("a red apple"), "4");
    assert_runs(a, "UPDATE docs SET body = 'a blue pear' WHERE id = 2");
    assert_answer(b, PENDING, "1");
    assert_runs(b, REFRESH);
    assert_answer(a, NEAREST("a blue pear"), "2");
    assert_answer(a, PENDING, "0");
    assert_runs(a, "INSERT INTO notes(body) VALUES('third'); INSERT INTO docs_emb(docs_emb) "
                   "VALUES('optimize'); DELETE FROM docs WHERE id = 1; " REFRESH);
    assert_answer(b, "SELECT rowid FROM notes WHERE notes MATCH 'third' AND k = 1", "3");
    assert_answer(b, "SELECT count(*) FROM docs_emb WHERE docs_emb MATCH 'x'", "2");
    assert_runs(b, "INSERT INTO docs_emb(docs_emb) VALUES('rebuild');"
                   "ALTER TABLE notes RENAME TO n; ALTER TABLE n RENAME TO notes");
    assert_answer(a, "SELECT rowid FROM notes WHERE notes MATCH 'third' AND k = 1", "3");
    assert_answer(a, NEAREST("a blue pear"), "2");
    close_both(a, b);
  }
}

/* In WAL a reader sees the table as it was when it began, whatever is refreshed. */
static void wal_readers_see_their_snapshot(void **state) {
  sqlite3 *writer = make_database(*state, "wal"), *reader = tabledb_open(*state);
  assert_runs(reader, "BEGIN");
  assert_answer(reader, NEAREST("a red apple"), "4");
  sqlite3_stmt *cursor =
      sqldb_prepare(reader, "SELECT rowid FROM docs_emb WHERE docs_emb MATCH 'x'");
  assert_int_equal(sqlite3_step(cursor), SQLITE_ROW);
  assert_runs(writer, "UPDATE docs SET body = 'new ' || id; DELETE FROM docs WHERE id = 4; " REFRESH
                      "; INSERT INTO docs_emb(docs_emb) VALUES('optimize')");
  assert_int_equal(sqlite3_step(cursor), SQLITE_ROW);
  assert_int_equal(sqlite3_step(cursor), SQLITE_ROW);
  assert_int_equal(sqlite3_step(cursor), SQLITE_DONE);
  sqlite3_finalize(cursor);
  assert_answer(reader, NEAREST("a red apple"), "4");
  assert_answer(reader, PENDING, "0");
  assert_answer(reader, "SELECT count(*) FROM docs_emb WHERE docs_emb MATCH 'x'", "3");
  assert_error(reader, REFRESH "; UPDATE docs SET body = 'x'", "locked");
  assert_runs(reader, "COMMIT");
  assert_answer(reader, NEAREST("new 3"), "3");
  assert_answer(reader, "SELECT count(*) FROM docs_emb WHERE docs_emb MATCH 'x'", "3");
  close_both(writer, reader);
}

/* A reader that has blocks of an older state must not use them for a newer. */
static void a_reader_keeps_nothing_stale(void **state) {
  sqlite3 *writer = make_database(*state, "wal"), *reader = tabledb_open(*state);
  assert_runs(writer, "WITH n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 1400) "
                      "INSERT INTO docs(id, body) SELECT i, 'w' || i FROM n; " REFRESH
                      "; INSERT INTO docs_emb(docs_emb) VALUES('optimize')");
  assert_answer(reader, NEAREST("w700"), "700");
  for (int i = 0; i < 3; i++) {
    assert_runs(writer,
                "UPDATE docs SET body = body || 'x' WHERE id BETWEEN 690 AND 710; " REFRESH);
    assert_runs(writer, i == 1 ? "INSERT INTO docs_emb(docs_emb) VALUES('optimize')" : "SELECT 1");
    assert_answer(reader,
                  "SELECT count(*) FROM docs_emb WHERE docs_emb MATCH (SELECT body FROM docs "
                  "WHERE id = 700) AND distance < 1e-5 AND rowid = 700",
                  "1");
    assert_runs(writer, "BEGIN; INSERT INTO docs_emb(docs_emb) VALUES('rebuild'); ROLLBACK");
  }
  sqldb_close(writer);
  sqldb_close(reader);
}

/* ---- Two writers ------------------------------------------------------------------- */

static void a_busy_database_is_an_error(void **state) {
  static const char *const writes[] = {REFRESH,
                                       "INSERT INTO docs_emb(docs_emb) VALUES('rebuild')",
                                       "INSERT INTO docs_emb(docs_emb) VALUES('optimize')",
                                       "INSERT INTO notes(body) VALUES('lost')",
                                       "DELETE FROM notes",
                                       "DROP TABLE notes",
                                       "ALTER TABLE notes RENAME TO n",
                                       "CREATE VIRTUAL TABLE more USING bertsql(body)"};
  sqlite3 *a = make_database(*state, "wal"), *b = tabledb_open(*state);
  assert_runs(a, "BEGIN; UPDATE docs SET body = 'changed' WHERE id = 1; " REFRESH
                 "; INSERT INTO notes(body) VALUES('mine')");
  for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
    int rc;
    sqlite3_free(sqldb_answer(b, writes[i], &rc));
    if ((rc & 0xff) != SQLITE_BUSY) fail_msg("%s: %d, %s", writes[i], rc, sqlite3_errmsg(b));
    assert_answer(b, NEAREST("a red apple"), "4");
  }
  assert_runs(a, "COMMIT");
  for (size_t i = 0; i < 4; i++) assert_runs(b, writes[i]);
  assert_answer(a, "SELECT group_concat(body) FROM notes", "time flies,a red apple,mine,lost");
  assert_answer(b, NEAREST("changed"), "1");
  close_both(a, b);
}

/* COMMIT meets a reader (no WAL): busy, the transaction stays, and can be ended. */
static void a_busy_commit_can_be_tried_again(void **state) {
  sqlite3 *a = make_database(*state, "delete"), *b = tabledb_open(*state);
  sqlite3_stmt *cursor = sqldb_prepare(b, "SELECT body FROM docs");
  int rc;
  assert_int_equal(sqlite3_step(cursor), SQLITE_ROW);
  assert_runs(a,
              "BEGIN; INSERT INTO notes(body) VALUES('waits'); UPDATE docs SET body = 'waits too' "
              "WHERE id = 1; " REFRESH);
  sqlite3_free(sqldb_answer(a, "COMMIT", &rc));
  assert_int_equal(rc & 0xff, SQLITE_BUSY);
  assert_int_equal(sqlite3_get_autocommit(a), 0);
  assert_runs(a, "INSERT INTO notes(body) VALUES('and more')");
  sqlite3_finalize(cursor);
  assert_runs(a, "COMMIT");
  assert_answer(b, "SELECT rowid FROM notes WHERE notes MATCH 'waits' AND k = 1", "3");
  assert_answer(b, "SELECT rowid FROM notes WHERE notes MATCH 'and more' AND k = 1", "4");
  assert_answer(b, NEAREST("waits too"), "1");
  close_both(a, b);
}

/* The same where a MATCH refreshes in a transaction of its own: nothing is left of
** that, no lock either. Inside a transaction, that stays. */
static void a_match_that_cannot_commit_leaves_no_transaction(void **state) {
  sqlite3 *a = make_database(*state, "delete"), *b = tabledb_open(*state);
  assert_runs(a, "CREATE VIRTUAL TABLE auto USING bertsql(body, content='docs', auto=1)");
  sqlite3_stmt *cursor = sqldb_prepare(b, "SELECT body FROM docs");
  assert_int_equal(sqlite3_step(cursor), SQLITE_ROW);
  assert_error(a, "SELECT rowid FROM auto WHERE auto MATCH 'x' AND k = 1", "database is locked");
  assert_int_equal(sqlite3_get_autocommit(a), 1);
  assert_int_equal(sqlite3_txn_state(a, "main"), SQLITE_TXN_NONE);
  assert_answer(a, "BEGIN; SELECT count(*) FROM auto WHERE auto MATCH 'x' AND k = 1", "1");
  assert_int_equal(sqlite3_get_autocommit(a), 0);
  sqlite3_finalize(cursor);
  assert_runs(a, "COMMIT");
  assert_answer(b, "SELECT count(*) FROM auto WHERE embedding NOT NULL", "3");
  close_both(a, b);
}

typedef struct writer {
  const char *path;
  int number, errors;
} writer;

enum { WRITES = 20 };

/* Twenty transactions of its own, each waiting for the other's. */
static void *write_often(void *user) {
  writer *w = user;
  sqlite3 *db = sqldb_open(w->path);
  sqlite3_busy_timeout(db, 60000);
  int rc = sqlite3_exec(db, "SELECT bert_load('" TINY_MODEL "', 'tiny')", NULL, NULL, NULL);
  w->errors += rc != SQLITE_OK;
  for (int i = 0; i < WRITES; i++) {
    char *sql = sqlite3_mprintf(
        "BEGIN IMMEDIATE; INSERT INTO docs(body) VALUES('text %d %d'); INSERT INTO notes(body) "
        "VALUES('note %d %d'); COMMIT; " REFRESH,
        w->number, i, w->number, i);
    w->errors += sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK;
    sqlite3_free(sql);
  }
  sqlite3_close(db);
  return NULL;
}

static void two_writers_lose_nothing(void **state) {
  static const char *const journals[] = {"delete", "wal"};
  for (size_t i = 0; i < 2; i++) {
    pthread_t threads[2];
    const char *path = tabledb_beside(state, journals[i]);
    writer writers[2] = {{path, 1, 0}, {path, 2, 0}};
    sqldb_close(make_database(path, journals[i]));
    for (int t = 0; t < 2; t++) pthread_create(&threads[t], NULL, write_often, &writers[t]);
    for (int t = 0; t < 2; t++) pthread_join(threads[t], NULL);
    assert_int_equal(writers[0].errors + writers[1].errors, 0);
    sqlite3 *a = tabledb_open(path), *b = tabledb_open(path);
    assert_answer(a, "SELECT count(*) FROM docs_emb WHERE docs_emb MATCH 'text'", "43");
    assert_answer(a, "SELECT count(*) FROM notes WHERE notes MATCH 'text'", "42");
    assert_answer(a, "SELECT sum(pending) FROM bert_status", "0");
    close_both(a, b);
  }
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void busy_timeout_is_waited_for(void **state) {
  sqlite3 *a = make_database(*state, "wal"), *b = tabledb_open(*state);
  int rc;
  assert_runs(a, "BEGIN IMMEDIATE");
  sqlite3_busy_timeout(b, 1200); /* a SQLite without usleep waits whole seconds */
  double start = seconds();
  sqlite3_free(sqldb_answer(b, REFRESH, &rc));
  assert_int_equal(rc & 0xff, SQLITE_BUSY);
  assert_true(seconds() - start > 0.9);
  assert_runs(a, "ROLLBACK");
  assert_runs(b, REFRESH);
  close_both(a, b);
}

/* ---- Read-only ------------------------------------------------------------------- */

/* All that only reads works; all that writes is an error of SQLite's. */
static void assert_only_reads(sqlite3 *db, const char *part) {
  assert_answer(db, NEAREST("a red apple"), "4");
  assert_answer(db, "SELECT rowid, body FROM docs_emb",
                "1|time flies like an arrow\n2|fruit flies "
                "like a banana\n3|NULL\n4|a red apple");
  assert_answer(db, "SELECT * FROM bert_status",
                "docs_emb|3|0|0|NULL|tiny|float32\nnotes|2|0|0|NULL|tiny|float32");
  assert_error(db, "INSERT INTO notes(notes) VALUES('integrity-check')", part);
  assert_error(db, "INSERT INTO notes(body) VALUES('x')", part);
  assert_error(db, "DELETE FROM notes", part);
  assert_error(db, "INSERT INTO docs_emb(docs_emb) VALUES('rebuild')", part);
  assert_error(db, "UPDATE docs SET body = 'x'", part);
  assert_error(db, "DROP TABLE notes", part);
  assert_error(db, "ALTER TABLE notes RENAME TO n", part);
  assert_error(db, "CREATE VIRTUAL TABLE more USING bertsql(body)", part);
}

static void read_only_databases_are_searched(void **state) {
  static const char *const forms[] = {"file:%s?mode=ro", "file:%s?immutable=1"};
  sqldb_close(make_database(*state, "delete"));
  for (size_t i = 0; i < 2; i++) {
    sqlite3 *db = NULL;
    char *uri = sqlite3_mprintf(forms[i], (char *)*state);
    assert_int_equal(sqlite3_open_v2(uri, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, NULL), 0);
    assert_int_equal(sqldb_load(db, NULL, NULL), SQLITE_OK);
    assert_runs(db, "SELECT bert_load('" TINY_MODEL "', 'tiny')");
    assert_only_reads(db, "readonly");
    sqldb_close(db);
    sqlite3_free(uri);
  }
  sqlite3 *db = tabledb_open(*state);
  assert_runs(db, "PRAGMA query_only = 1");
  assert_only_reads(db, "readonly");
  assert_runs(db, "PRAGMA query_only = 0");
  assert_sound(db, "notes");
  sqldb_close(db);
}

/* ---- Without bertsql -------------------------------------------------------------- */

static void a_program_without_bertsql_writes_on(void **state) {
  sqldb_close(make_database(*state, "wal"));
  sqlite3 *plain = tabledb_open_plain(*state);
  assert_int_equal(sqlite3_db_config(plain, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL), SQLITE_OK);
  assert_runs(plain,
              "PRAGMA trusted_schema = OFF; CREATE TABLE other(x); INSERT INTO other VALUES(1);"
              "INSERT INTO docs(id, body) VALUES(5, 'by another'); UPDATE docs SET body = "
              "'changed' WHERE id = 2; DELETE FROM docs WHERE id = 1; UPDATE docs SET id = 9 "
              "WHERE id = 4; INSERT OR REPLACE INTO docs(id, body) VALUES(3, 'replaced')");
  assert_runs(plain, "ALTER TABLE docs ADD COLUMN more; ALTER TABLE other RENAME TO others; ALTER "
                     "TABLE docs RENAME COLUMN title TO heading");
  assert_error(plain, "SELECT * FROM docs_emb", "no such module: bertsql");
  assert_error(plain, "INSERT INTO notes(body) VALUES('x')", "no such module: bertsql");
  assert_answer(plain, "PRAGMA integrity_check", "ok");
  assert_runs(plain, "VACUUM");
  assert_answer(plain, "SELECT count(*) FROM docs_emb_vectors WHERE length(vector) = 128", "3");
  assert_int_equal(sqlite3_close(plain), SQLITE_OK);
  sqlite3 *a = tabledb_open(*state), *b = tabledb_open(*state);
  assert_answer(a, PENDING, "6");
  assert_runs(a, REFRESH);
  assert_answer(a, "SELECT group_concat(rowid) FROM docs_emb WHERE embedding NOT NULL", "2,3,5,9");
  assert_answer(b, NEAREST("by another"), "5");
  close_both(a, b);
}

/* ---- Closing ------------------------------------------------------------------------ */

static void closing_gives_an_open_transaction_up(void **state) {
  sqlite3 *db = make_database(*state, "wal");
  assert_runs(
      db, "BEGIN; INSERT INTO notes(body) VALUES('lost'); UPDATE docs SET body = 'lost';" REFRESH);
  sqldb_close(db);
  sqlite3 *a = tabledb_open(*state), *b = tabledb_open(*state);
  assert_answer(a, "SELECT count(*) FROM notes", "2");
  assert_answer(a, PENDING, "0");
  close_both(a, b);
}

/* A statement that is still open keeps the connection, a zombie, until it ends. */
static void a_statement_outlives_its_connection(void **state) {
  sqlite3 *db = make_database(*state, "wal");
  sqlite3_stmt *cursor =
      sqldb_prepare(db, "SELECT rowid FROM notes WHERE notes MATCH 'time flies'");
  assert_int_equal(sqlite3_step(cursor), SQLITE_ROW);
  assert_int_equal(sqlite3_close(db), SQLITE_BUSY);
  assert_int_equal(sqlite3_close_v2(db), SQLITE_OK);
  assert_int_equal(sqlite3_step(cursor), SQLITE_ROW);
  assert_int_equal(sqlite3_column_int(cursor, 0), 2);
  assert_int_equal(sqlite3_finalize(cursor), SQLITE_OK);
}

static void a_refresh_without_a_model_keeps_the_transaction(void **state) {
  sqlite3 *db = make_database(*state, "wal");
  assert_runs(db, "SELECT bert_unload('tiny'); BEGIN; INSERT INTO docs(body) VALUES('x')");
  assert_error(db, REFRESH, "bert_load");
  assert_runs(db, "COMMIT; SELECT bert_load('" TINY_MODEL "', 'tiny')");
  assert_answer(db, PENDING, "1");
  assert_runs(db, REFRESH);
  close_both(db, tabledb_open(*state));
}

int main(void) {
#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, tabledb_set_up, tabledb_tear_down)
  const struct CMUnitTest tests[] = {
      IN_FOLDER(what_one_writes_the_other_sees),
      IN_FOLDER(wal_readers_see_their_snapshot),
      IN_FOLDER(a_reader_keeps_nothing_stale),
      IN_FOLDER(a_busy_database_is_an_error),
      IN_FOLDER(a_busy_commit_can_be_tried_again),
      IN_FOLDER(a_match_that_cannot_commit_leaves_no_transaction),
      IN_FOLDER(two_writers_lose_nothing),
      IN_FOLDER(busy_timeout_is_waited_for),
      IN_FOLDER(read_only_databases_are_searched),
      IN_FOLDER(a_program_without_bertsql_writes_on),
      IN_FOLDER(closing_gives_an_open_transaction_up),
      IN_FOLDER(a_statement_outlives_its_connection),
      IN_FOLDER(a_refresh_without_a_model_keeps_the_transaction),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
