/*
** results.c: errors, texts, vectors and JSON on their way into and out of SQLite,
** and arrays that grow in its memory.
*/
#include "ext.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- Memory ------------------------------------------------------------ */

int array_grow(void **array, size_t *room, size_t count, size_t size) {
  if (count <= *room) return 1;
  size_t more = count + count / 2 + 8;
  void *grown = sqlite3_realloc64(*array, more * size);
  if (grown == NULL) return 0;
  *array = grown;
  *room = more;
  return 1;
}

/* ---- Errors ------------------------------------------------------------ */

int result_code(bert_status status) {
  switch (status) {
  case BERT_OK: return SQLITE_OK;
  case BERT_NOMEM: return SQLITE_NOMEM;
  case BERT_INTERRUPTED: return SQLITE_INTERRUPT;
  default: return SQLITE_ERROR;
  }
}

/* "function: text" from sqlite3_malloc64, valid UTF-8 whatever a path or name in
** it holds: a host that decodes strictly would lose the whole message. NULL
** without memory. */
static char *error_text(const char *function, const bert_error *error) {
  const unsigned char *bytes = (const unsigned char *)error->text;
  sqlite3_str *out = sqlite3_str_new(NULL);
  size_t size = strlen(error->text);
  sqlite3_str_appendf(out, "%s: ", function);
  for (size_t i = 0; i < size;) {
    size_t n = utf8_character_size(bytes + i, size - i);
    if (n == 0)
      sqlite3_str_append(out, "\xEF\xBF\xBD", 3);
    else
      sqlite3_str_append(out, error->text + i, (int)n);
    i += n > 0 ? n : 1;
  }
  return sqlite3_str_finish(out);
}

void result_error(sqlite3_context *context, const char *function, const bert_error *error) {
  if (error->status == BERT_NOMEM) {
    sqlite3_result_error_nomem(context);
    return;
  }
  if (error->status == BERT_INTERRUPTED) {
    sqlite3_result_error_code(context, SQLITE_INTERRUPT);
    return;
  }
  char *text = error_text(function, error);
  if (text != NULL)
    sqlite3_result_error(context, text, -1);
  else
    sqlite3_result_error_nomem(context);
  sqlite3_free(text);
}

int vtab_error(sqlite3_vtab *table, const char *function, const bert_error *error) {
  int rc = result_code(error->status);
  if (rc != SQLITE_ERROR) return rc; /* SQLite has its own words for these */
  sqlite3_free(table->zErrMsg);
  table->zErrMsg = error_text(function, error);
  return table->zErrMsg != NULL ? rc : SQLITE_NOMEM;
}

/* ---- Vectors as results ------------------------------------------------ */

void result_vector(sqlite3_context *context, float *vector, int dim) {
  sqlite3_result_blob64(context, vector, sizeof(float) * (sqlite3_uint64)dim, sqlite3_free);
  sqlite3_result_subtype(context, SUBTYPE_VECTOR);
}

void result_vector_copy(sqlite3_context *context, const float *vector, int dim) {
  sqlite3_result_blob64(context, vector, sizeof(float) * (sqlite3_uint64)dim, SQLITE_TRANSIENT);
  sqlite3_result_subtype(context, SUBTYPE_VECTOR);
}

/* ---- Texts as arguments ------------------------------------------------ */

int value_text(sqlite3_value *value, bert_text *text, int *nomem) {
  *nomem = 0;
  text->data = NULL;
  text->size = 0;
  int type = sqlite3_value_type(value);
  if (type == SQLITE_NULL) return 0;
  text->data = (const char *)sqlite3_value_text(value);
  if (text->data == NULL) {
    *nomem = type != SQLITE_BLOB || sqlite3_value_bytes(value) > 0;
    return !*nomem;
  }
  text->size = (size_t)sqlite3_value_bytes(value);
  return 1;
}

bert_status value_name(sqlite3_value *value, const char **name, bert_error *error) {
  bert_text text;
  int nomem;
  *name = NULL;
  if (value == NULL) return BERT_OK;
  if (!value_text(value, &text, &nomem))
    return nomem ? error_nomem(error, "reading a name") : BERT_OK;
  if (text.data == NULL) text.data = "";
  if (strlen(text.data) != text.size)
    return error_set(error, BERT_ARGUMENT, "a name cannot hold a NUL byte");
  *name = text.data;
  return BERT_OK;
}

bert_status value_name_only(sqlite3_value *value, const char *instead, const char **name,
                            bert_error *error) {
  bert_status status = value_name(value, name, error);
  if (status != BERT_OK || *name == NULL || (*name)[0] != '{') return status;
  return error_set(error, BERT_ARGUMENT,
                   "the second argument is a name, and cannot begin with {; %s", instead);
}

static int same_bytes(sqlite3_value *a, sqlite3_value *b) {
  int size = sqlite3_value_bytes(a); /* first: it may change the encoding */
  if (size != sqlite3_value_bytes(b)) return 0;
  const void *x = sqlite3_value_blob(a), *y = sqlite3_value_blob(b);
  return size == 0 || (x != NULL && y != NULL && memcmp(x, y, (size_t)size) == 0);
}

int value_same(sqlite3_value *a, sqlite3_value *b) {
  int type = sqlite3_value_type(a);
  if (type != sqlite3_value_type(b)) return 0;
  switch (type) {
  case SQLITE_NULL: return 1;
  case SQLITE_INTEGER: return sqlite3_value_int64(a) == sqlite3_value_int64(b);
  case SQLITE_FLOAT: return sqlite3_value_double(a) == sqlite3_value_double(b);
  default: return same_bytes(a, b);
  }
}

/* ---- Vectors as arguments ---------------------------------------------- */

static bert_status blob_view(sqlite3_value *value, vector_view *view, bert_error *error) {
  const void *blob = sqlite3_value_blob(value);
  size_t bytes = (size_t)sqlite3_value_bytes(value);
  if (bytes == 0) return error_set(error, BERT_ARGUMENT, "an empty BLOB is no vector");
  if (blob == NULL) return error_nomem(error, "reading a vector");
  if (bytes % sizeof(float) != 0)
    return error_set(error, BERT_ARGUMENT,
                     "a BLOB of %zu bytes is no vector: float32 takes 4 bytes a number", bytes);
  view->dim = (int)(bytes / sizeof(float));
  view->data = blob;
  if ((uintptr_t)blob % _Alignof(float) == 0) return BERT_OK;
  view->owned = sqlite3_malloc64(bytes);
  if (view->owned == NULL) return error_nomem(error, "copying a vector");
  memcpy(view->owned, blob, bytes);
  view->data = view->owned;
  return BERT_OK;
}

/* Element `index` of a JSON array as a float32. */
static bert_status read_element(const json_value *value, size_t index, float *out,
                                bert_error *error) {
  if (value->type != JSON_NUMBER)
    return error_set(error, BERT_ARGUMENT, "element %zu is %s, not a number", index,
                     json_type_name(value->type));
  if (fabs(value->number) > (double)FLT_MAX)
    return error_set(error, BERT_ARGUMENT, "element %zu, %.9g, is beyond the range of float32",
                     index, value->number);
  *out = (float)value->number;
  return BERT_OK;
}

static bert_status read_array(const json_value *array, float **vector, int *dim,
                              bert_error *error) {
  if (array->type != JSON_ARRAY)
    return error_set(error, BERT_ARGUMENT, "a vector is a JSON array of numbers, not %s",
                     json_type_name(array->type));
  if (array->size == 0) return error_set(error, BERT_ARGUMENT, "an empty array is no vector");
  float *numbers = sqlite3_malloc64(sizeof(float) * array->size); /* [size] */
  if (numbers == NULL) return error_nomem(error, "reading a vector");
  size_t index = 0;
  for (const json_value *v = array->first; v != NULL; v = v->next, index++) {
    bert_status status = read_element(v, index, &numbers[index], error);
    if (status == BERT_OK) continue;
    sqlite3_free(numbers);
    return status;
  }
  *vector = numbers;
  *dim = (int)array->size;
  return BERT_OK;
}

bert_status vector_from_json(bert_text text, float **vector, int *dim, bert_error *error) {
  json_document *document = NULL;
  bert_status status = json_parse(text.data, text.size, &document, error);
  if (status != BERT_OK && status != BERT_NOMEM)
    error_prefix(error, "a vector in text is a JSON array of numbers");
  if (status == BERT_OK) status = read_array(json_root(document), vector, dim, error);
  json_free(document);
  return status;
}

bert_status value_vector_view(sqlite3_value *value, vector_view *view, bert_error *error) {
  bert_text text;
  int nomem;
  int type = sqlite3_value_type(value);
  memset(view, 0, sizeof *view);
  if (type == SQLITE_BLOB) return blob_view(value, view, error);
  if (type != SQLITE_TEXT)
    return error_set(error, BERT_ARGUMENT, "a vector is a BLOB of float32 or a JSON array, not %s",
                     type == SQLITE_NULL ? "NULL" : "a number");
  if (!value_text(value, &text, &nomem)) return error_nomem(error, "reading a vector");
  bert_status status = vector_from_json(text, &view->owned, &view->dim, error);
  view->data = view->owned;
  return status;
}

void vector_view_clear(vector_view *view) {
  sqlite3_free(view->owned);
  memset(view, 0, sizeof *view);
}

bert_status value_vector(sqlite3_value *value, float **vector, int *dim, bert_error *error) {
  vector_view view;
  *vector = NULL;
  *dim = 0;
  bert_status status = value_vector_view(value, &view, error);
  if (status != BERT_OK) return status;
  if (view.owned == NULL) {
    size_t bytes = sizeof(float) * (size_t)view.dim;
    view.owned = sqlite3_malloc64(bytes);
    if (view.owned == NULL) return error_nomem(error, "copying a vector");
    memcpy(view.owned, view.data, bytes);
  }
  *vector = view.owned; /* [dim] */
  *dim = view.dim;
  return BERT_OK;
}

/* ---- JSON as results --------------------------------------------------- */

void result_json(sqlite3_context *context, char *json, sqlite3_int64 size) {
  sqlite3_result_text64(context, json, (sqlite3_uint64)size, sqlite3_free, SQLITE_UTF8);
  sqlite3_result_subtype(context, SUBTYPE_JSON);
}

void result_json_str(sqlite3_context *context, sqlite3_str *out) {
  int rc = sqlite3_str_errcode(out);
  int size = sqlite3_str_length(out);
  char *json = sqlite3_str_finish(out);
  if (rc == SQLITE_TOOBIG)
    sqlite3_result_error_toobig(context);
  else if (rc != SQLITE_OK || json == NULL)
    sqlite3_result_error_nomem(context);
  else {
    result_json(context, json, size);
    return;
  }
  sqlite3_free(json);
}

void json_append_vector(sqlite3_str *out, const float *vector, int dim) {
  sqlite3_str_appendchar(out, 1, '[');
  for (int i = 0; i < dim; i++)
    sqlite3_str_appendf(out, i > 0 ? ",%.7g" : "%.7g", (double)vector[i]);
  sqlite3_str_appendchar(out, 1, ']');
}

/* Bytes of the UTF-8 character at text[0 .. size), 0 if there is none. Lead
** bytes, the second byte's range after some of them (no overlong forms, no
** surrogates, nothing above U+10FFFF): the Unicode Standard, table 3-7. */
size_t utf8_character_size(const unsigned char *text, size_t size) {
  unsigned char lead = text[0], low = 0x80, high = 0xBF;
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  if (size < need || text[1] < low || text[1] > high) return 0;
  for (size_t i = 2; i < need; i++)
    if ((text[i] & 0xC0) != 0x80) return 0;
  return need;
}

void json_append_text(sqlite3_str *out, const char *text, size_t size) {
  const unsigned char *bytes = (const unsigned char *)text;
  sqlite3_str_appendchar(out, 1, '"');
  for (size_t i = 0; i < size;) {
    size_t n = utf8_character_size(bytes + i, size - i);
    if (n == 0)
      sqlite3_str_append(out, "\xEF\xBF\xBD", 3);
    else if (bytes[i] == '"' || bytes[i] == '\\')
      sqlite3_str_appendf(out, "\\%c", bytes[i]);
    else if (bytes[i] < 0x20)
      sqlite3_str_appendf(out, "\\u%04x", bytes[i]);
    else
      sqlite3_str_append(out, text + i, (int)n);
    i += n > 0 ? n : 1;
  }
  sqlite3_str_appendchar(out, 1, '"');
}
