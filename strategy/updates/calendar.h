/* The free rates of NICs over time to come, and transfers that reserve them (MLfabric §5.1.1, figure 4).
 *
 * Every node has a port out and a port in; the network between them is never full. A port's free rate is a step
 * function of time. A transfer takes, at every time, the whole free rate of its way (the smaller of the two ports),
 * from when it is available until its bytes are through: so transfers take turns where they meet, and the rest of a
 * faster port stays free for others. A transfer within a node takes no time and no port.
 *
 * Reservations since a mark can be taken back, the last first. Units: bytes, microseconds, bytes per microsecond.
 * Memory that runs out is noted in no_memory; what was asked is then not reserved. */
#ifndef STRATEGY_UPDATES_CALENDAR_H
#define STRATEGY_UPDATES_CALENDAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* From from_us on, until the next step, `rate` is free. */
struct calendar_step {
    double from_us, rate;
};

/* The first step's rate is above 0 (but where it is the only one); before it nothing is free. The last never ends. */
struct calendar_port {
    struct calendar_step *steps; /* malloc'd */
    size_t n, room;
};

/* What a port was before a reservation: its steps are saved[first .. first + n). */
struct calendar_undo {
    uint32_t port;
    size_t first, n;
};

struct calendar {
    uint32_t n_nodes;
    double now_us;
    struct calendar_port *ports;                 /* at 2 * node + enum direction (strategy/cluster.h) */
    struct calendar_step *taken, *built, *saved; /* of the reservation at hand; of all that may be taken back */
    size_t taken_room, built_room, saved_room, n_saved;
    struct calendar_undo *undo;
    size_t n_undo, undo_room;
    bool undoes; /* keep what a reservation changes */
    bool no_memory;
};

/* Every port is free at its rate above 0 from now_us on; rates at 2 * node + direction. Fails: ST_NO_MEMORY. */
enum status calendar_init(struct calendar *out, uint32_t n_nodes, const double *rates, double now_us,
                          struct error *err);
void calendar_release(struct calendar *calendar);

/* When a transfer would end if it was reserved now: t_en of figure 4b. O(steps of the two ports). */
double calendar_end_us(const struct calendar *calendar, uint32_t from, uint32_t to, double bytes, double available_us);

/* Reserve it: NetUp of figure 4c. Returns its end. */
double calendar_reserve(struct calendar *calendar, uint32_t from, uint32_t to, double bytes, double available_us);

/* From the first mark on reservations can be taken back to a mark, again and again. */
size_t calendar_mark(struct calendar *calendar);
void calendar_back_to(struct calendar *calendar, size_t mark);

#endif
