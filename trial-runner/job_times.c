/* A line without a time is ignored, since jobs print much. A line that matches the pattern, or that is an object with
 * our members, and still has no time is remembered: the message quotes it when no line had a time. */
#include "trial-runner/job_times.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MATCH_MAX = 16384 /* bytes of a line in which the pattern is looked for */ };

static const struct {
    const char *word;
    double us;
} units[] = {
#define X(constant, word, us) [constant] = {word, us},
    JOB_UNIT_TABLE(X)
#undef X
};

bool job_unit_parse(const char *word, enum job_unit *out) {
    for (size_t i = 1; i < sizeof units / sizeof *units; i++)
        if (!strcmp(word, units[i].word)) {
            *out = (enum job_unit)i;
            return true;
        }
    return false;
}

enum status job_times_init(struct job_times *out, const char *pattern, enum job_unit unit, double samples,
                           struct error *err) {
    struct job_times times = {.pattern = pattern, .unit = unit, .samples = samples, .last = -1};
    char why[160];
    if (unit == JOB_UNIT_RATE && samples <= 0)
        return error_set(err, ST_USAGE,
                         "a rate becomes a time by the samples of an iteration, and the model has no "
                         "batch_per_device");
    const int code = pattern ? regcomp(&times.regex, pattern, REG_EXTENDED | REG_NEWLINE) : 0;
    if (code) {
        regerror(code, &times.regex, why, sizeof why);
        return error_set(err, ST_USAGE, "the pattern \"%.160s\": %s", pattern, why);
    }
    if (pattern && times.regex.re_nsub != 1) {
        const size_t groups = times.regex.re_nsub;
        regfree(&times.regex);
        return error_set(
            err, ST_USAGE,
            "the pattern \"%.160s\" has %zu groups: put ( and ) around the number, and around nothing else", pattern,
            groups);
    }
    *out = times;
    return ST_OK;
}

void job_times_release(struct job_times *times) {
    if (times->pattern)
        regfree(&times->regex);
    *times = (struct job_times){0};
}

void job_times_begin(struct job_times *times) {
    times->last = -1;
    *times->odd = 0;
}

static bool is_odd(struct job_times *times, const char *why, const char *line) {
    snprintf(times->odd, sizeof times->odd, "%.100s: \"%.100s\"", why, line);
    return false;
}

/* The factor of the word that begins at `text`, after blanks, and where it ends; 0 when it is no unit. */
static double unit_at(const char *text, const char **end) {
    static const struct {
        const char *word;
        double us;
    } words[] = {{"s", 1e6},         {"sec", 1e6},       {"secs", 1e6},  {"second", 1e6},      {"seconds", 1e6},
                 {"ms", 1e3},        {"msec", 1e3},      {"msecs", 1e3}, {"millisecond", 1e3}, {"milliseconds", 1e3},
                 {"us", 1},          {"usec", 1},        {"usecs", 1},   {"\u00b5s", 1},       {"\u03bcs", 1},
                 {"microsecond", 1}, {"microseconds", 1}};
    text += strspn(text, " \t");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i].word);
        if (!strncmp(text, words[i].word, n) && !isalnum((unsigned char)text[n]) && text[n] != '/') {
            *end = text + n;
            return words[i].us;
        }
    }
    *end = text;
    return 0;
}

static bool is_time(double us) {
    return isfinite(us) && us > 0 && us < 1e15;
}

bool job_times_match(struct job_times *times, const char *line, size_t n, double *time_us) {
    regmatch_t at[2] = {{0, (regoff_t)(n < MATCH_MAX ? n : MATCH_MAX)}};
    if (regexec(&times->regex, line, 2, at, REG_STARTEND) || at[1].rm_so < 0)
        return false;
    char *end;
    const double value = strtod(line + at[1].rm_so, &end);
    if (end == line + at[1].rm_so)
        return is_odd(times, "the pattern's group is no number", line);
    const char *rest;
    const double factor = times->unit == JOB_UNIT_SUFFIX ? unit_at(end, &rest) : units[times->unit].us;
    if (times->unit == JOB_UNIT_SUFFIX && factor <= 0)
        return is_odd(times, "no unit stands behind the number, and --unit was not given", line);
    const double us = times->unit == JOB_UNIT_RATE ? times->samples / value * 1e6 : value * factor;
    if (!is_time(us))
        return is_odd(times, "this is no time of an iteration", line);
    *time_us = us;
    return true;
}

static const char no_samples[] = "a rate becomes a time by the model's batch_per_device, and it has none";

bool job_times_value(struct job_times *times, const char *text, double *time_us) {
    static const char rate[] = "samples/s";
    char *end;
    const char *rest;
    const double value = strtod(text, &end);
    if (end == text)
        return is_odd(times, "this is no number with its unit", text);
    const double factor = unit_at(end + strspn(end, " \t"), &rest);
    const bool is_rate = factor <= 0 && !strncmp(rest, rate, sizeof rate - 1);
    rest += is_rate ? sizeof rate - 1 : 0;
    if ((factor <= 0 && !is_rate) || rest[strspn(rest, " \t")])
        return is_odd(times, "say the unit, as in 12.3ms or 2560samples/s", text);
    if (is_rate && times->samples <= 0)
        return is_odd(times, no_samples, text);
    const double us = is_rate ? times->samples / value * 1e6 : value * factor;
    if (!is_time(us))
        return is_odd(times, "this is no time of an iteration", text);
    *time_us = us;
    return true;
}

static double member(const cJSON *json, const char *key) {
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(json, key);
    return cJSON_IsNumber(node) ? node->valuedouble : NAN;
}

static double json_time(const struct job_times *times, const cJSON *json) {
    const double us = member(json, "time_us"), rate = member(json, "samples_per_s");
    return isnan(us) ? times->samples / rate * 1e6 : us;
}

bool job_times_json(struct job_times *times, const char *line, size_t n, double *time_us) {
    const size_t blanks = strspn(line, " \t");
    if (line[blanks] != '{')
        return false;
    cJSON *json = cJSON_ParseWithLength(line, n);
    const bool timed = cJSON_GetObjectItemCaseSensitive(json, "time_us") != NULL;
    const bool ours = timed || cJSON_GetObjectItemCaseSensitive(json, "samples_per_s");
    const double us = json_time(times, json), iteration = member(json, "iteration");
    cJSON_Delete(json);
    if (!ours)
        return false;
    if (!is_time(us))
        return is_odd(times, timed || times->samples > 0 ? "this is no time of an iteration" : no_samples, line);
    if (iteration <= times->last)
        return false;
    times->last = isnan(iteration) ? times->last : iteration;
    *time_us = us;
    return true;
}
