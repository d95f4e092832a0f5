/*
** tokenizers.h: text to tokens, as Hugging Face tokenizers does it from the
** model's tokenizer.json (or vocab.txt alone). The map of this folder:
**
**   tokenizer.c      open, encode, truncation of one and of pairs
**   pipeline.h       the short path: BERT's normalizer and pre-tokenizer, WordPiece
**   chain.h          the general path: any chain of normalizers and pre-tokenizers
**   models.h         BPE, Unigram and WordPiece on the words of the general path
**   load.h           tokenizer.json and older files into a tokenizer
**   characters.h     what the stages ask about characters, and of which Unicode
**
** README.md says which file does what.
*/
#ifndef BERT_TOKENIZERS_H
#define BERT_TOKENIZERS_H

#include "../base/base.h"

typedef struct tokenizer tokenizer;

/* Opens the tokenizer of the model in `directory`: tokenizer.json; or else
** vocab.json with merges.txt, or vocab.txt, with tokenizer_config.json.
** `lowercase` other than 0 forces lower case (do_lower_case of
** sentence_bert_config.json). A component of an unknown type is
** BERT_UNSUPPORTED and named. */
bert_status tokenizer_open(const char *directory, int lowercase, tokenizer **out,
                           bert_error *error);
void tokenizer_close(tokenizer *t); /* NULL is allowed */

const char *tokenizer_kind(const tokenizer *t);            /* "wordpiece", "bpe", "unigram" */
int tokenizer_vocab_size(const tokenizer *t);              /* highest id + 1 */
int tokenizer_special_count(const tokenizer *t, int pair); /* added by the post-processor */
int tokenizer_segments(const tokenizer *t);                /* highest type id + 1 */
bert_text tokenizer_token(const tokenizer *t, int32_t id);

/* The id of that string of the vocabulary, or of the added token; -1: none. */
int32_t tokenizer_find(const tokenizer *t, bert_text text);

/* A digest of the files that the tokenizer was made from, as they were then. */
void tokenizer_digest(const tokenizer *t, unsigned char out[DIGEST_BYTES]);

/* Tokenizes `text` (and text_b, for a pair). `limit` is the number of tokens
** that are used, special ones included; at least the special count.
** only_used: tokens beyond the limit are left out and tokenizing stops soon
** after it. Pairs are cut longest first, as tokenizers does. Immutable and safe
** from any number of threads. The result is one block, freed with tokens_free. */
bert_status tokenizer_encode(const tokenizer *t, bert_text text, const bert_text *text_b,
                             size_t limit, int only_used, bert_tokens **tokens, bert_error *error);
void tokens_free(bert_tokens *tokens);

/* ---- spelling.c: tokens to text ---------------------------------------- */

/* Both write what they give to out[room] and return its size, of which there may be
** more than there is room; NULL with room 0 only asks. They are bert_token_text and
** bert_replace_mask of bert.h; `replaced` is the token that stands at [start, stop). */
size_t tokenizer_spell(const tokenizer *t, int32_t id, char *out, size_t room);
size_t tokenizer_replace(const tokenizer *t, bert_text text, size_t start, size_t stop,
                         int32_t replaced, int32_t id, char *out, size_t room);

/* ---- unicode.c, unicode8.c: characters --------------------------------- */

/* The character at text[*at] (at < size) and moves *at past it. What is not
** UTF-8 reads as U+FFFD, one for each maximal part of a sequence, as the
** Unicode Standard (section 3.9) recommends and as Python's errors='replace'
** does; SQLite's own functions read broken text differently. */
uint32_t unicode_next(const char *text, size_t size, size_t *at);

/* P of Unicode 8, or ASCII that is no letter or digit: what BERT splits at. */
int unicode_is_punctuation(uint32_t c);

/* Columns of a terminal that `c` takes when it stands alone: 0, 1 or 2. */
int unicode_columns(uint32_t c);

/* Extended_Pictographic: emoji, and signs such as U+2764 that may become one. */
int unicode_is_pictograph(uint32_t c);

#endif
