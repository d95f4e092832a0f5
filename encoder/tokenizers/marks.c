/*
** marks.c: a run of combining marks in canonical order, without a buffer.
**
** Decomposition puts the marks behind a starter in the order of their classes.
** Nonspacing marks are removed afterwards, so order shows only in the few marks
** that stay (spacing marks with a class, and marks newer than the reference's
** tables) and in which bytes of the original they get: the reference gives the
** n-th character that replaces one, in the new order, the bytes of the n-th
** character of the original. A run may be as long as the text, so it is not
** sorted: it is read again for each class that has marks to give out, of which
** Unicode 9 has a handful.
*/
#include "pipeline.h"

typedef struct mark_item {
  uint32_t c;
  int class;
  int first; /* replaces a character of the original */
} mark_item;

static mark_cursor first_item(const mark_run *run) {
  mark_cursor cursor;
  cursor.at = run->start;
  cursor.item = cursor.e.count = 0;
  return cursor;
}

/* The next item of the run; 0 at its end. */
static int next_item(reader *r, mark_cursor *cursor, mark_item *out) {
  size_t start;
  int i;
  while (cursor->item >= cursor->e.count) {
    if (cursor->at >= r->run.stop || !reader_source(r, &cursor->at, &start, &cursor->e)) return 0;
    cursor->item = 0;
  }
  i = cursor->item++;
  out->c = cursor->e.c[i];
  out->class = unicode_combining_class(out->c);
  out->first = cursor->e.first >> i & 1;
  return 1;
}

static int stays(const mark_item *item) {
  return item->class > 0 && !unicode_is_mark(item->c);
}

/* Goes to the next class that has marks to give out; 0 when there is none. */
static int next_class(reader *r) {
  mark_run *run = &r->run;
  mark_cursor cursor = first_item(run);
  mark_item item;
  int class = 256;
  while (next_item(r, &cursor, &item))
    if (stays(&item) && item.class > run->class && item.class < class) class = item.class;
  if (class == 256) return 0;
  run->class = class;
  run->order = 0;
  cursor = run->cursor = first_item(run);
  while (next_item(r, &cursor, &item))
    if (item.class < class && item.first) run->order++;
  return 1;
}

/* Gives *out the bytes of character `index` of the run. */
static void locate(reader *r, size_t index, normal_char *out) {
  mark_run *run = &r->run;
  expansion e;
  while (run->source_index <= index && reader_source(r, &run->source_at, &run->source_start, &e))
    for (unsigned first = e.first; first != 0; first &= first - 1) run->source_index++;
  out->start = run->source_start;
  out->stop = run->source_at;
}

void marks_begin(reader *r, size_t start, int after_starter) {
  mark_run *run = &r->run;
  size_t at = start, next = start;
  expansion e;
  run->start = run->source_at = run->source_start = start;
  run->source_index = 0;
  run->class = 0;
  for (int first = 1; reader_source(r, &at, &next, &e); first = 0) {
    if (unicode_combining_class(e.c[0]) == 0 && !(first && after_starter)) break;
    run->stop = at;
  }
  run->active = next_class(r);
  if (!run->active) r->at = run->stop;
}

int marks_next(reader *r, normal_char *out) {
  mark_run *run = &r->run;
  mark_item item;
  do {
    while (next_item(r, &run->cursor, &item)) {
      size_t index = run->order;
      if (item.class != run->class) continue;
      if (item.first) run->order++;
      if (!stays(&item)) continue;
      if (!item.first && index > 0) index--;
      out->c = item.c;
      locate(r, index, out);
      return 1;
    }
  } while (next_class(r));
  run->active = 0;
  r->at = run->stop;
  return 0;
}
