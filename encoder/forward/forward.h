/*
** forward.h: token ids to contextual vectors. The map of this folder:
**
**   family.c      for each model family, the names of its tensors
**   weights.c     those names to checked pointers into the mapped file
**   packing.c     the weights of a layer, rounded to a lower precision
**   heads.c       the same for the heads of a checkpoint, and their logits
**   positions.c   rotary positions, biases by distance, sinusoids
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

/* Activation of a head's first layer that the config decides. */
enum { OF_HIDDEN_LAYERS = -1, OF_CLASSIFIER = -2 };

/* The tensors of one head: out(norm(activation(dense(x)))), where dense and norm
** may be missing (NULL). Full names, without the prefix of the encoder. */
typedef struct head_names {
  const char *dense;
  int activation; /* an `activation`, or one of the above */
  const char *norm;
  const char *out;
  const char *out_bias; /* where it is not out.bias; a full name */
} head_names;

/* The tensor names of one family. Names below `layer` follow its prefix, in
** which %d is the layer; a linear has .weight and .bias below its name. NULL: the
** family has no such thing. */
typedef struct family {
  const char *names[4];               /* model_config.family; ends with NULL */
  const char *prefixes[5];            /* tried in order before every name; ends with NULL */
  const char *word, *position, *type; /* embedding tables, full names */
  const char *embedding_norm;
  const char *projection; /* embeddings to hidden states of another width */
  const char *layer;
  const char *query, *key, *value;   /* or */
  const char *query_key_value;       /* all three, one below the other */
  const char *query_norm, *key_norm; /* over all heads at once */
  const char *attention_output, *attention_norm;
  const char *second_norm; /* a further one after attention, with the residual once more */
  const char *up, *gate;   /* or */
  const char *up_gate;     /* both, one below the other */
  const char *down, *output_norm;
  const char *final_norm;
  const char *relative_bias; /* [buckets, heads], full name */
  const char *pooler;
  int pre_norm;                        /* 1: blocks normalize what they take, not what they give */
  int first_norm_bare;                 /* 1: layer 0 has no attention_norm */
  int gate_first;                      /* 1: in up_gate the gate lies above */
  head_names classify, entities, fill; /* `out` NULL: none */
  int classify_pooled;                 /* 1: classify works on the pooler's output */
  int bare_heads; /* 1: layers of heads have a bias only where config.json says so */
} family;

/* The descriptions of that family, one after the other: *next starts as 0. NULL
** when there are no more. Some families have been written with several sets of
** names. */
const family *family_next(const char *name, int *next);

/* ---- weights.c, heads.c ------------------------------------------------- */

/* y = x weight^T + bias, torch's Linear. */
typedef struct linear {
  const float *weight;   /* [out, in]; NULL where it is there only packed */
  const float *bias;     /* [out], or NULL */
  packed_weights packed; /* what a pass of reduced precision multiplies by; panels NULL: none */
  int in, out;           /* out 0: there is no such linear */
} linear;

typedef struct norm {
  const float *gain; /* [width]; NULL: there is none */
  const float *bias; /* [width], or NULL */
  float epsilon;
} norm;

typedef struct layer_weights {
  linear query, key, value, attention_output;
  norm query_norm, key_norm; /* or none */
  norm attention_norm;
  norm second_norm;      /* or none */
  linear up, gate, down; /* gate: what up is multiplied by, activated; or none */
  norm output_norm;
  const struct rotation *rotation; /* of queries and keys; NULL: none */
  size_t reach;                    /* keys at most so far from a query are seen; SIZE_MAX: all */
} layer_weights;

/* What is added to scores by the distance of key and query: row `head` of the
** table, where the entry for distance d is at reach + d, times the head's slope. */
typedef struct score_bias {
  const float *table;  /* [heads, 2 * reach + 1] or, with slopes, [2 * reach + 1];
                          NULL: nothing is added */
  const float *slopes; /* [heads]; NULL: all 1 */
  size_t reach;        /* largest distance */
} score_bias;

/* A head: out(norm(activation(dense(x)))). out.weight NULL: none. */
typedef struct task_head {
  linear dense;
  activation activation;
  norm norm;
  linear out;
  int pooled; /* 1: x is the pooler's output, */
  int mean;   /* 1: the mean of all tokens; 0: that of a token */
} task_head;
enum { HEAD_KINDS = BERT_HEAD_FILL + 1 };

typedef struct weights_memory {
  void *block;
  uint64_t bytes;
} weights_memory;

typedef struct encoder_weights {
  const family *family; /* whose names the file uses */
  int layers, heads, hidden, head_width, intermediate, vocab;
  int embedding;       /* width of the embedding tables */
  int types;           /* rows of the type table */
  int positions;       /* rows of the position table */
  int first_position;  /* its row for the first token of a sequence */
  int uncounted_token; /* the id that takes no position; -1: none */
  int pre_norm;
  activation hidden_activation;
  packed_precision precision; /* of the layers' products */
  const float *word;          /* [vocab, embedding] */
  const float *position;      /* [positions, embedding], or NULL */
  const float *type;          /* [types, embedding], or NULL */
  norm embedding_norm;
  linear projection;                          /* [hidden, embedding]; or none */
  struct rotation *rotation, *local_rotation; /* or NULL */
  score_bias bias;
  layer_weights *layer; /* [layers] */
  norm final_norm;
  int has_pooler;
  linear pooler; /* [hidden, hidden] */
  task_head head[HEAD_KINDS];
  weights_memory *blocks; /* [block_count], made where a tensor could not be used as it
                             lies in the file */
  size_t block_count, block_room;
  uint64_t private_bytes;
} encoder_weights;

/* Finds every tensor that `config` asks for in `file`, checks its shape and
** type, and points into the mapping; float16, bfloat16, float64 and misaligned
** tensors are converted into private memory, and the layers' linears are packed
** where `precision` is not float32. BERT_INVALID names the tensor and
** both shapes. *w is to be freed with weights_free, also after a failure;
** `file` must stay open as long. */
bert_status weights_bind(const model_config *config, const tensor_file *file,
                         packed_precision precision, encoder_weights *w, bert_error *error);
void weights_free(encoder_weights *w);

/* One linear or norm outside the encoder, such as a Dense module: name.weight and,
** where has_bias, name.bias. Converted blocks belong to `owner`. */
bert_status weights_bind_linear(encoder_weights *owner, const tensor_file *file, const char *name,
                                int in, int out, int has_bias, linear *l, bert_error *error);
bert_status weights_bind_norm(encoder_weights *owner, const tensor_file *file, const char *name,
                              int width, float epsilon, int has_bias, norm *n, bert_error *error);
/* One tensor [size], under its full name. */
bert_status weights_bind_vector(encoder_weights *owner, const tensor_file *file, const char *name,
                                int size, const float **out, bert_error *error);

/* A block of floats or of bytes that belongs to `w`, for what is computed at loading;
** NULL when out of memory. */
float *weights_block(encoder_weights *w, uint64_t count);
void *weights_bytes(encoder_weights *w, uint64_t bytes);
/* Frees such a block early. Another address is left alone. */
void weights_release(encoder_weights *w, const void *block);

/* ---- packing.c ----------------------------------------------------------- */

/* Packs the linears of a layer where w->precision is not float32. They then have no
** `weight` any more, but attention_output, which is looked into. Errors: BERT_NOMEM. */
bert_status layer_pack(encoder_weights *w, layer_weights *l, bert_error *error);

/* Binds the heads that the file has, after weights_bind. Its tensors show a
** masked-language head; whether a classifier is one of texts or of tokens, the name
** of the architecture says. Errors as weights_bind. */
bert_status heads_bind(const model_config *config, const head_config *c, const tensor_file *file,
                       encoder_weights *w, bert_error *error);

/* Rows that a head works on at once. */
enum { HEAD_ROWS = 32 };

/* The tokens [first, first + count) of a sequence or, with `which`, those it names
** there; count <= HEAD_ROWS. A head that works on the whole text takes a count of 1. */
typedef struct head_rows {
  size_t tokens; /* of the sequence */
  const size_t *which;
  size_t first, count;
} head_rows;

/* Floats of scratch that head_apply needs. */
size_t head_scratch(const encoder_weights *w);

/* logits[count, out] of the head, from the sequence's hidden[tokens, hidden]. */
void head_apply(const kernels *set, const encoder_weights *w, const task_head *h,
                const float *hidden, const head_rows *r, float *scratch, float *logits);

/* ---- positions.c --------------------------------------------------------- */

/* Rotary positions of one theta. Rows of cosines and sines are kept for the first
** positions and computed beyond, by the same formula. */
typedef struct rotation {
  rope_config rope;
  size_t width;       /* of a head; even */
  const float *table; /* [rows, width]: cosines of width / 2 angles, then sines */
  size_t rows;
} rotation;

/* *out is NULL where rope.theta is 0. Belongs to `w`. Errors: BERT_UNSUPPORTED for
** heads of odd width, BERT_NOMEM. */
bert_status rotation_make(encoder_weights *w, const rope_config *rope, int positions,
                          rotation **out, bert_error *error);
void rotation_free(rotation *r);

/* The row of `position` in a sequence of `tokens`: cosines and sines [width], in the
** table or in `room` [width]. */
const float *rotation_row(const rotation *r, size_t tokens, size_t position, float *room);

/* The tables of score_bias: MPNet's from values[buckets, heads], ALiBi's from a
** formula, for sequences of at most `positions` tokens. Errors: BERT_NOMEM. */
bert_status bias_from_buckets(encoder_weights *w, const float *values, int positions,
                              bert_error *error);
bert_status bias_from_slopes(encoder_weights *w, int positions, bert_error *error);

/* The sinusoidal table [positions, embedding] where the file has none. */
bert_status sinusoidal_table(encoder_weights *w, bert_error *error);

/* ---- crew.c ------------------------------------------------------------ */

/* When to stop, shared by all threads of one call. */
typedef struct stop_signal {
  int (*interrupted)(void *user); /* NULL: never asked */
  void *user;
  atomic_int stop;
} stop_signal;

/* A thread's place among those that run one forward pass together. A crew of
** one shares a call, but not its pass, with others. The call chose the kernels when it
** began: another thread may choose others for the process meanwhile. */
typedef struct crew {
  team_member member;
  int may_poll; /* 1 on the thread that called the library */
  stop_signal *signal;
  const kernels *set; /* the same for all members */
} crew;

crew crew_of_team(const team_member *member, stop_signal *signal, const kernels *set);
crew crew_alone(const team_member *member, stop_signal *signal, const kernels *set);
void crew_barrier(crew *c);
/* As team_arrive and team_wait. */
unsigned crew_arrive(crew *c);
void crew_wait(crew *c, unsigned passed);
/* The part of `count` items, in multiples of `grain`, that is this member's. */
void crew_share(const crew *c, size_t count, size_t grain, size_t *first, size_t *last);
/* Whoever leaves a pass early must not leave the others at a barrier. So one member
** asks (crew_poll), and all look at its answer (crew_stopped) with a barrier between
** the question and the look, and between the look and the next question. */
void crew_poll(crew *c);
int crew_stopped(const crew *c);
/* Both, and the first barrier: 1 when the call is to end. */
int crew_should_stop(crew *c);

/* ---- workspace.c ------------------------------------------------------- */

/* Rows that go through the feed-forward layer at a time, and queries whose
** scores are held at a time: small enough for the second-level cache. */
enum { FEED_FORWARD_ROWS = 256, QUERY_ROWS = 128 };

/* Up to so many tokens a product waits for its weights to come from memory, and what is
** done to rows takes less than to wait for others to do it. */
enum { FEW_TOKENS = 32 };

/* From one row of scores to the next: each begins on a cache line, which takes a
** quarter off the softmax of a short row. */
static inline size_t score_stride(size_t keys) {
  return (keys + 15) / 16 * 16;
}

typedef struct workspace {
  float *hidden;    /* [tokens, hidden], the result */
  float *copies;    /* [members - 1, tokens or FEW_TOKENS, hidden] */
  float *qkv;       /* [tokens, 3 * hidden] query, key, value side by side; before the
                       first layer, embeddings of another width than hidden */
  float *context;   /* [tokens, hidden] */
  float *projected; /* [tokens, hidden] */
  float *inner;     /* [FEED_FORWARD_ROWS, intermediate] */
  float *gate;      /* the same, of gated layers */
  float *scores;    /* [members, QUERY_ROWS, score_stride(longest)] */
  float *angles;    /* [members, head_width] */
  char *packed;     /* [members, packed_size]: rows rounded for a product of reduced
                       precision, FEED_FORWARD_ROWS at most */
  size_t packed_size;
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

/* ---- embeddings.c ------------------------------------------------------ */

/* This member's rows of the embeddings [tokens, embedding], normalized. */
void embed_tokens(const crew *c, const encoder_weights *w, const ragged_batch *batch, float *out);

/* ---- attention.c ------------------------------------------------------- */

/* Turns this member's rows of the queries and keys in qkv[tokens, 3 * hidden] by
** their rotary positions; room is [head_width]. */
void rotate_rows(const crew *c, const encoder_weights *w, const layer_weights *l,
                 const ragged_batch *batch, float *qkv, float *room);

/* This member's (sequence, head) pairs of context[tokens, hidden], from
** qkv[tokens, 3 * hidden]. */
void attend(const crew *c, const encoder_weights *w, const layer_weights *l,
            const ragged_batch *batch, const float *qkv, float *scores, float *context);

/* Queries [first, first + queries) of one head of one sequence of `tokens` tokens. */
typedef struct head_queries {
  size_t tokens;
  int head;
  size_t first, queries;
} head_queries;

/* Their scores [queries, tokens], q k^T / sqrt(head_width) and what is added for the
** distance, from the sequence's qkv[tokens, 3 * hidden]; before the mask of a layer
** that sees only the nearest keys. */
void attention_scores(const kernels *set, const encoder_weights *w, const float *qkv,
                      const head_queries *h, float *scores);

/* Makes the scores of keys that a query does not see -infinity. */
void attention_mask(const layer_weights *l, const head_queries *h, float *scores);

/* The softmax of the masked scores, the attention weights [queries, tokens]. */
void attention_weights(const kernels *set, const encoder_weights *w, const layer_weights *l,
                       const float *qkv, const head_queries *h, float *weights);

/* ---- pooling.c --------------------------------------------------------- */

/* Pools rows [skip, tokens) of hidden[tokens, hidden] into out[hidden]:
** mean and mean_sqrt_len take their sum over n and over sqrt n, weightedmean the mean
** weighted by their number from 1 in the whole sequence, max the largest of each
** column, cls the first and lasttoken the last of them (sentence-transformers,
** Pooling); POOLING_POOLER the pooler output of row 0. skip < tokens. */
void pool(const kernels *set, const encoder_weights *w, pooling kind, const float *hidden,
          size_t tokens, size_t skip, float *out);

/* x[width] / max(|x|, 1e-12), torch's normalize; the norm sums in double. */
void normalize(const kernels *set, float *x, size_t width);

#endif
