/* Everything that takes memory is put down once, as a change where it begins and one where it ends; a walk over the
 * places adds the changes up. Lanes are what is summed apart: the parts that people see, and what the credit or the
 * number of devices still changes at each place. */
#include "strategy/memory.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/units.h"
#include "strategy/encoder.h"

#define X(name) #name,
static const char *const part_names[] = {MEMORY_TABLE(X)};
#undef X

enum lane {
    /* The parts come first, by their own numbers. */
    LANE_fused = MEMORY_PARTS, /* buffers of whole all-reduces, without what is encoded */
    LANE_fused_encoded,
    LANE_slices, /* messages of all_gather, of which all devices' come */
    LANES
};

__extension__ typedef unsigned __int128 wide;

static const uint64_t MOST_BYTES = UINT64_C(1) << 58; /* of a part: larger ones count as this */
static const double GBYTE = 1e9;

/* A message of sharded parameters, by where its bytes begin. The messages that move the same bytes begin alike. */
struct run {
    uint32_t variable;
    uint64_t offset_bytes;
    const struct message *message;
};

struct ledger {
    const struct plan *plan;
    uint32_t places;          /* 2 * n_steps: at and after each */
    int64_t (*change)[LANES]; /* [places + 1] */
    uint32_t *last_read;      /* [n_variables] the last forward step that reads it */
    uint64_t *split;          /* [n_variables] elements whose states are shared out */
    uint64_t *grads;          /* [n_variables] bytes of its gradient, as the model's type */
    uint32_t *grads_until;    /* [n_variables] the place where that is no longer needed, in the last micro-batch */
    uint32_t *earlier_until;  /* [n_variables] in the first that is summed alone; UINT32_MAX: the sum is whole */
    uint64_t *sharded;        /* [n_variables] bytes of it that lie on all devices in parts */
    struct run *runs;         /* [n_messages] */
    uint64_t largest_fused, largest_slice;
    uint32_t most_in_node; /* devices */
    bool by_nccl; /* parts of halves, sharded parameters and int8 are equal; powersgd's sums are made where they lie */
};

const char *memory_part_name(enum memory_part part) {
    return part_names[part];
}

bool memory_knows(const struct memory *m, enum memory_part part) {
    return part == MEMORY_optimizer ? m->knows_optimizer : part == MEMORY_activations ? m->knows_activations : true;
}

static uint64_t times(uint64_t bytes, uint64_t n) {
    uint64_t product;
    return __builtin_mul_overflow(bytes, n, &product) || product > MOST_BYTES ? MOST_BYTES : product;
}

static uint64_t ceil_divide(uint64_t a, uint64_t b) {
    return a / b + (a % b > 0);
}

/* ---- places ---- */

static uint32_t at(uint32_t step) {
    return 2 * step;
}

static uint32_t after(uint32_t step) {
    return 2 * step + 1;
}

/* `bytes` lie at the places from `from` to before `until`, around the end if that comes first. */
static void keep(struct ledger *l, int lane, uint64_t bytes, uint32_t from, uint32_t until) {
    const int64_t n = (int64_t)bytes;
    l->change[from][lane] += n;
    l->change[until][lane] -= n;
    if (until < from)
        l->change[0][lane] += n;
}

static void keep_always(struct ledger *l, int lane, uint64_t bytes) {
    l->change[0][lane] += (int64_t)bytes;
}

/* ---- messages ---- */

static const struct piece *pieces_of(const struct ledger *l, const struct message *m) {
    return &l->plan->pieces[m->first_piece];
}

static uint64_t elements_of(const struct message *m) {
    return message_elements(m);
}

static uint64_t largest_part(const struct ledger *l, const struct message *m) {
    return ceil_divide(elements_of(m), m->ranks ? m->ranks : l->plan->cluster->n_devices);
}

static bool is_fused(const struct message *m) {
    return m->n_pieces > 1 || m->encoded_bytes > 0;
}

static bool sums_in_node(const struct ledger *l, const struct message *m) {
    const bool asked = m->kind == SYNC_ALL_REDUCE ? m->algorithm == ALGORITHM_hierarchical : m->local_reduction;
    return asked && l->most_in_node > 1;
}

static bool is_whole_all_reduce(const struct message *m) {
    return m->kind == SYNC_ALL_REDUCE && m->half == HALF_none;
}

/* The place where a message is over: first halves go on into the second, whose buffer is theirs. */
static uint32_t end_of(const struct ledger *l, const struct message *m) {
    return at(message_is_first_half(m) ? l->plan->messages[m->other].gate : m->gate);
}

static const struct variable *variable_of(const struct ledger *l, const struct piece *piece) {
    return &l->plan->model->variables[piece->variable];
}

/* What the gradients in a piece take before they go into the message. */
static uint64_t gradient_bytes(const struct ledger *l, const struct message *m, const struct piece *piece) {
    return piece->bytes / message_piece_width(m) * dtype_bytes(message_dtype_in_use(m, variable_of(l, piece)));
}

/* Bytes of an element of a shard, which has the model's type as all of its message have. */
static uint64_t shard_width(const struct ledger *l, const struct message *m) {
    return dtype_bytes(variable_of(l, pieces_of(l, m))->dtype);
}

/* Where a variable's gradient is made for the last time. */
static uint32_t last_made(const struct ledger *l, uint32_t v) {
    const struct plan *plan = l->plan;
    return at(plan->n_steps - plan_pass_steps(plan) + plan->step_of[plan->model->variables[v].producer]);
}

/* Whether place a comes after place b, counted from place `from` on. */
static bool is_later(const struct ledger *l, uint32_t a, uint32_t b, uint32_t from) {
    return (a + l->places - from) % l->places > (b + l->places - from) % l->places;
}

/* Whether the message has others like it in earlier micro-batches, to whose sums its own is added. */
static bool adds_to_sums(const struct ledger *l, const struct message *m) {
    return l->plan->sums_each && l->plan->micro_batches > 1 && plan_is_last_pass(l->plan, m->ready);
}

/* Where the first of the sums that the message's is one of has come; until then it is what comes in. */
static uint32_t first_sum(const struct ledger *l, const struct message *m) {
    const struct plan *plan = l->plan;
    const uint32_t gate = plan_step_in_pass(plan, m->gate);
    if (!adds_to_sums(l, m))
        return end_of(l, m);
    return at(gate > plan_step_in_pass(plan, m->ready) ? gate : gate + plan_pass_steps(plan));
}

/* A device's part of the sums, from the first on: of sharded parameters through the update. Replicas add theirs in the
 * type of the sums. */
static void keep_sums(struct ledger *l, const struct message *m) {
    const uint64_t own = shard_width(l, m), sums = dtype_bytes(m->dtype);
    const uint64_t bytes = largest_part(l, m) * (m->replicas > 0 && sums > own ? sums : own);
    if (message_is_of_shards(m))
        keep(l, MEMORY_gradients, bytes, first_sum(l, m), after(l->plan->n_steps - 1));
    else if (adds_to_sums(l, m))
        keep(l, MEMORY_gradients, bytes, first_sum(l, m), end_of(l, m));
}

/* What the devices keep parts of: states of its elements, and where parameters are sharded the variables and sums. */
static void share_out(struct ledger *l, const struct message *m) {
    const struct model *model = l->plan->model;
    const uint64_t part = largest_part(l, m), all = elements_of(m);
    const uint64_t width = shard_width(l, m);
    uint64_t states = 0;
    for (uint32_t i = 0; i < m->n_pieces; i++) {
        const struct piece *piece = &pieces_of(l, m)[i];
        const uint64_t elements = piece->bytes / message_piece_width(m);
        states += optimizer_bytes(&model->optimizer, &model->variables[piece->variable], elements);
        l->split[piece->variable] += elements;
        l->sharded[piece->variable] += message_is_of_shards(m) ? elements * width : 0;
    }
    keep_always(l, MEMORY_optimizer, (uint64_t)(((wide)states * part + all - 1) / all));
    if (message_is_of_shards(m))
        keep_always(l, MEMORY_parameters, part * width);
    keep_sums(l, m);
}

/* The place where the message no longer needs the gradients in it. Those of which devices keep parts go as they are
 * packed, which is after the step: what was gathered for it is free by then, as in FSDP2. */
static uint32_t gradients_end(const struct ledger *l, const struct message *m) {
    const bool in_parts = message_is_of_shards(m) || m->shards_gradients;
    return in_parts && is_fused(m) ? after(m->ready) + 1 : end_of(l, m);
}

/* Of the first of several micro-batches that are summed each. The others but the last are like it. */
static void note_earlier(struct ledger *l, const struct message *m) {
    for (uint32_t i = 0; i < m->n_pieces; i++) {
        const uint32_t v = pieces_of(l, m)[i].variable, until = gradients_end(l, m);
        if (m->half != HALF_scatter)
            l->earlier_until[v] = UINT32_MAX;
        else if (l->earlier_until[v] < until)
            l->earlier_until[v] = until;
    }
}

/* Until when the message needs the gradients in it, and how large they are. */
static void note_gradients(struct ledger *l, const struct message *m) {
    for (uint32_t i = 0; i < m->n_pieces; i++) {
        const struct piece *piece = &pieces_of(l, m)[i];
        const uint32_t v = piece->variable, made = last_made(l, v), until = gradients_end(l, m);
        if (l->grads[v] == 0 || is_later(l, until, l->grads_until[v], made + 1))
            l->grads_until[v] = until;
        l->grads[v] += gradient_bytes(l, m, piece);
    }
}

/* The run of bytes that a message is gathered into, where it has one. */
static void keep_buffer(struct ledger *l, const struct message *m) {
    const bool capped = is_whole_all_reduce(m) && !sums_in_node(l, m);
    const uint32_t from = after(m->ready);
    if (m->encoder || !is_fused(m))
        return;
    keep(l, capped ? LANE_fused : MEMORY_buffers, m->bytes - m->encoded_bytes, from, end_of(l, m));
    keep(l, capped ? LANE_fused_encoded : MEMORY_encoding, m->encoded_bytes, from, end_of(l, m));
    if (capped && l->largest_fused < m->bytes)
        l->largest_fused = m->bytes;
}

/* An encoder reads one run of f32, which the sum comes back to. What is encoded lies beside that, with the parts that
 * come in. The credit counts other bytes, so it limits none of this. */
static void keep_encoder(struct ledger *l, const struct message *m) {
    const uint32_t n = l->plan->cluster->n_devices, from = after(m->ready), until = end_of(l, m);
    const uint64_t elements = elements_of(m);
    if (!m->encoder)
        return;
    if (m->n_pieces > 1 || m->dtype != DTYPE_f32)
        keep(l, MEMORY_buffers, elements * sizeof(float), from, until);
    if (m->encoder == ENCODING_topk) {
        keep(l, MEMORY_encoding, times(m->bytes, n), from, until);
        keep_always(l, MEMORY_encoding, elements * sizeof(float)); /* what did not travel yet */
        return;
    }
    if (m->encoder == ENCODING_powersgd) {
        const uint64_t first = m->bytes - m->second_bytes, largest = first > m->second_bytes ? first : m->second_bytes;
        const uint64_t part = (largest / sizeof(float) + n - 1) / n * sizeof(float);
        keep(l, MEMORY_encoding, m->bytes + (l->by_nccl ? 0 : times(part, n)), from, until);
        keep_always(l, MEMORY_encoding, elements * sizeof(float) + m->second_bytes); /* with Q of the last iteration */
        return;
    }
    const uint64_t parts = times(encoder_part_bytes(m->encoder, m->figure, elements, n), n);
    keep(l, MEMORY_encoding, parts + (l->by_nccl ? parts : m->bytes), from, until);
}

/* Replicas add to a device's part, which lies there as a gradient, a part of that part at a time. */
static void keep_replicas(struct ledger *l, const struct message *m) {
    const uint64_t part = ceil_divide(elements_of(m), m->stride);
    keep(l, MEMORY_buffers, ceil_divide(part, m->ranks) * dtype_bytes(m->dtype), after(m->ready), at(m->gate));
}

/* What comes in to be added. */
static void keep_incoming(struct ledger *l, const struct message *m) {
    if (m->half == HALF_scatter)
        keep(l, MEMORY_buffers, largest_part(l, m) * dtype_bytes(m->dtype), after(m->ready), end_of(l, m));
    if (sums_in_node(l, m))
        keep(l, MEMORY_buffers, times(m->bytes, l->most_in_node - 1), after(m->ready), end_of(l, m));
    if (m->kind == SYNC_ALL_REDUCE && m->algorithm == ALGORITHM_all_gather) {
        keep(l, LANE_slices, m->bytes, after(m->ready), end_of(l, m));
        if (l->largest_slice < m->bytes)
            l->largest_slice = m->bytes;
    }
}

/* An all-gather of sharded parameters, which are freed after step `last`. */
static void keep_gathered(struct ledger *l, const struct message *m, uint32_t last) {
    if (is_fused(m)) /* it is unpacked as the gate opens, and for that moment both are there */
        keep(l, MEMORY_buffers, m->bytes, after(m->ready), after(m->gate));
    keep(l, MEMORY_gathered, m->bytes, is_fused(m) ? at(m->gate) : after(m->ready), after(last));
}

static bool is_for_backward(const struct ledger *l, const struct message *m) {
    return m->half == HALF_gather && plan_step_in_pass(l->plan, m->gate) >= l->plan->n_forward_steps;
}

/* Where the micro-batch of the message's gate begins. */
static uint32_t pass_begin(const struct ledger *l, const struct message *m) {
    return m->gate - plan_step_in_pass(l->plan, m->gate);
}

/* The last step of the forward pass that uses the message's variables; its gate at least. */
static uint32_t last_read(const struct ledger *l, const struct message *m) {
    uint32_t last = m->gate;
    for (uint32_t i = 0; i < m->n_pieces; i++) {
        const uint32_t read = pass_begin(l, m) + l->last_read[pieces_of(l, m)[i].variable];
        last = read > last ? read : last;
    }
    return last;
}

/* Between the passes a device keeps its part among the fewer devices that gather for the backward pass. */
static void keep_between(struct ledger *l, const struct message *forward, const struct message *backward) {
    if (forward->ranks != backward->ranks)
        keep(l, MEMORY_gathered, largest_part(l, backward) * dtype_bytes(backward->dtype), after(last_read(l, forward)),
             at(pass_begin(l, forward) + plan_step_in_pass(l->plan, backward->gate)));
}

/* The same bytes: in each micro-batch gathered once or twice, and summed in the last at least. */
static void keep_run(struct ledger *l, const struct run *runs, size_t n) {
    uint32_t backward_end = 0;
    const struct message *again = NULL;
    for (size_t i = 0; i < n; i++) {
        if (is_for_backward(l, runs[i].message))
            again = runs[i].message;
        if (runs[i].message->half == HALF_scatter)
            backward_end = plan_step_in_pass(l->plan, runs[i].message->ready);
    }
    for (size_t i = 0; i < n; i++) {
        const struct message *m = runs[i].message;
        if (m->half != HALF_gather)
            continue;
        const bool is_first = again && !is_for_backward(l, m);
        keep_gathered(l, m, is_first ? last_read(l, m) : pass_begin(l, m) + backward_end);
        if (is_first)
            keep_between(l, m, again);
    }
}

static int compare_runs(const void *a, const void *b) {
    const struct run *x = a, *y = b;
    if (x->variable != y->variable)
        return x->variable < y->variable ? -1 : 1;
    return (x->offset_bytes > y->offset_bytes) - (x->offset_bytes < y->offset_bytes);
}

static void put_gathered(struct ledger *l) {
    const struct plan *plan = l->plan;
    size_t n = 0, end;
    for (uint32_t i = 0; i < plan->n_messages; i++) {
        const struct message *m = &plan->messages[i];
        if (message_is_of_shards(m))
            l->runs[n++] = (struct run){pieces_of(l, m)->variable, pieces_of(l, m)->offset_bytes, m};
    }
    qsort(l->runs, n, sizeof *l->runs, compare_runs);
    for (size_t begin = 0; begin < n; begin = end) {
        for (end = begin + 1; end < n && compare_runs(&l->runs[begin], &l->runs[end]) == 0;)
            end++;
        keep_run(l, &l->runs[begin], end - begin);
    }
}

/* Where parts are equal, what the devices do not divide is copied into a padded run, be it one variable's. */
static void keep_padding(struct ledger *l, const struct message *m) {
    const uint64_t parts = m->ranks ? m->ranks : l->plan->cluster->n_devices;
    const uint64_t padded = times(largest_part(l, m) * dtype_bytes(m->dtype), parts);
    const uint64_t more = padded - (is_fused(m) ? m->bytes : 0);
    const bool has_run =
        m->half == HALF_scatter || message_gathers_parameters(m); /* of second halves the first has it */
    if (!l->by_nccl || padded == m->bytes || !has_run)
        return;
    const bool gathers = m->half == HALF_gather;
    keep(l, MEMORY_buffers, more, after(m->ready), gathers ? after(m->gate) : end_of(l, m));
}

static void put_messages(struct ledger *l) {
    for (uint32_t i = 0; i < l->plan->n_messages; i++) {
        const struct message *m = &l->plan->messages[i];
        keep_padding(l, m);
        if (m->bytes == 0 || m->half == HALF_gather)
            continue;
        if (message_is_of_replicas(m)) {
            keep_replicas(l, m);
            continue;
        }
        if (plan_is_last_pass(l->plan, m->ready)) {
            if (m->half == HALF_scatter)
                share_out(l, m);
            note_gradients(l, m);
        } else if (m->ready < plan_pass_steps(l->plan))
            note_earlier(l, m);
        keep_buffer(l, m);
        keep_encoder(l, m);
        keep_incoming(l, m);
    }
}

/* ---- the model ---- */

static void note_reads(struct ledger *l) {
    const struct model *model = l->plan->model;
    for (uint32_t i = 0; i < model->n_operators; i++) {
        const struct operator* op = & model->operators[i];
        for (uint32_t r = 0; r < op->n_reads; r++)
            if (l->last_read[op->reads[r]] < l->plan->step_of[i])
                l->last_read[op->reads[r]] = l->plan->step_of[i];
    }
}

static void put_gradient(struct ledger *l, uint32_t v) {
    const uint32_t made = at(l->plan->step_of[l->plan->model->variables[v].producer]);
    const uint32_t pass = 2 * plan_pass_steps(l->plan), n = l->plan->micro_batches;
    if (n == 1 || !l->plan->sums_each || l->earlier_until[v] == UINT32_MAX) {
        keep(l, MEMORY_gradients, l->grads[v], made, l->grads_until[v]);
        return;
    }
    for (uint32_t i = 0; i + 1 < n; i++)
        keep(l, MEMORY_gradients, l->grads[v], made + i * pass, l->earlier_until[v] + i * pass);
    keep(l, MEMORY_gradients, l->grads[v], last_made(l, v), l->grads_until[v]);
}

/* After put_messages, which says what of a variable lies on all devices in parts. */
static void put_variables(struct ledger *l) {
    const struct plan *plan = l->plan;
    for (uint32_t v = 0; v < plan->model->n_variables; v++) {
        const struct variable *variable = &plan->model->variables[v];
        keep_always(l, MEMORY_optimizer,
                    optimizer_bytes(&plan->model->optimizer, variable, variable->elements - l->split[v]));
        keep_always(l, MEMORY_parameters, variable->bytes - l->sharded[v]);
        if (l->grads[v] > 0)
            put_gradient(l, v);
    }
}

static void put_activations(struct ledger *l) {
    const struct model *model = l->plan->model;
    for (uint32_t begin = 0; begin < l->plan->n_steps; begin += plan_pass_steps(l->plan))
        for (uint32_t i = 0; i < model->n_operators; i++)
            if (model->operators[i].activation_bytes > 0)
                keep(l, MEMORY_activations, model->operators[i].activation_bytes, at(begin + l->plan->step_of[i]),
                     after(begin + l->plan->step_of[model->operators[i].kept_for]));
}

/* Of the operators of a step, which run one after another, the most. */
static void put_temporary(struct ledger *l) {
    const struct model *model = l->plan->model;
    const uint32_t *step_of = l->plan->step_of, *order = model->order, pass = plan_pass_steps(l->plan);
    for (uint32_t i = 0, n = 0; i < model->n_operators; i = n) {
        const uint32_t step = step_of[order[i]];
        uint64_t most = 0;
        for (; n < model->n_operators && step_of[order[n]] == step; n++)
            if (model->operators[order[n]].temporary_bytes > most)
                most = model->operators[order[n]].temporary_bytes;
        for (uint32_t begin = 0; most > 0 && begin < l->plan->n_steps; begin += pass)
            keep(l, MEMORY_temporary, most, at(begin + step), after(begin + step));
    }
}

/* ---- the sum ---- */

/* What the credit lets go at once, of messages of which the largest has so many bytes. */
static uint64_t most_in_flight(const struct plan *plan, uint64_t largest) {
    return plan->credit_bytes > largest ? plan->credit_bytes : largest;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* What lies at a place, by part; returns the sum. */
static uint64_t parts_at(const struct ledger *l, const int64_t lanes[LANES], uint64_t part[MEMORY_PARTS]) {
    const struct plan *plan = l->plan;
    uint64_t sum = 0;
    for (int p = 0; p < MEMORY_PARTS; p++)
        part[p] = (uint64_t)lanes[p];
    const uint64_t encoded = (uint64_t)lanes[LANE_fused_encoded],
                   fused = least((uint64_t)lanes[LANE_fused] + encoded, most_in_flight(plan, l->largest_fused)),
                   slices = least((uint64_t)lanes[LANE_slices], most_in_flight(plan, l->largest_slice));
    part[MEMORY_encoding] += least(encoded, fused);
    part[MEMORY_buffers] += fused - least(encoded, fused) + times(slices, plan->cluster->n_devices);
    for (int p = 0; p < MEMORY_PARTS; p++)
        sum += part[p] = least(part[p], MOST_BYTES);
    return sum;
}

static void find_peak(const struct ledger *l, struct memory *out) {
    int64_t lanes[LANES] = {0};
    uint64_t part[MEMORY_PARTS];
    for (uint32_t place = 0; place < l->places; place++) {
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] += l->change[place][lane];
        const uint64_t sum = parts_at(l, lanes, part), buffers = part[MEMORY_buffers] + part[MEMORY_encoding];
        out->buffers_bytes = buffers > out->buffers_bytes ? buffers : out->buffers_bytes;
        if (sum <= out->peak_bytes)
            continue;
        out->peak_bytes = sum;
        out->peak_step = (place + 1) / 2;
        out->peak_between = place % 2 > 0;
        for (int p = 0; p < MEMORY_PARTS; p++)
            out->part_bytes[p] = part[p];
    }
}

/* ---- servers ---- */

static void find_server(const struct ledger *l, uint64_t *sums, uint64_t *arrivals, struct memory *out) {
    const struct plan *plan = l->plan;
    const struct cluster *cluster = plan->cluster;
    uint64_t largest = 0, n_leaders = 0;
    for (uint32_t node = 0; node < cluster->n_nodes; node++)
        n_leaders += cluster->nodes[node].devices > 0;
    for (uint32_t i = 0; i < plan->n_messages; i++) {
        const struct message *m = &plan->messages[i];
        if (m->kind != SYNC_PARAMETER_SERVER || !plan_is_last_pass(plan, m->ready))
            continue;
        sums[m->server] = least(sums[m->server] + m->bytes, MOST_BYTES);
        arrivals[m->server] = least(
            arrivals[m->server] + times(m->bytes, m->local_reduction ? n_leaders : cluster->n_devices), MOST_BYTES);
        largest = m->bytes > largest ? m->bytes : largest;
    }
    for (uint32_t node = 0; node < cluster->n_nodes; node++) {
        const uint64_t in_flight = times(most_in_flight(plan, largest), cluster->n_devices);
        const uint64_t bytes = least(arrivals[node], sums[node] + in_flight);
        if (bytes <= out->server_bytes)
            continue;
        out->server_bytes = bytes;
        out->server = node;
    }
}

/* ---- words ---- */

/* peak_step in words. */
static void name_place(const struct plan *plan, struct memory *m) {
    const struct model *model = plan->model;
    const uint32_t forward = plan->n_forward_steps, steps = plan->step_of[model->order[model->n_operators - 1]] + 1,
                   step = plan_step_in_pass(plan, m->peak_step);
    const char *before = m->peak_between ? "before " : "";
    char pass[32] = "";
    uint32_t i = 0;
    if (m->peak_step >= plan->n_steps || plan_is_update(plan, m->peak_step)) {
        snprintf(m->place, sizeof m->place, "the update");
        return;
    }
    if (plan->micro_batches > 1)
        snprintf(pass, sizeof pass, "micro-batch %u, ", m->peak_step / plan_pass_steps(plan) + 1);
    if (step >= steps) {
        snprintf(m->place, sizeof m->place, "%sits end", pass);
        return;
    }
    while (plan->step_of[model->order[i]] < step)
        i++;
    const char *first = model->operators[model->order[i]].name;
    if (step < forward)
        snprintf(m->place, sizeof m->place, "%s%sforward step %u of %u, %s", pass, before, step + 1, forward, first);
    else
        snprintf(m->place, sizeof m->place, "%s%sbackward step %u of %u, %s", pass, before, step - forward + 1,
                 steps - forward, first);
    text_clean(m->place); /* it may have been cut within a character */
}

/* ---- all of it ---- */

static bool begin(struct ledger *l, const struct plan *plan) {
    const uint32_t n = plan->model->n_variables;
    *l = (struct ledger){
        .plan = plan, .places = 2 * plan->n_steps, .by_nccl = cluster_transport(plan->cluster) == TRANSPORT_nccl};
    for (uint32_t node = 0; node < plan->cluster->n_nodes; node++)
        if (l->most_in_node < plan->cluster->nodes[node].devices)
            l->most_in_node = plan->cluster->nodes[node].devices;
    l->change = calloc((size_t)l->places + 1, sizeof *l->change);
    l->last_read = calloc(n, sizeof *l->last_read);
    l->split = calloc(n, sizeof *l->split);
    l->grads = calloc(n, sizeof *l->grads);
    l->grads_until = calloc(n, sizeof *l->grads_until);
    l->earlier_until = calloc(n, sizeof *l->earlier_until);
    l->sharded = calloc(n, sizeof *l->sharded);
    l->runs = calloc((size_t)plan->n_messages + 1, sizeof *l->runs);
    return l->change && l->last_read && l->split && l->grads && l->grads_until && l->earlier_until && l->sharded &&
           l->runs;
}

static void end(struct ledger *l) {
    free(l->change);
    free(l->last_read);
    free(l->split);
    free(l->grads);
    free(l->grads_until);
    free(l->earlier_until);
    free(l->sharded);
    free(l->runs);
}

enum status memory_of_plan(const struct plan *plan, struct memory *out, struct error *err) {
    const uint32_t n_nodes = plan->cluster->n_nodes;
    struct memory memory = {.knows_optimizer = plan->model->optimizer.kind != OPTIMIZER_unknown,
                            .knows_activations = plan->model->knows_activations};
    struct ledger l;
    if (!consistency_is_plain(&plan->consistency))
        return error_set(err, ST_INFEASIBLE, "the memory of a strategy with \"consistency\" is not known");
    uint64_t *servers = calloc(2 * (size_t)n_nodes, sizeof *servers);
    const bool ok = begin(&l, plan) && servers;
    if (ok) {
        note_reads(&l);
        put_messages(&l);
        put_gathered(&l);
        put_variables(&l);
        put_activations(&l);
        put_temporary(&l);
        find_peak(&l, &memory);
        find_server(&l, servers, servers + n_nodes, &memory);
        name_place(plan, &memory);
        *out = memory;
    }
    end(&l);
    free(servers);
    return ok ? ST_OK : error_no_memory(err);
}

/* ---- budgets ---- */

uint64_t memory_of_devices(const struct cluster *cluster) {
    double least_gbyte = 0;
    for (uint32_t i = 0; i < cluster->n_nodes; i++) {
        const struct node *node = &cluster->nodes[i];
        if (node->devices > 0 && node->device_memory_gbyte > 0 &&
            (least_gbyte == 0 || node->device_memory_gbyte < least_gbyte))
            least_gbyte = node->device_memory_gbyte;
    }
    return (uint64_t)(least_gbyte * GBYTE);
}

enum status memory_check(const struct memory *m, const struct cluster *cluster, uint64_t budget_bytes,
                         struct error *err) {
    const struct node *server = &cluster->nodes[m->server];
    const double server_has = server->memory_gbyte * GBYTE;
    char need[32], over[32], have[64];
    if (budget_bytes > 0 && m->peak_bytes > budget_bytes)
        return error_set(err, ST_INFEASIBLE, "needs %s on a device (%s), %s over the %s that it may have",
                         units_format_bytes_finely(m->peak_bytes, need, sizeof need), m->place,
                         units_format_bytes_finely(m->peak_bytes - budget_bytes, over, sizeof over),
                         units_format_budget(budget_bytes, have, sizeof have));
    if (server_has > 0 && (double)m->server_bytes > server_has)
        return error_set(err, ST_INFEASIBLE, "needs up to %s for the server on node \"%s\", which has %s",
                         units_format_bytes(m->server_bytes, need, sizeof need), server->name,
                         units_format_bytes((uint64_t)server_has, have, sizeof have));
    return ST_OK;
}
