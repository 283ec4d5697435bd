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

/* Whether a name may stand in the arguments of mpirun, srun and ssh: letters, digits, '.', '-' and '_', the first a
 * letter or a digit, at most 255, and perhaps a user of such a name and '@' before it. What begins with '-' would be an
 * option, and other characters mean something in a list of hosts or to a shell. Names of nodes are free text and come
 * from whoever described the cluster. Fails: ST_INVALID. */
enum status hosts_check_name(const char *name, struct error *err);

/* The first word of each line of a host file, "#" beginning a comment: (*out)[i] is where node i of n is, in the
 * arena. What the file says of slots does not count, because how many ranks a node gets follows from the plan.
 * Fails: ST_NOT_FOUND, ST_INVALID (not n hosts, or a word that is no host's name), ST_NO_MEMORY. */
enum status hosts_read_file(const char *path, uint32_t n, struct arena *arena, const char ***out, struct error *err);

/* How many slots all hosts have together. */
unsigned hosts_ranks(size_t n, const struct host *hosts);

#endif
