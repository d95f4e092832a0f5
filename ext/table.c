/*
** table.c: what all table-valued functions share.
**
** One read-only, eponymous module serves every description in ext.h. The
** columns of a table are declared in this order:
**
**   visible results | argument columns | guard | hidden results
**
** SQLite gives the arguments of a call to the hidden columns from left to
** right. Without the guard, an argument too many would quietly become a filter
** on the first hidden result; so a table with hidden results has a column
** behind its arguments for which any value is an error.
**
** Each column that takes an equality has a slot. What xBestIndex found travels
** to xFilter as a bit per slot in idxNum, and the values in argv stand in the
** order of these bits:
**
**   bit 0 … 7    argument column i (the guard counts as one)
**   bit 8 … 30   result column i - 8, if it is pushable
**
** idxStr is the mask of the result columns that are read, in decimal.
**
** A rowid has the number of the row, from 1, in its low 32 bits and a hash of
** the arguments above. SQLite takes rows with equal rowids for the same row when
** it joins the parts of `(in_text = 'a' AND …) OR (in_text = 'b' AND …)`, so the
** same row of two calls must have two, and of two scans of one call only one.
*/
#include "ext.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_PUSHED = TABLE_ARGUMENTS + 1, SLOTS = FIRST_PUSHED + TABLE_COLUMNS };

/* A description as it is registered on one connection. */
typedef struct table_module {
  const table_function *f;
  connection *connection;
  int visible, arguments, guard; /* columns of each kind */
} table_module;

typedef struct table {
  sqlite3_vtab base;
  const table_module *module;
} table;

typedef struct table_cursor {
  sqlite3_vtab_cursor base;
  sqlite3_value *values[SLOTS]; /* copies; NULL where not given, or SQL NULL */
  sqlite3_int64 call;           /* hash of the arguments, in the high half of rowids */
  sqlite3_int64 row;            /* counted from 0 */
  int empty;                    /* 1: no rows, and `own` is not to be asked */
  kept_model *kept;             /* for as long as the statement has the cursor */
  void *own;                    /* the file's struct */
} table_cursor;

/* ---- Columns ----------------------------------------------------------- */

static int count_columns(const char *list) {
  int count = 1;
  if (list == NULL) return 0;
  for (; *list != 0; list++) count += *list == ',';
  return count;
}

/* The result that the SQL column shows; -1 for arguments and the guard. */
static int result_of_column(const table_module *m, int column) {
  int between = m->arguments + m->guard;
  if (column < m->visible) return column;
  if (column < m->visible + between) return -1;
  return column - between;
}

/* The slot of an SQL column; -1 for one that takes no equality. */
static int slot_of_column(const table_module *m, int column) {
  int result;
  if (column < 0) return -1; /* the rowid */
  result = result_of_column(m, column);
  if (result < 0) return column - m->visible;
  if (result >= TABLE_COLUMNS || (m->f->pushable >> result & 1) == 0) return -1;
  return FIRST_PUSHED + result;
}

/* The mask of results that are read, from SQLite's mask of columns, whose last
** bit stands for all columns from 63 on. */
static uint64_t results_used(const table_module *m, sqlite3_uint64 columns) {
  uint64_t used = columns & (uint64_t)1 << 63;
  for (int column = 0; column < 63; column++) {
    int result = result_of_column(m, column);
    if (result >= 0 && (columns >> column & 1) != 0) used |= (uint64_t)1 << result;
  }
  return used;
}

static void append_hidden(sqlite3_str *out, const char *list) {
  while (list != NULL) {
    const char *comma = strchr(list, ',');
    int size = comma != NULL ? (int)(comma - list) : (int)strlen(list);
    sqlite3_str_appendf(out, ", %.*s HIDDEN", size, list);
    list = comma != NULL ? comma + 1 : NULL;
  }
}

static int declare(sqlite3 *db, const table_module *m) {
  sqlite3_str *out = sqlite3_str_new(db);
  char *sql;
  int rc;
  sqlite3_str_appendf(out, "CREATE TABLE x(%s", m->f->columns);
  append_hidden(out, m->f->arguments);
  if (m->guard) append_hidden(out, "surplus_argument");
  append_hidden(out, m->f->hidden);
  sqlite3_str_appendall(out, ")");
  sql = sqlite3_str_finish(out);
  if (sql == NULL) return SQLITE_NOMEM;
  rc = sqlite3_declare_vtab(db, sql);
  sqlite3_free(sql);
  return rc;
}

/* ---- The table --------------------------------------------------------- */

static int table_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                         sqlite3_vtab **out, char **message) {
  const table_module *m = aux;
  table *t;
  int rc = declare(db, m);
  (void)argc, (void)argv, (void)message;
  if (rc == SQLITE_OK) rc = sqlite3_vtab_config(db, m->f->flags);
  if (rc != SQLITE_OK) return rc;
  t = sqlite3_malloc64(sizeof(*t));
  if (t == NULL) return SQLITE_NOMEM;
  memset(t, 0, sizeof(*t));
  t->module = m;
  *out = &t->base;
  return SQLITE_OK;
}

static int table_disconnect(sqlite3_vtab *base) {
  sqlite3_free(base);
  return SQLITE_OK;
}

/* ---- Planning ---------------------------------------------------------- */

/* What the constraints of a plan offer. */
typedef struct offer {
  unsigned given;         /* bit per slot: an equality can be used */
  unsigned unusable;      /* bit per slot: one cannot, in this order of tables */
  int constraints[SLOTS]; /* which one, where given */
} offer;

static void collect(const table_module *m, const sqlite3_index_info *info, offer *o) {
  for (int i = 0; i < info->nConstraint; i++) {
    int slot = info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ
                   ? slot_of_column(m, info->aConstraint[i].iColumn)
                   : -1;
    unsigned bit = slot >= 0 ? 1u << slot : 0;
    if (bit == 0) continue;
    if (!info->aConstraint[i].usable) {
      o->unusable |= bit;
    } else if ((o->given & bit) == 0) {
      /* A second equality on an argument is an ordinary condition, checked by
      ** SQLite against the value that the column gives back. */
      o->given |= bit;
      o->constraints[slot] = i;
    }
  }
}

/* The planner shall run a call once rather than once a row of a cheap table,
** and never choose a plan without the arguments where there is another. */
static void estimate(const table_module *m, unsigned given, sqlite3_index_info *info) {
  unsigned required = (1u << m->f->required) - 1;
  double rows = m->f->rows;
  if ((given & required) != required) {
    info->estimatedCost = 1e30;
    info->estimatedRows = 1000000000;
    return;
  }
  for (int slot = FIRST_PUSHED; slot < SLOTS; slot++)
    if ((given >> slot & 1) != 0) rows /= 10;
  info->estimatedRows = rows < 1 ? 1 : (sqlite3_int64)rows;
  info->estimatedCost = 20 * (rows < 1 ? 1 : rows);
}

static int table_best_index(sqlite3_vtab *base, sqlite3_index_info *info) {
  const table_module *m = ((table *)base)->module;
  unsigned arguments = (1u << FIRST_PUSHED) - 1;
  int next = 1;
  offer o = {0};
  collect(m, info, &o);
  /* An argument whose value comes from a table further in: not this order. */
  if ((o.unusable & ~o.given & arguments) != 0) return SQLITE_CONSTRAINT;
  for (int slot = 0; slot < SLOTS; slot++) {
    if ((o.given >> slot & 1) == 0) continue;
    info->aConstraintUsage[o.constraints[slot]].argvIndex = next++;
    /* The function consumes its arguments: NULL stands for the default, and
    ** comparing it would leave out every row. */
    info->aConstraintUsage[o.constraints[slot]].omit = slot < FIRST_PUSHED;
  }
  info->idxNum = (int)o.given;
  info->idxStr = sqlite3_mprintf("%llu", results_used(m, info->colUsed));
  if (info->idxStr == NULL) return SQLITE_NOMEM;
  info->needToFreeIdxStr = 1;
  estimate(m, o.given, info);
  return SQLITE_OK;
}

/* ---- Cursors ----------------------------------------------------------- */

static const table_module *module_of(const table_cursor *c) {
  return ((const table *)c->base.pVtab)->module;
}

static int table_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out) {
  const table_function *f = ((table *)base)->module->f;
  table_cursor *c = sqlite3_malloc64(sizeof(*c));
  void *own = sqlite3_malloc64(f->cursor_size);
  if (c == NULL || own == NULL) {
    sqlite3_free(c);
    sqlite3_free(own);
    return SQLITE_NOMEM;
  }
  memset(c, 0, sizeof(*c));
  memset(own, 0, f->cursor_size);
  c->own = own;
  *out = &c->base;
  return SQLITE_OK;
}

static void cursor_clear(table_cursor *c) {
  module_of(c)->f->clear(c->own);
  for (int slot = 0; slot < SLOTS; slot++) {
    sqlite3_value_free(c->values[slot]);
    c->values[slot] = NULL;
  }
}

static int table_close(sqlite3_vtab_cursor *base) {
  table_cursor *c = (table_cursor *)base;
  cursor_clear(c);
  kept_models_free(c->kept);
  sqlite3_free(c->own);
  sqlite3_free(c);
  return SQLITE_OK;
}

/* Copies the values, which SQLite lends only until xFilter returns. */
static int take_values(table_cursor *c, unsigned given, sqlite3_value **argv) {
  for (int slot = 0, i = 0; slot < SLOTS; slot++) {
    sqlite3_value *value;
    if ((given >> slot & 1) == 0) continue;
    value = argv[i++];
    if (sqlite3_value_type(value) == SQLITE_NULL) continue;
    c->values[slot] = sqlite3_value_dup(value);
    if (c->values[slot] == NULL) return SQLITE_NOMEM;
  }
  return SQLITE_OK;
}

static uint32_t add_to_hash(uint32_t hash, const void *bytes, size_t size) {
  const unsigned char *b = bytes; /* FNV-1a */
  for (size_t i = 0; i < size; i++) hash = (hash ^ b[i]) * 16777619u;
  return hash;
}

/* Numbers are not read as text: without memory, that makes them NULL. */
static int hash_argument(uint32_t *hash, sqlite3_value *value) {
  int type = value != NULL ? sqlite3_value_type(value) : SQLITE_NULL;
  sqlite3_int64 number = type == SQLITE_INTEGER ? sqlite3_value_int64(value) : type;
  double real = type == SQLITE_FLOAT ? sqlite3_value_double(value) : 0;
  *hash = add_to_hash(add_to_hash(*hash, &number, sizeof(number)), &real, sizeof(real));
  if (type == SQLITE_TEXT && sqlite3_value_text(value) == NULL) return SQLITE_NOMEM;
  if (type == SQLITE_TEXT || type == SQLITE_BLOB) {
    const void *bytes = type == SQLITE_TEXT ? sqlite3_value_text(value) : sqlite3_value_blob(value);
    *hash = add_to_hash(*hash, bytes, (size_t)sqlite3_value_bytes(value));
  }
  return SQLITE_OK;
}

static int hash_arguments(table_cursor *c) {
  uint32_t hash = 2166136261u;
  int rc = SQLITE_OK;
  c->call = 0;
  if (module_of(c)->arguments == 0) return SQLITE_OK;
  for (int slot = 0; slot < FIRST_PUSHED && rc == SQLITE_OK; slot++)
    rc = hash_argument(&hash, c->values[slot]);
  c->call = (sqlite3_int64)(hash >> 1) << 32;
  return rc;
}

static bert_status check_arguments(const table_module *m, unsigned given, bert_error *error) {
  unsigned required = (1u << m->f->required) - 1;
  if ((given & required) != required) return error_set(error, BERT_ARGUMENT, "%s", m->f->usage);
  if (m->guard && (given >> m->arguments & 1) != 0)
    return error_set(error, BERT_ARGUMENT, "takes at most %d arguments", m->arguments);
  return BERT_OK;
}

static int table_filter(sqlite3_vtab_cursor *base, int number, const char *used, int argc,
                        sqlite3_value **argv) {
  table_cursor *c = (table_cursor *)base;
  const table_module *m = module_of(c);
  table_call call = {m->connection, c->values, c->values + FIRST_PUSHED, 0, &c->kept};
  bert_error error = {0};
  (void)argc;
  cursor_clear(c);
  c->row = 0;
  c->empty = 1;
  if (check_arguments(m, (unsigned)number, &error) != BERT_OK)
    return vtab_error(base->pVtab, m->f->name, &error);
  if (take_values(c, (unsigned)number, argv) != SQLITE_OK) return SQLITE_NOMEM;
  if (m->f->required > 0 && c->values[0] == NULL) return SQLITE_OK;
  if (hash_arguments(c) != SQLITE_OK) return SQLITE_NOMEM;
  call.used = used != NULL ? strtoull(used, NULL, 10) : UINT64_MAX;
  if (m->f->start(c->own, &call, &error) != BERT_OK)
    return vtab_error(base->pVtab, m->f->name, &error);
  c->empty = 0;
  return SQLITE_OK;
}

static int table_next(sqlite3_vtab_cursor *base) {
  table_cursor *c = (table_cursor *)base;
  const table_function *f = module_of(c)->f;
  bert_error error = {0};
  c->row++;
  if (f->next(c->own, &error) == BERT_OK) return SQLITE_OK;
  c->empty = 1;
  return vtab_error(base->pVtab, f->name, &error);
}

static int table_eof(sqlite3_vtab_cursor *base) {
  const table_cursor *c = (const table_cursor *)base;
  return c->empty || module_of(c)->f->at_end(c->own);
}

static int table_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column) {
  table_cursor *c = (table_cursor *)base;
  const table_module *m = module_of(c);
  int result = result_of_column(m, column);
  bert_error error = {0};
  if (result < 0) {
    sqlite3_value *value = c->values[column - m->visible];
    if (value != NULL) sqlite3_result_value(context, value);
  } else if (m->f->column(c->own, context, result, &error) != BERT_OK) {
    result_error(context, m->f->name, &error);
  }
  return SQLITE_OK;
}

static int table_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out) {
  const table_cursor *c = (const table_cursor *)base;
  const table_function *f = module_of(c)->f;
  *out = c->call + (f->row != NULL ? f->row(c->own) : c->row) + 1;
  return SQLITE_OK;
}

/* ---- The module -------------------------------------------------------- */

static const sqlite3_module module = {
    .iVersion = 0,
    .xCreate = NULL, /* eponymous only: CREATE VIRTUAL TABLE finds no such module */
    .xConnect = table_connect,
    .xBestIndex = table_best_index,
    .xDisconnect = table_disconnect,
    .xDestroy = NULL,
    .xOpen = table_open,
    .xClose = table_close,
    .xFilter = table_filter,
    .xNext = table_next,
    .xEof = table_eof,
    .xColumn = table_column,
    .xRowid = table_rowid,
    .xUpdate = NULL, /* read-only */
    .xBegin = NULL,
    .xSync = NULL,
    .xCommit = NULL,
    .xRollback = NULL,
    .xFindFunction = NULL,
    .xRename = NULL,
    .xSavepoint = NULL,
    .xRelease = NULL,
    .xRollbackTo = NULL,
    .xShadowName = NULL,
};

static void module_free(void *aux) {
  table_module *m = aux;
  connection_drop(m->connection);
  sqlite3_free(m);
}

int table_register(connection *c, const table_function *f) {
  table_module *m = sqlite3_malloc64(sizeof(*m));
  if (m == NULL) return SQLITE_NOMEM;
  m->f = f;
  m->connection = connection_hold(c);
  m->visible = count_columns(f->columns);
  m->arguments = count_columns(f->arguments);
  m->guard = m->arguments > 0 && f->hidden != NULL;
  return sqlite3_create_module_v2(connection_db(c), f->name, &module, m, module_free);
}

/* ---- For the tables ---------------------------------------------------- */

/* "layer must be an integer from 0 to 6, not the text 'abc'". */
static bert_status not_an_int(sqlite3_value *value, const char *name, int low, int high,
                              bert_error *error) {
  int type = sqlite3_value_type(value);
  bert_text text = {"a BLOB", 6};
  const char *quote = type == SQLITE_TEXT ? "'" : "";
  int nomem = 0;
  if (type != SQLITE_BLOB && !value_text(value, &text, &nomem))
    return error_nomem(error, "reading an argument");
  return error_set(error, BERT_ARGUMENT, "%s must be an integer from %d to %d, not %s%s%.*s%s",
                   name, low, high, type == SQLITE_TEXT ? "the text " : "", quote,
                   text.size < 60 ? (int)text.size : 60, text.data, quote);
}

bert_status value_int(sqlite3_value *value, const char *name, int low, int high, int *out,
                      bert_error *error) {
  int type = value != NULL ? sqlite3_value_type(value) : SQLITE_NULL;
  double number;
  if (type == SQLITE_NULL) return BERT_OK;
  number = sqlite3_value_double(value);
  /* A host language that has only doubles binds 3 as 3.0. */
  if ((type != SQLITE_INTEGER && type != SQLITE_FLOAT) || !(number >= low && number <= high) ||
      number != (double)(int)number)
    return not_an_int(value, name, low, high, error);
  *out = (int)number;
  return BERT_OK;
}

bert_status table_model(const table_call *call, const char *name, loaded_model **out,
                        bert_error *error) {
  return kept_models_find(call->connection, call->kept, name, out, error);
}

int pushed_excludes(sqlite3_value *value, sqlite3_int64 number) {
  if (value == NULL) return 0;
  if (sqlite3_value_type(value) == SQLITE_INTEGER) return sqlite3_value_int64(value) != number;
  if (sqlite3_value_type(value) == SQLITE_FLOAT)
    return sqlite3_value_double(value) != (double)number;
  return 0;
}
