/*
** charsmap.c: Precompiled, the character map of SentencePiece models.
**
** The map is a double array trie (as in darts-clone) from UTF-8 to places in a
** block of NUL-terminated replacements. The reference looks grapheme clusters of
** less than 6 bytes up whole, others character by character, and takes the
** shortest entry that what it looks up begins with, as if that were all of it.
*/
#include "chain.h"

#include <string.h>

struct charsmap {
  uint32_t *units; /* [unit_count] */
  size_t unit_count;
  char *texts; /* [text_size] */
  size_t text_size;
  unsigned char plain[128]; /* 1: an ASCII character that no entry begins with */
};

enum { WHOLE_CLUSTER = 6 };

/* ---- Reading it ---------------------------------------------------------------- */

static int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes text[size] to out[size / 4 * 3]; the bytes, or -1 when it is no base64. */
static int64_t base64_decode(const char *text, size_t size, unsigned char *out) {
  size_t bytes = 0;
  if (size % 4 != 0) return -1;
  for (size_t i = 0; i < size; i += 4) {
    uint32_t bits = 0;
    int padding = 0;
    for (size_t k = 0; k < 4; k++) {
      int digit = base64_digit(text[i + k]);
      if (digit < 0 && text[i + k] == '=' && i + 4 == size && k >= 2) {
        padding++;
        digit = 0;
      } else if (padding > 0) {
        return -1;
      }
      if (digit < 0) return -1;
      bits = bits << 6 | (uint32_t)digit;
    }
    for (int k = 0; k < 3 - padding; k++) out[bytes++] = (unsigned char)(bits >> (16 - 8 * k));
  }
  return (int64_t)bytes;
}

static uint32_t read_unit(const unsigned char *bytes) {
  return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* The replacement of the shortest entry that text[size] begins with; NULL: none. */
static const char *find(const charsmap *m, const char *text, size_t size, size_t *length) {
  size_t node = 0;
  uint32_t unit = m->units[0];
  node ^= (size_t)(unit >> 10) << ((unit & 0x200) >> 6);
  for (size_t i = 0; i < size && text[i] != '\0'; i++) {
    unsigned char byte = (unsigned char)text[i];
    node ^= byte;
    if (node >= m->unit_count) return NULL;
    unit = m->units[node];
    if ((unit & 0x800000FFu) != byte) return NULL;
    node ^= (size_t)(unit >> 10) << ((unit & 0x200) >> 6);
    if (node >= m->unit_count) return NULL;
    if (unit >> 8 & 1) {
      size_t at = m->units[node] & 0x7FFFFFFF;
      const char *end;
      if (at > m->text_size) return NULL;
      end = at == m->text_size ? NULL : memchr(m->texts + at, '\0', m->text_size - at);
      *length = end == NULL ? m->text_size - at : (size_t)(end - (m->texts + at));
      return m->texts + at;
    }
  }
  return NULL;
}

static bert_status split_blob(charsmap *m, const unsigned char *bytes, size_t size,
                              bert_error *error) {
  size_t units = size < 4 ? 0 : read_unit(bytes) / 4 * 4;
  if (size < 8 || units < 4 || units > size - 4)
    return error_set(error, BERT_INVALID, "precompiled_charsmap is cut short: %zu bytes", size);
  m->unit_count = units / 4;
  m->text_size = size - 4 - units;
  m->units = memory_alloc(units);
  m->texts = memory_alloc(m->text_size);
  if (m->units == NULL || m->texts == NULL) return error_nomem(error, "reading the character map");
  for (size_t i = 0; i < m->unit_count; i++) m->units[i] = read_unit(bytes + 4 + i * 4);
  memcpy(m->texts, bytes + 4 + units, m->text_size);
  if (!unicode_is_utf8(m->texts, m->text_size))
    return error_set(error, BERT_INVALID, "the texts of precompiled_charsmap are not UTF-8");
  for (int c = 0; c < 128; c++) {
    char text = (char)c;
    size_t length;
    m->plain[c] = find(m, &text, 1, &length) == NULL;
  }
  return BERT_OK;
}

bert_status charsmap_load(const json_value *json, charsmap **out, bert_error *error) {
  unsigned char *bytes;
  int64_t size;
  bert_status status;
  charsmap *m;
  if (json == NULL || json->type != JSON_STRING)
    return error_set(error, BERT_INVALID, "precompiled_charsmap is missing or no string");
  bytes = memory_alloc((uint64_t)json->size / 4 * 3 + 1);
  m = memory_zero(sizeof *m);
  *out = m;
  if (bytes == NULL || m == NULL) {
    memory_free(bytes);
    return error_nomem(error, "reading the character map");
  }
  size = base64_decode(json->string, json->size, bytes);
  if (size < 0)
    status = error_set(error, BERT_INVALID, "precompiled_charsmap is not base64");
  else
    status = split_blob(m, bytes, (size_t)size, error);
  memory_free(bytes);
  return status;
}

void charsmap_free(charsmap *m) {
  if (m == NULL) return;
  memory_free(m->units);
  memory_free(m->texts);
  memory_free(m);
}

/* ---- Applying it ------------------------------------------------------------------ */

int charsmap_begin(stage *s) {
  charsmap_state *state;
  if (s->charsmap == NULL) {
    s->charsmap = memory_zero(sizeof *s->charsmap);
    if (s->charsmap == NULL) return 0;
  }
  state = s->charsmap;
  transform_reset(&state->transform, 0);
  state->cluster = (grapheme_state){0};
  state->last = LAST_NONE;
  state->known = state->inside = 0;
  return 1;
}

void charsmap_end(stage *s) {
  if (s->charsmap != NULL) memory_free(s->charsmap->transform.old.items);
  memory_free(s->charsmap);
}

/* Hands on what was put last with change 1: removing what follows would have made
** it replace that. */
static void settle(stage *s) {
  charsmap_state *state = s->charsmap;
  if (state->last == LAST_PENDING)
    stage_make(s, transform_put(&state->transform, state->pending, 1));
}

static void put(stage *s, uint32_t c, long change) {
  charsmap_state *state = s->charsmap;
  settle(s);
  if (change > 0) {
    state->pending = c;
    state->last = LAST_PENDING;
  } else {
    stage_make(s, transform_put(&state->transform, c, change));
    state->last = LAST_REPLACED;
  }
}

/* Characters are removed: the last one that was put stands for them as well. At
** the beginning nothing does, and all that follows stands for one before it. */
static void remove_old(stage *s, size_t count) {
  charsmap_state *state = s->charsmap;
  if (state->last == LAST_PENDING) {
    state->last = LAST_REPLACED;
    stage_make(s, transform_put(&state->transform, state->pending, 1 - (long)count));
  } else if (state->last == LAST_REPLACED) {
    transform_skip(&state->transform, count);
  }
}

/* Replaces `old` characters by text[size]. */
static void replace(stage *s, size_t old, const char *text, size_t size) {
  size_t count = 0;
  for (size_t at = 0; at < size; count++) {
    uint32_t c = unicode_next(text, size, &at);
    put(s, c, count < old ? 0 : 1);
  }
  if (count < old) remove_old(s, old - count);
}

/* Takes the first `count` characters ahead, each by itself. */
static void take_single(stage *s, size_t count) {
  for (size_t i = 0; i < count; i++) {
    text_char c = queue_take(&s->ahead);
    char bytes[4];
    size_t length, size = unicode_put(c.c, bytes);
    const char *text = find(s->step->map, bytes, size, &length);
    if (!transform_read(&s->charsmap->transform, &c)) s->run->failed = 1;
    if (text != NULL)
      replace(s, 1, text, length);
    else
      put(s, c.c, 0);
  }
}

/* Takes a whole cluster of `count` characters if it has an entry. */
static int take_cluster(stage *s, size_t count, const char *bytes, size_t size) {
  size_t length;
  const char *text = find(s->step->map, bytes, size, &length);
  if (text == NULL) return 0;
  for (size_t i = 0; i < count; i++) {
    text_char c = queue_take(&s->ahead);
    if (!transform_read(&s->charsmap->transform, &c)) s->run->failed = 1;
  }
  replace(s, count, text, length);
  return 1;
}

/* Reads a cluster, or its beginning when it has WHOLE_CLUSTER bytes or more. */
static void read_cluster(stage *s) {
  charsmap_state *state = s->charsmap;
  char bytes[WHOLE_CLUSTER + 4];
  size_t count = 0, size = 0;
  const text_char *c;
  int begins = 0;
  while (size < WHOLE_CLUSTER && (c = stage_peek(s, count)) != NULL) {
    if (!(count == 0 && state->known)) begins = grapheme_begins(&state->cluster, c->c);
    if (count > 0 && begins) break;
    size += unicode_put(c->c, bytes + size);
    count++;
  }
  state->known = count > 0 && begins && size < WHOLE_CLUSTER && stage_peek(s, count) != NULL;
  if (size >= WHOLE_CLUSTER) {
    state->inside = 1;
    take_single(s, count);
  } else if (!take_cluster(s, count, bytes, size)) {
    take_single(s, count);
  }
}

/* Goes on in a long cluster until it ends. */
static void read_inside(stage *s) {
  charsmap_state *state = s->charsmap;
  const text_char *c = stage_peek(s, 0);
  if (grapheme_begins(&state->cluster, c->c)) {
    state->inside = 0;
    state->known = 1;
  } else {
    take_single(s, 1);
  }
}

/* ASCII that no entry begins with, in front of ASCII: a cluster by itself. */
static int is_plain(stage *s) {
  const charsmap *m = s->step->map;
  const text_char *c = stage_peek(s, 0), *next;
  if (c->c >= 0x80 || c->c < ' ' || !m->plain[c->c] || s->charsmap->inside) return 0;
  if (queue_size(&s->charsmap->transform.old) > 0) return 0;
  next = stage_peek(s, 1);
  return next == NULL || next->c < 0x80;
}

/* Hands on a plain character. */
static void take_plain(stage *s, text_char *out) {
  charsmap_state *state = s->charsmap;
  state->last = LAST_REPLACED;
  state->known = 0;
  state->cluster = (grapheme_state){.any = 1, .before = GRAPHEME_ANY};
  *out = queue_take(&s->ahead);
  transform_note(&state->transform, out);
}

int charsmap_next(stage *s, text_char *out) {
  while (!stage_give(s, out)) {
    if (stage_peek(s, 0) == NULL) {
      if (s->charsmap->last != LAST_PENDING) return 0;
      settle(s);
      s->charsmap->last = LAST_NONE;
    } else if (is_plain(s)) {
      if (s->charsmap->last != LAST_PENDING) {
        take_plain(s, out);
        return 1;
      }
      settle(s);
      s->charsmap->last = LAST_REPLACED;
    } else if (s->charsmap->inside) {
      read_inside(s);
    } else {
      read_cluster(s);
    }
  }
  return 1;
}
