/* What must hold for every plan, checked against the model and the strategy by other means than those of plan.c.
 *
 * plan_broken returns the rule that does not hold, or NULL. It needs no test framework, so fuzz targets use it too.
 * Cost: O(steps + variables + pieces log pieces). */
#ifndef TESTS_UNIT_STRATEGY_PLAN_INVARIANTS_H
#define TESTS_UNIT_STRATEGY_PLAN_INVARIANTS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "strategy/plan.h"

/* The passes over the bytes of a plan: in each a byte is in one message at most. Second halves have their first
 * halves' pieces, and all-reduces among replicas those of reduce-scatters; they are in none. */
enum pass { PASS_SUMS, PASS_FORWARD, PASS_BACKWARD, PASS_COUNT, PASS_NONE = PASS_COUNT };

struct expected_times {
    uint32_t ready, gate;
};

/* A group with sharded parameters. */
struct expected_group {
    bool sharded;
    uint32_t
        first[PASS_COUNT]; /* the step with which it is first needed in the pass; of sums: the last backward step */
    struct expected_times times[PASS_COUNT];
};

/* By operator, by variable and by group, from the execution order alone. */
struct expected {
    uint32_t n_steps, n_forward_steps;
    bool update;            /* the last step is one */
    uint32_t *step_of;      /* by place in the execution order */
    uint32_t *ready, *gate; /* by variable */
    uint32_t *read;         /* by variable: the first forward step that reads it */
    uint32_t n_groups;
    struct expected_group *groups;
    double *step_us;
    double forward_update_us, backward_update_us; /* of updates, which steps_us counts too */
};

/* A step begins before a reader, before the first backward operator, and after a producer. */
static inline bool step_begins(const struct model *m, uint32_t place) {
    const struct operator* op = & m->operators[m->order[place]];
    return place > 0 && (op->n_reads || place == m->n_forward || m->operators[m->order[place - 1]].n_produces);
}

static inline void expect_steps(const struct model *m, bool cross_iteration, struct expected *e) {
    uint32_t step = 0;
    for (uint32_t i = 0; i < m->n_operators; i++) {
        step += step_begins(m, i);
        e->step_of[i] = step;
        e->step_us[step] += m->operators[m->order[i]].time_us;
    }
    e->n_steps = step + 1 + e->update;
    e->n_forward_steps = e->step_of[m->n_forward];
    for (uint32_t v = 0; v < m->n_variables; v++)
        e->read[v] = e->n_forward_steps - 1;
    for (uint32_t i = m->n_operators; i-- > 0;) {
        const struct operator* op = & m->operators[m->order[i]];
        for (uint32_t k = 0; k < op->n_reads; k++)
            e->read[op->reads[k]] = e->step_of[i];
    }
    for (uint32_t v = 0; v < m->n_variables; v++)
        e->gate[v] = cross_iteration ? e->read[v] : e->update ? e->n_steps - 1 : 0;
    for (uint32_t i = 0; i < m->n_operators; i++)
        for (uint32_t v = 0; m->operators[m->order[i]].n_produces > v; v++)
            e->ready[m->operators[m->order[i]].produces[v]] = e->step_of[i];
}

/* Elements of all variables that an update changes. */
static inline double expected_elements(const struct model *m, uint32_t v) {
    const struct variable *at = &m->variables[v];
    return at->sparse_rows ? (double)at->sparse_rows * (double)(at->elements / at->shape[0]) : (double)at->elements;
}

/* Shard after shard of every variable. */
static inline void expect_updates(const struct model *m, const struct cluster *c, const struct strategy *s,
                                  struct expected *e) {
    double all = 0;
    for (uint32_t v = 0; v < m->n_variables; v++)
        all += expected_elements(m, v);
    for (uint32_t v = 0; v < m->n_variables; v++)
        for (uint32_t k = 0; k < s->variables[v].shards; k++) {
            const struct variable_sync *way = sync_part(&s->variables[v], s->variables[v].each ? k : 0);
            const uint32_t n = s->variables[v].shards;
            const double dim = n > 1 ? (double)m->variables[v].shape[s->variables[v].axis] : 1;
            const double rows = n > 1 ? (double)plan_shard_rows((uint64_t)dim, n, k) : 1;
            double us = m->update_us * expected_elements(m, v) / all * rows / dim;
            const enum sharded sharded = way->kind == SYNC_ALL_REDUCE ? s->groups[way->group].sharded : SHARDED_none;
            if (sharded == SHARDED_parameters && s->shard_ranks > 0 && s->shard_ranks < c->n_devices)
                us /= s->shard_ranks;
            else if (sharded != SHARDED_none)
                us /= c->n_devices;
            const uint32_t step = s->cross_iteration && sharded == SHARDED_none ? e->read[v]
                                  : e->update                                   ? e->n_steps - 1
                                                                                : 0;
            e->step_us[step] += us;
            *(step < e->n_forward_steps ? &e->forward_update_us : &e->backward_update_us) += us;
        }
}

/* ---- sharded parameters ---- */

static inline void expect_firsts(const struct strategy *s, struct expected *e) {
    for (uint32_t g = 0; g < s->n_groups; g++) {
        e->groups[g].sharded = s->groups[g].sharded == SHARDED_parameters;
        e->groups[g].first[PASS_FORWARD] = e->groups[g].first[PASS_BACKWARD] = UINT32_MAX;
    }
    for (uint32_t v = 0; v < s->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&s->variables[v]); k++) {
            const struct variable_sync *sync = sync_part(&s->variables[v], k);
            uint32_t *first = sync->kind == SYNC_ALL_REDUCE ? e->groups[sync->group].first : NULL;
            if (first && e->read[v] < first[PASS_FORWARD])
                first[PASS_FORWARD] = e->read[v];
            if (first && e->ready[v] < first[PASS_BACKWARD])
                first[PASS_BACKWARD] = e->ready[v];
            if (first && e->ready[v] > first[PASS_SUMS])
                first[PASS_SUMS] = e->ready[v];
        }
}

static inline bool comes_before_group(const struct expected *e, enum pass pass, uint32_t a, uint32_t b) {
    const uint32_t x = e->groups[a].first[pass], y = e->groups[b].first[pass];
    return x < y || (x == y && a < b);
}

/* The group with sharded parameters that the pass comes to right before this one, or right after it; n_groups: none. */
static inline uint32_t next_group(const struct expected *e, enum pass pass, uint32_t group, bool before) {
    uint32_t best = e->n_groups;
    for (uint32_t g = 0; g < e->n_groups; g++) {
        const uint32_t low = before ? g : group, high = before ? group : g;
        if (e->groups[g].sharded && comes_before_group(e, pass, low, high) &&
            (best == e->n_groups || comes_before_group(e, pass, before ? best : g, before ? g : best)))
            best = g;
    }
    return best;
}

/* The step that the pass comes to so many groups before this one; `none` where there are fewer. */
static inline uint32_t step_ahead(const struct expected *e, enum pass pass, uint32_t group, uint32_t ahead,
                                  uint32_t none) {
    for (; ahead > 0 && group < e->n_groups; ahead--)
        group = next_group(e, pass, group, true);
    return group < e->n_groups ? e->groups[group].first[pass] : none;
}

static inline void expect_times(const struct strategy *s, struct expected *e) {
    const uint32_t update = e->n_steps - 1;
    for (uint32_t g = 0; g < e->n_groups; g++) {
        if (!e->groups[g].sharded)
            continue;
        struct expected_times *times = e->groups[g].times;
        const uint32_t forward = step_ahead(e, PASS_FORWARD, g, s->forward_prefetch, 0);
        const uint32_t backward = step_ahead(e, PASS_BACKWARD, g, s->backward_prefetch, e->n_forward_steps);
        const uint32_t after = next_group(e, PASS_SUMS, g, false);
        times[PASS_FORWARD] =
            (struct expected_times){forward > 0 ? forward - 1 : update, e->groups[g].first[PASS_FORWARD]};
        times[PASS_BACKWARD] = (struct expected_times){backward - 1, e->groups[g].first[PASS_BACKWARD]};
        times[PASS_SUMS] = (struct expected_times){
            e->groups[g].first[PASS_SUMS], after < e->n_groups ? e->groups[after].first[PASS_SUMS] + 1 : update};
    }
}

/* ---- steps and messages ---- */

static inline bool is_second_half(const struct message *m) {
    return m->half == HALF_gather && m->other != NO_MESSAGE;
}

static inline enum pass pass_of(const struct plan *p, const struct message *m) {
    if (m->half != HALF_gather)
        return m->half == HALF_replicas ? PASS_NONE : PASS_SUMS;
    return is_second_half(m) ? PASS_NONE : m->gate < p->n_forward_steps ? PASS_FORWARD : PASS_BACKWARD;
}

/* Whether what goes this way is in the pass. */
static inline bool is_in_pass(const struct strategy *s, const struct variable_sync *way, enum pass pass) {
    if (pass == PASS_SUMS)
        return true;
    if (way->kind != SYNC_ALL_REDUCE || s->groups[way->group].sharded != SHARDED_parameters)
        return false;
    return pass == PASS_FORWARD || !s->groups[way->group].keeps_gathered;
}

static inline const char *broken_steps(const struct plan *p, const struct expected *e) {
    double forward = 0, backward = 0;
    if (p->n_steps != e->n_steps || p->n_forward_steps != e->n_forward_steps)
        return "the number of steps";
    if (p->ends_in_update != e->update)
        return "sharded parameters end in an update";
    for (uint32_t k = 0; k < p->n_steps; k++) {
        if (fabs(p->step_us[k] - e->step_us[k]) > (p->model->update_us > 0 ? 1e-9 * e->step_us[k] : 0))
            return "the time of a step";
        *(k < p->n_forward_steps ? &forward : &backward) += p->step_us[k];
    }
    if (fabs(forward - p->model->forward_us - e->forward_update_us) > 1e-9 * forward ||
        fabs(backward - p->model->backward_us - e->backward_update_us) > 1e-9 * backward)
        return "the steps add up to the passes";
    return NULL;
}

static inline enum dtype expected_carried(enum carried carried, enum dtype own) {
    return carried == CARRIED_f32    ? DTYPE_f32
           : carried == CARRIED_f16  ? DTYPE_f16
           : carried == CARRIED_bf16 ? DTYPE_bf16
                                     : own;
}

/* In which type a gradient travels. */
static inline enum dtype expected_sum(const struct strategy *s, const struct variable *v,
                                      const struct variable_sync *sync) {
    if (sync->kind == SYNC_ALL_REDUCE && s->groups[sync->group].sharded == SHARDED_parameters)
        return expected_carried(s->groups[sync->group].summed_as, v->dtype);
    return sync->encoding == ENCODING_f16 ? DTYPE_f16 : sync->encoding == ENCODING_bf16 ? DTYPE_bf16 : v->dtype;
}

static inline uint64_t expected_width(const struct strategy *s, const struct variable *v,
                                      const struct variable_sync *sync) {
    return dtype_bytes(expected_sum(s, v, sync));
}

static inline bool expected_sparse(const struct strategy *s, const struct variable *v,
                                   const struct variable_sync *sync) {
    bool gathered = sync->kind == SYNC_ALL_REDUCE && s->groups[sync->group].algorithm == ALGORITHM_all_gather;
    return v->sparse_rows && (sync->kind == SYNC_PARAMETER_SERVER || gathered);
}

/* Bytes of the whole gradient: sparse ones carry 8 bytes of index a touched row and shard that it crosses. */
static inline uint64_t expected_bytes(const struct strategy *s, const struct variable *v,
                                      const struct variable_sync *sync) {
    uint64_t width = expected_width(s, v, sync);
    if (!expected_sparse(s, v, sync))
        return v->elements * width;
    uint64_t indices = sync->axis == 0 ? 1 : sync->shards;
    return v->sparse_rows * (v->elements / v->shape[0] * width + 8 * indices);
}

/* Bytes of shard k: with q rows for each, the first dim mod shards have one more. */
static inline uint64_t expected_shard(const struct strategy *s, const struct variable *v,
                                      const struct variable_sync *of, uint32_t k) {
    const struct variable_sync *sync = of->each ? &of->each[k] : of;
    bool sparse = expected_sparse(s, v, sync);
    if (sync->shards == 1)
        return expected_bytes(s, v, sync);
    uint64_t dim = sparse && sync->axis == 0 ? v->sparse_rows : v->shape[sync->axis];
    uint64_t rows = dim / sync->shards + (k < dim - dim / sync->shards * sync->shards ? 1 : 0);
    if (!sparse)
        return v->elements / v->shape[sync->axis] * rows * expected_width(s, v, sync);
    if (sync->axis == 0)
        return rows * (v->elements / v->shape[0] * expected_width(s, v, sync) + 8);
    return v->sparse_rows * (v->elements / v->shape[0] / dim * rows * expected_width(s, v, sync) + 8);
}

/* Bytes of all shards, or of the one with an entry of its own. */
static inline uint64_t expected_part(const struct strategy *s, const struct variable *v,
                                     const struct variable_sync *sync, uint32_t k) {
    return sync->each ? expected_shard(s, v, sync, k) : expected_bytes(s, v, sync);
}

/* What the strategy says of a piece; *start is where its shard begins, or 0 where all shards are synchronized alike. */
static inline const struct variable_sync *way_of_piece(const struct plan *p, const struct strategy *s,
                                                       const struct piece *piece, uint64_t *start) {
    const struct variable_sync *sync = &s->variables[piece->variable];
    *start = 0;
    for (uint32_t k = 0; sync->each && k < sync->shards; k++) {
        uint64_t end = *start + expected_shard(s, &p->model->variables[piece->variable], sync, k);
        if (piece->offset_bytes < end)
            return &sync->each[k];
        *start = end;
    }
    return sync;
}

static inline bool gathers_shards(const struct message *m) {
    return m->half == HALF_gather && m->other == NO_MESSAGE;
}

static inline enum dtype expected_dtype(const struct strategy *s, const struct message *m, const struct variable *v,
                                        const struct variable_sync *sync) {
    return gathers_shards(m) ? expected_carried(s->groups[sync->group].gathered_as, v->dtype)
                             : expected_sum(s, v, sync);
}

/* What blocks of a byte an element and a scale of four bytes make of so many elements. */
static inline uint64_t expected_int8(uint64_t elements, uint64_t block) {
    uint64_t bytes = 0;
    for (; elements > block; elements -= block)
        bytes += block + 4;
    return bytes + elements + (elements ? 4 : 0);
}

/* The fewest whole elements that are no less than the part, eight bytes each. */
static inline uint64_t expected_topk(uint64_t elements, double part) {
    uint64_t kept = 1;
    while ((double)kept < part * (double)elements)
        kept++;
    return 8 * kept;
}

/* Vectors, `rank` columns for each matrix and its transpose: f32, of which *second belong to the transposes. */
static inline uint64_t expected_powersgd(const struct plan *p, const struct message *m, uint64_t *second) {
    uint64_t first = 0;
    *second = 0;
    for (uint32_t i = 0; i < m->n_pieces; i++) {
        const struct variable *v = &p->model->variables[p->pieces[m->first_piece + i].variable];
        uint64_t columns = 1;
        for (uint32_t axis = 1; axis < v->rank; axis++)
            columns *= v->shape[axis];
        first += 4 * (v->rank < 2 ? v->elements : v->shape[0] * (uint64_t)m->figure);
        *second += v->rank < 2 ? 0 : 4 * columns * (uint64_t)m->figure;
    }
    return first + *second;
}

static inline bool has_expected_bytes(const struct plan *p, const struct message *m, uint64_t elements) {
    uint64_t second = 0;
    const uint64_t bytes = m->encoder == ENCODING_topk       ? expected_topk(elements, m->figure)
                           : m->encoder == ENCODING_powersgd ? expected_powersgd(p, m, &second)
                                                             : expected_int8(elements, (uint64_t)m->figure);
    return m->bytes == bytes && m->second_bytes == second;
}

static inline uint64_t wider_bytes(enum dtype a, enum dtype b) {
    return dtype_bytes(a) > dtype_bytes(b) ? dtype_bytes(a) : dtype_bytes(b);
}

/* The bytes of a message of sharded parameters, and what is converted; of others the bytes. */
static inline const char *broken_carried(const struct plan *p, const struct strategy *s, const struct message *m,
                                         const struct variable_sync *sync, uint64_t bytes) {
    const struct variable *v = &p->model->variables[p->pieces[m->first_piece].variable];
    const struct group *group = sync->kind == SYNC_ALL_REDUCE ? &s->groups[sync->group] : NULL;
    const bool sharded = group && group->sharded == SHARDED_parameters, gathers = gathers_shards(m);
    const bool adds_up = s->micro_batches > 1 && s->synchronize == SYNCHRONIZE_last;
    const uint64_t elements = bytes / expected_width(s, v, sync);
    if (message_piece_bytes(m) != bytes || m->bytes != (gathers ? elements * dtype_bytes(m->dtype) : bytes))
        return "the bytes of a message are those of its pieces";
    if (!sharded)
        return m->converted_bytes == 0 ? NULL : "only sharded parameters are in parts of another type";
    const enum dtype made = expected_carried(adds_up ? group->summed_as : group->gathered_as, v->dtype);
    const uint64_t encoded = !gathers && made != m->dtype ? elements : 0;
    if (m->encoded_bytes != encoded * dtype_bytes(m->dtype) ||
        m->unencoded_bytes != encoded * wider_bytes(made, m->dtype))
        return "gradients are converted into the type of the sums";
    const uint64_t parts = m->half == HALF_replicas ? m->stride : m->ranks ? m->ranks : p->cluster->n_devices;
    const bool converts = m->dtype != v->dtype && m->replicas == 0;
    const bool later = m->half == HALF_scatter && m->ranks > 0; /* replicas come first */
    if (m->converted_bytes !=
        (converts && !later ? (elements + parts - 1) / parts * wider_bytes(m->dtype, v->dtype) : 0))
        return "each device converts its part";
    return (m->lossy != LOSSY_none) == (m->dtype != v->dtype && (m->dtype != DTYPE_f32 || v->dtype == DTYPE_f64))
               ? NULL
               : "what rounds is lossy";
}

/* The bytes of an encoded message, which come from those of its pieces. */
static inline const char *broken_encoder(const struct plan *p, const struct strategy *s, const struct message *m,
                                         const struct variable_sync *sync, uint64_t bytes) {
    const uint64_t elements = bytes / dtype_bytes(m->dtype);
    const bool encoded =
        sync->encoding == ENCODING_int8 || sync->encoding == ENCODING_topk || sync->encoding == ENCODING_powersgd;
    if (m->encoder != (encoded ? sync->encoding : ENCODING_none))
        return "a message has the encoder of its variables";
    if (!m->encoder)
        return broken_carried(p, s, m, sync, bytes);
    if (m->figure != sync->figure || m->unencoded_bytes != bytes || m->encoded_bytes != m->bytes)
        return "all of a message is encoded alike";
    return has_expected_bytes(p, m, elements) ? NULL : "an encoded message has these bytes";
}

/* When a message is ready and what waits for it, by the variables in it. */
static inline const char *broken_times(const struct plan *p, const struct strategy *s, const struct expected *e,
                                       const struct message *m) {
    uint32_t ready = 0, gate = UINT32_MAX;
    uint64_t start;
    const struct variable_sync *way = way_of_piece(p, s, &p->pieces[m->first_piece], &start);
    if (way->kind == SYNC_ALL_REDUCE && e->groups[way->group].sharded) {
        const enum pass pass = pass_of(p, m);
        if (m->half == HALF_replicas)
            return m->ready == e->groups[way->group].times[PASS_SUMS].ready && m->gate == p->n_steps - 1
                       ? NULL
                       : "the update waits for what replicas add";
        if (pass == PASS_NONE || !is_in_pass(s, way, pass))
            return "sharded parameters are gathered in the passes that need them";
        const struct expected_times *times = &e->groups[way->group].times[pass];
        return m->ready == times->ready && m->gate == times->gate ? NULL : "when sharded parameters are gathered";
    }
    for (uint32_t i = 0; i < m->n_pieces; i++) {
        const uint32_t v = p->pieces[m->first_piece + i].variable;
        ready = e->ready[v] > ready ? e->ready[v] : ready;
        gate = e->gate[v] < gate ? e->gate[v] : gate;
    }
    if (m->ready != ready || m->ready < p->n_forward_steps || m->ready >= p->n_steps)
        return "a message is ready with the last of its gradients";
    if (m->gate != gate || (!e->update && m->gate >= p->n_forward_steps) ||
        (!p->cross_iteration && m->gate != (e->update ? p->n_steps - 1 : 0)))
        return "a message gates the first reader of its variables";
    return NULL;
}

/* One message against the variables in it. */
static inline const char *broken_message(const struct plan *p, const struct strategy *s, const struct expected *e,
                                         const struct message *m) {
    uint64_t bytes = 0, partition = 0, unused;
    if (!m->n_pieces || m->first_piece > p->n_pieces || m->n_pieces > p->n_pieces - m->first_piece)
        return "a message has pieces";
    for (uint32_t i = 0; i < m->n_pieces; i++) {
        const struct piece *piece = &p->pieces[m->first_piece + i];
        if (piece->variable >= s->n_variables || !piece->bytes)
            return "a piece is of some variable";
        uint64_t start;
        const struct variable_sync *other = way_of_piece(p, s, &p->pieces[m->first_piece], &unused);
        const struct variable_sync *sync = way_of_piece(p, s, piece, &start);
        if (sync->kind != m->kind || m->dtype != expected_dtype(s, m, &p->model->variables[piece->variable], sync))
            return "the kind and type of a message are those of its variables";
        if (m->kind == SYNC_ALL_REDUCE &&
            (sync->group != other->group || m->algorithm != s->groups[sync->group].algorithm || m->local_reduction))
            return "a message is of one group";
        if (m->kind == SYNC_PARAMETER_SERVER && (sync->push != other->push || (m->n_pieces > 1 && !sync->push) ||
                                                 m->local_reduction != sync->local_reduction))
            return "a push is of one variable, or of those that share it";
        for (uint32_t j = 0; j < i && i < 64; j++)
            if (p->pieces[m->first_piece + j].variable == piece->variable)
                return "shards of a variable share no message";
        const uint64_t width = expected_width(s, &p->model->variables[piece->variable], sync);
        if (m->kind == SYNC_ALL_REDUCE && (piece->bytes % width || (piece->offset_bytes - start) % width))
            return "no element is cut";
        partition = m->kind == SYNC_ALL_REDUCE ? s->groups[sync->group].partition_bytes : sync->partition_bytes;
        bytes += piece->bytes;
    }
    const char *broken = broken_encoder(p, s, m, way_of_piece(p, s, &p->pieces[m->first_piece], &unused), bytes);
    if (broken)
        return broken;
    if (partition && bytes > partition)
        return "a message is no larger than its partition";
    return broken_times(p, s, e, m);
}

struct covered {
    struct piece piece;
    const struct message *message;
};

static inline int compare_covered(const void *a, const void *b) {
    const struct covered *x = a, *y = b;
    if (x->piece.variable != y->piece.variable)
        return x->piece.variable < y->piece.variable ? -1 : 1;
    return (x->piece.offset_bytes > y->piece.offset_bytes) - (x->piece.offset_bytes < y->piece.offset_bytes);
}

/* Every byte of what is in the pass once, each piece inside one shard, each shard on its server, and no more messages
 * than needed. */
static inline const char *broken_variable(const struct plan *p, const struct strategy *s, uint32_t v, enum pass pass,
                                          const struct covered *pieces, uint32_t n) {
    const struct variable *variable = &p->model->variables[v];
    const struct variable_sync *sync = &s->variables[v];
    uint64_t offset = 0;
    uint32_t i = 0;
    for (uint32_t k = 0; k < sync->shards; k++) {
        const struct variable_sync *way = sync->each ? &sync->each[k] : sync;
        const uint64_t partition = way->partition_bytes / 8 * 8;
        uint64_t shard = expected_shard(s, variable, sync, k), end = offset + shard;
        uint32_t first = i;
        if (!is_in_pass(s, way, pass)) {
            offset = end;
            continue;
        }
        for (; i < n && pieces[i].piece.offset_bytes < end; i++) {
            if (pieces[i].piece.offset_bytes != offset || pieces[i].piece.bytes > end - offset)
                return "every byte of a shard is in one piece";
            if (way->kind == SYNC_PARAMETER_SERVER && pieces[i].message->server != way->servers[k % way->n_servers])
                return "shard k is on server k mod n";
            offset += pieces[i].piece.bytes;
        }
        if (offset != end)
            return "every byte of a shard is in some piece";
        if (way->kind == SYNC_PARAMETER_SERVER && !way->push &&
            i - first != (partition ? (shard + partition - 1) / partition : shard > 0))
            return "a shard needs no more messages than its partition size makes";
    }
    if (i != n || (!sync->each && offset != expected_bytes(s, variable, sync)) ||
        offset != plan_gradient_bytes(s, variable, sync))
        return "the shards make up the gradient";
    return NULL;
}

/* *n_pieces grows by those of the pass. */
static inline const char *broken_pass(const struct plan *p, const struct strategy *s, enum pass pass,
                                      struct covered *all, uint32_t *n_pieces) {
    const char *broken = NULL;
    uint32_t n = 0, at = 0;
    for (uint32_t i = 0; i < p->n_messages; i++)
        for (uint32_t k = 0; k < p->messages[i].n_pieces && n < p->n_pieces; k++)
            if (pass_of(p, &p->messages[i]) == pass)
                all[n++] = (struct covered){p->pieces[p->messages[i].first_piece + k], &p->messages[i]};
    qsort(all, n, sizeof *all, compare_covered);
    for (uint32_t v = 0; v < s->n_variables && !broken; v++) {
        uint32_t first = at;
        while (at < n && all[at].piece.variable == v)
            at++;
        broken = broken_variable(p, s, v, pass, all + first, at - first);
    }
    *n_pieces += n;
    return broken || at == n ? broken : "every piece is of some variable";
}

static inline const char *broken_cover(const struct plan *p, const struct strategy *s) {
    const char *broken = NULL;
    uint32_t n = 0;
    struct covered *all = calloc(p->n_pieces + 1u, sizeof *all);
    if (!all)
        return "memory for the check";
    for (enum pass pass = 0; pass < PASS_COUNT && !broken; pass++)
        broken = broken_pass(p, s, pass, all, &n);
    free(all);
    return broken || n == p->n_pieces ? broken : "every piece is in one message";
}

/* Is it in this merge group, or in this push? */
static inline bool is_in(const struct variable_sync *sync, enum sync_kind kind, uint32_t number) {
    return sync->kind == kind && (kind == SYNC_ALL_REDUCE ? sync->group : sync->push) == number;
}

/* A group or push whose variables are whole makes ceil(bytes / partition) messages in a pass, all but the last of them
 * full. */
static inline const char *broken_merged(const struct plan *p, const struct strategy *s, enum sync_kind kind,
                                        uint32_t number, enum pass pass, uint64_t partition, uint64_t *bytes) {
    uint64_t messages = 0, full = 0;
    bool whole = true;
    *bytes = 0;
    for (uint32_t v = 0; v < s->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&s->variables[v]); k++)
            if (is_in(sync_part(&s->variables[v], k), kind, number) &&
                is_in_pass(s, sync_part(&s->variables[v], k), pass)) {
                *bytes += expected_part(s, &p->model->variables[v], &s->variables[v], k);
                whole = whole && s->variables[v].shards == 1;
                partition = kind == SYNC_ALL_REDUCE ? partition : s->variables[v].partition_bytes;
            }
    partition = partition / 8 * 8;
    for (uint32_t i = 0; i < p->n_messages; i++) {
        uint64_t start;
        if (pass_of(p, &p->messages[i]) == pass &&
            is_in(way_of_piece(p, s, &p->pieces[p->messages[i].first_piece], &start), kind, number)) {
            messages++;
            full += message_piece_bytes(&p->messages[i]) == partition;
        }
    }
    if (whole && messages != (partition ? (*bytes + partition - 1) / partition : *bytes > 0))
        return "a group or push needs no more messages than its partition size makes";
    if (whole && partition && full != *bytes / partition)
        return "every message of a group or push but the last is full";
    return NULL;
}

static inline const char *broken_groups(const struct plan *p, const struct strategy *s) {
    const char *broken = NULL;
    uint64_t bytes = 1;
    for (uint32_t g = 0; g < s->n_groups && !broken; g++)
        for (enum pass pass = 0; pass < PASS_COUNT && !broken; pass++)
            broken = broken_merged(p, s, SYNC_ALL_REDUCE, g, pass, s->groups[g].partition_bytes, &bytes);
    bytes = 1;
    for (uint32_t push = 1; push <= s->n_variables && bytes && !broken; push++) /* sealed: none is left out */
        broken = broken_merged(p, s, SYNC_PARAMETER_SERVER, push, PASS_SUMS, 0, &bytes);
    return broken;
}

/* How far a group's stream has got: the last piece of it. */
struct stream_end {
    bool begun;
    struct piece last;
};

/* The next piece of a group's stream goes on where the last one ended, or begins the next variable. */
static inline const char *broken_stream(const struct strategy *s, const struct model *model, const struct expected *e,
                                        struct stream_end *end, const struct piece *piece) {
    const struct piece *last = &end->last;
    uint64_t at = last->offset_bytes + last->bytes;
    bool same = end->begun && last->variable == piece->variable;
    if (same ? piece->offset_bytes != at : piece->offset_bytes != 0)
        return "a slice goes on where the slice before it ended";
    if (!same && end->begun &&
        (at != expected_bytes(s, &model->variables[last->variable], &s->variables[last->variable]) ||
         e->ready[last->variable] > e->ready[piece->variable]))
        return "members of a stream follow one another, whole, in the order of readiness";
    *end = (struct stream_end){true, *piece};
    return NULL;
}

/* Under preemptive message i is slice i. */
static inline const char *broken_slices(const struct plan *p, const struct strategy *s, const struct expected *e) {
    const char *broken = NULL;
    if (p->n_messages != s->n_slices)
        return "a slice is a message";
    struct stream_end *ends = calloc(s->n_groups + 1u, sizeof *ends);
    if (!ends)
        return "memory for the check";
    for (uint32_t i = 0; i < p->n_messages && !broken; i++) {
        const struct message *m = &p->messages[i];
        const struct piece *pieces = &p->pieces[m->first_piece];
        if (m->bytes != s->slices[i].bytes || s->variables[pieces->variable].group != s->slices[i].group)
            broken = "messages go in the order of the slices";
        for (uint32_t k = 0; k < m->n_pieces && !broken; k++)
            broken = broken_stream(s, p->model, e, &ends[s->slices[i].group], &pieces[k]);
    }
    free(ends);
    return broken;
}

/* Messages that are ready together: sums of groups, what is gathered, and what is served. */
static inline int turn_class(const struct message *m) {
    return m->kind == SYNC_PARAMETER_SERVER ? 2 : m->half == HALF_gather;
}

/* Whether fifo puts a after b. Time is counted from where nothing is in flight. */
static inline bool goes_later(const struct plan *p, const struct message *a, const struct message *b) {
    const bool second = is_second_half(a) || a->half == HALF_replicas,
               other = is_second_half(b) || b->half == HALF_replicas;
    const uint32_t x = p->ends_in_update ? (a->ready + 1) % p->n_steps : a->ready;
    const uint32_t y = p->ends_in_update ? (b->ready + 1) % p->n_steps : b->ready;
    if (second != other)
        return second;
    if (second && a->gate != b->gate)
        return a->gate > b->gate;
    if (second || x != y)
        return x > y;
    if (turn_class(a) != turn_class(b))
        return turn_class(a) > turn_class(b);
    return turn_class(a) == 1 && a->gate > b->gate;
}

/* Of groups in halves messages are pairs, each in its place, that agree in all but the half. */
static inline const char *broken_halves(const struct plan *p, const struct strategy *s) {
    for (uint32_t i = 0; i < p->n_messages; i++) {
        const struct message *m = &p->messages[i];
        uint64_t start;
        const struct variable_sync *sync = way_of_piece(p, s, &p->pieces[m->first_piece], &start);
        const enum sharded sharded = m->kind == SYNC_ALL_REDUCE ? s->groups[sync->group].sharded : SHARDED_none;
        const bool paired = sharded == SHARDED_optimizer || sharded == SHARDED_gradients;
        const bool follows = m->half == HALF_replicas;
        if ((sharded != SHARDED_none) != (m->half != HALF_none) || (paired || follows) == (m->other == NO_MESSAGE))
            return "messages of sharded groups are halves";
        if (!paired)
            continue;
        const struct message *other = m->other < p->n_messages ? &p->messages[m->other] : m;
        if (other == m || other->other != i || other->half == m->half || other->first_piece != m->first_piece ||
            other->n_pieces != m->n_pieces || other->bytes != m->bytes || other->gate != m->gate ||
            other->ready != m->ready || other->dtype != m->dtype)
            return "two halves are of one message";
    }
    return NULL;
}

/* Among how many devices a message moves. */
static inline uint32_t expected_ranks(const struct plan *p, const struct strategy *s, const struct message *m) {
    uint64_t start;
    const struct variable_sync *way = way_of_piece(p, s, &p->pieces[m->first_piece], &start);
    if (way->kind != SYNC_ALL_REDUCE || s->groups[way->group].sharded != SHARDED_parameters)
        return 0;
    if (m->half == HALF_replicas)
        return p->cluster->n_devices / s->shard_ranks;
    if (pass_of(p, m) == PASS_BACKWARD && s->groups[way->group].reshard_ranks)
        return s->groups[way->group].reshard_ranks;
    return s->shard_ranks;
}

/* With replicas an all-reduce behind all other messages follows each reduce-scatter of parameters. */
static inline const char *broken_replicas(const struct plan *p, const struct strategy *s) {
    uint32_t n = 0, follow = 0;
    for (uint32_t i = 0; i < p->n_messages; i++) {
        const struct message *m = &p->messages[i], *next = &p->messages[m->replicas];
        const uint32_t ranks = expected_ranks(p, s, m);
        if (m->ranks != ranks || m->stride != (m->half == HALF_replicas ? s->shard_ranks : ranks > 0))
            return "in which groups of devices a message moves";
        n += m->half == HALF_replicas;
        if ((m->replicas > 0) != (m->half == HALF_scatter && ranks > 0))
            return "what replicas add follows a reduce-scatter";
        if (m->replicas == 0)
            continue;
        follow++;
        if (m->replicas < p->n_messages - p->n_replicas || next->half != HALF_replicas || next->other != i ||
            next->first_piece != m->first_piece || next->n_pieces != m->n_pieces || next->bytes != m->bytes)
            return "replicas add what was reduce-scattered";
    }
    return n == follow && n == p->n_replicas ? NULL : "how many messages are among replicas";
}

static inline const char *broken_order(const struct plan *p) {
    uint32_t *at = calloc(p->n_messages + 1u, sizeof *at); /* message + 1, by fifo_rank */
    const char *broken = at ? NULL : "memory for the check";
    for (uint32_t i = 0; i < p->n_messages && !broken; i++) {
        const struct message *m = &p->messages[i], *before = i ? m - 1 : m;
        bool by_gate = p->policy == POLICY_priority, fifo = p->policy == POLICY_fifo;
        if (m->fifo_rank >= p->n_messages || at[m->fifo_rank])
            broken = "fifo ranks are a permutation";
        else if (fifo && m->fifo_rank != i)
            broken = "under fifo the order is that of readiness";
        else if (by_gate && (before->gate > m->gate || (before->gate == m->gate && before->fifo_rank > m->fifo_rank)))
            broken = "under priority the order is that of gates, then of readiness";
        else
            at[m->fifo_rank] = i + 1;
    }
    for (uint32_t r = 1; r < p->n_messages && !broken; r++)
        if (goes_later(p, &p->messages[at[r - 1] - 1], &p->messages[at[r] - 1]))
            broken = "fifo ranks rise with readiness, and then with second halves' gates";
        else if (p->policy == POLICY_preemptive && at[r - 1] > at[r] &&
                 p->messages[at[r - 1] - 1].ready == p->messages[at[r] - 1].ready)
            broken = "and where that is equal, with the order of slices";
    free(at);
    return broken;
}

/* No step makes a second half ready, nor what replicas add, and none waits for a first half. */
static inline bool is_indexed(const struct message *m, bool gates) {
    if (m->half == HALF_replicas)
        return gates;
    return m->other == NO_MESSAGE || m->half == (gates ? HALF_gather : HALF_scatter);
}

/* first/by list each message once, under its own key, in rank order. */
static inline bool index_holds(const struct plan *p, const uint32_t *first, const uint32_t *by, bool gates) {
    uint32_t n = 0;
    for (uint32_t m = 0; m < p->n_messages; m++)
        n += is_indexed(&p->messages[m], gates);
    if (first[0] != 0 || first[p->n_steps] != n)
        return false;
    for (uint32_t k = 0; k < p->n_steps; k++) {
        if (first[k] > first[k + 1])
            return false;
        for (uint32_t i = first[k]; i < first[k + 1]; i++) {
            if (by[i] >= p->n_messages || (i > first[k] && by[i] <= by[i - 1]))
                return false;
            if ((gates ? p->messages[by[i]].gate : p->messages[by[i]].ready) != k ||
                !is_indexed(&p->messages[by[i]], gates))
                return false;
        }
    }
    return true;
}

static inline const char *broken_sums(const struct plan *p, const struct strategy *s) {
    uint64_t bytes = 0, most = 0;
    bool all_reduce = false, server = false;
    for (uint32_t v = 0; v < s->n_variables; v++)
        for (uint32_t k = 0; k < s->variables[v].shards; k++)
            bytes += expected_shard(s, &p->model->variables[v], &s->variables[v], k);
    for (uint32_t i = 0; i < p->n_messages; i++) {
        most = p->messages[i].bytes > most ? p->messages[i].bytes : most;
        if (p->messages[i].encoder)
            bytes += p->messages[i].bytes - p->messages[i].unencoded_bytes;
        *(p->messages[i].kind == SYNC_ALL_REDUCE ? &all_reduce : &server) = true;
    }
    if (bytes != p->bytes || most != p->max_bytes)
        return "the plan's bytes are those of all gradients";
    return all_reduce == p->any_all_reduce && server == p->any_server ? NULL : "which kinds there are";
}

static inline const char *broken_against(const struct plan *p, const struct strategy *s, const struct expected *e) {
    const char *broken = broken_steps(p, e);
    if (p->pulls_by_priority != strategy_orders_pulls(s) || p->policy != s->policy ||
        p->credit_bytes != s->credit_bytes || p->cross_iteration != s->cross_iteration)
        broken = "the schedule is the strategy's";
    for (uint32_t i = 0; i < p->n_messages && !broken; i++)
        broken = broken_message(p, s, e, &p->messages[i]);
    if (!broken)
        broken = broken_cover(p, s);
    if (!broken)
        broken = s->policy == POLICY_preemptive ? broken_slices(p, s, e) : broken_groups(p, s);
    if (!broken)
        broken = broken_halves(p, s);
    if (!broken)
        broken = broken_replicas(p, s);
    if (!broken)
        broken = broken_order(p);
    if (!broken && !index_holds(p, p->first_ready, p->by_ready, false))
        broken = "by_ready is the inverse of ready";
    if (!broken && !index_holds(p, p->first_gate, p->by_gate, true))
        broken = "by_gate is the inverse of gate";
    return broken ? broken : broken_sums(p, s);
}

/* `s` is sealed and `p` was lowered from it. */
static inline const char *plan_broken(const struct plan *p, const struct strategy *s) {
    const struct model *m = p->model;
    struct expected e = {.step_of = calloc(m->n_operators, sizeof *e.step_of),
                         .ready = calloc(m->n_variables, sizeof *e.ready),
                         .gate = calloc(m->n_variables, sizeof *e.gate),
                         .read = calloc(m->n_variables, sizeof *e.read),
                         .n_groups = s->n_groups,
                         .groups = calloc(s->n_groups + 1u, sizeof *e.groups),
                         .step_us = calloc(m->n_operators + 2u, sizeof *e.step_us)};
    const char *broken = "memory for the check";
    if (e.step_of && e.ready && e.gate && e.read && e.groups && e.step_us) {
        for (uint32_t g = 0; g < s->n_groups; g++)
            e.update |= s->groups[g].sharded == SHARDED_parameters;
        expect_steps(m, s->cross_iteration, &e);
        expect_firsts(s, &e);
        expect_times(s, &e);
        expect_updates(m, p->cluster, s, &e);
        broken = broken_against(p, s, &e);
    }
    free(e.step_of);
    free(e.ready);
    free(e.gate);
    free(e.read);
    free(e.groups);
    free(e.step_us);
    return broken;
}

#endif
