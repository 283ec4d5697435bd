/* What a command line of tune is made into, it is made into once. */
#include <dlfcn.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/commands.h"
#include "tests/support/check.h"

#define PATTERN "step: ([0-9]+) ms"

/* How often PATTERN was compiled: each time when the runner of --command is built. */
static int compiled;

int regcomp(regex_t *out, const char *pattern, int flags) {
    int (*real)(regex_t *, const char *, int);
    *(void **)&real = dlsym(RTLD_NEXT, "regcomp");
    compiled += strcmp(pattern, PATTERN) == 0;
    return real(out, pattern, flags);
}

static void a_session_builds_its_runner_once(void **state) {
    (void)state;
    char dataset[4200];
    struct error err = {0};
    snprintf(dataset, sizeof dataset, "%s/tune.db", test_dir());
    char *argv[] = {"tune",
                    "examples/models/mlp-small.json",
                    "examples/clusters/lab-4x1g.json",
                    "--command",
                    "for i in 1 2 3 4 5 6; do echo step: $i ms; done",
                    "--pattern",
                    PATTERN,
                    "--trials",
                    "2",
                    "--dataset",
                    dataset,
                    NULL};
    assert_ok(cmd_tune(sizeof argv / sizeof *argv - 1, argv, &err));
    assert_int_equal(compiled, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_session_builds_its_runner_once)};
    return cmocka_run_group_tests_name("tune", tests, NULL, NULL);
}
