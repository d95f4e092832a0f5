/*
** test_ext_vtab_declare.c: CREATE VIRTUAL TABLE … USING bertsql(…): what may be
** declared, what is refused and with which words, and that a refused table leaves
** nothing behind.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tabledb.h"

static int open_memory(void **state) {
  sqlite3 *db = tabledb_open(NULL);
  assert_runs(db, "CREATE TABLE docs(id INTEGER PRIMARY KEY, title TEXT, body TEXT COLLATE NOCASE,"
                  " grp INTEGER);"
                  "INSERT INTO docs VALUES(1, 'one', 'time flies', 7), (2, 'two', NULL, 8)");
  *state = db;
  return 0;
}

static int close_memory(void **state) {
  sqldb_close(*state);
  return 0;
}

/* ---- What may be declared ---------------------------------------------------- */

/* The declared columns, then hidden ones. */
static void assert_columns(sqlite3 *db, const char *table, const char *expected) {
  char *sql = sqlite3_mprintf("SELECT name || ' ' || type FROM pragma_table_info(%Q)", table);
  assert_answer(db, sql, expected);
  sqlite3_free(sql);
}

static void every_form_is_read(void **state) {
  static const char *const forms[] = {
      "body",
      "body, title, lang UNINDEXED",
      "body TEXT, price REAL UNINDEXED, n INTEGER UNINDEXED",
      "title, body VARCHAR(200) unindexed",
      "body, ", /* SQLite itself passes over an empty argument */
      ", body,,",
      "body DECIMAL(10, 2)",
      "'body', \"title\", [lang] UNINDEXED, `more`",
      "body, model='tiny'",
      "body, MODEL = \"tiny\"",
      "body, model=tiny",
      "body, model=[tiny]",
      "body,\n  model\t=\n'tiny'\n",
      "model='tiny', body",
      "body, kind='query'",
      "body, kind='passage'",
      "body, kind=document",
      "body, prompt='search: '",
      "body, prompt=''",
      "body, prompt='it''s'",
      "body, dims=8",
      "body, dims='32'",
      "body, dims=1",
      "body, max_tokens=10",
      "body, max_tokens=66",
      "body, dtype=float32",
      "body, dtype='INT8'",
      "body, metric=cosine",
      "body, metric='l2'",
      "body, metric='dot'",
      "body, chunk_tokens=8",
      "body, chunk_tokens=8, overlap=0",
      "body, chunk_tokens=8, overlap=2, all_chunks=1",
      "body, chunk_tokens=8, all_chunks=0",
      "body, triggers=0, auto=0",
      "body -- the text\n, model='tiny' /* the small one */",
      "body /* the text */ TEXT, lang /* of it */ UNINDEXED",
      "body, model = /* the small one */ 'tiny'",
      "body, model /* the small one */ = 'tiny'",
  };
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    char *sql = sqlite3_mprintf("CREATE VIRTUAL TABLE t USING bertsql(%s)", forms[i]);
    assert_runs(*state, sql);
    sqlite3_free(sql);
    assert_tables(*state, "t", "t t_config t_content t_packed t_queue t_rows t_vectors");
    assert_runs(*state, "DROP TABLE t");
    assert_tables(*state, "t", "(no rows)");
  }
}

static void every_form_with_content_is_read(void **state) {
  static const char *const forms[] = {
      "body, content='docs'",
      "body, content=docs",
      "BODY, Title UNINDEXED, content=\"DOCS\"",
      "body, content='docs', content_rowid='id'",
      "body, content='docs', content_rowid=ID",
      "body, content='docs', auto=1",
      "body, content='docs', triggers=1, auto=1",
      "content='docs', title, body, grp UNINDEXED, triggers='1', metric=dot, dtype=int8, dims=7",
  };
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    char *sql = sqlite3_mprintf("CREATE VIRTUAL TABLE t USING bertsql(%s)", forms[i]);
    assert_runs(*state, sql);
    sqlite3_free(sql);
    assert_tables(*state, "t", "t t_config t_packed t_queue t_rows t_vectors");
    assert_answer(*state, "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'",
                  strstr(forms[i], "triggers") != NULL ? "3" : "0");
    assert_runs(*state, "INSERT INTO t(t) VALUES('refresh'); DROP TABLE t");
    assert_answer(*state, "SELECT count(*) FROM sqlite_schema", "1");
  }
}

static void columns_have_the_types_they_were_given(void **state) {
  assert_runs(*state, "CREATE VIRTUAL TABLE t USING bertsql(body, title VARCHAR(20), n INTEGER "
                      "UNINDEXED, x UNINDEXED)");
  assert_columns(*state, "t", "body \ntitle VARCHAR(20)\nn INTEGER\nx ");
  assert_runs(*state, "INSERT INTO t(body, title, n, x) VALUES('a', 5, '7', 7.5)");
  assert_answer(*state, "SELECT typeof(body), typeof(title), typeof(n), typeof(x) FROM t",
                "text|text|integer|real");
  assert_runs(*state, "CREATE VIRTUAL TABLE u USING bertsql(Body, grp UNINDEXED, content='docs')");
  assert_columns(*state, "u", "Body TEXT\ngrp INTEGER");
  assert_runs(*state, "INSERT INTO u(u) VALUES('refresh')");
  assert_answer(*state, "SELECT rowid FROM u WHERE body = 'TIME FLIES'", "1");
}

/* As NULL for an argument, NULL without quotes is the default. */
static void null_is_the_default(void **state) {
  assert_runs(*state, "CREATE VIRTUAL TABLE t USING bertsql(body, model=NULL, kind=null, "
                      "prompt = NULL , dims=NULL, max_tokens=NULL, dtype=NULL, metric=Null, "
                      "chunk_tokens=NULL, overlap=NULL, all_chunks=NULL, triggers=NULL, auto=NULL, "
                      "content=NULL, content_rowid=NULL);"
                      "INSERT INTO t(body) VALUES('time flies')");
  assert_answer(*state,
                "SELECT distance < 1e-6, embedding = bert_embed('time flies'), model FROM t, "
                "bert_status WHERE t MATCH 'time flies'",
                "1|1|tiny");
}

/* Hidden columns stand behind the declared ones, in one order. */
static void hidden_columns_are_those_of_the_contract(void **state) {
  assert_runs(*state, "CREATE VIRTUAL TABLE t USING bertsql(body, model='tiny')");
  assert_answer(*state,
                "SELECT group_concat(name || ' ' || hidden, ', ') FROM pragma_table_xinfo('t')",
                "body 0, t 1, k 1, distance 1, embedding 1, chunk 1, start 1, stop 1, n_tokens 1, "
                "truncated 1, status 1");
}

/* ---- Names ---------------------------------------------------------------- */

/* Makes, fills, asks and drops a table called `name` with a column `column`. */
static void use_names(sqlite3 *db, const char *schema, const char *name, const char *column) {
  char *sql = sqlite3_mprintf(
      "CREATE VIRTUAL TABLE \"%w\".\"%w\" USING bertsql(\"%w\", model='tiny');"
      "INSERT INTO \"%w\".\"%w\"(rowid, \"%w\") VALUES(5, 'time flies'), (6, 'a red apple');"
      "SELECT rowid, \"%w\" FROM \"%w\".\"%w\" WHERE \"%w\" MATCH 'time flies' AND k = 1",
      schema, name, column, schema, name, column, column, schema, name, name);
  assert_answer(db, sql, "5|time flies");
  sqlite3_free(sql);
  sql = sqlite3_mprintf("INSERT INTO \"%w\".\"%w\"(\"%w\") VALUES('integrity-check');"
                        "UPDATE \"%w\".\"%w\" SET \"%w\" = 'more' WHERE rowid = 6;"
                        "ALTER TABLE \"%w\".\"%w\" RENAME TO \"%w 2\";"
                        "INSERT INTO \"%w\".\"%w 2\"(\"%w 2\") VALUES('rebuild');"
                        "DELETE FROM \"%w\".\"%w 2\";",
                        schema, name, name, schema, name, column, schema, name, name, schema, name,
                        name, schema, name);
  assert_runs(db, sql);
  sqlite3_free(sql);
  sql = sqlite3_mprintf("SELECT name, schema FROM bert_status");
  char *row = sqlite3_mprintf("%s 2|%s", name, schema);
  assert_answer(db, sql, row);
  sqlite3_free(row);
  sqlite3_free(sql);
  sql = sqlite3_mprintf("DROP TABLE \"%w\".\"%w 2\"; SELECT count(*) FROM \"%w\".sqlite_schema",
                        schema, name, schema);
  assert_answer(db, sql, "0");
  sqlite3_free(sql);
}

static const char *const odd_names[] = {"two words", "it's",      "a \"quote\"", "select",  "_",
                                        "ünïcödé",   "[brackets", "100%",        "a,b(c)",  "@rows",
                                        "a_content", "ROWS",      "\"",          "new.old", "; --"};

static void odd_names_work(void **state) {
  static const char *const schemas[] = {"main", "aux 'x' \"y\"", "under_score"};
  sqlite3 *db = *state;
  assert_runs(db, "DROP TABLE docs; ATTACH ':memory:' AS \"aux 'x' \"\"y\"\"\";"
                  "ATTACH ':memory:' AS under_score");
  for (size_t i = 0; i < sizeof odd_names / sizeof odd_names[0]; i++)
    for (size_t j = 0; j < sizeof schemas / sizeof schemas[0]; j++)
      use_names(db, schemas[j], odd_names[i], "body");
  for (size_t i = 0; i < sizeof odd_names / sizeof odd_names[0]; i++)
    use_names(db, "main", "t", odd_names[i]);
}

static void odd_names_of_content_work(void **state) {
  sqlite3 *db = *state;
  for (size_t i = 0; i < sizeof odd_names / sizeof odd_names[0]; i++) {
    const char *n = odd_names[i];
    char *sql =
        sqlite3_mprintf("CREATE TABLE \"c%w\"(\"k%w\" INTEGER PRIMARY KEY, \"%w\" TEXT);"
                        "CREATE VIRTUAL TABLE \"t%w\" USING bertsql(\"%w\", content=\"c%w\", "
                        "content_rowid=\"k%w\", triggers=1);"
                        "INSERT INTO \"c%w\" VALUES(3, 'time flies'), (4, 'a red apple');"
                        "INSERT INTO \"t%w\"(\"t%w\") VALUES('refresh');"
                        "UPDATE \"c%w\" SET \"%w\" = 'x', \"k%w\" = 5 WHERE \"k%w\" = 3;"
                        "INSERT INTO \"t%w\"(\"t%w\") VALUES('refresh');"
                        "SELECT rowid FROM \"t%w\" WHERE \"t%w\" MATCH 'x' AND k = 1",
                        n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n);
    assert_answer(db, sql, "5");
    sqlite3_free(sql);
  }
}

/* ---- What is refused ------------------------------------------------------- */

typedef struct refusal {
  const char *arguments, *part; /* part: of the error's text */
} refusal;

/* Each is refused with its words, and nothing is left, in a transaction or not. */
static void assert_refused(sqlite3 *db, const refusal *refusals, size_t count) {
  sqlite3_int64 objects = sqldb_number(db, "SELECT count(*) FROM sqlite_schema");
  for (size_t i = 0; i < count; i++) {
    char *sql = sqlite3_mprintf("CREATE VIRTUAL TABLE t USING bertsql(%s)", refusals[i].arguments);
    assert_error(db, sql, refusals[i].part);
    assert_int_equal(sqldb_number(db, "SELECT count(*) FROM sqlite_schema"), objects);
    assert_runs(db, "BEGIN; CREATE TABLE kept(x)");
    assert_error(db, sql, refusals[i].part);
    assert_runs(db, "COMMIT");
    assert_int_equal(sqldb_number(db, "SELECT count(*) FROM sqlite_schema"), objects + 1);
    assert_runs(db, "DROP TABLE kept; CREATE TABLE t_rows(x); DROP TABLE t_rows");
    sqlite3_free(sql);
  }
}
#define REFUSED(db, list) assert_refused(db, list, sizeof(list) / sizeof((list)[0]))

static void options_are_refused(void **state) {
  static const refusal refusals[] = {
      {"body, colour='red'",
       "t: there is no option colour; the options are content, content_rowid, model, kind, prompt, "
       "dims, max_tokens, dtype, metric, chunk_tokens, overlap, all_chunks, triggers, auto, as in "
       "CREATE VIRTUAL TABLE docs_emb USING bertsql(title, body, content='docs')"},
      {"body, metric='l2', METRIC='l2'", "option METRIC is given twice"},
      {"body, dims=8, model='tiny', dims=8", "option dims is given twice"},
      {"body, model='nobody'", "nobody"},
      {"body, model=''", "option model is empty"},
      {"body, content=''", "option content is empty"},
      {"body, kind='haiku'", "haiku"},
      {"body, kind='query', prompt='x'", "options kind and prompt exclude each other"},
      {"body, dims=0", "option dims must be an integer of at least 1, not 0"},
      {"body, dims=-3", "option dims must be an integer of at least 1, not -3"},
      {"body, dims='x'", "option dims must be an integer of at least 1, not x"},
      {"body, dims=8.0", "option dims must be an integer of at least 1, not 8.0"},
      {"body, dims=99999999999999999999", "option dims must be an integer"},
      {"body, dims=", "option dims must be an integer"},
      {"body, dims=33", "32"},
      {"body, dtype=float16",
       "option dtype must be float32 or int8, not float16; it is how vectors are stored, and the "
       "precision that a model computes in is an option of bert_load, as in SELECT bert_load("},
      {"body, precision='bf16'",
       "t: there is no option precision: the precision that a model computes in is an option of "
       "bert_load, as in SELECT bert_load('models/all-MiniLM-L6-v2', 'fast', '{\"precision\": "
       "\"bf16\"}'); the options are content, "},
      {"body, model=NULL, model=tiny", "option model is given twice"},
      {"body, model='NULL'", "no model \"NULL\" is loaded; the names are tiny"},
      {"body, model=NULLs", "no model \"NULLs\" is loaded"},
      {"body, metric=cos", "option metric must be cosine, l2 or dot, not cos"},
      {"body, metric=''", "option metric must be"},
      {"body, max_tokens=0", "option max_tokens must be an integer of at least 1"},
      {"body, max_tokens=1", "max_tokens"},
      {"body, max_tokens=67", "66"},
      {"body, chunk_tokens=2", "chunk"},
      {"body, chunk_tokens=67", "66"},
      {"body, chunk_tokens=65", "64"}, /* the model would cut each chunk */
      {"body, chunk_tokens=20, max_tokens=10", "10"},
      {"body, chunk_tokens=8, overlap=6", "overlap"},
      {"body, chunk_tokens=8, overlap=-1", "option overlap must be an integer of at least 0"},
      {"body, overlap=1", "need chunk_tokens"},
      {"body, all_chunks=1", "need chunk_tokens"},
      {"body, chunk_tokens=8, all_chunks=2", "option all_chunks must be 0 or 1, not 2"},
      {"body, triggers=1", "are for a table with content="},
      {"body, auto=1", "are for a table with content="},
      {"body, triggers=yes", "option triggers must be 0 or 1, not yes"},
      {"body, content_rowid='id'", "option content_rowid needs option content"},
      {"body, prompt=two words", "put the value of option prompt in quotes: prompt='…'"},
      {"body, prompt='a' 'b'", "the value of option prompt must be one text in quotes"},
  };
  REFUSED(*state, refusals);
}

static void columns_are_refused(void **state) {
  static const refusal refusals[] = {
      {"", "there is no column with a text to embed; the form is CREATE VIRTUAL TABLE"},
      {"model='tiny'", "there is no column with a text to embed"},
      {"lang UNINDEXED", "there is no column with a text to embed"},
      {"''", "cannot read the argument that is empty"},
      {"(body)", "cannot read the argument (body)"},
      {"*", "cannot read the argument *"},
      {"k", "a column cannot be called k, which is a hidden column of every bertsql table: k, "
            "distance, embedding, chunk, start, stop, n_tokens, truncated and status are"},
      {"body, \"Distance\"", "a column cannot be called Distance"},
      {"embedding", "a column cannot be called embedding"},
      {"chunk", "a column cannot be called chunk"},
      {"start", "a column cannot be called start"},
      {"stop", "a column cannot be called stop"},
      {"n_tokens", "a column cannot be called n_tokens"},
      {"truncated UNINDEXED", "a column cannot be called truncated"},
      {"body, status", "a column cannot be called status"},
      {"T", "a column cannot have the name of the table, which stands for MATCH and commands"},
      {"rowid", "a column cannot be called rowid"},
      {"body, oid", "a column cannot be called oid"},
      {"_ROWID_", "a column cannot be called _ROWID_"},
      {"body, title, BODY", "column BODY is there twice"},
      {"body, body UNINDEXED", "column body is there twice"},
      {"body NOT NULL",
       "column body: a name may be followed by a type and by UNINDEXED, not by NOT"},
      {"body TEXT DEFAULT 'x'", "not by DEFAULT"},
      {"body COLLATE NOCASE", "not by COLLATE"},
      {"body TEXT PRIMARY KEY", "not by PRIMARY"},
      {"body UNIQUE", "not by UNIQUE"},
      {"body UNINDEXED TEXT", "nothing may follow UNINDEXED"},
      {"body UNINDEXED UNINDEXED", "nothing may follow UNINDEXED"},
      {"body 'x'", "column body: a name may be followed"},
      {"body TEXT, content='docs'", "has the type that it has in docs"},
  };
  REFUSED(*state, refusals);
}

static void content_is_refused(void **state) {
  static const refusal refusals[] = {
      {"body, content='nowhere'", "there is no table nowhere in main"},
      {"body, content='main.docs'", "there is no table main.docs in main"},
      {"body, content='nokey'", "content table nokey has no INTEGER PRIMARY KEY"},
      {"body, content='textkey'", "content table textkey has no INTEGER PRIMARY KEY"},
      {"body, content='intkey'", "content table intkey has no INTEGER PRIMARY KEY"},
      {"body, content='twokeys'", "content table twokeys has no INTEGER PRIMARY KEY"},
      {"body, content='falling'", "content table falling has no INTEGER PRIMARY KEY"},
      {"body, content='without'", "content table without has no INTEGER PRIMARY KEY"},
      {"body, content='trap'", "content table trap has no INTEGER PRIMARY KEY"},
      {"body, content='view'", "view"},
      {"body, content='words'", "words"},
      {"body, content='t'", "option content names the table itself"},
      {"body, content='docs', content_rowid='rowid'",
       "content_rowid='rowid' is not the INTEGER PRIMARY KEY of docs, which is id"},
      {"body, content='docs', content_rowid='title'", "which is id"},
      {"nothing, content='docs'", "content table docs has no column nothing"},
      {"body, nothing UNINDEXED, content='docs'", "content table docs has no column nothing"},
      {"body, content='docs', model='nobody', triggers=1", "nobody"},
      {"body, content='docs', chunk_tokens=2, triggers=1", "chunk"},
  };
  assert_runs(*state, "CREATE TABLE nokey(body); CREATE TABLE textkey(id TEXT PRIMARY KEY, body);"
                      "CREATE TABLE intkey(id INT PRIMARY KEY, body);"
                      "CREATE TABLE twokeys(id INTEGER, b INTEGER, body, PRIMARY KEY(id, b));"
                      "CREATE TABLE falling(id INTEGER PRIMARY KEY DESC, body);"
                      "CREATE TABLE without(id INTEGER PRIMARY KEY, body) WITHOUT ROWID;"
                      "CREATE TABLE trap(id INTEGER PRIMARY KEY, body, rowid) WITHOUT ROWID;"
                      "CREATE VIEW view AS SELECT * FROM docs;"
                      "CREATE VIRTUAL TABLE words USING fts5(body)");
  REFUSED(*state, refusals);
}

/* A table that is in the way is an error, and stays what it was. */
static void a_name_that_is_taken_is_refused(void **state) {
  static const char *const suffixes[] = {"config", "rows", "vectors", "packed", "content", "queue"};
  for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
    char *sql = sqlite3_mprintf("CREATE TABLE t_%s(mine); INSERT INTO t_%s VALUES(1)", suffixes[i],
                                suffixes[i]);
    assert_runs(*state, sql);
    sqlite3_free(sql);
    assert_error(*state, "CREATE VIRTUAL TABLE t USING bertsql(body)", suffixes[i]);
    sql = sqlite3_mprintf("SELECT mine FROM t_%s; DROP TABLE t_%s", suffixes[i], suffixes[i]);
    assert_answer(*state, sql, "1");
    sqlite3_free(sql);
    assert_answer(*state, "SELECT group_concat(name) FROM sqlite_schema", "docs");
  }
  assert_runs(*state, "CREATE VIRTUAL TABLE t USING bertsql(body, model='tiny')");
  assert_error(*state, "CREATE VIRTUAL TABLE t USING bertsql(body)", "already exists");
  assert_runs(*state, "CREATE VIRTUAL TABLE IF NOT EXISTS t USING bertsql(body);"
                      "INSERT INTO t(body) VALUES('x')");
  assert_sound(*state, "t");
}

/* No model anywhere: the error says the ways to one. */
static void a_table_needs_a_model(void **state) {
  sqlite3 *db = tabledb_open_modelless(*state);
  assert_error(db, "CREATE VIRTUAL TABLE t USING bertsql(body)", "BERTSQL_MODEL");
  assert_error(db, "CREATE VIRTUAL TABLE t USING bertsql(body, model='tiny')", "tiny");
  assert_answer(db, "SELECT count(*) FROM sqlite_schema", "0");
  sqldb_close(db);
}

/* The table's name is that of a hidden column, so no other one may have it. */
static void table_names_are_refused(void **state) {
  static const char *const names[] = {"k",      "Distance", "embedding", "chunk",
                                      "start",  "stop",     "n_tokens",  "truncated",
                                      "status", "rowid",    "OID",       "_rowid_"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char *sql = sqlite3_mprintf("CREATE VIRTUAL TABLE %s USING bertsql(body)", names[i]);
    char *part = sqlite3_mprintf("a table cannot be called %s", names[i]);
    assert_error(*state, sql, part);
    sqlite3_free(part);
    sqlite3_free(sql);
    assert_answer(*state, "SELECT count(*) FROM sqlite_schema", "1");
  }
}

static void an_eponymous_use_is_refused(void **state) {
  assert_error(*state, "SELECT * FROM bertsql", "no such table");
}

int main(void) {
#define WITH_MEMORY(f) cmocka_unit_test_setup_teardown(f, open_memory, close_memory)
  const struct CMUnitTest tests[] = {
      WITH_MEMORY(every_form_is_read),
      WITH_MEMORY(every_form_with_content_is_read),
      WITH_MEMORY(columns_have_the_types_they_were_given),
      WITH_MEMORY(null_is_the_default),
      WITH_MEMORY(hidden_columns_are_those_of_the_contract),
      WITH_MEMORY(odd_names_work),
      WITH_MEMORY(odd_names_of_content_work),
      WITH_MEMORY(options_are_refused),
      WITH_MEMORY(columns_are_refused),
      WITH_MEMORY(content_is_refused),
      WITH_MEMORY(a_name_that_is_taken_is_refused),
      WITH_MEMORY(table_names_are_refused),
      WITH_MEMORY(an_eponymous_use_is_refused),
      cmocka_unit_test_setup_teardown(a_table_needs_a_model, tabledb_set_up, tabledb_tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
