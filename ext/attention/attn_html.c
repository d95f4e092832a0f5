/*
** attn_html.c: attn_html(text [, options]), one page that shows the attention of
** a text and needs nothing but itself.
**
** The page (sql/page) is part of the library; here its data is written into it.
** Words, special tokens and renormalizing are choices that the reader can change,
** so the options only say how the page begins, and the data holds all tokens.
*/
#include "html.h"

#include <math.h>
#include <string.h>

typedef struct html_options {
  inspection_options inspect;
  int bits, layer, head; /* layer and head -1 where the options have none */
  int view, theme, neurons;
  const char *title, *compare_text, *compare_model;
} html_options;

static const char view_names[] = "head|model|neuron|matrix|statistics|rollout";
static const char theme_names[] = "auto|light|dark";

#define OWN_SPEC(key, type, low, high, choices)                                                    \
  { #key, type, offsetof(html_options, key), low, high, choices }

static const option_spec specs[] = {
    INSPECTION_SPECS(html_options, inspect),
    OWN_SPEC(title, OPTION_TEXT, 0, 0, NULL),
    OWN_SPEC(bits, OPTION_INT, 8, 16, "8 or 16"),
    OWN_SPEC(view, OPTION_CHOICE, 0, 0, view_names),
    OWN_SPEC(layer, OPTION_INT, 0, INT_MAX, NULL),
    OWN_SPEC(head, OPTION_INT, 0, INT_MAX, NULL),
    OWN_SPEC(theme, OPTION_CHOICE, 0, 0, theme_names),
    OWN_SPEC(neurons, OPTION_CHOICE, 0, 0, "auto|all|layer|head|none"),
    OWN_SPEC(compare_text, OPTION_TEXT, 0, 0, NULL),
    OWN_SPEC(compare_model, OPTION_TEXT, 0, 0, NULL)};

static const char function[] = "attn_html";

/* ---- How the page begins ------------------------------------------------- */

/* Name number `index` of a list separated by |. */
static void append_choice(sqlite3_str *out, const char *names, int index) {
  for (; index > 0; index--) names = strchr(names, '|') + 1;
  html_append_text(out, names, strcspn(names, "|"));
}

static void append_integer(sqlite3_str *out, int number) {
  if (number < 0)
    sqlite3_str_appendall(out, "null");
  else
    sqlite3_str_appendf(out, "%d", number);
}

static void append_flag(sqlite3_str *out, const char *name, int flag) {
  sqlite3_str_appendf(out, ",\"%s\":%s", name, flag ? "true" : "false");
}

static void append_beginning(sqlite3_str *out, const html_options *o) {
  sqlite3_str_appendall(out, "{\"format\":1,\"title\":");
  html_append_optional(out, o->title);
  sqlite3_str_appendf(out, ",\"bits\":%d,\"temperature\":", o->bits);
  html_append_number(out, o->inspect.temperature);
  sqlite3_str_appendall(out, ",\"initial\":{\"view\":");
  append_choice(out, view_names, o->view);
  sqlite3_str_appendall(out, ",\"theme\":");
  append_choice(out, theme_names, o->theme);
  sqlite3_str_appendall(out, ",\"layer\":");
  append_integer(out, o->layer);
  sqlite3_str_appendall(out, ",\"head\":");
  append_integer(out, o->head);
  append_flag(out, "words", o->inspect.words);
  append_flag(out, "special", o->inspect.special);
  append_flag(out, "renormalize", o->inspect.renormalize);
  sqlite3_str_appendall(out, "},\n\"runs\":[");
}

/* ---- Runs ---------------------------------------------------------------- */

static bert_status check_place(const html_options *o, const inspection *i, bert_error *error) {
  if (o->layer >= i->layers)
    return error_set(error, BERT_ARGUMENT,
                     "option layer must be from 0 to %d for the model %s, not %d", i->layers - 1,
                     i->model->name, o->layer);
  if (o->head >= i->heads)
    return error_set(error, BERT_ARGUMENT,
                     "option head must be from 0 to %d for the model %s, not %d", i->heads - 1,
                     i->model->name, o->head);
  return BERT_OK;
}

/* Inspects `text` twice, by tokens and by words, in one forward pass. */
static bert_status append_run(sqlite3_str *out, connection *c, bert_text text, loaded_model *model,
                              const html_options *o, int is_first, bert_error *error) {
  html_contents contents = {c, o->bits, (html_neurons)o->neurons, o->layer < 0 ? 0 : o->layer,
                            o->head < 0 ? 0 : o->head};
  inspection_options tokens = o->inspect;
  inspection *by_token = NULL, *by_word = NULL;
  tokens.special = 1;
  tokens.words = tokens.renormalize = 0;
  inspection_options words = tokens;
  words.words = 1;
  bert_status status = inspection_open(c, model, text, &tokens, &by_token, error);
  if (status == BERT_OK) status = inspection_open(c, model, text, &words, &by_word, error);
  if (status == BERT_OK && is_first) status = check_place(o, by_token, error);
  if (status == BERT_OK) status = html_append_run(out, &contents, by_token, by_word, error);
  inspection_close(by_word);
  inspection_close(by_token);
  return status;
}

static bert_status append_runs(sqlite3_str *out, sqlite3_context *context, int argc, bert_text text,
                               const html_options *o, bert_error *error) {
  connection *c = function_connection(context);
  loaded_model *model;
  bert_status status = function_model(context, argc, 1, o->inspect.model, &model, error);
  if (status == BERT_OK) status = append_run(out, c, text, model, o, 1, error);
  if (status != BERT_OK || (o->compare_text == NULL && o->compare_model == NULL)) return status;
  if (o->compare_text != NULL) text = (bert_text){o->compare_text, strlen(o->compare_text)};
  if (o->compare_model != NULL)
    status = function_model(context, argc, 1, o->compare_model, &model, error);
  if (status != BERT_OK) return status;
  sqlite3_str_appendall(out, ",\n");
  return append_run(out, c, text, model, o, 0, error);
}

/* ---- The page ------------------------------------------------------------ */

/* Appends bytes[size] in steps that the int of sqlite3_str_append can count. */
static void append_bytes(sqlite3_str *out, const char *bytes, size_t size) {
  enum { STEP = 1 << 30 };
  for (; size > STEP; bytes += STEP, size -= STEP) sqlite3_str_append(out, bytes, STEP);
  sqlite3_str_append(out, bytes, (int)size);
}

/* Ends `out` and makes it the result. */
static bert_status finish(sqlite3_context *context, sqlite3_str *out, bert_error *error) {
  int rc = sqlite3_str_errcode(out), length = sqlite3_str_length(out);
  char *page = sqlite3_str_finish(out);
  if (rc == SQLITE_OK && page != NULL) {
    sqlite3_result_text(context, page, length, sqlite3_free);
    return BERT_OK;
  }
  sqlite3_free(page);
  if (rc != SQLITE_TOOBIG) return error_nomem(error, "writing the page");
  return error_set(error, BERT_ARGUMENT,
                   "the page would be larger than this connection's limit for a string; give "
                   "fewer tokens with the option max_tokens, or bits 8");
}

static bert_status make_page(sqlite3_context *context, int argc, bert_text text,
                             const html_options *o, bert_error *error) {
  sqlite3_str *out = sqlite3_str_new(sqlite3_context_db_handle(context));
  append_bytes(out, html_page_before, html_page_before_size);
  append_beginning(out, o);
  bert_status status = append_runs(out, context, argc, text, o, error);
  sqlite3_str_appendall(out, "]}\n");
  append_bytes(out, html_page_after, html_page_after_size);
  if (status == BERT_OK) return finish(context, out, error);
  sqlite3_free(sqlite3_str_finish(out));
  return status;
}

static void attn_html(sqlite3_context *context, int argc, sqlite3_value **argv) {
  html_options o = {.inspect = inspection_defaults, .bits = 8, .layer = -1, .head = -1};
  bert_error error = {BERT_OK, ""};
  options *parsed = NULL;
  bert_text text;
  int nomem = 0;
  if (!value_text(argv[0], &text, &nomem)) {
    if (nomem) sqlite3_result_error_nomem(context);
    return;
  }
  bert_status status = options_parse(function, argc > 1 ? argv[1] : NULL, specs,
                                     sizeof specs / sizeof specs[0], &o, &parsed, &error);
  if (status == BERT_OK) status = make_page(context, argc, text, &o, &error);
  if (status != BERT_OK) result_error(context, function, &error);
  options_free(parsed);
}

const function_entry functions_html[] = {
    {function, 1, 2, SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, attn_html, 0},
    {NULL, 0, 0, 0, NULL, 0}};
