/* A strategy from a handful of numbers, the way people set synchronization up today: one architecture, a fusion size, a
 * partition size and a credit (ByteScheduler §4.3, Horovod's fusion threshold, BytePS's partition).
 *
 * The whole space has thousands of choices, which samplers and neighbours walk; these few are enough for Bayesian
 * optimization, a grid or gradient steps. They are mapped to the unit cube. A size lies on its axis by its logarithm. A
 * category divides its axis into equal parts, one a choice. A knob with a single possible value is no dimension. The
 * ends of a size's axis stand for "none" and "no limit", so that values with like effects are neighbours: a tiny merge
 * size next to no merging, a huge partition next to whole gradients.
 *
 * Units: bytes. Threads: all functions may be called at once for a shared const struct space. */
#ifndef TUNER_SEARCH_KNOBS_H
#define TUNER_SEARCH_KNOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/space/space.h"

/* Who is served, the others being all-reduced: nobody, all, variables of at least served_bytes, sparse variables.
 * sparse_gathered: nobody, but every sparse variable is gathered by itself. */
#define KNOB_ARCHITECTURE_TABLE(X) X(all_reduce) X(server) X(large_served) X(sparse_served) X(sparse_gathered)
enum knob_architecture {
#define X(name) KNOB_ARCHITECTURE_##name,
    KNOB_ARCHITECTURE_TABLE(X)
#undef X
        KNOB_ARCHITECTURE_COUNT
};

/* What is sharded of all that is all-reduced; kept: parameters, which stay gathered from one pass to the other.
 * Parameters take policy fifo and the barrier, and all of them a ring, whatever the knobs for these say. */
#define KNOB_SHARDING_TABLE(X) X(none) X(optimizer) X(gradients) X(parameters) X(kept)
enum knob_sharding {
#define X(name) KNOB_SHARDING_##name,
    KNOB_SHARDING_TABLE(X)
#undef X
};

struct knobs {
    enum knob_architecture architecture;
    enum knob_sharding sharding;
    uint64_t merge_bytes;     /* neighbours in the order of readiness share an all-reduce of up to so many bytes;
                                 0 = each alone */
    uint64_t partition_bytes; /* largest message, and about the largest shard of a served variable; 0 = whole */
    uint64_t credit_bytes;    /* in flight; 0 = one at a time, CREDIT_UNLIMITED */
    enum policy policy;       /* fifo or priority */
    enum algorithm algorithm; /* of every all-reduce */
    bool cross_iteration;
    bool pulls_by_priority; /* kept as it is: no dimension */
    uint64_t served_bytes;  /* large_served only */
    uint32_t n_servers;     /* 1 .. nodes: those without devices first, then those with the most bandwidth */
};

/* X(member of struct knobs), in the order of the dimensions */
#define KNOB_TABLE(X)                                                                                                  \
    X(architecture)                                                                                                    \
    X(merge_bytes)                                                                                                     \
    X(partition_bytes)                                                                                                 \
    X(credit_bytes) X(policy) X(algorithm) X(cross_iteration) X(served_bytes) X(n_servers) X(sharding)
enum knob {
#define X(name) KNOB_##name,
    KNOB_TABLE(X)
#undef X
        KNOB_COUNT
};

enum knob_kind {
    KNOB_CATEGORY, /* choices without an order */
    KNOB_SIZE,     /* bytes by their logarithm, whole 4 KiB; the ends of the axis may stand for values of their own */
    KNOB_NUMBER    /* whole numbers low .. high by their logarithm */
};

/* One axis of the cube. */
struct knob_dimension {
    enum knob knob;
    const char *name;
    enum knob_kind kind;
    uint32_t choices;   /* KNOB_CATEGORY: how many; choice i is the interval [i / choices, (i + 1) / choices) */
    uint32_t members;   /* KNOB_CATEGORY: set of the values that the choices stand for, in rising order */
    uint64_t low, high; /* KNOB_SIZE, KNOB_NUMBER: the range */
    /* KNOB_SIZE: values that the first and the last eighth of the axis stand for */
    bool has_first, has_last;
    uint64_t first, last;
};

/* The dimensions of the space's knobs, at most KNOB_COUNT; their number d. */
size_t knobs_dimensions(const struct space *space, struct knob_dimension out[KNOB_COUNT]);

/* The knobs at u[d]; coordinates outside [0, 1] are taken to the nearest end. Knobs that are no dimension take their
 * only value. */
struct knobs knobs_from_unit(const struct space *space, const double *u);

/* Where knobs lie: u[d], in the middle of what stands for the same value. knobs_from_unit gives the same knobs back,
 * sizes being rounded to whole 4 KiB of the range. */
void knobs_to_unit(const struct space *space, const struct knobs *knobs, double *u);

/* The knobs that come nearest to a strategy of any kind. For a strategy that knobs_strategy made they are its knobs
 * again, except for knobs without effect, and n_servers where fewer servers are in use than were allowed. Fails:
 * ST_NO_MEMORY. */
enum status knobs_of(const struct space *space, const struct strategy *strategy, struct knobs *out, struct error *err);

/* The sealed strategy, called "knobs". Different knobs give different strategies, but for knobs without effect (the
 * merge size of a strategy without all-reduce) and sizes so close that they group and cut all variables in the same
 * way. Variables are served largest first, cut along axis 0 into shards of about partition_bytes where that is allowed,
 * on the servers that then finish first by their load and bandwidth.
 * O(variables · (log variables + n_servers log n_servers + min(shards, n_servers)²)).
 * Fails: ST_INVALID (a knob outside the space's options), ST_NO_MEMORY. */
enum status knobs_strategy(const struct space *space, const struct knobs *knobs, struct strategy *out,
                           struct error *err);

#endif
