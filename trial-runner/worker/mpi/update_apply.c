/* A version that is on its way to a worker does not change: the next update goes into a copy. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "trial-runner/worker/elements.h"
#include "trial-runner/worker/mpi/update_replica.h"
#include "trial-runner/worker/mpi/update_server_internal.h"
#include "trial-runner/worker/report.h"

struct copy *update_server_copy(struct update_server *s, const struct update_form *form) {
    struct copy *copy = report_alloc(1, sizeof *copy);
    *copy = (struct copy){.buffer = pool_take(&s->pool, update_bytes(form)), .newest = true};
    return copy;
}

void update_server_open(const struct part *part, char *buffer, struct arrival *out) {
    const struct update_head *head = update_head_of(buffer);
    const bool sum = head->kind == UPDATE_SUM;
    *out = (struct arrival){
        .buffer = buffer, .n = sum ? head->members : 1, .alone = {head->worker, head->iteration, head->version}};
    out->members = sum ? update_members(part->form, buffer) : &out->alone;
}

/* The number that must be at sample k. */
static uint32_t value_at(const struct update_server *s, const struct part *part, const struct arrival *a, uint32_t k) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < a->n; i++)
        value += update_value(s->run, part->form, a->members[i].worker, a->members[i].iteration, k);
    return value;
}

static bool is_due(const struct part *part, const struct update_member *member) {
    const struct client *client = &part->clients[member->worker];
    return member->iteration == client->ended && member->version == client->version;
}

static void check_update(const struct update_server *s, const struct part *part, const struct arrival *a) {
    const struct update_form *form = part->form;
    const struct update_member *first = &a->members[0];
    const struct client *client = &part->clients[first->worker];
    const enum update_kind kind = update_head_of(a->buffer)->kind;
    bool right = kind == UPDATE_PUSH || kind == UPDATE_SUM;
    for (uint32_t i = 0; i < a->n && right; i++)
        right = is_due(part, &a->members[i]);
    for (uint32_t k = 0; k < form->n_samples && right; k++)
        right = update_holds(form, a->buffer, k, value_at(s, part, a, k));
    if (!right)
        report_abort(ST_TRIAL,
                     "wrong update: message %u, iteration %u of device %u from version %llu%s, where iteration %u from "
                     "version %llu is due",
                     form->number, first->iteration, first->worker, (unsigned long long)first->version,
                     a->n > 1 ? " and others in its sum" : "", client->ended, (unsigned long long)client->version);
}

/* A version that nobody is being sent. */
static void make_free(struct update_server *s, struct part *part) {
    struct copy *old = part->model;
    if (old->sending == 0)
        return;
    part->model = update_server_copy(s, part->form);
    memcpy(part->model->buffer, old->buffer, update_bytes(part->form));
    old->newest = false;
}

/* What sample k will hold. Sums that would leave the exact numbers of their type begin again at 0. */
static void expect_sum(const struct update_server *s, const struct part *part, const struct arrival *a, uint32_t k) {
    const struct update_form *form = part->form;
    uint32_t *sum = &head_of(part)->sums[k];
    const uint32_t value = value_at(s, part, a, k);
    if (*sum + value > kernel_exact_limit(form->message->dtype)) {
        update_store(form, part->model->buffer, k, 0);
        *sum = 0;
    }
    *sum += value;
}

/* A sum is one step of the momentum. Where it completes a version, make this. */
static void count_updates(struct update_server *s, struct part *part, const struct arrival *a) {
    struct update_head *head = head_of(part);
    const bool learns = part->form->weights_bytes > 0;
    if (learns)
        learned_add(s->learned, update_weights(a->buffer));
    head->updates += a->n;
    if (head->updates % updates_in_version(s->run) != 0)
        return;
    head->version = head->updates / updates_in_version(s->run);
    if (learns)
        learned_apply(s->learned, head->version, update_weights(part->model->buffer));
    if (s->run->replica >= 0)
        head->weights = update_hash(part->form, part->model->buffer);
}

static void add(struct update_server *s, struct part *part, const struct arrival *a) {
    make_free(s, part);
    for (uint32_t k = 0; k < part->form->n_samples; k++)
        expect_sum(s, part, a, k);
    update_add(part->form, part->model->buffer, a->buffer);
    count_updates(s, part, a);
    for (uint32_t k = 0; k < part->form->n_samples; k++)
        if (!update_holds(part->form, part->model->buffer, k, head_of(part)->sums[k]))
            report_abort(ST_TRIAL, "wrong sum: message %u, sample %u, after %llu updates", part->form->number, k,
                         (unsigned long long)head_of(part)->updates);
}

static void count_delay(struct update_counts *counts, uint64_t delay) {
    counts->useful++;
    counts->delays += (double)delay;
    counts->squares += (double)delay * (double)delay;
    counts->largest = delay > counts->largest ? delay : counts->largest;
    counts->of_delay[delay < UPDATE_DELAYS ? delay : UPDATE_DELAYS - 1]++;
}

/* Of the part of the largest message: an iteration ends when so many updates were applied as there are workers. */
static void tell_iteration(struct update_server *s, struct part *part, uint64_t updates) {
    const struct execute_options *options = s->run->options;
    if (part->form->number != s->run->largest || updates % workers(s) != 0 || updates > update_target(s->run))
        return;
    const uint32_t iteration = (uint32_t)(updates / workers(s)) - 1;
    const double now_us = clock_now_us(), time_us = now_us - part->began_us;
    part->began_us = now_us;
    if (iteration < options->warmup)
        return;
    s->counts.window_us += time_us;
    if (s->replica)
        update_replica_round(s->replica, iteration - options->warmup, time_us);
    else
        report_iteration(iteration - options->warmup, time_us);
}

/* An update over the bound is not applied. A sum cannot be parted; the scheduler sees to it that none is late. */
void update_server_apply(struct update_server *s, struct part *part, const struct arrival *a) {
    check_update(s, part, a);
    const uint32_t bound = s->run->plan->consistency.delay_bound;
    const uint64_t before = head_of(part)->updates, version = head_of(part)->version;
    if (a->n == 1 && bound > 0 && version - a->members[0].version > bound) {
        s->counts.late += update_is_measured(s->run, before);
        return;
    }
    add(s, part, a);
    for (uint32_t i = 0; i < a->n; i++) {
        const uint64_t at = (before + i) / updates_in_version(s->run);
        if (update_is_measured(s->run, before + i)) {
            count_delay(&s->counts, at - a->members[i].version);
            s->counts.summed += a->n > 1;
        }
        tell_iteration(s, part, before + i + 1);
    }
}
