/* PACE's time-slotted form of the same problem (equations 3-9), for comparison with the paper.
 *
 * Time is cut into slots of one length, operators and messages take whole numbers of them (equation 3: ceil(g_i)), and
 * in every slot at most one message is on the network. Whole releases and works make Jackson's rule switch only at
 * whole times, so its schedule is an x_i(t): a slice of message i from s to e, in slots, is x_i(t) = 1 for t = s + 1 ..
 * e.
 *
 * As printed, (4) and (7) disagree by a slot: x_i(t) = 1 is allowed at t = z_u, so slots begin at their number, but
 * y_i is the last t with x_i(t) = 1, so they end at it; a message would lie in the last slot of the operator that makes
 * it. Here slot t ends at t and starts after z_u. SLOTS_AS_PRINTED keeps the program to its letter: every release a
 * slot earlier.
 *
 * What a slot costs: rounding up makes every operator and message longer, so the schedule is never shorter than the
 * exact one and, with n messages and m operators, at most n + m slots longer.
 * Threads: a const struct dag may be shared. */
#ifndef TESTS_SUPPORT_STRATEGY_SLOTS_H
#define TESTS_SUPPORT_STRATEGY_SLOTS_H

#include "tests/support/strategy/dag.h"

enum slots_reading { SLOTS_CONSISTENT, SLOTS_AS_PRINTED };

struct slots {
    double length; /* of a slot */
    uint32_t n;
    struct machine_job *jobs;     /* n: release, work and tail of each message, in slots */
    struct machine_slice *slices; /* in slots */
    size_t n_slices;
    double path, makespan; /* longest computation path, best makespan, in slots */
};

/* Round the graph and the messages' times work[dag->n_messages] up to slots and solve it. The arrays live in `arena`.
 * Fails: ST_INVALID (the graph; length not above 0), ST_NO_MEMORY. O(operators + edges + messages log messages). */
enum status slots_solve(const struct dag *dag, const double *work, double length, enum slots_reading reading,
                        struct arena *arena, struct slots *out, struct error *err);

#endif
