/* Between trial-runner/lab.c, which makes and enters namespaces, trial-runner/lab_network.c, which fills them, and
 * trial-runner/lab_state.c. */
#ifndef TRIAL_RUNNER_LAB_INTERNAL_H
#define TRIAL_RUNNER_LAB_INTERNAL_H

#include <stddef.h>

#include "base/error.h"
#include "strategy/cluster.h"

struct lab_config; /* trial-runner/lab.h */

/* One name. Fails: ST_INVALID. */
enum status lab_validate_name(const char *what, const char *name, struct error *err);

/* In a process that is the first of a new pid namespace: everything else that makes the lab. */
enum status lab_build(const struct lab_config *config, struct error *err);

/* Bridge, node namespaces, addresses and rates, in this process's own empty network and mount namespaces. */
enum status lab_network_build(const struct lab_config *config, struct error *err);

/* Give a node's NIC another rate, one way; in the head. It takes about 3 ms. */
enum status lab_network_change(size_t node, const char *name, enum direction direction, double gbit_per_s,
                               struct error *err);

/* Change rates as config->weather says from start_us on, for ever; ends only where that fails, with a message on
 * standard error. */
_Noreturn void lab_weather_play(const struct lab_config *config, double start_us);

#endif
