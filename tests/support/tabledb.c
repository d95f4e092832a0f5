/*
** tabledb.c: see tabledb.h.
*/
#include "tabledb.h"

#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

sqlite3 *tabledb_open_plain(const char *path) {
  sqlite3 *db = NULL;
  if (sqlite3_open(path != NULL ? path : ":memory:", &db) != SQLITE_OK)
    fail_msg("cannot open %s: %s", path, sqlite3_errmsg(db));
  return db;
}

sqlite3 *tabledb_open_modelless(const char *path) {
  return sqldb_open(path);
}

sqlite3 *tabledb_open(const char *path) {
  sqlite3 *db = sqldb_open(path);
  assert_answer(db, "SELECT bert_load('" TINY_MODEL "', 'tiny')", "tiny");
  return db;
}

/* ---- Folders ------------------------------------------------------------- */

int tabledb_set_up(void **state) {
  char *folder = scratch_new();
  *state = sqlite3_mprintf("%s/db", folder);
  free(folder);
  return setenv("BERTSQL_MODEL", "no/such/model", 1);
}

int tabledb_tear_down(void **state) {
  char *command = sqlite3_mprintf("rm -r '%.*s'", (int)strlen(*state) - 3, *state);
  int status = system(command);
  sqlite3_free(command);
  sqlite3_free(*state);
  return status;
}

const char *tabledb_beside(void **state, const char *name) {
  static char paths[4][500];
  static unsigned next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%.*s/%s", (int)strlen(*state) - 3, (char *)*state, name);
  return path;
}

/* ---- Tables --------------------------------------------------------------- */

void tabledb_make_docs(sqlite3 *db, const char *options) {
  char *sql = sqlite3_mprintf(
      "CREATE VIRTUAL TABLE docs_emb USING bertsql(body, content='docs', model='tiny'%s);"
      "INSERT INTO docs_emb(docs_emb) VALUES('refresh')",
      options);
  assert_runs(db, "CREATE TABLE docs(id INTEGER PRIMARY KEY, title TEXT, body TEXT, grp INTEGER);"
                  "INSERT INTO docs VALUES(1, 'one', 'time flies like an arrow', 1),"
                  "(2, 'two', 'fruit flies like a banana', 1), (3, 'three', NULL, 2),"
                  "(4, 'four', 'a red apple', 2)");
  assert_runs(db, sql);
  sqlite3_free(sql);
}

void assert_tables(sqlite3 *db, const char *prefix, const char *expected) {
  char *sql = sqlite3_mprintf("SELECT name FROM sqlite_schema WHERE type = 'table' AND "
                              "substr(name, 1, %d) = %Q ORDER BY name",
                              (int)strlen(prefix), prefix);
  assert_rows(db, sql, expected);
  sqlite3_free(sql);
}

void assert_sound(sqlite3 *db, const char *table) {
  char *check =
      sqlite3_mprintf("INSERT INTO \"%w\"(\"%w\") VALUES('integrity-check')", table, table);
  assert_runs(db, check);
  assert_answer(db, "PRAGMA integrity_check", "ok");
  sqlite3_free(check);
}

void assert_finds_itself(sqlite3 *db, const char *table, const char *source, const char *key,
                         const char *text) {
  char *sql = sqlite3_mprintf(
      "SELECT count(*) FROM \"%w\" AS s WHERE s.\"%w\" IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "
      "(SELECT rowid AS r, distance AS d FROM \"%w\" WHERE \"%w\" MATCH s.\"%w\" AND k = 1) "
      "WHERE d < 1e-5 AND (r = s.\"%w\" OR s.\"%w\" = "
      "(SELECT other.\"%w\" FROM \"%w\" AS other WHERE other.\"%w\" = r)))",
      source, text, table, table, text, key, text, text, source, key);
  assert_answer(db, sql, "0");
  sqlite3_free(sql);
}
