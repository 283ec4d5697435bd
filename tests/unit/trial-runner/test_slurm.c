/* srun's command lines, and what a program in its place sees of an end. With SYNCOPATE_TEST_SLURM set, in place of
 * these real steps on a Slurm with the nodes n1 and n2: tests/cli/slurm.sh makes one and asks for them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/support/check.h"
#include "tests/unit/trial-runner/left_behind.h"
#include "trial-runner/slurm.h"
#include "trial-runner/words.h"

static const struct host hosts[] = {{"b7", 2}, {"a1", 1}};

static bool has(const char *const *line, const char *word) {
    for (; *line; line++)
        if (strcmp(*line, word) == 0)
            return true;
    return false;
}

static bool has_prefix(const char *const *line, const char *prefix) {
    for (; *line; line++)
        if (strncmp(*line, prefix, strlen(prefix)) == 0)
            return true;
    return false;
}

static void tasks_go_host_by_host_in_the_order_of_the_cluster(void **state) {
    (void)state;
    const char *const argv[] = {"worker", "run", NULL}, *const export[] = {"NCCL_DEBUG", "X=1", NULL};
    const struct slurm_config config = {.n_hosts = 2,
                                        .hosts = hosts,
                                        .allocated = true,
                                        .gpus_per_node = 2,
                                        .time_limit_s = 100,
                                        .partition = "p",
                                        .export = export,
                                        .argv = argv};
    struct arena arena = {0};
    struct error err = {0};
    const char *const *line;
    assert_ok(slurm_command(&config, &arena, &line, &err));
    assert_string_equal(line[0], "srun");
    assert_true(has(line, "--nodelist=b7,b7,a1"));
    assert_true(has(line, "--distribution=arbitrary"));
    assert_true(has(line, "--nodes=2"));
    assert_true(has(line, "--ntasks=3"));
    assert_true(has(line, "--time=3"));
    assert_true(has(line, "--export=PATH,HOME,USER,OMPI_MCA_mpi_yield_when_idle=1,NCCL_DEBUG,X=1"));
    assert_string_equal(line[words_count(line) - 2], "worker");
    assert_false(has_prefix(line, "--partition"));
    assert_false(has_prefix(line, "--gpus"));
    assert_false(has(line, "--exclusive"));
    arena_release(&arena);
}

static void an_allocation_of_its_own_asks_for_whole_nodes_and_their_gpus(void **state) {
    (void)state;
    const char *const argv[] = {"worker", NULL};
    struct slurm_config config = {
        .n_hosts = 2, .hosts = hosts, .gpus_per_node = 2, .partition = "p", .account = "a", .argv = argv};
    struct arena arena = {0};
    struct error err = {0};
    const char *const *line;
    assert_ok(slurm_command(&config, &arena, &line, &err));
    assert_true(has(line, "--exclusive"));
    assert_true(has(line, "--partition=p"));
    assert_true(has(line, "--account=a"));
    assert_true(has(line, "--gpus-per-node=2"));
    assert_false(has_prefix(line, "--time"));
    config.options = " --gres=gpu:4\t--qos=high ";
    assert_ok(slurm_command(&config, &arena, &line, &err));
    assert_false(has_prefix(line, "--gpus"));
    const size_t n = words_count(line);
    assert_string_equal(line[n - 3], "--gres=gpu:4");
    assert_string_equal(line[n - 2], "--qos=high");
    arena_release(&arena);
}

static void hosts_that_srun_would_read_otherwise_are_refused(void **state) {
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    const char *const argv[] = {"worker", NULL}, *const none[] = {NULL}, *const * line;
    const struct host several = {"n[1-4]", 1}, idle = {"n1", 0}, many = {"a-node-with-a-name", 10000};
    struct slurm_config config = {.n_hosts = 1, .hosts = &several, .argv = argv};
    assert_fails(slurm_command(&config, &arena, &line, &err), ST_INVALID, "\"n[1-4]\" is no name");
    config.hosts = &idle;
    assert_fails(slurm_command(&config, &arena, &line, &err), ST_INVALID, "no slots");
    config.hosts = &many;
    assert_fails(slurm_command(&config, &arena, &line, &err), ST_INVALID, "10000 ranks");
    config.n_hosts = 0;
    assert_fails(slurm_command(&config, &arena, &line, &err), ST_INVALID, "no hosts");
    config = (struct slurm_config){.n_hosts = 1, .hosts = hosts, .argv = none};
    assert_fails(slurm_command(&config, &arena, &line, &err), ST_INVALID, "no program");
    arena_release(&arena);
}

static void labels_are_told_from_text(void **state) {
    (void)state;
    assert_int_equal(slurm_label_length("0: {\"event\""), 3);
    assert_int_equal(slurm_label_length(" 12: text"), 5);
    assert_int_equal(slurm_label_length("{\"a\": 1}"), 0);
    assert_int_equal(slurm_label_length("12:00 h"), 0);
    assert_int_equal(slurm_label_length("srun: error"), 0);
    assert_int_equal(slurm_label_length(""), 0);
}

/* A program in srun's place that takes SIGTERM as srun does: it ends its step, here a file, and itself. */
static const char *stand_in(void) {
    char script[8192];
    snprintf(script, sizeof script,
             "#!/bin/bash\ntrap 'rm %s/step; exit 1' TERM\ntouch %s/step\n[ $1 = quiet ] && sleep 1.2\necho up\n"
             "[ $1 = alone ] && kill -9 $PPID\n"
             "while :; do sleep 0.05; done\n",
             test_dir(), test_dir());
    const char *path = test_file("fake-srun", script);
    assert_int_equal(chmod(path, 0755), 0);
    return path;
}

static void run_stand_in(bool allocated, const char *how, const struct process_options *options,
                         struct process_result *result) {
    struct error err = {0};
    const char *const argv[] = {"worker", NULL};
    const char *const command[] = {stand_in(), how, NULL};
    const struct slurm_config config = {.n_hosts = 1, .hosts = hosts, .allocated = allocated, .argv = argv};
    assert_ok(slurm_run(&config, command, options, result, &err));
    assert_true(no_descendants());
}

static bool is_step_left(void) {
    return entries_with(test_dir(), "step") > 0;
}

static void a_time_limit_lets_srun_end_its_step(void **state) {
    (void)state;
    struct process_result result;
    run_stand_in(true, "at-once", &(struct process_options){.timeout_s = 0.4}, &result);
    assert_int_equal(result.ending, PROCESS_TIMED_OUT);
    assert_false(is_step_left());
}

static void a_cancelled_run_lets_srun_end_its_step(void **state) {
    (void)state;
    const atomic_int cancel = 1;
    struct process_result result;
    run_stand_in(true, "at-once", &(struct process_options){.cancel = &cancel}, &result);
    assert_int_equal(result.ending, PROCESS_CANCELLED);
    assert_false(is_step_left());
}

static void time_in_the_queue_counts_only_within_an_allocation(void **state) {
    (void)state;
    struct process_result result;
    const struct process_options options = {.timeout_s = 0.4, .first_line_timeout_s = 0.7};
    run_stand_in(true, "quiet", &options, &result);
    assert_int_equal(result.ending, PROCESS_TIMED_OUT);
    assert_true(result.first_line_s < 0);
    run_stand_in(false, "quiet", &options, &result);
    assert_int_equal(result.ending, PROCESS_TIMED_OUT);
    assert_true(result.first_line_s > 1.0);
    assert_true(result.wall_s > 1.5);
}

static void a_guard_that_is_killed_still_lets_srun_end_its_step(void **state) {
    (void)state;
    struct process_result result;
    struct error err = {0};
    const char *const argv[] = {"worker", NULL};
    const char *const command[] = {stand_in(), "alone", NULL};
    const struct slurm_config config = {.n_hosts = 1, .hosts = hosts, .allocated = true, .argv = argv};
    const struct process_options options = {.timeout_s = 5};
    assert_fails(slurm_run(&config, command, &options, &result, &err), ST_ENVIRONMENT, "was killed");
    assert_true(descendants_vanish());
    assert_false(is_step_left());
}

/* ---- real steps ---- */

/* Nothing of ours stands in `squeue ARGUMENT`, within five seconds. */
static bool queue_empties(const char *arguments) {
    char command[128];
    snprintf(command, sizeof command, "[ -z \"$(squeue -h %s)\" ]", arguments);
    for (int i = 0; i < 50; i++) {
        if (system(command) == 0)
            return true;
        clock_sleep_us(100000);
    }
    return false;
}

static void run_real(const char *script, const struct process_options *options, struct process_result *result) {
    static const struct host nodes[] = {{"n1", 1}, {"n2", 2}};
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    const struct slurm_config config = {
        .n_hosts = 2, .hosts = nodes, .allocated = slurm_allocated(), .time_limit_s = 30, .argv = argv};
    struct arena arena = {0};
    struct error err = {0};
    const char *const *command;
    assert_ok(slurm_command(&config, &arena, &command, &err));
    assert_ok(slurm_run(&config, command, options, result, &err));
    arena_release(&arena);
}

static void a_time_limit_ends_the_step(void **state) {
    (void)state;
    struct process_result result;
    run_real("echo up; sleep 9751", &(struct process_options){.timeout_s = 1}, &result);
    assert_int_equal(result.ending, PROCESS_TIMED_OUT);
    assert_true(no_descendants());
    assert_true(queue_empties("-s -o %i"));
    assert_true(system("pgrep -fx 'sleep 9751' >/dev/null") != 0);
}

static void a_job_that_waits_has_no_limit_until_it_runs(void **state) {
    (void)state;
    struct process_result result;
    assert_int_equal(system("srun -Q --exclusive -N2 sleep 3 & sleep 0.5"), 0);
    run_real("echo up", &(struct process_options){.timeout_s = 2, .first_line_timeout_s = 1}, &result);
    assert_int_equal(result.ending, PROCESS_EXITED);
    assert_int_equal(result.exit_code, 0);
    assert_true(result.first_line_s > 2);
    assert_true(descendants_vanish());
}

static void a_waiting_job_that_is_cancelled_leaves_the_queue(void **state) {
    (void)state;
    const atomic_int cancel = 1;
    struct process_result result;
    assert_int_equal(system("srun -Q --exclusive -N2 sleep 2 & sleep 0.5"), 0);
    run_real("echo up", &(struct process_options){.cancel = &cancel}, &result);
    assert_int_equal(result.ending, PROCESS_CANCELLED);
    assert_true(descendants_vanish());
    assert_true(queue_empties("-o %i"));
}

int main(void) {
    const struct CMUnitTest tests[] =
        {
            cmocka_unit_test(tasks_go_host_by_host_in_the_order_of_the_cluster),
            cmocka_unit_test(an_allocation_of_its_own_asks_for_whole_nodes_and_their_gpus),
            cmocka_unit_test(hosts_that_srun_would_read_otherwise_are_refused),
            cmocka_unit_test(labels_are_told_from_text),
            cmocka_unit_test(a_time_limit_lets_srun_end_its_step),
            cmocka_unit_test(a_cancelled_run_lets_srun_end_its_step),
            cmocka_unit_test(time_in_the_queue_counts_only_within_an_allocation),
            cmocka_unit_test(a_guard_that_is_killed_still_lets_srun_end_its_step),
        },
                            real[] = {
                                cmocka_unit_test(a_time_limit_ends_the_step),
                                cmocka_unit_test(a_job_that_waits_has_no_limit_until_it_runs),
                                cmocka_unit_test(a_waiting_job_that_is_cancelled_leaves_the_queue),
                            };
    if (getenv("SYNCOPATE_TEST_SLURM"))
        return cmocka_run_group_tests_name("slurm, real", real, adopt_orphans, NULL);
    return cmocka_run_group_tests_name("slurm", tests, adopt_orphans, NULL);
}
