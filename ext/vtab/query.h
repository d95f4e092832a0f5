/*
** query.h: what the files that answer a query share: plan.c, cursor.c, plain_scan.c,
** hits.c, nearest.c and blocks.c. Everything else needs only vtab.h.
*/
#ifndef BERTSQL_QUERY_H
#define BERTSQL_QUERY_H

#include "vtab.h"

/* ---- plan.c ------------------------------------------------------------ */

/* One argument of xFilter. */
typedef struct plan_term {
  char kind;             /* a letter of idxStr: M, K, L, D, X, W, I or J */
  int column;            /* W, I: a declared column; -1: the rowid */
  int compare;           /* W: SQLITE_INDEX_CONSTRAINT_…; I: that of = */
  const char *collation; /* [collation_size], inside idxStr; W, I */
  int collation_size;
  sqlite3_value *value; /* borrowed from argv */
} plan_term;

/* Reads idxStr into terms[argc]; SQLITE_ERROR for one that is not ours. A J whose
** value is a parameter becomes a W. */
int plan_read(const char *text, int argc, sqlite3_value **argv, plan_term *terms);

/* The first term of a kind; NULL when there is none. */
const plan_term *plan_find(const plan_term *terms, int count, char kind);

/* ---- cursor.c ---------------------------------------------------------- */

typedef struct cursor {
  sqlite3_vtab_cursor base; /* first: SQLite sees only this */
  int at_end;
  int is_search;     /* 1: a MATCH; 0: a plain scan */
  int has_id;        /* 1: `id` says which vector the row shows; 0: the row's first */
  sqlite3_int64 row; /* of the source, which is the rowid */
  sqlite3_int64 id;  /* of the vector */

  /* A lookup for the current row, made when a column asks for it. All these
  ** statements belong to this cursor alone and stay prepared until it closes. */
  sqlite3_stmt *content, *vector;
  int vector_is_by_id;             /* 1: `vector` looks for an id; 0: for a row's first */
  int content_is_at, vector_is_at; /* 1: has been stepped for this row */

  sqlite3_stmt *scan; /* plain_scan.c */
  int scan_has_content;

  /* hits.c */
  int refreshed;         /* 1: this cursor has refreshed the table already */
  sqlite3_value *match;  /* right side of MATCH; NULL before the first */
  float *query;          /* [query_dim], what it stands for */
  int query_dim;         /* the table's, when the query was made */
  nearest *nearest;      /* NULL: no row can come */
  rowset rows;           /* what other conditions leave */
  int has_k, has_bound;  /* 1: k, bound are given */
  sqlite3_int64 k, left; /* rows that may still come */
  double distance;       /* of the current row */
  double bound;          /* rows beyond it are not wanted */

  /* All hits of a search that a join asks for row by row, in order of row. */
  hit *kept; /* [kept_count] of room kept_room */
  size_t kept_count, kept_room, kept_at;
  int is_kept, uses_kept; /* 1: they are those of match and kept_k; come from there */
  sqlite3_int64 kept_k, kept_row;
} cursor;

/* ---- plain_scan.c ------------------------------------------------------ */

/* Starts a plain scan, before its first row; and goes to the next. */
int scan_start(cursor *c, int plan, const plan_term *terms, int count);
int scan_next(cursor *c);

/* Rows of the source that fulfil every condition among the terms, sorted. The
** set is empty at first. *given is 0, and the set untouched, when there is no
** condition. */
int scan_rows(vtab *v, const plan_term *terms, int count, rowset *out, int *given);

/* Prepares SQL that reads the source; where that fails because the source is not
** what it was, the error says so. Keeps *out when it is the same SQL. Frees
** `sql`, whose NULL is SQLITE_NOMEM. */
int scan_prepare(vtab *v, char *sql, sqlite3_stmt **out);

/* ---- hits.c ------------------------------------------------------------ */

/* Starts a search, before its first row; and goes to the next. */
int hits_start(cursor *c, const plan_term *terms, int count);
int hits_next(cursor *c);

/* ---- blocks.c ---------------------------------------------------------- */

/* A lower bound and the id of every packed vector, in order of id. */
typedef struct packed_bounds {
  float *bounds;      /* [count], from search_scan */
  sqlite3_int64 *ids; /* [count] */
  size_t count;
  size_t entries;     /* of all blocks, `rows` or not */
  sqlite3_int64 last; /* vectors above this id are in no block */
} packed_bounds;

/* What t_packed holds, before its data is read: one for each block. */
typedef struct block_list block_list;

/* Lists the blocks. Gives entries and last of *out. */
int blocks_list(vtab *v, block_list **list, packed_bounds *out);
void block_list_free(block_list *list); /* NULL is allowed */

/* Reads them, or takes them from the cache, and fills bounds, ids and count: of
** vectors that belong to `rows` (NULL: all). */
int blocks_scan(vtab *v, const block_list *list, const search_query *query, const rowset *rows,
                packed_bounds *out);
void packed_bounds_clear(packed_bounds *p);

#endif
