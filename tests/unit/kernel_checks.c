/*
** kernel_checks.c: guarded memory, random numbers and the list of checks; see
** kernel_checks.h.
*/
#include "kernel_checks.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const kernel_check kernel_checks[] = {
    {"linear", check_linear},
    {"linear, any split gives the same bits", check_linear_splits},
    {"linear_add, parts of depth give the bits of the whole", check_linear_add},
    {"linear, matrices larger than the caches", check_linear_panels},
    {"linear, every number of rows", check_linear_heights},
    {"linear, NaN and infinity", check_linear_not_finite},
    {"attention_scores", check_scores},
    {"attention_context", check_context},
    {"attention, any split gives the same bits", check_attention_splits},
    {"activate, a sweep of all numbers", check_activations},
    {"activate, any place gives the same bits", check_activation_positions},
    {"activate, special numbers", check_activation_special},
    {"layer_norm", check_layer_norm},
    {"layer_norm, hard rows", check_layer_norm_hard},
    {"softmax", check_softmax},
    {"softmax, special numbers", check_softmax_special},
    {"add_scaled", check_add_scaled},
    {"maximum", check_maximum},
    {"multiply", check_multiply},
    {"rotate", check_rotate},
    {"dot and squared_distance", check_distances},
    {"dot_codes", check_codes},
    {"dot_codes, the largest numbers", check_codes_extreme},
    {"from_half and from_bfloat16, all numbers", check_widening},
    {NULL, NULL},
};

const kernel_check packed_checks[] = {
    {"pack_rows", check_pack_rows},
    {"packed weights, where they lie", check_packed_layout},
    {"packed_linear", check_packed_linear},
    {"packed_linear, any split gives the same bits", check_packed_splits},
    {"packed_linear, many panels", check_packed_panels},
    {"packed_linear, NaN, infinity and zero rows", check_packed_not_finite},
    {"packed_linear, the largest numbers", check_packed_extreme},
    {NULL, NULL},
};

/* xorshift64*, Marsaglia 2003 and Vigna 2016. */
double check_random(void) {
  static uint64_t state = 88172645463325252u;
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (double)(int64_t)(state * 2685821657736338717u) * 0x1p-63;
}

matrix matrix_make(size_t rows, size_t cols, size_t gap, enum matrix_place place) {
  matrix m = {.rows = rows, .cols = cols, .ld = cols + gap};
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t count = rows > 0 ? (rows - 1) * m.ld + cols : 0, size = count * sizeof(float);
  size_t inside = (size + page - 1) / page * page;
  m.bytes = inside + 2 * page;
  m.pages = mmap(NULL, m.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (m.pages == MAP_FAILED) abort();
  char *start = (char *)m.pages + page;
  if (inside > 0 && mprotect(start, inside, PROT_READ | PROT_WRITE) != 0) abort();
  m.at = (float *)(void *)(place == MATRIX_ENDS_AT_GUARD ? start + inside - size : start);
  for (size_t i = 0; i < count; i++) m.at[i] = NAN;
  return m;
}

void matrix_free(matrix *m) {
  munmap(m->pages, m->bytes);
  m->pages = NULL;
}

void matrix_random(matrix *m) {
  for (size_t r = 0; r < m->rows; r++) {
    for (size_t c = 0; c < m->cols; c++) m->at[r * m->ld + c] = (float)check_random();
  }
}

int matrix_gaps_intact(const matrix *m) {
  for (size_t r = 0; r + 1 < m->rows; r++) {
    for (size_t c = m->cols; c < m->ld; c++) {
      if (!isnan(m->at[r * m->ld + c])) return 0;
    }
  }
  return 1;
}

void check_failed(int *failures, const char *format, ...) {
  enum { SHOWN = 5 };
  if ((*failures)++ >= SHOWN) return;
  va_list arguments;
  va_start(arguments, format);
  printf("    ");
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
}

int same_number(float a, float b) {
  return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}
