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
#include <float.h>
#include <math.h>
#include <stdatomic.h>

#include "../kernels/kernels.h"
#include "search_parts.h"

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

/* Not above x, and at most three units in the last place below: the float nearest
** to what is a little less, which costs no branch. The largest float for what is
** above all. */
static float float_not_above(double x) {
  double less = x - fabs(x) * 0x1p-23 - 0x1p-149;
  return (float)(less < (double)FLT_MAX ? less : (double)FLT_MAX);
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
  double norm = (double)x.norm - (double)x.norm * 0x1p-22 - 0x1p-149;
  double squares = q->square + (norm > 0 ? norm * norm : 0);
  double square = squares - 2 * q->scale * (double)x.scale * sum - squares * 0x1p-49;
  double unknown = q->error + (double)x.error;
  double distance = square > 0 ? sqrt(square) : 0;
  return distance - unknown - slack * (distance + unknown);
}

/* Where all parts are finite floats, nothing here can overflow a double or be
** NaN, whatever their values. */
static int is_usable(search_entry x) {
  return isfinite((double)x.scale + (double)x.error + (double)x.norm);
}

static void bounds_of_l2(const search_query *q, const search_block *block, size_t first,
                         size_t rows, const int32_t *sums, float *bounds) {
  double slack = ((double)q->dim + 16) * 0x1p-49;
  for (size_t r = 0; r < rows; r++) {
    search_entry x = entry_at(block, first + r);
    double bound = l2_at_least(q, x, sums[r], slack);
    bounds[r] = is_usable(x) ? float_not_above(bound) : -INFINITY;
  }
}

/* Cosine is 1 - q.x, dot is -q.x: `one` is 1 or 0. */
static void bounds_of_dot(const search_query *q, const search_block *block, size_t first,
                          size_t rows, const int32_t *sums, double one, float *bounds) {
  double slack = ((double)q->dim + 16) * 0x1p-49;
  for (size_t r = 0; r < rows; r++) {
    search_entry x = entry_at(block, first + r);
    double bound = one - dot_at_most(q, x, sums[r], slack) - one * slack;
    bounds[r] = is_usable(x) ? float_not_above(bound) : -INFINITY;
  }
}

/* ---- Blocks -------------------------------------------------------------- */

/* Entries [first, first + rows) of a block, rows <= UNIT. */
static void scan_entries(const scan *s, const search_block *block, size_t first, size_t rows,
                         float *bounds) {
  const search_query *q = s->query;
  int32_t sums[UNIT];
  s->set->dot_codes(q->codes, block->codes + first * block->dim, sums, rows, block->dim);
  if (q->metric == SEARCH_L2)
    bounds_of_l2(q, block, first, rows, sums, bounds);
  else
    bounds_of_dot(q, block, first, rows, sums, q->metric == SEARCH_COSINE ? 1 : 0, bounds);
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
