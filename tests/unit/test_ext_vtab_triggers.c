/*
** test_ext_vtab_triggers.c: which changes of a content table its triggers see:
** whatever may change a text, however the statement calls it, and nothing else.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sqldb.h"

static int open_docs(void **state) {
  sqlite3 *db = sqldb_open(NULL);
  assert_runs(db,
              "SELECT bert_load('tests/golden/families/bert-mean', 'tiny');"
              "CREATE TABLE docs(id INTEGER PRIMARY KEY, body COLLATE NOCASE, emb BLOB, "
              "  first AS (substr(body, 1, 3)), length INTEGER);"
              "CREATE VIRTUAL TABLE t USING bertsql(body, first, length UNINDEXED, content='docs', "
              "  model='tiny', triggers=1);"
              "INSERT INTO docs(id, body) VALUES(1, 'a'), (2, 1), (3, NULL), (4, 'context');"
              "INSERT INTO t(t) VALUES('refresh')");
  *state = db;
  return 0;
}

static int close_docs(void **state) {
  assert_runs(*state, "INSERT INTO t(t) VALUES('refresh')");
  assert_answer(*state,
                "SELECT group_concat(DISTINCT status), min(embedding = bert_embed(body || char(10) "
                "|| first)) FROM t WHERE body NOT NULL",
                "ok|1");
  sqldb_close(*state);
  return 0;
}

#define QUEUED "SELECT group_concat(row) FROM (SELECT DISTINCT row FROM t_queue ORDER BY row)"

/* UPDATE OF would not see it: the column is called id. */
static void the_key_set_as_rowid(void **state) {
  assert_runs(*state,
              "UPDATE docs SET rowid = 7 WHERE id = 1; UPDATE docs SET oid = 8 WHERE id = 2;"
              "UPDATE docs SET _rowid_ = 9 WHERE id = 3; UPDATE docs SET id = 5 WHERE id = 4");
  assert_answer(*state, QUEUED, "1,2,3,4,5,7,8,9");
}

/* Its collation calls both the same. */
static void upper_and_lower_case(void **state) {
  assert_runs(*state, "UPDATE docs SET body = 'A' WHERE id = 1");
  assert_answer(*state, QUEUED, "1");
}

/* Equal numbers, but '1' and '1.0' as texts. */
static void another_type(void **state) {
  assert_runs(*state, "UPDATE docs SET body = 1.0 WHERE id = 2");
  assert_answer(*state, QUEUED, "2");
}

static void null_and_back(void **state) {
  assert_runs(*state, "UPDATE docs SET body = NULL WHERE id = 1; UPDATE docs SET body = '' WHERE "
                      "id = 3");
  assert_answer(*state, QUEUED, "1,3");
}

static void other_columns(void **state) {
  assert_runs(*state, "UPDATE docs SET emb = bert_embed(body), length = 5;"
                      "UPDATE docs SET body = body, id = id");
  assert_answer(*state, QUEUED, "NULL");
}

/* The generated column changes although no statement names it. */
static void a_generated_column(void **state) {
  assert_runs(
      *state,
      "DROP TABLE t; CREATE VIRTUAL TABLE t USING bertsql(first, content='docs', "
      "model='tiny', triggers=1); INSERT INTO t(t) VALUES('refresh');"
      "UPDATE docs SET body = 'content' WHERE id = 4; UPDATE docs SET body = 'b' WHERE id = 1");
  assert_answer(*state, QUEUED, "1");
  assert_runs(*state, "DROP TABLE t; CREATE VIRTUAL TABLE t USING bertsql(body, first, "
                      "content='docs', model='tiny', triggers=1)");
}

int main(void) {
  /* Bits are compared, and only the vector kernels give the same in any batch. */
  unsetenv("BERTSQL_KERNELS");
#define TRIGGER_TEST(f) cmocka_unit_test_setup_teardown(f, open_docs, close_docs)
  const struct CMUnitTest tests[] = {
      TRIGGER_TEST(the_key_set_as_rowid), TRIGGER_TEST(upper_and_lower_case),
      TRIGGER_TEST(another_type),         TRIGGER_TEST(null_and_back),
      TRIGGER_TEST(other_columns),        TRIGGER_TEST(a_generated_column),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
