/* The rows of shards: AutoSync's predefined terms (§3.1.1, equation 2) and raw attributes (§3.1.2).
 *
 * Most columns are the same for all shards of a variable; `struct shard` holds those that are not. A variable's shards
 * are sorted by them, equal ones become one row that counts them, and rows stand in the order of their first shard. So
 * a variable cut into thousands of shards on servers of equal rate costs a sort and a few rows.
 * All-reduced shards get the analogue of equation 2. A message's start-up, its transfer and the count 1 are divided
 * among the shards that it carries, in proportion to their bytes in it. The sums over all shards are the plan's. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "featurize/features.h"
#include "featurize/features_internal.h"
#include "strategy/encoder.h"

/* What tells the shards of a variable apart; the first six are averaged over shards. */
struct facts {
    double ps_transfer_us, ps_overheads, ps_constants, cc_startup_us, cc_transfer_us, cc_messages;
    double bytes, messages, log2_message_bytes, wait_us;
    double log2_server_rate, server_load, server_devices;
    double kind, encoding, figure, group, local_reduction, partition_bytes; /* of the shard's synchronizer */
};
enum { FACTS = sizeof(struct facts) / sizeof(double) };
_Static_assert(FACTS * sizeof(double) == sizeof(struct facts), "facts are numbers without gaps");

struct shard {
    struct facts facts;
    const struct variable_sync *sync;
    uint32_t place, first; /* of the variable; the first shard that it stands for */
    double weight;
};

struct shards {
    size_t n, capacity;
    struct shard *items; /* malloc'd */
};

static int compare_facts(const struct facts *a, const struct facts *b) {
    const double *x = (const double *)a, *y = (const double *)b;
    for (size_t i = 0; i < FACTS; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static int compare_shards(const void *a, const void *b) {
    const struct shard *x = a, *y = b;
    int order = compare_facts(&x->facts, &y->facts);
    return order ? order : (x->first > y->first) - (x->first < y->first);
}

static int compare_first(const void *a, const void *b) {
    const struct shard *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Merge equal shards among the n. Returns how many are left. */
static size_t merge_equal(struct shard *shards, size_t n) {
    size_t kept = 0;
    qsort(shards, n, sizeof *shards, compare_shards);
    for (size_t i = 0; i < n; i++)
        if (kept && !compare_facts(&shards[kept - 1].facts, &shards[i].facts))
            shards[kept - 1].weight += shards[i].weight;
        else
            shards[kept++] = shards[i];
    qsort(shards, kept, sizeof *shards, compare_first);
    return kept;
}

/* How many messages of an iteration are this one of some micro-batch. They share their pieces. */
static double times_sent(const struct survey *s, const struct message *message) {
    if (message_gathers_parameters(message))
        return s->plan->micro_batches;
    return message_brings_gradients(message) ? s->sums : 1;
}

static void add_cost(const struct survey *s, uint32_t m, double part, struct facts *facts) {
    const double share = part * times_sent(s, &s->plan->messages[m]);
    facts->cc_startup_us += share * s->messages[m].startup_us;
    facts->cc_transfer_us += share * s->messages[m].transfer_us;
    facts->cc_messages += share;
}

static void add_piece(const struct survey *s, uint32_t place, uint32_t at, struct facts *facts) {
    uint32_t m = s->message_of[at];
    const struct message *message = &s->plan->messages[m];
    const struct message_view *view = &s->messages[m];
    double bytes = (double)s->plan->pieces[s->piece[at]].bytes, share = bytes / (double)message_piece_bytes(message);
    facts->messages += message_gathers_parameters(message) ? times_sent(s, message) : s->sums;
    if (!message_gathers_parameters(message)) {
        facts->log2_message_bytes += bytes * view->log2_bytes;
        facts->wait_us += bytes * fmax(0, view->ready_us - s->gradients[place].ready_us);
    }
    if (message->kind == SYNC_PARAMETER_SERVER)
        return;
    add_cost(s, m, share, facts);
    if (message->other != NO_MESSAGE) /* the other half, or what replicas add to: of the same pieces */
        add_cost(s, message->other, share, facts);
}

static void add_sync(const struct variable_sync *sync, struct facts *facts) {
    facts->kind = sync->kind;
    facts->encoding = sync->encoding;
    facts->figure = sync->figure;
    facts->group = sync->group;
    facts->local_reduction = sync->local_reduction;
    facts->partition_bytes = (double)sync->partition_bytes;
}

static void add_server(const struct survey *s, const struct variable_sync *sync, uint32_t k, struct facts *facts) {
    uint32_t server = sync->servers[k % sync->n_servers];
    const struct node_view *node = &s->nodes[server];
    facts->ps_transfer_us = s->sums * facts->bytes * node->per_byte_us[sync->local_reduction];
    facts->ps_overheads = facts->messages * node->pushes[sync->local_reduction];
    facts->ps_constants = facts->messages;
    facts->log2_server_rate = node->log2_rate;
    facts->server_load = node->load;
    facts->server_devices = s->cost->cluster->nodes[server].devices;
}

/* The part of its message's bytes that a piece with an encoder has: blocks run across pieces. */
static double encoded_bytes(const struct survey *s, uint32_t at) {
    const struct message *message = &s->plan->messages[s->message_of[at]];
    return (double)s->plan->pieces[s->piece[at]].bytes * (double)message->bytes / (double)message_piece_bytes(message);
}

/* Shard k, whose pieces begin at *at; moves it past them. */
static void describe(const struct survey *s, uint32_t place, const struct variable_sync *sync, uint32_t k,
                     uint64_t end_bytes, uint64_t bytes, uint32_t *at, struct facts *facts) {
    uint32_t v = s->gradients[place].variable;
    double encoded = 0;
    add_sync(sync, facts);
    facts->bytes = (double)bytes;
    for (; *at < s->first_piece[v + 1] && s->plan->pieces[s->piece[*at]].offset_bytes < end_bytes; ++*at) {
        add_piece(s, place, *at, facts);
        encoded += encoded_bytes(s, *at);
    }
    facts->log2_message_bytes = feature_share(facts->log2_message_bytes, facts->bytes);
    facts->wait_us = feature_share(facts->wait_us, facts->bytes);
    if (encoding_is_encoder(sync->encoding))
        facts->bytes = encoded;
    if (sync->kind == SYNC_PARAMETER_SERVER)
        add_server(s, sync, k, facts);
}

static bool add_variable(const struct survey *s, uint32_t place, struct shards *shards) {
    uint32_t v = s->gradients[place].variable, at = s->first_piece[v];
    const struct variable_sync *sync = &s->strategy->variables[v];
    uint64_t end_bytes = 0;
    if (!GROW(&shards->items, &shards->capacity, shards->n + sync->shards))
        return false;
    struct shard *own = shards->items + shards->n;
    for (uint32_t k = 0; k < sync->shards; k++) {
        uint64_t bytes = plan_shard_bytes(s->strategy, &s->plan->model->variables[v], sync, k);
        end_bytes += bytes;
        own[k] = (struct shard){.sync = sync_part(sync, k), .place = place, .first = k, .weight = 1};
        describe(s, place, own[k].sync, k, end_bytes, bytes, &at, &own[k].facts);
    }
    shards->n += sync->shards > 1 ? merge_equal(own, sync->shards) : sync->shards;
    return true;
}

/* ---- rows ---- */

#define SET(row, name, value) ((row)[FEATURE_SHARD_##name] = (value))

static void write_variable(const struct survey *s, const struct variable *v, double *row) {
    double rows = v->rank ? (double)v->shape[0] : 1;
    SET(row, log2_variable_bytes, feature_log2((double)v->bytes));
    SET(row, rank, v->rank);
    SET(row, log2_rows, v->rank > 0 ? feature_log2(rows) : 0);
    SET(row, log2_columns, v->rank > 1 ? feature_log2((double)v->shape[1]) : 0);
    SET(row, touched_share, v->sparse_rows ? (double)v->sparse_rows / rows : 1);
    SET(row, dtype_bytes, (double)dtype_bytes(v->dtype));
    SET(row, log2_devices, feature_log2(s->cost->cluster->n_devices));
}

static double partition_bytes(const struct survey *s, const struct variable_sync *sync) {
    uint64_t bytes =
        sync->kind == SYNC_ALL_REDUCE ? s->strategy->groups[sync->group].partition_bytes : sync->partition_bytes;
    double all = (double)s->plan->model->bytes;
    return bytes ? fmin((double)bytes, all) : all;
}

static const enum feature_shard encoding_features[ENCODING_COUNT] = {
    [ENCODING_none] = FEATURE_SHARD_encoding_none, [ENCODING_f16] = FEATURE_SHARD_encoding_f16,
    [ENCODING_bf16] = FEATURE_SHARD_encoding_bf16, [ENCODING_int8] = FEATURE_SHARD_encoding_int8,
    [ENCODING_topk] = FEATURE_SHARD_encoding_topk, [ENCODING_powersgd] = FEATURE_SHARD_encoding_powersgd};

static void write_sync(const struct survey *s, const struct variable_sync *sync, double *row) {
    SET(row, server, sync->kind == SYNC_PARAMETER_SERVER);
    row[encoding_features[strategy_sum_encoding(s->strategy, sync)]] = 1;
    SET(row, log2_partition, feature_log2(partition_bytes(s, sync)));
    SET(row, log2_shards, log2(sync->shards));
    SET(row, cut_axis, sync->shards > 1 ? sync->axis + 1 : 0);
    if (sync->kind == SYNC_PARAMETER_SERVER) {
        SET(row, local_reduction, sync->local_reduction);
        return;
    }
    const struct group_totals *group = &s->groups[sync->group];
    SET(row, log2_group_bytes, feature_log2(group->bytes));
    SET(row, log2_group_members, feature_log2(group->members));
    SET(row, group_place, feature_share(group->placed_bytes, group->bytes));
    const struct group *of_it = &s->strategy->groups[sync->group];
    if (of_it->sharded)
        row[FEATURE_SHARD_sharded_optimizer + (int)(of_it->sharded - SHARDED_optimizer)] = 1;
    SET(row, kept, of_it->keeps_gathered);
    if (of_it->algorithm < ALL_REDUCE_COUNT)
        row[FEATURE_SHARD_algorithm_auto + (int)of_it->algorithm] = 1;
}

/* Times are summed in different orders: a difference that should be 0 may come out negative. */
static void write_times(const struct survey *s, const struct gradient *gradient, const struct variable_sync *sync,
                        double *row) {
    const bool gathered =
        sync->kind == SYNC_ALL_REDUCE && s->strategy->groups[sync->group].sharded == SHARDED_parameters;
    double gate_us = s->plan->cross_iteration || gathered ? fmax(0, s->forward_us - gradient->tail_us) : 0;
    double slack_us = fmax(0, s->backward_us - gradient->ready_us) + gate_us;
    SET(row, ready_share, feature_share(gradient->ready_us, s->backward_us));
    SET(row, gate_share, feature_share(gate_us, s->forward_us));
    SET(row, slack_share, feature_share(slack_us, s->forward_us + s->backward_us));
}

static void write_facts(const struct survey *s, const struct facts *facts, double *row) {
    SET(row, log2_bytes, feature_log2(facts->bytes));
    SET(row, log2_ps_transfer_us, feature_log2(facts->ps_transfer_us));
    SET(row, log2_ps_overheads, feature_log2(facts->ps_overheads));
    SET(row, log2_ps_constants, feature_log2(facts->ps_constants));
    SET(row, log2_cc_startup_us, feature_log2(facts->cc_startup_us));
    SET(row, log2_cc_transfer_us, feature_log2(facts->cc_transfer_us));
    SET(row, log2_cc_messages, feature_log2(facts->cc_messages));
    SET(row, log2_messages, feature_log2(facts->messages));
    SET(row, log2_message_bytes, facts->log2_message_bytes);
    SET(row, wait_share, feature_share(facts->wait_us, s->backward_us));
    SET(row, log2_server_rate, facts->log2_server_rate);
    SET(row, log2_server_load, feature_log2(facts->server_load));
    SET(row, log2_server_devices, feature_log2(facts->server_devices));
}

/* Write the rows of one variable, from *items on. Returns how many. */
static size_t write_rows(struct survey *s, const struct shard *items, size_t n, double *rows) {
    const struct gradient *gradient = &s->gradients[items->place];
    const struct variable *variable = &s->plan->model->variables[gradient->variable];
    const struct variable_sync *sync = &s->strategy->variables[gradient->variable];
    size_t i = 0;
    for (; i < n && items[i].place == items->place; i++) {
        double *row = rows + i * FEATURE_SHARD_COUNT;
        if (i == 0 || sync->each) {
            write_variable(s, variable, row);
            write_sync(s, items[i].sync, row);
            write_times(s, gradient, items[i].sync, row);
        } else {
            memcpy(row, rows, FEATURE_SHARD_COUNT * sizeof *row);
        }
        write_facts(s, &items[i].facts, row);
    }
    for (uint32_t k = 0; k < sync_parts(sync); k++)
        if (sync_part(sync, k)->kind == SYNC_ALL_REDUCE)
            s->groups[sync_part(sync, k)->group].placed_bytes +=
                (double)plan_part_bytes(s->strategy, variable, sync, k);
    return i;
}

static enum status write_all(struct survey *s, const struct shards *shards, struct features *out, struct error *err) {
    size_t n = shards->n;
    out->shards = arena_alloc(&out->arena, n, FEATURE_SHARD_COUNT * sizeof *out->shards);
    out->variable = arena_alloc(&out->arena, n, sizeof *out->variable);
    out->weight = arena_alloc(&out->arena, n, sizeof *out->weight);
    if (!out->shards || !out->variable || !out->weight)
        return error_no_memory(err);
    out->n_shards = n;
    for (size_t i = 0; i < n; i++) {
        out->variable[i] = shards->items[i].place;
        out->weight[i] = shards->items[i].weight;
    }
    for (size_t i = 0; i < n;)
        i += write_rows(s, shards->items + i, n - i, out->shards + i * FEATURE_SHARD_COUNT);
    return ST_OK;
}

/* ---- over shards ---- */

enum { TERMS = 3 };

/* max and mean of equation 2's terms, elementwise, over the shards of one architecture. */
static void sum_up(const struct shards *shards, enum sync_kind kind, double *global) {
    double most[TERMS] = {0}, sum[TERMS] = {0}, weight = 0;
    for (size_t i = 0; i < shards->n; i++) {
        const struct shard *shard = &shards->items[i];
        const struct facts *f = &shard->facts;
        if (shard->sync->kind != kind)
            continue;
        bool served = kind == SYNC_PARAMETER_SERVER;
        const double term[TERMS] = {served ? f->ps_transfer_us : f->cc_startup_us,
                                    served ? f->ps_overheads : f->cc_transfer_us,
                                    served ? f->ps_constants : f->cc_messages};
        weight += shard->weight;
        for (size_t t = 0; t < TERMS; t++) {
            most[t] = fmax(most[t], term[t]);
            sum[t] += shard->weight * term[t];
        }
    }
    for (size_t t = 0; t < TERMS; t++) {
        global[2 * t] = feature_log2(most[t]);
        global[2 * t + 1] = feature_log2(feature_share(sum[t], weight));
    }
}

enum status features_of_shards(struct survey *s, struct features *out, struct error *err) {
    struct shards shards = {.items = NULL};
    enum status status = GROW(&shards.items, &shards.capacity, out->n_variables) ? ST_OK : error_no_memory(err);
    for (uint32_t i = 0; i < out->n_variables && !status; i++) {
        out->partitions += s->strategy->variables[s->gradients[i].variable].shards;
        if (!add_variable(s, i, &shards))
            status = error_no_memory(err);
    }
    if (!status)
        status = write_all(s, &shards, out, err);
    if (!status) {
        sum_up(&shards, SYNC_PARAMETER_SERVER, &GLOBAL(out, log2_ps_transfer_max_us));
        sum_up(&shards, SYNC_ALL_REDUCE, &GLOBAL(out, log2_cc_startup_max_us));
    }
    free(shards.items);
    return status;
}
