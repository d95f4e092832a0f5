/*
** checkpoint.c: see checkpoint.h.
*/
#include "checkpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden.h"
#include "scratch.h"

enum { VOCABULARY = 1200, DEEP_INNER = 96 };

/* A safetensors file on its way: the members of its header, and the numbers. */
typedef struct writer {
  FILE *header, *data;
  size_t bytes;
  uint32_t seed;
  size_t hidden, inner;
} writer;

/* Uniform in (-0.5, 0.5): a generator of our own, the same everywhere. */
static float random_number(writer *w) {
  w->seed = w->seed * 1664525u + 1013904223u;
  return (float)(w->seed >> 8) / 16777216.0f - 0.5f;
}

/* A tensor [rows, columns], or [columns] for 0 rows: numbers within spread / 2
** of `around`. */
static void add(writer *w, const char *name, size_t rows, size_t columns, float around,
                float spread) {
  size_t count = (rows > 0 ? rows : 1) * columns;
  fprintf(w->header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[", w->bytes > 0 ? "," : "{", name);
  if (rows > 0) fprintf(w->header, "%zu,", rows);
  fprintf(w->header, "%zu],\"data_offsets\":[%zu,%zu]}", columns, w->bytes,
          w->bytes + count * sizeof(float));
  for (size_t i = 0; i < count; i++) {
    float number = around + spread * random_number(w);
    fwrite(&number, sizeof number, 1, w->data);
  }
  w->bytes += count * sizeof(float);
}

static void add_linear(writer *w, const char *prefix, const char *name, size_t out, size_t in,
                       float spread) {
  char full[120];
  snprintf(full, sizeof full, "%s%s.weight", prefix, name);
  add(w, full, out, in, 0, spread);
  snprintf(full, sizeof full, "%s%s.bias", prefix, name);
  add(w, full, 0, out, 0, 1);
}

static void add_norm(writer *w, const char *prefix, const char *name) {
  char full[120];
  snprintf(full, sizeof full, "%s%s.LayerNorm.weight", prefix, name);
  add(w, full, 0, w->hidden, 1, 1);
  snprintf(full, sizeof full, "%s%s.LayerNorm.bias", prefix, name);
  add(w, full, 0, w->hidden, 0, 1);
}

static void add_layer(writer *w, int layer) {
  char prefix[40];
  snprintf(prefix, sizeof prefix, "encoder.layer.%d.", layer);
  /* Large enough that heads attend to something. */
  add_linear(w, prefix, "attention.self.query", w->hidden, w->hidden, 3);
  add_linear(w, prefix, "attention.self.key", w->hidden, w->hidden, 3);
  add_linear(w, prefix, "attention.self.value", w->hidden, w->hidden, 1);
  add_linear(w, prefix, "attention.output.dense", w->hidden, w->hidden, 1);
  add_norm(w, prefix, "attention.output");
  add_linear(w, prefix, "intermediate.dense", w->inner, w->hidden, 1);
  add_linear(w, prefix, "output.dense", w->hidden, w->inner, 1);
  add_norm(w, prefix, "output");
}

static void write_weights(const char *directory, int layers, size_t hidden, size_t inner) {
  char *header = NULL, *data = NULL;
  size_t header_size, data_size;
  writer w = {open_memstream(&header, &header_size),
              open_memstream(&data, &data_size),
              0,
              7,
              hidden,
              inner};
  assert_non_null(w.header);
  assert_non_null(w.data);
  add(&w, "embeddings.word_embeddings.weight", VOCABULARY, hidden, 0, 1);
  add(&w, "embeddings.position_embeddings.weight", DEEP_POSITIONS, hidden, 0, 1);
  add(&w, "embeddings.token_type_embeddings.weight", 2, hidden, 0, 1);
  add_norm(&w, "embeddings", "");
  for (int layer = 0; layer < layers; layer++) add_layer(&w, layer);
  add_linear(&w, "pooler.", "dense", hidden, hidden, 1);
  fputc('}', w.header);
  fclose(w.header);
  fclose(w.data);
  uint64_t length = header_size;
  char *file = malloc(8 + header_size + data_size);
  assert_non_null(file);
  memcpy(file, &length, 8);
  memcpy(file + 8, header, header_size);
  memcpy(file + 8 + header_size, data, data_size);
  scratch_write(directory, "model.safetensors", file, 8 + header_size + data_size);
  free(file);
  free(header);
  free(data);
}

/* "key": <from> becomes "key": <to>. */
static void set_number(const char *directory, const char *name, const char *key, int from, int to) {
  char before[80], after[80];
  snprintf(before, sizeof before, "\"%s\": %d", key, from);
  snprintf(after, sizeof after, "\"%s\": %d", key, to);
  scratch_replace(directory, name, before, after);
}

char *checkpoint_shaped(int layers, int heads, int hidden, int inner) {
  char *copy = scratch_copy("tests/golden/families/bert-mean");
  set_number(copy, "config.json", "hidden_size", 32, hidden);
  set_number(copy, "config.json", "intermediate_size", 100, inner);
  set_number(copy, "config.json", "max_position_embeddings", 66, DEEP_POSITIONS);
  set_number(copy, "config.json", "num_attention_heads", 2, heads);
  set_number(copy, "config.json", "num_hidden_layers", 3, layers);
  set_number(copy, "1_Pooling/config.json", "word_embedding_dimension", 32, hidden);
  write_weights(copy, layers, (size_t)hidden, (size_t)inner);
  return copy;
}

char *checkpoint_deep(void) {
  return checkpoint_shaped(DEEP_LAYERS, DEEP_HEADS, DEEP_HIDDEN, DEEP_INNER);
}

/* Puts `value` into numbers [first, first + count) of a tensor; 0: all. */
static void overwrite(const char *directory, const char *name, size_t first, size_t count,
                      float value) {
  bert_error error = {BERT_OK, ""};
  tensor_file *file;
  size_t size;
  char *bytes = scratch_read(directory, "model.safetensors", &size);
  assert_ok(tensors_open(directory, "model.safetensors", 1, &file, &error), &error);
  const tensor *t = tensors_find(file, name);
  assert_non_null(t);
  if (count == 0) count = t->size / sizeof value;
  assert_true(first + count <= t->size / sizeof value);
  char *at = memmem(bytes, size, t->data, (size_t)t->size); /* random weights stand once */
  assert_non_null(at);
  for (size_t i = first; i < first + count; i++)
    memcpy(at + i * sizeof value, &value, sizeof value);
  tensors_close(file);
  scratch_write(directory, "model.safetensors", bytes, size);
  free(bytes);
}

void checkpoint_spoil(const char *directory, const char *name, size_t index, float value) {
  overwrite(directory, name, index, 1, value);
}

void checkpoint_flatten(const char *directory, const char *name, float value) {
  overwrite(directory, name, 0, 0, value);
}
