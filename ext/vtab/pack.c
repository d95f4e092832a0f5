/*
** pack.c: blocks for a fast scan, made from the vectors in t_vectors.
**
** Blocks are only ever appended, full ones, in order of ids; the newest vectors,
** fewer than a block, are read where they are. A block is never changed: what it
** holds of vectors that are gone is passed over, and when that is more than half
** of all, every block is made anew.
*/
#include "vtab.h"

#include <string.h>

/* A block that is being written. */
typedef struct packer {
  vtab *v;
  sqlite3_int64 block, last; /* of the block before; 0 without any */
  void *bytes;               /* [size] */
  uint64_t size;
  float *scratch; /* [dim] */
} packer;

static int packer_begin(packer *p, vtab *v) {
  memset(p, 0, sizeof *p);
  p->v = v;
  p->size = search_block_size(PACK_VECTORS, (size_t)v->dim);
  p->bytes = sqlite3_malloc64(p->size);
  p->scratch = sqlite3_malloc64(sizeof(float) * (size_t)v->dim);
  return p->bytes != NULL && p->scratch != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

static void packer_end(packer *p) {
  sqlite3_free(p->bytes);
  sqlite3_free(p->scratch);
}

static int find_last(vtab *v, sqlite3_int64 *block, sqlite3_int64 *last) {
  sqlite3_stmt *s;
  *block = *last = 0;
  int rc = vtab_statement(v, PACKED_LAST, &s);
  if (rc != SQLITE_OK) return rc;
  if (sqlite3_step(s) == SQLITE_ROW) {
    *block = sqlite3_column_int64(s, 0);
    *last = sqlite3_column_int64(s, 1);
  }
  int rc_end = sqlite3_reset(s);
  if (rc_end != SQLITE_OK) return vtab_fail_sqlite(v, rc_end);
  if (*block >= 0 && *block < LLONG_MAX && *last >= 0) return SQLITE_OK;
  return vtab_fail(v, SQLITE_CORRUPT_VTAB,
                   "%s_packed holds a block with the number %lld, which cannot be; make all blocks "
                   "anew: INSERT INTO %s(%s) VALUES('optimize')",
                   v->name, *block, v->name, v->name);
}

/* The first number that a query answers, 0 for NULL. */
static int read_number(vtab *v, const char *sql, const char *more, sqlite3_int64 *number) {
  sqlite3_stmt *s = NULL;
  *number = 0;
  int rc = vtab_prepare(v, &s, sql, more);
  if (rc != SQLITE_OK) return rc;
  if (sqlite3_step(s) == SQLITE_ROW) *number = sqlite3_column_int64(s, 0);
  rc = sqlite3_finalize(s);
  return rc == SQLITE_OK ? rc : vtab_fail_sqlite(v, rc);
}

/* *enough is 1 when the vectors after `last` fill a block. */
static int look_ahead(vtab *v, sqlite3_int64 last, int *enough) {
  char more[80];
  sqlite3_int64 count;
  sqlite3_snprintf(sizeof more, more, " WHERE id > %lld LIMIT %d)", last, (int)PACK_VECTORS);
  int rc = read_number(v, "SELECT count(*) FROM (SELECT 1 FROM @vectors", more, &count);
  *enough = rc == SQLITE_OK && count == PACK_VECTORS;
  return rc;
}

/* ---- Writing ------------------------------------------------------------ */

/* Fills the block with the vectors after p->last, and moves that. */
static int fill(packer *p) {
  vtab *v = p->v;
  sqlite3_stmt *s;
  sqlite3_int64 id = 0;
  int rc = vtab_statement(v, VECTORS_AFTER, &s);
  if (rc != SQLITE_OK) return rc;
  sqlite3_bind_int64(s, 1, p->last);
  search_block_begin(p->bytes, v->declared.metric, PACK_VECTORS, (size_t)v->dim);
  for (size_t i = 0; i < PACK_VECTORS; i++) {
    const float *x = NULL;
    rc = refresh_step(v, s, &id);
    if (rc == SQLITE_DONE) rc = SQLITE_CORRUPT_VTAB; /* they have just been counted */
    if (rc == SQLITE_ROW) rc = store_read_vector(v, s, 2, p->scratch, &x);
    if (rc != SQLITE_OK) break;
    search_block_set(p->bytes, i, id, sqlite3_column_int64(s, 1), x);
  }
  sqlite3_reset(s);
  p->last = id;
  return rc;
}

static int put(packer *p) {
  sqlite3_stmt *s;
  sqlite3_int64 stamp;
  int rc = vtab_statement(p->v, PACKED_PUT, &s);
  if (rc != SQLITE_OK) return rc;
  sqlite3_randomness((int)sizeof stamp, &stamp);
  sqlite3_bind_int64(s, 1, ++p->block);
  sqlite3_bind_int64(s, 2, stamp);
  sqlite3_bind_int64(s, 3, p->last);
  sqlite3_bind_int(s, 4, PACK_VECTORS);
  rc = sqlite3_bind_blob64(s, 5, p->bytes, p->size, SQLITE_STATIC);
  return rc == SQLITE_OK ? vtab_run(p->v, s) : vtab_fail_sqlite(p->v, rc);
}

/* Appends blocks while there are vectors for a full one. */
static int append_blocks(vtab *v, int *appended) {
  packer p;
  int rc = packer_begin(&p, v), enough = 0;
  *appended = 0;
  if (rc == SQLITE_OK) rc = find_last(v, &p.block, &p.last);
  while (rc == SQLITE_OK) {
    rc = look_ahead(v, p.last, &enough);
    if (rc != SQLITE_OK || !enough) break;
    rc = fill(&p);
    if (rc == SQLITE_OK) rc = put(&p);
    *appended = 1;
  }
  packer_end(&p);
  return rc;
}

int pack_all(vtab *v) {
  sqlite3_stmt *s;
  int appended;
  int rc = vtab_statement(v, PACKED_CLEAR, &s);
  if (rc == SQLITE_OK) rc = vtab_run(v, s);
  return rc == SQLITE_OK ? append_blocks(v, &appended) : rc;
}

int pack_append(vtab *v) {
  sqlite3_int64 block, last, packed = 0, alive = 0;
  int appended, enough = 0;
  int rc = find_last(v, &block, &last);
  if (rc == SQLITE_OK) rc = look_ahead(v, last, &enough);
  if (rc != SQLITE_OK || !enough) return rc;
  rc = append_blocks(v, &appended);
  if (rc == SQLITE_OK) rc = read_number(v, "SELECT sum(entries) FROM @packed", NULL, &packed);
  if (rc == SQLITE_OK) rc = read_number(v, "SELECT sum(count) FROM @rows", NULL, &alive);
  return rc == SQLITE_OK && packed / 2 > alive ? pack_all(v) : rc;
}
