/*
** vocabulary.c: token strings to ids and back.
**
** Ids are kept as a list in order, not as a table by id, so that a file with
** one huge id cannot ask for a huge table.
*/
#include "pipeline.h"

#include <string.h>

bert_status vocabulary_add(vocabulary *v, bert_text text, int64_t id, bert_error *error) {
  if (id < 0 || id > VOCABULARY_MAX_ID)
    return error_set(error, BERT_INVALID, "token \"%.60s\" has id %lld; ids are 0 to %d", text.data,
                     (long long)id, VOCABULARY_MAX_ID);
  if (!memory_grow((void **)&v->entries, v->count, &v->capacity, sizeof *v->entries))
    return error_nomem(error, "reading the vocabulary");
  v->entries[v->count++] = (vocabulary_entry){text, (int32_t)id};
  return BERT_OK;
}

static int compare_ids(const void *a, const void *b) {
  const vocabulary_entry *x = a, *y = b;
  return (x->id > y->id) - (x->id < y->id);
}

/* Most files have the ids in order already. */
static int is_sorted(const vocabulary *v) {
  for (size_t i = 1; i < v->count; i++)
    if (v->entries[i - 1].id > v->entries[i].id) return 0;
  return 1;
}

static int sort_entries(vocabulary *v) {
  const void **order;
  vocabulary_entry *sorted;
  if (is_sorted(v)) return 1;
  order = memory_alloc(memory_product(v->count, sizeof *order));
  sorted = memory_alloc(memory_product(v->count, sizeof *sorted));
  if (order != NULL && sorted != NULL) {
    for (size_t i = 0; i < v->count; i++) order[i] = &v->entries[i];
    sort_pointers(order, v->count, compare_ids);
    for (size_t i = 0; i < v->count; i++) sorted[i] = *(const vocabulary_entry *)order[i];
    memory_free(v->entries);
    v->entries = sorted;
    v->capacity = v->count;
    memory_free(order);
    return 1;
  }
  memory_free(order);
  memory_free(sorted);
  return 0;
}

/* Moves the strings into one block of our own. */
static int copy_strings(vocabulary *v) {
  uint64_t bytes = 0;
  char *at;
  for (size_t i = 0; i < v->count; i++) bytes += (uint64_t)v->entries[i].text.size + 1;
  v->bytes = at = memory_alloc(bytes);
  if (at == NULL) return 0;
  for (size_t i = 0; i < v->count; i++) {
    bert_text *text = &v->entries[i].text;
    memcpy(at, text->data, text->size);
    at[text->size] = '\0';
    text->data = at;
    at += text->size + 1;
  }
  return 1;
}

static bert_status build_trie(vocabulary *v, bert_error *error) {
  bert_status status = BERT_NOMEM;
  bert_text *texts = memory_alloc(memory_product(v->count, sizeof *texts));
  int32_t *ids = memory_alloc(memory_product(v->count, sizeof *ids));
  if (texts != NULL && ids != NULL) {
    for (size_t i = 0; i < v->count; i++) {
      texts[i] = v->entries[i].text;
      ids[i] = v->entries[i].id;
    }
    status = trie_build(&v->trie, texts, ids, v->count, error);
  } else {
    error_nomem(error, "indexing the vocabulary");
  }
  memory_free(texts);
  memory_free(ids);
  return status;
}

bert_status vocabulary_close(vocabulary *v, bert_error *error) {
  if (v->count == 0) return error_set(error, BERT_INVALID, "the vocabulary is empty");
  if (!sort_entries(v) || !copy_strings(v)) return error_nomem(error, "reading the vocabulary");
  for (size_t i = 1; i < v->count; i++)
    if (v->entries[i - 1].id == v->entries[i].id)
      return error_set(error, BERT_INVALID, "tokens \"%.60s\" and \"%.60s\" both have id %d",
                       v->entries[i - 1].text.data, v->entries[i].text.data, v->entries[i].id);
  return build_trie(v, error);
}

void vocabulary_free(vocabulary *v) {
  memory_free(v->entries);
  memory_free(v->bytes);
  trie_free(&v->trie);
}

int32_t vocabulary_id(const vocabulary *v, bert_text text) {
  uint32_t node = trie_walk(&v->trie, v->trie.root, text);
  return node == TRIE_NONE || text.size == 0 ? -1 : v->trie.slots[node].value;
}

bert_text vocabulary_text(const vocabulary *v, int32_t id) {
  size_t low = 0, high = v->count;
  if (id >= 0 && (size_t)id < v->count && v->entries[id].id == id) return v->entries[id].text;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (v->entries[middle].id < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < v->count && v->entries[low].id == id ? v->entries[low].text : (bert_text){NULL, 0};
}
