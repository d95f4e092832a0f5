/*
** test_ext_attention.c: attention through SQL against reference implementations
** and against itself: weights, scores, statistics, rollout and neurons must fit
** together, whatever the options.
*/
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden.h"
#include "sqldb.h"

#define MODEL "models/all-MiniLM-L6-v2"
#define FLIES "'Unbelievable flies like a banana, but time flies.'"

static void natural_logarithm(sqlite3_context *context, int argc, sqlite3_value **argv) {
  sqlite3_result_double(context, log(sqlite3_value_double(argv[0])));
}

static void exponential(sqlite3_context *context, int argc, sqlite3_value **argv) {
  sqlite3_result_double(context, exp(sqlite3_value_double(argv[0])));
}

static void subtype_of(sqlite3_context *context, int argc, sqlite3_value **argv) {
  sqlite3_result_int(context, (int)sqlite3_value_subtype(argv[0]));
}

static int open_test(void **state) {
  sqlite3 *db = sqldb_open(NULL);
  assert_runs(db, "SELECT bert_load('" MODEL "', 'minilm')");
  sqlite3_create_function(db, "nat_log", 1, SQLITE_UTF8, NULL, natural_logarithm, NULL, NULL);
  sqlite3_create_function(db, "nat_exp", 1, SQLITE_UTF8, NULL, exponential, NULL, NULL);
  sqlite3_create_function(db, "subtype_of", 1, SQLITE_UTF8, NULL, subtype_of, NULL, NULL);
  *state = db;
  return 0;
}

static int close_test(void **state) {
  sqldb_close(*state);
  return 0;
}

/* ---- Against the references ------------------------------------------------ */

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = NULL;
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
    fail_msg("%s: %s", sql, sqlite3_errmsg(db));
  return s;
}

/* Text ?1, model ?2, second text ?3. */
static void bind(sqlite3_stmt *s, bert_text text, const char *model, bert_text text_b) {
  sqlite3_bind_text64(s, 1, text.data, text.size, SQLITE_STATIC, SQLITE_UTF8);
  sqlite3_bind_text(s, 2, model, -1, SQLITE_STATIC);
  if (text_b.data != NULL)
    sqlite3_bind_text64(s, 3, text_b.data, text_b.size, SQLITE_STATIC, SQLITE_UTF8);
}

/* The table, of which each row has the place in expected[layers, heads, n, n]
** that its coordinates say. */
static void check_table(sqlite3 *db, bert_text text, const char *model, bert_text text_b,
                        const float *expected, size_t heads, size_t n, size_t count,
                        double tolerance, double *worst) {
  sqlite3_stmt *s = prepare(db, "SELECT layer, head, q_pos, k_pos, weight FROM attn_weights(?1, "
                                "NULL, NULL, json_object('model', ?2, 'text_b', ?3))");
  size_t rows = 0;
  int rc;
  bind(s, text, model, text_b);
  while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
    size_t at = ((size_t)sqlite3_column_int(s, 0) * heads + (size_t)sqlite3_column_int(s, 1)) * n;
    at = (at + (size_t)sqlite3_column_int(s, 2)) * n + (size_t)sqlite3_column_int(s, 3);
    float weight = (float)sqlite3_column_double(s, 4);
    assert_int_equal(at, rows);
    assert_close("weight", &weight, expected + at, 1, tolerance, worst);
    rows++;
  }
  if (rc != SQLITE_DONE) fail_msg("%s", sqlite3_errmsg(db));
  sqlite3_finalize(s);
  assert_int_equal(rows, count);
}

/* The scalar form, as a BLOB: expected[n, n] of one head. */
static void check_blob(sqlite3 *db, bert_text text, const char *model, bert_text text_b, int layer,
                       int head, const float *expected, size_t n, double tolerance, double *worst) {
  sqlite3_stmt *s = prepare(db, "SELECT attn_weights(?1, ?4, ?5, json_object('model', ?2, "
                                "'text_b', ?3, 'format', 'blob'))");
  bind(s, text, model, text_b);
  sqlite3_bind_int(s, 4, layer);
  sqlite3_bind_int(s, 5, head);
  if (sqlite3_step(s) != SQLITE_ROW) fail_msg("%s", sqlite3_errmsg(db));
  assert_int_equal(sqlite3_column_bytes(s, 0), n * n * sizeof(float));
  float *found = malloc(n * n * sizeof *found); /* [n, n] */
  memcpy(found, sqlite3_column_blob(s, 0), n * n * sizeof *found);
  assert_close("blob", found, expected, n * n, tolerance, worst);
  free(found);
  sqlite3_finalize(s);
}

static size_t token_count(sqlite3 *db, bert_text text, const char *model, bert_text text_b) {
  sqlite3_stmt *s =
      prepare(db, "SELECT sum(used) FROM bert_tokens(?1, json_object('model', ?2, 'text_b', ?3))");
  bind(s, text, model, text_b);
  if (sqlite3_step(s) != SQLITE_ROW) fail_msg("%s", sqlite3_errmsg(db));
  size_t count = (size_t)sqlite3_column_int(s, 0);
  sqlite3_finalize(s);
  return count;
}

static void minilm_equals_transformers(void **state) {
  sqlite3 *db = *state;
  golden g = golden_open("tests/golden/minilm");
  const json_value *texts = json_get(g.root, "attention_texts");
  bert_text none = {NULL, 0};
  double worst = 0;
  assert_true(texts->size > 0);
  for (size_t i = 0; i < texts->size; i++) {
    char name[40];
    bert_text text = golden_text(golden_at(texts, i));
    size_t n = token_count(db, text, "minilm", none);
    snprintf(name, sizeof name, "attention.%zu", i);
    const float *expected = golden_tensor(&g, name, 72 * n * n); /* [6, 12, n, n] */
    assert_non_null(expected);
    check_table(db, text, "minilm", none, expected, 12, n, 72 * n * n, 5e-6, &worst);
    for (int pair = 0; pair < 72; pair++)
      check_blob(db, text, "minilm", none, pair / 12, pair % 12, expected + (size_t)pair * n * n, n,
                 5e-6, &worst);
  }
  print_message("minilm attention in SQL within %.2g\n", worst);
  golden_close(&g);
}

/* One case of a family; 1 when the reference has its attention. */
static int check_case(sqlite3 *db, const golden *g, const json_value *expected, size_t number,
                      int layers, size_t heads, double *worst) {
  bert_text text = golden_text(json_get(expected, "text"));
  bert_text text_b = golden_text(json_get(expected, "text_b"));
  size_t n = json_get(expected, "ids")->size, one = heads * n * n;
  float *all = malloc((size_t)layers * one * sizeof *all); /* [layers, heads, n, n] */
  int known = 1;
  for (int layer = 0; layer < layers && known; layer++) {
    char name[60];
    snprintf(name, sizeof name, "case%02zu.attention.%d", number, layer);
    const float *layer_of = golden_tensor(g, name, one);
    known = layer_of != NULL;
    if (known) memcpy(all + (size_t)layer * one, layer_of, one * sizeof *all);
  }
  if (known) {
    check_table(db, text, "family", text_b, all, heads, n, (size_t)layers * one, 2e-5, worst);
    check_blob(db, text, "family", text_b, layers - 1, (int)heads - 1,
               all + (size_t)layers * one - n * n, n, 2e-5, worst);
  }
  free(all);
  return known;
}

static void families_equal_their_references(void **state) {
  static const char *const names[] = {"bert-mean", "bert-cls-dense", "bert-max"};
  sqlite3 *db = *state;
  for (size_t i = 0; i < 3; i++) {
    char directory[100];
    int checked = 0;
    double worst = 0;
    snprintf(directory, sizeof directory, "tests/golden/families/%s", names[i]);
    golden g = golden_open(directory);
    char *load = sqlite3_mprintf("SELECT bert_load(%Q, 'family')", directory);
    assert_runs(db, load);
    sqlite3_stmt *s = prepare(db, "SELECT layers, heads FROM bert_models WHERE name = 'family'");
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    int layers = sqlite3_column_int(s, 0), heads = sqlite3_column_int(s, 1);
    sqlite3_finalize(s);
    const json_value *cases = json_get(g.root, "cases");
    for (size_t number = 0; number < cases->size; number++)
      checked +=
          check_case(db, &g, golden_at(cases, number), number, layers, (size_t)heads, &worst);
    assert_true(checked > 0);
    print_message("%s: %d cases, attention in SQL within %.2g\n", names[i], checked, worst);
    assert_runs(db, "SELECT bert_unload('family')");
    sqlite3_free(load);
    golden_close(&g);
  }
}

/* ---- Against itself --------------------------------------------------------- */

/* `sql` gives one number, which is at most `most`. */
static void at_most(sqlite3 *db, const char *sql, double most) {
  sqlite3_stmt *s = prepare(db, sql);
  if (sqlite3_step(s) != SQLITE_ROW) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
  double found = sqlite3_column_double(s, 0);
  if (sqlite3_column_type(s, 0) == SQLITE_NULL || !(found <= most))
    fail_msg("%s\n  gives %s, which is not at most %g", sql, sqlite3_column_text(s, 0), most);
  sqlite3_finalize(s);
}

static void scalar_and_table_are_the_same(void **state) {
  sqlite3 *db = *state;
  static const char *const options[] = {
      "{}",
      "{\"words\":true}",
      "{\"special\":false}",
      "{\"special\":false,\"renormalize\":true}",
      "{\"words\":true,\"special\":false,\"renormalize\":1,\"temperature\":0.5}",
      "{\"text_b\":\"a second text\",\"special\":false}",
      "{\"max_tokens\":5}"};
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
    char *sql = sqlite3_mprintf(
        "SELECT max(abs(w.weight - json_extract(j.m, '$[' || w.q_pos || '][' || w.k_pos || ']'))) "
        "FROM (SELECT h.layer AS l, h.head AS h, attn_weights(" FLIES ", h.layer, h.head, %Q) AS m "
        "FROM attn_heads('x') AS h WHERE h.head < 3) AS j JOIN attn_weights(" FLIES
        ", j.l, j.h, %Q) AS w",
        options[i], options[i]);
    at_most(db, sql, 1e-6);
    sqlite3_free(sql);
    sql =
        sqlite3_mprintf("SELECT count(*) = json_array_length(attn_weights(" FLIES ", 1, 2, %Q)) * "
                        "json_array_length(attn_weights(" FLIES ", 1, 2, %Q), '$[0]') FROM "
                        "attn_weights(" FLIES ", 1, 2, %Q)",
                        options[i], options[i], options[i]);
    assert_answer(db, sql, "1");
    sqlite3_free(sql);
  }
  assert_answer(db,
                "SELECT subtype_of(attn_weights('a', 0, 0)), subtype_of(attn_weights('a', 0, 0, "
                "'{\"format\":\"blob\"}')), length(attn_weights('a', 0, 0, "
                "'{\"format\":\"blob\"}'))",
                "74|223|36");
}

static void weights_are_the_softmax_of_scores(void **state) {
  sqlite3 *db = *state;
  at_most(db,
          "SELECT max(abs(weight - share)) + (count(*) <> 12 * 144) FROM (SELECT weight, "
          "nat_exp(score) / sum(nat_exp(score)) OVER (PARTITION BY head, q_pos) AS share FROM "
          "attn_weights(" FLIES ", 3))",
          1e-6);
  at_most(db,
          "SELECT max(abs(weight - share)) FROM (SELECT w.weight, nat_exp(s.score / 2) / "
          "sum(nat_exp(s.score / 2)) OVER (PARTITION BY head, q_pos) AS share FROM "
          "attn_weights('time flies', 1) s JOIN attn_weights('time flies', 1, NULL, "
          "'{\"temperature\":2}') w USING (head, q_pos, k_pos))",
          1e-6);
  /* A temperature changes weights, not scores. */
  at_most(
      db,
      "SELECT max(abs(a.score - b.score)) FROM attn_weights('time flies', 1) a JOIN "
      "attn_weights('time flies', 1, NULL, '{\"temperature\":0.1}') b USING (head, q_pos, k_pos)",
      0);
}

static void merging_keeps_rows_at_one(void **state) {
  sqlite3 *db = *state;
  static const char *const whole[] = {
      "{}", "{\"words\":true}", "{\"words\":true,\"text_b\":\"unaffable words\"}",
      "{\"special\":false,\"renormalize\":true}",
      "{\"words\":true,\"special\":false,\"renormalize\":true,\"temperature\":3}"};
  for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
    char *sql = sqlite3_mprintf("SELECT max(abs(s - 1)) FROM (SELECT sum(weight) AS s FROM "
                                "attn_weights('unaffable swifts flies', NULL, NULL, %Q) GROUP BY "
                                "layer, head, q_pos)",
                                whole[i]);
    at_most(db, sql, 1e-5);
    sqlite3_free(sql);
  }
  at_most(db,
          "SELECT min(s) FROM (SELECT sum(weight) AS s FROM attn_weights('time flies', NULL, NULL, "
          "'{\"special\":false}') GROUP BY layer, head, q_pos)",
          0.1);
}

/* Word 1 of the text below is made of three pieces: sums over keys, means over
** queries, computed here from the tokens. */
static void words_are_sums_and_means(void **state) {
  sqlite3 *db = *state;
  assert_answer(db,
                "SELECT DISTINCT q_pos, q_token FROM attn_weights('an unaffable fly', 0, 0, "
                "'{\"words\":true}')",
                "0|[CLS]\n1|an\n2|unaffable\n3|fly\n4|[SEP]");
  assert_answer(db, "SELECT group_concat(token, ' ') FROM bert_tokens('an unaffable fly')",
                "[CLS] an una ##ffa ##ble fly [SEP]");
  at_most(db,
          "WITH map(pos, unit) AS (VALUES (0,0),(1,1),(2,2),(3,2),(4,2),(5,3),(6,4)), "
          "t AS MATERIALIZED (SELECT layer, head, q.unit AS q, k.unit AS k, sum(weight) / "
          "count(DISTINCT q_pos) AS w FROM attn_weights('an unaffable fly') JOIN map q ON q.pos = "
          "q_pos JOIN map k ON k.pos = k_pos GROUP BY 1, 2, 3, 4) SELECT max(abs(w - weight)) + "
          "(count(*) <> 72 * 25) FROM t JOIN attn_weights('an unaffable fly', NULL, NULL, "
          "'{\"words\":true}') a ON a.layer = t.layer AND a.head = t.head AND q = q_pos AND k = "
          "k_pos",
          1e-6);
  assert_answer(db,
                "SELECT count(score), count(weight) FROM attn_weights('an unaffable fly', 0, 0, "
                "'{\"words\":true}')",
                "0|25");
}

static void leaving_out_special_tokens(void **state) {
  sqlite3 *db = *state;
  assert_answer(db,
                "SELECT q_pos, q_token, k_token, w.weight = (SELECT weight FROM attn_weights('time "
                "flies', 2, 5) a WHERE a.q_pos = w.q_pos + 1 AND a.k_pos = w.k_pos + 1), w.score = "
                "(SELECT score FROM attn_weights('time flies', 2, 5) a WHERE a.q_pos = w.q_pos + 1 "
                "AND a.k_pos = w.k_pos + 1) FROM attn_weights('time flies', 2, 5, "
                "'{\"special\":false}') w",
                "0|time|time|1|1\n0|time|flies|1|1\n1|flies|time|1|1\n1|flies|flies|1|1");
  /* Renormalized weights differ, scores do not. */
  at_most(db,
          "SELECT max(abs(a.score - b.score)) FROM attn_weights('time flies', 2, 5, "
          "'{\"special\":false}') a JOIN attn_weights('time flies', 2, 5, "
          "'{\"special\":false,\"renormalize\":true}') b USING (q_pos, k_pos) WHERE b.weight > "
          "a.weight",
          0);
  /* A separator in the middle is left out too: two units that were no neighbours. */
  assert_answer(
      db,
      "SELECT group_concat(DISTINCT q_token), max(abs(b.score - a.score)) FROM "
      "attn_weights('x', 0, 0, '{\"special\":false,\"text_b\":\"y z\"}') a JOIN (SELECT "
      "score, q_pos - 1 - (q_pos > 2) AS q, k_pos - 1 - (k_pos > 2) AS k FROM "
      "attn_weights('x', 0, 0, '{\"text_b\":\"y z\"}') WHERE q_pos IN (1, 3, 4) AND k_pos "
      "IN (1, 3, 4)) b ON a.q_pos = b.q AND a.k_pos = b.k",
      "x,y,z|0.0");
}

/* Each statistic computed in SQL from the weights. */
static void statistics_are_those_of_the_weights(void **state) {
  sqlite3 *db = *state;
  static const char *const options[] = {"{}", "{\"words\":true}",
                                        "{\"special\":false,\"temperature\":2}",
                                        "{\"text_b\":\"And then, they land.\"}"};
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
    char *sql = sqlite3_mprintf(
        "WITH w AS MATERIALIZED (SELECT *, max(weight) OVER (PARTITION BY layer, head, q_pos) AS "
        "most FROM attn_weights(" FLIES ", NULL, NULL, %Q)), size(n) AS (SELECT count(DISTINCT "
        "q_pos) FROM w), s AS MATERIALIZED (SELECT layer, head, "
        "sum(-weight * nat_log(weight)) / n AS entropy, sum(iif(q_pos = k_pos, weight, 0)) / n AS "
        "diag, sum(iif(k_pos = q_pos - 1, weight, 0)) / (n - 1) AS prev, sum(iif(k_pos = q_pos + "
        "1, "
        "weight, 0)) / (n - 1) AS next, sum(iif(k_pos = 0, weight, 0)) / n AS first, "
        "sum(iif(k_token = '[SEP]', weight, 0)) / n AS sep, sum(iif(k_token IN (',', '.'), weight, "
        "0)) / n AS punct, sum(weight * abs(q_pos - k_pos)) / sum(weight) AS mean_distance, "
        "sum(weight * (k_pos - q_pos)) / sum(weight) AS signed_distance, sum(iif(weight = most, "
        "weight, 0)) / n AS max_prob, 1.0 * sum(weight = most AND abs(q_pos - k_pos) = 1) / n AS "
        "positional, n FROM w, size GROUP BY 1, 2) SELECT max(max(abs(s.entropy - h.entropy), "
        "abs(s.entropy / nat_log(n) - h.entropy_norm), abs(s.diag - h.diag), abs(s.prev - h.prev), "
        "abs(s.next - h.next), abs(s.first - h.first), abs(s.sep - h.sep), abs(s.punct - h.punct), "
        "abs(s.mean_distance - h.mean_distance), abs(s.signed_distance - h.signed_distance), "
        "abs(s.max_prob - h.max_prob), abs(s.positional - h.positional))) + (count(*) <> 72) FROM "
        "s "
        "JOIN attn_heads(" FLIES ", %Q) h USING (layer, head)",
        options[i], options[i]);
    at_most(db, sql, 1e-6);
    sqlite3_free(sql);
  }
  assert_answer(db,
                "SELECT count(*), count(DISTINCT norm_mean), min(norm_mean) > 0, "
                "sum(collapsed IN (0, 1)), sum(typeof(label) = 'text') FROM attn_heads(" FLIES ")",
                "72|72|1|72|72");
}

/* The mean of A_ij |v_j W_O|, by the encoder itself. */
static void norm_mean_weighs_value_norms(void **state) {
  sqlite3 *db = *state;
  bert_error error = {BERT_OK, ""};
  bert_model *model = NULL;
  bert_encoder *encoder = NULL;
  bert_tokens *tokens = NULL;
  bert_pass *pass = NULL;
  bert_text text = {"time flies", 10};
  float weights[16], norms[4]; /* [4, 4], [4] */
  assert_ok(bert_open(MODEL, NULL, &model, &error), &error);
  assert_ok(bert_encoder_create(model, &encoder, &error), &error);
  assert_ok(bert_tokenize(model, text, NULL, NULL, &tokens, &error), &error);
  assert_int_equal(tokens->count, 4);
  assert_ok(bert_run(encoder, tokens, BERT_KEEP_ATTENTION, &pass, &error), &error);
  for (int head = 0; head < 12; head++) {
    double sum = 0;
    assert_ok(bert_pass_attention(pass, 4, head, weights, &error), &error);
    assert_ok(bert_pass_value_norms(pass, 4, head, norms, &error), &error);
    for (int i = 0; i < 16; i++) sum += (double)weights[i] * (double)norms[i % 4];
    char *sql = sqlite3_mprintf("SELECT abs(norm_mean - %.12g) FROM attn_heads('time flies') WHERE "
                                "layer = 4 AND head = %d",
                                sum / 16, head);
    at_most(db, sql, 1e-6);
    sqlite3_free(sql);
  }
  bert_pass_free(pass);
  bert_tokens_free(tokens);
  bert_encoder_free(encoder);
  bert_close(model);
}

/* Each layer is its own matrix times the rollout of the layer before. */
static void rollout_multiplies_layers(void **state) {
  sqlite3 *db = *state;
  at_most(db,
          "WITH a AS MATERIALIZED (SELECT layer, q_pos AS q, k_pos AS k, (avg(weight) + (q_pos = "
          "k_pos)) / 2 AS w FROM attn_weights('time flies fast') GROUP BY 1, 2, 3), r AS "
          "MATERIALIZED (SELECT * FROM attn_rollout('time flies fast')) SELECT max(abs(d)) + "
          "(count(*) <> 150) FROM (SELECT r.weight - a.w AS d FROM r JOIN a ON a.layer = 0 AND "
          "r.layer = 0 AND q = q_pos AND k = k_pos UNION ALL SELECT r.weight - (SELECT sum(a.w * "
          "b.weight) FROM a JOIN r b ON b.layer = r.layer - 1 AND b.q_pos = a.k AND b.k_pos = "
          "r.k_pos WHERE a.layer = r.layer AND a.q = r.q_pos) FROM r WHERE r.layer > 0)",
          1e-6);
  at_most(db,
          "SELECT max(abs(s - 1)) FROM (SELECT sum(weight) AS s FROM attn_rollout('an unaffable "
          "fly', '{\"words\":true}') GROUP BY layer, q_pos)",
          1e-5);
  assert_answer(db,
                "SELECT DISTINCT q_token FROM attn_rollout('an unaffable fly', "
                "'{\"words\":true,\"special\":false}') WHERE layer = 5",
                "an\nunaffable\nfly");
  /* Words of the final matrix: not a rollout of words. */
  at_most(
      db,
      "SELECT abs((SELECT sum(weight) / 3 FROM attn_rollout('an unaffable fly') WHERE layer = 5 "
      "AND q_pos BETWEEN 2 AND 4 AND k_pos BETWEEN 2 AND 4) - (SELECT weight FROM "
      "attn_rollout('an unaffable fly', '{\"words\":true}') WHERE layer = 5 AND q_pos = 2 AND "
      "k_pos = 2))",
      1e-6);
}

static void products_of_neurons_sum_to_scores(void **state) {
  sqlite3 *db = *state;
  at_most(db,
          "SELECT max(abs(p.s / 5.656854249492380195 - w.score)) + (count(*) <> 25) FROM (SELECT "
          "q_pos, k_pos, "
          "sum(product) AS s FROM attn_neurons('time flies fast', 3, 7) GROUP BY 1, 2) p JOIN "
          "attn_weights('time flies fast', 3, 7) w USING (q_pos, k_pos)",
          1e-5);
  assert_answer(db,
                "SELECT count(*), sum(product = q * k), max(dim), count(DISTINCT q_pos) FROM "
                "attn_neurons('time flies', 0, 0, '{\"special\":false}')",
                "128|128|31|2");
  assert_answer(
      db,
      "SELECT sum(a.q = b.q AND a.k = b.k) FROM attn_neurons('time flies', 0, 0, "
      "'{\"special\":false,\"words\":false}') a JOIN attn_neurons('time flies', 0, 0) b ON "
      "b.q_pos = a.q_pos + 1 AND b.k_pos = a.k_pos + 1 AND a.dim = b.dim",
      "128");
}

/* ---- Work ---------------------------------------------------------------------- */

/* All heads of a text, in every form, cost one run of the model. */
static void one_pass_serves_all_heads(void **state) {
  sqlite3 *db = *state;
  assert_answer(
      db,
      "CREATE TEMP TABLE before AS SELECT bert_info() ->> 'passes' AS n; "
      "CREATE TEMP TABLE sink AS SELECT h.layer, attn_weights('once and only once', h.layer, "
      "h.head) FROM attn_heads('once and only once') h; "
      "SELECT count(*), sum(weight) > 0 FROM attn_weights('once and only once'); "
      "SELECT count(*), sum(weight) > 0 FROM attn_weights('once and only once', 2, NULL, "
      "'{\"words\":true,\"temperature\":2}'); "
      "SELECT count(*), sum(weight) > 0 FROM attn_rollout('once and only once'); "
      "SELECT count(product) FROM attn_neurons('once and only once', 1, 1); "
      "SELECT (bert_info() ->> 'passes') - n FROM before",
      "2592|1\n432|1\n216|1\n1152\n1");
  assert_answer(db,
                "SELECT count(*) FROM attn_heads('another'); SELECT count(*) FROM attn_heads('once "
                "and only once'); SELECT (bert_info() ->> 'passes') - n FROM before",
                "72\n72\n3");
  /* What tells passes apart: model, second text, limit. */
  assert_answer(
      db,
      "SELECT bert_load('" MODEL "', 'm2'); SELECT count(*) FROM attn_heads('x', "
      "'{\"text_b\":\"\"}'); SELECT count(*) FROM attn_heads('x'); SELECT count(*) FROM "
      "attn_heads('x', '{\"model\":\"m2\"}'); SELECT count(*) FROM attn_heads('x', "
      "'{\"model\":\"m2\",\"max_tokens\":2}'); SELECT (bert_info() ->> 'passes') - n FROM "
      "before",
      "m2\n72\n72\n72\n72\n7");
  /* An empty text is one, in whatever type it comes. */
  assert_answer(
      db,
      "SELECT count(*) FROM attn_weights(''); SELECT count(*) FROM attn_weights(x''); "
      "SELECT attn_weights('', 0, 0) = attn_weights(x'', 0, 0), (bert_info() ->> 'passes') "
      "- n FROM before",
      "288\n288\n1|8");
}

/* Whoever changes kernels compares them: a pass of others is not taken for one of these. */
static void other_kernels_run_a_pass_of_their_own(void **state) {
  assert_answer(*state,
                "CREATE TEMP TABLE before AS SELECT bert_info() ->> 'passes' AS n, bert_info() ->> "
                "'kernels' AS kernels; "
                "SELECT bert_set('kernels', 'scalar'); SELECT count(*) FROM attn_heads('x'); "
                "SELECT bert_set('kernels', NULL) <> 'scalar'; SELECT count(*) FROM "
                "attn_heads('x'); SELECT count(*) FROM attn_heads('x'); "
                "SELECT (bert_info() ->> 'passes') - n FROM before; "
                "SELECT bert_set('kernels', kernels) = kernels FROM before",
                "scalar\n72\n1\n72\n72\n2\n1");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_test, close_test)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(minilm_equals_transformers),
                                     TEST(families_equal_their_references),
                                     TEST(scalar_and_table_are_the_same),
                                     TEST(weights_are_the_softmax_of_scores),
                                     TEST(merging_keeps_rows_at_one),
                                     TEST(words_are_sums_and_means),
                                     TEST(leaving_out_special_tokens),
                                     TEST(statistics_are_those_of_the_weights),
                                     TEST(norm_mean_weighs_value_norms),
                                     TEST(rollout_multiplies_layers),
                                     TEST(products_of_neurons_sum_to_scores),
                                     TEST(one_pass_serves_all_heads),
                                     TEST(other_kernels_run_a_pass_of_their_own)};
  return cmocka_run_group_tests_name("attention in SQL", tests, NULL, NULL);
}
