/* Who may see what follows from holdings, trials and sessions, however these came and were changed. */
#include <sqlite3.h>

#include "base/rng.h"
#include "dataset/check.h"
#include "dataset/holdings.h"
#include "dataset/import.h"
#include "dataset/ingest.h"
#include "dataset/merge.h"
#include "dataset/pages.h"
#include "dataset/store_internal.h"
#include "tests/unit/dataset/fixture.h"

static const struct viewer red = {"red", false}, blue = {"blue", false}, admin = {"core", true};

/* seen_get, which has a way of its own for most objects, and seen_name, which has not. */
static void assert_named_alike(struct store *store, enum store_kind kind, const struct id *id,
                               const struct viewer *asker, enum status wanted) {
    struct arena arena = {0};
    struct error err = {0};
    struct stored_object object;
    const char *name;
    assert_int_equal(seen_get(store, kind, id->hex, asker, &arena, &object, &err), wanted);
    assert_int_equal(seen_name(store, kind, id->hex, asker, &arena, &name, &err), wanted);
    if (!wanted)
        assert_string_equal(object.name, name);
    arena_release(&arena);
}

/* One id asked for alone, and among several. */
static bool sees(struct store *store, enum store_kind kind, const struct id *id, const struct viewer *asker) {
    const struct id nothing = {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"};
    const char *const ids[] = {NULL, id->hex, nothing.hex, id->hex};
    struct error err = {0};
    int64_t row = 0, rows[4];
    const enum status status = seen_row(store, kind, id->hex, asker, &row, &err);
    assert_true(status == ST_OK || status == ST_NOT_FOUND);
    assert_ok(seen_rows(store, kind, 4, ids, asker, rows, &err));
    assert_true(rows[0] == 0 && rows[1] == row && rows[2] == 0 && rows[3] == row);
    assert_named_alike(store, kind, id, asker, status);
    return status == ST_OK;
}

static struct record record_of(const char *uid, const struct id *model, const struct id *cluster,
                               const struct id *strategy, const char *team, const char *shared) {
    static const double times[] = {10};
    return (struct record){.uid = uid,
                           .model = model->hex,
                           .cluster = cluster->hex,
                           .strategy = strategy->hex,
                           .proposer = "p",
                           .runner = "lab",
                           .state = RECORD_COMPLETE,
                           .predicted_us = NAN,
                           .mean_us = NAN,
                           .median_us = NAN,
                           .low_us = NAN,
                           .high_us = NAN,
                           .n_iterations = 1,
                           .iterations_us = times,
                           .team = team,
                           .shared = shared};
}

/* A strategy that only a trial with this team and sharing is about. */
static struct id strategy_of(struct store *store, const struct fixture *f, int number, const char *team,
                             const char *shared) {
    struct error err = {0};
    char content[96], uid[16];
    struct id id;
    struct import_report report;
    snprintf(content, sizeof content, "{\"n\":%d,\"schema\":\"syncopate.strategy/1\"}", number);
    snprintf(uid, sizeof uid, "u%d", number);
    assert_ok(store_begin(store, &err));
    assert_ok(id_of(content, strlen(content), &id, &err));
    assert_ok(holding_make(store, STORE_STRATEGY, &id, content, "maker", "s", "", &err));
    const struct record record = record_of(uid, &f->model, &f->cluster, &id, team, shared);
    assert_ok(store_trials_import(store, 1, &record, NULL, &report, &err));
    assert_ok(store_end(store, ST_OK, &err));
    return id;
}

/* The i-th, which nobody sees but its maker. */
static struct id make_hidden(struct store *store, enum store_kind kind, int i) {
    struct error err = {0};
    char content[256];
    struct id id;
    if (kind == STORE_MODEL)
        snprintf(
            content, sizeof content,
            "{\"batch_per_device\":%d,\"layers\":[{\"backward_us\":1,\"forward_us\":1,\"name\":\"l\",\"variables\":"
            "[\"w\"]}],\"name\":\"m\",\"schema\":\"syncopate.model/1\",\"variables\":[{\"dtype\":\"f32\","
            "\"name\":\"w\",\"shape\":[4]}]}",
            i + 2);
    else
        snprintf(content, sizeof content, "{\"n\":%d,\"schema\":\"syncopate.strategy/1\"}", i);
    assert_ok(id_of(content, strlen(content), &id, &err));
    assert_ok(holding_make(store, kind, &id, content, "maker", "hidden", "", &err));
    return id;
}

static void assert_sound(struct store *store) {
    struct error err = {0};
    struct check_report report;
    assert_ok(check_run(store, NULL, NULL, &report, &err));
    assert_int_equal(report.problems, 0);
}

static void who_sees_a_trial_sees_what_it_is_about(void **state) {
    (void)state;
    struct error err = {0};
    struct store *store = must_open(dataset_path("seen.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    const struct id own = strategy_of(store, &f, 1, "red", ""),
                    listed = strategy_of(store, &f, 2, "red", "|blue|green|"),
                    open = strategy_of(store, &f, 3, "red", "*"), nobodys = strategy_of(store, &f, 4, NULL, "");
    assert_true(sees(store, STORE_STRATEGY, &own, &red) && !sees(store, STORE_STRATEGY, &own, &blue));
    assert_true(sees(store, STORE_STRATEGY, &listed, &red) && sees(store, STORE_STRATEGY, &listed, &blue));
    assert_true(sees(store, STORE_STRATEGY, &open, &red) && sees(store, STORE_STRATEGY, &open, &blue));
    assert_false(sees(store, STORE_STRATEGY, &nobodys, &red));
    assert_true(sees(store, STORE_STRATEGY, &nobodys, &admin) && sees(store, STORE_STRATEGY, &nobodys, NULL));
    assert_ok(store_trial_share(store, "u1", "|blue|", &err));
    assert_true(sees(store, STORE_STRATEGY, &own, &blue));
    assert_ok(store_trial_share(store, "u1", "", &err));
    assert_ok(store_trial_share(store, "u3", "", &err));
    assert_false(sees(store, STORE_STRATEGY, &own, &blue) || sees(store, STORE_STRATEGY, &open, &blue));
    assert_true(sees(store, STORE_STRATEGY, &open, &red));
    assert_sound(store);
    store_close(store);
}

static void sharing_a_session_anew_shows_and_hides_its_strategies(void **state) {
    (void)state;
    struct error err = {0};
    struct store *store = must_open(dataset_path("session.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    must_begin_session(store, &f, "s", 1);
    must_run_trial(store, &f, "s", 10);
    must_run_trial(store, &f, "s", 20);
    assert_ok(store_session_share(store, "s", "|blue|", &err));
    assert_sound(store);
    assert_ok(store_session_share(store, "s", "", &err));
    assert_sound(store);
    assert_ok(store_session_share(store, "s", "*", &err));
    assert_sound(store);
    store_close(store);
}

/* Fifty trials of one strategy, shown to two teams more: the session, the trials, and for each team three objects. */
static void sharing_a_session_anew_writes_each_object_once(void **state) {
    (void)state;
    struct error err = {0};
    struct store *store = must_open(dataset_path("once.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    must_begin_session(store, &f, "s", 1);
    for (int i = 0; i < 50; i++)
        must_run_trial(store, &f, "s", 10 + i);
    assert_ok(store_session_share(store, "s", "", &err));
    int64_t before = sql_total_changes(store);
    assert_ok(store_session_share(store, "s", "|blue|red|", &err));
    /* those of the session itself come from its trigger */
    assert_in_range(sql_total_changes(store) - before, 51, 51 + 2 * 3 + 2 * 2);
    before = sql_total_changes(store);
    assert_ok(store_session_share(store, "s", "|blue|red|", &err));
    assert_int_equal(sql_total_changes(store) - before, 1);
    assert_sound(store);
    store_close(store);
}

/* 200 trials of all kinds of sharing in batches, changed at random; then merged into another file. */
static void the_table_of_audiences_is_what_it_follows_from(void **state) {
    (void)state;
    static const char *const shares[] = {"*", "", "|blue|", "|blue|red|", "|green|"};
    static const char *const teams[] = {"red", "blue", NULL};
    struct error err = {0};
    struct merge_report report;
    struct store *store = must_open(dataset_path("random.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    uint32_t x = 12345;
    for (int i = 0; i < 200; i++) {
        x = x * 1664525 + 1013904223;
        strategy_of(store, &f, (int)(x >> 28) * 1000 + i, teams[(x >> 8) % 3], shares[(x >> 16) % 5]);
        char uid[16];
        snprintf(uid, sizeof uid, "u%d", (int)(x >> 28) * 1000 + i);
        if (x >> 31)
            assert_ok(store_trial_share(store, uid, shares[(x >> 20) % 5], &err));
    }
    assert_sound(store);
    store_close(store);
    store = must_open(dataset_path("merged.db"), STORE_READ_WRITE);
    put_fixture(store);
    assert_ok(merge_run(store, dataset_path("random.db"), &report, &err));
    assert_int_equal(report.trials, 200);
    assert_sound(store);
    store_close(store);
}

/* ---- any history, against the definition ---- */

enum { SOME_TEAMS = 20, SOME_STRATEGIES = 60, SOME_MODELS = 3, SOME_SESSIONS = 4, STEPS = 300 };
struct history {
    struct store *store;
    struct fixture f;
    struct rng rng;
    struct id models[SOME_MODELS], strategies[SOME_STRATEGIES];
    char uids[STEPS * 8][16];
    size_t n;
};

static const char *team_name(size_t i) {
    static char names[SOME_TEAMS][8];
    snprintf(names[i], sizeof names[i], "t%zu", i);
    return names[i];
}

static void some_sharing(struct rng *rng, char out[64]) {
    const size_t a = rng_below(rng, SOME_TEAMS - 1), way = rng_below(rng, 4);
    if (way < 2)
        snprintf(out, 64, "%s", way ? "*" : "");
    else
        snprintf(out, 64, "|%s|%s%s", team_name(a), way == 2 ? team_name(a + 1) : "", way == 2 ? "|" : "");
}

static void begin_history(struct history *h) {
    struct error err = {0};
    h->store = must_open(dataset_path("history.db"), STORE_READ_WRITE);
    h->f = put_fixture(h->store);
    rng_seed(&h->rng, test_seed());
    for (int i = 0; i < SOME_MODELS; i++)
        h->models[i] = make_hidden(h->store, STORE_MODEL, i);
    for (int i = 0; i < SOME_STRATEGIES; i++)
        h->strategies[i] = make_hidden(h->store, STORE_STRATEGY, i);
    for (size_t i = 0; i < SOME_SESSIONS; i++) {
        char id[8];
        snprintf(id, sizeof id, "s%zu", i);
        const struct stored_session session = {.id = id,
                                               .model = h->models[0].hex,
                                               .cluster = h->f.cluster.hex,
                                               .budget = "{}",
                                               .team = team_name(i),
                                               .shared = i % 2 ? "" : "*"};
        assert_ok(store_session_begin(h->store, &session, &err));
    }
}

/* Of one session or of none; with a number of its own, or as a session has it. */
static void import_some(struct history *h) {
    struct error err = {0};
    struct record records[8];
    struct import_report report;
    char shared[8][64];
    const size_t n = 1 + rng_below(&h->rng, 8), s = rng_below(&h->rng, 2 * SOME_SESSIONS);
    char session[8];
    snprintf(session, sizeof session, "s%zu", s);
    for (size_t i = 0; i < n; i++) {
        some_sharing(&h->rng, shared[i]);
        snprintf(h->uids[h->n + i], sizeof h->uids[0], "h%zu", h->n + i);
        records[i] = record_of(h->uids[h->n + i], &h->models[s < SOME_SESSIONS ? 0 : rng_below(&h->rng, SOME_MODELS)],
                               &h->f.cluster, &h->strategies[rng_below(&h->rng, SOME_STRATEGIES)],
                               rng_below(&h->rng, 4) ? team_name(rng_below(&h->rng, SOME_TEAMS)) : NULL, shared[i]);
        records[i].session = s < SOME_SESSIONS ? session : NULL;
    }
    assert_ok(store_trials_import(h->store, n, records, NULL, &report, &err));
    h->n += n;
}

static void share_one(struct history *h) {
    struct error err = {0};
    char shared[64];
    some_sharing(&h->rng, shared);
    if (h->n)
        assert_ok(store_trial_share(h->store, h->uids[rng_below(&h->rng, h->n)], shared, &err));
}

static void share_session(struct history *h) {
    struct error err = {0};
    char id[8], shared[64];
    snprintf(id, sizeof id, "s%zu", rng_below(&h->rng, SOME_SESSIONS));
    some_sharing(&h->rng, shared);
    assert_ok(store_session_share(h->store, id, shared, &err));
}

/* A step, which now and then fails in the end; sometimes within another that does not. */
static void take_step(struct history *h) {
    struct error err = {0};
    const bool within = rng_below(&h->rng, 2), fails = rng_below(&h->rng, 16) == 0;
    const size_t what = rng_below(&h->rng, 24), n = h->n;
    if (within)
        assert_ok(store_begin(h->store, &err));
    if (within && rng_below(&h->rng, 8) == 0)
        share_one(h);
    assert_ok(store_begin(h->store, &err));
    what < 20 ? import_some(h) : what < 23 ? share_one(h) : share_session(h);
    store_end(h->store, fails ? ST_CANCELLED : ST_OK, &err);
    if (fails)
        h->n = n;
    if (within)
        assert_ok(store_end(h->store, ST_OK, &err));
}

/* The definition: somebody sees what it has a trial of, and what it is shared with. */
static bool is_shown(struct history *h, enum store_kind kind, const struct id *id, const char *team) {
    char sql[1024];
    bool row;
    struct sql_statement *stmt;
    struct error err = {0};
    snprintf(sql, sizeof sql,
             "WITH it AS (SELECT row FROM %s WHERE id = '%s') SELECT (SELECT count(*) FROM trials t, it"
             " WHERE t.%s = it.row AND (t.team = '%s' OR t.shared = '*' OR instr(t.shared, '|%s|') > 0))"
             " + (SELECT count(*) FROM sessions s WHERE '%s' = 'model' AND s.model = '%s'"
             " AND (s.team = '%s' OR s.shared = '*' OR instr(s.shared, '|%s|') > 0))",
             object_table(kind), id->hex, object_word(kind), team, team, object_word(kind), id->hex, team, team);
    assert_ok(sql_prepare(h->store, sql, &stmt, &err));
    assert_ok(sql_next(h->store, stmt, &row, &err));
    const bool shown = sql_column_integer(stmt, 0) > 0;
    sql_finalize(stmt);
    return shown;
}

static void assert_seen_as_defined(struct history *h) {
    for (size_t t = 0; t < SOME_TEAMS; t++) {
        const struct viewer asker = {team_name(t), false};
        for (size_t i = 0; i < SOME_STRATEGIES; i++)
            assert_int_equal(sees(h->store, STORE_STRATEGY, &h->strategies[i], &asker),
                             is_shown(h, STORE_STRATEGY, &h->strategies[i], asker.team));
        for (size_t i = 0; i < SOME_MODELS; i++)
            assert_int_equal(sees(h->store, STORE_MODEL, &h->models[i], &asker),
                             is_shown(h, STORE_MODEL, &h->models[i], asker.team));
    }
}

/* Pages of three have what the team sees, and nothing else, in the order of rows; all see the fixture's. */
static void assert_listed_as_defined(struct history *h, const char *team) {
    const struct viewer asker = {team, false};
    const struct object_list list = {.kind = STORE_STRATEGY, .asker = &asker};
    struct error err = {0};
    struct arena arena = {0};
    struct stored_object *objects;
    const char *due[SOME_STRATEGIES + 1] = {h->f.strategy.hex};
    char next[PAGE_CURSOR_ROOM] = "", after[PAGE_CURSOR_ROOM];
    size_t n, n_due = 1, i = 0;
    for (size_t k = 0; k < SOME_STRATEGIES; k++)
        if (is_shown(h, STORE_STRATEGY, &h->strategies[k], team))
            due[n_due++] = h->strategies[k].hex;
    do {
        snprintf(after, sizeof after, "%s", next);
        assert_ok(page_objects(h->store, &list, *after ? after : NULL, 3, &arena, &n, &objects, next, &err));
        for (size_t k = 0; k < n; k++, i++)
            assert_string_equal(objects[k].id.hex, i < n_due ? due[i] : "");
    } while (*next);
    assert_int_equal(i, n_due);
    arena_release(&arena);
}

static void after_any_history_a_team_sees_what_the_definition_says(void **state) {
    (void)state;
    static struct history h;
    begin_history(&h);
    for (int step = 0; step < STEPS; step++) {
        take_step(&h);
        if (step % 30 == 0)
            assert_seen_as_defined(&h);
        if (step % 30 == 0)
            assert_listed_as_defined(&h, team_name(rng_below(&h.rng, SOME_TEAMS)));
    }
    assert_seen_as_defined(&h);
    assert_sound(h.store);
    store_close(h.store);
}

static void a_table_of_audiences_that_was_tampered_with_fails_the_check(void **state) {
    (void)state;
    struct error err = {0};
    struct check_report report;
    const char *path = dataset_path("tampered.db");
    struct store *store = must_open(path, STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    strategy_of(store, &f, 1, "red", "");
    store_close(store);
    change_dataset(path, "INSERT INTO audiences VALUES ('strategy', 'blue', 1, 1, 0, 0)");
    store = must_open(path, STORE_READ_ONLY);
    assert_ok(check_run(store, NULL, NULL, &report, &err));
    assert_int_equal(report.problems, 1);
    store_close(store);
    /* Merged into a new file it is sound: that counts anew. */
    struct merge_report merged;
    store = must_open(dataset_path("counted.db"), STORE_READ_WRITE);
    assert_ok(merge_run(store, path, &merged, &err));
    assert_int_equal(merged.trials, 1);
    assert_sound(store);
    store_close(store);
}

/* A file with that change of its holdings is refused, and the check says why. */
static void assert_refused(const char *name, const char *change) {
    struct error err = {0};
    struct check_report report;
    struct merge_report merged;
    const char *path = dataset_path("%s", name);
    struct store *store = must_open(path, STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    assert_ok(holding_put(store, STORE_MODEL, f.model.hex, "red", "mine", "", &err));
    assert_sound(store);
    store_close(store);
    change_dataset(path, change);
    store = must_open(path, STORE_READ_ONLY);
    assert_ok(check_run(store, NULL, NULL, &report, &err));
    assert_true(report.problems >= 1 && report.audiences == 0);
    store_close(store);
    store = must_open(dataset_path("into.db"), STORE_READ_WRITE);
    assert_fails(merge_run(store, path, &merged, &err), ST_INVALID, "holding of model");
    store_close(store);
}

static void a_holding_that_no_program_of_ours_makes_fails_the_check(void **state) {
    (void)state;
    char sql[6000];
    snprintf(sql, sizeof sql, "UPDATE holdings SET name = '%5000d' WHERE team = 'red'", 1);
    assert_refused("long.db", sql);
    assert_refused("name.db", "UPDATE holdings SET name = '\033]0;x' WHERE team = 'red'");
    assert_refused("team.db", "UPDATE holdings SET team = 'al pha|x' WHERE team = 'red'");
    assert_refused("shared.db", "UPDATE holdings SET shared = 'nonsense' WHERE team = 'red'");
    assert_refused("future.db", "UPDATE holdings SET created = '9999-12-31T00:00:00.000Z' WHERE team = 'red'");
    assert_refused("object.db", "UPDATE holdings SET object = 99 WHERE team = 'red'");
}

/* What a file of schema 4 had is of no team and seen by all, but for strategies that trials are about: these go by
 * their trials. */
static void an_older_files_objects_are_of_no_team(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL(); /* which has had no schema 4 */
    struct error err = {0};
    struct id found;
    sqlite3 *db;
    char *message = NULL;
    const char *path = dataset_path("older.db");
    struct store *store = must_open(path, STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    const struct id hidden = strategy_of(store, &f, 1, "red", ""), open = strategy_of(store, &f, 2, "red", "*"),
                    listed = strategy_of(store, &f, 3, "red", "|blue|"),
                    unused = must_put(store, STORE_STRATEGY, "unused", "{\"n\":4,\"schema\":\"syncopate.strategy/1\"}");
    store_close(store);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db,
                     "DROP TABLE holdings; DROP TABLE audiences; DROP TABLE usage; DROP TABLE pruned_events;"
                     "ALTER TABLE sessions DROP COLUMN origin; CREATE TABLE calibrations (session TEXT); PRAGMA "
                     "user_version = 4",
                     NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    sqlite3_close(db);
    store = must_open(path, STORE_READ_WRITE);
    assert_sound(store);
    assert_true(sees(store, STORE_STRATEGY, &hidden, &red) && !sees(store, STORE_STRATEGY, &hidden, &blue));
    assert_true(sees(store, STORE_STRATEGY, &listed, &blue) && sees(store, STORE_STRATEGY, &open, &blue));
    assert_true(sees(store, STORE_STRATEGY, &unused, &blue) && sees(store, STORE_MODEL, &f.model, &blue));
    assert_false(sees(store, STORE_STRATEGY, &listed, &(struct viewer){"green", false}));
    assert_ok(seen_find(store, STORE_STRATEGY, "unused", &blue, &found, &err));
    assert_string_equal(found.hex, unused.hex);
    assert_ok(store_trial_share(store, "u2", "", &err));
    assert_false(sees(store, STORE_STRATEGY, &open, &blue));
    assert_true(sees(store, STORE_STRATEGY, &open, &red));
    store_close(store);
}

/* ---- what a word means ---- */

static void assert_finds(struct store *store, const char *word, const struct viewer *asker, const struct id *wanted) {
    struct error err = {0};
    struct id found;
    assert_ok(seen_find(store, STORE_MODEL, word, asker, &found, &err));
    assert_string_equal(found.hex, wanted->hex);
}

static struct id make(struct store *store, const char *team, const char *name, int number, const char *shared) {
    struct error err = {0};
    char content[32];
    struct id id;
    snprintf(content, sizeof content, "{\"m\":%d}", number);
    assert_ok(id_of(content, strlen(content), &id, &err));
    assert_ok(holding_make(store, STORE_MODEL, &id, content, team, name, shared, &err));
    return id;
}

static void a_name_is_ones_own_then_of_no_team_then_anybodys(void **state) {
    (void)state;
    struct error err = {0};
    struct id found;
    struct store *store = must_open(dataset_path("means.db"), STORE_READ_WRITE);
    const struct id theirs = make(store, "blue", "m", 1, "*");
    assert_finds(store, "m", &red, &theirs);
    const struct id nobodys = make(store, NULL, "m", 2, "*");
    make(store, "blue", "m", 3, "*");
    assert_finds(store, "m", &red, &nobodys);
    const struct id mine = make(store, "red", "m", 4, "");
    make(store, "blue", "m", 5, "|red|");
    assert_finds(store, "m", &red, &mine);
    make(store, "blue", "secret", 6, "");
    assert_fails(seen_find(store, STORE_MODEL, "secret", &red, &found, &err), ST_NOT_FOUND, "secret");
    assert_ok(seen_find(store, STORE_MODEL, "secret", &admin, &found, &err));
    store_close(store);
}

/* As many of blue's as it takes until one begins as red's does. */
static void ones_own_short_id_stays_good_when_another_team_makes_one_that_begins_so(void **state) {
    (void)state;
    struct error err = {0};
    struct id found, other = {""};
    char word[5];
    struct store *store = must_open(dataset_path("short.db"), STORE_READ_WRITE);
    assert_ok(store_begin(store, &err));
    const struct id mine = make(store, "red", "mine", 0, "*");
    snprintf(word, sizeof word, "%.4s", mine.hex);
    for (int i = 1; strncmp(other.hex, word, 4); i++) {
        char content[32];
        snprintf(content, sizeof content, "{\"m\":%d}", i);
        assert_ok(id_of(content, strlen(content), &other, &err));
        if (!strncmp(other.hex, word, 4))
            other = make(store, "blue", word, i, "*");
    }
    assert_ok(store_end(store, ST_OK, &err));
    assert_finds(store, word, &red, &mine);
    assert_finds(store, word, &blue, &other);
    assert_fails(seen_find(store, STORE_MODEL, word, &(struct viewer){"green", false}, &found, &err), ST_USAGE,
                 "give more digits");
    store_close(store);
}

static void assert_called(struct store *store, const struct id *id, const struct viewer *asker, const char *wanted) {
    struct error err = {0};
    struct arena arena = {0};
    const char *name;
    assert_ok(seen_name(store, STORE_STRATEGY, id->hex, asker, &arena, &name, &err));
    assert_string_equal(name, wanted);
    arena_release(&arena);
}

/* A trial of a private session called it; then its team does. */
static void a_name_that_nobody_else_saw_gives_way_to_one_that_is_chosen(void **state) {
    (void)state;
    struct error err = {0};
    struct store *store = must_open(dataset_path("chosen.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    const struct id id = strategy_of(store, &f, 1, "red", "");
    assert_ok(holding_put(store, STORE_STRATEGY, id.hex, "red", "advisor-7", "", &err));
    assert_called(store, &id, &red, "advisor-7");
    assert_ok(holding_put(store, STORE_STRATEGY, id.hex, "red", "best", "*", &err));
    assert_called(store, &id, &red, "best");
    assert_called(store, &id, &blue, "best");
    assert_ok(holding_put(store, STORE_STRATEGY, id.hex, "red", "later", "*", &err)); /* others know the other */
    assert_called(store, &id, &blue, "best");
    assert_sound(store);
    store_close(store);
}

static void what_is_imported_is_called_as_its_record_says(void **state) {
    (void)state;
    struct error err = {0};
    struct store *store = must_open(dataset_path("imported.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    const struct id id = strategy_of(store, &f, 1, "blue", "");
    struct import_counts counts;
    char *text;
    assert_ok(holding_put(store, STORE_STRATEGY, id.hex, "blue", "secret", "", &err));
    assert_true(asprintf(&text,
                         "{\"schema\":\"syncopate.record/1\",\"uid\":\"i1\",\"model\":\"%s\",\"cluster\":\"%s\","
                         "\"strategy\":\"%s\",\"strategy_name\":\"known\",\"proposer\":\"p\",\"runner\":\"lab\","
                         "\"state\":\"complete\",\"iterations_us\":[9],\"team\":\"red\",\"shared\":\"team\"}\n",
                         f.model.hex, f.cluster.hex, id.hex) > 0);
    FILE *in = fmemopen(text, strlen(text), "r");
    assert_ok(import_run(store, in, "lines", &(struct import_options){0}, &counts, &err));
    fclose(in);
    free(text);
    assert_int_equal(counts.trials, 1);
    assert_called(store, &id, &red, "known");
    assert_called(store, &id, &blue, "secret");
    assert_sound(store);
    store_close(store);
}

/* The list of one name has what some team calls so, and says that name. */
static void an_administrator_finds_by_every_name(void **state) {
    (void)state;
    struct error err = {0};
    struct store *store = must_open(dataset_path("every.db"), STORE_READ_WRITE);
    const struct id id = make_hidden(store, STORE_STRATEGY, 1); /* "hidden", of another */
    assert_ok(holding_put(store, STORE_STRATEGY, id.hex, "core", "mine", "", &err));
    const struct viewer core = {"core", true};
    static const char *const called[] = {"hidden", "mine", "nobody's"};
    for (size_t i = 0; i < 3; i++) {
        const struct object_list list = {.kind = STORE_STRATEGY, .asker = &core, .name = called[i]};
        struct arena arena = {0};
        struct stored_object *objects;
        char next[PAGE_CURSOR_ROOM];
        size_t n;
        assert_ok(page_objects(store, &list, NULL, 3, &arena, &n, &objects, next, &err));
        assert_int_equal(n, i < 2);
        for (size_t k = 0; k < n; k++)
            assert_string_equal(objects[k].name, called[i]);
        arena_release(&arena);
    }
    store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_sees_a_trial_sees_what_it_is_about),
        cmocka_unit_test(sharing_a_session_anew_shows_and_hides_its_strategies),
        cmocka_unit_test(sharing_a_session_anew_writes_each_object_once),
        cmocka_unit_test(the_table_of_audiences_is_what_it_follows_from),
        cmocka_unit_test(after_any_history_a_team_sees_what_the_definition_says),
        cmocka_unit_test(a_table_of_audiences_that_was_tampered_with_fails_the_check),
        cmocka_unit_test(a_holding_that_no_program_of_ours_makes_fails_the_check),
        cmocka_unit_test(an_older_files_objects_are_of_no_team),
        cmocka_unit_test(a_name_is_ones_own_then_of_no_team_then_anybodys),
        cmocka_unit_test(a_name_that_nobody_else_saw_gives_way_to_one_that_is_chosen),
        cmocka_unit_test(what_is_imported_is_called_as_its_record_says),
        cmocka_unit_test(an_administrator_finds_by_every_name),
        cmocka_unit_test(ones_own_short_id_stays_good_when_another_team_makes_one_that_begins_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
