/*
** heatmap.c: attention weights in a terminal.
**
** Up to VALUES_LIMIT tokens each cell shows its number below its token. Beyond
** that a cell is a shade two columns wide (one where the width is short), and
** tokens are numbered: every row has its number and name, every column its
** number, written downwards. What does not fit the width follows in further
** blocks of columns.
**
** Attention is spread thin over long texts, so shades are not linear: their
** limits are printed below every picture.
*/
#include "render.h"

#include <string.h>

enum { VALUES_LIMIT = 10, LABEL_MOST = 18, CELL_MOST = 20, DEFAULT_WIDTH = 80 };

/* Shades of plain text, each from its limit on. */
static const struct {
  float from;
  const char *shade; /* one column */
} shades[] = {{0.0f, " "},
              {0.02f, "\xC2\xB7"},
              {0.05f, "\xE2\x96\x91"},
              {0.15f, "\xE2\x96\x92"},
              {0.35f, "\xE2\x96\x93"},
              {0.6f, "\xE2\x96\x88"}};
enum { SHADES = sizeof shades / sizeof shades[0] };

/* Backgrounds among the 256 colours, light to dark blue with a black or white
** foreground, from the same limits with one more step between. */
static const struct {
  float from;
  int background, foreground;
} colours[] = {{0.0f, 231, 16}, {0.02f, 195, 16}, {0.05f, 153, 16},
               {0.1f, 117, 16}, {0.2f, 75, 16},   {0.35f, 33, 231},
               {0.5f, 26, 231}, {0.7f, 19, 231},  {0.85f, 17, 231}};
enum { COLOURS = sizeof colours / sizeof colours[0] };

typedef struct layout {
  const picture *p;
  sqlite3_str *out;
  char **labels; /* [count], fit to be shown; from sqlite3_malloc64 */
  int ansi;
  int number_width; /* columns of a token's number; 0: tokens are not numbered */
  int label_width;
  int cell;         /* columns of a cell */
  size_t per_block; /* cells side by side */
} layout;

/* ---- Cells --------------------------------------------------------------- */

static size_t shade_of(float weight) {
  size_t i = SHADES - 1;
  while (i > 0 && weight < shades[i].from) i--;
  return i;
}

static size_t colour_of(float weight) {
  size_t i = COLOURS - 1;
  while (i > 0 && weight < colours[i].from) i--;
  return i;
}

static void start_colour(const layout *l, float weight) {
  size_t i = colour_of(weight);
  if (l->ansi)
    sqlite3_str_appendf(l->out, "\x1b[48;5;%d;38;5;%dm", colours[i].background,
                        colours[i].foreground);
}

static void end_colour(const layout *l) {
  if (l->ansi) sqlite3_str_appendall(l->out, "\x1b[0m");
}

/* In plain text a shade stands before the number, so that the eye finds the
** large ones. */
static void value_cell(const layout *l, float weight) {
  append_spaces(l->out, l->cell - 6);
  append_spaces(l->out, 1);
  start_colour(l, weight);
  sqlite3_str_appendall(l->out, l->ansi ? " " : shades[shade_of(weight)].shade);
  sqlite3_str_appendf(l->out, "%.2f", (double)weight);
  end_colour(l);
}

static void shade_cell(const layout *l, float weight) {
  start_colour(l, weight);
  for (int i = 0; i < l->cell; i++)
    sqlite3_str_appendall(l->out, l->ansi ? " " : shades[shade_of(weight)].shade);
  end_colour(l);
}

/* ---- Rows and headings --------------------------------------------------- */

static void row(const layout *l, size_t query, size_t first, size_t last) {
  if (l->number_width > 0) sqlite3_str_appendf(l->out, "%*d ", l->number_width, (int)query);
  append_columns(l->out, l->labels[query], strlen(l->labels[query]), l->label_width, 0);
  if (l->number_width > 0) append_spaces(l->out, 1);
  for (size_t key = first; key < last; key++) {
    float weight = l->p->weights[query * l->p->count + key];
    if (l->number_width > 0)
      shade_cell(l, weight);
    else
      value_cell(l, weight);
  }
  sqlite3_str_appendchar(l->out, 1, '\n');
}

static void label_heading(const layout *l) {
  append_spaces(l->out, l->label_width);
  for (size_t key = 0; key < l->p->count; key++) {
    append_spaces(l->out, 1);
    append_columns(l->out, l->labels[key], strlen(l->labels[key]), l->cell - 1, 1);
  }
  sqlite3_str_appendchar(l->out, 1, '\n');
}

/* The digit of `number` at 10^place, or a space before its first digit. */
static char digit_at(size_t number, int place) {
  for (int i = 0; i < place; i++) number /= 10;
  return number == 0 && place > 0 ? ' ' : (char)('0' + number % 10);
}

static void number_heading(const layout *l, size_t first, size_t last) {
  for (int place = l->number_width - 1; place >= 0; place--) {
    append_spaces(l->out, l->number_width + l->label_width + 2);
    for (size_t key = first; key < last; key++) {
      append_spaces(l->out, l->cell - 1);
      sqlite3_str_appendchar(l->out, 1, digit_at(key, place));
    }
    sqlite3_str_appendchar(l->out, 1, '\n');
  }
}

static void block(const layout *l, size_t first, size_t last) {
  if (l->number_width > 0)
    number_heading(l, first, last);
  else
    label_heading(l);
  for (size_t query = 0; query < l->p->count; query++) row(l, query, first, last);
}

static void legend(const layout *l) {
  sqlite3_str_appendall(l->out, "rows attend to columns;");
  for (size_t i = 1; i < (l->ansi ? COLOURS : SHADES); i++) {
    float from = l->ansi ? colours[i].from : shades[i].from;
    append_spaces(l->out, 1);
    start_colour(l, from);
    sqlite3_str_appendall(l->out, l->ansi ? "  " : shades[i].shade);
    end_colour(l);
    sqlite3_str_appendf(l->out, " %.2f", (double)from);
  }
  sqlite3_str_appendall(l->out, " and above\n");
}

/* ---- Layout -------------------------------------------------------------- */

static int digits(size_t number) {
  int count = 1;
  for (; number >= 10; number /= 10) count++;
  return count;
}

static int widest_label(const layout *l) {
  int widest = 1;
  for (size_t i = 0; i < l->p->count; i++) {
    int columns = bert_text_columns(l->labels[i], strlen(l->labels[i]));
    if (columns > widest) widest = columns;
  }
  return widest < LABEL_MOST ? widest : LABEL_MOST;
}

static int clamp(int x, int low, int high) {
  return x < low ? low : x > high ? high : x;
}

static void lay_out(layout *l, int width) {
  int count = (int)l->p->count, widest = widest_label(l);
  l->label_width = widest;
  l->per_block = l->p->count;
  if (count <= VALUES_LIMIT) {
    l->cell = clamp((width - l->label_width) / (count > 0 ? count : 1), 6,
                    clamp(widest + 1, 6, CELL_MOST));
    return;
  }
  l->number_width = digits(l->p->count - 1);
  int room = width - l->number_width - l->label_width - 2;
  l->cell = room >= 2 * count ? 2 : 1;
  if (room < count) l->per_block = (size_t)clamp(room, 10, count);
}

/* The labels as they may be shown; 0 when out of memory. */
static int show_labels(layout *l) {
  const picture *p = l->p;
  l->labels = sqlite3_malloc64(sizeof *l->labels * ((sqlite3_uint64)p->count + 1));
  if (l->labels == NULL) return 0;
  memset(l->labels, 0, sizeof *l->labels * (p->count + 1));
  for (size_t i = 0; i < p->count; i++) {
    sqlite3_str *s = sqlite3_str_new(NULL);
    append_visible(s, p->labels[i].data, p->labels[i].size);
    sqlite3_str_appendchar(s, 1, '\0');
    l->labels[i] = sqlite3_str_finish(s);
    if (l->labels[i] == NULL) return 0;
  }
  return 1;
}

static void free_labels(layout *l) {
  for (size_t i = 0; l->labels != NULL && i < l->p->count; i++) sqlite3_free(l->labels[i]);
  sqlite3_free(l->labels);
}

int render_heatmap(sqlite3_str *out, const picture *p, const heatmap_style *style) {
  layout l = {.p = p, .out = out, .ansi = style->ansi};
  int ok = show_labels(&l);
  if (ok) {
    append_visible(out, p->title, strlen(p->title));
    sqlite3_str_appendchar(out, 1, '\n');
    lay_out(&l, style->width > 0 ? style->width : DEFAULT_WIDTH);
    for (size_t first = 0; first < p->count; first += l.per_block) {
      size_t last = p->count - first < l.per_block ? p->count : first + l.per_block;
      sqlite3_str_appendchar(out, 1, '\n');
      block(&l, first, last);
    }
    sqlite3_str_appendchar(out, 1, '\n');
    if (p->count > 0)
      legend(&l);
    else
      sqlite3_str_appendall(out, "no tokens to show\n");
    if (p->note != NULL) sqlite3_str_appendf(out, "%s\n", p->note);
  }
  free_labels(&l);
  return ok && sqlite3_str_errcode(out) == SQLITE_OK;
}
