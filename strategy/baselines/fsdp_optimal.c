/* The best wrapping of a model whose parameters are all sharded: which layers FSDP gathers together, so that the
 * iteration is shortest, and which keep what they gathered for the backward pass: all where memory is not limited, else
 * all of it, the devices of a node their parts of it, or nothing.
 * Messages go one at a time, gathered one group ahead.
 *
 * Best by the simulator's own costs, among all wrappings whose groups are runs of layers, or near it: neighbours of a
 * chain of more than MOST_LAYERS are joined first, no more than LABELS partial wrappings are kept (fewer where the
 * chain is long because nothing fits once layers are joined), and element types that do not go into one message go into
 * several. Memory is held against the plan's (strategy/memory.h), of which the exact program's rule knows the larger
 * part. So its budget is searched: within a budget the wrapping fits, and is the best that the rule finds. Source: our
 * own exact result (strategy/exact/wrapping.h). */
#include "strategy/baselines/fsdp_optimal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/work.h"
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"
#include "strategy/baselines/layers.h"
#include "strategy/memory.h"
#include "strategy/plan.h"

enum { MOST_LAYERS = 40, LABELS = 64 };

/* Each group of the wrapping is a merge group, one for each element type in it. */
static enum status assign(const struct model *model, const struct layers *layers, const struct wrapping *wrapping,
                          uint32_t parts, struct strategy *s, struct error *err) {
    uint32_t *group_of = arena_alloc(&s->arena, layers->chain.n, sizeof *group_of);
    uint32_t *slots = arena_alloc(&s->arena, (size_t)wrapping->n_groups * DTYPE_COUNT, sizeof *slots);
    if (!group_of || !slots)
        return error_no_memory(err);
    for (uint32_t g = 0, i = 0; g < wrapping->n_groups; g++)
        for (; i < wrapping->ends[g]; i++)
            group_of[i] = g;
    uint32_t n = 0;
    for (uint32_t v = 0; v < model->n_variables; v++) {
        const uint32_t g = group_of[layers->layer_of[v]];
        uint32_t *slot = &slots[g * DTYPE_COUNT + model->variables[v].dtype];
        if (!*slot) {
            s->groups[n].sharded = SHARDED_parameters;
            s->groups[n].keeps_gathered = wrapping->keeps[g] == WRAPPING_KEEPS;
            s->groups[n].reshard_ranks = wrapping->keeps[g] == WRAPPING_KEEPS_PARTS ? parts : 0;
            *slot = ++n;
        }
        s->variables[v].group = *slot - 1;
    }
    return ST_OK;
}

enum { STEPS = 8, HALVINGS = 7, CORRECTIONS = 4 };

/* A wrapping as a strategy: the best within a budget by the rule of strategy/exact/wrapping.h, and the memory that its
 * plan needs. */
struct wrapped {
    uint64_t rule_budget, peak; /* rule_budget 0: every layer alone */
    double value_us;
    uint64_t rule_peak; /* by the rule */
    struct strategy strategy;
};

/* What the searches for several budgets share. */
struct site {
    const struct model *model;
    const struct cost *cost;
    struct layers layers;
    bool joined; /* they are not all the layers that the model has */
    struct wrapping_cost costs;
    struct arena arena;
    size_t n_known;
    struct wrapped *known; /* [3 + STEPS + budgets * (HALVINGS + CORRECTIONS)] malloc'd; each rule budget once */
};

static enum status site_open(struct site *site, const struct model *model, const struct cost *cost, size_t n_budgets,
                             struct error *err) {
    *site = (struct site){.model = model, .cost = cost, .costs = layers_cost(cost)};
    site->known = calloc(3 + STEPS + n_budgets * (HALVINGS + CORRECTIONS), sizeof *site->known);
    return site->known ? layers_list(model, cost, &site->arena, &site->layers, err) : error_no_memory(err);
}

static void site_close(struct site *site) {
    for (size_t i = 0; i < site->n_known; i++)
        strategy_release(&site->known[i].strategy);
    free(site->known);
    arena_release(&site->arena);
}

static enum status build(struct site *site, const struct wrapping *wrapping, struct wrapped *out, struct error *err) {
    struct strategy s;
    struct plan plan;
    struct memory memory;
    enum status st = strategy_init(&s, "fsdp-optimal", site->model, site->model->n_variables, err);
    if (st)
        return st;
    s.credit_bytes = 0;
    st = baseline_finish(assign(site->model, &site->layers, wrapping, site->costs.parts, &s, err), &s, site->model,
                         site->cost->cluster, &out->strategy, err);
    if (st)
        return st;
    out->value_us = wrapping->value_us;
    out->rule_peak = wrapping->peak;
    st = plan_lower(site->model, site->cost->cluster, &out->strategy, &plan, err);
    if (!st) {
        st = memory_of_plan(&plan, &memory, err);
        plan_release(&plan);
    }
    if (st)
        strategy_release(&out->strategy);
    else
        out->peak = memory.peak_bytes;
    return st;
}

/* Every layer in a group of its own, of which none keeps anything: the least memory by the rule. */
static enum status alone(struct site *site, struct wrapping *out, struct error *err) {
    const uint32_t n = site->layers.chain.n;
    uint32_t *ends = arena_alloc(&site->arena, n, sizeof *ends);
    uint8_t *keeps = arena_alloc(&site->arena, n, sizeof *keeps); /* none */
    if (!ends || !keeps)
        return error_no_memory(err);
    for (uint32_t i = 0; i < n; i++)
        ends[i] = i + 1;
    *out = (struct wrapping){.n_groups = n, .ends = ends, .keeps = keeps, .value_us = INFINITY};
    out->peak = wrapping_peak(&site->layers.chain, &site->costs, n, ends, keeps);
    return ST_OK;
}

/* The wrapping for this budget of the rule (0: every layer alone), built where it is not known; the site's. */
static enum status wrap(struct site *site, uint64_t rule_budget, const struct wrapped **out, struct error *err) {
    struct wrapped *next = &site->known[site->n_known];
    for (size_t i = 0; i < site->n_known; i++)
        if (site->known[i].rule_budget == rule_budget) {
            *out = &site->known[i];
            return ST_OK;
        }
    struct wrapping_chain *chain = &site->layers.chain;
    struct wrapping wrapping;
    const uint32_t labels = chain->n <= 2 * MOST_LAYERS ? LABELS : WRAPPING_FEW_LABELS;
    next->rule_budget = chain->budget = rule_budget;
    enum status st = work_check(err);
    if (!st)
        st = rule_budget > 0 ? wrapping_best(chain, &site->costs, labels, &site->arena, &wrapping, err)
                             : alone(site, &wrapping, err);
    if (!st)
        st = build(site, &wrapping, next, err);
    if (st)
        return st;
    site->n_known++;
    *out = next;
    return ST_OK;
}

/* The fastest within the rule's least memory where its plan fits the budget, or layers are joined; else, of it, every
 * layer alone and the fastest of all, the one whose plan needs least. */
static enum status wrap_least(struct site *site, uint64_t budget, const struct wrapped **out, struct error *err) {
    static const uint64_t others[] = {0, UINT64_MAX};
    const struct wrapped *other;
    enum status st = wrap(site, wrapping_least_peak(&site->layers.chain, &site->costs), out, err);
    if (st || site->joined || (*out)->peak <= budget)
        return st;
    for (size_t i = 0; i < sizeof others / sizeof *others && !st; i++) {
        st = wrap(site, others[i], &other, err);
        if (!st && other->peak < (*out)->peak)
            *out = other;
    }
    return st;
}

static bool is_better(const struct wrapped *a, const struct wrapped *b) {
    return a->value_us < b->value_us || (a->value_us <= b->value_us && a->peak < b->peak);
}

/* Whether the wrapping of this budget of the rule fits, of which the fastest is kept in *out, and of equal ones that
 * with the least memory. */
static enum status attempt(struct site *site, uint64_t rule_budget, uint64_t budget, bool *fits,
                           const struct wrapped **out, struct error *err) {
    const struct wrapped *tried;
    enum status st = wrap(site, rule_budget, &tried, err);
    *fits = !st && tried->peak <= budget;
    if (*fits && is_better(tried, *out))
        *out = tried;
    return st;
}

/* The rule's budget goes in STEPS from its least to what the fastest wrapping of all needs, since a plan's peak does
 * not always rise with it. It is then halved between the largest that fits and the next. At last the rule gets the
 * budget less what the plan of the best so far needs beside what the rule knows, as long as that finds a better one.
 * The fastest that fits is kept, NULL: none does. */
static enum status search(struct site *site, uint64_t budget, const struct wrapped **out, struct error *err) {
    const struct wrapped *unlimited, *least;
    bool fits;
    *out = NULL;
    enum status st = wrap(site, UINT64_MAX, &unlimited, err);
    if (!st && unlimited->peak <= budget)
        *out = unlimited;
    if (st || *out)
        return st;
    uint64_t low = wrapping_least_peak(&site->layers.chain, &site->costs), high = unlimited->rule_peak;
    const uint64_t least_budget = low, step = high > low ? (high - low) / (STEPS + 1) : 0;
    st = wrap_least(site, budget, &least, err);
    if (st || least->peak > budget)
        return st;
    *out = least;
    for (uint64_t k = 1; k <= STEPS && step > 0 && !st; k++) {
        st = attempt(site, least_budget + k * step, budget, &fits, out, err);
        if (fits)
            low = least_budget + k * step;
    }
    high = step > 0 && low + step < high ? low + step : high;
    for (int i = 0; i < HALVINGS && high > low && high - low > 1 && !st; i++) {
        const uint64_t middle = low + (high - low) / 2;
        st = attempt(site, middle, budget, &fits, out, err);
        *(fits ? &low : &high) = middle;
    }
    for (int i = 0; i < CORRECTIONS && !st; i++) {
        const struct wrapped *before = *out;
        st = attempt(site, budget - before->peak + before->rule_peak, budget, &fits, out, err);
        if (*out == before)
            break;
    }
    return st;
}

static enum status copy(const struct wrapped *found, struct strategy *out, struct error *err) {
    enum status st = strategy_copy(&found->strategy, found->strategy.name, out, err);
    if (!st)
        out->id = found->strategy.id;
    return st;
}

/* Search the runs of layers, of which long chains have no more than MOST_LAYERS if they are `coarse`, for the budgets
 * for which nothing fits so far. *whole: these were all the layers, not joined. */
static enum status search_each(const struct model *model, const struct cost *cost, bool coarse, size_t n,
                               const uint64_t *budgets, struct strategy *out, bool *fits, bool *whole,
                               struct error *err) {
    struct site site;
    enum status st = site_open(&site, model, cost, n, err);
    site.joined = coarse && site.layers.chain.n > MOST_LAYERS;
    *whole = !site.joined;
    if (!st && site.joined)
        st = layers_coarsen(&site.layers, MOST_LAYERS, &site.arena, err);
    for (size_t i = 0; i < n && !st; i++) {
        const struct wrapped *found = NULL;
        if (fits[i])
            continue;
        st = search(&site, budgets[i] ? budgets[i] : UINT64_MAX, &found, err);
        if (!st && found)
            st = copy(found, &out[i], err);
        fits[i] = !st && found;
    }
    site_close(&site);
    return st;
}

enum status fsdp_optimal_for_each(const struct model *model, const struct cost *cost, size_t n, const uint64_t *budgets,
                                  struct strategy *out, bool *fits, struct error *err) {
    bool whole, all = true;
    memset(fits, 0, n * sizeof *fits);
    enum status st = search_each(model, cost, true, n, budgets, out, fits, &whole, err);
    for (size_t i = 0; i < n; i++)
        all = all && fits[i];
    if (!st && !all && !whole)
        st = search_each(model, cost, false, n, budgets, out, fits, &whole, err);
    for (size_t i = 0; i < n && st; i++)
        if (fits[i])
            strategy_release(&out[i]);
    return st;
}

static enum status least_memory(const struct model *model, const struct cost *cost, struct strategy *out,
                                uint64_t *peak, struct error *err) {
    struct site site;
    const struct wrapped *least;
    enum status st = site_open(&site, model, cost, 0, err);
    if (!st)
        st = wrap_least(&site, 0, &least, err);
    if (!st)
        st = copy(least, out, err);
    if (!st)
        *peak = least->peak;
    site_close(&site);
    return st;
}

enum status fsdp_least_memory(const struct model *model, const struct cost *cost, struct strategy *out,
                              struct error *err) {
    uint64_t peak;
    return least_memory(model, cost, out, &peak, err);
}

enum status fsdp_optimal_within(const struct model *model, const struct cost *cost, uint64_t budget_bytes,
                                struct strategy *out, struct error *err) {
    bool fits;
    uint64_t peak;
    char have[32], need[32];
    enum status st = fsdp_optimal_for_each(model, cost, 1, &budget_bytes, out, &fits, err);
    if (st || fits)
        return st;
    st = least_memory(model, cost, out, &peak, err);
    if (st)
        return st;
    strategy_release(out);
    return error_set(err, ST_INFEASIBLE, "no wrapping fits into %s: the smallest needs %s on a device",
                     units_format_bytes(budget_bytes, have, sizeof have), units_format_bytes(peak, need, sizeof need));
}

enum status fsdp_optimal_nearest(const struct model *model, const struct cost *cost, uint64_t budget_bytes,
                                 struct strategy *out, struct error *err) {
    bool fits;
    enum status st = fsdp_optimal_for_each(model, cost, 1, &budget_bytes, out, &fits, err);
    return st || fits ? st : fsdp_least_memory(model, cost, out, err);
}

enum status baseline_fsdp_optimal(const struct model *model, const struct cost *cost, struct strategy *out,
                                  struct error *err) {
    return fsdp_optimal_within(model, cost, memory_of_devices(cost->cluster), out, err);
}
