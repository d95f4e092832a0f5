/*
** bpe.c: byte pair encoding (Sennrich, Haddow and Birch 2016): a word as its
** characters, of which neighbours are merged, the pair with the lowest rank
** first, the leftmost of equals.
**
** Candidates wait in a heap. One whose symbols have changed meanwhile is dropped,
** unless what is there now merges to the same token: so the reference does it,
** and the order of merges follows from that.
*/
#include "models.h"

#include <string.h>

/* ---- The merges ---------------------------------------------------------------- */

bert_status bpe_allocate(bpe *m, size_t count, bert_error *error) {
  int bits = 4;
  while (bits < 40 && (size_t)1 << bits < count * 2) bits++;
  m->mask = ((size_t)1 << bits) - 1;
  m->shift = 64 - bits;
  m->merges = memory_alloc(memory_product(m->mask + 1, sizeof *m->merges));
  if (m->merges == NULL) return error_nomem(error, "reading the merges");
  for (size_t i = 0; i <= m->mask; i++) m->merges[i].pair = UINT64_MAX;
  return BERT_OK;
}

/* The slot of a pair, or the free one for it. */
static bpe_merge *find_merge(const bpe *m, int32_t left, int32_t right) {
  uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
  for (size_t at = (size_t)(pair * 0x9E3779B97F4A7C15u >> m->shift);; at = (at + 1) & m->mask)
    if (m->merges[at].pair == pair || m->merges[at].pair == UINT64_MAX) return &m->merges[at];
}

void bpe_add_merge(bpe *m, int32_t left, int32_t right, uint32_t rank, int32_t merged) {
  uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
  *find_merge(m, left, right) = (bpe_merge){pair, rank, merged};
}

bert_status bpe_close(bpe *m, const vocabulary *v, bert_error *error) {
  m->ids = (size_t)v->entries[v->count - 1].id + 1;
  m->whole = memory_zero(m->ids);
  if (m->whole == NULL) return error_nomem(error, "reading the merges");
  models_find_bytes(v, m->bytes);
  m->continuation = trie_walk(&v->trie, v->trie.root, m->prefix);
  for (uint32_t c = 0; c < BPE_DIRECT; c++) {
    char bytes[4];
    m->direct[c] = vocabulary_id(v, (bert_text){bytes, unicode_put(c, bytes)});
  }
  return BERT_OK;
}

void bpe_free(bpe *m) {
  memory_free(m->merges);
  memory_free(m->whole);
  memory_free((void *)(uintptr_t)m->prefix.data);
  memory_free((void *)(uintptr_t)m->suffix.data);
}

void bpe_work_free(bpe_work *work) {
  memory_free(work->symbols);
  memory_free(work->heap);
}

/* ---- The heap -------------------------------------------------------------------- */

static int heap_push(bpe_work *work, bpe_candidate c) {
  size_t at = work->waiting;
  if (!memory_grow((void **)&work->heap, at, &work->heap_capacity, sizeof *work->heap)) return 0;
  work->waiting++;
  for (; at > 0 && work->heap[(at - 1) / 2].order > c.order; at = (at - 1) / 2)
    work->heap[at] = work->heap[(at - 1) / 2];
  work->heap[at] = c;
  return 1;
}

static bpe_candidate heap_pop(bpe_work *work) {
  bpe_candidate top = work->heap[0], last = work->heap[--work->waiting];
  size_t at = 0;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= work->waiting) break;
    if (child + 1 < work->waiting && work->heap[child + 1].order < work->heap[child].order) child++;
    if (work->heap[child].order >= last.order) break;
    work->heap[at] = work->heap[child];
    at = child;
  }
  work->heap[at] = last;
  return top;
}

/* ---- Symbols ------------------------------------------------------------------------ */

static int add_symbol(bpe_work *work, int32_t id, size_t size) {
  int32_t at = (int32_t)work->count;
  if (!memory_grow((void **)&work->symbols, work->count, &work->capacity, sizeof *work->symbols))
    return 0;
  if (at > 0) work->symbols[at - 1].next = at;
  work->symbols[work->count++] = (bpe_symbol){id, at - 1, -1, (uint32_t)size};
  return 1;
}

/* The token of a character, with the prefix before it and the suffix behind it. */
static int32_t find_symbol(const bpe *m, const trie *t, const char *text, size_t size, int first,
                           int last) {
  uint32_t node = first ? t->root : m->continuation;
  node = trie_walk(t, node, (bert_text){text, size});
  if (last) node = trie_walk(t, node, m->suffix);
  return node == TRIE_NONE || node == t->root ? -1 : t->slots[node].value;
}

/* The tokens of a character's bytes, prefix and suffix included; -1: one of them is
** missing; 0: out of memory. */
static int add_bytes(const bpe *m, bpe_work *work, bert_text parts[3]) {
  for (int k = 0; k < 3; k++)
    for (size_t i = 0; i < parts[k].size; i++)
      if (m->bytes[(unsigned char)parts[k].data[i]] < 0) return -1;
  for (int k = 0; k < 3; k++)
    for (size_t i = 0; i < parts[k].size; i++)
      if (!add_symbol(work, m->bytes[(unsigned char)parts[k].data[i]], 1)) return 0;
  return 1;
}

/* Unknown characters that are not among the symbols yet. */
typedef struct unknown_run {
  int any;
  size_t size;
} unknown_run;

static int flush_unknown(const bpe *m, bpe_work *work, unknown_run *run) {
  int done = !run->any || add_symbol(work, m->unknown, run->size);
  *run = (unknown_run){0};
  return done;
}

/* A character that has no token. */
static int add_unknown(const bpe *m, bpe_work *work, const char *text, size_t size, int first,
                       int last, unknown_run *run) {
  bert_text parts[3] = {{0}, {text, size}, {0}};
  int done = -1;
  if (!first) parts[0] = m->prefix;
  if (last) parts[2] = m->suffix;
  if (m->byte_fallback) done = add_bytes(m, work, parts);
  if (done >= 0) return done;
  if (m->unknown < 0) return 1;
  if (!m->fuse_unknown && !flush_unknown(m, work, run)) return 0;
  run->any = 1;
  run->size += size;
  return 1;
}

static int add_symbols(const bpe *m, const trie *t, const chain_word *w, bpe_work *work) {
  unknown_run run = {0};
  int simple = m->prefix.size == 0 && m->suffix.size == 0;
  work->count = 0;
  for (size_t i = 0, at = 0; i < w->count; at = w->chars[i++].end) {
    size_t size = w->chars[i].end - at;
    int first = i == 0 && w->first, last = i + 1 == w->count && w->last;
    const unsigned char *text = (const unsigned char *)w->bytes + at;
    uint32_t c = size == 1   ? text[0]
                 : size == 2 ? (text[0] & 0x1Fu) << 6 | (text[1] & 0x3Fu)
                             : BPE_DIRECT;
    int32_t id = simple && c < BPE_DIRECT ? m->direct[c]
                                          : find_symbol(m, t, w->bytes + at, size, first, last);
    if (id < 0) {
      if (!add_unknown(m, work, w->bytes + at, size, first, last, &run)) return 0;
    } else if ((run.any && !flush_unknown(m, work, &run)) || !add_symbol(work, id, size)) {
      return 0;
    }
  }
  return flush_unknown(m, work, &run);
}

/* ---- Merging -------------------------------------------------------------------------- */

/* Two neighbours become a candidate if they merge. */
static int offer(const bpe *m, bpe_work *work, int32_t left, int32_t right) {
  const bpe_merge *merge = find_merge(m, work->symbols[left].id, work->symbols[right].id);
  if (merge->pair == UINT64_MAX) return 1;
  return heap_push(work,
                   (bpe_candidate){(uint64_t)merge->rank << 32 | (uint32_t)left, merge->merged});
}

static int merge_symbols(const bpe *m, bpe_work *work) {
  work->waiting = 0;
  for (size_t i = 0; i + 1 < work->count; i++)
    if (!offer(m, work, (int32_t)i, (int32_t)i + 1)) return 0;
  while (work->waiting > 0) {
    bpe_candidate top = heap_pop(work);
    int32_t at = (int32_t)(top.order & UINT32_MAX);
    bpe_symbol *left = &work->symbols[at], *right;
    const bpe_merge *merge;
    if (left->size == 0 || left->next < 0) continue;
    right = &work->symbols[left->next];
    merge = find_merge(m, left->id, right->id);
    if (merge->pair == UINT64_MAX || merge->merged != top.merged) continue;
    left->id = top.merged;
    left->size += right->size;
    left->next = right->next;
    right->size = 0;
    if (left->next >= 0) work->symbols[left->next].previous = at;
    if (left->previous >= 0 && !offer(m, work, left->previous, at)) return 0;
    if (left->next >= 0 && !offer(m, work, at, left->next)) return 0;
  }
  return 1;
}

/* ---- A word ------------------------------------------------------------------------------ */

static int add_pieces(const bpe_work *work, piece_list *out) {
  size_t at = 0;
  for (size_t i = 0; i < work->count; i++) {
    const bpe_symbol *symbol = &work->symbols[i];
    if (symbol->size == 0) continue;
    if (!piece_add(out, symbol->id, at, at + symbol->size)) return 0;
    at += symbol->size;
  }
  return 1;
}

int bpe_tokenize(const bpe *m, const vocabulary *v, const chain_word *w, bpe_work *work,
                 piece_list *out) {
  size_t before = out->count;
  int32_t whole = -1;
  int single;
  if (w->first && w->last) whole = vocabulary_id(v, (bert_text){w->bytes, w->size});
  if (whole >= 0 && (m->ignore_merges || __atomic_load_n(&m->whole[whole], __ATOMIC_RELAXED) == 1))
    return piece_add(out, whole, 0, w->size);
  if (!add_symbols(m, &v->trie, w, work) || !merge_symbols(m, work) || !add_pieces(work, out))
    return 0;
  if (whole >= 0) {
    single = out->count == before + 1 && out->items[before].id == whole &&
             out->items[before].end == w->size;
    __atomic_store_n(&m->whole[whole], single ? 1 : 2, __ATOMIC_RELAXED);
  }
  return 1;
}
