/*
** scratch.h: a throw-away copy of a model directory that a test may spoil.
*/
#ifndef BERT_TESTS_SCRATCH_H
#define BERT_TESTS_SCRATCH_H

#include <stddef.h>

/* A new directory under $TMPDIR or /tmp, whose path is freed with scratch_free,
** which removes it: empty, or a copy of another one, its subdirectories included. */
char *scratch_new(void);
char *scratch_copy(const char *directory);
void scratch_free(char *copy);

/* The bytes of directory/name, NUL-terminated; freed with free. */
char *scratch_read(const char *directory, const char *name, size_t *size);
void scratch_write(const char *directory, const char *name, const void *bytes, size_t size);
void scratch_remove(const char *directory, const char *name);

/* Puts `to` in the place of the first `from`; sizes may differ. Ends the test
** when `from` is not there. */
void scratch_replace(const char *directory, const char *name, const char *from, const char *to);

#endif
