/*
** config.c: config.json, the sizes and settings of the encoder.
**
** Model families write the same sizes under different keys, so a family is a
** table of keys and of the defaults that transformers 5.24.0 gives them
** (config_families.c); the reading is one for all. What would change the
** computation and is not known here is refused by name: a wrong guess would give
** vectors that look right.
*/
#include <stdio.h>
#include <string.h>

#include "files.h"

static bert_status find_family(const json_value *root, const config_family **out,
                               bert_error *error) {
  const char *name = NULL;
  char names[300];
  bert_status status = json_get_string(root, "model_type", &name, error);
  if (status != BERT_OK) return status;
  if (name == NULL)
    return error_set(error, BERT_INVALID,
                     "\"model_type\" is missing: it names the family, such as "
                     "\"bert\"");
  *out = config_family_find(name);
  if (*out != NULL) return BERT_OK;
  config_family_names(names, sizeof names);
  return error_set(error, BERT_UNSUPPORTED, "\"model_type\" \"%s\" is not supported; there are %s",
                   error_quote(name).text, names);
}

/* The one of a key's names that the file uses; the first when it uses none. */
static const char *used_key(const json_value *root, const char *const keys[KEY_NAMES]) {
  for (int i = 0; i < KEY_NAMES && keys[i] != NULL; i++) {
    const json_value *v = json_get(root, keys[i]);
    if (v != NULL && v->type != JSON_NULL) return keys[i];
  }
  return keys[0];
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

int activation_from_name(const char *name, activation *out) {
  for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
    if (strcmp(name, activations[i].name) != 0) continue;
    *out = activations[i].kind;
    return 1;
  }
  return 0;
}

static bert_status read_activation(const json_value *root, const config_family *f,
                                   model_config *out, bert_error *error) {
  const char *name = f->activation, *key = used_key(root, f->activation_keys);
  bert_status status = json_get_string(root, key, &name, error);
  if (status != BERT_OK) return status;
  if (activation_from_name(name, &out->hidden_activation)) return BERT_OK;
  return error_set(
      error, BERT_UNSUPPORTED,
      "\"%s\" \"%s\" is not supported; there are gelu and its tanh forms, relu, silu, tanh, linear",
      key, error_quote(name).text);
}

/* ---- Sizes ------------------------------------------------------------- */

static bert_status read_sizes(const json_value *root, const config_family *f, model_config *out,
                              bert_error *error) {
  for (const size_entry *s = f->sizes; s->keys[0] != NULL; s++) {
    int64_t value = s->preset;
    bert_status status =
        json_get_int(root, used_key(root, s->keys), s->low, s->high, &value, error);
    if (status != BERT_OK) return status;
    *(int *)(void *)((char *)out + s->offset) = (int)value;
  }
  return BERT_OK;
}

static bert_status check_heads(const model_config *c, bert_error *error) {
  if (c->heads > 0 && c->hidden_size % c->heads == 0) return BERT_OK;
  return error_set(error, BERT_INVALID,
                   "hidden_size %d is not a multiple of num_attention_heads %d", c->hidden_size,
                   c->heads);
}

static bert_status check_pad(const model_config *c, bert_error *error) {
  if (c->pad_token_id < c->vocab_size) return BERT_OK;
  return error_set(error, BERT_INVALID, "\"pad_token_id\" %d is not below the vocabulary size %d",
                   c->pad_token_id, c->vocab_size);
}

static bert_status read_epsilon(const json_value *root, const config_family *f, model_config *out,
                                bert_error *error) {
  double epsilon = f->epsilon;
  bert_status status = BERT_OK;
  if (f->epsilon_keys[0] != NULL)
    status = json_get_number(root, used_key(root, f->epsilon_keys), 1e-30, 1, &epsilon, error);
  if (status == BERT_OK) out->layer_norm_epsilon = (float)epsilon;
  return status;
}

/* ---- Refusals ---------------------------------------------------------- */

bert_status config_flag_is(const json_value *root, const char *key, int wanted, bert_error *error) {
  int set = wanted;
  bert_status status = json_get_bool(root, key, &set, error);
  if (status != BERT_OK || !set == !wanted) return status;
  return error_set(error, BERT_UNSUPPORTED,
                   wanted ? "\"%s\" false is not supported" : "\"%s\" is not supported", key);
}

bert_status config_name_is(const json_value *root, const char *key, const char *wanted,
                           bert_error *error) {
  const char *name = wanted;
  bert_status status = json_get_string(root, key, &name, error);
  if (status != BERT_OK || strcmp(name, wanted) == 0) return status;
  return error_set(error, BERT_UNSUPPORTED, "\"%s\" \"%s\" is not supported; \"%s\" is", key,
                   error_quote(name).text, wanted);
}

bert_status config_empty(const json_value *root, const char *key, bert_error *error) {
  const json_value *v = json_get(root, key);
  if (v == NULL || v->type == JSON_NULL) return BERT_OK;
  if ((v->type == JSON_OBJECT || v->type == JSON_ARRAY) && v->size == 0) return BERT_OK;
  return error_set(error, BERT_UNSUPPORTED, "\"%s\" is not supported", key);
}

/* What no family computes. */
static bert_status refuse_unknown(const json_value *root, bert_error *error) {
  bert_status status = config_flag_is(root, "is_decoder", 0, error);
  if (status == BERT_OK) status = config_flag_is(root, "add_cross_attention", 0, error);
  if (status == BERT_OK) status = config_empty(root, "pruned_heads", error);
  if (status == BERT_OK) status = config_empty(root, "quantization_config", error);
  return status;
}

/* ---- The whole --------------------------------------------------------- */

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

/* What holds for most families, before the family's own settings. */
static void set_common(const config_family *f, model_config *c) {
  snprintf(c->family, sizeof c->family, "%s", f->family);
  c->embedding_size = c->hidden_size;
  c->layer_groups = c->layers;
  c->uncounted_token = -1;
  c->attention_bias = c->up_bias = c->down_bias = c->norm_bias = 1;
}

static bert_status read_config(const json_value *root, model_config *out, bert_error *error) {
  const config_family *f = NULL;
  bert_status status = find_family(root, &f, error);
  if (status != BERT_OK) return status;
  status = refuse_unknown(root, error);
  if (status == BERT_OK) status = read_architecture(root, out, error);
  if (status == BERT_OK) status = read_sizes(root, f, out, error);
  if (status == BERT_OK) status = check_heads(out, error);
  if (status == BERT_OK) status = read_activation(root, f, out, error);
  if (status == BERT_OK) status = read_epsilon(root, f, out, error);
  if (status != BERT_OK) return status;
  set_common(f, out);
  status = f->finish(root, out, error);
  return status == BERT_OK ? check_pad(out, error) : status;
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
