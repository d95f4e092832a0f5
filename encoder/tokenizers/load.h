/*
** load.h: what the readers of tokenizer.json share.
*/
#ifndef BERT_LOAD_H
#define BERT_LOAD_H

#include "tokenizer.h"

/* The type of a part: NULL when the part is null or absent. */
bert_status load_type(const json_value *part, const char **type, bert_error *error);

/* A member that must be there, and be of a type. */
bert_status load_required(const json_value *json, const char *key, json_type type,
                          const json_value **out, bert_error *error);
bert_status load_required_bool(const json_value *json, const char *key, int *out,
                               bert_error *error);

/* A list that must be there: `key` of `json`, an array. */
bert_status load_list(const json_value *json, const char *key, const json_value **out,
                      bert_error *error);

/* loadmodel.c: "model". */
bert_status load_model(tokenizer *t, const json_value *json, bert_error *error);

/* Parts of it, for vocab.json with merges.txt. Each merge needs its room
** (bpe_allocate) and the vocabulary; the unknown token, or NULL, comes last. */
bert_status load_vocabulary(vocabulary *v, const json_value *json, bert_error *error);
bert_status load_merge(tokenizer *t, bert_text left, bert_text right, uint32_t rank,
                       bert_error *error);
/* The sides of "a b"; 0 when it is not two strings and a space between. */
int load_split_merge(bert_text line, bert_text *left, bert_text *right);
/* A line that says by which release merges were written, and is none. */
int load_is_version(bert_text line);
bert_status load_bpe_unknown(tokenizer *t, bert_text unknown, bert_error *error);

/* loadjson.c: the members of a BertNormalizer as NORMALIZER_… */
bert_status load_bert_normalizer(const json_value *json, int *steps, bert_error *error);

/* tokenizer.c: reads a file of the directory, an object, and counts it among those
** that make the tokenizer. *document is NULL when it is not there. */
bert_status load_json_file(tokenizer *t, const char *directory, const char *name,
                           json_document **document, bert_error *error);

/* loadvocab.c: adds the special tokens that tokenizer_config.json (`config`, or
** NULL) and special_tokens_map.json describe: names[i] is the key and the token that
** it has when they do not say; the last is NULL. ids[i] become their ids. */
bert_status load_special_tokens(tokenizer *t, const char *directory, const json_value *config,
                                const char *const names[][2], int32_t *ids, bert_error *error);

/* loadconfig.c: what tokenizer_config.json says of a tokenizer that is read otherwise;
** `root` is that of tokenizer.json, or NULL when there is none. BERT_UNSUPPORTED, by
** name, for what is not computed here. */
bert_status load_config_settings(tokenizer *t, const char *directory, const json_value *root,
                                 int *steps, bert_error *error);

/* loadjson.c: the members of an added token other than its id. */
bert_status load_added_token(const json_value *json, added_token *out, bert_error *error);

#endif
