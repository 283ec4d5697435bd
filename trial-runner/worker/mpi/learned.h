/* What is learned, at the server of updates or at every worker of a synchronous plan: the weights' changes with
 * momentum, and their losses after the run.
 * Threads: one. */
#ifndef TRIAL_RUNNER_WORKER_MPI_LEARNED_H
#define TRIAL_RUNNER_WORKER_MPI_LEARNED_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include "trial-runner/training.h"

/* Weights of more versions are not kept: the loss of each takes about a millisecond. */
enum { LEARNED_MOST = 2000, LEARNED_LINES = 100 };

struct learned_subject {
    const struct training *training;
    const struct training_options *options;
    uint64_t versions;           /* of the weights, in the run */
    uint32_t updates_in_version; /* of single workers */
};

/* Zeroed: nothing is learned here. */
struct learned {
    struct learned_subject of;
    double *change; /* [n_weights] the last one */
    double *sum;    /* [n_weights] of the next version's updates so far */
    uint64_t every; /* version is kept */
    size_t n;
    double *at_us;   /* [LEARNED_MOST] from the start of the run */
    double *weights; /* [LEARNED_MOST] rows of n_weights */
    double began_us; /* the run: the owner's to set */
};

/* Write the first weights, and begin. Ends the job when memory is out. */
void learned_init(struct learned *learned, struct learned_subject of, double *weights);

/* One more update of the next version, or a sum of some. */
void learned_add(struct learned *learned, const double *update);

/* Equation 2 with what was added since the last time, which makes `version`. */
void learned_apply(struct learned *learned, uint64_t version, double *weights);

/* The weights if the next version were made of what was added up so far. */
void learned_so_far(const struct learned *learned, const double *weights, double *out);

/* After the run: give all of it to another rank, which has called learned_init for the same. Neither waits longer for
 * the other than limit_us (wait.h). */
void learned_send(const struct learned *learned, int rank, int tag, MPI_Comm comm, double limit_us);
void learned_receive(struct learned *learned, int rank, int tag, MPI_Comm comm, double limit_us);

/* {"event":"loss",...} of up to LEARNED_LINES versions, and {"event":"training",...}. */
void learned_tell(const struct learned *learned);
void learned_release(struct learned *learned);

#endif
