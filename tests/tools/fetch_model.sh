#!/bin/bash
# fetch_model.sh ORG/NAME [REVISION]: brings a model from the Hugging Face hub to
# models/NAME: only the files that bertsql reads, at one commit.
#
# Everything is gathered under build/fetch/ and moved to models/ when it is
# complete and its checksums are right, so that models/ never holds half a
# model. An interrupted download goes on where it stopped, in the same run and
# in the next.
#
# HF_ENDPOINT  another hub or a mirror (https://huggingface.co)
# HF_TOKEN     for models that want a login
# MODELS       another folder than models/
# ATTEMPTS     how often one file is tried before giving up (5)
set -euo pipefail
export LC_ALL=C

endpoint=${HF_ENDPOINT:-https://huggingface.co}
endpoint=${endpoint%/}
models=${MODELS:-models}
attempts=${ATTEMPTS:-5}

say() { printf '%s\n' "$*"; }
die() {
  printf 'make model: %s\n' "$*" >&2
  exit 1
}

# curl with the settings all requests share. The token goes through a file
# descriptor, since arguments can be read by every user of the machine.
request() {
  curl --silent --show-error --proto '=http,https' --proto-redir '=http,https' \
    --connect-timeout 20 --speed-limit 1 --speed-time 60 \
    --config <(if [ -n "${HF_TOKEN:-}" ]; then
      printf 'header = "Authorization: Bearer %s"\n' "$HF_TOKEN"
    fi) "$@"
}

# The value of a header in the file $1, by its name in lower case.
header_value() {
  tr -d '\r' <"$1" | awk -v name="$2" '
    { at = index($0, ":") }
    at && tolower(substr($0, 1, at - 1)) == name {
      value = substr($0, at + 1); gsub(/^[ \t]+|[ \t]+$/, "", value); last = value
    }
    END { print last }'
}

# What an HTTP status means to the person who asked for $2.
explain_status() {
  case $1 in
  000) die "cannot reach $endpoint; HF_ENDPOINT= names a mirror, and bert_load opens any directory that has a model's files" ;;
  401 | 403) die "$endpoint refuses $2 (status $1): private, gated or misspelt; set HF_TOKEN if you have access" ;;
  404) die "$endpoint has no $2 (status 404)" ;;
  *) die "$endpoint answered status $1 for $2" ;;
  esac
}

# All values of the string key $2 in the JSON file $1. The hub's lists hold file
# names that need no escape; one that has an escape is refused later by its
# backslash.
json_strings() {
  grep -o "\"$2\"[[:space:]]*:[[:space:]]*\"[^\"]*\"" "$1" | sed 's/.*:[[:space:]]*"\(.*\)"$/\1/' || true
}

# The files among `listed` in folder $1 ("" or "1_Pooling/") that bertsql reads.
# One way of storing weights is enough: model.safetensors, else its shards.
wanted_in() {
  local folder=$1 file
  for file in config.json tokenizer.json tokenizer_config.json special_tokens_map.json \
    vocab.txt vocab.json merges.txt sentence_bert_config.json sentence_roberta_config.json \
    sentence_distilbert_config.json sentence_camembert_config.json sentence_albert_config.json \
    sentence_xlm-roberta_config.json sentence_xlnet_config.json config_sentence_transformers.json \
    modules.json; do
    if grep -qxF -- "$folder$file" "$listed"; then say "$folder$file"; fi
  done
  if grep -qxF -- "${folder}model.safetensors" "$listed"; then
    say "${folder}model.safetensors"
  elif grep -qxF -- "${folder}model.safetensors.index.json" "$listed"; then
    say "${folder}model.safetensors.index.json"
    awk -v folder="$folder" 'index($0, folder) == 1 &&
      substr($0, length(folder) + 1) ~ /^model-[0-9]+-of-[0-9]+\.safetensors$/' "$listed"
  fi
}

file_size() { stat -c %s "$1" 2>/dev/null || say 0; }

# Asks what the hub says of the file $1; sets sha256 and size, "" where unknown.
# For large files both stand in the answer before the redirect to the storage.
describe() {
  local headers=$stage/headers status etag
  status=$(request --head --output "$headers" --write-out '%{http_code}' "$url/$1") || true
  case $status in
  2* | 3*) ;;
  *) explain_status "$status" "$id/$1" ;;
  esac
  etag=$(header_value "$headers" x-linked-etag)
  if [ -z "$etag" ]; then etag=$(header_value "$headers" etag); fi
  etag=${etag#W/} etag=${etag//\"/}
  sha256=
  if [[ $etag =~ ^[0-9a-f]{64}$ ]]; then sha256=$etag; fi
  size=$(header_value "$headers" x-linked-size)
  if [ -z "$size" ] && [[ $status == 2* ]]; then size=$(header_value "$headers" content-length); fi
  if ! [[ $size =~ ^[0-9]+$ ]]; then size=; fi
}

# Downloads $1 into $stage/part, starting where an earlier attempt stopped.
download() {
  local part=$stage/part/$1 try=1 status progress=--no-progress-meter
  if [ -t 2 ]; then progress=--progress-bar; fi
  mkdir -p "$(dirname "$part")"
  if [ -z "$sha256" ]; then rm -f "$part"; fi # nothing would tell a wrong join
  : >>"$part"                                 # an empty file is there without a request
  while :; do
    if [ -n "$size" ] && [ "$(file_size "$part")" = "$size" ]; then return; fi
    if [ -n "$size" ] && [ "$(file_size "$part")" -gt "$size" ]; then rm -f "$part"; fi
    if [ -s "$part" ]; then say "  going on with $1 at $(file_size "$part") of ${size:-?} bytes"; fi
    status=$(request --no-silent $progress --location --fail --continue-at - --output "$part" \
      --write-out '%{http_code}' "$url/$1") && return
    case $status in
    4*) rm -f "$part" && explain_status "$status" "$id/$1" ;;
    esac
    if [ "$try" -ge "$attempts" ]; then
      die "the download of $1 broke off at $(file_size "$part") of ${size:-?} bytes; run make model again to go on"
    fi
    try=$((try + 1))
    sleep 1
  done
}

# Brings the file $1 into $stage/files, checked.
fetch() {
  local part=$stage/part/$1 done=$stage/files/$1
  case /$1/ in
  *//* | */../* | */./* | *\\*) die "the hub lists a file with a strange name: $1" ;;
  esac
  if [ -e "$done" ]; then return; fi
  describe "$1"
  say "  $1${size:+ ($size bytes)}"
  download "$1"
  if [ -n "$size" ] && [ "$(file_size "$part")" != "$size" ]; then
    rm -f "$part"
    die "$1 should have $size bytes and does not; it is removed, run make model again"
  fi
  if [ -n "$sha256" ] && [ "$(sha256sum <"$part" | cut -d' ' -f1)" != "$sha256" ]; then
    rm -f "$part"
    die "wrong sha256: $1 is not the file that $endpoint describes; it is removed, run make model again"
  fi
  mkdir -p "$(dirname "$done")"
  mv "$part" "$done"
}

# Is what was fetched a model that bertsql can open?
check_complete() {
  local folder=$1
  if [ ! -e "$stage/files/${folder}config.json" ]; then die "$id has no ${folder}config.json"; fi
  if [ ! -e "$stage/files/${folder}tokenizer.json" ] && [ ! -e "$stage/files/${folder}vocab.txt" ] &&
    { [ ! -e "$stage/files/${folder}vocab.json" ] || [ ! -e "$stage/files/${folder}merges.txt" ]; }; then
    die "$id has no ${folder}tokenizer.json, no ${folder}vocab.txt, and no ${folder}vocab.json with merges.txt"
  fi
  if [ ! -e "$stage/files/${folder}model.safetensors" ] &&
    [ ! -e "$stage/files/${folder}model.safetensors.index.json" ]; then
    die "$id has no ${folder}model.safetensors; bertsql reads no other format of weights"
  fi
}

# ---- Arguments ---------------------------------------------------------------

if [ $# -lt 1 ] || [ $# -gt 2 ]; then die "usage: fetch_model.sh ORG/NAME [REVISION]"; fi
id=$1 revision=${2:-main}
part='[A-Za-z0-9_][A-Za-z0-9._-]*'
if ! [[ $id =~ ^$part(/$part)?$ ]]; then die "SOURCE should look like org/name, not '$id'"; fi
if ! [[ $revision =~ ^$part(/$part)*$ ]]; then die "REVISION should be a branch, tag or commit, not '$revision'"; fi
name=${id##*/}
target=$models/$name
command -v curl >/dev/null || die "needs curl: apt-get install curl"

if [ -e "$target" ]; then
  if [ "$(head -n 1 "$target/.source" 2>/dev/null)" = "$id $revision" ]; then
    say "$target is there already; remove it to fetch it anew"
    exit 0
  fi
  die "$target exists and is not $id at $revision; remove or rename it first"
fi

# ---- The list of files, at one commit ----------------------------------------

stage=build/fetch/${id//\//--}@${revision//\//--}
mkdir -p "$stage"
exec 9>"$stage/lock"
flock --nonblock 9 || die "another make model is fetching $id"

say "Fetching $id from $endpoint"
api=$endpoint/api/models/$id
if [ "$revision" != main ]; then api=$api/revision/${revision//\//%2F}; fi
status=$(request --location --output "$stage/api.json" --write-out '%{http_code}' "$api") || true
if [ "$status" != 200 ]; then explain_status "$status" "model $id${2:+ at revision $2}"; fi
commit=$(json_strings "$stage/api.json" sha | grep -xE '[0-9a-f]{40}' | head -n 1 || true)
url=$endpoint/$id/resolve/${commit:-${revision//\//%2F}}
listed=$stage/listed
json_strings "$stage/api.json" rfilename >"$listed"

# What an earlier run kept belongs to its commit only.
if [ "$(cat "$stage/commit" 2>/dev/null)" != "$commit" ]; then rm -rf "$stage/files" "$stage/part"; fi
say "$commit" >"$stage/commit"
mkdir -p "$stage/files"

# ---- The files -----------------------------------------------------------------

# modules.json names the folders of sentence-transformers' modules; the first
# module is the transformer, mostly at the root.
transformer=
folders=
if grep -qx modules.json "$listed"; then
  fetch modules.json
  folders=$(json_strings "$stage/files/modules.json" path)
  transformer=$(head -n 1 <<<"$folders")
fi
wanted_in "" >"$stage/wanted"
while read -r folder; do
  if [ -n "$folder" ]; then wanted_in "$folder/" >>"$stage/wanted"; fi
done <<<"$folders"
while read -r file; do
  fetch "$file" </dev/null
done <"$stage/wanted"
check_complete "${transformer:+$transformer/}"

# ---- Into place ------------------------------------------------------------------

printf '%s\n%s\n' "$id $revision" "$commit" >"$stage/files/.source"
mkdir -p "$models"
if [ -L "$target" ]; then rm "$target"; fi # a link that leads nowhere
if [ "$(stat -c %d "$stage")" = "$(stat -c %d "$models")" ]; then
  mv -T "$stage/files" "$target"
else # no rename between file systems: copy beside the target, then rename
  trap 'rm -rf "$models/.$name.$$"' EXIT
  cp -R "$stage/files" "$models/.$name.$$"
  mv -T "$models/.$name.$$" "$target"
fi
rm -rf "$stage"
say "$target is complete: SELECT bert_load('$target');"
