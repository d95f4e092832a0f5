/*
** search.h: the nearest of many vectors, fast and exactly. The map of this
** folder:
**
**   block.c   vectors quantized to int8, packed in blocks that can be stored
**   query.c   a query vector made ready for blocks
**   scan.c    for each vector of a block, a distance that the true one is not
**             below
**   select.c  the smallest of these bounds, some at a time
**
** A block holds x = s c + e for each vector: codes c in [-127, 127], a scale s,
** and an upper bound on |e|. From that and the query alone follows a lower
** bound of the true distance (Cauchy and Schwarz: |q.e| <= |q||e|). Whoever
** searches visits vectors in order of that bound, computes true distances from
** the float32 vectors, and may stop when the next bound is above what he has:
** the result is the one that a plain scan gives, whatever was quantized away.
**
** Includes bert.h, base.h and kernels.h; nothing here knows where blocks are
** kept.
*/
#ifndef BERT_SEARCH_H
#define BERT_SEARCH_H

#include "../base/base.h"

/* What nearness is; smaller is nearer. */
typedef enum search_metric {
  SEARCH_COSINE, /* 1 - cos(q, x); a vector of zeros has no direction: NaN */
  SEARCH_L2,     /* |q - x| */
  SEARCH_DOT     /* -(q . x) */
} search_metric;

/* The true distance of q[dim] and x[dim], from bert_cosine, bert_l2 and
** bert_dot. NaN where there is none. */
double search_distance(search_metric metric, const float *q, const float *x, size_t dim);

/* ---- block.c ----------------------------------------------------------- */

/* A block is one run of bytes, little-endian, the same on every machine:
**   "bqb1", u32 metric, u32 count, u32 dim, then
**   i64 id[count], i64 row[count]    what the caller calls the vector
**   f32 scale[count], f32 error[count], f32 norm[count]
**   i8 codes[count, dim]
** For cosine x is first divided by its norm. `error` and `norm` (that of the
** quantized vector s c) are rounded up. A vector that is not finite or, for
** cosine, has no direction has scale and norm 0 and an infinite error: it is
** always visited. The size is UINT64_MAX when count or dim is not below 2^32, or
** the size is not below 2^64. */
uint64_t search_block_size(size_t count, size_t dim);

/* Writes the header of a block for count vectors; fill every entry next. `block`
** has search_block_size bytes and needs no alignment. */
void search_block_begin(void *block, search_metric metric, size_t count, size_t dim);

/* Quantizes x[dim] into entry `index`. */
void search_block_set(void *block, size_t index, int64_t id, int64_t row, const float *x);

/* A block as it was read back, from bytes that may be hostile: checks magic,
** metric, counts and the size. The view points into `bytes`, which need no
** alignment. BERT_INVALID says what is wrong. */
typedef struct search_block {
  const unsigned char *ids, *rows;           /* i64 [count]; read with search_block_id, _row */
  const unsigned char *scale, *error, *norm; /* f32 [count] */
  const int8_t *codes;                       /* [count, dim] */
  size_t count, dim;
} search_block;
bert_status search_block_view(const void *bytes, uint64_t size, search_metric metric, size_t dim,
                              search_block *view, bert_error *error);
int64_t search_block_id(const search_block *view, size_t index);
int64_t search_block_row(const search_block *view, size_t index);

/* What a block says of the codes of an entry. From hostile bytes: any numbers,
** also such as are not finite. */
typedef struct search_entry {
  float scale, error, norm;
} search_entry;
search_entry search_block_entry(const search_block *view, size_t index);

/* ---- query.c, scan.c --------------------------------------------------- */

/* A query made ready: quantized to 16 bits or less, so that sums of products
** with codes are exact in 32 bits. Freed with search_query_free. BERT_ARGUMENT
** for a vector that is not finite or, for cosine, has no direction; BERT_NOMEM. */
typedef struct search_query search_query;
bert_status search_query_make(search_metric metric, const float *q, size_t dim, search_query **out,
                              bert_error *error);
void search_query_free(search_query *query);

/* Lower bounds of the distances to all vectors of blocks[count], one after the
** other into bounds[sum of counts], on at most `threads` threads (0: one per
** core). Metric and dim of the blocks are those of the query. A bound never
** exceeds the distance that search_distance computes, its rounding included;
** entries that are always to be visited have -infinity, also those in whose
** scale, error or norm stands something that is not finite. No bound is NaN. The
** same bits with every kernel set and any number of threads. */
void search_scan(const search_query *query, const search_block *blocks, size_t count, int threads,
                 float *bounds);

/* ---- select.c ---------------------------------------------------------- */

/* The `want` smallest of bounds[count] that come after (*after, *after_index) in
** the order of (bound, index), written in that order to picked[want]; returns how
** many there were. Start with -INFINITY and SIZE_MAX, which nothing comes before:
** an index of SIZE_MAX means "from the start". One pass over bounds. */
size_t search_select(const float *bounds, size_t count, float after, size_t after_index,
                     size_t want, size_t *picked);

#endif
