/*
** test_analysis.c: what is said about attention as an array of numbers:
** statistics and labels of heads, units, columns of a text. No model; the
** expected numbers are computed here in the plainest way, or stand here.
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

enum { MOST = 64 }; /* units of a matrix of these tests */

/* A view of one-token units: [CLS] at 0, separators and punctuation as given by
** the letters of `kinds`: c, s, p or anything else. */
typedef struct hand {
  bert_view view;
  bert_unit units[MOST];
} hand;

static hand *make_hand(const char *kinds) {
  hand *h = calloc(1, sizeof *h);
  h->view.count = h->view.tokens = strlen(kinds);
  h->view.units = h->units;
  for (size_t i = 0; i < h->view.count; i++) {
    bert_unit u = {.first = i, .last = i + 1, .segment = 0};
    u.special = kinds[i] == 'c' || kinds[i] == 's';
    u.separator = kinds[i] == 's';
    u.punctuation = kinds[i] == 'p';
    if (u.special) u.segment = -1;
    h->units[i] = u;
  }
  return h;
}

/* Random rows that sum to 1, some of them peaked. */
static void random_rows(unsigned *seed, size_t n, float *weights) {
  for (size_t i = 0; i < n; i++) {
    double sum = 0, row[MOST];
    for (size_t j = 0; j < n; j++) {
      row[j] = exp(8.0 * rand_r(seed) / RAND_MAX);
      sum += row[j];
    }
    for (size_t j = 0; j < n; j++) weights[i * n + j] = (float)(row[j] / sum);
  }
}

/* ---- Statistics -------------------------------------------------------------- */

static void is_near(const char *what, double a, double b, double tolerance) {
  if (!(fabs(a - b) <= tolerance)) fail_msg("%s is %.15g, not %.15g", what, a, b);
}

/* One statistic at a time, straight from its formula. */
static void check_statistics(const hand *h, const float *a, const float *norms) {
  size_t n = h->view.count;
  double nn = (double)n, entropy = 0, diag = 0, prev = 0, next = 0, first = 0, sep = 0, punct = 0;
  double mass = 0, far = 0, signed_far = 0, most = 0, near = 0, norm = 0;
  bert_head_statistics s;
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++)
      if (a[i * n + j] > 0) entropy -= (double)a[i * n + j] * log((double)a[i * n + j]) / nn;
  for (size_t i = 0; i < n; i++) diag += (double)a[i * n + i] / nn;
  for (size_t i = 1; i < n; i++) prev += (double)a[i * n + i - 1] / (nn - 1);
  for (size_t i = 0; i + 1 < n; i++) next += (double)a[i * n + i + 1] / (nn - 1);
  for (size_t i = 0; i < n; i++) first += (double)a[i * n] / nn;
  for (size_t j = 0; j < n; j++)
    for (size_t i = 0; i < n; i++) {
      double w = (double)a[i * n + j], d = (double)j - (double)i;
      if (h->units[j].separator) sep += w / nn;
      if (h->units[j].punctuation) punct += w / nn;
      mass += w;
      far += w * (d < 0 ? -d : d);
      signed_far += w * d;
      norm += w * (double)norms[j] / nn / nn;
    }
  for (size_t i = 0; i < n; i++) {
    size_t best = 0;
    for (size_t j = 0; j < n; j++)
      if (a[i * n + j] > a[i * n + best]) best = j;
    most += (double)a[i * n + best] / nn;
    near += (best == i + 1 || best + 1 == i) / nn;
  }
  bert_head_summarize(&h->view, a, norms, &s);
  is_near("entropy", s.entropy, entropy, 1e-12);
  is_near("entropy_norm", s.entropy_norm, n > 1 ? entropy / log(nn) : 0, 1e-12);
  is_near("diag", s.diag, diag, 1e-12);
  is_near("prev", s.prev, prev, 1e-12);
  is_near("next", s.next, next, 1e-12);
  is_near("first", s.first, first, 1e-12);
  is_near("sep", s.sep, sep, 1e-12);
  is_near("punct", s.punct, punct, 1e-12);
  is_near("mean_distance", s.mean_distance, far / mass, 1e-12);
  is_near("signed_distance", s.signed_distance, signed_far / mass, 1e-12);
  is_near("max_prob", s.max_prob, most, 1e-12);
  is_near("positional", s.positional, near, 1e-12);
  is_near("norm_mean", s.norm_mean, norm, 1e-11);
}

static void statistics_of_random_heads(void **state) {
  (void)state;
  const char *const kinds[] = {"c",
                               "cs",
                               "cws",
                               "cwwpwws",
                               "cwwwwpswwwps",
                               "pppp",
                               "cwwwwwwwwwwwwwwwpwwwwwwwwwwpwwwwwwwwwwwwswwwwwwwwpwwwwwwwws"};
  float weights[MOST * MOST], norms[MOST];
  unsigned seed = 3;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    hand *h = make_hand(kinds[k]);
    for (int round = 0; round < 20; round++) {
      random_rows(&seed, h->view.count, weights);
      for (size_t j = 0; j < h->view.count; j++) norms[j] = (float)(rand_r(&seed) % 1000) / 70;
      check_statistics(h, weights, norms);
    }
    free(h);
  }
}

/* A head small enough to work out on paper. */
static void statistics_on_paper(void **state) {
  (void)state;
  hand *h = make_hand("cwps");
  const float a[] = {.5F,  .5F,  0,    0, /* [CLS]: itself and the word */
                     1,    0,    0,    0, /* the word: its previous token */
                     0,    0,    0,    1, /* the full stop: its next token */
                     .25F, .25F, .25F, .25F};
  const float norms[] = {1, 2, 3, 4};
  bert_head_statistics s;
  bert_head_summarize(&h->view, a, norms, &s);
  is_near("entropy", s.entropy, (log(2) + log(4)) / 4, 1e-12);
  is_near("entropy_norm", s.entropy_norm, 3.0 / 8, 1e-12);
  is_near("diag", s.diag, .75 / 4, 1e-12);
  is_near("prev", s.prev, 1.25 / 3, 1e-12);
  is_near("next", s.next, 1.5 / 3, 1e-12);
  is_near("first", s.first, 1.75 / 4, 1e-12);
  is_near("sep", s.sep, 1.25 / 4, 1e-12);
  is_near("punct", s.punct, .25 / 4, 1e-12);
  is_near("mean_distance", s.mean_distance, (.5 + 1 + 1 + 1.5) / 4, 1e-12);
  is_near("signed_distance", s.signed_distance, (.5 - 1 + 1 - 1.5) / 4, 1e-12);
  is_near("max_prob", s.max_prob, 2.75 / 4, 1e-12);
  is_near("positional", s.positional, 2.0 / 4, 1e-12); /* [CLS] ties: the first counts */
  is_near("norm_mean", s.norm_mean, (1.5 + 1 + 4 + 2.5) / 16, 1e-12);
  assert_int_equal(s.collapsed, 0);
  bert_head_summarize(&h->view, a, NULL, &s);
  assert_true(isnan(s.norm_mean));
  is_near("sep", s.sep, 1.25 / 4, 1e-12);
  free(h);
}

static void statistics_of_next_to_nothing(void **state) {
  (void)state;
  const float one = 1, none[] = {0, 0, 0, 0}, norm = 3;
  hand *h = make_hand("w"), *empty = make_hand(""), *dark = make_hand("ww");
  bert_head_statistics s;
  bert_head_summarize(&h->view, &one, &norm, &s);
  assert_true(s.entropy == 0 && s.entropy_norm == 0 && s.prev == 0 && s.next == 0);
  assert_true(s.diag == 1 && s.first == 1 && s.max_prob == 1 && s.positional == 0);
  assert_true(s.mean_distance == 0 && s.norm_mean == 3);
  assert_string_equal(s.label, "single");
  bert_head_summarize(&empty->view, NULL, NULL, &s);
  assert_true(s.entropy == 0 && s.diag == 0 && s.collapsed == 0);
  assert_string_equal(s.label, "single");
  bert_head_summarize(&dark->view, none, NULL, &s); /* all mass was left out */
  assert_true(s.entropy == 0 && s.mean_distance == 0 && s.max_prob == 0);
  assert_string_equal(s.label, "mixed");
  free(h);
  free(empty);
  free(dark);
}

/* ---- Labels -------------------------------------------------------------------- */

static const char *label_of(const char *kinds, const float *a, int *collapsed) {
  hand *h = make_hand(kinds);
  bert_head_statistics s;
  bert_head_summarize(&h->view, a, NULL, &s);
  if (collapsed != NULL) *collapsed = s.collapsed;
  free(h);
  return s.label;
}

/* Each query of a text of 12 puts `peak` on the key that `target` says for it
** and spreads the rest. */
static const char *peaked(const char *kinds, double peak, int (*target)(int i), int *collapsed) {
  float a[12 * 12]; /* [12, 12] */
  assert_int_equal(strlen(kinds), 12);
  for (int i = 0; i < 12; i++)
    for (int j = 0; j < 12; j++) a[i * 12 + j] = (float)(j == target(i) ? peak : (1 - peak) / 11);
  return label_of(kinds, a, collapsed);
}

static int itself(int i) {
  return i;
}
static int before(int i) {
  return i == 0 ? 5 : i - 1;
}
static int behind(int i) {
  return i == 11 ? 5 : i + 1;
}
static int first(int i) {
  return i * 0;
}
static int last(int i) {
  return 11 + i * 0;
}
static int fifth(int i) {
  return 5 + i * 0;
}
static int either(int i) {
  return i == 0 ? 1 : i == 11 ? 10 : i % 2 ? i - 1 : i + 1;
}
static int scattered(int i) {
  return (i * 5 + 3) % 12;
}

static void labels_of_made_heads(void **state) {
  (void)state;
  const char *plain = "cwwwwwwwwwws", *stop = "cwwwwpwwwwws";
  float even[144];
  assert_string_equal(peaked(plain, .8, before, NULL), "previous-token");
  assert_string_equal(peaked(plain, .8, behind, NULL), "next-token");
  assert_string_equal(peaked(plain, .8, itself, NULL), "diagonal");
  assert_string_equal(peaked(plain, .8, last, NULL), "separator");
  assert_string_equal(peaked(plain, .8, first, NULL), "first-token");
  assert_string_equal(peaked(stop, .8, fifth, NULL), "punctuation");
  assert_string_equal(peaked(plain, .8, fifth, NULL), "focused");
  assert_string_equal(peaked(plain, .8, scattered, NULL), "focused");
  assert_string_equal(peaked(plain, .5, scattered, NULL), "mixed");
  assert_string_equal(peaked(plain, .2, before, NULL), "broad");
  /* Half before and half behind: neither has enough, but all are at distance 1. */
  assert_string_equal(peaked(plain, .6, either, NULL), "positional");
  for (int i = 0; i < 144; i++) even[i] = 1.0F / 12;
  assert_string_equal(label_of(plain, even, NULL), "broad");
  for (int i = 0; i < 4; i++) even[i] = .5F;
  assert_string_equal(label_of("cs", even, NULL), "broad"); /* though half is on each */
}

static void collapsed_heads(void **state) {
  (void)state;
  const char *plain = "cwwwwwwwwwws";
  float a[10 * 10] = {0}; /* [10, 10] */
  int collapsed;
  peaked(plain, .9, fifth, &collapsed);
  assert_int_equal(collapsed, 1);
  peaked(plain, .89, fifth, &collapsed);
  assert_int_equal(collapsed, 0);
  peaked(plain, .95, itself, &collapsed); /* each row on a key of its own */
  assert_int_equal(collapsed, 0);
  for (int i = 0; i < 10; i++) a[i * 10 + (i < 9 ? 4 : 5)] = 1;
  label_of("cwwwwwwwws", a, &collapsed); /* 9 rows in 10 */
  assert_int_equal(collapsed, 1);
  a[84] = 0, a[85] = 1;
  label_of("cwwwwwwwws", a, &collapsed); /* 8 in 10 */
  assert_int_equal(collapsed, 0);
}

/* ---- Units ------------------------------------------------------------------------ */

/* [CLS] [un ##aff ##able] [.] [SEP] on random weights. */
static void words_sum_keys_and_average_queries(void **state) {
  (void)state;
  float a[36], out[16]; /* [6, 6], [4, 4] */
  unsigned seed = 11;
  size_t edges[] = {0, 1, 4, 5, 6};
  bert_unit units[4] = {0};
  bert_view view = {6, 4, units, 0};
  for (size_t u = 0; u < 4; u++) units[u].first = edges[u], units[u].last = edges[u + 1];
  random_rows(&seed, 6, a);
  bert_view_apply(&view, a, out);
  for (size_t p = 0; p < 4; p++) {
    double row = 0;
    for (size_t q = 0; q < 4; q++) {
      double expected = 0;
      for (size_t i = edges[p]; i < edges[p + 1]; i++)
        for (size_t j = edges[q]; j < edges[q + 1]; j++)
          expected += (double)a[i * 6 + j] / (double)(edges[p + 1] - edges[p]);
      is_near("weight", (double)out[p * 4 + q], expected, 1e-7);
      row += (double)out[p * 4 + q];
    }
    is_near("row", row, 1, 1e-6);
  }
  assert_true(out[0] == a[0] && out[3] == a[5] && out[15] == a[35]); /* single tokens: the bits */
  const float norms[] = {1, 2, 3, 7, 5, 6};
  bert_view_norms(&view, norms, out);
  assert_true(out[0] == 1 && out[1] == 4 && out[2] == 5 && out[3] == 6);
}

static void leaving_out_and_renormalizing(void **state) {
  (void)state;
  const float a[] = {.2F, .3F, .5F, .4F, .1F, .5F, 1, 0, 0}; /* [3, 3] */
  float out[4];                                              /* [2, 2] */
  bert_unit units[2] = {{.first = 1, .last = 2}, {.first = 2, .last = 3}};
  bert_view view = {3, 2, units, 0};
  bert_view_apply(&view, a, out);
  assert_true(out[0] == .1F && out[1] == .5F && out[2] == 0 && out[3] == 0);
  view.renormalize = 1;
  bert_view_apply(&view, a, out);
  is_near("weight", (double)out[0], 1.0 / 6, 1e-7);
  is_near("weight", (double)out[1], 5.0 / 6, 1e-7);
  assert_true(out[2] == 0 && out[3] == 0); /* nothing to share out, and no NaN */
}

/* ---- Columns ------------------------------------------------------------------------ */

static void columns_of_texts(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int columns;
  } cases[] = {
      {"", 0},
      {"time", 4},
      {"##able", 6},
      {"caf\u00E9", 4},
      {"cafe\u0301", 4},                           /* a combining accent */
      {"\u4F60\u597D\uFF0C", 6},                   /* Chinese, fullwidth comma */
      {"\uC548\uB155", 4},                         /* Hangul syllables */
      {"\u1112\u1161\u11AB", 2},                   /* one syllable of three letters */
      {"\uFF76\uFF9E", 2},                         /* halfwidth kana */
      {"\u041F\u0440\u0438\u0432\u0435\u0442", 6}, /* Cyrillic */
      {"\u0645\u064E\u0631", 2},                   /* Arabic with a vowel sign */
      {"\u0E01\u0E33", 2},                         /* Thai */
      {"\u0928\u094D", 1},                         /* Devanagari with a virama */
      {"a\u200Db\u200B\uFEFF", 2},                 /* joiners and what is not shown */
      {"\u202Ea\u202C", 1},                        /* direction */
      {"\t\n\x7F", 0},
      {"\U0001F680", 2},
      {"\U0001F680\U0001F525", 4},
      {"\U0001F44D\U0001F3FD", 2}, /* thumb with a skin tone */
      {"\U0001F3FD", 2},           /* a skin tone alone */
      {"a\U0001F3FD", 3},
      {"\u261D\U0001F3FD", 2},                   /* narrow sign made a picture by its tone */
      {"\u2764", 1},                             /* heart as text */
      {"\u2764\uFE0F", 2},                       /* as a picture */
      {"\u2764\uFE0F\u200D\U0001F525", 2},       /* on fire */
      {"\u26F9\U0001F3FE\u200D\u2640\uFE0F", 2}, /* woman with a ball */
      {"\U0001F468\u200D\U0001F469\u200D\U0001F467\u200D\U0001F466", 2}, /* family */
      {"\U0001F468\u200Dx", 3},
      {"\U0001F468\u200D\u0301\U0001F469", 4}, /* a mark breaks the joint */
      {"\U0001F1EB\U0001F1F7", 2},             /* a flag */
      {"\U0001F1EB\U0001F1F7\U0001F1E9\U0001F1EA", 4},
      {"\U0001F3F4\U000E0067\U000E0062\U000E007F", 2}, /* a flag of tags */
      {"1\uFE0F\u20E3", 2},                            /* keycap */
      {"1", 1},
      {"a\uFE0F", 1},
      {"\xFF\xC3", 2},             /* no UTF-8: two U+FFFD */
      {"\U0001FAFE\U0003FFFD", 4}, /* reserved for pictographs, for Han */
      {"\uE000", 1},               /* private use */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int columns = bert_text_columns(cases[i].text, strlen(cases[i].text));
    if (columns != cases[i].columns)
      fail_msg("case %zu, \"%s\": %d columns, not %d", i, cases[i].text, columns, cases[i].columns);
  }
  assert_int_equal(bert_text_columns("a\0b", 3), 2);
  assert_int_equal(bert_text_columns(NULL, 0), 0);
}

static void columns_of_every_character(void **state) {
  (void)state;
  int counts[3] = {0, 0, 0};
  for (unsigned c = 0; c < 0x110000; c++) {
    char text[4] = {(char)(0xF0 | c >> 18), (char)(0x80 | (c >> 12 & 0x3F)),
                    (char)(0x80 | (c >> 6 & 0x3F)), (char)(0x80 | (c & 0x3F))};
    if (c < 0x10000) continue;
    int columns = bert_text_columns(text, 4);
    assert_in_range(columns, 0, 2);
    counts[columns]++;
  }
  assert_true(counts[0] > 400 && counts[1] > 100000 && counts[2] > 100000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(statistics_of_random_heads),
      cmocka_unit_test(statistics_on_paper),
      cmocka_unit_test(statistics_of_next_to_nothing),
      cmocka_unit_test(labels_of_made_heads),
      cmocka_unit_test(collapsed_heads),
      cmocka_unit_test(words_sum_keys_and_average_queries),
      cmocka_unit_test(leaving_out_and_renormalizing),
      cmocka_unit_test(columns_of_texts),
      cmocka_unit_test(columns_of_every_character),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
