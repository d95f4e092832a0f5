/*
** test_ext_vtab_memory.c: allocations of everything that a virtual table does fail,
** one alone and one with all that follow.
**
** A statement then does all it should, where the memory was for nothing needful, or
** answers SQLITE_NOMEM and has done nothing. The table is sound, the connection
** works on, and at the end nothing is left over.
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
#include "tabledb.h"

/* What is done to tables, and how it is seen whether it was done. */
typedef struct sweep {
  const char *before; /* run first, with all memory; NULL: nothing */
  const char *sql;    /* runs without */
  const char *state;  /* answers otherwise when it was done; NULL: sql changes nothing */
  const char *table;  /* to be found sound */
} sweep;

/* ---- One attempt ------------------------------------------------------------ */

/* Mixes all values of all rows into *digest, with no memory but SQLite's. */
static int run(sqlite3 *db, const char *sql, uint64_t *digest) {
  int rc = SQLITE_OK;
  *digest = 1469598103934665603u;
  while (rc == SQLITE_OK && *sql != 0) {
    sqlite3_stmt *s = NULL;
    rc = sqlite3_prepare_v2(db, sql, -1, &s, &sql);
    while (rc == SQLITE_OK && s != NULL && (rc = sqlite3_step(s)) == SQLITE_ROW) {
      for (int i = 0; i < sqlite3_column_count(s); i++) {
        const unsigned char *bytes = sqlite3_column_blob(s, i);
        int size = sqlite3_column_bytes(s, i);
        for (int j = 0; bytes != NULL && j < size; j++)
          *digest = (*digest ^ bytes[j]) * 1099511628211u;
        *digest = (*digest ^ (uint64_t)size) * 1099511628211u;
      }
      rc = SQLITE_OK;
    }
    if (rc == SQLITE_DONE) rc = SQLITE_OK;
    int end = sqlite3_finalize(s);
    if (rc == SQLITE_OK) rc = end;
  }
  return rc;
}

static int is_nomem(int rc) {
  return (rc & 0xff) == SQLITE_NOMEM || rc == SQLITE_IOERR_NOMEM;
}

/* What a sweep's state must be before and after, and its rows. */
typedef struct expectation {
  char *undone, *done;
  uint64_t rows;
  long requests;
} expectation;

static void prepare_attempt(sqlite3 *db, const sweep *s) {
  if (!sqlite3_get_autocommit(db)) assert_runs(db, "ROLLBACK");
  if (s->before != NULL) assert_runs(db, s->before);
}

static void check_attempt(sqlite3 *db, const sweep *s, const expectation *e, int rc, uint64_t rows,
                          long k) {
  if (!sqlite3_get_autocommit(db)) assert_runs(db, "ROLLBACK");
  if (rc == SQLITE_OK && rows != e->rows) fail_msg("%s\n  other rows at allocation %ld", s->sql, k);
  if (s->state != NULL) assert_answer(db, s->state, rc == SQLITE_OK ? e->done : e->undone);
  if (s->table != NULL) assert_sound(db, s->table);
}

/* Allocation k fails. */
static void attempt(sqlite3 *db, const sweep *s, const expectation *e, long k, int persistent) {
  uint64_t rows;
  prepare_attempt(db, s);
  failing_memory_begin(k, persistent);
  int rc = run(db, s->sql, &rows);
  long failed = failing_memory_end(NULL);
  if (rc != SQLITE_OK && (failed == 0 || !is_nomem(rc)))
    fail_msg("%s\n  allocation %ld of %ld%s: %d, %s", s->sql, k, e->requests,
             persistent ? " and all after it" : "", rc, sqlite3_errmsg(db));
  check_attempt(db, s, e, rc, rows, k);
}

/* ---- All attempts ------------------------------------------------------------- */

static expectation expect(sqlite3 *db, const sweep *s) {
  expectation e = {NULL, NULL, 0, 0};
  prepare_attempt(db, s);
  if (s->state != NULL) e.undone = sqldb_answer(db, s->state, NULL);
  failing_memory_begin(0, 0);
  if (run(db, s->sql, &e.rows) != SQLITE_OK) fail_msg("%s\n  %s", s->sql, sqlite3_errmsg(db));
  failing_memory_end(&e.requests);
  if (s->state != NULL) e.done = sqldb_answer(db, s->state, NULL);
  if (s->state != NULL) assert_string_not_equal(e.undone, e.done);
  return e;
}

/* Of long statements not every allocation fails, but as many as `most`, and other ones
** alone than with all that follow. Under valgrind, which is much slower, fewer. */
static void sweep_allocations(sqlite3 *db, const sweep *s, long most) {
  expectation e = expect(db, s);
  long step = e.requests / (most / dice_size(1, 60)) + 1;
  for (int persistent = 0; persistent <= 1; persistent++)
    for (long k = 1 + persistent * (step / 2); k <= e.requests + 1; k += step)
      attempt(db, s, &e, k, persistent);
  attempt(db, s, &e, 0, 0);
  sqlite3_free(e.undone);
  sqlite3_free(e.done);
}

enum { MOST = 300 };

/* Each sweep on tables of its own; nothing may be left of them. */
static void sweep_all(const char *make, const sweep *sweeps, size_t count) {
  long before = failing_memory_blocks();
  for (size_t i = 0; i < count; i++) {
    sqlite3 *db = tabledb_open(NULL);
    tabledb_make_docs(db, ", triggers=1");
    assert_runs(db, "CREATE VIRTUAL TABLE notes USING bertsql(body, lang UNINDEXED, model='tiny');"
                    "INSERT INTO notes(body, lang) VALUES('time flies', 'en'), (NULL, 'xx'), "
                    "('a red apple', 'en')");
    if (make != NULL) assert_runs(db, make);
    sweep_allocations(db, &sweeps[i], MOST);
    sqldb_close(db);
    assert_int_equal(failing_memory_blocks(), before);
  }
}
#define SWEEP(make, list) sweep_all(make, list, sizeof(list) / sizeof((list)[0]))

#define SCHEMA "SELECT group_concat(name) FROM (SELECT name FROM sqlite_schema ORDER BY name)"
#define STORED                                                                                     \
  "SELECT group_concat(rowid || coalesce(body, '') || coalesce(hex(embedding), '')) FROM notes;"   \
  "SELECT count(*) FROM notes_queue"
#define DOCS "SELECT group_concat(rowid || coalesce(hex(embedding), '')) FROM docs_emb"

#define FRESH                                                                                      \
  "DELETE FROM notes; INSERT INTO notes(rowid, body) VALUES(1, 'time flies'), (2, NULL), (3, 'z')"

/* A fresh encoder, so that its memory is asked for anew. */
#define RELOAD "SELECT bert_unload('tiny'); SELECT bert_load('" TINY_MODEL "', 'tiny');"

static void creating_and_dropping(void **state) {
  (void)state;
  static const sweep sweeps[] = {
      {"DROP TABLE IF EXISTS t", "CREATE VIRTUAL TABLE t USING bertsql(body, lang UNINDEXED)",
       SCHEMA, "notes"},
      {"DROP TABLE IF EXISTS t",
       "CREATE VIRTUAL TABLE t USING bertsql(body, content='docs', triggers=1, chunk_tokens=8, "
       "overlap=2, prompt='p', dtype=int8)",
       SCHEMA, "notes"},
      {"CREATE VIRTUAL TABLE IF NOT EXISTS t USING bertsql(body, content='docs', triggers=1)",
       "DROP TABLE t", SCHEMA, "docs_emb"},
      {"CREATE VIRTUAL TABLE IF NOT EXISTS t USING bertsql(body); INSERT INTO t(body) VALUES('x')",
       "DROP TABLE t", SCHEMA, "docs_emb"}};
  SWEEP(NULL, sweeps);
}

static void renaming(void **state) {
  (void)state;
  static const sweep sweeps[] = {
      {FRESH,
       "BEGIN; INSERT INTO notes(body) VALUES('x'); ALTER TABLE notes RENAME TO n;"
       "INSERT INTO n(body) VALUES('y'); ALTER TABLE n RENAME TO notes; COMMIT",
       STORED, "notes"},
      {FRESH,
       "BEGIN; INSERT INTO notes(body) VALUES('x'); SAVEPOINT s; ALTER TABLE notes RENAME TO "
       "n; ROLLBACK TO s; COMMIT",
       STORED, "notes"},
      {"DROP TABLE IF EXISTS e; DROP TABLE IF EXISTS e2; CREATE VIRTUAL TABLE e USING "
       "bertsql(body, "
       "content='docs', triggers=1)",
       "ALTER TABLE e RENAME TO e2", SCHEMA, "docs_emb"}};
  SWEEP(NULL, sweeps);
}

static void writing(void **state) {
  (void)state;
  static const sweep sweeps[] = {
      {RELOAD FRESH, "INSERT INTO notes(body, lang) VALUES('one', 'en')", STORED, "notes"},
      {FRESH,
       "BEGIN; INSERT INTO notes(body, lang) VALUES('one', 'en'), ('two', 1), (NULL, NULL); COMMIT",
       STORED, "notes"},
      {FRESH,
       "BEGIN; INSERT INTO notes(body) VALUES('one'); SAVEPOINT s; INSERT INTO notes(body) "
       "VALUES('two'); ROLLBACK TO s; SELECT rowid FROM notes WHERE notes MATCH 'two' AND "
       "k = 2; COMMIT",
       STORED, "notes"},
      {FRESH, "INSERT OR REPLACE INTO notes(rowid, body) VALUES(3, 'new'), (4, 'newer')", STORED,
       "notes"},
      {FRESH, "UPDATE notes SET body = body || 'x', lang = 'de'", STORED, "notes"},
      {FRESH, "UPDATE OR REPLACE notes SET rowid = 3 WHERE rowid = 1", STORED, "notes"},
      {FRESH, "DELETE FROM notes WHERE rowid <> 2", STORED, "notes"}};
  SWEEP(NULL, sweeps);
}

static void commands(void **state) {
  (void)state;
#define CHANGED                                                                                    \
  "UPDATE docs SET body = 'old ' || id; INSERT INTO docs_emb(docs_emb) VALUES('refresh');"         \
  "UPDATE docs SET body = 'text ' || id; DELETE FROM docs WHERE id = 4; INSERT INTO docs(id, "     \
  "body) "                                                                                         \
  "VALUES(4, 'four');"
  static const sweep sweeps[] = {
      {CHANGED, "INSERT INTO docs_emb(docs_emb) VALUES('refresh')", DOCS, "docs_emb"},
      {RELOAD CHANGED, "INSERT INTO docs_emb(docs_emb, k) VALUES('refresh', 2)", DOCS, "docs_emb"},
      {CHANGED, "INSERT INTO docs_emb(docs_emb) VALUES('rebuild')", DOCS, "docs_emb"},
      {"DROP TRIGGER docs_emb_queue_update;" CHANGED,
       "INSERT INTO docs_emb(docs_emb) "
       "VALUES('refresh')",
       DOCS, "docs_emb"},
      {NULL, "INSERT INTO docs_emb(docs_emb) VALUES('integrity-check')", NULL, "docs_emb"},
      {NULL, "INSERT INTO notes(notes) VALUES('integrity-check')", NULL, "notes"},
      {NULL, "SELECT * FROM bert_status", NULL, "notes"}};
  SWEEP(NULL, sweeps);
}

static void long_texts(void **state) {
  (void)state;
  static const sweep sweeps[] = {
      {"DELETE FROM c",
       "INSERT INTO c(body) VALUES(replace(hex(zeroblob(40)), '0', 'time flies '))",
       "SELECT count(*) FROM c_vectors", "c"},
      {"DELETE FROM c; INSERT INTO c(body) VALUES(replace(hex(zeroblob(40)), '0', 'time flies ')), "
       "('time')",
       "SELECT rowid, distance, chunk, start, stop, n_tokens FROM c WHERE c MATCH 'time'", NULL,
       "c"}};
  SWEEP("CREATE VIRTUAL TABLE c USING bertsql(body, chunk_tokens=12, overlap=4, dtype=int8)",
        sweeps);
}

/* The table is opened anew, as on a new connection. */
#define REOPEN "PRAGMA writable_schema = RESET"

static void reading(void **state) {
  (void)state;
  static const sweep sweeps[] = {
      {REOPEN, "SELECT rowid, * FROM notes", NULL, NULL},
      {REOPEN, "SELECT rowid, * FROM docs_emb WHERE rowid IN (1, 2) ORDER BY rowid DESC", NULL,
       NULL},
      {NULL,
       "SELECT rowid, body, distance, embedding, chunk, start, stop, n_tokens, truncated, status "
       "FROM notes",
       NULL, "notes"},
      {RELOAD, "SELECT rowid, body, distance FROM notes WHERE notes MATCH 'time' AND k = 2", NULL,
       "notes"},
      {NULL, "SELECT rowid, embedding FROM docs_emb WHERE docs_emb MATCH bert_embed('fruit')", NULL,
       "docs_emb"},
      {NULL,
       "SELECT rowid FROM notes WHERE notes MATCH '[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8,1,2,3,4,5,6,"
       "7,8,1,2,3,4,5,6,7,8]' LIMIT 2",
       NULL, "notes"},
      {NULL,
       "SELECT rowid FROM notes WHERE notes MATCH 'time' AND k = 3 AND lang = 'en' AND rowid IN "
       "(1, 3, 5) AND distance < 3",
       NULL, "notes"},
      {NULL,
       "SELECT d.title FROM docs_emb AS e JOIN docs AS d ON d.id = e.rowid WHERE docs_emb MATCH "
       "'apple' AND k = 3 AND e.body LIKE '%a%' ORDER BY distance",
       NULL, "docs_emb"},
      {"UPDATE docs SET body = 'old'; INSERT INTO a(a) VALUES('refresh'); UPDATE docs SET body = "
       "'text ' || id",
       "SELECT rowid FROM a WHERE a MATCH 'apple' AND k = 2", NULL, "a"}};
  SWEEP("CREATE VIRTUAL TABLE a USING bertsql(body, content='docs', auto=1)", sweeps);
}

/* A search that is refused, for which the default model is opened and closed again. */
static void refusing(void **state) {
  (void)state;
  static const char search[] = "SELECT rowid FROM n WHERE n MATCH 'x'";
  long before = failing_memory_blocks();
  sqlite3 *db = tabledb_open(NULL);
  uint64_t rows;
  long requests;
  assert_runs(db, "CREATE VIRTUAL TABLE n USING bertsql(body); INSERT INTO n(body) VALUES('x');"
                  "SELECT bert_unload('tiny')");
  setenv("BERTSQL_MODEL", OTHER_MODEL, 1);
  failing_memory_begin(0, 0);
  assert_int_equal(run(db, search, &rows), SQLITE_ERROR);
  failing_memory_end(&requests);
  long step = requests / (MOST / dice_size(1, 60)) + 1;
  for (int persistent = 0; persistent <= 1; persistent++)
    for (long k = 1 + persistent * (step / 2); k <= requests + 1; k += step) {
      failing_memory_begin(k, persistent);
      int rc = run(db, search, &rows);
      long failed = failing_memory_end(NULL);
      if (rc != SQLITE_ERROR && (failed == 0 || !is_nomem(rc)))
        fail_msg("allocation %ld of %ld: %d, %s", k, requests, rc, sqlite3_errmsg(db));
      assert_answer(db, "SELECT count(*) FROM bert_models", "0");
    }
  assert_error(db, search, "gives other vectors");
  setenv("BERTSQL_MODEL", "no/such/model", 1);
  assert_runs(db, "SELECT bert_load('" TINY_MODEL "', 'tiny')");
  assert_sound(db, "n");
  sqldb_close(db);
  assert_int_equal(failing_memory_blocks(), before);
}

/* More than a block of vectors. */
static void packing(void **state) {
  (void)state;
  static const sweep sweeps[] = {
      {"DELETE FROM big_packed", "INSERT INTO big(big) VALUES('optimize')",
       "SELECT count(*) FROM big_packed", NULL},
      {"SELECT bert_set('search_cache', 0); SELECT bert_set('search_cache', 1)",
       "SELECT rowid, distance FROM big WHERE big MATCH 'w500' AND k = 20", NULL, NULL},
      {NULL, "SELECT rowid, distance FROM big WHERE big MATCH 'w500' AND rowid < 300 LIMIT 5", NULL,
       NULL},
      {NULL, "INSERT INTO big(big) VALUES('integrity-check')", NULL, "big"},
      {"DELETE FROM big WHERE rowid > 1100; DELETE FROM big_packed",
       "BEGIN; INSERT INTO big(body) "
       "VALUES('y'); COMMIT",
       "SELECT count(*) FROM big_packed", NULL}};
  SWEEP(
      "CREATE VIRTUAL TABLE big USING bertsql(body); INSERT INTO big(body) WITH n(i) AS (SELECT 1 "
      "UNION ALL SELECT i + 1 FROM n WHERE i < 1100) SELECT 'w' || i FROM n",
      sweeps);
}

int main(void) {
  setenv("BERTSQL_MODEL", "no/such/model", 1);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(creating_and_dropping),
      cmocka_unit_test(renaming),
      cmocka_unit_test(writing),
      cmocka_unit_test(commands),
      cmocka_unit_test(long_texts),
      cmocka_unit_test(reading),
      cmocka_unit_test(refusing),
      cmocka_unit_test(packing),
  };
  return cmocka_run_group_tests(tests, failing_memory_install, NULL);
}
