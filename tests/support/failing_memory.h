/*
** failing_memory.h: SQLite's allocator, from which bertsql has all its memory,
** replaced by one that counts and fails on demand.
*/
#ifndef BERT_TESTS_FAILING_MEMORY_H
#define BERT_TESTS_FAILING_MEMORY_H

/* cmocka's set-up of a group: before SQLite is used for the first time. Lookaside,
** which would hide allocations, is off. */
int failing_memory_install(void **state);

/* From now on request number `fail_at` (the first is 1) fails; with `persistent` all
** after it do too. 0: none. */
void failing_memory_begin(long fail_at, int persistent);

/* Ends that; returns how many requests failed, and in *made, which may be NULL,
** how many there were. */
long failing_memory_end(long *made);

/* Blocks that are given out and not returned. */
long failing_memory_blocks(void);

#endif
