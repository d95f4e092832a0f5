/*
** settings.c: bert_set, bert_info and bert_version.
**
** Settings belong to a connection, but for `kernels`: there is one set of
** kernels in a process, as in the encoder.
*/
#include "ext.h"

#include <string.h>

enum { MOST_THREADS = 1024, MOST_CACHE = 1 << 20 };

/* ---- bert_set ---------------------------------------------------------- */

/* An integer argument in [0, high]; SQL NULL is 0, the default. */
static bert_status read_count(sqlite3_value *value, const char *key, int high, int *out,
                              bert_error *error) {
  int number = 0;
  sqlite3_value_numeric_type(value); /* makes a number of the text '2' */
  bert_status status = value_int(value, key, 0, high, &number, error);
  if (status == BERT_OK) *out = number;
  return status;
}

static bert_status set_threads(connection *c, sqlite3_value *value, sqlite3_context *context,
                               bert_error *error) {
  settings *s = connection_settings(c);
  bert_status status = read_count(value, "threads", MOST_THREADS, &s->threads, error);
  if (status != BERT_OK) return status;
  registry_set_threads(c, s->threads);
  sqlite3_result_int(context, s->threads);
  return BERT_OK;
}

static bert_status set_progress(connection *c, sqlite3_value *value, sqlite3_context *context,
                                bert_error *error) {
  settings *s = connection_settings(c);
  bert_status status = read_count(value, "progress", 1, &s->progress, error);
  if (status == BERT_OK) sqlite3_result_int(context, s->progress);
  return status;
}

/* Enough for the blocks of 150,000 vectors of 384 numbers. NULL stands for that,
** and 0 keeps none. */
static bert_status set_search_cache(connection *c, sqlite3_value *value, sqlite3_context *context,
                                    bert_error *error) {
  settings *s = connection_settings(c);
  int megabytes = SEARCH_CACHE;
  bert_status status = BERT_OK;
  if (sqlite3_value_type(value) != SQLITE_NULL)
    status = read_count(value, "search_cache", MOST_CACHE, &megabytes, error);
  if (status != BERT_OK) return status;
  s->search_cache = megabytes;
  sqlite3_result_int(context, megabytes);
  return BERT_OK;
}

/* NULL asks for the best there is. */
static bert_status set_kernels(connection *c, sqlite3_value *value, sqlite3_context *context,
                               bert_error *error) {
  (void)c;
  const char *name;
  bert_status status = value_name(value, &name, error);
  if (status == BERT_OK) status = bert_set_kernels(name, error);
  if (status == BERT_OK) sqlite3_result_text(context, bert_kernels(), -1, SQLITE_TRANSIENT);
  return status;
}

static const struct {
  const char *key;
  bert_status (*set)(connection *c, sqlite3_value *value, sqlite3_context *context,
                     bert_error *error);
} keys[] = {{"threads", set_threads},
            {"progress", set_progress},
            {"search_cache", set_search_cache},
            {"kernels", set_kernels}};

enum { KEYS = sizeof keys / sizeof keys[0] };

static bert_status unknown_key(const char *key, bert_error *error) {
  char list[100] = "", shown[320];
  sqlite3_snprintf((int)sizeof shown, shown, "%!.80s", key);
  for (int i = 0; i < KEYS; i++) {
    size_t used = strlen(list);
    sqlite3_snprintf((int)(sizeof list - used), list + used, "%s%s", i ? ", " : "", keys[i].key);
  }
  if (key == NULL)
    return error_set(error, BERT_ARGUMENT, "the key is missing; the keys are %s", list);
  const char *hint = precision_hint(key);
  return error_set(error, BERT_ARGUMENT, "unknown key \"%s\"%s%s; the keys are %s", shown,
                   hint != NULL ? ": " : "", hint != NULL ? hint : "", list);
}

/* bert_set(key, value): returns the value now in force. */
static void call_set(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  bert_error error = {0};
  const char *key;
  bert_status status = value_name(argv[0], &key, &error);
  if (status == BERT_OK) {
    int i = 0;
    while (i < KEYS && (key == NULL || strcmp(keys[i].key, key) != 0)) i++;
    status = i < KEYS ? keys[i].set(function_connection(context), argv[1], context, &error)
                      : unknown_key(key, &error);
  }
  if (status != BERT_OK) result_error(context, "bert_set", &error);
}

/* ---- bert_info and bert_version ---------------------------------------- */

static const char *compiler(void) {
#if defined(__clang__)
  return __VERSION__; /* begins with its name */
#else
  return "gcc " __VERSION__;
#endif
}

static void append_member(sqlite3_str *out, const char *key, const char *text) {
  sqlite3_str_appendf(out, "%s\"%s\":", sqlite3_str_length(out) > 1 ? "," : "", key);
  json_append_text(out, text, strlen(text));
}

static void append_models(sqlite3_str *out, connection *c) {
  sqlite3_str_appendall(out, ",\"models\":[");
  for (const loaded_model *m = registry_first(c); m != NULL; m = m->next) {
    const char *precision = bert_describe(m->model)->precision;
    sqlite3_str_appendall(out, m != registry_first(c) ? ",{\"name\":" : "{\"name\":");
    json_append_text(out, m->name, strlen(m->name));
    sqlite3_str_appendf(out, ",\"precision\":\"%s\"}", precision);
  }
  sqlite3_str_appendchar(out, 1, ']');
}

/* What a bug report needs. Nothing in it depends on when or where the library
** was built, only on how. `threads` is how many a call may use, `passes` how many
** texts this process has run through a model. */
static void call_info(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  (void)argv;
  connection *c = function_connection(context);
  const settings *s = connection_settings(c);
  sqlite3_str *out = sqlite3_str_new(connection_db(c));
  sqlite3_str_appendchar(out, 1, '{');
  append_member(out, "version", BERT_VERSION);
  append_member(out, "sqlite", sqlite3_libversion());
  append_member(out, "sqlite_headers", SQLITE_VERSION);
  append_member(out, "compiler", compiler());
  append_member(out, "kernels", bert_kernels());
  if (bert_kernels_refused() != NULL)
    append_member(out, "kernels_requested", bert_kernels_refused());
  append_member(out, "blas", bert_blas());
  append_member(out, "interrupt", interrupt_method());
  sqlite3_str_appendf(out, ",\"cores\":%d,\"threads\":%d,\"progress\":%d", bert_cores(),
                      s->threads > 0 ? s->threads : bert_cores(), s->progress);
  sqlite3_str_appendf(out, ",\"passes\":%llu", (sqlite3_uint64)bert_passes_run());
  append_models(out, c);
  sqlite3_str_appendchar(out, 1, '}');
  result_json_str(context, out);
}

static void call_version(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  (void)argv;
  sqlite3_result_text(context, BERT_VERSION, -1, SQLITE_STATIC);
}

const function_entry functions_settings[] = {
    {"bert_set", 2, 2, SQLITE_DIRECTONLY, call_set, 0},
    {"bert_info", 0, 0, SQLITE_INNOCUOUS, call_info, 1},
    {"bert_version", 0, 0, SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, call_version, 0},
    {NULL, 0, 0, 0, NULL, 0}};
