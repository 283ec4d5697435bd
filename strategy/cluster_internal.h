/* What strategy/cluster.c, cluster_variability.c and cluster_background.c share. */
#ifndef STRATEGY_CLUSTER_INTERNAL_H
#define STRATEGY_CLUSTER_INTERNAL_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/json.h"

struct cluster; /* strategy/cluster.h */
struct variability;
struct background;

/* Read the member of `root`, if it is there; nodes and their NICs have been read. Arrays are taken from the cluster's
 * arena. Fails: ST_INVALID, ST_NO_MEMORY. */
enum status variability_read(const struct json_at *root, struct cluster *cluster, struct variability *out,
                             struct error *err);

/* Add the member, unless it was not given; false when memory is out. */
bool variability_write(const struct cluster *cluster, const struct variability *variability, cJSON *root);

/* The same for the member "background" of a variability. */
enum status background_read(const struct json_at *root, struct cluster *cluster, struct background *out,
                            struct error *err);
bool background_write(const struct cluster *cluster, const struct background *background, cJSON *root);

/* What a rate in weather may be, in 10^9 bits a second: more than nothing, and no more than the node's NIC has. Fails:
 * ST_INVALID at the place. */
enum status weather_rate_read(const struct json_at *at, const struct cluster *cluster, uint32_t node, double *out,
                              struct error *err);

/* Of all nodes the one with the slowest NIC: what may be any node's rate is at most this one's. */
uint32_t cluster_slowest_nic(const struct cluster *cluster);

/* The member `key`, a node's name. Fails: ST_INVALID at the place. */
enum status cluster_node_read(const struct json_at *at, const char *key, const struct cluster *cluster, uint32_t *out,
                              struct error *err);

#endif
