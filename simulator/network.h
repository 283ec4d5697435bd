/* Transfers on their way, and when the next one arrives.
 *
 * Transfers that use the same resources form a class. A class has a virtual clock, and a heap of its transfers by the
 * reading of that clock at which they end. The transfers of a class go side by side, all at its rate. If the class is a
 * connection they go one after another, in the order in which they were added. Rates follow one of two rules, chosen by
 * `flows`:
 *   NULL       there is one class, and its transfers share 1 unit a microsecond equally: enough for all-reduces alone
 *   otherwise  rates are max-min fair (simulator/flows.h), and only classes whose rate changed are touched. The first
 *              n_ports resources may be token buckets: a port saves what it does not use, up to `burst`. A transfer
 *              takes at once what the ports on its way have saved: on a connection when its turn comes, else when it
 *              starts. Of those that start together the first takes all. Ports begin with nothing saved, so over any
 *              time from the start a port lets through no more than its rate.
 *
 * One more class may have no resources at all: the transfers of `timed` are times, and each passes at `timed_pace`.
 *
 * All memory is the caller's. Add and pop are O(log transfers of the class + log active classes), finding the next is
 * O(1), new rates are as flows_settle and O(log active classes) for each that changed. */
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
    uint32_t turn; /* ours: of equal ends, which is first */
};

struct network_class {
    double clock, rate, since_us; /* clock read `clock` at since_us and runs at rate */
    double end, last;             /* readings at which heap[0] ends, and the one that was added last */
    double load;                  /* its rate times its weight, as counted in network_port.used */
    struct transfer *heap;        /* the caller's, large enough for all that are ever in it at once */
    uint32_t n, place;            /* transfers; place in active[], if any */
    bool connection;              /* the caller's */
};

/* A class with transfers, and when its first one ends at the present rate. */
struct network_active {
    double next_us;
    uint32_t class;
};

struct network_port {
    double saved, used, since_us; /* saved `saved` by since_us, and is used at the rate `used` */
    double marked;                /* what it had saved at the last network_spends */
};

struct network {
    struct flows *flows;
    struct network_port *ports; /* n_ports */
    uint32_t n_ports;
    double burst; /* 0: nothing is ever saved */
    struct network_class *classes;
    struct network_active *active; /* n_classes of room: a heap, the next first */
    uint32_t n_classes, n_active;
    double weight, pace; /* for the first rule: of all transfers, and what they share */
    uint32_t timed;      /* the caller's: a class, or UINT32_MAX */
    double timed_pace;
    uint32_t turns;
    uint64_t new_rates; /* how often a class got another rate, under the second rule */
    bool changed;
};

/* Empty, with both paces 1; the caller has set flows (cleared), ports, n_ports, burst, n_classes, timed,
 * classes[].heap and .connection, and active. */
void network_clear(struct network *network);

/* `transfer`, weight of them that travel together, `amount` >= 0 each (bytes, or under the first rule microseconds). */
void network_add(struct network *network, uint32_t class, double amount, struct transfer transfer, double now_us);

/* From now on: what transfers share under the first rule, how fast timed ones pass, what a resource lets through. */
void network_set_pace(struct network *network, double pace);
void network_set_timed_pace(struct network *network, double pace, double now_us);
void network_set_capacity(struct network *network, uint32_t resource, double capacity, double now_us);

/* When the next transfer ends; INFINITY when there is none. */
double network_next_us(struct network *network, double now_us);

/* Take one transfer that ends by `until_us`; false when there is none. */
bool network_pop(struct network *network, double until_us, double now_us, struct transfer *out);

/* Some port has saved less than at the call before: at this pace it will have nothing. O(ports). */
bool network_spends(struct network *network, double now_us);

#endif
