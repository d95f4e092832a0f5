/*
** test_fingerprint.c: copies of a model have its fingerprint, and whatever
** changes an embedding changes it.
*/
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/faults.h"
#include "../support/golden.h"
#include "../support/scratch.h"

#define TINY "tests/golden/families/bert-cls-dense"

typedef struct hex {
  char text[33];
} hex;

static hex hex_of(const unsigned char fingerprint[16]) {
  hex h;
  for (size_t i = 0; i < 16; i++) snprintf(h.text + 2 * i, 3, "%02x", fingerprint[i]);
  return h;
}

static bert_model *open_with(const char *directory, int copy) {
  bert_error error = {BERT_OK, ""};
  bert_open_options options = {NULL, copy};
  bert_model *model = NULL;
  assert_ok(bert_open(directory, &options, &model, &error), &error);
  return model;
}

static hex fingerprint_with(const char *directory, int copy) {
  bert_error error = {BERT_OK, ""};
  unsigned char first[16], again[16];
  bert_model *model = open_with(directory, copy);
  assert_ok(bert_fingerprint(model, first, &error), &error);
  assert_ok(bert_fingerprint(model, again, &error), &error);
  assert_memory_equal(first, again, 16);
  bert_close(model);
  return hex_of(first);
}

static hex fingerprint_of(const char *directory) {
  return fingerprint_with(directory, 0);
}

/* ---- What changes it ----------------------------------------------------- */

typedef struct edit {
  const char *file, *from, *to;
} edit;

static const edit matters[] = {
    {"config.json", "\"layer_norm_eps\": 1e-12", "\"layer_norm_eps\": 2e-12"},
    {"config.json", "gelu_new", "relu"},
    {"config.json", "\"num_attention_heads\": 4", "\"num_attention_heads\": 2"},
    {"sentence_bert_config.json", "48", "47"},
    {"sentence_bert_config.json", "false", "true"},
    {"config_sentence_transformers.json", "query: ", "query; "},
    {"config_sentence_transformers.json", "\"passage\"", "\"passagf\""},
    {"config_sentence_transformers.json", "name\": null", "name\": \"query\""},
    {"1_Pooling/config.json", "cls_token\": true", "cls_token\": false"},
    {"1_Pooling/config.json", "{", "{\"include_prompt\": false, "},
    {"2_Dense/config.json", "Tanh", "ReLU"},
    {"modules.json", "models.Normalize", "models.Dropout"},
    {"tokenizer.json", "\"handle_chinese_chars\": true", "\"handle_chinese_chars\": false"},
};

static const edit matters_not[] = {
    {"config.json", "\"5.24.0\"", "\"5.25.0\""},
    {"config.json", "\"initializer_range\": 0.02", "\"initializer_range\": 0.03"},
    {"modules.json", "\"name\": \"1\"", "\"name\": \"pooling\""},
    {"tokenizer_config.json", "\"[MASK]\"", "\"[mask]\""}, /* tokenizer.json is what counts */
    {"vocab.txt", "[PAD]", "[pad]"},
};

static hex fingerprint_after(const edit *e) {
  char *copy = scratch_copy(TINY);
  scratch_replace(copy, e->file, e->from, e->to);
  hex h = fingerprint_of(copy);
  scratch_free(copy);
  return h;
}

static void settings_that_matter_change_it(void **state) {
  enum { COUNT = sizeof matters / sizeof *matters };
  hex all[COUNT + 1];
  all[COUNT] = fingerprint_of(TINY);
  for (size_t i = 0; i < COUNT; i++) all[i] = fingerprint_after(&matters[i]);
  for (size_t i = 0; i <= COUNT; i++)
    for (size_t j = 0; j < i; j++)
      if (strcmp(all[i].text, all[j].text) == 0)
        fail_msg("edits %zu and %zu (%s: %s) give one fingerprint", i, j, matters[j].file,
                 matters[j].to);
}

/* What families have that BERT has not. */
static void settings_of_families_change_it(void **state) {
  static const struct {
    const char *family;
    edit edit;
  } edits[] = {
      {"modernbert", {"config.json", "160000.0", "160001.0"}},
      {"modernbert", {"config.json", " 10000.0", " 10001.0"}},
      {"modernbert", {"config.json", "\"local_attention\": 16", "\"local_attention\": 18"}},
      {"modernbert", {"config.json", "\"sliding_attention\",", "\"full_attention\","}},
      {"nomic-bert", {"config.json", "1000.0", "1000.5"}},
      {"roberta-mlm", {"config.json", "\"pad_token_id\": 1", "\"pad_token_id\": 2"}},
  };
  for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
    char directory[80];
    snprintf(directory, sizeof directory, "tests/golden/families/%s", edits[i].family);
    hex before = fingerprint_of(directory);
    char *copy = scratch_copy(directory);
    assert_string_equal(fingerprint_of(copy).text, before.text);
    scratch_replace(copy, edits[i].edit.file, edits[i].edit.from, edits[i].edit.to);
    if (strcmp(fingerprint_of(copy).text, before.text) == 0)
      fail_msg("%s: %s gives the same fingerprint", edits[i].family, edits[i].edit.to);
    scratch_free(copy);
  }
}

static void settings_that_do_not_matter_leave_it(void **state) {
  hex before = fingerprint_of(TINY);
  for (size_t i = 0; i < sizeof matters_not / sizeof *matters_not; i++)
    assert_string_equal(fingerprint_after(&matters_not[i]).text, before.text);
}

/* One bit of weights, at both ends of the data and between. */
static void weights_change_it(void **state) {
  static const char *const files[] = {"model.safetensors", "2_Dense/model.safetensors"};
  hex before = fingerprint_of(TINY);
  for (size_t f = 0; f < 2; f++) {
    char *copy = scratch_copy(TINY);
    size_t size, header = 0;
    unsigned char *bytes = (unsigned char *)scratch_read(copy, files[f], &size);
    for (int i = 0; i < 8; i++) header |= (size_t)bytes[i] << 8 * i;
    size_t places[] = {8 + header, (8 + header + size) / 2, size - 4};
    for (size_t i = 0; i < 3; i++) {
      bytes[places[i]] ^= 1;
      scratch_write(copy, files[f], bytes, size);
      bytes[places[i]] ^= 1;
      assert_string_not_equal(fingerprint_of(copy).text, before.text);
    }
    scratch_remove(copy, files[f]); /* a new file, so that its time does not matter */
    scratch_write(copy, files[f], bytes, size);
    assert_string_equal(fingerprint_of(copy).text, before.text);
    free(bytes);
    scratch_free(copy);
  }
}

/* Without tokenizer.json the tokenizer is made from two other files. */
static void files_of_an_older_tokenizer_change_it(void **state) {
  static const edit edits[] = {
      {"vocab.txt", "\nthe\n", "\nthz\n"},
      {"tokenizer_config.json", "\"do_lower_case\": true", "\"do_lower_case\": false"}};
  char *plain = scratch_copy(TINY);
  scratch_remove(plain, "tokenizer.json");
  hex before = fingerprint_of(plain);
  assert_string_not_equal(before.text, fingerprint_of(TINY).text);
  for (size_t i = 0; i < 2; i++) {
    char *copy = scratch_copy(plain);
    scratch_replace(copy, edits[i].file, edits[i].from, edits[i].to);
    assert_string_not_equal(fingerprint_of(copy).text, before.text);
    scratch_free(copy);
  }
  scratch_free(plain);
}

/* ---- What does not ------------------------------------------------------- */

static void copies_are_the_same_model(void **state) {
  hex before = fingerprint_of(TINY);
  char *copy = scratch_copy(TINY);
  assert_string_equal(fingerprint_of(copy).text, before.text);
  assert_string_equal(fingerprint_with(copy, 1).text, before.text);
  scratch_write(copy, "README.md", "more", 4);
  assert_string_equal(fingerprint_of(copy).text, before.text);
  scratch_free(copy);
  assert_string_not_equal(fingerprint_of("tests/golden/families/bert-mean").text, before.text);
}

/* The only file of an index is a file of weights like any other. */
static void names_of_weight_files_do_not_matter(void **state) {
  char *copy = scratch_copy(TINY), from[600], to[600], index[20000] = "{\"weight_map\":{";
  bert_error error = {BERT_OK, ""};
  tensor_file *f = NULL;
  assert_ok(tensors_open(copy, "model.safetensors", 0, &f, &error), &error);
  for (size_t i = 0; i < tensors_count(f); i++) {
    size_t at = strlen(index);
    snprintf(index + at, sizeof index - at, "%s\"%s\":\"part.safetensors\"", i > 0 ? "," : "",
             tensors_at(f, i)->name);
  }
  tensors_close(f);
  strcat(index, "}}");
  snprintf(from, sizeof from, "%s/model.safetensors", copy);
  snprintf(to, sizeof to, "%s/part.safetensors", copy);
  assert_int_equal(rename(from, to), 0);
  scratch_write(copy, "model.safetensors.index.json", index, strlen(index));
  assert_string_equal(fingerprint_of(copy).text, fingerprint_of(TINY).text);
  scratch_free(copy);
}

/* Tables hold fingerprints: a later version must not give others. Both were also
** computed in Python, with xxhash, from the description in fingerprint.c. */
static void the_real_models_fingerprint_stays(void **state) {
  assert_string_equal(fingerprint_of(MINILM_DIRECTORY).text, "e7f795634221d257d6ab6b3c6e17c92d");
  assert_string_equal(fingerprint_of(TINY).text, "426181695a738c47bbcade4e35c4aef0");
}

/* ---- Files that change, threads, memory ----------------------------------- */

static void a_changed_file_is_noticed(void **state) {
  for (int asked = 0; asked < 2; asked++) {
    char *copy = scratch_copy(TINY), path[600];
    unsigned char out[16];
    bert_error error = {BERT_OK, ""};
    bert_model *model = open_with(copy, 0);
    if (asked) assert_ok(bert_fingerprint(model, out, &error), &error);
    snprintf(path, sizeof path, "%s/2_Dense/model.safetensors", copy);
    assert_int_equal(truncate(path, 1000), 0);
    assert_int_equal(bert_fingerprint(model, out, &error), BERT_CHANGED);
    assert_non_null(strstr(error.text, "2_Dense: model.safetensors changed"));
    bert_close(model);
    scratch_free(copy);
  }
}

/* Replaced by another file, the model in use stays what it was. */
static void a_replaced_file_does_not_matter(void **state) {
  char *copy = scratch_copy(TINY);
  unsigned char out[16];
  bert_error error = {BERT_OK, ""};
  bert_model *model = open_with(copy, 0);
  scratch_remove(copy, "model.safetensors");
  scratch_replace(copy, "tokenizer.json", "\"handle_chinese_chars\": true",
                  "\"handle_chinese_chars\": false");
  assert_ok(bert_fingerprint(model, out, &error), &error);
  assert_string_equal(hex_of(out).text, fingerprint_of(TINY).text);
  bert_close(model);
  scratch_free(copy);
}

enum { ASKERS = 8 };

typedef struct asker {
  bert_model *model;
  unsigned char out[16];
  bert_status status;
} asker;

static void *ask(void *user) {
  asker *a = user;
  a->status = bert_fingerprint(a->model, a->out, NULL);
  return NULL;
}

static void many_threads_ask_at_once(void **state) {
  hex want = fingerprint_of(TINY);
  for (int round = 0; round < 20; round++) {
    bert_model *model = open_with(TINY, 0);
    pthread_t threads[ASKERS];
    asker askers[ASKERS];
    for (int i = 0; i < ASKERS; i++) {
      askers[i].model = model;
      assert_int_equal(pthread_create(&threads[i], NULL, ask, &askers[i]), 0);
    }
    for (int i = 0; i < ASKERS; i++) {
      pthread_join(threads[i], NULL);
      assert_int_equal(askers[i].status, BERT_OK);
      assert_string_equal(hex_of(askers[i].out).text, want.text);
    }
    bert_close(model);
  }
}

static bert_status run_fingerprint(void *user, bert_error *error) {
  unsigned char out[16];
  return bert_fingerprint(user, out, error);
}

static void memory_may_run_out(void **state) {
  bert_model *model = open_with(TINY, 0);
  assert_int_equal(faults_each(run_fingerprint, model), 2); /* one for each file of weights */
  bert_close(model);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(settings_that_matter_change_it),
      cmocka_unit_test(settings_of_families_change_it),
      cmocka_unit_test(settings_that_do_not_matter_leave_it),
      cmocka_unit_test(weights_change_it),
      cmocka_unit_test(files_of_an_older_tokenizer_change_it),
      cmocka_unit_test(copies_are_the_same_model),
      cmocka_unit_test(names_of_weight_files_do_not_matter),
      cmocka_unit_test(the_real_models_fingerprint_stays),
      cmocka_unit_test(a_changed_file_is_noticed),
      cmocka_unit_test(a_replaced_file_does_not_matter),
      cmocka_unit_test(many_threads_ask_at_once),
      cmocka_unit_test(memory_may_run_out),
  };
  return cmocka_run_group_tests_name("fingerprint", tests, NULL, NULL);
}
