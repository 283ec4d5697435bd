/* Files that are written whole or not at all, and texts that grow in memory. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/stream.h"
#include "tests/support/check.h"

static char *content(const char *path) {
    static char text[256];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    const size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    fclose(f);
    return text;
}

static size_t entries_in(const char *path) {
    size_t n = 0;
    DIR *folder = opendir(path);
    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n - 2;
}

static const char *fresh_folder(const char *name) {
    static char path[4200];
    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    assert_int_equal(mkdir(path, 0755), 0);
    return path;
}

static void a_file_is_replaced_whole_and_keeps_its_mode(void **state) {
    (void)state;
    struct error err = {0};
    const char *folder = fresh_folder("replace");
    char path[4300], link[4300];
    snprintf(path, sizeof path, "%s/out.json", folder);
    snprintf(link, sizeof link, "%s/link.json", folder);
    assert_ok(file_write(path, 8, "{\"a\":1}\n", &err));
    assert_string_equal(content(path), "{\"a\":1}\n");
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(symlink("out.json", link), 0);
    assert_ok(file_write(link, 3, "{}\n", &err));
    assert_string_equal(content(path), "{}\n");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(entries_in(folder), 2); /* no temporary file is left */
}

/* The disk is full half-way: the old file is still there, and nothing else. */
static void a_write_that_fails_leaves_the_old_file_and_no_temporary(void **state) {
    (void)state;
    struct error err = {0};
    const char *folder = fresh_folder("full");
    char path[4300], text[10000];
    snprintf(path, sizeof path, "%s/out.json", folder);
    memset(text, ' ', sizeof text);
    assert_ok(file_write(path, 4, "old\n", &err));
    struct rlimit old, tiny;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    tiny = (struct rlimit){4096, old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tiny), 0);
    const enum status status = file_write(path, sizeof text, text, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_fails(status, ST_ENVIRONMENT, "out.json: cannot be written: File too large");
    assert_string_equal(content(path), "old\n");
    assert_int_equal(entries_in(folder), 1);
}

static void what_is_no_file_is_never_replaced(void **state) {
    (void)state;
    struct error err = {0};
    assert_ok(file_write("/dev/null", 2, "{}", &err));
    struct stat st;
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_fails(file_write(test_dir(), 2, "{}", &err), ST_ENVIRONMENT, "is a directory");
    assert_fails(file_write("no/such/folder/x.json", 2, "{}", &err), ST_ENVIRONMENT, "No such file or directory");
    assert_fails(file_write("/dev/full", 2, "{}", &err), ST_ENVIRONMENT, "/dev/full: cannot be written: No space");
}

static void dash_is_standard_output(void **state) {
    (void)state;
    struct error err = {0};
    const char *path = test_file("stdout", "");
    fflush(stdout);
    const int saved = dup(STDOUT_FILENO), fd = open(path, O_WRONLY);
    dup2(fd, STDOUT_FILENO);
    const enum status status = json_write_file("-", "[1]", &err);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(fd);
    assert_ok(status);
    assert_string_equal(content(path), "[1]\n"); /* with its line end */
}

/* What an earlier one left when it was killed is written over, whoever could read it. */
static void a_private_file_is_its_owner_s_alone(void **state) {
    (void)state;
    struct error err = {0};
    const char *folder = fresh_folder("private");
    char path[4300], left[4310];
    struct stat st;
    snprintf(path, sizeof path, "%s/tokens", folder);
    snprintf(left, sizeof left, "%s.new", path);
    assert_ok(file_write(left, 9, "half of i", &err));
    assert_int_equal(chmod(left, 0644), 0);
    assert_ok(file_write_private(path, 4, "one\n", &err));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_string_equal(content(path), "one\n");
    assert_ok(file_write_private(path, 0, "", &err));
    assert_string_equal(content(path), "");
    assert_int_equal(entries_in(folder), 1);
    assert_fails(file_write_private("no/such/folder/tokens", 0, "", &err), ST_ENVIRONMENT, "No such file or directory");
}

static void a_plain_file_is_emptied_and_filled(void **state) {
    (void)state;
    struct error err = {0};
    const char *folder = fresh_folder("plain");
    char path[4300];
    snprintf(path, sizeof path, "%s/trial.json", folder);
    assert_ok(file_write_plain(path, 5, "first", &err));
    assert_ok(file_write_plain(path, 2, "{}", &err));
    assert_string_equal(content(path), "{}");
    assert_int_equal(entries_in(folder), 1);
    assert_fails(file_write_plain("no/such/folder/x", 2, "{}", &err), ST_ENVIRONMENT, "No such file or directory");
    assert_fails(file_write_plain("/dev/full", 2, "{}", &err), ST_ENVIRONMENT,
                 "/dev/full: cannot be written: No space");
}

static void a_stream_gives_its_text_or_nothing(void **state) {
    (void)state;
    struct error err = {0};
    char *text;
    size_t n;
    FILE *to = stream_open(&text, &n);
    assert_non_null(to);
    fputs("half", to);
    fputs(" and half", to);
    assert_ok(stream_close(to, ST_OK, &text, &err));
    assert_int_equal(n, 13);
    assert_string_equal(text, "half and half");
    free(text);
    to = stream_open(&text, &n);
    assert_non_null(to);
    fputs("half", to);
    assert_int_equal(stream_close(to, ST_CONFLICT, &text, &err), ST_CONFLICT); /* whoever wrote it has said why */
    assert_null(text);
    assert_fails(stream_close(NULL, ST_OK, &text, &err), ST_NO_MEMORY, "memory");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_replaced_whole_and_keeps_its_mode),
        cmocka_unit_test(a_write_that_fails_leaves_the_old_file_and_no_temporary),
        cmocka_unit_test(what_is_no_file_is_never_replaced),
        cmocka_unit_test(dash_is_standard_output),
        cmocka_unit_test(a_private_file_is_its_owner_s_alone),
        cmocka_unit_test(a_plain_file_is_emptied_and_filled),
        cmocka_unit_test(a_stream_gives_its_text_or_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
