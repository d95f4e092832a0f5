/*
** tasks.h: what a checkpoint was trained for, from SQL. The map of this folder:
**
**   head.c            the head of a model, its labels, the scores of a text
**   classify.c        bert_classify and bert_rerank as scalars
**   table_classify.c  bert_classify as a table
**   entity_windows.c  a label for each token of a text of any length
**   table_entities.c  bert_entities: labels of tokens grouped to entities
**   table_fill.c      bert_fill
**
** Logits and scores come from encoder/bert.h, section "Heads".
*/
#ifndef BERTSQL_TASKS_H
#define BERTSQL_TASKS_H

#include "../ext.h"

/* ---- head.c --------------------------------------------------------------- */

/* The head of `m` for one of the tasks. BERT_ARGUMENT says which heads it has. */
bert_status task_find_head(const loaded_model *m, bert_head_kind kind, const bert_head **head,
                           bert_error *error);

/* Finds the model of a call of a table, as table_model does, and its head. */
bert_status task_find_model(const table_call *call, const char *name, bert_head_kind kind,
                            loaded_model **m, const bert_head **head, bert_error *error);

/* Reads the option "labels", an array of names, into *chosen [head->width], from
** sqlite3_malloc64: 1 for the labels that are asked for. NULL stands for all of
** them. `name` says what a label is called, NULL for one that cannot be chosen.
** BERT_ARGUMENT for what is no array of names; an unknown name lists those there
** are. */
bert_status task_choose_labels(const bert_head *head, const json_value *labels,
                               const char *(*name)(const char *label), unsigned char **chosen,
                               bert_error *error);

/* Runs a text, or a pair, through the model. *scores is [head->width], from
** sqlite3_malloc64; *truncated may be NULL. */
bert_status task_scores(loaded_model *m, const bert_head *head, bert_score score, bert_text text,
                        const bert_text *text_b, const bert_token_options *how, float **scores,
                        int *truncated, bert_error *error);

/* ---- classify.c ------------------------------------------------------------ */

/* What bert_classify takes in its options; the table has top_k besides. */
typedef struct classify_options {
  text_options source;
  const json_value *labels; /* NULL: all */
  int top_k;                /* 0: all */
} classify_options;

#define CLASSIFY_OPTIONS                                                                           \
  TEXT_OPTIONS, {                                                                                  \
    "labels", OPTION_JSON, offsetof(classify_options, labels), 0, 0, NULL                          \
  }

/* A text with its scores. */
typedef struct classified {
  loaded_model *model; /* held */
  const bert_head *head;
  float *scores;         /* [head->width] */
  unsigned char *chosen; /* [head->width], 1: asked for */
  int truncated;
} classified;

/* *out is to be cleared whatever the outcome; `text` is not NULL. */
bert_status classified_make(loaded_model *m, sqlite3_value *text, const classify_options *o,
                            classified *out, bert_error *error);
void classified_clear(classified *c); /* may be called twice */

extern const function_entry functions_tasks[]; /* bert_classify, bert_rerank */

/* ---- table_classify.c, table_fill.c ------------------------------------------- */

extern const table_function table_classify;
extern const table_function table_fill;

/* ---- entity_windows.c ----------------------------------------------------------- */

/* The best label of each token of a text, without special tokens. */
typedef struct token_labels {
  size_t first, count; /* the tokens [first, first + count) of the whole */
  int32_t *labels;     /* [count] */
  float *scores;       /* [count], softmax */
} token_labels;

/* Labels the tokens of `source`, which holds all of its text. What exceeds `limit`
** tokens is read in windows that overlap by a quarter; the label of a token is that
** of the window in which more stands around it. *out is to be cleared whatever the
** outcome. BERT_ARGUMENT for a limit that leaves no room for a token. */
bert_status token_labels_make(const tokenized *source, const bert_head *head, size_t limit,
                              token_labels *out, bert_error *error);
void token_labels_clear(token_labels *t); /* may be called twice */

/* ---- table_entities.c ------------------------------------------------------------ */

extern const table_function table_entities;

#endif
