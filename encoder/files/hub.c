/*
** hub.c: hub ids in the local Hugging Face cache.
**
** The cache holds models--ORG--NAME/refs/main, which names a revision, and
** models--ORG--NAME/snapshots/REVISION, a model directory of links. Where the
** cache is, the first of five environment variables decides, as huggingface_hub
** does it. Only files are read; nothing is downloaded.
*/
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "files.h"

enum { ROOM = 4096 };

typedef struct path {
  char text[ROOM];
} path;

/* 0 when the text does not fit. */
static int BERT_PRINTF(2, 3) path_set(path *p, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int wanted = vsnprintf(p->text, sizeof p->text, format, arguments);
  va_end(arguments);
  return wanted >= 0 && (size_t)wanted < sizeof p->text;
}

static bert_status too_long(const char *source, bert_error *error) {
  return error_set(error, BERT_IO, "the path for \"%s\" is too long", error_quote(source).text);
}

static int is_directory(const char *name) {
  struct stat s;
  return stat(name, &s) == 0 && S_ISDIR(s.st_mode);
}

/* The absolute path of `name`, links resolved, in memory of ours. */
static bert_status absolute(const char *name, char **out, bert_error *error) {
  char resolved[PATH_MAX];
  if (realpath(name, resolved) == NULL)
    return error_set(error, BERT_IO, "cannot resolve %s: %s", name, strerror(errno));
  *out = memory_copy_text(resolved, strlen(resolved));
  return *out == NULL ? error_nomem(error, "opening a model") : BERT_OK;
}

/* ---- The cache --------------------------------------------------------- */

static const char *variable(const char *name) {
  const char *value = getenv(name);
  return value == NULL || value[0] == '\0' ? NULL : value;
}

/* base/rest, with the user's directory for a leading "~/". */
static int expand(path *p, const char *base, const char *rest) {
  const char *home = variable("HOME");
  if (base[0] == '~' && (base[1] == '/' || base[1] == '\0') && home != NULL)
    return path_set(p, "%s%s%s", home, base + 1, rest);
  return path_set(p, "%s%s", base, rest);
}

/* The variables in the order that huggingface_hub asks them. */
static const struct {
  const char *name, *rest;
} cache_variables[] = {
    {"HF_HUB_CACHE", ""},
    {"HUGGINGFACE_HUB_CACHE", ""},
    {"HF_HOME", "/hub"},
    {"XDG_CACHE_HOME", "/huggingface/hub"},
    {"HOME", "/.cache/huggingface/hub"},
};

/* The directory of the cache and the variable that said so. 0: no variable is
** set, or the path does not fit. */
static int cache_directory(path *p, const char **said) {
  for (size_t i = 0; i < sizeof cache_variables / sizeof *cache_variables; i++) {
    const char *value = variable(cache_variables[i].name);
    if (value == NULL) continue;
    *said = cache_variables[i].name;
    return expand(p, value, cache_variables[i].rest);
  }
  return 0;
}

/* ---- Ids --------------------------------------------------------------- */

static int id_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

/* text[size] is a name such as "all-MiniLM-L6-v2", which leads nowhere else. */
static int plain_part(const char *text, size_t size) {
  if (size == 0 || text[0] == '.' || text[0] == '-') return 0;
  for (size_t i = 0; i < size; i++)
    if (!id_character(text[i])) return 0;
  return 1;
}

static int is_hub_id(const char *source) {
  const char *slash = strchr(source, '/');
  if (slash == NULL) return plain_part(source, strlen(source));
  return plain_part(source, (size_t)(slash - source)) && plain_part(slash + 1, strlen(slash + 1));
}

/* cache/models--ORG--NAME. */
static int model_folder(path *p, const char *cache, const char *id) {
  const char *slash = strchr(id, '/');
  if (slash == NULL) return path_set(p, "%s/models--%s", cache, id);
  return path_set(p, "%s/models--%.*s--%s", cache, (int)(slash - id), id, slash + 1);
}

/* ---- Revisions --------------------------------------------------------- */

/* The revision that refs/main names; "" when there is no such file. */
static bert_status read_ref(const char *folder, char *revision, size_t room, bert_error *error) {
  char *text = NULL;
  size_t size = 0;
  bert_status status = file_read(folder, "refs/main", room - 1, 1, &text, &size, error);
  revision[0] = '\0';
  if (status != BERT_OK || text == NULL) return status;
  while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r' || text[size - 1] == ' '))
    size--;
  if (plain_part(text, size)) {
    memcpy(revision, text, size);
    revision[size] = '\0';
  } else {
    status = error_set(error, BERT_INVALID, "%s/refs/main does not name a revision", folder);
  }
  memory_free(text);
  return status;
}

/* Without refs/main: the only snapshot there is; "" when there is none. */
static bert_status only_snapshot(const char *folder, char *revision, size_t room,
                                 bert_error *error) {
  path p;
  if (!path_set(&p, "%s/snapshots", folder)) return too_long(folder, error);
  DIR *list = opendir(p.text);
  int found = 0;
  for (struct dirent *e = list == NULL ? NULL : readdir(list); e != NULL; e = readdir(list)) {
    size_t size = strlen(e->d_name);
    if (!plain_part(e->d_name, size) || size >= room) continue;
    memcpy(revision, e->d_name, size + 1);
    found++;
  }
  if (list != NULL) closedir(list);
  if (found <= 1) return BERT_OK;
  return error_set(error, BERT_IO,
                   "%s has %d snapshots and no refs/main to choose by: give the "
                   "directory of one of them",
                   p.text, found);
}

static bert_status find_revision(const char *folder, char *revision, size_t room,
                                 bert_error *error) {
  bert_status status = read_ref(folder, revision, room, error);
  if (status == BERT_OK && revision[0] == '\0')
    status = only_snapshot(folder, revision, room, error);
  return status;
}

/* ---- Resolving --------------------------------------------------------- */

static bert_status not_found(const char *source, const char *folder, const char *said,
                             bert_error *error) {
  return error_set(error, BERT_IO,
                   "no model \"%s\": there is no such directory, and no snapshot in %s, where the "
                   "Hugging Face cache (%s) would have it; it is not downloaded from here, "
                   "\"hf download %s\" does that",
                   error_quote(source).text, folder, said, error_quote(source).text);
}

/* What a download that was cut short or restricted lacks; NULL when nothing is seen
** to be missing. Old sentence-transformers directories have no config.json but in a
** folder that modules.json names; what has weights of another kind is whole. */
static const char *missing_part(const char *directory) {
  static const char *const weights[] = {"model.safetensors", "model.safetensors.index.json",
                                        "pytorch_model.bin", "pytorch_model.bin.index.json"};
  if (!path_exists(directory, "config.json"))
    return path_exists(directory, "modules.json") ? NULL : "config.json";
  for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
    if (path_exists(directory, weights[i])) return NULL;
  return "model.safetensors";
}

static bert_status snapshot(const char *id, const char *folder, const char *said, char **out,
                            bert_error *error) {
  char revision[256] = "";
  path p = {{0}};
  bert_status status = find_revision(folder, revision, sizeof revision, error);
  if (status != BERT_OK) return status;
  if (revision[0] == '\0') return not_found(id, folder, said, error);
  if (!path_set(&p, "%s/snapshots/%s", folder, revision)) return too_long(id, error);
  if (!is_directory(p.text)) return not_found(id, p.text, said, error);
  const char *missing = missing_part(p.text);
  if (missing != NULL)
    return error_set(error, BERT_IO,
                     "the snapshot %s is partial: it has no %s; download the model again (one that "
                     "the hub has without it cannot be read here)",
                     p.text, missing);
  return absolute(p.text, out, error);
}

static bert_status from_cache(const char *id, char **out, bert_error *error) {
  path cache = {{0}}, folder = {{0}};
  const char *said = NULL;
  int fits = cache_directory(&cache, &said);
  if (said == NULL)
    return error_set(error, BERT_IO,
                     "no model \"%s\": there is no such directory, and neither "
                     "HF_HUB_CACHE, HF_HOME nor HOME says where the Hugging Face cache is",
                     error_quote(id).text);
  if (!fits || !model_folder(&folder, cache.text, id)) return too_long(id, error);
  return snapshot(id, folder.text, said, out, error);
}

bert_status hub_resolve(const char *source, char **directory, bert_error *error) {
  struct stat s;
  if (source == NULL || source[0] == '\0')
    return error_set(error, BERT_ARGUMENT,
                     "the source of a model is empty: give a directory or a "
                     "hub id");
  if (stat(source, &s) == 0) {
    if (S_ISDIR(s.st_mode)) return absolute(source, directory, error);
    return error_set(error, BERT_IO, "%s is a file; a model is a directory", source);
  }
  if (is_hub_id(source)) return from_cache(source, directory, error);
  return error_set(error, BERT_IO,
                   "no model \"%s\": there is no such directory, and it is not a hub "
                   "id such as sentence-transformers/all-MiniLM-L6-v2",
                   error_quote(source).text);
}
