/*
** module.c: the module bertsql as SQLite sees it.
**
** Since all that a table knows lies in tables, most of what SQLite may do to it
** needs nothing here: a savepoint, a rollback or another process changes those
** tables, and they are read each time. What this file adds to a transaction is
** its end: texts that INSERT left in the queue get their vectors before COMMIT.
*/
#include "vtab.h"

#include <string.h>

/* ---- Making a table ---------------------------------------------------- */

static void vtab_free(vtab *v) {
  vtab **link = connection_tables(v->connection);
  while (*link != NULL && *link != v) link = &(*link)->next;
  if (*link == v) *link = v->next;
  vtab_finalize(v);
  block_cache_free(v->blocks);
  declaration_clear(&v->declared);
  sqlite3_free(v->schema);
  sqlite3_free(v->name);
  sqlite3_free(v->key);
  sqlite3_free(v->refused);
  sqlite3_free(v->base.zErrMsg);
  sqlite3_free(v);
}

/* Gives the table to SQLite, or its message and nothing. */
static int hand_over(vtab *v, int rc, sqlite3_vtab **out, char **message) {
  if (rc == SQLITE_OK) {
    /* SQLite clears the struct that it is given, and a message with it. */
    sqlite3_free(v->base.zErrMsg);
    v->base.zErrMsg = NULL;
    *out = &v->base;
    return rc;
  }
  if (*message == NULL) {
    *message = v->base.zErrMsg;
    v->base.zErrMsg = NULL;
  }
  vtab_free(v);
  return rc;
}

/* argv: module, schema, table, then the arguments in parentheses. */
static int vtab_make(sqlite3 *db, connection *c, int argc, const char *const *argv, vtab **out,
                     char **message) {
  vtab *v = sqlite3_malloc64(sizeof *v);
  if (v == NULL) return SQLITE_NOMEM;
  memset(v, 0, sizeof *v);
  v->db = db;
  v->connection = c;
  v->schema = sqlite3_mprintf("%s", argv[1]);
  v->name = sqlite3_mprintf("%s", argv[2]);
  int rc = v->schema != NULL && v->name != NULL ? SQLITE_OK : SQLITE_NOMEM;
  if (rc == SQLITE_OK) rc = declaration_read(v->name, argc - 3, argv + 3, &v->declared, message);
  if (rc == SQLITE_OK) rc = source_open(v);
  if (rc != SQLITE_OK) return hand_over(v, rc, NULL, message);
  v->next = *connection_tables(c);
  *connection_tables(c) = v;
  *out = v;
  return SQLITE_OK;
}

/* Tells SQLite the columns. */
static int declare(vtab *v) {
  int rc = SQLITE_OK;
  sqlite3_str *out = sqlite3_str_new(v->db);
  sqlite3_str_appendall(out, "CREATE TABLE x(");
  for (int i = 0; rc == SQLITE_OK && i < v->declared.count; i++) {
    rc = source_append_declaration(out, v, i);
    sqlite3_str_appendall(out, ", ");
  }
  sqlite3_str_appendf(
      out,
      "\"%w\" HIDDEN, k INTEGER HIDDEN, distance REAL HIDDEN, embedding BLOB HIDDEN, "
      "chunk INTEGER HIDDEN, start INTEGER HIDDEN, stop INTEGER HIDDEN, n_tokens "
      "INTEGER HIDDEN, truncated INTEGER HIDDEN, status TEXT HIDDEN)",
      v->name);
  char *sql = sqlite3_str_finish(out);
  if (sql == NULL) return SQLITE_NOMEM;
  if (rc == SQLITE_OK) rc = sqlite3_declare_vtab(v->db, sql);
  sqlite3_free(sql);
  if (rc == SQLITE_OK) rc = sqlite3_vtab_config(v->db, SQLITE_VTAB_CONSTRAINT_SUPPORT, 1);
  if (rc == SQLITE_OK) rc = sqlite3_vtab_config(v->db, SQLITE_VTAB_INNOCUOUS);
  return rc == SQLITE_OK ? rc : vtab_fail_sqlite(v, rc);
}

static int create(sqlite3 *db, void *user, int argc, const char *const *argv, sqlite3_vtab **out,
                  char **message) {
  vtab *v = NULL;
  int rc = vtab_make(db, user, argc, argv, &v, message);
  if (rc != SQLITE_OK) return rc;
  rc = source_check(v);
  if (rc == SQLITE_OK) rc = shadow_create(v);
  if (rc == SQLITE_OK) rc = config_begin(v);
  if (rc == SQLITE_OK) rc = model_record(v);
  if (rc == SQLITE_OK) rc = declare(v);
  return hand_over(v, rc, out, message);
}

static int connect(sqlite3 *db, void *user, int argc, const char *const *argv, sqlite3_vtab **out,
                   char **message) {
  vtab *v = NULL;
  int rc = vtab_make(db, user, argc, argv, &v, message);
  if (rc != SQLITE_OK) return rc;
  rc = config_open(v);
  if (rc == SQLITE_OK) rc = declare(v);
  return hand_over(v, rc, out, message);
}

static int disconnect(sqlite3_vtab *table) {
  vtab_free((vtab *)table);
  return SQLITE_OK;
}

static int destroy(sqlite3_vtab *table) {
  vtab *v = (vtab *)table;
  int rc = vtab_enter(v);
  if (rc != SQLITE_OK) return rc;
  vtab_finalize(v); /* a table with an open statement cannot be dropped */
  rc = vtab_leave(v, shadow_drop(v));
  if (rc == SQLITE_OK) vtab_free(v);
  return rc;
}

/* What waits for COMMIT gets its vectors now: the table that SQLite opens under
** the new name knows nothing of it. */
static int rename_to(vtab *v, const char *name) {
  char *message = NULL;
  int rc = declaration_check_name(&v->declared, name, &message);
  if (message != NULL) {
    sqlite3_free(v->base.zErrMsg);
    v->base.zErrMsg = message;
  }
  if (rc == SQLITE_OK && v->wrote) rc = refresh_queue(v);
  vtab_finalize(v);
  if (rc == SQLITE_OK) rc = shadow_rename(v, name);
  if (rc == SQLITE_OK && v->wrote) {
    v->wrote = 0;
    v->renamed = 1;
  }
  return rc;
}

static int rename_table(sqlite3_vtab *table, const char *name) {
  vtab *v = (vtab *)table;
  int rc = vtab_enter(v);
  return rc == SQLITE_OK ? vtab_leave(v, rename_to(v, name)) : rc;
}

/* ---- Transactions ------------------------------------------------------ */

static int begin(sqlite3_vtab *table) {
  ((vtab *)table)->wrote = ((vtab *)table)->renamed = 0;
  return SQLITE_OK;
}

/* 0 when the table was dropped, renamed or never made, by a rollback, since it was
** written to. */
static int is_still_there(vtab *v, int *there) {
  char *queue = sqlite3_mprintf("%s_queue", v->name);
  if (queue == NULL) return SQLITE_NOMEM;
  int rc =
      sqlite3_table_column_metadata(v->db, v->schema, queue, NULL, NULL, NULL, NULL, NULL, NULL);
  *there = rc == SQLITE_OK;
  sqlite3_free(queue);
  return rc == SQLITE_ERROR ? SQLITE_OK : vtab_fail_sqlite(v, rc);
}

/* Vectors for what INSERT and UPDATE left. SQLite runs this at COMMIT, while an
** error still takes the transaction back. */
static int sync(sqlite3_vtab *table) {
  vtab *v = (vtab *)table;
  int there = 0;
  if (!v->wrote) return SQLITE_OK;
  sqlite3_int64 last = sqlite3_last_insert_rowid(v->db);
  int rc = vtab_enter(v);
  if (rc != SQLITE_OK) return rc;
  rc = is_still_there(v, &there);
  if (rc == SQLITE_OK && there) rc = refresh_queue(v);
  vtab_leave(v, rc);
  sqlite3_set_last_insert_rowid(v->db, last);
  if (rc == SQLITE_OK) v->wrote = 0;
  return rc;
}

static int finish(sqlite3_vtab *table) {
  return begin(table);
}

/* Perhaps the rename was taken back, and what waited then waits again. */
static int rollback_to(sqlite3_vtab *table, int number) {
  vtab *v = (vtab *)table;
  (void)number;
  v->wrote |= v->renamed;
  return SQLITE_OK;
}

/* ---- PRAGMA integrity_check -------------------------------------------- */

static int check_whole(vtab *v, const char *name, char **message) {
  char *problem = NULL;
  int rc = config_check(v);
  if (v->refused != NULL)
    problem = sqlite3_mprintf("%s", v->refused);
  else if (rc == SQLITE_OK)
    rc = check_run(v, &problem);
  if (v->refused != NULL) rc = problem != NULL ? SQLITE_OK : SQLITE_NOMEM;
  if (rc == SQLITE_OK && problem != NULL)
    *message = sqlite3_mprintf("in bertsql table %s: %s", name, problem);
  sqlite3_free(problem);
  return rc == SQLITE_OK && problem != NULL && *message == NULL ? SQLITE_NOMEM : rc;
}

/* Called by SQLite 3.44 and later. Bit 0 of `flags` is set for quick_check. */
static int integrity(sqlite3_vtab *table, const char *schema, const char *name, int flags,
                     char **message) {
  vtab *v = (vtab *)table;
  (void)schema;
  if (flags & 1) return SQLITE_OK;
  int rc = vtab_enter(v);
  return rc == SQLITE_OK ? vtab_leave(v, check_whole(v, name, message)) : rc;
}

/* ---- The module -------------------------------------------------------- */

/* Headers before 3.44 end the struct with xShadowName; what follows is read by a
** host that knows it, when iVersion says that it is there. */
typedef struct module_with_integrity {
  sqlite3_module module;
  int (*integrity)(sqlite3_vtab *, const char *, const char *, int, char **);
} module_with_integrity;

#if SQLITE_VERSION_NUMBER < 3044000
_Static_assert(offsetof(module_with_integrity, integrity) ==
                   offsetof(sqlite3_module, xShadowName) + sizeof(void *),
               "xIntegrity comes right behind xShadowName");
#endif

static const module_with_integrity table_module = {
    .module =
        {
            .iVersion = 4,
            .xCreate = create,
            .xConnect = connect,
            .xBestIndex = plan_best_index,
            .xDisconnect = disconnect,
            .xDestroy = destroy,
            .xOpen = cursor_open,
            .xClose = cursor_close,
            .xFilter = cursor_filter,
            .xNext = cursor_next,
            .xEof = cursor_eof,
            .xColumn = cursor_column,
            .xRowid = cursor_rowid,
            .xUpdate = write_update,
            .xBegin = begin,
            .xSync = sync,
            .xCommit = finish,
            .xRollback = finish,
            .xFindFunction = NULL,
            .xRename = rename_table,
            .xSavepoint = NULL,
            .xRelease = NULL,
            .xRollbackTo = rollback_to,
            .xShadowName = shadow_is_name,
#if SQLITE_VERSION_NUMBER >= 3044000
            .xIntegrity = integrity,
#endif
        },
    .integrity = integrity,
};

int vtab_register(connection *c) {
  int rc = whole_register(connection_db(c));
  if (rc != SQLITE_OK) return rc;
  return sqlite3_create_module_v2(connection_db(c), "bertsql", &table_module.module,
                                  connection_hold(c), connection_drop);
}

vtab *vtab_connected(connection *c, const char *schema, const char *name) {
  vtab *v = *connection_tables(c);
  while (v != NULL &&
         (sqlite3_stricmp(v->schema, schema) != 0 || sqlite3_stricmp(v->name, name) != 0))
    v = v->next;
  return v;
}
