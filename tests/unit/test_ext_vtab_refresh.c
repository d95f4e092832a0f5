/*
** test_ext_vtab_refresh.c: refresh and rebuild of a virtual table with content=:
** which rows are embedded anew, slices, triggers, rows that are refused, and what
** is left after an interrupt or a rollback.
**
** Which rows were embedded is seen from the ids of vectors: a row that is embedded
** gets new ones.
*/
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "checkpoint.h"
#include "dice.h"
#include "scratch.h"
#include "sqldb.h"

#define SMALL "tests/golden/families/bert-mean" /* 32 numbers, 64 tokens, fast */
#define REFRESH "INSERT INTO e(e) VALUES('refresh');"
#define SLICE(k) "INSERT INTO e(e, k) VALUES('refresh', " #k ");"
#define CHECK "INSERT INTO e(e) VALUES('integrity-check');"
#define PENDING "SELECT pending FROM bert_status WHERE name = 'e'"
#define ROWS "SELECT group_concat(row || ':' || first || '+' || count, ' ') FROM e_rows"

/* Ten documents, of which 4 has no text and 5 an empty one. */
#define DOCS                                                                                       \
  "CREATE TABLE docs(id INTEGER PRIMARY KEY, title TEXT, body TEXT, code TEXT UNIQUE);"            \
  "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) INSERT INTO docs "           \
  "SELECT i, NULL, CASE i WHEN 4 THEN NULL WHEN 5 THEN '' ELSE 'library ' || i END, 'c' || i "     \
  "FROM n;"
#define TABLE(options)                                                                             \
  "CREATE VIRTUAL TABLE e USING bertsql(title, body, content='docs'" options ");"

static sqlite3 *open_small(const char *path) {
  sqlite3 *db = sqldb_open(path);
  assert_runs(db, "SELECT bert_load('" SMALL "', 'small')");
  return db;
}

static sqlite3 *open_docs(const char *table) {
  sqlite3 *db = open_small(NULL);
  assert_runs(db, DOCS);
  assert_runs(db, table);
  return db;
}

/* ---- What is stored ------------------------------------------------------- */

static void test_first_refresh(void **state) {
  sqlite3 *db = open_docs(TABLE());
  assert_rows(db, PENDING, "10");
  assert_runs(db, REFRESH CHECK);
  assert_rows(db, PENDING, "0");
  assert_rows(db, ROWS, "1:1+1 2:2+1 3:3+1 4:0+0 5:4+1 6:5+1 7:6+1 8:7+1 9:8+1 10:9+1");
  assert_rows(db, "SELECT count(hash), count(error), min(length(hash)) FROM e_rows", "9|0|16");
  assert_rows(
      db,
      "SELECT sum(chunk), sum(start), sum(truncated), count(DISTINCT vector), "
      "max(abs(stop - length(body))), max(abs(tokens - bert_token_count(body))), "
      "max(bert_l2(vector, bert_embed(body)) > 1e-6) FROM e_vectors v JOIN docs d ON d.id = row",
      "0|0|0|9|0|0|0");
  sqldb_close(db);
}

static void test_joined_columns(void **state) {
  sqlite3 *db = open_docs(TABLE());
  assert_runs(db,
              "UPDATE docs SET title = 'django' WHERE id = 1; UPDATE docs SET title = 12 WHERE id "
              "= 4; UPDATE docs SET title = x'6100ff' WHERE id = 5;" REFRESH CHECK);
  assert_rows(
      db,
      "SELECT row, stop, bert_l2(vector, bert_embed('django' || char(10) || 'library 1')) < "
      "1e-6 FROM e_vectors WHERE row = 1",
      "1|16|1");
  assert_rows(db, "SELECT row, stop FROM e_vectors WHERE row IN (4, 5)", "4|2 5|4");
  sqldb_close(db);
}

static void test_int8(void **state) {
  sqlite3 *db = open_docs(TABLE(", dtype=int8"));
  sqlite3_stmt *s;
  assert_runs(db, REFRESH CHECK);
  s = sqldb_prepare(db,
                    "SELECT vector, bert_embed(body) FROM e_vectors v JOIN docs d ON d.id = row");
  while (sqlite3_step(s) == SQLITE_ROW) {
    const unsigned char *blob = sqlite3_column_blob(s, 0);
    const float *x = sqlite3_column_blob(s, 1);
    float scale, largest = 0;
    assert_int_equal(sqlite3_column_bytes(s, 0), 4 + 32);
    memcpy(&scale, blob, 4);
    for (int i = 0; i < 32; i++) {
      largest = fmaxf(largest, fabsf(x[i]));
      assert_true(fabsf((float)(int8_t)blob[4 + i] * scale - x[i]) <= 0.501f * scale);
    }
    assert_float_equal(largest, 127 * scale, 1e-6);
  }
  sqlite3_finalize(s);
  sqldb_close(db);
}

/* ---- Only what changed ---------------------------------------------------- */

static void test_only_changed_rows(void **state) {
  sqlite3 *db = open_docs(TABLE());
  assert_runs(db, REFRESH);
  assert_runs(db, REFRESH);
  assert_rows(db, "SELECT max(id), count(*) FROM e_vectors", "9|9");
  assert_runs(
      db, "UPDATE docs SET body = body, code = 'x' || id; UPDATE docs SET body = 'tools' WHERE id "
          "= 2; UPDATE docs SET body = 'now' WHERE id = 4; UPDATE docs SET body = NULL WHERE id = "
          "5; DELETE FROM docs WHERE id = 6; INSERT INTO docs(body) VALUES('new');");
  assert_rows(db, PENDING, "5");
  assert_runs(db, REFRESH CHECK);
  assert_rows(db, PENDING, "0");
  assert_rows(db, ROWS, "1:1+1 2:10+1 3:3+1 4:11+1 5:0+0 7:6+1 8:7+1 9:8+1 10:9+1 11:12+1");
  sqldb_close(db);
}

static void test_no_model_is_needed_for_nothing(void **state) {
  sqlite3 *db = open_docs(TABLE());
  assert_runs(db,
              REFRESH "SELECT bert_unload('small'); SELECT bert_load('models/all-MiniLM-L6-v2', "
                      "'other'); DELETE FROM docs WHERE id = 1;");
  assert_rows(db, PENDING, "1");
  assert_runs(db, REFRESH CHECK);
  assert_runs(db, "UPDATE docs SET body = 'x' WHERE id = 2");
  assert_rows(db, PENDING, "1");
  assert_error(db, REFRESH, "small");
  assert_rows(db, "SELECT count(*), max(id) FROM e_vectors", "8|9");
  sqldb_close(db);
}

static void test_rebuild(void **state) {
  sqlite3 *db = open_docs(TABLE());
  assert_runs(db,
              REFRESH "UPDATE docs SET body = 'x' WHERE id = 2; DELETE FROM docs WHERE id = 3;");
  assert_runs(db, "INSERT INTO e(e) VALUES('rebuild');" CHECK);
  assert_rows(db, PENDING, "0");
  assert_rows(db, "SELECT count(*), min(id), max(id) FROM e_vectors", "8|1|8");
  /* With another model: the vectors have its length from then on. */
  assert_runs(db,
              "SELECT bert_unload('small'); SELECT bert_load('models/all-MiniLM-L6-v2', 'large'); "
              "INSERT INTO e(e) VALUES('rebuild');" CHECK);
  assert_rows(db, "SELECT DISTINCT length(vector) FROM e_vectors", "1536");
  sqldb_close(db);
}

static void test_orphans_of_replace(void **state) {
  sqlite3 *db = open_docs(TABLE(", triggers=1"));
  assert_runs(db,
              REFRESH "INSERT OR REPLACE INTO docs(id, body, code) VALUES(50, 'usurper', 'c7')");
  assert_rows(db, "SELECT row FROM e_queue", "50");
  assert_rows(db, PENDING, "2");
  assert_runs(db, REFRESH CHECK);
  assert_rows(db, "SELECT row FROM e_vectors WHERE row IN (7, 50)", "50");
  assert_rows(db, PENDING, "0");
  sqldb_close(db);
}

static void test_extreme_rows(void **state) {
  sqlite3 *db = open_docs(TABLE(", triggers=1"));
  assert_runs(db, "INSERT INTO docs(id, body) VALUES(-9223372036854775807 - 1, 'least'), "
                  "(9223372036854775807, 'most'), (0, 'zero');" REFRESH CHECK);
  assert_rows(db, PENDING, "0");
  assert_rows(db, "SELECT count(*) FROM e_vectors", "12");
  assert_runs(db,
              "UPDATE docs SET body = 'x' WHERE abs(id / 2) > 1000 OR id = 0;" SLICE(1) SLICE(1));
  assert_rows(db, PENDING, "1");
  assert_runs(db, SLICE(1) CHECK);
  assert_rows(db, PENDING, "0");
  assert_rows(db, "SELECT count(*) FROM e_queue", "0");
  sqldb_close(db);
}

/* ---- Slices --------------------------------------------------------------- */

static void test_slices(void **state) {
  sqlite3 *db = open_docs(TABLE());
  assert_runs(db, SLICE(4));
  assert_rows(db, PENDING, "6");
  assert_rows(db, "SELECT value FROM e_config WHERE key = 'swept'", "4");
  assert_runs(db, SLICE(4));
  assert_rows(db, PENDING, "2");
  /* Behind the sweep: found by the one after it. */
  assert_runs(db, "UPDATE docs SET body = 'changed' WHERE id = 1;" SLICE(4) CHECK);
  assert_rows(db, "SELECT count(*) FROM e_config WHERE key = 'swept'", "0");
  assert_rows(db, PENDING, "1");
  assert_runs(db, SLICE(4));
  assert_rows(db, PENDING, "0");
  assert_rows(db, ROWS, "1:10+1 2:2+1 3:3+1 4:0+0 5:4+1 6:5+1 7:6+1 8:7+1 9:8+1 10:9+1");
  sqldb_close(db);
}

static void test_exact_slice_ends_the_sweep(void **state) {
  sqlite3 *db = open_docs(TABLE());
  assert_runs(db, SLICE(10));
  assert_rows(db, PENDING, "0");
  assert_rows(db, "SELECT count(*) FROM e_config WHERE key = 'swept'", "0");
  sqldb_close(db);
}

static void test_refresh_without_limit_begins_anew(void **state) {
  sqlite3 *db = open_docs(TABLE());
  assert_runs(db, SLICE(4) "UPDATE docs SET body = 'changed' WHERE id = 1;" REFRESH CHECK);
  assert_rows(db, PENDING, "0");
  sqldb_close(db);
}

static void test_slices_with_triggers(void **state) {
  sqlite3 *db = open_docs(TABLE(", triggers=1"));
  assert_runs(db, SLICE(4));
  assert_runs(db,
              "UPDATE docs SET body = 'changed' WHERE id IN (1, 2); DELETE FROM docs WHERE id = 3; "
              "INSERT INTO docs(id, body) VALUES(0, 'new')");
  assert_rows(db, PENDING, "10"); /* 6 of the sweep, 1, 2, 0, and the orphan 3 */
  assert_runs(db, SLICE(6));
  assert_rows(db, "SELECT count(*) FROM e_rows WHERE row = 3", "0");
  assert_rows(db, PENDING, "3");
  assert_runs(db, SLICE(1));
  assert_rows(db, PENDING, "2");
  assert_rows(db, "SELECT value FROM e_config WHERE key = 'complete'", "1");
  assert_runs(db, SLICE(1));
  assert_rows(db, PENDING, "1");
  assert_runs(db, SLICE(1) CHECK);
  assert_rows(db, PENDING, "0");
  assert_rows(db, "SELECT count(*) FROM e_queue", "0");
  assert_rows(
      db,
      "SELECT min(v.vector = bert_embed(body) OR bert_l2(v.vector, bert_embed(body)) < 1e-6) "
      "FROM docs d JOIN e_vectors v ON v.row = d.id",
      "1");
  sqldb_close(db);
}

/* ---- Triggers ------------------------------------------------------------- */

/* A throw-away directory for a database. */
static char *new_directory(void) {
  return scratch_copy(SMALL "/1_Pooling");
}

static void test_writers_without_bertsql(void **state) {
  char *directory = new_directory();
  char path[600];
  sqlite3 *plain = NULL;
  snprintf(path, sizeof path, "%s/t.db", directory);
  sqlite3 *db = open_small(path);
  assert_runs(db, DOCS TABLE(", triggers=1") REFRESH);
  assert_int_equal(sqlite3_open(path, &plain), SQLITE_OK);
  sqlite3_db_config(plain, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  assert_runs(plain,
              "PRAGMA trusted_schema = OFF; UPDATE docs SET body = 'changed' WHERE id = 1; UPDATE "
              "docs SET code = 'other' WHERE id = 2; UPDATE docs SET id = 33 WHERE id = 3; DELETE "
              "FROM docs WHERE id = 6; INSERT INTO docs(id, body) VALUES(20, 'new') ON "
              "CONFLICT(id) DO NOTHING; INSERT INTO docs(id, body) VALUES(7, 'x') ON CONFLICT(id) "
              "DO UPDATE SET body = excluded.body;");
  assert_error(plain, "SELECT * FROM e", "no such module");
  assert_rows(db, "SELECT group_concat(row) FROM (SELECT DISTINCT row FROM e_queue ORDER BY row)",
              "1,3,6,7,20,33");
  assert_rows(db, PENDING, "6");
  assert_runs(db, REFRESH CHECK);
  assert_rows(db, PENDING, "0");
  assert_rows(db, ROWS, "1:10+1 2:2+1 4:0+0 5:4+1 7:11+1 8:7+1 9:8+1 10:9+1 20:12+1 33:13+1");
  sqlite3_close(plain);
  sqldb_close(db);
  scratch_free(directory);
}

static void test_queue_rolls_back(void **state) {
  sqlite3 *db = open_docs(TABLE(", triggers=1") REFRESH);
  assert_runs(
      db, "BEGIN; UPDATE docs SET body = 'x' WHERE id = 1; SAVEPOINT a; UPDATE docs SET body = 'y' "
          "WHERE id = 2;" REFRESH);
  assert_rows(db, "SELECT count(*), max(id) FROM e_vectors", "9|11");
  assert_runs(db, "ROLLBACK TO a");
  assert_rows(db, "SELECT row FROM e_queue", "1 1");
  assert_runs(db, REFRESH CHECK "ROLLBACK;" CHECK);
  assert_rows(db, "SELECT count(*), max(id) FROM e_vectors", "9|9");
  assert_rows(db, PENDING, "0");
  sqldb_close(db);
}

static void test_missing_triggers_are_made(void **state) {
  sqlite3 *db = open_docs(TABLE(", triggers=1") REFRESH);
  assert_runs(
      db, "DROP TRIGGER e_queue_update; UPDATE docs SET body = 'untold' WHERE id = 9; UPDATE docs "
          "SET body = 'untold too' WHERE id = 2;");
  assert_rows(db, PENDING, "2");
  assert_runs(db, SLICE(1));
  assert_rows(db, PENDING, "1");
  assert_rows(db, "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'", "3");
  assert_runs(db, "UPDATE docs SET body = 'told' WHERE id = 1;");
  assert_rows(db, PENDING, "2");
  assert_runs(db, REFRESH CHECK);
  assert_rows(db, PENDING, "0");
  /* A content table that is made anew has lost all its triggers. */
  assert_runs(db,
              "DROP TABLE docs; CREATE TABLE docs(id INTEGER PRIMARY KEY, title TEXT, body TEXT); "
              "INSERT INTO docs(body) VALUES('library 1'), ('b');");
  assert_rows(db, PENDING, "10");
  assert_runs(db, REFRESH CHECK "INSERT INTO docs(body) VALUES('told');");
  assert_rows(db, "SELECT count(*) FROM e_rows", "2");
  assert_rows(db, "SELECT row FROM e_queue", "3");
  sqldb_close(db);
}

/* ---- Chunks --------------------------------------------------------------- */

static void test_chunks(void **state) {
  sqlite3 *db = open_docs(TABLE(", chunk_tokens=8, overlap=2"));
  assert_runs(
      db, "UPDATE docs SET body = 'python with library package tool data agent from model server "
          "simple client' WHERE id = 2;" REFRESH CHECK);
  assert_rows(db, "SELECT count FROM e_rows WHERE row IN (1, 2, 4, 5)", "1 3 0 1");
  assert_rows(db,
              "SELECT min(c.start = v.start AND c.stop = v.stop AND c.n_tokens = v.tokens AND "
              "bert_l2(v.vector, bert_embed(c.text)) < 1e-6), count(*) FROM docs d, "
              "bert_chunks(d.body, 8, 2) c JOIN e_vectors v ON v.row = d.id AND v.chunk = c.chunk",
              "1|11");
  /* A text of a thousand chunks, over many batches, between others. */
  assert_runs(
      db,
      "WITH RECURSIVE t(n, s) AS (SELECT 1, 'python with library package tool data ' UNION ALL "
      "SELECT n + 1, s || s FROM t WHERE n < 11) UPDATE docs SET body = (SELECT s FROM t WHERE n "
      "= 11) WHERE id = 3; UPDATE docs SET body = 'after' WHERE id = 5;" REFRESH CHECK);
  assert_rows(
      db,
      "SELECT count(*) = (SELECT count(*) FROM bert_chunks((SELECT body FROM docs WHERE id = 3), "
      "8, 2)) FROM e_vectors WHERE row = 3",
      "1");
  assert_true(sqldb_number(db, "SELECT count FROM e_rows WHERE row = 3") > 1000);
  assert_rows(db, "SELECT bert_l2(vector, bert_embed('after')) < 1e-6 FROM e_vectors WHERE row = 5",
              "1");
  sqldb_close(db);
}

/* A text is cut in windows of 256 KB: its chunks are those of the whole. */
static void test_chunks_of_a_long_text(void **state) {
  static const struct long_text {
    int tokens, overlap, rows; /* of n, which the text is made from */
    const char *text;
  } texts[] = {
      /* words of many kinds, with runs of spaces and lines */
      {60, 20, 24000,
       "SELECT group_concat(substr('unpackageable-analytically', (i * 7) % 20, i % 9) || "
       "((i * 7919) % 10007) || substr('. ,  ' || char(10, 10), i % 7), ' ') FROM n"},
      /* words that are cut between their tokens */
      {20, 4, 4000,
       "SELECT group_concat(substr('frameworkapplicationintegrationserverlibrarypackage' || "
       "'commandfunctionmoduleplugindjangowrapper', 1 + (i % 23)), ' ') FROM n"},
      /* words so long that they are one unknown token, but not where a window cuts them */
      {9, 3, 2600, "SELECT group_concat(replace(hex(zeroblob(50)), '00', 'abc') || i, ' ') FROM n"},
      /* no spaces at all */
      {64, 0, 101000, "SELECT group_concat(char(0x4e00 + i % 5000), '') FROM n"},
      /* a long run without spaces, then words */
      {64, 10, 3000,
       "SELECT replace(hex(zeroblob(110000)), '00', 'ab,') || (SELECT group_concat('word' "
       "|| i, ' ') FROM "
       "n)"}};
  /* Under valgrind only the one that has the fewest tokens. */
  enum { TEXTS = sizeof texts / sizeof texts[0] };
  for (int i = dice_size(0, 2); i < TEXTS; i += dice_size(1, TEXTS)) {
    const struct long_text *t = &texts[i];
    char sql[900];
    sqlite3 *db = open_small(NULL);
    assert_runs(
        db, "CREATE TABLE docs(id INTEGER PRIMARY KEY, title, body); INSERT INTO docs VALUES(1, "
            "'before', NULL), (2, NULL, NULL), (3, 'after', NULL)");
    sqlite3_snprintf(
        sizeof sql, sql,
        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) UPDATE docs SET body "
        "= (%s) WHERE id = 2;" TABLE(", chunk_tokens=%d, overlap=%d") REFRESH CHECK
        "CREATE TABLE right AS SELECT * FROM bert_chunks((SELECT body FROM docs WHERE id = 2), %d, "
        "%d)",
        t->rows, t->text, t->tokens, t->overlap, t->tokens, t->overlap);
    assert_runs(db, sql);
    assert_true(sqldb_number(db, "SELECT max(length(CAST(body AS BLOB))) FROM docs") > 300000);
    assert_rows(
        db,
        "SELECT (SELECT count(*) FROM e_vectors WHERE row = 2) - (SELECT count(*) FROM right), "
        "count(*) - sum(r.start = v.start AND r.stop = v.stop AND r.n_tokens = v.tokens) FROM "
        "right r "
        "JOIN e_vectors v USING (chunk) WHERE row = 2",
        "0|0");
    assert_rows(db, "SELECT row, count(*) FROM e_vectors WHERE row <> 2 GROUP BY row", "1|1 3|1");
    sqldb_close(db);
  }
}

/* ---- Rows that are refused ------------------------------------------------- */

/* Opens a model in which the word "django" is damaged. */
static sqlite3 *open_damaged(char **copy, const char *table) {
  sqlite3 *db = sqldb_open(NULL);
  char sql[700];
  *copy = scratch_copy(SMALL);
  snprintf(sql, sizeof sql, "SELECT bert_load('%s', 'damaged')", *copy);
  sqlite3 *sound = open_small(NULL);
  sqlite3_int64 word = sqldb_number(sound, "SELECT id FROM bert_tokens('django') WHERE pos = 1");
  sqldb_close(sound);
  checkpoint_spoil(*copy, "embeddings.word_embeddings.weight", (size_t)word * 32, NAN);
  assert_runs(db, sql);
  assert_runs(db, DOCS "UPDATE docs SET body = 'use django' WHERE id IN (3, 8);");
  assert_runs(db, table);
  return db;
}

static void test_refused_rows(void **state) {
  char *copy;
  sqlite3 *db = open_damaged(&copy, TABLE());
  assert_runs(db, REFRESH CHECK);
  assert_rows(db, PENDING, "0");
  assert_rows(db, "SELECT failed FROM bert_status", "2");
  assert_rows(
      db,
      "SELECT row, count, length(hash), error LIKE 'the embedding is not a finite number%' FROM "
      "e_rows WHERE error IS NOT NULL",
      "3|0|16|1 8|0|16|1");
  assert_rows(db, "SELECT count(*) FROM e_vectors", "7");
  assert_rows(
      db,
      "SELECT min(bert_l2(vector, bert_embed(body)) < 1e-6) FROM e_vectors v JOIN docs d ON d.id "
      "= row",
      "1");
  /* Tried again when the text changes, and not before. */
  assert_runs(db, "UPDATE docs SET body = 'better' WHERE id = 3;" REFRESH CHECK);
  assert_rows(db, "SELECT row FROM e_rows WHERE error IS NOT NULL", "8");
  assert_runs(db, "INSERT INTO e(e) VALUES('rebuild');" CHECK);
  assert_rows(db, "SELECT row FROM e_rows WHERE error IS NOT NULL", "8");
  /* A good row that goes bad loses its vector. */
  assert_runs(db, "UPDATE docs SET body = 'django' WHERE id = 1;" REFRESH CHECK);
  assert_rows(db, "SELECT count(*) FROM e_vectors WHERE row = 1", "0");
  sqldb_close(db);
  scratch_free(copy);
}

static void test_refused_chunk(void **state) {
  char *copy;
  sqlite3 *db = open_damaged(&copy, TABLE(", chunk_tokens=5"));
  assert_runs(
      db, "UPDATE docs SET body = 'python with library package tool django agent from model' WHERE "
          "id = 2; UPDATE docs SET body = 'library' WHERE id IN (3, 8);" REFRESH CHECK);
  assert_rows(db, "SELECT row, count, substr(error, 1, 28) FROM e_rows WHERE error IS NOT NULL",
              "2|0|chunk 1: the embedding is no");
  assert_rows(db, "SELECT count(*) FROM e_vectors WHERE row = 1", "1");
  sqldb_close(db);
  scratch_free(copy);
}

static void test_all_rows_refused(void **state) {
  char *copy;
  sqlite3 *db = open_damaged(&copy, TABLE());
  assert_runs(db,
              "WITH n(i) AS (SELECT 11 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO "
              "docs(id) SELECT i FROM n; UPDATE docs SET body = 'django ' || id;" REFRESH CHECK);
  assert_rows(db, "SELECT count(*), count(error), count(DISTINCT hash) FROM e_rows", "300|300|300");
  assert_rows(db, "SELECT count(*) FROM e_vectors", "0");
  sqldb_close(db);
  scratch_free(copy);
}

/* ---- Progress ---------------------------------------------------------------- */

static void slow(sqlite3_context *context, int argc, sqlite3_value **argv) {
  struct timespec delay = {0, 30 * 1000 * 1000};
  nanosleep(&delay, NULL);
  sqlite3_result_value(context, argv[0]);
}

/* What a refresh writes on stderr, in text[size]. */
static void stderr_of_refresh(sqlite3 *db, char *text, size_t size) {
  FILE *file = tmpfile();
  int saved = dup(STDERR_FILENO);
  assert_non_null(file);
  fflush(stderr);
  dup2(fileno(file), STDERR_FILENO);
  assert_runs(db, REFRESH);
  fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  rewind(file);
  text[fread(text, 1, size - 1, file)] = 0;
  fclose(file);
}

static void test_progress(void **state) {
  for (int chunks = 0; chunks < 2; chunks++) {
    char text[4096];
    sqlite3 *db = open_small(NULL);
    sqlite3_create_function(db, "slow", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
                            NULL, slow, NULL, NULL);
    assert_runs(
        db,
        "CREATE TABLE docs(id INTEGER PRIMARY KEY, title, x, body AS (slow(x))); WITH n(i) AS "
        "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60) INSERT INTO docs(x) SELECT i FROM "
        "n; SELECT bert_set('threads', 1), bert_set('progress', 1)");
    assert_runs(db, chunks ? TABLE(", chunk_tokens=9") : TABLE());
    stderr_of_refresh(db, text, sizeof text);
    assert_non_null(strstr(text, chunks ? "\re: 60 chunks, " : "\re: 60 rows, "));
    assert_non_null(strstr(text, chunks ? " chunks/s\n" : " rows/s\n"));
    sqldb_close(db);
  }
}

/* ---- Interrupts, errors of SQLite ------------------------------------------- */

typedef struct stopper {
  sqlite3 *db;
  long calls, at;
} stopper;

/* A progress handler that interrupts at its call number `at`. */
static int stop_at(void *user) {
  stopper *s = user;
  if (++s->calls == s->at) sqlite3_interrupt(s->db);
  return 0;
}

/* Interrupts a refresh ever later. Each time all is as it was before; or, where
** a search goes on after its refresh, as `after` says. */
static void interrupt_everywhere(sqlite3 *db, const char *command, const char *after) {
  stopper s = {db, 0, 1};
  long stopped = 0;
  int rc = SQLITE_INTERRUPT;
  for (; rc != SQLITE_OK; s.at += 1 + s.at / 4) {
    s.calls = 0;
    sqlite3_progress_handler(db, 25, stop_at, &s);
    sqlite3_free(sqldb_answer(db, command, &rc));
    sqlite3_progress_handler(db, 0, NULL, NULL);
    if (rc == SQLITE_OK) break;
    assert_int_equal(rc, SQLITE_INTERRUPT);
    assert_int_equal(sqlite3_get_autocommit(db), 1);
    stopped++;
    char *now = sqldb_answer(db, "SELECT count(*), max(id) FROM e_vectors", NULL);
    if (strcmp(now, "9|9") != 0 && strcmp(now, after) != 0) fail_msg("%s are left", now);
    sqlite3_free(now);
    assert_runs(db, CHECK);
  }
  assert_true(stopped > 5);
}

static void test_interrupt(void **state) {
  sqlite3 *db =
      open_docs(TABLE() REFRESH "UPDATE docs SET body = body || ' more'; DELETE FROM docs WHERE id "
                                "= 10;");
  interrupt_everywhere(db, REFRESH, "");
  assert_runs(db, CHECK);
  assert_rows(db, PENDING, "0");
  sqldb_close(db);
}

static void test_interrupted_rebuild(void **state) {
  sqlite3 *db = open_docs(TABLE(", triggers=1") REFRESH);
  interrupt_everywhere(db, "INSERT INTO e(e) VALUES('rebuild')", "");
  assert_runs(db, CHECK);
  sqldb_close(db);
}

static void test_busy_and_readonly(void **state) {
  char *directory = new_directory();
  char path[600];
  int rc;
  sqlite3 *other = NULL, *reader;
  snprintf(path, sizeof path, "%s/t.db", directory);
  sqlite3 *db = open_small(path);
  assert_runs(db, DOCS TABLE() REFRESH "UPDATE docs SET body = 'x' WHERE id = 1");
  assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
  assert_runs(other, "BEGIN IMMEDIATE");
  sqlite3_free(sqldb_answer(db, REFRESH, &rc));
  assert_int_equal(rc, SQLITE_BUSY);
  assert_runs(other, "COMMIT");
  assert_int_equal(sqlite3_open_v2(path, &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  assert_int_equal(sqldb_load(reader, NULL, NULL), SQLITE_OK);
  assert_runs(reader, "SELECT bert_load('" SMALL "', 'small')");
  assert_rows(reader, PENDING, "1");
  assert_runs(reader, PENDING);
  sqlite3_free(sqldb_answer(reader, REFRESH, &rc));
  assert_int_equal(rc, SQLITE_READONLY);
  assert_runs(db, REFRESH CHECK);
  assert_rows(reader, PENDING, "0");
  sqlite3_close(reader);
  sqlite3_close(other);
  sqldb_close(db);
  scratch_free(directory);
}

#define SEARCH "SELECT count(*) AS n FROM e WHERE e MATCH 'library' AND k = 100"

/* The refresh before a MATCH happens as a whole or not at all, and leaves no
** transaction open. */
static void test_refresh_before_match(void **state) {
  sqlite3 *db = open_docs(TABLE(", auto=1"));
  assert_rows(db, SEARCH, "9");
  assert_int_equal(sqlite3_get_autocommit(db), 1);
  assert_runs(db, "UPDATE docs SET body = body || ' more'; DELETE FROM docs WHERE id = 10;");
  interrupt_everywhere(db, SEARCH, "8|16");
  assert_int_equal(sqlite3_get_autocommit(db), 1);
  assert_rows(db, PENDING, "0");
  assert_runs(db, "BEGIN; UPDATE docs SET body = 'x' WHERE id = 1;");
  assert_rows(db, SEARCH, "8");
  assert_int_equal(sqlite3_get_autocommit(db), 0);
  assert_rows(db, PENDING, "0");
  assert_runs(db, "ROLLBACK");
  assert_rows(db, PENDING, "0");
  assert_runs(
      db,
      "UPDATE docs SET body = 'y' WHERE id = 1; INSERT INTO docs(id) SELECT 70 + n FROM (" SEARCH
      ");" CHECK);
  assert_rows(db, PENDING, "1");
  assert_rows(db, "SELECT last_insert_rowid(), (" SEARCH ")", "78|8");
  assert_rows(db, "SELECT last_insert_rowid()", "78");
  assert_rows(db, PENDING, "0");
  assert_runs(db, "UPDATE docs SET body = 'z' WHERE id = 1; PRAGMA query_only = 1;");
  assert_rows(db, SEARCH, "8");
  assert_rows(db, PENDING, "1");
  sqldb_close(db);
}

/* A second connection rebuilds with a model of another width. */
static void test_rebuilt_elsewhere(void **state) {
  char *directory = new_directory();
  char path[600];
  snprintf(path, sizeof path, "%s/t.db", directory);
  sqlite3 *db = open_small(path);
  assert_runs(db, DOCS TABLE() REFRESH);
  sqlite3 *other = sqldb_open(path);
  assert_runs(other, "SELECT bert_load('models/all-MiniLM-L6-v2', 'small'); INSERT INTO e(e) "
                     "VALUES('rebuild')");
  assert_runs(db, CHECK);
  assert_runs(other, "UPDATE docs SET body = 'x'");
  assert_error(db, REFRESH, "gives other vectors");
  assert_runs(db, "BEGIN; INSERT INTO e(e) VALUES('rebuild'); " CHECK "ROLLBACK; " CHECK);
  sqldb_close(other);
  sqldb_close(db);
  scratch_free(directory);
}

/* ---- Wrong use -------------------------------------------------------------- */

static void test_wrong_use(void **state) {
  sqlite3 *db = open_docs(TABLE());
  assert_error(db, "INSERT INTO e(e) VALUES('refrsh')",
               "no command 'refrsh'; those there are: refresh, rebuild, optimize, integrity-check");
  assert_error(db, "INSERT INTO e(e) VALUES('refresh' || char(0) || 'x')", "no command");
  assert_error(db, "INSERT INTO e(e) VALUES(x'')", "no command");
  assert_error(db, "INSERT INTO e(e) VALUES(5)", "no command '5'");
  assert_error(db, SLICE(0), "whole number above 0");
  assert_error(db, SLICE(-1), "whole number above 0");
  assert_error(db, SLICE(1.5), "whole number above 0");
  assert_error(db, SLICE('many'), "whole number above 0");
  assert_error(db, "INSERT INTO e(e, k) VALUES('rebuild', 5)", "VALUES('refresh', 10000)");
  assert_error(db, "INSERT INTO e(e, k) VALUES('optimize', 5)", "VALUES('refresh', 10000)");
  assert_error(db, "INSERT INTO e(e, body) VALUES('refresh', 'x')", "stands alone");
  assert_error(db, "INSERT INTO e(rowid, e) VALUES(1, 'refresh')", "stands alone");
  assert_error(
      db, "INSERT INTO e(body) VALUES('x')",
      "e: it takes its texts from docs: write there, then INSERT INTO e(e) VALUES('refresh')");
  assert_runs(db, "INSERT INTO e(e) VALUES('REFRESH'); INSERT INTO e(e, k) VALUES('refresh', '5')");
  assert_error(db, "UPDATE e SET body = 'x'", "write there");
  assert_error(db, "DELETE FROM e", "write there");
  assert_runs(db, "ALTER TABLE docs RENAME TO papers");
  assert_error(db, REFRESH, "no content table docs");
  assert_error(db, "INSERT INTO e(e) VALUES('rebuild')", "no content table docs");
  assert_runs(db, CHECK
              "INSERT INTO e(e) VALUES('optimize'); ALTER TABLE papers RENAME TO docs;" REFRESH);
  sqldb_close(db);
}

static void test_last_insert_rowid(void **state) {
  sqlite3 *db = open_docs(TABLE());
  assert_runs(db, "INSERT INTO docs(id, body) VALUES(77, 'x');" REFRESH);
  assert_rows(db, "SELECT last_insert_rowid()", "77");
  sqldb_close(db);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_first_refresh),
      cmocka_unit_test(test_joined_columns),
      cmocka_unit_test(test_int8),
      cmocka_unit_test(test_only_changed_rows),
      cmocka_unit_test(test_no_model_is_needed_for_nothing),
      cmocka_unit_test(test_rebuild),
      cmocka_unit_test(test_orphans_of_replace),
      cmocka_unit_test(test_extreme_rows),
      cmocka_unit_test(test_slices),
      cmocka_unit_test(test_exact_slice_ends_the_sweep),
      cmocka_unit_test(test_refresh_without_limit_begins_anew),
      cmocka_unit_test(test_slices_with_triggers),
      cmocka_unit_test(test_writers_without_bertsql),
      cmocka_unit_test(test_queue_rolls_back),
      cmocka_unit_test(test_missing_triggers_are_made),
      cmocka_unit_test(test_chunks),
      cmocka_unit_test(test_chunks_of_a_long_text),
      cmocka_unit_test(test_refused_rows),
      cmocka_unit_test(test_refused_chunk),
      cmocka_unit_test(test_all_rows_refused),
      cmocka_unit_test(test_progress),
      cmocka_unit_test(test_interrupt),
      cmocka_unit_test(test_interrupted_rebuild),
      cmocka_unit_test(test_busy_and_readonly),
      cmocka_unit_test(test_refresh_before_match),
      cmocka_unit_test(test_rebuilt_elsewhere),
      cmocka_unit_test(test_wrong_use),
      cmocka_unit_test(test_last_insert_rowid),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
