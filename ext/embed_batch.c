/*
** embed_batch.c: rows embedded batch by batch.
**
** The encoder sorts the texts of a call by length and spreads them over its
** threads, which pays when there are many texts for each thread. Here rows are
** collected until that is so, and never more, so that memory does not depend on
** how many rows there are. Of short ones more are collected, for a batch that is
** soon done pays little. The first batches are small: whoever wants a few rows
** gets them at once.
*/
#include "ext.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
  FIRST_ROWS_PER_THREAD = 8, /* doubles with each batch up to */
  ROWS_PER_THREAD = 64,
  ROW_BYTES = 256, /* of a row on average; of shorter ones there are more, up to */
  SHORTER = 4,     /* times as many */
  MOST_ROWS = 4096 /* however many threads there are */
};

/* A bound for documents that are whole books: of these the encoder reads only
** the beginning, but they are kept until it has. */
#define BATCH_BYTES ((uint64_t)4 << 20)

/* Seconds until the first line of progress, and from one to the next. */
static const double PROGRESS_AFTER = 1.0, PROGRESS_EVERY = 0.5;

/* Batches grow while one takes less than so many seconds: with a large model small ones give
** every thread enough, and whoever watches or wants rows does not wait long for them. */
static const double GROW_BELOW = 1.0;

typedef struct batch_row {
  sqlite3_value *key; /* NULL when there is none */
  char *text;         /* [size]; NULL for a NULL text */
  size_t size;
  size_t embedded; /* which of the texts that were embedded */
  char *refused;   /* why it was not, where that is kept; else NULL */
} batch_row;

typedef struct progress {
  const char *what, *unit;
  double begun, printed; /* seconds */
  int shown;             /* characters of the line on the screen */
  sqlite3_int64 rows;
} progress;

struct embed_batch {
  loaded_model *model;
  connection *connection;
  const bert_embed_options *options;
  int dim;
  size_t most;       /* rows that the arrays have room for */
  size_t limit;      /* rows that make this batch full, if they are not short */
  size_t last_limit; /* what that grows to */
  size_t count;
  uint64_t bytes;             /* of all texts and keys */
  batch_row *rows;            /* [most] */
  bert_text *texts;           /* [most]: those that are not NULL */
  bert_embed_result *results; /* [most] */
  float *vectors;             /* [most, dim] */
  progress progress;
};

/* ---- Progress ---------------------------------------------------------- */

static double now(void) {
  struct timespec t = {0, 0};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Writes the line over the one before. */
static void progress_show(progress *p, double time) {
  double rate = time > p->begun ? (double)p->rows / (time - p->begun) : 0;
  int size = fprintf(stderr, "\r%s: %lld %s, %.1f %s/s", p->what, (long long)p->rows, p->unit, rate,
                     p->unit);
  if (size < p->shown) fprintf(stderr, "%*s", p->shown - size, "");
  fflush(stderr);
  p->shown = size;
  p->printed = time;
}

static void progress_step(progress *p, connection *c, size_t rows) {
  double time = now();
  p->rows += (sqlite3_int64)rows;
  if (!connection_settings(c)->progress) return;
  if (time - p->begun >= PROGRESS_AFTER && time - p->printed >= PROGRESS_EVERY)
    progress_show(p, time);
}

static void progress_end(progress *p) {
  if (p->shown == 0) return;
  progress_show(p, now());
  fputc('\n', stderr);
  p->shown = 0;
}

/* ---- The batch --------------------------------------------------------- */

static size_t smaller(size_t a, size_t b) {
  return a < b ? a : b;
}

static int make_room(embed_batch *b) {
  b->rows = sqlite3_malloc64(sizeof(*b->rows) * b->most);
  b->texts = sqlite3_malloc64(sizeof(*b->texts) * b->most);
  b->results = sqlite3_malloc64(sizeof(*b->results) * b->most);
  b->vectors = sqlite3_malloc64(sizeof(*b->vectors) * b->most * (size_t)b->dim);
  return b->rows != NULL && b->texts != NULL && b->results != NULL && b->vectors != NULL;
}

bert_status embed_batch_create(connection *c, loaded_model *model, const char *what,
                               const bert_embed_options *how, embed_batch **out,
                               bert_error *error) {
  int asked = connection_settings(c)->threads, dim;
  size_t threads = (size_t)(asked > 0 ? asked : bert_cores());
  embed_batch *b;
  bert_status status = bert_embed_dim(model->model, how, &dim, error);
  if (status != BERT_OK) return status;
  b = sqlite3_malloc64(sizeof(*b));
  if (b == NULL) return error_nomem(error, "preparing a batch");
  memset(b, 0, sizeof(*b));
  loaded_model_hold(model);
  b->model = model;
  b->connection = c;
  b->options = how;
  b->dim = dim;
  b->most = smaller(SHORTER * ROWS_PER_THREAD * threads, MOST_ROWS);
  b->limit = smaller(FIRST_ROWS_PER_THREAD * threads, MOST_ROWS);
  b->last_limit = smaller(ROWS_PER_THREAD * threads, MOST_ROWS);
  b->progress.what = what;
  b->progress.unit = "rows";
  b->progress.begun = now();
  if (!make_room(b)) {
    embed_batch_free(b);
    return error_nomem(error, "preparing a batch");
  }
  *out = b;
  return BERT_OK;
}

void embed_batch_free(embed_batch *b) {
  if (b == NULL) return;
  progress_end(&b->progress);
  embed_batch_begin(b);
  sqlite3_free(b->rows);
  sqlite3_free(b->texts);
  sqlite3_free(b->results);
  sqlite3_free(b->vectors);
  loaded_model_drop(b->model);
  sqlite3_free(b);
}

void embed_batch_count_as(embed_batch *b, const char *unit) {
  b->progress.unit = unit;
}

int embed_batch_dim(const embed_batch *b) {
  return b->dim;
}

void embed_batch_begin(embed_batch *b) {
  for (size_t i = 0; i < b->count; i++) {
    sqlite3_value_free(b->rows[i].key);
    sqlite3_free(b->rows[i].text);
    sqlite3_free(b->rows[i].refused);
  }
  b->count = 0;
  b->bytes = 0;
}

/* What a key holds beyond its struct. */
static uint64_t key_bytes(sqlite3_value *key) {
  int type = key != NULL ? sqlite3_value_type(key) : SQLITE_NULL;
  return type == SQLITE_TEXT || type == SQLITE_BLOB ? (uint64_t)sqlite3_value_bytes(key) : 0;
}

bert_status embed_batch_add(embed_batch *b, sqlite3_value *key, const bert_text *text,
                            bert_error *error) {
  batch_row row = {NULL, NULL, 0, 0, NULL};
  if (key != NULL) row.key = sqlite3_value_dup(key);
  if (text != NULL) {
    row.size = text->size;
    row.text = sqlite3_malloc64(row.size + 1); /* an empty text is no NULL */
    if (row.text != NULL && row.size > 0) memcpy(row.text, text->data, row.size);
  }
  if ((key != NULL && row.key == NULL) || (text != NULL && row.text == NULL)) {
    sqlite3_value_free(row.key);
    sqlite3_free(row.text);
    return error_nomem(error, "collecting texts");
  }
  b->bytes += row.size + key_bytes(row.key);
  b->rows[b->count++] = row;
  return BERT_OK;
}

int embed_batch_full(const embed_batch *b) {
  if (b->count == b->most || b->bytes >= BATCH_BYTES) return 1;
  if (b->count >= b->limit * SHORTER) return 1;
  return b->count >= b->limit && b->bytes >= (uint64_t)b->limit * ROW_BYTES;
}

/* Puts "key 12: " before an error, so that the row can be found. */
static bert_status name_key(const batch_row *r, bert_error *error) {
  if (r->key == NULL) return error->status;
  int type = sqlite3_value_type(r->key);
  const char *quote = type == SQLITE_TEXT ? "'" : "";
  bert_text text = {"(a BLOB)", 8};
  int nomem = 0;
  if (type == SQLITE_NULL) return error_prefix(error, "key NULL");
  if (type != SQLITE_BLOB && !value_text(r->key, &text, &nomem))
    return error_nomem(error, "embedding a batch");
  return error_prefix(error, "key %s%.*s%s", quote, text.size < 60 ? (int)text.size : 60, text.data,
                      quote);
}

/* The encoder has refused a text of the batch. Which one is found by giving it
** each alone, which takes no longer than the batch and ends the statement. */
static bert_status find_refused(embed_batch *b, bert_error *error) {
  bert_status status = error->status;
  for (size_t i = 0; i < b->count; i++) {
    bert_error one = {BERT_OK, ""};
    bert_text text = {b->rows[i].text, b->rows[i].size};
    if (text.data == NULL) continue;
    if (bert_embed(b->model->encoder, &text, 1, b->options, b->vectors, NULL, &one) == BERT_OK)
      continue;
    *error = one;
    embed_error_explain(b->model, b->options, error);
    return one.status == BERT_TOO_LONG || one.status == BERT_NUMERIC ? name_key(&b->rows[i], error)
                                                                     : one.status;
  }
  return status;
}

/* Lists the texts that are not NULL; returns how many they are. */
static size_t list_texts(embed_batch *b) {
  size_t count = 0;
  for (size_t i = 0; i < b->count; i++) {
    bert_text text = {b->rows[i].text, b->rows[i].size};
    if (text.data == NULL) continue;
    b->rows[i].embedded = count;
    b->texts[count++] = text;
  }
  return count;
}

static bert_status embed_range(embed_batch *b, size_t first, size_t last, bert_error *error) {
  return bert_embed(b->model->encoder, b->texts + first, last - first, b->options,
                    b->vectors + first * (size_t)b->dim, b->results + first, error);
}

/* A text that the encoder will not embed, whatever stands beside it. */
static int is_refusal(bert_status status) {
  return status == BERT_TOO_LONG || status == BERT_NUMERIC;
}

static void batch_done(embed_batch *b, double begun) {
  if (b->count >= b->limit && now() - begun < GROW_BELOW)
    b->limit = smaller(b->limit * 2, b->last_limit);
  progress_step(&b->progress, b->connection, b->count);
}

bert_status embed_batch_run(embed_batch *b, bert_error *error) {
  double begun = now();
  size_t count = list_texts(b);
  bert_status status = count > 0 ? embed_range(b, 0, count, error) : BERT_OK;
  if (is_refusal(status)) return find_refused(b, error);
  if (status == BERT_OK) batch_done(b, begun);
  return status;
}

/* Keeps with its row why text `text` was refused. */
static bert_status keep_refusal(embed_batch *b, size_t text, bert_error *error) {
  size_t row = text; /* or a later one: NULLs come between */
  while (b->rows[row].text == NULL || b->rows[row].embedded != text) row++;
  embed_error_explain(b->model, b->options, error);
  b->rows[row].refused = sqlite3_mprintf("%s", error->text);
  if (b->rows[row].refused == NULL) return error_nomem(error, "embedding a batch");
  *error = (bert_error){BERT_OK, ""};
  return BERT_OK;
}

/* Embeds texts [first, last). Where one is refused both halves are tried, so
** that a few bad ones cost little, and the good ones get their vectors. */
static bert_status embed_halves(embed_batch *b, size_t first, size_t last, bert_error *error) {
  bert_status status = embed_range(b, first, last, error);
  if (!is_refusal(status)) return status;
  if (last - first == 1) return keep_refusal(b, first, error);
  size_t middle = first + (last - first) / 2;
  status = embed_halves(b, first, middle, error);
  return status == BERT_OK ? embed_halves(b, middle, last, error) : status;
}

bert_status embed_batch_run_each(embed_batch *b, bert_error *error) {
  double begun = now();
  size_t count = list_texts(b);
  bert_status status = count > 0 ? embed_halves(b, 0, count, error) : BERT_OK;
  if (status == BERT_OK) batch_done(b, begun);
  return status;
}

size_t embed_batch_count(const embed_batch *b) {
  return b->count;
}

embed_row embed_batch_row(const embed_batch *b, size_t row) {
  const batch_row *r = &b->rows[row];
  embed_row out = {r->key, NULL, {0, 0}, r->refused};
  if (r->text == NULL || r->refused != NULL) return out;
  out.vector = b->vectors + r->embedded * (size_t)b->dim;
  out.result = b->results[r->embedded];
  return out;
}
