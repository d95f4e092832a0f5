/*
** bench_corpus.c: texts whose lengths and words resemble English prose.
**
** Words are those that stand whole in the vocabulary, which lists them by how
** often they occur; drawing the rank by a Zipf law brings back about the
** frequencies of a language. One word in ten gets a word piece at its end, so
** that it falls apart into pieces. Sentences have capitals, commas and points.
** Lengths are log-normal and cut at what the model takes.
**
** The random numbers are our own, since those of the C library differ from one
** to another.
*/
#include "bench.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A log-normal with this median and sigma, cut at 256, has a mean of 128. */
static const double length_median = 114, length_sigma = 0.6;

enum {
  SHORTEST = 8, /* tokens of a document, [CLS] and [SEP] included */
  LONGEST = 256,
  SHORT_TEXT = 13,
  FIRST_WORD = 1996,  /* "the": what stands before it are signs and letters */
  PIECES_IN_100 = 10, /* words that get a piece */
  COMMAS_IN_100 = 8,
  SENTENCE_LOW = 6, /* words of a sentence */
  SENTENCE_HIGH = 24
};

/* ---- Random numbers ---------------------------------------------------- */

/* splitmix64: Steele, Lea and Flood 2014, "Fast splittable pseudorandom number
** generators". */
static uint64_t random_bits(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static double random_unit(uint64_t *state) { /* in (0, 1) */
  return ((double)(random_bits(state) >> 11) + 0.5) / 9007199254740992.0;
}

static int random_below(uint64_t *state, int n) {
  return (int)(random_unit(state) * n);
}

static double random_normal(uint64_t *state) { /* Box and Muller 1958 */
  double radius = sqrt(-2 * log(random_unit(state)));
  return radius * cos(6.283185307179586 * random_unit(state));
}

/* A rank in [0, n) that occurs in proportion to 1 / (rank + 1). */
static size_t random_rank(uint64_t *state, size_t n) {
  size_t rank = (size_t)exp(random_unit(state) * log((double)n + 1)) - 1;
  return rank < n ? rank : n - 1;
}

/* ---- Words ------------------------------------------------------------- */

struct words {
  char **whole, **pieces; /* most frequent first; pieces without their ## */
  size_t wholes, piece_count;
};

char **read_lines(const char *path, size_t *count) {
  FILE *file = fopen(path, "r");
  char **lines = NULL, *line = NULL;
  size_t used = 0, room = 0, capacity = 0;
  ssize_t size;
  if (file == NULL) die("cannot open %s", path);
  while ((size = getline(&line, &capacity, file)) >= 0) {
    if (size > 0 && line[size - 1] == '\n') line[size - 1] = 0;
    if (used == room) {
      room = room > 0 ? 2 * room : 256;
      lines = realloc(lines, room * sizeof *lines);
      if (lines == NULL) die("out of memory");
    }
    lines[used] = strdup(line);
    if (lines[used++] == NULL) die("out of memory");
  }
  free(line);
  fclose(file);
  *count = used;
  return lines;
}

static int is_letters(const char *s) {
  size_t letters = strspn(s, "abcdefghijklmnopqrstuvwxyz");
  return letters >= 2 && s[letters] == 0;
}

words *words_read(const char *vocab) {
  size_t count;
  char **lines = read_lines(vocab, &count);
  words *w = calloc(1, sizeof *w);
  if (w == NULL) die("out of memory");
  w->whole = calloc(count + 1, sizeof *w->whole);
  w->pieces = calloc(count + 1, sizeof *w->pieces);
  if (w->whole == NULL || w->pieces == NULL) die("out of memory");
  for (size_t i = FIRST_WORD; i < count; i++) {
    if (is_letters(lines[i])) w->whole[w->wholes++] = lines[i];
    if (strncmp(lines[i], "##", 2) == 0 && is_letters(lines[i] + 2))
      w->pieces[w->piece_count++] = lines[i] + 2;
  }
  if (w->wholes < 1000 || w->piece_count < 100)
    die("%s is not the vocabulary of an English BERT", vocab);
  free(lines);
  return w;
}

/* ---- Texts ------------------------------------------------------------- */

/* Writes a word and returns how many tokens it has, about. */
static int write_word(FILE *out, const words *w, int capital, uint64_t *state) {
  const char *word = w->whole[random_rank(state, w->wholes)];
  fputc(capital ? word[0] - 'a' + 'A' : word[0], out);
  fputs(word + 1, out);
  if (random_below(state, 100) >= PIECES_IN_100) return 1;
  fputs(w->pieces[random_rank(state, w->piece_count)], out);
  return 2;
}

void write_text(FILE *out, const words *w, int tokens, uint64_t *state) {
  int left = tokens - 2 - 1; /* one more for the last point */
  int in_sentence = 0, sentence = 0;
  while (left > 0) {
    if (in_sentence == sentence) {
      int first = sentence == 0;
      sentence = SENTENCE_LOW + random_below(state, SENTENCE_HIGH - SENTENCE_LOW + 1);
      in_sentence = 0;
      if (!first) {
        fputs(". ", out);
        left--;
      }
    } else if (random_below(state, 100) < COMMAS_IN_100) {
      fputs(", ", out);
      left--;
    } else {
      fputc(' ', out);
    }
    left -= write_word(out, w, in_sentence++ == 0, state);
  }
  fputs(".\n", out);
}

static int random_length(uint64_t *state) {
  double length = length_median * exp(length_sigma * random_normal(state));
  return length < SHORTEST ? SHORTEST : length > LONGEST ? LONGEST : (int)(length + 0.5);
}

static FILE *create(const char *folder, const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  if (file == NULL) die("cannot write %s", path);
  return file;
}

void corpus_write(const char *vocab, const char *folder, int documents, int shorts) {
  words *w = words_read(vocab);
  uint64_t state = 20181011;
  FILE *corpus = create(folder, "corpus.txt"), *brief = create(folder, "short.txt");
  for (int i = 0; i < documents; i++) write_text(corpus, w, random_length(&state), &state);
  state = 20190827; /* so that the short texts do not depend on the documents */
  for (int i = 0; i < shorts; i++) write_text(brief, w, SHORT_TEXT, &state);
  if (fclose(corpus) != 0 || fclose(brief) != 0) die("cannot write the corpus to %s", folder);
}
