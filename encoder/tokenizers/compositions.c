/*
** compositions.c: pairs of characters that compose to one (NFC), Unicode 9.
**
** A composition undoes a canonical decomposition, so the table is made of
** those: a character composes if NFC leaves it alone, and then of what all but
** the last character of its decomposition compose to, and the last. Decomposing
** and composing never change for characters that are assigned, so any utf8proc
** answers as Unicode 9 does for the characters that decompose there.
*/
#include "characters.h"

enum { COMPOSITION_BITS = 11, COMPOSITION_SLOTS = 1 << COMPOSITION_BITS };

static uint32_t hash_pair(uint32_t first, uint32_t second) {
  return ((first * 31 + second) * 0x9E3779B1u) >> (32 - COMPOSITION_BITS);
}

/* The slot of the pair, or the free one for it. */
static composition *find_pair(const compositions *table, uint32_t first, uint32_t second) {
  for (uint32_t at = hash_pair(first, second);; at++) {
    composition *slot = &table->slots[at & (COMPOSITION_SLOTS - 1)];
    if (slot->first == 0 || (slot->first == first && slot->second == second)) return slot;
  }
}

/* Enters the characters from `first` to `last` whose decompositions have `count`
** characters: shorter ones must be there. */
static void enter(compositions *table, uint32_t first, uint32_t last, int count) {
  for (uint32_t c = first; c <= last; c++) {
    uint32_t parts[UNICODE_DECOMPOSED], base;
    if (unicode_decompose(c, parts) != count || !unicode_is_composed(c)) continue;
    base = parts[0];
    for (int i = 1; i + 1 < count && base != 0; i++)
      base = find_pair(table, base, parts[i])->composed;
    if (base != 0)
      *find_pair(table, base, parts[count - 1]) = (composition){base, parts[count - 1], c};
  }
}

bert_status compositions_build(compositions *table, bert_error *error) {
  table->slots = memory_zero(COMPOSITION_SLOTS * sizeof *table->slots);
  if (table->slots == NULL) return error_nomem(error, "building the normalizer");
  for (int count = 2; count <= UNICODE_DECOMPOSED; count++) {
    enter(table, 0xC0, 0x30FF, count);
    enter(table, 0x11000, 0x115FF, count);
  }
  return BERT_OK;
}

void compositions_free(compositions *table) {
  memory_free(table->slots);
  table->slots = NULL;
}

/* Unicode, section 3.12: a syllable of an initial and a vowel, or of one without
** a final and a final. */
static uint32_t compose_hangul(uint32_t first, uint32_t second) {
  if (first >= 0x1100 && first < 0x1113 && second >= 0x1161 && second < 0x1176)
    return 0xAC00 + ((first - 0x1100) * 21 + (second - 0x1161)) * 28;
  if (first >= 0xAC00 && first <= 0xD7A3 && (first - 0xAC00) % 28 == 0 && second > 0x11A7 &&
      second < 0x11C3)
    return first + (second - 0x11A7);
  return 0;
}

uint32_t unicode_compose(const compositions *table, uint32_t first, uint32_t second) {
  uint32_t hangul = compose_hangul(first, second);
  if (hangul != 0) return hangul;
  return find_pair(table, first, second)->composed;
}
