#!/bin/sh
# install.sh install|install-model|uninstall: what make install does, with PREFIX
# and DESTDIR from the environment.
#
# The dynamic loader finds a name without a folder, as load_extension('bertsql')
# gives it, only in its own folders (/lib, /usr/lib and those of the triplet) and
# in its cache. ldconfig puts into the cache what is called lib*.so, under the
# name that the library itself carries. So that /usr/local works, bertsql.so
# carries the name bertsql.so and has a link libbertsql.so beside it.
set -eu
prefix=${PREFIX:-/usr/local} destdir=${DESTDIR:-}
case $prefix in
/*) ;;
*)
  echo "make install: PREFIX should be an absolute path, not '$prefix'" >&2
  exit 1
  ;;
esac
prefix=${prefix%/}
lib=$prefix/lib include=$prefix/include share=$prefix/share/bertsql
model=all-MiniLM-L6-v2

# Tells the loader what is in its folders now; only for a real installation.
refresh_loader_cache() {
  if [ -n "$destdir" ] || [ "$(id -u)" != 0 ]; then return; fi
  PATH=$PATH:/sbin:/usr/sbin
  if command -v ldconfig >/dev/null; then ldconfig; fi
}

# Does the sqlite3 shell find the library by its bare name?
found_by_name() {
  (cd / && unset LD_LIBRARY_PATH && sqlite3 -batch -init /dev/null :memory: \
    "SELECT load_extension('bertsql')") >/dev/null 2>&1
}

explain_loading() {
  if [ -n "$destdir" ]; then return; fi
  if found_by_name; then
    echo "From any folder:  SELECT load_extension('bertsql');"
    return
  fi
  echo "Load it by its full path:  SELECT load_extension('$lib/bertsql');"
  echo "For the bare name 'bertsql' the dynamic loader must search $lib: as root,"
  echo "  echo '$lib' > /etc/ld.so.conf.d/bertsql.conf && ldconfig"
}

explain_model() {
  if [ -e "$destdir$share/models/default" ]; then return; fi
  echo "Models: make install-model puts $model beside it; or set BERTSQL_MODEL, or call bert_load."
}

# Removes a folder and those above it up to PREFIX, as far as they are empty.
remove_empty() {
  folder=$1
  while [ "$folder" != "$prefix" ] && rmdir "$destdir$folder" 2>/dev/null; do
    folder=$(dirname "$folder")
  done
}

case ${1:-} in
install)
  mkdir -p "$destdir$lib" "$destdir$include"
  install -m 644 build/bertsql.so "$destdir$lib/bertsql.so"
  ln -sfn bertsql.so "$destdir$lib/libbertsql.so"
  install -m 644 build/libencoder.a "$destdir$lib/libencoder.a"
  install -m 644 encoder/bert.h "$destdir$include/bert.h"
  refresh_loader_cache
  echo "Installed $destdir$lib/bertsql.so"
  echo "          $destdir$lib/libbertsql.so, a link by which the loader's cache finds it"
  echo "For C:    $destdir$include/bert.h and $destdir$lib/libencoder.a"
  explain_loading
  explain_model
  ;;
install-model)
  mkdir -p "$destdir$share/models"
  rm -rf "$destdir$share/models/.new"
  cp -RL "models/$model" "$destdir$share/models/.new"
  rm -rf "$destdir$share/models/$model"
  mv "$destdir$share/models/.new" "$destdir$share/models/$model"
  ln -sfn $model "$destdir$share/models/default"
  echo "Installed $destdir$share/models/$model as the default model"
  ;;
uninstall)
  if ! [ -e "$destdir$lib/bertsql.so" ] && ! [ -e "$destdir$share/models/$model" ]; then
    echo "bertsql is not installed below $destdir$prefix; for another place give its PREFIX and DESTDIR"
    exit
  fi
  rm -f "$destdir$lib/bertsql.so" "$destdir$lib/libbertsql.so" "$destdir$lib/libencoder.a" \
    "$destdir$include/bert.h"
  if [ "$(readlink "$destdir$share/models/default")" = $model ]; then rm "$destdir$share/models/default"; fi
  rm -rf "$destdir$share/models/$model"
  remove_empty "$share/models"
  refresh_loader_cache
  echo "Removed bertsql from $destdir$prefix"
  ;;
*)
  echo "usage: install.sh install|install-model|uninstall" >&2
  exit 2
  ;;
esac
