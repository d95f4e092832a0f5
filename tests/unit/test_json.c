/*
** test_json.c: the JSON reader: what it takes, what it refuses and where, and
** that no text, cut or mutated or short of memory, does harm.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <locale.h>
#include <math.h>
#include <time.h>

#include <cmocka.h>

#include "encoder/base/base.h"
#include "faults.h"
#include "scratch.h"

/* Parses a copy of exactly `size` bytes, so that AddressSanitizer sees a byte
** read too many. */
static bert_status parse(const char *text, size_t size, json_document **document,
                         bert_error *error) {
  char *copy = malloc(size == 0 ? 1 : size);
  if (size > 0) memcpy(copy, text, size);
  *document = NULL;
  bert_status status = json_parse(size == 0 ? NULL : copy, size, document, error);
  free(copy);
  return status;
}

static json_document *parse_good(const char *text) {
  json_document *document = NULL;
  bert_error error = {0};
  if (parse(text, strlen(text), &document, &error) != BERT_OK) fail_msg("%s: %s", text, error.text);
  return document;
}

/* ---- Accepted ---------------------------------------------------------- */

static const char *const accepted[] = {
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "-1",
    "10",
    "1.5",
    "-1.5e3",
    "1E5",
    "1e+5",
    "1e-5",
    "0.0",
    "0e0",
    "1e-400",
    "123456789012345678901234567890",
    "\"\"",
    "\"a\"",
    " 1 ",
    "\t\r\n 1\n",
    "[]",
    "[ ]",
    "{}",
    "{ }",
    "[1]",
    "[1,2]",
    "[ 1 , 2 ]",
    "[[]]",
    "[[],{}]",
    "{\"a\":1}",
    "{ \"a\" : 1 , \"b\" : [ ] }",
    "{\"\":0}",
    "{\"a\":{\"a\":{\"a\":1}}}",
    "[\"\"]",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
    "\"\\u0041\"",
    "\"\\u00e9\\u20AC\\uD83D\\uDE00\"",
    "\"\\uFFFF\\uFFFE\"",
    "\"\x7F\"",
    "\"\xC2\x80\xDF\xBF\"",
    "\"\xE0\xA0\x80\xEF\xBF\xBF\"",
    "\"\xED\x9F\xBF\xEE\x80\x80\"",
    "\"\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\"",
    "[null,true,false]",
    "{\"a\":1,\"A\":1,\"aa\":1,\"\\u0061a \":1}",
    "\"/\"",
    "\"null\"",
    "[1e1,1E1]",
    "\"12345678\"",
    "\"1234567\\n12345678\\n\"",
    "\"123456789012345\xC3\xA9"
    "1234567\"",
    "{\"a\":[{\"b\":[{\"c\":null}]}]}",
};

static void test_accepts(void **state) {
  for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++)
    json_free(parse_good(accepted[i]));
}

/* ---- Refused ----------------------------------------------------------- */

typedef struct refused_case {
  const char *text;
  int offset;
  const char *part; /* of the error */
} refused_case;

static const refused_case refused[] = {
    {"", 0, "expected a value, but the text ends"},
    {" ", 1, "expected a value, but the text ends"},
    {"x", 0, "expected a value, not 'x'"},
    {"nul", 0, "expected a value"},
    {"nulL", 0, "expected a value"},
    {"True", 0, "expected a value"},
    {"NaN", 0, "expected a value"},
    {"Infinity", 0, "expected a value"},
    {"-Infinity", 1, "expected a digit, not 'I'"},
    {"'a'", 0, "expected a value"},
    {"+1", 0, "expected a value"},
    {".5", 0, "expected a value"},
    {"-", 1, "expected a digit, but the text ends"},
    {"-a", 1, "expected a digit, not 'a'"},
    {"01", 1, "nothing more"},
    {"-01", 2, "nothing more"},
    {"1.", 2, "a digit after the decimal point"},
    {"1.e5", 2, "a digit after the decimal point"},
    {"1e", 2, "a digit of the exponent"},
    {"1e+", 3, "a digit of the exponent"},
    {"1e1.5", 3, "nothing more"},
    {"0x10", 1, "nothing more"},
    {"1_000", 1, "nothing more"},
    {"1e400", 0, "too large"},
    {"-1e400", 0, "too large"},
    {"[1e999]", 1, "too large"},
    {"1 2", 2, "nothing more"},
    {"[]]", 2, "nothing more"},
    {"{}}", 2, "nothing more"},
    {"1,", 1, "nothing more"},
    {"null null", 5, "nothing more"},
    {"// a\n1", 0, "expected a value"},
    {"[1 /* a */]", 3, "',' or ']'"},
    {"[", 1, "but the text ends"},
    {"[1", 2, "',' or ']'"},
    {"[1,", 3, "expected a value"},
    {"[1,]", 3, "expected a value"},
    {"[,1]", 1, "expected a value"},
    {"[1,,2]", 3, "expected a value"},
    {"[1 2]", 3, "',' or ']'"},
    {"[1}", 2, "',' or ']'"},
    {"[1:2]", 2, "',' or ']'"},
    {"{", 1, "a key in quotes"},
    {"{1:2}", 1, "a key in quotes"},
    {"{a:1}", 1, "a key in quotes"},
    {"{\"a\"", 4, "':' after a key"},
    {"{\"a\" 1}", 5, "':' after a key"},
    {"{\"a\",1}", 4, "':' after a key"},
    {"{\"a\":", 5, "expected a value"},
    {"{\"a\":}", 5, "expected a value"},
    {"{\"a\":1", 6, "',' or '}'"},
    {"{\"a\":1,", 7, "a key in quotes"},
    {"{\"a\":1,}", 7, "a key in quotes"},
    {"{\"a\":1]", 6, "',' or '}'"},
    {"{\"a\":1 \"b\":2}", 7, "',' or '}'"},
    {"{\"a\":1;\"b\":2}", 6, "',' or '}'"},
    {"{\"a\":1,\"a\":2}", 7, "\"a\" stands twice"},
    {"{\"a\":1,\"\\u0061\":2}", 7, "\"a\" stands twice"},
    {"[{\"x\":[{\"k\":1,\"j\":2,\"k\":3}]}]", 20, "\"k\" stands twice"},
    {"{\"\":1,\"\":2}", 6, "stands twice"},
    {"\"", 0, "without its closing quote"},
    {"\"abc", 0, "without its closing quote"},
    {"[\"abcdefghijklmnop]", 1, "without its closing quote"},
    {"\"\\", 1, "unknown escape"},
    {"\"\\\"", 0, "without its closing quote"},
    {"\"\\x41\"", 1, "unknown escape"},
    {"\"\\'\"", 1, "unknown escape"},
    {"\"\\U0041\"", 1, "unknown escape"},
    {"\"\\u\"", 1, "four hexadecimal digits"},
    {"\"\\u00\"", 1, "four hexadecimal digits"},
    {"\"\\u00g0\"", 1, "four hexadecimal digits"},
    {"\"\\u+123\"", 1, "four hexadecimal digits"},
    {"\"\\u0000\"", 1, "\\u0000 is not allowed"},
    {"\"\\uD83D\"", 1, "surrogate"},
    {"\"\\uD83Dx\"", 1, "surrogate"},
    {"\"\\uD83D\\n\"", 1, "surrogate"},
    {"\"\\uD83D\\u0041\"", 1, "surrogate"},
    {"\"\\uD83D\\uD83D\"", 1, "surrogate"},
    {"\"\\uDE00\"", 1, "surrogate"},
    {"\"\\uDFFF\"", 1, "surrogate"},
    {"\"\\uD83D\\uE000\"", 1, "surrogate"},
    {"\"a\nb\"", 2, "control character"},
    {"\"a\tb\"", 2, "control character"},
    {"\"12345678\x01\"", 9, "control character"},
    {"\"\x1F\"", 1, "control character"},
    {"\"\x80\"", 1, "not UTF-8"},
    {"\"\xC0\x80\"", 1, "not UTF-8"},
    {"\"\xC1\xBF\"", 1, "not UTF-8"},
    {"\"\xC3\"", 1, "not UTF-8"},
    {"\"\xC3", 1, "not UTF-8"},
    {"\"\xE0\x9F\xBF\"", 1, "not UTF-8"},
    {"\"\xED\xA0\x80\"", 1, "not UTF-8"},
    {"\"\xE2\x82\"", 1, "not UTF-8"},
    {"\"\xF0\x8F\xBF\xBF\"", 1, "not UTF-8"},
    {"\"\xF4\x90\x80\x80\"", 1, "not UTF-8"},
    {"\"\xF5\x80\x80\x80\"", 1, "not UTF-8"},
    {"\"\xFF\"", 1, "not UTF-8"},
    {"{\"\xFF\":1}", 2, "not UTF-8"},
    {"\xEF\xBB\xBF{}", 0, "expected a value, not the byte 0xEF"},
    {"\xC3\xA9", 0, "not the byte 0xC3"},
    {"[\n1,\n2,\n x]", 9, "(line 4)"},
    {"[\"\\n\\n\\n\",\n x]", 12, "(line 2)"},
    {"\f1", 0, "not the byte 0x0C"},
    {"\xC2\xA0"
     "1",
     0, "not the byte 0xC2"},
};

static void check_refused(const char *text, size_t size, int offset, const char *part) {
  json_document *document = NULL;
  bert_error error = {0};
  char place[40];
  snprintf(place, sizeof place, "byte %d (line ", offset);
  bert_status status = parse(text, size, &document, &error);
  if (status != BERT_INVALID || error.status != BERT_INVALID || document != NULL)
    fail_msg("accepted: %s", text);
  if (strncmp(error.text, place, strlen(place)) != 0 || strstr(error.text, part) == NULL)
    fail_msg("%s: \"%s\", expected \"%s...%s\"", text, error.text, place, part);
}

static void test_refuses(void **state) {
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
    check_refused(refused[i].text, strlen(refused[i].text), refused[i].offset, refused[i].part);
  json_document *document = NULL;
  assert_int_equal(json_parse("x", 1, &document, NULL), BERT_INVALID); /* no error wanted */
}

/* A NUL is a byte like others, not an end. */
static void test_refuses_nul(void **state) {
  check_refused("1\0", 2, 1, "not the byte 0x00");
  check_refused("\0001", 2, 0, "not the byte 0x00");
  check_refused("[1\0]", 4, 2, "not the byte 0x00");
  check_refused("\"a\0b\"", 5, 2, "control character");
  check_refused("{\"a\0\":1}", 8, 3, "control character");
  check_refused("nul\0", 4, 0, "expected a value");
}

/* Nesting of `depth` arrays or objects. */
static char *nested(const char *open, const char *close, int depth) {
  char *text = calloc(1, (strlen(open) + strlen(close)) * (size_t)depth + 2), *at = text;
  for (int i = 0; i < depth; i++) at = stpcpy(at, open);
  at = stpcpy(at, "1");
  for (int i = 0; i < depth; i++) at = stpcpy(at, close);
  return text;
}

static void test_depth(void **state) {
  char *text = nested("[", "]", JSON_MAX_DEPTH);
  json_free(parse_good(text));
  free(text);
  text = nested("{\"a\":", "}", JSON_MAX_DEPTH);
  json_free(parse_good(text));
  free(text);
  text = nested("[", "]", JSON_MAX_DEPTH + 1);
  check_refused(text, strlen(text), JSON_MAX_DEPTH, "nested too deep");
  free(text);
  text = nested("[", "]", 1000000);
  check_refused(text, strlen(text), JSON_MAX_DEPTH, "nested too deep");
  free(text);
  text = nested("[{},", "]", JSON_MAX_DEPTH - 1); /* closed ones do not count */
  json_free(parse_good(text));
  free(text);
}

/* ---- Values ------------------------------------------------------------ */

static void test_strings(void **state) {
  static const char *const pairs[][2] = {
      {"\"\"", ""},
      {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
      {"\"\\u0041\\u00e9\\u20AC\\uD83D\\uDE00\"", "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
      {"\"\\u0001\\u007f\\u0080\\u07ff\\u0800\\uffff\"",
       "\x01\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF"},
      {"\"\\uD800\\uDC00\\uDBFF\\uDFFF\"", "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"},
      {"\"1234567\\t12345678\\t123456789\"", "1234567\t12345678\t123456789"},
      {"\"12345678\xC3\xA9\\n\xF0\x9F\x98\x80 x\"", "12345678\xC3\xA9\n\xF0\x9F\x98\x80 x"},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    json_document *document = parse_good(pairs[i][0]);
    const json_value *v = json_root(document);
    assert_int_equal(v->type, JSON_STRING);
    assert_int_equal(v->size, strlen(pairs[i][1]));
    assert_string_equal(v->string, pairs[i][1]);
    assert_true(json_is(v, pairs[i][1]));
    json_free(document);
  }
}

/* Each character at each place of a string, since eight bytes are looked at at
** once. */
static void test_strings_everywhere(void **state) {
  for (int c = 1; c < 256; c++)
    for (int at = 0; at < 20; at++) {
      char text[32];
      memset(text, 'x', sizeof text);
      text[0] = text[21] = '"';
      text[1 + at] = (char)c;
      json_document *document = NULL;
      bert_status status = parse(text, 22, &document, NULL);
      int good = c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
      if (status != (good ? BERT_OK : BERT_INVALID)) fail_msg("byte %d at %d: %d", c, at, status);
      json_free(document);
    }
}

static void test_numbers(void **state) {
  static const struct {
    const char *text;
    double number;
    int is_integer;
    int64_t integer;
  } cases[] = {
      {"0", 0, 1, 0},
      {"-0", -0.0, 1, 0},
      {"12", 12, 1, 12},
      {"-7", -7, 1, -7},
      {"1.0", 1, 0, 0},
      {"1e2", 100, 0, 0},
      {"1e-12", 1e-12, 0, 0},
      {"0.1", 0.1, 0, 0},
      {"9007199254740993", 9007199254740992.0, 1, 9007199254740993},
      {"9223372036854775807", 9223372036854775808.0, 1, INT64_MAX},
      {"9223372036854775808", 9223372036854775808.0, 0, 0},
      {"-9223372036854775808", -9223372036854775808.0, 1, INT64_MIN},
      {"-9223372036854775809", -9223372036854775808.0, 0, 0},
      {"99999999999999999999999", 1e23, 0, 0},
      {"-11.456789016723633", -11.456789016723633, 0, 0},
      {"1000000000000000019884624838656", 1e30, 0, 0},
      {"1.7976931348623157e308", 1.7976931348623157e308, 0, 0},
      {"5e-324", 5e-324, 0, 0},
      {"1e-999", 0, 0, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    json_document *document = parse_good(cases[i].text);
    const json_value *v = json_root(document);
    assert_int_equal(v->type, JSON_NUMBER);
    assert_memory_equal(&v->number, &cases[i].number, sizeof(double));
    assert_int_equal(v->is_integer, cases[i].is_integer);
    assert_true(v->integer == cases[i].integer);
    json_free(document);
  }
}

static void test_tree(void **state) {
  json_document *document =
      parse_good("{\"a\":[1,\"two\",null,[],{}],\"b\":{\"c\":true},\"\":false,\"d\\u0065\":null}");
  const json_value *root = json_root(document);
  assert_int_equal(root->type, JSON_OBJECT);
  assert_int_equal(root->size, 4);
  assert_null(root->key);
  const json_value *a = json_get(root, "a");
  assert_ptr_equal(a, root->first);
  assert_int_equal(a->type, JSON_ARRAY);
  assert_int_equal(a->size, 5);
  const json_value *v = a->first;
  assert_true(v->is_integer && v->integer == 1 && v->key == NULL);
  v = v->next;
  assert_true(json_is(v, "two") && !json_is(v, "tw") && !json_is(v, "two "));
  v = v->next;
  assert_int_equal(v->type, JSON_NULL);
  v = v->next;
  assert_true(v->type == JSON_ARRAY && v->size == 0 && v->first == NULL);
  v = v->next;
  assert_true(v->type == JSON_OBJECT && v->size == 0 && v->first == NULL && v->next == NULL);
  assert_int_equal(json_get(json_get(root, "b"), "c")->type, JSON_TRUE);
  assert_int_equal(json_get(root, "")->type, JSON_FALSE);
  assert_int_equal(json_get(root, "")->key_size, 0);
  const json_value *de = json_get(root, "de");
  assert_true(de != NULL && de->type == JSON_NULL && de->key_size == 2);
  assert_string_equal(de->key, "de");
  assert_null(json_get(root, "x"));
  assert_null(json_get(a, "a"));
  assert_null(json_get(NULL, "a"));
  assert_false(json_is(NULL, "a"));
  assert_false(json_is(root, "a"));
  json_free(document);
  json_free(NULL);
  assert_null(json_root(NULL));
}

/* ---- Typed reading ----------------------------------------------------- */

static void expect_text(bert_status status, bert_status expected, const bert_error *error,
                        const char *part) {
  assert_int_equal(status, expected);
  assert_int_equal(error->status, expected);
  if (strstr(error->text, part) == NULL) fail_msg("\"%s\" lacks \"%s\"", error->text, part);
}

static void test_typed_reading(void **state) {
  json_document *document =
      parse_good("{\"i\":5,\"f\":0.5,\"big\":1e30,\"s\":\"x\",\"t\":true,\"no\":"
                 "false,\"null\":null,\"a\":[],\"o\":{}}");
  const json_value *root = json_root(document);
  bert_error error = {0};
  int64_t i = -1;
  assert_int_equal(json_get_int(root, "i", 5, 5, &i, NULL), BERT_OK);
  assert_true(i == 5);
  i = -1;
  assert_int_equal(json_get_int(root, "null", 0, 9, &i, NULL), BERT_OK);
  assert_int_equal(json_get_int(root, "absent", 0, 9, &i, NULL), BERT_OK);
  assert_int_equal(json_get_int(NULL, "i", 0, 9, &i, NULL), BERT_OK);
  assert_int_equal(json_get_int(root, "i", 6, 9, &i, NULL), BERT_INVALID);
  expect_text(json_get_int(root, "i", 6, 9, &i, &error), BERT_INVALID, &error,
              "\"i\" must be an integer from 6 to 9, not 5");
  expect_text(json_get_int(root, "i", -9, 4, &i, &error), BERT_INVALID, &error, "from -9 to 4");
  expect_text(json_get_int(root, "f", 0, 9, &i, &error), BERT_INVALID, &error, "not 0.5");
  expect_text(json_get_int(root, "big", 0, 9, &i, &error), BERT_INVALID, &error, "not 1e+30");
  expect_text(json_get_int(root, "s", 0, 9, &i, &error), BERT_INVALID, &error, "not \"x\"");
  expect_text(json_get_int(root, "t", 0, 9, &i, &error), BERT_INVALID, &error, "not true");
  expect_text(json_get_int(root, "a", 0, 9, &i, &error), BERT_INVALID, &error, "not an array");
  assert_true(i == -1);
  double d = -1;
  assert_int_equal(json_get_number(root, "i", 0, 9, &d, NULL), BERT_OK);
  assert_true(d == 5);
  assert_int_equal(json_get_number(root, "big", 0, 1e31, &d, NULL), BERT_OK);
  assert_true(d == 1e30);
  expect_text(json_get_number(root, "f", 1, 2, &d, &error), BERT_INVALID, &error,
              "\"f\" must be a number from 1 to 2, not 0.5");
  expect_text(json_get_number(root, "no", 0, 9, &d, &error), BERT_INVALID, &error, "not false");
  assert_true(d == 1e30);
  int b = -1;
  assert_int_equal(json_get_bool(root, "t", &b, NULL), BERT_OK);
  assert_int_equal(b, 1);
  assert_int_equal(json_get_bool(root, "no", &b, NULL), BERT_OK);
  assert_int_equal(b, 0);
  assert_int_equal(json_get_bool(root, "null", &b, NULL), BERT_OK);
  expect_text(json_get_bool(root, "i", &b, &error), BERT_INVALID, &error,
              "\"i\" must be true or false, not 5");
  const char *s = "before";
  assert_int_equal(json_get_string(root, "null", &s, NULL), BERT_OK);
  assert_string_equal(s, "before");
  assert_int_equal(json_get_string(root, "s", &s, NULL), BERT_OK);
  assert_string_equal(s, "x");
  expect_text(json_get_string(root, "o", &s, &error), BERT_INVALID, &error,
              "\"o\" must be a string, not an object");
  json_free(document);
}

/* ---- Many keys --------------------------------------------------------- */

/* An object of `count` keys, key `again` written a second time at the end. */
static char *many_keys(int count, int again) {
  char *text = malloc((size_t)count * 32 + 64), *at = text;
  *at++ = '{';
  for (int i = 0; i < count; i++) at += sprintf(at, "%s\"key%d\":%d", i ? "," : "", i, i);
  if (again >= 0) at += sprintf(at, ",\"key%d\":0", again);
  strcpy(at, "}");
  return text;
}

static void test_duplicates_among_many(void **state) {
  static const int counts[] = {1, 7, 8, 9, 10, 16, 17, 100, 1000, 50000};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    int count = counts[i];
    char *text = many_keys(count, -1);
    json_document *document = parse_good(text);
    assert_int_equal(json_root(document)->size, count);
    json_free(document);
    free(text);
    for (int k = 0; k < 3; k++) {
      int again = k == 0 ? 0 : k == 1 ? count / 2 : count - 1;
      text = many_keys(count, again);
      char part[64];
      snprintf(part, sizeof part, "\"key%d\" stands twice", again);
      check_refused(text, strlen(text), (int)(strrchr(text, ',') - text + 1), part);
      free(text);
    }
  }
}

/* Time grows with the text and not with its square: the real vocabulary and ten
** times 30,000 keys, with a limit that only a wrong order could pass. */
static void test_large(void **state) {
  char *text = many_keys(300000, -1);
  clock_t begin = clock();
  json_free(parse_good(text));
  double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
  free(text);
  if (seconds > 10) fail_msg("300,000 keys took %.1f s", seconds);
  size_t size;
  text = scratch_read("models/all-MiniLM-L6-v2", "tokenizer.json", &size);
  json_document *document = parse_good(text);
  const json_value *vocab = json_get(json_get(json_root(document), "model"), "vocab");
  assert_int_equal(vocab->size, 30522);
  assert_true(json_get(vocab, "[CLS]")->integer == 101);
  json_free(document);
  free(text);
}

static void test_locale(void **state) {
  if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL) setlocale(LC_ALL, "");
  json_document *document = parse_good("[0.5,1.25e-300]");
  assert_true(json_root(document)->first->number == 0.5);
  assert_true(json_root(document)->first->next->number == 1.25e-300);
  json_free(document);
  setlocale(LC_ALL, "C");
}

/* ---- Harm -------------------------------------------------------------- */

static const char sample[] =
    "{\"a\\u00e9\":[1,-2.5e-3,\"x\\uD83D\\uDE00y\\n\",null,true,false,[],{}],\n"
    " \"\xC3\xA9\xF0\x9F\x98\x80\":{\"b\":{\"c\":[[[\"deep\"]]]}},\"n\":123456789012345678901234,\n"
    " \"k1\":1,\"k2\":2,\"k3\":3,\"k4\":4,\"k5\":5,\"k6\":6,\"k7\":7,\"k8\":8,\"k9\":9}";

static void test_cut_everywhere(void **state) {
  for (size_t size = 0; size < sizeof sample - 1; size++) {
    json_document *document = NULL;
    bert_error error = {0};
    assert_int_equal(parse(sample, size, &document, &error), BERT_INVALID);
    assert_null(document);
  }
  json_free(parse_good(sample));
}

/* Walks a tree and checks what its header promises. */
static size_t walk(const json_value *v, int depth) {
  size_t count = 0, members = 0;
  assert_true(depth <= JSON_MAX_DEPTH + 1);
  if (v->key != NULL) assert_int_equal(strlen(v->key), v->key_size);
  if (v->type == JSON_STRING) assert_int_equal(strlen(v->string), v->size);
  if (v->type == JSON_NUMBER) assert_true(isfinite(v->number));
  for (const json_value *m = v->first; m != NULL; m = m->next, members++) {
    assert_true(v->type == JSON_ARRAY || v->type == JSON_OBJECT);
    assert_true((m->key != NULL) == (v->type == JSON_OBJECT));
    count += walk(m, depth + 1);
  }
  if (v->type == JSON_ARRAY || v->type == JSON_OBJECT) assert_int_equal(members, v->size);
  return count + 1;
}

static void test_mutations(void **state) {
  static const char alphabet[] =
      "{}[]\",:\\u0123456789abcdefDE+-. \n\x01\x7F\x80\xC3\xE2\xED\xF0\xFF";
  uint64_t random = 20240607;
  char text[sizeof sample + 32];
  int good = 0;
  for (int i = 0; i < 100000; i++) {
    size_t size = sizeof sample - 1;
    memcpy(text, sample, size);
    for (int k = (int)(random >> 60) % 4; k >= 0; k--) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      size_t at = (size_t)(random >> 33) % size;
      char c = alphabet[(random >> 20) % (sizeof alphabet - 1)];
      switch ((random >> 10) % 3) {
      case 0: text[at] = c; break;
      case 1: memmove(text + at, text + at + 1, --size - at); break;
      default: memmove(text + at + 1, text + at, size++ - at); text[at] = c;
      }
    }
    json_document *document = NULL;
    bert_error error = {0};
    bert_status status = parse(text, size, &document, &error);
    assert_true(status == BERT_OK || (status == BERT_INVALID && error.text[0] != '\0'));
    if (status == BERT_OK) good += walk(json_root(document), 0) > 0;
    json_free(document);
  }
  assert_true(good > 5000 && good < 95000); /* both sides were seen */
}

static bert_status parse_once(void *user, bert_error *error) {
  json_document *document = NULL;
  bert_status status = json_parse(user, strlen(user), &document, error);
  assert_true((status == BERT_OK) == (document != NULL));
  json_free(document);
  return status;
}

static void test_no_memory(void **state) {
  char *text = many_keys(500, -1);
  assert_true(faults_each(parse_once, text) >= 6);
  free(text);
  text = strdup(sample);
  assert_true(faults_each(parse_once, text) >= 4);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_accepts),        cmocka_unit_test(test_refuses),
      cmocka_unit_test(test_refuses_nul),    cmocka_unit_test(test_depth),
      cmocka_unit_test(test_strings),        cmocka_unit_test(test_strings_everywhere),
      cmocka_unit_test(test_numbers),        cmocka_unit_test(test_tree),
      cmocka_unit_test(test_typed_reading),  cmocka_unit_test(test_duplicates_among_many),
      cmocka_unit_test(test_large),          cmocka_unit_test(test_locale),
      cmocka_unit_test(test_cut_everywhere), cmocka_unit_test(test_mutations),
      cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
