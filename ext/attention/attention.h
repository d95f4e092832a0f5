/*
** attention.h: looking inside the model from SQL. The map of this folder:
**
**   inspection.c          one text run through one model, shared by everything
**                         below; the last one of a connection is kept
**   inspection_options.c  the options that all of them have in common
**   labels.c              what a row or column is called
**   axis.c                the coordinates that the rows of a table run over
**   attn_weights.c        attn_weights as a scalar
**   table_attn_weights.c  attn_weights as a table, row by row
**   table_attn_heads.c    attn_heads
**   table_attn_rollout.c  attn_rollout
**   table_attn_neurons.c  attn_neurons
**   self_attention.c      self_attention, positional_encoding
**   attn_pictures.c       attn_heatmap, attn_svg: options and labels for ext/render
**   attn_html.c           attn_html: the page, with html_run.c and html_encode.c (html.h)
**
** Layer and head arguments are read by value_int of table.c. Pictures are drawn
** by ext/render, which knows nothing of models.
*/
#ifndef BERTSQL_ATTENTION_H
#define BERTSQL_ATTENTION_H

#include "../ext.h"

/* ---- inspection_options.c ----------------------------------------------- */

/* What every function of this folder takes in its options object. */
typedef struct inspection_options {
  const char *model;  /* NULL: the default one */
  const char *text_b; /* NULL: no second text */
  int words;          /* 1: merge word pieces */
  int special;        /* 0: leave out special tokens; 1 by default */
  int renormalize;    /* 1: with special 0, let rows sum to 1 again */
  double temperature; /* 1 by default */
  int max_tokens;     /* 0: the model's own limit */
} inspection_options;

extern const inspection_options inspection_defaults;

/* The rows for options_parse that fill an inspection_options at `offset` in the
** caller's target; put before the caller's own. */
#define INSPECTION_SPECS(target, member)                                                           \
  {"model", OPTION_TEXT, offsetof(target, member.model), 0, 0, NULL},                              \
      {"text_b", OPTION_TEXT, offsetof(target, member.text_b), 0, 0, NULL},                        \
      {"words", OPTION_BOOL, offsetof(target, member.words), 0, 0, NULL},                          \
      {"special", OPTION_BOOL, offsetof(target, member.special), 0, 0, NULL},                      \
      {"renormalize", OPTION_BOOL, offsetof(target, member.renormalize), 0, 0, NULL},              \
      {"temperature", OPTION_NUMBER, offsetof(target, member.temperature), 1e-6, 1e6, NULL}, {     \
    "max_tokens", OPTION_INT, offsetof(target, member.max_tokens), 1, INT_MAX, NULL                \
  }

/* A layer or head that must be given, where a table would take NULL for all: an
** integer from 0 to count - 1. `what` is "layer" or "head" in errors. */
bert_status inspection_index(sqlite3_value *value, const char *what, int count, int *index,
                             bert_error *error);

/* For tables without options of their own. */
typedef struct table_options {
  inspection_options inspect;
} table_options;

extern const option_spec table_specs[];
extern const size_t table_specs_count;

/* ---- inspection.c -------------------------------------------------------- */

/* One text, or pair, run through one model. Counted, since the connection keeps
** the last one: asking for another head of the same text runs nothing. The
** view belongs to the inspection, the pass behind it may be shared. */
typedef struct inspection {
  loaded_model *model;       /* held */
  const bert_tokens *tokens; /* the whole text's; the used ones went through */
  const bert_pass *pass;     /* kept with BERT_KEEP_ATTENTION */
  bert_view *view;           /* units: rows and columns of every matrix below */
  bert_text text, text_b;    /* copies; text_b.data is NULL without a pair */
  int truncated;             /* 1: the text was cut at the token limit */
  int layers, heads;
  int words; /* 1: the units are words */
  double temperature;
  struct kept_pass *kept; /* what is shared; held */
} inspection;

/* Runs `text` through `model` as the options say, or finds it run already; the name
** in the options is the caller's to look up. Freed with inspection_close. */
bert_status inspection_open(connection *c, loaded_model *model, bert_text text,
                            const inspection_options *o, inspection **out, bert_error *error);
void inspection_close(inspection *i); /* NULL is allowed */

/* The weights [count, count] of one head in the units of the view, with the
** inspection's temperature. */
bert_status inspection_weights(const inspection *i, int layer, int head, float *weights,
                               bert_error *error);

/* The inspection for a call of a table whose first argument is a text, which is
** not NULL. `o` holds the defaults, and then what the options say; strings in
** it are gone. */
bert_status inspection_for_table(const char *function, const table_call *call, int options_at,
                                 const option_spec *specs, size_t count, table_options *o,
                                 inspection **out, bert_error *error);

/* ---- labels.c ------------------------------------------------------------ */

/* What unit `u` of the view is called: the vocabulary's string of a token; where
** units are words, the slice of the text, and the token of a special one. From
** sqlite3_malloc64, NUL-terminated valid UTF-8 (what is not is U+FFFD), *size
** without the NUL; NULL when out of memory. */
char *inspection_label(const inspection *i, size_t u, size_t *size);

/* The labels that a scan has asked for so far; zeroed at first. */
typedef struct unit_label {
  char *text; /* NULL: not asked for yet */
  size_t size;
} unit_label;

typedef struct label_cache {
  unit_label *labels; /* [count] */
  size_t count;
} label_cache;

/* Makes the label of unit `u` the result. BERT_NOMEM. */
bert_status label_result(sqlite3_context *context, label_cache *cache, const inspection *i,
                         size_t u, bert_error *error);
void labels_clear(label_cache *cache); /* may be called twice */

/* ---- axis.c -------------------------------------------------------------- */

/* One coordinate of the rows: numbers [first, stop) of [0, count), now `at`. */
typedef struct axis {
  size_t first, stop, at, count;
} axis;

/* All of [0, count), or what of it may equal `pushed` (NULL: anything). */
void axis_set(axis *a, size_t count, sqlite3_value *pushed);
void axis_keep(axis *a, size_t number); /* only this of what it has */

/* The product of axes[count], the last one running fastest. Begin once all are
** set; next moves on. */
void axes_begin(axis *axes, size_t count);
void axes_next(axis *axes, size_t count);
int axes_at_end(const axis *axes);

/* The number of the present row among those of whole axes; its low 32 bits,
** which is what a rowid has room for. */
sqlite3_int64 axes_row(const axis *axes, size_t count);

/* ---- self_attention.c ---------------------------------------------------- */

void call_self_attention(sqlite3_context *context, int argc, sqlite3_value **argv);
void call_positional_encoding(sqlite3_context *context, int argc, sqlite3_value **argv);

/* ---- what this folder registers ------------------------------------------ */

extern const function_entry functions_attention[]; /* attn_weights, self_attention, … */
extern const function_entry functions_pictures[];  /* attn_heatmap, attn_svg */
extern const function_entry functions_html[];      /* attn_html */
extern const table_function table_attn_weights;
extern const table_function table_attn_heads;
extern const table_function table_attn_rollout;
extern const table_function table_attn_neurons;

#endif
