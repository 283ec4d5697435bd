/* See reported_times.h. One pass over the text; memory grows with the number of times. */
#include "cli/reported_times.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "cli/job_options.h"
#include "trial-runner/job_times.h"

enum { MOST_TIMES = 1000000 };

struct times {
    size_t n, capacity;
    double *us;
};

static enum status add_time(struct times *t, double us, struct error *err) {
    if (t->n == MOST_TIMES)
        return error_set(err, ST_TOO_LARGE, "more than %d iterations", MOST_TIMES);
    if (!GROW(&t->us, &t->capacity, t->n + 1))
        return error_no_memory(err);
    t->us[t->n++] = us;
    return ST_OK;
}

static enum status add_value(struct times *t, struct job_times *reader, const char *text, struct error *err) {
    double us;
    return job_times_value(reader, text, &us) ? add_time(t, us, err) : error_set(err, ST_INVALID, "%s", reader->odd);
}

static enum status read_list(struct times *t, struct job_times *reader, const char *list, struct error *err) {
    for (const char *at = list;; at++) {
        char word[64];
        const size_t n = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), at);
        const enum status st = add_value(t, reader, word, err);
        at += n;
        if (st || !*at)
            return st;
    }
}

static bool is_json(const char *line, size_t n) {
    cJSON *json = cJSON_ParseWithLength(line, n);
    cJSON_Delete(json);
    return json != NULL;
}

static enum status add_line(struct times *t, struct job_times *reader, const char *line, size_t n, struct error *err) {
    double us;
    if (!reader->pattern && isalpha((unsigned char)*line))
        return error_set(err, ST_INVALID, "\"%.80s\" is no time; give --pattern for lines with more in them", line);
    if (!reader->pattern && *line != '{')
        return add_value(t, reader, line, err);
    if (reader->pattern ? job_times_match(reader, line, n, &us) : job_times_json(reader, line, n, &us))
        return add_time(t, us, err);
    if (!reader->pattern && !is_json(line, n))
        return error_set(err, ST_INVALID, "\"%.80s\" is no JSON: was the file cut off?", line);
    return *reader->odd ? error_set(err, ST_INVALID, "%s", reader->odd) : ST_OK;
}

static enum status read_lines(struct times *t, struct job_times *reader, FILE *file, const char *path,
                              struct error *err) {
    char *line = NULL;
    size_t room = 0, at = 0;
    enum status st = ST_OK;
    errno = 0;
    for (ssize_t n; !st && (n = getline(&line, &room, file)) >= 0;) {
        at++;
        while (n && isspace((unsigned char)line[n - 1]))
            line[--n] = 0;
        const size_t blanks = strspn(line, " \t");
        st = n ? add_line(t, reader, line + blanks, (size_t)n - blanks, err) : ST_OK;
        if (st)
            error_prefix(err, st, "%s:%zu", path, at);
    }
    if (!st && ferror(file))
        st = error_at(err, ST_ENVIRONMENT, path, "%s", strerror(errno));
    free(line);
    return st;
}

static enum status drop_warmup(struct times *t, const struct reported_times_options *words, struct error *err) {
    if (!t->n && words->pattern)
        return error_at(err, ST_INVALID, words->file, "no line has the pattern \"%.120s\"", words->pattern);
    if (t->n <= words->warmup)
        return error_at(err, ST_INVALID, words->file, "%zu iterations, of which the first %lu are for warming up", t->n,
                        (unsigned long)words->warmup);
    t->n -= words->warmup;
    memmove(t->us, t->us + words->warmup, t->n * sizeof *t->us);
    return ST_OK;
}

static enum status read_file(struct times *t, struct job_times *reader, const struct reported_times_options *words,
                             struct error *err) {
    const bool input = !strcmp(words->file, "-");
    FILE *file = input ? stdin : fopen(words->file, "re");
    if (!file)
        return error_at(err, ST_NOT_FOUND, words->file, "%s", strerror(errno));
    enum status st = read_lines(t, reader, file, words->file, err);
    if (!input)
        fclose(file);
    return st ? st : drop_warmup(t, words, err);
}

enum status reported_times_read(const struct reported_times_options *words, size_t *n, double **times_us,
                                struct error *err) {
    struct times t = {0};
    struct job_times reader;
    enum job_unit unit = JOB_UNIT_SUFFIX;
    enum status st = job_unit_read(words->unit, words->pattern, &unit, err);
    if (!st)
        st = job_times_init(&reader, words->pattern, unit, words->samples, err);
    if (st)
        return st;
    job_times_begin(&reader);
    st = words->list ? read_list(&t, &reader, words->list, err) : read_file(&t, &reader, words, err);
    job_times_release(&reader);
    if (st) {
        free(t.us);
        return st;
    }
    *n = t.n;
    *times_us = t.us;
    return ST_OK;
}
