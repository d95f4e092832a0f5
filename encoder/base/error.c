/*
** error.c: fill a bert_error.
**
** The text has a fixed size, so that reporting a failure can never itself
** fail. What does not fit is cut, at a whole character, because the text goes
** into SQL results, where half a character would be a second error.
*/
#include <stdio.h>
#include <string.h>

#include "base.h"

/* Bytes of text[size] up to the last whole UTF-8 character. Bytes that are not
** UTF-8 at all are left alone: only a sequence that the end cuts is dropped. */
static size_t whole_characters(const char *text, size_t size) {
  size_t start = size;
  while (start > 0 && size - start < 3 && ((unsigned char)text[start - 1] & 0xC0) == 0x80) start--;
  if (start == 0) return size;
  unsigned char lead = (unsigned char)text[start - 1];
  size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  return size - (start - 1) < need ? start - 1 : size;
}

/* What snprintf had to cut from text[room] ends at a whole character. */
static void trim(char *text, size_t room, int wanted) {
  if (wanted < 0) {
    text[0] = '\0';
    return;
  }
  if ((size_t)wanted >= room) text[whole_characters(text, room - 1)] = '\0';
}

bert_status error_set(bert_error *error, bert_status status, const char *format, ...) {
  if (error == NULL) return status;
  /* Formatted beside the error first: an argument may be the old text. */
  char text[sizeof error->text];
  va_list arguments;
  va_start(arguments, format);
  int wanted = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  trim(text, sizeof text, wanted);
  error->status = status;
  memcpy(error->text, text, sizeof text);
  return status;
}

bert_status error_prefix(bert_error *error, const char *format, ...) {
  if (error == NULL) return BERT_OK;
  char prefix[sizeof error->text];
  char rest[sizeof error->text];
  va_list arguments;
  va_start(arguments, format);
  int wanted = vsnprintf(prefix, sizeof prefix, format, arguments);
  va_end(arguments);
  trim(prefix, sizeof prefix, wanted);
  memcpy(rest, error->text, sizeof rest);
  rest[sizeof rest - 1] = '\0';
  size_t used = strlen(prefix), left = sizeof error->text - 1;
  memcpy(error->text, prefix, used);
  size_t colon = left - used < 2 ? left - used : 2;
  memcpy(error->text + used, ": ", colon);
  used += colon;
  size_t size = strlen(rest);
  if (size > left - used) size = whole_characters(rest, left - used);
  memcpy(error->text + used, rest, size);
  error->text[used + size] = '\0';
  return error->status;
}

bert_status error_nomem(bert_error *error, const char *doing) {
  return error_set(error, BERT_NOMEM, "out of memory while %s", doing);
}

quoted error_quote(const char *text) {
  static const char dots[] = "...";
  quoted q = {{0}};
  if (text == NULL) return q;
  size_t room = sizeof q.text - sizeof dots;
  size_t size = strnlen(text, room + 1);
  size_t kept = size > room ? whole_characters(text, room) : size;
  for (size_t i = 0; i < kept; i++) {
    unsigned char c = (unsigned char)text[i];
    q.text[i] = c < 0x20 || c == 0x7F ? '?' : text[i];
  }
  if (kept < size) memcpy(q.text + kept, dots, sizeof dots);
  return q;
}
