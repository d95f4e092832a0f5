/*
** columns.c: how wide a text is in a terminal.
**
** Characters have widths of their own (unicode_columns), and emoji are written
** as sequences that take two columns together: a pictograph with a skin tone,
** with a variation selector that asks for the picture, or joined with others;
** a digit in a keycap. Terminals that draw the parts one by one differ; there
** is no answer that is right for all. Two regional indicators, a flag, are two
** columns because each is one.
*/
#include "analysis.h"

#include "../tokenizers/tokenizers.h"

enum {
  JOINER = 0x200D,
  PICTURE_SELECTOR = 0xFE0F,
  SKIN_TONE_FIRST = 0x1F3FB,
  SKIN_TONE_LAST = 0x1F3FF
};

/* The sequence that is being read. */
typedef struct sequence {
  int width;      /* of what began it; 2 once it is a picture */
  int pictograph; /* it began with a pictograph, */
  int keycap;     /*   or with what may stand in a keycap */
  int joined;     /* the last character was a joiner */
} sequence;

static int begin_sequence(sequence *s, uint32_t c) {
  s->width = unicode_columns(c);
  s->pictograph = unicode_is_pictograph(c);
  s->keycap = (c >= '0' && c <= '9') || c == '#' || c == '*';
  s->joined = 0;
  return s->width;
}

/* What `c` adds to the columns. */
static int add_character(sequence *s, uint32_t c) {
  int tone = c >= SKIN_TONE_FIRST && c <= SKIN_TONE_LAST, missing = 2 - s->width;
  int picture = (s->pictograph && (tone || c == PICTURE_SELECTOR)) ||
                (s->keycap && c == PICTURE_SELECTOR) || (s->joined && unicode_is_pictograph(c));
  if (picture) {
    s->width = 2;
    s->joined = 0;
    return missing;
  }
  if (unicode_columns(c) > 0) return begin_sequence(s, c);
  s->joined = s->pictograph && c == JOINER;
  return 0;
}

int bert_text_columns(const char *text, size_t size) {
  sequence s = {0, 0, 0, 0};
  int columns = 0;
  for (size_t at = 0; at < size;) columns += add_character(&s, unicode_next(text, size, &at));
  return columns;
}
