/* What the replica is sent and how far the server may go ahead of it (trial-runner/worker/mpi/update_copies.h), in
 * random runs of a server, its workers and a replica that the test plays, against a plain reading:
 *
 *   - equation 2 of MLfabric is done step by step, w += h = momentum * h + u, with norms in place of updates; the
 *     server's w less the one that the replica is known to have is how far they may be apart. The server may apply a
 *     step when this stays within the bound.
 *   - the same with vectors of these norms: the models themselves are never farther apart than the bound.
 *   - copies are those of all updates, in the order in which these went, as many as the last batch allowed; two go at
 *     once where their NICs are together slower than the replica's.
 *   - nobody waits for ever: with no more batches, all that has gone is applied at both. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "strategy/cluster.h"
#include "tests/support/check.h"
#include "trial-runner/worker/mpi/update_copies.h"

enum { INSTANCES = 300, EVENTS = 400, NODES = 5, WORKERS = 7, MOST = EVENTS + WORKERS, WIDE = 2 };

enum state { COMPUTES, READY, HAS_TURN, GONE };

/* An update that has gone. */
struct gone {
    uint32_t worker, iteration, step;
    double norm;
    bool arrived; /* its copy */
};

/* Equation 2, of norms or of vectors. */
struct weights {
    uint32_t steps;
    double h, w, vector_h[WIDE], vector_w[WIDE];
};

struct run {
    struct rng rng;
    bool learns;
    struct node nodes[NODES];
    struct cluster cluster;
    struct message message;
    struct plan plan;
    struct world world;
    struct update_run update_run;
    struct update_sequence sequence;
    struct update_copies *copies;
    double rates[NODES * DIRECTION_COUNT], now_us;
    /* Workers. */
    enum state states[WORKERS];
    uint32_t iterations[WORKERS], pending[WORKERS], n_pending;
    double norms[WORKERS];
    /* What has gone, in order; steps, and where each begins. */
    struct gone list[MOST];
    uint32_t n, first[MOST + 1];
    double vectors[MOST][WIDE]; /* of steps */
    /* The plain reading. */
    struct weights server, replica, known; /* known: the replica as the server knows it */
    uint32_t taken, allowed, n_known_norms;
    double sum_of_norms, most, history; /* history: the last step's norm if each copy that was taken was a step */
    double promised;                    /* the bound when the server applied its last step: it settles in time */
    uint32_t held;                      /* times that the server had to wait */
};

/* ---- a cluster and a strategy ---- */

static void draw_cluster(struct run *r) {
    uint32_t device = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        const uint32_t left = WORKERS - device, devices = i + 1 == NODES ? left : (uint32_t)rng_below(&r->rng, 4);
        r->nodes[i] = (struct node){.devices = devices < left ? devices : left, .first_device = device};
        device += r->nodes[i].devices;
    }
    r->cluster = (struct cluster){.n_nodes = NODES, .n_devices = WORKERS, .nodes = r->nodes};
    for (uint32_t p = 0; p < NODES * DIRECTION_COUNT; p++)
        r->rates[p] = rng_between(&r->rng, 100, 1000);
}

/* Half of the runs learn nothing: every norm is 1, and the bound is often met exactly. */
static void draw_consistency(struct run *r) {
    struct consistency *c = &r->plan.consistency;
    *c = (struct consistency){.replicated = true, .replica = (uint32_t)rng_below(&r->rng, NODES)};
    c->copies_when_due = rng_below(&r->rng, 2);
    c->momentum = r->learns ? rng_uniform(&r->rng) * 0.9 : 0.5 * (double)rng_below(&r->rng, 2);
    c->divergence = r->learns ? rng_between(&r->rng, 0, 12) : (double)rng_below(&r->rng, 8);
}

static void run_init(struct run *r, uint64_t number) {
    memset(r, 0, sizeof *r);
    rng_seed(&r->rng, test_seed() + number);
    draw_cluster(r);
    r->learns = number % 2;
    draw_consistency(r);
    r->message = (struct message){.bytes = 10000};
    r->plan.messages = &r->message;
    r->world = (struct world){.cluster = &r->cluster};
    r->update_run = (struct update_run){.plan = &r->plan, .world = &r->world};
    r->copies = update_copies_new(&r->update_run, &r->sequence, r->rates);
}

static void run_release(struct run *r) {
    struct pool pool = {0};
    update_copies_free(r->copies);
    update_sequence_release(&r->sequence, &pool);
}

static uint32_t node_of(const struct run *r, uint32_t worker) {
    uint32_t node = 0;
    while (worker >= r->nodes[node].first_device + r->nodes[node].devices)
        node++;
    return node;
}

/* ---- the plain reading ---- */

static double momentum_of(const struct run *r) {
    return r->plan.consistency.momentum;
}

static double typical_of(const struct run *r) {
    return r->sum_of_norms / r->n_known_norms;
}

static double bound_of(const struct run *r) {
    return r->plan.consistency.divergence * typical_of(r) * (1 + 1e-12);
}

static void weights_apply(struct weights *m, double momentum, double norm, const double *vector) {
    m->h = momentum * m->h + norm;
    m->w += m->h;
    for (int d = 0; d < WIDE; d++) {
        m->vector_h[d] = momentum * m->vector_h[d] + vector[d];
        m->vector_w[d] += m->vector_h[d];
    }
    m->steps++;
}

static double norm_of_step(const struct run *r, uint32_t step) {
    double norm = 0;
    for (uint32_t i = r->first[step]; i < r->first[step + 1]; i++)
        norm += r->list[i].norm;
    return norm;
}

static void apply_next(const struct run *r, struct weights *m) {
    weights_apply(m, momentum_of(r), norm_of_step(r, m->steps), r->vectors[m->steps]);
}

/* After the server's next step, from what it knows of the replica. */
static double next_apart(const struct run *r) {
    struct weights next = r->server;
    apply_next(r, &next);
    return next.w - r->known.w;
}

static void expect_within(const struct run *r) {
    double sum = 0;
    for (int d = 0; d < WIDE; d++)
        sum += pow(r->server.vector_w[d] - r->replica.vector_w[d], 2);
    if (r->server.steps > r->replica.steps)
        assert_true(sqrt(sum) <= r->promised * (1 + 1e-9));
}

static bool is_allowed(const struct run *r) {
    const uint32_t at = r->taken;
    const bool begun = at > 0 && at < r->n && r->list[at].step == r->list[at - 1].step;
    return at < r->n && (at < r->allowed || begun);
}

/* Copies from one node share its NIC; those from the replica's own take none. */
static bool replica_is_free(const struct run *r) {
    const uint32_t replica = r->plan.consistency.replica;
    bool sends[NODES] = {false};
    double rate = 0;
    for (uint32_t i = 0; i < r->taken; i++)
        sends[node_of(r, r->list[i].worker)] |= !r->list[i].arrived;
    for (uint32_t node = 0; node < NODES; node++)
        rate += sends[node] && node != replica ? r->rates[node * DIRECTION_COUNT + DIRECTION_OUT] : 0;
    return rate < r->rates[replica * DIRECTION_COUNT + DIRECTION_IN];
}

/* How far apart updates part the models that come on the replica's last step `h`. */
static double parted_by(uint32_t n, const double *norms, double h, double momentum) {
    double ahead = 0, step = h;
    for (uint32_t i = 0; i < n; i++) {
        step = momentum * step + norms[i];
        ahead += step;
    }
    return ahead;
}

/* Of n updates without a copy, how many the replica must have when the server has all. */
static uint32_t must_have(const struct run *r, uint32_t n, const double *norms) {
    double h = r->history;
    uint32_t least = 0;
    while (least < n && parted_by(n - least, norms + least, h, momentum_of(r)) > bound_of(r))
        h = momentum_of(r) * h + norms[least++];
    return least;
}

/* The updates without a copy, those that have gone before those that have a turn, sent one after another. */
static uint32_t count_sent(struct run *r, struct calendar *calendar, double last_us) {
    double norms[MOST + WORKERS], applied_us[MOST + WORKERS];
    uint32_t n = 0, sent = 0;
    for (uint32_t i = r->taken; i < r->n + r->n_pending; i++) {
        const uint32_t worker = i < r->n ? r->list[i].worker : r->pending[i - r->n];
        const double end_us = calendar_reserve(calendar, node_of(r, worker), r->plan.consistency.replica,
                                               (double)r->message.bytes, r->now_us);
        norms[n] = i < r->n ? r->list[i].norm : r->norms[worker];
        applied_us[n] = n > 0 ? fmax(applied_us[n - 1], end_us) : end_us;
        n++;
    }
    const uint32_t least = must_have(r, n, norms);
    if (r->plan.consistency.copies_when_due)
        return least > 0 ? n : 0;
    while (sent < n && applied_us[sent] <= last_us)
        sent++;
    sent = sent > least ? sent : least;
    while (sent > 0 && sent < n && applied_us[sent] <= applied_us[sent - 1])
        sent++;
    return sent;
}

/* ---- what happens ---- */

static uint32_t any_worker(struct run *r, enum state state) {
    const uint32_t from = (uint32_t)rng_below(&r->rng, WORKERS);
    for (uint32_t i = 0; i < WORKERS; i++)
        if (r->states[(from + i) % WORKERS] == state)
            return (from + i) % WORKERS;
    return WORKERS;
}

static void become_ready(struct run *r) {
    const uint32_t w = any_worker(r, COMPUTES);
    if (w == WORKERS)
        return;
    r->norms[w] = r->learns ? rng_between(&r->rng, 0.3, 2) : 1;
    r->states[w] = READY;
    update_copies_ready(r->copies, w, r->norms[w]);
    if (r->n_known_norms < WORKERS) {
        r->sum_of_norms += r->norms[w];
        r->n_known_norms++;
    }
    assert_close(update_copies_bound(r->copies), bound_of(r), 1e-13);
}

/* The end of a batch: who is ready gets a turn. */
static void order_batch(struct run *r) {
    const double last_us = r->now_us + rng_log_between(&r->rng, 1, 1000);
    struct calendar calendars[2];
    struct error err = {.status = ST_OK};
    for (uint32_t w = any_worker(r, READY); w < WORKERS; w = any_worker(r, READY)) {
        r->states[w] = HAS_TURN;
        r->pending[r->n_pending++] = w;
    }
    if (r->n_known_norms == 0)
        return;
    const uint32_t from = (uint32_t)rng_below(&r->rng, NODES), to = (uint32_t)rng_below(&r->rng, NODES);
    for (int i = 0; i < 2; i++) {
        assert_ok(calendar_init(&calendars[i], NODES, r->rates, r->now_us, &err));
        calendar_reserve(&calendars[i], from, to, (double)r->message.bytes, r->now_us);
    }
    update_copies_order(r->copies, &calendars[0], r->n_pending, r->pending, r->now_us, last_us);
    const uint32_t allowed = r->taken + count_sent(r, &calendars[1], last_us);
    r->allowed = allowed > r->allowed ? allowed : r->allowed;
    calendar_release(&calendars[0]);
    calendar_release(&calendars[1]);
}

/* The first turns go, as one step; no two of a step are of one worker. */
static void go(struct run *r) {
    struct update_member members[WORKERS];
    const uint32_t n = r->n_pending == 0 ? 0 : 1 + (uint32_t)rng_below(&r->rng, r->n_pending < 3 ? r->n_pending : 3);
    const uint32_t step = (uint32_t)r->sequence.n;
    double norm = 0;
    if (n == 0)
        return;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t w = r->pending[i];
        const double angle = rng_uniform(&r->rng) * 2 * M_PI;
        r->states[w] = GONE;
        members[i] = (struct update_member){w, r->iterations[w]++, 0};
        r->list[r->n++] = (struct gone){w, members[i].iteration, step, r->norms[w], false};
        r->vectors[step][0] += r->norms[w] * cos(angle);
        r->vectors[step][1] += r->norms[w] * sin(angle);
        norm += r->norms[w];
    }
    r->first[step + 1] = r->n;
    r->n_pending -= n;
    memmove(r->pending, r->pending + n, r->n_pending * sizeof *r->pending);
    assert_close(update_copies_norm(r->copies, n, members), norm, 1e-13);
    update_sequence_add(&r->sequence, n, members, norm);
    update_copies_add(r->copies);
}

static bool take(struct run *r) {
    const bool wanted = is_allowed(r) && replica_is_free(r);
    uint32_t worker = WORKERS, iteration = 0;
    assert_int_equal(update_copies_take(r->copies, &worker, &iteration), wanted);
    if (!wanted)
        return false;
    const struct gone *gone = &r->list[r->taken++];
    assert_true(worker == gone->worker && iteration == gone->iteration);
    assert_int_equal(update_copies_taken(r->copies), r->taken);
    r->history = momentum_of(r) * r->history + gone->norm;
    return true;
}

/* The replica applies every step that it has whole. */
static void replica_goes_on(struct run *r) {
    for (bool whole = true; whole && r->replica.steps < r->sequence.n;) {
        for (uint32_t i = r->first[r->replica.steps]; i < r->first[r->replica.steps + 1]; i++)
            whole = whole && r->list[i].arrived;
        if (whole)
            apply_next(r, &r->replica);
        expect_within(r);
    }
}

/* The server hears of a copy, and of the steps since, in one message or in two. */
static bool arrive(struct run *r) {
    const uint32_t from = r->taken ? (uint32_t)rng_below(&r->rng, r->taken) : 0;
    uint32_t at = r->taken;
    for (uint32_t i = 0; i < r->taken && at == r->taken; i++)
        at = r->list[(from + i) % r->taken].arrived ? at : (from + i) % r->taken;
    if (at == r->taken)
        return false;
    const uint32_t before = r->replica.steps;
    const bool apart = rng_below(&r->rng, 2);
    r->list[at].arrived = true;
    replica_goes_on(r);
    update_copies_has(r->copies, r->list[at].worker, apart ? before : r->replica.steps);
    if (apart)
        update_copies_has(r->copies, UPDATE_NOBODY, r->replica.steps);
    r->known = r->replica;
    return true;
}

static uint32_t count_arrived(const struct run *r) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->taken; i++)
        n += r->list[i].arrived;
    return n;
}

/* The server has its next step's bytes. */
static bool server_goes_on(struct run *r) {
    if (r->server.steps == r->sequence.n)
        return false;
    const bool behind = r->server.steps < r->known.steps;
    const double apart = next_apart(r);
    const bool may = behind || apart <= bound_of(r);
    assert_int_equal(update_copies_may_apply(r->copies), may);
    if (!may) {
        const bool stuck = count_arrived(r) == r->taken && !is_allowed(r) && r->taken < r->n;
        r->allowed = stuck ? r->taken + 1 : r->allowed;
        r->held++;
        return false;
    }
    r->promised = bound_of(r);
    r->most = behind ? r->most : fmax(r->most, apart / typical_of(r));
    assert_close(update_copies_divergence_most(r->copies), r->most, 1e-9);
    for (uint32_t i = r->first[r->server.steps]; i < r->first[r->server.steps + 1]; i++)
        r->states[r->list[i].worker] = COMPUTES;
    apply_next(r, &r->server);
    r->sequence.next++;
    expect_within(r);
    return true;
}

static void one_event(struct run *r) {
    r->now_us += rng_between(&r->rng, 0, 10);
    switch (rng_below(&r->rng, 8)) {
    case 0:
    case 1:
        become_ready(r);
        break;
    case 2:
        order_batch(r);
        break;
    case 3:
    case 4:
        go(r);
        break;
    case 5:
        take(r);
        break;
    case 6:
        arrive(r);
        break;
    default:
        server_goes_on(r);
    }
}

/* No more batches: the server's need alone brings copies. */
static void finish(struct run *r) {
    while (r->n_pending > 0)
        go(r);
    for (uint32_t rounds = 0; r->server.steps < r->sequence.n; rounds++) {
        assert_in_range(rounds, 0, 4 * MOST);
        while (server_goes_on(r))
            ;
        while (take(r))
            ;
        arrive(r);
    }
    assert_int_equal(r->server.steps, r->sequence.n);
}

static void the_server_goes_as_far_ahead_of_the_replica_as_the_bound_says(void **state) {
    (void)state;
    uint64_t held = 0, ahead = 0, steps = 0;
    for (uint64_t number = 0; number < INSTANCES; number++) {
        static struct run r;
        run_init(&r, number);
        for (int i = 0; i < EVENTS; i++)
            one_event(&r);
        finish(&r);
        held += r.held;
        ahead += r.server.steps > r.replica.steps;
        steps += r.server.steps;
        run_release(&r);
    }
    assert_true(steps > INSTANCES && held > INSTANCES && ahead > 0); /* or nothing was tested */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_server_goes_as_far_ahead_of_the_replica_as_the_bound_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
