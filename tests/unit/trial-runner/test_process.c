/* What a caller of process_run relies on: every line arrives, every end has its reason, and nothing outlives the run.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "tests/unit/trial-runner/left_behind.h"
#include "trial-runner/process.h"

struct heard {
    size_t lines[2], longest;
    char first[256], last[256];
    size_t stop_after; /* lines of standard output; 0: never */
};

static bool hear(void *context, enum process_stream stream, const char *line, size_t n) {
    struct heard *heard = context;
    if (heard->lines[stream]++ == 0 && stream == PROCESS_STDOUT)
        snprintf(heard->first, sizeof heard->first, "%s", line);
    if (stream == PROCESS_STDOUT)
        snprintf(heard->last, sizeof heard->last, "%s", line);
    assert_int_equal(strlen(line), n);
    if (n > heard->longest)
        heard->longest = n;
    return heard->stop_after == 0 || heard->lines[PROCESS_STDOUT] < heard->stop_after;
}

/* A child of `parent`, called so where a name is given; 0: there is none. */
static pid_t child_of(pid_t parent, const char *called) {
    pid_t found = 0;
    DIR *proc = opendir("/proc");
    for (struct dirent *entry; proc && !found && (entry = readdir(proc));) {
        char path[300], name[64] = "", state;
        int pid, its_parent;
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        if (fscanf(file, "%d (%63[^)]) %c %d", &pid, name, &state, &its_parent) == 4 && its_parent == parent &&
            (!called || !strcmp(name, called)))
            found = pid;
        fclose(file);
    }
    if (proc)
        closedir(proc);
    return found;
}

static struct process_result run_shell(const char *script, struct process_options options, struct heard *heard) {
    const char *const argv[] = {"sh", "-c", script, NULL};
    struct process_result result;
    struct error err = {0};
    options.argv = argv;
    options.on_line = heard ? hear : NULL;
    options.context = heard;
    enum status status = process_run(&options, &result, &err);
    if (status != ST_OK)
        fail_msg("%s", ERROR_TEXT(&err));
    return result;
}

static void both_streams_arrive_line_by_line(void **state) {
    (void)state;
    struct heard heard = {0};
    struct process_result r =
        run_shell("echo one; echo two >&2; echo; printf 'no end'", (struct process_options){0}, &heard);
    assert_int_equal(r.ending, PROCESS_EXITED);
    assert_int_equal(r.exit_code, 0);
    assert_int_equal(heard.lines[PROCESS_STDOUT], 3);
    assert_int_equal(heard.lines[PROCESS_STDERR], 1);
    assert_string_equal(heard.first, "one");
    assert_string_equal(heard.last, "no end");
    assert_string_equal(r.last_words, "two");
    assert_true(r.first_line_s >= 0 && r.first_line_s <= r.wall_s);
}

static void much_output_loses_no_line(void **state) {
    (void)state;
    struct heard heard = {0};
    run_shell("seq 1 200000", (struct process_options){0}, &heard);
    assert_int_equal(heard.lines[PROCESS_STDOUT], 200000);
    assert_string_equal(heard.last, "200000");
}

static void a_line_over_the_limit_is_cut_and_the_next_is_whole(void **state) {
    (void)state;
    struct heard heard = {0};
    run_shell("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo after", (struct process_options){0}, &heard);
    assert_int_equal(heard.lines[PROCESS_STDOUT], 2);
    assert_int_equal(heard.longest, PROCESS_LINE_MAX - 1);
    assert_string_equal(heard.last, "after");
}

static void an_exit_code_and_the_last_words_become_the_reason(void **state) {
    (void)state;
    struct error err = {0};
    struct process_result r =
        run_shell("seq 1 1000 >&2; echo no such device >&2; exit 7", (struct process_options){0}, NULL);
    assert_int_equal(r.exit_code, 7);
    assert_true(strlen(r.last_words) <= PROCESS_LAST_WORDS);
    assert_int_equal(process_judge(&r, "the worker", &err), ST_TRIAL);
    assert_non_null(strstr(ERROR_TEXT(&err), "the worker ended with exit code 7"));
    assert_non_null(strstr(ERROR_TEXT(&err), "1000 no such device"));
}

/* Around the size that is kept: lines one shorter, as long, one longer and far longer, alone and behind others. */
static void the_last_words_are_the_end_of_what_was_said(void **state) {
    (void)state;
    static const int lengths[] = {PROCESS_LAST_WORDS - 2, PROCESS_LAST_WORDS - 1, PROCESS_LAST_WORDS,
                                  PROCESS_LAST_WORDS + 1, 3 * PROCESS_LAST_WORDS, 100000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int before = 0; before < 2; before++) {
            char script[256];
            snprintf(script, sizeof script, "%shead -c %d /dev/zero | tr '\\0' x >&2; echo END >&2",
                     before ? "echo before >&2; " : "", lengths[i] - 3);
            struct process_result r = run_shell(script, (struct process_options){0}, NULL);
            const size_t n = strlen(r.last_words);
            const bool cut = lengths[i] > PROCESS_LAST_WORDS - 1;
            const char *line = strrchr(r.last_words, '\n') ? strrchr(r.last_words, '\n') + 1 : r.last_words;
            assert_true(n <= PROCESS_LAST_WORDS);
            assert_string_equal(r.last_words + n - 4, "xEND");
            assert_int_equal(strspn(line, "x") + 3, cut ? PROCESS_LAST_WORDS - 1 : lengths[i]);
        }
}

/* Whatever becomes of a run, the caller has as many open files as before. */
static void a_run_leaves_no_descriptor_open(void **state) {
    (void)state;
    struct error err;
    struct process_result result;
    static const char *const scripts[] = {"echo a", "exit 3", "sleep 60", "sleep 60 & sleep 60", "kill -9 $$"};
    const char *const nothing[] = {"/no/such/program", NULL};
    const struct process_options absent = {.argv = nothing};
    const int before = entries_with("/proc/self/fd", "");
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        run_shell(scripts[i], (struct process_options){.timeout_s = 0.2}, NULL);
    process_run(&absent, &result, &err);
    assert_int_equal(entries_with("/proc/self/fd", ""), before);
}

/* Sends a signal to the guard of the one run of this process, as soon as its program is there. */
static void *signal_guard(void *context) {
    for (int i = 0; i < 5000; i++) {
        pid_t guard = child_of(getpid(), "syncopate-guard");
        if (guard && access("started", F_OK) == 0) {
            kill(guard, *(int *)context);
            return NULL;
        }
        clock_sleep_us(1000);
    }
    return NULL;
}

/* Run what would last for ever while its guard gets a signal. */
static enum status run_with_signal(int signal, double timeout_s, struct process_result *result, struct error *err) {
    pthread_t thread;
    char script[4096];
    snprintf(script, sizeof script, "cd %s; touch started; setsid sleep 9753 & sleep 9753", test_dir());
    const char *const argv[] = {"sh", "-c", script, NULL};
    const struct process_options options = {.argv = argv, .timeout_s = timeout_s};
    assert_int_equal(chdir(test_dir()), 0);
    assert_int_equal(pthread_create(&thread, NULL, signal_guard, &signal), 0);
    const enum status status = process_run(&options, result, err);
    pthread_join(thread, NULL);
    assert_int_equal(unlink("started"), 0);
    return status;
}

static void a_guard_that_is_hung_up_on_ends_all_it_started(void **state) {
    (void)state;
    struct error err;
    struct process_result result;
    assert_fails(run_with_signal(SIGHUP, 0, &result, &err), ST_ENVIRONMENT, "guard");
    assert_true(no_descendants());
}

static void a_guard_that_does_not_end_is_killed(void **state) {
    (void)state;
    struct error err;
    struct process_result result;
    assert_ok(run_with_signal(SIGSTOP, 0.5, &result, &err));
    assert_int_equal(result.ending, PROCESS_TIMED_OUT);
    assert_true(result.wall_s < 30);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    for (pid_t child; (child = child_of(getpid(), NULL));) /* nobody was left to end these */
        assert_int_equal(kill(child, SIGKILL) || waitpid(child, NULL, 0) < 0, 0);
}

static void a_signal_is_reported_as_one(void **state) {
    (void)state;
    struct error err = {0};
    struct process_result r = run_shell("kill -SEGV $$", (struct process_options){0}, NULL);
    assert_int_equal(r.ending, PROCESS_SIGNALLED);
    assert_int_equal(r.signal, SIGSEGV);
    assert_int_equal(process_judge(&r, "it", &err), ST_TRIAL);
}

static void a_program_that_is_not_there_is_named(void **state) {
    (void)state;
    const char *const argv[] = {"no-such-program-here", NULL};
    struct process_options options = {.argv = argv, .scratch = true};
    struct process_result result = {.exit_code = 99};
    struct error err = {0};
    assert_int_equal(process_run(&options, &result, &err), ST_NOT_FOUND);
    assert_non_null(strstr(ERROR_TEXT(&err), "no-such-program-here"));
    assert_int_equal(result.exit_code, 99);
}

static void environment_folder_and_empty_input_are_as_asked(void **state) {
    (void)state;
    struct heard heard = {0};
    const char *const environment[] = {"SYNCOPATE_TEST=a b", NULL};
    struct process_options options = {.environment = environment, .directory = "/usr"};
    run_shell("cat; echo \"$SYNCOPATE_TEST $(pwd)\"", options, &heard);
    assert_string_equal(heard.last, "a b /usr");
}

static void a_deadline_ends_it_and_all_it_started(void **state) {
    (void)state;
    struct error err = {0};
    struct process_options options = {.timeout_s = 0.2};
    struct process_result r = run_shell("trap '' TERM; setsid sleep 9753 & sleep 9753", options, NULL);
    assert_int_equal(r.ending, PROCESS_TIMED_OUT);
    assert_true(r.wall_s < 5);
    assert_true(no_descendants());
    assert_int_equal(process_judge(&r, "it", &err), ST_TIMEOUT);
}

/* A dash that is about to run a program loses a signal; one that waits does not. */
static void with_grace_its_whole_group_may_end_in_order(void **state) {
    (void)state;
    char file[4096], command[4400];
    struct process_options options = {.timeout_s = 0.3, .grace_s = 5};
    snprintf(file, sizeof file, "%.3900s/saved", test_dir());
    snprintf(command, sizeof command, "sh -c 'trap \"sleep 0.3; touch %s; exit 0\" TERM; sleep 20 & wait' & wait",
             file);
    struct process_result r = run_shell(command, options, NULL);
    assert_int_equal(r.ending, PROCESS_TIMED_OUT);
    assert_int_equal(unlink(file), 0);
    assert_true(r.wall_s < 4);
    assert_true(no_descendants());
}

static void grace_ends(void **state) {
    (void)state;
    struct process_options options = {.timeout_s = 0.2, .grace_s = 0.3};
    struct process_result r =
        run_shell("trap '' TERM; setsid sleep 9753 & while :; do sleep 0.05; done", options, NULL);
    assert_int_equal(r.ending, PROCESS_TIMED_OUT);
    assert_true(r.wall_s > 0.45 && r.wall_s < 8);
    assert_true(no_descendants());
}

static bool count_ticks(void *context) {
    int *ticks = context;
    return ++*ticks < 4;
}

static void a_tick_comes_without_output_and_may_end_it(void **state) {
    (void)state;
    int ticks = 0;
    const char *const argv[] = {"sleep", "9753", NULL};
    struct process_options options = {.argv = argv, .on_tick = count_ticks, .context = &ticks};
    struct process_result result;
    struct error err = {0};
    assert_int_equal(process_run(&options, &result, &err), ST_OK);
    assert_int_equal(result.ending, PROCESS_STOPPED);
    assert_int_equal(ticks, 4);
    assert_true(no_descendants());
}

/* The caller is killed while its program runs, which ends in order half a second later: the descriptor closes then. */
static void a_descriptor_is_held_until_all_has_ended(void **state) {
    (void)state;
    char up[2048], late[2048], command[4400], byte;
    int ends[2];
    struct stat info;
    snprintf(up, sizeof up, "%.2000s/up", test_dir());
    snprintf(late, sizeof late, "%.2000s/late", test_dir());
    snprintf(command, sizeof command, "trap 'sleep 0.5; >\"%s\"; exit' TERM; >\"%s\"; sleep 20 & wait", late, up);
    assert_int_equal(pipe(ends), 0);
    pid_t caller = fork();
    if (caller == 0) {
        close(ends[0]);
        run_shell(command, (struct process_options){.hold = &ends[1], .grace_s = 5}, NULL);
        _exit(0);
    }
    close(ends[1]);
    for (int i = 0; i < 20000 && stat(up, &info) != 0; i++)
        clock_sleep_us(1000);
    assert_int_equal(stat(up, &info), 0);
    kill(caller, SIGKILL);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    assert_true(unlink(late) == 0 && unlink(up) == 0);
    close(ends[0]);
    assert_true(descendants_vanish());
}

static void a_silent_start_ends_it_but_a_line_satisfies(void **state) {
    (void)state;
    struct process_options options = {.first_line_timeout_s = 0.2};
    assert_int_equal(run_shell("echo words >&2; sleep 60", options, NULL).ending, PROCESS_SILENT);
    assert_int_equal(run_shell("echo up; sleep 0.5", options, NULL).ending, PROCESS_EXITED);
}

static atomic_int cancelled;

static bool cancel_on_line(void *context, enum process_stream stream, const char *line, size_t n) {
    (void)context, (void)stream, (void)line, (void)n;
    cancelled = 1;
    return true;
}

static void cancellation_ends_it(void **state) {
    (void)state;
    const char *const argv[] = {"sh", "-c", "echo up; sleep 9753", NULL};
    struct process_options options = {.argv = argv, .cancel = &cancelled, .on_line = cancel_on_line};
    struct process_result result;
    struct error err = {0};
    cancelled = 0;
    assert_int_equal(process_run(&options, &result, &err), ST_OK);
    assert_int_equal(result.ending, PROCESS_CANCELLED);
    assert_int_equal(process_judge(&result, "it", &err), ST_CANCELLED);
    assert_true(no_descendants());
}

static void a_reader_that_has_enough_ends_it(void **state) {
    (void)state;
    struct heard heard = {.stop_after = 3};
    struct process_result r = run_shell("yes", (struct process_options){0}, &heard);
    assert_int_equal(r.ending, PROCESS_STOPPED);
    assert_int_equal(heard.lines[PROCESS_STDOUT], 3);
}

static void daemons_and_files_do_not_outlive_a_normal_end(void **state) {
    (void)state;
    struct heard heard = {0};
    struct process_options options = {.scratch = true};
    run_shell("mkdir -p $TMPDIR/a/b; echo x >$TMPDIR/a/b/c; (setsid sleep 9753 &) ; echo $TMPDIR", options, &heard);
    assert_true(no_descendants());
    struct stat info;
    assert_non_null(strstr(heard.last, "/syncopate-"));
    assert_int_equal(stat(heard.last, &info), -1);
}

static void a_full_descriptor_table_is_not_inherited(void **state) {
    (void)state;
    int extra[20];
    for (int i = 0; i < 20; i++)
        extra[i] = dup(2);
    struct heard heard = {0};
    run_shell("ls /proc/self/fd | wc -l", (struct process_options){0}, &heard);
    assert_string_equal(heard.last, "4"); /* the standard three, and ls's own of the folder */
    for (int i = 0; i < 20; i++)
        close(extra[i]);
}

static void *run_in_thread(void *context) {
    struct heard *heard = context;
    run_shell("seq 1 2000", (struct process_options){0}, heard);
    return NULL;
}

static void runs_in_several_threads_do_not_mix(void **state) {
    (void)state;
    pthread_t threads[6];
    struct heard heard[6] = {0};
    for (int i = 0; i < 6; i++)
        pthread_create(&threads[i], NULL, run_in_thread, &heard[i]);
    for (int i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(heard[i].lines[PROCESS_STDOUT], 2000);
    }
}

static pid_t forks; /* the one process that may */

static void wait_for_ever(void) {
    while (getpid() != forks)
        pause();
}

/* As OpenBLAS does, which joins its threads there: in the guard they are none. */
static void what_a_library_does_at_a_fork_is_done_in_the_caller_alone(void **state) {
    (void)state;
    struct heard heard = {0};
    forks = getpid();
    assert_int_equal(pthread_atfork(wait_for_ever, NULL, NULL), 0);
    run_shell("echo here", (struct process_options){.timeout_s = 20}, &heard);
    assert_string_equal(heard.last, "here");
}

static void ignore_signal(int signal) {
    (void)signal;
}

/* The caller handles SIGTERM, as services do: its guard must not. */
static _Noreturn void be_a_caller(const char *script) {
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = ignore_signal}, NULL);
    run_shell(script, (struct process_options){.scratch = true}, NULL);
    _exit(0);
}

static void sigkill_of_the_caller_at_any_moment_leaves_nothing(void **state) {
    (void)state;
    const char *folder = test_dir();
    setenv("TMPDIR", folder, 1);
    struct rng rng;
    rng_seed(&rng, test_seed());
    char script[256];
    snprintf(script, sizeof script, "touch $TMPDIR/f; (setsid sleep 9753 &); sleep 9753");
    for (int i = 0; i < 40; i++) {
        pid_t caller = fork();
        if (caller == 0)
            be_a_caller(script);
        clock_sleep_us(rng_between(&rng, 0, 20000));
        kill(caller, SIGKILL);
        assert_true(descendants_vanish());
        assert_int_equal(entries_with(folder, ""), 0);
    }
    unsetenv("TMPDIR");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_streams_arrive_line_by_line),
        cmocka_unit_test(much_output_loses_no_line),
        cmocka_unit_test(a_line_over_the_limit_is_cut_and_the_next_is_whole),
        cmocka_unit_test(an_exit_code_and_the_last_words_become_the_reason),
        cmocka_unit_test(the_last_words_are_the_end_of_what_was_said),
        cmocka_unit_test(a_run_leaves_no_descriptor_open),
        cmocka_unit_test(a_guard_that_is_hung_up_on_ends_all_it_started),
        cmocka_unit_test(a_guard_that_does_not_end_is_killed),
        cmocka_unit_test(a_signal_is_reported_as_one),
        cmocka_unit_test(a_program_that_is_not_there_is_named),
        cmocka_unit_test(environment_folder_and_empty_input_are_as_asked),
        cmocka_unit_test(a_deadline_ends_it_and_all_it_started),
        cmocka_unit_test(with_grace_its_whole_group_may_end_in_order),
        cmocka_unit_test(grace_ends),
        cmocka_unit_test(a_tick_comes_without_output_and_may_end_it),
        cmocka_unit_test(a_descriptor_is_held_until_all_has_ended),
        cmocka_unit_test(a_silent_start_ends_it_but_a_line_satisfies),
        cmocka_unit_test(cancellation_ends_it),
        cmocka_unit_test(a_reader_that_has_enough_ends_it),
        cmocka_unit_test(daemons_and_files_do_not_outlive_a_normal_end),
        cmocka_unit_test(a_full_descriptor_table_is_not_inherited),
        cmocka_unit_test(runs_in_several_threads_do_not_mix),
        cmocka_unit_test(sigkill_of_the_caller_at_any_moment_leaves_nothing),
        cmocka_unit_test(what_a_library_does_at_a_fork_is_done_in_the_caller_alone), /* last: it stays so */
    };
    return cmocka_run_group_tests_name("process", tests, adopt_orphans, NULL);
}
