/*
** test_ext_resident.c: which of a model's memory is in RAM: what a model in lower
** precision leaves there after it is unloaded, and after a table asked who it is.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/dice.h"
#include "../support/sqldb.h"

#define MODEL "models/all-MiniLM-L6-v2"

enum { MB = 1024 }; /* kilobytes */

/* A line of /proc/self/status in kilobytes: RssAnon is the process's own memory in RAM,
** RssFile that of mapped files. */
static long status_kilobytes(const char *name) {
  char line[200];
  long found = -1;
  FILE *f = fopen("/proc/self/status", "r");
  assert_non_null(f);
  while (found < 0 && fgets(line, sizeof line, f) != NULL)
    if (strncmp(line, name, strlen(name)) == 0) found = strtol(line + strlen(name), NULL, 10);
  fclose(f);
  assert_true(found >= 0);
  return found;
}

/* Memory checkers keep what is freed. */
static int keeps_freed_memory(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 1;
#else
  return dice_size(0, 1);
#endif
}

static void load(sqlite3 *db, const char *precision) {
  char *sql = sqlite3_mprintf("SELECT bert_load('" MODEL "', 'm', json_object('precision', %Q))",
                              precision);
  assert_answer(db, sql, "m");
  sqlite3_free(sql);
  assert_answer(db, "SELECT length(bert_embed('time flies', 'm'))", "1536");
}

/* Loads and unloads; 2 MB of rows, which stay, are put into memory in between. */
static void check_unloading(sqlite3 *db, const char *precision) {
  long before = status_kilobytes("RssAnon:");
  load(db, precision);
  long loaded = status_kilobytes("RssAnon:");
  assert_runs(db, "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 2000)"
                  "INSERT INTO kept SELECT randomblob(1000) FROM c");
  assert_answer(db, "SELECT bert_unload('m')", "m");
  long after = status_kilobytes("RssAnon:");
  print_message("%s: %ld kB, loaded %ld, unloaded %ld\n", precision, before, loaded, after);
  if (keeps_freed_memory()) return;
  assert_true(loaded > before + 12 * MB); /* the packed weights have 21 MB and 14 MB */
  assert_true(after < before + 6 * MB);
}

/* glibc maps the first large blocks by themselves, and later ones, once such a block was
** freed, no longer. */
static void unloading_gives_packed_weights_back(void **state) {
  (void)state;
  sqlite3 *db = sqldb_open(NULL);
  assert_runs(db, "CREATE TABLE kept(x)");
  for (int round = 0; round < 3; round++) {
    check_unloading(db, "bf16");
    check_unloading(db, "int8");
  }
  sqldb_close(db);
}

/* A table's fingerprint of a model reads all of its file, 91 MB. */
static void a_table_leaves_no_weights_in_memory(void **state) {
  (void)state;
  static const char *const precisions[] = {"bf16", "int8"};
  for (int i = 0; i < 2; i++) {
    sqlite3 *db = sqldb_open(NULL);
    load(db, precisions[i]);
    long before = status_kilobytes("RssFile:");
    assert_runs(db, "CREATE VIRTUAL TABLE notes USING bertsql(body, model='m');"
                    "INSERT INTO notes(body) VALUES('time flies'), ('fruit flies')");
    assert_answer(db, "SELECT rowid FROM notes WHERE notes MATCH 'a fruit' AND k = 1", "2");
    long after = status_kilobytes("RssFile:");
    print_message("%s: %ld kB of files, with a table %ld\n", precisions[i], before, after);
    assert_true(after < before + 10 * MB);
    sqldb_close(db);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(unloading_gives_packed_weights_back),
                                     cmocka_unit_test(a_table_leaves_no_weights_in_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
