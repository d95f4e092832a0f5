/*
** head_label.c: a name for what a head mostly does; analysis.h has the table.
**
** The names are those of the literature (Clark et al. 2019, section 3; Voita et
** al. 2019, section 5), the thresholds ours. A label is a place to start
** looking, not a finding.
*/
#include "analysis.h"

const char *head_label(const bert_head_statistics *s, size_t count) {
  const struct share {
    const char *label;
    double mass;
  } shares[] = {{"previous-token", s->prev}, {"next-token", s->next},   {"diagonal", s->diag},
                {"separator", s->sep},       {"first-token", s->first}, {"punctuation", s->punct}};
  const struct share *largest = shares;
  if (count < 2) return "single";
  if (s->entropy_norm >= LABEL_BROAD) return "broad";
  for (size_t i = 1; i < sizeof shares / sizeof *shares; i++)
    if (shares[i].mass > largest->mass) largest = &shares[i];
  if (largest->mass >= LABEL_SHARE) return largest->label;
  if (s->positional >= LABEL_POSITIONAL) return "positional";
  if (s->max_prob >= LABEL_FOCUSED) return "focused";
  return "mixed";
}
