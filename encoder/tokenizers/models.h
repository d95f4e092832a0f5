/*
** models.h: what cuts a word of the general pipeline into tokens. (WordPiece on
** the short path is in pipeline.h.)
*/
#ifndef BERT_MODELS_H
#define BERT_MODELS_H

#include "chain.h"

/* A token in a word: its bytes there. As in the reference they may lie beyond the
** word, when characters were dropped or stood for several tokens. */
typedef struct piece {
  int32_t id;
  size_t start, end;
} piece;

typedef struct piece_list {
  piece *items;
  size_t count, capacity;
} piece_list;
int piece_add(piece_list *list, int32_t id, size_t start, size_t end); /* 0: out of memory */

/* ---- bpe.c ------------------------------------------------------------------- */

/* Two tokens that merge: the pair with the lowest rank goes first. */
typedef struct bpe_merge {
  uint64_t pair; /* left << 32 | right; UINT64_MAX: free */
  uint32_t rank;
  int32_t merged;
} bpe_merge;

enum { BPE_DIRECT = 0x180 }; /* characters whose tokens are looked up in a table */

typedef struct bpe {
  bpe_merge *merges; /* [mask + 1], a hash table */
  size_t mask;
  int shift;
  int32_t unknown;  /* -1: none; unknown characters are dropped */
  int lost_unknown; /* its name is given, but not in the vocabulary */
  int fuse_unknown, byte_fallback, ignore_merges;
  bert_text prefix, suffix; /* memory_free their data */
  uint32_t continuation;    /* node of the trie behind the prefix */
  int32_t bytes[256];       /* tokens <0x00> to <0xFF>, or -1 */
  int32_t direct[BPE_DIRECT];
  unsigned char *whole; /* [ids]: 1: the token's text, as a word, becomes this token;
                        ** 2: it does not; 0: not tried yet. Read and written without
                        ** a lock, for all threads find the same. */
  size_t ids;
} bpe;

/* Makes room for `count` merges; then one by one, the last of a pair counting. */
bert_status bpe_allocate(bpe *m, size_t count, bert_error *error);
void bpe_add_merge(bpe *m, int32_t left, int32_t right, uint32_t rank, int32_t merged);
/* Once merges and options are set. */
bert_status bpe_close(bpe *m, const vocabulary *v, bert_error *error);
void bpe_free(bpe *m);

typedef struct bpe_symbol {
  int32_t id, previous, next;
  uint32_t size; /* 0: merged into another */
} bpe_symbol;

typedef struct bpe_candidate {
  uint64_t order; /* rank << 32 | place of the left symbol */
  int32_t merged;
} bpe_candidate;

typedef struct bpe_work {
  bpe_symbol *symbols;
  size_t count, capacity;
  bpe_candidate *heap;
  size_t waiting, heap_capacity;
} bpe_work;
void bpe_work_free(bpe_work *work);

/* Adds the tokens of a word; 0 when out of memory. n log n for n characters. */
int bpe_tokenize(const bpe *m, const vocabulary *v, const chain_word *w, bpe_work *work,
                 piece_list *out);

/* ---- unigram.c ----------------------------------------------------------------- */

typedef struct unigram {
  double *scores; /* [count], by id */
  size_t count;
  double unknown_score;
  int32_t unknown;
  int byte_fallback;
  int32_t bytes[256]; /* tokens <0x00> to <0xFF>, or -1 */
} unigram;
void unigram_close(unigram *m, const vocabulary *v); /* once scores and options are set */
void unigram_free(unigram *m);

/* The best way to a byte of a word. */
typedef struct unigram_node {
  double score;
  int32_t id;
  uint32_t start; /* of its last piece; UINT32_MAX: no way */
} unigram_node;

typedef struct unigram_work {
  unigram_node *nodes;
  size_t capacity;
} unigram_work;
void unigram_work_free(unigram_work *work);

/* Adds the tokens of a word; 0 when out of memory. */
int unigram_tokenize(const unigram *m, const vocabulary *v, const chain_word *w, unigram_work *work,
                     piece_list *out);

/* ---- wordpiece.c ----------------------------------------------------------- */

/* WordPiece on a word of the chain: as wordpiece_tokenize does. */
int wordpiece_cut(const wordpiece *m, const trie *strings, const chain_word *w, piece_list *out);

/* The tokens <0x00> to <0xFF>, -1 where there is none. */
void models_find_bytes(const vocabulary *v, int32_t ids[256]);

#endif
