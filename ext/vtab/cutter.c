/*
** cutter.c: the chunks of a text of any length, one after the other.
**
** bert_split wants memory for all tokens of a text, some thirty bytes for each
** byte in the worst case. So a long text is split in windows, and the next window
** begins where a chunk begins. The chunks come out as those of the whole text: a
** chunk follows from where it begins and from the tokens behind it, and tokens do
** not depend on what stands before white space. Where a window has no place to
** part, in a text without spaces, it is made larger.
*/
#include "vtab.h"

#include <string.h>

enum { FIRST_WINDOW = 256 << 10 }; /* bytes */

void cutter_begin(cutter *c, vtab *v, const bert_model *model, const joined_text *text) {
  memset(c, 0, sizeof *c);
  c->v = v;
  c->model = model;
  c->text = (bert_text){text->data != NULL ? text->data : "", text->size};
}

void cutter_end(cutter *c) {
  bert_chunks_free(c->chunks);
  c->chunks = NULL;
}

static int is_space(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}

/* Whether the word after byte `at` of a window ends inside it, and so is whole. */
static int whole_word_follows(const char *window, size_t size, size_t at) {
  while (at < size && is_space(window[at])) at++;
  while (at < size && !is_space(window[at])) at++;
  return at < size;
}

/* The last chunk that the next window can begin with: it begins beside a space,
** and the one before it ends where no more text could make it end elsewhere. 0
** when there is none. */
static size_t find_parting(const cutter *c, const char *window, size_t size) {
  for (size_t i = c->count; i-- > 1;) {
    size_t start = c->chunks[i].start;
    if (start > 0 && (is_space(window[start]) || is_space(window[start - 1])) &&
        whole_word_follows(window, size, c->chunks[i - 1].stop))
      return i;
  }
  return 0;
}

/* Splits the window at c->base; chunks [0, c->count) of it are to be given out. */
static int split_window(cutter *c) {
  const declaration *d = &c->v->declared;
  size_t rest = c->text.size - c->base;
  bert_error error = {BERT_OK, ""};
  for (size_t size = FIRST_WINDOW;; size *= 2) {
    bert_text window = {c->text.data + c->base, rest < size ? rest : size};
    if (connection_interrupted(c->v->connection)) return SQLITE_INTERRUPT;
    cutter_end(c);
    if (bert_split(c->model, window, d->chunk_tokens, d->overlap, &c->chunks, &c->count, &error) !=
        BERT_OK)
      return vtab_fail_bert(c->v, &error);
    c->is_last = window.size == rest;
    if (c->is_last) return SQLITE_OK;
    c->count = find_parting(c, window.data, window.size);
    if (c->count > 0) return SQLITE_OK;
  }
}

int cutter_next(cutter *c, bert_chunk *chunk, int *is_last) {
  if (c->chunks != NULL && c->at == c->count) {
    c->base += c->chunks[c->count].start; /* there is one more: not the last window */
    c->at = 0;
    cutter_end(c);
  }
  int rc = c->chunks == NULL ? split_window(c) : SQLITE_OK;
  if (rc != SQLITE_OK) return rc;
  *chunk = c->chunks[c->at++];
  chunk->start += c->base;
  chunk->stop += c->base;
  *is_last = c->is_last && c->at == c->count;
  return SQLITE_OK;
}
