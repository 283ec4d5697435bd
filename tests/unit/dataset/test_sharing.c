/* Who sees what: the kept form and its words are each other's inverse, a filter finds by them what brute force finds,
 * an export brings them back byte for byte (also from the form that files had before), and what is put into a session
 * goes to nobody that the session is hidden from. */
#include "base/rng.h"
#include "dataset/export.h"
#include "dataset/filter.h"
#include "dataset/import.h"
#include "dataset/merge.h"
#include "dataset/sharing.h"
#include "tests/unit/dataset/fixture.h"

static const char *const teams[] = {"red", "blue", "green.1", "a"};
enum { TEAMS = sizeof teams / sizeof *teams, ROOM = 64 };

/* A kept form, and the set of teams that it names; all: every bit. */
static unsigned random_sharing(struct rng *rng, char out[ROOM]) {
    const unsigned set = (unsigned)rng_below(rng, 1u << TEAMS);
    if (rng_below(rng, 4) == 0) {
        snprintf(out, ROOM, "*");
        return ~0u;
    }
    size_t n = (size_t)snprintf(out, ROOM, "%s", set ? "|" : "");
    for (unsigned i = 0; i < TEAMS; i++)
        if (set >> i & 1)
            n += (size_t)snprintf(out + n, ROOM - n, "%s|", teams[i]);
    return set;
}

static void print(void write(const char *, FILE *), const char *shared, char out[256]) {
    FILE *to = fmemopen(out, 256, "w");
    assert_non_null(to);
    write(shared, to);
    assert_int_equal(fclose(to), 0);
}

static void what_is_said_is_read_as_it_was_kept(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int i = 0; i < 200; i++) {
        struct arena arena = {0};
        struct error err = {0};
        char kept[ROOM], text[256];
        const char *read;
        random_sharing(&rng, kept);
        cJSON *json = shared_json(kept);
        char *line = cJSON_PrintUnformatted(json);
        print(shared_print_json, kept, text);
        assert_string_equal(text, line);
        assert_ok(shared_read(json, &arena, &read, &err));
        assert_string_equal(read, kept);
        cJSON *before = cJSON_CreateString(kept);
        assert_ok(shared_read(before, &arena, &read, &err));
        assert_string_equal(read, kept);
        cJSON_Delete(before);
        cJSON_Delete(json);
        free(line);
        arena_release(&arena);
    }
}

static void the_words_are_all_team_or_names(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"*", "\"all\"", "all"}, {"", "\"team\"", "team"}, {"|b|a|", "[\"b\",\"a\"]", "b a"}};
    char text[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print(shared_print_json, cases[i][0], text);
        assert_string_equal(text, cases[i][1]);
        print(shared_print_words, cases[i][0], text);
        assert_string_equal(text, cases[i][2]);
    }
    static const char *const bad[] = {"1", "{}", "[1]", "[\"\"]", "[\"a|b\"]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arena arena = {0};
        struct error err = {0};
        const char *read;
        cJSON *json = cJSON_Parse(bad[i]);
        assert_fails(shared_read(json, &arena, &read, &err), ST_INVALID, "shared");
        cJSON_Delete(json);
        arena_release(&arena);
    }
}

/* Whom each of two kept forms lets see is a set, and narrowing is their intersection. */
static void narrowing_is_the_intersection(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int i = 0; i < 500; i++) {
        char a[ROOM], b[ROOM], out[ROOM], wanted[ROOM] = "*";
        const unsigned both = random_sharing(&rng, a) & random_sharing(&rng, b);
        size_t n = both == ~0u ? 1 : (size_t)snprintf(wanted, ROOM, "%s", both ? "|" : "");
        for (unsigned k = 0; both != ~0u && k < TEAMS; k++)
            if (both >> k & 1)
                n += (size_t)snprintf(wanted + n, ROOM - n, "%s|", teams[k]);
        shared_narrow(a, b, out);
        assert_string_equal(out, wanted);
    }
}

/* Kept forms say the same when they name the same set. */
static void the_order_of_names_says_nothing(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    assert_true(shared_same("|red|a|", "|a|red|"));
    assert_true(shared_same("|a|a|", "|a|"));
    assert_false(shared_same("|red|", "|re|"));
    assert_false(shared_same("|a|b|", "|a|"));
    for (int i = 0; i < 2000; i++) {
        char a[ROOM], b[ROOM];
        const unsigned first = random_sharing(&rng, a), second = random_sharing(&rng, b);
        assert_int_equal(shared_same(a, b), first == second);
    }
}

/* ---- in a dataset ---- */

enum { TRIALS = 60 };

static struct record record_of(const struct fixture *f, const char *session, const char *shared) {
    return (struct record){.session = session,
                           .model = f->model.hex,
                           .cluster = f->cluster.hex,
                           .strategy = f->strategy.hex,
                           .state = RECORD_COMPLETE,
                           .proposer = "hand",
                           .runner = "lab",
                           .shared = shared,
                           .predicted_us = (double)NAN,
                           .mean_us = 10,
                           .median_us = 10,
                           .low_us = (double)NAN,
                           .high_us = (double)NAN};
}

static uint64_t count(struct store *store, const char *filter) {
    struct error err = {0};
    uint64_t n = 0;
    assert_ok(query_count(store, &(struct query){.filter = filter}, &n, &err));
    return n;
}

static void a_wrong_sharing_is_told_as_it_was_said(void **state) {
    (void)state;
    static const char *const cases[][2] = {{"|blue|red team|", "team \"red team\" is not 1 to 64"},
                                           {"red", "\"red\" is neither all, nor team, nor a list of teams"}};
    struct error err = {0};
    struct import_report report;
    struct store *store = must_open(dataset_path("wrong-shared.db"), STORE_READ_WRITE);
    struct fixture f = put_fixture(store);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct record record = record_of(&f, NULL, cases[i][0]);
        assert_fails(store_trials_import(store, 1, &record, NULL, &report, &err), ST_INVALID, cases[i][1]);
        assert_null(strchr(ERROR_TEXT(&err), '|'));
    }
    store_close(store);
}

static void a_filter_finds_what_is_shared_so(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    struct error err = {0};
    struct import_report report;
    uint64_t all = 0, alone = 0, with[TEAMS] = {0}, red_or_all = 0;
    struct store *store = must_open(dataset_path("filter-shared.db"), STORE_READ_WRITE);
    struct fixture f = put_fixture(store);
    for (int i = 0; i < TRIALS; i++) {
        char kept[ROOM];
        const unsigned set = random_sharing(&rng, kept);
        const struct record r = record_of(&f, NULL, kept);
        assert_ok(store_trials_import(store, 1, &r, NULL, &report, &err));
        all += set == ~0u;
        alone += set == 0;
        red_or_all += set & 1;
        for (unsigned k = 0; k < TEAMS; k++)
            with[k] += set != ~0u && set >> k & 1;
    }
    assert_int_equal(count(store, "shared = all"), all);
    assert_int_equal(count(store, "shared = team"), alone);
    assert_int_equal(count(store, "shared != all"), TRIALS - all);
    assert_int_equal(count(store, "NOT shared IN (all, team)"), TRIALS - all - alone);
    assert_int_equal(count(store, "shared IN (red, all)"), red_or_all);
    for (unsigned k = 0; k < TEAMS; k++) {
        char filter[64];
        snprintf(filter, sizeof filter, "shared = %s", teams[k]);
        assert_int_equal(count(store, filter), with[k]);
        snprintf(filter, sizeof filter, "NOT shared = %s", teams[k]);
        assert_int_equal(count(store, filter), TRIALS - with[k]);
    }
    assert_fails(filter_check("shared ~ r", &err), ST_USAGE, "one of = != IN");
    assert_fails(filter_check("shared = \"a|b\"", &err), ST_USAGE, "name of a team");
    store_close(store);
}

static char *export_all(struct store *store) {
    struct error err = {0};
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    assert_ok(export_references(store, &(struct query){0}, out, &err));
    assert_ok(export_run(store, &(struct query){.iterations = true}, EXPORT_JSON_LINES, out, NULL, &err));
    fclose(out);
    return text;
}

static void import_text(struct store *store, const char *text) {
    struct error err = {0};
    struct import_counts counts;
    const struct import_options options = {.keep_rows = true};
    FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    assert_ok(import_run(store, in, "lines", &options, &counts, &err));
    fclose(in);
}

/* "before" is what files of earlier versions say where ours says `now`. */
static char *as_before(const char *text, const char *now, const char *before) {
    char *out = NULL;
    size_t n;
    FILE *to = open_memstream(&out, &n);
    for (const char *at; (at = strstr(text, now)); text = at + strlen(now))
        fprintf(to, "%.*s%s", (int)(at - text), text, before);
    fputs(text, to);
    fclose(to);
    return out;
}

static void begin_session(struct store *store, const struct fixture *f, const char *id, const char *shared) {
    struct error err = {0};
    const struct stored_session session = {.id = id,
                                           .model = f->model.hex,
                                           .cluster = f->cluster.hex,
                                           .budget = "{\"trials\":9}",
                                           .team = "red",
                                           .shared = shared};
    assert_ok(store_session_begin(store, &session, &err));
}

static void an_export_brings_it_back_also_from_the_form_of_before(void **state) {
    (void)state;
    struct error err = {0};
    struct import_report report;
    struct store *store = must_open(dataset_path("from.db"), STORE_READ_WRITE);
    struct fixture f = put_fixture(store);
    static const char *const kept[] = {"*", "", "|blue|", "|blue|red|"};
    for (int i = 0; i < 4; i++) {
        char id[8];
        snprintf(id, sizeof id, "s%d", i);
        begin_session(store, &f, id, kept[i]);
        struct record records[2] = {record_of(&f, id, NULL), record_of(&f, NULL, kept[i])};
        assert_ok(store_trials_import(store, 2, records, NULL, &report, &err));
    }
    char *text = export_all(store);
    assert_contains(text, "\"shared\":[\"blue\",\"red\"]");
    char *one = as_before(text, "\"shared\":[\"blue\",\"red\"]", "\"shared\":\"|blue|red|\"");
    char *two = as_before(one, "\"shared\":\"all\"", "\"shared\":\"*\"");
    char *before = as_before(two, "\"shared\":\"team\"", "\"shared\":\"\"");
    const char *const inputs[] = {text, before};
    for (int i = 0; i < 2; i++) {
        struct store *copy = must_open(dataset_path("copy-%d.db", i), STORE_READ_WRITE);
        import_text(copy, inputs[i]);
        char *again = export_all(copy);
        assert_string_equal(again, text);
        free(again);
        store_close(copy);
    }
    free(text), free(one), free(two), free(before);
    store_close(store);
}

/* Exported while all could see it, imported where the session is shared with blue and green alone. */
static void what_is_put_into_a_session_is_shared_no_wider_than_it_is_here(void **state) {
    (void)state;
    static const struct {
        const char *line, *wanted;
    } cases[] = {{NULL, "|blue|green|"}, {"*", "|blue|green|"}, {"", ""}, {"|red|green|", "|green|"}, {"|red|", ""}};
    enum { N = sizeof cases / sizeof *cases };
    struct error err = {0};
    struct arena arena = {0};
    struct import_report report;
    struct merge_report merged;
    struct record *r;
    size_t n;
    for (int by_merge = 0; by_merge < 2; by_merge++) {
        const char *from = dataset_path("wide-%d.db", by_merge);
        struct store *source = must_open(from, STORE_READ_WRITE);
        struct store *store = must_open(dataset_path("here-%d.db", by_merge), STORE_READ_WRITE);
        struct fixture f = put_fixture(source);
        put_fixture(store);
        begin_session(source, &f, "s", "*");
        begin_session(store, &f, "s", "|blue|green|");
        for (int i = 0; i < N; i++) {
            const struct record record = record_of(&f, "s", cases[i].line);
            assert_ok(store_trials_import(source, 1, &record, NULL, &report, &err));
        }
        char *text = export_all(source);
        store_close(source);
        if (by_merge)
            assert_ok(merge_run(store, from, &merged, &err));
        else
            import_text(store, text);
        free(text);
        assert_ok(query_collect(store, &(struct query){.order = QUERY_BY_number}, &arena, &n, &r, &err));
        assert_int_equal(n, N);
        for (size_t i = 0; i < n; i++)
            assert_string_equal(r[i].shared, cases[i].wanted);
        store_close(store);
    }
    arena_release(&arena);
}

static char *references_of(struct store *store, bool shared) {
    struct error err = {0};
    char *text = NULL;
    size_t n;
    const struct query query = {0};
    FILE *out = open_memstream(&text, &n);
    assert_ok((shared ? export_shared_references : export_references)(store, &query, out, &err));
    fclose(out);
    return text;
}

static void others_get_sessions_without_the_texts_that_may_have_keys(void **state) {
    (void)state;
    static const char *const options[] = {
        "{\"runner\":\"command\",\"job\":{\"command\":\"KEY=k0123 x\",\"pattern\":\"p(1)\"},\"least_gain\":0.1}",
        "{\"runner\":\"mpirun\",\"launch\":{\"launch_options\":\"-x KEY=k0123\",\"pass\":\"HOME\"}}",
        "{\"runner\":\"ask\"}"};
    struct error err = {0};
    struct store *store = must_open(dataset_path("commands.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        char id[16];
        snprintf(id, sizeof id, "s%zu", i);
        const struct stored_session session = {
            .id = id, .model = f.model.hex, .cluster = f.cluster.hex, .budget = "{}", .options = options[i]};
        assert_ok(store_session_begin(store, &session, &err));
        const struct new_trial trial = request_of(&f, id);
        must_begin_trial(store, &trial);
    }
    char *own = references_of(store, false), *shared = references_of(store, true);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        assert_contains(own, options[i]);
    assert_null(strstr(shared, "k0123"));
    assert_contains(shared, "{\"runner\":\"command\",\"job\":{\"pattern\":\"p(1)\"},\"least_gain\":0.1}");
    assert_contains(shared, "\"launch\":{\"pass\":\"HOME\"}");
    assert_contains(shared, options[2]);
    free(own);
    free(shared);
    store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_is_read_as_it_was_kept),
        cmocka_unit_test(the_words_are_all_team_or_names),
        cmocka_unit_test(narrowing_is_the_intersection),
        cmocka_unit_test(the_order_of_names_says_nothing),
        cmocka_unit_test(a_wrong_sharing_is_told_as_it_was_said),
        cmocka_unit_test(a_filter_finds_what_is_shared_so),
        cmocka_unit_test(an_export_brings_it_back_also_from_the_form_of_before),
        cmocka_unit_test(others_get_sessions_without_the_texts_that_may_have_keys),
        cmocka_unit_test(what_is_put_into_a_session_is_shared_no_wider_than_it_is_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
