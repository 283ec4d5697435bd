/* syncopate explain: where an iteration's time went, from profiler traces of all ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/explain_output.h"
#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "interop/import/import.h"
#include "interop/import/trace_stream.h"
#include "simulator/bound.h"
#include "strategy/cluster.h"
#include "strategy/cost/cost.h"
#include "strategy/model.h"

struct request {
    const char *cluster, *out, *html;
    bool json;
};

static bool is_standard_output(const char *path) {
    return path && !strcmp(path, "-");
}

static enum status check(const struct request *request, struct error *err) {
    if (request->out && !request->cluster)
        return error_set(err, ST_USAGE, "--out without --cluster: give the cluster file to which the costs are added");
    if (is_standard_output(request->out) || is_standard_output(request->html))
        return error_set(err, ST_USAGE, "--out and --html: standard output has the explanation; give a file");
    return ST_OK;
}

/* What a reader of the figures must know, on standard error. */
static void warn(const struct explanation *e) {
    char notes[EXPLAINED_NOTES][EXPLAINED_ROOM];
    const size_t n = explained_notes(e, notes);
    for (size_t i = 0; i < n; i++)
        log_warn("%s", notes[i]);
}

/* What became of the points of the traces. */
struct written {
    size_t n, left_out; /* a cluster file has no place for those left out */
    size_t computing;   /* of n: beside computing for MEETING_MOST_BESIDE of their time or more */
    size_t shared;      /* of n: never alone */
};

static struct written list_measurements(const struct meetings *m, struct measurement *out) {
    struct written w = {0};
    for (size_t i = 0; i < m->n_points; i++) {
        const struct cost_point *p = &m->points[i];
        if (strcmp(p->operation, "all_reduce") || p->time_us.median_us <= 0) {
            w.left_out++;
            continue;
        }
        w.computing += p->beside >= MEETING_MOST_BESIDE;
        w.shared += !p->alone;
        out[w.n++] = (struct measurement){OPERATION_all_reduce, ALGORITHM_auto,    p->devices,        p->bytes,
                                          p->time_us.median_us, p->time_us.low_us, p->time_us.high_us};
    }
    return w;
}

/* The cluster file with the costs added. */
static enum status add_costs(const char *cluster, size_t n, const struct measurement *measured, struct arena *arena,
                             cJSON **out, struct error *err) {
    struct notes notes = {.arena = arena};
    struct source source;
    char path[4096];
    enum status st = inputs_find(cluster, "clusters", path, sizeof path, err);
    if (!st)
        st = source_read(path, arena, &source, err);
    if (!st)
        st = import_measurements(&source, n, measured, &notes, out, err);
    for (const struct note *note = notes.first; note && !st; note = note->next)
        log_info("%s", note->text);
    return st;
}

static enum status write_cluster(const char *out, const cJSON *json, const struct written *w, struct error *err) {
    if (!w->n)
        return error_set(err, ST_INFEASIBLE,
                         "no all-reduce of these traces had all ranks and a known size: nothing to write into %s", out);
    char *text = json_pretty(json);
    enum status st = text ? json_write_file(out, text, err) : error_no_memory(err);
    free(text);
    if (st)
        return st;
    log_info("%zu all-reduces written to %s%s", w->n, out, w->left_out ? "; other collectives are not" : "");
    if (w->shared)
        log_info(
            "%zu of them moved beside others only: each has its share, by bytes, of the time for which any moved; what "
            "starting one costs does not show in that",
            w->shared);
    if (w->computing)
        log_info("%zu of them moved beside computing, which may have slowed them; a bench times messages alone",
                 w->computing);
    return ST_OK;
}

/* The model that this rank's trace shows. */
static enum status read_model(const char *trace, struct arena *arena, struct model *out, struct error *err) {
    const struct import_settings none = {0};
    const struct source source = trace_source(trace);
    struct notes notes = {.arena = arena};
    struct stat about;
    cJSON *json = NULL;
    if (stat(trace, &about) || !S_ISREG(about.st_mode))
        return error_at(err, ST_INVALID, trace, "no file, and so it cannot be read twice");
    enum status st = import_model(&source, "torch-trace", &none, &notes, &json, err);
    if (!st)
        st = model_read(json, trace, out, err);
    cJSON_Delete(json);
    return st;
}

static enum status find_floor(const char *trace, const struct cluster *cluster, struct explained_floor *out,
                              struct error *err) {
    struct arena arena = {0};
    struct model model;
    struct cost cost;
    struct bound bound;
    enum status st = read_model(trace, &arena, &model, err);
    arena_release(&arena);
    if (st)
        return st;
    st = cost_init(&cost, cluster, err);
    if (!st) {
        st = bound_iteration(&model, &cost, LOSSY_none, IN_PARTS_none, &bound, err);
        cost_release(&cost);
    }
    model_release(&model);
    if (!st) {
        *out = (struct explained_floor){.known = true, .exposed_us = bound.iteration_us - bound.compute_us};
        snprintf(out->cluster, sizeof out->cluster, "%s", cluster->name);
    }
    return st;
}

/* A floor needs more than an explanation does: where it is missing, words say why, and the rest is told. */
static enum status try_floor(const struct explanation *e, const char *trace, const cJSON *json,
                             struct explained_floor *out, struct error *err) {
    struct cluster cluster;
    struct error why;
    enum status st = cluster_read(json, "cluster", &cluster, err);
    if (st)
        return st;
    const uint32_t ranks = e->traces[0].n_ranks ? e->traces[0].n_ranks : (uint32_t)e->n;
    if (cluster.n_devices != ranks)
        log_warn("%s has %u devices, but the job had %u ranks: what no strategy can hide is not told", cluster.name,
                 cluster.n_devices, ranks);
    else if ((st = find_floor(trace, &cluster, out, &why)) == ST_NO_MEMORY)
        error_pass(err, &why);
    else if (st)
        log_warn("what no strategy can hide is not told: %s", ERROR_TEXT(&why));
    cluster_release(&cluster);
    return st == ST_NO_MEMORY ? st : ST_OK;
}

/* The cluster with the costs, and what no strategy can hide on it. *json is the caller's. */
static enum status use_cluster(const struct request *request, const struct explanation *e, const char *trace,
                               cJSON **json, struct written *written, struct explained_floor *floor,
                               struct error *err) {
    struct arena arena = {0};
    struct measurement *measured = arena_alloc(&arena, e->meetings.n_points, sizeof *measured);
    if (measured)
        *written = list_measurements(&e->meetings, measured);
    enum status st =
        measured ? add_costs(request->cluster, written->n, measured, &arena, json, err) : error_no_memory(err);
    if (!st)
        st = try_floor(e, trace, *json, floor, err);
    arena_release(&arena);
    return st;
}

static enum status write_page(const char *path, const struct explanation *e, const struct explained_floor *floor,
                              struct error *err) {
    char *text = NULL;
    size_t length;
    enum status st = explained_page(e, floor, &text, &length, err);
    if (!st)
        st = json_write_file(path, text, err);
    if (!st)
        log_info("page written to %s; any browser opens it", path);
    free(text);
    return st;
}

/* The explanation is told first, so that a file that cannot be written does not cost it. */
static enum status tell(const struct request *request, const struct explanation *e, const char *trace,
                        struct error *err) {
    struct explained_floor floor = {0};
    struct written written = {0};
    cJSON *cluster = NULL;
    enum status st = request->cluster ? use_cluster(request, e, trace, &cluster, &written, &floor, err) : ST_OK;
    if (!st)
        st = request->json ? explain_print_json(e, &floor, err) : explain_print(e, &floor, err);
    if (!st)
        warn(e);
    if (!st && request->out)
        st = write_cluster(request->out, cluster, &written, err);
    if (!st && request->html)
        st = write_page(request->html, e, &floor, err);
    cJSON_Delete(cluster);
    return st;
}

static enum status explain(const struct request *request, const struct arguments *traces, struct error *err) {
    struct source *sources = calloc(traces->n, sizeof *sources);
    struct explanation e;
    if (!sources)
        return error_no_memory(err);
    for (size_t i = 0; i < traces->n; i++)
        sources[i] = trace_source(traces->items[i]);
    enum status st = explanation_of(traces->n, sources, &e, err);
    free(sources);
    if (st)
        return st;
    st = tell(request, &e, traces->items[0], err);
    explanation_release(&e);
    return st;
}

enum status cmd_explain(int argc, char **argv, struct error *err) {
    struct request request = {0};
    const struct option options[] = {
        {"cluster", OPTION_TEXT, &request.cluster, "CLUSTER", "also say what no strategy can hide on this cluster"},
        {"out", OPTION_TEXT, &request.out, "FILE", "where CLUSTER goes, with the all-reduces' costs in it"},
        {"html", OPTION_TEXT, &request.html, "FILE", "also write all of it as one HTML file"},
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
