/* See check.h. Standard output is made line-buffered before main, so that the results before a crash are not lost. */
#include "tests/support/check.h"

#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char directory[PATH_MAX];

__attribute__((constructor)) static void buffer_lines(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
}

void check_close(double a, double b, double relative, const char *a_text, const char *b_text, const char *file,
                 int line) {
    if (a == b || fabs(a - b) <= relative * fmax(fabs(a), fabs(b)))
        return;
    print_error("%s = %.17g is not within %g of %s = %.17g\n", a_text, a, relative, b_text, b);
    _fail(file, line);
}

void check_ok(enum status status, const struct error *err, const char *expression, const char *file, int line) {
    if (status == ST_OK)
        return;
    print_error("%s failed (%s): %s\n", expression, status_word(status), ERROR_TEXT(err));
    _fail(file, line);
}

void check_contains(const char *text, const char *part, const char *file, int line) {
    if (strstr(text, part))
        return;
    print_error("\"%s\" does not contain \"%s\"\n", text, part);
    _fail(file, line);
}

void check_fails(enum status status, enum status want, const struct error *err, const char *part,
                 const char *expression, const char *file, int line) {
    if (status != want) {
        print_error("%s gave %s, not %s; the message is: %s\n", expression, status_word(status), status_word(want),
                    status ? ERROR_TEXT(err) : "");
        _fail(file, line);
    }
    if (err->status != want) {
        print_error("%s returned %s but left %s in the error\n", expression, status_word(want),
                    status_word(err->status));
        _fail(file, line);
    }
    check_contains(ERROR_TEXT(err), part, file, line);
}

uint64_t test_seed(void) {
    static uint64_t seed;
    static bool known;
    if (!known) {
        const char *text = getenv("SYNCOPATE_TEST_SEED");
        seed = text && *text ? strtoull(text, NULL, 0) : 20260917;
        known = true;
        print_message("# seed %" PRIu64 " (SYNCOPATE_TEST_SEED sets it)\n", seed);
    }
    return seed;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *walk) {
    (void)st, (void)kind, (void)walk;
    return remove(path);
}

static pid_t owner; /* a forked child must not remove its parent's directory */

static void remove_directory(void) {
    if (getpid() == owner)
        nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

const char *test_dir(void) {
    if (*directory)
        return directory;
    const char *base = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%.*s/syncopate-test-XXXXXX", PATH_MAX - 64, base && *base ? base : "/tmp");
    if (!mkdtemp(directory)) {
        print_error("no temporary directory: %s\n", directory);
        fail();
    }
    owner = getpid();
    atexit(remove_directory);
    return directory;
}

const char *test_file(const char *name, const char *text) {
    char *path = NULL;
    if (asprintf(&path, "%s/%s", test_dir(), name) < 0)
        fail();
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) {
        print_error("cannot write %s\n", path);
        fail();
    }
    /* Kept reachable, so that the leak checker sees no leak. */
    static struct kept {
        struct kept *next;
        char *path;
    } * all;
    struct kept *kept = malloc(sizeof *kept);
    assert_non_null(kept);
    *kept = (struct kept){all, path};
    all = kept;
    return path;
}

double computed_us(void) {
    return (double)clock() * 1e6 / CLOCKS_PER_SEC;
}

bool test_lab_possible(void) {
    static const char try[] = "unshare --mount --net --uts --ipc --pid --fork sh -c '"
                              "ip link add v1 type veth peer name v2 && ip link set v1 up && "
                              "tc qdisc add dev v1 root tbf rate 1mbit burst 10kb latency 10ms' >/dev/null 2>&1";
    const bool possible = geteuid() == 0 && system(try) == 0;
    if (!possible)
        print_message("# no lab here: it needs root, network namespaces, veth and tbf\n");
    return possible;
}
