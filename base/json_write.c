/* Writing JSON: one writer for three forms (canonical, pretty, line).
 *
 * Canonical text is what ids are made of, so it must not depend on who wrote the file: members by byte order, numbers
 * by value. Cost: O(n), plus O(m log m) to sort an object of m members, plus for pretty text at most 110 bytes of a
 * tried line for each object and array. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/text.h"

enum { PRETTY_WIDTH = 110, INDENT = 2 };

struct text {
    char *data;
    size_t n, capacity;
    bool failed;
};

struct style {
    bool sorted, spaced;
    bool shown; /* what is not clean (base/text.h) as an escape: for everything but canonical text, which is hashed */
};

static void put(struct text *t, const char *bytes, size_t n) {
    if (t->failed)
        return;
    if (!GROW(&t->data, &t->capacity, t->n + n + 1)) {
        t->failed = true;
        return;
    }
    memcpy(t->data + t->n, bytes, n);
    t->n += n;
    t->data[t->n] = '\0';
}

static void put_word(struct text *t, const char *word) {
    put(t, word, strlen(word));
}

/* The finished text, or NULL when memory ran out on the way. */
static char *finish(struct text *t) {
    if (!t->failed)
        return t->data;
    free(t->data);
    return NULL;
}

/* "1e+20" to "1e20", "1e-05" to "1e-5". */
static void shorten_exponent(char *number) {
    char *e = strchr(number, 'e');
    if (!e)
        return;
    char *to = e + 1, *from = e + 1;
    if (*from == '-')
        to++;
    from += *from == '-' || *from == '+';
    while (*from == '0')
        from++;
    memmove(to, from, strlen(from) + 1);
}

enum { MOST_DIGITS = 17 }; /* that a double needs to be read back */
enum fit { FITS, MISSES, UNSURE };

/* Does x > 0, printed with so many digits, read back as x? x is scaled so that these digits stand before the point.
 * Printing rounds the scaled x to a whole number. It reads back if this changes it by less than half of the (scaled)
 * distance to the next double. */
static enum fit fits(double x, int digits) {
    static const long double powers[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
                                         1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
                                         1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
    const int up = digits - 1 - (int)floor(log10(x));
    int exponent;
    if (up < 0 || up >= (int)(sizeof powers / sizeof *powers) || frexp(x, &exponent) == 0.5)
        return UNSURE; /* a power of two is nearer to the double below it */
    const long double scaled = x * powers[up], changed = fabsl(scaled - rintl(scaled)),
                      half = ldexpl(powers[up], exponent - DBL_MANT_DIG - 1), doubt = 2 * LDBL_EPSILON * scaled;
    if (scaled < powers[digits - 1] || scaled >= powers[digits])
        return UNSURE;
    return changed + doubt < half ? FITS : changed - doubt > half ? MISSES : UNSURE;
}

void json_format_number(double x, char *out) {
    if (!isfinite(x)) {
        strcpy(out, "null"); /* JSON has no other word for it */
        return;
    }
    if (fabs(x) <= 0x1p53 && x == floor(x)) {
        snprintf(out, 32, "%lld", (long long)x); /* and -0 is 0 */
        return;
    }
    /* If fewer than 15 digits are enough, 15 digits print the same number, since %g drops zeros at the end. Only
     * subnormal numbers have fewer significant digits, so fewer are tried for them. Printing and reading back takes ten
     * times as long as fits(). */
    for (int digits = fabs(x) < DBL_MIN ? 1 : 15; digits <= MOST_DIGITS; digits++) {
        const enum fit fit = digits < MOST_DIGITS ? fits(fabs(x), digits) : FITS;
        if (fit == MISSES)
            continue;
        snprintf(out, 32, "%.*g", digits, x);
        if (fit == FITS || strtod(out, NULL) == x)
            break;
    }
    shorten_exponent(out);
}

/* As json_line and json_pretty have it: a terminal obeys nothing of it. */
static void put_shown(struct text *t, const char *json, size_t n) {
    char shown[TEXT_SHOWN];
    for (size_t i = 0; i < n;) {
        const size_t plain = text_clean_length(json + i, n - i);
        put(t, json + i, plain);
        i += plain;
        if (i < n) {
            i += text_show_json(json + i, n - i, shown);
            put_word(t, shown);
        }
    }
}

static void put_string(struct text *t, const char *s, struct style style) {
    static const char names[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    put(t, "\"", 1);
    while (*s) {
        size_t plain = 0;
        while ((unsigned char)s[plain] >= 0x20 && s[plain] != '"' && s[plain] != '\\')
            plain++;
        if (style.shown)
            put_shown(t, s, plain);
        else
            put(t, s, plain);
        s += plain;
        if (*s == '\0')
            break;
        char escape[8];
        const char *named = strchr(names, *s);
        const int n = named ? snprintf(escape, sizeof escape, "\\%c", letters[named - names])
                            : snprintf(escape, sizeof escape, "\\u%04x", (unsigned)(unsigned char)*s);
        put(t, escape, (size_t)n);
        s++;
    }
    put(t, "\"", 1);
}

static void put_scalar(struct text *t, const cJSON *node, struct style style) {
    char number[32];
    switch (node->type & 0xff) {
    case cJSON_False:
        put_word(t, "false");
        break;
    case cJSON_True:
        put_word(t, "true");
        break;
    case cJSON_Number:
        json_format_number(node->valuedouble, number);
        put_word(t, number);
        break;
    case cJSON_String:
        put_string(t, node->valuestring, style);
        break;
    case cJSON_Raw:
        if (style.shown)
            put_shown(t, node->valuestring, strlen(node->valuestring));
        else
            put_word(t, node->valuestring);
        break;
    default:
        put_word(t, "null");
    }
}

static bool is_container(const cJSON *node) {
    return cJSON_IsObject(node) || cJSON_IsArray(node);
}

static int compare_members(const void *a, const void *b) {
    const cJSON *const *x = a, *const *y = b;
    return strcmp((*x)->string, (*y)->string);
}

static void put_line(struct text *t, const cJSON *node, struct style style, size_t limit);

static void put_member(struct text *t, const cJSON *member, bool first, struct style style, size_t limit) {
    if (!first)
        put_word(t, style.spaced ? ", " : ",");
    if (member->string) {
        put_string(t, member->string, style);
        put_word(t, style.spaced ? ": " : ":");
    }
    put_line(t, member, style, limit);
}

static void put_sorted(struct text *t, const cJSON *object, struct style style, size_t limit) {
    size_t n = 0, i = 0;
    for (const cJSON *m = object->child; m; m = m->next)
        n++;
    const cJSON **members = malloc((n ? n : 1) * sizeof *members);
    if (!members) {
        t->failed = true;
        return;
    }
    for (const cJSON *m = object->child; m; m = m->next)
        members[i++] = m;
    qsort(members, n, sizeof *members, compare_members);
    for (i = 0; i < n; i++)
        put_member(t, members[i], i == 0, style, limit);
    free(members);
}

/* The whole of `node` on one line. May stop early once t->n is over `limit`: the caller throws that line away. */
static void put_line(struct text *t, const cJSON *node, struct style style, size_t limit) {
    if (t->n > limit || t->failed)
        return;
    if (!is_container(node)) {
        put_scalar(t, node, style);
        return;
    }
    const bool object = cJSON_IsObject(node);
    put_word(t, object ? "{" : "[");
    if (object && style.sorted) {
        put_sorted(t, node, style, limit);
    } else {
        for (const cJSON *m = node->child; m && t->n <= limit; m = m->next)
            put_member(t, m, m == node->child, style, limit);
    }
    put_word(t, object ? "}" : "]");
}

static void put_indent(struct text *t, int depth) {
    put(t, "\n", 1);
    for (int i = 0; i < depth * INDENT; i++)
        put(t, " ", 1);
}

/* `start` is where the current line begins. */
static void put_pretty(struct text *t, const cJSON *node, int depth, size_t start) {
    const size_t before = t->n, limit = start + PRETTY_WIDTH - 1; /* a comma may follow */
    const bool divisible = is_container(node) && node->child;
    put_line(t, node, (struct style){.spaced = true, .shown = true}, divisible ? limit : SIZE_MAX);
    if (t->failed || !divisible || t->n <= limit)
        return;
    t->n = before;
    put_word(t, cJSON_IsObject(node) ? "{" : "[");
    for (const cJSON *m = node->child; m; m = m->next) {
        put_indent(t, depth + 1);
        start = t->n - (size_t)((depth + 1) * INDENT);
        if (m->string) {
            put_string(t, m->string, (struct style){.shown = true});
            put_word(t, ": ");
        }
        put_pretty(t, m, depth + 1, start);
        if (m->next)
            put(t, ",", 1);
    }
    put_indent(t, depth);
    put_word(t, cJSON_IsObject(node) ? "}" : "]");
}

char *json_canonical(const cJSON *node) {
    struct text t = {0};
    put_line(&t, node, (struct style){.sorted = true}, SIZE_MAX);
    return finish(&t);
}

bool json_add_known(cJSON *object, const char *key, double x) {
    return isnan(x) || cJSON_AddNumberToObject(object, key, x);
}

bool json_add_named(cJSON *object, const char *key, const char *id, const char *name) {
    cJSON *named = cJSON_AddObjectToObject(object, key);
    return named && cJSON_AddStringToObject(named, "id", id) && cJSON_AddStringToObject(named, "name", name);
}

char *json_line(const cJSON *node) {
    struct text t = {0};
    put_line(&t, node, (struct style){.shown = true}, SIZE_MAX);
    return finish(&t);
}

char *json_pretty(const cJSON *node) {
    struct text t = {0};
    put_pretty(&t, node, 0, 0);
    return finish(&t);
}

enum status json_write_file(const char *path, const char *text, struct error *err) {
    const size_t n = strlen(text);
    char *line = malloc(n + 2);
    if (!line)
        return error_no_memory(err);
    memcpy(line, text, n);
    memcpy(line + n, "\n", 2);
    enum status status = file_write(path, n + 1, line, err);
    free(line);
    return status;
}
