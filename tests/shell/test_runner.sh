#!/bin/bash
# The test runner counts what it should: each way of failing is a failure.
source tests/tools/assert.sh

# program NAME TEXT: a script that runs TEXT.
program() {
  printf '%s\n' "$2" >"$work/$1.sh"
}

# Runs the programs; leaves the last line in $line and the exit status in $code.
# The trailing newline shows that the line stands alone.
count() {
  code=0
  output=$(bash tests/tools/run_tests.sh -t 2 "$work/logs" "$@") || code=$?
  line=$(tail -n 1 <<<"$output")
}

test_passes() {
  program tap 'echo 1..2; echo "ok 1 - a"; echo "ok 2 - b"'
  program cmocka 'echo "[==========] Running 1 test(s)."; echo "[       OK ] a"; echo "[  PASSED  ] 1 test(s)."'
  count "$work/tap.sh" "$work/cmocka.sh"
  expect_equal '3 passed, 0 failed 0' "$line $code"
  program cmocka 'echo "[==========] tests: Running 1 test(s)."; echo "[       OK ] a"; echo "[  PASSED  ] 1 test(s)."'
  count "$work/cmocka.sh"
  expect_equal '1 passed, 0 failed 0' "$line $code"
}

# $1: a script that should count as $2.
expect_count() {
  program one "$1"
  count "$work/one.sh"
  expect_equal "$2 1" "$line $code"
}

test_each_way_of_failing() {
  expect_count 'echo 1..2; echo "ok 1 - a"; echo "not ok 2 - b"; exit 1' '1 passed, 1 failed'
  expect_count 'echo 1..2; echo "ok 1 - a"; echo "not ok 2 - b"; exit 0' '1 passed, 1 failed'
  expect_count 'echo 1..2; echo "ok 1 - a"; kill -SEGV $$' '1 passed, 1 failed'
  expect_count 'echo 1..1; echo "ok 1 - a"; exit 3' '1 passed, 1 failed'
  expect_count 'echo 1..1; echo "ok 1 - a # SKIP no model"' '0 passed, 1 failed'
  expect_count 'echo 1..1; echo "ok 1 - a"; echo "ok 2 - b"' '2 passed, 1 failed'
  expect_count 'echo "[       OK ] a"; exit 1' '1 passed, 1 failed'
  expect_count 'true' '0 passed, 1 failed'
  expect_count 'echo 1..1; sleep 60' '0 passed, 1 failed'
  expect_count 'echo "[==========] Running 3 test(s)."; echo "[       OK ] a"; echo "[  FAILED  ] b"; echo "[  FAILED  ] b"; exit 1' \
    '1 passed, 2 failed'
}

test_output_of_a_failure_is_shown() {
  program bad 'echo 1..1; echo "not ok 1 - the reason"'
  count "$work/bad.sh"
  expect_match 'not ok 1 - the reason' "$output"
  program bad 'echo 1..101; echo "not ok 1 - the reason"; for i in {2..101}; do echo "ok $i - a"; done'
  count "$work/bad.sh"
  expect_equal '100 passed, 1 failed 1' "$line $code"
  expect_match 'not ok 1 - the reason' "$output"
}

test_a_missing_program_fails() {
  count "$work/nothing.sh"
  expect_equal '0 passed, 1 failed 1' "$line $code"
}

# The helpers of the shell tests: a command that fails inside fails the test.
test_shell_tests_can_fail() {
  cat >"$work/inner.sh" <<'SCRIPT'
source tests/tools/assert.sh
test_a() { false; true; }
test_b() { expect_equal 1 2; true; }
test_c() { expect_failure true; true; }
test_d() { expect_match x y; true; }
test_e() { helper_that_is_not_there; true; }
test_f() { true; }
run_tests
SCRIPT
  count "$work/inner.sh"
  expect_equal '1 passed, 5 failed 1' "$line $code"
}

run_tests
