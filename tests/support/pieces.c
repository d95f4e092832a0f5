/*
** pieces.c: see pieces.h.
*/
#include "pieces.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sqldb.h"

enum { MOST_DIM = 64, MOST_TEXT = 2000 };

/* A vector, and what it is of. */
typedef struct piece {
  sqlite3_int64 start, stop, tokens;
  int truncated, dim;
  float vector[MOST_DIM];
} piece;

typedef struct known_text {
  char *text; /* [size] */
  size_t size, count;
  piece *pieces; /* [count] */
  struct known_text *next;
} known_text;

struct piece_cache {
  sqlite3 *db;
  const piece_rules *rules;
  sqlite3_stmt *embed; /* (text) -> start, stop, tokens, truncated, vector */
  sqlite3_stmt *plain, *scan;
  known_text *texts;
};

/* ---- Texts and their vectors -------------------------------------------- */

piece_cache *pieces_begin(sqlite3 *db, const piece_rules *rules) {
  piece_cache *c = calloc(1, sizeof *c);
  assert_non_null(c);
  c->db = db;
  c->rules = rules;
  c->embed = sqldb_prepare(
      db, rules->chunk_tokens > 0
              ? "SELECT start, stop, n_tokens, 0, bert_embed(coalesce(CAST(substr(CAST(?1 AS "
                "BLOB), start + 1, stop - start) AS TEXT), '')) FROM bert_chunks(?1, ?2, ?3)"
              : "SELECT 0, length(CAST(?1 AS BLOB)), min(bert_token_count(?1), 64), "
                "bert_is_truncated(?1), bert_embed(?1)");
  if (rules->chunk_tokens > 0) {
    sqlite3_bind_int(c->embed, 2, rules->chunk_tokens);
    sqlite3_bind_int(c->embed, 3, rules->overlap);
  }
  c->plain = sqldb_prepare(
      db,
      "SELECT id, title, body, tag, CAST(title AS TEXT), CAST(body AS TEXT) FROM m ORDER BY id");
  c->scan = sqldb_prepare(db, "SELECT rowid, title, body, tag, embedding, chunk, start, stop, "
                              "n_tokens, truncated, status FROM t ORDER BY rowid");
  return c;
}

void pieces_end(piece_cache *c) {
  while (c->texts != NULL) {
    known_text *next = c->texts->next;
    free(c->texts->text);
    free(c->texts->pieces);
    free(c->texts);
    c->texts = next;
  }
  sqlite3_finalize(c->embed);
  sqlite3_finalize(c->plain);
  sqlite3_finalize(c->scan);
  free(c);
}

static int next_row(piece_cache *c, sqlite3_stmt *s) {
  int rc = sqlite3_step(s);
  if (rc == SQLITE_ROW) return 1;
  if (rc != SQLITE_DONE) fail_msg("%s: %s", sqlite3_sql(s), sqlite3_errmsg(c->db));
  sqlite3_reset(s);
  return 0;
}

static void add_piece(known_text *t, sqlite3_stmt *s) {
  t->pieces = realloc(t->pieces, (t->count + 1) * sizeof *t->pieces);
  assert_non_null(t->pieces);
  piece *p = &t->pieces[t->count++];
  memset(p, 0, sizeof *p);
  p->start = sqlite3_column_int64(s, 0);
  p->stop = sqlite3_column_int64(s, 1);
  p->tokens = sqlite3_column_int64(s, 2);
  p->truncated = sqlite3_column_int(s, 3);
  int bytes = sqlite3_column_bytes(s, 4);
  p->dim = bytes / (int)sizeof(float);
  assert_in_range(p->dim, 1, MOST_DIM);
  memcpy(p->vector, sqlite3_column_blob(s, 4), (size_t)bytes);
}

static const known_text *look_up(piece_cache *c, const char *text, size_t size) {
  for (known_text *t = c->texts; t != NULL; t = t->next)
    if (t->size == size && memcmp(t->text, text, size) == 0) return t;
  known_text *t = calloc(1, sizeof *t);
  assert_non_null(t);
  t->text = malloc(size + 1);
  assert_non_null(t->text);
  memcpy(t->text, text, size);
  t->size = size;
  t->next = c->texts;
  c->texts = t;
  sqlite3_bind_text(c->embed, 1, t->text, (int)size, SQLITE_STATIC);
  while (next_row(c, c->embed)) add_piece(t, c->embed);
  return t;
}

/* The text of the row that c->plain stands on; NULL when it has none. */
static const known_text *text_of_row(piece_cache *c) {
  sqlite3_stmt *s = c->plain;
  char joined[MOST_TEXT];
  size_t size = 0;
  int any = 0;
  for (int i = 4; i <= 5; i++) {
    if (sqlite3_column_type(s, i) == SQLITE_NULL) continue;
    if (any) joined[size++] = '\n';
    any = 1;
    const void *bytes = sqlite3_column_text(s, i);
    size_t more = (size_t)sqlite3_column_bytes(s, i);
    assert_true(size + more + 1 < sizeof joined);
    if (more > 0) memcpy(joined + size, bytes, more);
    size += more;
  }
  return any ? look_up(c, joined, size) : NULL;
}

/* ---- The scan ------------------------------------------------------------ */

/* Vectors of int8 are off by half a step, 1/127 of the largest number. */
static double vector_tolerance(const piece_cache *c, const piece *p) {
  double largest = 0;
  for (int i = 0; i < p->dim; i++) largest = fmax(largest, fabs((double)p->vector[i]));
  return c->rules->int8 ? largest * (0.501 / 127) : 0;
}

static void check_vector(const piece_cache *c, sqlite3_int64 row, const piece *p, sqlite3_stmt *s) {
  float x[MOST_DIM];
  double most = vector_tolerance(c, p);
  if (sqlite3_column_bytes(s, 4) != p->dim * (int)sizeof(float))
    fail_msg("the vector of row %lld has %d bytes", row, sqlite3_column_bytes(s, 4));
  memcpy(x, sqlite3_column_blob(s, 4), (size_t)p->dim * sizeof(float));
  for (int i = 0; i < p->dim; i++)
    if (most > 0 ? !(fabs((double)x[i] - (double)p->vector[i]) <= most)
                 : memcmp(&x[i], &p->vector[i], sizeof(float)) != 0)
      fail_msg("row %lld: number %d of its vector is %.9g, and not %.9g", row, i, (double)x[i],
               (double)p->vector[i]);
}

static void check_piece(const piece_cache *c, sqlite3_int64 row, const known_text *t, size_t i,
                        sqlite3_stmt *s) {
  if (i >= t->count) fail_msg("row %lld has more than %zu vectors", row, t->count);
  const piece *p = &t->pieces[i];
  check_vector(c, row, p, s);
  if (sqlite3_column_int64(s, 5) != (sqlite3_int64)i || sqlite3_column_int64(s, 6) != p->start ||
      sqlite3_column_int64(s, 7) != p->stop || sqlite3_column_int64(s, 8) != p->tokens ||
      sqlite3_column_int(s, 9) != p->truncated)
    fail_msg("row %lld: chunk, start, stop, n_tokens, truncated are %lld %lld %lld %lld %d, and "
             "not %zu %lld %lld %lld %d",
             row, sqlite3_column_int64(s, 5), sqlite3_column_int64(s, 6),
             sqlite3_column_int64(s, 7), sqlite3_column_int64(s, 8), sqlite3_column_int(s, 9), i,
             p->start, p->stop, p->tokens, p->truncated);
}

/* Types before anything else: reading a number as bytes makes it a text. */
static int same_column(sqlite3_stmt *m, sqlite3_stmt *t, int column) {
  if (sqlite3_column_type(m, column) != sqlite3_column_type(t, column)) return 0;
  const void *a = sqlite3_column_blob(m, column), *b = sqlite3_column_blob(t, column);
  size_t size = (size_t)sqlite3_column_bytes(m, column);
  return (size_t)sqlite3_column_bytes(t, column) == size && (size == 0 || memcmp(a, b, size) == 0);
}

/* One row of the scan, the i-th of its text. 1 when it is pending. */
static int check_row(const piece_cache *c, sqlite3_int64 row, const known_text *t, size_t i,
                     int in_step) {
  const char *status = (const char *)sqlite3_column_text(c->scan, 10);
  assert_non_null(status);
  if (strcmp(status, "pending") == 0) {
    if (in_step) fail_msg("row %lld is pending", row);
    return 1;
  }
  if (strcmp(status, t != NULL ? "ok" : "no text") != 0) fail_msg("row %lld: %s", row, status);
  if (t != NULL)
    check_piece(c, row, t, i, c->scan);
  else if (sqlite3_column_type(c->scan, 4) != SQLITE_NULL || i > 0)
    fail_msg("row %lld has a vector, but no text", row);
  return 0;
}

void pieces_check_rows(piece_cache *c, int in_step) {
  int more = next_row(c, c->scan);
  while (next_row(c, c->plain)) {
    sqlite3_int64 row = sqlite3_column_int64(c->plain, 0);
    const known_text *t = text_of_row(c);
    size_t count = 0;
    int pending = 0;
    for (; more && sqlite3_column_int64(c->scan, 0) == row; more = next_row(c, c->scan)) {
      for (int i = 1; i <= 3; i++)
        if (!same_column(c->plain, c->scan, i))
          fail_msg("row %lld has another value in column %d", row, i);
      pending |= check_row(c, row, t, count++, in_step);
    }
    size_t wanted = t != NULL && c->rules->all_chunks ? t->count : 1;
    if (count == 0 || (!pending && count != wanted))
      fail_msg("row %lld is there %zu times, and not %zu", row, count, wanted);
  }
  if (more) fail_msg("row %lld is not in the plain table", sqlite3_column_int64(c->scan, 0));
}

/* ---- The search ---------------------------------------------------------- */

static double distance(const piece *a, const piece *b) {
  double ab = 0, aa = 0, bb = 0;
  for (int i = 0; i < a->dim; i++) {
    ab += (double)a->vector[i] * (double)b->vector[i];
    aa += (double)a->vector[i] * (double)a->vector[i];
    bb += (double)b->vector[i] * (double)b->vector[i];
  }
  return 1 - ab / sqrt(aa * bb);
}

typedef struct found {
  sqlite3_int64 row;
  double distance;
} found;

static int by_distance(const void *a, const void *b) {
  const found *x = a, *y = b;
  return (x->distance > y->distance) - (x->distance < y->distance);
}

/* Every result that there is, in order; freed with free. */
static found *walk(piece_cache *c, const piece *query, size_t *count) {
  found *all = NULL;
  size_t room = 0;
  *count = 0;
  while (next_row(c, c->plain)) {
    const known_text *t = text_of_row(c);
    for (size_t i = 0; t != NULL && i < t->count; i++) {
      found f = {sqlite3_column_int64(c->plain, 0), distance(query, &t->pieces[i])};
      if (i > 0 && !c->rules->all_chunks) {
        all[*count - 1].distance = fmin(all[*count - 1].distance, f.distance);
        continue;
      }
      if (*count == room) all = realloc(all, (room = 2 * room + 64) * sizeof *all);
      assert_non_null(all);
      all[(*count)++] = f;
    }
  }
  if (all != NULL) qsort(all, *count, sizeof *all, by_distance);
  return all;
}

/* Result number `at` is as far as the one that the walk has there, and its row has
** a piece at that distance. */
static void check_found(const found *all, size_t count, size_t at, const found *f, double most) {
  size_t i = 0;
  if (at >= count) fail_msg("more than the %zu results that there are", count);
  if (!(fabs(all[at].distance - f->distance) <= most))
    fail_msg("result %zu, row %lld, is at %.9f, and the right one, row %lld, at %.9f", at, f->row,
             f->distance, all[at].row, all[at].distance);
  while (i < count && (all[i].row != f->row || !(fabs(all[i].distance - f->distance) <= most))) i++;
  if (i == count) fail_msg("result %zu: row %lld is not at %.9f", at, f->row, f->distance);
}

void pieces_check_search(piece_cache *c, const char *text, int k, int in_step) {
  double most = c->rules->int8 ? 0.02 : 1e-6, before = -1;
  sqlite3_stmt *s =
      sqldb_prepare(c->db, k > 0 ? "SELECT rowid, distance FROM t WHERE t MATCH ?1 AND k = ?2"
                                 : "SELECT rowid, distance FROM t WHERE t MATCH ?1");
  const known_text *query = look_up(c, text, strlen(text));
  size_t count = 0, at = 0;
  found *all = walk(c, &query->pieces[0], &count);
  sqlite3_bind_text(s, 1, text, -1, SQLITE_STATIC);
  if (k > 0) sqlite3_bind_int(s, 2, k);
  for (; next_row(c, s); at++) {
    found f = {sqlite3_column_int64(s, 0), sqlite3_column_double(s, 1)};
    if (in_step) check_found(all, count, at, &f, most);
    if (!(f.distance >= before)) fail_msg("%.9f comes after %.9f", f.distance, before);
    before = f.distance;
  }
  if (in_step && at != (k > 0 && (size_t)k < count ? (size_t)k : count))
    fail_msg("%zu results for k = %d, where there are %zu", at, k, count);
  if (k > 0 && at > (size_t)k) fail_msg("%zu results for k = %d", at, k);
  sqlite3_finalize(s);
  free(all);
}
