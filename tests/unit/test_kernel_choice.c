/*
** test_kernel_choice.c: other kernels are chosen for the process while a call runs on another
** thread, or between a pass and what is asked of it. Neither may see two sets.
*/
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/dice.h"
#include "../support/golden.h"

enum { DIM = 384 };

/* The scalar set, and the best one, which another machine names otherwise. */
static const char *const sets[] = {"scalar", NULL};

/* 112 tokens: enough for a member that works alone to feed its layers by blocks. */
#define FLIES "time flies like an arrow and fruit flies like a banana "
#define LONG_TEXT FLIES FLIES FLIES FLIES FLIES FLIES FLIES FLIES FLIES FLIES

static const bert_text text = {LONG_TEXT, sizeof LONG_TEXT - 1};

static void choose(const char *name) {
  bert_error error = {BERT_OK, ""};
  assert_ok(bert_set_kernels(name, &error), &error);
}

/* ---- Embeddings ----------------------------------------------------------- */

static atomic_int ended, switches;

static void *switch_kernels(void *unused) {
  (void)unused;
  for (unsigned i = 0; !atomic_load(&ended); i++) {
    bert_set_kernels(sets[i % 2], NULL);
    atomic_fetch_add(&switches, 1);
    usleep(700);
  }
  return NULL;
}

static void embed(bert_encoder *encoder, float *out) {
  bert_error error = {BERT_OK, ""};
  assert_ok(bert_embed(encoder, &text, 1, NULL, out, NULL, &error), &error);
}

/* Embeds until the kernels were switched `times` times, at least once while it ran. */
static void embed_while_switching(bert_encoder *encoder, float want[2][DIM], int times) {
  int mixed = 0, within = 0, before;
  while ((before = atomic_load(&switches)) < times || within == 0) {
    float got[DIM];
    embed(encoder, got);
    if (atomic_load(&switches) > before) within++;
    if (memcmp(got, want[0], sizeof got) != 0 && memcmp(got, want[1], sizeof got) != 0) mixed++;
  }
  assert_int_equal(mixed, 0);
}

static void check_embeddings(int threads) {
  bert_model *model = open_model(MINILM_DIRECTORY);
  bert_encoder *encoder = make_encoder(model, threads);
  float want[2][DIM];
  pthread_t other;
  for (int i = 0; i < 2; i++) {
    choose(sets[i]);
    embed(encoder, want[i]);
  }
  assert_memory_not_equal(want[0], want[1], sizeof want[0]);
  atomic_store(&ended, 0);
  atomic_store(&switches, 0);
  assert_int_equal(pthread_create(&other, NULL, switch_kernels, NULL), 0);
  embed_while_switching(encoder, want, dice_size(1000, 20));
  atomic_store(&ended, 1);
  pthread_join(other, NULL);
  bert_encoder_free(encoder);
  bert_close(model);
}

static void a_call_stays_with_its_kernels(void **state) {
  (void)state;
  const char *before = bert_kernels();
  check_embeddings(1);
  check_embeddings(2);
  choose(before);
}

/* ---- Passes ----------------------------------------------------------------- */

static bert_pass *run(bert_model *model, bert_encoder *encoder) {
  bert_token_options options = {0, 0, 0};
  bert_error error = {BERT_OK, ""};
  bert_tokens *tokens = NULL;
  bert_pass *pass = NULL;
  assert_ok(bert_tokenize(model, text, NULL, &options, &tokens, &error), &error);
  assert_ok(bert_run(encoder, tokens, BERT_KEEP_ATTENTION, &pass, &error), &error);
  bert_tokens_free(tokens);
  return pass;
}

/* The attention weights [tokens, tokens] of one head; to be freed. */
static float *attention_of(const bert_pass *pass) {
  bert_error error = {BERT_OK, ""};
  size_t n = (size_t)bert_pass_tokens(pass);
  float *weights = malloc(n * n * sizeof *weights);
  assert_ok(bert_pass_attention(pass, 5, 0, weights, &error), &error);
  return weights;
}

static void a_pass_keeps_its_kernels(void **state) {
  (void)state;
  const char *before = bert_kernels();
  bert_model *model = open_model(MINILM_DIRECTORY);
  bert_encoder *encoder = make_encoder(model, 1);
  choose("scalar");
  bert_pass *pass = run(model, encoder);
  size_t bytes = (size_t)bert_pass_tokens(pass) * (size_t)bert_pass_tokens(pass) * sizeof(float);
  float *own = attention_of(pass);
  choose(NULL);
  assert_string_not_equal(bert_kernels(), "scalar");
  assert_string_equal(bert_pass_kernels(pass), "scalar");
  float *again = attention_of(pass);
  assert_memory_equal(again, own, bytes);
  bert_pass *other = run(model, encoder);
  assert_string_equal(bert_pass_kernels(other), bert_kernels());
  float *others = attention_of(other);
  assert_memory_not_equal(others, own, bytes);
  free(own);
  free(again);
  free(others);
  bert_pass_free(pass);
  bert_pass_free(other);
  bert_encoder_free(encoder);
  bert_close(model);
  choose(before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_call_stays_with_its_kernels),
      cmocka_unit_test(a_pass_keeps_its_kernels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
