/*
** regex.h: patterns, compiled. What regex.c makes and regexmatch.c runs.
*/
#ifndef BERT_REGEX_H
#define BERT_REGEX_H

#include "chain.h"

/* One alternative of a set. */
typedef enum set_kind { SET_RANGE, SET_CATEGORIES, SET_SPACE, SET_WORD } set_kind;
typedef struct set_item {
  set_kind kind;
  int negated;
  uint32_t first, last; /* SET_RANGE */
  uint32_t categories;  /* SET_CATEGORIES: a bit for each */
} set_item;

/* A set of characters: items[first, first + count) of the pattern. */
typedef struct regex_set {
  size_t first, count;
  int negated;
  unsigned char ascii[128]; /* the answer for ASCII */
} regex_set;

typedef enum regex_op {
  OP_SET,    /* one character of set `a` */
  OP_RUN,    /* `a`, min to max times */
  OP_SPLIT,  /* goes on at `a`, else at `b` */
  OP_JUMP,   /* goes on at `a` */
  OP_AHEAD,  /* what follows must match here up to its OP_DONE (b: must not); goes on at `a` */
  OP_ATOMIC, /* the same, and is taken as it matches first */
  OP_DONE
} regex_op;

typedef enum repeat_mode { REPEAT_GREEDY, REPEAT_LAZY, REPEAT_POSSESSIVE } repeat_mode;

typedef struct regex_code {
  regex_op op;
  size_t a, b, min, max; /* max SIZE_MAX: no limit */
  repeat_mode mode;
} regex_code;

struct regex {
  regex_code *code;
  size_t code_count, code_capacity;
  regex_set *sets;
  size_t set_count, set_capacity;
  set_item *items;
  size_t item_count, item_capacity;
  unsigned char first[128]; /* 1: a match may begin with this character of ASCII */
};

int regex_set_has(const regex *r, const regex_set *set, uint32_t c);

/* ---- regexset.c: a pattern being read ------------------------------------------ */

typedef struct regex_parser {
  regex *r;
  bert_text text;
  size_t at;
  int fold; /* letters of either case */
  int depth;
  bert_status status;
  bert_error *error;
} regex_parser;

/* Ends the reading: the pattern has `what` at this place. */
void regex_refuse(regex_parser *p, const char *what);
void regex_fail_memory(regex_parser *p);

int regex_more(const regex_parser *p); /* nothing went wrong, and there is more */
int regex_is_next(const regex_parser *p, const char *text);
int regex_skip(regex_parser *p, const char *text); /* reads it if it is next */

/* A set is made of the items that are added from r->item_count on, and closed; its
** number. */
void regex_add_range(regex_parser *p, uint32_t first, uint32_t last);
void regex_add_item(regex_parser *p, set_item item);
size_t regex_close_set(regex_parser *p, size_t first, int negated);

/* A set in brackets, behind the first; \w or \W; an escape that is a set, as items
** (0: it is none); the character that an escape stands for, behind the backslash. */
size_t regex_parse_set(regex_parser *p);
size_t regex_parse_word(regex_parser *p);
int regex_add_escaped(regex_parser *p);
uint32_t regex_escaped(regex_parser *p);

#endif
