/*
** vector_turn.h: matrices turned by 90 degrees, so that what lay along depth lies
** in lanes. Written once for all sets; see vector_kernels.h.
*/
INLINE size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Four steps of turn_rows at an edge: depth <= 4. */
static void turn_edge(const float *a, size_t lda, size_t rows, size_t depth, float *out,
                      size_t ldo) {
  float piece[LANES * 4] = {0}, turned[4 * LANES];
  for (size_t r = 0; r < rows; r++) memcpy(piece + 4 * r, a + r * lda, depth * sizeof *a);
  v_turn4(piece, 4, turned, LANES);
  for (size_t d = 0; d < depth; d++) v_store(out + d * ldo, v_load(turned + d * LANES));
}

/* out[depth, LANES; ldo] = a[rows, depth; lda]^T for rows <= LANES; zeros where
** rows are missing. */
INLINE void turn_rows(const float *a, size_t lda, size_t rows, size_t depth, float *out,
                      size_t ldo) {
  size_t d = 0;
  if (rows == LANES) {
    for (; d + 4 <= depth; d += 4) v_turn4(a + d, lda, out + d * ldo, ldo);
  }
  for (; d < depth; d += 4)
    turn_edge(a + d, lda, rows, depth - d < 4 ? depth - d : 4, out + d * ldo, ldo);
}

/* The same for any number of rows and out[depth, rows rounded up; ldo]. */
INLINE void turn_matrix(const float *a, size_t lda, size_t rows, size_t depth, float *out,
                        size_t ldo) {
  for (size_t r = 0; r < rows; r += LANES)
    turn_rows(a + r * lda, lda, rows - r < LANES ? rows - r : LANES, depth, out + r, ldo);
}
