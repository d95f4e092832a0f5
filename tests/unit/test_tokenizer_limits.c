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

static void check_memory(const tokenizer *t, const char *pattern, size_t bytes, int pair) {
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
  if (counted.peak > (pair ? 300000 : 60000))
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
    check_memory(t, patterns[i], 5000000, 0);
    if (i < 2) check_memory(t, patterns[i], 5000000, 1);
  }
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) check_memory(t, marks[i], 500000, 0);
  tokenizer_close(t);
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

static void test_threads(void **state) {
  tokenizer *t = open_tokenizer(MINILM_DIRECTORY, 0);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bounded_memory), cmocka_unit_test(test_only_used),
      cmocka_unit_test(test_no_memory), cmocka_unit_test(test_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
