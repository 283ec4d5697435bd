/* AutoSync's predefined model (section 3.1.1, equation 2): T = max(T_comp, T_sync), with no overlap and no order.
 *
 * A variable v under a parameter server on node j costs, with w worker nodes,
 *   sum over workers k on other machines of  bytes(v) / b(j,k) * r(k)  +  r(k) * phi,  plus delta,
 * r(k) being the pushes of worker k: one with local reduction, one a device without. (The paper's printed exponent of r
 * says the opposite. We follow its text: "with the number of replicas when" there is no hierarchical reduction.) phi is
 * runtime.push_us, delta runtime.message_us, b(j,k) the narrower of the two NICs and an overridden link.
 * The paper bounds T_sync of servers by the slowest transmission or the total; we take the largest total of any NIC,
 * over servers (all that they receive) and workers (all that they send). All-reduces, whose formulas the paper leaves
 * to its supplement, add up their startup and transfer times (strategy/cost/all_reduce.h). T_sync is the sum of both
 * parts. */
#ifndef SIMULATOR_CLOSED_FORM_H
#define SIMULATOR_CLOSED_FORM_H

#include "base/error.h"
#include "simulator/timeline.h"
#include "strategy/cost/cost.h"
#include "strategy/plan.h"

/* Fills iteration_us, compute_us, exposed_us, samples_per_s, messages, comm_busy_us (T_sync) and converged (true) of
 * *out; the rest is 0. O(messages * nodes + messages * links). Fails: ST_NO_MEMORY. */
enum status closed_form_run(const struct plan *plan, const struct cost *cost, struct prediction *out,
                            struct error *err);

#endif
