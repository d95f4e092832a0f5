/*
** test_ext_memory.c: every allocation of every scalar function fails once.
**
** SQLite's allocator, from which all of bertsql has its memory, is replaced by
** one that counts and fails the k-th request, for k = 1, 2, … until a statement
** runs through. Each failing run must answer SQLITE_NOMEM and nothing else, the
** connection must work afterwards, and at the end nothing may be left over.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dice.h"
#include "failing_memory.h"
#include "sqldb.h"

#define MODEL "models/all-MiniLM-L6-v2"

static int install(void **state) {
  setenv("BERTSQL_MODEL", MODEL, 1);
  return failing_memory_install(state);
}

/* ---- The sweep ----------------------------------------------------------------- */

typedef struct sweep {
  const char *sql;
  const char *after; /* runs without faults after each failing run */
} sweep;

/* Runs sql with allocation k failing, and all after it if `persistent`; 1 when it got
** through without a fault. */
static int run_with_fault(sqlite3 *db, const sweep *s, long k, int persistent) {
  sqlite3_stmt *statement = NULL;
  failing_memory_begin(k, persistent);
  int rc = sqlite3_prepare_v2(db, s->sql, -1, &statement, NULL);
  while (rc == SQLITE_OK || rc == SQLITE_ROW) rc = sqlite3_step(statement);
  long failures = failing_memory_end(NULL);
  if (rc == SQLITE_DONE) rc = SQLITE_OK;
  if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_NOMEM)
    fail_msg("%s\n  with allocation %ld failing: %d, %s", s->sql, k, rc, sqlite3_errmsg(db));
  if (rc != SQLITE_OK && failures == 0)
    fail_msg("%s\n  without a failing allocation: %d, %s", s->sql, rc, sqlite3_errmsg(db));
  sqlite3_finalize(statement);
  return rc == SQLITE_OK && failures == 0;
}

/* Each allocation fails in turn; under valgrind some, of long statements few. */
static void sweep_statement(sqlite3 *db, const sweep *s) {
  long step = dice_size(1, s->after != NULL ? 149 : 61);
  char *expected = sqldb_answer(db, s->sql, NULL);
  assert_non_null(expected);
  if (s->after != NULL) assert_runs(db, s->after);
  for (int persistent = 0; persistent <= 1; persistent++) {
    for (long k = 1 + persistent * step / 9; !run_with_fault(db, s, k, persistent); k += step)
      if (s->after != NULL) sqlite3_free(sqldb_answer(db, s->after, NULL));
    if (s->after != NULL) sqlite3_free(sqldb_answer(db, s->after, NULL));
    assert_answer(db, s->sql, expected);
    if (s->after != NULL) sqlite3_free(sqldb_answer(db, s->after, NULL));
  }
  sqlite3_free(expected);
}

/* Takes the place of the pass that the connection keeps, so that the next
** statement runs the model again. */
#define OTHER_TEXT "SELECT attn_weights('other', 0, 0)"

static void every_allocation_of_a_function_may_fail(void **state) {
  (void)state;
  static const sweep sweeps[] = {
      {"SELECT bert_version(), bert_info()", NULL},
      {"SELECT bert_cosine('[1,2,3]', '[2,3,4]'), bert_dot(x'0000803f', '[1]')", NULL},
      {"SELECT bert_l2(substr(x'000000803f', 2), x'0000803f')", NULL},
      {"SELECT bert_vector('[1,2,3]'), bert_json(x'0000803f0000803f')", NULL},
      {"SELECT bert_set('threads', '1'), bert_set('progress', 0)", NULL},
      {"SELECT bert_embed('time flies')", NULL},
      {"SELECT bert_embed(x'6162', 'm', '{\"dims\": 8, \"prompt\": \"p \", \"model\": \"m\"}')",
       NULL},
      {"SELECT bert_similarity(value, 'time') FROM json_each('[\"a\", \"b\", \"c\"]')", NULL},
      {"SELECT bert_similarity(value, 'time', '{\"dims\": 9}') FROM json_each('[1, 2, 3]')", NULL},
      {"SELECT bert_token_count('time flies', 'm'), bert_is_truncated('time')", NULL},
      {"SELECT attn_weights('time flies', 0, 0)", OTHER_TEXT},
      {"SELECT bert_embed(value, 'm', json_object('model', 'm')) FROM json_each('[1, 2, 3]')",
       NULL},
      {"SELECT attn_weights('an unaffable fly', 5, 11, '{\"words\":true,\"special\":false,"
       "\"renormalize\":true,\"text_b\":\"b\",\"temperature\":2,\"format\":\"blob\"}')",
       OTHER_TEXT},
      {"SELECT length(attn_html('fly', '{\"compare_text\":\"unaffable\",\"title\":\"t\"}'))",
       OTHER_TEXT},
      {"SELECT self_attention('[[1,2],[3,4]]', "
       "'{\"w_q\":[[1],[2]],\"w_k\":[[1],[2]],\"mask\":[1,0],"
       "\"causal\":true,\"scale\":2}')",
       NULL},
      {"SELECT self_attention('[[1,2],[3,4]]'), positional_encoding(3, 3)", NULL}};
  long before = failing_memory_blocks();
  sqlite3 *db = sqldb_open(NULL);
  assert_runs(db, "SELECT bert_load('" MODEL "', 'm')");
  for (size_t i = 0; i < sizeof sweeps / sizeof sweeps[0]; i++) sweep_statement(db, &sweeps[i]);
  sqldb_close(db);
  assert_int_equal(failing_memory_blocks(), before);
}

/* Errors, too, are made without memory: the answer is the error or NOMEM. */
static void every_allocation_of_an_error_may_fail(void **state) {
  (void)state;
  static const char *const statements[] = {"SELECT bert_embed('x', 'nobody')",
                                           "SELECT bert_embed('x', 'm', '{\"dim\": 1}')",
                                           "SELECT bert_dot('[1,2]', '[1]')",
                                           "SELECT bert_load('models/nowhere')",
                                           "SELECT bert_set('threads', -1)",
                                           "SELECT bert_vector(x'0000803f')",
                                           "SELECT bert_set('speed', 1)",
                                           "SELECT attn_weights('x', 0, 99)",
                                           "SELECT attn_weights('x', NULL, 0)",
                                           "SELECT attn_html('x', '{\"layer\":9}')",
                                           "SELECT attn_html('x', '{\"bits\":9}')",
                                           "SELECT self_attention('[[1],[1,2]]')",
                                           "SELECT self_attention('[[1]]', '{\"mask\":[[0]]}')",
                                           "SELECT positional_encoding(0, 1)"};
  long before = failing_memory_blocks();
  sqlite3 *db = sqldb_open(NULL);
  assert_runs(db, "SELECT bert_load('" MODEL "', 'm')");
  for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
    long failures = 1;
    for (long k = 1; failures > 0; k++) {
      int rc;
      failing_memory_begin(k, 1);
      char *answer = sqldb_answer(db, statements[i], &rc);
      failures = failing_memory_end(NULL);
      assert_true(rc == SQLITE_ERROR || rc == SQLITE_NOMEM || failures > 0);
      sqlite3_free(answer);
    }
  }
  sqldb_close(db);
  assert_int_equal(failing_memory_blocks(), before);
}

static void every_allocation_of_loading_may_fail(void **state) {
  (void)state;
  static const sweep load = {"SELECT bert_load('" MODEL "')",
                             "SELECT bert_unload('all-MiniLM-L6-v2')"};
  static const sweep first_use = {"SELECT length(bert_embed('x'))",
                                  "SELECT bert_unload('all-MiniLM-L6-v2')"};
  long before = failing_memory_blocks();
  sqlite3 *db = sqldb_open(NULL);
  sweep_statement(db, &load);
  sweep_statement(db, &first_use);
  sqldb_close(db);
  assert_int_equal(failing_memory_blocks(), before);
}

/* The extension itself: a load that failed can be tried again on the same
** connection, and one that is closed half loaded leaves nothing. */
static void every_allocation_of_the_extension_may_fail(void **state) {
  (void)state;
  long before = failing_memory_blocks();
  for (int persistent = 0; persistent <= 1; persistent++) {
    long failures = 1;
    for (long k = 1; failures > 0; k += dice_size(1, 25)) {
      sqlite3 *db;
      assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
      failing_memory_begin(k, persistent);
      int rc = sqldb_load(db, NULL, NULL);
      failures = failing_memory_end(NULL);
      assert_true(rc == SQLITE_OK || failures > 0);
      if (k % 2 == 0) {
        assert_int_equal(sqldb_load(db, NULL, NULL), SQLITE_OK);
        assert_answer(db, "SELECT bert_dot('[2]', '[3]'), count(*) FROM bert_models", "6.0|0");
      }
      sqldb_close(db);
    }
  }
  assert_int_equal(failing_memory_blocks(), before);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_of_a_function_may_fail),
                                     cmocka_unit_test(every_allocation_of_an_error_may_fail),
                                     cmocka_unit_test(every_allocation_of_loading_may_fail),
                                     cmocka_unit_test(every_allocation_of_the_extension_may_fail)};
  return cmocka_run_group_tests(tests, install, NULL);
}
