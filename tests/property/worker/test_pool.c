/* The MPI worker's buffers (trial-runner/worker/mpi/pool.h) against a plain list of what is free: a buffer is the
 * owner's alone until it is given back, the smallest that is large enough serves again, and one of more than twice the
 * size does not. It counts the bytes that were taken at once. */
#include <string.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "trial-runner/worker/mpi/pool.h"

enum { INSTANCES = 100, EVENTS = 400, ALIGN = 64, LARGEST = 5000 };

/* One of the buffers; it has the size with which it was first taken. */
struct buffer {
    unsigned char *data;
    uint64_t bytes, used; /* used: what the owner asked for */
    bool taken;
    unsigned char mark;
};

struct plain {
    struct rng rng;
    struct pool pool;
    uint32_t n, n_taken, reused;
    uint64_t most_bytes; /* that were taken at once */
    struct buffer list[EVENTS];
};

/* The size of the one that serves; 0: none does, and a new one is made. */
static uint64_t best_fit(const struct plain *p, uint64_t bytes) {
    uint64_t best = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct buffer *b = &p->list[i];
        if (!b->taken && b->bytes >= bytes && (best == 0 || b->bytes < best))
            best = b->bytes;
    }
    return best / 2 > bytes ? 0 : best;
}

static struct buffer *find(struct plain *p, const void *data) {
    for (uint32_t i = 0; i < p->n; i++)
        if (p->list[i].data == data)
            return &p->list[i];
    return NULL;
}

static void expect_apart(const struct plain *p, const struct buffer *b) {
    for (uint32_t i = 0; i < p->n; i++) {
        const struct buffer *other = &p->list[i];
        assert_true(other == b || b->data + b->bytes <= other->data || other->data + other->bytes <= b->data);
    }
}

static void take(struct plain *p) {
    const uint64_t bytes = 1 + rng_below(&p->rng, rng_below(&p->rng, 2) ? 100 : LARGEST), wanted = best_fit(p, bytes);
    void *data = pool_take(&p->pool, bytes);
    struct buffer *b = find(p, data);
    assert_int_equal((uintptr_t)data % ALIGN, 0);
    assert_int_equal(b != NULL, wanted > 0);
    p->reused += b != NULL;
    if (b) {
        assert_true(!b->taken && b->bytes == wanted);
    } else {
        b = &p->list[p->n++];
        *b = (struct buffer){.data = data, .bytes = bytes};
        expect_apart(p, b);
    }
    b->taken = true;
    b->used = bytes;
    b->mark = (unsigned char)rng_next(&p->rng);
    memset(b->data, b->mark, bytes);
    p->n_taken++;
    uint64_t taken = 0;
    for (uint32_t i = 0; i < p->n; i++)
        taken += p->list[i].taken ? p->list[i].used : 0;
    p->most_bytes = taken > p->most_bytes ? taken : p->most_bytes;
    assert_int_equal(p->pool.most_bytes, p->most_bytes);
}

static void give(struct plain *p, struct buffer *b) {
    for (uint64_t k = 0; k < b->used; k++)
        assert_int_equal(b->data[k], b->mark);
    b->taken = false;
    p->n_taken--;
    pool_give(&p->pool, b->data);
}

static void give_any(struct plain *p) {
    if (p->n_taken == 0)
        return;
    uint32_t i = (uint32_t)rng_below(&p->rng, p->n);
    while (!p->list[i].taken)
        i = (i + 1) % p->n;
    give(p, &p->list[i]);
}

static void a_buffer_is_its_owners_alone_and_the_best_fit_serves_again(void **state) {
    (void)state;
    for (uint64_t number = 0; number < INSTANCES; number++) {
        struct plain p = {.n = 0};
        rng_seed(&p.rng, test_seed() + number);
        for (int i = 0; i < EVENTS; i++)
            if (rng_below(&p.rng, 2) == 0)
                take(&p);
            else
                give_any(&p);
        assert_true(p.reused > EVENTS / 20); /* or nothing was tested */
        while (p.n_taken > 0)
            give_any(&p);
        pool_give(&p.pool, NULL);
        pool_release(&p.pool);
        assert_null(p.pool.free);
    }
}

/* The parts of a ring of four differ by an element. */
static void large_buffers_of_almost_the_same_size_serve_for_each_other(void **state) {
    (void)state;
    struct pool pool = {0};
    void *first = pool_take(&pool, 4500004);
    pool_give(&pool, first);
    assert_ptr_equal(pool_take(&pool, 4500008), first);
    pool_give(&pool, first);
    pool_release(&pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_is_its_owners_alone_and_the_best_fit_serves_again),
        cmocka_unit_test(large_buffers_of_almost_the_same_size_serve_for_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
