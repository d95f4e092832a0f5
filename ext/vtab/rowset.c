/*
** rowset.c: a set of rows as a sorted array. It is filled once, mostly in order,
** and then asked once for each vector, so nothing cleverer pays.
*/
#include "vtab.h"

#include <stdlib.h>
#include <string.h>

void rowset_clear(rowset *s) {
  sqlite3_free(s->rows);
  memset(s, 0, sizeof *s);
}

int rowset_add(rowset *s, sqlite3_int64 row) {
  if (!array_grow((void **)&s->rows, &s->room, s->count + 1, sizeof *s->rows)) return SQLITE_NOMEM;
  s->rows[s->count++] = row;
  return SQLITE_OK;
}

static int compare_rows(const void *a, const void *b) {
  sqlite3_int64 x = *(const sqlite3_int64 *)a, y = *(const sqlite3_int64 *)b;
  return (x > y) - (x < y);
}

/* Rows come from a table in order of rowid unless an index served: then there is
** nothing to sort. qsort of the C library may allocate, but falls back on sorting
** in place where it cannot. */
void rowset_finish(rowset *s) {
  size_t kept = 0;
  int sorted = 1;
  for (size_t i = 1; i < s->count && sorted; i++) sorted = s->rows[i - 1] < s->rows[i];
  if (sorted) return;
  qsort(s->rows, s->count, sizeof *s->rows, compare_rows);
  for (size_t i = 0; i < s->count; i++)
    if (i == 0 || s->rows[i] != s->rows[kept - 1]) s->rows[kept++] = s->rows[i];
  s->count = kept;
}

/* The index of the first row that is not below `row`. */
static size_t place_of(const rowset *s, sqlite3_int64 row) {
  size_t low = 0, high = s->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (s->rows[middle] < row)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

int rowset_has(const rowset *s, sqlite3_int64 row) {
  size_t at = place_of(s, row);
  return at < s->count && s->rows[at] == row;
}

int rowset_has_next(const rowset *s, sqlite3_int64 row, size_t *hint) {
  if (*hint < s->count && s->rows[*hint] == row) {
    ++*hint;
    return 1;
  }
  if (*hint > 0 && s->rows[*hint - 1] < row && (*hint == s->count || s->rows[*hint] > row))
    return 0;
  size_t at = place_of(s, row);
  *hint = at;
  if (at == s->count || s->rows[at] != row) return 0;
  ++*hint;
  return 1;
}

void rowset_intersect(rowset *s, const rowset *other) {
  size_t kept = 0;
  for (size_t i = 0, j = 0; i < s->count && j < other->count;) {
    if (s->rows[i] < other->rows[j])
      i++;
    else if (s->rows[i] > other->rows[j])
      j++;
    else
      s->rows[kept++] = s->rows[i++];
  }
  s->count = kept;
}
