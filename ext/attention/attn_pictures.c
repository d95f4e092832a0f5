/*
** attn_pictures.c: attn_heatmap and attn_svg, one head drawn by ext/render.
*/
#include "attention.h"

#include "../render/render.h"

#include <string.h>

typedef struct picture_options {
  inspection_options inspect;
  const char *title;
  int width, ansi; /* of the heat map */
  int cell;        /* of the SVG */
} picture_options;

#define OWN_SPEC(key, type, low, high)                                                             \
  { #key, type, offsetof(picture_options, key), low, high, NULL }

static const option_spec heatmap_specs[] = {
    INSPECTION_SPECS(picture_options, inspect), OWN_SPEC(title, OPTION_TEXT, 0, 0),
    OWN_SPEC(width, OPTION_INT, 20, 1000), OWN_SPEC(ansi, OPTION_BOOL, 0, 0)};
static const option_spec svg_specs[] = {INSPECTION_SPECS(picture_options, inspect),
                                        OWN_SPEC(title, OPTION_TEXT, 0, 0),
                                        OWN_SPEC(cell, OPTION_INT, 1, 200)};

/* What the two functions differ in. */
typedef struct drawing {
  const char *function;
  const option_spec *specs;
  size_t spec_count;
  int (*draw)(sqlite3_str *out, const picture *p, const picture_options *o);
} drawing;

static int draw_heatmap(sqlite3_str *out, const picture *p, const picture_options *o) {
  heatmap_style style = {o->width, o->ansi};
  return render_heatmap(out, p, &style);
}

static int draw_svg(sqlite3_str *out, const picture *p, const picture_options *o) {
  svg_style style = {o->cell};
  return render_svg(out, p, &style);
}

static const drawing heatmap = {"attn_heatmap", heatmap_specs,
                                sizeof heatmap_specs / sizeof heatmap_specs[0], draw_heatmap};
static const drawing svg = {"attn_svg", svg_specs, sizeof svg_specs / sizeof svg_specs[0],
                            draw_svg};

/* ---- Words around the picture -------------------------------------------- */

static char *make_title(const inspection *i, const picture_options *o, int layer, int head) {
  if (o->title != NULL) return sqlite3_mprintf("%s", o->title);
  return sqlite3_mprintf("layer %d, head %d of %s", layer, head, i->model->name);
}

/* What a reader must know to read the picture right; "" when there is nothing. */
static char *make_note(const inspection *i, const picture_options *o) {
  sqlite3_str *note = sqlite3_str_new(NULL);
  if (i->truncated)
    sqlite3_str_appendf(note, "the text was cut at %d tokens", bert_pass_tokens(i->pass));
  if (!o->inspect.special && !o->inspect.renormalize && i->view->count > 0)
    sqlite3_str_appendf(note, "%sspecial tokens are left out, so rows do not sum to 1",
                        sqlite3_str_length(note) > 0 ? "; " : "");
  if (o->inspect.temperature < 1 || o->inspect.temperature > 1)
    sqlite3_str_appendf(note, "%stemperature %g", sqlite3_str_length(note) > 0 ? "; " : "",
                        o->inspect.temperature);
  sqlite3_str_appendchar(note, 1, '\0');
  return sqlite3_str_finish(note);
}

/* ---- The picture --------------------------------------------------------- */

static void free_labels(bert_text *labels, size_t count) {
  for (size_t u = 0; labels != NULL && u < count; u++)
    sqlite3_free((char *)(uintptr_t)labels[u].data);
  sqlite3_free(labels);
}

static bert_text *make_labels(const inspection *i) {
  size_t count = i->view->count;
  bert_text *labels = sqlite3_malloc64(sizeof *labels * ((sqlite3_uint64)count + 1));
  if (labels == NULL) return NULL;
  memset(labels, 0, sizeof *labels * (count + 1));
  for (size_t u = 0; u < count; u++) {
    labels[u].data = inspection_label(i, u, &labels[u].size);
    if (labels[u].data != NULL) continue;
    free_labels(labels, count);
    return NULL;
  }
  return labels;
}

/* Draws `p` and makes it the result. */
static bert_status draw(sqlite3_context *context, const drawing *d, const picture *p,
                        const picture_options *o, bert_error *error) {
  sqlite3_str *out = sqlite3_str_new(sqlite3_context_db_handle(context));
  int ok = d->draw(out, p, o), rc = sqlite3_str_errcode(out);
  int length = sqlite3_str_length(out);
  char *text = sqlite3_str_finish(out);
  if (ok && rc == SQLITE_OK && text != NULL) {
    sqlite3_result_text(context, text, length, sqlite3_free);
    return BERT_OK;
  }
  sqlite3_free(text);
  if (rc == SQLITE_TOOBIG)
    return error_set(error, BERT_ARGUMENT,
                     "the picture of %d tokens is larger than SQLite's "
                     "limit for a string",
                     (int)p->count);
  return error_nomem(error, "drawing attention");
}

static bert_status draw_head(sqlite3_context *context, const drawing *d, const inspection *i,
                             const picture_options *o, int layer, int head, bert_error *error) {
  size_t count = i->view->count;
  float *weights = sqlite3_malloc64(sizeof *weights * (sqlite3_uint64)count * count + 1);
  bert_text *labels = make_labels(i);
  char *title = make_title(i, o, layer, head), *note = make_note(i, o);
  bert_status status = BERT_OK;
  if (weights == NULL || labels == NULL || title == NULL || note == NULL)
    status = error_nomem(error, "drawing attention");
  if (status == BERT_OK) status = inspection_weights(i, layer, head, weights, error);
  if (status == BERT_OK) {
    picture p = {count, weights, labels, title, note[0] != '\0' ? note : NULL};
    status = draw(context, d, &p, o, error);
  }
  sqlite3_free(weights);
  free_labels(labels, count);
  sqlite3_free(title);
  sqlite3_free(note);
  return status;
}

static bert_status inspect(sqlite3_context *context, const drawing *d, int argc,
                           sqlite3_value **argv, bert_text text, bert_error *error) {
  picture_options o = {.inspect = inspection_defaults};
  options *parsed = NULL;
  inspection *i = NULL;
  loaded_model *m;
  int layer, head;
  bert_status status = options_parse(d->function, argc > 3 ? argv[3] : NULL, d->specs,
                                     d->spec_count, &o, &parsed, error);
  if (status == BERT_OK) status = function_model(context, argc, 3, o.inspect.model, &m, error);
  if (status == BERT_OK)
    status = inspection_open(function_connection(context), m, text, &o.inspect, &i, error);
  if (status == BERT_OK) status = inspection_index(argv[1], "layer", i->layers, &layer, error);
  if (status == BERT_OK) status = inspection_index(argv[2], "head", i->heads, &head, error);
  if (status == BERT_OK) status = draw_head(context, d, i, &o, layer, head, error);
  inspection_close(i);
  options_free(parsed);
  return status;
}

static void call(sqlite3_context *context, const drawing *d, int argc, sqlite3_value **argv) {
  bert_error error = {BERT_OK, ""};
  bert_text text;
  int nomem = 0;
  if (!value_text(argv[0], &text, &nomem)) {
    if (nomem) sqlite3_result_error_nomem(context);
    return;
  }
  if (inspect(context, d, argc, argv, text, &error) != BERT_OK)
    result_error(context, d->function, &error);
}

static void attn_heatmap(sqlite3_context *context, int argc, sqlite3_value **argv) {
  call(context, &heatmap, argc, argv);
}

static void attn_svg(sqlite3_context *context, int argc, sqlite3_value **argv) {
  call(context, &svg, argc, argv);
}

const function_entry functions_pictures[] = {
    {"attn_heatmap", 3, 4, SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, attn_heatmap, 0},
    {"attn_svg", 3, 4, SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, attn_svg, 0},
    {NULL, 0, 0, 0, NULL, 0}};
