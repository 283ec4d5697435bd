/* The parts that devices have of a message in halves or of sharded parameters, and what proves that it was moved right.
 *
 * Parts are runs of elements, whatever variables these are of, one a device in the order of devices. They are equal,
 * elements / devices rounded up, as NCCL and FSDP2 have them; the last ones are shorter, or empty.
 *
 * To an all-gather of parameters each device brings the layout's samples that lie in its part, and all must get the
 * values of their owners. To a sum it brings all samples; a reduce-scatter leaves it the sums in its part. */
#ifndef TRIAL_RUNNER_WORKER_PARTS_H
#define TRIAL_RUNNER_WORKER_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/plan.h"

/* Elements of a message, from `begin` to before `end`. */
struct part {
    uint64_t begin, end;
};

/* Elements of a part that is whole. */
uint64_t part_elements(const struct message *message, uint32_t n_devices);

struct part part_of_device(const struct message *message, uint32_t device, uint32_t n_devices);

/* Whether `device` brings sample k to the message. */
bool part_is_brought(const struct message *message, uint32_t k, uint32_t device, uint32_t n_devices);

/* Whose value `device` must find at sample k after the message: a device's number, KERNEL_ALL for the sum over all, or
 * KERNEL_NOBODY where it has not got the sample (trial-runner/worker/elements.h). */
uint32_t part_wanted(const struct message *message, uint32_t k, uint32_t device, uint32_t n_devices);

/* The error when another value is there. Returns ST_TRIAL. */
enum status part_wrong(const struct plan *plan, uint32_t message, uint32_t k, uint32_t wanted, uint32_t iteration,
                       struct error *err);

#endif
