/*
** scan.c: for each vector of a block, a distance that the true one is not below.
**
** With x = y + r, |r| <= e, y the quantized vector of the block, and
** q = p + d, |d| <= f, p the quantized query:
**
**   q.x = p.y + d.y + q.r    is at most    p.y + f |y| + |q| e
**   |q - x|                  is at least   |p - y| - f - e
**
** p.y is a sum of whole numbers times two scales, so all that is rounded are the
** few operations that follow it, and those of search_distance. With u = 2^-53
** and n numbers in a vector, the sums of kernels.h are within n u sum |q_j x_j|
** <= n u |q| |x| of the true ones, and so the distance within (2 n + 12) u of the
** size of what it is made of; `slack` below is 8 times as large.
*/
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "../kernels/kernels.h"
#include "quantized_query.h"

enum { UNIT = 256 };               /* entries that a thread takes at a time */
enum { BYTES_A_THREAD = 1 << 19 }; /* of codes: below, waking a thread costs more than it saves */

typedef struct scan {
  const search_query *query;
  const search_block *blocks; /* [count] */
  size_t count, entries;      /* of all blocks */
  const kernels *set;
  float *bounds;      /* [entries] */
  atomic_size_t next; /* unit to take */
} scan;

/* ---- Bounds -------------------------------------------------------------- */

static float float_not_above(double x) {
  float nearest = (float)x;
  return (double)nearest > x ? nextafterf(nearest, -INFINITY) : nearest;
}

/* A number that q.x, as it is computed, is not above; q and x have length 1 for
** cosine. */
static double dot_at_most(const search_query *q, search_entry x, double sum, double slack) {
  double product = q->scale * (double)x.scale * sum;
  double unknown = q->error * (double)x.norm + q->norm * (double)x.error;
  double size = q->norm * ((double)x.norm + (double)x.error);
  return product + unknown + slack * (size + unknown);
}

/* A number that |q - x|, as it is computed, is not below. The norm in a block
** was rounded up: it may be a unit in the last place too large. */
static double l2_at_least(const search_query *q, search_entry x, double sum, double slack) {
  double norm = fmax(0, (double)x.norm - (double)x.norm * 0x1p-22 - 0x1p-149);
  double squares = q->square + norm * norm;
  double square = squares - 2 * q->scale * (double)x.scale * sum - squares * 0x1p-49;
  double unknown = q->error + (double)x.error;
  double distance = square > 0 ? sqrt(square) : 0;
  return distance - unknown - slack * (distance + unknown);
}

/* Where all parts are finite floats, nothing here can overflow a double or be
** NaN, whatever their values. */
static float bound_of(const search_query *q, search_entry x, int32_t sum) {
  double slack = ((double)q->dim + 16) * 0x1p-49;
  if (!isfinite(x.scale) || !isfinite(x.error) || !isfinite(x.norm)) return -INFINITY;
  if (q->metric == SEARCH_L2) return float_not_above(l2_at_least(q, x, sum, slack));
  double most = dot_at_most(q, x, sum, slack);
  return float_not_above(q->metric == SEARCH_DOT ? -most : 1 - most - slack);
}

/* ---- Blocks -------------------------------------------------------------- */

/* Entries [first, first + rows) of a block, rows <= UNIT. */
static void scan_entries(const scan *s, const search_block *block, size_t first, size_t rows,
                         float *bounds) {
  int32_t sums[UNIT];
  s->set->dot_codes(s->query->codes, block->codes + first * block->dim, sums, rows, block->dim);
  for (size_t r = 0; r < rows; r++)
    bounds[r] = bound_of(s->query, search_block_entry(block, first + r), sums[r]);
}

/* A place among the entries of all blocks; it only moves forward. */
typedef struct place {
  size_t block, before; /* entries of the blocks before it */
} place;

static void scan_unit(const scan *s, size_t first, size_t last, place *at) {
  while (first < last) {
    const search_block *block = &s->blocks[at->block];
    if (first >= at->before + block->count) {
      at->before += block->count;
      at->block++;
      continue;
    }
    size_t inside = first - at->before, rows = last - first;
    if (rows > block->count - inside) rows = block->count - inside;
    scan_entries(s, block, inside, rows, s->bounds + first);
    first += rows;
  }
}

static void scan_units(team_member *member, void *user) {
  (void)member;
  scan *s = user;
  place at = {0, 0};
  for (;;) {
    size_t first = atomic_fetch_add(&s->next, 1) * UNIT;
    if (first >= s->entries) return;
    scan_unit(s, first, s->entries - first < UNIT ? s->entries : first + UNIT, &at);
  }
}

void search_scan(const search_query *query, const search_block *blocks, size_t count, int threads,
                 float *bounds) {
  scan s = {query, blocks, count, 0, kernels_current(), bounds, 0};
  for (size_t i = 0; i < count; i++) s.entries += blocks[i].count;
  uint64_t useful = (uint64_t)s.entries * query->dim / BYTES_A_THREAD + 1;
  int most = threads > 0 ? threads : team_cores();
  team_run(useful < (uint64_t)most ? (int)useful : most, scan_units, &s);
}
