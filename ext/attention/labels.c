/*
** labels.c: what a row or column of an attention matrix is called.
*/
#include "attention.h"

#include <string.h>

/* The index in `tokens` of the used token number `used`. Special tokens that
** close a cut text lie behind what was cut, so it is not the same number. */
static size_t index_of_used(const bert_tokens *tokens, size_t used) {
  size_t i = 0;
  for (; i < tokens->count; i++)
    if (tokens->used[i] && used-- == 0) break;
  return i;
}

/* Valid UTF-8 as it is; NUL and what is not UTF-8 as U+FFFD. */
static void append_text(sqlite3_str *out, const char *text, size_t size) {
  const unsigned char *bytes = (const unsigned char *)text;
  for (size_t at = 0; at < size;) {
    size_t length = utf8_character_size(bytes + at, size - at);
    if (length == 0 || bytes[at] == 0)
      sqlite3_str_append(out, "\xEF\xBF\xBD", 3);
    else
      sqlite3_str_append(out, text + at, (int)length);
    at += length > 0 ? length : 1;
  }
}

/* Words are shown as they are written, also those of one token, which the
** vocabulary may have in lower case or not at all. */
char *inspection_label(const inspection *i, size_t u, size_t *size) {
  const bert_unit *unit = &i->view->units[u];
  sqlite3_str *out = sqlite3_str_new(NULL);
  if (i->words && !unit->special) {
    bert_text text = unit->segment == 1 ? i->text_b : i->text;
    append_text(out, text.data + unit->start, unit->stop - unit->start);
  } else {
    size_t token = index_of_used(i->tokens, unit->first);
    bert_text name = bert_token_string(i->model->model, i->tokens->ids[token]);
    append_text(out, name.data, name.size);
  }
  int failed = sqlite3_str_errcode(out) != SQLITE_OK;
  *size = (size_t)sqlite3_str_length(out);
  char *label = sqlite3_str_finish(out);
  if (failed) {
    sqlite3_free(label);
    return NULL;
  }
  /* An empty sqlite3_str finishes as NULL, which would read as a failure. */
  return label != NULL ? label : sqlite3_mprintf("");
}

/* ---- Labels of a scan ---------------------------------------------------- */

static bert_status make_room(label_cache *cache, size_t count, bert_error *error) {
  if (cache->labels != NULL) return BERT_OK;
  cache->labels = sqlite3_malloc64((sqlite3_uint64)count * sizeof *cache->labels);
  if (cache->labels == NULL) return error_nomem(error, "naming tokens");
  memset(cache->labels, 0, count * sizeof *cache->labels);
  cache->count = count;
  return BERT_OK;
}

bert_status label_result(sqlite3_context *context, label_cache *cache, const inspection *i,
                         size_t u, bert_error *error) {
  bert_status status = make_room(cache, i->view->count, error);
  if (status != BERT_OK) return status;
  unit_label *l = &cache->labels[u];
  if (l->text == NULL) l->text = inspection_label(i, u, &l->size);
  if (l->text == NULL) return error_nomem(error, "naming tokens");
  sqlite3_result_text64(context, l->text, l->size, SQLITE_TRANSIENT, SQLITE_UTF8);
  return BERT_OK;
}

void labels_clear(label_cache *cache) {
  for (size_t u = 0; u < cache->count; u++) sqlite3_free(cache->labels[u].text);
  sqlite3_free(cache->labels);
  memset(cache, 0, sizeof *cache);
}
