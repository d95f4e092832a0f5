/*
** test_ext_vtab_check.c: blocks of packed vectors, and integrity-check, which must
** find whatever is broken in the tables behind a virtual table.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "dice.h"
#include "sqldb.h"

#define SMALL "tests/golden/families/bert-mean"
#define REFRESH "INSERT INTO e(e) VALUES('refresh');"
#define REBUILD "INSERT INTO e(e) VALUES('rebuild');"
#define OPTIMIZE "INSERT INTO e(e) VALUES('optimize');"
#define CHECK "INSERT INTO e(e) VALUES('integrity-check');"
#define BLOCKS "SELECT block, last, entries FROM e_packed ORDER BY block"

/* `count` documents of two or three tokens. */
static sqlite3 *open_many(int count, const char *table) {
  char sql[300];
  sqlite3 *db = sqldb_open(NULL);
  snprintf(sql, sizeof sql,
           "CREATE TABLE docs(id INTEGER PRIMARY KEY, body TEXT); WITH n(i) AS (SELECT 1 UNION ALL "
           "SELECT "
           "i + 1 FROM n WHERE i < %d) INSERT INTO docs SELECT i, 't' || i FROM n;",
           count);
  assert_runs(db, "SELECT bert_load('" SMALL "', 'small')");
  assert_runs(db, sql);
  assert_runs(db, table);
  assert_runs(db, REFRESH CHECK);
  return db;
}

/* ---- Blocks ---------------------------------------------------------------- */

static void test_blocks_are_appended(void **state) {
  sqlite3 *db = open_many(1023, "CREATE VIRTUAL TABLE e USING bertsql(body, content='docs')");
  assert_rows(db, BLOCKS, "(no rows)");
  assert_runs(db, "INSERT INTO docs(body) VALUES('x');" REFRESH CHECK);
  assert_rows(db, BLOCKS, "1|1024|1024");
  sqlite3_int64 stamp = sqldb_number(db, "SELECT stamp FROM e_packed");
  assert_runs(
      db, "UPDATE docs SET body = 'y' WHERE id IN (7, 1024); DELETE FROM docs WHERE id = 8;" REFRESH
              CHECK);
  assert_rows(db, BLOCKS, "1|1024|1024");
  assert_rows(db, "SELECT id FROM e_vectors WHERE row IN (7, 1024)", "1025 1026");
  assert_runs(db,
              "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) INSERT INTO "
              "docs(body) SELECT 'z' || i FROM n;" REFRESH CHECK);
  assert_rows(db, BLOCKS, "1|1024|1024 2|2048|1024 3|3072|1024");
  assert_int_equal(sqldb_number(db, "SELECT stamp FROM e_packed WHERE block = 1"), stamp);
  assert_runs(db, OPTIMIZE CHECK);
  assert_rows(db, BLOCKS, "1|1027|1024 2|2051|1024 3|3075|1024");
  assert_true(sqldb_number(db, "SELECT stamp FROM e_packed WHERE block = 1") != stamp);
  assert_runs(db, "DELETE FROM docs;" REFRESH CHECK);
  assert_rows(db, "SELECT count(*) FROM e_vectors", "0");
  assert_rows(db, "SELECT count(*) FROM e_packed", "3");
  /* An id that a block names is not given again. */
  assert_runs(db, "INSERT INTO docs(body) VALUES('new');" REFRESH CHECK);
  assert_rows(db, "SELECT id FROM e_vectors", "3076");
  assert_runs(db, OPTIMIZE CHECK);
  assert_rows(db, "SELECT count(*) FROM e_packed", "0");
  sqldb_close(db);
}

static void test_dead_entries_are_swept_out(void **state) {
  sqlite3 *db =
      open_many(2100, "CREATE VIRTUAL TABLE e USING bertsql(body, content='docs', dtype=int8)");
  assert_rows(db, BLOCKS, "1|1024|1024 2|2048|1024");
  assert_runs(db, "UPDATE docs SET body = 'new ' || id WHERE id <= 1000;" REFRESH CHECK);
  assert_rows(db, BLOCKS, "1|1024|1024 2|2048|1024 3|3072|1024");
  assert_runs(db, "DELETE FROM docs WHERE id > 1000;" REFRESH CHECK
                  "INSERT INTO docs(body) SELECT body || 'x' FROM "
                  "docs;" REFRESH CHECK);
  /* 4096 entries, 2000 of them alive: all blocks were made anew. */
  assert_rows(db, BLOCKS, "1|3124|1024");
  sqldb_close(db);
}

static void test_metrics(void **state) {
  static const char *const options[] = {"metric=l2", "metric=dot", "metric=dot, dtype=int8",
                                        "dims=5", "chunk_tokens=3"};
  enum { OPTIONS = sizeof options / sizeof options[0] };
  for (int i = 0; i < OPTIONS; i += dice_size(1, 2)) {
    char sql[200];
    snprintf(sql, sizeof sql, "CREATE VIRTUAL TABLE e USING bertsql(body, content='docs', %s)",
             options[i]);
    sqlite3 *db = open_many(1100, sql);
    assert_true(sqldb_number(db, "SELECT count(*) FROM e_packed") >= 1);
    assert_runs(db, OPTIMIZE CHECK REBUILD CHECK);
    sqldb_close(db);
  }
}

/* ---- What integrity-check finds --------------------------------------------- */

/* Damage, and a part of what is said about it. */
static const struct damage {
  const char *sql, *said;
} damages[] = {
    {"DELETE FROM e_config WHERE key = 'fingerprint'", "the value of 'fingerprint'"},
    {"UPDATE e_config SET value = 'x' WHERE key = 'model' OR key = 'swept'; REPLACE INTO e_config "
     "VALUES('swept', 'x')",
     "the value of 'swept'"},
    {"REPLACE INTO e_config VALUES('complete', 7)", "the value of 'complete'"},
    {"UPDATE e_rows SET hash = NULL WHERE row = 3", "row 3 has vectors although it has no text"},
    {"UPDATE e_rows SET hash = x'00' WHERE row = 3", "the hash of row 3"},
    {"UPDATE e_rows SET hash = 'sixteen letters!' WHERE row = 3", "the hash of row 3"},
    {"UPDATE e_rows SET error = 'x' WHERE row = 3", "row 3 has vectors although it has an error"},
    {"UPDATE e_rows SET count = 0 WHERE row = 3", "row 3 has a text, but no vector"},
    {"UPDATE e_rows SET count = 2 WHERE row = 3", "row 3 has 2 vectors in a table without"},
    {"UPDATE e_rows SET count = -1 WHERE row = 3", "row 3 says it has -1 vectors"},
    {"UPDATE e_rows SET count = 1.5 WHERE row = 3", "row 3 says it has"},
    {"UPDATE e_rows SET first = NULL WHERE row = 3", "row 3 says it has"},
    {"UPDATE e_rows SET first = 9223372036854775807 WHERE row = 3", "row 3 says it has"},
    {"UPDATE e_rows SET first = 4 WHERE row = 3", "vector 4 is claimed by row 3, but says row 4"},
    {"UPDATE e_rows SET first = 5000 WHERE row = 3", "vector 5000 of row 3 is missing"},
    {"DELETE FROM e_rows WHERE row = 3", "vector 3 names row 3, which does not have it"},
    {"INSERT INTO e_vectors SELECT 9000, row, chunk, start, stop, tokens, truncated, vector FROM "
     "e_vectors WHERE id = 3",
     "vector 9000 names row 3"},
    {"DELETE FROM e_vectors WHERE id = 3", "vector 3 of row 3 is missing"},
    {"UPDATE e_vectors SET id = 9000 WHERE id = 3", "vector 3 of row 3 is missing"},
    {"UPDATE e_vectors SET row = 4 WHERE id = 3", "vector 3 is claimed by row 3, but says row 4"},
    {"UPDATE e_vectors SET chunk = 1 WHERE id = 3", "vector 3 says it is chunk 1"},
    {"UPDATE e_vectors SET start = 3 WHERE id = 3", "vector 3 make no sense"},
    {"UPDATE e_vectors SET stop = -1 WHERE id = 3", "vector 3 make no sense"},
    {"UPDATE e_vectors SET truncated = 2 WHERE id = 3", "vector 3 make no sense"},
    {"UPDATE e_vectors SET tokens = NULL WHERE id = 3", "vector 3 make no sense"},
    {"UPDATE e_vectors SET vector = x'00' WHERE id = 3", "vector 3 is no BLOB of 128 bytes"},
    {"UPDATE e_vectors SET vector = substr(vector || 'x', 1, 128) WHERE id = 3",
     "vector 3 is no BLOB"},
    {"UPDATE e_vectors SET vector = NULL WHERE id = 3", "vector 3 is no BLOB"},
    {"UPDATE e_vectors SET vector = zeroblob(128) WHERE id = 3",
     "block 1 does not hold what vector 3 is"},
    {"UPDATE e_packed SET entries = 5", "block 1 says it has 5 entries, but has 1024"},
    {"UPDATE e_packed SET last = 1023", "block 1 does not end with vector 1023"},
    {"UPDATE e_packed SET last = NULL", "block 1 does not end with vector 0"},
    {"UPDATE e_packed SET data = NULL", "block 1: "},
    {"UPDATE e_packed SET data = CAST(substr(data, 1, 1000) AS BLOB)", "block 1: "},
    {"UPDATE e_packed SET data = CAST(x'ff' || substr(data, 2) AS BLOB)", "block 1: "},
    {"UPDATE e_packed SET data = CAST(substr(data, 1, 16) || substr(data, 25, 8) || substr(data, "
     "17, 8) || "
     "substr(data, 33) AS BLOB)",
     "in block 1, entry 1 is out of order"},
    {"UPDATE e_packed SET data = CAST(substr(data, 1, 32) || x'0f00000000000000' || substr(data, "
     "41) AS BLOB)",
     "out of order"},
    {"UPDATE e_packed SET data = CAST(substr(data, 1, length(data) - 1) || x'99' AS BLOB)",
     "block 1 does not hold what vector 1024 is"},
    {"UPDATE e_packed SET data = CAST(substr(data, 1, 16 + 8192) || x'0900000000000000' || "
     "substr(data, 16 + 8192 + 9) AS BLOB)",
     "block 1 says that vector 1 is of row 9, but it is of row 1"},
    {"INSERT INTO e_packed SELECT 2, stamp, last, entries, data FROM e_packed",
     "in block 2, entry 0 is out of order"},
};

static void test_damages_are_found(void **state) {
  sqlite3 *db = open_many(1030, "CREATE VIRTUAL TABLE e USING bertsql(body, content='docs')");
  for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
    int rc;
    assert_runs(db, "BEGIN");
    assert_runs(db, damages[i].sql);
    sqlite3_free(sqldb_answer(db, CHECK, &rc));
    assert_error(db, CHECK, damages[i].said);
    assert_int_equal(rc & 0xff, SQLITE_CORRUPT);
    /* Whatever it is, nothing crashes on it, and rebuild mends it. */
    sqlite3_free(
        sqldb_answer(db, "UPDATE docs SET body = body || 'x' WHERE id < 9;" REFRESH, NULL));
    sqlite3_free(sqldb_answer(db, OPTIMIZE, NULL));
    sqlite3_free(sqldb_answer(db, "SELECT * FROM bert_status", NULL));
    if (i % 8 == 0) assert_runs(db, REBUILD CHECK);
    assert_runs(db, "ROLLBACK");
  }
  assert_runs(db, CHECK);
  sqldb_close(db);
}

/* A vector of the range of a block that is not in it. */
static void test_a_block_that_lacks_a_vector(void **state) {
  sqlite3 *db = open_many(1030, "CREATE VIRTUAL TABLE e USING bertsql(body, content='docs')");
  assert_runs(db, "DELETE FROM docs WHERE id = 500;" REFRESH OPTIMIZE CHECK);
  assert_runs(db, "INSERT INTO docs VALUES(500, 'back');" REFRESH
                  "UPDATE e_vectors SET id = 500 WHERE row = 500; "
                  "UPDATE e_rows SET first = 500 WHERE row = 500;");
  assert_error(db, CHECK, "block 1 lacks vector 500");
  sqldb_close(db);
}

static void test_own_texts_are_checked(void **state) {
  static const struct damage own[] = {
      {"DELETE FROM n_content WHERE id = 2", "row 2 has vectors, but its text is gone"},
      {"INSERT INTO n_content VALUES(9, 'x')", "the vectors of row 9 are not of its text"},
      {"UPDATE n_content SET c0 = 'x' WHERE id = 1", "the vectors of row 1 are not of its text"},
      {"UPDATE n_content SET c0 = NULL WHERE id = 1", "the vectors of row 1 are not of its text"},
  };
  sqlite3 *db = sqldb_open(NULL);
  assert_runs(db,
              "SELECT bert_load('" SMALL
              "', 'small'); CREATE VIRTUAL TABLE n USING bertsql(body); INSERT INTO "
              "n(body) VALUES('a'), ('b'), (NULL); INSERT INTO n(n) VALUES('integrity-check');");
  for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
    assert_runs(db, "BEGIN");
    assert_runs(db, own[i].sql);
    assert_error(db, "INSERT INTO n(n) VALUES('integrity-check')", own[i].said);
    assert_runs(db, "INSERT INTO n_queue VALUES(1), (2), (9)");
    if (i > 0) assert_runs(db, "INSERT INTO n(n) VALUES('integrity-check')");
    assert_runs(
        db,
        "INSERT INTO n(n) VALUES('refresh'); INSERT INTO n(n) VALUES('integrity-check'); ROLLBACK");
  }
  sqldb_close(db);
}

static int stop(void *user) {
  sqlite3_interrupt(user);
  return 0;
}

static void test_check_is_interrupted(void **state) {
  sqlite3 *db = open_many(1030, "CREATE VIRTUAL TABLE e USING bertsql(body, content='docs')");
  for (int after = 10; after < 2000; after += after / 2) {
    int rc;
    sqlite3_progress_handler(db, after, stop, db);
    sqlite3_free(sqldb_answer(db, CHECK, &rc));
    sqlite3_progress_handler(db, 0, NULL, NULL);
    assert_int_equal(rc, SQLITE_INTERRUPT);
  }
  assert_runs(db, CHECK);
  sqldb_close(db);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_blocks_are_appended),
      cmocka_unit_test(test_dead_entries_are_swept_out),
      cmocka_unit_test(test_metrics),
      cmocka_unit_test(test_damages_are_found),
      cmocka_unit_test(test_a_block_that_lacks_a_vector),
      cmocka_unit_test(test_own_texts_are_checked),
      cmocka_unit_test(test_check_is_interrupted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
