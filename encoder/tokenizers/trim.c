/*
** trim.c: trim_offsets, which leaves the white space at the ends of a token out of
** its bytes. The reference counts characters of the token's string, and leaves out
** as many of the text.
*/
#include "tokenizer.h"

margins trim_margins(const char *text, size_t size) {
  margins m = {0};
  for (size_t at = 0; at < size;) margins_add(&m, unicode_next(text, size, &at));
  return m;
}

static uint16_t bounded(size_t count) {
  return (uint16_t)(count > UINT16_MAX ? UINT16_MAX : count);
}

bert_status trim_build(postprocessor *p, const vocabulary *v, bert_error *error) {
  if (p->trims == 0) return BERT_OK;
  p->margin_count = (size_t)v->entries[v->count - 1].id + 1;
  p->margins = memory_zero(memory_product(p->margin_count, sizeof *p->margins));
  if (p->margins == NULL) return error_nomem(error, "reading the vocabulary");
  for (size_t i = 0; i < v->count; i++) {
    margins m = trim_margins(v->entries[i].text.data, v->entries[i].text.size);
    p->margins[v->entries[i].id] = (token_margins){bounded(m.lead), bounded(m.trail)};
  }
  return BERT_OK;
}

/* Moves *start behind `count` characters of the text, and not beyond `stop`. */
static void move_on(bert_text text, size_t *start, size_t stop, size_t count) {
  while (count-- > 0 && *start < stop) unicode_next(text.data, text.size, start);
}

/* Moves *stop before `count` characters, and not before `start`; not at all when
** the text has fewer before it. */
static void move_back(bert_text text, size_t start, size_t *stop, size_t count) {
  size_t at = *stop, moved = 0;
  while (moved < count && at > 0) {
    unicode_previous(text.data, at, &at);
    moved++;
  }
  if (moved == count) *stop = at > start ? at : start;
}

void trim_last(const postprocessor *p, bert_text text, token_list *list, const margins *m) {
  found_token *token = &list->items[list->count - 1];
  size_t lead = 0, trail = 0;
  if (m != NULL) {
    lead = m->lead;
    trail = m->trail;
  } else if ((size_t)token->id < p->margin_count) {
    lead = p->margins[token->id].lead;
    trail = p->margins[token->id].trail;
  }
  if (token->stop > text.size) return;
  for (int i = 0; i < p->trims && (lead > 0 || trail > 0); i++) {
    int first = list->count == 1 || token->start == 0;
    if (!(first && p->prefix_space[i] && lead == 1))
      move_on(text, &token->start, token->stop, lead);
    move_back(text, token->start, &token->stop, trail);
  }
}
