/*
** test_ext_vtab_schema.c: ALTER, DROP, VACUUM, ATTACH, temp tables, views and
** what SQLite says about a virtual table.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tabledb.h"

static sqlite3 *open_docs(void **state, const char *options) {
  sqlite3 *db = tabledb_open(*state);
  tabledb_make_docs(db, options);
  assert_runs(db, "CREATE VIRTUAL TABLE notes USING bertsql(body, lang UNINDEXED, model='tiny');"
                  "INSERT INTO notes(body, lang) VALUES('time flies', 'en'), (NULL, 'xx'), "
                  "('a red apple', 'en')");
  return db;
}

static void close_docs(sqlite3 *db) {
  assert_sound(db, "docs_emb");
  assert_sound(db, "notes");
  sqldb_close(db);
}

#define PENDING "SELECT pending FROM bert_status WHERE name = 'docs_emb'"
#define REFRESH "INSERT INTO docs_emb(docs_emb) VALUES('refresh')"

/* ---- ALTER TABLE ------------------------------------------------------------ */

static void a_renamed_table_keeps_all(void **state) {
  sqlite3 *db = open_docs(state, ", triggers=1");
  assert_runs(db, "UPDATE docs SET body = 'changed' WHERE id = 1;"
                  "ALTER TABLE docs_emb RENAME TO \"new name\"; ALTER TABLE notes RENAME TO n_2");
  assert_tables(db, "docs_emb", "(no rows)");
  assert_tables(db, "new name",
                "new name new name_config new name_packed new name_queue new name_rows new "
                "name_vectors");
  assert_tables(db, "n",
                "n_2 n_2_config n_2_content n_2_packed n_2_queue n_2_rows n_2_vectors "
                "new name new name_config new name_packed new name_queue new name_rows "
                "new name_vectors");
  assert_rows(db, "SELECT name FROM sqlite_schema WHERE type = 'trigger' ORDER BY 1",
              "new name_queue_delete new name_queue_insert new name_queue_update");
  assert_answer(db, "SELECT pending FROM bert_status WHERE name = 'new name'", "1");
  assert_runs(db, "UPDATE docs SET body = 'more' WHERE id = 2;"
                  "INSERT INTO \"new name\"(\"new name\") VALUES('refresh')");
  assert_answer(db, "SELECT rowid FROM \"new name\" WHERE \"new name\" MATCH 'more' AND k = 1",
                "2");
  assert_finds_itself(db, "new name", "docs", "id", "body");
  assert_error(db, "SELECT docs_emb FROM \"new name\"", "no such column: docs_emb");
  assert_runs(db, "INSERT INTO n_2(body) VALUES('fresh')");
  assert_answer(db, "SELECT rowid FROM n_2 WHERE n_2 MATCH 'fresh' AND k = 1", "4");
  assert_sound(db, "new name");
  assert_sound(db, "n_2");
  sqldb_close(db);
}

static void a_rename_is_taken_back(void **state) {
  sqlite3 *db = open_docs(state, ", triggers=1");
  assert_runs(db, "BEGIN; INSERT INTO notes(body) VALUES('x'); ALTER TABLE notes RENAME TO n;"
                  "INSERT INTO n(body) VALUES('y'); ALTER TABLE docs_emb RENAME TO e; ROLLBACK");
  assert_answer(db, "SELECT group_concat(body) FROM notes", "time flies,a red apple");
  assert_runs(db, "BEGIN; INSERT INTO notes(body) VALUES('x'); SAVEPOINT s;"
                  "ALTER TABLE notes RENAME TO n; ROLLBACK TO s; COMMIT");
  assert_answer(db, "SELECT rowid FROM notes WHERE notes MATCH 'x' AND k = 1", "4");
  assert_runs(db, "BEGIN; INSERT INTO notes(body) VALUES('y'); ALTER TABLE notes RENAME TO n;"
                  "INSERT INTO n(body) VALUES('z'); COMMIT");
  assert_answer(db, "SELECT count(*) FROM n_vectors", "5");
  assert_runs(db, "ALTER TABLE n RENAME TO notes; UPDATE docs SET body = 'w' WHERE id = 3");
  assert_answer(db, PENDING, "1");
  assert_runs(db, REFRESH);
  close_docs(db);
}

/* A name that is taken: an error, and both tables stay. */
static void a_rename_that_fails_changes_nothing(void **state) {
  sqlite3 *db = open_docs(state, ", triggers=1");
  assert_runs(db, "CREATE TABLE other_vectors(x)");
  assert_error(db, "ALTER TABLE docs_emb RENAME TO other", "other_vectors");
  assert_error(db, "ALTER TABLE docs_emb RENAME TO notes", "already");
  assert_error(db, "ALTER TABLE docs_emb RENAME TO body", "name of the table");
  assert_error(db, "ALTER TABLE docs_emb RENAME TO Distance", "cannot be called Distance");
  assert_tables(db, "docs_emb",
                "docs_emb docs_emb_config docs_emb_packed docs_emb_queue "
                "docs_emb_rows docs_emb_vectors");
  assert_runs(db, "UPDATE docs SET body = 'x' WHERE id = 1");
  assert_answer(db, PENDING, "1");
  assert_runs(db, REFRESH);
  assert_finds_itself(db, "docs_emb", "docs", "id", "body");
  assert_error(db, "ALTER TABLE docs_emb ADD COLUMN x", "virtual tables may not be altered");
  assert_error(db, "ALTER TABLE docs_emb DROP COLUMN body", "virtual table");
  assert_error(db, "ALTER TABLE docs_emb RENAME COLUMN body TO x", "virtual table");
  close_docs(db);
}

static void a_renamed_content_table_is_an_error(void **state) {
  sqlite3 *db = open_docs(state, ", triggers=1");
  assert_runs(db, "ALTER TABLE docs RENAME TO papers");
  assert_error(db, REFRESH,
               "docs_emb: there is no content table docs in main; if it was renamed, "
               "rename it back with ALTER TABLE … RENAME TO \"docs\"");
  assert_answer(db,
                "SELECT pending, last_error LIKE '%no content table docs%' FROM bert_status "
                "WHERE name = 'docs_emb'",
                "NULL|1");
  assert_runs(db, "UPDATE papers SET body = 'through the trigger' WHERE id = 1;"
                  "ALTER TABLE papers RENAME TO docs");
  assert_answer(db, PENDING, "1");
  assert_runs(db, REFRESH);
  assert_answer(
      db, "SELECT rowid FROM docs_emb WHERE docs_emb MATCH 'through the trigger' AND k = 1", "1");
  close_docs(db);
}

static void a_renamed_column_of_content_is_an_error(void **state) {
  sqlite3 *db = open_docs(state, ", triggers=1");
  assert_runs(db, "ALTER TABLE docs RENAME COLUMN title TO heading; UPDATE docs SET body = 'a'");
  assert_runs(db, REFRESH "; ALTER TABLE docs RENAME COLUMN body TO text");
  assert_error(db, REFRESH,
               "docs_emb: content table docs has no column body; name columns that it "
               "has, or rename it back: ALTER TABLE \"docs\" RENAME COLUMN … TO \"body\"");
  assert_runs(db, "UPDATE docs SET text = 'b' WHERE id = 2");
  assert_runs(db, "ALTER TABLE docs RENAME COLUMN text TO body; ALTER TABLE docs RENAME COLUMN id "
                  "TO nr; UPDATE docs SET body = 'c' WHERE nr = 3; ALTER TABLE docs ADD COLUMN z;"
                  "ALTER TABLE docs DROP COLUMN grp");
  assert_answer(db, PENDING, "2");
  assert_runs(db, REFRESH);
  assert_finds_itself(db, "docs_emb", "docs", "nr", "body");
  close_docs(db);
}

/* ---- DROP -------------------------------------------------------------------- */

static void drop_leaves_nothing(void **state) {
  sqlite3 *db = open_docs(state, ", triggers=1");
  assert_runs(db, "DROP TABLE docs_emb; DROP TABLE notes; UPDATE docs SET body = 'x'");
  assert_rows(db, "SELECT name FROM sqlite_schema", "docs");
  assert_answer(db, "SELECT count(*) FROM bert_status", "0");
  assert_runs(db, "DROP TABLE docs");
  tabledb_make_docs(db, ", triggers=1");
  sqldb_close(db);
}

/* Shadow tables that are missing or damaged do not keep a table from going. */
static void a_damaged_table_can_be_dropped(void **state) {
  static const char *const damages[] = {"DROP TABLE notes_config",
                                        "DROP TABLE notes_rows",
                                        "DROP TABLE notes_vectors",
                                        "DROP TABLE notes_packed",
                                        "DROP TABLE notes_queue",
                                        "DROP TABLE notes_content",
                                        "DELETE FROM notes_config",
                                        "UPDATE notes_config SET value = x'00'",
                                        "ALTER TABLE notes_config RENAME COLUMN value TO v"};
  sqlite3 *db = open_docs(state, "");
  for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
    assert_runs(db, damages[i]);
    sqldb_close(db);
    db = tabledb_open(*state);
    sqlite3_free(sqldb_answer(db, "SELECT * FROM notes WHERE notes MATCH 'x' AND k = 1", NULL));
    sqlite3_free(sqldb_answer(db, "INSERT INTO notes(body) VALUES('x')", NULL));
    assert_runs(db, "SELECT * FROM bert_status; DROP TABLE notes");
    assert_tables(db, "notes", "(no rows)");
    assert_runs(db, "CREATE VIRTUAL TABLE notes USING bertsql(body, lang UNINDEXED, model='tiny')");
  }
  close_docs(db);
}

static void a_table_in_use_is_not_dropped(void **state) {
  sqlite3 *db = open_docs(state, "");
  sqlite3_stmt *cursor = sqldb_prepare(db, "SELECT rowid FROM notes WHERE notes MATCH 'x'");
  assert_int_equal(sqlite3_step(cursor), SQLITE_ROW);
  assert_error(db, "DROP TABLE notes", "locked");
  assert_int_equal(sqlite3_step(cursor), SQLITE_ROW);
  assert_int_equal(sqlite3_step(cursor), SQLITE_DONE);
  sqlite3_finalize(cursor);
  assert_sound(db, "notes");
  assert_runs(db, "DROP TABLE notes");
  sqldb_close(db);
}

/* Writing under an open cursor: the cursor ends well, whichever rows it saw. */
static void a_table_may_be_written_under_a_cursor(void **state) {
  static const char *const queries[] = {"SELECT rowid FROM notes",
                                        "SELECT rowid, embedding FROM notes WHERE notes MATCH 'x'",
                                        "SELECT rowid, body FROM notes WHERE notes MATCH 'x' "
                                        "AND k = 9"};
  sqlite3 *db = open_docs(state, "");
  for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
    sqlite3_stmt *cursor = sqldb_prepare(db, queries[i]);
    int rc = sqlite3_step(cursor), rows = 1;
    assert_int_equal(rc, SQLITE_ROW);
    assert_runs(db, "DELETE FROM notes WHERE rowid > 1; INSERT INTO notes(rowid, body) "
                    "VALUES(5, 'five'), (6, 'six'); INSERT INTO notes(notes) VALUES('rebuild')");
    while ((rc = sqlite3_step(cursor)) == SQLITE_ROW) assert_true(++rows < 9);
    assert_int_equal(rc, SQLITE_DONE);
    sqlite3_finalize(cursor);
    assert_sound(db, "notes");
  }
  close_docs(db);
}

/* ---- VACUUM --------------------------------------------------------------------- */

static void vacuum_keeps_all(void **state) {
  sqlite3 *db = open_docs(state, ", triggers=1");
  assert_runs(db, "DELETE FROM docs WHERE id = 1; DELETE FROM notes WHERE rowid = 1;" REFRESH);
  char *before = sqldb_answer(db,
                              "SELECT rowid, distance FROM docs_emb WHERE docs_emb MATCH 'fruit';"
                              "SELECT rowid, distance FROM notes WHERE notes MATCH 'fruit'",
                              NULL);
  assert_runs(db, "SELECT * FROM docs_emb; SELECT * FROM notes; VACUUM");
  assert_answer(db,
                "SELECT rowid, distance FROM docs_emb WHERE docs_emb MATCH 'fruit';"
                "SELECT rowid, distance FROM notes WHERE notes MATCH 'fruit'",
                before);
  assert_runs(db, "INSERT INTO notes(body) VALUES('x'); UPDATE docs SET body = 'y'");
  assert_answer(db, PENDING, "3");
  assert_runs(db, REFRESH);
  sqlite3_free(before);
  close_docs(db);
}

static void vacuum_into_makes_a_copy_that_works(void **state) {
  sqlite3 *db = open_docs(state, ", triggers=1");
  const char *copy = tabledb_beside(state, "copy");
  char *sql = sqlite3_mprintf("VACUUM INTO %Q", copy);
  assert_runs(db, sql);
  sqlite3_free(sql);
  close_docs(db);
  db = tabledb_open(copy);
  assert_finds_itself(db, "docs_emb", "docs", "id", "body");
  assert_runs(db, "INSERT INTO notes(body) VALUES('in the copy'); UPDATE docs SET body = 'y'");
  assert_answer(db, "SELECT rowid FROM notes WHERE notes MATCH 'in the copy' AND k = 1", "4");
  assert_answer(db, PENDING, "4");
  assert_runs(db, REFRESH);
  close_docs(db);
}

/* ---- ATTACH, temp ------------------------------------------------------------------ */

static void a_table_lives_in_an_attached_database(void **state) {
  sqlite3 *db = open_docs(state, ", triggers=1");
  char *sql = sqlite3_mprintf("ATTACH %Q AS \"other db\"", tabledb_beside(state, "other"));
  assert_runs(db, sql);
  assert_runs(db, "CREATE TABLE \"other db\".docs(id INTEGER PRIMARY KEY, body TEXT);"
                  "INSERT INTO \"other db\".docs VALUES(50, 'far away');"
                  "CREATE VIRTUAL TABLE \"other db\".docs_emb USING bertsql(body, content='docs', "
                  "triggers=1); INSERT INTO \"other db\".docs_emb(docs_emb) VALUES('refresh');"
                  "CREATE VIRTUAL TABLE \"other db\".own USING bertsql(body)");
  assert_answer(db, "SELECT rowid FROM \"other db\".docs_emb WHERE docs_emb MATCH 'time flies'",
                "50");
  assert_answer(db, "SELECT schema, rows FROM bert_status WHERE name = 'docs_emb' ORDER BY 1",
                "main|3\nother db|1");
  assert_runs(db,
              "BEGIN; INSERT INTO own(body) VALUES('a'); INSERT INTO notes(body) VALUES('b');"
              "UPDATE \"other db\".docs SET body = 'c'; UPDATE main.docs SET body = 'd'; COMMIT");
  assert_rows(db, "SELECT pending FROM bert_status WHERE name = 'docs_emb' ORDER BY schema", "4 1");
  assert_runs(db, "INSERT INTO \"other db\".docs_emb(docs_emb) VALUES('refresh');"
                  "INSERT INTO \"other db\".own(own) VALUES('integrity-check')");
  assert_runs(db, "DETACH \"other db\"; " REFRESH);
  assert_answer(db, "SELECT count(*) FROM bert_status", "2");
  close_docs(db);
  db = tabledb_open(tabledb_beside(state, "other"));
  assert_answer(db, "SELECT rowid FROM own WHERE own MATCH 'a' AND k = 1", "1");
  assert_sound(db, "docs_emb");
  assert_sound(db, "own");
  sqlite3_free(sql);
  sqldb_close(db);
}

static void a_temp_table_works(void **state) {
  sqlite3 *db = open_docs(state, "");
  assert_error(db, "CREATE VIRTUAL TABLE temp.t USING bertsql(body, content='docs')",
               "there is no table docs in temp");
  assert_runs(db, "CREATE VIRTUAL TABLE temp.notes USING bertsql(body, model='tiny');"
                  "INSERT INTO temp.notes(body) VALUES('mine')");
  assert_answer(db, "SELECT body FROM notes WHERE notes MATCH 'time flies' AND k = 5", "mine");
  assert_answer(db, "SELECT body FROM main.notes WHERE notes MATCH 'time flies' AND k = 1",
                "time flies");
  assert_answer(db, "SELECT group_concat(schema) FROM bert_status WHERE name = 'notes'",
                "main,temp");
  assert_runs(db, "CREATE TEMP TABLE words(id INTEGER PRIMARY KEY, w); INSERT INTO words(w) "
                  "VALUES('x'); CREATE VIRTUAL TABLE temp.e USING bertsql(w, content='words', "
                  "triggers=1); INSERT INTO e(e) VALUES('refresh'); UPDATE words SET w = 'y';"
                  "ALTER TABLE e RENAME TO e2; UPDATE words SET w = 'z'; INSERT INTO e2(e2) "
                  "VALUES('refresh')");
  assert_answer(db, "SELECT rowid FROM e2 WHERE e2 MATCH 'z' AND distance < 1e-5", "1");
  assert_runs(db, "DROP TABLE temp.notes");
  assert_answer(db, "SELECT count(*) FROM notes", "3");
  close_docs(db);
}

/* ---- What SQLite tells --------------------------------------------------------------- */

static void pragmas_show_the_columns(void **state) {
  sqlite3 *db = open_docs(state, "");
  assert_rows(db, "SELECT name FROM pragma_table_info('notes')", "body lang");
  assert_rows(db, "SELECT name || hidden FROM pragma_table_xinfo('notes')",
              "body0 lang0 notes1 k1 distance1 embedding1 chunk1 start1 stop1 n_tokens1 truncated1 "
              "status1");
  assert_rows(db,
              "SELECT name || ' ' || type || ' ' || ncol FROM pragma_table_list WHERE name LIKE "
              "'notes%' ORDER BY name",
              "notes virtual 12 notes_config shadow 2 notes_content shadow 3 notes_packed shadow 5 "
              "notes_queue table 1 notes_rows shadow 5 notes_vectors shadow 8");
  assert_answer(db, "SELECT * FROM notes LIMIT 1", "time flies|en");
  close_docs(db);
}

/* Views and triggers of the schema may use the table, trusted or not; the operator
** MATCH is one that SQLite itself does not trust there, so they write =. */
static void views_work_in_an_untrusted_schema(void **state) {
  sqlite3 *db = open_docs(state, ", triggers=1");
  assert_runs(db,
              "PRAGMA trusted_schema = OFF;"
              "CREATE VIEW near AS SELECT rowid, body FROM notes WHERE notes = 'time flies' AND "
              "k = 1; CREATE VIEW refused AS SELECT * FROM notes WHERE notes MATCH 'x'; CREATE "
              "VIEW state AS SELECT name, pending FROM bert_status;"
              "CREATE TABLE log(x); CREATE TRIGGER copy AFTER INSERT ON log BEGIN INSERT INTO "
              "notes(body) VALUES(new.x); END");
  assert_answer(db, "SELECT * FROM near", "1|time flies");
  assert_error(db, "SELECT * FROM refused", "unsafe use of MATCH");
  assert_runs(db, "UPDATE docs SET body = 'x' WHERE id = 1; INSERT INTO log VALUES('logged')");
  assert_answer(db, "SELECT * FROM state ORDER BY 1", "docs_emb|1\nnotes|0");
  assert_answer(db, "SELECT rowid FROM notes WHERE notes MATCH 'logged' AND k = 1", "4");
  assert_runs(db, REFRESH);
  close_docs(db);
}

/* A program in defensive mode cannot write shadow tables, but to everything else. */
static void defensive_mode_guards_shadow_tables(void **state) {
  sqlite3 *db = open_docs(state, ", triggers=1");
  static const char *const tables[] = {"config", "rows", "vectors", "packed", "content"};
  assert_int_equal(sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL), SQLITE_OK);
  for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
    char *sql = sqlite3_mprintf("DELETE FROM notes_%s", tables[i]);
    assert_error(db, sql, "may not be modified");
    sqlite3_free(sql);
    sql = sqlite3_mprintf("DROP TABLE notes_%s", tables[i]);
    assert_error(db, sql, "may not be dropped");
    sqlite3_free(sql);
  }
  assert_runs(db, "UPDATE docs SET body = 'x' WHERE id = 1; INSERT INTO docs(body) VALUES('y');"
                  "DELETE FROM docs WHERE id = 2");
  assert_answer(db, PENDING, "3");
  assert_runs(db,
              REFRESH "; INSERT INTO notes(body) VALUES('z'); BEGIN; UPDATE notes SET body = 'w' "
                      "WHERE rowid = 1; DELETE FROM notes WHERE rowid = 2; COMMIT");
  assert_runs(db, "INSERT INTO notes(notes) VALUES('rebuild');"
                  "INSERT INTO notes(notes) VALUES('optimize')");
  assert_finds_itself(db, "docs_emb", "docs", "id", "body");
  assert_runs(db, "ALTER TABLE docs_emb RENAME TO e; DROP TABLE e;"
                  "CREATE VIRTUAL TABLE docs_emb USING bertsql(body, content='docs', triggers=1)");
  assert_runs(db, REFRESH);
  close_docs(db);
}

/* xIntegrity, which SQLite calls from 3.44 on. */
static void sqlite_checks_the_table_itself(void **state) {
  sqlite3 *db = open_docs(state, "");
  if (sqlite3_libversion_number() < 3044000) {
    print_message("PRAGMA integrity_check of %s does not ask virtual tables\n",
                  sqlite3_libversion());
    close_docs(db);
    return;
  }
  assert_answer(db, "PRAGMA integrity_check", "ok");
  assert_answer(db, "PRAGMA quick_check", "ok");
  assert_runs(db, "CREATE TABLE saved AS SELECT * FROM notes_vectors; DELETE FROM notes_vectors "
                  "WHERE id = 1");
  char *answer = sqldb_answer(db, "PRAGMA integrity_check", NULL);
  assert_non_null(strstr(answer, "in bertsql table notes: "));
  sqlite3_free(answer);
  assert_answer(db, "PRAGMA quick_check", "ok");
  assert_runs(db, "INSERT INTO notes_vectors SELECT * FROM saved WHERE id = 1");
  close_docs(db);
}

int main(void) {
#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, tabledb_set_up, tabledb_tear_down)
  const struct CMUnitTest tests[] = {
      IN_FOLDER(a_renamed_table_keeps_all),
      IN_FOLDER(a_rename_is_taken_back),
      IN_FOLDER(a_rename_that_fails_changes_nothing),
      IN_FOLDER(a_renamed_content_table_is_an_error),
      IN_FOLDER(a_renamed_column_of_content_is_an_error),
      IN_FOLDER(drop_leaves_nothing),
      IN_FOLDER(a_damaged_table_can_be_dropped),
      IN_FOLDER(a_table_in_use_is_not_dropped),
      IN_FOLDER(a_table_may_be_written_under_a_cursor),
      IN_FOLDER(vacuum_keeps_all),
      IN_FOLDER(vacuum_into_makes_a_copy_that_works),
      IN_FOLDER(a_table_lives_in_an_attached_database),
      IN_FOLDER(a_temp_table_works),
      IN_FOLDER(pragmas_show_the_columns),
      IN_FOLDER(views_work_in_an_untrusted_schema),
      IN_FOLDER(defensive_mode_guards_shadow_tables),
      IN_FOLDER(sqlite_checks_the_table_itself),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
