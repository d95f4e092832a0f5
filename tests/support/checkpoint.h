/*
** checkpoint.h: model directories made for a test: one with many layers and
** heads, one with a weight that is no number, one with weights that are all alike.
*/
#ifndef BERT_TESTS_CHECKPOINT_H
#define BERT_TESTS_CHECKPOINT_H

#include <stddef.h>

enum { DEEP_LAYERS = 12, DEEP_HEADS = 12, DEEP_HIDDEN = 48, DEEP_POSITIONS = 512 };

/* A throw-away model of the shape above with random weights and the tokenizer of
** tests/golden/families/bert-mean; freed with scratch_free. */
char *checkpoint_deep(void);

/* The same in another shape, with DEEP_POSITIONS positions. */
char *checkpoint_shaped(int layers, int heads, int hidden, int inner);

/* Puts `value` into number `index` of the tensor `name` of a copy made with
** scratch_copy. */
void checkpoint_spoil(const char *directory, const char *name, size_t index, float value);

/* The same for all its numbers. */
void checkpoint_flatten(const char *directory, const char *name, float value);

#endif
