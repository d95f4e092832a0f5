/*
** gpt2.c: the pattern by which ByteLevel cuts a text, that of GPT-2:
**
**   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
**
** Every character belongs to a match, and two characters of lookahead tell where
** matches begin: a run of one kind goes on until the kind changes, with a space
** before it; of white space before something else, the last is left for that.
*/
#include "chain.h"

enum { GPT2_START, GPT2_LETTER, GPT2_NUMBER, GPT2_OTHER, GPT2_SPACE };

static int kind_of(uint32_t c) {
  unicode_category category;
  if (c < 0x80) {
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') return GPT2_LETTER;
    if (c >= '0' && c <= '9') return GPT2_NUMBER;
    return unicode_is_space(c) ? GPT2_SPACE : GPT2_OTHER;
  }
  if (unicode_is_space(c)) return GPT2_SPACE;
  category = unicode_category_of(c);
  if (category <= UNICODE_LO) return GPT2_LETTER;
  return category >= UNICODE_ND && category <= UNICODE_NO ? GPT2_NUMBER : GPT2_OTHER;
}

/* The character `i` ahead if it is of the same part; the ones before it are. */
static const text_char *peek_in_part(stage *s, size_t i) {
  const text_char *c = stage_peek(s, i);
  return c != NULL && c->begins ? NULL : c;
}

/* The characters behind an apostrophe that belong to it: s, t, re, ve, m, ll, d. */
static size_t contraction(stage *s) {
  const text_char *c = peek_in_part(s, 1);
  uint32_t first = c == NULL ? 0 : c->c;
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 1;
  if (first != 'r' && first != 'v' && first != 'l') return 0;
  c = peek_in_part(s, 2);
  return c != NULL && c->c == (first == 'l' ? 'l' : 'e') ? 2 : 0;
}

/* Whether a character of kind `kind` goes on the match. */
static int goes_on(stage *s, int kind) {
  const text_char *next;
  if (kind != s->mode) return 0;
  if (kind != GPT2_SPACE) return 1;
  next = peek_in_part(s, 1);
  return next == NULL || kind_of(next->c) == GPT2_SPACE;
}

/* A match begins with the character ahead: what goes on it. */
static void start_match(stage *s, uint32_t c, int kind) {
  const text_char *next;
  s->mode = kind;
  if (c == '\'') {
    s->part = contraction(s);
    if (s->part > 0) s->mode = GPT2_START;
  } else if (c == ' ') {
    next = peek_in_part(s, 1);
    if (next != NULL) s->mode = kind_of(next->c);
  }
}

int gpt2_next(stage *s, text_char *out) {
  const text_char *c = stage_peek(s, 0);
  int begins = 0, kind;
  if (c == NULL) return 0;
  if (s->part > 0) {
    s->part--;
  } else {
    kind = kind_of(c->c);
    begins = c->begins || !goes_on(s, kind);
    if (begins) start_match(s, c->c, kind);
  }
  *out = queue_take(&s->ahead);
  out->begins = begins;
  return 1;
}
