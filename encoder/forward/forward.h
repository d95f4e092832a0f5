/*
** forward.h: token ids to contextual vectors. The map of this folder:
**
**   family.c      for each model family, the names of its tensors
**   weights.c     those names to checked pointers into the mapped file
**   crew.c        the threads of a forward pass, and when to stop
**   workspace.c   the scratch memory of a forward pass
**   embeddings.c  word + position + type, normalized
**   attention.c   softmax(q k^T / sqrt width) v for each sequence and head
**   layer.c       one layer, and the loop over all of them
**   pooling.c     contextual vectors of a sequence to one vector
**
** Sequences of a batch lie one after the other in [tokens, hidden] matrices;
** there is no padding and no mask. All members of a crew run the same
** functions and divide the work inside them, by columns where all rows need
** the same weights, by rows or heads elsewhere, with a barrier wherever one
** member reads what another wrote.
*/
#ifndef BERT_FORWARD_H
#define BERT_FORWARD_H

#include <stdatomic.h>

#include "../base/base.h"
#include "../files/files.h"
#include "../kernels/kernels.h"

/* ---- family.c ---------------------------------------------------------- */

/* The tensor names of one family. Names below `layer` follow its prefix, in
** which %d is the layer; a linear has .weight and .bias below its name. */
typedef struct family {
  const char *model_type;
  const char *prefixes[3];            /* tried in order before every name; ends with NULL */
  const char *word, *position, *type; /* embedding tables, full names */
  const char *embedding_norm;
  const char *layer;
  const char *query, *key, *value, *attention_output, *attention_norm;
  const char *up, *down, *output_norm;
  const char *pooler; /* NULL: the family has none */
} family;

/* The family of that model_type, or NULL. */
const family *family_find(const char *model_type);

/* ---- weights.c --------------------------------------------------------- */

/* y = x weight^T + bias, torch's Linear. */
typedef struct linear {
  const float *weight; /* [out, in] */
  const float *bias;   /* [out], or NULL */
  int in, out;
} linear;

typedef struct norm {
  const float *gain, *bias; /* [width] */
  float epsilon;
} norm;

typedef struct layer_weights {
  linear query, key, value, attention_output;
  norm attention_norm;
  linear up, down;
  norm output_norm;
} layer_weights;

typedef struct encoder_weights {
  int layers, heads, hidden, head_width, intermediate, vocab, positions, types;
  activation hidden_activation;
  const float *word;     /* [vocab, hidden] */
  const float *position; /* [positions, hidden] */
  const float *type;     /* [types, hidden] */
  norm embedding_norm;
  layer_weights *layer; /* [layers] */
  int has_pooler;
  linear pooler;     /* [hidden, hidden] */
  float **converted; /* [converted_count] blocks made where a tensor could
                        not be used as it lies in the file */
  size_t converted_count, converted_room;
  uint64_t private_bytes;
} encoder_weights;

/* Finds every tensor that `config` asks for in `file`, checks its shape and
** type, and points into the mapping; float16, bfloat16, float64 and misaligned
** tensors are converted into private memory. BERT_INVALID names the tensor and
** both shapes. *w is to be freed with weights_free, also after a failure;
** `file` must stay open as long. */
bert_status weights_bind(const model_config *config, const tensor_file *file, encoder_weights *w,
                         bert_error *error);
void weights_free(encoder_weights *w);

/* One linear outside the encoder, such as a Dense module: name.weight and,
** where has_bias, name.bias. Converted blocks belong to `owner`. */
bert_status weights_bind_linear(encoder_weights *owner, const tensor_file *file, const char *name,
                                int in, int out, int has_bias, linear *l, bert_error *error);

/* ---- crew.c ------------------------------------------------------------ */

/* When to stop, shared by all threads of one call. */
typedef struct stop_signal {
  int (*interrupted)(void *user); /* NULL: never asked */
  void *user;
  atomic_int stop;
} stop_signal;

/* A thread's place among those that run one forward pass together. A crew of
** one shares a call, but not its pass, with others. */
typedef struct crew {
  team_member member;
  int may_poll; /* 1 on the thread that called the library */
  stop_signal *signal;
} crew;

crew crew_of_team(const team_member *member, stop_signal *signal);
crew crew_alone(const team_member *member, stop_signal *signal);
void crew_barrier(crew *c);
/* The part of `count` items, in multiples of `grain`, that is this member's. */
void crew_share(const crew *c, size_t count, size_t grain, size_t *first, size_t *last);
/* All members agree on the answer: 1 when the call is to end. */
int crew_should_stop(crew *c);

/* ---- workspace.c ------------------------------------------------------- */

/* Rows that go through the feed-forward layer at a time, and queries whose
** scores are held at a time: small enough for the second-level cache. */
enum { FEED_FORWARD_ROWS = 128, QUERY_ROWS = 64 };

typedef struct workspace {
  float *hidden;    /* [tokens, hidden], the result */
  float *qkv;       /* [tokens, 3 * hidden] query, key, value side by side */
  float *context;   /* [tokens, hidden] */
  float *projected; /* [tokens, hidden] */
  float *inner;     /* [FEED_FORWARD_ROWS, intermediate] */
  float *scores;    /* [members, QUERY_ROWS, longest] */
  size_t tokens, longest;
  int members;
  float *block;
  uint64_t bytes;
} workspace;

/* Makes room for a batch of `tokens` tokens, the longest sequence of which has
** `longest`, run by `members` threads; keeps what is there if it suffices. */
bert_status workspace_reserve(workspace *s, const encoder_weights *w, size_t tokens, size_t longest,
                              int members, bert_error *error);
void workspace_free(workspace *s);

/* ---- layer.c ----------------------------------------------------------- */

/* Sequences one after the other. */
typedef struct ragged_batch {
  size_t sequences;
  const size_t *starts; /* [sequences + 1]: sequence i is [starts[i], starts[i+1]) */
  const int32_t *ids;   /* [tokens] */
  const int32_t *types; /* [tokens] */
} ragged_batch;

/* What a pass keeps on its way; NULL fields keep nothing. */
typedef struct capture {
  float *hidden; /* [layers + 1, tokens, hidden] */
  float *qkv;    /* [layers, tokens, 3 * hidden] */
} capture;

/* Runs the encoder over a batch; every member of the crew calls it with the
** same arguments. The result is in s->hidden once all have returned and met.
** Ids, types and lengths are the caller's to check. Stops between layers when
** the signal says so; the result is then of no use. */
void encoder_run(crew *c, const encoder_weights *w, const ragged_batch *batch, workspace *s,
                 const capture *keep);

/* This member's columns of y[rows, out; ldy] = x[rows, in; ldx] weight^T + bias. */
void project(const crew *c, const linear *l, const float *x, size_t ldx, float *y, size_t ldy,
             size_t rows);

/* ---- embeddings.c ------------------------------------------------------ */

/* This member's rows of hidden[tokens, hidden]. */
void embed_tokens(const crew *c, const encoder_weights *w, const ragged_batch *batch,
                  float *hidden);

/* ---- attention.c ------------------------------------------------------- */

/* This member's (sequence, head) pairs of context[tokens, hidden], from
** qkv[tokens, 3 * hidden]. */
void attend(const crew *c, const encoder_weights *w, const ragged_batch *batch, const float *qkv,
            float *scores, float *context);

/* The scores q k^T / sqrt(head_width) [queries, tokens] of one head for queries
** [first, first + queries) of one sequence, from its qkv[tokens, 3 * hidden]. */
void attention_scores(const encoder_weights *w, const float *qkv, size_t tokens, int head,
                      size_t first, size_t queries, float *scores);

/* The softmax of them, the attention weights [queries, tokens]. */
void attention_weights(const encoder_weights *w, const float *qkv, size_t tokens, int head,
                       size_t first, size_t queries, float *weights);

/* ---- pooling.c --------------------------------------------------------- */

/* Pools rows [skip, tokens) of hidden[tokens, hidden] into out[hidden]:
** mean and mean_sqrt_len take their sum over n and over sqrt n, max the largest
** of each column; cls takes row 0 whatever `skip` is (sentence-transformers,
** Pooling), and POOLING_POOLER the pooler output of row 0. skip < tokens. */
void pool(const encoder_weights *w, pooling kind, const float *hidden, size_t tokens, size_t skip,
          float *out);

/* x[width] / max(|x|, 1e-12), torch's normalize; the norm sums in double. */
void normalize(float *x, size_t width);

#endif
