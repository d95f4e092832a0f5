/*
** regexmatch.c: whether a pattern matches what is ahead, by trying alternatives
** in order and going back to the last that is left.
*/
#include "regex.h"

/* ---- Sets ---------------------------------------------------------------------- */

/* \w of oniguruma: that of unicode16.c without the joiners. */
static int is_word(uint32_t c) {
  return c != 0x200C && c != 0x200D && unicode_is_word(c);
}

static int item_has(const set_item *item, uint32_t c) {
  switch (item->kind) {
  case SET_RANGE: return c >= item->first && c <= item->last;
  case SET_CATEGORIES:
    return (int)(item->categories >> unicode_category_of(c) & 1) != item->negated;
  case SET_SPACE: return unicode_is_space(c) != item->negated;
  case SET_WORD: return is_word(c) != item->negated;
  }
  return 0;
}

int regex_set_has(const regex *r, const regex_set *set, uint32_t c) {
  if (c < 128 && set->ascii[c] < 2) return set->ascii[c];
  for (size_t i = 0; i < set->count; i++)
    if (item_has(&r->items[set->first + i], c)) return !set->negated;
  return set->negated;
}

/* ---- Going back ------------------------------------------------------------------ */

/* Where to go on when what was tried last fails: at code `at`, behind `position`
** characters; of a run any number of them down to `least`, or up to `most`. */
typedef struct choice {
  size_t at, position, least, most;
  int lazy;
} choice;

enum { CHOICES_HERE = 48 };
typedef struct choices {
  choice here[CHOICES_HERE];
  choice *items;
  size_t count, capacity;
} choices;

static int push(choices *list, choice c) {
  if (list->count == CHOICES_HERE && list->items == list->here) {
    choice *items = memory_alloc(sizeof list->here * 2);
    if (items == NULL) return 0;
    for (size_t i = 0; i < list->count; i++) items[i] = list->here[i];
    list->items = items;
    list->capacity = CHOICES_HERE * 2;
  } else if (list->items != list->here &&
             !memory_grow((void **)&list->items, list->count, &list->capacity, sizeof c)) {
    return 0;
  }
  list->items[list->count++] = c;
  return 1;
}

static size_t match_from(const regex *r, stage *s, size_t at, size_t position, size_t *end);

/* The character at a position, if it is of the part that begins at the first. */
static const text_char *look(stage *s, size_t position) {
  const text_char *c = stage_peek(s, position);
  return c != NULL && position > 0 && c->begins ? NULL : c;
}

static int set_matches(const regex *r, const regex_code *code, stage *s, size_t position) {
  const text_char *c = look(s, position);
  return c != NULL && regex_set_has(r, &r->sets[code->a], c->c);
}

/* Takes a run; 0: it is too short, -1: out of memory. */
static int take_run(const regex *r, size_t at, stage *s, size_t *position, choices *list) {
  const regex_code *code = &r->code[at];
  size_t first = *position, most = code->mode == REPEAT_LAZY ? code->min : code->max;
  choice c = {at + 1, 0, first + code->min, 0, code->mode == REPEAT_LAZY};
  while (*position - first < most && set_matches(r, code, s, *position)) ++*position;
  if (*position - first < code->min) return 0;
  c.position = *position;
  c.most = code->max == SIZE_MAX ? SIZE_MAX : first + code->max;
  if (code->mode == REPEAT_POSSESSIVE || (!c.lazy && c.position == c.least) ||
      (c.lazy && c.position == c.most))
    return 1;
  return push(list, c) ? 1 : -1;
}

/* Goes back to the last choice; 0: there is none. */
static int go_back(const regex *r, stage *s, choices *list, size_t *at, size_t *position) {
  while (list->count > 0) {
    choice *c = &list->items[list->count - 1];
    *at = c->at;
    if (c->most == 0) { /* an alternative */
      *position = c->position;
      list->count--;
      return 1;
    }
    if (c->lazy && c->position < c->most && set_matches(r, &r->code[c->at - 1], s, c->position)) {
      *position = ++c->position;
      return 1;
    }
    if (!c->lazy && c->position > c->least) {
      *position = --c->position;
      return 1;
    }
    list->count--;
  }
  return 0;
}

/* One instruction: 1: goes on, 0: fails, -1: out of memory. */
static int execute(const regex *r, stage *s, size_t *at, size_t *position, choices *list) {
  const regex_code *code = &r->code[*at];
  size_t end;
  int found;
  switch (code->op) {
  case OP_SET:
    if (!set_matches(r, code, s, *position)) return 0;
    ++*position;
    ++*at;
    return 1;
  case OP_RUN:
    found = take_run(r, *at, s, position, list);
    ++*at;
    return found;
  case OP_SPLIT:
    if (!push(list, (choice){code->b, *position, 0, 0, 0})) return -1;
    *at = code->a;
    return 1;
  case OP_AHEAD:
  case OP_ATOMIC:
    found = match_from(r, s, *at + 1, *position, &end) != 0;
    if (code->op == OP_ATOMIC && found) *position = end;
    *at = code->a;
    return code->op == OP_ATOMIC ? found : found != (int)code->b;
  default: *at = code->a; return 1;
  }
}

/* 1 when the code from `at` on matches at `position`, up to *end. */
static size_t match_from(const regex *r, stage *s, size_t at, size_t position, size_t *end) {
  choices list;
  int going = 1;
  list.items = list.here;
  list.count = list.capacity = 0;
  while (going > 0 && r->code[at].op != OP_DONE) {
    going = execute(r, s, &at, &position, &list);
    if (going == 0) going = go_back(r, s, &list, &at, &position);
  }
  if (list.items != list.here) memory_free(list.items);
  if (going < 0) s->run->failed = 1;
  *end = position;
  return going > 0;
}

size_t regex_match(const regex *r, stage *s) {
  size_t end;
  return match_from(r, s, 0, 0, &end) ? end : 0;
}
