/* The order of steps at the server and at its replica (trial-runner/worker/mpi/update_sequence.h), against a plain
 * reading: lists of what has come and of what has its turn.
 *
 * Updates come in any order, before their step is known or after. The server gets a step in one piece, the replica one
 * copy of each update. Both must have the same steps, in the same order, with the same bits. */
#include <stdlib.h>

#include "tests/property/worker/form.h"
#include "tests/support/check.h"
#include "trial-runner/worker/mpi/update_sequence.h"

enum { INSTANCES = 400, WORKERS = 6, ROUNDS = 4, MOST = WORKERS * ROUNDS };

/* In place of MPI's, which wants ranks. */
int MPI_Reduce_local(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op) {
    const float *more = from;
    float *sum = to;
    assert_true(type == MPI_FLOAT && op == MPI_SUM);
    for (int i = 0; i < count; i++)
        sum[i] += more[i];
    return MPI_SUCCESS;
}

/* Step s is updates[first[s] .. first[s + 1]), in the order in which they are added up. */
struct instance {
    uint64_t seed;
    struct rng rng;
    uint32_t n, n_steps, first[MOST + 1], step_of[MOST];
    struct update_member updates[MOST];
};

/* Every step has at most one update of a worker; a worker's updates come from ever newer versions. */
static void draw_step(struct instance *in, uint32_t *left, uint64_t *version) {
    uint32_t order[WORKERS], n = 0;
    const uint32_t most = 1 + (uint32_t)rng_below(&in->rng, 4);
    for (uint32_t w = 0; w < WORKERS; w++)
        order[w] = w;
    rng_shuffle(&in->rng, WORKERS, order);
    for (uint32_t i = 0; i < WORKERS && n < most; i++) {
        const uint32_t w = order[i];
        if (left[w] == 0)
            continue;
        version[w] += 1 + rng_below(&in->rng, 3);
        in->step_of[in->n] = in->n_steps;
        in->updates[in->n++] = (struct update_member){w, ROUNDS - left[w]--, version[w]};
        n++;
    }
    in->first[++in->n_steps] = in->n;
}

static void instance_draw(struct instance *in, uint64_t number) {
    uint32_t left[WORKERS];
    uint64_t version[WORKERS] = {0};
    *in = (struct instance){.seed = test_seed() + number};
    rng_seed(&in->rng, in->seed);
    for (uint32_t w = 0; w < WORKERS; w++)
        left[w] = ROUNDS;
    while (in->n < MOST)
        draw_step(in, left, version);
}

static uint32_t size_of(const struct instance *in, uint32_t step) {
    return in->first[step + 1] - in->first[step];
}

static double norm_of(uint32_t step) {
    return 1 + 0.25 * step;
}

static void sum_up(const struct instance *in, uint32_t n, const struct update_member *members, struct form_body *out) {
    form_body_of(in->seed, &members[0], out);
    for (uint32_t i = 1; i < n; i++) {
        struct form_body more;
        form_body_of(in->seed, &members[i], &more);
        form_add(out, &more);
    }
}

/* As the server gets it: an update, or an aggregator's sum. */
static char *whole_step(const struct instance *in, struct pool *pool, uint32_t step) {
    const struct update_member *members = &in->updates[in->first[step]];
    const uint32_t n = size_of(in, step);
    struct form_body sum;
    char *buffer = form_push(pool, in->seed, members);
    if (n == 1)
        return buffer;
    sum_up(in, n, members, &sum);
    form_write(&sum, buffer);
    *update_head_of(buffer) = (struct update_head){.kind = UPDATE_SUM, .worker = members[0].worker, .members = n};
    memcpy(update_members(&form, buffer), members, n * sizeof *members);
    return buffer;
}

static bool same_member(const struct update_member *a, const struct update_member *b) {
    return a->worker == b->worker && a->iteration == b->iteration && a->version == b->version;
}

/* The buffer has these updates and nothing else. */
static void expect_step(const struct instance *in, char *buffer, uint32_t n, const struct update_member *members) {
    const struct update_head *head = update_head_of(buffer);
    struct form_body sum;
    sum_up(in, n, members, &sum);
    assert_true(form_holds(&sum, buffer));
    assert_int_equal(head->worker, members[0].worker);
    assert_int_equal(head->kind, n > 1 ? UPDATE_SUM : UPDATE_PUSH);
    if (n == 1) {
        assert_int_equal(head->iteration, members[0].iteration);
        assert_int_equal(head->version, members[0].version);
        return;
    }
    assert_int_equal(head->members, n);
    for (uint32_t i = 0; i < n; i++)
        assert_true(same_member(&update_members(&form, buffer)[i], &members[i]));
}

/* One end of the protocol. */
struct end {
    const struct instance *in;
    struct update_sequence sequence;
    struct pool pool;
    bool replica, came[MOST]; /* by update */
    uint32_t known, taken;    /* steps */
    uint32_t n_came, n_taken; /* updates */
};

static void end_add(struct end *e) {
    const struct instance *in = e->in;
    update_sequence_add(&e->sequence, size_of(in, e->known), &in->updates[in->first[e->known]], norm_of(e->known));
    e->known++;
}

static void mark_came(struct end *e, uint32_t update) {
    e->came[update] = true;
    e->n_came++;
}

/* A piece is a step at the server, an update at the replica. */
static void end_get(struct end *e, uint32_t piece) {
    const struct instance *in = e->in;
    if (e->replica) {
        update_sequence_keep(&e->sequence, &form, form_push(&e->pool, in->seed, &in->updates[piece]));
        mark_came(e, piece);
        return;
    }
    update_sequence_keep(&e->sequence, &form, whole_step(in, &e->pool, piece));
    for (uint32_t u = in->first[piece]; u < in->first[piece + 1]; u++)
        mark_came(e, u);
}

static bool next_is_whole(const struct end *e) {
    const struct instance *in = e->in;
    bool whole = e->taken < e->known;
    for (uint32_t u = in->first[e->taken]; whole && u < in->first[e->taken + 1]; u++)
        whole = e->came[u];
    return whole;
}

static void end_take(struct end *e) {
    const struct instance *in = e->in;
    assert_true(e->sequence.steps[e->taken].norm == norm_of(e->taken));
    char *buffer = update_sequence_take(&e->sequence, &form, &e->pool);
    expect_step(in, buffer, size_of(in, e->taken), &in->updates[in->first[e->taken]]);
    pool_give(&e->pool, buffer);
    e->n_taken += size_of(in, e->taken++);
}

/* Take what may be taken, which is what the plain reading says. */
static void end_go_on(struct end *e) {
    while (next_is_whole(e)) {
        assert_true(update_sequence_is_whole(&e->sequence));
        end_take(e);
    }
    assert_false(update_sequence_is_whole(&e->sequence));
    assert_int_equal(e->sequence.n_waiting, e->n_came - e->n_taken);
}

static void end_release(struct end *e) {
    update_sequence_release(&e->sequence, &e->pool);
    assert_int_equal(e->sequence.n + e->sequence.n_waiting, 0);
    pool_release(&e->pool);
}

/* Steps below `known` become known and these pieces come, in any order of the two. */
static void end_run(struct end *e, struct rng *rng, uint32_t known, uint32_t n, const uint32_t *pieces) {
    for (uint32_t got = 0; got < n || e->known < known;) {
        if (got == n || (e->known < known && rng_below(rng, 2) == 0))
            end_add(e);
        else
            end_get(e, pieces[got++]);
        end_go_on(e);
    }
}

static void all_of(struct rng *rng, uint32_t n, uint32_t *out) {
    for (uint32_t i = 0; i < n; i++)
        out[i] = i;
    rng_shuffle(rng, n, out);
}

static void server_and_replica_have_the_same_steps_in_whatever_order_updates_come(void **state) {
    (void)state;
    for (uint64_t number = 0; number < INSTANCES; number++) {
        struct instance in;
        uint32_t pieces[MOST];
        instance_draw(&in, number);
        for (int replica = 0; replica < 2; replica++) {
            struct end e = {.in = &in, .replica = replica};
            const uint32_t n = replica ? in.n : in.n_steps;
            all_of(&in.rng, n, pieces);
            end_run(&e, &in.rng, in.n_steps, n, pieces);
            assert_int_equal(e.taken, in.n_steps);
            assert_int_equal(e.sequence.n_waiting, 0);
            end_release(&e);
        }
    }
}

/* ---- after a takeover ---- */

/* What is left of a known step: those of its updates that have come. */
static uint32_t rest_of(const struct end *e, uint32_t step, struct update_member *out) {
    const struct instance *in = e->in;
    uint32_t n = 0;
    for (uint32_t u = in->first[step]; u < in->first[step + 1]; u++)
        if (e->came[u])
            out[n++] = in->updates[u];
    return n;
}

/* Known steps keep their order, without what has not come. */
static void take_known(struct end *e) {
    for (uint32_t s = e->taken; s < e->known; s++) {
        struct update_member rest[WORKERS];
        const uint32_t n = rest_of(e, s, rest);
        if (n == 0)
            continue;
        assert_true(update_sequence_is_whole(&e->sequence));
        char *buffer = update_sequence_take(&e->sequence, &form, &e->pool);
        expect_step(e->in, buffer, n, rest);
        pool_give(&e->pool, buffer);
    }
}

/* The number of an update that no known step has, has come and was not taken. */
static uint32_t find_unknown(const struct end *e, const bool *taken, const struct update_head *head) {
    const struct instance *in = e->in;
    for (uint32_t u = in->first[e->known]; u < in->n; u++)
        if (e->came[u] && !taken[u] && in->updates[u].worker == head->worker &&
            in->updates[u].iteration == head->iteration)
            return u;
    fail_msg("update %u of worker %u is applied twice, or never came", head->iteration, head->worker);
    return MOST;
}

/* The others are steps of their own, from the oldest version to the newest. */
static void take_unknown(struct end *e, uint32_t n) {
    bool taken[MOST] = {false};
    uint64_t newest = 0;
    for (uint32_t i = 0; i < n; i++) {
        assert_true(update_sequence_is_whole(&e->sequence));
        char *buffer = update_sequence_take(&e->sequence, &form, &e->pool);
        const uint32_t u = find_unknown(e, taken, update_head_of(buffer));
        expect_step(e->in, buffer, 1, &e->in->updates[u]);
        assert_true(e->in->updates[u].version >= newest);
        newest = e->in->updates[u].version;
        taken[u] = true;
        pool_give(&e->pool, buffer);
    }
}

static uint32_t count_unknown(const struct end *e) {
    uint32_t n = 0;
    for (uint32_t u = e->in->first[e->known]; u < e->in->n; u++)
        n += e->came[u];
    return n;
}

/* In any order; some never come. */
static uint32_t some_of(struct rng *rng, uint32_t n, uint32_t *out) {
    const double share = rng_uniform(rng);
    uint32_t kept = 0;
    all_of(rng, n, out);
    for (uint32_t i = 0; i < n; i++)
        if (rng_uniform(rng) < share)
            out[kept++] = out[i];
    return kept;
}

static void after_a_takeover_all_that_came_is_applied_once(void **state) {
    (void)state;
    uint32_t cut_short = 0, unknown = 0;
    for (uint64_t number = 0; number < INSTANCES; number++) {
        struct instance in;
        uint32_t pieces[MOST];
        instance_draw(&in, number);
        struct end e = {.in = &in, .replica = true};
        const uint32_t n = some_of(&in.rng, in.n, pieces);
        end_run(&e, &in.rng, (uint32_t)rng_below(&in.rng, in.n_steps + 1), n, pieces);
        const uint32_t wanted = count_unknown(&e);
        assert_int_equal(update_sequence_settle(&e.sequence), wanted);
        cut_short += e.taken < e.known;
        unknown += wanted > 0;
        take_known(&e);
        take_unknown(&e, wanted);
        assert_false(update_sequence_is_whole(&e.sequence));
        assert_int_equal(e.sequence.n_waiting, 0);
        end_release(&e);
    }
    assert_true(cut_short > INSTANCES / 4 && unknown > INSTANCES / 4); /* or nothing was tested */
}

/* A run may end while updates wait. */
static void a_release_gives_every_buffer_that_waits_back_to_the_pool(void **state) {
    (void)state;
    struct instance in;
    char *buffers[MOST];
    instance_draw(&in, 0);
    struct end e = {.in = &in, .replica = true};
    for (uint32_t u = 0; u < in.n; u++)
        end_get(&e, u);
    while (e.known < in.n_steps)
        end_add(&e);
    assert_true(update_sequence_is_whole(&e.sequence));
    assert_null(e.pool.free);
    update_sequence_release(&e.sequence, &e.pool);
    for (uint32_t u = 0; u < in.n; u++) {
        assert_non_null(e.pool.free);
        buffers[u] = form_buffer(&e.pool);
    }
    assert_null(e.pool.free);
    for (uint32_t u = 0; u < in.n; u++)
        pool_give(&e.pool, buffers[u]);
    pool_release(&e.pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_and_replica_have_the_same_steps_in_whatever_order_updates_come),
        cmocka_unit_test(after_a_takeover_all_that_came_is_applied_once),
        cmocka_unit_test(a_release_gives_every_buffer_that_waits_back_to_the_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
