/*
** scratch.c: see scratch.h.
*/
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void run(const char *format, const char *a, const char *b) {
  char command[2000];
  snprintf(command, sizeof command, format, a, b);
  if (system(command) != 0) fail_msg("failed: %s", command);
}

char *scratch_new(void) {
  char path[500];
  const char *parent = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/bertsql-test-XXXXXX", parent ? parent : "/tmp");
  if (mkdtemp(path) == NULL) fail_msg("cannot make %s", path);
  return strdup(path);
}

char *scratch_copy(const char *directory) {
  char *path = scratch_new();
  run("cp -RL '%s'/. '%s' && chmod -R u+w '%2$s'", directory, path);
  return path;
}

void scratch_free(char *copy) {
  run("rm -rf '%s'%s", copy, "");
  free(copy);
}

static FILE *open_file(const char *directory, const char *name, const char *mode) {
  char path[1000];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  FILE *file = fopen(path, mode);
  if (file == NULL) fail_msg("cannot open %s", path);
  return file;
}

char *scratch_read(const char *directory, const char *name, size_t *size) {
  FILE *file = open_file(directory, name, "rb");
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  char *bytes = malloc(*size + 1);
  if (bytes == NULL || fread(bytes, 1, *size, file) != *size) fail_msg("cannot read %s", name);
  bytes[*size] = '\0';
  fclose(file);
  return bytes;
}

void scratch_write(const char *directory, const char *name, const void *bytes, size_t size) {
  FILE *file = open_file(directory, name, "wb");
  if (size > 0 && fwrite(bytes, 1, size, file) != size) fail_msg("cannot write %s", name);
  if (fclose(file) != 0) fail_msg("cannot write %s", name);
}

void scratch_remove(const char *directory, const char *name) {
  run("rm '%s/%s'", directory, name);
}

void scratch_replace(const char *directory, const char *name, const char *from, const char *to) {
  size_t size, cut = strlen(from), put = strlen(to);
  char *bytes = scratch_read(directory, name, &size);
  char *at = memmem(bytes, size, from, cut);
  if (at == NULL) fail_msg("%s holds no \"%s\"", name, from);
  char *changed = malloc(size + put);
  size_t before = (size_t)(at - bytes);
  memcpy(changed, bytes, before);
  memcpy(changed + before, to, put);
  memcpy(changed + before + put, at + cut, size - before - cut);
  scratch_write(directory, name, changed, size - cut + put);
  free(changed);
  free(bytes);
}
