/*
** sqldb.c: an SQLite connection with bertsql loaded.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sqldb.h"

int sqldb_load(sqlite3 *db, const char *file, char **message) {
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
  return sqlite3_load_extension(db, file != NULL ? file : BERTSQL_LIBRARY, "sqlite3_bertsql_init",
                                message);
}

sqlite3 *sqldb_open(const char *path) {
  sqlite3 *db = NULL;
  char *message = NULL;
  if (sqlite3_open(path != NULL ? path : ":memory:", &db) != SQLITE_OK)
    fail_msg("cannot open %s: %s", path, sqlite3_errmsg(db));
  if (sqldb_load(db, NULL, &message) != SQLITE_OK)
    fail_msg("cannot load %s: %s", BERTSQL_LIBRARY, message);
  return db;
}

void sqldb_close(sqlite3 *db) {
  assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void append_column(sqlite3_str *out, sqlite3_stmt *statement, int column) {
  const unsigned char *blob;
  if (column > 0) sqlite3_str_appendchar(out, 1, '|');
  switch (sqlite3_column_type(statement, column)) {
  case SQLITE_NULL: sqlite3_str_appendall(out, "NULL"); break;
  case SQLITE_BLOB:
    blob = sqlite3_column_blob(statement, column);
    sqlite3_str_appendall(out, "x'");
    for (int i = 0; i < sqlite3_column_bytes(statement, column); i++)
      sqlite3_str_appendf(out, "%02x", blob[i]);
    sqlite3_str_appendall(out, "'");
    break;
  default: sqlite3_str_appendall(out, (const char *)sqlite3_column_text(statement, column));
  }
}

/* The rows from one on to which the statement came with `rc`. */
static int append_rows(sqlite3_str *out, sqlite3_stmt *statement, int rc) {
  for (; rc == SQLITE_ROW; rc = sqlite3_step(statement)) {
    if (sqlite3_str_length(out) > 0) sqlite3_str_appendchar(out, 1, '\n');
    for (int i = 0; i < sqlite3_column_count(statement); i++) append_column(out, statement, i);
  }
  return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

char *sqldb_rest(sqlite3_stmt *statement) {
  sqlite3_str *out = sqlite3_str_new(NULL);
  if (append_rows(out, statement, SQLITE_ROW) != SQLITE_OK)
    fail_msg("%s", sqlite3_errmsg(sqlite3_db_handle(statement)));
  return sqlite3_str_finish(out);
}

char *sqldb_answer(sqlite3 *db, const char *sql, int *rc) {
  sqlite3_str *out = sqlite3_str_new(NULL);
  int code = SQLITE_OK;
  while (code == SQLITE_OK && *sql != 0) {
    sqlite3_stmt *statement = NULL;
    code = sqlite3_prepare_v2(db, sql, -1, &statement, &sql);
    if (code == SQLITE_OK && statement != NULL)
      code = append_rows(out, statement, sqlite3_step(statement));
    if (code != SQLITE_OK) {
      sqlite3_str_reset(out);
      sqlite3_str_appendf(out, "ERROR: %s", sqlite3_errmsg(db));
    }
    sqlite3_finalize(statement);
  }
  if (rc != NULL) *rc = code;
  if (sqlite3_str_length(out) == 0) sqlite3_str_appendall(out, "(no rows)");
  return sqlite3_str_finish(out);
}

void assert_answer(sqlite3 *db, const char *sql, const char *expected) {
  char *answer = sqldb_answer(db, sql, NULL);
  if (answer == NULL || strcmp(answer, expected) != 0)
    fail_msg("%s\n  answers   %.2000s\n  and not   %s", sql, answer, expected);
  sqlite3_free(answer);
}

void assert_error(sqlite3 *db, const char *sql, const char *part) {
  char *answer = sqldb_answer(db, sql, NULL);
  if (answer == NULL || strncmp(answer, "ERROR: ", 7) != 0 || strstr(answer, part) == NULL)
    fail_msg("%s\n  answers %.2000s\n  and not an error with %s", sql, answer, part);
  sqlite3_free(answer);
}

void assert_runs(sqlite3 *db, const char *sql) {
  int rc;
  char *answer = sqldb_answer(db, sql, &rc);
  if (answer == NULL || rc != SQLITE_OK) fail_msg("%s\n  answers %.2000s", sql, answer);
  sqlite3_free(answer);
}

void assert_rows(sqlite3 *db, const char *sql, const char *expected) {
  char *rows = sqldb_answer(db, sql, NULL);
  assert_non_null(rows);
  for (char *c = rows; *c != 0; c++)
    if (*c == '\n') *c = ' ';
  if (strcmp(rows, expected) != 0)
    fail_msg("%s\n  gives    %.2000s\n  expected %s", sql, rows, expected);
  sqlite3_free(rows);
}

sqlite3_stmt *sqldb_prepare(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = NULL;
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
    fail_msg("%s: %s", sql, sqlite3_errmsg(db));
  return s;
}

sqlite3_int64 sqldb_number(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = sqldb_prepare(db, sql);
  sqlite3_int64 value;
  if (sqlite3_step(s) != SQLITE_ROW) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
  value = sqlite3_column_int64(s, 0);
  sqlite3_finalize(s);
  return value;
}

static void subtype_of(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  sqlite3_result_int(context, (int)sqlite3_value_subtype(argv[0]));
}

int sqldb_open_docs(void **state) {
  sqlite3 *db = sqldb_open(NULL);
  assert_runs(db, "SELECT bert_load('models/all-MiniLM-L6-v2', 'minilm');"
                  "CREATE TABLE docs(id INTEGER PRIMARY KEY, body TEXT, emb BLOB);"
                  "INSERT INTO docs(id, body) VALUES (1, 'time flies'), (2, NULL), (3, ''), (4, 'a "
                  "red apple')");
  sqlite3_create_function(db, "subtype_of", 1, SQLITE_UTF8, NULL, subtype_of, NULL, NULL);
  *state = db;
  return 0;
}

int sqldb_close_docs(void **state) {
  sqldb_close(*state);
  return 0;
}
