/*
** ext.h: bertsql inside SQLite. The map of this folder:
**
**   bertsql.c           entry point: registers everything below
**   registry.c          the models of a connection, by name
**   settings.c          bert_set, bert_info, bert_version
**   options.c           the JSON object `options` that ends most argument lists
**   results.c           errors, vectors and JSON as SQLite values; arrays that grow
**   functions_model.c   bert_load, bert_unload
**   functions_embed.c   bert_embed, bert_similarity, bert_token_count, …
**   functions_vector.c  bert_cosine, bert_dot, bert_l2, bert_vector, bert_json
**   table.c             what all table-valued functions share
**   table_models.c      bert_models
**   table_tokens.c      bert_tokens
**   table_chunks.c      bert_chunks
**   table_hidden.c      bert_hidden
**   table_embed_rows.c  bert_embed_rows
**   embed_batch.c       rows of a statement embedded batch by batch
**   vtab/               the virtual table bertsql, and bert_status
**   attention/          what looks inside the model: attn_weights, attn_heads, …
**   render/             matrices as pictures
**   tasks/              what a head was trained for: bert_classify, bert_rerank, …
**
** It sees the encoder through bert.h, and base.h for the JSON reader. Memory
** that belongs to this folder comes from sqlite3_malloc64. Errors travel as a
** bert_error until they become an SQL error in results.c.
*/
#ifndef BERTSQL_EXT_H
#define BERTSQL_EXT_H

#include <sqlite3ext.h> /* with -DSQLITE_CORE no more than sqlite3.h */

/* The API table of the host, defined in bertsql.c. */
#ifndef BERTSQL_ENTRY
SQLITE_EXTENSION_INIT3
#endif

#include <limits.h>

#include "../encoder/base/base.h"
#include "../encoder/bert.h"

/* Subtypes of results: a vector of float32, as sqlite-vec marks them; JSON. */
enum { SUBTYPE_VECTOR = 223, SUBTYPE_JSON = 74 };

/* ---- bertsql.c --------------------------------------------------------- */

/* Everything bertsql keeps for one connection. Shared by all functions and
** modules registered on it and freed when the last of them is. */
typedef struct connection connection;

sqlite3 *connection_db(const connection *c);

/* One more owner, and one fewer. Hold before each registration that hands the
** connection to SQLite, with connection_drop as its xDestroy: SQLite calls
** that when the registration goes, and also when it fails. */
connection *connection_hold(connection *c);
void connection_drop(void *user);

/* Where the connection keeps its last pass, for ext/attention/inspection.c. */
struct kept_pass **connection_kept_pass(connection *c);
/* Lets go of it: when the connection closes, and when a model is unloaded. */
void connection_forget_pass(connection *c);

/* The first of the virtual tables that are connected, for ext/vtab/module.c. */
struct vtab **connection_tables(connection *c);

/* The file this library was loaded from, absolute; "" when that cannot be told. */
const char *library_path(void);

/* 1 when the host is at least `version`, as 3041000: ask before touching a
** newer entry of the API table. */
int host_has(int version);

/* Asked by the encoder between layers: 1 when the user interrupted. `user` is
** the connection. */
int connection_interrupted(void *user);

/* How that is found out: "sqlite3_is_interrupted" or "statement". */
const char *interrupt_method(void);

/* ---- registry.c -------------------------------------------------------- */

/* A model under a name on one connection, with the encoder this connection
** runs it with. Counted: whoever keeps it beyond one call holds and drops it,
** so that bert_unload in the middle of a query takes nothing away from it. */
typedef struct loaded_model {
  char *name;
  char *source; /* as it was given to bert_load */
  char *place;  /* where to open it from any working directory: the absolute path of a
                   directory, a hub id as it is */
  bert_model *model;
  bert_encoder *encoder;
  int is_default;
  int owners;
  struct loaded_model *next;
} loaded_model;

/* Finds the model `name`, or the default one for NULL, opening that on first
** use. The result is valid during this call into SQLite; hold it to keep it.
** BERT_ARGUMENT lists the names there are; without any model the error says
** the three ways to one. The default model answers to its own name too, before
** anything is loaded. */
bert_status registry_find(connection *c, const char *name, loaded_model **out, bert_error *error);
/* The same; *opened is 1 when the default model was opened for it, which registry_close
** takes back for whoever finds that it is not the model that was looked for. */
bert_status registry_try(connection *c, const char *name, loaded_model **out, int *opened,
                         bert_error *error);
void registry_close(connection *c, loaded_model *m);
/* The same among the models that are loaded, or NULL: nothing is opened. Names are unique,
** so a model that is not the one of its name was unloaded. */
loaded_model *registry_loaded(connection *c, const char *name);
bert_status registry_load(connection *c, const char *source, const char *name,
                          const bert_open_options *open, loaded_model **out, bert_error *error);
bert_status registry_unload(connection *c, const char *name, bert_error *error);
loaded_model *registry_first(connection *c);           /* in the order of loading */
void registry_set_threads(connection *c, int threads); /* of every encoder */
void registry_clear(connection *c);                    /* when the connection closes */
loaded_model **connection_models(connection *c);       /* bertsql.c keeps the list */
void loaded_model_hold(loaded_model *m);
void loaded_model_drop(loaded_model *m); /* NULL is allowed */

/* The models that a statement has used, held: a name (NULL: the default) means to it
** what it meant first, whatever is unloaded and loaded meanwhile. *kept is NULL at
** first. Errors as registry_find, and BERT_NOMEM. */
typedef struct kept_model kept_model;
bert_status kept_models_find(connection *c, kept_model **kept, const char *name, loaded_model **out,
                             bert_error *error);
void kept_models_free(void *kept); /* NULL is allowed */

/* ---- settings.c -------------------------------------------------------- */

typedef struct settings {
  int threads;      /* 0: one per core */
  int progress;     /* 1: a line on stderr during long work */
  int search_cache; /* MB that a virtual table may keep of its blocks; 0: none */
} settings;

enum { SEARCH_CACHE = 64 }; /* the default of search_cache */

settings *connection_settings(connection *c);

/* ---- options.c --------------------------------------------------------- */

/* One key that an options object may have, and where its value goes. */
typedef enum option_type {
  OPTION_INT,    /* a JSON number without a fraction, 64 or 64.0,
                    in [low, high] into an int; with `choices`, its words
                    for "8 or 16", only low or high */
  OPTION_BOOL,   /* true, false, 1 or 0 into an int */
  OPTION_NUMBER, /* a finite number in [low, high] into a double */
  OPTION_TEXT,   /* a string into a const char *, living as long as the options */
  OPTION_CHOICE, /* a string among `choices` (separated by |), capitals or not: its
                    index, an int */
  OPTION_JSON    /* anything but null into a const json_value *, living as long as the
                    options: the caller checks it */
} option_type;

typedef struct option_spec {
  const char *key;
  option_type type;
  size_t offset; /* of the field in the target struct */
  double low, high;
  const char *choices;
} option_spec;

/* Parsed options; keeps the strings alive. */
typedef struct options options;

/* Reads the JSON object in `value` (NULL pointer or SQL NULL: no options) into
** `target`, whose fields hold the defaults. `function` names the SQL function
** in errors: no JSON, no object, an unknown key (lists those that exist), a
** wrong type or range. *out is freed with options_free, NULL included. */
bert_status options_parse(const char *function, sqlite3_value *value, const option_spec *specs,
                          size_t count, void *target, options **out, bert_error *error);
void options_free(options *o);

/* What to say of an unknown `key` that is the precision of a model (precision, dtype):
** where that belongs, with an example. NULL for any other key. */
const char *precision_hint(const char *key);

/* Sees that *array, from sqlite3_malloc64, has room for `count` elements of `size`
** bytes, growing by half; *room is how many it has room for. 0 without memory, the
** array then being as before. In results.c. */
int array_grow(void **array, size_t *room, size_t count, size_t size);

/* ---- results.c --------------------------------------------------------- */

/* The SQLite result code for a status: SQLITE_NOMEM, SQLITE_INTERRUPT, else
** SQLITE_ERROR. */
int result_code(bert_status status);

/* Makes `error` the result of a function: "bert_embed: text". */
void result_error(sqlite3_context *context, const char *function, const bert_error *error);

/* Makes `error` the message of a virtual table and returns its code. */
int vtab_error(sqlite3_vtab *table, const char *function, const bert_error *error);

/* A vector [dim] as a BLOB of little-endian float32 with its subtype. The
** buffer is one from sqlite3_malloc64 and now belongs to SQLite. */
void result_vector(sqlite3_context *context, float *vector, int dim);
void result_vector_copy(sqlite3_context *context, const float *vector, int dim);

/* JSON text from sqlite3_malloc64, with its subtype; now belongs to SQLite. */
void result_json(sqlite3_context *context, char *json, sqlite3_int64 size);

/* The text of a value as SQLite reads it as text: any type but NULL (returns
** 0 for it). Valid until the value changes. `memory` is set when SQLite had no
** memory to convert it. */
int value_text(sqlite3_value *value, bert_text *text, int *nomem);

/* A name argument: NULL for SQL NULL or an absent one. BERT_ARGUMENT for a name
** that holds a NUL byte. Valid until the value changes. */
bert_status value_name(sqlite3_value *value, const char **name, bert_error *error);

/* As value_name, for a name that options may follow or be taken for: one that
** begins with '{' is BERT_ARGUMENT, and `instead` says what is right. */
bert_status value_name_only(sqlite3_value *value, const char *instead, const char **name,
                            bert_error *error);

/* A vector argument: a BLOB of float32, or JSON text. The numbers are copied to
** *vector [*dim], from sqlite3_malloc64. Errors name what was found. */
bert_status value_vector(sqlite3_value *value, float **vector, int *dim, bert_error *error);

/* The same without a copy where the BLOB lies well for floats. `data` is valid
** until the value changes; `owned` is what vector_view_clear frees. */
typedef struct vector_view {
  const float *data; /* [dim] */
  int dim;
  float *owned;
} vector_view;
bert_status value_vector_view(sqlite3_value *value, vector_view *view, bert_error *error);
void vector_view_clear(vector_view *view);

/* 1 when two values are the same, type included. */
int value_same(sqlite3_value *a, sqlite3_value *b);

/* The vector in a JSON text, as value_vector. */
bert_status vector_from_json(bert_text text, float **vector, int *dim, bert_error *error);

/* Appends "[1,2.5,…]" with 7 significant digits. The numbers must be finite:
** JSON has no others. */
void json_append_vector(sqlite3_str *out, const float *vector, int dim);

/* Bytes of the UTF-8 character at text[size]; 0 when there is none: broken, cut
** short, a surrogate, beyond U+10FFFF. */
size_t utf8_character_size(const unsigned char *text, size_t size);

/* Appends text[size] as a JSON string; what is not UTF-8 becomes U+FFFD. */
void json_append_text(sqlite3_str *out, const char *text, size_t size);

/* Ends `out`, which is then gone, and makes it the JSON result. */
void result_json_str(sqlite3_context *context, sqlite3_str *out);

/* ---- functions_embed.c ------------------------------------------------- */

/* The options of everything that embeds, ready for the encoder. Texts in it
** live as long as `parsed`. */
typedef struct embed_settings {
  bert_embed_options embed;
  const char *model; /* NULL: the default */
  options *parsed;
} embed_settings;

/* Reads prompt, kind, dims, normalize, pooling, truncate, max_tokens and model
** into *out, to be cleared whatever the outcome; errors as options_parse. */
bert_status embed_settings_read(const char *function, sqlite3_value *value, embed_settings *out,
                                bert_error *error);
void embed_settings_clear(embed_settings *s);

/* Adds to a BERT_TOO_LONG what can be done about it in SQL; leaves other errors. */
void embed_error_explain(const loaded_model *m, const bert_embed_options *how, bert_error *error);

/* ---- functions and tables ---------------------------------------------- */

/* One row of the list of SQL functions that a file offers. */
typedef struct function_entry {
  const char *name;
  int min_args, max_args;
  int flags; /* besides SQLITE_UTF8 */
  void (*call)(sqlite3_context *context, int argc, sqlite3_value **argv);
  int gives_subtype; /* registers with SQLITE_RESULT_SUBTYPE where known */
} function_entry;

/* The connection a function was registered on. */
connection *function_connection(sqlite3_context *context);

/* The model of a scalar function. Where argument `index` is constant in the statement,
** SQLite keeps it with that argument, for this place in the statement (kept_models_find);
** where there is none, or it is not constant, this is registry_find. In registry.c. */
bert_status function_model(sqlite3_context *context, int argc, int index, const char *name,
                           loaded_model **out, bert_error *error);

/* Lists that end with a name of NULL. */
extern const function_entry functions_model[];
extern const function_entry functions_embed[];
extern const function_entry functions_vector[];
extern const function_entry functions_settings[];

/* ---- table.c ----------------------------------------------------------- */

/* One call of a table-valued function, as xFilter sees it. The values stay
** valid until the next start or clear of the same cursor, so a text need not
** be copied. */
typedef struct table_call {
  connection *connection;
  sqlite3_value **arguments; /* [number of arguments]; NULL for one that was not
                                given, or is SQL NULL */
  sqlite3_value **pushed;    /* [TABLE_COLUMNS], by result column: the value it
                                must equal, or NULL. Only a hint: SQLite checks
                                each row again, so a value of an odd type may
                                be ignored, and no row that equals it left out */
  uint64_t used;             /* bit i: result column i is read; bit 63 stands for
                                column 63 and all after it */
  kept_model **kept;         /* the cursor's */
} table_call;

/* The model of a call, which the cursor keeps for all its calls: kept_models_find. */
bert_status table_model(const table_call *call, const char *name, loaded_model **out,
                        bert_error *error);

enum { TABLE_ARGUMENTS = 7, TABLE_COLUMNS = 23 }; /* at most, see table.c */

/* A table-valued function. table.c turns such a description into a module, and
** does all that is about SQLite rather than about the result. `start` computes
** the first row, `next` the following one, or both walk over what start made. */
typedef struct table_function {
  const char *name;
  const char *columns;   /* visible, "pos INTEGER, token TEXT", in order of column() */
  const char *hidden;    /* further results, not in SELECT *; NULL: none */
  const char *arguments; /* "in_text, options", without types; NULL: none */
  const char *usage;     /* the right form, for the error when one is missing:
                            "needs a text, as in bert_tokens('some text')" */
  int required;          /* so many of the arguments must be given. When the
                            first of them is SQL NULL, there are no rows */
  int flags;             /* SQLITE_VTAB_INNOCUOUS or SQLITE_VTAB_DIRECTONLY */
  uint32_t pushable;     /* bit i: `start` makes use of an equality on result
                            column i */
  double rows;           /* a guess how many rows a call has, for the planner */
  size_t cursor_size;    /* of the file's own struct, zeroed at xOpen */
  /* Comes to the first row of a new call; the cursor has been cleared. */
  bert_status (*start)(void *cursor, const table_call *call, bert_error *error);
  bert_status (*next)(void *cursor, bert_error *error); /* to the next row */
  int (*at_end)(const void *cursor);
  /* Result `column`, counted over visible, then hidden columns. */
  bert_status (*column)(void *cursor, sqlite3_context *context, int column, bert_error *error);
  /* Which row of all the call has this is, counted from 0. NULL where start
  ** leaves none out. */
  sqlite3_int64 (*row)(const void *cursor);
  void (*clear)(void *cursor); /* frees what start and next made, also after
                                  they failed half way; may be called twice */
} table_function;

int table_register(connection *c, const table_function *f);

/* An integer argument between low and high into *out, which keeps its default
** when the value is NULL. BERT_ARGUMENT names the argument and what was found:
** a text, a fraction, a number out of range. */
bert_status value_int(sqlite3_value *value, const char *name, int low, int high, int *out,
                      bert_error *error);

/* 1 when a pushed value says that an integer column cannot be `number`; 0 when
** it equals it, or is of a type that only SQLite should compare. */
int pushed_excludes(sqlite3_value *value, sqlite3_int64 number);

/* ---- table_tokens.c ---------------------------------------------------- */

/* The options of everything that looks at the tokens of one text. Where there
** are more, this is the first member of the larger struct, and TEXT_OPTIONS
** begins its list of option_spec. */
typedef struct text_options {
  const char *model;  /* NULL: the default */
  const char *text_b; /* NULL: no pair */
  int max_tokens;     /* 0: the model's own */
} text_options;

#define TEXT_OPTIONS                                                                               \
  {"model", OPTION_TEXT, offsetof(text_options, model), 0, 0, NULL},                               \
      {"text_b", OPTION_TEXT, offsetof(text_options, text_b), 0, 0, NULL}, {                       \
    "max_tokens", OPTION_INT, offsetof(text_options, max_tokens), 1, INT_MAX, NULL                 \
  }

/* A text, or a pair, with its tokens. */
typedef struct tokenized {
  loaded_model *model; /* held */
  bert_text texts[2];  /* by segment; borrowed from value and options */
  bert_tokens *tokens;
} tokenized;

/* Tokenizes a text that is not NULL. `only_used` leaves out what the model does
** not see. *out is to be cleared whatever the outcome. */
bert_status tokenized_make(const table_call *call, sqlite3_value *text, const text_options *o,
                           int only_used, tokenized *out, bert_error *error);
void tokenized_clear(tokenized *t); /* may be called twice */

/* Makes the vocabulary's string of token `row` the result. */
void tokenized_result_token(sqlite3_context *context, const tokenized *t, size_t row);

/* ---- the tables -------------------------------------------------------- */

extern const table_function table_models;
extern const table_function table_tokens;
extern const table_function table_chunks;
extern const table_function table_hidden;
extern const table_function table_embed_rows;

/* ---- embed_batch.c ----------------------------------------------------- */

/* Rows (key, text) that are embedded together, whose number and bytes are
** bounded. begin; add until full; run; read rows 0 … count - 1; begin again. */
typedef struct embed_batch embed_batch;

/* An embedded row; valid until the next begin. */
typedef struct embed_row {
  sqlite3_value *key;
  const float *vector; /* [dim]; NULL when the text was NULL, or refused */
  bert_embed_result result;
  const char *refused; /* why the text was, after embed_batch_run_each; else NULL */
} embed_row;

/* Makes a batch for `model`, which it holds. `how` and its strings must
** outlive it. With bert_set('progress', 1), long work writes a line on stderr
** that begins with `what` and ends when the batch is freed.
** Errors: BERT_ARGUMENT as bert_embed_dim, BERT_NOMEM. */
bert_status embed_batch_create(connection *c, loaded_model *model, const char *what,
                               const bert_embed_options *how, embed_batch **out, bert_error *error);
void embed_batch_free(embed_batch *b); /* NULL is allowed */
int embed_batch_dim(const embed_batch *b);

/* What the line of progress counts, in place of "rows"; a constant. */
void embed_batch_count_as(embed_batch *b, const char *unit);

/* Forgets the rows; keeps the memory. */
void embed_batch_begin(embed_batch *b);

/* Copies a key, if there is one, and a text; NULL stands for a NULL text.
** BERT_NOMEM. */
bert_status embed_batch_add(embed_batch *b, sqlite3_value *key, const bert_text *text,
                            bert_error *error);
int embed_batch_full(const embed_batch *b);

/* Embeds all texts on all threads. Errors: as bert_embed, with the key of the
** row whose text was refused. `error` is not NULL. */
bert_status embed_batch_run(embed_batch *b, bert_error *error);

/* The same, but a text that is refused (BERT_TOO_LONG, BERT_NUMERIC) does not
** stop the others: its row has no vector and says why. */
bert_status embed_batch_run_each(embed_batch *b, bert_error *error);
size_t embed_batch_count(const embed_batch *b);
embed_row embed_batch_row(const embed_batch *b, size_t row);

#endif
