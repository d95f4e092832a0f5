#!/bin/bash
# The recipes of sql/recipes run from top to bottom and print what
# tests/docs/recipes holds. `--write` writes that anew (make sql-expected).
source tests/tools/assert.sh
source tests/tools/shell_output.sh

run_recipe() {
  run_sqlite -cmd ".load bertsql" -cmd ".mode box" :memory: <"$1" 2>&1 | plain_errors
}

# Puts what a recipe prints into its block in a page.
fill_page() {
  awk -v from="<!-- from $1 -->" -v output="tests/docs/recipes/$(basename "$1" .sql).out" '
    inside && /^```/ { while ((getline line < output) > 0) print line; inside = 0 }
    !inside
    $0 == from { wait = 1 }
    wait && /^```text/ { inside = 1; wait = 0 }' "$2" >tests/docs/recipes/page.new
  cat tests/docs/recipes/page.new >"$2"
  rm tests/docs/recipes/page.new
}

if [ "${1:-}" = --write ]; then
  for recipe in sql/recipes/*.sql; do
    run_recipe "$recipe" >"tests/docs/recipes/$(basename "$recipe" .sql).out"
    for page in "${pages[@]}"; do fill_page "$recipe" "$page"; done
  done
  exit
fi

test_recipes_print_what_is_expected() {
  count=0
  for recipe in sql/recipes/*.sql; do
    expect_equal "$(cat "tests/docs/recipes/$(basename "$recipe" .sql).out")" "$(run_recipe "$recipe")"
    count=$((count + 1))
  done
  [ "$count" -gt 0 ]
}

test_recipes_have_no_output_left_over() {
  for output in tests/docs/recipes/*.out; do
    [ -e "sql/recipes/$(basename "$output" .out).sql" ] || fail "no recipe for $output"
  done
}

# The block ```text after the line <!-- from sql/recipes/NAME.sql -->.
shown_in_pages() {
  awk -v from="<!-- from $1 -->" '
    $0 == from { wait = 1; next }
    wait && /^```text/ { inside = 1; wait = 0; next }
    inside && /^```/ { exit }
    inside' "${pages[@]}"
}

test_pages_show_what_they_print() {
  for recipe in sql/recipes/*.sql; do
    expect_equal "$(cat "tests/docs/recipes/$(basename "$recipe" .sql).out")" "$(shown_in_pages "$recipe")"
  done
}

run_tests
