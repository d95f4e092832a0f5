/*
** words.c: words that stand for a choice.
**
** strcasecmp goes by the locale of the host, and a program may have set any.
*/
#include "base.h"

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

int word_is(const char *word, const char *name) {
  while (*word != 0 && lower(*word) == lower(*name)) {
    word++;
    name++;
  }
  return *word == 0 && *name == 0;
}
