/*
** general.c: one segment through the general pipeline: words out of the chain,
** tokens out of the words.
*/
#include "tokenizer.h"

/* Scratch memory of one segment. */
typedef struct general_work {
  chain_run run;
  chain_word word;
  piece_list pieces;
  bpe_work bpe;
  unigram_work unigram;
} general_work;

static void work_free(general_work *work) {
  chain_run_end(&work->run);
  chain_word_free(&work->word);
  memory_free(work->pieces.items);
  bpe_work_free(&work->bpe);
  unigram_work_free(&work->unigram);
}

/* ---- Tokens of a word ----------------------------------------------------------- */

static int cut_word(const tokenizer *t, general_work *work) {
  const chain_word *w = &work->word;
  work->pieces.count = 0;
  switch (t->model) {
  case MODEL_WORDPIECE: return wordpiece_cut(&t->wordpiece, &t->vocabulary.trie, w, &work->pieces);
  case MODEL_BPE: return bpe_tokenize(&t->bpe, &t->vocabulary, w, &work->bpe, &work->pieces);
  case MODEL_UNIGRAM:
    return unigram_tokenize(&t->unigram, &t->vocabulary, w, &work->unigram, &work->pieces);
  }
  return 0;
}

/* Unknown characters on both sides of where a long word was cut are one token. */
static int goes_on_unknown(const tokenizer *t, const chain_word *w, const token_segment *s,
                           const piece *p) {
  int32_t unknown = t->model == MODEL_UNIGRAM                      ? t->unigram.unknown
                    : t->model == MODEL_BPE && t->bpe.fuse_unknown ? t->bpe.unknown
                                                                   : -1;
  return !w->first && p->start == 0 && p->id == unknown && s->list.count > 0 &&
         s->list.items[s->list.count - 1].id == unknown;
}

static int add_token(const tokenizer *t, const general_work *work, const piece *p, int32_t number,
                     size_t start, size_t stop, token_segment *s) {
  const chain_word *w = &work->word;
  margins m, *own = NULL;
  if (goes_on_unknown(t, w, s, p)) {
    s->list.items[s->list.count - 1].stop = stop;
    return 1;
  }
  if (!token_list_add(&s->list, p->id, number, start, stop)) return 0;
  if (t->postprocessor.trims == 0) return 1;
  if (t->model == MODEL_UNIGRAM && p->id == t->unigram.unknown) { /* its string is the text */
    m = trim_margins(w->bytes + p->start, p->end - p->start);
    own = &m;
  }
  trim_last(&t->postprocessor, work->run.scan->text, &s->list, own);
  return 1;
}

/* Adds the first `count` pieces, with the bytes of the original that theirs stand
** for; what lies beyond the word stands for its end. */
static int add_pieces(const tokenizer *t, const general_work *work, size_t count, int32_t number,
                      token_segment *s) {
  const chain_word *w = &work->word;
  size_t at = 0, last;
  if (w->overlong) return add_token(t, work, &work->pieces.items[0], number, w->start, w->stop, s);
  for (size_t i = 0; i < count; i++) {
    const piece *p = &work->pieces.items[i];
    while (at + 1 < w->count && w->chars[at].end <= p->start) at++;
    for (last = at; last + 1 < w->count && w->chars[last].end < p->end;) last++;
    if (!add_token(t, work, p, number, w->chars[at].start, w->chars[last].stop, s)) return 0;
  }
  return 1;
}

/* Of a part of a long word: the pieces in its first three quarters, which what
** follows changes no more, and in *chars the characters they have. There is at
** least one of each. */
static size_t settled_pieces(general_work *work, size_t *chars) {
  const chain_word *w = &work->word;
  size_t settled = 0, at = 0;
  *chars = 0;
  for (size_t i = 0; i < work->pieces.count; i++) {
    const piece *p = &work->pieces.items[i];
    while (at < w->count && w->chars[at].end < p->end) at++;
    if (at >= w->count / 4 * 3) break;
    if (w->chars[at].end != p->end) continue;
    settled = i + 1;
    *chars = at + 1;
  }
  if (settled > 0) return settled;
  *chars = w->count / 4 * 3; /* one piece longer than that: part of it */
  work->pieces.items[0].end = w->chars[*chars - 1].end;
  return work->pieces.count > 0;
}

/* The tokens of the word that was read; a long one is read in parts. */
static int add_word(const tokenizer *t, general_work *work, token_segment *s) {
  int32_t number = segment_word(s);
  for (;;) {
    size_t count, chars;
    if (!cut_word(t, work)) return 0;
    if (work->word.last) return add_pieces(t, work, work->pieces.count, number, s);
    count = settled_pieces(work, &chars);
    if (!add_pieces(t, work, count, number, s)) return 0;
    if (segment_has_enough(s)) return 1;
    chain_word_drop(&work->word, chars);
    if (!chain_run_word(&work->run, &work->word)) return !work->run.failed;
  }
}

/* ---- Pieces of the text ------------------------------------------------------------ */

static int add_added(const tokenizer *t, bert_text text, const added_token *token, size_t start,
                     size_t stop, const margins *m, token_segment *s) {
  if (!token_list_add(&s->list, token->id, segment_word(s), start, stop)) return 0;
  if (t->postprocessor.trims > 0) trim_last(&t->postprocessor, text, &s->list, m);
  return 1;
}

/* The words of the piece that begins at the scan's place, and the added tokens in
** its normalized text. */
static int add_piece(const tokenizer *t, general_work *work, token_segment *s) {
  const lookout *l = &work->run.lookout;
  chain_run_piece(&work->run);
  do {
    work->word.last = 1;
    while (!segment_has_enough(s) && chain_run_word(&work->run, &work->word))
      if (!add_word(t, work, s)) return 0;
    if (segment_has_enough(s)) break;
    if (l->token != NULL &&
        !add_added(t, work->run.scan->text, l->token, l->start, l->stop, &l->margins, s))
      return 0;
  } while (chain_run_resume(&work->run));
  return !work->run.failed;
}

static int add_pieces_of_text(const tokenizer *t, added_scan *scan, general_work *work,
                              token_segment *s) {
  for (;;) {
    margins m;
    if (!add_piece(t, work, s)) return 0;
    if (segment_has_enough(s) || scan->match == NULL) return 1;
    m = trim_margins(scan->text.data + scan->start, scan->stop - scan->start);
    if (!add_added(t, scan->text, scan->match, scan->start, scan->stop, &m, s)) return 0;
    added_scan_next(scan);
  }
}

int general_add_segment(const tokenizer *t, bert_text text, token_segment *s) {
  general_work work = {0};
  added_scan scan;
  int done;
  added_scan_begin(&scan, &t->added, text);
  work.word.limit = t->model == MODEL_WORDPIECE ? t->wordpiece.max_chars : AHEAD_MAX;
  work.word.keeps_all = t->model != MODEL_WORDPIECE;
  done = chain_run_begin(&work.run, &t->chain, &t->added, &scan) &&
         add_pieces_of_text(t, &scan, &work, s);
  work_free(&work);
  return done;
}
