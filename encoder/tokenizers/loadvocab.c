/*
** loadvocab.c: vocab.txt and tokenizer_config.json into a tokenizer, as
** transformers' BertTokenizer reads them when there is no tokenizer.json.
*/
#include "../files/files.h"
#include "load.h"

#include <string.h>

enum { VOCAB_MAX_BYTES = 256 << 20 };

/* The end of the line that begins at `at`, and in *next where the one after it
** begins: Python's universal newlines. */
static size_t line_end(const char *text, size_t size, size_t at, size_t *next) {
  size_t end = at;
  while (end < size && text[end] != '\n' && text[end] != '\r') end++;
  *next = end < size ? end + 1 : size;
  if (end + 1 < size && text[end] == '\r' && text[end + 1] == '\n') *next = end + 2;
  return end;
}

static bert_status read_lines(vocabulary *v, char *text, size_t size, bert_error *error) {
  int64_t line = 0;
  for (size_t at = 0, next = 0; at < size; at = next, line++) {
    size_t end = line_end(text, size, at, &next);
    bert_status status;
    if (!unicode_is_utf8(text + at, end - at))
      return error_set(error, BERT_INVALID, "line %lld is not UTF-8", (long long)line + 1);
    text[end] = '\0'; /* for error texts; the file has one more byte */
    status = vocabulary_add(v, (bert_text){text + at, end - at}, line, error);
    if (status != BERT_OK) return status;
  }
  return vocabulary_close(v, error);
}

/* The token of a content, or NULL. */
static const added_token *find_added(const tokenizer *t, bert_text content) {
  for (size_t i = 0; i < t->added.count; i++)
    if (t->added.tokens[i].content.size == content.size &&
        memcmp(t->added.tokens[i].content.data, content.data, content.size) == 0)
      return &t->added.tokens[i];
  return NULL;
}

/* A special token that the file gives as its text or as an object. A text alone
** changes nothing of a token that is there already. */
static bert_status add_special(tokenizer *t, const json_value *json, const char *text, int32_t *id,
                               bert_error *error) {
  added_token token = {0};
  bert_status status = BERT_OK;
  int described = json != NULL && json->type == JSON_OBJECT;
  if (described)
    status = load_added_token(json, &token, error);
  else if (json != NULL && json->type == JSON_STRING)
    token.content = (bert_text){json->string, json->size};
  else if (json == NULL || json->type == JSON_NULL)
    token.content = (bert_text){text, strlen(text)};
  else
    status = error_set(error, BERT_INVALID, "it is %s, not a string", json_type_name(json->type));
  if (status == BERT_OK && token.content.size == 0)
    status = error_set(error, BERT_INVALID, "it is empty");
  if (status == BERT_OK && (described || find_added(t, token.content) == NULL))
    status = added_add(&t->added, &t->vocabulary, &token, -1, error);
  if (status == BERT_OK) *id = find_added(t, token.content)->id;
  return status;
}

/* added_tokens_decoder: {"103": {"content": "[MASK]", …}, …} */
static bert_status add_decoder(tokenizer *t, const json_value *json, bert_error *error) {
  if (json == NULL || json->type != JSON_OBJECT) return BERT_OK;
  for (const json_value *i = json->first; i != NULL; i = i->next) {
    added_token token = {0};
    bert_status status = load_added_token(i, &token, error);
    if (status == BERT_OK) status = added_add(&t->added, &t->vocabulary, &token, -1, error);
    if (status != BERT_OK) return status;
  }
  return BERT_OK;
}

/* special_tokens_map.json counts where there is no added_tokens_decoder. */
static bert_status add_specials(tokenizer *t, const json_value *config, const json_value *map,
                                const char *const names[][2], int32_t *ids, bert_error *error) {
  const json_value *decoder = json_get(config, "added_tokens_decoder");
  if (add_decoder(t, decoder, error) != BERT_OK) return error_prefix(error, "added_tokens_decoder");
  for (int i = 0; names[i][0] != NULL; i++) {
    const json_value *own = decoder == NULL ? json_get(map, names[i][0]) : NULL;
    if (own == NULL) own = json_get(config, names[i][0]);
    if (add_special(t, own, names[i][1], &ids[i], error) != BERT_OK)
      return error_prefix(error, "%s", names[i][0]);
  }
  return BERT_OK;
}

bert_status load_special_tokens(tokenizer *t, const char *directory, const json_value *config,
                                const char *const names[][2], int32_t *ids, bert_error *error) {
  json_document *map = NULL;
  bert_status status = load_json_file(t, directory, "special_tokens_map.json", &map, error);
  if (status != BERT_OK) return status;
  status = add_specials(t, config, map == NULL ? NULL : json_root(map), names, ids, error);
  json_free(map);
  return status == BERT_OK ? BERT_OK : error_prefix(error, "%s: special tokens", directory);
}

/* ---- vocab.txt ------------------------------------------------------------------ */

/* The special tokens, and the templates made of them. */
static bert_status add_tokens(tokenizer *t, const char *directory, const json_value *config,
                              bert_error *error) {
  static const char *const names[][2] = {{"unk_token", "[UNK]"},   {"sep_token", "[SEP]"},
                                         {"pad_token", "[PAD]"},   {"cls_token", "[CLS]"},
                                         {"mask_token", "[MASK]"}, {NULL, NULL}};
  int32_t ids[5] = {0};
  bert_status status = load_special_tokens(t, directory, config, names, ids, error);
  if (status != BERT_OK) return status;
  t->wordpiece.unknown = ids[0];
  if (vocabulary_text(&t->vocabulary, ids[0]).data == NULL)
    return error_set(error, BERT_INVALID, "the unknown token is not in vocab.txt");
  return postprocessor_bert(&t->postprocessor, ids[3], ids[1], error);
}

static bert_status read_config(tokenizer *t, const char *directory, const json_value *config,
                               int *steps, bert_error *error) {
  int lower = 1, chinese = 1, strip;
  bert_status status = json_get_bool(config, "do_lower_case", &lower, error);
  if (status == BERT_OK) status = json_get_bool(config, "tokenize_chinese_chars", &chinese, error);
  strip = lower;
  if (status == BERT_OK) status = json_get_bool(config, "strip_accents", &strip, error);
  *steps = NORMALIZER_CLEAN | (chinese ? NORMALIZER_CHINESE : 0) | (strip ? NORMALIZER_STRIP : 0) |
           (lower ? NORMALIZER_LOWER : 0);
  if (status == BERT_OK) status = add_tokens(t, directory, config, error);
  return status;
}

bert_status load_vocab_txt(tokenizer *t, const char *directory, int *steps, bert_error *error) {
  char *text = NULL;
  size_t size = 0;
  json_document *config = NULL;
  unsigned char digest[DIGEST_BYTES];
  bert_status status = file_read(directory, "vocab.txt", VOCAB_MAX_BYTES, 1, &text, &size, error);
  if (status != BERT_OK) return status;
  if (text == NULL)
    return error_set(error, BERT_IO,
                     "%s has no tokenizer.json, no vocab.txt, and no vocab.json with merges.txt; "
                     "save_pretrained of a fast tokenizer of transformers writes a tokenizer.json, "
                     "also where there is only a SentencePiece file",
                     directory);
  digest_bytes(text, size, digest);
  digest_add(&t->files, digest, sizeof digest);
  status = read_lines(&t->vocabulary, text, size, error);
  memory_free(text);
  if (status != BERT_OK) return error_prefix(error, "%s/vocab.txt", directory);
  t->model = MODEL_WORDPIECE;
  t->pretokenizer = PRETOKENIZER_BERT;
  t->wordpiece.max_chars = 100;
  t->wordpiece.continuation =
      trie_walk(&t->vocabulary.trie, t->vocabulary.trie.root, (bert_text){"##", 2});
  status = load_json_file(t, directory, "tokenizer_config.json", &config, error);
  if (status != BERT_OK) return status;
  status = read_config(t, directory, config == NULL ? NULL : json_root(config), steps, error);
  json_free(config);
  if (status != BERT_OK) return error_prefix(error, "%s/tokenizer_config.json", directory);
  return BERT_OK;
}
