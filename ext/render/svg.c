/*
** svg.c: attention weights as an SVG document, for a paper or a page.
**
** The scale is fixed from 0 to 1, so that two pictures compare. One hue from
** white to dark blue keeps its order in print and for every kind of colour
** vision. Up to VALUES_LIMIT tokens a cell shows its number; up to TIPS_LIMIT it
** tells its number when pointed at. Beyond that cells of one shade are one path,
** which keeps 512 tokens within a few megabytes.
*/
#include "render.h"

#include <string.h>

enum { VALUES_LIMIT = 10, TIPS_LIMIT = 64, SHADES = 64, LABEL_COLUMNS = 24 };

typedef struct layout {
  const picture *p;
  sqlite3_str *out;
  int cell;      /* pixels of a cell's side */
  int font;      /* pixels of the labels */
  int every;     /* every so many rows and columns have a label */
  int left, top; /* where the cells begin */
  int side;      /* of all cells together */
  int width, height;
} layout;

/* ---- Colour -------------------------------------------------------------- */

typedef struct rgb {
  int red, green, blue;
} rgb;

/* Between five shades of one hue, evenly spaced from 0 to 1. */
static rgb colour(double weight) {
  static const rgb stops[] = {
      {255, 255, 255}, {205, 225, 243}, {122, 178, 219}, {45, 119, 184}, {10, 46, 99}};
  double place = (weight < 0 ? 0 : weight > 1 ? 1 : weight) * 4;
  int i = place >= 4 ? 3 : (int)place;
  double part = place - i;
  rgb a = stops[i], b = stops[i + 1];
  rgb c = {(int)(a.red + part * (b.red - a.red) + 0.5),
           (int)(a.green + part * (b.green - a.green) + 0.5),
           (int)(a.blue + part * (b.blue - a.blue) + 0.5)};
  return c;
}

static void append_colour(sqlite3_str *out, double weight) {
  rgb c = colour(weight);
  sqlite3_str_appendf(out, "#%02x%02x%02x", c.red, c.green, c.blue);
}

/* ---- Cells --------------------------------------------------------------- */

static void value(const layout *l, size_t query, size_t key, double weight) {
  int x = l->left + (int)key * l->cell + l->cell / 2;
  int y = l->top + (int)query * l->cell + l->cell / 2 + l->font / 3;
  sqlite3_str_appendf(l->out,
                      "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" fill=\"%s\">%.2f</text>\n", x,
                      y, weight > 0.55 ? "#ffffff" : "#1b1f24", weight);
}

static void cell_with_tip(const layout *l, size_t query, size_t key) {
  const picture *p = l->p;
  double weight = (double)p->weights[query * p->count + key];
  sqlite3_str_appendf(l->out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"",
                      l->left + (int)key * l->cell, l->top + (int)query * l->cell, l->cell,
                      l->cell);
  append_colour(l->out, weight);
  sqlite3_str_appendall(l->out, "\"><title>");
  escape_xml(l->out, p->labels[query].data, p->labels[query].size);
  sqlite3_str_appendall(l->out, " \xE2\x86\x92 "); /* U+2192, an arrow */
  escape_xml(l->out, p->labels[key].data, p->labels[key].size);
  sqlite3_str_appendf(l->out, ": %.4f</title></rect>\n", weight);
  if (p->count <= VALUES_LIMIT) value(l, query, key, weight);
}

/* All cells of one shade in one path; shade 0 is the ground. */
static void cells_of_shade(const layout *l, int shade) {
  const picture *p = l->p;
  int begun = 0;
  for (size_t i = 0; i < p->count * p->count; i++) {
    if ((int)(p->weights[i] * (SHADES - 1) + 0.5f) != shade) continue;
    if (!begun) sqlite3_str_appendall(l->out, "<path d=\"");
    begun = 1;
    sqlite3_str_appendf(l->out, "M%d %dh%dv%dh-%dz", l->left + (int)(i % p->count) * l->cell,
                        l->top + (int)(i / p->count) * l->cell, l->cell, l->cell, l->cell);
  }
  if (!begun) return;
  sqlite3_str_appendall(l->out, "\" fill=\"");
  append_colour(l->out, (double)shade / (SHADES - 1));
  sqlite3_str_appendall(l->out, "\"/>\n");
}

static void cells(const layout *l) {
  sqlite3_str_appendf(l->out,
                      "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
                      l->left, l->top, l->side, l->side);
  if (l->p->count > TIPS_LIMIT) {
    for (int shade = 1; shade < SHADES; shade++) cells_of_shade(l, shade);
  } else {
    for (size_t query = 0; query < l->p->count; query++)
      for (size_t key = 0; key < l->p->count; key++) cell_with_tip(l, query, key);
  }
  sqlite3_str_appendf(l->out,
                      "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" "
                      "stroke=\"#8b949e\"/>\n",
                      l->left, l->top, l->side, l->side);
}

/* ---- Labels -------------------------------------------------------------- */

/* Long labels end in an ellipsis. */
static void label_text(const layout *l, size_t i) {
  sqlite3_str *shown = sqlite3_str_new(NULL);
  append_visible(shown, l->p->labels[i].data, l->p->labels[i].size);
  int size = sqlite3_str_length(shown);
  char *text = sqlite3_str_finish(shown);
  if (text != NULL && bert_text_columns(text, (size_t)size) > LABEL_COLUMNS) {
    sqlite3_str *cut = sqlite3_str_new(NULL);
    append_columns(cut, text, (size_t)size, LABEL_COLUMNS, 0);
    size = sqlite3_str_length(cut);
    sqlite3_free(text);
    text = sqlite3_str_finish(cut);
  }
  if (text != NULL) escape_xml(l->out, text, (size_t)size);
  sqlite3_free(text);
}

static void row_label(const layout *l, size_t i) {
  sqlite3_str_appendf(l->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", l->left - 6,
                      l->top + (int)i * l->cell + l->cell / 2 + l->font / 3);
  label_text(l, i);
  sqlite3_str_appendall(l->out, "</text>\n");
}

static void column_label(const layout *l, size_t i) {
  int x = l->left + (int)i * l->cell + l->cell / 2 + l->font / 3, y = l->top - 6;
  sqlite3_str_appendf(l->out, "<text x=\"%d\" y=\"%d\" transform=\"rotate(-90 %d %d)\">", x, y, x,
                      y);
  label_text(l, i);
  sqlite3_str_appendall(l->out, "</text>\n");
}

static void labels(const layout *l) {
  for (size_t i = 0; i < l->p->count; i += (size_t)l->every) {
    row_label(l, i);
    column_label(l, i);
  }
}

/* ---- Around the cells ---------------------------------------------------- */

static void legend(const layout *l) {
  int y = l->top + l->side + 34, width = 160;
  sqlite3_str_appendf(l->out, "<text x=\"%d\" y=\"%d\">attention weight</text>\n", l->left, y - 6);
  for (int i = 0; i < 32; i++) {
    sqlite3_str_appendf(l->out, "<rect x=\"%d\" y=\"%d\" width=\"5\" height=\"10\" fill=\"",
                        l->left + i * 5, y);
    append_colour(l->out, i / 31.0);
    sqlite3_str_appendall(l->out, "\"/>\n");
  }
  sqlite3_str_appendf(l->out,
                      "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"10\" fill=\"none\" "
                      "stroke=\"#8b949e\"/>\n",
                      l->left, y, width);
  for (int i = 0; i <= 4; i++)
    sqlite3_str_appendf(l->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                        l->left + i * width / 4, y + 24,
                        (const char *const[]){"0", "0.25", "0.5", "0.75", "1"}[i]);
  if (l->p->note == NULL) return;
  sqlite3_str_appendf(l->out, "<text x=\"%d\" y=\"%d\" font-style=\"italic\">", 12, y + 46);
  escape_xml(l->out, l->p->note, strlen(l->p->note));
  sqlite3_str_appendall(l->out, "</text>\n");
}

static void heading(const layout *l) {
  sqlite3_str_appendf(
      l->out,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
      "viewBox=\"0 0 %d %d\" role=\"img\" font-family=\"system-ui, sans-serif\" "
      "font-size=\"%d\" fill=\"#1b1f24\" style=\"unicode-bidi:plaintext\">\n<title>",
      l->width, l->height, l->width, l->height, l->font);
  escape_xml(l->out, l->p->title, strlen(l->p->title));
  sqlite3_str_appendf(l->out,
                      "</title>\n<desc>Attention weights of %d tokens, rows attend to columns, "
                      "0 white to 1 dark blue.</desc>\n"
                      "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
                      "<text x=\"12\" y=\"22\" font-size=\"14\" font-weight=\"600\">",
                      (int)l->p->count);
  escape_xml(l->out, l->p->title, strlen(l->p->title));
  sqlite3_str_appendall(l->out, "</text>\n");
}

static void axes(const layout *l) {
  int middle = l->top + l->side / 2;
  sqlite3_str_appendf(
      l->out,
      "<g fill=\"#57606a\"><text x=\"%d\" y=\"42\" text-anchor=\"middle\">key</text>"
      "<text x=\"14\" y=\"%d\" text-anchor=\"middle\" transform=\"rotate(-90 14 %d)\">"
      "query</text></g>\n",
      l->left + l->side / 2, middle, middle);
}

/* ---- Layout -------------------------------------------------------------- */

static int cell_for(size_t count) {
  if (count <= VALUES_LIMIT) return 44;
  if (count <= 32) return 22;
  if (count <= TIPS_LIMIT) return 14;
  return count <= 160 ? 8 : 4;
}

static int widest_label(const picture *p) {
  int widest = 1;
  for (size_t i = 0; i < p->count; i++) {
    int columns = bert_text_columns(p->labels[i].data, p->labels[i].size);
    if (columns > widest) widest = columns;
  }
  return widest < LABEL_COLUMNS ? widest : LABEL_COLUMNS;
}

static void lay_out(layout *l, const svg_style *style) {
  l->cell = style->cell > 0 ? style->cell : cell_for(l->p->count);
  l->font = l->cell >= 12 ? 12 : l->cell >= 8 ? l->cell : 8;
  l->every = (l->font + l->cell - 1) / l->cell;
  /* No more than two thirds of the font's height for a column of a label. */
  int label = widest_label(l->p) * l->font * 2 / 3 + 10;
  l->left = label + 24;
  l->top = label + 48;
  l->side = (int)l->p->count * l->cell;
  l->width = l->left + (l->side > 200 ? l->side : 200) + 16;
  int title = 24 + bert_text_columns(l->p->title, strlen(l->p->title)) * 9;
  if (title > l->width) l->width = title;
  l->height = l->top + l->side + 72 + (l->p->note != NULL ? 22 : 0);
}

int render_svg(sqlite3_str *out, const picture *p, const svg_style *style) {
  layout l = {.p = p, .out = out};
  lay_out(&l, style);
  heading(&l);
  axes(&l);
  labels(&l);
  cells(&l);
  legend(&l);
  sqlite3_str_appendall(out, "</svg>\n");
  return sqlite3_str_errcode(out) == SQLITE_OK;
}
