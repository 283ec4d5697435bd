/* See foreign.h. */
#include "cli/foreign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* An option that runs, reads or writes something: what the session says, and what was typed. */
struct claim {
    const char *option, *said, *typed;
};

enum { N_CLAIMS = 9 };

/* mpi and nccl are our own programs. */
static const char *program(const char *worker) {
    return worker && strcmp(worker, "mpi") != 0 && strcmp(worker, "nccl") != 0 ? worker : NULL;
}

/* These start programs on hosts that the session chose: those of its --hosts, or the names of its cluster's nodes. */
static const char *launcher(const char *runner) {
    return runner && (!strcmp(runner, "mpirun") || !strcmp(runner, "slurm")) ? runner : NULL;
}

static void list_claims(const struct job_options *said_job, const struct runner_options *said,
                        const struct job_options *job, const struct runner_options *launch,
                        struct claim out[N_CLAIMS]) {
    const struct claim claims[N_CLAIMS] = {{"command", said_job->command, job->command},
                                           {"logs", said_job->logs, job->logs},
                                           {"worker", program(said->worker), launch->worker},
                                           {"runner", launcher(said->runner), launch->runner},
                                           {"hosts", said->hosts, launch->hosts},
                                           {"partition", said->partition, launch->partition},
                                           {"account", said->account, launch->account},
                                           {"launch-options", said->launch_options, launch->launch_options},
                                           {"pass", said->pass, launch->pass}};
    memcpy(out, claims, sizeof claims);
}

/* "--command and --logs" */
static void name_missing(const struct claim claims[N_CLAIMS], char *out, size_t room) {
    size_t n = 0, seen = 0, used = 0;
    for (size_t i = 0; i < N_CLAIMS; i++)
        n += claims[i].said && !claims[i].typed;
    *out = '\0';
    for (size_t i = 0; i < N_CLAIMS; i++)
        if (claims[i].said && !claims[i].typed) {
            const char *between = !seen ? "" : seen + 1 == n ? " and " : ", ";
            used += text_format(out + used, room - used, "%s--%s", between, claims[i].option);
            seen++;
        }
}

static enum status refuse(const struct stored_session *session, const struct claim claims[N_CLAIMS],
                          struct error *err) {
    char missing[256];
    text_print(stderr, "session %s was not opened in this dataset (%s); it would use\n", session->id, session->origin);
    for (size_t i = 0; i < N_CLAIMS; i++)
        if (claims[i].said)
            text_print(stderr, "  --%s %s\n", claims[i].option, claims[i].said);
    name_missing(claims, missing, sizeof missing);
    return error_set(err, ST_USAGE, "session %s came from elsewhere: give %s again, as you mean it", session->id,
                     missing);
}

static const char *or_else(const char *typed, const char *said) {
    return typed ? typed : said;
}

/* Take over the options that run nothing. */
static void take_harmless(const struct job_options *said_job, const struct runner_options *said,
                          struct job_options *job, struct runner_options *launch) {
    job->pattern = or_else(job->pattern, said_job->pattern);
    job->unit = or_else(job->unit, said_job->unit);
    job->export_env = or_else(job->export_env, said_job->export_env);
    job->export_to = or_else(job->export_to, said_job->export_to);
    job->accept = or_else(job->accept, said_job->accept);
    job->time_limit_us = job->time_limit_us > 0 ? job->time_limit_us : said_job->time_limit_us;
    launch->worker = or_else(launch->worker, program(said->worker) ? NULL : said->worker);
    launch->share_gpu |= said->share_gpu;
}

enum status foreign_read(const struct stored_session *session, const char *runner, struct arena *arena,
                         struct job_options *job, struct runner_options *launch, bool *adopt, struct error *err) {
    struct session_options kept;
    struct claim claims[N_CLAIMS];
    enum status st = session_options_read(session, arena, &kept, err);
    if (st)
        return st;
    struct job_options *said_job = &kept.job;
    struct runner_options *said = &kept.launch;
    said->runner = runner;
    if (!said->hosts && launcher(runner))
        said->hosts = "(the names of its cluster's nodes)";
    const bool by_command = !strcmp(runner, RUNNER_COMMAND);
    if (job->command && !by_command)
        return error_set(err, ST_USAGE, "--command: the trials of session %s are run by %s", session->id, runner);
    if (launch->runner && strcmp(launch->runner, runner) != 0)
        return error_set(err, ST_USAGE, "--runner %s: the trials of session %s are run by %s", launch->runner,
                         session->id, runner);
    if (by_command && !said_job->command)
        said_job->command = "(a command that it does not say)";
    list_claims(said_job, said, job, launch, claims);
    for (size_t i = 0; i < N_CLAIMS; i++)
        if (claims[i].said && !claims[i].typed)
            return refuse(session, claims, err);
    take_harmless(said_job, said, job, launch);
    launch->runner = runner;
    *adopt = true;
    return ST_OK;
}

enum status foreign_adopt(struct store *store, const struct stored_session *session, const struct job_options *job,
                          const struct runner_options *launch, struct error *err) {
    struct arena arena = {0};
    struct session_options kept;
    enum status st = session_options_read(session, &arena, &kept, err);
    if (!st) {
        kept.job = *job;
        kept.launch = *launch;
        char *text = session_options_write(&kept, session->options);
        st = text ? store_session_adopt(store, session->id, text, err) : error_no_memory(err);
        free(text);
    }
    arena_release(&arena);
    return st;
}
