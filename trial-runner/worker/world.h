/* Who is who among the ranks of one job.
 *
 * Ranks follow from arithmetic alone: nodes in the cluster's order; on each node first one worker a device, then one
 * server if the plan uses that node as a server for sums of updates or to pass models on. The launcher must give each
 * node that many slots. Units: ranks are of MPI_COMM_WORLD unless a name says otherwise; devices are the cluster's
 * numbers. */
#ifndef TRIAL_RUNNER_WORKER_WORLD_H
#define TRIAL_RUNNER_WORKER_WORLD_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/plan.h"

struct world {
    const struct cluster *cluster;
    int rank, size;
    bool is_server; /* or a relay of updates and models */
    uint32_t node;
    uint32_t device;  /* of a worker */
    bool is_leader;   /* a worker that is its node's first device */
    int *worker_rank; /* [n_devices] */
    int *server_rank; /* [n_nodes], -1 where there is none */
    uint32_t n_leaders;
    uint32_t *leaders; /* [n_leaders] devices */
    MPI_Comm workers;  /* all devices, ranked by device; MPI_COMM_NULL at a server */
    MPI_Comm control;  /* the same again, for the coordinator's messages */
    MPI_Comm between;  /* the nodes' leaders; MPI_COMM_NULL elsewhere */
    MPI_Comm pushes;   /* everyone, for pushes and pulls */
    void *backend;     /* what backend_join keeps; NULL before */
};

/* The same on every rank, or the same failure on every rank. Fails: ST_ENVIRONMENT when the launcher started another
 * number of ranks than the plan needs. Collective. */
enum status world_init(struct world *world, const struct plan *plan, struct error *err);
void world_release(struct world *world);

/* The text of world rank 0, on every rank, malloc'd; `text` of other ranks is ignored. Collective. */
char *world_share_text(const char *text);

static inline const struct node *world_node(const struct world *world) {
    return &world->cluster->nodes[world->node];
}

/* Whether the message is first summed inside the nodes. Never where no node has more than one device. */
static inline bool world_sums_in_nodes(const struct world *world, const struct message *message) {
    if (world->n_leaders == world->cluster->n_devices)
        return false;
    return message->kind == SYNC_ALL_REDUCE ? message->algorithm == ALGORITHM_hierarchical : message->local_reduction;
}

#endif
