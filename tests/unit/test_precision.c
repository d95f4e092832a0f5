/*
** test_precision.c: models opened in bf16 and int8: how near their embeddings stay to
** those of the reference, with every kernel set; that a vector does not depend on its
** batch, in float32 neither; what such a model says of itself and keeps in memory.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../encoder/kernels/kernels.h"
#include "../support/checkpoint.h"
#include "../support/dice.h"
#include "../support/faults.h"
#include "../support/golden.h"
#include "../support/scratch.h"

#define TINY "tests/golden/families/bert-mean"
#define FAMILIES "tests/golden/families/"

/* ---- Near the reference ---------------------------------------------------- */

enum { MINILM_DIM = 384 }; /* of the real model */

/* made[count, MINILM_DIM]: the embeddings of texts[count] by the real model in `precision`. */
static void embed_in(const char *precision, const bert_text *texts, size_t count, float *made) {
  bert_model *model = open_model_in(MINILM_DIRECTORY, precision);
  bert_encoder *encoder = make_encoder(model, 0);
  bert_error error = {BERT_OK, ""};
  assert_ok(bert_embed(encoder, texts, count, NULL, made, NULL, &error), &error);
  bert_encoder_free(encoder);
  bert_close(model);
}

/* The smallest cosine of made[i, MINILM_DIM] and expected[i, MINILM_DIM], i < count. */
static double smallest_of(const float *made, const float *expected, size_t count) {
  double smallest = 1;
  for (size_t i = 0; i < count; i++) {
    double c = cosine_in_double(made + i * MINILM_DIM, expected + i * MINILM_DIM, MINILM_DIM);
    if (!(c >= smallest)) smallest = c;
  }
  return smallest;
}

/* The smallest cosine to sentence-transformers' embeddings of the real model. */
static double smallest_cosine(const char *precision) {
  golden g = golden_open("tests/golden/minilm");
  const json_value *texts = json_get(g.root, "texts");
  size_t count = (size_t)dice_size((int)texts->size, 3);
  const float *expected =
      golden_tensor(&g, "embedding", texts->size * MINILM_DIM); /* [count, MINILM_DIM] */
  float *made = malloc(count * MINILM_DIM * sizeof *made);      /* [count, MINILM_DIM] */
  bert_text *list = malloc(count * sizeof *list);
  for (size_t i = 0; i < count; i++) list[i] = golden_text(golden_at(texts, i));
  embed_in(precision, list, count, made);
  double smallest = smallest_of(made, expected, count);
  free(list);
  free(made);
  golden_close(&g);
  return smallest;
}

static void check_cosines(const char *set) {
  double bf16 = smallest_cosine("bf16"), int8 = smallest_cosine("int8");
  print_message("%s: cosine to the reference at least %.6f in bf16, %.6f in int8\n", set, bf16,
                int8);
  assert_true(bf16 >= 0.9999);
  assert_true(int8 >= 0.995);
}

static void embeddings_stay_near_the_reference(void **state) {
  (void)state;
  with_each_packed_set(check_cosines);
}

/* Few rounding errors are averaged in the vector of a word or two. */
static double smallest_cosine_of_words(const char *precision) {
  static const char *const words[] = {
      "?",          "!",           ".",           "a",       "I",      "the",       "no",
      "ok",         "x",           "1",           "42",      "2024",   ":)",        "...",
      "\u00a7",     "\u20ac",      "love",        "dog",     "hot",    "good",      "bad",
      "null",       "token",       "Paris",       "war",     "SQLite", "attention", "banana",
      "thank you",  "not bad",     "who?",        "stop!",   "a b",    "cold beer", "red car",
      "black hole", "credit card", "hello world", "the end", "why not"};
  enum { COUNT = sizeof words / sizeof words[0] };
  static float plain[COUNT * MINILM_DIM], made[COUNT * MINILM_DIM]; /* [COUNT, MINILM_DIM] */
  bert_text list[COUNT];
  for (size_t i = 0; i < COUNT; i++) list[i] = (bert_text){words[i], strlen(words[i])};
  embed_in(NULL, list, COUNT, plain);
  embed_in(precision, list, COUNT, made);
  return smallest_of(made, plain, COUNT);
}

static void check_words(const char *set) {
  double bf16 = smallest_cosine_of_words("bf16"), int8 = smallest_cosine_of_words("int8");
  print_message("%s: cosine of short texts to float32 at least %.6f in bf16, %.6f in int8\n", set,
                bf16, int8);
  assert_true(bf16 >= 0.9999);
  assert_true(int8 >= 0.995);
}

static void a_word_stays_near_float32(void **state) {
  (void)state;
  with_each_packed_set(check_words);
}

/* ---- Families ---------------------------------------------------------------- */

/* Last hidden states of a text in `precision`, to be freed. */
static float *hidden_states(const char *directory, const char *precision, size_t *count) {
  bert_model *model = open_model_in(directory, precision);
  bert_encoder *encoder = make_encoder(model, 2);
  bert_error error = {BERT_OK, ""};
  bert_tokens *tokens;
  bert_pass *pass;
  bert_text text = {"Time flies like an arrow; fruit flies like a banana.", 51};
  assert_ok(bert_tokenize(model, text, NULL, NULL, &tokens, &error), &error);
  assert_ok(bert_run(encoder, tokens, BERT_KEEP_ATTENTION, &pass, &error), &error);
  const bert_description *d = bert_describe(model);
  *count = (size_t)bert_pass_tokens(pass) * (size_t)d->hidden_size;
  float *hidden = malloc(*count * sizeof *hidden);
  memcpy(hidden, bert_pass_hidden(pass, d->layers), *count * sizeof *hidden);
  float *norms = malloc((size_t)bert_pass_tokens(pass) * sizeof *norms);
  assert_ok(bert_pass_value_norms(pass, d->layers - 1, 0, norms, &error), &error);
  free(norms);
  bert_pass_free(pass);
  bert_tokens_free(tokens);
  bert_encoder_free(encoder);
  bert_close(model);
  return hidden;
}

/* Small layers with random weights: the plain pass's numbers, with the noise of
** rounded factors, which a wrong step would drown. What a model in use keeps is measured
** above. */
static void every_family_runs_in_every_precision(void **state) {
  (void)state;
  static const char *const names[] = {"bert-mean",  "bert-bf16",   "bert-fp16",    "bert-sharded",
                                      "distilbert", "electra",     "albert-mlm",   "mpnet",
                                      "modernbert", "nomic-bert",  "gte",          "jina-bert",
                                      "jina-code",  "xlm-roberta", "camembert-mlm"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char directory[120];
    size_t count, same;
    snprintf(directory, sizeof directory, FAMILIES "%s", names[i]);
    float *plain = hidden_states(directory, NULL, &count);
    float *bf16 = hidden_states(directory, "bf16", &same);
    float *int8 = hidden_states(directory, "int8", &same);
    assert_int_equal(same, count);
    double near = cosine_in_double(plain, bf16, count), less = cosine_in_double(plain, int8, count);
    print_message("%s: cosine of hidden states %.6f in bf16, %.6f in int8\n", names[i], near, less);
    assert_true(near >= 0.9995);
    assert_true(less >= 0.998);
    assert_true(memcmp(plain, bf16, count * sizeof *plain) != 0);
    free(plain);
    free(bf16);
    free(int8);
  }
}

/* ---- Any batch ------------------------------------------------------------------ */

enum { TEXTS = 1000, FEW_TEXTS = 60, DIM = 32 };

/* Texts, and the vector of each alone. */
typedef struct alone {
  bert_text texts[TEXTS];
  float vectors[TEXTS * DIM]; /* [TEXTS, DIM] */
  size_t count;
} alone;

static char *make_text(dice *d) {
  static const char *const words[] = {"time", "flies", "like", "an", "arrow", "fruit", "banana"};
  size_t count = dice_throw(d, 70);
  char *text = calloc(1, count * 8 + 1);
  for (size_t i = 0; i < count; i++) strcat(strcat(text, i ? " " : ""), words[dice_throw(d, 7)]);
  return text;
}

static alone *embed_alone(bert_model *model, size_t count, dice *d) {
  alone *a = calloc(1, sizeof *a);
  bert_encoder *encoder = make_encoder(model, 1);
  bert_error error = {BERT_OK, ""};
  a->count = count;
  for (size_t i = 0; i < count; i++) {
    a->texts[i].data = make_text(d);
    a->texts[i].size = strlen(a->texts[i].data);
    assert_ok(bert_embed(encoder, &a->texts[i], 1, NULL, a->vectors + i * DIM, NULL, &error),
              &error);
  }
  bert_encoder_free(encoder);
  return a;
}

static void alone_free(alone *a) {
  for (size_t i = 0; i < a->count; i++) free((char *)(uintptr_t)a->texts[i].data);
  free(a);
}

/* All texts, in batches of a random size, on a random number of threads. */
static void embed_in_batches(bert_model *model, const alone *a, dice *d) {
  static float vectors[TEXTS * DIM]; /* [TEXTS, DIM] */
  bert_error error = {BERT_OK, ""};
  size_t at = 0;
  while (at < a->count) {
    size_t most = 1 + dice_throw(d, 400), left = a->count - at, count = most < left ? most : left;
    bert_encoder *encoder = make_encoder(model, (int)(1 + dice_throw(d, 4)));
    assert_ok(bert_embed(encoder, a->texts + at, count, NULL, vectors, NULL, &error), &error);
    assert_memory_equal(vectors, a->vectors + at * DIM, count * DIM * sizeof *vectors);
    bert_encoder_free(encoder);
    at += count;
  }
}

static void check_any_batch(const char *set, const char *precision, size_t count) {
  dice d = dice_take(dice_seed(7), 0);
  bert_model *model = open_model_in(TINY, precision);
  (void)set;
  alone *a = embed_alone(model, count, &d);
  for (int round = 0; round < 3; round++) embed_in_batches(model, a, &d);
  alone_free(a);
  bert_close(model);
}

static void check_packed_batches(const char *set) {
  size_t count = (size_t)dice_size(TEXTS, FEW_TEXTS);
  check_any_batch(set, "bf16", count);
  check_any_batch(set, "int8", count);
}

static void check_plain_batches(const char *set) {
  check_any_batch(set, "float32", (size_t)dice_size(TEXTS, FEW_TEXTS));
}

static void a_vector_is_the_same_in_any_batch(void **state) {
  (void)state;
  with_each_kernel_set(check_plain_batches);
  with_each_packed_set(check_packed_batches);
}

/* Sizes around those of a panel, a group and a line: scratch memory must fit them all,
** the rows of int8 in narrow layers above all. */
static void odd_sizes_run_in_every_precision(void **state) {
  (void)state;
  static const int sizes[][3] = {
      {1, 1, 1},  {3, 3, 5},   {7, 1, 16},  {16, 2, 17}, {24, 1, 32},
      {32, 4, 8}, {33, 1, 31}, {50, 2, 65}, {64, 1, 64}}; /* hidden, heads, inner */
  static const char *const precisions[] = {"bf16", "int8"};
  enum { WIDEST = 64 };
  float *together = malloc((size_t)FEW_TEXTS * WIDEST * sizeof *together); /* [FEW_TEXTS, hidden] */
  bert_text texts[FEW_TEXTS];
  dice d = dice_take(dice_seed(8), 0);
  for (size_t i = 0; i < FEW_TEXTS; i++) {
    texts[i].data = make_text(&d);
    texts[i].size = strlen(texts[i].data);
  }
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
    char *copy = checkpoint_shaped(2, sizes[s][1], sizes[s][0], sizes[s][2]);
    for (int p = 0; p < 2; p++) {
      bert_error error = {BERT_OK, ""};
      bert_model *model = open_model_in(copy, precisions[p]);
      bert_encoder *encoder = make_encoder(model, 0);
      float single[WIDEST]; /* [hidden] */
      size_t hidden = (size_t)sizes[s][0];
      assert_ok(bert_embed(encoder, texts, FEW_TEXTS, NULL, together, NULL, &error), &error);
      for (size_t i = 0; i < FEW_TEXTS; i += 11) {
        assert_ok(bert_embed(encoder, &texts[i], 1, NULL, single, NULL, &error), &error);
        assert_memory_equal(single, together + i * hidden, hidden * sizeof *single);
      }
      bert_encoder_free(encoder);
      bert_close(model);
    }
    scratch_free(copy);
  }
  for (size_t i = 0; i < FEW_TEXTS; i++) free((char *)(uintptr_t)texts[i].data);
  free(together);
}

/* ---- The model ------------------------------------------------------------------ */

static void precisions_are_models_of_their_own(void **state) {
  (void)state;
  bert_model *plain = open_model_in(TINY, "float32"), *bf16 = open_model_in(TINY, "bf16");
  bert_model *int8 = open_model_in(TINY, "int8"), *again = open_model_in(TINY, "BF16");
  unsigned char prints[3][16];
  bert_error error = {BERT_OK, ""};
  assert_ptr_equal(again, bf16);
  assert_true(plain != bf16 && bf16 != int8);
  assert_string_equal(bert_describe(plain)->precision, "float32");
  assert_string_equal(bert_describe(bf16)->precision, "bf16");
  assert_string_equal(bert_describe(int8)->precision, "int8");
  assert_ok(bert_fingerprint(plain, prints[0], &error), &error);
  assert_ok(bert_fingerprint(bf16, prints[1], &error), &error);
  assert_ok(bert_fingerprint(int8, prints[2], &error), &error);
  assert_memory_not_equal(prints[0], prints[1], 16);
  assert_memory_not_equal(prints[1], prints[2], 16);
  bert_close(plain);
  bert_close(again);
  bert_close(bf16);
  bert_close(int8);
}

/* 10.6 million weights of six layers, in 2 bytes; or in 1 and two numbers for each
** column, but for the down and value projections, five twelfths of them. */
static void memory_is_that_of_the_packed_weights(void **state) {
  (void)state;
  const uint64_t down = 6 * 384 * 1536, square = 6 * 384 * 384;
  const uint64_t weights = 2 * down + 4 * square, kept = down + square;
  bert_model *bf16 = open_model_in(MINILM_DIRECTORY, "bf16"),
             *int8 = open_model_in(MINILM_DIRECTORY, "int8");
  assert_true(bert_describe(bf16)->private_bytes >= 2 * weights);
  assert_true(bert_describe(bf16)->private_bytes < 2 * weights + weights / 20);
  assert_true(bert_describe(int8)->private_bytes >= weights + kept);
  assert_true(bert_describe(int8)->private_bytes < weights + kept + weights / 20);
  bert_close(bf16);
  bert_close(int8);
}

/* A checkpoint of bfloat16 needs no float32 copy of what was packed, or less. */
static void halves_are_packed_without_a_float32_copy(void **state) {
  (void)state;
  bert_model *plain = open_model_in(FAMILIES "bert-bf16", NULL);
  bert_model *bf16 = open_model_in(FAMILIES "bert-bf16", "bf16");
  assert_true(bert_describe(bf16)->private_bytes < bert_describe(plain)->private_bytes);
  bert_close(plain);
  bert_close(bf16);
}

static bert_status open_and_embed(void *user, bert_error *error) {
  bert_open_options options = {user, 0};
  bert_model *model = NULL;
  bert_encoder *encoder = NULL;
  float embedding[DIM]; /* [DIM] */
  bert_text text = {"time flies", 10};
  bert_status status = bert_open(TINY, &options, &model, error);
  if (status != BERT_OK) return status;
  status = bert_encoder_create(model, &encoder, error);
  if (status == BERT_OK) status = bert_embed(encoder, &text, 1, NULL, embedding, NULL, error);
  bert_encoder_free(encoder);
  bert_close(model);
  return status;
}

static void opening_without_memory_is_an_error(void **state) {
  (void)state;
  char bf16[] = "bf16", int8[] = "int8";
  assert_true(faults_each(open_and_embed, bf16) > 20);
  assert_true(faults_each(open_and_embed, int8) > 20);
}

/* An allocator that replaces the weights of `directory` when it is asked for the block
** that the up projection of TINY is packed into: what may happen at any moment. */
typedef struct replacer {
  const char *directory;
  int replaced;
} replacer;

static void *allocate_and_replace(void *user, uint64_t bytes) {
  replacer *r = user;
  uint64_t block = packed_bytes(PRECISION_BF16, 100, DIM);
  char from[600], to[600];
  if (!r->replaced && bytes >= block && bytes < block + 128) {
    snprintf(from, sizeof from, "%s/new.safetensors", r->directory);
    snprintf(to, sizeof to, "%s/model.safetensors", r->directory);
    r->replaced = rename(from, to) == 0;
  }
  return malloc((size_t)bytes);
}

static void release_plainly(void *user, void *block) {
  (void)user;
  free(block);
}

/* Packing takes a while. Who opens the directory after its weights were replaced gets
** the new ones, and not the model that was being made of the old ones meanwhile. */
static void weights_replaced_while_packed_are_opened_anew(void **state) {
  (void)state;
  char *copy = scratch_copy(TINY);
  size_t size;
  char *bytes = scratch_read(copy, "model.safetensors", &size);
  replacer r = {copy, 0};
  const bert_allocator allocator = {allocate_and_replace, release_plainly, &r};
  scratch_write(copy, "new.safetensors", bytes, size);
  bert_set_allocator(&allocator);
  bert_model *before = open_model_in(copy, "bf16");
  bert_set_allocator(NULL);
  assert_true(r.replaced);
  bert_model *after = open_model_in(copy, "bf16"), *same = open_model_in(copy, "bf16");
  assert_ptr_not_equal(before, after);
  assert_ptr_equal(same, after);
  bert_close(before);
  bert_close(after);
  bert_close(same);
  free(bytes);
  scratch_free(copy);
}

static void unknown_precisions_are_refused(void **state) {
  (void)state;
  bert_error error = {BERT_OK, ""};
  bert_open_options options = {"float16", 0};
  bert_model *model = NULL;
  assert_int_equal(bert_open(TINY, &options, &model, &error), BERT_UNSUPPORTED);
  assert_string_equal(error.text,
                      "precision \"float16\" does not exist; there are float32, bf16 and int8");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(embeddings_stay_near_the_reference),
      cmocka_unit_test(a_word_stays_near_float32),
      cmocka_unit_test(every_family_runs_in_every_precision),
      cmocka_unit_test(a_vector_is_the_same_in_any_batch),
      cmocka_unit_test(odd_sizes_run_in_every_precision),
      cmocka_unit_test(precisions_are_models_of_their_own),
      cmocka_unit_test(memory_is_that_of_the_packed_weights),
      cmocka_unit_test(halves_are_packed_without_a_float32_copy),
      cmocka_unit_test(opening_without_memory_is_an_error),
      cmocka_unit_test(weights_replaced_while_packed_are_opened_anew),
      cmocka_unit_test(unknown_precisions_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
