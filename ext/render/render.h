/*
** render.h: matrices as pictures. The map of this folder:
**
**   heatmap.c   text for a terminal: shades or 256 colours
**   svg.c       an SVG document
**   terminal.c  labels cut and padded to columns of a terminal
**   escape.c    text fit for a terminal, and for XML
**
** Knows nothing of models or of SQL values: labels and numbers in, text out.
*/
#ifndef BERTSQL_RENDER_H
#define BERTSQL_RENDER_H

#include "../ext.h"

/* A square matrix of attention weights with what its rows and columns are. */
typedef struct picture {
  size_t count;
  const float *weights;    /* [count, count], rows are queries, 0 to 1 */
  const bert_text *labels; /* [count], any bytes */
  const char *title;       /* a line above, UTF-8 */
  const char *note;        /* a line below, or NULL */
} picture;

/* ---- heatmap.c ----------------------------------------------------------- */

typedef struct heatmap_style {
  int width; /* columns of the terminal; 0: 80 */
  int ansi;  /* 1: 256 colours by escape sequences; 0: shades in plain text */
} heatmap_style;

/* Both append a picture to `out`; 0 when out of memory. */
int render_heatmap(sqlite3_str *out, const picture *p, const heatmap_style *style);

/* ---- svg.c --------------------------------------------------------------- */

typedef struct svg_style {
  int cell; /* pixels of a cell; 0: by the number of tokens */
} svg_style;

int render_svg(sqlite3_str *out, const picture *p, const svg_style *style);

/* ---- terminal.c ---------------------------------------------------------- */

/* text[size], which is visible UTF-8, in exactly `columns` columns: cut with an
** ellipsis, or padded on the right, on the left where `right`. */
void append_columns(sqlite3_str *out, const char *text, size_t size, int columns, int right);
void append_spaces(sqlite3_str *out, int count);

/* ---- escape.c ------------------------------------------------------------ */

/* Text with nothing in it that acts: control characters of ASCII as their
** pictures, other controls, marks that turn the direction and what is not UTF-8
** as U+FFFD. */
void append_visible(sqlite3_str *out, const char *text, size_t size);

/* The same as XML character data or attribute value: &, <, >, quotes. */
void escape_xml(sqlite3_str *out, const char *text, size_t size);

#endif
