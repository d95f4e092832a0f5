/*
** head.c: the head of a model, its labels, and the scores of a text.
*/
#include "tasks.h"

#include <string.h>

/* ---- The head ---------------------------------------------------------------- */

static const char *const head_tasks[] = {[BERT_HEAD_CLASSIFY] = "classification",
                                         [BERT_HEAD_ENTITIES] = "entities",
                                         [BERT_HEAD_FILL] = "filling in mask tokens"};

/* The tasks of a model without the embedding that all of them can; "" for none. */
static const char *other_tasks(const bert_model *model) {
  const char *comma = strchr(bert_describe(model)->tasks, ',');
  return comma != NULL ? comma + 1 : "";
}

bert_status task_find_head(const loaded_model *m, bert_head_kind kind, const bert_head **head,
                           bert_error *error) {
  const char *others = other_tasks(m->model);
  *head = bert_find_head(m->model, kind);
  if (*head != NULL) return BERT_OK;
  if (others[0] == 0)
    return error_set(error, BERT_ARGUMENT,
                     "the model \"%s\" has no head for %s: it has no head at all, only embeddings; "
                     "name one that has in the option \"model\"",
                     error_quote(m->name).text, head_tasks[kind]);
  return error_set(error, BERT_ARGUMENT,
                   "the model \"%s\" has no head for %s; the heads it has are for: %s",
                   error_quote(m->name).text, head_tasks[kind], others);
}

bert_status task_find_model(const table_call *call, const char *name, bert_head_kind kind,
                            loaded_model **m, const bert_head **head, bert_error *error) {
  bert_status status = table_model(call, name, m, error);
  return status == BERT_OK ? task_find_head(*m, kind, head, error) : status;
}

/* ---- Labels --------------------------------------------------------------------- */

/* Whether label i is the first of that name. */
static int is_first(const bert_head *head, int i, const char *(*name)(const char *)) {
  const char *own = name(head->labels[i]);
  for (int j = 0; own != NULL && j < i; j++) {
    const char *other = name(head->labels[j]);
    if (other != NULL && strcmp(own, other) == 0) return 0;
  }
  return own != NULL;
}

static bert_status unknown_label(const bert_head *head, const char *label,
                                 const char *(*name)(const char *), bert_error *error) {
  enum { MOST = 20 };
  char list[800] = "";
  int used = 0, shown = 0;
  for (int i = 0; i < head->width && shown <= MOST && used < (int)sizeof list - 100; i++) {
    if (!is_first(head, i, name)) continue;
    sqlite3_snprintf((int)sizeof list - used, list + used, "%s%s", shown > 0 ? ", " : "",
                     shown < MOST ? error_quote(name(head->labels[i])).text : "…");
    used += (int)strlen(list + used);
    shown++;
  }
  return error_set(error, BERT_ARGUMENT, "the model has no label \"%s\"; its labels are %s",
                   error_quote(label).text, list);
}

static bert_status choose_label(const bert_head *head, const json_value *label,
                                const char *(*name)(const char *), unsigned char *chosen,
                                bert_error *error) {
  int found = 0;
  if (label->type != JSON_STRING)
    return error_set(error, BERT_ARGUMENT, "option \"labels\" must hold names, not %s",
                     json_type_name(label->type));
  for (int i = 0; i < head->width; i++) {
    const char *own = name(head->labels[i]);
    if (own == NULL || strcmp(own, label->string) != 0) continue;
    chosen[i] = 1;
    found = 1;
  }
  return found ? BERT_OK : unknown_label(head, label->string, name, error);
}

bert_status task_choose_labels(const bert_head *head, const json_value *labels,
                               const char *(*name)(const char *label), unsigned char **chosen,
                               bert_error *error) {
  size_t width = (size_t)head->width;
  bert_status status = BERT_OK;
  if (labels != NULL && (labels->type != JSON_ARRAY || labels->first == NULL))
    return error_set(error, BERT_ARGUMENT,
                     "option \"labels\" must be an array of names such as [\"%s\"], not %s",
                     error_quote(head->labels[0]).text,
                     labels->type == JSON_ARRAY ? "an empty one" : json_type_name(labels->type));
  *chosen = sqlite3_malloc64(width);
  if (*chosen == NULL) return error_nomem(error, "choosing labels");
  memset(*chosen, labels == NULL, width);
  for (const json_value *i = labels ? labels->first : NULL; i != NULL && status == BERT_OK;
       i = i->next)
    status = choose_label(head, i, name, *chosen, error);
  return status;
}

/* ---- Scores ------------------------------------------------------------------------ */

static bert_status run(loaded_model *m, const bert_tokens *tokens, float *logits,
                       bert_error *error) {
  bert_pass *pass = NULL;
  bert_status status = bert_run(m->encoder, tokens, 0, &pass, error);
  if (status == BERT_OK)
    status = bert_pass_logits(pass, BERT_HEAD_CLASSIFY, NULL, 0, logits, error);
  bert_pass_free(pass);
  return status;
}

bert_status task_scores(loaded_model *m, const bert_head *head, bert_score score, bert_text text,
                        const bert_text *text_b, const bert_token_options *how, float **scores,
                        int *truncated, bert_error *error) {
  bert_tokens *tokens = NULL;
  bert_status status = bert_tokenize(m->model, text, text_b, how, &tokens, error);
  if (status != BERT_OK) return status;
  *scores = sqlite3_malloc64(sizeof(float) * (sqlite3_uint64)head->width);
  status = *scores != NULL ? run(m, tokens, *scores, error) : error_nomem(error, "classifying");
  if (status == BERT_OK) bert_scores(score, *scores, (size_t)head->width, *scores);
  if (truncated != NULL) *truncated = tokens->truncated;
  bert_tokens_free(tokens);
  return status;
}
