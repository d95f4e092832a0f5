#!/bin/bash
# run_tests.sh [-j JOBS] [-t SECONDS] LOGS PROGRAM…: runs test programs and counts.
#
# A program is a cmocka executable or a script that reports in TAP. Its output
# goes to LOGS/NAME.log and is shown when something failed. A program that
# crashes, hangs, reports no test or ends with an error without saying which
# test failed counts as a failed test; so does every test that it announced and
# did not pass, skipped ones included. The last line is "N passed, N failed".
# BERTSQL_RUN is put before each command: valgrind, for example.
set -uo pipefail

# What the output on stdin reports: "passed failed".
count() {
  awk '
    # cmocka, which puts the name of the group before "Running" from 1.1.6 on
    /^\[==========\] (.*: )?Running [0-9]+ test/ {
      for (i = 1; i < NF; i++) if ($i == "Running") announced += $(i + 1)
    }
    /^\[       OK \] /                    { passed++ }
    /^1\.\.[0-9]+/                        { announced += substr($1, 4) }  # TAP
    /^ok [0-9]+/ && !/# *(SKIP|skip)/     { passed++ }
    /^not ok [0-9]+/                      { broken++ }
    END {
      failed = announced - passed
      if (failed < 0) failed = 1 # more than there should be: the count is wrong
      if (broken > failed) failed = broken
      print passed + 0, failed + 0
    }'
}

# Runs one program; leaves "passed failed" in LOGS/NAME.count.
run_one() {
  local logs=$1 seconds=$2 program=$3
  local name started=$SECONDS status passed failed
  name=$(basename "$program" .sh)
  # shellcheck disable=SC2086 # a command with its arguments
  case $program in
  *.sh) timeout --kill-after=10 "$seconds" bash "$program" ;;
  *) timeout --kill-after=10 "$seconds" ${BERTSQL_RUN:-} "$program" ;;
  esac >"$logs/$name.log" 2>&1 </dev/null
  status=$?
  read -r passed failed < <(count <"$logs/$name.log")
  if ! [[ $passed$failed =~ ^[0-9]+$ ]]; then passed=0 failed=1; fi
  if [ "$failed" = 0 ] && { [ $status != 0 ] || [ "$passed" = 0 ]; }; then failed=1; fi
  echo "$passed $failed" >"$logs/$name.count"
  if [ "$failed" = 0 ]; then
    printf '  %-28s %4d passed  %3d s\n' "$name" "$passed" $((SECONDS - started))
    return
  fi
  case $status in
  124 | 137) echo "stopped after $seconds seconds" >>"$logs/$name.log" ;;
  esac
  {
    printf '  %-28s %4d passed, %d FAILED (exit status %d)  %3d s\n' "$name" "$passed" "$failed" \
      $status $((SECONDS - started))
    { head -n -60 "$logs/$name.log" | grep -A 8 '^not ok'; tail -n 60 "$logs/$name.log"; } | sed 's/^/    | /'
  } | cat # in one write, so that two jobs do not mix their lines
}

if [ "${1:-}" = --one ]; then
  shift
  run_one "$@"
  exit
fi

jobs=2 seconds=600
while getopts j:t: option; do
  case $option in
  j) jobs=$OPTARG ;;
  t) seconds=$OPTARG ;;
  *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))

logs=$1
shift
if [ $# = 0 ]; then
  echo "no test program has that word in its name"
  echo "0 passed, 0 failed"
  exit 1
fi
rm -rf "$logs"
mkdir -p "$logs"
printf '%s\0' "$@" | xargs -0 -n 1 -P "$jobs" bash "$0" --one "$logs" "$seconds"

passed=0 failed=0
for program in "$@"; do
  counts=$logs/$(basename "$program" .sh).count
  read -r ok bad <"$counts" || { ok=0 bad=1; }
  if ! [[ $ok$bad =~ ^[0-9]+$ ]]; then ok=0 bad=1; fi
  passed=$((passed + ok)) failed=$((failed + bad))
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
