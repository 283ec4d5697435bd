/* The printers of base/text.h. text_print walks through its format: what stands between conversions is ours and goes
 * out as it is, a number is left to snprintf, one conversion at a time, and a text goes through text_show. Cost:
 * O(bytes). */
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

/* Where the bytes go: a stream or, without one, a buffer. */
struct sink {
    FILE *to;
    char *out;
    size_t room, n;
    bool full; /* a piece did not fit: no later one is tried, so that nothing is missing in the middle */
};

static void put(struct sink *sink, const char *bytes, size_t n) {
    if (sink->to) {
        fwrite(bytes, 1, n, sink->to);
        return;
    }
    sink->full |= n >= sink->room - sink->n;
    if (sink->full)
        return;
    memcpy(sink->out + sink->n, bytes, n);
    sink->n += n;
}

static void pad(struct sink *sink, size_t n) {
    while (n--)
        put(sink, " ", 1);
}

/* %-10.3lf taken apart. */
struct conversion {
    char flags[8];
    int width, precision; /* -1: none */
    char length[4], letter;
};

static int read_number(const char **at, va_list *arguments) {
    int n = 0;
    if (**at == '*') {
        ++*at;
        return va_arg(*arguments, int);
    }
    while (isdigit((unsigned char)**at) && n < 100000)
        n = 10 * n + (*(*at)++ - '0');
    return n;
}

/* `at` is behind the '%'; returns what is behind the conversion. */
static const char *read_conversion(const char *at, struct conversion *c, va_list *arguments) {
    const size_t flags = strspn(at, "-+ #0"), kept = flags < sizeof c->flags - 1 ? flags : sizeof c->flags - 1;
    *c = (struct conversion){.width = -1, .precision = -1};
    memcpy(c->flags, at, kept);
    at += flags;
    if (*at == '*' || isdigit((unsigned char)*at))
        c->width = read_number(&at, arguments);
    if (*at == '.') {
        at++;
        c->precision = read_number(&at, arguments);
    }
    const size_t length = strspn(at, "hlLzjt");
    memcpy(c->length, at, length < sizeof c->length - 1 ? length : sizeof c->length - 1);
    at += length;
    c->letter = *at;
    return *at ? at + 1 : at;
}

/* The n bytes that a precision left, without a last character whose bytes are not all there. */
static size_t whole_characters(const char *text, size_t n) {
    size_t start = n;
    while (start > 0 && n - start < 3 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start == 0)
        return n;
    const unsigned char lead = (unsigned char)text[start - 1];
    const size_t need = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    return n - start < need ? start - 1 : n;
}

static size_t characters(const char *text, size_t n) {
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += ((unsigned char)text[i] & 0xc0) != 0x80;
    return found;
}

size_t text_columns(const char *text, size_t n) {
    size_t columns = 0;
    char shown[TEXT_SHOWN];
    for (size_t i = 0; i < n;) {
        const size_t clean = text_clean_length(text + i, n - i);
        columns += characters(text + i, clean);
        i += clean;
        if (i < n) {
            i += text_show(text + i, n - i, shown);
            columns += strlen(shown);
        }
    }
    return columns;
}

/* Clean text goes out in one piece if there is room for all of it, else a character at a time until the buffer is
 * full. */
static void put_shown(struct sink *sink, const char *text, size_t n) {
    char shown[TEXT_SHOWN];
    for (size_t i = 0; i < n;) {
        const size_t clean = text_clean_length(text + i, n - i);
        if (clean && (sink->to || clean < sink->room - sink->n)) {
            put(sink, text + i, clean);
            i += clean;
        } else {
            i += text_show(text + i, n - i, shown);
            put(sink, shown, strlen(shown));
        }
    }
}

static void put_text(struct sink *sink, const struct conversion *c, const char *text) {
    text = text ? text : "(null)";
    const size_t n = c->precision < 0 ? strlen(text) : strnlen(text, (size_t)c->precision);
    const size_t whole = n == (size_t)c->precision ? whole_characters(text, n) : n;
    const bool left = strchr(c->flags, '-') || c->width < -1;
    const size_t width = c->width == -1 ? 0 : c->width < 0 ? (size_t)-c->width : (size_t)c->width;
    const size_t columns = width ? text_columns(text, whole) : 0, gap = width > columns ? width - columns : 0;
    pad(sink, left ? 0 : gap);
    put_shown(sink, text, whole);
    pad(sink, left ? gap : 0);
}

/* The conversion as snprintf takes it, with numbers in place of stars. */
static void spell(const struct conversion *c, char out[48]) {
    char width[16] = "", precision[16] = "";
    if (c->width != -1)
        snprintf(width, sizeof width, "%d", c->width);
    if (c->precision >= 0)
        snprintf(precision, sizeof precision, ".%d", c->precision);
    snprintf(out, 48, "%%%s%s%s%s%c", c->flags, width, precision, c->length, c->letter);
}

/* What the standard's integer conversions take, by the length before them. */
static int format_integer(const struct conversion *c, const char *spelled, char *out, size_t room, va_list *arguments) {
    if (!strcmp(c->length, "l"))
        return snprintf(out, room, spelled, va_arg(*arguments, long));
    if (!strcmp(c->length, "ll"))
        return snprintf(out, room, spelled, va_arg(*arguments, long long));
    if (!strcmp(c->length, "z"))
        return snprintf(out, room, spelled, va_arg(*arguments, size_t));
    if (!strcmp(c->length, "j"))
        return snprintf(out, room, spelled, va_arg(*arguments, intmax_t));
    if (!strcmp(c->length, "t"))
        return snprintf(out, room, spelled, va_arg(*arguments, ptrdiff_t));
    return snprintf(out, room, spelled, va_arg(*arguments, int));
}

static void put_number(struct sink *sink, const struct conversion *c, va_list *arguments) {
    char spelled[48], number[512];
    spell(c, spelled);
    const bool real = strchr("aAeEfFgG", c->letter) != NULL;
    const int n = !real                    ? format_integer(c, spelled, number, sizeof number, arguments)
                  : strchr(c->length, 'L') ? snprintf(number, sizeof number, spelled, va_arg(*arguments, long double))
                                           : snprintf(number, sizeof number, spelled, va_arg(*arguments, double));
    if (n > 0)
        put(sink, number, (size_t)n < sizeof number ? (size_t)n : sizeof number - 1);
}

static void put_conversion(struct sink *sink, const struct conversion *c, va_list *arguments) {
    if (c->letter == '%') {
        put(sink, "%", 1);
    } else if (c->letter == 's') {
        put_text(sink, c, va_arg(*arguments, const char *));
    } else if (c->letter == 'c') {
        const char text[2] = {(char)va_arg(*arguments, int), '\0'};
        put_text(sink, c, text);
    } else if (c->letter && strchr("diouxXaAeEfFgG", c->letter)) {
        put_number(sink, c, arguments);
    }
}

static void put_all(struct sink *sink, const char *format, va_list *arguments) {
    struct conversion c;
    while (*format) {
        const size_t plain = strcspn(format, "%");
        put(sink, format, plain);
        format += plain;
        if (!*format)
            break;
        format = read_conversion(format + 1, &c, arguments);
        put_conversion(sink, &c, arguments);
    }
}

size_t text_vformat(char *out, size_t room, const char *format, va_list arguments) {
    struct sink sink = {.out = out, .room = room};
    va_list mine;
    va_copy(mine, arguments); /* a va_list parameter may be an array, whose address is of another type */
    put_all(&sink, format, &mine);
    va_end(mine);
    out[sink.n] = '\0';
    return sink.n;
}

size_t text_format(char *out, size_t room, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const size_t n = text_vformat(out, room, format, arguments);
    va_end(arguments);
    return n;
}

void text_print(FILE *to, const char *format, ...) {
    struct sink sink = {.to = to};
    va_list arguments;
    va_start(arguments, format);
    put_all(&sink, format, &arguments);
    va_end(arguments);
}

void text_print_json(FILE *to, const char *json, size_t n) {
    char shown[TEXT_SHOWN];
    for (size_t i = 0; i < n;) {
        size_t plain = 0;
        while (i + plain < n && json[i + plain] >= 0x20 && json[i + plain] < 0x7f)
            plain++;
        fwrite(json + i, 1, plain, to);
        i += plain;
        if (i < n) {
            i += text_show_json(json + i, n - i, shown);
            fputs(shown, to);
        }
    }
}

static void put_csv(FILE *to, const char *text, bool quoted) {
    struct sink sink = {.to = to};
    for (; *text; text += strcspn(text, "\"") ? strcspn(text, "\"") : 1) {
        const size_t n = strcspn(text, "\"");
        put_shown(&sink, text, n);
        if (!n)
            fputs(quoted ? "\"\"" : "\"", to);
    }
}

void text_print_csv(FILE *to, const char *text) {
    if (!text || !*text)
        return;
    const bool quoted = strpbrk(text, ",\"") != NULL;
    fputs(quoted ? "\"" : "", to);
    fputs(strchr("=+-@'", *text) ? "'" : "", to);
    put_csv(to, text, quoted);
    fputs(quoted ? "\"" : "", to);
}
