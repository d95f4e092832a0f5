#!/bin/sh
# install_dependencies.sh [test] [valgrind]: sees that everything the build and the
# demo need is there, and the tests and valgrind if asked, and installs what is not
# through apt-get.
# Prints nothing when nothing is missing. Why each package is needed stands in
# README.md.
set -eu
wanted=" $* "

# A package, and a shell command that succeeds when what it brings is there.
# Asking for the thing and not for the package lets other ways of installing
# count.
needs() {
  cat <<'LIST'
gcc                  command -v "${CC:-gcc}" || command -v gcc
libc6-dev            header stdio.h
binutils             command -v ar
libsqlite3-dev       header sqlite3ext.h
sqlite3              command -v sqlite3
libopenblas-dev      header openblas-pthread/cblas.h || header cblas.h || header openblas/cblas.h
libutf8proc-dev      header utf8proc.h
libxxhash-dev        header xxhash.h
python3-pip          python3 -m pip --version || command -v pip3
ca-certificates      test -e /etc/ssl/certs/ca-certificates.crt || test -e /etc/pki/tls/certs/ca-bundle.crt
LIST
  case $wanted in *" test "*)
    cat <<'LIST'
libcmocka-dev        header cmocka.h
curl                 command -v curl
perl-base            command -v perl
chromium             command -v chromium || test -x "${CHROMIUM:-}"
nodejs               command -v node
npm                  command -v npm
libxml2-utils        command -v xmllint
LIST
    ;;
  esac
  case $wanted in *" valgrind "*)
    echo "valgrind             command -v valgrind"
    ;;
  esac
}

# Is a header on the compiler's path or in a multiarch folder below it?
header() {
  for folder in /usr/include /usr/local/include /usr/include/*-linux-gnu*; do
    if [ -e "$folder/$1" ]; then return 0; fi
  done
  return 1
}

missing=
while read -r package check; do
  eval "$check" >/dev/null 2>&1 || missing="$missing $package"
done <<LIST
$(needs)
LIST
if [ -z "$missing" ]; then exit 0; fi

if ! command -v apt-get >/dev/null; then
  echo "bertsql needs what Debian packages as:$missing" >&2
  echo "Install these with this system's package manager, then run make again." >&2
  exit 1
fi
as_root=
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "bertsql needs these packages, and neither root nor sudo is at hand. Run as root:" >&2
    echo "  apt-get install --no-install-recommends$missing" >&2
    exit 1
  fi
  as_root=sudo
fi

echo "Installing through apt-get:$missing"
apt_get() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get "$@"; }
# shellcheck disable=SC2086 # a list of packages, split on purpose
apt_get install --yes --no-install-recommends -qq $missing >/dev/null 2>&1 || {
  echo "Refreshing the list of packages first"
  apt_get update -qq
  # shellcheck disable=SC2086
  apt_get install --yes --no-install-recommends -qq $missing
}
