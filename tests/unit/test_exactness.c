/*
** test_exactness.c: embeddings, hidden states and attention of all-MiniLM-L6-v2
** against the reference implementations, with every kernel set.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/dice.h"
#include "../support/golden.h"

/* ---- all-MiniLM-L6-v2 --------------------------------------------------- */

static void check_minilm_embeddings(const char *set) {
  golden g = golden_open("tests/golden/minilm");
  bert_model *model = open_model(MINILM_DIRECTORY);
  const json_value *texts = json_get(g.root, "texts");
  size_t count = (size_t)dice_size((int)texts->size, 3), dim = 384;
  const float *expected = golden_tensor(&g, "embedding", texts->size * dim); /* [count, dim] */
  bert_text *list = malloc(count * sizeof *list);
  float *together = malloc(count * dim * sizeof *together); /* [count, dim] */
  float *alone = malloc(dim * sizeof *alone);               /* [dim] */
  bert_error error = {BERT_OK, ""};
  double worst = 0, smallest = 1;
  for (size_t i = 0; i < count; i++) list[i] = golden_text(golden_at(texts, i));
  for (int threads = 1; threads <= 3; threads += dice_size(1, 2)) {
    bert_encoder *encoder = make_encoder(model, threads);
    assert_ok(bert_embed(encoder, list, count, NULL, together, NULL, &error), &error);
    assert_close("embedding", together, expected, count * dim, 2e-6, &worst);
    for (size_t i = 0; i < count; i++) {
      double cosine = cosine_in_double(together + i * dim, expected + i * dim, dim);
      if (cosine < smallest) smallest = cosine;
      assert_ok(bert_embed(encoder, &list[i], 1, NULL, alone, NULL, &error), &error);
      assert_memory_equal(alone, together + i * dim, dim * sizeof(float));
    }
    bert_encoder_free(encoder);
  }
  assert_true(smallest >= 0.999999);
  print_message("%s: minilm embeddings within %.2g, cosine at least %.9f\n", set, worst, smallest);
  free(list);
  free(together);
  free(alone);
  bert_close(model);
  golden_close(&g);
}

static bert_pass *run_text(bert_encoder *encoder, bert_model *model, bert_text text,
                           const bert_text *text_b, int max_tokens, bert_tokens **tokens) {
  bert_error error = {BERT_OK, ""};
  bert_pass *pass = NULL;
  bert_token_options options = {max_tokens, 0, 0};
  assert_ok(bert_tokenize(model, text, text_b, &options, tokens, &error), &error);
  assert_ok(bert_run(encoder, *tokens, BERT_KEEP_HIDDEN | BERT_KEEP_ATTENTION, &pass, &error),
            &error);
  return pass;
}

/* All heads of one layer against expected[heads, tokens, tokens]. */
static void check_layer_attention(const bert_pass *pass, int layer, int heads,
                                  const float *expected, double tolerance, double *worst) {
  size_t tokens = (size_t)bert_pass_tokens(pass);
  float *weights = malloc(tokens * tokens * sizeof *weights); /* [tokens, tokens] */
  bert_error error = {BERT_OK, ""};
  for (int head = 0; head < heads; head++) {
    assert_ok(bert_pass_attention(pass, layer, head, weights, &error), &error);
    assert_close("attention", weights, expected + (size_t)head * tokens * tokens, tokens * tokens,
                 tolerance, worst);
  }
  free(weights);
}

static void check_minilm_insides(const char *set) {
  golden g = golden_open("tests/golden/minilm");
  bert_model *model = open_model(MINILM_DIRECTORY);
  bert_encoder *encoder = make_encoder(model, 0);
  const json_value *texts = json_get(g.root, "attention_texts");
  size_t count = (size_t)dice_size((int)texts->size, 1);
  double worst_attention = 0, worst_hidden = 0;
  for (size_t i = 0; i < count; i++) {
    char name[40];
    bert_tokens *tokens;
    bert_pass *pass = run_text(encoder, model, golden_text(golden_at(texts, i)), NULL, 0, &tokens);
    size_t n = (size_t)bert_pass_tokens(pass);
    snprintf(name, sizeof name, "hidden.%zu", i);
    const float *hidden = golden_tensor(&g, name, 7 * n * 384); /* [7, n, 384] */
    snprintf(name, sizeof name, "attention.%zu", i);
    const float *attention = golden_tensor(&g, name, 6 * 12 * n * n); /* [6, 12, n, n] */
    assert_non_null(hidden);
    assert_non_null(attention);
    for (int layer = 0; layer <= 6; layer++)
      assert_close("hidden states", bert_pass_hidden(pass, layer), hidden + (size_t)layer * n * 384,
                   n * 384, 2e-5, &worst_hidden);
    for (int layer = 0; layer < 6; layer++)
      check_layer_attention(pass, layer, 12, attention + (size_t)layer * 12 * n * n, 5e-6,
                            &worst_attention);
    bert_pass_free(pass);
    bert_tokens_free(tokens);
  }
  print_message("%s: minilm attention within %.2g, hidden states within %.2g\n", set,
                worst_attention, worst_hidden);
  bert_encoder_free(encoder);
  bert_close(model);
  golden_close(&g);
}

/* ---- Tests -------------------------------------------------------------- */

static void minilm_embeddings_equal_sentence_transformers(void **state) {
  (void)state;
  with_each_kernel_set(check_minilm_embeddings);
}

static void minilm_attention_and_hidden_states_equal_transformers(void **state) {
  (void)state;
  with_each_kernel_set(check_minilm_insides);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(minilm_embeddings_equal_sentence_transformers),
      cmocka_unit_test(minilm_attention_and_hidden_states_equal_transformers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
