/*
** splits.c: pre-tokenizers that cut a text at characters of a kind, each alone:
** white space, punctuation, digits, one character; and into runs of word
** characters and others (Whitespace).
*/
#include "chain.h"

static int is_match(const step *p, uint32_t c) {
  switch (p->kind) {
  case STEP_CUT_PUNCTUATION: return unicode_is_punctuation(c);
  case STEP_CUT_NUMBERS: return unicode_is_numeric(c);
  case STEP_CUT_AT: return c == p->c;
  default: return unicode_is_space(c);
  }
}

/* Whether a part begins at a character, given what it and the one before are. */
static int begins(cut_behavior behavior, int match, int before) {
  switch (behavior) {
  case CUT_REMOVED: return 0;
  case CUT_ISOLATED: return match || before;
  case CUT_CONTIGUOUS: return match != before;
  case CUT_MERGED_WITH_PREVIOUS: return before;
  case CUT_MERGED_WITH_NEXT: return match;
  }
  return 0;
}

static int cut_next(stage *s, text_char *out) {
  while (s->from->next(s->from, out)) {
    int match = is_match(s->step, out->c), before = s->matched && !out->begins;
    s->matched = match;
    if (match && s->step->behavior == CUT_REMOVED) {
      s->begins = 1;
      continue;
    }
    out->begins |= s->begins | begins(s->step->behavior, match, before);
    s->begins = 0;
    return 1;
  }
  return 0;
}

/* \w+|[^\w\s]+ : a part begins where the kind of character changes. */
static int words_next(stage *s, text_char *out) {
  while (s->from->next(s->from, out)) {
    int kind = unicode_is_space(out->c) ? 0 : 1 + unicode_is_word(out->c);
    if (kind != s->matched) s->begins = 1;
    s->matched = kind;
    if (out->begins) s->begins = 1;
    if (kind == 0) continue;
    out->begins = s->begins;
    s->begins = 0;
    return 1;
  }
  return 0;
}

stage_function *splits_function(step_kind kind) {
  switch (kind) {
  case STEP_CUT_SPACES:
  case STEP_CUT_PUNCTUATION:
  case STEP_CUT_NUMBERS:
  case STEP_CUT_AT: return cut_next;
  case STEP_CUT_WORDS: return words_next;
  default: return NULL;
  }
}
