/*
** plain_scan.c: reads the source: row by row for a plain scan, or the numbers of the
** rows that fulfil a query's conditions.
**
** A condition on the virtual table, "column op value", is run as a condition on
** the source, so that its indexes serve. SQLite checks it again, so it may leave
** in too many rows but must not leave out one that SQLite would keep. What the
** two comparisons may differ in is the affinity of the value: here it is a
** parameter, which has none; there it may have been a column or a CAST.
*/
#include "query.h"

#include <string.h>

enum { VALUES_AT_ONCE = 4096 };

/* ---- Affinity ------------------------------------------------------------ */

typedef enum affinity { AFFINITY_NONE, AFFINITY_TEXT, AFFINITY_NUMBER } affinity;

static int contains(const char *type, const char *word) {
  for (; *type != 0; type++)
    if (sqlite3_strnicmp(type, word, (int)strlen(word)) == 0) return 1;
  return 0;
}

/* The rules of "Determination Of Column Affinity" in SQLite's Datatypes page. */
static affinity affinity_of_type(const char *type) {
  if (type == NULL || *type == 0) return AFFINITY_NONE;
  if (contains(type, "INT")) return AFFINITY_NUMBER;
  if (contains(type, "CHAR") || contains(type, "CLOB") || contains(type, "TEXT"))
    return AFFINITY_TEXT;
  return contains(type, "BLOB") ? AFFINITY_NONE : AFFINITY_NUMBER;
}

static affinity affinity_of_column(const vtab *v, int column) {
  const char *type = v->declared.columns[column].type;
  if (v->declared.content != NULL &&
      sqlite3_table_column_metadata(v->db, v->schema, v->declared.content,
                                    v->declared.columns[column].name, &type, NULL, NULL, NULL,
                                    NULL) != SQLITE_OK)
    type = NULL;
  return affinity_of_type(type);
}

/* ---- Conditions ---------------------------------------------------------- */

static const char *operator_of(int compare) {
  switch (compare) {
  case SQLITE_INDEX_CONSTRAINT_EQ: return "=";
  case SQLITE_INDEX_CONSTRAINT_IS: return "IS";
  case SQLITE_INDEX_CONSTRAINT_LT: return "<";
  case SQLITE_INDEX_CONSTRAINT_LE: return "<=";
  case SQLITE_INDEX_CONSTRAINT_GT: return ">";
  case SQLITE_INDEX_CONSTRAINT_GE: return ">=";
  case SQLITE_INDEX_CONSTRAINT_NE: return "<>";
  case SQLITE_INDEX_CONSTRAINT_ISNOT: return "IS NOT";
  case SQLITE_INDEX_CONSTRAINT_ISNULL: return "ISNULL";
  case SQLITE_INDEX_CONSTRAINT_ISNOTNULL: return "NOTNULL";
  case SQLITE_INDEX_CONSTRAINT_LIKE: return "LIKE";
  default: return "GLOB";
  }
}

static void append_operand(sqlite3_str *out, const vtab *v, int column) {
  sqlite3_str_appendall(out, "s.");
  if (column < 0)
    sqlite3_str_appendf(out, "\"%w\"", v->key);
  else
    source_append_column(out, v, column);
}

/* Compares with a column of no numeric affinity and a number: whether the number
** stays one, becomes a text, or makes numbers of texts depends on where it came
** from. A row is kept when it fulfils any of the three. */
static void append_any_affinity(sqlite3_str *out, const vtab *v, const plan_term *t, int number) {
  static const char *const values[] = {"?%d", "CAST(?%d AS TEXT)", "CAST(?%d AS NUMERIC)"};
  for (int i = 0; i < 3; i++) {
    sqlite3_str_appendall(out, i == 0 ? "(+" : " OR +");
    append_operand(out, v, t->column);
    sqlite3_str_appendf(out, " COLLATE \"%.*w\" %s ", t->collation_size, t->collation,
                        operator_of(t->compare));
    sqlite3_str_appendf(out, values[i], number);
  }
  sqlite3_str_appendall(out, ")");
}

static const char *skip(const char *text, const char *characters) {
  return text + strspn(text, characters);
}

/* 1 when a text is what numeric affinity makes a number of; 0 also without memory,
** since the condition is then only weaker. Not by sqlite3_value_numeric_type, which
** changes the value, and in newer SQLites takes no copy of it. */
static int looks_numeric(sqlite3_value *value) {
  static const char digits[] = "0123456789", space[] = " \t\n\v\f\r";
  const char *text = (const char *)sqlite3_value_text(value), *at, *start;
  if (text == NULL) return 0;
  at = skip(text, space);
  if (*at == '+' || *at == '-') at++;
  start = at;
  at = skip(at, digits);
  if (*at == '.') at = skip(at + 1, digits);
  if (at == start || (at == start + 1 && *start == '.')) return 0;
  if (*at == 'e' || *at == 'E') {
    start = at + 1;
    if (*start == '+' || *start == '-') start++;
    at = skip(start, digits);
    if (at == start) return 0;
  }
  return skip(at, space) == text + sqlite3_value_bytes(value);
}

/* A text that is no number may come from a column of numbers. Then texts that look
** like numbers are compared as such, and are all less than it. */
static int may_compare_numbers(const plan_term *t, sqlite3_value *value) {
  return (t->compare == SQLITE_INDEX_CONSTRAINT_LT || t->compare == SQLITE_INDEX_CONSTRAINT_LE) &&
         sqlite3_value_type(value) == SQLITE_TEXT && !looks_numeric(value);
}

static void append_plain(sqlite3_str *out, const vtab *v, const plan_term *t, int has_value,
                         int is_pattern, int number) {
  append_operand(out, v, t->column);
  if (t->column >= 0 && has_value && !is_pattern)
    sqlite3_str_appendf(out, " COLLATE \"%.*w\"", t->collation_size, t->collation);
  sqlite3_str_appendf(out, " %s", operator_of(t->compare));
  if (has_value) sqlite3_str_appendf(out, " ?%d", number);
}

static void append_condition(sqlite3_str *out, const vtab *v, const plan_term *t,
                             sqlite3_value *value, int number) {
  int type = sqlite3_value_type(value);
  int is_pattern =
      t->compare == SQLITE_INDEX_CONSTRAINT_LIKE || t->compare == SQLITE_INDEX_CONSTRAINT_GLOB;
  int has_value = t->compare != SQLITE_INDEX_CONSTRAINT_ISNULL &&
                  t->compare != SQLITE_INDEX_CONSTRAINT_ISNOTNULL;
  int is_open = t->column >= 0 && has_value && !is_pattern &&
                affinity_of_column(v, t->column) != AFFINITY_NUMBER;
  if (is_open && (type == SQLITE_INTEGER || type == SQLITE_FLOAT)) {
    append_any_affinity(out, v, t, number);
  } else if (is_open && may_compare_numbers(t, value)) {
    sqlite3_str_appendall(out, "(+");
    append_operand(out, v, t->column);
    sqlite3_str_appendall(out, " <= CAST('9e999' AS REAL) OR ");
    append_plain(out, v, t, has_value, is_pattern, number);
    sqlite3_str_appendall(out, ")");
  } else {
    append_plain(out, v, t, has_value, is_pattern, number);
  }
}

/* " WHERE …" of all terms of kind W, whose values are parameters 1, 2, … by their
** place among the terms. */
static void append_conditions(sqlite3_str *out, const vtab *v, const plan_term *terms, int count) {
  const char *word = " WHERE ";
  for (int i = 0; i < count; i++) {
    if (terms[i].kind != 'W') continue;
    sqlite3_str_appendall(out, word);
    append_condition(out, v, &terms[i], terms[i].value, i + 1);
    word = " AND ";
  }
}

static int bind_conditions(sqlite3_stmt *s, const plan_term *terms, int count) {
  int rc = SQLITE_OK, parameters = sqlite3_bind_parameter_count(s);
  for (int i = 0; rc == SQLITE_OK && i < count && i < parameters; i++)
    if (terms[i].kind == 'W') rc = sqlite3_bind_value(s, i + 1, terms[i].value);
  return rc;
}

/* ---- Statements ---------------------------------------------------------- */

int scan_prepare(vtab *v, char *sql, sqlite3_stmt **out) {
  int rc = SQLITE_NOMEM;
  if (sql == NULL) return rc;
  if (*out != NULL && strcmp(sqlite3_sql(*out), sql) == 0) {
    sqlite3_free(sql);
    sqlite3_reset(*out);
    sqlite3_clear_bindings(*out);
    return SQLITE_OK;
  }
  sqlite3_finalize(*out);
  *out = NULL;
  rc = vtab_prepare(v, out, "", sql);
  sqlite3_free(sql);
  if (rc != SQLITE_ERROR) return rc;
  int source = source_check(v);
  return source == SQLITE_OK ? rc : source;
}

/* ---- A plain scan -------------------------------------------------------- */

/* Rows without vectors come once, also with all_chunks. */
static void append_from(sqlite3_str *out, const vtab *v) {
  sqlite3_str_appendall(out, " FROM ");
  source_append_table(out, v);
  sqlite3_str_appendall(out, " AS s");
  if (!v->declared.all_chunks) return;
  sqlite3_str_appendf(out,
                      " LEFT JOIN \"%w\".\"%w_rows\" AS r ON r.row = s.\"%w\""
                      " LEFT JOIN \"%w\".\"%w_vectors\" AS v ON v.id >= r.first AND"
                      " v.id < r.first + r.count AND +v.row = s.\"%w\"",
                      v->schema, v->name, v->key, v->schema, v->name, v->key);
}

/* Key, id of the vector, then the declared columns when they are read. */
static char *scan_sql(const vtab *v, int plan, const plan_term *terms, int count) {
  const char *down = plan & PLAN_ORDERED_DOWN ? " DESC" : "";
  sqlite3_str *out = sqlite3_str_new(v->db);
  sqlite3_str_appendf(out, "SELECT s.\"%w\", %s", v->key, v->declared.all_chunks ? "v.id" : "NULL");
  for (int i = 0; i < v->declared.count && (plan & PLAN_CONTENT); i++) {
    sqlite3_str_appendall(out, ", ");
    append_operand(out, v, i);
  }
  append_from(out, v);
  append_conditions(out, v, terms, count);
  sqlite3_str_appendf(out, " ORDER BY s.\"%w\"%s", v->key, down);
  if (v->declared.all_chunks) sqlite3_str_appendf(out, ", v.id%s", down);
  return sqlite3_str_finish(out);
}

int scan_start(cursor *c, int plan, const plan_term *terms, int count) {
  vtab *v = (vtab *)c->base.pVtab;
  int rc = scan_prepare(v, scan_sql(v, plan, terms, count), &c->scan);
  if (rc == SQLITE_OK) rc = bind_conditions(c->scan, terms, count);
  c->scan_has_content = (plan & PLAN_CONTENT) != 0;
  c->is_search = 0;
  return rc;
}

int scan_next(cursor *c) {
  vtab *v = (vtab *)c->base.pVtab;
  int rc = sqlite3_step(c->scan);
  if (rc == SQLITE_ROW) {
    c->row = sqlite3_column_int64(c->scan, 0);
    c->id = sqlite3_column_int64(c->scan, 1);
    c->has_id = v->declared.all_chunks;
    return SQLITE_OK;
  }
  c->at_end = 1;
  rc = sqlite3_reset(c->scan);
  return rc == SQLITE_OK ? rc : vtab_fail_sqlite(v, rc);
}

/* ---- Rows that fulfil conditions ----------------------------------------- */

static int add_rows(vtab *v, sqlite3_stmt *s, rowset *out) {
  int rc = SQLITE_OK;
  for (size_t i = 1; rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW; i++) {
    rc = rowset_add(out, sqlite3_column_int64(s, 0));
    if (rc == SQLITE_OK && i % 4096 == 0 && connection_interrupted(v->connection))
      rc = SQLITE_INTERRUPT;
  }
  if (rc != SQLITE_OK) {
    sqlite3_reset(s);
    return rc;
  }
  rc = sqlite3_reset(s);
  return rc == SQLITE_OK ? rc : vtab_fail_sqlite(v, rc);
}

static void append_select_key(sqlite3_str *out, const vtab *v) {
  sqlite3_str_appendf(out, "SELECT s.\"%w\" FROM ", v->key);
  source_append_table(out, v);
  sqlite3_str_appendall(out, " AS s");
}

/* All conditions but those with IN in one SELECT. */
static int rows_of_conditions(vtab *v, const plan_term *terms, int count, rowset *out) {
  sqlite3_stmt *s = NULL;
  sqlite3_str *sql = sqlite3_str_new(v->db);
  append_select_key(sql, v);
  append_conditions(sql, v, terms, count);
  int rc = scan_prepare(v, sqlite3_str_finish(sql), &s);
  if (rc == SQLITE_OK) rc = bind_conditions(s, terms, count);
  if (rc == SQLITE_OK) rc = add_rows(v, s, out);
  sqlite3_finalize(s);
  rowset_finish(out);
  return rc;
}

/* Values of an IN, copied, since each is lent only until the next. */
typedef struct value_list {
  sqlite3_value **values; /* [count] of room `most` */
  int count, most;
  int any_number;
} value_list;

static void forget_values(value_list *list) {
  while (list->count > 0) sqlite3_value_free(list->values[--list->count]);
  list->any_number = 0;
}

static int add_value(value_list *list, sqlite3_value *value) {
  int type = sqlite3_value_type(value);
  sqlite3_value *copy = sqlite3_value_dup(value);
  if (copy == NULL) return SQLITE_NOMEM;
  list->values[list->count++] = copy;
  if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) list->any_number = 1;
  return SQLITE_OK;
}

static void append_in(sqlite3_str *out, const plan_term *t, const value_list *list) {
  sqlite3_str_appendf(out, " COLLATE \"%.*w\" IN (", t->collation_size, t->collation);
  for (int i = 1; i <= list->count; i++) sqlite3_str_appendf(out, i > 1 ? ", ?%d" : "?%d", i);
  sqlite3_str_appendall(out, ")");
}

/* Rows whose column is one of the values; as to numbers see append_any_affinity. */
static int rows_of_values(vtab *v, const plan_term *t, const value_list *list, rowset *out) {
  sqlite3_stmt *s = NULL;
  sqlite3_str *sql = sqlite3_str_new(v->db);
  append_select_key(sql, v);
  sqlite3_str_appendall(sql, " WHERE ");
  append_operand(sql, v, t->column);
  append_in(sql, t, list);
  if (t->column >= 0 && list->any_number && affinity_of_column(v, t->column) != AFFINITY_NUMBER) {
    sqlite3_str_appendall(sql, " OR +");
    append_operand(sql, v, t->column);
    append_in(sql, t, list);
    sqlite3_str_appendall(sql, " OR CAST(");
    append_operand(sql, v, t->column);
    sqlite3_str_appendall(sql, " AS NUMERIC)");
    append_in(sql, t, list);
  }
  int rc = scan_prepare(v, sqlite3_str_finish(sql), &s);
  for (int i = 0; rc == SQLITE_OK && i < list->count; i++)
    rc = sqlite3_bind_value(s, i + 1, list->values[i]);
  if (rc == SQLITE_OK) rc = add_rows(v, s, out);
  sqlite3_finalize(s);
  return rc;
}

static int add_rows_of_in(vtab *v, const plan_term *t, value_list *list, rowset *out) {
  sqlite3_value *value = NULL;
  int rc = sqlite3_vtab_in_first(t->value, &value);
  while (rc == SQLITE_OK && value != NULL) {
    rc = add_value(list, value);
    if (rc == SQLITE_OK && list->count == list->most) {
      rc = rows_of_values(v, t, list, out);
      forget_values(list);
    }
    if (rc == SQLITE_OK) rc = sqlite3_vtab_in_next(t->value, &value);
  }
  if (rc == SQLITE_DONE) rc = SQLITE_OK;
  return rc == SQLITE_OK && list->count > 0 ? rows_of_values(v, t, list, out) : rc;
}

/* So many values at a time as a statement may have parameters. */
static int rows_of_in(vtab *v, const plan_term *t, rowset *out) {
  value_list list = {0};
  int most = sqlite3_limit(v->db, SQLITE_LIMIT_VARIABLE_NUMBER, -1);
  list.most = most < 1 ? 1 : most < VALUES_AT_ONCE ? most : VALUES_AT_ONCE;
  list.values = sqlite3_malloc64((sqlite3_uint64)list.most * sizeof *list.values);
  if (list.values == NULL) return SQLITE_NOMEM;
  int rc = add_rows_of_in(v, t, &list, out);
  forget_values(&list);
  sqlite3_free(list.values);
  rowset_finish(out);
  return rc;
}

/* Adds one more set of rows to those that fulfil everything so far. */
static void narrow(rowset *all, rowset *more, int first) {
  if (first) {
    *all = *more;
    return;
  }
  rowset_intersect(all, more);
  rowset_clear(more);
}

int scan_rows(vtab *v, const plan_term *terms, int count, rowset *out, int *given) {
  rowset more = {0};
  *given = 0;
  int rc = SQLITE_OK;
  if (plan_find(terms, count, 'W') != NULL) {
    rc = rows_of_conditions(v, terms, count, out);
    *given = 1;
  }
  for (int i = 0; rc == SQLITE_OK && i < count; i++) {
    if (terms[i].kind != 'I') continue;
    memset(&more, 0, sizeof more);
    rc = rows_of_in(v, &terms[i], &more);
    narrow(out, &more, !*given);
    *given = 1;
  }
  return rc;
}
