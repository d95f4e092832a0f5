/*
** source.c: where the texts are: in t_content, or in the table that content=
** names, whose rows are told apart by its INTEGER PRIMARY KEY.
*/
#include "vtab.h"

#include <string.h>

/* ---- Names ------------------------------------------------------------- */

void source_append_table(sqlite3_str *out, const vtab *v) {
  if (v->declared.content != NULL)
    sqlite3_str_appendf(out, "\"%w\".\"%w\"", v->schema, v->declared.content);
  else
    sqlite3_str_appendf(out, "\"%w\".\"%w_content\"", v->schema, v->name);
}

void source_append_column(sqlite3_str *out, const vtab *v, int column) {
  if (v->declared.content != NULL)
    sqlite3_str_appendf(out, "\"%w\"", v->declared.columns[column].name);
  else
    sqlite3_str_appendf(out, "c%d", column);
}

/* ---- The content table ------------------------------------------------- */

/* What the content table says of a column, NULL for itself: *found is 0 when it is
** not there. type and collation may be NULL. */
static int find_column(vtab *v, const char *column, const char **type, const char **collation,
                       int *found) {
  int rc = sqlite3_table_column_metadata(v->db, v->schema, v->declared.content, column, type,
                                         collation, NULL, NULL, NULL);
  *found = rc == SQLITE_OK;
  return rc == SQLITE_ERROR ? SQLITE_OK : vtab_fail_sqlite(v, rc);
}

/* The type of a column in another table is any text that stood in quotes there. */
int source_append_declaration(sqlite3_str *out, vtab *v, int column) {
  const declared_column *c = &v->declared.columns[column];
  const char *type = c->type, *collation = NULL;
  int found = 1, rc = SQLITE_OK;
  if (v->declared.content != NULL) rc = find_column(v, c->name, &type, &collation, &found);
  if (rc != SQLITE_OK) return rc;
  sqlite3_str_appendf(out, "\"%w\"", c->name);
  if (found && type != NULL && *type != 0) sqlite3_str_appendf(out, " \"%w\"", type);
  if (collation != NULL && sqlite3_stricmp(collation, "BINARY") != 0)
    sqlite3_str_appendf(out, " COLLATE \"%w\"", collation);
  return SQLITE_OK;
}

/* The name of the INTEGER PRIMARY KEY; NULL without one. A key that is not the
** rowid (of several columns, WITHOUT ROWID, INTEGER PRIMARY KEY DESC) has an index of
** its own. */
static int find_key(vtab *v, char **key) {
  static const char sql[] = "SELECT name FROM pragma_table_info(?1, ?2) WHERE pk = 1 AND "
                            "type = 'INTEGER' COLLATE NOCASE AND NOT EXISTS "
                            "(SELECT 1 FROM pragma_index_list(?1, ?2) WHERE origin = 'pk')";
  sqlite3_stmt *s = NULL;
  *key = NULL;
  int rc = sqlite3_prepare_v2(v->db, sql, -1, &s, NULL);
  if (rc != SQLITE_OK) return vtab_fail_sqlite(v, rc);
  sqlite3_bind_text(s, 1, v->declared.content, -1, SQLITE_STATIC);
  sqlite3_bind_text(s, 2, v->schema, -1, SQLITE_STATIC);
  if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) != SQLITE_NULL) {
    *key = sqlite3_mprintf("%s", sqlite3_column_text(s, 0));
    if (*key == NULL) {
      sqlite3_finalize(s);
      return SQLITE_NOMEM;
    }
  }
  rc = sqlite3_finalize(s);
  return rc == SQLITE_OK ? rc : vtab_fail_sqlite(v, rc);
}

int source_open(vtab *v) {
  if (v->declared.content != NULL) return find_key(v, &v->key);
  v->key = sqlite3_mprintf("id");
  return v->key != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

static int refuse_key(vtab *v) {
  const char *content = v->declared.content;
  return vtab_fail(
      v, SQLITE_ERROR,
      "content table %s has no INTEGER PRIMARY KEY that is its rowid, by which alone rows "
      "keep their numbers (a view, a virtual table and a table WITHOUT ROWID have none); "
      "give it one, as in CREATE TABLE \"%w\"(id INTEGER PRIMARY KEY, …)",
      content, content);
}

static int check_key(vtab *v) {
  char *key = NULL;
  const char *wanted = v->declared.content_rowid;
  int rc = find_key(v, &key);
  if (rc == SQLITE_OK && key == NULL) rc = refuse_key(v);
  if (rc == SQLITE_OK && wanted != NULL && sqlite3_stricmp(wanted, key) != 0)
    rc = vtab_fail(v, SQLITE_ERROR,
                   "content_rowid='%s' is not the INTEGER PRIMARY KEY of %s, which is %s", wanted,
                   v->declared.content, key);
  if (rc == SQLITE_OK && (v->key == NULL || strcmp(v->key, key) != 0)) {
    vtab_finalize(v);
    sqlite3_free(v->key);
    v->key = key;
    return SQLITE_OK;
  }
  sqlite3_free(key);
  return rc;
}

static int refuse_column(vtab *v, const char *name) {
  const char *content = v->declared.content;
  return vtab_fail(v, SQLITE_ERROR,
                   "content table %s has no column %s; name columns that it has, or rename it "
                   "back: ALTER TABLE \"%w\" RENAME COLUMN … TO \"%w\"",
                   content, name, content, name);
}

static int check_columns(vtab *v) {
  int rc = SQLITE_OK, found;
  for (int i = 0; rc == SQLITE_OK && i < v->declared.count; i++) {
    const char *name = v->declared.columns[i].name;
    rc = find_column(v, name, NULL, NULL, &found);
    if (rc == SQLITE_OK && !found) rc = refuse_column(v, name);
  }
  return rc;
}

/* While the table is being made there is nothing to rename back or to drop. */
static int refuse_content(vtab *v) {
  const char *content = v->declared.content;
  if (v->dim == 0)
    return vtab_fail(
        v, SQLITE_ERROR,
        "there is no table %s in %s to be the content table (a view cannot be one); make "
        "it first, or leave content= out: the table then keeps its own texts",
        content, v->schema);
  return vtab_fail(
      v, SQLITE_ERROR,
      "there is no content table %s in %s; if it was renamed, rename it back with ALTER "
      "TABLE … RENAME TO \"%w\", or make this table anew: DROP TABLE \"%w\"; CREATE "
      "VIRTUAL TABLE \"%w\" USING bertsql(…, content='…')",
      content, v->schema, content, v->name, v->name);
}

int source_check(vtab *v) {
  int found;
  if (v->declared.content == NULL) return SQLITE_OK;
  int rc = find_column(v, NULL, NULL, NULL, &found);
  if (rc == SQLITE_OK && !found) rc = refuse_content(v);
  if (rc == SQLITE_OK) rc = check_key(v);
  return rc == SQLITE_OK ? check_columns(v) : rc;
}

int source_follow(vtab *v) {
  int is_key = 0;
  if (v->declared.content == NULL) return SQLITE_OK;
  if (v->key != NULL &&
      sqlite3_table_column_metadata(v->db, v->schema, v->declared.content, v->key, NULL, NULL, NULL,
                                    &is_key, NULL) == SQLITE_OK &&
      is_key)
    return SQLITE_OK;
  return source_check(v);
}

/* ---- Texts ------------------------------------------------------------- */

void joined_text_free(joined_text *t) {
  sqlite3_free(t->data);
  memset(t, 0, sizeof *t);
}

/* Appends bytes and a NUL behind them. */
static int append(joined_text *t, const char *bytes, size_t size) {
  if (!array_grow((void **)&t->data, &t->room, t->size + size + 1, 1)) return SQLITE_NOMEM;
  if (size > 0) memcpy(t->data + t->size, bytes, size);
  t->size += size;
  t->data[t->size] = 0;
  return SQLITE_OK;
}

int source_join(vtab *v, sqlite3_stmt *s, int first, joined_text *out) {
  int rc = SQLITE_OK;
  out->size = 0;
  out->is_null = 1;
  for (int i = 0; rc == SQLITE_OK && i < v->declared.count; i++) {
    if (v->declared.columns[i].unindexed) continue;
    int column = first++, type = sqlite3_column_type(s, column);
    if (type == SQLITE_NULL) continue;
    const char *text = (const char *)sqlite3_column_text(s, column);
    size_t size = (size_t)sqlite3_column_bytes(s, column);
    if (text == NULL && size + (type != SQLITE_BLOB) > 0) return SQLITE_NOMEM;
    if (!out->is_null) rc = append(out, "\n", 1);
    if (rc == SQLITE_OK) rc = append(out, text, size);
    out->is_null = 0;
  }
  return rc;
}

void source_hash(const joined_text *t, unsigned char hash[HASH_BYTES]) {
  digest_bytes(t->data, t->size, hash);
}

int source_text(vtab *v, sqlite3_int64 row, joined_text *out, int *found) {
  sqlite3_stmt *s;
  *found = 0;
  int rc = vtab_statement(v, SOURCE_TEXT, &s);
  if (rc != SQLITE_OK) return rc;
  sqlite3_bind_int64(s, 1, row);
  if (sqlite3_step(s) == SQLITE_ROW) {
    *found = 1;
    rc = source_join(v, s, 0, out);
  }
  int reset = sqlite3_reset(s);
  return rc != SQLITE_OK ? rc : vtab_fail_sqlite(v, reset);
}

int source_exists(vtab *v, sqlite3_int64 row, int *exists) {
  sqlite3_stmt *s;
  *exists = 0;
  int rc = vtab_statement(v, SOURCE_EXISTS, &s);
  if (rc != SQLITE_OK) {
    int source = rc == SQLITE_ERROR ? source_check(v) : rc;
    return source != SQLITE_OK ? source : rc;
  }
  sqlite3_bind_int64(s, 1, row);
  *exists = sqlite3_step(s) == SQLITE_ROW;
  return vtab_fail_sqlite(v, sqlite3_reset(s));
}
