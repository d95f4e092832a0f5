/*
** encoder.c: bert_encoder, the settings and scratch memory of one caller.
*/
#include "model.h"

bert_status bert_encoder_create(bert_model *model, bert_encoder **encoder, bert_error *error) {
  bert_encoder *e = memory_zero(sizeof *e);
  if (e == NULL) return error_nomem(error, "making an encoder");
  e->model = bert_retain(model);
  *encoder = e;
  return BERT_OK;
}

void bert_encoder_free(bert_encoder *encoder) {
  if (encoder == NULL) return;
  workspace_free(&encoder->space);
  bert_close(encoder->model);
  memory_free(encoder);
}

void bert_encoder_set_threads(bert_encoder *encoder, int threads) {
  encoder->threads = threads < 0 ? 0 : threads;
}

void bert_encoder_set_interrupt(bert_encoder *encoder, int (*interrupted)(void *user), void *user) {
  encoder->interrupted = interrupted;
  encoder->user = user;
}

uint64_t bert_encoder_memory(const bert_encoder *encoder) {
  return encoder->space.bytes;
}

stop_signal encoder_signal(const bert_encoder *encoder) {
  stop_signal signal = {encoder->interrupted, encoder->user, 0};
  return signal;
}

int encoder_threads(const bert_encoder *encoder) {
  int cores = team_cores();
  return encoder->threads > 0 && encoder->threads < cores ? encoder->threads : cores;
}

void encoder_trim(bert_encoder *encoder) {
  if (encoder->space.bytes > KEEP_BYTES) workspace_free(&encoder->space);
}

bert_status check_tokens(const bert_model *model, const bert_tokens *tokens, bert_error *error) {
  const model_config *c = &model->config;
  if (tokens->used_count == 0) return error_set(error, BERT_ARGUMENT, "there are no tokens to run");
  if (tokens->used_count > (size_t)c->positions)
    return error_set(error, BERT_ARGUMENT, "%zu tokens are more than the %d positions",
                     tokens->used_count, c->positions);
  for (size_t i = 0; i < tokens->count; i++) {
    if (!tokens->used[i]) continue;
    if (tokens->ids[i] < 0 || tokens->ids[i] >= c->vocab_size)
      return error_set(error, BERT_ARGUMENT, "token id %d is outside the vocabulary of %d",
                       (int)tokens->ids[i], c->vocab_size);
    if (tokens->types[i] < 0 || tokens->types[i] >= c->types)
      return error_set(error, BERT_ARGUMENT, "token type %d is outside the %d of the model",
                       (int)tokens->types[i], c->types);
  }
  return BERT_OK;
}
