/*
** model.h: what bert.h promises, put together from the layers below. The map
** of this folder:
**
**   open.c      bert_open, bert_close: models shared within the process
**   load.c      the files of one directory to a bert_model
**   stamp.c     whether the files of a directory are still the same
**   fingerprint.c  what tells one model from another, wherever it lies
**   tokens.c    bert_tokenize and what belongs to tokens
**   split.c     bert_split: chunks of a long text
**   encoder.c   bert_encoder: settings and scratch memory
**   recipe.c    bert_embed_options, checked against the model, and applied
**   embed.c     bert_embed: texts to embeddings over all threads
**   pass.c      bert_run: one pass kept, to look inside
**   pass_attention.c  the attention of a kept pass: weights, norms, rollout
**   logits.c    the heads of a checkpoint: what there is, logits, scores
**   views.c     bert_view_make: tokens to the units of attention matrices
**   machine.c   vectors, kernels, cores
*/
#ifndef BERT_MODEL_H
#define BERT_MODEL_H

#include <stdatomic.h>

#include "../base/base.h"
#include "../files/files.h"
#include "../forward/forward.h"
#include "../tokenizers/tokenizers.h"

/* ---- load.c ------------------------------------------------------------ */

/* A Dense or LayerNorm module after pooling, with its weights. */
typedef struct dense {
  linear map;
  activation activation;
  norm norm; /* of a LayerNorm */
  tensor_file *file;
} dense;

struct bert_model {
  /* How the process finds it again; guarded by the mutex of open.c. */
  struct bert_model *next;
  int owners;
  int copied;
  packed_precision precision;
  uint64_t stamp; /* of the files it was read from */
  /* Of fingerprint.c: made when it is first asked for. */
  atomic_int fingerprinted;
  unsigned char fingerprint[DIGEST_BYTES];
  /* Immutable from here on. */
  char *directory;             /* absolute */
  char *transformer_directory; /* the one with config.json */
  tensor_file *file;
  model_config config;
  sentence_config sentence;
  head_config head_config;
  encoder_weights weights;
  bert_head heads[HEAD_KINDS]; /* width 0: none */
  int32_t mask_token;
  dense *dense; /* [sentence.module_count], for those that are */
  tokenizer *tokenizer;
  bert_description description;
};

/* Reads everything in `directory`, a string that becomes the model's also
** after a failure. */
bert_status model_load(char *directory, int copy, packed_precision precision, bert_model **out,
                       bert_error *error);
void model_free(bert_model *model); /* NULL is allowed */

/* ---- open.c ------------------------------------------------------------ */

/* "float32", "bf16", "int8": as in bert_open_options. */
const char *precision_name(packed_precision p);

/* ---- logits.c ---------------------------------------------------------- */

/* What bert_find_head and bert_mask_token tell, from config and weights. */
bert_status heads_describe(bert_model *model, bert_error *error);

/* ---- stamp.c ----------------------------------------------------------- */

/* A number that changes when a file that the model is read from is changed,
** replaced, removed or added: which file lies at each path, its size and time. */
uint64_t model_stamp(const bert_model *model);

/* ---- tokens.c ---------------------------------------------------------- */

/* Checks a token limit given by a caller (0: the model's own) and stores the
** one to use. */
bert_status token_limit(const bert_model *model, int max_tokens, int pair, size_t *limit,
                        bert_error *error);

/* ---- encoder.c --------------------------------------------------------- */

struct bert_encoder {
  bert_model *model;
  int threads; /* 0: one per core */
  int (*interrupted)(void *user);
  void *user;
  workspace space; /* kept between calls while it is small */
};

stop_signal encoder_signal(const bert_encoder *encoder);

/* Threads that a call on this encoder may use; at least 1. */
int encoder_threads(const bert_encoder *encoder);

/* Gives scratch memory above KEEP_BYTES back after a call. */
enum { KEEP_BYTES = 4 << 20 };
void encoder_trim(bert_encoder *encoder);

/* Refuses token ids and types that the tables lack, and lengths beyond the
** positions: BERT_ARGUMENT, with the number. */
bert_status check_tokens(const bert_model *model, const bert_tokens *tokens, bert_error *error);

/* ---- pass.c, pass_attention.c ------------------------------------------- */

struct bert_pass {
  bert_model *model;
  const kernels *set; /* that computed it, and what is asked of it */
  size_t tokens;
  int keep;
  float *hidden; /* [layers + 1, tokens, hidden] or, without BERT_KEEP_HIDDEN,
                    [tokens, hidden] */
  float *qkv;    /* [layers, tokens, 3 * hidden], or NULL */
};

/* The qkv[tokens, 3 * hidden] of a layer; NULL when it or the head is not there. */
const float *pass_qkv(const bert_pass *pass, int layer, int head);

/* BERT_NUMERIC, naming the first layer and head whose attention weights are not
** finite; BERT_OK when all are, or none were kept. For a pass that went wrong.
** scratch is [QUERY_ROWS, tokens]. */
bert_status pass_check_attention(const bert_pass *pass, float *scratch, bert_error *error);

/* Counts sequences run, for bert_passes_run. */
void passes_count(uint64_t more);

/* ---- recipe.c ---------------------------------------------------------- */

/* How the sequences of one call become embeddings: bert_embed_options, checked
** against the model and with every default filled in. */
typedef struct recipe {
  const bert_model *model;
  const kernels *set; /* those of the process when the call began */
  const char *prompt; /* put before each text; may be "" */
  size_t prompt_size;
  size_t skip; /* leading tokens left out of pooling */
  pooling poolings[POOLING_LIMIT];
  int pooling_count;
  int pooled_width; /* pooling_count * hidden_size */
  int widest;       /* of pooled and of all modules' results */
  int normalize;    /* 1: unit length at the end */
  int modules;      /* how many of the model's modules run */
  int dim;          /* floats of the result */
  size_t limit;     /* tokens */
} recipe;

bert_status recipe_make(const bert_model *model, const bert_embed_options *options, recipe *out,
                        bert_error *error);

/* Turns the hidden[tokens, hidden_size] of one sequence into out[dim]; scratch
** is [2, widest]. */
void recipe_apply(const recipe *r, const float *hidden, size_t tokens, float *scratch, float *out);

#endif
