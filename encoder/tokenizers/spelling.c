/*
** spelling.c: what a token reads as, and a text with a token in the place of
** another: the way back from tokens to text.
**
** The reference decodes whole sequences, and so gives back what the normalizer
** left of a text: lower case, other spaces, no accents. Here the text stays as it
** was written, and only the token that is put in is decoded.
*/
#include "tokenizer.h"
#include "tokenizers.h"

#include <string.h>

/* Output of which the caller may have less room than there is. */
typedef struct writer {
  char *out;
  size_t room, size;
} writer;

static void put(writer *w, const char *data, size_t size) {
  for (size_t i = 0; i < size; i++, w->size++)
    if (w->size < w->room) w->out[w->size] = data[i];
}

/* ---- The bytes of a token --------------------------------------------------- */

/* Bytes of a vocabulary's string, its marks turned into what they stand for. */
typedef struct spelling {
  bert_text string;
  size_t at;
  int bytes;     /* 1: each character stands for a byte */
  char space[4]; /* the character that stands for a space, in UTF-8; */
  size_t space_size;
  int spaces; /*   0: it is left out */
} spelling;

/* The byte that a character of STEP_BYTES stands for; -1: none. */
static int byte_of(uint32_t c) {
  static const unsigned char rest = 0x7F;
  if (c > ' ' && c < rest) return (int)c;
  if (c >= 0xA1 && c <= 0xFF && c != 0xAD) return (int)c;
  if (c >= 0x100 && c <= 0x120) return (int)(c - 0x100);
  if (c >= 0x121 && c <= 0x142) return (int)(c - 0x121 + rest);
  return c == 0x143 ? 0xAD : -1;
}

/* Whether all of it stands for bytes; added tokens may not. */
static int is_bytes(bert_text string) {
  for (size_t at = 0; at < string.size;)
    if (byte_of(unicode_next(string.data, string.size, &at)) < 0) return 0;
  return 1;
}

static const step *find_step(const tokenizer *t, step_kind kind) {
  for (size_t i = 0; t->general && i < t->chain.count; i++)
    if (t->chain.steps[i].kind == kind) return &t->chain.steps[i];
  return NULL;
}

/* 0 at the end. */
static int next_byte(spelling *s, char *out) {
  const char *data = s->string.data;
  while (s->space_size > 0 && s->string.size - s->at >= s->space_size &&
         memcmp(data + s->at, s->space, s->space_size) == 0) {
    s->at += s->space_size;
    *out = ' ';
    if (s->spaces) return 1;
  }
  if (s->at >= s->string.size) return 0;
  if (s->bytes)
    *out = (char)byte_of(unicode_next(data, s->string.size, &s->at));
  else
    *out = data[s->at++];
  return 1;
}

/* The byte of a token such as <0x0A>, where the model has such; -1: none. */
static int fallback_byte(const tokenizer *t, int32_t id) {
  const int32_t *bytes = t->model == MODEL_BPE && t->bpe.byte_fallback           ? t->bpe.bytes
                         : t->model == MODEL_UNIGRAM && t->unigram.byte_fallback ? t->unigram.bytes
                                                                                 : NULL;
  for (int i = 0; bytes != NULL && i < 256; i++)
    if (bytes[i] == id) return i;
  return -1;
}

/* Puts the spelling; a part of a character that stands alone is U+FFFD. */
static void put_spelling(writer *w, spelling *s) {
  char ahead[4], whole[4];
  size_t size = 0, at;
  for (;;) {
    while (size < sizeof ahead && next_byte(s, &ahead[size])) size++;
    if (size == 0) return;
    at = 0;
    put(w, whole, unicode_put(unicode_next(ahead, size, &at), whole));
    memmove(ahead, ahead + at, size - at);
    size -= at;
  }
}

/* The bytes of the prefix by which a piece goes on a word, as in "##ing"; 0 for a
** token that has none. */
static size_t continuation(const tokenizer *t, bert_text string) {
  uint32_t node = t->vocabulary.trie.root;
  if (t->model != MODEL_WORDPIECE || t->wordpiece.continuation == TRIE_NONE) return 0;
  for (size_t i = 0; i < string.size && node != TRIE_NONE; i++) {
    node = trie_step(&t->vocabulary.trie, node, (unsigned char)string.data[i]);
    if (node == t->wordpiece.continuation) return i + 1;
  }
  return 0;
}

/* Puts what the token reads as; `first`: nothing stands before it. */
static void put_token(writer *w, const tokenizer *t, int32_t id, int first) {
  spelling s = {.string = tokenizer_token(t, id), .spaces = 1};
  const step *change = find_step(t, STEP_CHANGE);
  int byte = fallback_byte(t, id);
  char lone = (char)byte;
  if (byte >= 0) s.string = (bert_text){&lone, 1};
  if (s.string.data == NULL) return;
  if (!first) s.at = continuation(t, s.string);
  s.bytes = byte < 0 && find_step(t, STEP_BYTES) != NULL && is_bytes(s.string);
  if (change != NULL) {
    s.space_size = unicode_put(change->c, s.space);
    s.spaces = !first || find_step(t, STEP_PREFIX) == NULL;
  }
  put_spelling(w, &s);
}

size_t tokenizer_spell(const tokenizer *t, int32_t id, char *out, size_t room) {
  writer w = {out, room, 0};
  put_token(&w, t, id, 1);
  return w.size;
}

/* ---- In a text ---------------------------------------------------------------- */

static const added_token *find_added(const tokenizer *t, int32_t id) {
  for (size_t i = 0; i < t->added.count; i++)
    if (t->added.tokens[i].id == id) return &t->added.tokens[i];
  return NULL;
}

/* Where the white space before `at` begins, */
static size_t before_spaces(bert_text text, size_t at) {
  while (at > 0) {
    size_t start = at - 1, end;
    while (start > 0 && at - start < 4 && ((unsigned char)text.data[start] & 0xC0) == 0x80) start--;
    end = start;
    if (!unicode_is_space(unicode_next(text.data, text.size, &end)) || end != at) break;
    at = start;
  }
  return at;
}

/* and where that behind it ends, at `limit` at the latest. */
static size_t after_spaces(bert_text text, size_t at, size_t limit) {
  while (at < limit) {
    size_t next = at;
    if (!unicode_is_space(unicode_next(text.data, text.size, &next))) break;
    at = next;
  }
  return at;
}

/* The token's bytes without white space at their ends, and with what the token takes
** with it where spaces are part of tokens. */
static void find_gap(const tokenizer *t, bert_text text, int32_t replaced, size_t *start,
                     size_t *stop) {
  const added_token *added = find_added(t, replaced);
  *start = after_spaces(text, *start, *stop);
  while (*stop > *start && before_spaces(text, *stop) < *stop) *stop = before_spaces(text, *stop);
  if (added == NULL || t->model == MODEL_WORDPIECE) return;
  if (added->lstrip) *start = before_spaces(text, *start);
  if (added->rstrip) *stop = after_spaces(text, *stop, text.size);
}

size_t tokenizer_replace(const tokenizer *t, bert_text text, size_t start, size_t stop,
                         int32_t replaced, int32_t id, char *out, size_t room) {
  writer w = {out, room, 0};
  size_t behind;
  find_gap(t, text, replaced, &start, &stop);
  behind = before_spaces(text, start);
  if (behind > 0 && continuation(t, tokenizer_token(t, id)) > 0) start = behind;
  put(&w, text.data, start);
  put_token(&w, t, id, t->model == MODEL_WORDPIECE ? behind == 0 : start == 0);
  put(&w, text.data + stop, text.size - stop);
  return w.size;
}
