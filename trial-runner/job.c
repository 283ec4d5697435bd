/* One thread: output comes line by line from process_run, which also calls often enough to look after the file of
 * times. That file is read from where the last look ended, so it costs no more than its bytes. */
#include "trial-runner/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "trial-runner/process.h"
#include "trial-runner/scratch.h"

enum { LOG_MAX = 32 << 20, TIMES_LINE = 4096 };

double job_samples(const struct model *model, const struct cluster *cluster) {
    return model->batch_per_device * cluster->n_devices;
}

enum source { SOURCE_NONE, SOURCE_OUTPUT, SOURCE_FILE };

struct running {
    struct job *job;
    const struct trial_request *request;
    const int *hold; /* of process_options */
    struct trial_result result;
    uint32_t told, slower; /* iterations whose time has come, warm-up included; measured iterations over the bound */
    enum source source;
    bool given_up;
    double enough_us; /* when the time of the last iteration came; 0: not yet */
    FILE *log;
    size_t logged;
    char tail[PROCESS_LAST_WORDS + 1]; /* the end of the output, both streams */
    int file;                          /* of times; -1: not there yet */
    char path[JOB_PATH + 64], line[TIMES_LINE];
    size_t n_line;
    off_t read;
};

/* ---- times ---- */

static bool is_hopeless(const struct running *r) {
    return r->slower >= TRIAL_HOPELESS_AFTER && r->slower == r->result.n;
}

static void take_time(struct running *r, enum source source, double time_us) {
    const struct trial_request *request = r->request;
    struct trial_result *result = &r->result;
    if (r->source && r->source != source)
        return;
    r->source = source;
    r->job->heard = true;
    if (r->told++ < request->warmup || result->n == request->iterations)
        return;
    result->time_us[result->n++] = time_us;
    r->slower += request->stop_if_slower_than_us > 0 && time_us > request->stop_if_slower_than_us;
    if (result->n == request->iterations)
        r->enough_us = clock_now_us();
    if (request->on_iteration)
        request->on_iteration(request->context, result->n - 1, time_us);
}

/* False: the job need not go on. */
static bool goes_on(struct running *r) {
    r->given_up = r->given_up || (r->result.n < r->request->iterations && is_hopeless(r));
    return !r->given_up && (r->enough_us <= 0 || clock_now_us() - r->enough_us < JOB_FINISH_S * 1e6);
}

/* ---- what it writes ---- */

static void keep_line(struct running *r, const char *line, size_t n) {
    if (!r->log || r->logged > LOG_MAX)
        return;
    r->logged += n + 1;
    if (r->logged > LOG_MAX)
        fprintf(r->log, "syncopate: the output is longer than %d MiB; the rest is not kept\n", LOG_MAX >> 20);
    else
        fprintf(r->log, "%.*s\n", (int)n, line);
}

static void keep_tail(struct running *r, const char *line, size_t n) {
    const size_t room = sizeof r->tail - 1, used = strlen(r->tail);
    if (n > room)
        line += n - room;
    n = n > room ? room : n;
    const size_t fits = n < room ? room - n - 1 : 0, kept = used < fits ? used : fits;
    if (!n)
        return;
    memmove(r->tail, r->tail + used - kept, kept);
    if (kept)
        r->tail[kept] = '\n';
    memcpy(r->tail + kept + (kept > 0), line, n);
    r->tail[kept + (kept > 0) + n] = 0;
}

static bool take_line(void *context, enum process_stream stream, const char *line, size_t n) {
    struct running *r = context;
    struct job_times *times = &r->job->times;
    double time_us;
    keep_line(r, line, n);
    keep_tail(r, line, n);
    const bool found = times->pattern             ? job_times_match(times, line, n, &time_us)
                       : stream == PROCESS_STDOUT ? job_times_json(times, line, n, &time_us)
                                                  : false;
    if (found)
        take_time(r, SOURCE_OUTPUT, time_us);
    return goes_on(r);
}

/* ---- the file of times ---- */

static void end_line(struct running *r) {
    double time_us;
    r->line[r->n_line] = 0;
    if (job_times_json(&r->job->times, r->line, r->n_line, &time_us))
        take_time(r, SOURCE_FILE, time_us);
    r->n_line = 0;
}

static void take_bytes(struct running *r, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (bytes[i] == '\n')
            end_line(r);
        else if (r->n_line < sizeof r->line - 1)
            r->line[r->n_line++] = bytes[i];
}

/* Another file may have been moved into its place. */
static void follow_file(struct running *r) {
    struct stat held, named;
    if (stat(r->path, &named) || fstat(r->file, &held) || named.st_ino == held.st_ino)
        return;
    const int file = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return;
    close(r->file);
    r->file = file;
    r->read = 0;
    r->n_line = 0;
}

/* A file that became shorter was written anew. */
static bool look_at_file(void *context) {
    struct running *r = context;
    char bytes[16384];
    struct stat now;
    follow_file(r);
    if (!fstat(r->file, &now) && now.st_size < r->read) {
        r->read = 0;
        r->n_line = 0;
    }
    for (ssize_t n; (n = pread(r->file, bytes, sizeof bytes, r->read)) > 0;) {
        r->read += n;
        take_bytes(r, bytes, (size_t)n);
    }
    return goes_on(r);
}

/* The file is made before the job begins. So it is open here, and can be read to its end even when a short job has
 * ended and its folder is gone before the next look. */
static enum status open_file(struct running *r, struct error *err) {
    r->file = open(r->path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    return r->file >= 0 ? ST_OK : error_at(err, ST_ENVIRONMENT, r->path, "%s", strerror(errno));
}

/* Close the file of times. It is removed if the job wrote nothing to it. */
static void close_file(struct running *r) {
    struct stat held, named;
    if (r->file < 0)
        return;
    if (!fstat(r->file, &held) && !held.st_size && !stat(r->path, &named) && named.st_ino == held.st_ino)
        unlink(r->path);
    close(r->file);
}

/* ---- how it ended ---- */

static void end_with(struct running *r, enum trial_ending ending, const char *reason) {
    r->result.ending = ending;
    snprintf(r->result.reason, sizeof r->result.reason, "%s", reason);
}

static const char *last_line(const struct running *r) {
    const char *end = strrchr(r->tail, '\n');
    return end ? end + 1 : r->tail;
}

/* The job ended well or ran out of time, and no usable time came. */
static void say_what_is_missing(const struct running *r, struct error *err) {
    const struct job_times *times = &r->job->times;
    if (*times->odd)
        error_set(err, ST_INVALID, "the command gave no time of an iteration: %s", times->odd);
    else if (r->told)
        error_set(err, ST_INVALID,
                  "the command gave times of %u iterations, and the first %u are for warming up: it should run %u",
                  r->told, r->request->warmup, r->request->warmup + r->request->iterations);
    else if (times->pattern)
        error_set(err, ST_INVALID,
                  "no line of the command's output has the pattern \"%.120s\"; its last line is \"%.120s\"",
                  times->pattern, last_line(r));
    else
        error_set(err, ST_INVALID,
                  "the command gave no time of an iteration: there are no {\"time_us\": ...} lines in "
                  "$SYNCOPATE_TRIAL_TIMES or on its standard output, and no --pattern; its last line is \"%.120s\"",
                  last_line(r));
}

static enum status judge_exit(struct running *r, struct process_result *process, struct error *err) {
    struct error why = {.status = ST_OK};
    const bool exited = process->ending == PROCESS_EXITED;
    memcpy(process->last_words, r->tail, sizeof r->tail);
    if (exited && (process->exit_code == 126 || process->exit_code == 127) && !r->told)
        return error_set(err, ST_NOT_FOUND, "the command cannot be started: %s", last_line(r));
    enum status status = process_judge(process, "the command", &why);
    if (status == ST_CANCELLED)
        end_with(r, TRIAL_CANCELLED, ERROR_TEXT(&why));
    else if (exited && process->exit_code == JOB_INFEASIBLE)
        end_with(r, TRIAL_INFEASIBLE, *r->tail ? last_line(r) : "the command gave no reason");
    else if (status)
        end_with(r, TRIAL_FAILED, ERROR_TEXT(&why));
    else if (r->result.n < r->request->iterations && r->result.n < JOB_LEAST) {
        say_what_is_missing(r, &why);
        if (!r->job->heard)
            return error_pass(err, &why);
        end_with(r, TRIAL_FAILED, ERROR_TEXT(&why));
    }
    return ST_OK;
}

static enum status judge(struct running *r, struct process_result *process, struct error *err) {
    char reason[128];
    r->result.wall_s = process->wall_s;
    if (r->given_up) {
        snprintf(reason, sizeof reason, "%u iterations, all slower than %.0f us", r->result.n,
                 r->request->stop_if_slower_than_us);
        end_with(r, TRIAL_STOPPED_EARLY, reason);
        return ST_OK;
    }
    return r->enough_us > 0 && process->ending == PROCESS_STOPPED ? ST_OK : judge_exit(r, process, err);
}

/* The length of a word of letters, digits and other characters of names, none of which means something to a shell. */
static size_t plain_length(const char *text) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+/";
    return strspn(text, plain);
}

/* The text after a "NAME=value " or "exec " at `at`; `at` itself where there is none, or where only a shell could read
 * it. */
static const char *skip_word(const char *at) {
    size_t n = plain_length(at);
    const bool assigns = n && at[n] == '=';
    n += assigns ? 1 + plain_length(at + n + 1) : 0;
    const bool passes = assigns || (n == 4 && !memcmp(at, "exec", 4));
    const size_t space = strspn(at + n, " \t\n");
    return passes && space ? at + n + space : at;
}

void job_label(const char *command, char out[JOB_LABEL + 1]) {
    const char *at = command + strspn(command, " \t\n"), *name;
    for (const char *next; (next = skip_word(at)) != at;)
        at = next;
    size_t n = plain_length(at);
    const bool whole = !at[n] || strchr(" \t\n;&|<>", at[n]);
    for (name = at + n; name > at && name[-1] != '/';)
        name--;
    n -= (size_t)(name - at);
    snprintf(out, JOB_LABEL + 1, "%.*s", (int)n, name);
    if (!whole || !n || n > JOB_LABEL)
        strcpy(out, "command");
}

static enum status describe(struct running *r, struct error *err) {
    const struct job *job = r->job;
    struct utsname host;
    char label[JOB_LABEL + 1];
    cJSON *json = cJSON_CreateObject();
    job_label(job->command, label);
    bool whole = json && cJSON_AddStringToObject(json, "runner", "command") &&
                 cJSON_AddStringToObject(json, "label", job->label ? job->label : label) &&
                 (!job->publish || cJSON_AddStringToObject(json, "command", job->command));
    if (whole && !uname(&host))
        whole = cJSON_AddStringToObject(json, "host", host.nodename) &&
                cJSON_AddStringToObject(json, "kernel", host.release);
    cJSON *forms = whole && r->job->n_forms ? cJSON_AddArrayToObject(json, "forms") : NULL;
    for (size_t i = 0; i < r->job->n_forms && whole; i++)
        whole = cJSON_AddItemToArray(forms, cJSON_CreateString(r->job->forms[i]->name));
    r->result.environment = whole ? json_line(json) : NULL;
    cJSON_Delete(json);
    return r->result.environment ? ST_OK : error_no_memory(err);
}

/* ---- the run ---- */

static enum status start(struct running *r, const char *folder, const char *const *environment,
                         struct process_result *out, struct error *err) {
    const char *const argv[] = {"/bin/sh", "-c", r->job->command, NULL};
    const struct process_options options = {.argv = argv,
                                            .environment = environment,
                                            .hold = r->hold,
                                            .timeout_s = r->request->time_limit_s,
                                            .grace_s = JOB_GRACE_S,
                                            .cancel = r->request->cancel,
                                            .on_line = take_line,
                                            .on_tick = look_at_file,
                                            .context = r};
    snprintf(r->path, sizeof r->path, "%s/times.jsonl", folder);
    char log[JOB_PATH + 64];
    snprintf(log, sizeof log, "%s/output.log", folder);
    r->log = fopen(log, "we");
    if (!r->log)
        return error_at(err, ST_ENVIRONMENT, log, "cannot be written");
    enum status status = open_file(r, err);
    if (!status)
        status = process_run(&options, out, err);
    if (!status && r->n_line)
        end_line(r);
    fclose(r->log);
    close_file(r);
    return status;
}

static enum status run_in(struct running *r, const char *folder, uint64_t number, struct error *err) {
    const struct trial_request *q = r->request;
    const struct job_facts facts = {folder, number, q->iterations, q->warmup};
    struct arena arena = {0};
    struct process_result process;
    const char *const *environment;
    enum status status =
        r->job->limits.n ? export_limits_check(&r->job->limits, q->strategy, q->model, q->cluster, err) : ST_OK;
    if (!status)
        status = job_folder_write(folder, &r->job->limits, q->strategy, q->model, q->cluster, err);
    if (!status)
        status = job_environment(&facts, r->job->n_forms, r->job->forms, &r->job->limits, q->strategy, q->model,
                                 q->cluster, &arena, &environment, err);
    if (!status)
        status = start(r, folder, environment, &process, err);
    if (!status)
        status = judge(r, &process, err);
    if (!status)
        status = describe(r, err);
    arena_release(&arena);
    return status ? status : trial_find_median(&r->result, err);
}

static enum status run_in_logs(struct running *r, uint64_t number, struct error *err) {
    char folder[JOB_PATH];
    enum status status = job_folder_make(r->job->logs, number, folder, err);
    return status ? status : run_in(r, folder, number, err);
}

/* The folder lives as long as the job, also when this process dies before it. */
static enum status run_in_scratch(struct running *r, uint64_t number, struct error *err) {
    struct scratch scratch;
    enum status status = scratch_init(&scratch, NULL, err);
    if (status)
        return status;
    r->hold = &scratch.lifeline;
    status = run_in(r, scratch.folder, number, err);
    scratch_release(&scratch);
    return status;
}

enum status job_run(struct job *job, const struct trial_request *request, uint64_t number, struct trial_result *out,
                    struct error *err) {
    struct running *r = calloc(1, sizeof *r);
    struct error why = {.status = ST_OK};
    if (!r)
        return error_no_memory(err);
    *r = (struct running){.job = job, .request = request, .file = -1};
    job_times_begin(&job->times);
    r->result.time_us = calloc(request->iterations ? request->iterations : 1, sizeof(double));
    enum status status = !r->result.time_us ? error_no_memory(&why)
                         : job->logs        ? run_in_logs(r, number, &why)
                                            : run_in_scratch(r, number, &why);
    if (status == ST_INFEASIBLE) { /* no plan, or beyond the limits: nothing ran */
        end_with(r, TRIAL_INFEASIBLE, ERROR_TEXT(&why));
        status = ST_OK;
    }
    if (status) {
        trial_result_release(&r->result);
        error_pass(err, &why);
    } else {
        *out = r->result;
    }
    free(r);
    return status;
}
