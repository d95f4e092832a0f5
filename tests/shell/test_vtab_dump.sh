#!/bin/bash
# A database with bertsql tables, written out by the sqlite3 shell and made anew:
# .dump and .backup, with the extension loaded or without.
source tests/tools/assert.sh
source tests/tools/shell_output.sh

tiny="SELECT bert_load('tests/golden/families/bert-mean', 'tiny');"

with_bertsql() { run_sqlite -cmd ".load bertsql" -cmd ".output /dev/null" -cmd "$tiny" -cmd ".output" "$@"; }
plain() { "${BERTSQL_SHELL:-sqlite3}" -batch -init /dev/null "$@"; }

# One table of each kind, one change that waits, and texts that are hard to quote.
make_database() {
  with_bertsql "$1" <<'SQL'
CREATE TABLE docs(id INTEGER PRIMARY KEY, body TEXT);
INSERT INTO docs VALUES(1, 'time flies like an arrow'), (2, NULL), (5, 'it''s "a" red apple'), (6, '');
CREATE VIRTUAL TABLE docs_emb USING bertsql(body, content='docs', triggers=1, model='tiny', prompt='it''s: ');
INSERT INTO docs_emb(docs_emb) VALUES('refresh');
CREATE VIRTUAL TABLE "my notes" USING bertsql("the body" TEXT, lang UNINDEXED, model='tiny', dtype=int8, chunk_tokens=8);
INSERT INTO "my notes"(rowid, "the body", lang) VALUES(-7, 'two
lines', 'en'), (9, x'00ff61', 5), (9223372036854775807, 'the last', NULL);
UPDATE docs SET body = 'a change that waits' WHERE id = 6;
SQL
}

# All that may be asked of them.
answers() {
  with_bertsql "$1" <<'SQL'
SELECT rowid, quote(body), quote(embedding), status FROM docs_emb;
SELECT rowid, quote("the body"), quote(lang), quote(embedding) FROM "my notes";
SELECT rowid, distance FROM docs_emb WHERE docs_emb MATCH 'a red apple';
SELECT rowid, distance, start, stop FROM "my notes" WHERE "my notes" MATCH 'lines' AND k = 2;
SELECT name, rows, pending, failed, model FROM bert_status;
INSERT INTO docs_emb(docs_emb) VALUES('integrity-check');
INSERT INTO "my notes"("my notes") VALUES('integrity-check');
PRAGMA integrity_check;
SQL
}

# What was made anew is still alive: triggers, refresh, writes.
lives_on() {
  local found
  found=$(with_bertsql "$1" <<'SQL'
DELETE FROM docs WHERE id = 1;
SELECT pending FROM bert_status WHERE name = 'docs_emb';
INSERT INTO docs_emb(docs_emb) VALUES('refresh');
INSERT INTO "my notes"("the body") VALUES('at a random rowid');
SELECT group_concat(rowid) FROM docs_emb WHERE docs_emb MATCH 'a change that waits';
DELETE FROM "my notes" WHERE rowid > 9;
INSERT INTO "my notes"("the body") VALUES('new');
SELECT rowid FROM "my notes" WHERE "my notes" MATCH 'new' AND k = 1;
INSERT INTO docs_emb(docs_emb) VALUES('rebuild');
DROP TABLE docs_emb;
DROP TABLE "my notes";
SELECT name FROM sqlite_schema;
SQL
  ) || true
  expect_equal "$2" "$found"
}

expect_the_same() {
  expect_equal "$(answers "$1")" "$(answers "$2")"
}

test_dump_is_restored_without_bertsql() {
  make_database "$work/a"
  with_bertsql "$work/a" .dump >"$work/dump.sql"
  plain "$work/b" <"$work/dump.sql"
  expect_the_same "$work/a" "$work/b"
  with_bertsql "$work/b" .dump | diff "$work/dump.sql" -
}

test_dump_is_restored_with_bertsql() {
  make_database "$work/a"
  with_bertsql "$work/a" .dump >"$work/dump.sql"
  with_bertsql "$work/b" <"$work/dump.sql"
  expect_the_same "$work/a" "$work/b"
}

# The tables are ordinary ones, so that a shell that knows nothing of bertsql writes
# out the same.
test_dump_needs_no_bertsql() {
  make_database "$work/a"
  with_bertsql "$work/a" .dump >"$work/dump.sql"
  plain "$work/a" .dump | diff "$work/dump.sql" -
}

test_what_was_restored_lives_on() {
  make_database "$work/a"
  with_bertsql "$work/a" .dump | plain "$work/b"
  lives_on "$work/b" "2
6,5
10
docs"
}

test_backup_is_whole() {
  make_database "$work/a"
  plain "$work/a" ".backup '$work/b'"
  expect_the_same "$work/a" "$work/b"
  lives_on "$work/b" "2
6,5
10
docs"
}

run_tests
