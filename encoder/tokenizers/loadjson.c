/*
** loadjson.c: tokenizer.json into a tokenizer.
**
** Each part names its type, and the function that reads it is chosen by that.
** Truncation, padding and decoder are not read: the token limit is the
** model's, and nothing is decoded.
*/
#include "load.h"

#include <string.h>

bert_status load_type(const json_value *part, const char **type, bert_error *error) {
  bert_status status;
  *type = NULL;
  if (part == NULL || part->type == JSON_NULL) return BERT_OK;
  if (part->type != JSON_OBJECT)
    return error_set(error, BERT_INVALID, "it is %s, not an object", json_type_name(part->type));
  status = json_get_string(part, "type", type, error);
  if (status == BERT_OK && *type == NULL) status = error_set(error, BERT_INVALID, "it has no type");
  return status;
}

bert_status load_required(const json_value *json, const char *key, json_type type,
                          const json_value **out, bert_error *error) {
  *out = json_get(json, key);
  if (*out == NULL) return error_set(error, BERT_INVALID, "%s is missing", key);
  if ((*out)->type != type)
    return error_set(error, BERT_INVALID, "%s is %s, not %s", key, json_type_name((*out)->type),
                     json_type_name(type));
  return BERT_OK;
}

bert_status load_required_bool(const json_value *json, const char *key, int *out,
                               bert_error *error) {
  const json_value *member = json_get(json, key);
  if (member == NULL) return error_set(error, BERT_INVALID, "%s is missing", key);
  if (member->type != JSON_TRUE && member->type != JSON_FALSE)
    return error_set(error, BERT_INVALID, "%s is %s, not true or false", key,
                     json_type_name(member->type));
  *out = member->type == JSON_TRUE;
  return BERT_OK;
}

bert_status load_list(const json_value *json, const char *key, const json_value **out,
                      bert_error *error) {
  return load_required(json, key, JSON_ARRAY, out, error);
}

/* ---- The short path ------------------------------------------------------------ */

bert_status load_bert_normalizer(const json_value *json, int *steps, bert_error *error) {
  int clean = 0, chinese = 0, lower = 0, strip;
  bert_status status = load_required_bool(json, "clean_text", &clean, error);
  if (status == BERT_OK) status = load_required_bool(json, "handle_chinese_chars", &chinese, error);
  if (status == BERT_OK) status = load_required_bool(json, "lowercase", &lower, error);
  strip = lower; /* what a null strip_accents means */
  if (status == BERT_OK) status = json_get_bool(json, "strip_accents", &strip, error);
  *steps = (clean ? NORMALIZER_CLEAN : 0) | (chinese ? NORMALIZER_CHINESE : 0) |
           (strip ? NORMALIZER_STRIP : 0) | (lower ? NORMALIZER_LOWER : 0);
  return status;
}

static int is_absent(const json_value *part) {
  return part == NULL || part->type == JSON_NULL;
}

/* Whether normalizer and pre-tokenizer are BERT's, or none, for WordPiece. */
static int is_short(const tokenizer *t, const json_value *before, const json_value *cut) {
  return t->model == MODEL_WORDPIECE &&
         (is_absent(before) || json_is(json_get(before, "type"), "BertNormalizer")) &&
         (is_absent(cut) || json_is(json_get(cut, "type"), "BertPreTokenizer"));
}

static bert_status load_text_steps(tokenizer *t, const json_value *root, int *steps,
                                   bert_error *error) {
  const json_value *before = json_get(root, "normalizer"), *cut = json_get(root, "pre_tokenizer");
  *steps = 0;
  if (is_short(t, before, cut)) {
    t->pretokenizer = is_absent(cut) ? PRETOKENIZER_NONE : PRETOKENIZER_BERT;
    if (is_absent(before) || load_bert_normalizer(before, steps, error) == BERT_OK) return BERT_OK;
    return error_prefix(error, "normalizer");
  }
  t->general = 1;
  if (chain_load_normalizer(&t->chain, before, error) != BERT_OK)
    return error_prefix(error, "normalizer");
  if (chain_load_pretokenizer(&t->chain, cut, error) != BERT_OK)
    return error_prefix(error, "pre_tokenizer");
  return BERT_OK;
}

/* ---- Added tokens ------------------------------------------------------------- */

bert_status load_added_token(const json_value *json, added_token *out, bert_error *error) {
  const json_value *content;
  bert_status status = BERT_OK;
  if (json->type != JSON_OBJECT)
    return error_set(error, BERT_INVALID, "an added token is %s, not an object",
                     json_type_name(json->type));
  status = load_required(json, "content", JSON_STRING, &content, error);
  if (status != BERT_OK) return status;
  out->content = (bert_text){content->string, content->size};
  status = load_required_bool(json, "single_word", &out->single_word, error);
  if (status == BERT_OK) status = load_required_bool(json, "lstrip", &out->lstrip, error);
  if (status == BERT_OK) status = load_required_bool(json, "rstrip", &out->rstrip, error);
  if (status == BERT_OK) status = load_required_bool(json, "normalized", &out->normalized, error);
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
  if (load_text_steps(t, root, steps, error) != BERT_OK) return error->status;
  if (postprocessor_load(&t->postprocessor, json_get(root, "post_processor"), error) != BERT_OK)
    return error_prefix(error, "post_processor");
  return load_added(t, json_get(root, "added_tokens"), error);
}
