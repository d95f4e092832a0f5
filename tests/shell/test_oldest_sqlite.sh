#!/bin/bash
# bertsql on the oldest SQLite that it supports.
source tests/tools/host_tests.sh

tests_on_sqlite oldest 3.38.2
