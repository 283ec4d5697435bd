/* Keeps the lease of a service's trial while the trial runs here: a thread renews it at a third of its length, reports
 * the times measured so far, and says when the run should end.
 * Units: microseconds (_us). */
#ifndef CLI_KEEPER_H
#define CLI_KEEPER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/remote.h"

/* X(constant, words): why a run should end, or need not. */
#define KEEPER_TABLE(X)                                                                                                \
    X(KEEPER_GO_ON, "it runs")                                                                                         \
    X(KEEPER_STOP, "the service finds it too slow to matter")                                                          \
    X(KEEPER_LOST, "it is no longer ours")                                                                             \
    X(KEEPER_INTERRUPTED, "this agent was asked to end")

enum keeper_verdict {
#define X(constant, words) constant,
    KEEPER_TABLE(X)
#undef X
};
const char *keeper_label(enum keeper_verdict verdict);

struct keeper_options {
    const struct remote_options *remote;
    const char *session, *client; /* whose trial it is; borrowed */
    uint64_t number, attempt;
    double lease_us;
    const atomic_int *interrupted;
};

struct keeper; /* opaque */

/* Fails: as remote_open, ST_ENVIRONMENT (no thread). */
enum status keeper_start(const struct keeper_options *options, struct keeper **out, struct error *err);

/* Non-zero from when the run should end. */
const atomic_int *keeper_flag(const struct keeper *keeper);

/* One more iteration was measured. Any thread. */
void keeper_add(struct keeper *keeper, double time_us);

/* End the thread, which takes a second at most, and free the keeper. */
enum keeper_verdict keeper_stop(struct keeper *keeper);

#endif
