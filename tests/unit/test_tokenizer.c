/*
** test_tokenizer.c: tokens against the reference, pairs and truncation, added
** tokens, broken text, vocab.txt.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden.h"
#include "scratch.h"
#include "token_checks.h"

/* ---- Against the reference ----------------------------------------------- */

static void test_tokens_jsonl(void **state) {
  tokenizer *t = open_tokenizer(MINILM_DIRECTORY, 0);
  assert_int_equal(check_lines(t, "tests/golden/minilm"), 3016);
  tokenizer_close(t);
}

/* ---- Description, pairs, limits ------------------------------------------- */

static void test_description(void **state) {
  tokenizer *t = open_tokenizer(MINILM_DIRECTORY, 0);
  assert_string_equal(tokenizer_kind(t), "wordpiece");
  assert_int_equal(tokenizer_vocab_size(t), 30522);
  assert_int_equal(tokenizer_special_count(t, 0), 2);
  assert_int_equal(tokenizer_special_count(t, 1), 3);
  assert_int_equal(tokenizer_segments(t), 2);
  assert_string_equal(tokenizer_token(t, 101).data, "[CLS]");
  assert_null(tokenizer_token(t, -1).data);
  assert_null(tokenizer_token(t, 30522).data);
  tokenizer_close(t);
  tokenizer_close(NULL);
}

static void expect_used(const tokenizer *t, const char *a, const char *b, size_t limit,
                        const char *expected) {
  char got[256] = "";
  bert_text text_b = text_of(b);
  bert_tokens *tokens = encode_bytes(t, text_of(a), &text_b, limit, 1);
  for (size_t i = 0; i < tokens->count && i < 100; i++)
    strcat(got, tokens->special[i] ? "." : tokens->segments[i] ? "b" : "a");
  if (strcmp(got, expected) != 0) fail_msg("limit %zu: %s, expected %s", limit, got, expected);
  tokens_free(tokens);
}

/* Every share of a limit between two segments, as the reference gave it. */
static void test_pairs(void **state) {
  tokenizer *t = open_tokenizer(MINILM_DIRECTORY, 0);
  expect_used(t, "a b c d e", "f g h", 3, "...");
  expect_used(t, "a b c d e", "f g h", 4, ".a..");
  expect_used(t, "a b c", "f g h d e", 4, "..b.");
  expect_used(t, "a b c", "f g h", 4, "..b.");
  expect_used(t, "a b c d e", "f g h", 8, ".aaa.bb.");
  expect_used(t, "a b c d e", "f", 7, ".aaa.b.");
  expect_used(t, "a b c d e", "f g h", 10, ".aaaa.bbb.");
  expect_used(t, "a b c d e", "f g h", 11, ".aaaaa.bbb.");
  expect_used(t, "a b c d e", "f g h", 99, ".aaaaa.bbb.");
  expect_used(t, "", "f g h", 5, "..bb.");
  expect_used(t, "a b", "", 99, ".aa.."); /* an empty second text makes a pair */
  tokenizer_close(t);
}

static void test_limits(void **state) {
  tokenizer *t = open_tokenizer(MINILM_DIRECTORY, 0);
  bert_tokens *tokens = NULL;
  bert_error error = {0};
  bert_text b = text_of("b");
  assert_int_equal(tokenizer_encode(t, b, NULL, 1, 0, &tokens, &error), BERT_ARGUMENT);
  assert_non_null(strstr(error.text, "token limit is 1"));
  assert_int_equal(tokenizer_encode(t, b, &b, 2, 1, &tokens, NULL), BERT_ARGUMENT);
  assert_null(tokens);
  tokens = encode_bytes(t, b, NULL, 2, 1);
  assert_true(tokens->count == 2 && tokens->truncated);
  tokens_free(tokens);
  tokens = encode_bytes(t, (bert_text){NULL, 0}, NULL, 2, 1);
  assert_true(tokens->count == 2 && tokens->used_count == 2 && !tokens->truncated);
  tokens_free(tokens);
  tokens = encode_bytes(t, text_of("a b   "), NULL, 4, 1); /* nothing is cut off */
  assert_true(tokens->count == 4 && !tokens->truncated);
  tokens_free(tokens);
  tokenizer_close(t);
}

/* ---- Details that the reference has ----------------------------------------- */

static void test_details(void **state) {
  tokenizer *t = open_tokenizer(MINILM_DIRECTORY, 0);
  char word[400];
  expect_tokens(t, "[MASK]x[SEP] [mask]",
                "103:0-6/0 1060:6-7/1 102:7-12/2 1031:13-14/3 7308:14-18/4 1033:18-19/5");
  expect_tokens(t, "cafe\xCC\x81 caf\xC3\xA9", "7668:0-4/0 7668:7-12/1");
  expect_tokens(t,
                "a\xE2\x80\x8D"
                "b",
                "11113:0-5/0"); /* a joiner is removed */
  expect_tokens(t, "\xE4\xBD\xA0\xE5\xA5\xBD", "100:0-3/0 100:3-6/1");
  expect_tokens(t, "\xCE\x91\xCE\xA3", "1155:0-2/0 29733:2-4/0"); /* no final sigma */
  memset(word, 'a', 100);
  word[100] = '\0';
  bert_tokens *tokens = encode(t, word);
  assert_true(tokens->count > 3 && tokens->ids[1] != 100);
  tokens_free(tokens);
  strcpy(word + 100, "a b");
  expect_tokens(t, word, "100:0-101/0 1038:102-103/1");
  tokenizer_close(t);
}

/* NUL is data: it is removed like the control character it is. */
static void test_nul(void **state) {
  tokenizer *t = open_tokenizer(MINILM_DIRECTORY, 0);
  char got[200];
  bert_tokens *tokens = encode_bytes(t, (bert_text){"a\0b c\0", 6}, NULL, SIZE_MAX, 0);
  assert_string_equal(describe(tokens, got, sizeof got), "11113:0-3/0 1039:4-5/1");
  tokens_free(tokens);
  tokenizer_close(t);
}

/* Broken text gives the tokens of the text with U+FFFD in its place, which
** cleaning removes; offsets are those of the broken text. */
static void test_invalid_utf8(void **state) {
  static const char *const broken[] = {"\xFF",         "\xC0\xAF",     "\xE4\xBD", "\xED\xA0\x80",
                                       "\xF0\x9F\x98", "\xF5\x80\x80", "\x80\x80", "\xF4\x90\x80"};
  tokenizer *t = open_tokenizer(MINILM_DIRECTORY, 0);
  for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
    char text[64], expected[64];
    size_t n = strlen(broken[i]);
    snprintf(text, sizeof text, "a%sb %s [MASK]%s", broken[i], broken[i], broken[i]);
    snprintf(expected, sizeof expected, "11113:0-%zu/0 103:%zu-%zu/1", n + 2, 2 * n + 4,
             2 * n + 10);
    expect_tokens(t, text, expected);
  }
  tokenizer_close(t);
}

/* ---- Added tokens ------------------------------------------------------------ */

static void check_added(const char *content, const char *flags, const char *text,
                        const char *expected) {
  char *directory = with_added(content, flags);
  tokenizer *t = open_tokenizer(directory, 0);
  assert_int_equal(tokenizer_vocab_size(t), 1201);
  assert_string_equal(tokenizer_token(t, 1200).data, content);
  expect_tokens(t, text, expected);
  tokenizer_close(t);
  scratch_free(directory);
}

static void test_added_tokens(void **state) {
  check_added("Foo", FLAGS(false, false, false, false), "aFoo foo",
              "41:0-1/0 1200:1-4/1 46:5-6/2 792:6-8/2");
  check_added("Foo", FLAGS(false, false, false, true), "aFoo foo",
              "41:0-1/0 1200:1-4/1 1200:5-8/2");
  check_added("Foo", FLAGS(true, false, false, false), "aFoo Foo Foo_ Foo.",
              "41:0-1/0 383:1-2/0 792:2-4/0 1200:5-8/1 46:9-10/2 792:10-12/2 39:12-13/3 "
              "1200:14-17/4 18:17-18/5");
  check_added("Foo", FLAGS(true, false, false, true), "afoo foo foo_ foo.",
              "41:0-1/0 383:1-2/0 792:2-4/0 1200:5-8/1 46:9-10/2 792:10-12/2 39:12-13/3 "
              "1200:14-17/4 18:17-18/5");
  check_added("Foo", FLAGS(false, true, true, false), "a  Foo\xE3\x80\x80 b Foo ",
              "41:0-1/0 1200:1-10/1 42:10-11/2 1200:11-16/3");
  check_added("Foo", FLAGS(false, true, true, true), "a  foo\xE3\x80\x80 b FOO ",
              "41:0-1/0 1200:1-10/1 42:10-11/2 1200:11-16/3");
  check_added("\xC3\x89", FLAGS(false, false, false, true), "E\xCC\x81 \xC3\xA9t",
              "1200:0-1/0 1200:4-6/1 60:6-7/2");
  check_added("\xE4\xBD\xA0", FLAGS(false, false, false, true),
              "a\xE4\xBD\xA0"
              "b",
              "41:0-1/0 1200:1-4/1 42:4-5/2");
}

/* ---- vocab.txt, lower case ---------------------------------------------------- */

static void test_vocab_txt(void **state) {
  char *directory = scratch_copy(SMALL_MODEL);
  tokenizer *from_json = open_tokenizer(SMALL_MODEL, 0), *from_text;
  golden g = golden_open(SMALL_MODEL);
  scratch_remove(directory, "tokenizer.json");
  for (int with_config = 1; with_config >= 0; with_config--) {
    if (!with_config) scratch_remove(directory, "tokenizer_config.json");
    from_text = open_tokenizer(directory, 0);
    assert_int_equal(tokenizer_vocab_size(from_text), tokenizer_vocab_size(from_json));
    for (const json_value *c = json_get(g.root, "cases")->first; c != NULL; c = c->next) {
      bert_text text = golden_text(json_get(c, "text"));
      bert_tokens *a = encode_bytes(from_json, text, NULL, SIZE_MAX, 0);
      bert_tokens *b = encode_bytes(from_text, text, NULL, SIZE_MAX, 0);
      assert_true(same_tokens(a, b));
      tokens_free(a);
      tokens_free(b);
    }
    tokenizer_close(from_text);
  }
  golden_close(&g);
  tokenizer_close(from_json);
  scratch_free(directory);
}

/* Settings of tokenizer_config.json, each with a text on which it shows. */
static void test_tokenizer_config(void **state) {
  static const char vocab[] = "[PAD]\r\n[UNK]\nCLS\n[SEP]\n\n[MASK]\na\nA\n\xC3\xA4\n##b\n<m>";
  static const struct {
    const char *config, *text, *expected;
  } cases[] = {
      {"{\"cls_token\": \"CLS\"}", "aB A \xC3\x84", "6:0-1/0 9:1-2/0 6:3-4/1 6:5-7/2"},
      {"{\"cls_token\": \"CLS\", \"do_lower_case\": false}", "ab A \xC3\xA4",
       "6:0-1/0 9:1-2/0 7:3-4/1 8:5-7/2"},
      {"{\"cls_token\": \"CLS\", \"strip_accents\": false}", "\xC3\x84", "8:0-2/0"},
      {"{\"cls_token\": \"CLS\", \"tokenize_chinese_chars\": false}", "\xE4\xBD\xA0\xE5\xA5\xBD",
       "1:0-6/0"},
      {"{\"cls_token\": \"CLS\", \"mask_token\": \"<m>\"}", "a<m>[MASK]",
       "6:0-1/0 10:1-4/1 1:4-5/2 1:5-9/3 1:9-10/4"},
      {"{\"cls_token\": \"CLS\", \"mask_token\": {\"content\": \"[MASK]\", \"single_word\": false, "
       "\"lstrip\": true, \"rstrip\": false, \"normalized\": false}}",
       "a [MASK]", "6:0-1/0 5:1-8/1"},
  };
  char *directory = scratch_copy(SMALL_MODEL);
  scratch_remove(directory, "tokenizer.json");
  scratch_write(directory, "vocab.txt", vocab, sizeof vocab - 1);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    scratch_write(directory, "tokenizer_config.json", cases[i].config, strlen(cases[i].config));
    tokenizer *t = open_tokenizer(directory, 0);
    assert_int_equal(tokenizer_vocab_size(t), 11);
    expect_tokens(t, cases[i].text, cases[i].expected);
    tokenizer_close(t);
  }
  scratch_free(directory);
}

/* Lower case goes before the normalizer, not before the added tokens. */
static void test_lowercase(void **state) {
  char *directory = scratch_copy(SMALL_MODEL);
  scratch_replace(directory, "tokenizer.json", "\"lowercase\": true", "\"lowercase\": false");
  tokenizer *cased = open_tokenizer(directory, 0), *lower = open_tokenizer(directory, 1);
  bert_tokens *a = encode(cased, "time [MASK] \xC3\xA9"),
              *b = encode(lower, "TIME [MASK] \xC3\x89");
  assert_true(same_tokens(a, b));
  tokens_free(a);
  tokens_free(b);
  tokenizer_close(cased);
  tokenizer_close(lower);
  scratch_free(directory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tokens_jsonl), cmocka_unit_test(test_description),
      cmocka_unit_test(test_pairs),        cmocka_unit_test(test_limits),
      cmocka_unit_test(test_details),      cmocka_unit_test(test_nul),
      cmocka_unit_test(test_invalid_utf8), cmocka_unit_test(test_added_tokens),
      cmocka_unit_test(test_vocab_txt),    cmocka_unit_test(test_tokenizer_config),
      cmocka_unit_test(test_lowercase)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
