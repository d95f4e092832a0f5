#!/bin/sh
# demo.sh: runs sql/demo.sql in the sqlite3 shell on the library just built.
set -eu
echo
echo "A session in the sqlite3 shell, from sql/demo.sql:"
export LD_LIBRARY_PATH="$(pwd)/build${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
sqlite3 -batch -init /dev/null :memory: <sql/demo.sql
echo
