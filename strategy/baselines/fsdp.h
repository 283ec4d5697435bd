/* PyTorch's fully_shard (FSDP2) around given modules of a model: every way of wrapping that a framework has a word for.
 * The baselines are three of them; exporters compare strategies with all. */
#ifndef STRATEGY_BASELINES_FSDP_H
#define STRATEGY_BASELINES_FSDP_H

#include "base/error.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

/* FSDP_WRAP_whole: one group. FSDP_WRAP_blocks: each block (strategy/baselines/blocks.h), and the root with what is in
 * none. FSDP_WRAP_titan: each block, what the forward pass needs before the first block (the embedding), and what it
 * needs later (the last norm and the head; and an embedding that is tied to it, with all that comes before the blocks).
 */
enum fsdp_wrap { FSDP_WRAP_whole, FSDP_WRAP_blocks, FSDP_WRAP_titan };

/* Which groups keep what they gather for the backward pass. `last` is the root of the first two ways of wrapping, which
 * is what fully_shard does where nobody says anything, and the last norm and the head of the third. */
enum fsdp_keep { FSDP_KEEP_none, FSDP_KEEP_last, FSDP_KEEP_all };

/* Sealed under the name. Fails: ST_NO_MEMORY. */
enum status fsdp_build(const struct model *model, const struct cluster *cluster, enum fsdp_wrap wrap,
                       enum fsdp_keep keep, const char *name, struct strategy *out, struct error *err);

/* The same with shards among so many devices, which divide them all, and replicas of these (HSDP); 0: among all. */
enum status fsdp_build_replicas(const struct model *model, const struct cluster *cluster, enum fsdp_wrap wrap,
                                enum fsdp_keep keep, uint32_t shard_ranks, const char *name, struct strategy *out,
                                struct error *err);

#endif
