/*
** token_checks.h: what the tests of the tokenizer share.
*/
#ifndef BERT_TOKEN_CHECKS_H
#define BERT_TOKEN_CHECKS_H

#include "../../encoder/tokenizers/tokenizers.h"

/* A model of the golden data, with 1200 strings. */
#define SMALL_MODEL "tests/golden/families/bert-mean"

/* These end the test when they fail. */
tokenizer *open_tokenizer(const char *directory, int lowercase);
bert_tokens *encode_bytes(const tokenizer *t, bert_text text, const bert_text *text_b, size_t limit,
                          int only_used);
bert_tokens *encode(const tokenizer *t, const char *text);

bert_text text_of(const char *text);

/* The tokens but the special ones, as "id:start-stop/word id:start-stop/word". */
const char *describe(const bert_tokens *tokens, char *out, size_t size);
void expect_tokens(const tokenizer *t, const char *text, const char *expected);

/* Checks what tokens.jsonl of a directory says; the number of its texts. */
int check_lines(const tokenizer *t, const char *directory);

/* Checks a case of expected.json, of a model with `types` token types. */
void check_case(const tokenizer *t, const json_value *example, size_t limit, int types);

int same_tokens(const bert_tokens *a, const bert_tokens *b);

/* A copy of SMALL_MODEL whose tokenizer.json has an added token 1200 more;
** given back with scratch_free. */
char *with_added(const char *content, const char *flags);
#define FLAGS(single, left, right, normal)                                                         \
  "\"single_word\": " #single ", \"lstrip\": " #left ", \"rstrip\": " #right                       \
  ", \"normalized\": " #normal ", \"special\": false"

#endif
