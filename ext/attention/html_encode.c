/*
** html_encode.c: numbers and texts in a form that fits inside HTML.
*/
#include "html.h"

#include <math.h>
#include <string.h>

/* ---- Texts --------------------------------------------------------------- */

void html_append_text(sqlite3_str *out, const char *text, size_t size) {
  const unsigned char *bytes = (const unsigned char *)text;
  sqlite3_str_appendchar(out, 1, '"');
  for (size_t at = 0; at < size;) {
    size_t length = utf8_character_size(bytes + at, size - at);
    unsigned char c = bytes[at];
    if (length == 0)
      sqlite3_str_append(out, "\xEF\xBF\xBD", 3);
    else if (c < 0x20 || c == 0x7f || strchr("<>&\"\\'", c) != NULL)
      sqlite3_str_appendf(out, "\\u%04x", c);
    else
      sqlite3_str_append(out, text + at, (int)length);
    at += length > 0 ? length : 1;
  }
  sqlite3_str_appendchar(out, 1, '"');
}

void html_append_optional(sqlite3_str *out, const char *text) {
  if (text == NULL)
    sqlite3_str_appendall(out, "null");
  else
    html_append_text(out, text, strlen(text));
}

void html_append_number(sqlite3_str *out, double number) {
  if (isfinite(number))
    sqlite3_str_appendf(out, "%.5g", number);
  else
    sqlite3_str_appendall(out, "null");
}

/* ---- Base64 -------------------------------------------------------------- */

sqlite3_uint64 html_base64_size(sqlite3_uint64 bytes) {
  return 4 * ((bytes + 2) / 3) + 3;
}

/* Three bytes, of which the last `missing` are not there. */
static void encode_three(const unsigned char *from, int missing, char *to) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  unsigned bits = (unsigned)from[0] << 16;
  if (missing < 2) bits |= (unsigned)from[1] << 8;
  if (missing < 1) bits |= from[2];
  to[0] = digits[bits >> 18];
  to[1] = digits[bits >> 12 & 63];
  to[2] = '=';
  to[3] = '=';
  if (missing < 2) to[2] = digits[bits >> 6 & 63];
  if (missing < 1) to[3] = digits[bits & 63];
}

static void append_base64(sqlite3_str *out, const unsigned char *bytes, size_t size) {
  char piece[4096];
  int filled = 0;
  sqlite3_str_appendchar(out, 1, '"');
  for (size_t at = 0; at < size; at += 3) {
    encode_three(bytes + at, size - at < 3 ? (int)(3 - (size - at)) : 0, piece + filled);
    filled += 4;
    if (filled < (int)sizeof piece) continue;
    sqlite3_str_append(out, piece, filled);
    filled = 0;
  }
  sqlite3_str_append(out, piece, filled);
  sqlite3_str_appendchar(out, 1, '"');
}

/* ---- Numbers ------------------------------------------------------------- */

void html_buffer_clear(html_buffer *b) {
  sqlite3_free(b->bytes);
  memset(b, 0, sizeof *b);
}

static bert_status reserve(html_buffer *b, sqlite3_uint64 size, bert_error *error) {
  if (b->size >= size) return BERT_OK;
  html_buffer_clear(b);
  b->bytes = sqlite3_malloc64(size);
  if (b->bytes == NULL) return error_nomem(error, "writing the page");
  b->size = size;
  return BERT_OK;
}

/* Little-endian whatever the machine. */
static unsigned char *put_16(unsigned char *to, unsigned value) {
  *to++ = (unsigned char)(value & 0xff);
  *to++ = (unsigned char)(value >> 8 & 0xff);
  return to;
}

static float largest_magnitude(const float *numbers, size_t count) {
  float largest = 0;
  for (size_t n = 0; n < count; n++)
    if (fabsf(numbers[n]) > largest) largest = fabsf(numbers[n]);
  return largest;
}

bert_status html_append_weights(sqlite3_str *out, html_buffer *b, const float *weights,
                                size_t count, int bits, bert_error *error) {
  size_t size = 2 * count + count * count * (size_t)(bits / 8);
  double full = bits == 8 ? 255 : 65535;
  bert_status status = reserve(b, size + 1, error);
  if (status != BERT_OK) return status;
  unsigned char *scale_to = b->bytes, *to = b->bytes + 2 * count;
  for (size_t row = 0; row < count; row++) {
    const float *w = weights + row * count;
    double scale = fmin(ceil((double)largest_magnitude(w, count) * 65535), 65535);
    double steps = scale > 0 ? full * 65535 / scale : 0; /* of a weight of 1 */
    scale_to = put_16(scale_to, (unsigned)scale);
    for (size_t n = 0; n < count; n++) {
      unsigned share = (unsigned)fmin(floor((double)w[n] * steps + 0.5), full);
      if (bits == 8)
        *to++ = (unsigned char)share;
      else
        to = put_16(to, share);
    }
  }
  append_base64(out, b->bytes, size);
  return BERT_OK;
}

bert_status html_append_vectors(sqlite3_str *out, html_buffer *b, const float *vectors,
                                size_t count, size_t size, size_t stride, bert_error *error) {
  size_t bytes = count * (4 + 2 * size);
  bert_status status = reserve(b, bytes + 1, error);
  if (status != BERT_OK) return status;
  unsigned char *scale_to = b->bytes, *to = b->bytes + 4 * count;
  for (size_t row = 0; row < count; row++) {
    const float *v = vectors + row * stride;
    float scale = largest_magnitude(v, size);
    uint32_t pattern;
    memcpy(&pattern, &scale, sizeof pattern);
    scale_to = put_16(put_16(scale_to, pattern & 0xffff), pattern >> 16);
    for (size_t n = 0; n < size; n++) {
      double share = scale > 0 ? (double)v[n] / (double)scale * 32767 : 0;
      to = put_16(to, (unsigned)((int)floor(share + 0.5) & 0xffff));
    }
  }
  append_base64(out, b->bytes, bytes);
  return BERT_OK;
}
