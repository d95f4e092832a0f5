/*
** render.h: matrices as pictures. The map of this folder:
**
**   heatmap.c   text for a terminal: shades or 256 colours
**   svg.c       an SVG document
**   columns.c   labels cut and padded to columns of a terminal
**   escape.c    text inside XML, HTML and JavaScript
**
** Knows nothing of models or of SQL values: labels and numbers in, text out.
*/
#ifndef BERTSQL_RENDER_H
#define BERTSQL_RENDER_H

#include "../ext.h"

/* A square matrix of attention weights with what its rows and columns are. */
typedef struct picture {
  size_t count;
  const float *weights;       /* [count, count], rows are queries, 0 to 1 */
  const bert_text *labels;    /* [count], valid UTF-8 */
  const char *title;          /* "layer 2, head 7", UTF-8 */
  const char *note;           /* a line below, or NULL: "cut at 256 tokens" */
} picture;

typedef struct heatmap_style {
  int width;   /* columns of the terminal; 0: 80 */
  int ansi;    /* 1: 256 colours by escape sequences; 0: shades in plain text */
} heatmap_style;

/* Both append to `out`; memory failures are in the sqlite3_str. */
void render_heatmap(sqlite3_str *out, const picture *p, const heatmap_style *style);

typedef struct svg_style {
  int cell;    /* pixels of a cell; 0: chosen by the number of tokens */
} svg_style;
void render_svg(sqlite3_str *out, const picture *p, const svg_style *style);

/* Text as XML character data and attribute values: &, <, >, quotes; control
** characters that XML 1.0 does not have become U+FFFD or a visible picture. */
void escape_xml(sqlite3_str *out, const char *text, size_t size);

#endif
