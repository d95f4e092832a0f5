/*
** stamp.c: whether the files of a directory are still those a model was read
** from.
**
** A mapping outlives its file: when a directory is replaced, the open model goes
** on as it was. But whoever opens the directory then must get what is there now.
*/
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "model.h"

/* FNV-1a, by Fowler, Noll and Vo: 64 bits. */
static uint64_t add(uint64_t hash, uint64_t number) {
  for (int i = 0; i < 8; i++) hash = (hash ^ (number >> 8 * i & 0xFF)) * 0x100000001B3u;
  return hash;
}

static uint64_t add_file(uint64_t hash, const char *directory, const char *name) {
  struct stat s;
  char path[4096]; /* what does not fit could not be opened either */
  int size = snprintf(path, sizeof path, "%s/%s", directory, name);
  int there = size > 0 && (size_t)size < sizeof path && stat(path, &s) == 0;
  if (!there) return add(hash, 0);
  hash = add(add(hash, (uint64_t)s.st_dev), (uint64_t)s.st_ino);
  hash = add(hash, (uint64_t)s.st_size);
  return add(hash, (uint64_t)s.st_mtim.tv_sec * 1000000000u + (uint64_t)s.st_mtim.tv_nsec);
}

uint64_t model_stamp(const bert_model *model) {
  static const char *const names[] = {
      "config.json",
      "model.safetensors",
      "model.safetensors.index.json",
      "tokenizer.json",
      "tokenizer_config.json",
      "vocab.txt",
      "vocab.json",
      "merges.txt",
      "special_tokens_map.json",
      "vocab.json",
      "merges.txt",
      "modules.json",
      "sentence_bert_config.json",
      "config_sentence_transformers.json",
      "1_Pooling/config.json",
  };
  uint64_t hash = 0xCBF29CE484222325u;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    hash = add_file(hash, model->directory, names[i]);
    hash = add_file(hash, model->transformer_directory, names[i]);
  }
  for (int i = 0; i < model->sentence.module_count; i++) {
    const module *m = &model->sentence.modules[i];
    if (m->type == MODULE_NORMALIZE) continue;
    hash = add_file(hash, m->directory, "config.json");
    hash = add_file(hash, m->directory, "model.safetensors");
  }
  return hash;
}
