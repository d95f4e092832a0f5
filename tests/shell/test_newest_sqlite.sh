#!/bin/bash
# bertsql on the newest SQLite.
source tests/tools/host_tests.sh

tests_on_sqlite newest 3.53.2
