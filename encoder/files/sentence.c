/*
** sentence.c: what sentence-transformers would do with a directory: the
** modules, the prompts and the token limit.
**
** Without modules.json it makes a Transformer and mean pooling and reads none
** of its own files, so neither does this.
*/
#include <string.h>

#include "files.h"

enum { LONGEST_LIMIT = 1000000000, PROMPT_LIMIT = 100000 };

/* ---- Prompts ----------------------------------------------------------- */

static bert_status add_prompt(sentence_config *c, const json_value *v, bert_error *error) {
  if (v->type != JSON_STRING && v->type != JSON_NULL)
    return error_set(error, BERT_INVALID, "the prompt \"%s\" must be a string, not %s",
                     error_quote(v->key).text, json_type_name(v->type));
  prompt *p = &c->prompts[c->prompt_count++];
  p->name = memory_copy_text(v->key, v->key_size);
  p->text = memory_copy_text(v->string, v->size); /* null is the empty prompt */
  return p->name == NULL || p->text == NULL ? error_nomem(error, "reading prompts") : BERT_OK;
}

/* sentence-transformers gives every model the empty prompts "query" and
** "document", so that these may be named where the file has none. */
static bert_status find_default(sentence_config *c, const char *name, bert_error *error) {
  if (name == NULL) return BERT_OK;
  for (int i = 0; i < c->prompt_count; i++) {
    if (strcmp(c->prompts[i].name, name) != 0) continue;
    c->default_prompt = i;
    return BERT_OK;
  }
  if (strcmp(name, "query") == 0 || strcmp(name, "document") == 0) return BERT_OK;
  return error_set(error, BERT_INVALID, "\"default_prompt_name\" \"%s\" is none of the prompts",
                   error_quote(name).text);
}

static bert_status read_prompts(sentence_config *c, const json_value *root, bert_error *error) {
  const json_value *prompts = json_get(root, "prompts");
  if (prompts != NULL && prompts->type != JSON_OBJECT && prompts->type != JSON_NULL)
    return error_set(error, BERT_INVALID, "\"prompts\" must be an object, not %s",
                     json_type_name(prompts->type));
  size_t count = prompts == NULL ? 0 : prompts->size;
  if (count > PROMPT_LIMIT)
    return error_set(error, BERT_UNSUPPORTED, "more than %d prompts", PROMPT_LIMIT);
  c->prompts = memory_zero(memory_product(count, sizeof(prompt)));
  if (c->prompts == NULL) return error_nomem(error, "reading prompts");
  for (const json_value *v = count == 0 ? NULL : prompts->first; v != NULL; v = v->next) {
    bert_status status = add_prompt(c, v, error);
    if (status != BERT_OK) return status;
  }
  const char *name = NULL;
  bert_status status = json_get_string(root, "default_prompt_name", &name, error);
  return status == BERT_OK ? find_default(c, name, error) : status;
}

/* A directory saved by another class of the library is not what `encode` of
** this one means, but for a cross-encoder, of which it takes the transformer; and an
** embedding cut to truncate_dim is not computed here. */
static bert_status check_saved(sentence_config *c, const json_value *root, bert_error *error) {
  const char *type = "SentenceTransformer";
  bert_status status = json_get_string(root, "model_type", &type, error);
  if (status != BERT_OK) return status;
  c->cross = strcmp(type, "CrossEncoder") == 0;
  if (!c->cross && strcmp(type, "SentenceTransformer") != 0)
    return error_set(error, BERT_UNSUPPORTED,
                     "\"model_type\" \"%s\" is not supported; there are SentenceTransformer, "
                     "CrossEncoder",
                     error_quote(type).text);
  status = config_empty(root, "truncate_dim", error);
  if (status != BERT_OK || !c->cross) return status;
  return read_cross_activation(root, "activation_fn", &c->rerank_given, &c->rerank, error);
}

/* What distance the embeddings were trained for. */
static bert_status read_similarity(sentence_config *c, const json_value *root, bert_error *error) {
  static const char *const names[] = {"cosine", "dot", "euclidean", "manhattan"};
  const char *name = "cosine";
  bert_status status = json_get_string(root, "similarity_fn_name", &name, error);
  if (status != BERT_OK) return status;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0) {
      memcpy(c->similarity, names[i], strlen(names[i]) + 1);
      return BERT_OK;
    }
  return error_set(error, BERT_UNSUPPORTED, "\"similarity_fn_name\" \"%s\" is not supported",
                   error_quote(name).text);
}

static bert_status read_sentence_file(sentence_config *c, const char *directory,
                                      bert_error *error) {
  static const char name[] = "config_sentence_transformers.json";
  json_document *document = NULL;
  bert_status status = file_read_json(directory, name, 1, JSON_OBJECT, &document, error);
  if (status != BERT_OK || document == NULL) return status;
  status = check_saved(c, json_root(document), error);
  if (status == BERT_OK) status = read_prompts(c, json_root(document), error);
  if (status == BERT_OK) status = read_similarity(c, json_root(document), error);
  /* It would stand before the first text of every pair. */
  if (status == BERT_OK && c->cross && c->default_prompt >= 0 &&
      c->prompts[c->default_prompt].text[0] != '\0')
    status = error_set(error, BERT_UNSUPPORTED,
                       "\"default_prompt_name\" of a cross-encoder is not supported");
  json_free(document);
  if (status != BERT_OK) error_prefix(error, "%s/%s", directory, name);
  return status;
}

/* ---- The Transformer module -------------------------------------------- */

/* Settings of newer releases that change what the model is asked for. */
static bert_status check_transformer(const sentence_config *c, const json_value *root,
                                     bert_error *error) {
  static const char *const refused[] = {"config_args", "config_kwargs", "processing_kwargs"};
  const json_value *text = json_get(json_get(root, "modality_config"), "text");
  bert_status status = config_name_is(
      root, "transformer_task", c->cross ? "sequence-classification" : "feature-extraction", error);
  if (status == BERT_OK)
    status =
        config_name_is(root, "module_output_name", c->cross ? "scores" : "token_embeddings", error);
  if (status == BERT_OK) status = config_name_is(text, "method", "forward", error);
  if (status == BERT_OK)
    status = config_name_is(text, "method_output_name", c->cross ? "logits" : "last_hidden_state",
                            error);
  for (size_t i = 0; i < sizeof refused / sizeof *refused && status == BERT_OK; i++)
    status = config_empty(root, refused[i], error);
  return status;
}

/* max_seq_length, unless the tokenizer's own arguments say otherwise. */
static bert_status read_limit(sentence_config *c, const json_value *root, bert_error *error) {
  int64_t limit = 0;
  bert_status status = json_get_int(root, "max_seq_length", 1, LONGEST_LIMIT, &limit, error);
  if (status == BERT_OK)
    status = json_get_int(json_get(root, "tokenizer_args"), "model_max_length", 1, LONGEST_LIMIT,
                          &limit, error);
  if (status == BERT_OK)
    status = json_get_int(json_get(root, "processor_kwargs"), "model_max_length", 1, LONGEST_LIMIT,
                          &limit, error);
  if (status == BERT_OK) c->max_tokens = (int)limit;
  return status;
}

static bert_status read_transformer(sentence_config *c, const json_value *root, bert_error *error) {
  bert_status status = check_transformer(c, root, error);
  if (status == BERT_OK) status = read_limit(c, root, error);
  if (status == BERT_OK) status = json_get_bool(root, "do_lower_case", &c->lowercase, error);
  return status;
}

/* The first of these that exists and is not an empty object counts. */
static bert_status read_transformer_file(sentence_config *c, const char *directory,
                                         bert_error *error) {
  static const char *const names[] = {
      "sentence_bert_config.json",       "sentence_roberta_config.json",
      "sentence_distilbert_config.json", "sentence_camembert_config.json",
      "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
      "sentence_xlnet_config.json"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    json_document *document = NULL;
    bert_status status = file_read_json(directory, names[i], 1, JSON_OBJECT, &document, error);
    if (status != BERT_OK) return status;
    const json_value *root = json_root(document);
    int found = root != NULL && root->size > 0;
    if (found) status = read_transformer(c, root, error);
    json_free(document);
    if (status != BERT_OK) error_prefix(error, "%s/%s", directory, names[i]);
    if (found) return status;
  }
  return BERT_OK;
}

/* ---- The tokenizer's limit --------------------------------------------- */

/* model_max_length, or max_len as it was once called. A tokenizer without a
** limit has 1e30 there: that is none. */
static bert_status read_model_max_length(sentence_config *c, const json_value *root,
                                         bert_error *error) {
  static const char *const keys[] = {"max_len", "model_max_length"};
  double limit = 0;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    bert_status status = json_get_number(root, keys[i], 1, 1e300, &limit, error);
    if (status != BERT_OK) return status;
  }
  if (limit <= LONGEST_LIMIT) c->max_tokens = (int)limit;
  return BERT_OK;
}

static bert_status read_tokenizer_file(sentence_config *c, const char *directory,
                                       bert_error *error) {
  static const char name[] = "tokenizer_config.json";
  json_document *document = NULL;
  bert_status status = file_read_json(directory, name, 1, JSON_OBJECT, &document, error);
  if (status != BERT_OK || document == NULL) return status;
  status = read_model_max_length(c, json_root(document), error);
  json_free(document);
  if (status != BERT_OK) error_prefix(error, "%s/%s", directory, name);
  return status;
}

/* ---- The whole --------------------------------------------------------- */

/* What the transformer's own directory says. */
static bert_status read_place(sentence_config *c, const char *place, bert_error *error) {
  bert_status status = c->present ? read_transformer_file(c, place, error) : BERT_OK;
  if (status == BERT_OK && c->max_tokens == 0) status = read_tokenizer_file(c, place, error);
  return status;
}

/* No Pooling: mean pooling, no more. */
static bert_status set_plain(sentence_config *c, bert_error *error) {
  c->poolings[0] = POOLING_MEAN;
  c->pooling_count = 1;
  if (c->transformer_path != NULL) return BERT_OK;
  c->transformer_path = memory_copy_text("", 0);
  return c->transformer_path == NULL ? error_nomem(error, "reading a model") : BERT_OK;
}

bert_status sentence_config_read(const char *directory, sentence_config *out, bert_error *error) {
  memset(out, 0, sizeof *out);
  out->include_prompt = 1;
  out->default_prompt = -1;
  memcpy(out->similarity, "cosine", sizeof "cosine");
  bert_status status = BERT_OK;
  if (path_exists(directory, "modules.json")) status = read_sentence_file(out, directory, error);
  if (status == BERT_OK) status = modules_read(directory, out, error);
  if (status == BERT_OK && out->pooling_count == 0) status = set_plain(out, error);
  if (status != BERT_OK) return status;
  char *place = path_join(directory, out->transformer_path);
  if (place == NULL) return error_nomem(error, "reading a model");
  status = read_place(out, place, error);
  memory_free(place);
  return status;
}

void sentence_config_free(sentence_config *c) {
  for (int i = 0; i < c->module_count; i++) memory_free(c->modules[i].directory);
  for (int i = 0; i < c->prompt_count; i++) {
    memory_free(c->prompts[i].name);
    memory_free(c->prompts[i].text);
  }
  memory_free(c->modules);
  memory_free(c->prompts);
  memory_free(c->transformer_path);
  memset(c, 0, sizeof *c);
}
