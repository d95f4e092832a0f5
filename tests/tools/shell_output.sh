# shell_output.sh: sourced; how the tests run the sqlite3 shell.

# sqlite with bertsql at hand: `.load` and load_extension('bertsql') find the
# library of the variant under test, the default model is the one that `make
# model` brings, and the Hugging Face cache is that of nobody. `.load vec0` finds
# sqlite-vec. BERTSQL_SHELL names another shell than the system's.
library_folder=${BERTSQL_OUT:-build}
run_sqlite() {
  env -u HF_HUB_CACHE -u HF_HOME -u XDG_CACHE_HOME HOME=/home/user \
    LD_LIBRARY_PATH="$(pwd)/$library_folder:$(pwd)/build/sqlite-vec" BERTSQL_MODEL="$(pwd)/models/all-MiniLM-L6-v2" \
    ${BERTSQL_PRELOAD:+LD_PRELOAD="$BERTSQL_PRELOAD"} ${BERTSQL_RUN:-} \
    "${BERTSQL_SHELL:-sqlite3}" -batch -init /dev/null "$@"
}

# Versions of the shell word errors differently around SQLite's own message, and
# some point into the statement: keep the message alone. Paths start at the
# repository.
plain_errors() {
  sed -E -e "s|$(pwd)/||g" \
    -e 's/^(Runtime error|Parse error|Error)( near line [0-9]+)?: /Error: /' \
    -e '/^Error: /s/ \([0-9]+\)$//' |
    awk 'held && !/error here|\^---/ { print line }
      { held = 0 }
      /error here|\^---/ { next }
      /^  [^ ]/ && after_error { line = $0; held = 1; after_error = 0; next }
      { after_error = /^Error: /; print }
      END { if (held) print line }'
}

# What users read: each of these pages has examples that make one session.
# shellcheck disable=SC2034 # used by the tests
pages=(README.md sql/docs/*.md)
