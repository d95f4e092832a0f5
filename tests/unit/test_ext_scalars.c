/*
** test_ext_scalars.c: the scalar functions of bertsql through SQL, on the real
** model: what they answer, what they refuse and how they say it.
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
#define TINY "tests/golden/families/bert-mean"

static sqlite3 *db;

static void subtype(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  sqlite3_result_int(context, (int)sqlite3_value_subtype(argv[0]));
}

static int open_db(void **state) {
  (void)state;
  setenv("BERTSQL_MODEL", MODEL, 1);
  db = sqldb_open(NULL);
  assert_int_equal(sqlite3_create_function(db, "subtype_of", 1, SQLITE_UTF8 | SQLITE_SUBTYPE, NULL,
                                           subtype, NULL, NULL),
                   SQLITE_OK);
  return 0;
}

static int close_db(void **state) {
  (void)state;
  sqldb_close(db);
  return 0;
}

/* ---- What there is ------------------------------------------------------ */

/* Flags: 0x800 deterministic, 0x200000 innocuous, 0x80000 direct only. */
static void every_function_is_registered(void **state) {
  (void)state;
  assert_answer(db,
                "SELECT name, group_concat(narg), (flags & 0x800) <> 0, (flags & 0x200000) <> 0, "
                "(flags & 0x80000) <> 0 FROM (SELECT * FROM pragma_function_list WHERE name LIKE "
                "'bert%' OR name LIKE 'attn%' OR name IN ('self_attention', "
                "'positional_encoding') ORDER BY name, narg) GROUP BY name",
                "attn_heatmap|3,4|1|1|0\nattn_html|1,2|1|1|0\nattn_svg|3,4|1|1|0\n"
                "attn_weights|3,4|1|1|0\nbert_classify|1,2|1|1|0\nbert_cosine|2|1|1|0\nbert_dot|2|"
                "1|1|0\nbert_embed|1,2,3|1|1|0\n"
                "bert_info|0|0|1|0\nbert_is_truncated|1,2|1|1|0\nbert_json|1|1|1|0\n"
                "bert_l2|2|1|1|0\nbert_load|1,2,3|0|0|1\nbert_rerank|2,3|1|1|0\nbert_set|2|0|0|1\n"
                "bert_similarity|2,3|1|1|0\nbert_token_count|1,2|1|1|0\nbert_unload|1|0|0|1\n"
                "bert_vector|1|1|1|0\nbert_version|0|1|1|0\npositional_encoding|2|1|1|0\n"
                "self_attention|1,2|1|1|0");
}

static void info_is_json(void **state) {
  (void)state;
  assert_answer(
      db,
      "SELECT json_extract(i, '$.version') = bert_version(), "
      "json_extract(i, '$.sqlite') = sqlite_version(), json_extract(i, '$.models'), "
      "json_extract(i, '$.cores') > 0, json_type(i, '$.kernels'), "
      "json_type(i, '$.compiler'), subtype_of(bert_info()) FROM (SELECT bert_info() AS i)",
      "1|1|[]|1|text|text|74");
  assert_runs(db, "SELECT bert_load('" MODEL "', 'a\"\\' || char(1))");
  assert_answer(db, "SELECT json_extract(bert_info(), '$.models[0].name') = 'a\"\\' || char(1)",
                "1");
  assert_runs(db, "SELECT bert_load('" TINY "', 'half', '{\"precision\": \"bf16\"}')");
  assert_answer(db,
                "SELECT json_array_length(m), m ->> '$[0].precision', m -> 1 FROM "
                "(SELECT bert_info() -> 'models' AS m)",
                "2|float32|{\"name\":\"half\",\"precision\":\"bf16\"}");
}

/* ---- Models -------------------------------------------------------------- */

static void loading_gives_a_name(void **state) {
  (void)state;
  assert_answer(db, "SELECT bert_load('" MODEL "')", "all-MiniLM-L6-v2");
  assert_answer(db, "SELECT bert_load('" MODEL "/')", "all-MiniLM-L6-v2");
  assert_answer(db, "SELECT bert_load('" MODEL "///', NULL, NULL)", "all-MiniLM-L6-v2");
  assert_answer(db, "SELECT bert_load('" MODEL "', 'other')", "other");
  assert_answer(db, "SELECT bert_load('" MODEL "', 'private', '{\"copy\": true}')", "private");
  assert_answer(db,
                "SELECT bert_embed('x', 'other') = bert_embed('x'), "
                "bert_embed('x', 'private') = bert_embed('x')",
                "1|1");
  assert_error(db, "SELECT bert_load('" MODEL "', 'other', '{\"copy\": true}')",
               "bert_load: the name \"other\" is taken");
  assert_answer(db, "SELECT bert_unload('all-MiniLM-L6-v2')", "all-MiniLM-L6-v2");
  assert_answer(db, "SELECT name, is_default FROM bert_models", "other|1\nprivate|0");
}

static void loading_refuses(void **state) {
  (void)state;
  assert_error(db, "SELECT bert_load(NULL)", "bert_load: the source is NULL");
  assert_error(db, "SELECT bert_load('')", "bert_load: the source is empty");
  assert_error(db, "SELECT bert_load('" MODEL "', '')", "bert_load: the name is empty");
  assert_error(db, "SELECT bert_load('" MODEL "' || char(0) || 'x')", "NUL byte");
  assert_error(db, "SELECT bert_load('models/nowhere')", "models/nowhere");
  assert_error(db, "SELECT bert_load('nobody/nothing')", "nobody/nothing");
  assert_error(db, "SELECT bert_load('" MODEL "', NULL, '{\"precision\": \"int3\"}')", "int3");
  assert_error(db, "SELECT bert_load('" MODEL "', NULL, '{\"copies\": 1}')",
               "unknown option \"copies\"; the options are precision, copy");
  assert_error(db, "SELECT bert_load('" MODEL "', NULL, '{\"dtype\": \"bf16\"}')",
               "unknown option \"dtype\"; the options are precision, copy");
  assert_error(db, "SELECT bert_unload('nobody')",
               "bert_unload: no model \"nobody\" is loaded, nor any other; there is nothing to "
               "unload");
  assert_error(db, "SELECT bert_unload(NULL)", "the name is NULL");
  assert_answer(db, "SELECT count(*) FROM bert_models", "0");
}

static void unknown_names_list_the_known(void **state) {
  (void)state;
  assert_error(db, "SELECT bert_embed('x', 'nobody')", "no model \"nobody\" is loaded, nor any");
  assert_runs(db, "SELECT bert_load('" MODEL "', 'one'), bert_load('" MODEL "', 'two')");
  assert_error(db, "SELECT bert_embed('x', 'nobody')",
               "bert_embed: no model \"nobody\" is loaded; the names are one, two");
  assert_error(db, "SELECT bert_token_count('x', 'models/default')", "the names are one, two");
  assert_error(db, "SELECT bert_unload('nobody')", "the names are one, two");
}

static void the_default_opens_on_first_use(void **state) {
  (void)state;
  assert_answer(db, "SELECT length(bert_embed('x'))", "1536");
  assert_answer(db, "SELECT name, is_default FROM bert_models", "all-MiniLM-L6-v2|1");
}

static void the_default_answers_to_its_name(void **state) {
  (void)state;
  assert_answer(db, "SELECT length(bert_embed('x', 'all-MiniLM-L6-v2'))", "1536");
}

static void the_environment_names_the_default(void **state) {
  (void)state;
  setenv("BERTSQL_MODEL", "models/nowhere", 1);
  assert_error(db, "SELECT bert_embed('x')", "BERTSQL_MODEL");
  setenv("BERTSQL_MODEL", MODEL "/", 1);
  assert_answer(db, "SELECT length(bert_embed('x'))", "1536");
  assert_answer(db, "SELECT name FROM bert_models", "all-MiniLM-L6-v2");
}

static void loading_twice_keeps_the_models(void **state) {
  (void)state;
  assert_runs(db, "SELECT bert_load('" MODEL "', 'mine')");
  assert_int_equal(sqldb_load(db, NULL, NULL), SQLITE_OK);
  assert_answer(db, "SELECT name FROM bert_models", "mine");
}

/* ---- Embeddings ---------------------------------------------------------- */

static void any_value_is_a_text(void **state) {
  (void)state;
  assert_answer(db, "SELECT bert_embed(NULL), bert_embed(NULL, 'nobody')", "NULL|NULL");
  assert_answer(db, "SELECT length(bert_embed('')), length(bert_embed(x''))", "1536|1536");
  assert_answer(db,
                "SELECT bert_embed(42) = bert_embed('42'), "
                "bert_embed(2.5) = bert_embed('2.5'), "
                "bert_embed(x'6162') = bert_embed('ab'), bert_embed(x'') = bert_embed('')",
                "1|1|1|1");
  assert_answer(db, "SELECT bert_token_count('a' || char(0) || ' b') > bert_token_count('a')", "1");
  assert_answer(db, "SELECT bert_embed(x'61ff62') = bert_embed(x'61efbfbd62')", "1");
  assert_answer(db, "SELECT length(bert_embed(zeroblob(100)))", "1536");
}

static void embeddings_are_vectors(void **state) {
  (void)state;
  assert_answer(db, "SELECT subtype_of(bert_embed('x')), typeof(bert_embed('x'))", "223|blob");
  assert_answer(db,
                "SELECT abs(bert_dot(e, e) - 1) < 1e-6 FROM "
                "(SELECT bert_embed('time flies like an arrow') AS e)",
                "1");
}

static void options_change_embeddings(void **state) {
  (void)state;
  assert_answer(db, "SELECT length(bert_embed('x', NULL, '{\"dims\": 10}'))", "40");
  assert_answer(db, "SELECT bert_embed('b', NULL, '{\"prompt\": \"a \"}') = bert_embed('a b')",
                "1");
  assert_answer(db, "SELECT bert_embed('b', NULL, '{\"kind\": \"query\"}') = bert_embed('b')", "1");
  assert_answer(db, "SELECT bert_embed('b', NULL, '{\"pooling\": \"cls\"}') = bert_embed('b')",
                "0");
  assert_answer(db,
                "SELECT abs(bert_dot(e, e) - 1) > 0.1 FROM (SELECT bert_embed('x', NULL, "
                "'{\"normalize\": false}') AS e)",
                "1");
  assert_answer(db,
                "SELECT bert_embed('a b c d e', NULL, '{\"max_tokens\": 4}') = "
                "bert_embed('a b')",
                "1");
  assert_answer(db,
                "SELECT bert_embed('x', NULL, '{\"dims\": null, \"model\": null}') = "
                "bert_embed('x')",
                "1");
  assert_answer(db,
                "SELECT bert_embed('x', 'all-MiniLM-L6-v2', "
                "'{\"model\": \"all-MiniLM-L6-v2\"}') = bert_embed('x')",
                "1");
}

static void options_are_strict(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"{\"dim\": 3}", "bert_embed: unknown option \"dim\"; the options are prompt, kind, dims"},
      {"{\"dims\": 0}", "option \"dims\" must be an integer of at least 1, not 0"},
      {"{\"dims\": 99999999999}",
       "\"dims\" must be an integer from 1 to 2147483647, not 99999999999"},
      {"{\"dims\": -1}", "not -1"},
      {"{\"dims\": 385}", "384"},
      {"{\"dims\": 2.5}", "not 2.5"},
      {"{\"dims\": \"3\"}", "not \"3\""},
      {"{\"dims\": [3]}", "not an array"},
      {"{\"prompt\": \"a\", \"kind\": \"query\"}", "give one of them"},
      {"minilm", "a JSON object such as {\"model\": \"name\"}, not the text 'minilm'"},
      {"{\"normalize\": \"no\"}", "option \"normalize\" must be true or false"},
      {"{\"pooling\": \"median\"}",
       "one of cls, mean, max, mean_sqrt_len, weightedmean, lasttoken, pooler"},
      {"{\"truncate\": \"start\"}", "option \"truncate\" must be one of end, error"},
      {"{\"prompt\": 1}", "option \"prompt\" must be a string, not 1"},
      {"{\"kind\": \"poem\"}", "poem"},
      {"{\"max_tokens\": 0}", "option \"max_tokens\""},
      {"{\"max_tokens\": 1}", "bert_embed: "},
      {"{\"max_tokens\": 100000}", "bert_embed: "},
      {"{\"model\": \"nobody\"}", "no model \"nobody\""},
      {"{\"dims\": 3, \"dims\": 4}", "dims"},
      {"{\"dims\": 3", "must be a JSON object"},
      {"[3]", "such as {\"model\": \"name\"}, not an array"},
      {"3", "not a number"},
      {"", "must be a JSON object"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char *sql = sqlite3_mprintf("SELECT bert_embed('x', NULL, %Q)", cases[i][0]);
    assert_error(db, sql, cases[i][1]);
    sqlite3_free(sql);
  }
  assert_error(db, "SELECT bert_embed('x', 'a', '{\"model\": \"b\"}')",
               "the model argument is \"a\" and the option \"model\" is \"b\"");
  assert_error(db, "SELECT bert_embed('x', '{\"dims\": 3}')", "bert_embed(text, NULL, ");
  assert_error(db, "SELECT bert_token_count('x', '{\"dims\": 3}')", "no options");
  assert_error(db, "SELECT bert_is_truncated('x', '{\"dims\": 3}')", "no options");
  assert_error(db, "SELECT bert_load('tests/golden/families/bert-mean', '{\"copy\": true}')",
               "bert_load(source, NULL, ");
  assert_answer(db, "SELECT length(bert_embed('x', NULL, '{\"dims\": 64.0}'))", "256");
}

/* null is the default for every key of every kind; a choice may be in capitals. Names
** and keys are what they are. */
static void options_follow_one_rule(void **state) {
  (void)state;
  assert_answer(db,
                "SELECT bert_embed('x', NULL, '{\"prompt\": null, \"kind\": null, \"dims\": null, "
                "\"normalize\": null, \"pooling\": null, \"truncate\": null, "
                "\"max_tokens\": null, \"model\": null}') = bert_embed('x')",
                "1");
  assert_answer(db,
                "SELECT bert_load('" TINY "', 'nulls', '{\"precision\": null, \"copy\": null}'), "
                "bert_load('" TINY "', 'nulls', NULL), bert_load('" TINY "', 'half', "
                "'{\"precision\": \"BF16\"}'), bert_load('" TINY "', 'quarter', "
                "'{\"precision\": \"Int8\"}'); SELECT name, precision FROM bert_models WHERE "
                "name IN ('nulls', 'half', 'quarter')",
                "nulls|nulls|half|quarter\nnulls|float32\nhalf|bf16\nquarter|int8");
  assert_runs(db, "SELECT bert_unload('nulls'), bert_unload('half'), bert_unload('quarter')");
  assert_answer(db,
                "SELECT bert_embed('x', NULL, '{\"pooling\": \"CLS\", \"truncate\": \"End\"}') = "
                "bert_embed('x', NULL, '{\"pooling\": \"cls\"}')",
                "1");
  assert_error(db, "SELECT bert_embed('x', NULL, '{\"Dims\": 3}')", "unknown option \"Dims\"");
  assert_error(db, "SELECT bert_embed('x', NULL, '{\"kind\": \"Query\"}')", "Query");
  assert_error(db, "SELECT bert_embed('x', NULL, '{\"pooling\": \"cl\"}')", "one of cls, mean");
}

static void long_texts_are_cut_or_refused(void **state) {
  (void)state;
  assert_runs(db, "CREATE TABLE long AS SELECT replace(hex(zeroblob(5000)), '00', 'word ') AS t");
  assert_answer(db,
                "SELECT length(bert_embed(t)), bert_is_truncated(t), bert_token_count(t) "
                "FROM long",
                "1536|1|5002");
  assert_answer(db,
                "SELECT bert_is_truncated('short'), bert_token_count('short'), "
                "bert_token_count(''), bert_token_count(NULL), bert_is_truncated(NULL)",
                "0|3|2|NULL|NULL");
  assert_error(db, "SELECT bert_embed(t, NULL, '{\"truncate\": \"error\"}') FROM long",
               "longer than 256 tokens; raise max_tokens (up to 512), cut it with bert_chunks");
  assert_error(db,
               "SELECT bert_embed(t, NULL, '{\"truncate\": \"error\", \"max_tokens\": 512}') "
               "FROM long",
               "longer than 512 tokens; cut it with bert_chunks");
  assert_answer(db, "SELECT bert_embed(t) = bert_embed(substr(t, 1, 4000)) FROM long", "1");
}

static void similarity_is_the_cosine(void **state) {
  (void)state;
  assert_answer(db,
                "SELECT abs(bert_similarity('a cat', 'a kitten') - "
                "bert_cosine(bert_embed('a cat'), bert_embed('a kitten'))) < 1e-6",
                "1");
  assert_answer(db, "SELECT bert_similarity(NULL, 'x'), bert_similarity('x', NULL)", "NULL|NULL");
  assert_answer(db,
                "SELECT bert_similarity('a cat', 'a kitten') > "
                "bert_similarity('a cat', 'tax law')",
                "1");
  assert_error(db, "SELECT bert_similarity('a', 'b', '{\"dims\": 0}')", "bert_similarity: option");
}

/* Constant texts and options are embedded and read once; columns are not. */
static void caches_do_not_mix_rows(void **state) {
  (void)state;
  assert_runs(db, "CREATE TABLE t(a, b, o); INSERT INTO t VALUES"
                  "('one', 'two', '{\"dims\": 8}'), ('three', NULL, '{\"dims\": 9}'),"
                  "('four', 'one', NULL), ('five', 'five', '{\"dims\": 10}')");
  assert_answer(db, "SELECT length(bert_embed(a, NULL, o)) FROM t", "32\n36\n1536\n40");
  assert_answer(db,
                "SELECT count(*) FROM t WHERE abs(bert_similarity(a, b, o) - "
                "bert_cosine(bert_embed(a, NULL, o), bert_embed(b, NULL, o))) < 1e-6",
                "3");
  assert_answer(db,
                "SELECT count(*) FROM t WHERE abs(bert_similarity(a, 'one', o) - "
                "bert_cosine(bert_embed(a, NULL, o), bert_embed('one', NULL, o))) < 1e-6",
                "4");
  assert_answer(db,
                "SELECT count(*) FROM t WHERE abs(bert_similarity('one', a, '{\"dims\":7}') - "
                "bert_cosine(bert_embed(a, NULL, '{\"dims\":7}'), "
                "bert_embed('one', NULL, '{\"dims\":7}'))) < 1e-6",
                "4");
  assert_answer(db,
                "SELECT count(*) FROM t WHERE abs(bert_similarity(a, 'one') - "
                "bert_cosine(bert_embed(a), bert_embed('one'))) < 1e-6",
                "4");
  assert_answer(db,
                "SELECT bert_dot(v, '[1,2]') FROM (SELECT '[1,0]' AS v UNION ALL SELECT "
                "'[0,1]' UNION ALL SELECT bert_vector('[3,3]'))",
                "1.0\n2.0\n9.0");
}

/* ---- Vectors ------------------------------------------------------------- */

static void vectors_are_measured(void **state) {
  (void)state;
  assert_answer(db,
                "SELECT bert_cosine('[1, 2, 3]', '[2, 4, 6]'), bert_dot('[1, 2]', '[3, 4]'), "
                "bert_l2('[1, 2]', '[4, 6]')",
                "1.0|11.0|5.0");
  assert_answer(db,
                "SELECT bert_dot(x'0000803f00000040', '[3, 4]'), "
                "bert_dot(substr(x'000000803f00000040', 2), bert_vector('[3, 4]'))",
                "11.0|11.0");
  assert_answer(db,
                "SELECT bert_cosine('[0, 0]', '[1, 2]'), bert_cosine(NULL, '[1]'), "
                "bert_dot('[1]', NULL), bert_l2(NULL, NULL), bert_cosine(NULL, 'junk')",
                "NULL|NULL|NULL|NULL|NULL");
  assert_answer(db,
                "SELECT bert_dot(x'0000c07f', '[1]'), bert_l2(x'0000c07f', '[1]'), "
                "bert_cosine(x'0000c07f', '[1]')",
                "NULL|NULL|NULL");
}

static void vectors_are_checked(void **state) {
  (void)state;
  assert_error(db, "SELECT bert_cosine('[1, 2]', '[1]')",
               "bert_cosine: the vectors have different lengths, 2 and 1");
  assert_error(db, "SELECT bert_dot(x'000000', '[1]')", "bert_dot: the first vector: a BLOB of 3");
  assert_error(db, "SELECT bert_l2('[1]', x'')", "bert_l2: the second vector: an empty BLOB");
  assert_error(db, "SELECT bert_l2('[]', '[]')", "the first vector: an empty array");
  assert_error(db, "SELECT bert_l2('[1]', 'x')", "the second vector: a vector in text");
  assert_error(db, "SELECT bert_l2('[1]', 1.5)", "the second vector: a vector is a BLOB");
  assert_error(db, "SELECT bert_l2('[1, [2]]', '[1, 2]')", "element 1 is an array, not a number");
}

static void json_becomes_a_vector(void **state) {
  (void)state;
  assert_answer(db,
                "SELECT hex(bert_vector('[1, 2.5, -3e-3]')), subtype_of(bert_vector('[1]')), "
                "bert_vector(NULL), bert_vector(CAST('[1]' AS BLOB)) = x'0000803f'",
                "0000803F00002040A69B44BB|223|NULL|1");
  assert_error(db, "SELECT bert_vector('[1, null]')", "bert_vector: element 1 is null");
  assert_error(db, "SELECT bert_vector('[[1]]')", "element 0 is an array");
  assert_error(db, "SELECT bert_vector('{}')", "not an object");
  assert_error(db, "SELECT bert_vector(7)", "not a number");
  assert_error(db, "SELECT bert_vector('[]')", "an empty array");
  assert_error(db, "SELECT bert_vector('[1e39]')", "beyond the range of float32");
  assert_error(db, "SELECT bert_vector('[1')", "bert_vector: ");
  assert_error(db, "SELECT bert_vector(x'0000803f')", "a BLOB already needs no bert_vector");
  assert_error(db, "SELECT bert_vector(CAST('[1' AS BLOB))", "a JSON array of numbers");
}

static void vectors_become_json(void **state) {
  (void)state;
  assert_answer(db,
                "SELECT bert_json(bert_vector('[1, 2.5, -0.1, 123456789, 1e-10]')), "
                "subtype_of(bert_json(x'00000000')), bert_json(NULL), "
                "json_array(bert_json(x'0000803f'))",
                "[1,2.5,-0.1,1.234568e+08,1e-10]|74|NULL|[[1]]");
  assert_error(db, "SELECT bert_json('[1]')", "bert_json: the argument must be a vector");
  assert_error(db, "SELECT bert_json(x'0000c07f')", "element 0 is NaN");
  assert_error(db, "SELECT bert_json(x'0000803f0000807f')", "element 1 is infinite");
  assert_error(db, "SELECT bert_json(x'00')", "a BLOB of 1 bytes");
}

/* ---- Settings ------------------------------------------------------------ */

static void settings_are_kept(void **state) {
  (void)state;
  assert_answer(db, "SELECT bert_set('threads', 1), bert_set('progress', 0)", "1|0");
  assert_answer(db, "SELECT json_extract(bert_info(), '$.threads')", "1");
  setenv("BERTSQL_KERNELS", "abacus", 1);
  assert_answer(db, "SELECT json_extract(bert_info(), '$.kernels_requested')", "abacus");
  setenv("BERTSQL_KERNELS", "scalar", 1);
  assert_answer(db, "SELECT json_extract(bert_info(), '$.kernels_requested')", "NULL");
  unsetenv("BERTSQL_KERNELS");
  assert_runs(db, "CREATE TEMP TABLE one AS SELECT bert_embed('the same on any threads') AS e");
  assert_answer(db, "SELECT bert_set('threads', 2)", "2");
  assert_answer(db, "SELECT e = bert_embed('the same on any threads') FROM one", "1");
  assert_answer(db, "SELECT bert_set('threads', NULL)", "0");
  assert_runs(db, "CREATE TEMP TABLE before AS SELECT bert_info() ->> 'kernels' AS kernels");
  assert_answer(db, "SELECT bert_set('kernels', 'Scalar')", "scalar");
  assert_answer(db, "SELECT json_extract(bert_info(), '$.kernels')", "scalar");
  assert_answer(db, "SELECT bert_l2(e, bert_embed('the same on any threads')) < 1e-5 FROM one",
                "1");
  assert_runs(db,
              "SELECT bert_set('kernels', NULL); SELECT bert_set('kernels', kernels) FROM before");
}

static void settings_are_checked(void **state) {
  (void)state;
  assert_error(db, "SELECT bert_set('threads', -1)",
               "threads must be an integer from 0 to 1024, not -1");
  assert_error(db, "SELECT bert_set('threads', 1025)", "threads must be an integer");
  assert_error(db, "SELECT bert_set('threads', 'many')", "not the text 'many'");
  assert_error(db, "SELECT bert_set('progress', 2)", "progress must be an integer from 0 to 1");
  assert_error(db, "SELECT bert_set('kernels', 'abacus')",
               "bert_set: no kernel set \"abacus\" here; this processor has ");
  assert_error(db, "SELECT bert_set('speed', 9)",
               "unknown key \"speed\"; the keys are threads, progress, search_cache, kernels");
  assert_error(db, "SELECT bert_set(NULL, 9)", "the key is missing; the keys are threads");
}

/* Where precision is not an option, it says where it is one. */
static void precision_belongs_to_bert_load(void **state) {
  (void)state;
#define BELONGS                                                                                    \
  ": the precision that a model computes in is an option of bert_load, as in SELECT "              \
  "bert_load('models/all-MiniLM-L6-v2', 'fast', '{\"precision\": \"bf16\"}'); the "
  assert_error(db, "SELECT bert_embed('x', NULL, '{\"precision\": \"bf16\"}')",
               "bert_embed: unknown option \"precision\"" BELONGS "options are prompt, kind");
  assert_error(db, "SELECT * FROM bert_embed_rows('SELECT 1, 2', '{\"dtype\": \"int8\"}')",
               "unknown option \"dtype\"" BELONGS "options are ");
  assert_error(db, "SELECT * FROM bert_tokens('x', '{\"Precision\": null}')",
               "unknown option \"Precision\"" BELONGS "options are model");
  assert_error(db, "SELECT bert_set('precision', 'bf16')",
               "bert_set: unknown key \"precision\"" BELONGS "keys are threads");
  assert_error(db, "SELECT bert_set('dtype', 'bf16')", "unknown key \"dtype\"" BELONGS "keys are");
}

/* ---- Inside a schema ------------------------------------------------------ */

/* SQLite lets a function into an index only if it always gives the same, which holds for
** one model: an index that names its model stays right, another one needs REINDEX when
** the default model is another one. */
static void an_index_names_its_model(void **state) {
  (void)state;
  static const char damaged[] = "SELECT count(*), sum(integrity_check LIKE '%by_default%'), "
                                "sum(integrity_check LIKE '%by_name%') FROM pragma_integrity_check";
  assert_runs(db, "SELECT bert_load('" TINY "', 'tiny');"
                  "CREATE TABLE d(id INTEGER PRIMARY KEY, body TEXT,"
                  "  vec BLOB GENERATED ALWAYS AS (bert_embed(body)) STORED);"
                  "INSERT INTO d(body) VALUES('a cat'), ('a dog');"
                  "CREATE INDEX by_default ON d(bert_embed(body));"
                  "CREATE INDEX by_name ON d(bert_embed(body, 'tiny'))");
  assert_answer(db, "PRAGMA integrity_check", "ok");
  assert_runs(db, "SELECT bert_unload('tiny');"
                  "SELECT bert_load('tests/golden/families/bert-cls-dense', 'other'), "
                  "bert_load('" TINY "', 'tiny')");
  assert_answer(db, damaged, "2|2|0");
  assert_answer(db,
                "SELECT id FROM d INDEXED BY by_name "
                "WHERE bert_embed(body, 'tiny') = bert_embed('a dog', 'tiny')",
                "2");
  assert_answer(db, "REINDEX by_default; PRAGMA integrity_check", "ok");
  assert_answer(db,
                "SELECT id FROM d INDEXED BY by_default WHERE bert_embed(body) = "
                "bert_embed('a dog'); SELECT count(*) FROM d WHERE vec = bert_embed(body, 'tiny');"
                "UPDATE d SET body = body; SELECT count(*) FROM d WHERE vec = bert_embed(body)",
                "2\n2\n2");
}

static void functions_work_in_a_schema(void **state) {
  (void)state;
  assert_runs(db, "PRAGMA trusted_schema = OFF;"
                  "CREATE TABLE d(id INTEGER PRIMARY KEY, body TEXT, emb BLOB,"
                  "  vec BLOB GENERATED ALWAYS AS (bert_embed(body)) STORED,"
                  "  CHECK (bert_token_count(body) < 20));"
                  "CREATE INDEX by_count ON d(bert_token_count(body));"
                  "CREATE TRIGGER d_insert AFTER INSERT ON d BEGIN"
                  "  UPDATE d SET emb = bert_embed(new.body) WHERE id = new.id; END;"
                  "CREATE VIEW v AS SELECT id, bert_embed(body) AS e FROM d;"
                  "INSERT INTO d(body) VALUES('a cat'), ('a dog'), (NULL), ('')");
  assert_answer(db, "SELECT d.id, length(emb), emb IS vec, emb IS e FROM d JOIN v USING (id)",
                "1|1536|1|1\n2|1536|1|1\n3|NULL|1|1\n4|1536|1|1");
  assert_answer(db, "SELECT id FROM d WHERE bert_token_count(body) = 2", "4");
  assert_error(db, "INSERT INTO d(body) VALUES(replace(hex(zeroblob(30)), '00', 'word '))",
               "CHECK constraint failed");
  assert_answer(db, "PRAGMA integrity_check", "ok");
}

static void what_takes_a_path_stays_out_of_schemas(void **state) {
  (void)state;
  assert_runs(db, "CREATE VIEW load AS SELECT bert_load('" MODEL "');"
                  "CREATE VIEW unload AS SELECT bert_unload('x');"
                  "CREATE VIEW setting AS SELECT bert_set('threads', 1)");
  assert_error(db, "SELECT * FROM load", "unsafe use of bert_load()");
  assert_error(db, "SELECT * FROM unload", "unsafe use of bert_unload()");
  assert_error(db, "SELECT * FROM setting", "unsafe use of bert_set()");
}

static void utf16_databases_give_the_same(void **state) {
  (void)state;
  sqlite3 *wide = sqldb_open(NULL);
  assert_runs(wide, "PRAGMA encoding = 'UTF-16le'; CREATE TABLE t(x);"
                    "INSERT INTO t VALUES('na\xc3\xafve caf\xc3\xa9 \xf0\x9f\x98\x80')");
  char *narrow =
      sqldb_answer(db, "SELECT bert_embed('na\xc3\xafve caf\xc3\xa9 \xf0\x9f\x98\x80')", NULL);
  assert_answer(wide, "SELECT bert_embed(x) FROM t", narrow);
  assert_answer(wide,
                "SELECT bert_dot('[1,2]', '[3,4]'), "
                "length(bert_embed(x, NULL, '{\"dims\": 4}')) FROM t",
                "11.0|16");
  assert_error(wide, "SELECT bert_embed('x', 'nobody')", "no model \"nobody\"");
  sqlite3_free(narrow);
  sqldb_close(wide);
}

#define EACH(f) cmocka_unit_test_setup_teardown(f, open_db, close_db)

int main(void) {
  const struct CMUnitTest tests[] = {EACH(every_function_is_registered),
                                     EACH(info_is_json),
                                     EACH(loading_gives_a_name),
                                     EACH(loading_refuses),
                                     EACH(unknown_names_list_the_known),
                                     EACH(the_default_opens_on_first_use),
                                     EACH(the_default_answers_to_its_name),
                                     EACH(the_environment_names_the_default),
                                     EACH(loading_twice_keeps_the_models),
                                     EACH(any_value_is_a_text),
                                     EACH(embeddings_are_vectors),
                                     EACH(options_change_embeddings),
                                     EACH(options_are_strict),
                                     EACH(options_follow_one_rule),
                                     EACH(precision_belongs_to_bert_load),
                                     EACH(long_texts_are_cut_or_refused),
                                     EACH(similarity_is_the_cosine),
                                     EACH(caches_do_not_mix_rows),
                                     EACH(vectors_are_measured),
                                     EACH(vectors_are_checked),
                                     EACH(json_becomes_a_vector),
                                     EACH(vectors_become_json),
                                     EACH(settings_are_kept),
                                     EACH(settings_are_checked),
                                     EACH(an_index_names_its_model),
                                     EACH(functions_work_in_a_schema),
                                     EACH(what_takes_a_path_stays_out_of_schemas),
                                     EACH(utf16_databases_give_the_same)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
