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

/* What a piece of pattern is: the fewest characters it matches, and whether it
** repeats without limit. */
typedef struct extent {
  size_t min;
  int unlimited;
} extent;

/* ---- Code ----------------------------------------------------------------------- */

static size_t emit(regex_parser *p, regex_code code) {
  regex *r = p->r;
  if (p->status != BERT_OK) return 0;
  if (r->code_count == REGEX_MAX_CODE) {
    regex_refuse(p, "too many repetitions");
    return 0;
  }
  if (!memory_grow((void **)&r->code, r->code_count, &r->code_capacity, sizeof *r->code)) {
    regex_fail_memory(p);
    return 0;
  }
  r->code[r->code_count] = code;
  return r->code_count++;
}

/* Makes room for one instruction before code[at]. */
static void insert(regex_parser *p, size_t at, regex_code code) {
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

/* ---- Repetitions, groups, alternatives -------------------------------------------- */

static extent parse_choice(regex_parser *p);

static size_t number(regex_parser *p) {
  size_t n = 0;
  if (!regex_more(p) || p->text.data[p->at] < '0' || p->text.data[p->at] > '9') return SIZE_MAX;
  for (; regex_more(p) && p->text.data[p->at] >= '0' && p->text.data[p->at] <= '9'; p->at++)
    if (n <= REGEX_MAX_REPEAT) n = n * 10 + (size_t)(p->text.data[p->at] - '0');
  return n;
}

/* {2}, {2,}, {,3}, {2,3}: 0 and nothing is read when it is none of them. */
static int parse_braces(regex_parser *p, size_t *min, size_t *max) {
  size_t before = p->at;
  int comma;
  if (!regex_skip(p, "{")) return 0;
  *min = number(p);
  comma = regex_skip(p, ",");
  *max = comma ? number(p) : *min;
  if (!regex_skip(p, "}") || (*min == SIZE_MAX && *max == SIZE_MAX)) {
    p->at = before;
    return 0;
  }
  if (*min == SIZE_MAX) *min = 0;
  if (*min > REGEX_MAX_REPEAT || (*max != SIZE_MAX && (*max > REGEX_MAX_REPEAT || *max < *min)))
    regex_refuse(p, "a repetition out of range");
  return 1;
}

static int parse_repeat(regex_parser *p, size_t *min, size_t *max, repeat_mode *mode) {
  int braces = 0;
  *mode = REPEAT_GREEDY;
  *min = 0;
  *max = SIZE_MAX;
  if (regex_skip(p, "+"))
    *min = 1;
  else if (regex_skip(p, "?"))
    *max = 1;
  else if (!regex_skip(p, "*") && !(braces = parse_braces(p, min, max)))
    return 0;
  if (regex_skip(p, "?"))
    *mode = REPEAT_LAZY;
  else if (!braces && regex_skip(p, "+"))
    *mode = REPEAT_POSSESSIVE;
  if (regex_is_next(p, "*") || regex_is_next(p, "+") || regex_is_next(p, "?"))
    regex_refuse(p, "a repetition of a repetition");
  return 1;
}

/* Copies code[first, last) to the end. */
static void copy_code(regex_parser *p, size_t first, size_t last) {
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
static void add_optional(regex_parser *p, size_t first, size_t last, int lazy) {
  size_t split = emit(p, (regex_code){.op = OP_SPLIT}), end;
  copy_code(p, first, last);
  if (p->status != BERT_OK) return;
  end = p->r->code_count;
  p->r->code[split].a = lazy ? end : split + 1;
  p->r->code[split].b = lazy ? split + 1 : end;
}

/* Repeats what stands from code[first] on, which is more than a set. */
static void repeat_group(regex_parser *p, size_t first, size_t min, size_t max, repeat_mode mode) {
  size_t last = p->r->code_count, size = last - first, split;
  int lazy = mode == REPEAT_LAZY;
  if (max == 0) regex_refuse(p, "a repetition of nothing");
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
static void wrap(regex_parser *p, size_t first, regex_op op, int negated) {
  insert(p, first, (regex_code){.op = op, .b = (size_t)negated});
  emit(p, (regex_code){.op = OP_DONE});
  if (p->status == BERT_OK) p->r->code[first].a = p->r->code_count;
}

/* Behind the parenthesis. */
static extent parse_group(regex_parser *p) {
  size_t first = p->r->code_count;
  int fold = p->fold, ahead = 0, negated = 0, atomic = 0;
  extent inner;
  if (++p->depth > REGEX_MAX_DEPTH) regex_refuse(p, "too many groups in groups");
  if (regex_skip(p, "?=")) {
    ahead = 1;
  } else if (regex_skip(p, "?!")) {
    ahead = negated = 1;
  } else if (regex_skip(p, "?>")) {
    atomic = 1;
  } else if (regex_skip(p, "?i:")) {
    p->fold = 1;
  } else if (!regex_skip(p, "?:") && regex_is_next(p, "?")) {
    regex_refuse(p, "a group of a kind");
  }
  inner = p->status == BERT_OK ? parse_choice(p) : (extent){0};
  if (!regex_skip(p, ")")) regex_refuse(p, "( without )");
  if (ahead || atomic) wrap(p, first, ahead ? OP_AHEAD : OP_ATOMIC, negated);
  if (ahead) inner = (extent){0, 0};
  p->fold = fold;
  p->depth--;
  return inner;
}

/* One character, set or group; *single: it is a set. */
static extent parse_atom(regex_parser *p, int *single) {
  size_t first = p->r->item_count, set = 0;
  *single = 1;
  if (regex_skip(p, "(")) {
    *single = 0;
    return parse_group(p);
  }
  if (regex_skip(p, "[")) {
    set = regex_parse_set(p);
  } else if (regex_skip(p, ".")) {
    regex_add_item(p, (set_item){.kind = SET_RANGE, .first = '\n', .last = '\n'});
    set = regex_close_set(p, first, 1);
  } else if (regex_is_next(p, "\\w") || regex_is_next(p, "\\W")) {
    set = regex_parse_word(p);
  } else if (regex_is_next(p, "\\") && regex_add_escaped(p)) {
    set = regex_close_set(p, first, 0);
  } else if (regex_is_next(p, "^") || regex_is_next(p, "$") || regex_is_next(p, "*") ||
             regex_is_next(p, "+") || regex_is_next(p, "?")) {
    char what[2] = {p->text.data[p->at], '\0'};
    regex_refuse(p, what);
  } else {
    int escape = regex_skip(p, "\\");
    uint32_t c = 0;
    if (!regex_more(p))
      regex_refuse(p, "a backslash at its end");
    else
      c = escape ? regex_escaped(p) : unicode_next(p->text.data, p->text.size, &p->at);
    regex_add_range(p, c, c);
    set = regex_close_set(p, first, 0);
  }
  emit(p, (regex_code){.op = OP_SET, .a = set});
  return (extent){1, 0};
}

static extent parse_repeated(regex_parser *p) {
  size_t first = p->r->code_count, min, max;
  int single;
  repeat_mode mode;
  extent e = parse_atom(p, &single);
  if (!regex_more(p) || !parse_repeat(p, &min, &max, &mode)) return e;
  if (p->status != BERT_OK) return e;
  if (single) {
    regex_code *code = &p->r->code[first];
    *code = (regex_code){.op = OP_RUN, .a = code->a, .min = min, .max = max, .mode = mode};
  } else {
    if (e.unlimited && max > 1) regex_refuse(p, "a repetition of a repetition");
    if (e.min == 0) regex_refuse(p, "a repetition of what may be nothing");
    repeat_group(p, first, min, max, mode);
    if (mode == REPEAT_POSSESSIVE) wrap(p, first, OP_ATOMIC, 0);
  }
  return (extent){e.min * min, e.unlimited || max == SIZE_MAX};
}

static extent parse_sequence(regex_parser *p) {
  extent e = {0, 0};
  while (regex_more(p) && !regex_is_next(p, "|") && !regex_is_next(p, ")")) {
    extent next = parse_repeated(p);
    e.min += next.min;
    e.unlimited |= next.unlimited;
  }
  return e;
}

static extent parse_choice(regex_parser *p) {
  size_t first = p->r->code_count;
  extent e = parse_sequence(p);
  while (regex_more(p) && regex_skip(p, "|")) {
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
static extent parse_literal(regex_parser *p) {
  extent e = {0, 0};
  while (regex_more(p)) {
    size_t first = p->r->item_count;
    uint32_t c = unicode_next(p->text.data, p->text.size, &p->at);
    regex_add_range(p, c, c);
    emit(p, (regex_code){.op = OP_SET, .a = regex_close_set(p, first, 0)});
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
  regex_parser p = {.text = pattern, .status = BERT_OK, .error = error};
  extent e;
  *out = p.r = memory_zero(sizeof *p.r);
  if (p.r == NULL) return error_nomem(error, "compiling a pattern");
  e = literal ? parse_literal(&p) : parse_choice(&p);
  if (regex_more(&p)) regex_refuse(&p, ") without (");
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
