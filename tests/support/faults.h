/*
** faults.h: an allocator for the encoder that fails on demand, counts what is
** out, and aligns to 8 bytes and no more.
*/
#ifndef BERT_TESTS_FAULTS_H
#define BERT_TESTS_FAULTS_H

#include "../../encoder/base/base.h"

/* From now on allocation number `fail_at` (the first is 1) and none other
** fails; 0: none. */
void faults_begin(long fail_at);

/* Back to malloc; returns 1 when the allocation that was to fail was asked for.
** Ends the test when a block is still out. */
int faults_end(void);

/* Blocks that are out. */
long faults_blocks(void);

/* Calls run(user, error), which must free all it makes, with its first
** allocation failing, then with its second, and so on until it needs no more.
** Each failure must be BERT_NOMEM with a text and leave no block; the last run
** must be BERT_OK. Returns the number of failures. */
long faults_each(bert_status (*run)(void *user, bert_error *error), void *user);

#endif
