/* The updates that a worker keeps for the replica (trial-runner/worker/mpi/update_kept.h), against a plain list: a copy
 * goes only if it was asked for, one at a time, the oldest first, each once, with the bytes as the worker made them. */
#include "tests/property/worker/form.h"
#include "tests/support/check.h"
#include "trial-runner/worker/mpi/update_kept.h"

enum { INSTANCES = 300, EVENTS = 120, REPLICA = 7 };

static struct {
    const void *buffer;
    uint32_t n;
} sent; /* the last one, and how many */

/* In place of MPI's, which wants ranks. */
int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
    assert_int_equal(count, form.units);
    assert_int_equal(to, REPLICA);
    assert_int_equal(tag, 0);
    assert_true(type == MPI_BYTE && comm == MPI_COMM_SELF);
    sent.buffer = buffer;
    sent.n++;
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

/* An update; its place in the list is its iteration. */
struct plain {
    bool kept, asked;
    char *buffer; /* NULL: the pool has it again */
};

struct worker {
    uint64_t seed;
    struct rng rng;
    struct update_kept kept;
    struct requests requests;
    uint32_t n, flying, asked, left; /* flying: the iteration, or EVENTS */
    bool lost;
    struct plain list[EVENTS];
};

static struct update_member member_of(uint32_t iteration) {
    return (struct update_member){1, iteration, iteration};
}

static void expect_whole(const struct worker *w, uint32_t iteration) {
    const struct update_member member = member_of(iteration);
    struct form_body body;
    form_body_of(w->seed, &member, &body);
    assert_true(form_holds(&body, w->list[iteration].buffer));
    assert_int_equal(update_head_of(w->list[iteration].buffer)->iteration, iteration);
}

/* The worker writes an update and keeps it. Its buffer is none that is kept, and none that MPI may still read. */
static void keep_one(struct worker *w) {
    const uint32_t iteration = w->n++;
    const struct update_member member = member_of(iteration);
    struct form_body body;
    char *buffer = update_kept_buffer(&w->kept, &form);
    for (uint32_t i = 0; i < iteration; i++)
        assert_true(w->list[i].buffer != buffer);
    form_body_of(w->seed, &member, &body);
    form_write(&body, buffer);
    *update_head_of(buffer) = (struct update_head){.kind = UPDATE_PUSH, .iteration = iteration};
    update_kept_add(&w->kept, buffer);
    w->list[iteration] = (struct plain){.kept = true, .buffer = buffer};
}

static void note_asked(struct worker *w, uint32_t iteration) {
    struct plain *p = &w->list[iteration];
    w->asked += p->kept && !p->asked;
    p->asked = p->asked || p->kept;
}

/* Any iteration: also one that has left, was never kept, or was asked for before. */
static void ask_one(struct worker *w) {
    const uint32_t iteration = (uint32_t)rng_below(&w->rng, w->n + 2);
    update_kept_ask(&w->kept, iteration);
    if (iteration < w->n)
        note_asked(w, iteration);
}

static void ask_all(struct worker *w) {
    update_kept_ask_all(&w->kept);
    w->lost = true;
    for (uint32_t i = 0; i < w->n; i++)
        note_asked(w, i);
}

/* The oldest that was asked for; EVENTS: none. */
static uint32_t oldest_asked(const struct worker *w) {
    for (uint32_t i = 0; i < w->n; i++)
        if (w->list[i].kept && w->list[i].asked)
            return i;
    return EVENTS;
}

static void send_one(struct worker *w) {
    const struct world world = {.pushes = MPI_COMM_SELF};
    struct update_form forms[] = {form};
    const struct update_run run = {.world = &world, .forms = forms, .unit = MPI_BYTE, .replica = REPLICA};
    const uint32_t next = oldest_asked(w), before = sent.n, live = (uint32_t)w->requests.n;
    const bool goes = w->flying == EVENTS && next < EVENTS;
    update_kept_send(&w->kept, &run, &w->requests);
    assert_int_equal(sent.n, before + goes);
    assert_int_equal(w->requests.n, live + goes);
    if (!goes)
        return;
    const struct completion *what = &w->requests.what[live];
    assert_true(what->kind == DONE_COPY && what->buffer == w->list[next].buffer && what->buffer == sent.buffer);
    expect_whole(w, next);
    w->flying = next;
}

static void end_one(struct worker *w) {
    if (w->flying == EVENTS)
        return;
    expect_whole(w, w->flying);
    update_kept_left(&w->kept, w->list[w->flying].buffer);
    w->list[w->flying].kept = false;
    w->list[w->flying].buffer = w->lost ? w->list[w->flying].buffer : NULL;
    w->flying = EVENTS;
    w->left++;
}

static void expect_count(const struct worker *w) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->n; i++)
        kept += w->list[i].kept;
    assert_int_equal(w->kept.sent, w->asked);
    assert_int_equal(w->kept.flying, w->flying < EVENTS);
    assert_int_equal(kept + w->left, w->n);
}

/* After a takeover all that was kept goes, if the run lasts. */
static void drain(struct worker *w) {
    ask_all(w);
    for (uint32_t i = 0; i <= w->n; i++) {
        end_one(w);
        send_one(w);
    }
    assert_int_equal(w->left, w->n);
    assert_null(w->kept.first);
}

/* What the pool did not get back is MPI's for ever; here it has to go. */
static void worker_release(struct worker *w) {
    struct pool pool = {0};
    update_kept_release(&w->kept);
    assert_null(w->kept.first);
    for (uint32_t i = 0; i < w->n && w->lost; i++)
        if (w->list[i].buffer)
            pool_give(&pool, w->list[i].buffer);
    pool_release(&pool);
    requests_release(&w->requests);
}

static void one_event(struct worker *w) {
    const uint64_t which = rng_below(&w->rng, 128);
    if (which == 0)
        ask_all(w);
    else if (which < 32)
        keep_one(w);
    else if (which < 64)
        ask_one(w);
    else if (which < 96)
        send_one(w);
    else
        end_one(w);
    expect_count(w);
}

static void copies_go_as_a_plain_list_says(void **state) {
    (void)state;
    for (uint64_t number = 0; number < INSTANCES; number++) {
        struct worker w = {.seed = test_seed() + number, .flying = EVENTS};
        rng_seed(&w.rng, w.seed);
        for (int i = 0; i < EVENTS; i++)
            one_event(&w);
        if (rng_below(&w.rng, 2) == 0)
            drain(&w);
        worker_release(&w);
    }
}

/* What has left serves the next update: a worker needs as many buffers as it keeps, however long it runs. */
static void a_buffer_whose_copy_has_left_serves_again(void **state) {
    (void)state;
    struct worker w = {.seed = test_seed(), .flying = EVENTS};
    keep_one(&w);
    char *first = w.list[0].buffer;
    update_kept_ask(&w.kept, 0);
    w.list[0].asked = true;
    send_one(&w);
    end_one(&w);
    keep_one(&w);
    assert_ptr_equal(w.list[1].buffer, first);
    worker_release(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_go_as_a_plain_list_says),
        cmocka_unit_test(a_buffer_whose_copy_has_left_serves_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
