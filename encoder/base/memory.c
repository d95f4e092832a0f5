/*
** memory.c: allocation through the caller's allocator.
**
** The caller's allocator may align to no more than 8 bytes and may be replaced
** while blocks are out, so each block has a hidden header in front that says
** where it came from:
**
**   raw                      block - sizeof(header)   block (64-byte aligned)
**   |<- 0 to 63 bytes ------>|<- header ------------->|<- bytes asked for ->|
**
** What alignment leaves over behind the block is poisoned under
** AddressSanitizer, so that it still sees the first byte beyond a block.
*/
#include <stdlib.h>
#include <string.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "base.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEMORY_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define MEMORY_ASAN 1
#endif
#if defined(MEMORY_ASAN)
#include <sanitizer/asan_interface.h>
#define MEMORY_POISON(from, bytes) ASAN_POISON_MEMORY_REGION(from, bytes)
#define MEMORY_UNPOISON(from, bytes) ASAN_UNPOISON_MEMORY_REGION(from, bytes)
#else
#define MEMORY_POISON(from, bytes) ((void)0)
#define MEMORY_UNPOISON(from, bytes) ((void)0)
#endif

/* Bytes beyond those asked for that make room for the header anywhere. */
enum { EXTRA = 32 + MEMORY_ALIGN - 1 };

typedef struct header {
  void *raw;      /* what the allocator gave */
  uint64_t bytes; /* what was asked for */
  void (*release)(void *user, void *block);
  void *user;
} header;
_Static_assert(sizeof(header) <= 32, "EXTRA has room for the header");

static void *system_allocate(void *user, uint64_t bytes) {
  (void)user;
  return bytes > SIZE_MAX ? NULL : malloc((size_t)bytes);
}

static void system_release(void *user, void *block) {
  (void)user;
  free(block);
}

static const bert_allocator system_allocator = {system_allocate, system_release, NULL};
static bert_allocator current = {system_allocate, system_release, NULL};

void bert_set_allocator(const bert_allocator *allocator) {
  current = allocator == NULL ? system_allocator : *allocator;
}

static header *header_of(void *block) {
  return (header *)((char *)block - sizeof(header));
}

void *memory_alloc(uint64_t bytes) {
  if (bytes > (uint64_t)PTRDIFF_MAX - EXTRA) return NULL;
  char *raw = current.allocate(current.user, bytes + EXTRA);
  if (raw == NULL) return NULL;
  size_t misaligned = ((uintptr_t)raw + sizeof(header)) % MEMORY_ALIGN;
  char *block = raw + sizeof(header) + (misaligned == 0 ? 0 : MEMORY_ALIGN - misaligned);
  header filled = {raw, bytes, current.release, current.user};
  *header_of(block) = filled;
  MEMORY_POISON(block + bytes, (size_t)(raw + bytes + EXTRA - (block + bytes)));
  return block;
}

void *memory_zero(uint64_t bytes) {
  void *block = memory_alloc(bytes);
  if (block != NULL) memset(block, 0, (size_t)bytes);
  return block;
}

void *memory_resize(void *block, uint64_t bytes) {
  if (block == NULL) return memory_alloc(bytes);
  void *moved = memory_alloc(bytes);
  if (moved == NULL) return NULL;
  uint64_t old = header_of(block)->bytes;
  memcpy(moved, block, (size_t)(old < bytes ? old : bytes));
  memory_free(block);
  return moved;
}

void memory_free(void *block) {
  if (block == NULL) return;
  header made = *header_of(block);
  MEMORY_UNPOISON(made.raw, (size_t)made.bytes + EXTRA);
  made.release(made.user, made.raw);
}

/* glibc takes large blocks from its heap once one of their size was freed, and of its
** heap it gives back only what is free at the end, by itself. */
void memory_give_back(void) {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

uint64_t memory_product(uint64_t count, uint64_t size) {
  return size != 0 && count > UINT64_MAX / size ? UINT64_MAX : count * size;
}

char *memory_copy_text(const char *text, size_t size) {
  char *copy = memory_alloc((uint64_t)size + 1);
  if (copy == NULL) return NULL;
  if (size > 0) memcpy(copy, text, size);
  copy[size] = '\0';
  return copy;
}

int memory_grow(void **array, size_t count, size_t *capacity, size_t size) {
  if (count < *capacity) return 1;
  if (*capacity > SIZE_MAX / 2 - 8) return 0;
  size_t room = *capacity + *capacity / 2 + 8;
  void *grown = memory_resize(*array, memory_product(room, size));
  if (grown == NULL) return 0;
  *array = grown;
  *capacity = room;
  return 1;
}
