/* Pages for people on top of markup.h: one style sheet for reports and the service's page, and tables.
 *
 * Readable without a script, in light and dark, at a phone's width, and on paper. Colours are custom properties of the
 * sheet; colour-blind readers can distinguish those that carry meaning (Okabe and Ito 2008; viridis for order). */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include <stddef.h>

#include "report/markup.h"

/* The style sheet; holds neither '<' nor '&'. */
const char *html_stylesheet(void);

/* A document with its head, up to and with the start of <main>. Without a `sheet` (the sheet's address) the style sheet
 * stands in the page, which then needs nothing else. To be ended by html_page_end. html_page_open does the same up to
 * <body>, for a page that has something before its <main>. */
void html_page_begin(struct markup *m, const char *title, const char *sheet);
void html_page_open(struct markup *m, const char *title, const char *sheet);
void html_page_end(struct markup *m);

/* <section> with its heading; to be ended by markup_end. */
void html_section(struct markup *m, const char *id, const char *title);

/* <name class="class">, to be ended by markup_end; `class` may be NULL. */
void html_begin(struct markup *m, const char *name, const char *class);

/* A leaf with formatted text. */
void html_leaff(struct markup *m, const char *name, const char *class, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A code box of one line, as it would be typed. */
void html_command(struct markup *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A table, cell by cell; rows wrap by themselves. A head that begins with '>' aligns its column to the right. It
 * scrolls by itself where the page is narrow. */
struct html_table {
    struct markup *m;
    const char *const *heads; /* NULL-terminated, borrowed */
    size_t n, at;
    const char *row_class; /* of the next row that begins; or NULL */
};
void html_table_begin(struct html_table *t, struct markup *m, const char *caption, const char *const *heads);
void html_cell(struct html_table *t, const char *text);
void html_cellf(struct html_table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A cell with any content, written between the two calls. */
void html_cell_begin(struct html_table *t);
void html_cell_end(struct html_table *t);
void html_table_end(struct html_table *t); /* its rows must be whole */

#endif
