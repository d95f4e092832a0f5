/*
** test_ext_task_faults.c: every allocation of bert_classify, bert_rerank, bert_entities
** and bert_fill fails once, alone and with all that follow. The answer is then the
** right one, or SQLITE_NOMEM; nothing is left over.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "failing_memory.h"
#include "sqldb.h"

#define FAMILIES "tests/golden/families/"

/* Fresh encoders, whose memory is allocated anew. */
static const char load[] =
    "SELECT bert_load('" FAMILIES "bert-classify', 'classes'), bert_load('" FAMILIES
    "bert-cross', 'cross'), bert_load('" FAMILIES "bert-ner-cased', 'ner'), bert_load('" FAMILIES
    "roberta-mlm', 'fill')";
static const char unload[] = "SELECT bert_unload('classes'), bert_unload('cross'), "
                             "bert_unload('ner'), bert_unload('fill')";

static void sweep(sqlite3 *db, const char *sql, int persistent) {
  int clean, rc;
  char *expected = sqldb_answer(db, sql, &clean);
  long failed = 1, k = 0;
  while (failed > 0) {
    k++;
    assert_runs(db, unload);
    assert_runs(db, load);
    failing_memory_begin(k, persistent);
    char *answer = sqldb_answer(db, sql, &rc);
    failed = failing_memory_end(NULL);
    if (rc != clean && rc != SQLITE_NOMEM)
      fail_msg("%s, allocation %ld: %d, %s", sql, k, rc, sqlite3_errmsg(db));
    if (rc == clean && rc == SQLITE_OK && answer != NULL && failed == 0)
      assert_string_equal(answer, expected);
    sqlite3_free(answer);
  }
  print_message("%ld allocations: %s\n", k - 1, sql);
  sqlite3_free(expected);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  static const char *const statements[] = {
      "SELECT bert_classify('time flies')",
      "SELECT bert_classify('a', '{\"labels\":[\"neutral\"],\"text_b\":\"b\"}')",
      "SELECT label, score FROM bert_classify('time flies', '{\"top_k\":2}')",
      "SELECT bert_rerank('time', 'flies', '{\"model\":\"cross\"}')",
      "SELECT entity, text, start FROM bert_entities('time flies like an arrow', "
      "'{\"model\":\"ner\",\"max_tokens\":7}')",
      "SELECT id, token, text FROM bert_fill('a <mask> b <mask>', '{\"model\":\"fill\","
      "\"top_k\":2}')",
      /* errors */
      "SELECT bert_classify('a', '{\"labels\":[\"good\"]}')", "SELECT bert_rerank('a', 'b')",
      "SELECT * FROM bert_entities('a')", "SELECT * FROM bert_fill('a', '{\"model\":\"fill\"}')",
      "SELECT * FROM bert_entities('a', '{\"model\":\"ner\",\"max_tokens\":2}')"};
  long before = failing_memory_blocks();
  sqlite3 *db = sqldb_open(NULL), *keeper = sqldb_open(NULL); /* keeps the models mapped */
  assert_runs(db, load);
  assert_runs(keeper, load);
  for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++)
    for (int persistent = 0; persistent <= 1; persistent++) sweep(db, statements[i], persistent);
  sqldb_close(db);
  sqldb_close(keeper);
  assert_int_equal(failing_memory_blocks(), before);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
  return cmocka_run_group_tests(tests, failing_memory_install, NULL);
}
