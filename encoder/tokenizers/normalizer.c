/*
** normalizer.c: BertNormalizer, and the reader that applies it.
**
** What happens to a character depends on the character alone, but for runs of
** combining marks (marks.c). So a table is made once of what each becomes, and
** most text is normalized by looking up. Pages of equal entries are shared.
*/
#include "pipeline.h"

#include <string.h>

/* ---- One character -------------------------------------------------------- */

uint32_t normalizer_clean(uint32_t c, int *dropped) {
  if (c == '\t' || c == '\n' || c == '\r') return ' ';
  if (c == 0 || c == 0xFFFD || unicode_is_other(c)) *dropped = 1;
  return unicode_is_space(c) ? ' ' : c;
}

void normalizer_expand(const normalizer *n, uint32_t c, expansion *out) {
  uint32_t lower[2] = {c, 0};
  int count = 1;
  out->count = out->ideograph = out->dropped = 0;
  out->first = 0;
  out->c[0] = c;
  if (n->steps & NORMALIZER_LOWER_FIRST) count = unicode_lower(c, lower);
  for (int i = 0; i < count; i++) {
    uint32_t x = lower[i];
    if (n->steps & NORMALIZER_CLEAN) x = normalizer_clean(x, &out->dropped);
    if ((n->steps & NORMALIZER_CHINESE) && unicode_is_chinese(x)) out->ideograph = 1;
    out->first |= 1u << out->count;
    out->c[out->count] = x;
    out->count += n->steps & NORMALIZER_STRIP ? unicode_decompose(x, out->c + out->count) : 1;
  }
}

static normal_kind kind_of(uint32_t c) {
  if (unicode_is_space(c)) return NORMAL_SPACE;
  return unicode_is_punctuation(c) ? NORMAL_PUNCTUATION : NORMAL_LETTER;
}

/* The kind of a character that decomposes into marks behind a starter or none:
** the number of characters that stay is put in *stay and the last of them in
** *last. */
static normal_kind strip_kind(const expansion *e, int *stay, uint32_t *last) {
  int classed = unicode_combining_class(e->c[0]) != 0;
  *stay = 0;
  for (int i = 0; i < e->count; i++) {
    int class = unicode_combining_class(e->c[i]), mark = unicode_is_mark(e->c[i]);
    if (class != 0 && (!mark || (i > 0 && (classed || e->first >> i & 1)))) return NORMAL_COMPLEX;
    if (!mark) {
      ++*stay;
      *last = e->c[i];
    }
  }
  if (*stay > 1) return NORMAL_COMPLEX;
  if (*stay == 1) return NORMAL_LETTER;
  return classed ? NORMAL_MARK : NORMAL_REMOVED;
}

/* What becomes of `c`: the kind, and the character if it is one. */
static normal_kind classify(const normalizer *n, uint32_t c, uint32_t *out) {
  expansion e;
  uint32_t lower[2];
  int stay;
  *out = c;
  normalizer_expand(n, c, &e);
  if (e.dropped) return NORMAL_DROPPED;
  stay = e.count;
  *out = e.c[0];
  if (n->steps & NORMALIZER_STRIP) {
    normal_kind kind = strip_kind(&e, &stay, out);
    if (kind != NORMAL_LETTER) return kind;
  }
  if (n->steps & NORMALIZER_LOWER) {
    if (unicode_lower(*out, lower) > 1) return NORMAL_COMPLEX;
    *out = lower[0];
  }
  if (stay > 1) return NORMAL_COMPLEX;
  return e.ideograph ? NORMAL_IDEOGRAPH : kind_of(*out);
}

/* ---- The table ------------------------------------------------------------ */

enum { ENTRY_BITS = 21, ENTRY_MASK = (1 << ENTRY_BITS) - 1 };

static uint32_t make_entry(const normalizer *n, uint32_t c) {
  uint32_t to;
  normal_kind kind = classify(n, c, &to);
  return (uint32_t)kind << ENTRY_BITS | ((to - c) & ENTRY_MASK);
}

static uint32_t find_entry(const normalizer *n, uint32_t c) {
  if (c >= NORMALIZER_TABLE) return make_entry(n, c);
  return n->entries[(size_t)n->pages[c / NORMALIZER_PAGE] * NORMALIZER_PAGE + c % NORMALIZER_PAGE];
}

/* Long stretches whose characters are all alike: ideographs and Hangul. A page
** inside one is computed once. */
static int same_as_page_before(uint32_t first) {
  static const uint32_t alike[][2] = {
      {0x3480, 0x4D7F}, {0x4E80, 0x9F7F}, {0xAC80, 0xD77F}, {0xE080, 0xF87F}, {0x20080, 0x2A67F}};
  for (size_t i = 0; i < sizeof alike / sizeof *alike; i++)
    if (first >= alike[i][0] && first + NORMALIZER_PAGE - 1 <= alike[i][1]) return 1;
  return 0;
}

/* The entries of a page. Most characters are letters that stay, and known to be
** so without asking for every property. */
static void make_page(const normalizer *n, uint32_t first, uint32_t *entries) {
  int letters = !unicode_sets_touch(first, first + NORMALIZER_PAGE - 1);
  for (uint32_t i = 0; i < NORMALIZER_PAGE; i++) {
    uint32_t c = first + i;
    int stays = letters && unicode_maps_to_itself(c) && !unicode_is_chinese(c);
    entries[i] = stays ? 0 : make_entry(n, c);
  }
}

static void make_ascii(normalizer *n) {
  for (uint32_t c = 0; c < 128; c++) {
    uint32_t entry = find_entry(n, c), to = (c + entry) & ENTRY_MASK;
    int letter = entry >> ENTRY_BITS == NORMAL_LETTER && to < 128;
    n->ascii[c] = letter ? (unsigned char)to : 0;
  }
}

bert_status normalizer_build(normalizer *n, int steps, bert_error *error) {
  enum { PAGE_BYTES = NORMALIZER_PAGE * sizeof(uint32_t) };
  size_t count = 0, capacity = 0;
  n->steps = steps;
  for (uint32_t page = 0; page < NORMALIZER_TABLE / NORMALIZER_PAGE; page++) {
    uint32_t first = page * NORMALIZER_PAGE, *entries;
    if (!same_as_page_before(first)) {
      if (!memory_grow((void **)&n->entries, count, &capacity, PAGE_BYTES))
        return error_nomem(error, "building the normalizer");
      entries = n->entries + count * NORMALIZER_PAGE;
      make_page(n, first, entries);
      if (count == 0 || memcmp(entries, entries - NORMALIZER_PAGE, PAGE_BYTES) != 0) count++;
    }
    n->pages[page] = (uint16_t)(count - 1);
  }
  make_ascii(n);
  return BERT_OK;
}

void normalizer_free(normalizer *n) {
  memory_free(n->entries);
  n->entries = NULL;
}

/* ---- The reader ----------------------------------------------------------- */

void reader_begin(reader *r, const normalizer *n, added_scan *scan) {
  r->normalizer = n;
  r->scan = scan;
  r->text = scan->text.data;
  r->size = scan->text.size;
  r->at = scan->taken;
  r->stop = scan->known;
  r->run.active = 0;
  r->queued = r->given = 0;
}

int reader_has(reader *r, size_t at) {
  while (at >= r->scan->known && added_scan_more(r->scan)) continue;
  r->stop = r->scan->known;
  return at < r->stop;
}

int reader_source(reader *r, size_t *at, size_t *start, expansion *out) {
  while (*at < r->stop || reader_has(r, *at)) {
    *start = *at;
    normalizer_expand(r->normalizer, unicode_next(r->text, r->size, at), out);
    if (!out->dropped) return 1;
  }
  *start = *at;
  return 0;
}

static void enqueue(reader *r, uint32_t c, size_t start, size_t stop) {
  uint32_t lower[2] = {c, 0};
  int count = r->normalizer->steps & NORMALIZER_LOWER ? unicode_lower(c, lower) : 1;
  for (int i = 0; i < count; i++)
    r->queue[r->queued++] = (normal_char){lower[i], kind_of(lower[i]), start, stop};
}

static int is_hangul(uint32_t c) {
  return c >= 0xAC00 && c <= 0xD7A3;
}

/* A Hangul syllable becomes letters, whatever else is asked for. */
static void read_hangul(reader *r, uint32_t c, size_t start, size_t stop) {
  uint32_t letters[UNICODE_DECOMPOSED];
  r->given = 0;
  r->queued = unicode_decompose(c, letters);
  for (int i = 0; i < r->queued; i++)
    r->queue[i] = (normal_char){letters[i], NORMAL_LETTER, start, stop};
}

/* A character that becomes several, or begins or brings a run of marks. */
static void read_complex(reader *r, uint32_t c, size_t start, size_t stop) {
  expansion e;
  int marks = 0; /* there are marks that must be put in order */
  int strip = r->normalizer->steps & NORMALIZER_STRIP;
  normalizer_expand(r->normalizer, c, &e);
  r->queued = r->given = 0;
  if (strip && unicode_combining_class(e.c[0]) != 0) {
    marks_begin(r, start, 0);
    return;
  }
  for (int i = 0; i < e.count; i++) {
    if (strip && unicode_combining_class(e.c[i]) != 0)
      marks |= !unicode_is_mark(e.c[i]) || (e.first >> i & 1);
    else if (!strip || !unicode_is_mark(e.c[i]))
      enqueue(r, e.c[i], start, stop);
  }
  if (marks) marks_begin(r, start, 1);
}

/* Skips a run of marks from byte `start` if all of it is removed. */
static void read_marks(reader *r, size_t start) {
  size_t at = r->at;
  while (at < r->stop || reader_has(r, at)) {
    size_t next = at;
    uint32_t entry = find_entry(r->normalizer, unicode_next(r->text, r->size, &next));
    normal_kind kind = (normal_kind)(entry >> ENTRY_BITS);
    if (kind == NORMAL_COMPLEX) {
      marks_begin(r, start, 0);
      return;
    }
    if (kind != NORMAL_MARK && kind != NORMAL_DROPPED) break;
    at = next;
  }
  r->at = at;
}

int reader_next(reader *r, normal_char *out) {
  for (;;) {
    size_t start;
    uint32_t c, entry;
    if (r->given < r->queued) {
      *out = r->queue[r->given++];
      return 1;
    }
    if (r->run.active) {
      if (!marks_next(r, out)) continue;
      if (r->normalizer->steps & NORMALIZER_LOWER) {
        uint32_t lower[2];
        unicode_lower(out->c, lower);
        out->c = lower[0];
      }
      out->kind = kind_of(out->c);
      return 1;
    }
    if (r->at >= r->stop && !reader_has(r, r->at)) return 0;
    start = r->at;
    c = unicode_next(r->text, r->size, &r->at);
    entry = find_entry(r->normalizer, c);
    out->kind = (normal_kind)(entry >> ENTRY_BITS);
    if (out->kind < NORMAL_DROPPED) {
      out->c = (c + entry) & ENTRY_MASK;
      out->start = start;
      out->stop = r->at;
      return 1;
    }
    if (out->kind == NORMAL_MARK) read_marks(r, start);
    if (out->kind != NORMAL_COMPLEX) continue;
    if (is_hangul(c)) /* complex only when they are decomposed */
      read_hangul(r, c, start, r->at);
    else
      read_complex(r, c, start, r->at);
  }
}
