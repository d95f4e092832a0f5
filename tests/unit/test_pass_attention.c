/*
** test_pass_attention.c: what a kept pass tells about its attention, on the
** real model and the tiny ones: rows, scores, temperature, norms of value
** vectors, rollout, units, numbers that are not finite. Expected numbers are
** computed here in double from the kept vectors and the weight file.
*/
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/dice.h"
#include "../support/faults.h"
#include "../support/golden.h"
#include "../support/scratch.h"

#define TINY "tests/golden/families/bert-mean"

/* A model and one text run through it. */
typedef struct seen {
  bert_model *model;
  bert_encoder *encoder;
  bert_tokens *tokens;
  bert_pass *pass;
  size_t n; /* tokens of the pass */
  int layers, heads;
  size_t width; /* of a head */
} seen;

static bert_text text_of(const char *string) {
  bert_text text = {string, strlen(string)};
  return text;
}

static void open_seen(seen *s, const char *directory) {
  bert_error error = {BERT_OK, ""};
  memset(s, 0, sizeof *s);
  assert_ok(bert_open(directory, NULL, &s->model, &error), &error);
  assert_ok(bert_encoder_create(s->model, &s->encoder, &error), &error);
  const bert_description *d = bert_describe(s->model);
  s->layers = d->layers;
  s->heads = d->heads;
  s->width = (size_t)(d->hidden_size / d->heads);
}

static seen look_at(const char *directory, const char *text, const char *text_b, int max_tokens) {
  bert_error error = {BERT_OK, ""};
  bert_token_options options = {max_tokens, 0, 0};
  bert_text b = text_of(text_b ? text_b : "");
  seen s;
  open_seen(&s, directory);
  assert_ok(bert_tokenize(s.model, text_of(text), text_b ? &b : NULL, &options, &s.tokens, &error),
            &error);
  assert_ok(bert_run(s.encoder, s.tokens, BERT_KEEP_ATTENTION, &s.pass, &error), &error);
  s.n = (size_t)bert_pass_tokens(s.pass);
  return s;
}

static void close_seen(seen *s) {
  bert_pass_free(s->pass);
  bert_tokens_free(s->tokens);
  bert_encoder_free(s->encoder);
  bert_close(s->model);
}

static void expect_error(bert_status status, bert_status expected, const bert_error *error,
                         const char *part) {
  if (status != expected) fail_msg("status %d: %s", (int)status, error->text);
  assert_int_equal(error->status, expected);
  if (strstr(error->text, part) == NULL) fail_msg("\"%s\" does not say \"%s\"", error->text, part);
}

static float *matrix(size_t rows, size_t cols) {
  return calloc(rows * cols + 1, sizeof(float));
}

static const char *const long_text =
    "The history of the hammer is long, and so is this sentence: it goes on, and on, until there "
    "are more tokens in it than queries in a block. Carpenters, blacksmiths, geologists and judges "
    "use hammers; none of them would call unaffable what is, after all, only a tool. Each blow "
    "counts!";

/* ---- Rows -------------------------------------------------------------------------- */

static double score_in_double(const seen *s, int layer, int head, size_t i, size_t j) {
  size_t stride;
  const float *q = bert_pass_vectors(s->pass, BERT_QUERY, layer, head, &stride);
  const float *k = bert_pass_vectors(s->pass, BERT_KEY, layer, head, &stride);
  double sum = 0;
  for (size_t d = 0; d < s->width; d++)
    sum += (double)q[i * stride + d] * (double)k[j * stride + d];
  return sum / sqrt((double)s->width);
}

static void weights_in_double(const seen *s, int layer, int head, double temperature, double *out) {
  for (size_t i = 0; i < s->n; i++) {
    double *row = out + i * s->n, largest = -INFINITY, sum = 0;
    for (size_t j = 0; j < s->n; j++) {
      row[j] = score_in_double(s, layer, head, i, j);
      if (row[j] > largest) largest = row[j];
    }
    for (size_t j = 0; j < s->n; j++) sum += row[j] = exp((row[j] - largest) / temperature);
    for (size_t j = 0; j < s->n; j++) row[j] /= sum;
  }
}

/* Every range of rows has the bits of the whole, and the whole those of the pass. */
static void check_ranges(const char *set) {
  seen s = look_at(MINILM_DIRECTORY, long_text, NULL, dice_size(0, 66));
  bert_error error = {BERT_OK, ""};
  float *all = matrix(s.n, s.n), *part = matrix(s.n, s.n), *scores = matrix(s.n, s.n);
  assert_true(s.n > 64 && s.n < 128);
  for (int layer = 0; layer < s.layers; layer += 5) {
    assert_ok(bert_pass_attention(s.pass, layer, 7, all, &error), &error);
    for (size_t rows = 1; rows <= s.n; rows += rows < 8 ? 1 : 23) {
      for (size_t first = 0; first < s.n; first += rows) {
        size_t count = s.n - first < rows ? s.n - first : rows;
        assert_ok(bert_pass_attention_rows(s.pass, layer, 7, first, count, 1, part, scores, &error),
                  &error);
        assert_memory_equal(part, all + first * s.n, count * s.n * sizeof *part);
        for (size_t j = 0; j < s.n; j++)
          assert_true(fabs((double)scores[j] - score_in_double(&s, layer, 7, first, j)) < 2e-5);
      }
    }
  }
  assert_ok(bert_pass_attention_rows(s.pass, 0, 0, s.n, 0, 1, part, scores, &error), &error);
  assert_ok(bert_pass_attention_rows(s.pass, 0, 0, 0, 1, 1, NULL, NULL, &error), &error);
  (void)set;
  free(all);
  free(part);
  free(scores);
  close_seen(&s);
}

static void ranges_of_rows_have_the_bits_of_the_pass(void **state) {
  (void)state;
  with_each_kernel_set(check_ranges);
}

static void check_temperature(const char *set) {
  const double temperatures[] = {1, 0.25, 3, 40, 1e30};
  seen s =
      look_at(MINILM_DIRECTORY, "Time flies like an arrow; fruit flies like a banana.", NULL, 0);
  bert_error error = {BERT_OK, ""};
  float *got = matrix(s.n, s.n);
  double *expected = calloc(s.n * s.n, sizeof *expected), worst = 0; /* [n, n] */
  for (size_t t = 0; t < sizeof temperatures / sizeof *temperatures; t++)
    for (int head = 0; head < s.heads; head++) {
      weights_in_double(&s, head % s.layers, head, temperatures[t], expected);
      assert_ok(bert_pass_attention_rows(s.pass, head % s.layers, head, 0, s.n, temperatures[t],
                                         got, NULL, &error),
                &error);
      for (size_t i = 0; i < s.n * s.n; i++) {
        double difference = fabs((double)got[i] - expected[i]);
        if (difference > worst) worst = difference;
      }
    }
  print_message("%s: tempered weights within %.2g\n", set, worst);
  assert_true(worst < 5e-6);
  free(got);
  free(expected);
  close_seen(&s);
}

static void temperature_against_double(void **state) {
  (void)state;
  with_each_kernel_set(check_temperature);
}

/* Near 0 all weight goes to the largest score, and nothing overflows. */
static void the_coldest_temperature_picks_the_largest(void **state) {
  (void)state;
  const double cold[] = {1e-6, 1e-45, 4.9e-324};
  seen s = look_at(TINY, "time flies like an arrow", NULL, 0);
  bert_error error = {BERT_OK, ""};
  float *got = matrix(s.n, s.n), *scores = matrix(s.n, s.n);
  for (size_t t = 0; t < 3; t++) {
    assert_ok(bert_pass_attention_rows(s.pass, 1, 1, 0, s.n, cold[t], got, scores, &error), &error);
    for (size_t i = 0; i < s.n; i++) {
      size_t largest = 0;
      for (size_t j = 1; j < s.n; j++)
        if (scores[i * s.n + j] > scores[i * s.n + largest]) largest = j;
      for (size_t j = 0; j < s.n; j++) assert_true(got[i * s.n + j] == (j == largest));
    }
  }
  free(got);
  free(scores);
  close_seen(&s);
}

static void what_is_not_there_is_refused(void **state) {
  (void)state;
  seen s = look_at(TINY, "time flies", NULL, 0);
  bert_error error = {BERT_OK, ""};
  float *out = matrix(s.n, s.n);
  const double bad[] = {0, -1, NAN, -INFINITY};
  for (size_t i = 0; i < 4; i++) {
    expect_error(bert_pass_attention_rows(s.pass, 0, 0, 0, 1, bad[i], out, NULL, &error),
                 BERT_ARGUMENT, &error, "it must be above 0");
    expect_error(bert_pass_rollout(s.pass, 0, bad[i], out, &error), BERT_ARGUMENT, &error,
                 "it must be above 0");
  }
  expect_error(bert_pass_attention_rows(s.pass, 0, 0, s.n, 1, 1, out, NULL, &error), BERT_ARGUMENT,
               &error, "tokens");
  expect_error(bert_pass_attention_rows(s.pass, 0, 0, 1, SIZE_MAX, 1, out, NULL, &error),
               BERT_ARGUMENT, &error, "tokens");
  expect_error(bert_pass_attention_rows(s.pass, 0, 2, 0, 1, 1, out, NULL, &error), BERT_ARGUMENT,
               &error, "heads 0 to 1");
  expect_error(bert_pass_value_norms(s.pass, -1, 0, out, &error), BERT_ARGUMENT, &error,
               "layers are 0 to 2");
  expect_error(bert_pass_rollout(s.pass, 3, 1, out, &error), BERT_ARGUMENT, &error, "layer 3");
  expect_error(bert_pass_rollout_step(s.pass, -1, 1, NULL, out, &error), BERT_ARGUMENT, &error,
               "layer -1");
  bert_pass_free(s.pass);
  assert_ok(bert_run(s.encoder, s.tokens, BERT_KEEP_HIDDEN, &s.pass, &error), &error);
  expect_error(bert_pass_value_norms(s.pass, 0, 0, out, &error), BERT_ARGUMENT, &error,
               "kept no attention");
  expect_error(bert_pass_rollout(s.pass, 0, 1, out, &error), BERT_ARGUMENT, &error,
               "kept no attention");
  free(out);
  close_seen(&s);
}

/* ---- Norms of transformed values ------------------------------------------------------ */

static void check_norms(const seen *s, const char *directory, int layer, int head, double *worst) {
  char name[80];
  bert_error error = {BERT_OK, ""};
  tensor_file *file;
  size_t stride, hidden = s->width * (size_t)s->heads;
  float *norms = matrix(1, s->n);
  snprintf(name, sizeof name, "encoder.layer.%d.attention.output.dense.weight", layer);
  assert_ok(tensors_open(directory, "model.safetensors", 0, &file, &error), &error);
  const tensor *t = tensors_find(file, name);
  assert_non_null(t);
  const float *w = t->data; /* [hidden, hidden] */
  const float *v = bert_pass_vectors(s->pass, BERT_VALUE, layer, head, &stride);
  assert_ok(bert_pass_value_norms(s->pass, layer, head, norms, &error), &error);
  for (size_t j = 0; j < s->n; j++) {
    double squares = 0;
    for (size_t o = 0; o < hidden; o++) {
      double sum = 0;
      for (size_t d = 0; d < s->width; d++)
        sum += (double)v[j * stride + d] * (double)w[o * hidden + (size_t)head * s->width + d];
      squares += sum * sum;
    }
    double off = fabs((double)norms[j] - sqrt(squares)) / sqrt(squares);
    if (off > *worst) *worst = off;
  }
  free(norms);
  tensors_close(file);
}

static void check_value_norms(const char *set) {
  double worst = 0;
  seen real = look_at(MINILM_DIRECTORY, long_text, NULL, dice_size(0, 12));
  seen tiny = look_at(TINY, "time", NULL, 0);
  for (int head = 0; head < real.heads; head++)
    check_norms(&real, MINILM_DIRECTORY, head % real.layers, head, &worst);
  for (int layer = 0; layer < tiny.layers; layer++)
    for (int head = 0; head < tiny.heads; head++) check_norms(&tiny, TINY, layer, head, &worst);
  print_message("%s: norms of value vectors within %.2g of their size\n", set, worst);
  assert_true(worst < 2e-6);
  close_seen(&real);
  close_seen(&tiny);
}

static void norms_of_value_vectors_against_double(void **state) {
  (void)state;
  with_each_kernel_set(check_value_norms);
}

/* ---- Rollout --------------------------------------------------------------------------- */

/* Abnar and Zuidema's definition, in double: rollout [n, n] becomes that of the
** next layer. */
static void rollout_in_double(const seen *s, int layer, double temperature, double *rollout) {
  size_t n = s->n;
  double *mean = calloc(n * n, sizeof *mean), *one = calloc(n * n, sizeof *one); /* [n, n] */
  for (int head = 0; head < s->heads; head++) {
    weights_in_double(s, layer, head, temperature, one);
    for (size_t i = 0; i < n * n; i++) mean[i] += one[i] / s->heads;
  }
  for (size_t i = 0; i < n; i++) {
    double sum = 0;
    mean[i * n + i] += 1;
    for (size_t j = 0; j < n; j++) sum += mean[i * n + j];
    for (size_t j = 0; j < n; j++) mean[i * n + j] /= sum;
  }
  memcpy(one, rollout, n * n * sizeof *one);
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++) {
      double sum = 0;
      for (size_t m = 0; m < n; m++) sum += mean[i * n + m] * one[m * n + j];
      rollout[i * n + j] = sum;
    }
  free(mean);
  free(one);
}

static void check_rollout(const char *directory, const char *text, double temperature) {
  seen s = look_at(directory, text, NULL, 0);
  bert_error error = {BERT_OK, ""};
  size_t n = s.n;
  double *expected = calloc(n * n, sizeof *expected); /* [n, n] */
  float *got = matrix(n, n), *step = matrix(n, n), *before = matrix(n, n);
  for (size_t i = 0; i < n; i++) expected[i * n + i] = 1;
  for (int layer = 0; layer < s.layers; layer++) {
    rollout_in_double(&s, layer, temperature, expected);
    assert_ok(bert_pass_rollout(s.pass, layer, temperature, got, &error), &error);
    assert_ok(
        bert_pass_rollout_step(s.pass, layer, temperature, layer ? before : NULL, step, &error),
        &error);
    assert_memory_equal(step, got, n * n * sizeof *got);
    memcpy(before, step, n * n * sizeof *step);
    for (size_t i = 0; i < n; i++) {
      double sum = 0;
      for (size_t j = 0; j < n; j++) {
        sum += (double)got[i * n + j];
        assert_true(fabs((double)got[i * n + j] - expected[i * n + j]) < 5e-6);
      }
      assert_true(fabs(sum - 1) < 1e-5);
    }
  }
  free(expected);
  free(got);
  free(step);
  free(before);
  close_seen(&s);
}

static void rollout_against_double(void **state) {
  (void)state;
  check_rollout(MINILM_DIRECTORY, "Time flies like an arrow; fruit flies like a banana.", 1);
  check_rollout(MINILM_DIRECTORY, long_text, 1);
  check_rollout(TINY, "time flies like an arrow", 1);
  check_rollout(TINY, "time flies like an arrow", 2.5);
  check_rollout(TINY, "", 1);
}

/* ---- Units ------------------------------------------------------------------------------ */

static bert_view *view_of(const seen *s, int words, int no_special, int renormalize) {
  bert_view_options options = {words, no_special, renormalize};
  bert_error error = {BERT_OK, ""};
  bert_view *view = NULL;
  assert_ok(bert_view_make(s->model, s->tokens, &options, &view, &error), &error);
  assert_int_equal(view->tokens, s->n);
  return view;
}

/* The units as text: "un.aff.able" for the pieces of one, and a mark for each
** flag: * special, | separator, ! punctuation. */
static void assert_units(const bert_view *view, const char *text, const char *text_b,
                         const char *expected) {
  char got[2000] = "";
  for (size_t i = 0; i < view->count; i++) {
    const bert_unit *u = &view->units[i];
    const char *source = u->segment == 1 ? text_b : text;
    size_t end = strlen(got);
    snprintf(got + end, sizeof got - end, "%s%.*s%s%s%s:%d:%zu", i ? " " : "",
             (int)(u->stop - u->start), source + u->start, u->special ? "*" : "",
             u->separator ? "|" : "", u->punctuation ? "!" : "", u->segment, u->last - u->first);
  }
  assert_string_equal(got, expected);
}

static void units_of_a_text(void **state) {
  (void)state;
  const char *text = "An unaffable man -- said [SEP], or so.";
  seen s = look_at(MINILM_DIRECTORY, text, NULL, 0);
  bert_error error = {BERT_OK, ""};
  bert_view *plain = NULL, *words = view_of(&s, 1, 0, 0), *bare = view_of(&s, 1, 1, 1);
  assert_ok(bert_view_make(s.model, s.tokens, NULL, &plain, &error), &error);
  assert_units(plain, text, NULL,
               "*:-1:1 An:0:1 una:0:1 ffa:0:1 ble:0:1 man:0:1 -!:0:1 -!:0:1 said:0:1 [SEP]|:0:1 "
               ",!:0:1 or:0:1 so:0:1 .!:0:1 *|:-1:1");
  assert_units(words, text, NULL,
               "*:-1:1 An:0:1 unaffable:0:3 man:0:1 -!:0:1 -!:0:1 said:0:1 [SEP]|:0:1 ,!:0:1 "
               "or:0:1 so:0:1 .!:0:1 *|:-1:1");
  assert_units(bare, text, NULL,
               "An:0:1 unaffable:0:3 man:0:1 -!:0:1 -!:0:1 said:0:1 [SEP]|:0:1 ,!:0:1 or:0:1 "
               "so:0:1 .!:0:1");
  assert_int_equal(plain->renormalize, 0);
  assert_int_equal(words->renormalize, 0);
  assert_int_equal(bare->renormalize, 1);
  bert_view_free(plain);
  bert_view_free(words);
  bert_view_free(bare);
  bert_view_free(NULL);
  close_seen(&s);
}

static void units_of_a_pair(void **state) {
  (void)state;
  const char *a = "Who made it?", *b = "Blacksmiths made it";
  seen s = look_at(MINILM_DIRECTORY, a, b, 0);
  bert_view *plain = view_of(&s, 0, 0, 1), *bare = view_of(&s, 0, 1, 0);
  assert_units(plain, a, b,
               "*:-1:1 Who:0:1 made:0:1 it:0:1 ?!:0:1 *|:-1:1 Blacksmith:1:1 s:1:1 made:1:1 "
               "it:1:1 *|:-1:1");
  assert_units(bare, a, b, "Who:0:1 made:0:1 it:0:1 ?!:0:1 Blacksmith:1:1 s:1:1 made:1:1 it:1:1");
  assert_int_equal(plain->renormalize, 0); /* nothing was left out */
  assert_int_equal(bare->renormalize, 0);
  bert_view_free(plain);
  bert_view_free(bare);
  close_seen(&s);
  /* A cut pair: what is cut off lies between tokens that are used. */
  s = look_at(MINILM_DIRECTORY, "time and time again", "blacksmiths", 6);
  bert_view *cut = view_of(&s, 1, 0, 0), *cut_bare = view_of(&s, 1, 1, 0);
  assert_units(cut, "time and time again", "blacksmiths",
               "*:-1:1 time:0:1 and:0:1 *|:-1:1 blacksmith:1:1 *|:-1:1");
  assert_units(cut_bare, "time and time again", "blacksmiths", "time:0:1 and:0:1 blacksmith:1:1");
  assert_int_equal(cut_bare->units[2].first, 4);
  bert_view_free(cut);
  bert_view_free(cut_bare);
  close_seen(&s);
}

static void units_of_an_empty_and_of_a_cut_text(void **state) {
  (void)state;
  seen s = look_at(TINY, "", NULL, 0);
  bert_view *none = view_of(&s, 0, 1, 1), *both = view_of(&s, 1, 0, 0);
  float weights[4] = {.5F, .5F, .5F, .5F}, out[4];
  bert_head_statistics h;
  assert_int_equal(none->count, 0);
  assert_int_equal(both->count, 2);
  bert_view_apply(none, weights, out);
  bert_head_summarize(none, out, NULL, &h);
  assert_string_equal(h.label, "single");
  bert_view_free(none);
  bert_view_free(both);
  close_seen(&s);
  s = look_at(MINILM_DIRECTORY, "an unaffable, unaffable man", NULL, 5);
  bert_view *cut = view_of(&s, 1, 0, 0); /* [CLS] an una ##ffa [SEP] */
  assert_units(cut, "an unaffable, unaffable man", NULL, "*:-1:1 an:0:1 unaffa:0:2 *|:-1:1");
  bert_view_free(cut);
  close_seen(&s);
}

/* Texts may follow each other without a separator: their words are still two. */
static void words_end_with_their_segment(void **state) {
  (void)state;
  int32_t ids[] = {928, 907, 609, 609}, types[4] = {0}, words[] = {0, 0, 0, 1};
  size_t starts[4] = {0, 2, 0, 2}, stops[4] = {2, 4, 2, 4};
  int8_t segments[] = {0, 0, 1, 1};
  uint8_t special[4] = {0}, used[] = {1, 1, 1, 1};
  bert_tokens tokens = {4, ids, types, starts, stops, words, segments, special, used, 4, 0};
  bert_view_options options = {1, 1, 1};
  bert_error error = {BERT_OK, ""};
  bert_view *view;
  seen s;
  open_seen(&s, TINY);
  assert_ok(bert_view_make(s.model, &tokens, &options, &view, &error), &error);
  assert_units(view, "time", "abcd", "time:0:2 ab:1:1 cd:1:1");
  assert_int_equal(view->renormalize, 0);
  bert_view_free(view);
  close_seen(&s);
}

/* All heads of a text: rows of words sum to 1, rows without special tokens to
** less, and to 1 again when renormalized. */
static void check_sums(const char *directory, const char *text, const char *text_b) {
  seen s = look_at(directory, text, text_b, 0);
  bert_error error = {BERT_OK, ""};
  bert_view *views[] = {view_of(&s, 0, 0, 0), view_of(&s, 1, 0, 0), view_of(&s, 0, 1, 1),
                        view_of(&s, 1, 1, 1), view_of(&s, 1, 1, 0)};
  float *weights = matrix(s.n, s.n), *out = matrix(s.n, s.n);
  int less = 0;
  for (int layer = 0; layer < s.layers; layer++)
    for (int head = 0; head < s.heads; head++) {
      assert_ok(bert_pass_attention(s.pass, layer, head, weights, &error), &error);
      for (size_t v = 0; v < 5; v++) {
        size_t count = views[v]->count;
        bert_view_apply(views[v], weights, out);
        if (v == 0) assert_memory_equal(out, weights, s.n * s.n * sizeof *out);
        for (size_t i = 0; i < count; i++) {
          double sum = 0;
          for (size_t j = 0; j < count; j++) sum += (double)out[i * count + j];
          if (v < 4)
            assert_true(fabs(sum - 1) < 1e-5);
          else
            assert_true(sum < 1 + 1e-5);
          if (v == 4 && sum < 0.9) less++;
        }
      }
    }
  assert_true(views[1]->count < views[0]->count);
  assert_true(less > 0);
  for (size_t v = 0; v < 5; v++) bert_view_free(views[v]);
  free(weights);
  free(out);
  close_seen(&s);
}

static void rows_of_units_sum_to_one(void **state) {
  (void)state;
  check_sums(MINILM_DIRECTORY, long_text, NULL);
  check_sums(MINILM_DIRECTORY, "An unaffable man [SEP] said:", "Blacksmiths, na\u00EFve ones!");
  check_sums(TINY, "time flies like an arrow", NULL);
  check_sums(TINY, "time flies", "fruit flies");
  check_sums("tests/golden/families/bert-max", "time flies like an arrow", "fruit flies");
  check_sums("tests/golden/families/bert-cls-dense", "time flies like an arrow", NULL);
}

/* A head of the real model that is known for it: layer 0, head 2 of
** all-MiniLM-L6-v2 attends to the token before. */
static void the_head_of_the_previous_token(void **state) {
  (void)state;
  seen s = look_at(MINILM_DIRECTORY, long_text, NULL, 0);
  bert_error error = {BERT_OK, ""};
  bert_view *view = view_of(&s, 0, 0, 0);
  float *weights = matrix(s.n, s.n), *norms = matrix(1, s.n);
  bert_head_statistics h;
  int others = 0;
  for (int layer = 0; layer < s.layers; layer++)
    for (int head = 0; head < s.heads; head++) {
      assert_ok(bert_pass_attention(s.pass, layer, head, weights, &error), &error);
      assert_ok(bert_pass_value_norms(s.pass, layer, head, norms, &error), &error);
      bert_head_summarize(view, weights, norms, &h);
      assert_true(h.entropy >= 0 && h.entropy_norm <= 1 + 1e-6 && h.norm_mean > 0);
      if (layer == 0 && head == 2) {
        assert_true(h.prev > 0.9 && h.positional > 0.9 && h.signed_distance < -0.5);
        assert_string_equal(h.label, "previous-token");
      } else {
        others += !strcmp(h.label, "previous-token");
      }
    }
  assert_in_range(others, 0, 2);
  bert_view_free(view);
  free(weights);
  free(norms);
  close_seen(&s);
}

/* ---- One token ----------------------------------------------------------------------------- */

static void one_token(void **state) {
  (void)state;
  int32_t id = 7, type = 0, word = 0;
  size_t start = 0, stop = 4;
  int8_t segment = 0;
  uint8_t special = 0, used = 1;
  bert_tokens tokens = {1, &id, &type, &start, &stop, &word, &segment, &special, &used, 1, 0};
  bert_error error = {BERT_OK, ""};
  bert_view_options options = {1, 1, 1};
  bert_view *view;
  bert_head_statistics h;
  float weight, score, rollout, norm;
  seen s;
  open_seen(&s, TINY);
  assert_ok(bert_run(s.encoder, &tokens, BERT_KEEP_ATTENTION, &s.pass, &error), &error);
  assert_ok(bert_pass_attention_rows(s.pass, 2, 1, 0, 1, 0.5, &weight, &score, &error), &error);
  assert_ok(bert_pass_rollout(s.pass, 2, 1, &rollout, &error), &error);
  assert_ok(bert_pass_value_norms(s.pass, 2, 1, &norm, &error), &error);
  assert_true(weight == 1 && rollout == 1 && isfinite(score));
  assert_ok(bert_view_make(s.model, &tokens, &options, &view, &error), &error);
  assert_int_equal(view->count, 1);
  bert_head_summarize(view, &weight, &norm, &h);
  assert_string_equal(h.label, "single");
  assert_true(h.norm_mean == (double)norm);
  bert_view_free(view);
  close_seen(&s);
}

/* ---- Numbers that are not finite ---------------------------------------------------------- */

/* Puts `value` into row `row` of a [32, 32] weight of a copy of the tiny model,
** and runs a text through it. */
static void run_spoilt(const char *name, size_t row, float value, int keep, const char *part) {
  char *copy = scratch_copy(TINY);
  bert_error error = {BERT_OK, ""};
  tensor_file *file;
  size_t size;
  char *bytes = scratch_read(copy, "model.safetensors", &size);
  assert_ok(tensors_open(copy, "model.safetensors", 1, &file, &error), &error);
  const tensor *t = tensors_find(file, name);
  assert_non_null(t);
  assert_int_equal(t->size, 32 * 32 * sizeof(float));
  char *at = memmem(bytes, size, t->data, (size_t)t->size); /* random weights stand once */
  assert_non_null(at);
  memcpy(at + row * 32 * sizeof(float), &value, sizeof value);
  tensors_close(file);
  scratch_write(copy, "model.safetensors", bytes, size);
  seen s;
  open_seen(&s, copy);
  assert_ok(bert_tokenize(s.model, text_of("time flies"), NULL, NULL, &s.tokens, &error), &error);
  expect_error(bert_run(s.encoder, s.tokens, keep, &s.pass, &error), BERT_NUMERIC, &error, part);
  assert_null(s.pass);
  close_seen(&s);
  free(bytes);
  scratch_free(copy);
}

static void weights_that_are_not_finite_name_layer_and_head(void **state) {
  (void)state;
  const int both = BERT_KEEP_ATTENTION | BERT_KEEP_HIDDEN;
  const char *key = "encoder.layer.1.attention.self.key.weight";
  const char *query = "encoder.layer.2.attention.self.query.weight";
  const char *value = "encoder.layer.0.attention.self.value.weight";
  run_spoilt(key, 20, NAN, BERT_KEEP_ATTENTION, "attention weights of layer 1, head 1 are not");
  run_spoilt(key, 3, NAN, both, "attention weights of layer 1, head 0 are not");
  run_spoilt(query, 31, INFINITY, both, "attention weights of layer 2, head 1 are not");
  run_spoilt(key, 20, NAN, BERT_KEEP_HIDDEN, "hidden states are not finite");
  /* What enters beside the weights of layer 0 spoils those of layer 1. */
  run_spoilt(value, 20, NAN, both, "attention weights of layer 1, head 0 are not");
  /* Behind the last attention there is nothing to name. */
  run_spoilt("encoder.layer.2.attention.output.dense.weight", 0, NAN, both,
             "hidden states are not finite");
}

/* The kept vectors themselves spoilt, as if behind the back of the pass. */
static void spoilt_vectors_are_noticed_by_every_question(void **state) {
  (void)state;
  seen s = look_at(TINY, "time flies", NULL, 0);
  bert_error error = {BERT_OK, ""};
  size_t stride;
  float *out = matrix(s.n, s.n), *scores = matrix(s.n, s.n);
  float *q = (float *)(uintptr_t)bert_pass_vectors(s.pass, BERT_QUERY, 1, 1, &stride);
  float *v = (float *)(uintptr_t)bert_pass_vectors(s.pass, BERT_VALUE, 1, 0, &stride);
  q[2 * stride] = NAN;
  v[stride] = INFINITY;
  expect_error(bert_pass_attention(s.pass, 1, 1, out, &error), BERT_NUMERIC, &error,
               "attention weights of layer 1, head 1");
  assert_ok(bert_pass_attention_rows(s.pass, 1, 1, 0, 2, 1, out, scores, &error), &error);
  expect_error(bert_pass_attention_rows(s.pass, 1, 1, 2, 1, 1, NULL, scores, &error), BERT_NUMERIC,
               &error, "attention scores of layer 1, head 1");
  expect_error(bert_pass_attention_rows(s.pass, 1, 1, 2, 1, 2, out, NULL, &error), BERT_NUMERIC,
               &error, "attention weights of layer 1, head 1");
  expect_error(bert_pass_value_norms(s.pass, 1, 0, out, &error), BERT_NUMERIC, &error,
               "value vectors of layer 1, head 0");
  assert_ok(bert_pass_rollout(s.pass, 0, 1, out, &error), &error);
  expect_error(bert_pass_rollout(s.pass, 2, 1, out, &error), BERT_NUMERIC, &error,
               "layer 1, head 1");
  /* Scores too far apart for a float are no error while their softmax is a number. */
  for (size_t i = 0; i < s.n; i++) q[i * stride] = 0;
  q[0] = -3e38F;
  float *k = (float *)(uintptr_t)bert_pass_vectors(s.pass, BERT_KEY, 1, 1, &stride);
  k[0] = 3e38F;
  k[stride] = 1;
  assert_ok(bert_pass_attention_rows(s.pass, 1, 1, 0, 1, 1, out, NULL, &error), &error);
  assert_true(out[0] == 0);
  free(out);
  free(scores);
  close_seen(&s);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static bert_status make_views(void *user, bert_error *error) {
  seen *s = user;
  bert_view_options options = {1, 1, 1};
  bert_view *view = NULL;
  bert_status status = bert_view_make(s->model, s->tokens, &options, &view, error);
  bert_view_free(view);
  return status;
}

static bert_status ask_norms(void *user, bert_error *error) {
  float norms[32];
  seen *s = user;
  return bert_pass_value_norms(s->pass, 1, 1, norms, error);
}

static bert_status ask_rollout(void *user, bert_error *error) {
  float rollout[32 * 32];
  seen *s = user;
  return bert_pass_rollout(s->pass, 2, 1, rollout, error);
}

static bert_status ask_rows(void *user, bert_error *error) {
  float out[32 * 32];
  seen *s = user;
  return bert_pass_attention_rows(s->pass, 1, 1, 0, s->n, 2, out, NULL, error);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  seen s = look_at(TINY, "time flies like an arrow", NULL, 0);
  assert_true(s.n <= 32);
  assert_true(faults_each(make_views, &s) >= 3);
  assert_true(faults_each(ask_norms, &s) >= 1);
  assert_true(faults_each(ask_rollout, &s) >= 2);
  assert_int_equal(faults_each(ask_rows, &s), 0); /* rows need no memory */
  close_seen(&s);
}

/* Held open throughout, so that the tests share what they open again. */
static bert_model *held;

static int hold(void **state) {
  (void)state;
  return bert_open(MINILM_DIRECTORY, NULL, &held, NULL) != BERT_OK;
}

static int let_go(void **state) {
  (void)state;
  bert_close(held);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranges_of_rows_have_the_bits_of_the_pass),
      cmocka_unit_test(temperature_against_double),
      cmocka_unit_test(the_coldest_temperature_picks_the_largest),
      cmocka_unit_test(what_is_not_there_is_refused),
      cmocka_unit_test(norms_of_value_vectors_against_double),
      cmocka_unit_test(rollout_against_double),
      cmocka_unit_test(units_of_a_text),
      cmocka_unit_test(units_of_a_pair),
      cmocka_unit_test(units_of_an_empty_and_of_a_cut_text),
      cmocka_unit_test(words_end_with_their_segment),
      cmocka_unit_test(rows_of_units_sum_to_one),
      cmocka_unit_test(the_head_of_the_previous_token),
      cmocka_unit_test(one_token),
      cmocka_unit_test(weights_that_are_not_finite_name_layer_and_head),
      cmocka_unit_test(spoilt_vectors_are_noticed_by_every_question),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, hold, let_go);
}
