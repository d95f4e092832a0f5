#!/bin/bash
# make model SOURCE=…: the download from the Hugging Face hub, against a small
# server that this test starts.
source tests/tools/assert.sh

# Starts the server for $1 (a model directory) as the model $2.
start_server() {
  mkdir -p "$work/state"
  perl tests/tools/hub_server.pl "$1" "$2" "$work/state" &
  server=$!
  trap 'kill $server; wait $server || true' EXIT
  for _ in $(seq 100); do
    if [ -s "$work/state/port" ]; then break; fi
    sleep 0.05
  done
  HF_ENDPOINT=http://127.0.0.1:$(cat "$work/state/port")
  export HF_ENDPOINT
  unset HF_TOKEN
}

# The script works in the current folder: give it one of its own.
fetch_model() { (cd "$work" && ATTEMPTS=${ATTEMPTS:-1} bash "$root/tests/tools/fetch_model.sh" "$@"); }

model=tests/golden/families/bert-cls-dense

# Everything below models/, hidden files too; nothing before it exists.
contents() { if [ -e "$work/models" ]; then find "$work/models" -mindepth 1; fi; }

test_whole_model() {
  start_server $model example/tiny
  fetch_model example/tiny
  for file in config.json tokenizer.json model.safetensors modules.json 2_Dense/model.safetensors; do
    cmp "$model/$file" "$work/models/tiny/$file"
  done
  expect_equal "" "$(cd "$work/models/tiny" && find . -name 'expected*')"
  expect_equal "$work/models/tiny" "$(find "$work/models" -mindepth 1 -maxdepth 1)"
  expect_equal "" "$(find "$work/build/fetch" -mindepth 1)"
}

test_a_model_that_is_there_is_not_fetched_again() {
  start_server $model example/tiny
  fetch_model example/tiny
  rm "$work/state/log"
  expect_match 'there already' "$(fetch_model example/tiny)"
  expect_failure fetch_model other/tiny
  expect_match 'exists and is not other/tiny' "$output"
  expect_equal absent "$(if [ -e "$work/state/log" ]; then cat "$work/state/log"; else echo absent; fi)"
}

test_interrupted_download_resumes_in_the_next_run() {
  start_server $model example/tiny
  echo 1000 >"$work/state/cut"
  expect_failure fetch_model example/tiny
  expect_match 'broke off at 1000 of [0-9]+ bytes; run make model again' "$output"
  expect_equal "" "$(contents)"
  fetch_model example/tiny
  expect_match 'GET /storage/.*model.safetensors from 1000$' "$(cat "$work/state/log")"
  cmp $model/model.safetensors "$work/models/tiny/model.safetensors"
}

test_interrupted_download_resumes_in_the_same_run() {
  start_server $model example/tiny
  echo 1234 >"$work/state/cut"
  ATTEMPTS=2 fetch_model example/tiny
  expect_match 'GET /storage/.*model.safetensors from 1234$' "$(cat "$work/state/log")"
  cmp $model/model.safetensors "$work/models/tiny/model.safetensors"
}

test_damaged_part_is_found_by_its_sha256() {
  start_server $model example/tiny
  echo 1000 >"$work/state/cut"
  expect_failure fetch_model example/tiny
  part=$(find "$work/build/fetch" -size 1000c)
  head -c 1000 /dev/zero >"$part"
  expect_failure fetch_model example/tiny
  expect_match 'wrong sha256' "$output"
  expect_equal "" "$(contents)"
  fetch_model example/tiny
  cmp $model/model.safetensors "$work/models/tiny/model.safetensors"
}

test_wrong_sha256_leaves_nothing() {
  start_server $model example/tiny
  printf '%064d\n' 1 >"$work/state/sha256"
  expect_failure fetch_model example/tiny
  expect_match 'wrong sha256: .*model.safetensors' "$output"
  expect_equal "" "$(contents)"
  expect_equal "" "$(find "$work/build/fetch" -name '*.safetensors')"
}

test_listed_file_that_is_missing() {
  cp -R $model "$work/model"
  start_server "$work/model" example/tiny
  rm "$work/model/modules.json" && ln -s nowhere "$work/model/modules.json"
  expect_failure fetch_model example/tiny
  expect_match 'no example/tiny/modules.json \(status 404\)' "$output"
  expect_equal "" "$(contents)"
}

test_model_without_safetensors() {
  cp -R $model "$work/model"
  rm "$work/model/model.safetensors"
  start_server "$work/model" example/tiny
  expect_failure fetch_model example/tiny
  expect_match 'has no model.safetensors' "$output"
  expect_equal "" "$(contents)"
}

test_tokenizer_files() {
  cp -R $model "$work/model"
  rm "$work/model/tokenizer.json" "$work/model/vocab.txt"
  touch "$work/model/vocab.json"
  start_server "$work/model" example/tiny
  expect_failure fetch_model example/tiny
  expect_match 'has no tokenizer.json, no vocab.txt, and no vocab.json with merges.txt' "$output"
  touch "$work/model/merges.txt"
  fetch_model example/tiny
  test -e "$work/models/tiny/merges.txt"
}

test_unknown_model() {
  start_server $model example/tiny
  expect_failure fetch_model example/huge
  expect_match 'has no model example/huge \(status 404\)' "$output"
}

test_no_server() {
  HF_ENDPOINT=http://127.0.0.1:1
  export HF_ENDPOINT
  expect_failure fetch_model example/tiny
  expect_match 'cannot reach http://127.0.0.1:1' "$output"
  expect_equal "" "$(contents)"
}

test_token() {
  start_server $model example/tiny
  echo secret >"$work/state/token"
  expect_failure fetch_model example/tiny
  expect_match 'refuses model example/tiny \(status 401\).*HF_TOKEN' "$output"
  HF_TOKEN=secret fetch_model example/tiny
}

test_revision() {
  start_server $model example/tiny
  fetch_model example/tiny v1.0
  expect_match 'GET /api/models/example/tiny/revision/v1.0$' "$(cat "$work/state/log")"
}

test_shards() {
  cp -R $model "$work/model"
  cd "$work/model"
  mv model.safetensors model-00001-of-00001.safetensors
  echo '{"weight_map": {}}' >model.safetensors.index.json
  cp model-00001-of-00001.safetensors other.safetensors
  cd "$root"
  start_server "$work/model" example/tiny
  fetch_model example/tiny
  test -e "$work/models/tiny/model-00001-of-00001.safetensors"
  test -e "$work/models/tiny/model.safetensors.index.json"
  test ! -e "$work/models/tiny/other.safetensors"
}

test_strange_names_are_refused() {
  for id in '../../etc' 'a/b/c' 'a b' '' '-o/x' 'org/..'; do
    expect_failure fetch_model "$id"
    expect_match 'SOURCE should look like org/name' "$output"
  done
}

run_tests
