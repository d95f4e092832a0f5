/*
** tokenizer.h: what a tokenizer is made of, and how one segment goes through it.
*/
#ifndef BERT_TOKENIZER_H
#define BERT_TOKENIZER_H

#include "models.h"

typedef enum model_kind { MODEL_WORDPIECE, MODEL_BPE, MODEL_UNIGRAM } model_kind;

struct tokenizer {
  vocabulary vocabulary;
  added_tokens added;
  int general; /* 0: the short path, by normalizer and pretokenizer; 1: the chain */
  normalizer normalizer;
  pretokenizer_kind pretokenizer;
  chain chain;
  model_kind model;
  wordpiece wordpiece; /* of MODEL_WORDPIECE, and so on */
  bpe bpe;
  unigram unigram;
  postprocessor postprocessor;
  digest_stream files; /* the digest of each file it was made from */
};

/* The tokens of one segment. */
typedef struct token_segment {
  token_list list;
  int32_t words;
  size_t enough; /* more tokens than this are not asked for */
} token_segment;

static inline int segment_has_enough(const token_segment *s) {
  return s->list.count > s->enough;
}

/* The number of the next word. */
static inline int32_t segment_word(token_segment *s) {
  return s->words < INT32_MAX ? s->words++ : s->words;
}

/* general.c: all tokens of a text by the general pipeline, or as many as are asked
** for; 0 when out of memory. */
int general_add_segment(const tokenizer *t, bert_text text, token_segment *s);

/* ---- trim.c ------------------------------------------------------------------- */

/* Once the vocabulary is there. */
bert_status trim_build(postprocessor *p, const vocabulary *v, bert_error *error);

/* Trims the last token of the list, which is of `text`, given its margins, or those
** of its string when they are NULL. */
void trim_last(const postprocessor *p, bert_text text, token_list *list, const margins *m);

/* Those of a piece of the text. */
margins trim_margins(const char *text, size_t size);

/* ---- Loading ------------------------------------------------------------------- */

/* loadjson.c: fills a zeroed tokenizer. On the short path the caller builds the
** normalizer: *steps is what it is to do. */
bert_status load_tokenizer_json(tokenizer *t, const json_value *root, int *steps,
                                bert_error *error);

/* loadvocab.c: the same from vocab.txt and tokenizer_config.json. */
bert_status load_vocab_txt(tokenizer *t, const char *directory, int *steps, bert_error *error);

/* loadmerges.c: the same from vocab.json, merges.txt and tokenizer_config.json. */
bert_status load_vocab_json(tokenizer *t, const char *directory, const json_value *vocab,
                            bert_error *error);

#endif
