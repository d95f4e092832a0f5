/*
** chain.c: steps put together as stages, and the words at their end.
*/
#include "chain.h"

#include <string.h>

/* ---- The steps of a tokenizer ---------------------------------------------- */

bert_status chain_add(chain *c, step_kind kind, step **out, bert_error *error) {
  if (c->count == CHAIN_MAX_STEPS)
    return error_set(error, BERT_UNSUPPORTED, "there are more than %d steps", CHAIN_MAX_STEPS);
  if (!memory_grow((void **)&c->steps, c->count, &c->capacity, sizeof *c->steps))
    return error_nomem(error, "reading the tokenizer");
  *out = &c->steps[c->count++];
  **out = (step){.kind = kind};
  return BERT_OK;
}

bert_status chain_lowercase_first(chain *c, bert_error *error) {
  step *last;
  bert_status status = chain_add(c, STEP_LOWERCASE, &last, error);
  if (status != BERT_OK) return status;
  memmove(c->steps + 1, c->steps, (c->count - 1) * sizeof *c->steps);
  c->steps[0] = (step){.kind = STEP_LOWERCASE};
  c->normalizers++;
  return BERT_OK;
}

void chain_free(chain *c) {
  for (size_t i = 0; i < c->count; i++) {
    memory_free(c->steps[i].content);
    charsmap_free(c->steps[i].map);
    regex_free(c->steps[i].pattern);
  }
  memory_free(c->steps);
  compositions_free(&c->compositions);
}

/* ---- Stages ------------------------------------------------------------------ */

const text_char *stage_fetch(stage *s, size_t i) {
  char_queue *q = &s->ahead;
  while (i >= queue_size(q)) {
    if (s->ended || i >= AHEAD_MAX) return NULL;
    if (q->count == q->capacity && !queue_grow(q)) {
      s->run->failed = s->ended = 1;
      return NULL;
    }
    if (!s->from->next(s->from, &q->items[q->count])) {
      s->ended = 1;
      return NULL;
    }
    q->count++;
  }
  return &q->items[q->head + i];
}

void stage_make(stage *s, text_char c) {
  if (!queue_push(&s->ready, c)) s->run->failed = 1;
}

static void stage_reset(stage *s) {
  s->ahead.head = s->ahead.count = s->ready.head = s->ready.count = 0;
  s->ended = s->begun = s->matched = s->begins = s->mode = 0;
  s->part = 0;
}

/* The first stage: characters of the text up to the next added token. */
static int source_next(stage *s, text_char *out) {
  chain_run *r = s->run;
  if (r->at >= r->stop) {
    while (r->at >= r->scan->known && added_scan_more(r->scan)) continue;
    r->stop = r->scan->known;
    if (r->at >= r->stop) return 0;
  }
  out->begins = 0;
  out->start = r->at;
  out->c = unicode_next(r->scan->text.data, r->scan->text.size, &r->at);
  out->stop = r->at;
  return 1;
}

/* Between normalizers and pre-tokenizers when no added token is looked for. */
static int entry_next(stage *s, text_char *out) {
  if (!s->from->next(s->from, out)) return 0;
  out->begins = !s->begun;
  s->begun = 1;
  return 1;
}

static stage_function *function_of(step_kind kind) {
  stage_function *f = steps_function(kind);
  if (f == NULL) f = splits_function(kind);
  if (f != NULL) return f;
  switch (kind) {
  case STEP_REPLACE: return replace_next;
  case STEP_PRECOMPILED: return charsmap_next;
  case STEP_CUT_PATTERN: return pattern_next;
  case STEP_GPT2: return gpt2_next;
  default: return forms_next;
  }
}

int chain_run_begin(chain_run *r, const chain *c, const added_tokens *added, added_scan *scan) {
  *r = (chain_run){.chain = c, .added = added, .scan = scan, .count = c->count + 2};
  r->stages = memory_zero(memory_product(r->count, sizeof *r->stages));
  if (r->stages == NULL) return 0;
  for (size_t i = 0; i < r->count; i++) {
    stage *s = &r->stages[i];
    s->run = r;
    s->from = i > 0 ? s - 1 : NULL;
    if (i == 0) {
      s->next = source_next;
    } else if (i == c->normalizers + 1) {
      s->next = added != NULL && added->normalized.any ? lookout_next : entry_next;
    } else {
      s->step = &c->steps[i <= c->normalizers ? i - 1 : i - 2];
      s->next = function_of(s->step->kind);
    }
  }
  return 1;
}

void chain_run_end(chain_run *r) {
  for (size_t i = 0; i < r->count && r->stages != NULL; i++) {
    memory_free(r->stages[i].ahead.items);
    memory_free(r->stages[i].ready.items);
    forms_end(&r->stages[i]);
    charsmap_end(&r->stages[i]);
  }
  memory_free(r->stages);
}

/* Starts the stages from `first` on. */
static void restart(chain_run *r, size_t first) {
  for (size_t i = first; i < r->count; i++) {
    stage *s = &r->stages[i];
    stage_reset(s);
    if (s->next == forms_next && !forms_begin(s)) r->failed = 1;
    if (s->next == charsmap_next && !charsmap_begin(s)) r->failed = 1;
  }
  r->held = r->ended = 0;
}

void chain_run_piece(chain_run *r) {
  r->at = r->scan->taken;
  r->stop = r->scan->known;
  lookout_reset(&r->lookout);
  restart(r, 0);
}

int chain_run_resume(chain_run *r) {
  if (r->lookout.token == NULL) return 0;
  r->lookout.token = NULL;
  r->stages[r->chain->normalizers + 1].begun = 0;
  restart(r, r->chain->normalizers + 2);
  return 1;
}

/* ---- Words --------------------------------------------------------------------- */

static int word_grow(chain_word *w) {
  while (w->bytes_capacity - w->size < 4)
    if (!memory_grow((void **)&w->bytes, w->bytes_capacity, &w->bytes_capacity, 1)) return 0;
  return memory_grow((void **)&w->chars, w->count, &w->capacity, sizeof *w->chars);
}

static int word_append(chain_word *w, const text_char *c) {
  if ((w->bytes_capacity - w->size < 4 || w->count == w->capacity) && !word_grow(w)) return 0;
  w->size += unicode_put(c->c, w->bytes + w->size);
  w->chars[w->count++] = (word_char){c->start, c->stop, w->size};
  return 1;
}

/* The next character of the pipeline; 0 at the end. */
static int next_char(chain_run *r, text_char *out) {
  stage *end = &r->stages[r->count - 1];
  if (r->held) {
    r->held = 0;
    *out = r->held_char;
    return 1;
  }
  if (!r->ended && !r->failed && end->next(end, out)) return 1;
  r->ended = 1;
  return 0;
}

static void word_begin(chain_word *w) {
  w->size = w->count = 0;
  w->first = 1;
  w->overlong = 0;
}

int chain_run_word(chain_run *r, chain_word *w) {
  text_char c;
  if (w->last) word_begin(w);
  w->last = 0;
  while (next_char(r, &c)) {
    if (c.begins && (w->count > 0 || w->overlong || !w->first)) {
      r->held = 1;
      r->held_char = c;
      break;
    }
    if (w->first && w->count == 0 && !w->overlong) w->start = c.start;
    if (w->count < w->limit) {
      if (!word_append(w, &c)) r->failed = 1;
    } else if (w->keeps_all) {
      r->held = 1;
      r->held_char = c;
      return !r->failed;
    } else {
      w->overlong = 1;
    }
    w->stop = c.stop;
  }
  w->last = 1;
  return (w->count > 0 || w->overlong) && !r->failed;
}

void chain_word_drop(chain_word *w, size_t count) {
  size_t bytes = count == 0 ? 0 : w->chars[count - 1].end;
  memmove(w->bytes, w->bytes + bytes, w->size - bytes);
  w->size -= bytes;
  w->count -= count;
  for (size_t i = 0; i < w->count; i++) {
    w->chars[i] = w->chars[i + count];
    w->chars[i].end -= bytes;
  }
  w->first = 0;
}

void chain_word_free(chain_word *w) {
  memory_free(w->bytes);
  memory_free(w->chars);
}
