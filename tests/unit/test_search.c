/*
** test_search.c: blocks of quantized vectors, the bounds that follow from them,
** and that a search by bounds finds what a plain scan finds, in its order.
*/
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dice.h"
#include "encoder/kernels/kernels.h"
#include "encoder/search/search.h"
#include "faults.h"

static const search_metric metrics[] = {SEARCH_COSINE, SEARCH_L2, SEARCH_DOT};
enum { METRICS = 3 };

/* In [-1, 1); xorshift64*, Marsaglia 2003 and Vigna 2016. */
static double uniform(void) {
  static uint64_t state = 88172645463325252u;
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (double)(int64_t)(state * 2685821657736338717u) * 0x1p-63;
}

/* About normal: its tails do not matter here. */
static double normal(void) {
  double sum = 0;
  for (int i = 0; i < 6; i++) sum += uniform();
  return sum / sqrt(2);
}

static void *take(size_t bytes) {
  void *block = malloc(bytes > 0 ? bytes : 1);
  assert_non_null(block);
  return block;
}

/* ---- Vectors of many kinds ------------------------------------------------ */

static float clipped(double x) {
  return x > (double)FLT_MAX ? FLT_MAX : x < -(double)FLT_MAX ? -FLT_MAX : (float)x;
}

/* Fills x[dim] with a vector of a kind; `near` [dim] is what some are close to. */
typedef void fill(float *x, const float *near, size_t dim);

static void fill_normal(float *x, const float *near, size_t dim) {
  for (size_t j = 0; j < dim; j++) x[j] = (float)normal();
}
static void fill_zero(float *x, const float *near, size_t dim) {
  memset(x, 0, dim * sizeof *x);
}
static void fill_constant(float *x, const float *near, size_t dim) {
  for (size_t j = 0; j < dim; j++) x[j] = 0.7f;
}
static void fill_same(float *x, const float *near, size_t dim) {
  memcpy(x, near, dim * sizeof *x);
}
static void fill_opposite(float *x, const float *near, size_t dim) {
  for (size_t j = 0; j < dim; j++) x[j] = -near[j];
}
static void fill_longer(float *x, const float *near, size_t dim) {
  for (size_t j = 0; j < dim; j++) x[j] = clipped(3.3 * (double)near[j]);
}
static void fill_close(float *x, const float *near, size_t dim) {
  for (size_t j = 0; j < dim; j++) x[j] = clipped((double)near[j] * (1 + 1e-4 * uniform()));
}
static void fill_one_step(float *x, const float *near, size_t dim) {
  for (size_t j = 0; j < dim; j++) x[j] = near[j];
  x[dim / 2] = nextafterf(near[dim / 2], 0);
}
static void fill_axis(float *x, const float *near, size_t dim) {
  fill_zero(x, near, dim);
  x[dim / 3] = -2.5f;
}
static void fill_spike(float *x, const float *near, size_t dim) {
  fill_normal(x, near, dim);
  x[dim / 3] = 1e4f;
}
static void fill_tiny(float *x, const float *near, size_t dim) {
  for (size_t j = 0; j < dim; j++) x[j] = (float)(1e-37 * normal());
}
static void fill_denormal(float *x, const float *near, size_t dim) {
  for (size_t j = 0; j < dim; j++) x[j] = (float)(1e-43 * normal());
}
static void fill_smallest(float *x, const float *near, size_t dim) {
  for (size_t j = 0; j < dim; j++) x[j] = j % 2 ? -FLT_TRUE_MIN : FLT_TRUE_MIN;
}
static void fill_huge(float *x, const float *near, size_t dim) {
  for (size_t j = 0; j < dim; j++) x[j] = (float)(1e30 * normal());
}
static void fill_largest(float *x, const float *near, size_t dim) {
  for (size_t j = 0; j < dim; j++) x[j] = uniform() > 0 ? FLT_MAX : -FLT_MAX;
}
static void fill_all_sizes(float *x, const float *near, size_t dim) {
  for (size_t j = 0; j < dim; j++) x[j] = clipped(normal() * exp(90 * uniform()));
}
/* Half way between codes: the most that quantizing can lose, all on one side. */
static void fill_halves(float *x, const float *near, size_t dim) {
  for (size_t j = 0; j < dim; j++) x[j] = (float)((int)(60 * uniform()) + 0.499) / 127;
  x[0] = 1;
}
/* The error lies along `near`. */
static void fill_biased(float *x, const float *near, size_t dim) {
  for (size_t j = 0; j < dim; j++)
    x[j] = (float)((int)(60 * uniform()) + (near[j] > 0 ? 0.499 : -0.499)) / 127;
  x[0] = 1;
}

static fill *const fills[] = {
    fill_normal,   fill_zero,     fill_constant, fill_same,      fill_opposite, fill_longer,
    fill_close,    fill_one_step, fill_axis,     fill_spike,     fill_tiny,     fill_denormal,
    fill_smallest, fill_huge,     fill_largest,  fill_all_sizes, fill_halves,   fill_biased,
};
enum { FILLS = sizeof fills / sizeof *fills };

static void *block_of(search_metric metric, const float *x, size_t count, size_t dim,
                      search_block *view) {
  bert_error error = {BERT_OK, ""};
  uint64_t size = search_block_size(count, dim);
  void *block = take(size);
  memset(block, 0xAB, size);
  search_block_begin(block, metric, count, dim);
  for (size_t i = 0; i < count; i++)
    search_block_set(block, i, (int64_t)i - 3, INT64_MIN + (int64_t)i, x + i * dim);
  assert_int_equal(search_block_view(block, size, metric, dim, view, &error), BERT_OK);
  return block;
}

/* ---- Bounds ---------------------------------------------------------------- */

static void fail_bound(search_metric metric, size_t dim, size_t query, size_t i, const char *set,
                       double bound, double distance) {
  fail_msg("metric %d, dim %zu, query %zu, vector %zu, %s: bound %.17g above distance %.17g",
           (int)metric, dim, query, i, set, bound, distance);
}

/* Scans with every set and sees that the bounds are below and the same. */
static void check_query(search_metric metric, const float *q, const float *x, size_t count,
                        size_t dim, const search_block *view, size_t number) {
  const char *before = kernels_current()->name;
  search_query *query;
  bert_error error = {BERT_OK, ""};
  float *bounds = take(count * sizeof *bounds), *first = take(count * sizeof *first);
  int compared = 0;
  bert_status status = search_query_make(metric, q, dim, &query, &error);
  assert_int_equal(status, BERT_OK);
  for (const kernels *const *set = kernels_all(); *set != NULL; set++) {
    if ((*set)->float32_of != NULL || !kernels_choose((*set)->name)) continue;
    for (size_t i = 0; i < count; i++) bounds[i] = NAN;
    search_scan(query, view, 1, 1, bounds);
    for (size_t i = 0; i < count; i++) {
      double distance = search_distance(metric, q, x + i * dim, dim);
      if (isnan(bounds[i]) || (!isnan(distance) && (double)bounds[i] > distance))
        fail_bound(metric, dim, number, i, (*set)->name, (double)bounds[i], distance);
    }
    if (compared++ > 0) assert_memory_equal(bounds, first, count * sizeof *bounds);
    memcpy(first, bounds, count * sizeof *bounds);
  }
  kernels_choose(before);
  search_query_free(query);
  free(bounds);
  free(first);
}

/* Every kind of query against every kind of vector. */
static void check_dim(size_t dim, size_t repeat) {
  size_t count = FILLS * repeat;
  float *near = take(dim * sizeof *near), *q = take(dim * sizeof *q);
  float *x = take(count * dim * sizeof *x);
  for (size_t number = 0; number < FILLS; number++) {
    fill_normal(near, near, dim);
    fills[number](q, near, dim);
    for (size_t i = 0; i < count; i++) fills[i % FILLS](x + i * dim, i / FILLS % 2 ? near : q, dim);
    for (size_t m = 0; m < METRICS; m++) {
      search_block view;
      if (metrics[m] == SEARCH_COSINE && fills[number] == fill_zero) continue;
      void *block = block_of(metrics[m], x, count, dim, &view);
      check_query(metrics[m], q, x, count, dim, &view, number);
      free(block);
    }
  }
  free(near);
  free(q);
  free(x);
}

static void bounds_are_never_above(void **state) {
  size_t few = (size_t)dice_size(1, 9); /* fewer sizes under valgrind */
  for (size_t dim = 1; dim <= 1100; dim += few * (dim < 70 ? 1 : 37)) check_dim(dim, 2);
  check_dim(384, (size_t)dice_size(8, 1));
  check_dim(768, (size_t)dice_size(4, 1));
}

/* Few codes are left for a query where many products are summed. */
static void bounds_of_long_vectors(void **state) {
  check_dim(4096, 2);
  check_dim((size_t)dice_size(70001, 9001), 1);
}

/* What was lost lies along the query, so that the product is as large as the bound
** says, and is nearly 0, so that the float nearest to the bound is very close: the
** last bit of an error that was not rounded up would show. */
static void the_last_bit_is_on_the_safe_side(void **state) {
  enum { DIM = 65, CASES = 2000 };
  float q[DIM], x[DIM];
  for (int i = 0; i < dice_rounds(CASES, 100); i++) {
    double rest = 29.0 / 64 + 1e-4 * uniform();
    int sum = 0; /* of q[j] codes[j]; with the rests it comes to nearly 0 */
    for (int j = 0; j < DIM; j++) {
      int code = j == 0 ? 127 : (int)(20 * uniform());
      q[j] = j == 0 ? 0 : uniform() > 0 ? 1 : -1; /* number 0 only sets the scale */
      if (j == DIM - 1) code = (int)(-29 - sum) * (int)q[j];
      if (abs(code) > 126 && j > 0) code = 0; /* then it is not so close */
      sum += (int)q[j] * code;
      x[j] = (float)((code + (j > 0 ? rest * (double)q[j] : 0)) / 128);
    }
    search_block view;
    void *block = block_of(SEARCH_DOT, x, 1, DIM, &view);
    check_query(SEARCH_DOT, q, x, 1, DIM, &view, (size_t)i);
    free(block);
  }
}

/* How far below: for directions spread evenly, as the README says. */
static void bounds_are_tight(void **state) {
  enum { COUNT = 2000, DIM = 384 };
  float *x = take((size_t)COUNT * DIM * sizeof *x), *bounds = take(COUNT * sizeof *bounds);
  for (size_t i = 0; i < (size_t)COUNT * DIM; i++) x[i] = (float)normal();
  search_block view;
  search_query *query;
  void *block = block_of(SEARCH_COSINE, x, COUNT, DIM, &view);
  double sum = 0, most = 0;
  assert_int_equal(search_query_make(SEARCH_COSINE, x, DIM, &query, NULL), BERT_OK);
  search_scan(query, &view, 1, 1, bounds);
  for (size_t i = 0; i < COUNT; i++) {
    double gap = search_distance(SEARCH_COSINE, x, x + i * DIM, DIM) - (double)bounds[i];
    sum += gap;
    if (gap > most) most = gap;
  }
  print_message("    gap of cosine bounds: mean %.5f, largest %.5f\n", sum / COUNT, most);
  assert_true(sum / COUNT < 0.009);
  assert_true(most < 0.015);
  search_query_free(query);
  free(block);
  free(x);
  free(bounds);
}

/* ---- Blocks ---------------------------------------------------------------- */

static void blocks_have_sizes(void **state) {
  assert_int_equal(search_block_size(0, 384), 16);
  assert_int_equal(search_block_size(3, 5), 16 + 3 * (28 + 5));
  assert_true(search_block_size(SIZE_MAX, 1) == UINT64_MAX);
  assert_true(search_block_size(1, SIZE_MAX) == UINT64_MAX);
  assert_true(search_block_size(UINT32_MAX, UINT32_MAX) == UINT64_MAX);
}

/* The layout of search.h, byte by byte. */
static void blocks_have_a_layout(void **state) {
  static const unsigned char want[] = {
      'b', 'q', 'b', '1',  1,   0,   0,   0,   1, 0, 0, 0, 2, 0, 0, 0, /* l2, 1 x 2 */
      254, 255, 255, 255,  255, 255, 255, 255, 8, 7, 6, 5, 4, 3, 2, 1, /* id, row */
      0,   0,   0,   0x40, 0,   0,   0,   0,                           /* scale 2, error 0 */
  };
  static const float x[] = {254, -2};
  unsigned char block[64];
  uint64_t size = search_block_size(1, 2);
  search_block_begin(block, SEARCH_L2, 1, 2);
  search_block_set(block, 0, -2, 0x0102030405060708, x);
  assert_memory_equal(block, want, sizeof want);
  assert_int_equal(size, sizeof want + 4 + 2);
  assert_int_equal((int8_t)block[size - 2], 127);
  assert_int_equal((int8_t)block[size - 1], -1);
  search_block view;
  assert_int_equal(search_block_view(block, size, SEARCH_L2, 2, &view, NULL), BERT_OK);
  assert_true(search_block_id(&view, 0) == -2);
  assert_true(search_block_row(&view, 0) == 0x0102030405060708);
  double norm = (double)search_block_entry(&view, 0).norm;
  assert_true(norm >= sqrt(254.0 * 254 + 4) && norm < 254.01);
}

/* Stored blocks are compared with blocks made anew: what is stored must stay what
** is made, on every machine. Whoever changes the arithmetic changes the magic. */
static void blocks_have_the_same_bytes_everywhere(void **state) {
  enum { COUNT = 200, DIM = 131 };
  static const char *const want[METRICS] = {"e68120b959887029394aa79668266bdc",
                                            "aa88dd932d58269a787678bc09f2a697",
                                            "0d116ac932d55420cd873388bcfd5f4f"};
  float *x = take((size_t)COUNT * DIM * sizeof *x);
  uint32_t number = 1; /* a sequence of its own: Numerical Recipes' generator */
  for (size_t i = 0; i < (size_t)COUNT * DIM; i++) {
    number = number * 1664525u + 1013904223u;
    x[i] = (float)((int32_t)number >> 8) * 0x1p-23f;
  }
  for (size_t m = 0; m < METRICS; m++) {
    search_block view;
    unsigned char digest[DIGEST_BYTES];
    char text[2 * DIGEST_BYTES + 1];
    void *block = block_of(metrics[m], x, COUNT, DIM, &view);
    digest_bytes(block, (size_t)search_block_size(COUNT, DIM), digest);
    for (size_t i = 0; i < DIGEST_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(text, want[m]);
    free(block);
  }
  free(x);
}

static void expect_refused(const void *bytes, uint64_t size, search_metric metric, size_t dim,
                           const char *part) {
  search_block view;
  bert_error error = {BERT_OK, ""};
  assert_int_equal(search_block_view(bytes, size, metric, dim, &view, &error), BERT_INVALID);
  if (strstr(error.text, part) == NULL) fail_msg("\"%s\" does not say \"%s\"", error.text, part);
}

static void hostile_headers_are_refused(void **state) {
  float x[3 * 5];
  search_block view;
  for (size_t i = 0; i < 15; i++) x[i] = (float)normal();
  unsigned char *block = block_of(SEARCH_DOT, x, 3, 5, &view);
  uint64_t size = search_block_size(3, 5);
  for (uint64_t cut = 0; cut < size; cut++) {
    void *exact = take(cut); /* so that a sanitizer sees what is read beyond */
    memcpy(exact, block, cut);
    expect_refused(exact, cut, SEARCH_DOT, 5, "block of");
    free(exact);
  }
  expect_refused(block, size + 1, SEARCH_DOT, 5, "3 vectors of 5");
  expect_refused(block, size, SEARCH_L2, 5, "metric 2");
  expect_refused(block, size, SEARCH_DOT, 6, "5 numbers, not 6");
  memset(block + 8, 0xFF, 8); /* count and dim */
  expect_refused(block, size, SEARCH_DOT, 5, "4294967295 numbers");
  expect_refused(block, size, SEARCH_DOT, UINT32_MAX, "4294967295 vectors");
  block[0] = 'x';
  expect_refused(block, size, SEARCH_DOT, 5, "bqb1");
  free(block);
}

/* Whatever stands in a block, a scan ends and gives no NaN; entries whose parts
** are not finite are always visited. At an odd address, too. */
static void hostile_entries_harm_nothing(void **state) {
  enum { COUNT = 300, DIM = 33 };
  uint64_t size = search_block_size(COUNT, DIM);
  unsigned char *room = take(size + 1), *block = room + 1;
  float q[DIM], bounds[COUNT];
  for (size_t j = 0; j < DIM; j++) q[j] = (float)(1e38 * uniform());
  for (int round = 0; round < dice_rounds(200, 10); round++) {
    for (uint64_t i = 0; i < size; i++) block[i] = (unsigned char)(128 + 128 * uniform());
    if (round % 4 == 0) memset(block + size - COUNT * DIM, 0x80, COUNT * DIM);
    search_metric metric = metrics[round % METRICS];
    search_block_begin(block, metric, COUNT, DIM);
    search_block view;
    search_query *query;
    assert_int_equal(search_block_view(block, size, metric, DIM, &view, NULL), BERT_OK);
    assert_int_equal(search_query_make(metric, q, DIM, &query, NULL), BERT_OK);
    search_scan(query, &view, 1, 1, bounds);
    for (size_t i = 0; i < COUNT; i++) {
      search_entry e = search_block_entry(&view, i);
      assert_false(isnan(bounds[i]));
      if (!isfinite(e.scale) || !isfinite(e.error) || !isfinite(e.norm))
        assert_true(bounds[i] == -INFINITY);
    }
    search_query_free(query);
  }
  free(room);
}

/* Without direction, or not finite: always visited. Zeros are exact elsewhere. */
static void odd_vectors_are_always_visited(void **state) {
  static const float x[][2] = {{0, 0}, {NAN, 1}, {1, INFINITY}, {-INFINITY, NAN}};
  static const float q[2] = {3, 4};
  for (size_t m = 0; m < METRICS; m++) {
    search_block view;
    search_query *query;
    float bounds[4];
    void *block = block_of(metrics[m], &x[0][0], 4, 2, &view);
    assert_int_equal(search_query_make(metrics[m], q, 2, &query, NULL), BERT_OK);
    search_scan(query, &view, 1, 1, bounds);
    for (size_t i = 1; i < 4; i++) assert_true(bounds[i] == -INFINITY);
    if (metrics[m] == SEARCH_COSINE) assert_true(bounds[0] == -INFINITY);
    if (metrics[m] == SEARCH_L2) assert_true(bounds[0] <= 5 && bounds[0] > 4.99f);
    if (metrics[m] == SEARCH_DOT) assert_true(bounds[0] <= 0 && bounds[0] > -0.01f);
    search_query_free(query);
    free(block);
  }
}

/* ---- Queries ---------------------------------------------------------------- */

static void queries_are_checked(void **state) {
  static const float zero[2] = {0, 0}, bad[2] = {1, NAN}, large[2] = {INFINITY, 1};
  search_query *query;
  bert_error error = {BERT_OK, ""};
  assert_int_equal(search_query_make(SEARCH_L2, bad, 2, &query, &error), BERT_ARGUMENT);
  assert_non_null(strstr(error.text, "number 1 "));
  assert_null(query);
  assert_int_equal(search_query_make(SEARCH_DOT, large, 2, &query, &error), BERT_ARGUMENT);
  assert_int_equal(search_query_make(SEARCH_COSINE, zero, 2, &query, &error), BERT_ARGUMENT);
  assert_non_null(strstr(error.text, "no direction"));
  assert_int_equal(search_query_make(SEARCH_L2, zero, 2, &query, &error), BERT_OK);
  search_query_free(query);
  search_query_free(NULL);
}

static bert_status make_and_free(void *user, bert_error *error) {
  static const float q[3] = {1, 2, 3};
  search_query *query;
  bert_status status = search_query_make(SEARCH_COSINE, q, 3, &query, error);
  search_query_free(query);
  return status;
}

static void memory_may_run_out(void **state) {
  assert_int_equal(faults_each(make_and_free, NULL), 1);
}

/* ---- Selecting -------------------------------------------------------------- */

typedef struct ranked {
  double distance;
  size_t index;
} ranked;

static int by_rank(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

/* All bounds, `want` at a time, come in the order of a sort. */
static void selects_in_order(void **state) {
  enum { MOST = 700 };
  static const size_t wants[] = {1, 2, 3, 7, 64, MOST - 1, MOST, MOST + 5};
  float bounds[MOST];
  ranked sorted[MOST];
  size_t picked[MOST + 5];
  for (size_t count = 0; count <= MOST; count = count * 2 + 1) {
    for (size_t i = 0; i < count; i++) {
      bounds[i] = i % 5 == 0 ? -INFINITY : (float)(int)(20 * uniform()); /* many are equal */
      sorted[i] = (ranked){(double)bounds[i], i};
    }
    qsort(sorted, count, sizeof *sorted, by_rank);
    for (size_t w = 0; w < sizeof wants / sizeof *wants; w++) {
      float after = -INFINITY;
      size_t after_index = SIZE_MAX, seen = 0, got;
      while ((got = search_select(bounds, count, after, after_index, wants[w], picked)) > 0) {
        for (size_t i = 0; i < got; i++) assert_int_equal(picked[i], sorted[seen + i].index);
        seen += got;
        after_index = picked[got - 1];
        after = bounds[after_index];
      }
      assert_int_equal(seen, count);
    }
  }
  assert_int_equal(search_select(bounds, MOST, -INFINITY, SIZE_MAX, 0, picked), 0);
}

/* ---- A whole search ---------------------------------------------------------- */

enum { VECTORS = 20000, WIDTH = 48, IN_BLOCK = 1024, NEAREST = 40, STEP = 64 };
enum { BLOCKS = (VECTORS + IN_BLOCK - 1) / IN_BLOCK };

typedef struct collection {
  float x[VECTORS * WIDTH];
  void *blocks[BLOCKS];
  search_block views[BLOCKS];
  float bounds[VECTORS], before[VECTORS];
  ranked plain[VECTORS];
} collection;

/* Some vectors stand twice, so that distances are equal. */
static void collection_fill(collection *c) {
  for (size_t i = 0; i < (size_t)VECTORS * WIDTH; i++) c->x[i] = (float)normal();
  for (size_t i = 0; i < VECTORS; i += 100)
    memcpy(c->x + (i + 50) * WIDTH, c->x + i * WIDTH, WIDTH * sizeof *c->x);
}

static void collection_pack(collection *c, search_metric metric) {
  for (size_t b = 0; b < BLOCKS; b++) {
    size_t first = b * IN_BLOCK, count = VECTORS - first < IN_BLOCK ? VECTORS - first : IN_BLOCK;
    c->blocks[b] = block_of(metric, c->x + first * WIDTH, count, WIDTH, &c->views[b]);
  }
}

static void collection_unpack(collection *c) {
  for (size_t b = 0; b < BLOCKS; b++) free(c->blocks[b]);
}

/* Keeps found[NEAREST] sorted. */
static size_t keep(ranked *found, size_t count, ranked r) {
  size_t at = count < NEAREST ? count : NEAREST - 1;
  if (count == NEAREST && by_rank(&r, &found[at]) > 0) return count;
  for (; at > 0 && by_rank(&r, &found[at - 1]) < 0; at--) found[at] = found[at - 1];
  found[at] = r;
  return count < NEAREST ? count + 1 : NEAREST;
}

/* In order of bounds, until the next one is above the last distance kept. */
static size_t search(const collection *c, search_metric metric, const float *q, ranked *found) {
  size_t count = 0, visited = 0, after_index = SIZE_MAX, picked[STEP], got;
  float after = -INFINITY;
  while ((got = search_select(c->bounds, VECTORS, after, after_index, STEP, picked)) > 0) {
    for (size_t i = 0; i < got; i++) {
      if (count == NEAREST && (double)c->bounds[picked[i]] > found[count - 1].distance)
        return visited;
      ranked r = {search_distance(metric, q, c->x + picked[i] * WIDTH, WIDTH), picked[i]};
      count = keep(found, count, r);
      visited++;
    }
    after_index = picked[got - 1];
    after = c->bounds[after_index];
  }
  return visited;
}

static void compare_search(collection *c, search_metric metric, const float *q, size_t *visited) {
  ranked found[NEAREST];
  search_query *query;
  assert_int_equal(search_query_make(metric, q, WIDTH, &query, NULL), BERT_OK);
  for (int threads = 1; threads <= 2; threads++) {
    for (size_t i = 0; i < VECTORS; i++) c->bounds[i] = NAN;
    search_scan(query, c->views, BLOCKS, threads, c->bounds);
    if (threads > 1) assert_memory_equal(c->bounds, c->before, sizeof c->bounds);
    memcpy(c->before, c->bounds, sizeof c->bounds);
    *visited += search(c, metric, q, found);
    for (size_t i = 0; i < NEAREST; i++) {
      assert_int_equal(found[i].index, c->plain[i].index);
      assert_true(found[i].distance == c->plain[i].distance);
    }
  }
  search_query_free(query);
}

static void search_is_a_plain_scan(void **state) {
  const char *before = kernels_current()->name;
  enum { QUERIES = 10 };
  collection *c = take(sizeof *c);
  collection_fill(c);
  for (size_t m = 0; m < METRICS; m++) {
    size_t visited = 0, runs = 0;
    collection_pack(c, metrics[m]);
    for (const kernels *const *set = kernels_all(); *set != NULL; set++) {
      if ((*set)->float32_of != NULL || !kernels_choose((*set)->name)) continue;
      for (int number = 0; number < dice_rounds(QUERIES, 2); number++, runs += 2) {
        float q[WIDTH];
        for (size_t j = 0; j < WIDTH; j++)
          q[j] = (float)normal() * (number % 2 ? 0.3f : 1) + (number % 2 ? c->x[j] : 0);
        for (size_t i = 0; i < VECTORS; i++)
          c->plain[i] = (ranked){search_distance(metrics[m], q, c->x + i * WIDTH, WIDTH), i};
        qsort(c->plain, VECTORS, sizeof *c->plain, by_rank);
        compare_search(c, metrics[m], q, &visited);
      }
    }
    double mean = (double)visited / (double)runs;
    print_message("    metric %d: %.1f of %d vectors visited for the nearest %d\n", (int)m, mean,
                  VECTORS, NEAREST);
    assert_true(mean < VECTORS / 20.0);
    collection_unpack(c);
  }
  kernels_choose(before);
  free(c);
}

/* Empty blocks, blocks of one, and more threads than there is work. */
static void blocks_may_be_of_any_size(void **state) {
  enum { PARTS = 6, DIM = 300, TOTAL = 0 + 1 + 0 + 3000 + 257 + 0 };
  static const size_t counts[PARTS] = {0, 1, 0, 3000, 257, 0};
  float *x = take((size_t)TOTAL * DIM * sizeof *x);
  float *bounds = take(TOTAL * sizeof *bounds), *whole = take(TOTAL * sizeof *whole);
  search_block parts[PARTS], all;
  void *blocks[PARTS];
  search_query *query;
  for (size_t i = 0; i < (size_t)TOTAL * DIM; i++) x[i] = (float)normal();
  for (size_t p = 0, first = 0; p < PARTS; first += counts[p++])
    blocks[p] = block_of(SEARCH_L2, x + first * DIM, counts[p], DIM, &parts[p]);
  void *one = block_of(SEARCH_L2, x, TOTAL, DIM, &all);
  assert_int_equal(search_query_make(SEARCH_L2, x, DIM, &query, NULL), BERT_OK);
  search_scan(query, &all, 1, 1, whole);
  for (int threads = 0; threads <= 5; threads++) {
    memset(bounds, 0xFF, TOTAL * sizeof *bounds);
    search_scan(query, parts, PARTS, threads, bounds);
    assert_memory_equal(bounds, whole, TOTAL * sizeof *bounds);
  }
  search_scan(query, parts, 0, 2, NULL);
  search_query_free(query);
  for (size_t p = 0; p < PARTS; p++) free(blocks[p]);
  free(one);
  free(x);
  free(bounds);
  free(whole);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(bounds_are_never_above),
      cmocka_unit_test(bounds_of_long_vectors),
      cmocka_unit_test(the_last_bit_is_on_the_safe_side),
      cmocka_unit_test(bounds_are_tight),
      cmocka_unit_test(blocks_have_sizes),
      cmocka_unit_test(blocks_have_a_layout),
      cmocka_unit_test(blocks_have_the_same_bytes_everywhere),
      cmocka_unit_test(hostile_headers_are_refused),
      cmocka_unit_test(hostile_entries_harm_nothing),
      cmocka_unit_test(odd_vectors_are_always_visited),
      cmocka_unit_test(queries_are_checked),
      cmocka_unit_test(memory_may_run_out),
      cmocka_unit_test(selects_in_order),
      cmocka_unit_test(search_is_a_plain_scan),
      cmocka_unit_test(blocks_may_be_of_any_size),
  };
  return cmocka_run_group_tests_name("search", tests, NULL, NULL);
}
