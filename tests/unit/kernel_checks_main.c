/*
** kernel_checks_main.c: the kernel checks as a program without cmocka, for
** processors other than the one that builds; tests/tools/kernels_arm64.sh runs
** it under an emulator.
*/
#include "kernel_checks.h"

#include <stdio.h>

static int run_all(const kernels *set, const kernel_check *check) {
  int failures = 0;
  for (; check->name != NULL; check++) {
    int failed = check->run(set);
    printf("%s: %s: %s\n", set->name, check->name, failed == 0 ? "ok" : "FAILED");
    failures += failed;
  }
  return failures;
}

int main(void) {
  int failures = 0;
  for (const kernels *const *set = kernels_all(); *set != NULL; set++) {
    if (!(*set)->supported()) {
      printf("%s: this processor lacks it\n", (*set)->name);
      continue;
    }
    if ((*set)->float32_of == NULL) failures += run_all(*set, kernel_checks);
    failures += run_all(*set, packed_checks);
  }
  failures += run_all(amx_emulated(), packed_checks);
  printf("%d failures\n", failures);
  return failures != 0;
}
