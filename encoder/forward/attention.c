/*
** attention.c: softmax(q k^T / sqrt width) v for each sequence and head
** (Vaswani et al. 2017, equation 1).
**
** A sequence attends only within its own rows, so a ragged batch needs no
** mask. Scores are held for QUERY_ROWS queries at a time: memory grows with
** the length of a sequence, not with its square.
*/
#include <math.h>

#include "forward.h"

void attention_scores(const encoder_weights *w, const float *qkv, size_t tokens, int head,
                      size_t first, size_t queries, float *scores) {
  size_t hidden = (size_t)w->hidden, row = 3 * hidden, width = (size_t)w->head_width;
  const float *q = qkv + first * row + (size_t)head * width; /* [queries, width; row] */
  const float *key = qkv + hidden + (size_t)head * width;    /* [tokens, width; row] */
  float scale = (float)(1.0 / sqrt((double)width));
  kernels_current()->attention_scores(q, row, key, row, scale, scores, tokens, queries, tokens,
                                      width);
}

void attention_weights(const encoder_weights *w, const float *qkv, size_t tokens, int head,
                       size_t first, size_t queries, float *weights) {
  attention_scores(w, qkv, tokens, head, first, queries, weights);
  kernels_current()->softmax(weights, tokens, queries, tokens);
}

/* One head of one sequence: context[tokens, width; hidden]. */
static void attend_head(const encoder_weights *w, const float *qkv, size_t tokens, int head,
                        float *scores, float *context) {
  const kernels *k = kernels_current();
  size_t hidden = (size_t)w->hidden, row = 3 * hidden, width = (size_t)w->head_width;
  const float *value = qkv + 2 * hidden + (size_t)head * width; /* [tokens, width; row] */
  for (size_t first = 0; first < tokens; first += QUERY_ROWS) {
    size_t queries = tokens - first < QUERY_ROWS ? tokens - first : QUERY_ROWS;
    attention_weights(w, qkv, tokens, head, first, queries, scores);
    k->attention_context(scores, tokens, value, row,
                         context + first * hidden + (size_t)head * width, hidden, queries, tokens,
                         width);
  }
}

void attend(const crew *c, const encoder_weights *w, const ragged_batch *batch, const float *qkv,
            float *scores, float *context) {
  size_t hidden = (size_t)w->hidden, heads = (size_t)w->heads, first, last;
  crew_share(c, batch->sequences * heads, 1, &first, &last);
  for (size_t pair = first; pair < last; pair++) {
    size_t start = batch->starts[pair / heads];
    size_t tokens = batch->starts[pair / heads + 1] - start;
    attend_head(w, qkv + start * 3 * hidden, tokens, (int)(pair % heads), scores,
                context + start * hidden);
  }
}
