/*
** test_ext_host.c: bertsql and its host: interrupts, versions and copies of
** SQLite, where the default model is looked for, many connections.
**
** Hosts that are not installed here are acted: the API table of the SQLite
** that is, with another version number and, for 3.41 and later, one entry more
** at its end.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SQLITE_CORE 1
#include <sqlite3ext.h>

#include "dice.h"
#include "sqldb.h"

#define MODEL "models/all-MiniLM-L6-v2"

/* ---- Other hosts ---------------------------------------------------------- */

static const sqlite3_api_routines *host_table;

/* SQLite hands its table to every automatic extension. */
static int take_table(sqlite3 *db, char **message, const sqlite3_api_routines *api) {
  (void)db;
  (void)message;
  host_table = api;
  return SQLITE_OK;
}

static int read_host_table(void **state) {
  (void)state;
  sqlite3 *db;
  union {
    int (*entry)(sqlite3 *, char **, const sqlite3_api_routines *);
    void (*automatic)(void);
  } extension = {take_table};
  setenv("BERTSQL_MODEL", MODEL, 1);
  sqlite3_auto_extension(extension.automatic);
  if (sqlite3_open(":memory:", &db) != SQLITE_OK) return 1;
  sqlite3_close(db);
  sqlite3_reset_auto_extension();
  return host_table == NULL;
}

/* A folder of its own, deep enough that no model is near, with a copy of the
** library: a copy has its own static data, as in another process. */
typedef struct library_copy {
  char folder[64], file[128];
  void *handle;
  int (*entry)(sqlite3 *, char **, const sqlite3_api_routines *);
} library_copy;

static void copy_file(const char *from, const char *to) {
  char buffer[65536];
  size_t size;
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  assert_non_null(in);
  assert_non_null(out);
  while ((size = fread(buffer, 1, sizeof buffer, in)) > 0)
    assert_int_equal(fwrite(buffer, 1, size, out), size);
  fclose(in);
  assert_int_equal(fclose(out), 0);
}

static library_copy copy_library(void) {
  library_copy copy;
  void *symbol;
  memset(&copy, 0, sizeof copy);
  strcpy(copy.folder, "/tmp/bertsql-host-XXXXXX");
  assert_non_null(mkdtemp(copy.folder));
  snprintf(copy.file, sizeof copy.file, "%s/lib", copy.folder);
  assert_int_equal(mkdir(copy.file, 0700), 0);
  snprintf(copy.file, sizeof copy.file, "%s/lib/bertsql.so", copy.folder);
  copy_file(BERTSQL_LIBRARY ".so", copy.file);
  copy.handle = dlopen(copy.file, RTLD_NOW | RTLD_LOCAL);
  if (copy.handle == NULL) fail_msg("%s", dlerror());
  symbol = dlsym(copy.handle, "sqlite3_bertsql_init");
  assert_non_null(symbol);
  memcpy(&copy.entry, &symbol, sizeof symbol);
  return copy;
}

static void remove_copy(library_copy *copy) {
  unlink(copy->file);
  char lib[80];
  snprintf(lib, sizeof lib, "%s/lib", copy->folder);
  rmdir(lib);
  rmdir(copy->folder);
}

static int version_3037(void) {
  return 3037002;
}

static int version_3045(void) {
  return 3045001;
}

/* The table of a host before 3.38: it ends before most entries. */
static sqlite3_api_routines old_table(int (*version)(void)) {
  sqlite3_api_routines table;
  memset(&table, 0, sizeof table);
  table.libversion_number = version;
  table.libversion = sqlite3_libversion;
  table.mprintf = sqlite3_mprintf;
  table.free = sqlite3_free;
  return table;
}

static void old_hosts_are_refused(void **state) {
  (void)state;
  sqlite3 *db;
  char *message = NULL;
  library_copy copy = copy_library();
  sqlite3_api_routines table = old_table(version_3037);
  sqlite3_open(":memory:", &db);
  assert_int_equal(copy.entry(db, &message, &table), SQLITE_ERROR);
  assert_non_null(strstr(message, "bertsql needs SQLite 3.38 or later; this is"));
  sqlite3_free(message);
  assert_int_equal(copy.entry(db, NULL, &table), SQLITE_ERROR);
  sqldb_close(db);
  remove_copy(&copy);
}

static void a_second_copy_of_sqlite_is_refused(void **state) {
  (void)state;
  sqlite3 *db = sqldb_open(NULL);
  char *message = NULL;
  void *handle = dlopen(BERTSQL_LIBRARY ".so", RTLD_NOW);
  void *symbol = dlsym(handle, "sqlite3_bertsql_init");
  int (*entry)(sqlite3 *, char **, const sqlite3_api_routines *);
  memcpy(&entry, &symbol, sizeof symbol);
  sqlite3_api_routines other = *host_table;
  assert_int_equal(entry(db, &message, &other), SQLITE_ERROR);
  assert_non_null(strstr(message, "another copy of SQLite in this process"));
  sqlite3_free(message);
  assert_answer(db, "SELECT bert_dot('[2]', '[3]')", "6.0");
  sqldb_close(db);
}

/* A host that takes its time to say its version, while bertsql holds its lock. */
static atomic_int asked;

static int version_slowly(void) {
  atomic_store(&asked, 1);
  usleep(200000);
  return 3037002;
}

static void *load_slowly(void *user) {
  const library_copy *copy = user;
  sqlite3_api_routines table = old_table(version_slowly);
  copy->entry(NULL, NULL, &table);
  return NULL;
}

/* 1 when a child that has forked by now can load bertsql. */
static int child_loads(const library_copy *copy, sqlite3 *db) {
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    int rc = copy->entry(db, NULL, host_table);
    int loaded = rc == SQLITE_OK || rc == SQLITE_OK_LOAD_PERMANENTLY;
    _exit(loaded && sqldb_number(db, "SELECT bert_dot('[2]', '[3]')") == 6 ? 0 : 1);
  }
  int result = -1;
  return waitpid(child, &result, 0) == child && WIFEXITED(result) && WEXITSTATUS(result) == 0;
}

static void a_fork_while_another_thread_loads_leaves_no_lock(void **state) {
  (void)state;
  sqlite3 *db;
  pthread_t thread;
  library_copy copy = copy_library();
  atomic_store(&asked, 0);
  sqlite3_open(":memory:", &db);
  assert_int_equal(pthread_create(&thread, NULL, load_slowly, &copy), 0);
  while (!atomic_load(&asked)) usleep(1000);
  assert_true(child_loads(&copy, db));
  pthread_join(thread, NULL);
  assert_true(child_loads(&copy, db));
  sqldb_close(db);
  remove_copy(&copy);
}

/* The table of 3.45, as far as it is used. In headers older than 3.41 the entry
** that matters comes after the last one that they know. */
typedef struct later_table {
  sqlite3_api_routines known;
  int (*is_interrupted)(sqlite3 *);
} later_table;

static int interrupted;

static int act_interrupted(sqlite3 *db) {
  (void)db;
  return interrupted;
}

static void later_hosts_are_asked_directly(void **state) {
  (void)state;
  sqlite3 *db;
  int rc;
  static later_table table; /* outlives the library's use of it */
  library_copy copy = copy_library();
  table.known = *host_table;
  table.known.libversion_number = version_3045;
#if SQLITE_VERSION_NUMBER >= 3041000
  table.known.is_interrupted = act_interrupted;
#else
  table.is_interrupted = act_interrupted;
#endif
  sqlite3_open(":memory:", &db);
  assert_int_equal(copy.entry(db, NULL, &table.known), SQLITE_OK_LOAD_PERMANENTLY);
  assert_answer(db, "SELECT json_extract(bert_info(), '$.interrupt')", "sqlite3_is_interrupted");
  assert_runs(db, "SELECT bert_load('" MODEL "')");
  assert_answer(db, "SELECT length(bert_embed('x'))", "1536");
  interrupted = 1;
  sqlite3_free(sqldb_answer(db, "SELECT bert_embed('x')", &rc));
  assert_int_equal(rc, SQLITE_INTERRUPT);
  interrupted = 0;
  assert_answer(db, "SELECT length(bert_embed('x'))", "1536");
  sqldb_close(db);
  remove_copy(&copy);
}

/* ---- The default model ------------------------------------------------------ */

static int without_variable(void **state) {
  (void)state;
  return unsetenv("BERTSQL_MODEL");
}

static int with_variable(void **state) {
  (void)state;
  return setenv("BERTSQL_MODEL", MODEL, 1);
}

static void link_model(const char *folder, const char *below) {
  char path[200], here[2048], target[2200];
  assert_non_null(getcwd(here, sizeof here));
  snprintf(target, sizeof target, "%s/%s", here, MODEL);
  snprintf(path, sizeof path, "%s/%s", folder, below);
  for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
    *slash = 0;
    mkdir(path, 0700);
    *slash = '/';
  }
  assert_int_equal(symlink(target, path), 0);
}

static void unlink_model(const char *folder, const char *below) {
  char path[200];
  snprintf(path, sizeof path, "%s/%s", folder, below);
  unlink(path);
  for (char *slash; (slash = strrchr(path, '/')) > path + strlen(folder);) {
    *slash = 0;
    rmdir(path);
  }
}

static void without_a_model_three_ways_are_named(void **state) {
  (void)state;
  sqlite3 *db;
  library_copy copy = copy_library();
  sqlite3_open(":memory:", &db);
  assert_int_equal(copy.entry(db, NULL, host_table), SQLITE_OK_LOAD_PERMANENTLY);
  assert_error(db, "SELECT bert_embed('x')", "there is no model: call bert_load(");
  assert_error(db, "SELECT bert_embed('x')", "BERTSQL_MODEL");
  assert_error(db, "SELECT bert_embed('x')", "/lib/models/default");
  assert_error(db, "SELECT bert_embed('x')", "/lib/../models/default");
  assert_error(db, "SELECT bert_embed('x')", "/lib/../share/bertsql/models/default");
  sqldb_close(db);
  remove_copy(&copy);
}

static void the_default_is_found_near_the_library(void **state) {
  (void)state;
  static const char *const below[] = {"lib/models/default", "models/default",
                                      "share/bertsql/models/default"};
  for (int i = 0; i < 3; i++) {
    sqlite3 *db;
    library_copy copy = copy_library();
    link_model(copy.folder, below[i]);
    sqlite3_open(":memory:", &db);
    assert_int_equal(copy.entry(db, NULL, host_table), SQLITE_OK_LOAD_PERMANENTLY);
    assert_answer(db, "SELECT length(bert_embed('x'))", "1536");
    assert_answer(db, "SELECT name, is_default FROM bert_models", "all-MiniLM-L6-v2|1");
    sqldb_close(db);
    unlink_model(copy.folder, below[i]);
    remove_copy(&copy);
  }
}

static void a_broken_default_is_an_error(void **state) {
  (void)state;
  sqlite3 *db;
  char path[200];
  library_copy copy = copy_library();
  snprintf(path, sizeof path, "%s/models/default/x", copy.folder);
  for (char *slash = path + strlen(copy.folder) + 1; (slash = strchr(slash, '/')); slash++) {
    *slash = 0;
    mkdir(path, 0700);
    *slash = '/';
  }
  sqlite3_open(":memory:", &db);
  assert_int_equal(copy.entry(db, NULL, host_table), SQLITE_OK_LOAD_PERMANENTLY);
  assert_error(db, "SELECT bert_embed('x')", "bert_embed: the default model: ");
  sqldb_close(db);
  unlink_model(copy.folder, "models/default/x");
  remove_copy(&copy);
}

/* ---- Interrupts ------------------------------------------------------------- */

typedef struct alarm_clock {
  sqlite3 *db;
  int done;
} alarm_clock;

/* An interrupt that arrives while no statement runs is void, so it is sent
** again until one was. */
static void *keep_interrupting(void *user) {
  alarm_clock *alarm = user;
  while (!__atomic_load_n(&alarm->done, __ATOMIC_ACQUIRE)) {
    usleep(20000);
    sqlite3_interrupt(alarm->db);
  }
  return NULL;
}

/* Two long texts on one scalar thread take seconds. SQLite itself looks for an
** interrupt only between its own steps: the first step would give a row. */
static void embedding_can_be_interrupted(void **state) {
  (void)state;
  static const char sql[] = "SELECT bert_similarity(replace(hex(zeroblob(250)), '00', 'word '), "
                            "replace(hex(zeroblob(250)), '00', 'wide '))";
  sqlite3_stmt *statement;
  pthread_t thread;
  alarm_clock alarm = {sqldb_open(NULL), 0};
  assert_runs(alarm.db, "CREATE TABLE before AS SELECT bert_info() ->> 'kernels' AS kernels;"
                        "SELECT bert_set('threads', 1), bert_set('kernels', 'scalar')");
  assert_runs(alarm.db, "SELECT bert_embed('ready')");
  assert_int_equal(sqlite3_prepare_v2(alarm.db, sql, -1, &statement, NULL), SQLITE_OK);
  pthread_create(&thread, NULL, keep_interrupting, &alarm);
  int rc = sqlite3_step(statement);
  __atomic_store_n(&alarm.done, 1, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
  sqlite3_finalize(statement);
  assert_int_equal(rc, SQLITE_INTERRUPT);
  assert_answer(alarm.db, "SELECT length(bert_embed('usable'))", "1536");
  assert_runs(alarm.db, "SELECT bert_set('kernels', kernels) FROM before");
  sqldb_close(alarm.db); /* SQLITE_BUSY if a statement were left open */
}

static int go_on(void *user) {
  ++*(long *)user;
  return 0;
}

/* Asking leaves the counters and the transaction of the host alone, and gets on
** with a progress handler. */
static void asking_disturbs_nothing(void **state) {
  (void)state;
  long calls = 0;
  sqlite3 *db = sqldb_open(NULL);
  sqlite3_progress_handler(db, 1, go_on, &calls);
  assert_runs(db, "CREATE TABLE t(x, e); INSERT INTO t(x) VALUES('a'), ('b'), ('c');"
                  "BEGIN; UPDATE t SET e = bert_embed(x)");
  assert_int_equal(sqlite3_changes(db), 3);
  assert_int_equal(sqlite3_get_autocommit(db), 0);
  assert_runs(db, "ROLLBACK");
  assert_answer(db, "SELECT count(e) FROM t", "0");
  assert_null(sqlite3_next_stmt(db, NULL));
  sqldb_close(db);
}

/* ---- Many connections --------------------------------------------------------- */

enum { USERS = 8, CONNECTIONS = 25 };

static int connections_each(void) {
  return dice_size(CONNECTIONS, 4);
}

/* What one thread does: opens its connections, embeds on each, and leaves them
** open. */
typedef struct connection_user {
  sqlite3 *databases[CONNECTIONS];
  int failures;
} connection_user;

static void *use_connections(void *user) {
  connection_user *u = user;
  for (int i = 0; i < connections_each(); i++) {
    int rc = sqlite3_open(":memory:", &u->databases[i]);
    sqlite3 *db = u->databases[i];
    if (rc == SQLITE_OK) rc = sqldb_load(db, NULL, NULL);
    char *answer = rc == SQLITE_OK ? sqldb_answer(db, "SELECT length(bert_embed('x'))", &rc) : NULL;
    if (rc != SQLITE_OK || answer == NULL || strcmp(answer, "1536") != 0) u->failures++;
    sqlite3_free(answer);
  }
  return NULL;
}

/* How often this process maps a file of that name, and how many kilobytes of it
** are its own rather than the page cache's. */
static int count_mappings(const char *name, long *private_kb) {
  char line[5000];
  int count = 0, inside = 0;
  FILE *f = fopen("/proc/self/smaps", "r");
  assert_non_null(f);
  *private_kb = 0;
  while (fgets(line, sizeof line, f) != NULL) {
    if (strchr(line, '-') != NULL && strchr(line, '-') < strchr(line, ' ')) {
      inside = strstr(line, name) != NULL;
      count += inside;
    } else if (inside && strncmp(line, "Anonymous:", 10) == 0) {
      *private_kb += strtol(line + 10, NULL, 10);
    }
  }
  fclose(f);
  return count;
}

static void two_hundred_connections_in_eight_threads_map_a_model_once(void **state) {
  (void)state;
  static connection_user users[USERS];
  pthread_t threads[USERS];
  long private_kb;
  for (int i = 0; i < USERS; i++) pthread_create(&threads[i], NULL, use_connections, &users[i]);
  for (int i = 0; i < USERS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(count_mappings("/model.safetensors", &private_kb), 1);
  assert_int_equal(private_kb, 0);
  for (int i = 0; i < USERS; i++)
    for (int k = 0; k < connections_each(); k++)
      assert_int_equal(sqlite3_close(users[i].databases[k]), SQLITE_OK);
  for (int i = 0; i < USERS; i++) assert_int_equal(users[i].failures, 0);
  assert_int_equal(count_mappings("/model.safetensors", &private_kb), 0);
}

static long resident_pages(void) {
  char line[200], *second;
  FILE *f = fopen("/proc/self/statm", "r");
  assert_non_null(f);
  assert_non_null(fgets(line, sizeof line, f));
  fclose(f);
  second = strchr(line, ' '); /* after the size */
  assert_non_null(second);
  return strtol(second, NULL, 10);
}

static void loading_and_unloading_does_not_grow(void **state) {
  (void)state;
  sqlite3 *db = sqldb_open(NULL);
  sqlite3_int64 used = 0;
  long pages = 0;
  int rounds = dice_size(500, 20);
  for (int i = 0; i < rounds; i++) {
    assert_answer(db, "SELECT bert_load('" MODEL "')", "all-MiniLM-L6-v2");
    assert_answer(db, "SELECT bert_unload('all-MiniLM-L6-v2')", "all-MiniLM-L6-v2");
    if (i == rounds / 5 - 1) {
      used = sqlite3_memory_used();
      pages = resident_pages();
    }
  }
  assert_int_equal(sqlite3_memory_used(), used);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  /* 2 MB of noise; valgrind keeps 20 MB of what is freed. The weights are 90 MB. */
  assert_true(resident_pages() < pages + dice_size(512, 16384));
#else
  (void)pages; /* sanitizers keep what is freed */
#endif
  sqldb_close(db);
}

static void unloading_leaves_running_queries_alone(void **state) {
  (void)state;
  sqlite3 *db = sqldb_open(NULL);
  sqlite3_stmt *statement;
  assert_runs(db, "SELECT bert_load('" MODEL "', 'm')");
  assert_int_equal(sqlite3_prepare_v2(db,
                                      "SELECT token FROM bert_tokens('a b c', "
                                      "'{\"model\": \"m\"}')",
                                      -1, &statement, NULL),
                   SQLITE_OK);
  assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
  assert_answer(db, "SELECT bert_unload('m')", "m");
  for (int i = 0; i < 4; i++) assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
  assert_string_equal((const char *)sqlite3_column_text(statement, 0), "[SEP]");
  assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
  sqlite3_finalize(statement);
  sqldb_close(db);
}

#define NEAR(f) cmocka_unit_test_setup_teardown(f, without_variable, with_variable)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(old_hosts_are_refused),
      cmocka_unit_test(a_second_copy_of_sqlite_is_refused),
      cmocka_unit_test(a_fork_while_another_thread_loads_leaves_no_lock),
      cmocka_unit_test(later_hosts_are_asked_directly),
      NEAR(without_a_model_three_ways_are_named),
      NEAR(the_default_is_found_near_the_library),
      NEAR(a_broken_default_is_an_error),
      cmocka_unit_test(embedding_can_be_interrupted),
      cmocka_unit_test(asking_disturbs_nothing),
      cmocka_unit_test(two_hundred_connections_in_eight_threads_map_a_model_once),
      cmocka_unit_test(loading_and_unloading_does_not_grow),
      cmocka_unit_test(unloading_leaves_running_queries_alone)};
  return cmocka_run_group_tests(tests, read_host_table, NULL);
}
