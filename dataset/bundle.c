/* The dataset is queried for what trials refer to, by their uids, as many in a query as a filter may name. Several
 * queries give the models, clusters and sessions that their trials share several times; a set of lines leaves the
 * repetitions out. The set is a hash table with linear probing, at most half full. Cost: O(bytes), and O(log trials) a
 * record. */
#include "dataset/bundle.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/stream.h"
#include "dataset/export.h"
#include "dataset/filter.h"

/* ---- lines ---- */

struct seen_line {
    uint64_t hash;
    size_t n;
    const char *text;
};

/* Fowler, Noll and Vo's, 1a. */
static uint64_t hash_of(const char *text, size_t n) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Where the line is, or the free place where it would be. There is always a free one. */
static struct seen_line *place_of(struct seen_line *lines, size_t capacity, const struct seen_line *line) {
    size_t i = (size_t)line->hash & (capacity - 1);
    while (lines[i].text &&
           (lines[i].hash != line->hash || lines[i].n != line->n || memcmp(lines[i].text, line->text, line->n) != 0))
        i = (i + 1) & (capacity - 1);
    return &lines[i];
}

static enum status make_room(struct line_set *set, struct error *err) {
    if (2 * (set->n + 1) <= set->capacity)
        return ST_OK;
    const size_t capacity = set->capacity ? 2 * set->capacity : 256;
    struct seen_line *lines = calloc(capacity, sizeof *lines);
    if (!lines)
        return error_no_memory(err);
    for (size_t i = 0; i < set->capacity; i++)
        if (set->lines[i].text)
            *place_of(lines, capacity, &set->lines[i]) = set->lines[i];
    free(set->lines);
    set->lines = lines;
    set->capacity = capacity;
    return ST_OK;
}

enum status line_set_add(struct line_set *set, const char *text, size_t n, bool *added, struct error *err) {
    struct seen_line line = {hash_of(text, n), n, text};
    enum status status = make_room(set, err);
    if (status)
        return status;
    struct seen_line *place = place_of(set->lines, set->capacity, &line);
    *added = !place->text;
    if (place->text)
        return ST_OK;
    if (!(line.text = arena_copy(&set->arena, text, n)))
        return error_no_memory(err);
    *place = line;
    set->n++;
    return ST_OK;
}

bool line_set_has(const struct line_set *set, const char *text, size_t n) {
    const struct seen_line line = {hash_of(text, n), n, text};
    return set->capacity && place_of(set->lines, set->capacity, &line)->text;
}

void line_set_release(struct line_set *set) {
    free(set->lines);
    arena_release(&set->arena);
    *set = (struct line_set){0};
}

/* ---- what records refer to ---- */

static char *put_quoted(char *to, const char *text) {
    *to++ = '"';
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            *to++ = '\\';
        *to++ = *text;
    }
    *to++ = '"';
    return to;
}

/* Write a filter that names the first of n uids, as many as fit; returns how many. */
static size_t name_records(size_t n, const struct record *records, char filter[FILTER_MAX_BYTES]) {
    char *to = stpcpy(filter, "uid IN (");
    size_t i = 0;
    while (i < n && i < FILTER_MAX_VALUES && to + 2 * strlen(records[i].uid) + 5 < filter + FILTER_MAX_BYTES) {
        if (i)
            *to++ = ',';
        to = put_quoted(to, records[i++].uid);
    }
    strcpy(to, ")");
    return i;
}

static enum status put_new_lines(const char *text, struct line_set *seen, FILE *out, struct error *err) {
    enum status status = ST_OK;
    while (*text && !status) {
        const size_t n = strcspn(text, "\n") + 1;
        bool added;
        status = line_set_add(seen, text, n, &added, err);
        if (!status && added)
            fwrite(text, 1, n, out);
        text += n;
    }
    return status;
}

/* What the trials of one filter refer to. */
static enum status put_some(struct store *store, const char *filter, struct line_set *seen, FILE *out,
                            struct error *err) {
    const struct query query = {.filter = filter};
    char *text;
    size_t size;
    FILE *memory = stream_open(&text, &size);
    enum status status = memory ? export_shared_references(store, &query, memory, err) : ST_OK;
    status = stream_close(memory, status, &text, err);
    if (!status)
        status = put_new_lines(text, seen, out, err);
    free(text);
    return status;
}

enum status bundle_references(struct store *store, size_t n, const struct record *records, struct line_set *seen,
                              FILE *out, struct error *err) {
    char filter[FILTER_MAX_BYTES];
    enum status status = ST_OK;
    for (size_t i = 0, named = 0; i < n && !status; i += named) {
        named = name_records(n - i, records + i, filter);
        status = named
                     ? put_some(store, filter, seen, out, err)
                     : error_set(err, ST_INVALID, "trial %lld has a uid that is too long", (long long)records[i].trial);
    }
    return status;
}
