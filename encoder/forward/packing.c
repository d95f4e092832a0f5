/*
** packing.c: the weights of a layer, rounded to a lower precision.
**
** Only the products of the layers are rounded: embeddings, norms, biases, attention
** itself and the heads stay float32. Each linear is packed as soon as its layer is
** bound, so that of a checkpoint whose tensors have to be converted no more than one
** layer is held in both forms.
*/
#include "forward.h"

static bert_status pack_linear(encoder_weights *w, linear *l, packed_precision precision,
                               bert_error *error) {
  size_t rows = (size_t)l->out, depth = (size_t)l->in;
  if (l->out == 0) return BERT_OK;
  if (precision == PRECISION_INT8 && l->in > PACKED_MOST_DEPTH)
    return error_set(error, BERT_UNSUPPORTED,
                     "int8 sums %d products at most, but a layer of this model sums %d: open it "
                     "in bf16",
                     PACKED_MOST_DEPTH, l->in);
  void *block = weights_bytes(w, packed_bytes(precision, rows, depth));
  if (block == NULL) return error_nomem(error, "rounding weights to a lower precision");
  packed_make(precision, l->weight, depth, rows, depth, block, &l->packed);
  return BERT_OK;
}

/* In int8 two products of a layer stay in bf16. What comes out of the activation has a few
** numbers far beyond all others, and codes of 8 bits would leave little of the rest. And
** rounded values are the largest part of the error of a text of a word or two, where few of
** them are summed; rounded queries and keys hardly count, for they only weight the sum.
*(model/fingerprint.c names the two: with others
** the vectors are another model's.) */
static packed_precision part_precision(const encoder_weights *w, const layer_weights *l,
                                       const linear *part) {
  int delicate = part == &l->down || part == &l->value;
  return w->precision == PRECISION_INT8 && delicate ? PRECISION_BF16 : w->precision;
}

bert_status layer_pack(encoder_weights *w, layer_weights *l, bert_error *error) {
  linear *const parts[] = {&l->query, &l->key,  &l->value,           &l->up,
                           &l->gate,  &l->down, &l->attention_output};
  enum { PARTS = sizeof parts / sizeof parts[0], GIVEN_UP = PARTS - 1 };
  bert_status status = BERT_OK;
  if (w->precision == PRECISION_FLOAT32) return BERT_OK;
  for (int i = 0; i < PARTS && status == BERT_OK; i++)
    status = pack_linear(w, parts[i], part_precision(w, l, parts[i]), error);
  if (status != BERT_OK) return status;
  /* Several may lie in one block: the first of them is its address. */
  for (int i = 0; i < GIVEN_UP; i++) {
    weights_release(w, parts[i]->weight);
    parts[i]->weight = NULL;
  }
  return BERT_OK;
}
