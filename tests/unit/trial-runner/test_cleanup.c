/* Folders that are removed whole, and nothing that only a link leads to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "trial-runner/cleanup.h"

static void make_file(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

/* A random tree of folders, files and links; what it holds. */
static int grow(struct rng *rng, const char *folder, int depth) {
    int made = 0;
    for (int i = (int)rng_below(rng, 6); i > 0; i--, made++) {
        char name[64], path[4096];
        snprintf(name, sizeof name, "%d %s", i, depth % 2 ? ".x" : "y");
        assert_true((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) < sizeof path);
        if (depth < 5 && rng_below(rng, 3) > 0) {
            assert_int_equal(mkdir(path, 0700), 0);
            made += grow(rng, path, depth + 1);
        } else if (rng_below(rng, 3) == 0) {
            assert_int_equal(symlink("/nowhere", path), 0);
        } else {
            make_file(folder, name);
        }
    }
    return made;
}

static void random_trees_go(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    int made = 0;
    for (int i = 0; i < 12; i++) {
        char folder[512];
        snprintf(folder, sizeof folder, "%s/tree", test_dir());
        assert_int_equal(mkdir(folder, 0700), 0);
        made += grow(&rng, folder, 0);
        cleanup_folder(folder);
        assert_int_equal(access(folder, F_OK), -1);
    }
    assert_true(made > 100);
}

static void a_folder_of_many_files_goes(void **state) {
    (void)state;
    char folder[512], name[64];
    snprintf(folder, sizeof folder, "%s/many", test_dir());
    assert_int_equal(mkdir(folder, 0700), 0);
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "file-with-a-long-name-%d", i);
        make_file(folder, name);
    }
    cleanup_folder(folder);
    assert_int_equal(access(folder, F_OK), -1);
}

static void what_a_link_leads_to_stays(void **state) {
    (void)state;
    char kept[512], folder[512], path[600];
    snprintf(kept, sizeof kept, "%s/kept", test_dir());
    snprintf(folder, sizeof folder, "%s/swept", test_dir());
    snprintf(path, sizeof path, "%s/link", folder);
    assert_int_equal(mkdir(kept, 0700) | mkdir(folder, 0700) | symlink(kept, path), 0);
    make_file(kept, "file");
    cleanup_folder(folder);
    assert_int_equal(access(folder, F_OK), -1);
    snprintf(path, sizeof path, "%s/link", test_dir());
    assert_int_equal(symlink(kept, path), 0);
    cleanup_folder(path); /* a link is no folder */
    cleanup_folder("");
    cleanup_folder("/nowhere/at/all");
    snprintf(path, sizeof path, "%s/file", kept);
    assert_int_equal(access(path, F_OK), 0);
}

/* By a user whom permissions bind. */
static void an_empty_folder_that_may_not_be_read_goes(void **state) {
    (void)state;
    char folder[512], path[600];
    snprintf(folder, sizeof folder, "%s/bound", test_dir());
    snprintf(path, sizeof path, "%s/locked", folder);
    assert_int_equal(chmod(test_dir(), 0777) | mkdir(folder, 0777) | chmod(folder, 0777), 0);
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(2);
        if (mkdir(path, 0) != 0)
            _exit(3);
        cleanup_folder(folder);
        _exit(access(path, F_OK) == 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    cleanup_folder(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_trees_go),
        cmocka_unit_test(a_folder_of_many_files_goes),
        cmocka_unit_test(what_a_link_leads_to_stays),
        cmocka_unit_test(an_empty_folder_that_may_not_be_read_goes),
    };
    return cmocka_run_group_tests_name("cleanup", tests, NULL, NULL);
}
