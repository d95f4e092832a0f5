/*
** weights.c: tensor names to checked pointers into the mapped file.
**
** A tensor is used where it lies when it is float32 and aligned for it, which
** is how almost every checkpoint is written. Anything else is widened once,
** into memory that belongs to the encoder_weights.
*/
#include <stdio.h>
#include <string.h>

#include "forward.h"

enum { NAME_SIZE = 256 };

/* What binding needs to know at every step. */
typedef struct binder {
  encoder_weights *weights;
  const tensor_file *file;
  const char *prefix;
  bert_error *error;
} binder;

/* ---- One tensor -------------------------------------------------------- */

static int shape_is(const tensor *t, uint64_t rows, uint64_t cols) {
  if (cols == 0) return t->rank == 1 && t->shape[0] == rows;
  return t->rank == 2 && t->shape[0] == rows && t->shape[1] == cols;
}

static bert_status wrong_shape(const tensor *t, uint64_t rows, uint64_t cols, bert_error *error) {
  char have[200] = "";
  size_t at = 0;
  for (int i = 0; i < t->rank && at < sizeof have - 24; i++)
    at += (size_t)snprintf(have + at, sizeof have - at, "%s%llu", i ? ", " : "",
                           (unsigned long long)t->shape[i]);
  if (cols == 0)
    return error_set(error, BERT_INVALID,
                     "tensor \"%s\" has shape [%s], but config.json asks for [%llu]", t->name, have,
                     (unsigned long long)rows);
  return error_set(error, BERT_INVALID,
                   "tensor \"%s\" has shape [%s], but config.json asks for [%llu, %llu]", t->name,
                   have, (unsigned long long)rows, (unsigned long long)cols);
}

/* Float64 in the file may be unaligned, hence the copy byte by byte. */
static void narrow_doubles(const void *data, float *out, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    double value;
    memcpy(&value, (const char *)data + 8 * i, 8);
    out[i] = (float)value;
  }
}

/* Half-width values, through a small aligned buffer for the same reason. */
static void widen_halves(const tensor *t, float *out, uint64_t count) {
  uint16_t part[512];
  const kernels *k = kernels_current();
  for (uint64_t i = 0; i < count; i += 512) {
    size_t n = count - i < 512 ? (size_t)(count - i) : 512;
    memcpy(part, (const char *)t->data + 2 * i, 2 * n);
    if (t->type == TENSOR_F16)
      k->from_half(part, out + i, n);
    else
      k->from_bfloat16(part, out + i, n);
  }
}

static bert_status convert(encoder_weights *w, const tensor *t, uint64_t count, const float **out,
                           bert_error *error) {
  float *copy; /* [count] */
  if (!memory_grow((void **)&w->converted, w->converted_count, &w->converted_room,
                   sizeof *w->converted))
    return error_nomem(error, "loading weights");
  copy = memory_alloc(memory_product(count, sizeof(float)));
  if (copy == NULL) return error_nomem(error, "converting weights");
  if (t->type == TENSOR_F64)
    narrow_doubles(t->data, copy, count);
  else if (t->type == TENSOR_F32)
    memcpy(copy, t->data, count * sizeof(float));
  else
    widen_halves(t, copy, count);
  w->converted[w->converted_count++] = copy;
  w->private_bytes += count * sizeof(float);
  *out = copy;
  return BERT_OK;
}

/* Points *out at the floats of `t`, [rows, cols], or [rows] when cols is 0. */
static bert_status use_tensor(encoder_weights *w, const tensor *t, uint64_t rows, uint64_t cols,
                              const float **out, bert_error *error) {
  if (!shape_is(t, rows, cols)) return wrong_shape(t, rows, cols, error);
  if (t->type == TENSOR_F32 && (uintptr_t)t->data % _Alignof(float) == 0) {
    *out = t->data;
    return BERT_OK;
  }
  if (t->type != TENSOR_F32 && t->type != TENSOR_F16 && t->type != TENSOR_BF16 &&
      t->type != TENSOR_F64)
    return error_set(error, BERT_UNSUPPORTED,
                     "tensor \"%s\" holds no floating-point type this library reads "
                     "(F32, F16, BF16, F64)",
                     t->name);
  return convert(w, t, rows * (cols ? cols : 1), out, error);
}

/* ---- Names ------------------------------------------------------------- */

/* Checkpoints made before 2019 say gamma and beta for a norm's weight and bias. */
static const tensor *find_tensor(const binder *b, const char *name, const char *suffix,
                                 const char *old_suffix) {
  char full[NAME_SIZE];
  const tensor *t;
  snprintf(full, sizeof full, "%s%s%s", b->prefix, name, suffix);
  t = tensors_find(b->file, full);
  if (t != NULL || old_suffix == NULL) return t;
  snprintf(full, sizeof full, "%s%s%s", b->prefix, name, old_suffix);
  return tensors_find(b->file, full);
}

static bert_status bind(binder *b, const char *name, const char *suffix, const char *old_suffix,
                        int rows, int cols, const float **out) {
  const tensor *t = find_tensor(b, name, suffix, old_suffix);
  if (t == NULL)
    return error_set(b->error, BERT_INVALID, "the weights lack the tensor \"%s%s%s\"", b->prefix,
                     name, suffix);
  return use_tensor(b->weights, t, (uint64_t)rows, (uint64_t)cols, out, b->error);
}

static bert_status bind_linear(binder *b, const char *name, int in, int out, int has_bias,
                               linear *l) {
  l->in = in;
  l->out = out;
  l->bias = NULL;
  bert_status status = bind(b, name, ".weight", NULL, out, in, &l->weight);
  if (status == BERT_OK && has_bias) status = bind(b, name, ".bias", NULL, out, 0, &l->bias);
  return status;
}

static bert_status bind_norm(binder *b, const char *name, float epsilon, norm *n) {
  int width = b->weights->hidden;
  n->epsilon = epsilon;
  bert_status status = bind(b, name, ".weight", ".gamma", width, 0, &n->gain);
  if (status == BERT_OK) status = bind(b, name, ".bias", ".beta", width, 0, &n->bias);
  return status;
}

/* "encoder.layer.3." and "output.dense" to one name. The result is overwritten
** by the next call with the same buffer. */
static const char *in_layer(char buffer[NAME_SIZE], const family *f, int layer, const char *name) {
  const char *number = strstr(f->layer, "%d");
  size_t before = (size_t)(number - f->layer);
  snprintf(buffer, NAME_SIZE, "%.*s%d%s%s", (int)before, f->layer, layer, number + 2, name);
  return buffer;
}

/* ---- The encoder ------------------------------------------------------- */

static bert_status bind_embeddings(binder *b, const family *f, float epsilon) {
  encoder_weights *w = b->weights;
  bert_status status = bind(b, f->word, ".weight", NULL, w->vocab, w->hidden, &w->word);
  if (status == BERT_OK)
    status = bind(b, f->position, ".weight", NULL, w->positions, w->hidden, &w->position);
  if (status == BERT_OK) status = bind(b, f->type, ".weight", NULL, w->types, w->hidden, &w->type);
  if (status == BERT_OK) status = bind_norm(b, f->embedding_norm, epsilon, &w->embedding_norm);
  return status;
}

static bert_status bind_layer(binder *b, const family *f, int layer, float epsilon) {
  encoder_weights *w = b->weights;
  layer_weights *l = &w->layer[layer];
  const struct {
    const char *name;
    int in, out;
    linear *to;
  } linears[] = {
      {f->query, w->hidden, w->hidden, &l->query},
      {f->key, w->hidden, w->hidden, &l->key},
      {f->value, w->hidden, w->hidden, &l->value},
      {f->attention_output, w->hidden, w->hidden, &l->attention_output},
      {f->up, w->hidden, w->intermediate, &l->up},
      {f->down, w->intermediate, w->hidden, &l->down},
  };
  char name[NAME_SIZE];
  bert_status status = BERT_OK;
  for (size_t i = 0; i < sizeof linears / sizeof linears[0] && status == BERT_OK; i++)
    status = bind_linear(b, in_layer(name, f, layer, linears[i].name), linears[i].in,
                         linears[i].out, 1, linears[i].to);
  if (status == BERT_OK)
    status = bind_norm(b, in_layer(name, f, layer, f->attention_norm), epsilon, &l->attention_norm);
  if (status == BERT_OK)
    status = bind_norm(b, in_layer(name, f, layer, f->output_norm), epsilon, &l->output_norm);
  return status;
}

static bert_status bind_pooler(binder *b, const family *f) {
  encoder_weights *w = b->weights;
  w->has_pooler = f->pooler != NULL && find_tensor(b, f->pooler, ".weight", NULL) != NULL;
  if (!w->has_pooler) return BERT_OK;
  return bind_linear(b, f->pooler, w->hidden, w->hidden, 1, &w->pooler);
}

static void copy_sizes(const model_config *config, encoder_weights *w) {
  w->layers = config->layers;
  w->heads = config->heads;
  w->hidden = config->hidden_size;
  w->head_width = config->hidden_size / config->heads;
  w->intermediate = config->intermediate_size;
  w->vocab = config->vocab_size;
  w->positions = config->positions;
  w->types = config->types;
  w->hidden_activation = config->hidden_activation;
}

/* The prefix under which the word embeddings are found; the first otherwise,
** for the error that follows. */
static const char *find_prefix(binder *b, const family *f) {
  for (int i = 0; f->prefixes[i] != NULL; i++) {
    b->prefix = f->prefixes[i];
    if (find_tensor(b, f->word, ".weight", NULL) != NULL) return b->prefix;
  }
  return f->prefixes[0];
}

bert_status weights_bind(const model_config *config, const tensor_file *file, encoder_weights *w,
                         bert_error *error) {
  const family *f = family_find(config->family);
  binder b = {w, file, "", error};
  memset(w, 0, sizeof *w);
  if (f == NULL)
    return error_set(error, BERT_UNSUPPORTED, "config.json: no such model family: \"%s\"",
                     config->family);
  copy_sizes(config, w);
  w->layer = memory_zero(memory_product((uint64_t)w->layers, sizeof *w->layer));
  if (w->layer == NULL) return error_nomem(error, "loading weights");
  b.prefix = find_prefix(&b, f);
  bert_status status = bind_embeddings(&b, f, config->layer_norm_epsilon);
  for (int i = 0; i < w->layers && status == BERT_OK; i++)
    status = bind_layer(&b, f, i, config->layer_norm_epsilon);
  if (status == BERT_OK) status = bind_pooler(&b, f);
  return status;
}

bert_status weights_bind_linear(encoder_weights *owner, const tensor_file *file, const char *name,
                                int in, int out, int has_bias, linear *l, bert_error *error) {
  binder b = {owner, file, "", error};
  return bind_linear(&b, name, in, out, has_bias, l);
}

void weights_free(encoder_weights *w) {
  for (size_t i = 0; i < w->converted_count; i++) memory_free(w->converted[i]);
  memory_free(w->converted);
  memory_free(w->layer);
  memset(w, 0, sizeof *w);
}
