/*
** entity_windows.c: a label for each token of a text of any length.
**
** A text of more tokens than the model takes is read in windows. Neighbours overlap
** by a quarter, and in the middle of what they share, where both have seen as much
** around a token, the later one takes over; it does so at the beginning of a word, so
** that the pieces of a word are labelled together. The labels are thus one sequence
** and are grouped as those of a short text are: an entity may reach from one window
** into the next, and none is found twice.
*/
#include "tasks.h"

#include <string.h>

/* Tokens whose logits are computed together: whole tiles for the kernels, and no
** memory that grows with the window. */
enum { AT_ONCE = 64 };

/* Windows over the tokens of a text, and the one that is run. */
typedef struct windows {
  const tokenized *source;
  const bert_head *head;
  size_t first, count; /* the text's own among all tokens */
  size_t room;         /* tokens of the text in a window */
  bert_tokens tokens;  /* of the window, special ones included */
  float *logits;       /* [AT_ONCE, head->width] */
} windows;

/* ---- One window ----------------------------------------------------------------- */

/* What the tokens of a window need: [limit] each, in one block. */
static int windows_allocate(windows *w, size_t limit) {
  char *block = sqlite3_malloc64(limit * (2 * sizeof(int32_t) + 1));
  if (block == NULL) return 0;
  w->tokens.ids = (int32_t *)(void *)block;
  w->tokens.types = w->tokens.ids + limit;
  w->tokens.used = (uint8_t *)(w->tokens.types + limit);
  memset(w->tokens.used, 1, limit);
  w->logits = sqlite3_malloc64(sizeof *w->logits * AT_ONCE * (sqlite3_uint64)w->head->width);
  return w->logits != NULL;
}

static void windows_free(windows *w) {
  sqlite3_free(w->tokens.ids);
  sqlite3_free(w->logits);
}

/* Adds tokens [from, to) of the source to the window. */
static void add_tokens(windows *w, size_t from, size_t to) {
  const bert_tokens *all = w->source->tokens;
  bert_tokens *t = &w->tokens;
  memcpy(t->ids + t->count, all->ids + from, (to - from) * sizeof *t->ids);
  memcpy(t->types + t->count, all->types + from, (to - from) * sizeof *t->types);
  t->count += to - from;
  t->used_count = t->count;
}

/* The best label by logits[width], of equal ones the first; makes scores of them. */
static void label_token(float *logits, size_t width, int32_t *label, float *score) {
  size_t best = 0;
  for (size_t i = 1; i < width; i++)
    if (logits[i] > logits[best]) best = i;
  bert_scores(BERT_SCORE_SOFTMAX, logits, width, logits);
  *label = (int32_t)best;
  *score = logits[best];
}

/* Labels `count` of the text's tokens from `from` on, at most AT_ONCE, in the window
** that begins with `start`. */
static bert_status label_some(windows *w, const bert_pass *pass, size_t start, size_t from,
                              size_t count, token_labels *out, bert_error *error) {
  size_t which[AT_ONCE], width = (size_t)w->head->width;
  for (size_t i = 0; i < count; i++) which[i] = w->first + from + i - start;
  bert_status status = bert_pass_logits(pass, BERT_HEAD_ENTITIES, which, count, w->logits, error);
  for (size_t i = 0; i < count && status == BERT_OK; i++)
    label_token(w->logits + i * width, width, &out->labels[from + i], &out->scores[from + i]);
  return status;
}

/* Runs the window of the text's tokens [start, stop), and labels [from, to). */
static bert_status run_window(windows *w, size_t start, size_t stop, size_t from, size_t to,
                              token_labels *out, bert_error *error) {
  bert_pass *pass = NULL;
  w->tokens.count = 0;
  add_tokens(w, 0, w->first);
  add_tokens(w, w->first + start, w->first + stop);
  add_tokens(w, w->first + w->count, w->source->tokens->count);
  bert_status status = bert_run(w->source->model->encoder, &w->tokens, 0, &pass, error);
  for (size_t i = from; i < to && status == BERT_OK; i += AT_ONCE)
    status = label_some(w, pass, start, i, to - i < AT_ONCE ? to - i : AT_ONCE, out, error);
  bert_pass_free(pass);
  return status;
}

/* ---- All of them ------------------------------------------------------------------ */

/* Where in [from, to), which two windows share, the later one takes over. */
static size_t parting(const windows *w, size_t from, size_t to) {
  const int32_t *words = w->source->tokens->words + w->first;
  size_t middle = from + (to - from) / 2;
  for (size_t i = middle; i > 0 && i < to; i++)
    if (words[i] != words[i - 1]) return i;
  return middle;
}

static bert_status run_windows(windows *w, token_labels *out, bert_error *error) {
  size_t step = w->room - w->room / 4, done = 0;
  bert_status status = BERT_OK;
  for (size_t start = 0; done < w->count && status == BERT_OK;) {
    size_t stop = start + w->room, next = start + step, to = w->count;
    if (stop >= w->count) {
      stop = w->count;
    } else {
      /* The last window is a full one. */
      if (next + w->room > w->count) next = w->count - w->room;
      to = parting(w, next, stop);
    }
    status = run_window(w, start, stop, done, to, out, error);
    done = to;
    start = next;
  }
  return status;
}

/* Special tokens stand before and behind those of the text. */
static void find_text(const bert_tokens *t, size_t *first, size_t *count) {
  size_t stop = t->count;
  *first = 0;
  while (*first < stop && t->special[*first]) ++*first;
  while (stop > *first && t->special[stop - 1]) stop--;
  *count = stop - *first;
}

bert_status token_labels_make(const tokenized *source, const bert_head *head, size_t limit,
                              token_labels *out, bert_error *error) {
  windows w = {.source = source, .head = head};
  size_t special;
  bert_status status;
  find_text(source->tokens, &w.first, &w.count);
  special = source->tokens->count - w.count;
  if (limit <= special)
    return error_set(error, BERT_ARGUMENT,
                     "max_tokens is %zu, which leaves no room for a token of the text: the special "
                     "tokens are %zu",
                     limit, special);
  w.room = limit - special;
  out->first = w.first;
  out->count = w.count;
  out->labels = sqlite3_malloc64(sizeof *out->labels * (sqlite3_uint64)w.count + 1);
  out->scores = sqlite3_malloc64(sizeof *out->scores * (sqlite3_uint64)w.count + 1);
  if (out->labels != NULL && out->scores != NULL && windows_allocate(&w, limit))
    status = run_windows(&w, out, error);
  else
    status = error_nomem(error, "labelling tokens");
  windows_free(&w);
  return status;
}

void token_labels_clear(token_labels *t) {
  sqlite3_free(t->labels);
  sqlite3_free(t->scores);
  memset(t, 0, sizeof *t);
}
