/*
** bench.h: the parts of the measuring programs `bench` and `bench_search`.
**
**   bench.c         embedding, measured through SQL; the command line of `bench`
**   bench_scale.c   the same for many rows, long texts and many connections
**   bench_search.c  searching, a program of its own
**   bench_sql.c     SQL that must work
**   bench_clock.c   time, memory and processes, seen from outside SQL
**   bench_corpus.c  the texts
**
** bench_encoder.c (the C library without SQL) and sgemm_ceiling.c are programs of
** their own. A measurement is one line of JSON on stdout, see README.md. Whatever goes wrong ends
*the program with a line on
** stderr: half a measurement is none.
*/
#ifndef BENCH_H
#define BENCH_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* ---- bench.c ----------------------------------------------------------- */

/* What the measurements have in common. */
typedef struct setting {
  const char *engine;    /* as the tables call it */
  const char *precision; /* for bert_load; NULL: its default */
  const char *measure, *folder, *model;
  int threads;
  int count; /* of a measure that takes one */
} setting;

/* folder/name; valid until the next call. */
const char *in_folder(const char *folder, const char *name);

/* A connection with the extension and the model. */
sqlite3 *open_with_model(const char *path, const setting *s);

/* Begins the line of a measurement, which the caller ends with "}\n". */
void begin_line(const setting *s);

/* ---- bench_scale.c ----------------------------------------------------- */

/* Writes folder/scale.db with `count` short texts, and texts of each length that
** measure_lengths measures, with about `tokens` tokens of each. */
void scale_write(const char *vocab, const char *folder, int count, int tokens);

void measure_documents(const setting *s); /* the first s->count short texts */
void measure_lengths(const setting *s);
void measure_connections(const setting *s); /* s->count of them */

/* ---- bench_sql.c ------------------------------------------------------- */

/* Ends the program with "bench: text" on stderr and status 1; so does whatever
** fails below. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

sqlite3 *open_database(const char *path);
void load_library(sqlite3 *db, const char *library); /* an extension */
sqlite3_stmt *prepare(sqlite3 *db, const char *sql);
int step(sqlite3_stmt *s); /* 1: a row */

/* Runs a statement to its end; the second binds its first parameter. */
void run(sqlite3 *db, const char *sql);
void run_with_text(sqlite3 *db, const char *sql, const char *text);

/* ---- bench_corpus.c ---------------------------------------------------- */

/* Writes folder/corpus.txt with so many documents and folder/short.txt with
** `shorts` texts of about 13 tokens, one a line. The words come from a BERT
** vocab.txt. The same numbers give the same texts on every machine. */
void corpus_write(const char *vocab, const char *folder, int documents, int shorts);

/* Texts one at a time. */
typedef struct words words;
words *words_read(const char *vocab); /* owned by the caller, for good */

/* Writes one line that has about so many tokens, special ones included. */
void write_text(FILE *out, const words *w, int tokens, uint64_t *state);

/* The lines of a text file, without their ends. Owned by the caller, for good:
** the program ends soon. *count: how many. */
char **read_lines(const char *path, size_t *count);

/* ---- bench_clock.c ----------------------------------------------------- */

double seconds_now(void); /* monotonic */

/* The most memory this process ever had in RAM, mapped files included (VmHWM). */
long peak_kilobytes(void);
long resident_kilobytes(void); /* the same now (VmRSS) */

/* Bytes of a file; 0 when there is none. */
off_t file_bytes(const char *path);

/* Of count > 0 numbers, which it sorts: the one below which lies `share`. */
double quantile(double *numbers, size_t count, double share);

/* Starts command (NULL at its end) and returns the seconds from before the fork
** to the first byte that it writes to its stdout. Waits for its end. */
double seconds_to_first_byte(char *const command[]);

#endif
