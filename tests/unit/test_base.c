/*
** test_base.c: errors, memory, sorting, decimal numbers, threads and cores.
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
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "dice.h"
#include "encoder/base/base.h"
#include "faults.h"
#include "scratch.h"

/* Forking with threads around is what is tested here. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
  return "die_after_fork=0";
}

/* ---- error.c ----------------------------------------------------------- */

static void test_error_text(void **state) {
  bert_error error = {0};
  assert_int_equal(error_set(&error, BERT_IO, "file %s, line %d", "a", 7), BERT_IO);
  assert_int_equal(error.status, BERT_IO);
  assert_string_equal(error.text, "file a, line 7");
  assert_int_equal(error_prefix(&error, "in %s", "b"), BERT_IO);
  assert_string_equal(error.text, "in b: file a, line 7");
  assert_int_equal(error_set(&error, BERT_INVALID, "again: %s", error.text), BERT_INVALID);
  assert_string_equal(error.text, "again: in b: file a, line 7");
  assert_int_equal(error_nomem(&error, "testing"), BERT_NOMEM);
  assert_string_equal(error.text, "out of memory while testing");
  assert_int_equal(error_set(NULL, BERT_IO, "nobody listens"), BERT_IO);
  error_prefix(NULL, "nobody %s", "listens");
}

/* Whatever the length, the text ends at a whole character. */
static void test_error_cut(void **state) {
  static const char *const characters[] = {"a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
  for (size_t c = 0; c < 4; c++) {
    size_t bytes = strlen(characters[c]);
    for (size_t before = 0; before < 5; before++) {
      char text[2000] = "";
      memset(text, 'x', before);
      while (strlen(text) + bytes < sizeof text) strcat(text, characters[c]);
      bert_error error = {0};
      error_set(&error, BERT_IO, "%s", text);
      size_t kept = strlen(error.text);
      assert_true(kept < sizeof error.text && kept + bytes >= sizeof error.text);
      assert_int_equal((kept - before) % bytes, 0);
      error_prefix(&error, "prefix");
      assert_memory_equal(error.text, "prefix: ", 8);
      kept = strlen(error.text);
      assert_true(kept < sizeof error.text && kept + bytes >= sizeof error.text);
      assert_int_equal((kept - 8 - before) % bytes, 0);
    }
  }
}

static void test_error_prefix_longer_than_the_text(void **state) {
  char text[2000];
  memset(text, 'p', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  for (size_t size = 1015; size < 1030; size++) {
    bert_error error = {0};
    error_set(&error, BERT_IO, "rest");
    error_prefix(&error, "%.*s", (int)size, text);
    assert_true(strlen(error.text) <= sizeof error.text - 1);
    assert_int_equal(error.text[1000], 'p');
  }
}

static void test_error_quote(void **state) {
  assert_string_equal(error_quote("plain \xC3\xA9").text, "plain \xC3\xA9");
  assert_string_equal(error_quote("a\nb\x7F").text, "a?b?");
  assert_string_equal(error_quote(NULL).text, "");
  char text[400] = "";
  for (int i = 0; i < 60; i++) strcat(text, "\xE2\x82\xAC");
  quoted q = error_quote(text);
  size_t size = strlen(q.text);
  assert_true(size < sizeof q.text && size > 70);
  assert_string_equal(q.text + size - 3, "...");
  assert_int_equal((size - 3) % 3, 0);
}

/* ---- memory.c ---------------------------------------------------------- */

static void test_memory_alignment(void **state) {
  for (int own = 0; own < 2; own++) {
    if (own) faults_begin(0);
    for (uint64_t bytes = 0; bytes < 300; bytes++) {
      unsigned char *block = memory_alloc(bytes);
      assert_non_null(block);
      assert_int_equal((uintptr_t)block % MEMORY_ALIGN, 0);
      memset(block, 0x5A, (size_t)bytes);
      unsigned char *larger = memory_resize(block, bytes * 2 + 1);
      assert_int_equal((uintptr_t)larger % MEMORY_ALIGN, 0);
      for (uint64_t i = 0; i < bytes; i++) assert_int_equal(larger[i], 0x5A);
      unsigned char *smaller = memory_resize(larger, bytes / 2);
      for (uint64_t i = 0; i < bytes / 2; i++) assert_int_equal(smaller[i], 0x5A);
      memory_free(smaller);
      unsigned char *zeros = memory_zero(bytes);
      for (uint64_t i = 0; i < bytes; i++) assert_int_equal(zeros[i], 0);
      memory_free(zeros);
    }
    if (own) faults_end();
  }
  memory_free(NULL);
}

static void test_memory_limits(void **state) {
  assert_null(memory_alloc(UINT64_MAX));
  assert_null(memory_alloc(UINT64_MAX - 50));
  assert_null(memory_zero((uint64_t)1 << 63));
  assert_int_equal(memory_product(6, 7), 42);
  assert_int_equal(memory_product(0, 7), 0);
  assert_int_equal(memory_product(7, 0), 0);
  assert_true(memory_product((uint64_t)1 << 33, (uint64_t)1 << 31) == UINT64_MAX);
  assert_true(memory_product(UINT64_MAX, 1) == UINT64_MAX);
  char *block = memory_copy_text("abc", 2);
  assert_string_equal(block, "ab");
  assert_null(memory_resize(block, UINT64_MAX));
  assert_string_equal(block, "ab");
  memory_free(block);
  block = memory_copy_text(NULL, 0);
  assert_string_equal(block, "");
  memory_free(block);
}

/* A block goes back to the allocator it came from, whichever is set by then. */
static void test_memory_returns_home(void **state) {
  faults_begin(0);
  char *ours = memory_alloc(10);
  assert_int_equal(faults_blocks(), 1);
  bert_set_allocator(NULL);
  char *theirs = memory_alloc(10);
  assert_int_equal(faults_blocks(), 1);
  ours = memory_resize(ours, 20);
  assert_int_equal(faults_blocks(), 0);
  memory_free(ours);
  memory_free(theirs);
  faults_end();
}

static void test_memory_grow(void **state) {
  int *array = NULL;
  size_t count = 0, capacity = 0;
  for (; count < 10000; count++) {
    assert_true(memory_grow((void **)&array, count, &capacity, sizeof *array));
    assert_true(capacity > count);
    array[count] = (int)count;
  }
  for (size_t i = 0; i < count; i++) assert_int_equal(array[i], (int)i);
  memory_free(array);
  faults_begin(2);
  array = NULL;
  capacity = 0;
  assert_true(memory_grow((void **)&array, 0, &capacity, sizeof *array));
  int *kept = array;
  size_t room = capacity;
  assert_false(memory_grow((void **)&array, room, &capacity, sizeof *array));
  assert_ptr_equal(array, kept);
  assert_int_equal(capacity, room);
  memory_free(array);
  assert_true(faults_end());
}

/* ---- sort.c ------------------------------------------------------------ */

static int compare_ints(const void *a, const void *b) {
  int x = *(const int *)a, y = *(const int *)b;
  return x < y ? -1 : x > y;
}

static void test_sort(void **state) {
  enum { LARGEST = 600 };
  static int values[LARGEST];
  static const void *items[LARGEST];
  unsigned random = 1;
  for (size_t count = 0; count <= LARGEST; count += count < 20 ? 1 : 97) {
    for (int kind = 0; kind < 4; kind++) {
      long sum = 0;
      for (size_t i = 0; i < count; i++) {
        random = random * 1664525u + 1013904223u;
        values[i] = kind == 0   ? (int)(random >> 16) % 50
                    : kind == 1 ? (int)i
                    : kind == 2 ? (int)(count - i)
                                : 7;
        sum += values[i];
        items[i] = &values[i];
      }
      sort_pointers(items, count, compare_ints);
      for (size_t i = 0; i < count; i++) {
        sum -= *(const int *)items[i];
        if (i > 0) assert_true(compare_ints(items[i - 1], items[i]) <= 0);
      }
      assert_int_equal(sum, 0);
    }
  }
}

/* ---- hash.c ------------------------------------------------------------ */

/* Every bit of the input and of the seed changes about half of the result. */
static void test_hash(void **state) {
  unsigned char text[40];
  uint64_t seed[2], again[2];
  hash_seed(seed);
  hash_seed(again);
  assert_true(seed[0] != 0 && (seed[0] != again[0] || seed[1] != again[1]));
  for (size_t i = 0; i < sizeof text; i++) text[i] = (unsigned char)(i * 7);
  for (size_t size = 0; size <= sizeof text; size++) {
    uint64_t hash = hash_bytes(seed, size == 0 ? NULL : text, size);
    assert_true(hash == hash_bytes(seed, text, size));
    if (size < sizeof text) assert_true(hash != hash_bytes(seed, text, size + 1));
    assert_true(hash != hash_bytes(again, text, size));
    int changed = 0;
    for (size_t bit = 0; bit < size * 8; bit++) {
      text[bit / 8] ^= (unsigned char)(1 << bit % 8);
      uint64_t difference = hash ^ hash_bytes(seed, text, size);
      text[bit / 8] ^= (unsigned char)(1 << bit % 8);
      changed += __builtin_popcountll(difference);
      if (__builtin_popcountll(difference) < 8) fail_msg("bit %zu of %zu bytes", bit, size);
    }
    if (size > 0) assert_in_range(changed / (int)(size * 8), 27, 37);
  }
}

/* ---- digest.c ---------------------------------------------------------- */

/* From python-xxhash 3, xxh3_128_hexdigest, of size bytes ((i * i * 7 + i) >> 3)
** & 255. The sizes take each of the ways that XXH3 has. */
static const struct digest_case {
  size_t size;
  const char *hex;
} digest_cases[] = {
    {0, "99aa06d3014798d86001c324468d497f"},    {1, "a6cd5e9392000f6ac44bdff4074eecdb"},
    {3, "239bee2fb30c288f8fecb24e5f5c2208"},    {9, "d704991ff7364d0ffe6234994c971891"},
    {17, "1cdadb3e306f73d1cf2d74081aec733f"},   {129, "aa03c18e1157118a6cacc9a068eff517"},
    {240, "69de193790562e4d8a26b3a41b59f1d2"},  {241, "0f85f0eb15cef895984fa85890b56304"},
    {1024, "aab3db9b2dcde6eaf4bac61898390a5d"}, {70000, "5ed55678c3ddb8b7d7ffe60faec2d85c"},
};

static void assert_digest(const unsigned char digest[DIGEST_BYTES], const char *hex) {
  char text[2 * DIGEST_BYTES + 1];
  for (size_t i = 0; i < DIGEST_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
  assert_string_equal(text, hex);
}

static void test_digest(void **state) {
  enum { MOST = 70000 };
  unsigned char *bytes = malloc(MOST), out[DIGEST_BYTES];
  assert_non_null(bytes);
  for (size_t i = 0; i < MOST; i++) bytes[i] = (unsigned char)((i * i * 7 + i) >> 3 & 255);
  for (size_t c = 0; c < sizeof digest_cases / sizeof *digest_cases; c++) {
    size_t size = digest_cases[c].size;
    digest_bytes(size == 0 ? NULL : bytes, size, out);
    assert_digest(out, digest_cases[c].hex);
    for (size_t part = 1; part < 2 * size + 2; part = part * 3 + 1) {
      digest_stream d;
      digest_begin(&d);
      for (size_t at = 0; at < size; at += part)
        digest_add(&d, bytes + at, size - at < part ? size - at : part);
      digest_add(&d, NULL, 0);
      digest_end(&d, out);
      assert_digest(out, digest_cases[c].hex);
      digest_end(&d, out);
      assert_digest(out, digest_cases[c].hex);
    }
  }
  free(bytes);
}

/* ---- decimal.c --------------------------------------------------------- */

static void check_decimal(const char *text) {
  double expected = strtod(text, NULL), read = decimal_to_double(text, strlen(text));
  if (memcmp(&expected, &read, sizeof read) != 0)
    fail_msg("%s: %.17g (%a), expected %.17g (%a)", text, read, read, expected, expected);
}

/* Written out by hand: halves between two doubles, the ends of the range, and
** what is known to have been read wrong by others. */
static void test_decimal_hard(void **state) {
  static const char *const texts[] = {
      "0",
      "-0",
      "0.0",
      "-0.0e5",
      "0e999999999999999999999",
      "1",
      "-1",
      "10",
      "0.1",
      "0.5",
      "1e-12",
      "1e-05",
      "12345678901234567890",
      "9007199254740991",
      "9007199254740992",
      "9007199254740993",
      "9007199254740994",
      "9007199254740995",
      "9007199254740993.00000000000000000000000000000001",
      "9223372036854775807",
      "9223372036854775808",
      "18446744073709551615",
      "18446744073709551616",
      "1e22",
      "1e23",
      "8.5e22",
      "1e27",
      "1e28",
      "9999999999999999999e27",
      "9999999999999999999e-27",
      "1e-27",
      "1e-28",
      "1e308",
      "1.7976931348623157e308",
      "1.7976931348623158e308",
      "1.797693134862315807e308",
      "1.7976931348623159e308",
      "1e309",
      "1e999999999999999999999",
      "2.2250738585072014e-308",
      "2.2250738585072011e-308",
      "2.2250738585072012e-308",
      "4.9406564584124654e-324",
      "2.4703282292062327e-324",
      "2.4703282292062328e-324",
      "2.47032822920623272e-324",
      "2.5e-324",
      "1e-324",
      "1e-400",
      "-1e-400",
      "1e-999999999999999999999",
      "6.631236846766476e-316",
      "3.2378839133029012895883524125015321e-319",
      "0.500000000000000166533453693773481063544750213623046875",
      "1.00000000000000011102230246251565404236316680908203125",
      "1.00000000000000011102230246251565404236316680908203124",
      "1.00000000000000011102230246251565404236316680908203126",
      "1000000000000000019884624838656",
      "123456789012345678901234567890e-20",
      "0.000000000000000000000000000000000000000000000000000000000000001234567e63",
      "17976931348623158079372897140530341507993413271003782693617377898044496829276475094664901797"
      "7587207"
      "09633028641669288791094655554785194040263065748867150582068190890200070838367627385484581771"
      "1531764"
      "47573027006985557136695962284291481986083493647529271907416844436551070434271155969950809304"
      "2880177"
      "904174497791"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check_decimal(texts[i]);
}

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static void test_decimal_random(void **state) {
  uint64_t random = 88172645463325252u;
  char text[100];
  for (int i = 0; i < dice_rounds(200000, 4000); i++) {
    double value;
    uint64_t bits = next_random(&random);
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value)) continue;
    snprintf(text, sizeof text, "%.*e", (int)(next_random(&random) % 25), value);
    check_decimal(text);
    snprintf(text, sizeof text, "%.*g", 1 + (int)(next_random(&random) % 20),
             (double)(int64_t)bits / 1e12);
    check_decimal(text);
    snprintf(text, sizeof text, "%llu.%llue%d", (unsigned long long)(bits >> 20),
             (unsigned long long)next_random(&random) >> (i % 60),
             (int)(next_random(&random) % 80) - 40);
    check_decimal(text);
  }
}

/* A double and the exact middle to the next one, with all its digits, and a
** little more and less than it. */
static void test_decimal_halfway(void **state) {
  uint64_t random = 362436069;
  static char text[2000];
  for (int i = 0; i < dice_rounds(3000, 100); i++) {
    double value, above;
    uint64_t bits = next_random(&random) % ((uint64_t)0x7FE << 52);
    if (i % 3 == 0) bits = next_random(&random) % ((uint64_t)4 << 52); /* near or below normal */
    memcpy(&value, &bits, sizeof value);
    bits++;
    memcpy(&above, &bits, sizeof above);
    snprintf(text, sizeof text, "%.1100Lf", ((long double)value + (long double)above) / 2);
    check_decimal(text);
    size_t end = strlen(text);
    memcpy(text + end, "1", 2);
    check_decimal(text);
    memcpy(text + end, "e-200", 6);
    check_decimal(text);
  }
}

/* Where the decimal point is a comma, strtod stops at a point. */
static void test_decimal_locale(void **state) {
  static const char *const names[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "C"};
  for (size_t i = 0; i < 4; i++) {
    if (setlocale(LC_NUMERIC, names[i]) == NULL) continue;
    assert_true(decimal_to_double("0.5", 3) == 0.5);
    assert_true(decimal_to_double("1.5e300", 7) == 1.5e300);
  }
  setlocale(LC_NUMERIC, "C");
}

/* ---- words.c ----------------------------------------------------------- */

/* The I of Turkish, and letters that are not of A to Z, are left alone. */
static void test_word_is(void **state) {
  (void)state;
  static const char *const same[][2] = {{"", ""},
                                        {"bf16", "bf16"},
                                        {"BF16", "bf16"},
                                        {"mean_Sqrt_LEN", "mean_sqrt_len"},
                                        {"IAZ", "iaz"}};
  static const char *const other[][2] = {
      {"", "a"},  {"a", ""},  {"bf1", "bf16"},          {"bf160", "bf16"},
      {"@", "`"}, {"[", "{"}, {"\xc3\x84", "\xc3\xa4"}, {"int-8", "int8"}};
  for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
    assert_true(word_is(same[i][0], same[i][1]));
  for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
    assert_false(word_is(other[i][0], other[i][1]));
}

/* ---- team.c ------------------------------------------------------------ */

static void test_team_share(void **state) {
  for (int size = 1; size <= 7; size++)
    for (size_t count = 0; count < 60; count++)
      for (size_t grain = 0; grain <= 9; grain++) {
        size_t end = 0, least = SIZE_MAX, most = 0;
        for (int rank = 0; rank < size; rank++) {
          team_member member = {NULL, rank, size};
          size_t first, last;
          team_share(&member, count, grain, &first, &last);
          assert_int_equal(first, end);
          assert_true(last >= first && last <= count);
          if (last < count && grain > 0) assert_int_equal(last % grain, 0);
          size_t units = (last - first + (grain ? grain : 1) - 1) / (grain ? grain : 1);
          least = units < least ? units : least;
          most = units > most ? units : most;
          end = last;
        }
        assert_int_equal(end, count);
        assert_true(most - least <= 1);
      }
  team_member last_one = {NULL, 1, 2};
  size_t first, last;
  team_share(&last_one, SIZE_MAX, 16, &first, &last);
  assert_true(last == SIZE_MAX && first % 16 == 0 && first > SIZE_MAX / 2 - 32);
}

enum { MOST = 16 };

typedef struct rounds {
  int count;
  long seen[MOST];             /* written by its member between barriers */
  atomic_int members, largest; /* who took part */
  atomic_int wrong;
  pthread_t caller;
} rounds;

/* In each round all write, wait, and read what the others wrote: not atomic, so
** that ThreadSanitizer sees a barrier that orders nothing. */
static void play(team_member *member, void *user) {
  rounds *r = user;
  if (member->rank == 0 && !pthread_equal(pthread_self(), r->caller)) atomic_store(&r->wrong, 1);
  atomic_fetch_add(&r->members, 1);
  atomic_store(&r->largest, member->size);
  for (int i = 1; i <= r->count; i++) {
    r->seen[member->rank] = i;
    team_barrier(member);
    for (int k = 0; k < member->size; k++)
      if (r->seen[k] != i) atomic_store(&r->wrong, 1);
    team_wait(member, team_arrive(member));
  }
}

/* Runs a team; returns its size. */
static int play_team(int threads, int count) {
  rounds r = {0};
  r.count = count;
  r.caller = pthread_self();
  team_run(threads, play, &r);
  if (atomic_load(&r.wrong) || atomic_load(&r.members) != atomic_load(&r.largest)) return -1;
  return atomic_load(&r.largest);
}

static void test_team_sizes(void **state) {
  for (int threads = 1; threads <= MOST; threads++)
    assert_int_equal(play_team(threads, 20), threads);
  assert_int_equal(play_team(0, 20), team_cores() < MOST ? team_cores() : MOST);
  for (int i = 0; i < dice_rounds(500, 50); i++)
    assert_int_equal(play_team(2 + i % 3, 3), 2 + i % 3);
}

/* Long enough for workers to sleep, between runs and at a barrier. */
static void nap(void) {
  struct timespec t = {0, 2000000};
  nanosleep(&t, NULL);
}

static void late(team_member *member, void *user) {
  if (member->rank == *(int *)user) nap();
  unsigned passed = team_arrive(member);
  if (member->rank == *(int *)user) nap(); /* the others have gone on meanwhile */
  team_wait(member, passed);
  if (member->rank != *(int *)user) nap();
}

static void test_team_sleeps_and_wakes(void **state) {
  for (int i = 0; i < 12; i++) {
    int rank = i % 3;
    team_run(3, late, &rank);
    nap();
    assert_int_equal(play_team(3, 2), 3);
  }
}

static void count_inner(team_member *member, void *user) {
  atomic_fetch_add((atomic_int *)user, member->size);
}

static void nest(team_member *member, void *user) {
  team_run(3, count_inner, user); /* the pool is taken: runs alone */
}

static void test_team_nested_runs_alone(void **state) {
  atomic_int total = 0;
  team_run(3, nest, &total);
  assert_int_equal(atomic_load(&total), 3);
}

typedef struct caller {
  int runs, failed;
  long together, alone;
} caller;

static void *call_often(void *user) {
  caller *c = user;
  for (int i = 0; i < c->runs; i++) {
    int size = play_team(3, 5);
    if (size == 3)
      c->together++;
    else if (size == 1)
      c->alone++;
    else
      c->failed = 1;
  }
  return NULL;
}

/* Only one caller at a time gets the pool; the others do not wait for it. */
static void test_team_many_callers(void **state) {
  enum { CALLERS = 6 };
  pthread_t threads[CALLERS];
  caller callers[CALLERS];
  memset(callers, 0, sizeof callers);
  long together = 0;
  for (int i = 0; i < CALLERS; i++) {
    callers[i].runs = 400;
    assert_int_equal(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
  }
  for (int i = 0; i < CALLERS; i++) {
    pthread_join(threads[i], NULL);
    assert_false(callers[i].failed);
    assert_int_equal(callers[i].together + callers[i].alone, 400);
    together += callers[i].together;
  }
  assert_true(together > 0);
  assert_int_equal(play_team(3, 5), 3);
}

static void note_signals(team_member *member, void *user) {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, NULL, &now);
  int blocked = sigismember(&now, SIGINT) && sigismember(&now, SIGTERM) &&
                sigismember(&now, SIGALRM) && sigismember(&now, SIGUSR1);
  if (blocked != (member->rank > 0)) atomic_store((atomic_int *)user, 1);
}

static void test_team_signals(void **state) {
  atomic_int wrong = 0;
  team_run(5, note_signals, &wrong);
  assert_false(atomic_load(&wrong));
}

/* What a child of fork must be able to do. */
static int child_works(void) {
  for (int i = 0; i < 20; i++)
    if (play_team(4, 5) != 4) return 0;
  return 1;
}

static void fork_and_check(void) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(child_works() ? 0 : 1);
  int result = -1;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_true(WIFEXITED(result));
  assert_int_equal(WEXITSTATUS(result), 0);
}

static void test_team_fork(void **state) {
  assert_int_equal(play_team(4, 5), 4);
  fork_and_check();
  assert_int_equal(play_team(4, 5), 4);
  nap(); /* workers sleep on their condition variables now */
  fork_and_check();
  assert_int_equal(play_team(4, 5), 4);
}

static atomic_int stop_calling;

static void *call_until_stopped(void *user) {
  while (!atomic_load(&stop_calling))
    if (play_team(3, 20) < 0) *(int *)user = 1;
  return NULL;
}

/* Forking at any moment of a run of another thread. */
static void test_team_fork_while_running(void **state) {
  pthread_t thread;
  int wrong = 0;
  atomic_store(&stop_calling, 0);
  assert_int_equal(pthread_create(&thread, NULL, call_until_stopped, &wrong), 0);
  for (int i = 0; i < 40; i++) fork_and_check();
  atomic_store(&stop_calling, 1);
  pthread_join(thread, NULL);
  assert_false(wrong);
  assert_int_equal(play_team(4, 5), 4);
}

/* The child of a child, and a child that exits as a program does. */
static void test_team_fork_twice(void **state) {
  pid_t child = fork();
  if (child == 0) {
    int good = child_works();
    pid_t grandchild = fork();
    if (grandchild == 0) _exit(child_works() ? 0 : 1);
    int result = -1;
    waitpid(grandchild, &result, 0);
    _exit(good && WIFEXITED(result) && WEXITSTATUS(result) == 0 ? 0 : 1);
  }
  int result = -1;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
}

/* ---- cores.c ----------------------------------------------------------- */

static void test_cores(void **state) {
  int cores = team_cores();
  assert_true(cores >= 1 && cores <= (int)sysconf(_SC_NPROCESSORS_CONF));
  assert_int_equal(team_cores(), cores);
}

typedef struct group_case {
  const char *what;
  const char *group;    /* /proc/self/cgroup */
  const char *files[6]; /* path, content, path, content ... under /sys/fs/cgroup */
  int cores;
} group_case;

static const group_case group_cases[] = {
    {"no cgroups at all", NULL, {NULL}, 0},
    {"version 2, half a core", "0::/a\n", {"a/cpu.max", "50000 100000\n"}, 1},
    {"version 2, one and a half", "0::/a\n", {"a/cpu.max", "150000 100000\n"}, 2},
    {"version 2, no limit", "0::/a\n", {"a/cpu.max", "max 100000\n"}, 0},
    {"version 2, the parent is narrower",
     "0::/a/b\n",
     {"a/cpu.max", "200000 100000\n", "a/b/cpu.max", "400000 100000\n"},
     2},
    {"version 2, the child is narrower",
     "0::/a/b\n",
     {"a/cpu.max", "800000 100000\n", "a/b/cpu.max", "300000 100000\n"},
     3},
    {"version 2, root of a container", "0::/\n", {"cpu.max", "400000 100000\n"}, 4},
    {"version 2, a path of the host", "0::/host/path\n", {"cpu.max", "400000 100000\n"}, 4},
    {"version 1",
     "4:cpu,cpuacct:/a\n2:memory:/b\n",
     {"cpu/a/cpu.cfs_quota_us", "250000\n", "cpu/a/cpu.cfs_period_us", "100000\n"},
     3},
    {"version 1, other name of the mount",
     "4:cpuacct,cpu:/a\n",
     {"cpu,cpuacct/a/cpu.cfs_quota_us", "100000\n", "cpu,cpuacct/a/cpu.cfs_period_us", "50000\n"},
     2},
    {"version 1, no limit",
     "4:cpu:/a\n",
     {"cpu/a/cpu.cfs_quota_us", "-1\n", "cpu/a/cpu.cfs_period_us", "100000\n"},
     0},
    {"version 1, cpuset is no quota",
     "4:cpuset:/a\n",
     {"cpu/a/cpu.cfs_quota_us", "100000\n", "cpu/a/cpu.cfs_period_us", "50000\n"},
     0},
    {"nonsense", "x\n::\n0:\n", {"cpu.max", "many cores\n"}, 0},
    {"a period of 0", "0::/\n", {"cpu.max", "100000 0\n"}, 0},
    {"a path that climbs", "0::/../../a\n", {"cpu.max", "100000 100000\n"}, 0},
};

static void put_file(const char *root, const char *directory, const char *name,
                     const char *content) {
  char command[600], path[500];
  snprintf(path, sizeof path, "%s%s%s", root, directory, name);
  snprintf(command, sizeof command, "mkdir -p \"$(dirname '%s')\"", path);
  assert_int_equal(system(command), 0);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(content, file);
  fclose(file);
}

static void test_cores_quota(void **state) {
  for (size_t i = 0; i < sizeof group_cases / sizeof *group_cases; i++) {
    const group_case *c = &group_cases[i];
    char root[] = "/tmp/bertsql-cgroup-XXXXXX", command[100];
    assert_non_null(mkdtemp(root));
    if (c->group != NULL) put_file(root, "/proc/self/", "cgroup", c->group);
    for (int k = 0; k < 6 && c->files[k] != NULL; k += 2)
      put_file(root, "/sys/fs/cgroup/", c->files[k], c->files[k + 1]);
    int cores = cores_quota(root);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    assert_int_equal(system(command), 0);
    if (cores != c->cores) fail_msg("%s: %d cores, expected %d", c->what, cores, c->cores);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_error_text),
      cmocka_unit_test(test_error_cut),
      cmocka_unit_test(test_error_prefix_longer_than_the_text),
      cmocka_unit_test(test_error_quote),
      cmocka_unit_test(test_memory_alignment),
      cmocka_unit_test(test_memory_limits),
      cmocka_unit_test(test_memory_returns_home),
      cmocka_unit_test(test_memory_grow),
      cmocka_unit_test(test_sort),
      cmocka_unit_test(test_hash),
      cmocka_unit_test(test_digest),
      cmocka_unit_test(test_decimal_hard),
      cmocka_unit_test(test_decimal_random),
      cmocka_unit_test(test_decimal_halfway),
      cmocka_unit_test(test_decimal_locale),
      cmocka_unit_test(test_word_is),
      cmocka_unit_test(test_team_share),
      cmocka_unit_test(test_team_sizes),
      cmocka_unit_test(test_team_sleeps_and_wakes),
      cmocka_unit_test(test_team_nested_runs_alone),
      cmocka_unit_test(test_team_many_callers),
      cmocka_unit_test(test_team_signals),
      cmocka_unit_test(test_team_fork),
      cmocka_unit_test(test_team_fork_while_running),
      cmocka_unit_test(test_team_fork_twice),
      cmocka_unit_test(test_cores),
      cmocka_unit_test(test_cores_quota),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
