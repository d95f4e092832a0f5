/*
** test_tokenizer_hostile.c: tokenizer.json files with BPE, Unigram and the general
** pipeline that break a rule, ask for what is not there, or are damaged at random;
** vocab.json with merges.txt.
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

#define POST                                                                                       \
  "\"post_processor\": {\"type\": \"RobertaProcessing\", \"sep\": [\"</s>\", 1],\n"                \
  " \"cls\": [\"<s>\", 0], \"trim_offsets\": true, \"add_prefix_space\": false},\n"
#define MASK                                                                                       \
  "{\"version\": \"1.0\", \"added_tokens\": [{\"id\": 0, \"content\": \"<s>\",\n"                  \
  " \"single_word\": false, \"lstrip\": true, \"rstrip\": false, \"normalized\": true,\n"          \
  " \"special\": true}],\n"

static const char bpe[] =
    MASK "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"},\n"
         " {\"type\": \"Replace\", \"pattern\": {\"Regex\": \" {2,}\"}, \"content\": \" \"}]},\n"
         "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false,\n"
         " \"trim_offsets\": true, \"use_regex\": true},\n" POST
         "\"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": \"</s>\",\n"
         " \"fuse_unk\": false, \"byte_fallback\": false, \"ignore_merges\": false,\n"
         " \"vocab\": {\"<s>\": 0, \"</s>\": 1, \"a\": 2, \"b\": 3, \"ab\": 4, \"abb\": 5},\n"
         " \"merges\": [[\"a\", \"b\"], [\"ab\", \"b\"]]}}\n";

static const char unigram[] = MASK
    "\"normalizer\": {\"type\": \"Strip\", \"strip_left\": true, \"strip_right\": true},\n"
    "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [\n"
    " {\"type\": \"WhitespaceSplit\"}, {\"type\": \"Metaspace\", \"replacement\": "
    "\"\xE2\x96\x81\",\n"
    "  \"prepend_scheme\": \"always\", \"split\": true}]},\n" POST
    "\"model\": {\"type\": \"Unigram\", \"unk_id\": 2, \"byte_fallback\": false, \"vocab\": [\n"
    " [\"<s>\", 0.0], [\"</s>\", 0.0], [\"<unk>\", 0.0], [\"\xE2\x96\x81\", -2.5],\n"
    " [\"a\", -1.5], [\"ab\", -2.0]]}}\n";

/* Opens the directory and tokenizes a little: the status of opening. */
static bert_status try_tokenizer(const char *directory, bert_error *error) {
  static const char text[] = " abba  e\xCC\x81 <s>\n\xF0\x9F\x98\x80 don't a\xFF ab";
  tokenizer *t = NULL;
  bert_text whole = {text, sizeof text - 1};
  bert_status status = tokenizer_open(directory, 0, &t, error);
  if (status != BERT_OK) {
    assert_null(t);
    assert_int_equal(error->status, status);
    assert_true(error->text[0] != '\0');
    return status;
  }
  for (size_t size = 0; size <= whole.size; size++) {
    bert_text part = {text, size};
    bert_tokens *tokens = NULL;
    assert_ok(tokenizer_encode(t, part, &whole, 1000, 0, &tokens, error), error);
    for (size_t i = 0; i < tokens->count; i++) {
      assert_in_range(tokens->ids[i], 0, tokenizer_vocab_size(t) - 1);
      assert_true(tokens->starts[i] <= tokens->stops[i] && tokens->stops[i] <= whole.size);
    }
    tokens_free(tokens);
  }
  tokenizer_close(t);
  return BERT_OK;
}

#define REGEX(text) "\"Regex\": \" {2,}\"", "\"Regex\": \"" text "\""

#define FORTY "abababababababababababababababababababab"
#define REPLACED_TWICE(pattern)                                                                    \
  "\"content\": \"" FORTY "\"}, {\"type\": \"Replace\", \"pattern\": {\"String\": \"" pattern      \
  "\"}, \"content\": \"" FORTY "\"}"

static const change bpe_changes[] = {
    {"\"a\": 2", "\"a\": 2", BERT_OK, ""},
    {"[\"ab\", \"b\"]", "\"ab b\"", BERT_OK, ""}, /* as files were before */
    {"[\"a\", \"b\"]", "\"#version: 0.2\"", BERT_OK, ""},
    {"[\"a\", \"b\"]", "[\"a\", \"b\"], [\"a\", \"b\"]", BERT_OK, ""},
    {"[\"ab\", \"b\"]", "[\"ab\", \"x\"]", BERT_INVALID, "a merge names \"x\", which is not in"},
    {"[\"ab\", \"b\"]", "[\"b\", \"a\"]", BERT_INVALID, "merge of \"b\" and \"a\" gives what"},
    {"[\"ab\", \"b\"]", "[\"\", \"\"]", BERT_INVALID, "a merge names \"\""},
    {"[\"ab\", \"b\"]", "\"ab  b\"", BERT_INVALID, "is not two strings and a space"},
    {"[\"ab\", \"b\"]", "\"abb\"", BERT_INVALID, "is not two strings and a space"},
    {"[\"ab\", \"b\"]", "[\"ab\"]", BERT_INVALID, "neither a pair of strings"},
    {"[\"ab\", \"b\"]", "7", BERT_INVALID, "neither a pair of strings"},
    {"\"merges\": [", "\"merges\": 3, \"x\": [", BERT_INVALID, "merges is a number, not an array"},
    {"\"merges\"", "\"x\"", BERT_INVALID, "merges is missing"},
    {"\"vocab\": {", "\"vocab\": [], \"x\": {", BERT_INVALID, "vocab is an array, not an object"},
    {"\"vocab\": {", "\"vocab\": {}, \"x\": {", BERT_INVALID, "the vocabulary is empty"},
    {"\"a\": 2", "\"b\": 2", BERT_INVALID, "twice"},
    {"\"a\": 2", "\"a\": 3", BERT_INVALID, "both have id 3"},
    {"\"a\": 2", "\"a\": -2", BERT_INVALID, "has id -2"},
    {"\"a\": 2", "\"a\": 99999999", BERT_INVALID, "has id 99999999"},
    {"\"dropout\": null", "\"dropout\": 0.0", BERT_OK, ""},
    {"\"dropout\": null", "\"dropout\": 0.1", BERT_UNSUPPORTED, "dropout is 0.1"},
    {"\"dropout\": null", "\"dropout\": 7", BERT_INVALID, "dropout"},
    {"\"unk_token\": \"</s>\"", "\"unk_token\": null", BERT_OK, ""},
    {"\"unk_token\": \"</s>\"", "\"unk_token\": \"zz\"", BERT_INVALID,
     "the unknown token of the model is not in its vocabulary"},
    {"\"unk_token\": \"</s>\"", "\"unk_token\": 1", BERT_INVALID, "unk_token is a number"},
    {"\"fuse_unk\": false", "\"fuse_unk\": true", BERT_OK, ""},
    {"\"fuse_unk\": false", "\"fuse_unk\": 1", BERT_INVALID, "fuse_unk"},
    {"\"byte_fallback\": false", "\"byte_fallback\": true", BERT_OK, ""},
    {"\"ignore_merges\": false", "\"ignore_merges\": true", BERT_OK, ""},
    {"\"fuse_unk\"", "\"continuing_subword_prefix\": \"\", \"end_of_word_suffix\": \"\", \"x\"",
     BERT_OK, ""},
    {"\"fuse_unk\"", "\"continuing_subword_prefix\": \"abbbb\", \"x\"", BERT_INVALID,
     "gives what is not in the vocabulary"},
    {"\"fuse_unk\"", "\"end_of_word_suffix\": \"b\", \"x\"", BERT_OK, ""},
    {"\"fuse_unk\"", "\"end_of_word_suffix\": 1, \"x\"", BERT_INVALID, "end_of_word_suffix"},
    {"\"type\": \"BPE\", ", "", BERT_OK, ""},
    /* patterns */
    {REGEX("(?:a|bc){1,3}b?|\\\\s+(?!\\\\S)|[^\\\\r\\\\n\\\\p{L}]"), BERT_OK, ""},
    {REGEX("a++b|(?>ab?)c|x{2}|a*?b|.{0,3}z"), BERT_OK, ""},
    {REGEX("a*"), BERT_UNSUPPORTED, "matches empty text"},
    {REGEX(""), BERT_UNSUPPORTED, "matches empty text"},
    {REGEX("^a"), BERT_UNSUPPORTED, "has ^ at byte 0"},
    {REGEX("a$"), BERT_UNSUPPORTED, "has $ at byte 1"},
    {REGEX("(?<=a)b"), BERT_UNSUPPORTED, "a group of a kind"},
    {REGEX("(a)\\\\1"), BERT_UNSUPPORTED, "\\1"},
    {REGEX("\\\\bword"), BERT_UNSUPPORTED, "\\b"},
    {REGEX("\\\\p{Han}+"), BERT_UNSUPPORTED, "\\p{Han}"},
    {REGEX("[[:alpha:]]"), BERT_UNSUPPORTED, "a set within a set"},
    {REGEX("[a&&b]"), BERT_UNSUPPORTED, "a set within a set"},
    {REGEX("[z-a]"), BERT_UNSUPPORTED, "a range that ends before it begins"},
    {REGEX("[a"), BERT_UNSUPPORTED, "[ without ]"},
    {REGEX("(a"), BERT_UNSUPPORTED, "( without )"},
    {REGEX("a)"), BERT_UNSUPPORTED, ") without ("},
    {REGEX("a\\\\"), BERT_UNSUPPORTED, "a backslash at its end"},
    {REGEX("[a\\\\"), BERT_UNSUPPORTED, "a backslash at its end"},
    {REGEX("(a+)+"), BERT_UNSUPPORTED, "a repetition of a repetition"},
    {REGEX("(a?)+"), BERT_UNSUPPORTED, "a repetition of what may be nothing"},
    {REGEX("a**"), BERT_UNSUPPORTED, "a repetition of a repetition"},
    {REGEX("a{1001}"), BERT_UNSUPPORTED, "a repetition out of range"},
    {REGEX("a{3,2}"), BERT_UNSUPPORTED, "a repetition out of range"},
    {REGEX("(?:(?:ab){1000}){1000}"), BERT_UNSUPPORTED, "too many repetitions"},
    {REGEX("((((((((((((((((((((((a))))))))))))))))))))))"), BERT_UNSUPPORTED,
     "too many groups in groups"},
    {REGEX("\\\\x{110000}"), BERT_UNSUPPORTED, "a character that is none"},
    {REGEX("(?i:\xC3\xA9)"), BERT_UNSUPPORTED, "(?i) of more than ASCII"},
    {"{\"Regex\": \" {2,}\"}", "{\"Pattern\": \"x\"}", BERT_INVALID,
     "neither a String nor a Regex"},
    {"\"content\": \" \"}", "\"content\": 5}", BERT_INVALID, "content is a number"},
    /* steps */
    {"{\"type\": \"NFC\"}", "{\"type\": \"Upper\"}", BERT_UNSUPPORTED,
     "normalizer: Sequence: the type \"Upper\" is not supported; there are BertNormalizer, NFC"},
    {"{\"type\": \"NFC\"}", "5", BERT_INVALID, "a part is a number"},
    {"{\"type\": \"NFC\"}", "{\"type\": \"Prepend\"}", BERT_INVALID, "prepend is missing"},
    {"{\"type\": \"NFC\"}", "{\"type\": \"Strip\"}", BERT_INVALID, "strip_left is missing"},
    {"{\"type\": \"NFC\"}", "{\"type\": \"Precompiled\"}", BERT_INVALID,
     "precompiled_charsmap is missing"},
    {"\"normalizers\": [", "\"normalizers\": {}, \"x\": [", BERT_INVALID,
     "normalizers is an object"},
    {"\"use_regex\": true", "\"use_regex\": 1", BERT_INVALID, "use_regex"},
    {"\"ByteLevel\"", "\"FixedLength\"", BERT_UNSUPPORTED, "\"FixedLength\" is not supported"},
    {"\"ByteLevel\"", "\"Split\"", BERT_INVALID, "behavior must be Removed"},
    {"\"ByteLevel\"", "\"Metaspace\", \"replacement\": \"ab\"", BERT_INVALID,
     "must be one character"},
    {"\"ByteLevel\"", "\"Metaspace\", \"replacement\": \"\"", BERT_INVALID,
     "must be one character"},
    {"\"ByteLevel\"", "\"Metaspace\", \"replacement\": \"_\", \"prepend_scheme\": \"often\"",
     BERT_INVALID, "prepend_scheme"},
    {"\"ByteLevel\"", "\"Digits\"", BERT_INVALID, "individual_digits is missing"},
    /* post-processor */
    {"\"cls\": [\"<s>\", 0]", "\"cls\": [\"<s>\", -1]", BERT_INVALID, "cls has id -1"},
    {"\"cls\": [\"<s>\", 0]", "\"cls\": 0", BERT_INVALID, "cls has id -1"},
    /* replacements of replacements */
    {"\"content\": \" \"}", REPLACED_TWICE("a"), BERT_UNSUPPORTED,
     "normalizer: Sequence: Replace: the replacements make texts more than 1000 times as long"},
    {"\"content\": \" \"}", REPLACED_TWICE("abab"), BERT_OK, ""},
    {"\"post_processor\": ",
     "\"post_processor\": {\"type\": \"Sequence\", \"processors\": []}, \"x\": ", BERT_OK, ""},
    {"\"post_processor\": ",
     "\"post_processor\": {\"type\": \"Sequence\", \"processors\": [7]}, \"x\": ", BERT_INVALID,
     "post_processor: it is a number"},
    {"\"post_processor\": ",
     "\"post_processor\": {\"type\": \"Sequence\", \"processors\": [{\"type\": \"BertProcessing\", "
     "\"sep\": [\"a\", 1], \"cls\": [\"a\", 1]}, {\"type\": \"BertProcessing\", \"sep\": [\"a\", "
     "1], "
     "\"cls\": [\"a\", 1]}]}, \"x\": ",
     BERT_UNSUPPORTED, "two parts add special tokens"},
};

static void test_bpe(void **state) {
  check_changes(bpe, try_tokenizer, bpe_changes, sizeof bpe_changes / sizeof *bpe_changes);
}

#define CHARSMAP(text)                                                                             \
  "\"normalizer\": {\"type\": \"Strip\"",                                                          \
      "\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": " text

static const change unigram_changes[] = {
    {"-1.5", "-1.5", BERT_OK, ""},
    {"[\"a\", -1.5]", "[\"a\", 1e308], [\"a\", -1e308]", BERT_OK, ""}, /* the last counts */
    {"-1.5", "1e999", BERT_INVALID, "byte"},
    {"-1.5", "NaN", BERT_INVALID, "byte"},
    {"-1.5", "\"x\"", BERT_INVALID, "token 4 is not a string and a score"},
    {"[\"a\", -1.5]", "[\"a\"]", BERT_INVALID, "token 4 is not a string and a score"},
    {"[\"a\", -1.5]", "[3, -1.5]", BERT_INVALID, "token 4 is not a string and a score"},
    {"[\"a\", -1.5]", "{}", BERT_INVALID, "token 4 is not a string and a score"},
    {"[\"a\", -1.5]", "[\"\", -1.5]", BERT_OK, ""},
    {"\"unk_id\": 2", "\"unk_id\": null", BERT_INVALID, "unk_id must be the id of a token"},
    {"\"unk_id\": 2", "\"unk_id\": 6", BERT_INVALID, "an integer from 0 to 5"},
    {"\"unk_id\": 2", "\"unk_id\": -1", BERT_INVALID, "unk_id"},
    {"\"unk_id\": 2", "\"unk_id\": 1.5", BERT_INVALID, "unk_id"},
    {"\"unk_id\": 2", "\"unk_id\": 4", BERT_OK, ""},
    {"\"vocab\": [", "\"vocab\": [], \"x\": [", BERT_INVALID, "the vocabulary is empty"},
    {"\"vocab\": [", "\"vocab\": {}, \"x\": [", BERT_INVALID, "vocab is an object, not an array"},
    {"\"byte_fallback\": false", "\"byte_fallback\": true", BERT_OK, ""},
    {"\"byte_fallback\": false", "\"byte_fallback\": 0", BERT_INVALID, "byte_fallback"},
    {"\"prepend_scheme\": \"always\"", "\"add_prefix_space\": true", BERT_OK, ""},
    {"\"prepend_scheme\": \"always\"", "\"add_prefix_space\": false", BERT_INVALID,
     "add_prefix_space is false"},
    /* the map: a length, units of a trie, texts */
    {CHARSMAP("null"), BERT_INVALID, "precompiled_charsmap is missing or no string"},
    {CHARSMAP("\"\""), BERT_INVALID, "cut short"},
    {CHARSMAP("\"AAA\""), BERT_INVALID, "not base64"},
    {CHARSMAP("\"A===\""), BERT_INVALID, "not base64"},
    {CHARSMAP("\"AA=A\""), BERT_INVALID, "not base64"},
    {CHARSMAP("\"BAAAAA==\""), BERT_INVALID, "cut short: 4 bytes"},
    {CHARSMAP("\"CAAAAAAAAAA=\""), BERT_INVALID, "cut short: 8 bytes"},
    {CHARSMAP("\"/////wAAAAA=\""), BERT_INVALID, "cut short"},
    {CHARSMAP("\"BAAAAAAAAAA=\""), BERT_OK, ""},
    {CHARSMAP("\"BAAAAP////8=\""), BERT_OK, ""}, /* places far outside the trie */
    {CHARSMAP("\"BAAAAAAAAAD/\""), BERT_INVALID, "are not UTF-8"},
};

static void test_unigram(void **state) {
  check_changes(unigram, try_tokenizer, unigram_changes,
                sizeof unigram_changes / sizeof *unigram_changes);
}

/* Too many steps, and steps nested deeply. */
static void test_many_steps(void **state) {
  char *directory = scratch_new(), *many = malloc(100000);
  bert_error error = {0};
  strcpy(many, "{\"type\": \"NFC\"}");
  for (int i = 0; i < 64; i++) strcat(many, ", {\"type\": \"Lowercase\"}");
  scratch_write(directory, "tokenizer.json", bpe, strlen(bpe));
  scratch_replace(directory, "tokenizer.json", "{\"type\": \"NFC\"}", many);
  assert_int_equal(try_tokenizer(directory, &error), BERT_UNSUPPORTED);
  assert_non_null(strstr(error.text, "there are more than 64 steps"));
  many[0] = '\0';
  for (int i = 0; i < 40; i++) strcat(many, "{\"type\": \"Sequence\", \"normalizers\": [");
  for (int i = 0; i < 40; i++) strcat(many, "]}");
  scratch_write(directory, "tokenizer.json", bpe, strlen(bpe));
  scratch_replace(directory, "tokenizer.json", "{\"type\": \"NFC\"}", many);
  assert_int_equal(try_tokenizer(directory, &error), BERT_INVALID); /* deeper than JSON may be */
  free(many);
  scratch_free(directory);
}

/* Files damaged at random: an error with a text, or a tokenizer that works. */
static int count_opened(const char *directory, const char *whole) {
  size_t length = strlen(whole);
  char *text = malloc(2 * length);
  uint32_t seed = 11;
  int opened = 0;
  for (int round = 0; round < 600; round++) {
    size_t size = length;
    bert_error error = {0};
    memcpy(text, whole, length);
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
  free(text);
  return opened;
}

static void test_mutations(void **state) {
  char *directory = scratch_new();
  assert_in_range(count_opened(directory, bpe), 10, 590);
  assert_in_range(count_opened(directory, unigram), 10, 590);
  scratch_free(directory);
}

/* The character map of XLM-R with bytes of it changed, and cut short. */
static void test_map_mutations(void **state) {
  char *directory = scratch_copy("tests/golden/families/xlm-roberta");
  size_t size;
  char *text = scratch_read(directory, "tokenizer.json", &size);
  char *map = strstr(text, "precompiled_charsmap");
  uint32_t seed = 5;
  assert_non_null(map);
  map = strchr(map + 23, '"') + 1;
  size_t length = strcspn(map, "\"");
  for (int round = 0; round < 25; round++) {
    bert_error error = {0};
    for (int k = 0; k < 40; k++) {
      seed = seed * 1664525 + 1013904223;
      map[(seed >> 8) % length] = (char)('A' + (seed >> 28));
    }
    scratch_write(directory, "tokenizer.json", text, size);
    try_tokenizer(directory, &error);
  }
  free(text);
  scratch_free(directory);
}

/* ---- vocab.json and merges.txt --------------------------------------------------------- */

static void expect_merges(const char *directory, const char *merges, const char *config,
                          bert_status expected, const char *says) {
  bert_error error = {0};
  scratch_write(directory, "merges.txt", merges, strlen(merges));
  scratch_write(directory, "tokenizer_config.json", config, strlen(config));
  bert_status status = try_tokenizer(directory, &error);
  if (status != expected || strstr(error.text, says) == NULL)
    fail_msg("%s: status %d, \"%s\", expected \"%s\"", merges, (int)status, error.text, says);
}

static void test_vocab_json(void **state) {
  static const char vocab[] = "{\"<s>\": 0, \"<pad>\": 1, \"</s>\": 2, \"<unk>\": 3, \"a\": 4, "
                              "\"b\": 5, \"ab\": 6, \"abb\": 7, \"<mask>\": 8}";
  char *directory = scratch_new();
  bert_error error = {0};
  tokenizer *t = NULL;
  scratch_write(directory, "vocab.json", vocab, sizeof vocab - 1);
  assert_int_equal(try_tokenizer(directory, &error), BERT_IO); /* no merges.txt */
  expect_merges(directory, "#version: 0.2\na b\nab b\n", "{}", BERT_OK, "");
  expect_merges(directory, "a b\r\nab b", "{\"add_prefix_space\": true}", BERT_OK, "");
  expect_merges(directory, "", "{}", BERT_OK, "");
  expect_merges(directory, "a b\nab x\n", "{}", BERT_INVALID, "line 2: a merge names \"x\"");
  expect_merges(directory, "a b\n\nab b\n", "{}", BERT_INVALID, "line 2: it is not two strings");
  expect_merges(directory, "a b\n", "{\"trim_offsets\": 3}", BERT_INVALID, "trim_offsets");
  expect_merges(directory, "a b\n", "{\"cls_token\": 5}", BERT_INVALID,
                "cls_token: it is a number");
  expect_merges(directory, "a b\n", "{}", BERT_OK, "");
  assert_ok(tokenizer_open(directory, 0, &t, &error), &error);
  assert_string_equal(tokenizer_kind(t), "bpe");
  assert_int_equal(tokenizer_special_count(t, 1), 4);
  tokenizer_close(t);
  scratch_write(directory, "added_tokens.json", "{\"x\": 9}", 8);
  expect_merges(directory, "a b\n", "{}", BERT_UNSUPPORTED, "added_tokens.json is not supported");
  scratch_write(directory, "vocab.json", "[]", 2);
  expect_merges(directory, "a b\n", "{}", BERT_INVALID, "vocab.json");
  scratch_free(directory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bpe),           cmocka_unit_test(test_unigram),
      cmocka_unit_test(test_many_steps),    cmocka_unit_test(test_mutations),
      cmocka_unit_test(test_map_mutations), cmocka_unit_test(test_vocab_json)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
