/*
** window.c: added tokens that are looked for in normalized text.
**
** The normalized text is never whole in memory, so this looks ahead by as many
** characters as the longest such token has, and one more for single_word.
*/
#include "pipeline.h"

static void push(window *w, normal_char c) {
  w->ahead[(w->head + w->count++) % w->capacity] = c;
}

static normal_char *ahead(const window *w, size_t i) {
  return &w->ahead[(w->head + i) % w->capacity];
}

/* Reads until there are `count` characters or the piece ends. */
static void fill(window *w, size_t count) {
  normal_char c;
  while (w->count < count && reader_next(w->reader, &c)) {
    normal_char space = {' ', NORMAL_SPACE, c.start, c.stop};
    int ideograph = c.kind == NORMAL_IDEOGRAPH;
    if (ideograph) {
      c.kind = NORMAL_LETTER;
      push(w, space);
    }
    push(w, c);
    if (ideograph) push(w, space);
  }
}

/* Removes the first character. */
static normal_char take(window *w) {
  normal_char c = *ahead(w, 0);
  w->head = (w->head + 1) % w->capacity;
  w->count--;
  w->before = c.c;
  return c;
}

/* The longest token that begins here, and its characters. */
static const added_token *find(const window *w, size_t *count) {
  const added_set *set = &w->added->normalized;
  const added_token *best = NULL;
  uint32_t node = set->trie.root;
  for (size_t i = 0; i < w->count && i < set->longest; i++) {
    char bytes[4];
    size_t size = unicode_put(ahead(w, i)->c, bytes);
    for (size_t k = 0; k < size && node != TRIE_NONE; k++)
      node = trie_step(&set->trie, node, (unsigned char)bytes[k]);
    if (node == TRIE_NONE) break;
    if (set->trie.slots[node].value >= 0) {
      best = &w->added->tokens[set->trie.slots[node].value];
      *count = i + 1;
    }
  }
  return best;
}

/* Whether a single word token of `count` characters stands alone. */
static int stands_alone(const window *w, size_t count) {
  return !unicode_is_word(w->before) && (count >= w->count || !unicode_is_word(ahead(w, count)->c));
}

/* How many white space characters follow, and in *stop where they end. */
static size_t count_spaces(const window *w, size_t *stop) {
  reader further = *w->reader; /* looks on without taking */
  normal_char c;
  size_t count = 0;
  for (; count < w->count; count++) {
    if (!unicode_is_space(ahead(w, count)->c)) return count;
    *stop = ahead(w, count)->stop;
  }
  while (reader_next(&further, &c)) {
    if (c.kind != NORMAL_IDEOGRAPH && !unicode_is_space(c.c)) break;
    *stop = c.stop;
    count++;
    if (c.kind == NORMAL_IDEOGRAPH) break; /* the space before it */
  }
  return count;
}

/* Takes a token of `count` characters, and the white space it asks for: that
** is not given out, but another token may begin in it. */
static void take_token(window *w, const added_token *token, size_t count, normal_char *out) {
  size_t start = ahead(w, 0)->start;
  if (token->lstrip && w->taken > 0 && w->taken < count)
    start = ahead(w, w->taken)->start;
  else if (token->lstrip && w->in_space)
    start = w->space_start;
  while (count-- > 0) *out = take(w);
  out->start = start;
  w->in_space = 0;
  w->taken = token->rstrip ? count_spaces(w, &out->stop) : 0;
}

/* Takes a character that begins no token. */
static void take_plain(window *w, normal_char *out) {
  if (w->plain > 0) w->plain--;
  *out = take(w);
  if (!unicode_is_space(out->c) || w->taken > 0) {
    w->in_space = 0;
  } else if (!w->in_space) {
    w->in_space = 1;
    w->space_start = out->start;
  }
}

int window_next(window *w, normal_char *out, const added_token **token) {
  for (;;) {
    size_t count = 0;
    *token = NULL;
    fill(w, w->added->normalized.longest + 1);
    if (w->count == 0) return 0;
    if (w->plain == 0 && (*token = find(w, &count)) != NULL) {
      if (!(*token)->single_word || stands_alone(w, count)) {
        take_token(w, *token, count, out);
        return 1;
      }
      w->plain = count; /* the search goes on behind it */
      *token = NULL;
    }
    take_plain(w, out);
    if (w->taken == 0) return 1;
    w->taken--;
  }
}

void window_begin(window *w, reader *r) {
  w->reader = r;
  w->head = w->count = w->plain = w->taken = 0;
  w->before = 0;
  w->in_space = 0;
}
