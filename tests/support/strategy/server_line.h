/* What a push, a pull or both cost as a line, by hand: tests hold the simulator against it. */
#ifndef TESTS_SUPPORT_STRATEGY_SERVER_LINE_H
#define TESTS_SUPPORT_STRATEGY_SERVER_LINE_H

#include "strategy/cost/line.h"

/* The two phases of a parameter server (MG-WFBP §4.3): all nodes with devices push M bytes to the one on `server`, each
 * once, having summed within itself; the server adds them up; then all pull M bytes. What a lone message takes,
 * exactly, where the nodes with devices and their links are alike and the server is on none of them. Otherwise the
 * longest latency and the slowest rate count together, which is never less than it takes. */
struct cost_line cost_line_push(const struct cost *cost, uint32_t server);
struct cost_line cost_line_pull(const struct cost *cost, uint32_t server);
struct cost_line cost_line_push_pull(const struct cost *cost, uint32_t server); /* one after the other */

#endif
