/*
** open.c: models shared within the process.
**
** One list of all open models, guarded by one mutex, which is also held while
** a model loads: a second connection that asks for the same directory waits
** and gets the first one's. Mapping and checking a model takes milliseconds.
*/
#include <pthread.h>
#include <string.h>

#include "model.h"

static pthread_mutex_t open_mutex = PTHREAD_MUTEX_INITIALIZER;
static bert_model *open_models;

/* A fork while another thread opens a model must leave the child a mutex that
** it can take. */
static void before_fork(void) {
  pthread_mutex_lock(&open_mutex);
}
static void after_fork(void) {
  pthread_mutex_unlock(&open_mutex);
}
static void watch_forks(void) {
  pthread_atfork(before_fork, after_fork, after_fork);
}

/* How a model is asked for: what tells apart the models of one directory. */
typedef struct way {
  int copied;
  packed_precision precision;
} way;

static bert_model *find_open(const char *directory, way w) {
  for (bert_model *m = open_models; m != NULL; m = m->next)
    if (m->copied == w.copied && m->precision == w.precision &&
        strcmp(m->directory, directory) == 0 && m->stamp == model_stamp(m) &&
        bert_check(m, NULL) == BERT_OK)
      return m;
  return NULL;
}

/* Called with the mutex held. Takes `directory`. */
static bert_status open_directory(char *directory, way w, bert_model **model, bert_error *error) {
  bert_model *m = find_open(directory, w);
  if (m != NULL) {
    memory_free(directory);
  } else {
    bert_status status = model_load(directory, w.copied, w.precision, &m, error);
    if (status != BERT_OK) return status;
    m->next = open_models;
    open_models = m;
  }
  m->owners++;
  *model = m;
  return BERT_OK;
}

static const char *const precision_names[] = {
    [PRECISION_FLOAT32] = "float32", [PRECISION_BF16] = "bf16", [PRECISION_INT8] = "int8"};
enum { PRECISIONS = sizeof precision_names / sizeof precision_names[0] };

const char *precision_name(packed_precision p) {
  return precision_names[p];
}

static bert_status read_precision(const char *name, packed_precision *out, bert_error *error) {
  *out = PRECISION_FLOAT32;
  if (name == NULL) return BERT_OK;
  for (int i = 0; i < PRECISIONS; i++) {
    if (!word_is(name, precision_names[i])) continue;
    *out = (packed_precision)i;
    return BERT_OK;
  }
  return error_set(error, BERT_UNSUPPORTED,
                   "precision \"%s\" does not exist; there are float32, bf16 and int8", name);
}

bert_status bert_open(const char *source, const bert_open_options *options, bert_model **model,
                      bert_error *error) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  char *directory = NULL;
  way w = {options != NULL && options->copy != 0, PRECISION_FLOAT32};
  if (source == NULL || source[0] == '\0')
    return error_set(error, BERT_ARGUMENT, "the name of a model directory or hub id is empty");
  bert_status status = read_precision(options ? options->precision : NULL, &w.precision, error);
  if (status == BERT_OK) status = hub_resolve(source, &directory, error);
  if (status != BERT_OK) return status;
  pthread_once(&once, watch_forks);
  pthread_mutex_lock(&open_mutex);
  status = open_directory(directory, w, model, error);
  pthread_mutex_unlock(&open_mutex);
  return status;
}

bert_model *bert_retain(bert_model *model) {
  pthread_mutex_lock(&open_mutex);
  model->owners++;
  pthread_mutex_unlock(&open_mutex);
  return model;
}

void bert_close(bert_model *model) {
  if (model == NULL) return;
  pthread_mutex_lock(&open_mutex);
  int last = --model->owners == 0;
  if (last) {
    bert_model **link = &open_models;
    while (*link != model) link = &(*link)->next;
    *link = model->next;
  }
  pthread_mutex_unlock(&open_mutex);
  if (last) model_free(model);
}

const bert_description *bert_describe(const bert_model *model) {
  return &model->description;
}

bert_status bert_check(const bert_model *model, bert_error *error) {
  bert_status status = tensors_check(model->file, error);
  for (int i = 0; i < model->sentence.module_count && status == BERT_OK; i++)
    if (model->dense[i].file != NULL) status = tensors_check(model->dense[i].file, error);
  return status;
}
