/* XML text, element by element, into a growing buffer: what is written is well-formed and escaped, because there is no
 * way to write anything else.
 *
 * Elements nest by markup_begin and markup_end; attributes come before content. Texts and values may hold anything:
 * markup is escaped, and what is not clean (base/text.h) or no character of XML becomes U+FFFD; tabs and line ends
 * stay. Element and attribute names come from the program, never from data. The same text is HTML and XML: void
 * elements and all of SVG close themselves, other elements always have an end tag.
 *
 * Running out of memory sticks: later calls do nothing, and markup_take tells. Equal calls give equal bytes.
 * Threads: one at a time. */
#ifndef REPORT_MARKUP_H
#define REPORT_MARKUP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { MARKUP_DEPTH = 64 };

struct markup {
    char *text;
    size_t length, room;
    const char *open[MARKUP_DEPTH]; /* names of the elements that are not closed */
    size_t depth;
    bool in_tag, failed;
};

/* {0} is an empty one. `name` lives as long as its element is open. */
void markup_begin(struct markup *m, const char *name);
void markup_end(struct markup *m);

/* Add an attribute to the element that was begun last, before it has content. */
void markup_attribute(struct markup *m, const char *name, const char *value);
void markup_attributef(struct markup *m, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Writes x rounded to tenths, as short as it can be: "12", "3.5". */
void markup_attribute_number(struct markup *m, const char *name, double x);

void markup_text(struct markup *m, const char *text);
void markup_textf(struct markup *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
void markup_textv(struct markup *m, const char *format, va_list values) __attribute__((format(printf, 2, 0)));

/* An attribute of many pieces, a path's data. markup_piece within it is escaped like any value. */
void markup_attribute_begin(struct markup *m, const char *name);
void markup_piece(struct markup *m, const char *text);
void markup_piece_number(struct markup *m, double x); /* as markup_attribute_number */
void markup_attribute_end(struct markup *m);

/* An element with one text, and nothing more. */
void markup_leaf(struct markup *m, const char *name, const char *text);

/* HTML's first line; only at the very beginning. */
void markup_doctype(struct markup *m);

/* A style sheet of the program's own, which HTML does not unescape: it must not contain '<' or '&'. */
void markup_style(struct markup *m, const char *css);

/* The text, NUL-terminated; every element must be closed. The caller frees it, and *m is empty again. *length may be
 * NULL. Fails: ST_NO_MEMORY, and *m is then empty too. */
enum status markup_take(struct markup *m, char **out, size_t *length, struct error *err);
void markup_release(struct markup *m);

#endif
