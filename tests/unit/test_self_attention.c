/*
** test_self_attention.c: self-attention by hand and sinusoidal positions,
** against printed figures, against the same cases in float64, and at the edges:
** masks, temperature, huge scores, widths that do not agree.
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

enum { N = 6 }; /* tokens of the example */

/* [6, 3] */
static const double x[] = {2.2315, -0.7460, -0.0614, -0.1235, 0.4462,  0.7265,
                           1.4900, -2.0396, 1.0440,  -0.6735, -0.5763, -0.9291,
                           0.7707, 0.5180,  0.2458,  0.6508,  0.1164,  -1.3904};
/* [3, 2] each */
static const double w_q[] = {.2961, .5166, .2517, .6886, .0740, .8665};
static const double w_k[] = {.1366, .1025, .1841, .7264, .3153, .6871};
static const double w_v[] = {.0756, .1966, .3164, .4017, .1186, .8274};

/* The two cases computed by numpy 2.4 in float64: softmax of x x^T, */
static const double plain_scores[] = {
    5.53987821,  -0.65306255, 4.782375,    -1.01594871, 1.31829693,  1.45079636,
    -0.65306255, 0.74214894,  -0.33561852, -0.84895896, 0.31452385,  -1.03856172,
    4.782375,    -0.33561852, 7.47000416,  -0.79807392, 0.3484454,   -0.71929504,
    -1.01594871, -0.84895896, -0.79807392, 1.64895075,  -1.04596263, 0.78642552,
    1.31829693,  0.31452385,  0.3484454,   -1.04596263, 0.92272013,  0.22010644,
    1.45079636,  -1.03856172, -0.71929504, 0.78642552,  0.22010644,  2.37030176};
static const double plain_weights[] = {
    0.66501247255,   0.0013591575186,  0.31178148885,    0.00094551916271, 0.0097593374723,
    0.011142024452,  0.094847557915,   0.38278843183,    0.13028377802,    0.077973929937,
    0.2495994291,    0.064506873192,   0.063603126843,   0.00038085715834, 0.93476185222,
    0.0002398392704, 0.00075482679499, 0.00025949770855, 0.040280126702,   0.047600723627,
    0.050085573041,  0.57868464428,    0.039089124924,   0.24425980743,    0.35131877383,
    0.12875622899,   0.13319876268,    0.033030601134,   0.23653996974,    0.11715566363,
    0.22163768154,   0.01838777246,    0.025303749428,   0.11405412809,    0.064738369543,
    0.55587829894};
static const double plain_context[] = {
    1.9624978387, -1.1255950073,  0.27168402898,  0.54033269468,   -0.073818145086, 0.30750402481,
    1.5352675959, -1.9535352815,  0.97186473061,  -0.042019919467, -0.39578001861,  -0.78326856815,
    1.2028327566, -0.35917588413, 0.075589494225, 0.8648601862,    -0.17623729829,  -0.83678090857};

/* of q k^T / sqrt 2 with the matrices, */
static const double projected_q[] = {0.46843535, 0.5858942,  0.12950119,  0.87296547,
                                     0.00507768, 0.26989144, -0.41323146, -1.54983543,
                                     0.37677407, 0.96782412, 0.11911016,  -0.78842528};
static const double projected_k[] = {0.14812488, -0.35535359, 0.29434077,  0.81063908,
                                     0.15721684, -0.61150804, -0.49104216, -1.12604268,
                                     0.27814216, 0.62416113,  -0.3280646,  -0.80408388};
static const double projected_v[] = {-0.07461504, 0.08824234, 0.21800398,  0.75606454,
                                     -0.40886704, 0.33743228, -0.34344918, -1.13264715,
                                     0.251312,    0.56297514, -0.078872,   -0.9757118};
static const double projected_scores[] = {
    -0.09815538545,  0.43333508685,  -0.20126598697, -0.62915772053, 0.350713654,    -0.44178980739,
    -0.20578862572,  0.52734426065,  -0.3630750329,  -0.74004870926, 0.41075186264,  -0.52638599864,
    -0.067284577029, 0.15576085729,  -0.11613697751, -0.21665938124, 0.12011485929,  -0.1546309335,
    0.3461497871,    -0.97438468271, 0.62421256964,  1.3775111212,   -0.76529044337, 0.97705490621,
    -0.20372464901,  0.63318302691,  -0.37660295176, -0.90143614298, 0.50125028419,  -0.63768162895,
    0.21058554364,   -0.42714154601, 0.35415762792,  0.58641242532,  -0.32454423343, 0.42064667393};
static const double projected_weights[] = {
    0.15462554917, 0.26309017776,  0.13947645153, 0.090922186494, 0.24222702877,  0.10965860628,
    0.14083758331, 0.29316635763,  0.12033998292, 0.082545301479, 0.2609027737,   0.10220800097,
    0.16165760075, 0.20205217521,  0.15395003818, 0.13922700334,  0.19497667951,  0.14813650302,
    0.13156442755, 0.035126723891, 0.17373991812, 0.36902264439,  0.043295835153, 0.24725045089,
    0.13661362323, 0.31547023933,  0.11492484239, 0.067995748356, 0.27647809799,  0.088517448704,
    0.16782961173, 0.088696653404, 0.19374082905, 0.24439264447,  0.098279894266, 0.20706036708};
static const double projected_context[] = {
    0.0097884054901, 0.18601137547, 0.033356310551, 0.22834864253, -0.041460249518, 0.02651066316,
    -0.20855634472,  -0.5380500701, 0.050738988184, 0.2816179049,  -0.14796943086,  -0.27626825669};

/* the same at a temperature of 2.5, and seeing only keys up to the query. */
static const double warm_weights[] = {
    0.16465321148, 0.20365710106,  0.1580003539,  0.13314524226, 0.19703652729, 0.14350756402,
    0.16008390263, 0.21463764276,  0.1503225782,  0.12928173767, 0.20485742812, 0.14081671062,
    0.16503083908, 0.18043137899,  0.16183728223, 0.15545906328, 0.17787697053, 0.15936446589,
    0.16270431523, 0.095939784377, 0.18184590444, 0.24579038277, 0.10430908308, 0.2094105301,
    0.15990575665, 0.22348575838,  0.14922172688, 0.12096485189, 0.21199752372, 0.13442438247,
    0.16974653198, 0.13152744016,  0.17978023168, 0.19728257439, 0.13703747455, 0.18462574724};
static const double causal_weights[] = {1,
                                        0,
                                        0,
                                        0,
                                        0,
                                        0,
                                        0.32450761392,
                                        0.67549238608,
                                        0,
                                        0,
                                        0,
                                        0,
                                        0.31228539735,
                                        0.39031844793,
                                        0.29739615472,
                                        0,
                                        0,
                                        0,
                                        0.18544469493,
                                        0.049512354647,
                                        0.2448925345,
                                        0.52015041592,
                                        0,
                                        0,
                                        0.14988067851,
                                        0.34610672347,
                                        0.12608561977,
                                        0.074599067485,
                                        0.30332791077,
                                        0,
                                        0.16782961173,
                                        0.088696653404,
                                        0.19374082905,
                                        0.24439264447,
                                        0.098279894266,
                                        0.20706036708};
static const double causal_context[] = {
    -0.07461504,    0.08824234,     0.12304688003,  0.53935115135, -0.059805697788, 0.42301379455,
    -0.28181679248, -0.45271363043, 0.063325991613, 0.40372185247, -0.14796943086,  -0.27626825669};

typedef struct result {
  double q[18], k[18], v[18], scores[36], weights[36], context[18];
} result;

static bert_self_attention_input plain(void) {
  bert_self_attention_input in = {.tokens = N,
                                  .width = 3,
                                  .x = x,
                                  .query_width = 3,
                                  .value_width = 3,
                                  .scale = 1,
                                  .temperature = 1};
  return in;
}

static bert_self_attention_input projected(void) {
  bert_self_attention_input in = {.tokens = N,
                                  .width = 3,
                                  .x = x,
                                  .w_q = w_q,
                                  .w_k = w_k,
                                  .w_v = w_v,
                                  .query_width = 2,
                                  .value_width = 2,
                                  .scale = 1 / sqrt(2),
                                  .temperature = 1};
  return in;
}

static bert_status attend(const bert_self_attention_input *in, result *r, bert_error *error) {
  return bert_self_attention(in, r->q, r->k, r->v, r->scores, r->weights, r->context, error);
}

static result attend_ok(bert_self_attention_input in) {
  bert_error error = {BERT_OK, ""};
  result r;
  assert_ok(attend(&in, &r, &error), &error);
  return r;
}

static void attend_fails(bert_self_attention_input in, bert_status expected, const char *part) {
  bert_error error = {BERT_OK, ""};
  result r;
  assert_int_equal(attend(&in, &r, &error), expected);
  assert_int_equal(error.status, expected);
  if (strstr(error.text, part) == NULL) fail_msg("\"%s\" does not say \"%s\"", error.text, part);
}

static void within(const char *what, const double *a, const double *b, size_t count,
                   double tolerance) {
  for (size_t i = 0; i < count; i++)
    if (!(fabs(a[i] - b[i]) <= tolerance))
      fail_msg("%s %zu: %.12g is not %.12g within %g", what, i, a[i], b[i], tolerance);
}

/* ---- The example, as printed --------------------------------------------- */

/* The source prints its inputs rounded to four decimals. */
static const double PRINTED = 3e-4;

static void without_matrices_as_printed(void **state) {
  (void)state;
  const double scores[] = {5.5401, -0.6531, 4.7825, -1.0159, 1.3183, 1.4509};
  const double weights[] = {.66504, .0013588, .31176, .00094538, .0097572, .011141};
  const double context[] = {1.9626, -1.1256, .2716};
  result r = attend_ok(plain());
  within("score", r.scores, scores, 6, PRINTED);
  within("weight", r.weights, weights, 6, PRINTED);
  within("context", r.context, context, 3, PRINTED);
}

static void with_matrices_as_printed(void **state) {
  (void)state;
  const double q[] = {.1295, .8730}, k[] = {.2943, .8107}, v[] = {.2180, .7561};
  const double unscaled[] = {-.2911, .7458, -.5136, -1.0466, .5809, -.7444};
  const double weights[] = {.1408, .2932, .1203, .0825, .2609, .1022};
  const double context[] = {.0334, .2284};
  result r = attend_ok(projected());
  bert_self_attention_input in = projected();
  within("q", r.q + 2, q, 2, PRINTED);
  within("k", r.k + 2, k, 2, PRINTED);
  within("v", r.v + 2, v, 2, PRINTED);
  within("weight", r.weights + 6, weights, 6, PRINTED);
  within("context", r.context + 2, context, 2, PRINTED);
  in.scale = 1;
  r = attend_ok(in);
  within("score", r.scores + 6, unscaled, 6, PRINTED);
}

/* ---- The example, in float64 ---------------------------------------------- */

static const double EXACT = 1e-9;

static void equals_numpy(void **state) {
  (void)state;
  result r = attend_ok(plain());
  within("q", r.q, x, 18, 0);
  within("k", r.k, x, 18, 0);
  within("v", r.v, x, 18, 0);
  within("score", r.scores, plain_scores, 36, EXACT);
  within("weight", r.weights, plain_weights, 36, EXACT);
  within("context", r.context, plain_context, 18, EXACT);
  r = attend_ok(projected());
  within("q", r.q, projected_q, 12, EXACT);
  within("k", r.k, projected_k, 12, EXACT);
  within("v", r.v, projected_v, 12, EXACT);
  within("score", r.scores, projected_scores, 36, EXACT);
  within("weight", r.weights, projected_weights, 36, EXACT);
  within("context", r.context, projected_context, 12, EXACT);
}

static void values_may_be_wider_than_queries(void **state) {
  (void)state;
  bert_self_attention_input in = projected();
  in.w_v = NULL;
  in.value_width = 3;
  result r = attend_ok(in);
  within("weight", r.weights, projected_weights, 36, EXACT);
  for (size_t i = 0; i < N; i++)
    for (size_t c = 0; c < 3; c++) {
      double sum = 0;
      for (size_t j = 0; j < N; j++) sum += projected_weights[i * N + j] * x[j * 3 + c];
      assert_true(fabs(r.context[i * 3 + c] - sum) < EXACT);
    }
}

/* ---- Temperature ----------------------------------------------------------- */

static void temperature_flattens_and_sharpens(void **state) {
  (void)state;
  bert_self_attention_input in = projected();
  in.temperature = 2.5;
  result r = attend_ok(in);
  within("weight", r.weights, warm_weights, 36, EXACT);
  within("score", r.scores, projected_scores, 36, EXACT); /* they know no temperature */
  in.temperature = 1e-300;
  r = attend_ok(in);
  for (size_t i = 0; i < N; i++) {
    size_t largest = 0;
    for (size_t j = 1; j < N; j++)
      if (r.scores[i * N + j] > r.scores[i * N + largest]) largest = j;
    for (size_t j = 0; j < N; j++) assert_true(r.weights[i * N + j] == (j == largest));
  }
  in.temperature = 1e300;
  r = attend_ok(in);
  for (size_t i = 0; i < 36; i++) assert_true(fabs(r.weights[i] - 1.0 / 6) < 1e-15);
}

static void temperature_and_scale_are_checked(void **state) {
  (void)state;
  const double bad[] = {0, -1, -INFINITY, NAN};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    bert_self_attention_input in = plain();
    in.temperature = bad[i];
    attend_fails(in, BERT_ARGUMENT, "it must be above 0");
  }
  bert_self_attention_input in = plain();
  in.scale = INFINITY;
  attend_fails(in, BERT_ARGUMENT, "scale is inf");
  in.scale = NAN;
  attend_fails(in, BERT_ARGUMENT, "finite");
}

/* ---- Masks ------------------------------------------------------------------ */

static void a_causal_mask(void **state) {
  (void)state;
  uint8_t mask[36];
  bert_self_attention_input in = projected();
  for (size_t i = 0; i < N; i++)
    for (size_t j = 0; j < N; j++) mask[i * N + j] = j <= i;
  in.mask = mask;
  result r = attend_ok(in);
  within("weight", r.weights, causal_weights, 36, EXACT);
  within("context", r.context, causal_context, 12, EXACT);
  within("score", r.scores, projected_scores, 36, EXACT); /* scores are before the mask */
  for (size_t i = 0; i < N; i++)
    for (size_t j = i + 1; j < N; j++) assert_true(r.weights[i * N + j] == 0);
}

/* Padding: the last two keys are hidden from all, and might as well not be. */
static void padding_is_as_if_it_were_not_there(void **state) {
  (void)state;
  uint8_t mask[36];
  bert_self_attention_input in = projected(), shorter = projected();
  for (size_t i = 0; i < 36; i++) mask[i] = i % N < 4;
  in.mask = mask;
  shorter.tokens = 4;
  result padded = attend_ok(in), alone = attend_ok(shorter);
  within("context", padded.context, alone.context, 8, 0);
  for (size_t i = 0; i < N; i++) {
    assert_true(padded.weights[i * N + 4] == 0 && padded.weights[i * N + 5] == 0);
    if (i < 4) within("weight", padded.weights + i * N, alone.weights + i * 4, 4, 0);
  }
}

static void a_row_that_sees_nothing_is_named(void **state) {
  (void)state;
  uint8_t mask[36];
  bert_self_attention_input in = plain();
  memset(mask, 1, sizeof mask);
  memset(mask + 4 * N, 0, N);
  in.mask = mask;
  attend_fails(in, BERT_ARGUMENT, "hides every key from row 4");
  mask[4 * N + 1] = 1;
  result r = attend_ok(in);
  assert_true(r.weights[4 * N + 1] == 1);
  within("context", r.context + 4 * 3, x + 3, 3, 0);
}

/* ---- Sizes -------------------------------------------------------------------- */

static void widths_that_do_not_agree_are_named(void **state) {
  (void)state;
  bert_self_attention_input in = projected();
  in.w_k = NULL;
  attend_fails(in, BERT_ARGUMENT, "w_k is not given, so its result has the 3 columns of x, not 2");
  in = projected();
  in.w_q = NULL;
  attend_fails(in, BERT_ARGUMENT, "w_q is not given");
  in = projected();
  in.w_v = NULL;
  attend_fails(in, BERT_ARGUMENT, "w_v is not given");
}

static void one_token_and_none(void **state) {
  (void)state;
  bert_self_attention_input in = projected();
  in.tokens = 1;
  result r = attend_ok(in);
  assert_true(r.weights[0] == 1);
  within("context", r.context, projected_v, 2, 1e-15);
  in.tokens = 0;
  attend_ok(in);
}

/* ---- Numbers that are too large ------------------------------------------------ */

static void huge_scores_do_not_overflow(void **state) {
  (void)state;
  const double far[] = {1e154, -1e154, 5e153}; /* [3, 1]; scores up to 1e308 */
  bert_self_attention_input in = {.tokens = 3,
                                  .width = 1,
                                  .x = far,
                                  .query_width = 1,
                                  .value_width = 1,
                                  .scale = 1,
                                  .temperature = 1};
  result r = attend_ok(in);
  const double expected[] = {1, 0, 0, 0, 1, 0, 1, 0, 0};
  within("weight", r.weights, expected, 9, 0);
  assert_true(r.context[0] == 1e154 && r.context[1] == -1e154);
  in.scale = 1e-308; /* scores 1, -1, 0.5: an ordinary softmax of huge numbers */
  r = attend_ok(in);
  assert_true(fabs(r.weights[0] - 1 / (1 + exp(-2) + exp(-.5))) < 1e-12);
}

static void results_beyond_double_are_an_error(void **state) {
  (void)state;
  const double far[] = {1e200, 1, 1, 1}; /* [2, 2] */
  bert_self_attention_input in = {.tokens = 2,
                                  .width = 2,
                                  .x = far,
                                  .query_width = 2,
                                  .value_width = 2,
                                  .scale = 1,
                                  .temperature = 1};
  attend_fails(in, BERT_NUMERIC, "scores, row 0, column 0 is not a finite number");
  const double w[] = {1e200, 0, 0, 1}; /* [2, 2] */
  in.w_v = w;
  attend_fails(in, BERT_NUMERIC, "v, row 0, column 0");
}

/* ---- Positions ------------------------------------------------------------------ */

static void positions_are_sines_and_cosines(void **state) {
  (void)state;
  double out[50 * 8]; /* [50, 8] */
  bert_positional_encoding(50, 8, out);
  for (int p = 0; p < 50; p++) {
    for (int i = 0; i < 4; i++) {
      double angle = p / pow(10, i); /* 10000^(2i/8) = 10^i */
      assert_true(fabs(out[p * 8 + 2 * i] - sin(angle)) < 1e-12);
      assert_true(fabs(out[p * 8 + 2 * i + 1] - cos(angle)) < 1e-12);
    }
  }
  const double third[] = {0.90929742683, -0.41614683655, 0.19866933080, 0.98006657784,
                          0.01999866669, 0.99980000667,  0.00199999867, 0.99999800000};
  within("position 2", out + 2 * 8, third, 8, 1e-10);
}

static void positions_of_odd_width(void **state) {
  (void)state;
  double out[2 * 3], one[4]; /* [2, 3], [4, 1] */
  bert_positional_encoding(2, 3, out);
  const double expected[] = {0, 1, 0, sin(1), cos(1), sin(pow(10000, -2.0 / 3))};
  within("odd width", out, expected, 6, 1e-15);
  bert_positional_encoding(4, 1, one);
  for (int p = 0; p < 4; p++) assert_true(fabs(one[p] - sin(p)) < 1e-15);
  bert_positional_encoding(0, 8, NULL);
  bert_positional_encoding(3, 0, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_matrices_as_printed),
      cmocka_unit_test(with_matrices_as_printed),
      cmocka_unit_test(equals_numpy),
      cmocka_unit_test(values_may_be_wider_than_queries),
      cmocka_unit_test(temperature_flattens_and_sharpens),
      cmocka_unit_test(temperature_and_scale_are_checked),
      cmocka_unit_test(a_causal_mask),
      cmocka_unit_test(padding_is_as_if_it_were_not_there),
      cmocka_unit_test(a_row_that_sees_nothing_is_named),
      cmocka_unit_test(widths_that_do_not_agree_are_named),
      cmocka_unit_test(one_token_and_none),
      cmocka_unit_test(huge_scores_do_not_overflow),
      cmocka_unit_test(results_beyond_double_are_an_error),
      cmocka_unit_test(positions_are_sines_and_cosines),
      cmocka_unit_test(positions_of_odd_width),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
