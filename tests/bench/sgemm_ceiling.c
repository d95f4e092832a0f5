/*
** sgemm_ceiling.c THREADS [SECONDS]: how fast OpenBLAS does nothing but the matrix
** products of all-MiniLM-L6-v2, 1024 tokens at once. An encoder that used it for
** its products and needed no time for all the rest would be as fast as this.
**
** All products of all six layers run in their order, each with weights of its
** own, as in a forward pass: 42 MB that no second-level cache holds. The figure
** is all operations by all seconds, and of about as many seconds as bulk work takes
** beside it: the shorter one would be the luckier where others slow the machine now and then.
** Attention's own products are left out: they are of another kind, and the
** ceiling only gets higher.
*/
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS = 1024, LAYERS = 6, HIDDEN = 384, INTERMEDIATE = 1536, SHAPES = 4 };

/* Output [ROWS, out] = input [ROWS, in] times weights [out, in] transposed. */
typedef struct shape {
  const char *name;
  int in, out;
} shape;

static const shape shapes[SHAPES] = {{"query, key, value", HIDDEN, 3 * HIDDEN},
                                     {"attention output", HIDDEN, HIDDEN},
                                     {"intermediate", HIDDEN, INTERMEDIATE},
                                     {"output", INTERMEDIATE, HIDDEN}};

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Small numbers that differ, so that no product is special. */
static float *numbers(size_t count) {
  float *x = aligned_alloc(64, (count * sizeof *x + 63) / 64 * 64);
  if (x == NULL) {
    fputs("sgemm_ceiling: out of memory\n", stderr);
    exit(1);
  }
  for (size_t i = 0; i < count; i++) x[i] = (float)((i * 7919) % 1000) * 1e-3f - 0.5f;
  return x;
}

/* One forward pass's products; adds the seconds of each shape to seconds[SHAPES]. */
static void pass(float *weights[LAYERS][SHAPES], const float *input, float *output,
                 double *seconds) {
  for (int layer = 0; layer < LAYERS; layer++) {
    for (int i = 0; i < SHAPES; i++) {
      const shape *s = &shapes[i];
      double begin = seconds_now();
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, ROWS, s->out, s->in, 1, input, s->in,
                  weights[layer][i], s->in, 0, output, s->out);
      seconds[i] += seconds_now() - begin;
    }
  }
}

static double operations(const shape *s) { /* of one pass */
  return 2.0 * LAYERS * ROWS * s->in * s->out;
}

/* Passes for at least so many seconds; those of each shape are added to by_shape[SHAPES]. */
static int passes(double at_least, float *weights[LAYERS][SHAPES], const float *input,
                  float *output, double *by_shape) {
  int count = 0;
  for (double begin = seconds_now(); seconds_now() - begin < at_least || count == 0; count++)
    pass(weights, input, output, by_shape);
  return count;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
  double at_least = argc > 2 ? strtod(argv[2], NULL) : 4;
  float *weights[LAYERS][SHAPES];
  double by_shape[SHAPES] = {0}, seconds = 0, all_operations = 0;
  if (threads < 1 || argc > 3) {
    fputs("usage: sgemm_ceiling THREADS [SECONDS]\n", stderr);
    return 1;
  }
  float *input = numbers((size_t)ROWS * INTERMEDIATE),
        *output = numbers((size_t)ROWS * INTERMEDIATE);
  for (int layer = 0; layer < LAYERS; layer++)
    for (int i = 0; i < SHAPES; i++)
      weights[layer][i] = numbers((size_t)shapes[i].in * (size_t)shapes[i].out);
  openblas_set_num_threads(threads);
  pass(weights, input, output, (double[SHAPES]){0}); /* wakes the threads */
  int count = passes(at_least, weights, input, output, by_shape);
  printf("{\"engine\":\"sgemm\",\"measure\":\"ceiling\",\"threads\":%d,\"rows\":%d,\"shapes\":{",
         threads, ROWS);
  for (int i = 0; i < SHAPES; i++) {
    all_operations += count * operations(&shapes[i]);
    seconds += by_shape[i];
    printf("%s\"%s\":%.1f", i ? "," : "", shapes[i].name,
           1e-9 * count * operations(&shapes[i]) / by_shape[i]);
  }
  printf("},\"gflops\":%.1f,\"tokens_per_second\":%.1f,\"core\":\"%s\"}\n",
         1e-9 * all_operations / seconds, count * ROWS / seconds, openblas_get_corename());
  return 0;
}
