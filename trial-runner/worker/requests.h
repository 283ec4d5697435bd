/* The MPI requests that a rank has in flight, and what each one's completion means. */
#ifndef TRIAL_RUNNER_WORKER_REQUESTS_H
#define TRIAL_RUNNER_WORKER_REQUESTS_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

enum completion_kind {
    DONE_ALL_REDUCE,   /* a message's all-reduce, here */
    DONE_RING,         /* a send or a receive of a step of a ring */
    DONE_ENCODED,      /* a send or a receive of a message with an encoder */
    DONE_ALL_GATHER,   /* the slices of all devices are in `buffer` */
    DONE_LOCAL_SEND,   /* this device's gradient has left for its node's leader */
    DONE_LOCAL_RECV,   /* another device's gradient is in `buffer`, at the leader */
    DONE_LOCAL_RESULT, /* the sum is back from the leader */
    DONE_LOCAL_RETURN, /* one of the leader's sends of the sum */
    DONE_PUSH,         /* the gradient has left for the server */
    DONE_PULL,         /* the sum is back from the server */
    DONE_ARRIVAL,      /* a push is in `buffer`, at the server */
    DONE_ANSWER,       /* one of the server's sends of the sum */
    DONE_REPORT,       /* a worker's report of the steps that it has finished, at device 0 */
    DONE_GO,           /* the coordinator has said which messages go, or the scheduler whether an update does */
    DONE_DELIVERY,     /* a part of the model has left for a node, of a server of updates */
    DONE_COPY,         /* an update has left for the replica, in `buffer` */
    DONE_CONTROL_SEND, /* a small control message, in `buffer`, has left */
};

struct completion {
    enum completion_kind kind;
    uint32_t message;
    int peer;
    void *buffer;
};

struct requests {
    MPI_Request *live;
    struct completion *what, *done;
    int *index;
    int n, capacity;
};

/* A place for one more request, to be filled by the MPI call at once; valid until the next add. */
MPI_Request *requests_add(struct requests *requests, struct completion what);

/* Let MPI progress; the number of requests that completed, described in requests->done. Never blocks. */
int requests_poll(struct requests *requests);

/* Send a copy of the bytes, so that the caller's may change at once: DONE_CONTROL_SEND with the copy as buffer, for the
 * caller to free. */
void requests_send_copy(struct requests *requests, const void *data, size_t bytes, int rank, int tag, MPI_Comm comm);

/* Wait no more for live requests of this kind, because the other end may be dead. Their buffers stay MPI's. */
void requests_forget(struct requests *requests, enum completion_kind kind);

void requests_release(struct requests *requests);

/* As requests_release, while some requests are live: receives of the coordinator that nobody will answer are cancelled;
 * all others are waited for. */
void requests_end(struct requests *requests);

#endif
