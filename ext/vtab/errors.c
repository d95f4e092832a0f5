/*
** errors.c: what went wrong, as an error of the table.
*/
#include "vtab.h"

int vtab_fail(vtab *v, int rc, const char *format, ...) {
  va_list list;
  va_start(list, format);
  char *text = sqlite3_vmprintf(format, list);
  va_end(list);
  sqlite3_free(v->base.zErrMsg);
  v->base.zErrMsg = text != NULL ? sqlite3_mprintf("%s: %s", v->name, text) : NULL;
  sqlite3_free(text);
  return v->base.zErrMsg != NULL ? rc : SQLITE_NOMEM;
}

int vtab_fail_sqlite(vtab *v, int rc) {
  int kind = rc & 0xff;
  if (kind == SQLITE_OK) return rc;
  if (kind == SQLITE_NOMEM || kind == SQLITE_INTERRUPT) return kind;
  return vtab_fail(v, rc, "%s", sqlite3_errmsg(v->db));
}

int vtab_fail_bert(vtab *v, const bert_error *error) {
  return vtab_error(&v->base, v->name, error);
}
