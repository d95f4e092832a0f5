/*
** family.c: for each model family, the names of its tensors.
*/
#include <string.h>

#include "forward.h"

static const family families[] = {
    {.model_type = "bert",
     .prefixes = {"", "bert.", NULL},
     .word = "embeddings.word_embeddings",
     .position = "embeddings.position_embeddings",
     .type = "embeddings.token_type_embeddings",
     .embedding_norm = "embeddings.LayerNorm",
     .layer = "encoder.layer.%d.",
     .query = "attention.self.query",
     .key = "attention.self.key",
     .value = "attention.self.value",
     .attention_output = "attention.output.dense",
     .attention_norm = "attention.output.LayerNorm",
     .up = "intermediate.dense",
     .down = "output.dense",
     .output_norm = "output.LayerNorm",
     .pooler = "pooler.dense"},
};

const family *family_find(const char *model_type) {
  for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
    if (strcmp(families[i].model_type, model_type) == 0) return &families[i];
  return NULL;
}
