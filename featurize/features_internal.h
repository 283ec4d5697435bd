/* What the parts of featurize share: a survey, made by one pass over a plan.
 *
 * A survey holds what several views need: the gradients in the order of readiness, the pieces of each variable, what
 * each message costs, what each node moves. All of it is scratch in `arena`, to be released when the features are made.
 * Units: microseconds (_us), bytes, bytes per microsecond. */
#ifndef FEATURIZE_FEATURES_INTERNAL_H
#define FEATURIZE_FEATURES_INTERNAL_H

#include <math.h>

#include "base/arena.h"
#include "strategy/cost/cost.h"
#include "strategy/exact/gradients.h"
#include "strategy/plan.h"

struct features; /* both: featurize/features.h */
struct timeline_terms;

struct message_view {
    double startup_us, transfer_us; /* of an all-reduce */
    double log2_bytes;
    double ready_us; /* from the start of its backward pass, on a device of compute_scale 1 */
};

struct group_totals {
    double bytes, members;
    double placed_bytes; /* of the members that were seen so far */
};

/* Pushes come in two sorts: [0] one a device, [1] one a node, after local reduction. */
struct node_view {
    double served_bytes[2], served_messages[2]; /* of one push each */
    double per_byte_us[2];                      /* a server: equation 2's transfer of one byte from all other nodes */
    double pushes[2];                           /* a server: pushes of one message from other nodes */
    double received_us, sent_us;                /* equation 2's time on this node's NIC */
    double nic_bytes;                           /* through its NIC, each direction */
    double log2_rate;                           /* of its NIC, over the mean of nodes */
    double load;                                /* bytes served by rate, over the mean of nodes */
};

struct survey {
    const struct strategy *strategy;
    const struct plan *plan;
    const struct cost *cost;
    const struct timeline_terms *terms;
    struct arena arena;
    const struct gradient *gradients; /* the model's variables in the order of readiness */
    const uint32_t *place;            /* its inverse */
    struct message_view *messages;    /* as the plan's */
    const uint32_t *first_piece;      /* by variable, [n_variables + 1] into piece and message_of */
    const uint32_t *piece;            /* the plan's pieces by variable, by offset within one */
    const uint32_t *message_of;       /* the message that holds piece[i] */
    struct group_totals *groups;
    struct node_view *nodes;
    double forward_us, backward_us; /* of a micro-batch, at compute_scale 1 */
    double compute_us;              /* of all micro-batches, on the slowest device */
    double startup_us, transfer_us; /* of all all-reduces */
    double sums;                    /* how often an iteration sums a gradient: in each of its micro-batches, or once */
    double sync_us;                 /* AutoSync's closed form: all-reduces and the busiest NIC's pushes */
};

#define GLOBAL(features, name) ((features)->global[FEATURE_GLOBAL_##name])

static inline double feature_log2(double x) {
    return log2(1 + x);
}

/* a / b, and 0 where there is nothing to share. */
static inline double feature_share(double a, double b) {
    return b > 0 ? a / b : 0;
}

/* log2((1 + a) / (1 + b)). */
static inline double feature_log2_ratio(double a, double b) {
    return log2((1 + a) / (1 + b));
}

/* Fill the survey but for what nodes move. Its arena is the caller's to release, also after a failure. */
enum status survey_plan(struct survey *survey, struct error *err);

/* Fill nodes[] and sync_us, and the plan's features of NICs and servers. Fails: ST_NO_MEMORY. */
enum status survey_nodes(struct survey *survey, struct features *out, struct error *err);

/* The rows of shards, and the predefined terms over them. Fails: ST_NO_MEMORY. */
enum status features_of_shards(struct survey *survey, struct features *out, struct error *err);

/* The variable graph. Fails: ST_NO_MEMORY. */
enum status features_of_graph(const struct survey *survey, struct features *out, struct error *err);

/* The rest of the global vector. */
void features_of_messages(const struct survey *survey, struct features *out);
void features_of_knobs(const struct survey *survey, struct features *out);
void features_of_domain(const struct survey *survey, struct features *out);

#endif
