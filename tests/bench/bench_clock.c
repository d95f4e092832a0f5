/*
** bench_clock.c: time, memory and processes, seen from outside SQL.
*/
#include "bench.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The line of that name in /proc/self/status, which is in kB. */
static long status_kilobytes(const char *name) {
  char line[256];
  long found = -1;
  FILE *status = fopen("/proc/self/status", "r");
  if (status == NULL) die("cannot read /proc/self/status");
  while (found < 0 && fgets(line, sizeof line, status) != NULL)
    if (strncmp(line, name, strlen(name)) == 0) found = strtol(line + strlen(name), NULL, 10);
  fclose(status);
  if (found < 0) die("/proc/self/status has no %s", name);
  return found;
}

long peak_kilobytes(void) {
  return status_kilobytes("VmHWM:");
}

long resident_kilobytes(void) {
  return status_kilobytes("VmRSS:");
}

off_t file_bytes(const char *path) {
  struct stat s;
  return stat(path, &s) == 0 ? s.st_size : 0;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double quantile(double *numbers, size_t count, double share) {
  qsort(numbers, count, sizeof *numbers, compare);
  size_t low = (size_t)(share * (double)(count - 1));
  double part = share * (double)(count - 1) - (double)low;
  return low + 1 < count ? numbers[low] * (1 - part) + numbers[low + 1] * part : numbers[low];
}

static pid_t spawn_writing_to(int fd, int other_end, char *const command[]) {
  posix_spawn_file_actions_t actions;
  pid_t child;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, fd);
  posix_spawn_file_actions_addclose(&actions, other_end);
  int failed = posix_spawnp(&child, command[0], &actions, NULL, command, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) die("cannot start %s: %s", command[0], strerror(failed));
  return child;
}

double seconds_to_first_byte(char *const command[]) {
  int ends[2], status;
  char byte;
  if (pipe(ends) != 0) die("cannot make a pipe");
  double begin = seconds_now();
  pid_t child = spawn_writing_to(ends[1], ends[0], command);
  close(ends[1]);
  ssize_t got = read(ends[0], &byte, 1);
  double seconds = seconds_now() - begin;
  while (read(ends[0], &byte, 1) > 0) {
  }
  close(ends[0]);
  if (waitpid(child, &status, 0) != child || status != 0 || got != 1)
    die("%s did not come to its first embedding", command[0]);
  return seconds;
}
