/* Traits come from the strategy and its plan. O(variables + groups + messages). */
#include "report/traits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "strategy/consistency_text.h"

const char *trait_label(enum trait trait) {
    static const char *const words[] = {
#define X(constant, text, plain) text,
        TRAIT_TABLE(X)
#undef X
    };
    return words[trait];
}

bool trait_is_shown(enum trait trait, size_t n, char traits[][TRAITS][TRAIT_ROOM]) {
    static const char *const plain[] = {
#define X(constant, text, plain) plain,
        TRAIT_TABLE(X)
#undef X
    };
    for (size_t k = 0; k < n; k++)
        if (!plain[trait] || strcmp(traits[k][trait], plain[trait]) != 0)
            return true;
    return false;
}

/* The range of sizes seen, 0 being whole. */
struct range {
    uint64_t low, high;
    bool whole, any;
};

static void widen(struct range *range, uint64_t bytes) {
    if (!bytes) {
        range->whole = true;
        return;
    }
    range->low = range->any && range->low < bytes ? range->low : bytes;
    range->high = range->any && range->high > bytes ? range->high : bytes;
    range->any = true;
}

static void write_range(const struct range *range, char out[TRAIT_ROOM]) {
    char low[32], high[32];
    if (!range->any) {
        snprintf(out, TRAIT_ROOM, "none");
        return;
    }
    units_format_bytes(range->low, low, sizeof low);
    units_format_bytes(range->high, high, sizeof high);
    if (range->low == range->high)
        snprintf(out, TRAIT_ROOM, "%s%s", low, range->whole ? ", some whole" : "");
    else
        snprintf(out, TRAIT_ROOM, "%s to %s%s", low, high, range->whole ? ", some whole" : "");
}

static void write_schedule(const struct strategy *s, char out[TRAITS][TRAIT_ROOM]) {
    char bytes[32];
    static const char *const orders[] = {"as they become ready (fifo)", "what is needed first goes first (priority)",
                                         "by an exact schedule (preemptive)"};
    snprintf(out[TRAIT_ORDER], TRAIT_ROOM, "%s%s", orders[s->policy], s->pulls_by_priority ? ", pulls too" : "");
    if (s->credit_bytes == CREDIT_UNLIMITED)
        snprintf(out[TRAIT_CREDIT], TRAIT_ROOM, "no limit");
    else if (!s->credit_bytes)
        snprintf(out[TRAIT_CREDIT], TRAIT_ROOM, "one message");
    else
        snprintf(out[TRAIT_CREDIT], TRAIT_ROOM, "%s", units_format_bytes(s->credit_bytes, bytes, sizeof bytes));
    snprintf(out[TRAIT_BARRIER], TRAIT_ROOM, "%s",
             s->cross_iteration ? "communication runs on" : "barrier: all must have arrived");
}

static void write_groups(const struct strategy *s, char out[TRAITS][TRAIT_ROOM]) {
    uint32_t counts[ALGORITHM_COUNT] = {0};
    size_t at = 0;
    snprintf(out[TRAIT_GROUPS], TRAIT_ROOM, s->n_groups ? "%u" : "none", s->n_groups);
    snprintf(out[TRAIT_ALGORITHMS], TRAIT_ROOM, "none");
    for (uint32_t g = 0; g < s->n_groups; g++)
        counts[s->groups[g].algorithm]++;
    for (int a = 0; a < ALGORITHM_COUNT && at < TRAIT_ROOM; a++)
        if (counts[a])
            at += (size_t)snprintf(out[TRAIT_ALGORITHMS] + at, TRAIT_ROOM - at, "%s%s", at ? ", " : "",
                                   algorithm_name((enum algorithm)a));
}

static void write_partitions(const struct strategy *s, char out[TRAITS][TRAIT_ROOM]) {
    struct range range = {0};
    for (uint32_t g = 0; g < s->n_groups; g++)
        widen(&range, s->groups[g].partition_bytes);
    for (uint32_t v = 0; v < s->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&s->variables[v]); k++)
            if (sync_part(&s->variables[v], k)->kind == SYNC_PARAMETER_SERVER)
                widen(&range, sync_part(&s->variables[v], k)->partition_bytes);
    write_range(&range, out[TRAIT_PARTITIONS]);
}

/* ---- what is in parts ---- */

/* Add to a list what so many of the groups have: by its name alone where all have it. */
static void add_share(char out[TRAIT_ROOM], const char *what, uint32_t n, uint32_t all) {
    const size_t at = strlen(out);
    if (n == all)
        snprintf(out, TRAIT_ROOM, "%s", what);
    else if (n)
        snprintf(out + at, TRAIT_ROOM - at, "%s%s in %u of %u groups", at ? ", " : "", what, n, all);
}

/* The most is named first. */
static void write_kept_alone(const struct strategy *s, const struct plan *plan, char out[TRAIT_ROOM]) {
    static const char *const words[SHARDED_COUNT] = {[SHARDED_none] = "nothing",
                                                     [SHARDED_optimizer] = "optimizer’s states",
                                                     [SHARDED_gradients] = "gradients",
                                                     [SHARDED_parameters] = "parameters"};
    uint32_t counts[SHARDED_COUNT] = {0};
    for (uint32_t g = 0; g < s->n_groups; g++)
        counts[s->groups[g].sharded]++;
    for (int k = SHARDED_COUNT; k-- > 0;)
        add_share(out, words[k], counts[k], s->n_groups);
    if (plan->any_server && counts[SHARDED_none] < s->n_groups)
        snprintf(out + strlen(out), TRAIT_ROOM - strlen(out), ", not of what is served");
}

/* Among which devices what is in parts is. "shard_ranks" is of parameters alone. */
static void write_shards(const struct strategy *s, const struct plan *plan, char out[TRAIT_ROOM]) {
    bool any = false;
    for (uint32_t g = 0; g < s->n_groups; g++)
        any |= s->groups[g].sharded != SHARDED_none;
    if (s->shard_ranks)
        snprintf(out, TRAIT_ROOM, "%u devices, with %u replicas", s->shard_ranks,
                 plan->cluster->n_devices / s->shard_ranks);
    else
        snprintf(out, TRAIT_ROOM, any ? "all devices" : "none");
}

/* Groups of which parts are kept among one number of devices are one entry. */
static void write_gathered(const struct strategy *s, uint32_t sharded, char out[TRAIT_ROOM]) {
    uint32_t kept = 0, in_parts = 0, least = UINT32_MAX, most = 0;
    char words[64];
    for (uint32_t g = 0; g < s->n_groups; g++) {
        const uint32_t ranks = s->groups[g].reshard_ranks;
        kept += s->groups[g].keeps_gathered;
        if (!ranks)
            continue;
        in_parts++;
        least = ranks < least ? ranks : least;
        most = ranks > most ? ranks : most;
    }
    if (least < most)
        snprintf(words, sizeof words, "kept in parts among %u to %u devices", least, most);
    else
        snprintf(words, sizeof words, "kept in parts among %u devices", most);
    add_share(out, "freed after it", sharded - kept - in_parts, sharded);
    add_share(out, words, in_parts, sharded);
    add_share(out, "kept for the backward pass", kept, sharded);
}

static const char *type_of(enum carried carried) {
    return carried == CARRIED_own ? "the model’s" : carried_name(carried);
}

static void write_types(const struct strategy *s, uint32_t sharded, char out[TRAIT_ROOM]) {
    char words[96];
    for (int gathered = 0; gathered < CARRIED_COUNT; gathered++)
        for (int summed = 0; summed < CARRIED_COUNT; summed++) {
            uint32_t n = 0;
            for (uint32_t g = 0; g < s->n_groups; g++)
                n += s->groups[g].sharded == SHARDED_parameters && (int)s->groups[g].gathered_as == gathered &&
                     (int)s->groups[g].summed_as == summed;
            snprintf(words, sizeof words, "gathered as %s, summed as %s", type_of((enum carried)gathered),
                     type_of((enum carried)summed));
            add_share(out, words, n, sharded);
        }
}

static void write_micro_batches(const struct strategy *s, char out[TRAIT_ROOM]) {
    static const char *const words[SYNCHRONIZE_COUNT] = {[SYNCHRONIZE_last] = "the last",
                                                         [SYNCHRONIZE_each] = "each",
                                                         [SYNCHRONIZE_each_all_reduce_last] =
                                                             "each, by replicas in the last"};
    if (s->micro_batches > 1)
        snprintf(out, TRAIT_ROOM, "%u, gradients summed in %s", s->micro_batches, words[s->synchronize]);
    else
        snprintf(out, TRAIT_ROOM, "one");
}

static void write_parts(const struct strategy *s, const struct plan *plan, char out[TRAITS][TRAIT_ROOM]) {
    const uint32_t sharded = strategy_sharded_parameters(s);
    write_micro_batches(s, out[TRAIT_MICRO_BATCHES]);
    write_kept_alone(s, plan, out[TRAIT_KEPT_ALONE]);
    write_shards(s, plan, out[TRAIT_SHARDS]);
    if (!sharded) {
        snprintf(out[TRAIT_GATHERED], TRAIT_ROOM, "none");
        snprintf(out[TRAIT_AHEAD], TRAIT_ROOM, "none");
        snprintf(out[TRAIT_TYPES], TRAIT_ROOM, "none");
        return;
    }
    write_gathered(s, sharded, out[TRAIT_GATHERED]);
    snprintf(out[TRAIT_AHEAD], TRAIT_ROOM, "%u in the forward pass, %u in the backward pass", s->forward_prefetch,
             s->backward_prefetch);
    write_types(s, sharded, out[TRAIT_TYPES]);
}

/* ---- what is served ---- */

static uint32_t count_servers(const struct plan *plan) {
    uint64_t seen[CLUSTER_MAX_NODES / 64 + 1] = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_messages; i++) {
        const struct message *message = &plan->messages[i];
        const uint32_t server = message->kind == SYNC_PARAMETER_SERVER ? message->server : 0;
        uint64_t *word = &seen[server / 64], bit = UINT64_C(1) << server % 64;
        if (message->kind != SYNC_PARAMETER_SERVER || *word & bit)
            continue;
        *word |= bit;
        n++;
    }
    return n;
}

static void write_served(const struct strategy *s, const struct plan *plan, char out[TRAITS][TRAIT_ROOM]) {
    uint64_t bytes = 0, all = 0;
    uint32_t served = 0, cut = 0;
    unsigned encodings = 0;
    for (uint32_t v = 0; v < s->n_variables; v++) {
        const struct variable_sync *sync = &s->variables[v];
        bool any = false;
        for (uint32_t k = 0; k < sync_parts(sync); k++) {
            const struct variable_sync *part = sync_part(sync, k);
            const uint64_t its = plan_part_bytes(s, &plan->model->variables[v], sync, k);
            all += its;
            bytes += part->kind == SYNC_PARAMETER_SERVER ? its : 0;
            any |= part->kind == SYNC_PARAMETER_SERVER;
            encodings |= 1U << strategy_sum_encoding(s, part);
        }
        served += any;
        cut += sync->shards > 1;
    }
    snprintf(out[TRAIT_SERVED], TRAIT_ROOM, served ? "%u of %u variables, %.0f%% of the bytes" : "none", served,
             s->n_variables, all ? 100.0 * (double)bytes / (double)all : 0);
    snprintf(out[TRAIT_SERVERS], TRAIT_ROOM, served ? "%u" : "none", served ? count_servers(plan) : 0);
    snprintf(out[TRAIT_CUT], TRAIT_ROOM, cut ? "%u of %u" : "none", cut, s->n_variables);
    snprintf(out[TRAIT_ENCODING], TRAIT_ROOM, "%s",
             encodings == 1U << ENCODING_none       ? "as computed"
             : encodings == 1U << ENCODING_f16      ? "16-bit floats"
             : encodings == 1U << ENCODING_bf16     ? "bfloat16"
             : encodings == 1U << ENCODING_int8     ? "8-bit integers in blocks"
             : encodings == 1U << ENCODING_topk     ? "the largest elements alone"
             : encodings == 1U << ENCODING_powersgd ? "products of thin matrices"
             : encodings >> ENCODING_int8           ? "partly by encoders"
                                                    : "partly in 16 bits");
}

/* A list of many nodes is cut. */
static void write_consistency(const struct strategy *s, const struct plan *plan, char out[TRAITS][TRAIT_ROOM]) {
    static const char more[] = " …";
    char *to = out[TRAIT_CONSISTENCY], *cut;
    char *text = consistency_is_plain(&s->consistency) ? NULL : consistency_text(&s->consistency, plan->cluster);
    const int n = snprintf(to, TRAIT_ROOM, "%s", text ? text : consistency_name(s->consistency.kind));
    free(text);
    if (n < TRAIT_ROOM)
        return;
    to[TRAIT_ROOM - sizeof more] = '\0';
    cut = strrchr(to, ' ');
    memcpy(cut ? cut : to, more, sizeof more);
}

void traits_of(const struct strategy *strategy, const struct plan *plan, char out[TRAITS][TRAIT_ROOM]) {
    char largest[32], all[32];
    memset(out, 0, sizeof *out * TRAITS);
    write_consistency(strategy, plan, out);
    write_schedule(strategy, out);
    snprintf(out[TRAIT_MESSAGES], TRAIT_ROOM, "%u, %s in all", plan->n_messages,
             units_format_bytes(plan_moved_bytes(plan), all, sizeof all));
    snprintf(out[TRAIT_LARGEST], TRAIT_ROOM, "%s", units_format_bytes(plan->max_bytes, largest, sizeof largest));
    write_groups(strategy, out);
    write_partitions(strategy, out);
    write_parts(strategy, plan, out);
    write_served(strategy, plan, out);
}
