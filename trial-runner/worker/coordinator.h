/* One order of all-reduces for all workers, when it is not fixed beforehand (policy priority).
 *
 * Collectives must be started in the same order everywhere, and gradients are not ready at the same time everywhere.
 * Each worker tells device 0 how many steps it has finished, which says which gradients are ready there. Device 0 puts
 * the messages that are ready everywhere through its own schedule, and tells all workers which messages go, in order.
 * This takes one small message to device 0 and one back to each worker: the cost coordination_us of the cluster's
 * runtime. */
#ifndef TRIAL_RUNNER_WORKER_COORDINATOR_H
#define TRIAL_RUNNER_WORKER_COORDINATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "trial-runner/worker/requests.h"
#include "trial-runner/worker/schedule.h"
#include "trial-runner/worker/world.h"

enum { COORDINATOR_BATCH = 255 }; /* messages of one decision at most */

/* Starts a message of the caller's. */
typedef void coordinator_start(void *context, uint32_t message);

struct coordinator {
    const struct plan *plan;
    const struct world *world;
    struct requests *requests;
    bool needed;         /* by this plan; the functions below are then called on every worker */
    bool local_sums;     /* sums inside a node are collectives too */
    bool encodes;        /* starting a message with an encoder takes long: this processor encodes */
    bool leads;          /* device 0 */
    uint64_t *finished;  /* leader: [n_devices] steps that each has finished since the start */
    uint64_t *incoming;  /* leader: [n_devices] reports being received */
    uint64_t everywhere; /* leader: steps that all have finished and whose messages are in the schedule */
    uint32_t *go;        /* [0] how many, then which messages; the leader collects them here, the others receive them */
};

void coordinator_init(struct coordinator *coordinator, const struct plan *plan, const struct world *world,
                      struct requests *requests, bool local_sums, bool encodes);

/* Device 0 decides when this message goes. */
bool coordinator_orders(const struct coordinator *coordinator, uint32_t message);

/* This device has finished `steps` steps since the start. */
void coordinator_report(struct coordinator *coordinator, uint64_t steps, struct schedule *schedule);

/* A report from `device` has come in (DONE_REPORT); listens for the next. */
void coordinator_hear(struct coordinator *coordinator, uint32_t device, struct schedule *schedule);

/* Start what the schedule lets go, at most COORDINATOR_BATCH, and nothing after one that takes long; true when anything
 * did. The leader first sends one message with all of them to the others, and only then starts them itself. */
bool coordinator_dispatch(struct coordinator *coordinator, struct schedule *schedule, coordinator_start *start,
                          void *context);

/* Others: start what the leader has decided (DONE_GO); listens for the next decision. */
void coordinator_obey(struct coordinator *coordinator, struct schedule *schedule, coordinator_start *start,
                      void *context);

void coordinator_release(struct coordinator *coordinator);

#endif
