/*
** embeddings.c: word + position + type, normalized: the input of layer 0
** (Devlin et al. 2019, figure 2). Positions count from 0 in each sequence.
*/
#include "forward.h"

/* z[hidden] = word + position + type, added in torch's order. */
static void sum_rows(const encoder_weights *w, int32_t id, size_t position, int32_t type,
                     float *z) {
  size_t width = (size_t)w->hidden;
  const float *word = w->word + (size_t)id * width;      /* [hidden] */
  const float *place = w->position + position * width;   /* [hidden] */
  const float *segment = w->type + (size_t)type * width; /* [hidden] */
  for (size_t i = 0; i < width; i++) z[i] = (word[i] + segment[i]) + place[i];
}

void embed_tokens(const crew *c, const encoder_weights *w, const ragged_batch *batch,
                  float *hidden) {
  const kernels *k = kernels_current();
  size_t width = (size_t)w->hidden, first, last;
  crew_share(c, batch->starts[batch->sequences], 1, &first, &last);
  for (size_t s = 0; s < batch->sequences; s++) {
    size_t start = batch->starts[s], stop = batch->starts[s + 1];
    for (size_t t = start < first ? first : start; t < stop && t < last; t++)
      sum_rows(w, batch->ids[t], t - start, batch->types[t], hidden + t * width);
  }
  if (last > first)
    k->layer_norm(hidden + first * width, width, NULL, 0, w->embedding_norm.gain,
                  w->embedding_norm.bias, w->embedding_norm.epsilon, hidden + first * width, width,
                  last - first, width);
}
