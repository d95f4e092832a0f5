/*
** model.c: the model that a table embeds with.
**
** Vectors of two models mean nothing to each other, so a table records what its
** vectors were made with, as a digest, and embeds with nothing else: whatever the
** model is called on this connection, and wherever it lies.
*/
#include "vtab.h"

#include <string.h>

/* ---- Fingerprints ------------------------------------------------------ */

/* Of the model and of what the table asks of it. */
static int fingerprint(vtab *v, const loaded_model *m, char text[DIGEST_TEXT]) {
  unsigned char bytes[DIGEST_BYTES];
  bert_error error = {BERT_OK, ""};
  if (bert_fingerprint(m->model, bytes, &error) != BERT_OK) return vtab_fail_bert(v, &error);
  digest_text(bytes, text);
  const declaration *d = &v->declared;
  char *all =
      sqlite3_mprintf("%s %d %d %d %d %d%Q %d%Q", text, d->dims, d->max_tokens, d->chunk_tokens,
                      d->overlap, d->kind != NULL, d->kind, d->prompt != NULL, d->prompt);
  if (all == NULL) return SQLITE_NOMEM;
  digest_bytes(all, strlen(all), bytes);
  digest_text(bytes, text);
  sqlite3_free(all);
  return SQLITE_OK;
}

/* ---- Options ----------------------------------------------------------- */

static void table_options_for(const vtab *v, int query, bert_embed_options *how) {
  const declaration *d = &v->declared;
  memset(how, 0, sizeof *how);
  how->dims = d->dims;
  how->max_tokens = d->max_tokens;
  if (query) {
    how->kind = "query";
  } else {
    how->kind = d->kind;
    how->prompt = d->prompt;
  }
}

/* ---- Finding ----------------------------------------------------------- */

/* 1 in *same when `m` makes the vectors that `recorded` names. */
static int compare(vtab *v, const loaded_model *m, const char *recorded, int *same) {
  char text[DIGEST_TEXT];
  int rc = fingerprint(v, m, text);
  *same = rc == SQLITE_OK && strcmp(text, recorded) == 0;
  return rc;
}

/* The model of that name, or the default one for NULL, which *opened says was opened for
** this; NULL and `why` when there is none. */
static int find_named(vtab *v, const char *name, loaded_model **out, int *opened, bert_error *why) {
  *out = NULL;
  bert_status status = registry_try(v->connection, name, out, opened, why);
  if (status == BERT_OK) return SQLITE_OK;
  *out = NULL;
  return status == BERT_NOMEM || status == BERT_INTERRUPTED ? vtab_fail_bert(v, why) : SQLITE_OK;
}

/* The right one of the models that are loaded, whatever its name; NULL. `named`, which
** answers to the table's, is asked first. */
static int find_loaded(vtab *v, loaded_model *named, const char *recorded, loaded_model **out) {
  int rc = SQLITE_OK, same = 0;
  *out = NULL;
  if (named != NULL) rc = compare(v, named, recorded, &same);
  if (same) *out = named;
  for (loaded_model *m = registry_first(v->connection); m != NULL && *out == NULL; m = m->next) {
    if (rc == SQLITE_OK) rc = compare(v, m, recorded, &same);
    if (rc != SQLITE_OK) break;
    if (same) *out = m;
  }
  return rc;
}

/* What the table's record says of the model that made its vectors. */
typedef struct recorded_model {
  char *name, *source, *precision; /* NULL: it does not say */
} recorded_model;

static void recorded_clear(recorded_model *r) {
  sqlite3_free(r->name);
  sqlite3_free(r->source);
  sqlite3_free(r->precision);
}

int model_recorded_precision(vtab *v, char **precision) {
  char *name = NULL;
  int rc = config_get_text(v, "precision", precision);
  if (rc != SQLITE_OK || *precision != NULL) return rc;
  rc = config_get_text(v, "model", &name);
  if (rc == SQLITE_OK && name != NULL) *precision = sqlite3_mprintf("float32");
  if (rc == SQLITE_OK && name != NULL && *precision == NULL) rc = SQLITE_NOMEM;
  sqlite3_free(name);
  return rc;
}

static int read_recorded(vtab *v, recorded_model *r) {
  int rc = config_get_text(v, "model", &r->name);
  if (rc == SQLITE_OK) rc = config_get_text(v, "source", &r->source);
  return rc == SQLITE_OK ? model_recorded_precision(v, &r->precision) : rc;
}

static int is_plain(const char *precision) {
  return precision == NULL || strcmp(precision, "float32") == 0;
}

/* Opens the default model, if that has the table's name or nothing is loaded, and closes
** it again when it is not the right one: a search that fails leaves the connection
** as it was. It opens in float32, so that a table of another precision need not try. */
static int try_default(vtab *v, const char *recorded, loaded_model **out, bert_error *why) {
  bert_error ignored = {BERT_OK, ""};
  loaded_model *m;
  int opened = 0, same = 0;
  int rc = find_named(v, v->declared.model, &m, &opened, why);
  if (rc == SQLITE_OK && m == NULL && registry_first(v->connection) == NULL)
    rc = find_named(v, NULL, &m, &opened, &ignored);
  if (rc == SQLITE_OK && m != NULL) rc = compare(v, m, recorded, &same);
  if (same) *out = m;
  if (same || m == NULL) return rc;
  error_set(why, BERT_ARGUMENT, "the default model, %s in float32, gives other vectors", m->place);
  if (opened) registry_close(v->connection, m);
  return rc;
}

/* ---- What to do without it ----------------------------------------------- */

/* A name for the model that no other has on this connection, and that bert_load does not
** take for options. */
static char *free_name(vtab *v, const recorded_model *r) {
  const char *usual = r->name[0] == '{' ? "model" : r->name;
  char *name = sqlite3_mprintf("%s", usual);
  for (int i = 1; name != NULL && registry_loaded(v->connection, name) != NULL; i++) {
    sqlite3_free(name);
    name = i == 1 ? sqlite3_mprintf("%s-%s", usual, r->precision)
                  : sqlite3_mprintf("%s-%s-%d", usual, r->precision, i);
  }
  return name;
}

/* The statement that loads the model, to be run as it stands; NULL without memory. */
static char *load_statement(vtab *v, const recorded_model *r) {
  char *sql = NULL, *name = free_name(v, r);
  if (name != NULL && is_plain(r->precision))
    sql = sqlite3_mprintf("SELECT bert_load(%Q, %Q)", r->source, name);
  else if (name != NULL)
    sql = sqlite3_mprintf("SELECT bert_load(%Q, %Q, '{\"precision\": \"%q\"}')", r->source, name,
                          r->precision);
  sqlite3_free(name);
  return sql;
}

/* The table's record lacks what it is to say. */
static int refuse_record(vtab *v) {
  return vtab_fail(v, SQLITE_CORRUPT_VTAB,
                   "its table %s_config does not say which model made its vectors; make them anew: "
                   "INSERT INTO %s(%s) VALUES('rebuild')",
                   v->name, v->name, v->name);
}

/* The model that its source and precision give now, if that is loaded and so is known to
** be another one: a hub id stands for what was fetched last, a directory for what lies in
** it. */
static const loaded_model *changed(vtab *v, const recorded_model *r) {
  const loaded_model *m = registry_first(v->connection);
  while (m != NULL && (strcmp(m->place, r->source) != 0 ||
                       strcmp(bert_describe(m->model)->precision, r->precision) != 0))
    m = m->next;
  return m;
}

static int refuse_changed(vtab *v, const recorded_model *r, const loaded_model *now) {
  return vtab_fail(v, SQLITE_ERROR,
                   "it was made with the model %s from %s in %s, but what is there now, loaded as "
                   "%s, gives other vectors; load a copy of the first one, or make all vectors "
                   "anew: INSERT INTO %s(%s) VALUES('rebuild')",
                   r->name, r->source, r->precision, now->name, v->name, v->name);
}

/* `other` is the model that answered in its place, or NULL. */
static int refuse(vtab *v, const recorded_model *r, const char *load, const loaded_model *other,
                  const bert_error *why) {
  if (other == NULL)
    return vtab_fail(v, SQLITE_ERROR,
                     "it was made with the model %s from %s in %s, which is not loaded here: %s. "
                     "(%s)",
                     r->name, r->source, r->precision, load, why->text);
  return vtab_fail(v, SQLITE_ERROR,
                   "it was made with the model %s from %s in %s, and %s from %s in %s gives other "
                   "vectors; load the first one: %s, or make all vectors anew with the second: "
                   "INSERT INTO %s(%s) VALUES('rebuild')",
                   r->name, r->source, r->precision, other->name, other->place,
                   bert_describe(other->model)->precision, load, v->name, v->name);
}

/* Why the table cannot embed now. */
static int refuse_model(vtab *v, const loaded_model *other, const bert_error *why) {
  recorded_model r = {NULL, NULL, NULL};
  int rc = read_recorded(v, &r);
  if (rc == SQLITE_OK && (r.name == NULL || r.source == NULL))
    rc = refuse_record(v);
  else if (rc == SQLITE_OK) {
    const loaded_model *now = changed(v, &r);
    char *load = now == NULL ? load_statement(v, &r) : NULL;
    if (now != NULL)
      rc = refuse_changed(v, &r, now);
    else
      rc = load != NULL ? refuse(v, &r, load, other, why) : SQLITE_NOMEM;
    sqlite3_free(load);
  }
  recorded_clear(&r);
  return rc;
}

static int find_recorded(vtab *v, const char *recorded, loaded_model **out) {
  loaded_model *named = registry_loaded(v->connection, v->declared.model);
  bert_error why = {BERT_OK, ""};
  char *precision = NULL;
  int rc = find_loaded(v, named, recorded, out);
  if (rc != SQLITE_OK || *out != NULL) return rc;
  rc = model_recorded_precision(v, &precision);
  error_set(&why, BERT_ARGUMENT, "the default model opens in float32");
  if (rc == SQLITE_OK && named == NULL && is_plain(precision))
    rc = try_default(v, recorded, out, &why);
  sqlite3_free(precision);
  return rc == SQLITE_OK && *out == NULL ? refuse_model(v, named, &why) : rc;
}

int model_find(vtab *v, int query, bert_embed_options *how) {
  char *recorded = NULL;
  v->model = NULL;
  table_options_for(v, query, how);
  int rc = config_get_text(v, "fingerprint", &recorded);
  if (rc == SQLITE_OK && recorded == NULL) rc = refuse_record(v);
  if (rc == SQLITE_OK) rc = find_recorded(v, recorded, &v->model);
  sqlite3_free(recorded);
  return rc;
}

/* ---- Recording --------------------------------------------------------- */

/* Chunks must be what the model can read whole. */
static int check_chunks(vtab *v) {
  const declaration *d = &v->declared;
  bert_error error = {BERT_OK, ""};
  bert_text empty = {"", 0};
  bert_chunk *chunks = NULL;
  size_t count = 0;
  int limit = d->max_tokens > 0 ? d->max_tokens : bert_describe(v->model->model)->max_tokens;
  if (d->chunk_tokens == 0) return SQLITE_OK;
  if (bert_split(v->model->model, empty, d->chunk_tokens, d->overlap, &chunks, &count, &error) !=
      BERT_OK) {
    error_prefix(&error, "options chunk_tokens (here max_tokens) and overlap");
    return vtab_fail_bert(v, &error);
  }
  bert_chunks_free(chunks);
  if (d->chunk_tokens <= limit) return SQLITE_OK;
  return vtab_fail(v, SQLITE_ERROR,
                   "option chunk_tokens is %d, but the token limit is %d and would cut every chunk "
                   "short; take at most that, or raise max_tokens",
                   d->chunk_tokens, limit);
}

static int check_options(vtab *v, int *dim) {
  bert_embed_options how;
  bert_error error = {BERT_OK, ""};
  table_options_for(v, 0, &how);
  if (bert_embed_dim(v->model->model, &how, dim, &error) != BERT_OK)
    return vtab_fail_bert(v, &error);
  return check_chunks(v);
}

/* Records v->model. */
static int record(vtab *v) {
  char text[DIGEST_TEXT];
  int dim = 0;
  int rc = check_options(v, &dim);
  if (rc == SQLITE_OK) rc = fingerprint(v, v->model, text);
  if (rc == SQLITE_OK) rc = config_set_text(v, "fingerprint", text);
  if (rc == SQLITE_OK) rc = config_set_text(v, "model", v->model->name);
  if (rc == SQLITE_OK) rc = config_set_text(v, "source", v->model->place);
  if (rc == SQLITE_OK)
    rc = config_set_text(v, "precision", bert_describe(v->model->model)->precision);
  if (rc == SQLITE_OK) rc = config_set_int(v, "dim", dim);
  if (rc == SQLITE_OK) v->dim = dim;
  return rc;
}

/* Somebody's trigger on the shadow tables may unload the model in between. */
int model_record(vtab *v) {
  bert_error error = {BERT_OK, ""};
  loaded_model *m;
  if (registry_find(v->connection, v->declared.model, &m, &error) != BERT_OK)
    return vtab_fail_bert(v, &error);
  loaded_model_hold(m);
  v->model = m;
  int rc = record(v);
  v->model = NULL;
  loaded_model_drop(m);
  return rc;
}
