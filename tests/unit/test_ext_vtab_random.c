/*
** test_ext_vtab_random.c: 2,000 random sequences of what can be done to a bertsql
** table, each followed by a comparison with a plain table m to which the same was
** done: the same rows; vectors that are to the bit those of the rows' texts; the
** nearest rows that a walk over all vectors gives; and a sound database.
**
** For a table with content=, m is the content. For one that keeps its texts each
** statement runs on both tables, and must succeed or fail on both.
**
** BERTSQL_SEED chooses other sequences, BERTSQL_ROUNDS their number for each kind
** of table. After a failure all statements are printed: they run in the shell.
*/
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dice.h"
#include "pieces.h"
#include "stored.h"
#include "tabledb.h"

enum { KINDS = 8, SEQUENCES = 250, LIFETIME = 25, DEEPEST = 4 };

typedef struct kind {
  const char *name, *options; /* behind the columns */
  piece_rules rules;
  int own, automatic, first_rows;
} kind;

static const kind kinds[KINDS] = {
    {"own texts", "", {0, 0, 0, 0}, 1, 0, 0},
    {"own texts in chunks", ", chunk_tokens=7, overlap=2, all_chunks=1", {7, 2, 1, 0}, 1, 0, 0},
    {"own texts, best chunk", ", chunk_tokens=7, overlap=0, metric=cosine", {7, 0, 0, 0}, 1, 0, 0},
    {"own texts, int8, more than a block", ", dtype=int8", {0, 0, 0, 1}, 1, 0, 1100},
    {"content", ", content='m'", {0, 0, 0, 0}, 0, 0, 0},
    {"content with triggers, more than a block",
     ", content='m', triggers=1",
     {0, 0, 0, 0},
     0,
     0,
     1100},
    {"content, triggers, auto", ", content='m', triggers=1, auto=1", {0, 0, 0, 0}, 0, 1, 0},
    {"content in chunks, triggers",
     ", content='m', triggers=1, chunk_tokens=7, all_chunks=1",
     {7, 0, 1, 0},
     0,
     0,
     0},
};

static const char *const values[] = {"NULL",
                                     "NULL",
                                     "'context'",
                                     "'rest depend'",
                                     "''",
                                     "'su add'",
                                     "'ex'",
                                     "5",
                                     "1.5",
                                     "x'616263'",
                                     "'tree' || char(0) || 'rest'",
                                     "'Context rest'",
                                     "CAST(x'c328' AS TEXT)",
                                     "'a longer text about context that depends on the rest, "
                                     "and goes on for some more words'"};
enum { VALUES = sizeof values / sizeof values[0] };

/* What a sequence works on. There is one at a time. */
typedef struct world {
  const kind *kind;
  sqlite3 *db;
  dice dice;
  piece_cache *pieces;
  sqlite3_str *log; /* every statement since the tables were made */
  uint64_t seed, sequence;
  int saved;   /* savepoints that are open */
  int in_step; /* 1: no vector may be pending */
} world;

static world w;

/* ---- Statements -------------------------------------------------------- */

/* Runs SQL; returns the result code. */
static int attempt(const char *sql) {
  sqlite3_str_appendf(w.log, "%s;\n", sql);
  return sqlite3_exec(w.db, sql, NULL, NULL, NULL) & 0xff;
}

static void must(const char *sql) {
  if (attempt(sql) != SQLITE_OK) fail_msg("%s: %s", sql, sqlite3_errmsg(w.db));
}

/* Runs a change, in which %w stands for the table, on m, and on t where that has
** its own texts; with the same result. */
static void change(char *format) {
  char *on_m = sqlite3_mprintf(format, "m"), *on_t = sqlite3_mprintf(format, "t");
  int rc = attempt(on_m), constraint = rc == SQLITE_CONSTRAINT;
  if (rc != SQLITE_OK && !constraint) fail_msg("%s: %s", on_m, sqlite3_errmsg(w.db));
  sqlite3_int64 last = sqlite3_last_insert_rowid(w.db);
  if (w.kind->own) {
    int own = attempt(on_t);
    if (own != rc) fail_msg("%s: %d and not %d: %s", on_t, own, rc, sqlite3_errmsg(w.db));
    if (rc == SQLITE_OK && strncmp(on_t, "INSERT INTO", 11) == 0)
      assert_int_equal(sqlite3_last_insert_rowid(w.db), last);
  }
  w.in_step = w.kind->own && sqlite3_get_autocommit(w.db);
  sqlite3_free(on_m);
  sqlite3_free(on_t);
  sqlite3_free(format);
}

static const char *value(void) {
  return values[dice_throw(&w.dice, VALUES)];
}

/* A row that is there, most of the time. */
static sqlite3_int64 some_row(void) {
  sqlite3_int64 count = sqldb_number(w.db, "SELECT count(*) FROM m");
  char sql[80];
  if (count == 0 || dice_percent(&w.dice, 15)) return (sqlite3_int64)dice_throw(&w.dice, 40) - 3;
  sqlite3_snprintf(sizeof sql, sql, "SELECT id FROM m ORDER BY id LIMIT 1 OFFSET %lld",
                   (sqlite3_int64)dice_throw(&w.dice, (uint64_t)count));
  return sqldb_number(w.db, sql);
}

static sqlite3_int64 new_row(void) {
  if (dice_percent(&w.dice, 30)) return some_row();
  if (dice_percent(&w.dice, 5)) return ((sqlite3_int64)1 << 40) + (int)dice_throw(&w.dice, 100);
  return (sqlite3_int64)dice_throw(&w.dice, 60) - 5;
}

static const char *conflict(void) {
  static const char *const words[] = {"",           "",         "",         " OR REPLACE",
                                      " OR IGNORE", " OR FAIL", " OR ABORT"};
  return words[dice_throw(&w.dice, sizeof words / sizeof words[0])];
}

/* ---- What a sequence is made of ---------------------------------------- */

static void insert_row(void) {
  change(sqlite3_mprintf("INSERT%s INTO %%w(rowid, title, body, tag) VALUES(%lld, %s, %s, %s)",
                         conflict(), new_row(), value(), value(), value()));
}

static void insert_rows(void) {
  change(sqlite3_mprintf("INSERT%s INTO %%w(rowid, title, body, tag) VALUES(%lld, %s, %s, 1), "
                         "(%lld, %s, %s, 2), (%lld, %s, NULL, 3)",
                         conflict(), new_row(), value(), value(), new_row(), value(), value(),
                         new_row(), value()));
}

static void insert_unnumbered(void) {
  change(
      sqlite3_mprintf("INSERT INTO %%w(title, tag) VALUES(%s, 1), (%s, NULL)", value(), value()));
}

static void update_text(void) {
  change(sqlite3_mprintf("UPDATE %%w SET body = %s WHERE rowid = %lld", value(), some_row()));
}

static void update_texts(void) {
  change(sqlite3_mprintf("UPDATE %%w SET title = %s, tag = %s WHERE rowid %%%% 5 = %d", value(),
                         value(), (int)dice_throw(&w.dice, 5)));
}

static void update_tags(void) {
  change(sqlite3_mprintf("UPDATE %%w SET tag = %s WHERE rowid <= %lld", value(), some_row()));
}

static void move_row(void) {
  change(sqlite3_mprintf("UPDATE%s %%w SET rowid = %lld WHERE rowid = %lld", conflict(), new_row(),
                         some_row()));
}

static void move_and_change_row(void) {
  change(sqlite3_mprintf("UPDATE%s %%w SET rowid = %lld, title = %s WHERE rowid = %lld", conflict(),
                         new_row(), value(), some_row()));
}

/* Each row is moved onto the next one, which stops the statement half way. */
static void move_rows_onto_others(void) {
  change(sqlite3_mprintf("UPDATE %%w SET rowid = rowid + 1, body = 'moved' WHERE rowid > %lld",
                         some_row()));
}

static void delete_row(void) {
  change(sqlite3_mprintf("DELETE FROM %%w WHERE rowid = %lld", some_row()));
}

static void delete_rows(void) {
  if (dice_percent(&w.dice, 4))
    change(sqlite3_mprintf("DELETE FROM %%w"));
  else
    change(
        sqlite3_mprintf("DELETE FROM %%w WHERE rowid %%%% 17 = %d", (int)dice_throw(&w.dice, 17)));
}

static void begin(void) {
  if (sqlite3_get_autocommit(w.db)) must("BEGIN");
}

static void save(void) {
  char sql[40];
  if (w.saved == DEEPEST) return;
  sqlite3_snprintf(sizeof sql, sql, "SAVEPOINT s%d", w.saved++);
  must(sql);
}

static void end_savepoint(void) {
  char sql[40];
  if (w.saved == 0) return;
  int to = (int)dice_throw(&w.dice, (uint64_t)w.saved), back = dice_percent(&w.dice, 50);
  sqlite3_snprintf(sizeof sql, sql, back ? "ROLLBACK TO s%d" : "RELEASE s%d", to);
  must(sql);
  w.saved = back ? to + 1 : to;
  if (back) w.in_step = 0;
  if (sqlite3_get_autocommit(w.db) && w.kind->own) w.in_step = 1;
}

static void end_transaction(void) {
  if (sqlite3_get_autocommit(w.db)) return;
  int back = dice_percent(&w.dice, 40);
  must(back ? "ROLLBACK" : "COMMIT");
  w.saved = 0;
  if (back) w.in_step = 0;
  if (w.kind->own) w.in_step = 1;
}

static void refresh(void) {
  must("INSERT INTO t(t) VALUES('refresh')");
  w.in_step = 1;
}

static void refresh_some(void) {
  char sql[80];
  sqlite3_snprintf(sizeof sql, sql, "INSERT INTO t(t, k) VALUES('refresh', %d)",
                   1 + (int)dice_throw(&w.dice, 9));
  must(sql);
}

static void other_command(void) {
  static const char *const commands[] = {"optimize", "integrity-check", "rebuild"};
  char sql[80];
  int which = (int)dice_throw(&w.dice, 30) / 14;
  sqlite3_snprintf(sizeof sql, sql, "INSERT INTO t(t) VALUES('%s')", commands[which]);
  must(sql);
  if (which == 2) w.in_step = 1;
}

static void search(void) {
  static const char *const texts[] = {"context", "rest depend", "", "add", "ex ex"};
  if (w.kind->own || w.kind->automatic) w.in_step = 1;
  int k = dice_percent(&w.dice, 50) ? 1 + (int)dice_throw(&w.dice, 20) : 0;
  sqlite3_str_appendf(w.log, "SELECT rowid, distance FROM t WHERE t MATCH 'x'; -- k %d\n", k);
  pieces_check_search(w.pieces, texts[dice_throw(&w.dice, 5)], k, w.in_step);
}

typedef struct operation {
  void (*run)(void);
  unsigned weight;
} operation;

static const operation operations[] = {
    {insert_row, 14},
    {insert_rows, 6},
    {insert_unnumbered, 4},
    {update_text, 10},
    {update_texts, 3},
    {update_tags, 4},
    {move_row, 6},
    {move_and_change_row, 3},
    {delete_row, 8},
    {delete_rows, 2},
    {begin, 5},
    {save, 8},
    {end_savepoint, 8},
    {end_transaction, 5},
    {refresh, 4},
    {refresh_some, 5},
    {other_command, 2},
    {search, 8},
    {move_rows_onto_others, 1},
};

static void one_operation(void) {
  size_t count = sizeof operations / sizeof operations[0], i = 0;
  unsigned total = 0;
  for (size_t j = 0; j < count; j++) total += operations[j].weight;
  unsigned at = (unsigned)dice_throw(&w.dice, total);
  while (at >= operations[i].weight) at -= operations[i++].weight;
  operations[i].run();
}

/* ---- Sequences --------------------------------------------------------- */

static void compare(void) {
  pieces_check_rows(w.pieces, w.in_step);
  assert_sound(w.db, "t");
  if (w.in_step) assert_answer(w.db, "SELECT pending, failed FROM bert_status", "0|0");
}

static void one_sequence(void) {
  int count = 3 + (int)dice_throw(&w.dice, 8);
  sqlite3_str_appendf(w.log, "-- sequence %llu\n", (unsigned long long)w.sequence);
  for (int i = 0; i < count; i++) one_operation();
  compare();
  if (dice_percent(&w.dice, 70)) end_transaction();
  compare();
  if (dice_percent(&w.dice, 60)) {
    refresh();
    compare();
    search();
  }
}

static void make_tables(void) {
  char *sql;
  w.db = tabledb_open(NULL);
  w.log = sqlite3_str_new(NULL);
  w.saved = w.in_step = 0;
  must("CREATE TABLE m(id INTEGER PRIMARY KEY, title TEXT, body, tag)");
  sql = sqlite3_mprintf("CREATE VIRTUAL TABLE t USING bertsql(title%s, body, tag UNINDEXED, "
                        "model='tiny'%s)",
                        w.kind->own ? " TEXT" : "", w.kind->options);
  must(sql);
  sqlite3_free(sql);
  w.pieces = pieces_begin(w.db, &w.kind->rules);
  if (w.kind->first_rows > 0)
    change(sqlite3_mprintf("WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE "
                           "i < %d) INSERT INTO %%w(title, tag) SELECT 'row ' || i %%%% 300, i "
                           "FROM n",
                           w.kind->first_rows));
  refresh();
}

static void drop_tables(void) {
  pieces_end(w.pieces);
  must("DROP TABLE t");
  assert_tables(w.db, "t", "(no rows)");
  sqlite3_free(sqlite3_str_finish(w.log));
  w.log = NULL;
  sqldb_close(w.db);
}

static void sequences_agree_with_a_plain_table(void **state) {
  w.kind = *state;
  w.seed = dice_seed(1);
  int rounds = dice_rounds(SEQUENCES, 4);
  for (int i = 0; i < rounds; i++) {
    w.sequence = (uint64_t)(w.kind - kinds) * 100000 + (uint64_t)i;
    w.dice = dice_take(w.seed, w.sequence);
    if (i % LIFETIME == 0) make_tables();
    one_sequence();
    if (!sqlite3_get_autocommit(w.db) && i % LIFETIME == LIFETIME - 1) must("ROLLBACK");
    if (i % LIFETIME == LIFETIME - 1 || i == rounds - 1) {
      if (!sqlite3_get_autocommit(w.db)) must("ROLLBACK");
      drop_tables();
    }
  }
}

/* What led to a failure. */
static int print_log(void **state) {
  (void)state;
  if (w.log == NULL) return 0;
  char *log = sqlite3_str_finish(w.log);
  w.log = NULL;
  fprintf(stderr, "BERTSQL_SEED=%llu, sequence %llu, after these statements:\n%s",
          (unsigned long long)w.seed, (unsigned long long)w.sequence, log != NULL ? log : "");
  sqlite3_free(log);
  return 0;
}

int main(void) {
  /* Bits are compared, and only the vector kernels give the same in any batch. */
  unsetenv("BERTSQL_KERNELS");
  struct CMUnitTest tests[KINDS];
  for (int i = 0; i < KINDS; i++)
    tests[i] = (struct CMUnitTest){kinds[i].name, sequences_agree_with_a_plain_table, NULL,
                                   print_log, (void *)(uintptr_t)&kinds[i]};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
