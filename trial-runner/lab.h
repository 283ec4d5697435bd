/* A cluster on one machine: a network namespace and a host name a node, links at the cluster's rates.
 *
 * Everything of a lab lives inside one pid namespace, one mount namespace and network namespaces that only these hold.
 * When the first process of the pid namespace dies, the kernel kills all others and takes the interfaces, namespaces
 * and temporary files with them. A lab made by lab_run dies with its caller, even by SIGKILL; one made by lab_up stays
 * until lab_down. No frame can leave: no interface outside is connected to the lab's bridge. Inside: /run is the lab's
 * own, TMPDIR too, /etc/hosts knows the nodes' names, `ip netns` lists them, and programs run in the head, 198.18.0.1,
 * which reaches every node and is not shaped. Node i (from 1) is 198.18.1.i. Needs root and iproute2. NIC latency
 * cannot be emulated: the kernel may lack netem. */
#ifndef TRIAL_RUNNER_LAB_H
#define TRIAL_RUNNER_LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"
#include "strategy/cluster.h"
#include "trial-runner/process.h"

#define LAB_SUBNET "198.18.0.0/15"
#define LAB_HEAD   "head"
#define LAB_STATE  "/run/syncopate" /* state files of the labs that lab_up made, on the host */
#define LAB_AGENT  "/run/lab/agent" /* in the lab: a program like rsh, `agent NODE COMMAND...` */
#define LAB_TMPDIR "/run/tmp"       /* in the lab: the head's TMPDIR; each node's own is a folder in it */

/* In the lab: an environment variable, when its weather began by clock_now_us. */
#define LAB_WEATHER_BEGAN "SYNCOPATE_WEATHER_BEGAN_US"

enum { LAB_MAX_NODES = 250 };

struct lab_node {
    const char *name;  /* letters, digits and '-', at most 63, unique */
    double gbit_per_s; /* of its NIC, in each direction */
};

/* A slower link from one node to another, in this direction only. A rate above the NIC's changes nothing. */
struct lab_link {
    size_t from, to; /* node indices */
    double gbit_per_s;
};

struct lab_config {
    const char *name; /* like a node's; only lab_up uses it */
    size_t n;
    const struct lab_node *nodes;
    size_t n_links;
    const struct lab_link *links;
    /* Only lab_run: rates change as the weather of this cluster says, which has the same nodes, from the moment at
     * which the program starts. NULL: they stay. */
    const struct cluster *weather;
    uint64_t seed;
};

/* Whether labs work here: makes a small lab and removes it. ST_ENVIRONMENT says what is missing and what to do. */
enum status lab_check(struct error *err);

/* Names, rates and the number of nodes. Fails: ST_INVALID. */
enum status lab_validate(const struct lab_config *config, struct error *err);

/* Make a lab, run the program in its head as process_run does, and remove the lab. options->hook must be NULL.
 * Fails: ST_INVALID (a name, a rate, too many nodes), ST_ENVIRONMENT (no permission, no iproute2), as process_run. */
enum status lab_run(const struct lab_config *config, const struct process_options *options, struct process_result *out,
                    struct error *err);

/* Does a lab hide what this path names on the host? True in /run and /dev/shm, also through symbolic links. A path
 * that is not there is judged by its text. */
bool lab_hides(const char *path);

struct lab_info {
    const char *name;
    pid_t pid; /* of its first process */
    size_t n;
    const char *const *nodes;
};

/* Make a lab that stays. Fails: ST_CONFLICT when one of that name is up, as lab_run. */
enum status lab_up(const struct lab_config *config, struct error *err);

/* End the lab; nothing of it is left on return. Fails: ST_NOT_FOUND, ST_TIMEOUT. */
enum status lab_down(const char *name, struct error *err);

/* The labs that are up, in the arena. State files without a lab are removed. */
enum status lab_list(struct arena *arena, struct lab_info **out, size_t *n, struct error *err);

/* Run a program in the lab `name`, on a node or in the head (node NULL), with this process's own standard streams.
 * *exit_code as a shell gives it: 128 + signal for a killed program. Fails: ST_NOT_FOUND (lab, node, program),
 * ST_ENVIRONMENT. */
enum status lab_exec(const char *name, const char *node, const char *const *argv, int *exit_code, struct error *err);

#endif
