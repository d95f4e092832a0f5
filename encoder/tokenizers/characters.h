/*
** characters.h: what the stages ask about single characters. Each question names
** the version of Unicode that answers it, which is the one that the reference
** has built in at that place.
*/
#ifndef BERT_CHARACTERS_H
#define BERT_CHARACTERS_H

#include "tokenizers.h"

/* A table of these is sorted, and has no two that touch. */
typedef struct unicode_range {
  uint32_t first, last;
} unicode_range;
int unicode_in_ranges(const unicode_range *table, size_t count, uint32_t c);

/* Writes the UTF-8 of `c` to out[4]; returns its bytes. */
size_t unicode_put(uint32_t c, char *out);

int unicode_is_utf8(const char *text, size_t size);

/* The character that ends at text[at] (at > 0), and where it begins. */
uint32_t unicode_previous(const char *text, size_t at, size_t *begin);

int unicode_is_space(uint32_t c);   /* White_Space, the same in every version */
int unicode_is_chinese(uint32_t c); /* CJK ideographs, as BERT counts them */
int unicode_is_word(uint32_t c);    /* \w of Unicode 16 */
int unicode_is_mark(uint32_t c);    /* Mn of Unicode 8 */
int unicode_is_other(uint32_t c);   /* Cc, Cf and Co of Unicode 8 */

/* Canonical decomposition of Unicode 9 to out[UNICODE_DECOMPOSED]; the count,
** which is 1 and `c` itself for most. */
enum { UNICODE_DECOMPOSED = 4 };
int unicode_decompose(uint32_t c, uint32_t *out);

/* Whether NFC leaves `c`, which has a decomposition, as it is. */
int unicode_is_composed(uint32_t c);

/* Canonical combining class of Unicode 9; 0 for a starter. */
int unicode_combining_class(uint32_t c);

/* Full lower case of Unicode 17, without regard to neighbours, to out[2]; the
** count. */
int unicode_lower(uint32_t c, uint32_t *out);

/* Whether a character from `first` to `last` is white space, or may be in one of
** the sets of Unicode 8. */
int unicode_sets_touch(uint32_t first, uint32_t last);

/* 0 when `c` may have a decomposition, a combining class or a lower case. */
int unicode_maps_to_itself(uint32_t c);

/* ---- unicode9.c --------------------------------------------------------- */

int unicode_is_any_mark(uint32_t c);   /* Mn, Mc and Me of Unicode 9 */
int unicode_is_compatible(uint32_t c); /* has a compatibility decomposition in Unicode 9 */

/* Full decomposition of Unicode 9, compatibility mappings included, to
** out[UNICODE_COMPATIBLE]; the count. */
enum { UNICODE_COMPATIBLE = 18 };
int unicode_decompose_compatible(uint32_t c, uint32_t *out);

/* ---- compositions.c ------------------------------------------------------ */

/* The character that `first` and `second` compose to in Unicode 9, but for
** Hangul, as a hash table. */
typedef struct composition {
  uint32_t first, second, composed; /* first 0: free */
} composition;
typedef struct compositions {
  composition *slots; /* [COMPOSITION_SLOTS] */
} compositions;
bert_status compositions_build(compositions *table, bert_error *error);
void compositions_free(compositions *table);

/* The composition, Hangul included; 0: none. */
uint32_t unicode_compose(const compositions *table, uint32_t first, uint32_t second);

/* ---- unicode16_categories.c ---------------------------------------------- */

/* General categories of Unicode 16. */
typedef enum unicode_category {
  UNICODE_LU,
  UNICODE_LL,
  UNICODE_LT,
  UNICODE_LM,
  UNICODE_LO,
  UNICODE_MN,
  UNICODE_MC,
  UNICODE_ME,
  UNICODE_ND,
  UNICODE_NL,
  UNICODE_NO,
  UNICODE_PC,
  UNICODE_PD,
  UNICODE_PS,
  UNICODE_PE,
  UNICODE_PI,
  UNICODE_PF,
  UNICODE_PO,
  UNICODE_SM,
  UNICODE_SC,
  UNICODE_SK,
  UNICODE_SO,
  UNICODE_ZS,
  UNICODE_ZL,
  UNICODE_ZP,
  UNICODE_CC,
  UNICODE_CF,
  UNICODE_CS,
  UNICODE_CO,
  UNICODE_CN,
  UNICODE_CATEGORIES
} unicode_category;
unicode_category unicode_category_of(uint32_t c);

/* ---- unicode17.c --------------------------------------------------------- */

int unicode_is_numeric(uint32_t c); /* Nd, Nl and No of Unicode 17 */

/* Grapheme_Cluster_Break of Unicode 17, with Indic_Conjunct_Break where it
** matters: consonants, linkers and what may stand between. */
typedef enum grapheme_kind {
  GRAPHEME_ANY,
  GRAPHEME_CR,
  GRAPHEME_LF,
  GRAPHEME_CONTROL,
  GRAPHEME_L,
  GRAPHEME_V,
  GRAPHEME_T,
  GRAPHEME_LV,
  GRAPHEME_LVT,
  GRAPHEME_EXTEND,
  GRAPHEME_LINKER,     /* extends, and links consonants */
  GRAPHEME_NON_JOINER, /* extends, but not within a conjunct */
  GRAPHEME_JOINER,     /* U+200D */
  GRAPHEME_SPACING,
  GRAPHEME_PREPEND,
  GRAPHEME_CONSONANT,
  GRAPHEME_PICTOGRAPH,
  GRAPHEME_REGIONAL
} grapheme_kind;
grapheme_kind unicode_grapheme_kind(uint32_t c);

/* ---- graphemes.c ---------------------------------------------------------- */

/* What must be known of the characters so far to tell where a cluster ends. */
typedef struct grapheme_state {
  int any; /* there was a character */
  grapheme_kind before;
  int regionals; /* regional indicators at the end */
  int conjunct;  /* 1: a consonant and what extends it; 2: and a linker */
  int emoji;     /* 1: a pictograph and what extends it; 2: and a joiner */
} grapheme_state;

/* Whether a cluster begins at `c`; remembers it. */
int grapheme_begins(grapheme_state *s, uint32_t c);

#endif
