/*
** test_ext_task_rules.c: bert_classify, bert_rerank, bert_entities and bert_fill
** beyond the references: options, errors, heads of other kinds, texts of any length.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "checkpoint.h"
#include "scratch.h"
#include "sqldb.h"

#define FAMILIES "tests/golden/families/"

static sqlite3 *db;

/* Small models under short names; "classes" is the default. */
static int open_models(void **state) {
  (void)state;
  db = sqldb_open(NULL);
  assert_runs(db, "SELECT bert_load('" FAMILIES "bert-classify', 'classes'),"
                  " bert_load('" FAMILIES "bert-cross', 'cross'),"
                  " bert_load('" FAMILIES "bert-ner-cased', 'ner'),"
                  " bert_load('" FAMILIES "bert-mlm-cased', 'fill'),"
                  " bert_load('models/all-MiniLM-L6-v2', 'minilm')");
  return 0;
}

static int close_models(void **state) {
  (void)state;
  sqldb_close(db);
  return 0;
}

/* Loads a changed copy as `name`, whose directory is freed with forget. */
static void load(const char *directory, const char *name) {
  char *sql = sqlite3_mprintf("SELECT bert_load(%Q, %Q)", directory, name);
  assert_runs(db, sql);
  sqlite3_free(sql);
}

static void forget(char *directory, const char *name) {
  char *sql = sqlite3_mprintf("SELECT bert_unload(%Q)", name);
  assert_runs(db, sql);
  sqlite3_free(sql);
  scratch_free(directory);
}

/* ---- Heads ------------------------------------------------------------------------- */

static void heads_are_listed_where_one_is_missing(void **state) {
  (void)state;
  static const struct {
    const char *sql, *part;
  } cases[] = {
      {"SELECT bert_classify('a', '{\"model\":\"minilm\"}')",
       "bert_classify: the model \"minilm\" has no head for classification: it has no head at all"},
      {"SELECT * FROM bert_classify('a', '{\"model\":\"fill\"}')",
       "the model \"fill\" has no head for classification; the heads it has are for: fill"},
      {"SELECT bert_rerank('a', 'b', '{\"model\":\"ner\"}')",
       "bert_rerank: the model \"ner\" has no head for classification; the heads it has are for: "
       "entities"},
      {"SELECT * FROM bert_entities('a')",
       "bert_entities: the model \"classes\" has no head for entities; the heads it has are for: "
       "classify"},
      {"SELECT * FROM bert_entities('a', '{\"model\":\"cross\"}')", "are for: classify,rerank"},
      {"SELECT * FROM bert_fill('a [MASK]')",
       "bert_fill: the model \"classes\" has no head for filling in mask tokens"},
      {"SELECT bert_rerank('a', 'b')",
       "bert_rerank: the model \"classes\" gives 3 labels for a pair, a re-ranker one number; use "
       "bert_classify(query, json_object('model', 'classes', 'text_b', passage))"},
      {"SELECT bert_classify('a', '{\"model\":\"nobody\"}')", "no model \"nobody\" is loaded"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_error(db, cases[i].sql, cases[i].part);
}

static void null_gives_null(void **state) {
  (void)state;
  assert_answer(db, "SELECT bert_classify(NULL), bert_classify(NULL, 'no json')", "NULL|NULL");
  assert_answer(db, "SELECT bert_rerank(NULL, 'a'), bert_rerank('a', NULL, '{}')", "NULL|NULL");
  assert_answer(db,
                "SELECT count(*) FROM bert_classify(NULL); SELECT count(*) FROM "
                "bert_entities(NULL); SELECT count(*) FROM bert_fill(NULL)",
                "0\n0\n0");
  assert_answer(db, "SELECT bert_classify('a', NULL) = bert_classify('a')", "1");
}

static void any_value_is_a_text(void **state) {
  (void)state;
  assert_answer(db,
                "SELECT bert_classify(12) = bert_classify('12'), bert_classify(x'6162') = "
                "bert_classify('ab'), bert_classify('') = bert_classify(x'')",
                "1|1|1");
  assert_answer(db, "SELECT count(*) FROM bert_classify('')", "3");
  assert_answer(db, "SELECT count(*) FROM bert_entities('', '{\"model\":\"ner\"}')", "0");
  assert_answer(db, "SELECT bert_rerank('', '', '{\"model\":\"cross\"}') BETWEEN 0 AND 1", "1");
  assert_answer(db,
                "SELECT sum(score) BETWEEN 0.99999 AND 1.00001 FROM bert_classify('a' || char(0)"
                " || x'ff')",
                "1");
}

static void forms_are_checked(void **state) {
  (void)state;
  assert_error(db, "SELECT * FROM bert_classify", "needs a text, as in bert_classify('some text')");
  assert_error(db, "SELECT * FROM bert_entities", "needs a text, as in bert_entities('some text')");
  assert_error(db, "SELECT * FROM bert_fill", "needs a text with a mask token, as in bert_fill('");
  assert_error(db, "SELECT * FROM bert_fill('a', '{}', 1)", "takes at most 2 arguments");
  assert_error(db, "SELECT bert_classify('a', 'minilm')",
               "the options of bert_classify are a JSON object such as {\"model\": \"name\"}");
  assert_error(db, "SELECT bert_classify('a', '{\"top_k\":1}')",
               "unknown option \"top_k\"; the options are model, text_b, max_tokens, labels");
  assert_error(db, "SELECT * FROM bert_classify('a', '{\"k\":1}')",
               "the options are model, text_b, max_tokens, labels, top_k");
  assert_error(db, "SELECT * FROM bert_entities('a', '{\"text_b\":\"b\"}')",
               "unknown option \"text_b\"; the options are model, max_tokens, labels");
  assert_error(db, "SELECT * FROM bert_fill('a', '{\"labels\":[]}')",
               "the options are model, text_b, max_tokens, top_k");
  assert_error(db, "SELECT bert_rerank('a', 'b', '{\"text_b\":\"c\"}')",
               "the options are model, max_tokens");
}

/* ---- Classes ------------------------------------------------------------------------ */

static void labels_leave_out_rows(void **state) {
  (void)state;
  assert_answer(db,
                "SELECT count(*) FROM bert_classify('time flies') a JOIN bert_classify('time "
                "flies', '{\"labels\":[\"negative\",\"positive\",\"negative\"]}') b "
                "ON a.label = b.label AND a.score = b.score",
                "2");
  assert_answer(db, "SELECT bert_classify('time flies', '{\"labels\":[\"negative\"]}')",
                "negative");
  assert_error(db, "SELECT bert_classify('a', '{\"labels\":[\"good\"]}')",
               "bert_classify: the model has no label \"good\"; its labels are negative, neutral, "
               "positive");
  assert_error(db, "SELECT bert_classify('a', '{\"labels\":\"positive\"}')",
               "option \"labels\" must be an array of names such as [\"negative\"], not a string");
  assert_error(db, "SELECT * FROM bert_classify('a', '{\"labels\":[]}')", "not an empty one");
  assert_error(db, "SELECT * FROM bert_classify('a', '{\"labels\":[1]}')",
               "option \"labels\" must hold names, not a number");
}

static void top_k_counts_rows(void **state) {
  (void)state;
  assert_answer(db,
                "SELECT count(*), max(score) = (SELECT max(score) FROM bert_classify('a')) "
                "FROM bert_classify('a', '{\"top_k\":2}')",
                "2|1");
  assert_answer(db, "SELECT count(*) FROM bert_classify('a', '{\"top_k\":99}')", "3");
  assert_error(db, "SELECT * FROM bert_classify('a', '{\"top_k\":0}')",
               "option \"top_k\" must be an integer of at least 1, not 0");
}

static void a_second_text_makes_a_pair(void **state) {
  (void)state;
  assert_answer(db,
                "SELECT round(sum(score), 5), max(score) <> (SELECT max(score) FROM "
                "bert_classify('time flies')) FROM bert_classify('time flies', "
                "'{\"text_b\":\"like an arrow\"}')",
                "1.0|1");
  assert_answer(db,
                "SELECT round(bert_rerank('a b', 'c', '{\"model\":\"cross\"}') - score, 6) FROM "
                "bert_classify('a b', '{\"model\":\"cross\",\"text_b\":\"c\"}')",
                "0.0");
}

static void long_texts_are_cut(void **state) {
  (void)state;
  assert_answer(db,
                "WITH t(x) AS (SELECT replace(hex(zeroblob(1000)), '00', 'tide ')) "
                "SELECT c.truncated, c.label = bert_classify(x) FROM t, bert_classify(x) c LIMIT 1",
                "1|1");
  assert_answer(db, "SELECT truncated FROM bert_classify('a', '{\"top_k\":1}')", "0");
  assert_answer(db,
                "SELECT count(*), sum(a.score = b.score) FROM bert_classify('time flies', "
                "'{\"max_tokens\":3}') a JOIN bert_classify('time') b USING (label)",
                "3|3");
  assert_error(db, "SELECT bert_classify('a', '{\"max_tokens\":1}')", "the special tokens alone");
  assert_error(db, "SELECT bert_rerank('a', 'b', '{\"model\":\"cross\",\"max_tokens\":1000}')",
               "the model has 66 positions");
}

static void the_checkpoint_says_what_a_score_is(void **state) {
  (void)state;
  char *many = scratch_copy(FAMILIES "bert-classify");
  char *values = scratch_copy(FAMILIES "bert-classify");
  char *value = scratch_copy(FAMILIES "bert-cross");
  scratch_replace(many, "config.json", "\"add_cross",
                  "\"problem_type\": \"multi_label_classification\", \"add_cross");
  scratch_replace(values, "config.json", "\"add_cross",
                  "\"problem_type\": \"regression\", \"add_cross");
  scratch_replace(value, "config.json", "\"add_cross",
                  "\"problem_type\": \"regression\", \"add_cross");
  load(many, "many");
  load(values, "values");
  load(value, "value");
  /* v are the logits: their sigmoid, and their softmax in classes. */
  assert_answer(db,
                "SELECT count(*), max(abs(m.score - 1 / (1 + exp(-v.score)))) < 1e-6, "
                "max(abs(c.score / (SELECT max(score) FROM bert_classify('time flies')) - "
                "exp(v.score - (SELECT max(score) FROM bert_classify('time flies', "
                "'{\"model\":\"values\"}'))))) < 1e-5 "
                "FROM bert_classify('time flies', '{\"model\":\"many\"}') m "
                "JOIN bert_classify('time flies', '{\"model\":\"values\"}') v USING (label) "
                "JOIN bert_classify('time flies') c USING (label)",
                "3|1|1");
  assert_answer(db, "SELECT bert_classify('time flies', '{\"model\":\"many\"}')", "neutral");
  assert_error(db, "SELECT bert_classify('time flies', '{\"model\":\"values\"}')",
               "the model gives 3 values for a text; use the table");
  assert_answer(db,
                "SELECT typeof(bert_classify('a', '{\"model\":\"values\",\"labels\":"
                "[\"neutral\"]}')), bert_classify('a', '{\"model\":\"values\",\"labels\":"
                "[\"neutral\"]}') = score FROM bert_classify('a', '{\"model\":\"values\"}') "
                "WHERE label = 'neutral'",
                "real|1");
  assert_answer(db,
                "SELECT abs(1 / (1 + exp(-bert_classify('a', '{\"model\":\"value\"}'))) - score) < "
                "1e-6, label FROM bert_classify('a', '{\"model\":\"cross\"}')",
                "1|LABEL_0");
  forget(many, "many");
  forget(values, "values");
  forget(value, "value");
}

static void the_checkpoint_says_how_to_rerank(void **state) {
  (void)state;
  char *identity = scratch_copy(FAMILIES "bert-cross");
  scratch_replace(identity, "config.json", "\"add_cross",
                  "\"sentence_transformers\": {\"activation_fn\": "
                  "\"torch.nn.modules.linear.Identity\"}, \"add_cross");
  load(identity, "identity");
  assert_answer(
      db,
      "SELECT abs(1 / (1 + exp(-bert_rerank('time', 'flies', '{\"model\":\"identity\"}')))"
      " - bert_rerank('time', 'flies', '{\"model\":\"cross\"}')) < 1e-6",
      "1");
  forget(identity, "identity");
}

/* ---- Settings that change what the reference gives ----------------------------------- */

/* One setting of a file, and the best label that transformers 5.24.0 then has. */
static const struct {
  const char *name, *file, *from, *to, *label;
  double score;
} changed[] = {
    {"bert-classify", "tokenizer_config.json", "\"do_lower_case\": true",
     "\"do_lower_case\": false", "neutral", 0.3998875319957733},
    {"bert-classify", "tokenizer_config.json", "\"do_lower_case\": true,", "", "neutral",
     0.41486120223999023},
    {"bert-classify", "tokenizer_config.json", "\"strip_accents\": null",
     "\"strip_accents\": false", "neutral", 0.40816283226013184},
    {"bert-classify", "tokenizer_config.json", "\"strip_accents\": null",
     "\"tokenize_chinese_chars\": false", "positive", 0.44108039140701294},
    {"bert-classify", "tokenizer_config.json",
     "\"BertTokenizer\",\n \"unk_token\": \"[UNK]\",\n \"do_lower_case\": true,",
     "\"PreTrainedTokenizerFast\", \"do_lower_case\": false,", "neutral", 0.41486120223999023},
    {"bert-classify", "config.json", "\"id2label\": {",
     "\"num_labels\": 3, \"id2label\": {\"0\": \"a\"}, \"old\": {", "LABEL_1", 0.41486120223999023},
    {"distilbert-classify", "config.json", "\"model_type\"",
     "\"classifier_pooling\": \"mean\", \"model_type\"", "POSITIVE", 0.6672292351722717},
    {"modernbert-classify", "config.json", "\"classifier_bias\": true",
     "\"classifier_bias\": false", "none", 0.4418446123600006},
    {"modernbert-classify", "config.json", "\"local_attention\": 6",
     "\"local_attention\": 6, \"sliding_window\": 1", "some", 0.6742854118347168},
};

static void settings_count_as_in_the_reference(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof changed / sizeof changed[0]; i++) {
    char place[100];
    snprintf(place, sizeof place, FAMILIES "%s", changed[i].name);
    char *copy = scratch_copy(place);
    scratch_replace(copy, changed[i].file, changed[i].from, changed[i].to);
    load(copy, "changed");
    char *sql = sqlite3_mprintf("SELECT label, abs(score - %.17g) < 1e-5 FROM bert_classify('Café "
                                "Paris 你好', '{\"model\":\"changed\",\"top_k\":1}')",
                                changed[i].score);
    char *wanted = sqlite3_mprintf("%s|1", changed[i].label);
    assert_answer(db, sql, wanted);
    sqlite3_free(wanted);
    sqlite3_free(sql);
    forget(copy, "changed");
  }
}

/* The numbers are those of sentence-transformers 6.2.0, which gives the tokenizer a list
** of pairs: there an empty second text is one; in the pipeline it is none. */
static void an_empty_passage_is_one(void **state) {
  (void)state;
  assert_answer(db,
                "SELECT abs(bert_rerank('hello', '', '{\"model\":\"cross\"}') - 0.38820443) < 1e-5,"
                " abs(bert_rerank('', '', '{\"model\":\"cross\"}') - 0.2641458) < 1e-5,"
                " abs(bert_rerank('', 'hello', '{\"model\":\"cross\"}') - 0.39247832) < 1e-5",
                "1|1|1");
  assert_answer(db,
                "SELECT a.score = b.score FROM bert_classify('hello', '{\"model\":\"cross\"}') a,"
                " bert_classify('hello', '{\"model\":\"cross\",\"text_b\":\"\"}') b",
                "1");
}

/* A tokenizer whose names lack token_type_ids gives none to the model. */
static void pairs_may_have_no_token_types(void **state) {
  (void)state;
  char *copy = scratch_copy(FAMILIES "bert-cross");
  scratch_replace(copy, "tokenizer_config.json", "\"backend\"",
                  "\"model_input_names\": [\"input_ids\", \"attention_mask\"], \"backend\"");
  load(copy, "changed");
  assert_answer(db,
                "SELECT abs(bert_rerank('what is it?', 'time flies', '{\"model\":\"changed\"}') - "
                "0.3709698) < 1e-5, abs(bert_rerank('what is it?', 'time flies', "
                "'{\"model\":\"cross\"}') - 0.3165748) < 1e-5",
                "1|1");
  forget(copy, "changed");
}

static void rows_are_classified(void **state) {
  (void)state;
  assert_runs(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT, label TEXT);"
                  "INSERT INTO t(body) VALUES ('time flies'), (NULL), ('like an arrow'), ('');"
                  "UPDATE t SET label = bert_classify(body)");
  assert_answer(db,
                "SELECT group_concat(label IS c) FROM (SELECT t.label, (SELECT label FROM "
                "bert_classify(t.body) LIMIT 1) AS c FROM t)",
                "1,1,1,1");
  assert_answer(db,
                "SELECT group_concat(n) FROM (SELECT count(c.label) n FROM t LEFT JOIN "
                "bert_classify(t.body) c GROUP BY t.id)",
                "3,0,3,3");
  assert_answer(
      db,
      "SELECT count(*) FROM (SELECT id, bert_rerank('time', body, '{\"model\":\"cross\"}')"
      " AS score FROM t WHERE body IS NOT NULL ORDER BY score DESC LIMIT 2)",
      "2");
  assert_runs(db, "PRAGMA trusted_schema = OFF;"
                  "CREATE TABLE g(body TEXT, label TEXT AS (bert_classify(body)) STORED);"
                  "CREATE INDEX i ON t(bert_classify(body));"
                  "CREATE VIEW v AS SELECT * FROM t, bert_classify(t.body);"
                  "INSERT INTO g VALUES ('time flies')");
  assert_answer(db, "SELECT label = bert_classify('time flies') FROM g", "1");
  assert_answer(db, "SELECT count(*) FROM v", "9");
  assert_runs(db, "DROP VIEW v; DROP TABLE t; DROP TABLE g");
}

/* ---- Entities -------------------------------------------------------------------------- */

static void entities_are_chosen_by_name(void **state) {
  (void)state;
  assert_answer(db,
                "SELECT group_concat(DISTINCT entity) FROM bert_entities('time flies', "
                "'{\"model\":\"ner\",\"labels\":[\"PER\"]}')",
                "PER");
  assert_answer(db,
                "SELECT count(*) FROM bert_entities('time flies', "
                "'{\"model\":\"ner\",\"labels\":[\"LOC\"]}')",
                "0");
  assert_error(db, "SELECT * FROM bert_entities('a', '{\"model\":\"ner\",\"labels\":[\"O\"]}')",
               "bert_entities: the model has no label \"O\"; its labels are PER, LOC");
  assert_error(db, "SELECT * FROM bert_entities('a', '{\"model\":\"ner\",\"labels\":[\"B-PER\"]}')",
               "no label \"B-PER\"");
}

/* Only B- and I- are taken off to compare tags; the name begins behind the hyphen. */
static void other_schemes_group_as_in_the_pipeline(void **state) {
  (void)state;
  char *copy = scratch_copy(FAMILIES "bert-ner-cased");
  scratch_replace(copy, "config.json", "\"B-PER\"", "\"E-PER\"");
  scratch_replace(copy, "config.json", "\"I-PER\"", "\"S-PER-X\"");
  load(copy, "bilou");
  /* The labels were I …, B, I …: two entities of the tag PER. */
  assert_answer(db,
                "SELECT group_concat(entity) FROM bert_entities('time flies like an arrow', "
                "'{\"model\":\"bilou\"}')",
                "PER-X,PER,PER-X");
  forget(copy, "bilou");
}

/* A model that looks neither around a token nor at its position labels each word
** alike, wherever it stands and in whichever window. */
static char *blind_model(void) {
  static const char *const tensors[] = {"bert.encoder.layer.0.attention.output.dense.weight",
                                        "bert.encoder.layer.1.attention.output.dense.weight",
                                        "bert.embeddings.position_embeddings.weight"};
  char *copy = scratch_copy(FAMILIES "bert-ner-cased");
  for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++)
    checkpoint_flatten(copy, tensors[i], 0);
  return copy;
}

static void windows_are_seamless(void **state) {
  (void)state;
  char *copy = blind_model();
  load(copy, "blind");
  assert_runs(db, "CREATE TEMP TABLE words(w); INSERT INTO words VALUES ('time'), ('Apple'), "
                  "('flies'), ('Ångström'), ('an'), ('arrow'), ('phone'), ('hello'), ('мир'); "
                  "CREATE TEMP TABLE long AS SELECT group_concat(w, ' ') AS x FROM "
                  "(SELECT w FROM words, json_each('[1,2,3,4,5,6,7,8,9]'))");
  assert_answer(db, "SELECT bert_token_count(x, 'blind') > 100 FROM long", "1");
  /* Windows of any size give what those of the model give. */
  for (int limit = 3; limit <= 64; limit += limit < 12 ? 1 : 13) {
    char *sql = sqlite3_mprintf(
        "WITH a AS (SELECT e.* FROM long, bert_entities(x, "
        "'{\"model\":\"blind\",\"max_tokens\":%d}')"
        " e), b AS (SELECT e.* FROM long, bert_entities(x, '{\"model\":\"blind\"}') e) "
        "SELECT count(*) > 5, count(*) - (SELECT count(*) FROM a), count(*) - (SELECT count(*) "
        "FROM b) FROM a JOIN b USING (entity, text, start, stop) WHERE abs(a.score - b.score) < "
        "1e-5",
        limit);
    assert_answer(db, sql, "1|0|0");
    sqlite3_free(sql);
  }
  assert_answer(db,
                "SELECT max(stop) > length(CAST(x AS BLOB)) - 20, sum(truncated), "
                "sum(CAST(substr(CAST(x AS BLOB), start + 1, stop - start) AS TEXT) = text) = "
                "count(*), sum(start < before) FROM (SELECT x, e.*, e.truncated, lag(e.stop, 1, 0) "
                "OVER (ORDER BY e.start) AS before FROM long, bert_entities(x, "
                "'{\"model\":\"blind\"}') e)",
                "1|0|1|0");
  assert_runs(db, "DROP TABLE long; DROP TABLE words");
  forget(copy, "blind");
}

/* With a model that knows these names: wherever the edges of windows fall. */
static void names_at_edges_are_whole(void **state) {
  (void)state;
  assert_runs(db, "SELECT bert_load('tests/golden/toys/names', 'names')");
  for (int limit = 9; limit <= 16; limit++) {
    char *sql = sqlite3_mprintf(
        "WITH texts(t) AS (SELECT replace(hex(zeroblob(value)), '00', 'was ') || '. Yesterday "
        "Omar flew from New York to Oslo .' || replace(hex(zeroblob(30)), '00', ' was') FROM "
        "json_each('[0,1,2,3,4,5,6,7,8,9,10,11,12]')) SELECT count(*), sum((SELECT "
        "group_concat(entity || ' ' || text) FROM bert_entities(t, "
        "'{\"model\":\"names\",\"max_tokens\":%d}')) = 'PER Omar,LOC New York,LOC Oslo') FROM "
        "texts",
        limit);
    assert_answer(db, sql, "13|13");
    sqlite3_free(sql);
  }
  assert_runs(db, "SELECT bert_unload('names')");
}

/* With 10 tokens a window has 8 letters, two of them shared: the labels are those that
** the letters [start, start + 8) get as a text of their own, and the second of two
** shared letters is labelled by the later window. */
static void each_token_has_the_label_of_its_window(void **state) {
  (void)state;
  static const char *const labels[][2] = {{"\"O\"", "\"B-0\""},
                                          {"\"B-PER\"", "\"B-1\""},
                                          {"\"I-PER\"", "\"B-2\""},
                                          {"\"B-LOC\"", "\"B-3\""},
                                          {"\"I-LOC\"", "\"B-4\""}};
  char *copy = scratch_copy(FAMILIES "bert-ner-cased");
  for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++)
    scratch_replace(copy, "config.json", labels[i][0], labels[i][1]);
  load(copy, "each"); /* each token is an entity */
  for (int letters = 30; letters <= 34; letters++) {
    int last = letters - 8;
    char *sql = sqlite3_mprintf(
        "WITH RECURSIVE t(i, x) AS (SELECT 1, 'a' UNION ALL SELECT i + 1, x || ' ' || char(97 + i "
        "%% 26) FROM t WHERE i < %d), text(x) AS (SELECT x FROM t WHERE i = %d), "
        "begins(b, first) AS (SELECT 0, 0 UNION ALL SELECT min(b + 6, %d), "
        "min(b + 6, %d) + (b + 8 - min(b + 6, %d)) / 2 FROM begins WHERE b < %d), "
        "windows AS (SELECT b, first, lead(first, 1, 99) OVER (ORDER BY b) AS stop FROM begins), "
        "expected AS (SELECT b + e.start / 2 AS i, e.entity, e.score FROM text, windows, "
        "bert_entities(substr(x, 2 * b + 1, 15), '{\"model\":\"each\"}') e "
        "WHERE b + e.start / 2 >= first AND b + e.start / 2 < windows.stop) "
        "SELECT count(*) = %d, sum(f.entity = g.entity AND abs(f.score - g.score) < 1e-6) = %d "
        "FROM text, bert_entities(x, '{\"model\":\"each\",\"max_tokens\":10}') f JOIN expected g "
        "ON f.start = 2 * g.i",
        letters, letters, last, last, last, last, letters, letters);
    assert_answer(db, sql, "1|1");
    sqlite3_free(sql);
  }
  forget(copy, "each");
}

static void windows_need_room(void **state) {
  (void)state;
  assert_error(db, "SELECT * FROM bert_entities('a', '{\"model\":\"ner\",\"max_tokens\":2}')",
               "max_tokens is 2, which leaves no room for a token of the text: the special tokens "
               "are 2");
  assert_error(db, "SELECT * FROM bert_entities('a', '{\"model\":\"ner\",\"max_tokens\":99}')",
               "the model has 66 positions");
}

/* ---- Masks -------------------------------------------------------------------------------- */

#define FILL(text, options) "bert_fill('" text "', '{\"model\":\"fill\"" options "}')"

static void every_mask_is_filled(void **state) {
  (void)state;
  assert_answer(
      db,
      "SELECT group_concat(mask || ':' || n, ' ') FROM (SELECT mask, count(*) n FROM " FILL(
          "[MASK] flies like [MASK].", "") " GROUP BY mask)",
      "0:5 1:5");
  /* The other mask stays, and so does the rest of the text as it is written. */
  assert_answer(db,
                "SELECT sum(text = iif(mask = 0, token || ' FLIES  like [MASK]!', '[MASK] FLIES  "
                "like' || iif(token LIKE '##%', substr(token, 3), ' ' || token) || '!')), count(*) "
                "FROM " FILL("[MASK] FLIES  like [MASK]!", ",\"top_k\":40"),
                "80|80");
  assert_answer(db,
                "SELECT group_concat(mask || ' ' || substr(text, 1, 1), '; ') FROM " FILL(
                    "a [MASK]", ",\"text_b\":\"b [MASK]\",\"top_k\":1"),
                "0 a; 1 b");
}

static void top_k_goes_to_the_whole_vocabulary(void **state) {
  (void)state;
  assert_answer(db,
                "SELECT count(*), count(DISTINCT id), abs(sum(score) - 1) < 1e-4, sum(score > "
                "before) FROM (SELECT *, lag(score, 1, 1) OVER () AS before FROM " FILL(
                    "time [MASK]", ",\"top_k\":100000") ")",
                "1200|1200|1|0");
  for (int k = 1; k <= 40; k++) {
    char *sql = sqlite3_mprintf(
        "SELECT (SELECT group_concat(id) FROM bert_fill('time [MASK]', '{\"model\":\"fill\","
        "\"top_k\":%d}')) = (SELECT group_concat(id) FROM (SELECT id FROM bert_fill('time [MASK]', "
        "'{\"model\":\"fill\",\"top_k\":2000}') LIMIT %d))",
        k, k);
    assert_answer(db, sql, "1");
    sqlite3_free(sql);
  }
  assert_error(db, "SELECT * FROM " FILL("[MASK]", ",\"top_k\":0"),
               "option \"top_k\" must be an integer of at least 1, not 0");
}

static void a_mask_must_be_there(void **state) {
  (void)state;
  assert_error(db, "SELECT * FROM " FILL("time flies", ""),
               "bert_fill: the text has no mask token, which is [MASK] in this model");
  assert_error(db, "SELECT * FROM " FILL("", ""), "has no mask token");
  assert_error(db, "SELECT * FROM " FILL("time <mask>", ""), "which is [MASK] in this model");
  assert_error(db, "SELECT * FROM " FILL("a b c d [MASK]", ",\"max_tokens\":4"),
               "there is no mask token, which is [MASK] in this model, among the first 4 tokens, "
               "which are all that the model reads of the text");
  assert_answer(
      db, "SELECT count(*), min(truncated) FROM " FILL("[MASK] b c d [MASK]", ",\"max_tokens\":4"),
      "5|1");
}

/* ---- Interrupts ------------------------------------------------------------------------------ */

static void interrupt_now(sqlite3_context *context, int argc, sqlite3_value **argv) {
  sqlite3_interrupt(sqlite3_context_db_handle(context));
  sqlite3_result_value(context, argv[0]);
}

/* The interrupt comes before the model runs, within the same step. */
static void interrupts_stop_the_model(void **state) {
  (void)state;
  static const char *const statements[] = {
      "SELECT bert_classify(interrupt_now('time flies'))",
      "SELECT * FROM bert_classify(interrupt_now('time flies'))",
      "SELECT bert_rerank('time', interrupt_now('flies'), '{\"model\":\"cross\"}')",
      "SELECT * FROM bert_entities(interrupt_now('time flies'), '{\"model\":\"ner\"}')",
      "SELECT * FROM bert_fill(interrupt_now('time [MASK]'), '{\"model\":\"fill\"}')"};
  sqlite3_create_function(db, "interrupt_now", 1, SQLITE_UTF8, NULL, interrupt_now, NULL, NULL);
  for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
    int rc;
    sqlite3_free(sqldb_answer(db, statements[i], &rc));
    assert_int_equal(rc, SQLITE_INTERRUPT);
  }
  assert_answer(db, "SELECT count(*) FROM bert_classify('time flies')", "3");
}

#define EACH(test) cmocka_unit_test(test)

int main(void) {
  const struct CMUnitTest tests[] = {EACH(heads_are_listed_where_one_is_missing),
                                     EACH(null_gives_null),
                                     EACH(any_value_is_a_text),
                                     EACH(forms_are_checked),
                                     EACH(labels_leave_out_rows),
                                     EACH(top_k_counts_rows),
                                     EACH(a_second_text_makes_a_pair),
                                     EACH(long_texts_are_cut),
                                     EACH(the_checkpoint_says_what_a_score_is),
                                     EACH(the_checkpoint_says_how_to_rerank),
                                     EACH(settings_count_as_in_the_reference),
                                     EACH(an_empty_passage_is_one),
                                     EACH(pairs_may_have_no_token_types),
                                     EACH(rows_are_classified),
                                     EACH(entities_are_chosen_by_name),
                                     EACH(other_schemes_group_as_in_the_pipeline),
                                     EACH(windows_are_seamless),
                                     EACH(names_at_edges_are_whole),
                                     EACH(each_token_has_the_label_of_its_window),
                                     EACH(windows_need_room),
                                     EACH(every_mask_is_filled),
                                     EACH(top_k_goes_to_the_whole_vocabulary),
                                     EACH(a_mask_must_be_there),
                                     EACH(interrupts_stop_the_model)};
  return cmocka_run_group_tests(tests, open_models, close_models);
}
