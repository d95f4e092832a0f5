/*
** test_ext_vtab_models.c: a table and the model it was made with: when that is not
** there, when another one has its name, when it lies elsewhere.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scratch.h"
#include "tabledb.h"

#define PENDING "SELECT pending FROM bert_status WHERE name = 'docs_emb'"
#define REFRESH "INSERT INTO docs_emb(docs_emb) VALUES('refresh')"
#define REBUILD "INSERT INTO docs_emb(docs_emb) VALUES('rebuild')"
#define NEAREST(text) "SELECT rowid FROM docs_emb WHERE docs_emb MATCH '" text "' AND k = 1"

static void make_database(const char *path) {
  sqlite3 *db = tabledb_open(path);
  tabledb_make_docs(db, ", triggers=1");
  assert_runs(db, "CREATE VIRTUAL TABLE notes USING bertsql(body, lang UNINDEXED);"
                  "INSERT INTO notes(body, lang) VALUES('time flies', 'en'), ('a red apple', 'en');"
                  "CREATE TABLE queries(v); INSERT INTO queries SELECT bert_embed('a red apple')");
  sqldb_close(db);
}

/* A connection on which `source` is loaded as `name`. */
static sqlite3 *open_with(const char *path, const char *source, const char *name) {
  sqlite3 *db = tabledb_open_modelless(path);
  char *sql = sqlite3_mprintf("SELECT bert_load(%Q, %Q)", source, name);
  assert_answer(db, sql, name);
  sqlite3_free(sql);
  return db;
}

/* ---- No model -------------------------------------------------------------------- */

#define NOT_LOADED                                                                                 \
  "it was made with the model tiny from " TINY_MODEL ", which is not loaded here: SELECT "         \
  "bert_load('" TINY_MODEL "', 'tiny')"

static void without_the_model_all_but_embedding_works(void **state) {
  make_database(*state);
  sqlite3 *db = tabledb_open_modelless(*state);
  assert_answer(db, "SELECT rowid, body FROM docs_emb WHERE rowid < 3",
                "1|time flies like an arrow\n2|fruit flies like a banana");
  assert_answer(db, "SELECT rowid, length(embedding), n_tokens > 0, status FROM notes",
                "1|128|1|ok\n2|128|1|ok");
  assert_answer(
      db,
      "SELECT docs_emb.rowid, distance < 1e-5 FROM docs_emb, queries WHERE docs_emb MATCH v AND "
      "k = 1",
      "4|1");
  assert_answer(db, "SELECT name, rows, pending, model FROM bert_status",
                "docs_emb|3|0|tiny\nnotes|2|0|tiny");
  assert_runs(db, "UPDATE docs SET body = 'changed' WHERE id = 1; DELETE FROM docs WHERE id = 2");
  assert_answer(db, PENDING, "2");
  assert_runs(db, "DELETE FROM notes WHERE rowid = 1; INSERT INTO notes(notes) VALUES('optimize')");
  assert_runs(db, "UPDATE notes SET lang = 'fr'; INSERT INTO notes(body, lang) VALUES(NULL, 'de')");
  assert_answer(db, "SELECT group_concat(lang) FROM notes", "fr,de");
  assert_sound(db, "notes");
  assert_sound(db, "docs_emb");
  assert_runs(db, "ALTER TABLE notes RENAME TO n; DROP TABLE n; VACUUM");
  sqldb_close(db);
}

static void without_the_model_embedding_says_how_to_load_it(void **state) {
  make_database(*state);
  sqlite3 *db = tabledb_open_modelless(*state);
  assert_error(db, NEAREST("x"), "docs_emb: " NOT_LOADED);
  assert_error(db, "SELECT * FROM notes WHERE notes MATCH 'x'", "notes: " NOT_LOADED);
  assert_runs(db, "UPDATE docs SET body = 'changed' WHERE id = 1");
  assert_error(db, REFRESH, NOT_LOADED);
  assert_error(db, "INSERT INTO notes(body) VALUES('x')", NOT_LOADED);
  assert_error(db, "UPDATE notes SET body = 'x' WHERE rowid = 1", NOT_LOADED);
  assert_error(db, REBUILD, "tiny");
  assert_answer(db, PENDING, "1");
  /* Whoever writes a text has the error, and may go on with the transaction. */
  assert_error(db, "BEGIN; INSERT INTO notes(body) VALUES('x')", NOT_LOADED);
  assert_runs(db, "CREATE TABLE kept(x); COMMIT; DROP TABLE kept");
  assert_answer(db, "SELECT group_concat(body) FROM notes", "time flies,a red apple");
  assert_runs(db, "SELECT bert_load('" TINY_MODEL "', 'tiny'); " REFRESH);
  assert_answer(db, NEAREST("changed"), "1");
  assert_finds_itself(db, "docs_emb", "docs", "id", "body");
  assert_sound(db, "docs_emb");
  sqldb_close(db);
}

/* The statement in the error can be run as it stands. */
static void quotes_in_names_are_doubled(void **state) {
  sqlite3 *db = open_with(*state, TINY_MODEL, "it's");
  assert_runs(db, "CREATE VIRTUAL TABLE n USING bertsql(body); INSERT INTO n(body) VALUES('x')");
  sqldb_close(db);
  db = tabledb_open_modelless(*state);
  assert_error(db, "INSERT INTO n(body) VALUES('y')",
               "SELECT bert_load('" TINY_MODEL "', 'it''s').");
  assert_runs(db, "SELECT bert_load('" TINY_MODEL "', 'it''s'); INSERT INTO n(body) VALUES('y')");
  sqldb_close(db);
}

/* Nothing to embed needs no model: deletions are followed. */
static void without_the_model_deletions_are_refreshed(void **state) {
  make_database(*state);
  sqlite3 *db = tabledb_open_modelless(*state);
  assert_runs(
      db, "DELETE FROM docs WHERE id IN (1, 2); UPDATE docs SET body = NULL WHERE id = 4;" REFRESH);
  assert_answer(db, "SELECT rows, pending FROM bert_status WHERE name = 'docs_emb'", "0|0");
  assert_sound(db, "docs_emb");
  sqldb_close(db);
}

/* ---- Another model ----------------------------------------------------------------- */

static void another_model_under_the_name_is_an_error(void **state) {
  make_database(*state);
  sqlite3 *db = open_with(*state, OTHER_MODEL, "tiny");
  static const char both[] =
      "it was made with the model tiny from " TINY_MODEL " in float32, and tiny from " OTHER_MODEL
      " in float32 gives other vectors";
  assert_error(db, NEAREST("x"), both);
  assert_error(db, "INSERT INTO notes(body) VALUES('x')", both);
  assert_runs(db, "UPDATE docs SET body = 'changed' WHERE id = 1");
  assert_error(db, REFRESH, both);
  assert_error(db, REFRESH, "INSERT INTO docs_emb(docs_emb) VALUES('rebuild')");
  assert_answer(db, "SELECT docs_emb.rowid FROM docs_emb, queries WHERE docs_emb MATCH v AND k = 1",
                "4");
  assert_sound(db, "docs_emb");
  assert_runs(db, "SELECT bert_load('" TINY_MODEL "', 'elsewhere'); " REFRESH);
  assert_answer(db, NEAREST("changed"), "1");
  assert_finds_itself(db, "docs_emb", "docs", "id", "body");
  sqldb_close(db);
}

/* The same weights in another precision make other vectors. The error tells how to
** load what made these. */
static void another_precision_is_another_model(void **state) {
  static const char in_bf16[] =
      "SELECT bert_load('" TINY_MODEL "', 'tiny', '{\"precision\": \"bf16\"}')";
  make_database(*state);
  sqlite3 *db = tabledb_open_modelless(*state);
  assert_runs(db, in_bf16);
  assert_error(db, NEAREST("x"),
               "it was made with the model tiny from " TINY_MODEL
               " in float32, and tiny from " TINY_MODEL " in bf16 gives other vectors");
  assert_runs(db, REBUILD);
  assert_answer(db, NEAREST("a red apple"), "4");
  assert_runs(db, "SELECT bert_unload('tiny')");
  assert_error(db, NEAREST("x"), in_bf16);
  assert_sound(db, "docs_emb");
  sqldb_close(db);
}

/* The other model's prompt for queries is left out. */
#define NEAREST_OF_OTHER(text)                                                                     \
  "SELECT rowid FROM docs_emb WHERE docs_emb MATCH bert_embed('" text "') AND k = 1"

/* Of another dimension even: all vectors anew, for both connections. */
static void rebuild_takes_the_new_model(void **state) {
  make_database(*state);
  sqlite3 *old = tabledb_open(*state), *db = open_with(*state, OTHER_MODEL, "tiny");
  assert_answer(old, NEAREST("a red apple"), "4");
  assert_runs(db, "BEGIN; " REBUILD);
  assert_answer(db, NEAREST_OF_OTHER("a red apple"), "4");
  assert_runs(db, "ROLLBACK");
  assert_error(db, NEAREST("x"), "gives other vectors");
  assert_answer(old, NEAREST("a red apple"), "4");
  assert_runs(db, REBUILD);
  assert_answer(db, "SELECT rowid, length(embedding) FROM docs_emb WHERE embedding NOT NULL",
                "1|96\n2|96\n4|96");
  assert_answer(db, "SELECT value FROM docs_emb_config WHERE key IN ('dim', 'source') ORDER BY key",
                "24\n" OTHER_MODEL);
  assert_runs(db, "INSERT INTO docs(id, body) VALUES(7, 'more'); " REFRESH);
  assert_answer(db, NEAREST_OF_OTHER("more"), "7");
  assert_sound(db, "docs_emb");
  assert_error(db, "SELECT * FROM docs_emb, queries WHERE docs_emb MATCH v", "24");
  assert_error(old, NEAREST("x"), "gives other vectors");
  assert_error(old, "SELECT * FROM docs_emb, queries WHERE docs_emb MATCH v", "24");
  assert_runs(old, REBUILD);
  assert_answer(old, NEAREST("more"), "7");
  assert_answer(
      old, "SELECT docs_emb.rowid FROM docs_emb, queries WHERE docs_emb MATCH v AND k = 1", "4");
  assert_sound(old, "docs_emb");
  sqldb_close(old);
  sqldb_close(db);
}

/* ---- The same model ---------------------------------------------------------------- */

static void the_same_model_may_lie_elsewhere(void **state) {
  make_database(*state);
  char *copy = scratch_copy(TINY_MODEL);
  sqlite3 *db = open_with(*state, copy, "tiny");
  assert_answer(db, NEAREST("a red apple"), "4");
  assert_runs(db, "INSERT INTO notes(body) VALUES('x')");
  sqldb_close(db);
  db = open_with(*state, copy, "under another name");
  assert_answer(db, NEAREST("a red apple"), "4");
  sqldb_close(db);
  setenv("BERTSQL_MODEL", copy, 1);
  db = tabledb_open_modelless(*state);
  assert_answer(db, "SELECT rowid FROM notes WHERE notes MATCH 'time flies' AND k = 1", "1");
  sqldb_close(db);
  scratch_free(copy);
}

/* One weight that differs makes another model. */
/* The default model is not open yet, and goes by another name. */
static void the_same_model_may_be_the_default_one(void **state) {
  sqlite3 *db = tabledb_open(*state);
  tabledb_make_docs(db, "");
  sqldb_close(db);
  setenv("BERTSQL_MODEL", TINY_MODEL, 1);
  db = tabledb_open_modelless(*state);
  assert_answer(db, NEAREST("a red apple"), "4");
  assert_answer(db, "SELECT name FROM bert_models", "bert-mean");
  sqldb_close(db);
}

static void a_changed_model_is_another_one(void **state) {
  make_database(*state);
  char *copy = scratch_copy(TINY_MODEL);
  size_t size;
  char *weights = scratch_read(copy, "model.safetensors", &size);
  weights[size - 2] ^= 1;
  scratch_write(copy, "model.safetensors", weights, size);
  sqlite3 *db = open_with(*state, copy, "tiny");
  assert_error(db, NEAREST("a red apple"), "gives other vectors");
  sqldb_close(db);
  free(weights);
  scratch_free(copy);
}

/* The options that a table embeds with are its own; a query has the query's prompt. */
static void prompts_are_those_of_the_role(void **state) {
  sqlite3 *db = open_with(*state, OTHER_MODEL, "roles");
  assert_runs(db,
              "CREATE VIRTUAL TABLE p USING bertsql(body, kind='passage');"
              "CREATE VIRTUAL TABLE q USING bertsql(body, prompt='query: ');"
              "CREATE VIRTUAL TABLE d USING bertsql(body, dims=5);"
              "INSERT INTO p(body) VALUES('time flies'); INSERT INTO q(body) VALUES('time flies');"
              "INSERT INTO d(body) VALUES('time flies')");
  assert_answer(db,
                "SELECT embedding = bert_embed('time flies', 'roles', '{\"kind\":\"passage\"}') "
                "FROM p; SELECT embedding = bert_embed('time flies', 'roles', "
                "'{\"kind\":\"query\"}') FROM q; SELECT embedding = bert_embed('time flies', "
                "'roles', '{\"dims\":5}') FROM d",
                "1\n1\n1");
  assert_answer(db,
                "SELECT abs(distance - 1 + bert_cosine(embedding, bert_embed('fruit', 'roles', "
                "'{\"kind\":\"query\"}'))) < 1e-6 FROM p WHERE p MATCH 'fruit'",
                "1");
  assert_answer(db, "SELECT distance < 1e-6 FROM q WHERE q MATCH 'time flies'", "1");
  assert_error(db, "SELECT * FROM d WHERE d MATCH bert_embed('fruit')", "5");
  assert_answer(db, "SELECT count(*) FROM d WHERE d MATCH 'fruit'", "1");
  sqldb_close(db);
}

/* ---- Records that are not to be trusted ------------------------------------------------- */

static void a_newer_format_is_refused(void **state) {
  make_database(*state);
  sqlite3 *db = tabledb_open(*state);
  assert_runs(db, "UPDATE notes_config SET value = 2 WHERE key = 'format'");
  sqldb_close(db);
  db = tabledb_open(*state);
  static const char *const uses[] = {"SELECT * FROM notes",
                                     "SELECT * FROM notes WHERE notes MATCH 'x' AND k = 1",
                                     "INSERT INTO notes(body) VALUES('x')",
                                     "DELETE FROM notes",
                                     "INSERT INTO notes(notes) VALUES('rebuild')",
                                     "INSERT INTO notes(notes) VALUES('integrity-check')"};
  for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++)
    assert_error(db, uses[i],
                 "notes: it was made by a later bertsql, format 2, and this one knows 1");
  assert_answer(
      db, "SELECT last_error LIKE '%later bertsql%' FROM bert_status WHERE name = 'notes'", "1");
  assert_runs(db, "DROP TABLE notes");
  assert_tables(db, "notes", "(no rows)");
  sqldb_close(db);
}

/* What is wrong is looked at anew each time: it may have been put right since. */
static void a_record_put_right_is_trusted_again(void **state) {
  make_database(*state);
  sqlite3 *db = tabledb_open(*state);
  assert_runs(db, "BEGIN; UPDATE docs_emb_config SET value = 0 WHERE key = 'dim'");
  assert_error(db, NEAREST("a red apple"), "does not say how long vectors are");
  assert_runs(db, "ROLLBACK");
  assert_answer(db, NEAREST("a red apple"), "4");
  assert_runs(db, "UPDATE docs_emb_config SET value = 2 WHERE key = 'format'");
  sqldb_close(db);
  db = tabledb_open(*state);
  assert_error(db, NEAREST("a red apple"), "later bertsql");
  assert_runs(db, "UPDATE docs_emb_config SET value = 1 WHERE key = 'format'");
  assert_answer(db, NEAREST("a red apple"), "4");
  assert_sound(db, "docs_emb");
  sqldb_close(db);
}

static void a_record_without_a_model_asks_for_rebuild(void **state) {
  make_database(*state);
  sqlite3 *db = tabledb_open(*state);
  assert_runs(db, "DELETE FROM docs_emb_config WHERE key = 'fingerprint'");
  assert_error(db, NEAREST("x"), "does not say which model made its vectors");
  assert_runs(db, REBUILD);
  assert_answer(db, NEAREST("a red apple"), "4");
  assert_sound(db, "docs_emb");
  sqldb_close(db);
}

int main(void) {
#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, tabledb_set_up, tabledb_tear_down)
  const struct CMUnitTest tests[] = {
      IN_FOLDER(without_the_model_all_but_embedding_works),
      IN_FOLDER(without_the_model_embedding_says_how_to_load_it),
      IN_FOLDER(quotes_in_names_are_doubled),
      IN_FOLDER(without_the_model_deletions_are_refreshed),
      IN_FOLDER(another_model_under_the_name_is_an_error),
      IN_FOLDER(another_precision_is_another_model),
      IN_FOLDER(rebuild_takes_the_new_model),
      IN_FOLDER(the_same_model_may_lie_elsewhere),
      IN_FOLDER(the_same_model_may_be_the_default_one),
      IN_FOLDER(a_changed_model_is_another_one),
      IN_FOLDER(prompts_are_those_of_the_role),
      IN_FOLDER(a_newer_format_is_refused),
      IN_FOLDER(a_record_put_right_is_trusted_again),
      IN_FOLDER(a_record_without_a_model_asks_for_rebuild),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
