/*
** packed_tiles.h: packed_linear for one precision, written once for all vector
** sets. Included once for each product that a set has, with PRODUCT defined as
** bf16 or int8 and, after packed_vectors.h,
**   PRODUCT_sum            LANES sums: V or I;  PRODUCT_zero()
**   PRODUCT_terms          one group of LANES columns, ready to be multiplied
**   PRODUCT_columns(p)     that of a panel, from 4 LANES bytes
**   PRODUCT_row(p)         that of a row, PRODUCT_ROW_STEP bytes, for all columns alike
**   PRODUCT_add(s, x, w)   s and the products of the terms, in an order of its own
**   PRODUCT_TILES(T)       T(R, C) for each tile of R rows and C vectors that its
**                          shapes need, also at the edges
**   PRODUCT_shapes         packed_shape[], see packed_vectors.h
**
** A tile holds the sums of its rows and columns in registers and walks along
** depth, a group a step: a few vectors of w, and for each row one number for all
** lanes. An element is one chain over the groups, whatever tile it falls in.
*/
#define JOIN2(a, b) a##_##b
#define JOIN(a, b) JOIN2(a, b)
#define IN(name) JOIN(PRODUCT, name)

enum { IN(MOST_ROWS) = 16, IN(MOST_VECTORS) = 8, IN(VECTORS) = PACKED_COLUMNS / LANES };

/* One tile over all of depth; R and C are constants where this is used. Meanwhile it
** fetches a part of what comes next from memory into the second-level cache: from
** `ahead` bytes behind each panel on, `step` bytes a group. */
INLINE void IN(tile)(const size_t R, const size_t C, const packed_job *job, size_t row, size_t col,
                     size_t ahead, size_t step) {
  IN(sum) sum[IN(MOST_ROWS)][IN(MOST_VECTORS)];
  size_t stride = job->x->stride, panel = job->w->panel;
  const char *x = (const char *)job->x->codes + row * stride;
  const char *w = (const char *)job->w->panels + col / PACKED_COLUMNS * panel;
  UNROLL for (size_t r = 0; r < R; r++) {
    UNROLL for (size_t c = 0; c < C; c++) sum[r][c] = IN(zero)();
  }
  uintptr_t next = (uintptr_t)w + ahead; /* may lie anywhere */
  for (const char *end = w + panel; w < end; w += PACKED_GROUP, x += IN(ROW_STEP), next += step) {
    IN(terms) b[IN(MOST_VECTORS)];
    UNROLL for (size_t c = 0; c < C; c++) {
      size_t at = c % IN(VECTORS) * LANES * 4;
      const char *from = w + c / IN(VECTORS) * panel + at;
      b[c] = IN(columns)(from);
      if (at == 0) __builtin_prefetch((const void *)(next + c / IN(VECTORS) * panel), 0, 2);
    }
    UNROLL for (size_t r = 0; r < R; r++) {
      IN(terms) a = IN(row)(x + r * stride);
      UNROLL for (size_t c = 0; c < C; c++) sum[r][c] = IN(add)(sum[r][c], a, b[c]);
    }
  }
  UNROLL for (size_t c = 0; c < C; c++) {
    size_t from = col + c * LANES, count = job->last > from ? job->last - from : 0;
    UNROLL for (size_t r = 0; r < R; r++) {
      store_value(job, row + r, from, count, IN(value)(sum[r][c], job, row + r, from));
    }
  }
}

#define DEFINE_TILE(R, C)                                                                          \
  static void JOIN(IN(tile), JOIN(R, C))(const packed_job *job, size_t row, size_t col,            \
                                         size_t ahead, size_t step) {                              \
    IN(tile)(R, C, job, row, col, ahead, step);                                                    \
  }
#define NAME_TILE(R, C) [C][R] = JOIN(IN(tile), JOIN(R, C)),
#define EVERY_TILE(T) IN(TILES)(T)
EVERY_TILE(DEFINE_TILE)

typedef void IN(tile_function)(const packed_job *job, size_t row, size_t col, size_t ahead,
                               size_t step);
static IN(tile_function) *const
    IN(tiles)[IN(MOST_VECTORS) + 1][IN(MOST_ROWS)] = {EVERY_TILE(NAME_TILE)};

/* Strips of columns, whose panels stay in the second-level cache while the rows
** pass. While few rows do, w comes from memory: each tile of rows fetches its share of
** the next strip. */
static void IN(linear)(const packed_job *job, size_t first) {
  const packed_shape *shape = IN(shapes);
  size_t rows = job->x->rows, width;
  while (shape->rows < rows) shape++;
  size_t tiles = (rows + shape->tile_rows - 1) / shape->tile_rows;
  for (size_t col = first; col < job->last; col += width * LANES) {
    size_t panels = (job->last - col + PACKED_COLUMNS - 1) / PACKED_COLUMNS;
    width = panels * IN(VECTORS) < shape->vectors ? panels * IN(VECTORS) : shape->vectors;
    size_t ahead = width / IN(VECTORS) * job->w->panel;
    for (size_t t = 0; t < tiles; t++) {
      size_t row = tile_row(t, tiles, rows), height = tile_row(t + 1, tiles, rows) - row;
      size_t share = t * (job->w->panel / tiles);
      IN(tiles)[width][height](job, row, col, ahead + share, PACKED_GROUP / tiles);
    }
  }
}

#undef JOIN
#undef JOIN2
#undef IN
#undef DEFINE_TILE
#undef NAME_TILE
#undef EVERY_TILE
