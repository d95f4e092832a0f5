/*
** bert.h: the shared C encoder of bertsql, a library of its own.
**
** It opens a model directory in Hugging Face layout (config.json,
** tokenizer.json, model.safetensors and, where present, the files of
** sentence-transformers), memory-maps its weights and turns text into tokens,
** contextual vectors, attention weights and sentence embeddings.
**
** Usage (the tests compile and run this very text):
**
** @example
**   #include "bert.h"
**   #include <stdio.h>
**   #include <stdlib.h>
**
**   int main(int argc, char **argv) {
**     bert_error error = {0};
**     bert_model *model = NULL;
**     bert_encoder *encoder = NULL;
**     bert_text text = {"time flies like an arrow", 24};
**     if (argc < 2) return 2;
**     if (bert_open(argv[1], NULL, &model, &error) == BERT_OK &&
**         bert_encoder_create(model, &encoder, &error) == BERT_OK) {
**       int dim = bert_describe(model)->dim;
**       float *embedding = malloc(sizeof(float) * (size_t)dim); // [1, dim]
**       if (embedding != NULL &&
**           bert_embed(encoder, &text, 1, NULL, embedding, NULL, &error) == BERT_OK)
**         printf("%d numbers, the first is %.4f\n", dim, embedding[0]);
**       free(embedding);
**     }
**     if (error.status != BERT_OK) fprintf(stderr, "%s\n", error.text);
**     bert_encoder_free(encoder);
**     bert_close(model);
**     return error.status != BERT_OK;
**   }
** @end
**
** Conventions
**   Shapes stand in brackets, row-major: [tokens, hidden].
**   Layer, head and token numbers start at 0. Texts are bytes with a length;
**   they need no closing NUL, may hold NUL, and what is not UTF-8 is read as
**   U+FFFD. Sizes and offsets are in bytes unless a name says otherwise.
**   Whatever fails returns a status other than BERT_OK and fills the
**   bert_error it was given, which may be NULL. Outputs are then untouched
**   unless a function says otherwise.
**
** Threads
**   A bert_model is immutable and may be used by any number of threads at
**   once. A bert_encoder serves one call at a time; make one per thread or
**   per connection. Everything works after fork() in parent and child.
*/
#ifndef BERT_H
#define BERT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BERT_VERSION "0.1.0"

/* ---- Errors ------------------------------------------------------------ */

typedef enum bert_status {
  BERT_OK = 0,
  BERT_NOMEM,       /* the allocator had no memory */
  BERT_IO,          /* a file is missing or could not be read or mapped */
  BERT_INVALID,     /* a model file breaks a rule of its format */
  BERT_UNSUPPORTED, /* a well-formed model asks for what this library lacks */
  BERT_ARGUMENT,    /* an argument of the call is out of its range */
  BERT_TOO_LONG,    /* a text exceeds the token limit and may not be cut */
  BERT_INTERRUPTED, /* the interrupted callback asked to stop */
  BERT_NUMERIC,     /* the result holds a NaN or an infinity */
  BERT_CHANGED      /* a mapped weight file changed on disk since bert_open */
} bert_status;

/* What went wrong, for a person: which value, why, and what to do. */
typedef struct bert_error {
  bert_status status;
  char text[1024]; /* NUL-terminated UTF-8, cut at a character */
} bert_error;

/* ---- Memory ------------------------------------------------------------ */

/* Where the library takes its memory. allocate returns NULL when there is
** none. Both may be called from any thread. */
typedef struct bert_allocator {
  void *(*allocate)(void *user, uint64_t bytes);
  void (*release)(void *user, void *block);
  void *user;
} bert_allocator;

/* Replaces malloc and free for everything allocated from now on; blocks return
** to the allocator they came from. NULL restores malloc and free. Call it
** while no other thread is inside the library. */
void bert_set_allocator(const bert_allocator *allocator);

/* ---- Models ------------------------------------------------------------ */

typedef struct bert_model bert_model;

typedef struct bert_open_options {
  const char *precision; /* of the layers' matrix products: "float32", the default when
                            NULL; "bf16"; "int8"; capitals or not */
  int copy;              /* 1: read the weights into private memory instead of
                            mapping them, so that nothing that happens to the
                            file afterwards can matter */
} bert_open_options;

/* Opens the model in `source` and stores it in *model, to be given back with
** bert_close. `source` is a directory or a hub id such as
** "sentence-transformers/all-MiniLM-L6-v2", which is looked up in the local
** Hugging Face cache (HF_HUB_CACHE, HF_HOME, ~/.cache/huggingface/hub). Nothing
** is ever downloaded. Opening a directory that this process has open already,
** unchanged on disk and with the same options, returns the same model.
** Errors: BERT_IO, BERT_INVALID, BERT_UNSUPPORTED, BERT_ARGUMENT, BERT_NOMEM. */
bert_status bert_open(const char *source, const bert_open_options *options, bert_model **model,
                      bert_error *error);

/* One more owner of the same model; returns `model`. */
bert_model *bert_retain(bert_model *model);

/* Gives a model back; the last owner unmaps it. NULL is allowed. */
void bert_close(bert_model *model);

/* What a model is. Strings live as long as the model. */
typedef struct bert_description {
  const char *source;     /* the directory it was opened from, absolute */
  const char *family;     /* "bert", "roberta", "modernbert", … */
  const char *tokenizer;  /* "wordpiece", "bpe", "unigram" */
  const char *pooling;    /* "cls", "mean", "max", "mean_sqrt_len", "weightedmean" or
                             "lasttoken"; the first where several are concatenated */
  const char *similarity; /* what the embeddings were trained for: "cosine", "dot",
                             "euclidean" or "manhattan" */
  const char *precision;  /* "float32", "bf16" or "int8" */
  const char *tasks;      /* comma-separated: "embed", and by its heads "classify",
                             "rerank", "entities", "fill" */
  int layers, heads;
  int hidden_size; /* width of a contextual vector */
  int dim;         /* width of an embedding */
  int vocab_size;
  int max_tokens;         /* the token limit, special tokens included */
  int max_positions;      /* the longest sequence the weights allow */
  int segments;           /* token types; 1 or 2 */
  int normalize;          /* 1: embeddings have unit length */
  int has_pooler;         /* 1: bert_pass_pooler works */
  uint64_t mapped_bytes;  /* of weights mapped from files */
  uint64_t private_bytes; /* of weights converted or copied */
} bert_description;

const bert_description *bert_describe(const bert_model *model);

/* What tells one model from another, wherever it lies: 128 bits of everything an
** embedding depends on, that is the bytes of the weights and of the tokenizer's
** files, and the settings in the other files: sizes, pooling, modules, prompts,
** token limit, precision. Two copies of a model have the same fingerprint on
** every machine, mapped or copied. The first call reads all weights, with all
** cores; later ones only check that the files are unchanged. Any number of
** threads may ask at once.
** Errors: BERT_CHANGED, BERT_NOMEM, BERT_IO. */
bert_status bert_fingerprint(bert_model *model, unsigned char fingerprint[16], bert_error *error);

/* BERT_OK while the files under the mapping are as they were when the model
** was opened, else BERT_CHANGED. A file cut short while mapped would kill the
** process at the next touch; call this before work, it costs a microsecond. */
bert_status bert_check(const bert_model *model, bert_error *error);

/* ---- Tokens ------------------------------------------------------------ */

typedef struct bert_text {
  const char *data; /* may be NULL when size is 0 */
  size_t size;      /* bytes */
} bert_text;

/* The tokens of a text, or of a pair of texts, with the special tokens that
** the model's post-processor adds. All arrays are [count]. */
typedef struct bert_tokens {
  size_t count;
  int32_t *ids;      /* row of the embedding table */
  int32_t *types;    /* token type id */
  size_t *starts;    /* byte range in the text of the token's own segment, */
  size_t *stops;     /*   stop exclusive; 0, 0 for added special tokens */
  int32_t *words;    /* number of the word in its segment; -1 if special */
  int8_t *segments;  /* 0 or 1; -1 if special */
  uint8_t *special;  /* 1: added by the post-processor */
  uint8_t *used;     /* 0: beyond the token limit, cut off before the model */
  size_t used_count; /* how many are used */
  int truncated;     /* 1: used_count < count, or tokenizing stopped early */
} bert_tokens;

/* How to tokenize; zeros are the defaults. */
typedef struct bert_token_options {
  int max_tokens; /* the limit that sets `used`; 0: the model's own */
  int only_used;  /* 1: leave out what is not used, and do not even look at
                     text far beyond the limit: time and memory are then
                     bounded whatever the length of the text */
  int keep_empty; /* 1: an empty second text makes a pair, as for texts in a list;
                     0: it counts as none, as for a text alone in transformers */
} bert_token_options;

/* Tokenizes `text` and, if not NULL, `text_b` as the second of a pair; stores
** the tokens in *tokens, to be freed with bert_tokens_free.
** Errors: BERT_ARGUMENT (max_tokens below the special tokens or above
** max_positions), BERT_NOMEM. */
bert_status bert_tokenize(const bert_model *model, bert_text text, const bert_text *text_b,
                          const bert_token_options *options, bert_tokens **tokens,
                          bert_error *error);
void bert_tokens_free(bert_tokens *tokens);

/* The vocabulary's string of `id` (size 0 and NULL if there is none); lives
** as long as the model, not NUL-terminated. */
bert_text bert_token_string(const bert_model *model, int32_t id);

/* What token `id` reads as, alone: the marks of the vocabulary stand for what they
** mean, so that "Ġtime" of a byte-level vocabulary is " time" and "▁time" is
** "time"; a piece such as "##ing" keeps its mark, and part of a character is U+FFFD.
** Writes at most `room` bytes to `out` and returns how many there are; 0 for an id
** that has no token. */
size_t bert_token_text(const bert_model *model, int32_t id, char *out, size_t room);

/* The text with the mask token at bytes [start, stop) of it replaced by token `id`:
** "read [MASK] loud" with "##ing" is "reading loud". All else stays as it is written.
** Writes at most `room` bytes to `out` and returns how many there are. */
size_t bert_replace_mask(const bert_model *model, bert_text text, size_t start, size_t stop,
                         int32_t id, char *out, size_t room);

/* A piece of a long text: bytes [start, stop) of it. `tokens` is what
** bert_tokenize gives for the piece alone, special tokens included. */
typedef struct bert_chunk {
  size_t start, stop;
  int tokens;
} bert_chunk;

/* Cuts `text` into chunks of at most `max_tokens` tokens, special tokens
** included, of which `overlap` repeat the end of the chunk before. Cuts fall
** between words; a word longer than a chunk is cut between its tokens. An
** empty text has one empty chunk. *chunks is [*count], freed with
** bert_chunks_free.
** Errors: BERT_ARGUMENT (max_tokens below special tokens + 1 or above
** max_positions; overlap negative or not below max_tokens - special tokens),
** BERT_NOMEM. */
bert_status bert_split(const bert_model *model, bert_text text, int max_tokens, int overlap,
                       bert_chunk **chunks, size_t *count, bert_error *error);
void bert_chunks_free(bert_chunk *chunks);

/* ---- Running the model ------------------------------------------------- */

/* Scratch memory and settings for running one model. */
typedef struct bert_encoder bert_encoder;

/* Makes an encoder that keeps its own reference to `model`. */
bert_status bert_encoder_create(bert_model *model, bert_encoder **encoder, bert_error *error);
void bert_encoder_free(bert_encoder *encoder);

/* At most `threads` threads for each call, 0 for one per core (the default). */
void bert_encoder_set_threads(bert_encoder *encoder, int threads);

/* `interrupted` is asked between layers, always on the calling thread; when
** it returns other than 0 the call ends with BERT_INTERRUPTED. NULL: never. */
void bert_encoder_set_interrupt(bert_encoder *encoder, int (*interrupted)(void *user), void *user);

/* Bytes of scratch memory the encoder holds between calls. */
uint64_t bert_encoder_memory(const bert_encoder *encoder);

/* How to embed; zeros are what sentence-transformers' encode does with the
** model's own files. */
typedef struct bert_embed_options {
  const char *prompt;  /* put before each text as it is; NULL: see kind */
  const char *kind;    /* name of a prompt of the model. "query", "passage",
                          "document" and "corpus" are roles that every model
                          has, empty where it defines none. NULL: the model's
                          default prompt, if it has one */
  const char *pooling; /* "cls", "mean", "max", "mean_sqrt_len", "weightedmean",
                          "lasttoken" or "pooler" instead of the model's own;
                          capitals or not */
  int dims;            /* keep only the first dims numbers, renormalized if the
                          result is normalized; 0: all */
  int normalize;       /* 1: unit length, -1: as pooled, 0: as the model says */
  int max_tokens;      /* another token limit, up to max_positions; 0: own */
  int refuse_long;     /* 1: a text beyond the limit is BERT_TOO_LONG instead
                          of being cut */
} bert_embed_options;

/* How the tokens of one embedded text came out. */
typedef struct bert_embed_result {
  int tokens;    /* that went through the model, special ones included */
  int truncated; /* 1: the text was cut at the token limit */
} bert_embed_result;

/* The width of the embeddings that bert_embed gives with `options`.
** Errors: BERT_ARGUMENT, when the options do not fit the model. */
bert_status bert_embed_dim(const bert_model *model, const bert_embed_options *options, int *dim,
                           bert_error *error);

/* Embeds texts[count] into `embeddings` [count, dim], dim as bert_embed_dim
** gives it; results is [count] or NULL. Texts are grouped by length into ragged
** batches over all threads; an embedding does not depend on its company.
** Errors: BERT_ARGUMENT, BERT_TOO_LONG, BERT_NUMERIC, BERT_INTERRUPTED,
** BERT_CHANGED, BERT_NOMEM; `embeddings` then holds nothing of use. */
bert_status bert_embed(bert_encoder *encoder, const bert_text *texts, size_t count,
                       const bert_embed_options *options, float *embeddings,
                       bert_embed_result *results, bert_error *error);

/* One forward pass that was kept, to look inside. */
typedef struct bert_pass bert_pass;

/* What a pass keeps, as a sum. The last hidden states are always kept. */
enum {
  BERT_KEEP_HIDDEN = 1,   /* the hidden states of every layer */
  BERT_KEEP_ATTENTION = 2 /* query, key and value vectors of every layer, from
                             which attention weights are computed head by head
                             when asked for */
};

/* Runs the used tokens of `tokens` through the model and stores the pass in
** *pass, to be freed with bert_pass_free.
** Errors: as bert_embed; BERT_ARGUMENT for an id outside the vocabulary or
** more tokens than max_positions. */
bert_status bert_run(bert_encoder *encoder, const bert_tokens *tokens, int keep, bert_pass **pass,
                     bert_error *error);
void bert_pass_free(bert_pass *pass);

/* How many tokens went through: `tokens` in the shapes below. */
int bert_pass_tokens(const bert_pass *pass);

/* The kernel set that computed it, named as by bert_kernels, which also computes what is asked of
** it below. */
const char *bert_pass_kernels(const bert_pass *pass);

/* Hidden states [tokens, hidden_size] after `layer` layers: 0 is the embedding
** layer, `layers` the last. NULL where the pass did not keep them. */
const float *bert_pass_hidden(const bert_pass *pass, int layer);

/* Attention weights [tokens (queries), tokens (keys)] of one head, written to
** `weights`: softmax of the scores, exactly those of the pass. Keys that a query does
** not see, in a layer with a sliding window, have weight 0.
** Errors: BERT_ARGUMENT (layer, head, or a pass that kept no attention),
** BERT_NUMERIC (weights that are not finite; names layer and head; `weights`
** then holds nothing of use). */
bert_status bert_pass_attention(const bert_pass *pass, int layer, int head, float *weights,
                                bert_error *error);

/* The same for queries [first, first + queries) only, softmax(score /
** temperature), and the scores themselves: q k^T / sqrt(head size), plus what the
** model adds for the distance between the two, without a window's mask. Both
** outputs are [queries, tokens]; either may be NULL. A temperature of 1 gives
** the weights of the pass, and a row does not depend on the range it was asked
** for in. Errors: as above, for whichever output is asked for; BERT_ARGUMENT for
** a range outside the tokens or a temperature that is not above 0. */
bert_status bert_pass_attention_rows(const bert_pass *pass, int layer, int head, size_t first,
                                     size_t queries, double temperature, float *weights,
                                     float *scores, bert_error *error);

/* Norms [tokens] of the transformed value vectors of one head, |v_j W_O| with
** the head's columns of the output projection (Kobayashi et al. 2020, equation
** 6 without its bias). Errors: as bert_pass_attention, BERT_NOMEM. */
bert_status bert_pass_value_norms(const bert_pass *pass, int layer, int head, float *norms,
                                  bert_error *error);

/* Which vector of the attention of one head. */
typedef enum bert_vector_kind { BERT_QUERY, BERT_KEY, BERT_VALUE } bert_vector_kind;

/* The query, key or value vectors of one head, [tokens, head size], rows
** *stride floats apart; queries and keys as they meet, with rotary positions where
** the model has them. NULL where the pass did not keep them. */
const float *bert_pass_vectors(const bert_pass *pass, bert_vector_kind kind, int layer, int head,
                               size_t *stride);

/* The pooler output [hidden_size]: tanh(W h_cls + b), written to `output`.
** Errors: BERT_ARGUMENT for a model without a pooler. */
bert_status bert_pass_pooler(const bert_pass *pass, float *output, bert_error *error);

/* How many forward passes this process has run, counted by sequence: for
** tests that must know whether work was shared. */
uint64_t bert_passes_run(void);

/* ---- Heads --------------------------------------------------------------- */

/* What a checkpoint was trained for beside contextual vectors. */
typedef enum bert_head_kind {
  BERT_HEAD_CLASSIFY, /* numbers for a text or pair: classes, or a cross-encoder */
  BERT_HEAD_ENTITIES, /* numbers for each token: named entities and the like */
  BERT_HEAD_FILL      /* for a token, a number for each of the vocabulary */
} bert_head_kind;

typedef enum bert_problem { /* problem_type */
                            BERT_PROBLEM_UNSAID,
                            BERT_PROBLEM_ONE_LABEL,
                            BERT_PROBLEM_MANY_LABELS,
                            BERT_PROBLEM_REGRESSION
} bert_problem;

/* What makes scores of logits. */
typedef enum bert_score { BERT_SCORE_LOGIT, BERT_SCORE_SIGMOID, BERT_SCORE_SOFTMAX } bert_score;

typedef struct bert_head {
  int width;                 /* logits for a text or token: labels, or the vocabulary */
  const char *const *labels; /* [width], id2label; NULL for BERT_HEAD_FILL */
  bert_problem problem;
  bert_score score;  /* as the transformers pipelines have it */
  bert_score rerank; /* as CrossEncoder.predict has it; LOGIT or SIGMOID */
} bert_head;

/* The head of that kind, which lives as long as the model; NULL when the model has
** none. bert_description.tasks lists in words what there is. */
const bert_head *bert_find_head(const bert_model *model, bert_head_kind kind);

/* The logits of a pass. BERT_HEAD_CLASSIFY: [width], of the whole text; `which` is
** ignored. The others: [count, width], of the tokens which[count], numbers among
** those that went through the model; NULL which stands for the first `count`.
** Errors: BERT_ARGUMENT (no such head; a token that is not there), BERT_NOMEM,
** BERT_NUMERIC (logits that are not finite numbers). */
bert_status bert_pass_logits(const bert_pass *pass, bert_head_kind kind, const size_t *which,
                             size_t count, float *logits, bert_error *error);

/* Turns logits[width] into scores[width], which may be the same. */
void bert_scores(bert_score score, const float *logits, size_t width, float *scores);

/* The id of the model's mask token, which stands where BERT_HEAD_FILL is asked;
** -1 when its tokenizer has none. */
int32_t bert_mask_token(const bert_model *model);

/* ---- Attention, seen as a whole ----------------------------------------- */

/* What the rows and columns of attention matrices stand for: tokens, or words
** made of them, with or without special tokens. Units are in the order of the
** tokens; each is a run of them. */
typedef struct bert_unit {
  size_t first, last;  /* tokens [first, last) of those used */
  size_t start, stop;  /* bytes of the text of its segment; 0, 0 if special */
  int8_t segment;      /* 0 or 1; -1 if special */
  uint8_t special;     /* 1: added by the post-processor */
  uint8_t separator;   /* 1: a separator such as [SEP] or </s> */
  uint8_t punctuation; /* 1: nothing but punctuation */
} bert_unit;

typedef struct bert_view {
  size_t tokens;    /* that went through the model */
  size_t count;     /* of units */
  bert_unit *units; /* [count] */
  int renormalize;  /* 1: rows are divided by their sum; only where special
                       tokens were asked to be left out and there are some */
} bert_view;

typedef struct bert_view_options {
  int words;       /* 1: merge the pieces of a word into one unit */
  int no_special;  /* 1: leave out special tokens */
  int renormalize; /* 1: let rows sum to 1 again when some are left out */
} bert_view_options;

/* Makes the view of the used tokens of `tokens`; freed with bert_view_free.
** NULL options: every token is a unit. Errors: BERT_NOMEM. */
bert_status bert_view_make(const bert_model *model, const bert_tokens *tokens,
                           const bert_view_options *options, bert_view **view, bert_error *error);
void bert_view_free(bert_view *view);

/* Puts weights [tokens, tokens] into the view's units, out [count, count]:
** summed over the keys of a unit, averaged over its queries (Clark et al. 2019,
** section 4.1), so that rows that summed to 1 still do where no unit is left
** out. A row with no mass on any unit stays 0, also when renormalized. `out` may
** not overlap `weights`. */
void bert_view_apply(const bert_view *view, const float *weights, float *out);

/* The same for value norms [tokens], out [count]: the mean over a unit's tokens. */
void bert_view_norms(const bert_view *view, const float *norms, float *out);

/* A summary of one head; A is its weights, i the query, j the key, n units. */
typedef struct bert_head_statistics {
  double entropy;         /* 1/n sum_i -sum_j A_ij ln A_ij, in nats (Clark et al. 2019) */
  double entropy_norm;    /* divided by ln n; 0 for one token */
  double diag;            /* 1/n sum_i A_ii */
  double prev, next;      /* 1/(n-1) sum_i A_i,i-1 and A_i,i+1; 0 for one token */
  double first;           /* 1/n sum_i A_i0 */
  double sep, punct;      /* mean mass on separators, on punctuation */
  double mean_distance;   /* sum A_ij |i - j| / sum A_ij (Vig and Belinkov 2019) */
  double signed_distance; /* sum A_ij (j - i) / sum A_ij */
  double max_prob;        /* 1/n sum_i max_j A_ij (Voita et al. 2019) */
  double positional;      /* share of rows whose largest weight is at distance 1;
                             of equal ones the first counts */
  double norm_mean;       /* 1/n^2 sum A_ij |v_j W_O| (Kobayashi et al. 2020); NaN
                             where no norms were given */
  int collapsed;          /* 1: at least 9 rows in 10 put at least 0.9 on one and
                             the same key */
  const char *label;      /* "previous-token", "next-token", "diagonal",
                             "separator", "first-token", "punctuation", "broad",
                             "positional", "focused", "mixed", or "single" for
                             fewer than two units: a heuristic, whose thresholds
                             are in analysis/analysis.h; static text */
} bert_head_statistics;

/* Summarizes weights [count, count] of a view; value_norms is [count] or NULL.
** All numbers are 0 when there are no units. */
void bert_head_summarize(const bert_view *view, const float *weights, const float *value_norms,
                         bert_head_statistics *out);

/* Attention rollout (Abnar and Zuidema 2020): rows of the mean over heads plus
** the identity, divided by their sum, multiplied through layers 0 to `layer`.
** Written to rollout [tokens, tokens]. Errors: as bert_pass_attention_rows,
** BERT_NOMEM. */
bert_status bert_pass_rollout(const bert_pass *pass, int layer, double temperature, float *rollout,
                              bert_error *error);

/* One step of it: the rollout up to `layer` from `before` [tokens, tokens], the
** one up to the layer before; NULL stands for the identity, before layer 0. For
** callers that want every layer. `rollout` may not overlap `before`. */
bert_status bert_pass_rollout_step(const bert_pass *pass, int layer, double temperature,
                                   const float *before, float *rollout, bert_error *error);

/* Self-attention by hand, in double: what a textbook computes. */
typedef struct bert_self_attention_input {
  size_t tokens, width;            /* of x */
  const double *x;                 /* [tokens, width] */
  const double *w_q, *w_k, *w_v;   /* [width, query_width], [width, query_width],
                                      [width, value_width]; NULL: x itself */
  size_t query_width, value_width; /* width where the matrix is NULL */
  double scale;                    /* scores are q k^T times this */
  double temperature;              /* and divided by this before the softmax */
  const uint8_t *mask;             /* [tokens, tokens] or NULL; 0: query i may not
                                      see key j, whose weight is exactly 0 */
} bert_self_attention_input;

/* Fills q and k [tokens, query_width], v [tokens, value_width], scores and
** weights [tokens, tokens] and context [tokens, value_width]; scores are before
** mask and temperature. Outputs hold nothing of use after an error.
** Errors: BERT_ARGUMENT for a row that is wholly masked, widths that do not
** agree, a scale that is not finite or a temperature that is not above 0;
** BERT_NUMERIC where a result leaves the range of double. */
bert_status bert_self_attention(const bert_self_attention_input *in, double *q, double *k,
                                double *v, double *scores, double *weights, double *context,
                                bert_error *error);

/* Sinusoidal positions (Vaswani et al. 2017, section 3.5), out [count, width]:
** sin(p / 10000^(2i/width)) in column 2i, the cosine in column 2i + 1; an odd
** width ends with a sine. */
void bert_positional_encoding(size_t count, size_t width, double *out);

/* Columns that text[size] takes in a terminal: 2 for wide East Asian characters
** and for emoji, however many characters one is made of, 0 for combining marks,
** joiners and what a terminal does not show. */
int bert_text_columns(const char *text, size_t size);

/* ---- Vectors ----------------------------------------------------------- */

/* Of two vectors [n]. Cosine is NaN when either has zero norm. */
double bert_dot(const float *a, const float *b, size_t n);
double bert_cosine(const float *a, const float *b, size_t n);
double bert_l2(const float *a, const float *b, size_t n);

/* ---- The machine ------------------------------------------------------- */

/* The kernel set in use: "scalar", "sse2", "avx2", "avx512", "avx512vnni", "avx512bf16",
** "amx" or "neon", the best the processor has unless the environment variable
** BERTSQL_KERNELS names one. */
const char *bert_kernels(void);

/* What BERTSQL_KERNELS asks for in vain, since this processor has no such set;
** NULL when there is nothing to say. Valid until the environment changes. */
const char *bert_kernels_refused(void);

/* Switches to the kernel set `name`, capitals or not, for calls that start from
** now on, on all threads; NULL for the best. A call that runs meanwhile, and what is asked of
** its pass, stays with the set it began with. Errors: BERT_ARGUMENT, naming those this
** processor has. */
bert_status bert_set_kernels(const char *name, bert_error *error);

/* The BLAS library in use, as it names itself. */
const char *bert_blas(void);

/* Cores this process may run on. */
int bert_cores(void);

#ifdef __cplusplus
}
#endif
#endif
