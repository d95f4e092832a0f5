/*
** trie.c: strings to values, one byte a step.
**
** A hash of edges instead of arrays of children: it is built in time linear in
** the bytes of the strings, whatever they are, which a packed double array is
** not, and it is small enough for the cache (MiniLM's 30522 strings: 1 MB).
*/
#include "pipeline.h"

enum { TRIE_MAX_BITS = 23 }; /* so that node * 256 + byte fits, the root too */

static int trie_allocate(trie *t, int bits) {
  size_t slots = (size_t)1 << bits;
  t->slots = memory_alloc(memory_product(slots, sizeof *t->slots));
  if (t->slots == NULL) return 0;
  for (size_t i = 0; i < slots; i++) t->slots[i] = (trie_slot){TRIE_NONE, -1};
  t->mask = (uint32_t)slots - 1;
  t->root = (uint32_t)slots;
  t->shift = 32 - bits;
  return 1;
}

/* Adds one text; the number of new nodes. */
static uint32_t trie_insert(trie *t, bert_text text, int32_t value) {
  uint32_t node = t->root, made = 0;
  for (size_t i = 0; i < text.size; i++) {
    uint32_t key = node << 8 | (unsigned char)text.data[i], at = trie_hash(t, key);
    while (t->slots[at].key != key && t->slots[at].key != TRIE_NONE) at = (at + 1) & t->mask;
    if (t->slots[at].key == TRIE_NONE) {
      t->slots[at].key = key;
      made++;
    }
    node = at;
  }
  if (text.size > 0) t->slots[node].value = value;
  return made;
}

/* Fills a table of 2^bits slots; 0 when it becomes more than 5/8 full. */
static int trie_fill(trie *t, const bert_text *texts, const int32_t *values, size_t count) {
  uint64_t slots = (uint64_t)t->mask + 1, nodes = 0;
  for (size_t i = 0; i < count; i++) {
    /* before it is filled: an insert that finds no free slot would not end */
    if (nodes + texts[i].size >= slots) return 0;
    nodes += trie_insert(t, texts[i], values != NULL ? values[i] : (int32_t)i);
    if (nodes * 8 > slots * 5) return 0;
  }
  return 1;
}

bert_status trie_build(trie *t, const bert_text *texts, const int32_t *values, size_t count,
                       bert_error *error) {
  uint64_t bytes = 0;
  int bits = 6;
  for (size_t i = 0; i < count; i++) bytes += texts[i].size;
  while (bits < TRIE_MAX_BITS && (uint64_t)1 << bits < bytes / 2) bits++;
  for (; bits <= TRIE_MAX_BITS; bits++) {
    if (!trie_allocate(t, bits)) return error_nomem(error, "indexing the vocabulary");
    if (trie_fill(t, texts, values, count)) return BERT_OK;
    trie_free(t);
  }
  return error_set(error, BERT_UNSUPPORTED,
                   "the strings of the vocabulary have %llu bytes; at most about 5 million "
                   "different beginnings are supported",
                   (unsigned long long)bytes);
}

void trie_free(trie *t) {
  memory_free(t->slots);
  t->slots = NULL;
}
