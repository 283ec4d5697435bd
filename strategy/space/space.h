/* The space of strategies for one model and one cluster: drawing from it, and stepping through it.
 *
 * A space is what a search may choose: every strategy that strategy_check accepts and that keeps to the options, such
 * as the algorithms that a runner supports. Nothing here knows which strategy is fast. The guided sampler only keeps to
 * the constraints of AutoSync §3.2: servers carry load in proportion to their bandwidth (c_lb), and only gradients that
 * become ready one after another are merged (c_am).
 *
 * A strategy of policy preemptive is in no space: its slices come from an exact schedule, and slices drawn at random
 * are of no use. Its neighbours are in the space.
 *
 * What a device keeps a part of alone ("sharded") is drawn where the options allow it. Groups of a strategy that a
 * search starts from stay sharded, through moves and crossover, until one gives the group an algorithm or an encoding
 * that cannot be. Sharded parameters keep policy fifo and the barrier; in a space without fifo they are not sharded any
 * more. Wrapping is merging: runs of the order of readiness, which mostly is that of the model's layers from behind.
 *
 * Every strategy that comes out is sealed and valid, and is the caller's to release. The same state of `rng` gives the
 * same strategy. Failures: ST_NO_MEMORY, and where noted.
 * Threads: a const struct space may be shared; each thread has its own rng. */
#ifndef STRATEGY_SPACE_SPACE_H
#define STRATEGY_SPACE_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/rng.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

struct space_options {
    bool all_reduce, parameter_server; /* at least one */
    bool cross_iteration;              /* false: always the barrier */
    uint32_t
        algorithms; /* set of 1u << ALGORITHM_...; holds an all-reduce. all_gather: sparse gradients may be gathered */
    uint32_t policies;   /* set of 1u << POLICY_...; not empty. preemptive is refused: see above */
    uint32_t encodings;  /* set of 1u << ENCODING_...; holds none. Only f32 and f64 are ever encoded */
    uint32_t sharded;    /* set of 1u << SHARDED_...; holds none. Others are left out where there is no ring, and
                            parameters where there is no fifo */
    uint32_t max_shards; /* 1: no variable is cut; at most SPACE_MAX_SHARDS */
    uint64_t min_partition_bytes, max_partition_bytes; /* beside "whole"; at least SPACE_MIN_BYTES */
    uint64_t min_credit_bytes, max_credit_bytes;       /* beside 0 and no limit; at least SPACE_MIN_BYTES */
    bool whole_messages;                               /* no message is cut: every partition size is 0 */
    bool order_pulls;                                  /* pulls may go by priority, where the policy is priority */
    bool share_pushes;                                 /* several served variables may travel in one push */
    bool each_shard;   /* shards of one variable may be synchronized in different ways; guided samples have none */
    bool usual_credit; /* only what frameworks do: 0 where all-reduce is allowed, no limit where servers are */
};

enum { SPACE_MAX_SHARDS = 4096, SPACE_MIN_BYTES = 4096 };

/* Both architectures, every algorithm, fifo and priority, pulls too, shared pushes, ways for each shard, no encoding,
 * nothing sharded, up to 64 shards, sizes 64 KiB to 64 MiB. */
struct space_options space_default_options(void);

/* The options' set of what may be sharded: no more than `most` (SHARDED_none: nothing). */
uint32_t space_sharded_up_to(enum sharded most);

/* The set of algorithms without all_gather. */
uint32_t space_all_reduces(const struct space_options *options);

struct space {
    struct arena arena;            /* owns the arrays */
    const struct model *model;     /* borrowed */
    const struct cluster *cluster; /* borrowed */
    struct space_options options;  /* without all_gather where no variable is sparse, or what cannot be sharded */
    const uint32_t *ready;         /* the model's variables in the order in which gradients become ready */
    const uint32_t *place;         /* the inverse of ready: ready[place[v]] = v */
    const double *rate;            /* by node: bytes per microsecond that a server there can receive and send */
    bool several_devices;          /* some node has more than one: local reduction is a choice */
    bool sparse;                   /* some variable is sparse */
};

/* Fails: ST_INVALID (options that leave nothing to choose, with what is wrong). O(variables + operators + nodes +
 * links). */
enum status space_init(struct space *out, const struct model *model, const struct cluster *cluster,
                       const struct space_options *options, struct error *err);
void space_release(struct space *space);

/* Whether the strategy keeps to the space's options. */
bool space_contains(const struct space *space, const struct strategy *strategy);

/* Whether the options allow what it does to gradients and what it shards: what changes training, and is asked for. */
bool space_permits(const struct space *space, const struct strategy *strategy);

/* Every variable on its own: architecture, cut, servers, group; then the schedule. Reaches every strategy of the space
 * (sizes in steps of 4 KiB). */
enum status space_sample_uniform(const struct space *space, struct rng *rng, struct strategy *out, struct error *err);

/* Draw a strategy by AutoSync's constraints c_lb and c_am. Each strategy follows one idea: all-reduce, servers, or a
 * mix by sparsity, size or run. Merge groups and shared pushes are runs in the order of readiness. Servers are drawn
 * with the bandwidth that is left on them as weight. */
enum status space_sample_guided(const struct space *space, struct rng *rng, struct strategy *out, struct error *err);

/* space_sample_guided with only some of the constraints, to measure what each is worth. Without SPACE_BALANCED a
 * variable has as many servers as with it, but they are drawn whatever load they carry. Without SPACE_ADJACENT there
 * are as many groups of about the same bytes, but their variables come in any order. */
enum { SPACE_BALANCED = 1, SPACE_ADJACENT = 2 }; /* c_lb, c_am */
enum status space_sample_constrained(const struct space *space, struct rng *rng, unsigned constraints,
                                     struct strategy *out, struct error *err);

/* `from` with one small change; never the same id. `from` need not be in the space: what the change does not touch
 * stays. A preemptive `from` also loses its slices. Its policy becomes priority (or what the space has instead), whose
 * order of messages is the nearest one that needs no schedule. Repeated steps reach every strategy of the space. Fails:
 * ST_INFEASIBLE when no change was found in SPACE_MAX_TRIES draws (a space of one). */
enum { SPACE_MAX_TRIES = 200 };
enum status space_neighbour(const struct space *space, const struct strategy *from, struct rng *rng,
                            struct strategy *out, struct error *err);

/* A child of two strategies for this model and cluster. The order of readiness is cut at random places, more often at
 * few than at many, and the runs between the cuts come from `a` and `b` in turn; the schedule comes from one of them.
 * Two variables share a merge group or push in the child only if they came from one parent and shared it there, or if
 * the very same group is in both; so groups that lie within a run, and those that the parents agree on, survive. What
 * the options forbid in one parent comes from the other, so the child is in the space when either parent is. Where both
 * parents are preemptive the child's policy is that of space_neighbour. The child may equal a parent; the child of a
 * strategy with itself is that strategy without its slices. O(variables + servers named). */
enum status space_crossover(const struct space *space, const struct strategy *a, const struct strategy *b,
                            struct rng *rng, struct strategy *out, struct error *err);

#endif
