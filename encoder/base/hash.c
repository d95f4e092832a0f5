/*
** hash.c: a hash of bytes under a secret seed.
**
** SipHash-1-3 (Aumasson and Bernstein 2012, with the rounds of later practice):
** whoever does not know the seed cannot make keys that collide, so that a
** crafted file cannot make a hash table as slow as a list.
*/
#include <stdint.h>
#include <string.h>
#include <time.h>

#if defined(__linux__)
#include <sys/random.h>
#endif

#include "base.h"

static uint64_t rotate(uint64_t x, int bits) {
  return x << bits | x >> (64 - bits);
}

static void sip_round(uint64_t v[4]) {
  v[0] += v[1];
  v[1] = rotate(v[1], 13) ^ v[0];
  v[0] = rotate(v[0], 32);
  v[2] += v[3];
  v[3] = rotate(v[3], 16) ^ v[2];
  v[0] += v[3];
  v[3] = rotate(v[3], 21) ^ v[0];
  v[2] += v[1];
  v[1] = rotate(v[1], 17) ^ v[2];
  v[2] = rotate(v[2], 32);
}

static void absorb(uint64_t v[4], uint64_t word) {
  v[3] ^= word;
  sip_round(v);
  v[0] ^= word;
}

uint64_t hash_bytes(const uint64_t seed[2], const void *bytes, size_t size) {
  uint64_t v[4] = {seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du,
                   seed[0] ^ 0x6c7967656e657261u, seed[1] ^ 0x7465646279746573u};
  const char *at = bytes;
  size_t left = size;
  uint64_t word;
  for (; left >= 8; left -= 8, at += 8) {
    memcpy(&word, at, 8);
    absorb(v, word);
  }
  word = 0;
  if (left > 0) memcpy(&word, at, left);
  absorb(v, word | (uint64_t)size << 56);
  v[2] ^= 0xFF;
  for (int i = 0; i < 3; i++) sip_round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void hash_seed(uint64_t seed[2]) {
#if defined(__linux__)
  if (getrandom(seed, 2 * sizeof *seed, GRND_NONBLOCK) == (ssize_t)(2 * sizeof *seed)) {
    seed[0] |= 1;
    return;
  }
#endif
  /* The time to the nanosecond and where this process happens to lie. */
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  seed[0] = ((uint64_t)now.tv_nsec * 0x9E3779B97F4A7C15u) | 1;
  seed[1] = (uint64_t)(uintptr_t)&now ^ ((uint64_t)(uintptr_t)seed << 20) ^ (uint64_t)now.tv_sec;
}
