/*
** chain.h: the general pipeline, for every tokenizer.json that the short path of
** pipeline.h (BertNormalizer, BertPreTokenizer, WordPiece) does not cover.
**
** Normalizers and pre-tokenizers become a chain of steps. While a text is read
** each step is a stage that pulls characters from the stage before it, every one
** with the bytes of the original that it stands for; a pre-tokenizer also says
** which characters begin a part of the text. So nothing is as long as the text
** but what a stage must look ahead, and that is limited (AHEAD_MAX).
**
**   chain.c         stages put together, the words at their end
**   steps.c         steps that look at one character at a time
**   forms.c         NFC, NFD, NFKC, NFKD
**   transform.c     which bytes a character stands for when some were replaced
**   charsmap.c      Precompiled: the character map of SentencePiece
**   replace.c       Replace, and Split: a pattern looked for in the text
**   regex.c         the patterns; regexset.c: their sets; regexmatch.c: their search
**   splits.c        pre-tokenizers that look at one character at a time
**   gpt2.c          ByteLevel's own pattern
**   lookout.c       added tokens that are looked for in normalized text
**
** What becomes of the words is in models.h.
*/
#ifndef BERT_CHAIN_H
#define BERT_CHAIN_H

#include "pipeline.h"

/* What a stage may keep, in characters: a run of marks, a match of a pattern, a
** word, white space before an added token. Beyond it the run is handed on in
** parts. */
enum { AHEAD_MAX = 65536 };

/* A character on its way. */
typedef struct text_char {
  uint32_t c;
  int begins;         /* a part begins here */
  size_t start, stop; /* the bytes of the original it stands for */
} text_char;

/* Characters in order: items[head, count). */
typedef struct char_queue {
  text_char *items;
  size_t head, count, capacity;
} char_queue;
int queue_grow(char_queue *q); /* makes room; 0 when out of memory */
static inline size_t queue_size(const char_queue *q) {
  return q->count - q->head;
}
static inline int queue_push(char_queue *q, text_char c) { /* 0 when out of memory */
  if (q->count == q->capacity && !queue_grow(q)) return 0;
  q->items[q->count++] = c;
  return 1;
}
static inline text_char queue_take(char_queue *q) {
  text_char c = q->items[q->head++];
  if (q->head == q->count) q->head = q->count = 0;
  return c;
}

/* ---- charsmap.c, regex.c: what some steps need ----------------------------- */

typedef struct charsmap charsmap;
typedef struct regex regex;

/* Reads a precompiled_charsmap, in base64. BERT_INVALID when it is broken. */
bert_status charsmap_load(const json_value *json, charsmap **out, bert_error *error);
void charsmap_free(charsmap *m);

/* Compiles a pattern (as it stands if `literal`). BERT_UNSUPPORTED names what is
** not supported of it. */
bert_status regex_compile(bert_text pattern, int literal, regex **out, bert_error *error);
void regex_free(regex *r);

/* ---- Steps ------------------------------------------------------------------ */

typedef enum step_kind {
  /* normalizers */
  STEP_CLEAN,       /* of BertNormalizer: */
  STEP_IDEOGRAPHS,  /*   spaces around them */
  STEP_STRIP_MARKS, /*   Mn of Unicode 8 */
  STEP_LOWERCASE,
  STEP_STRIP_ACCENTS, /* M of Unicode 9 */
  STEP_NFC,
  STEP_NFD,
  STEP_NFKC,
  STEP_NFKD,
  STEP_NMT,
  STEP_STRIP,       /* left: flag & 1, right: flag & 2 */
  STEP_PREPEND,     /* content */
  STEP_REPLACE,     /* pattern, content */
  STEP_PRECOMPILED, /* map */
  STEP_BYTES,       /* each byte a character, also a pre-tokenizer */
  /* pre-tokenizers */
  STEP_PREFIX,     /* `c` before a part that does not begin with it; flag: before the first */
  STEP_CHANGE,     /* ' ' becomes `c` */
  STEP_CUT_SPACES, /* the rest have a behavior */
  STEP_CUT_PUNCTUATION,
  STEP_CUT_NUMBERS,
  STEP_CUT_AT, /* at `c` */
  STEP_CUT_WORDS,
  STEP_CUT_PATTERN, /* pattern; flag: what does not match is cut out */
  STEP_GPT2
} step_kind;

/* What becomes of the characters at which a text is cut. */
typedef enum cut_behavior {
  CUT_REMOVED,
  CUT_ISOLATED,
  CUT_MERGED_WITH_PREVIOUS,
  CUT_MERGED_WITH_NEXT,
  CUT_CONTIGUOUS
} cut_behavior;

typedef struct step {
  step_kind kind;
  cut_behavior behavior;
  int flag;
  uint32_t c;
  uint32_t *content; /* [content_size] characters */
  size_t content_size;
  charsmap *map;
  regex *pattern;
} step;

enum { CHAIN_MAX_STEPS = 64 };
typedef struct chain {
  step *steps; /* [count]: normalizers, then pre-tokenizers */
  size_t count, capacity, normalizers;
  double growth;             /* by how much replacements can lengthen a text; 0: there are none */
  compositions compositions; /* when a step needs them */
} chain;

uint32_t chain_byte_char(unsigned char byte); /* what STEP_BYTES makes of a byte */

/* Adds a step, zeroed but for its kind, to *out; it stays the chain's. */
bert_status chain_add(chain *c, step_kind kind, step **out, bert_error *error);
void chain_free(chain *c);

/* loadchain.c: reads "normalizer" and "pre_tokenizer". */
bert_status chain_load_normalizer(chain *c, const json_value *json, bert_error *error);
bert_status chain_load_pretokenizer(chain *c, const json_value *json, bert_error *error);

/* The steps of ByteLevel: a space before the text, GPT-2's pattern, bytes. */
bert_status chain_add_byte_level(chain *c, int prefix, int cut, bert_error *error);

/* Puts a step that lower-cases before all others. */
bert_status chain_lowercase_first(chain *c, bert_error *error);

/* ---- transform.c ------------------------------------------------------------- */

/* The bytes of characters that a normalizer puts in the place of others, as the
** reference counts: a new character replaces the next old one (change 0) and
** perhaps some after it (change -n), or is put in behind (change 1). */
typedef struct transform {
  char_queue old;     /* read, but not replaced */
  size_t start, stop; /* of the last one replaced */
} transform;

void transform_reset(transform *t, size_t begin);     /* `begin`: byte where the piece begins */
int transform_read(transform *t, const text_char *c); /* 0 when out of memory */
void transform_skip(transform *t, size_t count);
void transform_note(transform *t, const text_char *c); /* it went through as it is */
text_char transform_put(transform *t, uint32_t c, long change);

/* ---- Stages ------------------------------------------------------------------- */

typedef struct chain_run chain_run;
typedef struct stage stage;

/* A character with its combining class, and the change it makes. */
typedef struct form_item {
  uint32_t c;
  int class;
  long change;
} form_item;

typedef struct form_list {
  form_item *items;
  size_t count, capacity;
} form_list;

/* State of NFC and its kin; see forms.c. */
typedef struct form_state {
  transform transform;
  form_list marks;   /* decomposed, not yet in order */
  form_list blocked; /* behind `base`, and not composed with it */
  form_item base;
  int has_base, last_class;
} form_state;

/* State of Precompiled; see charsmap.c. */
typedef struct charsmap_state {
  transform transform;
  grapheme_state cluster;
  int known;  /* `cluster` has seen the next character, */
  int inside; /*   which goes on a cluster that is taken character by character */
  enum { LAST_NONE, LAST_REPLACED, LAST_PENDING } last; /* what was put last */
  uint32_t pending;                                     /* with change 1 */
} charsmap_state;

struct stage {
  int (*next)(stage *s, text_char *out); /* 0 at the end, and not called again */
  stage *from;
  const step *step;
  chain_run *run;
  char_queue ahead; /* read, but not handed on */
  char_queue ready; /* made, but not handed on */
  int ended;        /* `from` has given all */
  int begun;        /* something was handed on */
  int matched;      /* the character before was one to cut at */
  int begins;       /* what is handed on next begins a part */
  size_t part;      /* characters ahead that belong to one match */
  int mode;
  form_state *forms;
  charsmap_state *charsmap;
};

/* The character `i` ahead, or NULL when the text ends before it, or when there is
** no memory, which the run remembers. */
const text_char *stage_fetch(stage *s, size_t i);
static inline const text_char *stage_peek(stage *s, size_t i) {
  return i < queue_size(&s->ahead) ? &s->ahead.items[s->ahead.head + i] : stage_fetch(s, i);
}

/* Hands on what is ready first; 0: nothing is. */
static inline int stage_give(stage *s, text_char *out) {
  if (queue_size(&s->ready) == 0) return 0;
  *out = queue_take(&s->ready);
  return 1;
}
void stage_make(stage *s, text_char c); /* puts it behind what is ready */

/* Stages of the steps: the function that runs a kind of step. */
typedef int stage_function(stage *s, text_char *out);
stage_function *steps_function(step_kind kind);  /* steps.c; NULL: of another file */
stage_function *splits_function(step_kind kind); /* splits.c */
stage_function forms_next, charsmap_next, replace_next, pattern_next, gpt2_next;
int forms_begin(stage *s); /* 0 when out of memory */
int charsmap_begin(stage *s);
void forms_end(stage *s);
void charsmap_end(stage *s);

/* Whether a match can begin with a character of ASCII. */
int regex_begins(const regex *r, uint32_t c);

/* The characters of the match of a pattern that begins with the one ahead; 0: none. */
size_t regex_match(const regex *r, stage *s);

/* ---- A run over one text ------------------------------------------------------- */

/* White space, or the Ġ that ByteLevel makes of a space, around a token: what
** trim_offsets leaves out. */
typedef struct margins {
  size_t lead, trail, characters;
} margins;
void margins_add(margins *m, uint32_t c);

/* Added tokens in normalized text; see lookout.c. */
typedef struct lookout {
  const added_token *token; /* the one that was found */
  size_t start, stop;       /* its bytes, white space that it takes included */
  margins margins;
  size_t plain;    /* characters ahead in which no token begins */
  size_t taken;    /* white space ahead that the last token took */
  uint32_t before; /* the character before; 0: none */
} lookout;
void lookout_reset(lookout *l);
stage_function lookout_next;

struct chain_run {
  const chain *chain;
  const added_tokens *added;
  added_scan *scan;
  size_t at, stop; /* of the text: next byte, and up to where the piece is known */
  int failed;      /* out of memory */
  stage *stages;   /* [chain->count + 2] */
  size_t count;
  lookout lookout;
  int held; /* a character that begins the next word is in held_char */
  text_char held_char;
  int ended;
};

/* A character of a word. */
typedef struct word_char {
  size_t start, stop; /* bytes of the original */
  size_t end;         /* its end in the bytes of the word */
} word_char;

/* What a model is given: a word, or a part of one that is too long. */
typedef struct chain_word {
  char *bytes;      /* [size] */
  word_char *chars; /* [count] */
  size_t size, bytes_capacity, count, capacity;
  size_t limit;       /* characters that are kept */
  int keeps_all;      /* what is beyond comes as a further part; else it only counts: */
  int overlong;       /* there was more */
  int first, last;    /* it begins a word, it ends one */
  size_t start, stop; /* of the whole word, where `overlong` */
} chain_word;

int chain_run_begin(chain_run *r, const chain *c, const added_tokens *added, added_scan *scan);
void chain_run_end(chain_run *r);
void chain_run_piece(chain_run *r); /* starts on the piece at the scan's place */

/* The next word, or what is left of one; 0 at the end of the piece or at an added
** token, which is then in r->lookout.token. */
int chain_run_word(chain_run *r, chain_word *w);
/* Goes on behind that token; 0: there is none. */
int chain_run_resume(chain_run *r);

/* Drops the first `count` characters, which were tokenized, so that
** chain_run_word goes on behind them. */
void chain_word_drop(chain_word *w, size_t count);
void chain_word_free(chain_word *w);

#endif
