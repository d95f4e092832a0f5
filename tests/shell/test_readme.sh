#!/bin/bash
# README.md is true: its examples print what it shows, every function has one,
# and what it says of `make demo` is in the demo's output. `--write` puts what is
# printed now into README.md (make sql-expected).
source tests/tools/assert.sh
source tests/tools/shell_output.sh

# All examples in one session, in their order, as a reader would type them.
run_examples() {
  awk -v folder="$1" -f tests/docs/examples.awk README.md
  run_sqlite -cmd '.mode box --wrap 100' -cmd ".load bertsql" :memory: <"$1/session.sql" 2>&1 | plain_errors
}

# The lines of the demo's output from its question to its answer.
demo_excerpt() {
  run_sqlite :memory: <sql/demo.sql 2>&1 | awk '/^-- 4\. /, /^└/'
}

# Writes what is printed now into README.md.
if [ "${1:-}" = --write ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  run_examples "$work" >"$work/found"
  demo_excerpt >"$work/demo"
  awk -v found="$work/found" -v demo="$work/demo" -f tests/docs/fill_examples.awk README.md >"$work/README.md"
  cat "$work/README.md" >README.md
  exit
fi

test_examples_print_what_is_shown() {
  found=$(run_examples "$work")
  expect_equal "$(cat "$work/expected")" "$found"
}

# Functions and tables that the extension registers, by name.
registered() {
  run_sqlite -cmd ".load bertsql" :memory: "
    SELECT name FROM pragma_function_list WHERE name LIKE 'bert%' OR name LIKE 'attn%' OR
      name IN ('self_attention', 'positional_encoding') UNION
    SELECT name FROM pragma_module_list WHERE name LIKE 'bert%' OR name LIKE 'attn%'"
}

test_every_function_has_an_example() {
  awk -v folder="$work" -f tests/docs/examples.awk README.md
  names=$(registered)
  expect_match '^bert_embed$' "$names"
  for name in $names; do
    grep -qw "$name" "$work/session.sql" || fail "README.md has no example of $name"
  done
}

test_no_function_is_described_that_does_not_exist() {
  names=$(registered)
  for name in $(grep -oE '`(bert|attn)_[a-z0-9_]+\(' README.md | tr -d '`(' | sort -u); do
    grep -qx "$name" <<<"$names" || fail "README.md describes $name, which does not exist"
  done
}

# The block ```text after the line <!-- from make demo --> is an excerpt.
test_excerpt_of_the_demo() {
  excerpt=$(awk '/<!-- from make demo -->/ { wait = 1; next }
    wait && /^```text/ { inside = 1; next }
    inside && /^```/ { exit }
    inside' README.md)
  [ -n "$excerpt" ] || fail "README.md shows no output of make demo"
  demo=$(run_sqlite :memory: <sql/demo.sql 2>&1)
  case $demo in
  *"$excerpt"*) ;;
  *) fail "this is not in the output of the demo:" "$excerpt" "--- the demo printed" "$demo" ;;
  esac
}

run_tests
