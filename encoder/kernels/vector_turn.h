/*
** vector_turn.h: matrices turned by 90 degrees, so that what lay along depth lies
** in lanes. Written once for all sets; see vector_kernels.h.
*/
INLINE size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* The last depth < 4 steps of turn_rows. */
static void turn_rest(const float *a, size_t lda, size_t rows, size_t depth, float *out,
                      size_t ldo) {
  float fours[LANES * 4] = {0}, turned[4 * LANES];
  for (size_t r = 0; r < rows; r++) {
    for (size_t d = 0; d < depth; d++) fours[4 * r + d] = a[r * lda + d];
  }
  v_turn4(fours, 4, turned, LANES);
  for (size_t d = 0; d < depth; d++) v_store(out + d * ldo, v_load(turned + d * LANES));
}

/* out[depth, LANES; ldo] = a[rows, depth; lda]^T for rows <= LANES; zeros where
** rows are missing. */
INLINE void turn_rows(const float *a, size_t lda, size_t rows, size_t depth, float *out,
                      size_t ldo) {
  size_t d = 0;
  if (rows == LANES) {
    for (; d + 4 <= depth; d += 4) v_turn4(a + d, lda, out + d * ldo, ldo);
  } else {
    float fours[LANES * 4] = {0};
    for (; d + 4 <= depth; d += 4) {
      for (size_t r = 0; r < rows; r++) memcpy(fours + 4 * r, a + r * lda + d, 4 * sizeof *a);
      v_turn4(fours, 4, out + d * ldo, ldo);
    }
  }
  if (d < depth) turn_rest(a + d, lda, rows, depth - d, out + d * ldo, ldo);
}

/* The same for any number of rows and out[depth, rows rounded up; ldo]. */
INLINE void turn_matrix(const float *a, size_t lda, size_t rows, size_t depth, float *out,
                        size_t ldo) {
  for (size_t r = 0; r < rows; r += LANES)
    turn_rows(a + r * lda, lda, least(rows - r, LANES), depth, out + r, ldo);
}
