#!/bin/bash
# lint.sh: clang-tidy (.clang-tidy), cppcheck and the rules of the house over the
# C sources; shellcheck over the scripts and node over the page's where they are
# installed. Any finding is an error.
set -uo pipefail

for tool in clang-tidy cppcheck; do
  command -v $tool >/dev/null || {
    echo "make lint needs $tool: apt-get install clang-tidy cppcheck" >&2
    exit 1
  }
done

sources=(encoder/*/*.c ext/*.c ext/*/*.c)
tests=(tests/unit/*.c)
headers=(encoder/*.h encoder/*/*.h ext/*.h ext/*/*.h)
status=0

# The file names of the sources are unique, so that a name alone says which.
rules() {
  local doubles
  awk -f tests/tools/house_rules.awk "${sources[@]}" "${headers[@]}" || return 1
  doubles=$(find encoder ext sql tests/unit tests/tools tests/shell tests/sql tests/docs -type f \
    ! -name README.md -printf '%f\n' | sort | uniq -d)
  if [ -n "$doubles" ]; then
    echo "file names that stand twice: $doubles"
    return 1
  fi
}

triplet=$(${CC:-gcc} -print-multiarch 2>/dev/null)
tidy() {
  printf '%s\0' "${sources[@]}" "${tests[@]}" |
    xargs -0 -n 4 -P 2 sh -c 'clang-tidy --quiet "$@" -- -std=c11 -D_GNU_SOURCE -I. -Iencoder \
      -Itests/support -DBERTSQL_LIBRARY=\"build/bertsql\" \
      '"$(sh tests/tools/find_library.sh cblas.h "$triplet")"' 2>/dev/null' tidy
}

check() {
  cppcheck --quiet --std=c11 --language=c --enable=warning,performance,portability \
    --inline-suppr --suppressions-list=tests/tools/cppcheck.supp --error-exitcode=1 -j 2 \
    -D_GNU_SOURCE -D__x86_64__ "${sources[@]}"
}

scripts() {
  if ! command -v shellcheck >/dev/null; then return 0; fi
  shellcheck --exclude=SC1091 tests/tools/*.sh tests/shell/*.sh sql/page/*.sh .ci/run
}

# The page's scripts and its tests, where node is installed: their syntax.
page() {
  local file bad=0
  if ! command -v node >/dev/null; then return 0; fi
  for file in sql/page/*.js tests/page/*.mjs; do node --check "$file" || bad=1; done
  return $bad
}

for step in rules tidy check scripts page; do
  echo "lint: $step"
  $step || status=1
done
exit $status
