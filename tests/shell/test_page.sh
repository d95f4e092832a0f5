#!/bin/bash
# The page of attn_html in Chromium: writes pages with the extension under test,
# opens each as a person would, uses what is on it and looks at what is drawn.
# What Chromium is driven with was installed by `make build/node/installed`.
source tests/tools/shell_output.sh

mkdir -p build/page-tests
fail() {
  echo "1..1"
  echo "not ok 1 - the pages are written"
  sed 's/^/# /' <<<"$1"
  exit 1
}

node tests/page/base_model.mjs build/page-tests/base || fail "no model could be made"
written=$(run_sqlite -cmd ".load bertsql" :memory: <tests/page/pages.sql 2>&1)
[ "$written" = $'1\n1\n14 pages\n1' ] || fail "$written"
node tests/page/run.mjs
status=$?
rm -rf build/page-tests/base
exit $status
