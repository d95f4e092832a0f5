/*
** functions_embed.c: bert_embed, bert_similarity, bert_token_count and
** bert_is_truncated; the options of everything that embeds.
**
** They run once a row. What is constant in a statement is therefore read once:
** SQLite keeps it as auxiliary data of the argument, and drops it by itself
** when the argument is not constant.
*/
#include "ext.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* ---- Options ----------------------------------------------------------- */

static const char pooling_choices[] = "cls|mean|max|mean_sqrt_len|weightedmean|lasttoken|pooler";
static const char *const poolings[] = {"cls",          "mean",      "max",   "mean_sqrt_len",
                                       "weightedmean", "lasttoken", "pooler"};

/* What options_parse fills. -1 stands for an option that was not given where 0
** means something else. */
typedef struct raw_settings {
  embed_settings s;
  int normalize, pooling;
} raw_settings;

#define EMBED_FIELD(f) (offsetof(raw_settings, s) + offsetof(embed_settings, f))

static const option_spec embed_options[] = {
    {"prompt", OPTION_TEXT, EMBED_FIELD(embed.prompt), 0, 0, NULL},
    {"kind", OPTION_TEXT, EMBED_FIELD(embed.kind), 0, 0, NULL},
    {"dims", OPTION_INT, EMBED_FIELD(embed.dims), 1, INT_MAX, NULL},
    {"normalize", OPTION_BOOL, offsetof(raw_settings, normalize), 0, 0, NULL},
    {"pooling", OPTION_CHOICE, offsetof(raw_settings, pooling), 0, 0, pooling_choices},
    {"truncate", OPTION_CHOICE, EMBED_FIELD(embed.refuse_long), 0, 0, "end|error"},
    {"max_tokens", OPTION_INT, EMBED_FIELD(embed.max_tokens), 1, INT_MAX, NULL},
    {"model", OPTION_TEXT, EMBED_FIELD(model), 0, 0, NULL}};

bert_status embed_settings_read(const char *function, sqlite3_value *value, embed_settings *out,
                                bert_error *error) {
  raw_settings raw;
  memset(&raw, 0, sizeof raw);
  raw.normalize = raw.pooling = -1;
  bert_status status =
      options_parse(function, value, embed_options, sizeof embed_options / sizeof embed_options[0],
                    &raw, &raw.s.parsed, error);
  memset(out, 0, sizeof *out);
  if (status != BERT_OK) return status;
  if (raw.normalize >= 0) raw.s.embed.normalize = raw.normalize ? 1 : -1;
  if (raw.pooling >= 0) raw.s.embed.pooling = poolings[raw.pooling];
  *out = raw.s;
  if (out->embed.prompt != NULL && out->embed.kind != NULL)
    return error_set(error, BERT_ARGUMENT,
                     "the options \"prompt\" and \"kind\" both say what stands before the text; "
                     "give one of them");
  return BERT_OK;
}

void embed_settings_clear(embed_settings *s) {
  options_free(s->parsed);
  memset(s, 0, sizeof *s);
}

void embed_error_explain(const loaded_model *m, const bert_embed_options *how, bert_error *error) {
  const bert_description *d = bert_describe(m->model);
  char raise[60] = "";
  if (error->status != BERT_TOO_LONG) return;
  if ((how->max_tokens > 0 ? how->max_tokens : d->max_tokens) < d->max_positions)
    sqlite3_snprintf((int)sizeof raise, raise, "raise max_tokens (up to %d), ", d->max_positions);
  error_set(error, BERT_TOO_LONG, "%s; %scut it with bert_chunks, or leave out truncate",
            error->text, raise);
}

/* Settings that a statement and a call own together. */
typedef struct shared_settings {
  int owners;
  int constant; /* 1: came from the statement, so the argument is constant */
  embed_settings s;
  loaded_model *model; /* held; bert_similarity's, NULL until it is found */
} shared_settings;

static void settings_drop(void *user) {
  shared_settings *shared = user;
  if (shared == NULL || --shared->owners > 0) return;
  embed_settings_clear(&shared->s);
  loaded_model_drop(shared->model);
  sqlite3_free(shared);
}

/* Stores the settings in options argument `index`, held for the caller. */
static bert_status settings_get(sqlite3_context *context, const char *function, int argc,
                                sqlite3_value **argv, int index, shared_settings **out,
                                bert_error *error) {
  shared_settings *shared = index < argc ? sqlite3_get_auxdata(context, index) : NULL;
  if (shared != NULL) {
    shared->constant = 1;
    shared->owners++;
    *out = shared;
    return BERT_OK;
  }
  shared = sqlite3_malloc64(sizeof *shared);
  if (shared == NULL) return error_nomem(error, "reading the options");
  memset(shared, 0, sizeof *shared);
  shared->owners = 1;
  shared->constant = index >= argc;
  bert_status status =
      embed_settings_read(function, index < argc ? argv[index] : NULL, &shared->s, error);
  if (status != BERT_OK) {
    settings_drop(shared);
    return status;
  }
  *out = shared;
  if (index >= argc) return BERT_OK;
  shared->owners++; /* the statement, which may drop it at once */
  sqlite3_set_auxdata(context, index, shared, settings_drop);
  return BERT_OK;
}

/* ---- Embedding --------------------------------------------------------- */

/* Embeds texts[count] with the model `m` into *vectors [count, dim], from
** sqlite3_malloc64. */
static bert_status embed_texts(loaded_model *m, const bert_embed_options *how,
                               const bert_text *texts, size_t count, float **vectors, int *dim,
                               bert_error *error) {
  bert_status status = bert_embed_dim(m->model, how, dim, error);
  if (status != BERT_OK) return status;
  *vectors = sqlite3_malloc64(sizeof(float) * (sqlite3_uint64)*dim * count);
  if (*vectors == NULL) return error_nomem(error, "embedding");
  status = bert_embed(m->encoder, texts, count, how, *vectors, NULL, error);
  if (status == BERT_OK) return BERT_OK;
  embed_error_explain(m, how, error);
  sqlite3_free(*vectors);
  *vectors = NULL;
  return status;
}

/* The model may be named by argument and by option, if they agree. */
static bert_status agree(const char *argument, const char *option, const char **model,
                         bert_error *error) {
  *model = argument != NULL ? argument : option;
  if (argument == NULL || option == NULL || strcmp(argument, option) == 0) return BERT_OK;
  return error_set(error, BERT_ARGUMENT,
                   "the model argument is \"%s\" and the option \"model\" is \"%s\"; give one of "
                   "them",
                   argument, option);
}

static bert_status embed(sqlite3_context *context, int argc, sqlite3_value **argv, bert_text text,
                         const embed_settings *s, bert_error *error) {
  const char *argument = NULL, *model;
  loaded_model *m = NULL;
  float *vector = NULL; /* [dim] */
  int dim;
  bert_status status = BERT_OK;
  if (argc > 1)
    status = value_name_only(argv[1],
                             "options are the third argument, as in "
                             "bert_embed(text, NULL, '{\"dims\": 64}')",
                             &argument, error);
  if (status == BERT_OK) status = agree(argument, s->model, &model, error);
  if (status == BERT_OK) status = function_model(context, argc, 1, model, &m, error);
  if (status == BERT_OK) status = embed_texts(m, &s->embed, &text, 1, &vector, &dim, error);
  if (status == BERT_OK) result_vector(context, vector, dim);
  return status;
}

/* The text in `value`; 0 for NULL, and without memory, which is then the
** result. */
static int text_argument(sqlite3_context *context, sqlite3_value *value, bert_text *text) {
  int nomem;
  if (value_text(value, text, &nomem)) return 1;
  if (nomem) sqlite3_result_error_nomem(context);
  return 0;
}

/* bert_embed(text [, model [, options]]) */
static void call_embed(sqlite3_context *context, int argc, sqlite3_value **argv) {
  bert_error error = {0};
  bert_text text;
  shared_settings *shared = NULL;
  if (!text_argument(context, argv[0], &text)) return;
  bert_status status = settings_get(context, "bert_embed", argc, argv, 2, &shared, &error);
  if (status == BERT_OK) status = embed(context, argc, argv, text, &shared->s, &error);
  settings_drop(shared);
  if (status != BERT_OK) result_error(context, "bert_embed", &error);
}

/* ---- Similarity -------------------------------------------------------- */

/* The embedding of a constant text, kept by SQLite with the statement. */
typedef struct constant_embedding {
  loaded_model *model; /* held: the other texts are embedded with it too */
  float vector[];      /* [dim] */
} constant_embedding;

static void constant_free(void *user) {
  constant_embedding *k = user;
  loaded_model_drop(k->model);
  sqlite3_free(k);
}

static void keep_constant(sqlite3_context *context, int index, loaded_model *m,
                          const float *vector /* [dim] */, int dim) {
  size_t bytes = sizeof(float) * (size_t)dim;
  constant_embedding *k = sqlite3_malloc64(sizeof *k + bytes);
  if (k == NULL) return; /* then it is embedded again */
  k->model = m;
  loaded_model_hold(m);
  memcpy(k->vector, vector, bytes);
  sqlite3_set_auxdata(context, index, k, constant_free);
}

static const float *kept_vector(sqlite3_context *context, int index, const loaded_model *m) {
  const constant_embedding *k = sqlite3_get_auxdata(context, index);
  return k != NULL && k->model == m ? k->vector : NULL;
}

/* Finds shared->model, once for a statement where the options or a text is constant.
** (No function_model: the argument it would be kept with has the settings.) */
static bert_status similarity_model(sqlite3_context *context, shared_settings *shared,
                                    bert_error *error) {
  loaded_model *m = shared->model;
  for (int i = 0; i < 2 && m == NULL && shared->constant; i++) {
    const constant_embedding *k = sqlite3_get_auxdata(context, i);
    if (k != NULL) m = k->model;
  }
  bert_status status = BERT_OK;
  if (m == NULL) status = registry_find(function_connection(context), shared->s.model, &m, error);
  if (status != BERT_OK || shared->model != NULL) return status;
  loaded_model_hold(m);
  shared->model = m;
  return BERT_OK;
}

/* Embeds those of the two texts that are not known yet. */
static bert_status similarity(sqlite3_context *context, const bert_text *texts,
                              const shared_settings *shared, bert_error *error) {
  loaded_model *m = shared->model;
  const float *sides[2] = {NULL, NULL}; /* [dim] each */
  bert_text missing[2];
  size_t count = 0;
  float *made = NULL; /* [count, dim] */
  int dim = 0, fresh[2];
  for (int i = 0; i < 2; i++) {
    if (shared->constant) sides[i] = kept_vector(context, i, m);
    fresh[i] = sides[i] == NULL;
    if (fresh[i]) missing[count++] = texts[i];
  }
  bert_status status = bert_embed_dim(m->model, &shared->s.embed, &dim, error);
  if (status == BERT_OK && count > 0)
    status = embed_texts(m, &shared->s.embed, missing, count, &made, &dim, error);
  if (status != BERT_OK) return status;
  if (fresh[0]) sides[0] = made;
  if (fresh[1]) sides[1] = made + (count - 1) * (size_t)dim;
  double cosine = bert_cosine(sides[0], sides[1], (size_t)dim);
  if (!isnan(cosine)) sqlite3_result_double(context, cosine);
  for (int i = 0; i < 2; i++)
    if (fresh[i] && shared->constant) keep_constant(context, i, m, sides[i], dim);
  sqlite3_free(made);
  return BERT_OK;
}

/* bert_similarity(text_a, text_b [, options]): the cosine of the embeddings. */
static void call_similarity(sqlite3_context *context, int argc, sqlite3_value **argv) {
  bert_error error = {0};
  bert_text texts[2];
  shared_settings *shared = NULL;
  for (int i = 0; i < 2; i++)
    if (!text_argument(context, argv[i], &texts[i])) return;
  bert_status status = settings_get(context, "bert_similarity", argc, argv, 2, &shared, &error);
  if (status == BERT_OK) status = similarity_model(context, shared, &error);
  if (status == BERT_OK) status = similarity(context, texts, shared, &error);
  settings_drop(shared);
  if (status != BERT_OK) result_error(context, "bert_similarity", &error);
}

/* ---- Counting ---------------------------------------------------------- */

/* Tokenizes text argument 0 with the model of argument 1; *tokens stays NULL
** for a NULL text and after an error, which is then the result. */
static void tokenize(sqlite3_context *context, const char *function, int argc, sqlite3_value **argv,
                     int only_used, bert_tokens **tokens) {
  bert_error error = {0};
  bert_text text;
  const char *model = NULL;
  loaded_model *m = NULL;
  bert_token_options how = {.only_used = only_used};
  *tokens = NULL;
  if (!text_argument(context, argv[0], &text)) return;
  bert_status status = BERT_OK;
  if (argc > 1)
    status = value_name_only(argv[1], "this function takes the name of a model and no options",
                             &model, &error);
  if (status == BERT_OK) status = function_model(context, argc, 1, model, &m, &error);
  if (status == BERT_OK) status = bert_tokenize(m->model, text, NULL, &how, tokens, &error);
  if (status != BERT_OK) result_error(context, function, &error);
}

/* bert_token_count(text [, model]): special tokens included, nothing cut. */
static void call_token_count(sqlite3_context *context, int argc, sqlite3_value **argv) {
  bert_tokens *tokens;
  tokenize(context, "bert_token_count", argc, argv, 0, &tokens);
  if (tokens != NULL) sqlite3_result_int64(context, (sqlite3_int64)tokens->count);
  bert_tokens_free(tokens);
}

/* bert_is_truncated(text [, model]): need not look far beyond the limit. */
static void call_is_truncated(sqlite3_context *context, int argc, sqlite3_value **argv) {
  bert_tokens *tokens;
  tokenize(context, "bert_is_truncated", argc, argv, 1, &tokens);
  if (tokens != NULL) sqlite3_result_int(context, tokens->truncated);
  bert_tokens_free(tokens);
}

enum { PURE = SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS };

const function_entry functions_embed[] = {{"bert_embed", 1, 3, PURE, call_embed, 1},
                                          {"bert_similarity", 2, 3, PURE, call_similarity, 0},
                                          {"bert_token_count", 1, 2, PURE, call_token_count, 0},
                                          {"bert_is_truncated", 1, 2, PURE, call_is_truncated, 0},
                                          {NULL, 0, 0, 0, NULL, 0}};
