#!/bin/bash
# README.md and the pages of sql/docs are true: their examples print what they
# show, every function is described and has an example, and what README.md says
# of `make demo` is in the demo's output. `--write` puts what is printed now into
# them (make sql-expected).
source tests/tools/assert.sh
source tests/tools/shell_output.sh

# run_examples FOLDER PAGE: all examples of a page in one session, in their order,
# as a reader would type them.
run_examples() {
  awk -v folder="$1" -f tests/docs/examples.awk "$2"
  run_sqlite -cmd '.mode box --wrap 100' -cmd ".load bertsql" :memory: <"$1/session.sql" 2>&1 | plain_errors
}

# The lines of the demo's output from its question to its answer.
demo_excerpt() {
  run_sqlite :memory: <sql/demo.sql 2>&1 | awk '/^-- 4\. /, /^└/'
}

# Writes what is printed now into the pages.
if [ "${1:-}" = --write ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  demo_excerpt >"$work/demo"
  for page in "${pages[@]}"; do
    run_examples "$work" "$page" >"$work/found"
    awk -v found="$work/found" -v demo="$work/demo" -f tests/docs/fill_examples.awk "$page" >"$work/page"
    cat "$work/page" >"$page"
  done
  exit
fi

# Each page is compared, also after one that differs.
test_examples_print_what_is_shown() {
  wrong=
  for page in "${pages[@]}"; do
    found=$(run_examples "$work" "$page")
    expect_equal "$(cat "$work/expected")" "$found" || wrong="$wrong $page"
  done
  [ -z "$wrong" ] || fail "other outputs than in$wrong"
}

# All functions and tables of a connection to which `load` was done, by name.
known() {
  run_sqlite "$@" :memory: "SELECT name FROM pragma_function_list UNION SELECT name FROM pragma_module_list" | sort -u
}

# Those that the extension registers: what is there with it and not without it.
# whole_of_bertsql refuses everybody but the virtual table's own statements.
registered() {
  comm -13 <(known) <(known -cmd ".load bertsql") | grep -vx whole_of_bertsql
}

test_every_function_has_an_example() {
  for page in "${pages[@]}"; do
    awk -v folder="$work" -f tests/docs/examples.awk "$page"
    cat "$work/session.sql" >>"$work/all.sql"
  done
  names=$(registered)
  expect_match '^bert_embed$' "$names"
  for name in $names; do
    grep -qw "$name" "$work/all.sql" || fail "no page has an example of $name"
  done
}

# The head of a chapter or the first cell of a row in a table is about the name.
test_every_function_is_described_in_a_page() {
  names=$(registered)
  expect_match '^bertsql$' "$names"
  cat sql/docs/*.md | grep -E '^#|^\| `' | sed 's/^\(| `[^|]*|\).*/\1/' >"$work/subjects"
  for name in $names; do
    grep -qw "$name" "$work/subjects" || fail "no page of sql/docs has a chapter or a row for $name"
    grep -qw "$name" README.md || fail "README.md does not name $name"
  done
}

test_no_function_is_described_that_does_not_exist() {
  names=$(registered)
  for name in $(cat "${pages[@]}" | grep -oE '(`|^##* .*)(bert|attn)_[a-z0-9_]+\(' | grep -oE '(bert|attn)_[a-z0-9_]+\($' |
    tr -d '(' | sort -u); do
    grep -qx "$name" <<<"$names" || fail "a page describes $name, which does not exist"
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
