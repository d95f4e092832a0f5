/*
** test_ext_vtab_query.c: what a query of the virtual table may say, and what it
** answers. That searching itself is exact is tested in test_ext_vtab_search.c.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dice.h"
#include "sqldb.h"
#include "vectors.h"

#define LOAD "SELECT bert_load('models/all-MiniLM-L6-v2', 'minilm');"

/* A table `t` over `docs`, refreshed, and a table `notes` that keeps its texts. */
static int open_tables(void **state) {
  sqlite3 *db = sqldb_open(NULL);
  vectors_functions(db);
  assert_runs(
      db,
      LOAD "CREATE TABLE docs(id INTEGER PRIMARY KEY, title TEXT, body TEXT, category TEXT);"
           "INSERT INTO docs VALUES(1, 'Cats', 'the cat sat on the mat', 'animals'),"
           "(2, 'Markets', 'stock markets fell sharply today', 'money'),"
           "(4, NULL, 'a kitten plays with wool', 'animals'), (5, NULL, NULL, 'nothing'),"
           "(8, 'Earnings', 'quarterly profits beat expectations', 'money'),"
           "(9, 'Soup', 'boil the carrots and add salt', 'food');"
           "CREATE VIRTUAL TABLE t USING bertsql(title, body, category UNINDEXED, content='docs');"
           "INSERT INTO t(t) VALUES('refresh');"
           "CREATE VIRTUAL TABLE notes USING bertsql(body, category UNINDEXED);"
           "INSERT INTO notes(rowid, body, category) SELECT id, body, category FROM docs");
  *state = db;
  return 0;
}

static int close_tables(void **state) {
  sqldb_close(*state);
  return 0;
}

/* ---- Plain scans ------------------------------------------------------------ */

static void test_scan(void **state) {
  sqlite3 *db = *state;
  assert_rows(db, "SELECT rowid, title FROM t", "1|Cats 2|Markets 4|NULL 5|NULL 8|Earnings 9|Soup");
  assert_rows(db, "SELECT rowid FROM t ORDER BY rowid DESC", "9 8 5 4 2 1");
  assert_rows(db, "SELECT * FROM t WHERE rowid = 4", "NULL|a kitten plays with wool|animals");
  assert_rows(
      db,
      "SELECT rowid, t, k, distance, chunk, start, stop, n_tokens, truncated, status FROM t "
      "WHERE rowid IN (5, 4)",
      "4|NULL|NULL|NULL|0|0|24|7|0|ok 5|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|no text");
  assert_rows(db, "SELECT typeof(embedding), length(embedding) FROM t WHERE rowid IN (5, 8)",
              "null|NULL blob|1536");
  assert_rows(db,
              "SELECT max(bert_l2(embedding, bert_embed(body))) < 1e-6 FROM notes WHERE body NOT "
              "NULL",
              "1");
  assert_rows(db, "SELECT count(*) FROM t", "6");
  assert_rows(db, "SELECT d.id, t.status FROM docs d JOIN t ON t.rowid = d.id WHERE d.id > 4",
              "5|no text 8|ok 9|ok");
  assert_rows(db, "SELECT rowid FROM t WHERE rowid BETWEEN 2 AND 8 ORDER BY rowid DESC", "8 5 4 2");
  assert_rows(db, "SELECT rowid FROM t WHERE status = 'no text'", "5");
}

static void test_subtype(void **state) {
  sqlite3 *db = *state;
  assert_rows(db, "SELECT bert_json(embedding) = bert_json(bert_embed(body)) FROM t WHERE 0",
              "(no rows)");
  assert_rows(db, "SELECT json_array_length(bert_json(embedding)) FROM t WHERE rowid = 1", "384");
}

static void test_status(void **state) {
  sqlite3 *db = *state;
  assert_runs(db,
              "UPDATE docs SET body = 'dogs' WHERE id = 1; UPDATE docs SET body = NULL, title = "
              "NULL WHERE id = 2; UPDATE docs SET title = 'new' WHERE id = 5; INSERT INTO "
              "docs(id, body) VALUES(20, 'later'), (21, NULL)");
  assert_rows(db, "SELECT rowid, status FROM t",
              "1|pending 2|pending 4|ok 5|pending 8|ok 9|ok 20|pending 21|no text");
  assert_runs(db, "UPDATE t_rows SET error = 'too long' WHERE row = 8");
  assert_rows(db, "SELECT status FROM t WHERE rowid = 8", "too long");
}

/* ---- Conditions ------------------------------------------------------------- */

/* Conditions on `t`, whose WHERE goes to the source, must leave the rows that they
** leave of `docs`, which has the same columns, whatever is compared with what. */
static void check_conditions(sqlite3 *db, const char *query) {
  static const char *const columns[] = {"id", "tx", "nc", "it", "rl", "bl", "nm"};
  static const char *const operators[] = {
      "=", "<", "<=", ">", ">=", "<>", "IS", "IS NOT", "LIKE", "GLOB"};
  static const char *const values[] = {"5",
                                       "'5'",
                                       "5.0",
                                       "'5.0'",
                                       "5.5",
                                       "'abc'",
                                       "'ABC'",
                                       "NULL",
                                       "x'35'",
                                       "''",
                                       "-1",
                                       "1e20",
                                       "'%b%'",
                                       "'*b*'",
                                       "v.tx",
                                       "v.it",
                                       "v.rl",
                                       "v.bl",
                                       "v.nm",
                                       "CAST(5 AS TEXT)",
                                       "'abc' COLLATE NOCASE",
                                       "CAST('5' AS NUMERIC)",
                                       "?1",
                                       "+v.it"};
  for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++)
    for (size_t o = 0; o < sizeof operators / sizeof operators[0]; o++)
      for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char sql[400], expected[400];
        const char *key = c == 0 ? "rowid" : columns[c];
        if ((c + o + i) % (size_t)dice_size(1, 13) != 0) continue;
        snprintf(sql, sizeof sql,
                 "SELECT count(*), group_concat(r) FROM (SELECT t.rowid AS r FROM v CROSS JOIN t "
                 "WHERE %s t.%s %s %s ORDER BY v.rowid, t.rowid)",
                 query, key, operators[o], values[i]);
        snprintf(
            expected, sizeof expected,
            "SELECT count(*), group_concat(r) FROM (SELECT docs.id AS r FROM v CROSS JOIN docs "
            "WHERE docs.%s %s %s ORDER BY v.rowid, docs.id)",
            columns[c], operators[o], values[i]);
        assert_same(db, sql, expected);
      }
}

/* IN with a MATCH is run on the source too, with all its values at once. */
static void check_in(sqlite3 *db) {
  static const char *const columns[] = {"id", "tx", "nc", "it", "rl", "bl", "nm"};
  static const char *const lists[] = {"5, '5', 'abc'",
                                      "5",
                                      "5, 5.5, NULL",
                                      "'5.0', x'35'",
                                      "'ABC', 'b', 1e20",
                                      "NULL, NULL",
                                      "SELECT tx FROM v",
                                      "SELECT it FROM v",
                                      "SELECT bl FROM v",
                                      "SELECT nm FROM v",
                                      "SELECT CAST(nm AS TEXT) FROM v",
                                      "1, 2, 3, 4, 5, 6, 7, 8, 9, 'b', '5'",
                                      "SELECT nc FROM v",
                                      "SELECT 1 WHERE 0"};
  for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++)
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
      char sql[400], expected[400];
      const char *key = c == 0 ? "rowid" : columns[c];
      if ((c + i) % (size_t)dice_size(1, 3) != 0) continue;
      snprintf(sql, sizeof sql,
               "SELECT count(*), group_concat(r) FROM (SELECT rowid AS r FROM t WHERE t MATCH "
               "random_vector(8, 3) AND k = 16 AND %s IN (%s) ORDER BY rowid)",
               key, lists[i]);
      snprintf(expected, sizeof expected,
               "SELECT count(*), group_concat(r) FROM (SELECT id AS r FROM docs WHERE %s IN (%s) "
               "ORDER BY id)",
               columns[c], lists[i]);
      assert_same(db, sql, expected);
    }
}

#define TYPED                                                                                      \
  "(id INTEGER PRIMARY KEY, tx TEXT, nc TEXT COLLATE NOCASE, it INTEGER, rl REAL, bl, nm NUMERIC)"

static void test_conditions(void **state) {
  sqlite3 *db = sqldb_open(NULL);
  vectors_functions(db);
  assert_runs(
      db,
      LOAD "CREATE TABLE docs" TYPED ";"
           "WITH x(v) AS (VALUES (5), ('5'), (5.5), ('5.0'), ('abc'), ('ABC'), ('b'), (NULL), "
           "(x'35'), (''), (-1), (1e20), ('9'), (10), (x''), ('5abc')) "
           "INSERT INTO docs(tx, nc, it, rl, bl, nm) SELECT v, v, v, v, v, v FROM x;"
           "CREATE TABLE v" TYPED ";"
           "INSERT INTO v(tx, nc, it, rl, bl, nm) VALUES ('5', '5', 5, 5, 5, 5), ('abc', 'abc', 7, "
           "7.5, 'abc', 7), ('!', '!', '!', '!', '!', '!'), (NULL, NULL, NULL, NULL, NULL, NULL), "
           "('5.0', '', 10, -1, '5', 5.5);"
           "CREATE VIRTUAL TABLE t USING bertsql(tx, nc UNINDEXED, it UNINDEXED, rl UNINDEXED, bl "
           "UNINDEXED, nm UNINDEXED, content='docs', dims=8)");
  check_conditions(db, "");
  vectors_fill(db, "t", "docs", 8, 1, 0);
  assert_runs(db, "DELETE FROM t_vectors WHERE id = 5; INSERT INTO t_vectors SELECT 5, 5, 0, 0, 0, "
                  "1, 0, vector FROM t_vectors WHERE id = 6");
  check_conditions(db, "t MATCH random_vector(8, 3) AND");
  check_conditions(db, "t MATCH random_vector(8, 3) AND k = 16 AND");
  check_in(db);
  sqlite3_limit(db, SQLITE_LIMIT_VARIABLE_NUMBER, 4);
  check_in(db);
  sqlite3_limit(db, SQLITE_LIMIT_VARIABLE_NUMBER, 1000);
  assert_runs(db,
              "CREATE INDEX docs_tx ON docs(tx); CREATE INDEX docs_nc ON docs(nc); CREATE INDEX "
              "docs_it ON docs(it)");
  check_conditions(db, "");
  check_conditions(db, "t MATCH random_vector(8, 3) AND");
  assert_runs(
      db, "ALTER TABLE docs RENAME TO old_docs; DROP TABLE t;"
          "CREATE VIRTUAL TABLE t USING bertsql(tx, nc TEXT UNINDEXED, it INTEGER UNINDEXED, rl "
          "REAL UNINDEXED, bl UNINDEXED, nm NUMERIC UNINDEXED, dims=8);"
          "INSERT INTO t SELECT tx, nc, it, rl, bl, nm FROM old_docs;"
          "CREATE TABLE docs(id INTEGER PRIMARY KEY, tx, nc TEXT, it INTEGER, rl REAL, bl, nm "
          "NUMERIC); INSERT INTO docs SELECT rowid, * FROM t");
  check_conditions(db, "");
  sqldb_close(db);
}

/* The condition is run on the source, so that its index serves. */
static void test_conditions_use_an_index(void **state) {
  sqlite3 *db = *state;
  assert_runs(db, "CREATE INDEX by_category ON docs(category)");
  assert_rows(db, "SELECT rowid FROM t WHERE category = 'money'", "2 8");
  assert_rows(db, "SELECT rowid FROM t WHERE category IN ('money', 'food')", "2 8 9");
  assert_rows(db, "SELECT rowid FROM t WHERE category = 'money' ORDER BY rowid DESC", "8 2");
  assert_rows(db, "SELECT rowid FROM t WHERE category > 'b' AND category < 'g'", "9");
}

/* ---- MATCH ------------------------------------------------------------------ */

static void test_match_text(void **state) {
  sqlite3 *db = *state;
  assert_rows(db, "SELECT rowid FROM t WHERE t MATCH 'feline pets' AND k = 2", "4 1");
  assert_rows(db, "SELECT rowid, body FROM notes WHERE notes MATCH 'feline pets' LIMIT 1",
              "4|a kitten plays with wool");
  assert_rows(db, "SELECT rowid FROM t WHERE t = 'feline pets' AND k = 2", "4 1");
  assert_rows(db, "SELECT rowid FROM t('feline pets', 2)", "4 1");
  assert_rows(db, "SELECT rowid, k FROM t('feline pets') LIMIT 2", "4|NULL 1|NULL");
  assert_rows(db, "SELECT k, status FROM t('feline pets', 1)", "1|ok");
  assert_rows(db, "SELECT count(*), count(DISTINCT rowid) FROM t WHERE t MATCH ''", "5|5");
  assert_rows(db, "SELECT count(*) FROM t WHERE t MATCH NULL", "0");
  assert_rows(db, "SELECT count(*) FROM t WHERE t MATCH NULL AND k = 3", "0");
  assert_same(db, "SELECT rowid, distance FROM notes WHERE notes MATCH 'soup'",
              "SELECT rowid, 1 - bert_cosine(bert_embed('soup', NULL, '{\"kind\":\"query\"}'), "
              "embedding) FROM notes WHERE embedding IS NOT NULL ORDER BY 2");
  assert_rows(db,
              "SELECT rowid FROM t WHERE t MATCH bert_embed('feline pets') AND k = 2 ORDER BY "
              "distance",
              "4 1");
  /* Another order than that of distance is SQLite's to make. */
  assert_rows(db, "SELECT rowid FROM t WHERE t MATCH 'feline pets' AND k = 2 ORDER BY rowid",
              "1 4");
  assert_rows(db,
              "SELECT rowid FROM t WHERE t MATCH 'feline pets' AND k = 2 ORDER BY distance DESC",
              "1 4");
  assert_rows(db, "SELECT rowid FROM t WHERE t MATCH 'feline pets' ORDER BY distance DESC LIMIT 1",
              "9");
}

static void test_match_wrong(void **state) {
  sqlite3 *db = *state;
#define FORM "MATCH 'some words' AND k = 10"
  assert_error(db, "SELECT * FROM t WHERE t MATCH 5",
               "the number 5 is neither a text nor a vector; MATCH takes a text");
  assert_error(db, "SELECT * FROM t WHERE t MATCH 0.5", FORM);
  assert_error(db, "SELECT * FROM t WHERE t MATCH x'00000000'",
               "a BLOB of 4 bytes, where this table's vectors have 1536");
  assert_error(db, "SELECT * FROM t WHERE t MATCH x''", "a BLOB of 0 bytes");
  assert_error(db, "SELECT * FROM t WHERE t MATCH zeroblob(1536)", "no direction");
  assert_error(db, "SELECT * FROM t WHERE t MATCH CAST(zeroblob(1532) || x'0000C07F' AS BLOB)",
               "number 383 of the vector is not finite");
  assert_error(db, "SELECT * FROM t WHERE t MATCH 'a' AND t MATCH 'b'", "one MATCH");
  assert_error(db, "SELECT * FROM t('a') WHERE t MATCH 'b'", FORM);
  assert_error(db, "SELECT * FROM t WHERE body MATCH 'a'", "all columns at once");
  assert_error(db, "SELECT * FROM t WHERE k = 3", "needs a MATCH");
  assert_error(db,
               "SELECT * FROM t, docs WHERE t MATCH docs.body AND docs.id = t.rowid AND k = 'x'",
               "k must be an integer");
}

static void test_k(void **state) {
  sqlite3 *db = *state;
  assert_rows(db, "SELECT count(*) FROM t WHERE t MATCH 'a' AND k = 0", "0");
  assert_rows(db, "SELECT count(*) FROM t WHERE t MATCH 'a' AND k = 3.0", "3");
  assert_rows(db, "SELECT count(*) FROM t WHERE t MATCH 'a' AND k = 9000000000", "5");
  assert_rows(db, "SELECT count(*) FROM t WHERE t MATCH 'a' AND k = (SELECT 2)", "2");
  assert_error(db, "SELECT * FROM t WHERE t MATCH 'a' AND k = NULL", "not NULL");
  assert_error(db, "SELECT * FROM t WHERE t MATCH 'a' AND k = -1", "not -1");
  assert_error(db, "SELECT * FROM t WHERE t MATCH 'a' AND k = 1.5", "not 1.5");
  assert_error(db, "SELECT * FROM t WHERE t MATCH 'a' AND k = 'many'", "not the text 'many'");
  assert_error(db, "SELECT * FROM t WHERE t MATCH 'a' AND k = x'00'", "not a BLOB");
  assert_rows(db, "SELECT count(*) FROM t WHERE t MATCH 'a' AND k = '3'", "3");
  assert_error(db, "SELECT * FROM t WHERE t MATCH 'a' AND k <= 3", "once and with =");
  assert_error(db, "SELECT * FROM t WHERE t MATCH 'a' AND k IN (1, 3)", "once and with =");
  assert_error(db, "SELECT * FROM t WHERE t MATCH 'a' AND k = 3 AND k > 1", "once and with =");
  assert_rows(db, "SELECT count(*) FROM t WHERE t MATCH 'feline pets' AND k = 1 AND rowid <> 4",
              "1");
  assert_rows(db,
              "SELECT rowid FROM t WHERE (t MATCH 'feline pets' AND k = 1) OR (t MATCH 'stock "
              "prices' AND k = 1)",
              "4 2");
  assert_rows(db, "SELECT rowid FROM t WHERE (t MATCH 'feline pets' AND k = 1) OR rowid = 9",
              "4 9");
}

static void test_parameters(void **state) {
  sqlite3 *db = *state;
  sqlite3_stmt *s =
      sqldb_prepare(db, "SELECT rowid FROM t WHERE t MATCH ?1 AND k = ?2 AND category = ?3");
  static const char *const categories[] = {"animals", "money", "food"};
  static const int nearest_of[] = {4, 2, 9};
  for (int i = 0; i < 3; i++) {
    sqlite3_bind_text(s, 1, i == 1 ? "stocks" : "feline pets", -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 2, 1);
    sqlite3_bind_text(s, 3, categories[i], -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(s, 0), nearest_of[i]);
    assert_int_equal(sqlite3_step(s), SQLITE_DONE);
    sqlite3_reset(s);
  }
  sqlite3_finalize(s);
}

/* A parameter is a condition as a constant is, though SQLite does not tell it from
** a column when it plans. */
static void test_rowid_as_a_parameter(void **state) {
  sqlite3 *db = *state;
  sqlite3_stmt *s = sqldb_prepare(db, "SELECT rowid FROM t WHERE t MATCH ?1 AND k = 1 AND rowid = "
                                      "?2");
  sqlite3_bind_text(s, 1, "feline pets", -1, SQLITE_STATIC);
  for (int row = 1; row < 9; row++) {
    sqlite3_bind_int(s, 2, row);
    if (sqlite3_step(s) == SQLITE_ROW)
      assert_int_equal(sqlite3_column_int(s, 0), row);
    else
      assert_true(row == 3 || row == 5 || row == 6 || row == 7);
    sqlite3_reset(s);
  }
  sqlite3_finalize(s);
  assert_rows(db, "SELECT rowid FROM t WHERE t MATCH 'feline pets' AND k = 1 AND rowid = 9", "9");
  assert_rows(db,
              "SELECT rowid FROM t WHERE t MATCH 'feline pets' AND k = 1 AND rowid = (SELECT 9)",
              "(no rows)");
}

/* k rows of those that fulfil the other conditions. */
static void test_filter_before_k(void **state) {
  sqlite3 *db = *state;
  assert_rows(db,
              "SELECT rowid FROM t WHERE t MATCH 'feline pets' AND k = 2 AND category = 'money'",
              "2 8");
  assert_rows(db, "SELECT rowid FROM t WHERE t MATCH 'cats' AND k = 2 AND rowid > 4", "9 8");
  assert_rows(db, "SELECT rowid FROM t WHERE t MATCH 'cats' AND k = 2 AND rowid IN (9, 2, 77)",
              "2 9");
  assert_rows(db, "SELECT rowid FROM t WHERE t MATCH 'cats' AND k = 1 AND rowid = 2", "2");
  assert_rows(db, "SELECT rowid FROM t WHERE t MATCH 'cats' AND k = 1 AND rowid IS 2", "2");
  assert_rows(db, "SELECT rowid FROM t WHERE t MATCH 'cats' AND k = 1 AND rowid = 3", "(no rows)");
  assert_rows(db, "SELECT rowid FROM t WHERE t MATCH 'cats' AND k = 1 AND title LIKE 'm%'", "2");
  assert_rows(db, "SELECT rowid FROM t WHERE t MATCH 'cats' AND k = 1 AND title IS NULL", "4");
  assert_rows(db,
              "SELECT rowid FROM t WHERE t MATCH 'cats' AND k = 1 AND category NOT IN ('animals') "
              "AND category <> 'food' AND title IS NOT NULL AND rowid <> 3",
              "(no rows)");
  assert_rows(db,
              "SELECT d.id, (SELECT group_concat(rowid) FROM t WHERE t MATCH 'cats' AND k = 1 AND "
              "category = d.category) FROM docs d WHERE id IN (1, 2, 9)",
              "1|1 2|2 9|9");
}

static void test_joins(void **state) {
  sqlite3 *db = *state;
#define TAIL " ON t.rowid = docs.id WHERE t MATCH 'feline pets' AND k = 2 ORDER BY distance"
  assert_rows(db, "SELECT docs.id, docs.title FROM docs JOIN t" TAIL, "4|NULL 1|Cats");
  assert_rows(db, "SELECT docs.id, docs.title FROM t JOIN docs" TAIL, "4|NULL 1|Cats");
  assert_rows(db,
              "SELECT docs.id FROM docs JOIN t ON t.rowid = docs.id AND t.category = docs.category "
              "WHERE t MATCH 'feline pets' AND k = 3 AND docs.id < 9",
              "4 1 2");
  assert_rows(db,
              "SELECT docs.id FROM docs JOIN t ON t.rowid = docs.id WHERE t MATCH 'feline pets' "
              "ORDER BY distance LIMIT 2",
              "4 1");
  /* A query for each row of another table. */
  assert_rows(
      db,
      "WITH q(text) AS (VALUES ('stock prices'), ('feline pets')) SELECT text, t.rowid FROM "
      "q JOIN t ON t MATCH q.text AND k = 1",
      "stock prices|2 feline pets|4");
  assert_rows(db,
              "SELECT a.rowid, b.rowid FROM notes a JOIN notes b WHERE b.notes MATCH a.embedding "
              "AND b.k = 2 AND a.rowid < 5 ORDER BY a.rowid, b.distance",
              "1|1 1|4 2|2 2|8 4|4 4|1");
  assert_rows(db,
              "SELECT docs.id, h.distance IS NOT NULL FROM docs LEFT JOIN (SELECT rowid, distance "
              "FROM t WHERE t MATCH 'feline pets' AND k = 2) h ON h.rowid = docs.id",
              "1|1 2|0 4|1 5|0 8|0 9|0");
  assert_rows(db,
              "SELECT docs.id, distance IS NOT NULL FROM docs LEFT JOIN t ON t.rowid = docs.id AND "
              "t MATCH 'feline pets' AND k = 2",
              "1|1 2|0 4|1 5|0 8|0 9|0");
  assert_rows(db,
              "SELECT docs.id, h.distance IS NOT NULL FROM docs LEFT JOIN t h ON h.rowid = "
              "docs.id + 0.0 AND h.t MATCH bert_embed('feline pets') AND h.k = 2 AND h.rowid > 1",
              "1|0 2|1 4|1 5|0 8|0 9|0");
  assert_rows(db,
              "SELECT id, (SELECT distance FROM t WHERE t MATCH 'feline pets' AND rowid = id AND k "
              "= 2) IS NOT NULL, (SELECT distance FROM t WHERE t MATCH 'feline pets' AND rowid = "
              "id) IS NOT NULL FROM docs",
              "1|1|1 2|0|1 4|1|1 5|0|0 8|0|1 9|0|1");
  assert_rows(
      db,
      "WITH q(text, n) AS (VALUES ('stock prices', 1), ('feline pets', 2), ('feline pets', "
      "1)) SELECT text, n, docs.id FROM q CROSS JOIN docs CROSS JOIN t ON t.rowid = docs.id "
      "AND t MATCH q.text AND k = q.n",
      "stock prices|1|2 feline pets|2|1 feline pets|2|4 feline pets|1|4");
  assert_rows(
      db,
      "SELECT id FROM docs WHERE id IN (SELECT rowid FROM t WHERE t MATCH 'feline pets' AND "
      "k = 2)",
      "1 4");
}

/* ---- Rows that come and go ---------------------------------------------------- */

static void test_rows_that_are_gone(void **state) {
  sqlite3 *db = *state;
  assert_runs(db, "DELETE FROM docs WHERE id = 4");
  assert_rows(db, "SELECT rowid, title FROM t WHERE t MATCH 'feline pets' AND k = 2",
              "1|Cats 2|Markets");
  assert_rows(db,
              "SELECT rowid FROM t WHERE t MATCH 'feline pets' AND k = 2 AND category = 'animals'",
              "1");
  assert_rows(db, "SELECT rowid FROM t WHERE t MATCH 'feline pets' AND k = 2 AND rowid = 4",
              "(no rows)");
}

static void test_own_texts_are_found_at_once(void **state) {
  sqlite3 *db = *state;
  assert_runs(db, "CREATE TABLE other(x); BEGIN; INSERT INTO other VALUES(1); INSERT INTO "
                  "notes(rowid, body) VALUES(100, 'the puppy barks'); INSERT INTO other VALUES(2)");
  assert_rows(db, "SELECT rowid, last_insert_rowid() FROM notes WHERE notes MATCH 'dog' AND k = 1",
              "100|2");
  assert_runs(db, "UPDATE notes SET body = 'stars and planets' WHERE rowid = 100");
  assert_rows(db, "SELECT rowid FROM notes WHERE notes MATCH 'astronomy' AND k = 1", "100");
  assert_runs(db, "SAVEPOINT a; DELETE FROM notes WHERE rowid = 100");
  assert_rows(db, "SELECT count(*) FROM notes WHERE notes MATCH 'astronomy' AND rowid = 100", "0");
  assert_runs(db, "ROLLBACK TO a");
  assert_rows(db, "SELECT rowid FROM notes WHERE notes MATCH 'astronomy' AND k = 1", "100");
  assert_runs(db, "ROLLBACK");
  assert_rows(db, "SELECT count(*) FROM notes WHERE notes MATCH 'astronomy' AND rowid = 100", "0");
}

/* Statements that search a table and write it. */
static void test_writing_what_is_searched(void **state) {
  sqlite3 *db = *state;
  assert_runs(db, "INSERT INTO notes(body) SELECT 'copy of ' || body FROM notes WHERE notes MATCH "
                  "'feline pets' AND k = 2");
  assert_rows(db, "SELECT body FROM notes WHERE rowid > 9",
              "copy of a kitten plays with wool copy of the cat sat on the mat");
  assert_runs(db, "UPDATE notes SET category = 'found' WHERE notes MATCH 'feline pets' AND k = 4");
  assert_rows(db, "SELECT rowid, status FROM notes WHERE category = 'found'",
              "1|ok 4|ok 10|ok 11|ok");
  assert_runs(db, "DELETE FROM notes WHERE notes MATCH 'feline pets' AND k = 4");
  assert_rows(db, "SELECT rowid FROM notes", "2 5 8 9");
  assert_runs(db, "BEGIN; INSERT INTO notes(body) VALUES('a tiger'); DELETE FROM notes WHERE notes "
                  "MATCH 'big cat' AND k = 1; COMMIT");
  assert_rows(db, "SELECT rowid FROM notes", "2 5 8 9");
}

static void test_auto(void **state) {
  sqlite3 *db = *state;
  assert_runs(db, "CREATE VIRTUAL TABLE a USING bertsql(body, content='docs', auto=1)");
  assert_rows(db, "SELECT rowid FROM a WHERE a MATCH 'feline pets' AND k = 1", "4");
  assert_runs(db, "UPDATE docs SET body = 'lions and tigers are big cats' WHERE id = 9");
  assert_rows(db, "SELECT rowid, status FROM a WHERE a MATCH 'big cats' AND k = 1", "9|ok");
  assert_runs(db, "UPDATE docs SET body = 'the moon' WHERE id = 8; PRAGMA query_only = 1");
  assert_rows(db, "SELECT rowid, status FROM a WHERE a MATCH 'the moon' AND rowid = 8",
              "8|pending");
  assert_runs(db, "PRAGMA query_only = 0; BEGIN");
  assert_rows(db, "SELECT rowid, status FROM a WHERE a MATCH 'the moon' AND k = 1", "8|ok");
  assert_runs(db, "ROLLBACK");
  assert_rows(db, "SELECT status FROM a WHERE rowid = 8", "pending");
  /* As part of a statement that writes. */
  assert_runs(db,
              "CREATE TABLE found AS SELECT rowid AS r FROM a WHERE a MATCH 'the moon' AND k = 1");
  assert_rows(db, "SELECT r FROM found", "8");
}

/* A refresh that fails takes nothing along and leaves nothing behind. */
static void test_auto_that_fails(void **state) {
  sqlite3 *db = *state;
  assert_runs(db, "CREATE VIRTUAL TABLE a USING bertsql(body, content='docs', auto=1);"
                  "CREATE TRIGGER no BEFORE INSERT ON a_rows WHEN new.row = 8 BEGIN SELECT "
                  "raise(ABORT, 'not this row'); END");
  assert_error(db, "SELECT rowid FROM a WHERE a MATCH 'x' AND k = 1", "not this row");
  assert_true(sqlite3_get_autocommit(db));
  assert_rows(db, "SELECT count(*) FROM a_rows", "0");
  assert_runs(db, "BEGIN; INSERT INTO docs(id, body) VALUES(50, 'x')");
  assert_error(db, "SELECT rowid FROM a WHERE a MATCH 'x' AND k = 1", "not this row");
  assert_rows(db, "SELECT count(*), (SELECT count(*) FROM docs WHERE id = 50) FROM a_vectors",
              "0|1");
  assert_runs(db, "COMMIT; DROP TRIGGER no");
  assert_rows(db, "SELECT rowid FROM a WHERE a MATCH 'x' AND k = 1", "50");
}

static void test_other_schema(void **state) {
  sqlite3 *db = *state;
  assert_runs(db, "ATTACH ':memory:' AS \"o 1\"; CREATE TABLE \"o 1\".docs(id INTEGER PRIMARY KEY, "
                  "\"the \"\"text\"\"\" TEXT, n INT); INSERT INTO \"o 1\".docs VALUES(1, 'a red "
                  "apple', 1), (2, 'a blue car', 2); CREATE VIRTUAL TABLE \"o 1\".\"a \"\"b\"\"\" "
                  "USING bertsql(\"the \"\"text\"\"\", n UNINDEXED, content='docs', "
                  "chunk_tokens=16, overlap=2, all_chunks=1); INSERT INTO \"o 1\".\"a "
                  "\"\"b\"\"\"(\"a \"\"b\"\"\") VALUES('refresh')");
#define OTHER "\"o 1\".\"a \"\"b\"\"\""
  assert_rows(db, "SELECT rowid, \"the \"\"text\"\"\" FROM " OTHER " WHERE n > 1", "2|a blue car");
  assert_rows(db,
              "SELECT rowid, n FROM " OTHER " WHERE \"a \"\"b\"\"\" MATCH 'fruit' AND k = 1 AND "
              "\"the \"\"text\"\"\" LIKE 'a%'",
              "1|1");
  assert_error(db, "SELECT * FROM " OTHER " WHERE \"a \"\"b\"\"\" MATCH 1",
               "a \"b\": the number 1 is neither");
}

/* The content table changes its shape, or goes. */
static void test_source_that_changes(void **state) {
  sqlite3 *db = *state;
  assert_runs(db, "ALTER TABLE docs RENAME COLUMN category TO kind");
  assert_error(db, "SELECT category FROM t", "no column category");
  assert_error(db, "SELECT rowid FROM t WHERE t MATCH 'cats' AND category = 'animals'",
               "no column category");
  assert_runs(db, "ALTER TABLE docs RENAME COLUMN kind TO category");
  assert_rows(db, "SELECT rowid FROM t WHERE category = 'food'", "9");
  assert_runs(db, "ALTER TABLE docs RENAME TO elsewhere");
  assert_error(db, "SELECT * FROM t", "no content table docs");
  assert_error(db, "SELECT rowid FROM t WHERE t MATCH 'cats'", "no content table docs");
  assert_runs(db, "ALTER TABLE elsewhere RENAME TO docs");
  assert_rows(db, "SELECT rowid FROM t WHERE t MATCH 'feline pets' AND k = 1", "4");
}

/* Vectors of another width come while a search is under way. */
static void test_rebuild_during_a_search(void **state) {
  sqlite3 *db = *state;
  sqlite3_stmt *s = sqldb_prepare(db, "SELECT rowid, embedding FROM t WHERE t MATCH 'cats'");
  assert_int_equal(sqlite3_step(s), SQLITE_ROW);
  assert_runs(db, "UPDATE t_config SET value = 300 WHERE key = 'dim'");
  assert_error(db, "SELECT rowid FROM t WHERE t MATCH 'cats'", "300");
  assert_int_equal(sqlite3_step(s), SQLITE_ERROR);
  sqlite3_finalize(s);
}

int main(void) {
#define QUERY_TEST(name) cmocka_unit_test_setup_teardown(name, open_tables, close_tables)
  const struct CMUnitTest tests[] = {
      QUERY_TEST(test_scan),
      QUERY_TEST(test_subtype),
      QUERY_TEST(test_status),
      cmocka_unit_test(test_conditions),
      QUERY_TEST(test_conditions_use_an_index),
      QUERY_TEST(test_match_text),
      QUERY_TEST(test_match_wrong),
      QUERY_TEST(test_k),
      QUERY_TEST(test_parameters),
      QUERY_TEST(test_rowid_as_a_parameter),
      QUERY_TEST(test_filter_before_k),
      QUERY_TEST(test_joins),
      QUERY_TEST(test_rows_that_are_gone),
      QUERY_TEST(test_own_texts_are_found_at_once),
      QUERY_TEST(test_writing_what_is_searched),
      QUERY_TEST(test_auto),
      QUERY_TEST(test_auto_that_fails),
      QUERY_TEST(test_other_schema),
      QUERY_TEST(test_source_that_changes),
      QUERY_TEST(test_rebuild_during_a_search),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
