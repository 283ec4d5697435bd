/* See job_options.h. */
#include "cli/job_options.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "trial-runner/transcript.h"

/* The members that are texts, in a session's options. */
static const struct {
    const char *key;
    size_t offset;
} texts[] = {
    {"command", offsetof(struct job_options, command)},     {"pattern", offsetof(struct job_options, pattern)},
    {"unit", offsetof(struct job_options, unit)},           {"export_env", offsetof(struct job_options, export_env)},
    {"export_to", offsetof(struct job_options, export_to)}, {"accept", offsetof(struct job_options, accept)},
    {"label", offsetof(struct job_options, label)},         {"logs", offsetof(struct job_options, logs)}};
enum { N_TEXTS = sizeof texts / sizeof *texts };

static const char **text_at(struct job_options *words, size_t i) {
    return (const char **)((char *)words + texts[i].offset);
}

static bool has_variables(const char *form) {
    static const char *const with[] = {"horovod", "byteps", "bytescheduler", "nccl"};
    for (size_t i = 0; i < sizeof with / sizeof *with; i++)
        if (!strcmp(form, with[i]))
            return true;
    return false;
}

static enum status choose_forms(struct job_setup *setup, const struct job_options *words, struct error *err) {
    struct export_limits environment = {0};
    const char *limits = words->export_to ? words->export_to : words->export_env;
    if (words->accept && !limits)
        return error_set(err, ST_USAGE, "--accept is about --export-to: name the form");
    enum status st = words->export_env ? export_limits_parse(words->export_env, NULL, &environment, err) : ST_OK;
    if (!st && limits)
        st = export_limits_parse(limits, words->accept, &setup->limits, err);
    setup->job.limits = setup->limits;
    for (size_t i = 0; i < environment.n && !st; i++) {
        if (!has_variables(environment.forms[i]->name))
            st = error_set(err, ST_USAGE,
                           "--export-env: the form %s has no variables; its files lie in the trial's folder",
                           environment.forms[i]->name);
        setup->job.forms[setup->job.n_forms++] = environment.forms[i];
    }
    return st;
}

enum status job_unit_read(const char *unit, const char *pattern, enum job_unit *out, struct error *err) {
    if (unit && !pattern)
        return error_set(err, ST_USAGE, "--unit is of the number that --pattern finds");
    if (unit && !job_unit_parse(unit, out))
        return error_set(err, ST_USAGE, "--unit: \"%s\" is none of s, ms, us, samples/s", unit);
    return ST_OK;
}

enum status job_setup_init(struct job_setup *out, const struct job_options *words, const struct inputs *inputs,
                           struct error *err) {
    struct job_setup setup = {
        .job = {.command = words->command, .label = words->label, .publish = words->publish, .logs = words->logs}};
    enum job_unit unit = JOB_UNIT_SUFFIX;
    const double samples = job_samples(&inputs->model, &inputs->cluster);
    enum status st = job_unit_read(words->unit, words->pattern, &unit, err);
    if (!st)
        st = choose_forms(&setup, words, err);
    if (!st)
        st = job_times_init(&setup.job.times, words->pattern, unit, samples, err);
    if (!st)
        *out = setup;
    return st;
}

void job_setup_release(struct job_setup *setup) {
    job_times_release(&setup->job.times);
}

/* Whether anything is asked for that only makes sense with a command; the option's name, or NULL. */
static const char *job_options_without_command(const struct job_options *words) {
    if (words->command)
        return NULL;
    return words->pattern             ? "pattern"
           : words->unit              ? "unit"
           : words->export_env        ? "export-env"
           : words->label             ? "label"
           : words->publish           ? "publish-command"
           : words->time_limit_us > 0 ? "time-limit"
                                      : NULL;
}

static enum status check_label(const char *label, struct error *err) {
    return text_is_name(label, JOB_LABEL)
               ? ST_OK
               : error_set(err, ST_USAGE, "--label: 1 to %d bytes on one line, clean text", JOB_LABEL);
}

enum status job_runner_init(struct job_setup *setup, const struct job_options *words,
                            const struct runner_options *runner, const struct inputs *inputs, const atomic_int *cancel,
                            struct runner *out, struct error *err) {
    const char *lonely = job_options_without_command(words);
    struct runner_options logged = *runner;
    logged.logs = words->logs;
    if (lonely)
        return error_set(err, ST_USAGE, "--%s is about the job of --command", lonely);
    if (words->command && !words->command[strspn(words->command, " \t\n")])
        return error_set(err, ST_USAGE, "--command: it is empty");
    enum status st = words->label ? check_label(words->label, err) : ST_OK;
    st = st ? st : job_setup_init(setup, words, inputs, err);
    if (st)
        return st;
    if (words->command && words->logs)
        st = transcript_check_folder(words->logs, err);
    if (words->command && !st)
        runner_init_job(out, &setup->job, words->time_limit_us / 1e6, &inputs->model, &inputs->cluster, cancel);
    else if (!words->command)
        st = runner_init(out, &logged, &inputs->model, &inputs->cluster, cancel, err);
    if (st)
        job_setup_release(setup);
    return st;
}

char *job_options_text(const struct job_options *words) {
    struct job_options copy = *words;
    cJSON *json = cJSON_CreateObject();
    bool whole = json != NULL;
    for (size_t i = 0; i < N_TEXTS && whole; i++)
        if (*text_at(&copy, i))
            whole = cJSON_AddStringToObject(json, texts[i].key, *text_at(&copy, i));
    if (words->publish && whole)
        whole = cJSON_AddTrueToObject(json, "publish");
    if (words->time_limit_us > 0 && whole)
        whole = cJSON_AddNumberToObject(json, "time_limit_us", words->time_limit_us);
    char *text = whole ? json_line(json) : NULL;
    cJSON_Delete(json);
    return text;
}

enum status job_options_read(const cJSON *json, struct arena *arena, struct job_options *words, struct error *err) {
    struct job_options read = {0};
    const cJSON *limit = cJSON_GetObjectItemCaseSensitive(json, "time_limit_us");
    for (size_t i = 0; i < N_TEXTS; i++) {
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, texts[i].key));
        if (text && !(*text_at(&read, i) = arena_strdup(arena, text)))
            return error_no_memory(err);
    }
    read.publish = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "publish"));
    read.time_limit_us = cJSON_IsNumber(limit) ? limit->valuedouble : 0;
    *words = read;
    return ST_OK;
}
