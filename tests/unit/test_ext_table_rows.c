/*
** test_ext_table_rows.c: bert_embed_rows, and what happens to scans when the
** model goes away or the user interrupts.
*/
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "dice.h"
#include "sqldb.h"

#define MODEL "models/all-MiniLM-L6-v2"

/* ---- bert_embed_rows ------------------------------------------------------ */

static void test_embed_rows(void **state) {
  sqlite3 *db = *state;
  assert_rows(db,
              "SELECT key, length(embedding), subtype_of(embedding), n_tokens, truncated FROM "
              "bert_embed_rows('SELECT id, body FROM docs ORDER BY id DESC')",
              "4|1536|223|5|0 3|1536|223|2|0 2|NULL|0|NULL|NULL 1|1536|223|4|0");
  assert_rows(
      db,
      "SELECT min(e.embedding = bert_embed(d.body)) FROM docs d JOIN bert_embed_rows('SELECT "
      "id, body FROM docs') e ON e.key = d.id WHERE d.id <> 2",
      "1");
  assert_rows(
      db,
      "SELECT typeof(key), quote(key) FROM bert_embed_rows('VALUES (1, ''a''), (1.5, ''b''), "
      "(NULL, ''c''), (x''00ff'', ''d''), (''k'', 5), (''k'', x''6100'')')",
      "integer|1 real|1.5 null|NULL blob|X'00FF' text|'k' text|'k'");
  assert_rows(db,
              "SELECT length(embedding), n_tokens, truncated FROM bert_embed_rows('SELECT 1, "
              "''a b c d''', '{\"dims\":7,\"max_tokens\":4}')",
              "28|4|1");
  assert_rows(db, "SELECT count(*) FROM bert_embed_rows('SELECT 1, 2 WHERE 0')", "0");
  assert_rows(db, "SELECT count(*) FROM bert_embed_rows('SELECT 1, NULL')", "1");
  assert_rows(db, "SELECT key FROM bert_embed_rows('WITH t(a) AS (VALUES (8)) SELECT a, a FROM t')",
              "8");
  assert_rows(db, "SELECT key FROM bert_embed_rows(' /* x */ select 9, 9 -- end')", "9");
  assert_rows(db, "SELECT key FROM bert_embed_rows('SELECT 9, 9; ; /* open')", "9");
  assert_rows(
      db,
      "SELECT count(*) FROM bert_embed_rows('SELECT id, bert_json(bert_embed(body)) FROM docs')",
      "4");
}

static void test_embed_rows_errors(void **state) {
  sqlite3 *db = *state;
#define ROWS(sql) "SELECT * FROM bert_embed_rows(" sql ")"
  assert_error(db, ROWS("'SELECT 1'"), "two columns, a key and a text, but has 1");
  assert_error(db, ROWS("'SELECT 1, 2, 3'"), "but has 3");
  assert_error(db, ROWS("'SELECT 1, 2; DELETE FROM docs'"), "one SELECT");
  assert_error(db, ROWS("'SELECT 1, 2; nonsense'"), "one SELECT");
  assert_error(db, ROWS("'SELECT ?, 2'"), "parameter");
  assert_error(db, ROWS("'DELETE FROM docs RETURNING id, body'"), "must be a SELECT");
  assert_error(db, ROWS("'WITH a AS (SELECT 1) DELETE FROM docs RETURNING id, body'"),
               "must be a SELECT");
  assert_error(db, ROWS("'PRAGMA collation_list'"), "must be a SELECT");
  assert_error(db, ROWS("'EXPLAIN SELECT 1, 2'"), "must be a SELECT");
  assert_error(db, ROWS("''"), "empty");
  assert_error(db, ROWS("' -- nothing'"), "empty");
  assert_error(db, ROWS("'SELECT 1, 2 FROM nowhere'"), "in its SELECT: no such table: nowhere");
  assert_error(db, ROWS("'SELEC'"), "in its SELECT: near \"SELEC\": syntax error");
  assert_error(db, ROWS("5"), "the SQL must be a text");
  assert_error(db, ROWS("'SELECT 1, 2' || char(0) || '; x'"), "NUL");
  assert_error(db, ROWS("'SELECT 1, abs(-9223372036854775807 - 1)'"), "integer overflow");
  assert_error(db, ROWS("'SELECT 1, ''a''', '{\"dims\":0}'"), "dims");
  assert_error(db, ROWS("'SELECT 1, ''a''', '{\"dims\":385}'"), "384");
  assert_error(db, ROWS("'SELECT 1, ''a''', '{\"what\":1}'"), "what");
  assert_error(db, ROWS("'SELECT 1, ''a''', '{\"model\":\"nix\"}'"), "nix");
  assert_error(db,
               ROWS("'VALUES (1, ''a''), (2, NULL), (''k'', ''a b c''), (4, ''a b c d'')', "
                    "'{\"max_tokens\":4,\"truncate\":\"error\"}'"),
               "bert_embed_rows: key 'k': the text is longer than 4 tokens");
  assert_error(db, ROWS("'VALUES (12, ''a b c d'')', '{\"max_tokens\":4,\"truncate\":\"error\"}'"),
               "bert_embed_rows: key 12: the text is longer than 4 tokens");
  assert_rows(db, "SELECT count(*), count(body) FROM docs", "4|3");
}

static void test_embed_rows_writes(void **state) {
  sqlite3 *db = *state;
  const char *right = "SELECT count(emb), min(emb IS NULL OR emb = bert_embed(body)) FROM docs";
  assert_runs(
      db,
      "UPDATE docs SET emb = e.embedding FROM bert_embed_rows('SELECT id, body FROM docs') AS e "
      "WHERE e.key = docs.id");
  assert_rows(db, right, "3|1");
  assert_runs(
      db,
      "CREATE TABLE emb(id INTEGER PRIMARY KEY, emb BLOB); INSERT INTO emb SELECT key, embedding "
      "FROM bert_embed_rows('SELECT id, body FROM docs')");
  assert_rows(db, "SELECT min(emb.emb IS docs.emb) FROM emb JOIN docs USING (id)", "1");
  assert_runs(db,
              "CREATE TABLE copy AS SELECT * FROM bert_embed_rows('SELECT id, body FROM docs')");
  assert_rows(db, "SELECT group_concat(key), count(embedding) FROM copy", "1,2,3,4|3");
  /* Rows that are written must not come up in the SELECT that feeds them. */
  assert_runs(db, "INSERT INTO docs(body, emb) SELECT 'new', embedding FROM "
                  "bert_embed_rows('SELECT id, body FROM docs /* open')");
  assert_rows(db, "SELECT count(*) FROM docs", "8");
  assert_runs(db, "INSERT INTO docs(body, emb) SELECT key, embedding FROM "
                  "bert_embed_rows('SELECT id, body FROM docs ORDER BY id DESC -- end;')");
  assert_rows(db, "SELECT group_concat(body, '') FROM docs WHERE id > 8", "87654321");
  assert_runs(db, "INSERT INTO docs(body) SELECT key FROM bert_embed_rows('VALUES (1, ''a'');')");
  assert_rows(db, "SELECT count(*) FROM docs", "17");
  assert_runs(
      db,
      "DELETE FROM docs WHERE id IN (SELECT key FROM bert_embed_rows('SELECT id, id FROM docs') "
      "WHERE key % 2)");
  assert_rows(db, "SELECT count(*) FROM docs", "8");
  assert_runs(
      db, "UPDATE docs SET emb = (SELECT embedding FROM bert_embed_rows('SELECT max(id), body FROM "
          "docs'))");
  assert_rows(db, "SELECT count(DISTINCT emb) FROM docs", "1");
}

/* Order, keys and memory over many batches. */
static void test_embed_rows_many(void **state) {
  sqlite3 *db = *state;
  sqlite3_int64 few, many;
  const char *sql =
      "SELECT sum(key = rowid & 0xffffffff) FROM bert_embed_rows('WITH RECURSIVE c(i) AS (SELECT 1 "
      "UNION ALL SELECT i + 1 FROM c LIMIT %d) SELECT i, iif(i %% 60 < %d, ''a'', NULL) FROM c')";
  int texts = dice_size(51, 3); /* in 60 rows */
  char *first = sqlite3_mprintf(sql, 2400, texts), *second = sqlite3_mprintf(sql, 7200, texts);
  assert_rows(db, "SELECT bert_set('threads', 2)", "2");
  assert_int_equal(sqldb_number(db, first), 2400);
  sqlite3_memory_highwater(1);
  few = (assert_int_equal(sqldb_number(db, first), 2400), sqlite3_memory_highwater(1));
  many = (assert_int_equal(sqldb_number(db, second), 7200), sqlite3_memory_highwater(1));
  print_message("peak: %lld bytes for 2400 rows, %lld for 7200\n", few, many);
  assert_true(many < few + 65536);
  sqlite3_free(first);
  sqlite3_free(second);
}

static void test_embed_rows_large_texts(void **state) {
  sqlite3 *db = *state;
  sqlite3_int64 before, after;
  assert_runs(
      db,
      "CREATE TABLE big(id INTEGER PRIMARY KEY, body);"
      "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 24) "
      "INSERT INTO big SELECT i, replace(hex(zeroblob(100000)), '00', 'word ' || i || ' ') FROM c");
  char *tokens = sqlite3_mprintf("CREATE TABLE tokens AS SELECT %d AS n", dice_size(32, 5));
  assert_runs(db, tokens);
  sqlite3_free(tokens);
  sqldb_number(db,
               "SELECT count(embedding) FROM bert_embed_rows('SELECT 1, body FROM big LIMIT 1')");
  sqlite3_memory_highwater(1);
  before = sqlite3_memory_used();
  assert_rows(db,
              "SELECT count(embedding), min(truncated), max(n_tokens) FROM "
              "bert_embed_rows('SELECT id, body FROM big', (SELECT json_object('max_tokens', n) "
              "FROM tokens))",
              dice_size(32, 5) == 32 ? "24|1|32" : "24|1|5");
  after = sqlite3_memory_highwater(1);
  print_message("24 texts of 0.8 MB: %lld bytes above\n", after - before);
  assert_true(after - before < 30 * 1000 * 1000);
}

/* ---- Models that go away, interrupts, faults ------------------------------ */

/* Unloads the model after the first row and reads on. */
static void unload_within(const char *sql, int expected) {
  sqlite3 *db = sqldb_open(NULL);
  sqlite3_stmt *s;
  int rows = 1, rc;
  assert_runs(db, "SELECT bert_load('" MODEL "', 'minilm')");
  s = sqldb_prepare(db, sql);
  assert_int_equal(sqlite3_step(s), SQLITE_ROW);
  assert_runs(db, "SELECT bert_unload('minilm')");
  while ((rc = sqlite3_step(s)) == SQLITE_ROW) rows++;
  if (rc != SQLITE_DONE) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
  assert_int_equal(rows, expected);
  sqlite3_finalize(s);
  assert_rows(db, "SELECT count(*) FROM bert_models", "0");
  assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void test_unload(void **state) {
  unload_within("SELECT * FROM bert_tokens('a b c')", 5);
  unload_within("SELECT * FROM bert_hidden('a b c')", 5);
  unload_within("SELECT * FROM bert_chunks('a b c', 4, 0)", 2);
  unload_within("SELECT * FROM bert_models", 1);
  int rows = dice_size(300, 40);
  char *many = sqlite3_mprintf("SELECT * FROM bert_embed_rows('WITH RECURSIVE c(i) AS (SELECT 1 "
                               "UNION ALL SELECT i + 1 FROM c LIMIT %d) SELECT i, ''row '' || i "
                               "FROM c')",
                               rows);
  unload_within(many, rows);
  sqlite3_free(many);
  unload_within("SELECT * FROM bert_embed_rows('SELECT bert_unload(''minilm''), ''b'' UNION ALL "
                "SELECT 2, 3') WHERE 0 UNION ALL SELECT 1, 2, 3, 4",
                1);
}

#define ENDLESS                                                                                    \
  "SELECT count(*) FROM bert_embed_rows('WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 " \
  "FROM c) SELECT i, ''a row that is embedded again and again '' || i FROM c')"

static void *interrupt_soon(void *db) {
  struct timespec delay = {0, 300 * 1000 * 1000};
  nanosleep(&delay, NULL);
  sqlite3_interrupt(db);
  return NULL;
}

static void test_interrupt(void **state) {
  sqlite3 *db = *state;
  for (int i = 0; i < dice_rounds(3, 1); i++) {
    pthread_t thread;
    sqlite3_stmt *s = sqldb_prepare(db, ENDLESS);
    pthread_create(&thread, NULL, interrupt_soon, db);
    assert_int_equal(sqlite3_step(s), SQLITE_INTERRUPT);
    pthread_join(thread, NULL);
    sqlite3_finalize(s);
    assert_rows(db, "SELECT count(embedding) FROM bert_embed_rows('SELECT id, body FROM docs')",
                "3");
  }
}

static int stop_at_once(void *count) {
  return ++*(int *)count > 5;
}

static void test_progress_handler(void **state) {
  sqlite3 *db = *state;
  int count = 0;
  sqlite3_stmt *s = sqldb_prepare(db, ENDLESS);
  sqlite3_progress_handler(db, 100, stop_at_once, &count);
  assert_int_equal(sqlite3_step(s), SQLITE_INTERRUPT);
  sqlite3_progress_handler(db, 0, NULL, NULL);
  sqlite3_finalize(s);
  assert_rows(db, "SELECT count(embedding) FROM bert_embed_rows('SELECT id, body FROM docs')", "3");
}

static void slow(sqlite3_context *context, int argc, sqlite3_value **argv) {
  struct timespec delay = {0, 30 * 1000 * 1000};
  nanosleep(&delay, NULL);
  sqlite3_result_value(context, argv[0]);
}

/* What `sql` writes on stderr, in text[size]. */
static void stderr_of(sqlite3 *db, const char *sql, char *text, size_t size) {
  FILE *file = tmpfile();
  int saved = dup(STDERR_FILENO);
  size_t length;
  assert_non_null(file);
  fflush(stderr);
  dup2(fileno(file), STDERR_FILENO);
  sqldb_number(db, sql);
  fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  rewind(file);
  length = fread(text, 1, size - 1, file);
  text[length] = 0;
  fclose(file);
}

static void test_progress(void **state) {
  sqlite3 *db = *state;
  char text[4096];
  const char *quick = "SELECT count(*) FROM bert_embed_rows('SELECT id, body FROM docs')";
  const char *slowly =
      "SELECT count(*) FROM bert_embed_rows('WITH RECURSIVE c(i) AS (SELECT 1 UNION "
      "ALL SELECT i + 1 FROM c LIMIT 60) SELECT i, slow(i) FROM c')";
  sqlite3_create_function(db, "slow", 1, SQLITE_UTF8, NULL, slow, NULL, NULL);
  assert_runs(db, "SELECT bert_set('threads', 1)");
  stderr_of(db, slowly, text, sizeof(text));
  assert_string_equal(text, "");
  assert_runs(db, "SELECT bert_set('progress', 1)");
  stderr_of(db, quick, text, sizeof(text));
  assert_string_equal(text, "");
  stderr_of(db, slowly, text, sizeof(text));
  assert_ptr_equal(strstr(text, "\rbert_embed_rows: "), text);
  assert_non_null(strstr(text, "\rbert_embed_rows: 60 rows, "));
  assert_non_null(strstr(text, " rows/s\n"));
  assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, sqldb_open_docs, sqldb_close_docs)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_embed_rows),      TEST(test_embed_rows_errors),      TEST(test_embed_rows_writes),
      TEST(test_embed_rows_many), TEST(test_embed_rows_large_texts), TEST(test_unload),
      TEST(test_interrupt),       TEST(test_progress_handler),       TEST(test_progress)};
  return cmocka_run_group_tests_name("rows in batches", tests, NULL, NULL);
}
