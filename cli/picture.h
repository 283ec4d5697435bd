/* Pictures made of characters: blocks where the locale says UTF-8, else ASCII; as wide as the terminal. */
#ifndef CLI_PICTURE_H
#define CLI_PICTURE_H

#include <stddef.h>

/* Characters of a line: of the terminal at standard output, between 50 and 240; 100 where that is no terminal. */
size_t picture_width(void);

/* One character that is filled from below by this share; a share that is not between 0 and 1 is cut. */
const char *picture_column(double share);

/* One character of a shade that tells it from others: 0 is blank, PICTURE_SHADES - 1 the darkest. */
enum { PICTURE_SHADES = 4 };
const char *picture_shade(unsigned shade);

/* `cells` characters, filled from the left by this share; `out` has room for PICTURE_BYTES a cell, and one more. */
enum { PICTURE_BYTES = 3 };
const char *picture_bar(double share, size_t cells, char *out);

#endif
