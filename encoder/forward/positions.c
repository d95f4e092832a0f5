/*
** positions.c: positions that are no rows of a table in the file: rotary ones
** (Su et al. 2021), biases of scores by distance (MPNet's buckets after Raffel et
** al. 2020, ALiBi of Press et al. 2022) and sinusoids (Vaswani et al. 2017).
**
** The references compute angles and buckets in float32, which shows in the far
** positions of a long text; so the same roundings are made here.
*/
#include <math.h>
#include <string.h>

#include "forward.h"

/* ---- Rotary positions --------------------------------------------------- */

/* Floats of a table of angles: rows for the first 16,384 positions of a head of 64. */
enum { TABLE_FLOATS = 1 << 20 };

/* The theta for a sequence of `tokens`. A dynamic scaling lets it grow so that the
** slowest angle reaches no further than in training (bloc97 2023, as transformers'
** _compute_dynamic_ntk_parameters has it). */
static double theta_of(const rotation *r, size_t tokens) {
  const rope_config *c = &r->rope;
  double width = (double)r->width, factor = c->factor;
  if (c->scaling == ROPE_NTK) return c->theta * factor;
  if (c->scaling != ROPE_DYNAMIC || tokens <= (size_t)c->trained) return c->theta;
  double longer = factor * (double)tokens / (double)c->trained - (factor - 1);
  return c->theta * pow(longer, width / (width - 2));
}

/* The angle between positions of pair `i`. */
static float frequency(const rotation *r, double theta, size_t i) {
  float exponent = (float)(2 * i) / (float)r->width;
  float f = 1.0f / (float)pow((double)(float)theta, (double)exponent);
  if (r->rope.scaling == ROPE_NTK) f /= (float)pow(r->rope.factor, 2.0 / (double)r->width);
  return f;
}

static void fill_row(const rotation *r, double theta, size_t position, float *row) {
  size_t half = r->width / 2;
  for (size_t i = 0; i < half; i++) {
    float angle = (float)position * frequency(r, theta, i);
    row[i] = (float)cos((double)angle);
    row[half + i] = (float)sin((double)angle);
  }
}

const float *rotation_row(const rotation *r, size_t tokens, size_t position, float *room) {
  int as_trained = r->rope.scaling != ROPE_DYNAMIC || tokens <= (size_t)r->rope.trained;
  if (as_trained && position < r->rows) return r->table + position * r->width;
  fill_row(r, theta_of(r, tokens), position, room);
  return room;
}

static bert_status check_width(const rotation *r, bert_error *error) {
  if (r->width % 2 != 0)
    return error_set(error, BERT_UNSUPPORTED,
                     "heads are %zu wide; rotary positions need an even width", r->width);
  if (r->rope.scaling == ROPE_DYNAMIC && r->width < 4)
    return error_set(error, BERT_UNSUPPORTED,
                     "heads are 2 wide; a dynamic rotary scaling needs 4 or more");
  return BERT_OK;
}

bert_status rotation_make(encoder_weights *w, const rope_config *rope, int positions,
                          rotation **out, bert_error *error) {
  if (rope->theta == 0) return BERT_OK;
  rotation *r = memory_zero(sizeof *r);
  if (r == NULL) return error_nomem(error, "making rotary positions");
  *out = r;
  r->rope = *rope;
  r->width = (size_t)w->head_width;
  bert_status status = check_width(r, error);
  if (status != BERT_OK) return status;
  r->rows = TABLE_FLOATS / r->width;
  if (r->rows > (size_t)positions) r->rows = (size_t)positions;
  float *table = weights_block(w, r->rows * r->width); /* [rows, width] */
  if (table == NULL) return error_nomem(error, "making rotary positions");
  double theta = theta_of(r, 1);
  for (size_t i = 0; i < r->rows; i++) fill_row(r, theta, i, table + i * r->width);
  r->table = table;
  return BERT_OK;
}

void rotation_free(rotation *r) {
  memory_free(r);
}

/* ---- Biases by distance --------------------------------------------------- */

/* The bucket for a key `distance` behind its query: half of them for each side; in
** each, one for every short distance and wider ones up to 128. */
static size_t bucket(long distance) {
  enum { SIDE = 16, EXACT = SIDE / 2, FARTHEST = 128 };
  size_t side = distance > 0 ? SIDE : 0;
  long away = distance > 0 ? distance : -distance;
  if (away < EXACT) return side + (size_t)away;
  float steps = logf((float)away / EXACT) / (float)log((double)FARTHEST / EXACT) * (SIDE - EXACT);
  size_t wide = EXACT + (size_t)steps;
  return side + (wide < SIDE ? wide : SIDE - 1);
}

bert_status bias_from_buckets(encoder_weights *w, const float *values, int positions,
                              bert_error *error) {
  size_t heads = (size_t)w->heads, reach = (size_t)positions - 1, row = 2 * reach + 1;
  float *table = weights_block(w, memory_product(heads, row)); /* [heads, row] */
  if (table == NULL) return error_nomem(error, "making position biases");
  for (size_t i = 0; i < row; i++) {
    size_t at = bucket((long)i - (long)reach) * heads;
    for (size_t head = 0; head < heads; head++) table[head * row + i] = values[at + head];
  }
  w->bias = (score_bias){table, NULL, reach};
  return BERT_OK;
}

/* The slope of head `i` of `heads`, a power of 2: a geometric series that ends with
** 2^-8. */
static double slope_of(int i, int heads) {
  return pow(2, -8.0 * (i + 1) / heads);
}

/* Other numbers of heads take those of the power of 2 below and then every second
** one of the power above. */
static void fill_slopes(float *slopes, int heads) {
  int power = 1;
  while (2 * power <= heads) power *= 2;
  for (int i = 0; i < heads; i++)
    slopes[i] = (float)(i < power ? slope_of(i, power) : slope_of(2 * (i - power), 2 * power));
}

bert_status bias_from_slopes(encoder_weights *w, int positions, bert_error *error) {
  size_t reach = (size_t)positions - 1, row = 2 * reach + 1;
  float *table = weights_block(w, row), *slopes = weights_block(w, (uint64_t)w->heads);
  if (table == NULL || slopes == NULL) return error_nomem(error, "making position biases");
  for (size_t i = 0; i < row; i++) table[i] = -(float)(i < reach ? reach - i : i - reach);
  fill_slopes(slopes, w->heads);
  w->bias = (score_bias){table, slopes, reach};
  return BERT_OK;
}

/* ---- Sinusoids -------------------------------------------------------------- */

bert_status sinusoidal_table(encoder_weights *w, bert_error *error) {
  size_t width = (size_t)w->embedding, rows = (size_t)w->positions;
  float *table = weights_block(w, memory_product(rows, width)); /* [rows, width] */
  if (table == NULL) return error_nomem(error, "making sinusoidal positions");
  for (size_t i = 0; i < rows * width; i++) {
    size_t position = i / width, j = i % width, even = j - j % 2;
    double angle = (double)position / pow(10000, (double)even / (double)width);
    table[i] = (float)(j % 2 == 0 ? sin(angle) : cos(angle));
  }
  w->position = table;
  return BERT_OK;
}
