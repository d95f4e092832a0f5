/*
** test_ext_vtab_corrupt.c: 500 bertsql tables in whose shadow tables something is
** wrong: values of any type and size, bytes that were changed or cut off, rows that
** are missing or there twice, tables that are gone.
**
** Whatever is then done gives an error or a smaller result. The connection stays
** usable, rebuild repairs what is not in the table's own record or texts, and DROP
** TABLE always works.
**
** BERTSQL_SEED chooses other corruptions, BERTSQL_ROUNDS their number; with
** BERTSQL_SEED each is printed before it is made.
*/
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dice.h"
#include "stored.h"
#include "tabledb.h"

enum { CORRUPTIONS = 500, TABLES = 4 };

/* ---- Tables that are whole ---------------------------------------------- */

typedef struct whole_table {
  const char *name, *create, *source, *fill;
  int all_chunks;
  unsigned char *bytes;     /* of the database: [size] */
  sqlite3_int64 size, rows; /* rows: of the source */
  uint64_t digest;
} whole_table;

#define NUMBERS(to)                                                                                \
  "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < " #to ") "
#define OWN(options) "CREATE VIRTUAL TABLE t USING bertsql(title TEXT, tag UNINDEXED" options ")"
#define CONTENT(options) "CREATE VIRTUAL TABLE t USING bertsql(title, content='docs'" options ")"

static whole_table tables[TABLES] = {
    {"own texts", OWN(""), "t_content",
     NUMBERS(40) "INSERT INTO t(title, tag) SELECT CASE WHEN i % 9 THEN 'context ' || i END, i "
                 "FROM n",
     0, NULL, 0, 0, 0},
    {"chunks", CONTENT(", triggers=1, chunk_tokens=6, overlap=1, all_chunks=1"), "docs",
     NUMBERS(30) "INSERT INTO docs SELECT i, substr('context depend su add rest', 1, i) FROM n", 1,
     NULL, 0, 0, 0},
    {"int8", CONTENT(", dtype=int8, metric=l2"), "docs",
     NUMBERS(40) "INSERT INTO docs SELECT i, 'rest ' || i FROM n", 0, NULL, 0, 0, 0},
    {"more than a block", OWN(", metric=dot"), "t_content",
     NUMBERS(1060) "INSERT INTO t(title, tag) SELECT 'context ' || i % 100, i FROM n", 0, NULL, 0,
     0, 0},
};

static void make_table(whole_table *t) {
  sqlite3 *db = tabledb_open(NULL);
  stored_run(db, "CREATE TABLE docs(id INTEGER PRIMARY KEY, title TEXT); %s; %s;", t->create,
             t->fill);
  stored_run(db, "INSERT INTO t(t) VALUES('refresh')");
  assert_sound(db, "t");
  t->digest = stored_digest_of_table(db, t->source);
  t->rows = sqldb_number(db, "SELECT count(DISTINCT rowid) FROM t");
  t->bytes = sqlite3_serialize(db, "main", &t->size, 0);
  assert_non_null(t->bytes);
  sqldb_close(db);
}

/* noise(n, seed): n bytes; many of them of numbers that are none. */
static void noise(sqlite3_context *context, int argc, sqlite3_value **argv) {
  sqlite3_int64 size = sqlite3_value_int64(argv[0]);
  dice d = dice_take((uint64_t)sqlite3_value_int64(argv[1]), 0);
  unsigned kind = (unsigned)dice_throw(&d, 4);
  (void)argc;
  unsigned char *bytes = sqlite3_malloc64((sqlite3_uint64)size + 1);
  if (bytes == NULL) {
    sqlite3_result_error_nomem(context);
    return;
  }
  for (sqlite3_int64 i = 0; i < size; i++)
    bytes[i] = kind == 0                 ? 0xff
               : kind == 1 && i % 4 == 3 ? 0x7f
                                         : (unsigned char)dice_throw(&d, 256);
  sqlite3_result_blob64(context, bytes, (sqlite3_uint64)size, sqlite3_free);
}

static sqlite3 *open_copy(const whole_table *t) {
  sqlite3 *db = tabledb_open(NULL);
  unsigned char *copy = sqlite3_malloc64((sqlite3_uint64)t->size);
  assert_non_null(copy);
  memcpy(copy, t->bytes, (size_t)t->size);
  assert_int_equal(
      sqlite3_deserialize(db, "main", copy, t->size, t->size,
                          SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE),
      SQLITE_OK);
  sqlite3_create_function(db, "noise", 2, SQLITE_UTF8, NULL, noise, NULL, NULL);
  return db;
}

/* ---- Corruptions --------------------------------------------------------- */

/* A column, or a value of the record. */
typedef struct target {
  const char *table, *column, *key; /* key: in config */
} target;

static const target targets[] = {
    {"rows", "row", NULL},         {"rows", "hash", NULL},
    {"rows", "first", NULL},       {"rows", "count", NULL},
    {"rows", "error", NULL},       {"vectors", "id", NULL},
    {"vectors", "row", NULL},      {"vectors", "chunk", NULL},
    {"vectors", "start", NULL},    {"vectors", "stop", NULL},
    {"vectors", "tokens", NULL},   {"vectors", "truncated", NULL},
    {"vectors", "vector", NULL},   {"vectors", "vector", NULL},
    {"packed", "block", NULL},     {"packed", "stamp", NULL},
    {"packed", "last", NULL},      {"packed", "entries", NULL},
    {"packed", "data", NULL},      {"packed", "data", NULL},
    {"packed", "data", NULL},      {"content", "id", NULL},
    {"content", "c0", NULL},       {"queue", "row", NULL},
    {"config", "value", "format"}, {"config", "value", "hash"},
    {"config", "value", "dim"},    {"config", "value", "fingerprint"},
    {"config", "value", "model"},  {"config", "value", "source"},
    {"config", "value", "swept"},  {"config", "value", "complete"},
};
enum { TARGETS = sizeof targets / sizeof targets[0] };

static const char *const bad_values[] = {"NULL",
                                         "''",
                                         "'x'",
                                         "x''",
                                         "x'00'",
                                         "0",
                                         "1",
                                         "-1",
                                         "2",
                                         "1000",
                                         "4294967297",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "1e308",
                                         "-0.5",
                                         "9e999",
                                         "zeroblob(100000)",
                                         "CAST(x'ff00fe' AS TEXT)"};
enum { BAD_VALUES = sizeof bad_values / sizeof bad_values[0] };

/* SQL for a value that should not be there, perhaps made of the one that is. */
static char *bad_value(dice *d, const char *column) {
  int at = dice_percent(d, 50) ? 1 + (int)dice_throw(d, 40) : 1 + (int)dice_throw(d, 70000);
  switch (dice_throw(d, 7)) {
  case 0: /* cut off */
    return sqlite3_mprintf("substr(%s, 1, length(%s) - %d)", column, column,
                           1 + (int)dice_throw(d, 200));
  case 1: /* too long */ return sqlite3_mprintf("CAST(%s || x'000000ff' AS BLOB)", column);
  case 2: /* one byte, or its place behind the end */
  case 3:
    return sqlite3_mprintf("CAST(substr(%s, 1, %d) || x'%02x' || substr(%s, %d) AS BLOB)", column,
                           at - 1, (int)dice_throw(d, 256), column, at + 1);
  case 4: /* other bytes, as many */
    return sqlite3_mprintf("noise(coalesce(length(%s), 16), %d)", column, (int)dice_throw(d, 1000));
  default: return sqlite3_mprintf("%s", bad_values[dice_throw(d, BAD_VALUES)]);
  }
}

static char *change_value(dice *d, const target *t, const char *where) {
  char *value = bad_value(d, t->column), *sql;
  if (t->key != NULL) /* which need not be there */
    sql = sqlite3_mprintf("INSERT INTO t_config(key, value) VALUES(%Q, %s) ON CONFLICT DO UPDATE "
                          "SET value = %s",
                          t->key, strstr(value, "value") != NULL ? "'?'" : value, value);
  else
    sql =
        sqlite3_mprintf("UPDATE OR REPLACE t_%s SET %s = %s %s", t->table, t->column, value, where);
  sqlite3_free(value);
  return sql;
}

/* The row once more, with a key that is free, or in the place of another row. */
static char *double_row(dice *d, const target *t) {
  static const char *const keys[][2] = {{"rows", "row"},   {"vectors", "id"}, {"packed", "block"},
                                        {"content", "id"}, {"queue", "row"},  {"config", "key"}};
  const char *key = "";
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
    if (strcmp(keys[i][0], t->table) == 0) key = keys[i][1];
  return sqlite3_mprintf("DROP TABLE IF EXISTS temp.x; CREATE TEMP TABLE x AS SELECT * FROM t_%s "
                         "ORDER BY random() LIMIT 1;"
                         "UPDATE x SET %s = %s + %d; INSERT OR REPLACE INTO t_%s SELECT * FROM x",
                         t->table, key, key, (int)dice_throw(d, 2000) - 100, t->table);
}

static char *corruption(dice *d, const target *t, int *drops) {
  char where[160] = "";
  *drops = 0;
  if (t->key != NULL)
    sqlite3_snprintf(sizeof where, where, "WHERE key = '%s'", t->key);
  else if (!dice_percent(d, 12))
    sqlite3_snprintf(sizeof where, where,
                     "WHERE rowid = (SELECT rowid FROM t_%s LIMIT 1 OFFSET %d)", t->table,
                     (int)dice_throw(d, strcmp(t->table, "packed") == 0 ? 1 : 30));
  if (strcmp(t->table, "queue") == 0)
    return sqlite3_mprintf("INSERT INTO t_queue VALUES(%s), (%s)",
                           bad_values[dice_throw(d, BAD_VALUES)],
                           bad_values[dice_throw(d, BAD_VALUES)]);
  switch (dice_throw(d, 16)) {
  case 0: *drops = 1; return sqlite3_mprintf("DROP TABLE t_%s", t->table);
  case 1:
  case 2: return sqlite3_mprintf("DELETE FROM t_%s %s", t->table, where);
  case 3: return t->key == NULL ? double_row(d, t) : change_value(d, t, where);
  default: return change_value(d, t, where);
  }
}

/* ---- What is done then --------------------------------------------------- */

static const char *const uses[] = {
    "SELECT count(*), count(DISTINCT rowid), count(distance) FROM t WHERE t MATCH 'context'",
    "SELECT rowid, distance, title, status FROM t WHERE t MATCH 'rest' AND k = 5",
    "SELECT rowid, distance FROM t WHERE t MATCH zeroblob(127) || x'3f'",
    "SELECT rowid FROM t WHERE t MATCH 'add' AND rowid IN (1, 2, 3, 30) AND k = 2",
    "SELECT *, t, k, distance, embedding, chunk, start, stop, n_tokens, truncated, status FROM t",
    "SELECT *, embedding, status FROM t WHERE rowid = 3",
    "SELECT * FROM t WHERE title LIKE 'context 1%' ORDER BY rowid DESC",
    "SELECT * FROM bert_status",
    "INSERT INTO t(t) VALUES('refresh')",
    "INSERT INTO t(t, k) VALUES('refresh', 3)",
    "INSERT INTO t(t) VALUES('optimize')",
    "INSERT INTO t(t) VALUES('integrity-check')",
    "PRAGMA integrity_check",
};
enum { USES = sizeof uses / sizeof uses[0] };

static struct {
  char what[600]; /* the corruption under way */
  int errors, silent, refused;
  uint64_t seed;
} now;

static void use(sqlite3 *db, const char *sql, int *errors) {
  int rc;
  char *answer = sqldb_answer(db, sql, &rc);
  assert_non_null(answer);
  rc &= 0xff;
  if (rc != SQLITE_OK && rc != SQLITE_ERROR && rc != SQLITE_CORRUPT && rc != SQLITE_MISMATCH &&
      rc != SQLITE_FULL)
    fail_msg("%s: %d, %.500s", sql, rc, answer);
  *errors += rc != SQLITE_OK;
  sqlite3_free(answer);
}

static void use_in_any_order(sqlite3 *db, dice *d, int *errors) {
  int order[USES];
  for (int i = 0; i < USES; i++) {
    int j = (int)dice_throw(d, (uint64_t)i + 1);
    order[i] = order[j];
    order[j] = i;
  }
  for (int i = 0; i < USES; i++) use(db, uses[order[i]], errors);
}

/* Each result at some distance; no more than texts (a corruption may add one), and
** each row once. With
** all_chunks a vector that no row has any more may be a result too. */
static void check_results(sqlite3 *db, const whole_table *t) {
  sqlite3_stmt *s = sqldb_prepare(db, uses[0]);
  if (sqlite3_step(s) == SQLITE_ROW) {
    sqlite3_int64 count = sqlite3_column_int64(s, 0), rows = sqlite3_column_int64(s, 1);
    if (sqlite3_column_int64(s, 2) != count ||
        (!t->all_chunks && (count > t->rows + 1 || rows != count)))
      fail_msg("MATCH gives %lld results of %lld rows, where there were %lld", count, rows,
               t->rows);
  }
  sqlite3_finalize(s);
}

/* 1 when a rebuild may be refused: the record cannot be trusted. */
static int may_refuse(const target *t, int drops) {
  return drops || (strcmp(t->table, "config") == 0 &&
                   (t->key == NULL || strcmp(t->key, "format") == 0 ||
                    strcmp(t->key, "hash") == 0 || strcmp(t->key, "dim") == 0));
}

static void rebuild(sqlite3 *db, const whole_table *t, const target *at, int drops) {
  int rc, texts = strcmp(at->table, "content") == 0;
  char *answer = sqldb_answer(db, "INSERT INTO t(t) VALUES('rebuild')", &rc);
  if (rc != SQLITE_OK && !may_refuse(at, drops)) fail_msg("rebuild: %s", answer);
  if (rc != SQLITE_OK) now.refused++;
  sqlite3_free(answer);
  if (may_refuse(at, drops)) return;
  assert_sound(db, "t");
  assert_answer(db, "SELECT pending, failed FROM bert_status", "0|0");
  if (!texts && stored_digest_of_table(db, t->source) != t->digest)
    fail_msg("after rebuild it is another table");
}

static void drop(sqlite3 *db, const whole_table *t) {
  assert_runs(db, "DROP TABLE t");
  assert_tables(db, "t_", "(no rows)");
  assert_runs(db, t->create);
  assert_runs(db, "INSERT INTO t(t) VALUES('refresh'); DROP TABLE t");
  assert_answer(db, "PRAGMA integrity_check", "ok");
}

/* ---- One corruption ------------------------------------------------------ */

static void say_what(int signal_number) {
  (void)signal_number;
  if (write(STDERR_FILENO, now.what, strlen(now.what)) < 0) _exit(98);
  _exit(99);
}

/* The table that has what the target is in; large ones cost time. */
static whole_table *choose_table(dice *d, const target *t) {
  if (strcmp(t->table, "packed") == 0 || dice_percent(d, 10)) return &tables[TABLES - 1];
  if (strcmp(t->table, "content") == 0) return &tables[0];
  if (strcmp(t->table, "queue") == 0) return &tables[dice_throw(d, 2)];
  return &tables[dice_throw(d, TABLES - 1)];
}

static uint64_t digest_of_shadow(sqlite3 *db, const char *table) {
  char sql[60];
  sqlite3_snprintf(sizeof sql, sql, "SELECT * FROM t_%s", table);
  return stored_digest(db, sql, 0);
}

/* Corrupts until something has changed: a key cannot be everything, and a value may
** be what it was. *drops is 1 when a table is gone. */
static void corrupt(sqlite3 *db, dice *d, const target *at, const char *where, int *drops) {
  uint64_t before = digest_of_shadow(db, at->table);
  do {
    int rc;
    char *sql = corruption(d, at, drops);
    sqlite3_snprintf(sizeof now.what, now.what, "\n%s: %s\n", where, sql);
    if (getenv("BERTSQL_SEED") != NULL) fprintf(stderr, "%s", now.what);
    sqlite3_free(sqldb_answer(db, sql, &rc));
    sqlite3_free(sql);
  } while (!*drops && digest_of_shadow(db, at->table) == before);
}

static void corrupt_once(int number) {
  char where[120];
  dice d = dice_take(now.seed, (uint64_t)number);
  const target *at = &targets[number % TARGETS];
  sqlite3_int64 used = sqlite3_memory_used();
  whole_table *t = choose_table(&d, at);
  int connected = dice_percent(&d, 50), errors = 0, drops;
  now.what[0] = 0;
  sqlite3_snprintf(sizeof where, where, "BERTSQL_SEED=%llu, corruption %d, %s%s",
                   (unsigned long long)now.seed, number, t->name, connected ? ", connected" : "");
  alarm(120);
  sqlite3 *db = open_copy(t);
  if (connected) assert_runs(db, "SELECT count(*), max(distance) FROM t WHERE t MATCH 'context'");
  corrupt(db, &d, at, where, &drops);
  check_results(db, t);
  use_in_any_order(db, &d, &errors);
  check_results(db, t);
  assert_answer(db, "SELECT length(bert_embed('usable'))", "128");
  rebuild(db, t, at, drops);
  drop(db, t);
  sqldb_close(db);
  now.errors += errors > 0;
  now.silent += errors == 0;
  if (sqlite3_memory_used() > used) fail_msg("%lld bytes are lost", sqlite3_memory_used() - used);
  now.what[0] = 0;
}

static void corrupted_tables_are_no_danger(void **state) {
  (void)state;
  int rounds = dice_rounds(CORRUPTIONS, 20);
  now.seed = dice_seed(1);
  signal(SIGALRM, say_what);
  for (int i = 0; i < TABLES; i++) make_table(&tables[i]);
  for (int i = 0; i < rounds; i++) corrupt_once(i);
  alarm(0);
  for (int i = 0; i < TABLES; i++) sqlite3_free(tables[i].bytes);
  print_message("%d were noticed, %d made no difference, %d could not be rebuilt\n", now.errors,
                now.silent, now.refused);
  assert_true(2 * now.errors > rounds / 2);
}

static int say_where(void **state) {
  (void)state;
  alarm(0);
  fprintf(stderr, "%s", now.what);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(corrupted_tables_are_no_danger, say_where)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
