/* What each worker program does in its own way: mpi/ moves host memory, nccl/ moves GPU memory.
 *
 * trial-runner/worker/main.c reads the command line, the files and the plan, and trial-runner/worker/measure.c knows
 * what to measure; both programs have them. Beside this header a program implements trial-runner/worker/execute.h and
 * trial-runner/worker/operations.h. */
#ifndef TRIAL_RUNNER_WORKER_BACKEND_H
#define TRIAL_RUNNER_WORKER_BACKEND_H

#include <cjson/cJSON.h>

#include "base/error.h"
#include "trial-runner/worker/world.h"

/* Say on standard output what this machine has for the program, without other ranks: the command `probe`. ST_OK when
 * the program could run here. Called before MPI_Init. */
enum status backend_probe(struct error *err);

/* After MPI_Init: find what is needed. Collective; the same result on every rank. Fails: ST_ENVIRONMENT. */
enum status backend_open(struct error *err);

/* Every message of the plan can be carried out. Fails: ST_INFEASIBLE naming the first that cannot. */
enum status backend_check_plan(const struct plan *plan, struct error *err);

/* Take this rank's place among the others, and leave it. Collective; the same result on every rank.
 * Fails: ST_ENVIRONMENT. */
enum status backend_join(struct world *world, struct error *err);
void backend_leave(struct world *world);

/* Add to the line "ready" what the times depend on. */
void backend_describe(const struct world *world, cJSON *ready);

#endif
