/*
** pieces.h: what the bertsql table t must say of the texts in a plain table m.
**
** Both have the columns title, body and tag, the last of which is UNINDEXED; the key
** of m is id. Vectors are expected to be those of bert_embed, with the connection's
** default model.
*/
#ifndef BERT_TESTS_PIECES_H
#define BERT_TESTS_PIECES_H

#include <sqlite3.h>

typedef struct piece_rules {
  int chunk_tokens, overlap, all_chunks; /* as the options of t; 0: not given */
  int int8;                              /* 1: vectors are near those of bert_embed */
} piece_rules;

/* Texts that were seen, with their vectors. `rules` is borrowed. */
typedef struct piece_cache piece_cache;
piece_cache *pieces_begin(sqlite3 *db, const piece_rules *rules);
void pieces_end(piece_cache *c);

/* A scan of t gives the rows of m. Each has the vectors of its text, unless its
** status is "pending", which no row may be when in_step is 1. */
void pieces_check_rows(piece_cache *c, int in_step);

/* MATCH gives rows in order of distance; when in_step is 1 exactly those that a
** walk over all vectors gives, at most k of them (0: all). */
void pieces_check_search(piece_cache *c, const char *text, int k, int in_step);

#endif
