/*
** statements.c: the SQL that a table runs on its own tables.
**
** Names are put in by words that begin with @, so that each statement can be
** read as it stands: @rows is "schema"."t_rows".
*/
#include "vtab.h"

#include <string.h>

static const char *const sql_of[STATEMENT_COUNT] = {
    [CONFIG_GET] = "SELECT value FROM @config WHERE key = ?1",
    [CONFIG_SET] = "REPLACE INTO @config(key, value) VALUES(?1, ?2)",
    [CONFIG_DELETE] = "DELETE FROM @config WHERE key = ?1",
    [ROW_GET] = "SELECT hash, first, count, error FROM @rows WHERE row = ?1",
    [ROW_PUT] = "REPLACE INTO @rows(row, hash, first, count, error) VALUES(?1, ?2, ?3, ?4, ?5)",
    [ROW_DELETE] = "DELETE FROM @rows WHERE row = ?1",
    [VECTOR_PUT] = "INSERT INTO @vectors(id, row, chunk, start, stop, tokens, truncated, vector) "
                   "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [VECTORS_DELETE] = "DELETE FROM @vectors WHERE id BETWEEN ?1 AND ?2",
    [VECTOR_LAST] = "SELECT max(id) FROM @vectors",
    [VECTORS_AFTER] = "SELECT id, row, vector FROM @vectors WHERE id > ?1 ORDER BY id",
    [PACKED_LAST] = "SELECT block, last FROM @packed ORDER BY block DESC LIMIT 1",
    [PACKED_PUT] = "INSERT INTO @packed(block, stamp, last, entries, data) "
                   "VALUES(?1, ?2, ?3, ?4, ?5)",
    [PACKED_CLEAR] = "DELETE FROM @packed",
    [CONTENT_INSERT] = "INSERT INTO @content(id@columns) VALUES(?1@values)",
    [CONTENT_UPDATE] = "UPDATE @content SET id = ?1@settings",
    [CONTENT_DELETE] = "DELETE FROM @content WHERE id = ?1",
    [SOURCE_TEXT] = "SELECT @indexed FROM @source WHERE @key = ?1",
    [SOURCE_EXISTS] = "SELECT 1 FROM @source WHERE @key = ?1",
    [SOURCE_AFTER] = "SELECT @key, @indexed FROM @source WHERE @key > ?1 ORDER BY @key",
    [ORPHANS] = "SELECT row FROM @rows WHERE NOT EXISTS "
                "(SELECT 1 FROM @source WHERE @source.@key = @rows.row) ORDER BY row",
    [QUEUE_PUT] = "INSERT INTO @queue(row) VALUES(?1)",
    [QUEUE_EMPTY] = "SELECT 1 FROM @queue LIMIT 1",
    [QUEUE_ROWS] = "SELECT DISTINCT row FROM @queue WHERE row > ?1 ORDER BY row",
    [QUEUE_DELETE] = "DELETE FROM @queue WHERE row <= ?1",
    [QUEUE_CLEAR] = "DELETE FROM @queue",
    [WHOLE] = "INSERT INTO @config(key, value) SELECT '', 0 WHERE " WHOLE_FUNCTION "(?1)",
};

/* ---- Putting names in -------------------------------------------------- */

static void append_indexed(sqlite3_str *out, const vtab *v) {
  const char *comma = "";
  for (int i = 0; i < v->declared.count; i++) {
    if (v->declared.columns[i].unindexed) continue;
    sqlite3_str_appendall(out, comma);
    source_append_column(out, v, i);
    comma = ", ";
  }
}

/* ", c0, c1", ", ?2, ?3" or ", c0 = ?2, c1 = ?3 WHERE id = ?4". */
static void append_content(sqlite3_str *out, const vtab *v, const char *word) {
  int count = v->declared.count, update = strcmp(word, "settings") == 0;
  for (int i = 0; i < count; i++) {
    if (strcmp(word, "values") != 0) sqlite3_str_appendf(out, ", c%d", i);
    if (update) sqlite3_str_appendf(out, " = ?%d", i + 2);
    if (strcmp(word, "values") == 0) sqlite3_str_appendf(out, ", ?%d", i + 2);
  }
  if (update) sqlite3_str_appendf(out, " WHERE id = ?%d", count + 2);
}

static void append_name(sqlite3_str *out, const vtab *v, const char *word) {
  if (strcmp(word, "source") == 0) {
    source_append_table(out, v);
  } else if (strcmp(word, "key") == 0) {
    sqlite3_str_appendf(out, "\"%w\"", v->key);
  } else if (strcmp(word, "indexed") == 0) {
    append_indexed(out, v);
  } else if (strcmp(word, "columns") == 0 || strcmp(word, "values") == 0 ||
             strcmp(word, "settings") == 0) {
    append_content(out, v, word);
  } else {
    sqlite3_str_appendf(out, "\"%w\".\"%w_%s\"", v->schema, v->name, word);
  }
}

static char *put_names_in(const vtab *v, const char *sql, const char *more) {
  sqlite3_str *out = sqlite3_str_new(v->db);
  while (*sql != 0) {
    size_t size = strcspn(sql, "@");
    sqlite3_str_append(out, sql, (int)size);
    sql += size;
    if (*sql == 0) break;
    char word[16];
    size = strspn(++sql, "abcdefghijklmnopqrstuvwxyz");
    sqlite3_snprintf(sizeof word, word, "%.*s", (int)size, sql);
    append_name(out, v, word);
    sql += size;
  }
  if (more != NULL) sqlite3_str_appendall(out, more);
  return sqlite3_str_finish(out);
}

/* ---- Coming in ---------------------------------------------------------- */

int vtab_enter(vtab *v) {
  if (v->busy) {
    v->knotted = 1;
    return vtab_fail(v, SQLITE_LOCKED,
                     "it is used by what it reads or writes itself: a view, a trigger or a "
                     "function in a generated column leads back to it");
  }
  v->busy = 1;
  return SQLITE_OK;
}

/* A kept statement that names its own table would keep the connection from closing. */
int vtab_leave(vtab *v, int rc) {
  if (v->knotted) vtab_finalize(v);
  v->busy = v->knotted = 0;
  return rc;
}

/* ---- Statements -------------------------------------------------------- */

static int prepare(vtab *v, sqlite3_stmt **out, unsigned flags, const char *sql, const char *more) {
  char *text = put_names_in(v, sql, more);
  if (text == NULL) return SQLITE_NOMEM;
  int rc = sqlite3_prepare_v3(v->db, text, -1, flags, out, NULL);
  sqlite3_free(text);
  return rc == SQLITE_OK ? rc : vtab_fail_sqlite(v, rc);
}

int vtab_prepare(vtab *v, sqlite3_stmt **out, const char *sql, const char *more) {
  return prepare(v, out, 0, sql, more);
}

int vtab_statement(vtab *v, statement_id id, sqlite3_stmt **out) {
  sqlite3_stmt **kept = &v->statements[id];
  if (*kept == NULL) {
    int rc = prepare(v, kept, SQLITE_PREPARE_PERSISTENT, sql_of[id], NULL);
    if (rc != SQLITE_OK) return rc;
  }
  sqlite3_reset(*kept);
  sqlite3_clear_bindings(*kept);
  *out = *kept;
  return SQLITE_OK;
}

void vtab_finalize(vtab *v) {
  for (int i = 0; i < STATEMENT_COUNT; i++) {
    if (v->statements[i] != NULL && sqlite3_stmt_busy(v->statements[i])) continue;
    sqlite3_finalize(v->statements[i]);
    v->statements[i] = NULL;
  }
}

int vtab_run(vtab *v, sqlite3_stmt *s) {
  sqlite3_step(s);
  int rc = sqlite3_reset(s);
  if (rc != SQLITE_OK) rc = vtab_fail_sqlite(v, rc);
  sqlite3_clear_bindings(s); /* lets go of texts and vectors that were lent */
  return rc;
}

int vtab_execute(vtab *v, const char *format, ...) {
  va_list list;
  va_start(list, format);
  char *sql = sqlite3_vmprintf(format, list);
  va_end(list);
  if (sql == NULL) return SQLITE_NOMEM;
  int rc = sqlite3_exec(v->db, sql, NULL, NULL, NULL);
  sqlite3_free(sql);
  return rc == SQLITE_OK ? rc : vtab_fail_sqlite(v, rc);
}
