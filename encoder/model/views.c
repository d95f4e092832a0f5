/*
** views.c: tokens to the units that the rows and columns of attention matrices
** stand for, and what each unit is. analysis/units.c puts weights into them.
*/
#include "model.h"

/* The used tokens, in order: a pair that was cut has unused ones in between. */
typedef struct used_tokens {
  const bert_model *model;
  const bert_tokens *tokens;
  size_t count;
  size_t *at; /* [count] numbers in `tokens` */
} used_tokens;

static void find_used(used_tokens *u) {
  size_t found = 0;
  for (size_t i = 0; i < u->tokens->count && found < u->count; i++)
    if (u->tokens->used[i]) u->at[found++] = i;
  u->count = found;
}

/* Separators are what the post-processor adds behind the first token, and the
** same token written out in the text. */
static int is_separator(const used_tokens *u, size_t token) {
  const bert_tokens *t = u->tokens;
  for (size_t i = 1; i < u->count; i++)
    if (t->special[u->at[i]] && t->ids[u->at[i]] == t->ids[u->at[token]]) return 1;
  return 0;
}

static int is_punctuation(const used_tokens *u, size_t token) {
  size_t i = u->at[token];
  bert_text string = bert_token_string(u->model, u->tokens->ids[i]);
  if (u->tokens->special[i] || string.size == 0) return 0;
  for (size_t at = 0; at < string.size;)
    if (!unicode_is_punctuation(unicode_next(string.data, string.size, &at))) return 0;
  return 1;
}

/* Whether a used token goes on with the word of the one before it. */
static int same_word(const used_tokens *u, size_t token) {
  const bert_tokens *t = u->tokens;
  size_t before = u->at[token - 1], i = u->at[token];
  return !t->special[before] && !t->special[i] && t->words[before] == t->words[i] &&
         t->segments[before] == t->segments[i];
}

/* The unit of used tokens [first, last). */
static bert_unit make_unit(const used_tokens *u, size_t first, size_t last) {
  const bert_tokens *t = u->tokens;
  size_t i = u->at[first];
  bert_unit unit = {.first = first, .last = last, .separator = 1, .punctuation = 1};
  unit.start = t->starts[i];
  unit.stop = t->stops[u->at[last - 1]];
  unit.segment = t->segments[i];
  unit.special = t->special[i];
  for (size_t token = first; token < last; token++) {
    unit.separator = unit.separator && is_separator(u, token);
    unit.punctuation = unit.punctuation && is_punctuation(u, token);
  }
  return unit;
}

static void fill_view(bert_view *view, const used_tokens *u, const bert_view_options *o) {
  int skipped = 0;
  view->tokens = u->count;
  for (size_t first = 0, last; first < u->count; first = last) {
    last = first + 1;
    while (o->words && last < u->count && same_word(u, last)) last++;
    if (o->no_special && u->tokens->special[u->at[first]])
      skipped = 1;
    else
      view->units[view->count++] = make_unit(u, first, last);
  }
  view->renormalize = o->renormalize && skipped;
}

bert_status bert_view_make(const bert_model *model, const bert_tokens *tokens,
                           const bert_view_options *options, bert_view **view, bert_error *error) {
  const bert_view_options none = {0, 0, 0};
  uint64_t n = tokens->used_count;
  used_tokens u = {model, tokens, tokens->used_count,
                   memory_alloc(memory_product(n, sizeof *u.at))};
  bert_view *v = memory_zero(sizeof *v);
  if (v != NULL) v->units = memory_alloc(memory_product(n, sizeof *v->units));
  if (u.at == NULL || v == NULL || v->units == NULL) {
    memory_free(u.at);
    bert_view_free(v);
    return error_nomem(error, "making the units of attention");
  }
  find_used(&u);
  fill_view(v, &u, options != NULL ? options : &none);
  memory_free(u.at);
  *view = v;
  return BERT_OK;
}

void bert_view_free(bert_view *view) {
  if (view == NULL) return;
  memory_free(view->units);
  memory_free(view);
}
