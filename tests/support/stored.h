/*
** stored.h: comparisons of all that tables hold, as one number.
*/
#ifndef BERT_TESTS_STORED_H
#define BERT_TESTS_STORED_H

#include <sqlite3.h>
#include <stdint.h>

/* A number for the answer to `sql`: types and bytes of all columns of all rows. It
** is added to what another call gave, 0 at first. Ends the test on an error. */
uint64_t stored_digest(sqlite3 *db, const char *sql, uint64_t so_far);

/* The same for the shadow tables, the scan and a search of the bertsql table t whose
** texts are in `source`, without what may differ between two ways to the same state:
** ids, blocks, the order of the queue. */
uint64_t stored_digest_of_table(sqlite3 *db, const char *source);

/* Runs SQL made from a format of sqlite3_mprintf; ends the test on an error. */
void stored_run(sqlite3 *db, const char *format, ...);

#endif
