/*
** terminal.c: labels cut and padded to the columns of a terminal. A column is
** what an ASCII letter takes; East Asian characters and emoji take two, marks
** none, which bert_text_columns knows.
*/
#include "render.h"

#include <string.h>

/* The end of the longest beginning of text[size] that fits `columns`. Marks
** that follow what fits go with it. */
static size_t fitting(const char *text, size_t size, int columns) {
  size_t fit = 0;
  for (size_t at = 0; at < size;) {
    size_t length = utf8_character_size((const unsigned char *)text + at, size - at);
    at += length > 0 ? length : 1;
    if (bert_text_columns(text, at) > columns) break;
    fit = at;
  }
  return fit;
}

void append_spaces(sqlite3_str *out, int count) {
  if (count > 0) sqlite3_str_appendchar(out, count, ' ');
}

void append_columns(sqlite3_str *out, const char *text, size_t size, int columns, int right) {
  int width = bert_text_columns(text, size);
  if (width <= columns) {
    if (right) append_spaces(out, columns - width);
    sqlite3_str_append(out, text, (int)size);
    if (!right) append_spaces(out, columns - width);
    return;
  }
  size_t fit = fitting(text, size, columns - 1);
  sqlite3_str_append(out, text, (int)fit);
  sqlite3_str_appendall(out, "\xE2\x80\xA6"); /* U+2026, an ellipsis */
  append_spaces(out, columns - 1 - bert_text_columns(text, fit));
}
