/*
** config.c: config.json, the sizes and settings of the encoder.
**
** Model families write the same sizes under different keys, so a family is a
** table of keys and of the defaults that transformers 5.24.0 gives them; the
** reading is one for all. What would change the computation and is not known
** here is refused by name: a wrong guess would give vectors that look right.
*/
#include <stdio.h>
#include <string.h>

#include "files.h"

/* ---- Families ---------------------------------------------------------- */

/* One integer of model_config: where it is, its key, default and range. */
typedef struct size_entry {
  size_t offset;
  const char *key;
  int64_t low, high, preset;
} size_entry;

#define SIZE(field, key, low, high, preset)                                                        \
  { offsetof(model_config, field), key, low, high, preset }

typedef struct family {
  const char *name; /* model_type */
  const char *activation_key, *activation;
  const char *epsilon_key;
  double epsilon;
  size_entry sizes[9]; /* ends with a NULL key */
} family;

/* transformers/models/bert/configuration_bert.py. The ranges are far beyond any
** model and keep products of sizes within 64 bits. */
static const family families[] = {
    {"bert",
     "hidden_act",
     "gelu",
     "layer_norm_eps",
     1e-12,
     {SIZE(layers, "num_hidden_layers", 1, 1000, 12),
      SIZE(heads, "num_attention_heads", 1, 1024, 12),
      SIZE(hidden_size, "hidden_size", 1, 65536, 768),
      SIZE(intermediate_size, "intermediate_size", 1, 262144, 3072),
      SIZE(vocab_size, "vocab_size", 1, 10000000, 30522),
      SIZE(positions, "max_position_embeddings", 1, 1000000, 512),
      SIZE(types, "type_vocab_size", 1, 1000, 2),
      SIZE(pad_token_id, "pad_token_id", -1, 10000000, 0)}},
};

static bert_status find_family(const json_value *root, const family **out, bert_error *error) {
  const char *name = NULL;
  bert_status status = json_get_string(root, "model_type", &name, error);
  if (status != BERT_OK) return status;
  if (name == NULL)
    return error_set(error, BERT_INVALID,
                     "\"model_type\" is missing: it names the family, such as "
                     "\"bert\"");
  for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
    *out = &families[i];
    if (strcmp(name, families[i].name) == 0) return BERT_OK;
  }
  return error_set(error, BERT_UNSUPPORTED, "\"model_type\" \"%s\" is not supported; \"bert\" is",
                   error_quote(name).text);
}

/* ---- Activations ------------------------------------------------------- */

typedef struct activation_entry {
  const char *name;
  activation kind;
} activation_entry;

/* Names of transformers' ACT2FN that compute one of our activations exactly,
** rounding aside. */
static const activation_entry activations[] = {
    {"gelu", ACTIVATION_GELU},
    {"gelu_python", ACTIVATION_GELU},
    {"gelu_new", ACTIVATION_GELU_TANH},
    {"gelu_fast", ACTIVATION_GELU_TANH},
    {"gelu_accurate", ACTIVATION_GELU_TANH},
    {"gelu_pytorch_tanh", ACTIVATION_GELU_TANH},
    {"gelu_python_tanh", ACTIVATION_GELU_TANH},
    {"relu", ACTIVATION_RELU},
    {"silu", ACTIVATION_SILU},
    {"swish", ACTIVATION_SILU},
    {"tanh", ACTIVATION_TANH},
    {"linear", ACTIVATION_IDENTITY},
};

static bert_status read_activation(const json_value *root, const family *f, activation *out,
                                   bert_error *error) {
  const char *name = f->activation;
  bert_status status = json_get_string(root, f->activation_key, &name, error);
  if (status != BERT_OK) return status;
  for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
    if (strcmp(name, activations[i].name) != 0) continue;
    *out = activations[i].kind;
    return BERT_OK;
  }
  return error_set(error, BERT_UNSUPPORTED, "\"%s\" \"%s\" is not supported", f->activation_key,
                   error_quote(name).text);
}

/* ---- Sizes and refusals ------------------------------------------------ */

static bert_status read_sizes(const json_value *root, const family *f, model_config *out,
                              bert_error *error) {
  for (const size_entry *s = f->sizes; s->key != NULL; s++) {
    int64_t value = s->preset;
    bert_status status = json_get_int(root, s->key, s->low, s->high, &value, error);
    if (status != BERT_OK) return status;
    *(int *)(void *)((char *)out + s->offset) = (int)value;
  }
  if (out->hidden_size % out->heads != 0)
    return error_set(error, BERT_INVALID,
                     "hidden_size %d is not a multiple of num_attention_heads %d", out->hidden_size,
                     out->heads);
  if (out->pad_token_id >= out->vocab_size)
    return error_set(error, BERT_INVALID, "\"pad_token_id\" %d is not below the vocabulary size %d",
                     out->pad_token_id, out->vocab_size);
  return BERT_OK;
}

static bert_status read_epsilon(const json_value *root, const family *f, model_config *out,
                                bert_error *error) {
  double epsilon = f->epsilon;
  bert_status status = json_get_number(root, f->epsilon_key, 1e-30, 1, &epsilon, error);
  if (status == BERT_OK) out->layer_norm_epsilon = (float)epsilon;
  return status;
}

/* A flag that must not be set. */
static bert_status refuse_flag(const json_value *root, const char *key, bert_error *error) {
  int set = 0;
  bert_status status = json_get_bool(root, key, &set, error);
  if (status != BERT_OK || !set) return status;
  return error_set(error, BERT_UNSUPPORTED, "\"%s\" is not supported", key);
}

/* A value that must be absent, null or empty. */
static bert_status refuse_content(const json_value *root, const char *key, bert_error *error) {
  const json_value *v = json_get(root, key);
  if (v == NULL || v->type == JSON_NULL) return BERT_OK;
  if ((v->type == JSON_OBJECT || v->type == JSON_ARRAY) && v->size == 0) return BERT_OK;
  return error_set(error, BERT_UNSUPPORTED, "\"%s\" is not supported", key);
}

static bert_status refuse_unknown(const json_value *root, bert_error *error) {
  const char *position = "absolute";
  bert_status status = json_get_string(root, "position_embedding_type", &position, error);
  if (status == BERT_OK && strcmp(position, "absolute") != 0)
    status = error_set(error, BERT_UNSUPPORTED,
                       "\"position_embedding_type\" \"%s\" is not supported; \"absolute\" is",
                       error_quote(position).text);
  if (status == BERT_OK) status = refuse_flag(root, "is_decoder", error);
  if (status == BERT_OK) status = refuse_flag(root, "add_cross_attention", error);
  if (status == BERT_OK) status = refuse_content(root, "pruned_heads", error);
  if (status == BERT_OK) status = refuse_content(root, "quantization_config", error);
  return status;
}

static bert_status read_architecture(const json_value *root, model_config *out, bert_error *error) {
  const json_value *list = json_get(root, "architectures");
  if (list == NULL || list->type == JSON_NULL) return BERT_OK;
  if (list->type != JSON_ARRAY || (list->first != NULL && list->first->type != JSON_STRING))
    return error_set(error, BERT_INVALID, "\"architectures\" must be an array of names");
  if (list->first == NULL) return BERT_OK;
  if (list->first->size >= sizeof out->architecture)
    return error_set(error, BERT_INVALID, "the name in \"architectures\" is too long");
  memcpy(out->architecture, list->first->string, list->first->size + 1);
  return BERT_OK;
}

static bert_status read_config(const json_value *root, model_config *out, bert_error *error) {
  const family *f = NULL;
  bert_status status = find_family(root, &f, error);
  if (status != BERT_OK) return status;
  snprintf(out->family, sizeof out->family, "%s", f->name);
  status = refuse_unknown(root, error);
  if (status == BERT_OK) status = read_architecture(root, out, error);
  if (status == BERT_OK) status = read_sizes(root, f, out, error);
  if (status == BERT_OK) status = read_activation(root, f, &out->hidden_activation, error);
  if (status == BERT_OK) status = read_epsilon(root, f, out, error);
  return status;
}

bert_status config_read(const char *directory, model_config *out, bert_error *error) {
  json_document *document = NULL;
  bert_status status = file_read_json(directory, "config.json", 1, JSON_OBJECT, &document, error);
  if (status != BERT_OK) return status;
  if (document == NULL)
    return error_set(error, BERT_IO,
                     "%s is no model directory: it has no config.json; a model is a directory with "
                     "config.json, model.safetensors and tokenizer.json or vocab.txt",
                     directory);
  model_config c = {0};
  status = read_config(json_root(document), &c, error);
  json_free(document);
  if (status == BERT_OK)
    *out = c;
  else
    error_prefix(error, "%s/config.json", directory);
  return status;
}
