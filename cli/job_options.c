/* See job_options.h. */
#include "cli/job_options.h"

#include <string.h>

#include "base/text.h"
#include "trial-runner/transcript.h"

static bool has_variables(const char *form) {
    static const char *const with[] = {"horovod", "byteps", "bytescheduler", "nccl"};
    for (size_t i = 0; i < sizeof with / sizeof *with; i++)
        if (!strcmp(form, with[i]))
            return true;
    return false;
}

static bool is_both(const char *a, const char *b, const char *one, const char *other) {
    return (!strcmp(a, one) && !strcmp(b, other)) || (!strcmp(a, other) && !strcmp(b, one));
}

/* Refuse the variables of a framework where --export-to names forms of others. What NCCL takes goes beside all, and
 * ByteScheduler runs on Horovod. */
static enum status check_together(const struct exporter *environment, const char *export_to,
                                  const struct export_limits *limits, struct error *err) {
    bool together = environment->parts == EXPORT_PARTS_beside, others = false;
    for (size_t i = 0; i < limits->n; i++) {
        const struct exporter *form = limits->forms[i];
        others |= form->parts != EXPORT_PARTS_beside;
        together |= form == environment || is_both(form->name, environment->name, "horovod", "bytescheduler");
    }
    if (together || !others)
        return ST_OK;
    return error_set(err, ST_USAGE,
                     "--export-env %s sets variables that a job of --export-to %.100s does not read: drop one of them",
                     environment->name, export_to);
}

static enum status choose_forms(struct job_setup *setup, const struct job_options *options, struct error *err) {
    struct export_limits environment = {0};
    const char *limits = options->export_to ? options->export_to : options->export_env;
    if (options->accept && !limits)
        return error_set(err, ST_USAGE, "--accept is about --export-to: name the form");
    enum status st = options->export_env ? export_limits_parse(options->export_env, NULL, &environment, err) : ST_OK;
    if (!st && limits)
        st = export_limits_parse(limits, options->accept, &setup->limits, err);
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

enum status job_options_check(const struct job_options *options, struct error *err) {
    struct export_limits environment = {0}, limits;
    if (!options->export_env || !options->export_to)
        return ST_OK;
    enum status st = export_limits_parse(options->export_env, NULL, &environment, err);
    if (!st)
        st = export_limits_parse(options->export_to, NULL, &limits, err);
    for (size_t i = 0; i < environment.n && !st; i++)
        st = check_together(environment.forms[i], options->export_to, &limits, err);
    return st;
}

enum status job_unit_read(const char *unit, const char *pattern, enum job_unit *out, struct error *err) {
    if (unit && !pattern)
        return error_set(err, ST_USAGE, "--unit is of the number that --pattern finds");
    if (unit && !job_unit_parse(unit, out))
        return error_set(err, ST_USAGE, "--unit: \"%s\" is none of s, ms, us, samples/s", unit);
    return ST_OK;
}

enum status job_setup_init(struct job_setup *out, const struct job_options *options, const struct inputs *inputs,
                           struct error *err) {
    struct job_setup setup = {
        .job = {
            .command = options->command, .label = options->label, .publish = options->publish, .logs = options->logs}};
    enum job_unit unit = JOB_UNIT_SUFFIX;
    const double samples = job_samples(&inputs->model, &inputs->cluster);
    enum status st = job_unit_read(options->unit, options->pattern, &unit, err);
    if (!st)
        st = choose_forms(&setup, options, err);
    if (!st)
        st = job_times_init(&setup.job.times, options->pattern, unit, samples, err);
    if (!st)
        *out = setup;
    return st;
}

void job_setup_release(struct job_setup *setup) {
    job_times_release(&setup->job.times);
}

/* The name of an option that was given and needs --command, which was not; NULL: none. */
static const char *without_command(const struct job_options *options) {
    if (options->command)
        return NULL;
    return options->pattern             ? "pattern"
           : options->unit              ? "unit"
           : options->export_env        ? "export-env"
           : options->label             ? "label"
           : options->publish           ? "publish-command"
           : options->time_limit_us > 0 ? "time-limit"
                                        : NULL;
}

static enum status check_label(const char *label, struct error *err) {
    return text_is_name(label, JOB_LABEL)
               ? ST_OK
               : error_set(err, ST_USAGE, "--label: 1 to %d bytes on one line, clean text", JOB_LABEL);
}

enum status job_runner_init(struct job_setup *setup, const struct job_options *options,
                            const struct runner_options *runner, const struct inputs *inputs, const atomic_int *cancel,
                            struct runner *out, struct error *err) {
    const char *lonely = without_command(options);
    struct runner_options logged = *runner;
    logged.logs = options->logs;
    if (lonely)
        return error_set(err, ST_USAGE, "--%s is about the job of --command", lonely);
    if (options->command && !options->command[strspn(options->command, " \t\n")])
        return error_set(err, ST_USAGE, "--command: it is empty");
    enum status st = options->label ? check_label(options->label, err) : ST_OK;
    if (!st)
        st = job_setup_init(setup, options, inputs, err);
    if (st)
        return st;
    if (options->command && options->logs)
        st = transcript_check_folder(options->logs, err);
    if (options->command && !st)
        runner_init_job(out, &setup->job, options->time_limit_us / 1e6, &inputs->model, &inputs->cluster, cancel);
    else if (!options->command)
        st = runner_init(out, &logged, &inputs->model, &inputs->cluster, cancel, err);
    if (st)
        job_setup_release(setup);
    return st;
}
