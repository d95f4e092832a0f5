/*
** json_get.c: reading a parsed document, with errors that name the key.
*/
#include <stdio.h>
#include <string.h>

#include "base.h"

const char *json_type_name(json_type type) {
  static const char *const names[] = {"null",     "false",    "true",     "a number",
                                      "a string", "an array", "an object"};
  return names[type];
}

int json_is(const json_value *value, const char *text) {
  return value != NULL && value->type == JSON_STRING && strcmp(value->string, text) == 0;
}

const json_value *json_get(const json_value *object, const char *key) {
  if (object == NULL || object->type != JSON_OBJECT) return NULL;
  size_t size = strlen(key);
  for (const json_value *v = object->first; v != NULL; v = v->next)
    if (v->key_size == size && memcmp(v->key, key, size) == 0) return v;
  return NULL;
}

/* The member if it is there and not null. */
static const json_value *present(const json_value *object, const char *key) {
  const json_value *v = json_get(object, key);
  return v == NULL || v->type == JSON_NULL ? NULL : v;
}

/* "<key>" must be <what>, not <what it is>. */
static bert_status must_be(const json_value *v, const char *what, bert_error *error) {
  char is[100];
  if (v->type == JSON_NUMBER && v->is_integer)
    snprintf(is, sizeof is, "%lld", (long long)v->integer);
  else if (v->type == JSON_NUMBER)
    snprintf(is, sizeof is, "%g", v->number);
  else if (v->type == JSON_STRING)
    snprintf(is, sizeof is, "\"%s\"", error_quote(v->string).text);
  else
    snprintf(is, sizeof is, "%s", json_type_name(v->type));
  return error_set(error, BERT_INVALID, "\"%s\" must be %s, not %s", error_quote(v->key).text, what,
                   is);
}

bert_status json_get_int(const json_value *object, const char *key, int64_t low, int64_t high,
                         int64_t *out, bert_error *error) {
  const json_value *v = present(object, key);
  if (v == NULL) return BERT_OK;
  if (v->type != JSON_NUMBER || !v->is_integer || v->integer < low || v->integer > high) {
    char what[80];
    snprintf(what, sizeof what, "an integer from %lld to %lld", (long long)low, (long long)high);
    return must_be(v, what, error);
  }
  *out = v->integer;
  return BERT_OK;
}

bert_status json_get_number(const json_value *object, const char *key, double low, double high,
                            double *out, bert_error *error) {
  const json_value *v = present(object, key);
  if (v == NULL) return BERT_OK;
  if (v->type != JSON_NUMBER || v->number < low || v->number > high) {
    char what[80];
    snprintf(what, sizeof what, "a number from %g to %g", low, high);
    return must_be(v, what, error);
  }
  *out = v->number;
  return BERT_OK;
}

bert_status json_get_bool(const json_value *object, const char *key, int *out, bert_error *error) {
  const json_value *v = present(object, key);
  if (v == NULL) return BERT_OK;
  if (v->type != JSON_TRUE && v->type != JSON_FALSE) return must_be(v, "true or false", error);
  *out = v->type == JSON_TRUE;
  return BERT_OK;
}

bert_status json_get_string(const json_value *object, const char *key, const char **out,
                            bert_error *error) {
  const json_value *v = present(object, key);
  if (v == NULL) return BERT_OK;
  if (v->type != JSON_STRING) return must_be(v, "a string", error);
  *out = v->string;
  return BERT_OK;
}
