/*
** failing_memory.c: see failing_memory.h.
*/
#include "failing_memory.h"

#include <pthread.h>
#include <sqlite3.h>

static sqlite3_mem_methods real;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long requests, fail_number, failures, blocks;
static int fails_on;

/* Counts a request and, if it will have its way, `change` blocks more. */
static int fails(int change) {
  pthread_mutex_lock(&lock);
  requests++;
  int now = fail_number > 0 && (requests == fail_number || (fails_on && requests > fail_number));
  failures += now;
  if (!now) blocks += change;
  pthread_mutex_unlock(&lock);
  return now;
}

static void *counted_malloc(int bytes) {
  return fails(1) ? NULL : real.xMalloc(bytes);
}

static void *counted_realloc(void *block, int bytes) {
  return fails(block == NULL) ? NULL : real.xRealloc(block, bytes);
}

static void counted_free(void *block) {
  pthread_mutex_lock(&lock);
  blocks -= block != NULL;
  pthread_mutex_unlock(&lock);
  real.xFree(block);
}

int failing_memory_install(void **state) {
  (void)state;
  sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real);
  sqlite3_mem_methods counted = real;
  counted.xMalloc = counted_malloc;
  counted.xRealloc = counted_realloc;
  counted.xFree = counted_free;
  sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
  return sqlite3_config(SQLITE_CONFIG_MALLOC, &counted) != SQLITE_OK;
}

static void set(long fail_at, int persistent) {
  requests = failures = 0;
  fail_number = fail_at;
  fails_on = persistent;
}

void failing_memory_begin(long fail_at, int persistent) {
  pthread_mutex_lock(&lock);
  set(fail_at, persistent);
  pthread_mutex_unlock(&lock);
}

long failing_memory_end(long *made) {
  pthread_mutex_lock(&lock);
  long failed = failures;
  if (made != NULL) *made = requests;
  set(0, 0);
  pthread_mutex_unlock(&lock);
  return failed;
}

long failing_memory_blocks(void) {
  return blocks;
}
