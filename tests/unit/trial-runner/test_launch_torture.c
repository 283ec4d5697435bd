/* Every allocation of making a command line fails once. */
#include <stdio.h>

#include "tests/support/check.h"
#include "tests/support/torture.h"
#include "trial-runner/hosts.h"
#include "trial-runner/mpirun.h"
#include "trial-runner/passed.h"
#include "trial-runner/slurm.h"

static const struct host hosts[] = {{"n1", 2}, {"n2", 1}};
static const char *const argv[] = {"worker", "run", NULL}, *const export[] = {"A", "B=1", NULL};

static enum status command_of_srun(void *arg, struct error *err) {
    (void)arg;
    struct arena arena = {0};
    const char *const *line;
    const struct slurm_config config = {.n_hosts = 2,
                                        .hosts = hosts,
                                        .gpus_per_node = 2,
                                        .time_limit_s = 10,
                                        .partition = "p",
                                        .account = "a",
                                        .options = "--x --y",
                                        .export = export,
                                        .argv = argv};
    const enum status status = slurm_command(&config, &arena, &line, err);
    arena_release(&arena);
    return status;
}

static enum status command_of_mpirun(void *arg, struct error *err) {
    struct arena arena = {0};
    const char *const *line;
    const struct mpirun_config config = {.place = *(const enum mpirun_place *)arg,
                                         .n_hosts = 2,
                                         .hosts = hosts,
                                         .options = "--x --y",
                                         .export = export,
                                         .argv = argv};
    const enum status status = mpirun_command(&config, &arena, &line, err);
    arena_release(&arena);
    return status;
}

static enum status names_and_hosts(void *arg, struct error *err) {
    struct arena arena = {0};
    const char *const *names, **list;
    enum status status = passed_names("PATH,HOME", &arena, &names, err);
    if (status == ST_OK)
        status = hosts_read_file(arg, 2, &arena, &list, err);
    arena_release(&arena);
    return status;
}

/* An arena asks for memory a block at a time, in sanitizer builds for each piece. */
static void command_lines_survive_each_failed_allocation(void **state) {
    (void)state;
    enum mpirun_place places[] = {MPIRUN_LOCAL, MPIRUN_LAB, MPIRUN_HOSTS};
    assert_true(torture(command_of_srun, NULL) >= 1);
    for (int i = 0; i < 3; i++)
        assert_true(torture(command_of_mpirun, &places[i]) >= 1);
}

static void names_of_variables_and_hosts_survive_each_failed_allocation(void **state) {
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s", test_file("hosts", "a\nb\n"));
    assert_true(torture(names_and_hosts, path) >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_lines_survive_each_failed_allocation),
        cmocka_unit_test(names_of_variables_and_hosts_survive_each_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
