/*
** layer.c: one layer of the encoder, and the loop over all of them.
**
** Post-norm, as in the first Transformer:
**   a = LayerNorm(x + W_o attention(x))
**   y = LayerNorm(a + W_down activation(W_up a))
** or pre-norm, with one more LayerNorm after the last layer:
**   a = x + W_o attention(LayerNorm(x))
**   y = a + W_down activation(W_up LayerNorm(a))
*/
#include <string.h>

#include "forward.h"

/* Columns are shared in multiples of this many, so that two members never
** write the same cache line and the kernels get whole tiles. */
enum { COLUMN_GRAIN = 16 };

/* Up to so many rows a product waits for its weights to come from memory. */
enum { FETCH_ROWS = 32, FETCH_DEPTH = 384, CACHE_LINE = 64 / sizeof(float) };

/* Everything one member needs in a layer. */
typedef struct layer_run {
  crew *crew;
  const encoder_weights *weights;
  const ragged_batch *batch;
  workspace *space;
  size_t tokens;
} layer_run;

/* One of several linears of the same rows, and where it writes y[rows, out; ldy]. */
typedef struct projection {
  const linear *linear;
  float *y;
  size_t ldy;
} projection;

/* This member's columns of y = x[rows, in; ldx] weight^T + bias, in float32. */
static void project_plain(const layer_run *r, const projection *p, const float *x, size_t ldx,
                          size_t rows) {
  const linear *l = p->linear;
  size_t first, last, depth = (size_t)l->in;
  crew_share(r->crew, (size_t)l->out, COLUMN_GRAIN, &first, &last);
  if (first == last) return;
  gemm_linear(kernels_current(), x, ldx, l->weight + first * depth, depth,
              l->bias ? l->bias + first : NULL, p->y + first, p->ldy, rows, last - first, depth);
}

/* The same of `count` linears of one reduced precision. Each member rounds all rows for
** itself, a block at a time: that costs a fraction of the product, and less than to wait
** for one another. */
static void project_packed(const layer_run *r, const projection *parts, size_t count,
                           const float *x, size_t ldx, size_t rows) {
  const kernels *k = kernels_current();
  workspace *s = r->space;
  char *room = s->packed + (size_t)r->crew->member.rank * s->packed_size;
  for (size_t row = 0; row < rows; row += FEED_FORWARD_ROWS) {
    size_t n = rows - row < FEED_FORWARD_ROWS ? rows - row : FEED_FORWARD_ROWS, first, last;
    packed_rows ready;
    k->pack_rows(parts->linear->packed.precision, x + row * ldx, ldx, n, (size_t)parts->linear->in,
                 room, &ready);
    for (size_t i = 0; i < count; i++) {
      const linear *l = parts[i].linear;
      crew_share(r->crew, (size_t)l->out, COLUMN_GRAIN, &first, &last);
      k->packed_linear(&ready, &l->packed, first, last, l->bias, parts[i].y + row * parts[i].ldy,
                       parts[i].ldy);
    }
  }
}

/* How many of parts[count], from the first on, have its precision. */
static size_t alike(const projection *parts, size_t count) {
  size_t n = 1;
  while (n < count && parts[n].linear->packed.precision == parts->linear->packed.precision) n++;
  return n;
}

/* This member's columns of all products of x[rows, in; ldx]. */
static void project(const layer_run *r, const projection *parts, size_t count, const float *x,
                    size_t ldx, size_t rows) {
  if (parts->linear->packed.panels == NULL) {
    for (size_t i = 0; i < count; i++) project_plain(r, &parts[i], x, ldx, rows);
    return;
  }
  for (size_t i = 0, n; i < count; i += n) {
    n = alike(parts + i, count - i);
    project_packed(r, parts + i, n, x, ldx, rows);
  }
}

static void project_one(const layer_run *r, const linear *l, const float *x, size_t ldx, float *y,
                        size_t ldy, size_t rows) {
  project(r, &(projection){l, y, ldy}, 1, x, ldx, rows);
}

/* Asks for the first of this member's columns of a product that comes after the next
** barrier, which kernels cannot know of. */
static void fetch_share(const layer_run *r, const linear *l) {
  size_t first, last, depth = (size_t)l->in, part = depth < FETCH_DEPTH ? depth : FETCH_DEPTH;
  if (r->tokens > FETCH_ROWS || l->packed.panels != NULL) return;
  crew_share(r->crew, (size_t)l->out, COLUMN_GRAIN, &first, &last);
  if (last > first + COLUMN_GRAIN) last = first + COLUMN_GRAIN;
  for (const float *w = l->weight + first * depth; first < last; first++, w += depth) {
    for (size_t d = 0; d < part; d += CACHE_LINE) __builtin_prefetch(w + d, 0, 2);
  }
}

static void fetch_qkv(const layer_run *r, int layer) {
  if (layer == r->weights->layers) return;
  const layer_weights *l = &r->weights->layer[layer];
  fetch_share(r, &l->query);
  fetch_share(r, &l->key);
  fetch_share(r, &l->value);
}

/* What a block works on: in a pre-norm model its normalized input [rows, hidden],
** made in `room`; else the input itself. */
static const float *enter_block(const layer_run *r, const norm *n, const float *x, float *room,
                                size_t rows) {
  size_t width = (size_t)r->weights->hidden, first, last;
  if (!r->weights->pre_norm || n->gain == NULL) return x;
  crew_share(r->crew, rows, 1, &first, &last);
  kernels_current()->layer_norm(x + first * width, width, NULL, 0, n->gain, n->bias, n->epsilon,
                                room + first * width, width, last - first, width);
  crew_barrier(r->crew);
  return room;
}

/* x[rows, hidden] becomes x + made or, in a post-norm model, the LayerNorm of it;
** this member's rows. */
static void leave_block(const layer_run *r, const norm *n, const float *made, float *x,
                        size_t rows) {
  size_t width = (size_t)r->weights->hidden, first, last;
  crew_share(r->crew, rows, 1, &first, &last);
  size_t at = first * width;
  if (r->weights->pre_norm)
    kernels_current()->add_scaled(1, made + at, x + at, (last - first) * width);
  else
    kernels_current()->layer_norm(made + at, width, x + at, width, n->gain, n->bias, n->epsilon,
                                  x + at, width, last - first, width);
}

/* x[rows, hidden; ldx] becomes its LayerNorm, this member's rows; or stays, without
** a norm. */
static void norm_rows(const layer_run *r, const norm *n, float *x, size_t ldx, size_t rows) {
  size_t first, last;
  if (n->gain == NULL) return;
  crew_share(r->crew, rows, 1, &first, &last);
  kernels_current()->layer_norm(x + first * ldx, ldx, NULL, 0, n->gain, n->bias, n->epsilon,
                                x + first * ldx, ldx, last - first, (size_t)r->weights->hidden);
}

/* What happens to queries and keys before they meet: a norm, rotary positions. Both
** go by rows, so that a member turns what it normalized. */
static void finish_qk(const layer_run *r, const layer_weights *l, float *qkv) {
  size_t hidden = (size_t)r->weights->hidden;
  if (l->query_norm.gain == NULL && l->rotation == NULL) return;
  norm_rows(r, &l->query_norm, qkv, 3 * hidden, r->tokens);
  norm_rows(r, &l->key_norm, qkv + hidden, 3 * hidden, r->tokens);
  if (l->rotation != NULL)
    rotate_rows(r->crew, r->weights, l, r->batch, qkv,
                r->space->angles + (size_t)r->crew->member.rank * (size_t)r->weights->head_width);
  crew_barrier(r->crew);
}

/* qkv[tokens, 3 * hidden] of x[tokens, hidden]. */
static void make_qkv(const layer_run *r, const layer_weights *l, const float *x, float *qkv) {
  size_t hidden = (size_t)r->weights->hidden;
  const projection parts[] = {{&l->query, qkv, 3 * hidden},
                              {&l->key, qkv + hidden, 3 * hidden},
                              {&l->value, qkv + 2 * hidden, 3 * hidden}};
  project(r, parts, 3, x, hidden, r->tokens);
  crew_barrier(r->crew);
  finish_qk(r, l, qkv);
}

/* The same for a layer with a second norm after attention:
** LayerNorm_2(x + LayerNorm(x + made)). */
static void leave_attention(const layer_run *r, const layer_weights *l) {
  workspace *s = r->space;
  if (l->second_norm.gain == NULL) {
    leave_block(r, &l->attention_norm, s->projected, s->hidden, r->tokens);
    return;
  }
  leave_block(r, &l->attention_norm, s->hidden, s->projected, r->tokens);
  leave_block(r, &l->second_norm, s->projected, s->hidden, r->tokens);
}

static void attention_block(const layer_run *r, const layer_weights *l, float *qkv) {
  workspace *s = r->space;
  size_t hidden = (size_t)r->weights->hidden;
  float *scores = s->scores + (size_t)r->crew->member.rank * QUERY_ROWS * score_stride(s->longest);
  make_qkv(r, l, enter_block(r, &l->attention_norm, s->hidden, s->projected, r->tokens), qkv);
  attend(r->crew, r->weights, l, r->batch, qkv, scores, s->context);
  fetch_share(r, &l->attention_output);
  crew_barrier(r->crew);
  project_one(r, &l->attention_output, s->context, hidden, s->projected, hidden, r->tokens);
  crew_barrier(r->crew);
  leave_attention(r, l);
  fetch_share(r, &l->up);
  crew_barrier(r->crew);
}

/* This member's columns [first, last) of x[rows, intermediate], activated while they
** are in its cache. */
static void activate_columns(const layer_run *r, float *x, size_t rows, size_t first, size_t last) {
  size_t width = (size_t)r->weights->intermediate;
  activation kind = r->weights->hidden_activation;
  if (r->crew->member.size == 1) {
    kernels_current()->activate(kind, x, rows * width);
    return;
  }
  for (size_t row = 0; row < rows; row++)
    kernels_current()->activate(kind, x + row * width + first, last - first);
}

/* inner[rows, intermediate] = up(x), activated; or, gated (Shazeer 2020),
** up(x) * activation(gate(x)). This member's columns. */
static void feed_up(const layer_run *r, const layer_weights *l, const float *x, size_t rows) {
  size_t width = (size_t)r->weights->intermediate, hidden = (size_t)r->weights->hidden;
  size_t first, last;
  float *inner = r->space->inner, *gate = r->space->gate;
  const projection parts[] = {{&l->up, inner, width}, {&l->gate, gate, width}};
  int gated = l->gate.out != 0;
  crew_share(r->crew, width, COLUMN_GRAIN, &first, &last);
  project(r, parts, gated ? 2 : 1, x, hidden, rows);
  if (!gated) {
    activate_columns(r, inner, rows, first, last);
    return;
  }
  activate_columns(r, gate, rows, first, last);
  for (size_t row = 0; row < rows; row++)
    kernels_current()->multiply(gate + row * width + first, inner + row * width + first,
                                last - first);
}

static void feed_forward_block(const layer_run *r, int layer) {
  const layer_weights *l = &r->weights->layer[layer];
  workspace *s = r->space;
  size_t hidden = (size_t)r->weights->hidden, width = (size_t)r->weights->intermediate;
  for (size_t first = 0; first < r->tokens; first += FEED_FORWARD_ROWS) {
    size_t rows = r->tokens - first < FEED_FORWARD_ROWS ? r->tokens - first : FEED_FORWARD_ROWS;
    float *x = s->hidden + first * hidden; /* [rows, hidden] */
    feed_up(r, l, enter_block(r, &l->output_norm, x, s->context, rows), rows);
    fetch_share(r, &l->down);
    crew_barrier(r->crew);
    project_one(r, &l->down, s->inner, width, s->projected, hidden, rows);
    crew_barrier(r->crew);
    leave_block(r, &l->output_norm, s->projected, x, rows);
    fetch_qkv(r, layer + 1);
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

/* s->hidden before the first layer. */
static void embed(const layer_run *r) {
  const encoder_weights *w = r->weights;
  workspace *s = r->space;
  size_t narrow = (size_t)w->embedding;
  embed_tokens(r->crew, w, r->batch, w->projection.weight != NULL ? s->qkv : s->hidden);
  crew_barrier(r->crew);
  if (w->projection.weight == NULL) return;
  project_one(r, &w->projection, s->qkv, narrow, s->hidden, (size_t)w->hidden, r->tokens);
  crew_barrier(r->crew);
}

void encoder_run(crew *c, const encoder_weights *w, const ragged_batch *batch, workspace *s,
                 const capture *keep) {
  layer_run r = {c, w, batch, s, batch->starts[batch->sequences]};
  fetch_qkv(&r, 0);
  embed(&r);
  for (int i = 0; i < w->layers; i++) {
    float *qkv = s->qkv; /* [tokens, 3 * hidden] */
    if (crew_stopped(c)) return;
    if (keep != NULL && keep->qkv != NULL)
      qkv = keep->qkv + (size_t)i * r.tokens * 3 * (size_t)w->hidden;
    keep_hidden(&r, keep, i);
    attention_block(&r, &w->layer[i], qkv);
    crew_poll(c);
    feed_forward_block(&r, i);
  }
  norm_rows(&r, &w->final_norm, s->hidden, (size_t)w->hidden, r.tokens);
  keep_hidden(&r, keep, w->layers);
}
