#!/bin/sh
# embed.sh FOLDER: turns the page of attn_html into one C file, on stdout.
#
# page.html with page.css and the scripts put in, as two arrays: what stands
# before the data and what stands after it. Scripts are joined in the order that
# scripts.txt gives. The page's policy allows exactly this style and this script,
# by their hashes, so that nothing else can run in it whatever the data holds.
set -eu
folder=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

# What stands between the tags, with the line break after the opening one.
{ echo; cat "$folder/page.css"; } >"$work/style"
{
  echo
  while read -r name; do cat "$folder/$name"; done <"$folder/scripts.txt"
} >"$work/script"
if grep -qiE '</(script|style)|<!--' "$work/style" "$work/script"; then
  echo "embed.sh: a script or style holds what would end it inside HTML" >&2
  exit 1
fi

# The source expression of a policy: sha256 of the text, in base64.
hash_of() {
  octal=$(sha256sum "$1" | cut -d' ' -f1 | sed 's/../& /g' | tr ' ' '\n' |
    awk 'NF { high = index("0123456789abcdef", substr($1, 1, 1)) - 1
              low = index("0123456789abcdef", substr($1, 2, 1)) - 1
              printf "\\%03o", high * 16 + low }')
  # shellcheck disable=SC2059 # the format is the bytes
  printf "'sha256-%s'" "$(printf "$octal" | base64)"
}
policy="default-src 'none'; script-src $(hash_of "$work/script"); style-src $(hash_of "$work/style")"
policy="$policy; img-src data: blob:; base-uri 'none'; form-action 'none'"

awk -v work="$work" -v policy="$policy" '
  function put(file, line) { while ((getline line < file) > 0) print line > out }
  BEGIN { out = work "/before" }
  $0 == "@style@" { put_without_first(work "/style"); next }
  $0 == "@script@" { put_without_first(work "/script"); next }
  $0 == "@data@" { out = work "/after"; next }
  { at = index($0, "@policy@")
    if (at) $0 = substr($0, 1, at - 1) policy substr($0, at + 8)
    print > out }
  function put_without_first(file, line) { getline line < file; put(file) }
' "$folder/page.html"

# bytes NAME FILE: a C array.
bytes() {
  echo "const char $1[] = {"
  od -An -v -tu1 "$2" | awk '{ line = ""
    for (i = 1; i <= NF; i++) line = line ($i > 127 ? $i - 256 : $i) ","
    print line }'
  echo "};"
  echo "const size_t $1_size = sizeof $1;"
}
echo "/* Made from sql/page by sql/page/embed.sh. */"
echo "#include \"ext/attention/html.h\""
bytes html_page_before "$work/before"
bytes html_page_after "$work/after"
