/*
** loadconfig.c: what tokenizer_config.json changes of a tokenizer.json.
**
** The classes of transformers set some stages by the arguments in that file, or by
** their defaults, whatever tokenizer.json says of them: BertTokenizer and its kin the
** three switches of the normalizer, RobertaTokenizer the space before a text. Other
** classes, such as PreTrainedTokenizerFast, leave tokenizer.json as it is.
*/
#include "../files/files.h"
#include "load.h"

#include <string.h>

/* A class, and what it does; "Fast" behind the name makes no difference. */
typedef struct class_entry {
  const char *name;
  int bert;    /* 1: sets the switches of a BertNormalizer */
  int roberta; /* 1: sets add_prefix_space of a ByteLevel */
  int types;   /* 1: gives token types to the model, unless told otherwise */
} class_entry;

static const class_entry classes[] = {
    {"BertTokenizer", 1, 0, 1},       {"ElectraTokenizer", 1, 0, 1},
    {"DistilBertTokenizer", 1, 0, 0}, {"MPNetTokenizer", 1, 0, 0},
    {"RobertaTokenizer", 0, 1, 0},    {"XLMRobertaTokenizer", 0, 0, 0},
    {"CamembertTokenizer", 0, 0, 0},
};

/* Any class that is not in the table. */
static const class_entry other_class = {"", 0, 0, 1};

static bert_status find_class(const json_value *config, const class_entry **out,
                              bert_error *error) {
  const char *name = NULL;
  bert_status status = json_get_string(config, "tokenizer_class", &name, error);
  *out = NULL;
  if (status != BERT_OK || name == NULL) return status;
  *out = &other_class;
  for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
    size_t size = strlen(classes[i].name);
    if (strncmp(name, classes[i].name, size) == 0 &&
        (name[size] == '\0' || strcmp(name + size, "Fast") == 0))
      *out = &classes[i];
  }
  return BERT_OK;
}

/* ---- The normalizer ------------------------------------------------------------- */

static int has_value(const json_value *config, const char *key) {
  const json_value *v = json_get(config, key);
  return v != NULL && v->type != JSON_NULL;
}

/* The switches as the class has them; without a class, those that the file names. */
static bert_status bert_switches(const json_value *config, const class_entry *class, int *steps,
                                 bert_error *error) {
  int named = class != NULL || has_value(config, "do_lower_case");
  int lower = class != NULL || (*steps & NORMALIZER_LOWER) != 0;
  int chinese = class != NULL || (*steps & NORMALIZER_CHINESE) != 0, strip;
  bert_status status = json_get_bool(config, "do_lower_case", &lower, error);
  if (status == BERT_OK) status = json_get_bool(config, "tokenize_chinese_chars", &chinese, error);
  strip = named ? lower : (*steps & NORMALIZER_STRIP) != 0;
  if (status == BERT_OK) status = json_get_bool(config, "strip_accents", &strip, error);
  *steps = (*steps & NORMALIZER_CLEAN) | (lower ? NORMALIZER_LOWER : 0) |
           (chinese ? NORMALIZER_CHINESE : 0) | (strip ? NORMALIZER_STRIP : 0);
  return status;
}

static bert_status set_normalizer(tokenizer *t, const json_value *config, const class_entry *class,
                                  const json_value *switches, int *steps, bert_error *error) {
  int own = 0, wanted;
  if (t->model != MODEL_WORDPIECE || (class != NULL && !class->bert) ||
      !json_is(json_get(switches, "type"), "BertNormalizer"))
    return BERT_OK;
  bert_status status = load_bert_normalizer(switches, &own, error);
  wanted = own;
  if (status == BERT_OK) status = bert_switches(config, class, &wanted, error);
  if (status != BERT_OK || wanted == own) return status;
  if (t->general)
    return error_set(
        error, BERT_UNSUPPORTED,
        "do_lower_case, strip_accents and tokenize_chinese_chars must be as the "
        "normalizer of tokenizer.json has them, with a pre-tokenizer other than BERT's");
  *steps = wanted;
  digest_add(&t->files, &wanted, sizeof wanted);
  return BERT_OK;
}

/* ---- The space before a text ---------------------------------------------------- */

static bert_status check_prefix(const json_value *config, const class_entry *class,
                                const json_value *cut, bert_error *error) {
  int wanted = 0, own = 0;
  if (class == NULL || !class->roberta || !json_is(json_get(cut, "type"), "ByteLevel"))
    return BERT_OK;
  bert_status status = json_get_bool(config, "add_prefix_space", &wanted, error);
  if (status == BERT_OK) status = json_get_bool(cut, "add_prefix_space", &own, error);
  if (status != BERT_OK || !wanted == !own) return status;
  return error_set(error, BERT_UNSUPPORTED,
                   "add_prefix_space is %s here, but %s in tokenizer.json; %s takes it from here, "
                   "so make them the same",
                   wanted ? "true" : "false", own ? "true" : "false", class->name);
}

/* ---- Token types ----------------------------------------------------------------- */

static int clear_types(template *t) {
  int changed = 0;
  for (size_t i = 0; i < t->count; i++) {
    changed |= t->parts[i].type != 0;
    t->parts[i].type = 0;
  }
  return changed;
}

/* A tokenizer that does not give token types leaves them all 0. */
static bert_status set_types(tokenizer *t, const json_value *config, const class_entry *class,
                             bert_error *error) {
  const json_value *names = json_get(config, "model_input_names");
  int types = class == NULL || class->types;
  if (names != NULL && names->type != JSON_NULL) {
    if (names->type != JSON_ARRAY)
      return error_set(error, BERT_INVALID, "\"model_input_names\" must be an array of names");
    types = 0;
    for (const json_value *i = names->first; i != NULL; i = i->next)
      types |= json_is(i, "token_type_ids");
  }
  if (types) return BERT_OK;
  int changed = clear_types(&t->postprocessor.single) | clear_types(&t->postprocessor.pair);
  if (changed) digest_add(&t->files, "types", 5);
  return BERT_OK;
}

/* ---- Truncation ------------------------------------------------------------------- */

/* Long texts are read from their beginning, and no further than to the limit. */
static bert_status check_truncation(const json_value *config, const json_value *root,
                                    bert_error *error) {
  const char *side = NULL;
  bert_status status = json_get_string(config, "truncation_side", &side, error);
  if (status != BERT_OK) return status;
  if (side != NULL && strcmp(side, "right") != 0)
    return error_set(error, BERT_UNSUPPORTED,
                     "\"truncation_side\" \"%s\" is not supported; \"right\" is",
                     error_quote(side).text);
  if (side == NULL && json_is(json_get(json_get(root, "truncation"), "direction"), "Left"))
    return error_set(error, BERT_UNSUPPORTED,
                     "tokenizer.json cuts long texts on the left (direction of its truncation), "
                     "which is not supported");
  return BERT_OK;
}

/* ---- The whole --------------------------------------------------------------------- */

static bert_status apply(tokenizer *t, const json_value *config, const json_value *root, int *steps,
                         bert_error *error) {
  const class_entry *class = NULL;
  bert_status status = check_truncation(config, root, error);
  if (status == BERT_OK) status = find_class(config, &class, error);
  if (status == BERT_OK)
    status = set_normalizer(t, config, class, json_get(root, "normalizer"), steps, error);
  if (status == BERT_OK)
    status = check_prefix(config, class, json_get(root, "pre_tokenizer"), error);
  return status == BERT_OK ? set_types(t, config, class, error) : status;
}

bert_status load_config_settings(tokenizer *t, const char *directory, const json_value *root,
                                 int *steps, bert_error *error) {
  json_document *document = NULL;
  bert_status status =
      file_read_json(directory, "tokenizer_config.json", 1, JSON_OBJECT, &document, error);
  if (status != BERT_OK) return status;
  status = apply(t, document == NULL ? NULL : json_root(document), root, steps, error);
  json_free(document);
  return status == BERT_OK ? BERT_OK : error_prefix(error, "%s/tokenizer_config.json", directory);
}
