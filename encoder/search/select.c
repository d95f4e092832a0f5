/*
** select.c: the smallest of many bounds, some at a time.
**
** A heap with the largest of those picked so far on top: most bounds are above
** it and cost one comparison.
*/
#include "search.h"

/* Bounds are never NaN: search_scan makes none. */
static int comes_before(const float *bounds, size_t a, size_t b) {
  return bounds[a] < bounds[b] || (a < b && bounds[a] == bounds[b]);
}

/* Moves the top of heap[size] down to its place. */
static void sift_down(const float *bounds, size_t *heap, size_t size) {
  size_t moved = heap[0], at = 0;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= size) break;
    if (child + 1 < size && comes_before(bounds, heap[child], heap[child + 1])) child++;
    if (!comes_before(bounds, moved, heap[child])) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moved;
}

/* Puts `index` at the end of heap[size] and moves it up to its place. */
static void sift_up(const float *bounds, size_t *heap, size_t size, size_t index) {
  size_t at = size;
  while (at > 0 && comes_before(bounds, heap[(at - 1) / 2], index)) {
    heap[at] = heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  heap[at] = index;
}

size_t search_select(const float *bounds, size_t count, float after, size_t after_index,
                     size_t want, size_t *picked) {
  size_t size = 0;
  int from_start = after_index == SIZE_MAX;
  for (size_t i = 0; i < count && want > 0; i++) {
    /* An equal bound comes later than all picked ones, which have lower indexes. */
    if (size == want && !(bounds[i] < bounds[picked[0]])) continue;
    if (!from_start && (bounds[i] < after || (i <= after_index && bounds[i] == after))) continue;
    if (size < want) {
      sift_up(bounds, picked, size++, i);
    } else {
      picked[0] = i;
      sift_down(bounds, picked, size);
    }
  }
  for (size_t left = size; left > 1; left--) {
    size_t largest = picked[0];
    picked[0] = picked[left - 1];
    sift_down(bounds, picked, left - 1);
    picked[left - 1] = largest;
  }
  return size;
}
