#!/bin/sh
# find_library.sh openblas|utf8proc|cblas.h TRIPLET: linker or compiler flags.
#
# Prefers static archives: a private copy of OpenBLAS inside bertsql.so shares
# no thread settings with a copy the host program may have loaded, and the one
# file works on machines that lack both libraries.
set -eu
what=$1 triplet=$2

first_file() {
  for file in "$@"; do
    if [ -e "$file" ]; then echo "$file"; return 0; fi
  done
  return 1
}

pkg() { pkg-config "$@" 2>/dev/null; }

case $what in
openblas)
  first_file "/usr/lib/$triplet/openblas-pthread/libopenblas.a" \
    "$(pkg --variable=libdir openblas)/libopenblas.a" \
    "/usr/lib/$triplet/libopenblas.a" /usr/lib/libopenblas.a /usr/lib64/libopenblas.a && exit
  echo "bertsql: no static OpenBLAS here, linking the shared one" >&2
  pkg --libs openblas || echo -lopenblas
  ;;
utf8proc)
  first_file "/usr/lib/$triplet/libutf8proc.a" "$(pkg --variable=libdir libutf8proc)/libutf8proc.a" \
    /usr/lib/libutf8proc.a /usr/lib64/libutf8proc.a && exit
  echo "bertsql: no static utf8proc here, linking the shared one" >&2
  pkg --libs libutf8proc || echo -lutf8proc
  ;;
cblas.h)
  header=$(first_file "/usr/include/$triplet/openblas-pthread/cblas.h" \
    "/usr/include/$triplet/cblas.h" /usr/include/openblas/cblas.h || true)
  if [ -n "$header" ]; then echo "-I${header%/cblas.h}"; else pkg --cflags openblas || true; fi
  ;;
*)
  echo "usage: find_library.sh openblas|utf8proc|cblas.h TRIPLET" >&2
  exit 2
  ;;
esac
