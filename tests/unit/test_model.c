/*
** test_model.c: opening, sharing, batching, limits, prompts, interrupting:
** bert.h as a caller sees it, on the real model and the tiny ones.
*/
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/dice.h"
#include "../support/golden.h"

#define TINY "tests/golden/families/bert-mean"
#define TINY_DENSE "tests/golden/families/bert-cls-dense"
#define TINY_MAX "tests/golden/families/bert-max"

static bert_text text_of(const char *string) {
  bert_text text = {string, strlen(string)};
  return text;
}

static void expect_error(bert_status status, bert_status expected, const bert_error *error,
                         const char *part) {
  assert_int_equal(status, expected);
  assert_int_equal(error->status, expected);
  if (strstr(error->text, part) == NULL) fail_msg("\"%s\" does not say \"%s\"", error->text, part);
}

/* ---- Opening ------------------------------------------------------------ */

static void describes_the_real_model(void **state) {
  (void)state;
  bert_model *model = open_model(MINILM_DIRECTORY);
  const bert_description *d = bert_describe(model);
  assert_string_equal(d->family, "bert");
  assert_string_equal(d->tokenizer, "wordpiece");
  assert_string_equal(d->pooling, "mean");
  assert_string_equal(d->precision, "float32");
  assert_int_equal(d->layers, 6);
  assert_int_equal(d->heads, 12);
  assert_int_equal(d->hidden_size, 384);
  assert_int_equal(d->dim, 384);
  assert_int_equal(d->vocab_size, 30522);
  assert_int_equal(d->max_tokens, 256);
  assert_int_equal(d->max_positions, 512);
  assert_int_equal(d->segments, 2);
  assert_int_equal(d->normalize, 1);
  assert_int_equal(d->has_pooler, 1);
  assert_int_equal(d->mapped_bytes, 90868376);
  assert_int_equal(d->private_bytes, 0);
  bert_close(model);
}

static void describes_what_differs(void **state) {
  (void)state;
  bert_model *dense = open_model(TINY_DENSE), *max = open_model(TINY_MAX);
  assert_int_equal(bert_describe(dense)->dim, 24);
  assert_int_equal(bert_describe(dense)->hidden_size, 64);
  assert_string_equal(bert_describe(dense)->pooling, "cls");
  assert_int_equal(bert_describe(dense)->has_pooler, 0);
  assert_int_equal(bert_describe(dense)->max_tokens, 48);
  assert_string_equal(bert_describe(max)->pooling, "max");
  assert_int_equal(bert_describe(max)->normalize, 0);
  assert_int_equal(bert_describe(max)->segments, 1);
  bert_close(dense);
  bert_close(max);
}

static void the_same_directory_is_the_same_model(void **state) {
  (void)state;
  bert_model *a = open_model(TINY), *b = open_model("./" TINY "/../bert-mean");
  assert_ptr_equal(a, b);
  bert_open_options copy = {NULL, 1};
  bert_error error = {BERT_OK, ""};
  bert_model *c = NULL;
  assert_ok(bert_open(TINY, &copy, &c, &error), &error);
  assert_ptr_not_equal(a, c);
  assert_int_equal(bert_describe(c)->mapped_bytes, 0);
  assert_true(bert_describe(c)->private_bytes > 0);
  bert_close(a);
  bert_close(b);
  bert_close(c);
  bert_close(NULL);
}

static void opening_says_what_is_wrong(void **state) {
  (void)state;
  bert_error error = {BERT_OK, ""};
  bert_model *model = NULL;
  bert_open_options options = {"float8", 0};
  expect_error(bert_open("", NULL, &model, &error), BERT_ARGUMENT, &error, "empty");
  expect_error(bert_open("no/such-model", NULL, &model, &error), BERT_IO, &error, "no/such-model");
  expect_error(bert_open(TINY, &options, &model, &error), BERT_UNSUPPORTED, &error, "float8");
  assert_null(model);
}

/* ---- Batches ------------------------------------------------------------ */

enum { BATCH = 150 };

/* Texts of many lengths, some beyond the tiny model's limit. */
static char *make_text(unsigned *seed) {
  static const char *const words[] = {"time",   "flies", "like",  "an",      "arrow", "fruit",
                                      "banana", "café",  "what?", "Strange", "42",    "世界"};
  size_t count = (size_t)(rand_r(seed) % 90);
  char *text = calloc(1, count * 10 + 1);
  for (size_t i = 0; i < count; i++) strcat(strcat(text, i ? " " : ""), words[rand_r(seed) % 12]);
  return text;
}

static void check_batches_equal_alone(const char *set) {
  (void)set;
  bert_model *model = open_model(TINY);
  bert_encoder *encoder = make_encoder(model, 0);
  bert_text texts[BATCH];
  static float together[BATCH * 32], alone[32]; /* [BATCH, 32], [32] */
  bert_embed_result results[BATCH], result;
  bert_error error = {BERT_OK, ""};
  unsigned seed = 7;
  int cut = 0, count = dice_size(BATCH, 24);
  for (int i = 0; i < count; i++) texts[i] = text_of(make_text(&seed));
  for (int threads = 1; threads <= 4; threads += dice_size(1, 3)) {
    bert_encoder_set_threads(encoder, threads);
    assert_ok(bert_embed(encoder, texts, (size_t)count, NULL, together, results, &error), &error);
    for (int i = 0; i < count; i++) {
      assert_ok(bert_embed(encoder, &texts[i], 1, NULL, alone, &result, &error), &error);
      assert_memory_equal(alone, together + i * 32, 32 * sizeof(float));
      assert_int_equal(result.tokens, results[i].tokens);
      assert_int_equal(result.truncated, results[i].truncated);
      assert_true(result.tokens <= 64);
      cut += result.truncated;
    }
  }
  assert_true(cut > 0);
  for (int i = 0; i < count; i++) free((char *)(uintptr_t)texts[i].data);
  bert_encoder_free(encoder);
  bert_close(model);
}

/* Scratch memory after `count` texts of three tokens, on one thread. */
static uint64_t memory_after(size_t count) {
  bert_model *model = open_model(TINY);
  bert_encoder *encoder = make_encoder(model, 1);
  bert_text *texts = malloc(count * sizeof *texts);
  float *out = malloc(count * 32 * sizeof *out); /* [count, 32] */
  bert_error error = {BERT_OK, ""};
  for (size_t i = 0; i < count; i++) texts[i] = text_of("time");
  assert_ok(bert_embed(encoder, texts, count, NULL, out, NULL, &error), &error);
  uint64_t bytes = bert_encoder_memory(encoder);
  free(texts);
  free(out);
  bert_encoder_free(encoder);
  bert_close(model);
  return bytes;
}

/* 153,597 tokens are 300 batches of 511.99; were each given 511, the last would get
** 299 more. */
static void no_batch_gets_what_others_leave(void **state) {
  (void)state;
  uint64_t one = memory_after(170), many = memory_after(51199);
  assert_true(many < one + one / 20);
}

static void a_text_alone_equals_itself_in_a_batch(void **state) {
  (void)state;
  with_each_kernel_set(check_batches_equal_alone);
}

static void no_texts_are_no_work(void **state) {
  (void)state;
  bert_model *model = open_model(TINY);
  bert_encoder *encoder = make_encoder(model, 0);
  bert_error error = {BERT_OK, ""};
  assert_ok(bert_embed(encoder, NULL, 0, NULL, NULL, NULL, &error), &error);
  bert_encoder_free(encoder);
  bert_close(model);
}

/* ---- Options ------------------------------------------------------------ */

typedef struct tiny {
  bert_model *model;
  bert_encoder *encoder;
  float out[384]; /* [dim] */
} tiny;

static tiny open_tiny(const char *directory) {
  tiny t = {.model = open_model(directory)};
  t.encoder = make_encoder(t.model, 0);
  return t;
}

static void close_tiny(tiny *t) {
  bert_encoder_free(t->encoder);
  bert_close(t->model);
}

static void embed(tiny *t, const char *string, const bert_embed_options *options) {
  bert_error error = {BERT_OK, ""};
  bert_text text = text_of(string);
  assert_ok(bert_embed(t->encoder, &text, 1, options, t->out, NULL, &error), &error);
}

static void refuses(tiny *t, const bert_embed_options *options, bert_status expected,
                    const char *part) {
  bert_error error = {BERT_OK, ""};
  bert_text text = text_of("a text of several words, more than four");
  expect_error(bert_embed(t->encoder, &text, 1, options, t->out, NULL, &error), expected, &error,
               part);
}

static double length_of(const float *x, size_t n) {
  return sqrt(bert_dot(x, x, n));
}

static void dims_keep_the_first_and_renormalize(void **state) {
  (void)state;
  tiny t = open_tiny(TINY);
  float whole[32]; /* [32] */
  int dim = 0;
  bert_error error = {BERT_OK, ""};
  bert_embed_options options = {.dims = 8};
  embed(&t, "time flies", NULL);
  memcpy(whole, t.out, sizeof whole);
  assert_true(fabs(length_of(whole, 32) - 1) < 1e-6);
  embed(&t, "time flies", &options);
  double part = length_of(whole, 8);
  for (int i = 0; i < 8; i++) assert_true(fabs(t.out[i] - whole[i] / part) < 1e-6);
  assert_ok(bert_embed_dim(t.model, &options, &dim, &error), &error);
  assert_int_equal(dim, 8);
  options.dims = 33;
  refuses(&t, &options, BERT_ARGUMENT, "dims is 33, but must be from 1 to 32");
  options.dims = -1;
  refuses(&t, &options, BERT_ARGUMENT, "dims is -1");
  close_tiny(&t);
}

static void normalize_switches_both_ways(void **state) {
  (void)state;
  tiny normalized = open_tiny(TINY), raw = open_tiny(TINY_MAX);
  bert_embed_options off = {.normalize = -1}, on = {.normalize = 1};
  embed(&normalized, "time flies", &off);
  assert_true(fabs(length_of(normalized.out, 32) - 1) > 1e-3);
  embed(&raw, "time flies", NULL);
  assert_true(fabs(length_of(raw.out, 32) - 1) > 1e-3);
  embed(&raw, "time flies", &on);
  assert_true(fabs(length_of(raw.out, 32) - 1) < 1e-6);
  close_tiny(&normalized);
  close_tiny(&raw);
}

/* Each pooling against its formula on the hidden states. */
static void poolings_follow_their_formulas(void **state) {
  (void)state;
  static const char *const kinds[] = {"cls", "Mean", "max", "mean_SQRT_len", "pooler"};
  tiny t = open_tiny(TINY);
  bert_error error = {BERT_OK, ""};
  bert_tokens *tokens;
  bert_pass *pass;
  float pooler[32]; /* [hidden] */
  assert_ok(
      bert_tokenize(t.model, text_of("time flies like an arrow"), NULL, NULL, &tokens, &error),
      &error);
  assert_ok(bert_run(t.encoder, tokens, 0, &pass, &error), &error);
  assert_ok(bert_pass_pooler(pass, pooler, &error), &error);
  const float *hidden = bert_pass_hidden(pass, 3); /* [n, 32] */
  int n = bert_pass_tokens(pass);
  assert_null(bert_pass_hidden(pass, 0));
  for (int kind = 0; kind < 5; kind++) {
    bert_embed_options options = {.pooling = kinds[kind], .normalize = -1};
    embed(&t, "time flies like an arrow", &options);
    for (int i = 0; i < 32; i++) {
      double sum = 0, largest = -1e9;
      for (int row = 0; row < n; row++) {
        sum += hidden[row * 32 + i];
        if (hidden[row * 32 + i] > largest) largest = hidden[row * 32 + i];
      }
      const double expected[] = {hidden[i], sum / n, largest, sum / sqrt(n), pooler[i]};
      assert_true(fabs(t.out[i] - expected[kind]) < 2e-6);
    }
  }
  bert_pass_free(pass);
  bert_tokens_free(tokens);
  bert_embed_options unknown = {.pooling = "median"};
  refuses(&t, &unknown, BERT_ARGUMENT, "median");
  close_tiny(&t);
}

static void pooler_needs_a_pooler(void **state) {
  (void)state;
  tiny t = open_tiny(TINY_DENSE);
  bert_embed_options options = {.pooling = "pooler"};
  refuses(&t, &options, BERT_ARGUMENT, "no pooler");
  close_tiny(&t);
}

static void prompts_are_put_before_the_text(void **state) {
  (void)state;
  tiny t = open_tiny(TINY_DENSE);
  float by_hand[24]; /* [24] */
  const char *const roles[] = {"passage", "document", "corpus"};
  embed(&t, "query: time flies", NULL);
  memcpy(by_hand, t.out, sizeof by_hand);
  bert_embed_options kind = {.kind = "query"}, literal = {.prompt = "query: "};
  embed(&t, "time flies", &kind);
  assert_memory_equal(t.out, by_hand, sizeof by_hand);
  embed(&t, "time flies", &literal);
  assert_memory_equal(t.out, by_hand, sizeof by_hand);
  embed(&t, "passage: time flies", NULL);
  memcpy(by_hand, t.out, sizeof by_hand);
  for (int i = 0; i < 3; i++) {
    kind.kind = roles[i];
    embed(&t, "time flies", &kind);
    assert_memory_equal(t.out, by_hand, sizeof by_hand);
  }
  kind.kind = "classification";
  refuses(&t, &kind, BERT_ARGUMENT, "classification");
  close_tiny(&t);
  tiny plain = open_tiny(TINY);
  embed(&plain, "time flies", NULL);
  memcpy(by_hand, plain.out, sizeof by_hand);
  kind.kind = "query";
  embed(&plain, "time flies", &kind);
  assert_memory_equal(plain.out, by_hand, sizeof by_hand);
  close_tiny(&plain);
}

static void the_token_limit_can_be_moved(void **state) {
  (void)state;
  tiny t = open_tiny(TINY);
  bert_embed_result result;
  bert_error error = {BERT_OK, ""};
  bert_text text = text_of("time flies like an arrow and fruit flies like a banana");
  bert_embed_options options = {.max_tokens = 5};
  assert_ok(bert_embed(t.encoder, &text, 1, &options, t.out, &result, &error), &error);
  assert_int_equal(result.tokens, 5);
  assert_int_equal(result.truncated, 1);
  options.refuse_long = 1;
  refuses(&t, &options, BERT_TOO_LONG, "longer than 5 tokens");
  options.max_tokens = 1;
  refuses(&t, &options, BERT_ARGUMENT, "max_tokens is 1");
  options.max_tokens = 67;
  refuses(&t, &options, BERT_ARGUMENT, "66 positions");
  close_tiny(&t);
}

/* ---- Passes ------------------------------------------------------------- */

static void a_pass_keeps_what_was_asked_for(void **state) {
  (void)state;
  tiny t = open_tiny(TINY);
  bert_error error = {BERT_OK, ""};
  bert_tokens *tokens;
  bert_pass *pass;
  float weights[64]; /* [8, 8] at most */
  size_t stride = 0;
  uint64_t before = bert_passes_run();
  assert_ok(bert_tokenize(t.model, text_of("time"), NULL, NULL, &tokens, &error), &error);
  assert_ok(bert_run(t.encoder, tokens, 0, &pass, &error), &error);
  expect_error(bert_pass_attention(pass, 0, 0, weights, &error), BERT_ARGUMENT, &error,
               "kept no attention");
  assert_null(bert_pass_vectors(pass, BERT_QUERY, 0, 0, &stride));
  bert_pass_free(pass);
  assert_ok(bert_run(t.encoder, tokens, BERT_KEEP_ATTENTION | BERT_KEEP_HIDDEN, &pass, &error),
            &error);
  assert_int_equal(bert_pass_tokens(pass), 3);
  expect_error(bert_pass_attention(pass, 3, 0, weights, &error), BERT_ARGUMENT, &error,
               "layers are 0 to 2");
  expect_error(bert_pass_attention(pass, 0, -1, weights, &error), BERT_ARGUMENT, &error,
               "heads 0 to 1");
  assert_null(bert_pass_hidden(pass, 4));
  assert_null(bert_pass_hidden(pass, -1));
  assert_non_null(bert_pass_hidden(pass, 0));
  assert_non_null(bert_pass_vectors(pass, BERT_VALUE, 2, 1, &stride));
  assert_int_equal(stride, 96);
  assert_int_equal(bert_passes_run() - before, 2);
  bert_pass_free(pass);
  bert_tokens_free(tokens);
  close_tiny(&t);
}

/* Attention from the kept vectors, in double: softmax(q k^T / sqrt width). */
static void attention_is_made_of_queries_and_keys(void **state) {
  (void)state;
  tiny t = open_tiny(TINY);
  bert_error error = {BERT_OK, ""};
  bert_tokens *tokens;
  bert_pass *pass;
  size_t stride;
  assert_ok(bert_tokenize(t.model, text_of("time flies like"), NULL, NULL, &tokens, &error),
            &error);
  assert_ok(bert_run(t.encoder, tokens, BERT_KEEP_ATTENTION, &pass, &error), &error);
  size_t n = (size_t)bert_pass_tokens(pass);
  float *weights = malloc(n * n * sizeof *weights); /* [n, n] */
  assert_ok(bert_pass_attention(pass, 1, 1, weights, &error), &error);
  const float *q = bert_pass_vectors(pass, BERT_QUERY, 1, 1, &stride);
  const float *k = bert_pass_vectors(pass, BERT_KEY, 1, 1, &stride);
  for (size_t i = 0; i < n; i++) {
    double row[64], sum = 0;
    for (size_t j = 0; j < n; j++) {
      double score = 0;
      for (size_t d = 0; d < 16; d++) score += (double)q[i * stride + d] * k[j * stride + d];
      row[j] = exp(score / 4);
      sum += row[j];
    }
    for (size_t j = 0; j < n; j++) assert_true(fabs(weights[i * n + j] - row[j] / sum) < 1e-6);
  }
  free(weights);
  bert_pass_free(pass);
  bert_tokens_free(tokens);
  close_tiny(&t);
}

static void foreign_tokens_are_checked(void **state) {
  (void)state;
  tiny t = open_tiny(TINY);
  bert_error error = {BERT_OK, ""};
  bert_tokens *tokens;
  bert_pass *pass = NULL;
  assert_ok(bert_tokenize(t.model, text_of("time"), NULL, NULL, &tokens, &error), &error);
  tokens->ids[1] = 1200;
  expect_error(bert_run(t.encoder, tokens, 0, &pass, &error), BERT_ARGUMENT, &error, "1200");
  tokens->ids[1] = -1;
  expect_error(bert_run(t.encoder, tokens, 0, &pass, &error), BERT_ARGUMENT, &error, "-1");
  tokens->ids[1] = 5;
  tokens->types[2] = 2;
  expect_error(bert_run(t.encoder, tokens, 0, &pass, &error), BERT_ARGUMENT, &error,
               "token type 2");
  assert_null(pass);
  bert_tokens_free(tokens);
  close_tiny(&t);
}

/* ---- Interrupts, threads, fork ------------------------------------------ */

static int interrupt_after(void *user) {
  int *left = user;
  return (*left)-- <= 0;
}

static void work_stops_when_asked(void **state) {
  (void)state;
  tiny t = open_tiny(TINY);
  bert_text texts[BATCH];
  static float out[BATCH * 32]; /* [BATCH, 32] */
  bert_error error = {BERT_OK, ""};
  for (int i = 0; i < BATCH; i++) texts[i] = text_of("time flies like an arrow");
  for (int after = 0; after < 40; after += 3) {
    int left = after;
    bert_encoder_set_interrupt(t.encoder, interrupt_after, &left);
    bert_encoder_set_threads(t.encoder, 1 + after % 3);
    /* Forty questions are fewer than tokenizing alone asks. */
    expect_error(bert_embed(t.encoder, texts, BATCH, NULL, out, NULL, &error), BERT_INTERRUPTED,
                 &error, "interrupted");
  }
  int once = 2;
  bert_encoder_set_interrupt(t.encoder, interrupt_after, &once);
  expect_error(bert_embed(t.encoder, texts, 1, NULL, out, NULL, &error), BERT_INTERRUPTED, &error,
               "interrupted");
  bert_encoder_set_interrupt(t.encoder, NULL, NULL);
  assert_ok(bert_embed(t.encoder, texts, BATCH, NULL, out, NULL, &error), &error);
  close_tiny(&t);
}

enum { USERS = 8, ROUNDS = 25 };

static void *use_model(void *user) {
  const float *expected = user; /* [32] */
  float out[32];                /* [32] */
  for (int i = 0; i < dice_rounds(ROUNDS, 4); i++) {
    bert_error error = {BERT_OK, ""};
    bert_model *model = NULL;
    bert_encoder *encoder = NULL;
    bert_text text = text_of("time flies like an arrow");
    int ok = bert_open(TINY, NULL, &model, &error) == BERT_OK &&
             bert_encoder_create(model, &encoder, &error) == BERT_OK &&
             bert_embed(encoder, &text, 1, NULL, out, NULL, &error) == BERT_OK &&
             largest_difference(out, expected, 32) <= 5e-7;
    bert_encoder_free(encoder);
    bert_close(model);
    if (!ok) return user;
  }
  return NULL;
}

static void many_threads_open_and_embed_at_once(void **state) {
  (void)state;
  tiny t = open_tiny(TINY);
  pthread_t threads[USERS];
  embed(&t, "time flies like an arrow", NULL);
  bert_encoder_free(t.encoder);
  bert_close(t.model);
  for (int i = 0; i < USERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, use_model, t.out), 0);
  for (int i = 0; i < USERS; i++) {
    void *failed = NULL;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
}

static void a_forked_child_embeds_too(void **state) {
  (void)state;
  tiny t = open_tiny(TINY);
  float before[32]; /* [32] */
  embed(&t, "time flies", NULL);
  memcpy(before, t.out, sizeof before);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    bert_text text = text_of("time flies");
    bert_status status = bert_embed(t.encoder, &text, 1, NULL, t.out, NULL, NULL);
    _exit(status == BERT_OK && memcmp(t.out, before, sizeof before) == 0 ? 0 : 1);
  }
  int exit_status = -1;
  assert_int_equal(waitpid(child, &exit_status, 0), child);
  assert_int_equal(exit_status, 0);
  embed(&t, "time flies", NULL);
  assert_memory_equal(t.out, before, sizeof before);
  close_tiny(&t);
}

/* ---- Chunks ------------------------------------------------------------- */

static void chunks_cover_a_text(void **state) {
  (void)state;
  tiny t = open_tiny(TINY);
  unsigned seed = 3;
  for (int round = 0; round < dice_rounds(40, 10); round++) {
    char *string = make_text(&seed);
    bert_text text = text_of(string);
    bert_error error = {BERT_OK, ""};
    bert_chunk *chunks;
    size_t count, covered = 0;
    int max_tokens = 6 + round % 20, overlap = round % 4;
    assert_ok(bert_split(t.model, text, max_tokens, overlap, &chunks, &count, &error), &error);
    for (size_t i = 0; i < count; i++) {
      bert_tokens *tokens;
      bert_text piece = {string + chunks[i].start, chunks[i].stop - chunks[i].start};
      assert_true(chunks[i].tokens <= max_tokens);
      assert_ok(bert_tokenize(t.model, piece, NULL, NULL, &tokens, &error), &error);
      assert_int_equal(tokens->count, chunks[i].tokens);
      bert_tokens_free(tokens);
      /* No gap but white space, and always forward. */
      for (size_t gap = covered; gap < chunks[i].start; gap++) assert_int_equal(string[gap], ' ');
      assert_true(i == 0 || chunks[i].start > chunks[i - 1].start);
      assert_true(i == 0 || chunks[i].stop > chunks[i - 1].stop);
      if (overlap == 0) assert_true(chunks[i].start >= covered);
      covered = chunks[i].stop;
    }
    assert_int_equal(covered, text.size);
    bert_chunks_free(chunks);
    free(string);
  }
  close_tiny(&t);
}

static void chunks_of_odd_texts(void **state) {
  (void)state;
  tiny t = open_tiny(TINY);
  bert_error error = {BERT_OK, ""};
  bert_chunk *chunks;
  size_t count;
  assert_ok(bert_split(t.model, text_of("  "), 8, 0, &chunks, &count, &error), &error);
  assert_int_equal(count, 1);
  assert_int_equal(chunks[0].stop, 0);
  assert_int_equal(chunks[0].tokens, 2);
  bert_chunks_free(chunks);
  expect_error(bert_split(t.model, text_of("a"), 2, 0, &chunks, &count, &error), BERT_ARGUMENT,
               &error, "max_tokens is 2, but must be from 3 to 66");
  expect_error(bert_split(t.model, text_of("a"), 67, 0, &chunks, &count, &error), BERT_ARGUMENT,
               &error, "max_tokens is 67");
  expect_error(bert_split(t.model, text_of("a"), 8, 6, &chunks, &count, &error), BERT_ARGUMENT,
               &error, "overlap is 6, but must be from 0 to 5");
  close_tiny(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(describes_the_real_model),
      cmocka_unit_test(describes_what_differs),
      cmocka_unit_test(the_same_directory_is_the_same_model),
      cmocka_unit_test(opening_says_what_is_wrong),
      cmocka_unit_test(a_text_alone_equals_itself_in_a_batch),
      cmocka_unit_test(no_batch_gets_what_others_leave),
      cmocka_unit_test(no_texts_are_no_work),
      cmocka_unit_test(dims_keep_the_first_and_renormalize),
      cmocka_unit_test(normalize_switches_both_ways),
      cmocka_unit_test(poolings_follow_their_formulas),
      cmocka_unit_test(pooler_needs_a_pooler),
      cmocka_unit_test(prompts_are_put_before_the_text),
      cmocka_unit_test(the_token_limit_can_be_moved),
      cmocka_unit_test(a_pass_keeps_what_was_asked_for),
      cmocka_unit_test(attention_is_made_of_queries_and_keys),
      cmocka_unit_test(foreign_tokens_are_checked),
      cmocka_unit_test(work_stops_when_asked),
      cmocka_unit_test(many_threads_open_and_embed_at_once),
      cmocka_unit_test(a_forked_child_embeds_too),
      cmocka_unit_test(chunks_cover_a_text),
      cmocka_unit_test(chunks_of_odd_texts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
