/*
** steps.c: normalizers that look at one character at a time, and what stands
** before a text or at its ends.
*/
#include "chain.h"

/* ---- Removed or replaced by one ---------------------------------------------- */

static int clean_next(stage *s, text_char *out) {
  while (s->from->next(s->from, out)) {
    int dropped = 0;
    out->c = normalizer_clean(out->c, &dropped);
    if (!dropped) return 1;
  }
  return 0;
}

static int strip_marks_next(stage *s, text_char *out) {
  while (s->from->next(s->from, out))
    if (!unicode_is_mark(out->c)) return 1;
  return 0;
}

static int strip_accents_next(stage *s, text_char *out) {
  while (s->from->next(s->from, out))
    if (!unicode_is_any_mark(out->c)) return 1;
  return 0;
}

/* As SentencePiece prepares text for machine translation. */
static int nmt_drops(uint32_t c) {
  return (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
         c == 0x9F;
}

static int nmt_is_space(uint32_t c) {
  return c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
         c == 0xFFFD;
}

static int nmt_next(stage *s, text_char *out) {
  while (s->from->next(s->from, out)) {
    if (nmt_drops(out->c)) continue;
    if (nmt_is_space(out->c)) out->c = ' ';
    return 1;
  }
  return 0;
}

static int change_next(stage *s, text_char *out) {
  if (!s->from->next(s->from, out)) return 0;
  if (out->c == ' ') out->c = s->step->c;
  return 1;
}

/* ---- Replaced by several ------------------------------------------------------- */

static int ideographs_next(stage *s, text_char *out) {
  text_char c;
  if (stage_give(s, out)) return 1;
  if (!s->from->next(s->from, out)) return 0;
  if (!unicode_is_chinese(out->c)) return 1;
  c = *out;
  stage_make(s, c);
  c.c = out->c = ' ';
  stage_make(s, c);
  return 1;
}

static int lowercase_next(stage *s, text_char *out) {
  uint32_t lower[2];
  text_char c;
  if (stage_give(s, out)) return 1;
  if (!s->from->next(s->from, out)) return 0;
  if (unicode_lower(out->c, lower) > 1) {
    c = *out;
    c.c = lower[1];
    stage_make(s, c);
  }
  out->c = lower[0];
  return 1;
}

/* The character that ByteLevel puts for a byte: printable ones of Latin-1 stand
** for themselves, the others for those from U+0100 on, in order. */
uint32_t chain_byte_char(unsigned char byte) {
  if (byte <= ' ') return 0x100u + byte;
  if (byte < 0x7F) return byte;
  if (byte < 0xA1) return 0x121u + byte - 0x7F;
  return byte == 0xAD ? 0x143 : byte;
}

static int bytes_next(stage *s, text_char *out) {
  char bytes[4];
  size_t size;
  text_char c;
  if (stage_give(s, out)) return 1;
  if (!s->from->next(s->from, out)) return 0;
  if (out->c < 0x80) {
    out->c = chain_byte_char((unsigned char)out->c);
    return 1;
  }
  size = unicode_put(out->c, bytes);
  c = *out;
  c.begins = 0;
  for (size_t i = 1; i < size; i++) {
    c.c = chain_byte_char((unsigned char)bytes[i]);
    stage_make(s, c);
  }
  out->c = chain_byte_char((unsigned char)bytes[0]);
  return 1;
}

/* ---- Before and at the ends ------------------------------------------------------ */

/* Hands on the first character ahead. */
static int give_ahead(stage *s, text_char *out) {
  if (stage_peek(s, 0) == NULL) return 0;
  *out = queue_take(&s->ahead);
  return 1;
}

static int strip_next(stage *s, text_char *out) {
  const text_char *c;
  size_t spaces = 0;
  if (!s->begun && (s->step->flag & 1))
    while ((c = stage_peek(s, 0)) != NULL && unicode_is_space(c->c)) queue_take(&s->ahead);
  s->begun = 1;
  if ((s->step->flag & 2) && s->part == 0) { /* white space is kept if something follows */
    while ((c = stage_peek(s, spaces)) != NULL && unicode_is_space(c->c)) spaces++;
    if (c == NULL && spaces < AHEAD_MAX) return 0;
    s->part = spaces + 1;
  }
  if (s->part > 0) s->part--;
  return give_ahead(s, out);
}

static int prepend_next(stage *s, text_char *out) {
  const text_char *c;
  if (stage_give(s, out)) return 1;
  if (s->begun) return give_ahead(s, out);
  s->begun = 1;
  c = stage_peek(s, 0);
  if (c == NULL) return 0;
  for (size_t i = 0; i < s->step->content_size; i++)
    stage_make(s, (text_char){s->step->content[i], 0, c->start, c->stop});
  return stage_give(s, out) || give_ahead(s, out);
}

/* A character before each part of the text that does not begin with it. */
static int prefix_next(stage *s, text_char *out) {
  text_char c;
  if (stage_give(s, out)) return 1;
  if (!s->from->next(s->from, out)) return 0;
  if (!out->begins || out->c == s->step->c || (s->step->flag && out->start != 0)) return 1;
  c = *out;
  c.begins = 0;
  stage_make(s, c);
  out->c = s->step->c;
  return 1;
}

stage_function *steps_function(step_kind kind) {
  switch (kind) {
  case STEP_CLEAN: return clean_next;
  case STEP_IDEOGRAPHS: return ideographs_next;
  case STEP_STRIP_MARKS: return strip_marks_next;
  case STEP_LOWERCASE: return lowercase_next;
  case STEP_STRIP_ACCENTS: return strip_accents_next;
  case STEP_NMT: return nmt_next;
  case STEP_STRIP: return strip_next;
  case STEP_PREPEND: return prepend_next;
  case STEP_BYTES: return bytes_next;
  case STEP_PREFIX: return prefix_next;
  case STEP_CHANGE: return change_next;
  default: return NULL;
  }
}
