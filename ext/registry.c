/*
** registry.c: the models of a connection, by name.
**
** Names belong to a connection, weights to the process: two connections that
** load the same directory share one mapping, but each has its own encoder,
** since an encoder serves one call at a time.
*/
#include "ext.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- One loaded model -------------------------------------------------- */

void loaded_model_hold(loaded_model *m) {
  m->owners++;
}

void loaded_model_drop(loaded_model *m) {
  if (m == NULL || --m->owners > 0) return;
  bert_encoder_free(m->encoder);
  bert_close(m->model);
  sqlite3_free(m->name);
  sqlite3_free(m->source);
  sqlite3_free(m->place);
  sqlite3_free(m);
}

/* A source that is no directory is a hub id. The model says which directory it is
** from, also when the working directory has changed since. */
static char *place_of(const char *source, const bert_model *model) {
  struct stat s;
  int directory = stat(source, &s) == 0 && S_ISDIR(s.st_mode);
  return sqlite3_mprintf("%s", directory ? bert_describe(model)->source : source);
}

/* Takes over `model`, also when it fails. */
static loaded_model *make_loaded(const char *name, const char *source, bert_model *model) {
  loaded_model *m = sqlite3_malloc64(sizeof *m);
  if (m == NULL) {
    bert_close(model);
    return NULL;
  }
  memset(m, 0, sizeof *m);
  m->owners = 1;
  m->model = model;
  m->name = sqlite3_mprintf("%s", name);
  m->source = sqlite3_mprintf("%s", source);
  m->place = place_of(source, model);
  if (m->name != NULL && m->source != NULL && m->place != NULL) return m;
  loaded_model_drop(m);
  return NULL;
}

static bert_status give_encoder(connection *c, loaded_model *m, bert_error *error) {
  bert_status status = bert_encoder_create(m->model, &m->encoder, error);
  if (status != BERT_OK) return status;
  bert_encoder_set_threads(m->encoder, connection_settings(c)->threads);
  bert_encoder_set_interrupt(m->encoder, connection_interrupted, c);
  return BERT_OK;
}

/* ---- The list ---------------------------------------------------------- */

loaded_model *registry_first(connection *c) {
  return *connection_models(c);
}

loaded_model *registry_loaded(connection *c, const char *name) {
  loaded_model *m = registry_first(c);
  while (m != NULL && name != NULL && strcmp(m->name, name) != 0) m = m->next;
  return m;
}

/* The first of the list is the default model. */
static void append(connection *c, loaded_model *m) {
  loaded_model **link = connection_models(c);
  m->is_default = *link == NULL;
  while (*link != NULL) link = &(*link)->next;
  *link = m;
}

void registry_set_threads(connection *c, int threads) {
  for (loaded_model *m = registry_first(c); m != NULL; m = m->next)
    bert_encoder_set_threads(m->encoder, threads);
}

void registry_clear(connection *c) {
  loaded_model **first = connection_models(c);
  while (*first != NULL) {
    loaded_model *m = *first;
    *first = m->next;
    loaded_model_drop(m);
  }
}

/* no model "x" is loaded; the names are a, b. To `unload` one is what was asked. */
static bert_status unknown_name(connection *c, const char *name, int unload, bert_error *error) {
  const loaded_model *m = registry_first(c);
  char shown[320];
  if (name[0] == 0)
    return error_set(error, BERT_ARGUMENT,
                     "the name of the model is empty; bert_models lists the names there are");
  sqlite3_snprintf((int)sizeof shown, shown, "%!.80s", name);
  if (m == NULL && unload)
    return error_set(error, BERT_ARGUMENT,
                     "no model \"%s\" is loaded, nor any other; there is nothing to unload", shown);
  if (m == NULL)
    return error_set(error, BERT_ARGUMENT,
                     "no model \"%s\" is loaded, nor any other; bert_load(source, '%s') opens one "
                     "under this name",
                     shown, shown);
  sqlite3_str *list = sqlite3_str_new(NULL);
  for (; m != NULL; m = m->next) sqlite3_str_appendf(list, "%s%s", m->name, m->next ? ", " : "");
  char *names = sqlite3_str_finish(list);
  if (names == NULL) return error_nomem(error, "listing the models");
  error_set(error, BERT_ARGUMENT, "no model \"%s\" is loaded; the names are %s", shown, names);
  sqlite3_free(names);
  return BERT_ARGUMENT;
}

/* ---- Names ------------------------------------------------------------- */

/* The last component of a path or hub id, without trailing slashes. */
static char *last_component(const char *source) {
  size_t stop = strlen(source);
  while (stop > 0 && source[stop - 1] == '/') stop--;
  size_t start = stop;
  while (start > 0 && source[start - 1] != '/') start--;
  return sqlite3_mprintf("%.*s", (int)(stop - start), source + start);
}

/* The name a source has when none is given. "." and ".." have no name of their
** own, so they take that of the folder they mean. */
static char *default_name(const char *source) {
  char *name = last_component(source);
  if (name == NULL || (name[0] != 0 && strcmp(name, ".") != 0 && strcmp(name, "..") != 0))
    return name;
  sqlite3_free(name);
  char real[PATH_MAX];
  return last_component(realpath(source, real) != NULL ? real : "model");
}

/* The name of the default model at `path`. A link called "default" only says
** which model is the default one, so the name is that of what it points to. */
static char *name_behind(const char *path) {
  char target[PATH_MAX], *name = default_name(path);
  if (name == NULL || strcmp(name, "default") != 0) return name;
  ssize_t size = readlink(path, target, sizeof target - 1);
  if (size <= 0) return name;
  sqlite3_free(name);
  target[size] = 0;
  return default_name(target);
}

/* ---- Loading ----------------------------------------------------------- */

/* `m` holds the name that `model` should get: fine when it is the same model. */
static bert_status same_again(const loaded_model *m, const bert_model *model, bert_error *error) {
  if (m->model == model) return BERT_OK;
  const char *here = bert_describe(m->model)->precision, *asked = bert_describe(model)->precision;
  if (strcmp(here, asked) != 0)
    return error_set(error, BERT_ARGUMENT,
                     "the name \"%s\" is taken by the model from %s in %s, and %s was asked for; "
                     "give another name as the second argument, or bert_unload('%s')",
                     m->name, m->source, here, asked, m->name);
  return error_set(
      error, BERT_ARGUMENT,
      "the name \"%s\" is taken by the model from %s, which is another or was opened "
      "with other options; give another name as the second argument, or bert_unload('%s')",
      m->name, m->source, m->name);
}

/* Opens `source` under `name`, which is not NULL. */
static bert_status load_named(connection *c, const char *source, const char *name,
                              const bert_open_options *open, loaded_model **out,
                              bert_error *error) {
  bert_model *model = NULL;
  bert_status status = bert_open(source, open, &model, error);
  if (status != BERT_OK) return status;
  loaded_model *m = registry_loaded(c, name);
  if (m != NULL) {
    status = same_again(m, model, error);
    bert_close(model);
    if (status == BERT_OK) *out = m;
    return status;
  }
  m = make_loaded(name, source, model);
  if (m == NULL) return error_nomem(error, "loading a model");
  status = give_encoder(c, m, error);
  if (status != BERT_OK) {
    loaded_model_drop(m);
    return status;
  }
  append(c, m);
  *out = m;
  return BERT_OK;
}

bert_status registry_load(connection *c, const char *source, const char *name,
                          const bert_open_options *open, loaded_model **out, bert_error *error) {
  if (source[0] == 0)
    return error_set(error, BERT_ARGUMENT, "the source is empty; it is a directory or a hub id");
  if (name != NULL && name[0] == 0)
    return error_set(error, BERT_ARGUMENT, "the name is empty; leave it out for the default");
  if (name != NULL) return load_named(c, source, name, open, out, error);
  char *made = default_name(source);
  if (made == NULL) return error_nomem(error, "loading a model");
  bert_status status = load_named(c, source, made, open, out, error);
  sqlite3_free(made);
  return status;
}

void registry_close(connection *c, loaded_model *m) {
  loaded_model **link = connection_models(c);
  while (*link != m) link = &(*link)->next;
  *link = m->next;
  m->next = NULL;
  m->is_default = 0;
  connection_forget_pass(c);
  loaded_model_drop(m);
  if (registry_first(c) != NULL) registry_first(c)->is_default = 1;
}

bert_status registry_unload(connection *c, const char *name, bert_error *error) {
  loaded_model *m = registry_loaded(c, name);
  if (m == NULL) return unknown_name(c, name, 1, error);
  registry_close(c, m);
  return BERT_OK;
}

/* ---- The default model ------------------------------------------------- */

/* Where the default model is and what it is called; from sqlite3_malloc64. */
typedef struct place {
  char *source; /* NULL: nowhere */
  char *name;
  const char *origin; /* for errors; static */
} place;

static void place_clear(place *p) {
  sqlite3_free(p->source);
  sqlite3_free(p->name);
}

/* Looks for `below` the folder of the library at `library`; 0 without memory. */
static int look_below(const char *library, const char *below, place *p, sqlite3_str *looked) {
  const char *slash = strrchr(library, '/');
  if (slash == NULL) return 1;
  char *path = sqlite3_mprintf("%.*s/%s", (int)(slash - library), library, below);
  if (path == NULL) return 0;
  char real[PATH_MAX];
  int found = realpath(path, real) != NULL;
  if (found) {
    p->source = sqlite3_mprintf("%s", real);
    p->name = name_behind(path);
  } else
    sqlite3_str_appendf(looked, "%s%s", sqlite3_str_length(looked) > 0 ? ", " : "", path);
  sqlite3_free(path);
  return !found || (p->source != NULL && p->name != NULL);
}

/* The library is looked for as it was loaded and, where that is a link, as it
** lies: an installed link then finds the model beside its target. */
static int look_beside_library(place *p, sqlite3_str *looked) {
  static const char *const below[] = {"models/default", "../models/default",
                                      "../share/bertsql/models/default"};
  const char *as_loaded = library_path();
  char real[PATH_MAX];
  int same = realpath(as_loaded, real) == NULL || strcmp(real, as_loaded) == 0, ok = 1;
  for (size_t i = 0; ok && p->source == NULL && i < sizeof below / sizeof below[0]; i++) {
    ok = look_below(as_loaded, below[i], p, looked);
    if (ok && p->source == NULL && !same) ok = look_below(real, below[i], p, looked);
  }
  return ok;
}

static int look_at_variable(const char *value, place *p) {
  p->origin = "the default model, named by BERTSQL_MODEL";
  p->source = sqlite3_mprintf("%s", value);
  p->name = name_behind(value);
  return p->source != NULL && p->name != NULL;
}

/* Fills *p, to be cleared in any case; `looked` collects what was not there. */
static bert_status find_default(place *p, sqlite3_str *looked, bert_error *error) {
  const char *variable = getenv("BERTSQL_MODEL");
  memset(p, 0, sizeof *p);
  p->origin = "the default model";
  int ok = variable != NULL && variable[0] != 0 ? look_at_variable(variable, p)
                                                : look_beside_library(p, looked);
  if (!ok || sqlite3_str_errcode(looked) != SQLITE_OK)
    return error_nomem(error, "looking for the default model");
  return BERT_OK;
}

static bert_status no_model(sqlite3_str *looked, bert_error *error) {
  const char *list = sqlite3_str_value(looked);
  return error_set(error, BERT_ARGUMENT,
                   "there is no model: call bert_load('directory or hub id'), or set the "
                   "environment variable BERTSQL_MODEL to one, or put one where it is looked for: "
                   "%s",
                   list != NULL ? list : "nowhere, as the library's folder is not known");
}

/* Opens the default model, or with a `name` only if it has that one. *out stays
** NULL when it has not. */
static bert_status open_default(connection *c, const char *name, loaded_model **out,
                                bert_error *error) {
  place p;
  sqlite3_str *looked = sqlite3_str_new(NULL);
  bert_status status = find_default(&p, looked, error);
  if (status == BERT_OK && p.source == NULL && name == NULL) status = no_model(looked, error);
  if (status == BERT_OK && p.source != NULL && (name == NULL || strcmp(name, p.name) == 0)) {
    status = load_named(c, p.source, p.name, NULL, out, error);
    if (status != BERT_OK) error_prefix(error, "%s", p.origin);
  }
  place_clear(&p);
  sqlite3_free(sqlite3_str_finish(looked));
  return status;
}

bert_status registry_try(connection *c, const char *name, loaded_model **out, int *opened,
                         bert_error *error) {
  loaded_model *m = registry_loaded(c, name);
  *opened = 0;
  if (m == NULL) {
    bert_status status = open_default(c, name, &m, error);
    if (status != BERT_OK) return status;
    *opened = m != NULL;
  }
  if (m == NULL) return unknown_name(c, name, 0, error);
  *out = m;
  return BERT_OK;
}

bert_status registry_find(connection *c, const char *name, loaded_model **out, bert_error *error) {
  int opened;
  return registry_try(c, name, out, &opened, error);
}

/* ---- For one statement -------------------------------------------------- */

/* A model that a statement has used, in the order of their first use. */
struct kept_model {
  loaded_model *model; /* held */
  int named;           /* 0: asked for as the default one */
  kept_model *next;
};

void kept_models_free(void *kept) {
  kept_model *k = kept;
  while (k != NULL) {
    kept_model *next = k->next;
    loaded_model_drop(k->model);
    sqlite3_free(k);
    k = next;
  }
}

static int answers_to(const kept_model *k, const char *name) {
  return k->named ? name != NULL && strcmp(k->model->name, name) == 0 : name == NULL;
}

bert_status kept_models_find(connection *c, kept_model **kept, const char *name, loaded_model **out,
                             bert_error *error) {
  while (*kept != NULL && !answers_to(*kept, name)) kept = &(*kept)->next;
  if (*kept == NULL) {
    loaded_model *m;
    bert_status status = registry_find(c, name, &m, error);
    if (status != BERT_OK) return status;
    kept_model *k = sqlite3_malloc64(sizeof *k);
    if (k == NULL) return error_nomem(error, "keeping a model for a statement");
    loaded_model_hold(m);
    *k = (kept_model){m, name != NULL, NULL};
    *kept = k;
  }
  *out = (*kept)->model;
  return BERT_OK;
}

bert_status function_model(sqlite3_context *context, int argc, int index, const char *name,
                           loaded_model **out, bert_error *error) {
  connection *c = function_connection(context);
  if (index >= argc) return registry_find(c, name, out, error);
  kept_model *before = sqlite3_get_auxdata(context, index), *kept = before;
  bert_status status = kept_models_find(c, &kept, name, out, error);
  /* This may free them at once; the registry has the new one still. */
  if (before == NULL && kept != NULL) sqlite3_set_auxdata(context, index, kept, kept_models_free);
  return status;
}
