#!/bin/bash
# The session of `make demo` runs without an error and prints what it should.
# `--write` writes down what it prints now (make sql-expected).
source tests/tools/assert.sh
source tests/tools/shell_output.sh

if [ "${1:-}" = --write ]; then
  run_sqlite :memory: <sql/demo.sql >tests/docs/demo.out 2>&1
  exit
fi

test_demo_prints_what_is_expected() {
  found=$(run_sqlite :memory: <sql/demo.sql 2>&1)
  expect_equal "$(cat tests/docs/demo.out)" "$found"
  if grep -i error <<<"$found"; then fail "the demo prints an error"; fi
}

run_tests
