/* The parts that devices have of a message in halves or of sharded parameters, and what proves that it was moved right.
 *
 * A message moves among all devices, or within groups of them (struct message, `ranks`). Parts are runs of elements,
 * whatever variables these are of, one for each device of the group in order. They are equal, elements / devices
 * rounded up, as NCCL and FSDP2 have them; the last ones are shorter, or empty. Replicas all have the same part.
 *
 * To an all-gather of parameters each device brings the layout's samples that lie in its part, and all must get the
 * values of their owners. To a sum it brings all samples; a reduce-scatter leaves it the sums in its part. */
#ifndef TRIAL_RUNNER_WORKER_PARTS_H
#define TRIAL_RUNNER_WORKER_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/plan.h"
#include "trial-runner/worker/elements.h"

/* Elements of a message, from `begin` to before `end`. */
struct part {
    uint64_t begin, end;
};

/* Part k of n of these elements. */
struct part part_of(struct part whole, uint32_t k, uint32_t n);

/* The devices among which the message moves where `device` is, and the place of one of them among these. */
struct kernel_devices part_group(const struct message *message, uint32_t device, uint32_t n_devices);
uint32_t part_place(const struct kernel_devices *group, uint32_t device);

/* How many parts the message is cut into. */
uint32_t part_count(const struct message *message, uint32_t n_devices);

/* All elements; how many are in a part that is whole; a device's part. */
struct part part_whole(const struct message *message);
uint64_t part_elements(const struct message *message, uint32_t n_devices);
struct part part_of_device(const struct message *message, uint32_t device, uint32_t n_devices);

/* Whether `device` brings sample k to the message. */
bool part_is_brought(const struct message *message, uint32_t k, uint32_t device, uint32_t n_devices);

/* Of which devices `device` must find the sum at sample k after the message: of one after an all-gather of parameters;
 * of none where it has not got the sample. */
struct kernel_devices part_wanted(const struct message *message, uint32_t k, uint32_t device, uint32_t n_devices);

/* The error when another value is there. Returns ST_TRIAL. */
enum status part_wrong(const struct plan *plan, uint32_t message, uint32_t k, struct kernel_devices wanted,
                       uint32_t iteration, struct error *err);

#endif
