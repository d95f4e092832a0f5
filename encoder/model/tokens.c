/*
** tokens.c: bert_tokenize and what belongs to tokens.
*/
#include "model.h"

bert_status token_limit(const bert_model *model, int max_tokens, int pair, size_t *limit,
                        bert_error *error) {
  const bert_description *d = &model->description;
  int special = tokenizer_special_count(model->tokenizer, pair);
  int wanted = max_tokens == 0 ? d->max_tokens : max_tokens;
  if (wanted < special)
    return error_set(error, BERT_ARGUMENT, "max_tokens is %d, but the special tokens alone are %d",
                     wanted, special);
  if (wanted > d->max_positions)
    return error_set(error, BERT_ARGUMENT, "max_tokens is %d, but the model has %d positions",
                     wanted, d->max_positions);
  *limit = (size_t)wanted;
  return BERT_OK;
}

/* A model trained with one token type has one row for it, whatever its
** post-processor says of pairs; transformers' tokenizer classes then give 0
** for both texts. */
static void flatten_types(const bert_model *model, bert_tokens *tokens) {
  if (model->config.types != 1) return;
  for (size_t i = 0; i < tokens->count; i++) tokens->types[i] = 0;
}

bert_status bert_tokenize(const bert_model *model, bert_text text, const bert_text *text_b,
                          const bert_token_options *options, bert_tokens **tokens,
                          bert_error *error) {
  size_t limit;
  int only_used = options != NULL && options->only_used;
  if (text_b != NULL && text_b->size == 0 && (options == NULL || !options->keep_empty))
    text_b = NULL;
  bert_status status =
      token_limit(model, options ? options->max_tokens : 0, text_b != NULL, &limit, error);
  if (status == BERT_OK)
    status = tokenizer_encode(model->tokenizer, text, text_b, limit, only_used, tokens, error);
  if (status == BERT_OK) flatten_types(model, *tokens);
  return status;
}

void bert_tokens_free(bert_tokens *tokens) {
  tokens_free(tokens);
}

bert_text bert_token_string(const bert_model *model, int32_t id) {
  return tokenizer_token(model->tokenizer, id);
}

size_t bert_token_text(const bert_model *model, int32_t id, char *out, size_t room) {
  return tokenizer_spell(model->tokenizer, id, out, room);
}

size_t bert_replace_mask(const bert_model *model, bert_text text, size_t start, size_t stop,
                         int32_t id, char *out, size_t room) {
  return tokenizer_replace(model->tokenizer, text, start, stop, model->mask_token, id, out, room);
}
