/*
** decimal.c: decimal numbers to the nearest double.
**
** strtod reads "0.5" as 0 in a locale whose decimal point is a comma, and the
** host of a library sets the locale; so numbers are read here, in integers
** alone. Up to 19 digits with a small power of ten, which is what model files
** hold, take one multiplication or division of 128 bits; anything else is
** halved and doubled as a row of decimal digits until its binary exponent is
** known. Both round to nearest, ties to even, as IEEE 754 asks for.
*/
#include <math.h>
#include <string.h>

#include "base.h"

enum {
  FAST_DIGITS = 19, /* 10^19 - 1 fits 64 bits */
  FAST_POWER = 27,  /* 5^27 fits 64 bits */
  /* The midpoint of two doubles has at most 767 significant digits: beyond
  ** that it only matters whether anything other than 0 follows. */
  MAX_DIGITS = 770
};

#if defined(__SIZEOF_INT128__)
__extension__ typedef unsigned __int128 wide;

/* m * 2^exponent, a little more than that if `sticky`; m is not 0. The result
** must be in the range of normal numbers. */
static double wide_to_double(wide m, int exponent, int sticky) {
  uint64_t high = (uint64_t)(m >> 64);
  int bits = high != 0 ? 128 - __builtin_clzll(high) : 64 - __builtin_clzll((uint64_t)m);
  int drop = bits - 53;
  if (drop <= 0) return ldexp((double)(uint64_t)m, exponent);
  wide rest = m & (((wide)1 << drop) - 1), half = (wide)1 << (drop - 1);
  uint64_t kept = (uint64_t)(m >> drop);
  if (rest > half || (rest == half && (sticky || (kept & 1)))) kept++;
  return ldexp((double)kept, exponent + drop);
}

/* digits * 10^power, exactly rounded, where power is small. */
static double fast(uint64_t digits, int power) {
  uint64_t five = 1;
  for (int i = power < 0 ? -power : power; i > 0; i--) five *= 5;
  if (power >= 0) return wide_to_double((wide)digits * five, power, 0);
  /* Shifted so far that the quotient has at least 64 bits. */
  int shift = 64 + __builtin_clzll(digits);
  wide shifted = (wide)digits << shift;
  return wide_to_double(shifted / five, power - shift, shifted % five != 0);
}
#endif

/* 0.d[0]d[1]d[2]... * 10^point, without leading and trailing zeros. */
typedef struct decimal {
  int count;
  int64_t point;
  unsigned char d[MAX_DIGITS];
} decimal;

static void trim_zeros(decimal *x) {
  while (x->count > 0 && x->d[x->count - 1] == 0) x->count--;
}

static void divide(decimal *x, int bits) {
  uint64_t rest = 0, mask = ((uint64_t)1 << bits) - 1;
  int read = 0, written = 0, lost = 0;
  /* Digits of the quotient before the first that is not 0. */
  while (rest >> bits == 0) {
    rest = rest * 10 + (read < x->count ? x->d[read] : 0u);
    read++;
  }
  x->point -= read - 1;
  for (;;) {
    if (written < MAX_DIGITS)
      x->d[written++] = (unsigned char)(rest >> bits);
    else if (rest >> bits != 0)
      lost = 1;
    rest &= mask;
    if (read >= x->count && rest == 0) break;
    rest = rest * 10 + (read < x->count ? x->d[read] : 0u);
    read++;
  }
  x->count = written;
  if (lost) x->d[MAX_DIGITS - 1] |= 1;
  trim_zeros(x);
}

static void multiply(decimal *x, int bits) {
  unsigned char product[MAX_DIGITS + 20];
  int at = (int)sizeof product;
  uint64_t carry = 0;
  for (int i = x->count - 1; i >= 0 || carry > 0; i--) {
    uint64_t sum = carry + (i >= 0 ? (uint64_t)x->d[i] << bits : 0);
    product[--at] = (unsigned char)(sum % 10);
    carry = sum / 10;
  }
  int count = (int)sizeof product - at;
  x->point += count - x->count;
  int lost = 0;
  for (int i = MAX_DIGITS; i < count; i++) lost |= product[at + i] != 0;
  x->count = count < MAX_DIGITS ? count : MAX_DIGITS;
  memcpy(x->d, product + at, (size_t)x->count);
  if (lost) x->d[MAX_DIGITS - 1] |= 1;
  trim_zeros(x);
}

/* The integer nearest to x, ties to even; x is below 2^54. */
static uint64_t nearest_integer(const decimal *x) {
  uint64_t whole = 0;
  if (x->point < 0) return 0;
  for (int i = 0; i < x->point; i++) whole = whole * 10 + (i < x->count ? x->d[i] : 0u);
  if (x->point >= x->count) return whole;
  int next = x->d[x->point], last = x->point + 1 == x->count;
  if (next > 5 || (next == 5 && (!last || (whole & 1)))) whole++;
  return whole;
}

/* Powers of two by which 10^n may be multiplied or divided without passing 1. */
static int safe_bits(int64_t n) {
  return n > 19 ? 57 : n > 0 ? (int)(3 * n) : 1;
}

static double slow(decimal *x) {
  if (x->count == 0 || x->point < -330) return 0;
  if (x->point > 310) return INFINITY;
  int exponent = 0;
  while (x->point > 0) {
    int bits = safe_bits(x->point);
    divide(x, bits);
    exponent += bits;
  }
  while (x->point < 0 || x->d[0] < 5) {
    int bits = safe_bits(-x->point);
    multiply(x, bits);
    exponent -= bits;
  }
  /* x is in [1/2, 1); below the normal range fewer bits are kept. */
  if (exponent > 1024) return INFINITY;
  int bits = exponent >= -1021 ? 53 : exponent + 1074;
  if (bits < 0) return 0;
  if (bits > 0) multiply(x, bits);
  return ldexp((double)nearest_integer(x), exponent - bits);
}

static int is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* Puts the digits of text[size], which ends before the exponent, into x. */
static void read_digits(const char *text, size_t size, decimal *x) {
  int64_t point = 0;
  int started = 0, fraction = 0, lost = 0;
  x->count = 0;
  for (size_t i = 0; i < size; i++) {
    if (text[i] == '.') fraction = 1;
    if (!is_digit(text[i])) continue;
    started |= text[i] != '0';
    if (!started) {
      point -= fraction;
      continue;
    }
    point += !fraction;
    if (x->count < MAX_DIGITS)
      x->d[x->count++] = (unsigned char)(text[i] - '0');
    else
      lost |= text[i] != '0';
  }
  if (lost) x->d[MAX_DIGITS - 1] |= 1;
  x->point = point;
  trim_zeros(x);
}

/* Far beyond any double, and far from overflow when a number of digits is added. */
static int64_t read_exponent(const char *text, size_t size) {
  int64_t value = 0;
  int negative = size > 0 && *text == '-';
  for (size_t i = 0; i < size; i++)
    if (is_digit(text[i]) && value < INT64_MAX / 100) value = value * 10 + (text[i] - '0');
  return negative ? -value : value;
}

double decimal_to_double(const char *text, size_t size) {
  int negative = size > 0 && *text == '-';
  size_t mantissa = 0;
  while (mantissa < size && text[mantissa] != 'e' && text[mantissa] != 'E') mantissa++;
  int64_t exponent = 0;
  if (mantissa < size) exponent = read_exponent(text + mantissa + 1, size - mantissa - 1);
  decimal x;
  read_digits(text, mantissa, &x);
  x.point += exponent;
  double value;
#if defined(__SIZEOF_INT128__)
  int64_t power = x.point - x.count;
  if (x.count > 0 && x.count <= FAST_DIGITS && power >= -FAST_POWER && power <= FAST_POWER) {
    uint64_t digits = 0;
    for (int i = 0; i < x.count; i++) digits = digits * 10 + x.d[i];
    value = fast(digits, (int)power);
  } else
#endif
    value = slow(&x);
  return negative ? -value : value;
}
