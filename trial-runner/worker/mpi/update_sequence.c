/* Every worker has at most a few updates on the way, so lists are short and searched. */
#include "trial-runner/worker/mpi/update_sequence.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "trial-runner/worker/report.h"

struct update_arrival {
    struct update_arrival *next;
    char *buffer;
    struct update_member first;
    uint32_t n;
};

void update_sequence_add(struct update_sequence *q, uint32_t n, const struct update_member *members, double norm) {
    if (!GROW(&q->steps, &q->room, q->n + 1))
        report_abort(ST_NO_MEMORY, "out of memory for %zu steps", q->n);
    struct update_step *step = &q->steps[q->n++];
    *step = (struct update_step){.n = n, .members = report_alloc(n, sizeof *members), .norm = norm};
    memcpy(step->members, members, n * sizeof *members);
}

void update_sequence_keep(struct update_sequence *q, const struct update_form *form, char *buffer) {
    const struct update_head *head = update_head_of(buffer);
    const bool sum = head->kind == UPDATE_SUM;
    struct update_arrival *arrival = report_alloc(1, sizeof *arrival), **end = &q->waiting;
    *arrival = (struct update_arrival){.buffer = buffer, .n = sum ? head->members : 1};
    arrival->first =
        sum ? update_members(form, buffer)[0] : (struct update_member){head->worker, head->iteration, head->version};
    while (*end)
        end = &(*end)->next;
    *end = arrival;
    q->n_waiting += arrival->n;
}

/* What has come and begins with this update; NULL: nothing. */
static struct update_arrival *find(const struct update_sequence *q, const struct update_member *member) {
    struct update_arrival *a = q->waiting;
    while (a && (a->first.worker != member->worker || a->first.iteration != member->iteration))
        a = a->next;
    return a;
}

bool update_sequence_is_whole(const struct update_sequence *q) {
    uint32_t here = 0;
    if (q->next == q->n)
        return false;
    const struct update_step *step = &q->steps[q->next];
    for (uint32_t i = 0; i < step->n; i++) {
        const struct update_arrival *arrival = find(q, &step->members[i]);
        here += arrival ? arrival->n : 0;
    }
    return here == step->n;
}

static char *take_out(struct update_sequence *q, struct update_arrival *arrival) {
    char *buffer = arrival->buffer;
    struct update_arrival **at = &q->waiting;
    while (*at != arrival)
        at = &(*at)->next;
    *at = arrival->next;
    q->n_waiting -= arrival->n;
    free(arrival);
    return buffer;
}

/* As trial-runner/worker/mpi/update_relay.c adds them up. */
static void add_up(struct update_sequence *q, const struct update_form *form, struct pool *pool,
                   const struct update_step *step, char *sum) {
    for (uint32_t i = 1; i < step->n; i++) {
        char *more = take_out(q, find(q, &step->members[i]));
        update_sum(form, sum, more);
        pool_give(pool, more);
    }
    *update_head_of(sum) =
        (struct update_head){.kind = UPDATE_SUM, .worker = step->members[0].worker, .members = step->n};
    memcpy(update_members(form, sum), step->members, step->n * sizeof *step->members);
}

char *update_sequence_take(struct update_sequence *q, const struct update_form *form, struct pool *pool) {
    const struct update_step *step = &q->steps[q->next++];
    struct update_arrival *first = find(q, &step->members[0]);
    const bool pieces = first->n < step->n;
    char *buffer = take_out(q, first);
    if (pieces)
        add_up(q, form, pool, step, buffer);
    return buffer;
}

/* Forget the step's updates that have not come; whether some are left. */
static bool keep_what_came(const struct update_sequence *q, struct update_step *step) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < step->n; i++)
        if (find(q, &step->members[i]))
            step->members[n++] = step->members[i];
    step->n = n;
    return n > 0;
}

static bool has_step(const struct update_sequence *q, const struct update_member *member) {
    for (size_t s = q->next; s < q->n; s++)
        for (uint32_t i = 0; i < q->steps[s].n; i++)
            if (q->steps[s].members[i].worker == member->worker &&
                q->steps[s].members[i].iteration == member->iteration)
                return true;
    return false;
}

/* Of the updates without a step that of the oldest version, and of its worker the first. */
static const struct update_arrival *find_oldest(const struct update_sequence *q) {
    const struct update_arrival *oldest = NULL;
    for (const struct update_arrival *a = q->waiting; a; a = a->next) {
        if (has_step(q, &a->first))
            continue;
        const bool older = !oldest || a->first.version < oldest->first.version ||
                           (a->first.worker == oldest->first.worker && a->first.iteration < oldest->first.iteration);
        oldest = older ? a : oldest;
    }
    return oldest;
}

uint32_t update_sequence_settle(struct update_sequence *q) {
    size_t kept = q->next;
    for (size_t s = q->next; s < q->n; s++)
        if (keep_what_came(q, &q->steps[s]))
            q->steps[kept++] = q->steps[s];
        else
            free(q->steps[s].members);
    q->n = kept;
    uint32_t added = 0;
    for (const struct update_arrival *a; (a = find_oldest(q)); added++)
        update_sequence_add(q, 1, &a->first, 1);
    return added;
}

void update_sequence_release(struct update_sequence *q, struct pool *pool) {
    while (q->waiting)
        pool_give(pool, take_out(q, q->waiting));
    for (size_t s = 0; s < q->n; s++)
        free(q->steps[s].members);
    free(q->steps);
    *q = (struct update_sequence){0};
}
