/*
** table_entities.c: bert_entities(text [, options]), the named entities of a text.
**
** Labels of tokens are grouped as by transformers' token-classification pipeline
** with aggregation_strategy "simple": a token goes on the entity before it when both
** labels have the same tag and its own does not begin with B-. Only B- and I- are
** taken off to find the tag, so that in BILOU and BIOES a label L-, U-, E- or S- has a
** tag of its own and begins an entity. The name of an entity is what follows the first
** hyphen of its first label; its score is the mean of its tokens'.
*/
#include "tasks.h"

#include <string.h>

enum { ENTITY_ENTITY, ENTITY_SCORE, ENTITY_TEXT, ENTITY_START, ENTITY_STOP, ENTITY_TRUNCATED };

enum { ARGUMENT_TEXT, ARGUMENT_OPTIONS };

typedef struct entities_cursor {
  tokenized source; /* all of the text */
  options *parsed;
  const bert_head *head;
  unsigned char *chosen; /* [head->width], 1: asked for */
  token_labels labels;
  size_t from, to; /* the entity: tokens of the text */
} entities_cursor;

typedef struct entities_options {
  text_options source; /* without text_b */
  const json_value *labels;
} entities_options;

static const option_spec entities_specs[] = {
    {"model", OPTION_TEXT, offsetof(text_options, model), 0, 0, NULL},
    {"max_tokens", OPTION_INT, offsetof(text_options, max_tokens), 1, INT_MAX, NULL},
    {"labels", OPTION_JSON, offsetof(entities_options, labels), 0, 0, NULL}};

/* ---- Labels ------------------------------------------------------------------------ */

/* The name of an entity that begins with this label; NULL where it is none. */
static const char *entity_name(const char *label) {
  const char *hyphen = strchr(label, '-');
  const char *name = hyphen != NULL ? hyphen + 1 : label;
  return strcmp(name, "O") == 0 ? NULL : name;
}

static int begins_with(const char *label, char letter) {
  return label[0] == letter && label[1] == '-';
}

static const char *tag(const char *label) {
  return begins_with(label, 'B') || begins_with(label, 'I') ? label + 2 : label;
}

static int goes_on(const char *before, const char *label) {
  return !begins_with(label, 'B') && strcmp(tag(before), tag(label)) == 0;
}

static const char *label_of(const entities_cursor *e, size_t token) {
  return e->head->labels[e->labels.labels[token]];
}

/* The next entity behind token `from`; none: from is the count. */
static void find_entity(entities_cursor *e, size_t from) {
  size_t count = e->labels.count, to = from;
  for (; from < count; from = to) {
    for (to = from + 1; to < count && goes_on(label_of(e, to - 1), label_of(e, to));) to++;
    if (e->chosen[e->labels.labels[from]] && entity_name(label_of(e, from)) != NULL) break;
  }
  e->from = from;
  e->to = to;
}

/* ---- The table ------------------------------------------------------------------------ */

static void entities_clear(void *cursor) {
  entities_cursor *e = cursor;
  token_labels_clear(&e->labels);
  tokenized_clear(&e->source);
  sqlite3_free(e->chosen);
  options_free(e->parsed);
  memset(e, 0, sizeof *e);
}

static bert_status label_text(entities_cursor *e, const table_call *call, const entities_options *o,
                              bert_error *error) {
  loaded_model *m;
  bert_status status =
      task_find_model(call, o->source.model, BERT_HEAD_ENTITIES, &m, &e->head, error);
  if (status == BERT_OK)
    status = task_choose_labels(e->head, o->labels, entity_name, &e->chosen, error);
  if (status == BERT_OK)
    status = tokenized_make(call, call->arguments[ARGUMENT_TEXT], &o->source, 0, &e->source, error);
  if (status != BERT_OK) return status;
  int limit = o->source.max_tokens > 0 ? o->source.max_tokens : bert_describe(m->model)->max_tokens;
  return token_labels_make(&e->source, e->head, (size_t)limit, &e->labels, error);
}

static bert_status entities_start(void *cursor, const table_call *call, bert_error *error) {
  entities_cursor *e = cursor;
  entities_options o = {0};
  bert_status status =
      options_parse("bert_entities", call->arguments[ARGUMENT_OPTIONS], entities_specs,
                    sizeof entities_specs / sizeof *entities_specs, &o, &e->parsed, error);
  if (status == BERT_OK) status = label_text(e, call, &o, error);
  if (status == BERT_OK) find_entity(e, 0);
  return status;
}

static bert_status entities_next(void *cursor, bert_error *error) {
  entities_cursor *e = cursor;
  (void)error;
  find_entity(e, e->to);
  return BERT_OK;
}

static int entities_at_end(const void *cursor) {
  const entities_cursor *e = cursor;
  return e->from >= e->labels.count;
}

static double mean_score(const entities_cursor *e) {
  double sum = 0;
  for (size_t i = e->from; i < e->to; i++) sum += (double)e->labels.scores[i];
  return sum / (double)(e->to - e->from);
}

static bert_status entities_column(void *cursor, sqlite3_context *context, int column,
                                   bert_error *error) {
  const entities_cursor *e = cursor;
  size_t first = e->labels.first;
  size_t start = e->source.tokens->starts[first + e->from];
  size_t stop = e->source.tokens->stops[first + e->to - 1];
  (void)error;
  switch (column) {
  case ENTITY_ENTITY:
    sqlite3_result_text(context, entity_name(label_of(e, e->from)), -1, SQLITE_TRANSIENT);
    break;
  case ENTITY_SCORE: sqlite3_result_double(context, mean_score(e)); break;
  case ENTITY_TEXT:
    sqlite3_result_text64(context, e->source.texts[0].data + start, stop - start, SQLITE_TRANSIENT,
                          SQLITE_UTF8);
    break;
  case ENTITY_START: sqlite3_result_int64(context, (sqlite3_int64)start); break;
  case ENTITY_STOP: sqlite3_result_int64(context, (sqlite3_int64)stop); break;
  case ENTITY_TRUNCATED: sqlite3_result_int(context, 0); break; /* windows reach the end */
  default: break;
  }
  return BERT_OK;
}

const table_function table_entities = {
    .name = "bert_entities",
    .columns = "entity TEXT, score REAL, text TEXT, start INTEGER, stop INTEGER",
    .hidden = "truncated INTEGER",
    .arguments = "in_text, options",
    .usage = "needs a text, as in bert_entities('some text')",
    .required = 1,
    .flags = SQLITE_VTAB_INNOCUOUS,
    .rows = 10,
    .cursor_size = sizeof(entities_cursor),
    .start = entities_start,
    .next = entities_next,
    .at_end = entities_at_end,
    .column = entities_column,
    .clear = entities_clear,
};
