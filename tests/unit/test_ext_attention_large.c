/*
** test_ext_attention_large.c: 512 tokens, 12 layers, 12 heads, 38 million
** weights: what they cost in memory and passes, and that a few of them come at
** once.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "checkpoint.h"
#include "dice.h"
#include "scratch.h"
#include "sqldb.h"

/* 600 words, so that the text fills all positions. */
#define TEXT "replace(hex(zeroblob(300)), '00', 'time flies ')"
#define OPTIONS "json_object('max_tokens', (SELECT n FROM tokens))"
#define WEIGHTS "attn_weights(" TEXT ", NULL, NULL, " OPTIONS ")"

static char *directory;

/* Tokens of the text: all positions, or fewer under valgrind. */
static int tokens(void) {
  return dice_size(DEEP_POSITIONS, 128);
}

static int open_group(void **state) {
  directory = checkpoint_deep();
  sqlite3 *db = sqldb_open(NULL);
  char *load = sqlite3_mprintf(
      "SELECT bert_load(%Q, 'deep'); CREATE TABLE tokens AS SELECT %d AS n", directory, tokens());
  assert_runs(db, load);
  sqlite3_free(load);
  assert_runs(db, "SELECT bert_set('threads', 1)");
  *state = db;
  return 0;
}

static int close_group(void **state) {
  sqldb_close(*state);
  scratch_free(directory);
  return 0;
}

/* Bytes that `sql`, which has this answer, takes above what was in use before. */
static sqlite3_int64 bytes_taken(sqlite3 *db, const char *sql, const char *answer) {
  sqlite3_int64 before = sqlite3_memory_used();
  sqlite3_memory_highwater(1);
  assert_answer(db, sql, answer);
  return sqlite3_memory_highwater(0) - before;
}

/* The number as often as asked, as an answer; the caller's until the next call. */
static const char *answer_of(int number, int times) {
  static char text[100];
  size_t at = 0;
  for (int i = 0; i < times; i++)
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%d", i ? "|" : "", number);
  return text;
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A matrix of one head of 512 tokens is 1 MB, all of them are 151 MB. */
enum { MATRIX = DEEP_POSITIONS * DEEP_POSITIONS * 4, ROW = DEEP_POSITIONS * 4 };

static void the_model_is_what_it_should_be(void **state) {
  sqlite3 *db = *state;
  assert_answer(db, "SELECT layers, heads FROM bert_models", "12|12");
  assert_answer(
      db, "SELECT sum(used) = n, count(*) > n FROM tokens, bert_tokens(" TEXT ", " OPTIONS ")",
      "1|1");
  /* Heads of random weights, no two alike, and not flat. */
  assert_answer(db,
                "SELECT count(DISTINCT round(entropy, 10)), avg(entropy_norm) < 0.99 FROM "
                "attn_heads(" TEXT ", " OPTIONS ")",
                "144|1");
}

static void a_scan_of_everything_holds_a_few_rows(void **state) {
  sqlite3 *db = *state;
  assert_runs(db, "SELECT count(*) FROM attn_heads(" TEXT ", " OPTIONS ") WHERE layer = 0");
  /* One query and one key of every head: 73,728 rows, of 38 million. */
  sqlite3_int64 some = bytes_taken(
      db, "SELECT count(*), count(weight), count(score) FROM " WEIGHTS " WHERE q_pos = 100",
      answer_of(144 * tokens(), 3));
  sqlite3_int64 all = bytes_taken(db,
                                  "SELECT count(*) = n * n, count(DISTINCT q_token), sum(weight) > "
                                  "n - 1 FROM tokens, attn_weights(" TEXT ", 3, 4, " OPTIONS ")",
                                  "1|5|1");
  print_message("one query of 144 heads: %lld bytes; one head: %lld bytes\n", some, all);
  assert_true(some < 100 * ROW);
  assert_true(all < 150 * ROW);
}

static void a_scan_of_words_holds_one_head(void **state) {
  sqlite3 *db = *state;
  sqlite3_int64 taken =
      bytes_taken(db,
                  "SELECT count(*), count(DISTINCT layer || '.' || head) FROM "
                  "attn_weights(" TEXT ", NULL, NULL, "
                  "json_set(" OPTIONS ", '$.words', json('true'))) WHERE q_pos = 7 AND "
                  "k_pos = 7 AND weight >= 0",
                  "144|144");
  print_message("144 heads in words: %lld bytes\n", taken);
  assert_true(taken < 2 * MATRIX + 150 * ROW);
}

static void statistics_of_all_heads_hold_one(void **state) {
  sqlite3 *db = *state;
  sqlite3_int64 taken =
      bytes_taken(db,
                  "SELECT count(*), count(norm_mean), max(abs(first)) < 1 FROM attn_heads(" TEXT
                  ", " OPTIONS ")",
                  "144|144|1");
  print_message("statistics of 144 heads: %lld bytes\n", taken);
  assert_true(taken < MATRIX + 150 * ROW);
}

static void rollout_holds_three_matrices(void **state) {
  sqlite3 *db = *state;
  sqlite3_int64 taken = bytes_taken(
      db,
      "SELECT count(*) = n * n, abs(sum(weight) - n) < 1e-3 FROM tokens, attn_rollout(" TEXT
      ", " OPTIONS ") WHERE layer = 11",
      "1|1");
  print_message("rollout: %lld bytes\n", taken);
  assert_true(taken < 3 * MATRIX + 200 * ROW);
}

/* The first ten of 38 million rows, and count(*) of a layer, compute next to
** nothing; no forward pass either, since the one of the tests above is kept. */
static void the_first_rows_come_at_once(void **state) {
  sqlite3 *db = *state;
  double start = seconds();
  assert_answer(
      db, "SELECT count(*), sum(typeof(weight) = 'real') FROM (SELECT * FROM " WEIGHTS " LIMIT 10)",
      "10|10");
  assert_answer(db,
                "SELECT count(*) FROM (SELECT * FROM attn_rollout(" TEXT ", " OPTIONS ") LIMIT 10)",
                "10");
  assert_answer(
      db, "SELECT count(*) FROM (SELECT * FROM attn_neurons(" TEXT ", 0, 0, " OPTIONS ") LIMIT 10)",
      "10");
  double taken = seconds() - start;
  print_message("first rows of three tables: %.3f s\n", taken);
  assert_true(taken < 5);
  assert_true(bytes_taken(db, "SELECT count(*) FROM attn_weights(" TEXT ", 0, NULL, " OPTIONS ")",
                          answer_of(12 * tokens() * tokens(), 1)) < 50 * ROW);
}

static void all_of_it_took_one_pass(void **state) {
  assert_answer(*state, "SELECT bert_info() ->> 'passes'", "1");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_model_is_what_it_should_be),
                                     cmocka_unit_test(a_scan_of_everything_holds_a_few_rows),
                                     cmocka_unit_test(a_scan_of_words_holds_one_head),
                                     cmocka_unit_test(statistics_of_all_heads_hold_one),
                                     cmocka_unit_test(rollout_holds_three_matrices),
                                     cmocka_unit_test(the_first_rows_come_at_once),
                                     cmocka_unit_test(all_of_it_took_one_pass)};
  return cmocka_run_group_tests_name("attention of 512 tokens", tests, open_group, close_group);
}
