/*
** bench_search.c: the nearest of many vectors, by MATCH of the virtual table and
** by sqlite-vec's vec0, one after the other over the same vectors and queries.
**
**   bench_search FOLDER MODEL VECTORS [VEC0]
**
** Writes FOLDER/search.db anew, then lines of JSON: the median time of a query
** once a connection has searched before, and that of its first. Without VEC0,
** the path of sqlite-vec's library, only bertsql is measured. Vectors are of the
** model's width, in clusters as those of texts are, and of unit length.
*/
#include "bench.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLUSTERS = 500, NEAREST = 10, QUERIES = 60, WARMUP = 5 };

static sqlite3 *open_searched(const char *path, const char *model, const char *vec0) {
  sqlite3 *db = open_database(path);
  load_library(db, "build/bertsql");
  if (vec0 != NULL) load_library(db, vec0);
  run_with_text(db, "SELECT bert_load(?1)", model);
  return db;
}

/* ---- Vectors ----------------------------------------------------------- */

static uint64_t state;

static double uniform(void) { /* xorshift64*, (0, 1) */
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return ((double)((state * 0x2545F4914F6CDD1Du) >> 11) + 0.5) / 9007199254740992.0;
}

static float normal(void) { /* Box and Muller */
  return (float)(sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()));
}

static void make_centers(float *centers, int dim) { /* [CLUSTERS, dim] */
  state = 42;
  for (int i = 0; i < CLUSTERS * dim; i++) centers[i] = normal();
}

/* x[dim]: near one of the centers, of unit length. */
static void make_vector(const float *centers, float *x, int dim) {
  const float *center = centers + (int)(uniform() * CLUSTERS) * dim;
  double sum = 0;
  for (int i = 0; i < dim; i++) {
    x[i] = center[i] + normal();
    sum += (double)x[i] * x[i];
  }
  for (int i = 0; i < dim; i++) x[i] = (float)(x[i] / sqrt(sum));
}

/* ---- The database ------------------------------------------------------ */

static int vector_width(sqlite3 *db) {
  sqlite3_stmt *s = prepare(db, "SELECT dim FROM bert_models");
  if (!step(s)) die("there is no model");
  int dim = sqlite3_column_int(s, 0);
  sqlite3_finalize(s);
  return dim;
}

/* Fills `table` through the insert, whose parameters are row and vector. */
static void fill(sqlite3 *db, const char *insert, const float *centers, int dim, int count) {
  float *x = malloc(sizeof *x * (size_t)dim);
  if (x == NULL) die("out of memory");
  sqlite3_stmt *s = prepare(db, insert);
  state = 7;
  run(db, "BEGIN");
  for (int i = 1; i <= count; i++) {
    make_vector(centers, x, dim);
    sqlite3_bind_int(s, 1, i);
    sqlite3_bind_blob(s, 2, x, dim * (int)sizeof *x, SQLITE_STATIC);
    step(s);
    sqlite3_reset(s);
  }
  run(db, "COMMIT");
  sqlite3_finalize(s);
  free(x);
}

/* The shadow tables as refresh would leave them; the texts do not matter here. */
static void fill_bertsql(sqlite3 *db, const float *centers, int dim, int count) {
  char sql[400];
  run(db, "CREATE VIRTUAL TABLE ours USING bertsql(body)");
  fill(db,
       "INSERT INTO ours_vectors(id, row, chunk, start, stop, tokens, truncated, vector) "
       "VALUES(?1, ?1, 0, 0, 4, 3, 0, ?2)",
       centers, dim, count);
  snprintf(sql, sizeof sql,
           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
           "INSERT INTO ours_content(id, c0) SELECT i, 'text' FROM n",
           count);
  run(db, sql);
  run(db, "INSERT INTO ours_rows(row, hash, first, count) "
          "SELECT id, zeroblob(16), id, 1 FROM ours_content");
  run(db, "INSERT INTO ours(ours) VALUES('optimize')");
}

static void fill_vec0(sqlite3 *db, const float *centers, int dim, int count) {
  char sql[200];
  snprintf(sql, sizeof sql,
           "CREATE VIRTUAL TABLE theirs USING vec0(embedding float[%d] distance_metric=cosine)",
           dim);
  run(db, sql);
  fill(db, "INSERT INTO theirs(rowid, embedding) VALUES(?1, ?2)", centers, dim, count);
}

/* ---- Measuring --------------------------------------------------------- */

typedef struct engine {
  const char *name, *sql;
} engine;

static const engine engines[] = {
    {"bertsql", "SELECT rowid, distance FROM ours WHERE ours MATCH ?1 AND k = 10"},
    {"sqlite-vec", "SELECT rowid, distance FROM theirs WHERE embedding MATCH ?1 AND k = 10"}};

typedef struct answer {
  int rows[NEAREST];
  double seconds;
} answer;

static answer ask(sqlite3_stmt *s, const float *query, int dim) {
  answer a = {{0}, 0};
  double begin = seconds_now();
  sqlite3_bind_blob(s, 1, query, dim * (int)sizeof *query, SQLITE_STATIC);
  for (int i = 0; step(s); i++)
    if (i < NEAREST) a.rows[i] = sqlite3_column_int(s, 0);
  sqlite3_reset(s);
  a.seconds = seconds_now() - begin;
  return a;
}

static void print(const char *engine, const char *measure, double *seconds, int calls,
                  int vectors) {
  printf("{\"engine\":\"%s\",\"measure\":\"%s\",\"seconds\":%.7f,\"calls\":%d,\"vectors\":%d}\n",
         engine, measure, quantile(seconds, (size_t)calls, 0.5), calls, vectors);
}

/* Each query is put to all engines in turn. */
static int measure_warm(sqlite3 *db, int used, const float *centers, int dim, int vectors) {
  double seconds[2][QUERIES];
  sqlite3_stmt *s[2];
  float *query = malloc(sizeof *query * (size_t)dim);
  int different = 0;
  if (query == NULL) die("out of memory");
  for (int e = 0; e < used; e++) s[e] = prepare(db, engines[e].sql);
  state = 99;
  for (int i = -WARMUP; i < QUERIES; i++) {
    answer answers[2];
    make_vector(centers, query, dim);
    for (int e = 0; e < used; e++) {
      answers[e] = ask(s[e], query, dim);
      if (i >= 0) seconds[e][i] = answers[e].seconds;
    }
    if (used == 2)
      different += memcmp(answers[0].rows, answers[1].rows, sizeof answers[0].rows) != 0;
  }
  for (int e = 0; e < used; e++) {
    print(engines[e].name, "search", seconds[e], QUERIES, vectors);
    sqlite3_finalize(s[e]);
  }
  free(query);
  return different;
}

/* The first query of a connection, which keeps nothing yet. */
static void measure_first(const char *path, const char *model, const char *vec0,
                          const float *centers, int dim, int vectors) {
  enum { TIMES = 7 };
  double seconds[TIMES];
  float *query = malloc(sizeof *query * (size_t)dim);
  if (query == NULL) die("out of memory");
  for (int e = 0; e < (vec0 != NULL ? 2 : 1); e++) {
    for (int i = 0; i < TIMES; i++) {
      sqlite3 *db = open_searched(path, model, vec0);
      sqlite3_stmt *s = prepare(db, engines[e].sql);
      make_vector(centers, query, dim);
      seconds[i] = ask(s, query, dim).seconds;
      sqlite3_finalize(s);
      sqlite3_close(db);
    }
    print(engines[e].name, "search_first", seconds, TIMES, vectors);
  }
  free(query);
}

int main(int argc, char **argv) {
  char path[4096];
  if (argc < 4) die("usage: bench_search FOLDER MODEL VECTORS [VEC0]");
  const char *vec0 = argc > 4 ? argv[4] : NULL, *model = argv[2];
  int vectors = atoi(argv[3]);
  snprintf(path, sizeof path, "%s/search.db", argv[1]);
  remove(path);
  sqlite3 *db = open_searched(path, model, vec0);
  int dim = vector_width(db);
  float *centers = malloc(sizeof *centers * CLUSTERS * (size_t)dim); /* [CLUSTERS, dim] */
  if (centers == NULL || vectors < 1) die("nothing to search");
  make_centers(centers, dim);
  fill_bertsql(db, centers, dim, vectors);
  if (vec0 != NULL) fill_vec0(db, centers, dim, vectors);
  sqlite3_close(db);
  db = open_searched(path, model, vec0);
  int different = measure_warm(db, vec0 != NULL ? 2 : 1, centers, dim, vectors);
  sqlite3_close(db);
  measure_first(path, model, vec0, centers, dim, vectors);
  if (different > 0) die("%d of %d queries gave other rows than vec0", different, QUERIES + WARMUP);
  free(centers);
  return 0;
}
