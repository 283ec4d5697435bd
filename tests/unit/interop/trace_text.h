/* Profiler traces written by hand: events added to a text, in whatever order. */
#ifndef TESTS_UNIT_INTEROP_TRACE_TEXT_H
#define TESTS_UNIT_INTEROP_TRACE_TEXT_H

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define TRACE_STEP_NAME "autograd::engine::evaluate_function: "

struct trace_text {
    char text[60000];
    size_t n, events;
};

/* `args` are members, or "". */
static inline void put_event(struct trace_text *to, const char *category, const char *name, int thread, double start,
                             double length, const char *args) {
    to->n += (size_t)snprintf(
        to->text + to->n, sizeof to->text - to->n,
        "%s{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":%.17g,\"dur\":%.17g,"
        "\"args\":{%s}}",
        to->events++ ? ",\n" : "{\"schemaVersion\":1,\"traceEvents\":[\n", category, name, thread, start, length, args);
    assert(to->n + 2 < sizeof to->text);
}

static inline void put_numbered(struct trace_text *to, const char *name, int thread, double start, double length,
                                int sequence) {
    char args[64];
    snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":0", sequence);
    put_event(to, "cpu_op", name, thread, start, length, args);
}

/* The step that accumulates a gradient, and what it records of its input. */
static inline void put_gradient(struct trace_text *to, int thread, double start, double length, const char *sizes,
                                const char *type) {
    char args[200];
    snprintf(args, sizeof args, "\"Input Dims\":[%s],\"Input type\":[\"%s\"]", sizes, type);
    put_event(to, "cpu_op", TRACE_STEP_NAME "torch::autograd::AccumulateGrad", thread, start, length, "");
    put_event(to, "cpu_op", "torch::autograd::AccumulateGrad", thread, start + length / 4, length / 4, args);
}

static inline const char *trace_end(struct trace_text *to) {
    strcpy(to->text + to->n, "]}");
    return to->text;
}

/* An iteration from `at` on, everything `scale` times as long: two layers with a weight each, the second with a bias.
 *
 *     forward   load 0-5  first 10-40  (inner 12-30)  relu 45-50  zero gradients 50-52  second 60-100
 *     backward  B2 110-150  bias 150-152  T2 152-155  weight 155-160  B1 160-200  weight 201-205  end
 */
static inline void put_iteration(struct trace_text *to, double at, double scale, int first, int backward_thread) {
    const double s = scale;
    put_gradient(to, backward_thread, at + 201 * s, 4 * s, "[3,5]", "c10::Half");
    put_event(to, "user_annotation", "Optimizer.step#SGD.step", 1, at + 210 * s, 20 * s, "");
    put_numbered(to, "aten::mul_", 1, at + 212 * s, 2 * s, first + 3);
    put_event(to, "user_annotation", "enumerate(DataLoader)#_Next", 1, at, 5 * s, "");
    put_numbered(to, "aten::stack", 1, at + s, 2 * s, first);
    put_numbered(to, "aten::linear", 1, at + 10 * s, 30 * s, first);
    put_numbered(to, "aten::mm", 1, at + 12 * s, 18 * s, first);
    put_event(to, "cpu_op", "aten::empty", 1, at + 41 * s, s, "");
    put_numbered(to, "aten::relu", 1, at + 45 * s, 5 * s, first + 1);
    put_event(to, "user_annotation", "Optimizer.zero_grad#SGD.zero_grad", 1, at + 50 * s, 2 * s, "");
    put_numbered(to, "aten::zero_", 1, at + 51 * s, s / 2, first + 2);
    put_numbered(to, "aten::linear", 1, at + 60 * s, 40 * s, first + 2);
    put_numbered(to, "aten::t", 1, at + 61 * s, 2 * s, first + 2);
    put_numbered(to, "aten::addmm", 1, at + 65 * s, 30 * s, first + 3);
    put_numbered(to, TRACE_STEP_NAME "AddmmBackward0", backward_thread, at + 110 * s, 40 * s, first + 3);
    put_numbered(to, "AddmmBackward0", backward_thread, at + 112 * s, 30 * s, first + 3);
    put_gradient(to, backward_thread, at + 150 * s, 2 * s, "[7]", "float");
    put_numbered(to, TRACE_STEP_NAME "TBackward0", backward_thread, at + 152 * s, 3 * s, first + 2);
    put_gradient(to, backward_thread, at + 155 * s, 5 * s, "[7,3]", "float");
    put_numbered(to, TRACE_STEP_NAME "MmBackward0", backward_thread, at + 160 * s, 40 * s, first);
}

#endif
