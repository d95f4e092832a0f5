/*
** golden.c: see golden.h.
*/
#include "golden.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

golden golden_open(const char *directory) {
  golden g = {NULL, NULL, NULL};
  bert_error error = {BERT_OK, ""};
  assert_ok(file_read_json(directory, "expected.json", 0, JSON_OBJECT, &g.document, &error),
            &error);
  g.root = json_root(g.document);
  assert_ok(tensors_open(directory, "expected.safetensors", 0, &g.tensors, &error), &error);
  return g;
}

void golden_close(golden *g) {
  tensors_close(g->tensors);
  json_free(g->document);
}

const float *golden_tensor(const golden *g, const char *name, size_t count) {
  const tensor *t = tensors_find(g->tensors, name);
  if (t == NULL) return NULL;
  assert_int_equal(t->type, TENSOR_F32);
  assert_int_equal(t->size, count * sizeof(float));
  assert_int_equal((uintptr_t)t->data % _Alignof(float), 0);
  return t->data;
}

bert_text golden_text(const json_value *value) {
  bert_text text = {NULL, 0};
  if (value != NULL && value->type == JSON_STRING) {
    text.data = value->string;
    text.size = value->size;
  }
  return text;
}

const json_value *golden_at(const json_value *array, size_t index) {
  const json_value *v = array->first;
  assert_true(index < array->size);
  while (index-- > 0) v = v->next;
  return v;
}

double largest_difference(const float *a, const float *b, size_t count) {
  double largest = 0;
  for (size_t i = 0; i < count; i++) {
    double difference = fabs((double)a[i] - (double)b[i]);
    if (isnan(difference)) return INFINITY;
    if (difference > largest) largest = difference;
  }
  return largest;
}

double cosine_in_double(const float *a, const float *b, size_t count) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < count; i++) {
    ab += (double)a[i] * (double)b[i];
    aa += (double)a[i] * (double)a[i];
    bb += (double)b[i] * (double)b[i];
  }
  return ab / sqrt(aa * bb);
}

void assert_close(const char *what, const float *a, const float *b, size_t count, double tolerance,
                  double *worst) {
  double difference = largest_difference(a, b, count);
  if (worst != NULL && difference > *worst) *worst = difference;
  if (!(difference <= tolerance))
    fail_msg("%s: differs by %.3g, more than %.3g", what, difference, tolerance);
}

void assert_ok(bert_status status, const bert_error *error) {
  if (status != BERT_OK) fail_msg("status %d: %s", (int)status, error->text);
}

static void with_sets(void (*check)(const char *set), int packed) {
  const char *before = kernels_current()->name;
  for (const kernels *const *k = kernels_all(); *k != NULL; k++) {
    if ((*k)->float32_of != NULL && !packed) continue;
    if (!kernels_choose((*k)->name)) {
      print_message("kernel set %s: skipped, this processor lacks it\n", (*k)->name);
      continue;
    }
    check((*k)->name);
  }
  assert_true(kernels_choose(before));
}

void with_each_kernel_set(void (*check)(const char *set)) {
  with_sets(check, 0);
}

void with_each_packed_set(void (*check)(const char *set)) {
  with_sets(check, 1);
}

bert_model *open_model_in(const char *directory, const char *precision) {
  bert_error error = {BERT_OK, ""};
  bert_open_options options = {precision, 0};
  bert_model *model = NULL;
  assert_ok(bert_open(directory, &options, &model, &error), &error);
  return model;
}

bert_model *open_model(const char *directory) {
  return open_model_in(directory, NULL);
}

bert_encoder *make_encoder(bert_model *model, int threads) {
  bert_error error = {BERT_OK, ""};
  bert_encoder *encoder = NULL;
  assert_ok(bert_encoder_create(model, &encoder, &error), &error);
  bert_encoder_set_threads(encoder, threads);
  return encoder;
}
