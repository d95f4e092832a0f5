/*
** test_config_families.c: config.json of every family: defaults, older keys, and what
** follows from them for positions, windows and angles.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "encoder/files/files.h"
#include "golden.h"
#include "scratch.h"

/* The config that `text` describes. */
static model_config read_text(const char *text) {
  char *directory = scratch_new();
  bert_error error = {BERT_OK, ""};
  model_config c;
  scratch_write(directory, "config.json", text, strlen(text));
  assert_ok(config_read(directory, &c, &error), &error);
  scratch_free(directory);
  return c;
}

typedef struct defaults {
  const char *model_type, *family;
  int layers, heads, hidden, inner, vocab, positions, types, type_rows, pad, first_position;
  activation activation;
  float epsilon;
} defaults;

/* Those of the configuration classes of transformers 5.24.0. */
static const defaults expected[] = {
    {"bert", "bert", 12, 12, 768, 3072, 30522, 512, 2, 2, 0, 0, ACTIVATION_GELU, 1e-12F},
    {"roberta", "roberta", 12, 12, 768, 3072, 50265, 510, 2, 2, 1, 2, ACTIVATION_GELU, 1e-12F},
    {"xlm-roberta", "xlm-roberta", 12, 12, 768, 3072, 30522, 510, 2, 2, 1, 2, ACTIVATION_GELU,
     1e-12F},
    {"camembert", "camembert", 12, 12, 768, 3072, 30522, 510, 2, 2, 1, 2, ACTIVATION_GELU, 1e-12F},
    {"distilbert", "distilbert", 6, 12, 768, 3072, 30522, 512, 1, 0, 0, 0, ACTIVATION_GELU, 1e-12F},
    {"mpnet", "mpnet", 12, 12, 768, 3072, 30527, 510, 1, 0, 1, 2, ACTIVATION_GELU, 1e-12F},
    {"electra", "electra", 12, 4, 256, 1024, 30522, 512, 2, 2, 0, 0, ACTIVATION_GELU, 1e-12F},
    {"albert", "albert", 12, 64, 4096, 16384, 30000, 512, 2, 2, 0, 0, ACTIVATION_GELU_TANH, 1e-12F},
    {"modernbert", "modernbert", 22, 12, 768, 1152, 50368, 8192, 1, 0, 50283, 0, ACTIVATION_GELU,
     1e-5F},
    {"nomic_bert", "nomic-bert", 12, 12, 768, 3072, 30528, 2048, 2, 2, 0, 0, ACTIVATION_SILU,
     1e-12F},
    {"gte", "gte", 12, 12, 768, 3072, 250048, 8192, 1, 1, 1, 0, ACTIVATION_GELU, 1e-12F},
    {"new", "gte", 12, 12, 768, 3072, 30528, 2048, 1, 1, 0, 0, ACTIVATION_GELU, 1e-12F},
};

static void absent_keys_take_the_defaults(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    const defaults *e = &expected[i];
    char text[100];
    snprintf(text, sizeof text, "{\"model_type\":\"%s\"}", e->model_type);
    model_config c = read_text(text);
    assert_string_equal(c.family, e->family);
    assert_int_equal(c.layers, e->layers);
    assert_int_equal(c.heads, e->heads);
    assert_int_equal(c.hidden_size, e->hidden);
    assert_int_equal(c.intermediate_size, e->inner);
    assert_int_equal(c.vocab_size, e->vocab);
    assert_int_equal(c.positions, e->positions);
    assert_int_equal(c.types, e->types);
    assert_int_equal(c.type_rows, e->type_rows);
    assert_int_equal(c.pad_token_id, e->pad);
    assert_int_equal(c.first_position, e->first_position);
    assert_int_equal(c.hidden_activation, e->activation);
    assert_true(c.layer_norm_epsilon == e->epsilon);
  }
}

static void positions_are_counted_from_behind_the_padding_token(void **state) {
  (void)state;
  model_config c = read_text("{\"model_type\":\"roberta\",\"max_position_embeddings\":514}");
  assert_int_equal(c.positions, 512);
  assert_int_equal(c.position_rows, 514);
  assert_int_equal(c.uncounted_token, 1);
  c = read_text("{\"model_type\":\"roberta\",\"pad_token_id\":5}");
  assert_int_equal(c.first_position, 6);
  assert_int_equal(c.positions, 506);
  /* MPNet's code has 1, whatever the config says */
  c = read_text("{\"model_type\":\"mpnet\",\"pad_token_id\":5}");
  assert_int_equal(c.first_position, 2);
  assert_int_equal(c.uncounted_token, 1);
  assert_int_equal(c.relative_buckets, 32);
}

static void narrow_embeddings_and_shared_layers(void **state) {
  (void)state;
  model_config c = read_text("{\"model_type\":\"albert\"}");
  assert_int_equal(c.embedding_size, 128);
  assert_int_equal(c.layer_groups, 1);
  c = read_text("{\"model_type\":\"albert\",\"embedding_size\":64,\"num_hidden_groups\":3}");
  assert_int_equal(c.embedding_size, 64);
  assert_int_equal(c.layer_groups, 3);
  c = read_text("{\"model_type\":\"electra\",\"embedding_size\":null}");
  assert_int_equal(c.embedding_size, 128);
  assert_int_equal(c.layer_groups, 12);
  c = read_text("{\"model_type\":\"bert\",\"embedding_size\":64}");
  assert_int_equal(c.embedding_size, 768);
}

static void modernbert_has_local_layers(void **state) {
  (void)state;
  model_config c = read_text("{\"model_type\":\"modernbert\"}");
  for (int i = 0; i < 22; i++) assert_int_equal(c.local_layer[i], i % 3 != 0);
  assert_int_equal(c.window, 64);
  assert_true(c.rope.theta == 160000 && c.local_rope.theta == 10000);
  assert_int_equal(c.attention_bias + c.up_bias + c.down_bias + c.norm_bias, 0);
  /* the keys of the first release */
  c = read_text(
      "{\"model_type\":\"modernbert\",\"global_attn_every_n_layers\":2,"
      "\"global_rope_theta\":80000.0,\"local_rope_theta\":500,\"local_attention\":32,"
      "\"position_embedding_type\":\"absolute\",\"rope_scaling\":null,\"mlp_bias\":true}");
  for (int i = 0; i < 22; i++) assert_int_equal(c.local_layer[i], i % 2);
  assert_int_equal(c.window, 16);
  assert_true(c.rope.theta == 80000 && c.local_rope.theta == 500);
  assert_true(c.up_bias && c.down_bias && !c.attention_bias);
  c = read_text("{\"model_type\":\"modernbert\",\"local_attention\":32,\"sliding_window\":5}");
  assert_int_equal(c.window, 5);
  c = read_text("{\"model_type\":\"modernbert\",\"num_hidden_layers\":2,\"layer_types\":"
                "[\"sliding_attention\",\"full_attention\"],\"rope_parameters\":"
                "{\"full_attention\":{\"rope_theta\":7,\"rope_type\":\"default\"}}}");
  assert_true(c.local_layer[0] && !c.local_layer[1]);
  assert_true(c.rope.theta == 7 && c.local_rope.theta == 10000);
}

static void rotary_positions_have_two_layouts(void **state) {
  (void)state;
  model_config c = read_text("{\"model_type\":\"gte\"}");
  assert_true(c.rope.theta == 160000 && c.local_rope.theta == 0);
  assert_int_equal(c.rope.scaling, ROPE_PLAIN);
  c = read_text("{\"model_type\":\"gte\",\"rope_theta\":500,\"rope_scaling\":null}");
  assert_true(c.rope.theta == 500);
  c = read_text("{\"model_type\":\"gte\",\"rope_theta\":500,\"max_position_embeddings\":100,"
                "\"rope_parameters\":{\"rope_theta\":600,\"rope_type\":\"dynamic\",\"factor\":4}}");
  assert_true(c.rope.theta == 600 && c.rope.factor == 4);
  assert_int_equal(c.rope.scaling, ROPE_DYNAMIC);
  assert_int_equal(c.rope.trained, 100);
  assert_int_equal(c.positions, 400);
  c = read_text("{\"model_type\":\"new\",\"rope_theta\":20000,\"type_vocab_size\":0,"
                "\"rope_scaling\":{\"type\":\"ntk\",\"factor\":8.0}}");
  assert_true(c.rope.theta == 20000 && c.rope.factor == 8);
  assert_int_equal(c.rope.scaling, ROPE_NTK);
  assert_int_equal(c.positions, 2048);
  assert_int_equal(c.types, 1);
  assert_int_equal(c.type_rows, 0);
}

/* nomic-embed-text-v1.5 as it was published, but for keys that say nothing. */
static void original_nomic_files_are_read(void **state) {
  (void)state;
  model_config c = read_text(
      "{\"model_type\":\"nomic_bert\",\"activation_function\":\"swiglu\",\"causal\":false,"
      "\"layer_norm_epsilon\":1e-12,\"max_trained_positions\":2048,\"mlp_fc1_bias\":false,"
      "\"mlp_fc2_bias\":false,\"n_embd\":768,\"n_head\":12,\"n_inner\":3072,\"n_layer\":12,"
      "\"n_positions\":8192,\"pad_vocab_size_multiple\":64,\"parallel_block\":false,"
      "\"prenorm\":false,\"qkv_proj_bias\":false,\"rotary_emb_base\":1000,"
      "\"rotary_emb_fraction\":1.0,\"rotary_emb_interleaved\":false,"
      "\"rotary_emb_scale_base\":null,\"rotary_scaling_factor\":2,\"type_vocab_size\":2,"
      "\"use_rms_norm\":false,\"vocab_size\":30528}");
  assert_int_equal(c.positions, 8192);
  assert_int_equal(c.rope.scaling, ROPE_DYNAMIC);
  assert_int_equal(c.rope.trained, 2048);
  assert_true(c.rope.theta == 1000 && c.rope.factor == 2);
  assert_int_equal(c.hidden_activation, ACTIVATION_SILU);
  assert_int_equal(c.attention_bias + c.up_bias + c.down_bias, 0);
  assert_int_equal(c.norm_bias, 1);
  c = read_text("{\"model_type\":\"nomic_bert\",\"n_embd\":64,\"n_head\":2,\"n_layer\":3,"
                "\"n_inner\":null,\"vocab_size\":100,\"pad_vocab_size_multiple\":64,"
                "\"layer_norm_epsilon\":1e-5,\"rotary_scaling_factor\":null,"
                "\"activation_function\":\"geglu\",\"qkv_proj_bias\":true,\"n_positions\":90}");
  assert_int_equal(c.hidden_size, 64);
  assert_int_equal(c.intermediate_size, 256);
  assert_int_equal(c.vocab_size, 128);
  assert_int_equal(c.positions, 90);
  assert_int_equal(c.rope.scaling, ROPE_PLAIN);
  assert_int_equal(c.hidden_activation, ACTIVATION_GELU);
  assert_true(c.layer_norm_epsilon == 1e-5F);
  assert_int_equal(c.attention_bias, 1);
  /* The class in transformers has no such keys. */
  c = read_text("{\"model_type\":\"nomic_bert\",\"hidden_size\":768,\"rotary_emb_base\":77,"
                "\"rotary_scaling_factor\":2,\"activation_function\":\"geglu\","
                "\"qkv_proj_bias\":true}");
  assert_true(c.rope.theta == 1000);
  assert_int_equal(c.rope.scaling, ROPE_PLAIN);
  assert_int_equal(c.hidden_activation, ACTIVATION_SILU);
  assert_int_equal(c.attention_bias, 0);
}

static void jina_calls_itself_bert(void **state) {
  (void)state;
  model_config c = read_text("{\"model_type\":\"bert\",\"position_embedding_type\":\"alibi\","
                             "\"feed_forward_type\":\"geglu\",\"max_position_embeddings\":8192}");
  assert_string_equal(c.family, "jina-bert");
  assert_int_equal(c.alibi, 1);
  assert_int_equal(c.position_rows, 0);
  assert_int_equal(c.positions, 8192);
  assert_int_equal(c.up_bias, 0);
  assert_int_equal(c.down_bias, 1);
  c = read_text("{\"model_type\":\"bert\",\"position_embedding_type\":\"alibi\","
                "\"feed_forward_type\":\"reglu\"}");
  assert_int_equal(c.hidden_activation, ACTIVATION_RELU);
  c = read_text("{\"model_type\":\"bert\",\"position_embedding_type\":\"alibi\"}");
  assert_string_equal(c.family, "bert");
  assert_int_equal(c.alibi, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(absent_keys_take_the_defaults),
      cmocka_unit_test(positions_are_counted_from_behind_the_padding_token),
      cmocka_unit_test(narrow_embeddings_and_shared_layers),
      cmocka_unit_test(modernbert_has_local_layers),
      cmocka_unit_test(rotary_positions_have_two_layouts),
      cmocka_unit_test(original_nomic_files_are_read),
      cmocka_unit_test(jina_calls_itself_bert),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
