#!/bin/bash
# fetch_sqlite_vec.sh FILE: brings the loadable extension of sqlite-vec to FILE.
# A recipe shows how both work on each other's vectors, and the benchmark
# measures it as a peer; nothing of it is needed to build or run bertsql.
set -euo pipefail

version=0.1.9
file=$1

die() {
  printf 'sqlite-vec: %s\n' "$*" >&2
  exit 1
}
source "$(dirname "${BASH_SOURCE[0]}")/pip.sh"

# sha256 of the wheels, by what `uname -m` says.
checksum() {
  case $(uname -m) in
  x86_64) echo 1515727990b49e79bcaf75fdee2ffc7d461f8b66905013231251f1c8938e7786 ;;
  aarch64) echo 4e921e592f24a5f9a18f590b6ddd530eb637e2d474e3b1972f9bbeb773aa3cb9 ;;
  *) die "there is no wheel of sqlite-vec $version for $(uname -m)" ;;
  esac
}

sum=$(checksum)
mkdir -p "$(dirname "$file")"
work=$(mktemp -d "$(dirname "$file")/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
pip download --quiet --no-deps --only-binary :all: --disable-pip-version-check --no-cache-dir \
  --dest "$work" "sqlite-vec==$version" ||
  die "could not fetch $version: is there a network to the package index that pip uses?"
echo "$sum  $(echo "$work"/*.whl)" | sha256sum --check --quiet --strict || die "wrong checksum; nothing is kept"
python3 -m zipfile -e "$work"/*.whl "$work/wheel" || die "the wheel is damaged"
mv "$work/wheel/sqlite_vec/vec0.so" "$file"
