/*
** cores.c: how many cores this process may run on.
**
** A container with half a core on a machine of 64 must not start 64 threads:
** the affinity mask counts, and so does the quota of the cgroups (version 1 or
** 2) that the process is in, each of which may be narrower than those below.
*/
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"

enum { PATH_BYTES = 4096, LINE_BYTES = 4096 };

static int online_cores(void) {
#if defined(__linux__)
  union {
    cpu_set_t set;
    char room[1024]; /* 8192 processors; cpu_set_t alone has 1024 */
  } mask;
  memset(&mask, 0, sizeof mask);
  if (sched_getaffinity(0, sizeof mask, &mask.set) == 0) {
    int count = CPU_COUNT_S(sizeof mask, &mask.set);
    if (count > 0) return count;
  }
#endif
#if defined(_SC_NPROCESSORS_ONLN)
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  if (count > 0 && count < 1 << 20) return (int)count;
#endif
  return 1;
}

/* The smaller of two limits, 0 being none. */
static int narrower(int a, int b) {
  return a == 0 || (b != 0 && b < a) ? b : a;
}

#if defined(__linux__)

/* The first line of root/directory/name, without its newline. 0: none. */
static int first_line(const char *root, const char *directory, const char *name, char *line,
                      size_t room) {
  char path[PATH_BYTES];
  int wanted = snprintf(path, sizeof path, "%s%s/%s", root, directory, name);
  if (wanted < 0 || (size_t)wanted >= sizeof path) return 0;
  FILE *file = fopen(path, "re");
  if (file == NULL) return 0;
  int found = fgets(line, (int)room, file) != NULL;
  fclose(file);
  if (found) line[strcspn(line, "\n")] = '\0';
  return found;
}

/* Whole cores for `quota` microseconds of every `period`, rounded up; 0 when
** that is no limit. */
static int cores_of(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return 0;
  long long cores = quota / period + (quota % period != 0);
  return cores < 1 << 20 ? (int)cores : 0;
}

/* The limit that one cgroup sets; 0: none. */
static int group_limit(const char *root, const char *directory, int version) {
  char line[64];
  if (version == 2) {
    if (!first_line(root, directory, "cpu.max", line, sizeof line)) return 0;
    char *end = NULL;
    long long quota = strtoll(line, &end, 10); /* "max 100000" reads as 0 */
    return cores_of(quota, strtoll(end, NULL, 10));
  }
  if (!first_line(root, directory, "cpu.cfs_quota_us", line, sizeof line)) return 0;
  long long quota = strtoll(line, NULL, 10); /* -1: no limit */
  if (!first_line(root, directory, "cpu.cfs_period_us", line, sizeof line)) return 0;
  return cores_of(quota, strtoll(line, NULL, 10));
}

/* The narrowest limit from the cgroup `group` up to the mount point. Inside a
** container `group` may be a path of the host that is not mounted: then the
** mount point itself is the container's group, and is looked at last. */
static int chain_limit(const char *root, const char *mount, const char *group, int version) {
  char directory[PATH_BYTES];
  int wanted = snprintf(directory, sizeof directory, "%s%s", mount, group);
  if (wanted < 0 || (size_t)wanted >= sizeof directory) return 0;
  size_t top = strlen(mount);
  int limit = 0;
  for (;;) {
    limit = narrower(limit, group_limit(root, directory, version));
    char *slash = strrchr(directory + top, '/');
    if (slash == NULL) return limit;
    *slash = '\0';
  }
}

/* 1 when the comma-separated `list` names `word`. */
static int lists(const char *list, const char *word) {
  size_t size = strlen(word);
  for (const char *at = list; at != NULL; at = strchr(at, ',')) {
    if (*at == ',') at++;
    if (strncmp(at, word, size) == 0 && (at[size] == ',' || at[size] == '\0')) return 1;
  }
  return 0;
}

/* The limit that a line of /proc/self/cgroup, "7:cpu,cpuacct:/group", leads to. */
static int line_limit(const char *root, char *line) {
  line[strcspn(line, "\n")] = '\0';
  char *controllers = strchr(line, ':');
  char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
  if (group == NULL) return 0;
  controllers++;
  *group++ = '\0';
  if (strstr(group, "..") != NULL) return 0;
  if (*controllers == '\0') {
    int limit = chain_limit(root, "/sys/fs/cgroup", group, 2);
    return narrower(limit, chain_limit(root, "/sys/fs/cgroup/unified", group, 2));
  }
  if (!lists(controllers, "cpu")) return 0;
  int limit = chain_limit(root, "/sys/fs/cgroup/cpu", group, 1);
  return narrower(limit, chain_limit(root, "/sys/fs/cgroup/cpu,cpuacct", group, 1));
}

int cores_quota(const char *root) {
  char path[PATH_BYTES], line[LINE_BYTES];
  int wanted = snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  if (wanted < 0 || (size_t)wanted >= sizeof path) return 0;
  FILE *file = fopen(path, "re");
  if (file == NULL) return 0;
  int limit = 0;
  while (fgets(line, sizeof line, file) != NULL) limit = narrower(limit, line_limit(root, line));
  fclose(file);
  return limit;
}

#else

int cores_quota(const char *root) {
  (void)root;
  return 0;
}

#endif

int team_cores(void) {
  static atomic_int cached;
  int cores = atomic_load_explicit(&cached, memory_order_relaxed);
  if (cores == 0) {
    cores = narrower(online_cores(), cores_quota(""));
    atomic_store_explicit(&cached, cores, memory_order_relaxed);
  }
  return cores;
}
