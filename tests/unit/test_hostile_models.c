/*
** test_hostile_models.c: model directories that lack a file, are cut short or
** lie about what they hold. Each is refused with a text that names the file or
** the value, or works; none is read out of bounds (the sanitizer runs see to
** that) and nothing leaks.
*/
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/dice.h"
#include "../support/golden.h"
#include "../support/scratch.h"

#define PLAIN "tests/golden/families/bert-mean"
#define DENSE "tests/golden/families/bert-cls-dense"

/* Opens and embeds; BERT_OK only when all of it worked. */
static bert_status try_model(const char *directory, bert_error *error) {
  bert_model *model = NULL;
  bert_encoder *encoder = NULL;
  bert_text text = {"time flies like an arrow", 24};
  float out[64]; /* [dim] */
  bert_status status = bert_open(directory, NULL, &model, error);
  if (status == BERT_OK) status = bert_encoder_create(model, &encoder, error);
  if (status == BERT_OK) status = bert_embed(encoder, &text, 1, NULL, out, NULL, error);
  bert_encoder_free(encoder);
  bert_close(model);
  return status;
}

static void expect_refusal(const char *directory, bert_status expected, const char *part) {
  bert_error error = {BERT_OK, ""};
  bert_status status = try_model(directory, &error);
  if (status == BERT_OK) fail_msg("was not refused: %s", part);
  if (strstr(error.text, part) == NULL) fail_msg("\"%s\" does not say \"%s\"", error.text, part);
  if (status != expected) fail_msg("status %d: %s", (int)status, error.text);
}

/* Spoils one file of a copy of `directory` by replacing text in it. */
static void refuses_change(const char *directory, const char *file, const char *from,
                           const char *to, bert_status expected, const char *part) {
  char *copy = scratch_copy(directory);
  scratch_replace(copy, file, from, to);
  expect_refusal(copy, expected, part);
  scratch_free(copy);
}

/* ---- Missing and cut files ---------------------------------------------- */

static const char *const files[] = {"config.json",
                                    "model.safetensors",
                                    "tokenizer.json",
                                    "modules.json",
                                    "1_Pooling/config.json",
                                    "2_Dense/config.json",
                                    "2_Dense/model.safetensors",
                                    "tokenizer_config.json",
                                    "config_sentence_transformers.json",
                                    "sentence_bert_config.json",
                                    "vocab.txt"};
enum { FILES = sizeof files / sizeof files[0], NEEDED = 7 };

/* The first seven are needed, but for tokenizer.json, which vocab.txt can stand
** in for, and modules.json, without which a directory is a plain encoder. */
static void each_missing_file_is_named_or_not_needed(void **state) {
  (void)state;
  for (int i = 0; i < FILES; i++) {
    bert_error error = {BERT_OK, ""};
    char *copy = scratch_copy(DENSE);
    scratch_remove(copy, files[i]);
    bert_status status = try_model(copy, &error);
    int optional = i >= NEEDED || strcmp(files[i], "tokenizer.json") == 0 ||
                   strcmp(files[i], "modules.json") == 0;
    if (optional)
      assert_ok(status, &error);
    else
      expect_refusal(copy, BERT_IO, strchr(files[i], '/') ? strchr(files[i], '/') + 1 : files[i]);
    scratch_free(copy);
  }
}

static void neither_tokenizer_nor_vocabulary(void **state) {
  (void)state;
  char *copy = scratch_copy(DENSE);
  scratch_remove(copy, "tokenizer.json");
  scratch_remove(copy, "vocab.txt");
  expect_refusal(copy, BERT_IO, "tokenizer.json");
  scratch_free(copy);
}

/* With a tokenizer.json nobody reads this. */
static int is_not_read(const char *file) {
  return strcmp(file, "vocab.txt") == 0;
}

/* A file cut short never works as if it were whole. */
static void each_file_cut_short_is_refused(void **state) {
  (void)state;
  for (int i = 0; i < FILES; i++) {
    size_t size;
    char *copy = scratch_copy(DENSE), *bytes = scratch_read(copy, files[i], &size);
    for (size_t place = 0; place < 20; place += (size_t)dice_size(1, 7)) {
      bert_error error = {BERT_OK, ""};
      scratch_write(copy, files[i], bytes, size * place / 20);
      bert_status status = try_model(copy, &error);
      if (is_not_read(files[i])) {
        assert_ok(status, &error);
        continue;
      }
      if (status != BERT_INVALID || strstr(error.text, files[i]) == NULL)
        fail_msg("%s cut to %zu of %zu bytes: status %d, \"%s\"", files[i], size * place / 20, size,
                 (int)status, error.text);
    }
    free(bytes);
    scratch_free(copy);
  }
}

static void not_a_model_at_all(void **state) {
  (void)state;
  expect_refusal("tests/unit", BERT_IO, "config.json");
  expect_refusal("tests/golden/README.md", BERT_IO, "tests/golden/README.md");
  expect_refusal("tests/no-such-folder", BERT_IO, "tests/no-such-folder");
}

/* ---- Numbers that do not fit one another --------------------------------- */

static void sizes_that_contradict_the_tensors(void **state) {
  (void)state;
  refuses_change(PLAIN, "config.json", "\"hidden_size\": 32", "\"hidden_size\": 64", BERT_INVALID,
                 "embeddings.word_embeddings.weight");
  refuses_change(PLAIN, "config.json", "\"vocab_size\": 1200", "\"vocab_size\": 1201", BERT_INVALID,
                 "[1200, 32]");
  refuses_change(PLAIN, "config.json", "\"intermediate_size\": 100", "\"intermediate_size\": 99",
                 BERT_INVALID, "intermediate.dense");
  refuses_change(PLAIN, "config.json", "\"num_hidden_layers\": 3", "\"num_hidden_layers\": 4",
                 BERT_INVALID, "encoder.layer.3.");
  refuses_change(PLAIN, "config.json", "\"max_position_embeddings\": 66",
                 "\"max_position_embeddings\": 512", BERT_INVALID, "position_embeddings");
  refuses_change(PLAIN, "config.json", "\"num_attention_heads\": 2", "\"num_attention_heads\": 3",
                 BERT_INVALID, "num_attention_heads");
  refuses_change(PLAIN, "config.json", "\"num_attention_heads\": 2", "\"num_attention_heads\": 0",
                 BERT_INVALID, "num_attention_heads");
  refuses_change(PLAIN, "1_Pooling/config.json", "\"word_embedding_dimension\": 32",
                 "\"word_embedding_dimension\": 33", BERT_INVALID, "word_embedding_dimension");
  refuses_change(DENSE, "2_Dense/config.json", "\"in_features\": 64", "\"in_features\": 32",
                 BERT_INVALID, "in_features");
  refuses_change(DENSE, "2_Dense/config.json", "\"out_features\": 24", "\"out_features\": 25",
                 BERT_INVALID, "linear.weight");
}

static void sizes_without_sense(void **state) {
  (void)state;
  static const char *const values[] = {"-1",   "1e99", "9223372036854775808", "\"32\"", "32.5",
                                       "[32]", "true"};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    char to[60];
    snprintf(to, sizeof to, "\"hidden_size\": %s", values[i]);
    refuses_change(PLAIN, "config.json", "\"hidden_size\": 32", to, BERT_INVALID, "hidden_size");
  }
}

static void what_is_not_supported_is_named(void **state) {
  (void)state;
  refuses_change(PLAIN, "config.json", "\"model_type\": \"bert\"", "\"model_type\": \"gpt2\"",
                 BERT_UNSUPPORTED, "gpt2");
  refuses_change(PLAIN, "config.json", "\"hidden_act\": \"gelu\"", "\"hidden_act\": \"mish\"",
                 BERT_UNSUPPORTED, "mish");
  refuses_change(PLAIN, "config.json", "\"is_decoder\": false", "\"is_decoder\": true",
                 BERT_UNSUPPORTED, "is_decoder");
  refuses_change(DENSE, "modules.json", "sentence_transformers.models.Dense",
                 "sentence_transformers.models.LSTM", BERT_UNSUPPORTED, "LSTM");
  refuses_change(DENSE, "2_Dense/config.json", "torch.nn.modules.activation.Tanh",
                 "torch.nn.modules.activation.Hardtanh", BERT_UNSUPPORTED, "Hardtanh");
  refuses_change(PLAIN, "tokenizer.json", "\"type\": \"BertNormalizer\"",
                 "\"type\": \"MyNormalizer\"", BERT_UNSUPPORTED, "MyNormalizer");
}

static void a_module_outside_the_directory(void **state) {
  (void)state;
  refuses_change(DENSE, "modules.json", "\"path\": \"2_Dense\"", "\"path\": \"../2_Dense\"",
                 BERT_INVALID, "../2_Dense");
  refuses_change(DENSE, "modules.json", "\"path\": \"2_Dense\"", "\"path\": \"/etc\"", BERT_INVALID,
                 "/etc");
}

static void ids_outside_the_embedding_table(void **state) {
  (void)state;
  refuses_change(PLAIN, "tokenizer.json", "\"[PAD]\": 0", "\"[PAD]\": 5000", BERT_INVALID, "");
}

/* ---- safetensors --------------------------------------------------------- */

static void headers_that_lie(void **state) {
  (void)state;
  static const unsigned char lengths[][8] = {{0, 0, 0, 0, 0, 0, 0, 0x80},
                                             {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
                                             {0, 0, 0, 0, 0, 0, 0, 0},
                                             {0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0},
                                             {3, 0, 0, 0, 0, 0, 0, 0}};
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    size_t size;
    char *copy = scratch_copy(PLAIN), *bytes = scratch_read(copy, "model.safetensors", &size);
    memcpy(bytes, lengths[i], 8);
    scratch_write(copy, "model.safetensors", bytes, size);
    expect_refusal(copy, BERT_INVALID, "model.safetensors");
    free(bytes);
    scratch_free(copy);
  }
}

static void tensors_that_lie(void **state) {
  (void)state;
  const char *const file = "model.safetensors";
  refuses_change(PLAIN, file, "\"F32\"", "\"F31\"", BERT_UNSUPPORTED, "F31");
  refuses_change(PLAIN, file, "\"F32\"", "\"F16\"", BERT_INVALID, file);
  refuses_change(PLAIN, file, "\"data_offsets\":[0,", "\"data_offsets\":[4,", BERT_INVALID, file);
  refuses_change(PLAIN, file, "embeddings.LayerNorm.weight", "embeddings.LayerNorm.weighs",
                 BERT_INVALID, "embeddings.LayerNorm.weight");
  refuses_change(PLAIN, file, "embeddings.LayerNorm.weight\"", "embeddings.LayerNorm.bias\"  ",
                 BERT_INVALID, file);
  refuses_change(PLAIN, file, "[32,100]", "[100,32]", BERT_INVALID, "[100, 32]");
}

static void bytes_after_the_last_tensor(void **state) {
  (void)state;
  size_t size;
  char *copy = scratch_copy(PLAIN), *bytes = scratch_read(copy, "model.safetensors", &size);
  bytes = realloc(bytes, size + 4);
  memset(bytes + size, 0, 4);
  scratch_write(copy, "model.safetensors", bytes, size + 4);
  expect_refusal(copy, BERT_INVALID, "model.safetensors");
  free(bytes);
  scratch_free(copy);
}

/* The last quarter of the tensors' bytes becomes NaN. */
static void weights_that_are_no_numbers(void **state) {
  (void)state;
  size_t size;
  char *copy = scratch_copy(PLAIN), *bytes = scratch_read(copy, "model.safetensors", &size);
  size_t start = size - size / 4 / 4 * 4;
  for (size_t at = start; at + 4 <= size; at += 4) {
    float nan = NAN;
    memcpy(bytes + at, &nan, 4);
  }
  scratch_write(copy, "model.safetensors", bytes, size);
  expect_refusal(copy, BERT_NUMERIC, "not a finite number");
  free(bytes);
  scratch_free(copy);
}

/* ---- Files that change under a mapping ----------------------------------- */

static void a_file_cut_while_mapped_is_noticed(void **state) {
  (void)state;
  char *copy = scratch_copy(PLAIN), path[600];
  bert_error error = {BERT_OK, ""};
  bert_model *model = NULL, *again = NULL;
  bert_encoder *encoder = NULL;
  bert_text text = {"time", 4};
  float out[32]; /* [32] */
  snprintf(path, sizeof path, "%s/model.safetensors", copy);
  assert_ok(bert_open(copy, NULL, &model, &error), &error);
  assert_ok(bert_encoder_create(model, &encoder, &error), &error);
  assert_ok(bert_embed(encoder, &text, 1, NULL, out, NULL, &error), &error);
  assert_int_equal(truncate(path, 5000), 0);
  assert_int_equal(bert_embed(encoder, &text, 1, NULL, out, NULL, &error), BERT_CHANGED);
  assert_non_null(strstr(error.text, "model.safetensors"));
  assert_int_equal(bert_open(copy, NULL, &again, &error), BERT_INVALID);
  bert_encoder_free(encoder);
  bert_close(model);
  scratch_free(copy);
}

/* A model in use goes on as it was; who opens the directory anew gets what is
** there now. */
static void a_replaced_directory_is_another_model(void **state) {
  (void)state;
  static const char *const changed[] = {"tokenizer.json", "1_Pooling/config.json", "config.json",
                                        "model.safetensors"};
  for (size_t i = 0; i < sizeof changed / sizeof changed[0]; i++) {
    size_t size;
    char *copy = scratch_copy(PLAIN), *bytes = scratch_read(copy, changed[i], &size);
    bert_error error = {BERT_OK, ""};
    bert_model *before = NULL, *same = NULL, *after = NULL;
    assert_ok(bert_open(copy, NULL, &before, &error), &error);
    assert_ok(bert_open(copy, NULL, &same, &error), &error);
    assert_ptr_equal(before, same);
    scratch_remove(copy, changed[i]);
    scratch_write(copy, changed[i], bytes, size);
    assert_ok(bert_open(copy, NULL, &after, &error), &error);
    assert_ptr_not_equal(before, after);
    bert_close(before);
    bert_close(same);
    bert_close(after);
    free(bytes);
    scratch_free(copy);
  }
}

static void links_to_nowhere_are_not_absent_files(void **state) {
  (void)state;
  char *copy = scratch_copy(DENSE), path[600];
  snprintf(path, sizeof path, "%s/modules.json", copy);
  scratch_remove(copy, "modules.json");
  assert_int_equal(symlink("/nowhere/blob", path), 0);
  expect_refusal(copy, BERT_IO, "a link to a file that is not there");
  scratch_free(copy);
}

static void a_copied_file_may_change(void **state) {
  (void)state;
  char *copy = scratch_copy(PLAIN), path[600];
  bert_error error = {BERT_OK, ""};
  bert_model *model = NULL;
  bert_encoder *encoder = NULL;
  bert_text text = {"time", 4};
  bert_open_options options = {NULL, 1};
  float before[32], after[32]; /* [32] */
  snprintf(path, sizeof path, "%s/model.safetensors", copy);
  assert_ok(bert_open(copy, &options, &model, &error), &error);
  assert_ok(bert_encoder_create(model, &encoder, &error), &error);
  assert_ok(bert_embed(encoder, &text, 1, NULL, before, NULL, &error), &error);
  assert_int_equal(truncate(path, 0), 0);
  assert_ok(bert_embed(encoder, &text, 1, NULL, after, NULL, &error), &error);
  assert_memory_equal(before, after, sizeof before);
  bert_encoder_free(encoder);
  bert_close(model);
  scratch_free(copy);
}

/* ---- Memory -------------------------------------------------------------- */

typedef struct failing {
  long left;     /* allocations until failure; negative: never */
  int only_once; /* 1: one failure, 0: all from then on */
  long blocks;   /* given and not yet returned */
} failing;

static void *fail_allocate(void *user, uint64_t bytes) {
  failing *f = user;
  if (__atomic_load_n(&f->left, __ATOMIC_SEQ_CST) >= 0) {
    long left = __atomic_fetch_sub(&f->left, 1, __ATOMIC_SEQ_CST);
    if (left == 0 || (left < 0 && !f->only_once)) {
      if (!f->only_once) __atomic_store_n(&f->left, 0, __ATOMIC_SEQ_CST);
      return NULL;
    }
  }
  void *block = malloc(bytes);
  if (block != NULL) __atomic_fetch_add(&f->blocks, 1, __ATOMIC_SEQ_CST);
  return block;
}

static void fail_release(void *user, void *block) {
  failing *f = user;
  __atomic_fetch_sub(&f->blocks, 1, __ATOMIC_SEQ_CST);
  free(block);
}

static void each_allocation_may_fail(void **state) {
  (void)state;
  int step = dice_size(1, 8);
  for (int only_once = 0; only_once <= 1; only_once++) {
    int failures = 0;
    for (long at = 0;; at += step) {
      failing f = {at, only_once, 0};
      bert_allocator allocator = {fail_allocate, fail_release, &f};
      bert_error error = {BERT_OK, ""};
      bert_set_allocator(&allocator);
      bert_status status = try_model(DENSE, &error);
      bert_set_allocator(NULL);
      assert_int_equal(f.blocks, 0);
      if (status == BERT_OK) break;
      assert_int_equal(status, BERT_NOMEM);
      assert_non_null(strstr(error.text, "memory"));
      failures++;
    }
    assert_true(failures * step > 30);
  }
}

static void opening_again_and_again_does_not_grow(void **state) {
  (void)state;
  failing f = {-1, 0, 0};
  bert_allocator allocator = {fail_allocate, fail_release, &f};
  bert_set_allocator(&allocator);
  for (int i = 0; i < dice_size(500, 10); i++) {
    bert_error error = {BERT_OK, ""};
    assert_ok(try_model(PLAIN, &error), &error);
    assert_int_equal(f.blocks, 0);
  }
  bert_set_allocator(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_missing_file_is_named_or_not_needed),
      cmocka_unit_test(neither_tokenizer_nor_vocabulary),
      cmocka_unit_test(each_file_cut_short_is_refused),
      cmocka_unit_test(not_a_model_at_all),
      cmocka_unit_test(sizes_that_contradict_the_tensors),
      cmocka_unit_test(sizes_without_sense),
      cmocka_unit_test(what_is_not_supported_is_named),
      cmocka_unit_test(a_module_outside_the_directory),
      cmocka_unit_test(ids_outside_the_embedding_table),
      cmocka_unit_test(headers_that_lie),
      cmocka_unit_test(tensors_that_lie),
      cmocka_unit_test(bytes_after_the_last_tensor),
      cmocka_unit_test(weights_that_are_no_numbers),
      cmocka_unit_test(a_file_cut_while_mapped_is_noticed),
      cmocka_unit_test(a_replaced_directory_is_another_model),
      cmocka_unit_test(links_to_nowhere_are_not_absent_files),
      cmocka_unit_test(a_copied_file_may_change),
      cmocka_unit_test(each_allocation_may_fail),
      cmocka_unit_test(opening_again_and_again_does_not_grow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
