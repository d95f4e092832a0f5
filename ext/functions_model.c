/*
** functions_model.c: bert_load and bert_unload.
**
** Both are DIRECTONLY: a database file from elsewhere must not be able to make
** a view or trigger that opens files.
*/
#include "ext.h"

static const option_spec load_options[] = {
    {"precision", OPTION_TEXT, offsetof(bert_open_options, precision), 0, 0, NULL},
    {"copy", OPTION_BOOL, offsetof(bert_open_options, copy), 0, 0, NULL}};

/* A name argument that must be there. */
static bert_status required_name(sqlite3_value *value, const char *what, const char **name,
                                 bert_error *error) {
  bert_status status = value_name(value, name, error);
  if (status == BERT_OK && *name == NULL)
    return error_set(error, BERT_ARGUMENT, "the %s is NULL", what);
  return status;
}

static bert_status load(sqlite3_context *context, int argc, sqlite3_value **argv,
                        const bert_open_options *open, bert_error *error) {
  const char *source, *name = NULL;
  loaded_model *m = NULL;
  bert_status status = required_name(argv[0], "source", &source, error);
  if (status == BERT_OK && argc > 1)
    status = value_name_only(argv[1],
                             "options are the third argument, as in "
                             "bert_load(source, NULL, '{\"copy\": true}')",
                             &name, error);
  if (status == BERT_OK)
    status = registry_load(function_connection(context), source, name, open, &m, error);
  if (status == BERT_OK) sqlite3_result_text(context, m->name, -1, SQLITE_TRANSIENT);
  return status;
}

/* bert_load(source [, name [, options]]): returns the name. */
static void call_load(sqlite3_context *context, int argc, sqlite3_value **argv) {
  bert_error error = {0};
  bert_open_options open = {0};
  options *parsed = NULL;
  bert_status status =
      options_parse("bert_load", argc > 2 ? argv[2] : NULL, load_options,
                    sizeof load_options / sizeof load_options[0], &open, &parsed, &error);
  if (status == BERT_OK) status = load(context, argc, argv, &open, &error);
  options_free(parsed);
  if (status != BERT_OK) result_error(context, "bert_load", &error);
}

/* bert_unload(name): returns the name. */
static void call_unload(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  bert_error error = {0};
  const char *name;
  bert_status status = required_name(argv[0], "name", &name, &error);
  if (status == BERT_OK) status = registry_unload(function_connection(context), name, &error);
  if (status == BERT_OK)
    sqlite3_result_value(context, argv[0]);
  else
    result_error(context, "bert_unload", &error);
}

const function_entry functions_model[] = {{"bert_load", 1, 3, SQLITE_DIRECTONLY, call_load, 0},
                                          {"bert_unload", 1, 1, SQLITE_DIRECTONLY, call_unload, 0},
                                          {NULL, 0, 0, 0, NULL, 0}};
