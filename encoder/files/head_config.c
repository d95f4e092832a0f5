/*
** head_config.c: what config.json says of the head of a checkpoint: the labels, what
** makes scores of its numbers, and how ModernBERT's head is made.
*/
#include <stdio.h>
#include <string.h>

#include "files.h"

enum { LABEL_LIMIT = 1000000 };

static bert_status make_room(head_config *c, int64_t count, bert_error *error) {
  c->labels = memory_zero(memory_product((uint64_t)count, sizeof *c->labels));
  if (c->labels == NULL) return error_nomem(error, "reading labels");
  c->label_count = (int)count;
  return BERT_OK;
}

/* A decimal number as Python writes it, below `limit`; -1 for anything else. */
static int label_number(const char *key, int limit) {
  int64_t number = 0;
  if (key[0] == '\0' || (key[0] == '0' && key[1] != '\0')) return -1;
  for (; *key != '\0'; key++) {
    if (*key < '0' || *key > '9') return -1;
    number = 10 * number + (*key - '0');
    if (number >= limit) return -1;
  }
  return (int)number;
}

/* As many different numbers below their count leave no gap. */
static bert_status read_map(head_config *c, const json_value *map, bert_error *error) {
  if (map->type != JSON_OBJECT || map->size == 0 || map->size > LABEL_LIMIT)
    return error_set(error, BERT_INVALID,
                     "\"id2label\" must be an object with a label for each number");
  bert_status status = make_room(c, (int64_t)map->size, error);
  for (const json_value *v = map->first; v != NULL && status == BERT_OK; v = v->next) {
    int number = label_number(v->key, c->label_count);
    if (number < 0)
      return error_set(error, BERT_INVALID,
                       "\"id2label\" has %d labels, but the key \"%s\", where it must have the "
                       "numbers from 0 to %d",
                       c->label_count, error_quote(v->key).text, c->label_count - 1);
    if (v->type != JSON_STRING)
      return error_set(error, BERT_INVALID, "label %d in \"id2label\" must be a string, not %s",
                       number, json_type_name(v->type));
    c->labels[number] = memory_copy_text(v->string, v->size);
    if (c->labels[number] == NULL) status = error_nomem(error, "reading labels");
  }
  return status;
}

/* The names that transformers gives to labels without one. */
static bert_status invent_labels(head_config *c, const json_value *root, bert_error *error) {
  int64_t count = 2;
  bert_status status = json_get_int(root, "num_labels", 1, LABEL_LIMIT, &count, error);
  if (status == BERT_OK) status = make_room(c, count, error);
  for (int i = 0; i < c->label_count && status == BERT_OK; i++) {
    char name[24];
    int size = snprintf(name, sizeof name, "LABEL_%d", i);
    c->labels[i] = memory_copy_text(name, (size_t)size);
    if (c->labels[i] == NULL) status = error_nomem(error, "reading labels");
  }
  return status;
}

/* Of a map and another number of labels, transformers takes the number. */
static bert_status read_labels(head_config *c, const json_value *root, bert_error *error) {
  const json_value *map = json_get(root, "id2label"), *count = json_get(root, "num_labels");
  int other = count != NULL && map != NULL && count->is_integer && map->type == JSON_OBJECT &&
              count->integer != (int64_t)map->size;
  if (map != NULL && map->type != JSON_NULL && !other) return read_map(c, map, error);
  return invent_labels(c, root, error);
}

static bert_status read_problem(head_config *c, const json_value *root, bert_error *error) {
  static const struct {
    const char *name;
    bert_problem kind;
  } kinds[] = {{"regression", BERT_PROBLEM_REGRESSION},
               {"single_label_classification", BERT_PROBLEM_ONE_LABEL},
               {"multi_label_classification", BERT_PROBLEM_MANY_LABELS}};
  const char *name = NULL;
  bert_status status = json_get_string(root, "problem_type", &name, error);
  if (status != BERT_OK || name == NULL) return status;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strcmp(name, kinds[i].name) != 0) continue;
    c->problem = kinds[i].kind;
    return BERT_OK;
  }
  return error_set(error, BERT_UNSUPPORTED, "\"problem_type\" \"%s\" is not supported",
                   error_quote(name).text);
}

/* The classifier_ keys of ModernBERT; no other family has them. */
static bert_status read_pooling(head_config *c, const json_value *root, bert_error *error) {
  const char *pooled = "cls", *name = "gelu";
  bert_status status = json_get_string(root, "classifier_pooling", &pooled, error);
  if (status == BERT_OK) status = json_get_string(root, "classifier_activation", &name, error);
  c->fill_bias = 1;
  if (status == BERT_OK) status = json_get_bool(root, "classifier_bias", &c->dense_bias, error);
  if (status == BERT_OK) status = json_get_bool(root, "decoder_bias", &c->fill_bias, error);
  if (status != BERT_OK) return status;
  c->mean = strcmp(pooled, "mean") == 0;
  if (!c->mean && strcmp(pooled, "cls") != 0)
    return error_set(error, BERT_UNSUPPORTED, "\"classifier_pooling\" \"%s\" is not supported",
                     error_quote(pooled).text);
  if (!activation_from_name(name, &c->dense_activation))
    return error_set(error, BERT_UNSUPPORTED, "\"classifier_activation\" \"%s\" is not supported",
                     error_quote(name).text);
  return BERT_OK;
}

bert_status read_cross_activation(const json_value *object, const char *key, int *given,
                                  bert_score *out, bert_error *error) {
  const char *name = NULL;
  bert_status status = json_get_string(object, key, &name, error);
  if (status != BERT_OK || name == NULL) return status;
  const char *dot = strrchr(name, '.'), *last = dot == NULL ? name : dot + 1;
  int torch = strncmp(name, "torch.", 6) == 0;
  *given = 1;
  if (torch && strcmp(last, "Identity") == 0)
    *out = BERT_SCORE_LOGIT;
  else if (torch && strcmp(last, "Sigmoid") == 0)
    *out = BERT_SCORE_SIGMOID;
  else
    return error_set(error, BERT_UNSUPPORTED,
                     "\"%s\" \"%s\" of a cross-encoder is not supported; there are Identity and "
                     "Sigmoid of torch",
                     key, error_quote(name).text);
  return BERT_OK;
}

/* What CrossEncoder.predict applies: sentence_transformers.activation_fn or, before
** release 4, a key at the top. (Since release 5 it is in a file of its own.) */
static bert_status read_rerank(head_config *c, const json_value *root, bert_error *error) {
  bert_status status = read_cross_activation(root, "sbert_ce_default_activation_function",
                                             &c->rerank_given, &c->rerank, error);
  if (status != BERT_OK) return status;
  return read_cross_activation(json_get(root, "sentence_transformers"), "activation_fn",
                               &c->rerank_given, &c->rerank, error);
}

bert_status head_config_read(const char *directory, head_config *out, bert_error *error) {
  json_document *document = NULL;
  memset(out, 0, sizeof *out);
  bert_status status = file_read_json(directory, "config.json", 0, JSON_OBJECT, &document, error);
  if (status != BERT_OK) return status;
  status = read_labels(out, json_root(document), error);
  if (status == BERT_OK) status = read_problem(out, json_root(document), error);
  if (status == BERT_OK) status = read_pooling(out, json_root(document), error);
  if (status == BERT_OK) status = read_rerank(out, json_root(document), error);
  json_free(document);
  if (status != BERT_OK) error_prefix(error, "%s/config.json", directory);
  return status;
}

void head_config_free(head_config *c) {
  for (int i = 0; i < c->label_count && c->labels != NULL; i++) memory_free(c->labels[i]);
  memory_free(c->labels);
  memset(c, 0, sizeof *c);
}
