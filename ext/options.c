/*
** options.c: the JSON object `options` that ends most argument lists.
**
** Strict, since a misspelt option that is silently ignored gives wrong
** vectors: unknown keys, wrong types and values out of range are errors that
** say what would be right. A member that is null leaves the default, whatever
** its key; a word among choices may be written in capitals.
*/
#include "ext.h"

#include <limits.h>
#include <math.h>
#include <string.h>

struct options {
  json_document *document; /* the strings handed out lie in it */
};

/* ---- Errors ------------------------------------------------------------ */

/* A short description of `value` for the end of an error text. */
static void describe(const json_value *value, char *out, int size) {
  if (value->type == JSON_NUMBER && value->is_integer)
    sqlite3_snprintf(size, out, "%lld", (sqlite3_int64)value->integer);
  else if (value->type == JSON_NUMBER)
    sqlite3_snprintf(size, out, "%.15g", value->number);
  else if (value->type == JSON_STRING)
    sqlite3_snprintf(size, out, "\"%!.60s\"", value->string);
  else
    sqlite3_snprintf(size, out, "%s", json_type_name(value->type));
}

/* option "dims" must be <what>, not 0 */
static bert_status wrong(const option_spec *spec, const json_value *value, const char *what,
                         bert_error *error) {
  char found[300];
  describe(value, found, (int)sizeof found);
  return error_set(error, BERT_ARGUMENT, "option \"%s\" must be %s, not %s", spec->key, what,
                   found);
}

static bert_status wrong_number(const option_spec *spec, const json_value *value, const char *noun,
                                double no_limit, bert_error *error) {
  char what[120];
  int too_large = value->type == JSON_NUMBER && value->number > spec->high;
  if (spec->high < no_limit || too_large)
    sqlite3_snprintf((int)sizeof what, what, "%s from %.15g to %.15g", noun, spec->low, spec->high);
  else
    sqlite3_snprintf((int)sizeof what, what, "%s of at least %.15g", noun, spec->low);
  return wrong(spec, value, what, error);
}

const char *precision_hint(const char *key) {
  if (!word_is(key, "precision") && !word_is(key, "dtype")) return NULL;
  return "the precision that a model computes in is an option of bert_load, as in SELECT "
         "bert_load('models/all-MiniLM-L6-v2', 'fast', '{\"precision\": \"bf16\"}')";
}

/* unknown option "dim"; the options are prompt, kind, … */
static bert_status unknown(const char *key, const option_spec *specs, size_t count,
                           bert_error *error) {
  char list[600] = "";
  const char *hint = precision_hint(key);
  int used = 0;
  for (size_t i = 0; i < count && used < (int)sizeof list - 1; i++) {
    sqlite3_snprintf((int)sizeof list - used, list + used, "%s%s", i ? ", " : "", specs[i].key);
    used += (int)strlen(list + used);
    if (strcmp(specs[i].key, "precision") == 0) hint = NULL; /* bert_load itself */
  }
  char shown[260];
  sqlite3_snprintf((int)sizeof shown, shown, "%!.60s", key);
  return error_set(error, BERT_ARGUMENT, "unknown option \"%s\"%s%s; the options are %s", shown,
                   hint != NULL ? ": " : "", hint != NULL ? hint : "", list);
}

/* ---- Values ------------------------------------------------------------ */

static bert_status read_int(const option_spec *spec, const json_value *value, int *out,
                            bert_error *error) {
  double number = value->type == JSON_NUMBER ? value->number : NAN;
  int fits = number >= spec->low && number <= spec->high && number <= floor(number);
  if (spec->choices != NULL && (!fits || (number > spec->low && number < spec->high)))
    return wrong(spec, value, spec->choices, error);
  if (!fits) return wrong_number(spec, value, "an integer", INT_MAX, error);
  *out = (int)value->number;
  return BERT_OK;
}

static bert_status read_number(const option_spec *spec, const json_value *value, double *out,
                               bert_error *error) {
  if (value->type != JSON_NUMBER || value->number < spec->low || value->number > spec->high)
    return wrong_number(spec, value, "a number", 1e300, error);
  *out = value->number;
  return BERT_OK;
}

static bert_status read_bool(const option_spec *spec, const json_value *value, int *out,
                             bert_error *error) {
  int is_bit = value->type == JSON_NUMBER && value->is_integer &&
               (value->integer == 0 || value->integer == 1);
  if (value->type != JSON_TRUE && value->type != JSON_FALSE && !is_bit)
    return wrong(spec, value, "true or false", error);
  *out = value->type == JSON_TRUE || (is_bit && value->integer == 1);
  return BERT_OK;
}

static bert_status read_text(const option_spec *spec, const json_value *value, const char **out,
                             bert_error *error) {
  if (value->type != JSON_STRING) return wrong(spec, value, "a string", error);
  *out = value->string;
  return BERT_OK;
}

static bert_status wrong_choice(const option_spec *spec, const json_value *value,
                                bert_error *error) {
  char what[240];
  int used;
  sqlite3_snprintf((int)sizeof what, what, "one of ");
  used = (int)strlen(what);
  for (const char *c = spec->choices; *c != 0 && used < (int)sizeof what - 3; c++) {
    if (*c != '|') {
      what[used++] = *c;
      continue;
    }
    what[used++] = ',';
    what[used++] = ' ';
  }
  what[used] = 0;
  return wrong(spec, value, what, error);
}

static bert_status read_choice(const option_spec *spec, const json_value *value, int *out,
                               bert_error *error) {
  int index = 0;
  const char *choice = spec->choices;
  while (value->type == JSON_STRING && choice != NULL) {
    const char *end = strchr(choice, '|');
    size_t size = end != NULL ? (size_t)(end - choice) : strlen(choice);
    if (size == value->size && sqlite3_strnicmp(choice, value->string, (int)size) == 0) {
      *out = index;
      return BERT_OK;
    }
    choice = end != NULL ? end + 1 : NULL;
    index++;
  }
  return wrong_choice(spec, value, error);
}

static bert_status read_value(const option_spec *spec, const json_value *value, void *target,
                              bert_error *error) {
  void *field = (char *)target + spec->offset;
  if (value->type == JSON_NULL) return BERT_OK;
  switch (spec->type) {
  case OPTION_INT: return read_int(spec, value, field, error);
  case OPTION_NUMBER: return read_number(spec, value, field, error);
  case OPTION_BOOL: return read_bool(spec, value, field, error);
  case OPTION_TEXT: return read_text(spec, value, field, error);
  case OPTION_CHOICE: return read_choice(spec, value, field, error);
  case OPTION_JSON: *(const json_value **)field = value; break;
  }
  return BERT_OK;
}

/* ---- The object -------------------------------------------------------- */

static bert_status read_members(const json_value *object, const option_spec *specs, size_t count,
                                void *target, bert_error *error) {
  for (const json_value *value = object->first; value != NULL; value = value->next) {
    size_t i = 0;
    while (i < count && strcmp(specs[i].key, value->key) != 0) i++;
    if (i == count) return unknown(value->key, specs, count, error);
    bert_status status = read_value(&specs[i], value, target, error);
    if (status != BERT_OK) return status;
  }
  return BERT_OK;
}

/* What a function takes as options. */
typedef struct option_list {
  const char *function;
  const option_spec *specs;
  size_t count;
} option_list;

/* Says what options look like; `found` is what stood in their place. */
static bert_status not_options(const option_list *l, const char *found, bert_error *error) {
  const char *key = l->specs[0].key, *value = "…";
  for (size_t i = 0; i < l->count; i++) {
    if (strcmp(l->specs[i].key, "model") == 0) key = "model", value = "\"name\"";
  }
  return error_set(error, BERT_ARGUMENT,
                   "the options of %s are a JSON object such as {\"%s\": %s}, not %s", l->function,
                   key, value, found);
}

/* A text that begins no JSON, most often the name of a model. */
static bert_status not_json(const option_list *l, bert_text text, bert_error *error) {
  char shown[280];
  sqlite3_snprintf((int)sizeof shown, shown, "the text '%!.60s'", text.data);
  return not_options(l, shown, error);
}

static int is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bert_status parse_object(const option_list *l, bert_text text, options *o,
                                bert_error *error) {
  bert_status status = json_parse(text.data, text.size, &o->document, error);
  if (status != BERT_OK && status != BERT_NOMEM && text.size > 0 && is_letter(text.data[0]))
    return not_json(l, text, error);
  if (status != BERT_OK && status != BERT_NOMEM)
    error_prefix(error, "the options must be a JSON object");
  if (status != BERT_OK) return status;
  const json_value *root = json_root(o->document);
  if (root->type == JSON_OBJECT) return BERT_OK;
  return not_options(l, json_type_name(root->type), error);
}

bert_status options_parse(const char *function, sqlite3_value *value, const option_spec *specs,
                          size_t count, void *target, options **out, bert_error *error) {
  bert_text text;
  int nomem;
  *out = NULL;
  if (value == NULL) return BERT_OK;
  if (!value_text(value, &text, &nomem))
    return nomem ? error_nomem(error, "reading the options") : BERT_OK;
  options *o = sqlite3_malloc64(sizeof *o);
  if (o == NULL) return error_nomem(error, "reading the options");
  o->document = NULL;
  bert_status status = parse_object(&(option_list){function, specs, count}, text, o, error);
  if (status == BERT_OK) status = read_members(json_root(o->document), specs, count, target, error);
  if (status == BERT_OK)
    *out = o;
  else
    options_free(o);
  return status;
}

void options_free(options *o) {
  if (o == NULL) return;
  json_free(o->document);
  sqlite3_free(o);
}
