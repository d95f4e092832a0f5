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
    if (length == 0 || bytes[at] == 0) sqlite3_str_append(out, "\xEF\xBF\xBD", 3);
    else sqlite3_str_append(out, text + at, (int)length);
    at += length > 0 ? length : 1;
  }
}

char *inspection_label(const inspection *i, size_t u, size_t *size) {
  const bert_unit *unit = &i->view->units[u];
  sqlite3_str *out = sqlite3_str_new(NULL);
  if (unit->last - unit->first > 1) {
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
