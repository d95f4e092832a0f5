/*
** mapping.c: a file mapped read-only, or copied; small files as text.
**
** Weights are mapped shared and read-only: all processes that use a model share
** one copy in the page cache, and opening costs nothing that is not used. Huge
** pages are asked for. Linux reads the file ahead in their size then, as far as it
** is not in the page cache yet, and keeps it so for whoever maps it next.
**
** Files are opened without blocking, so that a FIFO in a model directory is
** refused instead of waited for.
*/
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"

enum {
  JSON_LIMIT = 64 << 20, /* bytes; the largest tokenizer.json known has 33 MB */
  READ_AT_ONCE = 1 << 30,
  PATH_BYTES = 4096
};

#if defined(__APPLE__)
#define MODIFIED st_mtimespec
#else
#define MODIFIED st_mtim
#endif

static int64_t modified_ns(const struct stat *s) {
  return (int64_t)s->MODIFIED.tv_sec * 1000000000 + (int64_t)s->MODIFIED.tv_nsec;
}

/* ---- Opening and reading ----------------------------------------------- */

/* A snapshot of a hub cache is made of links; one whose file is gone must not
** pass for a file that the model never had. */
static int is_link(const char *path) {
  struct stat s;
  return lstat(path, &s) == 0 && S_ISLNK(s.st_mode);
}

/* Opens a regular file for reading; -1 with the error set. *missing, if asked
** for, says that there is no such file (the error is then not set). */
static int open_regular(const char *path, int *missing, struct stat *s, bert_error *error) {
  int descriptor;
  do descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) {
    int reason = errno;
    int dangling = reason == ENOENT && is_link(path);
    if (missing != NULL && (reason == ENOENT || reason == ENOTDIR) && !dangling) {
      *missing = 1;
      return -1;
    }
    if (dangling) {
      error_set(error, BERT_IO, "cannot open %s: it is a link to a file that is not there", path);
      return -1;
    }
    error_set(error, BERT_IO, "cannot open %s: %s", path, strerror(reason));
    return -1;
  }
  if (fstat(descriptor, s) != 0) {
    error_set(error, BERT_IO, "cannot read %s: %s", path, strerror(errno));
  } else if (!S_ISREG(s->st_mode)) {
    error_set(error, BERT_IO, "cannot read %s: it is %s, not a regular file", path,
              S_ISDIR(s->st_mode) ? "a directory" : "a device or a pipe");
  } else if (s->st_size < 0 || (uint64_t)s->st_size > SIZE_MAX / 2) {
    error_set(error, BERT_IO, "cannot read %s: its size is beyond this machine", path);
  } else {
    return descriptor;
  }
  close(descriptor);
  return -1;
}

/* Reads exactly size bytes. */
static bert_status read_whole(int descriptor, const char *path, char *data, size_t size,
                              bert_error *error) {
  size_t done = 0;
  while (done < size) {
    size_t want = size - done < READ_AT_ONCE ? size - done : READ_AT_ONCE;
    ssize_t got = read(descriptor, data + done, want);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return error_set(error, BERT_IO, "cannot read %s: %s", path, strerror(errno));
    if (got == 0)
      return error_set(error, BERT_IO, "cannot read %s: it became shorter while being read", path);
    done += (size_t)got;
  }
  return BERT_OK;
}

/* ---- Mappings ---------------------------------------------------------- */

static bert_status copy_data(int descriptor, const char *path, mapping *m, bert_error *error) {
  char *data = memory_alloc(m->size);
  if (data == NULL) return error_nomem(error, "reading a weight file");
  bert_status status = read_whole(descriptor, path, data, m->size, error);
  if (status != BERT_OK) {
    memory_free(data);
    return status;
  }
  m->data = data;
  return BERT_OK;
}

/* A hint: not every kernel has huge pages for files, and none for those that it has read
** into small ones. */
static void ask_for_huge_pages(void *data, size_t size) {
#if defined(MADV_HUGEPAGE)
  madvise(data, size, MADV_HUGEPAGE);
#else
  (void)data;
  (void)size;
#endif
}

static bert_status map_data(int descriptor, const char *path, mapping *m, bert_error *error) {
  void *data = mmap(NULL, m->size, PROT_READ, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED)
    return error_set(error, errno == ENOMEM ? BERT_NOMEM : BERT_IO, "cannot map %s: %s", path,
                     strerror(errno));
  ask_for_huge_pages(data, m->size);
  m->data = data;
  return BERT_OK;
}

bert_status mapping_open(const char *path, int copy, mapping *out, bert_error *error) {
  struct stat s;
  int descriptor = open_regular(path, NULL, &s, error);
  if (descriptor < 0) return BERT_IO;
  mapping m = {0};
  m.size = (size_t)s.st_size;
  m.copied = copy != 0;
  m.descriptor = -1;
  m.device = (uint64_t)s.st_dev;
  m.inode = (uint64_t)s.st_ino;
  m.modified_ns = modified_ns(&s);
  bert_status status = BERT_OK;
  if (m.size > 0)
    status = copy ? copy_data(descriptor, path, &m, error) : map_data(descriptor, path, &m, error);
  if (status == BERT_OK && m.data != NULL && !copy)
    m.descriptor = descriptor;
  else
    close(descriptor);
  if (status == BERT_OK) *out = m;
  return status;
}

void mapping_close(mapping *m) {
  if (m->data != NULL) {
    if (m->copied)
      memory_free((void *)(uintptr_t)m->data);
    else
      munmap((void *)(uintptr_t)m->data, m->size);
    if (!m->copied) close(m->descriptor);
  }
  mapping closed = {0};
  closed.descriptor = -1;
  *m = closed;
}

void mapping_drop_pages(const mapping *m) {
  if (m->data != NULL && !m->copied) madvise((void *)(uintptr_t)m->data, m->size, MADV_DONTNEED);
}

/* The open descriptor is asked, not the path: a file that was replaced by
** rename, as package managers and download tools do, leaves the mapped one
** whole, however the new one looks. What harms is writing into the mapped file
** or cutting it, and both show in its size or time. Not the change time: a
** rename or a new link sets that, too. */
bert_status mapping_check(const mapping *m, const char *path, bert_error *error) {
  if (m->copied || m->descriptor < 0) return BERT_OK;
  struct stat s;
  if (fstat(m->descriptor, &s) != 0)
    return error_set(error, BERT_IO, "cannot check %s: %s", path, strerror(errno));
  if (s.st_size >= 0 && (uint64_t)s.st_size == m->size && modified_ns(&s) == m->modified_ns)
    return BERT_OK;
  return error_set(error, BERT_CHANGED,
                   "%s changed on disk while it was in use: close the model and open it again",
                   path);
}

/* ---- Small files ------------------------------------------------------- */

static bert_status read_text(int descriptor, const char *path, size_t size, char **text,
                             bert_error *error) {
  char *data = memory_alloc((uint64_t)size + 1);
  if (data == NULL) return error_nomem(error, "reading a model file");
  bert_status status = read_whole(descriptor, path, data, size, error);
  if (status != BERT_OK) {
    memory_free(data);
    return status;
  }
  data[size] = '\0';
  *text = data;
  return BERT_OK;
}

static bert_status read_path(const char *path, size_t limit, int optional, char **text,
                             size_t *size, bert_error *error) {
  struct stat s;
  int missing = 0;
  int descriptor = open_regular(path, optional ? &missing : NULL, &s, error);
  if (descriptor < 0) {
    if (!missing) return BERT_IO;
    *text = NULL;
    *size = 0;
    return BERT_OK;
  }
  bert_status status = BERT_OK;
  size_t bytes = (size_t)s.st_size;
  if (bytes > limit)
    status = error_set(error, BERT_INVALID, "%s has %zu bytes, more than the %zu that are allowed",
                       path, bytes, limit);
  else
    status = read_text(descriptor, path, bytes, text, error);
  close(descriptor);
  if (status == BERT_OK) *size = bytes;
  return status;
}

bert_status file_read(const char *directory, const char *name, size_t limit, int optional,
                      char **text, size_t *size, bert_error *error) {
  char *path = path_join(directory, name);
  if (path == NULL) return error_nomem(error, "reading a model file");
  bert_status status = read_path(path, limit, optional, text, size, error);
  memory_free(path);
  return status;
}

bert_status file_read_json(const char *directory, const char *name, int optional, json_type root,
                           json_document **document, bert_error *error) {
  unsigned char digest[DIGEST_BYTES];
  return file_read_json_digest(directory, name, optional, root, document, digest, error);
}

bert_status file_read_json_digest(const char *directory, const char *name, int optional,
                                  json_type root, json_document **document,
                                  unsigned char digest[DIGEST_BYTES], bert_error *error) {
  char *text = NULL;
  size_t size = 0;
  bert_status status = file_read(directory, name, JSON_LIMIT, optional, &text, &size, error);
  memset(digest, 0, DIGEST_BYTES);
  if (status != BERT_OK) return status;
  if (text == NULL) {
    *document = NULL;
    return BERT_OK;
  }
  digest_bytes(text, size, digest);
  json_document *parsed = NULL;
  status = json_parse(text, size, &parsed, error);
  memory_free(text);
  if (status == BERT_OK && json_root(parsed)->type != root) {
    status = error_set(error, BERT_INVALID, "expected %s, not %s", json_type_name(root),
                       json_type_name(json_root(parsed)->type));
    json_free(parsed);
  }
  if (status == BERT_OK)
    *document = parsed;
  else
    error_prefix(error, "%s/%s", directory, name);
  return status;
}

char *path_join(const char *directory, const char *name) {
  size_t first = strlen(directory), second = strlen(name);
  int slash = first > 0 && second > 0 && directory[first - 1] != '/';
  char *path = memory_alloc((uint64_t)first + (uint64_t)slash + second + 1);
  if (path == NULL) return NULL;
  memcpy(path, directory, first);
  if (slash) path[first] = '/';
  memcpy(path + first + (size_t)slash, name, second + 1);
  return path;
}

/* Allocates nothing: being out of memory must not look like a missing file. */
int path_exists(const char *directory, const char *name) {
  char path[PATH_BYTES];
  struct stat s;
  int wanted = snprintf(path, sizeof path, "%s/%s", directory, name);
  return wanted > 0 && (size_t)wanted < sizeof path && stat(path, &s) == 0;
}
