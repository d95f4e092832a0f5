/*
** store.c: the vectors of a row.
**
** The vectors of one row stand together: ids first … first + count - 1, in order
** of chunk. An id is new when no vector has it and no block names it, so it is
** above the largest of both; a row that changes gets new ids, and what blocks
** hold of it is passed over from then on.
*/
#include "vtab.h"

#include <math.h>
#include <string.h>

/* ---- What t_rows says --------------------------------------------------- */

void stored_row_clear(stored_row *r) {
  sqlite3_free(r->error);
  memset(r, 0, sizeof *r);
}

int stored_row_is_of(const stored_row *r, const joined_text *text, unsigned char hash[HASH_BYTES]) {
  if (!text->is_null) source_hash(text, hash);
  return r->found && r->has_hash == !text->is_null &&
         (text->is_null || memcmp(hash, r->hash, HASH_BYTES) == 0);
}

static int corrupt(vtab *v, sqlite3_int64 row) {
  return vtab_fail(
      v, SQLITE_CORRUPT_VTAB,
      "what %s_rows says of row %lld makes no sense; make all vectors anew: INSERT INTO "
      "%s(%s) VALUES('rebuild')",
      v->name, row, v->name, v->name);
}

/* Reads columns hash, first, count, error; 0 when they cannot be what we wrote. */
static int read_columns(sqlite3_stmt *s, stored_row *out) {
  int type = sqlite3_column_type(s, 0);
  const void *hash = sqlite3_column_blob(s, 0);
  out->found = 1;
  out->has_hash = type != SQLITE_NULL;
  if (out->has_hash) {
    if (type != SQLITE_BLOB || sqlite3_column_bytes(s, 0) != HASH_BYTES || hash == NULL) return 0;
    memcpy(out->hash, hash, HASH_BYTES);
  }
  out->first = sqlite3_column_int64(s, 1);
  out->count = sqlite3_column_int64(s, 2);
  return out->count == 0 ||
         (out->count > 0 && out->first > 0 && out->first <= LLONG_MAX - out->count);
}

static int read_error(sqlite3_stmt *s, stored_row *out) {
  if (sqlite3_column_type(s, 3) == SQLITE_NULL) return SQLITE_OK;
  const unsigned char *text = sqlite3_column_text(s, 3);
  out->error = text != NULL ? sqlite3_mprintf("%s", text) : NULL;
  return out->error != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

int store_row(vtab *v, sqlite3_int64 row, stored_row *out) {
  sqlite3_stmt *s;
  memset(out, 0, sizeof *out);
  int rc = vtab_statement(v, ROW_GET, &s);
  if (rc != SQLITE_OK) return rc;
  sqlite3_bind_int64(s, 1, row);
  if (sqlite3_step(s) == SQLITE_ROW)
    rc = read_columns(s, out) ? read_error(s, out) : corrupt(v, row);
  int reset = sqlite3_reset(s);
  if (rc == SQLITE_OK) rc = vtab_fail_sqlite(v, reset);
  if (rc != SQLITE_OK) stored_row_clear(out);
  return rc;
}

/* ---- Ids ---------------------------------------------------------------- */

/* Raises *last to column `column` of the one row of a statement, if it has one. */
static int raise_to(vtab *v, statement_id id, int column, sqlite3_int64 *last) {
  sqlite3_stmt *s;
  int rc = vtab_statement(v, id, &s);
  if (rc != SQLITE_OK) return rc;
  if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int64(s, column) > *last)
    *last = sqlite3_column_int64(s, column);
  return vtab_fail_sqlite(v, sqlite3_reset(s));
}

/* The first of `count` new ids. */
static int new_ids(vtab *v, size_t count, sqlite3_int64 *first) {
  sqlite3_int64 last = 0;
  int rc = raise_to(v, VECTOR_LAST, 0, &last);
  if (rc == SQLITE_OK) rc = raise_to(v, PACKED_LAST, 1, &last);
  if (rc != SQLITE_OK) return rc;
  if (last > LLONG_MAX - 1 - (sqlite3_int64)count)
    return vtab_fail(
        v, SQLITE_FULL,
        "no number is left for a new vector; make all vectors anew: INSERT INTO %s(%s) "
        "VALUES('rebuild')",
        v->name, v->name);
  *first = last + 1;
  return SQLITE_OK;
}

/* ---- BLOBs -------------------------------------------------------------- */

size_t store_blob_size(const vtab *v) {
  size_t dim = (size_t)v->dim;
  return v->declared.type == VECTOR_INT8 ? sizeof(float) + dim : sizeof(float) * dim;
}

/* x[dim] as a scale and codes, x ~ scale * code, the largest number at 127. */
static void quantize(const float *x, size_t dim, unsigned char *blob) {
  float largest = 0;
  for (size_t i = 0; i < dim; i++)
    if (fabsf(x[i]) > largest) largest = fabsf(x[i]);
  float scale = largest / 127;
  memcpy(blob, &scale, sizeof scale);
  for (size_t i = 0; i < dim; i++) {
    long code = scale > 0 ? lrintf(x[i] / scale) : 0;
    blob[sizeof scale + i] = (unsigned char)(int8_t)(code > 127 ? 127 : code < -127 ? -127 : code);
  }
}

static void widen(const unsigned char *blob, size_t dim, float *x) {
  float scale;
  memcpy(&scale, blob, sizeof scale);
  for (size_t i = 0; i < dim; i++) x[i] = scale * (float)(int8_t)blob[sizeof scale + i];
}

int store_read_vector(vtab *v, sqlite3_stmt *s, int column, float *scratch, const float **numbers) {
  size_t size = store_blob_size(v);
  const void *blob = sqlite3_column_blob(s, column);
  if (sqlite3_column_type(s, column) != SQLITE_BLOB ||
      (size_t)sqlite3_column_bytes(s, column) != size)
    return vtab_fail(
        v, SQLITE_CORRUPT_VTAB,
        "%s_vectors holds a vector that is no BLOB of %lld bytes; make all vectors anew: "
        "INSERT INTO %s(%s) VALUES('rebuild')",
        v->name, (sqlite3_int64)size, v->name, v->name);
  if (blob == NULL) return SQLITE_NOMEM;
  *numbers = scratch;
  if (v->declared.type == VECTOR_INT8)
    widen(blob, (size_t)v->dim, scratch);
  else if ((uintptr_t)blob % _Alignof(float) == 0)
    *numbers = blob;
  else
    memcpy(scratch, blob, size);
  return SQLITE_OK;
}

/* ---- Writing ------------------------------------------------------------ */

/* Stores one vector. `scratch` has room for a BLOB of int8. */
static int put_vector(vtab *v, sqlite3_int64 id, sqlite3_int64 row, sqlite3_int64 chunk,
                      const new_vector *x, unsigned char *scratch) {
  sqlite3_stmt *s;
  const void *blob = x->vector;
  int rc = vtab_statement(v, VECTOR_PUT, &s);
  if (rc != SQLITE_OK) return rc;
  if (v->declared.type == VECTOR_INT8) {
    quantize(x->vector, (size_t)v->dim, scratch);
    blob = scratch;
  }
  sqlite3_bind_int64(s, 1, id);
  sqlite3_bind_int64(s, 2, row);
  sqlite3_bind_int64(s, 3, chunk);
  sqlite3_bind_int64(s, 4, x->start);
  sqlite3_bind_int64(s, 5, x->stop);
  sqlite3_bind_int(s, 6, x->tokens);
  sqlite3_bind_int(s, 7, x->truncated);
  rc = sqlite3_bind_blob64(s, 8, blob, store_blob_size(v), SQLITE_STATIC);
  return rc == SQLITE_OK ? vtab_run(v, s) : vtab_fail_sqlite(v, rc);
}

static int put_vectors(vtab *v, sqlite3_int64 first, sqlite3_int64 row, const new_vector *vectors,
                       size_t count) {
  int rc = SQLITE_OK;
  unsigned char *scratch = NULL;
  if (v->declared.type == VECTOR_INT8) {
    scratch = sqlite3_malloc64(store_blob_size(v));
    if (scratch == NULL) return SQLITE_NOMEM;
  }
  for (size_t i = 0; rc == SQLITE_OK && i < count; i++)
    rc = put_vector(v, first + (sqlite3_int64)i, row, (sqlite3_int64)i, &vectors[i], scratch);
  sqlite3_free(scratch);
  return rc;
}

static int put_row(vtab *v, sqlite3_int64 row, const unsigned char *hash, sqlite3_int64 first,
                   size_t count, const char *error) {
  sqlite3_stmt *s;
  int rc = vtab_statement(v, ROW_PUT, &s);
  if (rc != SQLITE_OK) return rc;
  sqlite3_bind_int64(s, 1, row);
  if (hash != NULL) rc = sqlite3_bind_blob(s, 2, hash, HASH_BYTES, SQLITE_STATIC);
  sqlite3_bind_int64(s, 3, first);
  sqlite3_bind_int64(s, 4, (sqlite3_int64)count);
  if (rc == SQLITE_OK && error != NULL) rc = sqlite3_bind_text(s, 5, error, -1, SQLITE_STATIC);
  return rc == SQLITE_OK ? vtab_run(v, s) : vtab_fail_sqlite(v, rc);
}

static int delete_vectors(vtab *v, const stored_row *r) {
  sqlite3_stmt *s;
  if (r->count == 0) return SQLITE_OK;
  int rc = vtab_statement(v, VECTORS_DELETE, &s);
  if (rc != SQLITE_OK) return rc;
  sqlite3_bind_int64(s, 1, r->first);
  sqlite3_bind_int64(s, 2, r->first + r->count - 1);
  return vtab_run(v, s);
}

int store_replace(vtab *v, sqlite3_int64 row, const unsigned char *hash, const char *error,
                  const new_vector *vectors, size_t count) {
  stored_row before;
  sqlite3_int64 first = 0;
  int rc = store_row(v, row, &before);
  if (rc != SQLITE_OK) return rc;
  rc = delete_vectors(v, &before);
  stored_row_clear(&before);
  if (rc == SQLITE_OK && count > 0) rc = new_ids(v, count, &first);
  if (rc == SQLITE_OK) rc = put_vectors(v, first, row, vectors, count);
  return rc == SQLITE_OK ? put_row(v, row, hash, first, count, error) : rc;
}

int store_delete(vtab *v, sqlite3_int64 row) {
  stored_row before;
  sqlite3_stmt *s;
  int rc = store_row(v, row, &before);
  if (rc != SQLITE_OK || !before.found) return rc;
  rc = delete_vectors(v, &before);
  stored_row_clear(&before);
  if (rc == SQLITE_OK) rc = vtab_statement(v, ROW_DELETE, &s);
  if (rc != SQLITE_OK) return rc;
  sqlite3_bind_int64(s, 1, row);
  return vtab_run(v, s);
}
