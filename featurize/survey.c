/* One pass over a plan: when gradients are ready, which pieces belong to which variable, what each message costs.
 *
 * A plan stores its pieces message by message, and the pieces of one variable by rising offset, unless its shards are
 * synchronized in several ways, or its parameters are sharded and it is in up to three messages. One stable counting
 * sort brings those of a variable together. The messages of several micro-batches share their pieces; that of the last
 * one counts as theirs. Partitions make many consecutive messages of one size and algorithm; these are priced once.
 * O(operators + messages + pieces). */
#include <stdlib.h>

#include "featurize/features.h"
#include "featurize/features_internal.h"

static bool alloc_u32(struct arena *arena, uint32_t **out, size_t n) {
    return (*out = arena_alloc(arena, n, sizeof **out));
}

static enum status order_gradients(struct survey *s, struct error *err) {
    uint32_t n = s->plan->model->n_variables, *place;
    struct gradient *gradients = arena_alloc(&s->arena, n, sizeof *gradients);
    if (!gradients || !alloc_u32(&s->arena, &place, n))
        return error_no_memory(err);
    enum status status = gradients_list(s->plan->model, 1, WITH_UPDATES, gradients, err);
    if (status)
        return status;
    for (uint32_t i = 0; i < n; i++)
        place[gradients[i].variable] = i;
    s->gradients = gradients;
    s->place = place;
    return ST_OK;
}

static int by_offset(const void *a, const void *b, void *survey) {
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct piece *pieces = ((const struct survey *)survey)->plan->pieces;
    const uint64_t x = pieces[i].offset_bytes, y = pieces[j].offset_bytes;
    return x != y ? (x > y) - (x < y) : (i > j) - (i < j);
}

static enum status sort_pieces(struct survey *s, struct error *err) {
    const struct plan *plan = s->plan;
    uint32_t n = plan->n_pieces, n_variables = plan->model->n_variables, *holder, *first, *piece, *message_of;
    if (!alloc_u32(&s->arena, &holder, n) || !alloc_u32(&s->arena, &first, (size_t)n_variables + 2) ||
        !alloc_u32(&s->arena, &piece, n) || !alloc_u32(&s->arena, &message_of, n))
        return error_no_memory(err);
    for (uint32_t m = 0; m < plan->n_messages; m++)
        for (uint32_t i = 0; i < plan->messages[m].n_pieces && plan_is_last_pass(plan, plan->messages[m].ready); i++)
            holder[plan->messages[m].first_piece + i] = m;
    for (uint32_t i = 0; i < n; i++)
        first[plan->pieces[i].variable + 2]++;
    for (uint32_t v = 0; v < n_variables; v++)
        first[v + 2] += first[v + 1];
    for (uint32_t i = 0; i < n; i++)
        piece[first[plan->pieces[i].variable + 1]++] = i;
    for (uint32_t v = 0; v < n_variables; v++)
        if (s->strategy->variables[v].each || plan->ends_in_update)
            qsort_r(piece + first[v], first[v + 1] - first[v], sizeof *piece, by_offset, s);
    for (uint32_t at = 0; at < n; at++)
        message_of[at] = holder[piece[at]];
    s->first_piece = first;
    s->piece = piece;
    s->message_of = message_of;
    return ST_OK;
}

static void price(struct survey *s, uint32_t m) {
    const struct message *message = &s->plan->messages[m], *before = m ? message - 1 : NULL;
    struct message_view *view = &s->messages[m];
    if (before && before->bytes == message->bytes && before->kind == message->kind &&
        before->algorithm == message->algorithm && before->half == message->half &&
        before->encoder == message->encoder && before->unencoded_bytes == message->unencoded_bytes &&
        before->ranks == message->ranks && before->stride == message->stride) {
        *view = view[-1];
    } else {
        view->log2_bytes = feature_log2((double)message->bytes);
        if (message->kind == SYNC_ALL_REDUCE) {
            struct all_reduce_cost c = cost_all_reduce(s->cost, message);
            view->startup_us = c.startup_us;
            view->transfer_us = c.transfer_us;
        }
    }
    s->startup_us += view->startup_us;
    s->transfer_us += view->transfer_us;
}

static enum status view_messages(struct survey *s, struct error *err) {
    const struct plan *plan = s->plan;
    s->messages = arena_alloc(&s->arena, plan->n_messages, sizeof *s->messages);
    double *end_us = arena_alloc(&s->arena, plan->n_steps, sizeof *end_us), now = 0;
    if (!s->messages || !end_us)
        return error_no_memory(err);
    for (uint32_t k = 0; k < plan->n_steps; k++) {
        if (plan_step_in_pass(plan, k) == plan->n_forward_steps)
            now = 0;
        end_us[k] = now += plan->step_us[k];
    }
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        price(s, m);
        s->messages[m].ready_us = end_us[plan->messages[m].ready];
    }
    return ST_OK;
}

static enum status view_groups(struct survey *s, struct error *err) {
    const struct strategy *strategy = s->strategy;
    s->groups = arena_alloc(&s->arena, strategy->n_groups, sizeof *s->groups);
    if (!s->groups)
        return error_no_memory(err);
    for (uint32_t v = 0; v < strategy->n_variables; v++) {
        const struct variable_sync *sync = &strategy->variables[v];
        for (uint32_t k = 0; k < sync_parts(sync); k++) {
            if (sync_part(sync, k)->kind != SYNC_ALL_REDUCE)
                continue;
            struct group_totals *group = &s->groups[sync_part(sync, k)->group];
            group->bytes += (double)plan_part_bytes(strategy, &s->plan->model->variables[v], sync, k);
            group->members++;
        }
    }
    return ST_OK;
}

enum status survey_plan(struct survey *s, struct error *err) {
    const struct model *model = s->plan->model;
    s->forward_us = model->forward_us + model->update_us; /* at most */
    s->backward_us = model->backward_us;
    s->sums = s->plan->sums_each ? s->plan->micro_batches : 1;
    s->compute_us = (s->plan->micro_batches * (model->forward_us + model->backward_us) + s->plan->update_us) *
                    s->cost->cluster->nodes[s->cost->slowest].compute_scale;
    enum status status = order_gradients(s, err);
    if (!status)
        status = sort_pieces(s, err);
    if (!status)
        status = view_messages(s, err);
    if (!status)
        status = view_groups(s, err);
    return status;
}
