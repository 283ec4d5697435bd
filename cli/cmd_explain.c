/* syncopate explain: where an iteration's time went, from profiler traces of all ranks. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/explain_output.h"
#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "interop/import/import.h"
#include "interop/import/trace_stream.h"
#include "strategy/cluster.h"

struct request {
    const char *cluster, *out;
    bool json;
};

static enum status check(const struct request *request, struct error *err) {
    if (!request->cluster != !request->out)
        return error_set(err, ST_USAGE,
                         "--cluster and --out go together: the costs are added to CLUSTER, and the result "
                         "goes to the file of --out");
    return request->out ? output_check(request->out, err) : ST_OK;
}

/* What a reader of the figures must know, on standard error. */
static void warn(const struct explanation *e) {
    const struct meetings *m = &e->meetings;
    if (e->n == 1)
        log_warn("one rank's trace does not tell when the others came: waiting for them counts as exposed "
                 "communication; give the traces of all ranks");
    else if (!m->n)
        log_warn("no collective is in several of these traces; profile the same iterations on all ranks");
    if (m->n_unmatched)
        log_warn("%zu collectives are in one trace only and are left out of costs and waiting", m->n_unmatched);
    if (m->n_partial)
        log_warn("%zu collectives had more ranks than there are traces: who came last is the last of those given, and "
                 "costs are not taken from them",
                 m->n_partial);
    if (m->n > m->n_partial && !m->n_points)
        log_warn("the traces do not tell how large messages were; profile with record_shapes=True");
}

/* Points that a cluster file has a place for; returns how many. */
static size_t list_measurements(const struct meetings *m, struct measurement *out, size_t *left_out) {
    size_t n = 0;
    *left_out = 0;
    for (size_t i = 0; i < m->n_points; i++) {
        const struct cost_point *p = &m->points[i];
        if (strcmp(p->operation, "all_reduce") || !p->alone || p->time_us.median_us <= 0) {
            ++*left_out;
            continue;
        }
        out[n++] = (struct measurement){OPERATION_all_reduce, ALGORITHM_auto,    p->devices,        p->bytes,
                                        p->time_us.median_us, p->time_us.low_us, p->time_us.high_us};
    }
    return n;
}

static enum status write_measurements(const struct request *request, size_t n, const struct measurement *measured,
                                      struct arena *arena, struct error *err) {
    struct notes notes = {.arena = arena};
    struct source source;
    char path[4096];
    cJSON *json = NULL;
    enum status st = inputs_find(request->cluster, "clusters", path, sizeof path, err);
    if (!st)
        st = source_read(path, arena, &source, err);
    if (!st)
        st = import_measurements(&source, n, measured, &notes, &json, err);
    char *text = st ? NULL : json_pretty(json);
    if (!st)
        st = text ? json_write_file(request->out, text, err) : error_no_memory(err);
    for (const struct note *note = notes.first; note && !st; note = note->next)
        log_info("%s", note->text);
    free(text);
    cJSON_Delete(json);
    return st;
}

static enum status write_costs(const struct request *request, const struct meetings *m, struct error *err) {
    struct arena arena = {0};
    size_t left_out;
    struct measurement *measured = arena_alloc(&arena, m->n_points, sizeof *measured);
    enum status st = measured ? ST_OK : error_no_memory(err);
    const size_t n = st ? 0 : list_measurements(m, measured, &left_out);
    if (!st && !n)
        st = error_set(err, ST_INFEASIBLE,
                       "no all-reduce of these traces had all ranks, a known size and no other collective beside it: "
                       "nothing to write into %s",
                       request->out);
    if (!st)
        st = write_measurements(request, n, measured, &arena, err);
    if (!st)
        log_info("%zu all-reduces written to %s%s", n, request->out,
                 left_out ? "; sizes that moved only beside others, and other collectives, are not" : "");
    arena_release(&arena);
    return st;
}

static enum status explain(const struct request *request, const struct arguments *traces, struct error *err) {
    struct source sources[MAX_ARGUMENTS];
    struct explanation e;
    for (size_t i = 0; i < traces->n; i++)
        sources[i] = trace_source(traces->items[i]);
    enum status st = explanation_of(traces->n, sources, &e, err);
    if (st)
        return st;
    if (request->out)
        st = write_costs(request, &e.meetings, err);
    if (!st)
        st = request->json ? explain_print_json(&e, err) : explain_print(&e, err);
    if (!st)
        warn(&e);
    explanation_release(&e);
    return st;
}

enum status cmd_explain(int argc, char **argv, struct error *err) {
    struct request request = {0};
    const struct option options[] = {
        {"cluster", OPTION_TEXT, &request.cluster, "CLUSTER",
         "a cluster file to which the all-reduces' costs are added"},
        {"out", OPTION_TEXT, &request.out, "FILE", "where the cluster with these costs goes"},
        {"json", OPTION_FLAG, &request.json, NULL, "print one syncopate.explanation/1 object"},
        {0}};
    const struct command_line line = {
        .usage = "explain TRACE... [options]",
        .about =
            "Say where an iteration's time went, and what tuning of communication could win at most, from PyTorch\n"
            "profiler traces (export_chrome_trace): one a rank, of the same iterations, of any size. Profile with\n"
            "record_shapes=True and the profiler's step(). At each moment a rank\n"
            "  computes,\n"
            "  does not compute while its message moves: exposed communication, which tuning can hide or shorten,\n"
            "  waits in a collective for a rank that has not come, which tuning cannot change, or\n"
            "  is idle.\n"
            "Collectives are matched across ranks. A collective costs the time from its last rank's coming to its\n"
            "end: what one rank's trace shows contains waiting. The ranks' clocks are compared by these ends.",
        .examples = "  syncopate explain rank*.json\n"
                    "  syncopate explain <(gunzip -c r0.pt.trace.json.gz) <(gunzip -c r1.pt.trace.json.gz)\n"
                    "  syncopate explain rank*.json --cluster cluster.json --out measured.json",
        .options = options,
        .min_arguments = 1,
        .max_arguments = MAX_ARGUMENTS};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = check(&request, err);
    return st ? st : explain(&request, &arguments, err);
}
