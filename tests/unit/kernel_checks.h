/*
** kernel_checks.h: what every set of kernels must do, without a test library,
** so that the checks also run where there is none (a set for another processor
** under an emulator).
*/
#ifndef KERNEL_CHECKS_H
#define KERNEL_CHECKS_H

#include "encoder/kernels/kernels.h"

/* One check: returns the number of failures and prints the first few. */
typedef struct kernel_check {
  const char *name;
  int (*run)(const kernels *set);
} kernel_check;

/* All checks, ended by a NULL name: those of the packed products, and the others,
** which a set with float32_of need not run. */
extern const kernel_check kernel_checks[];
extern const kernel_check packed_checks[];

/* The scalar set with the packed products of packed_amx.h, their instructions
** emulated. */
const kernels *amx_emulated(void);

/* ---- for the files of checks only --------------------------------------- */

int check_linear(const kernels *set);
int check_linear_splits(const kernels *set);
int check_linear_add(const kernels *set);
int check_linear_panels(const kernels *set);
int check_linear_heights(const kernels *set);
int check_linear_not_finite(const kernels *set);
int check_scores(const kernels *set);
int check_context(const kernels *set);
int check_attention_splits(const kernels *set);
int check_activations(const kernels *set);
int check_activation_positions(const kernels *set);
int check_activation_special(const kernels *set);
int check_layer_norm(const kernels *set);
int check_layer_norm_hard(const kernels *set);
int check_softmax(const kernels *set);
int check_softmax_special(const kernels *set);
int check_add_scaled(const kernels *set);
int check_maximum(const kernels *set);
int check_multiply(const kernels *set);
int check_rotate(const kernels *set);
int check_distances(const kernels *set);
int check_codes(const kernels *set);
int check_codes_extreme(const kernels *set);
int check_widening(const kernels *set);
int check_pack_rows(const kernels *set);
int check_packed_layout(const kernels *set);
int check_packed_linear(const kernels *set);
int check_packed_splits(const kernels *set);
int check_packed_panels(const kernels *set);
int check_packed_not_finite(const kernels *set);
int check_packed_extreme(const kernels *set);

/* A matrix [rows, cols; ld] in pages of its own, between pages that may not be
** touched: it ends where the first of them begins, or starts where the other
** ends, so that one float too far is a fault. Gaps between rows hold NaN. */
typedef struct matrix {
  float *at;
  size_t rows, cols, ld;
  void *pages;
  size_t bytes;
} matrix;

enum matrix_place { MATRIX_ENDS_AT_GUARD, MATRIX_STARTS_AT_GUARD };

matrix matrix_make(size_t rows, size_t cols, size_t gap, enum matrix_place place);
void matrix_free(matrix *m);
void matrix_random(matrix *m);           /* in [-1, 1), other numbers each time */
int matrix_gaps_intact(const matrix *m); /* 1 when the gaps still hold NaN */

/* A random number in [-1, 1); the sequence is the same in every run. */
double check_random(void);

/* Prints a failure, the first few of each check only, and counts it. */
void check_failed(int *failures, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Same bits, or both NaN. */
int same_number(float a, float b);

#endif
