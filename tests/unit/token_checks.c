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

/* ---- Against the reference ----------------------------------------------- */

static void expect_integers(const char *what, const json_value *array, const bert_tokens *tokens,
                            int (*get)(const bert_tokens *tokens, size_t i)) {
  size_t i = 0;
  assert_non_null(array);
  if (array->size != tokens->count)
    fail_msg("%s: %zu tokens, expected %zu", what, tokens->count, array->size);
  for (const json_value *v = array->first; v != NULL; v = v->next, i++)
    if (v->integer != get(tokens, i))
      fail_msg("%s of token %zu: %d, expected %d", what, i, get(tokens, i), (int)v->integer);
}

static int get_id(const bert_tokens *tokens, size_t i) {
  return tokens->ids[i];
}
static int get_special(const bert_tokens *tokens, size_t i) {
  return tokens->special[i];
}
static int get_segment(const bert_tokens *tokens, size_t i) {
  return tokens->segments[i];
}
static int get_type(const bert_tokens *tokens, size_t i) {
  return tokens->types[i];
}

static void expect_offsets(const json_value *array, const bert_tokens *tokens) {
  size_t i = 0;
  assert_int_equal(array->size, tokens->count);
  for (const json_value *v = array->first; v != NULL; v = v->next, i++)
    if ((size_t)v->first->integer != tokens->starts[i] ||
        (size_t)v->first->next->integer != tokens->stops[i])
      fail_msg("token %zu: bytes %zu-%zu, expected %d-%d", i, tokens->starts[i], tokens->stops[i],
               (int)v->first->integer, (int)v->first->next->integer);
}

/* A line of tokens.jsonl as JSON. The reader refuses a NUL in a string, so it
** is written as U+F8F0 there, which the file has nowhere else. */
static json_document *parse_line(char *line, size_t size) {
  json_document *document = NULL;
  bert_error error = {0};
  for (char *at = line; (at = strstr(at, "\\u0000")) != NULL && at < line + size;)
    memcpy(at, "\\uF8F0", 6);
  assert_ok(json_parse(line, size, &document, &error), &error);
  return document;
}

/* The text of the line, with its NULs; freed with free. */
static bert_text line_text(const json_value *value) {
  bert_text text = golden_text(value);
  char *copy = malloc(text.size + 1);
  size_t size = 0;
  for (size_t i = 0; i < text.size; i++) {
    int nul = text.size - i >= 3 && memcmp(text.data + i, "\xEF\xA3\xB0", 3) == 0;
    copy[size++] = nul ? '\0' : text.data[i];
    if (nul) i += 2;
  }
  return (bert_text){copy, size};
}

static void check_line(const tokenizer *t, const json_value *line) {
  bert_text text = line_text(json_get(line, "text"));
  bert_tokens *tokens = encode_bytes(t, text, NULL, SIZE_MAX, 0);
  expect_integers("id", json_get(line, "ids"), tokens, get_id);
  expect_offsets(json_get(line, "byte_offsets"), tokens);
  assert_int_equal(tokens->used_count, tokens->count);
  assert_int_equal(tokens->truncated, 0);
  tokens_free(tokens);
  free((char *)(uintptr_t)text.data);
}

int check_lines(const tokenizer *t, const char *directory) {
  size_t size;
  char *text = scratch_read(directory, "tokens.jsonl", &size);
  int count = 0;
  assert_null(strstr(text, "uf8f0"));
  for (char *line = text, *end; *line != '\0'; line = end + (*end != '\0')) {
    end = line + strcspn(line, "\n");
    json_document *document = parse_line(line, (size_t)(end - line));
    if (json_get(json_root(document), "text") != NULL) {
      check_line(t, json_root(document));
      count++;
    }
    json_free(document);
  }
  free(text);
  return count;
}

/* The model has fewer token types than the templates: bert-max has one. */
static int get_only_type(const bert_tokens *tokens, size_t i) {
  return 0 * tokens->types[i];
}

/* The string of a token; where the reference gives the text instead, as it does for
** the unknown token of Unigram, that is not compared. */
static void expect_token_string(const tokenizer *t, int32_t id, const json_value *name) {
  bert_text got = tokenizer_token(t, id);
  if (strcmp(tokenizer_kind(t), "unigram") == 0 && strcmp(got.data, "<unk>") == 0) return;
  assert_int_equal(got.size, name->size);
  assert_memory_equal(got.data, name->string, name->size);
}

void check_case(const tokenizer *t, const json_value *example, size_t limit, int types) {
  bert_text a = golden_text(json_get(example, "text")),
            b = golden_text(json_get(example, "text_b"));
  const bert_text *second = b.size > 0 ? &b : NULL; /* what bert_tokenize makes of "" */
  bert_tokens *tokens = encode_bytes(t, a, second, limit, 1);
  bert_tokens *all = encode_bytes(t, a, second, limit, 0);
  size_t used = 0;
  expect_integers("id", json_get(example, "ids"), tokens, get_id);
  expect_integers("type", json_get(example, "type_ids"), tokens,
                  types > 1 ? get_type : get_only_type);
  expect_integers("special", json_get(example, "special"), tokens, get_special);
  expect_integers("segment", json_get(example, "sequence"), tokens, get_segment);
  expect_offsets(json_get(example, "byte_offsets"), tokens);
  for (size_t i = 0; i < tokens->count; i++)
    expect_token_string(t, tokens->ids[i], golden_at(json_get(example, "tokens"), i));
  assert_int_equal(all->truncated, tokens->truncated);
  assert_int_equal(all->used_count, tokens->count);
  for (size_t i = 0; i < all->count; i++)
    if (all->used[i]) assert_int_equal(all->ids[i], tokens->ids[used++]);
  assert_int_equal(used, tokens->count);
  tokens_free(tokens);
  tokens_free(all);
}
