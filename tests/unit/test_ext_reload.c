/*
** test_ext_reload.c: a name that is given to another model while a statement runs: which
** model the rest of the statement uses, and that it is given back with the statement.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../support/sqldb.h"

#define FAMILIES "tests/golden/families/"

/* A query that answers row by row, and models that answer it differently. */
typedef struct query {
  const char *sql, *first, *second;
} query;

/* Nothing is sorted or grouped: that would compute all rows for the first of them. */
#define TEXTS "json_each('[\"time flies\", \"fruit flies like a banana\", \"an arrow\"]')"
#define EACH(result) "SELECT " result " FROM (SELECT value AS x FROM " TEXTS ")"
/* What the table `call` says of each text. */
#define EACH_OF(result, call)                                                                      \
  "SELECT " result " FROM (SELECT value AS x FROM " TEXTS ") AS t, " call
#define OF_M "'{\"model\": \"m\"}'"

static const char classes[] = FAMILIES "bert-classify",
                  other_classes[] = FAMILIES "roberta-classify";

static sqlite3 *open_as_m(const char *directory) {
  sqlite3 *db = sqldb_open(NULL);
  char *load = sqlite3_mprintf("SELECT bert_load(%Q, 'm')", directory);
  assert_answer(db, load, "m");
  sqlite3_free(load);
  return db;
}

static void rename_to_m(sqlite3 *db, const char *directory) {
  char *load = sqlite3_mprintf("SELECT bert_unload('m'), bert_load(%Q, 'm')", directory);
  assert_answer(db, load, "m|m");
  sqlite3_free(load);
}

static char *answer_of(const char *directory, const char *sql) {
  int rc;
  sqlite3 *db = open_as_m(directory);
  char *answer = sqldb_answer(db, sql, &rc);
  if (rc != SQLITE_OK) fail_msg("%s: %s", sql, answer);
  sqldb_close(db);
  return answer;
}

/* The answer to `q` when m becomes another model behind its first row. */
static char *answer_with_reload(sqlite3_stmt *s, const query *q) {
  assert_int_equal(sqlite3_step(s), SQLITE_ROW);
  rename_to_m(sqlite3_db_handle(s), q->second);
  return sqldb_rest(s);
}

static void check_kept(const query *q) {
  char *first = answer_of(q->first, q->sql), *second = answer_of(q->second, q->sql);
  sqlite3 *db = open_as_m(q->first);
  sqlite3_stmt *s = sqldb_prepare(db, q->sql);
  char *answer = answer_with_reload(s, q);
  if (strcmp(answer, first) != 0)
    fail_msg("%s: the answer is\n%s\nand the first model's\n%s", q->sql, answer, first);
  sqlite3_free(answer);
  /* The next run is another statement's. */
  sqlite3_reset(s);
  assert_int_equal(sqlite3_step(s), SQLITE_ROW);
  answer = sqldb_rest(s);
  assert_string_equal(answer, second);
  assert_string_not_equal(answer, first);
  sqlite3_free(answer);
  sqlite3_finalize(s);
  sqldb_close(db);
  sqlite3_free(first);
  sqlite3_free(second);
}

static void functions_with_a_constant_argument_keep_their_model(void **state) {
  (void)state;
  static const char *const values[] = {
      "bert_embed(x, 'm')",
      "bert_embed(x, NULL)",
      "bert_embed(x, NULL, " OF_M ")",
      "bert_embed(x, 'm', json_object('dims', length(x)))",
      "bert_similarity(x, 'a question')",
      "bert_similarity('a question', x)",
      "bert_similarity(x, x || ' at noon', " OF_M ")",
      "bert_token_count(x, 'm')",
      "bert_classify(x, " OF_M ")",
      "bert_classify(x, '{\"max_tokens\": 30}')",
      "attn_weights(x, 0, 0, " OF_M ")",
      "attn_heatmap(x, 0, 0, " OF_M ")",
      "attn_svg(x, 0, 0, " OF_M ")",
      "attn_html(x, " OF_M ")",
      "attn_html(x, '{\"compare_text\": \"a pair\", \"compare_model\": \"m\"}')"};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    char *sql = sqlite3_mprintf(EACH("%s"), values[i]);
    query q = {sql, classes, other_classes};
    check_kept(&q);
    sqlite3_free(sql);
  }
  query truncated = {EACH("bert_is_truncated(replace(hex(zeroblob(100)), '00', 'a ') || x, 'm')"),
                     FAMILIES "bert-mean", "models/all-MiniLM-L6-v2"};
  query rerank = {EACH("bert_rerank(x, x || ' at noon', " OF_M ")"), FAMILIES "bert-cross",
                  FAMILIES "mpnet-cross"};
  check_kept(&truncated);
  check_kept(&rerank);
}

static void tables_keep_their_models(void **state) {
  (void)state;
  static const query queries[] = {
      {EACH_OF("id", "bert_tokens(t.x)"), classes, other_classes},
      {EACH_OF("id", "bert_tokens(t.x, " OF_M ")"), classes, other_classes},
      {EACH_OF("c.text", "bert_chunks(t.x, 4, 0, " OF_M ") AS c"), classes, other_classes},
      {EACH_OF("hex(vector)", "bert_hidden(t.x, NULL, " OF_M ")"), classes, other_classes},
      {EACH_OF("score", "bert_classify(t.x, " OF_M ")"), classes, other_classes},
      {EACH_OF("hex(embedding)", "bert_embed_rows('SELECT 1, ' || quote(t.x), " OF_M ")"), classes,
       other_classes},
      {EACH_OF("weight", "attn_weights(t.x, 0, 0, " OF_M ")"), classes, other_classes},
      {EACH_OF("entropy", "attn_heads(t.x, " OF_M ")"), classes, other_classes},
      {EACH_OF("product", "attn_neurons(t.x, 0, 0, " OF_M ")"), classes, other_classes},
      {EACH_OF("weight", "attn_rollout(t.x, " OF_M ")"), classes, other_classes},
      {EACH_OF("entity || score", "bert_entities(t.x, " OF_M ")"), FAMILIES "bert-ner-cased",
       FAMILIES "modernbert-ner"},
      {EACH_OF("token", "bert_fill(t.x || ' [MASK]', " OF_M ")"), FAMILIES "bert-mlm-cased",
       FAMILIES "distilbert-mlm"}};
  for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) check_kept(&queries[i]);
}

/* A search looks for the model that made the vectors each time it begins. */
static void a_search_takes_the_model_of_its_table(void **state) {
  (void)state;
  const query alone = {"SELECT body FROM d WHERE d MATCH 'an arrow'", classes, other_classes};
  const query joined = {EACH_OF("d.body", "d WHERE d MATCH t.x AND k = 1"), classes, other_classes};
  sqlite3 *db = open_as_m(classes);
  assert_runs(db, "CREATE VIRTUAL TABLE d USING bertsql(body, model='m');"
                  "INSERT INTO d(body) SELECT value FROM " TEXTS);
  int rc;
  char *undisturbed = sqldb_answer(db, alone.sql, &rc);
  assert_int_equal(rc, SQLITE_OK);
  sqlite3_stmt *s = sqldb_prepare(db, alone.sql);
  char *answer = answer_with_reload(s, &alone);
  assert_string_equal(answer, undisturbed);
  sqlite3_free(answer);
  sqlite3_free(undisturbed);
  sqlite3_finalize(s);
  /* m is another model now, and the right one has another name. */
  assert_error(db, joined.sql, "gives other vectors; load the first one: ");
  assert_runs(db, "SELECT bert_load('" FAMILIES "bert-classify', 'right')");
  s = sqldb_prepare(db, joined.sql);
  assert_int_equal(sqlite3_step(s), SQLITE_ROW);
  assert_answer(db, "SELECT bert_unload('m')", "m");
  answer = sqldb_rest(s);
  assert_string_equal(answer, "time flies\nfruit flies like a banana\nan arrow");
  sqlite3_free(answer);
  sqlite3_reset(s);
  assert_int_equal(sqlite3_step(s), SQLITE_ROW);
  assert_answer(db, "SELECT bert_unload('right')", "right");
  assert_int_equal(sqlite3_step(s), SQLITE_ERROR);
  assert_non_null(strstr(sqlite3_errmsg(db), "which is not loaded here: SELECT bert_load("));
  sqlite3_finalize(s);
  sqldb_close(db);
}

/* As sql/docs/models.md says it: there SQLite has no place to keep the model. */
static void a_text_alone_takes_the_default_of_the_moment(void **state) {
  (void)state;
  const query q = {EACH("bert_embed(x)"), classes, other_classes};
  char *first = answer_of(q.first, q.sql), *second = answer_of(q.second, q.sql);
  sqlite3 *db = open_as_m(q.first);
  sqlite3_stmt *s = sqldb_prepare(db, q.sql);
  assert_int_equal(sqlite3_step(s), SQLITE_ROW);
  assert_int_equal(sqlite3_step(s), SQLITE_ROW);
  rename_to_m(db, q.second);
  char *rest = sqldb_rest(s), *row = strchr(first, '\n') + 1;
  size_t size = strcspn(row, "\n");
  assert_memory_equal(rest, row, size); /* the row it was at */
  assert_string_equal(strrchr(rest, '\n'), strrchr(second, '\n'));
  sqlite3_finalize(s);
  sqldb_close(db);
  sqlite3_free(first);
  sqlite3_free(second);
  sqlite3_free(rest);
}

/* What a statement keeps of an unloaded model goes when it ends: its last pass, too. */
static void what_is_kept_goes_with_the_statement(void **state) {
  (void)state;
  static const char *const queries[] = {
      EACH("bert_embed(x, 'm')"), EACH("bert_similarity(x, 'a question')"),
      EACH("bert_similarity(x, x || ' at noon', " OF_M ")"),
      EACH("attn_weights(x, 0, 0, " OF_M ")"), EACH_OF("id", "bert_tokens(t.x, " OF_M ")")};
  sqlite3 *db = sqldb_open(NULL);
  assert_runs(db, "SELECT bert_load('" FAMILIES "bert-mean', 'other')");
  sqlite3_int64 none = 0;
  for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
    for (int round = 0; round < 2; round++) { /* the first one leaves the host's own caches */
      assert_runs(db, "SELECT bert_load('" FAMILIES "bert-classify', 'm')");
      sqlite3_stmt *s = sqldb_prepare(db, queries[i]);
      none = sqlite3_memory_used();
      assert_int_equal(sqlite3_step(s), SQLITE_ROW);
      assert_answer(db, "SELECT bert_unload('m')", "m");
      sqlite3_free(sqldb_rest(s));
      if (round == 1) assert_true(sqlite3_memory_used() < none - 100000);
      sqlite3_finalize(s);
    }
  }
  sqldb_close(db);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_with_a_constant_argument_keep_their_model),
      cmocka_unit_test(tables_keep_their_models),
      cmocka_unit_test(a_search_takes_the_model_of_its_table),
      cmocka_unit_test(a_text_alone_takes_the_default_of_the_moment),
      cmocka_unit_test(what_is_kept_goes_with_the_statement)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
