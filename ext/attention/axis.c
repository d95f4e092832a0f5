/*
** axis.c: the coordinates that the rows of a table run over.
**
** A table of this folder is a product of ranges, layers times heads times
** queries times keys. What WHERE asks of a coordinate shrinks its range before
** anything is computed.
*/
#include "attention.h"

void axis_set(axis *a, size_t count, sqlite3_value *pushed) {
  int type = pushed != NULL ? sqlite3_value_type(pushed) : SQLITE_NULL;
  a->first = a->at = 0;
  a->stop = a->count = count;
  /* Of other types SQLite alone knows what they equal. */
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return;
  double number = sqlite3_value_double(pushed);
  if (number >= 0 && number < (double)count && number == (double)(size_t)number) {
    a->first = a->at = (size_t)number;
    a->stop = a->first + 1;
  } else {
    a->stop = 0;
  }
}

void axis_keep(axis *a, size_t number) {
  if (number < a->first || number >= a->stop) {
    a->first = a->stop = a->at = 0;
    return;
  }
  a->first = a->at = number;
  a->stop = number + 1;
}

void axes_begin(axis *axes, size_t count) {
  for (size_t i = 1; i < count; i++)
    if (axes[i].first >= axes[i].stop) axes[0].at = axes[0].stop;
}

int axes_at_end(const axis *axes) {
  return axes[0].at >= axes[0].stop;
}

void axes_next(axis *axes, size_t count) {
  size_t i = count - 1;
  while (++axes[i].at >= axes[i].stop && i > 0) {
    axes[i].at = axes[i].first;
    i--;
  }
}

sqlite3_int64 axes_row(const axis *axes, size_t count) {
  sqlite3_uint64 row = 0;
  for (size_t i = 0; i < count; i++) row = row * axes[i].count + axes[i].at;
  return (sqlite3_int64)(row & 0xffffffff);
}
