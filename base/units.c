/* A number without sign or exponent, then a unit from a table. Cost: O(length). */
#include "base/units.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct unit {
    const char *word;
    double scale;
};

static const struct unit byte_units[] = {
    {"", 1},
    {"B", 1},
    {"K", 1024},
    {"KiB", 1024},
    {"KB", 1e3},
    {"M", 1048576},
    {"MiB", 1048576},
    {"MB", 1e6},
    {"G", 1073741824},
    {"GiB", 1073741824},
    {"GB", 1e9},
    {"T", 1099511627776},
    {"TiB", 1099511627776},
    {"TB", 1e12},
    {NULL, 0},
};

static const struct unit time_units[] = {
    {"", 1e6},   {"us", 1},     {"µs", 1},     {"ms", 1e3},    {"s", 1e6},
    {"m", 60e6}, {"min", 60e6}, {"h", 3600e6}, {"d", 86400e6}, {NULL, 0},
};

/* False when `text` is not digits with at most one point, optional blanks, and a unit of the table. The value is a
 * long double because uint64_t has more digits than a double. */
static bool parse(const char *text, const struct unit *units, long double *value) {
    char number[64];
    const size_t length = strspn(text, "0123456789.");
    const char *point = memchr(text, '.', length);
    if (length == 0 || length >= sizeof number ||
        (point && (length == 1 || memchr(point + 1, '.', length - (size_t)(point + 1 - text)))))
        return false;
    memcpy(number, text, length);
    number[length] = '\0';
    const char *unit = text + length + strspn(text + length, " ");
    for (size_t i = 0; units[i].word; i++) {
        if (strcasecmp(unit, units[i].word) == 0) {
            *value = strtold(number, NULL) * (long double)units[i].scale;
            return true;
        }
    }
    return false;
}

enum status units_parse_bytes(const char *text, uint64_t *bytes, struct error *err) {
    long double value;
    if (!parse(text, byte_units, &value))
        return error_set(err, ST_USAGE, "\"%.60s\" is not a size; write for example 64K, 4MiB, 25MB or 1G", text);
    if (value >= 0x1p64L)
        return error_set(err, ST_USAGE, "\"%.60s\" is more bytes than 64 bits can count", text);
    *bytes = (uint64_t)value;
    return ST_OK;
}

enum status units_parse_memory(const char *text, uint64_t *bytes, struct error *err) {
    static const uint64_t least = 1000000, most_gb = 512; /* of a device */
    uint64_t value;
    const size_t digits = strspn(text, "0123456789.");
    enum status st = units_parse_bytes(text, &value, err);
    if (st)
        return st;
    if (value == 0)
        return error_set(err, ST_USAGE, "nothing fits into 0 bytes");
    if (value < least && !text[digits + strspn(text + digits, " ")]) {
        const char unit = value < most_gb ? 'G' : 'M';
        return error_set(err, ST_USAGE, "%.*s is %llu byte%s; write %.*s%cB or %.*s%ciB", (int)digits, text,
                         (unsigned long long)value, value == 1 ? "" : "s", (int)digits, text, unit, (int)digits, text,
                         unit);
    }
    *bytes = value;
    return ST_OK;
}

enum status units_parse_time(const char *text, double *us, struct error *err) {
    long double value;
    if (!parse(text, time_units, &value))
        return error_set(err, ST_USAGE, "\"%.60s\" is not a time; write for example 90s, 5m, 1.5h, 250ms or 40us",
                         text);
    if (value > 1e18L)
        return error_set(err, ST_USAGE, "\"%.60s\" is too long a time (over 30,000 years)", text);
    *us = (double)value;
    return ST_OK;
}

static const char *format_bytes(uint64_t bytes, bool finely, char *out, size_t n) {
    static const char *const words[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t k = 0;
    /* 1023.95 and more would read "1024.0". */
    while (k < 6 && (double)bytes / (double)(UINT64_C(1) << (10 * k)) >= (k ? 1023.95 : 1024))
        k++;
    const uint64_t unit = UINT64_C(1) << (10 * k);
    const double amount = (double)bytes / (double)unit;
    if (bytes % unit == 0)
        snprintf(out, n, "%llu %s", (unsigned long long)(bytes / unit), words[k]);
    else
        snprintf(out, n, "%.*f %s", !finely || amount >= 99.995 ? 1 : amount >= 9.9995 ? 2 : 3, amount, words[k]);
    return out;
}

const char *units_format_bytes(uint64_t bytes, char *out, size_t n) {
    return format_bytes(bytes, false, out, n);
}

const char *units_format_bytes_finely(uint64_t bytes, char *out, size_t n) {
    return format_bytes(bytes, true, out, n);
}

/* People type few digits: what has few in the decimal unit was typed so, unless it is whole in the binary one. */
const char *units_format_budget(uint64_t bytes, char *out, size_t n) {
    static const struct {
        const char *word;
        uint64_t decimal, step, binary;
    } units[] = {{"GB", 1000000000, 1000000, 1 << 30},
                 {"MB", 1000000, 1000, 1 << 20},
                 {"KB", 1000, 1000, 1 << 10},
                 {"", 0, 1, 1}};
    size_t i = 0;
    char binary[32];
    while (bytes < units[i].decimal)
        i++;
    units_format_bytes_finely(bytes, binary, sizeof binary);
    if (bytes % units[i].step || bytes % units[i].binary == 0)
        snprintf(out, n, "%s", binary);
    else
        snprintf(out, n, "%.10g%s (%s)", (double)bytes / (double)units[i].decimal, units[i].word, binary);
    return out;
}

/* Three significant digits. */
static void format_three(double x, const char *unit, const char *sign, char *out, size_t n) {
    const int decimals = x < 9.995 ? 2 : x < 99.95 ? 1 : 0;
    snprintf(out, n, "%s%.*f %s", sign, decimals, x, unit);
}

const char *units_format_time(double us, char *out, size_t n) {
    const char *sign = us < 0 ? "-" : "";
    us = fabs(us);
    const double seconds = round(us / 1e6), minutes = round(us / 60e6);
    if (!isfinite(us))
        snprintf(out, n, "%s", isnan(us) ? "unknown" : *sign ? "-infinite" : "infinite");
    else if (us == 0)
        snprintf(out, n, "0 µs");
    else if (us < 999.5)
        format_three(us, "µs", sign, out, n);
    else if (us < 999.5e3)
        format_three(us / 1e3, "ms", sign, out, n);
    else if (us < 59.9995e6)
        snprintf(out, n, "%s%.3f s", sign, us / 1e6);
    else if (seconds < 3600)
        snprintf(out, n, "%s%.0f min %02.0f s", sign, floor(seconds / 60), fmod(seconds, 60));
    else
        snprintf(out, n, "%s%.0f h %02.0f min", sign, floor(minutes / 60), fmod(minutes, 60));
    return out;
}

const char *units_format_known_time(double us, const char *unknown, char *out, size_t n) {
    return us > 0 && isfinite(us) ? units_format_time(us, out, n) : unknown;
}
