#!/bin/bash
# The SQL tests: each tests/sql/NAME.sql, run by the sqlite3 shell with the
# extension loaded, must print exactly tests/sql/NAME.out. `--write` writes the
# .out files instead (make sql-expected); read the difference before committing.
source tests/tools/shell_output.sh

run_case() { run_sqlite -cmd ".load bertsql" :memory: <"$1" 2>&1 | plain_errors; }

shopt -s nullglob
cases=(tests/sql/*.sql)
if [ "${1:-}" = --write ]; then
  for case in "${cases[@]}"; do run_case "$case" >"${case%.sql}.out"; done
  exit
fi

echo "1..${#cases[@]}"
number=0 failed=0
for case in "${cases[@]}"; do
  number=$((number + 1))
  name=$(basename "$case" .sql)
  if difference=$(diff --label "${case%.sql}.out" --label found -u "${case%.sql}.out" <(run_case "$case") 2>&1); then
    echo "ok $number - $name"
  else
    echo "not ok $number - $name"
    sed 's/^/# /' <<<"$difference"
    failed=1
  fi
done
exit $failed
