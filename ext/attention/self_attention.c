/*
** self_attention.c: self_attention(x [, options]) and positional_encoding(n, d),
** the textbook's formulas on matrices in JSON.
**
** They teach and check: everything is in double, and every intermediate result
** is shown. Matrices are limited to what the plain loops behind them do in a
** second or two, since nothing can interrupt those.
*/
#include "attention.h"

#include <math.h>
#include <string.h>

enum {
  MOST_ROWS = 1024,
  MOST_COLUMNS = 1024,
  MOST_BYTES = 32 << 20, /* of x: 32 for each number */
  MOST_POSITIONS = 65536,
  MOST_NUMBERS = 4 << 20
};

/* ---- Matrices in JSON ---------------------------------------------------- */

typedef struct matrix {
  double *numbers; /* [rows, columns], from sqlite3_malloc64 */
  size_t rows, columns;
} matrix;

static bert_status check_size(const char *name, const char *what, size_t size, size_t most,
                              bert_error *error) {
  if (size > 0 && size <= most) return BERT_OK;
  return error_set(error, BERT_ARGUMENT, "%s has %zu %s; there must be from 1 to %zu", name, size,
                   what, most);
}

static bert_status read_row(const char *name, size_t row, const json_value *v, matrix *m,
                            bert_error *error) {
  size_t column = 0;
  if (v->type != JSON_ARRAY)
    return error_set(error, BERT_ARGUMENT, "%s[%zu] is %s, but must be an array of numbers", name,
                     row, json_type_name(v->type));
  if (v->size != m->columns)
    return error_set(error, BERT_ARGUMENT, "%s[%zu] has %zu columns, but %s[0] has %zu", name, row,
                     v->size, name, m->columns);
  for (const json_value *cell = v->first; cell != NULL; cell = cell->next, column++) {
    if (cell->type != JSON_NUMBER)
      return error_set(error, BERT_ARGUMENT, "%s[%zu][%zu] is %s, not a number", name, row, column,
                       json_type_name(cell->type));
    m->numbers[row * m->columns + column] = cell->number;
  }
  return BERT_OK;
}

/* Reads an array of rows of one length into *m, whose numbers the caller frees
** whatever the outcome. */
static bert_status read_matrix(const char *name, const json_value *v, matrix *m,
                               bert_error *error) {
  size_t row = 0;
  if (v->type != JSON_ARRAY)
    return error_set(error, BERT_ARGUMENT,
                     "%s is %s, but must be an array of rows such as [[1, 0], [0, 1]]", name,
                     json_type_name(v->type));
  bert_status status = check_size(name, "rows", v->size, MOST_ROWS, error);
  if (status != BERT_OK) return status;
  m->rows = v->size;
  m->columns = v->first->type == JSON_ARRAY ? v->first->size : 1;
  status = check_size(name, "columns", m->columns, MOST_COLUMNS, error);
  if (status != BERT_OK) return status;
  m->numbers = sqlite3_malloc64(sizeof(double) * m->rows * m->columns);
  if (m->numbers == NULL) return error_nomem(error, "reading a matrix");
  for (const json_value *r = v->first; r != NULL && status == BERT_OK; r = r->next, row++)
    status = read_row(name, row, r, m, error);
  return status;
}

/* Twelve digits, so that what is compared within 1e-6 is not decided by them. */
static void append_matrix(sqlite3_str *out, const double *x, size_t rows, size_t columns) {
  for (size_t row = 0; row < rows; row++) {
    sqlite3_str_appendall(out, row > 0 ? ",[" : "[[");
    for (size_t column = 0; column < columns; column++)
      sqlite3_str_appendf(out, column > 0 ? ",%.12g" : "%.12g", x[row * columns + column]);
    sqlite3_str_appendchar(out, 1, ']');
  }
  sqlite3_str_appendchar(out, 1, ']');
}

static void append_member(sqlite3_str *out, const char *key, const double *x, size_t rows,
                          size_t columns) {
  sqlite3_str_appendf(out, "%c\"%s\":", sqlite3_str_length(out) > 0 ? ',' : '{', key);
  append_matrix(out, x, rows, columns);
}

/* ---- self_attention: its input ------------------------------------------- */

enum { W_Q, W_K, W_V, WEIGHTS };

typedef struct attention_options {
  const json_value *weights[WEIGHTS], *scale, *mask;
  double temperature;
  int causal;
} attention_options;

#define WEIGHT_FIELD(w) (offsetof(attention_options, weights) + (w) * sizeof(const json_value *))

static const option_spec attention_specs[] = {
    {"w_q", OPTION_JSON, WEIGHT_FIELD(W_Q), 0, 0, NULL},
    {"w_k", OPTION_JSON, WEIGHT_FIELD(W_K), 0, 0, NULL},
    {"w_v", OPTION_JSON, WEIGHT_FIELD(W_V), 0, 0, NULL},
    {"scale", OPTION_JSON, offsetof(attention_options, scale), 0, 0, NULL},
    {"mask", OPTION_JSON, offsetof(attention_options, mask), 0, 0, NULL},
    {"temperature", OPTION_NUMBER, offsetof(attention_options, temperature), 1e-6, 1e6, NULL},
    {"causal", OPTION_BOOL, offsetof(attention_options, causal), 0, 0, NULL}};

/* One call, from its arguments to its results. */
typedef struct attention_work {
  matrix x, weights[WEIGHTS]; /* numbers are NULL for those not given */
  uint8_t *mask;              /* [n, n] or NULL */
  bert_self_attention_input in;
  double *results;                     /* one block for all of the following */
  double *q, *k;                       /* [n, query width] */
  double *v;                           /* [n, value width] */
  double *scores, *scaled, *attention; /* [n, n] */
  double *context;                     /* [n, value width] */
} attention_work;

static void work_clear(attention_work *w) {
  sqlite3_free(w->x.numbers);
  for (int i = 0; i < WEIGHTS; i++) sqlite3_free(w->weights[i].numbers);
  sqlite3_free(w->mask);
  sqlite3_free(w->results);
}

static bert_status read_x(sqlite3_value *value, matrix *x, bert_error *error) {
  json_document *document = NULL;
  bert_text text;
  int nomem;
  if (!value_text(value, &text, &nomem)) return error_nomem(error, "reading a matrix");
  if (text.size > MOST_BYTES)
    return error_set(error, BERT_ARGUMENT, "x has %zu bytes of JSON; it may have %d", text.size,
                     MOST_BYTES);
  bert_status status = json_parse(text.data, text.size, &document, error);
  if (status != BERT_OK && status != BERT_NOMEM)
    error_prefix(error, "x must be a JSON matrix such as [[1, 0], [0, 1]]");
  if (status == BERT_OK) status = read_matrix("x", json_root(document), x, error);
  json_free(document);
  return status;
}

static bert_status read_weights(const attention_options *o, attention_work *w, bert_error *error) {
  static const char *const names[] = {"w_q", "w_k", "w_v"};
  for (int i = 0; i < WEIGHTS; i++) {
    if (o->weights[i] == NULL) continue;
    bert_status status = read_matrix(names[i], o->weights[i], &w->weights[i], error);
    if (status != BERT_OK) return status;
    if (w->weights[i].rows != w->x.columns)
      return error_set(error, BERT_ARGUMENT,
                       "%s has %zu rows, but x has %zu columns; they must agree", names[i],
                       w->weights[i].rows, w->x.columns);
  }
  const matrix *q = &w->weights[W_Q], *k = &w->weights[W_K];
  if (q->numbers != NULL && k->numbers != NULL && q->columns != k->columns)
    return error_set(error, BERT_ARGUMENT, "w_q has %zu columns, but w_k has %zu; they must agree",
                     q->columns, k->columns);
  return BERT_OK;
}

static bert_status read_scale(const json_value *v, size_t width, double *scale, bert_error *error) {
  const char *word = v != NULL && v->type == JSON_STRING ? v->string : "";
  *scale = 1;
  if (v == NULL || word_is(word, "sqrt"))
    *scale = 1 / sqrt((double)width);
  else if (v->type == JSON_NUMBER)
    *scale = v->number;
  else if (!word_is(word, "none"))
    return error_set(error, BERT_ARGUMENT,
                     "option \"scale\" must be \"sqrt\", \"none\" or a number that scores are "
                     "multiplied by, not %s%.40s%s",
                     v->type == JSON_STRING ? "\"" : "",
                     v->type == JSON_STRING ? error_quote(v->string).text : json_type_name(v->type),
                     v->type == JSON_STRING ? "\"" : "");
  return BERT_OK;
}

/* ---- self_attention: its mask -------------------------------------------- */

static int is_bit(const json_value *v) {
  return v->type == JSON_TRUE || v->type == JSON_FALSE ||
         (v->type == JSON_NUMBER && v->is_integer && (v->integer == 0 || v->integer == 1));
}

/* `v` holds n bits, which say what a query sees. `name` is theirs in errors. */
static bert_status read_bits(const char *name, const json_value *v, size_t n, uint8_t *bits,
                             bert_error *error) {
  size_t key = 0;
  if (v->type != JSON_ARRAY)
    return error_set(error, BERT_ARGUMENT, "%s is %s, but must be an array of 0 and 1", name,
                     json_type_name(v->type));
  if (v->size != n)
    return error_set(error, BERT_ARGUMENT,
                     "%s has %zu elements, but x has %zu rows; they must agree", name, v->size, n);
  for (const json_value *bit = v->first; bit != NULL; bit = bit->next, key++) {
    if (!is_bit(bit))
      return error_set(error, BERT_ARGUMENT, "%s[%zu] must be 0, 1, true or false", name, key);
    bits[key] = bit->type == JSON_TRUE || (bit->type == JSON_NUMBER && bit->integer == 1);
  }
  return BERT_OK;
}

/* A padding mask [n] holds for every query, a matrix [n][n] has a row for each. */
static bert_status read_mask(const json_value *v, size_t n, uint8_t *mask, bert_error *error) {
  char name[40];
  size_t row = 0;
  if (v->type != JSON_ARRAY || v->first == NULL || v->first->type != JSON_ARRAY) {
    bert_status status = read_bits("mask", v, n, mask, error);
    for (row = 1; row < n && status == BERT_OK; row++) memcpy(mask + row * n, mask, n);
    return status;
  }
  if (v->size != n)
    return error_set(error, BERT_ARGUMENT, "mask has %zu rows, but x has %zu; they must agree",
                     v->size, n);
  for (const json_value *r = v->first; r != NULL; r = r->next, row++) {
    sqlite3_snprintf((int)sizeof name, name, "mask[%d]", (int)row);
    bert_status status = read_bits(name, r, n, mask + row * n, error);
    if (status != BERT_OK) return status;
  }
  return BERT_OK;
}

/* The mask of the options, and what is behind a query for one that is causal. */
static bert_status make_mask(const attention_options *o, size_t n, uint8_t **out,
                             bert_error *error) {
  if (o->mask == NULL && !o->causal) return BERT_OK;
  uint8_t *mask = *out = sqlite3_malloc64((sqlite3_uint64)n * n); /* [n, n] */
  if (mask == NULL) return error_nomem(error, "reading a mask");
  memset(mask, 1, n * n);
  bert_status status = o->mask != NULL ? read_mask(o->mask, n, mask, error) : BERT_OK;
  for (size_t i = 0; i < n && o->causal; i++) memset(mask + i * n + i + 1, 0, n - i - 1);
  return status;
}

/* ---- self_attention: its results ----------------------------------------- */

static bert_status make_results(attention_work *w, bert_error *error) {
  size_t n = w->in.tokens, queries = n * w->in.query_width, values = n * w->in.value_width;
  w->results = sqlite3_malloc64(sizeof(double) * (2 * queries + 2 * values + 3 * n * n));
  if (w->results == NULL) return error_nomem(error, "computing attention");
  w->q = w->results;
  w->k = w->q + queries;
  w->v = w->k + queries;
  w->context = w->v + values;
  w->scores = w->context + values;
  w->scaled = w->scores + n * n;
  w->attention = w->scaled + n * n;
  return BERT_OK;
}

/* scores = q k^T, which the encoder gives only after scaling. They are finite
** when the scaled ones are. */
static void multiply_queries_and_keys(attention_work *w) {
  size_t n = w->in.tokens, width = w->in.query_width;
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < n; j++) {
      double sum = 0;
      for (size_t d = 0; d < width; d++) sum += w->q[i * width + d] * w->k[j * width + d];
      w->scores[i * n + j] = sum;
    }
  }
}

static bert_status compute(attention_work *w, bert_error *error) {
  bert_status status = make_results(w, error);
  if (status == BERT_OK)
    status =
        bert_self_attention(&w->in, w->q, w->k, w->v, w->scaled, w->attention, w->context, error);
  if (status != BERT_OK) return status;
  multiply_queries_and_keys(w);
  return BERT_OK;
}

static void result_attention(sqlite3_context *context, const attention_work *w) {
  sqlite3_str *out = sqlite3_str_new(sqlite3_context_db_handle(context));
  size_t n = w->in.tokens, query_width = w->in.query_width, value_width = w->in.value_width;
  append_member(out, "q", w->q, n, query_width);
  append_member(out, "k", w->k, n, query_width);
  append_member(out, "v", w->v, n, value_width);
  append_member(out, "scores", w->scores, n, n);
  append_member(out, "scaled", w->scaled, n, n);
  append_member(out, "weights", w->attention, n, n);
  append_member(out, "context", w->context, n, value_width);
  sqlite3_str_appendchar(out, 1, '}');
  result_json_str(context, out);
}

/* What `o` and w->x say, put together for the encoder. */
static bert_status prepare(const attention_options *o, attention_work *w, bert_error *error) {
  const matrix *q = &w->weights[W_Q], *k = &w->weights[W_K], *v = &w->weights[W_V];
  bert_self_attention_input *in = &w->in;
  bert_status status = read_weights(o, w, error);
  if (status != BERT_OK) return status;
  in->tokens = w->x.rows;
  in->width = w->x.columns;
  in->x = w->x.numbers;
  in->w_q = q->numbers;
  in->w_k = k->numbers;
  in->w_v = v->numbers;
  in->query_width = q->numbers != NULL ? q->columns : k->numbers != NULL ? k->columns : in->width;
  in->value_width = v->numbers != NULL ? v->columns : in->width;
  in->temperature = o->temperature;
  status = read_scale(o->scale, in->query_width, &in->scale, error);
  if (status == BERT_OK) status = make_mask(o, in->tokens, &w->mask, error);
  in->mask = w->mask;
  return status;
}

/* self_attention(x [, options]) */
void call_self_attention(sqlite3_context *context, int argc, sqlite3_value **argv) {
  bert_error error = {BERT_OK, ""};
  attention_options o = {.temperature = 1};
  attention_work w;
  options *parsed = NULL;
  if (sqlite3_value_type(argv[0]) == SQLITE_NULL) return;
  memset(&w, 0, sizeof w);
  bert_status status =
      options_parse("self_attention", argc > 1 ? argv[1] : NULL, attention_specs,
                    sizeof attention_specs / sizeof attention_specs[0], &o, &parsed, &error);
  if (status == BERT_OK) status = read_x(argv[0], &w.x, &error);
  if (status == BERT_OK) status = prepare(&o, &w, &error);
  if (status == BERT_OK) status = compute(&w, &error);
  if (status == BERT_OK)
    result_attention(context, &w);
  else
    result_error(context, "self_attention", &error);
  work_clear(&w);
  options_free(parsed);
}

/* ---- positional_encoding ------------------------------------------------- */

static bert_status encode_positions(sqlite3_context *context, int n, int d, bert_error *error) {
  size_t rows = (size_t)n, columns = (size_t)d;
  if (rows * columns > MOST_NUMBERS)
    return error_set(error, BERT_ARGUMENT, "n times d is %zu; it must be at most %d",
                     rows * columns, MOST_NUMBERS);
  double *x = sqlite3_malloc64(sizeof(double) * rows * columns); /* [n, d] */
  if (x == NULL) return error_nomem(error, "encoding positions");
  bert_positional_encoding(rows, columns, x);
  sqlite3_str *out = sqlite3_str_new(sqlite3_context_db_handle(context));
  append_matrix(out, x, rows, columns);
  sqlite3_free(x);
  result_json_str(context, out);
  return BERT_OK;
}

/* positional_encoding(n, d) */
void call_positional_encoding(sqlite3_context *context, int argc, sqlite3_value **argv) {
  bert_error error = {BERT_OK, ""};
  int n = 0, d = 0;
  (void)argc;
  if (sqlite3_value_type(argv[0]) == SQLITE_NULL || sqlite3_value_type(argv[1]) == SQLITE_NULL)
    return;
  bert_status status = value_int(argv[0], "n", 1, MOST_POSITIONS, &n, &error);
  if (status == BERT_OK) status = value_int(argv[1], "d", 1, MOST_POSITIONS, &d, &error);
  if (status == BERT_OK) status = encode_positions(context, n, d, &error);
  if (status != BERT_OK) result_error(context, "positional_encoding", &error);
}
