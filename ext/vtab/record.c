/*
** record.c: the record that a table keeps of itself.
*/
#include "vtab.h"

#include <string.h>

#define HASH_NAME "xxh3-128"

/* Runs CONFIG_GET; *s stands on the row, or is NULL when there is none. Reset it. */
static int get(vtab *v, const char *key, sqlite3_stmt **s) {
  int rc = vtab_statement(v, CONFIG_GET, s);
  if (rc != SQLITE_OK) return rc;
  sqlite3_bind_text(*s, 1, key, -1, SQLITE_STATIC);
  if (sqlite3_step(*s) == SQLITE_ROW) return SQLITE_OK;
  rc = sqlite3_reset(*s);
  *s = NULL;
  return rc == SQLITE_OK ? rc : vtab_fail_sqlite(v, rc);
}

int config_get_int(vtab *v, const char *key, sqlite3_int64 *value, int *found) {
  sqlite3_stmt *s;
  *found = 0;
  int rc = get(v, key, &s);
  if (rc != SQLITE_OK || s == NULL) return rc;
  *found = sqlite3_column_type(s, 0) == SQLITE_INTEGER;
  if (*found) *value = sqlite3_column_int64(s, 0);
  sqlite3_reset(s);
  return SQLITE_OK;
}

int config_get_text(vtab *v, const char *key, char **value) {
  sqlite3_stmt *s;
  *value = NULL;
  int rc = get(v, key, &s);
  if (rc != SQLITE_OK || s == NULL) return rc;
  if (sqlite3_column_type(s, 0) != SQLITE_NULL) {
    const unsigned char *text = sqlite3_column_text(s, 0);
    *value = text != NULL ? sqlite3_mprintf("%s", text) : NULL;
    if (*value == NULL) rc = SQLITE_NOMEM;
  }
  sqlite3_reset(s);
  return rc;
}

int config_set_int(vtab *v, const char *key, sqlite3_int64 value) {
  sqlite3_stmt *s;
  int rc = vtab_statement(v, CONFIG_SET, &s);
  if (rc != SQLITE_OK) return rc;
  sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
  sqlite3_bind_int64(s, 2, value);
  return vtab_run(v, s);
}

int config_set_text(vtab *v, const char *key, const char *value) {
  sqlite3_stmt *s;
  int rc = vtab_statement(v, CONFIG_SET, &s);
  if (rc != SQLITE_OK) return rc;
  sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
  rc = sqlite3_bind_text(s, 2, value, -1, SQLITE_TRANSIENT);
  return rc == SQLITE_OK ? vtab_run(v, s) : vtab_fail_sqlite(v, rc);
}

int config_remove(vtab *v, const char *key) {
  sqlite3_stmt *s;
  int rc = vtab_statement(v, CONFIG_DELETE, &s);
  if (rc != SQLITE_OK) return rc;
  sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
  return vtab_run(v, s);
}

/* ---- Opening ----------------------------------------------------------- */

/* Leaves a reason not to use the table. Out of memory is an error of its own. */
static int refuse(vtab *v, const char *format, ...) {
  va_list list;
  va_start(list, format);
  v->refused = sqlite3_vmprintf(format, list);
  va_end(list);
  return v->refused != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

static int check_format(vtab *v) {
  sqlite3_int64 format = 0;
  int found;
  int rc = config_get_int(v, "format", &format, &found);
  if (rc != SQLITE_OK) return rc;
  if (!found || format < 1)
    return refuse(v,
                  "its table %s_config holds no format number and cannot be trusted; DROP TABLE "
                  "and make it anew",
                  v->name);
  if (format > VTAB_FORMAT)
    return refuse(v,
                  "it was made by a later bertsql, format %lld, and this one knows %d; use the "
                  "later one, or DROP TABLE and make it anew",
                  format, VTAB_FORMAT);
  return SQLITE_OK;
}

static int check_hash(vtab *v) {
  char *name = NULL;
  int rc = config_get_text(v, "hash", &name);
  if (rc == SQLITE_OK && (name == NULL || strcmp(name, HASH_NAME) != 0))
    rc = refuse(v,
                "its texts were hashed with %s, which this bertsql does not know; use a later "
                "one, or DROP TABLE and make it anew",
                name != NULL ? name : "nothing");
  sqlite3_free(name);
  return rc;
}

static int read_dim(vtab *v) {
  sqlite3_int64 dim = 0;
  int found;
  int rc = config_get_int(v, "dim", &dim, &found);
  if (rc == SQLITE_OK && (!found || dim < 1 || dim > 1 << 24))
    return refuse(v,
                  "its table %s_config does not say how long vectors are; DROP TABLE and make "
                  "it anew",
                  v->name);
  if (rc == SQLITE_OK) v->dim = (int)dim;
  return rc;
}

int config_open(vtab *v) {
  int rc = check_format(v);
  if (rc == SQLITE_OK && v->refused == NULL) rc = check_hash(v);
  if (rc == SQLITE_OK && v->refused == NULL) rc = read_dim(v);
  if (rc == SQLITE_OK || (rc & 0xff) == SQLITE_NOMEM) return rc;
  if ((rc & 0xff) != SQLITE_ERROR && (rc & 0xff) != SQLITE_CORRUPT) return rc;
  /* Not even readable: the table of the record is gone or damaged. */
  return refuse(v, "its record cannot be read: %s; DROP TABLE and make it anew",
                sqlite3_errmsg(v->db));
}

/* The length of vectors is read each time: another process may have made them
** anew with another model, and a rollback may have taken that back. So may have been
** what a table was refused for. */
int config_check(vtab *v) {
  int was_refused = v->refused != NULL;
  sqlite3_free(v->refused);
  v->refused = NULL;
  int rc = was_refused ? config_open(v) : read_dim(v);
  if (rc != SQLITE_OK || v->refused == NULL) return rc;
  return vtab_fail(v, SQLITE_ERROR, "%s", v->refused);
}

int config_begin(vtab *v) {
  int rc = config_set_int(v, "format", VTAB_FORMAT);
  return rc == SQLITE_OK ? config_set_text(v, "hash", HASH_NAME) : rc;
}
