/* Four parties: the caller, its guard, the guard's child, and what the child starts.
 *
 * The guard is a child subreaper (prctl(2)), so orphans below it become its children and it can find and kill them one
 * generation after the other, without cgroups and without root. It stops on SIGTERM from the caller and when the
 * caller's pidfd says that it is dead. (PR_SET_PDEATHSIG would not do: it follows the calling thread, not the process,
 * and it misses a death before it is set.) Everything that the caller must know comes through one pipe: a failure
 * before exec, or a wait status; its end says that the guard has cleaned up. Guard and child allocate nothing (hooks
 * may): the caller may have other threads, and one of them the allocator's locks. Nor does the guard run what libraries
 * do at a fork: OpenBLAS waits there for threads, which only the caller has. Cost: two forks, and one scan of /proc for
 * each generation of survivors. */
#include "trial-runner/process.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "trial-runner/cleanup.h"
#include "trial-runner/scratch.h"

enum {
    REPORT_FD = 3,       /* in the guard and in the child before exec */
    CALLER_FD = 4,       /* in the guard: the caller's pidfd */
    HELD_FD = 5,         /* in the guard and in the child before exec: options->hold */
    FREE_FD = 10,        /* above any descriptor that is given a fixed place */
    GUARD_PATIENCE = 10, /* seconds that a stopped guard may take */
    POLL_MS = 50         /* how late a cancellation may be seen */
};

struct report {
    bool failed;
    int wait_status;
    struct error error;
};

struct line_reader {
    int fd; /* -1 after its end */
    enum process_stream stream;
    char *text; /* the line so far */
    size_t n, capacity;
};

struct run {
    const struct process_options *options;
    struct process_result *result;
    struct line_reader readers[2];
    int report_fd;
    pid_t guard;
    bool stopping, reported;
    struct report report;
    double started_us, stopped_us;
    char **environment; /* room for the child's */
};

static void report_send(const struct report *report) {
    /* Shorter than PIPE_BUF, so whole; a caller that is gone does not need it. */
    ssize_t written = write(REPORT_FD, report, sizeof *report);
    (void)written;
}

void process_report(int wait_status) {
    report_send(&(struct report){.wait_status = wait_status});
}

static _Noreturn void report_failure(const struct error *error) {
    report_send(&(struct report){.failed = true, .error = *error});
    _exit(127);
}

static bool is_dead(int pidfd) {
    struct pollfd dead = {.fd = pidfd, .events = POLLIN};
    return poll(&dead, 1, 0) != 0;
}

/* ---- the guard and the child ---- */

/* Make the run's folder: in memory where possible, since Open MPI maps its shared segments there. */
static bool make_scratch(char *path, size_t n) {
    const char *wanted = getenv("TMPDIR");
    const char *const roots[] = {wanted ? wanted : "/dev/shm", "/tmp"};
    return scratch_make_folder(roots[0], n, path) || scratch_make_folder(roots[1], n, path);
}

/* True when the child is among the dead, with its status. */
static bool guard_reap(pid_t child, int *wait_status) {
    int status;
    for (pid_t dead; (dead = waitpid(-1, &status, WNOHANG)) > 0;)
        if (dead == child) {
            *wait_status = status;
            return true;
        }
    return false;
}

/* True when the child ended by itself; false when the caller ended it or died. */
static bool guard_wait(pid_t child, const sigset_t *watched, int *wait_status) {
    int signals = signalfd(-1, watched, SFD_CLOEXEC);
    struct pollfd fds[2] = {{.fd = CALLER_FD, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    for (;;) {
        struct signalfd_siginfo signal;
        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[0].revents)
            return false;
        if (read(signals, &signal, sizeof signal) != (ssize_t)sizeof signal)
            continue;
        if (signal.ssi_signo != SIGCHLD)
            return false;
        if (guard_reap(child, wait_status))
            return true;
    }
}

/* Set a variable by its `pair`, "NAME=VALUE". The environment has room for one more. */
static void replace(char **environment, char *pair) {
    const size_t n = strcspn(pair, "=") + 1;
    while (*environment && strncmp(*environment, pair, n) != 0)
        environment++;
    if (!*environment)
        environment[1] = NULL;
    *environment = pair;
}

static void child_environment(const struct process_options *options, const char *scratch, char **room) {
    static char folder[4096 + sizeof "TMPDIR="];
    size_t n = 0;
    for (char **e = environ; *e; e++)
        room[n++] = *e;
    room[n] = NULL;
    for (const char *const *e = options->environment; e && *e; e++)
        replace(room, (char *)*e);
    snprintf(folder, sizeof folder, "TMPDIR=%s", scratch);
    if (*scratch)
        replace(room, folder);
    environ = room;
}

static _Noreturn void child_run(const struct run *run, const char *scratch, int guard_pidfd) {
    const struct process_options *options = run->options;
    struct error err = {0};
    close(CALLER_FD);
    if (options->grace_s > 0)
        setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, options->grace_s > 0 ? SIGTERM : SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    child_environment(options, scratch, run->environment);
    if (options->directory && chdir(options->directory) != 0) {
        error_set(&err, ST_ENVIRONMENT, "cannot enter the folder %s: %s", options->directory, strerror(errno));
        report_failure(&err);
    }
    if (options->hook && options->hook->in_child && options->hook->in_child(options->hook->context, &err))
        report_failure(&err);
    if (is_dead(guard_pidfd)) /* it may have died before prctl was called */
        _exit(127);
    execvp(options->argv[0], (char *const *)options->argv);
    enum status status = errno == ENOENT ? ST_NOT_FOUND : ST_ENVIRONMENT;
    error_set(&err, status, "cannot start %s: %s", options->argv[0], strerror(errno));
    report_failure(&err);
}

/* Standard streams and the report at their places, every other descriptor of the caller closed. */
static void guard_descriptors(int out, int err, int report, int caller, const int *hold) {
    int null = open("/dev/null", O_RDONLY);
    const int wanted[] = {null, out, err, report, caller, hold ? *hold : -1}, n = hold ? HELD_FD + 1 : HELD_FD;
    int high[HELD_FD + 1];
    for (int i = 0; i < n; i++)
        high[i] = fcntl(wanted[i], F_DUPFD, FREE_FD);
    for (int i = 0; i < n; i++)
        dup2(high[i], i);
    for (int i = REPORT_FD; i < n; i++)
        fcntl(i, F_SETFD, FD_CLOEXEC);
    close_range((unsigned)n, ~0U, 0);
}

static void reset_signals(sigset_t *watched) {
    for (int signal = 1; signal < NSIG; signal++)
        sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    sigemptyset(watched);
    sigaddset(watched, SIGCHLD);
    sigaddset(watched, SIGTERM);
    sigaddset(watched, SIGINT);
    sigaddset(watched, SIGHUP);
    sigprocmask(SIG_SETMASK, watched, NULL);
}

static enum status guard_start_child(const struct run *run, const char *scratch, pid_t *child, struct error *err) {
    const struct process_hook *hook = run->options->hook;
    if (hook && hook->before_fork) {
        enum status status = hook->before_fork(hook->context, err);
        if (status)
            return status;
    }
    int self = pidfd_open(getpid(), 0);
    *child = self < 0 ? -1 : _Fork();
    if (*child < 0)
        return error_set(err, ST_ENVIRONMENT, "cannot start another process: %s", strerror(errno));
    if (*child == 0)
        child_run(run, scratch, self);
    return ST_OK;
}

/* Send SIGTERM to the child's group and wait a while for all of the group, since a shell dies before what it started. A
 * second SIGTERM from the caller ends the wait. */
static void guard_ask_to_end(pid_t child, const sigset_t *watched, double grace_s) {
    const double end_us = clock_now_us() + grace_s * 1e6;
    if (kill(-child, SIGTERM) != 0)
        kill(child, SIGTERM); /* it has not made its group yet */
    while (clock_now_us() < end_us) {
        const struct timespec look_again = {.tv_nsec = POLL_MS * 1000000L};
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (kill(-child, 0) != 0 && kill(child, 0) != 0)
            return;
        const int signal = sigtimedwait(watched, NULL, &look_again);
        if (signal > 0 && signal != SIGCHLD)
            return;
    }
}

static _Noreturn void guard_run(const struct run *run, const sigset_t *watched) {
    const struct process_options *options = run->options;
    prctl(PR_SET_NAME, "syncopate-guard");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    char scratch[4096] = "";
    struct error err = {0};
    if (options->scratch && !make_scratch(scratch, sizeof scratch)) {
        error_set(&err, ST_ENVIRONMENT, "no temporary folder can be made: %s", strerror(errno));
        report_failure(&err);
    }
    pid_t child;
    if (guard_start_child(run, scratch, &child, &err)) {
        cleanup_folder(scratch);
        report_failure(&err);
    }
    for (int fd = 0; fd < 3; fd++)
        close(fd); /* so that only the program's side keeps its output open */
    int wait_status = 0;
    bool ended = guard_wait(child, watched, &wait_status);
    if (!ended && options->grace_s > 0)
        guard_ask_to_end(child, watched, options->grace_s);
    cleanup_descendants();
    cleanup_folder(scratch);
    if (ended)
        process_report(wait_status);
    _exit(0);
}

/* ---- the caller ---- */

static void run_stop(struct run *run, enum process_ending why) {
    if (run->stopping)
        return;
    run->stopping = true;
    run->stopped_us = clock_now_us();
    run->result->ending = why;
    kill(run->guard, SIGTERM);
}

/* Keep the end of what was said. */
static void last_words_add(char *words, const char *line, size_t n) {
    if (n > PROCESS_LAST_WORDS - 1) {
        line += n - (PROCESS_LAST_WORDS - 1);
        n = PROCESS_LAST_WORDS - 1;
    }
    size_t have = strlen(words), room = PROCESS_LAST_WORDS - n - 1;
    if (have > room) {
        memmove(words, words + have - room, room);
        have = room;
    }
    if (have > 0)
        words[have++] = '\n';
    memcpy(words + have, line, n);
    words[have + n] = 0;
}

static void line_done(struct run *run, struct line_reader *reader) {
    size_t n = reader->n;
    reader->n = 0;
    if (n > 0 && reader->text[n - 1] == '\r')
        n--;
    reader->text[n] = 0;
    if (reader->stream == PROCESS_STDERR && n > 0)
        last_words_add(run->result->last_words, reader->text, n);
    if (reader->stream == PROCESS_STDOUT && run->result->first_line_s < 0)
        run->result->first_line_s = (clock_now_us() - run->started_us) * 1e-6;
    const struct process_options *options = run->options;
    if (options->on_line && !run->stopping && !options->on_line(options->context, reader->stream, reader->text, n))
        run_stop(run, PROCESS_STOPPED);
}

static bool line_reserve(struct line_reader *reader, size_t more) {
    size_t wanted = reader->n + more + 1;
    if (wanted > PROCESS_LINE_MAX)
        wanted = PROCESS_LINE_MAX;
    if (wanted <= reader->capacity)
        return true;
    size_t doubled = 2 * reader->capacity < PROCESS_LINE_MAX ? 2 * reader->capacity : PROCESS_LINE_MAX;
    size_t capacity = wanted > doubled ? wanted : doubled;
    char *text = realloc(reader->text, capacity);
    if (!text)
        return false;
    reader->text = text;
    reader->capacity = capacity;
    return true;
}

static enum status line_feed(struct run *run, struct line_reader *reader, const char *bytes, size_t n,
                             struct error *err) {
    while (n > 0) {
        const char *end = memchr(bytes, '\n', n);
        size_t piece = end ? (size_t)(end - bytes) : n;
        if (!line_reserve(reader, piece))
            return error_no_memory(err);
        size_t room = reader->capacity - 1 - reader->n;
        size_t kept = piece < room ? piece : room;
        memcpy(reader->text + reader->n, bytes, kept);
        reader->n += kept;
        if (end)
            line_done(run, reader);
        size_t used = end ? piece + 1 : piece;
        bytes += used;
        n -= used;
    }
    return ST_OK;
}

static enum status reader_ready(struct run *run, struct line_reader *reader, struct error *err) {
    char bytes[16384];
    ssize_t n = read(reader->fd, bytes, sizeof bytes);
    if (n > 0)
        return line_feed(run, reader, bytes, (size_t)n, err);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return ST_OK;
    if (reader->n > 0)
        line_done(run, reader);
    close(reader->fd);
    reader->fd = -1;
    return ST_OK;
}

/* The first report counts: the hook's process knows how the program ended, the guard only sees how the hook's process
 * did. */
static void report_ready(struct run *run) {
    struct report report;
    ssize_t n = read(run->report_fd, &report, sizeof report);
    if (n == (ssize_t)sizeof report) {
        if (!run->reported)
            run->report = report;
        run->reported = true;
    } else if (n >= 0 || errno != EINTR) {
        close(run->report_fd);
        run->report_fd = -1;
    }
}

/* Seconds from the start at which time is up. */
static double timeout_after(const struct run *run) {
    const double first_line_s = run->result->first_line_s;
    if (!run->options->timeout_from_first_line)
        return run->options->timeout_s;
    return first_line_s < 0 ? INFINITY : first_line_s + run->options->timeout_s;
}

static void check_limits(struct run *run) {
    const struct process_options *options = run->options;
    double now_us = clock_now_us(), elapsed_s = (now_us - run->started_us) * 1e-6;
    bool silent = run->result->first_line_s < 0 && options->first_line_timeout_s > 0;
    if (options->cancel && *options->cancel)
        run_stop(run, PROCESS_CANCELLED);
    else if (options->timeout_s > 0 && elapsed_s > timeout_after(run))
        run_stop(run, PROCESS_TIMED_OUT);
    else if (silent && elapsed_s > options->first_line_timeout_s)
        run_stop(run, PROCESS_SILENT);
    else if (!run->stopping && options->on_tick && !options->on_tick(options->context))
        run_stop(run, PROCESS_STOPPED);
    if (run->stopping && (now_us - run->stopped_us) * 1e-6 > GUARD_PATIENCE + options->grace_s)
        kill(run->guard, SIGKILL); /* its child, and with it a lab, dies with it */
}

static enum status run_poll(struct run *run, struct error *err) {
    enum status status = ST_OK;
    while (run->report_fd >= 0) {
        struct pollfd fds[3] = {{.fd = run->readers[0].fd, .events = POLLIN},
                                {.fd = run->readers[1].fd, .events = POLLIN},
                                {.fd = run->report_fd, .events = POLLIN}};
        int ready = poll(fds, 3, POLL_MS);
        check_limits(run);
        if (ready <= 0)
            continue;
        for (int i = 0; i < 2 && !status; i++)
            if (fds[i].revents)
                status = reader_ready(run, &run->readers[i], err);
        if (status)
            run_stop(run, PROCESS_STOPPED);
        if (fds[2].revents)
            report_ready(run);
    }
    /* The guard is gone and everything below it: what is left is in the pipes. */
    for (int i = 0; i < 2; i++) {
        struct pollfd rest = {.fd = run->readers[i].fd, .events = POLLIN};
        while (!status && run->readers[i].fd >= 0 && poll(&rest, 1, 0) > 0)
            status = reader_ready(run, &run->readers[i], err);
    }
    if (!status && !run->stopping && run->options->on_tick)
        run->options->on_tick(run->options->context);
    return status;
}

static enum status run_conclude(struct run *run, struct error *err) {
    struct process_result *result = run->result;
    result->wall_s = (clock_now_us() - run->started_us) * 1e-6;
    if (run->reported && run->report.failed && !run->stopping)
        return error_pass(err, &run->report.error);
    if (run->stopping)
        return ST_OK;
    if (!run->reported)
        return error_set(err, ST_ENVIRONMENT, "the guard of %s was killed; is memory short?", run->options->argv[0]);
    int status = run->report.wait_status;
    result->ending = WIFSIGNALED(status) ? PROCESS_SIGNALLED : PROCESS_EXITED;
    result->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    result->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return ST_OK;
}

/* Fork the guard; its ends of the pipes are closed here. */
static enum status run_start(struct run *run, struct error *err) {
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    int self = pidfd_open(getpid(), 0);
    bool ok = self >= 0;
    for (int i = 0; i < 3; i++)
        ok = ok && pipe2(pipes[i], O_CLOEXEC) == 0;
    run->started_us = clock_now_us();
    run->guard = ok ? fork() : -1;
    if (run->guard == 0) {
        /* Signals first: a handler of the caller's must not swallow an early stop. */
        sigset_t watched;
        reset_signals(&watched);
        setsid();
        guard_descriptors(pipes[0][1], pipes[1][1], pipes[2][1], self, run->options->hold);
        guard_run(run, &watched);
    }
    enum status status = ST_OK;
    if (run->guard < 0)
        status = error_set(err, ST_ENVIRONMENT, "cannot start another process: %s", strerror(errno));
    close(self);
    for (int i = 0; i < 3; i++) {
        close(pipes[i][1]);
        if (status)
            close(pipes[i][0]);
    }
    run->readers[0] = (struct line_reader){.fd = pipes[0][0], .stream = PROCESS_STDOUT};
    run->readers[1] = (struct line_reader){.fd = pipes[1][0], .stream = PROCESS_STDERR};
    run->report_fd = pipes[2][0];
    return status;
}

/* Made here, since there must be no allocation in the child. */
static char **environment_room(const struct process_options *options) {
    size_t n = 2; /* TMPDIR and the end */
    for (char **e = environ; *e; e++)
        n++;
    for (const char *const *e = options->environment; e && *e; e++)
        n++;
    return calloc(n, sizeof(char *));
}

enum status process_run(const struct process_options *options, struct process_result *out, struct error *err) {
    struct process_result result = {.first_line_s = -1};
    struct run run = {.options = options, .result = &result, .environment = environment_room(options)};
    if (!run.environment)
        return error_no_memory(err);
    enum status status = run_start(&run, err);
    free(run.environment); /* the child has a copy */
    if (status)
        return status;
    status = run_poll(&run, err);
    while (waitpid(run.guard, NULL, 0) < 0 && errno == EINTR)
        ;
    for (int i = 0; i < 2; i++) {
        if (run.readers[i].fd >= 0)
            close(run.readers[i].fd);
        free(run.readers[i].text);
    }
    if (!status)
        status = run_conclude(&run, err);
    if (!status)
        *out = result;
    return status;
}

enum status process_judge(const struct process_result *result, const char *what, struct error *err) {
    char words[sizeof result->last_words];
    const char *colon = *result->last_words ? ": " : "";
    for (size_t i = 0; i < sizeof words; i++) /* a reason is one line */
        words[i] = result->last_words[i] == '\n' ? ' ' : result->last_words[i];
    switch (result->ending) {
    case PROCESS_EXITED:
        if (result->exit_code == 0)
            return ST_OK;
        return error_set(err, ST_TRIAL, "%s ended with exit code %d%s%s", what, result->exit_code, colon, words);
    case PROCESS_SIGNALLED:
        return error_set(err, ST_TRIAL, "%s was killed by signal %d (%s)%s%s", what, result->signal,
                         strsignal(result->signal), colon, words);
    case PROCESS_TIMED_OUT:
        return error_set(err, ST_TIMEOUT, "%s was not done after %.1f s%s%s", what, result->wall_s, colon, words);
    case PROCESS_SILENT:
        return error_set(err, ST_TIMEOUT, "%s had not started after %.1f s%s%s", what, result->wall_s, colon, words);
    case PROCESS_STOPPED:
        return error_set(err, ST_TRIAL, "%s was stopped%s%s", what, colon, words);
    case PROCESS_CANCELLED:
        break;
    }
    return error_set(err, ST_CANCELLED, "%s was interrupted", what);
}
