/*
** check.c: integrity-check, all that is stored held against itself.
**
** Three steps that lean on each other: each row has the vectors it says it has;
** there are no others; and the blocks hold exactly these, where they hold any of
** their range. Last, the texts of a table that keeps them are in step, or in the
** queue.
*/
#include "vtab.h"

#include <string.h>

typedef struct checker {
  vtab *v;
  char *problem;         /* the first one found */
  sqlite3_int64 vectors; /* that rows say they have */
  float *scratch;        /* [dim] */
  void *expected;        /* [expected_size], a block of one vector */
  uint64_t expected_size;
} checker;

/* Notes a problem, or that there is no memory to. */
static int report(checker *c, const char *format, ...) {
  va_list list;
  va_start(list, format);
  c->problem = sqlite3_vmprintf(format, list);
  va_end(list);
  return c->problem != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

/* Steps a statement as refresh_step; SQLITE_DONE also when a problem was found. */
static int step(checker *c, sqlite3_stmt *s) {
  sqlite3_int64 row;
  return c->problem != NULL ? SQLITE_DONE : refresh_step(c->v, s, &row);
}

/* Ends a loop over a statement of ours that came to rc. */
static int finish(sqlite3_stmt *s, int rc) {
  sqlite3_finalize(s);
  return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* ---- The table's record ------------------------------------------------- */

static int check_config(checker *c) {
  static const char sql[] =
      "SELECT key FROM @config WHERE "
      "(key IN ('format', 'dim', 'swept') AND typeof(value) <> 'integer') OR "
      "(key IN ('hash', 'model', 'source', 'precision', 'fingerprint') AND typeof(value) <> "
      "'text') OR "
      "(key = 'complete' AND value IS NOT 1) OR (key = 'format' AND value < 1) OR "
      "(key = 'dim' AND value < 1) UNION ALL "
      "SELECT need.column1 FROM (VALUES ('format'), ('dim'), ('hash'), ('model'), ('fingerprint')) "
      "AS need WHERE need.column1 NOT IN (SELECT key FROM @config)";
  sqlite3_stmt *s = NULL;
  int rc = vtab_prepare(c->v, &s, sql, NULL);
  while (rc == SQLITE_OK) {
    rc = step(c, s);
    if (rc == SQLITE_ROW)
      rc = report(c, "in %s_config the value of '%s' is missing or makes no sense", c->v->name,
                  sqlite3_column_text(s, 0));
  }
  return finish(s, rc);
}

/* ---- Rows and their vectors --------------------------------------------- */

/* What one row of t_rows says. */
typedef struct claim {
  sqlite3_int64 row, first, count;
} claim;

enum { ROWS_ROW, ROWS_HASH_TYPE, ROWS_HASH_SIZE, ROWS_FIRST, ROWS_COUNT, ROWS_ERROR, ROWS_TYPES };

/* Checks that the columns of a row agree. */
static int check_claim(checker *c, sqlite3_stmt *s, const claim *k) {
  const char *hash = (const char *)sqlite3_column_text(s, ROWS_HASH_TYPE);
  int has_error = sqlite3_column_type(s, ROWS_ERROR) != SQLITE_NULL;
  if (hash == NULL) return SQLITE_NOMEM;
  int has_hash = strcmp(hash, "null") != 0;
  if (has_hash &&
      (strcmp(hash, "blob") != 0 || sqlite3_column_int(s, ROWS_HASH_SIZE) != HASH_BYTES))
    return report(c, "the hash of row %lld is no BLOB of %d bytes", k->row, (int)HASH_BYTES);
  if (!sqlite3_column_int(s, ROWS_TYPES) || k->count < 0 ||
      (k->count > 0 && (k->first < 1 || k->first > LLONG_MAX - k->count)))
    return report(c, "row %lld says it has %lld vectors from number %lld on", k->row, k->count,
                  k->first);
  if (k->count > 0 && (!has_hash || has_error))
    return report(c, "row %lld has vectors although it has %s", k->row,
                  has_error ? "an error" : "no text");
  if (k->count == 0 && has_hash && !has_error)
    return report(c, "row %lld has a text, but no vector and no error", k->row);
  if (k->count > 1 && c->v->declared.chunk_tokens == 0)
    return report(c, "row %lld has %lld vectors in a table without chunk_tokens", k->row, k->count);
  return SQLITE_OK;
}

enum { VECTOR_ID, VECTOR_ROW, VECTOR_CHUNK, VECTOR_RANGE_IS_SANE, VECTOR_BYTES };

static int check_vector(checker *c, sqlite3_stmt *s, const claim *k, sqlite3_int64 chunk) {
  sqlite3_int64 id = sqlite3_column_int64(s, VECTOR_ID);
  sqlite3_int64 bytes = (sqlite3_int64)store_blob_size(c->v);
  if (id != k->first + chunk)
    return report(c, "vector %lld of row %lld is missing", k->first + chunk, k->row);
  if (sqlite3_column_int64(s, VECTOR_ROW) != k->row)
    return report(c, "vector %lld is claimed by row %lld, but says row %lld", id, k->row,
                  sqlite3_column_int64(s, VECTOR_ROW));
  if (sqlite3_column_int64(s, VECTOR_CHUNK) != chunk)
    return report(c, "vector %lld says it is chunk %lld of its row, but it is chunk %lld", id,
                  sqlite3_column_int64(s, VECTOR_CHUNK), chunk);
  if (!sqlite3_column_int(s, VECTOR_RANGE_IS_SANE))
    return report(c, "start, stop, tokens or truncated of vector %lld make no sense", id);
  if (sqlite3_column_type(s, VECTOR_BYTES) != SQLITE_INTEGER ||
      sqlite3_column_int64(s, VECTOR_BYTES) != bytes)
    return report(c, "vector %lld is no BLOB of %lld bytes", id, bytes);
  return SQLITE_OK;
}

/* Checks that vectors [first, first + count) are there; `s` lists them. */
static int check_vectors(checker *c, sqlite3_stmt *s, const claim *k) {
  sqlite3_int64 chunk = 0;
  int rc = SQLITE_OK;
  sqlite3_bind_int64(s, 1, k->first);
  sqlite3_bind_int64(s, 2, k->first + k->count - 1);
  while (rc == SQLITE_OK) {
    rc = step(c, s);
    if (rc == SQLITE_ROW) rc = check_vector(c, s, k, chunk++);
  }
  sqlite3_reset(s);
  if (rc != SQLITE_DONE) return rc;
  if (c->problem == NULL && chunk < k->count)
    return report(c, "vector %lld of row %lld is missing", k->first + chunk, k->row);
  return SQLITE_OK;
}

static int check_rows(checker *c) {
  sqlite3_stmt *rows = NULL, *vectors = NULL;
  int rc =
      vtab_prepare(c->v, &rows,
                   "SELECT row, typeof(hash), length(hash), first, count, error, typeof(first) = "
                   "'integer' AND typeof(count) = 'integer' FROM @rows ORDER BY row",
                   NULL);
  if (rc == SQLITE_OK)
    rc =
        vtab_prepare(c->v, &vectors,
                     "SELECT id, row, chunk, start >= 0 AND start <= stop AND tokens > 0 AND "
                     "truncated IN (0, 1), CASE typeof(vector) WHEN 'blob' THEN length(vector) END "
                     "FROM @vectors WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
                     NULL);
  while (rc == SQLITE_OK) {
    rc = step(c, rows);
    if (rc != SQLITE_ROW) break;
    claim k = {sqlite3_column_int64(rows, ROWS_ROW), sqlite3_column_int64(rows, ROWS_FIRST),
               sqlite3_column_int64(rows, ROWS_COUNT)};
    rc = check_claim(c, rows, &k);
    if (rc == SQLITE_OK && c->problem == NULL && k.count > 0) rc = check_vectors(c, vectors, &k);
    if (c->problem == NULL) c->vectors += k.count;
  }
  sqlite3_finalize(vectors);
  return finish(rows, rc);
}

/* Each row has its own vectors, since they name it; so there are others only if
** there are more. */
static int check_strays(checker *c) {
  sqlite3_stmt *s = NULL;
  int rc = vtab_prepare(c->v, &s, "SELECT count(*) FROM @vectors", NULL);
  if (rc == SQLITE_OK) rc = step(c, s);
  int more = rc == SQLITE_ROW && sqlite3_column_int64(s, 0) != c->vectors;
  sqlite3_finalize(s);
  s = NULL;
  if (rc != SQLITE_ROW || !more) return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
  rc = vtab_prepare(
      c->v, &s,
      "SELECT id, row FROM @vectors AS a WHERE NOT EXISTS (SELECT 1 FROM @rows AS b "
      "WHERE b.row = a.row AND a.id BETWEEN b.first AND b.first + b.count - 1) LIMIT 1",
      NULL);
  if (rc == SQLITE_OK) rc = step(c, s);
  if (rc == SQLITE_ROW)
    rc = report(c, "vector %lld names row %lld, which does not have it", sqlite3_column_int64(s, 0),
                sqlite3_column_int64(s, 1));
  return finish(s, rc);
}

/* ---- Blocks ------------------------------------------------------------- */

/* A block while its entries are compared with the vectors of its range. */
typedef struct packed {
  sqlite3_int64 number, last, before; /* before: `last` of the block before */
  search_block view;
} packed;

static int check_order(checker *c, const packed *p) {
  sqlite3_int64 before = p->before;
  for (size_t i = 0; i < p->view.count; i++) {
    sqlite3_int64 id = search_block_id(&p->view, i);
    if (id <= before)
      return report(c, "in block %lld, entry %lld is out of order", p->number, (sqlite3_int64)i);
    before = id;
  }
  if (p->view.count > 0 && before == p->last) return SQLITE_OK;
  return report(c, "block %lld does not end with vector %lld, as it says", p->number, p->last);
}

/* Entry `i` is what the vector that `s` stands on gives when it is packed. */
static int check_entry(checker *c, const packed *p, size_t i, sqlite3_stmt *s) {
  vtab *v = c->v;
  search_block one;
  const float *x = NULL;
  sqlite3_int64 id = sqlite3_column_int64(s, 0), row = sqlite3_column_int64(s, 1);
  bert_error error = {BERT_OK, ""};
  size_t dim = (size_t)v->dim;
  if (search_block_row(&p->view, i) != row)
    return report(c, "block %lld says that vector %lld is of row %lld, but it is of row %lld",
                  p->number, id, search_block_row(&p->view, i), row);
  int rc = store_read_vector(v, s, 2, c->scratch, &x);
  if (rc != SQLITE_OK) return rc;
  search_block_begin(c->expected, v->declared.metric, 1, dim);
  search_block_set(c->expected, 0, id, row, x);
  if (search_block_view(c->expected, c->expected_size, v->declared.metric, dim, &one, &error) !=
      BERT_OK)
    return vtab_fail_bert(v, &error);
  if (memcmp(one.scale, p->view.scale + 4 * i, 4) == 0 &&
      memcmp(one.error, p->view.error + 4 * i, 4) == 0 &&
      memcmp(one.norm, p->view.norm + 4 * i, 4) == 0 &&
      memcmp(one.codes, p->view.codes + dim * i, dim) == 0)
    return SQLITE_OK;
  return report(c, "block %lld does not hold what vector %lld is", p->number, id);
}

/* Each vector of the block's range must be in it. */
static int check_entries(checker *c, const packed *p) {
  sqlite3_stmt *s;
  size_t i = 0;
  int rc = vtab_statement(c->v, VECTORS_AFTER, &s);
  if (rc != SQLITE_OK) return rc;
  sqlite3_bind_int64(s, 1, p->before);
  while (rc == SQLITE_OK) {
    rc = step(c, s);
    if (rc != SQLITE_ROW) break;
    sqlite3_int64 id = sqlite3_column_int64(s, 0);
    if (id > p->last) break;
    while (i < p->view.count && search_block_id(&p->view, i) < id) i++;
    if (i == p->view.count || search_block_id(&p->view, i) != id)
      rc = report(c, "block %lld lacks vector %lld", p->number, id);
    else
      rc = check_entry(c, p, i, s);
  }
  sqlite3_reset(s);
  return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The block that `s` stands on: block, last, entries, data. */
static int check_block(checker *c, sqlite3_stmt *s, packed *p) {
  const vtab *v = c->v;
  bert_error error = {BERT_OK, ""};
  p->number = sqlite3_column_int64(s, 0);
  p->last = sqlite3_column_int64(s, 1);
  const void *data = sqlite3_column_blob(s, 3);
  int bytes = sqlite3_column_bytes(s, 3);
  if (data == NULL && bytes > 0) return SQLITE_NOMEM;
  if (search_block_view(data != NULL ? data : "", (uint64_t)bytes, v->declared.metric,
                        (size_t)v->dim, &p->view, &error) != BERT_OK)
    return report(c, "block %lld: %s", p->number, error.text);
  if ((sqlite3_int64)p->view.count != sqlite3_column_int64(s, 2))
    return report(c, "block %lld says it has %lld entries, but has %lld", p->number,
                  sqlite3_column_int64(s, 2), (sqlite3_int64)p->view.count);
  int rc = check_order(c, p);
  if (rc == SQLITE_OK && c->problem == NULL) rc = check_entries(c, p);
  p->before = p->last;
  return rc;
}

static int check_packed(checker *c) {
  packed p = {.before = 0};
  sqlite3_stmt *s = NULL;
  size_t dim = (size_t)c->v->dim;
  c->expected_size = search_block_size(1, dim);
  c->expected = sqlite3_malloc64(c->expected_size);
  c->scratch = sqlite3_malloc64(sizeof(float) * dim);
  if (c->expected == NULL || c->scratch == NULL) return SQLITE_NOMEM;
  int rc =
      vtab_prepare(c->v, &s, "SELECT block, last, entries, data FROM @packed ORDER BY block", NULL);
  while (rc == SQLITE_OK) {
    rc = step(c, s);
    if (rc == SQLITE_ROW) rc = check_block(c, s, &p);
  }
  return finish(s, rc);
}

/* ---- Own texts ---------------------------------------------------------- */

/* A row that is not in step must stand in the queue. */
static int check_text(checker *c, sqlite3_int64 row, const joined_text *text,
                      sqlite3_stmt *queued) {
  unsigned char hash[HASH_BYTES];
  int same = 0;
  int rc = refresh_compare(c->v, row, text, hash, &same);
  if (rc != SQLITE_OK || same) return rc;
  sqlite3_bind_int64(queued, 1, row);
  rc = step(c, queued);
  sqlite3_reset(queued);
  if (rc == SQLITE_DONE)
    return report(c,
                  "the vectors of row %lld are not of its text, and nothing says that they are "
                  "to be made anew",
                  row);
  return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static int check_texts(checker *c) {
  vtab *v = c->v;
  joined_text text = {NULL, 0, 0, 0};
  sqlite3_stmt *s, *queued = NULL;
  int rc = vtab_prepare(v, &queued, "SELECT 1 FROM @queue WHERE row = ?1", NULL);
  if (rc == SQLITE_OK) rc = vtab_statement(v, SOURCE_AFTER, &s);
  if (rc == SQLITE_OK) {
    refresh_from_start(s);
    while (rc == SQLITE_OK) {
      rc = step(c, s);
      if (rc != SQLITE_ROW) break;
      rc = source_join(v, s, 1, &text);
      if (rc == SQLITE_OK) rc = check_text(c, sqlite3_column_int64(s, 0), &text, queued);
    }
    sqlite3_reset(s);
  }
  joined_text_free(&text);
  return finish(queued, rc);
}

static int check_lost_texts(checker *c) {
  sqlite3_stmt *s;
  int rc = vtab_statement(c->v, ORPHANS, &s);
  if (rc != SQLITE_OK) return rc;
  rc = step(c, s);
  if (rc == SQLITE_ROW)
    rc = report(c, "row %lld has vectors, but its text is gone", sqlite3_column_int64(s, 0));
  sqlite3_reset(s);
  return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* ---- All of it ---------------------------------------------------------- */

int check_run(vtab *v, char **problem) {
  static int (*const steps[])(checker *) = {check_config, check_rows,       check_strays,
                                            check_packed, check_lost_texts, check_texts};
  size_t count = sizeof steps / sizeof steps[0];
  if (v->declared.content != NULL) count -= 2; /* whose texts are not ours to answer for */
  checker c = {.v = v};
  int rc = SQLITE_OK;
  for (size_t i = 0; rc == SQLITE_OK && c.problem == NULL && i < count; i++) rc = steps[i](&c);
  sqlite3_free(c.scratch);
  sqlite3_free(c.expected);
  if (rc != SQLITE_OK) {
    sqlite3_free(c.problem);
    c.problem = NULL;
  }
  *problem = c.problem;
  return rc;
}
