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
  const char *precision; /* "float32", the default when NULL */
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
bert_status bert_open(const char *source, const bert_open_options *options,
                      bert_model **model, bert_error *error);

/* One more owner of the same model; returns `model`. */
bert_model *bert_retain(bert_model *model);

/* Gives a model back; the last owner unmaps it. NULL is allowed. */
void bert_close(bert_model *model);

/* What a model is. Strings live as long as the model. */
typedef struct bert_description {
  const char *source;    /* the directory it was opened from, absolute */
  const char *family;    /* "bert" */
  const char *tokenizer; /* "wordpiece" */
  const char *pooling;   /* "cls", "mean", "max", "mean_sqrt_len" or "pooler" */
  const char *precision; /* "float32" */
  const char *tasks;     /* comma-separated: "embed" */
  int layers, heads;
  int hidden_size;       /* width of a contextual vector */
  int dim;               /* width of an embedding */
  int vocab_size;
  int max_tokens;        /* the token limit, special tokens included */
  int max_positions;     /* the longest sequence the weights allow */
  int segments;          /* token types; 1 or 2 */
  int normalize;         /* 1: embeddings have unit length */
  int has_pooler;        /* 1: bert_pass_pooler works */
  uint64_t mapped_bytes; /* of weights mapped from files */
  uint64_t private_bytes;/* of weights converted or copied */
} bert_description;

const bert_description *bert_describe(const bert_model *model);

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
} bert_token_options;

/* Tokenizes `text` and, if not NULL, `text_b` as the second of a pair; stores
** the tokens in *tokens, to be freed with bert_tokens_free.
** Errors: BERT_ARGUMENT (max_tokens below the special tokens or above
** max_positions), BERT_NOMEM. */
bert_status bert_tokenize(const bert_model *model, bert_text text,
                          const bert_text *text_b,
                          const bert_token_options *options,
                          bert_tokens **tokens, bert_error *error);
void bert_tokens_free(bert_tokens *tokens);

/* The vocabulary's string of `id` (size 0 and NULL if there is none); lives
** as long as the model, not NUL-terminated. */
bert_text bert_token_string(const bert_model *model, int32_t id);

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
bert_status bert_split(const bert_model *model, bert_text text, int max_tokens,
                       int overlap, bert_chunk **chunks, size_t *count,
                       bert_error *error);
void bert_chunks_free(bert_chunk *chunks);

/* ---- Running the model ------------------------------------------------- */

/* Scratch memory and settings for running one model. */
typedef struct bert_encoder bert_encoder;

/* Makes an encoder that keeps its own reference to `model`. */
bert_status bert_encoder_create(bert_model *model, bert_encoder **encoder,
                                bert_error *error);
void bert_encoder_free(bert_encoder *encoder);

/* At most `threads` threads for each call, 0 for one per core (the default). */
void bert_encoder_set_threads(bert_encoder *encoder, int threads);

/* `interrupted` is asked between layers, always on the calling thread; when
** it returns other than 0 the call ends with BERT_INTERRUPTED. NULL: never. */
void bert_encoder_set_interrupt(bert_encoder *encoder,
                                int (*interrupted)(void *user), void *user);

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
  const char *pooling; /* "cls", "mean", "max", "mean_sqrt_len" or "pooler"
                          instead of the model's own */
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
bert_status bert_embed_dim(const bert_model *model,
                           const bert_embed_options *options, int *dim,
                           bert_error *error);

/* Embeds texts[count] into `embeddings` [count, dim], dim as bert_embed_dim
** gives it; results is [count] or NULL. Texts are grouped by length into ragged
** batches over all threads; an embedding does not depend on its company.
** Errors: BERT_ARGUMENT, BERT_TOO_LONG, BERT_NUMERIC, BERT_INTERRUPTED,
** BERT_CHANGED, BERT_NOMEM; `embeddings` then holds nothing of use. */
bert_status bert_embed(bert_encoder *encoder, const bert_text *texts,
                       size_t count, const bert_embed_options *options,
                       float *embeddings, bert_embed_result *results,
                       bert_error *error);

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
bert_status bert_run(bert_encoder *encoder, const bert_tokens *tokens, int keep,
                     bert_pass **pass, bert_error *error);
void bert_pass_free(bert_pass *pass);

/* How many tokens went through: `tokens` in the shapes below. */
int bert_pass_tokens(const bert_pass *pass);

/* Hidden states [tokens, hidden_size] after `layer` layers: 0 is the embedding
** layer, `layers` the last. NULL where the pass did not keep them. */
const float *bert_pass_hidden(const bert_pass *pass, int layer);

/* Attention weights [tokens (queries), tokens (keys)] of one head, written to
** `weights`: softmax(q k^T / sqrt(head size)), exactly those of the pass.
** Errors: BERT_ARGUMENT (layer, head, or a pass that kept no attention). */
bert_status bert_pass_attention(const bert_pass *pass, int layer, int head,
                                float *weights, bert_error *error);

/* Which vector of the attention of one head. */
typedef enum bert_vector_kind { BERT_QUERY, BERT_KEY, BERT_VALUE } bert_vector_kind;

/* The query, key or value vectors of one head, [tokens, head size], rows
** *stride floats apart. NULL where the pass did not keep them. */
const float *bert_pass_vectors(const bert_pass *pass, bert_vector_kind kind,
                               int layer, int head, size_t *stride);

/* The pooler output [hidden_size]: tanh(W h_cls + b), written to `output`.
** Errors: BERT_ARGUMENT for a model without a pooler. */
bert_status bert_pass_pooler(const bert_pass *pass, float *output,
                             bert_error *error);

/* How many forward passes this process has run, counted by sequence: for
** tests that must know whether work was shared. */
uint64_t bert_passes_run(void);

/* ---- Vectors ----------------------------------------------------------- */

/* Of two vectors [n]. Cosine is NaN when either has zero norm. */
double bert_dot(const float *a, const float *b, size_t n);
double bert_cosine(const float *a, const float *b, size_t n);
double bert_l2(const float *a, const float *b, size_t n);

/* ---- The machine ------------------------------------------------------- */

/* The kernel set in use: "scalar", "avx2", "avx512" or "neon", the best the
** processor has unless the environment variable BERTSQL_KERNELS names one. */
const char *bert_kernels(void);

/* Switches to the kernel set `name` for work that starts from now on; NULL
** for the best. Errors: BERT_ARGUMENT, naming those this processor has. */
bert_status bert_set_kernels(const char *name, bert_error *error);

/* The BLAS library in use, as it names itself. */
const char *bert_blas(void);

/* Cores this process may run on. */
int bert_cores(void);

#ifdef __cplusplus
}
#endif
#endif
