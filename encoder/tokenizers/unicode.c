/*
** unicode.c: UTF-8, decomposition, combining classes, lower case, columns. The
** only file that includes utf8proc.
**
** But for columns, each function gives the answer of one fixed Unicode version,
** the one that the reference has built in, whatever version utf8proc is of (14 or
** later: 2.7 and on). Decompositions, combining classes and lower case do not
** change once a character is assigned (Unicode Character Encoding Stability
** Policies), so it is enough to know which characters a version lacks or utf8proc
** may lack.
*/
#include "pipeline.h"

#include <utf8proc.h>

/* ---- UTF-8 -------------------------------------------------------------- */

uint32_t unicode_next(const char *text, size_t size, size_t *at) {
  const unsigned char *s = (const unsigned char *)text;
  size_t i = *at;
  uint32_t c = s[i++];
  unsigned low = 0x80, high = 0xBF; /* of the next byte: Unicode, table 3-7 */
  int more = 0;
  if (c < 0x80) {
    *at = i;
    return c;
  }
  if (c >= 0xC2 && c <= 0xDF) {
    more = 1, c &= 0x1F;
  } else if (c >= 0xE0 && c <= 0xEF) {
    if (c == 0xE0) low = 0xA0;
    if (c == 0xED) high = 0x9F;
    more = 2, c &= 0x0F;
  } else if (c >= 0xF0 && c <= 0xF4) {
    if (c == 0xF0) low = 0x90;
    if (c == 0xF4) high = 0x8F;
    more = 3, c &= 0x07;
  } else {
    c = 0xFFFD;
  }
  for (; more > 0; more--, i++, low = 0x80, high = 0xBF) {
    if (i >= size || s[i] < low || s[i] > high) {
      *at = i;
      return 0xFFFD;
    }
    c = c << 6 | (s[i] & 0x3Fu);
  }
  *at = i;
  return c;
}

uint32_t unicode_previous(const char *text, size_t at, size_t *begin) {
  for (size_t back = at < 4 ? at : 4; back > 1; back--) {
    size_t i = at - back;
    uint32_t c = unicode_next(text, at, &i);
    if (i == at && (c != 0xFFFD || back == 3)) {
      *begin = at - back;
      return c;
    }
  }
  *begin = at - 1;
  return (unsigned char)text[at - 1] < 0x80 ? (unsigned char)text[at - 1] : 0xFFFD;
}

size_t unicode_put(uint32_t c, char *out) {
  if (c < 0x80) {
    out[0] = (char)c;
    return 1;
  }
  if (c < 0x800) {
    out[0] = (char)(0xC0 | c >> 6);
    out[1] = (char)(0x80 | (c & 0x3F));
    return 2;
  }
  if (c < 0x10000) {
    out[0] = (char)(0xE0 | c >> 12);
    out[1] = (char)(0x80 | (c >> 6 & 0x3F));
    out[2] = (char)(0x80 | (c & 0x3F));
    return 3;
  }
  out[0] = (char)(0xF0 | c >> 18);
  out[1] = (char)(0x80 | (c >> 12 & 0x3F));
  out[2] = (char)(0x80 | (c >> 6 & 0x3F));
  out[3] = (char)(0x80 | (c & 0x3F));
  return 4;
}

int unicode_is_utf8(const char *text, size_t size) {
  for (size_t at = 0; at < size;) {
    size_t start = at;
    if (unicode_next(text, size, &at) == 0xFFFD &&
        (at - start != 3 || (unsigned char)text[start] != 0xEF ||
         (unsigned char)text[start + 1] != 0xBF || (unsigned char)text[start + 2] != 0xBD))
      return 0;
  }
  return 1;
}

/* ---- Sets of characters -------------------------------------------------- */

int unicode_is_space(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* The ranges of the original BERT, with the reference's slip: extension E
** begins at U+2B920 instead of U+2B820. */
int unicode_is_chinese(uint32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

int unicode_in_ranges(const unicode_range *table, size_t count, uint32_t c) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (c > table[middle].last)
      low = middle + 1;
    else
      high = middle;
  }
  return low < count && c >= table[low].first;
}

/* ---- Decomposition, Unicode 9.0 ------------------------------------------ */

/* The characters above U+FFFF that decompose in Unicode 9.0, which is what the
** crate unicode-normalization-alignments 0.1.12 has. Later versions added some
** there (U+11938 in 13.0, seventeen in 16.0) and none below. */
static const unicode_range decomposed_9[] = {
    {0x1109A, 0x1109A}, {0x1109C, 0x1109C}, {0x110AB, 0x110AB}, {0x1112E, 0x1112F},
    {0x1134B, 0x1134C}, {0x114BB, 0x114BC}, {0x114BE, 0x114BE}, {0x115BA, 0x115BB},
    {0x1D15E, 0x1D164}, {0x1D1BB, 0x1D1C0}, {0x2F800, 0x2FA1D}};

/* Hangul syllables decompose by arithmetic: Unicode, section 3.12. */
static int decompose_hangul(uint32_t syllable, uint32_t *out) {
  uint32_t vowel = syllable / 28, final = syllable % 28;
  out[0] = 0x1100 + vowel / 21;
  out[1] = 0x1161 + vowel % 21;
  out[2] = 0x11A7 + final;
  return final == 0 ? 2 : 3;
}

int unicode_decompose(uint32_t c, uint32_t *out) {
  utf8proc_int32_t parts[UNICODE_DECOMPOSED];
  int class = 0;
  utf8proc_ssize_t count;
  out[0] = c;
  if (c >= 0xAC00 && c <= 0xD7A3) return decompose_hangul(c - 0xAC00, out);
  if (c < 0xC0 || utf8proc_get_property((utf8proc_int32_t)c)->decomp_seqindex == UINT16_MAX)
    return 1;
  if (c > 0xFFFF && !unicode_in_ranges(decomposed_9, sizeof decomposed_9 / sizeof *decomposed_9, c))
    return 1;
  count = utf8proc_decompose_char((utf8proc_int32_t)c, parts, UNICODE_DECOMPOSED,
                                  UTF8PROC_DECOMPOSE, &class);
  if (count < 1 || count > UNICODE_DECOMPOSED) return 1;
  for (int i = 0; i < (int)count; i++) out[i] = (uint32_t)parts[i];
  return (int)count;
}

int unicode_decompose_compatible(uint32_t c, uint32_t *out) {
  utf8proc_int32_t parts[UNICODE_COMPATIBLE];
  int class = 0;
  utf8proc_ssize_t count;
  if (!unicode_is_compatible(c)) return unicode_decompose(c, out);
  out[0] = c;
  count = utf8proc_decompose_char((utf8proc_int32_t)c, parts, UNICODE_COMPATIBLE,
                                  UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, &class);
  if (count < 1 || count > UNICODE_COMPATIBLE) return 1;
  for (int i = 0; i < (int)count; i++) out[i] = (uint32_t)parts[i];
  return (int)count;
}

int unicode_is_composed(uint32_t c) {
  uint32_t parts[UNICODE_DECOMPOSED];
  utf8proc_int32_t text[UNICODE_DECOMPOSED + 1] = {0};
  int count = unicode_decompose(c, parts);
  for (int i = 0; i < count; i++) text[i] = (utf8proc_int32_t)parts[i];
  return utf8proc_normalize_utf32(text, count, UTF8PROC_COMPOSE | UTF8PROC_STABLE) == 1 &&
         text[0] == (utf8proc_int32_t)c;
}

/* Characters of Unicode 9.0 with a combining class that were no nonspacing
** marks in Unicode 8.0: spacing ones, and those that 9.0 added. With the marks
** of 8.0 these are all that have a class in 9.0. */
static const unicode_range combining_9[] = {
    {0x08D4, 0x08E1},   {0x1B44, 0x1B44},   {0x1BAA, 0x1BAA},   {0x1BF2, 0x1BF3},
    {0x1DFB, 0x1DFB},   {0x302E, 0x302F},   {0xA953, 0xA953},   {0xA9C0, 0xA9C0},
    {0x111C0, 0x111C0}, {0x11235, 0x11235}, {0x1134D, 0x1134D}, {0x11442, 0x11442},
    {0x11446, 0x11446}, {0x116B6, 0x116B6}, {0x11C3F, 0x11C3F}, {0x1D165, 0x1D166},
    {0x1D16D, 0x1D172}, {0x1E000, 0x1E006}, {0x1E008, 0x1E018}, {0x1E01B, 0x1E021},
    {0x1E023, 0x1E024}, {0x1E026, 0x1E02A}, {0x1E944, 0x1E94A}};

int unicode_combining_class(uint32_t c) {
  int class = c < 0x300 ? 0 : utf8proc_get_property((utf8proc_int32_t)c)->combining_class;
  if (class == 0 || unicode_is_mark(c) ||
      unicode_in_ranges(combining_9, sizeof combining_9 / sizeof *combining_9, c))
    return class;
  return 0;
}

/* ---- Lower case, Unicode 17.0 -------------------------------------------- */

/* Capital letters that Unicode 15 to 17 added: first and last of those that
** become the one `distance` behind, every `step`. */
static const struct lower_range {
  uint32_t first, last;
  int distance, step;
} lower_15_17[] = {
    {0x1C89, 0x1C89, 1, 1},              /* Cyrillic, 16.0 */
    {0xA7CB, 0xA7CB, 0x264 - 0xA7CB, 1}, /* Latin, 16.0 */
    {0xA7CC, 0xA7CE, 1, 2},              /* Latin, 16.0 and 17.0 */
    {0xA7D2, 0xA7D4, 1, 2},              /* Latin, 17.0 */
    {0xA7DA, 0xA7DA, 1, 1},              /* Latin, 16.0 */
    {0xA7DC, 0xA7DC, 0x19B - 0xA7DC, 1}, /* Latin, 16.0 */
    {0x10D50, 0x10D65, 32, 1},           /* Garay, 16.0 */
    {0x16EA0, 0x16EB8, 27, 1},           /* Beria Erfe, 17.0 */
};

int unicode_lower(uint32_t c, uint32_t *out) {
  out[0] = c;
  if (c < 0x80) {
    if (c >= 'A' && c <= 'Z') out[0] = c + 32;
    return 1;
  }
  if (c == 0x130) { /* the only capital whose lower case is two characters */
    out[0] = 'i', out[1] = 0x307;
    return 2;
  }
  for (size_t i = 0; i < sizeof lower_15_17 / sizeof *lower_15_17; i++) {
    const struct lower_range *r = &lower_15_17[i];
    if (c >= r->first && c <= r->last && (c - r->first) % (uint32_t)r->step == 0) {
      out[0] = (uint32_t)((int32_t)c + r->distance);
      return 1;
    }
  }
  out[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
  return 1;
}

int unicode_maps_to_itself(uint32_t c) {
  const utf8proc_property_t *p = utf8proc_get_property((utf8proc_int32_t)c);
  uint32_t lower[2];
  if (p->decomp_seqindex != UINT16_MAX || p->combining_class != 0) return 0;
  if (c >= 0xAC00 && c <= 0xD7A3) return 0;
  if (p->category == UTF8PROC_CATEGORY_LL || p->category == UTF8PROC_CATEGORY_LO) return 1;
  return unicode_lower(c, lower) == 1 && lower[0] == c;
}

/* ---- Columns of a terminal ----------------------------------------------- */

/* Here any version will do, and characters that utf8proc does not know yet are
** taken for what their block is reserved for: ideographs and pictographs. */
static int is_reserved_wide(uint32_t c) {
  return (c >= 0x1FA70 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD);
}

int unicode_columns(uint32_t c) {
  if (c >= 0x20 && c < 0x7F) return 1;
  if ((c >= 0x1160 && c <= 0x11FF) || (c >= 0xD7B0 && c <= 0xD7FF))
    return 0; /* vowels and finals, drawn into the syllable that a wide initial began */
  if (utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_CN)
    return is_reserved_wide(c) ? 2 : 1;
  return utf8proc_charwidth((utf8proc_int32_t)c);
}

int unicode_is_pictograph(uint32_t c) {
  return utf8proc_get_property((utf8proc_int32_t)c)->boundclass ==
         UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC;
}
