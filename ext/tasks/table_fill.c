/*
** table_fill.c: bert_fill(text [, options]), what the model would put in the place
** of each mask token of a text.
**
** The masks are filled one by one, each with the others still in their places, as
** transformers' fill-mask pipeline does. The logits of a mask are as many as the
** vocabulary has tokens, so they are made when its first row is reached.
*/
#include "tasks.h"

#include <string.h>

enum { FILL_MASK, FILL_ID, FILL_TOKEN, FILL_SCORE, FILL_TEXT, FILL_TRUNCATED };

enum { ARGUMENT_TEXT, ARGUMENT_OPTIONS };

enum { TOP_K = 5 };

typedef struct fill_cursor {
  tokenized source;
  options *parsed;
  const bert_head *head;
  bert_pass *pass;
  size_t *masks; /* [mask_count], tokens */
  size_t mask, mask_count;
  float *scores; /* [head->width], of the mask */
  int32_t *best; /* [top_k], the ids with the highest scores in order */
  size_t rank, top_k;
} fill_cursor;

typedef struct fill_options {
  text_options source;
  int top_k;
} fill_options;

static const option_spec fill_specs[] = {
    TEXT_OPTIONS, {"top_k", OPTION_INT, offsetof(fill_options, top_k), 1, INT_MAX, NULL}};

static void fill_clear(void *cursor) {
  fill_cursor *f = cursor;
  bert_pass_free(f->pass);
  tokenized_clear(&f->source);
  sqlite3_free(f->masks);
  sqlite3_free(f->scores);
  sqlite3_free(f->best);
  options_free(f->parsed);
  memset(f, 0, sizeof *f);
}

/* ---- The highest of many ------------------------------------------------------------ */

/* Whether id a comes behind id b. */
static int is_worse(const float *scores, int32_t a, int32_t b) {
  if (scores[a] < scores[b]) return 1;
  return a > b && scores[a] <= scores[b];
}

/* Lets heap[at] sink to its place: the worst of heap[count] is heap[0]. */
static void sink(const float *scores, int32_t *heap, size_t count, size_t at) {
  for (;;) {
    size_t worst = at, child = 2 * at + 1;
    for (size_t i = child; i < child + 2 && i < count; i++)
      if (is_worse(scores, heap[i], heap[worst])) worst = i;
    if (worst == at) return;
    int32_t id = heap[at];
    heap[at] = heap[worst];
    heap[worst] = id;
    at = worst;
  }
}

/* The ids of the `top` highest of scores[width], highest first. */
static void find_best(const float *scores, size_t width, int32_t *best, size_t top) {
  for (size_t i = 0; i < top; i++) best[i] = (int32_t)i;
  for (size_t i = top / 2; i-- > 0;) sink(scores, best, top, i);
  for (size_t i = top; i < width; i++) {
    if (!is_worse(scores, best[0], (int32_t)i)) continue;
    best[0] = (int32_t)i;
    sink(scores, best, top, 0);
  }
  for (size_t left = top; left-- > 1;) {
    int32_t worst = best[0];
    best[0] = best[left];
    best[left] = worst;
    sink(scores, best, left, 0);
  }
}

/* Comes to the first row of a mask. The order is that of logits: small scores are
** more often equal. */
static bert_status fill_mask(fill_cursor *f, bert_error *error) {
  size_t width = (size_t)f->head->width;
  f->rank = 0;
  if (f->mask >= f->mask_count) return BERT_OK;
  bert_status status =
      bert_pass_logits(f->pass, BERT_HEAD_FILL, &f->masks[f->mask], 1, f->scores, error);
  if (status != BERT_OK) return status;
  find_best(f->scores, width, f->best, f->top_k);
  bert_scores(BERT_SCORE_SOFTMAX, f->scores, width, f->scores);
  return BERT_OK;
}

/* ---- Starting ----------------------------------------------------------------------- */

static bert_status no_mask(const fill_cursor *f, bert_error *error) {
  bert_text mask =
      bert_token_string(f->source.model->model, bert_mask_token(f->source.model->model));
  int size = mask.size < 60 ? (int)mask.size : 60;
  if (f->source.tokens->truncated)
    return error_set(error, BERT_ARGUMENT,
                     "there is no mask token, which is %.*s in this model, among the first %zu "
                     "tokens, which are all that the model reads of the text",
                     size, mask.data, f->source.tokens->count);
  return error_set(error, BERT_ARGUMENT, "the text has no mask token, which is %.*s in this model",
                   size, mask.data);
}

static bert_status find_masks(fill_cursor *f, bert_error *error) {
  const bert_tokens *t = f->source.tokens;
  int32_t mask = bert_mask_token(f->source.model->model);
  f->masks = sqlite3_malloc64(sizeof *f->masks * (sqlite3_uint64)t->count + 1);
  if (f->masks == NULL) return error_nomem(error, "looking for mask tokens");
  for (size_t i = 0; i < t->count; i++)
    if (t->ids[i] == mask && !t->special[i]) f->masks[f->mask_count++] = i;
  return f->mask_count > 0 ? BERT_OK : no_mask(f, error);
}

static bert_status tokenize(fill_cursor *f, const table_call *call, const text_options *o,
                            bert_error *error) {
  loaded_model *m;
  bert_status status = task_find_model(call, o->model, BERT_HEAD_FILL, &m, &f->head, error);
  if (status != BERT_OK) return status;
  if (bert_mask_token(m->model) < 0)
    return error_set(error, BERT_ARGUMENT, "the tokenizer of the model \"%s\" has no mask token",
                     error_quote(m->name).text);
  status = tokenized_make(call, call->arguments[ARGUMENT_TEXT], o, 1, &f->source, error);
  return status == BERT_OK ? find_masks(f, error) : status;
}

static bert_status fill_start(void *cursor, const table_call *call, bert_error *error) {
  fill_cursor *f = cursor;
  fill_options o = {.top_k = TOP_K};
  bert_status status = options_parse("bert_fill", call->arguments[ARGUMENT_OPTIONS], fill_specs,
                                     sizeof fill_specs / sizeof *fill_specs, &o, &f->parsed, error);
  if (status == BERT_OK) status = tokenize(f, call, &o.source, error);
  if (status != BERT_OK) return status;
  f->top_k = (size_t)(o.top_k < f->head->width ? o.top_k : f->head->width);
  f->scores = sqlite3_malloc64(sizeof *f->scores * (sqlite3_uint64)f->head->width);
  f->best = sqlite3_malloc64(sizeof *f->best * f->top_k);
  if (f->scores == NULL || f->best == NULL) return error_nomem(error, "filling in mask tokens");
  status = bert_run(f->source.model->encoder, f->source.tokens, 0, &f->pass, error);
  return status == BERT_OK ? fill_mask(f, error) : status;
}

/* ---- Rows ---------------------------------------------------------------------------- */

static bert_status fill_next(void *cursor, bert_error *error) {
  fill_cursor *f = cursor;
  if (++f->rank < f->top_k) return BERT_OK;
  f->mask++;
  return fill_mask(f, error);
}

static int fill_at_end(const void *cursor) {
  const fill_cursor *f = cursor;
  return f->mask >= f->mask_count;
}

/* The token alone, or the text with it in the place of the mask. */
static size_t write_text(const fill_cursor *f, int32_t id, int alone, char *out, size_t room) {
  const bert_model *model = f->source.model->model;
  const bert_tokens *t = f->source.tokens;
  size_t mask = f->masks[f->mask];
  if (alone) return bert_token_text(model, id, out, room);
  return bert_replace_mask(model, f->source.texts[t->segments[mask] == 1], t->starts[mask],
                           t->stops[mask], id, out, room);
}

/* NULL for an id that only pads the vocabulary. */
static bert_status result_text(sqlite3_context *context, const fill_cursor *f, int32_t id,
                               int alone, bert_error *error) {
  if (bert_token_string(f->source.model->model, id).data == NULL) return BERT_OK;
  size_t size = write_text(f, id, alone, NULL, 0);
  char *text = sqlite3_malloc64(size + 1);
  if (text == NULL) return error_nomem(error, "filling in a text");
  write_text(f, id, alone, text, size);
  sqlite3_result_text64(context, text, size, sqlite3_free, SQLITE_UTF8);
  return BERT_OK;
}

static bert_status fill_column(void *cursor, sqlite3_context *context, int column,
                               bert_error *error) {
  const fill_cursor *f = cursor;
  int32_t id = f->best[f->rank];
  switch (column) {
  case FILL_MASK: sqlite3_result_int64(context, (sqlite3_int64)f->mask); break;
  case FILL_ID: sqlite3_result_int(context, id); break;
  case FILL_TOKEN: return result_text(context, f, id, 1, error);
  case FILL_SCORE: sqlite3_result_double(context, (double)f->scores[id]); break;
  case FILL_TEXT: return result_text(context, f, id, 0, error);
  case FILL_TRUNCATED: sqlite3_result_int(context, f->source.tokens->truncated); break;
  default: break;
  }
  return BERT_OK;
}

const table_function table_fill = {
    .name = "bert_fill",
    .columns = "mask INTEGER, id INTEGER, token TEXT, score REAL, text TEXT",
    .hidden = "truncated INTEGER",
    .arguments = "in_text, options",
    .usage = "needs a text with a mask token, as in bert_fill('time [MASK] like an arrow')",
    .required = 1,
    .flags = SQLITE_VTAB_INNOCUOUS,
    .rows = 5,
    .cursor_size = sizeof(fill_cursor),
    .start = fill_start,
    .next = fill_next,
    .at_end = fill_at_end,
    .column = fill_column,
    .clear = fill_clear,
};
