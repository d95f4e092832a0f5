/*
** shadow.c: the tables that a virtual table is made of, and its triggers.
**
** Triggers are plain SQL that appends a row number to an ordinary table, so
** that every program can write to the content table: one without bertsql, one
** that does not trust the schema, one in defensive mode. The table they append
** to has no key that another conflict clause could act upon, and is not a
** shadow table, because defensive mode lets no trigger write to those.
*/
#include "vtab.h"

#include <string.h>

/* The last one only of a table that keeps its texts. */
static const char *const shadow_names[] = {"config", "rows", "vectors", "packed", "content"};
enum { SHADOWS = sizeof shadow_names / sizeof shadow_names[0] };

static int shadow_count(const vtab *v) {
  return v->declared.content == NULL ? SHADOWS : SHADOWS - 1;
}

int shadow_is_name(const char *suffix) {
  for (int i = 0; i < SHADOWS; i++)
    if (sqlite3_stricmp(suffix, shadow_names[i]) == 0) return 1;
  return 0;
}

/* ---- Triggers ---------------------------------------------------------- */

static const char *const trigger_names[] = {"insert", "update", "delete"};
enum { TRIGGERS = sizeof trigger_names / sizeof trigger_names[0] };

static int drop_triggers(vtab *v) {
  int rc = SQLITE_OK;
  for (int i = 0; rc == SQLITE_OK && i < TRIGGERS; i++)
    rc = vtab_execute(v, "DROP TRIGGER IF EXISTS \"%w\".\"%w_queue_%s\"", v->schema, v->name,
                      trigger_names[i]);
  return rc;
}

/* A trigger of the table `table` on `event`, as in "INSERT", which a condition may
** follow. */
static int make_trigger(vtab *v, const char *table, const char *name, const char *event,
                        const char *condition, const char *body) {
  return vtab_execute(v, "CREATE TRIGGER \"%w\".\"%w_queue_%s\" AFTER %s ON \"%w\" %s BEGIN %s END",
                      v->schema, table, name, event, v->declared.content, condition, body);
}

/* Other columns, such as one that keeps a vector of its own, change nothing here.
** Values are compared since UPDATE OF goes by the names that a statement writes: it
** misses a key that is set as rowid, and a generated column. What is equal may still
** be another text: 1 and 1.0, or a and A where the column has such a collation. */
static char *update_condition(const vtab *v) {
  sqlite3_str *out = sqlite3_str_new(v->db);
  sqlite3_str_appendf(out, "WHEN old.\"%w\" IS NOT new.\"%w\"", v->key, v->key);
  for (int i = 0; i < v->declared.count; i++) {
    const char *name = v->declared.columns[i].name;
    if (v->declared.columns[i].unindexed) continue;
    sqlite3_str_appendf(out,
                        " OR old.\"%w\" COLLATE BINARY IS NOT new.\"%w\""
                        " OR typeof(old.\"%w\") <> typeof(new.\"%w\")",
                        name, name, name, name);
  }
  return sqlite3_str_finish(out);
}

/* All three, for the table under the name `table`. */
static int make_triggers(vtab *v, const char *table) {
  char *changed = update_condition(v);
  char *put_new =
      sqlite3_mprintf("INSERT INTO \"%w_queue\"(row) VALUES(new.\"%w\");", table, v->key);
  char *put_old =
      sqlite3_mprintf("INSERT INTO \"%w_queue\"(row) VALUES(old.\"%w\");", table, v->key);
  char *put_both =
      put_old != NULL && put_new != NULL ? sqlite3_mprintf("%s %s", put_old, put_new) : NULL;
  int rc = changed != NULL && put_both != NULL ? SQLITE_OK : SQLITE_NOMEM;
  if (rc == SQLITE_OK) rc = make_trigger(v, table, "insert", "INSERT", "", put_new);
  if (rc == SQLITE_OK) rc = make_trigger(v, table, "update", "UPDATE", changed, put_both);
  if (rc == SQLITE_OK) rc = make_trigger(v, table, "delete", "DELETE", "", put_old);
  sqlite3_free(changed);
  sqlite3_free(put_new);
  sqlite3_free(put_old);
  sqlite3_free(put_both);
  return rc;
}

int shadow_make_triggers(vtab *v) {
  int rc = drop_triggers(v);
  return rc == SQLITE_OK ? make_triggers(v, v->name) : rc;
}

int shadow_check_triggers(vtab *v, int *whole) {
  sqlite3_stmt *s = NULL;
  char *sql =
      sqlite3_mprintf("SELECT count(*) FROM \"%w\".sqlite_schema WHERE type = 'trigger' AND "
                      "tbl_name = %Q COLLATE NOCASE AND name IN (%Q || '_queue_insert', "
                      "%Q || '_queue_update', %Q || '_queue_delete')",
                      v->schema, v->declared.content, v->name, v->name, v->name);
  if (sql == NULL) return SQLITE_NOMEM;
  int rc = sqlite3_prepare_v2(v->db, sql, -1, &s, NULL);
  sqlite3_free(sql);
  *whole = 0;
  if (rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
    *whole = sqlite3_column_int(s, 0) == TRIGGERS;
  if (rc == SQLITE_OK) rc = sqlite3_finalize(s);
  return rc == SQLITE_OK ? rc : vtab_fail_sqlite(v, rc);
}

/* ---- Making ------------------------------------------------------------ */

static int create(vtab *v, const char *suffix, const char *columns) {
  return vtab_execute(v, "CREATE TABLE \"%w\".\"%w_%s\"(%s", v->schema, v->name, suffix, columns);
}

static int create_content(vtab *v) {
  sqlite3_str *columns = sqlite3_str_new(v->db);
  sqlite3_str_appendall(columns, "id INTEGER PRIMARY KEY");
  for (int i = 0; i < v->declared.count; i++)
    sqlite3_str_appendf(columns, ", c%d %s", i, v->declared.columns[i].type);
  sqlite3_str_appendall(columns, ")");
  char *sql = sqlite3_str_finish(columns);
  if (sql == NULL) return SQLITE_NOMEM;
  int rc = create(v, "content", sql);
  sqlite3_free(sql);
  return rc;
}

int shadow_create(vtab *v) {
  int rc = create(v, "config", "key TEXT PRIMARY KEY, value) WITHOUT ROWID");
  if (rc == SQLITE_OK)
    rc = create(v, "rows",
                "row INTEGER PRIMARY KEY, hash BLOB, first INTEGER, count INTEGER, error TEXT)");
  if (rc == SQLITE_OK)
    rc = create(v, "vectors",
                "id INTEGER PRIMARY KEY, row INTEGER, chunk INTEGER, start INTEGER, stop INTEGER, "
                "tokens INTEGER, truncated INTEGER, vector BLOB)");
  if (rc == SQLITE_OK)
    rc = create(v, "packed",
                "block INTEGER PRIMARY KEY, stamp INTEGER, last INTEGER, entries INTEGER, "
                "data BLOB)");
  if (rc == SQLITE_OK) rc = create(v, "queue", "row INTEGER)");
  if (rc == SQLITE_OK && v->declared.content == NULL) rc = create_content(v);
  if (rc == SQLITE_OK && v->declared.triggers) rc = make_triggers(v, v->name);
  return rc;
}

/* ---- Dropping and renaming --------------------------------------------- */

int shadow_drop(vtab *v) {
  int rc = v->declared.triggers ? drop_triggers(v) : SQLITE_OK;
  if (rc == SQLITE_OK)
    rc = vtab_execute(v, "DROP TABLE IF EXISTS \"%w\".\"%w_queue\"", v->schema, v->name);
  for (int i = 0; rc == SQLITE_OK && i < shadow_count(v); i++)
    rc = vtab_execute(v, "DROP TABLE IF EXISTS \"%w\".\"%w_%s\"", v->schema, v->name,
                      shadow_names[i]);
  return rc;
}

static int rename_table(vtab *v, const char *suffix, const char *name) {
  return vtab_execute(v, "ALTER TABLE \"%w\".\"%w_%s\" RENAME TO \"%w_%s\"", v->schema, v->name,
                      suffix, name, suffix);
}

/* The triggers are dropped before and made after: their own names and the name
** of the queue in them must follow. */
int shadow_rename(vtab *v, const char *name) {
  int rc = v->declared.triggers ? drop_triggers(v) : SQLITE_OK;
  if (rc == SQLITE_OK) rc = rename_table(v, "queue", name);
  for (int i = 0; rc == SQLITE_OK && i < shadow_count(v); i++)
    rc = rename_table(v, shadow_names[i], name);
  if (rc != SQLITE_OK) return rc;
  return v->declared.triggers && v->key != NULL ? make_triggers(v, name) : SQLITE_OK;
}
