# shell_output.sh: sourced; how the tests run the sqlite3 shell.

# sqlite with bertsql at hand: `.load` and load_extension('bertsql') find the
# library of the variant under test, and the default model is the one that
# `make model` brings.
library_folder=${BERTSQL_OUT:-build}
run_sqlite() {
  env LD_LIBRARY_PATH="$(pwd)/$library_folder" BERTSQL_MODEL="$(pwd)/models/all-MiniLM-L6-v2" \
    ${BERTSQL_PRELOAD:+LD_PRELOAD="$BERTSQL_PRELOAD"} ${BERTSQL_RUN:-} \
    sqlite3 -batch -init /dev/null "$@"
}

# Versions of the shell word errors differently around SQLite's own message:
# keep the message. They also say that they read the init file.
plain_errors() {
  sed -E -e '/^-- Loading resources from/d' \
    -e 's/^(Runtime error|Parse error|Error)( near line [0-9]+)?: /Error: /' \
    -e '/^Error: /s/ \([0-9]+\)$//'
}
