/* Random filters over random trials: what SQLite finds is what a small evaluator finds that walks the filter's tree
 * over the records, with the rule that a comparison with what a trial lacks is false. Then the words of refusals. */
#include <math.h>

#include "base/rng.h"
#include "dataset/filter.h"
#include "tests/unit/dataset/fixture.h"

enum { TRIALS = 60, FILTERS = 1500, NODES = 64, DEPTH = 4 };

static struct store *store;
static struct record *records;
static size_t n_records;
static struct arena arena;
static struct rng rng;

static bool chance(double p) {
    return rng_uniform(&rng) < p;
}

static const char *const names[] = {"alpha", "alphabet", "beta", "b\xc3\xa9ta", "it's \"x\" \\ y"};
enum { NAMES = sizeof names / sizeof *names };

static const char *name(void) {
    return names[rng_below(&rng, NAMES)];
}

static double small(void) {
    return (double)(1 + rng_below(&rng, 6));
}

static void add_trial(const struct id *models, const struct id *clusters, const struct id *strategies) {
    struct error err = {0};
    const struct new_trial request = {.session = chance(0.5) ? "s" : NULL,
                                      .round = rng_below(&rng, 3),
                                      .model = models[rng_below(&rng, 3)].hex,
                                      .cluster = clusters[rng_below(&rng, 2)].hex,
                                      .strategy = strategies[rng_below(&rng, NAMES)].hex,
                                      .proposer = name(),
                                      .runner = name(),
                                      .predicted_us = chance(0.3) ? (double)NAN : small(),
                                      .seed = chance(0.5) ? rng_below(&rng, 3) : UINT64_MAX - rng_below(&rng, 3),
                                      .waiting = chance(0.2),
                                      .team = chance(0.5) ? "red" : NULL};
    struct new_trial r = request;
    if (r.session) { /* a session's trials are of one model and cluster */
        r.model = models[0].hex;
        r.cluster = clusters[0].hex;
    }
    const int64_t trial = must_begin_trial(store, &r);
    if (!r.waiting && chance(0.6))
        assert_ok(finish_trial(store, trial, 1 + small(), &err));
    else if (chance(0.5))
        assert_ok(store_trial_fail(store, trial, chance(0.5) ? RECORD_FAILED : RECORD_CANCELLED, "why not", &err));
}

static int set_up(void **state) {
    (void)state;
    struct error err = {0};
    struct id models[3], clusters[2], strategies[NAMES];
    char content[32];
    rng_seed(&rng, test_seed());
    store = must_open(dataset_path("filter.db"), STORE_READ_WRITE);
    for (int i = 0; i < 3; i++) { /* the first two have one name */
        snprintf(content, sizeof content, "{\"m\":%d}", i);
        models[i] = must_put(store, STORE_MODEL, i < 2 ? "alpha" : "beta", content);
        if (i < 2)
            clusters[i] = must_put(store, STORE_CLUSTER, i ? "alphabet" : "alpha", content);
    }
    for (int i = 0; i < NAMES; i++) {
        snprintf(content, sizeof content, "{\"s\":%d}", i);
        strategies[i] = must_put(store, STORE_STRATEGY, names[i], content);
    }
    const struct stored_session session = {.id = "s", .model = models[0].hex, .cluster = clusters[0].hex};
    assert_ok(store_session_begin(store, &session, &err));
    assert_ok(store_begin(store, &err));
    for (int i = 0; i < TRIALS; i++)
        add_trial(models, clusters, strategies);
    assert_ok(store_end(store, ST_OK, &err));
    assert_ok(query_collect(store, &(struct query){0}, &arena, &n_records, &records, &err));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    store_close(store);
    arena_release(&arena);
    return 0;
}

enum column {
    MODEL,
    CLUSTER,
    STRATEGY,
    SESSION,
    RUNNER,
    PROPOSER,
    TEAM,
    STATE,
    QUEUED,
    ENDED,
    PREDICTED,
    MEASURED,
    MEDIAN,
    NUMBER,
    ROUND,
    ATTEMPT,
    SEED,
    COLUMNS
};
static const char *const column_names[COLUMNS] = {
    "model", "cluster",      "strategy",    "session",   "runner", "proposer", "team",    "state", "queued",
    "ended", "predicted_us", "measured_us", "median_us", "number", "round",    "attempt", "seed"};

/* ways to compare, by column: O an object, T a text, S state, D a stamp, N a number, U a seed */
static const char types[COLUMNS + 1] = "OOOTTTTSDDNNNNNNU";

struct node {
    enum { AND, OR, NOT, COMPARISON } kind;
    int left, right;
    enum column column;
    const char *sign; /* "in" too */
    char words[3][128];
    int n_words;
};

static struct node nodes[NODES];
static int n_nodes;

/* PostgreSQL refuses a text that ends within a character. */
static void cut(char *text, size_t n) {
    while (test_database() && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    text[n] = '\0';
}

static void random_word(const struct node *node, char out[128]) {
    const struct record *r = &records[rng_below(&rng, n_records)];
    switch (types[node->column]) {
    case 'O':
        if (chance(0.4)) {
            const char *id = node->column == MODEL ? r->model : node->column == CLUSTER ? r->cluster : r->strategy;
            snprintf(out, 128, "%.*s", chance(0.5) ? 12 : 64, id);
            break;
        } /* fall through */
    case 'T':
        snprintf(out, 128, "%s", chance(0.1) ? "s" : chance(0.2) ? "red" : name());
        if (!strcmp(node->sign, "~"))
            cut(out, rng_below(&rng, strlen(out) + 1));
        break;
    case 'S':
        snprintf(out, 128, "%s", record_state_word((enum record_state)rng_below(&rng, RECORD_STATE_COUNT)));
        break;
    case 'D':
        snprintf(out, 128, "%.*s", (int)(4 + rng_below(&rng, 21)), r->queued);
        break;
    case 'N':
        snprintf(out, 128, "%g", small() - (chance(0.2) ? 0.5 : 0));
        break;
    default:
        snprintf(out, 128, "%llu", (unsigned long long)r->seed);
    }
}

static int random_node(int depth) {
    const int i = n_nodes++;
    struct node *node = &nodes[i];
    const bool leaf = depth == 0 || n_nodes > NODES - 4 || chance(0.35);
    node->kind = leaf ? COMPARISON : chance(0.2) ? NOT : chance(0.5) ? AND : OR;
    if (leaf) {
        static const char *const all[] = {"=", "!=", "in", "~", "<", "<=", ">", ">="};
        node->column = (enum column)rng_below(&rng, COLUMNS);
        const char type = types[node->column];
        const unsigned n = type == 'D' ? 8 : strchr("OT", type) ? 4 : 3;
        node->sign = all[rng_below(&rng, n)];
        if (type == 'N')
            node->sign = all[(unsigned[]){0, 1, 2, 4, 5, 6, 7}[rng_below(&rng, 7)]];
        node->n_words = !strcmp(node->sign, "in") ? 1 + (int)rng_below(&rng, 3) : 1;
        for (int k = 0; k < node->n_words; k++)
            random_word(node, node->words[k]);
        return i;
    }
    node->left = random_node(depth - 1);
    if (node->kind != NOT)
        nodes[i].right = random_node(depth - 1);
    return i;
}

static void write_word(const char *word, FILE *out) {
    const bool quoted = chance(0.3) || !*word || strpbrk(word, " \"'\\");
    const char quote = chance(0.5) ? '"' : '\'';
    if (!quoted) {
        fputs(word, out);
        return;
    }
    putc(quote, out);
    for (; *word; word++) {
        if (*word == quote || *word == '\\')
            putc('\\', out);
        putc(*word, out);
    }
    putc(quote, out);
}

static void write_node(const struct node *node, FILE *out) {
    const char *space = chance(0.5) ? " " : "";
    if (node->kind == COMPARISON) {
        const bool in = !strcmp(node->sign, "in");
        fprintf(out, "%s%s%s%s", column_names[node->column], in ? " " : space, in && chance(0.5) ? "IN" : node->sign,
                in ? "(" : space);
        for (int k = 0; k < node->n_words; k++) {
            fputs(k ? ", " : "", out);
            write_word(node->words[k], out);
        }
        fputs(in ? ")" : "", out);
    } else if (node->kind == NOT) {
        fputs(chance(0.5) ? "NOT (" : "not(", out);
        write_node(&nodes[node->left], out);
        fputs(")", out);
    } else {
        fputs("(", out);
        write_node(&nodes[node->left], out);
        fputs(node->kind == AND ? ") AND (" : ") or (", out);
        write_node(&nodes[node->right], out);
        fputs(")", out);
    }
}

static bool begins(const char *text, const char *word) {
    return !strncmp(text, word, strlen(word));
}

static bool is_object(const char *id, const char *object_name, const char *sign, const char *word) {
    const size_t n = strlen(word);
    if (!strcmp(sign, "~"))
        return begins(object_name, word) || begins(id, word);
    return !strcmp(object_name, word) || (n >= 4 && strspn(word, "0123456789abcdef") == n && begins(id, word));
}

static bool compare(int order, const char *sign) {
    return !strcmp(sign, "=") || !strcmp(sign, "in") ? order == 0
           : !strcmp(sign, "<")                      ? order < 0
           : !strcmp(sign, "<=")                     ? order <= 0
           : !strcmp(sign, ">")                      ? order > 0
                                                     : order >= 0;
}

static bool compare_text(const char *text, const char *sign, const char *word) {
    return text && (!strcmp(sign, "~") ? begins(text, word) : compare(strcmp(text, word), sign));
}

static bool fits_word(const struct node *node, const struct record *r, const char *sign, const char *word) {
    const double number = atof(word);
    const char *const texts[COLUMNS] = {[SESSION] = r->session,
                                        [RUNNER] = r->runner,
                                        [PROPOSER] = r->proposer,
                                        [TEAM] = r->team,
                                        [STATE] = record_state_word(r->state),
                                        [QUEUED] = r->queued,
                                        [ENDED] = r->ended};
    const double numbers[COLUMNS] = {
        [PREDICTED] = r->predicted_us, [MEASURED] = r->median_us,
        [MEDIAN] = r->median_us,       [NUMBER] = r->number ? (double)r->number : (double)NAN,
        [ROUND] = (double)r->round,    [ATTEMPT] = (double)r->attempt};
    const double x = numbers[node->column];
    switch (types[node->column]) {
    case 'O':
        return node->column == MODEL     ? is_object(r->model, r->model_name, sign, word)
               : node->column == CLUSTER ? is_object(r->cluster, r->cluster_name, sign, word)
                                         : is_object(r->strategy, r->strategy_name, sign, word);
    case 'N':
        return !isnan(x) && compare((x > number) - (x < number), sign);
    case 'U':
        return r->seed == strtoull(word, NULL, 10);
    default:
        return compare_text(texts[node->column], sign, word);
    }
}

static bool fits(const struct node *node, const struct record *r) {
    if (node->kind == AND)
        return fits(&nodes[node->left], r) && fits(&nodes[node->right], r);
    if (node->kind == OR)
        return fits(&nodes[node->left], r) || fits(&nodes[node->right], r);
    if (node->kind == NOT)
        return !fits(&nodes[node->left], r);
    if (!strcmp(node->sign, "!="))
        return !fits_word(node, r, "=", node->words[0]);
    for (int k = 0; k < node->n_words; k++)
        if (fits_word(node, r, node->sign, node->words[k]))
            return true;
    return false;
}

/* Does `a` come before `b`, or beside it? Those without the key come last, by row. */
static bool in_order(const struct query *query, const struct record *a, const struct record *b) {
    const double by[QUERY_ORDER_COUNT][2] = {
        [QUERY_BY_recorded] = {1, 1},
        [QUERY_BY_number] = {a->number ? (double)a->number : (double)NAN, b->number ? (double)b->number : (double)NAN},
        [QUERY_BY_predicted] = {a->predicted_us, b->predicted_us},
        [QUERY_BY_measured] = {a->median_us, b->median_us}};
    const double x = by[query->order][0], y = by[query->order][1];
    if (isnan(x) != isnan(y))
        return isnan(y);
    const bool before = isnan(x) || x == y ? a->trial < b->trial : x < y;
    return before != query->descending;
}

/* The list again, by pages. */
static void check_pages(struct query query, size_t n, const struct record *found, const char *text) {
    struct error err = {0};
    struct arena mine = {0};
    struct record *page;
    char next[QUERY_CURSOR_ROOM], after[QUERY_CURSOR_ROOM];
    size_t on_page, seen = 0;
    query.limit = 1 + rng_below(&rng, 20);
    do {
        assert_ok(query_page(store, &query, &mine, &on_page, &page, next, &err));
        for (size_t i = 0; i < on_page; i++, seen++)
            if (seen >= n || page[i].trial != found[seen].trial)
                fail_msg("page by page, trial %lld is out of place: %s", (long long)page[i].trial, text);
        memcpy(after, next, sizeof after);
        query.after = after;
    } while (*next);
    assert_int_equal(seen, n);
    arena_release(&mine);
}

/* In every order, since an order cuts the list in two. */
static void check_filter(const char *text) {
    struct error err = {0};
    struct arena mine = {0};
    struct record *found;
    size_t n, expected = 0;
    for (size_t i = 0; i < n_records; i++)
        expected += fits(&nodes[0], &records[i]);
    const struct query query = {
        .filter = text, .order = (enum query_order)rng_below(&rng, QUERY_ORDER_COUNT), .descending = chance(0.5)};
    enum status status = query_collect(store, &query, &mine, &n, &found, &err);
    if (status != ST_OK)
        fail_msg("%s\n%s", text, ERROR_TEXT(&err));
    for (size_t i = 0; i < n; i++)
        if (!fits(&nodes[0], &found[i]))
            fail_msg("trial %lld does not fit: %s", (long long)found[i].trial, text);
    for (size_t i = 1; i < n; i++)
        if (!in_order(&query, &found[i - 1], &found[i]))
            fail_msg("trials %lld and %lld are out of order by %s: %s", (long long)found[i - 1].trial,
                     (long long)found[i].trial, query_order_name(query.order), text);
    if (n != expected)
        fail_msg("%zu trials fit, %zu were found: %s", expected, n, text);
    if (chance(0.2))
        check_pages(query, n, found, text);
    arena_release(&mine);
}

static void random_filters_find_what_an_evaluator_finds(void **state) {
    (void)state;
    size_t kept = 0;
    for (int i = 0; i < FILTERS; i++) {
        char *text = NULL;
        size_t length;
        n_nodes = 0;
        random_node(DEPTH);
        FILE *out = open_memstream(&text, &length);
        write_node(&nodes[0], out);
        fclose(out);
        struct error err = {0};
        if (filter_check(text, &err) == ST_OK) {
            check_filter(text);
            kept++;
        } else if (!strstr(ERROR_TEXT(&err), "too many comparisons")) {
            fail_msg("%s\n%s", text, ERROR_TEXT(&err));
        }
        free(text);
    }
    print_message("# %zu filters of up to %d comparisons over %zu trials\n", kept, NODES, n_records);
    assert_true(kept > FILTERS * 9 / 10);
}

static void precedence_is_not_then_and_then_or(void **state) {
    (void)state;
    struct error err = {0};
    uint64_t a, b;
    static const char *const same[][2] = {
        {"round = 0 OR round = 1 AND state = complete", "round = 0 OR (round = 1 AND state = complete)"},
        {"NOT round = 0 AND state = complete", "(NOT round = 0) AND state = complete"},
        {"NOT NOT round = 0", "round = 0"},
        {"NOT (round = 0 OR state = failed)", "round != 0 AND state != failed"},
        {"measured_us<3", "  median_us\t<\n3.0 "}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        assert_ok(query_count(store, &(struct query){.filter = same[i][0]}, &a, &err));
        assert_ok(query_count(store, &(struct query){.filter = same[i][1]}, &b, &err));
        assert_int_equal(a, b);
    }
}

static void a_refusal_says_where_and_what(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", "filter: at 1: a column is expected"},
        {"model = a AND foo = 1", "filter: at 15: no such column 'foo'; columns: model cluster strategy session"},
        {"model < a", "filter: at 7: one of = != ~ IN is expected after model"},
        {"number ~ 3", "filter: at 8: one of = != < <= > >= IN is expected after number"},
        {"seed > 3", "filter: at 6: one of = != IN is expected after seed"},
        {"measured_us < fast", "filter: at 15: this column holds numbers, not fast"},
        {"measured_us < 0x10", "this column holds numbers"},
        {"measured_us < 1e999", "this column holds numbers"},
        {"seed = 18446744073709551616", "filter: at 8: a seed is a whole number"},
        {"seed = -1", "a seed is a whole number"},
        {"state = won", "filter: at 9: a state is one of waiting"},
        {"queued > yesterday", "filter: at 10: a stamp looks like"},
        {"model =", "filter: at 8: a value is expected"},
        {"model = a b", "filter: at 11: AND, OR or the end is expected"},
        {"(model = a", "filter: at 11: AND, OR or \")\" is expected"},
        {"model in a", "filter: at 10: \"(\" is expected after IN"},
        {"model in (a; b)", "filter: at 12: a character that means nothing here"},
        {"model in (a b)", "filter: at 13: \",\" or \")\" is expected"},
        {"model = \"a", "filter: at 9: a quoted text without its end"},
        {"model = 'a\\", "a quoted text without its end"},
        {"t.id = 1", "no such column 't.id'"},
        {"model = a; DROP TABLE trials", "a character that means nothing here"},
        {"((((((((((((((((((((((((((((((((((round = 1))))))))))))))))))))))))))))))))))", "nested too deep"},
    };
    struct error err = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(filter_check(cases[i][0], &err), ST_USAGE, cases[i][1]);
    char many[FILTER_MAX_BYTES + 2] = "round IN (0";
    for (int i = 1; i <= FILTER_MAX_VALUES; i++)
        strcat(many, ",1");
    strcat(many, ")");
    assert_fails(filter_check(many, &err), ST_USAGE, "too many comparisons");
    memset(many, ' ', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    assert_fails(filter_check(many, &err), ST_USAGE, "longer than 4096 bytes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_filters_find_what_an_evaluator_finds),
        cmocka_unit_test(precedence_is_not_then_and_then_or),
        cmocka_unit_test(a_refusal_says_where_and_what),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
