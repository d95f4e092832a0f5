/*
** vector_upright.h: linear with up to 16 rows, lanes being rows of y; see
** vector_linear.h.
**
** x is turned instead of w: for sets whose vectors are so short that turning w
** would take as long as the lanes that stay empty here.
*/
/* Twelve sums are enough to keep the multipliers busy and leave room for the rest
** under every set. */
enum {
  UPRIGHT_ROWS = 16,
  UPRIGHT_VECTORS = UPRIGHT_ROWS / LANES,
  UPRIGHT_COLS = 12 / UPRIGHT_VECTORS,
  UPRIGHT_DEPTH = 4 * MOST_DEPTH, /* turned at once: 24 KB */
  UPRIGHT_STRIP = 384,            /* columns whose sums wait on the stack: 24 KB */
  UPRIGHT_AHEAD = 24              /* columns between a row of w that is read and one fetched */
};

/* One block of depth: total[UPRIGHT_COLS, UPRIGHT_ROWS], or nothing when `fresh`, +=
** w[UPRIGHT_COLS, depth; ldw] turned[depth, UPRIGHT_ROWS]. next[UPRIGHT_COLS, depth; ldw] is
** fetched meanwhile. */
INLINE void upright_tile(const float *w, size_t ldw, const float *turned, size_t depth,
                         const float *next, int fresh, float *total) {
  V sum[UPRIGHT_COLS][UPRIGHT_VECTORS];
  UNROLL for (size_t c = 0; c < UPRIGHT_COLS; c++) {
    UNROLL for (size_t v = 0; v < UPRIGHT_VECTORS; v++) sum[c][v] = v_set1(0.0f);
  }
  for (size_t line = 0; line < depth; line += LINE) {
    size_t end = least(depth, line + LINE);
    fetch_rows(next + line, ldw, UPRIGHT_COLS);
    for (size_t d = line; d < end; d++) {
      V x[UPRIGHT_VECTORS];
      UNROLL for (size_t v = 0; v < UPRIGHT_VECTORS; v++) x[v] =
          v_load(turned + d * UPRIGHT_ROWS + v * LANES);
      UNROLL for (size_t c = 0; c < UPRIGHT_COLS; c++) {
        V factor = v_set1(w[c * ldw + d]);
        UNROLL for (size_t v = 0; v < UPRIGHT_VECTORS; v++) sum[c][v] =
            v_fma(factor, x[v], sum[c][v]);
      }
    }
  }
  UNROLL for (size_t c = 0; c < UPRIGHT_COLS; c++) {
    UNROLL for (size_t v = 0; v < UPRIGHT_VECTORS; v++) {
      float *p = total + c * UPRIGHT_ROWS + v * LANES;
      v_store(p, fresh ? sum[c][v] : v_add(v_load(p), sum[c][v]));
    }
  }
}

/* y[rows, cols; ldy] = total[cols, UPRIGHT_ROWS]^T + bias. */
static void close_strip(const float *total, const float *bias, float *y, size_t ldy, size_t rows,
                        size_t cols) {
  for (size_t c = 0; c < cols; c += LANES) {
    float t[UPRIGHT_ROWS * LANES];
    size_t n = least(cols - c, LANES);
    turn_rows(total + c * UPRIGHT_ROWS, UPRIGHT_ROWS, n, UPRIGHT_ROWS, t, LANES);
    for (size_t r = 0; r < rows; r++) {
      V out = v_load(t + r * LANES);
      float *p = y + r * ldy + c;
      if (bias != NULL) out = v_add(out, n == LANES ? v_load(bias + c) : v_load_part(bias + c, n));
      if (n == LANES)
        v_store(p, out);
      else
        v_store_part(p, out, n);
    }
  }
}

/* rows <= UPRIGHT_ROWS, cols in whole tiles. */
static void upright_rows(const float *x, size_t ldx, const float *w, size_t ldw, const float *bias,
                         float *y, size_t ldy, size_t rows, size_t cols, size_t depth) {
  _Alignas(64) float turned[UPRIGHT_DEPTH * UPRIGHT_ROWS], total[UPRIGHT_STRIP * UPRIGHT_ROWS];
  size_t step = block_depth(depth), room = UPRIGHT_DEPTH / step * step;
  for (size_t first = 0; first < cols; first += UPRIGHT_STRIP) {
    size_t width = least(cols - first, UPRIGHT_STRIP);
    for (size_t d = 0; d < depth; d += room) {
      size_t n = least(depth - d, room);
      for (size_t r = 0; r < UPRIGHT_ROWS; r += LANES)
        turn_rows(x + r * ldx + d, ldx, r < rows ? least(rows - r, LANES) : 0, n, turned + r,
                  UPRIGHT_ROWS);
      for (size_t c = 0; c < width; c += UPRIGHT_COLS) {
        const float *tile = w + (first + c) * ldw + d;
        const float *next = first + c + UPRIGHT_AHEAD < cols ? tile + UPRIGHT_AHEAD * ldw : tile;
        for (size_t b = 0; b < n; b += step)
          upright_tile(tile + b, ldw, turned + b * UPRIGHT_ROWS, least(n - b, step), next + b,
                       d + b == 0, total + c * UPRIGHT_ROWS);
      }
    }
    close_strip(total, bias != NULL ? bias + first : NULL, y + first, ldy, rows, width);
  }
}
