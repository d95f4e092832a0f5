/*
** regexset.c: the sets of characters in a pattern: single ones, escapes, brackets.
*/
#include "regex.h"

#include <stdio.h>
#include <string.h>

/* ---- Reading ----------------------------------------------------------------------- */

void regex_refuse(regex_parser *p, const char *what) {
  if (p->status == BERT_OK)
    p->status = error_set(p->error, BERT_UNSUPPORTED,
                          "the pattern \"%.60s\" has %s at byte %zu, which is not supported",
                          p->text.data, what, p->at);
}

void regex_fail_memory(regex_parser *p) {
  if (p->status == BERT_OK) p->status = error_nomem(p->error, "compiling a pattern");
}

int regex_more(const regex_parser *p) {
  return p->status == BERT_OK && p->at < p->text.size;
}

int regex_is_next(const regex_parser *p, const char *text) {
  size_t size = strlen(text);
  return regex_more(p) && p->text.size - p->at >= size &&
         memcmp(p->text.data + p->at, text, size) == 0;
}

int regex_skip(regex_parser *p, const char *text) {
  if (!regex_is_next(p, text)) return 0;
  p->at += strlen(text);
  return 1;
}

/* ---- Sets ------------------------------------------------------------------------ */

void regex_add_item(regex_parser *p, set_item item) {
  regex *r = p->r;
  if (p->status != BERT_OK) return;
  if (!memory_grow((void **)&r->items, r->item_count, &r->item_capacity, sizeof *r->items))
    regex_fail_memory(p);
  else
    r->items[r->item_count++] = item;
}

/* Adds a range, and the other case of its letters if that does not matter. */
void regex_add_range(regex_parser *p, uint32_t first, uint32_t last) {
  regex_add_item(p, (set_item){.kind = SET_RANGE, .first = first, .last = last});
  if (!p->fold) return;
  if (last >= 0x80) regex_refuse(p, "(?i) of more than ASCII");
  for (uint32_t c = first; c <= last && c < 0x80; c++) {
    uint32_t other = c ^ 0x20;
    if ((c | 0x20) < 'a' || (c | 0x20) > 'z') continue;
    regex_add_item(p, (set_item){.kind = SET_RANGE, .first = other, .last = other});
    other = (c | 0x20) == 's' ? 0x17F : (c | 0x20) == 'k' ? 0x212A : other; /* long s, Kelvin */
    regex_add_item(p, (set_item){.kind = SET_RANGE, .first = other, .last = other});
  }
}

/* Of a set that starts at item `first`. */
size_t regex_close_set(regex_parser *p, size_t first, int negated) {
  regex *r = p->r;
  regex_set *set;
  if (p->status != BERT_OK) return 0;
  if (!memory_grow((void **)&r->sets, r->set_count, &r->set_capacity, sizeof *r->sets)) {
    regex_fail_memory(p);
    return 0;
  }
  set = &r->sets[r->set_count];
  *set = (regex_set){.first = first, .count = r->item_count - first, .negated = negated};
  for (uint32_t c = 0; c < 128; c++) {
    set->ascii[c] = 2; /* not known */
    set->ascii[c] = (unsigned char)regex_set_has(r, set, c);
  }
  return r->set_count++;
}

/* The categories that a name in \p{…} stands for; 0: none that is known. */
static uint32_t categories_of(const char *name, size_t size) {
  static const char names[] = "LuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCsCoCn";
  uint32_t found = 0;
  if (size == 0 || size > 2) return 0;
  for (uint32_t i = 0; i < UNICODE_CATEGORIES; i++)
    if (names[2 * i] == name[0] && (size == 1 || names[2 * i + 1] == name[1])) found |= 1u << i;
  return found;
}

/* \p{L}, \p{^L}, \P{L}: behind the p. */
static void add_property(regex_parser *p, int negated) {
  const char *name = p->text.data + p->at + 1, *end;
  uint32_t categories;
  char what[48];
  if (!regex_is_next(p, "{") || (end = memchr(name, '}', p->text.size - p->at - 1)) == NULL) {
    regex_refuse(p, "\\p without a name in braces");
    return;
  }
  p->at = (size_t)(end - p->text.data) + 1;
  if (*name == '^') name++, negated = !negated;
  categories = categories_of(name, (size_t)(end - name));
  snprintf(what, sizeof what, "\\p{%.*s}", end - name > 30 ? 30 : (int)(end - name), name);
  if (categories == 0) regex_refuse(p, what);
  regex_add_item(p,
                 (set_item){.kind = SET_CATEGORIES, .negated = negated, .categories = categories});
}

/* A hexadecimal number of `least` to `most` digits. */
static uint32_t hex(regex_parser *p, int least, int most) {
  uint32_t c = 0;
  int digits = 0;
  for (; digits < most && regex_more(p); digits++, p->at++) {
    int x = (unsigned char)p->text.data[p->at];
    int value = x >= '0' && x <= '9'                 ? x - '0'
                : (x | 32) >= 'a' && (x | 32) <= 'f' ? (x | 32) - 'a' + 10
                                                     : -1;
    if (value < 0) break;
    c = c << 4 | (uint32_t)value;
  }
  if (digits < least || c > 0x10FFFF) regex_refuse(p, "a number of a character that is none");
  return c;
}

/* The character that an escape stands for, behind the backslash; UINT32_MAX: it
** stands for none alone. */
uint32_t regex_escaped(regex_parser *p) {
  static const char names[] = "trnfvae", values[] = "\t\r\n\f\v\a\x1B";
  uint32_t c = unicode_next(p->text.data, p->text.size, &p->at);
  const char *name = c < 128 && c != 0 ? strchr(names, (int)c) : NULL;
  if (name != NULL) return (unsigned char)values[name - names];
  if (c == 'u') return hex(p, 4, 4);
  if (c == 'x') {
    if (!regex_skip(p, "{")) {
      c = hex(p, 1, 2);
      if (c >= 0x80) regex_refuse(p, "a byte that is no character");
      return c;
    }
    c = hex(p, 1, 8);
    if (!regex_skip(p, "}")) regex_refuse(p, "\\x{ without }");
    return c;
  }
  if (c >= 128 || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c >= '0' && c <= '9')) {
    char what[8];
    snprintf(what, sizeof what, "\\%c", c < 128 ? (int)c : '?');
    regex_refuse(p, what);
  }
  return c;
}

/* An escape that is a set: \s, \p{L} and the like; 0: it is none. */
int regex_add_escaped(regex_parser *p) {
  char kind = p->at + 1 < p->text.size ? p->text.data[p->at + 1] : '\0';
  int negated = kind >= 'A' && kind <= 'Z';
  if (strchr("sSdDwWpP", kind) == NULL || kind == '\0') return 0;
  p->at += 2;
  if ((kind | 0x20) == 's') regex_add_item(p, (set_item){.kind = SET_SPACE, .negated = negated});
  if ((kind | 0x20) == 'w') regex_add_item(p, (set_item){.kind = SET_WORD, .negated = negated});
  if ((kind | 0x20) == 'd')
    regex_add_item(
        p, (set_item){.kind = SET_CATEGORIES, .negated = negated, .categories = 1u << UNICODE_ND});
  if ((kind | 0x20) == 'p') add_property(p, negated);
  return 1;
}

/* A character of a set, or the end of a range. */
static uint32_t set_char(regex_parser *p) {
  if (regex_is_next(p, "[") || regex_is_next(p, "&&")) regex_refuse(p, "a set within a set");
  if (regex_skip(p, "\\")) {
    if (!regex_more(p)) regex_refuse(p, "a backslash at its end");
    return regex_more(p) ? regex_escaped(p) : 0;
  }
  return regex_more(p) ? unicode_next(p->text.data, p->text.size, &p->at) : 0;
}

/* Behind the bracket. */
size_t regex_parse_set(regex_parser *p) {
  size_t first = p->r->item_count;
  int negated = regex_skip(p, "^");
  if (regex_is_next(p, "]")) regex_refuse(p, "an empty set");
  while (regex_more(p) && !regex_is_next(p, "]")) {
    uint32_t from, to;
    if (regex_is_next(p, "\\") && regex_add_escaped(p)) continue;
    from = to = set_char(p);
    if (regex_is_next(p, "-") && p->at + 1 < p->text.size && p->text.data[p->at + 1] != ']') {
      p->at++;
      to = set_char(p);
    }
    if (to < from) regex_refuse(p, "a range that ends before it begins");
    regex_add_range(p, from, to);
  }
  if (!regex_skip(p, "]")) regex_refuse(p, "[ without ]");
  return regex_close_set(p, first, negated);
}

/* \w and \W: by themselves, and not in brackets, oniguruma takes the superscript
** digits and fractions of Latin-1 for word characters. */
size_t regex_parse_word(regex_parser *p) {
  static const uint32_t more_words[][2] = {{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}};
  size_t first = p->r->item_count;
  int negated = p->text.data[p->at + 1] == 'W';
  p->at += 2;
  regex_add_item(p, (set_item){.kind = SET_WORD});
  for (int i = 0; i < 3; i++)
    regex_add_item(
        p, (set_item){.kind = SET_RANGE, .first = more_words[i][0], .last = more_words[i][1]});
  return regex_close_set(p, first, negated);
}
