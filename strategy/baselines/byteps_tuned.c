/* BytePS with its knobs searched, as AutoSync (§4) compares with a tuned parameter server:
 *   - BYTEPS_PARTITION_BYTES: 4,096,000 (the default), a quarter of it and four times as much;
 *   - BYTEPS_SCHEDULING_CREDIT: 0 (the default: no scheduling) and 4 partitions;
 *   - DMLC_NUM_SERVER: all servers, and the first half of them.
 * All 12 settings are tried, as one of them may suit only with another. AutoSync's own server is not published in full:
 * it balances load by cutting and placing, tunes the credit and reduces within nodes, and these knobs do the same.
 * Source: BytePS documentation, docs/env.md and docs/best-practice.md. */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/byteps.h"

static enum status build(const struct model *model, const struct cluster *cluster, size_t setting, struct strategy *out,
                         struct error *err) {
    static const uint64_t partitions[] = {BYTEPS_PARTITION_BYTES, BYTEPS_PARTITION_BYTES / 4,
                                          BYTEPS_PARTITION_BYTES * 4};
    const uint32_t all = byteps_servers(cluster);
    const struct byteps_knobs knobs = {.partition_bytes = partitions[setting % 3],
                                       .credit = setting / 3 % 2 ? 4 : 0,
                                       .n_servers = setting / 6 ? (all + 1) / 2 : all};
    return byteps_build(model, cluster, &knobs, out, err);
}

const struct baseline_grid baseline_byteps_grid = {12, build};
