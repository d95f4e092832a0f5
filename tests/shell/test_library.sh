#!/bin/bash
# What build/bertsql.so is to the outside.
source tests/tools/assert.sh
library=${BERTSQL_OUT:-build}/bertsql.so

test_exports_only_its_entry_point() {
  expect_equal sqlite3_bertsql_init "$(nm --dynamic --defined-only --format=posix "$library" | cut -d' ' -f1)"
}

test_needs_only_the_c_library() {
  needed=$(objdump -p "$library" | awk '$1 == "NEEDED" { print $2 }' | grep -vE '^(libc|libm|libpthread|libdl|ld-linux.*)\.so' || true)
  expect_equal "" "$needed"
}

# 0x8 in DT_FLAGS and the GNU_STACK header: nothing is both writable and executable.
test_has_no_executable_stack() {
  expect_match 'GNU_STACK.* RW ' "$(readelf --wide --program-headers "$library")"
}

run_tests
