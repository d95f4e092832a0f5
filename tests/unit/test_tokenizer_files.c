/*
** test_tokenizer_files.c: tokenizer.json and vocab.txt that break a rule, ask
** for what is not there, or are damaged at random.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "change_checks.h"
#include "encoder/tokenizers/tokenizers.h"
#include "golden.h"
#include "scratch.h"

/* A whole tokenizer.json, as small as it gets. */
static const char whole[] =
    "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\": [\n"
    "{\"id\": 1, \"content\": \"[CLS]\", \"single_word\": false, \"lstrip\": false,\n"
    " \"rstrip\": false, \"normalized\": false, \"special\": true}],\n"
    "\"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true,\n"
    " \"handle_chinese_chars\": true, \"strip_accents\": null, \"lowercase\": true},\n"
    "\"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"},\n"
    "\"post_processor\": {\"type\": \"TemplateProcessing\",\n"
    " \"single\": [{\"SpecialToken\": {\"id\": \"[CLS]\", \"type_id\": 0}},\n"
    "  {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}],\n"
    " \"pair\": [{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}},\n"
    "  {\"Sequence\": {\"id\": \"B\", \"type_id\": 1}}],\n"
    " \"special_tokens\": {\"[CLS]\": {\"id\": \"[CLS]\", \"ids\": [1], \"tokens\": "
    "[\"[CLS]\"]}}},\n"
    "\"decoder\": null, \"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\",\n"
    " \"continuing_subword_prefix\": \"##\", \"max_input_chars_per_word\": 100,\n"
    " \"vocab\": {\"[UNK]\": 0, \"[CLS]\": 1, \"a\": 2, \"##b\": 3, \"e\": 4}}}\n";

/* Opens the directory and tokenizes a little: the status of opening. */
static bert_status try_tokenizer(const char *directory, bert_error *error) {
  tokenizer *t = NULL;
  bert_text text = {"ab [CLS] \xC3\x89 zz", 14};
  bert_status status = tokenizer_open(directory, 0, &t, error);
  if (status != BERT_OK) {
    assert_null(t);
    assert_int_equal(error->status, status);
    assert_true(error->text[0] != '\0');
    return status;
  }
  for (int only_used = 0; only_used < 2; only_used++) {
    bert_tokens *tokens = NULL;
    size_t limit = (size_t)tokenizer_special_count(t, 1) + 3;
    assert_ok(tokenizer_encode(t, text, &text, limit, only_used, &tokens, error), error);
    for (size_t i = 0; i < tokens->count; i++) {
      assert_in_range(tokens->ids[i], 0, tokenizer_vocab_size(t) - 1);
      assert_in_range(tokens->types[i], 0, tokenizer_segments(t) - 1);
      assert_true(tokens->starts[i] <= tokens->stops[i] && tokens->stops[i] <= text.size);
    }
    tokens_free(tokens);
  }
  tokenizer_close(t);
  return BERT_OK;
}

#define FLAGS                                                                                      \
  "\"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": true, "           \
  "\"special\": false}"
#define ADD(id, content)                                                                           \
  "\"added_tokens\": [{\"id\": " #id ", \"content\": \"" content "\", " FLAGS ", "

static const change changes[] = {
    {"\"a\": 2", "\"a\": 2", BERT_OK, ""},
    /* ids */
    {"\"a\": 2", "\"a\": -1", BERT_INVALID, "token \"a\" has id -1"},
    {"\"a\": 2", "\"a\": 10000000", BERT_INVALID, "token \"a\" has id 10000000"},
    {"\"a\": 2", "\"a\": 1099511627776", BERT_INVALID, "has id 1099511627776"},
    {"\"a\": 2", "\"a\": 9999999", BERT_OK, ""},
    {"\"a\": 2", "\"a\": 3", BERT_INVALID, "\"a\" and \"##b\" both have id 3"},
    {"\"a\": 2", "\"a\": 2.5", BERT_INVALID, "the id of token \"a\" is no integer"},
    {"\"a\": 2", "\"a\": \"2\"", BERT_INVALID, "the id of token \"a\" is no integer"},
    {"\"a\": 2", "\"e\": 2", BERT_INVALID, "twice"},
    {"\"a\": 2", "\"\": 2", BERT_OK, ""},
    /* model */
    {"\"[UNK]\": 0, \"[CLS]\": 1, \"a\": 2, \"##b\": 3, \"e\": 4", "", BERT_INVALID,
     "the vocabulary is empty"},
    {"{\"[UNK]\": 0, \"[CLS]\": 1, \"a\": 2, \"##b\": 3, \"e\": 4}", "[]", BERT_INVALID,
     "vocab is an array, not an object"},
    {"\"[UNK]\": 0, ", "", BERT_INVALID, "the unknown token \"[UNK]\" is not in the vocabulary"},
    {"\"unk_token\": \"[UNK]\"", "\"unk_token\": null", BERT_INVALID, "unk_token is null"},
    {"\"unk_token\"", "\"unk\"", BERT_INVALID, "unk_token is missing"},
    {"_word\": 100", "_word\": 0", BERT_OK, ""},
    {"_word\": 100", "_word\": 65535", BERT_OK, ""},
    {"_word\": 100", "_word\": -1", BERT_INVALID, "max_input_chars_per_word is -1"},
    {"_word\": 100", "_word\": 1.5", BERT_INVALID, "max_input_chars_per_word is 1.5"},
    {"_word\": 100", "_word\": 1000000000", BERT_UNSUPPORTED, "at most 65535"},
    {"\"##\"", "\"\"", BERT_OK, ""},
    {"\"##\"", "\"@@@\"", BERT_OK, ""},
    {"\"type\": \"WordPiece\", ", "", BERT_OK, ""}, /* files of the first years */
    {"\"type\": \"WordPiece\"", "\"type\": \"WordLevel\"", BERT_UNSUPPORTED,
     "\"WordLevel\" is not supported; there are WordPiece, BPE and Unigram"},
    {"\"type\": \"WordPiece\"", "\"type\": \"BPE\"", BERT_INVALID, "merges is missing"},
    {"\"model\"", "\"no_model\"", BERT_INVALID, "model: it is missing"},
    /* normalizer, pre-tokenizer */
    {"\"BertNormalizer\"", "\"NFC\"", BERT_OK, ""},
    {"\"BertNormalizer\"", "\"NFQ\"", BERT_UNSUPPORTED, "normalizer: the type \"NFQ\""},
    {"\"BertNormalizer\"", "5", BERT_INVALID, "type"},
    {"\"type\": \"BertNormalizer\", ", "", BERT_INVALID, "normalizer: it has no type"},
    {"\"clean_text\": true", "\"clean\": true", BERT_INVALID, "clean_text is missing"},
    {"\"lowercase\": true", "\"lowercase\": 1", BERT_INVALID, "lowercase is a number"},
    {"\"strip_accents\": null, ", "", BERT_OK, ""},
    {"\"strip_accents\": null", "\"strip_accents\": \"no\"", BERT_INVALID, "strip_accents"},
    {"\"normalizer\"", "\"x\"", BERT_OK, ""},
    {"{\"type\": \"BertPreTokenizer\"}", "null", BERT_OK, ""},
    {"{\"type\": \"BertPreTokenizer\"}", "[]", BERT_INVALID, "pre_tokenizer: it is an array"},
    {"\"BertPreTokenizer\"", "\"ByteLevel\"", BERT_INVALID,
     "pre_tokenizer: ByteLevel: add_prefix_space is missing"},
    {"\"BertPreTokenizer\"", "\"UnicodeScripts\"", BERT_UNSUPPORTED,
     "\"UnicodeScripts\" is not supported; there are BertPreTokenizer, "},
    /* post-processor */
    {"{\"id\": \"[CLS]\", \"type_id\"", "{\"id\": \"[X]\", \"type_id\"", BERT_INVALID,
     "single: a template uses \"[X]\", which special_tokens lacks"},
    {"\"type_id\": 0", "\"type_id\": 128", BERT_INVALID, "type_id"},
    {"\"type_id\": 0", "\"type_id\": -1", BERT_INVALID, "type_id"},
    {"\"type_id\": 0", "\"type_id\": 127", BERT_OK, ""},
    {"\"type_id\": 0", "\"x\": 0", BERT_INVALID, "lacks id or type_id"},
    {"\"id\": \"A\"", "\"id\": \"C\"", BERT_INVALID, "sequence \"C\""},
    {"\"id\": \"A\"", "\"id\": \"AB\"", BERT_INVALID, "sequence \"AB\""},
    {"\"id\": \"A\"", "\"id\": \"B\"", BERT_INVALID, "\"single\" must have sequence A once"},
    {"\"id\": \"B\"", "\"id\": \"A\"", BERT_INVALID, "\"pair\" must have sequences A and B once"},
    {"{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}", "7", BERT_INVALID,
     "neither a SpecialToken"},
    {"\"ids\": [1]", "\"ids\": [1, 2]", BERT_INVALID, "arrays of equal length"},
    {"\"ids\": [1]", "\"ids\": [-1]", BERT_INVALID, "token id -1"},
    {"\"ids\": [1]", "\"ids\": [2147483648]", BERT_INVALID, "token id 2147483648"},
    {"\"ids\": [1]", "\"ids\": [1.5]", BERT_INVALID, "no integer"},
    {"\"ids\": [1]", "\"ids\": [77]", BERT_OK, ""},
    {"\"single\"", "\"one\"", BERT_INVALID, "needs \"single\", an array"},
    {"\"special_tokens\"", "\"x\"", BERT_INVALID, "which special_tokens lacks"},
    {"\"TemplateProcessing\"", "\"RobertaProcessing\"", BERT_INVALID, "trim_offsets is missing"},
    {"\"TemplateProcessing\"", "\"Other\"", BERT_UNSUPPORTED, "\"Other\" is not supported"},
    {"\"TemplateProcessing\"", "\"BertProcessing\", \"sep\": [\"[CLS]\", 1], \"cls\": [\"a\", 2]",
     BERT_OK, ""},
    {"\"TemplateProcessing\"", "\"BertProcessing\", \"sep\": [\"[CLS]\"], \"cls\": [\"a\", 2]",
     BERT_INVALID, "sep -1"},
    {"\"post_processor\"", "\"x\"", BERT_OK, ""},
    /* added tokens */
    {"\"id\": 1, \"content\"", "\"id\": 2, \"content\"", BERT_INVALID,
     "added token \"[CLS]\" has id 2; the vocabulary gives it 1"},
    {"\"id\": 1, \"content\"", "\"content\"", BERT_INVALID, "needs an id"},
    {"\"id\": 1, \"content\"", "\"id\": -1, \"content\"", BERT_INVALID, "needs an id"},
    {"\"content\": \"[CLS]\"", "\"content\": \"\"", BERT_OK, ""},
    {"\"content\": \"[CLS]\"", "\"content\": 7", BERT_INVALID, "content is a number"},
    {"\"lstrip\": false", "\"left\": false", BERT_INVALID, "lstrip is missing"},
    {"\"lstrip\": false", "\"lstrip\": 0", BERT_INVALID, "lstrip is a number"},
    {"\"added_tokens\": [", ADD(1, "[CLS]"), BERT_OK, ""}, /* twice: the last counts */
    {"\"added_tokens\": [", ADD(5, "zz"), BERT_OK, ""},
    {"\"added_tokens\": [", ADD(6, "zz"), BERT_INVALID, "has id 6; the next free one is 5"},
    {"\"added_tokens\": [", ADD(5, "\xCC\x81"), BERT_OK, ""}, /* empty when normalized */
    {"\"added_tokens\": [", "\"added_tokens\": [3, ", BERT_INVALID, "an added token is a number"},
    {"\"added_tokens\"", "\"x\"", BERT_OK, ""},
    /* the file */
    {"\"1.0\"", "\"2.0\"", BERT_UNSUPPORTED, "version"},
    {"\"1.0\"", "1", BERT_UNSUPPORTED, "version"},
    {"\"decoder\": null", "\"decoder\": [[[[[]]]]", BERT_INVALID, "byte"},
};

static void test_changes(void **state) {
  (void)state;
  check_changes(whole, try_tokenizer, changes, sizeof changes / sizeof *changes);
}

/* Two added tokens that are one when normalized. */
static void test_twins(void **state) {
  char *directory = scratch_new();
  bert_error error = {0};
  scratch_write(directory, "tokenizer.json", whole, sizeof whole - 1);
  scratch_replace(directory, "tokenizer.json", "\"added_tokens\": [",
                  ADD(2, "a") "{\"id\": 5, \"content\": \"A\", " FLAGS ", ");
  assert_int_equal(try_tokenizer(directory, &error), BERT_INVALID);
  assert_non_null(strstr(error.text, "\"a\" and \"A\" are the same when normalized"));
  scratch_free(directory);
}

/* Tokens of absurd length, more parts than a template may have, nesting. */
static void test_sizes(void **state) {
  char *directory = scratch_new(), *big = malloc(2000000);
  bert_error error = {0};
  int size = snprintf(big, 2000000, "\"%0*d\": 2", 1000000, 0);
  assert_true(size > 1000000);
  scratch_write(directory, "tokenizer.json", whole, sizeof whole - 1);
  scratch_replace(directory, "tokenizer.json", "\"a\": 2", big);
  assert_ok(try_tokenizer(directory, &error), &error);
  strcpy(big, "\"single\": [");
  for (int i = 0; i < 1001; i++)
    strcat(big, "{\"SpecialToken\": {\"id\": \"[CLS]\", \"type_id\": 0}}, ");
  scratch_replace(directory, "tokenizer.json", "\"single\": [", big);
  assert_int_equal(try_tokenizer(directory, &error), BERT_INVALID);
  assert_non_null(strstr(error.text, "more than 1000 parts"));
  memset(big, '[', 1000000);
  scratch_write(directory, "tokenizer.json", big, 1000000);
  assert_int_equal(try_tokenizer(directory, &error), BERT_INVALID);
  free(big);
  scratch_free(directory);
}

/* A vocabulary with holes: strings by id, and ids by string. */
static void test_sparse_ids(void **state) {
  char *directory = scratch_new();
  tokenizer *t = NULL;
  bert_error error = {0};
  scratch_write(directory, "tokenizer.json", whole, sizeof whole - 1);
  scratch_replace(directory, "tokenizer.json", "\"a\": 2", "\"a\": 9000000");
  assert_ok(tokenizer_open(directory, 0, &t, &error), &error);
  assert_int_equal(tokenizer_vocab_size(t), 9000001);
  assert_string_equal(tokenizer_token(t, 9000000).data, "a");
  assert_string_equal(tokenizer_token(t, 4).data, "e");
  assert_null(tokenizer_token(t, 2).data);
  assert_null(tokenizer_token(t, 8999999).data);
  tokenizer_close(t);
  scratch_free(directory);
}

static void expect_vocab(const char *directory, const char *vocab, size_t size, const char *config,
                         bert_status expected, const char *says) {
  bert_error error = {0};
  scratch_write(directory, "vocab.txt", vocab, size);
  scratch_write(directory, "tokenizer_config.json", config, strlen(config));
  bert_status status = try_tokenizer(directory, &error);
  if (status != expected || strstr(error.text, says) == NULL)
    fail_msg("%s: status %d, \"%s\", expected \"%s\"", config, (int)status, error.text, says);
}

static void test_vocab_txt(void **state) {
  static const char good[] = "[UNK]\n[CLS]\n[SEP]\na";
  char *directory = scratch_new();
  bert_error error = {0};
  assert_int_equal(try_tokenizer(directory, &error), BERT_IO); /* neither file */
  assert_non_null(strstr(error.text, "vocab.txt"));
  expect_vocab(directory, good, sizeof good - 1, "{}", BERT_OK, "");
  expect_vocab(directory, "", 0, "{}", BERT_INVALID, "the vocabulary is empty");
  expect_vocab(directory, "a\n\xFF\n", 4, "{}", BERT_INVALID, "line 2 is not UTF-8");
  expect_vocab(directory, "a\nb", 3, "{}", BERT_INVALID, "the unknown token is not in vocab.txt");
  expect_vocab(directory, good, sizeof good - 1, "{\"unk_token\": \"\"}", BERT_INVALID,
               "unk_token: it is empty");
  expect_vocab(directory, good, sizeof good - 1, "{\"cls_token\": 5}", BERT_INVALID,
               "cls_token: it is a number, not a string");
  expect_vocab(directory, good, sizeof good - 1, "{\"cls_token\": {}}", BERT_INVALID,
               "content is missing");
  expect_vocab(directory, good, sizeof good - 1, "{\"do_lower_case\": 1}", BERT_INVALID,
               "do_lower_case");
  expect_vocab(directory, good, sizeof good - 1, "[]", BERT_INVALID, "tokenizer_config.json");
  scratch_free(directory);
}

/* Files damaged at random: an error with a text, or a tokenizer that works. */
static void test_mutations(void **state) {
  char *directory = scratch_new();
  uint32_t seed = 7;
  int opened = 0;
  for (int round = 0; round < 1000; round++) {
    char text[2 * sizeof whole];
    size_t size = sizeof whole - 1;
    bert_error error = {0};
    memcpy(text, whole, sizeof whole);
    for (int k = 1 + round % 3; k > 0; k--) {
      seed = seed * 1664525 + 1013904223;
      size_t at = (seed >> 8) % size, from;
      seed = seed * 1664525 + 1013904223;
      from = (seed >> 8) % size;
      if (seed >> 30 == 0) text[at] = (char)(seed >> 12);
      if (seed >> 30 == 1) memmove(text + at, text + at + 1, --size - at);
      if (seed >> 30 == 2) text[at] = whole[from];
      if (seed >> 30 == 3 && at + 8 < size && from + 8 < size) memmove(text + at, text + from, 8);
    }
    scratch_write(directory, "tokenizer.json", text, size);
    opened += try_tokenizer(directory, &error) == BERT_OK;
  }
  assert_in_range(opened, 30, 970);
  scratch_free(directory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_changes),   cmocka_unit_test(test_twins),
      cmocka_unit_test(test_sizes),     cmocka_unit_test(test_sparse_ids),
      cmocka_unit_test(test_vocab_txt), cmocka_unit_test(test_mutations)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
