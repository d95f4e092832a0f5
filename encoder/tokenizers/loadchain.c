/*
** loadchain.c: "normalizer" and "pre_tokenizer" of tokenizer.json into the steps
** of the general pipeline.
*/
#include "load.h"

#include <string.h>

/* A loader of one type. */
typedef bert_status loader(chain *c, const json_value *json, bert_error *error);
typedef struct loader_entry {
  const char *type;
  loader *load;
  step_kind kind; /* when there is no loader: one step without settings */
} loader_entry;

static bert_status add(chain *c, step_kind kind, bert_error *error) {
  step *s = NULL;
  return chain_add(c, kind, &s, error);
}

static bert_status unsupported(const char *type, const loader_entry *entries, size_t count,
                               bert_error *error) {
  char known[400] = "";
  size_t used = 0;
  for (size_t i = 0; i < count && used + 40 < sizeof known; i++) {
    size_t size = strlen(entries[i].type);
    if (i > 0) memcpy(known + used, ", ", 2), used += 2;
    memcpy(known + used, entries[i].type, size + 1);
    used += size;
  }
  return error_set(error, BERT_UNSUPPORTED, "the type \"%.60s\" is not supported; there are %s",
                   type, known);
}

static bert_status load_by_type(chain *c, const json_value *json, const loader_entry *entries,
                                size_t count, bert_error *error) {
  const char *type;
  bert_status status = load_type(json, &type, error);
  if (status != BERT_OK || type == NULL) return status;
  for (size_t i = 0; i < count; i++) {
    if (strcmp(type, entries[i].type) != 0) continue;
    if (entries[i].load == NULL) return add(c, entries[i].kind, error);
    status = entries[i].load(c, json, error);
    return status == BERT_OK ? BERT_OK : error_prefix(error, "%s", type);
  }
  return unsupported(type, entries, count, error);
}

/* The characters of a string, into a step. */
static bert_status read_content(step *s, const json_value *text, bert_error *error) {
  s->content = memory_alloc(memory_product(text->size, sizeof *s->content));
  if (s->content == NULL) return error_nomem(error, "reading the tokenizer");
  for (size_t at = 0; at < text->size;)
    s->content[s->content_size++] = unicode_next(text->string, text->size, &at);
  return BERT_OK;
}

/* A member that must be one character. */
static bert_status read_char(const json_value *json, const char *key, uint32_t *out,
                             bert_error *error) {
  const json_value *text;
  size_t at = 0;
  bert_status status = load_required(json, key, JSON_STRING, &text, error);
  if (status != BERT_OK) return status;
  if (text->size > 0) *out = unicode_next(text->string, text->size, &at);
  if (text->size == 0 || at != text->size)
    return error_set(error, BERT_INVALID, "%s is \"%.40s\"; it must be one character", key,
                     text->string);
  return BERT_OK;
}

/* "pattern": {"String": …} or {"Regex": …} */
static bert_status read_pattern(step *s, const json_value *json, bert_error *error) {
  const json_value *pattern = json_get(json, "pattern");
  const json_value *text = json_get(pattern, "String"), *regex_text = json_get(pattern, "Regex");
  const json_value *used = text != NULL ? text : regex_text;
  if (used == NULL || used->type != JSON_STRING)
    return error_set(error, BERT_INVALID, "pattern is neither a String nor a Regex");
  return regex_compile((bert_text){used->string, used->size}, text != NULL, &s->pattern, error);
}

/* ---- Normalizers -------------------------------------------------------------- */

static bert_status load_bert(chain *c, const json_value *json, bert_error *error) {
  int steps = 0;
  bert_status status = load_bert_normalizer(json, &steps, error);
  if (status == BERT_OK && (steps & NORMALIZER_CLEAN)) status = add(c, STEP_CLEAN, error);
  if (status == BERT_OK && (steps & NORMALIZER_CHINESE)) status = add(c, STEP_IDEOGRAPHS, error);
  if (status == BERT_OK && (steps & NORMALIZER_STRIP)) status = add(c, STEP_NFD, error);
  if (status == BERT_OK && (steps & NORMALIZER_STRIP)) status = add(c, STEP_STRIP_MARKS, error);
  if (status == BERT_OK && (steps & NORMALIZER_LOWER)) status = add(c, STEP_LOWERCASE, error);
  return status;
}

static bert_status load_strip(chain *c, const json_value *json, bert_error *error) {
  int left = 0, right = 0;
  step *s = NULL;
  bert_status status = load_required_bool(json, "strip_left", &left, error);
  if (status == BERT_OK) status = load_required_bool(json, "strip_right", &right, error);
  if (status == BERT_OK) status = chain_add(c, STEP_STRIP, &s, error);
  if (status == BERT_OK) s->flag = (left ? 1 : 0) | (right ? 2 : 0);
  return status;
}

static bert_status load_prepend(chain *c, const json_value *json, bert_error *error) {
  const json_value *text;
  step *s = NULL;
  bert_status status = load_required(json, "prepend", JSON_STRING, &text, error);
  if (status == BERT_OK) status = chain_add(c, STEP_PREPEND, &s, error);
  return status == BERT_OK ? read_content(s, text, error) : status;
}

/* How many times as long texts may become by all replacements together. Twenty that
** double a character each would make a gigabyte of a kilobyte. */
enum { GROWTH_LIMIT = 1000 };

static bert_status count_growth(chain *c, const step *s, const json_value *json,
                                bert_error *error) {
  const json_value *text = json_get(json_get(json, "pattern"), "String");
  size_t shortest = 0; /* characters of a match; of a regex at least one */
  for (size_t at = 0; text != NULL && at < text->size; shortest++)
    unicode_next(text->string, text->size, &at);
  double growth = (double)s->content_size / (double)(shortest > 0 ? shortest : 1);
  if (c->growth < 1) c->growth = 1;
  if (growth > 1) c->growth *= growth;
  if (c->growth <= GROWTH_LIMIT) return BERT_OK;
  return error_set(error, BERT_UNSUPPORTED,
                   "the replacements make texts more than %d times as long", GROWTH_LIMIT);
}

static bert_status load_replace(chain *c, const json_value *json, bert_error *error) {
  const json_value *text;
  step *s = NULL;
  bert_status status = load_required(json, "content", JSON_STRING, &text, error);
  if (status == BERT_OK) status = chain_add(c, STEP_REPLACE, &s, error);
  if (status == BERT_OK) status = read_content(s, text, error);
  if (status == BERT_OK) status = read_pattern(s, json, error);
  return status == BERT_OK ? count_growth(c, s, json, error) : status;
}

static bert_status load_precompiled(chain *c, const json_value *json, bert_error *error) {
  step *s = NULL;
  bert_status status = chain_add(c, STEP_PRECOMPILED, &s, error);
  if (status != BERT_OK) return status;
  return charsmap_load(json_get(json, "precompiled_charsmap"), &s->map, error);
}

static bert_status load_normalizers(chain *c, const json_value *json, bert_error *error);

static const loader_entry normalizers[] = {{"BertNormalizer", load_bert, STEP_CLEAN},
                                           {"NFC", NULL, STEP_NFC},
                                           {"NFD", NULL, STEP_NFD},
                                           {"NFKC", NULL, STEP_NFKC},
                                           {"NFKD", NULL, STEP_NFKD},
                                           {"Lowercase", NULL, STEP_LOWERCASE},
                                           {"StripAccents", NULL, STEP_STRIP_ACCENTS},
                                           {"Strip", load_strip, STEP_STRIP},
                                           {"Replace", load_replace, STEP_REPLACE},
                                           {"Prepend", load_prepend, STEP_PREPEND},
                                           {"Nmt", NULL, STEP_NMT},
                                           {"Precompiled", load_precompiled, STEP_PRECOMPILED},
                                           {"ByteLevel", NULL, STEP_BYTES},
                                           {"Sequence", load_normalizers, STEP_CLEAN}};

static bert_status load_normalizer(chain *c, const json_value *json, bert_error *error) {
  return load_by_type(c, json, normalizers, sizeof normalizers / sizeof *normalizers, error);
}

/* The parts of a Sequence, which may be sequences: JSON_MAX_DEPTH limits that. */
static bert_status load_sequence(chain *c, const json_value *json, const char *key, loader *load,
                                 bert_error *error) {
  const json_value *list;
  bert_status status = load_list(json, key, &list, error);
  for (const json_value *i = status == BERT_OK ? list->first : NULL; i != NULL; i = i->next) {
    if (i->type != JSON_OBJECT)
      return error_set(error, BERT_INVALID, "a part is %s, not an object", json_type_name(i->type));
    status = load(c, i, error);
    if (status != BERT_OK) return status;
  }
  return status;
}

static bert_status load_normalizers(chain *c, const json_value *json, bert_error *error) {
  return load_sequence(c, json, "normalizers", load_normalizer, error);
}

bert_status chain_load_normalizer(chain *c, const json_value *json, bert_error *error) {
  bert_status status = load_normalizer(c, json, error);
  c->normalizers = c->count;
  return status;
}

/* ---- Pre-tokenizers -------------------------------------------------------------- */

static bert_status add_cut(chain *c, step_kind kind, cut_behavior behavior, bert_error *error) {
  step *s = NULL;
  bert_status status = chain_add(c, kind, &s, error);
  if (status == BERT_OK) s->behavior = behavior;
  return status;
}

static bert_status load_bert_pretokenizer(chain *c, const json_value *json, bert_error *error) {
  bert_status status = add_cut(c, STEP_CUT_SPACES, CUT_REMOVED, error);
  (void)json;
  return status == BERT_OK ? add_cut(c, STEP_CUT_PUNCTUATION, CUT_ISOLATED, error) : status;
}

static bert_status load_spaces(chain *c, const json_value *json, bert_error *error) {
  (void)json;
  return add_cut(c, STEP_CUT_SPACES, CUT_REMOVED, error);
}

/* "behavior", which keeps *out as it is when it is not there and need not be. */
static bert_status read_behavior(const json_value *json, int required, cut_behavior *out,
                                 bert_error *error) {
  static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                      "Contiguous"};
  const json_value *name = json_get(json, "behavior");
  if (name == NULL && !required) return BERT_OK;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (!json_is(name, names[i])) continue;
    *out = (cut_behavior)i;
    return BERT_OK;
  }
  return error_set(error, BERT_INVALID,
                   "behavior must be Removed, Isolated, MergedWithPrevious, MergedWithNext or "
                   "Contiguous");
}

static bert_status load_punctuation(chain *c, const json_value *json, bert_error *error) {
  cut_behavior behavior = CUT_ISOLATED;
  bert_status status = read_behavior(json, 0, &behavior, error);
  return status == BERT_OK ? add_cut(c, STEP_CUT_PUNCTUATION, behavior, error) : status;
}

static bert_status load_digits(chain *c, const json_value *json, bert_error *error) {
  int each = 0;
  bert_status status = load_required_bool(json, "individual_digits", &each, error);
  if (status != BERT_OK) return status;
  return add_cut(c, STEP_CUT_NUMBERS, each ? CUT_ISOLATED : CUT_CONTIGUOUS, error);
}

static bert_status load_delimiter(chain *c, const json_value *json, bert_error *error) {
  bert_status status = add_cut(c, STEP_CUT_AT, CUT_REMOVED, error);
  if (status != BERT_OK) return status;
  return read_char(json, "delimiter", &c->steps[c->count - 1].c, error);
}

static bert_status load_split(chain *c, const json_value *json, bert_error *error) {
  step *s = NULL;
  bert_status status = chain_add(c, STEP_CUT_PATTERN, &s, error);
  if (status == BERT_OK) status = read_behavior(json, 1, &s->behavior, error);
  if (status == BERT_OK) status = load_required_bool(json, "invert", &s->flag, error);
  return status == BERT_OK ? read_pattern(s, json, error) : status;
}

/* When Metaspace puts its character before a part: 0 always, 1 only before the
** first, -1 never. Older files say add_prefix_space instead. */
static bert_status read_scheme(const json_value *json, int *out, bert_error *error) {
  const json_value *scheme = json_get(json, "prepend_scheme");
  int prefix = 1;
  bert_status status = json_get_bool(json, "add_prefix_space", &prefix, error);
  *out = 0;
  if (status != BERT_OK) return status;
  if (json_is(scheme, "first"))
    *out = 1;
  else if (json_is(scheme, "never"))
    *out = -1;
  else if (scheme != NULL && !json_is(scheme, "always"))
    return error_set(error, BERT_INVALID, "prepend_scheme must be always, first or never");
  if (!prefix && *out >= 0)
    return error_set(error, BERT_INVALID,
                     "add_prefix_space is false, which needs the prepend_scheme never");
  return BERT_OK;
}

static bert_status load_metaspace(chain *c, const json_value *json, bert_error *error) {
  int scheme = 0, split = 1;
  uint32_t replacement = 0;
  step *s = NULL;
  bert_status status = read_char(json, "replacement", &replacement, error);
  if (status == BERT_OK) status = read_scheme(json, &scheme, error);
  if (status == BERT_OK) status = json_get_bool(json, "split", &split, error);
  if (status == BERT_OK) status = chain_add(c, STEP_CHANGE, &s, error);
  if (status != BERT_OK) return status;
  s->c = replacement;
  if (scheme >= 0) {
    status = chain_add(c, STEP_PREFIX, &s, error);
    if (status != BERT_OK) return status;
    s->c = replacement;
    s->flag = scheme;
  }
  if (!split) return BERT_OK;
  status = add_cut(c, STEP_CUT_AT, CUT_MERGED_WITH_NEXT, error);
  if (status == BERT_OK) c->steps[c->count - 1].c = replacement;
  return status;
}

bert_status chain_add_byte_level(chain *c, int prefix, int cut, bert_error *error) {
  step *s = NULL;
  bert_status status = BERT_OK;
  if (prefix) {
    status = chain_add(c, STEP_PREFIX, &s, error);
    if (status == BERT_OK) s->c = ' ';
  }
  if (status == BERT_OK && cut) status = add(c, STEP_GPT2, error);
  return status == BERT_OK ? add(c, STEP_BYTES, error) : status;
}

static bert_status load_byte_level(chain *c, const json_value *json, bert_error *error) {
  int prefix = 0, trim = 0, cut = 1;
  bert_status status = load_required_bool(json, "add_prefix_space", &prefix, error);
  if (status == BERT_OK) status = load_required_bool(json, "trim_offsets", &trim, error);
  if (status == BERT_OK) status = json_get_bool(json, "use_regex", &cut, error);
  return status == BERT_OK ? chain_add_byte_level(c, prefix, cut, error) : status;
}

static bert_status load_pretokenizers(chain *c, const json_value *json, bert_error *error);

static const loader_entry pretokenizers[] = {
    {"BertPreTokenizer", load_bert_pretokenizer, STEP_CLEAN},
    {"Whitespace", NULL, STEP_CUT_WORDS},
    {"WhitespaceSplit", load_spaces, STEP_CUT_SPACES},
    {"ByteLevel", load_byte_level, STEP_BYTES},
    {"Metaspace", load_metaspace, STEP_PREFIX},
    {"Split", load_split, STEP_CUT_PATTERN},
    {"Punctuation", load_punctuation, STEP_CUT_PUNCTUATION},
    {"Digits", load_digits, STEP_CUT_NUMBERS},
    {"CharDelimiterSplit", load_delimiter, STEP_CUT_AT},
    {"Sequence", load_pretokenizers, STEP_CLEAN}};

static bert_status load_pretokenizer(chain *c, const json_value *json, bert_error *error) {
  return load_by_type(c, json, pretokenizers, sizeof pretokenizers / sizeof *pretokenizers, error);
}

static bert_status load_pretokenizers(chain *c, const json_value *json, bert_error *error) {
  return load_sequence(c, json, "pretokenizers", load_pretokenizer, error);
}

bert_status chain_load_pretokenizer(chain *c, const json_value *json, bert_error *error) {
  return load_pretokenizer(c, json, error);
}
