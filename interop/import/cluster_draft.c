/* A figure that no file tells must be given by an option, and the error names that option. Only two figures are worked
 * out:
 *   - A NIC's rate, from the bus bandwidth of an all-reduce. In a ring over several nodes each node sends into the
 *     network what one device sends to the next. (nccl-tests, doc/PERFORMANCE.md: bus bandwidth is what moves through
 *     the slowest link.) So the largest bus bandwidth is what the NICs of a node reached together.
 *   - The link between a node's devices: at least that bus bandwidth, since the same bytes went through it.
 * The NIC of a lone node is not asked for: nothing crosses it, and no prediction depends on it. A cluster file must
 * have a rate, so it gets one, and a note says so.
 *
 * Cost: O(nodes^2 + measurements log measurements); a cluster has a few thousand nodes at most. */
#include "interop/import/cluster_draft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

static const double LONE_NIC_GBIT_PER_S = 1; /* nothing crosses it */

void cluster_draft_init(struct cluster_draft *draft, struct arena *arena) {
    *draft = (struct cluster_draft){.arena = arena};
}

struct draft_node *cluster_draft_node(struct cluster_draft *draft, const char *name, size_t n_name) {
    struct draft_nodes *nodes = &draft->nodes;
    for (size_t i = nodes->n; i--;)
        if (!strncmp(nodes->items[i].name, name, n_name) && !nodes->items[i].name[n_name])
            return &nodes->items[i];
    const char *copy = arena_copy(draft->arena, name, n_name);
    if (!copy || !GROW(&nodes->items, &nodes->room, nodes->n + 1))
        return NULL;
    nodes->items[nodes->n] = (struct draft_node){.name = copy};
    return &nodes->items[nodes->n++];
}

bool cluster_draft_take(struct cluster_draft *draft, const struct draft_nodes *nodes, enum draft_origin origin) {
    for (size_t i = 0; i < nodes->n; i++) {
        const struct draft_node *from = &nodes->items[i];
        struct draft_node *to = cluster_draft_node(draft, from->name, strlen(from->name));
        if (!to)
            return false;
        if (from->devices && (origin == DRAFT_LISTED || !to->devices))
            to->devices = from->devices;
        if (from->device && (origin == DRAFT_LISTED || !to->device))
            to->device = from->device;
        if (from->nic_gbit_per_s > 0)
            to->nic_gbit_per_s = from->nic_gbit_per_s;
        to->listed = to->listed || origin == DRAFT_LISTED;
    }
    return true;
}

bool cluster_draft_measurement(struct cluster_draft *draft, const struct measurement *measured) {
    struct draft_measurements *all = &draft->measurements;
    if (!GROW(&all->items, &all->room, all->n + 1))
        return false;
    all->items[all->n++] = *measured;
    return true;
}

bool cluster_draft_all_reduce(struct cluster_draft *draft, uint64_t devices, uint64_t bytes, double time_us) {
    const struct measurement m = {.operation = OPERATION_all_reduce,
                                  .algorithm = ALGORITHM_auto,
                                  .devices = (uint32_t)devices,
                                  .bytes = bytes,
                                  .time_us = time_us};
    return cluster_draft_measurement(draft, &m);
}

static int compare_times(const void *a, const void *b) {
    const struct measurement *x = a, *y = b;
    if (x->devices != y->devices)
        return x->devices < y->devices ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return (x->time_us > y->time_us) - (x->time_us < y->time_us);
}

/* Of measurements that differ only in their times, keep the median. */
static void keep_medians(struct draft_measurements *all) {
    size_t kept = 0;
    if (all->n)
        qsort(all->items, all->n, sizeof *all->items, compare_times);
    for (size_t i = 0, k; i < all->n; i = k) {
        const struct measurement *first = &all->items[i];
        for (k = i + 1; k < all->n && all->items[k].devices == first->devices && all->items[k].bytes == first->bytes;)
            k++;
        const size_t low = i + (k - i - 1) / 2, high = i + (k - i) / 2;
        struct measurement median = all->items[low];
        median.time_us = low == high ? median.time_us : (median.time_us + all->items[high].time_us) / 2;
        all->items[kept++] = median;
    }
    all->n = kept;
}

/* A rate and where it comes from. */
struct rate {
    double value;
    const char *from; /* NULL: said by a file or the user */
};

/* Did the all-reduce of the largest bus bandwidth have more devices than any one node? */
static bool crossed_nodes(const struct cluster_draft *draft) {
    uint64_t most = draft->devices_a_node;
    for (size_t i = 0; i < draft->nodes.n; i++)
        most = draft->nodes.items[i].devices > most ? draft->nodes.items[i].devices : most;
    return draft->nodes.n > 1 && draft->bus_devices > (most ? most : 1);
}

/* As a file or the user says; 0: nobody does. */
static double said_nic_rate(const struct cluster_draft *draft, const struct import_settings *settings,
                            const struct draft_node *node) {
    if (settings->nic_gbit_per_s > 0)
        return settings->nic_gbit_per_s;
    return node->nic_gbit_per_s > 0 ? node->nic_gbit_per_s : draft->nic_gbit_per_s;
}

static struct rate nic_rate(const struct cluster_draft *draft, const struct import_settings *settings,
                            const struct draft_node *node) {
    const double said = said_nic_rate(draft, settings, node);
    if (said > 0)
        return (struct rate){said, NULL};
    if (crossed_nodes(draft))
        return (struct rate){round(draft->bus_gbyte_per_s * 8 * 1e3) / 1e3, "the largest bus bandwidth"};
    return (struct rate){draft->nodes.n == 1 ? LONE_NIC_GBIT_PER_S : 0, NULL};
}

static struct rate link_rate(const struct cluster_draft *draft, const struct import_settings *settings) {
    if (settings->device_link_gbyte_per_s > 0)
        return (struct rate){settings->device_link_gbyte_per_s, NULL};
    if (draft->device_link_gbyte_per_s > 0)
        return (struct rate){draft->device_link_gbyte_per_s, "NVLinks of 25 GB/s each"};
    return (struct rate){draft->bus_gbyte_per_s, "the largest bus bandwidth, which is the least it can be"};
}

static enum status add_node(const struct cluster_draft *draft, const struct import_settings *settings,
                            const struct draft_node *node, cJSON *array, struct error *err) {
    const uint64_t devices = node->devices ? node->devices : draft->devices_a_node ? draft->devices_a_node : 1;
    const double nic = nic_rate(draft, settings, node).value, link = link_rate(draft, settings).value;
    const double latency = settings->nic_latency_us > 0 ? settings->nic_latency_us : draft->nic_latency_us;
    if (nic <= 0)
        return error_set(err, ST_USAGE, "no file tells how fast the NICs of \"%.100s\" are; give --nic-gbit-per-s",
                         node->name);
    if (devices > 1 && link <= 0)
        return error_set(err, ST_USAGE,
                         "no file tells how fast the %lu devices of \"%.100s\" are linked; give "
                         "--device-link-gbyte-per-s",
                         (unsigned long)devices, node->name);
    cJSON *object = cJSON_CreateObject();
    const bool ok = object && cJSON_AddItemToArray(array, object) &&
                    cJSON_AddStringToObject(object, "name", node->name) &&
                    cJSON_AddNumberToObject(object, "devices", (double)devices) &&
                    (!node->device || cJSON_AddStringToObject(object, "device", node->device)) &&
                    cJSON_AddNumberToObject(object, "nic_gbit_per_s", nic) &&
                    (latency <= 0 || cJSON_AddNumberToObject(object, "nic_latency_us", latency)) &&
                    (link <= 0 || cJSON_AddNumberToObject(object, "device_link_gbyte_per_s", link));
    return ok ? ST_OK : error_no_memory(err);
}

static bool note_rate(struct notes *notes, const char *field, struct rate rate, const char *option) {
    return rate.value <= 0 || !rate.from ||
           notes_add(notes, "%s %g is an estimate from %s; give %s if you know better", field, rate.value, rate.from,
                     option);
}

static enum status add_nodes(struct cluster_draft *draft, const struct import_settings *settings, struct notes *notes,
                             cJSON *array, struct error *err) {
    bool several = false;
    if (!array)
        return error_no_memory(err);
    for (size_t i = 0; i < draft->nodes.n; i++) {
        enum status st = add_node(draft, settings, &draft->nodes.items[i], array, err);
        if (st)
            return st;
        several = several || draft->nodes.items[i].devices > 1 || draft->devices_a_node > 1;
    }
    const struct rate nic = nic_rate(draft, settings, &draft->nodes.items[0]), link = link_rate(draft, settings);
    if (!note_rate(notes, "nic_gbit_per_s", nic, "--nic-gbit-per-s") ||
        (several && !note_rate(notes, "device_link_gbyte_per_s", link, "--device-link-gbyte-per-s")))
        return error_no_memory(err);
    if (draft->nodes.n == 1 && said_nic_rate(draft, settings, &draft->nodes.items[0]) <= 0 &&
        !notes_add(notes,
                   "one node: nothing crosses its NIC, whose rate no file tells; nic_gbit_per_s %g stands in its "
                   "place and counts only if you add nodes",
                   nic.value))
        return error_no_memory(err);
    return ST_OK;
}

/* Does a new measurement replace this one of the base? It does when both are of the same operation on as many devices,
 * and the old one is of algorithm auto. */
static bool replaced(const struct cluster_draft *draft, const struct measurement *old) {
    for (size_t i = 0; i < draft->measurements.n; i++)
        if (draft->measurements.items[i].operation == old->operation &&
            draft->measurements.items[i].devices == old->devices && old->algorithm == ALGORITHM_auto)
            return true;
    return false;
}

static bool add_measurements(const struct cluster_draft *draft, cJSON *root) {
    cJSON *array = cJSON_AddArrayToObject(root, "measurements");
    bool ok = array;
    for (uint32_t i = 0; ok && draft->base && i < draft->base->n_measurements; i++)
        if (!replaced(draft, &draft->base->measurements[i]))
            ok = measurement_write(&draft->base->measurements[i], array);
    for (size_t i = 0; i < draft->measurements.n && ok; i++)
        ok = measurement_write(&draft->measurements.items[i], array);
    return ok;
}

/* The base description with the draft's measurements added; they replace measurements of the same kind. Nodes and rates
 * stay as in the base. */
static enum status extend_base(const struct cluster_draft *draft, const struct import_settings *settings,
                               struct notes *notes, cJSON **out, struct error *err) {
    if (settings->nic_gbit_per_s > 0 || settings->nic_latency_us > 0 || settings->device_link_gbyte_per_s > 0)
        return error_set(err, ST_USAGE, "the rates of \"%.100s\" stand in its file; change them there",
                         draft->base->name);
    const bool more = draft->nodes.n || draft->devices_a_node || draft->nic_gbit_per_s > 0 || draft->nic_latency_us > 0;
    if (more && !notes_add(notes, "nodes and rates are those of \"%.100s\"; only measurements are added to it",
                           draft->base->name))
        return error_no_memory(err);
    cJSON *root = cluster_write(draft->base);
    if (!root)
        return error_no_memory(err);
    cJSON_DeleteItemFromObjectCaseSensitive(root, "measurements");
    if (settings->name && !cJSON_SetValuestring(cJSON_GetObjectItemCaseSensitive(root, "name"), settings->name)) {
        cJSON_Delete(root);
        return error_no_memory(err);
    }
    *out = root;
    return ST_OK;
}

static enum status describe(struct cluster_draft *draft, const char *name, const struct import_settings *settings,
                            struct notes *notes, cJSON **out, struct error *err) {
    cJSON *root = cJSON_CreateObject();
    const bool ok = root && cJSON_AddStringToObject(root, "schema", "syncopate.cluster/1") &&
                    cJSON_AddStringToObject(root, "name", name);
    enum status st =
        ok ? add_nodes(draft, settings, notes, cJSON_AddArrayToObject(root, "nodes"), err) : error_no_memory(err);
    if (st)
        cJSON_Delete(root);
    else
        *out = root;
    return st;
}

/* Drop the nodes that occur only in logs of measurements, unless no file lists nodes. */
static void drop_met_nodes(struct draft_nodes *nodes) {
    size_t kept = 0;
    for (size_t i = 0; i < nodes->n; i++)
        if (nodes->items[i].listed)
            nodes->items[kept++] = nodes->items[i];
    nodes->n = kept ? kept : nodes->n;
}

/* Logs and lists of nodes may be of different clusters. */
static enum status compare_devices(const struct cluster *cluster, struct notes *notes, struct error *err) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < cluster->n_measurements; i++)
        most = cluster->measurements[i].devices > most ? cluster->measurements[i].devices : most;
    if (most > cluster->n_devices &&
        !notes_add(notes, "measured among %u devices, but the nodes have %u: are these the nodes, and all their slots?",
                   most, cluster->n_devices))
        return error_no_memory(err);
    return ST_OK;
}

static enum status build(struct cluster_draft *draft, const struct source *first,
                         const struct import_settings *settings, struct notes *notes, cJSON **out, struct error *err) {
    const char *name = settings->name ? settings->name : source_stem(first, draft->arena);
    struct cluster checked;
    cJSON *root = NULL;
    enum status st;
    drop_met_nodes(&draft->nodes);
    keep_medians(&draft->measurements);
    if (!name || (!draft->base && !draft->nodes.n && draft->devices_a_node &&
                  !cluster_draft_node(draft, "node", strlen("node"))))
        return error_no_memory(err);
    if (draft->base)
        st = extend_base(draft, settings, notes, &root, err);
    else if (!draft->nodes.n)
        st =
            error_at(err, ST_USAGE, first->name,
                     "no node is named there; give a hostfile as well, a line \"HOST slots=DEVICES\" for each node, or "
                     "a cluster file");
    else
        st = describe(draft, name, settings, notes, &root, err);
    if (st)
        return st;
    const bool measured = draft->measurements.n || (draft->base && draft->base->n_measurements);
    st = !measured || add_measurements(draft, root) ? cluster_read(root, first->name, &checked, err)
                                                    : error_no_memory(err);
    if (!st) {
        st = compare_devices(&checked, notes, err);
        cluster_release(&checked);
    }
    if (st)
        cJSON_Delete(root);
    else
        *out = root;
    return st;
}

enum status cluster_draft_finish(struct cluster_draft *draft, const struct source *first,
                                 const struct import_settings *settings, struct notes *notes, cJSON **out,
                                 struct error *err) {
    enum status st = build(draft, first, settings, notes, out, err);
    cluster_draft_release(draft);
    return st;
}

void cluster_draft_release(struct cluster_draft *draft) {
    if (draft->base)
        cluster_release(draft->base);
    free(draft->base);
    free(draft->nodes.items);
    free(draft->measurements.items);
    *draft = (struct cluster_draft){0};
}
