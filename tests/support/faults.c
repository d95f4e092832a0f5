/*
** faults.c: see faults.h.
*/
#include "faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static long asked, fail_number, blocks;

static void *allocate(void *user, uint64_t bytes) {
  if (++asked == fail_number) return NULL;
  char *raw = bytes > SIZE_MAX - 8 ? NULL : malloc((size_t)bytes + 8);
  if (raw == NULL) return NULL;
  memset(raw, 0xA5, (size_t)bytes + 8); /* nobody may count on zeros */
  blocks++;
  return raw + 8;
}

static void release(void *user, void *block) {
  blocks--;
  free((char *)block - 8);
}

void faults_begin(long fail_at) {
  static const bert_allocator allocator = {allocate, release, NULL};
  asked = blocks = 0;
  fail_number = fail_at;
  bert_set_allocator(&allocator);
}

long faults_blocks(void) {
  return blocks;
}

int faults_end(void) {
  bert_set_allocator(NULL);
  if (blocks != 0) fail_msg("%ld blocks were not freed (failure at %ld)", blocks, fail_number);
  return fail_number != 0 && asked >= fail_number;
}

long faults_each(bert_status (*run)(void *user, bert_error *error), void *user) {
  for (long k = 1;; k++) {
    bert_error error = {0};
    faults_begin(k);
    bert_status status = run(user, &error);
    int failed = faults_end();
    if (!failed) {
      if (status != BERT_OK) fail_msg("with all its memory: %s", error.text);
      return k - 1;
    }
    if (status != BERT_NOMEM || error.status != BERT_NOMEM || error.text[0] == '\0')
      fail_msg("allocation %ld failed, but the status is %d: %s", k, (int)status, error.text);
  }
}
