/* See advice.h. The wrappings of FSDP for several memories share their search. */
#include "tuner/predict/advice.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/work.h"
#include "strategy/baselines/fsdp_optimal.h"
#include "tuner/predict/sweep.h"

/* What people call it, and how it is done. */
static const struct way {
    const char *kind, *baseline;
} ways[] = {
    {"DDP", "pytorch-ddp"},
    {"DDP, merged", "merge-optimal"},
    {"servers", "byteps"},
    {"ZeRO-1", "dear"},
    {"ZeRO-1", "megatron-distributed-optimizer"},
    {"ZeRO-1", "zero-1"},
    {"ZeRO-2", "zero-2"},
    {"ZeRO-3", "zero-3"},
    {"FSDP", "fsdp-per-block"},
    {"FSDP", "fsdp-whole"},
    {"HSDP", "hsdp"},
};
enum { WAYS = sizeof ways / sizeof ways[0], STEPS = MOST_BUDGETS };
static_assert(MOST_CANDIDATES >= WAYS + MOST_BUDGETS + 1 + STEPS, "ways, wrappings for memories, the least, between");

#define MUCH_FASTER 1.1 /* what the smallest memory is said with beside it */

static const double rate_factors[ADVICE_RATES] = {0.25, 0.5, 1, 2, 4};

/* ---- candidates ---- */

/* Predict it, unless it is there already; takes the strategy. `like` says what is known of it. */
static enum status add(struct advice *a, struct advised like, struct strategy *strategy, struct error *err) {
    struct advised *c = &a->candidates[a->n];
    for (size_t i = 0; i < a->n; i++)
        if (!strcmp(a->candidates[i].strategy.id.hex, strategy->id.hex)) {
            strategy_release(strategy);
            return ST_OK;
        }
    *c = like;
    enum status st =
        simulation_predict(&a->simulation, &(struct contender){strategy->name, NULL, strategy}, NULL, &c->row, err);
    if (st) {
        strategy_release(strategy);
        return st;
    }
    c->strategy = *strategy;
    a->n++;
    return ST_OK;
}

static enum status add_ways(struct advice *a, struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0; i < WAYS && !st; i++) {
        struct strategy s;
        st = work_check(err);
        if (!st)
            st = baselines_build(baselines_find(ways[i].baseline), a->simulation.model, a->simulation.cluster, &s, err);
        if (!st)
            st = add(a, (struct advised){.kind = ways[i].kind, .wrapped_for = UINT64_MAX}, &s, err);
    }
    return st;
}

/* FSDP for a memory: UINT64_MAX is any, 0 the least that is possible. */
static enum status wrap(const struct model *model, const struct cost *cost, uint64_t bytes, struct strategy *out,
                        struct error *err) {
    return bytes ? fsdp_optimal_within(model, cost, bytes == UINT64_MAX ? 0 : bytes, out, err)
                 : fsdp_least_memory(model, cost, out, err);
}

/* FSDP wrapped for each of at most MOST_BUDGETS memories; what does not fit is no candidate. */
static enum status add_wrappings(struct advice *a, size_t n, const uint64_t *bytes, bool between, struct error *err) {
    uint64_t budgets[MOST_BUDGETS] = {0};
    struct strategy wrapped[MOST_BUDGETS];
    bool fits[MOST_BUDGETS];
    for (size_t i = 0; i < n; i++)
        budgets[i] = bytes[i] == UINT64_MAX ? 0 : bytes[i];
    enum status st = fsdp_optimal_for_each(a->simulation.model, &a->simulation.cost, n, budgets, wrapped, fits, err);
    if (st)
        return st;
    for (size_t i = n; i-- > 0;)
        if (fits[i] && !st)
            st =
                add(a, (struct advised){.kind = "FSDP", .wrapped_for = bytes[i], .between = between}, &wrapped[i], err);
        else if (fits[i])
            strategy_release(&wrapped[i]);
    return st;
}

static enum status add_least(struct advice *a, struct error *err) {
    struct strategy s;
    enum status st = fsdp_least_memory(a->simulation.model, &a->simulation.cost, &s, err);
    return st ? st : add(a, (struct advised){.kind = "FSDP", .wrapped_for = 0}, &s, err);
}

/* What is over last; then by time, memory and id. */
static int compare_candidates(const void *a, const void *b) {
    const struct advised *x = a, *y = b;
    const double left = advised_us(x), right = advised_us(y);
    if (advised_is_over(x) != advised_is_over(y))
        return advised_is_over(x) ? 1 : -1;
    if (left < right || left > right)
        return left < right ? -1 : 1;
    if (advised_bytes(x) != advised_bytes(y))
        return advised_bytes(x) < advised_bytes(y) ? -1 : 1;
    return strcmp(x->strategy.id.hex, y->strategy.id.hex);
}

void advice_release(struct advice *a) {
    for (size_t i = 0; i < a->n; i++)
        strategy_release(&a->candidates[i].strategy);
    simulation_release(&a->simulation);
}

enum status advice_init(struct advice *a, const struct model *model, const struct cluster *cluster,
                        const struct budgets *budgets, struct error *err) {
    uint64_t bytes[MOST_BUDGETS];
    for (size_t i = 0; i < budgets->n; i++)
        bytes[i] = budgets->of[i].bytes;
    a->n = 0;
    enum status st = simulation_init(&a->simulation, model, cluster, false, err);
    if (st)
        return st;
    st = add_ways(a, err);
    if (!st)
        st = add_wrappings(a, budgets->n, bytes, false, err);
    if (!st)
        st = add_least(a, err);
    if (st)
        advice_release(a);
    else
        qsort(a->candidates, a->n, sizeof *a->candidates, compare_candidates);
    return st;
}

/* Each memory is larger than the one before by the same factor. */
enum status advice_add_between(struct advice *a, struct error *err) {
    uint64_t bytes[STEPS], most = 0;
    const double least = (double)advised_bytes(advice_smallest(a));
    for (size_t i = 0; i < a->n; i++)
        most = advised_bytes(&a->candidates[i]) > most ? advised_bytes(&a->candidates[i]) : most;
    for (int i = 0; i < STEPS; i++)
        bytes[i] = (uint64_t)(least * pow((double)most / least, (i + 1.0) / (STEPS + 1)));
    enum status st = add_wrappings(a, STEPS, bytes, true, err);
    qsort(a->candidates, a->n, sizeof *a->candidates, compare_candidates);
    return st;
}

static const char wrapping[] = "fsdp-optimal";

enum status advice_strategy(const char *name, uint64_t wrapped_for, const struct model *model,
                            const struct cluster *cluster, struct strategy *out, struct error *err) {
    const struct baseline *baseline = baselines_find(name);
    struct cost cost;
    if (!baseline)
        return error_set(err, ST_NOT_FOUND, "there is no baseline \"%.64s\"", name);
    if (strcmp(name, wrapping) != 0)
        return baselines_build(baseline, model, cluster, out, err);
    enum status st = cost_init(&cost, cluster, err);
    if (st)
        return st;
    st = wrap(model, &cost, wrapped_for, out, err);
    cost_release(&cost);
    return st;
}

/* ---- answers ---- */

uint64_t advised_bytes(const struct advised *c) {
    return c->row.memory.peak_bytes;
}

double advised_us(const struct advised *c) {
    return c->row.expected.seeds > 0 ? c->row.expected.mean_us : c->row.prediction.iteration_us;
}

bool advice_in_weather(const struct advice *a) {
    return simulation_expects(&a->simulation);
}

const struct advised *advice_find(const struct advice *a, const char *id) {
    for (size_t i = 0; i < a->n; i++)
        if (!strcmp(a->candidates[i].strategy.id.hex, id))
            return &a->candidates[i];
    return NULL;
}

bool advised_is_over(const struct advised *c) {
    return c->row.over;
}

static bool fits(const struct advice *a, const struct advised *c, uint64_t bytes) {
    struct error over;
    return !memory_check(&c->row.memory, a->simulation.cluster, bytes == UINT64_MAX ? 0 : bytes, &over);
}

static const struct advised *fastest_within(const struct advice *a, uint64_t bytes) {
    const struct advised *fastest = NULL;
    for (size_t i = 0; i < a->n; i++) {
        const struct advised *c = &a->candidates[i];
        if (fits(a, c, bytes) && (!fastest || compare_candidates(c, fastest) < 0))
            fastest = c;
    }
    return fastest;
}

/* By memory; then as compare_candidates. */
static bool needs_less(const struct advised *x, const struct advised *y) {
    return advised_bytes(x) < advised_bytes(y) ||
           (advised_bytes(x) == advised_bytes(y) && compare_candidates(x, y) < 0);
}

const struct advised *advice_best_within(const struct advice *a, uint64_t bytes) {
    const struct advised *const fastest = fastest_within(a, bytes), *best = fastest;
    for (size_t i = 0; fastest && i < a->n; i++) {
        const struct advised *c = &a->candidates[i];
        if (fits(a, c, bytes) && advised_us(c) <= advised_us(fastest) * (1 + ADVICE_TIE) && needs_less(c, best))
            best = c;
    }
    return best;
}

const struct advised *advice_smallest(const struct advice *a) {
    const struct advised *least = NULL;
    for (size_t i = 0; i < a->n; i++) {
        const struct advised *c = &a->candidates[i];
        if (!advised_is_over(c) && (!least || needs_less(c, least)))
            least = c;
    }
    return least;
}

/* Of those with at most FRONT_NEAR more than the smallest; NULL where none is MUCH_FASTER. */
static const struct advised *near_smallest(const struct advice *a) {
    const struct advised *least = advice_smallest(a);
    const struct advised *near = advice_best_within(a, (uint64_t)((double)advised_bytes(least) * (1 + FRONT_NEAR)));
    return near == least || advised_us(near) * MUCH_FASTER > advised_us(least) ? NULL : near;
}

bool advice_has_row(const struct advice *a, const struct budgets *budgets, const struct advised *c) {
    bool named = c == advice_smallest(a) || c == near_smallest(a);
    for (size_t i = 0; i < budgets->n; i++)
        named |= c == advice_best_within(a, budgets->of[i].bytes);
    return named || !c->between;
}

size_t advice_points(const struct advice *a, struct front_point out[MOST_CANDIDATES]) {
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct advised *c = &a->candidates[i];
        if (advised_is_over(c))
            continue;
        out[n++] = (struct front_point){.way = c->kind,
                                        .strategy = c->strategy.name,
                                        .id = c->strategy.id.hex,
                                        .n_groups = c->strategy.n_groups,
                                        .bytes = advised_bytes(c),
                                        .iteration_us = advised_us(c)};
    }
    front_sort(n, out);
    return n;
}

const char *advised_limit(const struct advised *c, char *out, size_t room) {
    const struct prediction *p = &c->row.prediction;
    const double exposed = p->iteration_us > 0 ? 100 * p->exposed_us / p->iteration_us : 0;
    if (advised_is_over(c))
        snprintf(out, room, "over: the server does not fit");
    else
        snprintf(out, room, exposed < 5 ? "computing" : "messages, %.0f%% of the time", exposed);
    return out;
}

/* ---- in words ---- */

static void format_budget(uint64_t bytes, char *out, size_t room) {
    if (bytes == UINT64_MAX)
        snprintf(out, room, "any memory");
    else
        units_format_bytes_finely(bytes, out, room);
}

const char *budget_words(const struct budget *budget, char *out, size_t room) {
    char bytes[32];
    if (budget->bytes == UINT64_MAX || strcasestr(budget->words, "iB"))
        snprintf(out, room, "%s", budget->words);
    else
        snprintf(out, room, "%s (%s)", budget->words, units_format_bytes_finely(budget->bytes, bytes, sizeof bytes));
    return out;
}

const char *advised_wrapped_for(const struct advised *c, const struct budgets *budgets, char *out, size_t room) {
    snprintf(out, room, "%s", "");
    if (strcmp(c->strategy.name, wrapping) != 0)
        return out;
    if (c->wrapped_for == 0)
        snprintf(out, room, "the least");
    else
        format_budget(c->wrapped_for, out, room);
    for (size_t i = 0; i < budgets->n; i++)
        if (budgets->of[i].bytes == c->wrapped_for)
            snprintf(out, room, "%s", budgets->of[i].words);
    return out;
}

double advice_bound_us(const struct advice *a) {
    double least = INFINITY;
    for (size_t i = 0; i < a->n; i++)
        least = fmin(least, a->candidates[i].row.bound_us);
    return least;
}

double advised_over_bound(const struct advice *a, const struct advised *c) {
    const double bound_us = advice_bound_us(a);
    return bound_us > 0 ? fmax(c->row.prediction.iteration_us / bound_us - 1, 0) * 100 : 0;
}

static void say_best(const struct advice *a, const struct budget *budget, struct advice_sentence *out) {
    char us[32], memory[32], words[80];
    const struct advised *best = out->of = advice_best_within(a, budget->bytes);
    budget_words(budget, words, sizeof words);
    if (!best) {
        snprintf(out->before, sizeof out->before, "With %s: nothing fits.", words);
        *out->after = '\0';
        return;
    }
    snprintf(out->before, sizeof out->before, "With %s: %s (%s, %.12s), ", words, best->kind, best->strategy.name,
             best->strategy.id.hex);
    snprintf(out->figures, sizeof out->figures, "%s, and %s of memory",
             units_format_time(advised_us(best), us, sizeof us),
             units_format_bytes_finely(advised_bytes(best), memory, sizeof memory));
}

/* "10.96 GiB (FSDP, a2ff6662cffc, 31 groups, 501 ms)". */
static void say_candidate(const struct advised *c, char *out, size_t room) {
    char us[32], memory[32], groups[32] = "";
    if (c->strategy.n_groups)
        snprintf(groups, sizeof groups, "%u groups, ", c->strategy.n_groups);
    snprintf(out, room, "%s (%s, %.12s, %s%s)", units_format_bytes_finely(advised_bytes(c), memory, sizeof memory),
             c->kind, c->strategy.id.hex, groups, units_format_time(advised_us(c), us, sizeof us));
}

static void say_smallest(const struct advice *a, struct advice_sentence *out) {
    const struct advised *least = out->of = advice_smallest(a), *near = near_smallest(a);
    char words[192];
    snprintf(out->before, sizeof out->before, "The smallest memory at which anything fits: ");
    say_candidate(least, out->figures, sizeof out->figures);
    if (!near)
        return;
    say_candidate(near, words, sizeof words);
    snprintf(out->after, sizeof out->after, "; with at most a thousandth more: %s.", words);
}

/* What the answer leaves out or assumes; NULL: nothing more. */
static const char *caveat(const struct advice *a, size_t i) {
    const struct memory *m = &a->candidates[0].row.memory;
    const char *const all[] = {
        advice_in_weather(a)
            ? "Times are means in the cluster's weather; bounds, what limits, and how FSDP is wrapped are without it."
            : NULL,
        m->knows_optimizer ? NULL : "Memory is without the optimizer's states: the model has no \"optimizer\".",
        m->knows_activations ? NULL
                             : "Memory is without activations: the model's operators have no \"activation_bytes\".",
        a->simulation.model->activations_estimated
            ? "Activations are estimated from the model's architecture, not from a profile."
            : NULL};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (all[k] && i-- == 0)
            return all[k];
    return NULL;
}

bool advice_sentence(const struct advice *a, const struct budgets *budgets, size_t i, struct advice_sentence *out) {
    *out = (struct advice_sentence){.after = "."};
    if (i < budgets->n) {
        say_best(a, &budgets->of[i], out);
    } else if (i == budgets->n) {
        say_smallest(a, out);
    } else {
        const char *words = caveat(a, i - budgets->n - 1);
        snprintf(out->before, sizeof out->before, "%s", words ? words : "");
        *out->after = '\0';
        return words != NULL;
    }
    return true;
}

/* ---- memories ---- */

static int compare_budgets(const void *a, const void *b) {
    const struct budget *x = a, *y = b;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

void budgets_add(struct budgets *budgets, uint64_t bytes, const char *words) {
    struct budget *b = &budgets->of[budgets->n++];
    b->bytes = bytes;
    if (words && strlen(words) < sizeof b->words)
        snprintf(b->words, sizeof b->words, "%s", words);
    else
        format_budget(bytes, b->words, sizeof b->words);
}

void budgets_complete(struct budgets *budgets, const struct cluster *cluster) {
    const uint64_t described = memory_of_devices(cluster);
    if (budgets->n == 0) {
        char words[32];
        snprintf(words, sizeof words, "%.10gGB", (double)described / 1e9);
        if (described > 0)
            budgets_add(budgets, described, words);
        budgets_add(budgets, UINT64_MAX, NULL);
    }
    qsort(budgets->of, budgets->n, sizeof *budgets->of, compare_budgets);
}

enum status budgets_read(const char *list, const struct cluster *cluster, struct budgets *out, struct error *err) {
    *out = (struct budgets){.n = 0};
    for (const char *at = list; at; at = strchr(at, ',')) {
        char word[64];
        uint64_t bytes;
        at += *at == ',';
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
        if (out->n == MOST_BUDGETS)
            return error_set(err, ST_USAGE, "at most %d sizes", MOST_BUDGETS);
        enum status st = units_parse_memory(word, &bytes, err);
        if (st)
            return st;
        budgets_add(out, bytes, word);
    }
    budgets_complete(out, cluster);
    return ST_OK;
}

/* ---- other rates ---- */

const char *change_rates(const struct change *change, char *out, size_t room) {
    if (change->slowest < change->fastest)
        snprintf(out, room, "%g to %g", change->slowest, change->fastest);
    else
        snprintf(out, room, "%g", change->fastest);
    return out;
}

static struct sweep rate_of(double factor) {
    return (struct sweep){.axis = SWEEP_BANDWIDTH, .relative = true, .n = 1, .values = {factor}};
}

const char *changes_caveat(const struct advice *a) {
    const struct sweep sweep = rate_of(2);
    return sweep_drops_measurements(&sweep, ALGORITHM_auto, a->simulation.cluster)
               ? "Measured times of messages count at the NICs' own rates alone."
               : NULL;
}

struct change change_begin(const struct cluster *cluster, double factor) {
    struct change change = {.factor = factor, .slowest = INFINITY};
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        if (cluster->nodes[i].devices > 0) {
            change.slowest = fmin(change.slowest, factor * cluster->nodes[i].nic_gbit_per_s);
            change.fastest = fmax(change.fastest, factor * cluster->nodes[i].nic_gbit_per_s);
        }
    return change;
}

static void note_change(const struct advice *a, const struct budgets *budgets, struct change *out) {
    for (size_t i = 0; i < budgets->n; i++) {
        const struct advised *best = advice_best_within(a, budgets->of[i].bytes);
        out->us[i] = best ? advised_us(best) : INFINITY;
        out->kind[i] = best ? best->kind : "nothing fits";
        out->wrapped_for[i] = best ? best->wrapped_for : 0;
        snprintf(out->name[i], sizeof out->name[i], "%s", best ? best->strategy.name : "");
    }
}

static enum status change_at(const struct model *model, const struct cluster *cluster, const struct budgets *budgets,
                             double factor, struct change *out, struct error *err) {
    const struct sweep sweep = rate_of(factor);
    struct sweep_point point;
    struct advice a;
    enum status st = sweep_apply(&sweep, factor, ALGORITHM_auto, model, cluster, &point, err);
    if (st)
        return st;
    st = advice_init(&a, &point.model, &point.cluster, budgets, err);
    if (!st) {
        st = advice_add_between(&a, err);
        *out = change_begin(cluster, factor);
        note_change(&a, budgets, out);
        advice_release(&a);
    }
    sweep_point_release(&point);
    return st;
}

enum status advice_change(const struct advice *a, const struct budgets *budgets, size_t i, struct change *out,
                          struct error *err) {
    if (rate_factors[i] < 1 || rate_factors[i] > 1)
        return change_at(a->simulation.model, a->simulation.cluster, budgets, rate_factors[i], out, err);
    *out = change_begin(a->simulation.cluster, 1);
    note_change(a, budgets, out);
    return ST_OK;
}

enum status advice_changes(const struct advice *a, const struct budgets *budgets, struct change out[ADVICE_RATES],
                           struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0; i < ADVICE_RATES && !st; i++)
        st = advice_change(a, budgets, i, &out[i], err);
    return st;
}
