#!/bin/bash
# make install, install-model and uninstall: into a DESTDIR, under a PREFIX of
# its own, and, where the tests run as root, for real under /usr/local.
source tests/tools/assert.sh

installer() { sh tests/tools/install.sh "$@"; }

# Paths of files and links below $1, sorted.
tree() { (cd "$1" && find . ! -type d | sort); }

library_files='./usr/local/include/bert.h
./usr/local/lib/bertsql.so
./usr/local/lib/libbertsql.so
./usr/local/lib/libencoder.a'

test_destdir() {
  export DESTDIR=$work/root PREFIX=/usr/local
  output=$(installer install)
  expect_match "^Installed $work/root/usr/local/lib/bertsql.so$" "$output"
  expect_equal "$library_files" "$(tree "$work/root")"
  cmp build/bertsql.so "$work/root/usr/local/lib/libbertsql.so"
  installer uninstall
  expect_equal "" "$(tree "$work/root")"
}

test_uninstall_leaves_other_files() {
  export DESTDIR=$work/root PREFIX=/usr
  mkdir -p "$work/root/usr/share/bertsql/models/mine"
  echo mine >"$work/root/usr/share/bertsql/models/mine/config.json"
  ln -s mine "$work/root/usr/share/bertsql/models/default"
  installer install
  installer uninstall
  expect_equal './usr/share/bertsql/models/default
./usr/share/bertsql/models/mine/config.json' "$(tree "$work/root")"
}

# Below any prefix the library loads by its full path, and finds the model that
# was installed with it.
test_prefix() {
  export PREFIX=$work/prefix DESTDIR=
  expect_match "^Load it by its full path:  SELECT load_extension\('$work/prefix/lib/bertsql'\);$" \
    "$(installer install)"
  installer install-model
  dim=$(cd / && env -u BERTSQL_MODEL sqlite3 -batch :memory: -cmd ".load $work/prefix/lib/bertsql" \
    "SELECT length(bert_embed('a text')) / 4")
  expect_equal 384 "$dim"
  compile_against "$work/prefix"
  installer uninstall
  expect_equal "" "$(tree "$work/prefix")"
  test ! -e "$work/prefix/share"
}

# The line that README.md gives for a C program, with the folders of the prefix.
compile_against() {
  line=$(grep '^cc program.c ' README.md)
  sed -n '/^\*\* @example/,/^\*\* @end/p' encoder/bert.h | sed -e '1d;$d' -e 's/^\*\*//' >"$work/program.c"
  # shellcheck disable=SC2086 # a command line
  (cd "$work" && ${CC:-gcc} -I"$1/include" -L"$1/lib" -o program ${line#cc })
  expect_match '^384 numbers' "$("$work/program" models/all-MiniLM-L6-v2)"
}

test_relative_prefix_is_refused() {
  export PREFIX=somewhere
  expect_failure installer install
  expect_match "PREFIX should be an absolute path, not 'somewhere'" "$output"
}

# An installation that was there before is put back.
put_back() {
  for file in include/bert.h lib/bertsql.so lib/libbertsql.so lib/libencoder.a; do
    rm -f "/usr/local/$file"
    if [ -e "$work/before/$file" ]; then cp -a "$work/before/$file" "/usr/local/$file"; fi
  done
  ldconfig
}

installed_under_usr_local() {
  export PREFIX=/usr/local DESTDIR=
  for file in include/bert.h lib/bertsql.so lib/libbertsql.so lib/libencoder.a; do
    mkdir -p "$work/before/$(dirname $file)"
    if [ -e "/usr/local/$file" ]; then cp -a "/usr/local/$file" "$work/before/$file"; fi
  done
  trap put_back EXIT
  expect_match "^From any folder:  SELECT load_extension\('bertsql'\);$" "$(installer install)"
  expect_match '^[0-9]+\.[0-9]+' "$(cd / && env -u LD_LIBRARY_PATH sqlite3 -batch :memory: \
    "SELECT load_extension('bertsql')" "SELECT bert_version()" | tail -n 1)"
  installer uninstall
  expect_equal "" "$(find /usr/local -name '*bertsql*' -newer "$work/before" | head)"
  cd /
  expect_failure env -u LD_LIBRARY_PATH sqlite3 -batch :memory: "SELECT load_extension('bertsql')"
}

if [ "$(id -u)" = 0 ]; then
  test_really_installed_under_usr_local() { installed_under_usr_local; }
fi

run_tests
