/* The requests in flight (trial-runner/worker/requests.h) against a plain list: each is told of once, when it has
 * completed, with what it was added for; those that are forgotten never, and MPI keeps their buffers.
 *
 * MPI has a stand-in here: a request is the address of a cell, and the test says which have completed. */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "trial-runner/worker/requests.h"

enum { INSTANCES = 200, EVENTS = 300, MOST = 4 * EVENTS, KINDS = DONE_CONTROL_SEND + 1 };

enum state { LIVE, COMPLETED, TOLD, FORGOTTEN, CANCELLED };
static struct cell {
    enum state state;
    struct completion what;
    int rank, tag;
} cells[MOST];
static uint32_t n_cells;
static int waited; /* requests that MPI_Waitall had */

static MPI_Request handle_of(struct cell *cell) {
    return (MPI_Request)(void *)cell;
}

static struct cell *cell_of(MPI_Request request) {
    return (struct cell *)(void *)request;
}

int MPI_Testsome(int n, MPI_Request requests[], int *done, int index[], MPI_Status statuses[]) {
    assert_true(statuses == MPI_STATUSES_IGNORE);
    *done = 0;
    for (int i = 0; i < n; i++) {
        if (cell_of(requests[i])->state != COMPLETED)
            continue;
        index[(*done)++] = i;
        requests[i] = MPI_REQUEST_NULL;
    }
    return MPI_SUCCESS;
}

/* The cell remembers the copy. */
int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
    struct cell *cell = &cells[n_cells++];
    assert_true(count == sizeof(uint64_t) && type == MPI_BYTE && comm == MPI_COMM_SELF);
    *cell =
        (struct cell){.what = {.kind = DONE_CONTROL_SEND, .buffer = (void *)(uintptr_t)buffer}, .rank = to, .tag = tag};
    *request = handle_of(cell);
    return MPI_SUCCESS;
}

int MPI_Cancel(MPI_Request *request) {
    assert_int_equal(cell_of(*request)->state, LIVE);
    cell_of(*request)->state = CANCELLED;
    return MPI_SUCCESS;
}

int MPI_Waitall(int n, MPI_Request requests[], MPI_Status statuses[]) {
    assert_true(statuses == MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++)
        assert_true(cell_of(requests[i])->state == LIVE || cell_of(requests[i])->state == CANCELLED);
    waited = n;
    return MPI_SUCCESS;
}

static void begin(struct rng *rng, uint64_t number) {
    n_cells = 0;
    rng_seed(rng, test_seed() + number);
}

static void add(struct requests *requests, enum completion_kind kind) {
    struct cell *cell = &cells[n_cells];
    *cell = (struct cell){.what = {kind, 3 * n_cells, (int)n_cells % 5, cell}};
    *requests_add(requests, cell->what) = handle_of(cell);
    n_cells++;
}

static int count(enum state state) {
    int n = 0;
    for (uint32_t i = 0; i < n_cells; i++)
        n += cells[i].state == state;
    return n;
}

static bool same(const struct completion *a, const struct completion *b) {
    return a->kind == b->kind && a->message == b->message && a->peer == b->peer && a->buffer == b->buffer;
}

/* What is live is what the list has as live, in the order in which it was added, each beside its own request. */
static void expect_live(const struct requests *requests) {
    int at = 0;
    for (uint32_t i = 0; i < n_cells; i++) {
        if (cells[i].state != LIVE)
            continue;
        assert_true(at < requests->n);
        assert_ptr_equal(cell_of(requests->live[at]), &cells[i]);
        assert_true(same(&requests->what[at++], &cells[i].what));
    }
    assert_int_equal(at, requests->n);
}

static void complete_some(struct rng *rng) {
    for (uint32_t i = 0; i < n_cells; i++)
        if (cells[i].state == LIVE && rng_below(rng, 4) == 0)
            cells[i].state = COMPLETED;
}

static void poll(struct requests *requests) {
    const int wanted = count(COMPLETED);
    int told = 0;
    assert_int_equal(requests_poll(requests), wanted);
    for (uint32_t i = 0; i < n_cells; i++) {
        if (cells[i].state != COMPLETED)
            continue;
        assert_true(same(&requests->done[told++], &cells[i].what));
        cells[i].state = TOLD;
    }
    assert_int_equal(told, wanted);
}

/* Also where one of them has completed and nobody has asked yet. */
static void forget(struct requests *requests, enum completion_kind kind) {
    requests_forget(requests, kind);
    for (uint32_t i = 0; i < n_cells; i++)
        if ((cells[i].state == LIVE || cells[i].state == COMPLETED) && cells[i].what.kind == kind)
            cells[i].state = FORGOTTEN;
}

static enum completion_kind any_kind(struct rng *rng) {
    return (enum completion_kind)rng_below(rng, KINDS);
}

static void every_request_is_told_once_unless_it_is_forgotten(void **state) {
    (void)state;
    for (uint64_t number = 0; number < INSTANCES; number++) {
        struct requests requests = {0};
        struct rng rng;
        begin(&rng, number);
        for (int i = 0; i < EVENTS; i++) {
            for (uint64_t k = rng_below(&rng, 4); k > 0; k--)
                add(&requests, any_kind(&rng));
            if (rng_below(&rng, 8) == 0) {
                complete_some(&rng);
                if (rng_below(&rng, 4) == 0)
                    forget(&requests, any_kind(&rng));
                poll(&requests);
            }
            expect_live(&requests);
        }
        requests_release(&requests);
        assert_true(requests.n == 0 && !requests.live && !requests.what && !requests.done && !requests.index);
    }
}

static void forgetting_all_kinds_leaves_nothing_to_wait_for(void **state) {
    (void)state;
    struct requests requests = {0};
    struct rng rng;
    begin(&rng, 0);
    assert_int_equal(requests_poll(&requests), 0);
    for (int i = 0; i < EVENTS; i++)
        add(&requests, any_kind(&rng));
    for (int kind = 0; kind < KINDS; kind++)
        forget(&requests, (enum completion_kind)kind);
    assert_int_equal(requests.n, 0);
    assert_int_equal(requests_poll(&requests), 0);
    requests_release(&requests);
}

/* The sender may change its bytes at once; the copy is the caller's when it has left. */
static void a_copy_is_sent_and_handed_over(void **state) {
    (void)state;
    struct requests requests = {0};
    struct rng rng;
    uint64_t bytes = 17;
    begin(&rng, 0);
    requests_send_copy(&requests, &bytes, sizeof bytes, 4, 9, MPI_COMM_SELF);
    bytes = 18;
    assert_true(cells[0].rank == 4 && cells[0].tag == 9 && cells[0].what.buffer != &bytes);
    assert_int_equal(*(uint64_t *)cells[0].what.buffer, 17);
    expect_live(&requests);
    cells[0].state = COMPLETED;
    poll(&requests);
    free(requests.done[0].buffer);
    requests_release(&requests);
}

/* Receives of the coordinator that nobody answers are cancelled, all others waited for. Copies are freed, as the build
 * under AddressSanitizer sees. */
static void the_end_waits_for_all_and_cancels_what_nobody_answers(void **state) {
    (void)state;
    for (uint64_t number = 0; number < INSTANCES; number++) {
        struct requests requests = {0};
        struct rng rng;
        const uint64_t bytes = number;
        begin(&rng, number);
        for (uint64_t i = rng_below(&rng, 100); i > 0; i--) {
            const enum completion_kind kind = any_kind(&rng);
            if (kind == DONE_CONTROL_SEND)
                requests_send_copy(&requests, &bytes, sizeof bytes, 0, 0, MPI_COMM_SELF);
            else
                add(&requests, kind);
        }
        requests_end(&requests);
        assert_int_equal(waited, n_cells);
        assert_true(requests.n == 0 && !requests.live);
        for (uint32_t i = 0; i < n_cells; i++) {
            const enum completion_kind kind = cells[i].what.kind;
            assert_int_equal(cells[i].state, kind == DONE_REPORT || kind == DONE_GO ? CANCELLED : LIVE);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_is_told_once_unless_it_is_forgotten),
        cmocka_unit_test(forgetting_all_kinds_leaves_nothing_to_wait_for),
        cmocka_unit_test(a_copy_is_sent_and_handed_over),
        cmocka_unit_test(the_end_waits_for_all_and_cancels_what_nobody_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
