/* Sends and receives of many bytes, cut into chunks that Open MPI sends before the receiver has answered.
 *
 * Above that limit its TCP transport waits for an answer to each message, and loses 10 to 30% of the rate where every
 * step of an algorithm waits for the one before: a ring's half of 1, 4 and 16 MiB on 4 nodes of 1 Gbit/s took 0.69 to
 * 0.9 of the time in chunks. Between two ranks they keep their order, so that one tag serves for all. */
#ifndef TRIAL_RUNNER_WORKER_MPI_CHUNKS_H
#define TRIAL_RUNNER_WORKER_MPI_CHUNKS_H

#include <mpi.h>
#include <stdint.h>

#include "trial-runner/worker/requests.h"

/* The other rank, and what the completion of each chunk means. */
struct chunks_peer {
    int rank, tag;
    MPI_Comm comm;
    struct completion done;
};

/* How large chunks are, where a message of `eager_bytes` needs no answer; 0: that is not known. */
uint64_t chunks_bytes(uint64_t eager_bytes);

/* Returns how many requests there are, at least one: 0 bytes are one empty chunk. */
uint32_t chunks_send(const char *data, uint64_t bytes, uint64_t chunk, const struct chunks_peer *to,
                     struct requests *requests);
uint32_t chunks_receive(char *data, uint64_t bytes, uint64_t chunk, const struct chunks_peer *from,
                        struct requests *requests);

#endif
