/* Transfers on their way, and when the next one arrives.
 *
 * Transfers that use the same resources form a class; within a class all go at one rate, so a class needs only a
 * virtual clock, which runs at that rate, and a heap of the readings at which its transfers end. Rates follow one of
 * two rules, chosen by `flows`:
 *   NULL       one class, its transfers share 1 unit a microsecond equally: enough when all-reduces are alone
 *   otherwise  max-min fair (simulator/flows.h), worked out again only when the number of transfers in a class changed
 * All memory is the caller's. Add and pop are O(log transfers of the class), finding the next O(active classes), new
 * rates as flows_fill. */
#ifndef SIMULATOR_NETWORK_H
#define SIMULATOR_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "simulator/flows.h"

struct transfer {
    double end;      /* reading of its class's clock */
    double began_us; /* the caller's own */
    uint32_t message, weight;
};

struct network_class {
    double clock, rate, since_us; /* clock read `clock` at since_us and runs at rate */
    double next_us;               /* when its first transfer ends, at this rate */
    double weight_then;           /* weight when the rates were last worked out, */
    uint64_t filled;              /* which was this time */
    struct transfer *heap;        /* the caller's, large enough for all that are ever in it at once */
    uint32_t n, place;            /* transfers; place in active[] */
};

struct network {
    const struct flows *flows;
    struct network_class *classes;
    uint32_t n_classes, n_active;
    uint32_t *active, *order; /* n_classes each; order is scratch of flows_fill */
    double *weight, *rate;    /* n_classes each */
    double *scratch;          /* 2 * flows->n_resources, for the second rule */
    uint64_t filled;          /* how often rates were worked out */
    uint32_t n_filled;        /* classes that had a part in the last time */
    bool changed;
};

/* Empty; the caller has set flows, classes[].heap and the arrays. */
void network_clear(struct network *network);

/* `weight` equal transfers that travel together, `amount` each (bytes, or under the first rule microseconds). */
void network_add(struct network *network, uint32_t class, uint32_t weight, double amount, uint32_t message,
                 double began_us, double now_us);

/* When the next transfer ends; INFINITY when there is none. */
double network_next_us(struct network *network, double now_us);

/* Take one transfer that ends by `until_us`; false when there is none. */
bool network_pop(struct network *network, double until_us, double now_us, uint32_t *class, struct transfer *out);

#endif
