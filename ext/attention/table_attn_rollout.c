/*
** table_attn_rollout.c: attn_rollout(text [, options]), attention followed
** through the layers (Abnar and Zuidema 2020).
**
** The rollout of a layer needs all layers before it, one matrix product each,
** so the cursor keeps that of the layer it is at and goes on from there. Words
** and special tokens are merged and left out at the end, not on the way: what
** flows through a special token is not lost.
*/
#include "attention.h"

#include <string.h>

enum {
  COLUMN_LAYER,
  COLUMN_Q_POS,
  COLUMN_Q_TOKEN,
  COLUMN_K_POS,
  COLUMN_K_TOKEN,
  COLUMN_WEIGHT,
  COLUMN_TRUNCATED
};
enum { ARGUMENT_TEXT, ARGUMENT_OPTIONS };
enum { LAYER, QUERY, KEY, AXES };

static const char function[] = "attn_rollout";

typedef struct rollout_cursor {
  inspection *seen;
  axis axes[AXES];
  label_cache labels;
  size_t layers;  /* that `rollout` goes through; 0: nothing is computed */
  float *rollout; /* [tokens, tokens] */
  float *other;   /* [tokens, tokens], the layer before while one is computed */
  float *weights; /* [count, count], `rollout` in units */
} rollout_cursor;

static void rollout_clear(void *cursor) {
  rollout_cursor *c = cursor;
  labels_clear(&c->labels);
  sqlite3_free(c->rollout);
  sqlite3_free(c->other);
  sqlite3_free(c->weights);
  inspection_close(c->seen);
  memset(c, 0, sizeof *c);
}

static bert_status rollout_start(void *cursor, const table_call *call, bert_error *error) {
  rollout_cursor *c = cursor;
  table_options o = {inspection_defaults};
  bert_status status = inspection_for_table(function, call, ARGUMENT_OPTIONS, table_specs,
                                            table_specs_count, &o, &c->seen, error);
  if (status != BERT_OK) return status;
  axis_set(&c->axes[LAYER], (size_t)c->seen->layers, call->pushed[COLUMN_LAYER]);
  axis_set(&c->axes[QUERY], c->seen->view->count, call->pushed[COLUMN_Q_POS]);
  axis_set(&c->axes[KEY], c->seen->view->count, call->pushed[COLUMN_K_POS]);
  axes_begin(c->axes, AXES);
  return BERT_OK;
}

static bert_status rollout_next(void *cursor, bert_error *error) {
  (void)error;
  axes_next(((rollout_cursor *)cursor)->axes, AXES);
  return BERT_OK;
}

static int rollout_at_end(const void *cursor) {
  return axes_at_end(((const rollout_cursor *)cursor)->axes);
}

static sqlite3_int64 rollout_row(const void *cursor) {
  return axes_row(((const rollout_cursor *)cursor)->axes, AXES);
}

static bert_status make_room(rollout_cursor *c, bert_error *error) {
  sqlite3_uint64 n = c->seen->view->tokens, count = c->seen->view->count;
  if (c->rollout == NULL) c->rollout = sqlite3_malloc64(n * n * sizeof *c->rollout);
  if (c->other == NULL) c->other = sqlite3_malloc64(n * n * sizeof *c->other);
  if (c->weights == NULL) c->weights = sqlite3_malloc64(count * count * sizeof *c->weights);
  if (c->rollout != NULL && c->other != NULL && c->weights != NULL) return BERT_OK;
  return error_nomem(error, "computing attention rollout");
}

/* Goes through layers up to that of the present row. */
static bert_status follow(rollout_cursor *c, bert_error *error) {
  if (c->layers == c->axes[LAYER].at + 1) return BERT_OK;
  bert_status status = make_room(c, error);
  while (status == BERT_OK && c->layers <= c->axes[LAYER].at) {
    float *before = c->rollout;
    status = bert_pass_rollout_step(c->seen->pass, (int)c->layers, c->seen->temperature,
                                    c->layers > 0 ? before : NULL, c->other, error);
    if (status != BERT_OK) return status;
    c->rollout = c->other;
    c->other = before;
    c->layers++;
  }
  if (status == BERT_OK) bert_view_apply(c->seen->view, c->rollout, c->weights);
  return status;
}

static bert_status result_weight(sqlite3_context *context, rollout_cursor *c, bert_error *error) {
  bert_status status = follow(c, error);
  size_t cell = c->axes[QUERY].at * c->seen->view->count + c->axes[KEY].at;
  if (status == BERT_OK) sqlite3_result_double(context, (double)c->weights[cell]);
  return status;
}

static bert_status rollout_column(void *cursor, sqlite3_context *context, int column,
                                  bert_error *error) {
  rollout_cursor *c = cursor;
  switch (column) {
  case COLUMN_LAYER: sqlite3_result_int64(context, (sqlite3_int64)c->axes[LAYER].at); break;
  case COLUMN_Q_POS: sqlite3_result_int64(context, (sqlite3_int64)c->axes[QUERY].at); break;
  case COLUMN_K_POS: sqlite3_result_int64(context, (sqlite3_int64)c->axes[KEY].at); break;
  case COLUMN_Q_TOKEN: return label_result(context, &c->labels, c->seen, c->axes[QUERY].at, error);
  case COLUMN_K_TOKEN: return label_result(context, &c->labels, c->seen, c->axes[KEY].at, error);
  case COLUMN_WEIGHT: return result_weight(context, c, error);
  case COLUMN_TRUNCATED: sqlite3_result_int(context, c->seen->truncated); break;
  default: break;
  }
  return BERT_OK;
}

const table_function table_attn_rollout = {
    .name = function,
    .columns = "layer INTEGER, q_pos INTEGER, q_token TEXT, k_pos INTEGER, k_token TEXT, "
               "weight REAL",
    .hidden = "truncated INTEGER",
    .arguments = "in_text, options",
    .usage = "needs a text, as in attn_rollout('some text')",
    .required = 1,
    .flags = SQLITE_VTAB_INNOCUOUS,
    .pushable = 1u << COLUMN_LAYER | 1u << COLUMN_Q_POS | 1u << COLUMN_K_POS,
    .rows = 10000,
    .cursor_size = sizeof(rollout_cursor),
    .start = rollout_start,
    .next = rollout_next,
    .at_end = rollout_at_end,
    .column = rollout_column,
    .row = rollout_row,
    .clear = rollout_clear,
};
