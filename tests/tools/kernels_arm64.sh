#!/bin/sh
# kernels_arm64.sh: builds the kernels and their checks for 64-bit ARM, without
# OpenBLAS and cmocka, and runs them under qemu. Needs gcc-aarch64-linux-gnu and
# qemu-user. Run from the root of the repository.
set -eu
cc=${ARM64_CC:-aarch64-linux-gnu-gcc}
out=build/arm64
mkdir -p "$out"
"$cc" -std=c11 -D_GNU_SOURCE -O2 -ffp-contract=off -static -DBERT_NO_BLAS \
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -I. \
  encoder/kernels/*.c encoder/base/words.c tests/unit/kernel_checks_main.c \
  tests/unit/kernel_checks.c tests/unit/formula_checks.c \
  tests/unit/product_checks.c tests/unit/vector_checks.c tests/unit/code_checks.c \
  tests/unit/packed_checks.c tests/unit/packed_amx_checks.c -lm -o "$out/kernel_checks"
qemu-aarch64 "$out/kernel_checks"
