/*
** config_families.c: the keys, defaults and refusals of each model family.
**
** Defaults are those of the configuration classes of transformers 5.24.0. The
** ranges are far beyond any model and keep products of sizes within 64 bits. What
** a family has beside sizes is read by its finish function.
*/
#include <stdio.h>
#include <string.h>

#include "files.h"

enum { MOST_POSITIONS = 1000000 };

/* ---- Positions --------------------------------------------------------- */

/* As many positions as the table has rows. */
static void table_positions(model_config *c) {
  c->position_rows = c->positions;
}

/* RoBERTa counts from behind the padding token's id, since fairseq kept a row for
** that; a padding token in the text takes that row and no position. */
static bert_status positions_after(model_config *c, int pad, bert_error *error) {
  table_positions(c);
  c->first_position = pad + 1;
  c->uncounted_token = pad;
  c->positions = c->position_rows - c->first_position;
  if (c->positions > 0) return BERT_OK;
  return error_set(error, BERT_INVALID,
                   "\"max_position_embeddings\" %d leaves no position, since the first is %d, one "
                   "after the padding token's id",
                   c->position_rows, c->first_position);
}

/* An object, or NULL when it is absent or null. */
static bert_status get_object(const json_value *root, const char *key, const json_value **out,
                              bert_error *error) {
  *out = json_get(root, key);
  if (*out == NULL || (*out)->type == JSON_OBJECT) return BERT_OK;
  if ((*out)->type != JSON_NULL)
    return error_set(error, BERT_INVALID, "\"%s\" must be an object, not %s", key,
                     json_type_name((*out)->type));
  *out = NULL;
  return BERT_OK;
}

static bert_status read_theta(const json_value *object, const char *key, double *theta,
                              bert_error *error) {
  return json_get_number(object, key, 1, 1e12, theta, error);
}

/* A part of each head without positions is not computed. */
static bert_status refuse_partial(const json_value *object, bert_error *error) {
  double part = 1;
  bert_status status = json_get_number(object, "partial_rotary_factor", 0, 1, &part, error);
  if (status != BERT_OK || part >= 1) return status;
  return error_set(error, BERT_UNSUPPORTED, "\"partial_rotary_factor\" is not supported");
}

/* The scaling that `object` asks for; `known` is the one this family has. */
static bert_status read_scaling(const json_value *object, rope_scaling known, rope_config *out,
                                bert_error *error) {
  const char *type = "default";
  bert_status status = json_get_string(object, "type", &type, error);
  if (status == BERT_OK) status = json_get_string(object, "rope_type", &type, error);
  if (status == BERT_OK) status = refuse_partial(object, error);
  if (status == BERT_OK) status = config_empty(object, "mixed_b", error);
  if (status != BERT_OK || strcmp(type, "default") == 0) return status;
  if ((known == ROPE_NTK && strcmp(type, "ntk") == 0) ||
      (known == ROPE_DYNAMIC && strcmp(type, "dynamic") == 0)) {
    out->scaling = known;
    return json_get_number(object, "factor", 1, 10000, &out->factor, error);
  }
  return error_set(error, BERT_UNSUPPORTED, "the rotary scaling \"%s\" is not supported",
                   error_quote(type).text);
}

/* rope_parameters, or rope_theta and rope_scaling as they were before; of both kinds of
** object the older counts, as in transformers. */
static bert_status read_rope(const json_value *root, double theta, rope_scaling known,
                             model_config *c, bert_error *error) {
  const json_value *object = NULL, *older = NULL;
  rope_config *rope = &c->rope;
  *rope = (rope_config){theta, ROPE_PLAIN, 1, c->positions};
  bert_status status = get_object(root, "rope_parameters", &object, error);
  if (status == BERT_OK) status = get_object(root, "rope_scaling", &older, error);
  if (older != NULL && older->size > 0) object = older;
  if (status == BERT_OK) status = refuse_partial(root, error);
  if (status == BERT_OK) status = read_theta(root, "rope_theta", &rope->theta, error);
  if (status == BERT_OK) status = read_theta(object, "rope_theta", &rope->theta, error);
  if (status == BERT_OK) status = read_scaling(object, known, rope, error);
  if (status == BERT_OK && rope->scaling == ROPE_DYNAMIC) {
    double longest = c->positions * rope->factor;
    c->positions = longest < MOST_POSITIONS ? (int)longest : MOST_POSITIONS;
  }
  return status;
}

/* ---- BERT and Jina BERT v2 ----------------------------------------------- */

/* Jina's second generation calls itself "bert" too. It has a gated feed-forward
** layer where it says so, and ALiBi instead of positions (Press et al. 2022). */
static bert_status finish_jina(const json_value *root, model_config *c, bert_error *error) {
  const char *kind = "original";
  bert_status status = json_get_string(root, "feed_forward_type", &kind, error);
  if (status != BERT_OK || strcmp(kind, "original") == 0) return status;
  if (strcmp(kind, "geglu") != 0 && strcmp(kind, "reglu") != 0)
    return error_set(error, BERT_UNSUPPORTED,
                     "\"feed_forward_type\" \"%s\" is not supported; there are original, geglu, "
                     "reglu",
                     error_quote(kind).text);
  snprintf(c->family, sizeof c->family, "jina-bert");
  c->hidden_activation = kind[0] == 'g' ? ACTIVATION_GELU : ACTIVATION_RELU;
  c->up_bias = 0;
  return BERT_OK;
}

static bert_status finish_bert(const json_value *root, model_config *c, bert_error *error) {
  const char *kind = "absolute";
  c->type_rows = c->types;
  bert_status status = json_get_string(root, "position_embedding_type", &kind, error);
  if (status != BERT_OK) return status;
  if (strcmp(kind, "absolute") == 0)
    table_positions(c);
  else if (strcmp(kind, "alibi") == 0)
    c->alibi = 1;
  else
    return error_set(error, BERT_UNSUPPORTED,
                     "\"position_embedding_type\" \"%s\" is not supported; \"absolute\" is",
                     error_quote(kind).text);
  return finish_jina(root, c, error);
}

/* ---- RoBERTa, MPNet, DistilBERT ------------------------------------------ */

static bert_status finish_roberta(const json_value *root, model_config *c, bert_error *error) {
  c->type_rows = c->types;
  bert_status status = config_name_is(root, "position_embedding_type", "absolute", error);
  return status == BERT_OK ? positions_after(c, c->pad_token_id, error) : status;
}

/* The padding row and the 32 buckets are fixed in the model's code, whatever its
** config says. */
static bert_status finish_mpnet(const json_value *root, model_config *c, bert_error *error) {
  int64_t buckets = 32;
  c->types = 1;
  bert_status status =
      json_get_int(root, "relative_attention_num_buckets", 32, 100000, &buckets, error);
  c->relative_buckets = (int)buckets;
  return status == BERT_OK ? positions_after(c, 1, error) : status;
}

static bert_status finish_distilbert(const json_value *root, model_config *c, bert_error *error) {
  table_positions(c);
  c->types = 1;
  return json_get_bool(root, "sinusoidal_pos_embds", &c->sinusoidal, error);
}

/* ---- ELECTRA and ALBERT --------------------------------------------------- */

static bert_status finish_factorized(const json_value *root, model_config *c, bert_error *error) {
  int64_t width = 128;
  table_positions(c);
  c->type_rows = c->types;
  bert_status status = config_name_is(root, "position_embedding_type", "absolute", error);
  if (status == BERT_OK) status = json_get_int(root, "embedding_size", 1, 65536, &width, error);
  c->embedding_size = (int)width;
  return status;
}

static bert_status finish_albert(const json_value *root, model_config *c, bert_error *error) {
  int64_t groups = 1, inner = 1;
  bert_status status = finish_factorized(root, c, error);
  if (status == BERT_OK)
    status = json_get_int(root, "num_hidden_groups", 1, c->layers, &groups, error);
  if (status == BERT_OK) status = json_get_int(root, "inner_group_num", 1, 1000, &inner, error);
  if (status == BERT_OK && inner != 1)
    status = error_set(error, BERT_UNSUPPORTED, "\"inner_group_num\" %d is not supported; 1 is",
                       (int)inner);
  c->layer_groups = (int)groups;
  return status;
}

/* ---- ModernBERT ----------------------------------------------------------- */

static bert_status read_layer_type(const json_value *v, int layer, model_config *c,
                                   bert_error *error) {
  c->local_layer[layer] = (uint8_t)json_is(v, "sliding_attention");
  if (c->local_layer[layer] || json_is(v, "full_attention")) return BERT_OK;
  return error_set(error, BERT_UNSUPPORTED,
                   "element %d of \"layer_types\" is not supported; there are full_attention, "
                   "sliding_attention",
                   layer);
}

/* layer_types, or every third layer as it was before. */
static bert_status read_layer_types(const json_value *root, model_config *c, bert_error *error) {
  const json_value *list = json_get(root, "layer_types");
  int64_t every = 3;
  bert_status status =
      json_get_int(root, "global_attn_every_n_layers", 1, CONFIG_MAX_LAYERS, &every, error);
  if (status != BERT_OK) return status;
  for (int i = 0; i < c->layers; i++) c->local_layer[i] = i % every != 0;
  if (list == NULL || list->type == JSON_NULL) return BERT_OK;
  if (list->type != JSON_ARRAY || list->size != (size_t)c->layers)
    return error_set(error, BERT_INVALID, "\"layer_types\" must be an array of %d names",
                     c->layers);
  int layer = 0;
  for (const json_value *v = list->first; v != NULL && status == BERT_OK; v = v->next)
    status = read_layer_type(v, layer++, c, error);
  return status;
}

/* The rotary positions of one kind of layer: rope_parameters' object of that name,
** or `older` beside it. */
static bert_status read_layer_rope(const json_value *root, const char *name, const char *older,
                                   double theta, int trained, rope_config *out, bert_error *error) {
  const json_value *both = NULL, *object = NULL;
  *out = (rope_config){theta, ROPE_PLAIN, 1, trained};
  bert_status status = get_object(root, "rope_parameters", &both, error);
  if (status == BERT_OK) status = get_object(both, name, &object, error);
  if (status == BERT_OK) status = read_theta(root, older, &out->theta, error);
  if (status == BERT_OK) status = read_theta(object, "rope_theta", &out->theta, error);
  return status == BERT_OK ? read_scaling(object, ROPE_PLAIN, out, error) : status;
}

/* How far a layer sees to each side: half of local_attention, or sliding_window where
** a config has that. */
static bert_status read_window(const json_value *root, model_config *c, bert_error *error) {
  int64_t both = 128, side;
  bert_status status = json_get_int(root, "local_attention", 1, 1000000, &both, error);
  side = both / 2;
  if (status == BERT_OK) status = json_get_int(root, "sliding_window", 0, 1000000, &side, error);
  c->window = (int)side;
  return status;
}

static bert_status finish_modernbert(const json_value *root, model_config *c, bert_error *error) {
  c->types = 1;
  c->attention_bias = c->up_bias = c->norm_bias = 0;
  bert_status status = config_empty(root, "rope_scaling", error);
  if (status == BERT_OK) status = read_layer_types(root, c, error);
  if (status == BERT_OK)
    status = read_layer_rope(root, "full_attention", "global_rope_theta", 160000, c->positions,
                             &c->rope, error);
  if (status == BERT_OK)
    status = read_layer_rope(root, "sliding_attention", "local_rope_theta", 10000, c->positions,
                             &c->local_rope, error);
  if (status == BERT_OK) status = read_window(root, c, error);
  if (status == BERT_OK) status = json_get_bool(root, "attention_bias", &c->attention_bias, error);
  if (status == BERT_OK) status = json_get_bool(root, "mlp_bias", &c->up_bias, error);
  if (status == BERT_OK) status = json_get_bool(root, "norm_bias", &c->norm_bias, error);
  c->down_bias = c->up_bias;
  return status;
}

/* Types may be none at all: then there is no table, and every token is of type 0. */
static void optional_types(model_config *c) {
  c->type_rows = c->types;
  if (c->types == 0) c->types = 1;
}

/* ---- Nomic BERT ----------------------------------------------------------- */

/* The keys of the original files, written for a model class of their own. */
static bert_status refuse_nomic(const json_value *root, bert_error *error) {
  static const char *const flags[] = {
      "prenorm", "parallel_block",         "use_rms_norm",
      "causal",  "rotary_emb_interleaved", "scale_attn_by_inverse_layer_idx"};
  static const char *const contents[] = {"rotary_emb_scale_base", "num_experts"};
  double part = 1;
  bert_status status = json_get_number(root, "rotary_emb_fraction", 0, 1, &part, error);
  if (status == BERT_OK && part < 1)
    status = error_set(error, BERT_UNSUPPORTED, "\"rotary_emb_fraction\" below 1 is not supported");
  for (size_t i = 0; i < sizeof flags / sizeof *flags && status == BERT_OK; i++)
    status = config_flag_is(root, flags[i], 0, error);
  for (size_t i = 0; i < sizeof contents / sizeof *contents && status == BERT_OK; i++)
    status = config_empty(root, contents[i], error);
  return status;
}

static bert_status read_nomic_gate(const json_value *root, model_config *c, bert_error *error) {
  const char *name = NULL;
  bert_status status = json_get_string(root, "activation_function", &name, error);
  if (status != BERT_OK || name == NULL) return status;
  if (strcmp(name, "swiglu") == 0)
    c->hidden_activation = ACTIVATION_SILU;
  else if (strcmp(name, "geglu") == 0)
    c->hidden_activation = ACTIVATION_GELU;
  else
    return error_set(error, BERT_UNSUPPORTED,
                     "\"activation_function\" \"%s\" is not supported; there are swiglu, geglu",
                     error_quote(name).text);
  return BERT_OK;
}

/* rotary_emb_base and, for texts longer than those of the training,
** rotary_scaling_factor. */
static bert_status read_nomic_rope(const json_value *root, model_config *c, bert_error *error) {
  rope_config *rope = &c->rope;
  int64_t trained = 2048;
  double factor = 0;
  bert_status status = read_theta(root, "rotary_emb_base", &rope->theta, error);
  if (status == BERT_OK)
    status = json_get_number(root, "rotary_scaling_factor", 1, 10000, &factor, error);
  if (status == BERT_OK)
    status = json_get_int(root, "max_trained_positions", 1, MOST_POSITIONS, &trained, error);
  if (status == BERT_OK && factor > 0)
    *rope = (rope_config){rope->theta, ROPE_DYNAMIC, factor, (int)trained};
  return status;
}

static bert_status read_nomic_biases(const json_value *root, model_config *c, bert_error *error) {
  bert_status status = json_get_bool(root, "qkv_proj_bias", &c->attention_bias, error);
  if (status == BERT_OK) status = json_get_bool(root, "mlp_fc1_bias", &c->up_bias, error);
  if (status == BERT_OK) status = json_get_bool(root, "mlp_fc2_bias", &c->down_bias, error);
  return status;
}

static int has_value(const json_value *root, const char *key) {
  const json_value *v = json_get(root, key);
  return v != NULL && v->type != JSON_NULL;
}

/* head_dim other than the usual, a table padded to whole multiples, and n_inner
** where an original file leaves it out. */
static bert_status read_nomic_sizes(const json_value *root, model_config *c, bert_error *error) {
  int64_t width = c->hidden_size / c->heads, multiple = 1;
  bert_status status = json_get_int(root, "head_dim", 1, 65536, &width, error);
  if (status == BERT_OK)
    status = json_get_int(root, "pad_vocab_size_multiple", 1, 65536, &multiple, error);
  if (status == BERT_OK && width * c->heads != c->hidden_size)
    return error_set(error, BERT_UNSUPPORTED,
                     "\"head_dim\" %d with %d heads is not supported: together they must be as "
                     "wide as hidden_size %d",
                     (int)width, c->heads, c->hidden_size);
  c->vocab_size = (int)((c->vocab_size + multiple - 1) / multiple * multiple);
  if (has_value(root, "n_embd") && !has_value(root, "n_inner"))
    c->intermediate_size = 4 * c->hidden_size;
  return status;
}

/* What only the original files say; transformers' own class has the gate and the
** rotary positions of other families, and no biases. */
static bert_status read_nomic_original(const json_value *root, model_config *c, bert_error *error) {
  bert_status status = read_nomic_gate(root, c, error);
  if (status == BERT_OK) status = read_nomic_biases(root, c, error);
  return status == BERT_OK ? read_nomic_rope(root, c, error) : status;
}

static bert_status finish_nomic(const json_value *root, model_config *c, bert_error *error) {
  optional_types(c);
  c->attention_bias = c->up_bias = c->down_bias = 0;
  bert_status status = refuse_nomic(root, error);
  if (status == BERT_OK) status = read_nomic_sizes(root, c, error);
  if (status == BERT_OK) status = read_rope(root, 1000, ROPE_DYNAMIC, c, error);
  if (status != BERT_OK || !has_value(root, "n_embd")) return status;
  return read_nomic_original(root, c, error);
}

/* ---- GTE ------------------------------------------------------------------ */

static bert_status finish_gte(const json_value *root, model_config *c, bert_error *error) {
  optional_types(c);
  c->up_bias = 0;
  return read_rope(root, 160000, ROPE_DYNAMIC, c, error);
}

/* "new", the name under which the model was first published, with its own code. */
static bert_status finish_new(const json_value *root, model_config *c, bert_error *error) {
  optional_types(c);
  c->up_bias = 0;
  bert_status status = read_rope(root, 10000, ROPE_NTK, c, error);
  if (status == BERT_OK) status = config_name_is(root, "position_embedding_type", "rope", error);
  if (status == BERT_OK) status = config_name_is(root, "layer_norm_type", "layer_norm", error);
  if (status == BERT_OK) status = config_flag_is(root, "logn_attention_scale", 0, error);
  return status;
}

/* ---- The table ------------------------------------------------------------ */

#define SIZE(field, key, low, high, preset)                                                        \
  { offsetof(model_config, field), {key, NULL}, low, high, preset }
#define SIZE_OF_TWO(field, key, older, low, high, preset)                                          \
  { offsetof(model_config, field), {key, older}, low, high, preset }

/* The keys of BERT, which most families share. */
#define LAYERS(preset) SIZE(layers, "num_hidden_layers", 1, CONFIG_MAX_LAYERS, preset)
#define HEADS(preset) SIZE(heads, "num_attention_heads", 1, 1024, preset)
#define HIDDEN(preset) SIZE(hidden_size, "hidden_size", 1, 65536, preset)
#define INNER(preset) SIZE(intermediate_size, "intermediate_size", 1, 262144, preset)
#define VOCAB(preset) SIZE(vocab_size, "vocab_size", 1, 10000000, preset)
#define POSITIONS(preset) SIZE(positions, "max_position_embeddings", 1, MOST_POSITIONS, preset)
#define TYPES(low, preset) SIZE(types, "type_vocab_size", low, 1000, preset)
#define PAD(low, preset) SIZE(pad_token_id, "pad_token_id", low, 10000000, preset)
#define BASE_SIZES LAYERS(12), HEADS(12), HIDDEN(768), INNER(3072)

/* RoBERTa and those that are the same with another vocabulary. */
#define ROBERTA(name, vocab)                                                                       \
  {                                                                                                \
    name, name, {"hidden_act"}, "gelu", {"layer_norm_eps"}, 1e-12,                                 \
        {BASE_SIZES, VOCAB(vocab), POSITIONS(512), TYPES(1, 2), PAD(0, 1)}, finish_roberta         \
  }

static const config_family families[] = {
    {"bert",
     "bert",
     {"hidden_act"},
     "gelu",
     {"layer_norm_eps"},
     1e-12,
     {BASE_SIZES, VOCAB(30522), POSITIONS(512), TYPES(1, 2), PAD(-1, 0)},
     finish_bert},
    ROBERTA("roberta", 50265),
    ROBERTA("xlm-roberta", 30522),
    ROBERTA("camembert", 30522),
    {"distilbert",
     "distilbert",
     {"activation"},
     "gelu",
     {NULL},
     1e-12,
     {SIZE(layers, "n_layers", 1, CONFIG_MAX_LAYERS, 6), SIZE(heads, "n_heads", 1, 1024, 12),
      SIZE(hidden_size, "dim", 1, 65536, 768),
      SIZE(intermediate_size, "hidden_dim", 1, 262144, 3072), VOCAB(30522), POSITIONS(512),
      PAD(-1, 0)},
     finish_distilbert},
    {"mpnet",
     "mpnet",
     {"hidden_act"},
     "gelu",
     {"layer_norm_eps"},
     1e-12,
     {BASE_SIZES, VOCAB(30527), POSITIONS(512), PAD(-1, 1)},
     finish_mpnet},
    {"electra",
     "electra",
     {"hidden_act"},
     "gelu",
     {"layer_norm_eps"},
     1e-12,
     {LAYERS(12), HEADS(4), HIDDEN(256), INNER(1024), VOCAB(30522), POSITIONS(512), TYPES(1, 2),
      PAD(-1, 0)},
     finish_factorized},
    {"albert",
     "albert",
     {"hidden_act"},
     "gelu_new",
     {"layer_norm_eps"},
     1e-12,
     {LAYERS(12), HEADS(64), HIDDEN(4096), INNER(16384), VOCAB(30000), POSITIONS(512), TYPES(1, 2),
      PAD(-1, 0)},
     finish_albert},
    {"modernbert",
     "modernbert",
     {"hidden_activation"},
     "gelu",
     {"norm_eps"},
     1e-5,
     {LAYERS(22), HEADS(12), HIDDEN(768), INNER(1152), VOCAB(50368), POSITIONS(8192),
      PAD(-1, 50283)},
     finish_modernbert},
    {"nomic_bert",
     "nomic-bert",
     {"hidden_act"},
     "silu",
     {"layer_norm_eps", "layer_norm_epsilon"},
     1e-12,
     {SIZE_OF_TWO(layers, "num_hidden_layers", "n_layer", 1, CONFIG_MAX_LAYERS, 12),
      SIZE_OF_TWO(heads, "num_attention_heads", "n_head", 1, 1024, 12),
      SIZE_OF_TWO(hidden_size, "hidden_size", "n_embd", 1, 65536, 768),
      SIZE_OF_TWO(intermediate_size, "intermediate_size", "n_inner", 1, 262144, 3072), VOCAB(30528),
      SIZE_OF_TWO(positions, "max_position_embeddings", "n_positions", 1, MOST_POSITIONS, 2048),
      TYPES(0, 2), PAD(-1, 0)},
     finish_nomic},
    {"gte",
     "gte",
     {"hidden_act"},
     "gelu",
     {"layer_norm_eps"},
     1e-12,
     {BASE_SIZES, VOCAB(250048), POSITIONS(8192), TYPES(0, 1), PAD(-1, 1)},
     finish_gte},
    {"new",
     "gte",
     {"hidden_act"},
     "gelu",
     {"layer_norm_eps"},
     1e-12,
     {BASE_SIZES, VOCAB(30528), POSITIONS(2048), TYPES(0, 1), PAD(-1, 0)},
     finish_new},
};
enum { FAMILIES = sizeof families / sizeof *families };

const config_family *config_family_find(const char *model_type) {
  for (int i = 0; i < FAMILIES; i++)
    if (strcmp(model_type, families[i].model_type) == 0) return &families[i];
  return NULL;
}

void config_family_names(char *out, size_t room) {
  size_t at = 0;
  for (int i = 0; i < FAMILIES && at < room; i++)
    at += (size_t)snprintf(out + at, room - at, "%s%s", i ? ", " : "", families[i].model_type);
}
