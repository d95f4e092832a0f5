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

/* The next item of the run; 0 at its end. */
static int next_item(reader *r, mark_cursor *cursor, mark_item *out) {
  expansion e;
  while (cursor->at < r->run.stop) {
    size_t at = cursor->at, start;
    if (!reader_source(r, &at, &start, &e) || start >= r->run.stop) return 0;
    if (cursor->item < e.count) {
      int i = cursor->item++;
      out->c = e.c[i];
      out->class = unicode_combining_class(e.c[i]);
      out->first = e.first >> i & 1;
      return 1;
    }
    cursor->at = at;
    cursor->item = 0;
  }
  return 0;
}

static int stays(const mark_item *item) {
  return item->class > 0 && !unicode_is_mark(item->c);
}

/* Goes to the next class that has marks to give out; 0 when there is none. */
static int next_class(reader *r) {
  mark_run *run = &r->run;
  mark_cursor cursor = {run->start, 0};
  mark_item item;
  int class = 256;
  while (next_item(r, &cursor, &item))
    if (stays(&item) && item.class > run->class && item.class < class) class = item.class;
  if (class == 256) return 0;
  run->class = class;
  run->order = 0;
  cursor = run->cursor = (mark_cursor){run->start, 0};
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
  *run = (mark_run){.start = start, .source_at = start, .source_start = start};
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
