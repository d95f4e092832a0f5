/*
** bench.c: measures bertsql through SQL, as a program would use it.
**
**   bench corpus VOCAB FOLDER DOCUMENTS      writes the texts and corpus.db
**   bench scale VOCAB FOLDER COUNT TOKENS    writes the texts of bench_scale.c
**   bench ENGINE MEASURE THREADS FOLDER MODEL [COUNT]    one measurement of
**     bulk     bert_embed_rows over all documents; peak memory
**     scaling  the same under another name, for the curve over threads
**     update   UPDATE docs SET emb = bert_embed(body)
**     refresh  the virtual table's refresh
**     short    one short text at a time
**     vectors  the documents' vectors to FOLDER/ENGINE.f32, for comparing
**     info     what was measured
**     first    embeds one text and writes a line, for `start`
**     documents, lengths, connections          see bench_scale.c
**   bench start ENGINE COMMAND…              from process start to that line
**
** ENGINE is bertsql or bertsql-PRECISION, a precision that bert_load knows.
**
** Each measurement is a process of its own, so that it finds neither caches nor
** a high-water mark of memory that another left. It runs in the root of the
** repository, where build/bertsql.so is.
*/
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  SHORTS = 300, /* short texts, each used once */
  SHORT_WARMUP = 50,
  STARTS = 5
};

static const char first_text[] = "How do I reset my password when the mail never arrives?";

const char *in_folder(const char *folder, const char *name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void load_model(sqlite3 *db, const setting *s) {
  if (s->precision == NULL) {
    run_with_text(db, "SELECT bert_load(?1)", s->model);
    return;
  }
  char sql[120];
  snprintf(sql, sizeof sql, "SELECT bert_load(?1, NULL, '{\"precision\": \"%s\"}')", s->precision);
  run_with_text(db, sql, s->model);
}

sqlite3 *open_with_model(const char *path, const setting *s) {
  sqlite3 *db = open_database(path);
  char sql[80];
  load_library(db, "build/bertsql");
  snprintf(sql, sizeof sql, "SELECT bert_set('threads', %d)", s->threads);
  run(db, sql);
  load_model(db, s);
  return db;
}

void begin_line(const setting *s) {
  printf("{\"engine\":\"%s\",\"measure\":\"%s\",\"threads\":%d", s->engine, s->measure, s->threads);
}

/* ---- Corpus ------------------------------------------------------------ */

static void insert_lines(sqlite3 *db, const char *path) {
  size_t count;
  char **lines = read_lines(path, &count);
  sqlite3_stmt *insert = prepare(db, "INSERT INTO docs(body) VALUES(?1)");
  run(db, "BEGIN");
  for (size_t i = 0; i < count; i++) {
    sqlite3_bind_text(insert, 1, lines[i], -1, SQLITE_STATIC);
    step(insert);
    sqlite3_reset(insert);
  }
  sqlite3_finalize(insert);
  run(db, "COMMIT");
}

static void make_corpus(const char *vocab, const char *folder, int documents) {
  if (documents < 1) die("the number of documents must be at least 1");
  corpus_write(vocab, folder, documents, SHORTS);
  remove(in_folder(folder, "corpus.db"));
  sqlite3 *db = open_database(in_folder(folder, "corpus.db"));
  run(db, "CREATE TABLE docs(id INTEGER PRIMARY KEY, body TEXT)");
  insert_lines(db, in_folder(folder, "corpus.txt"));
  sqlite3_close(db);
}

/* ---- Measurements ------------------------------------------------------ */

static void measure_bulk(const setting *s) {
  sqlite3 *db = open_with_model(in_folder(s->folder, "corpus.db"), s);
  run(db, "SELECT length(embedding) FROM "
          "bert_embed_rows('SELECT id, body FROM docs LIMIT 32')");
  sqlite3_stmt *all = prepare(db, "SELECT count(*), sum(n_tokens), max(n_tokens), "
                                  "sum(length(embedding)) "
                                  "FROM bert_embed_rows('SELECT id, body FROM docs')");
  double begin = seconds_now();
  step(all);
  double seconds = seconds_now() - begin;
  begin_line(s);
  printf(",\"seconds\":%.6f,\"documents\":%d,\"tokens\":%d,\"longest\":%d", seconds,
         sqlite3_column_int(all, 0), sqlite3_column_int(all, 1), sqlite3_column_int(all, 2));
  printf(",\"peak_kb\":%ld,\"weights_kb\":%ld}\n", peak_kilobytes(),
         (long)(file_bytes(in_folder(s->model, "model.safetensors")) / 1024));
  sqlite3_finalize(all);
  sqlite3_close(db);
}

/* A connection with the documents in a table in memory. */
static sqlite3 *open_documents(const setting *s) {
  sqlite3 *db = open_with_model(":memory:", s);
  run_with_text(db, "ATTACH ?1 AS file", in_folder(s->folder, "corpus.db"));
  run(db, "CREATE TABLE main.docs(id INTEGER PRIMARY KEY, body TEXT, emb BLOB)");
  run(db, "INSERT INTO main.docs(id, body) SELECT id, body FROM file.docs");
  run(db, "SELECT length(bert_embed(body)) FROM main.docs LIMIT 8");
  return db;
}

static void measure_statement(const setting *s, sqlite3 *db, const char *sql) {
  sqlite3_stmt *statement = prepare(db, sql),
               *count = prepare(db, "SELECT count(*) FROM main.docs");
  double begin = seconds_now();
  step(statement);
  double seconds = seconds_now() - begin;
  step(count);
  begin_line(s);
  printf(",\"seconds\":%.6f,\"documents\":%d}\n", seconds, sqlite3_column_int(count, 0));
  sqlite3_finalize(statement);
  sqlite3_finalize(count);
  sqlite3_close(db);
}

static void measure_update(const setting *s) {
  measure_statement(s, open_documents(s), "UPDATE main.docs SET emb = bert_embed(body)");
}

static void measure_refresh(const setting *s) {
  sqlite3 *db = open_documents(s);
  run(db, "CREATE VIRTUAL TABLE docs_emb USING bertsql(body, content='docs')");
  measure_statement(s, db, "INSERT INTO docs_emb(docs_emb) VALUES('refresh')");
}

static double seconds_of_one(sqlite3_stmt *embed, const char *text) {
  double begin = seconds_now();
  sqlite3_bind_text(embed, 1, text, -1, SQLITE_STATIC);
  if (!step(embed) || sqlite3_column_blob(embed, 0) == NULL) die("no vector for: %s", text);
  sqlite3_reset(embed);
  return seconds_now() - begin;
}

/* No text comes twice, so that nothing kept from one call helps another. */
static void measure_short(const setting *s) {
  size_t count;
  char **texts = read_lines(in_folder(s->folder, "short.txt"), &count);
  if (count <= SHORT_WARMUP) die("too few short texts; write the corpus anew");
  sqlite3 *db = open_with_model(":memory:", s);
  sqlite3_stmt *embed = prepare(db, "SELECT bert_embed(?1)");
  sqlite3_stmt *tokens = prepare(db, "SELECT bert_token_count(?1)");
  double *seconds = malloc(count * sizeof *seconds);
  long total = 0;
  if (seconds == NULL) die("out of memory");
  for (size_t i = 0; i < count; i++) seconds[i] = seconds_of_one(embed, texts[i]);
  for (size_t i = SHORT_WARMUP; i < count; i++) {
    sqlite3_bind_text(tokens, 1, texts[i], -1, SQLITE_STATIC);
    step(tokens);
    total += sqlite3_column_int(tokens, 0);
    sqlite3_reset(tokens);
  }
  size_t timed = count - SHORT_WARMUP;
  double *first = seconds + SHORT_WARMUP;
  begin_line(s);
  printf(",\"seconds\":%.7f,\"p10\":%.7f,\"p90\":%.7f", quantile(first, timed, 0.5),
         quantile(first, timed, 0.1), quantile(first, timed, 0.9));
  printf(",\"calls\":%zu,\"tokens\":%.2f}\n", timed, (double)total / (double)timed);
  free(seconds);
  sqlite3_finalize(embed);
  sqlite3_finalize(tokens);
  sqlite3_close(db);
}

static void write_vectors(const setting *s) {
  sqlite3 *db = open_with_model(in_folder(s->folder, "corpus.db"), s);
  char name[100];
  snprintf(name, sizeof name, "%s.f32", s->engine);
  FILE *out = fopen(in_folder(s->folder, name), "wb");
  if (out == NULL) die("cannot write %s", in_folder(s->folder, name));
  sqlite3_stmt *rows = prepare(db, "SELECT embedding, n_tokens FROM "
                                   "bert_embed_rows('SELECT id, body FROM docs ORDER BY id')");
  int documents = 0, tokens = 0, bytes = 0;
  for (; step(rows); documents++) {
    bytes = sqlite3_column_bytes(rows, 0);
    fwrite(sqlite3_column_blob(rows, 0), 1, (size_t)bytes, out);
    tokens += sqlite3_column_int(rows, 1);
  }
  if (fclose(out) != 0) die("cannot write the vectors");
  begin_line(s);
  printf(",\"documents\":%d,\"tokens\":%d,\"dim\":%d}\n", documents, tokens, bytes / 4);
  sqlite3_finalize(rows);
  sqlite3_close(db);
}

static void write_info(const setting *s) {
  sqlite3 *db = open_with_model(":memory:", s);
  sqlite3_stmt *info = prepare(db, "SELECT bert_version(), bert_info()");
  step(info);
  begin_line(s);
  printf(",\"version\":\"%s\",\"detail\":%s}\n", (const char *)sqlite3_column_text(info, 0),
         (const char *)sqlite3_column_text(info, 1));
  sqlite3_finalize(info);
  sqlite3_close(db);
}

static void embed_first(const setting *s) {
  sqlite3 *db = open_with_model(":memory:", s);
  sqlite3_stmt *embed = prepare(db, "SELECT bert_embed(?1)");
  seconds_of_one(embed, first_text);
  puts("embedded");
  fflush(stdout);
  sqlite3_finalize(embed);
  sqlite3_close(db);
}

static void measure_start(const char *engine, char *const command[]) {
  double seconds[STARTS];
  seconds_to_first_byte(command); /* reads the files into the page cache */
  for (int i = 0; i < STARTS; i++) seconds[i] = seconds_to_first_byte(command);
  printf("{\"engine\":\"%s\",\"measure\":\"start\",\"seconds\":%.6f,\"calls\":%d}\n", engine,
         quantile(seconds, STARTS, 0.5), STARTS);
}

/* ---- Command line ------------------------------------------------------ */

static const struct {
  const char *name;
  void (*measure)(const setting *s);
} measures[] = {{"bulk", measure_bulk},
                {"scaling", measure_bulk},
                {"update", measure_update},
                {"refresh", measure_refresh},
                {"short", measure_short},
                {"vectors", write_vectors},
                {"info", write_info},
                {"first", embed_first},
                {"documents", measure_documents},
                {"lengths", measure_lengths},
                {"connections", measure_connections}};

static int number(const char *text) {
  char *end;
  long value = strtol(text, &end, 10);
  if (end == text || *end != 0 || value < 0 || value > 100000000) die("not a number: %s", text);
  return (int)value;
}

/* argv: ENGINE MEASURE THREADS FOLDER MODEL [COUNT]; 0: no such measure. */
static int measure_one(int count, char *const argv[]) {
  const char *dash = strchr(argv[0], '-');
  setting s = {.engine = argv[0],
               .precision = dash != NULL ? dash + 1 : NULL,
               .measure = argv[1],
               .folder = argv[3],
               .model = argv[4],
               .threads = number(argv[2]),
               .count = count > 5 ? number(argv[5]) : 1};
  for (size_t i = 0; i < sizeof measures / sizeof measures[0]; i++) {
    if (strcmp(measures[i].name, s.measure) != 0) continue;
    measures[i].measure(&s);
    return 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 5 && strcmp(argv[1], "corpus") == 0)
    make_corpus(argv[2], argv[3], number(argv[4]));
  else if (argc == 6 && strcmp(argv[1], "scale") == 0)
    scale_write(argv[2], argv[3], number(argv[4]), number(argv[5]));
  else if (argc >= 4 && strcmp(argv[1], "start") == 0)
    measure_start(argv[2], argv + 3);
  else if (argc < 6 || argc > 7 || !measure_one(argc - 1, argv + 1))
    die("usage: bench ENGINE MEASURE THREADS FOLDER MODEL [COUNT]; "
        "bench corpus VOCAB FOLDER DOCUMENTS; bench scale VOCAB FOLDER COUNT TOKENS; "
        "bench start ENGINE COMMAND");
  return 0;
}
