/*
** vector_turn.h: matrices turned by 90 degrees, so that what lay along depth lies
** in lanes. Written once for all sets; see vector_kernels.h.
*/

/* Where steps of depth go: step d is the vector at
** out + d / 8 * eight + d / 4 % 2 * four + d % 4 * one. */
typedef struct turn_layout {
  size_t one, four, eight;
} turn_layout;

INLINE float *turn_place(float *out, const turn_layout *l, size_t d) {
  return out + d / 8 * l->eight + d / 4 % 2 * l->four;
}

/* out[4, LANES; ldo] = a[LANES, 4; lda]^T. */
INLINE void turn_four(const float *a, size_t lda, float *out, size_t ldo) {
  V t[4];
  UNROLL for (size_t i = 0; i < 4; i++) t[i] = v_load_fours(a + i * lda, 4 * lda);
  v_turn_fours(t);
  UNROLL for (size_t i = 0; i < 4; i++) v_store(out + i * ldo, t[i]);
}

/* The last depth < 4 steps of turn_rows. */
static void turn_rest(const float *a, size_t lda, size_t rows, size_t depth, float *out,
                      size_t ldo) {
  float fours[LANES * 4] = {0}, turned[4 * LANES];
  for (size_t r = 0; r < rows; r++) {
    for (size_t d = 0; d < depth; d++) fours[4 * r + d] = a[r * lda + d];
  }
  turn_four(fours, 4, turned, LANES);
  for (size_t d = 0; d < depth; d++) v_store(out + d * ldo, v_load(turned + d * LANES));
}

/* out = a[rows, depth; lda]^T for rows <= LANES; zeros where rows are missing. */
INLINE void turn_rows(const float *a, size_t lda, size_t rows, size_t depth, float *out,
                      const turn_layout *l) {
  size_t d = 0;
  if (rows == LANES) {
    for (; d + 4 <= depth; d += 4) turn_four(a + d, lda, turn_place(out, l, d), l->one);
  } else {
    float fours[LANES * 4] = {0};
    for (; d + 4 <= depth; d += 4) {
      for (size_t r = 0; r < rows; r++) memcpy(fours + 4 * r, a + r * lda + d, 4 * sizeof *a);
      turn_four(fours, 4, turn_place(out, l, d), l->one);
    }
  }
  if (d < depth) turn_rest(a + d, lda, rows, depth - d, turn_place(out, l, d), l->one);
}

/* The same for any number of rows: a step is them, rounded up to whole vectors. */
INLINE void turn_matrix(const float *a, size_t lda, size_t rows, size_t depth, float *out,
                        const turn_layout *l) {
  for (size_t r = 0; r < rows; r += LANES)
    turn_rows(a + r * lda, lda, least(rows - r, LANES), depth, out + r, l);
}
