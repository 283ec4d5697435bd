/* The strategy's choices as numbers, and the domain's. Two strategies that differ only in the numbers of their groups
 * have the same knobs. O(variables + groups + pieces + nodes). */
#include "featurize/features.h"
#include "featurize/features_internal.h"

/* Sums over variables, weighed by their bytes. */
struct choices {
    double bytes, served, all_reduced, encoded, local, sparse_served, group, partition, by[ALGORITHM_COUNT];
    double encoded_as[ENCODING_COUNT], sharded[SHARDED_COUNT], kept;
    double cut, log2_shards; /* counted, not weighed */
};

static double clamp_size(double bytes, double all) {
    return feature_log2(fmin(bytes, all));
}

static void add_part(const struct survey *s, const struct variable *variable, const struct variable_sync *sync,
                     double bytes, struct choices *c) {
    double all = (double)s->plan->model->bytes;
    uint64_t partition = sync->partition_bytes;
    c->bytes += bytes;
    const enum encoding encoding = strategy_sum_encoding(s->strategy, sync);
    c->encoded += encoding != ENCODING_none ? bytes : 0;
    c->encoded_as[encoding] += bytes;
    if (sync->kind == SYNC_ALL_REDUCE) {
        const struct group *group = &s->strategy->groups[sync->group];
        partition = group->partition_bytes;
        c->all_reduced += bytes;
        c->group += bytes * feature_log2(s->groups[sync->group].bytes);
        c->by[group->algorithm] += bytes;
        c->sharded[group->sharded] += bytes;
        c->kept += group->keeps_gathered ? bytes : 0;
    } else {
        c->served += bytes;
        c->local += sync->local_reduction ? bytes : 0;
        c->sparse_served += variable->sparse_rows ? bytes : 0;
    }
    c->partition += bytes * (partition ? clamp_size((double)partition, all) : feature_log2(all));
}

static void add_variable(const struct survey *s, uint32_t v, struct choices *c) {
    const struct variable *variable = &s->plan->model->variables[v];
    const struct variable_sync *sync = &s->strategy->variables[v];
    double bytes = (double)variable->bytes;
    c->cut += sync->shards > 1;
    c->log2_shards += log2(sync->shards);
    if (!sync->each)
        add_part(s, variable, sync, bytes, c);
    else
        for (uint32_t k = 0; k < sync->shards; k++) {
            const uint64_t dim = variable->shape[sync->axis];
            add_part(s, variable, &sync->each[k], bytes * (double)plan_shard_rows(dim, sync->shards, k) / (double)dim,
                     c);
        }
}

static void describe_variables(const struct survey *s, struct features *out) {
    struct choices c = {.bytes = 0};
    uint32_t n = s->strategy->n_variables;
    for (uint32_t v = 0; v < n; v++)
        add_variable(s, v, &c);
    GLOBAL(out, server_share) = feature_share(c.served, c.bytes);
    GLOBAL(out, all_reduce_share) = feature_share(c.all_reduced, c.bytes);
    GLOBAL(out, encoded_share) = feature_share(c.encoded, c.bytes);
    GLOBAL(out, int8_share) = feature_share(c.encoded_as[ENCODING_int8], c.bytes);
    GLOBAL(out, topk_share) = feature_share(c.encoded_as[ENCODING_topk], c.bytes);
    GLOBAL(out, powersgd_share) = feature_share(c.encoded_as[ENCODING_powersgd], c.bytes);
    for (int k = SHARDED_optimizer; k < SHARDED_COUNT; k++)
        out->global[FEATURE_GLOBAL_sharded_optimizer_share + k - SHARDED_optimizer] =
            feature_share(c.sharded[k], c.bytes);
    GLOBAL(out, kept_share) = feature_share(c.kept, c.bytes);
    GLOBAL(out, local_reduction_share) = feature_share(c.local, c.bytes);
    GLOBAL(out, sparse_served_share) = feature_share(c.sparse_served, c.bytes);
    GLOBAL(out, log2_group_bytes) = feature_share(c.group, c.all_reduced);
    GLOBAL(out, log2_partition) = feature_share(c.partition, c.bytes);
    GLOBAL(out, cut_share) = c.cut / n;
    GLOBAL(out, log2_shards) = c.log2_shards / n;
    for (int a = 0; a < ALL_REDUCE_COUNT; a++)
        out->global[FEATURE_GLOBAL_share_auto + a] = feature_share(c.by[a], c.bytes);
}

static void describe_schedule(const struct survey *s, struct features *out) {
    const struct strategy *strategy = s->strategy;
    double all = (double)s->plan->model->bytes, groups = 0;
    for (uint32_t g = 0; g < strategy->n_groups; g++)
        groups += s->groups[g].members > 0;
    GLOBAL(out, log2_groups) = feature_log2(groups);
    GLOBAL(out, log2_credit) = clamp_size((double)strategy->credit_bytes, all);
    GLOBAL(out, stop_and_wait) = strategy->credit_bytes == 0;
    GLOBAL(out, unlimited) = strategy->credit_bytes == CREDIT_UNLIMITED;
    out->global[FEATURE_GLOBAL_fifo + (int)strategy->policy] = 1;
    GLOBAL(out, log2_slices) = feature_log2(strategy->n_slices);
    GLOBAL(out, cross_iteration) = strategy->cross_iteration;
    GLOBAL(out, log2_micro_batches) = feature_log2(strategy->micro_batches);
    GLOBAL(out, sums_each) = strategy->synchronize != SYNCHRONIZE_last;
    if (strategy_sharded_parameters(strategy) > 0) {
        GLOBAL(out, log2_shard_group) = feature_log2(strategy_shard_group(strategy, s->cost->cluster));
        GLOBAL(out, log2_forward_prefetch) = feature_log2(strategy->forward_prefetch);
        GLOBAL(out, log2_backward_prefetch) = feature_log2(strategy->backward_prefetch);
    }
}

/* Whether other gradients become ready between those of the message. */
static bool is_scattered(const struct survey *s, const struct message *message) {
    const struct piece *pieces = s->plan->pieces + message->first_piece;
    for (uint32_t i = 1; i < message->n_pieces; i++)
        if (s->place[pieces[i].variable] > s->place[pieces[i - 1].variable] + 1)
            return true;
    return false;
}

static void describe_messages(const struct survey *s, struct features *out) {
    const struct plan *plan = s->plan;
    double sizes = 0, scattered = 0;
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        if (!message_brings_gradients(&plan->messages[m])) /* as plan->bytes, each gradient once */
            continue;
        double bytes = (double)plan->messages[m].bytes;
        sizes += bytes * s->messages[m].log2_bytes;
        scattered += is_scattered(s, &plan->messages[m]) ? bytes : 0;
    }
    GLOBAL(out, log2_message_bytes) = feature_share(sizes, (double)plan->bytes);
    GLOBAL(out, log2_largest_message) = feature_log2((double)plan->max_bytes);
    GLOBAL(out, scattered_share) = feature_share(scattered, (double)plan->bytes);
}

void features_of_knobs(const struct survey *s, struct features *out) {
    describe_variables(s, out);
    describe_schedule(s, out);
    describe_messages(s, out);
}

/* ---- domain ---- */

static void describe_model(const struct survey *s, struct features *out) {
    const struct model *model = s->plan->model;
    double largest = 0, sparse = 0, bytes = (double)model->bytes;
    const double pass_us = s->compute_us / s->plan->micro_batches;
    for (uint32_t v = 0; v < model->n_variables; v++) {
        largest = fmax(largest, (double)model->variables[v].bytes);
        sparse += model->variables[v].sparse_rows ? (double)model->variables[v].bytes : 0;
    }
    GLOBAL(out, log2_variables) = feature_log2(model->n_variables);
    GLOBAL(out, log2_model_bytes) = feature_log2(bytes);
    GLOBAL(out, largest_variable_share) = feature_share(largest, bytes);
    GLOBAL(out, sparse_share) = feature_share(sparse, bytes);
    GLOBAL(out, forward_share) = feature_share(s->forward_us, s->forward_us + s->backward_us);
    GLOBAL(out, log2_compute_over_network) = feature_log2_ratio(pass_us, bytes / s->cost->narrowest_bytes_per_us);
}

static void describe_cluster(const struct survey *s, struct features *out) {
    const struct cluster *cluster = s->cost->cluster;
    double slowest = INFINITY, fastest = 0, latency = 0, widest = 0;
    for (uint32_t i = 0; i < cluster->n_nodes; i++) {
        slowest = fmin(slowest, s->cost->nic_bytes_per_us[i]);
        fastest = fmax(fastest, s->cost->nic_bytes_per_us[i]);
        latency = fmax(latency, cluster->nodes[i].nic_latency_us);
        widest = fmax(widest, cluster->nodes[i].devices);
    }
    GLOBAL(out, log2_devices) = feature_log2(cluster->n_devices);
    GLOBAL(out, log2_nodes) = feature_log2(s->cost->n_workers);
    GLOBAL(out, log2_devices_per_node) = feature_log2(widest);
    GLOBAL(out, log2_compute_scale) = log2(cluster->nodes[s->cost->slowest].compute_scale);
    GLOBAL(out, log2_nic_ratio) = log2(fastest / slowest);
    GLOBAL(out, log2_nic_rate) = feature_log2(slowest);
    GLOBAL(out, log2_nic_latency_us) = feature_log2(latency);
    GLOBAL(out, log2_message_us) = feature_log2(s->cost->runtime.message_us);
    GLOBAL(out, log2_coordination_us) = feature_log2(s->cost->runtime.coordination_us);
    GLOBAL(out, log2_push_us) = feature_log2(s->cost->push_us);
}

void features_of_domain(const struct survey *s, struct features *out) {
    describe_model(s, out);
    describe_cluster(s, out);
}
