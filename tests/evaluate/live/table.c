/* See table.h. What a strategy takes comes from its repeats where it has some, from the mean of its plays' trials
 * otherwise. The machine is not the same from minute to minute, strategies were not all repeated at the same times, and
 * what disturbs a trial makes it slower, some by far. So a domain's repeats are fitted by median polish (J. W. Tukey,
 * Exploratory Data Analysis, 1977): log(time) = strategy + stretch + rest, a stretch being STRETCH repeats one after
 * another; strategies and stretches are in turns the medians of what the other leaves, stretches 0 on average.
 *
 * The best known of a domain is the least of it among strategies that were repeated, whoever tried them. A play is
 * within 2% from its first trial of a strategy that takes at most 2% more than that; what it would hand over after n
 * trials is the strategy that it measured fastest, and this is judged by what that one takes. */
#include "tests/evaluate/live/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/table.h"
#include "tests/evaluate/evaluate.h"
#include "tests/evaluate/quantile.h"

enum { MOST_TRIALS = 100, MOST_NAMES = 32, MARKS = 6, STRETCH = 20, FIT_STEPS = 60 };
static const size_t marks[MARKS] = {1, 2, 5, 10, 20, 30};

struct word_list {
    size_t n;
    const char *items[MOST_NAMES];
};

struct play {
    const char *domain, *method;
    uint64_t seed;
    size_t n;
    size_t trials[MOST_TRIALS]; /* places of its records */
    double within_2, within_5;  /* trials until then; INFINITY: not */
    double regret[MARKS];
};

struct results {
    const struct records *records;
    struct arena arena;
    struct word_list domains, methods; /* in the order of the records */
    double *us;                        /* [records->n] what the record's strategy takes */
    size_t *repeats;                   /* [records->n] of it */
    size_t n_plays, longest, unfinished;
    struct play *plays; /* finished ones */
};

static bool is_repeat(const struct live_record *r) {
    return !strcmp(r->method, RECORDS_REPEAT);
}

static void add_name(struct word_list *names, const char *name) {
    struct error err;
    for (size_t i = 0; i < names->n; i++)
        if (!strcmp(names->items[i], name))
            return;
    check(names->n < MOST_NAMES ? ST_OK : error_set(&err, ST_TOO_LARGE, "over %d domains or methods", MOST_NAMES),
          &err);
    names->items[names->n++] = name;
}

static void list_names(struct results *r) {
    for (size_t i = 0; i < r->records->n; i++) {
        add_name(&r->domains, r->records->items[i].domain);
        if (!is_repeat(&r->records->items[i]))
            add_name(&r->methods, r->records->items[i].method);
    }
}

/* ---- what strategies take ---- */

static bool is_same(const struct live_record *a, const struct live_record *b) {
    return !strcmp(a->strategy, b->strategy) && !strcmp(a->domain, b->domain);
}

/* The repeats of a domain, with all that the fit keeps; arrays of n. */
struct repeats {
    size_t n;
    const struct live_record **items; /* in the order in which they ran */
    double *strategy, *stretch;       /* logarithms; of a strategy the same at all its repeats */
};

static struct repeats list_repeats(const struct records *records, const char *domain, struct arena *arena) {
    struct repeats out = {.items = allocate(arena, records->n, sizeof *out.items),
                          .strategy = allocate(arena, records->n, sizeof *out.strategy),
                          .stretch = allocate(arena, records->n, sizeof *out.stretch)};
    for (size_t i = 0; i < records->n; i++) {
        const struct live_record *record = &records->items[i];
        if (is_repeat(record) && isfinite(record->us) && !strcmp(record->domain, domain))
            out.items[out.n++] = record;
    }
    return out;
}

/* Each strategy becomes the median of what its stretches leave. `values` is scratch of n. */
static void fit_strategies(struct repeats *repeats, double *values) {
    for (size_t i = 0; i < repeats->n; i++) {
        size_t n = 0;
        for (size_t j = 0; j < repeats->n; j++)
            if (is_same(repeats->items[i], repeats->items[j]))
                values[n++] = log(repeats->items[j]->us) - repeats->stretch[j];
        repeats->strategy[i] = quantile_of(n, values, 0.5);
    }
}

/* Each stretch becomes the median of what its strategies leave; 0 on average over all repeats. */
static void fit_stretches(struct repeats *repeats, double *values) {
    double level = 0;
    for (size_t from = 0; from < repeats->n; from += STRETCH) {
        const size_t n = repeats->n - from < STRETCH ? repeats->n - from : STRETCH;
        for (size_t i = 0; i < n; i++)
            values[i] = log(repeats->items[from + i]->us) - repeats->strategy[from + i];
        const double stretch = quantile_of(n, values, 0.5);
        level += stretch * (double)n / (double)repeats->n;
        for (size_t i = 0; i < n; i++)
            repeats->stretch[from + i] = stretch;
    }
    for (size_t i = 0; i < repeats->n; i++)
        repeats->stretch[i] -= level;
}

static void fit(struct repeats *repeats) {
    struct arena scratch = {0};
    double *values = allocate(&scratch, repeats->n, sizeof *values);
    fit_strategies(repeats, values);
    for (int i = 0; i < FIT_STEPS; i++) {
        fit_stretches(repeats, values);
        fit_strategies(repeats, values);
    }
    arena_release(&scratch);
}

static void judge_repeated(struct results *r, const char *domain) {
    struct arena scratch = {0};
    struct repeats repeats = list_repeats(r->records, domain, &scratch);
    fit(&repeats);
    for (size_t i = 0; i < r->records->n; i++)
        for (size_t j = 0; j < repeats.n; j++)
            if (is_same(&r->records->items[i], repeats.items[j])) {
                r->repeats[i]++;
                r->us[i] = exp(repeats.strategy[j]);
            }
    arena_release(&scratch);
}

static void judge_tried(struct results *r, size_t place) {
    const struct live_record *items = r->records->items;
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < r->records->n; i++)
        if (!is_repeat(&items[i]) && is_same(&items[i], &items[place])) {
            sum += items[i].us;
            n++;
        }
    r->us[place] = n ? sum / (double)n : INFINITY;
}

static void judge_all(struct results *r) {
    r->us = allocate(&r->arena, r->records->n, sizeof *r->us);
    r->repeats = allocate(&r->arena, r->records->n, sizeof *r->repeats);
    for (size_t i = 0; i < r->records->n; i++)
        judge_tried(r, i);
    for (size_t d = 0; d < r->domains.n; d++)
        judge_repeated(r, r->domains.items[d]);
}

/* The best known; of what was tried once where nothing was repeated. */
static double best_of(const struct results *r, const char *domain) {
    double best[2] = {INFINITY, INFINITY};
    for (size_t i = 0; i < r->records->n; i++)
        if (!strcmp(r->records->items[i].domain, domain))
            best[r->repeats[i] > 0] = fmin(best[r->repeats[i] > 0], r->us[i]);
    return isfinite(best[1]) ? best[1] : best[0];
}

/* ---- plays ---- */

static struct play *play_of(struct results *r, const struct live_record *record) {
    for (size_t i = 0; i < r->n_plays; i++) {
        struct play *p = &r->plays[i];
        if (p->seed == record->seed && !strcmp(p->domain, record->domain) && !strcmp(p->method, record->method))
            return p;
    }
    struct play *p = &r->plays[r->n_plays++];
    *p = (struct play){.domain = record->domain, .method = record->method, .seed = record->seed};
    return p;
}

static void list_plays(struct results *r) {
    struct error err;
    r->plays = allocate(&r->arena, r->records->n, sizeof *r->plays);
    for (size_t i = 0; i < r->records->n; i++) {
        const struct live_record *record = &r->records->items[i];
        if (is_repeat(record))
            continue;
        struct play *p = play_of(r, record);
        const bool next = record->trial == p->n + 1 && p->n < MOST_TRIALS;
        check(next ? ST_OK
                   : error_set(&err, ST_INVALID, "%s, %s: trial %lu is out of order", record->domain, record->method,
                               (unsigned long)record->trial),
              &err);
        p->trials[p->n++] = i;
        r->longest = p->n > r->longest ? p->n : r->longest;
    }
}

/* Those that were killed before their end are left out. */
static void keep_finished(struct results *r) {
    size_t n = 0;
    for (size_t i = 0; i < r->n_plays; i++)
        if (r->plays[i].n == r->longest)
            r->plays[n++] = r->plays[i];
    r->unfinished = r->n_plays - n;
    r->n_plays = n;
}

static void count(const struct results *r, struct play *play) {
    const double best = best_of(r, play->domain);
    double fastest_us = INFINITY, regret = INFINITY;
    play->within_2 = play->within_5 = INFINITY;
    for (size_t t = 1; t <= play->n; t++) {
        const size_t place = play->trials[t - 1];
        const double over = r->us[place] / best - 1;
        if (over <= 0.02)
            play->within_2 = fmin(play->within_2, (double)t);
        if (over <= 0.05)
            play->within_5 = fmin(play->within_5, (double)t);
        if (r->records->items[place].us < fastest_us) {
            fastest_us = r->records->items[place].us;
            regret = over;
        }
        for (size_t k = 0; k < MARKS; k++)
            if (t <= marks[k])
                play->regret[k] = regret;
    }
}

/* ---- tables ---- */

/* Of one repeat's logarithm about the fit, robustly: 1.48 times the median distance; 0 without repeats. */
static double scatter_of(const struct results *r, const char *domain) {
    struct arena scratch = {0};
    struct repeats repeats = list_repeats(r->records, domain, &scratch);
    double *distances = allocate(&scratch, repeats.n + 1, sizeof *distances), out = 0;
    fit(&repeats);
    for (size_t i = 0; i < repeats.n; i++)
        distances[i] = fabs(log(repeats.items[i]->us) - repeats.strategy[i] - repeats.stretch[i]);
    if (repeats.n)
        out = 1.48 * quantile_of(repeats.n, distances, 0.5);
    arena_release(&scratch);
    return out;
}

static void print_domain(const struct results *r, const char *domain, struct table *table) {
    const double best = best_of(r, domain);
    double fastest = INFINITY;
    size_t trials = 0, failed = 0, distinct = 0, repeated = 0, within[2] = {0};
    for (size_t i = 0; i < r->records->n; i++) {
        const struct live_record *record = &r->records->items[i];
        if (strcmp(record->domain, domain) != 0 || is_repeat(record))
            continue;
        size_t first = 0;
        while (is_repeat(&r->records->items[first]) || !is_same(&r->records->items[first], record))
            first++;
        const bool is_new = first == i;
        trials++;
        failed += isinf(record->us) ? 1 : 0;
        fastest = fmin(fastest, record->us);
        distinct += is_new;
        repeated += is_new && r->repeats[i];
        within[0] += is_new && r->us[i] <= 1.02 * best;
        within[1] += is_new && r->us[i] <= 1.05 * best;
    }
    table_cell(table, "%s", domain);
    table_cell(table, "%zu", trials);
    table_cell(table, "%zu", failed);
    table_cell(table, "%zu", distinct);
    table_cell(table, "%zu", repeated);
    table_cell(table, "%.1f", best * 1e-3);
    table_cell(table, "%.1f", fastest * 1e-3);
    table_cell(table, "%.1f%%", 100 * scatter_of(r, domain));
    table_cell(table, "%zu", within[0]);
    table_cell(table, "%zu", within[1]);
}

static void print_domains(const struct results *r) {
    static const char *const heads[] = {"domain",   ">trials",         ">failed",     ">strategies", ">repeated",
                                        ">best ms", ">least trial ms", ">repeats +-", ">within 2%",  ">within 5%",
                                        NULL};
    struct table table;
    table_init(&table, heads);
    for (size_t d = 0; d < r->domains.n; d++)
        print_domain(r, r->domains.items[d], &table);
    table_print(&table, stdout);
    table_release(&table);
    printf(
        "Best: the least of those repeated. Least trial: the least single trial, before anything was repeated; it is\n"
        "the luckiest. Repeats: deviation of one repeat about the fit of strategies and stretches of time.\n\n");
}

/* One value of each play of a method, in one domain or (NULL) in all. */
static size_t collect(const struct results *r, const char *method, const char *domain,
                      double value(const struct play *play, size_t k), size_t k, double *out) {
    size_t n = 0;
    for (size_t i = 0; i < r->n_plays; i++)
        if (!strcmp(r->plays[i].method, method) && (!domain || !strcmp(r->plays[i].domain, domain)))
            out[n++] = value(&r->plays[i], k);
    return n;
}

static double within_2(const struct play *play, size_t k) {
    (void)k;
    return play->within_2;
}
static double within_5(const struct play *play, size_t k) {
    (void)k;
    return play->within_5;
}
static double regret_at(const struct play *play, size_t k) {
    return play->regret[k];
}

/* The median of n plays; "-" of none. */
static void print_trials(struct table *table, const struct results *r, size_t n, double *values) {
    const double trials = n ? quantile_of(n, values, 0.5) : NAN;
    if (isfinite(trials))
        table_cell(table, fmod(trials, 1) > 0 ? "%.1f" : "%.0f", trials);
    else if (n)
        table_cell(table, ">%zu", r->longest);
    else
        table_cell(table, "-");
}

static void print_costs(const struct results *r, double *values) {
    const char *heads[8 + MOST_NAMES] = {"method", ">plays", ">within 2%", ">reached", ">within 5%", ">reached"};
    struct arena scratch = {0};
    struct table table;
    for (size_t d = 0; d < r->domains.n; d++)
        heads[6 + d] = arena_printf(&scratch, ">%s", r->domains.items[d]);
    table_init(&table, heads);
    for (size_t m = 0; m < r->methods.n; m++) {
        const char *method = r->methods.items[m];
        table_cell(&table, "%s", method);
        for (size_t margin = 0; margin < 2; margin++) {
            const size_t n = collect(r, method, NULL, margin ? within_5 : within_2, 0, values);
            size_t reached = 0;
            for (size_t i = 0; i < n; i++)
                reached += isinf(values[i]) ? 0 : 1;
            if (!margin)
                table_cell(&table, "%zu", n);
            print_trials(&table, r, n, values);
            table_cell(&table, "%zu", reached);
        }
        for (size_t d = 0; d < r->domains.n; d++) {
            const size_t n = collect(r, method, r->domains.items[d], within_2, 0, values);
            print_trials(&table, r, n, values);
        }
    }
    table_print(&table, stdout);
    table_release(&table);
    arena_release(&scratch);
    printf("\n");
}

static void print_regrets(const struct results *r, double *values) {
    const char *heads[2 + MARKS] = {"handed over, over the best, -1, after trials"};
    char words[MARKS][16];
    struct table table;
    size_t shown = 0;
    for (; shown < MARKS && marks[shown] <= r->longest; shown++) {
        snprintf(words[shown], sizeof words[shown], ">%zu", marks[shown]);
        heads[1 + shown] = words[shown];
    }
    table_init(&table, heads);
    for (size_t m = 0; m < r->methods.n; m++) {
        table_cell(&table, "%s", r->methods.items[m]);
        for (size_t k = 0; k < shown; k++) {
            const size_t n = collect(r, r->methods.items[m], NULL, regret_at, k, values);
            if (n)
                table_cell(&table, "%.1f%%", 100 * quantile_of(n, values, 0.5));
            else
                table_cell(&table, "-");
        }
    }
    table_print(&table, stdout);
    table_release(&table);
}

void live_tables(const struct records *records) {
    struct results r = {.records = records};
    struct error err;
    check(records->n ? ST_OK : error_set(&err, ST_NOT_FOUND, "no records"), &err);
    list_names(&r);
    judge_all(&r);
    list_plays(&r);
    keep_finished(&r);
    double *values = allocate(&r.arena, r.n_plays + 1, sizeof *values);
    for (size_t i = 0; i < r.n_plays; i++)
        count(&r, &r.plays[i]);
    print_domains(&r);
    printf("Trials until within 2%% and 5%% of the best, medians over %zu trials a play; the last columns are the "
           "domains' own\nmedians of the former.",
           r.longest);
    if (r.unfinished)
        printf(" %zu plays were not finished and are left out.", r.unfinished);
    printf("\n\n");
    print_costs(&r, values);
    print_regrets(&r, values);
    arena_release(&r.arena);
}
