/*
** plan.c: xBestIndex. What a query asks of the table, as a string for xFilter.
**
** Only MATCH and k are consumed. Conditions on rows are handed on so that fewer
** rows are read, and so that k rows are taken of those that fulfil them; SQLite
** checks each again.
*/
#include "query.h"

#include <stdlib.h>
#include <string.h>

typedef struct sqlite3_index_constraint constraint;

/* Guesses for the planner, which only need to be in proportion: SQLite itself
** takes a table it knows nothing about to have a million rows. */
enum { ROWS_OF_TABLE = 1000000, ROWS_OF_K = 10 };
static const double COST_OF_SCAN = 3e6, COST_OF_MATCH = 1e5, COST_OF_ROW = 30;

/* A plan that is right but that another one must be preferred to. */
static const double COST_OF_LAST_RESORT = 1e30;

/* The plan being made. */
typedef struct planner {
  vtab *v;
  sqlite3_index_info *info;
  sqlite3_str *arguments; /* idxStr */
  int argc;
  int match, k;   /* index of the constraint; -1: none */
  int one_row;    /* 1: rowid = */
  int varies;     /* 1: a condition whose value is not written in the query */
  double portion; /* of the rows, that conditions leave */
} planner;

/* ---- Which constraint is what -------------------------------------------- */

static int hidden_column(const planner *p, const constraint *c) {
  return c->iColumn - p->v->declared.count;
}

static int is_match(const planner *p, const constraint *c) {
  return hidden_column(p, c) == HIDDEN_TABLE &&
         (c->op == SQLITE_INDEX_CONSTRAINT_MATCH || c->op == SQLITE_INDEX_CONSTRAINT_EQ);
}

static int is_k(const planner *p, const constraint *c) {
  return hidden_column(p, c) == HIDDEN_K && c->op == SQLITE_INDEX_CONSTRAINT_EQ;
}

static int is_limit(const constraint *c) {
  return c->op == SQLITE_INDEX_CONSTRAINT_LIMIT || c->op == SQLITE_INDEX_CONSTRAINT_OFFSET;
}

/* k says how many rows are wanted, and can do so only once and with =. */
static int is_misused_k(const planner *p, int i) {
  const constraint *c = &p->info->aConstraint[i];
  return hidden_column(p, c) == HIDDEN_K && i != p->k && !is_limit(c);
}

static int is_bound(const planner *p, const constraint *c) {
  return hidden_column(p, c) == HIDDEN_DISTANCE &&
         (c->op == SQLITE_INDEX_CONSTRAINT_LT || c->op == SQLITE_INDEX_CONSTRAINT_LE);
}

static int is_condition(const planner *p, const constraint *c) {
  if (c->iColumn >= p->v->declared.count) return 0;
  switch (c->op) {
  case SQLITE_INDEX_CONSTRAINT_EQ:
  case SQLITE_INDEX_CONSTRAINT_IS:
  case SQLITE_INDEX_CONSTRAINT_LT:
  case SQLITE_INDEX_CONSTRAINT_LE:
  case SQLITE_INDEX_CONSTRAINT_GT:
  case SQLITE_INDEX_CONSTRAINT_GE:
  case SQLITE_INDEX_CONSTRAINT_NE:
  case SQLITE_INDEX_CONSTRAINT_ISNOT: return 1;
  case SQLITE_INDEX_CONSTRAINT_ISNULL:
  case SQLITE_INDEX_CONSTRAINT_ISNOTNULL:
  case SQLITE_INDEX_CONSTRAINT_LIKE:
  case SQLITE_INDEX_CONSTRAINT_GLOB: return c->iColumn >= 0;
  default: return 0;
  }
}

/* How many rows in ten a condition is guessed to leave. */
static double portion_of(const constraint *c) {
  if (c->op == SQLITE_INDEX_CONSTRAINT_EQ || c->op == SQLITE_INDEX_CONSTRAINT_IS) return 0.1;
  return c->op == SQLITE_INDEX_CONSTRAINT_NE ? 0.9 : 0.5;
}

/* ---- What SQLite cannot know to be wrong ----------------------------------- */

static int wrong_match(planner *p, const char *what) {
  return vtab_fail(p->v, SQLITE_ERROR,
                   "%s; the right form is WHERE %s MATCH 'some words' AND k = 10", what,
                   p->v->name);
}

/* Finds MATCH and k. A plan in which a value of theirs is not known yet is none. */
static int find_match(planner *p) {
  for (int i = 0; i < p->info->nConstraint; i++) {
    const constraint *c = &p->info->aConstraint[i];
    int which = is_match(p, c), k = is_k(p, c);
    if (!which && c->op == SQLITE_INDEX_CONSTRAINT_MATCH)
      return wrong_match(p, "MATCH searches all columns at once, not one of them");
    if (which && p->match >= 0) return wrong_match(p, "a query has one MATCH");
    if (which) p->match = i;
    if (k) p->k = i;
  }
  for (int i = 0; i < p->info->nConstraint; i++) {
    const constraint *c = &p->info->aConstraint[i];
    if (!c->usable && (is_match(p, c) || is_k(p, c))) return SQLITE_CONSTRAINT;
  }
  return SQLITE_OK;
}

/* ---- Arguments ----------------------------------------------------------- */

static void add_argument(planner *p, int i, int omit) {
  p->info->aConstraintUsage[i].argvIndex = ++p->argc;
  p->info->aConstraintUsage[i].omit = (unsigned char)omit;
}

static int is_constant(const planner *p, int i) {
  int op = p->info->aConstraint[i].op;
  sqlite3_value *value;
  if (op == SQLITE_INDEX_CONSTRAINT_ISNULL || op == SQLITE_INDEX_CONSTRAINT_ISNOTNULL) return 1;
  return sqlite3_vtab_rhs_value(p->info, i, &value) == SQLITE_OK;
}

/* rowid = something, beside k. If that is the column of another table the query
** joins hits to rows: k counts over all, and the join picks among them. This cannot
** be left to the order of tables, since SQLite may turn LEFT JOIN (SELECT … AND k = 10)
** into a loop with this table inside. If it is a constant it is a condition like all
** others; a parameter is told from a column only in plan_read. */
static int joins_by_row(const planner *p, int i, int is_in) {
  const constraint *c = &p->info->aConstraint[i];
  return p->match >= 0 && p->k >= 0 && c->iColumn < 0 && !is_in && !is_constant(p, i) &&
         (c->op == SQLITE_INDEX_CONSTRAINT_EQ || c->op == SQLITE_INDEX_CONSTRAINT_IS);
}

/* IN with MATCH comes with all values at once, for k counts over all of them. In
** a scan SQLite asks for one value after the other, which is good for rowids
** only. */
static void add_condition(planner *p, int i) {
  const constraint *c = &p->info->aConstraint[i];
  const char *collation = sqlite3_vtab_collation(p->info, i);
  int is_in = sqlite3_vtab_in(p->info, i, -1);
  if (collation == NULL) collation = "BINARY";
  if (strchr(collation, ';') != NULL) return;
  if (is_in && p->match < 0 && c->iColumn >= 0) return;
  if (joins_by_row(p, i, is_in)) {
    sqlite3_str_appendall(p->arguments, "J");
    p->one_row = 1;
    p->varies = 1;
  } else if (is_in && p->match >= 0) {
    sqlite3_vtab_in(p->info, i, 1);
    sqlite3_str_appendf(p->arguments, "I%d:%d:%s;", c->iColumn, SQLITE_INDEX_CONSTRAINT_EQ,
                        collation);
  } else {
    sqlite3_str_appendf(p->arguments, "W%d:%d:%s;", c->iColumn, c->op, collation);
    if (c->iColumn < 0 && portion_of(c) < 0.5) p->one_row = 1;
    if (!is_constant(p, i)) p->varies = 1;
  }
  p->portion *= portion_of(c);
  add_argument(p, i, 0);
}

static void add_arguments(planner *p) {
  if (p->match >= 0) {
    sqlite3_str_appendall(p->arguments, "M");
    add_argument(p, p->match, 1);
  }
  if (p->k >= 0) {
    int is_in = sqlite3_vtab_in(p->info, p->k, -1);
    sqlite3_str_appendall(p->arguments, is_in ? "X" : "K");
    add_argument(p, p->k, 1);
  }
  for (int i = 0; i < p->info->nConstraint; i++) {
    const constraint *c = &p->info->aConstraint[i];
    if (!c->usable || i == p->match || i == p->k) continue;
    if (is_limit(c)) {
      if (p->match < 0 || c->op != SQLITE_INDEX_CONSTRAINT_LIMIT) continue;
      sqlite3_str_appendall(p->arguments, "L");
      add_argument(p, i, 0);
    } else if (p->match >= 0 && is_bound(p, c)) {
      sqlite3_str_appendall(p->arguments, "D");
      add_argument(p, i, 0);
    } else if (p->match >= 0 && is_misused_k(p, i)) {
      sqlite3_str_appendall(p->arguments, "X");
      add_argument(p, i, 0);
    } else if (is_condition(p, c)) {
      add_condition(p, i);
    }
  }
}

/* ---- Cost and order ------------------------------------------------------ */

static sqlite3_int64 guess_k(const planner *p) {
  sqlite3_value *value;
  sqlite3_int64 k = ROWS_OF_K;
  if (sqlite3_vtab_rhs_value(p->info, p->k, &value) == SQLITE_OK) k = sqlite3_value_int64(value);
  return k < 1 ? 1 : k;
}

/* With k, a condition whose value comes from another table of a join would make
** the search run for each row of that table, and give k rows to each. Whoever
** joins means k rows in all: the plan that has this table outermost must win. A
** parameter, or a value of an outer query, looks the same, but has no other plan
** to lose to. */
static void estimate(planner *p) {
  sqlite3_index_info *info = p->info;
  double rows = ROWS_OF_TABLE * p->portion;
  if (p->one_row) rows = p->v->declared.all_chunks ? 4 : 1;
  if (p->match >= 0 && p->k >= 0 && (double)guess_k(p) < rows) rows = (double)guess_k(p);
  if (rows < 1) rows = 1;
  info->estimatedRows = (sqlite3_int64)rows;
  if (p->match < 0)
    info->estimatedCost = p->one_row ? COST_OF_ROW : COST_OF_SCAN * p->portion + COST_OF_ROW;
  else if (p->k >= 0 && p->varies)
    info->estimatedCost = COST_OF_LAST_RESORT;
  else
    info->estimatedCost = (p->one_row ? COST_OF_MATCH / 10 : COST_OF_MATCH) + COST_OF_ROW * rows;
  if (p->one_row && !p->v->declared.all_chunks) info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
}

static int is_ordered_by(const sqlite3_index_info *info, int term, int column) {
  return info->aOrderBy[term].iColumn == column && !info->aOrderBy[term].desc;
}

/* A scan comes in order of rowid, either way; a search in order of distance and,
** where that is equal, of rowid. */
static void order(planner *p) {
  sqlite3_index_info *info = p->info;
  int distance = p->v->declared.count + HIDDEN_DISTANCE;
  if (info->nOrderBy < 1) return;
  if (p->match < 0) {
    if (info->nOrderBy > 1 || info->aOrderBy[0].iColumn >= 0) return;
    if (info->aOrderBy[0].desc) info->idxNum |= PLAN_ORDERED_DOWN;
    info->orderByConsumed = 1;
  } else if (is_ordered_by(info, 0, distance) &&
             (info->nOrderBy == 1 || (info->nOrderBy == 2 && is_ordered_by(info, 1, -1)))) {
    info->orderByConsumed = 1;
  }
}

static int reads_content(const planner *p) {
  int count = p->v->declared.count;
  sqlite3_uint64 mask = count >= 63 ? ~(sqlite3_uint64)0 : ((sqlite3_uint64)1 << count) - 1;
  return (p->info->colUsed & mask) != 0;
}

int plan_best_index(sqlite3_vtab *table, sqlite3_index_info *info) {
  planner p = {.v = (vtab *)table, .info = info, .match = -1, .k = -1, .portion = 1};
  int rc = find_match(&p);
  if (rc != SQLITE_OK) return rc;
  p.arguments = sqlite3_str_new(p.v->db);
  add_arguments(&p);
  rc = sqlite3_str_errcode(p.arguments);
  info->idxStr = sqlite3_str_finish(p.arguments);
  info->needToFreeIdxStr = info->idxStr != NULL;
  if (rc != SQLITE_OK) return rc;
  info->idxNum = reads_content(&p) ? PLAN_CONTENT : 0;
  estimate(&p);
  order(&p);
  return SQLITE_OK;
}

/* ---- Read back ----------------------------------------------------------- */

static const char *read_term(const char *text, plan_term *t) {
  char *end;
  t->kind = *text++;
  if (t->kind != 'W' && t->kind != 'I') return text;
  t->column = (int)strtol(text, &end, 10);
  if (*end != ':') return NULL;
  t->compare = (int)strtol(end + 1, &end, 10);
  if (*end != ':') return NULL;
  t->collation = end + 1;
  text = strchr(t->collation, ';');
  if (text == NULL) return NULL;
  t->collation_size = (int)(text - t->collation);
  return text + 1;
}

int plan_read(const char *text, int argc, sqlite3_value **argv, plan_term *terms) {
  for (int i = 0; i < argc; i++) {
    memset(&terms[i], 0, sizeof terms[i]);
    if (text == NULL || *text == 0) return SQLITE_ERROR;
    text = read_term(text, &terms[i]);
    terms[i].value = argv[i];
    if (terms[i].kind != 'J') continue;
    terms[i].kind = sqlite3_value_frombind(argv[i]) ? 'W' : 'J';
    terms[i].column = -1;
    terms[i].compare = SQLITE_INDEX_CONSTRAINT_EQ;
    terms[i].collation = "";
  }
  return text == NULL && argc > 0 ? SQLITE_ERROR : SQLITE_OK;
}

const plan_term *plan_find(const plan_term *terms, int count, char kind) {
  for (int i = 0; i < count; i++)
    if (terms[i].kind == kind) return &terms[i];
  return NULL;
}
