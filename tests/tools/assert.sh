# assert.sh: sourced by the tests written in shell. A test is a function named
# test_…; `run_tests` runs each in a subshell with errexit, in a fresh folder
# $work, and reports in TAP. A test fails by a command that fails.

root=$(pwd)

# fail MESSAGE…
fail() {
  printf '%s\n' "$*"
  return 1
}

# expect_equal EXPECTED FOUND: shows the difference.
expect_equal() {
  if [ "$1" = "$2" ]; then return 0; fi
  diff --label expected --label found -u <(printf '%s\n' "$1") <(printf '%s\n' "$2") || true
  return 1
}

# expect_match PATTERN TEXT: an extended regular expression, somewhere in the text.
expect_match() {
  if grep -qE -- "$1" <<<"$2"; then return 0; fi
  fail "no line matches '$1' in:" "$2"
}

# expect_failure COMMAND…: must fail; what it printed is left in $output.
expect_failure() {
  if output=$("$@" 2>&1); then fail "should have failed: $*" "$output"; fi
}

run_tests() {
  local tests name number=0 failed=0 log status outer
  tests=$(declare -F | awk '$3 ~ /^test_/ { print $3 }')
  echo "1..$(wc -w <<<"$tests")"
  for name in $tests; do
    number=$((number + 1))
    outer=$(mktemp -d)
    work=$outer/work # with nothing strange in the folder above
    mkdir "$work"
    # Not as the condition of an if: bash would ignore errexit in all of it.
    log=$( (set -eu; "$name") 2>&1)
    status=$?
    if [ $status = 0 ]; then
      echo "ok $number - ${name#test_}"
    else
      echo "not ok $number - ${name#test_}"
      sed 's/^/# /' <<<"$log"
      failed=1
    fi
    rm -rf "$outer"
  done
  exit $failed
}
