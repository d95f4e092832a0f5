/*
** change_checks.c: see change_checks.h.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../encoder/tokenizers/tokenizers.h"
#include "change_checks.h"
#include "scratch.h"

void check_changes(const char *whole, change_try *try, const change *changes, size_t count) {
  char *directory = scratch_new();
  for (size_t i = 0; i < count; i++) {
    bert_error error = {0};
    scratch_write(directory, "tokenizer.json", whole, strlen(whole));
    scratch_replace(directory, "tokenizer.json", changes[i].from, changes[i].to);
    bert_status status = try(directory, &error);
    if (status != BERT_OK) { /* and without a place for the text */
      tokenizer *t = NULL;
      assert_int_equal(tokenizer_open(directory, 0, &t, NULL), status);
    }
    if (status != changes[i].status || strstr(error.text, changes[i].says) == NULL)
      fail_msg("%s -> %s: status %d, \"%s\", expected %d, \"%s\"", changes[i].from, changes[i].to,
               (int)status, error.text, (int)changes[i].status, changes[i].says);
  }
  scratch_free(directory);
}
