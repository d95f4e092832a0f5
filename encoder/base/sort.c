/*
** sort.c: sorting pointers by heapsort.
**
** qsort of the C library may allocate behind the back of the caller's
** allocator, and may be quadratic on input that was crafted for it.
*/
#include "base.h"

static void sift(const void **items, size_t root, size_t count,
                 int (*compare)(const void *a, const void *b)) {
  const void *moving = items[root];
  for (;;) {
    size_t child = 2 * root + 1;
    if (child >= count) break;
    if (child + 1 < count && compare(items[child], items[child + 1]) < 0) child++;
    if (compare(moving, items[child]) >= 0) break;
    items[root] = items[child];
    root = child;
  }
  items[root] = moving;
}

void sort_pointers(const void **items, size_t count, int (*compare)(const void *a, const void *b)) {
  for (size_t i = count / 2; i-- > 0;) sift(items, i, count, compare);
  for (size_t last = count; last-- > 1;) {
    const void *largest = items[0];
    items[0] = items[last];
    items[last] = largest;
    sift(items, 0, last, compare);
  }
}
