/* Models from PyTorch profiler traces: what an iteration is, whose time is whose, who reads what, what is refused. */
#include <stdlib.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "tests/unit/interop/import_notes.h"
#include "tests/unit/interop/trace_text.h"

static struct trace_text trace;

static int begin(void **state) {
    trace.n = trace.events = 0;
    return notes_begin(state);
}

static const struct import_settings plain = {.batch = 4};

static void imported(struct model *out) {
    struct error err;
    assert_ok(import_model_text(trace_end(&trace), &plain, &notes, out, &err));
}

static const struct operator* operator_called(const struct model *m, const char *name) {
    for (uint32_t i = 0; i < m->n_operators; i++)
        if (!strcmp(m->operators[i].name, name))
            return &m->operators[i];
    fail_msg("no operator %s", name);
    return NULL;
}

static void reads(const struct model *m, const char *operator_name, size_t n, const char *first) {
    const struct operator* o = operator_called(m, operator_name);
    assert_int_equal(o->n_reads, n);
    if (n)
        assert_string_equal(m->variables[o->reads[0]].name, first);
}

/* As put_iteration says, of an iteration that is `scale` times as long. */
static void check_iteration(const struct model *m, double scale) {
    assert_int_equal(m->n_forward, 3);
    assert_int_equal(m->n_operators, 9);
    assert_close(operator_called(m, "aten::linear #1")->time_us, 30 * scale, 1e-9);
    assert_close(operator_called(m, "aten::relu #2")->time_us, 10 * scale, 1e-9);   /* with what runs before it */
    assert_close(operator_called(m, "aten::linear #3")->time_us, 48 * scale, 1e-9); /* zeroing left out */
    assert_close(operator_called(m, "AddmmBackward0 #4")->time_us, 50 * scale, 1e-9);
    assert_close(operator_called(m, "MmBackward0 #8")->time_us, 40 * scale, 1e-9);
    assert_close(m->backward_us, 105 * scale, 1e-9);
    assert_close(m->update_us, 20 * scale, 1e-9);
    assert_string_equal(m->operators[m->order[8]].name, "torch::autograd::AccumulateGrad #9");
    reads(m, "aten::linear #1", 1, "param0");
    reads(m, "aten::relu #2", 0, "");
    reads(m, "aten::linear #3", 2, "param1");
    assert_string_equal(m->variables[operator_called(m, "torch::autograd::AccumulateGrad #5")->produces[0]].name,
                        "param2");
}

static void an_iteration_is_its_forward_operators_and_steps_of_autograd(void **state) {
    (void)state;
    struct model m;
    put_event(&trace, "user_annotation", "ProfilerStep#4", 1, 0, 240, "");
    put_iteration(&trace, 0, 1, 17, 1);
    imported(&m);
    check_iteration(&m, 1);
    assert_int_equal(m.n_variables, 3);
    const struct variable *half = &m.variables[model_find_variable(&m, "param0")];
    const uint64_t sizes[] = {3, 5};
    assert_int_equal(half->rank, 2);
    assert_memory_equal(half->shape, sizes, sizeof sizes);
    assert_int_equal(half->bytes, 30);
    assert_int_equal(m.variables[model_find_variable(&m, "param1")].bytes, 84);
    assert_int_equal(m.variables[model_find_variable(&m, "param2")].bytes, 28);
    assert_true(noted(&notes, "medians of 1 iterations; times of the processor"));
    assert_true(noted(&notes, "no names of parameters"));
    model_release(&m);
}

/* What the step of the second layer's bias recorded of its input, in the place of the vector of 7. */
static void put_bias_input(const char *words) {
    static const char was[] = "\"Input Dims\":[[7]],\"Input type\":[\"float\"]";
    char *at = strstr(trace.text, was);
    assert_non_null(at);
    assert_true(strlen(words) <= strlen(was));
    memset(at, ' ', strlen(was));
    memcpy(at, words, strlen(words));
}

/* Without a type it is no tensor: no gradient is there, and nothing is trained. With one it is a number. */
static void an_undefined_gradient_is_none(void **state) {
    (void)state;
    struct model m;
    put_event(&trace, "user_annotation", "ProfilerStep#4", 1, 0, 240, "");
    put_iteration(&trace, 0, 1, 17, 1);
    put_bias_input("\"Input Dims\":[[]],\"Input type\":[\"\"]");
    imported(&m);
    assert_int_equal(m.n_variables, 2);
    assert_int_equal(m.n_operators, 9);
    assert_close(operator_called(&m, "torch::autograd::AccumulateGrad #5")->time_us, 2, 1e-9);
    assert_int_equal(operator_called(&m, "torch::autograd::AccumulateGrad #5")->n_produces, 0);
    reads(&m, "aten::linear #1", 1, "param0");
    reads(&m, "aten::linear #3", 1, "param1");
    assert_int_equal(m.variables[model_find_variable(&m, "param0")].bytes, 30);
    assert_int_equal(m.variables[model_find_variable(&m, "param1")].bytes, 84);
    assert_true(noted(&notes, "1 gradients are undefined: their parameters are not trained and are left out"));
    model_release(&m);
    static const char *const numbers[] = {"\"Input Dims\":[[]],\"Input type\":[\"float\"]", "\"Input Dims\":[[]]"};
    for (size_t i = 0; i < 2; i++) {
        trace.n = trace.events = 0;
        notes = (struct notes){.arena = &arena};
        put_event(&trace, "user_annotation", "ProfilerStep#4", 1, 0, 240, "");
        put_iteration(&trace, 0, 1, 17, 1);
        put_bias_input(numbers[i]);
        imported(&m);
        check_iteration(&m, 1);
        assert_int_equal(m.variables[model_find_variable(&m, "param2")].bytes, 4);
        assert_false(noted(&notes, "undefined"));
        model_release(&m);
    }
}

static void a_trace_of_undefined_gradients_alone_is_refused(void **state) {
    (void)state;
    struct error err;
    struct model m;
    put_numbered(&trace, "aten::linear", 1, 10, 30, 1);
    put_numbered(&trace, TRACE_STEP_NAME "MmBackward0", 1, 60, 40, 1);
    put_gradient(&trace, 1, 101, 4, "[]", "");
    assert_fails(import_model_text(trace_end(&trace), &plain, &notes, &m, &err), ST_INVALID,
                 "file.txt: byte 0: all gradients of the last iteration are undefined");
}

static void times_are_medians_over_iterations_that_are_alike(void **state) {
    (void)state;
    static const double scales[] = {1, 9, 2, 4, 3};
    struct model m;
    char name[40];
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        put_event(&trace, "user_annotation", name, 1, 1e4 * i, 9000, "");
        put_iteration(&trace, 1e4 * i, scales[i], 10 * i, 2);
        if (i == 1) /* does something else: its scale does not count */
            put_numbered(&trace, "aten::dropout", 1, 1e4 * i + 56 * 9, 9, 11);
    }
    imported(&m);
    check_iteration(&m, 2.5);
    assert_true(noted(&notes, "medians of 4 iterations, others did something else"));
    model_release(&m);
}

static void without_marks_an_iteration_ends_with_the_optimizers_step(void **state) {
    (void)state;
    struct model m;
    for (int i = 0; i < 3; i++)
        put_iteration(&trace, 300 * i, 1, 10 * i, 1);
    imported(&m);
    check_iteration(&m, 1);
    assert_true(noted(&notes, "medians of 3 iterations;"));
    model_release(&m);
}

/* The second optimizer's within another one's; the third in no iteration. */
static void steps_of_all_optimizers_are_the_update(void **state) {
    (void)state;
    struct model m;
    put_event(&trace, "user_annotation", "ProfilerStep#4", 1, 300, 290, "");
    put_iteration(&trace, 300, 1, 17, 1);
    put_event(&trace, "user_annotation", "Optimizer.step#ZeroRedundancyOptimizer.step", 1, 540, 30, "");
    put_event(&trace, "user_annotation", "Optimizer.step#Adam.step", 1, 545, 20, "");
    put_event(&trace, "user_annotation", "Optimizer.step#Adam.step", 1, 10, 20, "");
    imported(&m);
    assert_close(m.update_us, 50, 1e-9);
    model_release(&m);
}

static void iterations_without_an_update_do_not_count_for_it(void **state) {
    (void)state;
    struct model m;
    char name[40];
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        put_event(&trace, "user_annotation", name, 1, 300.0 * i, 290, "");
        put_iteration(&trace, 300.0 * i, 1, 10 * i, 1);
    }
    for (char *at = trace.text; (at = strstr(at, "Optimizer.step#SGD.step")) && strstr(at + 1, "Optimizer.step#SGD");)
        memcpy(at, "no_optimizer", strlen("no_optimizer")); /* all but the last */
    imported(&m);
    assert_close(m.update_us, 20, 1e-9);
    model_release(&m);
}

static void accumulated_gradients_are_pointed_out(void **state) {
    (void)state;
    struct model m;
    for (int thread = 1; thread <= 2; thread++) {
        trace.n = trace.events = 0;
        notes = (struct notes){.arena = &arena};
        put_event(&trace, "user_annotation", "ProfilerStep#4", 1, 0, 700, "");
        put_iteration(&trace, 0, 1, 17, thread);
        imported(&m);
        assert_false(noted(&notes, "several backward passes"));
        model_release(&m);
        put_iteration(&trace, 300, 1, 27, thread);
        imported(&m);
        assert_true(noted(&notes, "several backward passes"));
        model_release(&m);
    }
}

static void moments_since_1970_lose_nothing_but_a_fraction(void **state) {
    (void)state;
    struct model m;
    put_event(&trace, "user_annotation", "ProfilerStep#4", 1, 1666149715000000, 240, "");
    put_iteration(&trace, 1666149715000000, 1, 17, 1);
    imported(&m);
    check_iteration(&m, 1);
    model_release(&m);
}

static void put_kernel(const char *category, const char *name, int correlation, double launched, int thread,
                       double begin, double length) {
    char args[64];
    snprintf(args, sizeof args, "\"correlation\":%d,\"stream\":7", correlation);
    put_event(&trace, "cuda_runtime", "cudaLaunchKernel", thread, launched, 1, args);
    put_event(&trace, category, name, 7, begin, length, args);
}

static void on_a_device_operators_take_the_time_of_their_kernels(void **state) {
    (void)state;
    struct model m;
    put_event(&trace, "user_annotation", "ProfilerStep#4", 1, 0, 240, "");
    put_event(&trace, "gpu_user_annotation", "ProfilerStep#4", 7, 100, 900, "");
    put_iteration(&trace, 0, 1, 17, 2);
    put_kernel("gpu_memcpy", "Memcpy HtoD", 1, 3, 1, 20, 500); /* of the data: before the first operator */
    put_kernel("kernel", "sgemm", 2, 15, 1, 600, 100);         /* first */
    put_kernel("kernel", "relu", 3, 47, 1, 690, 30);           /* overlaps by 10 */
    put_kernel("kernel", "fill", 4, 51, 1, 730, 5);            /* zeroing */
    put_kernel("kernel", "sgemm", 5, 70, 1, 740, 60);          /* second */
    put_kernel("kernel", "splitk", 6, 90, 1, 800, 7);          /* second, again */
    put_kernel("kernel", "dgrad", 7, 130, 2, 900, 200);        /* AddmmBackward0 */
    put_kernel("kernel", "ncclDevKernel_AllReduce", 8, 158, 2, 950, 5000);
    put_kernel("kernel", "wgrad", 9, 170, 2, 1200, 300); /* MmBackward0 */
    put_kernel("kernel", "sgd", 10, 213, 1, 1600, 50);   /* the optimizer's */
    imported(&m);
    assert_int_equal(m.n_forward, 3);
    assert_close(operator_called(&m, "aten::linear #1")->time_us, 100, 1e-9);
    assert_close(operator_called(&m, "aten::relu #2")->time_us, 20, 1e-9);
    assert_close(operator_called(&m, "aten::linear #3")->time_us, 67, 1e-9);
    assert_close(operator_called(&m, "AddmmBackward0 #4")->time_us, 200, 1e-9);
    assert_close(operator_called(&m, "MmBackward0 #8")->time_us, 300, 1e-9);
    assert_close(m.backward_us, 500, 1e-9);
    assert_close(m.update_us, 50, 1e-9);
    assert_true(noted(&notes, "kernels kept the device busy"));
    assert_true(noted(&notes, "1 collectives in it"));
    model_release(&m);
}

static void early_versions_words_are_understood(void **state) {
    (void)state;
    struct model now, early;
    put_event(&trace, "user_annotation", "ProfilerStep#4", 1, 0, 240, "");
    put_iteration(&trace, 0, 1, 17, 1);
    imported(&now);
    for (char *at = trace.text; (at = strstr(at, "Dims")); at++)
        *at = 'd';
    struct error err;
    assert_ok(import_model_text(trace.text, &plain, &notes, &early, &err));
    assert_string_equal(early.id.hex, now.id.hex);
    model_release(&now);
    model_release(&early);
}

/* Profilers write events by thread and kind, not by time. */
static void the_order_of_the_events_does_not_matter(void **state) {
    (void)state;
    struct rng rng;
    struct model first;
    static char shuffled[sizeof trace.text];
    put_event(&trace, "user_annotation", "ProfilerStep#4", 1, 0, 240, "");
    put_iteration(&trace, 0, 1, 17, 2);
    imported(&first);
    rng_seed(&rng, test_seed());
    for (int round = 0; round < 50; round++) {
        const char *lines[64];
        uint32_t order[64];
        size_t n = 0, at = 0;
        for (const char *p = trace.text; (p = strchr(p, '\n')); n++) {
            lines[n] = ++p;
            order[n] = (uint32_t)n;
        }
        rng_shuffle(&rng, n, order);
        at += (size_t)sprintf(shuffled, "[");
        for (size_t i = 0; i < n; i++) {
            const char *line = lines[order[i]];
            size_t length = strcspn(line, "\n");
            length -= line[length - 1] == ',' ? 1 : line[length - 1] == '}' && line[length] == 0 ? 2 : 0;
            at += (size_t)sprintf(shuffled + at, "%s%.*s", i ? "," : "", (int)length, line);
        }
        strcpy(shuffled + at, "]");
        struct error err;
        struct model m;
        assert_ok(import_model_text(shuffled, &plain, &notes, &m, &err));
        assert_string_equal(m.id.hex, first.id.hex);
        model_release(&m);
    }
    model_release(&first);
}

/* ---- malformed ---- */

static void refused(const char *part) {
    struct error err;
    struct model m;
    assert_fails(import_model_text(trace_end(&trace), &plain, &notes, &m, &err), ST_INVALID, part);
    trace.n = trace.events = 0;
}

static void bad_traces_are_refused_with_their_place(void **state) {
    (void)state;
    put_numbered(&trace, "aten::relu", 1, 0, 5, 1);
    refused("no gradient becomes ready");
    put_numbered(&trace, "aten::relu", 1, 0, 5, 1);
    put_event(&trace, "cpu_op", TRACE_STEP_NAME "torch::autograd::AccumulateGrad", 1, 10, 5, "");
    refused("/traceEvents/1: the trace has no shapes; profile with record_shapes=True");
    put_gradient(&trace, 1, 10, 5, "[3]", "float");
    refused("no operator before the backward pass bears");
    put_numbered(&trace, "aten::relu", 1, 0, 5, 1);
    put_gradient(&trace, 1, 10, 5, "[3]", "c10::complex<float>");
    refused("/traceEvents/2/args/Input type/0: gradients of type");
    put_numbered(&trace, "aten::relu", 1, 0, 5, 1);
    put_gradient(&trace, 1, 10, 5, "[3,-1]", "float");
    refused("/traceEvents/2/args/Input Dims/0/1");
    put_numbered(&trace, "aten::relu", 1, 0, 5, 1);
    put_gradient(&trace, 1, 10, 5, "[1,1,1,1,1,1,1,1,1]", "float");
    refused("more than 8 axes");
    put_event(&trace, "cpu_op", "aten::relu", 1, 0, -5, "");
    refused("/traceEvents/0/dur");
    struct error err;
    struct model m;
    assert_fails(import_model_text("{\"traceEvents\":3}", &plain, &notes, &m, &err), ST_INVALID, "are a list");
    assert_fails(import_model_text("{\"traceEvents\":[3]}", &plain, &notes, &m, &err), ST_INVALID, "/traceEvents/0");
    assert_fails(import_model_text("{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"aten::t\",\"cat\":\"cpu_op\"}]}", &plain,
                                   &notes, &m, &err),
                 ST_INVALID, "/traceEvents/0");
    assert_fails(import_model_text("\x1f\x8b\x08zzz", &plain, &notes, &m, &err), ST_INVALID, "gunzip");
}

/* As source_read leaves a file of more than SOURCE_MAX_BYTES. */
static void of_a_long_file_the_rest_is_read_from_it(void **state) {
    (void)state;
    struct error err;
    put_event(&trace, "user_annotation", "ProfilerStep#4", 1, 0, 240, "");
    put_iteration(&trace, 0, 1, 17, 1);
    const char *text = trace_end(&trace), *path = test_file("long.trace", text);
    for (size_t n = 40; n < strlen(text); n += 97) {
        const struct source source = {path, arena_copy(&arena, text, n), n, true};
        struct model m;
        cJSON *json;
        assert_ok(import_model(&source, "torch-trace", &plain, &notes, &json, &err));
        assert_ok(model_read(json, "long", &m, &err));
        check_iteration(&m, 1);
        cJSON_Delete(json);
        model_release(&m);
    }
}

static void every_beginning_of_a_trace_is_refused(void **state) {
    (void)state;
    put_event(&trace, "user_annotation", "ProfilerStep#4", 1, 0, 240, "");
    put_iteration(&trace, 0, 1, 17, 1);
    const char *text = trace_end(&trace);
    const size_t n = strlen(text);
    for (size_t k = 0; k < n; k++) {
        struct error err;
        struct arena own = {0};
        struct notes own_notes = {.arena = &own};
        cJSON *json;
        const struct source source = {.name = "t.json", .text = arena_copy(&own, text, k), .n = k};
        assert_fails(import_model(&source, "torch-trace", &plain, &own_notes, &json, &err), ST_INVALID, "t.json: ");
        arena_release(&own);
    }
}

static void deep_nesting_is_refused(void **state) {
    (void)state;
    struct error err;
    struct model m;
    static char text[20000];
    strcpy(text, "{\"traceEvents\":[");
    memset(text + strlen(text), '[', 10000);
    assert_fails(import_model_text(text, &plain, &notes, &m, &err), ST_INVALID, "line 1");
}

#define WITH_TRACE(test) cmocka_unit_test_setup_teardown(test, begin, notes_end)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_TRACE(an_iteration_is_its_forward_operators_and_steps_of_autograd),
        WITH_TRACE(an_undefined_gradient_is_none),
        WITH_TRACE(a_trace_of_undefined_gradients_alone_is_refused),
        WITH_TRACE(times_are_medians_over_iterations_that_are_alike),
        WITH_TRACE(without_marks_an_iteration_ends_with_the_optimizers_step),
        WITH_TRACE(steps_of_all_optimizers_are_the_update),
        WITH_TRACE(iterations_without_an_update_do_not_count_for_it),
        WITH_TRACE(accumulated_gradients_are_pointed_out),
        WITH_TRACE(moments_since_1970_lose_nothing_but_a_fraction),
        WITH_TRACE(on_a_device_operators_take_the_time_of_their_kernels),
        WITH_TRACE(early_versions_words_are_understood),
        WITH_TRACE(the_order_of_the_events_does_not_matter),
        WITH_TRACE(bad_traces_are_refused_with_their_place),
        WITH_TRACE(of_a_long_file_the_rest_is_read_from_it),
        WITH_TRACE(every_beginning_of_a_trace_is_refused),
        WITH_TRACE(deep_nesting_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
