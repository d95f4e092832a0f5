/*
** bench_sql.c: SQL that must work, see bench.h.
*/
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("bench: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

sqlite3_stmt *prepare(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s;
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
    die("%s, in: %s", sqlite3_errmsg(db), sql);
  return s;
}

int step(sqlite3_stmt *s) {
  int rc = sqlite3_step(s);
  if (rc != SQLITE_ROW && rc != SQLITE_DONE)
    die("%s, in: %s", sqlite3_errmsg(sqlite3_db_handle(s)), sqlite3_sql(s));
  return rc == SQLITE_ROW;
}

void run(sqlite3 *db, const char *sql) {
  run_with_text(db, sql, NULL);
}

void run_with_text(sqlite3 *db, const char *sql, const char *text) {
  sqlite3_stmt *s = prepare(db, sql);
  if (text != NULL) sqlite3_bind_text(s, 1, text, -1, SQLITE_STATIC);
  while (step(s)) {
  }
  sqlite3_finalize(s);
}

sqlite3 *open_database(const char *path) {
  sqlite3 *db;
  if (sqlite3_open(path, &db) != SQLITE_OK) die("cannot open %s", path);
  return db;
}

void load_library(sqlite3 *db, const char *library) {
  char *error = NULL;
  sqlite3_enable_load_extension(db, 1);
  if (sqlite3_load_extension(db, library, NULL, &error) != SQLITE_OK)
    die("cannot load %s: %s", library, error);
}
