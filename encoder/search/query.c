/*
** query.c: a query vector made ready for blocks.
*/
#include <math.h>

#include "search_parts.h"

double search_distance(search_metric metric, const float *q, const float *x, size_t dim) {
  switch (metric) {
  case SEARCH_L2: return bert_l2(q, x, dim);
  case SEARCH_DOT: return -bert_dot(q, x, dim);
  case SEARCH_COSINE:
  default: return 1 - bert_cosine(q, x, dim);
  }
}

/* The largest code with which a sum of `dim` products stays in 32 bits. -128 is
** no code that a block is made with, but one that hostile bytes can hold. */
static double largest_code(size_t dim) {
  enum { LARGEST_OF_BLOCK = 128 };
  if (dim > INT32_MAX / LARGEST_OF_BLOCK) return 0;
  size_t most = dim == 0 ? INT16_MAX : INT32_MAX / (LARGEST_OF_BLOCK * dim);
  return most > INT16_MAX ? INT16_MAX : (double)most;
}

/* Quantizes factor * q[dim], whose largest number is `largest`. */
static void quantize_query(search_query *query, const float *q, double factor, double largest) {
  double most = largest_code(query->dim), lost = 0, whole = 0;
  int64_t squares = 0;
  query->scale = most > 0 ? largest / most : 0;
  for (size_t j = 0; j < query->dim; j++) {
    double y = factor * (double)q[j];
    double code = query->scale > 0 ? rint(y / query->scale) : 0;
    if (code > most) code = most;
    if (code < -most) code = -most;
    double rest = y - query->scale * code;
    lost += rest * rest;
    whole += y * y;
    query->codes[j] = (int16_t)code;
    squares += (int64_t)code * (int64_t)code;
  }
  /* As in block.c, with a scale whose products are rounded. */
  double slack = ((double)query->dim + 16) * 0x1p-52;
  query->norm = sqrt(whole) * (1 + slack);
  query->error = sqrt(lost) * (1 + slack) + slack * query->norm;
  query->square = query->scale * query->scale * (double)squares;
}

bert_status search_query_make(search_metric metric, const float *q, size_t dim, search_query **out,
                              bert_error *error) {
  double largest = 0, square = 0;
  *out = NULL;
  for (size_t j = 0; j < dim; j++) {
    double size = fabs((double)q[j]);
    if (!isfinite(size))
      return error_set(error, BERT_ARGUMENT, "number %zu of the query vector is not finite", j);
    if (size > largest) largest = size;
    square += size * size;
  }
  if (metric == SEARCH_COSINE && largest == 0)
    return error_set(error, BERT_ARGUMENT,
                     "the query vector has no direction: all its numbers are 0");
  search_query *query = memory_zero(sizeof *query + memory_product(dim, sizeof *query->codes));
  if (query == NULL) return error_nomem(error, "preparing a search");
  double factor = metric == SEARCH_COSINE ? 1 / sqrt(square) : 1;
  query->metric = metric;
  query->dim = dim;
  quantize_query(query, q, factor, largest * factor);
  *out = query;
  return BERT_OK;
}

void search_query_free(search_query *query) {
  memory_free(query);
}
