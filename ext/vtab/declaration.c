/*
** declaration.c: what stands between the parentheses of
** CREATE VIRTUAL TABLE t USING bertsql(…).
**
** An argument is an option when a bare word and = begin it, otherwise a column:
** its name, in quotes if need be, its type if it has one, and UNINDEXED. An option
** that is NULL, without quotes, is as if left out.
*/
#include "vtab.h"

#include <string.h>

const char *const hidden_names[HIDDEN_COUNT] = {"",      "k",    "distance", "embedding", "chunk",
                                                "start", "stop", "n_tokens", "truncated", "status"};

/* Reading one declaration: where it goes and what went wrong. */
typedef struct reader {
  const char *table;
  declaration *d;
  char **message;
} reader;

#define RIGHT_FORM "CREATE VIRTUAL TABLE docs_emb USING bertsql(title, body, content='docs')"

/* Sets the message once and returns SQLITE_ERROR, or SQLITE_NOMEM. */
static int refuse(reader *r, const char *format, ...) {
  va_list list;
  va_start(list, format);
  char *text = sqlite3_vmprintf(format, list);
  va_end(list);
  if (text == NULL) return SQLITE_NOMEM;
  *r->message = sqlite3_mprintf("%s: %s", r->table, text);
  sqlite3_free(text);
  return *r->message != NULL ? SQLITE_ERROR : SQLITE_NOMEM;
}

/* ---- Words ------------------------------------------------------------- */

static int is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static int is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || (unsigned char)c >= 0x80;
}

/* Behind a comment, which SQLite leaves in an argument; `at` where there is none. */
static const char *skip_comment(const char *at) {
  const char *end = at;
  if (at[0] == '-' && at[1] == '-') {
    end = at + strcspn(at, "\n");
  } else if (at[0] == '/' && at[1] == '*') {
    end = strstr(at + 2, "*/");
    end = end != NULL ? end + 2 : at + strlen(at);
  }
  return end;
}

static const char *skip_blanks(const char *at) {
  const char *from;
  do {
    from = at;
    while (is_blank(*at)) at++;
    at = skip_comment(at);
  } while (at != from);
  return at;
}

static char closing_quote(char c) {
  return c == '[' ? ']' : c == '\'' || c == '"' || c == '`' ? c : 0;
}

/* A quoted string at *at, its quotes taken off and doubled ones made single;
** moves *at behind it. *out is NULL when its end is missing or without memory. */
static int read_quoted(const char **at, char **out) {
  char quote = closing_quote(**at);
  const char *from = *at + 1;
  char *to = *out = sqlite3_malloc64(strlen(from) + 1);
  if (to == NULL) return SQLITE_NOMEM;
  for (; *from != 0; from++) {
    if (*from == quote && (quote == ']' || from[1] != quote)) {
      *to = 0;
      *at = from + 1;
      return SQLITE_OK;
    }
    if (*from == quote) from++;
    *to++ = *from;
  }
  sqlite3_free(*out);
  *out = NULL;
  return SQLITE_ERROR;
}

static char *copy_text(const char *text, size_t size) {
  return sqlite3_mprintf("%.*s", (int)size, text);
}

/* A bare word or a quoted name. */
static int read_name(const char **at, char **out) {
  const char *from = *at;
  if (closing_quote(*from) != 0) return read_quoted(at, out);
  while (is_word(**at)) ++*at;
  if (*at == from) return SQLITE_ERROR;
  *out = copy_text(from, (size_t)(*at - from));
  return *out != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

/* ---- Options ----------------------------------------------------------- */

typedef enum value_type { VALUE_TEXT, VALUE_NUMBER, VALUE_SWITCH, VALUE_CHOICE } value_type;

typedef struct known_option {
  const char *name;
  value_type type;
  size_t offset; /* in declaration; char * for a text, else int */
  int low;       /* of a number */
  const char *choices[4];
} known_option;

static const known_option known_options[] = {
    {"content", VALUE_TEXT, offsetof(declaration, content), 0, {NULL}},
    {"content_rowid", VALUE_TEXT, offsetof(declaration, content_rowid), 0, {NULL}},
    {"model", VALUE_TEXT, offsetof(declaration, model), 0, {NULL}},
    {"kind", VALUE_TEXT, offsetof(declaration, kind), 0, {NULL}},
    {"prompt", VALUE_TEXT, offsetof(declaration, prompt), 0, {NULL}},
    {"dims", VALUE_NUMBER, offsetof(declaration, dims), 1, {NULL}},
    {"max_tokens", VALUE_NUMBER, offsetof(declaration, max_tokens), 1, {NULL}},
    {"dtype", VALUE_CHOICE, offsetof(declaration, type), 0, {"float32", "int8", NULL}},
    {"metric", VALUE_CHOICE, offsetof(declaration, metric), 0, {"cosine", "l2", "dot", NULL}},
    {"chunk_tokens", VALUE_NUMBER, offsetof(declaration, chunk_tokens), 1, {NULL}},
    {"overlap", VALUE_NUMBER, offsetof(declaration, overlap), 0, {NULL}},
    {"all_chunks", VALUE_SWITCH, offsetof(declaration, all_chunks), 0, {NULL}},
    {"triggers", VALUE_SWITCH, offsetof(declaration, triggers), 0, {NULL}},
    {"auto", VALUE_SWITCH, offsetof(declaration, automatic), 0, {NULL}},
};
enum { KNOWN_OPTIONS = sizeof known_options / sizeof known_options[0] };

/* The names of all options, or of all choices: "a, b, c". */
static char *list_options(void) {
  sqlite3_str *out = sqlite3_str_new(NULL);
  for (int i = 0; i < KNOWN_OPTIONS; i++)
    sqlite3_str_appendf(out, "%s%s", i > 0 ? ", " : "", known_options[i].name);
  return sqlite3_str_finish(out);
}

static int refuse_option(reader *r, const char *name) {
  const char *hint = precision_hint(name);
  char *all = list_options();
  if (all == NULL) return SQLITE_NOMEM;
  int rc = refuse(r, "there is no option %s%s%s; the options are %s, as in " RIGHT_FORM, name,
                  hint != NULL ? ": " : "", hint != NULL ? hint : "", all);
  sqlite3_free(all);
  return rc;
}

static int set_number(reader *r, const known_option *o, const char *value, int low, int high) {
  long long number = 0;
  const char *at = value;
  while (*at >= '0' && *at <= '9' && number <= INT_MAX) number = number * 10 + (*at++ - '0');
  if (at == value || *at != 0 || number < low || number > high)
    return high == 1 ? refuse(r, "option %s must be 0 or 1, not %s", o->name, value)
                     : refuse(r, "option %s must be an integer of at least %d, not %s", o->name,
                              low, value);
  *(int *)((char *)r->d + o->offset) = (int)number;
  return SQLITE_OK;
}

static int set_choice(reader *r, const known_option *o, const char *value) {
  _Static_assert(sizeof(vector_type) == sizeof(int) && sizeof(search_metric) == sizeof(int),
                 "choices are written as int");
  for (int i = 0; o->choices[i] != NULL; i++) {
    if (sqlite3_stricmp(value, o->choices[i]) != 0) continue;
    *(int *)((char *)r->d + o->offset) = i;
    return SQLITE_OK;
  }
  const char *last = o->choices[2] != NULL ? o->choices[2] : "", *hint = precision_hint(o->name);
  return refuse(r, "option %s must be %s%s%s%s%s, not %s%s%s", o->name, o->choices[0],
                *last ? ", " : " or ", o->choices[1], *last ? " or " : "", last, value,
                hint != NULL ? "; it is how vectors are stored, and " : "",
                hint != NULL ? hint : "");
}

/* Takes over `value`. */
static int set_option(reader *r, const known_option *o, char *value) {
  int rc = SQLITE_OK;
  if (o->type == VALUE_TEXT && (value[0] != 0 || strcmp(o->name, "prompt") == 0)) {
    *(char **)((char *)r->d + o->offset) = value;
    return SQLITE_OK;
  }
  switch (o->type) {
  case VALUE_TEXT: rc = refuse(r, "option %s is empty", o->name); break;
  case VALUE_NUMBER: rc = set_number(r, o, value, o->low, INT_MAX); break;
  case VALUE_SWITCH: rc = set_number(r, o, value, 0, 1); break;
  case VALUE_CHOICE: rc = set_choice(r, o, value); break;
  }
  sqlite3_free(value);
  return rc;
}

/* The text after =, up to the end of the argument; NULL for a bare NULL. */
static int read_value(reader *r, const char *name, const char *at, char **value) {
  size_t size;
  at = skip_blanks(at);
  if (closing_quote(*at) != 0) {
    int rc = read_quoted(&at, value);
    if (rc == SQLITE_OK && *skip_blanks(at) == 0) return SQLITE_OK;
    if (rc == SQLITE_NOMEM) return rc;
    sqlite3_free(*value);
    *value = NULL;
    return refuse(r, "the value of option %s must be one text in quotes", name);
  }
  for (size = strlen(at); size > 0 && is_blank(at[size - 1]); size--) {
  }
  for (size_t i = 0; i < size; i++)
    if (!is_word(at[i]) && at[i] != '-' && at[i] != '.')
      return refuse(r, "put the value of option %s in quotes: %s='…'", name, name);
  if (size == 4 && sqlite3_strnicmp(at, "NULL", 4) == 0) return SQLITE_OK;
  *value = copy_text(at, size);
  return *value != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

/* `seen` has a bit for each option that was there already. */
static int read_option(reader *r, const char *name, const char *at, unsigned *seen) {
  char *value = NULL;
  for (int i = 0; i < KNOWN_OPTIONS; i++) {
    if (sqlite3_stricmp(name, known_options[i].name) != 0) continue;
    if (*seen & 1u << i) return refuse(r, "option %s is given twice", name);
    *seen |= 1u << i;
    int rc = read_value(r, name, at, &value);
    return rc == SQLITE_OK && value != NULL ? set_option(r, &known_options[i], value) : rc;
  }
  return refuse_option(r, name);
}

/* ---- Columns ----------------------------------------------------------- */

/* Names that every bertsql table has already; `what` is to be called so. */
static int refuse_reserved(reader *r, const char *what, const char *name) {
  for (int i = 1; i < HIDDEN_COUNT; i++)
    if (sqlite3_stricmp(name, hidden_names[i]) == 0)
      return refuse(
          r,
          "a %s cannot be called %s, which is a hidden column of every bertsql table: "
          "k, distance, embedding, chunk, start, stop, n_tokens, truncated and status are",
          what, name);
  if (sqlite3_stricmp(name, "rowid") == 0 || sqlite3_stricmp(name, "oid") == 0 ||
      sqlite3_stricmp(name, "_rowid_") == 0)
    return refuse(r, "a %s cannot be called %s: every bertsql table has that column already", what,
                  name);
  return SQLITE_OK;
}

static int refuse_taken(reader *r, const char *name) {
  int rc = refuse_reserved(r, "column", name);
  if (rc != SQLITE_OK) return rc;
  for (int i = 0; i < r->d->count; i++)
    if (sqlite3_stricmp(name, r->d->columns[i].name) == 0)
      return refuse(r, "column %s is there twice", name);
  return SQLITE_OK;
}

static int is_refused_word(const char *word, size_t size) {
  static const char *const words[] = {"primary",   "not",     "null",      "unique",
                                      "default",   "collate", "check",     "references",
                                      "generated", "as",      "constraint"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strlen(words[i]) == size && sqlite3_strnicmp(words[i], word, (int)size) == 0) return 1;
  return 0;
}

/* What follows a column's name: its type and UNINDEXED. */
static int read_type(reader *r, declared_column *c, const char *at) {
  const char *from = skip_blanks(at), *end = from;
  for (at = from; *at != 0;) {
    const char *word = at;
    while (is_word(*at)) at++;
    size_t size = (size_t)(at - word);
    if (is_refused_word(word, size) || (size == 0 && strchr("(),0123456789", *at) == NULL))
      return refuse(r, "column %s: a name may be followed by a type and by UNINDEXED, not by %s",
                    c->name, word);
    if (c->unindexed) return refuse(r, "column %s: nothing may follow UNINDEXED", c->name);
    if (size == 9 && sqlite3_strnicmp(word, "UNINDEXED", 9) == 0)
      c->unindexed = 1;
    else
      end = size == 0 ? ++at : at;
    at = skip_blanks(at);
  }
  c->type = copy_text(from, (size_t)(end - from));
  return c->type != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

/* Takes over `name`. */
static int add_column(reader *r, char *name, const char *rest) {
  declaration *d = r->d;
  int rc = refuse_taken(r, name);
  declared_column *grown = NULL;
  if (rc == SQLITE_OK) {
    grown = sqlite3_realloc64(d->columns, sizeof(*grown) * ((size_t)d->count + 1));
    if (grown == NULL) rc = SQLITE_NOMEM;
  }
  if (rc != SQLITE_OK) {
    sqlite3_free(name);
    return rc;
  }
  d->columns = grown;
  d->columns[d->count] = (declared_column){name, NULL, 0};
  return read_type(r, &d->columns[d->count++], rest);
}

/* ---- The whole --------------------------------------------------------- */

static int read_argument(reader *r, const char *at, unsigned *seen) {
  char *name = NULL;
  at = skip_blanks(at);
  int in_quotes = closing_quote(*at) != 0;
  int rc = read_name(&at, &name);
  if (rc == SQLITE_NOMEM) return rc;
  if (rc != SQLITE_OK || name[0] == 0) {
    sqlite3_free(name);
    return refuse(r, "cannot read the argument %s; the form is " RIGHT_FORM,
                  *at ? at : "that is empty");
  }
  const char *rest = skip_blanks(at);
  if (in_quotes || *rest != '=') return add_column(r, name, rest);
  rc = read_option(r, name, rest + 1, seen);
  sqlite3_free(name);
  return rc;
}

/* What arguments that are fine one by one must be together. */
static int check_together(reader *r) {
  declaration *d = r->d;
  int indexed = 0;
  for (int i = 0; i < d->count; i++) {
    indexed += !d->columns[i].unindexed;
    if (d->content != NULL && d->columns[i].type[0] != 0)
      return refuse(r, "column %s has the type that it has in %s; name it without one",
                    d->columns[i].name, d->content);
  }
  if (indexed == 0)
    return refuse(r, "there is no column with a text to embed; the form is " RIGHT_FORM);
  if (d->content != NULL && sqlite3_stricmp(d->content, r->table) == 0)
    return refuse(r, "option content names the table itself; it is the table that holds the texts");
  if (d->content == NULL && d->content_rowid != NULL)
    return refuse(r, "option content_rowid needs option content, the table whose key it is");
  if (d->content == NULL && (d->triggers || d->automatic))
    return refuse(r,
                  "options triggers and auto are for a table with content=; this one keeps its own "
                  "texts and knows what changed");
  if (d->chunk_tokens == 0 && (d->overlap > 0 || d->all_chunks))
    return refuse(r, "options overlap and all_chunks need chunk_tokens, the tokens of a chunk");
  if (d->kind != NULL && d->prompt != NULL)
    return refuse(r, "options kind and prompt exclude each other: a kind is the name of a prompt");
  return SQLITE_OK;
}

int declaration_check_name(declaration *d, const char *table, char **message) {
  reader r = {table, d, message};
  int rc = refuse_reserved(&r, "table", table);
  for (int i = 0; rc == SQLITE_OK && i < d->count; i++)
    if (sqlite3_stricmp(d->columns[i].name, table) == 0)
      rc = refuse(
          &r, "a column cannot have the name of the table, which stands for MATCH and commands");
  return rc;
}

int declaration_read(const char *table, int count, const char *const *argv, declaration *out,
                     char **message) {
  reader r = {table, out, message};
  unsigned seen = 0;
  int rc = SQLITE_OK;
  memset(out, 0, sizeof *out);
  for (int i = 0; rc == SQLITE_OK && i < count; i++) rc = read_argument(&r, argv[i], &seen);
  if (rc == SQLITE_OK) rc = declaration_check_name(out, table, message);
  return rc == SQLITE_OK ? check_together(&r) : rc;
}

void declaration_clear(declaration *d) {
  for (int i = 0; i < d->count; i++) {
    sqlite3_free(d->columns[i].name);
    sqlite3_free(d->columns[i].type);
  }
  sqlite3_free(d->columns);
  sqlite3_free(d->content);
  sqlite3_free(d->content_rowid);
  sqlite3_free(d->model);
  sqlite3_free(d->kind);
  sqlite3_free(d->prompt);
  memset(d, 0, sizeof *d);
}
