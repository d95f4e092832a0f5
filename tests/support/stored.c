/*
** stored.c: see stored.h.
*/
#include "stored.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sqldb.h"

/* FNV-1a: enough to tell whether two tables hold the same. */
static uint64_t add_bytes(uint64_t digest, const void *bytes, size_t size) {
  for (size_t i = 0; i < size; i++)
    digest = (digest ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
  return digest;
}

static uint64_t add_column(uint64_t digest, sqlite3_stmt *s, int column) {
  int type = sqlite3_column_type(s, column);
  const void *bytes = type == SQLITE_BLOB ? sqlite3_column_blob(s, column)
                                          : (const void *)sqlite3_column_text(s, column);
  int size = sqlite3_column_bytes(s, column);
  digest = add_bytes(digest, &type, sizeof type);
  digest = add_bytes(digest, &size, sizeof size);
  return add_bytes(digest, bytes, bytes != NULL ? (size_t)size : 0);
}

uint64_t stored_digest(sqlite3 *db, const char *sql, uint64_t so_far) {
  sqlite3_stmt *s = sqldb_prepare(db, sql);
  uint64_t digest = so_far == 0 ? 0xcbf29ce484222325u : so_far;
  int rc;
  while ((rc = sqlite3_step(s)) == SQLITE_ROW)
    for (int i = 0; i < sqlite3_column_count(s); i++) digest = add_column(digest, s, i);
  if (rc != SQLITE_DONE) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
  sqlite3_finalize(s);
  return digest;
}

uint64_t stored_digest_of_table(sqlite3 *db, const char *source) {
  static const char *const parts[] = {
      "SELECT row, hash, count, error FROM t_rows ORDER BY row",
      "SELECT row, chunk, start, stop, tokens, truncated, vector FROM t_vectors "
      "ORDER BY row, chunk",
      "SELECT DISTINCT row FROM t_queue ORDER BY row",
      "SELECT rowid, embedding, chunk, start, stop, n_tokens, truncated, status FROM t "
      "ORDER BY rowid, chunk",
      "SELECT rowid, distance FROM t WHERE t MATCH 'depend on 77' AND k = 30",
  };
  char *sql = sqlite3_mprintf("SELECT * FROM \"%w\" ORDER BY 1", source);
  assert_non_null(sql);
  uint64_t digest = stored_digest(db, sql, 0);
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    digest = stored_digest(db, parts[i], digest);
  sqlite3_free(sql);
  return digest;
}

void stored_run(sqlite3 *db, const char *format, ...) {
  va_list list;
  char *message = NULL;
  va_start(list, format);
  char *sql = sqlite3_vmprintf(format, list);
  va_end(list);
  assert_non_null(sql);
  if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
    fail_msg("%.2000s: %s", sql, message != NULL ? message : sqlite3_errmsg(db));
  sqlite3_free(sql);
}
