/* What each node moves: equation 2 for parameter servers (AutoSync §3.1.1), summed over their messages.
 *
 * On server j one push of a byte costs sum over workers k on other nodes of r(k) / b(j,k), r(k) being the pushes of k:
 * its devices, or one with local reduction; b(j,k) the narrower of the two NICs and an overridden link. A pull mirrors
 * its push in the other direction. So messages are first added up by server and sort of push, and then each pair of a
 * server and a worker is looked at once: O(messages + servers * (workers + links)). The closed form takes the largest
 * total of any NIC, over servers (all that they receive) and workers (all that they send), and adds all all-reduces. An
 * all-reduce moves transfer_us times the narrowest rate through every worker's NIC, as the timeline has it. */
#include "featurize/features.h"
#include "featurize/features_internal.h"
#include "strategy/cost/transport.h"

static void add_served(struct survey *s) {
    for (uint32_t m = 0; m < s->plan->n_messages; m++) {
        const struct message *message = &s->plan->messages[m];
        if (message->kind != SYNC_PARAMETER_SERVER)
            continue;
        struct node_view *node = &s->nodes[message->server];
        node->served_bytes[message->local_reduction] += (double)message->bytes;
        node->served_messages[message->local_reduction]++;
    }
}

/* rate[w]: of the path from node w to the server. */
static void find_rates(const struct survey *s, uint32_t server, double *rate) {
    const struct cost *cost = s->cost;
    const struct cluster *cluster = cost->cluster;
    for (uint32_t i = 0; i < cost->n_workers; i++)
        rate[cost->workers[i]] = fmin(cost->nic_bytes_per_us[cost->workers[i]], cost->nic_bytes_per_us[server]);
    for (uint32_t i = 0; i < cluster->n_links; i++) {
        const struct link *link = &cluster->links[i];
        if (link->to == server)
            rate[link->from] = fmin(rate[link->from], transport_link_bytes_per_us(cluster, link));
    }
}

static void add_server(struct survey *s, uint32_t server, const double *rate) {
    const struct cost *cost = s->cost;
    const struct runtime *runtime = &cost->runtime;
    struct node_view *to = &s->nodes[server];
    for (uint32_t i = 0; i < cost->n_workers; i++) {
        uint32_t worker = cost->workers[i];
        struct node_view *from = &s->nodes[worker];
        if (worker == server)
            continue;
        for (int sort = 0; sort < 2; sort++) {
            double pushes = sort ? 1 : cost->cluster->nodes[worker].devices, bytes = to->served_bytes[sort],
                   messages = to->served_messages[sort];
            to->per_byte_us[sort] += pushes / rate[worker];
            to->pushes[sort] += pushes;
            from->sent_us +=
                pushes * (bytes / rate[worker] + messages * runtime->push_us) + messages * runtime->message_us;
            from->nic_bytes += pushes * bytes;
            to->nic_bytes += pushes * bytes;
        }
    }
    for (int sort = 0; sort < 2; sort++)
        to->received_us += to->served_bytes[sort] * to->per_byte_us[sort] +
                           to->served_messages[sort] * (to->pushes[sort] * runtime->push_us + runtime->message_us);
}

static bool serves(const struct node_view *node) {
    return node->served_messages[0] + node->served_messages[1] > 0;
}

static void add_all_reduces(struct survey *s) {
    double rate = s->cost->narrowest_bytes_per_us;
    for (uint32_t i = 0; i < s->cost->n_workers && isfinite(rate); i++)
        s->nodes[s->cost->workers[i]].nic_bytes += s->transfer_us * rate;
}

/* Rates and loads over their means, and how uneven the loads are. */
static void compare_nodes(struct survey *s, struct features *out) {
    uint32_t n = s->cost->cluster->n_nodes, n_servers = 0;
    const double *nic = s->cost->nic_bytes_per_us;
    double rates = 0, loads = 0, largest = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct node_view *node = &s->nodes[i];
        node->load = (node->served_bytes[0] + node->served_bytes[1]) / nic[i];
        rates += nic[i];
        loads += node->load;
        largest = fmax(largest, node->load);
        n_servers += serves(node);
    }
    for (uint32_t i = 0; i < n; i++) {
        s->nodes[i].log2_rate = log2(nic[i] * n / rates);
        s->nodes[i].load = feature_share(s->nodes[i].load * n, loads);
    }
    GLOBAL(out, log2_servers) = feature_log2(n_servers);
    GLOBAL(out, log2_server_imbalance) = loads > 0 ? log2(largest * n / loads) : 0;
}

/* What the busiest server adds up: each push of each message, those of its own node too. */
static double longest_sum_us(const struct survey *s) {
    double longest = 0;
    for (uint32_t i = 0; i < s->cost->cluster->n_nodes; i++) {
        const struct node_view *node = &s->nodes[i];
        uint32_t own = s->cost->cluster->nodes[i].devices;
        double bytes =
            node->served_bytes[0] * (node->pushes[0] + own) + node->served_bytes[1] * (node->pushes[1] + (own > 0));
        longest = fmax(longest, bytes / s->cost->sum_bytes_per_us);
    }
    return longest;
}

static void describe_nics(const struct survey *s, struct features *out) {
    uint32_t n = s->cost->cluster->n_nodes;
    double total = 0, most = 0, longest = 0, pushes = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct node_view *node = &s->nodes[i];
        total += node->nic_bytes;
        most = fmax(most, node->nic_bytes);
        longest = fmax(longest, node->nic_bytes / s->cost->nic_bytes_per_us[i]);
        pushes += node->served_messages[0] * node->pushes[0] + node->served_messages[1] * node->pushes[1];
    }
    GLOBAL(out, log2_pushes) = feature_log2(pushes);
    GLOBAL(out, log2_sum_us) = feature_log2(longest_sum_us(s));
    GLOBAL(out, log2_nic_bytes_max) = feature_log2(most);
    GLOBAL(out, log2_nic_bytes_mean) = feature_log2(total / n);
    GLOBAL(out, log2_nic_imbalance) = feature_log2_ratio(most, total / n);
    GLOBAL(out, log2_nic_us) = feature_log2(longest);
    GLOBAL(out, log2_nic_over_compute) = feature_log2_ratio(longest, s->compute_us);
}

enum status survey_nodes(struct survey *s, struct features *out, struct error *err) {
    uint32_t n = s->cost->cluster->n_nodes;
    s->nodes = arena_alloc(&s->arena, n, sizeof *s->nodes);
    double *rate = arena_alloc(&s->arena, n, sizeof *rate), served_us = 0;
    if (!s->nodes || !rate)
        return error_no_memory(err);
    add_served(s);
    for (uint32_t i = 0; i < n; i++)
        if (serves(&s->nodes[i])) {
            find_rates(s, i, rate);
            add_server(s, i, rate);
        }
    for (uint32_t i = 0; i < n; i++)
        served_us = fmax(served_us, fmax(s->nodes[i].received_us, s->nodes[i].sent_us));
    s->sync_us = s->startup_us + s->transfer_us + served_us;
    add_all_reduces(s);
    compare_nodes(s, out);
    describe_nics(s, out);
    return ST_OK;
}
