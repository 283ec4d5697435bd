/* Lowering a strategy; strategy/plan.h says what a plan means.
 *
 * 1. Steps: the execution order is cut before each forward operator that reads a variable and after each backward
 *    operator that produces one. A variable's gate is the first forward step that reads it (the last forward step when
 * none does), its ready is the backward step that produces it.
 * 2. Streams: the gradients of a merge group, in readiness order, form one stream of bytes, and so do the served
 *    variables that share a push, and each other shard under a parameter server. A stream is cut into messages of at
 * most the partition size, and between the shards of one variable, which never share a message. Under preemptive the
 * strategy's slices, each the next bytes of one group's stream, are the messages. Streams are walked twice: to count,
 * then to write.
 *    A message of a sharded group is a reduce-scatter; the all-gathers that follow, or all-reduces among replicas, are
 * written after all streams. Where
 *    parameters are sharded the group's stream is walked again for each all-gather, with times of its own.
 * 3. Micro-batches: all of that is of one pass. Its steps and messages are repeated for each.
 * 4. Order: stable counting sorts by ready and, under priority, by gate; slices stay as they are.
 * Everything is linear in steps + parts + messages. */
#include "strategy/plan.h"

#include <string.h>

#include "strategy/encoder.h"

enum { INDEX_BYTES = 8, CUT_ALIGNMENT = 8 };
enum { SECOND_TO_COME = 0 }; /* of `other`, until second halves have numbers */

_Static_assert((int)STRATEGY_MAX_SLICES <= (int)PLAN_MAX_MESSAGES, "slices are messages");

const char *message_way(const struct message *message) {
    static const char *const ways[] = {[HALF_none] = "all-reduce",
                                       [HALF_scatter] = "reduce-scatter",
                                       [HALF_gather] = "all-gather",
                                       [HALF_replicas] = "all-reduce among replicas"};
    return message->encoder ? encoding_name(message->encoder) : ways[message->half];
}

const char *plan_phase(const struct plan *plan, uint32_t step) {
    if (plan_ends_pass(plan, step))
        return plan_is_update(plan, step) ? "update" : "end of micro-batch";
    return plan_step_in_pass(plan, step) < plan->n_forward_steps ? "forward" : "backward";
}

uint64_t plan_shard_rows(uint64_t dim, uint32_t shards, uint32_t k) {
    return dim / shards + (k < dim % shards);
}

/* A sparse gradient that is not all-reduced is its touched rows (spread evenly over the shards of axis 0) and an index
 * for each. */
uint64_t plan_shard_bytes(const struct strategy *strategy, const struct variable *v, const struct variable_sync *of,
                          uint32_t k) {
    const struct variable_sync *sync = sync_part(of, k);
    uint64_t element = dtype_bytes(strategy_sum_dtype(strategy, v, sync));
    uint32_t axis = sync->shards > 1 ? sync->axis : 0; /* unsealed strategies may leave any axis where nothing is cut */
    uint64_t dim = v->rank ? v->shape[axis] : 1;
    uint64_t rows = plan_shard_rows(dim, sync->shards, k);
    if (!strategy_moves_rows(strategy, v, sync))
        return v->elements / dim * rows * element;
    uint64_t row_bytes = v->elements / v->shape[0] * element;
    if (axis == 0)
        return plan_shard_rows(v->sparse_rows, sync->shards, k) * (row_bytes + INDEX_BYTES);
    return v->sparse_rows * (row_bytes / dim * rows + INDEX_BYTES);
}

uint64_t plan_gradient_bytes(const struct strategy *strategy, const struct variable *v,
                             const struct variable_sync *sync) {
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < sync->shards; k++)
        bytes += plan_shard_bytes(strategy, v, sync, k);
    return bytes;
}

uint64_t plan_part_bytes(const struct strategy *strategy, const struct variable *v, const struct variable_sync *sync,
                         uint32_t k) {
    return sync->each ? plan_shard_bytes(strategy, v, sync, k) : plan_gradient_bytes(strategy, v, sync);
}

/* Shards of a variable that are synchronized alike. */
struct part {
    const struct variable_sync *sync;
    uint32_t variable, first, end; /* shards first .. end - 1 */
    uint64_t offset_bytes;         /* of the first, in the variable's gradient */
};

/* How far the slices of a group have got. */
struct cursor {
    uint32_t member; /* place in members[] */
    uint64_t offset; /* into that part */
};

/* When messages of a group with sharded parameters may start, what waits for them, and among how many devices they
 * move. */
struct times {
    uint32_t ready, gate, ranks;
};

/* What the steps are to a group with sharded parameters. */
struct gathering {
    uint32_t first_forward, first_backward, last_backward;
    struct times forward, backward, sums;
};

/* Scratch of one lowering; all from the plan's arena. */
struct lowering {
    struct plan *plan;
    const struct strategy *strategy;
    double *step_us;              /* the plan's */
    uint32_t *ready, *gate;       /* by variable */
    uint32_t *read;               /* by variable: the first forward step that reads it */
    struct gathering *gatherings; /* by group; NULL where no parameters are sharded */
    uint32_t n_gathered;          /* groups with sharded parameters, in the orders in which the passes need them: */
    const uint32_t *forward_order, *backward_order;
    const struct times *times; /* of what is streamed; NULL: those of its variables */
    struct part *parts;        /* of all variables, in the order of ready */
    uint32_t n_parts;
    uint32_t *members, *first; /* parts by group, then by push, in that order; with where the last one ends */
    struct cursor *cursors;    /* by group; NULL unless there are slices */
    struct message *messages;  /* in stream order; NULL while counting */
    struct piece *pieces;      /* NULL while counting */
    uint64_t n_messages, n_pieces;
    uint64_t n_split;     /* messages of sharded groups */
    struct message open;  /* the message being filled; bytes == 0: none */
    enum dtype own, sums; /* of sharded parameters in it: in the model, and as gradients travel */
    uint64_t partition;
};

/* Stable counting sort: out gets in[0..n) (or 0..n-1 when in is NULL) in rising order of keys[item]; first[k] is where
 * key k begins, first[n_keys] = n. */
static void sort_by_key(uint32_t n, const uint32_t *in, const uint32_t *keys, uint32_t n_keys, uint32_t *out,
                        uint32_t *first) {
    memset(first, 0, (n_keys + 1) * sizeof *first);
    for (uint32_t i = 0; i < n; i++)
        first[keys[i] + 1]++;
    for (uint32_t k = 0; k < n_keys; k++)
        first[k + 1] += first[k];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t item = in ? in[i] : i;
        out[first[keys[item]]++] = item;
    }
    memmove(first + 1, first, n_keys * sizeof *first);
    first[0] = 0;
}

static bool alloc_u32(struct arena *arena, uint32_t **out, uint64_t n) {
    return (*out = arena_alloc(arena, n, sizeof **out));
}

/* ---- steps ---- */

static enum status cut_steps(struct lowering *low, struct error *err) {
    struct plan *plan = low->plan;
    const struct model *model = plan->model;
    double *step_us = arena_alloc(&plan->arena, model->n_operators + 2, sizeof *step_us);
    uint32_t *step_of;
    if (!step_us || !alloc_u32(&plan->arena, &step_of, model->n_operators))
        return error_no_memory(err);
    memset(low->read, 0xff, model->n_variables * sizeof *low->read);
    uint32_t step = 0;
    bool empty = true; /* the current step has no operator yet */
    for (uint32_t i = 0; i < model->n_operators; i++) {
        const struct operator* op = & model->operators[model->order[i]];
        if (!empty && (op->n_reads || i == model->n_forward))
            step++;
        if (i == model->n_forward)
            plan->n_forward_steps = step;
        step_us[step] += op->time_us;
        step_of[model->order[i]] = step;
        empty = false;
        for (uint32_t r = 0; r < op->n_reads; r++)
            if (low->read[op->reads[r]] == UINT32_MAX)
                low->read[op->reads[r]] = step;
        for (uint32_t p = 0; p < op->n_produces; p++)
            low->ready[op->produces[p]] = step;
        if (op->n_produces) {
            step++;
            empty = true;
        }
    }
    plan->n_steps = step + !empty + plan->ends_in_update;
    plan->step_us = low->step_us = step_us;
    plan->step_of = step_of;
    const uint32_t barrier = plan->ends_in_update ? plan->n_steps - 1 : 0;
    for (uint32_t v = 0; v < model->n_variables; v++) {
        if (low->read[v] == UINT32_MAX)
            low->read[v] = plan->n_forward_steps - 1;
        low->gate[v] = plan->cross_iteration ? low->read[v] : barrier;
    }
    return ST_OK;
}

/* ---- streams ---- */

/* The open message is whole: what an encoder makes of it. */
static void encode_message(struct message *open) {
    if (!open->encoder)
        return;
    open->unencoded_bytes = open->bytes;
    if (open->encoder != ENCODING_powersgd)
        open->encoded_bytes = encoder_bytes(open->encoder, open->figure, open->bytes / dtype_bytes(open->dtype));
    open->bytes = open->encoded_bytes;
}

static uint64_t wider(enum dtype a, enum dtype b) {
    return dtype_bytes(a) > dtype_bytes(b) ? dtype_bytes(a) : dtype_bytes(b);
}

/* What a device converts between its part of the message and its shard, which has the model's type. */
static uint64_t converted_bytes(const struct message *message, enum dtype own, uint32_t parts) {
    const uint64_t elements = message_elements(message);
    return message->dtype == own ? 0 : (elements / parts + (elements % parts > 0)) * wider(message->dtype, own);
}

/* The open message is whole, and counted in the type of the sums: an all-gather may have another. */
static void carry_message(struct lowering *low) {
    struct message *open = &low->open;
    const enum dtype sums = low->sums;
    const uint32_t n = low->plan->cluster->n_devices;
    if (open->half == HALF_gather && dtype_bytes(sums) != dtype_bytes(open->dtype)) {
        open->piece_bytes = open->bytes;
        open->bytes = open->bytes / dtype_bytes(sums) * dtype_bytes(open->dtype);
    }
    if (open->half == HALF_gather || open->ranks == 0) /* else replicas have the sum at last */
        open->converted_bytes = converted_bytes(open, low->own, open->ranks ? open->ranks : n);
}

/* Whether a second half or an all-reduce among replicas follows it. */
static bool brings_another(const struct message *message) {
    return message->half == HALF_scatter && (message->other != NO_MESSAGE || message->ranks > 0);
}

static void close_message(struct lowering *low) {
    if (!low->open.bytes)
        return;
    low->open.n_pieces = (uint32_t)low->n_pieces - low->open.first_piece;
    encode_message(&low->open);
    if (low->times)
        carry_message(low);
    if (low->messages)
        low->messages[low->n_messages] = low->open;
    low->n_messages++;
    low->n_split += brings_another(&low->open);
    low->open.bytes = 0;
}

/* The open message has all of this variable, by powersgd. */
static void count_thin(struct message *open, const struct variable *v) {
    const uint64_t second = encoder_second_elements(v, open->figure) * sizeof(float);
    open->encoded_bytes += encoder_first_elements(v, open->figure) * sizeof(float) + second;
    open->second_bytes += second;
}

/* `bytes` of the open message are of this variable. */
static void count_encoded(struct lowering *low, uint32_t variable, uint64_t bytes) {
    const struct variable *v = &low->plan->model->variables[variable];
    const enum dtype from = message_dtype_in_use(&low->open, v);
    if (low->open.encoder == ENCODING_powersgd)
        count_thin(&low->open, v);
    if (from == low->open.dtype || low->open.half == HALF_gather)
        return;
    low->open.encoded_bytes += bytes;
    low->open.unencoded_bytes += bytes / dtype_bytes(low->open.dtype) * wider(from, low->open.dtype);
    if (!low->times)
        low->open.lossy = LOSSY_half;
}

static void append_piece(struct lowering *low, const struct message *like, uint32_t variable, uint64_t offset,
                         uint64_t bytes) {
    struct message *open = &low->open;
    if (!open->bytes) {
        *open = *like;
        open->bytes = open->encoded_bytes = open->unencoded_bytes = open->second_bytes = 0;
        open->first_piece = (uint32_t)low->n_pieces;
        open->ready = low->times ? low->times->ready : 0;
        open->gate = low->times ? low->times->gate : UINT32_MAX;
    }
    open->bytes += bytes;
    count_encoded(low, variable, bytes);
    if (!low->times && open->ready < low->ready[variable])
        open->ready = low->ready[variable];
    if (!low->times && open->gate > low->gate[variable])
        open->gate = low->gate[variable];
    if (low->pieces)
        low->pieces[low->n_pieces] = (struct piece){variable, offset, bytes};
    low->n_pieces++;
}

/* When this is true lowering stops: a huge gradient with tiny partitions would take hours to count. */
static bool too_many(const struct lowering *low) {
    return low->n_messages + low->n_split > PLAN_MAX_MESSAGES;
}

static enum status too_many_messages(struct error *err) {
    return error_set(err, ST_INFEASIBLE, "more than %d messages an iteration: use larger partitions or fewer shards",
                     PLAN_MAX_MESSAGES);
}

/* Put `bytes` of a variable's gradient into the stream, closing messages as they fill. */
static void append_run(struct lowering *low, const struct message *like, uint32_t variable, uint64_t offset,
                       uint64_t bytes) {
    while (bytes && !too_many(low)) {
        uint64_t room = low->partition ? low->partition - low->open.bytes : bytes;
        uint64_t part = bytes < room ? bytes : room;
        append_piece(low, like, variable, offset, part);
        offset += part;
        bytes -= part;
        if (low->partition && low->open.bytes == low->partition)
            close_message(low);
    }
}

static void set_partition(struct lowering *low, uint64_t bytes) {
    low->partition = bytes / CUT_ALIGNMENT * CUT_ALIGNMENT;
}

/* Shard k of a part, whose bytes begin at `offset`; returns where they end. */
static uint64_t append_shard(struct lowering *low, const struct message *like, const struct part *part, uint32_t k,
                             uint64_t offset) {
    uint64_t bytes = plan_shard_bytes(low->strategy, &low->plan->model->variables[part->variable], part->sync, k);
    append_run(low, like, part->variable, offset, bytes);
    return offset + bytes;
}

static enum dtype wire_dtype(const struct lowering *low, const struct part *part) {
    return strategy_sum_dtype(low->strategy, &low->plan->model->variables[part->variable], part->sync);
}

/* In which types a message of sharded parameters is, beside that of the sums, which `like` has. What several
 * micro-batches add up before it travels they add up in the type of the sums. */
static void carry_like(struct lowering *low, const struct group *group, enum dtype own, struct message *like) {
    const struct plan *plan = low->plan;
    const bool adds_up = plan->micro_batches > 1 && !plan->sums_each;
    const bool gathers = like->half == HALF_gather;
    const enum carried carried = gathers ? group->gathered_as : group->summed_as;
    low->own = own;
    low->sums = like->dtype;
    like->dtype = carried_dtype(carried, own);
    like->in_use = gathers || !adds_up ? group->gathered_as : group->summed_as;
    like->lossy = carried_rounds(carried, own) ? LOSSY_half : LOSSY_none;
}

static void stream_group(struct lowering *low, uint32_t g, enum half half) {
    const struct strategy *s = low->strategy;
    struct message like = {.kind = SYNC_ALL_REDUCE,
                           .algorithm = s->groups[g].algorithm,
                           .half = half,
                           .other = half == HALF_none || low->times ? NO_MESSAGE : SECOND_TO_COME,
                           .ranks = low->times ? low->times->ranks : 0,
                           .stride = low->times && low->times->ranks > 0,
                           .shards_gradients = s->groups[g].sharded == SHARDED_gradients};
    uint32_t last = UINT32_MAX; /* variable in the stream */
    set_partition(low, s->groups[g].partition_bytes);
    for (uint32_t i = low->first[g]; i < low->first[g + 1]; i++) {
        const struct part *part = &low->parts[low->members[i]];
        uint64_t offset = part->offset_bytes;
        like.dtype = wire_dtype(low, part);
        like.encoder = encoding_is_encoder(part->sync->encoding) ? part->sync->encoding : ENCODING_none;
        like.figure = part->sync->figure;
        like.lossy = encoding_lossiness(like.encoder);
        if (low->times)
            carry_like(low, &s->groups[g], low->plan->model->variables[part->variable].dtype, &like);
        for (uint32_t k = part->first; k < part->end && !too_many(low); k++) {
            if (part->variable == last)
                close_message(low);
            offset = append_shard(low, &like, part, k, offset);
            last = part->variable;
        }
    }
    close_message(low);
}

static void stream_group_at(struct lowering *low, uint32_t g, enum half half, const struct times *times) {
    low->times = times;
    stream_group(low, g, half);
    low->times = NULL;
}

static bool keeps_gathered(const struct lowering *low, const struct group *group) {
    return group->keeps_gathered || (group->reshard_ranks == 1 && low->plan->cluster->n_devices > 1);
}

/* All messages of groups. Of those that are ready together reduce-scatters go first, as FSDP2 launches them, and then
 * what is needed first. */
static void stream_groups(struct lowering *low) {
    const struct strategy *s = low->strategy;
    for (uint32_t g = 0; g < s->n_groups; g++)
        stream_group_at(low, g, s->groups[g].sharded ? HALF_scatter : HALF_none,
                        s->groups[g].sharded == SHARDED_parameters ? &low->gatherings[g].sums : NULL);
    for (uint32_t i = 0; i < low->n_gathered; i++)
        stream_group_at(low, low->forward_order[i], HALF_gather, &low->gatherings[low->forward_order[i]].forward);
    for (uint32_t i = 0; i < low->n_gathered; i++)
        if (!keeps_gathered(low, &s->groups[low->backward_order[i]]))
            stream_group_at(low, low->backward_order[i], HALF_gather,
                            &low->gatherings[low->backward_order[i]].backward);
}

/* What all messages of a served part have in common. */
static struct message like_served(const struct lowering *low, const struct part *part) {
    return (struct message){.kind = SYNC_PARAMETER_SERVER,
                            .server = part->sync->servers[0],
                            .other = NO_MESSAGE,
                            .local_reduction = part->sync->local_reduction,
                            .dtype = wire_dtype(low, part)};
}

/* Served variables that share a push, like a merge group. */
static void stream_push(struct lowering *low, uint32_t push) {
    const uint32_t *first = &low->first[low->strategy->n_groups + push];
    const struct part *head = &low->parts[low->members[*first]];
    const struct message like = like_served(low, head);
    set_partition(low, head->sync->partition_bytes);
    for (uint32_t i = first[0]; i < first[1]; i++)
        append_shard(low, &like, &low->parts[low->members[i]], 0, 0);
    close_message(low);
}

static void stream_served(struct lowering *low, const struct part *part) {
    struct message like = like_served(low, part);
    uint64_t offset = part->offset_bytes;
    set_partition(low, part->sync->partition_bytes);
    for (uint32_t k = part->first; k < part->end && !too_many(low); k++) {
        like.server = part->sync->servers[k % part->sync->n_servers];
        const uint64_t end = append_shard(low, &like, part, k, offset);
        if (end == offset)
            break; /* fewer touched rows than shards: this one and the rest are empty */
        close_message(low);
        offset = end;
    }
}

/* strategy_check has seen that the slices of a group add up to its members. */
static void stream_slice(struct lowering *low, const struct slice *slice) {
    const struct strategy *s = low->strategy;
    struct cursor *at = &low->cursors[slice->group];
    struct message like = {
        .kind = SYNC_ALL_REDUCE, .algorithm = s->groups[slice->group].algorithm, .other = NO_MESSAGE};
    for (uint64_t left = slice->bytes; left;) {
        const struct part *part = &low->parts[low->members[at->member]];
        const struct variable *variable = &low->plan->model->variables[part->variable];
        uint64_t rest = plan_shard_bytes(s, variable, part->sync, 0) - at->offset;
        uint64_t bytes = left < rest ? left : rest;
        like.dtype = wire_dtype(low, part);
        append_piece(low, &like, part->variable, at->offset, bytes);
        left -= bytes;
        *at = bytes < rest ? (struct cursor){at->member, at->offset + bytes} : (struct cursor){at->member + 1, 0};
    }
    close_message(low);
}

static void stream_slices(struct lowering *low) {
    for (uint32_t g = 0; g < low->strategy->n_groups; g++)
        low->cursors[g] = (struct cursor){low->first[g], 0};
    for (uint32_t i = 0; i < low->strategy->n_slices; i++)
        stream_slice(low, &low->strategy->slices[i]);
}

static void stream_all(struct lowering *low) {
    low->n_messages = low->n_pieces = low->n_split = 0;
    if (low->cursors) {
        stream_slices(low);
        return;
    }
    stream_groups(low);
    for (uint32_t i = 0; i < low->n_parts; i++) {
        const struct variable_sync *sync = low->parts[i].sync;
        if (sync->kind != SYNC_PARAMETER_SERVER)
            continue;
        if (!sync->push)
            stream_served(low, &low->parts[i]);
        else if (i == low->members[low->first[low->strategy->n_groups + sync->push]])
            stream_push(low, sync->push);
    }
}

/* List the parts of all variables, in the order of readiness. */
static enum status list_parts(struct lowering *low, struct error *err) {
    struct plan *plan = low->plan;
    const struct strategy *s = low->strategy;
    uint32_t *order, *first;
    if (!alloc_u32(&plan->arena, &order, s->n_variables) || !alloc_u32(&plan->arena, &first, plan->n_steps + 1))
        return error_no_memory(err);
    sort_by_key(s->n_variables, NULL, low->ready, plan->n_steps, order, first);
    uint64_t n = 0;
    for (uint32_t v = 0; v < s->n_variables; v++)
        n += sync_parts(&s->variables[v]);
    if (n > PLAN_MAX_MESSAGES)
        return error_set(err, ST_INFEASIBLE, "more than %d shards with a synchronizer of their own", PLAN_MAX_MESSAGES);
    struct part *part = low->parts = arena_alloc(&plan->arena, n, sizeof *part);
    if (!part)
        return error_no_memory(err);
    low->n_parts = (uint32_t)n;
    for (uint32_t i = 0; i < s->n_variables; i++) {
        const struct variable_sync *sync = &s->variables[order[i]];
        uint64_t offset = 0;
        for (uint32_t k = 0; k < sync_parts(sync); k++, part++) {
            *part = (struct part){sync_part(sync, k), order[i], k, sync->each ? k + 1 : sync->shards, offset};
            if (sync->each)
                offset += plan_shard_bytes(s, &plan->model->variables[order[i]], sync, k);
        }
    }
    return ST_OK;
}

static uint32_t last_push(const struct lowering *low) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < low->n_parts; i++)
        if (low->parts[i].sync->kind == SYNC_PARAMETER_SERVER && low->parts[i].sync->push > most)
            most = low->parts[i].sync->push;
    return most;
}

/* The members of each group and push in the order of readiness. */
static enum status order_parts(struct lowering *low, struct error *err) {
    struct plan *plan = low->plan;
    uint32_t n_groups = low->strategy->n_groups, n = low->n_parts, *keys;
    uint32_t n_keys = n_groups + 1 + last_push(low); /* what is served and goes alone is push 0 */
    if (!alloc_u32(&plan->arena, &keys, n) || !alloc_u32(&plan->arena, &low->members, n) ||
        !alloc_u32(&plan->arena, &low->first, n_keys + 1))
        return error_no_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        const struct variable_sync *sync = low->parts[i].sync;
        keys[i] = sync->kind == SYNC_ALL_REDUCE ? sync->group : n_groups + sync->push;
    }
    sort_by_key(n, NULL, keys, n_keys, low->members, low->first);
    if (plan->policy == POLICY_preemptive) {
        low->cursors = arena_alloc(&plan->arena, n_groups, sizeof *low->cursors);
        return low->cursors ? ST_OK : error_no_memory(err);
    }
    return ST_OK;
}

/* ---- sharded parameters ---- */

static void find_spans(struct lowering *low) {
    for (uint32_t g = 0; g < low->strategy->n_groups; g++) {
        struct gathering *of = &low->gatherings[g];
        *of = (struct gathering){.first_forward = UINT32_MAX, .first_backward = UINT32_MAX};
        for (uint32_t i = low->first[g]; i < low->first[g + 1]; i++) {
            const uint32_t v = low->parts[low->members[i]].variable;
            of->first_forward = low->read[v] < of->first_forward ? low->read[v] : of->first_forward;
            of->first_backward = low->ready[v] < of->first_backward ? low->ready[v] : of->first_backward;
            of->last_backward = low->ready[v] > of->last_backward ? low->ready[v] : of->last_backward;
        }
    }
}

/* The groups with sharded parameters in rising order of a step of theirs, which `key` gives; returns how many. */
static uint32_t sort_gatherings(const struct lowering *low, uint32_t (*key)(const struct gathering *), uint32_t *keys,
                                uint32_t *order, uint32_t *first) {
    const struct strategy *s = low->strategy;
    const uint32_t last = low->plan->n_steps;
    for (uint32_t g = 0; g < s->n_groups; g++)
        keys[g] = s->groups[g].sharded == SHARDED_parameters && low->first[g + 1] > low->first[g]
                      ? key(&low->gatherings[g])
                      : last;
    sort_by_key(s->n_groups, NULL, keys, last + 1, order, first);
    return first[last];
}

static uint32_t first_forward(const struct gathering *of) {
    return of->first_forward;
}

static uint32_t first_backward(const struct gathering *of) {
    return of->first_backward;
}

static uint32_t last_backward(const struct gathering *of) {
    return of->last_backward;
}

/* When each group's parameters are gathered and its gradients summed; strategy/plan.h says it. */
static enum status time_gatherings(struct lowering *low, struct error *err) {
    struct plan *plan = low->plan;
    const struct strategy *s = low->strategy;
    const uint32_t update = plan->n_steps - 1, ahead = s->forward_prefetch, behind = s->backward_prefetch;
    uint32_t *keys, *first, *forward, *backward, *sums;
    struct gathering *of = low->gatherings = arena_alloc(&plan->arena, s->n_groups, sizeof *of);
    if (!of || !alloc_u32(&plan->arena, &keys, s->n_groups) || !alloc_u32(&plan->arena, &first, plan->n_steps + 2) ||
        !alloc_u32(&plan->arena, &forward, s->n_groups) || !alloc_u32(&plan->arena, &backward, s->n_groups) ||
        !alloc_u32(&plan->arena, &sums, s->n_groups))
        return error_no_memory(err);
    find_spans(low);
    const uint32_t share = s->shard_ranks < plan->cluster->n_devices ? s->shard_ranks : 0;
    const uint32_t n = sort_gatherings(low, first_forward, keys, forward, first);
    sort_gatherings(low, first_backward, keys, backward, first);
    sort_gatherings(low, last_backward, keys, sums, first);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t before = i < ahead ? 0 : of[forward[i - ahead]].first_forward;
        of[forward[i]].forward = (struct times){before == 0 ? update : before - 1, of[forward[i]].first_forward, share};
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t before = i < behind ? plan->n_forward_steps : of[backward[i - behind]].first_backward;
        const uint32_t kept = s->groups[backward[i]].reshard_ranks;
        const bool fewer = kept > 0 && kept < strategy_shard_group(s, plan->cluster);
        of[backward[i]].backward = (struct times){before - 1, of[backward[i]].first_backward, fewer ? kept : share};
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t next = i + 1 < n ? of[sums[i + 1]].last_backward + 1 : update;
        of[sums[i]].sums = (struct times){of[sums[i]].last_backward, next, share};
    }
    low->n_gathered = n;
    low->forward_order = forward;
    low->backward_order = backward;
    return ST_OK;
}

static void add_second_half(struct lowering *low, struct message *first, struct message *second) {
    second->half = HALF_gather;
    first->other = (uint32_t)low->n_messages;
}

/* The update waits for it. */
static void add_replicas(struct lowering *low, struct message *scatter, struct message *second) {
    const struct plan *plan = low->plan;
    second->half = HALF_replicas;
    second->gate = plan->n_steps - 1;
    second->stride = scatter->ranks;
    second->ranks = plan->cluster->n_devices / scatter->ranks;
    second->converted_bytes = converted_bytes(
        second, plan->model->variables[low->pieces[second->first_piece].variable].dtype, scatter->ranks);
    scatter->replicas = (uint32_t)low->n_messages;
    low->plan->n_replicas++;
}

/* What follows a message of a sharded group, with the same pieces. */
static void add_seconds(struct lowering *low) {
    const uint64_t n = low->n_messages;
    for (uint64_t i = 0; i < n; i++) {
        struct message *first = &low->messages[i], *second = &low->messages[low->n_messages];
        if (!brings_another(first) || !plan_is_last_pass(low->plan, first->ready))
            continue;
        *second = *first;
        second->other = (uint32_t)i;
        if (first->ranks > 0)
            add_replicas(low, first, second);
        else
            add_second_half(low, first, second);
        low->n_messages++;
    }
}

/* ---- accumulation ---- */

static bool is_in_pass(const struct plan *plan, const struct message *message, uint32_t pass) {
    return plan->sums_each || pass + 1 == plan->micro_batches || message->half == HALF_gather;
}

/* The same message in a later pass. A gate that comes before what it waits for is one of the pass after that. */
static struct message in_pass(const struct plan *plan, const struct message *message, uint32_t pass) {
    const uint32_t steps = plan->n_steps, after = message->gate <= message->ready ? pass + 1 : pass;
    struct message shifted = *message;
    shifted.ready += pass * steps;
    shifted.gate += after % plan->micro_batches * steps;
    if (pass + 1 < plan->micro_batches)
        shifted.other = NO_MESSAGE; /* the update comes after the last pass */
    return shifted;
}

/* From the messages of one pass, those of all. */
static enum status repeat_messages(struct lowering *low, struct error *err) {
    struct plan *plan = low->plan;
    const uint64_t n = low->n_messages;
    uint64_t all = 0;
    for (uint64_t i = 0; i < n; i++)
        all += is_in_pass(plan, &low->messages[i], 0) ? plan->micro_batches : 1;
    if (all + low->n_split > PLAN_MAX_MESSAGES)
        return too_many_messages(err);
    struct message *messages = arena_alloc(&plan->arena, all + low->n_split, sizeof *messages);
    if (!messages)
        return error_no_memory(err);
    low->n_messages = 0;
    for (uint32_t pass = 0; pass < plan->micro_batches; pass++)
        for (uint64_t i = 0; i < n; i++)
            if (is_in_pass(plan, &low->messages[i], pass))
                messages[low->n_messages++] = in_pass(plan, &low->messages[i], pass);
    low->messages = messages;
    return ST_OK;
}

/* And likewise the steps. */
static enum status repeat_steps(struct lowering *low, struct error *err) {
    struct plan *plan = low->plan;
    const uint64_t n = (uint64_t)plan->n_steps * plan->micro_batches;
    if (n > PLAN_MAX_MESSAGES)
        return error_set(err, ST_INFEASIBLE, "more than %d steps an iteration: use fewer micro-batches",
                         PLAN_MAX_MESSAGES);
    double *step_us = arena_alloc(&plan->arena, n, sizeof *step_us);
    if (!step_us)
        return error_no_memory(err);
    for (uint32_t pass = 0; pass < plan->micro_batches; pass++)
        memcpy(step_us + (size_t)pass * plan->n_steps, plan->step_us, plan->n_steps * sizeof *step_us);
    plan->step_us = low->step_us = step_us;
    plan->n_steps = (uint32_t)n;
    return ST_OK;
}

static enum status repeat(struct lowering *low, struct error *err) {
    if (low->plan->micro_batches == 1)
        return ST_OK;
    enum status st = repeat_messages(low, err);
    return st ? st : repeat_steps(low, err);
}

static enum status make_messages(struct lowering *low, struct error *err) {
    struct plan *plan = low->plan;
    stream_all(low);
    if (too_many(low))
        return too_many_messages(err);
    low->messages = arena_alloc(&plan->arena, low->n_messages + low->n_split, sizeof *low->messages);
    low->pieces = arena_alloc(&plan->arena, low->n_pieces, sizeof *low->pieces);
    if (!low->messages || !low->pieces)
        return error_no_memory(err);
    stream_all(low);
    enum status st = repeat(low, err);
    if (st)
        return st;
    add_seconds(low);
    plan->n_messages = (uint32_t)low->n_messages;
    plan->n_pieces = (uint32_t)low->n_pieces;
    plan->pieces = low->pieces;
    return ST_OK;
}

/* ---- updates ---- */

/* How much of its variable the part is. */
static double part_of_variable(const struct variable *v, const struct part *part) {
    const struct variable_sync *sync = part->sync;
    if (part->first == 0 && part->end == sync->shards)
        return 1;
    uint64_t rows = 0;
    for (uint32_t k = part->first; k < part->end; k++)
        rows += plan_shard_rows(v->shape[sync->axis], sync->shards, k);
    return (double)rows / (double)v->shape[sync->axis];
}

static void add_update(struct lowering *low, const struct part *part) {
    const struct plan *plan = low->plan;
    const struct strategy *s = low->strategy;
    const struct variable *v = &plan->model->variables[part->variable];
    const bool reduced = part->sync->kind == SYNC_ALL_REDUCE;
    const enum sharded sharded = reduced ? s->groups[part->sync->group].sharded : SHARDED_none;
    const double devices = sharded == SHARDED_none         ? 1
                           : sharded == SHARDED_parameters ? strategy_shard_group(s, plan->cluster)
                                                           : plan->cluster->n_devices;
    const bool when_read = plan->cross_iteration && sharded == SHARDED_none;
    const uint32_t step = when_read ? low->gate[part->variable] : plan->ends_in_update ? plan->n_steps - 1 : 0;
    const double us = model_update_us(plan->model, v) * part_of_variable(v, part) / devices;
    low->step_us[step] += us;
    low->plan->update_us += us;
}

static void add_updates(struct lowering *low) {
    for (uint32_t i = 0; i < low->n_parts && low->plan->model->update_us > 0; i++)
        add_update(low, &low->parts[i]);
}

/* ---- order ---- */

/* When a message is ready, counted from where nothing is in flight. */
static uint32_t turn_of(const struct plan *plan, uint32_t ready) {
    return plan->ends_in_update ? (ready + 1) % plan->n_steps : ready;
}

/* Neither is made ready by a step. */
static bool is_second(const struct message *message) {
    return message_is_second_half(message) || message_is_of_replicas(message);
}

/* The order of fifo: by readiness, and then second halves by their gates. `first` has room for n_steps + 2. */
static enum status order_fifo(struct lowering *low, const uint32_t *ready, const uint32_t *gate, uint32_t *fifo,
                              uint32_t *first, struct error *err) {
    struct plan *plan = low->plan;
    const uint32_t n = plan->n_messages;
    uint32_t *by_ready, *key;
    if (!alloc_u32(&plan->arena, &by_ready, n) || !alloc_u32(&plan->arena, &key, n))
        return error_no_memory(err);
    for (uint32_t i = 0; i < n; i++)
        key[i] = turn_of(plan, ready[i]);
    sort_by_key(n, NULL, key, plan->n_steps, by_ready, first);
    for (uint32_t i = 0; i < n; i++)
        key[i] = is_second(&low->messages[i]) ? 1 + gate[i] : 0;
    sort_by_key(n, by_ready, key, plan->n_steps + 1, fifo, first);
    for (uint32_t i = 0; i < n; i++)
        low->messages[fifo[i]].fifo_rank = i;
    return ST_OK;
}

static enum status order_messages(struct lowering *low, struct error *err) {
    struct plan *plan = low->plan;
    uint32_t n = plan->n_messages, n_steps = plan->n_steps, *ready, *gate, *fifo, *order, *place, *first_ready,
             *by_ready, *first_gate, *by_gate;
    struct arena *arena = &plan->arena;
    struct message *sorted = arena_alloc(arena, n, sizeof *sorted);
    if (!sorted || !alloc_u32(arena, &ready, n) || !alloc_u32(arena, &gate, n) || !alloc_u32(arena, &fifo, n) ||
        !alloc_u32(arena, &order, n) || !alloc_u32(arena, &place, n) || !alloc_u32(arena, &first_ready, n_steps + 2) ||
        !alloc_u32(arena, &by_ready, n) || !alloc_u32(arena, &first_gate, n_steps + 2) ||
        !alloc_u32(arena, &by_gate, n))
        return error_no_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        ready[i] = low->messages[i].ready;
        gate[i] = low->messages[i].gate;
    }
    enum status st = order_fifo(low, ready, gate, fifo, first_ready, err);
    if (st)
        return st;
    if (plan->policy == POLICY_priority)
        sort_by_key(n, fifo, gate, n_steps, order, first_gate);
    else
        for (uint32_t i = 0; i < n; i++)
            order[i] = plan->policy == POLICY_preemptive ? i : fifo[i];
    for (uint32_t i = 0; i < n; i++)
        place[order[i]] = i;
    for (uint32_t i = 0; i < n; i++) {
        sorted[i] = low->messages[order[i]];
        if (sorted[i].other != NO_MESSAGE)
            sorted[i].other = place[sorted[i].other];
        if (sorted[i].replicas > 0)
            sorted[i].replicas = place[sorted[i].replicas];
        /* No step makes a second half ready, and none waits for a first one. */
        ready[i] = is_second(&sorted[i]) ? n_steps : sorted[i].ready;
        gate[i] = message_is_first_half(&sorted[i]) ? n_steps : sorted[i].gate;
    }
    sort_by_key(n, NULL, ready, n_steps + 1, by_ready, first_ready);
    sort_by_key(n, NULL, gate, n_steps + 1, by_gate, first_gate);
    plan->messages = sorted;
    plan->first_ready = first_ready;
    plan->by_ready = by_ready;
    plan->first_gate = first_gate;
    plan->by_gate = by_gate;
    return ST_OK;
}

static void sum_up(struct plan *plan) {
    for (uint32_t i = 0; i < plan->n_messages; i++) {
        const struct message *m = &plan->messages[i];
        plan->bytes += message_brings_gradients(m) ? m->bytes : 0;
        if (plan->max_bytes < m->bytes)
            plan->max_bytes = m->bytes;
        plan->any_all_reduce |= m->kind == SYNC_ALL_REDUCE;
        plan->any_server |= m->kind == SYNC_PARAMETER_SERVER;
        if (m->half == HALF_scatter && plan->in_parts == IN_PARTS_none)
            plan->in_parts = IN_PARTS_updates;
        if (message_is_of_replicas(m))
            plan->in_parts = IN_PARTS_replicas;
        plan->lossy = m->lossy > plan->lossy ? m->lossy : plan->lossy;
    }
}

static enum status lower(struct plan *plan, const struct strategy *strategy, struct error *err) {
    struct lowering low = {.plan = plan, .strategy = strategy};
    uint32_t n = strategy->n_variables;
    if (!alloc_u32(&plan->arena, &low.ready, n) || !alloc_u32(&plan->arena, &low.gate, n) ||
        !alloc_u32(&plan->arena, &low.read, n))
        return error_no_memory(err);
    plan->ends_in_update = strategy_sharded_parameters(strategy) > 0;
    enum status st = cut_steps(&low, err);
    if (!st)
        st = list_parts(&low, err);
    if (!st)
        st = order_parts(&low, err);
    if (!st && plan->ends_in_update)
        st = time_gatherings(&low, err);
    if (!st)
        st = make_messages(&low, err);
    if (!st)
        add_updates(&low);
    if (!st)
        st = order_messages(&low, err);
    if (!st)
        sum_up(plan);
    return st;
}

enum status plan_relower(struct plan *plan, const struct model *model, const struct cluster *cluster,
                         const struct strategy *strategy, struct error *err) {
    struct arena arena = plan->arena;
    arena_clear(&arena);
    *plan = (struct plan){.arena = arena,
                          .model = model,
                          .cluster = cluster,
                          .policy = strategy->policy,
                          .credit_bytes = strategy->credit_bytes,
                          .cross_iteration = strategy->cross_iteration,
                          .micro_batches = strategy->micro_batches,
                          .sums_each = strategy->synchronize != SYNCHRONIZE_last,
                          .pulls_by_priority = strategy_orders_pulls(strategy)};
    enum status st = strategy_check(strategy, model, cluster, err);
    if (!st && !consistency_copy(&strategy->consistency, &plan->arena, &plan->consistency))
        st = error_no_memory(err);
    if (!st)
        st = lower(plan, strategy, err);
    if (st)
        *plan = (struct plan){.arena = plan->arena};
    return st;
}

enum status plan_lower(const struct model *model, const struct cluster *cluster, const struct strategy *strategy,
                       struct plan *out, struct error *err) {
    struct plan plan = {0};
    enum status st = plan_relower(&plan, model, cluster, strategy, err);
    if (st)
        plan_release(&plan);
    else
        *out = plan;
    return st;
}

void plan_release(struct plan *plan) {
    arena_release(&plan->arena);
    *plan = (struct plan){0};
}

uint64_t plan_moved_bytes(const struct plan *plan) {
    uint64_t bytes = 0;
    for (uint32_t m = 0; m < plan->n_messages; m++)
        bytes += plan->messages[m].bytes;
    return bytes;
}

bool plan_serves(const struct plan *plan, uint32_t node) {
    for (uint32_t m = 0; m < plan->n_messages; m++)
        if (plan->messages[m].kind == SYNC_PARAMETER_SERVER && plan->messages[m].server == node)
            return true;
    return false;
}

bool plan_needs_server(const struct plan *plan, uint32_t node) {
    const struct consistency *c = &plan->consistency;
    for (uint32_t i = 0; i < c->aggregators.n; i++)
        if (c->aggregators.nodes[i] == node)
            return true;
    return plan_serves(plan, node) || (c->replicated && c->replica == node) ||
           (c->distributors > 0 && plan->cluster->nodes[node].devices > 0);
}
