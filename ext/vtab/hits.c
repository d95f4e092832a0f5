/*
** hits.c: rows that MATCH finds, in order of distance.
*/
#include "query.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- k, distance, LIMIT -------------------------------------------------- */

static int wrong_k(vtab *v, const char *found) {
  return vtab_fail(v, SQLITE_ERROR,
                   "k must be an integer of at least 0, not %s; it says how many rows are wanted, "
                   "as in WHERE %s MATCH 'some words' AND k = 10",
                   found, v->name);
}

static int misused_k(vtab *v) {
  return vtab_fail(v, SQLITE_ERROR,
                   "k says how many rows are wanted, once and with =, as in WHERE %s MATCH 'some "
                   "words' AND k = 10",
                   v->name);
}

/* A host language that has only doubles binds 3 as 3.0, one that has only texts '3'. */
static int read_k(cursor *c, sqlite3_value *value) {
  vtab *v = (vtab *)c->base.pVtab;
  char found[60];
  double number = sqlite3_value_double(value);
  switch (sqlite3_value_numeric_type(value)) {
  case SQLITE_NULL: return wrong_k(v, "NULL");
  case SQLITE_BLOB: return wrong_k(v, "a BLOB");
  case SQLITE_TEXT:
    sqlite3_snprintf(sizeof found, found, "the text '%.30s'", sqlite3_value_text(value));
    return wrong_k(v, found);
  case SQLITE_FLOAT:
    if (number >= 0 && number < 9e15 && number == floor(number)) break;
    sqlite3_snprintf(sizeof found, found, "%.15g", number);
    return wrong_k(v, found);
  default:
    if (sqlite3_value_int64(value) >= 0) break;
    sqlite3_snprintf(sizeof found, found, "%lld", sqlite3_value_int64(value));
    return wrong_k(v, found);
  }
  c->k = sqlite3_value_int64(value);
  c->has_k = 1;
  return SQLITE_OK;
}

/* Conditions on the distance only say when to stop: SQLite checks them too. One
** that compares with NULL is never true, and one with a text is left to SQLite. */
static void read_bound(cursor *c, sqlite3_value *value) {
  int type = sqlite3_value_type(value);
  double bound = sqlite3_value_double(value);
  if (type == SQLITE_NULL) c->at_end = 1;
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return;
  if (!c->has_bound || bound < c->bound) c->bound = bound;
  c->has_bound = 1;
}

static int read_limits(cursor *c, const plan_term *terms, int count, sqlite3_int64 *expect) {
  int rc = SQLITE_OK;
  c->has_k = 0;
  c->has_bound = 0;
  c->left = INT64_MAX;
  *expect = 0;
  for (int i = 0; rc == SQLITE_OK && i < count; i++) {
    if (terms[i].kind == 'K') rc = read_k(c, terms[i].value);
    if (terms[i].kind == 'X') rc = misused_k((vtab *)c->base.pVtab);
    if (terms[i].kind == 'D') read_bound(c, terms[i].value);
    if (terms[i].kind == 'L') *expect = sqlite3_value_int64(terms[i].value);
  }
  if (c->has_k) c->left = c->k;
  if (c->has_k && (*expect <= 0 || c->k < *expect)) *expect = c->k;
  if (*expect < 0) *expect = 0;
  return rc;
}

/* ---- The query vector ---------------------------------------------------- */

static int wrong_vector(vtab *v, const char *what) {
  return vtab_fail(v, SQLITE_ERROR,
                   "%s; MATCH takes a text, or a vector of %d float32 numbers such as "
                   "bert_embed() makes: WHERE %s MATCH 'some words' AND k = 10",
                   what, v->dim, v->name);
}

static int has_direction(const float *x, int dim) {
  return !isnan(bert_cosine(x, x, (size_t)dim));
}

static int read_blob(vtab *v, sqlite3_value *value, float *query) {
  const void *blob = sqlite3_value_blob(value);
  int size = sqlite3_value_bytes(value), wanted = v->dim * (int)sizeof(float);
  char what[120];
  if (size != wanted) {
    sqlite3_snprintf(sizeof what, what, "a BLOB of %d bytes, where this table's vectors have %d",
                     size, wanted);
    return wrong_vector(v, what);
  }
  if (blob == NULL) return size > 0 ? SQLITE_NOMEM : wrong_vector(v, "an empty BLOB");
  memcpy(query, blob, (size_t)size);
  for (int i = 0; i < v->dim; i++) {
    if (isfinite(query[i])) continue;
    sqlite3_snprintf(sizeof what, what, "number %d of the vector is not finite", i);
    return wrong_vector(v, what);
  }
  if (v->declared.metric == SEARCH_COSINE && !has_direction(query, v->dim))
    return wrong_vector(v, "a vector of zeros has no direction, and so no cosine");
  return SQLITE_OK;
}

static int embed_text(vtab *v, sqlite3_value *value, float *query) {
  bert_embed_options how;
  bert_error error = {BERT_OK, ""};
  bert_text text;
  int nomem, dim = 0, rc = model_find(v, 1, &how);
  if (rc != SQLITE_OK) return rc;
  if (!value_text(value, &text, &nomem)) return SQLITE_NOMEM;
  bert_status status = bert_embed_dim(v->model->model, &how, &dim, &error);
  if (status == BERT_OK && dim != v->dim)
    return vtab_fail(v, SQLITE_ERROR, "its vectors have %d numbers, and its model gives %d", v->dim,
                     dim);
  if (status == BERT_OK)
    status = bert_embed(v->model->encoder, &text, 1, &how, query, NULL, &error);
  return status == BERT_OK ? SQLITE_OK : vtab_fail_bert(v, &error);
}

/* Makes c->query of the right side of MATCH. In a join a cursor is asked again
** and again, often for the same text, which is then embedded once. */
static int read_match(cursor *c, sqlite3_value *value) {
  vtab *v = (vtab *)c->base.pVtab;
  int type = sqlite3_value_type(value), rc;
  char what[80];
  if (c->match != NULL && c->query != NULL && c->query_dim == v->dim && value_same(c->match, value))
    return SQLITE_OK;
  c->is_kept = 0;
  sqlite3_value_free(c->match);
  sqlite3_free(c->query);
  c->query = NULL;
  c->query_dim = v->dim;
  c->match = sqlite3_value_dup(value);
  if (c->match == NULL) return SQLITE_NOMEM;
  if (type == SQLITE_NULL) return SQLITE_OK;
  if (type != SQLITE_TEXT && type != SQLITE_BLOB) {
    sqlite3_snprintf(sizeof what, what, "the number %.20s is neither a text nor a vector",
                     sqlite3_value_text(c->match));
    return wrong_vector(v, what);
  }
  float *query = sqlite3_malloc64(sizeof(float) * (sqlite3_uint64)v->dim); /* [dim] */
  if (query == NULL) return SQLITE_NOMEM;
  rc = type == SQLITE_TEXT ? embed_text(v, c->match, query) : read_blob(v, c->match, query);
  if (rc == SQLITE_OK)
    c->query = query;
  else
    sqlite3_free(query);
  return rc;
}

/* ---- Refreshing before a search ------------------------------------------ */

static int refresh_before(cursor *c) {
  if (c->refreshed) return SQLITE_OK;
  int rc = refresh_for_query((vtab *)c->base.pVtab);
  c->refreshed = rc == SQLITE_OK;
  return rc;
}

/* ---- The search ---------------------------------------------------------- */

static int open_search(cursor *c, const plan_term *terms, int count, sqlite3_int64 expect) {
  vtab *v = (vtab *)c->base.pVtab;
  int filtered = 0;
  /* Without chunks a row has one vector; but in a table that is damaged, who knows. */
  int best_only = !v->declared.all_chunks;
  int rc = scan_rows(v, terms, count, &c->rows, &filtered);
  if (rc == SQLITE_OK)
    rc = nearest_open(v, c->query, filtered ? &c->rows : NULL, best_only, (size_t)expect,
                      &c->nearest);
  return rc;
}

/* The next hit of the search under way whose row is there: one that was deleted
** keeps its vectors until the next refresh. */
static int next_hit(cursor *c, hit *h, int *found) {
  vtab *v = (vtab *)c->base.pVtab;
  int rc = SQLITE_OK, in_source = 0;
  *found = c->left > 0 && c->nearest != NULL;
  while (rc == SQLITE_OK && *found && !in_source) {
    rc = nearest_next(c->nearest, h, found);
    if (rc == SQLITE_OK && *found && c->has_bound && h->distance > c->bound) *found = 0;
    if (rc == SQLITE_OK && *found) rc = source_exists(v, h->row, &in_source);
  }
  c->left--;
  return rc;
}

/* ---- Hits that are joined by row ------------------------------------------- */

static int compare_hits(const void *a, const void *b) {
  const hit *x = a, *y = b;
  if (x->row != y->row) return x->row < y->row ? -1 : 1;
  if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
  return (x->id > y->id) - (x->id < y->id);
}

static int keep(cursor *c, const hit *h) {
  if (!array_grow((void **)&c->kept, &c->kept_room, c->kept_count + 1, sizeof *c->kept))
    return SQLITE_NOMEM;
  c->kept[c->kept_count++] = *h;
  return SQLITE_OK;
}

/* Takes all hits of the search just opened. */
static int keep_all(cursor *c) {
  hit h = {0};
  int found = 1, rc = SQLITE_OK;
  c->kept_count = 0;
  while (rc == SQLITE_OK && found) {
    rc = next_hit(c, &h, &found);
    if (rc == SQLITE_OK && found) rc = keep(c, &h);
  }
  if (c->kept_count > 1) qsort(c->kept, c->kept_count, sizeof *c->kept, compare_hits);
  c->kept_k = c->k;
  c->is_kept = rc == SQLITE_OK;
  nearest_close(c->nearest);
  c->nearest = NULL;
  return rc;
}

/* Comes to the kept hits of a row. */
static void find_kept(cursor *c, sqlite3_int64 row) {
  size_t low = 0, high = c->kept_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (c->kept[middle].row < row)
      low = middle + 1;
    else
      high = middle;
  }
  c->kept_at = low;
  c->kept_row = row;
  c->uses_kept = 1;
}

/* 1 when MATCH, k and the row of a join are all there is, so that the same hits
** serve for every row. */
static int can_keep(const plan_term *terms, int count) {
  int others = 0;
  const plan_term *join = plan_find(terms, count, 'J');
  for (int i = 0; i < count; i++) others += strchr("MKLJ", terms[i].kind) == NULL;
  return join != NULL && others == 0 && sqlite3_value_type(join->value) == SQLITE_INTEGER;
}

/* ---- Starting and going on ----------------------------------------------- */

int hits_start(cursor *c, const plan_term *terms, int count) {
  sqlite3_int64 expect;
  int joined = can_keep(terms, count);
  c->is_search = 1;
  c->uses_kept = 0;
  int rc = read_limits(c, terms, count, &expect);
  if (rc == SQLITE_OK) rc = refresh_before(c);
  if (rc == SQLITE_OK) rc = read_match(c, plan_find(terms, count, 'M')->value);
  if (rc == SQLITE_OK && c->query == NULL) c->at_end = 1;
  if (rc != SQLITE_OK || c->at_end || c->left == 0) return rc;
  if (!joined || !c->is_kept || c->kept_k != c->k) {
    rc = open_search(c, terms, count, expect);
    if (rc == SQLITE_OK && joined) rc = keep_all(c);
  }
  if (rc == SQLITE_OK && joined)
    find_kept(c, sqlite3_value_int64(plan_find(terms, count, 'J')->value));
  return rc;
}

static int next_kept(cursor *c, hit *h, int *found) {
  *found = c->kept_at < c->kept_count && c->kept[c->kept_at].row == c->kept_row;
  if (*found) *h = c->kept[c->kept_at++];
  return SQLITE_OK;
}

int hits_next(cursor *c) {
  hit h = {0};
  int found = 0;
  int rc = c->uses_kept ? next_kept(c, &h, &found) : next_hit(c, &h, &found);
  if (rc != SQLITE_OK || !found) {
    c->at_end = 1;
    return rc;
  }
  c->row = h.row;
  c->id = h.id;
  c->has_id = 1;
  c->distance = h.distance;
  return SQLITE_OK;
}
