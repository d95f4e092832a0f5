/*
** machine.c: vectors, kernels and cores for callers of bert.h.
*/
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

double bert_dot(const float *a, const float *b, size_t n) {
  return kernels_current()->dot(a, b, n);
}

double bert_l2(const float *a, const float *b, size_t n) {
  return sqrt(kernels_current()->squared_distance(a, b, n));
}

double bert_cosine(const float *a, const float *b, size_t n) {
  const kernels *k = kernels_current();
  double norms = sqrt(k->dot(a, a, n)) * sqrt(k->dot(b, b, n));
  if (!(norms > 0)) return NAN;
  double cosine = k->dot(a, b, n) / norms;
  /* Rounding may carry the quotient past what a cosine can be. */
  return cosine > 1 ? 1 : cosine < -1 ? -1 : cosine;
}

const char *bert_kernels(void) {
  return kernels_current()->name;
}

const char *bert_kernels_refused(void) {
  const char *name = getenv("BERTSQL_KERNELS");
  return name != NULL && name[0] != '\0' && kernels_find(name) == NULL ? name : NULL;
}

bert_status bert_set_kernels(const char *name, bert_error *error) {
  char names[100] = "";
  if (kernels_choose(name)) return BERT_OK;
  for (const kernels *const *k = kernels_all(); *k != NULL; k++) {
    if (!(*k)->supported()) continue;
    if (names[0] != '\0') strcat(names, ", ");
    strcat(names, (*k)->name);
  }
  return error_set(error, BERT_ARGUMENT, "no kernel set \"%s\" here; this processor has %s",
                   name ? name : "", names);
}

const char *bert_blas(void) {
  return gemm_describe();
}

int bert_cores(void) {
  return team_cores();
}
