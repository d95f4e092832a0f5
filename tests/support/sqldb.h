/*
** sqldb.h: an SQLite connection with bertsql loaded, and assertions on what SQL
** answers.
*/
#ifndef BERT_TESTS_SQLDB_H
#define BERT_TESTS_SQLDB_H

#include <sqlite3.h>

/* Opens `path` (NULL: in memory) and loads the library under test; ends the
** test when it cannot. */
sqlite3 *sqldb_open(const char *path);

/* Loads the library `file` (NULL: the one under test) into `db`; *message, which
** may be NULL, gets the error, to be freed with sqlite3_free. */
int sqldb_load(sqlite3 *db, const char *file, char **message);

/* Closes; ends the test when something still holds the connection. */
void sqldb_close(sqlite3 *db);

/* The answer to all statements of `sql`: columns separated by |, rows by a
** newline, NULL as "NULL", BLOBs as x'..'; after an error "ERROR: message".
** *rc, which may be NULL, gets the result code. Freed with sqlite3_free; NULL
** without memory. */
char *sqldb_answer(sqlite3 *db, const char *sql, int *rc);

/* The same of the row that a statement is at and those after it; ends the test on an
** error. */
char *sqldb_rest(sqlite3_stmt *statement);

/* The answer is exactly `expected`. */
void assert_answer(sqlite3 *db, const char *sql, const char *expected);

/* The answer is an error with `part` in its text. */
void assert_error(sqlite3 *db, const char *sql, const char *part);

/* No error, whatever the answer. */
void assert_runs(sqlite3 *db, const char *sql);

/* The answer, its rows side by side with a space between, is exactly `expected`. */
void assert_rows(sqlite3 *db, const char *sql, const char *expected);

/* A statement, and the first number that one answers; end the test on an error. */
sqlite3_stmt *sqldb_prepare(sqlite3 *db, const char *sql);
sqlite3_int64 sqldb_number(sqlite3 *db, const char *sql);

/* cmocka's set-up and tear-down of tests that need the real model, loaded as
** minilm, a table docs(id, body, emb) of four rows, a NULL and an empty text among
** them, and the function subtype_of(value). *state is the connection. */
int sqldb_open_docs(void **state);
int sqldb_close_docs(void **state);

#endif
