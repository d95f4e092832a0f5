/*
** test_tokenizer_families.c: the tokens of every family of tests/golden, and of
** byte-level BPE, Unigram and WordPiece over all of Unicode.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "golden.h"
#include "token_checks.h"

/* A family, what kind of tokenizer it has, how many token types the model has, and
** whether there is a tokens.jsonl. */
static const struct family {
  const char *name, *kind;
  int types, lines;
} families[] = {
    {"bert-bf16", "wordpiece", 2, 0},      {"bert-classify", "wordpiece", 2, 0},
    {"bert-cls-dense", "wordpiece", 2, 0}, {"bert-cross", "wordpiece", 2, 0},
    {"bert-fp16", "wordpiece", 2, 0},      {"bert-legacy-names", "wordpiece", 2, 0},
    {"bert-max", "wordpiece", 1, 0},       {"bert-mean", "wordpiece", 2, 0},
    {"bert-mlm-cased", "wordpiece", 2, 1}, {"bert-ner-cased", "wordpiece", 2, 0},
    {"bert-sharded", "wordpiece", 2, 0},   {"bert-unigram", "unigram", 2, 0},
    {"distilbert", "wordpiece", 1, 0},     {"distilbert-classify", "wordpiece", 1, 0},
    {"distilbert-mlm", "wordpiece", 1, 0}, {"distilbert-sinusoidal", "wordpiece", 1, 0},
    {"electra", "wordpiece", 2, 0},        {"gte", "wordpiece", 1, 0},
    {"modernbert", "bpe", 1, 1},           {"modernbert-mlm", "bpe", 1, 0},
    {"mpnet", "wordpiece", 1, 1},          {"nomic-bert", "wordpiece", 2, 0},
    {"roberta-classify", "bpe", 1, 0},     {"roberta-mlm", "bpe", 1, 1},
    {"xlm-roberta", "unigram", 1, 1},
};

static void check_family(const struct family *f) {
  char directory[128];
  int64_t limit = 0;
  snprintf(directory, sizeof directory, "tests/golden/families/%s", f->name);
  json_document *document = NULL;
  assert_int_equal(file_read_json(directory, "expected.json", 1, JSON_OBJECT, &document, NULL),
                   BERT_OK);
  assert_non_null(document);
  const json_value *root = json_root(document);
  tokenizer *t = open_tokenizer(directory, 0);
  const json_value *cases = json_get(root, "cases");
  assert_string_equal(tokenizer_kind(t), f->kind);
  assert_int_equal(json_get_int(root, "max_length", 1, 1000, &limit, NULL), BERT_OK);
  assert_true(cases != NULL && cases->size == 19);
  for (const json_value *c = cases->first; c != NULL; c = c->next)
    check_case(t, c, (size_t)limit, f->types);
  if (f->lines) assert_int_equal(check_lines(t, directory), 1016);
  tokenizer_close(t);
  json_free(document);
}

static void test_families(void **state) {
  for (size_t i = 0; i < sizeof families / sizeof *families; i++) check_family(&families[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_families)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
