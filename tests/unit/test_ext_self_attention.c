/*
** test_ext_self_attention.c: self_attention and positional_encoding through SQL:
** printed figures, the same cases in float64, masks, and what is refused.
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

/* The example: six tokens, and three matrices. */
#define X                                                                                          \
  "'[[2.2315,-0.7460,-0.0614],[-0.1235,0.4462,0.7265],[1.4900,-2.0396,1.0440],"                    \
  "[-0.6735,-0.5763,-0.9291],[0.7707,0.5180,0.2458],[0.6508,0.1164,-1.3904]]'"
#define MATRICES                                                                                   \
  "'w_q', json('[[0.2961,0.5166],[0.2517,0.6886],[0.0740,0.8665]]'),"                              \
  "'w_k', json('[[0.1366,0.1025],[0.1841,0.7264],[0.3153,0.6871]]'),"                              \
  "'w_v', json('[[0.0756,0.1966],[0.3164,0.4017],[0.1186,0.8274]]')"
#define PLAIN "self_attention(" X ", '{\"scale\":\"None\"}')"
#define PROJECTED "self_attention(" X ", json_object(" MATRICES "))"
#define PROJECTED_WITH(more) "self_attention(" X ", json_object(" MATRICES "," more "))"

static int open_test(void **state) {
  *state = sqldb_open(NULL);
  return 0;
}

static int close_test(void **state) {
  sqldb_close(*state);
  return 0;
}

/* `sql` is an expression whose value is a JSON array of `count` numbers. */
static void check(sqlite3 *db, const char *sql, const double *expected, size_t count,
                  double tolerance) {
  bert_error error = {BERT_OK, ""};
  json_document *document = NULL;
  char *query = sqlite3_mprintf("SELECT %s", sql);
  char *answer = sqldb_answer(db, query, NULL);
  if (json_parse(answer, strlen(answer), &document, &error) != BERT_OK)
    fail_msg("%s\n  answers %s", sql, answer);
  const json_value *array = json_root(document);
  assert_int_equal(array->size, count);
  for (size_t i = 0; i < count; i++) {
    double found = golden_at(array, i)->number;
    if (!(fabs(found - expected[i]) <= tolerance))
      fail_msg("%s\n  number %zu is %.12g, not %.12g", sql, i, found, expected[i]);
  }
  json_free(document);
  sqlite3_free(answer);
  sqlite3_free(query);
}

#define CHECK(sql, tolerance, ...)                                                                 \
  do {                                                                                             \
    static const double numbers[] = {__VA_ARGS__};                                                 \
    check(db, sql, numbers, sizeof numbers / sizeof numbers[0], tolerance);                        \
  } while (0)

/* ---- Numbers -------------------------------------------------------------- */

/* Their source prints inputs rounded to four decimals. */
static void printed_figures(void **state) {
  sqlite3 *db = *state;
  CHECK(PLAIN " -> '$.scores[0]'", 3e-4, 5.5401, -0.6531, 4.7825, -1.0159, 1.3183, 1.4509);
  CHECK(PLAIN " -> '$.weights[0]'", 3e-4, .66504, .0013588, .31176, .00094538, .0097572, .011141);
  CHECK(PLAIN " -> '$.context[0]'", 3e-4, 1.9626, -1.1256, .2716);
  CHECK(PROJECTED " -> '$.q[1]'", 3e-4, .1295, .8730);
  CHECK(PROJECTED " -> '$.k[1]'", 3e-4, .2943, .8107);
  CHECK(PROJECTED " -> '$.v[1]'", 3e-4, .2180, .7561);
  CHECK(PROJECTED " -> '$.scores[1]'", 3e-4, -.2911, .7458, -.5136, -1.0466, .5809, -.7444);
  CHECK(PROJECTED " -> '$.weights[1]'", 3e-4, .1408, .2932, .1203, .0825, .2609, .1022);
  CHECK(PROJECTED " -> '$.context[1]'", 3e-4, .0334, .2284);
}

/* Computed by numpy 2.4 in float64. */
static void the_same_in_float64(void **state) {
  sqlite3 *db = *state;
  CHECK(PLAIN " -> '$.scores[0]'", 1e-6, 5.53987821, -0.65306255, 4.782375, -1.01594871, 1.31829693,
        1.45079636);
  CHECK(PLAIN " -> '$.scaled[0]'", 1e-6, 5.53987821, -0.65306255, 4.782375, -1.01594871, 1.31829693,
        1.45079636);
  CHECK(PLAIN " -> '$.weights[0]'", 1e-6, 0.6650124725, 0.001359157519, 0.3117814888,
        0.0009455191627, 0.009759337472, 0.01114202445);
  CHECK(PLAIN " -> '$.context[0]'", 1e-6, 1.962497839, -1.125595007, 0.271684029);
  CHECK(PROJECTED " -> '$.q[1]'", 1e-6, 0.12950119, 0.87296547);
  CHECK(PROJECTED " -> '$.k[1]'", 1e-6, 0.29434077, 0.81063908);
  CHECK(PROJECTED " -> '$.v[1]'", 1e-6, 0.21800398, 0.75606454);
  CHECK(PROJECTED " -> '$.scores[1]'", 1e-6, -0.2910290655, 0.7457774055, -0.5134656357,
        -1.046586921, 0.5808908549, -0.7444222183);
  CHECK(PROJECTED " -> '$.scaled[1]'", 1e-6, -0.2057886257, 0.5273442607, -0.3630750329,
        -0.7400487093, 0.4107518626, -0.5263859986);
  CHECK(PROJECTED " -> '$.weights[1]'", 1e-6, 0.1408375833, 0.2931663576, 0.1203399829,
        0.08254530148, 0.2609027737, 0.102208001);
  CHECK(PROJECTED " -> '$.context[1]'", 1e-6, 0.03335631055, 0.2283486425);
}

static void temperature_and_scale(void **state) {
  sqlite3 *db = *state;
  CHECK(PROJECTED_WITH("'temperature', 0.5") " -> '$.weights[1]'", 1e-6, 0.09647768725,
        0.4180401724, 0.07043842663, 0.03314167634, 0.3310908265, 0.05081121082);
  CHECK(PROJECTED_WITH("'temperature', 0.5") " -> '$.context[1]'", 1e-6, 0.1229528183,
        0.4476279476);
  CHECK(PROJECTED_WITH("'scale', 0.25") " -> '$.scaled[1]'", 1e-6, -0.07275726637, 0.1864443514,
        -0.1283664089, -0.2616467304, 0.1452227137, -0.1861055546);
  CHECK(PROJECTED_WITH("'scale', 0.25") " -> '$.weights[1]'", 1e-6, 0.161132214, 0.2088104392,
        0.1524163758, 0.133397817, 0.2003779259, 0.143865228);
  CHECK(PROJECTED_WITH("'scale', 0") " -> '$.weights[5]'", 1e-12, 1 / 6., 1 / 6., 1 / 6., 1 / 6.,
        1 / 6., 1 / 6.);
  assert_answer(db,
                "SELECT " PROJECTED
                " = " PROJECTED_WITH("'scale', 'SQRT'") ", " PROJECTED " = " PROJECTED_WITH(
                    "'scale', NULL, 'mask', NULL, 'causal', json('false')"),
                "1|1");
}

static void masks(void **state) {
  sqlite3 *db = *state;
  static const char padding[] = PROJECTED_WITH("'mask', json('[1,true,0,1,false,1]')");
  static const char matrix[] =
      PROJECTED_WITH("'mask', json('[[1,1,1,1,1,1],[1,1,0,1,0,1],[1,0,0,0,0,0],"
                     "[1,1,1,1,1,1],[1,1,1,1,1,1],[1,1,1,1,1,1]]')");
  char *sql = sqlite3_mprintf("%s -> '$.weights[1]'", padding);
  CHECK(sql, 1e-6, 0.2276136317, 0.4737986678, 0, 0.1334049861, 0, 0.1651827143);
  sqlite3_free(sql);
  sql = sqlite3_mprintf("%s -> '$.context[1]'", padding);
  CHECK(sql, 1e-6, 0.02746047093, 0.06603603046);
  sqlite3_free(sql);
  sql = sqlite3_mprintf("SELECT count(*) FROM json_each(%s, '$.weights') r, json_each(r.value) w "
                        "WHERE (w.key IN (2, 4)) <> (w.value IS 0)",
                        padding);
  assert_answer(db, sql, "0"); /* exactly 0 */
  sqlite3_free(sql);
  sql = sqlite3_mprintf("SELECT %s -> '$.weights[1]' = %s -> '$.weights[1]', "
                        "%s -> '$.weights[2]', %s -> '$.weights[0]' = " PROJECTED
                        " -> '$.weights[0]'",
                        matrix, padding, matrix, matrix);
  assert_answer(db, sql, "1|[1,0,0,0,0,0]|1");
  sqlite3_free(sql);
}

static void causal_attention(void **state) {
  sqlite3 *db = *state;
  CHECK(PROJECTED_WITH("'causal', json('true')") " -> '$.weights[2]'", 1e-6, 0.3122853973,
        0.3903184479, 0.2973961547, 0, 0, 0);
  CHECK(PROJECTED_WITH("'causal', 1") " -> '$.context[2]'", 1e-6, -0.05980569779, 0.4230137945);
  assert_answer(db,
                "SELECT self_attention('[[1],[2],[3]]', '{\"causal\":true,\"mask\":[1,0,1]}') "
                "-> '$.weights[1]'",
                "[1,0,0]");
}

static void positions(void **state) {
  sqlite3 *db = *state;
  assert_answer(db, "SELECT positional_encoding(1, 1), positional_encoding(1, 2)", "[[0]]|[[0,1]]");
  assert_answer(db, "SELECT positional_encoding(NULL, 2), positional_encoding(2, NULL)",
                "NULL|NULL");
  CHECK("positional_encoding(3, 4) -> '$[1]'", 1e-9, 0.8414709848, 0.5403023059, 0.009999833334,
        0.9999500004);
  CHECK("positional_encoding(3, 5) -> '$[2]'", 1e-9, 0.9092974268, -0.4161468365, 0.05021659939,
        0.9987383507, 0.001261914354);
  assert_answer(db,
                "SELECT max(abs(value - CASE key WHEN 300 THEN 0.4378072994 WHEN 301 THEN "
                "0.8990688342 WHEN 302 THEN 0.4233541967 ELSE 0.905964251 END)) < 1e-9 FROM "
                "json_each(positional_encoding(101, 512), '$[100]') WHERE key BETWEEN 300 AND 303",
                "1");
  assert_error(db, "SELECT positional_encoding(0, 2)",
               "positional_encoding: n must be an integer from 1 to 65536, not 0");
  assert_error(db, "SELECT positional_encoding(2, -1)", "d must be an integer from 1");
  assert_error(db, "SELECT positional_encoding(2, 1.5)", "not 1.5");
  assert_error(db, "SELECT positional_encoding('2', 1)", "not the text '2'");
  assert_error(db, "SELECT positional_encoding(65536, 65536)",
               "n times d is 4294967296; it must be at most 4194304");
}

/* ---- Refused ------------------------------------------------------------------ */

static void shapes_that_do_not_agree(void **state) {
  sqlite3 *db = *state;
  static const char *const cases[][2] = {
      {"'[[1,2],[3]]'", "self_attention: x[1] has 1 columns, but x[0] has 2"},
      {"'[[1,2],[3,4,5]]'", "x[1] has 3 columns, but x[0] has 2"},
      {"'[[1,2]]', '{\"w_q\":[[1],[2],[3]]}'", "w_q has 3 rows, but x has 2 columns"},
      {"'[[1,2]]', '{\"w_k\":[[1]]}'", "w_k has 1 rows, but x has 2 columns"},
      {"'[[1,2]]', '{\"w_v\":[[1,2,3]]}'", "w_v has 1 rows, but x has 2 columns"},
      {"'[[1,2]]', '{\"w_q\":[[1],[2]],\"w_k\":[[1,2],[3,4]]}'",
       "w_q has 1 columns, but w_k has 2"},
      {"'[[1,2]]', '{\"w_q\":[[1],[2]]}'",
       "w_k is not given, so its result has the 2 columns of x, not 1"},
      {"'[[1,2]]', '{\"w_k\":[[1],[2]]}'",
       "w_q is not given, so its result has the 2 columns of x, not 1"},
      {"'[[1],[2]]', '{\"mask\":[1]}'", "mask has 1 elements, but x has 2 rows"},
      {"'[[1],[2]]', '{\"mask\":[]}'", "mask has 0 elements, but x has 2 rows"},
      {"'[[1],[2]]', '{\"mask\":[[1,1]]}'", "mask has 1 rows, but x has 2"},
      {"'[[1],[2]]', '{\"mask\":[[1,1],[1]]}'", "mask[1] has 1 elements, but x has 2 rows"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char *sql = sqlite3_mprintf("SELECT self_attention(%s)", cases[i][0]);
    assert_error(db, sql, cases[i][1]);
    sqlite3_free(sql);
  }
}

static void values_that_are_wrong(void **state) {
  sqlite3 *db = *state;
  static const char *const cases[][2] = {
      {"'nothing'", "self_attention: x must be a JSON matrix such as [[1, 0], [0, 1]]: "},
      {"''", "x must be a JSON matrix"},
      {"5", "x is a number, but must be an array of rows"},
      {"'{}'", "x is an object, but must be an array of rows"},
      {"'[]'", "x has 0 rows; there must be from 1 to 1024"},
      {"'[[]]'", "x has 0 columns; there must be from 1 to 1024"},
      {"'[1,2]'", "x[0] is a number, but must be an array of numbers"},
      {"'[[1],2]'", "x[1] is a number, but must be an array of numbers"},
      {"'[[1,null]]'", "x[0][1] is null, not a number"},
      {"'[[1,\"2\"]]'", "x[0][1] is a string, not a number"},
      {"'[[1e999]]'", "x must be a JSON matrix"},
      {"'[[1e200]]'", "not a finite number"},
      {"'[[1e160]]', '{\"scale\":1e-100}'", "not a finite number: the input is too large"},
      {"'[[1]]', '{\"w_q\":5}'", "w_q is a number, but must be an array of rows"},
      {"'[[1]]', '{\"w_v\":[[true]]}'", "w_v[0][0] is true, not a number"},
      {"'[[1]]', '{\"mask\":[0]}'", "the mask hides every key from row 0"},
      {"'[[1],[2]]', '{\"mask\":[[1,0],[0,0]]}'", "the mask hides every key from row 1"},
      {"'[[1],[2]]', '{\"mask\":[0,1],\"causal\":true}'", "the mask hides every key from row 0"},
      {"'[[1]]', '{\"mask\":[2]}'", "mask[0] must be 0, 1, true or false"},
      {"'[[1]]', '{\"mask\":[[0.5]]}'", "mask[0][0] must be 0, 1, true or false"},
      {"'[[1]]', '{\"mask\":1}'", "mask is a number, but must be an array of 0 and 1"},
      {"'[[1],[2]]', '{\"mask\":[[1,1],1]}'", "mask[1] is a number, but must be an array"},
      {"'[[1]]', '{\"scale\":\"root\"}'",
       "option \"scale\" must be \"sqrt\", \"none\" or a number"},
      {"'[[1]]', '{\"scale\":[1]}'", "multiplied by, not an array"},
      {"'[[1]]', '{\"temperature\":0}'", "option \"temperature\" must be a number from 1e-06"},
      {"'[[1]]', '{\"temperature\":\"hot\"}'", "not \"hot\""},
      {"'[[1]]', '{\"causal\":2}'", "option \"causal\" must be true or false, not 2"},
      {"'[[1]]', '{\"heads\":2}'", "unknown option \"heads\"; the options are w_q, w_k, w_v, "
                                   "scale, mask, temperature, causal"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char *sql = sqlite3_mprintf("SELECT self_attention(%s)", cases[i][0]);
    assert_error(db, sql, cases[i][1]);
    sqlite3_free(sql);
  }
  assert_answer(db, "SELECT self_attention(NULL), self_attention(NULL, '{\"x\":1}')", "NULL|NULL");
  assert_answer(db, "SELECT json_valid(self_attention('[[1]]', NULL))", "1");
}

static void sizes_are_bounded(void **state) {
  sqlite3 *db = *state;
  static const char ones[] = "'[' || substr(replace(hex(zeroblob(%d)), '00', ',%s'), 2) || ']'";
  static const struct {
    int count;
    const char *element, *part;
  } cases[] = {{1025, "[1]", "x has 1025 rows; there must be from 1 to 1024"},
               {200000, "[1]", "x has 200000 rows"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char *x = sqlite3_mprintf(ones, cases[i].count, cases[i].element);
    char *sql = sqlite3_mprintf("SELECT self_attention(%s)", x);
    assert_error(db, sql, cases[i].part);
    sqlite3_free(sql);
    sqlite3_free(x);
  }
  assert_error(db, "SELECT self_attention(replace(hex(zeroblob(20000000)), '00', '[,'))",
               "x has 40000000 bytes of JSON; it may have 33554432");
  char *row = sqlite3_mprintf(ones, 1025, "1");
  char *sql = sqlite3_mprintf("SELECT self_attention('[' || %s || ']')", row);
  assert_error(db, sql, "x has 1025 columns; there must be from 1 to 1024");
  sqlite3_free(sql);
  sqlite3_free(row);
  row = sqlite3_mprintf(ones, 1024, "[1]");
  sql = sqlite3_mprintf("SELECT json_array_length(self_attention(%s, "
                        "'{\"scale\":\"none\"}'), '$.weights[1023]')",
                        row);
  assert_answer(db, sql, "1024");
  sqlite3_free(sql);
  sqlite3_free(row);
}

/* SQLite's own limit on the length of a value holds for results too. */
static void results_that_are_too_big(void **state) {
  sqlite3 *db = *state;
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 2000);
  assert_error(db, "SELECT positional_encoding(100, 100)", "too big");
  assert_answer(db, "SELECT json_array_length(positional_encoding(2, 2))", "2");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_test, close_test)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(printed_figures),          TEST(the_same_in_float64),
      TEST(temperature_and_scale),    TEST(masks),
      TEST(causal_attention),         TEST(positions),
      TEST(shapes_that_do_not_agree), TEST(values_that_are_wrong),
      TEST(sizes_are_bounded),        TEST(results_that_are_too_big)};
  return cmocka_run_group_tests_name("self-attention in SQL", tests, NULL, NULL);
}
