/* Intervals are collected by node and sorted by start; each message then takes the first communication row of its node
 * that is free by then. An all-reduce appears on every node with devices. O(intervals * (log intervals + rows)). */
#include "simulator/trace.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "simulator/trace_file.h"

enum { PASSES = 2, MAX_ROWS = 4096 };

struct trace {
    struct interval *intervals;
    size_t n, room;
    bool no_memory;
};

static void collect(void *context, const struct interval *interval) {
    struct trace *trace = context;
    if (GROW(&trace->intervals, &trace->room, trace->n + 1))
        trace->intervals[trace->n++] = *interval;
    else
        trace->no_memory = true;
}

static int by_start(const void *a, const void *b) {
    const struct interval *x = a, *y = b;
    if (x->start_us != y->start_us)
        return x->start_us < y->start_us ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

struct writer {
    struct trace_file file;
    const struct plan *plan;
    const struct cost *cost;
    uint32_t pid; /* of the node that is being written */
    bool measured;
};

static void write_message(struct writer *w, const struct interval *i) {
    const struct message *message = &w->plan->messages[i->index];
    const char *verb = i->kind == INTERVAL_ALL_REDUCE ? message_way(message)
                       : i->kind == INTERVAL_PULL     ? "pull"
                       : w->measured                  ? "push and pull"
                                                      : "push";
    const struct piece *piece = &w->plan->pieces[message->first_piece];
    fputs(",\"name\":", w->file.out);
    trace_file_text(&w->file, w->plan->model->variables[piece->variable].name);
    fprintf(w->file.out, ",\"cat\":\"%s\",\"args\":{\"message\":%u,\"bytes\":%llu,\"variables\":%u", verb, i->index,
            (unsigned long long)message->bytes, message->n_pieces);
    if (message->kind == SYNC_PARAMETER_SERVER) {
        fputs(",\"server\":", w->file.out);
        trace_file_text(&w->file, w->cost->cluster->nodes[message->server].name);
    }
    fputc('}', w->file.out);
}

static void write_event(struct writer *w, unsigned row, const struct interval *i) {
    trace_file_event(&w->file);
    fprintf(w->file.out, "{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f", w->pid, row, i->start_us,
            i->end_us - i->start_us);
    if (i->kind == INTERVAL_COMPUTE)
        fprintf(w->file.out, ",\"name\":\"%s %u\",\"cat\":\"compute\"", plan_phase(w->plan, i->index), i->index);
    else
        write_message(w, i);
    fputc('}', w->file.out);
}

/* Rows of device d: d * MAX_ROWS for compute, then its communication rows. */
static void write_rows(struct writer *w, uint32_t device, unsigned n_rows) {
    char name[64];
    snprintf(name, sizeof name, "device %u compute", device);
    trace_file_name(&w->file, "thread_name", w->pid, device * MAX_ROWS, name);
    for (unsigned r = 1; r <= n_rows; r++) {
        snprintf(name, sizeof name, r == 1 ? "device %u communication" : "device %u communication %u", device, r);
        trace_file_name(&w->file, "thread_name", w->pid, device * MAX_ROWS + r, name);
    }
}

/* The intervals of one node, and the all-reduces, as a process called `name`. */
static void write_node(struct writer *w, uint32_t node, uint32_t devices, const char *name, const struct trace *trace) {
    double free_us[MAX_ROWS];
    unsigned n_rows = 1;
    free_us[0] = 0;
    trace_file_name(&w->file, "process_name", w->pid, 0, name);
    for (size_t k = 0; k < trace->n; k++) {
        const struct interval *i = &trace->intervals[k];
        if (i->node != node && i->node != UINT32_MAX)
            continue;
        unsigned row = i->kind == INTERVAL_COMPUTE
                           ? 0
                           : 1 + trace_file_row(free_us, &n_rows, MAX_ROWS - 1, i->start_us, i->end_us);
        for (uint32_t d = 0; d < devices; d++)
            write_event(w, d * MAX_ROWS + row, i);
    }
    for (uint32_t d = 0; d < devices; d++)
        write_rows(w, d, n_rows);
}

static enum status simulate(struct timeline *timeline, const struct plan *plan, const struct cost *cost,
                            uint32_t passes, struct trace *out, struct error *err) {
    struct prediction prediction;
    const struct timeline_options options = {.record = collect, .context = out, .passes = passes, .every_node = true};
    enum status status = timeline_run(timeline, plan, cost, &options, &prediction, err);
    if (!status && out->no_memory)
        status = error_no_memory(err);
    if (!status && out->n > 0)
        qsort(out->intervals, out->n, sizeof *out->intervals, by_start);
    return status;
}

enum status trace_write(FILE *out, struct timeline *timeline, const struct plan *plan, const struct cost *cost,
                        struct error *err) {
    struct trace trace = {0};
    struct writer writer = {.file = {.out = out}, .plan = plan, .cost = cost};
    enum status status = simulate(timeline, plan, cost, PASSES, &trace, err);
    if (!status) {
        trace_file_begin(&writer.file);
        for (uint32_t c = 0; c < cost->n_workers; c++) {
            const struct node *node = &cost->cluster->nodes[cost->workers[c]];
            writer.pid = cost->workers[c];
            write_node(&writer, writer.pid, node->devices, node->name, &trace);
        }
        status = trace_file_end(&writer.file, err);
    }
    free(trace.intervals);
    return status;
}

static void write_process(struct writer *w, uint32_t pid, const char *what, const struct trace *trace) {
    char name[256];
    snprintf(name, sizeof name, "%s %s", w->cost->cluster->nodes[w->cost->workers[0]].name, what);
    w->pid = pid;
    write_node(w, w->cost->workers[0], 1, name, trace);
}

/* The first start of a step of compute (UINT32_MAX: any) on `node`; NULL when there is none. */
static const struct interval *first_step(const struct trace *trace, uint32_t node, uint32_t step) {
    const struct interval *first = NULL;
    for (size_t k = 0; k < trace->n; k++) {
        const struct interval *i = &trace->intervals[k];
        if (i->kind == INTERVAL_COMPUTE && i->node == node && (step == UINT32_MAX || i->index == step) &&
            (!first || i->start_us < first->start_us))
            first = i;
    }
    return first;
}

/* Let both begin with the same step at the same time. What was measured before that step is dropped. */
static void align(struct trace *measured, const struct trace *predicted, uint32_t node) {
    const struct interval *to = first_step(predicted, node, UINT32_MAX);
    const struct interval *from = to ? first_step(measured, node, to->index) : NULL;
    const double start_us = from ? from->start_us : 0, shift_us = from ? to->start_us - start_us : 0;
    const size_t n = measured->n;
    measured->n = 0;
    for (size_t k = 0; k < n && from; k++) {
        struct interval i = measured->intervals[k];
        if (i.start_us < start_us)
            continue;
        i.start_us += shift_us;
        i.end_us += shift_us;
        measured->intervals[measured->n++] = i;
    }
}

enum status trace_write_beside(FILE *out, struct timeline *timeline, const struct plan *plan, const struct cost *cost,
                               uint32_t passes, size_t n, struct interval *measured, struct error *err) {
    struct trace predicted = {0};
    struct trace real = {.intervals = measured, .n = n};
    struct writer writer = {.file = {.out = out}, .plan = plan, .cost = cost};
    enum status status = simulate(timeline, plan, cost, passes > PASSES ? passes : PASSES, &predicted, err);
    if (!status) {
        align(&real, &predicted, cost->workers[0]);
        if (real.n)
            qsort(real.intervals, real.n, sizeof *real.intervals, by_start);
        trace_file_begin(&writer.file);
        write_process(&writer, 0, "predicted", &predicted);
        writer.measured = true;
        write_process(&writer, 1, "measured", &real);
        status = trace_file_end(&writer.file, err);
    }
    free(predicted.intervals);
    return status;
}
