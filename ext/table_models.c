/*
** table_models.c: bert_models, the models that are open on this connection.
**
** It lists what is open and opens nothing itself: the default model has its
** row after its first use. The rows are taken when the scan starts, so that
** loading and unloading meanwhile does no harm.
*/
#include "ext.h"

enum {
  MODEL_NAME,
  MODEL_SOURCE,
  MODEL_FAMILY,
  MODEL_TOKENIZER,
  MODEL_LAYERS,
  MODEL_HEADS,
  MODEL_DIM,
  MODEL_VOCAB,
  MODEL_MAX_TOKENS,
  MODEL_POOLING,
  MODEL_NORMALIZE,
  MODEL_PRECISION,
  MODEL_TASKS,
  MODEL_MAPPED_BYTES,
  MODEL_PRIVATE_BYTES,
  MODEL_IS_DEFAULT
};

typedef struct models_cursor {
  loaded_model **models; /* [count], each held */
  size_t count, row;
} models_cursor;

static void models_clear(void *cursor) {
  models_cursor *m = cursor;
  for (size_t i = 0; i < m->count; i++) loaded_model_drop(m->models[i]);
  sqlite3_free(m->models);
  m->models = NULL;
  m->count = m->row = 0;
}

static bert_status models_start(void *cursor, const table_call *call, bert_error *error) {
  models_cursor *m = cursor;
  loaded_model *first = registry_first(call->connection);
  size_t count = 0;
  for (loaded_model *l = first; l != NULL; l = l->next) count++;
  m->models = sqlite3_malloc64(sizeof(*m->models) * (count + 1));
  if (m->models == NULL) return error_nomem(error, "listing the models");
  for (loaded_model *l = first; l != NULL; l = l->next) {
    loaded_model_hold(l);
    m->models[m->count++] = l;
  }
  return BERT_OK;
}

static bert_status models_next(void *cursor, bert_error *error) {
  (void)error;
  ((models_cursor *)cursor)->row++;
  return BERT_OK;
}

static int models_at_end(const void *cursor) {
  const models_cursor *m = cursor;
  return m->row >= m->count;
}

static void result_string(sqlite3_context *context, const char *text) {
  sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

static bert_status models_column(void *cursor, sqlite3_context *context, int column,
                                 bert_error *error) {
  const models_cursor *m = cursor;
  const loaded_model *l = m->models[m->row];
  const bert_description *d = bert_describe(l->model);
  (void)error;
  switch (column) {
  case MODEL_NAME: result_string(context, l->name); break;
  case MODEL_SOURCE: result_string(context, l->source); break;
  case MODEL_FAMILY: result_string(context, d->family); break;
  case MODEL_TOKENIZER: result_string(context, d->tokenizer); break;
  case MODEL_LAYERS: sqlite3_result_int(context, d->layers); break;
  case MODEL_HEADS: sqlite3_result_int(context, d->heads); break;
  case MODEL_DIM: sqlite3_result_int(context, d->dim); break;
  case MODEL_VOCAB: sqlite3_result_int(context, d->vocab_size); break;
  case MODEL_MAX_TOKENS: sqlite3_result_int(context, d->max_tokens); break;
  case MODEL_POOLING: result_string(context, d->pooling); break;
  case MODEL_NORMALIZE: sqlite3_result_int(context, d->normalize); break;
  case MODEL_PRECISION: result_string(context, d->precision); break;
  case MODEL_TASKS: result_string(context, d->tasks); break;
  case MODEL_MAPPED_BYTES: sqlite3_result_int64(context, (sqlite3_int64)d->mapped_bytes); break;
  case MODEL_PRIVATE_BYTES: sqlite3_result_int64(context, (sqlite3_int64)d->private_bytes); break;
  case MODEL_IS_DEFAULT: sqlite3_result_int(context, l->is_default); break;
  default: break;
  }
  return BERT_OK;
}

const table_function table_models = {
    .name = "bert_models",
    .columns = "name TEXT, source TEXT, family TEXT, tokenizer TEXT, layers INTEGER, "
               "heads INTEGER, dim INTEGER, vocab INTEGER, max_tokens INTEGER, pooling TEXT, "
               "normalize INTEGER, precision TEXT, tasks TEXT, mapped_bytes INTEGER, "
               "private_bytes INTEGER, is_default INTEGER",
    .flags = SQLITE_VTAB_INNOCUOUS,
    .rows = 2,
    .cursor_size = sizeof(models_cursor),
    .start = models_start,
    .next = models_next,
    .at_end = models_at_end,
    .column = models_column,
    .clear = models_clear,
};
