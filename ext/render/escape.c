/*
** escape.c: text from anywhere made fit to be shown: in a terminal, where a
** control character could move the cursor, and in XML, where it is not allowed.
*/
#include "render.h"

#include <string.h>

/* Marks that turn the direction of what follows. Left as they are, a token
** could reorder the row it stands in. */
static int turns_direction(uint32_t c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

static int is_noncharacter(uint32_t c) {
  return (c & 0xFFFE) == 0xFFFE || (c >= 0xFDD0 && c <= 0xFDEF);
}

/* What stands for character `c`: itself; for a control character of ASCII its
** picture (U+2400 and following); for what may not be shown at all, U+FFFD. */
static uint32_t visible(uint32_t c) {
  if (c < 0x20) return 0x2400 + c;
  if (c == 0x7F) return 0x2421;
  if (c < 0xA0 && c >= 0x80) return 0xFFFD;
  if (turns_direction(c) || is_noncharacter(c) || c == 0x2028 || c == 0x2029) return 0xFFFD;
  return c;
}

static uint32_t decode(const unsigned char *b, size_t length) {
  if (length == 1) return b[0];
  if (length == 2) return (b[0] & 0x1Fu) << 6 | (b[1] & 0x3Fu);
  if (length == 3) return (b[0] & 0x0Fu) << 12 | (b[1] & 0x3Fu) << 6 | (b[2] & 0x3Fu);
  return (b[0] & 0x07u) << 18 | (b[1] & 0x3Fu) << 12 | (b[2] & 0x3Fu) << 6 | (b[3] & 0x3Fu);
}

void append_visible(sqlite3_str *out, const char *text, size_t size) {
  const unsigned char *bytes = (const unsigned char *)text;
  for (size_t at = 0; at < size;) {
    size_t length = utf8_character_size(bytes + at, size - at);
    uint32_t c = length > 0 ? decode(bytes + at, length) : 0xFFFD;
    if (length > 0 && visible(c) == c) {
      sqlite3_str_append(out, text + at, (int)length);
    } else {
      uint32_t v = visible(c); /* U+2400 to U+2421, or U+FFFD: three bytes */
      const char shown[3] = {(char)(0xE0 | v >> 12), (char)(0x80 | (v >> 6 & 0x3F)),
                             (char)(0x80 | (v & 0x3F))};
      sqlite3_str_append(out, shown, 3);
    }
    at += length > 0 ? length : 1;
  }
}

void escape_xml(sqlite3_str *out, const char *text, size_t size) {
  static const char special[] = "&<>\"'";
  static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
  size_t start = 0;
  for (size_t i = 0; i <= size; i++) {
    const char *found = i < size && text[i] != '\0' ? strchr(special, text[i]) : NULL;
    if (i < size && found == NULL) continue;
    append_visible(out, text + start, i - start);
    if (found != NULL) sqlite3_str_appendall(out, entities[found - special]);
    start = i + 1;
  }
}
