/*
** pass.c: one forward pass, kept to look inside.
**
** Attention weights are not kept but made from the kept queries and keys when
** asked for (pass_attention.c), by the code that the pass itself ran: all heads
** of all layers of 512 tokens would fill 150 MB, their queries and keys fill 19.
*/
#include <math.h>
#include <string.h>

#include "model.h"

static atomic_uint_fast64_t passes_run;

void passes_count(uint64_t more) {
  atomic_fetch_add(&passes_run, more);
}

uint64_t bert_passes_run(void) {
  return atomic_load(&passes_run);
}

/* ---- Running ----------------------------------------------------------- */

typedef struct pass_job {
  bert_encoder *encoder;
  bert_pass *pass;
  ragged_batch batch;
  stop_signal signal;
} pass_job;

static void run_pass(team_member *member, void *user) {
  pass_job *job = user;
  bert_pass *p = job->pass;
  crew c = crew_of_team(member, &job->signal, p->set);
  capture keep = {(p->keep & BERT_KEEP_HIDDEN) ? p->hidden : NULL, p->qkv};
  encoder_run(&c, &p->model->weights, &job->batch, &job->encoder->space, &keep);
}

static bert_status make_pass(bert_model *model, size_t tokens, int keep, bert_pass **out,
                             bert_error *error) {
  uint64_t width = (uint64_t)model->config.hidden_size, layers = (uint64_t)model->config.layers;
  uint64_t matrix = memory_product(tokens, width * sizeof(float));
  bert_pass *p = memory_zero(sizeof *p);
  if (p == NULL) return error_nomem(error, "keeping a forward pass");
  p->model = bert_retain(model);
  p->set = kernels_current();
  p->tokens = tokens;
  p->keep = keep;
  p->hidden = memory_alloc((keep & BERT_KEEP_HIDDEN) ? memory_product(layers + 1, matrix) : matrix);
  if (keep & BERT_KEEP_ATTENTION) p->qkv = memory_alloc(memory_product(3 * layers, matrix));
  if (p->hidden == NULL || ((keep & BERT_KEEP_ATTENTION) && p->qkv == NULL)) {
    bert_pass_free(p);
    return error_nomem(error, "keeping a forward pass");
  }
  *out = p;
  return BERT_OK;
}

/* The used tokens' ids and types, [used_count] each, in one block. */
static int32_t *copy_used(const bert_tokens *tokens) {
  size_t n = tokens->used_count, at = 0;
  int32_t *ids = memory_alloc(memory_product(2 * (uint64_t)n, sizeof *ids));
  if (ids == NULL) return NULL;
  for (size_t i = 0; i < tokens->count && at < n; i++) {
    if (!tokens->used[i]) continue;
    ids[at] = tokens->ids[i];
    ids[n + at++] = tokens->types[i];
  }
  return ids;
}

/* A number that is not finite spreads from where it arose to the last hidden
** states, so that only these need a look; when they are spoilt, the attention
** that was kept may say where it began. */
static bert_status check_finite(const bert_pass *p, float *scratch, bert_error *error) {
  const float *last = bert_pass_hidden(p, p->model->config.layers); /* [tokens, hidden] */
  size_t count = p->tokens * (size_t)p->model->config.hidden_size, at = 0;
  while (at < count && isfinite(last[at])) at++;
  if (at == count) return BERT_OK;
  bert_status status = pass_check_attention(p, scratch, error);
  if (status != BERT_OK) return status;
  return error_set(error, BERT_NUMERIC,
                   "the hidden states are not finite numbers: the weights in %s are damaged",
                   p->model->transformer_directory);
}

static bert_status run_tokens(bert_encoder *e, const int32_t *ids, bert_pass *p,
                              bert_error *error) {
  size_t n = p->tokens, starts[2] = {0, n};
  int threads = encoder_threads(e);
  pass_job job = {e, p, {1, starts, ids, ids + n}, encoder_signal(e)};
  bert_status status = workspace_reserve(&e->space, &e->model->weights, n, n, threads, error);
  if (status != BERT_OK) return status;
  team_run(threads, run_pass, &job);
  if (atomic_load(&job.signal.stop)) return error_set(error, BERT_INTERRUPTED, "interrupted");
  passes_count(1);
  if (!(p->keep & BERT_KEEP_HIDDEN))
    memcpy(p->hidden, e->space.hidden,
           n * (size_t)e->model->config.hidden_size * sizeof *p->hidden);
  return check_finite(p, e->space.scores, error);
}

bert_status bert_run(bert_encoder *encoder, const bert_tokens *tokens, int keep, bert_pass **pass,
                     bert_error *error) {
  bert_pass *p = NULL;
  bert_status status = check_tokens(encoder->model, tokens, error);
  if (status == BERT_OK) status = bert_check(encoder->model, error);
  if (status == BERT_OK) status = make_pass(encoder->model, tokens->used_count, keep, &p, error);
  if (status != BERT_OK) return status;
  int32_t *ids = copy_used(tokens);
  status = ids ? run_tokens(encoder, ids, p, error) : error_nomem(error, "running the model");
  memory_free(ids);
  encoder_trim(encoder);
  if (status == BERT_OK)
    *pass = p;
  else
    bert_pass_free(p);
  return status;
}

void bert_pass_free(bert_pass *pass) {
  if (pass == NULL) return;
  memory_free(pass->hidden);
  memory_free(pass->qkv);
  bert_close(pass->model);
  memory_free(pass);
}

/* ---- Looking inside ---------------------------------------------------- */

int bert_pass_tokens(const bert_pass *pass) {
  return (int)pass->tokens;
}

const char *bert_pass_kernels(const bert_pass *pass) {
  return pass->set->name;
}

const float *bert_pass_hidden(const bert_pass *pass, int layer) {
  int layers = pass->model->config.layers;
  if (layer < 0 || layer > layers) return NULL;
  if (pass->keep & BERT_KEEP_HIDDEN)
    return pass->hidden + (size_t)layer * pass->tokens * (size_t)pass->model->config.hidden_size;
  return layer == layers ? pass->hidden : NULL;
}

const float *bert_pass_vectors(const bert_pass *pass, bert_vector_kind kind, int layer, int head,
                               size_t *stride) {
  size_t hidden = (size_t)pass->model->config.hidden_size;
  const float *qkv = pass_qkv(pass, layer, head);
  if (qkv == NULL) return NULL;
  *stride = 3 * hidden;
  return qkv + (size_t)kind * hidden + (size_t)head * (size_t)pass->model->weights.head_width;
}

bert_status bert_pass_pooler(const bert_pass *pass, float *output, bert_error *error) {
  const bert_model *m = pass->model;
  if (!m->weights.has_pooler) return error_set(error, BERT_ARGUMENT, "the model has no pooler");
  pool(pass->set, &m->weights, POOLING_POOLER, bert_pass_hidden(pass, m->config.layers),
       pass->tokens, 0, output);
  return BERT_OK;
}
