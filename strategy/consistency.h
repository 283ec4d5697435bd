/* Consistency: how far the workers of a strategy may drift apart (MLfabric §2), and who orders their updates (§5).
 *
 * Without the member "consistency" training is synchronous: an iteration ends when every worker has every sum. With it
 * a worker's gradients of one iteration travel as one update: whole, after the backward pass, one push to each server.
 * The server applies updates one by one, and each makes a new version of the model (equation 2). The worker then pulls
 * the model and computes its next update from it (equation 1). The delay of an update is how many versions were made
 * between the one it was computed from and its own. The member is an object:
 *   "kind"         synchronous: an iteration's updates are added up, and make one version;
 *                  stale_synchronous: a worker that has ended c iterations begins the next one when the slowest has
 *                  ended c - K (Ho et al. 2013);
 *                  asynchronous: nobody waits
 *   "staleness"    K, of stale_synchronous alone, which requires it: 0 to 1000 iterations
 *   "delay_bound"  of asynchronous alone: an update of a larger delay is dropped; at least 1; default: none is
 *   "scheduler"    MLfabric's scheduler gives every update its turn on the network. synchronous requires it; default:
 *                  none, updates share the NICs as they come. An object:
 *     "batch_us"     what comes within this time is ordered together; default 100000, as in §7
 *     "order"        who goes first among updates with deadlines: mlfabric (default: algorithm 2) or slots (as few
 *                    dropped as there can be; strategy/updates/order.h)
 *     "aggregators"  names of nodes that add updates up on their way to the server (algorithm 3), the first group's
 *                    first; not the server's own; default none
 *     "distributors" how many nodes at most pass a batch's model on, the fastest that ask for it: they get it from the
 *                    server, and each gives it to a group of the others (§10.3); 0 to 64; default 0: none
 *   "replica"      a node that follows the server (§5.3); it needs the scheduler and one server. An object:
 *     "node"         its name
 *     "divergence"   how far its model may be from the server's, in norms of a typical update; above 0
 *     "momentum"     the training's gamma of equation 2, in [0, 1); default 0
 *     "copies"       when copies of updates are sent to it. early (default): as many as it can get by the end of each
 *                    batch (§5.3); due: when the bound asks for one, and then all
 *     "aggregators"  as above, for copies; not the replica's own node; default none
 *
 * All variables are served and whole, and those of one server share one push. The schedule is fifo without a limit and
 * with the barrier, devices push for themselves (no local_reduction). Aggregators add dense gradients, for one server.
 */
#ifndef STRATEGY_CONSISTENCY_H
#define STRATEGY_CONSISTENCY_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "strategy/cluster.h"
#include "strategy/model.h"

struct strategy;

/* X(name) */
#define CONSISTENCY_TABLE(X) X(synchronous) X(stale_synchronous) X(asynchronous)
enum consistency_kind {
#define X(name) CONSISTENCY_##name,
    CONSISTENCY_TABLE(X)
#undef X
        CONSISTENCY_COUNT
};

#define UPDATE_ORDER_TABLE(X) X(mlfabric) X(slots)
enum update_order_rule {
#define X(name) UPDATE_ORDER_##name,
    UPDATE_ORDER_TABLE(X)
#undef X
        UPDATE_ORDER_COUNT
};

enum { CONSISTENCY_MAX_STALENESS = 1000, CONSISTENCY_MAX_DELAY = 1000000, CONSISTENCY_MAX_DISTRIBUTORS = 64 };
#define CONSISTENCY_BATCH_US 1e5

struct node_list {
    uint32_t n;
    const uint32_t *nodes; /* positions in the cluster */
};

/* Zeroed: synchronous, without any of this. */
struct consistency {
    enum consistency_kind kind;
    uint32_t staleness;   /* stale_synchronous */
    uint32_t delay_bound; /* asynchronous; 0: none */
    bool scheduled;       /* "scheduler", with the next four */
    double batch_us;
    enum update_order_rule order;
    struct node_list aggregators;
    uint32_t distributors;
    bool replicated; /* "replica", with the next five */
    uint32_t replica;
    bool copies_when_due;
    double divergence, momentum;
    struct node_list replica_aggregators;
};

const char *consistency_name(enum consistency_kind kind);

/* Whether workers go on together by sums alone: the description has no "consistency". */
bool consistency_is_plain(const struct consistency *consistency);

/* Read the member of `root`, if it is there; nodes by their names in the cluster. Fails: ST_INVALID with the place,
 * ST_NO_MEMORY. */
enum status consistency_read(const struct json_at *root, const struct cluster *cluster, struct arena *arena,
                             struct consistency *out, struct error *err);

/* Add the member to a description; nothing where it is plain. False when memory is out. */
bool consistency_write(const struct consistency *consistency, const struct cluster *cluster, cJSON *root);

/* The rules above (consistency_check.c). Fails: ST_INVALID, ST_NO_MEMORY. O(variables + nodes). */
enum status consistency_check(const struct strategy *strategy, const struct model *model, const struct cluster *cluster,
                              struct error *err);

/* Copy what it points at. False when memory is out. */
bool consistency_copy(const struct consistency *from, struct arena *arena, struct consistency *out);

#endif
