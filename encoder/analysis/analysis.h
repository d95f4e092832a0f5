/*
** analysis.h: what can be said about attention once it is an array of numbers.
** Pure functions: they know no model, allocate nothing and, but for
** self-attention by hand, cannot fail. The map of this folder:
**
**   units.c          bert_view_apply, bert_view_norms: tokens to words
**   statistics.c     bert_head_summarize: the sums, in double
**   head_label.c     the sums to a word
**   rollout.c        one layer of attention rollout
**   by_hand.c        bert_self_attention, bert_positional_encoding
**   columns.c        bert_text_columns
**
** What bert.h declares is described there. Models and passes come in one level
** up: model/views.c and model/pass_attention.c.
*/
#ifndef BERT_ANALYSIS_H
#define BERT_ANALYSIS_H

#include "../base/base.h"

/* ---- head_label.c ------------------------------------------------------ */

/* What kind of head these numbers (all but `label`) describe, for `count`
** units; static text. The first row that holds decides:
**
**   label            holds when
**   single           there are fewer than two units: nothing to choose from
**   broad            entropy_norm >= LABEL_BROAD
**   the largest of these six, if it is >= LABEL_SHARE; on a tie the first:
**     previous-token   prev
**     next-token       next
**     diagonal         diag
**     separator        sep
**     first-token      first
**     punctuation      punct
**   positional       positional >= LABEL_POSITIONAL
**   focused          max_prob >= LABEL_FOCUSED
**   mixed            otherwise
**
** `broad` stands first because in a text of two or three tokens even a head
** that spreads evenly puts a third or a half of its mass on each of the six. */
#define LABEL_BROAD 0.85
#define LABEL_SHARE 0.4
#define LABEL_POSITIONAL 0.8
#define LABEL_FOCUSED 0.7
const char *head_label(const bert_head_statistics *s, size_t count);

/* From which weight on a row has put its mass on one key, and which share of
** rows must agree on the key for a head to count as collapsed. */
#define COLLAPSED_WEIGHT 0.9
#define COLLAPSED_ROWS 0.9

/* ---- rollout.c --------------------------------------------------------- */

/* Turns sums[rows, tokens], the attention of queries [first, first + rows)
** summed over `heads` heads, into their rows of the layer's matrix: the mean
** over heads plus the identity, divided by its sum. */
void rollout_mix(float *sums, size_t first, size_t rows, size_t tokens, int heads);

#endif
