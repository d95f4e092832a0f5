/*
** dice.c: see dice.h.
*/
#include "dice.h"

#include <stdlib.h>

uint64_t dice_seed(uint64_t usual) {
  const char *asked = getenv("BERTSQL_SEED");
  return asked != NULL ? strtoull(asked, NULL, 10) : usual;
}

/* Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators":
** a counter and two rounds of mixing. */
static uint64_t next(dice *d) {
  uint64_t z = d->state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

dice dice_take(uint64_t seed, uint64_t number) {
  dice d = {seed * 1000003u + number};
  d.state = next(&d);
  return d;
}

uint64_t dice_throw(dice *d, uint64_t below) {
  return next(d) % below;
}

int dice_percent(dice *d, unsigned percent) {
  return dice_throw(d, 100) < percent;
}

int dice_rounds(int usual, int few) {
  const char *asked = getenv("BERTSQL_ROUNDS");
  if (asked != NULL) return atoi(asked);
  return dice_size(usual, few);
}

int dice_size(int usual, int few) {
  return getenv("BERTSQL_RUN") != NULL ? few : usual;
}
