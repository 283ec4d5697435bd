/* Overlong forms, surrogates and what lies beyond U+10FFFF are no characters (RFC 3629 §4). The marks of direction are
 * those of Unicode's UAX #9, whose misuse "Trojan Source" (CVE-2021-42574) made known. */
#include "base/text.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

static uint32_t code_of(const unsigned char *s, size_t length) {
    uint32_t code = length == 1 ? *s : *s & (0x7fu >> length);
    for (size_t i = 1; i < length; i++)
        code = code << 6 | (s[i] & 0x3f);
    return code;
}

static bool misleads(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* As utf8_length, and 0 also for a character that is not clean. Most text is ASCII. */
static size_t clean_length(const unsigned char *s, size_t n) {
    if (*s < 0x80)
        return *s >= 0x20 && *s != 0x7f;
    const size_t length = utf8_length((const char *)s, n);
    return length && !misleads(code_of(s, length)) ? length : 0;
}

size_t text_character(const char *text, size_t n) {
    return clean_length((const unsigned char *)text, n);
}

size_t text_clean_length(const char *text, size_t n) {
    for (size_t i = 0; i < n;) {
        const size_t length = clean_length((const unsigned char *)text + i, n - i);
        if (!length)
            return i;
        i += length;
    }
    return n;
}

bool text_is_clean(const char *text, size_t n) {
    return text_clean_length(text, n) == n;
}

bool text_is_name(const char *text, size_t most) {
    const size_t n = text ? strnlen(text, most + 1) : 0;
    return n >= 1 && n <= most && text_is_clean(text, n);
}

bool text_is_word(const char *text, size_t most) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const size_t n = text ? strnlen(text, most + 1) : 0;
    return n >= 1 && n <= most && !strchr("._-", *text) && strspn(text, letters) == n;
}

void text_clean(char *text) {
    const size_t n = strlen(text);
    for (size_t i = 0; i < n;) {
        size_t length = clean_length((const unsigned char *)text + i, n - i);
        if (!length)
            text[i] = strchr("\t\n\r", text[i]) ? ' ' : '?';
        i += length ? length : 1;
    }
}

size_t text_show(const char *text, size_t n, char out[TEXT_SHOWN]) {
    const unsigned char *s = (const unsigned char *)text;
    const size_t length = utf8_length((const char *)s, n);
    const uint32_t code = length ? code_of(s, length) : *s;
    if (!length || (length == 1 && misleads(code)))
        snprintf(out, TEXT_SHOWN, "\\x%02x", code & 0xff);
    else if (misleads(code))
        snprintf(out, TEXT_SHOWN, "\\u%04x", code & 0xffff);
    else
        snprintf(out, TEXT_SHOWN, "%.*s", (int)length, text);
    return length ? length : 1;
}

size_t text_show_json(const char *json, size_t n, char out[TEXT_SHOWN]) {
    const unsigned char *s = (const unsigned char *)json;
    const size_t length = utf8_length((const char *)s, n);
    const uint32_t code = length ? code_of(s, length) : 0xfffd;
    /* A tab stays: between values a blank would mean the same, but the text would have another hash. */
    if (code == '\n' || code == '\r' || code == '\t')
        strcpy(out, code == '\t' ? "\t" : " ");
    else if (!length || misleads(code))
        snprintf(out, TEXT_SHOWN, "\\u%04x", code & 0xffff);
    else
        snprintf(out, TEXT_SHOWN, "%.*s", (int)length, json);
    return length ? length : 1;
}
