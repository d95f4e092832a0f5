/*
** test_ext_html.c: attn_html as SQL sees it: options, errors, limits, and how
** often the model runs. What the page shows is tested in Chromium by
** tests/shell/test_page.sh.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sqldb.h"

#define MODEL "models/all-MiniLM-L6-v2"

static int open_test(void **state) {
  sqlite3 *db = sqldb_open(NULL);
  assert_runs(db, "SELECT bert_load('" MODEL "', 'minilm')");
  *state = db;
  return 0;
}

static int close_test(void **state) {
  sqldb_close(*state);
  return 0;
}

/* The data of a page as JSON, for json_extract. */
#define DATA(call)                                                                                 \
  "WITH p(page) AS (SELECT " call "), d(rest) AS (SELECT substr(page, instr(page, "                \
  "'id=\"data\">') + 10) FROM p), j(data) AS (SELECT substr(rest, 1, instr(rest, "                 \
  "'</script>') - 1) FROM d) "

static void a_page_is_text_and_null_is_null(void **state) {
  assert_answer(*state,
                "SELECT typeof(attn_html('x')), attn_html(NULL), attn_html(NULL, 'nonsense')",
                "text|NULL|NULL");
  assert_answer(*state, "SELECT attn_html('x') LIKE '<!doctype html>%</html>' || char(10)", "1");
  assert_answer(
      *state, "SELECT attn_html('x') = attn_html('x', '{}'), attn_html('x') = attn_html('x', NULL)",
      "1|1");
}

static void the_data_says_what_it_is(void **state) {
  assert_answer(
      *state,
      DATA(
          "attn_html('time flies')") "SELECT json_valid(data), data ->> 'format', data ->> 'bits', "
                                     "data ->> '$.runs[0].model', data ->> '$.runs[0].text', data "
                                     "-> '$.runs[0].tokens', "
                                     "json_array_length(data, '$.runs[0].weights'), "
                                     "json_array_length(data, "
                                     "'$.runs[0].weights[5]'), data ->> 'title', data ->> "
                                     "'$.initial.head' FROM j",
      "1|1|8|minilm|time flies|[[\"[CLS]\",-1,1],[\"time\",0,0],[\"flies\",0,0],"
      "[\"[SEP]\",-1,3]]|6|12|NULL|NULL");
  assert_answer(*state,
                DATA("attn_html('a', "
                     "'{\"bits\":16,\"view\":\"Rollout\",\"theme\":\"DARK\",\"layer\":3,"
                     "\"head\":2,\"special\":false,\"title\":\"</"
                     "title>\",\"compare_text\":\"b\"}')") "SELECT data ->> 'bits', data -> "
                                                           "'initial', data ->> 'title', "
                                                           "json_array_length(data, '$.runs'), "
                                                           "data ->> '$.runs[1].text' FROM j",
                "16|{\"view\":\"rollout\",\"theme\":\"dark\",\"layer\":3,\"head\":2,\"words\":"
                "false,"
                "\"special\":false,\"renormalize\":false}|</title>|2|b");
}

static void neurons_are_as_many_as_asked_for(void **state) {
  static const char *const cases[][2] = {{"auto", "0|6|0|12|6|12"},
                                         {"all", "0|6|0|12|6|12"},
                                         {"layer", "4|1|0|12|1|12"},
                                         {"head", "4|1|7|1|1|1"},
                                         {"none", "0|0|0|0|0|NULL"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char *sql = sqlite3_mprintf(
        DATA("attn_html('time flies', "
             "'{\"layer\":4,\"head\":7,\"neurons\":\"%s\"}')") "SELECT v ->> "
                                                               "'first_layer', v "
                                                               "->> 'layers', v ->> "
                                                               "'first_head', v ->> "
                                                               "'heads', "
                                                               "json_array_length(v,"
                                                               " '$.data'), "
                                                               "json_array_length(v,"
                                                               " '$.data[0]') FROM "
                                                               "(SELECT data -> "
                                                               "'$.runs[0].vectors' "
                                                               "AS v FROM j)",
        cases[i][0]);
    assert_answer(*state, sql, cases[i][1]);
    sqlite3_free(sql);
  }
}

static void a_cut_text_says_so(void **state) {
  assert_answer(
      *state,
      DATA("attn_html('one two three four five', '{\"max_tokens\":4}')") "SELECT data ->> "
                                                                         "'$.runs[0].truncated', "
                                                                         "json_array_length(data, "
                                                                         "'$.runs[0].tokens') FROM "
                                                                         "j",
      "1|4");
  /* A caption holds the beginning of a long text, cut between characters. */
  assert_answer(
      *state,
      DATA("attn_html(replace(hex(zeroblob(400)), '00', 'é'), '{\"max_tokens\":4}')") "SELECT "
                                                                                      "length(data "
                                                                                      "->> "
                                                                                      "'$.runs[0]."
                                                                                      "text') FROM "
                                                                                      "j",
      "200");
}

/* By tokens and by words, all heads, statistics and vectors; two for two texts. */
static void one_pass_serves_the_page(void **state) {
  assert_answer(
      *state,
      "CREATE TEMP TABLE passes AS SELECT bert_info() ->> 'passes' AS n;"
      "SELECT length(attn_html('a text of its own')) > 0;"
      "SELECT (bert_info() ->> 'passes') - n FROM passes;"
      "SELECT length(attn_html('another text', '{\"compare_text\":\"and one more\"}')) > 0;"
      "SELECT (bert_info() ->> 'passes') - n FROM passes",
      "1\n1\n1\n3");
}

static void what_is_wrong_is_said(void **state) {
  static const char *const cases[][2] = {
      {"'{\"bits\":9}'", "attn_html: option \"bits\" must be 8 or 16, not 9"},
      {"'{\"bits\":32}'", "option \"bits\" must be 8 or 16, not 32"},
      {"'{\"bits\":\"8\"}'", "option \"bits\" must be 8 or 16, not \"8\""},
      {"'{\"layer\":6}'",
       "attn_html: option layer must be from 0 to 5 for the model minilm, not 6"},
      {"'{\"head\":12}'",
       "attn_html: option head must be from 0 to 11 for the model minilm, not 12"},
      {"'{\"layer\":-1}'", "layer"},
      {"'{\"layer\":1.5}'", "layer"},
      {"'{\"layer\":\"1\"}'", "layer"},
      {"'{\"view\":\"heads\"}'", "view"},
      {"'{\"theme\":\"pink\"}'", "theme"},
      {"'{\"neurons\":\"some\"}'", "neurons"},
      {"'{\"heads\":1}'", "compare_model"},
      {"'{\"compare_model\":\"nobody\"}'", "nobody"},
      {"'{\"model\":\"nobody\"}'", "nobody"},
      {"'{\"temperature\":0}'", "temperature"},
      {"'{\"max_tokens\":1}'", "max_tokens"},
      {"'[]'", "attn_html"},
      {"'{'", "attn_html"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char *sql = sqlite3_mprintf("SELECT attn_html('x', %s)", cases[i][0]);
    assert_error(*state, sql, cases[i][1]);
    sqlite3_free(sql);
  }
  assert_error(*state, "SELECT attn_html()", "wrong number of arguments");
}

static void a_page_beyond_the_limit_of_strings_is_an_error(void **state) {
  int limit = sqlite3_limit(*state, SQLITE_LIMIT_LENGTH, 250000);
  assert_error(*state,
               "SELECT attn_html('time flies like an arrow over the river and into the trees')",
               "the page would be larger than this connection's limit for a string");
  sqlite3_limit(*state, SQLITE_LIMIT_LENGTH, limit);
  assert_runs(*state,
              "SELECT attn_html('time flies like an arrow over the river and into the trees')");
}

/* Nothing in a text can end the element that the data stands in. */
static void nothing_in_a_text_is_markup(void **state) {
  assert_answer(
      *state,
      DATA(
          "attn_html('</script><b>&\"''' || char(0, 1, 0x2028) || x'ff')") "SELECT instr(data, "
                                                                           "'<') + instr(data, "
                                                                           "'>') + instr(data, "
                                                                           "'&') + instr(data, "
                                                                           "''''), "
                                                                           "instr(data, "
                                                                           "'\"text\":\"\\u003c/"
                                                                           "script\\u003e\\u003cb\\"
                                                                           "u003e\\u0026\\u0022\\u0"
                                                                           "027\\u0000\\u0001' || "
                                                                           "char(0x2028, 0xfffd) "
                                                                           "|| '\"') > 0 FROM j",
      "0|1");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_page_is_text_and_null_is_null),
      cmocka_unit_test(the_data_says_what_it_is),
      cmocka_unit_test(neurons_are_as_many_as_asked_for),
      cmocka_unit_test(a_cut_text_says_so),
      cmocka_unit_test(one_pass_serves_the_page),
      cmocka_unit_test(what_is_wrong_is_said),
      cmocka_unit_test(a_page_beyond_the_limit_of_strings_is_an_error),
      cmocka_unit_test(nothing_in_a_text_is_markup)};
  return cmocka_run_group_tests(tests, open_test, close_test);
}
