/* A cluster description under construction, from what several files say.
 *
 * Rates that a file gives exactly and rates that were worked out from something else are kept apart, so that notes can
 * say which were worked out. 0: not known.
 * Threads: one at a time. */
#ifndef INTEROP_IMPORT_CLUSTER_DRAFT_H
#define INTEROP_IMPORT_CLUSTER_DRAFT_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "interop/import/notes.h"
#include "interop/import/settings.h"
#include "interop/import/source.h"
#include "strategy/cluster.h"

struct draft_node {
    const char *name, *device; /* device NULL: not known */
    uint64_t devices;          /* 0: not known */
    double nic_gbit_per_s;
    bool listed; /* by a file that describes a cluster; else it occurs only in the log of a measurement */
};

struct draft_nodes {
    struct draft_node *items;
    size_t n, room;
};

struct draft_measurements {
    struct measurement *items;
    size_t n, room;
};

struct cluster_draft {
    struct arena *arena;  /* the caller's; owns the texts */
    struct cluster *base; /* a description to start from, or NULL */
    struct draft_nodes nodes;
    struct draft_measurements measurements;
    uint64_t devices_a_node;               /* a topology's: of each node that does not say */
    double device_link_gbyte_per_s;        /* a topology's, worked out from its links */
    double nic_gbit_per_s, nic_latency_us; /* measured between two nodes */
    double bus_gbyte_per_s;                /* the largest bus bandwidth of an all-reduce */
    uint64_t bus_devices;                  /* and how many devices took part */
};

void cluster_draft_init(struct cluster_draft *draft, struct arena *arena);

/* The node of that name, added at the end when there is none; NULL when memory is out. O(nodes). */
struct draft_node *cluster_draft_node(struct cluster_draft *draft, const char *name, size_t n_name);

/* Add the nodes of one file. DRAFT_LISTED, of a file that lists nodes: its figures replace those that are there.
 * DRAFT_MET, of a measurement's log: devices and their kind only fill gaps. False when memory is out. */
enum draft_origin { DRAFT_LISTED, DRAFT_MET };
bool cluster_draft_take(struct cluster_draft *draft, const struct draft_nodes *nodes, enum draft_origin origin);

/* Add a measurement of an all-reduce of algorithm auto; false when memory is out. */
bool cluster_draft_measurement(struct cluster_draft *draft, const struct measurement *measured);

/* The same of a time without an interval. */
bool cluster_draft_all_reduce(struct cluster_draft *draft, uint64_t devices, uint64_t bytes, double time_us);

/* The description, checked as every cluster is; *out is the caller's. Notes say what was worked out. Fails: ST_USAGE
 * (names the option for a figure that no file has), ST_INVALID, ST_NO_MEMORY. */
enum status cluster_draft_finish(struct cluster_draft *draft, const struct source *first,
                                 const struct import_settings *settings, struct notes *notes, cJSON **out,
                                 struct error *err);
void cluster_draft_release(struct cluster_draft *draft);

#endif
