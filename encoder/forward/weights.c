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

void *weights_bytes(encoder_weights *w, uint64_t bytes) {
  if (!memory_grow((void **)&w->blocks, w->block_count, &w->block_room, sizeof *w->blocks))
    return NULL;
  void *block = memory_alloc(bytes);
  if (block == NULL) return NULL;
  w->blocks[w->block_count++] = (weights_memory){block, bytes};
  w->private_bytes += bytes;
  return block;
}

float *weights_block(encoder_weights *w, uint64_t count) {
  return weights_bytes(w, memory_product(count, sizeof(float)));
}

void weights_release(encoder_weights *w, const void *block) {
  size_t i = 0;
  while (i < w->block_count && w->blocks[i].block != block) i++;
  if (i == w->block_count) return;
  memory_free(w->blocks[i].block);
  w->private_bytes -= w->blocks[i].bytes;
  w->blocks[i] = w->blocks[--w->block_count];
}

static bert_status convert(encoder_weights *w, const tensor *t, uint64_t count, const float **out,
                           bert_error *error) {
  float *copy = weights_block(w, count); /* [count] */
  if (copy == NULL) return error_nomem(error, "converting weights");
  if (t->type == TENSOR_F64)
    narrow_doubles(t->data, copy, count);
  else if (t->type == TENSOR_F32)
    memcpy(copy, t->data, count * sizeof(float));
  else
    widen_halves(t, copy, count);
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

/* Linears of one shape that lie one below the other in one tensor. */
static bert_status bind_parts(binder *b, const char *name, int in, int out, int has_bias,
                              linear *const parts[], int count) {
  linear whole = {0};
  bert_status status = bind_linear(b, name, in, count * out, has_bias, &whole);
  for (int i = 0; i < count && status == BERT_OK; i++) {
    size_t first = (size_t)i * (size_t)out;
    parts[i]->weight = whole.weight + first * (size_t)in;
    parts[i]->bias = whole.bias == NULL ? NULL : whole.bias + first;
    parts[i]->in = in;
    parts[i]->out = out;
  }
  return status;
}

static bert_status bind_norm(binder *b, const char *name, int width, float epsilon, int has_bias,
                             norm *n) {
  n->epsilon = epsilon;
  n->bias = NULL;
  bert_status status = bind(b, name, ".weight", ".gamma", width, 0, &n->gain);
  if (status == BERT_OK && has_bias) status = bind(b, name, ".bias", ".beta", width, 0, &n->bias);
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

/* ---- Embeddings -------------------------------------------------------- */

static bert_status bind_positions(binder *b, const family *f, const model_config *c) {
  encoder_weights *w = b->weights;
  if (w->positions == 0) return BERT_OK;
  if (c->sinusoidal && find_tensor(b, f->position, ".weight", NULL) == NULL)
    return sinusoidal_table(w, b->error);
  return bind(b, f->position, ".weight", NULL, w->positions, w->embedding, &w->position);
}

static bert_status bind_embeddings(binder *b, const family *f, const model_config *c) {
  encoder_weights *w = b->weights;
  bert_status status = bind(b, f->word, ".weight", NULL, w->vocab, w->embedding, &w->word);
  if (status == BERT_OK) status = bind_positions(b, f, c);
  if (status == BERT_OK && w->types > 0)
    status = bind(b, f->type, ".weight", NULL, w->types, w->embedding, &w->type);
  if (status == BERT_OK)
    status = bind_norm(b, f->embedding_norm, w->embedding, c->layer_norm_epsilon, c->norm_bias,
                       &w->embedding_norm);
  if (status == BERT_OK && f->projection != NULL &&
      (w->embedding != w->hidden || find_tensor(b, f->projection, ".weight", NULL) != NULL))
    status = bind_linear(b, f->projection, w->embedding, w->hidden, 1, &w->projection);
  return status;
}

/* Positions that act on scores. */
static bert_status make_positions(binder *b, const family *f, const model_config *c) {
  encoder_weights *w = b->weights;
  const float *buckets = NULL; /* [relative_buckets, heads] */
  bert_status status = rotation_make(w, &c->rope, c->positions, &w->rotation, b->error);
  if (status == BERT_OK)
    status = rotation_make(w, &c->local_rope, c->positions, &w->local_rotation, b->error);
  if (status == BERT_OK && c->alibi) status = bias_from_slopes(w, c->positions, b->error);
  if (status != BERT_OK || c->relative_buckets == 0) return status;
  status = bind(b, f->relative_bias, ".weight", NULL, c->relative_buckets, w->heads, &buckets);
  return status == BERT_OK ? bias_from_buckets(w, buckets, c->positions, b->error) : status;
}

/* ---- Layers ------------------------------------------------------------ */

/* What binding a layer needs: its number in the names, which layers may share. */
typedef struct layer_binder {
  binder *b;
  const family *family;
  const model_config *config;
  int number;
  layer_weights *layer;
} layer_binder;

static bert_status layer_linear(const layer_binder *x, const char *name, int in, int out,
                                int has_bias, linear *l) {
  char full[NAME_SIZE];
  return bind_linear(x->b, in_layer(full, x->family, x->number, name), in, out, has_bias, l);
}

/* None where the family has no such name. */
static bert_status layer_norm(const layer_binder *x, const char *name, norm *n) {
  char full[NAME_SIZE];
  if (name == NULL) return BERT_OK;
  return bind_norm(x->b, in_layer(full, x->family, x->number, name), x->b->weights->hidden,
                   x->config->layer_norm_epsilon, x->config->norm_bias, n);
}

static bert_status layer_parts(const layer_binder *x, const char *name, int out, int has_bias,
                               linear *const parts[], int count) {
  char full[NAME_SIZE];
  return bind_parts(x->b, in_layer(full, x->family, x->number, name), x->b->weights->hidden, out,
                    has_bias, parts, count);
}

static bert_status bind_attention(const layer_binder *x) {
  const family *f = x->family;
  layer_weights *l = x->layer;
  linear *const parts[] = {&l->query, &l->key, &l->value};
  int width = x->b->weights->hidden, biased = x->config->attention_bias;
  bert_status status = BERT_OK;
  if (f->query_key_value != NULL) {
    status = layer_parts(x, f->query_key_value, width, biased, parts, 3);
  } else {
    status = layer_linear(x, f->query, width, width, biased, &l->query);
    if (status == BERT_OK) status = layer_linear(x, f->key, width, width, biased, &l->key);
    if (status == BERT_OK) status = layer_linear(x, f->value, width, width, biased, &l->value);
  }
  if (status == BERT_OK)
    status = layer_linear(x, f->attention_output, width, width, biased, &l->attention_output);
  return status;
}

static bert_status bind_feed_forward(const layer_binder *x) {
  const family *f = x->family;
  layer_weights *l = x->layer;
  linear *const parts[] = {f->gate_first ? &l->gate : &l->up, f->gate_first ? &l->up : &l->gate};
  int hidden = x->b->weights->hidden, inner = x->b->weights->intermediate;
  int biased = x->config->up_bias;
  bert_status status = BERT_OK;
  if (f->up_gate != NULL) {
    status = layer_parts(x, f->up_gate, inner, biased, parts, 2);
  } else {
    status = layer_linear(x, f->up, hidden, inner, biased, &l->up);
    if (status == BERT_OK && f->gate != NULL)
      status = layer_linear(x, f->gate, hidden, inner, biased, &l->gate);
  }
  if (status == BERT_OK)
    status = layer_linear(x, f->down, inner, hidden, x->config->down_bias, &l->down);
  return status;
}

static bert_status bind_norms(const layer_binder *x, int bare) {
  const family *f = x->family;
  layer_weights *l = x->layer;
  bert_status status = layer_norm(x, f->query_norm, &l->query_norm);
  if (status == BERT_OK) status = layer_norm(x, f->key_norm, &l->key_norm);
  if (status == BERT_OK && !bare) status = layer_norm(x, f->attention_norm, &l->attention_norm);
  if (status == BERT_OK) status = layer_norm(x, f->second_norm, &l->second_norm);
  return status == BERT_OK ? layer_norm(x, f->output_norm, &l->output_norm) : status;
}

/* The weights under one number, of `bare` layers without the first norm. */
static bert_status bind_numbered(const layer_binder *x, int bare) {
  bert_status status = bind_attention(x);
  if (status == BERT_OK) status = bind_feed_forward(x);
  if (status == BERT_OK) status = bind_norms(x, bare);
  return status == BERT_OK ? layer_pack(x->b->weights, x->layer, x->b->error) : status;
}

/* The number in the names of layer i: layers of one group have the same. */
static int group_of(const model_config *c, int i) {
  return (int)((double)i / ((double)c->layers / (double)c->layer_groups));
}

static bert_status bind_layer(binder *b, const family *f, const model_config *c, int i) {
  encoder_weights *w = b->weights;
  layer_weights *l = &w->layer[i];
  layer_binder x = {b, f, c, group_of(c, i), l};
  bert_status status = BERT_OK;
  if (i > 0 && group_of(c, i - 1) == x.number)
    *l = w->layer[i - 1];
  else
    status = bind_numbered(&x, f->first_norm_bare && i == 0);
  l->rotation = c->local_layer[i] ? w->local_rotation : w->rotation;
  l->reach = c->local_layer[i] ? (size_t)c->window : SIZE_MAX;
  return status;
}

/* ---- The encoder ------------------------------------------------------- */

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
  w->embedding = config->embedding_size;
  w->types = config->type_rows;
  w->positions = config->position_rows;
  w->first_position = config->first_position;
  w->uncounted_token = config->uncounted_token;
  w->hidden_activation = config->hidden_activation;
}

/* Whether the tensors that tell descriptions apart are there under b->prefix. */
static int fits(binder *b, const family *f) {
  char name[NAME_SIZE];
  return find_tensor(b, f->word, ".weight", NULL) != NULL &&
         find_tensor(b, in_layer(name, f, 0, f->attention_output), ".weight", NULL) != NULL &&
         find_tensor(b, in_layer(name, f, 0, f->down), ".weight", NULL) != NULL;
}

/* The first description and prefix under which word embeddings and a layer are
** found; or, for the error that follows, the first with word embeddings, or the
** first of all. */
static const family *find_names(binder *b, const char *name) {
  const family *first = NULL;
  const char *prefix = "";
  int next = 0, with_words = 0;
  for (const family *f = family_next(name, &next); f != NULL; f = family_next(name, &next)) {
    if (first == NULL) first = f;
    for (int i = 0; f->prefixes[i] != NULL; i++) {
      b->prefix = f->prefixes[i];
      if (fits(b, f)) return f;
      if (with_words || find_tensor(b, f->word, ".weight", NULL) == NULL) continue;
      with_words = 1;
      first = f;
      prefix = f->prefixes[i];
    }
  }
  b->prefix = prefix;
  return first;
}

static bert_status bind_encoder(binder *b, const family *f, const model_config *c) {
  encoder_weights *w = b->weights;
  w->pre_norm = f->pre_norm;
  bert_status status = bind_embeddings(b, f, c);
  if (status == BERT_OK) status = make_positions(b, f, c);
  for (int i = 0; i < w->layers && status == BERT_OK; i++) status = bind_layer(b, f, c, i);
  if (status == BERT_OK && f->final_norm != NULL)
    status =
        bind_norm(b, f->final_norm, w->hidden, c->layer_norm_epsilon, c->norm_bias, &w->final_norm);
  return status == BERT_OK ? bind_pooler(b, f) : status;
}

bert_status weights_bind(const model_config *config, const tensor_file *file,
                         packed_precision precision, encoder_weights *w, bert_error *error) {
  binder b = {w, file, "", error};
  memset(w, 0, sizeof *w);
  w->precision = precision;
  w->family = find_names(&b, config->family);
  if (w->family == NULL)
    return error_set(error, BERT_UNSUPPORTED, "config.json: no such model family: \"%s\"",
                     config->family);
  copy_sizes(config, w);
  w->layer = memory_zero(memory_product((uint64_t)w->layers, sizeof *w->layer));
  if (w->layer == NULL) return error_nomem(error, "loading weights");
  return bind_encoder(&b, w->family, config);
}

void weights_free(encoder_weights *w) {
  for (size_t i = 0; i < w->block_count; i++) memory_free(w->blocks[i].block);
  rotation_free(w->rotation);
  rotation_free(w->local_rotation);
  memory_free(w->blocks);
  memory_free(w->layer);
  memset(w, 0, sizeof *w);
}

/* ---- Outside the encoder ------------------------------------------------ */

bert_status weights_bind_linear(encoder_weights *owner, const tensor_file *file, const char *name,
                                int in, int out, int has_bias, linear *l, bert_error *error) {
  binder b = {owner, file, "", error};
  return bind_linear(&b, name, in, out, has_bias, l);
}

bert_status weights_bind_norm(encoder_weights *owner, const tensor_file *file, const char *name,
                              int width, float epsilon, int has_bias, norm *n, bert_error *error) {
  binder b = {owner, file, "", error};
  return bind_norm(&b, name, width, epsilon, has_bias, n);
}

bert_status weights_bind_vector(encoder_weights *owner, const tensor_file *file, const char *name,
                                int size, const float **out, bert_error *error) {
  binder b = {owner, file, "", error};
  return bind(&b, name, "", NULL, size, 0, out);
}
