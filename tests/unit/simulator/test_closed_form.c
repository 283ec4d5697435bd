/* AutoSync's equation 2 by hand, the bound on models small enough to reason about, and what a trace says. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "simulator/bound.h"
#include "simulator/closed_form.h"
#include "simulator/trace.h"
#include "tests/unit/simulator/fixture.h"

#define EXACT 1e-12

static struct prediction closed_form(const struct fixture *f) {
    struct error err;
    struct cost cost;
    struct prediction p;
    assert_ok(cost_init(&cost, &f->site.cluster, &err));
    assert_ok(closed_form_run(&f->plan, &cost, &p, &err));
    cost_release(&cost);
    return p;
}

/* Three nodes of 2, 2 and 0 devices; the last serves. */
static void served(struct fixture *f, bool local) {
    fixture_cluster(f, 3);
    f->site.nodes[0].devices = f->site.nodes[1].devices = 2;
    f->site.nodes[2].devices = 0;
    f->site.nodes[1].nic_gbit_per_s = 4;
    f->site.cluster.runtime.push_us = 11;
    f->site.cluster.runtime.message_us = 3;
    fixture_steps(f, 1, 2, (double[]){10, 20});
    struct message *m = fixture_message(f, 50000, 1, 0);
    m->kind = SYNC_PARAMETER_SERVER;
    m->server = 2;
    m->local_reduction = local;
    fixture_finish(f, POLICY_fifo, 0);
}

static void equation_2_counts_each_worker_at_the_server(void **state) {
    (void)state;
    struct fixture f;
    served(&f, true);
    assert_close(closed_form(&f).iteration_us, (50 + 11) + (100 + 11) + 3, EXACT);
    served(&f, false);
    assert_close(closed_form(&f).iteration_us, 2 * (50 + 11) + 2 * (100 + 11) + 3, EXACT);
}

static void the_larger_of_compute_and_synchronization_counts(void **state) {
    (void)state;
    struct fixture f;
    served(&f, true);
    f.step_us[1] = 1000;
    assert_close(closed_form(&f).iteration_us, 1010, EXACT);
    assert_true(closed_form(&f).exposed_us == 0);
    f.messages[0].kind = SYNC_ALL_REDUCE;
    handmade_fix(&f.site, 2000, 0.001);
    assert_close(closed_form(&f).iteration_us, 2050, EXACT);
}

static struct bound bound_of(const struct fixture *f, const struct model *model) {
    struct error err;
    struct cost cost;
    struct bound bound;
    assert_ok(cost_init(&cost, &f->site.cluster, &err));
    assert_ok(bound_iteration(model, &cost, LOSSY_none, IN_PARTS_none, &bound, &err));
    cost_release(&cost);
    return bound;
}

/* Forward a, b (100 each), backward b, a (50 each); each reads a variable of 400 kB. */
static void small_model(struct model *model) {
    static const uint32_t variables[] = {0, 1}, order[] = {0, 1, 2, 3};
    static const uint64_t shape[] = {100000};
    static struct variable v[2];
    static struct operator ops[4];
    for (int i = 0; i < 2; i++) {
        v[i] = (struct variable){.name = "v", .rank = 1, .shape = shape, .elements = 100000, .bytes = 400000};
        v[i].producer = 3 - (uint32_t)i;
        ops[i] = (struct operator){.time_us = 100, .n_reads = 1, .reads = &variables[i]};
        ops[2 + i] = (struct operator){.backward = true, .time_us = 50, .n_produces = 1, .produces = &variables[1 - i]};
    }
    *model = (struct model){.n_variables = 2,
                            .n_operators = 4,
                            .n_forward = 2,
                            .variables = v,
                            .operators = ops,
                            .order = order,
                            .forward_us = 200,
                            .backward_us = 100};
}

static void the_bound_is_compute_alone_on_one_node(void **state) {
    (void)state;
    struct fixture f;
    struct model model;
    small_model(&model);
    fixture_cluster(&f, 1);
    f.site.nodes[0].devices = 2;
    f.site.nodes[0].compute_scale = 3;
    handmade_number_devices(&f.site);
    assert_close(bound_of(&f, &model).iteration_us, 900, EXACT);
}

static void the_bound_holds_the_volume_of_a_node(void **state) {
    (void)state;
    struct fixture f;
    struct model model;
    small_model(&model);
    fixture_cluster(&f, 4);
    handmade_number_devices(&f.site);
    struct bound bound = bound_of(&f, &model);
    /* A double tree and a server both move a gradient once each way; 400 us each. */
    assert_close(bound.volume_us, 800, EXACT);
    /* b's is released at 50 with tail 100, a's at 100 with tail 200 and goes first: b until 100, a until 500, b until
     * 850. */
    assert_close(bound.windows_us, 950, EXACT);
    assert_close(bound.barrier_us, 1050, EXACT);
    assert_close(bound.compute_us, 300, EXACT);
}

static void the_bound_takes_the_cheaper_architecture(void **state) {
    (void)state;
    struct fixture f;
    struct model model;
    small_model(&model);
    fixture_cluster(&f, 4);
    handmade_fix(&f.site, 5, 0.25e-3); /* a quarter of the NIC's time: in-network reduction, say */
    handmade_number_devices(&f.site);
    assert_close(bound_of(&f, &model).volume_us, 200, EXACT);
    /* Four nodes that share the serving send 3/4 of each gradient as pushes and 3/4 as pulls. */
    handmade_fix(&f.site, 5, 1);
    assert_close(bound_of(&f, &model).volume_us, 1200, EXACT);
}

static void check_event(const cJSON *event, int *compute, int *messages, int *names) {
    const char *ph = cJSON_GetObjectItem(event, "ph")->valuestring;
    if (strcmp(ph, "M") == 0) {
        ++*names;
        return;
    }
    assert_string_equal(ph, "X");
    assert_true(cJSON_GetObjectItem(event, "ts")->valuedouble >= 0);
    assert_true(cJSON_GetObjectItem(event, "dur")->valuedouble >= 0);
    if (strcmp(cJSON_GetObjectItem(event, "cat")->valuestring, "compute") == 0)
        ++*compute;
    else
        ++*messages;
}

/* Slices of one row must not overlap, or viewers draw them wrong. */
static void check_rows(const cJSON *events) {
    const cJSON *a, *b;
    cJSON_ArrayForEach(a, events) {
        if (!cJSON_GetObjectItem(a, "dur") || cJSON_GetObjectItem(a, "dur")->valuedouble < 0.01)
            continue;
        double start = cJSON_GetObjectItem(a, "ts")->valuedouble;
        double end = start + cJSON_GetObjectItem(a, "dur")->valuedouble;
        cJSON_ArrayForEach(b, events) {
            if (a == b || !cJSON_GetObjectItem(b, "dur") || cJSON_GetObjectItem(b, "dur")->valuedouble < 0.01 ||
                cJSON_GetObjectItem(a, "pid")->valueint != cJSON_GetObjectItem(b, "pid")->valueint ||
                cJSON_GetObjectItem(a, "tid")->valueint != cJSON_GetObjectItem(b, "tid")->valueint)
                continue;
            double other = cJSON_GetObjectItem(b, "ts")->valuedouble;
            assert_true(other < start - 0.002 || other > end - 0.002);
        }
    }
}

static cJSON *trace_of(const struct fixture *f) {
    struct error err;
    struct cost cost;
    struct timeline *tl = timeline_new();
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_ok(cost_init(&cost, &f->site.cluster, &err));
    assert_ok(trace_write(out, tl, &f->plan, &cost, &err));
    fclose(out);
    cJSON *json = cJSON_Parse(text);
    assert_non_null(json);
    free(text);
    cost_release(&cost);
    timeline_free(tl);
    return json;
}

static void a_trace_shows_each_device_computing_and_communicating(void **state) {
    (void)state;
    struct fixture f;
    int compute = 0, messages = 0, names = 0;
    fixture_cluster(&f, 2);
    f.site.nodes[1].devices = 3;
    handmade_fix(&f.site, 100, 0.001);
    fixture_steps(&f, 1, 2, (double[]){10, 20});
    fixture_message(&f, 1000, 1, 0);
    fixture_message(&f, 3000, 1, 0);
    fixture_finish(&f, POLICY_fifo, CREDIT_UNLIMITED);
    cJSON *json = trace_of(&f);
    const cJSON *events = cJSON_GetObjectItem(json, "traceEvents"), *event;
    cJSON_ArrayForEach(event, events) check_event(event, &compute, &messages, &names);
    assert_true(compute >= 4 * 2 * 2);
    assert_int_equal(messages, 4 * 2 * 2);
    assert_int_equal(names, 2 + 4 * (1 + 2));
    check_rows(events);
    cJSON_Delete(json);
}

static void a_trace_tells_gathers_and_the_update_from_the_passes(void **state) {
    (void)state;
    static const char *const compute[] = {"update 2", "forward 0", "backward 1"};
    static const char *const moved[] = {"all-gather", "all-gather", "reduce-scatter"};
    struct fixture f;
    uint32_t n = 0, steps = 0;
    fixture_cluster(&f, 2);
    handmade_fix(&f.site, 100, 0.001);
    fixture_steps(&f, 1, 2, (double[]){10, 20});
    fixture_update(&f);
    fixture_half(&f, HALF_gather, 1000, 2, 0);
    fixture_half(&f, HALF_gather, 1000, 0, 1);
    fixture_half(&f, HALF_scatter, 1000, 1, 2);
    fixture_finish(&f, POLICY_fifo, CREDIT_UNLIMITED);
    cJSON *json = trace_of(&f);
    const cJSON *event;
    cJSON_ArrayForEach(event, cJSON_GetObjectItem(json, "traceEvents")) {
        const cJSON *category = cJSON_GetObjectItem(event, "cat");
        if (!category || cJSON_GetObjectItem(event, "pid")->valueint != 0)
            continue;
        if (strcmp(category->valuestring, "compute") == 0)
            assert_string_equal(cJSON_GetObjectItem(event, "name")->valuestring, compute[steps++ % 3]);
        else
            assert_string_equal(category->valuestring, moved[n++ % 3]);
    }
    assert_true(steps >= 6 && n >= 6);
    cJSON_Delete(json);
}

/* Two iterations as a run on the first node's device might have had them: the second step a little late, and one
 * forward step of the iteration before. */
static size_t measure(const struct fixture *f, struct interval out[16]) {
    size_t n = 0;
    double now = 5000;
    out[n++] = (struct interval){INTERVAL_COMPUTE, 0, f->plan.n_steps - 1, now - 40, now - 20};
    for (int iteration = 0; iteration < 2; iteration++) {
        for (uint32_t k = 0; k < f->plan.n_steps; k++) {
            out[n++] = (struct interval){INTERVAL_COMPUTE, 0, k, now + 7, now + 17};
            now += 17;
        }
        out[n++] = (struct interval){INTERVAL_ALL_REDUCE, 0, 0, now, now + 200};
        now += 200;
    }
    return n;
}

static const cJSON *first_compute(const cJSON *events, int pid) {
    const cJSON *event, *first = NULL;
    cJSON_ArrayForEach(event, events) {
        const cJSON *category = cJSON_GetObjectItem(event, "cat");
        if (category && !strcmp(category->valuestring, "compute") &&
            cJSON_GetObjectItem(event, "pid")->valueint == pid &&
            (!first || cJSON_GetObjectItem(event, "ts")->valuedouble < cJSON_GetObjectItem(first, "ts")->valuedouble))
            first = event;
    }
    return first;
}

static void measured_and_predicted_timelines_begin_with_the_same_step(void **state) {
    (void)state;
    struct fixture f;
    struct cost cost;
    struct error err;
    struct interval measured[16];
    struct timeline *tl = timeline_new();
    char *text = NULL;
    size_t size = 0;
    int compute = 0, messages = 0, names = 0, real = 0;
    fixture_cluster(&f, 2);
    handmade_fix(&f.site, 100, 0.001);
    fixture_steps(&f, 1, 2, (double[]){10, 20});
    fixture_message(&f, 1000, 1, 0);
    fixture_finish(&f, POLICY_fifo, CREDIT_UNLIMITED);
    assert_ok(cost_init(&cost, &f.site.cluster, &err));
    FILE *out = open_memstream(&text, &size);
    assert_ok(trace_write_beside(out, tl, &f.plan, &cost, 3, measure(&f, measured), measured, &err));
    fclose(out);
    cJSON *json = cJSON_Parse(text);
    const cJSON *events = cJSON_GetObjectItem(json, "traceEvents"), *event;
    const cJSON *predicted = first_compute(events, 0), *first = first_compute(events, 1);
    assert_non_null(predicted);
    assert_non_null(first);
    assert_string_equal(cJSON_GetObjectItem(first, "name")->valuestring,
                        cJSON_GetObjectItem(predicted, "name")->valuestring);
    assert_close(cJSON_GetObjectItem(first, "ts")->valuedouble, cJSON_GetObjectItem(predicted, "ts")->valuedouble, 0);
    assert_contains(text, " predicted\"");
    assert_contains(text, " measured\"");
    cJSON_ArrayForEach(event, events) {
        check_event(event, &compute, &messages, &names);
        real +=
            cJSON_GetObjectItem(event, "pid")->valueint == 1 && *cJSON_GetObjectItem(event, "ph")->valuestring == 'X';
    }
    assert_true(compute >= 3 * 2 + 3);
    assert_true(real >= 2 * 2 + 1);
    assert_true(messages >= 3 + 2);
    cJSON_Delete(json);
    free(text);
    cost_release(&cost);
    timeline_free(tl);
}

static void a_trace_shows_pushes_and_pulls_in_their_own_rows(void **state) {
    (void)state;
    struct fixture f;
    int compute = 0, messages = 0, names = 0;
    fixture_cluster(&f, 3);
    fixture_steps(&f, 1, 2, (double[]){10, 20});
    for (uint32_t i = 0; i < 6; i++) {
        struct message *m = fixture_message(&f, 1000 + 500 * i, 1, 0);
        m->kind = SYNC_PARAMETER_SERVER;
        m->server = i % 3;
    }
    fixture_finish(&f, POLICY_fifo, CREDIT_UNLIMITED);
    cJSON *json = trace_of(&f);
    const cJSON *events = cJSON_GetObjectItem(json, "traceEvents"), *event;
    cJSON_ArrayForEach(event, events) check_event(event, &compute, &messages, &names);
    assert_true(messages >= 2 * 6 * 3 * 2);
    check_rows(events);
    cJSON_Delete(json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equation_2_counts_each_worker_at_the_server),
        cmocka_unit_test(the_larger_of_compute_and_synchronization_counts),
        cmocka_unit_test(the_bound_is_compute_alone_on_one_node),
        cmocka_unit_test(the_bound_holds_the_volume_of_a_node),
        cmocka_unit_test(the_bound_takes_the_cheaper_architecture),
        cmocka_unit_test(a_trace_shows_each_device_computing_and_communicating),
        cmocka_unit_test(a_trace_shows_pushes_and_pulls_in_their_own_rows),
        cmocka_unit_test(a_trace_tells_gathers_and_the_update_from_the_passes),
        cmocka_unit_test(measured_and_predicted_timelines_begin_with_the_same_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
