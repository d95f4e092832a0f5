/*
** regex.c: compiles a pattern, of the syntax that oniguruma calls Ruby's.
**
** Of that there is what tokenizers are published with: sets, categories, groups,
** alternatives, repetitions (greedy, lazy, possessive), lookahead, (?i:…) of
** ASCII. Anything else is refused and named. A pattern that matches nothing at
** all, or repeats what repeats, is refused as well: it would take long, and cuts
** no text.
*/
#include "regex.h"

#include <stdio.h>
#include <string.h>

enum { REGEX_MAX_CODE = 20000, REGEX_MAX_DEPTH = 20, REGEX_MAX_REPEAT = 1000 };

typedef struct parser {
  regex *r;
  bert_text text;
  size_t at;
  int fold; /* letters of either case */
  int depth;
  bert_status status;
  bert_error *error;
} parser;

/* What a piece of pattern is: the fewest characters it matches, and whether it
** repeats without limit. */
typedef struct extent {
  size_t min;
  int unlimited;
} extent;

static void refuse(parser *p, const char *what) {
  if (p->status == BERT_OK)
    p->status = error_set(p->error, BERT_UNSUPPORTED,
                          "the pattern \"%.60s\" has %s at byte %zu, which is not supported",
                          p->text.data, what, p->at);
}

static void fail_memory(parser *p) {
  if (p->status == BERT_OK) p->status = error_nomem(p->error, "compiling a pattern");
}

static int more(const parser *p) {
  return p->status == BERT_OK && p->at < p->text.size;
}

static int is_next(const parser *p, const char *text) {
  size_t size = strlen(text);
  return more(p) && p->text.size - p->at >= size && memcmp(p->text.data + p->at, text, size) == 0;
}

static int skip(parser *p, const char *text) {
  if (!is_next(p, text)) return 0;
  p->at += strlen(text);
  return 1;
}

/* ---- Code ----------------------------------------------------------------------- */

static size_t emit(parser *p, regex_code code) {
  regex *r = p->r;
  if (p->status != BERT_OK) return 0;
  if (r->code_count == REGEX_MAX_CODE) {
    refuse(p, "too many repetitions");
    return 0;
  }
  if (!memory_grow((void **)&r->code, r->code_count, &r->code_capacity, sizeof *r->code)) {
    fail_memory(p);
    return 0;
  }
  r->code[r->code_count] = code;
  return r->code_count++;
}

/* Makes room for one instruction before code[at]. */
static void insert(parser *p, size_t at, regex_code code) {
  regex *r = p->r;
  emit(p, code);
  if (p->status != BERT_OK) return;
  for (size_t i = r->code_count - 1; i > at; i--) {
    r->code[i] = r->code[i - 1];
    if (r->code[i].op >= OP_SPLIT && r->code[i].op <= OP_ATOMIC) {
      if (r->code[i].a >= at) r->code[i].a++;
      if (r->code[i].op == OP_SPLIT && r->code[i].b >= at) r->code[i].b++;
    }
  }
  r->code[at] = code;
}

/* ---- Sets ------------------------------------------------------------------------ */

static void add_item(parser *p, set_item item) {
  regex *r = p->r;
  if (p->status != BERT_OK) return;
  if (!memory_grow((void **)&r->items, r->item_count, &r->item_capacity, sizeof *r->items))
    fail_memory(p);
  else
    r->items[r->item_count++] = item;
}

/* Adds a range, and the other case of its letters if that does not matter. */
static void add_range(parser *p, uint32_t first, uint32_t last) {
  add_item(p, (set_item){.kind = SET_RANGE, .first = first, .last = last});
  if (!p->fold) return;
  if (last >= 0x80) refuse(p, "(?i) of more than ASCII");
  for (uint32_t c = first; c <= last && c < 0x80; c++) {
    uint32_t other = c ^ 0x20;
    if ((c | 0x20) < 'a' || (c | 0x20) > 'z') continue;
    add_item(p, (set_item){.kind = SET_RANGE, .first = other, .last = other});
    other = (c | 0x20) == 's' ? 0x17F : (c | 0x20) == 'k' ? 0x212A : other; /* long s, Kelvin */
    add_item(p, (set_item){.kind = SET_RANGE, .first = other, .last = other});
  }
}

/* Of a set that starts at item `first`. */
static size_t close_set(parser *p, size_t first, int negated) {
  regex *r = p->r;
  regex_set *set;
  if (p->status != BERT_OK) return 0;
  if (!memory_grow((void **)&r->sets, r->set_count, &r->set_capacity, sizeof *r->sets)) {
    fail_memory(p);
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
static void add_property(parser *p, int negated) {
  const char *name = p->text.data + p->at + 1, *end;
  uint32_t categories;
  char what[48];
  if (!is_next(p, "{") || (end = memchr(name, '}', p->text.size - p->at - 1)) == NULL) {
    refuse(p, "\\p without a name in braces");
    return;
  }
  p->at = (size_t)(end - p->text.data) + 1;
  if (*name == '^') name++, negated = !negated;
  categories = categories_of(name, (size_t)(end - name));
  snprintf(what, sizeof what, "\\p{%.*s}", end - name > 30 ? 30 : (int)(end - name), name);
  if (categories == 0) refuse(p, what);
  add_item(p, (set_item){.kind = SET_CATEGORIES, .negated = negated, .categories = categories});
}

/* A hexadecimal number of `least` to `most` digits. */
static uint32_t hex(parser *p, int least, int most) {
  uint32_t c = 0;
  int digits = 0;
  for (; digits < most && more(p); digits++, p->at++) {
    int x = p->text.data[p->at];
    int value = x >= '0' && x <= '9'                 ? x - '0'
                : (x | 32) >= 'a' && (x | 32) <= 'f' ? (x | 32) - 'a' + 10
                                                     : -1;
    if (value < 0) break;
    c = c << 4 | (uint32_t)value;
  }
  if (digits < least || c > 0x10FFFF) refuse(p, "a number of a character that is none");
  return c;
}

/* The character that an escape stands for, behind the backslash; UINT32_MAX: it
** stands for none alone. */
static uint32_t escaped(parser *p) {
  static const char names[] = "trnfvae", values[] = "\t\r\n\f\v\a\x1B";
  uint32_t c = unicode_next(p->text.data, p->text.size, &p->at);
  const char *name = c < 128 && c != 0 ? strchr(names, (int)c) : NULL;
  if (name != NULL) return (unsigned char)values[name - names];
  if (c == 'u') return hex(p, 4, 4);
  if (c == 'x') {
    if (!skip(p, "{")) {
      c = hex(p, 1, 2);
      if (c >= 0x80) refuse(p, "a byte that is no character");
      return c;
    }
    c = hex(p, 1, 8);
    if (!skip(p, "}")) refuse(p, "\\x{ without }");
    return c;
  }
  if (c >= 128 || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c >= '0' && c <= '9')) {
    char what[8];
    snprintf(what, sizeof what, "\\%c", c < 128 ? (int)c : '?');
    refuse(p, what);
  }
  return c;
}

/* An escape that is a set: \s, \p{L} and the like; 0: it is none. */
static int add_escaped_set(parser *p) {
  char kind = p->at + 1 < p->text.size ? p->text.data[p->at + 1] : '\0';
  int negated = kind >= 'A' && kind <= 'Z';
  if (strchr("sSdDwWpP", kind) == NULL || kind == '\0') return 0;
  p->at += 2;
  if ((kind | 0x20) == 's') add_item(p, (set_item){.kind = SET_SPACE, .negated = negated});
  if ((kind | 0x20) == 'w') add_item(p, (set_item){.kind = SET_WORD, .negated = negated});
  if ((kind | 0x20) == 'd')
    add_item(
        p, (set_item){.kind = SET_CATEGORIES, .negated = negated, .categories = 1u << UNICODE_ND});
  if ((kind | 0x20) == 'p') add_property(p, negated);
  return 1;
}

/* A character of a set, or the end of a range. */
static uint32_t set_char(parser *p) {
  if (is_next(p, "[") || is_next(p, "&&")) refuse(p, "a set within a set");
  if (skip(p, "\\")) {
    if (!more(p)) refuse(p, "a backslash at its end");
    return more(p) ? escaped(p) : 0;
  }
  return more(p) ? unicode_next(p->text.data, p->text.size, &p->at) : 0;
}

/* Behind the bracket. */
static size_t parse_set(parser *p) {
  size_t first = p->r->item_count;
  int negated = skip(p, "^");
  if (is_next(p, "]")) refuse(p, "an empty set");
  while (more(p) && !is_next(p, "]")) {
    uint32_t from, to;
    if (is_next(p, "\\") && add_escaped_set(p)) continue;
    from = to = set_char(p);
    if (is_next(p, "-") && p->at + 1 < p->text.size && p->text.data[p->at + 1] != ']') {
      p->at++;
      to = set_char(p);
    }
    if (to < from) refuse(p, "a range that ends before it begins");
    add_range(p, from, to);
  }
  if (!skip(p, "]")) refuse(p, "[ without ]");
  return close_set(p, first, negated);
}

/* ---- Repetitions, groups, alternatives -------------------------------------------- */

static extent parse_choice(parser *p);

static size_t number(parser *p) {
  size_t n = 0;
  if (!more(p) || p->text.data[p->at] < '0' || p->text.data[p->at] > '9') return SIZE_MAX;
  for (; more(p) && p->text.data[p->at] >= '0' && p->text.data[p->at] <= '9'; p->at++)
    if (n <= REGEX_MAX_REPEAT) n = n * 10 + (size_t)(p->text.data[p->at] - '0');
  return n;
}

/* {2}, {2,}, {,3}, {2,3}: 0 and nothing is read when it is none of them. */
static int parse_braces(parser *p, size_t *min, size_t *max) {
  size_t before = p->at;
  int comma;
  if (!skip(p, "{")) return 0;
  *min = number(p);
  comma = skip(p, ",");
  *max = comma ? number(p) : *min;
  if (!skip(p, "}") || (*min == SIZE_MAX && *max == SIZE_MAX)) {
    p->at = before;
    return 0;
  }
  if (*min == SIZE_MAX) *min = 0;
  if (*min > REGEX_MAX_REPEAT || (*max != SIZE_MAX && (*max > REGEX_MAX_REPEAT || *max < *min)))
    refuse(p, "a repetition out of range");
  return 1;
}

static int parse_repeat(parser *p, size_t *min, size_t *max, repeat_mode *mode) {
  int braces = 0;
  *mode = REPEAT_GREEDY;
  *min = 0;
  *max = SIZE_MAX;
  if (skip(p, "+"))
    *min = 1;
  else if (skip(p, "?"))
    *max = 1;
  else if (!skip(p, "*") && !(braces = parse_braces(p, min, max)))
    return 0;
  if (skip(p, "?"))
    *mode = REPEAT_LAZY;
  else if (!braces && skip(p, "+"))
    *mode = REPEAT_POSSESSIVE;
  if (is_next(p, "*") || is_next(p, "+") || is_next(p, "?"))
    refuse(p, "a repetition of a repetition");
  return 1;
}

/* Copies code[first, last) to the end. */
static void copy_code(parser *p, size_t first, size_t last) {
  size_t distance = p->r->code_count - first;
  for (size_t i = first; i < last && p->status == BERT_OK; i++) {
    regex_code code = p->r->code[i];
    if (code.op >= OP_SPLIT && code.op <= OP_ATOMIC) {
      code.a += distance;
      if (code.op == OP_SPLIT) code.b += distance;
    }
    emit(p, code);
  }
}

/* The code of one optional repetition more of code[first, last), behind all. */
static void add_optional(parser *p, size_t first, size_t last, int lazy) {
  size_t split = emit(p, (regex_code){.op = OP_SPLIT}), end;
  copy_code(p, first, last);
  if (p->status != BERT_OK) return;
  end = p->r->code_count;
  p->r->code[split].a = lazy ? end : split + 1;
  p->r->code[split].b = lazy ? split + 1 : end;
}

/* Repeats what stands from code[first] on, which is more than a set. */
static void repeat_group(parser *p, size_t first, size_t min, size_t max, repeat_mode mode) {
  size_t last = p->r->code_count, size = last - first, split;
  int lazy = mode == REPEAT_LAZY;
  if (max == 0) refuse(p, "a repetition of nothing");
  for (size_t i = 1; i < min; i++) copy_code(p, first, last);
  if (max == SIZE_MAX) { /* the last one, or one more, is a loop */
    if (min == 0) insert(p, first, (regex_code){.op = OP_SPLIT}), last++;
    split = min == 0 ? first : emit(p, (regex_code){.op = OP_SPLIT});
    if (min > 0) copy_code(p, first, last);
    emit(p, (regex_code){.op = OP_JUMP, .a = split});
    if (p->status != BERT_OK) return;
    p->r->code[split].a = lazy ? p->r->code_count : split + 1;
    p->r->code[split].b = lazy ? split + 1 : p->r->code_count;
  } else if (min == 0) {
    insert(p, first, (regex_code){.op = OP_SPLIT});
    if (p->status != BERT_OK) return;
    p->r->code[first].a = lazy ? first + 1 + size : first + 1;
    p->r->code[first].b = lazy ? first + 1 : first + 1 + size;
    for (size_t i = 1; i < max; i++) add_optional(p, first + 1, first + 1 + size, lazy);
  } else {
    for (size_t i = min; i < max; i++) add_optional(p, first, last, lazy);
  }
}

/* Wraps code from `first` on, which is to end with OP_DONE. */
static void wrap(parser *p, size_t first, regex_op op, int negated) {
  insert(p, first, (regex_code){.op = op, .b = (size_t)negated});
  emit(p, (regex_code){.op = OP_DONE});
  if (p->status == BERT_OK) p->r->code[first].a = p->r->code_count;
}

/* Behind the parenthesis. */
static extent parse_group(parser *p) {
  size_t first = p->r->code_count;
  int fold = p->fold, ahead = 0, negated = 0, atomic = 0;
  extent inner;
  if (++p->depth > REGEX_MAX_DEPTH) refuse(p, "too many groups in groups");
  if (skip(p, "?=")) {
    ahead = 1;
  } else if (skip(p, "?!")) {
    ahead = negated = 1;
  } else if (skip(p, "?>")) {
    atomic = 1;
  } else if (skip(p, "?i:")) {
    p->fold = 1;
  } else if (!skip(p, "?:") && is_next(p, "?")) {
    refuse(p, "a group of a kind");
  }
  inner = p->status == BERT_OK ? parse_choice(p) : (extent){0};
  if (!skip(p, ")")) refuse(p, "( without )");
  if (ahead || atomic) wrap(p, first, ahead ? OP_AHEAD : OP_ATOMIC, negated);
  if (ahead) inner = (extent){0, 0};
  p->fold = fold;
  p->depth--;
  return inner;
}

/* \w and \W: by themselves, and not in brackets, oniguruma takes the superscript
** digits and fractions of Latin-1 for word characters. */
static size_t parse_word(parser *p) {
  static const uint32_t more_words[][2] = {{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}};
  size_t first = p->r->item_count;
  int negated = p->text.data[p->at + 1] == 'W';
  p->at += 2;
  add_item(p, (set_item){.kind = SET_WORD});
  for (int i = 0; i < 3; i++)
    add_item(p, (set_item){.kind = SET_RANGE, .first = more_words[i][0], .last = more_words[i][1]});
  return close_set(p, first, negated);
}

/* One character, set or group; *single: it is a set. */
static extent parse_atom(parser *p, int *single) {
  size_t first = p->r->item_count, set = 0;
  *single = 1;
  if (skip(p, "(")) {
    *single = 0;
    return parse_group(p);
  }
  if (skip(p, "[")) {
    set = parse_set(p);
  } else if (skip(p, ".")) {
    add_item(p, (set_item){.kind = SET_RANGE, .first = '\n', .last = '\n'});
    set = close_set(p, first, 1);
  } else if (is_next(p, "\\w") || is_next(p, "\\W")) {
    set = parse_word(p);
  } else if (is_next(p, "\\") && add_escaped_set(p)) {
    set = close_set(p, first, 0);
  } else if (is_next(p, "^") || is_next(p, "$") || is_next(p, "*") || is_next(p, "+") ||
             is_next(p, "?")) {
    char what[2] = {p->text.data[p->at], '\0'};
    refuse(p, what);
  } else {
    int escape = skip(p, "\\");
    uint32_t c = 0;
    if (!more(p))
      refuse(p, "a backslash at its end");
    else
      c = escape ? escaped(p) : unicode_next(p->text.data, p->text.size, &p->at);
    add_range(p, c, c);
    set = close_set(p, first, 0);
  }
  emit(p, (regex_code){.op = OP_SET, .a = set});
  return (extent){1, 0};
}

static extent parse_repeated(parser *p) {
  size_t first = p->r->code_count, min, max;
  int single;
  repeat_mode mode;
  extent e = parse_atom(p, &single);
  if (!more(p) || !parse_repeat(p, &min, &max, &mode)) return e;
  if (p->status != BERT_OK) return e;
  if (single) {
    regex_code *code = &p->r->code[first];
    *code = (regex_code){.op = OP_RUN, .a = code->a, .min = min, .max = max, .mode = mode};
  } else {
    if (e.unlimited && max > 1) refuse(p, "a repetition of a repetition");
    if (e.min == 0) refuse(p, "a repetition of what may be nothing");
    repeat_group(p, first, min, max, mode);
    if (mode == REPEAT_POSSESSIVE) wrap(p, first, OP_ATOMIC, 0);
  }
  return (extent){e.min * min, e.unlimited || max == SIZE_MAX};
}

static extent parse_sequence(parser *p) {
  extent e = {0, 0};
  while (more(p) && !is_next(p, "|") && !is_next(p, ")")) {
    extent next = parse_repeated(p);
    e.min += next.min;
    e.unlimited |= next.unlimited;
  }
  return e;
}

static extent parse_choice(parser *p) {
  size_t first = p->r->code_count;
  extent e = parse_sequence(p);
  while (more(p) && skip(p, "|")) {
    size_t jump, second;
    extent other;
    insert(p, first, (regex_code){.op = OP_SPLIT, .a = first + 1});
    jump = emit(p, (regex_code){.op = OP_JUMP});
    second = p->r->code_count;
    if (p->status != BERT_OK) return e;
    p->r->code[first].a = first + 1;
    p->r->code[first].b = second;
    other = parse_choice(p);
    if (p->status != BERT_OK) return e;
    p->r->code[jump].a = p->r->code_count;
    if (other.min < e.min) e.min = other.min;
    e.unlimited |= other.unlimited;
  }
  return e;
}

/* The text as it stands. */
static extent parse_literal(parser *p) {
  extent e = {0, 0};
  while (more(p)) {
    size_t first = p->r->item_count;
    uint32_t c = unicode_next(p->text.data, p->text.size, &p->at);
    add_range(p, c, c);
    emit(p, (regex_code){.op = OP_SET, .a = close_set(p, first, 0)});
    e.min++;
  }
  return e;
}

/* Marks what a match may begin with, from code[at] on; 0: it may begin with anything
** that this does not see. `depth` bounds the alternatives that are followed. */
static int mark_first(regex *r, size_t at, int depth) {
  for (; depth > 0; depth--) {
    const regex_code *code = &r->code[at];
    if (code->op == OP_DONE) return 0;
    if (code->op == OP_SET || code->op == OP_RUN) {
      for (int c = 0; c < 128; c++) r->first[c] |= r->sets[code->a].ascii[c];
      if (code->op == OP_SET || code->min > 0) return 1;
      at++;
    } else if (code->op == OP_SPLIT) {
      if (!mark_first(r, code->b, depth - 1)) return 0;
      at = code->a;
    } else if (code->op == OP_ATOMIC) {
      at++;
    } else { /* what is ahead does not count */
      at = code->a;
    }
  }
  return 0;
}

static void find_first(regex *r) {
  if (mark_first(r, 0, 100)) return;
  for (int c = 0; c < 128; c++) r->first[c] = 1;
}

int regex_begins(const regex *r, uint32_t c) {
  return c >= 128 || r->first[c];
}

bert_status regex_compile(bert_text pattern, int literal, regex **out, bert_error *error) {
  parser p = {.text = pattern, .status = BERT_OK, .error = error};
  extent e;
  *out = p.r = memory_zero(sizeof *p.r);
  if (p.r == NULL) return error_nomem(error, "compiling a pattern");
  e = literal ? parse_literal(&p) : parse_choice(&p);
  if (more(&p)) refuse(&p, ") without (");
  emit(&p, (regex_code){.op = OP_DONE});
  if (p.status == BERT_OK && e.min == 0)
    p.status =
        error_set(error, BERT_UNSUPPORTED,
                  "the pattern \"%.60s\" matches empty text, which is not supported", pattern.data);
  if (p.status == BERT_OK) find_first(p.r);
  return p.status;
}

void regex_free(regex *r) {
  if (r == NULL) return;
  memory_free(r->code);
  memory_free(r->sets);
  memory_free(r->items);
  memory_free(r);
}
