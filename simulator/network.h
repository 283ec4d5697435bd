/* Transfers on their way, and when the next one arrives.
 *
 * Transfers that use the same resources form a class; within a class all go at one rate, so a class needs only a
 * virtual clock, which runs at that rate, and a heap of the readings at which its transfers end. Rates follow one of
 * two rules, chosen by `flows`:
 *   NULL       one class, its transfers share 1 unit a microsecond equally: enough when all-reduces are alone
 *   otherwise  max-min fair (simulator/flows.h), and only classes whose rate changed are touched
 * All memory is the caller's. Add and pop are O(log transfers of the class + log active classes), finding the next
 * O(1), new rates as flows_settle and O(log active classes) for each that changed. */
#ifndef SIMULATOR_NETWORK_H
#define SIMULATOR_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "simulator/flows.h"

struct transfer {
    double end;      /* reading of its class's clock */
    double began_us; /* the caller's own, as the next three */
    uint32_t message;
    uint16_t chain, kind;
    uint32_t weight;
};

struct network_class {
    double clock, rate, since_us; /* clock read `clock` at since_us and runs at rate */
    double end;                   /* reading at which heap[0] ends */
    struct transfer *heap;        /* the caller's, large enough for all that are ever in it at once */
    uint32_t n, place;            /* transfers; place in active[], if any */
};

/* A class with transfers, and when its first one ends at the present rate. */
struct network_active {
    double next_us;
    uint32_t class;
};

struct network {
    struct flows *flows;
    struct network_class *classes;
    struct network_active *active; /* n_classes of room: a heap, the next first */
    uint32_t n_classes, n_active;
    double weight; /* of all transfers, for the first rule */
    bool changed;
};

/* Empty; the caller has set flows (cleared), n_classes, classes[].heap and active. */
void network_clear(struct network *network);

/* `transfer`, weight of them that travel together, `amount` each (bytes, or under the first rule microseconds). */
void network_add(struct network *network, uint32_t class, double amount, struct transfer transfer, double now_us);

/* When the next transfer ends; INFINITY when there is none. */
double network_next_us(struct network *network, double now_us);

/* Take one transfer that ends by `until_us`; false when there is none. */
bool network_pop(struct network *network, double until_us, double now_us, struct transfer *out);

#endif
