/*
** rollout.c: how a layer enters attention rollout (Abnar and Zuidema 2020,
** Quantifying Attention Flow in Transformers, section 3).
**
** The residual connection hands every token its own vector beside what
** attention collects, and both count for one half: hence the identity. The
** multiplication is in model/pass_attention.c, which has the kernels for it.
*/
#include "analysis.h"

void rollout_mix(float *sums, size_t first, size_t rows, size_t tokens, int heads) {
  for (size_t i = 0; i < rows; i++) {
    float *row = sums + i * tokens; /* [tokens] */
    double total = 0;
    for (size_t j = 0; j < tokens; j++) {
      row[j] /= (float)heads;
      if (j == first + i) row[j] += 1;
      total += (double)row[j];
    }
    for (size_t j = 0; j < tokens; j++) row[j] = (float)((double)row[j] / total);
  }
}
