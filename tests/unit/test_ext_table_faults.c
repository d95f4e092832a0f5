/*
** test_ext_table_faults.c: every allocation of the table-valued functions fails
** once, alone and with all that follow. The answer is then the right one or
** SQLITE_NOMEM, and nothing is left over.
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

/* ---- The sweep ----------------------------------------------------------- */

static sqlite3 *open_model(void) {
  sqlite3 *db = sqldb_open(NULL);
  assert_runs(db, "SELECT bert_load('" MODEL "', 'minilm'); CREATE TABLE sink(a, b)");
  return db;
}

/* Runs a query to its end and mixes all its values into *digest, without any
** allocation but SQLite's and ours. */
static int digest_of(sqlite3 *db, const char *sql, uint64_t *digest) {
  sqlite3_stmt *s = NULL;
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
  *digest = 1469598103934665603u;
  if (rc == SQLITE_OK)
    while ((rc = sqlite3_step(s)) == SQLITE_ROW)
      for (int i = 0; i < sqlite3_column_count(s); i++) {
        int type = sqlite3_column_type(s, i);
        int is_bytes = type == SQLITE_TEXT || type == SQLITE_BLOB;
        sqlite3_int64 value = is_bytes ? sqlite3_column_bytes(s, i) : sqlite3_column_int64(s, i);
        const unsigned char *bytes = is_bytes ? sqlite3_column_blob(s, i) : NULL;
        *digest = (*digest ^ (uint64_t)type ^ (uint64_t)value << 8) * 1099511628211u;
        for (int j = 0; bytes != NULL && j < value; j++)
          *digest = (*digest ^ bytes[j]) * 1099511628211u;
      }
  sqlite3_finalize(s);
  return rc;
}

/* A fresh encoder, so that its memory is allocated anew. */
static void reload(sqlite3 *db) {
  assert_runs(db, "SELECT bert_unload('minilm'); SELECT bert_load('" MODEL "', 'minilm')");
}

/* Runs `sql` with each of its allocations failing in turn (some under valgrind),
** until none is left to fail. The outcome is the right result or SQLITE_NOMEM,
** never another. */
static void sweep(const char *sql, int persistent) {
  sqlite3 *db = open_model();
  sqlite3 *keeper = open_model(); /* keeps the model mapped */
  uint64_t expected, found;
  int clean = digest_of(db, sql, &expected); /* an error may be what it tests */
  sqlite3_int64 before;
  long step = dice_size(1, 97), k = 1 + !persistent * (step / 9), failed;
  assert_true(clean == SQLITE_DONE || clean == SQLITE_ERROR);
  reload(db);
  before = sqlite3_memory_used();
  do {
    int rc;
    failing_memory_begin(k, persistent);
    rc = digest_of(db, sql, &found);
    failed = failing_memory_end(NULL);
    if (rc != SQLITE_NOMEM && rc != clean)
      fail_msg("%s, allocation %ld: result %d, %s", sql, k, rc, sqlite3_errmsg(db));
    if (rc == SQLITE_DONE && found != expected)
      fail_msg("%s, allocation %ld: another result", sql, k);
    reload(db);
    if (sqlite3_memory_used() > before + 16384)
      fail_msg("%s, allocation %ld: %lld bytes left", sql, k, sqlite3_memory_used() - before);
    k += step;
  } while (failed > 0);
  print_message("%ld allocations: %s\n", k - 1 - step, sql);
  assert_int_equal(digest_of(db, sql, &found), clean);
  assert_true(found == expected);
  assert_int_equal(sqlite3_close(db), SQLITE_OK);
  assert_int_equal(sqlite3_close(keeper), SQLITE_OK);
}

static void test_faults(void **state) {
  static const char *const queries[] = {
      "SELECT count(*), group_concat(name) FROM bert_models",
      "SELECT token, text, in_text FROM bert_tokens('time flies', '{\"text_b\":\"b\"}')",
      "SELECT text FROM bert_chunks('a b c d e', 4, 1, '{\"model\":\"minilm\"}')",
      "SELECT token, length(vector) FROM bert_hidden('time flies', 2, '{\"max_tokens\":3}')",
      "SELECT key, length(embedding) FROM bert_embed_rows('VALUES (1, ''a b''), (''k'', 5), "
      "(x''00'', "
      "NULL)', '{\"dims\":8}')",
      "INSERT INTO sink SELECT key, n_tokens FROM bert_embed_rows('VALUES (1, ''a b''), (2, 3)')",
      "SELECT q_token, k_token, weight, score FROM attn_weights('time flies', 0, 1)",
      "SELECT q_token, weight FROM attn_weights('an unaffable', 0, 1, '{\"words\":true,"
      "\"special\":false,\"renormalize\":true,\"text_b\":\"b\"}')",
      "SELECT entropy, norm_mean, label FROM attn_heads('time', '{\"words\":true}') WHERE layer = "
      "2",
      "SELECT k_token, weight FROM attn_rollout('time', '{\"special\":false}') WHERE layer = 1",
      "SELECT q, k, product FROM attn_neurons('time', 0, 0) WHERE q_pos = 0 AND k_pos = 1",
      "SELECT h.head, w.weight FROM attn_heads('a') h, attn_weights('b', h.layer, h.head) w WHERE "
      "h.layer = 1 AND w.q_pos = 0 AND h.head < 2",
      "SELECT * FROM attn_neurons('a', 0, NULL)",
      "SELECT * FROM attn_weights('a', 9)",
      "SELECT * FROM bert_hidden('a', 'b')",
      "SELECT * FROM bert_tokens",
      "SELECT * FROM bert_embed_rows('VALUES (1, 2), (3, ''a b'')', "
      "'{\"max_tokens\":3,\"truncate\":\"error\"}')",
      "SELECT * FROM bert_embed_rows('SELECT 1, 2, 3')",
      "SELECT * FROM bert_embed_rows('SELECT 1, abs(-9223372036854775807 - 1)')"};
  for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
    sweep(queries[i], 0);
    sweep(queries[i], 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_faults)};
  return cmocka_run_group_tests_name("faults in tables", tests, failing_memory_install, NULL);
}
