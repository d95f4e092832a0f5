/*
** change_checks.h: one change to a tokenizer.json after the other, and what becomes
** of it.
*/
#ifndef BERT_CHANGE_CHECKS_H
#define BERT_CHANGE_CHECKS_H

#include "../../encoder/base/base.h"

/* An empty `to` removes. */
typedef struct change {
  const char *from, *to;
  bert_status status;
  const char *says; /* part of the error text */
} change;

/* Opens the tokenizer of a directory, and tries it. */
typedef bert_status change_try(const char *directory, bert_error *error);

/* Each of changes[count] alone, made to the file whose text is `whole`; ends the test
** where the outcome is another. */
void check_changes(const char *whole, change_try *try, const change *changes, size_t count);

#endif
