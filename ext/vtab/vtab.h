/*
** vtab.h: the virtual table bertsql, CREATE VIRTUAL TABLE … USING bertsql(…).
** The map of this folder:
**
**   declaration.c   reads the arguments of CREATE VIRTUAL TABLE
**   module.c        the sqlite3_module: every entry point, and what calls what
**   shadow.c        makes, drops and renames shadow tables, queue and triggers
**   errors.c        errors of SQLite and of the encoder as errors of the table
**   statements.c    the prepared statements of a table
**   whole.c         work that is done whole or not at all
**   record.c        the table's own record: format, hash, model
**   model.c         the model a table embeds with, held to what config says
**   source.c        the texts: where they are read from, and their hash
**   store.c         vectors of a row: written, replaced, deleted, read
**   cutter.c        the chunks of a long text
**   vectorize.c     texts cut, embedded in batches and stored row by row
**   refresh.c       refresh and rebuild: makes vectors keep step with texts
**   pending.c       how much refresh has yet to do; refresh before a query
**   queue.c         rows that are known to have changed
**   write.c         INSERT, UPDATE and DELETE of a table that keeps its texts
**   commands.c      INSERT INTO t(t) VALUES('refresh'), …
**   pack.c          derived blocks for a fast scan: appended, made anew
**   check.c         integrity-check, xIntegrity
**   plan.c          xBestIndex: what a query asks for, as a string
**   cursor.c        xFilter, xNext, xColumn (query.h: what these six share)
**   plain_scan.c    a plain scan; rows that fulfil a query's other conditions
**   hits.c          MATCH: the query vector, k, the refresh before
**   rowset.c        a set of rows
**   nearest.c       vectors in order of distance, one at a time
**   blocks.c        reads what pack.c wrote; the cache of blocks
**   table_status.c  bert_status
**
** Everything a table knows lies in tables of its schema, so that transactions,
** savepoints, VACUUM, ATTACH and other processes need nothing special. For a
** table t:
**
**   t_config(key TEXT PRIMARY KEY, value) WITHOUT ROWID
**   t_rows(row INTEGER PRIMARY KEY, hash BLOB, first INTEGER, count INTEGER,
**          error TEXT)
**       one for each row that refresh has dealt with. hash is of its text (NULL
**       when it has none); its vectors have the ids first … first + count - 1;
**       error says why it has none although it has a text.
**   t_vectors(id INTEGER PRIMARY KEY, row INTEGER, chunk INTEGER, start INTEGER,
**             stop INTEGER, tokens INTEGER, truncated INTEGER, vector BLOB)
**       the truth: one row for each vector. An id is never used twice while a
**       block names it.
**   t_packed(block INTEGER PRIMARY KEY, stamp INTEGER, last INTEGER,
**            entries INTEGER, data BLOB)
**       derived: vectors in blocks of search.h. `last` is the largest id in a
**       block, blocks are in order of ids, and vectors above the last block are
**       read from t_vectors. An entry whose vector is gone, or now belongs to
**       another row, is passed over. stamp is random: a block with the stamp
**       that one remembers is the block one remembers.
**   t_content(id INTEGER PRIMARY KEY, c0, c1, …)
**       the texts of a table without content=.
**   t_queue(row INTEGER)
**       no shadow table: rows that may have changed. Triggers append to it, and
**       so does INSERT into a table that keeps its texts.
**
** Functions here return an SQLite result code. Where it is not SQLITE_OK the
** message, if there is more to say than SQLite would, is in v->base.zErrMsg.
*/
#ifndef BERTSQL_VTAB_H
#define BERTSQL_VTAB_H

#include "../ext.h"

#include "../../encoder/search/search.h"

enum { VTAB_FORMAT = 1 };

/* ---- declaration.c ----------------------------------------------------- */

typedef enum vector_type { VECTOR_FLOAT32, VECTOR_INT8 } vector_type;

typedef struct declared_column {
  char *name;
  char *type;    /* as written, "" without; a table with content= takes that of its content */
  int unindexed; /* 1: carried for filters, no part of the text */
} declared_column;

/* What CREATE VIRTUAL TABLE said. All strings from sqlite3_malloc64. */
typedef struct declaration {
  declared_column *columns; /* [count] */
  int count;
  char *content;               /* NULL: the table keeps its texts */
  char *content_rowid;         /* NULL: whatever the INTEGER PRIMARY KEY is called */
  char *model, *kind, *prompt; /* NULL: not given */
  int dims;                    /* 0: all */
  int max_tokens;              /* 0: the model's own */
  int chunk_tokens, overlap;   /* 0: one vector a row */
  int all_chunks, triggers, automatic;
  vector_type type;
  search_metric metric;
} declaration;

/* Reads argv[count], the arguments after module, schema and table name. On an
** error *message, from sqlite3_malloc64, shows the right form. Clear *out
** whatever the outcome. */
int declaration_read(const char *table, int count, const char *const *argv, declaration *out,
                     char **message);
/* The same for a table that gets another name. */
int declaration_check_name(declaration *d, const char *table, char **message);
void declaration_clear(declaration *d);

/* Hidden columns, in this order after the declared ones. */
enum {
  HIDDEN_TABLE, /* the table's own name: commands and MATCH */
  HIDDEN_K,
  HIDDEN_DISTANCE,
  HIDDEN_EMBEDDING,
  HIDDEN_CHUNK,
  HIDDEN_START,
  HIDDEN_STOP,
  HIDDEN_TOKENS,
  HIDDEN_TRUNCATED,
  HIDDEN_STATUS,
  HIDDEN_COUNT
};
extern const char *const hidden_names[HIDDEN_COUNT]; /* [0] stands for the table */

/* ---- statements.c ------------------------------------------------------ */

/* The statements that a table keeps prepared; their SQL stands in statements.c.
** Each is used within one function only: reset before it returns. */
typedef enum statement_id {
  CONFIG_GET,     /* (key) -> value */
  CONFIG_SET,     /* (key, value) */
  CONFIG_DELETE,  /* (key) */
  ROW_GET,        /* (row) -> hash, first, count, error */
  ROW_PUT,        /* (row, hash, first, count, error), replaces */
  ROW_DELETE,     /* (row) */
  VECTOR_PUT,     /* (id, row, chunk, start, stop, tokens, truncated, vector) */
  VECTORS_DELETE, /* (first, last) */
  VECTOR_LAST,    /* -> the largest id, NULL without any */
  VECTORS_AFTER,  /* (id) -> id, row, vector, in order of id */
  PACKED_LAST,    /* -> block, last of the last block; no row without any */
  PACKED_PUT,     /* (block, stamp, last, entries, data) */
  PACKED_CLEAR,   /* */
  CONTENT_INSERT, /* (id or NULL, c0, …), own texts only */
  CONTENT_UPDATE, /* (id, c0, …, old id) */
  CONTENT_DELETE, /* (id) */
  SOURCE_TEXT,    /* (row) -> the indexed columns */
  SOURCE_EXISTS,  /* (row) -> 1 */
  SOURCE_AFTER,   /* (row) -> row, then the indexed columns, in order of row, for row > ?1 */
  ORPHANS,        /* -> rows of t_rows whose text's row is gone */
  QUEUE_PUT,      /* (row) */
  QUEUE_EMPTY,    /* -> 1 when it is not empty, no row when it is */
  QUEUE_ROWS,     /* (row) -> the rows above it, each once, in order */
  QUEUE_DELETE,   /* (row): all entries of rows up to it */
  QUEUE_CLEAR,
  WHOLE, /* (pointer): of whole.c, which alone has other statements run inside it */
  STATEMENT_COUNT
} statement_id;

/* One table on one connection. */
typedef struct vtab {
  sqlite3_vtab base; /* first: SQLite sees only this */
  connection *connection;
  sqlite3 *db;
  char *schema, *name;
  declaration declared;
  char *key; /* the rowid's column in the source, "id" for own texts; NULL while
                the content table is not there */
  sqlite3_stmt *statements[STATEMENT_COUNT]; /* prepared on first use */
  loaded_model *model; /* what model_find found: good for the current call into SQLite */
  int dim;             /* numbers of a vector; from config */
  int busy;            /* 1: inside vtab_enter and vtab_leave */
  int knotted;         /* 1: and something tried to come in once more */
  int wrote;           /* 1: this transaction put something into the queue */
  int renamed;         /* 1: and what that was has its vectors, since the table was renamed */
  char *refused;       /* why nothing but DROP TABLE works; NULL: all is well */
  struct block_cache *blocks; /* blocks.c: blocks that were read before; NULL: none */
  struct vtab *next;          /* of the connection's tables */
} vtab;

/* Around all that runs SQL of ours. A view in place of a shadow table, a trigger on
** the queue or a function in a generated column of the content table may lead that
** SQL back to the table: it would reset statements that are running, or call itself
** without end. So vtab_enter is an error (SQLITE_LOCKED) while the table is in use. */
int vtab_enter(vtab *v);
int vtab_leave(vtab *v, int rc); /* returns rc; only after a vtab_enter that succeeded */

/* The prepared statement, reset and without bindings; or an error. */
int vtab_statement(vtab *v, statement_id id, sqlite3_stmt **out);
void vtab_finalize(vtab *v); /* all that are not running; they come back when needed */

/* Runs a statement that gives no rows, and resets it. */
int vtab_run(vtab *v, sqlite3_stmt *s);

/* Prepares SQL for a cursor of its own. In it @NAME stands for a shadow table, and
** @source, @key and @indexed (its columns of the text, separated by commas) for
** where the texts are. `more` (NULL: none) follows as it is. */
int vtab_prepare(vtab *v, sqlite3_stmt **out, const char *sql, const char *more);

/* Runs SQL that is made from a format, for changes of the schema. */
int vtab_execute(vtab *v, const char *format, ...);

/* ---- whole.c ------------------------------------------------------------ */

#define WHOLE_FUNCTION "whole_of_bertsql"
int whole_register(sqlite3 *db);

/* Does work that writes, inside a statement that is running, and takes back what it
** wrote if it fails. Returns what the work did. */
typedef int vtab_work(vtab *v, void *argument);
int vtab_whole(vtab *v, vtab_work *work, void *argument);

/* ---- errors.c ---------------------------------------------------------- */

/* Puts "table: text" into v->base.zErrMsg in place of what is there, and returns
** rc. The format is sqlite3_mprintf's. */
int vtab_fail(vtab *v, int rc, const char *format, ...);
/* The last error of the connection as the table's; rc is its code. Out of
** memory and interrupted need no text. */
int vtab_fail_sqlite(vtab *v, int rc);
/* An error of the encoder. */
int vtab_fail_bert(vtab *v, const bert_error *error);

/* ---- shadow.c ---------------------------------------------------------- */

int shadow_is_name(const char *suffix); /* xShadowName */
int shadow_create(vtab *v);             /* all tables, and triggers if asked for */
int shadow_drop(vtab *v);               /* whatever of them is there */
/* v->name stays: SQLite opens the table anew under its new name, or none. */
int shadow_rename(vtab *v, const char *name);
int shadow_make_triggers(vtab *v); /* anew, whatever of them is there */
/* *whole is 1 when all triggers are there. */
int shadow_check_triggers(vtab *v, int *whole);

/* ---- record.c ---------------------------------------------------------- */

/* At creation: writes format and hash. */
int config_begin(vtab *v);
/* Keys: format, hash, dim, fingerprint, model, source (an absolute path or a hub id; as
** it was given to bert_load in a table of an older version), precision, swept (the row
** that a refresh in slices came to), complete (1: the queue says all there is to do). */
int config_get_int(vtab *v, const char *key, sqlite3_int64 *value, int *found);
int config_get_text(vtab *v, const char *key, char **value); /* NULL when absent; sqlite3_free */
int config_set_int(vtab *v, const char *key, sqlite3_int64 value);
int config_set_text(vtab *v, const char *key, const char *value);
int config_remove(vtab *v, const char *key);
/* At xConnect: reads dim. A record that is missing, broken or newer than this
** code knows does not fail here, since then the table could not be dropped: it
** leaves v->refused. */
int config_open(vtab *v);
/* The beginning of every use of a table (xFilter, xUpdate, …): reads dim again;
** an error where v->refused says why nothing works. */
int config_check(vtab *v);

/* ---- model.c ----------------------------------------------------------- */

/* Finds the table's model on this connection and sees that it is the one config
** names, then v->model and *how are ready; how->kind and prompt are those of the
** table, or for a query (query = 1) the role "query". Errors name the model the
** table was made with and how to load it, or both models when another one answers
** to the name. The default model is opened where it may be the one, and stays open
** only if it is. */
int model_find(vtab *v, int query, bert_embed_options *how);
/* The precision that config names, from sqlite3_malloc64: float32 in a table of an older
** version, which names none; NULL where not even a model is named. */
int model_recorded_precision(vtab *v, char **precision);
/* At creation and rebuild: takes the model there is and records it; sets v->dim. */
int model_record(vtab *v);

/* ---- source.c ---------------------------------------------------------- */

/* A text put together from columns, as bytes that grow. */
typedef struct joined_text {
  char *data; /* [size], NULL-terminated; room for more */
  size_t size, room;
  int is_null; /* every column was NULL */
} joined_text;
void joined_text_free(joined_text *t);

/* Joins columns [first, first + number of indexed columns) of a row of `s`. */
int source_join(vtab *v, sqlite3_stmt *s, int first, joined_text *out);

/* 128 bits of the text, as config's hash names it. */
enum { HASH_BYTES = 16 };
void source_hash(const joined_text *t, unsigned char hash[HASH_BYTES]);

/* The text of one row; *found is 0 when there is no such row. */
int source_text(vtab *v, sqlite3_int64 row, joined_text *out, int *found);
/* Whether there is one. */
int source_exists(vtab *v, sqlite3_int64 row, int *exists);

/* Sees that the content table is there and has the columns and the key it was
** declared with: an error that says what is wrong and shows the right form. */
int source_check(vtab *v);
/* The same where v->key is not the key any more, as after the content table was made
** anew; a look at the schema in memory where it is. */
int source_follow(vtab *v);

/* For SQL: the qualified, quoted table of the texts; in it column i, that is c0,
** c1, … or its own name. */
void source_append_table(sqlite3_str *out, const vtab *v);
void source_append_column(sqlite3_str *out, const vtab *v, int column);

/* At xConnect: finds v->key, if the content table is there. */
int source_open(vtab *v);
/* Appends column i with its type, for sqlite3_declare_vtab. */
int source_append_declaration(sqlite3_str *out, vtab *v, int column);

/* ---- store.c ----------------------------------------------------------- */

/* What t_rows says of a row. */
typedef struct stored_row {
  int found;
  int has_hash;
  unsigned char hash[HASH_BYTES];
  sqlite3_int64 first, count;
  char *error; /* sqlite3_free; NULL: none */
} stored_row;
int store_row(vtab *v, sqlite3_int64 row, stored_row *out);
void stored_row_clear(stored_row *r);
/* 1 when it says this text of its row. Writes the text's hash, if it is not NULL. */
int stored_row_is_of(const stored_row *r, const joined_text *text, unsigned char hash[HASH_BYTES]);

/* One vector to be stored. */
typedef struct new_vector {
  sqlite3_int64 start, stop; /* bytes of the row's text */
  int tokens, truncated;
  const float *vector; /* [v->dim] */
} new_vector;

/* Replaces what the row has by vectors[count], and its hash (NULL: no text) and
** error (NULL: none). */
int store_replace(vtab *v, sqlite3_int64 row, const unsigned char *hash, const char *error,
                  const new_vector *vectors, size_t count);
int store_delete(vtab *v, sqlite3_int64 row); /* nothing where there is nothing */

size_t store_blob_size(const vtab *v); /* bytes of a vector as it is stored */
/* A stored vector BLOB as float32: `numbers`[v->dim], from the BLOB itself or
** written to scratch[v->dim]. An error (SQLITE_CORRUPT_VTAB) when it has the
** wrong length; numbers that are not finite are given as they are. */
int store_read_vector(vtab *v, sqlite3_stmt *s, int column, float *scratch, const float **numbers);

/* ---- queue.c ----------------------------------------------------------- */

int queue_add(vtab *v, sqlite3_int64 row);
int queue_delete(vtab *v, sqlite3_int64 last); /* all entries of rows up to `last` */
int queue_is_empty(vtab *v, int *empty);

/* ---- cutter.c ---------------------------------------------------------- */

/* The chunks of a text, those of bert_split, in memory that does not grow with
** it. Nothing is made before the first cutter_next; end it whatever happened. */
typedef struct cutter {
  vtab *v;
  const bert_model *model;
  bert_text text;
  size_t base;        /* where the window begins whose chunks these are */
  bert_chunk *chunks; /* of it; those from `count` on belong to the next */
  size_t count, at;
  int is_last; /* 1: the window reaches to the end of the text */
} cutter;
void cutter_begin(cutter *c, vtab *v, const bert_model *model, const joined_text *text);
void cutter_end(cutter *c);
/* The next chunk; a text has one at least. *is_last is 1 with its last. */
int cutter_next(cutter *c, bert_chunk *chunk, int *is_last);

/* ---- vectorize.c ------------------------------------------------------- */

/* Rows on their way to vectors. create; give it rows; finish; free. */
typedef struct vectorizer vectorizer;
int vectorize_create(vtab *v, vectorizer **out);
void vectorize_free(vectorizer *z); /* NULL is allowed */

/* Takes a row with its text, which is copied. Embeds and stores, this row or
** others before it, when a batch is full. The model is looked for with the first. */
int vectorize_row(vectorizer *z, sqlite3_int64 row, const unsigned char *hash,
                  const joined_text *text);
/* Embeds and stores all that is left. */
int vectorize_finish(vectorizer *z);

/* ---- refresh.c --------------------------------------------------------- */

/* Brings vectors in step with texts, at most `limit` of them anew (0: all).
** Everything happens in the transaction that is open. */
int refresh_run(vtab *v, sqlite3_int64 limit);
/* The same for what is in the queue only: at commit, of a table that keeps its
** texts. */
int refresh_queue(vtab *v);
/* All vectors anew, with whatever model answers to the table's name now. */
int rebuild_run(vtab *v);

/* Steps `s`, whose first column is a row number: SQLITE_ROW, SQLITE_DONE, or an
** error of the table, SQLITE_INTERRUPT among them. */
int refresh_step(vtab *v, sqlite3_stmt *s, sqlite3_int64 *row);
/* *same is 1 when t_rows has this text for the row. Writes its hash. */
int refresh_compare(vtab *v, sqlite3_int64 row, const joined_text *text,
                    unsigned char hash[HASH_BYTES], int *same);
/* *by_queue is 1 when all there is to do stands in the queue, orphans apart. */
int refresh_by_queue(vtab *v, int *by_queue);
/* Binds a row number that all others are above, for "row > ?1". */
void refresh_from_start(sqlite3_stmt *s);

/* ---- pending.c --------------------------------------------------------- */

/* How many rows refresh has yet to embed or to delete. Needs no model. */
int refresh_pending(vtab *v, sqlite3_int64 *pending);
/* Before a MATCH: brings in step what the table promises to find, that is the
** rows in the queue of a table that keeps its texts, and everything where it was
** declared with auto; nothing in a database that cannot be written. Takes effect as
** a whole or not at all, in a transaction of its own where none is open. */
int refresh_for_query(vtab *v);

/* ---- pack.c ------------------------------------------------------------ */

enum { PACK_VECTORS = 1024 }; /* in a block */
int pack_append(vtab *v);     /* full blocks for the newest vectors, when there are enough */
int pack_all(vtab *v);        /* optimize: every block anew */

/* ---- check.c ----------------------------------------------------------- */

/* Compares all that is stored. *problem is NULL, or the first thing found wrong,
** from sqlite3_malloc64. Needs no model. */
int check_run(vtab *v, char **problem);

/* ---- commands.c, write.c ----------------------------------------------- */

int command_run(vtab *v, sqlite3_value *command, sqlite3_value *k);
int write_update(sqlite3_vtab *table, int argc, sqlite3_value **argv, sqlite3_int64 *rowid);

/* ---- plan.c ------------------------------------------------------------ */

/* What xFilter gets for each argument, in idxStr, one character or more each:
**   M           MATCH, or = on the table's own column
**   K           k =
**   L           LIMIT: a hint how many rows will be taken
**   D           distance < or <=
**   W12:3:NAME; column 12, or the rowid where it is -1, compared by operator 3
**               (SQLITE_INDEX_CONSTRAINT_…) with collation NAME
**   I12:2:NAME; the same for IN, all values at once
**   X           k compared otherwise than once with =, which is an error
**   J           with k: rowid = a value that may come from another table
** idxNum is a sum of the bits below. */
enum {
  PLAN_ORDERED_DOWN = 1, /* a scan in falling order of rowid */
  PLAN_CONTENT = 2       /* declared columns are read */
};
int plan_best_index(sqlite3_vtab *table, sqlite3_index_info *info);

/* ---- rowset.c ---------------------------------------------------------- */

/* Rows in rising order, each once. */
typedef struct rowset {
  sqlite3_int64 *rows; /* [count] */
  size_t count, room;
} rowset;
void rowset_clear(rowset *s);
int rowset_add(rowset *s, sqlite3_int64 row); /* SQLITE_NOMEM; any order, then */
void rowset_finish(rowset *s);                /* sorts, takes doubles away */
int rowset_has(const rowset *s, sqlite3_int64 row);
/* The same, faster for rows asked for in rising order. *hint is 0 at first. */
int rowset_has_next(const rowset *s, sqlite3_int64 row, size_t *hint);
/* Keeps only the rows that are in `other` too. */
void rowset_intersect(rowset *s, const rowset *other);

/* ---- nearest.c --------------------------------------------------------- */

/* A search under way: vectors in rising order of (distance, row, chunk). */
typedef struct nearest nearest;

typedef struct hit {
  sqlite3_int64 id, row;
  double distance;
} hit;

/* Starts a search for query[v->dim], which is copied. `rows` (NULL: all) is borrowed
** until the end. With best_only, of each row only the nearest vector. expect: how
** many hits will probably be taken, 0 when unknown. */
int nearest_open(vtab *v, const float *query, const rowset *rows, int best_only, size_t expect,
                 nearest **out);
int nearest_next(nearest *n, hit *out, int *found); /* *found is 0 at the end */
void nearest_close(nearest *n);                     /* NULL is allowed */

/* ---- blocks.c ---------------------------------------------------------- */

void block_cache_free(struct block_cache *cache); /* NULL is allowed */

/* ---- cursor.c ---------------------------------------------------------- */

int cursor_open(sqlite3_vtab *table, sqlite3_vtab_cursor **out);
int cursor_close(sqlite3_vtab_cursor *base);
int cursor_filter(sqlite3_vtab_cursor *base, int plan, const char *arguments, int argc,
                  sqlite3_value **argv);
int cursor_next(sqlite3_vtab_cursor *base);
int cursor_eof(sqlite3_vtab_cursor *base);
int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column);
int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid);

/* ---- module.c ---------------------------------------------------------- */

int vtab_register(connection *c);

/* The tables of this connection that are connected, for bert_status. */
vtab *vtab_connected(connection *c, const char *schema, const char *name);

/* ---- table_status.c ---------------------------------------------------- */

extern const table_function table_status;

#endif
