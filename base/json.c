/* Reading JSON: parse, then walk with places.
 *
 * json_scan decides what is JSON; cJSON builds the tree; one walk over it refuses what both let through: duplicate
 * member names and numbers beyond a double. Cost: O(n), and O(m log m) for an object of m members. */
#include "base/json.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_internal.h"
#include "base/text.h"

enum { FEW_MEMBERS = 24, MAX_STRING = 4096, MAX_POINTER = 240 };

/* Above this a double no longer tells neighbours apart. */
static const uint64_t max_exact = (UINT64_C(1) << 53) - 1;

/* Places and messages. */

void json_clean_message(struct error *err) {
    if (err)
        text_clean(err->place), text_clean(err->pointer), text_clean(err->message);
}

/* Text that grows up to a fixed end and then stays as it is. */
struct words {
    char text[ERROR_TEXT_ROOM];
    size_t n;
};

static void words_add(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void words_add(struct words *w, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(w->text + w->n, sizeof w->text - w->n, format, args);
    va_end(args);
    if (n > 0)
        w->n = w->n + (size_t)n < sizeof w->text ? w->n + (size_t)n : sizeof w->text - 1;
}

/* The JSON pointer of RFC 6901 and returns the root. */
static const struct json_at *add_pointer(struct words *w, const struct json_at *at) {
    if (!at->parent)
        return at;
    const struct json_at *root = add_pointer(w, at->parent);
    if (w->n >= MAX_POINTER)
        return root;
    words_add(w, "/");
    if (!at->key)
        words_add(w, "%zu", at->index);
    for (const char *p = at->key; p && *p && w->n < MAX_POINTER; p++)
        words_add(w, *p == '~' ? "~0" : *p == '/' ? "~1" : "%c", *p);
    if (w->n >= MAX_POINTER)
        words_add(w, "...");
    return root;
}

/* Brackets as in base/error.c. */
enum status(json_fail)(const struct json_at *at, struct error *err, const char *format, ...) {
    if (!err)
        return ST_INVALID;
    struct words pointer = {{0}, 0};
    char what[sizeof err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const struct json_at *root = add_pointer(&pointer, at);
    error_at(err, ST_INVALID, root->key ? root->key : "JSON", "%s", what);
    error_inside(err, ST_INVALID, "%s", pointer.text);
    json_clean_message(err);
    return ST_INVALID;
}

struct json_at json_root(const cJSON *node, const char *name) {
    return (struct json_at){node, NULL, name, 0};
}

struct json_at json_first(const struct json_at *array) {
    const cJSON *child = array->node->child;
    return (struct json_at){child, array, child ? child->string : NULL, 0};
}

struct json_at json_next(const struct json_at *element) {
    const cJSON *next = element->node->next;
    return (struct json_at){next, element->parent, next ? next->string : NULL, element->index + 1};
}

static const char *kind(const cJSON *node) {
    switch (node ? node->type & 0xff : cJSON_Invalid) {
    case cJSON_Invalid:
        return "nothing";
    case cJSON_False:
    case cJSON_True:
        return "a boolean";
    case cJSON_NULL:
        return "null";
    case cJSON_Number:
        return "a number";
    case cJSON_String:
        return "a string";
    case cJSON_Array:
        return "an array";
    default:
        return "an object";
    }
}

/* Parsing. */

static int compare_names(const void *a, const void *b) {
    const cJSON *const *x = a, *const *y = b;
    return strcmp((*x)->string, (*y)->string);
}

/* Most names differ in their first letter, and calling strcmp costs more than looking. */
static inline bool same_name(const char *a, const char *b) {
    return *a == *b && strcmp(a, b) == 0;
}

static const cJSON *duplicate_of_few(const cJSON *object) {
    for (const cJSON *a = object->child; a; a = a->next) {
        for (const cJSON *b = object->child; b != a; b = b->next) {
            if (same_name(a->string, b->string))
                return a;
        }
    }
    return NULL;
}

/* A second member of some name, or NULL in *duplicate. */
static enum status find_duplicate(const cJSON *object, const cJSON **duplicate, struct error *err) {
    size_t n = 0;
    for (const cJSON *m = object->child; m; m = m->next)
        n++;
    *duplicate = NULL;
    if (n <= FEW_MEMBERS) {
        *duplicate = duplicate_of_few(object);
        return ST_OK;
    }
    const cJSON **members = malloc(n * sizeof *members);
    if (!members)
        return error_no_memory(err);
    size_t i = 0;
    for (const cJSON *m = object->child; m; m = m->next)
        members[i++] = m;
    qsort(members, n, sizeof *members, compare_names);
    for (i = 1; i < n && !*duplicate; i++) {
        if (strcmp(members[i - 1]->string, members[i]->string) == 0)
            *duplicate = members[i];
    }
    free(members);
    return ST_OK;
}

static enum status check_tree(const struct json_at *at, struct error *err) {
    if (cJSON_IsNumber(at->node) && !isfinite(at->node->valuedouble))
        return json_fail(at, err, "a number too large to compute with; the largest is about 1.8e308");
    if (cJSON_IsObject(at->node)) {
        const cJSON *duplicate;
        enum status status = find_duplicate(at->node, &duplicate, err);
        if (status)
            return status;
        if (duplicate)
            return json_fail(at, err, "the member \"%.100s\" is there twice; keep one", duplicate->string);
    }
    for (struct json_at child = json_first(at); child.node; child = json_next(&child)) {
        if (!child.node->child && !cJSON_IsNumber(child.node))
            continue; /* most nodes: nothing to check */
        enum status status = check_tree(&child, err);
        if (status)
            return status;
    }
    return ST_OK;
}

/* `text` begins after a string's opening quote. Returns the place after the closing quote; `end` if there is none. A
 * quote after an odd number of backslashes is part of the string. */
static const char *skip_string(const char *text, const char *end) {
    for (const char *at = text; (at = memchr(at, '"', (size_t)(end - at))); at++) {
        const char *back = at;
        while (back > text && back[-1] == '\\')
            back--;
        if ((at - back) % 2 == 0)
            return at + 1;
    }
    return end;
}

size_t json_count_values(const char *text, size_t n) {
    static const bool begins[256] = {[','] = true, ['['] = true, ['{'] = true};
    size_t values = 1;
    for (const char *at = text, *end = text + n; at < end;) {
        const unsigned char c = (unsigned char)*at++;
        values += begins[c];
        if (c == '"')
            at = skip_string(at, end);
    }
    return values;
}

enum status json_parse(const char *text, size_t n, const char *name, cJSON **out, struct error *err) {
    if (n > JSON_MAX_BYTES)
        return error_at(err, ST_TOO_LARGE, name, "%zu bytes; at most %d are read", n, JSON_MAX_BYTES);
    enum status status = json_scan(text, n, name, err);
    if (status)
        return status;
    /* json_scan let a byte order mark pass; cJSON skips it only before five characters and more. */
    const size_t mark = n > 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    cJSON *tree = cJSON_ParseWithLength(text + mark, n - mark);
    if (!tree)
        return error_no_memory(err);
    const struct json_at root = json_root(tree, name);
    status = check_tree(&root, err);
    if (status) {
        cJSON_Delete(tree);
        return status;
    }
    *out = tree;
    return ST_OK;
}

/* Files. */

static enum status file_failed(const char *name, struct error *err) {
    const int code = errno;
    if (code == ENOENT || code == ENOTDIR)
        return error_at(err, ST_NOT_FOUND, name, "no such file; check the path");
    return error_at(err, ST_ENVIRONMENT, name, "cannot be read: %s", strerror(code));
}

static enum status too_large(const char *name, struct error *err) {
    return error_at(err, ST_TOO_LARGE, name, "more than %d MiB; a description is at most that large",
                    JSON_MAX_BYTES >> 20);
}

/* Refuse what has no end, such as a device. Standard input may be anything: the person who started us chose it. */
static enum status check_kind(int fd, bool standard_input, const char *name, size_t *size, struct error *err) {
    struct stat st;
    if (fstat(fd, &st))
        return file_failed(name, err);
    if (S_ISDIR(st.st_mode))
        return error_at(err, ST_INVALID, name, "is a directory; name a file in it");
    if (!standard_input && (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
        return error_at(err, ST_INVALID, name, "is a device; name a file, or - for standard input");
    if (S_ISREG(st.st_mode) && st.st_size > JSON_MAX_BYTES)
        return too_large(name, err);
    *size = S_ISREG(st.st_mode) ? (size_t)st.st_size : 0;
    return ST_OK;
}

/* Everything up to the end of `fd` in malloc'd memory. A pipe has no size and a file may grow: the limit is checked
 * while reading. */
static enum status read_all(int fd, const char *name, size_t expected, char **out, size_t *length, struct error *err) {
    size_t capacity = expected + 4096, n = 0;
    char *text = malloc(capacity);
    ssize_t got = 1;
    while (text && n <= JSON_MAX_BYTES) {
        got = read(fd, text + n, capacity - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
        if (n == capacity) {
            char *larger = realloc(text, capacity *= 2);
            if (!larger)
                free(text);
            text = larger;
        }
    }
    enum status status = ST_OK;
    if (!text)
        return error_no_memory(err);
    if (got < 0)
        status = file_failed(name, err);
    else if (n > JSON_MAX_BYTES)
        status = too_large(name, err);
    if (status) {
        free(text);
        return status;
    }
    *out = text;
    *length = n;
    return ST_OK;
}

enum status json_read_file(const char *path, cJSON **out, struct error *err) {
    const bool standard_input = strcmp(path, "-") == 0;
    const char *name = standard_input ? "standard input" : path;
    const int fd = standard_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return file_failed(name, err);
    char *text = NULL;
    size_t n = 0;
    enum status status = check_kind(fd, standard_input, name, &n, err);
    if (!status)
        status = read_all(fd, name, n, &text, &n, err);
    if (!standard_input)
        close(fd);
    if (text)
        status = json_parse(text, n, name, out, err);
    free(text);
    return status;
}

/* Suggestions. */

/* How many insertions, deletions, changes and swaps of neighbours turn a into b, letter case aside; a large number for
 * long words. */
static size_t edit_distance(const char *a, const char *b) {
    enum { LONGEST = 40 };
    const size_t n = strlen(a), m = strlen(b);
    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    size_t rows[3][LONGEST + 1], *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= m; j++)
        last[j] = before[j] = j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            const int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            size_t best = last[j - 1] + (x != y);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) && y == tolower((unsigned char)a[i - 2]) &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
        size_t *free_row = before;
        before = last;
        last = row;
        row = free_row;
    }
    return last[m];
}

static const char *nearest(const char *word, const char *const known[]) {
    const char *best = NULL;
    size_t least = strlen(word) / 3 + 2; /* one slip in a short word, a third of a long one */
    for (size_t i = 0; known[i]; i++) {
        const size_t distance = edit_distance(word, known[i]);
        if (distance < least && distance < strlen(known[i])) {
            least = distance;
            best = known[i];
        }
    }
    return best;
}

/* "; did you mean "x"? Known: a, b, c" */
static void add_suggestion(struct words *w, const char *word, const char *const known[]) {
    const char *near = nearest(word, known);
    if (near)
        words_add(w, "; did you mean \"%s\"?", near);
    words_add(w, "%s Known:", near ? "" : ";");
    for (size_t i = 0; known[i]; i++)
        words_add(w, "%s %s", i ? "," : "", known[i]);
}

/* Objects and members. */

enum status json_expect_object(const struct json_at *at, const char *const known[], struct error *err) {
    if (!cJSON_IsObject(at->node))
        return json_fail(at, err, "must be an object, not %s", kind(at->node));
    for (struct json_at m = json_first(at); m.node; m = json_next(&m)) {
        size_t i = 0;
        while (known[i] && !same_name(known[i], m.key))
            i++;
        if (known[i])
            continue;
        struct words w = {{0}, 0};
        add_suggestion(&w, m.key, known);
        return json_fail(&m, err, "unknown member \"%.60s\"%s", m.key, w.text);
    }
    return ST_OK;
}

bool json_has(const struct json_at *at, const char *key, struct json_at *child) {
    if (!cJSON_IsObject(at->node))
        return false;
    for (const cJSON *m = at->node->child; m; m = m->next) {
        if (same_name(m->string, key)) {
            *child = (struct json_at){m, at, m->string, 0};
            return true;
        }
    }
    return false;
}

const char *json_text_of(const struct json_at *at, const char *key) {
    struct json_at member;
    return json_has(at, key, &member) && cJSON_IsString(member.node) ? member.node->valuestring : "";
}

enum status json_member(const struct json_at *at, const char *key, struct json_at *child, struct error *err) {
    if (json_has(at, key, child))
        return ST_OK;
    if (!cJSON_IsObject(at->node))
        return json_fail(at, err, "must be an object with a member \"%s\", not %s", key, kind(at->node));
    return json_fail(at, err, "the member \"%s\" is missing; add it", key);
}

/* True, and the number behind the last '/', when `text` is `schema` with another version. */
static bool other_version(const char *text, const char *schema, unsigned long *version) {
    const char *slash = strrchr(schema, '/');
    const size_t family = slash ? (size_t)(slash - schema) + 1 : 0;
    char *end;
    if (family == 0 || strncmp(text, schema, family) != 0 || !isdigit((unsigned char)text[family]))
        return false;
    *version = strtoul(text + family, &end, 10);
    return *end == '\0';
}

enum status json_expect_schema(const struct json_at *at, const char *schema, struct error *err) {
    struct json_at child;
    const char *text;
    unsigned long found;
    if (!cJSON_IsObject(at->node))
        return json_fail(at, err, "must be an object of schema \"%s\", not %s", schema, kind(at->node));
    if (!json_has(at, "schema", &child))
        return json_fail(at, err, "the member \"schema\" is missing; add \"schema\": \"%s\"", schema);
    enum status status = json_string_at(&child, &text, err);
    if (status || strcmp(text, schema) == 0)
        return status;
    if (!other_version(text, schema, &found))
        return json_fail(&child, err, "is \"%.80s\", but \"%s\" is needed here", text, schema);
    const char *slash = strrchr(schema, '/');
    if (found > strtoul(slash + 1, NULL, 10))
        return json_fail(&child, err, "\"%.80s\" is newer than this program reads (\"%s\"); use a newer syncopate",
                         text, schema);
    return json_fail(&child, err, "\"%.80s\" is a version that is no longer read; convert it to \"%s\"", text, schema);
}

enum status json_array(const struct json_at *at, const char *key, size_t max, struct json_at *child, size_t *n,
                       struct error *err) {
    struct json_at found;
    enum status status = json_member(at, key, &found, err);
    if (status)
        return status;
    if (!cJSON_IsArray(found.node))
        return json_fail(&found, err, "must be an array, not %s", kind(found.node));
    size_t count = 0;
    for (const cJSON *e = found.node->child; e; e = e->next)
        count++;
    if (count > max)
        return json_fail(&found, err, "has %zu elements; at most %zu are allowed", count, max);
    *child = found;
    *n = count;
    return ST_OK;
}

/* Values. */

static enum status refuse_character(const struct json_at *at, const char *text, size_t n, struct error *err) {
    char shown[TEXT_SHOWN];
    if ((unsigned char)*text < 0x20 || *text == 0x7f)
        return json_fail(at, err, "has a control character (code %d); remove it", *text);
    text_show(text, n, shown);
    return json_fail(at, err, "has a character that terminals obey (%s); remove it", shown);
}

enum status json_string_at(const struct json_at *at, const char **out, struct error *err) {
    if (!cJSON_IsString(at->node))
        return json_fail(at, err, "must be a string, not %s", kind(at->node));
    const char *text = at->node->valuestring;
    if (*text == '\0')
        return json_fail(at, err, "must not be empty");
    if (strnlen(text, MAX_STRING + 1) > MAX_STRING)
        return json_fail(at, err, "is a string of %zu bytes; at most %d are allowed", strlen(text), MAX_STRING);
    const size_t n = strlen(text), clean = text_clean_length(text, n);
    if (clean < n)
        return refuse_character(at, text + clean, n - clean, err);
    *out = text;
    return ST_OK;
}

static enum status number_fail(const struct json_at *at, double min, double max, struct error *err) {
    char low[32], high[32], found[32];
    json_format_number(min, low);
    json_format_number(max, high);
    json_format_number(at->node->valuedouble, found);
    if (max >= DBL_MAX && min > 0 && min <= DBL_MIN)
        return json_fail(at, err, "is %s; it must be above 0", found);
    if (max >= DBL_MAX)
        return json_fail(at, err, "is %s; it must be at least %s", found, low);
    if (min <= -DBL_MAX)
        return json_fail(at, err, "is %s; it must be at most %s", found, high);
    if (min > 0 && min <= DBL_MIN)
        return json_fail(at, err, "is %s; it must be above 0 and at most %s", found, high);
    return json_fail(at, err, "is %s; it must be from %s to %s", found, low, high);
}

enum status json_number_at(const struct json_at *at, double min, double max, double *out, struct error *err) {
    if (!cJSON_IsNumber(at->node))
        return json_fail(at, err, "must be a number, not %s", kind(at->node));
    const double x = at->node->valuedouble;
    if (!isfinite(x))
        return json_fail(at, err, "must be a finite number");
    if (!(x >= min && x <= max))
        return number_fail(at, min, max, err);
    *out = x;
    return ST_OK;
}

enum status json_integer_at(const struct json_at *at, uint64_t min, uint64_t max, uint64_t *out, struct error *err) {
    if (!cJSON_IsNumber(at->node))
        return json_fail(at, err, "must be a whole number, not %s", kind(at->node));
    const double x = at->node->valuedouble;
    char found[32];
    if (isfinite(x) && x == floor(x) && fabs(x) <= (double)max_exact && x >= 0 && (uint64_t)x >= min &&
        (uint64_t)x <= max) {
        *out = (uint64_t)x;
        return ST_OK;
    }
    json_format_number(x, found);
    if (!isfinite(x) || x != floor(x))
        return json_fail(at, err, "is %s; it must be a whole number", found);
    if (fabs(x) > (double)max_exact)
        return json_fail(at, err, "is %s; whole numbers are exact only up to %" PRIu64, found, max_exact);
    if (max >= max_exact)
        return json_fail(at, err, "is %s; it must be at least %" PRIu64, found, min);
    return json_fail(at, err, "is %s; it must be from %" PRIu64 " to %" PRIu64, found, min, max);
}

enum status json_bool_at(const struct json_at *at, bool *out, struct error *err) {
    if (!cJSON_IsBool(at->node))
        return json_fail(at, err, "must be true or false, not %s", kind(at->node));
    *out = cJSON_IsTrue(at->node);
    return ST_OK;
}

/* Finds a member by need; child->node stays NULL when an optional one is absent. */
static enum status find(const struct json_at *at, const char *key, enum json_need need, struct json_at *child,
                        struct error *err) {
    child->node = NULL;
    if (need == JSON_OPTIONAL && cJSON_IsObject(at->node) && !json_has(at, key, child))
        return ST_OK;
    return child->node ? ST_OK : json_member(at, key, child, err);
}

enum status json_get_string(const struct json_at *at, const char *key, enum json_need need, const char **out,
                            struct error *err) {
    struct json_at child;
    enum status status = find(at, key, need, &child, err);
    return status || !child.node ? status : json_string_at(&child, out, err);
}

enum status json_get_number(const struct json_at *at, const char *key, enum json_need need, double min, double max,
                            double *out, struct error *err) {
    struct json_at child;
    enum status status = find(at, key, need, &child, err);
    return status || !child.node ? status : json_number_at(&child, min, max, out, err);
}

enum status json_get_integer(const struct json_at *at, const char *key, enum json_need need, uint64_t min, uint64_t max,
                             uint64_t *out, struct error *err) {
    struct json_at child;
    enum status status = find(at, key, need, &child, err);
    return status || !child.node ? status : json_integer_at(&child, min, max, out, err);
}

enum status json_get_bool(const struct json_at *at, const char *key, enum json_need need, bool *out,
                          struct error *err) {
    struct json_at child;
    enum status status = find(at, key, need, &child, err);
    return status || !child.node ? status : json_bool_at(&child, out, err);
}

enum status json_get_word(const struct json_at *at, const char *key, enum json_need need, const char *const words[],
                          size_t *out, struct error *err) {
    struct json_at child;
    const char *text;
    enum status status = find(at, key, need, &child, err);
    if (status || !child.node || (status = json_string_at(&child, &text, err)))
        return status;
    for (size_t i = 0; words[i]; i++) {
        if (strcmp(text, words[i]) == 0) {
            *out = i;
            return ST_OK;
        }
    }
    struct words w = {{0}, 0};
    add_suggestion(&w, text, words);
    return json_fail(&child, err, "\"%.60s\" is not one of the known words%s", text, w.text);
}
