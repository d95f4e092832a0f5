/*
** test_ext_vtab_models.c: a table and the model it was made with: when that is not
** there, when another one has its name, when it lies elsewhere; what errors say to do.
*/
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Where the two models lie, whatever the working directory. */
static char tiny_place[PATH_MAX], other_place[PATH_MAX];

static int find_places(void **state) {
  (void)state;
  return realpath(TINY_MODEL, tiny_place) == NULL || realpath(OTHER_MODEL, other_place) == NULL;
}

/* The error has in it what `format`, of sqlite3_mprintf, makes. */
static void assert_error_says(sqlite3 *db, const char *sql, const char *format, ...) {
  va_list list;
  va_start(list, format);
  char *part = sqlite3_vmprintf(format, list);
  va_end(list);
  assert_error(db, sql, part);
  sqlite3_free(part);
}

/* Runs the statement that the error of `sql` gives, as it stands there. */
static void follow_the_error(sqlite3 *db, const char *sql) {
  char *answer = sqldb_answer(db, sql, NULL), *from = strstr(answer, "SELECT bert_load(");
  assert_non_null(from);
  char *to = strstr(from, "')");
  assert_non_null(to);
  to[2] = 0;
  assert_runs(db, from);
  sqlite3_free(answer);
}

/* ---- No model -------------------------------------------------------------------- */

static void assert_not_loaded(sqlite3 *db, const char *table, const char *sql) {
  assert_error_says(db, sql,
                    "%s: it was made with the model tiny from %s in float32, which is not loaded "
                    "here: SELECT bert_load('%s', 'tiny').",
                    table, tiny_place, tiny_place);
}

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
  assert_answer(db, "SELECT name, rows, pending, model, precision FROM bert_status",
                "docs_emb|3|0|tiny|float32\nnotes|2|0|tiny|float32");
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
  assert_not_loaded(db, "docs_emb", NEAREST("x"));
  assert_not_loaded(db, "notes", "SELECT * FROM notes WHERE notes MATCH 'x'");
  assert_runs(db, "UPDATE docs SET body = 'changed' WHERE id = 1");
  assert_not_loaded(db, "docs_emb", REFRESH);
  assert_not_loaded(db, "notes", "INSERT INTO notes(body) VALUES('x')");
  assert_not_loaded(db, "notes", "UPDATE notes SET body = 'x' WHERE rowid = 1");
  assert_error(db, REBUILD, "tiny");
  assert_answer(db, PENDING, "1");
  /* Whoever writes a text has the error, and may go on with the transaction. */
  assert_not_loaded(db, "notes", "BEGIN; INSERT INTO notes(body) VALUES('x')");
  assert_runs(db, "CREATE TABLE kept(x); COMMIT; DROP TABLE kept");
  assert_answer(db, "SELECT group_concat(body) FROM notes", "time flies,a red apple");
  follow_the_error(db, REFRESH);
  assert_runs(db, REFRESH);
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
  assert_error_says(db, "INSERT INTO n(body) VALUES('y')", "SELECT bert_load('%s', 'it''s').",
                    tiny_place);
  follow_the_error(db, "INSERT INTO n(body) VALUES('y')");
  assert_runs(db, "INSERT INTO n(body) VALUES('y')");
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

/* ---- Where it lies ----------------------------------------------------------------- */

/* A directory that was named by a relative path is found from every other one. */
static void a_directory_is_recorded_by_its_absolute_path(void **state) {
  char here[PATH_MAX];
  make_database(*state);
  sqlite3 *db = tabledb_open_modelless(*state);
  assert_answer(db, "SELECT value FROM docs_emb_config WHERE key = 'source'", tiny_place);
  assert_non_null(getcwd(here, sizeof here));
  assert_int_equal(chdir("/"), 0);
  follow_the_error(db, NEAREST("x"));
  assert_answer(db, NEAREST("a red apple"), "4");
  assert_int_equal(chdir(here), 0);
  /* Where it was opened counts, not where the process has gone since. */
  assert_answer(db, "SELECT source FROM bert_models", tiny_place);
  assert_runs(db, "SELECT bert_load('" TINY_MODEL "', 'typed')");
  assert_int_equal(chdir("/"), 0);
  assert_runs(db, "CREATE VIRTUAL TABLE later USING bertsql(body, model='typed')");
  assert_int_equal(chdir(here), 0);
  assert_answer(db, "SELECT value FROM later_config WHERE key = 'source'", tiny_place);
  assert_answer(db, "SELECT source FROM bert_models WHERE name = 'typed'", TINY_MODEL);
  sqldb_close(db);
}

/* What an older version recorded: the path as it was typed, and no precision. */
static void a_relative_path_that_was_recorded_is_kept(void **state) {
  make_database(*state);
  sqlite3 *db = tabledb_open(*state);
  assert_runs(db, "UPDATE docs_emb_config SET value = '" TINY_MODEL "' WHERE key = 'source';"
                  "DELETE FROM docs_emb_config WHERE key = 'precision'");
  assert_answer(db, NEAREST("a red apple"), "4");
  sqldb_close(db);
  db = tabledb_open_modelless(*state);
  assert_answer(db, "SELECT precision FROM bert_status WHERE name = 'docs_emb'", "float32");
  assert_error(db, NEAREST("x"), "SELECT bert_load('" TINY_MODEL "', 'tiny').");
  follow_the_error(db, NEAREST("x"));
  assert_answer(db, NEAREST("a red apple"), "4");
  assert_runs(db, REBUILD);
  assert_answer(db, "SELECT value FROM docs_emb_config WHERE key = 'source'", tiny_place);
  sqldb_close(db);
}

static void a_hub_id_is_recorded_as_it_is(void **state) {
  const char *cache = tabledb_beside(state, "hub");
  char *command = sqlite3_mprintf("mkdir -p '%s/models--nobody--tiny/snapshots' && cp -r "
                                  "'" TINY_MODEL "' '%s/models--nobody--tiny/snapshots/one'",
                                  cache, cache);
  assert_int_equal(system(command), 0);
  sqlite3_free(command);
  setenv("HF_HUB_CACHE", cache, 1);
  sqlite3 *db = open_with(*state, "nobody/tiny", "tiny");
  assert_runs(db, "CREATE VIRTUAL TABLE n USING bertsql(body); INSERT INTO n(body) VALUES('x')");
  assert_answer(db, "SELECT value FROM n_config WHERE key = 'source'", "nobody/tiny");
  sqldb_close(db);
  db = tabledb_open_modelless(*state);
  assert_error(db, "SELECT * FROM n WHERE n MATCH 'x'", "SELECT bert_load('nobody/tiny', 'tiny').");
  follow_the_error(db, "SELECT * FROM n WHERE n MATCH 'x'");
  assert_answer(db, "SELECT rowid FROM n WHERE n MATCH 'x'", "1");
  sqldb_close(db);
  unsetenv("HF_HUB_CACHE");
}

/* As with a hub id whose snapshot moved on: to load it once more would give the wrong one
** again. */
static void what_the_source_gives_now_is_told_from_what_it_gave(void **state) {
  sqlite3 *db = open_with(*state, TINY_MODEL, "m");
  assert_runs(db, "CREATE VIRTUAL TABLE n USING bertsql(body); INSERT INTO n(body) VALUES('x');"
                  "UPDATE n_config SET value = '{moves}' WHERE key = 'model'");
  sqldb_close(db);
  /* A name that would be taken for options is not proposed. */
  db = tabledb_open_modelless(*state);
  assert_error_says(db, "SELECT * FROM n WHERE n MATCH 'x'", "SELECT bert_load('%s', 'model').",
                    tiny_place);
  follow_the_error(db, "SELECT * FROM n WHERE n MATCH 'x'");
  assert_answer(db, "SELECT rowid FROM n WHERE n MATCH 'x'", "1");
  char *sql = sqlite3_mprintf("UPDATE n_config SET value = %Q WHERE key = 'source'", other_place);
  assert_runs(db, sql);
  sqlite3_free(sql);
  sqldb_close(db);
  db = tabledb_open_modelless(*state);
  follow_the_error(db, "SELECT * FROM n WHERE n MATCH 'x'");
  assert_error(db, "SELECT * FROM n WHERE n MATCH 'x'",
               "but what is there now, loaded as model, gives other vectors");
  assert_error(db, "SELECT * FROM n WHERE n MATCH 'x'", "INSERT INTO n(n) VALUES('rebuild')");
  sqldb_close(db);
}

static void unload_m(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc, (void)argv;
  sqlite3_exec(sqlite3_context_db_handle(context), "SELECT bert_unload('m')", NULL, NULL, NULL);
}

/* Also by a trigger on a shadow table: the model is held as long as it is read. */
static void a_model_may_be_unloaded_while_it_is_recorded(void **state) {
  sqlite3 *db = open_with(*state, TINY_MODEL, "m");
  assert_runs(db, "CREATE VIRTUAL TABLE n USING bertsql(body, model='m');"
                  "INSERT INTO n(body) VALUES('x')");
  sqlite3_create_function(db, "unload_m", 0, SQLITE_UTF8, NULL, unload_m, NULL, NULL);
  assert_runs(db, "CREATE TRIGGER t AFTER INSERT ON n_config BEGIN SELECT unload_m(); END");
  assert_error(db, "INSERT INTO n(n) VALUES('rebuild')", "bert_load(");
  assert_runs(db, "DROP TRIGGER t");
  assert_runs(db, "SELECT bert_load('" TINY_MODEL "', 'm')");
  assert_answer(db, "SELECT rowid FROM n WHERE n MATCH 'x'", "1");
  assert_sound(db, "n");
  sqldb_close(db);
}

/* ---- Another model ----------------------------------------------------------------- */

static void another_model_under_the_name_is_an_error(void **state) {
  make_database(*state);
  sqlite3 *db = open_with(*state, OTHER_MODEL, "tiny");
  char *both = sqlite3_mprintf(
      "it was made with the model tiny from %s in float32, and tiny from %s in float32 gives other "
      "vectors; load the first one: SELECT bert_load('%s', 'tiny-float32'), or make all vectors "
      "anew",
      tiny_place, other_place, tiny_place);
  assert_error(db, NEAREST("x"), both);
  assert_error(db, "INSERT INTO notes(body) VALUES('x')", both);
  assert_runs(db, "UPDATE docs SET body = 'changed' WHERE id = 1");
  assert_error(db, REFRESH, both);
  assert_error(db, REFRESH, "INSERT INTO docs_emb(docs_emb) VALUES('rebuild')");
  assert_answer(db, "SELECT docs_emb.rowid FROM docs_emb, queries WHERE docs_emb MATCH v AND k = 1",
                "4");
  assert_sound(db, "docs_emb");
  sqlite3_free(both);
  assert_runs(db, "SELECT bert_load('" OTHER_MODEL "', 'tiny-float32')");
  assert_error(db, REFRESH, "', 'tiny-float32-2'), or make");
  follow_the_error(db, REFRESH);
  assert_runs(db, REFRESH);
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
  assert_error_says(db, NEAREST("x"),
                    "it was made with the model tiny from %s in float32, and tiny from %s in bf16 "
                    "gives other vectors; load the first one: SELECT bert_load('%s', "
                    "'tiny-float32'), or make",
                    tiny_place, tiny_place, tiny_place);
  follow_the_error(db, NEAREST("x"));
  assert_answer(db, NEAREST("a red apple"), "4");
  assert_runs(db, REBUILD);
  assert_answer(db, NEAREST("a red apple"), "4");
  assert_answer(db, "SELECT precision FROM bert_status WHERE name = 'docs_emb'", "bf16");
  assert_runs(db, "SELECT bert_unload('tiny'), bert_unload('tiny-float32')");
  assert_answer(db, "SELECT precision FROM bert_status WHERE name = 'docs_emb'", "bf16");
  assert_error_says(db, NEAREST("x"),
                    "SELECT bert_load('%s', 'tiny', '{\"precision\": \"bf16\"}'). (the default "
                    "model opens in float32)",
                    tiny_place);
  assert_runs(db, "SELECT bert_load('" TINY_MODEL "', 'tiny')");
  assert_error(db, NEAREST("x"), "'tiny-bf16', '{\"precision\": \"bf16\"}'), or make");
  follow_the_error(db, NEAREST("x"));
  assert_answer(db, NEAREST("a red apple"), "4");
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
  char *expected = sqlite3_mprintf("24\n%s", other_place);
  assert_answer(db, "SELECT value FROM docs_emb_config WHERE key IN ('dim', 'source') ORDER BY key",
                expected);
  sqlite3_free(expected);
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

/* A search that fails leaves the connection as it was: the default model, which was looked
** at, is closed again, and the next one that is loaded is the default. */
static void a_search_that_fails_opens_no_model(void **state) {
  make_database(*state);
  sqlite3 *db = tabledb_open(*state);
  assert_runs(db, "CREATE VIRTUAL TABLE unnamed USING bertsql(body);"
                  "INSERT INTO unnamed(body) VALUES('x')");
  sqldb_close(db);
  setenv("BERTSQL_MODEL", OTHER_MODEL, 1);
  db = tabledb_open_modelless(*state);
  static const char *const searches[] = {NEAREST("x"),
                                         "SELECT rowid FROM unnamed WHERE unnamed MATCH 'x'"};
  for (int i = 0; i < 2; i++) {
    assert_error_says(db, searches[i],
                      "which is not loaded here: SELECT bert_load('%s', 'tiny'). (the default "
                      "model, %s in float32, gives other vectors)",
                      tiny_place, other_place);
    assert_answer(db, "SELECT count(*) FROM bert_models", "0");
  }
  follow_the_error(db, searches[1]);
  assert_answer(db, "SELECT name, is_default FROM bert_models", "tiny|1");
  assert_answer(db, searches[1], "1");
  sqldb_close(db);
}

/* A model in bf16 under the default model's name; and a model that is loaded is not
** passed over for the default one. */
static void the_default_model_is_float32(void **state) {
  setenv("BERTSQL_MODEL", TINY_MODEL, 1);
  sqlite3 *db = tabledb_open_modelless(*state);
  assert_runs(db, "SELECT bert_load('" TINY_MODEL "', 'bert-mean', '{\"precision\": \"bf16\"}');"
                  "CREATE VIRTUAL TABLE n USING bertsql(body, model='bert-mean');"
                  "INSERT INTO n(body) VALUES('x')");
  sqldb_close(db);
  db = tabledb_open_modelless(*state);
  assert_error(db, "SELECT rowid FROM n WHERE n MATCH 'x'",
               "', 'bert-mean', '{\"precision\": \"bf16\"}'). (the default model opens in "
               "float32)");
  assert_answer(db, "SELECT count(*) FROM bert_models", "0");
  assert_runs(db, "SELECT bert_load('" TINY_MODEL "', 'a', '{\"precision\": \"bf16\"}')");
  assert_answer(db, "SELECT rowid FROM n WHERE n MATCH 'x'", "1");
  assert_answer(db, "SELECT name FROM bert_models", "a");
  sqldb_close(db);
}

/* One weight that differs makes another model. */
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
  assert_runs(db, REBUILD "; UPDATE docs_emb_config SET value = 'x' WHERE key = 'fingerprint';"
                          "DELETE FROM docs_emb_config WHERE key IN ('model', 'precision')");
  assert_error(db, NEAREST("x"), "does not say which model made its vectors");
  assert_answer(db, "SELECT model, precision FROM bert_status WHERE name = 'docs_emb'",
                "NULL|NULL");
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
      IN_FOLDER(a_directory_is_recorded_by_its_absolute_path),
      IN_FOLDER(a_relative_path_that_was_recorded_is_kept),
      IN_FOLDER(a_hub_id_is_recorded_as_it_is),
      IN_FOLDER(what_the_source_gives_now_is_told_from_what_it_gave),
      IN_FOLDER(a_model_may_be_unloaded_while_it_is_recorded),
      IN_FOLDER(another_model_under_the_name_is_an_error),
      IN_FOLDER(another_precision_is_another_model),
      IN_FOLDER(rebuild_takes_the_new_model),
      IN_FOLDER(the_same_model_may_lie_elsewhere),
      IN_FOLDER(the_same_model_may_be_the_default_one),
      IN_FOLDER(a_search_that_fails_opens_no_model),
      IN_FOLDER(the_default_model_is_float32),
      IN_FOLDER(a_changed_model_is_another_one),
      IN_FOLDER(prompts_are_those_of_the_role),
      IN_FOLDER(a_newer_format_is_refused),
      IN_FOLDER(a_record_put_right_is_trusted_again),
      IN_FOLDER(a_record_without_a_model_asks_for_rebuild),
  };
  return cmocka_run_group_tests(tests, find_places, NULL);
}
