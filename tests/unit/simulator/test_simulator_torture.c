/* Every allocation of the simulator fails once; nothing may leak, crash or be half written. */
#include <stdio.h>

#include "simulator/bound.h"
#include "simulator/closed_form.h"
#include "simulator/trace.h"
#include "tests/support/torture.h"
#include "tests/unit/simulator/fixture.h"

static const struct measurement POINTS[] = {{OPERATION_all_reduce, ALGORITHM_ring, 3, 1000, 100, 0, 0},
                                            {OPERATION_all_reduce, ALGORITHM_ring, 3, 100000, 400, 0, 0}};

static enum status use_all(const struct fixture *f, struct timeline *tl, const struct cost *cost, struct error *err) {
    struct prediction p;
    struct bound bound;
    const uint64_t shape = 10;
    const struct variable variable = {.name = "v", .rank = 1, .shape = &shape, .elements = 10, .bytes = 40};
    const struct operator produces = {.name = "v.grad", .backward = true, .time_us = 1};
    const uint32_t order = 0;
    const struct model model = {
        .n_variables = 1, .variables = &variable, .n_operators = 1, .operators = &produces, .order = &order};
    enum status status = timeline_run(tl, &f->plan, cost, NULL, &p, err);
    if (status == ST_OK)
        status = closed_form_run(&f->plan, cost, &p, err);
    if (status == ST_OK)
        status = bound_iteration(&model, cost, LOSSY_none, IN_PARTS_none, &bound, err);
    return status;
}

static enum status simulate(void *arg, struct error *err) {
    const struct fixture *f = arg;
    struct cost cost;
    struct timeline *tl = timeline_new();
    if (!tl)
        return error_no_memory(err);
    enum status status = cost_init(&cost, &f->site.cluster, err);
    if (status == ST_OK) {
        status = use_all(f, tl, &cost, err);
        cost_release(&cost);
    }
    timeline_free(tl);
    return status;
}

struct traced {
    const struct fixture *f;
    FILE *out;
};

static enum status trace(void *arg, struct error *err) {
    const struct traced *t = arg;
    struct cost cost;
    struct timeline *tl = timeline_new();
    if (!tl)
        return error_no_memory(err);
    enum status status = cost_init(&cost, &t->f->site.cluster, err);
    if (status == ST_OK) {
        status = trace_write(t->out, tl, &t->f->plan, &cost, err);
        cost_release(&cost);
    }
    timeline_free(tl);
    return status;
}

static void make(struct fixture *f) {
    fixture_cluster(f, 3);
    f->site.cluster.measurements = POINTS;
    f->site.cluster.n_measurements = 2;
    fixture_steps(f, 1, 2, (double[]){10, 20});
    fixture_message(f, 5000, 1, 0);
    fixture_message(f, 5000, 1, 0)->kind = SYNC_PARAMETER_SERVER;
    fixture_finish(f, POLICY_fifo, 0);
}

static void a_simulation_survives_every_failed_allocation(void **state) {
    (void)state;
    struct fixture f;
    make(&f);
    assert_true(torture(simulate, &f) >= 4);
}

static void a_trace_survives_every_failed_allocation(void **state) {
    (void)state;
    struct fixture f;
    char buffer[1 << 16];
    make(&f);
    struct traced t = {&f, fopen("/dev/null", "w")};
    assert_non_null(t.out);
    setvbuf(t.out, buffer, _IOFBF, sizeof buffer);
    assert_true(torture(trace, &t) >= 4);
    fclose(t.out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_simulation_survives_every_failed_allocation),
        cmocka_unit_test(a_trace_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
