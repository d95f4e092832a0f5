/*
** test_heads.c: what the heads of checkpoints answer: scores against those of the
** transformers pipelines and of CrossEncoder, labels, the mask token, and wrong
** requests.
*/
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/golden.h"
#include "../support/scratch.h"

#define FAMILIES "tests/golden/families/"

typedef struct opened {
  bert_model *model;
  bert_encoder *encoder;
  json_document *tasks;
} opened;

/* tasks.json, or NULL. One holds a NUL in a string, which our reader refuses: it
** becomes U+0001, as nothing here looks at that string. */
static json_document *read_tasks(const char *directory) {
  json_document *document = NULL;
  bert_error error = {BERT_OK, ""};
  char *text = NULL;
  size_t size = 0;
  assert_ok(file_read(directory, "tasks.json", 1 << 20, 1, &text, &size, &error), &error);
  if (text == NULL) return NULL;
  for (char *at = text; (at = strstr(at, "\\u0000")) != NULL;) at[5] = '1';
  assert_ok(json_parse(text, size, &document, &error), &error);
  memory_free(text);
  return document;
}

static opened open_checkpoint(const char *directory) {
  opened o = {NULL, NULL, NULL};
  bert_error error = {BERT_OK, ""};
  assert_ok(bert_open(directory, NULL, &o.model, &error), &error);
  assert_ok(bert_encoder_create(o.model, &o.encoder, &error), &error);
  o.tasks = read_tasks(directory);
  return o;
}

static void close_checkpoint(opened *o) {
  json_free(o->tasks);
  bert_encoder_free(o->encoder);
  bert_close(o->model);
}

/* The scores [width] of the head for a text or pair, or for token `which`. */
static float *score(const opened *o, bert_head_kind kind, int rerank, const json_value *text,
                    const json_value *text_b, size_t which) {
  const bert_head *head = bert_find_head(o->model, kind);
  bert_error error = {BERT_OK, ""};
  bert_token_options options = {0, 1, 0};
  bert_text a = golden_text(text), b = golden_text(text_b);
  bert_tokens *tokens = NULL;
  bert_pass *pass = NULL;
  assert_non_null(head);
  float *scores = malloc((size_t)head->width * sizeof *scores);
  assert_ok(bert_tokenize(o->model, a, text_b != NULL ? &b : NULL, &options, &tokens, &error),
            &error);
  assert_ok(bert_run(o->encoder, tokens, 0, &pass, &error), &error);
  if (kind == BERT_HEAD_FILL) {
    which = 0;
    while (tokens->ids[which] != bert_mask_token(o->model)) which++;
  }
  assert_ok(bert_pass_logits(pass, kind, &which, 1, scores, &error), &error);
  bert_scores(rerank ? head->rerank : head->score, scores, (size_t)head->width, scores);
  bert_pass_free(pass);
  bert_tokens_free(tokens);
  return scores;
}

static void expect_near(double got, const json_value *expected) {
  if (!(fabs(got - expected->number) < 1e-5))
    fail_msg("%.9g instead of %.9g", got, expected->number);
}

/* ---- Scores ---------------------------------------------------------------- */

static void check_classes(const char *directory, const char *tasks) {
  opened o = open_checkpoint(directory);
  const bert_head *head = bert_find_head(o.model, BERT_HEAD_CLASSIFY);
  assert_string_equal(bert_describe(o.model)->tasks, tasks);
  for (const json_value *v = json_root(o.tasks)->first; v != NULL; v = v->next) {
    float *scores = score(&o, BERT_HEAD_CLASSIFY, 0, json_get(v, "text"), NULL, 0);
    int found = 0;
    for (const json_value *l = json_get(v, "labels")->first; l != NULL; l = l->next)
      for (int i = 0; i < head->width; i++) {
        if (!json_is(json_get(l, "label"), head->labels[i])) continue;
        expect_near((double)scores[i], json_get(l, "score"));
        found++;
      }
    assert_int_equal(found, head->width);
    free(scores);
  }
  close_checkpoint(&o);
}

static void classes_score_as_the_pipeline_has_them(void **state) {
  (void)state;
  check_classes(FAMILIES "bert-classify", "embed,classify");
  check_classes(FAMILIES "distilbert-classify", "embed,classify");
  check_classes(FAMILIES "roberta-classify", "embed,classify");
}

static void pairs_score_as_the_cross_encoder_has_them(void **state) {
  (void)state;
  opened o = open_checkpoint(FAMILIES "bert-cross");
  assert_string_equal(bert_describe(o.model)->tasks, "embed,classify,rerank");
  for (const json_value *v = json_root(o.tasks)->first; v != NULL; v = v->next) {
    float *scores =
        score(&o, BERT_HEAD_CLASSIFY, 1, json_get(v, "query"), json_get(v, "passage"), 0);
    expect_near((double)scores[0], json_get(v, "score"));
    free(scores);
  }
  close_checkpoint(&o);
}

static void check_fill(const char *directory) {
  opened o = open_checkpoint(directory);
  const bert_head *head = bert_find_head(o.model, BERT_HEAD_FILL);
  assert_string_equal(bert_describe(o.model)->tasks, "embed,fill");
  assert_null(head->labels);
  for (const json_value *v = json_root(o.tasks)->first; v != NULL; v = v->next) {
    float *scores = score(&o, BERT_HEAD_FILL, 0, json_get(v, "text"), NULL, 0);
    double least = 1;
    int above = 0;
    for (const json_value *l = json_get(v, "fill")->first; l != NULL; l = l->next) {
      expect_near((double)scores[json_get(l, "token")->integer], json_get(l, "score"));
      least = json_get(l, "score")->number;
    }
    for (int i = 0; i < head->width; i++) above += (double)scores[i] > least + 1e-5;
    assert_true(above < 5);
    free(scores);
  }
  close_checkpoint(&o);
}

static void masks_fill_as_the_pipeline_has_them(void **state) {
  (void)state;
  check_fill(FAMILIES "bert-mlm-cased");
  check_fill(FAMILIES "distilbert-mlm");
  check_fill(FAMILIES "roberta-mlm");
  check_fill(FAMILIES "modernbert-mlm");
}

/* ---- What a model says of its heads ----------------------------------------- */

static const bert_head *head_of(opened *o, const char *copy, bert_head_kind kind) {
  *o = open_checkpoint(copy);
  assert_non_null(bert_find_head(o->model, kind));
  return bert_find_head(o->model, kind);
}

static void expect_scores(const char *from, const char *to, bert_problem problem, bert_score own,
                          bert_score rerank) {
  opened o;
  char *copy = scratch_copy(FAMILIES "bert-cross");
  scratch_replace(copy, "config.json", from, to);
  const bert_head *head = head_of(&o, copy, BERT_HEAD_CLASSIFY);
  assert_int_equal(head->problem, problem);
  assert_int_equal(head->score, own);
  assert_int_equal(head->rerank, rerank);
  close_checkpoint(&o);
  scratch_free(copy);
}

static void config_says_what_makes_scores(void **state) {
  (void)state;
  const char *type = "\"model_type\"";
  expect_scores(type, type, BERT_PROBLEM_UNSAID, BERT_SCORE_SIGMOID, BERT_SCORE_SIGMOID);
  expect_scores(type, "\"problem_type\": \"regression\", \"model_type\"", BERT_PROBLEM_REGRESSION,
                BERT_SCORE_LOGIT, BERT_SCORE_SIGMOID);
  expect_scores(type, "\"problem_type\": \"multi_label_classification\", \"model_type\"",
                BERT_PROBLEM_MANY_LABELS, BERT_SCORE_SIGMOID, BERT_SCORE_SIGMOID);
  expect_scores(type,
                "\"sentence_transformers\": {\"activation_fn\": "
                "\"torch.nn.modules.linear.Identity\"}, \"model_type\"",
                BERT_PROBLEM_UNSAID, BERT_SCORE_SIGMOID, BERT_SCORE_LOGIT);
  expect_scores(type,
                "\"sbert_ce_default_activation_function\": "
                "\"torch.nn.modules.activation.Sigmoid\", \"model_type\"",
                BERT_PROBLEM_UNSAID, BERT_SCORE_SIGMOID, BERT_SCORE_SIGMOID);
}

/* As sentence-transformers 6 saves a cross-encoder. */
static void a_saved_cross_encoder_opens(void **state) {
  (void)state;
  opened o;
  char *copy = scratch_copy(FAMILIES "bert-cross");
  const char modules[] = "[{\"idx\":0,\"name\":\"0\",\"path\":\"\",\"type\":"
                         "\"sentence_transformers.base.modules.transformer.Transformer\"}]";
  const char saved[] = "{\"model_type\":\"CrossEncoder\",\"activation_fn\":"
                       "\"torch.nn.modules.linear.Identity\"}";
  const char transformer[] = "{\"transformer_task\":\"sequence-classification\","
                             "\"module_output_name\":\"scores\",\"modality_config\":{\"text\":{"
                             "\"method\":\"forward\",\"method_output_name\":\"logits\"}}}";
  scratch_write(copy, "modules.json", modules, strlen(modules));
  scratch_write(copy, "config_sentence_transformers.json", saved, strlen(saved));
  scratch_write(copy, "sentence_bert_config.json", transformer, strlen(transformer));
  const bert_head *head = head_of(&o, copy, BERT_HEAD_CLASSIFY);
  assert_int_equal(head->rerank, BERT_SCORE_LOGIT);
  assert_string_equal(bert_describe(o.model)->pooling, "mean");
  assert_int_equal(bert_describe(o.model)->max_tokens, 64);
  close_checkpoint(&o);
  scratch_replace(copy, "config_sentence_transformers.json", "\"activation_fn\"",
                  "\"prompts\":{\"q\":\"find: \"},\"default_prompt_name\":\"q\",\"activation_fn\"");
  bert_error error = {BERT_OK, ""};
  assert_int_equal(bert_open(copy, NULL, &o.model, &error), BERT_UNSUPPORTED);
  assert_non_null(strstr(error.text, "\"default_prompt_name\" of a cross-encoder"));
  scratch_free(copy);
}

static void labels_come_in_the_order_of_their_numbers(void **state) {
  (void)state;
  opened o;
  char *copy = scratch_copy(FAMILIES "bert-classify");
  scratch_replace(copy, "config.json", "\"0\": \"negative\"", "\"2\": \"last\"");
  scratch_replace(copy, "config.json", "\"2\": \"positive\"", "\"0\": \"first\"");
  const bert_head *head = head_of(&o, copy, BERT_HEAD_CLASSIFY);
  assert_int_equal(head->width, 3);
  assert_string_equal(head->labels[0], "first");
  assert_string_equal(head->labels[1], "neutral");
  assert_string_equal(head->labels[2], "last");
  close_checkpoint(&o);
  scratch_free(copy);
  head = head_of(&o, FAMILIES "roberta-classify", BERT_HEAD_CLASSIFY);
  assert_string_equal(head->labels[1], "LABEL_1"); /* the file has none */
  close_checkpoint(&o);
}

static void mask_tokens_are_found(void **state) {
  (void)state;
  static const struct {
    const char *name, *token;
  } masks[] = {{"bert-mlm-cased", "[MASK]"},
               {"roberta-mlm", "<mask>"},
               {"modernbert-mlm", "[MASK]"},
               {"camembert-mlm", "[MASK]"}};
  for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
    char directory[200];
    snprintf(directory, sizeof directory, FAMILIES "%s", masks[i].name);
    opened o = open_checkpoint(directory);
    bert_text token = bert_token_string(o.model, bert_mask_token(o.model));
    assert_int_equal(token.size, strlen(masks[i].token));
    assert_memory_equal(token.data, masks[i].token, token.size);
    close_checkpoint(&o);
  }
  opened plain = open_checkpoint(FAMILIES "bert-mean");
  assert_int_equal(bert_mask_token(plain.model), -1);
  assert_string_equal(bert_describe(plain.model)->tasks, "embed");
  close_checkpoint(&plain);
}

/* ---- Wrong requests ----------------------------------------------------------- */

static void wrong_requests_are_errors(void **state) {
  (void)state;
  opened o = open_checkpoint(FAMILIES "bert-ner-cased");
  bert_error error = {BERT_OK, ""};
  bert_text text = {"time", 4};
  bert_tokens *tokens = NULL;
  bert_pass *pass = NULL;
  float logits[5];
  size_t beyond = 3;
  assert_string_equal(bert_describe(o.model)->tasks, "embed,entities");
  assert_null(bert_find_head(o.model, BERT_HEAD_CLASSIFY));
  assert_null(bert_find_head(o.model, (bert_head_kind)-1));
  assert_null(bert_find_head(o.model, (bert_head_kind)3));
  assert_ok(bert_tokenize(o.model, text, NULL, NULL, &tokens, &error), &error);
  assert_ok(bert_run(o.encoder, tokens, 0, &pass, &error), &error);
  assert_int_equal(bert_pass_tokens(pass), 3);
  assert_int_equal(bert_pass_logits(pass, BERT_HEAD_FILL, NULL, 1, logits, &error), BERT_ARGUMENT);
  assert_non_null(strstr(error.text, "its tasks are embed,entities"));
  assert_int_equal(bert_pass_logits(pass, BERT_HEAD_ENTITIES, &beyond, 1, logits, &error),
                   BERT_ARGUMENT);
  assert_non_null(strstr(error.text, "there is no token 3"));
  assert_ok(bert_pass_logits(pass, BERT_HEAD_ENTITIES, NULL, 0, logits, &error), &error);
  bert_pass_free(pass);
  bert_tokens_free(tokens);
  close_checkpoint(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(classes_score_as_the_pipeline_has_them),
      cmocka_unit_test(pairs_score_as_the_cross_encoder_has_them),
      cmocka_unit_test(masks_fill_as_the_pipeline_has_them),
      cmocka_unit_test(config_says_what_makes_scores),
      cmocka_unit_test(a_saved_cross_encoder_opens),
      cmocka_unit_test(labels_come_in_the_order_of_their_numbers),
      cmocka_unit_test(mask_tokens_are_found),
      cmocka_unit_test(wrong_requests_are_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
