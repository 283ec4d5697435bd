/* What strategy/cluster.c and strategy/cluster_variability.c share. */
#ifndef STRATEGY_CLUSTER_INTERNAL_H
#define STRATEGY_CLUSTER_INTERNAL_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/json.h"

struct cluster; /* strategy/cluster.h */
struct variability;

/* Read the member of `root`, if it is there; nodes and their NICs have been read. Arrays are taken from the cluster's
 * arena. Fails: ST_INVALID, ST_NO_MEMORY. */
enum status variability_read(const struct json_at *root, struct cluster *cluster, struct variability *out,
                             struct error *err);

/* Add the member, unless it was not given; false when memory is out. */
bool variability_write(const struct cluster *cluster, const struct variability *variability, cJSON *root);

#endif
