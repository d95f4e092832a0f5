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

/* The model of that name, or the default one for NULL; NULL and `why` when there is
** none. */
static int find_named(vtab *v, const char *name, loaded_model **out, bert_error *why) {
  *out = NULL;
  bert_status status = registry_find(v->connection, name, out, why);
  if (status == BERT_OK) return SQLITE_OK;
  *out = NULL;
  return status == BERT_NOMEM || status == BERT_INTERRUPTED ? vtab_fail_bert(v, why) : SQLITE_OK;
}

/* Any model of the connection that is the right one, whatever its name; NULL. The
** default model, which opens when it is first asked for, is one of them. */
static int find_by_fingerprint(vtab *v, const char *recorded, loaded_model **out) {
  bert_error why = {BERT_OK, ""};
  loaded_model *m;
  int same = 0;
  int rc = find_named(v, NULL, &m, &why);
  m = registry_first(v->connection);
  for (*out = NULL; rc == SQLITE_OK && m != NULL && *out == NULL; m = m->next) {
    rc = compare(v, m, recorded, &same);
    if (same) *out = m;
  }
  return rc;
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

/* What the table's record says of the model that made its vectors. A table of an
** older version says no precision; it is float32. */
typedef struct recorded_model {
  char *name, *source, *precision;
} recorded_model;

static int read_recorded(vtab *v, recorded_model *r) {
  int rc = config_get_text(v, "model", &r->name);
  if (rc == SQLITE_OK) rc = config_get_text(v, "source", &r->source);
  if (rc == SQLITE_OK) rc = config_get_text(v, "precision", &r->precision);
  return rc;
}

static int refuse_missing(vtab *v, const char *name, const char *source, const char *precision,
                          const bert_error *why) {
  int plain = strcmp(precision, "float32") == 0;
  return vtab_fail(v, SQLITE_ERROR,
                   "it was made with the model %s from %s, which is not loaded here: SELECT "
                   "bert_load('%q', '%q'%s%s%s). (%s)",
                   name, source, source, name, plain ? "" : ", '{\"precision\": \"",
                   plain ? "" : precision, plain ? "" : "\"}'", why->text);
}

/* Why the table cannot embed now; `other` is the model that answered, or NULL. */
static int refuse_model(vtab *v, const loaded_model *other, const bert_error *why) {
  recorded_model r = {NULL, NULL, NULL};
  int rc = read_recorded(v, &r);
  const char *name = r.name != NULL ? r.name : "?", *source = r.source != NULL ? r.source : "?";
  const char *precision = r.precision != NULL ? r.precision : "float32";
  if (rc == SQLITE_OK && other == NULL)
    rc = refuse_missing(v, name, source, precision, why);
  else if (rc == SQLITE_OK)
    rc = vtab_fail(v, SQLITE_ERROR,
                   "it was made with the model %s from %s in %s, and %s from %s in %s gives other "
                   "vectors; load the first one, or make all vectors anew with the second: INSERT "
                   "INTO %s(%s) VALUES('rebuild')",
                   name, source, precision, other->name, other->source,
                   bert_describe(other->model)->precision, v->name, v->name);
  sqlite3_free(r.name);
  sqlite3_free(r.source);
  sqlite3_free(r.precision);
  return rc;
}

static int find_recorded(vtab *v, const char *recorded, loaded_model **out) {
  loaded_model *named;
  bert_error why = {BERT_OK, ""};
  int same = 0;
  int rc = find_named(v, v->declared.model, &named, &why);
  if (rc == SQLITE_OK && named != NULL) rc = compare(v, named, recorded, &same);
  *out = same ? named : NULL;
  if (rc == SQLITE_OK && *out == NULL) rc = find_by_fingerprint(v, recorded, out);
  return rc == SQLITE_OK && *out == NULL ? refuse_model(v, named, &why) : rc;
}

int model_find(vtab *v, int query, bert_embed_options *how) {
  char *recorded = NULL;
  v->model = NULL;
  table_options_for(v, query, how);
  int rc = config_get_text(v, "fingerprint", &recorded);
  if (rc == SQLITE_OK && recorded == NULL)
    rc = vtab_fail(v, SQLITE_CORRUPT_VTAB,
                   "its table %s_config does not say which model made its vectors; make them anew: "
                   "INSERT INTO %s(%s) VALUES('rebuild')",
                   v->name, v->name, v->name);
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

int model_record(vtab *v) {
  bert_error error = {BERT_OK, ""};
  char text[DIGEST_TEXT];
  int dim = 0;
  v->model = NULL;
  if (registry_find(v->connection, v->declared.model, &v->model, &error) != BERT_OK)
    return vtab_fail_bert(v, &error);
  int rc = check_options(v, &dim);
  if (rc == SQLITE_OK) rc = fingerprint(v, v->model, text);
  if (rc == SQLITE_OK) rc = config_set_text(v, "fingerprint", text);
  if (rc == SQLITE_OK) rc = config_set_text(v, "model", v->model->name);
  if (rc == SQLITE_OK) rc = config_set_text(v, "source", v->model->source);
  if (rc == SQLITE_OK)
    rc = config_set_text(v, "precision", bert_describe(v->model->model)->precision);
  if (rc == SQLITE_OK) rc = config_set_int(v, "dim", dim);
  if (rc == SQLITE_OK) v->dim = dim;
  return rc;
}
