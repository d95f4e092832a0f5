/*
** test_spelling.c: what a token reads as, alone and in the place of a mask, with
** tokenizers of each kind. (That it is what the reference decodes, for the tokens of
** tasks.json, is in test_ext_tasks.c.)
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
#include "tokenizers/tokenizers.h"

static tokenizer *open_family(const char *name) {
  bert_error error = {BERT_OK, ""};
  tokenizer *t = NULL;
  char directory[120];
  snprintf(directory, sizeof directory, "tests/golden/families/%s", name);
  assert_ok(tokenizer_open(directory, 0, &t, &error), &error);
  return t;
}

/* The id of a string of the vocabulary, which must be there. */
static int32_t id_of(const tokenizer *t, const char *string) {
  for (int32_t id = 0; id < tokenizer_vocab_size(t); id++) {
    bert_text text = tokenizer_token(t, id);
    if (text.size == strlen(string) && memcmp(text.data, string, text.size) == 0) return id;
  }
  fail_msg("no token \"%s\"", string);
  return -1;
}

static void assert_spelled(const tokenizer *t, const char *token, const char *expected) {
  char found[80];
  size_t size = tokenizer_spell(t, id_of(t, token), found, sizeof found);
  assert_int_equal(size, strlen(expected));
  assert_memory_equal(found, expected, size);
}

/* The mask of `text`, where it is found by its own characters, replaced by a token. */
static void assert_filled(const tokenizer *t, const char *mask, const char *text, const char *token,
                          const char *expected) {
  char found[200];
  size_t start = (size_t)(strstr(text, mask) - text), stop = start + strlen(mask);
  size_t size = tokenizer_replace(t, (bert_text){text, strlen(text)}, start, stop, id_of(t, mask),
                                  id_of(t, token), found, sizeof found);
  if (size != strlen(expected) || memcmp(found, expected, size) != 0)
    fail_msg("\"%s\" with %s is \"%.*s\", not \"%s\"", text, token, (int)size, found, expected);
}

static void pieces_of_words(void **state) {
  (void)state;
  tokenizer *t = open_family("bert-mlm-cased");
  assert_spelled(t, "##ock", "##ock");
  assert_spelled(t, "is", "is");
  assert_spelled(t, "[MASK]", "[MASK]");
  assert_filled(t, "[MASK]", "time [MASK] like", "is", "time is like");
  assert_filled(t, "[MASK]", "time [MASK] like", "##ock", "timeock like");
  assert_filled(t, "[MASK]", "TIME \t\n [MASK]!", "##ock", "TIMEock!");
  assert_filled(t, "[MASK]", "a\xE3\x80\x80[MASK]", "##ock", "aock"); /* U+3000 */
  assert_filled(t, "[MASK]", " [MASK] x", "##ock", " ##ock x");
  assert_filled(t, "[MASK]", "[MASK]", "is", "is");
  assert_filled(t, "[MASK]", "\x80[MASK]\xFF", "is", "\x80is\xFF");
  tokenizer_close(t);
}

/* White space that a mask takes with it is only part of tokens where spaces are. */
static void a_greedy_mask_of_wordpiece(void **state) {
  (void)state;
  tokenizer *t = open_family("mpnet");
  char found[80];
  assert_filled(t, "<mask>", "time <mask> like", "is", "time is like");
  size_t size = tokenizer_replace(t, (bert_text){"time <mask> like", 16}, 4, 11, id_of(t, "<mask>"),
                                  id_of(t, "is"), found, sizeof found);
  assert_int_equal(size, 12);
  assert_memory_equal(found, "time is like", size);
  tokenizer_close(t);
}

static void bytes_of_characters(void **state) {
  (void)state;
  tokenizer *t = open_family("roberta-mlm");
  assert_spelled(t,
                 "\xC4\xA0"
                 "Con",
                 " Con");                        /* Ġ */
  assert_spelled(t, "\xC4\x8A", "\n");           /* Ċ */
  assert_spelled(t, "\xC3\x83", "\xEF\xBF\xBD"); /* a lone lead byte */
  assert_spelled(t, "<mask>", "<mask>");
  assert_filled(t, "<mask>", "time <mask> like",
                "\xC4\xA0"
                "Con",
                "time Con like");
  assert_filled(t, "<mask>", "time \xC2\xA0 <mask> like", "is", "timeis like");
  assert_filled(t, "<mask>", "<mask> like",
                "\xC4\xA0"
                "Con",
                " Con like");
  tokenizer_close(t);
}

static void marks_of_spaces(void **state) {
  (void)state;
  tokenizer *t = open_family("xlm-roberta");
  int32_t word = -1, piece = -1;
  for (int32_t id = 4; id < tokenizer_vocab_size(t) && (word < 0 || piece < 0); id++) {
    bert_text text = tokenizer_token(t, id);
    int marked = text.size > 3 && memcmp(text.data, "\xE2\x96\x81", 3) == 0;
    if (marked && text.data[3] > 0 && word < 0) word = id;
    if (!marked && text.size > 1 && text.data[0] >= 'a' && piece < 0) piece = id;
  }
  bert_text marked = tokenizer_token(t, word), plain = tokenizer_token(t, piece);
  char found[80], expected[160];
  assert_int_equal(tokenizer_spell(t, word, found, sizeof found), marked.size - 3);
  assert_memory_equal(found, marked.data + 3, marked.size - 3);
  char copy[80];
  memcpy(copy, marked.data, marked.size);
  copy[marked.size] = '\0';
  snprintf(expected, sizeof expected, "time %s like", copy + 3);
  assert_filled(t, "<mask>", "time <mask> like", copy, expected);
  snprintf(expected, sizeof expected, "%s like", copy + 3);
  assert_filled(t, "<mask>", "<mask> like", copy, expected);
  memcpy(copy, plain.data, plain.size);
  copy[plain.size] = '\0';
  snprintf(expected, sizeof expected, "time%s like", copy);
  assert_filled(t, "<mask>", "time <mask> like", copy, expected);
  tokenizer_close(t);
}

/* What there is no room for is counted; an id without a token is nothing. */
static void room_may_be_short(void **state) {
  (void)state;
  tokenizer *t = open_family("bert-mlm-cased");
  char found[4] = "...";
  bert_text text = {"a [MASK] b", 10};
  assert_int_equal(tokenizer_spell(t, id_of(t, "##ock"), found, 2), 5);
  assert_string_equal(found, "##.");
  assert_int_equal(tokenizer_replace(t, text, 2, 8, id_of(t, "[MASK]"), id_of(t, "is"), NULL, 0),
                   6);
  assert_int_equal(tokenizer_spell(t, 1 << 24, found, sizeof found), 0);
  assert_int_equal(tokenizer_spell(t, -1, found, sizeof found), 0);
  tokenizer_close(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pieces_of_words), cmocka_unit_test(a_greedy_mask_of_wordpiece),
      cmocka_unit_test(bytes_of_characters), cmocka_unit_test(marks_of_spaces),
      cmocka_unit_test(room_may_be_short)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
