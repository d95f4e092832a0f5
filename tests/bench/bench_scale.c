/*
** bench_scale.c: what becomes of time and memory when there is more of something:
** rows, tokens of a text, connections.
**
** The rows are short texts, so that 100,000 of them take minutes and not an hour:
** what a row costs by itself shows the better for it.
*/
#include "bench.h"

#include <stdlib.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

enum {
  SHORT_TEXT = 13, /* tokens */
  LENGTHS = 6,     /* 16, 32, … 512 */
  FIRST_LENGTH = 16,
  MOST_REPEATS = 15,
  MOST_CONNECTIONS = 64
};
static const double ENOUGH_SECONDS = 1;

/* ---- Texts ------------------------------------------------------------- */

static void insert_text(sqlite3_stmt *insert, const words *w, int length, int written,
                        uint64_t *state) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  if (out == NULL) die("out of memory");
  write_text(out, w, written, state);
  if (fclose(out) != 0) die("out of memory");
  sqlite3_bind_int(insert, 1, length);
  sqlite3_bind_text(insert, 2, text, (int)size - 1, SQLITE_TRANSIENT); /* without its line end */
  step(insert);
  sqlite3_reset(insert);
  free(text);
}

/* A text that is to have an exact length is written an eighth longer and cut by
** the token limit. */
void scale_write(const char *vocab, const char *folder, int count, int tokens) {
  const words *w = words_read(vocab);
  uint64_t state = 20171206;
  remove(in_folder(folder, "scale.db"));
  sqlite3 *db = open_database(in_folder(folder, "scale.db"));
  run(db, "CREATE TABLE docs(id INTEGER PRIMARY KEY, length INT, body TEXT)");
  run(db, "CREATE TABLE texts(id INTEGER PRIMARY KEY, length INT, body TEXT)");
  sqlite3_stmt *docs = prepare(db, "INSERT INTO docs(length, body) VALUES(?1, ?2)"),
               *texts = prepare(db, "INSERT INTO texts(length, body) VALUES(?1, ?2)");
  run(db, "BEGIN");
  for (int i = 0; i < count; i++) insert_text(docs, w, SHORT_TEXT, SHORT_TEXT, &state);
  for (int i = 0, length = FIRST_LENGTH; i < LENGTHS; i++, length *= 2)
    for (int done = 0; done < tokens || done < 2 * length; done += length)
      insert_text(texts, w, length, length + length / 8 + 6, &state);
  run(db, "COMMIT");
  sqlite3_finalize(docs);
  sqlite3_finalize(texts);
  sqlite3_close(db);
}

/* ---- Rows -------------------------------------------------------------- */

/* Runs a statement that gives tokens and rows, again and again for about a second;
** the median of the seconds. */
static double median_seconds(sqlite3_stmt *s, int *tokens, int *rows) {
  double seconds[MOST_REPEATS], whole = 0;
  size_t repeats = 0;
  while (repeats == 0 || (repeats < MOST_REPEATS && whole < ENOUGH_SECONDS)) {
    double begin = seconds_now();
    step(s);
    seconds[repeats] = seconds_now() - begin;
    whole += seconds[repeats++];
    *tokens = sqlite3_column_int(s, 0);
    *rows = sqlite3_column_int(s, 1);
    sqlite3_reset(s);
  }
  return quantile(seconds, repeats, 0.5);
}

/* A table's fingerprint of the model reads all weights. Without it more rows would bring
** more words, and these more pages of the mapped embedding table: memory that grows with
** the vocabulary that is used, and not with the rows. */
static void touch_weights(sqlite3 *db) {
  run(db, "ATTACH ':memory:' AS scratch");
  run(db, "CREATE VIRTUAL TABLE scratch.touched USING bertsql(body)");
  run(db, "INSERT INTO scratch.touched(body) VALUES('all weights')");
}

/* glibc moves the size from which a block has pages of its own, up to 32 MB, by what was
** freed before, so that the peak of equal runs differs by 5 MB. Set to any value it
** stays: 0.1 MB. */
static void steady_malloc(void) {
#ifdef M_MMAP_THRESHOLD
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);
#endif
}

void measure_documents(const setting *s) {
  char sql[200];
  int tokens, rows;
  steady_malloc();
  sqlite3 *db = open_with_model(in_folder(s->folder, "scale.db"), s);
  touch_weights(db);
  run(db, "SELECT sum(length(embedding)) FROM "
          "bert_embed_rows('SELECT id, body FROM docs LIMIT 100')");
  snprintf(sql, sizeof sql,
           "SELECT sum(n_tokens), count(*), sum(length(embedding)) FROM "
           "bert_embed_rows('SELECT id, body FROM docs LIMIT %d')",
           s->count);
  sqlite3_stmt *all = prepare(db, sql);
  double seconds = median_seconds(all, &tokens, &rows);
  if (rows != s->count) die("scale.db has %d documents only", rows);
  begin_line(s);
  printf(",\"documents\":%d,\"seconds\":%.6f,\"tokens\":%d,\"peak_kb\":%ld}\n", rows, seconds,
         tokens, peak_kilobytes());
  sqlite3_finalize(all);
  sqlite3_close(db);
}

/* ---- Lengths ----------------------------------------------------------- */

static void measure_length(const setting *s, sqlite3 *db, int length) {
  char sql[300];
  int tokens, rows;
  snprintf(sql, sizeof sql,
           "SELECT sum(n_tokens), count(*), sum(length(embedding)) FROM "
           "bert_embed_rows('SELECT id, body FROM texts WHERE length = %d', "
           "'{\"max_tokens\": %d}')",
           length, length);
  sqlite3_stmt *all = prepare(db, sql), *model = prepare(db, "SELECT layers, dim FROM bert_models");
  double seconds = median_seconds(all, &tokens, &rows);
  step(model);
  begin_line(s);
  printf(",\"length\":%.2f,\"seconds\":%.6f,\"tokens\":%d,\"layers\":%d,\"hidden\":%d}\n",
         (double)tokens / rows, seconds, tokens, sqlite3_column_int(model, 0),
         sqlite3_column_int(model, 1));
  sqlite3_finalize(model);
  sqlite3_finalize(all);
}

void measure_lengths(const setting *s) {
  sqlite3 *db = open_with_model(in_folder(s->folder, "scale.db"), s);
  run(db, "SELECT sum(length(embedding)) FROM bert_embed_rows("
          "'SELECT id, body FROM texts WHERE length = 128 LIMIT 8')");
  for (int i = 0, length = FIRST_LENGTH; i < LENGTHS; i++, length *= 2)
    measure_length(s, db, length);
  sqlite3_close(db);
}

/* ---- Connections ------------------------------------------------------- */

static sqlite3 *working_connection(const setting *s) {
  sqlite3 *db = open_with_model(in_folder(s->folder, "scale.db"), s);
  run(db, "SELECT sum(length(embedding)) FROM bert_embed_rows("
          "'SELECT id, body FROM texts WHERE length = 256 LIMIT 16')");
  run(db, "SELECT bert_embed('one text by itself')");
  return db;
}

/* What a connection more costs that has embedded and stays open. The first one
** pays for what they share: weights, threads, code. */
void measure_connections(const setting *s) {
  sqlite3 *open[MOST_CONNECTIONS];
  if (s->count < 1 || s->count > MOST_CONNECTIONS) die("1 to %d connections", MOST_CONNECTIONS);
  sqlite3 *first = working_connection(s);
  long before = resident_kilobytes();
  for (int i = 0; i < s->count; i++) open[i] = working_connection(s);
  long after = resident_kilobytes();
  begin_line(s);
  printf(",\"connections\":%d,\"first_kb\":%ld,\"added_kb\":%ld}\n", s->count, before,
         after - before);
  for (int i = 0; i < s->count; i++) sqlite3_close(open[i]);
  sqlite3_close(first);
}
