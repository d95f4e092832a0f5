/*
** test_ext_vtab_crash.c: a process is killed while it changes a bertsql table.
** What it left must be what some whole number of its transactions makes, to the
** bit, and the rest of them must lead to the same end as without the kill.
**
** The process is this program again, with --child. It is killed at a random time
** in one half of the rounds. In the other half it kills itself in the middle of
** a random one of its writes, of which it first writes half.
**
** BERTSQL_SEED repeats the moments, as far as the clock allows; BERTSQL_ROUNDS
** sets the rounds of each scenario.
*/
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "dice.h"
#include "stored.h"
#include "tabledb.h"

enum { STEPS = 16, SCENARIOS = 8, ROUNDS = 25 };

/* ---- Scenarios --------------------------------------------------------- */

typedef struct scenario {
  const char *name, *journal;
  const char *columns; /* of the table t, and its options */
  const char *setup;   /* what is there when the process starts */
  const char *source;  /* where the texts are */
  /* The process runs one after the other; each is at most one transaction. */
  const char *steps[STEPS];
} scenario;

#define NUMBERS(from, to)                                                                          \
  "WITH RECURSIVE n(i) AS (VALUES(" #from ") UNION ALL SELECT i + 1 FROM n WHERE i < " #to ") "

/* 800 rows with vectors; then changes of every kind, so that a refresh replaces,
** removes and adds vectors, and comes to more than a block of them. */
#define DOCS                                                                                       \
  NUMBERS(1, 800)                                                                                  \
  "INSERT INTO docs SELECT i, 'context ' || i FROM n;"                                             \
  "INSERT INTO t(t) VALUES('refresh');"                                                            \
  "UPDATE docs SET body = body || ' rest' WHERE id % 7 = 0;"                                       \
  "UPDATE docs SET body = NULL WHERE id % 31 = 0;"                                                 \
  "DELETE FROM docs WHERE id % 11 = 0;" NUMBERS(                                                   \
      801, 1300) "INSERT INTO docs SELECT i, 'depend on ' || i FROM n;"
#define LONG_DOCS                                                                                  \
  NUMBERS(1, 400)                                                                                  \
  "INSERT INTO docs SELECT i, substr('context depend su add rest ex ', 1, i % 31)"                 \
  " FROM n; INSERT INTO t(t) VALUES('refresh');"                                                   \
  "UPDATE docs SET body = body || ' and rest' WHERE id % 3 = 0;"                                   \
  "DELETE FROM docs WHERE id % 11 = 0;" NUMBERS(                                                   \
      401, 600) "INSERT INTO docs SELECT i, 'depend on ' || i FROM n;"
#define NOTES NUMBERS(1, 900) "INSERT INTO t(rowid, body) SELECT i, 'context ' || i FROM n;"

#define REFRESH "INSERT INTO t(t) VALUES('refresh')"
#define SLICE "INSERT INTO t(t, k) VALUES('refresh', 60)"
#define SLICES SLICE, SLICE, SLICE, SLICE, SLICE, SLICE, SLICE, SLICE, SLICE, SLICE, SLICE, SLICE
#define WRITING                                                                                    \
  "INSERT INTO t(body) VALUES('alone')",                                                           \
      "BEGIN;" NUMBERS(902, 1000) "INSERT INTO t(rowid, body) SELECT i, 'ex ' || i FROM n;"        \
                                  "UPDATE t SET body = 'rest ' || rowid WHERE rowid % 9 = 0;"      \
                                  "COMMIT",                                                        \
      "BEGIN; DELETE FROM t WHERE rowid % 10 = 3; SAVEPOINT s;"                                    \
      "UPDATE t SET body = 'never' WHERE rowid < 50; ROLLBACK TO s; RELEASE s;"                    \
      "UPDATE t SET rowid = rowid + 5000 WHERE rowid % 10 = 4; COMMIT",                            \
      "BEGIN;" NUMBERS(2001, 2300) "INSERT INTO t(rowid, body) SELECT i, 'add ' || i FROM n;"      \
                                   "COMMIT",                                                       \
      "REPLACE INTO t(rowid, body) VALUES(1, 'one'), (2, NULL), (3, ''), (9000, 'new')",           \
      "INSERT INTO t(t) VALUES('optimize')"

#define CONTENT_TABLE "body, content='docs', model='tiny'"
#define OWN_TABLE "body, model='tiny'"

static const scenario scenarios[SCENARIOS] = {
    {"refresh at once", "delete", CONTENT_TABLE, DOCS, "docs", {REFRESH}},
    {"refresh at once, WAL", "wal", CONTENT_TABLE, DOCS, "docs", {REFRESH}},
    {"refresh in slices", "delete", CONTENT_TABLE, DOCS, "docs", {SLICES, REFRESH}},
    {"refresh in slices, WAL",
     "wal",
     CONTENT_TABLE ", triggers=1",
     DOCS,
     "docs",
     {SLICES, REFRESH}},
    {"chunks in slices",
     "delete",
     CONTENT_TABLE ", triggers=1, chunk_tokens=6, overlap=1",
     LONG_DOCS,
     "docs",
     {SLICES, REFRESH}},
    {"own texts", "delete", OWN_TABLE, NOTES, "t_content", {WRITING}},
    {"own texts, WAL", "wal", OWN_TABLE ", dtype=int8", NOTES, "t_content", {WRITING}},
    {"rebuild and optimize",
     "wal",
     CONTENT_TABLE,
     DOCS,
     "docs",
     {"INSERT INTO t(t) VALUES('rebuild')", "INSERT INTO t(t) VALUES('optimize')",
      "BEGIN; DELETE FROM docs WHERE id > 700; INSERT INTO t(t) VALUES('refresh'); COMMIT",
      "INSERT INTO t(t) VALUES('optimize')"}},
};

static int step_count(const scenario *s) {
  int count = 0;
  while (count < STEPS && s->steps[count] != NULL) count++;
  return count;
}

/* ---- The process that is killed ---------------------------------------- */

static long writes_done, write_to_die_in; /* 0: in none */

static int is_last_write(void) {
  return ++writes_done == write_to_die_in;
}

static ssize_t write_at(int file, const void *bytes, size_t size, off_t at) {
  if (is_last_write() && pwrite(file, bytes, size / 2, at) >= 0) kill(getpid(), SIGKILL);
  return pwrite(file, bytes, size, at);
}

static ssize_t write_here(int file, const void *bytes, size_t size) {
  if (is_last_write() && write(file, bytes, size / 2) >= 0) kill(getpid(), SIGKILL);
  return write(file, bytes, size);
}

/* Counts the writes of SQLite, whichever of these its build uses. */
static void watch_writes(void) {
  union {
    ssize_t (*at)(int, const void *, size_t, off_t);
    ssize_t (*here)(int, const void *, size_t);
    sqlite3_syscall_ptr pointer;
  } mine = {.at = write_at};
  sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
  vfs->xSetSystemCall(vfs, "pwrite", mine.pointer);
  vfs->xSetSystemCall(vfs, "pwrite64", mine.pointer);
  mine.here = write_here;
  vfs->xSetSystemCall(vfs, "write", mine.pointer);
}

static void tell(char what) {
  if (write(STDOUT_FILENO, &what, 1) != 1) _exit(3);
}

/* arguments: path, write to die in, steps. Tells "r" when ready, "." after each
** step, then the number of writes. */
static int be_the_child(char **arguments) {
  sqlite3 *db = tabledb_open(arguments[0]);
  write_to_die_in = strtol(arguments[1], NULL, 10);
  assert_runs(db, "SELECT count(*) FROM t");
  watch_writes();
  writes_done = 0;
  tell('r');
  for (char **step = arguments + 2; *step != NULL; step++) {
    assert_runs(db, *step);
    tell('.');
  }
  dprintf(STDOUT_FILENO, "%ld", writes_done);
  sqldb_close(db);
  return 0;
}

/* ---- Running and killing it -------------------------------------------- */

typedef struct run {
  int steps;      /* that it told of */
  int was_killed; /* 0: it came to its end */
  long writes;
  double seconds; /* from ready to its end */
} run;

typedef struct child {
  pid_t pid;
  int pipe; /* what it tells */
} child;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void become_the_child(const scenario *s, const char *path, long die_in, int out) {
  char self[4096], number[32], option[] = "--child";
  char *arguments[STEPS + 5] = {self, option, (char *)(uintptr_t)path, number};
  ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
  if (size < 0) _exit(4);
  self[size] = 0;
  snprintf(number, sizeof number, "%ld", die_in);
  for (int i = 0; i < step_count(s); i++) arguments[4 + i] = (char *)(uintptr_t)s->steps[i];
  dup2(out, STDOUT_FILENO);
  execv(self, arguments);
  _exit(5);
}

/* Starts it, and waits until it is ready. */
static child child_start(const scenario *s, const char *path, long die_in) {
  int ends[2];
  char ready = 0;
  assert_int_equal(pipe(ends), 0);
  fflush(NULL);
  child c = {fork(), ends[0]};
  if (c.pid == 0) {
    close(ends[0]);
    become_the_child(s, path, die_in, ends[1]);
  }
  close(ends[1]);
  assert_true(c.pid > 0);
  if (read(c.pipe, &ready, 1) != 1 || ready != 'r') fail_msg("the child does not start");
  return c;
}

/* Kills it after so many seconds (below 0: not), and takes what it told. */
static run child_end(child c, double after) {
  char told[STEPS + 40];
  size_t size = 0;
  ssize_t more;
  int status;
  run r = {0, 0, 0, now()};
  if (after >= 0) {
    usleep((useconds_t)(after * 1e6));
    kill(c.pid, SIGKILL);
  }
  while ((more = read(c.pipe, told + size, sizeof told - 1 - size)) > 0) size += (size_t)more;
  told[size] = 0;
  close(c.pipe);
  while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR) {
  }
  r.seconds = now() - r.seconds;
  r.steps = (int)strspn(told, ".");
  r.writes = strtol(told + r.steps, NULL, 10);
  r.was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  if (!r.was_killed && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
    fail_msg("the child ended by itself, status %d, after %d steps", status, r.steps);
  return r;
}

/* ---- One scenario ------------------------------------------------------ */

typedef struct trial {
  const scenario *scenario;
  const char *path;
  char *bytes; /* the database as it is before each round: [size] */
  size_t size;
  uint64_t digests[STEPS + 1]; /* after so many steps */
  run whole;                   /* undisturbed */
} trial;

static void remove_files(const trial *t) {
  static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
  for (int i = 0; i < 4; i++) {
    char *path = sqlite3_mprintf("%s%s", t->path, ends[i]);
    unlink(path);
    sqlite3_free(path);
  }
}

static void put_back(const trial *t) {
  remove_files(t);
  FILE *f = fopen(t->path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(t->bytes, 1, t->size, f), t->size);
  assert_int_equal(fclose(f), 0);
}

static void keep_bytes(trial *t) {
  FILE *f = fopen(t->path, "rb");
  assert_non_null(f);
  fseek(f, 0, SEEK_END);
  t->size = (size_t)ftell(f);
  rewind(f);
  t->bytes = malloc(t->size);
  assert_non_null(t->bytes);
  assert_int_equal(fread(t->bytes, 1, t->size, f), t->size);
  fclose(f);
}

/* What is done here is not killed, and need not wait for the disk. */
static sqlite3 *open_quickly(const char *path) {
  sqlite3 *db = tabledb_open(path);
  assert_runs(db, "PRAGMA synchronous = OFF");
  return db;
}

static void make_database(trial *t) {
  const scenario *s = t->scenario;
  sqlite3 *db = open_quickly(t->path);
  stored_run(db, "PRAGMA journal_mode = %s; CREATE TABLE docs(id INTEGER PRIMARY KEY, body)",
             s->journal);
  stored_run(db, "CREATE VIRTUAL TABLE t USING bertsql(%s); %s", s->columns, s->setup);
  sqldb_close(db);
  keep_bytes(t);
}

/* What the table holds after each step, when nothing happens to it. */
static void take_digests(trial *t) {
  const scenario *s = t->scenario;
  sqlite3 *db = open_quickly(t->path);
  t->digests[0] = stored_digest_of_table(db, s->source);
  for (int i = 0; i < step_count(s); i++) {
    assert_runs(db, s->steps[i]);
    t->digests[i + 1] = stored_digest_of_table(db, s->source);
  }
  assert_sound(db, "t");
  assert_answer(db, "SELECT pending, failed FROM bert_status", "0|0");
  sqldb_close(db);
  put_back(t);
  t->whole = child_end(child_start(s, t->path, 0), -1);
  assert_int_equal(t->whole.steps, step_count(s));
  assert_true(t->whole.writes > 0);
}

/* What a killed process left, and the way on from there. */
static void examine(const trial *t, int told) {
  const scenario *s = t->scenario;
  int count = step_count(s), done = told;
  sqlite3 *db = open_quickly(t->path);
  assert_sound(db, "t");
  uint64_t digest = stored_digest_of_table(db, s->source);
  /* A step may have been committed without a chance to tell. */
  if (digest != t->digests[done] && done < count) done++;
  if (digest != t->digests[done]) fail_msg("not what %d or %d steps leave", told, done);
  while (done < count) assert_runs(db, s->steps[done++]);
  if (stored_digest_of_table(db, s->source) != t->digests[count])
    fail_msg("another end than without a kill");
  assert_sound(db, "t");
  assert_answer(db, "SELECT pending, failed FROM bert_status", "0|0");
  sqldb_close(db);
}

static void kill_once(const trial *t, dice *d, int by_clock, int *alive) {
  long die_in = 1 + (long)dice_throw(d, (uint64_t)t->whole.writes);
  double after = 1e-6 * (double)dice_throw(d, 1 + (uint64_t)(1e6 * t->whole.seconds));
  put_back(t);
  child c = child_start(t->scenario, t->path, by_clock ? 0 : die_in);
  run r = child_end(c, by_clock ? after : -1);
  if (!by_clock && !r.was_killed) fail_msg("write %ld never came", die_in);
  *alive += r.was_killed && r.steps < step_count(t->scenario);
  examine(t, r.steps);
}

static char under_way[300]; /* for the reader of a failure */

static int say_where(void **state) {
  (void)state;
  fprintf(stderr, "%s", under_way);
  return 0;
}

static void killed_processes_leave_whole_transactions(void **state) {
  uint64_t seed = dice_seed(1);
  trial t = {.scenario = *state};
  int rounds = dice_rounds(ROUNDS, 2), alive = 0;
  double start = now();
  void *path = NULL;
  tabledb_set_up(&path);
  t.path = path;
  make_database(&t);
  take_digests(&t);
  for (int i = 0; i < rounds; i++) {
    dice d = dice_take(seed, (uint64_t)(t.scenario - scenarios) * 1000 + (uint64_t)i);
    sqlite3_snprintf(sizeof under_way, under_way, "BERTSQL_SEED=%llu, round %d of %s, %s\n",
                     (unsigned long long)seed, i, t.scenario->name, t.path);
    kill_once(&t, &d, i % 2, &alive);
  }
  under_way[0] = 0;
  print_message("%s: %d of %d killed at work; undisturbed %.0f ms, %ld writes; %.1f s\n",
                t.scenario->name, alive, rounds, 1e3 * t.whole.seconds, t.whole.writes,
                now() - start);
  assert_true(2 * alive >= rounds);
  free(t.bytes);
  tabledb_tear_down(&path);
}

int main(int argc, char **argv) {
  struct CMUnitTest tests[SCENARIOS];
  if (argc > 3 && strcmp(argv[1], "--child") == 0) return be_the_child(argv + 2);
  for (int i = 0; i < SCENARIOS; i++)
    tests[i] = (struct CMUnitTest){scenarios[i].name, killed_processes_leave_whole_transactions,
                                   NULL, say_where, (void *)(uintptr_t)&scenarios[i]};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
