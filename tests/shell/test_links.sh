#!/bin/bash
# Every relative link in a Markdown file leads to a file or folder that is there,
# and every #anchor to a heading of it.
source tests/tools/assert.sh

# anchors FILE, links FILE: one a line.
anchors() { awk -f tests/docs/links.awk "$1" | sed -n 's/^anchor //p'; }
links() { awk -f tests/docs/links.awk "$1" | sed -n 's/^link //p'; }

# check_link FILE LINK
check_link() {
  local path=${2%%#*} anchor=
  case $2 in
  *://* | mailto:*) return 0 ;;
  *#*) anchor=${2#*#} ;;
  esac
  if [ -z "$path" ]; then path=$1; else path=$(dirname "$1")/$path; fi
  [ -e "$path" ] || { fail "$1: the link $2 leads nowhere" || return 1; }
  if [ -z "$anchor" ]; then return 0; fi
  anchors "$path" | grep -qxF -e "$anchor" || fail "$1: the link $2 leads to no heading of $path"
}

markdown_files() {
  find . -path ./.git -prune -o -path ./build -prune -o -path ./models -prune -o -name '*.md' -printf '%P\n' | sort
}

test_links_lead_somewhere() {
  count=0 wrong=0
  for file in $(markdown_files); do
    while read -r link; do
      count=$((count + 1))
      check_link "$file" "$link" || wrong=$((wrong + 1))
    done < <(links "$file")
  done
  [ "$count" -gt 20 ] || fail "only $count links were found"
  [ "$wrong" = 0 ]
}

# Each page can be reached from README.md.
test_pages_are_linked_from_the_readme() {
  for page in sql/docs/*.md; do
    links README.md | grep -qE "^$page(#|$)" || fail "README.md has no link to $page"
  done
}

test_a_wrong_link_is_found() {
  printf '%s\n' '# A `b_c(d)`, e' '[1](#a-b_cd-e) [2](#a) [3](none.md) `[4](code)`' >"$work/page.md"
  check_link "$work/page.md" '#a-b_cd-e'
  expect_failure check_link "$work/page.md" '#a'
  expect_match 'page.md: the link #a leads to no heading' "$output"
  expect_failure check_link "$work/page.md" none.md
  expect_match 'page.md: the link none.md leads nowhere' "$output"
  expect_equal '#a-b_cd-e
#a
none.md' "$(links "$work/page.md")"
}

run_tests
