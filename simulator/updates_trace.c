/* See updates_trace.h. */
#include "simulator/updates_trace.h"

#include <stdlib.h>

#include "base/grow.h"
#include "simulator/trace_file.h"

/* Rows of a node's process: workers, then sending, then receiving. */
enum { SENDS = 100, RECEIVES = 5000, MAX_ROWS = 4096 };

struct events {
    struct updates_event *list; /* malloc'd */
    size_t n, room;
    bool no_memory;
};

static void collect(void *context, const struct updates_event *event) {
    struct events *events = context;
    if (GROW(&events->list, &events->room, events->n + 1))
        events->list[events->n++] = *event;
    else
        events->no_memory = true;
}

static int by_start(const void *a, const void *b) {
    const struct updates_event *x = a, *y = b;
    if (x->start_us != y->start_us)
        return x->start_us < y->start_us ? -1 : 1;
    return x->kind != y->kind ? (int)x->kind - (int)y->kind : (x->worker > y->worker) - (x->worker < y->worker);
}

struct writer {
    struct trace_file file;
    const struct cluster *cluster;
    const struct events *events;
};

static void begin_slice(struct writer *w, uint32_t node, unsigned row, const struct updates_event *e) {
    trace_file_event(&w->file);
    fprintf(w->file.out, "{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f", node, row, e->start_us,
            e->end_us - e->start_us);
}

static void write_compute(struct writer *w, uint32_t node, const struct updates_event *e) {
    begin_slice(w, node, 1 + e->worker - w->cluster->nodes[node].first_device, e);
    fprintf(w->file.out, ",\"name\":\"worker %u computes\",\"cat\":\"compute\"}", e->worker);
}

static void write_transfer(struct writer *w, uint32_t node, unsigned row, const struct updates_event *e) {
    const bool sends = e->from == node;
    begin_slice(w, node, row, e);
    fprintf(w->file.out, ",\"name\":\"%s", e->what);
    if (e->worker != UINT32_MAX)
        fprintf(w->file.out, " of worker %u", e->worker);
    fprintf(w->file.out, "\",\"cat\":\"%s\",\"args\":{\"bytes\":%.0f,\"%s\":", e->what, e->bytes,
            sends ? "to" : "from");
    trace_file_text(&w->file, w->cluster->nodes[sends ? e->to : e->from].name);
    fputs("}}", w->file.out);
}

static void write_rate(struct writer *w, const struct updates_event *e) {
    trace_file_event(&w->file);
    fprintf(w->file.out, "{\"ph\":\"C\",\"pid\":%u,\"ts\":%.3f,\"name\":\"NIC %s, Gbit/s\",\"args\":{\"rate\":%.6g}}",
            e->from, e->start_us, direction_name((enum direction)e->direction), e->gbit_per_s);
}

static void write_rows(struct writer *w, uint32_t node, unsigned sends, unsigned receives) {
    const struct node *n = &w->cluster->nodes[node];
    char name[64];
    trace_file_name(&w->file, "process_name", node, 0, n->name);
    for (uint32_t d = 0; d < n->devices; d++) {
        snprintf(name, sizeof name, "worker %u", n->first_device + d);
        trace_file_name(&w->file, "thread_name", node, 1 + d, name);
    }
    for (unsigned r = 0; r < sends; r++)
        trace_file_name(&w->file, "thread_name", node, SENDS + r, "sends");
    for (unsigned r = 0; r < receives; r++)
        trace_file_name(&w->file, "thread_name", node, RECEIVES + r, "receives");
}

static void write_node(struct writer *w, uint32_t node) {
    double out_us[MAX_ROWS], in_us[MAX_ROWS];
    unsigned sends = 0, receives = 0;
    for (size_t k = 0; k < w->events->n; k++) {
        const struct updates_event *e = &w->events->list[k];
        if (e->kind == UPDATES_COMPUTE && e->from == node)
            write_compute(w, node, e);
        else if (e->kind == UPDATES_RATE && e->from == node)
            write_rate(w, e);
        if (e->kind == UPDATES_TRANSFER && e->from == node)
            write_transfer(w, node, SENDS + trace_file_row(out_us, &sends, MAX_ROWS, e->start_us, e->end_us), e);
        if (e->kind == UPDATES_TRANSFER && e->to == node && e->from != node)
            write_transfer(w, node, RECEIVES + trace_file_row(in_us, &receives, MAX_ROWS, e->start_us, e->end_us), e);
    }
    write_rows(w, node, sends, receives);
}

enum status updates_trace_write(FILE *out, const struct plan *plan, const struct cost *cost,
                                const struct updates_options *options, struct error *err) {
    struct events events = {0};
    struct updates_prediction ignored;
    struct updates_options run = *options;
    struct writer w = {.file = {.out = out}, .cluster = cost->cluster, .events = &events};
    run.record = collect;
    run.context = &events;
    enum status st = updates_run(plan, cost, &run, &ignored, err);
    if (!st && events.no_memory)
        st = error_no_memory(err);
    if (!st) {
        if (events.n > 0)
            qsort(events.list, events.n, sizeof *events.list, by_start);
        trace_file_begin(&w.file);
        for (uint32_t node = 0; node < cost->cluster->n_nodes; node++)
            write_node(&w, node);
        st = trace_file_end(&w.file, err);
    }
    free(events.list);
    return st;
}
