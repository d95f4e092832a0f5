/*
** family.c: for each model family, the names of its tensors and what there is of
** everything: the whole difference between families, but for their config.
**
** A family that has been written with other names as well has one description for
** each; the one whose tensors are in the file counts.
*/
#include <string.h>

#include "forward.h"

/* A dense layer with tanh on the first token, as RoBERTa brought it up. */
#define ROBERTA_CLASSIFY                                                                           \
  { .dense = "classifier.dense", .activation = ACTIVATION_TANH, .out = "classifier.out_proj" }
#define ROBERTA_FILL                                                                               \
  {                                                                                                \
    .dense = "lm_head.dense", .activation = ACTIVATION_GELU, .norm = "lm_head.layer_norm",         \
    .out = "lm_head.decoder", .out_bias = "lm_head.bias"                                           \
  }
#define BERT_FILL                                                                                  \
  {                                                                                                \
    .dense = "cls.predictions.transform.dense", .activation = OF_HIDDEN_LAYERS,                    \
    .norm = "cls.predictions.transform.LayerNorm", .out = "cls.predictions.decoder",               \
    .out_bias = "cls.predictions.bias"                                                             \
  }
#define BERT_EMBEDDINGS                                                                            \
  .word = "embeddings.word_embeddings", .position = "embeddings.position_embeddings",              \
  .type = "embeddings.token_type_embeddings", .embedding_norm = "embeddings.LayerNorm"
#define BERT_ATTENTION                                                                             \
  .layer = "encoder.layer.%d.", .query = "attention.self.query", .key = "attention.self.key",      \
  .value = "attention.self.value", .attention_output = "attention.output.dense",                   \
  .attention_norm = "attention.output.LayerNorm"
#define BERT_LAYERS                                                                                \
  BERT_ATTENTION, .up = "intermediate.dense", .down = "output.dense",                              \
                  .output_norm = "output.LayerNorm"
#define PLAIN_CLASSIFIER                                                                           \
  { .out = "classifier" }
/* Classifiers without a layer of their own: of the pooler's output, of each token. */
#define POOLED_CLASSIFIERS                                                                         \
  .classify = PLAIN_CLASSIFIER, .classify_pooled = 1, .entities = PLAIN_CLASSIFIER
/* ModernBERT has one layer before whichever head it is. */
#define MODERNBERT_HEAD(last)                                                                      \
  { .dense = "head.dense", .activation = OF_CLASSIFIER, .norm = "head.norm", .out = (last) }

static const family families[] = {
    {.names = {"bert"},
     .prefixes = {"", "bert."},
     BERT_EMBEDDINGS,
     BERT_LAYERS,
     .pooler = "pooler.dense",
     POOLED_CLASSIFIERS,
     .fill = BERT_FILL},

    {.names = {"jina-bert"},
     .prefixes = {"", "bert."},
     BERT_EMBEDDINGS,
     BERT_ATTENTION,
     .up_gate = "mlp.gated_layers",
     .gate_first = 1,
     .down = "mlp.wo",
     .output_norm = "mlp.layernorm",
     .pooler = "pooler.dense",
     POOLED_CLASSIFIERS,
     .fill = BERT_FILL},

    /* The same with normalized queries and keys, as its models for code have it. */
    {.names = {"jina-bert"},
     .prefixes = {"", "bert."},
     BERT_EMBEDDINGS,
     BERT_ATTENTION,
     .query_norm = "attention.self.layer_norm_q",
     .key_norm = "attention.self.layer_norm_k",
     .second_norm = "layer_norm_1",
     .up_gate = "mlp.up_gated_layer",
     .down = "mlp.down_layer",
     .output_norm = "layer_norm_2",
     .pooler = "pooler.dense",
     POOLED_CLASSIFIERS,
     .fill = BERT_FILL},

    {.names = {"roberta", "xlm-roberta", "camembert"},
     .prefixes = {"", "roberta.", "camembert.", "xlm_roberta."},
     BERT_EMBEDDINGS,
     BERT_LAYERS,
     .pooler = "pooler.dense",
     .classify = ROBERTA_CLASSIFY,
     .entities = PLAIN_CLASSIFIER,
     .fill = ROBERTA_FILL},

    {.names = {"distilbert"},
     .prefixes = {"", "distilbert."},
     .word = "embeddings.word_embeddings",
     .position = "embeddings.position_embeddings",
     .embedding_norm = "embeddings.LayerNorm",
     .layer = "transformer.layer.%d.",
     .query = "attention.q_lin",
     .key = "attention.k_lin",
     .value = "attention.v_lin",
     .attention_output = "attention.out_lin",
     .attention_norm = "sa_layer_norm",
     .up = "ffn.lin1",
     .down = "ffn.lin2",
     .output_norm = "output_layer_norm",
     .classify = {.dense = "pre_classifier", .activation = ACTIVATION_RELU, .out = "classifier"},
     .entities = PLAIN_CLASSIFIER,
     .fill = {.dense = "vocab_transform",
              .activation = OF_HIDDEN_LAYERS,
              .norm = "vocab_layer_norm",
              .out = "vocab_projector"}},

    {.names = {"mpnet"},
     .prefixes = {"", "mpnet."},
     .word = "embeddings.word_embeddings",
     .position = "embeddings.position_embeddings",
     .embedding_norm = "embeddings.LayerNorm",
     .layer = "encoder.layer.%d.",
     .query = "attention.attn.q",
     .key = "attention.attn.k",
     .value = "attention.attn.v",
     .attention_output = "attention.attn.o",
     .attention_norm = "attention.LayerNorm",
     .up = "intermediate.dense",
     .down = "output.dense",
     .output_norm = "output.LayerNorm",
     .relative_bias = "encoder.relative_attention_bias",
     .pooler = "pooler.dense",
     .classify = ROBERTA_CLASSIFY,
     .entities = PLAIN_CLASSIFIER,
     .fill = ROBERTA_FILL},

    {.names = {"electra"},
     .prefixes = {"", "electra."},
     BERT_EMBEDDINGS,
     .projection = "embeddings_project",
     BERT_LAYERS,
     .classify = {.dense = "classifier.dense",
                  .activation = ACTIVATION_GELU,
                  .out = "classifier.out_proj"},
     .entities = PLAIN_CLASSIFIER,
     .fill = {.dense = "generator_predictions.dense",
              .activation = ACTIVATION_GELU,
              .norm = "generator_predictions.LayerNorm",
              .out = "generator_lm_head"}},

    {.names = {"albert"},
     .prefixes = {"", "albert."},
     BERT_EMBEDDINGS,
     .projection = "encoder.embedding_hidden_mapping_in",
     .layer = "encoder.albert_layer_groups.%d.albert_layers.0.",
     .query = "attention.query",
     .key = "attention.key",
     .value = "attention.value",
     .attention_output = "attention.dense",
     .attention_norm = "attention.LayerNorm",
     .up = "ffn",
     .down = "ffn_output",
     .output_norm = "full_layer_layer_norm",
     .pooler = "pooler",
     POOLED_CLASSIFIERS,
     .fill = {.dense = "predictions.dense",
              .activation = OF_HIDDEN_LAYERS,
              .norm = "predictions.LayerNorm",
              .out = "predictions.decoder",
              .out_bias = "predictions.bias"}},

    {.names = {"modernbert"},
     .prefixes = {"", "model."},
     .word = "embeddings.tok_embeddings",
     .embedding_norm = "embeddings.norm",
     .layer = "layers.%d.",
     .query_key_value = "attn.Wqkv",
     .attention_output = "attn.Wo",
     .attention_norm = "attn_norm",
     .first_norm_bare = 1,
     .up_gate = "mlp.Wi",
     .gate_first = 1,
     .down = "mlp.Wo",
     .output_norm = "mlp_norm",
     .final_norm = "final_norm",
     .pre_norm = 1,
     .bare_heads = 1,
     .classify = MODERNBERT_HEAD("classifier"),
     .entities = MODERNBERT_HEAD("classifier"),
     .fill = MODERNBERT_HEAD("decoder")},

    {.names = {"nomic-bert"},
     .prefixes = {"", "bert.", "nomic_bert."},
     .word = "embeddings.word_embeddings",
     .type = "embeddings.token_type_embeddings",
     .embedding_norm = "emb_ln",
     .layer = "encoder.layers.%d.",
     .query_key_value = "attn.Wqkv",
     .attention_output = "attn.out_proj",
     .attention_norm = "norm1",
     .up = "mlp.fc11",
     .gate = "mlp.fc12",
     .down = "mlp.fc2",
     .output_norm = "norm2",
     .pooler = "pooler.dense",
     POOLED_CLASSIFIERS,
     .fill = {.dense = "cls.predictions.transform.dense",
              .activation = OF_HIDDEN_LAYERS,
              .norm = "cls.predictions.transform.layer_norm",
              .out = "cls.predictions.decoder",
              .out_bias = "cls.predictions.bias"}},

    {.names = {"gte"},
     .prefixes = {"", "new.", "gte."},
     .word = "embeddings.word_embeddings",
     .type = "embeddings.token_type_embeddings",
     .embedding_norm = "embeddings.LayerNorm",
     .layer = "encoder.layer.%d.",
     .query_key_value = "attention.qkv_proj",
     .attention_output = "attention.o_proj",
     .attention_norm = "attn_ln",
     .up_gate = "mlp.up_gate_proj",
     .down = "mlp.down_proj",
     .output_norm = "mlp_ln",
     .pooler = "pooler.dense",
     POOLED_CLASSIFIERS,
     .fill = {.dense = "lm_head.dense",
              .activation = ACTIVATION_GELU,
              .norm = "lm_head.norm",
              .out = "lm_head.decoder"}},

    /* Nomic BERT and GTE as transformers' own classes name their tensors. */
    {.names = {"nomic-bert", "gte"},
     .prefixes = {"", "nomic_bert.", "gte."},
     .word = "embeddings.word_embeddings",
     .type = "embeddings.token_type_embeddings",
     .embedding_norm = "embeddings.LayerNorm",
     .layer = "layers.%d.",
     .query = "self_attn.q_proj",
     .key = "self_attn.k_proj",
     .value = "self_attn.v_proj",
     .attention_output = "self_attn.o_proj",
     .attention_norm = "post_attention_layernorm",
     .up = "mlp.up_proj",
     .gate = "mlp.gate_proj",
     .down = "mlp.down_proj",
     .output_norm = "post_mlp_layernorm",
     .pooler = "pooler.dense",
     POOLED_CLASSIFIERS},
};

static int has_name(const family *f, const char *name) {
  for (int i = 0; f->names[i] != NULL; i++)
    if (strcmp(f->names[i], name) == 0) return 1;
  return 0;
}

const family *family_next(const char *name, int *next) {
  while (*next < (int)(sizeof families / sizeof families[0]))
    if (has_name(&families[(*next)++], name)) return &families[*next - 1];
  return NULL;
}
