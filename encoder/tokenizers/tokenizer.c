/*
** tokenizer.c: open and encode.
**
** Encoding pulls word after word out of the pipeline of pipeline.h, so that it
** can stop when the token limit is reached; the token lists are all that grows.
*/
#include "../files/files.h"
#include "pipeline.h"

#include <string.h>

/* ---- Open and describe ------------------------------------------------------ */

static bert_status load(tokenizer *t, const char *directory, int *steps, bert_error *error) {
  json_document *document = NULL;
  unsigned char digest[DIGEST_BYTES];
  bert_status status =
      file_read_json_digest(directory, "tokenizer.json", 1, JSON_OBJECT, &document, digest, error);
  if (status != BERT_OK) return status;
  digest_begin(&t->files);
  digest_add(&t->files, digest, sizeof digest);
  if (document == NULL) return load_vocab_txt(t, directory, steps, error);
  status = load_tokenizer_json(t, json_root(document), steps, error);
  json_free(document);
  return status == BERT_OK ? BERT_OK : error_prefix(error, "%s/tokenizer.json", directory);
}

bert_status tokenizer_open(const char *directory, int lowercase, tokenizer **out,
                           bert_error *error) {
  bert_error own;
  int steps = 0;
  bert_status status;
  tokenizer *t = memory_zero(sizeof *t);
  if (error == NULL) error = &own; /* error_prefix needs one */
  if (t == NULL) return error_nomem(error, "opening the tokenizer");
  status = load(t, directory, &steps, error);
  /* as sentence-transformers does it: in front of the model's own normalizer */
  if (lowercase) steps |= NORMALIZER_LOWER_FIRST;
  if (status == BERT_OK) status = normalizer_build(&t->normalizer, steps, error);
  if (status == BERT_OK && added_close(&t->added, &t->normalizer, error) != BERT_OK)
    status = error_prefix(error, "%s", directory);
  if (status != BERT_OK) {
    tokenizer_close(t);
    return status;
  }
  *out = t;
  return BERT_OK;
}

void tokenizer_close(tokenizer *t) {
  if (t == NULL) return;
  vocabulary_free(&t->vocabulary);
  added_free(&t->added);
  normalizer_free(&t->normalizer);
  postprocessor_free(&t->postprocessor);
  memory_free(t);
}

const char *tokenizer_kind(const tokenizer *t) {
  switch (t->model) {
  case MODEL_WORDPIECE: return "wordpiece";
  }
  return "";
}

void tokenizer_digest(const tokenizer *t, unsigned char out[DIGEST_BYTES]) {
  digest_end(&t->files, out);
}

static int highest(int so_far, const template *t, int types) {
  for (size_t i = 0; i < t->count; i++) {
    int number = types ? t->parts[i].type : t->parts[i].segment < 0 ? t->parts[i].id : -1;
    if (number > so_far) so_far = number;
  }
  return so_far;
}

int tokenizer_vocab_size(const tokenizer *t) {
  int id = t->vocabulary.entries[t->vocabulary.count - 1].id;
  if (t->added.next_id - 1 > id) id = (int)(t->added.next_id - 1);
  id = highest(id, &t->postprocessor.single, 0);
  return highest(id, &t->postprocessor.pair, 0) + 1;
}

int tokenizer_special_count(const tokenizer *t, int pair) {
  return (int)(pair ? t->postprocessor.pair.special : t->postprocessor.single.special);
}

int tokenizer_segments(const tokenizer *t) {
  return highest(highest(0, &t->postprocessor.single, 1), &t->postprocessor.pair, 1) + 1;
}

bert_text tokenizer_token(const tokenizer *t, int32_t id) {
  bert_text text = vocabulary_text(&t->vocabulary, id);
  for (size_t i = 0; i < t->added.count && text.data == NULL; i++)
    if (t->added.tokens[i].id == id) text = t->added.tokens[i].content;
  return text;
}

/* ---- One segment --------------------------------------------------------------- */

/* Scratch memory of one call. */
typedef struct scratch {
  word word;
  window window;
} scratch;

static int scratch_allocate(scratch *s, const tokenizer *t) {
  size_t limit = t->wordpiece.max_chars, ahead = t->added.normalized.longest + 4;
  *s = (scratch){0};
  s->word.limit = limit;
  s->word.bytes = memory_alloc(memory_product(limit, 4));
  s->word.starts = memory_alloc(memory_product(limit, sizeof *s->word.starts));
  s->word.stops = memory_alloc(memory_product(limit, sizeof *s->word.stops));
  s->word.ends = memory_alloc(memory_product(limit, sizeof *s->word.ends));
  s->window.added = &t->added;
  s->window.capacity = ahead;
  if (t->added.normalized.any)
    s->window.ahead = memory_alloc(memory_product(ahead, sizeof *s->window.ahead));
  return s->word.bytes != NULL && s->word.starts != NULL && s->word.stops != NULL &&
         s->word.ends != NULL && (!t->added.normalized.any || s->window.ahead != NULL);
}

static void scratch_free(scratch *s) {
  memory_free(s->word.bytes);
  memory_free(s->word.starts);
  memory_free(s->word.stops);
  memory_free(s->word.ends);
  memory_free(s->window.ahead);
}

/* The tokens of one segment. */
typedef struct segment {
  token_list list;
  int32_t words;
  size_t enough; /* more tokens than this are not asked for */
} segment;

/* Takes a word; 0 when out of memory. */
static int add_word(const tokenizer *t, const word *w, segment *s) {
  int32_t number = s->words < INT32_MAX ? s->words++ : s->words;
  if (w->added != NULL) return token_list_add(&s->list, w->added->id, number, w->start, w->stop);
  return wordpiece_tokenize(&t->wordpiece, &t->vocabulary.trie, w, number, &s->list);
}

static int has_enough(const segment *s) {
  return s->list.count > s->enough;
}

/* The words of the piece that begins at the scan's place. */
static int add_piece(const tokenizer *t, added_scan *scan, scratch *work, segment *s) {
  reader r;
  pretokenizer p = {.kind = t->pretokenizer, .reader = &r};
  reader_begin(&r, &t->normalizer, scan);
  if (t->added.normalized.any) {
    window_begin(&work->window, &r);
    p.window = &work->window;
  }
  while (!has_enough(s) && pretokenizer_next(&p, &work->word))
    if (!add_word(t, &work->word, s)) return 0;
  return 1;
}

/* All tokens of a text, or as many as are asked for; 0 when out of memory. */
static int add_segment(const tokenizer *t, bert_text text, scratch *work, segment *s) {
  added_scan scan;
  added_scan_begin(&scan, &t->added, text);
  for (;;) {
    if (!add_piece(t, &scan, work, s)) return 0;
    if (has_enough(s) || scan.match == NULL) return 1;
    work->word.added = scan.match;
    work->word.start = scan.start;
    work->word.stop = scan.stop;
    if (!add_word(t, &work->word, s)) return 0;
    added_scan_next(&scan);
  }
}

/* ---- Truncation and result -------------------------------------------------------- */

/* How many tokens of two segments are used, `room` being for both: the longer
** is cut first, and two that are cut share evenly, the longer (or the second,
** of equals) having one more if room is odd. */
static void share(size_t room, size_t a, size_t b, size_t *use_a, size_t *use_b) {
  size_t shorter = a > b ? b : a, longer = a > b ? a : b;
  if (a + b > room) {
    longer = shorter > room ? shorter : shorter > room - shorter ? shorter : room - shorter;
    if (shorter + longer > room) {
      shorter = room / 2;
      longer = shorter + room % 2;
    }
  }
  *use_a = a > b ? longer : shorter;
  *use_b = a > b ? shorter : longer;
}

/* A result of `count` tokens in one block. */
static bert_tokens *allocate_tokens(size_t count) {
  uint64_t each = 2 * sizeof(size_t) + 3 * sizeof(int32_t) + 3;
  uint64_t bytes = memory_product(count, each);
  bert_tokens *out = bytes == UINT64_MAX ? NULL : memory_alloc(sizeof *out + bytes);
  if (out == NULL) return NULL;
  *out = (bert_tokens){.count = count};
  out->starts = (size_t *)(void *)(out + 1);
  out->stops = out->starts + count;
  out->ids = (int32_t *)(void *)(out->stops + count);
  out->types = out->ids + count;
  out->words = out->types + count;
  out->segments = (int8_t *)(out->words + count);
  out->special = (uint8_t *)(out->segments + count);
  out->used = out->special + count;
  return out;
}

static void put_special(bert_tokens *out, size_t at, const template_part *part) {
  out->ids[at] = part->id;
  out->types[at] = part->type;
  out->starts[at] = out->stops[at] = 0;
  out->words[at] = -1;
  out->segments[at] = -1;
  out->special[at] = out->used[at] = 1;
}

/* Writes `count` tokens of a segment, the first `use` of them used. */
static void put_segment(bert_tokens *out, size_t at, const template_part *part, const segment *s,
                        size_t count, size_t use) {
  for (size_t i = 0; i < count; i++, at++) {
    const found_token *token = &s->list.items[i];
    out->ids[at] = token->id;
    out->types[at] = part->type;
    out->starts[at] = token->start;
    out->stops[at] = token->stop;
    out->words[at] = token->number;
    out->segments[at] = (int8_t)part->segment;
    out->special[at] = 0;
    out->used[at] = i < use;
  }
}

/* Puts segments and special tokens together; NULL when out of memory. */
static bert_tokens *assemble(const template *t, const segment *segments, const size_t *use,
                             int only_used) {
  size_t counts[2], at = 0;
  bert_tokens *out;
  for (int i = 0; i < 2; i++) counts[i] = only_used ? use[i] : segments[i].list.count;
  out = allocate_tokens(t->special + counts[0] + counts[1]);
  if (out == NULL) return NULL;
  for (size_t i = 0; i < t->count; i++) {
    const template_part *part = &t->parts[i];
    if (part->segment < 0) {
      put_special(out, at++, part);
    } else {
      put_segment(out, at, part, &segments[part->segment], counts[part->segment],
                  use[part->segment]);
      at += counts[part->segment];
    }
  }
  out->used_count = t->special + use[0] + use[1];
  for (int i = 0; i < 2; i++) out->truncated |= segments[i].list.count > use[i];
  return out;
}

/* The number of tokens up to which two segments are compared for length. It
** decides only who has the odd token when both are cut; beyond it they count as
** equal, so that this does not take reading two long texts to their ends. */
static size_t compared_length(size_t limit) {
  return limit > SIZE_MAX / 32 ? SIZE_MAX : limit * 16 + 1024;
}

/* Sets use[2]: how many tokens of each segment go into `room`. */
static void cut(const segment *segments, int pair, size_t limit, size_t room, size_t *use) {
  size_t most = compared_length(limit), lengths[2];
  for (int i = 0; i < 2; i++) {
    lengths[i] = segments[i].list.count;
    if (lengths[i] > most) lengths[i] = most;
  }
  if (pair) {
    share(room, lengths[0], lengths[1], &use[0], &use[1]);
  } else {
    use[0] = segments[0].list.count > room ? room : segments[0].list.count;
    use[1] = 0;
  }
}

bert_status tokenizer_encode(const tokenizer *t, bert_text text, const bert_text *text_b,
                             size_t limit, int only_used, bert_tokens **tokens, bert_error *error) {
  /* an empty second text is none, as transformers has it */
  if (text_b != NULL && text_b->size == 0) text_b = NULL;
  const template *form = text_b == NULL ? &t->postprocessor.single : &t->postprocessor.pair;
  segment segments[2] = {0};
  size_t room, use[2];
  scratch work;
  int done;
  bert_tokens *out = NULL;
  if (limit < form->special)
    return error_set(error, BERT_ARGUMENT,
                     "the token limit is %zu; the special tokens alone are %zu", limit,
                     form->special);
  room = limit - form->special;
  segments[0].enough = segments[1].enough = !only_used ? SIZE_MAX
                                            : text_b != NULL && room % 2 == 1
                                                ? compared_length(limit)
                                                : room;
  done = scratch_allocate(&work, t) && add_segment(t, text, &work, &segments[0]) &&
         (text_b == NULL || add_segment(t, *text_b, &work, &segments[1]));
  if (done) {
    cut(segments, text_b != NULL, limit, room, use);
    out = assemble(form, segments, use, only_used);
  }
  scratch_free(&work);
  memory_free(segments[0].list.items);
  memory_free(segments[1].list.items);
  if (out == NULL) return error_nomem(error, "tokenizing");
  *tokens = out;
  return BERT_OK;
}

void tokens_free(bert_tokens *tokens) {
  memory_free(tokens);
}
