/*
** vectorize.c: texts of rows become vectors, many at a time.
**
** Texts, or the chunks that one is cut into, are collected for a batch; when it
** is full it is embedded, and each row is stored as soon as its last vector is
** there. A long text may fill many batches: so what is in memory at any time is
** one batch, the text that is being cut, and the vectors of one row.
**
** Batches keep the order in which rows came, so only the first of the rows that
** wait can have some of its vectors and lack others.
*/
#include "vtab.h"

#include <string.h>

/* A row that has pieces in the batch, or had. */
typedef struct waiting_row {
  sqlite3_int64 row;
  unsigned char hash[HASH_BYTES];
  size_t pieces; /* SIZE_MAX while it is being cut */
} waiting_row;

/* Bytes of the row's text that an entry of the batch was made from. */
typedef struct piece {
  size_t start, stop;
} piece;

struct vectorizer {
  vtab *v;
  bert_embed_options how;
  loaded_model *model; /* held by the batch */
  embed_batch *batch;  /* NULL until there is a text */
  waiting_row *rows;   /* [row_count], the first `stored` of which wait no longer */
  size_t row_count, row_room, stored;
  piece *pieces; /* [piece_count], one for each entry of the batch */
  size_t piece_count, piece_room;
  /* The row that is being put together, the first that waits. */
  size_t done;         /* of its pieces */
  new_vector *vectors; /* [vector_count] */
  size_t vector_count, vector_room;
  float *numbers; /* [number_room / dim, dim] */
  size_t number_room;
  char *refused; /* why it has no vectors */
};

int vectorize_create(vtab *v, vectorizer **out) {
  vectorizer *z = sqlite3_malloc64(sizeof *z);
  if (z == NULL) return SQLITE_NOMEM;
  memset(z, 0, sizeof *z);
  z->v = v;
  *out = z;
  return SQLITE_OK;
}

void vectorize_free(vectorizer *z) {
  if (z == NULL) return;
  embed_batch_free(z->batch);
  sqlite3_free(z->rows);
  sqlite3_free(z->pieces);
  sqlite3_free(z->vectors);
  sqlite3_free(z->numbers);
  sqlite3_free(z->refused);
  sqlite3_free(z);
}

/* ---- Rows are put together ---------------------------------------------- */

static int store_first(vectorizer *z) {
  const waiting_row *r = &z->rows[z->stored++];
  size_t dim = (size_t)z->v->dim;
  for (size_t i = 0; i < z->vector_count; i++) z->vectors[i].vector = z->numbers + i * dim;
  int rc = store_replace(z->v, r->row, r->hash, z->refused, z->vectors, z->vector_count);
  sqlite3_free(z->refused);
  z->refused = NULL;
  z->done = z->vector_count = 0;
  return rc;
}

/* One more vector for the first row. */
static int add_vector(vectorizer *z, const piece *p, const embed_row *e) {
  size_t at = z->vector_count, dim = (size_t)z->v->dim;
  if (!array_grow((void **)&z->vectors, &z->vector_room, at + 1, sizeof *z->vectors) ||
      !array_grow((void **)&z->numbers, &z->number_room, (at + 1) * dim, sizeof *z->numbers))
    return SQLITE_NOMEM;
  memcpy(z->numbers + at * dim, e->vector, dim * sizeof *z->numbers);
  z->vectors[at] = (new_vector){.start = (sqlite3_int64)p->start,
                                .stop = (sqlite3_int64)p->stop,
                                .tokens = e->result.tokens,
                                .truncated = e->result.truncated};
  z->vector_count++;
  return SQLITE_OK;
}

/* A row that is refused in one of its chunks has no vectors at all: half a text
** that is found would look like a whole one. */
static int refuse_first(vectorizer *z, const char *why) {
  z->refused = z->rows[z->stored].pieces == 1
                   ? sqlite3_mprintf("%s", why)
                   : sqlite3_mprintf("chunk %lld: %s", (sqlite3_int64)z->done, why);
  z->vector_count = 0;
  return z->refused != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

static int take_entry(vectorizer *z, size_t entry) {
  embed_row e = embed_batch_row(z->batch, entry);
  int rc = SQLITE_OK;
  if (e.refused != NULL && z->refused == NULL)
    rc = refuse_first(z, e.refused);
  else if (z->refused == NULL)
    rc = add_vector(z, &z->pieces[entry], &e);
  z->done++;
  return rc;
}

static int run_batch(vectorizer *z) {
  bert_error error = {BERT_OK, ""};
  int rc = SQLITE_OK;
  if (embed_batch_run_each(z->batch, &error) != BERT_OK) return vtab_fail_bert(z->v, &error);
  for (size_t i = 0; rc == SQLITE_OK && i < z->piece_count; i++) {
    rc = take_entry(z, i);
    if (rc == SQLITE_OK && z->done == z->rows[z->stored].pieces) rc = store_first(z);
  }
  z->row_count -= z->stored;
  memmove(z->rows, z->rows + z->stored, z->row_count * sizeof *z->rows);
  z->stored = z->piece_count = 0;
  embed_batch_begin(z->batch);
  return rc;
}

int vectorize_finish(vectorizer *z) {
  return z->piece_count > 0 ? run_batch(z) : SQLITE_OK;
}

/* ---- Texts come in ------------------------------------------------------ */

static int start(vectorizer *z) {
  vtab *v = z->v;
  bert_error error = {BERT_OK, ""};
  int rc = model_find(v, 0, &z->how);
  if (rc != SQLITE_OK) return rc;
  z->model = v->model;
  if (embed_batch_create(v->connection, z->model, v->name, &z->how, &z->batch, &error) != BERT_OK)
    return vtab_fail_bert(v, &error);
  if (v->declared.chunk_tokens > 0) embed_batch_count_as(z->batch, "chunks");
  if (embed_batch_dim(z->batch) == v->dim) return SQLITE_OK;
  return vtab_fail(v, SQLITE_CORRUPT_VTAB,
                   "%s_config says that vectors have %d numbers, but its model gives %d; make them "
                   "all anew: INSERT INTO %s(%s) VALUES('rebuild')",
                   v->name, v->dim, embed_batch_dim(z->batch), v->name, v->name);
}

static int add_piece(vectorizer *z, const joined_text *text, size_t from, size_t to) {
  bert_error error = {BERT_OK, ""};
  bert_text bytes = {to > from ? text->data + from : "", to - from};
  if (!array_grow((void **)&z->pieces, &z->piece_room, z->piece_count + 1, sizeof *z->pieces))
    return SQLITE_NOMEM;
  if (embed_batch_add(z->batch, NULL, &bytes, &error) != BERT_OK)
    return vtab_fail_bert(z->v, &error);
  z->pieces[z->piece_count++] = (piece){from, to};
  return embed_batch_full(z->batch) ? run_batch(z) : SQLITE_OK;
}

static int add_row(vectorizer *z, sqlite3_int64 row, const unsigned char *hash, size_t pieces) {
  if (!array_grow((void **)&z->rows, &z->row_room, z->row_count + 1, sizeof *z->rows))
    return SQLITE_NOMEM;
  waiting_row *r = &z->rows[z->row_count++];
  r->row = row;
  r->pieces = pieces;
  memcpy(r->hash, hash, HASH_BYTES);
  return SQLITE_OK;
}

/* How many chunks there are is known with the last one. */
static int add_chunks(vectorizer *z, sqlite3_int64 row, const unsigned char *hash,
                      const joined_text *text) {
  cutter c;
  bert_chunk chunk;
  size_t count = 0;
  int is_last = 0;
  int rc = add_row(z, row, hash, SIZE_MAX);
  cutter_begin(&c, z->v, z->model->model, text);
  while (rc == SQLITE_OK && !is_last) {
    rc = cutter_next(&c, &chunk, &is_last);
    if (rc != SQLITE_OK) break;
    count++;
    if (is_last) z->rows[z->row_count - 1].pieces = count;
    rc = add_piece(z, text, chunk.start, chunk.stop);
  }
  cutter_end(&c);
  return rc;
}

int vectorize_row(vectorizer *z, sqlite3_int64 row, const unsigned char *hash,
                  const joined_text *text) {
  int rc = z->batch == NULL ? start(z) : SQLITE_OK;
  if (rc != SQLITE_OK) return rc;
  if (z->v->declared.chunk_tokens > 0) return add_chunks(z, row, hash, text);
  rc = add_row(z, row, hash, 1);
  return rc == SQLITE_OK ? add_piece(z, text, 0, text->size) : rc;
}
