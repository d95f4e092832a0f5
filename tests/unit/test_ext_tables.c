/*
** test_ext_tables.c: what the table-valued functions hold, their arguments, and
** joins in which arguments are columns of other tables.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sqldb.h"

#define MODEL "models/all-MiniLM-L6-v2"

/* ---- Contents ------------------------------------------------------------ */

static void test_models(void **state) {
  sqlite3 *db = *state;
  assert_rows(
      db,
      "SELECT name, source, family, tokenizer, layers, heads, dim, vocab, max_tokens, pooling, "
      "normalize, precision, tasks, is_default FROM bert_models",
      "minilm|" MODEL "|bert|wordpiece|6|12|384|30522|256|mean|1|float32|embed|1");
  assert_true(sqldb_number(db, "SELECT mapped_bytes + private_bytes FROM bert_models") > 80000000);
  assert_runs(db, "SELECT bert_load('" MODEL "', 'second')");
  assert_rows(db, "SELECT name, is_default, rowid FROM bert_models", "minilm|1|1 second|0|2");
  assert_runs(db, "SELECT bert_unload('minilm'), bert_unload('second')");
  assert_rows(db, "SELECT count(*) FROM bert_models", "0");
  assert_error(db, "SELECT * FROM bert_models('x')", "too many arguments on bert_models() - max 0");
}

static void test_tokens(void **state) {
  sqlite3 *db = *state;
  assert_rows(db, "SELECT * FROM bert_tokens('Time flies')",
              "0|101|[CLS]|NULL|0|0|NULL|1|-1|1 1|2051|time|Time|0|4|0|0|0|1 "
              "2|10029|flies|flies|5|10|1|0|0|1 3|102|[SEP]|NULL|0|0|NULL|1|-1|1");
  assert_rows(
      db, "SELECT token, text, start, stop, segment FROM bert_tokens('a', '{\"text_b\":\"b é\"}')",
      "[CLS]|NULL|0|0|-1 a|a|0|1|0 [SEP]|NULL|0|0|-1 b|b|0|1|1 e|é|2|4|1 [SEP]|NULL|0|0|-1");
  /* A special token written in the text is no added one. */
  assert_rows(db, "SELECT token, text, special FROM bert_tokens('[MASK]') WHERE pos = 1",
              "[MASK]|[MASK]|0");
  assert_rows(db, "SELECT count(*), count(DISTINCT word) FROM bert_tokens('unaffable words')",
              "6|2");
  assert_rows(db, "SELECT token, used FROM bert_tokens('a b c', '{\"max_tokens\":4}')",
              "[CLS]|1 a|1 b|1 c|0 [SEP]|1");
  assert_rows(db, "SELECT count(*) FROM bert_tokens('')", "2");
  assert_rows(db, "SELECT group_concat(token, ' ') FROM bert_tokens(x'61ff62')", "[CLS] ab [SEP]");
  assert_rows(db, "SELECT token FROM bert_tokens(1234) WHERE special = 0", "123 ##4");
  assert_rows(db, "SELECT count(*) FROM bert_tokens('a' || char(0) || 'b') WHERE special = 0", "1");
}

static void test_chunks(void **state) {
  sqlite3 *db = *state;
  assert_rows(db, "SELECT * FROM bert_chunks('a b c d e', 5, 1)", "0|a b c|0|5|5 1|c d e|4|9|5");
  assert_rows(db, "SELECT * FROM bert_chunks('', 5, 0)", "0||0|0|2");
  assert_rows(db, "SELECT chunk FROM bert_chunks(NULL, 5, 0)", "(no rows)");
  assert_rows(db,
              "SELECT min(c.n_tokens = (SELECT count(*) FROM bert_tokens(c.text))) FROM "
              "bert_chunks(replace(hex(zeroblob(300)), '00', 'some words '), 20, 5) c",
              "1");
  assert_error(db, "SELECT * FROM bert_chunks('a b', 2, 0)", "max_tokens");
  assert_error(db, "SELECT * FROM bert_chunks('a b', 5, 3)", "overlap");
  assert_error(db, "SELECT * FROM bert_chunks('a b', 5, -1)", "overlap must be an integer from 0");
  assert_error(db, "SELECT * FROM bert_chunks('a b', '5', 0)", "not the text '5'");
  assert_error(db, "SELECT * FROM bert_chunks('a b', NULL, 0)", "max_tokens is NULL");
  assert_error(db, "SELECT * FROM bert_chunks('a b', 5, NULL)", "overlap is NULL");
  assert_error(db, "SELECT * FROM bert_chunks('a b', 5)",
               "bert_chunks: needs a text, the tokens of a chunk and of the overlap");
  assert_error(db, "SELECT * FROM bert_chunks('a b', 5, 0, '{\"text_b\":\"x\"}')", "model");
}

static void test_hidden(void **state) {
  sqlite3 *db = *state;
  assert_rows(db,
              "SELECT layer, pos, token, length(vector), subtype_of(vector), truncated FROM "
              "bert_hidden('hi you')",
              "6|0|[CLS]|1536|223|0 6|1|hi|1536|223|0 6|2|you|1536|223|0 6|3|[SEP]|1536|223|0");
  assert_rows(db, "SELECT DISTINCT layer FROM bert_hidden('hi', 0)", "0");
  assert_rows(db, "SELECT DISTINCT layer FROM bert_hidden('hi', 3.0)", "3");
  assert_rows(
      db, "SELECT count(*), max(truncated) FROM bert_hidden('a b c', NULL, '{\"max_tokens\":4}')",
      "4|1");
  /* The embedding is the normalized mean of the last layer. */
  assert_rows(db,
              "SELECT abs(sum(bert_dot(h.vector, bert_embed('hi you'))) / count(*) / "
              "sqrt((SELECT avg(bert_dot(a.vector, b.vector)) FROM bert_hidden('hi you') a, "
              "bert_hidden('hi you') b)) - 1) < 1e-5 FROM bert_hidden('hi you') h",
              "1");
  assert_rows(db,
              "SELECT count(DISTINCT h.vector) FROM (VALUES (0), (1), (2), (3), (4), (5), (6)) g, "
              "bert_hidden('hi', g.column1) h WHERE h.pos = 1",
              "7");
}

static void test_hidden_layers(void **state) {
  sqlite3 *db = *state;
  static const char *const bad[] = {"-1", "7", "1.5", "'2'", "x'02'", "9e99"};
  static const char *const found[] = {"not -1",           "not 7",      "not 1.5",
                                      "not the text '2'", "not a BLOB", "not 9"};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    char *sql = sqlite3_mprintf("SELECT * FROM bert_hidden('hi', %s)", bad[i]);
    assert_error(db, sql, "bert_hidden: layer must be an integer from 0 to 6, ");
    assert_error(db, sql, found[i]);
    sqlite3_free(sql);
  }
}

/* What WHERE asks of layer and pos never changes which rows there are. */
static void test_pushed(void **state) {
  sqlite3 *db = *state;
  static const char *const conditions[] = {"pos = 2",
                                           "pos = 2.0",
                                           "pos = '2'",
                                           "pos = 99",
                                           "pos = -1",
                                           "pos = NULL",
                                           "pos = x'32'",
                                           "pos = 1.5",
                                           "layer = 6",
                                           "layer = 2",
                                           "layer = '6'",
                                           "pos IN (1, 2, 2)",
                                           "pos = 1 OR pos = 3",
                                           "pos IS 2",
                                           "layer = pos",
                                           "pos = 1 AND layer = 6",
                                           "pos = 2 AND pos = 3",
                                           "pos = 1 OR token = 'you'"};
  for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
    char *pushed = sqlite3_mprintf("SELECT pos, length(vector) FROM bert_hidden('hi you') WHERE %s "
                                   "ORDER BY pos",
                                   conditions[i]);
    char *plain = sqlite3_mprintf("SELECT pos, length(vector) FROM (SELECT * FROM "
                                  "bert_hidden('hi you') LIMIT -1 OFFSET 0) WHERE %s ORDER BY pos",
                                  conditions[i]);
    char *rows = sqldb_answer(db, plain, NULL);
    assert_answer(db, pushed, rows);
    sqlite3_free(rows);
    sqlite3_free(plain);
    sqlite3_free(pushed);
  }
  assert_rows(db,
              "SELECT d.id, h.token FROM docs d JOIN bert_hidden('time flies') h ON h.pos = d.id",
              "1|time 2|flies 3|[SEP]");
}

/* ---- Arguments and joins -------------------------------------------------- */

static void test_arguments(void **state) {
  sqlite3 *db = *state;
  assert_error(db, "SELECT * FROM bert_tokens",
               "bert_tokens: needs a text, as in bert_tokens('some text')");
  assert_error(db, "SELECT * FROM bert_tokens()", "bert_tokens: needs a text");
  assert_error(db, "SELECT * FROM bert_hidden", "bert_hidden: needs a text, as in bert_hidden(");
  assert_error(db, "SELECT * FROM bert_embed_rows", "bert_embed_rows: needs a SELECT");
  assert_error(db, "SELECT * FROM bert_tokens('a', NULL, 1)",
               "too many arguments on bert_tokens() - max 2");
  assert_error(db, "SELECT * FROM bert_hidden('a', 1, NULL, 1)", "takes at most 3 arguments");
  assert_error(db, "SELECT * FROM bert_hidden('a', 1, NULL, NULL)", "takes at most 3 arguments");
  assert_error(db, "SELECT * FROM bert_tokens('a', '{\"colour\":1}')", "colour");
  assert_error(db, "SELECT * FROM bert_tokens('a', '{\"model\":\"nix\"}')", "minilm");
  assert_rows(db, "SELECT count(*) FROM bert_tokens('a', NULL)", "3");
  assert_rows(db, "SELECT count(*) FROM bert_hidden('a', NULL, NULL)", "3");
  assert_rows(db, "SELECT count(*) FROM bert_tokens(NULL)", "0");
  assert_rows(db, "SELECT count(*) FROM bert_hidden(NULL, 1)", "0");
  assert_rows(db, "SELECT count(*) FROM bert_embed_rows(NULL)", "0");
  assert_rows(db, "SELECT pos, in_text, options FROM bert_tokens('a') WHERE pos = 1", "1|a|NULL");
  assert_rows(db, "SELECT in_text, in_layer, options FROM bert_hidden('a', 2, '{}') LIMIT 1",
              "a|2|{}");
  assert_rows(db, "SELECT token FROM bert_tokens WHERE in_text = 'hi' AND special = 0", "hi");
  /* A second condition on an argument is a condition. */
  assert_rows(db, "SELECT count(*) FROM bert_tokens('a') WHERE in_text = 'b'", "0");
  assert_rows(db, "SELECT count(*) FROM bert_tokens('a') WHERE in_text LIKE 'A'", "3");
  assert_rows(
      db,
      "SELECT in_text, count(*) FROM bert_tokens WHERE in_text IN ('a', 'b c', NULL) GROUP BY 1",
      "a|3 b c|4");
  assert_rows(db,
              "SELECT count(*) FROM bert_tokens WHERE (in_text = 'a' AND pos < 2) OR "
              "(in_text = 'b c' AND pos < 1)",
              "3");
}

/* SQLite joins the parts of an OR by rowid: rows of two calls are never the
** same, rows of two scans of one call are. */
static void test_rowids(void **state) {
  sqlite3 *db = *state;
  assert_rows(db, "SELECT rowid & 0xffffffff, pos FROM bert_tokens('a') ORDER BY rowid DESC",
              "3|2 2|1 1|0");
  assert_rows(db, "SELECT rowid & 0xffffffff, pos FROM bert_hidden('a') WHERE pos = 1", "2|1");
  assert_rows(db, "SELECT rowid, name FROM bert_models", "1|minilm");
  assert_rows(db,
              "SELECT token FROM bert_tokens WHERE (in_text = 'a' AND pos = 1) OR "
              "(in_text = 'b' AND pos = 1)",
              "a b");
  assert_rows(db,
              "SELECT pos FROM bert_tokens WHERE (in_text = 'a' AND pos < 2) OR "
              "(in_text = 'a' AND pos > 0) ORDER BY pos",
              "0 1 2");
  assert_rows(db,
              "SELECT pos FROM bert_hidden WHERE (in_text = 'a' AND pos = 1) OR "
              "(in_text = 'a' AND token = 'a') OR (in_text = 'a' AND in_layer = 2 AND pos = 1)",
              "1 1");
}
static void test_joins(void **state) {
  sqlite3 *db = *state;
  const char *expected = "1|4 3|2 4|5";
  assert_rows(db, "SELECT docs.id, count(*) FROM docs, bert_tokens(docs.body) GROUP BY 1",
              expected);
  assert_rows(db, "SELECT docs.id, count(*) FROM bert_tokens(docs.body), docs GROUP BY 1",
              expected);
  assert_rows(db,
              "SELECT docs.id, count(*) FROM docs JOIN bert_tokens ON in_text = body GROUP BY 1",
              expected);
  assert_rows(db,
              "SELECT docs.id, count(*) FROM bert_tokens JOIN docs ON in_text = body GROUP BY 1",
              expected);
  assert_rows(db,
              "SELECT docs.id, count(pos) FROM docs LEFT JOIN bert_tokens(docs.body) GROUP BY 1",
              "1|4 2|0 3|2 4|5");
  assert_rows(db,
              "SELECT docs.id, t.token FROM docs LEFT JOIN bert_tokens(docs.body) t ON t.pos = 3",
              "1|[SEP] 2|NULL 3|NULL 4|apple");
  assert_rows(
      db, "SELECT docs.id, t.pos FROM docs LEFT JOIN bert_tokens(docs.body, NULL) t ON t.pos = 3",
      "1|3 2|NULL 3|NULL 4|3");
  assert_rows(db, "SELECT docs.id, (SELECT count(*) FROM bert_tokens(docs.body)) FROM docs",
              "1|4 2|0 3|2 4|5");
  assert_rows(db,
              "SELECT docs.id FROM docs WHERE EXISTS (SELECT 1 FROM bert_tokens(body) WHERE "
              "token = 'red')",
              "4");
  assert_rows(db,
              "SELECT docs.id FROM docs WHERE 'red' IN (SELECT token FROM bert_tokens(docs.body))",
              "4");
  assert_rows(
      db,
      "SELECT d.id, count(*) FROM (SELECT id, CASE id WHEN 1 THEN '{\"max_tokens\":3}' END o, "
      "body FROM docs) d, bert_hidden(d.body, NULL, d.o) GROUP BY 1",
      "1|3 3|2 4|5");
  assert_rows(db,
              "SELECT count(*) FROM docs a, docs b, bert_tokens(a.body, "
              "CASE WHEN b.body > '' THEN '{\"text_b\":\"' || b.body || '\"}' END)",
              "65");
  assert_rows(
      db, "SELECT count(*) FROM docs d, bert_chunks(d.body, 4, 0) c, bert_hidden(c.text, d.id) h",
      "13");
}

/* No order of the tables gives all of them their argument: refused, and no
** empty result. */
static void test_impossible_joins(void **state) {
  sqlite3 *db = *state;
  assert_error(db, "SELECT * FROM bert_tokens(b.token) a, bert_tokens(a.token) b",
               "no query solution");
  /* Where the order of tables is prescribed, SQLite offers no condition on a
  ** table to the right. */
  assert_error(db, "SELECT * FROM bert_tokens CROSS JOIN docs WHERE in_text = body",
               "bert_tokens: needs a text");
  assert_error(db, "SELECT count(*) FROM bert_tokens(docs.body) LEFT JOIN docs",
               "bert_tokens: needs a text");
  /* RIGHT JOIN is there from SQLite 3.39 on. SQLite 3.40 does not offer constants
  ** here either; later versions do. */
  if (sqlite3_libversion_number() < 3039000) return;
  char *answer = sqldb_answer(
      db, "SELECT count(*) FROM docs RIGHT JOIN bert_tokens('a') ON docs.id = pos", NULL);
  assert_true(strstr(answer, "bert_tokens: needs a text") != NULL || strcmp(answer, "3") == 0);
  sqlite3_free(answer);
}

static void test_two_cursors(void **state) {
  sqlite3 *db = *state;
  assert_rows(db,
              "SELECT a.token, b.token FROM bert_tokens('a b') a, bert_tokens('c') b WHERE "
              "a.special = 0 AND b.special = 0",
              "a|c b|c");
  assert_rows(db,
              "SELECT count(DISTINCT round(bert_cosine(a.vector, b.vector), 4)) FROM "
              "bert_hidden('a b') a, bert_hidden('c d e', 2) b",
              "20");
  assert_rows(db,
              "SELECT a.key, b.key, round(bert_dot(a.embedding, b.embedding), 3) FROM "
              "bert_embed_rows('SELECT id, body FROM docs') a, "
              "bert_embed_rows('SELECT id, body FROM docs') b WHERE a.key = b.key",
              "1|1|1.0 2|2|NULL 3|3|1.0 4|4|1.0");
}

static void test_recursion(void **state) {
  sqlite3 *db = *state;
  /* Each step takes the tokens of the one before. */
  assert_rows(
      db,
      "WITH RECURSIVE r(depth, t) AS (SELECT 0, 'unaffable' UNION ALL SELECT depth + 1, token "
      "FROM r, bert_tokens(r.t) WHERE depth < 2 AND special = 0) SELECT depth, count(*) FROM r "
      "GROUP BY depth",
      "0|1 1|3 2|9");
  assert_rows(
      db,
      "SELECT count(*), count(embedding) FROM bert_embed_rows('SELECT key, n_tokens || '' x'' "
      "FROM bert_embed_rows(''SELECT id, body FROM docs'')')",
      "4|3");
}

static void test_module(void **state) {
  sqlite3 *db = *state;
  assert_error(db, "CREATE VIRTUAL TABLE t USING bert_tokens('a')", "no such module: bert_tokens");
  assert_error(db, "INSERT INTO bert_tokens(pos) VALUES (1)", "may not be modified");
  assert_error(db, "DELETE FROM bert_models", "may not be modified");
  assert_runs(db, "CREATE VIEW v AS SELECT * FROM bert_tokens('a b'); "
                  "CREATE VIEW w AS SELECT * FROM bert_embed_rows('SELECT 1, 2');"
                  "PRAGMA trusted_schema = OFF");
  assert_rows(db, "SELECT count(*) FROM v", "4");
  assert_error(db, "SELECT count(*) FROM w", "unsafe use of virtual table \"bert_embed_rows\"");
  assert_runs(db, "PRAGMA trusted_schema = ON");
  assert_error(db, "SELECT count(*) FROM w", "unsafe use of virtual table \"bert_embed_rows\"");
  assert_rows(
      db, "SELECT group_concat(name, ' ') FROM pragma_table_xinfo('bert_hidden') WHERE hidden = 1",
      "in_text in_layer options surplus_argument truncated");
  assert_rows(
      db,
      "SELECT group_concat(name || ' ' || type, ', ') FROM pragma_table_info('bert_embed_rows')",
      "key , embedding BLOB, n_tokens INTEGER, truncated INTEGER");
}

static void test_utf16(void **state) {
  sqlite3 *db = NULL;
  assert_int_equal(sqlite3_open16(u":memory:", &db), SQLITE_OK);
  sqlite3_enable_load_extension(db, 1);
  assert_int_equal(sqlite3_load_extension(db, BERTSQL_LIBRARY, "sqlite3_bertsql_init", NULL),
                   SQLITE_OK);
  assert_runs(
      db, "PRAGMA encoding = 'UTF-16le'; SELECT bert_load('" MODEL "', 'm');"
          "CREATE TABLE docs(id INTEGER PRIMARY KEY, body); INSERT INTO docs VALUES (7, 'é x')");
  assert_rows(db, "SELECT text, start, stop FROM docs, bert_tokens(body) WHERE special = 0",
              "é|0|2 x|3|4");
  assert_rows(db, "SELECT in_text FROM docs, bert_tokens(body) LIMIT 1", "é x");
  assert_rows(db, "SELECT text FROM docs, bert_chunks(body, 9, 0)", "é x");
  assert_rows(db,
              "SELECT key, bert_l2(embedding, bert_embed('é x')) < 1e-6 FROM "
              "bert_embed_rows('SELECT id, body FROM docs')",
              "7|1");
  assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, sqldb_open_docs, sqldb_close_docs)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_models),           TEST(test_tokens),        TEST(test_chunks),
      TEST(test_hidden),           TEST(test_hidden_layers), TEST(test_pushed),
      TEST(test_arguments),        TEST(test_rowids),        TEST(test_joins),
      TEST(test_impossible_joins), TEST(test_two_cursors),   TEST(test_recursion),
      TEST(test_module),           TEST(test_utf16)};
  return cmocka_run_group_tests_name("table-valued functions", tests, NULL, NULL);
}
