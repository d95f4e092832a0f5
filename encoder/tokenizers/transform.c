/*
** transform.c: the bytes that normalized characters stand for.
**
** The reference lists what a normalizer makes as characters with a change each,
** and gives them bytes by counting: character after character takes the place of
** the next old one. Where a normalizer puts marks in order, or loses count (a
** character map that removes the first character of a text), the bytes follow
** the count and not the characters. So this counts, too.
*/
#include "chain.h"

#include <string.h>

int queue_grow(char_queue *q) {
  if (q->head <= q->capacity / 2)
    return memory_grow((void **)&q->items, q->count, &q->capacity, sizeof *q->items);
  memmove(q->items, q->items + q->head, queue_size(q) * sizeof *q->items);
  q->count -= q->head;
  q->head = 0;
  return 1;
}

void transform_reset(transform *t, size_t begin) {
  t->old.head = t->old.count = 0;
  t->start = t->stop = begin;
}

void transform_skip(transform *t, size_t count) {
  while (count-- > 0 && queue_size(&t->old) > 0) {
    text_char c = queue_take(&t->old);
    t->start = c.start;
    t->stop = c.stop;
  }
}

void transform_note(transform *t, const text_char *c) {
  t->start = c->start;
  t->stop = c->stop;
}

int transform_read(transform *t, const text_char *c) {
  if (queue_size(&t->old) >= AHEAD_MAX) transform_skip(t, 1);
  return queue_push(&t->old, *c);
}

text_char transform_put(transform *t, uint32_t c, long change) {
  text_char out = {c, 0, t->start, t->stop};
  if (change > 0) return out;
  transform_skip(t, 1);
  out.start = t->start;
  out.stop = t->stop;
  transform_skip(t, (size_t)-change);
  return out;
}
