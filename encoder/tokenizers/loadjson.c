/*
** loadjson.c: tokenizer.json into a tokenizer.
**
** Each part names its type, and the function that reads it is chosen by that.
** Truncation, padding and decoder are not read: the token limit is the
** model's, and nothing is decoded.
*/
#include "pipeline.h"

#include <string.h>

/* The type of a part: NULL when the part is null or absent. */
static bert_status part_type(const json_value *part, const char **type, bert_error *error) {
  bert_status status;
  *type = NULL;
  if (part == NULL || part->type == JSON_NULL) return BERT_OK;
  if (part->type != JSON_OBJECT)
    return error_set(error, BERT_INVALID, "it is %s, not an object", json_type_name(part->type));
  status = json_get_string(part, "type", type, error);
  if (status == BERT_OK && *type == NULL) status = error_set(error, BERT_INVALID, "it has no type");
  return status;
}

/* A member that must be there. */
static bert_status required(const json_value *json, const char *key, json_type type,
                            const json_value **out, bert_error *error) {
  *out = json_get(json, key);
  if (*out == NULL) return error_set(error, BERT_INVALID, "%s is missing", key);
  if ((*out)->type != type)
    return error_set(error, BERT_INVALID, "%s is %s, not %s", key, json_type_name((*out)->type),
                     json_type_name(type));
  return BERT_OK;
}

static bert_status required_bool(const json_value *json, const char *key, int *out,
                                 bert_error *error) {
  const json_value *member = json_get(json, key);
  if (member == NULL) return error_set(error, BERT_INVALID, "%s is missing", key);
  if (member->type != JSON_TRUE && member->type != JSON_FALSE)
    return error_set(error, BERT_INVALID, "%s is %s, not true or false", key,
                     json_type_name(member->type));
  *out = member->type == JSON_TRUE;
  return BERT_OK;
}

/* ---- Normalizer, pre-tokenizer ---------------------------------------------- */

static bert_status load_bert_normalizer(const json_value *json, int *steps, bert_error *error) {
  int clean = 0, chinese = 0, lower = 0, strip;
  bert_status status = required_bool(json, "clean_text", &clean, error);
  if (status == BERT_OK) status = required_bool(json, "handle_chinese_chars", &chinese, error);
  if (status == BERT_OK) status = required_bool(json, "lowercase", &lower, error);
  strip = lower; /* what a null strip_accents means */
  if (status == BERT_OK) status = json_get_bool(json, "strip_accents", &strip, error);
  *steps = (clean ? NORMALIZER_CLEAN : 0) | (chinese ? NORMALIZER_CHINESE : 0) |
           (strip ? NORMALIZER_STRIP : 0) | (lower ? NORMALIZER_LOWER : 0);
  return status;
}

static bert_status load_normalizer(const json_value *json, int *steps, bert_error *error) {
  const char *type;
  bert_status status = part_type(json, &type, error);
  *steps = 0;
  if (status != BERT_OK || type == NULL) return status;
  if (strcmp(type, "BertNormalizer") == 0) return load_bert_normalizer(json, steps, error);
  return error_set(error, BERT_UNSUPPORTED,
                   "the type \"%.60s\" is not supported; there is BertNormalizer", type);
}

static bert_status load_pretokenizer(const json_value *json, pretokenizer_kind *out,
                                     bert_error *error) {
  const char *type;
  bert_status status = part_type(json, &type, error);
  *out = PRETOKENIZER_NONE;
  if (status != BERT_OK || type == NULL) return status;
  *out = PRETOKENIZER_BERT;
  if (strcmp(type, "BertPreTokenizer") == 0) return BERT_OK;
  return error_set(error, BERT_UNSUPPORTED,
                   "the type \"%.60s\" is not supported; there is BertPreTokenizer", type);
}

/* ---- Model ------------------------------------------------------------------- */

static bert_status load_vocabulary(vocabulary *v, const json_value *json, bert_error *error) {
  bert_status status = BERT_OK;
  for (const json_value *i = json->first; i != NULL && status == BERT_OK; i = i->next) {
    if (!i->is_integer)
      return error_set(error, BERT_INVALID, "the id of token \"%.60s\" is no integer", i->key);
    status = vocabulary_add(v, (bert_text){i->key, i->key_size}, i->integer, error);
  }
  return status == BERT_OK ? vocabulary_close(v, error) : status;
}

static bert_status load_wordpiece(tokenizer *t, const json_value *json, bert_error *error) {
  const json_value *unknown, *prefix, *limit, *strings;
  uint32_t node;
  bert_status status = required(json, "unk_token", JSON_STRING, &unknown, error);
  if (status == BERT_OK)
    status = required(json, "continuing_subword_prefix", JSON_STRING, &prefix, error);
  if (status == BERT_OK)
    status = required(json, "max_input_chars_per_word", JSON_NUMBER, &limit, error);
  if (status == BERT_OK) status = required(json, "vocab", JSON_OBJECT, &strings, error);
  if (status != BERT_OK) return status;
  if (!limit->is_integer || limit->integer < 0)
    return error_set(error, BERT_INVALID,
                     "max_input_chars_per_word is %.17g; it must be an integer and not negative",
                     limit->number);
  if (limit->integer > WORDPIECE_MAX_CHARS)
    return error_set(error, BERT_UNSUPPORTED,
                     "max_input_chars_per_word is %lld; at most %d is supported",
                     (long long)limit->integer, WORDPIECE_MAX_CHARS);
  status = load_vocabulary(&t->vocabulary, strings, error);
  if (status != BERT_OK) return status;
  t->wordpiece.max_chars = (size_t)limit->integer;
  t->wordpiece.unknown = vocabulary_id(&t->vocabulary, (bert_text){unknown->string, unknown->size});
  if (t->wordpiece.unknown < 0)
    return error_set(error, BERT_INVALID, "the unknown token \"%.60s\" is not in the vocabulary",
                     unknown->string);
  node = t->vocabulary.trie.root;
  for (size_t i = 0; i < prefix->size && node != TRIE_NONE; i++)
    node = trie_step(&t->vocabulary.trie, node, (unsigned char)prefix->string[i]);
  t->wordpiece.continuation = node;
  return BERT_OK;
}

/* Files of the first years have no type: theirs is seen from the members. */
static int looks_like_wordpiece(const json_value *json) {
  return json_get(json, "type") == NULL && json_get(json, "merges") == NULL &&
         json_get(json, "continuing_subword_prefix") != NULL &&
         json_get(json, "max_input_chars_per_word") != NULL;
}

static bert_status load_model(tokenizer *t, const json_value *json, bert_error *error) {
  const char *type = "WordPiece";
  bert_status status = BERT_OK;
  if (json == NULL || json->type == JSON_NULL)
    return error_set(error, BERT_INVALID, "it is missing");
  if (!looks_like_wordpiece(json)) status = part_type(json, &type, error);
  if (status != BERT_OK) return status;
  t->model = MODEL_WORDPIECE;
  if (strcmp(type, "WordPiece") == 0) return load_wordpiece(t, json, error);
  return error_set(error, BERT_UNSUPPORTED,
                   "the type \"%.60s\" is not supported; there is WordPiece", type);
}

/* ---- Added tokens ------------------------------------------------------------- */

bert_status load_added_token(const json_value *json, added_token *out, bert_error *error) {
  const json_value *content;
  bert_status status = BERT_OK;
  if (json->type != JSON_OBJECT)
    return error_set(error, BERT_INVALID, "an added token is %s, not an object",
                     json_type_name(json->type));
  status = required(json, "content", JSON_STRING, &content, error);
  if (status != BERT_OK) return status;
  out->content = (bert_text){content->string, content->size};
  status = required_bool(json, "single_word", &out->single_word, error);
  if (status == BERT_OK) status = required_bool(json, "lstrip", &out->lstrip, error);
  if (status == BERT_OK) status = required_bool(json, "rstrip", &out->rstrip, error);
  if (status == BERT_OK) status = required_bool(json, "normalized", &out->normalized, error);
  if (status != BERT_OK) return error_prefix(error, "added token \"%.60s\"", content->string);
  return BERT_OK;
}

static bert_status load_added(tokenizer *t, const json_value *list, bert_error *error) {
  bert_status status = BERT_OK;
  if (list == NULL || list->type == JSON_NULL) return BERT_OK;
  if (list->type != JSON_ARRAY)
    return error_set(error, BERT_INVALID, "added_tokens is %s, not an array",
                     json_type_name(list->type));
  for (const json_value *i = list->first; i != NULL && status == BERT_OK; i = i->next) {
    const json_value *id = json_get(i, "id");
    added_token token = {0};
    status = load_added_token(i, &token, error);
    if (status != BERT_OK) return status;
    if (id == NULL || !id->is_integer || id->integer < 0 || id->integer > VOCABULARY_MAX_ID)
      return error_set(error, BERT_INVALID,
                       "added token \"%.60s\" needs an id, an integer from 0 to %d",
                       token.content.data, VOCABULARY_MAX_ID);
    status = added_add(&t->added, &t->vocabulary, &token, id->integer, error);
  }
  return status;
}

bert_status load_tokenizer_json(tokenizer *t, const json_value *root, int *steps,
                                bert_error *error) {
  const json_value *version = json_get(root, "version");
  if (version != NULL && !json_is(version, "1.0"))
    return error_set(error, BERT_UNSUPPORTED, "its version is not \"1.0\"");
  if (load_model(t, json_get(root, "model"), error) != BERT_OK) return error_prefix(error, "model");
  if (load_normalizer(json_get(root, "normalizer"), steps, error) != BERT_OK)
    return error_prefix(error, "normalizer");
  if (load_pretokenizer(json_get(root, "pre_tokenizer"), &t->pretokenizer, error) != BERT_OK)
    return error_prefix(error, "pre_tokenizer");
  if (postprocessor_load(&t->postprocessor, json_get(root, "post_processor"), error) != BERT_OK)
    return error_prefix(error, "post_processor");
  return load_added(t, json_get(root, "added_tokens"), error);
}
