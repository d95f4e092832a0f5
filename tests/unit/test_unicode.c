/*
** test_unicode.c: reading UTF-8, the Unicode rules of the tokenizer over all
** 1,114,112 code points, and the canonical order of combining marks against a
** plain sort.
**
** The digests are of tables that were compared, code point by code point, with
** what the reference has built in; see encoder/tokenizers/README.md. A version
** of utf8proc that answers differently changes a digest.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "encoder/tokenizers/pipeline.h"
#include "golden.h"

/* ---- UTF-8 ------------------------------------------------------------- */

/* The characters of `text` are `expected`, 0 at the end, and their bytes
** follow each other without a gap. */
static void check_reading(const char *text, size_t size, const uint32_t *expected) {
  size_t at = 0, i = 0;
  for (; at < size; i++) {
    size_t before = at;
    uint32_t c = unicode_next(text, size, &at);
    assert_int_not_equal(expected[i], 0);
    if (c != expected[i]) fail_msg("byte %zu: U+%04X, expected U+%04X", before, c, expected[i]);
    assert_true(at > before && at <= size);
  }
  assert_int_equal(expected[i], 0);
}

#define READ(text, ...) check_reading(text, sizeof(text) - 1, (const uint32_t[]){__VA_ARGS__, 0})

static void test_valid(void **state) {
  READ("aZ~", 'a', 'Z', '~');
  READ("\xC2\x80\xDF\xBF", 0x80, 0x7FF);
  READ("\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF", 0x800, 0xD7FF, 0xE000, 0xFFFF);
  READ("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF", 0x10000, 0x10FFFF);
}

/* Unicode Standard 15, tables 3-8 to 3-11, and ends in the middle. */
static void test_maximal_parts(void **state) {
  READ("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82"
       "A",
       0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD, 'A');
  READ("\xED\xA0\x80\xED\xBF\xBF\xED\xAF"
       "A",
       0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD, 'A');
  READ("\xF4\x91\x92\x93\xFF"
       "A\x80\xBF"
       "B",
       0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD, 'A', 0xFFFD, 0xFFFD, 'B');
  READ("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"
       "A",
       0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD, 'A');
  READ("\xE2\x82", 0xFFFD);
  READ("\xF0\x9F\x98", 0xFFFD);
  READ("\xC3", 0xFFFD);
}

static void test_put_and_previous(void **state) {
  char text[8] = "x";
  for (uint32_t c = 1; c < 0x110000; c++) {
    size_t size, at = 1, begin = 9;
    if (c >= 0xD800 && c < 0xE000) continue;
    size = 1 + unicode_put(c, text + 1);
    assert_int_equal(unicode_next(text, size, &at), c);
    assert_int_equal(at, size);
    assert_int_equal(unicode_previous(text, size, &begin), c);
    assert_int_equal(begin, 1);
  }
  size_t begin;
  assert_int_equal(unicode_previous("a\xE4\xBD", 3, &begin), 0xFFFD);
  assert_int_equal(unicode_previous("\xE4 ", 2, &begin), ' ');
  assert_int_equal(begin, 1);
}

/* ---- Tables ------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint32_t value) { /* FNV-1a, a word a step */
  return (hash ^ value) * UINT64_C(1099511628211);
}

static uint64_t lower_all(uint64_t hash, uint32_t c) {
  uint32_t out[2];
  int count = unicode_lower(c, out);
  for (int i = 0; i < count; i++) hash = mix(hash, out[i]);
  return hash;
}

static uint64_t decompose_all(uint64_t hash, uint32_t c) {
  uint32_t out[UNICODE_DECOMPOSED];
  int count = unicode_decompose(c, out);
  for (int i = 0; i < count; i++) hash = mix(hash, out[i]);
  return mix(hash, (uint32_t)count);
}

static uint64_t decompose_compatible_all(uint64_t hash, uint32_t c) {
  uint32_t out[UNICODE_COMPATIBLE];
  int count = unicode_decompose_compatible(c, out);
  for (int i = 0; i < count; i++) hash = mix(hash, out[i]);
  return mix(hash, (uint32_t)count);
}

#define DIGEST(name, expression)                                                                   \
  static uint64_t name(uint64_t hash, uint32_t c) {                                                \
    return mix(hash, (uint32_t)(expression));                                                      \
  }
DIGEST(mark_all, unicode_is_mark(c))
DIGEST(punctuation_all, unicode_is_punctuation(c))
DIGEST(other_all, unicode_is_other(c))
DIGEST(space_all, unicode_is_space(c))
DIGEST(chinese_all, unicode_is_chinese(c))
DIGEST(word_all, unicode_is_word(c))
DIGEST(class_all, unicode_combining_class(c))
DIGEST(any_mark_all, unicode_is_any_mark(c))
DIGEST(category_all, unicode_category_of(c))
DIGEST(grapheme_all, unicode_grapheme_kind(c))
DIGEST(numeric_all, unicode_is_numeric(c))

static const struct table {
  const char *name;
  uint64_t (*add)(uint64_t hash, uint32_t c);
  uint64_t digest;
} tables[] = {
    {"Mn, Unicode 8", mark_all, UINT64_C(0x322EFA4FA422E548)},
    {"P, Unicode 8", punctuation_all, UINT64_C(0xA3697819881ABE1B)},
    {"Cc Cf Co, Unicode 8", other_all, UINT64_C(0xDECE2666C2836538)},
    {"White_Space", space_all, UINT64_C(0x6456EA463BE947AC)},
    {"ideographs of BERT", chinese_all, UINT64_C(0x9CC5055567D3F495)},
    {"word characters, Unicode 16", word_all, UINT64_C(0x861475D1D6EC7B7C)},
    {"combining class, Unicode 9", class_all, UINT64_C(0xBEECD6B1771CB0B9)},
    {"canonical decomposition, Unicode 9", decompose_all, UINT64_C(0xD7D6B38B5D179224)},
    {"marks, Unicode 9", any_mark_all, UINT64_C(0x4985099391AE3126)},
    {"compatibility decomposition, Unicode 9", decompose_compatible_all,
     UINT64_C(0x08D6B57D09839F23)},
    {"general category, Unicode 16", category_all, UINT64_C(0x56C777498B128371)},
    {"grapheme clusters, Unicode 17", grapheme_all, UINT64_C(0x304B4660B391A7BB)},
    {"numeric characters, Unicode 17", numeric_all, UINT64_C(0x3E1A1D027744696F)},
    {"lower case, Unicode 17", lower_all, UINT64_C(0x1DFAC535612208C3)},
};

/* What decomposes to two characters and stays in NFC composes from them, and nothing
** else does: 940 pairs, Hangul apart, as in Unicode 9. */
static void test_compositions(void **state) {
  compositions table = {0};
  int pairs = 0;
  assert_int_equal(compositions_build(&table, NULL), BERT_OK);
  for (uint32_t c = 0; c < 0x110000; c++) {
    uint32_t parts[UNICODE_DECOMPOSED], base;
    int count = unicode_decompose(c, parts);
    if (count < 2 || (c >= 0xAC00 && c <= 0xD7A3)) continue;
    base = parts[0];
    for (int i = 1; i < count && base != 0; i++) base = unicode_compose(&table, base, parts[i]);
    assert_int_equal(base == c, unicode_is_composed(c));
    pairs += base == c;
  }
  assert_int_equal(pairs, 940);
  assert_int_equal(unicode_compose(&table, 0x1100, 0x1161), 0xAC00);
  assert_int_equal(unicode_compose(&table, 0xAC00, 0x11A8), 0xAC01);
  assert_int_equal(unicode_compose(&table, 0xAC00, 0x11A7), 0); /* no final at all */
  assert_int_equal(unicode_compose(&table, 0xAC01, 0x11A8), 0);
  assert_int_equal(unicode_compose(&table, 'e', 0x301), 0xE9);
  assert_int_equal(unicode_compose(&table, 0x915, 0x93C), 0); /* excluded */
  compositions_free(&table);
}

static int count_clusters(const uint32_t *text, size_t size) {
  grapheme_state s = {0};
  int count = 0;
  for (size_t i = 0; i < size; i++) count += grapheme_begins(&s, text[i]);
  return count;
}

static void test_graphemes(void **state) {
  static const struct {
    uint32_t text[8];
    size_t size;
    int clusters;
  } cases[] = {{{'\r', '\n', 'a', 0x301}, 4, 2},
               {{0x1F1E6, 0x1F1E7, 0x1F1E8, 0x1F1E9, 0x1F1EA}, 5, 3}, /* flags, by two */
               {{0x1F469, 0x200D, 0x1F469, 0x1F3FD, 0x200D, 0x1F466}, 6, 1},
               {{'a', 0x200D, 0x1F466}, 3, 2},
               {{0x915, 0x94D, 0x937, 0x93F}, 4, 1}, /* a conjunct */
               {{0x915, 0x94D, 0x200D, 0x937}, 4, 1},
               {{0x915, 0x94D, 0x200C, 0x937}, 4, 2},
               {{0x915, 0x937}, 2, 2},
               {{0x1100, 0x1161, 0x11A8, 0xAC00, 0x11A8, 0x1100}, 6, 3},
               {{0x600, 'a', 0x903}, 3, 1},
               {{0x301, '\n', 0x301}, 3, 3}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(count_clusters(cases[i].text, cases[i].size), cases[i].clusters);
}

static void test_digests(void **state) {
  int wrong = 0;
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (uint32_t c = 0; c < 0x110000; c++)
      if (c < 0xD800 || c >= 0xE000) hash = tables[i].add(hash, c);
    if (hash != tables[i].digest) {
      print_error("%s: digest 0x%016llX\n", tables[i].name, (unsigned long long)hash);
      wrong++;
    }
  }
  assert_int_equal(wrong, 0);
}

/* The characters on which versions differ, by name of the rule. */
static void test_versions(void **state) {
  uint32_t out[UNICODE_DECOMPOSED];
  assert_true(unicode_is_mark(0x1734) && unicode_is_punctuation(0x166D));    /* changed since */
  assert_true(!unicode_is_mark(0x1885) && !unicode_is_mark(0xA9BD));         /* changed since */
  assert_true(unicode_is_punctuation(0x111C9) && !unicode_is_mark(0x111C9)); /* changed in 11 */
  assert_true(!unicode_is_mark(0x8D4) && !unicode_is_mark(0x1E000));         /* added in 9 */
  assert_true(!unicode_is_punctuation(0x2E43) && !unicode_is_other(0x8E2));  /* added in 9 */
  assert_true(unicode_is_other(0xE000) && unicode_is_other(0x10FFFD));
  assert_true(!unicode_is_other(0x378) && !unicode_is_other(0xFFFE)); /* Cn does not count */
  assert_int_equal(unicode_combining_class(0x8D4), 230);              /* added in 9 */
  assert_int_equal(unicode_combining_class(0x1DF6), 0);               /* added in 10 */
  assert_int_equal(unicode_decompose(0x11938, out), 1);               /* added in 13 */
  assert_int_equal(unicode_decompose(0x1D15E, out), 2);
  assert_int_equal(unicode_decompose(0xD4DB, out), 3); /* Hangul */
  assert_int_equal(unicode_lower(0x16EA0, out), 1);    /* added in 17 */
  assert_int_equal(out[0], 0x16EBB);
  assert_int_equal(unicode_lower(0x130, out), 2);
  assert_int_equal(out[1], 0x307);
  assert_int_equal(unicode_lower(0x3A3, out), 1); /* never the final form */
  assert_int_equal(out[0], 0x3C3);
  assert_true(unicode_is_word(0x16100) && !unicode_is_word(0x88F)); /* added in 16, in 17 */
  assert_true(unicode_is_word(0x24B6) && unicode_is_word(0x200D) && unicode_is_word('_'));
  assert_true(!unicode_is_chinese(0x2B820) && unicode_is_chinese(0x2B920)); /* the slip */
}

/* ---- Marks in order -------------------------------------------------------- */

/* One character of a text and its bytes. */
typedef struct source {
  uint32_t c;
  size_t start, stop;
} source;

/* An item of the decomposed text. */
typedef struct item {
  uint32_t c;
  int first;
} item;

/* What the reference does, with arrays: decompose, sort the marks behind each
** starter by class, give the n-th that replaces a character the n-th one's
** bytes, remove nonspacing marks. Returns the count. */
static size_t sort_marks(const source *sources, size_t count, normal_char *out) {
  item items[256];
  size_t n = 0, kept = 0, order = 0;
  for (size_t i = 0; i < count; i++) {
    uint32_t parts[UNICODE_DECOMPOSED];
    int many = unicode_decompose(sources[i].c, parts);
    for (int k = 0; k < many; k++) items[n++] = (item){parts[k], k == 0};
  }
  for (size_t i = 1; i < n; i++) { /* stable insertion sort, starters stand */
    item moving = items[i];
    int class = unicode_combining_class(moving.c);
    size_t k = i;
    for (; class > 0 && k > 0 && unicode_combining_class(items[k - 1].c) > class; k--)
      items[k] = items[k - 1];
    items[k] = moving;
  }
  for (size_t i = 0; i < n; i++) {
    const source *from = &sources[items[i].first ? order++ : order - 1];
    if (!unicode_is_mark(items[i].c))
      out[kept++] = (normal_char){.c = items[i].c, .start = from->start, .stop = from->stop};
  }
  return kept;
}

static uint32_t random_next(uint32_t *seed) { /* xorshift */
  *seed ^= *seed << 13;
  *seed ^= *seed >> 17;
  *seed ^= *seed << 5;
  return *seed;
}

static void check_order(const normalizer *n, const source *sources, size_t count, const char *text,
                        size_t size) {
  normal_char expected[256] = {0}, c;
  size_t kept = sort_marks(sources, count, expected), got = 0;
  added_scan scan;
  reader r;
  added_scan_begin(&scan, NULL, (bert_text){text, size});
  reader_begin(&r, n, &scan);
  for (; reader_next(&r, &c); got++) {
    if (got >= kept) fail_msg("more characters than %zu", kept);
    if (c.c != expected[got].c || c.start != expected[got].start || c.stop != expected[got].stop)
      fail_msg("character %zu of %zu: U+%04X %zu-%zu, expected U+%04X %zu-%zu", got, kept, c.c,
               c.start, c.stop, expected[got].c, expected[got].start, expected[got].stop);
  }
  assert_int_equal(got, kept);
}

static void test_mark_order(void **state) {
  static const uint32_t alphabet[] = {
      'a',    0xE9,   0x301,  0x327,   0x323,   0x344,   0x1B44, 0x302E,  0x1D165, 0x1D16E,
      0x8D4,  0x8D6,  0x1E00, 0x1D160, 0x1D1BD, 0x1E944, 0x0F73, 0xAC01,  0x0DDD,  0x93C,
      0x1BAA, 0x3099, 0x0900, 0x1E000, 0x111C0, 0xA953,  0x302F, 0x1D16D, 0x5B0,   0x64B};
  normalizer n = {0};
  uint32_t seed = 20260501;
  bert_error error = {0};
  assert_ok(normalizer_build(&n, NORMALIZER_STRIP, &error), &error);
  for (int round = 0; round < 100000; round++) {
    source sources[40];
    char text[160];
    size_t size = 0, count = 1 + random_next(&seed) % 12;
    for (size_t i = 0; i < count; i++) {
      uint32_t c = alphabet[random_next(&seed) % (sizeof alphabet / sizeof *alphabet)];
      size_t bytes = unicode_put(c, text + size);
      sources[i] = (source){c, size, size + bytes};
      size += bytes;
    }
    check_order(&n, sources, count, text, size);
  }
  normalizer_free(&n);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_valid),
                                     cmocka_unit_test(test_maximal_parts),
                                     cmocka_unit_test(test_put_and_previous),
                                     cmocka_unit_test(test_digests),
                                     cmocka_unit_test(test_compositions),
                                     cmocka_unit_test(test_graphemes),
                                     cmocka_unit_test(test_versions),
                                     cmocka_unit_test(test_mark_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
