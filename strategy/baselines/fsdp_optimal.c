/* The best wrapping of a model whose parameters are all sharded: which layers FSDP gathers together, so that the
 * iteration is shortest, and which keep what they gathered for the backward pass: all where memory is not limited.
 * Messages go one at a time, gathered one group ahead.
 *
 * Best by the simulator's own costs, among all wrappings whose groups are runs of layers, or near it: neighbours of a
 * chain of more than MOST_LAYERS are joined first, no more than LABELS partial wrappings are kept, and element types
 * that do not go into one message go into several. Memory is held against the plan's (strategy/memory.h), of which the
 * exact program's rule knows the larger part. So its budget is searched: within a budget the wrapping fits, and is the
 * best that the rule finds. Source: our own exact result (strategy/exact/wrapping.h). */
#include "strategy/baselines/fsdp_optimal.h"

#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"
#include "strategy/baselines/layers.h"
#include "strategy/memory.h"
#include "strategy/plan.h"

enum { MOST_LAYERS = 40, LABELS = 64 };

/* Each group of the wrapping is a merge group, one for each element type in it. */
static enum status assign(const struct model *model, const struct layers *layers, const struct wrapping *wrapping,
                          struct strategy *s, struct error *err) {
    uint32_t *group_of = arena_alloc(&s->arena, layers->chain.n, sizeof *group_of);
    uint32_t *slots = arena_alloc(&s->arena, (size_t)wrapping->n_groups * DTYPE_COUNT, sizeof *slots);
    if (!group_of || !slots)
        return error_no_memory(err);
    for (uint32_t g = 0, i = 0; g < wrapping->n_groups; g++)
        for (; i < wrapping->ends[g]; i++)
            group_of[i] = g;
    uint32_t n = 0;
    for (uint32_t v = 0; v < model->n_variables; v++) {
        uint32_t *slot = &slots[group_of[layers->layer_of[v]] * DTYPE_COUNT + model->variables[v].dtype];
        if (!*slot) {
            s->groups[n].sharded = SHARDED_parameters;
            s->groups[n].keeps_gathered = wrapping->keeps[group_of[layers->layer_of[v]]];
            *slot = ++n;
        }
        s->variables[v].group = *slot - 1;
    }
    return ST_OK;
}

/* What the search for a budget shares. */
struct site {
    const struct model *model;
    const struct cost *cost;
    struct layers layers;
    struct wrapping_cost costs;
    struct arena arena;
};

/* The best wrapping within a budget by the rule of strategy/exact/wrapping.h, as a strategy, with the memory that its
 * plan needs. */
static enum status build(struct site *site, uint64_t rule_budget, struct strategy *out, struct wrapping *wrapping,
                         uint64_t *peak, struct error *err) {
    struct strategy s;
    struct plan plan;
    struct memory memory;
    site->layers.chain.budget = rule_budget;
    enum status st = wrapping_best(&site->layers.chain, &site->costs, LABELS, &site->arena, wrapping, err);
    if (!st)
        st = strategy_init(&s, "fsdp-optimal", site->model, site->model->n_variables, err);
    if (st)
        return st;
    s.credit_bytes = 0;
    st = baseline_finish(assign(site->model, &site->layers, wrapping, &s, err), &s, site->model, site->cost->cluster,
                         out, err);
    if (st)
        return st;
    st = plan_lower(site->model, site->cost->cluster, out, &plan, err);
    if (!st) {
        st = memory_of_plan(&plan, &memory, err);
        plan_release(&plan);
    }
    if (st)
        strategy_release(out);
    else
        *peak = memory.peak_bytes;
    return st;
}

/* The rule's budget is halved between one that is too large and one that is not; the best that fits is kept. */
static enum status search(struct site *site, uint64_t budget, uint64_t most, struct strategy *out, struct error *err) {
    enum { HALVINGS = 10 };
    struct wrapping wrapping;
    uint64_t least = wrapping_least_peak(&site->layers.chain, &site->costs), peak;
    enum status st = build(site, least, out, &wrapping, &peak, err);
    if (st)
        return st;
    if (peak > budget) {
        strategy_release(out);
        return error_set(err, ST_INFEASIBLE,
                         "a budget of %llu bytes: with every layer gathered alone a device needs %llu",
                         (unsigned long long)budget, (unsigned long long)peak);
    }
    double best_us = wrapping.value_us;
    for (int i = 0; i < HALVINGS && most - least > 1; i++) {
        struct strategy tried;
        const uint64_t rule = least + (most - least) / 2;
        st = build(site, rule, &tried, &wrapping, &peak, err);
        if (st) {
            strategy_release(out);
            return st;
        }
        *(peak > budget ? &most : &least) = rule;
        const bool better = peak <= budget && wrapping.value_us < best_us;
        if (better) {
            strategy_release(out);
            *out = tried;
            best_us = wrapping.value_us;
        } else {
            strategy_release(&tried);
        }
    }
    return ST_OK;
}

/* The best of runs of layers, of which long chains have no more than MOST_LAYERS if they are `coarse`. */
static enum status best_within(const struct model *model, const struct cost *cost, uint64_t budget_bytes, bool coarse,
                               struct strategy *out, struct error *err) {
    struct site site = {.model = model, .cost = cost, .costs = layers_cost(cost)};
    struct wrapping wrapping;
    uint64_t peak;
    enum status st = layers_list(model, cost, &site.arena, &site.layers, err);
    if (!st && coarse && site.layers.chain.n > MOST_LAYERS)
        st = layers_coarsen(&site.layers, MOST_LAYERS, &site.arena, err);
    if (!st)
        st = build(&site, UINT64_MAX, out, &wrapping, &peak, err);
    if (!st && budget_bytes > 0 && peak > budget_bytes) {
        strategy_release(out);
        st = search(&site, budget_bytes, wrapping.peak, out, err);
    }
    arena_release(&site.arena);
    return st;
}

enum status fsdp_optimal_within(const struct model *model, const struct cost *cost, uint64_t budget_bytes,
                                struct strategy *out, struct error *err) {
    const enum status st = best_within(model, cost, budget_bytes, true, out, err);
    return st == ST_INFEASIBLE ? best_within(model, cost, budget_bytes, false, out, err) : st;
}

enum status fsdp_least_memory(const struct model *model, const struct cost *cost, struct strategy *out,
                              struct error *err) {
    struct site site = {.model = model, .cost = cost, .costs = layers_cost(cost)};
    struct wrapping wrapping;
    uint64_t peak;
    enum status st = layers_list(model, cost, &site.arena, &site.layers, err);
    if (!st)
        st = build(&site, wrapping_least_peak(&site.layers.chain, &site.costs), out, &wrapping, &peak, err);
    arena_release(&site.arena);
    return st;
}

enum status baseline_fsdp_optimal(const struct model *model, const struct cost *cost, struct strategy *out,
                                  struct error *err) {
    return fsdp_optimal_within(model, cost, memory_of_devices(cost->cluster), out, err);
}
