/*
** vector_codes.h: sums of products of whole numbers, for search among quantized
** vectors; part of vector_kernels.h.
**
** Codes are many and read once, so memory sets the pace: four rows at a time
** share the loads of the query and the additions over lanes.
*/

enum { ROWS_AT_ONCE = 4 };

/* The processor's own prefetching follows one run of addresses better than four:
** this far ahead it costs nothing and saves a quarter of the time from memory. */
enum { BYTES_AHEAD = 1024 };
INLINE void prefetch_codes(const int8_t *p) {
  __builtin_prefetch((const void *)((uintptr_t)p + BYTES_AHEAD)); /* may lie anywhere */
}

/* The rest of a row, with `room` codes up to the end of all of them. What a vector
** reads beyond its row meets zeros of the query. */
INLINE I16 c_load_rest(const int8_t *p, size_t room) {
  int8_t rest[CODES] = {0};
  if (room >= CODES) return c_load(p);
  memcpy(rest, p, room);
  return c_load(rest);
}

/* sums[r] for the rows at row[r]; `last` is the query's rest, then zeros. */
INLINE void dot_four_rows(const int16_t *query, const int16_t last[CODES],
                          const int8_t *const row[ROWS_AT_ONCE], const int8_t *end, size_t depth,
                          int32_t sums[ROWS_AT_ONCE]) {
  I32 sum[ROWS_AT_ONCE] = {s_zero(), s_zero(), s_zero(), s_zero()};
  size_t j = 0;
  for (; j + CODES <= depth; j += CODES) {
    I16 q = c_load_query(query + j);
    UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++) {
      prefetch_codes(row[r] + j);
      sum[r] = s_add(sum[r], q, c_load(row[r] + j));
    }
  }
  if (j < depth) {
    I16 q = c_load_query(last);
    UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++) {
      const int8_t *rest = row[r] + j;
      sum[r] = s_add(sum[r], q, c_load_rest(rest, (size_t)(end - rest)));
    }
  }
  s_sum4(sum, sums);
}

static void dot_codes(const int16_t *query, const int8_t *codes, int32_t *sums, size_t rows,
                      size_t depth) {
  const int8_t *end = codes + rows * depth;
  int16_t last[CODES] = {0};
  size_t rest = depth % CODES;
  if (rest > 0) memcpy(last, query + (depth - rest), rest * sizeof *last);
  for (size_t r = 0; r < rows; r += ROWS_AT_ONCE) {
    int32_t four[ROWS_AT_ONCE];
    size_t left = rows - r < ROWS_AT_ONCE ? rows - r : ROWS_AT_ONCE;
    const int8_t *row[ROWS_AT_ONCE];
    /* Fewer than four: the last one again. */
    for (size_t i = 0; i < ROWS_AT_ONCE; i++)
      row[i] = codes + (r + (i < left ? i : left - 1)) * depth;
    dot_four_rows(query, last, row, end, depth, four);
    memcpy(sums + r, four, left * sizeof *sums);
  }
}
