/*
** test_tokenizer_limits.c: long texts in little memory, tokens up to a limit,
** failing allocations, threads.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include <cmocka.h>

#include "faults.h"
#include "golden.h"
#include "scratch.h"
#include "token_checks.h"

/* ---- Long texts ------------------------------------------------------------------ */

/* What the allocator has given out, and the most at one time. */
static struct { uint64_t now, peak; } counted;

static void *count_allocate(void *user, uint64_t bytes) {
  uint64_t *block = malloc(bytes + 16);
  if (block == NULL) return NULL;
  block[0] = bytes;
  counted.now += bytes;
  if (counted.now > counted.peak) counted.peak = counted.now;
  return block + 2;
}

static void count_release(void *user, void *block) {
  uint64_t *start = (uint64_t *)block - 2;
  counted.now -= start[0];
  free(start);
}

/* `bytes` of one pattern repeated, whole. */
static char *repeat(const char *pattern, size_t bytes, size_t *size) {
  size_t n = strlen(pattern), count = bytes / n;
  char *text = malloc(count * n);
  for (size_t i = 0; i < count; i++) memcpy(text + i * n, pattern, n);
  *size = count * n;
  return text;
}

static void check_memory(const tokenizer *t, const char *pattern, size_t bytes, int pair,
                         uint64_t most) {
  const bert_allocator counting = {count_allocate, count_release, NULL};
  bert_text text, text_b = text_of("and a short one");
  char *repeated = repeat(pattern, bytes, &text.size);
  text.data = repeated;
  bert_set_allocator(&counting);
  counted.now = counted.peak = 0;
  bert_tokens *tokens = encode_bytes(t, text, pair ? &text_b : NULL, 128, 1);
  assert_in_range(tokens->count, 2, 128);
  tokens_free(tokens);
  bert_set_allocator(NULL);
  if (counted.peak > most)
    fail_msg("\"%s\" repeated takes %llu bytes", pattern, (unsigned long long)counted.peak);
  assert_int_equal(counted.now, 0);
  free(repeated);
}

/* Whatever a text of 5 MB is made of, 128 tokens of it take little memory. */
static void test_bounded_memory(void **state) {
  static const char *const patterns[] = {
      "word ",       "a",       "\xC3\xA9", "\xCC\x81", "e\xCC\x81",    " ",    "\x01",
      ".",           "[MASK] ", "[MASK]",   "[",        "\xE3\x80\x80", "\xFF", "\xE2\x80\x8D",
      "\xEA\xB0\x81"};
  /* marks that stay, of one class and of several: read several times */
  static const char *const marks[] = {"\xE1\xAD\x84", "\xF0\x9D\x85\xA5", "\xE3\x80\xAE\xCC\x81",
                                      "\xF0\x9D\x85\xA0\xF0\x9D\x85\xAD"};
  tokenizer *t = open_tokenizer(MINILM_DIRECTORY, 0);
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
    check_memory(t, patterns[i], 5000000, 0, 60000);
    if (i < 2) check_memory(t, patterns[i], 5000000, 1, 300000);
  }
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
    check_memory(t, marks[i], 500000, 0, 60000);
  tokenizer_close(t);
}

/* The general pipeline keeps a word, a run of marks or of white space up to 65,536
** characters, and no more of it. */
static void test_bounded_words(void **state) {
  static const char *const patterns[] = {"word ",
                                         "a",
                                         "\xC3\xA9",
                                         "\xCC\x81",
                                         "e\xCC\x81",
                                         " ",
                                         "\n",
                                         "<mask>",
                                         " <mask>",
                                         ".",
                                         "'s",
                                         "\xEF\xAC\x81",
                                         "\xF0\x9F\x9A\x80",
                                         "\xE2\x80\x8D",
                                         "\xEA\xB0\x81",
                                         "\xFF",
                                         "\xE2\x96\x81"};
  static const char *const families[] = {"modernbert", "roberta-mlm", "xlm-roberta"};
  for (size_t f = 0; f < 3; f++) {
    char directory[128];
    snprintf(directory, sizeof directory, "tests/golden/families/%s", families[f]);
    tokenizer *t = open_tokenizer(directory, 0);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
      check_memory(t, patterns[i], 3000000, 0, 20000000);
    tokenizer_close(t);
  }
}

/* A word that is cut for its length gives the tokens that it gives whole: those of
** its halves, for a word that a token ends in the middle of. */
static void test_long_words(void **state) {
  static const struct {
    const char *family, *pattern;
  } cases[] = {{"roberta-mlm", "a"}, {"roberta-mlm", "banana"}, {"xlm-roberta", "a"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char directory[128];
    snprintf(directory, sizeof directory, "tests/golden/families/%s", cases[i].family);
    tokenizer *t = open_tokenizer(directory, 0);
    bert_text text, half;
    char *bytes = repeat(cases[i].pattern, 240000, &text.size);
    text.data = bytes;
    half = (bert_text){bytes, 30000};
    bert_tokens *all = encode_bytes(t, text, NULL, SIZE_MAX, 0);
    bert_tokens *part = encode_bytes(t, half, NULL, SIZE_MAX, 0);
    for (size_t k = 0; k + 3 < part->count; k++) assert_int_equal(all->ids[k], part->ids[k]);
    for (size_t k = 2; k + 1 < all->count; k++) {
      assert_int_equal(all->starts[k], all->stops[k - 1]); /* nothing is lost or doubled */
      assert_int_equal(all->words[k], all->words[1]);
    }
    assert_int_equal(all->stops[all->count - 2], text.size);
    tokens_free(all);
    tokens_free(part);
    free(bytes);
    tokenizer_close(t);
  }
}

/* Only the used tokens are the used ones of all. */
static void test_only_used(void **state) {
  tokenizer *t = open_tokenizer(MINILM_DIRECTORY, 0);
  const char *text = "Unaffable words, and [MASK] more of them: supercalifragilistic!";
  bert_tokens *all = encode(t, text);
  for (size_t limit = 2; limit < all->count + 2; limit++) {
    bert_tokens *used = encode_bytes(t, text_of(text), NULL, limit, 1);
    bert_tokens *flagged = encode_bytes(t, text_of(text), NULL, limit, 0);
    size_t expected = limit < all->count ? limit : all->count;
    assert_int_equal(used->count, expected);
    assert_int_equal(flagged->count, all->count);
    assert_int_equal(flagged->used_count, expected);
    assert_int_equal(used->truncated, limit < all->count);
    assert_int_equal(flagged->truncated, limit < all->count);
    assert_memory_equal(used->ids, all->ids, (expected - 1) * sizeof *all->ids);
    assert_int_equal(used->ids[expected - 1], 102);
    assert_int_equal(flagged->used[all->count - 1], 1); /* the closing token */
    for (size_t i = 0; i + 1 < all->count; i++)
      assert_int_equal(flagged->used[i], i + 1 < expected);
    tokens_free(used);
    tokens_free(flagged);
  }
  tokens_free(all);
  tokenizer_close(t);
}

/* ---- Memory and threads -------------------------------------------------------------- */

static bert_status open_and_close(void *user, bert_error *error) {
  tokenizer *t = NULL;
  bert_status status = tokenizer_open(user, 0, &t, error);
  if (status != BERT_OK) assert_null(t);
  tokenizer_close(t);
  return status;
}

static bert_status encode_once(void *user, bert_error *error) {
  bert_tokens *tokens = NULL;
  bert_text b = text_of("and a second one \xC3\xA9");
  bert_status status =
      tokenizer_encode(user, text_of("time flies like an arrow, [MASK] fruit flies like a banana"),
                       &b, 512, 0, &tokens, error);
  tokens_free(tokens);
  return status;
}

static void test_no_memory(void **state) {
  char *directory = with_added("Foo Bar", FLAGS(true, true, true, true));
  assert_true(faults_each(open_and_close, directory) > 10);
  tokenizer *t = open_tokenizer(directory, 0);
  assert_true(faults_each(encode_once, t) > 3);
  tokenizer_close(t);
  scratch_remove(directory, "tokenizer.json");
  assert_true(faults_each(open_and_close, directory) > 10);
  scratch_free(directory);
}

/* The same for BPE, Unigram, and steps that keep much. */
static void test_no_memory_general(void **state) {
  static const char *const families[] = {"modernbert", "roberta-mlm", "xlm-roberta"};
  for (size_t i = 0; i < 3; i++) {
    char directory[128];
    snprintf(directory, sizeof directory, "tests/golden/families/%s", families[i]);
    tokenizer *t = open_tokenizer(directory, 0);
    assert_true(faults_each(encode_once, t) > 10);
    tokenizer_close(t);
  }
  char *copy = scratch_copy("tests/golden/families/bert-mean");
  scratch_replace(copy, "tokenizer.json", "\"type\": \"BertPreTokenizer\"",
                  "\"type\": \"Split\", \"behavior\": \"Isolated\", \"invert\": false, "
                  "\"pattern\": {\"Regex\": \"(?:a|b|\\\\s{1,2}c)+?d|\\\\p{L}{2,3}\"}");
  assert_true(faults_each(open_and_close, copy) > 20);
  scratch_free(copy);
}

static void *encode_much(void *user) {
  const char *text = "The quick brown f\xC3\xB6x [MASK] jumps over \xE4\xBD\xA0 lazy dogs.";
  bert_tokens *first = NULL;
  int same = 1;
  tokenizer_encode(user, text_of(text), NULL, SIZE_MAX, 0, &first, NULL);
  for (int i = 0; i < 2000; i++) {
    bert_tokens *tokens = NULL;
    if (tokenizer_encode(user, text_of(text), NULL, SIZE_MAX, 0, &tokens, NULL) != BERT_OK)
      return NULL;
    same = same && same_tokens(first, tokens);
    tokens_free(tokens);
  }
  tokens_free(first);
  return same ? user : NULL;
}

static void check_threads(const char *directory) {
  tokenizer *t = open_tokenizer(directory, 0);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, encode_much, t), 0);
  for (int i = 0; i < 4; i++) {
    void *result = NULL;
    pthread_join(threads[i], &result);
    assert_ptr_equal(result, t);
  }
  tokenizer_close(t);
}

static void test_threads(void **state) {
  check_threads(MINILM_DIRECTORY);
  check_threads("tests/golden/families/roberta-mlm");
  check_threads("tests/golden/families/xlm-roberta");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bounded_memory), cmocka_unit_test(test_bounded_words),
      cmocka_unit_test(test_long_words),     cmocka_unit_test(test_only_used),
      cmocka_unit_test(test_no_memory),      cmocka_unit_test(test_no_memory_general),
      cmocka_unit_test(test_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
