/*
** tabledb.h: databases in files of their own, in which virtual tables are made
** and everything that SQLite does to a table is done to them.
*/
#ifndef BERT_TESTS_TABLEDB_H
#define BERT_TESTS_TABLEDB_H

#include "sqldb.h"

/* Two small models: vectors of 32 numbers, and of 24 with the prompts query and
** passage. */
#define TINY_MODEL "tests/golden/families/bert-mean"
#define OTHER_MODEL "tests/golden/families/bert-cls-dense"

/* A connection with bertsql on `path` (NULL: in memory), and TINY_MODEL as tiny. */
sqlite3 *tabledb_open(const char *path);
/* The same without any model, and without bertsql. */
sqlite3 *tabledb_open_modelless(const char *path);
sqlite3 *tabledb_open_plain(const char *path);

/* cmocka's set-up and tear-down: *state is the path of a database, not there yet,
** in a folder of its own, and BERTSQL_MODEL names no model. */
int tabledb_set_up(void **state);
int tabledb_tear_down(void **state);

/* A path beside *state; valid until the next four calls. */
const char *tabledb_beside(void **state, const char *name);

/* A table docs(id, title, body, grp) of four rows, a NULL body among them, and a
** virtual table docs_emb(body) over it that is refreshed. `options` is put behind
** content='docs', as in ", triggers=1". */
void tabledb_make_docs(sqlite3 *db, const char *options);

/* Tables whose names begin with `prefix`, in the order of their names. */
void assert_tables(sqlite3 *db, const char *prefix, const char *expected);

/* integrity-check of the table and PRAGMA integrity_check find nothing. */
void assert_sound(sqlite3 *db, const char *table);

/* The text nearest to each stored text of `table` is that text: its vectors are
** those of its texts, and all of them are found. `key` and `text` are of the table
** `source`. */
void assert_finds_itself(sqlite3 *db, const char *table, const char *source, const char *key,
                         const char *text);

#endif
