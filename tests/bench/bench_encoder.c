/*
** bench_encoder.c: the C library without SQL.
**
**   bench_encoder tokenize KIND DIRECTORY TEXTS     the tokenizer of a directory
**                                                   over a file of lines, one thread
**   bench_encoder capture THREADS MODEL TEXTS       a pass that hands out the
**                                                   attention of one layer beside one
**                                                   that does not
**
** A tokenizer is measured alone, without a model, so that one of any kind can be.
*/
#include "bench.h"

#include "../../encoder/bert.h"
#include "../../encoder/tokenizers/tokenizers.h"

#include <stdlib.h>
#include <string.h>

enum { PASSES = 3, WARMUP_SHARE = 10, CAPTURED = 64, CAPTURE_LAYER = 3 };

static void check(bert_status status, const bert_error *error) {
  if (status != BERT_OK) die("%s", error->text);
}

/* ---- Tokenizing -------------------------------------------------------- */

typedef struct counts {
  size_t bytes, tokens;
  uint64_t digest; /* of the ids, to tell whether another tokenizer found the same */
} counts;

static void tokenize(const tokenizer *t, char *const *lines, size_t count, counts *c) {
  for (size_t i = 0; i < count; i++) {
    bert_error error = {0};
    bert_tokens *tokens = NULL;
    bert_text text = {lines[i], strlen(lines[i])};
    check(tokenizer_encode(t, text, NULL, SIZE_MAX, 0, &tokens, &error), &error);
    c->bytes += text.size;
    c->tokens += tokens->count;
    for (size_t k = 0; k < tokens->count; k++) /* FNV-1a, a token at a time */
      c->digest = (c->digest ^ (uint32_t)tokens->ids[k]) * 0x100000001b3u;
    tokens_free(tokens);
  }
}

static void measure_tokenize(const char *kind, const char *directory, const char *path) {
  bert_error error = {0};
  tokenizer *t = NULL;
  size_t count;
  double seconds[PASSES];
  counts c = {0};
  char **lines = read_lines(path, &count);
  check(tokenizer_open(directory, 0, &t, &error), &error);
  tokenize(t, lines, count / WARMUP_SHARE, &c);
  for (int pass = 0; pass < PASSES; pass++) {
    c = (counts){0, 0, 0xcbf29ce484222325u};
    double begin = seconds_now();
    tokenize(t, lines, count, &c);
    seconds[pass] = seconds_now() - begin;
  }
  printf("{\"engine\":\"bertsql\",\"measure\":\"tokenize\",\"kind\":\"%s\",\"vocabulary\":%d", kind,
         tokenizer_vocab_size(t));
  printf(",\"seconds\":%.6f,\"bytes\":%zu,\"tokens\":%zu,\"digest\":\"%016llx\"}\n",
         quantile(seconds, PASSES, 0.5), c.bytes, c.tokens, (unsigned long long)c.digest);
  tokenizer_close(t);
}

/* ---- Attention --------------------------------------------------------- */

static double seconds_of_plain(bert_encoder *encoder, const bert_tokens *tokens) {
  bert_error error = {0};
  bert_pass *pass = NULL;
  double begin = seconds_now();
  check(bert_run(encoder, tokens, 0, &pass, &error), &error);
  double seconds = seconds_now() - begin;
  bert_pass_free(pass);
  return seconds;
}

/* weights: room for [tokens, tokens], one head at a time. */
static double seconds_of_capture(bert_encoder *encoder, const bert_tokens *tokens, int heads,
                                 float *weights) {
  bert_error error = {0};
  bert_pass *pass = NULL;
  double begin = seconds_now();
  check(bert_run(encoder, tokens, BERT_KEEP_ATTENTION, &pass, &error), &error);
  for (int head = 0; head < heads; head++)
    check(bert_pass_attention(pass, CAPTURE_LAYER, head, weights, &error), &error);
  double seconds = seconds_now() - begin;
  bert_pass_free(pass);
  return seconds;
}

/* Both passes of a text come one after the other, either first every other time. */
static void measure_capture(int threads, const char *source, const char *path) {
  bert_error error = {0};
  bert_model *model = NULL;
  bert_encoder *encoder = NULL;
  bert_token_options cut = {.only_used = 1};
  double plain = 0, capture = 0;
  size_t count, total = 0;
  char **lines = read_lines(path, &count);
  check(bert_open(source, NULL, &model, &error), &error);
  check(bert_encoder_create(model, &encoder, &error), &error);
  bert_encoder_set_threads(encoder, threads);
  int heads = bert_describe(model)->heads, longest = bert_describe(model)->max_tokens;
  float *weights = malloc(sizeof *weights * (size_t)longest * (size_t)longest);
  if (weights == NULL) die("out of memory");
  size_t texts = count < CAPTURED ? count : CAPTURED, warm = texts < 4 ? texts : 4;
  for (size_t i = 0; i < texts + warm; i++) {
    const char *line = lines[i % texts];
    bert_tokens *tokens = NULL;
    check(bert_tokenize(model, (bert_text){line, strlen(line)}, NULL, &cut, &tokens, &error),
          &error);
    double first = i % 2 == 0 ? seconds_of_plain(encoder, tokens) : 0;
    double captured = seconds_of_capture(encoder, tokens, heads, weights);
    double alone = i % 2 == 0 ? first : seconds_of_plain(encoder, tokens);
    if (i >= warm) { /* the first ones wake threads and memory */
      plain += alone;
      capture += captured;
      total += tokens->used_count;
    }
    bert_tokens_free(tokens);
  }
  printf("{\"engine\":\"bertsql\",\"measure\":\"capture\",\"threads\":%d,\"seconds\":%.6f", threads,
         capture);
  printf(",\"plain\":%.6f,\"texts\":%zu,\"tokens\":%zu}\n", plain, texts, total);
  free(weights);
  bert_encoder_free(encoder);
  bert_close(model);
}

int main(int argc, char **argv) {
  if (argc == 5 && strcmp(argv[1], "tokenize") == 0)
    measure_tokenize(argv[2], argv[3], argv[4]);
  else if (argc == 5 && strcmp(argv[1], "capture") == 0 && atoi(argv[2]) > 0)
    measure_capture(atoi(argv[2]), argv[3], argv[4]);
  else
    die("usage: bench_encoder tokenize KIND DIRECTORY TEXTS; "
        "bench_encoder capture THREADS MODEL TEXTS");
  return 0;
}
