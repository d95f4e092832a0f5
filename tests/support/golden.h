/*
** golden.h: the golden data of tests/golden, read with the encoder's own
** readers, and comparisons that say how far apart two arrays are.
*/
#ifndef BERT_TESTS_GOLDEN_H
#define BERT_TESTS_GOLDEN_H

#include "../../encoder/base/base.h"
#include "../../encoder/files/files.h"

#define MINILM_DIRECTORY "models/all-MiniLM-L6-v2"

/* expected.json and expected.safetensors of one folder. Ends the test when
** they cannot be read. */
typedef struct golden {
  json_document *document;
  const json_value *root;
  tensor_file *tensors;
} golden;

golden golden_open(const char *directory);
void golden_close(golden *g);

/* A model and an encoder for it, or the end of the test; threads 0: one per core. */
bert_model *open_model(const char *directory);
bert_model *open_model_in(const char *directory, const char *precision); /* NULL: float32 */
bert_encoder *make_encoder(bert_model *model, int threads);

/* The float32 tensor `name` of the shape's `count` numbers, or NULL when there
** is none. Another size ends the test. */
const float *golden_tensor(const golden *g, const char *name, size_t count);

/* The string value of a JSON value as a text; NULL or null gives NULL data. */
bert_text golden_text(const json_value *value);

/* Element `index` of a JSON array. */
const json_value *golden_at(const json_value *array, size_t index);

/* The largest |a[i] - b[i]|; infinity when either holds a NaN. */
double largest_difference(const float *a, const float *b, size_t count);

/* The cosine of a[count] and b[count]. */
double cosine_in_double(const float *a, const float *b, size_t count);

/* Ends the test when the difference exceeds `tolerance`; keeps the largest seen
** in *worst, which may be NULL. */
void assert_close(const char *what, const float *a, const float *b, size_t count, double tolerance,
                  double *worst);

/* Ends the test with the error's text when status is not BERT_OK. */
void assert_ok(bert_status status, const bert_error *error);

/* Every kernel set that this processor runs and whose float32 functions are its own:
** calls check(name) with the set in force, says by name which are skipped, and
** restores the best one. */
void with_each_kernel_set(void (*check)(const char *set));

/* The same with those sets, too, that differ in products of bf16 and int8 only. */
void with_each_packed_set(void (*check)(const char *set));

#endif
