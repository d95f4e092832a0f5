/*
** loadmerges.c: vocab.json, merges.txt and tokenizer_config.json into a tokenizer, as
** transformers' RobertaTokenizer reads them when there is no tokenizer.json.
*/
#include "../files/files.h"
#include "load.h"

#include <string.h>

enum { MERGES_MAX_BYTES = 256 << 20 };

static size_t count_lines(const char *text, size_t size) {
  size_t lines = 1;
  for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
  return lines;
}

static bert_status add_line(tokenizer *t, bert_text line, uint32_t rank, bert_error *error) {
  bert_text left, right;
  if (!load_split_merge(line, &left, &right))
    return error_set(error, BERT_INVALID, "it is not two strings and a space");
  return load_merge(t, left, right, rank, error);
}

static bert_status read_merges(tokenizer *t, const char *text, size_t size, bert_error *error) {
  uint32_t rank = 0;
  long long number = 1;
  bert_status status = bpe_allocate(&t->bpe, count_lines(text, size), error);
  for (size_t at = 0; at < size && status == BERT_OK; number++) {
    const char *line = text + at, *end = memchr(line, '\n', size - at);
    size_t length = end == NULL ? size - at : (size_t)(end - line);
    at += length + 1;
    if (length > 0 && line[length - 1] == '\r') length--;
    if (load_is_version((bert_text){line, length}) || (length == 0 && at >= size)) continue;
    if (add_line(t, (bert_text){line, length}, rank++, error) != BERT_OK)
      return error_prefix(error, "line %lld", number);
  }
  return status;
}

static bert_status load_merges_file(tokenizer *t, const char *directory, bert_error *error) {
  char *text = NULL;
  size_t size = 0;
  unsigned char digest[DIGEST_BYTES];
  bert_status status = file_read(directory, "merges.txt", MERGES_MAX_BYTES, 0, &text, &size, error);
  if (status != BERT_OK) return status;
  digest_bytes(text, size, digest);
  digest_add(&t->files, digest, sizeof digest);
  status = read_merges(t, text, size, error);
  memory_free(text);
  if (status != BERT_OK) return error_prefix(error, "%s/merges.txt", directory);
  return load_bpe_unknown(t, (bert_text){0}, error);
}

/* added_tokens.json, of before tokenizer.json, gave ids to further tokens. */
static bert_status refuse_more_tokens(const char *directory, bert_error *error) {
  json_document *document = NULL;
  bert_status status =
      file_read_json(directory, "added_tokens.json", 1, JSON_OBJECT, &document, error);
  size_t count = document == NULL ? 0 : json_root(document)->size;
  json_free(document);
  if (status != BERT_OK || count == 0) return status;
  return error_set(error, BERT_UNSUPPORTED,
                   "%s/added_tokens.json is not supported; a tokenizer.json has its tokens, too",
                   directory);
}

/* ByteLevel before the model, <s> and </s> after it. */
static bert_status add_stages(tokenizer *t, const char *directory, const json_value *config,
                              bert_error *error) {
  static const char *const names[][2] = {{"bos_token", "<s>"},     {"eos_token", "</s>"},
                                         {"unk_token", "<unk>"},   {"sep_token", "</s>"},
                                         {"pad_token", "<pad>"},   {"cls_token", "<s>"},
                                         {"mask_token", "<mask>"}, {NULL, NULL}};
  int32_t ids[7] = {0};
  int prefix = 0, trim = 1;
  bert_status status = json_get_bool(config, "add_prefix_space", &prefix, error);
  if (status == BERT_OK) status = json_get_bool(config, "trim_offsets", &trim, error);
  if (status == BERT_OK) status = chain_add_byte_level(&t->chain, prefix, 1, error);
  if (status == BERT_OK) status = load_special_tokens(t, directory, config, names, ids, error);
  if (status == BERT_OK && trim) status = postprocessor_add_trim(&t->postprocessor, prefix, error);
  if (status != BERT_OK) return status;
  return postprocessor_roberta(&t->postprocessor, ids[5], ids[3], error);
}

bert_status load_vocab_json(tokenizer *t, const char *directory, const json_value *vocab,
                            bert_error *error) {
  json_document *config = NULL;
  bert_status status;
  t->model = MODEL_BPE;
  t->general = 1;
  status = refuse_more_tokens(directory, error);
  if (status == BERT_OK && load_vocabulary(&t->vocabulary, vocab, error) != BERT_OK)
    return error_prefix(error, "%s/vocab.json", directory);
  if (status == BERT_OK) status = load_merges_file(t, directory, error);
  if (status == BERT_OK)
    status = load_json_file(t, directory, "tokenizer_config.json", &config, error);
  if (status != BERT_OK) return status;
  status = add_stages(t, directory, config == NULL ? NULL : json_root(config), error);
  json_free(config);
  return status;
}
