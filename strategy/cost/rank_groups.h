/* What a message costs that moves within groups of devices (struct message, `ranks`), in all such groups at once.
 *
 * Groups are of consecutive devices, or of devices so far apart that there are as many groups as devices between two
 * of them: the replicas of a part. All sizes that divide the devices are worked out beforehand, each kind of group
 * once, where groups of one size differ in their nodes; the slowest kind counts.
 *
 * A group that lies in one node never touches a NIC. Of the others several may cross the same NIC: with d groups at the
 * busiest one, each has a d-th of its rate. With that the group is a cluster of its own, whose half rings and
 * all-reduces cost what strategy/cost/all_reduce.h says:
 *   a measured curve     of as many devices as the group has, where these are consecutive; d times its transfer
 *   a step of the ring   where all devices were measured together ("collectives" or curves) and the group has no curve.
 *                        A ring of n devices takes 2 (n - 1) steps of M / n bytes. So half a ring of r devices takes
 *                        (r - 1) / (n - 1) of half a ring of n * M / r bytes on all, and d times its transfer. Within
 *                        a node, where all are on several, formulas give the transfer, and the startup is that of the
 *                        steps without the NIC's latency
 *   formulas and lines   else
 * Replicas all-reduce a part of bytes / stride. By MPI they go round a ring, since the worker's own program does.
 * Units: bytes, microseconds. Threads: a const struct may be shared. */
#ifndef STRATEGY_COST_RANK_GROUPS_H
#define STRATEGY_COST_RANK_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "strategy/cost/all_reduce.h"

struct message; /* strategy/plan.h */

struct rank_group {
    uint32_t ranks, stride;
    bool stays;         /* in one node */
    bool scaled;        /* its steps are those of the ring of all devices */
    bool rings;         /* its all-reduces are rings */
    double devices;     /* of the cluster */
    double crossing;    /* groups at the busiest NIC */
    bool linked;        /* it has overridden links */
    double step_us;     /* within a node: startup of a step, beside what the table says */
    struct node *nodes; /* with its devices alone */
    uint32_t n_nodes;
    struct all_reduce_table table; /* of the group as a cluster of its own */
};

struct rank_groups {
    uint32_t n;
    const struct rank_group *group; /* those of equal ranks and stride stand together */
    bool one_node;                  /* all devices are on one */
};

/* What they cost, and the limits of that (all_reduce_init_limits); the tables of all devices are given likewise.
 * O(divisors * groups and their nodes). Fails: ST_NO_MEMORY. */
enum status rank_groups_init(struct rank_groups *out, struct rank_groups *limits, const struct cluster *cluster,
                             const struct all_reduce_table *whole, const struct all_reduce_table *whole_limits,
                             struct arena *arena, struct error *err);

/* message->ranks > 0. O(kinds of groups + log points). */
struct all_reduce_cost rank_groups_cost(const struct rank_groups *groups, const struct all_reduce_table *whole,
                                        const struct message *message);

/* Whether all groups of the message lie in one node each, on a cluster of several. */
bool rank_groups_stay(const struct rank_groups *groups, const struct message *message);

/* What no message within groups falls below: the least startup; and of a gradient that is reduce-scattered and
 * all-gathered among any number of devices, and all-reduced among replicas, the time a byte for which NICs are held (on
 * one node the devices' links). INFINITY where there are no groups. */
double rank_groups_least_startup_us(const struct rank_groups *groups, const struct all_reduce_table *whole);
double rank_groups_least_per_byte_us(const struct rank_groups *groups, const struct all_reduce_table *whole);

/* The time a byte for which an all-gather among so many consecutive devices holds NICs at least; 0 where some such
 * group lies in one node, INFINITY where there are no such groups. */
double rank_groups_gather_us(const struct rank_groups *groups, const struct all_reduce_table *whole, uint32_t ranks);

#endif
