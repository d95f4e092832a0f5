#!/bin/bash
# The usage example of encoder/bert.h (between @example and @end), compiled with
# warnings as errors, linked to libencoder.a and run with the real model.
# CC and ENCODER_LIBS come from the Makefile.
source tests/tools/assert.sh

compile_example() {
  sed -n '/^\*\* @example/,/^\*\* @end/p' encoder/bert.h | sed -e '1d;$d' -e 's/^\*\*//' >"$work/example.c"
  [ -s "$work/example.c" ] || fail "encoder/bert.h has no example"
  # shellcheck disable=SC2086 # lists of arguments
  ${CC:-gcc} -std=c11 -Wall -Wextra -Wpedantic -Werror -Iencoder ${BERTSQL_CFLAGS:-} -pthread \
    -o "$work/example" "$work/example.c" "${BERTSQL_OUT:-build}/libencoder.a" $ENCODER_LIBS -lm
}

test_example_embeds() {
  compile_example
  found=$("$work/example" models/all-MiniLM-L6-v2)
  expect_match '^384 numbers, the first is -?0\.[0-9]{4}$' "$found"
}

test_example_reports_an_error() {
  compile_example
  expect_failure "$work/example" "$work/nowhere"
  expect_match "$work/nowhere" "$output"
}

# The public header stands alone, in C and in C++.
test_header_alone() {
  echo '#include "bert.h"' >"$work/alone.c"
  ${CC:-gcc} -std=c11 -Wall -Wextra -Wpedantic -Werror -Iencoder -fsyntax-only "$work/alone.c"
}

run_tests
