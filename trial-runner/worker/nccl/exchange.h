/* A GPU's side of every message: from gradients ready to sum in place.
 *
 *   all-reduce       gather -> ncclAllReduce -> scatter
 *   all-gather       gather -> ncclAllGather -> add the slices of all devices -> scatter
 *   encoders         gather -> the stages of encoded.h or power.h -> scatter
 *   halves           gather -> ncclReduceScatter; the other half: ncclAllGather -> scatter
 *   sharded parameters  an all-gather: this device's part -> ncclAllGather -> scatter. A reduce-scatter:
 *                    gather -> ncclReduceScatter into this device's part, and with replicas -> ncclAllReduce of it
 *                    among those that have it, on a stream beside the others. In types of their own gradients are
 *                    converted as they are gathered, and parts before or after
 *   hierarchical     gather -> ncclReduce in the node -> ncclAllReduce between leaders -> ncclBroadcast -> scatter
 *   parameter server gather -> [ncclReduce to the leader] -> ncclSend -> ncclRecv -> [ncclBroadcast] -> scatter
 *
 * The host starts a message when its gradients are there and the schedule lets it go (under priority device 0 decides
 * for all collectives). It then enqueues on one stream all stages up to the next one that waits for another rank's
 * note. Credit comes back when an event behind these stages is reached. Collectives are on one stream, in one order on
 * all ranks; so a second half finds the first one's sums.
 * Pushes go one group at a time, announced to their servers by notes, so that every transfer that is posted is at the
 * head of the streams of both sides. So there is no deadlock.
 *
 * The compute stream waits for a message on the GPU: exchange_gate makes it wait for the message's event. This is
 * possible as soon as the message's last stage has been enqueued (exchange_is_enqueued). */
#ifndef TRIAL_RUNNER_WORKER_NCCL_EXCHANGE_H
#define TRIAL_RUNNER_WORKER_NCCL_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "trial-runner/worker/coordinator.h"
#include "trial-runner/worker/nccl/gradients.h"
#include "trial-runner/worker/nccl/network.h"
#include "trial-runner/worker/nccl/power.h"
#include "trial-runner/worker/nccl/stream.h"
#include "trial-runner/worker/requests.h"
#include "trial-runner/worker/schedule.h"

/* One message's life in one iteration, and its events, which live on. */
struct transfer {
    uint32_t iteration;             /* that was last started */
    uint32_t started, enqueued;     /* iterations that were started; whose last stage is on a stream */
    double ready_us, next_ready_us; /* when gradients were there: of `iteration`; of the next one */
    cudaEvent_t start, summed, done, checked;
};

/* Messages that wait for their turn to be pushed, in order. */
struct backlog {
    uint32_t *messages; /* ring of n_messages */
    uint32_t n, first;
};

struct exchange {
    const struct plan *plan;
    struct network *network;
    const struct world *world;
    bool verify, timed;
    struct gradients gradients;
    struct requests requests;
    struct schedule schedule;
    struct coordinator coordinator;
    struct stream collectives, push, pull, checks;
    struct stream back;         /* sums on their way back into a node; or replicas: no plan has both here */
    struct transfer *transfers; /* [n_messages] */
    char *slices;               /* device memory: what all devices send in the largest all-gather of rows, or encode */
    struct power power;         /* messages by powersgd */
    float **kept;               /* [n_messages] device memory: layout_kept_bytes, or NULL */
    uint64_t buffers_bytes;     /* of these, and of the gradients' buffers */
    cudaEvent_t gathered;       /* the check of the last all-gather of sharded parameters; NULL: there was none */
    struct backlog backlog;
    uint32_t pushing[NETWORK_GROUP], n_pushing; /* the group under way */
    cudaEvent_t pushed;
    uint64_t to_report; /* steps finished that device 0 must hear of; 0 = nothing new */
    uint32_t n_live;    /* messages ready and not done */
    /* Called when a message is done, its events timed if `timed`; may be NULL. */
    void (*on_done)(void *context, uint32_t message, const struct transfer *transfer);
    void *context;
};

/* Collective over workers and, with plan->any_server, servers. */
void exchange_init(struct exchange *exchange, const struct plan *plan, const struct world *world, bool verify,
                   bool timed);

/* Step `step` of `iteration` ended at `now_us`: its gradients are there. */
void exchange_step_done(struct exchange *exchange, uint32_t iteration, uint32_t step, double now_us);

/* The events of all messages that gate `step` of `iteration` exist, so `stream` can wait for them. */
bool exchange_is_enqueued(const struct exchange *exchange, uint32_t iteration, uint32_t step);
void exchange_gate(const struct exchange *exchange, uint32_t iteration, uint32_t step, const struct stream *stream);

/* Put what `step` makes ready for `iteration` into memory, once the checks of the iteration before have read it. */
void exchange_produce(const struct exchange *exchange, uint32_t iteration, uint32_t step, bool spoilt,
                      const struct stream *stream);

/* Start what may start and take in what has completed; true when anything did. */
bool exchange_progress(struct exchange *exchange);

/* To be called by all workers together, when n_live is 0 everywhere. */
void exchange_release(struct exchange *exchange);

#endif
