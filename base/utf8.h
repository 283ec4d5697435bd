/* Characters of UTF-8 (RFC 3629): no surrogates, no forms longer than needed, nothing beyond U+10FFFF. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>

/* How many bytes the character at `text` has, of which n > 0 bytes are left; 0: it is none. */
size_t utf8_length(const char *text, size_t n);

#endif
