/* A strategy in about thirty numbers: the knobs and a few terms of its plan, for a Gaussian process or a reader.
 *
 * Columns are global features, scaled so that ten doublings of a size and the whole of a share are both 1. They belong
 * to a handful of knobs, which people set, and whose importance is reported. */
#ifndef TUNER_SEARCH_SKETCH_H
#define TUNER_SEARCH_SKETCH_H

#include <stddef.h>

#include "featurize/features.h"

/* X(knob, words) */
#define SKETCH_KNOB_TABLE(X)                                                                                           \
    X(ARCHITECTURE, "parameter server or all-reduce")                                                                  \
    X(SIZES, "sizes of merge groups and messages")                                                                     \
    X(MESSAGES, "number of messages and what travels together")                                                        \
    X(CREDIT, "bytes in flight")                                                                                       \
    X(SCHEDULE, "order and barrier")                                                                                   \
    X(ALGORITHM, "all-reduce algorithm")                                                                               \
    X(SERVERS, "servers and shards")                                                                                   \
    X(SHARDING, "what is sharded, kept and gathered ahead")                                                            \
    X(TIMELINE, "overlap, as the timeline sees it")

/* X(global feature, knob it belongs to) */
#define SKETCH_TABLE(X)                                                                                                \
    X(server_share, ARCHITECTURE)                                                                                      \
    X(sparse_served_share, ARCHITECTURE)                                                                               \
    X(log2_groups, SIZES)                                                                                              \
    X(log2_group_bytes, SIZES)                                                                                         \
    X(log2_message_bytes, SIZES)                                                                                       \
    X(log2_largest_message, SIZES)                                                                                     \
    X(log2_partition, SIZES)                                                                                           \
    X(log2_messages, MESSAGES)                                                                                         \
    X(log2_pushes, MESSAGES)                                                                                           \
    X(scattered_share, MESSAGES)                                                                                       \
    X(log2_credit, CREDIT)                                                                                             \
    X(stop_and_wait, CREDIT)                                                                                           \
    X(unlimited, CREDIT)                                                                                               \
    X(log2_window, CREDIT)                                                                                             \
    X(priority, SCHEDULE)                                                                                              \
    X(preemptive, SCHEDULE)                                                                                            \
    X(cross_iteration, SCHEDULE)                                                                                       \
    X(share_auto, ALGORITHM)                                                                                           \
    X(share_ring, ALGORITHM)                                                                                           \
    X(share_tree, ALGORITHM)                                                                                           \
    X(share_recursive_doubling, ALGORITHM)                                                                             \
    X(share_halving_doubling, ALGORITHM)                                                                               \
    X(share_hierarchical, ALGORITHM)                                                                                   \
    X(log2_servers, SERVERS)                                                                                           \
    X(log2_server_imbalance, SERVERS)                                                                                  \
    X(log2_shards, SERVERS)                                                                                            \
    X(sharded_optimizer_share, SHARDING)                                                                               \
    X(sharded_gradients_share, SHARDING)                                                                               \
    X(sharded_parameters_share, SHARDING)                                                                              \
    X(log2_shard_group, SHARDING)                                                                                      \
    X(kept_share, SHARDING)                                                                                            \
    X(log2_forward_prefetch, SHARDING)                                                                                 \
    X(log2_backward_prefetch, SHARDING)                                                                                \
    X(exposed_share, TIMELINE)                                                                                         \
    X(log2_queue_share, TIMELINE)                                                                                      \
    X(log2_timeline_over_closed, TIMELINE)

enum sketch_knob {
#define X(knob, words) SKETCH_##knob,
    SKETCH_KNOB_TABLE(X)
#undef X
        SKETCH_KNOBS
};
enum sketch_column {
#define X(name, knob) SKETCH_COLUMN_##name,
    SKETCH_TABLE(X)
#undef X
        SKETCH_COLUMNS
};

void sketch_of(const struct features *features, double out[SKETCH_COLUMNS]);

/* [SKETCH_COLUMNS] the knob of each column. */
const size_t *sketch_knobs(void);
const char *sketch_knob_label(enum sketch_knob knob);

#endif
