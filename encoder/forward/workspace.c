/*
** workspace.c: the scratch memory of a forward pass, one block for all of it,
** so that nothing is allocated while a pass runs.
*/
#include <string.h>

#include "forward.h"

/* Cuts `count` floats off the block, each part on a cache line of its own. */
static float *cut(float **next, size_t count) {
  float *part = *next;
  *next += (count + 15) / 16 * 16;
  return part;
}

static uint64_t total_floats(const encoder_weights *w, size_t tokens, size_t longest, int members) {
  uint64_t hidden = (uint64_t)w->hidden, n = tokens;
  uint64_t per_token = memory_product(n, 6 * hidden);
  uint64_t inner = (uint64_t)FEED_FORWARD_ROWS * (uint64_t)w->intermediate;
  uint64_t scores = (uint64_t)members * QUERY_ROWS * (uint64_t)longest;
  return per_token + inner + scores + 6 * 16;
}

static int suffices(const workspace *s, size_t tokens, size_t longest, int members) {
  return s->block != NULL && s->tokens >= tokens && s->longest >= longest && s->members >= members;
}

bert_status workspace_reserve(workspace *s, const encoder_weights *w, size_t tokens, size_t longest,
                              int members, bert_error *error) {
  if (suffices(s, tokens, longest, members)) return BERT_OK;
  workspace_free(s);
  uint64_t bytes = memory_product(total_floats(w, tokens, longest, members), sizeof(float));
  float *next = memory_alloc(bytes);
  if (next == NULL) return error_nomem(error, "making room for a forward pass");
  size_t hidden = (size_t)w->hidden;
  s->block = next;
  s->hidden = cut(&next, tokens * hidden);
  s->qkv = cut(&next, tokens * 3 * hidden);
  s->context = cut(&next, tokens * hidden);
  s->projected = cut(&next, tokens * hidden);
  s->inner = cut(&next, (size_t)FEED_FORWARD_ROWS * (size_t)w->intermediate);
  s->scores = cut(&next, (size_t)members * QUERY_ROWS * longest);
  s->tokens = tokens;
  s->longest = longest;
  s->members = members;
  s->bytes = bytes;
  return BERT_OK;
}

void workspace_free(workspace *s) {
  memory_free(s->block);
  memset(s, 0, sizeof *s);
}
