/*
** test_ext_vtab_limits.c: the edges: row numbers at both ends, databases in UTF-16,
** more columns than a mask has bits, a full disk, limits that a program has set.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tabledb.h"

#define REFRESH "INSERT INTO docs_emb(docs_emb) VALUES('refresh')"

/* ---- Rows --------------------------------------------------------------------- */

#define EDGES "-9223372036854775808, -1, 0, 1, 9223372036854775807"

static void row_numbers_reach_both_ends(void **state) {
  (void)state;
  sqlite3 *db = tabledb_open(NULL);
  assert_runs(db, "CREATE TABLE docs(id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT) STRICT;"
                  "INSERT INTO docs SELECT value, 'row ' || value FROM json_each('[" EDGES "]');"
                  "CREATE VIRTUAL TABLE docs_emb USING bertsql(body, content='docs', triggers=1);"
                  "CREATE VIRTUAL TABLE own USING bertsql(body);"
                  "INSERT INTO own(rowid, body) SELECT * FROM docs;" REFRESH);
  for (int i = 0; i < 2; i++) {
    assert_rows(db, "SELECT rowid FROM docs_emb WHERE embedding NOT NULL",
                "-9223372036854775808 -1 0 1 9223372036854775807");
    assert_rows(db, "SELECT rowid FROM own ORDER BY rowid DESC",
                "9223372036854775807 1 0 -1 -9223372036854775808");
    assert_answer(db,
                  "SELECT count(*) FROM own AS o JOIN docs_emb AS d USING(embedding) "
                  "WHERE o.rowid = d.rowid",
                  "5");
    assert_answer(db,
                  "SELECT rowid FROM own WHERE own MATCH 'row -9223372036854775808' AND k = 1;"
                  "SELECT rowid FROM own WHERE own MATCH 'x' AND rowid IN (" EDGES
                  ") AND rowid > 1",
                  "-9223372036854775808\n9223372036854775807");
    assert_runs(db,
                "UPDATE docs SET body = body || '.'; UPDATE own SET body = body || '.';" REFRESH);
  }
  assert_finds_itself(db, "docs_emb", "docs", "id", "body");
  assert_runs(db, "DELETE FROM docs WHERE id IN (" EDGES "); DELETE FROM own;" REFRESH);
  assert_answer(db, "SELECT sum(rows), sum(pending) FROM bert_status", "0|0");
  assert_sound(db, "docs_emb");
  assert_sound(db, "own");
  sqldb_close(db);
}

static void a_table_is_filled_from_itself(void **state) {
  (void)state;
  sqlite3 *db = tabledb_open(NULL);
  assert_runs(db,
              "CREATE VIRTUAL TABLE own USING bertsql(body); INSERT INTO own(body) VALUES('a'), "
              "('b'); INSERT INTO own(body) SELECT body || 'x' FROM own;"
              "INSERT INTO own(body) SELECT body || 'y' FROM own WHERE own MATCH 'a' AND k = 3;"
              "DELETE FROM own WHERE rowid IN (SELECT rowid FROM own WHERE own MATCH 'b' AND k = "
              "1); UPDATE own SET body = body || 'z' WHERE own MATCH 'a'");
  assert_answer(db,
                "SELECT count(*), sum(body LIKE '%z'), sum(embedding = bert_embed(body)) FROM own",
                "6|6|6");
  assert_sound(db, "own");
  sqldb_close(db);
}

/* ---- Texts ---------------------------------------------------------------------- */

static void databases_in_utf16(void **state) {
  static const char *const encodings[] = {"UTF-16le", "UTF-16be"};
  for (size_t i = 0; i < 2; i++) {
    char *sql = sqlite3_mprintf("PRAGMA encoding = '%s'", encodings[i]);
    sqlite3 *db = tabledb_open(tabledb_beside(state, encodings[i]));
    assert_runs(db, sql);
    tabledb_make_docs(db, ", triggers=1");
    assert_runs(db, "CREATE VIRTUAL TABLE own USING bertsql(body, lang UNINDEXED, model='tiny', "
                    "prompt='für ');"
                    "INSERT INTO own(body, lang) VALUES('zwölf Bäume', 'dé'), (x'ff61', 'en');"
                    "UPDATE docs SET body = '日本' WHERE id = 2; " REFRESH);
    assert_answer(db, "SELECT rowid FROM docs_emb WHERE docs_emb MATCH '日本' AND distance < 1e-5",
                  "2");
    assert_answer(db,
                  "SELECT embedding = bert_embed('zwölf Bäume', 'tiny', '{\"prompt\":\"für \"}'), "
                  "lang FROM own WHERE own MATCH 'x' AND lang = 'dé'",
                  "1|dé");
    assert_runs(
        db, "UPDATE own SET lang = 'fr', body = body; UPDATE own SET body = 'neu' WHERE rowid = 1");
    assert_answer(db, "SELECT count(*) FROM own_vectors", "2");
    assert_sound(db, "docs_emb");
    assert_sound(db, "own");
    sqldb_close(db);
    sqlite3_free(sql);
  }
}

static void texts_hold_any_bytes(void **state) {
  (void)state;
  sqlite3 *db = tabledb_open(NULL);
  assert_runs(db,
              "CREATE VIRTUAL TABLE own USING bertsql(body, more);"
              "INSERT INTO own VALUES('time' || char(0) || 'flies', x'00'), (5, 7.5), ('', NULL), "
              "(NULL, ''), (zeroblob(0), zeroblob(3)), (NULL, NULL)");
  assert_answer(db, "SELECT rowid, quote(body), quote(more), embedding IS NULL, stop FROM own",
                "1|'time'|X'00'|0|12\n2|5|7.5|0|5\n3|''|NULL|0|0\n4|NULL|''|0|0\n"
                "5|X''|X'000000'|0|4\n6|NULL|NULL|1|NULL");
  assert_answer(
      db,
      "SELECT embedding = bert_embed('time' || char(0) || 'flies' || char(10) || char(0)) "
      "FROM own WHERE rowid = 1",
      "1");
  assert_answer(db, "SELECT count(*) FROM own WHERE own MATCH 'x'", "5");
  assert_sound(db, "own");
  sqldb_close(db);
}

/* ---- Columns -------------------------------------------------------------------- */

/* CREATE VIRTUAL TABLE wide with columns c1 … cN, every third UNINDEXED. */
static char *make_wide(int count) {
  sqlite3_str *out = sqlite3_str_new(NULL);
  sqlite3_str_appendall(out, "CREATE VIRTUAL TABLE wide USING bertsql(model='tiny'");
  for (int i = 1; i <= count; i++)
    sqlite3_str_appendf(out, ", c%d%s", i, i % 3 == 0 ? " UNINDEXED" : "");
  sqlite3_str_appendall(out, ")");
  return sqlite3_str_finish(out);
}

static void many_columns(void **state) {
  static const int counts[] = {52, 53, 54, 62, 63, 64, 65, 120, 900};
  (void)state;
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    sqlite3 *db = tabledb_open(NULL);
    char *sql = make_wide(counts[i]);
    assert_runs(db, sql);
    sqlite3_free(sql);
    sql = sqlite3_mprintf(
        "INSERT INTO wide(c1, c%d, c3) VALUES('time', 'flies', 'un'), ('a', 'b', 'x');"
        "UPDATE wide SET c%d = 'stands' WHERE c1 = 'time';"
        "SELECT rowid, c%d, distance < 1e-5, c3 FROM wide WHERE wide MATCH 'time' || "
        "char(10) || 'stands' AND k = 1 AND c3 = 'un'",
        counts[i] - counts[i] % 3 - 1, counts[i] - counts[i] % 3 - 1,
        counts[i] - counts[i] % 3 - 1);
    assert_answer(db, sql, "1|stands|1|un");
    sqlite3_free(sql);
    assert_sound(db, "wide");
    sqldb_close(db);
  }
}

/* ---- Limits ------------------------------------------------------------------------ */

/* No page is left: an error, and all is as it was. */
static void a_full_disk_loses_nothing(void **state) {
  static const char *const writes[] = {
      REFRESH, "INSERT INTO docs_emb(docs_emb) VALUES('rebuild')",
      "BEGIN; INSERT INTO own(body) SELECT 'more ' || value FROM json_each('[1,2,3,4,5,6,7,8,9]');"
      "INSERT INTO own(body) VALUES(hex(zeroblob(9000))); COMMIT",
      "CREATE VIRTUAL TABLE new USING bertsql(body)"};
  sqlite3 *db = tabledb_open(*state);
  tabledb_make_docs(db, ", triggers=1");
  assert_runs(
      db, "CREATE VIRTUAL TABLE own USING bertsql(body, model='tiny'); INSERT INTO own(body) "
          "VALUES('time'); WITH n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 200) "
          "INSERT INTO docs(id, body) SELECT i, 'w' || i FROM n");
  char *limit =
      sqlite3_mprintf("PRAGMA max_page_count = %lld", sqldb_number(db, "PRAGMA page_count"));
  for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
    assert_runs(db, limit);
    char *before = sqldb_answer(db,
                                "SELECT * FROM docs_emb_vectors; SELECT * FROM own; SELECT name "
                                "FROM sqlite_schema; SELECT name, rows, pending FROM bert_status",
                                NULL);
    assert_error(db, writes[i], "full");
    if (!sqlite3_get_autocommit(db)) assert_runs(db, "ROLLBACK");
    assert_answer(db,
                  "SELECT * FROM docs_emb_vectors; SELECT * FROM own; SELECT name "
                  "FROM sqlite_schema; SELECT name, rows, pending FROM bert_status",
                  before);
    sqlite3_free(before);
    assert_sound(db, "docs_emb");
    assert_sound(db, "own");
    assert_runs(db, "PRAGMA max_page_count = 1000000");
    assert_runs(db, writes[i]);
    if (i < 2)
      assert_runs(db, "DELETE FROM docs_emb_vectors; DELETE FROM docs_emb_rows; DELETE FROM "
                      "docs_emb_packed; DELETE FROM docs_emb_config WHERE key = 'complete';"
                      "VACUUM");
    sqlite3_free(limit);
    limit = sqlite3_mprintf("PRAGMA max_page_count = %lld", sqldb_number(db, "PRAGMA page_count"));
  }
  sqlite3_free(limit);
  sqldb_close(db);
}

static void limits_of_the_connection_are_errors(void **state) {
  (void)state;
  sqlite3 *db = tabledb_open(NULL);
  tabledb_make_docs(db, "");
  assert_runs(db, "CREATE VIRTUAL TABLE own USING bertsql(body, more, model='tiny');"
                  "INSERT INTO own VALUES(hex(zeroblob(200)), hex(zeroblob(200)))");
  int length = sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1000);
  assert_answer(db, "SELECT count(*) FROM own WHERE own MATCH 'x'", "1");
  assert_runs(db, "UPDATE own SET body = body || 'x'");
  assert_error(db, "UPDATE own SET body = body || more || more", "too big");
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 100); /* below a vector */
  assert_error(db, "INSERT INTO own(body) VALUES('y')", "too big");
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, length);
  assert_answer(db, "SELECT count(*) FROM own", "1");
  assert_sound(db, "own");
  assert_runs(db, "UPDATE docs SET body = 'x'; " REFRESH);
  assert_sound(db, "docs_emb");
  sqldb_close(db);
}

int main(void) {
#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, tabledb_set_up, tabledb_tear_down)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(row_numbers_reach_both_ends),
      cmocka_unit_test(a_table_is_filled_from_itself),
      IN_FOLDER(databases_in_utf16),
      cmocka_unit_test(texts_hold_any_bytes),
      cmocka_unit_test(many_columns),
      IN_FOLDER(a_full_disk_loses_nothing),
      cmocka_unit_test(limits_of_the_connection_are_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
