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

/* Floats of a row of qkv, which the embeddings use before the first layer. */
static uint64_t qkv_width(const encoder_weights *w) {
  uint64_t three = 3 * (uint64_t)w->hidden, embedding = (uint64_t)w->embedding;
  return three > embedding ? three : embedding;
}

static uint64_t inner_floats(const encoder_weights *w) {
  return (uint64_t)FEED_FORWARD_ROWS * (uint64_t)w->intermediate;
}

/* 0 where no layer is gated: the layers of a model are alike. */
static uint64_t gate_floats(const encoder_weights *w) {
  return w->layer[0].gate.out != 0 ? inner_floats(w) : 0;
}

static uint64_t copies_floats(const encoder_weights *w, size_t tokens, int members) {
  uint64_t rows = tokens < FEW_TOKENS ? tokens : FEW_TOKENS;
  return (uint64_t)(members - 1) * rows * (uint64_t)w->hidden;
}

/* Bytes of rows made ready for a product of reduced precision, the widest of a layer. */
static uint64_t packed_size(const encoder_weights *w) {
  size_t widest = (size_t)(w->hidden > w->intermediate ? w->hidden : w->intermediate);
  /* Layers of int8 have products of bf16 too, whose rows need more in any width. */
  if (w->precision == PRECISION_FLOAT32) return 0;
  return packed_rows_bytes(PRECISION_BF16, FEED_FORWARD_ROWS, widest);
}

static uint64_t total_floats(const encoder_weights *w, size_t tokens, size_t longest, int members) {
  uint64_t per_token = memory_product(tokens, 3 * (uint64_t)w->hidden + qkv_width(w));
  uint64_t scores = (uint64_t)members * QUERY_ROWS * (uint64_t)score_stride(longest);
  uint64_t angles = (uint64_t)members * (uint64_t)w->head_width;
  uint64_t packed = (uint64_t)members * packed_size(w) / sizeof(float);
  return per_token + copies_floats(w, tokens, members) + inner_floats(w) + gate_floats(w) + scores +
         angles + packed + 10 * 16;
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
  s->copies = cut(&next, (size_t)copies_floats(w, tokens, members));
  s->qkv = cut(&next, tokens * (size_t)qkv_width(w));
  s->context = cut(&next, tokens * hidden);
  s->projected = cut(&next, tokens * hidden);
  s->inner = cut(&next, (size_t)inner_floats(w));
  s->gate = cut(&next, (size_t)gate_floats(w));
  s->scores = cut(&next, (size_t)members * QUERY_ROWS * score_stride(longest));
  s->angles = cut(&next, (size_t)members * (size_t)w->head_width);
  s->packed_size = (size_t)packed_size(w);
  s->packed = (char *)cut(&next, (size_t)members * s->packed_size / sizeof(float));
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
