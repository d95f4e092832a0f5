# host_tests.sh: sourced by test_oldest_sqlite.sh and test_newest_sqlite.sh;
# bertsql on another SQLite than the system's, as tests/tools/build_sqlite.sh made it.
#
# The same tests run as on the system's, with the same expectations: the SQL of
# the tests and of the pages in a shell of that version, and the programs that load
# the extension with that version's library in place of the one they were linked
# with. All report to the same output, where run_tests.sh adds them up.
source tests/tools/assert.sh

# What takes long and asks about bertsql rather than about its host: failures of
# every single allocation, processes that are killed, thousands of random steps.
long_programs='_(memory|faults|crash|random|sequences|corrupt|corruption|fuzz|million)$'

host_programs() {
  basename --suffix=.c --multiple tests/unit/test_ext_*.c | grep -vE "$long_programs"
}

test_the_shell_has_this_version() {
  expect_equal "$host_version" "$("$host/sqlite3" -batch -init /dev/null :memory: 'SELECT sqlite_version()')"
}

test_programs_load_this_library() {
  for program in $(host_programs); do
    expect_match "libsqlite3.so.0 => $host/" "$(LD_LIBRARY_PATH=$host ldd "build/release/$program")"
  done
}

# Whoever builds bertsql may have headers older or newer than ours.
test_builds_with_these_headers() {
  # shellcheck disable=SC2046 # a list of files
  ${CC:-gcc} -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$host/include" \
    $(find ext -name '*.c')
}

# on_host NAME COMMAND…: remembers the name when the command fails.
on_host() {
  echo "# $1 on SQLite $host_version"
  "${@:2}" || failed="$failed $1"
}

# tests_on_sqlite NAME VERSION: NAME is the folder in build/sqlite.
tests_on_sqlite() {
  host=$root/build/sqlite/$1 host_version=$2 failed=
  local name
  (run_tests) # with no `||` behind it, which would take errexit from the tests
  if [ $? != 0 ]; then failed=" host_tests"; fi
  for name in test_sql test_readme test_recipes; do
    on_host $name env BERTSQL_SHELL="$host/sqlite3" bash tests/shell/$name.sh
  done
  for name in $(host_programs); do
    on_host "$name" env LD_LIBRARY_PATH="$host" "build/release/$name"
  done
  if [ -z "$failed" ]; then exit 0; fi
  echo "# failed on SQLite $host_version:$failed"
  exit 1
}
