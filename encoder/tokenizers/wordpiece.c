/*
** wordpiece.c: a word into the longest pieces of the vocabulary, from the left
** (Schuster and Nakajima 2012, as BERT uses it): a piece that does not begin
** the word is looked for behind the prefix, "##". A word that cannot be cut so,
** or is too long, is one unknown token.
*/
#include "models.h"

int token_list_add(token_list *list, int32_t id, int32_t number, size_t start, size_t stop) {
  if (list->count == list->capacity &&
      !memory_grow((void **)&list->items, list->count, &list->capacity, sizeof *list->items))
    return 0;
  list->items[list->count++] = (found_token){id, number, start, stop};
  return 1;
}

/* The longest piece that begins at byte `at` of a word; its id and end, or -1. */
static inline int32_t longest_piece(const trie *t, uint32_t node, const char *bytes, size_t size,
                                    size_t at, size_t *end) {
  int32_t best = -1;
  for (size_t i = at; i < size && node != TRIE_NONE; i++) {
    node = trie_step(t, node, (unsigned char)bytes[i]);
    if (node != TRIE_NONE && t->slots[node].value >= 0) {
      best = t->slots[node].value;
      *end = i + 1;
    }
  }
  return best;
}

/* The pieces; -1 when there are none, 0 when out of memory. */
static int cut_word(const wordpiece *m, const trie *strings, const word *w, int32_t number,
                    token_list *out) {
  size_t character = 0; /* of the word, where the next piece begins */
  for (size_t at = 0, end = 0; at < w->size; at = end) {
    uint32_t node = at == 0 ? strings->root : m->continuation;
    size_t start = w->start + at, stop;
    int32_t id = longest_piece(strings, node, w->bytes, w->size, at, &end);
    if (id < 0) return -1;
    stop = w->start + end;
    if (!w->linear) {
      start = w->starts[character];
      while (w->ends[character] < end) character++;
      stop = w->stops[character++];
    }
    if (!token_list_add(out, id, number, start, stop)) return 0;
  }
  return 1;
}

int wordpiece_tokenize(const wordpiece *m, const trie *strings, const word *w, int32_t number,
                       token_list *out) {
  size_t before = out->count;
  int result = w->overlong ? -1 : cut_word(m, strings, w, number, out);
  if (result >= 0) return result;
  out->count = before;
  return token_list_add(out, m->unknown, number, w->start, w->stop);
}

int wordpiece_cut(const wordpiece *m, const trie *strings, const chain_word *w, piece_list *out) {
  size_t before = out->count;
  for (size_t at = 0, end = 0; at < w->size && !w->overlong; at = end) {
    uint32_t node = at == 0 ? strings->root : m->continuation;
    int32_t id = longest_piece(strings, node, w->bytes, w->size, at, &end);
    if (id < 0) {
      out->count = before;
      return piece_add(out, m->unknown, 0, w->size);
    }
    if (!piece_add(out, id, at, end)) return 0;
  }
  return !w->overlong || piece_add(out, m->unknown, 0, SIZE_MAX);
}
