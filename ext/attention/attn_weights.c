/*
** attn_weights.c: attn_weights(text, layer, head [, options]) as a scalar: one
** head as a JSON array of rows, or as a BLOB.
*/
#include "attention.h"

static const char function[] = "attn_weights";

enum { FORMAT_JSON, FORMAT_BLOB };

typedef struct weights_options {
  inspection_options inspect;
  int format;
} weights_options;

static const option_spec weights_specs[] = {
    INSPECTION_SPECS(weights_options, inspect),
    {"format", OPTION_CHOICE, offsetof(weights_options, format), 0, 0, "json|blob"}};

/* The rows of weights[count, count]. */
static void result_rows(sqlite3_context *context, const float *weights, size_t count) {
  sqlite3_str *out = sqlite3_str_new(sqlite3_context_db_handle(context));
  sqlite3_str_appendchar(out, 1, '[');
  for (size_t row = 0; row < count; row++) {
    if (row > 0) sqlite3_str_appendchar(out, 1, ',');
    json_append_vector(out, weights + row * count, (int)count);
  }
  sqlite3_str_appendchar(out, 1, ']');
  result_json_str(context, out);
}

static bert_status one_head(sqlite3_context *context, const inspection *i, sqlite3_value **argv,
                            int format, bert_error *error) {
  size_t count = i->view->count;
  int layer = 0, head = 0;
  bert_status status = inspection_index(argv[1], "layer", i->layers, &layer, error);
  if (status == BERT_OK) status = inspection_index(argv[2], "head", i->heads, &head, error);
  if (status != BERT_OK) return status;
  float *weights = sqlite3_malloc64(sizeof *weights * (sqlite3_uint64)count * count + 1);
  if (weights == NULL) return error_nomem(error, "computing attention"); /* [count, count] */
  status = inspection_weights(i, layer, head, weights, error);
  if (status == BERT_OK && format == FORMAT_BLOB) {
    result_vector(context, weights, (int)(count * count));
    return BERT_OK;
  }
  if (status == BERT_OK) result_rows(context, weights, count);
  sqlite3_free(weights);
  return status;
}

static bert_status inspect(sqlite3_context *context, int argc, sqlite3_value **argv, bert_text text,
                           bert_error *error) {
  weights_options o = {inspection_defaults, FORMAT_JSON};
  options *parsed = NULL;
  inspection *i = NULL;
  loaded_model *m;
  bert_status status =
      options_parse(function, argc > 3 ? argv[3] : NULL, weights_specs,
                    sizeof weights_specs / sizeof weights_specs[0], &o, &parsed, error);
  if (status == BERT_OK) status = function_model(context, argc, 3, o.inspect.model, &m, error);
  if (status == BERT_OK)
    status = inspection_open(function_connection(context), m, text, &o.inspect, &i, error);
  if (status == BERT_OK) status = one_head(context, i, argv, o.format, error);
  inspection_close(i);
  options_free(parsed);
  return status;
}

static void attn_weights(sqlite3_context *context, int argc, sqlite3_value **argv) {
  bert_error error = {BERT_OK, ""};
  bert_text text;
  int nomem = 0;
  if (!value_text(argv[0], &text, &nomem)) {
    if (nomem) sqlite3_result_error_nomem(context);
    return;
  }
  if (inspect(context, argc, argv, text, &error) != BERT_OK)
    result_error(context, function, &error);
}

const function_entry functions_attention[] = {
    {function, 3, 4, SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, attn_weights, 1},
    {"self_attention", 1, 2, SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, call_self_attention, 1},
    {"positional_encoding", 2, 2, SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, call_positional_encoding,
     1},
    {NULL, 0, 0, 0, NULL, 0}};
