/* Strict reading of JSON with places in every message, and canonical writing.
 *
 * The tree is cJSON's. A reader walks it with struct json_at: a node, and how it was reached, as a chain of places on
 * the caller's stack. The chain becomes text only in an error message ("model.json: /variables/3/dtype: ..."), so that
 * exact places cost nothing on good input.
 *
 * Unless its comment says more, a function that reads a place returns ST_OK, or ST_INVALID with such a message. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct json_at {
    const cJSON *node;
    const struct json_at *parent; /* NULL at the root */
    const char *key; /* member name under an object, NULL under an array; the document's name at the root */
    size_t index;    /* position under an array */
};

enum { JSON_MAX_BYTES = 64 << 20 }; /* the largest description that is read */

/* Parse n bytes; `name` stands for the document in messages. Refuses: bad UTF-8, trailing text, duplicate member
 * names, nesting deeper than 64. *out is the caller's, to be freed with cJSON_Delete. Fails: ST_INVALID, ST_TOO_LARGE
 * (over JSON_MAX_BYTES), ST_NO_MEMORY. */
enum status json_parse(const char *text, size_t n, const char *name, cJSON **out, struct error *err);

/* An upper bound of the number of values in these n bytes, if they are JSON. A parsed value takes JSON_VALUE_BYTES,
 * beside the bytes of its text. O(n), and needs no memory. */
size_t json_count_values(const char *text, size_t n);
enum { JSON_VALUE_BYTES = 80 };

/* Read a whole file, "-" being standard input. Fails: ST_NOT_FOUND, ST_TOO_LARGE (over JSON_MAX_BYTES),
 * ST_ENVIRONMENT, ST_INVALID, ST_NO_MEMORY. */
enum status json_read_file(const char *path, cJSON **out, struct error *err);

/* Fail at a place: "NAME: /pointer: " and then the formatted words. Returns ST_INVALID. */
enum status json_fail(const struct json_at *at, struct error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#ifdef __clang_analyzer__ /* as in base/error.h */
#define json_fail(at, err, ...) ((void)json_fail(at, err, __VA_ARGS__), ST_INVALID)
#endif

struct json_at json_root(const cJSON *node, const char *name);

/* `at` must be an object whose members are all in `known` (NULL-terminated). */
enum status json_expect_object(const struct json_at *at, const char *const known[], struct error *err);

/* "schema" must be exactly `schema`; a newer version of the same family is refused by name. */
enum status json_expect_schema(const struct json_at *at, const char *schema, struct error *err);

/* True when the member is there; *child is then its place. */
bool json_has(const struct json_at *at, const char *key, struct json_at *child);

/* The member's text; "" when it is not there, or is no text. */
const char *json_text_of(const struct json_at *at, const char *key);

/* The required member `key`. */
enum status json_member(const struct json_at *at, const char *key, struct json_at *child, struct error *err);

/* The required array member `key` and its length, at most `max`. */
enum status json_array(const struct json_at *at, const char *key, size_t max, struct json_at *child, size_t *n,
                       struct error *err);

/* Elements of an array in turn: for (struct json_at e = json_first(&a); e.node; e = json_next(&e)) */
struct json_at json_first(const struct json_at *array);
struct json_at json_next(const struct json_at *element);

/* Values at a place. A string is non-empty, clean (base/text.h), at most 4096 bytes, and borrowed. Numbers must
 * be finite and within [min, max]; integers also exact. */
enum status json_string_at(const struct json_at *at, const char **out, struct error *err);
enum status json_number_at(const struct json_at *at, double min, double max, double *out, struct error *err);
enum status json_integer_at(const struct json_at *at, uint64_t min, uint64_t max, uint64_t *out, struct error *err);
enum status json_bool_at(const struct json_at *at, bool *out, struct error *err);

/* Members: required, or optional with *out left as it was when the member is absent. */
enum json_need { JSON_REQUIRED, JSON_OPTIONAL };
enum status json_get_string(const struct json_at *at, const char *key, enum json_need need, const char **out,
                            struct error *err);
enum status json_get_number(const struct json_at *at, const char *key, enum json_need need, double min, double max,
                            double *out, struct error *err);
enum status json_get_integer(const struct json_at *at, const char *key, enum json_need need, uint64_t min, uint64_t max,
                             uint64_t *out, struct error *err);
enum status json_get_bool(const struct json_at *at, const char *key, enum json_need need, bool *out, struct error *err);

/* The position of the string member `key` in the NULL-terminated `words`; the message lists them. */
enum status json_get_word(const struct json_at *at, const char *key, enum json_need need, const char *const words[],
                          size_t *out, struct error *err);

/* Add a number that may be unknown: NaN adds nothing. False when memory is out. */
bool json_add_known(cJSON *object, const char *key, double x);

/* Add {"id": ..., "name": ...} as the member `key`. False when memory is out. */
bool json_add_named(cJSON *object, const char *key, const char *id, const char *name);

/* Canonical text: members sorted by byte order, no spaces, numbers in the shortest form that reads back the same.
 * malloc'd and NUL-terminated; NULL when memory is out. */
char *json_canonical(const cJSON *node);

/* Indented for people: short objects and arrays stay on one line. Numbers are as in canonical text, members in the
 * order they were added. What is not clean (base/text.h) stands as an escape, here and in json_line, so that both may
 * go to a terminal. */
char *json_pretty(const cJSON *node);

/* One line, members in the order they were added. */
char *json_line(const cJSON *node);

/* Write `text` and a line end, as file_write. Fails: ST_ENVIRONMENT, ST_NO_MEMORY. */
enum status json_write_file(const char *path, const char *text, struct error *err);

/* The shortest decimal that reads back as exactly `x`; `out` has at least 32 bytes. */
void json_format_number(double x, char *out);

#endif
