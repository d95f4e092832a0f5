/*
** vectors.c: virtual tables with many vectors.
*/
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sqldb.h"
#include "vectors.h"

enum { MOST = 512 };

static uint64_t next_random(uint64_t *state) { /* splitmix64 */
  uint64_t z = *state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

static void random_numbers(uint64_t seed, int dim, float *x) {
  uint64_t state = seed;
  for (int i = 0; i < dim; i++) x[i] = (float)(int64_t)next_random(&state) / 4e18f;
}

/* Vector number n: every 16th is that of 16 before, and number 5 is zero. */
static void numbered_vector(int n, int dim, float *x) {
  int seed = n % 16 == 0 && n > 0 ? n - 16 : n;
  if (n % 32 == 0 && n > 32) seed = n - 48;
  random_numbers((uint64_t)seed * 1000003u, dim, x);
  if (n == 5) memset(x, 0, sizeof(float) * (size_t)dim);
}

static void bind_vector(sqlite3_stmt *s, int parameter, const float *x, int dim, int is_int8) {
  unsigned char blob[MOST * sizeof(float)];
  float largest = 0, scale;
  if (!is_int8) {
    sqlite3_bind_blob(s, parameter, x, dim * (int)sizeof(float), SQLITE_TRANSIENT);
    return;
  }
  for (int i = 0; i < dim; i++) largest = fmaxf(largest, fabsf(x[i]));
  scale = largest / 127;
  memcpy(blob, &scale, sizeof scale);
  for (int i = 0; i < dim; i++)
    blob[sizeof scale + (size_t)i] = (unsigned char)(int8_t)(scale > 0 ? lrintf(x[i] / scale) : 0);
  sqlite3_bind_blob(s, parameter, blob, dim + (int)sizeof scale, SQLITE_TRANSIENT);
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *format, const char *table) {
  char sql[300];
  snprintf(sql, sizeof sql, format, table);
  return sqldb_prepare(db, sql);
}

static void run(sqlite3_stmt *s) {
  sqlite3_step(s);
  assert_int_equal(sqlite3_reset(s), SQLITE_OK);
}

void vectors_fill(sqlite3 *db, const char *table, const char *content, int dim, int chunks,
                  int is_int8) {
  float x[MOST];
  int id = 1;
  sqlite3_stmt *ids = prepare(db, "SELECT id FROM %s ORDER BY id", content);
  sqlite3_stmt *row = prepare(
      db, "INSERT INTO %s_rows(row, hash, first, count) VALUES(?1, zeroblob(16), ?2, ?3)", table);
  sqlite3_stmt *vector = prepare(
      db, "INSERT INTO %s_vectors VALUES(?1, ?2, ?3, ?3 * 10, ?3 * 10 + 9, 12, 0, ?4)", table);
  assert_true(dim <= MOST);
  assert_runs(db, "BEGIN");
  while (sqlite3_step(ids) == SQLITE_ROW) {
    sqlite3_bind_int64(row, 1, sqlite3_column_int64(ids, 0));
    sqlite3_bind_int(row, 2, id);
    sqlite3_bind_int(row, 3, chunks);
    run(row);
    for (int chunk = 0; chunk < chunks; chunk++, id++) {
      numbered_vector(id, dim, x);
      sqlite3_bind_int(vector, 1, id);
      sqlite3_bind_int64(vector, 2, sqlite3_column_int64(ids, 0));
      sqlite3_bind_int(vector, 3, chunk);
      bind_vector(vector, 4, x, dim, is_int8);
      run(vector);
    }
  }
  assert_int_equal(sqlite3_finalize(ids), SQLITE_OK);
  sqlite3_finalize(row);
  sqlite3_finalize(vector);
  assert_runs(db, "COMMIT");
}

static void decoded(sqlite3_context *context, int argc, sqlite3_value **argv) {
  float x[MOST], scale;
  const unsigned char *blob = sqlite3_value_blob(argv[0]);
  int dim = sqlite3_value_int(argv[1]);
  if (sqlite3_value_bytes(argv[0]) == dim * (int)sizeof(float)) {
    sqlite3_result_value(context, argv[0]);
    return;
  }
  memcpy(&scale, blob, sizeof scale);
  for (int i = 0; i < dim; i++) x[i] = scale * (float)(int8_t)blob[sizeof scale + (size_t)i];
  sqlite3_result_blob(context, x, dim * (int)sizeof(float), SQLITE_TRANSIENT);
}

static void random_vector(sqlite3_context *context, int argc, sqlite3_value **argv) {
  float x[MOST];
  int dim = sqlite3_value_int(argv[0]);
  random_numbers((uint64_t)sqlite3_value_int64(argv[1]), dim, x);
  sqlite3_result_blob(context, x, dim * (int)sizeof(float), SQLITE_TRANSIENT);
}

void vectors_functions(sqlite3 *db) {
  sqlite3_create_function(db, "decoded", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, decoded, NULL,
                          NULL);
  sqlite3_create_function(db, "random_vector", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                          random_vector, NULL, NULL);
}

void assert_same(sqlite3 *db, const char *sql, const char *expected_sql) {
  char *expected = sqldb_answer(db, expected_sql, NULL);
  assert_non_null(expected);
  if (strcmp(expected, "(no rows)") == 0 || strncmp(expected, "ERROR", 5) == 0)
    fail_msg("%s\n  answers %.2000s", expected_sql, expected);
  assert_answer(db, sql, expected);
  sqlite3_free(expected);
}
