/*
** test_ext_vtab_query_faults.c: every allocation of a query of the virtual table
** fails once, and then all from there on. Each time on a new connection, so that
** no statement is prepared and no block read yet: the query must answer
** SQLITE_NOMEM or what it always answers, then answer rightly, and leave nothing.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dice.h"
#include "failing_memory.h"
#include "sqldb.h"
#include "vectors.h"

static char path[] = "/tmp/bertsql_query_XXXXXX";

static int make_database(void **state) {
  setenv("BERTSQL_MODEL", "models/all-MiniLM-L6-v2", 1);
  if (failing_memory_install(state) != 0) return 1;
  close(mkstemp(path));
  sqlite3 *db = sqldb_open(path);
  assert_runs(
      db, "CREATE TABLE docs(id INTEGER PRIMARY KEY, body TEXT, category TEXT);"
          "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) INSERT INTO docs "
          "SELECT i, 'text ' || i, char(97 + i % 20) FROM n;"
          "CREATE VIRTUAL TABLE t USING bertsql(body, category UNINDEXED, content='docs', dims=8);"
          "CREATE VIRTUAL TABLE c USING bertsql(body, content='docs', dims=8, chunk_tokens=16, "
          "overlap=2);"
          "CREATE VIRTUAL TABLE a USING bertsql(body, content='docs', dims=8, chunk_tokens=16, "
          "overlap=2, all_chunks=1)");
  vectors_fill(db, "t", "docs", 8, 1, 0);
  vectors_fill(db, "c", "docs", 8, 2, 0);
  vectors_fill(db, "a", "docs", 8, 2, 0);
  assert_runs(db, "INSERT INTO t(t) VALUES('optimize'); INSERT INTO c(c) VALUES('optimize');"
                  "INSERT INTO a(a) VALUES('optimize')");
  sqldb_close(db);
  return 0;
}

static int remove_database(void **state) {
  return unlink(path);
}

static sqlite3 *connect(void) {
  sqlite3 *db = sqldb_open(path);
  vectors_functions(db);
  return db;
}

static int rows_in(const char *answer) {
  int rows = 1;
  for (; *answer != 0; answer++) rows += *answer == '\n';
  return rows;
}

/* 1 when the query got through without a fault. */
static int run_with_fault(const char *sql, const char *expected, long k, int persistent) {
  sqlite3 *db = connect();
  int rc, rows = 0;
  /* The schema is read, and the table connected, before. */
  assert_runs(db, "SELECT 1 FROM t, c, a WHERE 0");
  sqlite3_stmt *s = NULL;
  failing_memory_begin(k, persistent);
  rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
  while (rc == SQLITE_OK || rc == SQLITE_ROW) {
    rc = sqlite3_step(s);
    rows += rc == SQLITE_ROW;
  }
  long failures = failing_memory_end(NULL);
  if (rc != SQLITE_DONE && ((rc & 0xff) != SQLITE_NOMEM || failures == 0))
    fail_msg("%s\n  with allocation %ld failing: %d, %s", sql, k, rc, sqlite3_errmsg(db));
  if (rc == SQLITE_DONE) assert_int_equal(rows, rows_in(expected));
  sqlite3_finalize(s);
  assert_answer(db, sql, expected);
  sqldb_close(db);
  return failures == 0;
}

static void test_queries(void **state) {
  static const char *const queries[] = {
      "SELECT rowid, distance FROM t WHERE t MATCH random_vector(8, 1) AND k = 3",
      "SELECT rowid, distance, embedding, body, n_tokens FROM t WHERE t MATCH random_vector(8, 1) "
      "AND k = 2 AND category = 'c'",
      "SELECT rowid FROM t WHERE t MATCH random_vector(8, 1) AND k = 70 AND category <> 'c'",
      "SELECT count(*) FROM t WHERE t MATCH random_vector(8, 1) AND category IN ('a', 'b') AND "
      "rowid IN (SELECT id FROM docs WHERE id < 100)",
      "SELECT rowid, chunk, start FROM c WHERE c MATCH random_vector(8, 1) AND k = 100",
      "SELECT rowid, chunk, start FROM a WHERE a MATCH random_vector(8, 1) AND k = 3",
      "SELECT rowid, chunk, embedding FROM a WHERE rowid < 3 ORDER BY rowid DESC",
      "SELECT rowid, body, status, embedding FROM t WHERE category = 'c' AND rowid < 50",
      "SELECT docs.id, distance FROM docs LEFT JOIN t ON t.rowid = docs.id AND t MATCH "
      "random_vector(8, 1) AND k = 20 WHERE docs.id < 40",
      "SELECT t.rowid, docs.body FROM docs JOIN t ON t.rowid = docs.id WHERE t MATCH "
      "random_vector(8, 1) AND k = 3",
  };
  for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
    sqlite3 *db = connect();
    char *expected = sqldb_answer(db, queries[i], NULL);
    assert_non_null(expected);
    assert_null(strstr(expected, "ERROR"));
    sqldb_close(db);
    sqlite3_int64 before = sqlite3_memory_used();
    long step = dice_size(1, 48);
    for (int persistent = 0; persistent <= 1; persistent++)
      for (long k = 1; !run_with_fault(queries[i], expected, k, persistent); k += step)
        assert_in_range(k, 0, 100000);
    assert_true(sqlite3_memory_used() <= before);
    sqlite3_free(expected);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_queries)};
  return cmocka_run_group_tests(tests, make_database, remove_database);
}
