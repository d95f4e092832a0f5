/*
** graphemes.c: where extended grapheme clusters begin, read forward, one
** character after the other (UAX #29, rules GB3 to GB999).
*/
#include "characters.h"

static int extends(grapheme_kind k) {
  return k == GRAPHEME_EXTEND || k == GRAPHEME_LINKER || k == GRAPHEME_NON_JOINER ||
         k == GRAPHEME_JOINER;
}

static int is_control(grapheme_kind k) {
  return k == GRAPHEME_CR || k == GRAPHEME_LF || k == GRAPHEME_CONTROL;
}

static int joins_hangul(grapheme_kind a, grapheme_kind b) {
  if (a == GRAPHEME_L)
    return b == GRAPHEME_L || b == GRAPHEME_V || b == GRAPHEME_LV || b == GRAPHEME_LVT;
  if (a == GRAPHEME_LV || a == GRAPHEME_V) return b == GRAPHEME_V || b == GRAPHEME_T;
  return (a == GRAPHEME_LVT || a == GRAPHEME_T) && b == GRAPHEME_T;
}

static int breaks(const grapheme_state *s, grapheme_kind b) {
  grapheme_kind a = s->before;
  if (a == GRAPHEME_CR && b == GRAPHEME_LF) return 0;
  if (is_control(a) || is_control(b)) return 1;
  if (joins_hangul(a, b) || extends(b) || b == GRAPHEME_SPACING || a == GRAPHEME_PREPEND) return 0;
  if (b == GRAPHEME_CONSONANT) return s->conjunct != 2;
  if (b == GRAPHEME_PICTOGRAPH) return s->emoji != 2;
  return !(b == GRAPHEME_REGIONAL && s->regionals % 2 == 1);
}

static void remember(grapheme_state *s, grapheme_kind k) {
  s->any = 1;
  s->before = k;
  s->regionals = k == GRAPHEME_REGIONAL ? s->regionals + 1 : 0;
  if (s->regionals > 2) s->regionals -= 2; /* only odd or even matters */
  if (k == GRAPHEME_CONSONANT)
    s->conjunct = 1;
  else if (k == GRAPHEME_LINKER)
    s->conjunct = s->conjunct != 0 ? 2 : 0;
  else if (k != GRAPHEME_EXTEND && k != GRAPHEME_JOINER)
    s->conjunct = 0;
  if (k == GRAPHEME_PICTOGRAPH)
    s->emoji = 1;
  else if (k == GRAPHEME_JOINER)
    s->emoji = s->emoji == 1 ? 2 : 0;
  else
    s->emoji = s->emoji == 1 && extends(k);
}

int grapheme_begins(grapheme_state *s, uint32_t c) {
  grapheme_kind k = unicode_grapheme_kind(c);
  int begins = !s->any || breaks(s, k);
  remember(s, k);
  return begins;
}
