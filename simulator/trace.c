/* Intervals are collected by node and sorted by start; each message then takes the first communication row of its node
 * that is free by then. An all-reduce appears on every node with devices. O(intervals * (log intervals + rows)). */
#include "simulator/trace.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PASSES = 2, MAX_ROWS = 4096 };

struct trace {
    struct interval *intervals;
    size_t n, room;
    bool no_memory;
};

static void collect(void *context, const struct interval *interval) {
    struct trace *trace = context;
    if (trace->n == trace->room) {
        size_t room = trace->room ? trace->room * 2 : 1024;
        struct interval *grown = realloc(trace->intervals, room * sizeof *grown);
        if (!grown) {
            trace->no_memory = true;
            return;
        }
        trace->intervals = grown;
        trace->room = room;
    }
    trace->intervals[trace->n++] = *interval;
}

static int by_start(const void *a, const void *b) {
    const struct interval *x = a, *y = b;
    if (x->start_us != y->start_us)
        return x->start_us < y->start_us ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void write_text(FILE *out, const char *text) {
    fputc('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (*p == '"' || *p == '\\')
            fprintf(out, "\\%c", *p);
        else if (*p < 0x20)
            fprintf(out, "\\u%04x", *p);
        else
            fputc(*p, out);
    fputc('"', out);
}

struct writer {
    FILE *out;
    const struct plan *plan;
    const struct cost *cost;
    bool any;
};

static void begin_event(struct writer *w) {
    fputs(w->any ? ",\n" : "\n", w->out);
    w->any = true;
}

static void write_name(struct writer *w, const char *what, uint32_t node, unsigned row, const char *name) {
    begin_event(w);
    fprintf(w->out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":", what, node, row);
    write_text(w->out, name);
    fputs("}}", w->out);
}

static void write_message(struct writer *w, const struct interval *i) {
    static const char *const verbs[] = {"compute", "all-reduce", "push", "pull"};
    const struct message *message = &w->plan->messages[i->index];
    const struct piece *piece = &w->plan->pieces[message->first_piece];
    fputs(",\"name\":", w->out);
    write_text(w->out, w->plan->model->variables[piece->variable].name);
    fprintf(w->out, ",\"cat\":\"%s\",\"args\":{\"message\":%u,\"bytes\":%llu,\"variables\":%u", verbs[i->kind],
            i->index, (unsigned long long)message->bytes, message->n_pieces);
    if (message->kind == SYNC_PARAMETER_SERVER) {
        fputs(",\"server\":", w->out);
        write_text(w->out, w->cost->cluster->nodes[message->server].name);
    }
    fputc('}', w->out);
}

static void write_event(struct writer *w, uint32_t node, unsigned row, const struct interval *i) {
    begin_event(w);
    fprintf(w->out, "{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f", node, row, i->start_us,
            i->end_us - i->start_us);
    if (i->kind == INTERVAL_COMPUTE)
        fprintf(w->out, ",\"name\":\"%s %u\",\"cat\":\"compute\"",
                i->index < w->plan->n_forward_steps ? "forward" : "backward", i->index);
    else
        write_message(w, i);
    fputc('}', w->out);
}

/* Rows of device d: d * MAX_ROWS for compute, then its communication rows. */
static void write_rows(struct writer *w, uint32_t node, uint32_t device, unsigned n_rows) {
    char name[64];
    snprintf(name, sizeof name, "device %u compute", device);
    write_name(w, "thread_name", node, device * MAX_ROWS, name);
    for (unsigned r = 1; r <= n_rows; r++) {
        snprintf(name, sizeof name, r == 1 ? "device %u communication" : "device %u communication %u", device, r);
        write_name(w, "thread_name", node, device * MAX_ROWS + r, name);
    }
}

/* The first row that is free at `start_us`; a new one if none is, and the last when they run out. */
static unsigned take_row(double *free_us, unsigned *n_rows, const struct interval *i) {
    unsigned row = 0;
    while (row < *n_rows && free_us[row] > i->start_us + 1e-6)
        row++;
    if (row == *n_rows && row < MAX_ROWS - 1)
        ++*n_rows;
    else if (row == *n_rows)
        row--;
    free_us[row] = i->end_us;
    return row + 1;
}

static void write_node(struct writer *w, uint32_t node, const struct trace *trace) {
    double free_us[MAX_ROWS];
    uint32_t devices = w->cost->cluster->nodes[node].devices;
    unsigned n_rows = 1;
    free_us[0] = 0;
    write_name(w, "process_name", node, 0, w->cost->cluster->nodes[node].name);
    for (size_t k = 0; k < trace->n; k++) {
        const struct interval *i = &trace->intervals[k];
        if (i->node != node && i->node != UINT32_MAX)
            continue;
        unsigned row = i->kind == INTERVAL_COMPUTE ? 0 : take_row(free_us, &n_rows, i);
        for (uint32_t d = 0; d < devices; d++)
            write_event(w, node, d * MAX_ROWS + row, i);
    }
    for (uint32_t d = 0; d < devices; d++)
        write_rows(w, node, d, n_rows);
}

enum status trace_write(FILE *out, struct timeline *timeline, const struct plan *plan, const struct cost *cost,
                        struct error *err) {
    struct trace trace = {0};
    struct writer writer = {.out = out, .plan = plan, .cost = cost};
    struct prediction prediction;
    struct timeline_options options = {.record = collect, .context = &trace, .passes = PASSES, .every_node = true};
    enum status status = timeline_run(timeline, plan, cost, &options, &prediction, err);
    if (status == ST_OK && trace.no_memory)
        status = error_no_memory(err);
    if (status == ST_OK) {
        qsort(trace.intervals, trace.n, sizeof *trace.intervals, by_start);
        fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", out);
        for (uint32_t c = 0; c < cost->n_workers; c++)
            write_node(&writer, cost->workers[c], &trace);
        fputs("\n]}\n", out);
        if (fflush(out) != 0 || ferror(out))
            status = error_set(err, ST_ENVIRONMENT, "the trace could not be written; is the disk full?");
    }
    free(trace.intervals);
    return status;
}
