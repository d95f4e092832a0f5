/*
** attention.c: softmax(q k^T / sqrt width) v for each sequence and head
** (Vaswani et al. 2017, equation 1), with rotated queries and keys, a bias by
** distance or a window where the model has them.
**
** A sequence attends only within its own rows, so a ragged batch needs no
** mask. Scores are held for QUERY_ROWS queries at a time: memory grows with
** the length of a sequence, not with its square. In a layer with a window only
** the keys that some query of the block sees are looked at.
*/
#include <math.h>
#include <string.h>

#include "forward.h"

/* ---- Rotary positions --------------------------------------------------- */

/* All heads of the queries and the keys of one token; they lie side by side. */
static void rotate_token(const kernels *set, const encoder_weights *w, const float *row,
                         float *query_key) {
  size_t width = (size_t)w->head_width, half = width / 2;
  for (int head = 0; head < 2 * w->heads; head++)
    set->rotate(row, row + half, query_key + (size_t)head * width, half);
}

void rotate_rows(const crew *c, const encoder_weights *w, const layer_weights *l,
                 const ragged_batch *batch, float *qkv, float *room) {
  size_t first, last;
  crew_share(c, batch->starts[batch->sequences], 1, &first, &last);
  for (size_t s = 0; s < batch->sequences; s++) {
    size_t start = batch->starts[s], stop = batch->starts[s + 1];
    for (size_t t = start < first ? first : start; t < stop && t < last; t++)
      rotate_token(c->set, w, rotation_row(l->rotation, stop - start, t - start, room),
                   qkv + t * 3 * (size_t)w->hidden);
  }
}

/* ---- Which keys are seen ------------------------------------------------- */

/* Keys [first, last). */
typedef struct key_range {
  size_t first, last;
} key_range;

/* The keys that queries [first, first + count) of a layer see. */
static key_range keys_seen(const layer_weights *l, size_t tokens, size_t first, size_t count) {
  size_t end = first + count - 1;
  key_range seen = {first > l->reach ? first - l->reach : 0, tokens};
  if (tokens - 1 - end > l->reach) seen.last = end + l->reach + 1;
  return seen;
}

/* row[tokens]: `value` for all keys outside `own`. */
static void fill_outside(float *row, size_t tokens, key_range own, float value) {
  for (size_t j = 0; j < own.first; j++) row[j] = value;
  for (size_t j = own.last; j < tokens; j++) row[j] = value;
}

void attention_mask(const layer_weights *l, const head_queries *h, float *scores) {
  for (size_t i = 0; i < h->queries; i++)
    fill_outside(scores + i * h->tokens, h->tokens, keys_seen(l, h->tokens, h->first + i, 1),
                 -INFINITY);
}

/* ---- Scores and weights --------------------------------------------------- */

/* scores[queries, keys; ld] += the bias of each distance. */
static void add_bias(const kernels *set, const score_bias *b, const head_queries *h, key_range keys,
                     float *scores, size_t ld) {
  const float *table = b->table; /* [2 * reach + 1] */
  float slope = b->slopes == NULL ? 1.0f : b->slopes[h->head];
  if (b->slopes == NULL) table += (size_t)h->head * (2 * b->reach + 1);
  for (size_t i = 0; i < h->queries; i++)
    set->add_scaled(slope, table + b->reach + keys.first - (h->first + i), scores + i * ld,
                    keys.last - keys.first);
}

/* The scores of some keys, [queries, keys; ld]. */
static void score_keys(const kernels *set, const encoder_weights *w, const float *qkv,
                       const head_queries *h, key_range keys, float *scores, size_t ld) {
  size_t hidden = (size_t)w->hidden, row = 3 * hidden, width = (size_t)w->head_width;
  const float *q = qkv + h->first * row + (size_t)h->head * width; /* [queries, width; row] */
  const float *key = qkv + keys.first * row + hidden + (size_t)h->head * width;
  float scale = (float)(1.0 / sqrt((double)width));
  set->attention_scores(q, row, key, row, scale, scores, ld, h->queries, keys.last - keys.first,
                        width);
  if (w->bias.table != NULL) add_bias(set, &w->bias, h, keys, scores, ld);
}

/* Scores of some keys, the first of which is at scores[0], become weights. With a
** window, a row's sum runs over the keys it sees and these alone, so that its bits
** do not depend on the block it is in. */
static void weigh_keys(const kernels *set, const layer_weights *l, const head_queries *h,
                       key_range keys, float *scores, size_t ld) {
  if (l->reach == SIZE_MAX) {
    set->softmax(scores, ld, h->queries, keys.last - keys.first);
    return;
  }
  for (size_t i = 0; i < h->queries; i++) {
    key_range own = keys_seen(l, h->tokens, h->first + i, 1);
    float *row = scores + i * ld; /* [keys] */
    own.first -= keys.first;
    own.last -= keys.first;
    set->softmax(row + own.first, ld, 1, own.last - own.first);
    fill_outside(row, keys.last - keys.first, own, 0);
  }
}

void attention_scores(const kernels *set, const encoder_weights *w, const float *qkv,
                      const head_queries *h, float *scores) {
  score_keys(set, w, qkv, h, (key_range){0, h->tokens}, scores, h->tokens);
}

void attention_weights(const kernels *set, const encoder_weights *w, const layer_weights *l,
                       const float *qkv, const head_queries *h, float *weights) {
  if (h->queries == 0) return;
  key_range keys = keys_seen(l, h->tokens, h->first, h->queries);
  score_keys(set, w, qkv, h, keys, weights + keys.first, h->tokens);
  weigh_keys(set, l, h, keys, weights + keys.first, h->tokens);
  for (size_t i = 0; i < h->queries && l->reach != SIZE_MAX; i++)
    fill_outside(weights + i * h->tokens, h->tokens, keys, 0);
}

/* ---- The context ----------------------------------------------------------- */

/* One head of one sequence: context[tokens, width; hidden]. */
static void attend_head(const kernels *set, const encoder_weights *w, const layer_weights *l,
                        const float *qkv, size_t tokens, int head, float *scores, float *context) {
  size_t hidden = (size_t)w->hidden, row = 3 * hidden, width = (size_t)w->head_width;
  const float *value = qkv + 2 * hidden + (size_t)head * width; /* [tokens, width; row] */
  for (size_t first = 0; first < tokens; first += QUERY_ROWS) {
    size_t queries = tokens - first < QUERY_ROWS ? tokens - first : QUERY_ROWS;
    head_queries h = {tokens, head, first, queries};
    key_range keys = keys_seen(l, tokens, first, queries);
    size_t count = keys.last - keys.first, ld = score_stride(count);
    score_keys(set, w, qkv, &h, keys, scores, ld);
    weigh_keys(set, l, &h, keys, scores, ld);
    set->attention_context(scores, ld, value + keys.first * row, row,
                           context + first * hidden + (size_t)head * width, hidden, queries, count,
                           width);
  }
}

void attend(const crew *c, const encoder_weights *w, const layer_weights *l,
            const ragged_batch *batch, const float *qkv, float *scores, float *context) {
  size_t hidden = (size_t)w->hidden, heads = (size_t)w->heads, first, last;
  crew_share(c, batch->sequences * heads, 1, &first, &last);
  for (size_t pair = first; pair < last; pair++) {
    size_t start = batch->starts[pair / heads];
    size_t tokens = batch->starts[pair / heads + 1] - start;
    attend_head(c->set, w, l, qkv + start * 3 * hidden, tokens, (int)(pair % heads), scores,
                context + start * hidden);
  }
}
