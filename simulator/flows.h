/* Max-min fair rates of flows that share capacities (Bertsekas and Gallager, Data Networks, 6.5.2), kept up to date
 * while flows come and go.
 *
 * Flows that use the same resources are one class; `weight` counts them (a weight of 3 is three equal flows). A class
 * may stand for several such sets of flows, which share only some of the class's resources: `times` says how many of
 * the sets go through a resource. Rates are fair when no flow can go faster without slowing one that is not faster than
 * it: every flow then has a full resource on which no other flow is faster. Units: any, the same for capacities and
 * rates.
 *
 * Use: point the struct at its memory, flows_clear, then flows_add as often as wanted and flows_settle; `changed` then
 * lists the classes that have a new rate. */
#ifndef SIMULATOR_FLOWS_H
#define SIMULATOR_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

struct flow_class {
    double rate;            /* of one flow; 0 while there is none */
    double weight, settled; /* flows now, and when rates were last worked out */
    bool touched, changed;  /* is in touched[], in changed[] */
};

struct flow_resource {
    double level; /* rate of its fastest flows where it is full, INFINITY where it is not */
    uint32_t first_member, n_members;
    bool waits; /* is in queue[] */
};

struct flow_use {
    double times;
    uint32_t place; /* in members[], while the class has flows */
};

struct flow_member {
    double load; /* flows of the class that go through the resource */
    uint32_t class, use;
};

struct flows {
    uint32_t n_classes, n_resources;
    double *capacity;      /* n_resources, each > 0 */
    const uint32_t *first; /* n_classes + 1: class c uses uses[first[c] .. first[c + 1]), at least one */
    const uint32_t *uses;  /* no resource twice in a class */
    /* The caller's memory. use[].times is the caller's to set before flows_clear; the rest is ours. */
    struct flow_use *use;           /* by use */
    struct flow_member *members;    /* by use: resource by resource, the classes that have flows there */
    struct flow_class *class;       /* n_classes */
    struct flow_resource *resource; /* n_resources */
    uint32_t *touched, *changed;    /* n_classes each */
    uint32_t *queue;                /* n_resources: a ring of the resources that wait for their turn */
    double *scratch;                /* 2 * n_classes */
    uint32_t n_touched, n_changed, n_queue, head;
};

/* No flows. O(classes + resources + uses). */
void flows_clear(struct flows *flows);

/* `weight` flows more in the class, or fewer. Rates are as before until flows_settle. */
void flows_add(struct flows *flows, uint32_t class, double weight);

/* Give a resource another capacity > 0. Rates are as before until flows_settle. */
void flows_set_capacity(struct flows *flows, uint32_t resource, double capacity);

/* Work out class[].rate; changed[0 .. n_changed) are the classes with flows whose rates differ from those at the call
 * before. Cost: as far as the change reaches, O(members) a resource; nothing when weights are what they were. */
void flows_settle(struct flows *flows);

#endif
