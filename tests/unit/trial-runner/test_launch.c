/* What mpirun and srun are told, and what is made of what they say: programs in their place write down how they were
 * called and say what the test wants. Host files, variables, logs, the choice of the worker. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "tests/support/check.h"
#include "tests/unit/trial-runner/left_behind.h"
#include "trial-runner/hosts.h"
#include "trial-runner/lab.h"
#include "trial-runner/launch.h"
#include "trial-runner/passed.h"
#include "trial-runner/words.h"

#define NODES(device)                                                                                                  \
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"n\",\"count\":2,\"devices\":2,"         \
    "\"device\":\"" device "\",\"nic_gbit_per_s\":1,\"nic_latency_us\":50,\"device_link_gbyte_per_s\":10}]}"

static struct cluster cpus, gpus;

static void read_cluster(const char *text, struct cluster *out) {
    struct error err = {0};
    cJSON *json;
    assert_ok(json_parse(text, strlen(text), "cluster", &json, &err));
    assert_ok(cluster_read(json, "cluster", out, &err));
    cJSON_Delete(json);
}

/* mpirun and srun write their names and arguments, a line each, to "called", and do $SAYS. */
static int setup(void **state) {
    char path[8192], script[8192];
    snprintf(script, sizeof script, "#!/bin/bash\nprintf '%%s\\n' \"${0##*/}\" \"$@\" >%s/called\neval \"$SAYS\"\n",
             test_dir());
    if (chmod(test_file("mpirun", script), 0755) != 0 || chmod(test_file("srun", script), 0755) != 0)
        return -1;
    snprintf(path, sizeof path, "%s:%s", test_dir(), getenv("PATH"));
    setenv("PATH", path, 1);
    setenv("SYNCOPATE_WORKER", "/bin/true", 1);
    unsetenv("SLURM_JOB_ID");
    read_cluster(NODES("cpu"), &cpus);
    read_cluster(NODES("v100"), &gpus);
    return adopt_orphans(state);
}

static int teardown(void **state) {
    (void)state;
    cluster_release(&cpus);
    cluster_release(&gpus);
    return 0;
}

static bool count_event(void *context, const char *event, const cJSON *line) {
    (void)line;
    *(int *)context += strcmp(event, "ready") == 0;
    return true;
}

static enum status launch_on(const struct cluster *cluster, const struct launcher *launcher, const char *says,
                             int *events, struct launch_result *result, struct error *err) {
    static const char *const arguments[] = {"run", "--model", "m", NULL};
    static const bool serves[] = {true, false};
    struct launch_options options = {.cluster = cluster,
                                     .serves = serves,
                                     .arguments = arguments,
                                     .title = "a / title",
                                     .number = 7,
                                     .time_limit_s = 20,
                                     .on_event = count_event,
                                     .context = events};
    struct launcher with_worker = *launcher;
    with_worker.program = "/bin/true";
    options.launcher = &with_worker;
    *events = 0;
    setenv("SAYS", says, 1);
    const enum status status = launch_workers(&options, result, err);
    assert_true(no_descendants());
    return status;
}

static enum status launch(const struct launcher *launcher, const char *says, int *events, struct launch_result *result,
                          struct error *err) {
    return launch_on(&gpus, launcher, says, events, result, err);
}

/* Does the file of test_dir() have this line? */
static bool has_line(const char *file, const char *wanted) {
    char path[4096], line[4096];
    bool found = false;
    snprintf(path, sizeof path, "%s/%s", test_dir(), file);
    FILE *lines = fopen(path, "r");
    assert_non_null(lines);
    while (fgets(line, sizeof line, lines)) {
        line[strcspn(line, "\n")] = '\0';
        found = found || strcmp(line, wanted) == 0;
    }
    fclose(lines);
    return found;
}

static void mpirun_gets_the_hosts_of_a_file_and_a_rank_for_each_server(void **state) {
    (void)state;
    const char *file = test_file("hosts", "# rack 3\nfirst slots=99\n\nsecond # spare\n");
    const struct launcher launcher = {.kind = LAUNCHER_MPIRUN, .host_file = file, .launch_options = "--mca pml  ucx"};
    struct launch_result result;
    struct error err = {0};
    int events;
    assert_ok(launch(&launcher, "echo '{\"event\":\"ready\"}'", &events, &result, &err));
    assert_ok(launch_judge(&result, "it", &err));
    assert_int_equal(events, 1);
    assert_true(has_line("called", "mpirun"));
    assert_true(has_line("called", "first:3,second:2"));
    assert_true(has_line("called", "ucx"));
    assert_true(has_line("called", "/bin/true"));
}

static const char **second_name(void) {
    return &((struct node *)gpus.nodes)[1].name;
}

/* Arguments of mpirun become ssh's, and ssh runs what -oProxyCommand names. */
static void names_that_are_options_or_shell_words_reach_no_launcher(void **state) {
    (void)state;
    static const char *const names[] = {"-oProxyCommand=touch x",
                                        "--mca",
                                        "n;id",
                                        "n`id`",
                                        "$(id)",
                                        "a,b",
                                        "n:4",
                                        "a b",
                                        "n/x",
                                        "n[1-4]",
                                        "a\"b",
                                        "@n",
                                        "user@-oProxyCommand=x",
                                        "u@h@h2",
                                        "n\xc2\x9bm",
                                        "-x@n",
                                        ".hidden",
                                        "u@"};
    static const enum launcher_kind places[] = {LAUNCHER_MPIRUN, LAUNCHER_SLURM};
    char called[4200], text[300];
    struct launch_result result;
    struct error err = {0};
    int events;
    snprintf(called, sizeof called, "%s/called", test_dir());
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < 2; k++) {
            const char **second = second_name(), *kept = *second;
            *second = names[i];
            unlink(called);
            assert_fails(launch(&(struct launcher){.kind = places[k]}, "", &events, &result, &err), ST_INVALID,
                         "is no name of a host");
            *second = kept;
            snprintf(text, sizeof text, "n1\n%s\n", names[i]);
            const char *file = test_file("odd", text);
            if (!strchr(names[i], ' ')) /* only the first word of a line counts */
                assert_fails(
                    launch(&(struct launcher){.kind = places[k], .host_file = file}, "", &events, &result, &err),
                    ST_INVALID, "/odd: ");
            assert_int_equal(access(called, F_OK), -1);
        }
}

static void names_that_hosts_have_are_taken(void **state) {
    (void)state;
    static const char *const names[] = {"n1", "node-7.rack_3.example", "10.0.0.7", "alice@n2", "9"};
    struct error err = {0};
    char longest[300];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_ok(hosts_check_name(names[i], &err));
    memset(longest, 'a', sizeof longest);
    longest[256] = '\0';
    assert_fails(hosts_check_name(longest, &err), ST_INVALID, "no name of a host");
    assert_ok(hosts_check_name(longest + 1, &err));
}

/* Here no name is an argument: a cluster with odd names can still be tried on this machine. */
static void locally_nodes_may_be_called_anything(void **state) {
    (void)state;
    struct launch_result result;
    struct error err = {0};
    int events;
    const char **second = second_name(), *kept = *second;
    *second = "-oProxyCommand=x";
    assert_ok(launch(&(struct launcher){.kind = LAUNCHER_LOCAL}, "", &events, &result, &err));
    *second = kept;
    assert_true(has_line("called", "mpirun"));
    assert_false(has_line("called", "-oProxyCommand=x"));
}

static void a_gpu_is_shared_wherever_ranks_run(void **state) {
    (void)state;
    static const enum launcher_kind places[] = {LAUNCHER_LOCAL, LAUNCHER_MPIRUN};
    for (int i = 0; i < 2; i++) {
        const struct launcher launcher = {.kind = places[i], .worker = TRIAL_WORKER_NCCL, .share_gpu = true};
        struct launch_result result;
        struct error err = {0};
        int events;
        assert_ok(launch(&launcher, "", &events, &result, &err));
        assert_true(has_line("called", "SYNCOPATE_SHARE_GPU=1"));
    }
}

static void srun_lines_are_read_behind_their_labels(void **state) {
    (void)state;
    const struct launcher launcher = {.kind = LAUNCHER_SLURM, .worker = TRIAL_WORKER_NCCL, .partition = "p"};
    struct launch_result result;
    struct error err = {0};
    int events;
    assert_ok(launch(&launcher, "echo '12: {\"event\":\"ready\"}'; echo ' 3: {\"event\":\"ready\"}'; echo '3: words'",
                     &events, &result, &err));
    assert_int_equal(events, 2);
    assert_true(has_line("called", "srun"));
    assert_true(has_line("called", "--nodelist=n1,n1,n1,n2,n2"));
    assert_true(has_line("called", "--partition=p"));
    assert_true(has_line("called", "--gpus-per-node=2"));
}

static void what_ranks_say_is_kept_and_the_reason_names_the_file(void **state) {
    (void)state;
    char logs[4096];
    snprintf(logs, sizeof logs, "%s/logs", test_dir());
    const struct launcher launcher = {.kind = LAUNCHER_MPIRUN, .logs = logs};
    struct launch_result result;
    struct error err = {0};
    int events;
    assert_ok(transcript_check_folder(logs, &err));
    assert_ok(launch(&launcher, "echo noise; echo '{\"event\":\"ready\"}'; echo word of a rank >&2; exit 5", &events,
                     &result, &err));
    assert_fails(launch_judge(&result, "the trial", &err), ST_TRIAL, "exit code 5: word of a rank (log: ");
    assert_contains(ERROR_TEXT(&err), "/logs/0007-a___title.log)");
    assert_true(has_line("logs/0007-a___title.log", "noise"));
    assert_true(has_line("logs/0007-a___title.log", "word of a rank"));
    assert_false(has_line("logs/0007-a___title.log", "{\"event\":\"ready\"}"));
    assert_ok(launch(&launcher, "echo again", &events, &result, &err));
    assert_true(has_line("logs/0007-a___title-2.log", "again"));
}

static void a_folder_for_logs_that_takes_no_files_is_an_error(void **state) {
    (void)state;
    struct error err = {0};
    assert_fails(transcript_check_folder(test_file("file", ""), &err), ST_ENVIRONMENT, "is no folder");
    assert_fails(transcript_check_folder("/nowhere/at/all", &err), ST_ENVIRONMENT, "cannot be made");
    const struct launcher launcher = {.kind = LAUNCHER_MPIRUN, .logs = "/nowhere/at/all"};
    struct launch_result result;
    int events;
    assert_fails(launch(&launcher, "", &events, &result, &err), ST_ENVIRONMENT, "cannot write /nowhere/at/all/0007-");
}

/* What ends a session, because no other strategy would do better, and what only ends a trial. */
static void launchers_that_refuse_are_told_from_ranks_that_die(void **state) {
    (void)state;
    static const struct {
        enum launcher_kind place;
        const char *says;
        bool refused;
        const char *reason;
    } cases[] = {
        {LAUNCHER_MPIRUN, "echo 'ssh: Could not resolve hostname x' >&2; echo more >&2; exit 1", true,
         "no rank could be started on n1 and the other hosts: ssh: Could not resolve hostname x"},
        {LAUNCHER_MPIRUN, "echo 'mpirun noticed that process rank 1 exited on signal 9' >&2; seq 500 >&2; exit 1",
         false, "the trial failed: process rank 1 exited on signal 9"},
        {LAUNCHER_SLURM, "echo 'srun: error: Unable to create step for job 5: Invalid node name specified' >&2; exit 1",
         true, "Invalid node name"},
        {LAUNCHER_SLURM, "echo '0: up'; echo 'srun: error: n2: task 3: Killed' >&2; seq 500 >&2; exit 137", false,
         "the trial failed: srun: error: n2: task 3: Killed"},
        {LAUNCHER_SLURM, "echo 'a: task of mine failed' >&2; exit 1", false, "exit code 1: a: task of mine failed"},
        {LAUNCHER_SLURM, "echo 'srun: error: n1: task 0: Exited' >&2; echo 'srun: fatal: no' >&2; exit 1", true,
         "srun: fatal: no"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct launcher launcher = {.kind = cases[i].place};
        struct launch_result result;
        struct error err = {0};
        int events;
        const enum status status = launch(&launcher, cases[i].says, &events, &result, &err);
        if (cases[i].refused) {
            assert_fails(status, ST_ENVIRONMENT, cases[i].reason);
            continue;
        }
        assert_ok(status);
        assert_fails(launch_judge(&result, "the trial", &err), ST_TRIAL, cases[i].reason);
    }
}

static void host_files_must_have_a_host_for_each_node(void **state) {
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    const char **names;
    assert_ok(hosts_read_file(test_file("two", "a\nb c d\n"), 2, &arena, &names, &err));
    assert_string_equal(names[1], "b");
    assert_fails(hosts_read_file(test_file("three", "a\nb\nc"), 2, &arena, &names, &err), ST_INVALID, "names 3 hosts");
    assert_fails(hosts_read_file("/nowhere", 2, &arena, &names, &err), ST_NOT_FOUND, "/nowhere");
    arena_release(&arena);
}

static bool is_passed(const char *const *names, const char *name) {
    bool found = false;
    for (; *names; names++)
        found = found || strcmp(*names, name) == 0;
    return found;
}

static void only_variables_that_ranks_need_are_passed(void **state) {
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    const char *const *names;
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    setenv("TMPDIR", test_dir(), 1);
    setenv("MY_DATA", "x", 1);
    setenv("SECRET", "x", 1);
    unsetenv("UNSET");
    assert_ok(passed_names("UNSET,MY_DATA", &arena, &names, &err));
    assert_true(is_passed(names, "NCCL_DEBUG"));
    assert_true(is_passed(names, "MY_DATA"));
    assert_false(is_passed(names, "SECRET"));
    assert_false(is_passed(names, "UNSET"));
    assert_false(is_passed(names, "TMPDIR"));
    assert_false(is_passed(names, "CUDA_VISIBLE_DEVICES"));
    assert_ok(passed_names("CUDA_VISIBLE_DEVICES", &arena, &names, &err));
    assert_true(is_passed(names, "CUDA_VISIBLE_DEVICES"));
    assert_fails(passed_names("A,,B", &arena, &names, &err), ST_INVALID, "\"\" is no name");
    assert_fails(passed_names("A=1", &arena, &names, &err), ST_INVALID, "\"A=1\" is no name");
    arena_release(&arena);
    unsetenv("TMPDIR");
}

/* SYNCOPATE_WORKER names a program here, so NCCL is not chosen by itself. */
static void the_worker_follows_from_word_devices_and_sharing(void **state) {
    (void)state;
    struct error err = {0};
    struct launcher launcher = {.kind = LAUNCHER_SLURM};
    assert_ok(launcher_choose(&launcher, NULL, &gpus, &err));
    assert_int_equal(launcher.worker, TRIAL_WORKER_MPI);
    assert_string_equal(launcher.program, "/bin/true");
    assert_ok(launcher_choose(&launcher, "nccl", &cpus, &err));
    assert_int_equal(launcher.worker, TRIAL_WORKER_NCCL);
    assert_ok(launcher_choose(&launcher, "/opt/worker", &cpus, &err));
    assert_int_equal(launcher.worker, TRIAL_WORKER_MPI);
    assert_string_equal(launcher.program, "/opt/worker");
    assert_ok(launcher_choose(&launcher, "/opt/syncopate-worker-nccl", &cpus, &err));
    assert_int_equal(launcher.worker, TRIAL_WORKER_NCCL);
    assert_string_equal(launcher.program, "/opt/syncopate-worker-nccl");
    assert_ok(launcher_choose(&launcher, "nccl/worker", &cpus, &err));
    assert_int_equal(launcher.worker, TRIAL_WORKER_MPI);
    launcher.share_gpu = true;
    assert_ok(launcher_choose(&launcher, NULL, &cpus, &err));
    assert_int_equal(launcher.worker, TRIAL_WORKER_NCCL);
    assert_string_equal(launcher.program, "/bin/true");
    assert_fails(launcher_choose(&launcher, "mpi", &gpus, &err), ST_USAGE, "--share-gpu is for --worker nccl");
    assert_fails(launcher_choose(&launcher, "gloo", &gpus, &err), ST_USAGE, "\"gloo\" is none of mpi, nccl");
}

static void what_is_typed_beats_the_variable(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    const char *path;
    struct launcher launcher = {.kind = LAUNCHER_LOCAL};
    assert_ok(launcher_choose(&launcher, "mpi", &cpus, &err));
    assert_null(launcher.program);
    assert_fails(launch_worker_path(&launcher, &arena, &path, &err), ST_NOT_FOUND, "/syncopate-worker-mpi;");
    setenv("SYNCOPATE_WORKER", "nccl", 1);
    assert_ok(launcher_choose(&launcher, NULL, &cpus, &err));
    assert_int_equal(launcher.worker, TRIAL_WORKER_NCCL);
    assert_ok(launcher_choose(&launcher, "/bin/sh", &cpus, &err));
    assert_int_equal(launcher.worker, TRIAL_WORKER_MPI);
    assert_ok(launch_worker_path(&launcher, &arena, &path, &err));
    assert_string_equal(path, "/bin/sh");
    setenv("SYNCOPATE_WORKER", "/bin/true", 1);
    arena_release(&arena);
}

/* Beside this program lie a worker for MPI and one for NCCL. */
static void gpus_of_other_machines_are_moved_by_nccl_where_its_worker_is(void **state) {
    (void)state;
    char self[4096], path[4200];
    struct error err = {0};
    struct launcher remote = {.kind = LAUNCHER_MPIRUN}, local = {.kind = LAUNCHER_LOCAL};
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(path, sizeof path, "%s/syncopate-worker-nccl", self);
    unsetenv("SYNCOPATE_WORKER");
    assert_ok(launcher_choose(&remote, NULL, &gpus, &err));
    assert_int_equal(remote.worker, TRIAL_WORKER_MPI);
    assert_int_equal(symlink("/bin/true", path), 0);
    assert_ok(launcher_choose(&remote, NULL, &gpus, &err));
    assert_int_equal(remote.worker, TRIAL_WORKER_NCCL);
    assert_true(remote.for_gpus);
    assert_ok(launcher_choose(&local, NULL, &gpus, &err));
    assert_int_equal(local.worker, TRIAL_WORKER_MPI);
    assert_ok(launcher_choose(&remote, NULL, &cpus, &err));
    assert_int_equal(remote.worker, TRIAL_WORKER_MPI);
    assert_int_equal(unlink(path), 0);
    setenv("SYNCOPATE_WORKER", "/bin/true", 1);
}

static void the_lab_sees_its_input_wherever_TMPDIR_is(void **state) {
    (void)state;
    const struct launcher lab = {.kind = LAUNCHER_LAB}, local = {.kind = LAUNCHER_LOCAL};
    const char *before = getenv("TMPDIR");
    char *kept = before ? strdup(before) : NULL;
    setenv("TMPDIR", "/dev/shm/a", 1);
    assert_string_equal(launch_scratch_parent(&lab), "/tmp");
    assert_null(launch_scratch_parent(&local));
    setenv("TMPDIR", "/var/tmp", 1);
    assert_null(launch_scratch_parent(&lab));
    setenv("TMPDIR", "/runner/tmp", 1);
    assert_null(launch_scratch_parent(&lab));
    char link[4200];
    snprintf(link, sizeof link, "%s/memory", test_dir());
    assert_int_equal(symlink("/dev/shm", link), 0);
    setenv("TMPDIR", link, 1);
    assert_string_equal(launch_scratch_parent(&lab), "/tmp");
    unsetenv("TMPDIR");
    assert_null(launch_scratch_parent(&lab));
    if (kept)
        setenv("TMPDIR", kept, 1);
    free(kept);
}

/* Whether ranks are told that all they tell each other goes over sockets. */
static bool is_told_of_sockets(enum launcher_kind kind, enum trial_worker worker) {
    const struct launcher launcher = {.kind = kind, .worker = worker};
    struct launch_result result;
    struct error err = {0};
    struct cluster cluster;
    int events;
    read_cluster("{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"n\",\"count\":2,"
                 "\"device\":\"cpu\",\"nic_gbit_per_s\":1}]}",
                 &cluster);
    assert_ok(launch_on(&cluster, &launcher, "", &events, &result, &err));
    cluster_release(&cluster);
    assert_true(has_line("called", "/bin/true"));
    return has_line("called", "--sockets");
}

static void only_in_the_lab_ranks_over_mpi_sleep_until_a_socket_moves(void **state) {
    (void)state;
    struct error err;
    assert_false(is_told_of_sockets(LAUNCHER_MPIRUN, TRIAL_WORKER_MPI));
    if (lab_check(&err)) {
        print_message("%s\n", ERROR_TEXT(&err));
        skip();
    }
    assert_true(is_told_of_sockets(LAUNCHER_LAB, TRIAL_WORKER_MPI));
    assert_false(is_told_of_sockets(LAUNCHER_LAB, TRIAL_WORKER_NCCL));
}

static void words_grow_and_remember_a_failure(void **state) {
    (void)state;
    struct arena arena = {0};
    struct words words = {.arena = &arena};
    words_add_text(&words, "  one two\tthree\n");
    assert_int_equal(words_count(words.items), 3);
    for (int i = 0; i < 1000; i++)
        words_add(&words, arena_printf(&arena, "%d", i));
    assert_int_equal(words.n, 1003);
    assert_string_equal(words.items[2], "three");
    assert_string_equal(words.items[1002], "999");
    assert_null(words.items[1003]);
    words_add(&words, NULL);
    words_add(&words, "later");
    assert_true(words.failed);
    assert_int_equal(words.n, 1003);
    arena_release(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mpirun_gets_the_hosts_of_a_file_and_a_rank_for_each_server),
        cmocka_unit_test(names_that_are_options_or_shell_words_reach_no_launcher),
        cmocka_unit_test(names_that_hosts_have_are_taken),
        cmocka_unit_test(locally_nodes_may_be_called_anything),
        cmocka_unit_test(a_gpu_is_shared_wherever_ranks_run),
        cmocka_unit_test(srun_lines_are_read_behind_their_labels),
        cmocka_unit_test(what_ranks_say_is_kept_and_the_reason_names_the_file),
        cmocka_unit_test(a_folder_for_logs_that_takes_no_files_is_an_error),
        cmocka_unit_test(launchers_that_refuse_are_told_from_ranks_that_die),
        cmocka_unit_test(host_files_must_have_a_host_for_each_node),
        cmocka_unit_test(only_variables_that_ranks_need_are_passed),
        cmocka_unit_test(the_worker_follows_from_word_devices_and_sharing),
        cmocka_unit_test(what_is_typed_beats_the_variable),
        cmocka_unit_test(gpus_of_other_machines_are_moved_by_nccl_where_its_worker_is),
        cmocka_unit_test(the_lab_sees_its_input_wherever_TMPDIR_is),
        cmocka_unit_test(only_in_the_lab_ranks_over_mpi_sleep_until_a_socket_moves),
        cmocka_unit_test(words_grow_and_remember_a_failure),
    };
    return cmocka_run_group_tests_name("launch", tests, setup, teardown);
}
