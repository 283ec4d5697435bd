/* A server's side of the plan's pushes, on a GPU: sum what the workers send, and send the sum back to each. */
#ifndef TRIAL_RUNNER_WORKER_NCCL_SERVER_H
#define TRIAL_RUNNER_WORKER_NCCL_SERVER_H

#include <stdint.h>

#include "trial-runner/worker/world.h"

/* Serve this node's messages for `iterations` iterations, then return. Collective with the workers' exchange_init. */
void server_run(const struct plan *plan, const struct world *world, uint32_t iterations);

#endif
