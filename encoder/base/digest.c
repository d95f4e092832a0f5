/*
** digest.c: a 128-bit hash of bytes that is the same on every machine. The only
** file that includes xxhash.h, whose functions become part of this file: nothing
** is linked.
**
** XXH3 (Collet) reads memory as fast as it comes, and its results have been fixed
** since version 0.8.0. It is no cryptographic hash: whoever may choose the bytes
** can make two texts with one digest.
*/
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

#include "base.h"

_Static_assert(XXH_VERSION_NUMBER >= 800, "XXH3 differs before xxHash 0.8.0");
_Static_assert(sizeof(XXH3_state_t) <= sizeof(digest_stream), "a digest has room for the state");

static void write_canonical(XXH128_hash_t hash, unsigned char out[DIGEST_BYTES]) {
  XXH128_canonical_t canonical;
  _Static_assert(sizeof canonical == DIGEST_BYTES, "128 bits");
  XXH128_canonicalFromHash(&canonical, hash);
  memcpy(out, &canonical, sizeof canonical);
}

void digest_bytes(const void *bytes, size_t size, unsigned char out[DIGEST_BYTES]) {
  write_canonical(XXH3_128bits(size > 0 ? bytes : "", size), out);
}

/* The state goes in and out by copying, which is cheap: so a digest_stream need
** not have the alignment of xxHash's type, nor base.h know that type. */
void digest_begin(digest_stream *d) {
  XXH3_state_t state;
  memset(&state, 0, sizeof state);
  XXH3_128bits_reset(&state);
  memcpy(d, &state, sizeof state);
}

void digest_add(digest_stream *d, const void *bytes, size_t size) {
  XXH3_state_t state;
  if (size == 0) return;
  memcpy(&state, d, sizeof state);
  XXH3_128bits_update(&state, bytes, size);
  memcpy(d, &state, sizeof state);
}

void digest_end(const digest_stream *d, unsigned char out[DIGEST_BYTES]) {
  XXH3_state_t state;
  memcpy(&state, d, sizeof state);
  write_canonical(XXH3_128bits_digest(&state), out);
}

void digest_text(const unsigned char digest[DIGEST_BYTES], char text[DIGEST_TEXT]) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < DIGEST_BYTES; i++) {
    text[2 * i] = digits[digest[i] >> 4];
    text[2 * i + 1] = digits[digest[i] & 15];
  }
  text[DIGEST_TEXT - 1] = 0;
}
