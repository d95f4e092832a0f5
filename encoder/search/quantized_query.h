/*
** quantized_query.h: what query.c makes and scan.c reads. Nobody outside this
** folder includes it.
*/
#ifndef BERT_QUANTIZED_QUERY_H
#define BERT_QUANTIZED_QUERY_H

#include "search.h"

/* q, for cosine divided by its norm, is scale * codes but for an error. */
struct search_query {
  search_metric metric;
  size_t dim;
  double scale;
  double norm;     /* not below |q| */
  double error;    /* not below |q - scale codes| */
  double square;   /* |scale codes|^2, to 4 units of rounding */
  int16_t codes[]; /* [dim] */
};

#endif
