/*
** refresh.c: refresh and rebuild, which make vectors keep step with texts.
**
** A row is in step when t_rows has the hash of its text. Whoever finds a row that
** is not embeds it, so looking at a row twice costs a hash and changes nothing.
** A row that was refused is in step too: it is tried again when its text changes,
** and by rebuild. What remains is to look at every row that may have changed:
**
** Without triggers nobody tells, so refresh sweeps the whole content table. In
** slices it notes in `swept` the row it came to, and the next slice goes on there;
** what changes behind that row meanwhile is found by the sweep after, and a
** refresh without a limit always sweeps from the first row.
**
** With triggers every change is appended to the queue, and `complete` says that
** looking at the rows in it is enough. Why nothing is missed: `complete` is set
** when a sweep has ended. The sweep begins by emptying the queue; a change before
** that moment is seen by the sweep, which looks at each row later, and a change
** after it puts the row into the queue, where it stays until the row has been
** looked at again, after the sweep. Entries are deleted in the transaction that
** looked at their rows, so a rollback brings back both. When a trigger is
** missing changes may have gone untold: it is made anew, `complete` and `swept`
** are forgotten, and a new sweep begins.
**
** A table that keeps its texts puts rows into the queue itself, and needs no
** sweep but for rebuild.
**
** INSERT OR REPLACE deletes the row in its way without a trigger, so rows whose
** text is gone are looked for in each refresh.
*/
#include "vtab.h"

#include <string.h>

typedef struct refresh {
  vtab *v;
  vectorizer *vectors;
  joined_text text;
  sqlite3_int64 limit, taken; /* rows made anew: at most, and so far; 0: no limit */
  sqlite3_int64 last;         /* row that was looked at, where any */
  int any;
  int full; /* 1: the row after `last` is beyond the limit */
} refresh;

static int begin(refresh *r, vtab *v, sqlite3_int64 limit) {
  memset(r, 0, sizeof *r);
  r->v = v;
  r->limit = limit;
  return vectorize_create(v, &r->vectors);
}

static void end(refresh *r) {
  vectorize_free(r->vectors);
  joined_text_free(&r->text);
}

static int keeps_texts(const vtab *v) {
  return v->declared.content == NULL;
}

static int has_queue(const vtab *v) {
  return keeps_texts(v) || v->declared.triggers;
}

/* ---- Rows --------------------------------------------------------------- */

void refresh_from_start(sqlite3_stmt *s) {
  sqlite3_bind_double(s, 1, -1e19); /* the smallest integer is -9.2e18 */
}

int refresh_step(vtab *v, sqlite3_stmt *s, sqlite3_int64 *row) {
  if (connection_interrupted(v->connection)) return SQLITE_INTERRUPT;
  int rc = sqlite3_step(s);
  if (rc == SQLITE_ROW) *row = sqlite3_column_int64(s, 0);
  return rc == SQLITE_ROW || rc == SQLITE_DONE ? rc : vtab_fail_sqlite(v, rc);
}

int refresh_compare(vtab *v, sqlite3_int64 row, const joined_text *text,
                    unsigned char hash[HASH_BYTES], int *same) {
  stored_row stored;
  int rc = store_row(v, row, &stored);
  if (rc != SQLITE_OK) return rc;
  *same = stored_row_is_of(&stored, text, hash);
  stored_row_clear(&stored);
  return SQLITE_OK;
}

/* Sees that the row, whose text is in r->text, is in step. Where it is not and
** the limit is reached, leaves it and sets r->full. */
static int look_at(refresh *r, sqlite3_int64 row) {
  unsigned char hash[HASH_BYTES];
  int same = 0;
  int rc = refresh_compare(r->v, row, &r->text, hash, &same);
  if (rc != SQLITE_OK) return rc;
  if (!same && r->limit > 0 && r->taken == r->limit) {
    r->full = 1;
    return SQLITE_OK;
  }
  r->last = row;
  r->any = 1;
  if (same) return SQLITE_OK;
  r->taken++;
  return r->text.is_null ? store_replace(r->v, row, NULL, NULL, NULL, 0)
                         : vectorize_row(r->vectors, row, hash, &r->text);
}

/* ---- The sweep ---------------------------------------------------------- */

static int sweep_rows(refresh *r, int resumed, sqlite3_int64 after) {
  sqlite3_stmt *s;
  sqlite3_int64 row;
  int rc = vtab_statement(r->v, SOURCE_AFTER, &s);
  if (rc != SQLITE_OK) return rc;
  if (resumed)
    sqlite3_bind_int64(s, 1, after);
  else
    refresh_from_start(s);
  while (!r->full && (rc = refresh_step(r->v, s, &row)) == SQLITE_ROW) {
    rc = source_join(r->v, s, 1, &r->text);
    if (rc == SQLITE_OK) rc = look_at(r, row);
    if (rc != SQLITE_OK) break;
  }
  sqlite3_reset(s);
  if (rc == SQLITE_OK || rc == SQLITE_DONE) rc = vectorize_finish(r->vectors);
  return rc;
}

static int clear_queue(vtab *v) {
  sqlite3_stmt *s;
  int empty;
  int rc = queue_is_empty(v, &empty);
  if (rc != SQLITE_OK || empty) return rc; /* what needs no writing takes no lock */
  rc = vtab_statement(v, QUEUE_CLEAR, &s);
  return rc == SQLITE_OK ? vtab_run(v, s) : rc;
}

/* Goes on where the sweep before ended, or begins a new one. */
static int sweep(refresh *r) {
  vtab *v = r->v;
  sqlite3_int64 after = 0;
  int found;
  int rc = config_get_int(v, "swept", &after, &found);
  int resumed = found && (r->limit > 0 || has_queue(v));
  if (rc == SQLITE_OK && !resumed && has_queue(v)) rc = clear_queue(v);
  if (rc == SQLITE_OK) rc = sweep_rows(r, resumed, after);
  if (rc != SQLITE_OK) return rc;
  if (r->full) return r->any ? config_set_int(v, "swept", r->last) : SQLITE_OK;
  if (found) rc = config_remove(v, "swept");
  if (rc == SQLITE_OK && v->declared.triggers) rc = config_set_int(v, "complete", 1);
  return rc;
}

/* ---- The queue ---------------------------------------------------------- */

static int queue_rows(refresh *r) {
  sqlite3_stmt *s;
  sqlite3_int64 row;
  int rc = vtab_statement(r->v, QUEUE_ROWS, &s), found;
  if (rc != SQLITE_OK) return rc;
  refresh_from_start(s);
  r->any = 0;
  while (!r->full && (rc = refresh_step(r->v, s, &row)) == SQLITE_ROW) {
    rc = source_text(r->v, row, &r->text, &found);
    if (rc == SQLITE_OK && found) rc = look_at(r, row);
    if (rc == SQLITE_OK && !found) rc = store_delete(r->v, row);
    if (rc != SQLITE_OK) break;
  }
  sqlite3_reset(s);
  if (rc == SQLITE_OK || rc == SQLITE_DONE) rc = vectorize_finish(r->vectors);
  return rc;
}

/* Works off the queue, in order of row. Entries go in one step at the end: they
** have no index. */
static int work_off_queue(refresh *r) {
  vtab *v = r->v;
  int rc = queue_rows(r);
  if (rc != SQLITE_OK) return rc;
  if (!r->full) return clear_queue(v);
  return r->any ? queue_delete(v, r->last) : SQLITE_OK;
}

/* ---- What else may be amiss --------------------------------------------- */

static int drop_orphans(vtab *v) {
  sqlite3_stmt *s;
  sqlite3_int64 row;
  int rc = vtab_statement(v, ORPHANS, &s);
  if (rc != SQLITE_OK) return rc;
  while ((rc = refresh_step(v, s, &row)) == SQLITE_ROW) {
    rc = store_delete(v, row);
    if (rc != SQLITE_OK) break;
  }
  sqlite3_reset(s);
  return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Makes triggers that are missing; then nothing is sure any more. */
static int mend_triggers(vtab *v) {
  int whole = 1;
  int rc = v->declared.triggers ? shadow_check_triggers(v, &whole) : SQLITE_OK;
  if (rc != SQLITE_OK || whole) return rc;
  rc = config_remove(v, "complete");
  if (rc == SQLITE_OK) rc = config_remove(v, "swept");
  return rc == SQLITE_OK ? shadow_make_triggers(v) : rc;
}

/* *by_queue as in refresh_by_queue, where no trigger is missing. */
static int is_complete(vtab *v, int *by_queue) {
  sqlite3_int64 complete = 0;
  int found, rc = SQLITE_OK;
  *by_queue = keeps_texts(v);
  if (!v->declared.triggers) return rc;
  rc = config_get_int(v, "complete", &complete, &found);
  *by_queue = rc == SQLITE_OK && found && complete == 1;
  return rc;
}

int refresh_by_queue(vtab *v, int *by_queue) {
  int whole = 1;
  int rc = v->declared.triggers ? shadow_check_triggers(v, &whole) : SQLITE_OK;
  *by_queue = 0;
  return rc == SQLITE_OK && whole ? is_complete(v, by_queue) : rc;
}

/* ---- All of it ---------------------------------------------------------- */

static int run(refresh *r, int by_queue) {
  int rc = by_queue ? SQLITE_OK : sweep(r);
  if (rc == SQLITE_OK && !r->full && has_queue(r->v)) rc = work_off_queue(r);
  if (rc == SQLITE_OK && r->taken > 0) rc = pack_append(r->v);
  return rc;
}

/* One run from its beginning to its end. */
static int run_once(vtab *v, sqlite3_int64 limit, int by_queue) {
  refresh r;
  int rc = begin(&r, v, limit);
  if (rc == SQLITE_OK) rc = run(&r, by_queue);
  end(&r);
  return rc;
}

int refresh_run(vtab *v, sqlite3_int64 limit) {
  int by_queue = 0;
  int rc = source_check(v);
  if (rc == SQLITE_OK) rc = mend_triggers(v);
  if (rc == SQLITE_OK) rc = is_complete(v, &by_queue);
  if (rc == SQLITE_OK) rc = drop_orphans(v);
  return rc == SQLITE_OK ? run_once(v, limit, by_queue) : rc;
}

int refresh_queue(vtab *v) {
  return run_once(v, 0, 1);
}

static int forget_all(vtab *v) {
  sqlite3_stmt *s;
  int rc = vtab_execute(v, "DELETE FROM \"%w\".\"%w_rows\"; DELETE FROM \"%w\".\"%w_vectors\"",
                        v->schema, v->name, v->schema, v->name);
  if (rc == SQLITE_OK) rc = vtab_statement(v, PACKED_CLEAR, &s);
  if (rc == SQLITE_OK) rc = vtab_run(v, s);
  if (rc == SQLITE_OK) rc = config_remove(v, "swept");
  return rc == SQLITE_OK ? config_remove(v, "complete") : rc;
}

int rebuild_run(vtab *v) {
  int rc = source_check(v);
  if (rc == SQLITE_OK) rc = model_record(v);
  if (rc == SQLITE_OK) rc = mend_triggers(v);
  if (rc == SQLITE_OK) rc = forget_all(v);
  return rc == SQLITE_OK ? run_once(v, 0, 0) : rc;
}
