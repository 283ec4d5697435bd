/* BytePS with its defaults: BYTEPS_PARTITION_BYTES 4,096,000, BYTEPS_SCHEDULING_CREDIT 0, which turns scheduling off,
 * and BYTEPS_KEY_HASH_FN djb2.
 *
 * Devices of a node reduce among themselves, then the node pushes partition by partition, each when it is ready, with
 * nothing held back: tensors have a priority by the order of their declaration, but without credit no queue looks at
 * it. The optimizer waits for every pull (its cross-barrier example, which does not, is not the default).
 *
 * A partition's key is declaration number * 65536 + partition, hashed as decimal text. Consecutive partitions hash to
 * consecutive servers, except where a digit carries. So here a tensor's first partition goes to its key's server, and
 * the others follow in turn. Servers are the nodes without devices where there are any, as its documentation
 * recommends, else all. Partitions are rows of axis 0 where a row fits.
 * Source: Jiang et al., OSDI 2020; BytePS documentation, docs/env.md; common/global.cc. O(partitions). */
#include "strategy/baselines/byteps.h"

#include <inttypes.h>
#include <stdio.h>

#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"

static uint64_t hash_of(uint64_t key) {
    char text[24];
    uint64_t hash = 5381;
    snprintf(text, sizeof text, "%" PRIu64, key);
    for (const char *c = text; *c; c++)
        hash = hash * 33 + (uint64_t)*c;
    return hash;
}

uint32_t byteps_servers(const struct cluster *cluster) {
    uint32_t spare = 0;
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        spare += !cluster->nodes[i].devices;
    return spare ? spare : cluster->n_nodes;
}

static enum status serve(struct strategy *s, const struct model *model, const struct cluster *cluster,
                         const struct byteps_knobs *knobs, struct error *err) {
    struct servers servers;
    enum status st = baseline_servers(&s->arena, cluster, &servers, err);
    if (!st && servers.n > knobs->n_servers)
        servers.n = knobs->n_servers;
    for (uint32_t v = 0; v < s->n_variables && !st; v++) {
        const struct variable *variable = &model->variables[v];
        uint32_t parts = baseline_shards_of_at_most(variable, knobs->partition_bytes / dtype_bytes(variable->dtype));
        st = baseline_spread(s, v, parts, &servers, hash_of((uint64_t)v << 16), err);
        s->variables[v].partition_bytes = knobs->partition_bytes;
    }
    return st;
}

enum status byteps_build(const struct model *model, const struct cluster *cluster, const struct byteps_knobs *knobs,
                         struct strategy *out, struct error *err) {
    struct strategy s;
    enum status st = strategy_init(&s, "byteps", model, 0, err);
    if (st)
        return st;
    if (knobs->credit) {
        s.policy = POLICY_priority;
        s.credit_bytes = knobs->credit * knobs->partition_bytes;
    }
    st = serve(&s, model, cluster, knobs, err);
    return baseline_finish(st, &s, model, cluster, out, err);
}

enum status baseline_byteps(const struct model *model, const struct cost *cost, struct strategy *out,
                            struct error *err) {
    const struct byteps_knobs defaults = {BYTEPS_PARTITION_BYTES, 0, UINT32_MAX};
    return byteps_build(model, cost->cluster, &defaults, out, err);
}
