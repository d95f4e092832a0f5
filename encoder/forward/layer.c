/*
** layer.c: one layer of the encoder, and the loop over all of them.
**
** Post-norm, as in the first Transformer:
**   a = LayerNorm(x + W_o attention(x))
**   y = LayerNorm(a + W_down activation(W_up a))
*/
#include <string.h>

#include "forward.h"

/* Columns are shared in multiples of this many, so that two members never
** write the same cache line and the kernels get whole tiles. */
enum { COLUMN_GRAIN = 16 };

/* Everything one member needs in a layer. */
typedef struct layer_run {
  crew *crew;
  const encoder_weights *weights;
  const ragged_batch *batch;
  workspace *space;
  size_t tokens;
} layer_run;

void project(const crew *c, const linear *l, const float *x, size_t ldx, float *y, size_t ldy,
             size_t rows) {
  size_t first, last, depth = (size_t)l->in;
  crew_share(c, (size_t)l->out, COLUMN_GRAIN, &first, &last);
  if (first == last) return;
  gemm_linear(kernels_current(), x, ldx, l->weight + first * depth, depth,
              l->bias ? l->bias + first : NULL, y + first, ldy, rows, last - first, depth);
}

/* out[rows, hidden] = LayerNorm(x + residual), this member's rows. */
static void add_and_norm(const layer_run *r, const norm *n, const float *x, const float *residual,
                         float *out, size_t rows) {
  size_t width = (size_t)r->weights->hidden, first, last;
  crew_share(r->crew, rows, 1, &first, &last);
  size_t at = first * width;
  kernels_current()->layer_norm(x + at, width, residual + at, width, n->gain, n->bias, n->epsilon,
                                out + at, width, last - first, width);
}

static void attention_block(const layer_run *r, const layer_weights *l, float *qkv) {
  workspace *s = r->space;
  size_t hidden = (size_t)r->weights->hidden;
  float *scores = s->scores + (size_t)r->crew->member.rank * QUERY_ROWS * s->longest;
  project(r->crew, &l->query, s->hidden, hidden, qkv, 3 * hidden, r->tokens);
  project(r->crew, &l->key, s->hidden, hidden, qkv + hidden, 3 * hidden, r->tokens);
  project(r->crew, &l->value, s->hidden, hidden, qkv + 2 * hidden, 3 * hidden, r->tokens);
  crew_barrier(r->crew);
  attend(r->crew, r->weights, r->batch, qkv, scores, s->context);
  crew_barrier(r->crew);
  project(r->crew, &l->attention_output, s->context, hidden, s->projected, hidden, r->tokens);
  crew_barrier(r->crew);
  add_and_norm(r, &l->attention_norm, s->projected, s->hidden, s->hidden, r->tokens);
  crew_barrier(r->crew);
}

/* inner[rows, intermediate] = activation(x W_up^T + b), this member's columns,
** activated while they are in its cache. */
static void feed_up(const layer_run *r, const layer_weights *l, const float *x, size_t rows) {
  size_t width = (size_t)r->weights->intermediate, first, last;
  float *inner = r->space->inner;
  project(r->crew, &l->up, x, (size_t)r->weights->hidden, inner, width, rows);
  crew_share(r->crew, width, COLUMN_GRAIN, &first, &last);
  if (r->crew->member.size == 1) {
    kernels_current()->activate(r->weights->hidden_activation, inner, rows * width);
    return;
  }
  for (size_t row = 0; row < rows; row++)
    kernels_current()->activate(r->weights->hidden_activation, inner + row * width + first,
                                last - first);
}

static void feed_forward_block(const layer_run *r, const layer_weights *l) {
  workspace *s = r->space;
  size_t hidden = (size_t)r->weights->hidden, width = (size_t)r->weights->intermediate;
  for (size_t first = 0; first < r->tokens; first += FEED_FORWARD_ROWS) {
    size_t rows = r->tokens - first < FEED_FORWARD_ROWS ? r->tokens - first : FEED_FORWARD_ROWS;
    float *x = s->hidden + first * hidden; /* [rows, hidden] */
    feed_up(r, l, x, rows);
    crew_barrier(r->crew);
    project(r->crew, &l->down, s->inner, width, s->projected, hidden, rows);
    crew_barrier(r->crew);
    add_and_norm(r, &l->output_norm, s->projected, x, x, rows);
    /* The next rows' inner overwrites what others may still read. */
    crew_barrier(r->crew);
  }
}

/* Copies this member's rows of the hidden states that layer `index` starts from. */
static void keep_hidden(const layer_run *r, const capture *keep, int index) {
  size_t width = (size_t)r->weights->hidden, first, last;
  if (keep == NULL || keep->hidden == NULL) return;
  crew_share(r->crew, r->tokens, 1, &first, &last);
  memcpy(keep->hidden + ((size_t)index * r->tokens + first) * width,
         r->space->hidden + first * width, (last - first) * width * sizeof(float));
}

void encoder_run(crew *c, const encoder_weights *w, const ragged_batch *batch, workspace *s,
                 const capture *keep) {
  layer_run r = {c, w, batch, s, batch->starts[batch->sequences]};
  embed_tokens(c, w, batch, s->hidden);
  crew_barrier(c);
  for (int i = 0; i < w->layers; i++) {
    float *qkv = s->qkv; /* [tokens, 3 * hidden] */
    if (crew_should_stop(c)) return;
    if (keep != NULL && keep->qkv != NULL)
      qkv = keep->qkv + (size_t)i * r.tokens * 3 * (size_t)w->hidden;
    keep_hidden(&r, keep, i);
    attention_block(&r, &w->layer[i], qkv);
    feed_forward_block(&r, &w->layer[i]);
  }
  keep_hidden(&r, keep, w->layers);
}
