/* All-reduce by a named algorithm, and element types, in MPI's terms. */
#ifndef TRIAL_RUNNER_WORKER_MPI_COLLECTIVE_H
#define TRIAL_RUNNER_WORKER_MPI_COLLECTIVE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/plan.h"

/* Find the switch by which this MPI lets each non-blocking all-reduce choose its algorithm. Call once after MPI_Init.
 * Fails: ST_ENVIRONMENT on an MPI without it. */
enum status collective_init(struct error *err);

/* Every message of the plan can be carried out: algorithm there, tag and count in MPI's range, whole elements. Fails:
 * ST_INFEASIBLE naming the first that cannot. */
enum status collective_check_plan(const struct plan *plan, struct error *err);

/* MPI has no 16-bit floats: they travel as 16-bit integers, and are added by operations of our own. */
MPI_Datatype collective_type(enum dtype dtype);
MPI_Op collective_sum(enum dtype dtype);
int collective_count(uint64_t bytes, enum dtype dtype);

/* Start summing `count` elements at `data` in place over `comm`. */
void collective_start(void *data, int count, enum dtype dtype, enum algorithm algorithm, MPI_Comm comm,
                      MPI_Request *request);

#endif
