/* The first byte tells the length (RFC 3629, section 3); of four first bytes the second is bounded more narrowly
 * (section 4). */
#include "base/utf8.h"

#include <stdbool.h>

size_t utf8_length(const char *text, size_t n) {
    const unsigned char *s = (const unsigned char *)text;
    if (*s < 0x80)
        return 1;
    const size_t length = *s > 0xf4 ? 0 : *s >= 0xf0 ? 4 : *s >= 0xe0 ? 3 : *s >= 0xc2 ? 2 : 0;
    if (length > n)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    const bool overlong = (*s == 0xe0 && s[1] < 0xa0) || (*s == 0xf0 && s[1] < 0x90);
    const bool beyond = (*s == 0xed && s[1] > 0x9f) || (*s == 0xf4 && s[1] > 0x8f);
    return overlong || beyond ? 0 : length;
}
