#!/bin/bash
# The extension built into a program with -DSQLITE_CORE instead of loaded.
# CC and ENCODER_LIBS come from the Makefile.
source tests/tools/assert.sh

write_program() {
  cat >"$work/program.c" <<'C'
#include <sqlite3.h>
#include <stdio.h>

int sqlite3_bertsql_init(sqlite3 *db, char **message, const void *api);

static int print(void *user, int columns, char **values, char **names) {
  (void)user, (void)columns, (void)names;
  puts(values[0]);
  return 0;
}

int main(int argc, char **argv) {
  sqlite3 *db;
  char *message = NULL;
  if (sqlite3_open(":memory:", &db) != SQLITE_OK || argc != 2) return 2;
  if (sqlite3_bertsql_init(db, NULL, NULL) != SQLITE_OK) return 3;
  if (sqlite3_bertsql_init(db, &message, NULL) != SQLITE_OK) return 4; /* harmless */
  if (sqlite3_exec(db, argv[1], print, NULL, &message) != SQLITE_OK) puts(message);
  sqlite3_free(message);
  return sqlite3_close(db);
}
C
}

test_static_build() {
  write_program
  # shellcheck disable=SC2046,SC2086 # lists of arguments
  ${CC:-gcc} -std=c11 -D_GNU_SOURCE -DSQLITE_CORE -Wall -Wextra -Wpedantic -Werror ${BERTSQL_CFLAGS:-} \
    -pthread -o "$work/program" "$work/program.c" $(find ext -name "*.c") -I. build/page/page_assets.c "${BERTSQL_OUT:-build}/libencoder.a" \
    $ENCODER_LIBS -lsqlite3 -ldl -lm
  expect_equal 6.0 "$("$work/program" "SELECT bert_dot('[2]', '[3]')")"
  expect_equal 1536 "$(BERTSQL_MODEL=models/all-MiniLM-L6-v2 "$work/program" "SELECT length(bert_embed('x'))")"
  expect_match 'there is no model: .*/models/default' "$("$work/program" "SELECT bert_embed('x')")"
}

run_tests
