/* See records.h. A line is one write, so only the last one can be torn. */
#include "tests/evaluate/live/records.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "tests/evaluate/evaluate.h"

static const char *copy(struct records *records, const char *text) {
    char *out = arena_strdup(&records->arena, text);
    struct error err;
    check(out ? ST_OK : error_no_memory(&err), &err);
    return out;
}

static void add(struct records *records, const struct live_record *record) {
    if (records->n == records->capacity) {
        struct live_record *items = allocate_heap(2 * records->n + 256, sizeof *items);
        if (records->n)
            memcpy(items, records->items, records->n * sizeof *items);
        free(records->items);
        records->items = items;
        records->capacity = 2 * records->n + 256;
    }
    struct live_record *item = &records->items[records->n++];
    *item = *record;
    item->domain = copy(records, record->domain);
    item->method = copy(records, record->method);
    item->strategy = copy(records, record->strategy);
}

static void read_line(struct records *records, const char *path, size_t number, const char *line, size_t n) {
    static const char *const known[] = {"domain", "method", "seed", "trial", "strategy", "iterations", "us", NULL};
    struct live_record r = {.us = INFINITY};
    char name[128];
    cJSON *json;
    struct error err;
    snprintf(name, sizeof name, "%.100s:%zu", path, number);
    check(json_parse(line, n, name, &json, &err), &err);
    const struct json_at at = json_root(json, name);
    check(json_expect_object(&at, known, &err), &err);
    check(json_get_string(&at, "domain", JSON_REQUIRED, &r.domain, &err), &err);
    check(json_get_string(&at, "method", JSON_REQUIRED, &r.method, &err), &err);
    check(json_get_integer(&at, "seed", JSON_REQUIRED, 1, 1u << 30, &r.seed, &err), &err);
    check(json_get_integer(&at, "trial", JSON_REQUIRED, 1, 1u << 30, &r.trial, &err), &err);
    check(json_get_string(&at, "strategy", JSON_REQUIRED, &r.strategy, &err), &err);
    check(json_get_integer(&at, "iterations", JSON_REQUIRED, 0, 1u << 30, &r.iterations, &err), &err);
    check(json_get_number(&at, "us", JSON_OPTIONAL, 1e-3, 1e12, &r.us, &err), &err);
    add(records, &r);
    cJSON_Delete(json);
}

/* The whole file, malloc'd; its length in *n. */
static char *read_all(int file, const char *path, size_t *n) {
    struct stat status;
    struct error err;
    size_t had = 0;
    ssize_t got = 1;
    check(fstat(file, &status) ? error_set(&err, ST_ENVIRONMENT, "%s cannot be read", path) : ST_OK, &err);
    char *text = allocate_heap((size_t)status.st_size + 1, 1);
    *n = (size_t)status.st_size;
    while (had < *n && got > 0)
        if ((got = read(file, text + had, *n - had)) > 0)
            had += (size_t)got;
    check(had == *n ? ST_OK : error_set(&err, ST_ENVIRONMENT, "%s cannot be read", path), &err);
    return text;
}

void records_open(struct records *records, const char *path, bool append) {
    const int flags = append ? O_RDWR | O_CREAT | O_APPEND : O_RDONLY;
    const int file = open(path, flags | O_CLOEXEC, 0644);
    struct error err;
    size_t n, number = 1;
    check(file >= 0 ? ST_OK : error_set(&err, ST_NOT_FOUND, "%s: %s", path, strerror(errno)), &err);
    *records = (struct records){.file = file};
    char *text = read_all(file, path, &n), *line = text;
    for (char *end; (end = memchr(line, '\n', n - (size_t)(line - text))); line = end + 1)
        read_line(records, path, number++, line, (size_t)(end - line));
    const off_t whole = (off_t)(line - text);
    check(append && ftruncate(file, whole) ? error_set(&err, ST_ENVIRONMENT, "%s cannot be written", path) : ST_OK,
          &err);
    free(text);
}

void records_release(struct records *records) {
    close(records->file);
    free(records->items);
    arena_release(&records->arena);
}

const struct live_record *records_find(const struct records *records, const char *domain, const char *method,
                                       uint64_t seed, uint64_t trial) {
    for (size_t i = 0; i < records->n; i++) {
        const struct live_record *r = &records->items[i];
        if (r->trial == trial && r->seed == seed && !strcmp(r->domain, domain) && !strcmp(r->method, method))
            return r;
    }
    return NULL;
}

const struct live_record *records_find_repeat(const struct records *records, const char *domain, uint64_t round,
                                              const char *strategy) {
    for (size_t i = 0; i < records->n; i++) {
        const struct live_record *r = &records->items[i];
        if (r->seed == round && !strcmp(r->method, RECORDS_REPEAT) && !strcmp(r->domain, domain) &&
            !strcmp(r->strategy, strategy))
            return r;
    }
    return NULL;
}

static char *line_of(const struct live_record *r) {
    cJSON *json = cJSON_CreateObject();
    const bool ok = json && cJSON_AddStringToObject(json, "domain", r->domain) &&
                    cJSON_AddStringToObject(json, "method", r->method) &&
                    cJSON_AddNumberToObject(json, "seed", (double)r->seed) &&
                    cJSON_AddNumberToObject(json, "trial", (double)r->trial) &&
                    cJSON_AddStringToObject(json, "strategy", r->strategy) &&
                    cJSON_AddNumberToObject(json, "iterations", (double)r->iterations) &&
                    (!isfinite(r->us) || cJSON_AddNumberToObject(json, "us", r->us));
    char *text = ok ? json_line(json) : NULL;
    cJSON_Delete(json);
    return text;
}

void records_append(struct records *records, const struct live_record *record) {
    struct error err;
    char *text = line_of(record);
    if (!text) {
        error_no_memory(&err);
        fail(&err);
    }
    const size_t n = strlen(text);
    text[n] = '\n'; /* in place of its end: it is written by length */
    const bool written = write(records->file, text, n + 1) == (ssize_t)(n + 1);
    check(written ? ST_OK : error_set(&err, ST_ENVIRONMENT, "the record of a trial cannot be written"), &err);
    free(text);
    add(records, record);
}
