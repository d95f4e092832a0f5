/*
** unigram.c: the most probable pieces of a word (Kudo 2018), by Viterbi's
** algorithm over the bytes: the best way to each place is the best of those that
** end there with a piece of the vocabulary, the first found if equal. A character
** that no piece is alone costs ten more than the least probable piece; unknown
** neighbours are one token.
*/
#include "models.h"

#include <stdio.h>
#include <string.h>

#define UNKNOWN_PENALTY 10.0

int piece_add(piece_list *list, int32_t id, size_t start, size_t end) {
  if (!memory_grow((void **)&list->items, list->count, &list->capacity, sizeof *list->items))
    return 0;
  list->items[list->count++] = (piece){id, start, end};
  return 1;
}

void models_find_bytes(const vocabulary *v, int32_t ids[256]) {
  for (int i = 0; i < 256; i++) {
    char name[8];
    snprintf(name, sizeof name, "<0x%02X>", (unsigned)i);
    ids[i] = vocabulary_id(v, (bert_text){name, 6});
  }
}

void unigram_close(unigram *m, const vocabulary *v) {
  double least = m->scores[0];
  for (size_t i = 1; i < m->count; i++)
    if (m->scores[i] < least) least = m->scores[i];
  m->unknown_score = least - UNKNOWN_PENALTY;
  models_find_bytes(v, m->bytes);
}

void unigram_free(unigram *m) {
  memory_free(m->scores);
}

void unigram_work_free(unigram_work *work) {
  memory_free(work->nodes);
}

static void offer(unigram_node *node, double score, int32_t id, size_t start) {
  if (node->start != UINT32_MAX && !(score > node->score)) return;
  *node = (unigram_node){score, id, (uint32_t)start};
}

/* Follows all pieces that begin at byte `at`, where a character of `size` bytes
** stands. */
static void step_on(const unigram *m, const trie *t, const chain_word *w, unigram_node *nodes,
                    size_t at, size_t size) {
  double score = nodes[at].score;
  uint32_t node = t->root;
  int single = 0;
  for (size_t i = at; i < w->size; i++) {
    int32_t id;
    node = trie_step(t, node, (unsigned char)w->bytes[i]);
    if (node == TRIE_NONE) break;
    id = t->slots[node].value;
    if (id < 0) continue;
    offer(&nodes[i + 1], score + m->scores[id], id, at);
    single |= i + 1 - at == size;
  }
  if (!single) offer(&nodes[at + size], score + m->unknown_score, m->unknown, at);
}

/* What unknown neighbours become, bytes [start, end) of the word. */
static int add_unknown(const unigram *m, const vocabulary *v, const chain_word *w, size_t start,
                       size_t end, piece_list *out) {
  int32_t id = vocabulary_id(v, (bert_text){w->bytes + start, end - start});
  int known = m->byte_fallback && id < 0;
  for (size_t i = start; i < end && known; i++) known = m->bytes[(unsigned char)w->bytes[i]] >= 0;
  if (!known) return piece_add(out, id >= 0 ? id : m->unknown, start, end);
  /* backwards, as all pieces are until they are turned round */
  for (size_t i = end; i > start; i--)
    if (!piece_add(out, m->bytes[(unsigned char)w->bytes[i - 1]], start, end)) return 0;
  return 1;
}

static void turn_round(piece *items, size_t count) {
  for (size_t i = 0; i < count / 2; i++) {
    piece swap = items[i];
    items[i] = items[count - 1 - i];
    items[count - 1 - i] = swap;
  }
}

/* The pieces of the best way, found from its end. */
static int trace_back(const unigram *m, const vocabulary *v, const chain_word *w,
                      const unigram_node *nodes, piece_list *out) {
  size_t first = out->count;
  for (size_t end = w->size; end > 0;) {
    size_t start = nodes[end].start;
    if (nodes[end].id == m->unknown) {
      while (start > 0 && nodes[start].id == m->unknown) start = nodes[start].start;
      if (!add_unknown(m, v, w, start, end, out)) return 0;
    } else if (!piece_add(out, nodes[end].id, start, end)) {
      return 0;
    }
    end = start;
  }
  turn_round(out->items + first, out->count - first);
  return 1;
}

int unigram_tokenize(const unigram *m, const vocabulary *v, const chain_word *w, unigram_work *work,
                     piece_list *out) {
  while (work->capacity <= w->size)
    if (!memory_grow((void **)&work->nodes, work->capacity, &work->capacity, sizeof *work->nodes))
      return 0;
  for (size_t i = 0; i <= w->size; i++) work->nodes[i] = (unigram_node){0, -1, UINT32_MAX};
  for (size_t i = 0, at = 0; i < w->count; at = w->chars[i++].end)
    step_on(m, &v->trie, w, work->nodes, at, w->chars[i].end - at);
  return trace_back(m, v, w, work->nodes, out);
}
