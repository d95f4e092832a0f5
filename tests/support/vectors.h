/*
** vectors.h: virtual tables with many vectors, whatever their texts, for tests of
** searching. Their shadow tables are filled as ext/vtab/vtab.h lays them out.
*/
#ifndef BERT_TESTS_VECTORS_H
#define BERT_TESTS_VECTORS_H

#include <sqlite3.h>

/* Gives `table` random vectors: `chunks` for each row of its content table, in
** order of `id`. Some are equal to others, and one is all zeros. The blocks are not
** made: INSERT INTO t(t) VALUES('optimize') does that. */
void vectors_fill(sqlite3 *db, const char *table, const char *content, int dim, int chunks,
                  int is_int8);

/* Registers decoded(vector, dim): the float32 numbers of a stored BLOB of either
** type; and random_vector(dim, seed). */
void vectors_functions(sqlite3 *db);

/* Both queries answer the same, and something. */
void assert_same(sqlite3 *db, const char *sql, const char *expected_sql);

#endif
