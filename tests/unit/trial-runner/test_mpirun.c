/* mpirun's command lines, and real starts of a small MPI program here and in a lab. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/check.h"
#include "tests/unit/trial-runner/left_behind.h"
#include "trial-runner/mpirun.h"

static const char program_source[] =
    "#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n"
    "int main(int argc, char **argv) {\n"
    "  MPI_Init(&argc, &argv);\n"
    "  int rank, n; char host[64];\n"
    "  MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &n); gethostname(host, 64);\n"
    "  double one = rank + 1, sum = 0;\n"
    "  MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);\n"
    "  if (argc > 1 && rank == n - 1) abort();\n"
    "  printf(\"%d of %d on %s sum %g\\n\", rank, n, host, sum); fflush(stdout);\n"
    "  char map[4096]; FILE *maps = fopen(\"/proc/self/maps\", \"r\");\n"
    "  while (fgets(map, sizeof map, maps)) if (strstr(map, \"vader_segment\")) printf(\"segment %s\", strchr(map, "
    "'/'));\n"
    "  MPI_Finalize();\n"
    "}\n";

static char program[4096]; /* "" when mpicc or mpirun is missing */
static bool lab_possible;

static int setup(void **state) {
    (void)state;
    if (adopt_orphans(state) != 0)
        return -1;
    char command[8192];
    const char *source = test_file("hello.c", program_source);
    snprintf(program, sizeof program, "%s/hello", test_dir());
    snprintf(command, sizeof command, "command -v mpirun >/dev/null && mpicc -o %s %s", program, source);
    if (system(command) != 0)
        program[0] = 0;
    lab_possible = test_lab_possible();
    return 0;
}

struct heard {
    int lines, segments, strays; /* shared memory in our folder, and elsewhere */
    bool host[5];                /* line "… on nI …" came */
    double sum;
};

static bool hear(void *context, enum process_stream stream, const char *line, size_t n) {
    struct heard *heard = context;
    int rank, ranks;
    char host[64];
    (void)n;
    if (strncmp(line, "segment ", 8) == 0)
        *(strncmp(line + 8, test_dir(), strlen(test_dir())) == 0 ? &heard->segments : &heard->strays) += 1;
    if (stream == PROCESS_STDOUT && sscanf(line, "%d of %d on %63s sum %lf", &rank, &ranks, host, &heard->sum) == 4) {
        heard->lines++;
        if (host[0] == 'n' && host[1] >= '1' && host[1] <= '4' && !host[2])
            heard->host[host[1] - '0'] = true;
    }
    return true;
}

static enum status run_it(const struct mpirun_config *config, const struct lab_config *lab,
                          const struct process_options *options, struct process_result *out, unsigned *starts,
                          struct error *err) {
    struct arena arena = {0};
    const char *const *line;
    enum status status = mpirun_command(config, &arena, &line, err);
    if (status == ST_OK)
        status = mpirun_run(config, line, lab, options, out, starts, err);
    arena_release(&arena);
    return status;
}

static const struct host hosts[] = {{"n1", 2}, {"n2", 1}};

static bool line_has(const char *const *argv, const char *word, const char *next) {
    for (; *argv; argv++)
        if (strcmp(*argv, word) == 0 && (!next || (argv[1] && strcmp(argv[1], next) == 0)))
            return true;
    return false;
}

static void a_lab_run_names_its_hosts_agent_and_subnet(void **state) {
    (void)state;
    const char *const argv[] = {"worker", "--plan", "p", NULL}, *const export[] = {"OMP_NUM_THREADS", NULL};
    struct mpirun_config config = {.place = MPIRUN_LAB, .n_hosts = 2, .hosts = hosts, .export = export, .argv = argv};
    struct arena arena = {0};
    struct error err = {0};
    const char *const *line;
    assert_ok(mpirun_command(&config, &arena, &line, &err));
    assert_string_equal(line[0], "mpirun");
    assert_true(line_has(line, "--host", "n1:2,n2:1"));
    assert_true(line_has(line, "plm_rsh_agent", LAB_AGENT));
    assert_true(line_has(line, "btl_tcp_if_include", "198.18.0.0/15"));
    assert_true(line_has(line, "pml", "ob1"));
    assert_true(line_has(line, "-x", "OMP_NUM_THREADS"));
    assert_true(line_has(line, "worker", "--plan"));
    assert_int_equal(line_has(line, "--allow-run-as-root", NULL), geteuid() == 0);
    arena_release(&arena);
}

static void a_run_on_other_hosts_leaves_the_network_to_mpi(void **state) {
    (void)state;
    const char *const argv[] = {"worker", NULL};
    struct mpirun_config config = {.place = MPIRUN_HOSTS, .n_hosts = 2, .hosts = hosts, .argv = argv};
    struct arena arena = {0};
    struct error err = {0};
    const char *const *line;
    assert_ok(mpirun_command(&config, &arena, &line, &err));
    assert_true(line_has(line, "--host", "n1:2,n2:1"));
    assert_false(line_has(line, "btl", NULL));
    assert_false(line_has(line, "pml", NULL));
    assert_false(line_has(line, "btl_tcp_if_include", NULL));
    assert_false(line_has(line, "plm_rsh_agent", NULL));
    arena_release(&arena);
}

static void runs_without_hosts_slots_or_program_are_refused(void **state) {
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    const char *const argv[] = {"worker", NULL}, *const none[] = {NULL}, *const * line;
    struct host idle = {"n1", 0};
    struct mpirun_config config = {.place = MPIRUN_LOCAL, .argv = argv};
    assert_fails(mpirun_command(&config, &arena, &line, &err), ST_INVALID, "no hosts");
    config = (struct mpirun_config){.n_hosts = 1, .hosts = &idle, .argv = argv};
    assert_fails(mpirun_command(&config, &arena, &line, &err), ST_INVALID, "no slots");
    config = (struct mpirun_config){.n_hosts = 2, .hosts = hosts, .argv = none};
    assert_fails(mpirun_command(&config, &arena, &line, &err), ST_INVALID, "no program");
    arena_release(&arena);
}

static void ranks_here_add_up_and_leave_nothing(void **state) {
    (void)state;
    if (!*program)
        skip();
    const char *const argv[] = {program, NULL};
    struct heard heard = {0};
    struct mpirun_config config = {.place = MPIRUN_LOCAL, .n_hosts = 2, .hosts = hosts, .argv = argv};
    struct process_options options = {.timeout_s = 60, .on_line = hear, .context = &heard};
    struct process_result result;
    struct error err = {0};
    setenv("TMPDIR", test_dir(), 1);
    enum status status = run_it(&config, NULL, &options, &result, NULL, &err);
    unsetenv("TMPDIR");
    assert_ok(status);
    assert_ok(process_judge(&result, "mpirun", &err));
    assert_int_equal(heard.lines, 3);
    assert_true(heard.segments > 0);
    assert_int_equal(heard.strays, 0);
    assert_close(heard.sum, 6.0, 1e-12);
    assert_true(no_descendants());
    assert_int_equal(entries_with(test_dir(), "syncopate-"), 0);
}

static void ranks_in_a_lab_run_on_their_nodes(void **state) {
    (void)state;
    if (!*program || !lab_possible)
        skip();
    const struct lab_node nodes[] = {{"n1", 1}, {"n2", 1}, {"n3", 1}, {"n4", 1}};
    const struct host places[] = {{"n1", 2}, {"n2", 1}, {"n3", 1}, {"n4", 1}};
    const char *const argv[] = {program, NULL};
    struct lab_config lab = {.name = "t", .n = 4, .nodes = nodes};
    struct heard heard = {0};
    struct mpirun_config config = {.place = MPIRUN_LAB, .n_hosts = 4, .hosts = places, .argv = argv};
    struct process_options options = {.timeout_s = 120, .first_line_timeout_s = 30, .on_line = hear, .context = &heard};
    struct process_result result;
    struct error err = {0};
    assert_ok(run_it(&config, &lab, &options, &result, NULL, &err));
    assert_ok(process_judge(&result, "mpirun", &err));
    assert_int_equal(heard.lines, 5);
    assert_close(heard.sum, 15.0, 1e-12);
    for (int i = 1; i <= 4; i++)
        assert_true(heard.host[i]);
    assert_true(no_descendants());
}

static void a_rank_that_aborts_ends_the_run_with_a_reason(void **state) {
    (void)state;
    if (!*program)
        skip();
    const char *const argv[] = {program, "abort", NULL};
    struct mpirun_config config = {.place = MPIRUN_LOCAL, .n_hosts = 2, .hosts = hosts, .argv = argv};
    struct process_options options = {.timeout_s = 60};
    struct process_result result;
    struct error err = {0};
    assert_ok(run_it(&config, NULL, &options, &result, NULL, &err));
    assert_fails(process_judge(&result, "mpirun", &err), ST_TRIAL, "mpirun ended with exit code");
    assert_true(no_descendants());
}

/* A program in mpirun's place that hangs the first time only. */
static void a_start_that_hangs_is_tried_once_more(void **state) {
    (void)state;
    char script[8192], path[8192], *kept = strdup(getenv("PATH"));
    snprintf(script, sizeof script, "#!/bin/sh\nif mkdir %s/started; then sleep 9753; fi\necho up\n", test_dir());
    assert_int_equal(chmod(test_file("mpirun", script), 0755), 0);
    snprintf(path, sizeof path, "%s:%s", test_dir(), kept);
    setenv("PATH", path, 1);
    const char *const argv[] = {"worker", NULL};
    struct mpirun_config config = {.place = MPIRUN_LOCAL, .n_hosts = 2, .hosts = hosts, .argv = argv};
    struct process_options options = {.first_line_timeout_s = 0.3};
    struct process_result result;
    struct error err = {0};
    unsigned starts = 0;
    const enum status status = run_it(&config, NULL, &options, &result, &starts, &err);
    setenv("PATH", kept, 1);
    free(kept);
    assert_ok(status);
    assert_int_equal(result.ending, PROCESS_EXITED);
    assert_int_equal(starts, 2);
    assert_true(no_descendants());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lab_run_names_its_hosts_agent_and_subnet),
        cmocka_unit_test(a_run_on_other_hosts_leaves_the_network_to_mpi),
        cmocka_unit_test(runs_without_hosts_slots_or_program_are_refused),
        cmocka_unit_test(ranks_here_add_up_and_leave_nothing),
        cmocka_unit_test(ranks_in_a_lab_run_on_their_nodes),
        cmocka_unit_test(a_rank_that_aborts_ends_the_run_with_a_reason),
        cmocka_unit_test(a_start_that_hangs_is_tried_once_more),
    };
    return cmocka_run_group_tests_name("mpirun", tests, setup, NULL);
}
