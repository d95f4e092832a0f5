/*
** added.c: tokens that are found in the text before anything else happens to
** it: special tokens such as [MASK], and words that somebody added later.
**
** Of the tokens that begin leftmost the longest is taken, then the search goes
** on behind it, also when single_word turned it down.
*/
#include "chain.h"

#include <string.h>

enum { SCAN_BLOCK = 4096 };

/* ---- Looking through a text ----------------------------------------------- */

void added_scan_begin(added_scan *s, const added_tokens *added, bert_text text) {
  *s = (added_scan){.added = added, .text = text};
  if (added == NULL || !added->raw.any) s->known = s->resume = text.size;
}

/* The longest token at byte `at`, and its bytes. */
static const added_token *find(const added_scan *s, size_t at, size_t *size) {
  const trie *t = &s->added->raw.trie;
  const added_token *best = NULL;
  uint32_t node = t->root;
  for (size_t i = at; i < s->text.size; i++) {
    node = trie_step(t, node, (unsigned char)s->text.data[i]);
    if (node == TRIE_NONE) break;
    if (t->slots[node].value >= 0) {
      best = &s->added->tokens[t->slots[node].value];
      *size = i + 1 - at;
    }
  }
  return best;
}

static int stands_alone(const bert_text *text, size_t start, size_t stop) {
  size_t at;
  if (start > 0 && unicode_is_word(unicode_previous(text->data, start, &at))) return 0;
  at = stop;
  return at == text->size || !unicode_is_word(unicode_next(text->data, text->size, &at));
}

/* Where the white space before byte `at` begins, but not before `floor`. */
static size_t space_before(const bert_text *text, size_t at, size_t floor) {
  size_t begin = at;
  while (at > floor && unicode_is_space(unicode_previous(text->data, at, &begin)) && begin >= floor)
    at = begin;
  return at;
}

static size_t space_after(const bert_text *text, size_t at) {
  size_t next = at;
  while (at < text->size && unicode_is_space(unicode_next(text->data, text->size, &next)))
    at = next;
  return at;
}

/* Takes `token` at [start, stop) as the match unless it may not stand there, or the
** token before has taken all of it as white space. */
static int accept(added_scan *s, const added_token *token, size_t start, size_t stop) {
  size_t end = token->rstrip ? space_after(&s->text, stop) : stop;
  if (token->single_word && !stands_alone(&s->text, start, stop)) return 0;
  if (token->lstrip) {
    size_t begin = start > s->taken ? space_before(&s->text, start, s->taken) : start;
    start = begin > s->taken ? begin : s->taken;
    if (start >= end) return 0;
  }
  s->match = token;
  s->resume = stop;
  s->start = s->known = start;
  s->stop = end;
  return 1;
}

/* Where the character begins that byte `at` is in the middle of. */
static size_t align(const added_scan *s, size_t at) {
  while (at > s->known && ((unsigned char)s->text.data[at] & 0xC0) == 0x80) at--;
  return at;
}

/* How far it is known that no token begins, `at` being searched now and `resume`
** before: white space that ends there may still belong to one, and so may all since
** `known` if there was nothing else. */
static size_t known_until(const added_scan *s, size_t at) {
  size_t floor, space;
  if (at >= s->text.size) return s->text.size;
  if (!s->added->raw.any_lstrip) return at;
  floor = align(s, s->resume);
  space = space_before(&s->text, align(s, at), floor);
  return space > floor ? space : s->known;
}

int added_scan_more(added_scan *s) {
  const char *text = s->text.data;
  size_t at = s->resume, before = s->known;
  if (s->match != NULL || s->known >= s->text.size) return 0;
  do {
    size_t end = s->text.size - at > SCAN_BLOCK ? at + SCAN_BLOCK : s->text.size;
    while (at < end) {
      size_t size = 1;
      const added_token *token = NULL;
      if (s->added->raw.first[(unsigned char)text[at]]) token = find(s, at, &size);
      if (token != NULL && accept(s, token, at, at + size)) return s->known > before;
      at += token != NULL ? size : 1;
    }
    s->known = known_until(s, at);
    s->resume = at;
  } while (s->known <= before && at < s->text.size);
  return s->known > before;
}

void added_scan_next(added_scan *s) {
  s->match = NULL;
  s->taken = s->stop;
  s->known = s->resume;
  if (s->known < s->taken && s->added->raw.any == 0) s->known = s->taken;
}

/* ---- The tokens ----------------------------------------------------------- */

static uint32_t hash_content(bert_text text) { /* FNV-1a */
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < text.size; i++) hash = (hash ^ (unsigned char)text.data[i]) * 16777619u;
  return hash;
}

/* The place of a content in the index: its own, or the free one for it. */
static uint32_t *find_slot(const added_tokens *a, bert_text content) {
  for (uint32_t at = hash_content(content);; at++) {
    uint32_t *slot = &a->index[at & (a->index_slots - 1)];
    const bert_text *text = *slot == 0 ? NULL : &a->tokens[*slot - 1].content;
    if (text == NULL ||
        (text->size == content.size && memcmp(text->data, content.data, content.size) == 0))
      return slot;
  }
}

int32_t added_find(const added_tokens *a, bert_text content) {
  uint32_t number = a->index_slots > 0 ? *find_slot(a, content) : 0;
  return number > 0 ? a->tokens[number - 1].id : -1;
}

/* Makes room in the index for one more; 0 when out of memory. */
static int grow_index(added_tokens *a) {
  uint32_t slots = a->index_slots == 0 ? 64 : a->index_slots * 2, *index;
  if ((a->count + 1) * 2 <= a->index_slots) return 1;
  index = memory_zero(memory_product(slots, sizeof *index));
  if (index == NULL) return 0;
  memory_free(a->index);
  a->index = index;
  a->index_slots = slots;
  for (size_t i = 0; i < a->count; i++) *find_slot(a, a->tokens[i].content) = (uint32_t)i + 1;
  return 1;
}

/* The id that the reference gives to a token, which must be the file's. */
static bert_status choose_id(const added_tokens *a, const vocabulary *v, const added_token *same,
                             bert_text content, int64_t given, int32_t *out, bert_error *error) {
  int64_t next = a->next_id > (int64_t)v->count ? a->next_id : (int64_t)v->count;
  int64_t id = same != NULL ? same->id : vocabulary_id(v, content);
  int known = id >= 0;
  if (!known) id = next;
  if (given >= 0 && given != id)
    return error_set(error, BERT_INVALID, "added token \"%.60s\" has id %lld; %s %lld",
                     content.data, (long long)given,
                     known ? "the vocabulary gives it" : "the next free one is", (long long)id);
  if (id > VOCABULARY_MAX_ID || (!known && vocabulary_text(v, (int32_t)id).data != NULL))
    return error_set(error, BERT_INVALID,
                     "added token \"%.60s\" is not in the vocabulary, and id %lld is not free",
                     content.data, (long long)id);
  *out = (int32_t)id;
  return BERT_OK;
}

bert_status added_add(added_tokens *a, const vocabulary *v, const added_token *added, int64_t id,
                      bert_error *error) {
  added_token copy = *added, *same = NULL;
  uint32_t *slot;
  bert_status status;
  if (added->content.size == 0) return BERT_OK;
  if (!grow_index(a) ||
      !memory_grow((void **)&a->tokens, a->count, &a->capacity, sizeof *a->tokens))
    return error_nomem(error, "reading the added tokens");
  slot = find_slot(a, added->content);
  if (*slot != 0) same = &a->tokens[*slot - 1];
  status = choose_id(a, v, same, added->content, id, &copy.id, error);
  if (status != BERT_OK) return status;
  if (same != NULL) { /* the last description counts */
    copy.content = same->content;
    *same = copy;
    return BERT_OK;
  }
  copy.content.data = memory_copy_text(added->content.data, added->content.size);
  if (copy.content.data == NULL) return error_nomem(error, "reading the added tokens");
  a->tokens[a->count++] = copy;
  *slot = (uint32_t)a->count;
  if (copy.id >= a->next_id) a->next_id = (int64_t)copy.id + 1;
  return BERT_OK;
}

void added_free(added_tokens *a) {
  for (size_t i = 0; i < a->count; i++) memory_free((void *)(uintptr_t)a->tokens[i].content.data);
  memory_free(a->tokens);
  memory_free(a->index);
  trie_free(&a->raw.trie);
  trie_free(&a->normalized.trie);
}

/* ---- The sets -------------------------------------------------------------- */

typedef struct pattern {
  char *bytes;
  size_t size, characters, capacity;
} pattern;

static int pattern_add(pattern *p, uint32_t c) {
  while (p->capacity - p->size < 4)
    if (!memory_grow((void **)&p->bytes, p->capacity, &p->capacity, 1)) return 0;
  p->size += unicode_put(c, p->bytes + p->size);
  p->characters++;
  return 1;
}

/* The same by the normalizers of a chain. */
static int normalize_by_chain(const chain *c, bert_text content, pattern *out) {
  added_scan scan;
  chain_run r;
  text_char next;
  int done;
  added_scan_begin(&scan, NULL, content);
  done = chain_run_begin(&r, c, NULL, &scan);
  if (done) chain_run_piece(&r);
  while (done && r.stages[c->normalizers].next(&r.stages[c->normalizers], &next))
    done = pattern_add(out, next.c);
  done = done && !r.failed;
  chain_run_end(&r);
  return done;
}

/* The normalized content of a token; 0 when out of memory. */
static int normalize_content(const normalizer *n, const chain *chained, bert_text content,
                             pattern *out) {
  added_scan scan;
  reader r;
  normal_char c;
  *out = (pattern){0};
  if (chained != NULL) return normalize_by_chain(chained, content, out);
  added_scan_begin(&scan, NULL, content);
  reader_begin(&r, n, &scan);
  while (reader_next(&r, &c)) {
    int spaces = c.kind == NORMAL_IDEOGRAPH;
    if ((spaces && !pattern_add(out, ' ')) || !pattern_add(out, c.c) ||
        (spaces && !pattern_add(out, ' ')))
      return 0;
  }
  return 1;
}

/* Enters pattern `i` of a set. */
static void set_add(added_set *set, const added_token *token, bert_text text, size_t characters) {
  set->any = 1;
  set->any_lstrip |= token->lstrip;
  set->first[(unsigned char)text.data[0]] = 1;
  if (characters > set->longest) set->longest = characters;
}

/* Two patterns that are the same cannot be told apart: which of them the
** reference finds depends on a hash map whose order changes from run to run. */
static bert_status refuse_twins(const added_set *set, const added_tokens *a, const bert_text *texts,
                                const int32_t *values, size_t count, bert_error *error) {
  for (size_t i = 0; i < count; i++) {
    uint32_t node = set->trie.root;
    for (size_t k = 0; k < texts[i].size; k++)
      node = trie_step(&set->trie, node, (unsigned char)texts[i].data[k]);
    if (set->trie.slots[node].value != values[i])
      return error_set(
          error, BERT_INVALID, "added tokens \"%.60s\" and \"%.60s\" are the same when normalized",
          a->tokens[values[i]].content.data, a->tokens[set->trie.slots[node].value].content.data);
  }
  return BERT_OK;
}

/* Makes the patterns of the set of tokens that are normalized or not. */
static bert_status make_patterns(const added_tokens *a, added_set *set, const normalizer *n,
                                 const chain *c, int normalized, bert_text *texts, int32_t *values,
                                 size_t *count, bert_error *error) {
  for (size_t i = 0; i < a->count; i++) {
    const added_token *t = &a->tokens[i];
    pattern p = {0};
    if (t->normalized != normalized) continue;
    if (normalized && !normalize_content(n, c, t->content, &p)) {
      memory_free(p.bytes);
      return error_nomem(error, "reading the added tokens");
    }
    texts[*count] = normalized ? (bert_text){p.bytes, p.size} : t->content;
    values[*count] = (int32_t)i;
    if (texts[*count].size > 0) /* nothing but accents, say: never found */
      set_add(set, t, texts[(*count)++], p.characters);
    else
      memory_free(p.bytes);
  }
  return BERT_OK;
}

static bert_status build_set(const added_tokens *a, added_set *set, const normalizer *n,
                             const chain *c, int normalized, bert_error *error) {
  size_t count = 0;
  bert_text *texts = memory_alloc(memory_product(a->count, sizeof *texts));
  int32_t *values = memory_alloc(memory_product(a->count, sizeof *values));
  bert_status status = BERT_NOMEM;
  if (texts == NULL || values == NULL)
    error_nomem(error, "reading the added tokens");
  else
    status = make_patterns(a, set, n, c, normalized, texts, values, &count, error);
  if (status == BERT_OK) status = trie_build(&set->trie, texts, values, count, error);
  if (status == BERT_OK) status = refuse_twins(set, a, texts, values, count, error);
  for (size_t i = 0; normalized && i < count; i++) memory_free((void *)(uintptr_t)texts[i].data);
  memory_free(texts);
  memory_free(values);
  return status;
}

bert_status added_close(added_tokens *a, const normalizer *n, const chain *c, bert_error *error) {
  bert_status status = build_set(a, &a->raw, n, c, 0, error);
  return status != BERT_OK ? status : build_set(a, &a->normalized, n, c, 1, error);
}
