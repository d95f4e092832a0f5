/*
** packed_amx.h: packed_linear in tiles of AMX, over a vocabulary of their
** instructions, so that a test can put plain C in their place and run this
** everywhere. Who includes it defines before, N being the digit of a tile:
**   INLINE
**   TILES_CONFIGURE(config)                a tile_config
**   TILES_RELEASE()
**   TILE_ZERO(N), TILE_LOAD(N, p, stride), TILE_STORE(N, p, stride)
**   TILE_BF16(N, A, B), TILE_INT8(N, A, B) N += A B: A [rows, 16 groups] and
**                          B [16 groups, 16 columns], whose order within a tile is
**                          the processor's own
**   finish_panel(job, row, col, sums)      y of one row and the columns of a panel
**                          from its 16 sums, float or int32
** Intel SDM, volume 1, chapter 18, and TDPBF16PS, TDPBUSD in volume 2.
**
** Tiles 0 to 3 are the sums of up to 32 rows and 2 panels: 0 and 1 of the first 16
** rows, 2 and 3 of the others. 4 and 5 are those rows, 6 and 7 the panels.
*/

/* Palette 1: 8 tiles of at most 16 rows of 64 bytes. */
typedef struct tile_config {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} tile_config;

enum { TILE_ROWS = 16, TILE_BYTES = 1024, BLOCK_ROWS = 2 * TILE_ROWS };

/* All products have blocks of one height, so one configuration is enough. */
INLINE void configure_blocks(size_t height) {
  uint8_t upper = (uint8_t)(height < TILE_ROWS ? height : TILE_ROWS);
  uint8_t lower = (uint8_t)(height - upper);
  /* Tiles without rows are not configured at all, and not used. */
  tile_config config = {.palette = 1,
                        .rows = {upper, upper, lower, lower, upper, lower, TILE_ROWS, TILE_ROWS}};
  for (size_t t = 0; t < 8; t++) config.row_bytes[t] = config.rows[t] > 0 ? PACKED_GROUP : 0;
  TILES_CONFIGURE(config);
}

/* What one block works on: its rows of x and its panels. */
typedef struct tile_block {
  const char *x, *w; /* [height, stride], [panels, panel] */
  size_t stride, panel;
  size_t ahead; /* bytes from w to what comes from memory next */
} tile_block;

/* Sums N and M of the rows in A, over the panels in 6 and 7. */
#define TILE_PRODUCTS(N, M, A)                                                                     \
  do {                                                                                             \
    if (P == PRECISION_BF16)                                                                       \
      TILE_BF16(N, A, 6);                                                                          \
    else                                                                                           \
      TILE_INT8(N, A, 6);                                                                          \
    if (C > 1 && P == PRECISION_BF16) TILE_BF16(M, A, 7);                                          \
    if (C > 1 && P == PRECISION_INT8) TILE_INT8(M, A, 7);                                          \
  } while (0)

/* The sums of a block, R tiles by C: constants where this is used, as P is. */
INLINE void sum_block(const packed_precision P, const size_t R, const size_t C,
                      const tile_block *b) {
  TILE_ZERO(0);
  if (C > 1) TILE_ZERO(1);
  if (R > 1) TILE_ZERO(2);
  if (R > 1 && C > 1) TILE_ZERO(3);
  const char *x = b->x, *w = b->w, *end = b->w + b->panel;
  for (; w < end; x += PACKED_ROW_STEP, w += TILE_BYTES) {
    for (size_t line = 0; line < C * TILE_BYTES && b->ahead > 0; line += PACKED_GROUP) {
      const char *from = w + line / TILE_BYTES * b->panel + line % TILE_BYTES;
      __builtin_prefetch((const void *)((uintptr_t)from + b->ahead), 0, 2);
    }
    TILE_LOAD(6, w, PACKED_GROUP);
    if (C > 1) TILE_LOAD(7, w + b->panel, PACKED_GROUP);
    TILE_LOAD(4, x, b->stride);
    TILE_PRODUCTS(0, 1, 4);
    if (R > 1) {
      TILE_LOAD(5, x + TILE_ROWS * b->stride, b->stride);
      TILE_PRODUCTS(2, 3, 5);
    }
  }
}

/* y of a block: `height` rows from `row`, and the panels from column `col`. */
INLINE void block_product(const packed_precision P, const size_t R, const size_t C,
                          const packed_job *job, const tile_block *b, size_t height, size_t row,
                          size_t col) {
  /* Of tiles 0, 1, 2, 3: [2, 2, 16, 16], float or int32. */
  _Alignas(64) int32_t sums[4][TILE_ROWS * PACKED_COLUMNS];
  sum_block(P, R, C, b);
  TILE_STORE(0, sums[0], PACKED_GROUP);
  if (C > 1) TILE_STORE(1, sums[1], PACKED_GROUP);
  if (R > 1) TILE_STORE(2, sums[2], PACKED_GROUP);
  if (R > 1 && C > 1) TILE_STORE(3, sums[3], PACKED_GROUP);
  for (size_t r = 0; r < height; r++) {
    for (size_t c = 0; c < C; c++) {
      const int32_t *from = sums[r / TILE_ROWS * 2 + c] + r % TILE_ROWS * PACKED_COLUMNS;
      finish_panel(job, row + r, col + c * PACKED_COLUMNS, from);
    }
  }
}

INLINE void any_block(const packed_precision P, const packed_job *job, const tile_block *b,
                      size_t height, size_t row, size_t col) {
  int two_panels = job->last > col + PACKED_COLUMNS;
  if (height > TILE_ROWS && two_panels)
    block_product(P, 2, 2, job, b, height, row, col);
  else if (height > TILE_ROWS)
    block_product(P, 2, 1, job, b, height, row, col);
  else if (two_panels)
    block_product(P, 1, 2, job, b, height, row, col);
  else
    block_product(P, 1, 1, job, b, height, row, col);
}

/* Two panels at a time, past which all blocks of rows go. Blocks are equally high:
** the last may begin in the one before it and give a few rows once more. */
static void amx_linear(const packed_job *job, size_t first) {
  const packed_rows *x = job->x;
  size_t rows = x->rows, blocks = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
  if (rows == 0 || first >= job->last) return;
  size_t height = (rows + blocks - 1) / blocks;
  configure_blocks(height);
  for (size_t col = first; col < job->last; col += 2 * PACKED_COLUMNS) {
    tile_block b = {.stride = x->stride, .panel = job->w->panel, .ahead = 2 * job->w->panel};
    b.w = (const char *)job->w->panels + col / PACKED_COLUMNS * b.panel;
    for (size_t t = 0; t < blocks; t++) {
      size_t row = t * height < rows - height ? t * height : rows - height;
      b.x = (const char *)x->codes + row * x->stride;
      if (job->w->precision == PRECISION_BF16)
        any_block(PRECISION_BF16, job, &b, height, row, col);
      else
        any_block(PRECISION_INT8, job, &b, height, row, col);
      b.ahead = 0;
    }
  }
  TILES_RELEASE();
}
