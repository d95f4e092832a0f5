/*
** postprocessor.c: templates of special tokens around the segments.
**
** TemplateProcessing says them itself, BertProcessing is one of them; a new
** post-processor becomes two templates here.
*/
#include "load.h"

#include <string.h>

bert_status template_add(template *t, int segment, int64_t id, int64_t type, bert_error *error) {
  if (t->count == POSTPROCESSOR_MAX_PARTS)
    return error_set(error, BERT_INVALID, "a template has more than %d parts",
                     POSTPROCESSOR_MAX_PARTS);
  if (type < 0 || type > POSTPROCESSOR_MAX_TYPE)
    return error_set(error, BERT_INVALID, "a template has type id %lld; type ids are 0 to %d",
                     (long long)type, POSTPROCESSOR_MAX_TYPE);
  if (segment < 0 && (id < 0 || id > VOCABULARY_MAX_ID))
    return error_set(error, BERT_INVALID, "a template has token id %lld; ids are 0 to %d",
                     (long long)id, VOCABULARY_MAX_ID);
  if (!memory_grow((void **)&t->parts, t->count, &t->capacity, sizeof *t->parts))
    return error_nomem(error, "reading the post-processor");
  t->parts[t->count++] = (template_part){segment, (int32_t)id, (int32_t)type};
  if (segment < 0) t->special++;
  return BERT_OK;
}

static bert_status add_all(template *t, const template_part *parts, size_t count,
                           bert_error *error) {
  bert_status status = BERT_OK;
  for (size_t i = 0; i < count && status == BERT_OK; i++)
    status = template_add(t, parts[i].segment, parts[i].id, parts[i].type, error);
  return status;
}

bert_status postprocessor_plain(postprocessor *p, bert_error *error) {
  static const template_part parts[] = {{0, 0, 0}, {1, 0, 1}};
  bert_status status = add_all(&p->single, parts, 1, error);
  return status != BERT_OK ? status : add_all(&p->pair, parts, 2, error);
}

static bert_status check_ids(int64_t cls, int64_t sep, bert_error *error) {
  if (cls >= 0 && cls <= VOCABULARY_MAX_ID && sep >= 0 && sep <= VOCABULARY_MAX_ID) return BERT_OK;
  return error_set(error, BERT_INVALID, "cls has id %lld and sep %lld; ids are 0 to %d",
                   (long long)cls, (long long)sep, VOCABULARY_MAX_ID);
}

bert_status postprocessor_bert(postprocessor *p, int64_t cls, int64_t sep, bert_error *error) {
  template_part parts[] = {{-1, 0, 0}, {0, 0, 0}, {-1, 0, 0}, {1, 0, 1}, {-1, 0, 1}};
  bert_status status = check_ids(cls, sep, error);
  if (status != BERT_OK) return status;
  parts[0].id = (int32_t)cls;
  parts[2].id = parts[4].id = (int32_t)sep;
  status = add_all(&p->single, parts, 3, error);
  return status != BERT_OK ? status : add_all(&p->pair, parts, 5, error);
}

bert_status postprocessor_roberta(postprocessor *p, int64_t cls, int64_t sep, bert_error *error) {
  template_part parts[] = {{-1, 0, 0}, {0, 0, 0}, {-1, 0, 0}, {-1, 0, 0}, {1, 0, 0}, {-1, 0, 0}};
  bert_status status = check_ids(cls, sep, error);
  if (status != BERT_OK) return status;
  parts[0].id = (int32_t)cls;
  parts[2].id = parts[3].id = parts[5].id = (int32_t)sep;
  status = add_all(&p->single, parts, 3, error);
  return status != BERT_OK ? status : add_all(&p->pair, parts, 6, error);
}

bert_status postprocessor_add_trim(postprocessor *p, int prefix_space, bert_error *error) {
  if (p->trims == POSTPROCESSOR_MAX_TRIMS)
    return error_set(error, BERT_UNSUPPORTED, "more than %d parts trim offsets",
                     POSTPROCESSOR_MAX_TRIMS);
  p->prefix_space[p->trims++] = prefix_space;
  return BERT_OK;
}

/* ---- From tokenizer.json --------------------------------------------------- */

/* Adds the ids that special_tokens lists for the name `id`. */
static bert_status load_special(template *t, const json_value *tokens, const char *id, int64_t type,
                                bert_error *error) {
  const json_value *token = json_get(tokens, id), *ids = json_get(token, "ids");
  const json_value *texts = json_get(token, "tokens");
  bert_status status = BERT_OK;
  if (token == NULL)
    return error_set(error, BERT_INVALID, "a template uses \"%.60s\", which special_tokens lacks",
                     id);
  if (ids == NULL || ids->type != JSON_ARRAY || texts == NULL || texts->type != JSON_ARRAY ||
      ids->size != texts->size)
    return error_set(error, BERT_INVALID,
                     "special token \"%.60s\" needs ids and tokens, arrays of equal length", id);
  for (const json_value *i = ids->first; i != NULL && status == BERT_OK; i = i->next) {
    if (!i->is_integer)
      return error_set(error, BERT_INVALID, "special token \"%.60s\" has an id that is no integer",
                       id);
    status = template_add(t, -1, i->integer, type, error);
  }
  return status;
}

/* {"SpecialToken": {"id": "[CLS]", "type_id": 0}} or {"Sequence": {"id": "A", …}} */
static bert_status load_part(template *t, const json_value *part, const json_value *tokens,
                             bert_error *error) {
  const json_value *special = json_get(part, "SpecialToken");
  const json_value *sequence = json_get(part, "Sequence");
  const json_value *body = special != NULL ? special : sequence;
  const char *id = NULL;
  int64_t type = -1;
  bert_status status;
  if (body == NULL || body->type != JSON_OBJECT)
    return error_set(error, BERT_INVALID,
                     "a part of a template is neither a SpecialToken nor a Sequence");
  status = json_get_string(body, "id", &id, error);
  if (status == BERT_OK)
    status = json_get_int(body, "type_id", 0, POSTPROCESSOR_MAX_TYPE, &type, error);
  if (status != BERT_OK) return status;
  if (id == NULL || type < 0)
    return error_set(error, BERT_INVALID, "a part of a template lacks id or type_id");
  if (special != NULL) return load_special(t, tokens, id, type, error);
  if ((id[0] != 'A' && id[0] != 'B') || id[1] != '\0')
    return error_set(error, BERT_INVALID, "a template has sequence \"%.60s\"; there are A and B",
                     id);
  return template_add(t, id[0] - 'A', 0, type, error);
}

static size_t count_segment(const template *t, int segment) {
  size_t count = 0;
  for (size_t i = 0; i < t->count; i++) count += t->parts[i].segment == segment;
  return count;
}

/* Reads the template `key`, which is to have each of its segments once. */
static bert_status load_template(template *t, const json_value *json, const char *key,
                                 size_t segments, bert_error *error) {
  const json_value *parts = json_get(json, key);
  bert_status status = BERT_OK;
  if (parts == NULL || parts->type != JSON_ARRAY)
    return error_set(error, BERT_INVALID, "TemplateProcessing needs \"%s\", an array", key);
  for (const json_value *part = parts->first; part != NULL && status == BERT_OK; part = part->next)
    status = load_part(t, part, json_get(json, "special_tokens"), error);
  if (status != BERT_OK) return error_prefix(error, "%s", key);
  if (count_segment(t, 0) != 1 || count_segment(t, 1) != segments - 1)
    return error_set(error, BERT_INVALID, "the template \"%s\" must have %s", key,
                     segments == 1 ? "sequence A once and no other"
                                   : "sequences A and B once each");
  return BERT_OK;
}

/* The id in ["[SEP]", 102]; -1 if it is not of that form. */
static int64_t pair_id(const json_value *json) {
  if (json == NULL || json->type != JSON_ARRAY || json->size != 2) return -1;
  if (json->first->type != JSON_STRING || !json->first->next->is_integer) return -1;
  return json->first->next->integer;
}

/* Adds a trim if "trim_offsets" says so. */
static bert_status load_trim(postprocessor *p, const json_value *json, bert_error *error) {
  int trim = 0, prefix = 0;
  bert_status status = load_required_bool(json, "trim_offsets", &trim, error);
  if (status == BERT_OK) status = load_required_bool(json, "add_prefix_space", &prefix, error);
  return status == BERT_OK && trim ? postprocessor_add_trim(p, prefix, error) : status;
}

static bert_status load_special_parts(postprocessor *p, const json_value *json, const char *type,
                                      bert_error *error) {
  int64_t cls = pair_id(json_get(json, "cls")), sep = pair_id(json_get(json, "sep"));
  bert_status status = BERT_OK;
  if (p->single.count > 0)
    return error_set(error, BERT_UNSUPPORTED, "two parts add special tokens, the second being %s",
                     type);
  if (strcmp(type, "BertProcessing") == 0) return postprocessor_bert(p, cls, sep, error);
  if (strcmp(type, "RobertaProcessing") == 0) {
    status = load_trim(p, json, error);
    return status == BERT_OK ? postprocessor_roberta(p, cls, sep, error) : status;
  }
  status = load_template(&p->single, json, "single", 1, error);
  return status != BERT_OK ? status : load_template(&p->pair, json, "pair", 2, error);
}

static bert_status load_part_of(postprocessor *p, const json_value *json, bert_error *error) {
  static const char *const adding[] = {"TemplateProcessing", "BertProcessing", "RobertaProcessing"};
  const json_value *list;
  const char *type = NULL;
  bert_status status = load_type(json, &type, error);
  if (status != BERT_OK || type == NULL) return status;
  for (size_t i = 0; i < sizeof adding / sizeof *adding; i++)
    if (strcmp(type, adding[i]) == 0) return load_special_parts(p, json, type, error);
  if (strcmp(type, "ByteLevel") == 0) return load_trim(p, json, error);
  if (strcmp(type, "Sequence") != 0)
    return error_set(error, BERT_UNSUPPORTED,
                     "the type \"%.60s\" is not supported; there are TemplateProcessing, "
                     "BertProcessing, RobertaProcessing, ByteLevel and Sequence",
                     type);
  status = load_list(json, "processors", &list, error);
  if (status != BERT_OK) return status;
  for (const json_value *i = list->first; i != NULL && status == BERT_OK; i = i->next)
    status = load_part_of(p, i, error);
  return status;
}

bert_status postprocessor_load(postprocessor *p, const json_value *json, bert_error *error) {
  bert_status status = load_part_of(p, json, error);
  if (status != BERT_OK || p->single.count > 0) return status;
  return postprocessor_plain(p, error);
}

void postprocessor_free(postprocessor *p) {
  memory_free(p->single.parts);
  memory_free(p->pair.parts);
  memory_free(p->margins);
}
