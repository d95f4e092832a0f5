/*
** dispatch.c: which set of kernels runs.
**
** The choice is one atomic pointer: whoever comes first makes it, two who come
** at once make the same one.
*/
#include "kernel_sets.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "../base/base.h"

static const kernels *const all_sets[] = {
#ifdef BERT_KERNELS_AMX
    &kernels_amx,
#endif
#ifdef BERT_KERNELS_BF16
    &kernels_avx512bf16,
#endif
#ifdef BERT_KERNELS_X86
    &kernels_avx512vnni, &kernels_avx512,
    &kernels_avx2,       &kernels_sse2,
#endif
#ifdef BERT_KERNELS_NEON
    &kernels_neon,
#endif
    &kernels_scalar,     NULL,
};

static _Atomic(const kernels *) current;

const kernels *const *kernels_all(void) {
  return all_sets;
}

/* Intel's processors begin VDPBF16PS every other cycle, but two multiplications of floats in
** each. So where a virtual machine hides their AMX, floats are nearly twice as fast. */
static int is_slower_than_the_next(const kernels *set) {
#ifdef BERT_KERNELS_BF16
  return set == &kernels_avx512bf16 && cpu_is_intel();
#else
  (void)set;
  return 0;
#endif
}

const kernels *kernels_find(const char *name) {
  for (const kernels *const *set = all_sets; *set != NULL; set++) {
    int wanted = name == NULL ? !is_slower_than_the_next(*set) : word_is(name, (*set)->name);
    if (wanted && (*set)->supported()) return *set;
  }
  return NULL;
}

int kernels_choose(const char *name) {
  const kernels *set = kernels_find(name);
  if (set == NULL) return 0;
  atomic_store(&current, set);
  return 1;
}

/* BERTSQL_KERNELS names a set; a name that is unknown, or that this processor
** cannot run, leaves the best: an environment variable must not be able to
** make a program fail. */
const kernels *kernels_current(void) {
  const kernels *set = atomic_load(&current);
  if (set != NULL) return set;
  const char *name = getenv("BERTSQL_KERNELS");
  if (name != NULL) set = kernels_find(name);
  if (set == NULL) set = kernels_find(NULL);
  const kernels *none = NULL;
  return atomic_compare_exchange_strong(&current, &none, set) ? set : none;
}
