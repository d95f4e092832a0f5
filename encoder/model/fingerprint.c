/*
** fingerprint.c: what tells one model from another, wherever it lies.
**
** A digest of a list of lines, one for each thing that an embedding depends on:
** the settings as they were understood (so that a comment or a release number in
** config.json makes no other model), the digest of the tokenizer's files, and that
** of each file of weights. Stored fingerprints are compared with those of later
** versions: a line keeps its form, and what is new adds a line only where it is
** not at its default.
**
** Weights are read in pieces, by all threads, and the digest of a file is that of
** the digests of its pieces: it does not depend on how many threads there are.
*/
#include <stdio.h>
#include <string.h>

#include "model.h"

enum { PIECE_BYTES = 1 << 20 };

/* Numbers of an enum may change, names may not. */
static const char *const activation_names[ACTIVATION_COUNT] = {
    [ACTIVATION_GELU] = "gelu", [ACTIVATION_GELU_TANH] = "gelu_tanh",
    [ACTIVATION_RELU] = "relu", [ACTIVATION_SILU] = "silu",
    [ACTIVATION_TANH] = "tanh", [ACTIVATION_IDENTITY] = "identity",
};

/* ---- Lines -------------------------------------------------------------- */

/* A text goes in with its length, so that no two lists give the same bytes. */
static void add_text(digest_stream *d, const char *name, const char *text) {
  char line[80];
  int size = snprintf(line, sizeof line, "%s %zu ", name, strlen(text));
  digest_add(d, line, (size_t)size);
  digest_add(d, text, strlen(text));
  digest_add(d, "\n", 1);
}

static void add_number(digest_stream *d, const char *name, int64_t number) {
  char line[80];
  int size = snprintf(line, sizeof line, "%s %lld\n", name, (long long)number);
  digest_add(d, line, (size_t)size);
}

static void add_digest(digest_stream *d, const char *name,
                       const unsigned char digest[DIGEST_BYTES]) {
  char text[DIGEST_TEXT];
  digest_text(digest, text);
  add_text(d, name, text);
}

/* ---- Settings ----------------------------------------------------------- */

static void add_encoder(digest_stream *d, const bert_model *m) {
  const model_config *c = &m->config;
  uint32_t epsilon;
  memcpy(&epsilon, &c->layer_norm_epsilon, sizeof epsilon);
  add_text(d, "precision", m->description.precision);
  if (m->precision == PRECISION_INT8) add_text(d, "in bf16", "down, value");
  add_text(d, "family", c->family);
  add_number(d, "layers", c->layers);
  add_number(d, "heads", c->heads);
  add_number(d, "hidden", c->hidden_size);
  add_number(d, "intermediate", c->intermediate_size);
  add_number(d, "vocabulary", c->vocab_size);
  add_number(d, "positions", c->positions);
  add_number(d, "types", c->types);
  add_text(d, "activation", activation_names[c->hidden_activation]);
  add_number(d, "epsilon", epsilon);
  add_number(d, "max_tokens", m->description.max_tokens);
}

/* What is as in BERT has no line, so that BERT's fingerprints stay what they are. */
static void add_unless(digest_stream *d, const char *name, int64_t number, int64_t usual) {
  if (number != usual) add_number(d, name, number);
}

static void add_rope(digest_stream *d, const char *name, const rope_config *rope) {
  uint64_t bits[2];
  if (rope->theta <= 0) return;
  memcpy(&bits[0], &rope->theta, sizeof bits[0]);
  memcpy(&bits[1], &rope->factor, sizeof bits[1]);
  add_number(d, name, (int64_t)bits[0]);
  if (rope->scaling == ROPE_PLAIN) return;
  add_text(d, "scaling", rope->scaling == ROPE_NTK ? "ntk" : "dynamic");
  add_number(d, "factor", (int64_t)bits[1]);
  if (rope->scaling == ROPE_DYNAMIC) add_number(d, "trained", rope->trained);
}

/* What a family has that BERT has not, as far as the weights do not show it. */
static void add_family(digest_stream *d, const model_config *c) {
  add_unless(d, "embedding", c->embedding_size, c->hidden_size);
  add_unless(d, "layer_groups", c->layer_groups, c->layers);
  add_unless(d, "first_position", c->first_position, 0);
  add_unless(d, "uncounted_token", c->uncounted_token, -1);
  add_unless(d, "sinusoidal", c->sinusoidal, 0);
  add_unless(d, "relative_buckets", c->relative_buckets, 0);
  add_unless(d, "alibi", c->alibi, 0);
  add_rope(d, "theta", &c->rope);
  add_rope(d, "local_theta", &c->local_rope);
  for (int i = 0; i < c->layers; i++)
    if (c->local_layer[i]) add_number(d, "local_layer", i);
  add_unless(d, "window", c->window, 0);
  add_unless(d, "attention_bias", c->attention_bias, 1);
  add_unless(d, "up_bias", c->up_bias, 1);
  add_unless(d, "down_bias", c->down_bias, 1);
  add_unless(d, "norm_bias", c->norm_bias, 1);
}

static void add_modules(digest_stream *d, const sentence_config *s) {
  for (int i = 0; i < s->pooling_count; i++) add_text(d, "pooling", pooling_name(s->poolings[i]));
  add_number(d, "include_prompt", s->include_prompt);
  for (int i = 0; i < s->module_count; i++) {
    const module *step = &s->modules[i];
    if (step->type == MODULE_NORMALIZE) {
      add_text(d, "module", "normalize");
      continue;
    }
    add_text(d, "module", step->type == MODULE_DENSE ? "dense" : "layer_norm");
    add_number(d, "in", step->in);
    if (step->type == MODULE_LAYER_NORM) continue;
    add_number(d, "out", step->out);
    add_number(d, "bias", step->has_bias);
    add_text(d, "activation", activation_names[step->activation]);
  }
}

static void add_prompts(digest_stream *d, const sentence_config *s) {
  for (int i = 0; i < s->prompt_count; i++) {
    add_text(d, "prompt", s->prompts[i].name);
    add_text(d, "is", s->prompts[i].text);
  }
  add_number(d, "default_prompt", s->default_prompt);
}

static void add_tokenizer(digest_stream *d, const bert_model *m) {
  unsigned char digest[DIGEST_BYTES];
  tokenizer_digest(m->tokenizer, digest);
  add_digest(d, "tokenizer", digest);
  add_number(d, "lowercase", m->sentence.lowercase);
}

/* ---- Weights ------------------------------------------------------------ */

typedef struct pieces {
  bert_text bytes;
  size_t count;
  unsigned char (*digests)[DIGEST_BYTES]; /* [count] */
  atomic_size_t next;
} pieces;

static void digest_pieces(team_member *member, void *user) {
  (void)member;
  pieces *p = user;
  for (;;) {
    size_t i = atomic_fetch_add(&p->next, 1);
    if (i >= p->count) return;
    size_t left = p->bytes.size - i * PIECE_BYTES;
    digest_bytes(p->bytes.data + i * PIECE_BYTES, left < PIECE_BYTES ? left : PIECE_BYTES,
                 p->digests[i]);
  }
}

static bert_status add_file(digest_stream *d, bert_text bytes, bert_error *error) {
  pieces p = {.bytes = bytes};
  unsigned char digest[DIGEST_BYTES];
  p.count = bytes.size / PIECE_BYTES + (bytes.size % PIECE_BYTES != 0);
  p.digests = memory_alloc(memory_product(p.count, sizeof *p.digests));
  if (p.digests == NULL) return error_nomem(error, "making the fingerprint of a model");
  team_run(0, digest_pieces, &p);
  digest_bytes(p.digests, p.count * sizeof *p.digests, digest);
  memory_free(p.digests);
  add_digest(d, "weights", digest);
  return BERT_OK;
}

static bert_status add_files(digest_stream *d, const tensor_file *f, bert_error *error) {
  bert_status status = BERT_OK;
  for (size_t i = 0; i < tensors_file_count(f) && status == BERT_OK; i++)
    status = add_file(d, tensors_file_bytes(f, i), error);
  return status;
}

static bert_status add_weights(digest_stream *d, const bert_model *m, bert_error *error) {
  bert_status status = add_files(d, m->file, error);
  for (int i = 0; i < m->sentence.module_count && status == BERT_OK; i++)
    if (m->dense[i].file != NULL) status = add_files(d, m->dense[i].file, error);
  return status;
}

/* ---- The whole ---------------------------------------------------------- */

static bert_status make_fingerprint(const bert_model *m, unsigned char out[DIGEST_BYTES],
                                    bert_error *error) {
  digest_stream d;
  digest_begin(&d);
  add_encoder(&d, m);
  add_family(&d, &m->config);
  add_modules(&d, &m->sentence);
  add_prompts(&d, &m->sentence);
  add_tokenizer(&d, m);
  bert_status status = add_weights(&d, m, error);
  /* As after packing: most of the file is not read again. */
  if (m->precision != PRECISION_FLOAT32) tensors_drop_pages(m->file);
  digest_end(&d, out);
  return status;
}

/* NONE -> BEING_KEPT -> KEPT, each once. A thread that finds another at it, or a
** child of a fork in that moment, gives what it made itself: nobody waits. */
enum { NONE, BEING_KEPT, KEPT };

static void keep_fingerprint(bert_model *m, const unsigned char fingerprint[DIGEST_BYTES]) {
  int none = NONE;
  if (!atomic_compare_exchange_strong(&m->fingerprinted, &none, BEING_KEPT)) return;
  memcpy(m->fingerprint, fingerprint, DIGEST_BYTES);
  atomic_store(&m->fingerprinted, KEPT);
}

bert_status bert_fingerprint(bert_model *model, unsigned char fingerprint[16], bert_error *error) {
  unsigned char made[DIGEST_BYTES];
  bert_status status = bert_check(model, error);
  if (status != BERT_OK) return status;
  if (atomic_load(&model->fingerprinted) == KEPT) {
    memcpy(fingerprint, model->fingerprint, DIGEST_BYTES);
    return BERT_OK;
  }
  status = make_fingerprint(model, made, error);
  /* What was read while somebody wrote into it is nobody's fingerprint. */
  if (status == BERT_OK) status = bert_check(model, error);
  if (status != BERT_OK) return status;
  keep_fingerprint(model, made);
  memcpy(fingerprint, made, DIGEST_BYTES);
  return BERT_OK;
}
