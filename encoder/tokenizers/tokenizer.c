/*
** tokenizer.c: open and encode.
**
** Encoding pulls word after word out of the pipeline of pipeline.h, so that it
** can stop when the token limit is reached; the token lists are all that grows.
*/
#include "../files/files.h"
#include "load.h"

#include <string.h>

/* ---- Open and describe ------------------------------------------------------ */

bert_status load_json_file(tokenizer *t, const char *directory, const char *name,
                           json_document **document, bert_error *error) {
  unsigned char digest[DIGEST_BYTES];
  bert_status status =
      file_read_json_digest(directory, name, 1, JSON_OBJECT, document, digest, error);
  if (status == BERT_OK && *document != NULL) digest_add(&t->files, digest, sizeof digest);
  return status;
}

/* Of before tokenizer.json: vocab.txt is WordPiece, vocab.json byte-level BPE. */
static bert_status load_without_json(tokenizer *t, const char *directory, int *steps,
                                     bert_error *error) {
  json_document *document = NULL;
  bert_status status = load_json_file(t, directory, "vocab.json", &document, error);
  if (status != BERT_OK) return status;
  if (document == NULL) return load_vocab_txt(t, directory, steps, error);
  status = load_vocab_json(t, directory, json_root(document), error);
  json_free(document);
  return status;
}

static bert_status load(tokenizer *t, const char *directory, int *steps, bert_error *error) {
  json_document *document = NULL;
  bert_status status;
  digest_begin(&t->files);
  status = load_json_file(t, directory, "tokenizer.json", &document, error);
  if (status != BERT_OK) return status;
  if (document == NULL) {
    status = load_without_json(t, directory, steps, error);
    return status == BERT_OK ? load_config_settings(t, directory, NULL, steps, error) : status;
  }
  status = load_tokenizer_json(t, json_root(document), steps, error);
  if (status != BERT_OK)
    error_prefix(error, "%s/tokenizer.json", directory);
  else
    status = load_config_settings(t, directory, json_root(document), steps, error);
  json_free(document);
  return status;
}

/* What the steps of the chain need once all are there. */
static bert_status close_chain(tokenizer *t, int lowercase, bert_error *error) {
  if (lowercase && chain_lowercase_first(&t->chain, error) != BERT_OK) return error->status;
  for (size_t i = 0; i < t->chain.normalizers; i++)
    if (t->chain.steps[i].kind == STEP_NFC || t->chain.steps[i].kind == STEP_NFKC)
      return compositions_build(&t->chain.compositions, error);
  return BERT_OK;
}

/* An unknown token that is not in the vocabulary is no harm where every byte has a
** token, and the text reaches the model as bytes. */
static bert_status check_unknown(const tokenizer *t, bert_error *error) {
  const chain *c = &t->chain;
  int complete = c->count > 0 && c->steps[c->count - 1].kind == STEP_BYTES;
  if (t->model != MODEL_BPE || !t->bpe.lost_unknown) return BERT_OK;
  for (int byte = 0; byte < 256; byte++)
    if (t->bpe.direct[chain_byte_char((unsigned char)byte)] < 0) complete = 0;
  if (complete && t->bpe.prefix.size == 0 && t->bpe.suffix.size == 0) return BERT_OK;
  return error_set(error, BERT_INVALID, "the unknown token of the model is not in its vocabulary");
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
  if (status == BERT_OK && t->general)
    status = close_chain(t, lowercase, error);
  else if (status == BERT_OK)
    status = normalizer_build(&t->normalizer, steps, error);
  if (status == BERT_OK) status = check_unknown(t, error);
  if (status == BERT_OK) status = trim_build(&t->postprocessor, &t->vocabulary, error);
  if (status == BERT_OK &&
      added_close(&t->added, &t->normalizer, t->general ? &t->chain : NULL, error) != BERT_OK)
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
  chain_free(&t->chain);
  bpe_free(&t->bpe);
  unigram_free(&t->unigram);
  postprocessor_free(&t->postprocessor);
  memory_free(t);
}

const char *tokenizer_kind(const tokenizer *t) {
  switch (t->model) {
  case MODEL_WORDPIECE: return "wordpiece";
  case MODEL_BPE: return "bpe";
  case MODEL_UNIGRAM: return "unigram";
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

int32_t tokenizer_find(const tokenizer *t, bert_text text) {
  int32_t id = vocabulary_id(&t->vocabulary, text);
  return id >= 0 ? id : added_find(&t->added, text);
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

/* Trims the tokens from number `first` on. */
static void trim_tokens(const postprocessor *p, bert_text text, token_list *list, size_t first,
                        const margins *m) {
  size_t count = list->count;
  for (list->count = first + 1; list->count <= count; list->count++) trim_last(p, text, list, m);
  list->count = count;
}

/* Takes a word of `text`; 0 when out of memory. */
static int add_word(const tokenizer *t, bert_text text, const word *w, token_segment *s) {
  int32_t number = segment_word(s);
  size_t first = s->list.count;
  margins m;
  if (w->added == NULL) {
    if (!wordpiece_tokenize(&t->wordpiece, &t->vocabulary.trie, w, number, &s->list)) return 0;
    if (t->postprocessor.trims > 0) trim_tokens(&t->postprocessor, text, &s->list, first, NULL);
    return 1;
  }
  if (!token_list_add(&s->list, w->added->id, number, w->start, w->stop)) return 0;
  if (t->postprocessor.trims == 0) return 1;
  m = trim_margins(text.data + w->start, w->stop - w->start);
  trim_tokens(&t->postprocessor, text, &s->list, first, &m);
  return 1;
}

/* The words of the piece that begins at the scan's place. */
static int add_piece(const tokenizer *t, added_scan *scan, scratch *work, token_segment *s) {
  reader r;
  pretokenizer p = {.kind = t->pretokenizer, .reader = &r};
  reader_begin(&r, &t->normalizer, scan);
  if (t->added.normalized.any) {
    window_begin(&work->window, &r);
    p.window = &work->window;
  }
  while (!segment_has_enough(s) && pretokenizer_next(&p, &work->word))
    if (!add_word(t, scan->text, &work->word, s)) return 0;
  return 1;
}

/* All tokens of a text by the short path, or as many as are asked for; 0 when out of
** memory. */
static int add_short_segment(const tokenizer *t, bert_text text, scratch *work, token_segment *s) {
  added_scan scan;
  added_scan_begin(&scan, &t->added, text);
  for (;;) {
    if (!add_piece(t, &scan, work, s)) return 0;
    if (segment_has_enough(s) || scan.match == NULL) return 1;
    work->word.added = scan.match;
    work->word.start = scan.start;
    work->word.stop = scan.stop;
    if (!add_word(t, text, &work->word, s)) return 0;
    added_scan_next(&scan);
  }
}

/* The segments, by the path that the tokenizer takes. */
static int add_segments(const tokenizer *t, bert_text text, const bert_text *text_b,
                        token_segment *segments) {
  scratch work;
  int done;
  if (t->general)
    return general_add_segment(t, text, &segments[0]) &&
           (text_b == NULL || general_add_segment(t, *text_b, &segments[1]));
  done = scratch_allocate(&work, t) && add_short_segment(t, text, &work, &segments[0]) &&
         (text_b == NULL || add_short_segment(t, *text_b, &work, &segments[1]));
  scratch_free(&work);
  return done;
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
static void put_segment(bert_tokens *out, size_t at, const template_part *part,
                        const token_segment *s, size_t count, size_t use) {
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
static bert_tokens *assemble(const template *t, const token_segment *segments, const size_t *use,
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
static void cut(const token_segment *segments, int pair, size_t limit, size_t room, size_t *use) {
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
  const template *form = text_b == NULL ? &t->postprocessor.single : &t->postprocessor.pair;
  token_segment segments[2] = {0};
  size_t room, use[2];
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
  if (add_segments(t, text, text_b, segments)) {
    cut(segments, text_b != NULL, limit, room, use);
    out = assemble(form, segments, use, only_used);
  }
  memory_free(segments[0].list.items);
  memory_free(segments[1].list.items);
  if (out == NULL) return error_nomem(error, "tokenizing");
  *tokens = out;
  return BERT_OK;
}

void tokens_free(bert_tokens *tokens) {
  memory_free(tokens);
}
