/*
** inspection_options.c: the arguments that all functions of this folder have in
** common.
*/
#include "attention.h"

const inspection_options inspection_defaults = {
    .model = NULL, .text_b = NULL, .special = 1, .temperature = 1.0};

bert_status inspection_index(sqlite3_value *value, const char *what, int count, int *index,
                             bert_error *error) {
  if (value == NULL || sqlite3_value_type(value) == SQLITE_NULL)
    return error_set(error, BERT_ARGUMENT, "%s must be an integer from 0 to %d, not NULL", what,
                     count - 1);
  return value_int(value, what, 0, count - 1, index, error);
}

const option_spec table_specs[] = {INSPECTION_SPECS(table_options, inspect)};
const size_t table_specs_count = sizeof table_specs / sizeof table_specs[0];
