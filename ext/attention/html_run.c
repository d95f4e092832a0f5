/*
** html_run.c: one text run through one model, as the JSON that the page of
** attn_html reads.
**
** Weights go in as matrices of tokens; merging words, leaving out special tokens
** and rollout are done by the page. The statistics of heads go in too, because
** here they come from weights that have not been rounded.
*/
#include "html.h"

#include <math.h>
#include <string.h>

/* Bytes of a text that the page shows in its captions. */
enum { CAPTION_BYTES = 400 };

/* Flags of a token in the data. */
enum { FLAG_SPECIAL = 1, FLAG_SEPARATOR = 2, FLAG_PUNCTUATION = 4 };

static size_t head_size_of(const inspection *i) {
  const bert_description *d = bert_describe(i->model->model);
  return (size_t)d->hidden_size / (size_t)d->heads;
}

/* ---- Texts and tokens ---------------------------------------------------- */

/* The beginning of a text, cut between characters. */
static void append_caption(sqlite3_str *out, bert_text text) {
  size_t size = text.size;
  if (text.data == NULL) {
    sqlite3_str_appendall(out, "null");
    return;
  }
  if (size > CAPTION_BYTES) {
    size = CAPTION_BYTES;
    while (size > 0 && ((unsigned char)text.data[size] & 0xc0) == 0x80) size--;
  }
  html_append_text(out, text.data, size);
}

static bert_status append_label(sqlite3_str *out, const inspection *i, size_t u,
                                bert_error *error) {
  size_t size;
  char *label = inspection_label(i, u, &size);
  if (label == NULL) return error_nomem(error, "naming tokens");
  html_append_text(out, label, size);
  sqlite3_free(label);
  return BERT_OK;
}

/* "tokens": [label, segment, flags] of each. */
static bert_status append_tokens(sqlite3_str *out, const inspection *i, bert_error *error) {
  bert_status status = BERT_OK;
  sqlite3_str_appendall(out, ",\n\"tokens\":[");
  for (size_t u = 0; u < i->view->count && status == BERT_OK; u++) {
    const bert_unit *unit = &i->view->units[u];
    int flags = (unit->special ? FLAG_SPECIAL : 0) | (unit->separator ? FLAG_SEPARATOR : 0) |
                (unit->punctuation ? FLAG_PUNCTUATION : 0);
    sqlite3_str_appendall(out, u > 0 ? ",[" : "[");
    status = append_label(out, i, u, error);
    sqlite3_str_appendf(out, ",%d,%d]", unit->segment, flags);
  }
  sqlite3_str_appendchar(out, 1, ']');
  return status;
}

/* "words": [first token, token after the last, label] of each. */
static bert_status append_words(sqlite3_str *out, const inspection *words, bert_error *error) {
  bert_status status = BERT_OK;
  sqlite3_str_appendall(out, ",\n\"words\":[");
  for (size_t u = 0; u < words->view->count && status == BERT_OK; u++) {
    const bert_unit *unit = &words->view->units[u];
    sqlite3_str_appendf(out, "%s[%d,%d,", u > 0 ? "," : "", (int)unit->first, (int)unit->last);
    status = append_label(out, words, u, error);
    sqlite3_str_appendchar(out, 1, ']');
  }
  sqlite3_str_appendchar(out, 1, ']');
  return status;
}

/* ---- Heads --------------------------------------------------------------- */

/* Where the numbers of one head are computed. */
typedef struct work {
  float *weights; /* [tokens, tokens] */
  float *norms;   /* [tokens] */
  html_buffer buffer;
} work;

static bert_status work_make(work *w, size_t tokens, bert_error *error) {
  memset(w, 0, sizeof *w);
  w->weights = sqlite3_malloc64((sqlite3_uint64)tokens * tokens * sizeof *w->weights);
  w->norms = sqlite3_malloc64((sqlite3_uint64)tokens * sizeof *w->norms);
  if (w->weights == NULL || w->norms == NULL) return error_nomem(error, "writing the page");
  return BERT_OK;
}

static void work_clear(work *w) {
  sqlite3_free(w->weights);
  sqlite3_free(w->norms);
  html_buffer_clear(&w->buffer);
}

/* In the order that sql/page/statistics.js gives them. */
static void append_statistics(sqlite3_str *out, const bert_head_statistics *s) {
  const double numbers[] = {s->entropy,       s->entropy_norm,    s->diag,     s->prev,
                            s->next,          s->first,           s->sep,      s->punct,
                            s->mean_distance, s->signed_distance, s->max_prob, s->positional,
                            s->norm_mean,     s->collapsed};
  for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++) {
    sqlite3_str_appendchar(out, 1, n > 0 ? ',' : '[');
    html_append_number(out, numbers[n]);
  }
  sqlite3_str_appendchar(out, 1, ']');
}

/* Appends what is known of one head: its weights to `out`, its statistics and
** label to `statistics` and `labels`. */
static bert_status append_head(sqlite3_str *out, sqlite3_str *statistics, sqlite3_str *labels,
                               const html_contents *contents, const inspection *i, work *w,
                               int layer, int head, bert_error *error) {
  bert_head_statistics summary;
  bert_status status = inspection_weights(i, layer, head, w->weights, error);
  if (status == BERT_OK) status = bert_pass_value_norms(i->pass, layer, head, w->norms, error);
  if (status != BERT_OK) return status;
  bert_head_summarize(i->view, w->weights, w->norms, &summary);
  append_statistics(statistics, &summary);
  html_append_text(labels, summary.label, strlen(summary.label));
  return html_append_weights(out, &w->buffer, w->weights, i->view->tokens, contents->bits, error);
}

/* "[[a,b],[c,d]]": what stands before head `head` of layer `layer`. */
static void separate(sqlite3_str *out, int layer, int head) {
  if (head == 0)
    sqlite3_str_appendall(out, layer == 0 ? "[[" : "],\n[");
  else
    sqlite3_str_appendchar(out, 1, ',');
}

/* "weights", "statistics" and "labels", each by layer and head. */
static bert_status append_heads(sqlite3_str *out, sqlite3_str *statistics, sqlite3_str *labels,
                                const html_contents *contents, const inspection *i, work *w,
                                bert_error *error) {
  bert_status status = BERT_OK;
  sqlite3_str *const all[] = {out, statistics, labels};
  sqlite3_str_appendall(out, ",\n\"weights\":");
  for (int layer = 0; layer < i->layers && status == BERT_OK; layer++)
    for (int head = 0; head < i->heads && status == BERT_OK; head++) {
      for (size_t n = 0; n < 3; n++) separate(all[n], layer, head);
      if (connection_interrupted(contents->connection))
        return error_set(error, BERT_INTERRUPTED, "interrupted");
      if (sqlite3_str_errcode(out) != SQLITE_OK) return BERT_OK; /* full: the caller knows */
      status = append_head(out, statistics, labels, contents, i, w, layer, head, error);
    }
  for (size_t n = 0; n < 3; n++) sqlite3_str_appendall(all[n], "]]");
  return status;
}

static void append_part(sqlite3_str *out, const char *name, sqlite3_str *part) {
  sqlite3_str_appendf(out, ",\n\"%s\":", name);
  sqlite3_str_append(out, sqlite3_str_value(part), sqlite3_str_length(part));
}

static bert_status append_matrices(sqlite3_str *out, const html_contents *contents,
                                   const inspection *i, work *w, bert_error *error) {
  sqlite3_str *statistics = sqlite3_str_new(NULL), *labels = sqlite3_str_new(NULL);
  bert_status status = append_heads(out, statistics, labels, contents, i, w, error);
  if (status == BERT_OK && (sqlite3_str_errcode(statistics) || sqlite3_str_errcode(labels)))
    status = error_nomem(error, "writing the page");
  if (status == BERT_OK) {
    append_part(out, "statistics", statistics);
    append_part(out, "labels", labels);
  }
  sqlite3_free(sqlite3_str_finish(statistics));
  sqlite3_free(sqlite3_str_finish(labels));
  return status;
}

/* ---- Query and key vectors ----------------------------------------------- */

/* A range of layers and heads. */
typedef struct range {
  int first_layer, layers, first_head, heads;
} range;

static range range_of(const inspection *i, html_neurons neurons, int layer, int head) {
  if (layer >= i->layers) layer = i->layers - 1;
  if (head >= i->heads) head = i->heads - 1;
  switch (neurons) {
  case NEURONS_ALL: return (range){0, i->layers, 0, i->heads};
  case NEURONS_LAYER: return (range){layer, 1, 0, i->heads};
  case NEURONS_HEAD: return (range){layer, 1, head, 1};
  default: return (range){0, 0, 0, 0};
  }
}

/* The largest range that keeps a page of 12 layers, 12 heads and 128 tokens
** below 4 MB with weights in 8 bits and below 8 MB with 16, or that adds no more
** than a quarter to a page that is larger anyway. */
static range range_that_fits(const html_contents *contents, const inspection *i) {
  static const html_neurons choices[] = {NEURONS_ALL, NEURONS_LAYER, NEURONS_HEAD};
  sqlite3_uint64 tokens = i->view->tokens, all = (sqlite3_uint64)i->layers * (unsigned)i->heads;
  sqlite3_uint64 matrix =
      html_base64_size(2 * tokens + tokens * tokens * (unsigned)contents->bits / 8);
  sqlite3_uint64 vectors = 2 * html_base64_size(tokens * (4 + 2 * head_size_of(i)));
  sqlite3_uint64 used =
      html_page_before_size + html_page_after_size + all * (matrix + 160) + 200 * tokens;
  sqlite3_uint64 limit = contents->bits == 8 ? 4000000 : 8000000;
  sqlite3_uint64 room = limit > used + used / 4 ? limit - used : used / 4;
  for (size_t n = 0; n < sizeof choices / sizeof choices[0]; n++) {
    range r = range_of(i, choices[n], contents->layer, contents->head);
    if ((sqlite3_uint64)r.layers * (unsigned)r.heads * vectors <= room) return r;
  }
  return range_of(i, NEURONS_NONE, 0, 0);
}

/* [queries, keys] of one head. */
static bert_status append_queries_and_keys(sqlite3_str *out, const inspection *i, int layer,
                                           int head, work *w, bert_error *error) {
  static const bert_vector_kind kinds[] = {BERT_QUERY, BERT_KEY};
  bert_status status = BERT_OK;
  for (size_t n = 0; n < 2 && status == BERT_OK; n++) {
    size_t stride;
    const float *vectors = bert_pass_vectors(i->pass, kinds[n], layer, head, &stride);
    sqlite3_str_appendchar(out, 1, n > 0 ? ',' : '[');
    status = html_append_vectors(out, &w->buffer, vectors, i->view->tokens, head_size_of(i), stride,
                                 error);
  }
  sqlite3_str_appendchar(out, 1, ']');
  return status;
}

static bert_status append_neurons(sqlite3_str *out, const html_contents *contents,
                                  const inspection *i, work *w, bert_error *error) {
  bert_status status = BERT_OK;
  range r = contents->neurons == NEURONS_AUTO
                ? range_that_fits(contents, i)
                : range_of(i, contents->neurons, contents->layer, contents->head);
  sqlite3_str_appendf(out,
                      ",\n\"vectors\":{\"first_layer\":%d,\"layers\":%d,\"first_head\":%d,"
                      "\"heads\":%d,\"data\":%s",
                      r.first_layer, r.layers, r.first_head, r.heads, r.layers == 0 ? "[" : "");
  for (int layer = 0; layer < r.layers && status == BERT_OK; layer++)
    for (int head = 0; head < r.heads && status == BERT_OK; head++) {
      separate(out, layer, head);
      status =
          append_queries_and_keys(out, i, r.first_layer + layer, r.first_head + head, w, error);
    }
  sqlite3_str_appendall(out, r.layers == 0 ? "]}" : "]]}");
  return status;
}

/* ---- The whole run ------------------------------------------------------- */

static void append_description(sqlite3_str *out, const inspection *i) {
  sqlite3_str_appendall(out, "{\"model\":");
  html_append_text(out, i->model->name, strlen(i->model->name));
  sqlite3_str_appendall(out, ",\"text\":");
  append_caption(out, i->text);
  sqlite3_str_appendall(out, ",\"text_b\":");
  append_caption(out, i->text_b);
  sqlite3_str_appendf(out, ",\"truncated\":%s,\"layers\":%d,\"heads\":%d,\"head_size\":%d",
                      i->truncated ? "true" : "false", i->layers, i->heads, (int)head_size_of(i));
}

bert_status html_append_run(sqlite3_str *out, const html_contents *contents, const inspection *i,
                            const inspection *words, bert_error *error) {
  work w;
  append_description(out, i);
  bert_status status = append_tokens(out, i, error);
  if (status == BERT_OK) status = append_words(out, words, error);
  if (status != BERT_OK) return status;
  status = work_make(&w, i->view->tokens, error);
  if (status == BERT_OK) status = append_matrices(out, contents, i, &w, error);
  if (status == BERT_OK) status = append_neurons(out, contents, i, &w, error);
  work_clear(&w);
  sqlite3_str_appendchar(out, 1, '}');
  return status;
}
