/* Rank arithmetic and communicators. Collectives, pushes and control messages each have a communicator of their own, so
 * that a tag is a message's number everywhere. O(nodes + devices). */
#include "trial-runner/worker/world.h"

#include <stdlib.h>
#include <string.h>

#include "trial-runner/worker/report.h"

static void find_servers(struct world *world, const struct plan *plan) {
    for (uint32_t i = 0; i < world->cluster->n_nodes; i++)
        world->server_rank[i] = plan_needs_server(plan, i) ? 0 : -1;
}

/* Number the ranks node by node; the number of ranks that the plan needs. */
static int number_ranks(struct world *world) {
    int rank = 0;
    for (uint32_t i = 0; i < world->cluster->n_nodes; i++) {
        const struct node *node = &world->cluster->nodes[i];
        if (node->devices > 0)
            world->leaders[world->n_leaders++] = node->first_device;
        for (uint32_t k = 0; k < node->devices; k++)
            world->worker_rank[node->first_device + k] = rank++;
        if (world->server_rank[i] == 0)
            world->server_rank[i] = rank++;
    }
    return rank;
}

static void find_self(struct world *world) {
    for (uint32_t d = 0; d < world->cluster->n_devices; d++) {
        if (world->worker_rank[d] != world->rank)
            continue;
        world->device = d;
        world->node = cluster_node_of_device(world->cluster, d);
        world->is_leader = world_node(world)->first_device == d;
    }
    for (uint32_t i = 0; i < world->cluster->n_nodes; i++) {
        if (world->server_rank[i] != world->rank)
            continue;
        world->is_server = true;
        world->node = i;
    }
}

enum status world_init(struct world *world, const struct plan *plan, struct error *err) {
    const struct cluster *cluster = plan->cluster;
    *world = (struct world){.cluster = cluster,
                            .worker_rank = report_alloc(cluster->n_devices, sizeof(int)),
                            .server_rank = report_alloc(cluster->n_nodes, sizeof(int)),
                            .leaders = report_alloc(cluster->n_nodes, sizeof(uint32_t)),
                            .workers = MPI_COMM_NULL,
                            .control = MPI_COMM_NULL,
                            .between = MPI_COMM_NULL,
                            .pushes = MPI_COMM_NULL};
    MPI_Comm_rank(MPI_COMM_WORLD, &world->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world->size);
    find_servers(world, plan);
    int needed = number_ranks(world);
    if (needed != world->size) {
        world_release(world);
        return error_set(err, ST_ENVIRONMENT, "the plan needs %d ranks (%u devices and its servers), %d were started",
                         needed, cluster->n_devices, world->size);
    }
    find_self(world);
    MPI_Comm_split(MPI_COMM_WORLD, world->is_server ? MPI_UNDEFINED : 0, world->rank, &world->workers);
    if (!world->is_server)
        MPI_Comm_dup(world->workers, &world->control);
    MPI_Comm_split(MPI_COMM_WORLD, world->is_leader ? 0 : MPI_UNDEFINED, world->rank, &world->between);
    MPI_Comm_dup(MPI_COMM_WORLD, &world->pushes);
    return ST_OK;
}

static void free_communicator(MPI_Comm *comm) {
    if (*comm != MPI_COMM_NULL)
        MPI_Comm_free(comm);
}

void world_release(struct world *world) {
    free_communicator(&world->pushes);
    free_communicator(&world->between);
    free_communicator(&world->control);
    free_communicator(&world->workers);
    free(world->leaders);
    free(world->server_rank);
    free(world->worker_rank);
    world->leaders = NULL;
    world->server_rank = world->worker_rank = NULL;
}

char *world_share_text(const char *text) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    uint64_t n = rank == 0 ? strlen(text) : 0;
    MPI_Bcast(&n, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    char *copy = report_alloc(n + 1, 1);
    if (rank == 0)
        memcpy(copy, text, n);
    MPI_Bcast(copy, (int)n, MPI_CHAR, 0, MPI_COMM_WORLD);
    return copy;
}
