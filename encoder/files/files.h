/*
** files.h: the files of a model directory, read as hostile input. The map of
** this folder:
**
**   mapping.c      a file mapped read-only, or copied; whether it changed
**   safetensors.c  the tensors of model.safetensors, or of its shards
**   config.c       config.json: sizes and settings of the encoder
**   config_families.c  the same: keys, defaults and refusals of each family
**   head_config.c  the same: labels and activations of a head
**   modules.c      sentence-transformers: modules.json, pooling, dense,
**                  normalize
**   sentence.c     the same: prompts, token limit, and all of it together
**   hub.c          hub ids in the local Hugging Face cache
*/
#ifndef BERT_FILES_H
#define BERT_FILES_H

#include "../base/base.h"
#include "../kernels/kernels.h"

/* ---- mapping.c --------------------------------------------------------- */

/* A whole file in memory. data is NULL for an empty file. */
typedef struct mapping {
  const char *data; /* [size] bytes, page-aligned if mapped */
  size_t size;
  int copied; /* 1: private memory, 0: mapped */
  /* what the file was when opened: */
  int descriptor; /* kept open while mapped, else -1 */
  uint64_t device, inode;
  int64_t modified_ns;
} mapping;

/* Maps `path` read-only and shared, or reads it whole when `copy`.
** BERT_IO, naming the path. Refuses what is not a regular file. */
bert_status mapping_open(const char *path, int copy, mapping *out, bert_error *error);
void mapping_close(mapping *m); /* idempotent; a zeroed mapping is closed */

/* Takes what has been read of a mapped file out of this process's memory; it comes back
** at the next touch. For after a reading that is not repeated. */
void mapping_drop_pages(const mapping *m);

/* BERT_CHANGED when a mapped file's size or time differs from when opened. */
bert_status mapping_check(const mapping *m, const char *path, bert_error *error);

/* Reads a whole small file (at most `limit` bytes) into memory, NUL-terminated;
** *text is freed with memory_free. A missing file: BERT_IO, or BERT_OK with
** *text NULL if `optional`. */
bert_status file_read(const char *directory, const char *name, size_t limit, int optional,
                      char **text, size_t *size, bert_error *error);

/* The same, parsed as JSON whose root must be of type `root`. */
bert_status file_read_json(const char *directory, const char *name, int optional, json_type root,
                           json_document **document, bert_error *error);

/* The same with a digest of the file's bytes, for what must be recognized later;
** all 0 when there is no file. */
bert_status file_read_json_digest(const char *directory, const char *name, int optional,
                                  json_type root, json_document **document,
                                  unsigned char digest[DIGEST_BYTES], bert_error *error);

/* directory/name, to be freed with memory_free; NULL when out of memory. */
char *path_join(const char *directory, const char *name);
int path_exists(const char *directory, const char *name);

/* ---- safetensors.c ----------------------------------------------------- */

typedef enum tensor_type {
  TENSOR_F64,
  TENSOR_F32,
  TENSOR_F16,
  TENSOR_BF16,
  TENSOR_I64,
  TENSOR_I32,
  TENSOR_I16,
  TENSOR_I8,
  TENSOR_U8,
  TENSOR_BOOL,
  TENSOR_OTHER
} tensor_type;

enum { TENSOR_MAX_RANK = 8 };

typedef struct tensor {
  const char *name;
  tensor_type type;
  int rank;
  uint64_t shape[TENSOR_MAX_RANK];
  const void *data; /* in the mapping, [size] bytes, may be unaligned */
  uint64_t size;
} tensor;

typedef struct tensor_file tensor_file;

/* Opens directory/name, a .safetensors file; or, if that is missing and
** directory/name.index.json exists, the shards that the index lists. Every
** rule of the format is checked: header length against file size, header
** JSON without duplicate keys, ranges in order without hole or overlap and
** ending at the end of the file, shape times type against range, unknown
** types, a tensor named in two shards, index entries against the shards'
** headers. */
bert_status tensors_open(const char *directory, const char *name, int copy, tensor_file **out,
                         bert_error *error);
void tensors_close(tensor_file *f); /* NULL is allowed */
bert_status tensors_check(const tensor_file *f, bert_error *error);

/* mapping_drop_pages of all its files. */
void tensors_drop_pages(const tensor_file *f);

/* The files themselves, in the order in which the index names them: bytes of file
** i < tensors_file_count, headers included. They live as long as `f`. */
size_t tensors_file_count(const tensor_file *f);
bert_text tensors_file_bytes(const tensor_file *f, size_t i);

/* The tensor `name`, or NULL. Lives as long as the file. */
const tensor *tensors_find(const tensor_file *f, const char *name);
size_t tensors_count(const tensor_file *f);
const tensor *tensors_at(const tensor_file *f, size_t i);
uint64_t tensors_mapped_bytes(const tensor_file *f); /* 0 when copied */
uint64_t tensors_private_bytes(const tensor_file *f);

/* ---- config.c, config_families.c ---------------------------------------- */

enum { CONFIG_MAX_LAYERS = 1000 };

/* How rotary positions go on beyond the length a model was trained with. */
typedef enum rope_scaling {
  ROPE_PLAIN,
  ROPE_NTK,    /* theta and all frequencies scaled once and for all */
  ROPE_DYNAMIC /* theta grows with the length of sequences above `trained` */
} rope_scaling;

/* Rotary positions; theta 0: none. */
typedef struct rope_config {
  double theta;
  rope_scaling scaling;
  double factor; /* of the scaling */
  int trained;   /* of ROPE_DYNAMIC: tokens of the longest sequence it leaves alone */
} rope_config;

/* The encoder that config.json describes. */
typedef struct model_config {
  char family[32];       /* which description of forward/family.c applies */
  char architecture[64]; /* architectures[0], or "" */
  int layers, heads, hidden_size, intermediate_size, vocab_size;
  int embedding_size; /* width of the embedding tables; mostly hidden_size */
  int layer_groups;   /* layers that have weights of their own; mostly `layers` */
  int pad_token_id;
  int positions; /* the longest sequence there are positions for */
  int types;     /* token types a caller may give; at least 1 */
  int type_rows; /* of their table; 0: the model has none */
  /* Positions, as far as they are looked up in a table: */
  int position_rows;      /* max_position_embeddings; 0: there is no such table */
  int first_position;     /* row of a sequence's first token */
  int uncounted_token;    /* a token id that takes no position, as padding in RoBERTa; -1 */
  int sinusoidal;         /* 1: the table is a formula, and may be missing from the file */
  int relative_buckets;   /* rows of a table of score biases by distance; 0: none */
  int alibi;              /* 1: scores fall linearly with the distance */
  rope_config rope;       /* of layers that see all keys, */
  rope_config local_rope; /* and of those that see the nearest */
  uint8_t local_layer[CONFIG_MAX_LAYERS];            /* 1: a layer that sees the nearest */
  int window;                                        /* how far these see to each side */
  int attention_bias, up_bias, down_bias, norm_bias; /* 1: there is one */
  activation hidden_activation;
  float layer_norm_epsilon;
} model_config;

/* Reads config.json. Absent keys take the defaults of transformers' configuration
** class. BERT_UNSUPPORTED, by name, for an unknown model_type or activation and for
** every setting that changes the result and is not computed here; BERT_INVALID for
** numbers out of range or at odds with each other. */
bert_status config_read(const char *directory, model_config *out, bert_error *error);

/* What follows is for these two files alone. */

/* Some keys have had several names; the first that is there counts. */
enum { KEY_NAMES = 2 };

/* One integer of model_config: where it is, its keys, range and default. */
typedef struct size_entry {
  size_t offset;
  const char *keys[KEY_NAMES];
  int64_t low, high, preset;
} size_entry;

/* The config.json of one family. */
typedef struct config_family {
  const char *model_type;
  const char *family; /* that of model_config */
  const char *activation_keys[KEY_NAMES], *activation;
  const char *epsilon_keys[KEY_NAMES]; /* none: always the default */
  double epsilon;
  size_entry sizes[10]; /* ends with a NULL key */
  /* Reads what only this family has; sizes, activation and epsilon are there. */
  bert_status (*finish)(const json_value *root, model_config *out, bert_error *error);
} config_family;

/* The family of a model_type, or NULL, */
const config_family *config_family_find(const char *model_type);
/* and all model types, for an error. */
void config_family_names(char *out, size_t room);

/* The activation of that name; 0 when it is not computed here. */
int activation_from_name(const char *name, activation *out);
/* BERT_UNSUPPORTED for a flag other than `wanted`. */
bert_status config_flag_is(const json_value *root, const char *key, int wanted, bert_error *error);
/* BERT_UNSUPPORTED for a name other than `wanted`. */
bert_status config_name_is(const json_value *root, const char *key, const char *wanted,
                           bert_error *error);
/* BERT_UNSUPPORTED unless the value is absent, null or empty. */
bert_status config_empty(const json_value *root, const char *key, bert_error *error);

/* ---- head_config.c ----------------------------------------------------- */

/* What config.json says of the head of a checkpoint. */
typedef struct head_config {
  char **labels; /* [label_count], id2label */
  int label_count;
  bert_problem problem;
  activation dense_activation; /* classifier_activation, of ModernBERT */
  int mean;                    /* classifier_pooling is "mean", of ModernBERT */
  int dense_bias, fill_bias;   /* 1: ModernBERT's layer before a head, its decoder have one */
  int rerank_given;            /* 1: the file names the activation of a cross-encoder, */
  bert_score rerank;           /* this one */
} head_config;

/* Reads it; labels are LABEL_0, LABEL_1, … where the file has none. BERT_INVALID
** for numbers that do not run from 0 without a gap, labels that are no strings;
** BERT_UNSUPPORTED for an unknown problem_type or activation. *out is to be freed
** with head_config_free, also after a failure. */
bert_status head_config_read(const char *directory, head_config *out, bert_error *error);

/* The activation of a cross-encoder from the class of torch at `key`; leaves both as
** they are when there is none. BERT_UNSUPPORTED for others than Identity and Sigmoid. */
bert_status read_cross_activation(const json_value *object, const char *key, int *given,
                                  bert_score *out, bert_error *error);
void head_config_free(head_config *c);

/* ---- modules.c --------------------------------------------------------- */

typedef enum pooling {
  POOLING_CLS,
  POOLING_MEAN,
  POOLING_MAX,
  POOLING_MEAN_SQRT_LEN,
  POOLING_WEIGHTED_MEAN,
  POOLING_LAST_TOKEN,
  POOLING_POOLER
} pooling;
enum { POOLING_LIMIT = 6 }; /* modes at once: each of sentence-transformers' own */

/* "cls", "mean", … and back, capitals or not; -1 for an unknown name. */
const char *pooling_name(pooling kind);
int pooling_from_name(const char *name);

/* A step after pooling, in the order of modules.json. */
typedef enum module_type { MODULE_DENSE, MODULE_LAYER_NORM, MODULE_NORMALIZE } module_type;
typedef struct module {
  module_type type;
  /* of a Dense or LayerNorm: */
  char *directory; /* where its model.safetensors is */
  int in, out;
  /* of a Dense: */
  int has_bias;
  activation activation;
} module;

typedef struct prompt {
  char *name, *text;
} prompt;

/* What sentence-transformers would do with the directory. */
typedef struct sentence_config {
  int present;      /* 0: no modules.json; mean pooling, no more */
  int cross;        /* 1: saved as a CrossEncoder, which has no pooling either */
  int rerank_given; /* 1: its file names the activation of predict, this one */
  bert_score rerank;
  char *transformer_path;          /* subdirectory of the Transformer module, "" mostly */
  pooling poolings[POOLING_LIMIT]; /* concatenated, in sentence-transformers' order */
  int pooling_count;
  int pooling_width;  /* word_embedding_dimension; 0: not given */
  int include_prompt; /* 0: tokens of the prompt are left out of pooling */
  module *modules;    /* [module_count] */
  int module_count;
  prompt *prompts; /* [prompt_count] */
  int prompt_count;
  int default_prompt;  /* index, or -1 */
  int lowercase;       /* do_lower_case */
  int max_tokens;      /* the token limit the files give; 0: none does */
  char similarity[16]; /* similarity_fn_name: "cosine", "dot", "euclidean", "manhattan" */
} sentence_config;

/* Reads modules.json and what it names. Unknown modules and activations:
** BERT_UNSUPPORTED, named. Widths that do not fit one another: BERT_INVALID.
** *out is to be freed with sentence_config_free, also after a failure. */
bert_status sentence_config_read(const char *directory, sentence_config *out, bert_error *error);
void sentence_config_free(sentence_config *c);

/* modules.json alone, into *c, which is zeroed but for `cross`; `present` stays 0
** without the file. */
bert_status modules_read(const char *directory, sentence_config *c, bert_error *error);

/* ---- hub.c ------------------------------------------------------------- */

/* The absolute directory (links resolved) of `source`: a directory as it is, or
** a hub id looked up in the local cache (refs/main, then snapshots). Freed with
** memory_free. BERT_IO: what was looked for and where. */
bert_status hub_resolve(const char *source, char **directory, bert_error *error);

#endif
