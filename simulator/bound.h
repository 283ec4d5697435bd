/* A lower bound on the iteration time of every strategy, so that each answer can be reported with its gap to it.
 *
 * It holds for timeline_run of every plan that strategies without encoding lower to on this model and cluster, whatever
 * the architecture, merging, partition, policy, credit, barrier or none. It is the largest of
 *
 *   compute   the slowest device's operators, one after another.
 *
 *   volume    what an iteration must move through the NIC of any node with devices, in each direction, at its rate.
 *             A variable that is all-reduced holds every such NIC for at least rho a byte (the least transfer time a
 *             byte over all algorithms and sizes, in the network's narrowest rate). One under a parameter server,
 *             whatever its shards: a node sends the fraction f that it does not serve to servers, and from the fraction
 *             it serves sends one copy to each of the other K - 1 >= 1 nodes: f + (1 - f)(K - 1) >= 1 times the
 *             gradient. Each variable takes the cheaper.
 *
 *   windows   the same work between release (gradient ready) and tail (computation after the first forward operator
 * that reads it, up to the next backward pass), as a one-machine problem with preemption: the NIC's egress. Pulls that
 * a node sends as a server need not lie in its own window, so only the fraction that it does not serve counts. The
 * fractions served sum to at most 1 over nodes, the period is at least every node's value, hence their mean's; and the
 * value, being a maximum of sums that are linear in the works, is convex, hence at least the value of the mean works:
 * for a set U of nodes, B * (sum of 1/rate - the largest 1/rate) / |U| for a served gradient of B bytes, and rho' * B
 * for an all-reduced one. Release and tail use the least compute_scale in U. Tried for U = all nodes, those with the
 * narrowest NIC, and the slowest.
 *
 * Start-up, launch, coordination, copy and summing costs count as zero. Looser than it could be: on one node only
 * compute counts; pulls into a node and pushes out of it are never added up; overridden links count only in rho.
 * A prediction that did not converge is a mean over a few iterations and may lie below by what its ends differ. */
#ifndef SIMULATOR_BOUND_H
#define SIMULATOR_BOUND_H

#include <stdint.h>

#include "base/error.h"
#include "strategy/cost/cost.h"
#include "strategy/model.h"

struct bound {
    double compute_us, volume_us, windows_us;
    double iteration_us; /* the largest */
};

/* O((operators + variables) log variables + nodes log nodes). `cost` is the cluster's. Fails: ST_NO_MEMORY. */
enum status bound_iteration(const struct model *model, const struct cost *cost, struct bound *out, struct error *err);

#endif
