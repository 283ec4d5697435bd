/* Where ranks go: hosts in the order of a cluster's nodes, and how many ranks each gets. */
#ifndef TRIAL_RUNNER_HOSTS_H
#define TRIAL_RUNNER_HOSTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct host {
    const char *name;
    unsigned slots; /* processes there, at least 1 */
};

/* The first word of each line of a host file, "#" beginning a comment: (*out)[i] is where node i of n is, in the
 * arena. What the file says of slots does not count, because how many ranks a node gets follows from the plan.
 * Fails: ST_NOT_FOUND, ST_INVALID (not n hosts), ST_NO_MEMORY. */
enum status hosts_read_file(const char *path, uint32_t n, struct arena *arena, const char ***out, struct error *err);

/* All slots together. */
unsigned hosts_ranks(size_t n, const struct host *hosts);

#endif
