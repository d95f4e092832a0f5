/*
** token_checks.c: see token_checks.h.
*/
#include "token_checks.h"

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

tokenizer *open_tokenizer(const char *directory, int lowercase) {
  tokenizer *t = NULL;
  bert_error error = {0};
  assert_ok(tokenizer_open(directory, lowercase, &t, &error), &error);
  return t;
}

bert_text text_of(const char *text) {
  return (bert_text){text, strlen(text)};
}

bert_tokens *encode_bytes(const tokenizer *t, bert_text text, const bert_text *text_b, size_t limit,
                          int only_used) {
  bert_tokens *tokens = NULL;
  bert_error error = {0};
  assert_ok(tokenizer_encode(t, text, text_b, limit, only_used, &tokens, &error), &error);
  return tokens;
}

bert_tokens *encode(const tokenizer *t, const char *text) {
  return encode_bytes(t, text_of(text), NULL, SIZE_MAX, 0);
}

const char *describe(const bert_tokens *tokens, char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  for (size_t i = 0; i < tokens->count && used < size; i++)
    if (!tokens->special[i])
      used +=
          (size_t)snprintf(out + used, size - used, "%s%d:%zu-%zu/%d", used == 0 ? "" : " ",
                           tokens->ids[i], tokens->starts[i], tokens->stops[i], tokens->words[i]);
  return out;
}

void expect_tokens(const tokenizer *t, const char *text, const char *expected) {
  char got[4096];
  bert_tokens *tokens = encode(t, text);
  describe(tokens, got, sizeof got);
  if (strcmp(got, expected) != 0) fail_msg("\"%s\": %s, expected %s", text, got, expected);
  tokens_free(tokens);
}

int same_tokens(const bert_tokens *a, const bert_tokens *b) {
  size_t n = a->count;
  return n == b->count && memcmp(a->ids, b->ids, n * sizeof *a->ids) == 0 &&
         memcmp(a->starts, b->starts, n * sizeof *a->starts) == 0 &&
         memcmp(a->stops, b->stops, n * sizeof *a->stops) == 0 &&
         memcmp(a->words, b->words, n * sizeof *a->words) == 0 &&
         memcmp(a->segments, b->segments, n) == 0 && memcmp(a->special, b->special, n) == 0;
}

char *with_added(const char *content, const char *flags) {
  char *directory = scratch_copy(SMALL_MODEL), token[256];
  snprintf(token, sizeof token, "\"added_tokens\": [{\"id\": 1200, \"content\": \"%s\", %s}, ",
           content, flags);
  scratch_replace(directory, "tokenizer.json", "\"added_tokens\": [", token);
  return directory;
}
