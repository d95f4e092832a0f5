/*
** lookout.c: added tokens that are looked for in normalized text, before the
** pre-tokenizers see it. The stage ends where a token is found, and goes on
** behind it. White space is held back as long as a token may follow that takes
** it.
*/
#include "chain.h"

void lookout_reset(lookout *l) {
  *l = (lookout){0};
}

void margins_add(margins *m, uint32_t c) {
  int space = c == 0x120 || unicode_is_space(c);
  if (space && m->lead == m->characters) m->lead++;
  m->trail = space ? m->trail + 1 : 0;
  m->characters++;
}

/* The longest token that begins `at` characters ahead, and its characters. */
static const added_token *find(stage *s, size_t at, size_t *count) {
  const added_set *set = &s->run->added->normalized;
  const added_token *best = NULL;
  const text_char *c;
  uint32_t node = set->trie.root;
  for (size_t i = 0; i < set->longest && (c = stage_peek(s, at + i)) != NULL; i++) {
    char bytes[4];
    size_t size = unicode_put(c->c, bytes);
    for (size_t k = 0; k < size && node != TRIE_NONE; k++)
      node = trie_step(&set->trie, node, (unsigned char)bytes[k]);
    if (node == TRIE_NONE) break;
    if (set->trie.slots[node].value >= 0) {
      best = &s->run->added->tokens[set->trie.slots[node].value];
      *count = i + 1;
    }
  }
  return best;
}

/* Whether a token of `count` characters may stand `at` characters ahead. */
static int may_stand(stage *s, const added_token *token, size_t at, size_t count) {
  const text_char *after;
  uint32_t before = at > 0 ? stage_peek(s, at - 1)->c : s->run->lookout.before;
  if (!token->single_word) return 1;
  after = stage_peek(s, at + count);
  return !unicode_is_word(before) && (after == NULL || !unicode_is_word(after->c));
}

/* Takes the token that stands `at` characters ahead, behind white space that it
** takes, too. It is none when the token before has taken all of it. */
static void take_token(stage *s, const added_token *token, size_t at, size_t count) {
  lookout *l = &s->run->lookout;
  const text_char *c;
  size_t spaces = 0, first = token->lstrip ? l->taken : 0;
  if (token->rstrip)
    while ((c = stage_peek(s, at + count + spaces)) != NULL && unicode_is_space(c->c)) spaces++;
  if (first < at + count + spaces) {
    l->token = token;
    l->margins = (margins){0};
    l->start = stage_peek(s, first)->start;
  }
  for (size_t i = first; i < at + count + spaces; i++) {
    c = stage_peek(s, i);
    margins_add(&l->margins, c->c);
    l->stop = c->stop;
  }
  l->before = stage_peek(s, at + count - 1)->c;
  for (size_t i = 0; i < at + count; i++) queue_take(&s->ahead);
  l->taken = l->taken > at + count + spaces ? l->taken - at - count : spaces;
  l->plain = 0;
}

static int are_spaces(stage *s, size_t at, size_t count) {
  for (size_t i = at; i < at + count; i++)
    if (!unicode_is_space(stage_peek(s, i)->c)) return 0;
  return 1;
}

/* Looks for a token at the first character ahead, or behind white space there, and
** takes it; else tells in `plain` how far there is none. */
static void search(stage *s) {
  lookout *l = &s->run->lookout;
  size_t at = 0;
  while (stage_peek(s, at) != NULL) {
    size_t count = 0;
    const added_token *token = find(s, at, &count);
    if (token != NULL && may_stand(s, token, at, count)) {
      if (at > 0 && !token->lstrip) break;
      take_token(s, token, at, count);
      return;
    }
    if (token == NULL) count = 1; /* else the search goes on behind it */
    at += count;
    if (!s->run->added->normalized.any_lstrip || !are_spaces(s, at - count, count)) break;
  }
  l->plain = at;
}

int lookout_next(stage *s, text_char *out) {
  lookout *l = &s->run->lookout;
  while (l->token == NULL && stage_peek(s, 0) != NULL) {
    if (l->plain == 0) {
      search(s);
      continue;
    }
    *out = queue_take(&s->ahead);
    l->plain--;
    l->before = out->c;
    if (l->taken > 0) {
      l->taken--;
      continue;
    }
    out->begins = !s->begun;
    s->begun = 1;
    return 1;
  }
  return 0;
}
