/*
** modules.c: modules.json of sentence-transformers and the modules it names.
**
** The modules run in the order of the file, as sentence-transformers 6.2.0 does
** it: its idx and name are labels. Accepted is a Transformer, then a Pooling,
** then any number of Dense, LayerNorm, Normalize and Dropout (which does nothing outside
** training). Everything else is refused by name, and so is every setting of
** these that would change the result and is not computed here.
*/
#include <string.h>

#include "files.h"

/* ---- Pooling ----------------------------------------------------------- */

static const char *const pooling_names[] = {"cls",          "mean",      "max",   "mean_sqrt_len",
                                            "weightedmean", "lasttoken", "pooler"};

const char *pooling_name(pooling kind) {
  return pooling_names[kind];
}

int pooling_from_name(const char *name) {
  for (int i = 0; i < (int)(sizeof pooling_names / sizeof *pooling_names); i++)
    if (word_is(name, pooling_names[i])) return i;
  return -1;
}

typedef struct pooling_entry {
  const char *flag; /* key of the older layout, with true or false */
  const char *mode; /* value of "pooling_mode" in the newer one */
  pooling kind;
} pooling_entry;

/* In the order in which Pooling.forward concatenates what the flags ask for. */
static const pooling_entry pooling_entries[] = {
    {"pooling_mode_cls_token", "cls", POOLING_CLS},
    {"pooling_mode_max_tokens", "max", POOLING_MAX},
    {"pooling_mode_mean_tokens", "mean", POOLING_MEAN},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", POOLING_MEAN_SQRT_LEN},
    {"pooling_mode_weightedmean_tokens", "weightedmean", POOLING_WEIGHTED_MEAN},
    {"pooling_mode_lasttoken", "lasttoken", POOLING_LAST_TOKEN},
};
enum {
  POOLING_ENTRIES = sizeof pooling_entries / sizeof *pooling_entries,
  MODULE_LIMIT = 100,
  WIDTH_LIMIT = 1 << 20
};

static bert_status add_pooling(sentence_config *c, const pooling_entry *e, bert_error *error) {
  if (c->pooling_count == POOLING_LIMIT)
    return error_set(error, BERT_UNSUPPORTED, "more than %d pooling modes at once", POOLING_LIMIT);
  c->poolings[c->pooling_count++] = e->kind;
  return BERT_OK;
}

static bert_status add_mode(sentence_config *c, const json_value *mode, bert_error *error) {
  if (mode->type != JSON_STRING)
    return error_set(error, BERT_INVALID, "\"pooling_mode\" must be a name or an array of names");
  for (int i = 0; i < POOLING_ENTRIES; i++)
    if (json_is(mode, pooling_entries[i].mode)) return add_pooling(c, &pooling_entries[i], error);
  return error_set(error, BERT_UNSUPPORTED, "pooling mode \"%s\" is not supported",
                   error_quote(mode->string).text);
}

/* "pooling_mode", a name or an array of names; then the flags do not count. */
static bert_status read_modes(sentence_config *c, const json_value *modes, bert_error *error) {
  if (modes->type != JSON_ARRAY) return add_mode(c, modes, error);
  if (modes->size == 0) return error_set(error, BERT_INVALID, "\"pooling_mode\" names no mode");
  bert_status status = BERT_OK;
  for (const json_value *v = modes->first; v != NULL && status == BERT_OK; v = v->next)
    status = add_mode(c, v, error);
  return status;
}

/* A flag that is set and not known asks for a pooling that is not computed. */
static bert_status refuse_other_flags(const json_value *root, bert_error *error) {
  for (const json_value *v = root->first; v != NULL; v = v->next) {
    int known = strncmp(v->key, "pooling_mode_", 13) != 0 || v->type != JSON_TRUE;
    for (int i = 0; i < POOLING_ENTRIES && !known; i++)
      known = strcmp(v->key, pooling_entries[i].flag) == 0;
    if (!known)
      return error_set(error, BERT_UNSUPPORTED, "\"%s\" is not supported",
                       error_quote(v->key).text);
  }
  return BERT_OK;
}

static bert_status read_flags(sentence_config *c, const json_value *root, bert_error *error) {
  bert_status status = BERT_OK;
  for (int i = 0; i < POOLING_ENTRIES && status == BERT_OK; i++) {
    int set = 0;
    status = json_get_bool(root, pooling_entries[i].flag, &set, error);
    if (status == BERT_OK && set) status = add_pooling(c, &pooling_entries[i], error);
  }
  if (status == BERT_OK) status = refuse_other_flags(root, error);
  if (status == BERT_OK && c->pooling_count == 0) c->poolings[c->pooling_count++] = POOLING_MEAN;
  return status;
}

static bert_status read_pooling(sentence_config *c, const json_value *root, bert_error *error) {
  const json_value *modes = json_get(root, "pooling_mode");
  bert_status status = modes != NULL ? read_modes(c, modes, error) : read_flags(c, root, error);
  int64_t width = 0;
  if (status == BERT_OK)
    status = json_get_int(root, "word_embedding_dimension", 1, WIDTH_LIMIT, &width, error);
  if (status == BERT_OK)
    status = json_get_int(root, "embedding_dimension", 1, WIDTH_LIMIT, &width, error);
  if (status == BERT_OK) status = json_get_bool(root, "include_prompt", &c->include_prompt, error);
  c->pooling_width = (int)width;
  return status;
}

/* ---- Dense and Normalize ----------------------------------------------- */

typedef struct torch_activation {
  const char *name; /* last component of the class */
  activation kind;
} torch_activation;

static const torch_activation torch_activations[] = {
    {"Tanh", ACTIVATION_TANH}, {"Identity", ACTIVATION_IDENTITY}, {"ReLU", ACTIVATION_RELU},
    {"GELU", ACTIVATION_GELU}, {"SiLU", ACTIVATION_SILU},
};

static const char *last_component(const char *dotted) {
  const char *dot = strrchr(dotted, '.');
  return dot == NULL ? dotted : dot + 1;
}

/* Tanh when the key is absent, as the class has it. */
static bert_status read_torch_activation(const json_value *root, activation *out,
                                         bert_error *error) {
  const json_value *v = json_get(root, "activation_function");
  *out = ACTIVATION_TANH;
  if (v == NULL) return BERT_OK;
  if (v->type != JSON_STRING)
    return error_set(error, BERT_INVALID, "\"activation_function\" must be a string, not %s",
                     json_type_name(v->type));
  int torch = strncmp(v->string, "torch.nn.", 9) == 0;
  for (size_t i = 0; torch && i < sizeof torch_activations / sizeof *torch_activations; i++) {
    if (strcmp(last_component(v->string), torch_activations[i].name) != 0) continue;
    *out = torch_activations[i].kind;
    return BERT_OK;
  }
  return error_set(error, BERT_UNSUPPORTED, "\"activation_function\" \"%s\" is not supported",
                   error_quote(v->string).text);
}

/* A module may take from and give to other places than the embedding. */
static bert_status check_feature(const json_value *root, const char *key, bert_error *error) {
  const char *name = "sentence_embedding";
  bert_status status = json_get_string(root, key, &name, error);
  if (status != BERT_OK || strcmp(name, "sentence_embedding") == 0) return status;
  return error_set(error, BERT_UNSUPPORTED,
                   "\"%s\" \"%s\" is not supported; \"sentence_embedding\" is", key,
                   error_quote(name).text);
}

static bert_status check_features(const json_value *root, bert_error *error) {
  bert_status status = check_feature(root, "module_input_name", error);
  return status == BERT_OK ? check_feature(root, "module_output_name", error) : status;
}

static bert_status read_dense(const json_value *root, module *m, bert_error *error) {
  int64_t in = 0, out = 0;
  int residual = 0;
  m->has_bias = 1;
  bert_status status = check_features(root, error);
  if (status == BERT_OK) status = json_get_int(root, "in_features", 1, WIDTH_LIMIT, &in, error);
  if (status == BERT_OK) status = json_get_int(root, "out_features", 1, WIDTH_LIMIT, &out, error);
  if (status == BERT_OK) status = json_get_bool(root, "bias", &m->has_bias, error);
  if (status == BERT_OK) status = json_get_bool(root, "use_residual", &residual, error);
  if (status == BERT_OK) status = read_torch_activation(root, &m->activation, error);
  if (status != BERT_OK) return status;
  if (in == 0 || out == 0)
    return error_set(error, BERT_INVALID, "\"%s\" is missing",
                     in == 0 ? "in_features" : "out_features");
  if (residual) return error_set(error, BERT_UNSUPPORTED, "\"use_residual\" is not supported");
  m->in = (int)in;
  m->out = (int)out;
  return BERT_OK;
}

/* ---- The list ---------------------------------------------------------- */

static module *add_module(sentence_config *c, module_type type, const char *directory) {
  size_t room = (size_t)c->module_count;
  if (!memory_grow((void **)&c->modules, (size_t)c->module_count, &room, sizeof(module)))
    return NULL;
  module m = {0};
  m.type = type;
  m.directory = memory_copy_text(directory, strlen(directory));
  if (m.directory == NULL) return NULL;
  c->modules[c->module_count] = m;
  return &c->modules[c->module_count++];
}

static bert_status load_transformer(sentence_config *c, const char *directory, const char *path,
                                    bert_error *error) {
  (void)directory;
  c->transformer_path = memory_copy_text(path, strlen(path));
  return c->transformer_path == NULL ? error_nomem(error, "reading modules.json") : BERT_OK;
}

static bert_status load_pooling(sentence_config *c, const char *directory, const char *path,
                                bert_error *error) {
  (void)path;
  json_document *document = NULL;
  bert_status status = file_read_json(directory, "config.json", 0, JSON_OBJECT, &document, error);
  if (status != BERT_OK) return status;
  status = read_pooling(c, json_root(document), error);
  json_free(document);
  if (status != BERT_OK) error_prefix(error, "%s/config.json", directory);
  return status;
}

/* A module that `read` reads from its config.json. */
static bert_status load_with(sentence_config *c, module_type type,
                             bert_status (*read)(const json_value *, module *, bert_error *),
                             const char *directory, bert_error *error) {
  json_document *document = NULL;
  bert_status status = file_read_json(directory, "config.json", 0, JSON_OBJECT, &document, error);
  if (status != BERT_OK) return status;
  module *m = add_module(c, type, directory);
  status =
      m == NULL ? error_nomem(error, "reading modules.json") : read(json_root(document), m, error);
  json_free(document);
  if (status != BERT_OK) error_prefix(error, "%s/config.json", directory);
  return status;
}

static bert_status load_dense(sentence_config *c, const char *directory, const char *path,
                              bert_error *error) {
  (void)path;
  return load_with(c, MODULE_DENSE, read_dense, directory, error);
}

static bert_status read_layer_norm(const json_value *root, module *m, bert_error *error) {
  int64_t width = 0;
  bert_status status = check_features(root, error);
  if (status == BERT_OK) status = json_get_int(root, "dimension", 1, WIDTH_LIMIT, &width, error);
  if (status == BERT_OK && width == 0)
    status = error_set(error, BERT_INVALID, "\"dimension\" is missing");
  m->in = m->out = (int)width;
  return status;
}

static bert_status load_layer_norm(sentence_config *c, const char *directory, const char *path,
                                   bert_error *error) {
  (void)path;
  return load_with(c, MODULE_LAYER_NORM, read_layer_norm, directory, error);
}

/* Most have no config.json, and git keeps no empty directory for them. */
static bert_status load_normalize(sentence_config *c, const char *directory, const char *path,
                                  bert_error *error) {
  /* With the path "" the file would be the transformer's. */
  json_document *document = NULL;
  bert_status status = BERT_OK;
  if (path[0] != '\0')
    status = file_read_json(directory, "config.json", 1, JSON_OBJECT, &document, error);
  if (status == BERT_OK && document != NULL) {
    status = check_features(json_root(document), error);
    if (status != BERT_OK) error_prefix(error, "%s/config.json", directory);
  }
  json_free(document);
  if (status != BERT_OK) return status;
  return add_module(c, MODULE_NORMALIZE, directory) == NULL
             ? error_nomem(error, "reading modules.json")
             : BERT_OK;
}

static bert_status load_nothing(sentence_config *c, const char *directory, const char *path,
                                bert_error *error) {
  (void)c, (void)directory, (void)path, (void)error;
  return BERT_OK;
}

typedef struct module_entry {
  const char *name; /* last component of the class */
  int stage;        /* 0: the first module, 1: the second, 2: after them */
  bert_status (*load)(sentence_config *c, const char *directory, const char *path,
                      bert_error *error);
} module_entry;

static const module_entry module_entries[] = {
    {"Transformer", 0, load_transformer},
    {"Pooling", 1, load_pooling},
    {"Dense", 2, load_dense},
    {"Normalize", 2, load_normalize},
    {"Dropout", 2, load_nothing},
    {"LayerNorm", 2, load_layer_norm},
};

/* Classes outside the package are code that a repository brings along. */
static const module_entry *find_module(const char *type) {
  if (strncmp(type, "sentence_transformers.", 22) != 0) return NULL;
  for (size_t i = 0; i < sizeof module_entries / sizeof *module_entries; i++)
    if (strcmp(last_component(type), module_entries[i].name) == 0) return &module_entries[i];
  return NULL;
}

/* A path that stays inside the directory. */
static int path_inside(const char *path) {
  if (path[0] == '/' || strchr(path, '\\') != NULL) return 0;
  for (const char *at = path; at != NULL; at = strchr(at, '/')) {
    if (*at == '/') at++;
    if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0')) return 0;
  }
  return 1;
}

/* Module number `number` of the list. */
static bert_status load_module(sentence_config *c, const char *directory, const json_value *entry,
                               int number, bert_error *error) {
  const char *type = NULL, *path = NULL;
  bert_status status = json_get_string(entry, "type", &type, error);
  if (status == BERT_OK) status = json_get_string(entry, "path", &path, error);
  if (status != BERT_OK) return status;
  if (type == NULL || path == NULL)
    return error_set(error, BERT_INVALID, "it must be an object with \"type\" and \"path\"");
  const module_entry *m = find_module(type);
  if (m == NULL)
    return error_set(error, BERT_UNSUPPORTED, "the module \"%s\" is not supported",
                     error_quote(type).text);
  if (m->stage != (number < 2 ? number : 2))
    return error_set(error, BERT_UNSUPPORTED,
                     "the module \"%s\" is not supported in this place: "
                     "a Transformer, a Pooling and then others are",
                     error_quote(type).text);
  if (!path_inside(path))
    return error_set(error, BERT_INVALID, "the path \"%s\" leads out of the model's directory",
                     error_quote(path).text);
  char *place = path_join(directory, path);
  if (place == NULL) return error_nomem(error, "reading modules.json");
  status = m->load(c, place, path, error);
  memory_free(place);
  return status;
}

static bert_status load_modules(sentence_config *c, const char *directory, const json_value *list,
                                bert_error *error) {
  int number = 0;
  if (c->cross && list->size != 1)
    return error_set(error, BERT_UNSUPPORTED,
                     "%zu modules of a cross-encoder; there must be a Transformer alone",
                     list->size);
  if (!c->cross && (list->size < 2 || list->size > MODULE_LIMIT))
    return error_set(error, BERT_UNSUPPORTED,
                     "%zu modules; there must be a Transformer, a Pooling "
                     "and at most %d in all",
                     list->size, MODULE_LIMIT);
  for (const json_value *entry = list->first; entry != NULL; entry = entry->next, number++) {
    bert_status status = load_module(c, directory, entry, number, error);
    if (status == BERT_OK) continue;
    error_prefix(error, "module %d", number);
    return status;
  }
  return BERT_OK;
}

/* Each Dense and LayerNorm takes what the step before gives. */
static bert_status check_widths(const sentence_config *c, bert_error *error) {
  int width = c->pooling_width * c->pooling_count;
  for (int i = 0; i < c->module_count; i++) {
    const module *m = &c->modules[i];
    if (m->type == MODULE_NORMALIZE) continue;
    if (width != 0 && m->in != width)
      return error_set(error, BERT_INVALID,
                       "%s takes %d numbers (\"%s\"), but the module before gives %d", m->directory,
                       m->in, m->type == MODULE_DENSE ? "in_features" : "dimension", width);
    width = m->out;
  }
  return BERT_OK;
}

bert_status modules_read(const char *directory, sentence_config *c, bert_error *error) {
  json_document *document = NULL;
  bert_status status = file_read_json(directory, "modules.json", 1, JSON_ARRAY, &document, error);
  if (status != BERT_OK || document == NULL) return status;
  c->present = 1;
  status = load_modules(c, directory, json_root(document), error);
  if (status == BERT_OK) status = check_widths(c, error);
  json_free(document);
  if (status != BERT_OK) error_prefix(error, "%s/modules.json", directory);
  return status;
}
