/* The lab's network: a bridge in the head, a veth pair a node, and rate limits at both of its ends.
 *
 * A node's sending is shaped inside its namespace, its receiving on the bridge's port. Token buckets of 128 KB with a
 * queue of 30 ms: with 64 KB an all-reduce of 1 MB took three times as long; what a full bucket lets pass unshaped
 * makes short traffic faster than the link. Behind the bucket what goes to each node, or comes from it, queues apart
 * (classes of a hierarchical token bucket, HTB, that take turns), as in a host with fair queues and a switch that
 * shares a port between its sources: in one queue, who has most bytes in it gets most of the NIC. A link slower than
 * the NIC is such a class with that rate. TCP is the same in every lab, whatever this machine has by default. With BBR
 * connections take long to find bandwidth that others leave: 26 MB by servers on 4 nodes of 2 devices, predicted 1.35
 * s, took 1.65 to 1.75 s with BBR, 1.47 to 1.67 with cubic and 1.43 to 1.46 with cubic and queues apart. Namespaces are
 * made here and named as `ip netns` does it; the rest goes to one `ip -batch` and one `tc -batch` a namespace. Cost:
 * 5 to 7 ms a node. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trial-runner/lab.h"
#include "trial-runner/lab_internal.h"

#define NETNS_DIR          "/run/netns"
#define BATCH_FILE         "/run/lab/batch"
#define CONGESTION_CONTROL "/proc/sys/net/ipv4/tcp_congestion_control"
#define BATCH_SAID         "/run/lab/batch.err"

enum { BURST_BYTES = 128 * 1024, TURN_BYTES = 64 * 1024, QUEUE_MS = 30 };
enum { QUEUES = 16 }; /* a power of two; of more nodes some share one */
enum address { SOURCE = 12, DESTINATION = 16 };
enum { PORT_NAME = 32 };

extern char **environ;

/* Fail with what a batch tool said. */
static enum status batch_failed(const char *tool, int wait_status, struct error *err) {
    char said[256] = "";
    FILE *file = fopen(BATCH_SAID, "r");
    size_t n = file ? fread(said, 1, sizeof said - 1, file) : 0;
    if (file)
        fclose(file);
    said[n] = 0;
    for (char *c = said; *c; c++)
        if (*c == '\n')
            *c = c[1] ? ' ' : 0;
    const char *advice = "";
    if (strstr(said, "qdisc kind is unknown") || strstr(said, "TC classifier not found"))
        advice = "; this kernel lacks traffic shaping: load the modules sch_tbf, sch_htb and cls_u32";
    return error_set(err, ST_ENVIRONMENT, "%s could not set up the lab (status %d): %s%s", tool,
                     WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1, said, advice);
}

static enum status batch_run(const char *tool, struct error *err) {
    const char *const argv[] = {tool, "-batch", BATCH_FILE, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, BATCH_SAID, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t pid;
    int failed = posix_spawnp(&pid, tool, &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return error_set(err, ST_ENVIRONMENT, "cannot start %s: %s; install iproute2 (Debian: apt install iproute2)",
                         tool, strerror(failed));
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return error_set(err, ST_ENVIRONMENT, "lost %s: %s", tool, strerror(errno));
    return status == 0 ? ST_OK : batch_failed(tool, status, err);
}

/* Start, fill and run the one batch file. */
static enum status batch_open(FILE **batch, struct error *err) {
    *batch = fopen(BATCH_FILE, "we");
    return *batch ? ST_OK : error_set(err, ST_ENVIRONMENT, "cannot write %s: %s", BATCH_FILE, strerror(errno));
}

static enum status batch_close(FILE *batch, const char *tool, struct error *err) {
    if (fclose(batch) != 0)
        return error_set(err, ST_ENVIRONMENT, "cannot write %s: %s", BATCH_FILE, strerror(errno));
    return batch_run(tool, err);
}

static double bits(double gbit_per_s) {
    return gbit_per_s * 1e9;
}

/* The bridge's end of a node's pair. */
static const char *port_name(size_t node, char name[PORT_NAME]) {
    snprintf(name, PORT_NAME, "port%zu", node + 1);
    return name;
}

/* `verb`: add, or change. */
static void write_token_bucket(FILE *tc, const char *verb, const char *device, double gbit_per_s) {
    fprintf(tc, "qdisc %s dev %s root handle 1: tbf rate %.0fbit burst %d latency %dms\n", verb, device,
            bits(gbit_per_s), BURST_BYTES, QUEUE_MS);
}

/* Queues behind a token bucket take turns by bytes. This queue passes `gbit_per_s` and holds QUEUE_MS of that rate. */
static void write_queue(FILE *tc, const char *device, size_t id, double gbit_per_s) {
    fprintf(tc, "class add dev %s parent 2: classid 2:%zx htb rate %.0fbit burst %d cburst %d quantum %d\n", device, id,
            bits(gbit_per_s), BURST_BYTES, BURST_BYTES, TURN_BYTES);
    fprintf(tc, "qdisc add dev %s parent 2:%zx bfifo limit %.0f\n", device, id,
            BURST_BYTES + bits(gbit_per_s) / 8 * QUEUE_MS / 1000);
}

/* A queue for each node that the NIC talks to: queue i % QUEUES is that of address 198.18.1.i, which stands at
 * `address` in an IPv4 header. They are as fast as weather may make the NIC. What belongs to no node, such as ARP, goes
 * first. */
static void write_queues(FILE *tc, const char *device, enum address address, size_t nodes, double gbit_per_s) {
    fprintf(tc, "qdisc add dev %s parent 1:1 handle 2: htb default 0\n", device);
    for (size_t i = 1; i <= nodes && i <= QUEUES; i++) {
        write_queue(tc, device, i, gbit_per_s);
        fprintf(tc, "filter add dev %s parent 2: protocol ip prio 2 u32 match u32 0x%zx 0x%x at %d flowid 2:%zx\n",
                device, i % QUEUES, QUEUES - 1, address, i);
    }
}

/* A link that is slower than the NIC has a queue of its own. */
static void write_slow_links(FILE *tc, const struct lab_config *config, size_t node) {
    for (size_t i = 0; i < config->n_links; i++) {
        const struct lab_link *link = &config->links[i];
        if (link->from != node || link->gbit_per_s >= config->nodes[node].gbit_per_s)
            continue;
        const size_t id = QUEUES + 1 + link->to;
        write_queue(tc, "eth0", id, link->gbit_per_s);
        fprintf(tc, "filter add dev eth0 parent 2: protocol ip prio 1 u32 match ip dst 198.18.1.%zu/32 flowid 2:%zx\n",
                link->to + 1, id);
    }
}

/* Make a network namespace under the node's name. This process is in it afterwards. */
static enum status namespace_make(const char *name, struct error *err) {
    char path[128];
    snprintf(path, sizeof path, NETNS_DIR "/%s", name);
    int fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (fd < 0 || close(fd) != 0 || unshare(CLONE_NEWNET) != 0 ||
        mount("/proc/self/ns/net", path, "none", MS_BIND, NULL) != 0)
        return error_set(err, ST_ENVIRONMENT, "cannot make the network namespace %s: %s", name, strerror(errno));
    return ST_OK;
}

static enum status namespace_enter(int fd, struct error *err) {
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
        return error_set(err, ST_ENVIRONMENT, "cannot enter a network namespace: %s", strerror(errno));
    return ST_OK;
}

static enum status namespaces_make(const struct lab_config *config, int head, struct error *err) {
    if (mkdir(NETNS_DIR, 0755) != 0)
        return error_set(err, ST_ENVIRONMENT, "cannot make %s: %s", NETNS_DIR, strerror(errno));
    enum status status = ST_OK;
    for (size_t i = 0; i < config->n && !status; i++)
        status = namespace_make(config->nodes[i].name, err);
    return !status ? namespace_enter(head, err) : status;
}

static enum status head_links(const struct lab_config *config, struct error *err) {
    FILE *ip;
    enum status status = batch_open(&ip, err);
    if (status)
        return status;
    fprintf(ip, "link set lo up\n"
                "link add br0 type bridge forward_delay 0 mcast_snooping 0\n"
                "addr add 198.18.0.1/15 dev br0\n"
                "link set br0 up\n");
    for (size_t i = 0; i < config->n; i++)
        fprintf(ip, "link add port%zu type veth peer name eth0 netns %s\nlink set port%zu master br0 up\n", i + 1,
                config->nodes[i].name, i + 1);
    return batch_close(ip, "ip", err);
}

static enum status head_rates(const struct lab_config *config, struct error *err) {
    FILE *tc;
    enum status status = batch_open(&tc, err);
    if (status)
        return status;
    for (size_t i = 0; i < config->n; i++) {
        char port[PORT_NAME];
        write_token_bucket(tc, "add", port_name(i, port), config->nodes[i].gbit_per_s);
        write_queues(tc, port, SOURCE, config->n, config->nodes[i].gbit_per_s);
    }
    return batch_close(tc, "tc", err);
}

static enum status node_links(size_t node, struct error *err) {
    FILE *ip;
    enum status status = batch_open(&ip, err);
    if (status)
        return status;
    fprintf(ip, "link set lo up\naddr add 198.18.1.%zu/15 dev eth0\nlink set eth0 up\n", node + 1);
    return batch_close(ip, "ip", err);
}

static enum status node_rates(const struct lab_config *config, size_t node, struct error *err) {
    FILE *tc;
    enum status status = batch_open(&tc, err);
    if (status)
        return status;
    write_token_bucket(tc, "add", "eth0", config->nodes[node].gbit_per_s);
    write_queues(tc, "eth0", DESTINATION, config->n, config->nodes[node].gbit_per_s);
    write_slow_links(tc, config, node);
    return batch_close(tc, "tc", err);
}

static enum status node_enter(const char *name, struct error *err) {
    char path[128];
    snprintf(path, sizeof path, NETNS_DIR "/%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    enum status status = namespace_enter(fd, err);
    if (fd >= 0)
        close(fd);
    return status;
}

/* Every lab has the same TCP, whatever this machine has by default: Linux's own default, or what every kernel has. */
static enum status choose_congestion_control(struct error *err) {
    static const char *const names[] = {"cubic", "reno"};
    bool chosen = false;
    for (size_t i = 0; i < 2 && !chosen; i++) {
        FILE *file = fopen(CONGESTION_CONTROL, "we");
        chosen = file && fputs(names[i], file) != EOF;
        if (file && fclose(file) != 0)
            chosen = false;
    }
    return chosen ? ST_OK : error_set(err, ST_ENVIRONMENT, "cannot write %s: %s", CONGESTION_CONTROL, strerror(errno));
}

static enum status node_build(const struct lab_config *config, size_t node, struct error *err) {
    enum status status = node_enter(config->nodes[node].name, err);
    if (!status)
        status = choose_congestion_control(err);
    if (!status)
        status = node_links(node, err);
    return !status ? node_rates(config, node, err) : status;
}

enum status lab_network_build(const struct lab_config *config, struct error *err) {
    int head = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    enum status status = namespaces_make(config, head, err);
    if (!status)
        status = head_links(config, err);
    if (!status)
        status = head_rates(config, err);
    for (size_t i = 0; i < config->n && !status; i++)
        status = node_build(config, i, err);
    if (!status)
        status = namespace_enter(head, err);
    if (head >= 0)
        close(head);
    return status;
}

static enum status change_here(const char *device, double gbit_per_s, struct error *err) {
    FILE *tc;
    enum status status = batch_open(&tc, err);
    if (status)
        return status;
    write_token_bucket(tc, "change", device, gbit_per_s);
    return batch_close(tc, "tc", err);
}

enum status lab_network_change(size_t node, const char *name, enum direction direction, double gbit_per_s,
                               struct error *err) {
    char port[PORT_NAME];
    if (direction == DIRECTION_IN)
        return change_here(port_name(node, port), gbit_per_s, err);
    int head = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    enum status status = node_enter(name, err);
    if (!status)
        status = change_here("eth0", gbit_per_s, err);
    if (!status)
        status = namespace_enter(head, err);
    if (head >= 0)
        close(head);
    return status;
}
