/*
** packed_amx_checks.c: the tiles of packed_amx.h with plain C in place of the
** instructions, so that their logic is tested on every machine. A tile that is
** used other than the processor allows spoils the result.
*/
#include "kernel_checks.h"

#include <math.h>
#include <string.h>

#include "encoder/kernels/kernel_sets.h"

/* The state that LDTILECFG makes: 8 tiles of at most 16 rows of 64 bytes. */
static struct {
  int configured, misused;
  size_t rows[8], row_bytes[8];
  unsigned char bytes[8][16][64];
} tiles;

static void misuse_if(int wrong) {
  if (wrong) tiles.misused = 1;
}

static void tile_zero(int n) {
  misuse_if(!tiles.configured || tiles.rows[n] == 0);
  memset(tiles.bytes[n], 0, sizeof tiles.bytes[n]);
}

static void tile_load(int n, const char *p, size_t stride) {
  tile_zero(n);
  for (size_t r = 0; r < tiles.rows[n]; r++)
    memcpy(tiles.bytes[n][r], p + r * stride, tiles.row_bytes[n]);
}

static void tile_store(int n, void *p, size_t stride) {
  misuse_if(!tiles.configured || tiles.rows[n] == 0);
  for (size_t r = 0; r < tiles.rows[n]; r++)
    memcpy((char *)p + r * stride, tiles.bytes[n][r], tiles.row_bytes[n]);
}

/* As the SDM has it: as many rows of b as a has groups in a row. */
static void check_product(int n, int a, int b) {
  misuse_if(!tiles.configured || n == a || n == b || a == b);
  misuse_if(tiles.rows[n] == 0 || tiles.rows[n] != tiles.rows[a]);
  misuse_if(tiles.row_bytes[n] != tiles.row_bytes[b]);
  misuse_if(tiles.row_bytes[a] != 4 * tiles.rows[b]);
}

static float widened(const unsigned char *p) {
  uint32_t bits = (uint32_t)p[1] << 24 | (uint32_t)p[0] << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The first and the second terms of the pairs are summed apart. */
static void tile_bf16(int n, int a, int b) {
  check_product(n, a, b);
  for (size_t r = 0; r < tiles.rows[n]; r++) {
    for (size_t c = 0; c < 16; c++) {
      float sum, part[2] = {0, 0};
      for (size_t k = 0; k < tiles.rows[b]; k++) {
        for (size_t t = 0; t < 2; t++) {
          float x = widened(tiles.bytes[a][r] + 4 * k + 2 * t);
          part[t] += x * widened(tiles.bytes[b][k] + 4 * c + 2 * t);
        }
      }
      memcpy(&sum, tiles.bytes[n][r] + 4 * c, sizeof sum);
      sum += part[0] + part[1];
      memcpy(tiles.bytes[n][r] + 4 * c, &sum, sizeof sum);
    }
  }
}

static void tile_int8(int n, int a, int b) {
  check_product(n, a, b);
  for (size_t r = 0; r < tiles.rows[n]; r++) {
    for (size_t c = 0; c < 16; c++) {
      int32_t sum;
      memcpy(&sum, tiles.bytes[n][r] + 4 * c, sizeof sum);
      for (size_t i = 0; i < 4 * tiles.rows[b]; i++)
        sum += tiles.bytes[a][r][i] * (int8_t)tiles.bytes[b][i / 4][4 * c + i % 4];
      memcpy(tiles.bytes[n][r] + 4 * c, &sum, sizeof sum);
    }
  }
}

#define TILES_CONFIGURE(config) tiles_configure(&(config))
#define TILES_RELEASE() tiles.configured = 0
#define TILE_ZERO(N) tile_zero(N)
#define TILE_LOAD(N, p, stride) tile_load(N, p, stride)
#define TILE_STORE(N, p, stride) tile_store(N, p, stride)
#define TILE_BF16(N, A, B) tile_bf16(N, A, B)
#define TILE_INT8(N, A, B) tile_int8(N, A, B)

struct tile_config;
static void tiles_configure(const struct tile_config *config);

static void finish_panel(const packed_job *job, size_t row, size_t col, const int32_t *sums) {
  const packed_weights *w = job->w;
  for (size_t c = 0; c < PACKED_COLUMNS && col + c < job->last; c++) {
    float value;
    memcpy(&value, sums + c, sizeof value);
    if (w->precision == PRECISION_INT8) {
      float scale = job->x->scales[row] * w->scales[col + c];
      /* NOLINTNEXTLINE(clang-analyzer-core.*): TILE_STORE has written them */
      value = (float)(sums[c] - job->x->zeros[row] * w->sums[col + c]) * scale;
    }
    job->y[row * job->ldy + col + c] = value + (job->bias != NULL ? job->bias[col + c] : 0.0f);
  }
}

#include "encoder/kernels/packed_amx.h"

/* What the processor refuses is misuse; LDTILECFG clears all tiles. */
static void tiles_configure(const tile_config *config) {
  misuse_if(tiles.configured || config->palette != 1 || config->start_row != 0);
  memset(&tiles.bytes, 0, sizeof tiles.bytes);
  for (size_t t = 0; t < 16; t++) {
    size_t rows = config->rows[t], row_bytes = config->row_bytes[t];
    misuse_if(rows > 16 || row_bytes > 64 || (rows == 0) != (row_bytes == 0));
    misuse_if(t >= 8 && rows != 0);
    if (t >= 8) continue;
    tiles.rows[t] = rows;
    tiles.row_bytes[t] = row_bytes;
  }
  tiles.configured = 1;
}

static void packed_linear_emulated(const packed_rows *x, const packed_weights *w, size_t first,
                                   size_t last, const float *bias, float *y, size_t ldy) {
  packed_job job = {x, w, last, bias, y, ldy};
  tiles.misused = 0;
  amx_linear(&job, first);
  if (!tiles.misused && !tiles.configured) return;
  for (size_t r = 0; r < x->rows; r++) {
    for (size_t c = first; c < last; c++) y[r * ldy + c] = -INFINITY;
  }
}

const kernels *amx_emulated(void) {
  static kernels set;
  set = *kernels_find("scalar");
  set.name = "amx, emulated";
  set.float32_of = "scalar";
  set.packed_linear = packed_linear_emulated;
  return &set;
}
