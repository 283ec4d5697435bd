/* Characters of UTF-8 (RFC 3629): no surrogates, no forms longer than needed, nothing beyond U+10FFFF. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>

/* How many bytes the first character of the n > 0 bytes at `text` has; 0: they do not begin with a character. */
size_t utf8_length(const char *text, size_t n);

#endif
