/*
** json.c: a strict JSON reader for files that may be hostile.
**
** One pass over a private copy of the text, in which strings are unescaped
** where they stand: an unescaped string is never longer than it was, and its
** closing quote has room for the NUL. So a document costs one block for the
** text and a few for the values, and where a key stood is known from its
** address. Recursion is as deep as the nesting, which is limited.
*/
#include <stdio.h>
#include <string.h>

#include "base.h"

/* ---- Documents --------------------------------------------------------- */

enum {
  FIRST_CHUNK = 64,
  LARGEST_CHUNK = 16384,
  FEW_MEMBERS = 8, /* up to which keys are compared pair by pair */
  PADDING = 8      /* NULs behind the text, so that 8 bytes can be read at once */
};

typedef struct chunk {
  struct chunk *next;
  size_t used, room;
  json_value values[];
} chunk;

struct json_document {
  char *text;
  chunk *chunks; /* the newest first */
  const json_value *root;
};

typedef struct parser {
  json_document *document;
  const char *source; /* the caller's text, as it was before unescaping */
  char *text, *at, *end;
  int depth;
  uint64_t seed[2];         /* of key hashes, 0 until needed */
  const json_value **table; /* scratch of the duplicate check */
  size_t table_room;
  bert_error *error;
} parser;

void json_free(json_document *document) {
  if (document == NULL) return;
  while (document->chunks != NULL) {
    chunk *next = document->chunks->next;
    memory_free(document->chunks);
    document->chunks = next;
  }
  memory_free(document->text);
  memory_free(document);
}

const json_value *json_root(const json_document *document) {
  return document == NULL ? NULL : document->root;
}

static json_value *new_value(parser *p) {
  chunk *c = p->document->chunks;
  if (c == NULL || c->used == c->room) {
    size_t room = c == NULL ? FIRST_CHUNK : c->room * 2;
    if (room > LARGEST_CHUNK) room = LARGEST_CHUNK;
    chunk *made = memory_alloc(sizeof(chunk) + room * sizeof(json_value));
    if (made == NULL) return NULL;
    made->next = c;
    made->used = 0;
    made->room = room;
    p->document->chunks = c = made;
  }
  json_value *v = &c->values[c->used++];
  memset(v, 0, sizeof *v);
  return v;
}

/* ---- Errors ------------------------------------------------------------ */

/* "byte 17 (line 2): <what>". */
static bert_status wrong(parser *p, const char *at, const char *what) {
  size_t line = 1;
  size_t offset = (size_t)(at - p->text);
  for (size_t i = 0; i < offset; i++) line += p->source[i] == '\n';
  return error_set(p->error, BERT_INVALID, "byte %zu (line %zu): %s", offset, line, what);
}

static bert_status expected(parser *p, const char *what) {
  char text[160];
  unsigned char c = (unsigned char)*p->at;
  if (p->at >= p->end)
    snprintf(text, sizeof text, "expected %s, but the text ends", what);
  else if (c > 0x20 && c < 0x7F)
    snprintf(text, sizeof text, "expected %s, not '%c'", what, c);
  else
    snprintf(text, sizeof text, "expected %s, not the byte 0x%02X", what, c);
  return wrong(p, p->at, text);
}

static bert_status no_memory(parser *p) {
  return error_nomem(p->error, "reading JSON");
}

/* ---- Strings ----------------------------------------------------------- */

/* Bytes of the UTF-8 character at p->at, which is not ASCII; 0 when it is not
** well-formed (table 3-7 of the Unicode Standard). NULs follow the text, so a
** sequence that the end cuts is seen as malformed. */
static size_t utf8_size(const char *text) {
  const unsigned char *c = (const unsigned char *)text;
  unsigned char low = 0x80, high = 0xBF;
  size_t size = 0;
  if (c[0] >= 0xC2 && c[0] <= 0xDF)
    size = 2;
  else if (c[0] >= 0xE0 && c[0] <= 0xEF)
    size = 3;
  else if (c[0] >= 0xF0 && c[0] <= 0xF4)
    size = 4;
  if (c[0] == 0xE0) low = 0xA0;
  if (c[0] == 0xED) high = 0x9F;
  if (c[0] == 0xF0) low = 0x90;
  if (c[0] == 0xF4) high = 0x8F;
  if (size == 0 || c[1] < low || c[1] > high) return 0;
  for (size_t i = 2; i < size; i++)
    if ((c[i] & 0xC0) != 0x80) return 0;
  return size;
}

static char *put_utf8(char *out, uint32_t c) {
  if (c < 0x80) {
    *out++ = (char)c;
    return out;
  }
  if (c >= 0x10000) {
    *out++ = (char)(0xF0 | c >> 18);
    *out++ = (char)(0x80 | (c >> 12 & 0x3F));
  } else if (c >= 0x800)
    *out++ = (char)(0xE0 | c >> 12);
  if (c >= 0x800)
    *out++ = (char)(0x80 | (c >> 6 & 0x3F));
  else
    *out++ = (char)(0xC0 | c >> 6);
  *out++ = (char)(0x80 | (c & 0x3F));
  return out;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* The four hexadecimal digits at `at`; -1 when there are no four. */
static int32_t hex4(const char *at) {
  int32_t value = 0;
  for (int i = 0; i < 4; i++) {
    int digit = hex_digit(at[i]);
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

/* "\uXXXX", or two of them for a surrogate pair, at p->at. */
static bert_status unicode_escape(parser *p, char **out) {
  const char *start = p->at;
  int32_t c = hex4(p->at + 2);
  if (c < 0) return wrong(p, start, "expected four hexadecimal digits after \\u");
  p->at += 6;
  if (c == 0) return wrong(p, start, "\\u0000 is not allowed in a string");
  if (c >= 0xD800 && c <= 0xDFFF) {
    int32_t low = c <= 0xDBFF && p->at[0] == '\\' && p->at[1] == 'u' ? hex4(p->at + 2) : -1;
    if (low < 0xDC00 || low > 0xDFFF) return wrong(p, start, "a surrogate without its other half");
    p->at += 6;
    c = 0x10000 + (c - 0xD800) * 0x400 + (low - 0xDC00);
  }
  *out = put_utf8(*out, (uint32_t)c);
  return BERT_OK;
}

static bert_status escape(parser *p, char **out) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  char c = p->at[1];
  if (c == 'u') return unicode_escape(p, out);
  const char *found = c == '\0' ? NULL : strchr(from, c);
  if (found == NULL) return wrong(p, p->at, "an unknown escape in a string");
  *(*out)++ = to[found - from];
  p->at += 2;
  return BERT_OK;
}

/* 1 when none of 8 bytes is a quote, a backslash, a control character or part
** of a character beyond ASCII. A byte test can only be wrong in a byte above
** one that is really special, which does not change the answer. */
static int plain8(const char *at) {
  const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
  uint64_t x;
  memcpy(&x, at, 8);
  uint64_t quote = x ^ ones * '"', backslash = x ^ ones * '\\';
  return ((x | (x - ones * 0x20) | (quote - ones) | (backslash - ones)) & tops) == 0;
}

/* The string whose opening quote is at p->at, unescaped where it stands. */
static bert_status parse_string(parser *p, const char **string, size_t *size) {
  const char *opening = p->at++;
  char *start = p->at, *out = p->at;
  for (;;) {
    if (out == p->at) { /* nothing has moved yet: step over what is plain */
      while (p->end - p->at >= 8 && plain8(p->at)) p->at += 8;
      out = p->at;
    }
    unsigned char c = (unsigned char)*p->at;
    if (p->at >= p->end) return wrong(p, opening, "a string without its closing quote");
    if (c == '"') break;
    if (c == '\\') {
      bert_status status = escape(p, &out);
      if (status != BERT_OK) return status;
      continue;
    }
    if (c < 0x20) return wrong(p, p->at, "a control character in a string is not escaped");
    size_t bytes = c < 0x80 ? 1 : utf8_size(p->at);
    if (bytes == 0) return wrong(p, p->at, "a string is not UTF-8");
    memmove(out, p->at, bytes);
    out += bytes;
    p->at += bytes;
  }
  p->at++;
  *out = '\0';
  *string = start;
  *size = (size_t)(out - start);
  return BERT_OK;
}

/* ---- Numbers ----------------------------------------------------------- */

static int digit_at(const parser *p) {
  return *p->at >= '0' && *p->at <= '9';
}

static bert_status parse_digits(parser *p, const char *what) {
  if (!digit_at(p)) return expected(p, what);
  while (digit_at(p)) p->at++;
  return BERT_OK;
}

/* Sets the integer of text[size], an optional minus and digits, if it fits. */
static void read_integer(const char *text, size_t size, json_value *v) {
  int negative = *text == '-';
  uint64_t value = 0, limit = (uint64_t)INT64_MAX + (uint64_t)negative;
  for (size_t i = (size_t)negative; i < size; i++) {
    uint64_t digit = (uint64_t)(text[i] - '0');
    if (value > (limit - digit) / 10) return;
    value = value * 10 + digit;
  }
  v->is_integer = 1;
  v->integer = negative ? (int64_t)(0 - value) : (int64_t)value;
}

static bert_status parse_number(parser *p, json_value *v) {
  char *start = p->at;
  int whole = 1;
  bert_status status = BERT_OK;
  if (*p->at == '-') p->at++;
  if (*p->at == '0')
    p->at++;
  else
    status = parse_digits(p, "a digit");
  if (status == BERT_OK && *p->at == '.') {
    whole = 0;
    p->at++;
    status = parse_digits(p, "a digit after the decimal point");
  }
  if (status == BERT_OK && (*p->at == 'e' || *p->at == 'E')) {
    whole = 0;
    p->at++;
    if (*p->at == '+' || *p->at == '-') p->at++;
    status = parse_digits(p, "a digit of the exponent");
  }
  if (status != BERT_OK) return status;
  size_t size = (size_t)(p->at - start);
  v->type = JSON_NUMBER;
  if (whole) read_integer(start, size, v);
  const double exact = 9007199254740992.0; /* 2^53 */
  if (v->is_integer && v->integer != 0 && (double)v->integer <= exact &&
      (double)v->integer >= -exact)
    v->number = (double)v->integer;
  else
    v->number = decimal_to_double(start, size);
  if (v->number - v->number != 0) return wrong(p, start, "a number too large for a double");
  return BERT_OK;
}

/* ---- Keys -------------------------------------------------------------- */

static int same_key(const json_value *a, const json_value *b) {
  return a->key_size == b->key_size && memcmp(a->key, b->key, a->key_size) == 0;
}

static bert_status duplicate(parser *p, const json_value *again) {
  char text[128];
  snprintf(text, sizeof text, "the key \"%s\" stands twice in one object",
           error_quote(again->key).text);
  return wrong(p, again->key - 1, text);
}

static bert_status check_few_keys(parser *p, const json_value *object) {
  for (const json_value *a = object->first; a != NULL; a = a->next)
    for (const json_value *b = object->first; b != a; b = b->next)
      if (same_key(a, b)) return duplicate(p, a);
  return BERT_OK;
}

/* No key of a finished object stands in it twice: time in proportion to the
** number of members. The table is at most half full. */
static bert_status check_keys(parser *p, const json_value *object) {
  if (object->size <= FEW_MEMBERS) return check_few_keys(p, object);
  size_t room = 16;
  while (room < object->size * 2) room *= 2;
  if (room > p->table_room) {
    memory_free(p->table);
    p->table_room = 0;
    p->table = memory_alloc(memory_product(room, sizeof *p->table));
    if (p->table == NULL) return no_memory(p);
    p->table_room = room;
  }
  if (p->seed[0] == 0) hash_seed(p->seed);
  memset(p->table, 0, room * sizeof *p->table);
  for (const json_value *v = object->first; v != NULL; v = v->next) {
    size_t slot = (size_t)hash_bytes(p->seed, v->key, v->key_size) & (room - 1);
    for (; p->table[slot] != NULL; slot = (slot + 1) & (room - 1))
      if (same_key(p->table[slot], v)) return duplicate(p, v);
    p->table[slot] = v;
  }
  return BERT_OK;
}

/* ---- Values ------------------------------------------------------------ */

static void skip_space(parser *p) {
  while (*p->at == ' ' || *p->at == '\n' || *p->at == '\r' || *p->at == '\t') p->at++;
}

static bert_status parse_value(parser *p, json_value *v);

/* A member of an object, from its key to the colon. */
static bert_status parse_key(parser *p, json_value *v) {
  size_t size = 0;
  skip_space(p);
  if (*p->at != '"') return expected(p, "a key in quotes");
  const char *start = p->at;
  bert_status status = parse_string(p, &v->key, &size);
  if (status != BERT_OK) return status;
  if (size > UINT32_MAX) return wrong(p, start, "a key of more than 4 GB");
  v->key_size = (uint32_t)size;
  skip_space(p);
  if (*p->at != ':') return expected(p, "':' after a key");
  p->at++;
  return BERT_OK;
}

static bert_status parse_members(parser *p, json_value *parent, char closing) {
  const json_value **link = &parent->first;
  for (;;) {
    json_value *v = new_value(p);
    if (v == NULL) return no_memory(p);
    bert_status status = closing == '}' ? parse_key(p, v) : BERT_OK;
    if (status == BERT_OK) status = parse_value(p, v);
    if (status != BERT_OK) return status;
    *link = v;
    link = &v->next;
    parent->size++;
    skip_space(p);
    if (*p->at == closing) return BERT_OK;
    if (*p->at != ',') return expected(p, closing == '}' ? "',' or '}'" : "',' or ']'");
    p->at++;
  }
}

static bert_status parse_container(parser *p, json_value *v) {
  char closing = *p->at == '{' ? '}' : ']';
  if (p->depth == JSON_MAX_DEPTH) return wrong(p, p->at, "nested too deep");
  v->type = closing == '}' ? JSON_OBJECT : JSON_ARRAY;
  p->depth++;
  p->at++;
  skip_space(p);
  bert_status status = *p->at == closing ? BERT_OK : parse_members(p, v, closing);
  if (status != BERT_OK) return status;
  p->at++;
  p->depth--;
  return closing == '}' ? check_keys(p, v) : BERT_OK;
}

static bert_status parse_word(parser *p, json_value *v, const char *word, json_type type) {
  size_t size = strlen(word);
  if (strncmp(p->at, word, size) != 0) return expected(p, "a value");
  p->at += size;
  v->type = type;
  return BERT_OK;
}

static bert_status parse_value(parser *p, json_value *v) {
  skip_space(p);
  switch (*p->at) {
  case '{':
  case '[': return parse_container(p, v);
  case '"': v->type = JSON_STRING; return parse_string(p, &v->string, &v->size);
  case 't': return parse_word(p, v, "true", JSON_TRUE);
  case 'f': return parse_word(p, v, "false", JSON_FALSE);
  case 'n': return parse_word(p, v, "null", JSON_NULL);
  default: break;
  }
  return *p->at == '-' || digit_at(p) ? parse_number(p, v) : expected(p, "a value");
}

static bert_status parse_document(parser *p) {
  json_value *root = new_value(p);
  if (root == NULL) return no_memory(p);
  bert_status status = parse_value(p, root);
  if (status != BERT_OK) return status;
  skip_space(p);
  if (p->at < p->end) return expected(p, "nothing more after the value");
  p->document->root = root;
  return BERT_OK;
}

bert_status json_parse(const char *text, size_t size, json_document **document, bert_error *error) {
  parser p = {0};
  p.error = error;
  p.source = text;
  p.document = memory_zero(sizeof *p.document);
  if (p.document == NULL) return no_memory(&p);
  p.text = p.document->text = memory_alloc((uint64_t)size + PADDING);
  bert_status status = BERT_OK;
  if (p.text == NULL) {
    status = no_memory(&p);
  } else {
    if (size > 0) memcpy(p.text, text, size);
    memset(p.text + size, 0, PADDING);
    p.at = p.text;
    p.end = p.text + size;
    status = parse_document(&p);
  }
  memory_free(p.table);
  if (status == BERT_OK)
    *document = p.document;
  else
    json_free(p.document);
  return status;
}
