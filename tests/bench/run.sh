#!/bin/bash
# run.sh: what `make bench` does. README.md beside it says how it measures.
#
#   QUICK=1      few documents, rounds and peers: under 3 minutes once they are installed
#   DOCUMENTS=n  ROUNDS=n  THREADS="1 2"  PEERS="onnxruntime openvino"  VECTORS=n
#   ROWS=n       override what these say
#
# A peer that cannot be installed or fails is left out and named at the end; only
# bertsql itself can make this fail.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

here=tests/bench
out=build/bench
model=models/all-MiniLM-L6-v2
results=$out/results.jsonl
log=$out/log.txt
notes=$out/notes.txt
cores=$(nproc)
began=$SECONDS
ours="bertsql-bf16 bertsql-int8"
all_peers="$ours onnxruntime onnxruntime-int8 openvino openvino-bf16 ctranslate2 ctranslate2-int8 sentence-transformers"

if [ -n "${QUICK:-}" ] && [ "$QUICK" != 0 ]; then
  quick=1 limit=165 tail_seconds=35
  export PREPARE_SECONDS=8
  documents=${DOCUMENTS:-auto} rounds=${ROUNDS:-3} start_rounds=1 side_rounds=1
  threads=${THREADS:-$cores} rows=${ROWS:-5000} text_tokens=2048 tokenizer_texts=500
  read -ra peers <<<"${PEERS-$ours onnxruntime openvino openvino-bf16}"
else
  quick='' limit='' tail_seconds=0
  documents=${DOCUMENTS:-400} rounds=${ROUNDS:-5} start_rounds=3 side_rounds=3
  threads=${THREADS:-$(printf '1\n%s\n' "$cores" | sort -nu | xargs)}
  rows=${ROWS:-100000} text_tokens=16384 tokenizer_texts=4000
  read -ra peers <<<"${PEERS-$all_peers}"
fi

say() { printf '%s\n' "$*"; }
note() {
  say "$*"
  printf '%s\n' "$*" >>"$notes"
}
die() {
  say "make bench: $*" >&2
  exit 1
}

# What is misspelt is said before minutes of measuring.
check_options() {
  local name
  [[ $rounds =~ ^[1-9][0-9]*$ ]] || die "ROUNDS=$rounds: a number of at least 1 is expected"
  for name in ${peers[@]+"${peers[@]}"}; do
    [[ " $all_peers " == *" $name "* ]] || die "PEERS: there is no peer $name; there are $all_peers"
  done
}

# shellcheck source=tests/bench/peers.sh
source $here/peers.sh

# ---- Our own programs --------------------------------------------------------

build_programs() {
  local cc=${CC:-gcc} triplet flags openblas utf8proc
  flags=(-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -pthread)
  triplet=$($cc -print-multiarch 2>/dev/null | grep . || $cc -dumpmachine)
  read -ra openblas <<<"$(sh tests/tools/find_library.sh openblas "$triplet")"
  read -ra utf8proc <<<"$(sh tests/tools/find_library.sh utf8proc "$triplet")"
  $cc "${flags[@]}" -o $out/bench $here/bench.c $here/bench_scale.c $here/bench_sql.c $here/bench_clock.c \
    $here/bench_corpus.c -lsqlite3 -lm || return 1
  $cc "${flags[@]}" -o $out/bench_search $here/bench_search.c $here/bench_sql.c $here/bench_clock.c \
    -lsqlite3 -lm || return 1
  $cc "${flags[@]}" -o $out/bench_encoder $here/bench_encoder.c $here/bench_sql.c $here/bench_clock.c \
    $here/bench_corpus.c build/libencoder.a "${openblas[@]}" "${utf8proc[@]}" -lsqlite3 -lm || return 1
  # shellcheck disable=SC2046 # several words
  if ! $cc "${flags[@]}" -o $out/sgemm_ceiling $(sh tests/tools/find_library.sh cblas.h "$triplet") \
    $here/sgemm_ceiling.c "${openblas[@]}" -lm; then
    rm -f $out/sgemm_ceiling
    note "sgemm: its program could not be built, so the ceiling is missing"
  fi
}

# Brings the peers; those that are ready remain.
setup_peers() {
  local name why ready=()
  for name in ${peers[@]+"${peers[@]}"}; do
    say "Setting up $name"
    if why=$("setup_$name" 2>>$log); then
      ready+=("$name")
    else
      note "$name is left out: ${why:-its setup failed, see $log}"
    fi
  done
  peers=(${ready[@]+"${ready[@]}"})
}

setup_vocabularies() {
  local kind why
  tokenizers=1
  why=$(setup_tokenizers 2>>$log) || {
    note "Hugging Face tokenizers is left out: $why"
    tokenizers=
  }
  for kind in bpe unigram; do
    why=$("setup_$kind" 2>>$log) ||
      note "$kind is tokenized with a toy vocabulary: ${why:-its setup failed, see $log}"
  done
}

# ---- Measuring ---------------------------------------------------------------

# drop PEER MEASURE: it failed once and would fail again.
drop() {
  local name left=()
  for name in "${peers[@]}"; do
    if [ "$name" != "$1" ]; then left+=("$name"); fi
  done
  peers=(${left[@]+"${left[@]}"})
  note "$1 failed at '$2' and is left out from there; its output is in $log"
}

# QUICK=1 has a limit. What is left when it is reached stays out.
time_is_up() { [ -n "$limit" ] && ((SECONDS - ready_at >= limit)); }

# measure ENGINE MEASURE THREADS [COUNT]
measure() {
  local command tries=1 i
  if time_is_up; then
    left_out=1
    return
  fi
  command_of "$1"
  if [ "$2" = start ]; then
    command=("$out/bench" start "$1" "${command[@]}" first "$3" "$out" "$model")
  else
    command+=("$2" "$3" "$out" "$model" ${4:+"$4"})
  fi
  # A peer that hangs ends, too, and is tried once more: OpenVINO does so now and then.
  if [ "$1" != bertsql ]; then tries=2 command=(timeout 300 "${command[@]}"); fi
  for ((i = 0; i < tries; i++)); do
    if "${command[@]}" >>"$results" 2> >(tee -a "$log" >&2); then return; fi
  done
  if [ "$1" = bertsql ]; then die "bertsql failed at '$2' with $3 threads"; fi
  drop "$1" "$2"
}

# QUICK=1 must end in time on slow machines too: how many documents it takes there.
# 16 documents are enough to see how fast it goes.
quick_documents() {
  local seconds
  $out/bench corpus $model/vocab.txt $out 16 || return 1
  seconds=$($out/bench bertsql bulk 1 $out $model | sed -n 's/.*"seconds":\([0-9]*\).*/\1/p')
  case $seconds in
  "") return 1 ;;
  0) documents=96 ;;
  *)
    documents=32 rows=1000
    note "this machine is slow or busy: $documents documents only"
    ;;
  esac
}

# Every engine in turn, in the other order every other round.
each_engine() {
  local engines=(bertsql ${peers[@]+"${peers[@]}"}) name i
  if ((round % 2 == 0)); then
    for ((i = ${#engines[@]} - 1; i >= 0; i--)); do measure "${engines[i]}" "$@"; done
  else
    for name in "${engines[@]}"; do measure "$name" "$@"; done
  fi
}

# The ceiling of $1 threads with the kernels of OPENBLAS_CORETYPE=$2, measured for $3 seconds or
# as long as its program holds right; the empty name leaves the choice to OpenBLAS.
ceiling_with() { env ${2:+OPENBLAS_CORETYPE="$2"} $out/sgemm_ceiling "$1" ${3:+"$3"}; }

# OpenBLAS gives processors that are newer than itself its oldest kernels. The ceiling is
# that of the fastest which this processor can run.
choose_ceiling() {
  local name rate best=0 names=('')
  ceiling=
  if ! [ -x $out/sgemm_ceiling ] || [ -n "${OPENBLAS_CORETYPE:-}" ]; then return; fi
  if grep -qw avx512bw /proc/cpuinfo; then names+=(SkylakeX); fi
  if grep -qw avx2 /proc/cpuinfo; then names+=(Haswell); fi
  for name in "${names[@]}"; do
    rate=$(ceiling_with 1 "$name" 1 2>>$log | sed -n 's/.*"gflops":\([0-9]*\).*/\1/p')
    if ((${rate:-0} > best)); then best=$rate ceiling=$name; fi
  done
}

measure_ceiling() {
  if [ -x $out/sgemm_ceiling ] && ! time_is_up; then
    ceiling_with "$1" "$ceiling" >>"$results" 2>>$log
  fi
}

# How busy others keep the cores: their share over one second in which we wait.
# The load average would still count our own compiler.
measure_others() {
  local before after
  before=$(head -1 /proc/stat)
  sleep 1
  after=$(head -1 /proc/stat)
  # user nice system idle iowait irq softirq steal; the latter is what other
  # guests of the same host took.
  awk '{ for (i = 2; i <= 9; i++) { all[NR] += $i; if (i != 5 && i != 6) busy[NR] += $i } }
    END { printf "{\"engine\":\"others\",\"measure\":\"busy\",\"share\":%.3f}\n",
            (busy[2] - busy[1]) / (all[2] - all[1]) }' <<<"$before
$after" >>"$results"
}

# 1, 2, 4, … and all cores.
thread_curve() {
  local n
  for ((n = 1; n < cores; n *= 2)); do echo "$n"; done
  echo "$cores"
}

# Each number of threads beside what OpenBLAS alone makes of it.
measure_scaling() {
  local n
  for n in $(thread_curve); do
    measure bertsql scaling "$n"
    case " $threads " in
    *" $n "*) ;; # measured with bulk
    *) measure_ceiling "$n" ;;
    esac
  done
}

# What bulk is compared with comes right after it.
one_round() {
  local n
  measure_others
  for n in $threads; do
    each_engine bulk "$n"
    measure_ceiling "$n"
    measure bertsql update "$n"
    measure bertsql refresh "$n"
    each_engine short "$n"
  done
  measure_scaling
  if ((round <= start_rounds)); then each_engine start "$most"; fi
}

# One round more must fit, and what comes after the rounds. The first one always begins.
all_rounds() {
  local before took
  for ((round = 1; round <= rounds; round++)); do
    before=$SECONDS
    one_round
    took=$((SECONDS - before))
    say "Round $round of $rounds took $took s"
    if [ -n "$limit" ] && ((SECONDS - ready_at + took + tail_seconds > limit)) && ((round < rounds)); then
      note "stopped after $round of $rounds rounds, so that QUICK=1 stays under 3 minutes"
      return
    fi
  done
}

# ---- Beside the rounds -------------------------------------------------------
# Measurements of bertsql with itself, or with one peer right after it.

# The same texts through our tokenizer and Hugging Face's, each on one thread.
measure_tokenizers() {
  local kind folder
  if time_is_up; then return; fi
  for kind in wordpiece bpe unigram; do
    folder=$(tokenizer_folder $kind)
    $out/bench_encoder tokenize $kind "$folder" $out/tokenizers/corpus.txt >>"$results" ||
      die "the tokenizer of $folder failed"
    if [ -n "$tokenizers" ]; then
      $venv/bin/python $here/peer_tokenizers.py $kind "$folder" $out/tokenizers/corpus.txt >>"$results" 2>>$log ||
        note "Hugging Face tokenizers failed with $kind; its output is in $log"
    fi
  done
}

measure_capture() {
  if time_is_up; then return; fi
  $out/bench_encoder capture "$most" $model $out/corpus.txt >>"$results" || die "the attention of a layer failed"
}

# 100, 1000, … and all rows. The most are embedded once only: it takes minutes.
measure_rows() {
  local n
  for ((n = 100; n < rows; n *= 10)); do measure bertsql documents "$most" "$n"; done
  if ((round == 1)); then measure bertsql documents "$most" "$rows"; fi
}

measure_beside() {
  $out/bench scale $model/vocab.txt $out "$rows" $text_tokens || die "the texts could not be written"
  mkdir -p $out/tokenizers
  $out/bench corpus $model/vocab.txt $out/tokenizers $tokenizer_texts || die "the texts could not be written"
  rm -f $out/tokenizers/corpus.db
  for ((round = 1; round <= side_rounds; round++)); do
    measure_tokenizers
    measure_capture
    measure bertsql lengths "$most"
    measure bertsql connections "$most" 8
    measure_rows
  done
  rm -f $out/scale.db
}

# The nearest of many vectors, beside sqlite-vec. One run asks many queries, each
# of both in turn, so that it has its own rounds.
measure_search() {
  local vec0=build/sqlite-vec/vec0.so
  if ! [ -e $vec0 ] && ! bash tests/tools/fetch_sqlite_vec.sh $vec0 >>$log 2>&1; then
    note "sqlite-vec is left out of search: it could not be fetched, see $log"
    vec0=
  fi
  $out/bench_search $out $model "${VECTORS:-100000}" ${vec0:+"$PWD/$vec0"} >>"$results" 2> >(tee -a "$log" >&2) ||
    die "the search failed"
  rm -f $out/search.db
}

# ---- The whole ---------------------------------------------------------------

check_options
mkdir -p $out
: >$results
: >$log
: >$notes
build_programs || die "the measuring program could not be built"
if [ "$documents" = auto ]; then
  quick_documents || die "bertsql failed at its first documents"
fi
$out/bench corpus $model/vocab.txt $out "$documents" || die "the corpus could not be written"
setup_peers
setup_vocabularies
choose_ceiling

ready_at=$SECONDS
round=1
left_out=
most=$(tr -s ' ' '\n' <<<"$threads" | sort -n | tail -1)
each_engine info "$most"
each_engine vectors "$most"
for name in ${peers[@]+"${peers[@]}"}; do
  case $name in bertsql-*) continue ;; esac
  for n in $threads; do
    # QUICK=1 takes what an earlier run found to be the fastest.
    if [ -z "$quick" ] || ! [ -e "$out/$name.setting.$n" ]; then measure "$name" prepare "$n"; fi
  done
done
say "Measuring: $documents documents, $rounds rounds"
all_rounds
if ! time_is_up; then measure_search; fi
measure_beside
if [ -n "$left_out" ]; then note "the time of QUICK=1 was up: something is missing"; fi

command -v python3 >/dev/null || { say "python3 is missing; the measurements are in $results"; exit 0; }
python3 $here/summarize.py $out | tee $out/summary.md ||
  say "There is no summary; the measurements are in $results."
python3 $here/plots.py $out $out/plots || note "the plots could not be drawn"
say "It took $((SECONDS - began)) s. Each measurement is in $results, plots in $out/plots."
