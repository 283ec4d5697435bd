/* Tokens: the file that nobody else may read, who a secret belongs to, and how often it may ask. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "service/tokens.h"
#include "tests/support/check.h"

static char path[512];

static int set_up(void **state) {
    (void)state;
    static int number;
    snprintf(path, sizeof path, "%s/t%d.db.tokens", test_dir(), number++);
    return 0;
}

static struct token wanted(const char *name, const char *team, enum role role) {
    struct token t = {.principal.role = role};
    snprintf(t.name, sizeof t.name, "%s", name);
    snprintf(t.principal.team, sizeof t.principal.team, "%s", team);
    return t;
}

static char *make(const struct token *t) {
    static char secret[TOKEN_LENGTH + 1];
    struct error err;
    struct token made;
    assert_ok(tokens_create(path, t, &made, secret, &err));
    return secret;
}

static char *read_all(void) {
    static char text[65536];
    FILE *from = fopen(path, "r");
    assert_non_null(from);
    text[fread(text, 1, sizeof text - 1, from)] = '\0';
    fclose(from);
    return text;
}

static void a_token_is_known_by_its_secret_and_kept_without_it(void **state) {
    (void)state;
    struct error err;
    struct tokens *tokens;
    struct principal who;
    const struct token alice = wanted("alice", "vision", ROLE_RUN);
    char *secret = make(&alice), wrong[TOKEN_LENGTH + 1];
    struct stat at;
    assert_int_equal(stat(path, &at), 0);
    assert_int_equal(at.st_mode & 0777, 0600);
    assert_int_equal(strlen(secret), TOKEN_LENGTH);
    assert_null(strstr(read_all(), secret + 4 + TOKEN_ID_LENGTH + 1));
    assert_ok(tokens_open(path, &tokens, &err));
    assert_true(tokens_check(tokens, secret, &who));
    assert_string_equal(who.team, "vision");
    assert_int_equal(who.role, ROLE_RUN);
    for (size_t i = 0; i < TOKEN_LENGTH; i++) { /* any one character else */
        strcpy(wrong, secret);
        wrong[i] = wrong[i] == 'a' ? 'b' : 'a';
        assert_false(tokens_check(tokens, wrong, &who));
    }
    assert_false(tokens_check(tokens, "", &who));
    secret[TOKEN_LENGTH - 1] = '\0';
    assert_false(tokens_check(tokens, secret, &who));
    tokens_close(tokens);
}

static void secrets_are_all_different_and_url_safe(void **state) {
    (void)state;
    char secrets[20][TOKEN_LENGTH + 1];
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        const struct token t = wanted(name, "x", ROLE_READ);
        strcpy(secrets[i], make(&t));
        assert_int_equal(strspn(secrets[i], "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
                         TOKEN_LENGTH);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(secrets[i] + 17, secrets[k] + 17);
    }
}

static void a_running_service_learns_of_changes(void **state) {
    (void)state;
    struct error err;
    struct tokens *tokens;
    struct principal who;
    char secret[TOKEN_LENGTH + 1];
    assert_ok(tokens_open(path, &tokens, &err));
    assert_int_equal(tokens_count(tokens), 0);
    const struct token bob = wanted("bob", "x", ROLE_READ);
    strcpy(secret, make(&bob));
    clock_sleep_us(600e3);
    assert_true(tokens_check(tokens, secret, &who));
    assert_ok(tokens_revoke(path, "bob", &err));
    clock_sleep_us(600e3);
    assert_false(tokens_check(tokens, secret, &who));
    assert_fails(tokens_revoke(path, "bob", &err), ST_NOT_FOUND, "bob");
    tokens_close(tokens);
}

static void an_expired_token_is_nobodys(void **state) {
    (void)state;
    struct error err;
    struct tokens *tokens;
    struct principal who;
    struct token t = wanted("old", "x", ROLE_READ);
    strcpy(t.expires, "2020-01-01T00:00:00.000Z");
    char old[TOKEN_LENGTH + 1], fresh[TOKEN_LENGTH + 1];
    strcpy(old, make(&t));
    t = wanted("new", "x", ROLE_READ);
    strcpy(t.expires, "2999-01-01T00:00:00.000Z");
    strcpy(fresh, make(&t));
    assert_ok(tokens_open(path, &tokens, &err));
    assert_false(tokens_check(tokens, old, &who));
    assert_true(tokens_check(tokens, fresh, &who));
    tokens_close(tokens);
}

static void a_file_that_others_can_read_is_refused(void **state) {
    (void)state;
    struct error err;
    struct tokens *tokens;
    const struct token t = wanted("t", "x", ROLE_READ);
    make(&t);
    chmod(path, 0640);
    assert_fails(tokens_open(path, &tokens, &err), ST_INVALID, "others can read it");
    assert_fails(tokens_revoke(path, "t", &err), ST_INVALID, "others can read it");
}

static void a_damaged_file_is_refused_with_its_line(void **state) {
    (void)state;
    struct error err;
    struct tokens *tokens;
    const struct token t = wanted("t", "x", ROLE_READ);
    make(&t);
    FILE *to = fopen(path, "a");
    fputs("{\"id\":\"zz\"}\n", to);
    fclose(to);
    assert_fails(tokens_open(path, &tokens, &err), ST_INVALID, ".tokens:2");
}

static void write_all(const char *text) {
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    assert_true(fputs(text, to) >= 0);
    assert_int_equal(fclose(to), 0);
}

/* A folder opens like a file, and reading it fails. */
static void an_error_of_reading_is_no_end_of_the_file(void **state) {
    (void)state;
    struct error err;
    struct arena arena = {0};
    struct token *read, made;
    char secret[TOKEN_LENGTH + 1];
    size_t n;
    const struct token t = wanted("t", "x", ROLE_READ);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_fails(tokens_read(path, &arena, &n, &read, &err), ST_ENVIRONMENT, "directory");
    assert_fails(tokens_create(path, &t, &made, secret, &err), ST_ENVIRONMENT, "directory");
    arena_release(&arena);
}

/* What a running service does when `break_it` is done to the file. Mended, the file is good again. */
static void check_fails_closed(void (*break_it)(void)) {
    struct error err;
    struct tokens *tokens;
    struct principal who;
    char secret[TOKEN_LENGTH + 1], text[65536], why[TOKENS_WHY_MAX];
    const struct token t = wanted("t", "x", ROLE_READ);
    strcpy(secret, make(&t));
    strcpy(text, read_all());
    assert_ok(tokens_open(path, &tokens, &err));
    assert_true(tokens_check(tokens, secret, &who));
    assert_false(tokens_unreadable(tokens, why));
    break_it();
    clock_sleep_us(600e3);
    assert_false(tokens_check(tokens, secret, &who));
    assert_false(tokens_confirm(tokens, &who));
    assert_true(tokens_unreadable(tokens, why));
    assert_contains(why, ".tokens");
    write_all(text);
    chmod(path, 0600);
    clock_sleep_us(600e3);
    assert_true(tokens_check(tokens, secret, &who));
    assert_false(tokens_unreadable(tokens, why));
    assert_int_equal(tokens_faults(tokens), 1);
    tokens_close(tokens);
}

static void damage(void) {
    write_all("{\"id\":\n");
}

static void expose(void) {
    chmod(path, 0644);
}

static void take_away(void) {
    assert_int_equal(unlink(path), 0);
}

static void a_damaged_file_lets_nobody_in(void **state) {
    (void)state;
    check_fails_closed(damage);
}

static void a_file_that_others_can_read_lets_nobody_in(void **state) {
    (void)state;
    check_fails_closed(expose);
}

static void a_file_that_is_gone_lets_nobody_in(void **state) {
    (void)state;
    check_fails_closed(take_away);
}

/* Before the first token there is no file, which is no fault. */
static void a_file_that_never_was_is_readable(void **state) {
    (void)state;
    struct error err;
    struct tokens *tokens;
    char why[TOKENS_WHY_MAX];
    assert_ok(tokens_open(path, &tokens, &err));
    clock_sleep_us(600e3);
    assert_int_equal(tokens_count(tokens), 0);
    assert_false(tokens_unreadable(tokens, why));
    tokens_close(tokens);
}

static void names_are_checked_and_unique(void **state) {
    (void)state;
    struct error err;
    struct token made, t = wanted("t", "x", ROLE_READ);
    char secret[TOKEN_LENGTH + 1];
    make(&t);
    assert_fails(tokens_create(path, &t, &made, secret, &err), ST_CONFLICT, "called t");
    t = wanted("a b", "x", ROLE_READ);
    assert_fails(tokens_create(path, &t, &made, secret, &err), ST_INVALID, "letters");
    t = wanted("ok", "x/y", ROLE_READ);
    assert_fails(tokens_create(path, &t, &made, secret, &err), ST_INVALID, "letters");
    t = wanted("ok", "x", ROLE_NONE);
    assert_fails(tokens_create(path, &t, &made, secret, &err), ST_INVALID, "role");
}

static void *make_one(void *argument) {
    struct error err;
    char secret[TOKEN_LENGTH + 1];
    struct token made;
    return tokens_create(path, argument, &made, secret, &err) ? argument : NULL;
}

static void tokens_made_at_the_same_time_are_all_kept(void **state) {
    (void)state;
    enum { N = 8 };
    pthread_t threads[N];
    struct token t[N], *read;
    struct arena arena = {0};
    struct error err;
    size_t n;
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        t[i] = wanted(name, "x", ROLE_READ);
        pthread_create(&threads[i], NULL, make_one, &t[i]);
    }
    for (int i = 0; i < N; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_ok(tokens_read(path, &arena, &n, &read, &err));
    assert_int_equal(n, N);
    arena_release(&arena);
}

static void a_team_is_not_called_what_everybody_is_called(void **state) {
    (void)state;
    struct error err = {0};
    struct token made;
    char secret[TOKEN_LENGTH + 1];
    const struct token all = wanted("a", "all", ROLE_READ), team = wanted("b", "team", ROLE_READ);
    assert_fails(tokens_create(path, &all, &made, secret, &err), ST_INVALID, "a team cannot be called all");
    assert_fails(tokens_create(path, &team, &made, secret, &err), ST_INVALID, "a team cannot be called team");
    const struct token any = wanted("c", "", ROLE_READ);
    assert_ok(tokens_create(path, &any, &made, secret, &err));
    assert_string_equal(made.principal.team, TOKEN_TEAM);
}

/* A file of before, when "team" was what a team was called unless somebody said: who is in it stays together. */
static void a_team_that_is_called_so_already_stays(void **state) {
    (void)state;
    struct error err = {0};
    struct token made;
    struct tokens *tokens;
    char secret[TOKEN_LENGTH + 1];
    const struct token first = wanted("first", "meat", ROLE_READ), second = wanted("second", "", ROLE_READ);
    const struct token third = wanted("third", "team", ROLE_READ), fourth = wanted("fourth", "all", ROLE_READ);
    make(&first);
    char *text = read_all();
    memcpy(strstr(text, "meat"), "team", 4);
    FILE *to = fopen(path, "w");
    fputs(text, to);
    assert_int_equal(fclose(to), 0);
    assert_ok(tokens_create(path, &second, &made, secret, &err));
    assert_string_equal(made.principal.team, "team");
    assert_ok(tokens_create(path, &third, &made, secret, &err));
    assert_fails(tokens_create(path, &fourth, &made, secret, &err), ST_INVALID, "cannot be called all");
    assert_ok(tokens_open(path, &tokens, &err));
    assert_true(tokens_have_team(tokens, "team"));
    assert_false(tokens_have_team(tokens, "tea"));
    tokens_close(tokens);
}

static void a_bucket_empties_and_fills_again(void **state) {
    (void)state;
    struct error err;
    struct tokens *tokens;
    struct principal who;
    struct token t = wanted("t", "x", ROLE_READ);
    t.principal.requests_per_s = 5;
    const char *secret = make(&t);
    unsigned wait_s = 0, granted = 0;
    assert_ok(tokens_open(path, &tokens, &err));
    assert_true(tokens_check(tokens, secret, &who));
    assert_close(who.requests_per_s, 5.0, 0);
    while (granted < 100 && tokens_spend(tokens, &who, &wait_s))
        granted++;
    assert_in_range(granted, 10, 12); /* two seconds' worth, and what came meanwhile */
    assert_int_equal(wait_s, 1);
    clock_sleep_us(450e3);
    assert_true(tokens_spend(tokens, &who, &wait_s));
    assert_true(tokens_spend(tokens, &who, &wait_s));
    who.requests_per_s = 0;
    for (int i = 0; i < 1000; i++)
        assert_true(tokens_spend(tokens, &who, &wait_s));
    tokens_close(tokens);
}

/* ---- a full disk ---- */

static size_t open_descriptors(void) {
    size_t n = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

/* A file system of a few pages at `at`, of this process alone. False: that needs root. */
static bool mount_small(const char *at) {
    return !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) && !mkdir(at, 0700) &&
           !mount("small", at, "tmpfs", 0, "size=24k,nr_inodes=4");
}

static void fill(const char *name) {
    static const char page[4096];
    const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    while (write(fd, page, sizeof page) > 0)
        ;
    close(fd);
}

static void a_token_is_revoked_on_a_full_disk(void **state) {
    (void)state;
    struct error err;
    struct tokens *tokens;
    struct principal who;
    struct token made;
    char folder[480], filler[500], more[500], lock[600], first[TOKEN_LENGTH + 1], second[TOKEN_LENGTH + 1],
        third[TOKEN_LENGTH + 1];
    snprintf(folder, sizeof folder, "%s/small", test_dir());
    if (!mount_small(folder)) {
        print_message("a full disk: mounting a small file system needs root\n");
        skip();
    }
    snprintf(path, sizeof path, "%s/d.db.tokens", folder);
    snprintf(filler, sizeof filler, "%s/filler", folder);
    snprintf(more, sizeof more, "%s/more", folder);
    snprintf(lock, sizeof lock, "%s.lock", path);
    const struct token a = wanted("a", "x", ROLE_READ), b = wanted("b", "x", ROLE_READ),
                       c = wanted("c", "x", ROLE_READ);
    strcpy(first, make(&a));
    strcpy(second, make(&b));
    assert_ok(tokens_open(path, &tokens, &err));
    assert_true(tokens_check(tokens, first, &who));
    fill(filler);
    const size_t open_before = open_descriptors();
    for (int i = 0; i < 3; i++)
        assert_fails(tokens_create(path, &c, &made, third, &err), ST_ENVIRONMENT, "No space");
    assert_int_equal(unlink(lock), 0);
    fill(more); /* no room for the lock either */
    assert_ok(tokens_revoke(path, "a", &err));
    assert_fails(tokens_revoke(path, "a", &err), ST_NOT_FOUND, "\"a\"");
    assert_int_equal(open_descriptors(), open_before);
    clock_sleep_us(600e3);
    assert_false(tokens_check(tokens, first, &who));
    assert_true(tokens_check(tokens, second, &who));
    assert_int_equal(unlink(filler), 0);
    assert_int_equal(unlink(more), 0);
    strcpy(third, make(&c));
    clock_sleep_us(600e3);
    assert_false(tokens_check(tokens, first, &who));
    assert_true(tokens_check(tokens, second, &who));
    assert_true(tokens_check(tokens, third, &who));
    tokens_close(tokens);
    umount(folder);
}

static void roles_have_words_and_an_order(void **state) {
    (void)state;
    enum role role;
    assert_true(role_parse("submit", &role) && role == ROLE_SUBMIT);
    assert_false(role_parse("none", &role));
    assert_false(role_parse("root", &role));
    assert_true(ROLE_NONE < ROLE_READ && ROLE_READ < ROLE_SUBMIT && ROLE_SUBMIT < ROLE_RUN && ROLE_RUN < ROLE_ADMIN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup(name, set_up)
        TEST(a_token_is_known_by_its_secret_and_kept_without_it),
        TEST(secrets_are_all_different_and_url_safe),
        TEST(a_running_service_learns_of_changes),
        TEST(an_expired_token_is_nobodys),
        TEST(a_file_that_others_can_read_is_refused),
        TEST(a_damaged_file_is_refused_with_its_line),
        TEST(an_error_of_reading_is_no_end_of_the_file),
        TEST(a_damaged_file_lets_nobody_in),
        TEST(a_file_that_others_can_read_lets_nobody_in),
        TEST(a_file_that_is_gone_lets_nobody_in),
        TEST(a_file_that_never_was_is_readable),
        TEST(names_are_checked_and_unique),
        TEST(tokens_made_at_the_same_time_are_all_kept),
        TEST(a_team_is_not_called_what_everybody_is_called),
        TEST(a_team_that_is_called_so_already_stays),
        TEST(a_bucket_empties_and_fills_again),
        TEST(roles_have_words_and_an_order),
        TEST(a_token_is_revoked_on_a_full_disk), /* last: it leaves this process in a mount namespace of its own */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
