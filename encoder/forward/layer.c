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

/* Terms of each column that are asked for before a product begins. It asks for the next ones
** itself; all at once, they would hold up the first. */
enum { FETCH_DEPTH = 64, CACHE_LINE = 64 / sizeof(float) };

/* Everything one member needs in a layer. */
typedef struct layer_run {
  crew *crew;
  const encoder_weights *weights;
  const ragged_batch *batch;
  workspace *space;
  size_t tokens;
  int copies;    /* 1: few tokens, of whose hidden states each member has a copy */
  float *hidden; /* [tokens, hidden]: that, or the one for all; space->hidden at rank 0 */
} layer_run;

/* One of several linears of the same rows, and where it writes y[rows, out; ldy]. */
typedef struct projection {
  const linear *linear;
  float *y;
  size_t ldy;
} projection;

/* Columns first to last of x[rows, in; ldx] weight^T + bias in float32, written to
** y[rows, last - first; ldy]. */
static void project_columns(const layer_run *r, const linear *l, size_t first, size_t last,
                            const float *x, size_t ldx, float *y, size_t ldy, size_t rows) {
  size_t depth = (size_t)l->in;
  gemm_linear(r->crew->set, x, ldx, l->weight + first * depth, depth,
              l->bias ? l->bias + first : NULL, y, ldy, rows, last - first, depth);
}

/* This member's columns of a projection of x[rows, in; ldx]. */
static void project_plain(const layer_run *r, const projection *p, const float *x, size_t ldx,
                          size_t rows) {
  size_t first, last;
  crew_share(r->crew, (size_t)p->linear->out, COLUMN_GRAIN, &first, &last);
  if (first == last) return;
  project_columns(r, p->linear, first, last, x, ldx, p->y + first, p->ldy, rows);
}

/* The same of `count` linears of one reduced precision. Each member rounds all rows for
** itself, a block at a time: that costs a fraction of the product, and less than to wait
** for one another. */
static void project_packed(const layer_run *r, const projection *parts, size_t count,
                           const float *x, size_t ldx, size_t rows) {
  const kernels *k = r->crew->set;
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
** barrier, which kernels cannot know of. It is done between arriving there and waiting. */
static void fetch_share(const layer_run *r, const linear *l) {
  size_t first, last, depth = (size_t)l->in, part = depth < FETCH_DEPTH ? depth : FETCH_DEPTH;
  if (r->tokens > FEW_TOKENS || l->packed.panels != NULL) return;
  crew_share(r->crew, (size_t)l->out, COLUMN_GRAIN, &first, &last);
  if (last > first + COLUMN_GRAIN) last = first + COLUMN_GRAIN;
  for (const float *w = l->weight + first * depth; first < last; first++, w += depth) {
    for (size_t d = 0; d < part; d += CACHE_LINE) __builtin_prefetch(w + d, 0, 2);
  }
}

/* A barrier, at which this member asks for what the next products begin with. */
static void meet(const layer_run *r, const linear *const *next, size_t count) {
  unsigned passed = crew_arrive(r->crew);
  for (size_t i = 0; i < count; i++) fetch_share(r, next[i]);
  crew_wait(r->crew, passed);
}

static void meet_before(const layer_run *r, const linear *next) {
  meet(r, &next, 1);
}

/* The same before layer `layer`, or the end. */
static void meet_before_layer(const layer_run *r, int layer) {
  if (layer == r->weights->layers) {
    crew_barrier(r->crew);
    return;
  }
  const layer_weights *l = &r->weights->layer[layer];
  const linear *const next[] = {&l->query, &l->key, &l->value};
  meet(r, next, 3);
}

/* What a block works on: in a pre-norm model its normalized input [rows, hidden],
** made in `room`; else the input itself. */
static const float *enter_block(const layer_run *r, const norm *n, const float *x, float *room,
                                size_t rows) {
  size_t width = (size_t)r->weights->hidden, first, last;
  if (!r->weights->pre_norm || n->gain == NULL) return x;
  crew_share(r->crew, rows, 1, &first, &last);
  r->crew->set->layer_norm(x + first * width, width, NULL, 0, n->gain, n->bias, n->epsilon,
                           room + first * width, width, last - first, width);
  crew_barrier(r->crew);
  return room;
}

/* The rows of [rows, hidden] that this member normalizes: all of a copy of its own. */
static void norm_share(const layer_run *r, size_t rows, size_t *first, size_t *last) {
  crew_share(r->crew, rows, 1, first, last);
  if (!r->copies) return;
  *first = 0;
  *last = rows;
}

/* x[rows, hidden] becomes x + made or, in a post-norm model, the LayerNorm of it;
** this member's rows. */
static void leave_block(const layer_run *r, const norm *n, const float *made, float *x,
                        size_t rows) {
  size_t width = (size_t)r->weights->hidden, first, last;
  norm_share(r, rows, &first, &last);
  size_t at = first * width;
  if (r->weights->pre_norm)
    r->crew->set->add_scaled(1, made + at, x + at, (last - first) * width);
  else
    r->crew->set->layer_norm(made + at, width, x + at, width, n->gain, n->bias, n->epsilon, x + at,
                             width, last - first, width);
}

/* x[rows, hidden; ldx] becomes its LayerNorm, this member's rows; or stays, without
** a norm. */
static void norm_rows(const layer_run *r, const norm *n, float *x, size_t ldx, size_t rows) {
  size_t first, last;
  if (n->gain == NULL) return;
  crew_share(r->crew, rows, 1, &first, &last);
  r->crew->set->layer_norm(x + first * ldx, ldx, NULL, 0, n->gain, n->bias, n->epsilon,
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

/* 1 where each member has made the queries, keys and values of those heads that it attends
** to, and of these alone, so that it need not wait for the others: in a batch of one text,
** where members share heads and columns evenly, and nothing goes by rows in between. */
static int makes_own_heads(const layer_run *r, const layer_weights *l) {
  size_t heads = (size_t)r->weights->heads, members = (size_t)r->crew->member.size;
  return r->batch->sequences == 1 && heads % members == 0 &&
         (size_t)r->weights->hidden % (COLUMN_GRAIN * members) == 0 && l->query_norm.gain == NULL &&
         l->rotation == NULL;
}

/* qkv[tokens, 3 * hidden] of x[tokens, hidden]. */
static void make_qkv(const layer_run *r, const layer_weights *l, const float *x, float *qkv) {
  size_t hidden = (size_t)r->weights->hidden;
  const projection parts[] = {{&l->query, qkv, 3 * hidden},
                              {&l->key, qkv + hidden, 3 * hidden},
                              {&l->value, qkv + 2 * hidden, 3 * hidden}};
  project(r, parts, 3, x, hidden, r->tokens);
  if (makes_own_heads(r, l)) return;
  crew_barrier(r->crew);
  finish_qk(r, l, qkv);
}

/* The same for a layer with a second norm after attention:
** LayerNorm_2(x + LayerNorm(x + made)). */
static void leave_attention(const layer_run *r, const layer_weights *l) {
  workspace *s = r->space;
  if (l->second_norm.gain == NULL) {
    leave_block(r, &l->attention_norm, s->projected, r->hidden, r->tokens);
    return;
  }
  leave_block(r, &l->attention_norm, s->hidden, s->projected, r->tokens);
  leave_block(r, &l->second_norm, s->projected, s->hidden, r->tokens);
}

static void attention_block(const layer_run *r, const layer_weights *l, float *qkv) {
  workspace *s = r->space;
  size_t hidden = (size_t)r->weights->hidden;
  float *scores = s->scores + (size_t)r->crew->member.rank * QUERY_ROWS * score_stride(s->longest);
  make_qkv(r, l, enter_block(r, &l->attention_norm, r->hidden, s->projected, r->tokens), qkv);
  attend(r->crew, r->weights, l, r->batch, qkv, scores, s->context);
  meet_before(r, &l->attention_output);
  project_one(r, &l->attention_output, s->context, hidden, s->projected, hidden, r->tokens);
  if (r->copies) {
    meet_before(r, &l->up);
    leave_attention(r, l);
  } else {
    crew_barrier(r->crew);
    leave_attention(r, l);
    meet_before(r, &l->up);
  }
}

/* inner[rows, columns; ld] becomes its activation or, in a gated layer, it is multiplied by
** that of gate[rows, columns; ld] (Shazeer 2020); while they are in the cache. */
static void activate_inner(const layer_run *r, const layer_weights *l, float *inner, float *gate,
                           size_t ld, size_t rows, size_t columns) {
  const kernels *k = r->crew->set;
  int gated = l->gate.out != 0;
  for (size_t row = 0; row < rows; row++) {
    float *x = (gated ? gate : inner) + row * ld; /* [columns] */
    k->activate(r->weights->hidden_activation, x, columns);
    if (gated) k->multiply(x, inner + row * ld, columns);
  }
}

/* inner[rows, intermediate] = activation(up(x)), or up(x) activation(gate(x)). This member's
** columns. */
static void feed_up(const layer_run *r, const layer_weights *l, const float *x, size_t rows) {
  size_t width = (size_t)r->weights->intermediate, hidden = (size_t)r->weights->hidden;
  size_t first, last;
  float *inner = r->space->inner, *gate = r->space->gate;
  const projection parts[] = {{&l->up, inner, width}, {&l->gate, gate, width}};
  crew_share(r->crew, width, COLUMN_GRAIN, &first, &last);
  project(r, parts, l->gate.out != 0 ? 2 : 1, x, hidden, rows);
  activate_inner(r, l, inner + first, gate + first, width, rows, last - first);
}

/* projected[rows, hidden] = down(feed_up(x[rows, hidden])); this member's columns. */
static void feed_rows(const layer_run *r, const layer_weights *l, const float *x, size_t rows) {
  workspace *s = r->space;
  feed_up(r, l, x, rows);
  meet_before(r, &l->down);
  project_one(r, &l->down, s->inner, (size_t)r->weights->intermediate, s->projected,
              (size_t)r->weights->hidden, rows);
}

/* The same by a member alone in float32, without a gate: a block of down's terms at a time, by
** which its sums are cut anyway. What lies between the products, inner[rows, n], stays in the
** second-level cache, with twice as many rows as if it were whole rows; these share the work of
** turning weights. */
static void feed_blocks(const layer_run *r, const layer_weights *l, const float *x, size_t rows) {
  const kernels *k = r->crew->set;
  workspace *s = r->space;
  size_t width = (size_t)r->weights->intermediate, hidden = (size_t)r->weights->hidden;
  for (size_t first = 0, n; first < width; first += n) {
    n = width - first < LINEAR_BLOCK ? width - first : LINEAR_BLOCK;
    project_columns(r, &l->up, first, first + n, x, hidden, s->inner, n, rows);
    k->activate(r->weights->hidden_activation, s->inner, rows * n);
    (first == 0 ? k->linear : k->linear_add)(s->inner, n, l->down.weight + first, width,
                                             first + n == width ? l->down.bias : NULL, s->projected,
                                             hidden, rows, hidden, n);
  }
}

/* 1 where a layer is fed by blocks. With few rows weights are better read in their order. */
static int goes_by_blocks(const layer_run *r, const layer_weights *l) {
  return r->crew->member.size == 1 && r->tokens > FEW_TOKENS && l->gate.out == 0 &&
         l->up.packed.panels == NULL && gemm_adds(r->crew->set);
}

static void feed_forward_block(const layer_run *r, int layer) {
  const layer_weights *l = &r->weights->layer[layer];
  workspace *s = r->space;
  size_t hidden = (size_t)r->weights->hidden, most = FEED_FORWARD_ROWS;
  int blocks = goes_by_blocks(r, l);
  if (blocks && r->weights->intermediate >= 2 * LINEAR_BLOCK) most *= 2; /* inner has the room */
  for (size_t first = 0; first < r->tokens; first += most) {
    size_t rows = r->tokens - first < most ? r->tokens - first : most;
    float *x = r->hidden + first * hidden; /* [rows, hidden] */
    const float *entered = enter_block(r, &l->output_norm, x, s->context, rows);
    if (blocks)
      feed_blocks(r, l, entered, rows);
    else
      feed_rows(r, l, entered, rows);
    if (r->copies) {
      meet_before_layer(r, layer + 1);
      leave_block(r, &l->output_norm, s->projected, x, rows);
    } else {
      crew_barrier(r->crew);
      leave_block(r, &l->output_norm, s->projected, x, rows);
      /* The next rows' inner overwrites what others may still read. */
      meet_before_layer(r, layer + 1);
    }
  }
}

/* Copies this member's rows of the hidden states that layer `index` starts from. */
static void keep_hidden(const layer_run *r, const capture *keep, int index) {
  size_t width = (size_t)r->weights->hidden, first, last;
  if (keep == NULL || keep->hidden == NULL) return;
  crew_share(r->crew, r->tokens, 1, &first, &last);
  memcpy(keep->hidden + ((size_t)index * r->tokens + first) * width, r->hidden + first * width,
         (last - first) * width * sizeof(float));
}

/* s->hidden before the first layer. */
static void embed(const layer_run *r) {
  const encoder_weights *w = r->weights;
  workspace *s = r->space;
  size_t narrow = (size_t)w->embedding;
  embed_tokens(r->crew, w, r->batch, w->projection.weight != NULL ? s->qkv : s->hidden);
  if (w->projection.weight == NULL) return;
  crew_barrier(r->crew);
  project_one(r, &w->projection, s->qkv, narrow, s->hidden, (size_t)w->hidden, r->tokens);
}

/* Copies need a LayerNorm that ends each block, so that all of a row is made anew. */
static int makes_copies(const layer_run *r) {
  const layer_weights *l = r->weights->layer;
  return r->tokens <= FEW_TOKENS && r->crew->member.size > 1 && !r->weights->pre_norm &&
         l->second_norm.gain == NULL && r->weights->final_norm.gain == NULL;
}

/* The copy of this member, if it is to have one. */
static void copy_hidden(layer_run *r) {
  size_t floats = r->tokens * (size_t)r->weights->hidden, rank = (size_t)r->crew->member.rank;
  r->hidden = r->space->hidden;
  r->copies = makes_copies(r);
  if (!r->copies || rank == 0) return;
  r->hidden = r->space->copies + (rank - 1) * floats;
  memcpy(r->hidden, r->space->hidden, floats * sizeof(float));
}

void encoder_run(crew *c, const encoder_weights *w, const ragged_batch *batch, workspace *s,
                 const capture *keep) {
  layer_run r = {c, w, batch, s, batch->starts[batch->sequences], 0, NULL};
  embed(&r);
  meet_before_layer(&r, 0);
  copy_hidden(&r);
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
