/*
** pipeline.h: what the files of this folder share, and nobody else includes.
**
** A text passes through these hands, each of which pulls from the one before,
** so that nothing is ever as long as the text:
**
**   added.c         pieces of text between added tokens
**   normalizer.c    a piece as normalized characters, each with its bytes
**   marks.c           of the original; runs of combining marks in their order
**   window.c        added tokens that are looked for in normalized text
**   pretokenizer.c  words
**   wordpiece.c     tokens of a word
**   postprocessor.c special tokens around them
*/
#ifndef BERT_PIPELINE_H
#define BERT_PIPELINE_H

#include "characters.h"

/* ---- trie.c ------------------------------------------------------------ */

/* Strings and their values, read byte by byte. The edges are in one
** open-addressing table, and the number of a node is the slot of the edge that
** leads to it: one probe per byte. */
typedef struct trie_slot {
  uint32_t key;  /* node * 256 + byte, or TRIE_NONE */
  int32_t value; /* of the string that ends here, or -1 */
} trie_slot;

typedef struct trie {
  trie_slot *slots; /* [mask + 1] */
  uint32_t mask;
  uint32_t root;
  int shift;
} trie;

#define TRIE_NONE UINT32_MAX

/* Makes a trie of texts[count] whose values are 0, 1, …, or values[count] if
** given. Values are not negative, texts not empty; a text that is there twice
** keeps its last value. BERT_NOMEM, BERT_UNSUPPORTED when there are too many. */
bert_status trie_build(trie *t, const bert_text *texts, const int32_t *values, size_t count,
                       bert_error *error);
void trie_free(trie *t);

static inline uint32_t trie_hash(const trie *t, uint32_t key) {
  return (key * 0x9E3779B1u) >> t->shift;
}

/* The node reached from `node` by `byte`, or TRIE_NONE. */
static inline uint32_t trie_step(const trie *t, uint32_t node, unsigned char byte) {
  uint32_t key = node << 8 | byte;
  for (uint32_t at = trie_hash(t, key);; at = (at + 1) & t->mask) {
    if (t->slots[at].key == key) return at;
    if (t->slots[at].key == TRIE_NONE) return TRIE_NONE;
  }
}

/* The node reached from `node` by a text, or TRIE_NONE, which leads nowhere. */
static inline uint32_t trie_walk(const trie *t, uint32_t node, bert_text text) {
  for (size_t i = 0; i < text.size && node != TRIE_NONE; i++)
    node = trie_step(t, node, (unsigned char)text.data[i]);
  return node;
}

/* ---- vocabulary.c ------------------------------------------------------ */

enum { VOCABULARY_MAX_ID = 9999999 };

typedef struct vocabulary_entry {
  bert_text text; /* in `bytes` */
  int32_t id;
} vocabulary_entry;

/* The strings of the model. Filled with vocabulary_add, then closed. */
typedef struct vocabulary {
  vocabulary_entry *entries; /* [count], by id once closed */
  size_t count, capacity;
  char *bytes;
  trie trie; /* string to id */
} vocabulary;

/* Adds a string, which must outlive the filling. BERT_INVALID for an id out of
** range; BERT_NOMEM. */
bert_status vocabulary_add(vocabulary *v, bert_text text, int64_t id, bert_error *error);

/* Copies the strings and builds the trie. BERT_INVALID when empty or when two
** strings have one id. */
bert_status vocabulary_close(vocabulary *v, bert_error *error);
void vocabulary_free(vocabulary *v);

int32_t vocabulary_id(const vocabulary *v, bert_text text); /* -1: not there */
bert_text vocabulary_text(const vocabulary *v, int32_t id); /* NULL, 0: none */

/* ---- added.c ----------------------------------------------------------- */

typedef struct added_token {
  bert_text content; /* memory_free its data */
  int32_t id;
  int single_word; /* not inside a word */
  int lstrip;      /* takes the white space before it */
  int rstrip;      /* takes the white space after it */
  int normalized;  /* is looked for in normalized text */
} added_token;

/* Tokens that are looked for together: the leftmost, of these the longest. */
typedef struct added_set {
  trie trie;                /* value: index in tokens */
  unsigned char first[256]; /* 1: a token begins with this byte */
  int any, any_lstrip;
  size_t longest; /* characters of the longest */
} added_set;

typedef struct added_tokens {
  added_token *tokens;
  size_t count, capacity;
  int64_t next_id;              /* above all of theirs */
  uint32_t *index, index_slots; /* content to number + 1 of the token; 0: free */
  added_set raw, normalized;
} added_tokens;

/* Adds a token as tokenizer.json or tokenizer_config.json describes it; `id`
** is -1 where the file gives none. The id is that of the vocabulary, or the
** next free one. Empty tokens are left out. */
int32_t added_find(const added_tokens *a, bert_text content); /* its id; -1: not there */
bert_status added_add(added_tokens *a, const vocabulary *v, const added_token *added, int64_t id,
                      bert_error *error);

/* Makes the sets; needs the normalizer, which is the chain's unless that is NULL. */
struct normalizer;
struct chain;
bert_status added_close(added_tokens *a, const struct normalizer *n, const struct chain *c,
                        bert_error *error);
void added_free(added_tokens *a);

/* Looks through a text for raw added tokens, a block at a time. */
typedef struct added_scan {
  const added_tokens *added;
  bert_text text;
  size_t resume;            /* where the next token may begin */
  size_t taken;             /* end of the last one, white space included */
  size_t known;             /* there is none before this byte */
  const added_token *match; /* the one that begins at `start`, if found */
  size_t start, stop;       /* its bytes, white space included */
} added_scan;

void added_scan_begin(added_scan *s, const added_tokens *added, bert_text text);

/* Looks further: `known` grows or `match` is found. 0 when there is a match or
** the text ends at `known`. */
int added_scan_more(added_scan *s);

/* Goes on behind the match. */
void added_scan_next(added_scan *s);

/* ---- normalizer.c, marks.c --------------------------------------------- */

/* What a normalized character is to the stages that follow. The order matters:
** what is below NORMAL_DROPPED is one character. */
typedef enum normal_kind {
  NORMAL_LETTER,      /* part of a word */
  NORMAL_SPACE,       /* white space */
  NORMAL_PUNCTUATION, /* a word of its own */
  NORMAL_IDEOGRAPH,   /* stands between two spaces that the normalizer put in */
  NORMAL_DROPPED,     /* removed by cleaning, as if it had never been there */
  NORMAL_REMOVED,     /* a mark without a combining class, removed */
  NORMAL_MARK,        /* a mark with a combining class, removed */
  NORMAL_COMPLEX      /* becomes several, or must be put in order */
} normal_kind;

typedef struct normal_char {
  uint32_t c;
  normal_kind kind;
  size_t start, stop; /* the bytes of the original it stands for */
} normal_char;

enum {
  NORMALIZER_CLEAN = 1,       /* remove control characters, unify white space */
  NORMALIZER_CHINESE = 2,     /* put spaces around ideographs */
  NORMALIZER_STRIP = 4,       /* decompose and remove nonspacing marks */
  NORMALIZER_LOWER = 8,       /* lower case */
  NORMALIZER_LOWER_FIRST = 16 /* lower case before all else */
};

/* Below NORMALIZER_TABLE the fate of each character is looked up: an entry is
** kind << 21 | (character - original) mod 2^21; 0 is a letter that stays. */
enum { NORMALIZER_TABLE = 0x30000, NORMALIZER_PAGE = 128 };

typedef struct normalizer {
  int steps;                                          /* a sum of NORMALIZER_… */
  uint16_t pages[NORMALIZER_TABLE / NORMALIZER_PAGE]; /* index of the page's entries */
  uint32_t *entries;                                  /* [page][NORMALIZER_PAGE] */
  unsigned char ascii[128]; /* the ASCII letter that an ASCII character becomes, or 0 */
} normalizer;

bert_status normalizer_build(normalizer *n, int steps, bert_error *error);
void normalizer_free(normalizer *n);

/* What cleaning makes of a character; *dropped is set when it is removed. */
uint32_t normalizer_clean(uint32_t c, int *dropped);

/* What one character becomes before order and removal: at most
** EXPANSION_MAX, `first` having a bit for each that replaces a character (the
** others are added behind one). */
enum { EXPANSION_MAX = 2 * UNICODE_DECOMPOSED };
typedef struct expansion {
  int count;
  int ideograph, dropped;
  unsigned first;
  uint32_t c[EXPANSION_MAX];
} expansion;
void normalizer_expand(const normalizer *n, uint32_t c, expansion *out);

/* A run of combining marks that is being given out in canonical order; see
** marks.c. */
typedef struct mark_cursor {
  size_t at;   /* behind the character that was read last */
  int item;    /* next item of it */
  expansion e; /* what it becomes */
} mark_cursor;

typedef struct mark_run {
  int active;
  size_t start, stop;  /* bytes of the original */
  int class;           /* of the marks given out now */
  mark_cursor cursor;  /* where the next one of that class is looked for */
  size_t order;        /* characters replaced before it, in canonical order */
  size_t source_at;    /* the next character whose bytes are given to a mark, */
  size_t source_index; /*   and its number in the run */
  size_t source_start; /* where the one before it begins */
} mark_run;

/* Reads a piece of a text as normalized characters. */
enum { READER_QUEUE = 16 };
typedef struct reader {
  const normalizer *normalizer;
  added_scan *scan;
  const char *text;
  size_t size; /* of the text */
  size_t at;   /* next byte */
  size_t stop; /* bytes before this belong to the piece, as far as is known */
  mark_run run;
  int queued, given;
  normal_char queue[READER_QUEUE];
} reader;

void reader_begin(reader *r, const normalizer *n, added_scan *scan);

/* The next normalized character; 0 at the end of the piece. */
int reader_next(reader *r, normal_char *out);

/* Whether the piece goes on at byte `at`; looks further if need be. */
int reader_has(reader *r, size_t at);

/* The next character at *at that cleaning does not remove; 0 at the end. */
int reader_source(reader *r, size_t *at, size_t *start, expansion *out);

/* Starts giving out the run of marks at byte `start`, where a starter stands if
** it brought marks of its own; and the next of them. */
void marks_begin(reader *r, size_t start, int after_starter);
int marks_next(reader *r, normal_char *out);

/* ---- window.c ---------------------------------------------------------- */

/* Looks ahead in normalized text for added tokens. */
typedef struct window {
  const added_tokens *added;
  reader *reader;
  normal_char *ahead; /* [capacity], a ring */
  size_t capacity, head, count;
  size_t plain;       /* characters at the head in which no token is looked for */
  size_t taken;       /* white space at the head that the last token took */
  uint32_t before;    /* the character before the head; 0: none */
  int in_space;       /* white space is before the head, */
  size_t space_start; /*   beginning at this byte */
} window;

/* Starts on a piece. `added`, `ahead` and `capacity` are set. */
void window_begin(window *w, reader *r);

/* The next character, or an added token, whose bytes are then in *out. 0 at
** the end of the piece. */
int window_next(window *w, normal_char *out, const added_token **token);

/* ---- pretokenizer.c ---------------------------------------------------- */

typedef enum pretokenizer_kind { PRETOKENIZER_NONE, PRETOKENIZER_BERT } pretokenizer_kind;

/* A word in normalized text and where each of its characters comes from. While
** `linear`, byte i of it comes from byte start + i of the original, and the
** arrays are not filled. */
typedef struct word {
  size_t limit;           /* characters that are kept, at most */
  char *bytes;            /* [limit * 4] */
  size_t *starts, *stops; /* [limit], by character */
  uint32_t *ends;         /* [limit], the end of each character in `bytes` */
  size_t size;            /* bytes */
  size_t count;           /* characters */
  int overlong;           /* there were more than `limit`; bytes hold the first */
  int linear;
  size_t start, stop;                         /* the bytes of the original it stands for */
  size_t solid_count, solid_size, solid_stop; /* as it was behind its last character */
  int solid_overlong;                         /*   that is no white space */
  const added_token *added;                   /* the word is this added token */
} word;

typedef struct pretokenizer {
  pretokenizer_kind kind;
  reader *reader;
  window *window; /* NULL when no added token is looked for in normalized text */
  int held;       /* a character, or an added token, was read already */
  normal_char held_char;
  const added_token *held_token;
} pretokenizer;

/* The next word; 0 at the end of the piece. */
int pretokenizer_next(pretokenizer *p, word *out);

/* ---- wordpiece.c ------------------------------------------------------- */

/* A token before special tokens are put around. */
typedef struct found_token {
  int32_t id;
  int32_t number; /* of its word in the segment */
  size_t start, stop;
} found_token;

typedef struct token_list {
  found_token *items;
  size_t count, capacity;
} token_list;

/* 0 when out of memory. */
int token_list_add(token_list *list, int32_t id, int32_t number, size_t start, size_t stop);

enum { WORDPIECE_MAX_CHARS = 65535 };
typedef struct wordpiece {
  int32_t unknown;       /* id */
  uint32_t continuation; /* node of the trie behind the prefix; TRIE_NONE: no piece has it */
  size_t max_chars;      /* longer words are unknown */
} wordpiece;

/* Adds the tokens of a word; 0 when out of memory. */
int wordpiece_tokenize(const wordpiece *m, const trie *strings, const word *w, int32_t number,
                       token_list *out);

/* ---- postprocessor.c --------------------------------------------------- */

/* A part of a template: a special token, or a whole segment. */
typedef struct template_part {
  int segment; /* 0, 1; -1: a special token */
  int32_t id;
  int32_t type;
} template_part;

typedef struct template {
  template_part *parts;
  size_t count, capacity, special;
}
template;

/* trim_offsets: white space at the ends of a token does not count, but for the one
** space that was put before the first word. */
enum { POSTPROCESSOR_MAX_TRIMS = 4 };
typedef struct token_margins {
  uint16_t lead, trail; /* characters of white space, or Ġ, in the token's string */
} token_margins;

typedef struct postprocessor {
  template single, pair;
  int trims, prefix_space[POSTPROCESSOR_MAX_TRIMS];
  token_margins *margins; /* [margin_count], by id; when there are trims */
  size_t margin_count;
} postprocessor;

enum { POSTPROCESSOR_MAX_TYPE = 127, POSTPROCESSOR_MAX_PARTS = 1000 };

/* Adds a part; POSTPROCESSOR_MAX_PARTS at most. */
bert_status template_add(template *t, int segment, int64_t id, int64_t type, bert_error *error);

/* [A], [A, B] of types 0 and 1, as without a post-processor. */
bert_status postprocessor_plain(postprocessor *p, bert_error *error);

/* cls A sep, and cls A sep B sep with type 1 from B on. */
bert_status postprocessor_bert(postprocessor *p, int64_t cls, int64_t sep, bert_error *error);

/* The same with two sep between, all of type 0; trim_offsets is added apart. */
bert_status postprocessor_roberta(postprocessor *p, int64_t cls, int64_t sep, bert_error *error);
bert_status postprocessor_add_trim(postprocessor *p, int prefix_space, bert_error *error);

/* Reads "post_processor" of tokenizer.json. */
bert_status postprocessor_load(postprocessor *p, const json_value *json, bert_error *error);
void postprocessor_free(postprocessor *p);

#endif
