/*
** blocks.c: reads t_packed for a search, and keeps blocks between searches.
**
** A table remembers blocks by number, random stamp and size. Each search asks
** t_packed which blocks there are now: those columns precede the data, so SQLite
** reads one page of each block for it. A rollback, another process or optimize
** changes stamps, and what is remembered under another stamp is dropped.
*/
#include "query.h"

#include <math.h>
#include <string.h>

/* Blocks that are not kept are read, scanned and freed in groups of this size. */
enum { GROUP_BYTES = 16 << 20 };

typedef struct known_block {
  sqlite3_int64 number, stamp;
  uint64_t size;
  unsigned char *data; /* [size]; NULL: not read. Owned by the cache */
} known_block;

struct block_list {
  known_block *blocks; /* [count], in order of number */
  size_t count, room;
};

/* What is remembered: the list of the last search, whose data may be there. */
typedef struct block_cache {
  block_list known;
  uint64_t bytes; /* of all data in it */
} block_cache;

/* ---- Lists --------------------------------------------------------------- */

static void free_data(block_list *list) {
  for (size_t i = 0; i < list->count; i++) sqlite3_free(list->blocks[i].data);
  sqlite3_free(list->blocks);
  memset(list, 0, sizeof *list);
}

void block_cache_free(block_cache *cache) {
  if (cache == NULL) return;
  free_data(&cache->known);
  sqlite3_free(cache);
}

void block_list_free(block_list *list) {
  if (list == NULL) return;
  sqlite3_free(list->blocks); /* data belongs to the cache */
  sqlite3_free(list);
}

static int list_add(block_list *list, const known_block *block) {
  if (!array_grow((void **)&list->blocks, &list->room, list->count + 1, sizeof *list->blocks))
    return SQLITE_NOMEM;
  list->blocks[list->count++] = *block;
  return SQLITE_OK;
}

static int broken_block(vtab *v, sqlite3_int64 number, const char *what) {
  return vtab_fail(v, SQLITE_CORRUPT_VTAB,
                   "block %lld of %s_packed %s; make the blocks anew: INSERT INTO %s(%s) "
                   "VALUES('optimize')",
                   number, v->name, what, v->name, v->name);
}

/* One row of the list; the size must be that of so many entries, so that no
** number that was tampered with decides about memory. */
static int list_row(vtab *v, sqlite3_stmt *s, block_list *list, packed_bounds *out) {
  known_block block = {sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 1),
                       (uint64_t)sqlite3_column_int64(s, 4), NULL};
  sqlite3_int64 last = sqlite3_column_int64(s, 2), entries = sqlite3_column_int64(s, 3);
  if (entries < 1 || entries > INT_MAX ||
      search_block_size((size_t)entries, (size_t)v->dim) != block.size)
    return broken_block(v, block.number, "does not have the size that its entries take");
  if (last < out->last) return broken_block(v, block.number, "is not in order");
  out->last = last;
  out->entries += (size_t)entries;
  return list_add(list, &block);
}

int blocks_list(vtab *v, block_list **list, packed_bounds *out) {
  sqlite3_stmt *s = NULL;
  memset(out, 0, sizeof *out);
  out->last = INT64_MIN;
  *list = sqlite3_malloc64(sizeof **list);
  if (*list == NULL) return SQLITE_NOMEM;
  memset(*list, 0, sizeof **list);
  int rc = vtab_prepare(v, &s,
                        "SELECT block, stamp, last, entries, length(data) FROM @packed "
                        "ORDER BY block",
                        NULL);
  while (rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW) rc = list_row(v, s, *list, out);
  int end = sqlite3_finalize(s);
  if (rc == SQLITE_OK && end != SQLITE_OK) rc = vtab_fail_sqlite(v, end);
  return rc;
}

/* ---- The cache ----------------------------------------------------------- */

static uint64_t cache_budget(vtab *v) {
  return (uint64_t)connection_settings(v->connection)->search_cache << 20;
}

/* Makes the cache what the list says, with the data of blocks that are still the
** same, as far as the budget goes. Both are in order of number. */
static int cache_follow(vtab *v, const block_list *list) {
  block_list fresh = {0};
  uint64_t budget = cache_budget(v), bytes = 0;
  if (v->blocks == NULL) {
    v->blocks = sqlite3_malloc64(sizeof *v->blocks);
    if (v->blocks == NULL) return SQLITE_NOMEM;
    memset(v->blocks, 0, sizeof *v->blocks);
  }
  block_list *known = &v->blocks->known;
  for (size_t i = 0, j = 0; i < list->count; i++) {
    int rc = list_add(&fresh, &list->blocks[i]);
    if (rc != SQLITE_OK) {
      free_data(known); /* some of its data is in fresh by now */
      free_data(&fresh);
      v->blocks->bytes = 0;
      return rc;
    }
    known_block *block = &fresh.blocks[i];
    while (j < known->count && known->blocks[j].number < block->number) j++;
    if (j == known->count || known->blocks[j].number != block->number ||
        known->blocks[j].stamp != block->stamp || known->blocks[j].size != block->size ||
        known->blocks[j].data == NULL || bytes + block->size > budget)
      continue;
    block->data = known->blocks[j].data;
    known->blocks[j].data = NULL;
    bytes += block->size;
  }
  free_data(known);
  *known = fresh;
  v->blocks->bytes = bytes;
  return SQLITE_OK;
}

/* ---- Reading ------------------------------------------------------------- */

/* Reads the data of a block into memory of its own: incremental I/O reads
** overflow pages to where they shall be, a column would be copied once more. */
static int read_block(vtab *v, const known_block *block, sqlite3_blob **blob,
                      unsigned char **data) {
  int rc;
  *data = NULL;
  if (*blob != NULL) {
    rc = sqlite3_blob_reopen(*blob, block->number);
  } else {
    char *table = sqlite3_mprintf("%s_packed", v->name);
    if (table == NULL) return SQLITE_NOMEM;
    rc = sqlite3_blob_open(v->db, v->schema, table, "data", block->number, 0, blob);
    sqlite3_free(table);
  }
  if (rc == SQLITE_ERROR) return broken_block(v, block->number, "has no data");
  if (rc != SQLITE_OK) return vtab_fail_sqlite(v, rc);
  if ((uint64_t)sqlite3_blob_bytes(*blob) != block->size)
    return broken_block(v, block->number, "has another size than it says");
  *data = sqlite3_malloc64(block->size);
  if (*data == NULL) return SQLITE_NOMEM;
  rc = sqlite3_blob_read(*blob, *data, (int)block->size, 0);
  return rc == SQLITE_OK ? rc : vtab_fail_sqlite(v, rc);
}

/* ---- Scanning ------------------------------------------------------------ */

/* Blocks that are scanned together. */
typedef struct group {
  search_block *views;   /* [count], of room for all */
  unsigned char **owned; /* [count]: data to be freed; NULL: the cache's */
  size_t count, entries;
  uint64_t bytes; /* of owned data */
} group;

static void group_empty(group *g) {
  for (size_t i = 0; i < g->count; i++) sqlite3_free(g->owned[i]);
  g->count = 0;
  g->entries = 0;
  g->bytes = 0;
}

/* Puts the entries of a scanned block behind those that are kept already; bounds
** of the block begin at `from`. Ids must rise, since each may come once. */
static int take_entries(vtab *v, const search_block *view, const rowset *rows, const float *from,
                        packed_bounds *out) {
  size_t hint = 0;
  for (size_t i = 0; i < view->count; i++) {
    sqlite3_int64 id = search_block_id(view, i);
    if (id > out->last || (out->count > 0 && id <= out->ids[out->count - 1]))
      return vtab_fail(v, SQLITE_CORRUPT_VTAB,
                       "the blocks of %s_packed are not in order; make them anew: INSERT INTO "
                       "%s(%s) VALUES('optimize')",
                       v->name, v->name, v->name);
    if (rows != NULL && !rowset_has_next(rows, search_block_row(view, i), &hint)) continue;
    out->ids[out->count] = id;
    out->bounds[out->count++] = from[i];
  }
  return SQLITE_OK;
}

/* Bounds are written behind those that are kept, and moved down over entries that
** were left out: there is room for every entry. */
static int scan_group(vtab *v, group *g, const search_query *query, const rowset *rows,
                      packed_bounds *out) {
  int rc = SQLITE_OK;
  float *from = out->bounds + out->entries; /* entries: of the groups before */
  search_scan(query, g->views, g->count, connection_settings(v->connection)->threads, from);
  for (size_t i = 0; rc == SQLITE_OK && i < g->count; i++) {
    rc = take_entries(v, &g->views[i], rows, from, out);
    from += g->views[i].count;
  }
  out->entries += g->entries;
  group_empty(g);
  return rc;
}

/* Adds a block to the group, from the cache or read; keeps it if there is room. */
static int group_add(vtab *v, group *g, known_block *block, sqlite3_blob **blob) {
  unsigned char *data = block->data;
  bert_error error = {BERT_OK, ""};
  int rc = SQLITE_OK;
  g->owned[g->count] = NULL;
  if (data == NULL) {
    rc = read_block(v, block, blob, &data);
    if (rc == SQLITE_OK && v->blocks->bytes + block->size <= cache_budget(v)) {
      block->data = data;
      v->blocks->bytes += block->size;
    } else {
      g->owned[g->count] = data;
      g->bytes += block->size;
    }
  }
  search_block *view = &g->views[g->count++]; /* counted, so that data is freed */
  if (rc != SQLITE_OK) return rc;
  if (search_block_view(data, block->size, v->declared.metric, (size_t)v->dim, view, &error) !=
      BERT_OK)
    return broken_block(v, block->number, error.text);
  g->entries += view->count;
  return SQLITE_OK;
}

static int scan_blocks(vtab *v, const search_query *query, const rowset *rows, group *g,
                       packed_bounds *out) {
  block_list *known = &v->blocks->known;
  sqlite3_blob *blob = NULL;
  int rc = SQLITE_OK;
  for (size_t i = 0; rc == SQLITE_OK && i < known->count; i++) {
    if (connection_interrupted(v->connection)) rc = SQLITE_INTERRUPT;
    if (rc == SQLITE_OK) rc = group_add(v, g, &known->blocks[i], &blob);
    if (rc == SQLITE_OK && (g->bytes > GROUP_BYTES || i + 1 == known->count))
      rc = scan_group(v, g, query, rows, out);
  }
  sqlite3_blob_close(blob); /* NULL is allowed; a failed reopen was reported */
  group_empty(g);
  return rc;
}

int blocks_scan(vtab *v, const block_list *list, const search_query *query, const rowset *rows,
                packed_bounds *out) {
  group g = {0};
  size_t entries = out->entries;
  if (list->count == 0) return SQLITE_OK;
  int rc = cache_follow(v, list);
  if (rc != SQLITE_OK) return rc;
  out->bounds = sqlite3_malloc64(entries * sizeof *out->bounds);
  out->ids = sqlite3_malloc64(entries * sizeof *out->ids);
  g.views = sqlite3_malloc64(list->count * sizeof *g.views);
  g.owned = sqlite3_malloc64(list->count * sizeof *g.owned);
  out->entries = 0;
  if (out->bounds == NULL || out->ids == NULL || g.views == NULL || g.owned == NULL)
    rc = SQLITE_NOMEM;
  else
    rc = scan_blocks(v, query, rows, &g, out);
  sqlite3_free(g.views);
  sqlite3_free(g.owned);
  return rc;
}

void packed_bounds_clear(packed_bounds *p) {
  sqlite3_free(p->bounds);
  sqlite3_free(p->ids);
  memset(p, 0, sizeof *p);
}
