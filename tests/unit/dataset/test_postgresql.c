/* What a dataset in PostgreSQL has of its own. Needs SYNCOPATE_TEST_POSTGRESQL (fixture.h); every test skips without.
 * The other tests of this folder run there as well (tests/cli/postgresql.sh). */
#include <libpq-fe.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "dataset/check.h"
#include "dataset/claims.h"
#include "dataset/export.h"
#include "dataset/holdings.h"
#include "dataset/leases.h"
#include "dataset/merge.h"
#include "dataset/postgres_internal.h"
#include "dataset/store_internal.h"
#include "dataset/writer.h"
#include "tests/unit/dataset/fixture.h"

#define NEEDS_POSTGRESQL()                                                                                             \
    do {                                                                                                               \
        if (!test_database()) {                                                                                        \
            print_message("# needs PostgreSQL: tests/cli/postgresql.sh\n");                                            \
            skip();                                                                                                    \
        }                                                                                                              \
    } while (0)

static void assert_sound(struct store *store) {
    struct error err = {0};
    struct check_report report;
    assert_ok(check_run(store, NULL, NULL, &report, &err));
    assert_int_equal(report.problems, 0);
}

/* Everything but row numbers: those depend on the order of a merge. */
static char *everything_in(struct store *store) {
    struct error err = {0};
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    const struct query query = {.iterations = true};
    assert_ok(export_references(store, &query, out, &err));
    assert_ok(export_run(store, &query, EXPORT_JSON_LINES, out, NULL, &err));
    fclose(out);
    return text;
}

static void fill(struct store *store, struct rng *rng) {
    struct error err = {0};
    const struct fixture f = put_fixture(store);
    must_begin_session(store, &f, "s", UINT64_MAX - 1);
    assert_ok(holding_put(store, STORE_MODEL, f.model.hex, "red", "mine", "|blue|", &err));
    for (int i = 0; i < 60; i++) {
        struct new_trial request = request_of(&f, i % 2 ? "s" : NULL);
        const struct id strategy = must_put_variant(store, STORE_STRATEGY, (int)rng_below(rng, 9));
        request.strategy = strategy.hex;
        request.seed = rng_next(rng);
        request.predicted_us = i % 5 ? rng_log_between(rng, 1e-3, 1e9) : (double)NAN;
        request.team = i % 2 ? NULL : i % 3 ? "red" : "blue";
        request.shared = i % 4 ? "" : "|blue|green|";
        request.proposer = i % 3 ? "\303\251t\303\251 'quoted' \"and\" \\back" : "?1 $1 main.x source.y";
        const int64_t trial = must_begin_trial(store, &request);
        if (i % 7)
            assert_ok(finish_trial(store, trial, rng_log_between(rng, 2, 1e9), &err));
        else
            assert_ok(store_trial_fail(store, trial, RECORD_FAILED, "line 1\nline 2 '?'", &err));
    }
    assert_ok(store_session_update(store, "s", STORED_SESSION_DONE, NULL, &err));
}

static const char *file_path(const char *name) {
    static char paths[2][256];
    static int turn;
    char *path = paths[turn++ % 2];
    snprintf(path, sizeof paths[0], "%s/%s", test_dir(), name);
    return path;
}

/* From PostgreSQL into a file, from there into PostgreSQL again, and the other way round. */
static void a_merge_with_a_file_is_exact_both_ways(void **state) {
    (void)state;
    NEEDS_POSTGRESQL();
    struct error err = {0};
    struct merge_report report, again;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int turn = 0; turn < 2; turn++) {
        char path[3][512];
        for (int i = 0; i < 3; i++) {
            char name[32];
            snprintf(name, sizeof name, "both%d-%d.db", turn, i);
            snprintf(path[i], sizeof path[i], "%s", (turn + i) % 2 ? file_path(name) : dataset_path("%s", name));
        }
        struct store *first = must_open(path[0], STORE_READ_WRITE);
        fill(first, &rng);
        char *text[3] = {everything_in(first)};
        store_close(first);
        for (int i = 1; i < 3; i++) {
            struct store *store = must_open(path[i], STORE_READ_WRITE);
            assert_ok(merge_run(store, path[i - 1], &report, &err));
            assert_int_equal(report.trials, 60);
            assert_int_equal(report.sessions, 1);
            assert_ok(merge_run(store, path[i - 1], &again, &err));
            assert_int_equal(again.trials + again.sessions + again.objects, 0);
            assert_sound(store);
            text[i] = everything_in(store);
            store_close(store);
            assert_string_equal(text[0], text[i]);
        }
        for (int i = 0; i < 3; i++)
            free(text[i]);
    }
}

static void an_address_with_a_password_is_refused_and_not_repeated(void **state) {
    (void)state;
    struct error err = {0};
    struct store *store;
    static const char *const addresses[] = {"postgresql://me:geheim@127.0.0.1/x", "postgres://h/x?password=geheim",
                                            "postgresql://h/x?nonsense=geheim", "postgresql://[geheim"};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        assert_fails(store_open(addresses[i], STORE_READ_ONLY, &store, &err), ST_USAGE,
                     i < 2 ? "~/.pgpass" : "postgresql://user@host");
        assert_null(strstr(ERROR_TEXT(&err), "geheim"));
        assert_null(strstr(err.place, "geheim"));
    }
}

static void a_server_that_is_away_is_one_line(void **state) {
    (void)state;
    struct error err = {0};
    struct store *store;
    char address[512];
    snprintf(address, sizeof address, "postgresql:///x?host=%s", test_dir());
    assert_fails(store_open(address, STORE_READ_ONLY, &store, &err), ST_ENVIRONMENT, "PostgreSQL cannot be reached");
    assert_null(strchr(ERROR_TEXT(&err), '\n'));
}

static void schemas_that_are_not_ours_are_refused_and_left_alone(void **state) {
    (void)state;
    NEEDS_POSTGRESQL();
    struct error err = {0};
    struct store *store = NULL;
    const char *path = dataset_path("foreign.db");
    assert_fails(store_open(path, STORE_READ_ONLY, &store, &err), ST_NOT_FOUND, "no such dataset");
    store_close(must_open(path, STORE_READ_WRITE));
    change_dataset(path, "UPDATE syncopate_schema SET version = 999");
    for (int mode = STORE_READ_ONLY; mode <= STORE_READ_WRITE; mode++)
        assert_fails(store_open(path, (enum store_mode)mode, &store, &err), ST_INVALID, "schema version 999");
    path = dataset_path("songs.db");
    store = must_open(path, STORE_READ_WRITE);
    assert_ok(sql_exec(store, "DROP TABLE syncopate_schema", &err));
    store_close(store);
    for (int mode = STORE_READ_ONLY; mode <= STORE_READ_WRITE; mode++)
        assert_fails(store_open(path, (enum store_mode)mode, &store, &err), ST_INVALID, "of another program");
}

/* What another program may do to trials and to what they refer to, and what it may not. */
static void assert_references_hold(struct store *store) {
    static const struct {
        const char *sql;
        enum status status;
    } cases[] = {
        {"INSERT INTO trials (uid, round, model, cluster, strategy, proposer, runner, seed, state, queued)"
         " SELECT 'u' || n, 0, model, cluster, n, 'p', 'r', 0, 'waiting', 'now' FROM trials, (VALUES (1), (77)) x (n)",
         ST_NOT_FOUND},
        {"INSERT INTO trials (uid, session, number, round, model, cluster, strategy, proposer, runner, seed, state, "
         "queued)"
         " SELECT 'u', 'none', 1, 0, model, cluster, strategy, 'p', 'r', 0, 'waiting', 'now' FROM trials",
         ST_NOT_FOUND},
        {"UPDATE trials SET model = 77", ST_NOT_FOUND},
        {"UPDATE trials SET cluster = 77", ST_NOT_FOUND},
        {"UPDATE trials SET strategy = 77", ST_NOT_FOUND},
        {"UPDATE trials SET environment = 77", ST_NOT_FOUND},
        {"UPDATE trials SET session = 'none'", ST_NOT_FOUND},
        {"UPDATE trials SET id = 77", ST_NOT_FOUND}, /* it has iterations */
        {"INSERT INTO iterations VALUES (77, 0, 1)", ST_NOT_FOUND},
        {"UPDATE iterations SET trial = 77", ST_NOT_FOUND},
        {"DELETE FROM strategies", ST_NOT_FOUND},
        {"DELETE FROM environments", ST_NOT_FOUND},
        {"DELETE FROM sessions", ST_NOT_FOUND},
        {"UPDATE strategies SET row = 77", ST_NOT_FOUND},
        {"UPDATE sessions SET id = 'other'", ST_NOT_FOUND},
        {"TRUNCATE strategies", ST_NOT_FOUND},
        {"TRUNCATE trials", ST_NOT_FOUND},
        {"BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE trials SET model = 77", ST_ENVIRONMENT},
        {"UPDATE strategies SET row = row, name = 'n'", ST_OK},
        {"UPDATE trials SET model = model, session = session", ST_OK},
        {"DELETE FROM trials", ST_OK}, /* its iterations go with it */
        {"DELETE FROM strategies", ST_OK},
    };
    struct error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("# %s\n", cases[i].sql);
        err = (struct error){0};
        assert_int_equal(sql_exec(store, cases[i].sql, &err), cases[i].status);
        if (PQtransactionStatus(store->postgres->connection) != PQTRANS_IDLE)
            assert_ok(sql_exec(store, "ROLLBACK", &err));
    }
    int64_t left;
    assert_ok(sql_first_integer(store, "SELECT count(*) FROM iterations", 0, NULL, &left, &err));
    assert_int_equal(left, 0);
}

static void put_one_trial(struct store *store) {
    struct error err = {0};
    const struct fixture f = put_fixture(store);
    must_begin_session(store, &f, "s", 1);
    const struct new_trial request = request_of(&f, "s");
    assert_ok(finish_trial(store, must_begin_trial(store, &request), 10, &err));
}

static void what_trials_refer_to_is_there_and_stays(void **state) {
    (void)state;
    NEEDS_POSTGRESQL();
    struct store *store = must_open(dataset_path("references.db"), STORE_READ_WRITE);
    put_one_trial(store);
    assert_references_hold(store);
    store_close(store);
}

/* As version 7 had it. */
static const char back_to_7[] =
    "DROP FUNCTION check_trials, check_trial, check_iterations, check_iteration, keep_referred, delete_iterations,"
    " take_turn CASCADE;"
    " DROP INDEX trials_number; CREATE INDEX trials_model ON trials (model);"
    " ALTER TABLE trials ADD CONSTRAINT trials_session_number_key UNIQUE (session, number),"
    " ADD FOREIGN KEY (session) REFERENCES sessions (id), ADD FOREIGN KEY (model) REFERENCES models (row),"
    " ADD FOREIGN KEY (cluster) REFERENCES clusters (row), ADD FOREIGN KEY (strategy) REFERENCES strategies (row),"
    " ADD FOREIGN KEY (environment) REFERENCES environments (row);"
    " ALTER TABLE iterations ADD FOREIGN KEY (trial) REFERENCES trials (id) ON DELETE CASCADE;"
    " UPDATE syncopate_schema SET version = 7";

static void a_dataset_of_version_7_is_brought_up_to_date_by_who_writes(void **state) {
    (void)state;
    NEEDS_POSTGRESQL();
    static const char version[] = "SELECT version FROM syncopate_schema",
                      keys[] = "SELECT count(*) FROM pg_constraint WHERE contype = 'f'"
                               " AND conrelid IN ('trials'::regclass, 'iterations'::regclass)";
    struct error err = {0};
    int64_t n;
    const char *path = dataset_path("seven.db");
    struct store *store = must_open(path, STORE_READ_WRITE);
    put_one_trial(store);
    assert_ok(sql_exec(store, back_to_7, &err));
    store_close(store);
    for (int mode = STORE_READ_ONLY; mode <= STORE_READ_WRITE; mode++) {
        store = must_open(path, (enum store_mode)mode);
        assert_int_equal(count_trials(store), 1);
        assert_ok(sql_first_integer(store, version, 0, NULL, &n, &err));
        assert_int_equal(n, mode == STORE_READ_ONLY ? 7 : 8);
        assert_ok(sql_first_integer(store, keys, 0, NULL, &n, &err));
        assert_int_equal(n, mode == STORE_READ_ONLY ? 6 : 0);
        if (mode == STORE_READ_WRITE)
            assert_references_hold(store);
        store_close(store);
    }
}

static void a_store_that_reads_cannot_write(void **state) {
    (void)state;
    NEEDS_POSTGRESQL();
    struct error err = {0};
    const char *path = dataset_path("reading.db");
    store_close(must_open(path, STORE_READ_WRITE));
    struct store *store = must_open(path, STORE_READ_ONLY);
    assert_fails(store_begin(store, &err), ST_CONFLICT, "for reading only");
    assert_fails(sql_exec(store, "DELETE FROM trials", &err), ST_ENVIRONMENT, "takes no writes");
    store_close(store);
}

static void a_question_that_takes_too_long_is_stopped(void **state) {
    (void)state;
    NEEDS_POSTGRESQL();
    struct error err = {0};
    struct sql_statement *stmt;
    bool row;
    struct store *store = must_open(dataset_path("slow.db"), STORE_READ_WRITE);
    const double began_us = clock_now_us(), deadline_us = began_us + 200e3;
    assert_ok(sql_prepare(store, "SELECT pg_sleep(60)", &stmt, &err));
    sql_hurry(store, &deadline_us);
    assert_fails(sql_next(store, stmt, &row, &err), ST_TIMEOUT, "too long");
    sql_hurry(store, NULL);
    sql_finalize(stmt);
    assert_true(clock_now_us() - began_us < 30e6);
    put_fixture(store); /* the connection is as good as before */
    store_close(store);
}

/* As an administrator does, or a restart. */
static void cut(struct store *other, struct store *store) {
    struct error err = {0};
    char sql[128];
    snprintf(sql, sizeof sql, "SELECT pg_terminate_backend(%d, 10000)", PQbackendPID(store->postgres->connection));
    assert_ok(sql_exec(other, sql, &err));
}

static void a_lost_connection_loses_its_step_alone(void **state) {
    (void)state;
    NEEDS_POSTGRESQL();
    struct error err = {0};
    struct store *other = must_open(dataset_path("other.db"), STORE_READ_WRITE);
    const char *path = dataset_path("lost.db");
    struct store *store = must_open(path, STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    must_run_trial(store, &f, NULL, 10);
    /* within a step */
    assert_ok(store_begin(store, &err));
    must_run_trial(store, &f, NULL, 20);
    cut(other, store);
    const struct new_trial request = request_of(&f, NULL);
    int64_t trial;
    const enum status status = store_trial_begin(store, &request, &trial, &err);
    assert_int_equal(status, ST_ENVIRONMENT);
    assert_contains(ERROR_TEXT(&err), "connection to PostgreSQL was lost");
    assert_int_equal(store_end(store, status, &err), status);
    assert_int_equal(count_trials(store), 1);
    must_run_trial(store, &f, NULL, 30);
    /* between steps, nobody sees it */
    cut(other, store);
    must_run_trial(store, &f, NULL, 40);
    cut(other, store);
    assert_int_equal(count_trials(store), 3);
    assert_sound(store);
    store_close(store);
    store_close(other);
}

enum { PROCESSES = 3, STEPS = 40, WAITING = 25 };

static int64_t first_waiting(struct store *store) {
    struct error err = {0};
    int64_t first;
    assert_ok(sql_first_integer(store, "SELECT min(id) FROM trials WHERE state = 'waiting'", 0, NULL, &first, &err));
    return first;
}

/* Takes what waits, and adds trials of strategies and teams that the others add too. Returns how many leases it got. */
static int write_beside_others(const char *path, const struct fixture *f, uint64_t seed) {
    struct error err = {0};
    struct rng rng;
    struct store *store = must_open(path, STORE_READ_WRITE);
    int leases = 0;
    rng_seed(&rng, seed);
    const int64_t first = first_waiting(store);
    for (int i = 0; i < STEPS; i++) {
        struct new_trial request = request_of(f, i % 2 ? "s" : NULL);
        const struct id strategy = must_put_variant(store, STORE_STRATEGY, (int)rng_below(&rng, 6));
        request.strategy = strategy.hex;
        request.team = i % 2 ? NULL : rng_below(&rng, 2) ? "red" : "blue";
        request.shared = rng_below(&rng, 2) ? "*" : "|green|";
        const int64_t trial = must_begin_trial(store, &request);
        assert_ok(finish_trial(store, trial, rng_log_between(&rng, 2, 1e9), &err));
        leases += i < WAITING && !lease_take(store, first + i, "me", 60e6, NULL, &err);
        if (i % 5 == 4)
            assert_ok(store_session_share(store, "s", rng_below(&rng, 2) ? "*" : "", &err));
    }
    store_close(store);
    return leases;
}

static void several_processes_write_at_once(void **state) {
    (void)state;
    NEEDS_POSTGRESQL();
    struct error err = {0};
    const uint64_t seed = test_seed();
    const char *path = dataset_path("several.db");
    struct store *store = must_open(path, STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    must_begin_session(store, &f, "s", 1);
    struct new_trial waiting = request_of(&f, "s");
    waiting.waiting = true;
    for (int i = 0; i < WAITING; i++)
        must_begin_trial(store, &waiting);
    store_close(store);
    pid_t children[PROCESSES];
    int leases = 0, how;
    for (int i = 0; i < PROCESSES; i++)
        if (!(children[i] = fork()))
            _exit(write_beside_others(path, &f, seed + (uint64_t)i));
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(waitpid(children[i], &how, 0), children[i]);
        assert_true(WIFEXITED(how));
        leases += WEXITSTATUS(how);
    }
    store = must_open(path, STORE_READ_WRITE);
    assert_int_equal(leases, WAITING); /* each was given once */
    assert_int_equal(count_trials(store), WAITING + PROCESSES * STEPS);
    int64_t last;
    assert_ok(sql_first_integer(store, "SELECT max(number) FROM trials WHERE session = 's'", 0, NULL, &last, &err));
    assert_int_equal(last, WAITING + PROCESSES * STEPS / 2);
    assert_sound(store); /* counts what each team sees anew */
    store_close(store);
}

static void a_claim_is_one_process_s_until_its_connection_ends(void **state) {
    (void)state;
    NEEDS_POSTGRESQL();
    struct error err = {0};
    bool taken, alone;
    struct store *other = must_open(dataset_path("other.db"), STORE_READ_WRITE);
    const char *path = dataset_path("claims.db");
    struct store *a = must_open(path, STORE_READ_WRITE), *b = must_open(path, STORE_READ_WRITE);
    assert_ok(store_join(a, &alone, &err));
    assert_true(alone);
    assert_ok(store_join(b, &alone, &err));
    assert_false(alone);
    assert_ok(store_claim_session(a, "s", 0, &err));
    assert_ok(store_claim_session(a, "s", 0, &err));
    assert_fails(store_claim_session(b, "s", 100e3, &err), ST_CONFLICT, "another process runs session s");
    assert_ok(store_claim(b, "t", 0, &taken, &err));
    assert_true(taken);
    store_unclaim(a, "s");
    assert_ok(store_claim_session(b, "s", 0, &err));
    assert_ok(store_claim(a, "u", 0, &taken, &err));
    /* Both connections are lost. b comes back first and has what it had; it also gets what was a's. */
    cut(other, a);
    cut(other, b);
    put_fixture(b);
    assert_true(store_has_claim(b, "s") && store_has_claim(b, "t"));
    assert_ok(store_claim(b, "u", 0, &taken, &err));
    assert_true(taken);
    put_fixture(a);
    assert_false(store_has_claim(a, "u"));
    store_close(a);
    store_close(b);
    store_close(other);
}

/* A step that another program was in the way of: it fails as often as *context says. */
static enum status stumble(void *context, struct store *store, struct error *err) {
    int *left = context;
    if ((*left)-- <= 0)
        return ST_OK;
    return sql_exec(store, "DO $$ BEGIN RAISE EXCEPTION 'deadlock' USING ERRCODE = '40P01'; END $$", err);
}

static void a_deadlock_is_tried_again(void **state) {
    (void)state;
    NEEDS_POSTGRESQL();
    struct error err = {0};
    struct writer *writer;
    struct store *store = must_open(dataset_path("deadlock.db"), STORE_READ_WRITE);
    assert_ok(writer_new(store, &writer, &err));
    int left = STEP_TRIES;
    assert_ok(writer_run(writer, stumble, &left, &err));
    assert_int_equal(left, -1);
    left = STEP_TRIES + 1;
    assert_fails(writer_run(writer, stumble, &left, &err), ST_CONFLICT, "try again");
    writer_free(writer);
    store_close(store);
}

static void a_backup_says_which_command_makes_one(void **state) {
    (void)state;
    NEEDS_POSTGRESQL();
    struct error err = {0};
    struct store *store = must_open(dataset_path("backup.db"), STORE_READ_WRITE);
    assert_fails(store_backup(store, file_path("copy.db"), &err), ST_USAGE, "pg_dump");
    store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_merge_with_a_file_is_exact_both_ways),
        cmocka_unit_test(an_address_with_a_password_is_refused_and_not_repeated),
        cmocka_unit_test(a_server_that_is_away_is_one_line),
        cmocka_unit_test(schemas_that_are_not_ours_are_refused_and_left_alone),
        cmocka_unit_test(what_trials_refer_to_is_there_and_stays),
        cmocka_unit_test(a_dataset_of_version_7_is_brought_up_to_date_by_who_writes),
        cmocka_unit_test(a_store_that_reads_cannot_write),
        cmocka_unit_test(a_question_that_takes_too_long_is_stopped),
        cmocka_unit_test(a_lost_connection_loses_its_step_alone),
        cmocka_unit_test(several_processes_write_at_once),
        cmocka_unit_test(a_claim_is_one_process_s_until_its_connection_ends),
        cmocka_unit_test(a_deadlock_is_tried_again),
        cmocka_unit_test(a_backup_says_which_command_makes_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
