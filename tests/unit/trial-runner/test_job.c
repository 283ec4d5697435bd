/* A command as the trial: which times count, how each way to end is told, and that a command that must end does. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "strategy/baselines/baselines.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/unit/trial-runner/left_behind.h"
#include "trial-runner/job.h"

struct stage {
    struct model model;
    struct cluster cluster;
    struct strategy strategy;
    struct trial_request request;
};

static int set_up(void **state) {
    static struct stage stage;
    struct error err;
    struct rng rng;
    rng_split(&rng, test_seed(), 1);
    assert_ok(random_model(&rng, &stage.model, &err));
    assert_ok(random_cluster(&rng, &stage.cluster, &err));
    assert_ok(baselines_build(baselines_find("wfbp"), &stage.model, &stage.cluster, &stage.strategy, &err));
    stage.request = (struct trial_request){.model = &stage.model,
                                           .cluster = &stage.cluster,
                                           .strategy = &stage.strategy,
                                           .iterations = 4,
                                           .warmup = 1,
                                           .time_limit_s = 20};
    setenv("TMPDIR", test_dir(), 1);
    *state = &stage;
    return adopt_orphans(state);
}

static int tear_down(void **state) {
    struct stage *stage = *state;
    strategy_release(&stage->strategy);
    cluster_release(&stage->cluster);
    model_release(&stage->model);
    return 0;
}

static struct job job_of(const char *command, const char *pattern) {
    struct error err;
    struct job job = {.command = command};
    assert_ok(job_times_init(&job.times, pattern, JOB_UNIT_SUFFIX, 0, &err));
    return job;
}

static struct trial_result run_with(const struct trial_request *request, struct job *job) {
    struct error err;
    struct trial_result result;
    assert_ok(job_run(job, request, 7, &result, &err));
    assert_true(no_descendants());
    assert_int_equal(entries_with(test_dir(), "syncopate-"), 0);
    job_times_release(&job->times);
    return result;
}

#define TELL(from, to)                                                                                                 \
    "for i in $(seq " #from " " #to "); do echo \"{\\\"iteration\\\": $i, \\\"time_us\\\": ${i}00}\"; done; "

static void times_after_the_warm_up_are_kept_in_order(void **state) {
    const struct stage *s = *state;
    struct job job = job_of(TELL(1, 5), NULL);
    struct trial_result r = run_with(&s->request, &job);
    assert_int_equal(r.ending, TRIAL_COMPLETE);
    assert_int_equal(r.n, 4);
    for (int i = 0; i < 4; i++)
        assert_close(r.time_us[i], 100.0 * (i + 2), 1e-12);
    assert_close(r.median_us, 350, 1e-12);
    assert_contains(r.environment, "\"runner\":\"command\"");
    assert_null(strstr(r.environment, "time_us")); /* its text */
    assert_string_equal(r.reason, "");
    assert_true(job.heard);
    trial_result_release(&r);
}

static void a_command_is_known_by_its_program_alone(void **state) {
    (void)state;
    static const struct {
        const char *command, *label;
    } cases[] = {
        {"./train.sh", "train.sh"},
        {"python3 train.py --key k0123", "python3"},
        {"  /opt/x/torchrun --x", "torchrun"},
        {"KEY=k0123 ./train.sh", "train.sh"},
        {"A=1 B=/x/y exec /bin/run-it;true", "run-it"},
        {"exec ./a|tee log", "a"},
        {"exec", "exec"},
        {"exec env", "env"},
        {"KEY='k 0123' ./train.sh", "command"},
        {"KEY=$(cat key) ./train.sh", "command"},
        {"KEY=\"k\" x", "command"},
        {"KEY=k0123", "command"},
        {"$CMD --x", "command"},
        {"'k0123'", "command"},
        {"for i in 1 2; do x; done", "for"},
        {"(cd x; ./train)", "command"},
        {"curl -H k0123", "curl"},
        {"k0123=", "command"},
        {"/", "command"},
        {"", "command"},
        {"a23456789b23456789c23456789d23456789e23456789f23456789g23456789h23456789", "command"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char label[JOB_LABEL + 1];
        job_label(cases[i].command, label);
        assert_string_equal(label, cases[i].label);
    }
}

static void what_is_published_is_asked_for(void **state) {
    const struct stage *s = *state;
    struct job job = job_of(TELL(1, 5), NULL);
    job.label = "nightly";
    job.publish = true;
    struct trial_result r = run_with(&s->request, &job);
    assert_contains(r.environment, "\"label\":\"nightly\"");
    assert_contains(r.environment, "\"command\":\"for i in");
    trial_result_release(&r);
}

static void more_than_was_asked_for_is_left_out(void **state) {
    const struct stage *s = *state;
    struct job job = job_of(TELL(1, 50), NULL);
    struct trial_result r = run_with(&s->request, &job);
    assert_int_equal(r.n, 4);
    trial_result_release(&r);
}

static void fewer_count_when_they_are_enough_to_tell(void **state) {
    const struct stage *s = *state;
    struct job enough = job_of(TELL(1, 4), NULL), few = job_of(TELL(1, 3), NULL);
    struct trial_result r = run_with(&s->request, &enough);
    assert_int_equal(r.ending, TRIAL_COMPLETE);
    assert_int_equal(r.n, 3);
    trial_result_release(&r);
    r = run_with(&s->request, &few);
    assert_int_equal(r.ending, TRIAL_FAILED);
    assert_contains(r.reason, "should run 5");
    trial_result_release(&r);
}

static void the_first_to_tell_is_the_source(void **state) {
    const struct stage *s = *state;
    struct job job =
        job_of("for i in 1 2 3 4 5; do echo \"{\\\"time_us\\\": 5}\" >>$SYNCOPATE_TRIAL_TIMES; done; sleep 0.3; "
               "for i in 1 2 3 4 5; do echo '{\"time_us\": 9}'; done",
               NULL);
    struct trial_result r = run_with(&s->request, &job);
    assert_int_equal(r.n, 4);
    assert_close(r.time_us[0], 5, 1e-12);
    trial_result_release(&r);
}

static void a_file_is_read_as_it_grows_and_to_its_unfinished_last_line(void **state) {
    const struct stage *s = *state;
    struct job job =
        job_of("for i in 1 2 3 4; do printf '{\"time_us\"' >>$SYNCOPATE_TRIAL_TIMES; sleep 0.1; "
               "echo \": ${i}0}\" >>$SYNCOPATE_TRIAL_TIMES; done; printf '{\"time_us\": 50}' >>$SYNCOPATE_TRIAL_TIMES",
               NULL);
    struct trial_result r = run_with(&s->request, &job);
    assert_int_equal(r.ending, TRIAL_COMPLETE);
    assert_int_equal(r.n, 4);
    assert_close(r.time_us[3], 50, 1e-12);
    trial_result_release(&r);
}

static void a_file_that_is_written_anew_each_time_counts_once(void **state) {
    const struct stage *s = *state;
    struct job job = job_of("t=; for i in 1 2 3 4 5; do t=\"$t{\\\"iteration\\\": $i, \\\"time_us\\\": $i}\n\"; "
                            "printf '%s' \"$t\" >$SYNCOPATE_TRIAL_TIMES; sleep 0.08; done",
                            NULL);
    struct trial_result r = run_with(&s->request, &job);
    assert_int_equal(r.n, 4);
    for (int i = 0; i < 4; i++)
        assert_close(r.time_us[i], i + 2, 1e-12);
    trial_result_release(&r);
}

static void what_is_hopeless_is_ended_early(void **state) {
    const struct stage *s = *state;
    struct trial_request request = s->request;
    struct job job = job_of(TELL(1, 4) "sleep 60", NULL);
    request.stop_if_slower_than_us = 150;
    request.iterations = 100;
    const double began_us = clock_now_us();
    struct trial_result r = run_with(&request, &job);
    assert_int_equal(r.ending, TRIAL_STOPPED_EARLY);
    assert_int_equal(r.n, 3);
    assert_true(clock_now_us() - began_us < 10e6);
    trial_result_release(&r);
}

static void one_fast_iteration_keeps_hope(void **state) {
    const struct stage *s = *state;
    struct trial_request request = s->request;
    struct job job = job_of(TELL(1, 5), NULL);
    request.stop_if_slower_than_us = 250;
    struct trial_result r = run_with(&request, &job);
    assert_int_equal(r.ending, TRIAL_COMPLETE);
    trial_result_release(&r);
}

static void each_way_to_end_is_told(void **state) {
    const struct stage *s = *state;
    static const struct {
        const char *command;
        enum trial_ending ending;
        const char *reason;
    } ways[] = {{TELL(1, 5) "echo bad luck >&2; exit 9", TRIAL_FAILED, "exit code 9"},
                {TELL(1, 5) "kill -KILL $$", TRIAL_FAILED, "signal 9"},
                {"echo first; echo no room >&2; echo; exit 3", TRIAL_INFEASIBLE, "no room"},
                {TELL(1, 5) "exit 3", TRIAL_INFEASIBLE, "time_us"},
                {"exit 3", TRIAL_INFEASIBLE, "gave no reason"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct job job = job_of(ways[i].command, NULL);
        struct trial_result r = run_with(&s->request, &job);
        assert_int_equal(r.ending, ways[i].ending);
        assert_contains(r.reason, ways[i].reason);
        trial_result_release(&r);
    }
}

static void a_first_job_that_tells_nothing_is_an_error_and_a_later_one_a_failure(void **state) {
    const struct stage *s = *state;
    struct error err;
    struct trial_result r;
    struct job job = job_of("echo hello", "took ([0-9]+)");
    assert_fails(job_run(&job, &s->request, 1, &r, &err), ST_INVALID, "\"took ([0-9]+)\"; its last line is \"hello\"");
    job.heard = true;
    r = run_with(&s->request, &job);
    assert_int_equal(r.ending, TRIAL_FAILED);
    trial_result_release(&r);
}

static void a_command_that_is_not_there_is_an_error(void **state) {
    const struct stage *s = *state;
    struct error err;
    struct trial_result r;
    struct job job = job_of("no-such-program-here", NULL);
    assert_fails(job_run(&job, &s->request, 1, &r, &err), ST_NOT_FOUND, "no-such-program-here");
    job_times_release(&job.times);
}

static void a_time_limit_ends_it_with_its_children(void **state) {
    const struct stage *s = *state;
    struct trial_request request = s->request;
    struct job job = job_of("setsid sleep 9753 & sleep 9753 & wait", NULL);
    request.time_limit_s = 0.2;
    struct trial_result r = run_with(&request, &job);
    assert_int_equal(r.ending, TRIAL_FAILED);
    assert_contains(r.reason, "not done after");
    trial_result_release(&r);
}

static atomic_int cancelled;

static void cancel_on_iteration(void *context, uint32_t index, double time_us) {
    (void)context, (void)time_us;
    cancelled = index == 1;
}

static void cancellation_ends_it(void **state) {
    const struct stage *s = *state;
    struct trial_request request = s->request;
    struct job job = job_of(TELL(1, 3) "sleep 60", NULL);
    cancelled = 0;
    request.cancel = &cancelled;
    request.on_iteration = cancel_on_iteration;
    struct trial_result r = run_with(&request, &job);
    assert_int_equal(r.ending, TRIAL_CANCELLED);
    assert_int_equal(r.n, 2);
    trial_result_release(&r);
}

static void what_is_beyond_its_form_is_infeasible_and_does_not_run(void **state) {
    const struct stage *s = *state;
    struct error err;
    char command[4200], witness[4150];
    snprintf(witness, sizeof witness, "%s/it-ran", test_dir());
    snprintf(command, sizeof command, "touch '%s'", witness);
    struct job job = job_of(command, NULL);
    assert_ok(export_limits_parse("byteps", NULL, &job.limits, &err));
    struct trial_result r = run_with(&s->request, &job);
    assert_int_equal(r.ending, TRIAL_INFEASIBLE);
    assert_contains(r.reason, "all-reduce");
    assert_int_not_equal(access(witness, F_OK), 0);
    trial_result_release(&r);
}

static void logs_are_kept_and_never_written_over(void **state) {
    const struct stage *s = *state;
    char logs[4096], path[4200];
    struct stat info;
    snprintf(logs, sizeof logs, "%s/logs", test_dir());
    for (int i = 0; i < 2; i++) {
        struct job job = job_of(TELL(1, 5), NULL);
        job.logs = logs;
        struct trial_result r = run_with(&s->request, &job);
        trial_result_release(&r);
    }
    static const char *const files[] = {"trial-7/output.log", "trial-7/strategy.json", "trial-7/ddp.json",
                                        "trial-7.2/output.log", "trial-7.2/horovod.env"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", logs, files[i]);
        assert_int_equal(stat(path, &info), 0);
        assert_true(info.st_size > 0);
    }
}

static bool is_in_folder(const char *logs, const char *name) {
    char path[4300];
    snprintf(path, sizeof path, "%s/trial-7/%s", logs, name);
    return access(path, F_OK) == 0;
}

/* Unless the job asked for the form and accepts what is lost. */
static void a_form_that_loses_shards_is_not_given_to_a_job(void **state) {
    const struct stage *s = *state;
    struct error err = {0};
    struct strategy sharded;
    char logs[2][4096];
    assert_ok(baselines_build(baselines_find("zero-1"), &s->model, &s->cluster, &sharded, &err));
    struct trial_request request = s->request;
    request.strategy = &sharded;
    for (int accepts = 0; accepts < 2; accepts++) {
        struct job job = job_of(TELL(1, 5), NULL);
        snprintf(logs[accepts], sizeof logs[accepts], "%s/sharded-%d", test_dir(), accepts);
        job.logs = logs[accepts];
        if (accepts)
            assert_ok(export_limits_parse("horovod", "sharded,groups,partition,algorithm", &job.limits, &err));
        struct trial_result r = run_with(&request, &job);
        assert_int_equal(r.ending, TRIAL_COMPLETE);
        assert_true(is_in_folder(logs[accepts], "strategy.json") && is_in_folder(logs[accepts], "deepspeed.json"));
        assert_int_equal(is_in_folder(logs[accepts], "horovod.env"), accepts);
        assert_false(is_in_folder(logs[accepts], "ddp.json"));
        assert_int_equal(is_in_folder(logs[accepts], "nccl.env"), accepts); /* goes beside horovod's */
        trial_result_release(&r);
    }
    struct job job = job_of(TELL(1, 5), NULL);
    job.n_forms = 1;
    job.forms[0] = exporters_find("horovod");
    struct trial_result r = run_with(&request, &job);
    assert_int_equal(r.ending, TRIAL_INFEASIBLE);
    assert_contains(r.reason, "horovod would change the memory that zero-1 needs: ");
    trial_result_release(&r);
    strategy_release(&sharded);
}

/* Between the making of its folder and the end of the job, at moments of all kinds. */
static void killed_at_any_moment_it_leaves_no_folder(void **state) {
    const struct stage *s = *state;
    struct rng rng;
    rng_split(&rng, test_seed(), 2);
    for (int i = 0; i < 60; i++) {
        pid_t caller = fork();
        if (caller == 0) {
            struct job job = job_of("sleep 20", NULL);
            struct trial_result result;
            (void)job_run(&job, &s->request, 7, &result, NULL);
            _exit(0);
        }
        clock_sleep_us(8000 * rng_uniform(&rng));
        kill(caller, SIGKILL);
        assert_true(descendants_vanish());
        assert_int_equal(entries_with(test_dir(), "syncopate-"), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_after_the_warm_up_are_kept_in_order),
        cmocka_unit_test(a_command_is_known_by_its_program_alone),
        cmocka_unit_test(what_is_published_is_asked_for),
        cmocka_unit_test(more_than_was_asked_for_is_left_out),
        cmocka_unit_test(fewer_count_when_they_are_enough_to_tell),
        cmocka_unit_test(the_first_to_tell_is_the_source),
        cmocka_unit_test(a_file_is_read_as_it_grows_and_to_its_unfinished_last_line),
        cmocka_unit_test(a_file_that_is_written_anew_each_time_counts_once),
        cmocka_unit_test(what_is_hopeless_is_ended_early),
        cmocka_unit_test(one_fast_iteration_keeps_hope),
        cmocka_unit_test(each_way_to_end_is_told),
        cmocka_unit_test(a_first_job_that_tells_nothing_is_an_error_and_a_later_one_a_failure),
        cmocka_unit_test(a_command_that_is_not_there_is_an_error),
        cmocka_unit_test(a_time_limit_ends_it_with_its_children),
        cmocka_unit_test(cancellation_ends_it),
        cmocka_unit_test(what_is_beyond_its_form_is_infeasible_and_does_not_run),
        cmocka_unit_test(logs_are_kept_and_never_written_over),
        cmocka_unit_test(a_form_that_loses_shards_is_not_given_to_a_job),
        cmocka_unit_test(killed_at_any_moment_it_leaves_no_folder),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
