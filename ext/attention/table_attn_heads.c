/*
** table_attn_heads.c: attn_heads(text [, options]), one row of statistics for
** each head.
**
** A head is computed when one of its statistics is read; the norms of the value
** vectors, which cost a product with the output projection, only where the
** statement reads norm_mean.
*/
#include "attention.h"

#include <string.h>

enum {
  COLUMN_LAYER,
  COLUMN_HEAD,
  COLUMN_ENTROPY,
  COLUMN_ENTROPY_NORM,
  COLUMN_DIAG,
  COLUMN_PREV,
  COLUMN_NEXT,
  COLUMN_FIRST,
  COLUMN_SEP,
  COLUMN_PUNCT,
  COLUMN_MEAN_DISTANCE,
  COLUMN_SIGNED_DISTANCE,
  COLUMN_MAX_PROB,
  COLUMN_POSITIONAL,
  COLUMN_NORM_MEAN,
  COLUMN_COLLAPSED,
  COLUMN_LABEL,
  COLUMN_TRUNCATED
};
enum { ARGUMENT_TEXT, ARGUMENT_OPTIONS };
enum { LAYER, HEAD, AXES };

static const char function[] = "attn_heads";

typedef struct heads_cursor {
  inspection *seen;
  axis axes[AXES];
  float *weights;  /* [count, count] of the view; NULL until asked for */
  float *norms;    /* [tokens], then [count]: norms by token and by unit */
  int wants_norms; /* 1: the statement reads norm_mean */
  int summarized;  /* 1: `statistics` is of the present row */
  bert_head_statistics statistics;
} heads_cursor;

static void heads_clear(void *cursor) {
  heads_cursor *c = cursor;
  sqlite3_free(c->weights);
  sqlite3_free(c->norms);
  inspection_close(c->seen);
  memset(c, 0, sizeof *c);
}

static bert_status heads_start(void *cursor, const table_call *call, bert_error *error) {
  heads_cursor *c = cursor;
  table_options o = {inspection_defaults};
  bert_status status = inspection_for_table(function, call, ARGUMENT_OPTIONS, table_specs,
                                            table_specs_count, &o, &c->seen, error);
  if (status != BERT_OK) return status;
  c->wants_norms = (call->used >> COLUMN_NORM_MEAN & 1) != 0;
  axis_set(&c->axes[LAYER], (size_t)c->seen->layers, call->pushed[COLUMN_LAYER]);
  axis_set(&c->axes[HEAD], (size_t)c->seen->heads, call->pushed[COLUMN_HEAD]);
  axes_begin(c->axes, AXES);
  return BERT_OK;
}

static bert_status heads_next(void *cursor, bert_error *error) {
  heads_cursor *c = cursor;
  (void)error;
  c->summarized = 0;
  axes_next(c->axes, AXES);
  return BERT_OK;
}

static int heads_at_end(const void *cursor) {
  return axes_at_end(((const heads_cursor *)cursor)->axes);
}

static sqlite3_int64 heads_row(const void *cursor) {
  return axes_row(((const heads_cursor *)cursor)->axes, AXES);
}

/* ---- Statistics ---------------------------------------------------------- */

/* Room for one head; a view may have no units. */
static bert_status make_room(heads_cursor *c, bert_error *error) {
  sqlite3_uint64 count = c->seen->view->count, tokens = c->seen->view->tokens;
  if (c->weights == NULL) c->weights = sqlite3_malloc64((count * count + 1) * sizeof *c->weights);
  if (c->wants_norms && c->norms == NULL)
    c->norms = sqlite3_malloc64((tokens + count) * sizeof *c->norms);
  if (c->weights == NULL || (c->wants_norms && c->norms == NULL))
    return error_nomem(error, "summarizing heads");
  return BERT_OK;
}

static bert_status summarize(heads_cursor *c, bert_error *error) {
  const bert_view *view = c->seen->view;
  int layer = (int)c->axes[LAYER].at, head = (int)c->axes[HEAD].at;
  float *norms = NULL; /* [count] */
  if (c->summarized) return BERT_OK;
  bert_status status = make_room(c, error);
  if (status == BERT_OK) status = inspection_weights(c->seen, layer, head, c->weights, error);
  if (status == BERT_OK && c->wants_norms)
    status = bert_pass_value_norms(c->seen->pass, layer, head, c->norms, error);
  if (status != BERT_OK) return status;
  if (c->wants_norms) {
    norms = c->norms + view->tokens;
    bert_view_norms(view, c->norms, norms);
  }
  bert_head_summarize(view, c->weights, norms, &c->statistics);
  c->summarized = 1;
  return BERT_OK;
}

static double statistic(const bert_head_statistics *s, int column) {
  switch (column) {
  case COLUMN_ENTROPY: return s->entropy;
  case COLUMN_ENTROPY_NORM: return s->entropy_norm;
  case COLUMN_DIAG: return s->diag;
  case COLUMN_PREV: return s->prev;
  case COLUMN_NEXT: return s->next;
  case COLUMN_FIRST: return s->first;
  case COLUMN_SEP: return s->sep;
  case COLUMN_PUNCT: return s->punct;
  case COLUMN_MEAN_DISTANCE: return s->mean_distance;
  case COLUMN_SIGNED_DISTANCE: return s->signed_distance;
  case COLUMN_MAX_PROB: return s->max_prob;
  case COLUMN_POSITIONAL: return s->positional;
  default: return s->norm_mean;
  }
}

static bert_status heads_column(void *cursor, sqlite3_context *context, int column,
                                bert_error *error) {
  heads_cursor *c = cursor;
  bert_status status = BERT_OK;
  switch (column) {
  case COLUMN_LAYER: sqlite3_result_int64(context, (sqlite3_int64)c->axes[LAYER].at); break;
  case COLUMN_HEAD: sqlite3_result_int64(context, (sqlite3_int64)c->axes[HEAD].at); break;
  case COLUMN_TRUNCATED: sqlite3_result_int(context, c->seen->truncated); break;
  default:
    status = summarize(c, error);
    if (status != BERT_OK) break;
    if (column == COLUMN_LABEL)
      sqlite3_result_text(context, c->statistics.label, -1, SQLITE_STATIC);
    else if (column == COLUMN_COLLAPSED)
      sqlite3_result_int(context, c->statistics.collapsed);
    else
      sqlite3_result_double(context, statistic(&c->statistics, column));
  }
  return status;
}

const table_function table_attn_heads = {
    .name = function,
    .columns =
        "layer INTEGER, head INTEGER, entropy REAL, entropy_norm REAL, diag REAL, prev REAL, "
        "next REAL, first REAL, sep REAL, punct REAL, mean_distance REAL, "
        "signed_distance REAL, max_prob REAL, positional REAL, norm_mean REAL, "
        "collapsed INTEGER, label TEXT",
    .hidden = "truncated INTEGER",
    .arguments = "in_text, options",
    .usage = "needs a text, as in attn_heads('some text')",
    .required = 1,
    .flags = SQLITE_VTAB_INNOCUOUS,
    .pushable = 1u << COLUMN_LAYER | 1u << COLUMN_HEAD,
    .rows = 100,
    .cursor_size = sizeof(heads_cursor),
    .start = heads_start,
    .next = heads_next,
    .at_end = heads_at_end,
    .column = heads_column,
    .row = heads_row,
    .clear = heads_clear,
};
