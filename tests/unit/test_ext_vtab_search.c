/*
** test_ext_vtab_search.c: MATCH over thousands of vectors gives what a plain
** ORDER BY over t_vectors gives, row by row and to the last bit of the distance.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sqldb.h"
#include "vectors.h"

enum { DIM = 48, ROWS = 4000 };

/* A table t over docs with ROWS rows, whose ids have gaps. */
static sqlite3 *open_table(const char *options, int rows, int chunks, int is_int8) {
  char sql[1000];
  sqlite3 *db = sqldb_open(NULL);
  vectors_functions(db);
  snprintf(sql, sizeof sql,
           "SELECT bert_load('models/all-MiniLM-L6-v2', 'minilm');"
           "CREATE TABLE docs(id INTEGER PRIMARY KEY, body TEXT, category TEXT, year INTEGER);"
           "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO docs "
           "SELECT i * 3, 'text ' || i, char(97 + i %% 20), 1900 + i %% 97 FROM n;"
           "CREATE VIRTUAL TABLE t USING bertsql(body, category UNINDEXED, year UNINDEXED, "
           "content='docs', dims=%d%s);",
           rows, (int)DIM, options);
  assert_runs(db, sql);
  vectors_fill(db, "t", "docs", DIM, chunks, is_int8);
  assert_runs(db, "INSERT INTO t(t) VALUES('optimize');"
                  "CREATE TABLE query AS SELECT random_vector(48, 77) AS v");
  assert_int_equal(sqldb_number(db, "SELECT count(*) FROM t_packed"), rows * chunks / 1024);
  return db;
}

/* The brute force, for rows and vectors that a condition leaves. */
#define BEST(distance, condition)                                                                  \
  "SELECT row, min(" distance                                                                      \
  ") FROM t_vectors JOIN docs ON docs.id = row, query WHERE " condition                            \
  " GROUP BY row HAVING min(" distance ") IS NOT NULL ORDER BY 2, 1"
#define ALL(distance, condition)                                                                   \
  "SELECT row, chunk, " distance " FROM (SELECT t_vectors.*, docs.* FROM t_vectors JOIN docs ON "  \
  "docs.id = row), query WHERE " condition " AND " distance " IS NOT NULL ORDER BY 3, 1, 2"

#define MATCH "SELECT rowid, distance FROM t WHERE t MATCH (SELECT v FROM query) "
#define COSINE "1 - bert_cosine(v, decoded(vector, 48))"
#define L2 "bert_l2(v, decoded(vector, 48))"
#define DOT "-bert_dot(v, decoded(vector, 48))"

/* Everything that may be asked of a table with one vector a row. */
#define CHECK_ALL(db, distance)                                                                    \
  do {                                                                                             \
    assert_same(db, MATCH, BEST(distance, "1"));                                                   \
    assert_same(db, MATCH "ORDER BY distance", BEST(distance, "1"));                               \
    assert_same(db, MATCH "AND k = 1", BEST(distance, "1") " LIMIT 1");                            \
    assert_same(db, MATCH "AND k = 10", BEST(distance, "1") " LIMIT 10");                          \
    assert_same(db, MATCH "AND k = 3000", BEST(distance, "1") " LIMIT 3000");                      \
    assert_same(db, MATCH "ORDER BY distance LIMIT 7 OFFSET 3",                                    \
                BEST(distance, "1") " LIMIT 7 OFFSET 3");                                          \
    assert_same(db, MATCH "AND k = 10 AND category = 'c'",                                         \
                BEST(distance, "category = 'c'") " LIMIT 10");                                     \
    assert_same(db, MATCH "AND k = 30 AND category <> 'c'",                                        \
                BEST(distance, "category <> 'c'") " LIMIT 30");                                    \
    assert_same(db, MATCH "AND k = 9 AND year >= 1990 AND category IN ('d', 'e', 'zz')",           \
                BEST(distance, "year >= 1990 AND category IN ('d', 'e')") " LIMIT 9");             \
    assert_same(db, MATCH "AND k = 5 AND rowid IN (SELECT id FROM docs WHERE id < 300)",           \
                BEST(distance, "row < 300") " LIMIT 5");                                           \
    assert_same(db, MATCH "AND k = 50 AND rowid > 600 AND rowid < 11000",                          \
                BEST(distance, "row > 600 AND row < 11000") " LIMIT 50");                          \
    assert_same(db, MATCH "AND k = 5 AND rowid = 4500", BEST(distance, "row = 4500"));             \
  } while (0)

static void check_table(const char *options, int is_int8, int metric) {
  sqlite3 *db = open_table(options, ROWS, 1, is_int8);
  for (int round = 0; round < 3; round++) {
    if (metric == 0) CHECK_ALL(db, COSINE);
    if (metric == 1) CHECK_ALL(db, L2);
    if (metric == 2) CHECK_ALL(db, DOT);
    /* Next: vectors that are gone, rows that are gone; without a cache. */
    if (round == 0) assert_runs(db, "DELETE FROM t_vectors WHERE id % 7 = 0");
    if (round == 1)
      assert_runs(db, "DELETE FROM docs WHERE id % 11 = 0; SELECT bert_set('search_cache', 0)");
  }
  sqldb_close(db);
}

static void test_cosine(void **state) {
  check_table("", 0, 0);
}

static void test_l2(void **state) {
  check_table(", metric='l2'", 0, 1);
}

static void test_dot(void **state) {
  check_table(", metric='dot'", 0, 2);
}

static void test_int8(void **state) {
  check_table(", dtype='int8'", 1, 0);
  check_table(", dtype='int8', metric='l2'", 1, 1);
  check_table(", dtype='int8', metric='dot'", 1, 2);
}

/* ---- Distances as conditions ---------------------------------------------- */

static void test_distance_bounds(void **state) {
  sqlite3 *db = open_table("", ROWS, 1, 0);
  assert_same(db, MATCH "AND distance < 0.7", BEST(COSINE, COSINE " < 0.7"));
  assert_same(db, MATCH "AND distance <= 0.7 AND k = 3", BEST(COSINE, "1") " LIMIT 3");
  assert_same(db, MATCH "AND distance < 1 AND distance > 0.9 ORDER BY distance",
              BEST(COSINE, COSINE " < 1 AND " COSINE " > 0.9"));
  /* The bound itself. */
  assert_runs(db, "CREATE TABLE tenth AS SELECT distance AS d FROM t WHERE t MATCH (SELECT v FROM "
                  "query) AND k = 10 ORDER BY distance DESC LIMIT 1");
  assert_rows(db,
              "SELECT count(*) FROM t WHERE t MATCH (SELECT v FROM query) AND distance <= (SELECT "
              "d FROM tenth)",
              "10");
  assert_rows(db,
              "SELECT count(*) FROM t WHERE t MATCH (SELECT v FROM query) AND distance < (SELECT d "
              "FROM tenth)",
              "9");
  assert_rows(db, "SELECT count(*) FROM t WHERE t MATCH (SELECT v FROM query) AND distance < NULL",
              "0");
  assert_rows(db, "SELECT count(*) FROM t WHERE t MATCH (SELECT v FROM query) AND distance < 'a'",
              "3999");
  assert_rows(db, "SELECT count(*) FROM t WHERE t MATCH (SELECT v FROM query) AND distance < -1",
              "0");
  sqldb_close(db);
}

/* ---- Chunks ----------------------------------------------------------------- */

#define CHUNKS ", chunk_tokens=16, overlap=2"

static void test_best_chunk(void **state) {
  sqlite3 *db = open_table(CHUNKS, 1000, 4, 0);
  assert_same(db, MATCH, BEST(COSINE, "1"));
  assert_same(db, MATCH "AND k = 40", BEST(COSINE, "1") " LIMIT 40");
  assert_same(db, MATCH "AND k = 40 AND category < 'h'",
              BEST(COSINE, "category < 'h'") " LIMIT 40");
  /* The columns are those of the chunk that was found. */
  assert_same(db,
              "SELECT rowid, chunk, start, stop FROM t WHERE t MATCH (SELECT v FROM query) AND k "
              "= 20",
              "SELECT row, chunk, start, stop FROM (SELECT *, min(" COSINE ") AS d FROM t_vectors, "
              "query GROUP BY row ORDER BY d, row LIMIT 20)");
  assert_rows(db, "SELECT count(*), max(chunk) FROM t", "1000|0");
  sqldb_close(db);
}

static void test_all_chunks(void **state) {
  sqlite3 *db = open_table(CHUNKS ", all_chunks=1", 1000, 4, 0);
#define MATCH_CHUNKS "SELECT rowid, chunk, distance FROM t WHERE t MATCH (SELECT v FROM query) "
  assert_same(db, MATCH_CHUNKS, ALL(COSINE, "1"));
  assert_same(db, MATCH_CHUNKS "AND k = 40", ALL(COSINE, "1") " LIMIT 40");
  assert_same(db, MATCH_CHUNKS "AND k = 3 AND rowid = 33", ALL(COSINE, "row = 33") " LIMIT 3");
  assert_same(db, "SELECT rowid, chunk, start, stop, hex(embedding) FROM t",
              "SELECT row, chunk, start, stop, hex(vector) FROM t_vectors ORDER BY row, chunk");
  assert_same(db, "SELECT rowid, chunk FROM t ORDER BY rowid DESC LIMIT 9",
              "SELECT row, chunk FROM t_vectors ORDER BY row DESC, chunk DESC LIMIT 9");
  assert_runs(db, "INSERT INTO docs(id, body) VALUES(1, 'no vector yet')");
  assert_rows(db, "SELECT rowid, chunk FROM t WHERE rowid < 4", "1|NULL 3|0 3|1 3|2 3|3");
  sqldb_close(db);
}

/* ---- The cache of blocks ---------------------------------------------------- */

/* Blocks change under the table: by a rollback, by optimize, by hand. */
static void test_cache_is_checked(void **state) {
  sqlite3 *db = open_table("", ROWS, 1, 0);
  assert_same(db, MATCH "AND k = 50", BEST(COSINE, "1") " LIMIT 50");
  assert_runs(db, "BEGIN; DELETE FROM t_vectors WHERE id < 2000; INSERT INTO t(t) "
                  "VALUES('optimize')");
  assert_same(db, MATCH "AND k = 50", BEST(COSINE, "1") " LIMIT 50");
  assert_runs(db, "ROLLBACK");
  assert_same(db, MATCH "AND k = 50", BEST(COSINE, "1") " LIMIT 50");
  assert_runs(db, "SAVEPOINT a; DELETE FROM t_packed");
  assert_same(db, MATCH "AND k = 50", BEST(COSINE, "1") " LIMIT 50");
  assert_runs(db, "ROLLBACK TO a; RELEASE a");
  assert_same(db, MATCH "AND k = 50", BEST(COSINE, "1") " LIMIT 50");
  sqldb_close(db);
}

/* A search gives back what it took but for the cache, which stays in its budget. */
static void test_memory_does_not_grow(void **state) {
  sqlite3 *db = open_table("", ROWS, 1, 0);
  sqlite3_int64 before, kept;
  assert_runs(db, "SELECT bert_set('search_cache', 0);" MATCH);
  before = sqlite3_memory_used();
  for (int i = 0; i < 50; i++) assert_runs(db, MATCH "AND k = 10");
  assert_in_range(sqlite3_memory_used(), 0, before + 20000);
  assert_runs(db, "SELECT bert_set('search_cache', 64);" MATCH);
  kept = sqlite3_memory_used();
  assert_in_range(kept - before, 3 * 1024 * DIM, 6 * 1024 * DIM);
  for (int i = 0; i < 50; i++) assert_runs(db, MATCH "AND k = 10");
  assert_in_range(sqlite3_memory_used(), 0, kept + 20000);
  sqldb_close(db);
}

static void test_blocks_that_are_damaged(void **state) {
  sqlite3 *db = open_table("", ROWS, 1, 0);
  static const char *const damage[] = {
      "UPDATE t_packed SET data = NULL WHERE block = 2",
      "UPDATE t_packed SET data = 'text' WHERE block = 2",
      "UPDATE t_packed SET data = zeroblob(length(data)) WHERE block = 2",
      "UPDATE t_packed SET data = substr(data, 1, 1000) WHERE block = 2",
      "UPDATE t_packed SET entries = 1023 WHERE block = 2",
      "UPDATE t_packed SET entries = -1 WHERE block = 2",
      "UPDATE t_packed SET entries = 1 << 60 WHERE block = 2",
      "UPDATE t_packed SET last = 3 WHERE block = 2",
      "INSERT INTO t_packed SELECT 100, stamp + 1, last, entries, data FROM t_packed LIMIT 1",
  };
  for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
    assert_runs(db, "SAVEPOINT a; UPDATE t_packed SET stamp = stamp + 1");
    assert_runs(db, damage[i]);
    assert_error(db, MATCH "AND k = 5", "VALUES('optimize')");
    assert_runs(db, "INSERT INTO t(t) VALUES('optimize')");
    assert_same(db, MATCH "AND k = 5", BEST(COSINE, "1") " LIMIT 5");
    assert_runs(db, "ROLLBACK TO a; RELEASE a");
  }
  assert_runs(db, "UPDATE t_vectors SET vector = x'0011' WHERE id = 20");
  assert_error(db, MATCH, "holds a vector that is no BLOB of");
  sqldb_close(db);
}

/* ---- Several at once ------------------------------------------------------- */

static void test_two_cursors(void **state) {
  sqlite3 *db = open_table("", ROWS, 1, 0);
  assert_same(
      db,
      "SELECT a.rowid, b.rowid FROM t a JOIN t b WHERE a.t MATCH (SELECT v FROM query) AND "
      "a.k = 3 AND b.t MATCH a.embedding AND b.k = 2 ORDER BY a.distance, b.distance, "
      "b.rowid",
      "SELECT ar, br FROM (SELECT a.row AS ar, a.d AS ad, b.row AS br, 1 - "
      "bert_cosine(a.vector, b.vector) AS bd, row_number() OVER (PARTITION BY a.row ORDER "
      "BY 1 - bert_cosine(a.vector, b.vector), b.row) AS n FROM (SELECT row, vector, " COSINE
      " AS d FROM t_vectors, query WHERE id <> 5 ORDER BY 3 LIMIT 3) a JOIN t_vectors b "
      "WHERE b.id <> 5) WHERE n <= 2 ORDER BY ad, bd, br");
  /* One statement open while others search, and while vectors disappear. */
  sqlite3_stmt *s = sqldb_prepare(db, MATCH);
  assert_int_equal(sqlite3_step(s), SQLITE_ROW);
  sqlite3_int64 first = sqlite3_column_int64(s, 0);
  assert_same(db, MATCH "AND k = 5", BEST(COSINE, "1") " LIMIT 5");
  assert_runs(db, "DELETE FROM t_vectors WHERE row % 2 = 0; DELETE FROM docs WHERE id % 5 = 0");
  int count = 0, rc;
  while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
    sqlite3_int64 row = sqlite3_column_int64(s, 0);
    assert_true(row != first && row % 5 != 0);
    count++;
  }
  assert_int_equal(rc, SQLITE_DONE);
  /* What was visited before it went may still come. */
  assert_in_range(count, ROWS * 2 / 5 - 40, ROWS * 4 / 5);
  sqlite3_finalize(s);
  sqldb_close(db);
}

/* ---- Interrupts -------------------------------------------------------------- */

static void interrupt(sqlite3_context *context, int argc, sqlite3_value **argv) {
  sqlite3_interrupt(sqlite3_context_db_handle(context));
  sqlite3_result_value(context, argv[0]);
}

static void test_interrupt(void **state) {
  sqlite3 *db = open_table("", ROWS, 1, 0);
  int rc;
  sqlite3_create_function(db, "interrupted", 1, SQLITE_UTF8, NULL, interrupt, NULL, NULL);
  for (int i = 0; i < 2; i++) {
    char *answer = sqldb_answer(
        db, "SELECT count(*) FROM t WHERE t MATCH interrupted((SELECT v FROM query))", &rc);
    assert_int_equal(rc, SQLITE_INTERRUPT);
    sqlite3_free(answer);
    assert_same(db, MATCH "AND k = 5", BEST(COSINE, "1") " LIMIT 5");
  }
  sqldb_close(db);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cosine),
      cmocka_unit_test(test_l2),
      cmocka_unit_test(test_dot),
      cmocka_unit_test(test_int8),
      cmocka_unit_test(test_distance_bounds),
      cmocka_unit_test(test_best_chunk),
      cmocka_unit_test(test_all_chunks),
      cmocka_unit_test(test_cache_is_checked),
      cmocka_unit_test(test_memory_does_not_grow),
      cmocka_unit_test(test_blocks_that_are_damaged),
      cmocka_unit_test(test_two_cursors),
      cmocka_unit_test(test_interrupt),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
