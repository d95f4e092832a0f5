/*
** split.c: chunks of a long text, as a window that slides over its tokens.
**
** Every chunk is tokenized once more by itself, because a piece that begins
** inside a word reads differently there: its count is what the model will see.
*/
#include "model.h"

/* The text's own tokens, without the special ones around them. */
typedef struct splitter {
  const bert_model *model;
  bert_text text;
  const bert_tokens *all;
  size_t first, last; /* tokens [first, last) of `all` are the text's own */
  size_t room;        /* own tokens a chunk may have */
  size_t overlap;
  bert_chunk *chunks; /* [count] */
  size_t count, capacity;
} splitter;

/* Whether a word begins at token `i`, which is not the first. */
static int begins_word(const splitter *s, size_t i) {
  return s->all->words[i] != s->all->words[i - 1];
}

/* Where a chunk that begins at token `from` ends at the latest: at the end of
** a word if it holds one whole. */
static size_t window_end(const splitter *s, size_t from) {
  size_t to = s->last - from < s->room ? s->last : from + s->room;
  if (to == s->last) return to;
  for (size_t end = to; end > from; end--)
    if (begins_word(s, end)) return end;
  return to;
}

/* Where the chunk after [from, to) begins: at the start of a word no more than
** `overlap` tokens back, and always past `from`. */
static size_t next_start(const splitter *s, size_t from, size_t to) {
  size_t start = to > from + s->overlap ? to - s->overlap : from + 1;
  size_t word = start;
  while (word < to && !begins_word(s, word)) word++;
  /* A cut inside a word has no word start behind it; the overlap then begins
  ** inside the word too. */
  return word < to || begins_word(s, to) ? word : start;
}

static bert_status count_tokens(const splitter *s, const bert_chunk *chunk, size_t *count,
                                bert_error *error) {
  bert_text piece = {s->text.data + chunk->start, chunk->stop - chunk->start};
  bert_tokens *tokens;
  bert_status status = bert_tokenize(s->model, piece, NULL, NULL, &tokens, error);
  if (status != BERT_OK) return status;
  *count = tokens->count;
  bert_tokens_free(tokens);
  return BERT_OK;
}

/* Fills *chunk with tokens [from, *to), giving up tokens at the end while the
** piece by itself has more than there is room for. One token always stays. */
static bert_status fit_chunk(const splitter *s, size_t from, size_t *to, bert_chunk *chunk,
                             bert_error *error) {
  size_t special = s->all->count - (s->last - s->first);
  for (;;) {
    size_t count;
    chunk->start = s->all->starts[from];
    chunk->stop = s->all->stops[*to - 1];
    bert_status status = count_tokens(s, chunk, &count, error);
    if (status != BERT_OK) return status;
    chunk->tokens = (int)count;
    if (count <= s->room + special || *to == from + 1) return BERT_OK;
    size_t excess = count - s->room - special;
    *to = *to - from > excess ? *to - excess : from + 1;
  }
}

static bert_status append(splitter *s, const bert_chunk *chunk, bert_error *error) {
  if (!memory_grow((void **)&s->chunks, s->count, &s->capacity, sizeof *s->chunks))
    return error_nomem(error, "splitting a text");
  s->chunks[s->count++] = *chunk;
  return BERT_OK;
}

static bert_status slide(splitter *s, bert_error *error) {
  size_t from = s->first;
  for (;;) {
    bert_chunk chunk;
    size_t to = window_end(s, from);
    bert_status status = fit_chunk(s, from, &to, &chunk, error);
    if (status == BERT_OK) status = append(s, &chunk, error);
    if (status != BERT_OK || to == s->last) return status;
    from = next_start(s, from, to);
  }
}

static bert_status split_tokens(splitter *s, bert_error *error) {
  const bert_tokens *all = s->all;
  s->last = all->count;
  while (s->first < s->last && all->special[s->first]) s->first++;
  while (s->last > s->first && all->special[s->last - 1]) s->last--;
  if (s->first < s->last) return slide(s, error);
  bert_chunk empty = {0, 0, (int)all->count};
  return append(s, &empty, error);
}

static bert_status check_sizes(const bert_model *model, int max_tokens, int overlap,
                               bert_error *error) {
  int special = tokenizer_special_count(model->tokenizer, 0);
  int positions = model->description.max_positions;
  if (max_tokens <= special || max_tokens > positions)
    return error_set(error, BERT_ARGUMENT, "max_tokens is %d, but must be from %d to %d",
                     max_tokens, special + 1, positions);
  if (overlap < 0 || overlap >= max_tokens - special)
    return error_set(error, BERT_ARGUMENT, "overlap is %d, but must be from 0 to %d", overlap,
                     max_tokens - special - 1);
  return BERT_OK;
}

bert_status bert_split(const bert_model *model, bert_text text, int max_tokens, int overlap,
                       bert_chunk **chunks, size_t *count, bert_error *error) {
  bert_tokens *all = NULL;
  bert_status status = check_sizes(model, max_tokens, overlap, error);
  if (status == BERT_OK) status = bert_tokenize(model, text, NULL, NULL, &all, error);
  if (status != BERT_OK) return status;
  int special = tokenizer_special_count(model->tokenizer, 0);
  splitter s = {.model = model,
                .text = text,
                .all = all,
                .room = (size_t)(max_tokens - special),
                .overlap = (size_t)overlap};
  status = split_tokens(&s, error);
  bert_tokens_free(all);
  if (status != BERT_OK) {
    memory_free(s.chunks);
    return status;
  }
  *chunks = s.chunks;
  *count = s.count;
  return BERT_OK;
}

void bert_chunks_free(bert_chunk *chunks) {
  memory_free(chunks);
}
