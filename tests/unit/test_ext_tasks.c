/*
** test_ext_tasks.c: bert_classify, bert_rerank, bert_entities and bert_fill against
** what the reference libraries answer (tasks.json of tests/golden/families): the same
** labels, entities, offsets and fills in the same order, scores within 1e-5.
*/
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "golden.h"
#include "sqldb.h"

enum { TOLERANCE = 100000 }; /* scores agree within 1 / TOLERANCE */

/* ---- Reading --------------------------------------------------------------------- */

static bert_text string_of(const json_value *object, const char *key) {
  return golden_text(json_get(object, key));
}

/* The reference of a checkpoint that is loaded as the default model. */
typedef struct reference {
  sqlite3 *db;
  json_document *document;
  const json_value *cases;
} reference;

/* tasks.json, in which \u0000 becomes U+2400: the encoder's reader takes no NUL. */
static json_document *read_tasks(const char *directory) {
  bert_error error = {BERT_OK, ""};
  json_document *document = NULL;
  char *text = NULL;
  size_t size = 0;
  assert_ok(file_read(directory, "tasks.json", 1 << 20, 0, &text, &size, &error), &error);
  for (size_t i = 0; i + 6 <= size; i++)
    if (memcmp(text + i, "\\u0000", 6) == 0) text[i + 2] = '2', text[i + 3] = '4';
  assert_ok(json_parse(text, size, &document, &error), &error);
  memory_free(text);
  return document;
}

static reference reference_open(const char *name) {
  reference r = {sqldb_open(NULL), NULL, NULL};
  char directory[120], sql[200];
  snprintf(directory, sizeof directory, "tests/golden/families/%s", name);
  snprintf(sql, sizeof sql, "SELECT bert_load('%s')", directory);
  assert_runs(r.db, sql);
  r.document = read_tasks(directory);
  r.cases = json_root(r.document);
  assert_true(r.cases->size >= 3);
  return r;
}

static void reference_close(reference *r) {
  json_free(r->document);
  sqldb_close(r->db);
}

/* Binds up to two texts to `sql`. */
static sqlite3_stmt *ask(sqlite3 *db, const char *sql, bert_text a, bert_text b) {
  sqlite3_stmt *statement = sqldb_prepare(db, sql);
  sqlite3_bind_text(statement, 1, a.data, (int)a.size, SQLITE_STATIC);
  if (b.data != NULL) sqlite3_bind_text(statement, 2, b.data, (int)b.size, SQLITE_STATIC);
  return statement;
}

static void next_row(sqlite3_stmt *statement) {
  int rc = sqlite3_step(statement);
  if (rc != SQLITE_ROW)
    fail_msg("no row: %d, %s", rc, sqlite3_errmsg(sqlite3_db_handle(statement)));
}

static void no_more_rows(sqlite3_stmt *statement) {
  assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
  sqlite3_finalize(statement);
}

/* U+2400 stands for a NUL. */
static void assert_text_is(sqlite3_stmt *statement, int column, bert_text expected) {
  const char *found = (const char *)sqlite3_column_text(statement, column);
  size_t size = (size_t)sqlite3_column_bytes(statement, column), at = 0;
  assert_non_null(found);
  for (size_t i = 0; i < expected.size; i++, at++) {
    int is_nul = expected.size - i >= 3 && memcmp(expected.data + i, "\xE2\x90\x80", 3) == 0;
    assert_true(at < size);
    assert_int_equal(found[at], is_nul ? 0 : expected.data[i]);
    if (is_nul) i += 2;
  }
  assert_int_equal(at, size);
}

static void assert_score(sqlite3_stmt *statement, int column, const json_value *expected) {
  double score = sqlite3_column_double(statement, column);
  assert_int_equal(sqlite3_column_type(statement, column), SQLITE_FLOAT);
  if (!(fabs(score - expected->number) * TOLERANCE <= 1))
    fail_msg("the score is %.9g, not %.9g", score, expected->number);
}

static const bert_text none = {NULL, 0};

/* ---- Classes ------------------------------------------------------------------------ */

static void check_classes(const reference *r, const json_value *task) {
  const json_value *labels = json_get(task, "labels");
  bert_text text = string_of(task, "text");
  sqlite3_stmt *rows =
      ask(r->db, "SELECT label, score, truncated FROM bert_classify(?1)", text, none);
  for (const json_value *label = labels->first; label != NULL; label = label->next) {
    next_row(rows);
    assert_text_is(rows, 0, string_of(label, "label"));
    assert_score(rows, 1, json_get(label, "score"));
    assert_int_equal(sqlite3_column_int(rows, 2), 0);
  }
  no_more_rows(rows);
  sqlite3_stmt *best = ask(r->db, "SELECT bert_classify(?1)", text, none);
  next_row(best);
  assert_text_is(best, 0, string_of(labels->first, "label"));
  no_more_rows(best);
}

static void classes(void **state) {
  reference r = reference_open(*state);
  for (const json_value *task = r.cases->first; task != NULL; task = task->next)
    check_classes(&r, task);
  reference_close(&r);
}

static void reranking(void **state) {
  reference r = reference_open(*state);
  for (const json_value *task = r.cases->first; task != NULL; task = task->next) {
    sqlite3_stmt *row = ask(r.db, "SELECT bert_rerank(?1, ?2)", string_of(task, "query"),
                            string_of(task, "passage"));
    next_row(row);
    assert_score(row, 0, json_get(task, "score"));
    no_more_rows(row);
  }
  reference_close(&r);
}

/* ---- Entities ------------------------------------------------------------------------- */

static void check_entities(const reference *r, const json_value *task) {
  bert_text text = string_of(task, "text");
  sqlite3_stmt *rows =
      ask(r->db, "SELECT entity, score, text, start, stop, truncated FROM bert_entities(?1)", text,
          none);
  for (const json_value *e = json_get(task, "entities")->first; e != NULL; e = e->next) {
    size_t start = (size_t)golden_at(json_get(e, "bytes"), 0)->integer;
    size_t stop = (size_t)golden_at(json_get(e, "bytes"), 1)->integer;
    next_row(rows);
    assert_text_is(rows, 0, string_of(e, "entity"));
    assert_score(rows, 1, json_get(e, "score"));
    assert_text_is(rows, 2, (bert_text){text.data + start, stop - start});
    assert_int_equal(sqlite3_column_int64(rows, 3), start);
    assert_int_equal(sqlite3_column_int64(rows, 4), stop);
    assert_int_equal(sqlite3_column_int(rows, 5), 0);
  }
  no_more_rows(rows);
}

static void entities(void **state) {
  reference r = reference_open(*state);
  for (const json_value *task = r.cases->first; task != NULL; task = task->next)
    check_entities(&r, task);
  reference_close(&r);
}

/* ---- Masks ------------------------------------------------------------------------------ */

static void fills(void **state) {
  reference r = reference_open(*state);
  for (const json_value *task = r.cases->first; task != NULL; task = task->next) {
    sqlite3_stmt *rows = ask(r.db, "SELECT mask, id, token, score, text FROM bert_fill(?1)",
                             string_of(task, "text"), none);
    for (const json_value *f = json_get(task, "fill")->first; f != NULL; f = f->next) {
      next_row(rows);
      assert_int_equal(sqlite3_column_int(rows, 0), 0);
      assert_int_equal(sqlite3_column_int(rows, 1), json_get(f, "token")->integer);
      assert_text_is(rows, 2, string_of(f, "token_str"));
      assert_score(rows, 3, json_get(f, "score"));
      assert_text_is(rows, 4, string_of(f, "sequence"));
    }
    no_more_rows(rows);
  }
  reference_close(&r);
}

#define REFERENCE(checkpoint, test)                                                                \
  { checkpoint, test, NULL, NULL, checkpoint }

int main(void) {
  static char names[][24] = {"bert-classify",  "distilbert-classify", "roberta-classify",
                             "bert-cross",     "bert-ner-cased",      "bert-mlm-cased",
                             "distilbert-mlm", "roberta-mlm",         "modernbert-mlm"};
  const struct CMUnitTest tests[] = {
      REFERENCE(names[0], classes),   REFERENCE(names[1], classes),  REFERENCE(names[2], classes),
      REFERENCE(names[3], reranking), REFERENCE(names[4], entities), REFERENCE(names[5], fills),
      REFERENCE(names[6], fills),     REFERENCE(names[7], fills),    REFERENCE(names[8], fills)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
