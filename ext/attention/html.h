/*
** html.h: between the files that make the page of attn_html.
**
**   attn_html.c     the SQL function: options, inspections, the whole page
**   html_run.c      one text run through one model, as JSON
**   html_encode.c   numbers and texts in a form that fits inside HTML
**   page_assets.c   the page itself, made from sql/page at build time
**
** sql/page/README.md describes the data that the page reads.
*/
#ifndef BERTSQL_HTML_H
#define BERTSQL_HTML_H

#include "attention.h"

/* ---- page_assets.c ------------------------------------------------------- */

/* What stands before the data and after it; not NUL-terminated. */
extern const char html_page_before[], html_page_after[];
extern const size_t html_page_before_size, html_page_after_size;

/* ---- html_encode.c ------------------------------------------------------- */

/* Text as a JSON string that may stand in a script element: <, > and & are
** escaped too, so that nothing in it can end the element. What is not UTF-8
** becomes U+FFFD. */
void html_append_text(sqlite3_str *out, const char *text, size_t size);

/* The same, or null for NULL. */
void html_append_optional(sqlite3_str *out, const char *text);

/* A number with 5 significant digits; null for one that is not finite. */
void html_append_number(sqlite3_str *out, double number);

/* Room for the two encoders below. Zeroed at first; freed with html_buffer_clear. */
typedef struct html_buffer {
  unsigned char *bytes;
  sqlite3_uint64 size;
} html_buffer;

void html_buffer_clear(html_buffer *b); /* may be called twice */

/* weights [count, count] from 0 to 1 as a string of base64: for each row the
** smallest multiple of 1/65535 that is not below its largest weight, then the
** weights in `bits` (8 or 16) as shares of that. A decoded weight is off by at
** most half a step of 1/255 or 1/65535. BERT_NOMEM. */
bert_status html_append_weights(sqlite3_str *out, html_buffer *b, const float *weights,
                                size_t count, int bits, bert_error *error);

/* vectors [count, size], rows `stride` floats apart: for each vector its largest
** magnitude in float32, then the numbers in 16 bits as shares of that. */
bert_status html_append_vectors(sqlite3_str *out, html_buffer *b, const float *vectors,
                                size_t count, size_t size, size_t stride, bert_error *error);

/* Characters of base64, with its quotes and a comma, for so many bytes. */
sqlite3_uint64 html_base64_size(sqlite3_uint64 bytes);

/* ---- html_run.c ---------------------------------------------------------- */

/* Which query and key vectors go into the page. */
typedef enum html_neurons {
  NEURONS_AUTO, /* as many of the following as fit */
  NEURONS_ALL,
  NEURONS_LAYER, /* of one layer */
  NEURONS_HEAD,  /* of one head */
  NEURONS_NONE
} html_neurons;

typedef struct html_contents {
  connection *connection;
  int bits; /* of a weight: 8 or 16 */
  html_neurons neurons;
  int layer, head; /* whose vectors NEURONS_LAYER and NEURONS_HEAD mean */
} html_contents;

/* Appends a run as a JSON object. `i` has tokens as units and `words` words;
** both have special tokens. Errors: as inspection_weights, BERT_INTERRUPTED,
** BERT_NOMEM; what `out` could not hold is left to the caller. */
bert_status html_append_run(sqlite3_str *out, const html_contents *contents, const inspection *i,
                            const inspection *words, bert_error *error);

#endif
