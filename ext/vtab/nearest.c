/*
** nearest.c: vectors in order of their distance to a query, one at a time.
**
** Two piles. One holds vectors that were visited, that is read from t_vectors,
** with their true distances. The other holds those that were not, with lower
** bounds of theirs from t_packed. The nearest of the first pile is the next
** result once its distance is below every bound in the second; until then the
** vector with the lowest bound is visited. So whatever the blocks say, a result
** is one of t_vectors, with the distance that bert_cosine, bert_l2 or bert_dot
** computes; where distances are equal, those of lower rows come first.
*/
#include "query.h"

#include <math.h>
#include <string.h>

/* Of a filter that leaves few rows, each is looked up: for so many, or for such
** a part of all vectors, that costs less than scanning every block. */
enum { FEW_ROWS = 2000, FEW_PART = 20 };

/* Bounds are sorted in portions, each larger than the one before. */
enum { FIRST_PORTION = 32, PORTION_GROWTH = 4 };

struct nearest {
  vtab *v;
  const rowset *rows; /* NULL: all */
  int dim;
  float *query;       /* [dim] */
  float *scratch;     /* [dim] */
  sqlite3_stmt *read; /* (id) -> row, vector */
  size_t polls;

  hit *heap; /* [heap_count]: visited, the nearest on top */
  size_t heap_count, heap_room;

  packed_bounds packed;
  size_t *picks; /* [pick_count] of room pick_room: entries in order of bound */
  size_t pick_at, pick_count, pick_room;
  size_t picked; /* of all entries, so many were in picks by now */
  size_t portion;

  int best_only;
  sqlite3_int64 *given; /* [given_room]: hash set of rows that were results */
  unsigned char *is_given;
  size_t given_count, given_room; /* room: a power of 2, or 0 */
};

static int poll(nearest *n) {
  return ++n->polls % 256 == 0 && connection_interrupted(n->v->connection) ? SQLITE_INTERRUPT
                                                                           : SQLITE_OK;
}

/* ---- Visited vectors ----------------------------------------------------- */

/* Ids of a row rise with its chunks. */
static int comes_before(const hit *a, const hit *b) {
  if (a->distance != b->distance) return a->distance < b->distance;
  if (a->row != b->row) return a->row < b->row;
  return a->id < b->id;
}

static int heap_push(nearest *n, const hit *h) {
  if (!array_grow((void **)&n->heap, &n->heap_room, n->heap_count + 1, sizeof *n->heap))
    return SQLITE_NOMEM;
  size_t at = n->heap_count++;
  while (at > 0 && comes_before(h, &n->heap[(at - 1) / 2])) {
    n->heap[at] = n->heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  n->heap[at] = *h;
  return SQLITE_OK;
}

static hit heap_pop(nearest *n) {
  hit top = n->heap[0], moved = n->heap[--n->heap_count];
  size_t at = 0, count = n->heap_count;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= count) break;
    if (child + 1 < count && comes_before(&n->heap[child + 1], &n->heap[child])) child++;
    if (!comes_before(&n->heap[child], &moved)) break;
    n->heap[at] = n->heap[child];
    at = child;
  }
  if (count > 0) n->heap[at] = moved;
  return top;
}

/* Computes the distance of the vector in a column and puts it on the pile. A
** vector that has no distance is never a result. */
static int visit(nearest *n, sqlite3_stmt *s, int column, sqlite3_int64 id, sqlite3_int64 row) {
  const float *numbers; /* [dim] */
  int rc = store_read_vector(n->v, s, column, n->scratch, &numbers);
  if (rc != SQLITE_OK) return rc;
  hit h = {id, row, 0};
  h.distance = search_distance(n->v->declared.metric, n->query, numbers, (size_t)n->v->dim);
  return isnan(h.distance) ? SQLITE_OK : heap_push(n, &h);
}

/* Ends a statement whose rows were visited. */
static int finish(nearest *n, sqlite3_stmt *s, int rc) {
  int end = sqlite3_reset(s);
  if (rc == SQLITE_OK && end != SQLITE_OK) rc = vtab_fail_sqlite(n->v, end);
  return rc;
}

/* ---- Rows that were results ---------------------------------------------- */

/* Where a row stands in the set, or would. */
static size_t given_slot(const nearest *n, sqlite3_int64 row) {
  size_t mask = n->given_room - 1;
  size_t at = (size_t)(((uint64_t)row * 0x9E3779B97F4A7C15u) >> 20) & mask;
  while (n->is_given[at] && n->given[at] != row) at = (at + 1) & mask;
  return at;
}

static int was_given(const nearest *n, sqlite3_int64 row) {
  return n->given_count > 0 && n->is_given[given_slot(n, row)];
}

static int grow_given(nearest *n) {
  nearest larger = *n;
  larger.given_room = n->given_room > 0 ? n->given_room * 2 : 64;
  larger.given = sqlite3_malloc64(larger.given_room * sizeof *larger.given);
  larger.is_given = sqlite3_malloc64(larger.given_room);
  if (larger.given == NULL || larger.is_given == NULL) {
    sqlite3_free(larger.given);
    sqlite3_free(larger.is_given);
    return SQLITE_NOMEM;
  }
  memset(larger.is_given, 0, larger.given_room);
  for (size_t i = 0; i < n->given_room; i++) {
    if (!n->is_given[i]) continue;
    size_t at = given_slot(&larger, n->given[i]);
    larger.given[at] = n->given[i];
    larger.is_given[at] = 1;
  }
  sqlite3_free(n->given);
  sqlite3_free(n->is_given);
  *n = larger;
  return SQLITE_OK;
}

static int give(nearest *n, sqlite3_int64 row) {
  if (2 * (n->given_count + 1) > n->given_room) {
    int rc = grow_given(n);
    if (rc != SQLITE_OK) return rc;
  }
  size_t at = given_slot(n, row);
  n->given[at] = row;
  n->is_given[at] = 1;
  n->given_count++;
  return SQLITE_OK;
}

/* ---- Opening ------------------------------------------------------------- */

/* Visits all vectors of the rows of a filter. */
static int visit_rows(nearest *n) {
  static const char sql[] = "SELECT v.id, v.vector FROM @rows AS r CROSS JOIN @vectors AS v "
                            "WHERE r.row = ?1 AND v.id >= r.first AND v.id < r.first + r.count "
                            "AND +v.row = r.row";
  sqlite3_stmt *s = NULL;
  int rc = vtab_prepare(n->v, &s, sql, NULL);
  for (size_t i = 0; rc == SQLITE_OK && i < n->rows->count; i++) {
    sqlite3_bind_int64(s, 1, n->rows->rows[i]);
    while (rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
      rc = visit(n, s, 1, sqlite3_column_int64(s, 0), n->rows->rows[i]);
    rc = finish(n, s, rc);
    if (rc == SQLITE_OK) rc = poll(n);
  }
  sqlite3_finalize(s);
  return rc;
}

/* Visits the vectors that are in no block yet. */
static int visit_tail(nearest *n) {
  sqlite3_stmt *s;
  int rc = vtab_statement(n->v, VECTORS_AFTER, &s);
  if (rc != SQLITE_OK) return rc;
  sqlite3_bind_int64(s, 1, n->packed.last);
  while (rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW) {
    sqlite3_int64 row = sqlite3_column_int64(s, 1);
    if (n->rows == NULL || rowset_has(n->rows, row))
      rc = visit(n, s, 2, sqlite3_column_int64(s, 0), row);
    if (rc == SQLITE_OK) rc = poll(n);
  }
  return finish(n, s, rc);
}

static int scan_packed(nearest *n, const block_list *list) {
  search_query *query = NULL;
  bert_error error = {BERT_OK, ""};
  int rc = SQLITE_OK;
  if (search_query_make(n->v->declared.metric, n->query, (size_t)n->v->dim, &query, &error) !=
      BERT_OK)
    rc = vtab_fail_bert(n->v, &error);
  else
    rc = blocks_scan(n->v, list, query, n->rows, &n->packed);
  search_query_free(query);
  return rc;
}

static int are_few(const nearest *n) {
  return n->rows != NULL &&
         (n->rows->count <= FEW_ROWS || n->rows->count <= n->packed.entries / FEW_PART);
}

static int look_at_vectors(nearest *n) {
  block_list *list = NULL;
  int rc = blocks_list(n->v, &list, &n->packed);
  if (rc == SQLITE_OK && are_few(n)) {
    rc = visit_rows(n);
  } else if (rc == SQLITE_OK) {
    rc = scan_packed(n, list);
    if (rc == SQLITE_OK) rc = visit_tail(n);
    if (rc == SQLITE_OK)
      rc = vtab_prepare(n->v, &n->read, "SELECT row, vector FROM @vectors WHERE id = ?1", NULL);
  }
  block_list_free(list);
  return rc;
}

/* The first portion is somewhat larger than what will be taken: bounds are close
** to distances, but some lower bounds belong to larger distances. */
static size_t first_portion(size_t expect) {
  return expect < SIZE_MAX / 64 ? expect * PORTION_GROWTH + FIRST_PORTION : SIZE_MAX / 16;
}

int nearest_open(vtab *v, const float *query, const rowset *rows, int best_only, size_t expect,
                 nearest **out) {
  size_t bytes = (size_t)v->dim * sizeof(float);
  nearest *n = sqlite3_malloc64(sizeof *n);
  *out = n;
  if (n == NULL) return SQLITE_NOMEM;
  memset(n, 0, sizeof *n);
  n->v = v;
  n->dim = v->dim;
  n->rows = rows;
  n->best_only = best_only;
  n->portion = first_portion(expect);
  n->query = sqlite3_malloc64(bytes);
  n->scratch = sqlite3_malloc64(bytes);
  if (n->query == NULL || n->scratch == NULL) return SQLITE_NOMEM;
  memcpy(n->query, query, bytes);
  return look_at_vectors(n);
}

void nearest_close(nearest *n) {
  if (n == NULL) return;
  sqlite3_finalize(n->read);
  packed_bounds_clear(&n->packed);
  sqlite3_free(n->query);
  sqlite3_free(n->scratch);
  sqlite3_free(n->heap);
  sqlite3_free(n->picks);
  sqlite3_free(n->given);
  sqlite3_free(n->is_given);
  sqlite3_free(n);
}

/* ---- Going on ------------------------------------------------------------ */

/* Picks the next portion of entries in order of bound. */
static int pick_more(nearest *n) {
  float after = -INFINITY;
  size_t after_index = SIZE_MAX, left = n->packed.count - n->picked;
  size_t want = n->portion < left ? n->portion : left;
  if (n->pick_count > 0) {
    after_index = n->picks[n->pick_count - 1];
    after = n->packed.bounds[after_index];
  }
  if (want > n->pick_room) {
    size_t *picks = sqlite3_realloc64(n->picks, want * sizeof *picks);
    if (picks == NULL) return SQLITE_NOMEM;
    n->picks = picks;
    n->pick_room = want;
  }
  n->pick_count =
      search_select(n->packed.bounds, n->packed.count, after, after_index, want, n->picks);
  n->pick_at = 0;
  n->picked += n->pick_count > 0 ? n->pick_count : left;
  if (n->portion < SIZE_MAX / 16) n->portion *= PORTION_GROWTH;
  return SQLITE_OK;
}

/* The entry with the lowest bound of those not visited, into *entry; *any is 0
** when all are. */
static int next_entry(nearest *n, size_t *entry, int *any) {
  if (n->pick_at == n->pick_count && n->picked < n->packed.count) {
    int rc = pick_more(n);
    if (rc != SQLITE_OK) return rc;
  }
  *any = n->pick_at < n->pick_count;
  if (*any) *entry = n->picks[n->pick_at];
  return SQLITE_OK;
}

/* Reads a vector by its id, which may be gone, or belong to a row that the filter
** does not know. */
static int visit_entry(nearest *n, size_t entry) {
  sqlite3_int64 id = n->packed.ids[entry];
  int rc = SQLITE_OK;
  sqlite3_bind_int64(n->read, 1, id);
  if (sqlite3_step(n->read) == SQLITE_ROW) {
    sqlite3_int64 row = sqlite3_column_int64(n->read, 0);
    if (!was_given(n, row) && (n->rows == NULL || rowset_has(n->rows, row)))
      rc = visit(n, n->read, 1, id, row);
  }
  n->pick_at++;
  rc = finish(n, n->read, rc);
  return rc == SQLITE_OK ? poll(n) : rc;
}

/* Visits until the nearest of the pile cannot be beaten, nor be equalled by one
** of a lower row. */
static int visit_enough(nearest *n) {
  for (;;) {
    size_t entry = 0;
    int any = 0, rc = next_entry(n, &entry, &any);
    if (rc != SQLITE_OK || !any) return rc;
    if (n->heap_count > 0 && n->heap[0].distance < (double)n->packed.bounds[entry])
      return SQLITE_OK;
    rc = visit_entry(n, entry);
    if (rc != SQLITE_OK) return rc;
  }
}

int nearest_next(nearest *n, hit *out, int *found) {
  *found = 0;
  if (n->v->dim != n->dim)
    return vtab_fail(n->v, SQLITE_ERROR, "its vectors were made anew while it was searched");
  while (!*found) {
    int rc = visit_enough(n);
    if (rc != SQLITE_OK || n->heap_count == 0) return rc;
    *out = heap_pop(n);
    *found = !n->best_only || !was_given(n, out->row);
    if (*found && n->best_only) rc = give(n, out->row);
    if (rc != SQLITE_OK) return rc;
  }
  return SQLITE_OK;
}
