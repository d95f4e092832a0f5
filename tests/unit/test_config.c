/*
** test_config.c: config.json and the files of sentence-transformers: what is
** read from real directories, and one bad file for every rule.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include <cmocka.h>

#include "encoder/files/files.h"
#include "faults.h"
#include "scratch.h"

static const char minilm[] = "models/all-MiniLM-L6-v2";
static const char mean[] = "tests/golden/families/bert-mean";
static const char cls_dense[] = "tests/golden/families/bert-cls-dense";
static const char max[] = "tests/golden/families/bert-max";

static void put(const char *directory, const char *name, const char *text) {
  char path[300];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  char *slash = strrchr(path, '/');
  *slash = '\0';
  mkdir(path, 0700);
  scratch_write(directory, name, text, strlen(text));
}

static void expect(bert_status status, bert_status expected, const bert_error *error,
                   const char *part) {
  if (status != expected || error->status != expected)
    fail_msg("status %d, expected %d (%s): %s", (int)status, (int)expected, part, error->text);
  if (strstr(error->text, part) == NULL) fail_msg("\"%s\" lacks \"%s\"", error->text, part);
}

static void expect_ok(bert_status status, const bert_error *error) {
  if (status != BERT_OK) fail_msg("status %d: %s", (int)status, error->text);
}

/* ---- config.json ------------------------------------------------------- */

static model_config read_config(const char *directory) {
  model_config c;
  bert_error error = {0};
  expect_ok(config_read(directory, &c, &error), &error);
  return c;
}

static void check_sizes(const model_config *c, const int sizes[8]) {
  const int read[8] = {c->layers,     c->heads,     c->hidden_size, c->intermediate_size,
                       c->vocab_size, c->positions, c->types,       c->pad_token_id};
  for (int i = 0; i < 8; i++) assert_int_equal(read[i], sizes[i]);
}

static void test_real_configs(void **state) {
  model_config c = read_config(minilm);
  check_sizes(&c, (const int[8]){6, 12, 384, 1536, 30522, 512, 2, 0});
  assert_string_equal(c.family, "bert");
  assert_string_equal(c.architecture, "BertModel");
  assert_int_equal(c.hidden_activation, ACTIVATION_GELU);
  assert_true(c.layer_norm_epsilon == 1e-12f);
  c = read_config(mean);
  check_sizes(&c, (const int[8]){3, 2, 32, 100, 1200, 66, 2, 0});
  c = read_config(cls_dense);
  check_sizes(&c, (const int[8]){3, 4, 64, 48, 1200, 66, 2, 0});
  assert_int_equal(c.hidden_activation, ACTIVATION_GELU_TANH);
  c = read_config(max);
  check_sizes(&c, (const int[8]){3, 2, 32, 100, 1200, 66, 1, 0});
  assert_int_equal(c.hidden_activation, ACTIVATION_SILU);
  assert_true(c.layer_norm_epsilon == 1e-5f);
}

static void test_config_defaults(void **state) {
  static const char *const texts[] = {
      "{\"model_type\":\"bert\"}",
      "{\"model_type\":\"bert\",\"hidden_size\":null,\"architectures\":null,\"hidden_act\":null,"
      "\"is_decoder\":null,\"position_embedding_type\":null,\"pruned_heads\":{},"
      "\"quantization_config\":null,\"unknown\":[1]}",
      "{\"model_type\":\"bert\",\"architectures\":[],\"is_decoder\":false,\"add_cross_attention\":"
      "false,"
      "\"position_embedding_type\":\"absolute\"}"};
  char *directory = scratch_new();
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    put(directory, "config.json", texts[i]);
    model_config c = read_config(directory);
    check_sizes(&c, (const int[8]){12, 12, 768, 3072, 30522, 512, 2, 0});
    assert_string_equal(c.architecture, "");
    assert_int_equal(c.hidden_activation, ACTIVATION_GELU);
    assert_true(c.layer_norm_epsilon == 1e-12f);
  }
  scratch_free(directory);
}

static void test_config_activations(void **state) {
  static const struct {
    const char *name;
    activation kind;
  } names[] = {{"gelu", ACTIVATION_GELU},
               {"gelu_python", ACTIVATION_GELU},
               {"gelu_new", ACTIVATION_GELU_TANH},
               {"gelu_fast", ACTIVATION_GELU_TANH},
               {"gelu_pytorch_tanh", ACTIVATION_GELU_TANH},
               {"relu", ACTIVATION_RELU},
               {"silu", ACTIVATION_SILU},
               {"swish", ACTIVATION_SILU},
               {"tanh", ACTIVATION_TANH},
               {"linear", ACTIVATION_IDENTITY}};
  static const char *const unknown[] = {"quick_gelu", "gelu_10", "relu2", "relu6", "mish",
                                        "sigmoid",    "GELU",    "",      "gelu "};
  char *directory = scratch_new(), text[100];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(text, sizeof text, "{\"model_type\":\"bert\",\"hidden_act\":\"%s\"}", names[i].name);
    put(directory, "config.json", text);
    assert_int_equal(read_config(directory).hidden_activation, names[i].kind);
  }
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
    model_config c;
    bert_error error = {0};
    char part[100];
    snprintf(text, sizeof text, "{\"model_type\":\"bert\",\"hidden_act\":\"%s\"}", unknown[i]);
    snprintf(part, sizeof part, "\"hidden_act\" \"%s\" is not supported", unknown[i]);
    put(directory, "config.json", text);
    expect(config_read(directory, &c, &error), BERT_UNSUPPORTED, &error, part);
  }
  scratch_free(directory);
}

typedef struct bad_text {
  const char *text;
  bert_status status;
  const char *part;
} bad_text;

#define BERT(more) "{\"model_type\":\"bert\"," more "}"

static const bad_text bad_configs[] = {
    {"", BERT_INVALID, "/config.json: byte 0"},
    {"[]", BERT_INVALID, "expected an object, not an array"},
    {"{}", BERT_INVALID, "\"model_type\" is missing"},
    {"{\"model_type\":null}", BERT_INVALID, "\"model_type\" is missing"},
    {"{\"model_type\":1}", BERT_INVALID, "\"model_type\" must be a string"},
    {"{\"model_type\":\"gpt2\"}", BERT_UNSUPPORTED, "\"model_type\" \"gpt2\" is not supported"},
    {"{\"model_type\":\"BERT\"}", BERT_UNSUPPORTED, "\"BERT\" is not supported"},
    {"{\"model_type\":\"bert\",\"model_type\":\"bert\"}", BERT_INVALID,
     "\"model_type\" stands twice"},
    {BERT("\"hidden_act\":{}"), BERT_INVALID, "\"hidden_act\" must be a string"},
    {BERT("\"position_embedding_type\":\"relative_key\""), BERT_UNSUPPORTED,
     "\"position_embedding_type\" \"relative_key\" is not supported"},
    {BERT("\"is_decoder\":true"), BERT_UNSUPPORTED, "\"is_decoder\" is not supported"},
    {BERT("\"is_decoder\":1"), BERT_INVALID, "\"is_decoder\" must be true or false"},
    {BERT("\"add_cross_attention\":true"), BERT_UNSUPPORTED, "\"add_cross_attention\""},
    {BERT("\"pruned_heads\":{\"0\":[1]}"), BERT_UNSUPPORTED, "\"pruned_heads\""},
    {BERT("\"quantization_config\":{\"bits\":4}"), BERT_UNSUPPORTED, "\"quantization_config\""},
    {BERT("\"num_hidden_layers\":0"), BERT_INVALID,
     "\"num_hidden_layers\" must be an integer from 1 to 1000, not 0"},
    {BERT("\"num_hidden_layers\":1001"), BERT_INVALID, "\"num_hidden_layers\""},
    {BERT("\"num_hidden_layers\":-1"), BERT_INVALID, "not -1"},
    {BERT("\"num_hidden_layers\":1.5"), BERT_INVALID, "not 1.5"},
    {BERT("\"num_hidden_layers\":\"6\""), BERT_INVALID, "not \"6\""},
    {BERT("\"num_attention_heads\":0"), BERT_INVALID, "\"num_attention_heads\""},
    {BERT("\"num_attention_heads\":1025"), BERT_INVALID, "\"num_attention_heads\""},
    {BERT("\"num_attention_heads\":7"), BERT_INVALID,
     "hidden_size 768 is not a multiple of num_attention_heads 7"},
    {BERT("\"num_attention_heads\":1024"), BERT_INVALID, "is not a multiple"},
    {BERT("\"hidden_size\":0"), BERT_INVALID, "\"hidden_size\""},
    {BERT("\"hidden_size\":65537"), BERT_INVALID, "\"hidden_size\""},
    {BERT("\"hidden_size\":9223372036854775808"), BERT_INVALID, "\"hidden_size\""},
    {BERT("\"intermediate_size\":0"), BERT_INVALID, "\"intermediate_size\""},
    {BERT("\"intermediate_size\":300000"), BERT_INVALID, "\"intermediate_size\""},
    {BERT("\"vocab_size\":0"), BERT_INVALID, "\"vocab_size\""},
    {BERT("\"vocab_size\":10000001"), BERT_INVALID, "\"vocab_size\""},
    {BERT("\"max_position_embeddings\":0"), BERT_INVALID, "\"max_position_embeddings\""},
    {BERT("\"max_position_embeddings\":1000001"), BERT_INVALID, "\"max_position_embeddings\""},
    {BERT("\"type_vocab_size\":0"), BERT_INVALID, "\"type_vocab_size\""},
    {BERT("\"type_vocab_size\":1001"), BERT_INVALID, "\"type_vocab_size\""},
    {BERT("\"pad_token_id\":-2"), BERT_INVALID, "\"pad_token_id\""},
    {BERT("\"pad_token_id\":30522"), BERT_INVALID, "\"pad_token_id\" 30522 is not below"},
    {BERT("\"layer_norm_eps\":0"), BERT_INVALID,
     "\"layer_norm_eps\" must be a number from 1e-30 to 1"},
    {BERT("\"layer_norm_eps\":-1e-12"), BERT_INVALID, "\"layer_norm_eps\""},
    {BERT("\"layer_norm_eps\":2"), BERT_INVALID, "\"layer_norm_eps\""},
    {BERT("\"layer_norm_eps\":\"1e-12\""), BERT_INVALID, "\"layer_norm_eps\""},
    {BERT("\"architectures\":\"BertModel\""), BERT_INVALID, "\"architectures\" must be an array"},
    {BERT("\"architectures\":[1]"), BERT_INVALID, "\"architectures\" must be an array of names"},
    {BERT("\"architectures\":["
          "\"0123456789012345678901234567890123456789012345678901234567890123\"]"),
     BERT_INVALID, "too long"},
};

static void test_config_refuses(void **state) {
  char *directory = scratch_new();
  model_config c, untouched;
  memset(&c, 0x77, sizeof c);
  memset(&untouched, 0x77, sizeof untouched);
  for (size_t i = 0; i < sizeof bad_configs / sizeof *bad_configs; i++) {
    bert_error error = {0};
    put(directory, "config.json", bad_configs[i].text);
    bert_status status = config_read(directory, &c, &error);
    expect(status, bad_configs[i].status, &error, bad_configs[i].part);
    expect(status, bad_configs[i].status, &error, "/config.json: ");
    assert_memory_equal(&c, &untouched, sizeof c);
  }
  bert_error error = {0};
  scratch_remove(directory, "config.json");
  expect(config_read(directory, &c, &error), BERT_IO, &error,
         "is no model directory: it has no config.json");
  assert_int_equal(config_read(directory, &c, NULL), BERT_IO);
  scratch_free(directory);
}

/* ---- sentence-transformers: what is read ------------------------------- */

static sentence_config read_sentence(const char *directory) {
  sentence_config c;
  bert_error error = {0};
  expect_ok(sentence_config_read(directory, &c, &error), &error);
  assert_non_null(c.transformer_path);
  return c;
}

static void test_real_sentences(void **state) {
  sentence_config c = read_sentence(minilm);
  assert_int_equal(c.present, 1);
  assert_string_equal(c.transformer_path, "");
  assert_true(c.pooling_count == 1 && c.poolings[0] == POOLING_MEAN && c.pooling_width == 384);
  assert_true(c.module_count == 1 && c.modules[0].type == MODULE_NORMALIZE);
  assert_true(c.prompt_count == 0 && c.default_prompt == -1 && c.include_prompt == 1);
  assert_true(c.max_tokens == 256 && c.lowercase == 0);
  sentence_config_free(&c);
  c = read_sentence(cls_dense);
  assert_true(c.pooling_count == 1 && c.poolings[0] == POOLING_CLS && c.max_tokens == 48);
  assert_int_equal(c.module_count, 2);
  const module *dense = &c.modules[0];
  assert_true(dense->type == MODULE_DENSE && dense->in == 64 && dense->out == 24);
  assert_true(dense->has_bias && dense->activation == ACTIVATION_TANH);
  assert_string_equal(dense->directory, "tests/golden/families/bert-cls-dense/2_Dense");
  assert_int_equal(c.modules[1].type, MODULE_NORMALIZE);
  assert_int_equal(c.prompt_count, 2);
  assert_string_equal(c.prompts[0].name, "query");
  assert_string_equal(c.prompts[0].text, "query: ");
  assert_string_equal(c.prompts[1].text, "passage: ");
  sentence_config_free(&c);
  c = read_sentence(max);
  assert_true(c.poolings[0] == POOLING_MAX && c.module_count == 0);
  sentence_config_free(&c);
  sentence_config_free(&c); /* a freed one is empty */
}

static void test_without_modules(void **state) {
  char *directory = scratch_new();
  sentence_config c = read_sentence(directory);
  assert_true(c.present == 0 && c.pooling_count == 1 && c.poolings[0] == POOLING_MEAN);
  assert_true(c.module_count == 0 && c.max_tokens == 0 && c.default_prompt == -1);
  sentence_config_free(&c);
  /* sentence-transformers reads none of its own files then */
  put(directory, "sentence_bert_config.json", "{\"max_seq_length\":11,\"do_lower_case\":true}");
  put(directory, "config_sentence_transformers.json", "{\"prompts\":{\"query\":\"q\"}}");
  put(directory, "tokenizer_config.json", "{\"model_max_length\":99}");
  c = read_sentence(directory);
  assert_true(c.max_tokens == 99 && c.lowercase == 0 && c.prompt_count == 0);
  sentence_config_free(&c);
  scratch_free(directory);
}

#define ST "sentence_transformers.models."
#define M(type, path) "{\"idx\":0,\"name\":\"0\",\"path\":\"" path "\",\"type\":\"" type "\"}"
#define TRANSFORMER M(ST "Transformer", "")
#define POOLING M(ST "Pooling", "1_Pooling")
#define MODULES(more) "[" TRANSFORMER "," POOLING more "]"

/* A directory with modules.json, Transformer and mean pooling of width 8. */
static char *sentence_directory(void) {
  char *directory = scratch_new();
  put(directory, "modules.json", MODULES(""));
  put(directory, "1_Pooling/config.json",
      "{\"word_embedding_dimension\":8,\"pooling_mode_mean_tokens\":true}");
  put(directory, "2_Dense/config.json", "{\"in_features\":8,\"out_features\":4}");
  put(directory, "3_Dense/config.json",
      "{\"in_features\":4,\"out_features\":2,\"bias\":false,"
      "\"activation_function\":\"torch.nn.modules.linear.Identity\"}");
  return directory;
}

static void test_pooling_modes(void **state) {
  static const struct {
    const char *text;
    int count, width;
    pooling kinds[POOLING_LIMIT];
  } cases[] = {
      {"{}", 1, 0, {POOLING_MEAN}},
      {"{\"word_embedding_dimension\":8}", 1, 8, {POOLING_MEAN}},
      {"{\"embedding_dimension\":9}", 1, 9, {POOLING_MEAN}},
      {"{\"pooling_mode_cls_token\":false,\"pooling_mode_mean_tokens\":false}",
       1,
       0,
       {POOLING_MEAN}},
      {"{\"pooling_mode_cls_token\":true}", 1, 0, {POOLING_CLS}},
      {"{\"pooling_mode_max_tokens\":true}", 1, 0, {POOLING_MAX}},
      {"{\"pooling_mode_mean_sqrt_len_tokens\":true}", 1, 0, {POOLING_MEAN_SQRT_LEN}},
      {"{\"pooling_mode_mean_tokens\":true,\"pooling_mode_max_tokens\":true,\"pooling_mode_cls_"
       "token\":true,"
       "\"pooling_mode_mean_sqrt_len_tokens\":true}",
       4,
       0,
       {POOLING_CLS, POOLING_MAX, POOLING_MEAN, POOLING_MEAN_SQRT_LEN}},
      {"{\"pooling_mode_weightedmean_tokens\":false,\"pooling_mode_lasttoken\":false}",
       1,
       0,
       {POOLING_MEAN}},
      {"{\"pooling_mode_lasttoken\":true,\"pooling_mode_weightedmean_tokens\":true}",
       2,
       0,
       {POOLING_WEIGHTED_MEAN, POOLING_LAST_TOKEN}},
      {"{\"pooling_mode\":\"lasttoken\"}", 1, 0, {POOLING_LAST_TOKEN}},
      {"{\"pooling_mode\":\"weightedmean\"}", 1, 0, {POOLING_WEIGHTED_MEAN}},
      {"{\"pooling_mode\":\"cls\"}", 1, 0, {POOLING_CLS}},
      {"{\"pooling_mode\":\"mean_sqrt_len_tokens\"}", 1, 0, {POOLING_MEAN_SQRT_LEN}},
      {"{\"pooling_mode\":[\"mean\",\"cls\"]}", 2, 0, {POOLING_MEAN, POOLING_CLS}},
      {"{\"pooling_mode\":\"max\",\"pooling_mode_cls_token\":true}", 1, 0, {POOLING_MAX}},
  };
  char *directory = sentence_directory();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    put(directory, "1_Pooling/config.json", cases[i].text);
    sentence_config c = read_sentence(directory);
    assert_int_equal(c.pooling_count, cases[i].count);
    assert_int_equal(c.pooling_width, cases[i].width);
    for (int k = 0; k < c.pooling_count; k++) assert_int_equal(c.poolings[k], cases[i].kinds[k]);
    assert_int_equal(c.include_prompt, 1);
    sentence_config_free(&c);
  }
  put(directory, "1_Pooling/config.json", "{\"include_prompt\":false}");
  sentence_config c = read_sentence(directory);
  assert_int_equal(c.include_prompt, 0);
  sentence_config_free(&c);
  scratch_free(directory);
}

static void test_pooling_names(void **state) {
  static const char *const names[] = {"cls",          "mean",      "max",   "mean_sqrt_len",
                                      "weightedmean", "lasttoken", "pooler"};
  for (int i = 0; i < 7; i++) {
    assert_int_equal(pooling_from_name(names[i]), i);
    assert_string_equal(pooling_name((pooling)i), names[i]);
  }
  assert_int_equal(pooling_from_name("median"), -1);
  assert_int_equal(pooling_from_name(""), -1);
}

/* idx and name are labels; the order of the file counts. */
static void test_modules_in_file_order(void **state) {
  char *directory = sentence_directory();
  put(directory, "modules.json",
      "[" M(ST "Transformer",
            "0_Transformer") ",{\"idx\":9,\"name\":\"x\",\"path\":\"1_Pooling\",\"type\":"
                             "\"sentence_transformers.sentence_transformer.modules.pooling."
                             "Pooling\"}," M(ST "Dropout",
                                             "none") ",{\"idx\":3,\"path\":\"2_Dense\",\"type\":"
                                                     "\"sentence_transformers.base.modules."
                                                     "dense.Dense\"}," M(
                                                         ST "Normalize",
                                                         "4_Normalize") ",{\"idx\":1,\"path\":\"3_"
                                                                        "Dense\",\"type\":\"" ST
                                                                        "Dense\"}]");
  put(directory, "0_Transformer/sentence_roberta_config.json", "{\"max_seq_length\":33}");
  put(directory, "sentence_bert_config.json", "{\"max_seq_length\":44}");
  sentence_config c = read_sentence(directory);
  assert_string_equal(c.transformer_path, "0_Transformer");
  assert_int_equal(c.max_tokens, 33);
  assert_int_equal(c.module_count, 3);
  assert_true(c.modules[0].type == MODULE_DENSE && c.modules[0].in == 8 && c.modules[0].out == 4);
  assert_true(c.modules[0].has_bias && c.modules[0].activation == ACTIVATION_TANH);
  assert_int_equal(c.modules[1].type, MODULE_NORMALIZE);
  assert_true(c.modules[2].type == MODULE_DENSE && !c.modules[2].has_bias);
  assert_int_equal(c.modules[2].activation, ACTIVATION_IDENTITY);
  assert_non_null(strstr(c.modules[2].directory, "/3_Dense"));
  sentence_config_free(&c);
  scratch_free(directory);
}

static void test_dense_activations(void **state) {
  static const struct {
    const char *name;
    activation kind;
  } names[] = {{"torch.nn.modules.activation.Tanh", ACTIVATION_TANH},
               {"torch.nn.modules.linear.Identity", ACTIVATION_IDENTITY},
               {"torch.nn.modules.activation.ReLU", ACTIVATION_RELU},
               {"torch.nn.modules.activation.GELU", ACTIVATION_GELU},
               {"torch.nn.modules.activation.SiLU", ACTIVATION_SILU},
               {"torch.nn.Tanh", ACTIVATION_TANH}};
  char *directory = sentence_directory(), text[200];
  put(directory, "modules.json", MODULES("," M(ST "Dense", "2_Dense")));
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(text, sizeof text,
             "{\"in_features\":8,\"out_features\":4,\"activation_function\":\"%s\"}",
             names[i].name);
    put(directory, "2_Dense/config.json", text);
    sentence_config c = read_sentence(directory);
    assert_int_equal(c.modules[0].activation, names[i].kind);
    sentence_config_free(&c);
  }
  scratch_free(directory);
}

static void test_prompts(void **state) {
  char *directory = sentence_directory();
  put(directory, "config_sentence_transformers.json",
      "{\"__version__\":{},\"prompts\":{\"query\":\"q: \",\"\":\"\\u00e9\",\"none\":null},"
      "\"default_prompt_name\":\"none\",\"similarity_fn_name\":\"cosine\",\"model_type\":"
      "\"SentenceTransformer\",\"truncate_dim\":null}");
  sentence_config c = read_sentence(directory);
  assert_int_equal(c.prompt_count, 3);
  assert_string_equal(c.prompts[0].text, "q: ");
  assert_string_equal(c.prompts[1].name, "");
  assert_string_equal(c.prompts[1].text, "\xC3\xA9");
  assert_string_equal(c.prompts[2].text, "");
  assert_int_equal(c.default_prompt, 2);
  sentence_config_free(&c);
  /* "query" and "document" exist, empty, for every model */
  static const char *const roles[] = {"query", "document"};
  for (int i = 0; i < 2; i++) {
    char text[80];
    snprintf(text, sizeof text, "{\"default_prompt_name\":\"%s\"}", roles[i]);
    put(directory, "config_sentence_transformers.json", text);
    c = read_sentence(directory);
    assert_true(c.prompt_count == 0 && c.default_prompt == -1);
    sentence_config_free(&c);
  }
  scratch_free(directory);
}

static void test_token_limit(void **state) {
  static const struct {
    const char *sentence, *tokenizer;
    int limit;
  } cases[] = {
      {NULL, NULL, 0},
      {"{\"max_seq_length\":77}", NULL, 77},
      {"{\"max_seq_length\":77}", "{\"model_max_length\":55}", 77},
      {"{\"max_seq_length\":null}", "{\"model_max_length\":55}", 55},
      {"{\"do_lower_case\":false}", "{\"model_max_length\":55}", 55},
      {"{}", "{\"model_max_length\":55}", 55},
      {NULL, "{\"model_max_length\":512}", 512},
      {NULL, "{\"model_max_length\":512.0}", 512},
      {NULL, "{\"max_len\":128}", 128},
      {NULL, "{\"max_len\":128,\"model_max_length\":64}", 64},
      {NULL, "{\"model_max_length\":null}", 0},
      {NULL, "{\"model_max_length\":1000000000000000019884624838656}", 0},
      {NULL, "{\"model_max_length\":1e30}", 0},
      {"{\"max_seq_length\":77,\"tokenizer_args\":{\"model_max_length\":66}}", NULL, 66},
      {"{\"max_seq_length\":77,\"processor_kwargs\":{\"model_max_length\":65}}", NULL, 65},
      {"{\"transformer_task\":\"feature-extraction\",\"modality_config\":{\"text\":{\"method\":"
       "\"forward\","
       "\"method_output_name\":\"last_hidden_state\"}},\"module_output_name\":\"token_"
       "embeddings\"}",
       "{\"model_max_length\":50}", 50},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char *directory = sentence_directory();
    if (cases[i].sentence) put(directory, "sentence_bert_config.json", cases[i].sentence);
    if (cases[i].tokenizer) put(directory, "tokenizer_config.json", cases[i].tokenizer);
    sentence_config c = read_sentence(directory);
    if (c.max_tokens != cases[i].limit) fail_msg("case %zu: %d", i, c.max_tokens);
    sentence_config_free(&c);
    scratch_free(directory);
  }
}

static void test_transformer_file_names(void **state) {
  static const char *const names[] = {
      "sentence_bert_config.json",       "sentence_roberta_config.json",
      "sentence_distilbert_config.json", "sentence_camembert_config.json",
      "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
      "sentence_xlnet_config.json"};
  for (int i = 0; i < 7; i++) {
    char *directory = sentence_directory(), text[80];
    for (int k = i; k < 7; k++) { /* the first in this order counts */
      snprintf(text, sizeof text, "{\"max_seq_length\":%d,\"do_lower_case\":true}", 10 + k);
      put(directory, names[k], text);
    }
    if (i > 0) put(directory, names[0], "{}");
    sentence_config c = read_sentence(directory);
    assert_int_equal(c.max_tokens, 10 + i);
    assert_int_equal(c.lowercase, 1);
    sentence_config_free(&c);
    scratch_free(directory);
  }
}

/* ---- sentence-transformers: what is refused ---------------------------- */

typedef struct bad_sentence {
  const char *file, *text;
  bert_status status;
  const char *part;
} bad_sentence;

#define WITH_DENSE MODULES("," M(ST "Dense", "2_Dense"))
#define DENSE(more) "{\"in_features\":8,\"out_features\":4," more "}"

static const bad_sentence bad_sentences[] = {
    {"modules.json", "{}", BERT_INVALID, "/modules.json: expected an array, not an object"},
    {"modules.json", "[", BERT_INVALID, "/modules.json: byte 1"},
    {"modules.json", "[]", BERT_UNSUPPORTED, "0 modules"},
    {"modules.json", "[" TRANSFORMER "]", BERT_UNSUPPORTED, "1 modules"},
    {"modules.json", "[1,2]", BERT_INVALID, "module 0: it must be an object"},
    {"modules.json", "[{\"path\":\"\"},2]", BERT_INVALID, "with \"type\" and \"path\""},
    {"modules.json", "[{\"type\":\"" ST "Transformer\"},2]", BERT_INVALID,
     "with \"type\" and \"path\""},
    {"modules.json", "[{\"type\":1,\"path\":\"\"},2]", BERT_INVALID, "\"type\" must be a string"},
    {"modules.json", "[" TRANSFORMER "," M(ST "WeightedLayerPooling", "1_Pooling") "]",
     BERT_UNSUPPORTED, "module 1: the module \"" ST "WeightedLayerPooling\" is not supported"},
    {"modules.json", "[" M(ST "BoW", "") "," POOLING "]", BERT_UNSUPPORTED,
     "BoW\" is not supported"},
    {"modules.json", MODULES("," M(ST "CNN", "2")), BERT_UNSUPPORTED,
     "module 2: the module \"" ST "CNN\""},
    {"modules.json", MODULES("," M(ST "LSTM", "2")), BERT_UNSUPPORTED, "LSTM"},
    {"modules.json", MODULES("," M(ST "LayerNorm", "2")), BERT_IO, "/2/config.json"},
    {"modules.json", MODULES("," M("custom_st.Dense", "2")), BERT_UNSUPPORTED,
     "\"custom_st.Dense\""},
    {"modules.json", "[" M("custom_st.Transformer", "") "," POOLING "]", BERT_UNSUPPORTED,
     "custom_st"},
    {"modules.json", "[" POOLING "," TRANSFORMER "]", BERT_UNSUPPORTED,
     "not supported in this place"},
    {"modules.json", MODULES("," POOLING), BERT_UNSUPPORTED,
     "module 2: the module \"" ST "Pooling\" is not "
     "supported in this place"},
    {"modules.json", "[" TRANSFORMER "," M(ST "Normalize", "1") "]", BERT_UNSUPPORTED,
     "in this place"},
    {"modules.json", "[" M(ST "Transformer", "..") "," POOLING "]", BERT_INVALID,
     "\"..\" leads out"},
    {"modules.json", "[" M(ST "Transformer", "/etc") "," POOLING "]", BERT_INVALID,
     "\"/etc\" leads out"},
    {"modules.json", "[" TRANSFORMER "," M(ST "Pooling", "a/../../b") "]", BERT_INVALID,
     "leads out"},
    {"modules.json", "[" TRANSFORMER "," M(ST "Pooling", "a\\\\..\\\\b") "]", BERT_INVALID,
     "leads out"},
    {"modules.json", "[" TRANSFORMER "," M(ST "Pooling", "none") "]", BERT_IO,
     "/none/config.json: No such"},
    {"modules.json", MODULES("," M(ST "Dense", "none")), BERT_IO, "/none/config.json"},
    {"1_Pooling/config.json", "[]", BERT_INVALID, "/1_Pooling/config.json: expected an object"},
    {"1_Pooling/config.json", "{\"pooling_mode\":\"median\"}", BERT_UNSUPPORTED, "\"median\""},
    {"1_Pooling/config.json", "{\"pooling_mode\":1}", BERT_INVALID,
     "must be a name or an array of names"},
    {"1_Pooling/config.json", "{\"pooling_mode\":[]}", BERT_INVALID, "names no mode"},
    {"1_Pooling/config.json", "{\"pooling_mode\":[\"cls\",1]}", BERT_INVALID, "must be a name"},
    {"1_Pooling/config.json",
     "{\"pooling_mode\":[\"cls\",\"cls\",\"cls\",\"cls\",\"cls\",\"cls\",\"cls\"]}",
     BERT_UNSUPPORTED, "more than 6 pooling modes"},
    {"1_Pooling/config.json", "{\"pooling_mode_cls_token\":1}", BERT_INVALID,
     "must be true or false"},
    {"1_Pooling/config.json", "{\"pooling_mode_median_tokens\":true}", BERT_UNSUPPORTED,
     "\"pooling_mode_median_tokens\" is not supported"},
    {"1_Pooling/config.json", "{\"word_embedding_dimension\":0}", BERT_INVALID,
     "word_embedding_dimension"},
    {"1_Pooling/config.json", "{\"embedding_dimension\":\"8\"}", BERT_INVALID,
     "embedding_dimension"},
    {"1_Pooling/config.json", "{\"include_prompt\":\"no\"}", BERT_INVALID, "include_prompt"},
    {"config_sentence_transformers.json", "[]", BERT_INVALID,
     "/config_sentence_transformers.json: expected"},
    {"config_sentence_transformers.json", "{\"prompts\":[]}", BERT_INVALID,
     "\"prompts\" must be an object"},
    {"config_sentence_transformers.json", "{\"prompts\":{\"a\":1}}", BERT_INVALID,
     "the prompt \"a\" must be a string, not a number"},
    {"config_sentence_transformers.json",
     "{\"prompts\":{\"a\":\"\"},\"default_prompt_name\":\"b\"}", BERT_INVALID,
     "\"default_prompt_name\" \"b\" is none of the prompts"},
    {"config_sentence_transformers.json", "{\"default_prompt_name\":1}", BERT_INVALID,
     "default_prompt_name"},
    {"config_sentence_transformers.json", "{\"model_type\":\"SparseEncoder\"}", BERT_UNSUPPORTED,
     "\"SparseEncoder\" is not supported"},
    {"config_sentence_transformers.json", "{\"similarity_fn_name\":\"hamming\"}", BERT_UNSUPPORTED,
     "\"similarity_fn_name\" \"hamming\" is not supported"},
    {"config_sentence_transformers.json", "{\"similarity_fn_name\":1}", BERT_INVALID,
     "\"similarity_fn_name\""},
    {"config_sentence_transformers.json", "{\"truncate_dim\":4}", BERT_UNSUPPORTED,
     "\"truncate_dim\""},
    {"sentence_bert_config.json", "[]", BERT_INVALID,
     "/sentence_bert_config.json: expected an object"},
    {"sentence_bert_config.json", "{\"max_seq_length\":0}", BERT_INVALID,
     "\"max_seq_length\" must be"},
    {"sentence_bert_config.json", "{\"max_seq_length\":\"128\"}", BERT_INVALID,
     "\"max_seq_length\""},
    {"sentence_bert_config.json", "{\"do_lower_case\":0}", BERT_INVALID, "\"do_lower_case\""},
    {"sentence_bert_config.json", "{\"transformer_task\":\"fill-mask\"}", BERT_UNSUPPORTED,
     "\"fill-mask\""},
    {"sentence_bert_config.json", "{\"module_output_name\":\"scores\"}", BERT_UNSUPPORTED,
     "\"scores\""},
    {"sentence_bert_config.json",
     "{\"modality_config\":{\"text\":{\"method\":\"get_text_features\"}}}", BERT_UNSUPPORTED,
     "\"get_text_features\""},
    {"sentence_bert_config.json",
     "{\"modality_config\":{\"text\":{\"method_output_name\":\"logits\"}}}", BERT_UNSUPPORTED,
     "\"logits\""},
    {"sentence_bert_config.json", "{\"config_args\":{\"x\":1}}", BERT_UNSUPPORTED,
     "\"config_args\""},
    {"sentence_bert_config.json", "{\"processing_kwargs\":{\"text\":{}}}", BERT_UNSUPPORTED,
     "processing_kwargs"},
    {"sentence_roberta_config.json", "{\"max_seq_length\":-5}", BERT_INVALID,
     "/sentence_roberta_config.json: "},
    {"tokenizer_config.json", "[]", BERT_INVALID, "/tokenizer_config.json: expected an object"},
    {"tokenizer_config.json", "{\"model_max_length\":0}", BERT_INVALID,
     "\"model_max_length\" must be"},
    {"tokenizer_config.json", "{\"model_max_length\":\"512\"}", BERT_INVALID,
     "\"model_max_length\""},
};

static const bad_text bad_dense[] = {
    {"{}", BERT_INVALID, "\"in_features\" is missing"},
    {"{\"in_features\":8}", BERT_INVALID, "\"out_features\" is missing"},
    {"{\"in_features\":0,\"out_features\":4}", BERT_INVALID, "\"in_features\" must be"},
    {"{\"in_features\":8,\"out_features\":1048577}", BERT_INVALID, "\"out_features\" must be"},
    {"{\"in_features\":9,\"out_features\":4}", BERT_INVALID,
     "takes 9 numbers (\"in_features\"), but the module "
     "before gives 8"},
    {DENSE("\"bias\":1"), BERT_INVALID, "\"bias\""},
    {DENSE("\"activation_function\":null"), BERT_INVALID,
     "\"activation_function\" must be a string, not null"},
    {DENSE("\"activation_function\":\"torch.nn.modules.activation.Sigmoid\""), BERT_UNSUPPORTED,
     "Sigmoid"},
    {DENSE("\"activation_function\":\"Tanh\""), BERT_UNSUPPORTED, "\"Tanh\" is not supported"},
    {DENSE("\"activation_function\":\"evil.Tanh\""), BERT_UNSUPPORTED,
     "\"evil.Tanh\" is not supported"},
    {DENSE("\"use_residual\":true"), BERT_UNSUPPORTED, "\"use_residual\""},
    {DENSE("\"module_input_name\":\"token_embeddings\""), BERT_UNSUPPORTED, "\"token_embeddings\""},
    {DENSE("\"module_output_name\":\"x\""), BERT_UNSUPPORTED, "\"module_output_name\" \"x\""},
};

static void check_bad(const char *directory, bert_status expected, const char *part) {
  sentence_config c;
  bert_error error = {0};
  expect(sentence_config_read(directory, &c, &error), expected, &error, part);
  sentence_config_free(&c);
  assert_int_equal(sentence_config_read(directory, &c, NULL), expected);
  sentence_config_free(&c);
}

static void test_sentence_refuses(void **state) {
  for (size_t i = 0; i < sizeof bad_sentences / sizeof *bad_sentences; i++) {
    const bad_sentence *b = &bad_sentences[i];
    char *directory = sentence_directory();
    put(directory, b->file, b->text);
    check_bad(directory, b->status, b->part);
    scratch_free(directory);
  }
}

static void test_dense_refuses(void **state) {
  char *directory = sentence_directory();
  put(directory, "modules.json", WITH_DENSE);
  for (size_t i = 0; i < sizeof bad_dense / sizeof *bad_dense; i++) {
    put(directory, "2_Dense/config.json", bad_dense[i].text);
    check_bad(directory, bad_dense[i].status, bad_dense[i].part);
  }
  put(directory, "2_Dense/config.json", "{\"in_features\":8,\"out_features\":5}");
  put(directory, "modules.json",
      MODULES("," M(ST "Dense", "2_Dense") "," M(ST "Dense", "3_Dense")));
  check_bad(directory, BERT_INVALID,
            "/3_Dense takes 4 numbers (\"in_features\"), but the module before gives 5");
  put(directory, "1_Pooling/config.json",
      "{\"word_embedding_dimension\":8,\"pooling_mode\":[\"cls\",\"max\"]}");
  check_bad(directory, BERT_INVALID,
            "/2_Dense takes 8 numbers (\"in_features\"), but the module before gives 16");
  scratch_free(directory);
}

static void test_normalize_refuses(void **state) {
  char *directory = sentence_directory();
  put(directory, "modules.json", MODULES("," M(ST "Normalize", "2_Normalize")));
  put(directory, "2_Normalize/config.json", "{\"module_input_name\":\"sentence_embedding\"}");
  sentence_config c = read_sentence(directory);
  assert_int_equal(c.module_count, 1);
  sentence_config_free(&c);
  put(directory, "2_Normalize/config.json", "{\"module_input_name\":\"token_embeddings\"}");
  check_bad(directory, BERT_UNSUPPORTED,
            "/2_Normalize/config.json: \"module_input_name\" \"token_embeddings\"");
  scratch_free(directory);
}

/* ---- Harm -------------------------------------------------------------- */

static bert_status config_once(void *user, bert_error *error) {
  model_config c;
  return config_read(user, &c, error);
}

static bert_status sentence_once(void *user, bert_error *error) {
  sentence_config c;
  bert_status status = sentence_config_read(user, &c, error);
  sentence_config_free(&c);
  return status;
}

static void test_no_memory(void **state) {
  char path[200];
  snprintf(path, sizeof path, "%s", cls_dense);
  assert_true(faults_each(config_once, path) >= 5);
  assert_true(faults_each(sentence_once, path) >= 30);
  snprintf(path, sizeof path, "%s", minilm);
  assert_true(faults_each(sentence_once, path) >= 20);
  char *directory = scratch_new();
  put(directory, "tokenizer_config.json", "{\"model_max_length\":7}");
  assert_true(faults_each(sentence_once, directory) >= 6);
  scratch_free(directory);
}

/* Each file of a directory cut at every byte is an error. */
static void test_cut_files(void **state) {
  static const char *const files[] = {"config.json",
                                      "modules.json",
                                      "1_Pooling/config.json",
                                      "2_Dense/config.json",
                                      "config_sentence_transformers.json",
                                      "sentence_bert_config.json"};
  char *directory = scratch_copy(cls_dense);
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    size_t size;
    char *bytes = scratch_read(directory, files[i], &size);
    for (size_t cut = 0; cut < size; cut++) {
      model_config config;
      sentence_config c;
      bert_error error = {0};
      scratch_write(directory, files[i], bytes, cut);
      bert_status status = i == 0 ? config_read(directory, &config, &error)
                                  : sentence_config_read(directory, &c, &error);
      if (i > 0) sentence_config_free(&c);
      if (cut < strlen(bytes) - 1) expect(status, BERT_INVALID, &error, files[i]);
    }
    scratch_write(directory, files[i], bytes, size);
    free(bytes);
  }
  scratch_free(directory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_real_configs),
      cmocka_unit_test(test_config_defaults),
      cmocka_unit_test(test_config_activations),
      cmocka_unit_test(test_config_refuses),
      cmocka_unit_test(test_real_sentences),
      cmocka_unit_test(test_without_modules),
      cmocka_unit_test(test_pooling_modes),
      cmocka_unit_test(test_pooling_names),
      cmocka_unit_test(test_modules_in_file_order),
      cmocka_unit_test(test_dense_activations),
      cmocka_unit_test(test_prompts),
      cmocka_unit_test(test_token_limit),
      cmocka_unit_test(test_transformer_file_names),
      cmocka_unit_test(test_sentence_refuses),
      cmocka_unit_test(test_dense_refuses),
      cmocka_unit_test(test_normalize_refuses),
      cmocka_unit_test(test_no_memory),
      cmocka_unit_test(test_cut_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
