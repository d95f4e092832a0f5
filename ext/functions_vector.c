/*
** functions_vector.c: bert_cosine, bert_dot, bert_l2, bert_vector, bert_json.
**
** They run once a row, over whole tables: BLOBs are read where they lie, and a
** constant vector that is written as JSON is read once a statement.
*/
#include "ext.h"

#include <math.h>
#include <string.h>

/* ---- Arguments --------------------------------------------------------- */

/* A vector read from a constant JSON text, kept by SQLite with the statement. */
typedef struct constant {
  int dim;
  float vector[]; /* [dim] */
} constant;

/* Gives the statement a copy: SQLite may drop it at once. Without memory the
** text is read again for the next row. */
static void keep_constant(sqlite3_context *context, int index, const vector_view *view) {
  size_t bytes = sizeof(float) * (size_t)view->dim;
  constant *k = sqlite3_malloc64(sizeof *k + bytes);
  if (k == NULL) return;
  k->dim = view->dim;
  memcpy(k->vector, view->data, bytes);
  sqlite3_set_auxdata(context, index, k, sqlite3_free);
}

static bert_status read_vector(sqlite3_context *context, sqlite3_value **argv, int index,
                               vector_view *view, bert_error *error) {
  memset(view, 0, sizeof *view);
  if (sqlite3_value_type(argv[index]) == SQLITE_TEXT) {
    const constant *k = sqlite3_get_auxdata(context, index);
    if (k != NULL) {
      view->data = k->vector;
      view->dim = k->dim;
      return BERT_OK;
    }
  }
  bert_status status = value_vector_view(argv[index], view, error);
  if (status == BERT_OK && sqlite3_value_type(argv[index]) == SQLITE_TEXT)
    keep_constant(context, index, view);
  else if (status != BERT_OK && status != BERT_NOMEM)
    error_prefix(error, "the %s vector", index == 0 ? "first" : "second");
  return status;
}

/* ---- Measures ---------------------------------------------------------- */

typedef double (*measure)(const float *a, const float *b, size_t n);

static bert_status compare(sqlite3_context *context, sqlite3_value **argv, measure between,
                           bert_error *error) {
  vector_view a = {0}, b = {0};
  bert_status status = read_vector(context, argv, 0, &a, error);
  if (status == BERT_OK) status = read_vector(context, argv, 1, &b, error);
  if (status == BERT_OK && a.dim != b.dim)
    status = error_set(error, BERT_ARGUMENT, "the vectors have different lengths, %d and %d", a.dim,
                       b.dim);
  if (status == BERT_OK) {
    double result = between(a.data, b.data, (size_t)a.dim);
    if (!isnan(result)) sqlite3_result_double(context, result);
  }
  vector_view_clear(&a);
  vector_view_clear(&b);
  return status;
}

/* NULL for a NULL argument and where there is no number, as for the cosine of
** a vector of zeros. */
static void call_measure(sqlite3_context *context, sqlite3_value **argv, const char *function,
                         measure between) {
  bert_error error = {0};
  if (sqlite3_value_type(argv[0]) == SQLITE_NULL || sqlite3_value_type(argv[1]) == SQLITE_NULL)
    return;
  if (compare(context, argv, between, &error) != BERT_OK) result_error(context, function, &error);
}

static void call_cosine(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  call_measure(context, argv, "bert_cosine", bert_cosine);
}

static void call_dot(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  call_measure(context, argv, "bert_dot", bert_dot);
}

static void call_l2(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  call_measure(context, argv, "bert_l2", bert_l2);
}

/* ---- To and from JSON -------------------------------------------------- */

/* bert_vector(json): any value is read as text, so that readfile() works. */
static void call_vector(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  bert_error error = {0};
  bert_text text;
  float *vector = NULL; /* [dim] */
  int dim, nomem;
  int from_blob = sqlite3_value_type(argv[0]) == SQLITE_BLOB; /* reading the text changes it */
  if (!value_text(argv[0], &text, &nomem)) {
    if (nomem) sqlite3_result_error_nomem(context);
    return;
  }
  bert_status status = vector_from_json(text, &vector, &dim, &error);
  if (status != BERT_OK && status != BERT_NOMEM && from_blob && text.size > 0 &&
      text.data[0] != '[')
    error_set(&error, BERT_ARGUMENT,
              "the argument is a BLOB, but not one of JSON text; a vector that is a BLOB already "
              "needs no bert_vector");
  if (status == BERT_OK)
    result_vector(context, vector, dim);
  else
    result_error(context, "bert_vector", &error);
}

/* JSON has no word for a number that is not finite. */
static bert_status check_finite(const vector_view *view, bert_error *error) {
  for (int i = 0; i < view->dim; i++)
    if (!isfinite(view->data[i]))
      return error_set(error, BERT_NUMERIC, "element %d is %s, which JSON cannot hold", i,
                       isnan(view->data[i]) ? "NaN" : "infinite");
  return BERT_OK;
}

static bert_status vector_to_json(sqlite3_context *context, sqlite3_value *value,
                                  bert_error *error) {
  vector_view view = {0};
  if (sqlite3_value_type(value) == SQLITE_TEXT)
    return error_set(error, BERT_ARGUMENT,
                     "the argument must be a vector, a BLOB of float32, not a text; bert_vector "
                     "makes a vector of JSON text");
  if (sqlite3_value_type(value) != SQLITE_BLOB)
    return error_set(error, BERT_ARGUMENT,
                     "the argument must be a vector, a BLOB of float32, not a number");
  bert_status status = value_vector_view(value, &view, error);
  if (status == BERT_OK) status = check_finite(&view, error);
  if (status == BERT_OK) {
    sqlite3_str *out = sqlite3_str_new(sqlite3_context_db_handle(context));
    json_append_vector(out, view.data, view.dim);
    result_json_str(context, out);
  }
  vector_view_clear(&view);
  return status;
}

/* bert_json(blob) */
static void call_json(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  bert_error error = {0};
  if (sqlite3_value_type(argv[0]) == SQLITE_NULL) return;
  if (vector_to_json(context, argv[0], &error) != BERT_OK)
    result_error(context, "bert_json", &error);
}

enum { PURE = SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS };

const function_entry functions_vector[] = {
    {"bert_cosine", 2, 2, PURE, call_cosine, 0}, {"bert_dot", 2, 2, PURE, call_dot, 0},
    {"bert_l2", 2, 2, PURE, call_l2, 0},         {"bert_vector", 1, 1, PURE, call_vector, 1},
    {"bert_json", 1, 1, PURE, call_json, 1},     {NULL, 0, 0, 0, NULL, 0}};
