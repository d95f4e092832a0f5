/*
** pretokenizer.c: normalized characters into words.
**
** BertPreTokenizer: white space separates, punctuation is a word each. A word
** beyond the model's limit is unknown whatever it is, so only its ends are
** kept. ASCII letters, most of most texts, go by a table of their own.
*/
#include "pipeline.h"

static void word_clear(word *w) {
  w->size = w->count = 0;
  w->overlong = 0;
  w->linear = 1;
  w->start = w->stop = 0;
  w->solid_count = w->solid_size = w->solid_stop = 0;
  w->solid_overlong = 0;
  w->added = NULL;
}

static int word_is_empty(const word *w) {
  return w->count == 0 && !w->overlong;
}

/* Fills the arrays for what is there: until now each byte was its own. */
static void word_unroll(word *w) {
  size_t at = 0;
  for (size_t i = 0; i < w->count; i++) {
    size_t end = at + 1;
    while (end < w->size && ((unsigned char)w->bytes[end] & 0xC0) == 0x80) end++;
    w->starts[i] = w->start + at;
    w->stops[i] = w->start + end;
    w->ends[i] = (uint32_t)end;
    at = end;
  }
  w->linear = 0;
}

static void word_append(word *w, uint32_t c, size_t start, size_t stop) {
  size_t size;
  if (word_is_empty(w)) w->start = start;
  w->stop = stop;
  if (w->count == w->limit) {
    w->overlong = 1;
    return;
  }
  size = unicode_put(c, w->bytes + w->size);
  if (w->linear && (start != w->start + w->size || stop - start != size)) word_unroll(w);
  w->size += size;
  if (!w->linear) {
    w->starts[w->count] = start;
    w->stops[w->count] = stop;
    w->ends[w->count] = (uint32_t)w->size;
  }
  w->count++;
}

/* What is there will not be trimmed. */
static void word_mark(word *w) {
  w->solid_count = w->count;
  w->solid_size = w->size;
  w->solid_stop = w->stop;
  w->solid_overlong = w->overlong;
}

/* Removes the white space at the end, which belongs to an added token. */
static void word_trim(word *w) {
  w->count = w->solid_count;
  w->size = w->solid_size;
  w->stop = w->solid_stop;
  w->overlong = w->solid_overlong;
}

/* The ASCII letters at the reader's place, as many as there are. */
static void take_ascii(word *w, reader *r) {
  const unsigned char *text = (const unsigned char *)r->text;
  const unsigned char *letters = r->normalizer->ascii;
  size_t at = r->at, stop = r->stop;
  if (at >= stop || text[at] >= 128 || letters[text[at]] == 0) return;
  if (word_is_empty(w)) w->start = at;
  if (w->linear && at == w->start + w->size) {
    size_t room = w->limit - w->count, first = at;
    char *out = w->bytes + w->size;
    if (stop - at > room) stop = at + room;
    for (; at < stop && text[at] < 128 && letters[text[at]] != 0; at++)
      *out++ = (char)letters[text[at]];
    w->size += at - first;
    w->count += at - first;
    w->stop = at;
    stop = r->stop;
  }
  for (; at < stop && text[at] < 128 && letters[text[at]] != 0; at++)
    word_append(w, letters[text[at]], at, at + 1);
  r->at = at;
  word_mark(w);
}

/* The next character or added token: what was read already, or from the
** window, or from the reader. */
static int next_char(pretokenizer *p, normal_char *out, const added_token **token) {
  *token = NULL;
  if (p->held) {
    p->held = 0;
    *out = p->held_char;
    *token = p->held_token;
    return 1;
  }
  return p->window != NULL ? window_next(p->window, out, token) : reader_next(p->reader, out);
}

static void hold(pretokenizer *p, const normal_char *c, const added_token *token) {
  p->held = 1;
  p->held_char = *c;
  p->held_token = token;
}

/* Without a pre-tokenizer all characters go into one word, and the spaces that
** the normalizer put around an ideograph too. */
static void append_plain(word *w, const normal_char *c) {
  if (c->kind == NORMAL_IDEOGRAPH) word_append(w, ' ', c->start, c->stop);
  word_append(w, c->c, c->start, c->stop);
  if (c->kind != NORMAL_SPACE) word_mark(w);
  if (c->kind == NORMAL_IDEOGRAPH) word_append(w, ' ', c->start, c->stop);
}

static int reads_plainly(const pretokenizer *p) {
  return !p->held && p->window == NULL && p->reader->given == p->reader->queued &&
         !p->reader->run.active;
}

int pretokenizer_next(pretokenizer *p, word *out) {
  normal_char c;
  const added_token *token;
  word_clear(out);
  for (;;) {
    if (reads_plainly(p)) take_ascii(out, p->reader);
    if (!next_char(p, &c, &token)) return !word_is_empty(out);
    if (token != NULL && token->lstrip) word_trim(out);
    if (token != NULL || (p->kind == PRETOKENIZER_BERT && c.kind != NORMAL_LETTER)) {
      if (!word_is_empty(out)) {
        if (token != NULL || c.kind != NORMAL_SPACE) hold(p, &c, token);
        return 1;
      }
      if (token == NULL && c.kind == NORMAL_SPACE) continue;
      if (token == NULL) word_append(out, c.c, c.start, c.stop);
      out->added = token;
      out->start = c.start;
      out->stop = c.stop;
      return 1;
    }
    append_plain(out, &c);
  }
}
