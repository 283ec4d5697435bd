/* Transfers of whole updates and models between nodes, over NICs whose rates may change.
 *
 * Without a scheduler all that are on their way share the NICs max-min fairly (simulator/flows.h), as connections do.
 * No two connections get the same where they meet, so each transfer has a weight, drawn from its turn, between 1 /
 * spread and spread. With spread 1 all are equal, and workers that begin together stay together for ever.
 *
 * With a scheduler they go in turn: by rising turn each takes the whole rate that those before it leave on its way
 * (MLfabric §5.1.1; strategy/updates/calendar.h is the same for times to come).
 *
 * A transfer within a node passes at the node's own rate, beside all others. Units: bytes, microseconds. */
#ifndef SIMULATOR_WIRE_H
#define SIMULATOR_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "simulator/flows.h"

struct wire_transfer {
    uint64_t turn;
    uint32_t from, to;
    double left;         /* bytes */
    double rate, weight; /* ours */
    uint32_t kind, what; /* the caller's own, as the next three */
    uint64_t version;
    double bytes, began_us;
};

/* In a lab of four nodes a server that sends a model to all, and gets an update from all, takes 244 ms a round where
 * equal shares take 270 and turns 204 (mlp-small, staleness 0). This spread gives 243. */
#define WIRE_SPREAD_OF_CONNECTIONS 2.5

struct wire {
    bool fair;
    double spread;
    uint32_t n_nodes;
    double *rates;       /* 2 * n_nodes, at 2 * node + enum direction */
    const double *local; /* n_nodes, the caller's; INFINITY: no time */
    double *free;        /* 2 * n_nodes: scratch */
    struct flows flows;  /* fair: class n_nodes * from + to */
    uint32_t *first, *uses;
    struct wire_transfer *list; /* n, by rising turn */
    size_t n, room;
    double now_us;
    bool changed; /* rates are to be worked out again */
};

/* Nothing on its way. `rates` as above, each > 0; spread >= 1. Fails: ST_NO_MEMORY. Release with wire_release. */
enum status wire_init(struct wire *wire, uint32_t n_nodes, bool fair, double spread, const double *rates,
                      const double *local, struct error *err);
void wire_release(struct wire *wire);

/* Another transfer, from now on. Equal turns go in the order in which they were added. Fails: ST_NO_MEMORY. */
enum status wire_add(struct wire *wire, struct wire_transfer transfer, struct error *err);

/* From now on a port has another rate > 0. */
void wire_set_rate(struct wire *wire, uint32_t port, double rate);

/* When the next transfer ends; INFINITY where there is none. O(transfers). */
double wire_next_us(struct wire *wire);

/* Go on to `us`, which is not after wire_next_us. */
void wire_go_on(struct wire *wire, double us);

/* Take a transfer that has ended by now. */
bool wire_pop(struct wire *wire, struct wire_transfer *out);

#endif
