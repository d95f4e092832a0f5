/*
** test_ext_attention_tables.c: the tables and the scalar function of attention
** as parts of SQL: arguments, conditions, joins, cursors, interrupts, and what
** is refused.
*/
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "checkpoint.h"
#include "scratch.h"
#include "sqldb.h"

#define MODEL "models/all-MiniLM-L6-v2"

/* ---- Conditions ------------------------------------------------------------- */

/* What WHERE asks never changes which rows there are. `table` is a call. */
static void same_with_conditions(sqlite3 *db, const char *table, const char *columns,
                                 const char *const *conditions, size_t count) {
  for (size_t i = 0; i < count; i++) {
    char *pushed = sqlite3_mprintf("SELECT %s, rowid FROM %s WHERE %s ORDER BY rowid", columns,
                                   table, conditions[i]);
    char *plain = sqlite3_mprintf("SELECT %s, r FROM (SELECT *, rowid AS r FROM %s LIMIT -1 OFFSET "
                                  "0) WHERE %s ORDER BY r",
                                  columns, table, conditions[i]);
    char *rows = sqldb_answer(db, plain, NULL);
    assert_non_null(rows);
    assert_answer(db, pushed, rows);
    sqlite3_free(rows);
    sqlite3_free(plain);
    sqlite3_free(pushed);
  }
}

static void conditions_leave_out_no_row(void **state) {
  sqlite3 *db = *state;
  static const char *const coordinates[] = {"q_pos = 2",
                                            "q_pos = 2.0",
                                            "q_pos = '2'",
                                            "q_pos = 99",
                                            "q_pos = -1",
                                            "q_pos = NULL",
                                            "q_pos = x'32'",
                                            "q_pos = 1.5",
                                            "q_pos IN (1, 2, 2)",
                                            "q_pos = 1 OR q_pos = 3",
                                            "q_pos IS 2",
                                            "q_pos = k_pos",
                                            "q_pos = 1 AND k_pos = 0",
                                            "k_pos = 3 AND q_pos = 2 AND q_pos = 3",
                                            "q_pos = 1 OR k_pos = 0",
                                            "k_pos = 9e99",
                                            "k_pos = 9223372036854775807 OR k_pos = 2"};
  static const char *const layers[] = {"layer = 2",
                                       "layer = '2'",
                                       "layer = 2.5",
                                       "layer = -1",
                                       "layer = 6",
                                       "layer IN (0, 5, 7)",
                                       "layer = 1 OR layer = 3",
                                       "layer = NULL",
                                       "layer IS 4"};
  static const char *const heads[] = {"head = 11",    "head = 12",
                                      "head = layer", "head = 2 AND layer = 3",
                                      "head = '4'",   "(head = 1 AND layer = 0) OR (head = 2)"};
  const size_t n = sizeof coordinates / sizeof coordinates[0];
  const size_t l = sizeof layers / sizeof layers[0], h = sizeof heads / sizeof heads[0];
  same_with_conditions(db, "attn_weights('time flies', 2)",
                       "layer, head, q_pos, q_token, k_pos, k_token, weight, score", coordinates,
                       n);
  same_with_conditions(db, "attn_weights('time flies', 2, 1, '{\"words\":true}')",
                       "q_pos, q_token, k_pos, weight, score", coordinates, n);
  same_with_conditions(db, "attn_weights('time flies')", "layer, head, q_pos, weight", layers, l);
  same_with_conditions(db, "attn_weights('time flies')", "layer, head, k_pos, score", heads, h);
  same_with_conditions(db, "attn_heads('time flies')", "layer, head, entropy, norm_mean, label",
                       layers, l);
  same_with_conditions(db, "attn_heads('time flies')", "layer, head, first", heads, h);
  same_with_conditions(db, "attn_rollout('time flies')", "layer, q_pos, k_pos, k_token, weight",
                       coordinates, n);
  same_with_conditions(db, "attn_rollout('time flies')", "layer, q_token, weight", layers, l);
  same_with_conditions(db, "attn_neurons('time flies', 1, 1)", "q_pos, k_pos, dim, q, k, product",
                       coordinates, n);
}

/* Column 0 of the plan: what is pushed down is seen by the table. */
static void conditions_are_pushed_down(void **state) {
  sqlite3 *db = *state;
  /* A scan of all rows of all heads takes 72 times as many steps as that of one. */
  assert_rows(
      db,
      "SELECT count(*) FROM attn_weights('time flies') WHERE layer = 1 AND head = 2 AND q_pos = 1 "
      "AND k_pos = 2",
      "1");
  sqlite3_stmt *s = NULL;
  assert_int_equal(
      sqlite3_prepare_v2(db,
                         "SELECT count(*) FROM attn_weights('time flies') WHERE layer = "
                         "1 AND head = 2 AND q_pos = 1",
                         -1, &s, NULL),
      SQLITE_OK);
  assert_int_equal(sqlite3_step(s), SQLITE_ROW);
  assert_int_equal(sqlite3_column_int(s, 0), 4);
  assert_true(sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 0) < 200);
  sqlite3_finalize(s);
}

/* ---- Arguments ---------------------------------------------------------------- */

static void layers_and_heads(void **state) {
  sqlite3 *db = *state;
  static const char *const bad[][2] = {{"-1", "not -1"},        {"99", "not 99"},
                                       {"1.5", "not 1.5"},      {"'2'", "not the text '2'"},
                                       {"x'02'", "not a BLOB"}, {"9e99", "not 9"}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    static const char *const calls[][2] = {
        {"SELECT attn_weights('hi', %s, 0)",
         "attn_weights: layer must be an integer from 0 to 5, "},
        {"SELECT attn_weights('hi', 0, %s)",
         "attn_weights: head must be an integer from 0 to 11, "},
        {"SELECT * FROM attn_weights('hi', %s)", "layer must be an integer from 0 to 5, "},
        {"SELECT * FROM attn_weights('hi', NULL, %s)", "head must be an integer from 0 to 11, "},
        {"SELECT * FROM attn_neurons('hi', %s, 0)",
         "attn_neurons: layer must be an integer from 0"},
        {"SELECT * FROM attn_neurons('hi', 0, %s)",
         "attn_neurons: head must be an integer from 0"}};
    for (size_t k = 0; k < sizeof calls / sizeof calls[0]; k++) {
      char *sql = sqlite3_mprintf(calls[k][0], bad[i][0]);
      assert_error(db, sql, calls[k][1]);
      assert_error(db, sql, bad[i][1]);
      sqlite3_free(sql);
    }
  }
  assert_error(db, "SELECT attn_weights('hi', NULL, 0)",
               "attn_weights: layer must be an integer from 0 to 5, not NULL");
  assert_error(db, "SELECT attn_weights('hi', 0, NULL)",
               "attn_weights: head must be an integer from 0 to 11, not NULL");
  assert_error(db, "SELECT * FROM attn_neurons('hi', NULL, 0)", "0 to 5, not NULL");
  assert_error(db, "SELECT * FROM attn_neurons('hi', 0, NULL)", "0 to 11, not NULL");
  assert_rows(db, "SELECT attn_weights('hi', 5.0, 11) = attn_weights('hi', 5, 11.0)", "1");
  assert_rows(db, "SELECT attn_weights(NULL, 0, 0), attn_weights(NULL, 'x', NULL, 'y')",
              "NULL|NULL");
  assert_rows(db, "SELECT DISTINCT layer, head FROM attn_weights('hi', 3, 7)", "3|7");
  assert_rows(db, "SELECT count(DISTINCT layer), count(DISTINCT head) FROM attn_weights('hi', 3)",
              "1|12");
  assert_rows(db,
              "SELECT count(DISTINCT layer), count(DISTINCT head) FROM attn_weights('hi', NULL, 3)",
              "6|1");
  assert_rows(db, "SELECT count(*) FROM attn_weights('hi', NULL, NULL, NULL)", "648");
  assert_rows(db, "SELECT count(*) FROM attn_weights('hi', 3) WHERE layer = 2", "0");
  assert_rows(db, "SELECT count(*) FROM attn_weights('hi', 3) WHERE layer = 3", "108");
}

static void arguments(void **state) {
  sqlite3 *db = *state;
  assert_error(db, "SELECT * FROM attn_weights", "attn_weights: needs a text, as in attn_weights(");
  assert_error(db, "SELECT * FROM attn_heads()", "attn_heads: needs a text, as in attn_heads(");
  assert_error(db, "SELECT * FROM attn_rollout", "attn_rollout: needs a text");
  assert_error(db, "SELECT * FROM attn_neurons('x', 1)",
               "attn_neurons: needs a text, a layer and a head");
  assert_error(db, "SELECT * FROM attn_weights('x', 1, 1, NULL, 1)", "takes at most 4 arguments");
  assert_error(db, "SELECT * FROM attn_heads('x', NULL, 1)", "takes at most 2 arguments");
  assert_error(db, "SELECT attn_weights('x')", "wrong number of arguments");
  assert_rows(db, "SELECT count(*) FROM attn_weights(NULL), attn_heads('x')", "0");
  assert_rows(db, "SELECT count(*) FROM attn_neurons(NULL, 99, 99)", "0");
  assert_rows(db, "SELECT count(*) FROM attn_rollout(NULL)", "0");
  assert_rows(db, "SELECT in_text, in_layer, in_head, options FROM attn_weights('x', 2) LIMIT 1",
              "x|2|NULL|NULL");
  assert_rows(
      db, "SELECT count(*) FROM attn_weights WHERE in_text = 'x' AND in_layer = 1 AND q_pos = 0",
      "36");
  assert_rows(
      db, "SELECT group_concat(name, ' ') FROM pragma_table_xinfo('attn_weights') WHERE hidden = 1",
      "in_text in_layer in_head options surplus_argument truncated");
}

static void options(void **state) {
  sqlite3 *db = *state;
  static const char *const calls[] = {
      "SELECT attn_weights('x', 0, 0, %Q)", "SELECT weight FROM attn_weights('x', 0, 0, %Q)",
      "SELECT * FROM attn_heads('x', %Q)", "SELECT * FROM attn_rollout('x', %Q)"};
  static const char *const bad[][2] = {
      {"{\"colour\":1}",
       "unknown option \"colour\"; the options are model, text_b, words, special, "
       "renormalize, temperature, max_tokens"},
      {"{\"model\":\"nix\"}", "no model \"nix\" is loaded; the names are minilm"},
      {"{\"temperature\":0}",
       "option \"temperature\" must be a number from 1e-06 to 1000000, not 0"},
      {"{\"temperature\":-1}", "not -1"},
      {"{\"temperature\":\"warm\"}", "not \"warm\""},
      {"{\"words\":\"yes\"}", "option \"words\" must be true or false, not \"yes\""},
      {"{\"special\":2}", "option \"special\" must be true or false"},
      {"{\"renormalize\":[]}", "option \"renormalize\" must be true or false"},
      {"{\"text_b\":5}", "option \"text_b\" must be a string"},
      {"{\"max_tokens\":1}", "max_tokens"},
      {"{\"max_tokens\":513}", "512"},
      {"nothing", "are a JSON object such as"},
      {"[]", "are a JSON object such as"}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    for (size_t k = 0; k < sizeof calls / sizeof calls[0]; k++) {
      char *sql = sqlite3_mprintf(calls[k], bad[i][0]);
      assert_error(db, sql, bad[i][1]);
      sqlite3_free(sql);
    }
  assert_error(db, "SELECT attn_weights('x', 0, 0, '{\"format\":\"xml\"}')",
               "option \"format\" must be one of json, blob, not \"xml\"");
  assert_error(db, "SELECT * FROM attn_weights('x', 0, 0, '{\"format\":\"blob\"}')",
               "unknown option \"format\"");
  assert_error(db, "SELECT * FROM attn_neurons('x', 0, 0, '{\"words\":true}')",
               "attn_neurons: option \"words\" must be false here: only tokens have query and key "
               "vectors");
  assert_error(db, "SELECT * FROM attn_neurons('x', 0, 0, '{\"temperature\":2}')",
               "unknown option \"temperature\"; the options are model, text_b, words, special, "
               "max_tokens");
  assert_rows(db,
              "SELECT count(*) FROM attn_neurons('x', 0, 0, '{\"words\":false,\"text_b\":\"y\"}')",
              "800");
}

/* Extreme temperatures give numbers, at worst 0 and 1. */
static void temperatures(void **state) {
  sqlite3 *db = *state;
  assert_rows(db,
              "SELECT count(*), sum(weight), max(weight) FROM attn_weights('time flies', 0, 0, "
              "'{\"temperature\":1e-6}')",
              "16|4.0|1.0");
  assert_rows(
      db,
      "SELECT count(*), min(weight) > 0.2499, max(weight) < 0.2501 FROM attn_weights('time flies', "
      "0, 0, '{\"temperature\":1e6}')",
      "16|1|1");
}

/* ---- Texts ---------------------------------------------------------------------- */

static void texts_of_any_kind(void **state) {
  sqlite3 *db = *state;
  assert_rows(db, "SELECT count(*), min(truncated), max(truncated) FROM attn_weights('', 0, 0)",
              "4|0|0");
  assert_rows(db, "SELECT DISTINCT q_token FROM attn_weights('', 0, 0)", "[CLS] [SEP]");
  assert_rows(db, "SELECT attn_weights('', 0, 0, '{\"special\":false}')", "[]");
  assert_rows(
      db, "SELECT length(attn_weights('', 0, 0, '{\"special\":false,\"format\":\"blob\"}'))", "0");
  assert_rows(db, "SELECT count(*) FROM attn_weights('', NULL, NULL, '{\"special\":false}')", "0");
  assert_rows(db, "SELECT count(*) FROM attn_rollout('', '{\"special\":false}')", "0");
  assert_rows(db, "SELECT count(*) FROM attn_neurons('', 0, 0, '{\"special\":false}')", "0");
  assert_rows(db,
              "SELECT DISTINCT label, entropy, norm_mean, collapsed FROM attn_heads('', "
              "'{\"special\":false}')",
              "single|0.0|0.0|0");
  assert_rows(db, "SELECT DISTINCT q_token FROM attn_weights(x'61ff62', 0, 0)", "[CLS] ab [SEP]");
  assert_rows(db, "SELECT count(*) FROM attn_weights('a' || char(0) || 'b', 0, 0)", "9");
  assert_rows(db,
              "SELECT group_concat(t, '|') FROM (SELECT DISTINCT q_token AS t FROM "
              "attn_weights('caf\xc3\xa9s "
              "\xe4\xbd\xa0\xe5\xa5\xbd <b>&\"', 0, 0, '{\"words\":true}'))",
              "[CLS]|caf\xc3\xa9s|\xe4\xbd\xa0|\xe5\xa5\xbd|<|b|>|&|\"|[SEP]");
  assert_rows(db,
              "SELECT group_concat(q_token, ' ') FROM (SELECT DISTINCT q_pos, q_token FROM "
              "attn_weights('is it?', 0, 0, '{\"text_b\":\"it is\"}'))",
              "[CLS] is it ? [SEP] it is [SEP]");
  assert_rows(db,
              "SELECT count(*), max(truncated) FROM attn_weights('a b c d', 0, 0, "
              "'{\"max_tokens\":4}')",
              "16|1");
  assert_rows(db, "SELECT max(truncated), count(*) FROM attn_heads('a b c', '{\"max_tokens\":4}')",
              "1|72");
  assert_rows(db,
              "SELECT max(q_pos) + 1, min(truncated) FROM attn_rollout(replace(hex(zeroblob(300)), "
              "'00', 'w '), '{\"max_tokens\":20}') WHERE layer = 0 AND k_pos = 0",
              "20|1");
  assert_rows(db, "SELECT truncated FROM attn_neurons('a b c', 0, 0, '{\"max_tokens\":3}') LIMIT 1",
              "1");
  /* Pieces of a word that the limit has cut apart. */
  assert_rows(db,
              "SELECT DISTINCT q_token FROM attn_weights('unaffable', 0, 0, "
              "'{\"words\":true,\"max_tokens\":4}')",
              "[CLS] unaffa [SEP]");
}

static void weights_that_are_no_numbers(void **state) {
  sqlite3 *db = *state;
  char *copy = scratch_copy("tests/golden/families/bert-mean");
  checkpoint_spoil(copy, "encoder.layer.1.attention.self.key.weight", 20 * 32, NAN);
  char *load = sqlite3_mprintf("SELECT bert_load(%Q, 'spoilt')", copy);
  assert_runs(db, load);
  static const char *const calls[] = {
      "SELECT attn_weights('time', 0, 0, '{\"model\":\"spoilt\"}')",
      "SELECT weight FROM attn_weights('time', 0, 0, '{\"model\":\"spoilt\"}')",
      "SELECT entropy FROM attn_heads('time', '{\"model\":\"spoilt\"}')",
      "SELECT weight FROM attn_rollout('time', '{\"model\":\"spoilt\"}')"};
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
    assert_error(db, calls[i], "attention weights of layer 1, head 1 are not finite numbers");
  assert_rows(db, "SELECT count(*) FROM attn_heads('time')", "72");
  sqlite3_free(load);
  scratch_free(copy);
}

/* ---- Joins ------------------------------------------------------------------------ */

static void joins(void **state) {
  sqlite3 *db = *state;
  assert_rows(db, "SELECT docs.id, count(*) FROM docs, attn_heads(docs.body) GROUP BY 1",
              "1|72 3|72 4|72");
  assert_rows(db, "SELECT docs.id, count(*) FROM attn_heads(docs.body), docs GROUP BY 1",
              "1|72 3|72 4|72");
  assert_rows(db,
              "SELECT docs.id, count(layer) FROM docs LEFT JOIN attn_heads(docs.body) GROUP BY 1",
              "1|72 2|0 3|72 4|72");
  assert_rows(
      db,
      "SELECT docs.id, (SELECT count(DISTINCT layer * 100 + head) FROM attn_heads(docs.body)) FROM "
      "docs",
      "1|72 2|0 3|72 4|72");
  assert_rows(db,
              "SELECT docs.id, w.k_token, count(*) FROM docs JOIN attn_weights(docs.body, 0) w ON "
              "w.q_pos = "
              "1 AND w.k_pos = 2 AND w.head < docs.id GROUP BY 1, 2",
              "1|flies|1 4|red|4");
  assert_rows(
      db,
      "SELECT count(*), max(abs(w.weight - json_extract(attn_weights(docs.body, w.layer, w.head), "
      "'$[0][0]'))) < 1e-6 FROM docs JOIN attn_weights(docs.body) w ON w.q_pos = 0 AND w.k_pos = 0",
      "216|1");
  assert_rows(
      db,
      "SELECT h.layer, h.head, abs(sum(w.weight) / 4 - h.first) < 1e-6 FROM attn_heads('time "
      "flies') h JOIN attn_weights('time flies', h.layer, h.head) w ON w.k_pos = 0 WHERE h.layer = "
      "h.head GROUP BY 1, 2",
      "0|0|1 1|1|1 2|2|1 3|3|1 4|4|1 5|5|1");
  assert_rows(
      db,
      "SELECT docs.id, count(*) FROM docs JOIN attn_rollout(docs.body) r ON r.layer = docs.id "
      "GROUP "
      "BY 1",
      "1|16 3|4 4|25");
  assert_rows(
      db,
      "SELECT count(*) FROM attn_heads('time flies') h JOIN attn_neurons('time flies', h.layer, "
      "h.head) n WHERE n.q_pos = 0 AND n.k_pos = 0 AND n.dim = 0",
      "72");
  assert_error(db, "SELECT * FROM attn_heads(b.label) a, attn_heads(a.label) b",
               "no query solution");
  assert_rows(
      db,
      "SELECT count(*) FROM attn_weights WHERE (in_text = 'a' AND q_pos = 1 AND in_layer = 0) OR "
      "(in_text = 'b' AND q_pos = 1 AND in_layer = 0)",
      "72");
}

static void attention_is_recorded(void **state) {
  sqlite3 *db = *state;
  assert_runs(db, "CREATE TABLE recorded AS SELECT docs.id, w.* FROM docs JOIN "
                  "attn_weights(docs.body, 5) w");
  assert_rows(db, "SELECT count(*), count(DISTINCT id), sum(typeof(weight) = 'real') FROM recorded",
              "540|3|540");
  assert_rows(
      db,
      "SELECT max(abs(r.weight - w.weight)) FROM recorded r JOIN docs USING (id) JOIN "
      "attn_weights(docs.body, r.layer, r.head) w ON w.q_pos = r.q_pos AND w.k_pos = r.k_pos",
      "0.0");
  assert_runs(db, "CREATE VIEW v AS SELECT docs.id, h.layer, h.head, h.label FROM docs JOIN "
                  "attn_heads(docs.body) h; PRAGMA trusted_schema = OFF");
  assert_rows(db, "SELECT count(*) FROM v", "216");
  assert_runs(db, "CREATE TABLE t(x, w GENERATED ALWAYS AS (attn_weights(x, 0, 0)) STORED);"
                  "INSERT INTO t VALUES ('time flies'), (NULL)");
  assert_rows(db, "SELECT json_array_length(w) FROM t", "4 NULL");
}

/* ---- Cursors ------------------------------------------------------------------------ */

static void two_cursors(void **state) {
  sqlite3 *db = *state;
  assert_rows(
      db,
      "SELECT a.q_token, b.q_token, a.weight <> b.weight FROM attn_weights('time flies', 0, 0) a, "
      "attn_weights('a red apple', 3, 1) b WHERE a.q_pos IN (1, 2) AND a.k_pos = 0 AND b.q_pos = 3 "
      "AND b.k_pos = 4",
      "time|apple|1 flies|apple|1");
  assert_rows(
      db,
      "SELECT count(*), sum(a.weight > b.weight) > 0 FROM attn_rollout('time flies') a, "
      "attn_rollout('a red') b WHERE a.layer = b.layer AND a.q_pos = b.q_pos AND a.k_pos = b.k_pos",
      "96|1");
  assert_rows(
      db,
      "SELECT count(*), count(DISTINCT a.norm_mean || b.norm_mean) FROM attn_heads('time') a, "
      "attn_heads('flies') b",
      "5184|5184");
}

static sqlite3_stmt *step_once(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = NULL;
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK || sqlite3_step(s) != SQLITE_ROW)
    fail_msg("%s: %s", sql, sqlite3_errmsg(db));
  return s;
}

/* A model that is unloaded in the middle of a scan stays for that scan. */
static void unloading_while_scanning(void **state) {
  sqlite3 *db = *state;
  static const char *const scans[] = {
      "SELECT weight, score, k_token FROM attn_weights('time flies', 0, 0)",
      "SELECT weight, score, k_token FROM attn_weights('time flies', 0, 0, '{\"words\":true}')",
      "SELECT entropy, norm_mean FROM attn_heads('time flies') WHERE layer = 1",
      "SELECT weight, k_token FROM attn_rollout('time flies')",
      "SELECT product FROM attn_neurons('time flies', 0, 0)"};
  static const int rows[] = {16, 16, 12, 96, 512};
  for (size_t i = 0; i < sizeof scans / sizeof scans[0]; i++) {
    int seen = 1, rc;
    sqlite3_stmt *s = step_once(db, scans[i]);
    assert_runs(db, "SELECT bert_unload('minilm')");
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) seen++;
    assert_int_equal(rc, SQLITE_DONE);
    assert_int_equal(seen, rows[i]);
    sqlite3_finalize(s);
    assert_runs(db, "SELECT bert_load('" MODEL "', 'minilm')");
  }
}

/* Another text in between takes the place of the pass that is kept. */
static void another_text_while_scanning(void **state) {
  sqlite3 *db = *state;
  char *expected =
      sqldb_answer(db, "SELECT sum(weight * (1 + k_pos)) FROM attn_weights('time flies', 3)", NULL);
  double sum = 0;
  sqlite3_stmt *s = step_once(db, "SELECT weight * (1 + k_pos) FROM attn_weights('time flies', 3)");
  do {
    sum += sqlite3_column_double(s, 0);
    assert_runs(db, "SELECT attn_weights('something else', 0, 0)");
  } while (sqlite3_step(s) == SQLITE_ROW);
  sqlite3_finalize(s);
  assert_true(fabs(sum - strtod(expected, NULL)) < 1e-6);
  sqlite3_free(expected);
}

/* The same file under two models, and a file that changes while its pass is kept. */
static void a_file_that_changes_is_noticed(void **state) {
  sqlite3 *db = *state;
  char *copy = scratch_copy("tests/golden/families/bert-mean");
  char *load = sqlite3_mprintf("SELECT bert_load(%Q, 'tiny')", copy);
  assert_runs(db, load);
  assert_rows(db, "SELECT count(norm_mean) FROM attn_heads('time', '{\"model\":\"tiny\"}')", "6");
  scratch_write(copy, "model.safetensors", "cut", 3);
  assert_error(db, "SELECT norm_mean FROM attn_heads('time', '{\"model\":\"tiny\"}')", "changed");
  assert_error(db, "SELECT attn_weights('time', 0, 0, '{\"model\":\"tiny\"}')", "changed");
  assert_rows(db, "SELECT count(norm_mean) FROM attn_heads('time')", "72");
  sqlite3_free(load);
  scratch_free(copy);
}

/* ---- Interrupts ----------------------------------------------------------------------- */

static void interrupt_now(sqlite3_context *context, int argc, sqlite3_value **argv) {
  sqlite3_interrupt(sqlite3_context_db_handle(context));
  sqlite3_result_value(context, argv[0]);
}

/* The interrupt comes before the model runs, within the same step. */
static void interrupts(void **state) {
  sqlite3 *db = *state;
  sqlite3_create_function(db, "interrupt_now", 1, SQLITE_UTF8, NULL, interrupt_now, NULL, NULL);
  static const char *const calls[] = {
      "SELECT attn_weights(interrupt_now('a text that nobody has run'), 0, 0)",
      "SELECT * FROM attn_weights(interrupt_now('a text that nobody has run'))",
      "SELECT * FROM attn_heads(interrupt_now('a text that nobody has run'))",
      "SELECT * FROM attn_rollout(interrupt_now('a text that nobody has run'))",
      "SELECT sum(weight) FROM attn_weights('time flies') WHERE iif(q_pos = 2, interrupt_now(1), "
      "1)",
      "SELECT sum(product) FROM attn_neurons('time flies', 0, 0) WHERE interrupt_now(1)"};
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    int rc;
    char *answer = sqldb_answer(db, calls[i], &rc);
    if (rc != SQLITE_INTERRUPT) fail_msg("%s\n  answers %d, %s", calls[i], rc, answer);
    sqlite3_free(answer);
    assert_rows(db, "SELECT count(*) FROM attn_heads('still usable')", "72");
  }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, sqldb_open_docs, sqldb_close_docs)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(conditions_leave_out_no_row),
                                     TEST(conditions_are_pushed_down),
                                     TEST(layers_and_heads),
                                     TEST(arguments),
                                     TEST(options),
                                     TEST(temperatures),
                                     TEST(texts_of_any_kind),
                                     TEST(weights_that_are_no_numbers),
                                     TEST(joins),
                                     TEST(attention_is_recorded),
                                     TEST(two_cursors),
                                     TEST(unloading_while_scanning),
                                     TEST(another_text_while_scanning),
                                     TEST(a_file_that_changes_is_noticed),
                                     TEST(interrupts)};
  return cmocka_run_group_tests_name("attention tables", tests, NULL, NULL);
}
