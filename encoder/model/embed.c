/*
** embed.c: texts to embeddings over all threads.
**
** First all texts are tokenized, each by whichever thread is free. Then they
** are sorted by length and cut into ragged batches. Many batches are shared out
** among the threads, each running whole passes of its own: no thread ever waits
** for another. Few batches, one short text above all, are run one after the
** other by all threads together.
*/
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

/* Tokens of a batch, about: enough that reading the weights is lost in the arithmetic,
** few enough that scratch memory stays near the caches. */
enum { BATCH_TOKENS = 512 };

/* Below so many batches for each thread, all threads work on one together. */
enum { BATCHES_FOR_EACH_THREAD = 2 };

/* Parts that a batch is cut into at the end: halved, and halved again. */
enum { BATCH_SHARES = 4 };

typedef struct length_order {
  size_t text, tokens;
} length_order;

/* What one pass at a time works with: one for each thread, or one for all. */
typedef struct lane {
  workspace own;
  workspace *space;     /* own, or the encoder's */
  size_t *starts;       /* [longest batch + 1] */
  int32_t *ids, *types; /* [tokens of the largest batch] */
  float *scratch;       /* [members, 2, widest] */
} lane;

typedef struct embed_job {
  bert_encoder *encoder;
  const recipe *recipe;
  const bert_text *texts; /* [count] */
  size_t count;
  int refuse_long;
  float *embeddings;          /* [count, dim] */
  bert_embed_result *results; /* [count], or NULL */
  bert_tokens **tokens;       /* [count] */
  length_order *order;        /* [count], longest first */
  size_t *batches;            /* [batch_count + 1], first places in order */
  size_t batch_count;
  size_t largest, longest, most; /* tokens of a batch, of a text; texts of a batch */
  lane *lanes;                   /* [lane_count] */
  int lane_count;
  atomic_size_t next; /* text or batch to take */
  stop_signal signal;
  atomic_int failed;
  bert_error error; /* of whoever failed first */
} embed_job;

static void job_fail(embed_job *job, const bert_error *error) {
  if (atomic_exchange(&job->failed, 1) == 0) job->error = *error;
  atomic_store(&job->signal.stop, 1);
}

/* Text numbers mean nothing to whoever gave a single one. */
static void name_text(const embed_job *job, size_t text, bert_error *error) {
  if (job->count > 1) error_prefix(error, "text %zu", text);
}

/* ---- Tokenizing -------------------------------------------------------- */

static bert_status tokenize_with_prompt(const embed_job *job, bert_text text,
                                        const bert_token_options *options, bert_tokens **tokens,
                                        bert_error *error) {
  const recipe *r = job->recipe;
  char *joined = memory_alloc((uint64_t)r->prompt_size + text.size);
  if (joined == NULL) return error_nomem(error, "putting a prompt before a text");
  memcpy(joined, r->prompt, r->prompt_size);
  if (text.size > 0) memcpy(joined + r->prompt_size, text.data, text.size);
  bert_text whole = {joined, r->prompt_size + text.size};
  bert_status status = bert_tokenize(r->model, whole, NULL, options, tokens, error);
  memory_free(joined);
  return status;
}

static bert_status tokenize_text(embed_job *job, size_t i, bert_error *error) {
  bert_token_options options = {(int)job->recipe->limit, 1, 0};
  bert_tokens **tokens = &job->tokens[i];
  bert_status status =
      job->recipe->prompt_size > 0
          ? tokenize_with_prompt(job, job->texts[i], &options, tokens, error)
          : bert_tokenize(job->recipe->model, job->texts[i], NULL, &options, tokens, error);
  if (status == BERT_OK) status = check_tokens(job->recipe->model, *tokens, error);
  if (status == BERT_OK && job->refuse_long && (*tokens)->truncated)
    status =
        error_set(error, BERT_TOO_LONG, "the text is longer than %zu tokens", job->recipe->limit);
  if (status != BERT_OK) name_text(job, i, error);
  return status;
}

static void tokenize_texts(team_member *member, void *user) {
  embed_job *job = user;
  crew c = crew_alone(member, &job->signal, job->recipe->set);
  for (;;) {
    bert_error error = {BERT_OK, ""};
    size_t i = atomic_fetch_add(&job->next, 1);
    if (i >= job->count || crew_should_stop(&c)) return;
    if (tokenize_text(job, i, &error) != BERT_OK) job_fail(job, &error);
  }
}

/* ---- Batches ----------------------------------------------------------- */

static int longer_first(const void *a, const void *b) {
  const length_order *x = a, *y = b;
  if (x->tokens != y->tokens) return x->tokens < y->tokens ? 1 : -1;
  return x->text < y->text ? -1 : x->text > y->text;
}

static void sort_by_length(embed_job *job) {
  for (size_t i = 0; i < job->count; i++) {
    job->order[i].text = i;
    job->order[i].tokens = job->tokens[i]->used_count;
  }
  qsort(job->order, job->count, sizeof *job->order, longer_first);
  job->longest = job->order[0].tokens;
}

static size_t all_tokens(const embed_job *job) {
  size_t tokens = 0;
  for (size_t i = 0; i < job->count; i++) tokens += job->order[i].tokens;
  return tokens;
}

/* 1 where threads take batches apart from one another, 0 where all work on each. */
static int enough_for_each(size_t batches, int threads) {
  return batches >= (size_t)threads * BATCHES_FOR_EACH_THREAD;
}

/* Where batches end, in shares of all tokens. */
typedef struct batch_ends {
  size_t tokens;  /* of all texts */
  size_t shares;  /* that they are divided into */
  size_t threads; /* that take batches apart from one another; else 0 */
  size_t end;     /* shares before the next end */
} batch_ends;

/* A batch has one share; where threads take them apart four, of which the last batch of each
** thread is made into batches of two, one and one: whoever is done first finds some work left,
** and waits for the slowest at most a quarter of a batch. */
static void move_end(batch_ends *e) {
  size_t left = e->shares - e->end, batch = e->threads > 0 ? BATCH_SHARES : 1;
  while (batch > 1 && left <= e->threads * batch) batch /= 2;
  e->end += batch;
}

/* Where threads take batches apart, there are as many for each. */
static batch_ends first_end(size_t tokens, int threads) {
  size_t batches = (tokens + BATCH_TOKENS - 1) / BATCH_TOKENS, each = (size_t)threads;
  batch_ends e = {tokens, batches, 0, 0};
  if (threads > 1 && enough_for_each(batches, threads)) {
    e.threads = each;
    e.shares = (batches + each - 1) / each * each * BATCH_SHARES;
  }
  move_end(&e);
  return e;
}

/* Tokens before it: no remainder is left to the last share. */
static size_t tokens_to_end(const batch_ends *e) {
  return e->tokens / e->shares * e->end + e->tokens % e->shares * e->end / e->shares;
}

/* Ends a batch before text i. */
static void end_batch(embed_job *job, size_t i, size_t tokens) {
  size_t first = job->batches[job->batch_count];
  job->batches[++job->batch_count] = i;
  if (tokens > job->largest) job->largest = tokens;
  if (i - first > job->most) job->most = i - first;
}

/* Cuts the order into batches, each of which ends with the text that reaches its end, the last
** with the last text, and notes the largest of each measure. */
static void cut_batches(embed_job *job, int threads) {
  batch_ends ends = first_end(all_tokens(job), threads);
  size_t done = 0, before = 0;
  job->batches[0] = 0;
  for (size_t i = 0; i < job->count; i++) {
    done += job->order[i].tokens;
    int open = ends.end == ends.shares || done < tokens_to_end(&ends);
    if (open && i + 1 < job->count) continue;
    end_batch(job, i + 1, done - before);
    before = done;
    while (ends.end < ends.shares && done >= tokens_to_end(&ends)) move_end(&ends);
  }
}

static void fill_batch(const embed_job *job, size_t batch, lane *l, ragged_batch *out) {
  size_t first = job->batches[batch], last = job->batches[batch + 1], at = 0;
  for (size_t i = first; i < last; i++) {
    const bert_tokens *t = job->tokens[job->order[i].text];
    l->starts[i - first] = at;
    for (size_t j = 0; j < t->count; j++) {
      if (!t->used[j]) continue;
      l->ids[at] = t->ids[j];
      l->types[at++] = t->types[j];
    }
  }
  l->starts[last - first] = at;
  *out = (ragged_batch){last - first, l->starts, l->ids, l->types};
}

/* ---- Running ----------------------------------------------------------- */

static int all_finite(const float *x, int width) {
  for (int i = 0; i < width; i++)
    if (!isfinite(x[i])) return 0;
  return 1;
}

static void finish_text(embed_job *job, size_t text, const float *hidden, size_t tokens,
                        float *scratch) {
  const recipe *r = job->recipe;
  float *out = job->embeddings + text * (size_t)r->dim; /* [dim] */
  recipe_apply(r, hidden, tokens, scratch, out);
  if (!all_finite(out, r->dim)) {
    bert_error error;
    error_set(&error, BERT_NUMERIC,
              "the embedding is not a finite number: the weights in %s are damaged",
              r->model->transformer_directory);
    name_text(job, text, &error);
    job_fail(job, &error);
  } else if (job->results != NULL) {
    job->results[text].tokens = (int)tokens;
    job->results[text].truncated = job->tokens[text]->truncated;
  }
}

/* One batch through the model; every member of the crew calls it. */
static void run_batch(embed_job *job, crew *c, lane *l, size_t batch, ragged_batch *ragged) {
  const encoder_weights *w = &job->recipe->model->weights;
  size_t first, last, place = job->batches[batch];
  if (c->member.rank == 0) fill_batch(job, batch, l, ragged);
  crew_barrier(c);
  encoder_run(c, w, ragged, l->space, NULL);
  crew_barrier(c);
  if (atomic_load(&job->signal.stop)) return;
  float *scratch = l->scratch + (size_t)c->member.rank * 2 * (size_t)job->recipe->widest;
  crew_share(c, ragged->sequences, 1, &first, &last);
  for (size_t s = first; s < last; s++)
    finish_text(job, job->order[place + s].text,
                l->space->hidden + l->starts[s] * (size_t)w->hidden,
                l->starts[s + 1] - l->starts[s], scratch);
}

/* Each member takes batches until there are none. */
static void run_apart(team_member *member, void *user) {
  embed_job *job = user;
  crew c = crew_alone(member, &job->signal, job->recipe->set);
  lane *l = &job->lanes[member->rank];
  for (;;) {
    ragged_batch ragged;
    size_t batch = atomic_fetch_add(&job->next, 1);
    if (batch >= job->batch_count || crew_should_stop(&c)) return;
    run_batch(job, &c, l, batch, &ragged);
  }
}

typedef struct together {
  embed_job *job;
  ragged_batch ragged;
} together;

/* All members run each batch together. */
static void run_together(team_member *member, void *user) {
  together *t = user;
  crew c = crew_of_team(member, &t->job->signal, t->job->recipe->set);
  for (size_t batch = 0; batch < t->job->batch_count; batch++) {
    if (crew_should_stop(&c)) return;
    run_batch(t->job, &c, &t->job->lanes[0], batch, &t->ragged);
    crew_barrier(&c);
  }
}

/* ---- Memory ------------------------------------------------------------ */

static bert_status lane_make(embed_job *job, lane *l, int members, bert_error *error) {
  l->starts = memory_alloc(memory_product((uint64_t)job->most + 1, sizeof *l->starts));
  l->ids = memory_alloc(memory_product(job->largest, sizeof *l->ids));
  l->types = memory_alloc(memory_product(job->largest, sizeof *l->types));
  l->scratch = memory_alloc(
      memory_product((uint64_t)members * 2 * (uint64_t)job->recipe->widest, sizeof *l->scratch));
  if (l->starts == NULL || l->ids == NULL || l->types == NULL || l->scratch == NULL)
    return error_nomem(error, "embedding texts");
  return workspace_reserve(l->space, &job->recipe->model->weights, job->largest, job->longest,
                           members, error);
}

static bert_status lanes_make(embed_job *job, int lanes, int members, bert_error *error) {
  bert_status status = BERT_OK;
  job->lanes = memory_zero(memory_product((uint64_t)lanes, sizeof *job->lanes));
  if (job->lanes == NULL) return error_nomem(error, "embedding texts");
  job->lane_count = lanes;
  for (int i = 0; i < lanes && status == BERT_OK; i++) {
    job->lanes[i].space = i == 0 ? &job->encoder->space : &job->lanes[i].own;
    status = lane_make(job, &job->lanes[i], members, error);
  }
  return status;
}

static void lanes_free(embed_job *job) {
  for (int i = 0; i < job->lane_count; i++) {
    lane *l = &job->lanes[i];
    workspace_free(&l->own);
    memory_free(l->starts);
    memory_free(l->ids);
    memory_free(l->types);
    memory_free(l->scratch);
  }
  memory_free(job->lanes);
}

static bert_status job_make(embed_job *job, bert_error *error) {
  job->tokens = memory_zero(memory_product(job->count, sizeof *job->tokens));
  job->order = memory_alloc(memory_product(job->count, sizeof *job->order));
  job->batches = memory_alloc(memory_product((uint64_t)job->count + 1, sizeof *job->batches));
  if (job->tokens == NULL || job->order == NULL || job->batches == NULL)
    return error_nomem(error, "embedding texts");
  return BERT_OK;
}

static void job_free(embed_job *job) {
  for (size_t i = 0; i < job->count && job->tokens != NULL; i++) tokens_free(job->tokens[i]);
  memory_free(job->tokens);
  memory_free(job->order);
  memory_free(job->batches);
  lanes_free(job);
}

/* ---- All of it --------------------------------------------------------- */

/* What stopped the threads, if anything did. */
static bert_status job_status(embed_job *job, bert_error *error) {
  if (atomic_load(&job->failed)) {
    if (error != NULL) *error = job->error;
    return job->error.status;
  }
  if (atomic_load(&job->signal.stop)) return error_set(error, BERT_INTERRUPTED, "interrupted");
  return BERT_OK;
}

static bert_status job_tokenize(embed_job *job, int threads, bert_error *error) {
  atomic_store(&job->next, 0);
  team_run(job->count == 1 ? 1 : threads, tokenize_texts, job);
  bert_status status = job_status(job, error);
  if (status != BERT_OK) return status;
  sort_by_length(job);
  cut_batches(job, threads);
  return BERT_OK;
}

static bert_status job_run(embed_job *job, int threads, bert_error *error) {
  int apart = enough_for_each(job->batch_count, threads);
  bert_status status = lanes_make(job, apart ? threads : 1, apart ? 1 : threads, error);
  if (status != BERT_OK) return status;
  atomic_store(&job->next, 0);
  if (apart) {
    team_run(threads, run_apart, job);
  } else {
    together t = {.job = job};
    team_run(threads, run_together, &t);
  }
  return job_status(job, error);
}

bert_status bert_embed(bert_encoder *encoder, const bert_text *texts, size_t count,
                       const bert_embed_options *options, float *embeddings,
                       bert_embed_result *results, bert_error *error) {
  int threads = encoder_threads(encoder);
  recipe r;
  bert_status status = recipe_make(encoder->model, options, &r, error);
  if (status == BERT_OK) status = bert_check(encoder->model, error);
  if (status != BERT_OK || count == 0) return status;
  embed_job job = {.encoder = encoder,
                   .recipe = &r,
                   .texts = texts,
                   .count = count,
                   .refuse_long = options != NULL && options->refuse_long,
                   .embeddings = embeddings,
                   .results = results,
                   .signal = encoder_signal(encoder)};
  status = job_make(&job, error);
  if (status == BERT_OK) status = job_tokenize(&job, threads, error);
  if (status == BERT_OK) status = job_run(&job, threads, error);
  if (status == BERT_OK) passes_count(count);
  job_free(&job);
  encoder_trim(encoder);
  return status;
}

bert_status bert_embed_dim(const bert_model *model, const bert_embed_options *options, int *dim,
                           bert_error *error) {
  recipe r;
  bert_status status = recipe_make(model, options, &r, error);
  if (status == BERT_OK) *dim = r.dim;
  return status;
}
