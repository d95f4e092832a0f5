/*
** forms.c: the normalization forms NFC, NFD, NFKC and NFKD (UAX #15).
**
** Characters are decomposed, marks put in the order of their classes as soon as
** a starter shows that there are no more, and for NFC and NFKC composed again.
** What is below U+0300 and is followed by such a character goes through
** untouched, if the form leaves it alone.
*/
#include "chain.h"

int forms_begin(stage *s) {
  if (s->forms == NULL) {
    s->forms = memory_zero(sizeof *s->forms);
    if (s->forms == NULL) return 0;
  }
  transform_reset(&s->forms->transform, 0);
  s->forms->marks.count = s->forms->blocked.count = 0;
  s->forms->has_base = s->forms->last_class = 0;
  return 1;
}

void forms_end(stage *s) {
  if (s->forms == NULL) return;
  memory_free(s->forms->transform.old.items);
  memory_free(s->forms->marks.items);
  memory_free(s->forms->blocked.items);
  memory_free(s->forms);
}

static int composes(const stage *s) {
  return s->step->kind == STEP_NFC || s->step->kind == STEP_NFKC;
}

static int is_compatible(const stage *s) {
  return s->step->kind == STEP_NFKC || s->step->kind == STEP_NFKD;
}

/* ---- Composing ----------------------------------------------------------------- */

static void put(stage *s, const form_item *item) {
  stage_make(s, transform_put(&s->forms->transform, item->c, item->change));
}

static void list_add(stage *s, form_list *list, form_item item) {
  if (!memory_grow((void **)&list->items, list->count, &list->capacity, sizeof *list->items)) {
    s->run->failed = 1;
    return;
  }
  list->items[list->count++] = item;
}

/* Hands on the base and what stands behind it. */
static void release(stage *s) {
  form_state *f = s->forms;
  if (f->has_base) put(s, &f->base);
  for (size_t i = 0; i < f->blocked.count; i++) put(s, &f->blocked.items[i]);
  f->blocked.count = 0;
  f->has_base = f->last_class = 0;
}

/* Takes the next character in order: last_class is that of the mark before it
** which did not compose, or 0. */
static void compose(stage *s, const form_item *item) {
  form_state *f = s->forms;
  uint32_t composed = 0;
  if (!f->has_base) {
    f->has_base = item->class == 0;
    f->base = *item;
    if (!f->has_base) put(s, item);
    return;
  }
  if (f->last_class == 0 || f->last_class < item->class)
    composed = unicode_compose(&s->run->chain->compositions, f->base.c, item->c);
  if (composed != 0) {
    f->base.c = composed;
    f->base.change += item->change - 1;
  } else if (item->class == 0) {
    release(s);
    f->has_base = 1;
    f->base = *item;
  } else {
    list_add(s, &f->blocked, *item);
    f->last_class = item->class;
    if (f->blocked.count >= AHEAD_MAX) release(s);
  }
}

/* ---- Decomposing ------------------------------------------------------------------ */

/* Puts marks in the order of their classes, those of one class as they were. */
static void sort_marks(form_item *items, form_item *spare, size_t count) {
  size_t middle = count / 2, a = 0, b = middle;
  if (count < 2) return;
  sort_marks(items, spare, middle);
  sort_marks(items + middle, spare, count - middle);
  if (items[middle - 1].class <= items[middle].class) return;
  for (size_t i = 0; i < count; i++)
    spare[i] =
        b == count || (a < middle && items[a].class <= items[b].class) ? items[a++] : items[b++];
  for (size_t i = 0; i < count; i++) items[i] = spare[i];
}

/* All marks are there: hands them on in order. */
static void order_marks(stage *s) {
  form_list *marks = &s->forms->marks;
  if (marks->count > 1) {
    form_item *spare = memory_alloc(memory_product(marks->count, sizeof *spare));
    if (spare == NULL) {
      s->run->failed = 1;
      return;
    }
    sort_marks(marks->items, spare, marks->count);
    memory_free(spare);
  }
  for (size_t i = 0; i < marks->count; i++) {
    if (composes(s))
      compose(s, &marks->items[i]);
    else
      put(s, &marks->items[i]);
  }
  marks->count = 0;
}

static void decompose(stage *s, const text_char *c) {
  uint32_t parts[UNICODE_COMPATIBLE];
  int count =
      is_compatible(s) ? unicode_decompose_compatible(c->c, parts) : unicode_decompose(c->c, parts);
  if (!transform_read(&s->forms->transform, c)) s->run->failed = 1;
  for (int i = 0; i < count; i++) {
    form_item item = {parts[i], unicode_combining_class(parts[i]), i > 0};
    if (item.class != 0) {
      list_add(s, &s->forms->marks, item);
      if (s->forms->marks.count < AHEAD_MAX) continue;
    }
    order_marks(s);
    if (item.class != 0) continue;
    if (composes(s))
      compose(s, &item);
    else
      put(s, &item);
  }
}

/* Whether the form leaves a character alone that is not followed by a mark. */
static int stays(const stage *s, uint32_t c) {
  return c < (is_compatible(s) ? 0xA0u : composes(s) ? 0x300u : 0xC0u);
}

int forms_next(stage *s, text_char *out) {
  const text_char *next;
  text_char c;
  if (stage_give(s, out)) return 1;
  do {
    if (stage_peek(s, 0) == NULL) return 0;
    c = queue_take(&s->ahead);
    next = stage_peek(s, 0);
    if (stays(s, c.c) && !s->forms->has_base && s->forms->marks.count == 0 &&
        (next == NULL || next->c < 0x300)) {
      *out = c;
      return 1;
    }
    decompose(s, &c);
    if (next == NULL || next->c < 0x300) { /* no mark follows, nothing that composes */
      order_marks(s);
      release(s);
    }
  } while (!stage_give(s, out));
  return 1;
}
