/*
** embeddings.c: word + position + type, normalized: the input of layer 0
** (Devlin et al. 2019, figure 2), as far as a model has them. Positions count
** from 0 in each sequence.
*/
#include <string.h>

#include "forward.h"

/* z[width] = word + type + position, added in torch's order. */
static void sum_rows(const encoder_weights *w, int32_t id, size_t row, int32_t type, float *z) {
  size_t width = (size_t)w->embedding;
  const float *word = w->word + (size_t)id * width; /* [width] */
  if (w->type != NULL) {
    const float *segment = w->type + (size_t)type * width; /* [width] */
    for (size_t i = 0; i < width; i++) z[i] = word[i] + segment[i];
  } else {
    memcpy(z, word, width * sizeof *z);
  }
  if (w->position == NULL) return;
  const float *place = w->position + row * width; /* [width] */
  for (size_t i = 0; i < width; i++) z[i] += place[i];
}

/* This member's rows [first, last) of one sequence. A token that takes no position
** is put into the row before the first; what came before it is counted. */
static void sum_sequence(const encoder_weights *w, const ragged_batch *batch, size_t sequence,
                         size_t first, size_t last, float *out) {
  size_t next = (size_t)w->first_position, stop = batch->starts[sequence + 1];
  for (size_t t = batch->starts[sequence]; t < stop && t < last; t++) {
    int counted = w->uncounted_token < 0 || batch->ids[t] != w->uncounted_token;
    size_t row = counted ? next++ : (size_t)w->uncounted_token;
    if (t >= first)
      sum_rows(w, batch->ids[t], row, batch->types[t], out + t * (size_t)w->embedding);
  }
}

void embed_tokens(const crew *c, const encoder_weights *w, const ragged_batch *batch, float *out) {
  size_t width = (size_t)w->embedding, first, last;
  const norm *n = &w->embedding_norm;
  crew_share(c, batch->starts[batch->sequences], 1, &first, &last);
  if (first == last) return;
  for (size_t s = 0; s < batch->sequences; s++)
    if (batch->starts[s + 1] > first) sum_sequence(w, batch, s, first, last, out);
  c->set->layer_norm(out + first * width, width, NULL, 0, n->gain, n->bias, n->epsilon,
                     out + first * width, width, last - first, width);
}
