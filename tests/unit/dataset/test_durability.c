/* Nothing acknowledged is lost and nothing half-written stays, whatever happens to the process, the disk or the file.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "dataset/check.h"
#include "dataset/pages.h"
#include "tests/unit/dataset/fixture.h"
#include "tests/unit/dataset/version_6.h"

#define MODEL_ID    "3cabfda91943c32359a9af62c46cd92f9fdc78a0a4c8553b3077ddc094dfc597"
#define CLUSTER_ID  "4e08da696136f4c9395daba89cc70f3ae42adab874b34b9e1c0e659951e38943"
#define STRATEGY_ID "50b31351bac1fce46239fdd7ff91983733e42647878bd4febe4b4d8b08373569"

/* A version 1 file as the first release made it, with one trial in it. */
static const char version_1[] =
    "PRAGMA application_id = 1935240803; PRAGMA user_version = 1;"
    "CREATE TABLE models (id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, content TEXT NOT NULL, created TEXT NOT "
    "NULL) STRICT;"
    "CREATE TABLE clusters (id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, content TEXT NOT NULL, created TEXT NOT "
    "NULL) STRICT;"
    "CREATE TABLE strategies (id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, content TEXT NOT NULL, created TEXT "
    "NOT NULL) STRICT;"
    "CREATE TABLE environments (id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, content TEXT NOT NULL, created TEXT "
    "NOT NULL) STRICT;"
    "CREATE TABLE sessions (id TEXT NOT NULL PRIMARY KEY, model TEXT NOT NULL REFERENCES models (id), cluster TEXT NOT "
    "NULL REFERENCES clusters (id), seed INTEGER NOT NULL, budget TEXT NOT NULL, options TEXT NOT NULL, state TEXT NOT "
    "NULL, reason TEXT, started TEXT NOT NULL, ended TEXT) STRICT;"
    "CREATE TABLE trials (id INTEGER NOT NULL PRIMARY KEY, uid TEXT NOT NULL UNIQUE, session TEXT REFERENCES sessions "
    "(id), number INTEGER, round INTEGER NOT NULL, model TEXT NOT NULL REFERENCES models (id), cluster TEXT NOT NULL "
    "REFERENCES clusters (id), strategy TEXT NOT NULL REFERENCES strategies (id), proposer TEXT NOT NULL, runner TEXT "
    "NOT NULL, predicted_us REAL, seed INTEGER NOT NULL, state TEXT NOT NULL, queued TEXT NOT NULL, started TEXT, "
    "ended TEXT, mean_us REAL, median_us REAL, low_us REAL, high_us REAL, reason TEXT, environment TEXT REFERENCES "
    "environments (id), UNIQUE (session, number)) STRICT;"
    "CREATE TABLE iterations (trial INTEGER NOT NULL REFERENCES trials (id) ON DELETE CASCADE, number INTEGER NOT "
    "NULL, time_us REAL NOT NULL, PRIMARY KEY (trial, number)) STRICT, WITHOUT ROWID;"
    "INSERT INTO models VALUES ('" MODEL_ID "', 'tiny', '" TINY_MODEL "', '2026');"
    "INSERT INTO clusters VALUES ('" CLUSTER_ID "', 'pair', '" PAIR_CLUSTER "', '2026');"
    "INSERT INTO strategies VALUES ('" STRATEGY_ID "', 'wfbp', '" EMPTY_STRATEGY "', '2026');"
    "INSERT INTO environments VALUES ('44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', 'm', '{}', "
    "'2026');"
    "INSERT INTO trials SELECT 1, 'u', NULL, NULL, 0, m.id, c.id, s.id, 'wfbp', 'lab', NULL, 1, 'complete', '2026', "
    "'2026', '2026', 5, 5, 5, 5, NULL, e.id FROM models m, clusters c, strategies s, environments e;"
    "INSERT INTO iterations VALUES (1, 0, 5.0);";

/* What version 2 added, with a session of that time and a calibration. */
static const char version_2[] =
    "PRAGMA user_version = 2;"
    "CREATE TABLE rankers (id TEXT NOT NULL PRIMARY KEY CHECK (length(id) = 64), name TEXT NOT NULL, content TEXT NOT "
    "NULL CHECK (json_valid(content)), created TEXT NOT NULL) STRICT;"
    "CREATE TABLE calibrations (session TEXT NOT NULL REFERENCES sessions (id), after_trial INTEGER NOT NULL CHECK "
    "(after_trial >= 0), content TEXT NOT NULL CHECK (json_valid(content)), created TEXT NOT NULL, PRIMARY KEY "
    "(session, after_trial)) STRICT;"
    "CREATE INDEX sessions_started ON sessions (started);"
    "CREATE INDEX trials_session ON trials (session, state, median_us);"
    "INSERT INTO sessions SELECT 'old', m.id, c.id, -1, '{\"trials\":9}', '{}', 'done', NULL, '2026', '2027' FROM "
    "models m, clusters c;"
    "INSERT INTO sessions SELECT 'open', m.id, c.id, 7, '{}', '{}', 'running', NULL, '2026', NULL FROM models m, "
    "clusters c;"
    "UPDATE trials SET session = 'old', number = 1;"
    "INSERT INTO trials SELECT 2, 'v', 'open', 1, 0, m.id, c.id, s.id, 'wfbp', 'lab', 8.5, 1, 'running', '2026', "
    "'2026', "
    "NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM models m, clusters c, strategies s;"
    "INSERT INTO calibrations VALUES ('old', 0, '{}', '2026');";

static void run_sql(const char *path, const char *sql) {
    sqlite3 *db;
    char *message = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    sqlite3_close(db);
}

static bool is_there(const char *path, const char *tail) {
    char whole[512];
    snprintf(whole, sizeof whole, "%s%s", path, tail);
    return access(whole, F_OK) == 0;
}

static char *slurp(const char *path, size_t *n) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    *n = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

static void assert_sound(struct store *store) {
    struct error err = {0};
    struct check_report report;
    assert_ok(check_run(store, NULL, NULL, &report, &err));
    assert_int_equal(report.problems, 0);
}

/* The number that one statement gives. */
static int64_t number_in(const char *path, const char *sql) {
    sqlite3 *db;
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    const int64_t n = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return n;
}

static int version_of(const char *path) {
    return (int)number_in(path, "PRAGMA user_version");
}

static size_t files_in(const char *folder) {
    DIR *dir = opendir(folder);
    size_t n = 0;
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* Who only reads has a copy of it, which is gone with who reads. */
static void an_older_file_is_read_and_stays_as_it_is(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    struct error err = {0};
    struct arena arena = {0};
    struct stored_session session;
    const char *path = dataset_path("reading.db");
    char folder[300];
    run_sql(path, version_1);
    run_sql(path, version_2);
    snprintf(folder, sizeof folder, "%s/copies", test_dir());
    assert_int_equal(mkdir(folder, 0700), 0);
    const char *kept = getenv("TMPDIR");
    char *tmpdir = kept ? strdup(kept) : NULL;
    setenv("TMPDIR", folder, 1);
    size_t before, after;
    char *old = slurp(path, &before);
    struct store *store = must_open(path, STORE_READ_ONLY);
    assert_int_equal(files_in(folder), 3); /* . and .. */
    assert_int_equal(count_trials(store), 2);
    assert_ok(store_session_get(store, "old", &arena, &session, &err));
    assert_string_equal(session.origin, SESSION_BEFORE);
    assert_fails(store_session_budget(store, "old", "{}", &err), ST_CONFLICT, "reading only");
    assert_sound(store);
    store_close(store);
    assert_int_equal(files_in(folder), 2);
    char *new = slurp(path, &after);
    assert_int_equal(before, after);
    assert_memory_equal(old, new, before);
    assert_false(is_there(path, ".v2.backup"));
    run_sql(path, "CREATE TABLE trials_4 (mine INTEGER)");
    assert_fails(store_open(path, STORE_READ_ONLY, &store, &err), ST_ENVIRONMENT, "to schema version 4");
    assert_int_equal(files_in(folder), 2);
    setenv("TMPDIR", "/nowhere", 1);
    assert_fails(store_open(path, STORE_READ_ONLY, &store, &err), ST_ENVIRONMENT, "for a copy of a dataset");
    if (tmpdir)
        setenv("TMPDIR", tmpdir, 1);
    else
        unsetenv("TMPDIR");
    free(tmpdir);
    free(old);
    free(new);
    arena_release(&arena);
}

static void an_older_file_is_migrated_after_a_copy(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    const char *path = dataset_path("old.db");
    run_sql(path, version_1);
    struct store *store = NULL;
    store = must_open(path, STORE_READ_WRITE);
    assert_int_equal(count_trials(store), 1);
    must_put(store, STORE_RANKER, "new table", "{}");
    assert_sound(store);
    store_close(store);
    assert_true(is_there(path, ".v1.backup"));
    assert_false(is_there(path, ".v1.backup.2"));
    /* The copy is still version 1, and migrates in its turn. */
    char copy[300];
    snprintf(copy, sizeof copy, "%s.v1.backup", path);
    assert_int_equal(version_of(copy), 1);
    store = must_open(copy, STORE_READ_WRITE);
    assert_int_equal(count_trials(store), 1);
    store_close(store);
    /* Opening again is no migration. */
    store_close(must_open(path, STORE_READ_WRITE));
    assert_false(is_there(path, ".v1.backup.2"));
}

static void version_2_keeps_its_sessions_and_gets_what_a_service_needs(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    struct error err = {0};
    struct arena arena = {0};
    struct stored_session session;
    struct record *records;
    size_t n;
    int64_t trial;
    const char *path = dataset_path("v2.db");
    run_sql(path, version_1);
    run_sql(path, version_2);
    struct store *store = must_open(path, STORE_READ_WRITE);
    assert_true(is_there(path, ".v2.backup"));
    assert_ok(store_session_get(store, "old", &arena, &session, &err));
    assert_true(session.seed == UINT64_MAX && session.state == STORED_SESSION_DONE && session.trials == 1);
    assert_string_equal(session.budget, "{\"trials\":9}");
    assert_string_equal(session.ended, "2027");
    assert_string_equal(session.shared, "*");
    assert_true(!session.team && session.mode == STORED_SESSION_OWN);
    assert_string_equal(session.origin, SESSION_BEFORE);
    assert_ok(store_session_update(store, "open", STORED_SESSION_PAUSED, NULL, &err)); /* which version 2 knew not */
    assert_ok(query_collect(store, &(struct query){.iterations = true}, &arena, &n, &records, &err));
    assert_int_equal(n, 2);
    assert_true(records[0].n_iterations == 1 && records[0].attempt == 1 && records[1].predicted_us == 8.5);
    assert_string_equal(records[0].shared, "*");
    assert_string_equal(records[1].session, "open");
    assert_ok(store_trial_fail(store, 2, RECORD_CANCELLED, "stopped", &err));
    /* References hold again: the session of a trial cannot be missing. */
    const struct new_trial orphan = {.session = "nowhere",
                                     .model = MODEL_ID,
                                     .cluster = CLUSTER_ID,
                                     .strategy = STRATEGY_ID,
                                     .proposer = "p",
                                     .runner = "r",
                                     .predicted_us = 1};
    assert_fails(store_trial_begin(store, &orphan, &trial, &err), ST_NOT_FOUND, "refers to");
    assert_sound(store);
    store_close(store);
    arena_release(&arena);
}

static void version_6_loses_its_calibrations_and_nothing_else(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    struct error err = {0};
    struct arena arena = {0};
    struct stored_session session;
    struct stored_object *models;
    struct record *records;
    size_t n;
    char next[PAGE_CURSOR_ROOM];
    const struct viewer red = {.team = "red"};
    const char *path = dataset_path("v6.db");
    run_sql(path, version_6);
    struct store *store = must_open(path, STORE_READ_WRITE);
    assert_ok(store_session_get(store, "s", &arena, &session, &err));
    assert_true(session.seed == 7 && session.state == STORED_SESSION_DONE && session.trials == 1 && !session.origin);
    assert_ok(query_collect(store, &(struct query){.iterations = true}, &arena, &n, &records, &err));
    assert_int_equal(n, 2);
    assert_true(records[0].median_us == 90 && records[0].iterations_us[1] == 89 && records[0].seed == UINT64_MAX);
    assert_string_equal(records[0].session, "s");
    assert_ok(page_objects(store, &(struct object_list){.kind = STORE_MODEL, .asker = &red}, NULL, 10, &arena, &n,
                           &models, next, &err));
    assert_int_equal(n, 1);
    assert_string_equal(models[0].name, "ours");
    assert_sound(store);
    store_close(store);
    assert_int_equal(version_of(path), 7);
    assert_int_equal(number_in(path, "SELECT count(*) FROM sqlite_schema WHERE name = 'calibrations'"), 0);
    char copy[300];
    snprintf(copy, sizeof copy, "%s.v6.backup", path);
    assert_int_equal(version_of(copy), 6);
    assert_int_equal(number_in(copy, "SELECT count(*) FROM calibrations"), 2);
    arena_release(&arena);
}

static void a_migration_that_fails_leaves_the_old_version(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    struct error err = {0};
    struct store *store = NULL;
    const char *path = dataset_path("clash.db");
    run_sql(path, version_1);
    run_sql(path, "CREATE TABLE calibrations (mine INTEGER)");
    assert_fails(store_open(path, STORE_READ_WRITE, &store, &err), ST_ENVIRONMENT, "to schema version 2");
    assert_fails(store_open(path, STORE_READ_ONLY, &store, &err), ST_ENVIRONMENT, "to schema version 2");
    assert_int_equal(version_of(path), 1);
    run_sql(path, "DROP TABLE calibrations");
    store = must_open(path, STORE_READ_WRITE);
    assert_int_equal(count_trials(store), 1);
    assert_true(is_there(path, ".v1.backup") && is_there(path, ".v1.backup.2"));
    store_close(store);
}

/* Both modes refuse the file and leave its bytes alone. */
static void assert_refused(const char *path, const char *why) {
    struct error err = {0};
    struct store *store = NULL;
    size_t before, after;
    char *old = slurp(path, &before);
    assert_fails(store_open(path, STORE_READ_WRITE, &store, &err), ST_INVALID, why);
    assert_fails(store_open(path, STORE_READ_ONLY, &store, &err), ST_INVALID, why);
    assert_null(strchr(ERROR_TEXT(&err), '\n'));
    assert_null(store);
    char *new = slurp(path, &after);
    assert_int_equal(before, after);
    assert_memory_equal(old, new, before);
    free(old);
    free(new);
    assert_false(is_there(path, ".lock"));
    assert_false(is_there(path, "-wal"));
}

static void other_files_are_refused_and_left_alone(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    const char *path = dataset_path("newer.db");
    store_close(must_open(path, STORE_READ_WRITE));
    run_sql(path, "PRAGMA journal_mode = DELETE; PRAGMA user_version = 999");
    assert_refused(path, "schema version 999");
    path = dataset_path("foreign.db");
    run_sql(path, "CREATE TABLE songs (title TEXT); PRAGMA user_version = 2");
    assert_refused(path, "of another program");
    assert_refused(test_file("notes.txt", "this is a text, long enough to be looked at as a database header is\n"
                                          "this is a text, long enough to be looked at as a database header is\n"),
                   "no SQLite file");
}

static void paths_that_cannot_be_are_said_in_a_line(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    struct error err = {0};
    struct store *store = NULL;
    assert_fails(store_open(dataset_path("none.db"), STORE_READ_ONLY, &store, &err), ST_NOT_FOUND, "no such dataset");
    assert_fails(store_open(dataset_path("no/where.db"), STORE_READ_WRITE, &store, &err), ST_NOT_FOUND, "folder");
    assert_fails(store_open(test_dir(), STORE_READ_WRITE, &store, &err), ST_ENVIRONMENT, "cannot be opened");
    assert_false(is_there(dataset_path("none.db"), ""));
    store_close(must_open(dataset_path("a %%20?b#c.db"), STORE_READ_WRITE));
    store_close(must_open(dataset_path("a %%20?b#c.db"), STORE_READ_ONLY));
    assert_true(is_there(dataset_path("a %%20?b#c.db"), ""));
}

/* A damaged page in the middle: reading fails with words, check names it. */
static void damage_is_found_and_never_crashes(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    struct error err = {0};
    struct check_report report = {0};
    struct rng rng;
    const uint64_t seed = test_seed();
    rng_seed(&rng, seed);
    const char *path = dataset_path("damaged.db");
    struct store *store = must_open(path, STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    for (int i = 0; i < 300; i++)
        must_run_trial(store, &f, NULL, 50 + i);
    store_close(store);
    size_t n;
    char *whole = slurp(path, &n);
    unsigned found = 0;
    for (int round = 0; round < 60; round++) {
        FILE *file = fopen(path, "r+b");
        const size_t at = 4096 + rng_below(&rng, n - 4096 - 256);
        unsigned char noise[256];
        for (size_t i = 0; i < sizeof noise; i++)
            noise[i] = (unsigned char)rng_next(&rng);
        fwrite(whole, 1, n, file);
        fseek(file, (long)at, SEEK_SET);
        fwrite(noise, 1, sizeof noise, file);
        fclose(file);
        enum status status = store_open(path, STORE_READ_ONLY, &store, &err);
        if (status == ST_OK) {
            status = check_run(store, NULL, NULL, &report, &err);
            found += status != ST_OK || report.problems > 0;
            store_close(store);
        } else {
            found++;
        }
        if (status != ST_OK && status != ST_INVALID)
            fail_msg("round %d, seed %llu: %s", round, (unsigned long long)seed, ERROR_TEXT(&err));
    }
    free(whole);
    print_message("# damage found in %u of 60 files; the rest fell on unused bytes\n", found);
    assert_true(found >= 20);
}

static void a_truncated_file_is_refused(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    struct error err = {0};
    const char *path = dataset_path("short.db");
    struct store *store = must_open(path, STORE_READ_WRITE);
    put_fixture(store);
    store_close(store);
    assert_int_equal(truncate(path, 5000), 0);
    enum status status = store_open(path, STORE_READ_ONLY, &store, &err);
    if (status == ST_OK) {
        struct check_report report;
        status = check_run(store, NULL, NULL, &report, &err);
        assert_true(status == ST_INVALID || report.problems > 0);
        store_close(store);
    } else {
        assert_int_equal(status, ST_INVALID);
    }
}

static void a_second_writer_is_refused_by_the_pid_of_the_first(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    struct error err = {0};
    struct store *second = NULL;
    char pid[32];
    const char *path = dataset_path("locked.db");
    struct store *first = must_open(path, STORE_READ_WRITE);
    snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    assert_fails(store_open(path, STORE_READ_WRITE, &second, &err), ST_CONFLICT, pid);
    /* By another name, the same file. */
    const char *alias = dataset_path("alias.db");
    assert_int_equal(symlink(path, alias), 0);
    assert_fails(store_open(alias, STORE_READ_WRITE, &second, &err), ST_CONFLICT, pid);
    store_close(must_open(path, STORE_READ_ONLY));
    store_close(first);
    assert_false(is_there(path, ".lock"));
    store_close(must_open(path, STORE_READ_WRITE));
}

static void the_lock_of_a_killed_process_is_free(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    struct error err = {0};
    struct store *store = NULL;
    const char *path = dataset_path("killed.db");
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        if (store_open(path, STORE_READ_WRITE, &store, &err) == ST_OK)
            (void)!write(ready[1], "x", 1);
        pause();
        _exit(0);
    }
    char byte, words[32];
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    snprintf(words, sizeof words, "process %ld", (long)child);
    assert_fails(store_open(path, STORE_READ_WRITE, &store, &err), ST_CONFLICT, words);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(is_there(path, ".lock"));
    store_close(must_open(path, STORE_READ_WRITE));
    assert_false(is_there(path, ".lock"));
}

/* Begin and finish trials for ever; say each only after it was acknowledged. */
static void write_trials(const char *path, int out) {
    struct error err = {0};
    struct store *store;
    struct id id;
    if (store_open(path, STORE_READ_WRITE, &store, &err) != ST_OK)
        _exit(3);
    if (store_find(store, STORE_STRATEGY, "wfbp", &id, &err) != ST_OK)
        put_fixture(store);
    const struct fixture f = put_fixture(store);
    for (;;) {
        const struct new_trial request = request_of(&f, NULL);
        int64_t trial;
        if (store_trial_begin(store, &request, &trial, &err) != ST_OK ||
            finish_trial(store, trial, 100 + (double)trial, &err) != ST_OK)
            _exit(4);
        if (write(out, &trial, sizeof trial) != (ssize_t)sizeof trial)
            _exit(5);
    }
}

/* The trials that a child acknowledged before it was killed. */
static size_t kill_a_writer(const char *path, double after_us, int64_t *seen, size_t max) {
    int pipe_ends[2];
    assert_int_equal(pipe(pipe_ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(pipe_ends[0]);
        write_trials(path, pipe_ends[1]);
    }
    close(pipe_ends[1]);
    size_t n = 0;
    assert_int_equal(read(pipe_ends[0], &seen[n++], sizeof *seen), sizeof *seen); /* it is writing now */
    clock_sleep_us(after_us);
    kill(child, SIGKILL);
    while (n < max && read(pipe_ends[0], &seen[n], sizeof *seen) == (ssize_t)sizeof *seen)
        n++;
    close(pipe_ends[0]);
    waitpid(child, NULL, 0);
    return n;
}

static void nothing_acknowledged_is_lost_to_sigkill(void **state) {
    (void)state;
    enum { MOST = 4000 }; /* a pipe holds 8192 */
    struct error err = {0};
    struct arena arena = {0};
    struct rng rng;
    rng_seed(&rng, test_seed());
    static int64_t seen[10 * MOST];
    size_t n = 0, stored;
    const char *path = dataset_path("kill.db");
    for (int round = 0; round < 10; round++) {
        n += kill_a_writer(path, rng_between(&rng, 0, 60e3), seen + n, MOST);
        struct store *store = must_open(path, STORE_READ_WRITE);
        struct record *records;
        assert_ok(query_collect(store, &(struct query){.iterations = true}, &arena, &stored, &records, &err));
        for (size_t i = 0, j = 0; i < n; i++) {
            while (j < stored && records[j].trial < seen[i])
                j++;
            assert_true(j < stored && records[j].trial == seen[i]);
            assert_int_equal(records[j].state, RECORD_COMPLETE);
            assert_int_equal(records[j].n_iterations, 3);
            assert_true(records[j].median_us == 100 + (double)seen[i]);
        }
        /* At most one a killed process is not acknowledged. */
        assert_true(stored <= n + (size_t)round + 1);
        assert_sound(store);
        store_close(store);
        arena_clear(&arena);
    }
    print_message("# %zu trials acknowledged over 10 kills\n", n);
    arena_release(&arena);
}

/* Run `fn` in a child without root's right to write what is read-only; its result is the child's exit status. */
static int as_nobody(int (*fn)(const char *path), const char *path) {
    const pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0))
            _exit(99);
        _exit(fn(path));
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

static int write_is_refused_and_reading_works(const char *path) {
    struct error err = {0};
    struct store *store;
    uint64_t n = 0;
    if (store_open(path, STORE_READ_WRITE, &store, &err) != ST_ENVIRONMENT || !strstr(ERROR_TEXT(&err), "read-only"))
        return 1;
    if (store_open(path, STORE_READ_ONLY, &store, &err) != ST_OK)
        return 2;
    if (query_count(store, &(struct query){0}, &n, &err) != ST_OK || n != 1)
        return 3;
    store_close(store);
    return 0;
}

static int making_is_refused(const char *path) {
    struct error err = {0};
    struct store *store;
    return store_open(path, STORE_READ_WRITE, &store, &err) != ST_ENVIRONMENT || !strstr(ERROR_TEXT(&err), "denied");
}

static void a_read_only_file_and_folder_can_be_read_and_not_written(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    const char *folder = dataset_path("shared"), *path = dataset_path("shared/one.db");
    assert_int_equal(mkdir(folder, 0755), 0);
    struct store *store = must_open(path, STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    must_run_trial(store, &f, NULL, 7);
    store_close(store);
    assert_int_equal(chmod(test_dir(), 0755), 0);
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(as_nobody(write_is_refused_and_reading_works, path), 0); /* the file */
    assert_int_equal(chmod(folder, 0555), 0);
    assert_int_equal(as_nobody(write_is_refused_and_reading_works, path), 0); /* and its folder */
    assert_int_equal(as_nobody(making_is_refused, dataset_path("shared/new.db")), 0);
    assert_false(is_there(path, "-wal"));
    assert_int_equal(chmod(folder, 0755), 0);
}

static bool is_alone(const char *path) {
    return is_there(path, "") && !is_there(path, "-wal") && !is_there(path, "-shm");
}

static void the_last_who_reads_leaves_one_file(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    const char *path = dataset_path("read.db");
    struct store *store = must_open(path, STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    store_close(store);
    assert_true(is_alone(path));
    struct store *first = must_open(path, STORE_READ_ONLY), *second = must_open(path, STORE_READ_ONLY);
    struct error err = {0};
    assert_ok(store_has(first, STORE_MODEL, f.model.hex, &err));
    struct arena named = {0};
    const char *name;
    assert_ok(seen_name(first, STORE_MODEL, f.model.hex, NULL, &named, &name, &err));
    assert_true(*name);
    arena_release(&named);
    store_close(first);
    assert_ok(store_has(second, STORE_MODEL, f.model.hex, &err));
    store_close(second);
    assert_true(is_alone(path));
}

static void who_reads_beside_a_writer_leaves_its_log_alone(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    const char *path = dataset_path("beside.db");
    struct store *store = must_open(path, STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    store_close(store);
    store = must_open(path, STORE_READ_WRITE); /* its log is still empty */
    store_close(must_open(path, STORE_READ_ONLY));
    must_run_trial(store, &f, NULL, 7);
    store_close(must_open(path, STORE_READ_ONLY));
    struct store *reader = must_open(path, STORE_READ_ONLY);
    const struct query all = {0};
    uint64_t n;
    struct error err = {0};
    assert_ok(query_count(reader, &all, &n, &err));
    assert_int_equal(n, 1);
    store_close(reader);
    store_close(store);
    assert_true(is_alone(path));
}

static void the_log_of_a_writer_that_died_stays_until_one_writes(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    const char *path = dataset_path("died.db");
    const pid_t child = fork();
    if (!child) {
        struct store *store = must_open(path, STORE_READ_WRITE);
        put_fixture(store);
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(is_there(path, "-wal"));
    store_close(must_open(path, STORE_READ_ONLY));
    assert_true(is_there(path, "-wal"));
    store_close(must_open(path, STORE_READ_WRITE));
    assert_true(is_alone(path));
}

static bool mount_small_disk(const char *folder, const char *size) {
    mkdir(folder, 0755);
    return geteuid() == 0 && unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", folder, "tmpfs", 0, size) == 0;
}

/* Write until it fails; how many trials were acknowledged. */
static uint64_t fill(struct store *store, const struct fixture *f, struct error *err) {
    const struct new_trial request = request_of(f, NULL);
    int64_t trial;
    for (uint64_t n = 0; n < 100000; n++) {
        if (store_trial_begin(store, &request, &trial, err) != ST_OK || finish_trial(store, trial, 5, err) != ST_OK)
            return n;
    }
    fail_msg("the disk never filled");
    return 0;
}

static uint64_t count_complete(struct store *store) {
    struct error err = {0};
    const enum record_state complete = RECORD_COMPLETE;
    uint64_t n = 0;
    assert_ok(query_count(store, &(struct query){.state = &complete}, &n, &err));
    return n;
}

static void a_full_disk_stops_a_step_and_loses_none_before(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    struct error err = {0};
    const char *folder = dataset_path("disk"), *path = dataset_path("disk/full.db");
    if (!mount_small_disk(folder, "size=1m")) {
        print_message("# needs root to mount a small disk\n");
        skip();
    }
    struct store *store = must_open(path, STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    const uint64_t n = fill(store, &f, &err);
    assert_int_equal(err.status, ST_ENVIRONMENT);
    assert_contains(ERROR_TEXT(&err), "the disk is full");
    assert_true(n > 0);
    assert_int_equal(count_complete(store), n);
    /* With room again the same open store goes on. */
    assert_int_equal(mount("none", folder, "tmpfs", MS_REMOUNT, "size=8m"), 0);
    must_run_trial(store, &f, NULL, 5);
    assert_int_equal(count_complete(store), n + 1);
    assert_sound(store);
    store_close(store);
    store = must_open(path, STORE_READ_WRITE);
    assert_int_equal(count_complete(store), n + 1);
    store_close(store);
    umount2(folder, MNT_DETACH);
}

static void a_disk_too_small_to_begin_on_is_left_empty(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    struct error err = {0};
    struct store *store = NULL;
    const char *folder = dataset_path("tiny"), *path = dataset_path("tiny/full.db");
    if (!mount_small_disk(folder, "size=64k")) {
        print_message("# needs root to mount a small disk\n");
        skip();
    }
    assert_fails(store_open(path, STORE_READ_WRITE, &store, &err), ST_ENVIRONMENT, path);
    assert_false(is_there(path, "") || is_there(path, "-wal") || is_there(path, "-shm") || is_there(path, ".lock"));
    umount2(folder, MNT_DETACH);
}

static void a_limit_on_the_file_size_is_a_failed_step_too(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    const char *path = dataset_path("limited.db");
    store_close(must_open(path, STORE_READ_WRITE));
    const pid_t child = fork();
    if (child == 0) {
        struct error err = {0};
        struct store *store;
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){300000, 300000});
        if (store_open(path, STORE_READ_WRITE, &store, &err) != ST_OK)
            _exit(1);
        const struct fixture f = put_fixture(store);
        const uint64_t n = fill(store, &f, &err);
        _exit(err.status != ST_ENVIRONMENT ? 2 : n == 0 ? 3 : count_complete(store) != n ? 4 : 0);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    struct store *store = must_open(path, STORE_READ_WRITE);
    assert_sound(store);
    store_close(store);
}

static void a_backup_is_one_whole_file_and_overwrites_nothing(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    struct error err = {0};
    const char *path = dataset_path("live.db"), *copy = dataset_path("copy.db");
    struct store *store = must_open(path, STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    must_run_trial(store, &f, NULL, 8);
    assert_ok(store_backup(store, copy, &err));
    must_run_trial(store, &f, NULL, 9);
    assert_fails(store_backup(store, copy, &err), ST_CONFLICT, "there already");
    assert_fails(store_backup(store, dataset_path("no/copy.db"), &err), ST_ENVIRONMENT, "no/copy.db");
    store_close(store);
    assert_false(is_there(copy, "-wal") || is_there(copy, "-shm") || is_there(copy, "-journal"));
    store = must_open(copy, STORE_READ_ONLY);
    assert_int_equal(count_trials(store), 1);
    assert_sound(store);
    store_close(store);
}

static int note_detail(void *context, int n, char **values, char **names) {
    (void)names;
    strncat(context, values[n - 1], 500);
    return 0;
}

static void a_lost_index_is_made_again_at_opening(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL();
    char plan[1024] = "";
    sqlite3 *db;
    const char *path = dataset_path("index.db");
    store_close(must_open(path, STORE_READ_WRITE));
    run_sql(path, "DROP INDEX trials_problem; DROP INDEX trials_model");
    store_close(must_open(path, STORE_READ_WRITE));
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_exec(db,
                 "EXPLAIN QUERY PLAN SELECT * FROM trials WHERE model = 1 AND cluster = 1 ORDER BY median_us LIMIT 1",
                 note_detail, plan, NULL);
    sqlite3_exec(db, "EXPLAIN QUERY PLAN SELECT * FROM trials WHERE model = 1 ORDER BY id LIMIT 1", note_detail, plan,
                 NULL);
    sqlite3_close(db);
    assert_contains(plan, "USING INDEX trials_problem (model=? AND cluster=?)");
    assert_contains(plan, "USING INDEX trials_model (model=?)");
    assert_null(strstr(plan, "TEMP B-TREE"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_older_file_is_read_and_stays_as_it_is),
        cmocka_unit_test(an_older_file_is_migrated_after_a_copy),
        cmocka_unit_test(version_2_keeps_its_sessions_and_gets_what_a_service_needs),
        cmocka_unit_test(version_6_loses_its_calibrations_and_nothing_else),
        cmocka_unit_test(a_migration_that_fails_leaves_the_old_version),
        cmocka_unit_test(a_lost_index_is_made_again_at_opening),
        cmocka_unit_test(other_files_are_refused_and_left_alone),
        cmocka_unit_test(paths_that_cannot_be_are_said_in_a_line),
        cmocka_unit_test(damage_is_found_and_never_crashes),
        cmocka_unit_test(a_truncated_file_is_refused),
        cmocka_unit_test(a_second_writer_is_refused_by_the_pid_of_the_first),
        cmocka_unit_test(the_lock_of_a_killed_process_is_free),
        cmocka_unit_test(nothing_acknowledged_is_lost_to_sigkill),
        cmocka_unit_test(a_read_only_file_and_folder_can_be_read_and_not_written),
        cmocka_unit_test(the_last_who_reads_leaves_one_file),
        cmocka_unit_test(who_reads_beside_a_writer_leaves_its_log_alone),
        cmocka_unit_test(the_log_of_a_writer_that_died_stays_until_one_writes),
        cmocka_unit_test(a_full_disk_stops_a_step_and_loses_none_before),
        cmocka_unit_test(a_disk_too_small_to_begin_on_is_left_empty),
        cmocka_unit_test(a_limit_on_the_file_size_is_a_failed_step_too),
        cmocka_unit_test(a_backup_is_one_whole_file_and_overwrites_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
