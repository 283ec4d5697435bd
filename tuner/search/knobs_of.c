/* See knobs.h: the knobs of a strategy. Knobs that hold for the whole strategy are read off its first group or its
 * first served variable; sizes are the largest that occur. A variable whose shards differ counts as its first shard,
 * which a sealed strategy repeats in it. */
#include <stdlib.h>

#include "tuner/search/knobs.h"

/* A summary of the served variables. */
struct served_variables {
    uint32_t n, n_sparse;     /* served variables; sparse ones among them */
    uint64_t least_bytes;     /* of the smallest served variable */
    uint64_t partition_bytes; /* largest push or pull */
};

static struct served_variables served_of(const struct space *space, const struct strategy *s) {
    const struct variable *variables = space->model->variables;
    struct served_variables out = {.least_bytes = space->model->bytes};
    for (uint32_t v = 0; v < s->n_variables; v++) {
        const struct variable_sync *sync = &s->variables[v];
        if (sync->kind != SYNC_PARAMETER_SERVER)
            continue;
        out.n++;
        out.n_sparse += variables[v].sparse_rows > 0;
        out.least_bytes = variables[v].bytes < out.least_bytes ? variables[v].bytes : out.least_bytes;
        out.partition_bytes = sync->partition_bytes;
    }
    return out;
}

static bool gathers(const struct strategy *s) {
    for (uint32_t g = 0; g < s->n_groups; g++)
        if (s->groups[g].algorithm == ALGORITHM_all_gather)
            return true;
    return false;
}

static enum knob_architecture architecture_of(const struct space *space, const struct strategy *s,
                                              const struct served_variables *served) {
    uint32_t sparse = 0;
    for (uint32_t v = 0; v < space->model->n_variables; v++)
        sparse += space->model->variables[v].sparse_rows > 0;
    if (!served->n)
        return gathers(s) ? KNOB_ARCHITECTURE_sparse_gathered : KNOB_ARCHITECTURE_all_reduce;
    if (served->n == space->model->n_variables)
        return KNOB_ARCHITECTURE_server;
    return served->n == sparse && served->n_sparse == sparse ? KNOB_ARCHITECTURE_sparse_served
                                                             : KNOB_ARCHITECTURE_large_served;
}

/* The bytes of the largest group that holds several variables, in whole quanta; 0 when none does. */
static enum status merge_bytes_of(const struct space *space, const struct strategy *s, uint64_t *out,
                                  struct error *err) {
    struct {
        uint32_t members;
        uint64_t bytes;
    } *groups = calloc(s->n_groups + 1, sizeof *groups);
    if (!groups)
        return error_no_memory(err);
    uint64_t most = 0;
    for (uint32_t v = 0; v < s->n_variables; v++) {
        const struct variable_sync *sync = &s->variables[v];
        if (sync->kind != SYNC_ALL_REDUCE)
            continue;
        groups[sync->group].members++;
        groups[sync->group].bytes += space->model->variables[v].bytes;
    }
    for (uint32_t g = 0; g < s->n_groups; g++)
        if (groups[g].members > 1 && groups[g].bytes > most)
            most = groups[g].bytes;
    free(groups);
    *out = (most + SPACE_MIN_BYTES - 1) / SPACE_MIN_BYTES * SPACE_MIN_BYTES;
    return ST_OK;
}

/* How many nodes serve something; at least 1. */
static enum status n_servers_of(const struct space *space, const struct strategy *s, uint32_t *out, struct error *err) {
    bool *serves = calloc(space->cluster->n_nodes, sizeof *serves);
    uint32_t n = 0;
    if (!serves)
        return error_no_memory(err);
    for (uint32_t v = 0; v < s->n_variables; v++) {
        const struct variable_sync *sync = &s->variables[v];
        for (uint32_t i = 0; sync->kind == SYNC_PARAMETER_SERVER && i < sync->n_servers; i++) {
            n += !serves[sync->servers[i]];
            serves[sync->servers[i]] = true;
        }
    }
    free(serves);
    *out = n ? n : 1;
    return ST_OK;
}

/* The first group that is all-reduced. */
static struct group all_reduced_group(const struct strategy *s) {
    for (uint32_t g = 0; g < s->n_groups; g++)
        if (s->groups[g].algorithm != ALGORITHM_all_gather)
            return s->groups[g];
    return (struct group){.algorithm = ALGORITHM_auto};
}

enum status knobs_of(const struct space *space, const struct strategy *strategy, struct knobs *out, struct error *err) {
    const struct served_variables served = served_of(space, strategy);
    struct knobs k = {.architecture = architecture_of(space, strategy, &served),
                      .partition_bytes = served.partition_bytes,
                      .credit_bytes = strategy->credit_bytes,
                      .policy = strategy->policy,
                      .cross_iteration = strategy->cross_iteration,
                      .pulls_by_priority = strategy->pulls_by_priority,
                      .served_bytes = served.least_bytes / SPACE_MIN_BYTES * SPACE_MIN_BYTES};
    if (strategy->n_groups) {
        const struct group group = all_reduced_group(strategy);
        k.algorithm = group.algorithm;
        k.sharding = group.keeps_gathered ? KNOB_SHARDING_kept : (enum knob_sharding)group.sharded;
        k.partition_bytes = strategy->groups[0].partition_bytes;
    }
    enum status st = merge_bytes_of(space, strategy, &k.merge_bytes, err);
    if (!st)
        st = n_servers_of(space, strategy, &k.n_servers, err);
    if (!st)
        *out = k;
    return st;
}
