/*
** search_parts.h: what the files of this folder know of each other. Nobody
** outside includes it.
*/
#ifndef BERT_SEARCH_PARTS_H
#define BERT_SEARCH_PARTS_H

#include <string.h>

#include "search.h"

/* Made by query.c, read by scan.c: q, for cosine divided by its norm, is
** scale * codes but for an error. */
struct search_query {
  search_metric metric;
  size_t dim;
  double scale;
  double norm;     /* not below |q| */
  double error;    /* not below |q - scale codes| */
  double square;   /* |scale codes|^2, to 4 units of rounding */
  int16_t codes[]; /* [dim] */
};

/* ---- Little-endian numbers, at any address ------------------------------ */

static inline uint32_t get_u32(const unsigned char *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline float get_f32(const unsigned char *at) {
  uint32_t bits = get_u32(at);
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* search_block_entry, for the loop over all entries. */
static inline search_entry entry_at(const search_block *view, size_t index) {
  search_entry entry = {get_f32(view->scale + 4 * index), get_f32(view->error + 4 * index),
                        get_f32(view->norm + 4 * index)};
  return entry;
}

#endif
