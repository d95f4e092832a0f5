/*
** loadmodel.c: "model" of tokenizer.json.
*/
#include "load.h"

#include <string.h>

/* ---- WordPiece ------------------------------------------------------------------ */

bert_status load_vocabulary(vocabulary *v, const json_value *json, bert_error *error) {
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
  bert_status status = load_required(json, "unk_token", JSON_STRING, &unknown, error);
  if (status == BERT_OK)
    status = load_required(json, "continuing_subword_prefix", JSON_STRING, &prefix, error);
  if (status == BERT_OK)
    status = load_required(json, "max_input_chars_per_word", JSON_NUMBER, &limit, error);
  if (status == BERT_OK) status = load_required(json, "vocab", JSON_OBJECT, &strings, error);
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
  t->wordpiece.continuation = trie_walk(&t->vocabulary.trie, t->vocabulary.trie.root,
                                        (bert_text){prefix->string, prefix->size});
  return BERT_OK;
}

/* ---- BPE ------------------------------------------------------------------------ */

/* An optional string, copied. */
static bert_status load_affix(const json_value *json, const char *key, bert_text *out,
                              bert_error *error) {
  const json_value *text = json_get(json, key);
  if (text == NULL || text->type == JSON_NULL) return BERT_OK;
  if (text->type != JSON_STRING)
    return error_set(error, BERT_INVALID, "%s is %s, not a string", key,
                     json_type_name(text->type));
  out->data = memory_copy_text(text->string, text->size);
  if (out->data == NULL) return error_nomem(error, "reading the model");
  out->size = text->size;
  return BERT_OK;
}

static bert_status load_dropout(const json_value *json, bert_error *error) {
  double dropout = 0;
  bert_status status = json_get_number(json, "dropout", 0, 1, &dropout, error);
  if (status != BERT_OK || dropout == 0) return status;
  return error_set(error, BERT_UNSUPPORTED,
                   "dropout is %g, which is not supported: it makes tokens random", dropout);
}

static bert_status load_bpe_options(bpe *m, const json_value *json, bert_error *error) {
  bert_status status = load_dropout(json, error);
  if (status == BERT_OK) status = load_affix(json, "continuing_subword_prefix", &m->prefix, error);
  if (status == BERT_OK) status = load_affix(json, "end_of_word_suffix", &m->suffix, error);
  if (status == BERT_OK) status = json_get_bool(json, "fuse_unk", &m->fuse_unknown, error);
  if (status == BERT_OK) status = json_get_bool(json, "byte_fallback", &m->byte_fallback, error);
  if (status == BERT_OK) status = json_get_bool(json, "ignore_merges", &m->ignore_merges, error);
  return status;
}

int load_is_version(bert_text line) {
  static const char mark[] = "#version";
  size_t size = sizeof mark - 1;
  return line.size >= size && memcmp(line.data, mark, size) == 0;
}

int load_split_merge(bert_text line, bert_text *left, bert_text *right) {
  const char *space = line.size > 0 ? memchr(line.data, ' ', line.size) : NULL;
  if (space == NULL) return 0;
  *left = (bert_text){line.data, (size_t)(space - line.data)};
  *right = (bert_text){space + 1, line.size - left->size - 1};
  return memchr(right->data, ' ', right->size) == NULL;
}

/* The two sides of a merge: ["a", "b"], or "a b". */
static bert_status merge_sides(const json_value *json, bert_text *left, bert_text *right,
                               bert_error *error) {
  if (json->type == JSON_ARRAY && json->size == 2 && json->first->type == JSON_STRING &&
      json->first->next->type == JSON_STRING) {
    *left = (bert_text){json->first->string, json->first->size};
    *right = (bert_text){json->first->next->string, json->first->next->size};
    return BERT_OK;
  }
  if (json->type != JSON_STRING)
    return error_set(error, BERT_INVALID, "a merge is neither a pair of strings nor a string");
  if (load_split_merge((bert_text){json->string, json->size}, left, right)) return BERT_OK;
  return error_set(error, BERT_INVALID, "the merge \"%.60s\" is not two strings and a space",
                   json->string);
}

/* For an error: a text that need not end with NUL. */
static quoted quote(bert_text text) {
  char copy[64];
  size_t size = text.size < sizeof copy - 1 ? text.size : sizeof copy - 1;
  memcpy(copy, text.data, size);
  copy[size] = '\0';
  return error_quote(copy);
}

bert_status load_merge(tokenizer *t, bert_text left, bert_text right, uint32_t rank,
                       bert_error *error) {
  const vocabulary *v = &t->vocabulary;
  int32_t a = vocabulary_id(v, left), b = vocabulary_id(v, right), merged = -1;
  size_t prefix = t->bpe.prefix.size;
  uint32_t node = v->trie.root;
  if (a < 0 || b < 0)
    return error_set(error, BERT_INVALID, "a merge names \"%s\", which is not in the vocabulary",
                     quote(a < 0 ? left : right).text);
  if (right.size >= prefix) {
    node = trie_walk(&v->trie, node, left);
    node = trie_walk(&v->trie, node, (bert_text){right.data + prefix, right.size - prefix});
    if (node != TRIE_NONE && node != v->trie.root) merged = v->trie.slots[node].value;
  }
  if (merged < 0)
    return error_set(error, BERT_INVALID,
                     "the merge of \"%s\" and \"%s\" gives what is not in the vocabulary",
                     quote(left).text, quote(right).text);
  bpe_add_merge(&t->bpe, a, b, rank, merged);
  return BERT_OK;
}

static bert_status load_merges(tokenizer *t, const json_value *list, bert_error *error) {
  uint32_t rank = 0;
  bert_status status = bpe_allocate(&t->bpe, list->size, error);
  for (const json_value *i = list->first; i != NULL && status == BERT_OK; i = i->next) {
    bert_text left, right;
    if (i->type == JSON_STRING && load_is_version((bert_text){i->string, i->size})) continue;
    status = merge_sides(i, &left, &right, error);
    if (status == BERT_OK) status = load_merge(t, left, right, rank++, error);
  }
  return status;
}

bert_status load_bpe_unknown(tokenizer *t, bert_text unknown, bert_error *error) {
  t->bpe.unknown = unknown.data == NULL ? -1 : vocabulary_id(&t->vocabulary, unknown);
  t->bpe.lost_unknown = unknown.data != NULL && t->bpe.unknown < 0;
  return bpe_close(&t->bpe, &t->vocabulary, error);
}

static bert_status load_bpe(tokenizer *t, const json_value *json, bert_error *error) {
  const json_value *strings, *merges, *unknown = json_get(json, "unk_token");
  bert_text name = {0};
  bert_status status = load_required(json, "vocab", JSON_OBJECT, &strings, error);
  t->model = MODEL_BPE;
  if (status == BERT_OK) status = load_list(json, "merges", &merges, error);
  if (status == BERT_OK && unknown != NULL && unknown->type == JSON_STRING)
    name = (bert_text){unknown->string, unknown->size};
  else if (status == BERT_OK && unknown != NULL && unknown->type != JSON_NULL)
    status = error_set(error, BERT_INVALID, "unk_token is %s, not a string",
                       json_type_name(unknown->type));
  if (status == BERT_OK) status = load_bpe_options(&t->bpe, json, error);
  if (status == BERT_OK) status = load_vocabulary(&t->vocabulary, strings, error);
  if (status == BERT_OK) status = load_merges(t, merges, error);
  return status == BERT_OK ? load_bpe_unknown(t, name, error) : status;
}

/* ---- Unigram --------------------------------------------------------------------- */

/* ["▁the", -3.5] */
static bert_status load_scored(tokenizer *t, const json_value *json, int64_t id,
                               bert_error *error) {
  const json_value *score = json->type == JSON_ARRAY && json->size == 2 ? json->first->next : NULL;
  if (score == NULL || json->first->type != JSON_STRING || score->type != JSON_NUMBER)
    return error_set(error, BERT_INVALID, "token %lld is not a string and a score", (long long)id);
  t->unigram.scores[id] = score->number;
  return vocabulary_add(&t->vocabulary, (bert_text){json->first->string, json->first->size}, id,
                        error);
}

static bert_status load_unigram(tokenizer *t, const json_value *json, bert_error *error) {
  const json_value *list, *unknown;
  int64_t id = 0;
  bert_status status = load_list(json, "vocab", &list, error);
  t->model = MODEL_UNIGRAM;
  if (status == BERT_OK)
    status = json_get_bool(json, "byte_fallback", &t->unigram.byte_fallback, error);
  if (status != BERT_OK) return status;
  t->unigram.scores = memory_alloc(memory_product(list->size, sizeof *t->unigram.scores));
  if (t->unigram.scores == NULL) return error_nomem(error, "reading the vocabulary");
  for (const json_value *i = list->first; i != NULL && status == BERT_OK; i = i->next)
    status = load_scored(t, i, id++, error);
  if (status == BERT_OK) status = vocabulary_close(&t->vocabulary, error);
  if (status != BERT_OK) return status;
  unknown = json_get(json, "unk_id");
  if (unknown == NULL || !unknown->is_integer || unknown->integer < 0 || unknown->integer >= id)
    return error_set(error, BERT_INVALID,
                     "unk_id must be the id of a token, an integer from 0 to %lld",
                     (long long)id - 1);
  t->unigram.unknown = (int32_t)unknown->integer;
  t->unigram.count = (size_t)id;
  unigram_close(&t->unigram, &t->vocabulary);
  return BERT_OK;
}

/* ---- Which of them ------------------------------------------------------------------ */

/* Files of the first years have no type: theirs is seen from the members, in the
** order in which the reference tries them. */
static const char *guess_type(const json_value *json) {
  const json_value *strings = json_get(json, "vocab");
  if (json_get(json, "merges") != NULL) return "BPE";
  if (json_get(json, "continuing_subword_prefix") != NULL &&
      json_get(json, "max_input_chars_per_word") != NULL)
    return "WordPiece";
  return strings != NULL && strings->type == JSON_ARRAY ? "Unigram" : NULL;
}

bert_status load_model(tokenizer *t, const json_value *json, bert_error *error) {
  const char *type = NULL;
  bert_status status = BERT_OK;
  if (json == NULL || json->type == JSON_NULL)
    return error_set(error, BERT_INVALID, "it is missing");
  if (json_get(json, "type") == NULL) type = guess_type(json);
  if (type == NULL) status = load_type(json, &type, error);
  if (status != BERT_OK) return status;
  t->model = MODEL_WORDPIECE;
  if (strcmp(type, "WordPiece") == 0) return load_wordpiece(t, json, error);
  if (strcmp(type, "BPE") == 0) return load_bpe(t, json, error);
  if (strcmp(type, "Unigram") == 0) return load_unigram(t, json, error);
  return error_set(error, BERT_UNSUPPORTED,
                   "the type \"%.60s\" is not supported; there are WordPiece, BPE and Unigram",
                   type);
}
