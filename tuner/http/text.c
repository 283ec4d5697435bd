/* See text.h. Overlong forms, surrogates and what lies beyond U+10FFFF are no characters (RFC 3629 §4). */
#include "tuner/http/text.h"

#include <string.h>

/* The length of the character at `s`, of which n > 0 bytes are left; 0 when it is none. */
static size_t character_length(const unsigned char *s, size_t n) {
    if (*s < 0x80)
        return *s >= 0x20 && *s != 0x7f;
    size_t length = *s > 0xf4 ? 0 : *s >= 0xf0 ? 4 : *s >= 0xe0 ? 3 : *s >= 0xc2 ? 2 : 0;
    if (length > n)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    const bool overlong = (*s == 0xe0 && s[1] < 0xa0) || (*s == 0xf0 && s[1] < 0x90);
    const bool beyond = (*s == 0xed && s[1] > 0x9f) || (*s == 0xf4 && s[1] > 0x8f);
    return overlong || beyond ? 0 : length;
}

bool text_is_clean(const char *text, size_t n) {
    for (size_t i = 0, length; i < n; i += length) {
        length = character_length((const unsigned char *)text + i, n - i);
        if (!length)
            return false;
    }
    return true;
}

void text_clean(char *text) {
    const size_t n = strlen(text);
    for (size_t i = 0; i < n;) {
        size_t length = character_length((const unsigned char *)text + i, n - i);
        if (!length)
            text[i] = '?';
        i += length ? length : 1;
    }
}
