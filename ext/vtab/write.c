/*
** write.c: INSERT, UPDATE and DELETE.
**
** A table with content= takes commands and nothing else. One that keeps its texts
** writes them at once and puts the row into the queue: vectors are made for many
** rows at a time, when a MATCH needs them or at COMMIT. That the model is there is
** seen to here, so that whoever writes a text gets the error, and not COMMIT.
**
** Everything that can refuse a row comes before the first thing that is written,
** because OR IGNORE and OR FAIL keep what a refused row has done.
*/
#include "vtab.h"

#include <string.h>

/* argv of xUpdate: the old and the new row number, then all columns. */
enum { OLD_ROW, NEW_ROW, FIRST_COLUMN };

static sqlite3_value *hidden_value(const vtab *v, sqlite3_value **argv, int hidden) {
  return argv[FIRST_COLUMN + v->declared.count + hidden];
}

static int is_null(sqlite3_value *value) {
  return sqlite3_value_type(value) == SQLITE_NULL;
}

/* ---- Hidden columns ----------------------------------------------------- */

static int refuse_hidden(vtab *v, int hidden) {
  if (hidden == HIDDEN_TABLE)
    return vtab_fail(v, SQLITE_ERROR,
                     "column %s is for commands, which are written as INSERT INTO %s(%s) "
                     "VALUES('refresh')",
                     v->name, v->name, v->name);
  return vtab_fail(v, SQLITE_ERROR,
                   "column %s cannot be set: it is computed%s. Leave it out, as in INSERT INTO "
                   "%s(%s) VALUES('…')",
                   hidden_names[hidden], hidden == HIDDEN_K ? ", or goes with a command" : "",
                   v->name, v->declared.columns[0].name);
}

static int check_hidden(vtab *v, sqlite3_value **argv) {
  for (int i = 0; i < HIDDEN_COUNT; i++)
    if (!is_null(hidden_value(v, argv, i))) return refuse_hidden(v, i);
  return SQLITE_OK;
}

/* Steps a query of the table itself, while no statement of ours is running. */
static int step_freely(vtab *v, sqlite3_stmt *s, int *is_row) {
  vtab_leave(v, SQLITE_OK);
  *is_row = sqlite3_step(s) == SQLITE_ROW;
  int rc = sqlite3_reset(s);
  int entered = vtab_enter(v);
  return rc == SQLITE_OK ? entered : rc;
}

/* *same is 1 when what a query reads in a hidden column of `row` may be `value`.
** UPDATE … FROM gives back all columns of the row, the changed and the others. */
static int is_stored(vtab *v, sqlite3_int64 row, int hidden, sqlite3_value *value, int *same) {
  char more[160];
  sqlite3_stmt *s = NULL;
  sqlite3_snprintf(sizeof more, more, " WHERE rowid = %lld AND %s IS ?1", row,
                   hidden_names[hidden]);
  char *sql = sqlite3_mprintf("SELECT 1 FROM \"%w\".\"%w\"%s", v->schema, v->name, more);
  *same = 0;
  if (sql == NULL) return SQLITE_NOMEM;
  int rc = sqlite3_prepare_v2(v->db, sql, -1, &s, NULL);
  sqlite3_free(sql);
  if (rc == SQLITE_OK) rc = sqlite3_bind_value(s, 1, value);
  if (rc == SQLITE_OK) rc = step_freely(v, s, same);
  sqlite3_finalize(s);
  return rc == SQLITE_OK ? rc : vtab_fail_sqlite(v, rc);
}

static int check_hidden_update(vtab *v, sqlite3_int64 row, sqlite3_value **argv) {
  int rc = SQLITE_OK;
  for (int i = 0; rc == SQLITE_OK && i < HIDDEN_COUNT; i++) {
    sqlite3_value *value = hidden_value(v, argv, i);
    int same = 0;
    if (is_null(value) || sqlite3_value_nochange(value)) continue;
    if (i > HIDDEN_DISTANCE) rc = is_stored(v, row, i, value, &same);
    if (rc == SQLITE_OK && !same) rc = refuse_hidden(v, i);
  }
  return rc;
}

/* ---- Rows in the way ---------------------------------------------------- */

static int delete_content(vtab *v, sqlite3_int64 row) {
  sqlite3_stmt *s;
  int rc = vtab_statement(v, CONTENT_DELETE, &s);
  if (rc != SQLITE_OK) return rc;
  sqlite3_bind_int64(s, 1, row);
  return vtab_run(v, s);
}

static int delete_row(vtab *v, sqlite3_int64 row) {
  int rc = delete_content(v, row);
  return rc == SQLITE_OK ? store_delete(v, row) : rc;
}

/* Sees that the number `row` is free, or makes it so where the statement says OR
** REPLACE. What else may be said is SQLite's to do, once it has the error. */
static int make_way(vtab *v, sqlite3_int64 row) {
  int exists;
  int rc = source_exists(v, row, &exists);
  if (rc != SQLITE_OK || !exists) return rc;
  if (sqlite3_vtab_on_conflict(v->db) == SQLITE_REPLACE) return delete_row(v, row);
  sqlite3_free(v->base.zErrMsg);
  v->base.zErrMsg = sqlite3_mprintf("UNIQUE constraint failed: %s.rowid", v->name);
  return v->base.zErrMsg != NULL ? SQLITE_CONSTRAINT : SQLITE_NOMEM;
}

/* ---- Own texts ---------------------------------------------------------- */

static int queue_row(vtab *v, sqlite3_int64 row) {
  int rc = queue_add(v, row);
  if (rc == SQLITE_OK) v->wrote = 1;
  return rc;
}

static int find_model(vtab *v) {
  bert_embed_options how;
  return model_find(v, 0, &how);
}

/* 1 when there is a text in the row to be embedded. */
static int has_text(const vtab *v, sqlite3_value **argv) {
  for (int i = 0; i < v->declared.count; i++)
    if (!v->declared.columns[i].unindexed && !is_null(argv[FIRST_COLUMN + i])) return 1;
  return 0;
}

static int insert_row(vtab *v, sqlite3_value **argv, sqlite3_int64 *rowid) {
  sqlite3_stmt *s;
  int numbered = !is_null(argv[NEW_ROW]);
  int rc = check_hidden(v, argv);
  if (rc == SQLITE_OK && has_text(v, argv)) rc = find_model(v);
  if (rc == SQLITE_OK && numbered) rc = make_way(v, sqlite3_value_int64(argv[NEW_ROW]));
  if (rc == SQLITE_OK) rc = vtab_statement(v, CONTENT_INSERT, &s);
  if (rc != SQLITE_OK) return rc;
  if (numbered) rc = sqlite3_bind_value(s, 1, argv[NEW_ROW]);
  for (int i = 0; rc == SQLITE_OK && i < v->declared.count; i++)
    rc = sqlite3_bind_value(s, i + 2, argv[FIRST_COLUMN + i]);
  if (rc != SQLITE_OK) return vtab_fail_sqlite(v, rc);
  rc = vtab_run(v, s);
  if (rc != SQLITE_OK) return rc;
  *rowid = sqlite3_last_insert_rowid(v->db);
  return queue_row(v, *rowid);
}

/* What an UPDATE does to a row. */
typedef struct change {
  sqlite3_int64 from, to;
  int found;
  int text_changed; /* a column of the text has another value */
  int has_text;     /* afterwards */
} change;

/* The new row number: what an INTEGER PRIMARY KEY takes. */
static int read_new_row(vtab *v, sqlite3_value *value, sqlite3_int64 *row) {
  int type = sqlite3_value_numeric_type(value);
  *row = sqlite3_value_int64(value);
  if (type == SQLITE_INTEGER ||
      (type == SQLITE_FLOAT && sqlite3_value_double(value) == (double)*row))
    return SQLITE_OK;
  return vtab_fail(v, SQLITE_MISMATCH, "a rowid must be a whole number");
}

/* Binds the new values of a row to CONTENT_UPDATE. `before` stands on the old
** ones, from column 1 on: columns that did not change may have come without a
** value. */
static int bind_update(vtab *v, sqlite3_stmt *s, sqlite3_stmt *before, sqlite3_value **argv,
                       change *c) {
  int count = v->declared.count;
  int rc = sqlite3_bind_int64(s, 1, c->to);
  for (int i = 0; rc == SQLITE_OK && i < count; i++) {
    sqlite3_value *old = sqlite3_column_value(before, i + 1), *value = argv[FIRST_COLUMN + i];
    if (sqlite3_value_nochange(value)) value = old;
    if (!v->declared.columns[i].unindexed) {
      c->text_changed |= value != old && !value_same(value, old);
      c->has_text |= !is_null(value);
    }
    rc = sqlite3_bind_value(s, i + 2, value);
  }
  if (rc == SQLITE_OK) rc = sqlite3_bind_int64(s, count + 2, c->from);
  return rc == SQLITE_OK ? rc : vtab_fail_sqlite(v, rc);
}

/* Reads the row as it is, and makes *s the statement that changes it. */
static int prepare_update(vtab *v, sqlite3_value **argv, sqlite3_stmt **s, change *c) {
  sqlite3_stmt *before = NULL;
  int rc = vtab_prepare(v, &before, "SELECT id@columns FROM @content WHERE id = ?1", NULL);
  if (rc == SQLITE_OK) rc = vtab_statement(v, CONTENT_UPDATE, s);
  if (rc == SQLITE_OK) {
    sqlite3_bind_int64(before, 1, c->from);
    c->found = sqlite3_step(before) == SQLITE_ROW;
    if (c->found) rc = bind_update(v, *s, before, argv, c);
  }
  int end = sqlite3_finalize(before);
  return rc == SQLITE_OK ? vtab_fail_sqlite(v, end) : rc;
}

/* A row that gets another number gets new vectors too: blocks know the old one. */
static int update_row(vtab *v, sqlite3_value **argv) {
  change c = {.from = sqlite3_value_int64(argv[OLD_ROW])};
  sqlite3_stmt *s = NULL;
  int rc = read_new_row(v, argv[NEW_ROW], &c.to);
  if (rc == SQLITE_OK) rc = check_hidden_update(v, c.from, argv);
  if (rc == SQLITE_OK) rc = prepare_update(v, argv, &s, &c);
  if (rc != SQLITE_OK || !c.found) return rc; /* OR REPLACE may have deleted it a row ago */
  int moved = c.from != c.to;
  if ((c.text_changed || moved) && c.has_text) rc = find_model(v);
  if (rc == SQLITE_OK && moved) rc = make_way(v, c.to);
  if (rc == SQLITE_OK) rc = vtab_run(v, s);
  if (rc == SQLITE_OK && moved) rc = store_delete(v, c.from);
  return rc == SQLITE_OK && (c.text_changed || moved) ? queue_row(v, c.to) : rc;
}

static int write_row(vtab *v, int argc, sqlite3_value **argv, sqlite3_int64 *rowid) {
  if (argc == 1) return delete_row(v, sqlite3_value_int64(argv[OLD_ROW]));
  if (is_null(argv[OLD_ROW])) return insert_row(v, argv, rowid);
  return update_row(v, argv);
}

/* ---- Commands ----------------------------------------------------------- */

static int is_command(const vtab *v, int argc, sqlite3_value **argv) {
  return argc > 1 && is_null(argv[OLD_ROW]) && !is_null(hidden_value(v, argv, HIDDEN_TABLE));
}

/* A command stands alone: other values would be lost without a word. */
static int check_command(vtab *v, int argc, sqlite3_value **argv) {
  for (int i = NEW_ROW; i < argc; i++) {
    int hidden = i - FIRST_COLUMN - v->declared.count;
    if (is_null(argv[i]) || hidden == HIDDEN_TABLE || hidden == HIDDEN_K) continue;
    return vtab_fail(v, SQLITE_ERROR,
                     "a command stands alone, as in INSERT INTO %s(%s) VALUES('refresh')", v->name,
                     v->name);
  }
  return SQLITE_OK;
}

static int run_command(vtab *v, int argc, sqlite3_value **argv) {
  int rc = check_command(v, argc, argv);
  if (rc != SQLITE_OK) return rc;
  return command_run(v, hidden_value(v, argv, HIDDEN_TABLE), hidden_value(v, argv, HIDDEN_K));
}

static int refuse_write(vtab *v) {
  const char *content = v->declared.content;
  return vtab_fail(v, SQLITE_ERROR,
                   "it takes its texts from %s: write there, then INSERT INTO %s(%s) "
                   "VALUES('refresh')",
                   content, v->name, v->name);
}

/* What xUpdate was called with. */
typedef struct update {
  int argc;
  sqlite3_value **argv;
  sqlite3_int64 *rowid;
} update;

static int write_or_command(vtab *v, void *argument) {
  const update *u = argument;
  int argc = u->argc;
  sqlite3_value **argv = u->argv;
  sqlite3_int64 *rowid = u->rowid, last = sqlite3_last_insert_rowid(v->db);
  int command = is_command(v, argc, argv), rc;
  if (command)
    rc = run_command(v, argc, argv);
  else if (v->declared.content != NULL)
    rc = refuse_write(v);
  else
    rc = write_row(v, argc, argv, rowid);
  /* Ours are rows of other tables. After an INSERT SQLite itself puts *rowid there. */
  sqlite3_set_last_insert_rowid(v->db, last);
  if (command) *rowid = last;
  return rc;
}

int write_update(sqlite3_vtab *table, int argc, sqlite3_value **argv, sqlite3_int64 *rowid) {
  vtab *v = (vtab *)table;
  update u = {argc, argv, rowid};
  int rc = vtab_enter(v);
  if (rc != SQLITE_OK) return rc;
  rc = config_check(v);
  return vtab_leave(v, rc == SQLITE_OK ? vtab_whole(v, write_or_command, &u) : rc);
}
