/* A strict check of JSON text before cJSON sees it.
 *
 * cJSON takes more than JSON: control characters as blanks or inside strings, bytes that are no UTF-8, \u0000 (which
 * cuts the string), numbers such as 01, 1. and -.5. It also returns the same NULL for bad text and for no memory. So
 * this recursive descent over RFC 8259 (UTF-8 by the table of RFC 3629) decides what is JSON and names line and column;
 * cJSON only builds the tree. Cost: O(n), at most 64 levels of stack. */
#include <stdbool.h>
#include <string.h>

#include "base/json_internal.h"
#include "base/utf8.h"

struct scan {
    const char *text, *at, *end;
    const char *name;
    struct error *err;
};

static enum status fail(struct scan *s, const char *what) {
    size_t line = 1, column = 1;
    for (const char *p = s->text; p < s->at; p++) {
        if (*p == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)*p & 0xc0) != 0x80) {
            column++; /* one a character, not one a byte */
        }
    }
    error_at(s->err, ST_INVALID, s->name, "line %zu, column %zu: %s", line, column, what);
    json_clean_message(s->err);
    return ST_INVALID;
}

/* The next byte, or -1 at the end. */
static int peek(const struct scan *s) {
    return s->at < s->end ? (unsigned char)*s->at : -1;
}

static bool take(struct scan *s, int c) {
    if (peek(s) != c)
        return false;
    s->at++;
    return true;
}

static void skip_blanks(struct scan *s) {
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
        s->at++;
}

static bool is_digit(int c) {
    return c >= '0' && c <= '9';
}

static bool skip_digits(struct scan *s) {
    const char *start = s->at;
    while (is_digit(peek(s)))
        s->at++;
    return s->at > start;
}

static enum status scan_number(struct scan *s) {
    const char *start = s->at;
    take(s, '-');
    if (take(s, '0')) {
        if (is_digit(peek(s)))
            return fail(s, "a number must not begin with 0; remove it");
    } else if (!skip_digits(s)) {
        return fail(s, "expected a digit after '-'");
    }
    if (take(s, '.') && !skip_digits(s))
        return fail(s, "expected a digit after the decimal point");
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->at++;
        if (!take(s, '+'))
            take(s, '-');
        if (!skip_digits(s))
            return fail(s, "expected a digit in the exponent");
    }
    if (s->at - start > JSON_MAX_NUMBER) {
        s->at = start;
        return fail(s, "a number of more than 63 characters; write fewer digits");
    }
    return ST_OK;
}

/* The four hexadecimal digits of \uXXXX, or -1. */
static int scan_hex(struct scan *s) {
    int code = 0;
    for (int i = 0; i < 4; i++) {
        const int c = peek(s);
        const char *digits = "0123456789abcdef";
        const char *digit = c <= 0 ? NULL : strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c);
        if (!digit)
            return -1;
        code = code * 16 + (int)(digit - digits);
        s->at++;
    }
    return code;
}

static enum status scan_unicode(struct scan *s) {
    int code = scan_hex(s);
    if (code < 0)
        return fail(s, "expected four hexadecimal digits after \\u");
    if (code == 0)
        return fail(s, "\\u0000 is not allowed in strings");
    if (code < 0xd800 || code > 0xdfff)
        return ST_OK;
    if (code > 0xdbff || !take(s, '\\') || !take(s, 'u'))
        return fail(s, "half of a surrogate pair; write both halves or the character itself");
    code = scan_hex(s);
    if (code < 0xdc00 || code > 0xdfff)
        return fail(s, "half of a surrogate pair; write both halves or the character itself");
    return ST_OK;
}

static enum status scan_escape(struct scan *s) {
    if (take(s, 'u'))
        return scan_unicode(s);
    const int c = peek(s);
    if (c <= 0 || !strchr("\"\\/bfnrt", c))
        return fail(s, "unknown escape; a backslash itself is written \\\\");
    s->at++;
    return ST_OK;
}

static enum status scan_string(struct scan *s) {
    const char *start = s->at++;
    while (s->at < s->end && *s->at != '"') {
        const unsigned char c = (unsigned char)*s->at;
        if (c < 0x20)
            return fail(s, c == '\n' || c == '\r' ? "a string must end on its line; close it with '\"'"
                                                  : "a control character in a string; write it as an escape");
        if (c == '\\') {
            s->at++;
            enum status status = scan_escape(s);
            if (status)
                return status;
            continue;
        }
        const size_t n = utf8_length(s->at, (size_t)(s->end - s->at));
        if (n == 0)
            return fail(s, "bytes that are not UTF-8; save the file as UTF-8");
        s->at += n;
    }
    if (take(s, '"'))
        return ST_OK;
    s->at = start;
    return fail(s, "a string that never ends; close it with '\"'");
}

static enum status scan_word(struct scan *s) {
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < 3; i++) {
        const size_t n = strlen(words[i]);
        if ((size_t)(s->end - s->at) >= n && memcmp(s->at, words[i], n) == 0) {
            s->at += n;
            return ST_OK;
        }
    }
    return fail(s, s->at < s->end ? "expected a value: an object, array, string, number, true, false or null"
                                  : "the text ends where a value should be; is the file complete?");
}

static enum status scan_value(struct scan *s, int depth);

static enum status scan_key(struct scan *s) {
    skip_blanks(s);
    if (peek(s) != '"')
        return fail(s, peek(s) == '}' ? "a comma before '}'; remove it" : "expected a member name in double quotes");
    enum status status = scan_string(s);
    if (status)
        return status;
    skip_blanks(s);
    return take(s, ':') ? ST_OK : fail(s, "expected ':' after a member name");
}

/* The inside of an object or array, behind its opening bracket. */
static enum status scan_container(struct scan *s, bool object, int depth) {
    const char close = object ? '}' : ']';
    if (depth > JSON_MAX_DEPTH)
        return fail(s, "nested deeper than 64 levels");
    skip_blanks(s);
    if (take(s, close))
        return ST_OK;
    do {
        enum status status = object ? scan_key(s) : ST_OK;
        if (!status && !object) {
            skip_blanks(s);
            if (peek(s) == ']')
                return fail(s, "a comma before ']'; remove it");
        }
        if (status || (status = scan_value(s, depth)))
            return status;
        skip_blanks(s);
    } while (take(s, ','));
    if (take(s, close))
        return ST_OK;
    if (s->at == s->end)
        return fail(s, object ? "the text ends inside an object; is the file complete?"
                              : "the text ends inside an array; is the file complete?");
    return fail(s, object ? "expected ',' or '}' after a member" : "expected ',' or ']' after an element");
}

static enum status scan_value(struct scan *s, int depth) {
    skip_blanks(s);
    const int c = peek(s);
    if (c == '"')
        return scan_string(s);
    if (c == '-' || is_digit(c))
        return scan_number(s);
    if (c != '{' && c != '[')
        return scan_word(s);
    s->at++;
    return scan_container(s, c == '{', depth + 1);
}

enum status json_scan(const char *text, size_t n, const char *name, struct error *err) {
    struct scan s = {text, text, text + n, name, err};
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        s.at += 3; /* the byte order mark that some editors write */
    skip_blanks(&s);
    if (s.at == s.end)
        return fail(&s, "the document is empty");
    enum status status = scan_value(&s, 0);
    if (status)
        return status;
    skip_blanks(&s);
    return s.at == s.end ? ST_OK : fail(&s, "text after the end of the document; remove it");
}
