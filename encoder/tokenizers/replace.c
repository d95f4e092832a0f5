/*
** replace.c: steps that look for a pattern: Replace, and Split.
*/
#include "chain.h"

/* What is put in the place of a match stands for its last character. */
int replace_next(stage *s, text_char *out) {
  for (;;) {
    size_t size;
    text_char last;
    if (stage_give(s, out)) return 1;
    if (queue_size(&s->ahead) == 0) { /* most characters begin no match */
      if (s->ended || !s->from->next(s->from, out)) return 0;
      if (!regex_begins(s->step->pattern, out->c)) return 1;
      if (!queue_push(&s->ahead, *out)) s->run->failed = 1;
    }
    if (stage_peek(s, 0) == NULL) return 0;
    size = regex_match(s->step->pattern, s);
    last = queue_take(&s->ahead);
    if (size == 0) {
      *out = last;
      return 1;
    }
    while (--size > 0) last = queue_take(&s->ahead);
    for (size_t i = 0; i < s->step->content_size; i++)
      stage_make(s, (text_char){s->step->content[i], 0, last.start, last.stop});
  }
}

/* Whether a stretch of text, matched or between matches, begins a part. */
static int begins(cut_behavior behavior, int match, int before) {
  switch (behavior) {
  case CUT_CONTIGUOUS: return match != before;
  case CUT_MERGED_WITH_PREVIOUS: return !match || before;
  case CUT_MERGED_WITH_NEXT: return match || !before;
  default: return 1;
  }
}

/* A stretch begins with the character ahead: `mode` is 1 for a match, 2 for what
** is between, of which the end is not known yet; s->part characters of it are. */
static void start_stretch(stage *s, int new_part) {
  const text_char *c = stage_peek(s, 0);
  size_t size = regex_begins(s->step->pattern, c->c) ? regex_match(s->step->pattern, s) : 0;
  int mode = size > 0 ? 1 : 2, match = (mode == 1) != s->step->flag;
  s->part = size > 0 ? size : 1;
  if (new_part)
    s->begins = 1;
  else if (mode == 1 || s->mode == 1)
    s->begins |= begins(s->step->behavior, match, s->matched);
  s->mode = mode;
  s->matched = match;
}

int pattern_next(stage *s, text_char *out) {
  const text_char *c;
  while ((c = stage_peek(s, 0)) != NULL) {
    if (s->part == 0 || c->begins) start_stretch(s, c->begins);
    *out = queue_take(&s->ahead);
    s->part--;
    if (s->matched && s->step->behavior == CUT_REMOVED) continue;
    out->begins = s->begins;
    s->begins = 0;
    return 1;
  }
  return 0;
}
