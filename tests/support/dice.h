/*
** dice.h: random numbers for tests that can be thrown again, and how many rounds
** a test of many takes.
*/
#ifndef BERT_TESTS_DICE_H
#define BERT_TESTS_DICE_H

#include <stdint.h>

typedef struct dice {
  uint64_t state;
} dice;

/* The seed that BERTSQL_SEED asks for, else `usual`. */
uint64_t dice_seed(uint64_t usual);

/* The same throws for the same seed and number, on every machine. */
dice dice_take(uint64_t seed, uint64_t number);

/* A whole number in 0 … below - 1; `below` is at least 1. */
uint64_t dice_throw(dice *d, uint64_t below);
/* 1 in so many percent of throws. */
int dice_percent(dice *d, unsigned percent);

/* BERTSQL_ROUNDS if it is set; else `usual`, or `few` under valgrind, which is 50
** times slower. */
int dice_rounds(int usual, int few);

/* `usual`, or `few` under valgrind: sizes and steps, of which BERTSQL_ROUNDS has
** nothing to say. */
int dice_size(int usual, int few);

#endif
