/*
** commands.c: INSERT INTO t(t) VALUES('refresh') and its kin.
*/
#include "vtab.h"

#include <string.h>

static int refuse_command(vtab *v, const char *name) {
  return vtab_fail(v, SQLITE_ERROR,
                   "there is no command '%.60s'; those there are: refresh, rebuild, optimize, "
                   "integrity-check, as in INSERT INTO %s(%s) VALUES('refresh')",
                   name, v->name, v->name);
}

static int refuse_limit(vtab *v) {
  return vtab_fail(
      v, SQLITE_ERROR,
      "k of a command is how many rows refresh may embed, a whole number above 0, as in "
      "INSERT INTO %s(%s, k) VALUES('refresh', 10000)",
      v->name, v->name);
}

static int run_refresh(vtab *v, sqlite3_value *k) {
  sqlite3_int64 limit = 0;
  if (sqlite3_value_type(k) != SQLITE_NULL) {
    if (sqlite3_value_numeric_type(k) != SQLITE_INTEGER) return refuse_limit(v);
    limit = sqlite3_value_int64(k);
    if (limit <= 0) return refuse_limit(v);
  }
  return refresh_run(v, limit);
}

static int run_check(vtab *v) {
  char *problem = NULL;
  int rc = check_run(v, &problem);
  if (rc == SQLITE_OK && problem != NULL)
    rc = vtab_fail(v, SQLITE_CORRUPT_VTAB,
                   "%s; what is derived from the texts can be made anew: INSERT INTO %s(%s) "
                   "VALUES('rebuild')",
                   problem, v->name, v->name);
  sqlite3_free(problem);
  return rc;
}

static const struct command {
  const char *name;
  int (*run)(vtab *v);
} commands[] = {{"rebuild", rebuild_run}, {"optimize", pack_all}, {"integrity-check", run_check}};

int command_run(vtab *v, sqlite3_value *command, sqlite3_value *k) {
  bert_text text;
  int nomem = 0;
  if (!value_text(command, &text, &nomem)) return nomem ? SQLITE_NOMEM : refuse_command(v, "NULL");
  if (text.data == NULL || strlen(text.data) != text.size) return refuse_command(v, "");
  if (sqlite3_stricmp(text.data, "refresh") == 0) return run_refresh(v, k);
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    if (sqlite3_stricmp(text.data, commands[i].name) != 0) continue;
    return sqlite3_value_type(k) == SQLITE_NULL ? commands[i].run(v) : refuse_limit(v);
  }
  return refuse_command(v, text.data);
}
