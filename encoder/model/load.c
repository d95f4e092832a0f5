/*
** load.c: the files of one directory to a bert_model.
**
** Everything that can be wrong with a model is found here, before any text:
** a model that opens, runs. (Numbers that turn out not to be finite are the
** one exception: reading every weight to look for them would touch the whole
** mapping.)
*/
#include <string.h>

#include "model.h"

static bert_status load_config(bert_model *m, bert_error *error) {
  bert_status status = sentence_config_read(m->directory, &m->sentence, error);
  if (status != BERT_OK) return status;
  m->transformer_directory = path_join(m->directory, m->sentence.transformer_path);
  if (m->transformer_directory == NULL) return error_nomem(error, "opening a model");
  /* Before the files are read: what is replaced meanwhile, while weights are packed above
  ** all, must not pass for what this model was made of. */
  m->stamp = model_stamp(m);
  status = config_read(m->transformer_directory, &m->config, error);
  return status == BERT_OK ? head_config_read(m->transformer_directory, &m->head_config, error)
                           : status;
}

/* Pickled weights are code that Python runs; there is no reading them safely here. */
static bert_status refuse_pickle(const bert_model *m, bert_error *error) {
  const char *place = m->transformer_directory;
  if (path_exists(place, "model.safetensors") ||
      path_exists(place, "model.safetensors.index.json") ||
      (!path_exists(place, "pytorch_model.bin") &&
       !path_exists(place, "pytorch_model.bin.index.json")))
    return BERT_OK;
  return error_set(error, BERT_UNSUPPORTED,
                   "%s has its weights in pytorch_model.bin only; there must be a "
                   "model.safetensors (save_pretrained of transformers writes one)",
                   place);
}

static bert_status load_weights(bert_model *m, bert_error *error) {
  bert_status status = refuse_pickle(m, error);
  if (status != BERT_OK) return status;
  status = tensors_open(m->transformer_directory, "model.safetensors", m->copied, &m->file, error);
  if (status != BERT_OK) return status;
  status = weights_bind(&m->config, m->file, m->precision, &m->weights, error);
  if (status == BERT_OK)
    status = heads_bind(&m->config, &m->head_config, m->file, &m->weights, error);
  /* What was packed is not read again. */
  if (m->precision != PRECISION_FLOAT32) tensors_drop_pages(m->file);
  if (status != BERT_OK) error_prefix(error, "%s/model.safetensors", m->transformer_directory);
  return status;
}

/* torch.nn.LayerNorm's own epsilon, which the module does not change. */
static const float MODULE_EPSILON = 1e-5F;

static bert_status load_module(bert_model *m, const module *from, dense *d, bert_error *error) {
  bert_status status =
      tensors_open(from->directory, "model.safetensors", m->copied, &d->file, error);
  if (status != BERT_OK) return status;
  d->activation = from->activation;
  if (from->type == MODULE_DENSE && !from->has_bias && tensors_find(d->file, "linear.bias") != NULL)
    status = error_set(error, BERT_INVALID,
                       "there is a tensor \"linear.bias\", but \"bias\" in config.json is false");
  else if (from->type == MODULE_DENSE)
    status = weights_bind_linear(&m->weights, d->file, "linear", from->in, from->out,
                                 from->has_bias, &d->map, error);
  else
    status = weights_bind_norm(&m->weights, d->file, "norm", from->in, MODULE_EPSILON, 1, &d->norm,
                               error);
  if (status != BERT_OK) error_prefix(error, "%s/model.safetensors", from->directory);
  return status;
}

/* Each module must take what the one before gives. */
static bert_status load_modules(bert_model *m, bert_error *error) {
  const sentence_config *s = &m->sentence;
  int width = s->pooling_count * m->config.hidden_size;
  if (s->pooling_width != 0 && s->pooling_width != m->config.hidden_size)
    return error_set(error, BERT_INVALID,
                     "%s: word_embedding_dimension of the pooling is %d, but hidden_size is %d",
                     m->directory, s->pooling_width, m->config.hidden_size);
  m->dense = memory_zero(memory_product((uint64_t)s->module_count, sizeof *m->dense));
  if (m->dense == NULL) return error_nomem(error, "opening a model");
  for (int i = 0; i < s->module_count; i++) {
    const module *from = &s->modules[i];
    if (from->type == MODULE_NORMALIZE) continue;
    if (from->in != width)
      return error_set(error, BERT_INVALID, "%s: %s is %d, but what comes before is %d wide",
                       from->directory, from->type == MODULE_DENSE ? "in_features" : "dimension",
                       from->in, width);
    bert_status status = load_module(m, from, &m->dense[i], error);
    if (status != BERT_OK) return status;
    width = from->out;
  }
  m->description.dim = width;
  return BERT_OK;
}

static bert_status load_tokenizer(bert_model *m, bert_error *error) {
  bert_status status =
      tokenizer_open(m->transformer_directory, m->sentence.lowercase, &m->tokenizer, error);
  if (status != BERT_OK) return status;
  if (tokenizer_vocab_size(m->tokenizer) > m->config.vocab_size)
    return error_set(error, BERT_INVALID,
                     "%s: the tokenizer has ids up to %d, but the embedding table has only %d "
                     "rows (vocab_size)",
                     m->transformer_directory, tokenizer_vocab_size(m->tokenizer) - 1,
                     m->config.vocab_size);
  return BERT_OK;
}

static bert_status limit_tokens(bert_model *m, bert_error *error) {
  bert_description *d = &m->description;
  int given = m->sentence.max_tokens;
  d->max_positions = m->config.positions;
  d->max_tokens = given > 0 && given < d->max_positions ? given : d->max_positions;
  if (d->max_tokens < tokenizer_special_count(m->tokenizer, 0))
    return error_set(error, BERT_INVALID,
                     "%s: the token limit is %d, less than the special tokens alone", m->directory,
                     d->max_tokens);
  return BERT_OK;
}

/* Whether the last module is Normalize: what `normalize` shows and switches. */
static int ends_normalized(const sentence_config *s) {
  return s->module_count > 0 && s->modules[s->module_count - 1].type == MODULE_NORMALIZE;
}

static void add_files(bert_model *m) {
  bert_description *d = &m->description;
  d->mapped_bytes = tensors_mapped_bytes(m->file);
  d->private_bytes = tensors_private_bytes(m->file) + m->weights.private_bytes;
  for (int i = 0; i < m->sentence.module_count; i++) {
    if (m->dense[i].file == NULL) continue;
    d->mapped_bytes += tensors_mapped_bytes(m->dense[i].file);
    d->private_bytes += tensors_private_bytes(m->dense[i].file);
  }
}

static void describe(bert_model *m) {
  bert_description *d = &m->description;
  d->source = m->directory;
  d->family = m->config.family;
  d->tokenizer = tokenizer_kind(m->tokenizer);
  d->pooling = pooling_name(m->sentence.poolings[0]);
  d->precision = precision_name(m->precision);
  d->similarity = m->sentence.similarity;
  d->layers = m->config.layers;
  d->heads = m->config.heads;
  d->hidden_size = m->config.hidden_size;
  d->vocab_size = m->config.vocab_size;
  d->segments = m->config.types;
  d->normalize = ends_normalized(&m->sentence);
  d->has_pooler = m->weights.has_pooler;
  add_files(m);
}

static bert_status load_all(bert_model *m, bert_error *error) {
  bert_status status = load_config(m, error);
  if (status == BERT_OK) status = load_weights(m, error);
  if (status == BERT_OK) status = load_modules(m, error);
  if (status == BERT_OK) status = load_tokenizer(m, error);
  if (status == BERT_OK) status = limit_tokens(m, error);
  if (status != BERT_OK) return status;
  describe(m);
  return heads_describe(m, error);
}

bert_status model_load(char *directory, int copy, packed_precision precision, bert_model **out,
                       bert_error *error) {
  bert_model *m = memory_zero(sizeof *m);
  if (m == NULL) {
    memory_free(directory);
    return error_nomem(error, "opening a model");
  }
  m->directory = directory;
  m->copied = copy;
  m->precision = precision;
  bert_status status = load_all(m, error);
  if (status != BERT_OK) {
    model_free(m);
    return status;
  }
  *out = m;
  return BERT_OK;
}

/* From so many bytes on, what a model had to itself must not stay with the process. */
enum { GIVE_BACK_FROM = 1 << 20 };

void model_free(bert_model *m) {
  if (m == NULL) return;
  int large = m->description.private_bytes >= GIVE_BACK_FROM;
  for (int i = 0; i < m->sentence.module_count && m->dense != NULL; i++)
    tensors_close(m->dense[i].file);
  memory_free(m->dense);
  tokenizer_close(m->tokenizer);
  weights_free(&m->weights);
  tensors_close(m->file);
  sentence_config_free(&m->sentence);
  head_config_free(&m->head_config);
  memory_free(m->transformer_directory);
  memory_free(m->directory);
  memory_free(m);
  if (large) memory_give_back();
}
