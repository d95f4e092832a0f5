/*
** test_ext_vtab_content.c: whatever changes a row of the content table, conflict
** clauses and foreign keys included, refresh knows by the triggers.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tabledb.h"

#define PENDING "SELECT pending FROM bert_status WHERE name = 'docs_emb'"
#define REFRESH "INSERT INTO docs_emb(docs_emb) VALUES('refresh')"
#define QUEUE "SELECT group_concat(row) FROM (SELECT DISTINCT row FROM docs_emb_queue ORDER BY row)"

static int open_docs(void **state) {
  sqlite3 *db = tabledb_open(NULL);
  tabledb_make_docs(db, ", triggers=1");
  *state = db;
  return 0;
}

/* Whatever a test did, refresh has the rest done and all is as it should be. */
static int close_docs(void **state) {
  sqlite3 *db = *state;
  assert_runs(db, REFRESH);
  assert_answer(db, PENDING, "0");
  assert_answer(db, QUEUE, "NULL");
  assert_finds_itself(db, "docs_emb", "docs", "id", "body");
  assert_answer(db,
                "SELECT count(*) FROM docs_emb_vectors WHERE row NOT IN "
                "(SELECT id FROM docs WHERE body NOT NULL)",
                "0");
  assert_sound(db, "docs_emb");
  sqldb_close(db);
  return 0;
}

static void changes_are_queued(void **state) {
  assert_runs(*state, "INSERT INTO docs(id, body) VALUES(10, 'ten')");
  assert_answer(*state, QUEUE, "10");
  assert_runs(*state, REFRESH "; UPDATE docs SET body = 'two' WHERE id = 2");
  assert_answer(*state, QUEUE, "2");
  assert_runs(*state, REFRESH "; DELETE FROM docs WHERE id = 10");
  assert_answer(*state, QUEUE, "10");
  assert_runs(*state, REFRESH "; UPDATE docs SET id = 20 WHERE id = 2");
  assert_answer(*state, QUEUE, "2,20");
  assert_answer(*state, PENDING, "2");
}

static void other_columns_queue_nothing(void **state) {
  assert_runs(*state, "UPDATE docs SET title = 'x', grp = 5");
  assert_answer(*state, QUEUE, "NULL");
  assert_runs(*state, "UPDATE docs SET body = body, id = id");
  assert_answer(*state, QUEUE, "NULL");
  assert_runs(*state, "UPDATE docs SET body = 'x' WHERE id = 1; UPDATE docs SET body = "
                      "'time flies like an arrow' WHERE id = 1");
  assert_answer(*state, QUEUE, "1");
  assert_answer(*state, PENDING, "0"); /* the text is what it was */
}

/* Without recursive triggers REPLACE tells nobody what it deleted. */
static void replace_is_noticed(void **state) {
  for (int recursive = 0; recursive <= 1; recursive++) {
    assert_runs(*state,
                recursive ? "PRAGMA recursive_triggers = 1" : "PRAGMA recursive_triggers = 0");
    assert_runs(*state, "CREATE UNIQUE INDEX one_title ON docs(title);"
                        "INSERT OR REPLACE INTO docs(id, title, body) VALUES(30, 'two', 'instead');"
                        "UPDATE OR REPLACE docs SET title = 'one' WHERE id = 4;"
                        "UPDATE OR REPLACE docs SET id = 3 WHERE id = 30; " REFRESH);
    assert_answer(*state, "SELECT group_concat(rowid) FROM docs_emb WHERE embedding NOT NULL",
                  "3,4");
    assert_answer(*state, "SELECT group_concat(row) FROM docs_emb_vectors", "4,3");
    assert_runs(
        *state,
        "DROP INDEX one_title; DELETE FROM docs; INSERT INTO docs(id, title, body) "
        "VALUES(1, 'one', 'a'), (2, 'two', 'b'), (3, 'three', 'c'), (4, 'four', 'd');" REFRESH);
  }
}

static void foreign_keys_cascade_into_the_queue(void **state) {
  assert_runs(
      *state,
      "PRAGMA foreign_keys = 1; CREATE TABLE authors(id INTEGER PRIMARY KEY);"
      "INSERT INTO authors VALUES(1), (2); CREATE TABLE books(id INTEGER PRIMARY KEY, author "
      "REFERENCES authors ON DELETE CASCADE ON UPDATE CASCADE, text);"
      "INSERT INTO books VALUES(1, 1, 'time'), (2, 1, 'flies'), (3, 2, 'fruit');"
      "CREATE VIRTUAL TABLE b USING bertsql(text, content='books', triggers=1);"
      "INSERT INTO b(b) VALUES('refresh'); DELETE FROM authors WHERE id = 1");
  assert_rows(*state, "SELECT DISTINCT row FROM b_queue ORDER BY row", "1 2");
  assert_runs(*state, "INSERT INTO b(b) VALUES('refresh'); UPDATE authors SET id = 5");
  assert_answer(*state, "SELECT group_concat(rowid) FROM b WHERE b MATCH 'x'", "3");
  assert_answer(*state, "SELECT pending FROM bert_status WHERE name = 'b'", "0");
  assert_sound(*state, "b");
}

static void rolled_back_changes_are_not_queued(void **state) {
  assert_runs(*state,
              "BEGIN; UPDATE docs SET body = 'x'; SAVEPOINT s; DELETE FROM docs; ROLLBACK TO "
              "s; ROLLBACK");
  assert_answer(*state, QUEUE, "NULL");
  assert_error(*state, "INSERT INTO docs(id, body) VALUES(8, 'a'), (1, 'b')", "UNIQUE");
  assert_answer(*state, QUEUE, "NULL");
  assert_runs(*state, "INSERT OR IGNORE INTO docs(id, body) VALUES(8, 'a'), (1, 'b')");
  assert_answer(*state, QUEUE, "8");
}

/* Conflict clauses of the statement reach into triggers: the queue must take all. */
static void conflict_clauses_do_not_empty_the_queue(void **state) {
  assert_runs(*state,
              "UPDATE docs SET body = 'a' WHERE id = 1; UPDATE OR IGNORE docs SET body = 'b' "
              "WHERE id = 1; UPDATE OR REPLACE docs SET body = 'c' WHERE id < 3; INSERT INTO "
              "docs(id, body) VALUES(1, 'x') ON CONFLICT(id) DO UPDATE SET body = 'd'");
  assert_answer(*state, QUEUE, "1,2");
  assert_runs(*state, REFRESH);
  assert_answer(*state, "SELECT rowid FROM docs_emb WHERE docs_emb MATCH 'd' AND distance < 1e-5",
                "1");
}

/* A change of title is a change of a generated column that holds it. */
static void generated_columns_are_followed(void **state) {
  assert_runs(*state,
              "CREATE TABLE g(id INTEGER PRIMARY KEY, a TEXT, b TEXT, virt TEXT AS (a || ' ' "
              "|| b), kept TEXT AS (upper(a)) STORED); INSERT INTO g(a, b) VALUES('x', 'y');"
              "CREATE VIRTUAL TABLE e USING bertsql(virt, kept, content='g', triggers=1);"
              "INSERT INTO e(e) VALUES('refresh')");
  assert_answer(*state, "SELECT virt, kept FROM e", "x y|X");
  assert_runs(*state, "UPDATE g SET b = 'z'; INSERT INTO e(e) VALUES('refresh')");
  assert_answer(*state,
                "SELECT rowid FROM e WHERE e MATCH 'x z' || char(10) || 'X' AND "
                "distance < 1e-5",
                "1");
  assert_sound(*state, "e");
}

/* Two tables over one content have triggers of their own. */
static void two_tables_follow_one_content(void **state) {
  assert_runs(*state,
              "CREATE VIRTUAL TABLE second USING bertsql(title, content='docs', triggers=1, "
              "auto=1); UPDATE docs SET title = 'new', body = 'new'");
  assert_answer(*state, "SELECT name, pending FROM bert_status ORDER BY name",
                "docs_emb|4\nsecond|4");
  assert_answer(*state, "SELECT count(*) FROM second WHERE second MATCH 'new' AND distance < 1e-5",
                "4");
  assert_runs(*state, "DROP TABLE second; UPDATE docs SET body = 'newer'");
  assert_answer(*state, PENDING, "4");
}

/* A trigger that is gone: refresh looks at all rows again. */
static void a_missing_trigger_is_made_up_for(void **state) {
  assert_runs(*state, "DROP TRIGGER docs_emb_queue_update; UPDATE docs SET body = 'unseen' WHERE "
                      "id = 2; " REFRESH);
  assert_answer(*state, "SELECT rowid FROM docs_emb WHERE docs_emb MATCH 'unseen' AND k = 1", "2");
  assert_runs(*state, "UPDATE docs SET body = 'again' WHERE id = 1; " REFRESH);
  assert_answer(*state, "SELECT rowid FROM docs_emb WHERE docs_emb MATCH 'again' AND k = 1", "1");
}

/* Without triggers nobody tells; a trigger that is dropped makes up for it. */
static void triggers_may_be_switched_off(void **state) {
  sqlite3_db_config(*state, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
  assert_runs(*state,
              "UPDATE docs SET body = 'unseen' WHERE id = 2; DELETE FROM docs WHERE id = 1");
  sqlite3_db_config(*state, SQLITE_DBCONFIG_ENABLE_TRIGGER, 1, NULL);
  assert_answer(*state, QUEUE, "NULL");
  assert_answer(*state, "SELECT count(*) FROM docs_emb WHERE docs_emb MATCH 'x' AND rowid = 1",
                "0");
  assert_runs(*state, "DROP TRIGGER docs_emb_queue_update; " REFRESH);
  assert_answer(*state, "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'", "3");
}

/* The content table made anew takes the triggers with it. */
static void content_that_is_made_anew_is_followed(void **state) {
  assert_runs(*state, "CREATE TABLE copy AS SELECT * FROM docs; DROP TABLE docs");
  assert_error(*state, REFRESH, "there is no content table docs");
  assert_runs(*state,
              "CREATE TABLE docs(id INTEGER PRIMARY KEY, title, body, grp); INSERT INTO docs "
              "SELECT * FROM copy WHERE id > 1; UPDATE docs SET body = 'anew' WHERE id = 2");
  assert_runs(*state, REFRESH);
  assert_answer(*state, "SELECT rowid FROM docs_emb WHERE docs_emb MATCH 'anew' AND k = 1", "2");
  assert_answer(*state, "SELECT count(*) FROM docs_emb WHERE docs_emb MATCH 'anew'", "2");
}

/* The first query after it, of either kind, knows the key by its new name. */
static void a_renamed_key_is_followed(void **state) {
  static const char match[] =
      "SELECT rowid FROM docs_emb WHERE docs_emb MATCH 'a red apple' AND k = 1";
  assert_answer(*state, match, "4");
  assert_runs(*state, "ALTER TABLE docs RENAME COLUMN id TO number");
  assert_answer(*state, match, "4");
  assert_runs(*state, "ALTER TABLE docs RENAME COLUMN number TO key");
  assert_answer(*state, "SELECT body FROM docs_emb WHERE rowid = 4", "a red apple");
  assert_runs(*state,
              "ALTER TABLE docs RENAME COLUMN key TO number; ALTER TABLE docs ADD COLUMN key");
  assert_answer(*state, match, "4");
  assert_runs(*state,
              "ALTER TABLE docs RENAME COLUMN number TO id; ALTER TABLE docs DROP COLUMN key");
}

/* The type of a column is any text: it makes no columns of ours, and takes none. */
static void types_are_only_types(void **state) {
  static const char *const types[] = {"TEXT, more INTEGER", "TEXT); --",   "TEXT /*",
                                      "\"\"TEXT\"\"",       "VARCHAR(10)", "x'y",
                                      "PRIMARY KEY"};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    char *sql =
        sqlite3_mprintf("CREATE TABLE typed(id INTEGER PRIMARY KEY, body \"%s\")", types[i]);
    assert_runs(*state, sql);
    sqlite3_free(sql);
    assert_runs(*state, "CREATE VIRTUAL TABLE v USING bertsql(body, content='typed', auto=1);"
                        "INSERT INTO typed(body) VALUES('time flies'), ('a red apple')");
    assert_answer(*state, "SELECT count(*), sum(hidden) FROM pragma_table_xinfo('v')", "11|10");
    assert_error(*state, "INSERT INTO v(body) VALUES('x')", "it takes its texts from typed");
    assert_answer(*state, "SELECT body FROM v WHERE v MATCH 'time flies' AND k = 1", "time flies");
    assert_runs(*state, "DROP TABLE v; DROP TABLE typed");
  }
}

static void auto_refreshes_before_a_match(void **state) {
  assert_runs(*state, "CREATE VIRTUAL TABLE a USING bertsql(body, content='docs', auto=1)");
  assert_answer(*state, "SELECT rowid FROM a WHERE a MATCH 'a red apple' AND k = 1", "4");
  assert_runs(*state,
              "UPDATE docs SET body = 'a pear' WHERE id = 1; DELETE FROM docs WHERE id = 4");
  assert_answer(*state, "SELECT rowid FROM a WHERE a MATCH 'a pear' AND k = 1", "1");
  assert_answer(*state, "SELECT count(*) FROM a WHERE a MATCH 'x'", "2");
  assert_sound(*state, "a");
}

int main(void) {
#define WITH_DOCS(f) cmocka_unit_test_setup_teardown(f, open_docs, close_docs)
  const struct CMUnitTest tests[] = {
      WITH_DOCS(changes_are_queued),
      WITH_DOCS(other_columns_queue_nothing),
      WITH_DOCS(replace_is_noticed),
      WITH_DOCS(foreign_keys_cascade_into_the_queue),
      WITH_DOCS(rolled_back_changes_are_not_queued),
      WITH_DOCS(conflict_clauses_do_not_empty_the_queue),
      WITH_DOCS(generated_columns_are_followed),
      WITH_DOCS(two_tables_follow_one_content),
      WITH_DOCS(a_missing_trigger_is_made_up_for),
      WITH_DOCS(triggers_may_be_switched_off),
      WITH_DOCS(content_that_is_made_anew_is_followed),
      WITH_DOCS(a_renamed_key_is_followed),
      WITH_DOCS(types_are_only_types),
      WITH_DOCS(auto_refreshes_before_a_match),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
