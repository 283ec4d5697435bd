/* Members of a collective's arguments are those of torch/csrc/profiler (saveNcclMeta) for NCCL. For gloo, whose events
 * say neither group nor sequence number, they are the sizes and types of the inputs (record_shapes=True).
 *
 * PyTorch 2 shows gloo's collective from the moment when a thread of gloo takes it up. The rank has come before that:
 * when it called c10d or, if gloo was busy then, when gloo was done with another. */
#include "interop/traces/rank_trace.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/json.h"
#include "base/statistics.h"
#include "base/work.h"
#include "interop/import/trace_events.h"
#include "interop/import/trace_stream.h"

/* A call of a collective, such as c10d::allreduce_. */
struct call {
    const char *operation;
    double elements, start;
};

struct reading {
    struct rank_trace trace;
    struct call *calls;
    size_t n_calls, calls_room;
    struct text_set *texts;
    struct spans processor;     /* when its operators ran */
    struct rank_step *steps[3]; /* marked on the device; on the processor; by the optimizer's steps */
    size_t n_steps[3], room[3];
    double first, last; /* moments of events */
};

/* What a collective, a stretch of computing and a mark of a step cost until all is explained: bytes, rounded up. */
enum { COLLECTIVE_BYTES = 640, SPAN_BYTES = 96, STEP_BYTES = 96 };

/* Count memory for the work that this is part of (base/work.h). */
static enum status count(struct reading *r, size_t bytes, struct error *err) {
    if (!work_take(bytes))
        return error_no_memory(err);
    r->trace.counted_bytes += bytes;
    return ST_OK;
}

/* ---- collectives ---- */

static uint64_t bytes_of_type(const char *name) {
    static const struct {
        const char *name;
        uint64_t bytes;
    } types[] = {{"float", 4},         {"double", 8},  {"half", 2},          {"bfloat16", 2},      {"c10::half", 2},
                 {"c10::bfloat16", 2}, {"float32", 4}, {"float64", 8},       {"float16", 2},       {"long", 8},
                 {"long int", 8},      {"int64", 8},   {"int", 4},           {"int32", 4},         {"short", 2},
                 {"short int", 2},     {"byte", 1},    {"unsigned char", 1}, {"uint8", 1},         {"char", 1},
                 {"signed char", 1},   {"int8", 1},    {"bool", 1},          {"float8_e4m3fn", 1}, {"float8_e5m2", 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcasecmp(name, types[i].name))
            return types[i].bytes;
    return 0;
}

/* One name for each operation, however the backend, the call or the kernel spells it. */
static const char *operation_of(const char *said, bool *meets) {
    static const struct {
        const char *part, *name; /* part: of what is said, in lower case and without underscores */
        bool meets;
    } names[] = {{"allreduce", "all_reduce", true}, {"reducescatter", "reduce_scatter", true},
                 {"allgather", "all_gather", true}, {"alltoall", "all_to_all", true},
                 {"barrier", "barrier", true},      {"broadcast", "broadcast", false},
                 {"reduce", "reduce", false},       {"gather", "gather", false},
                 {"scatter", "scatter", false},     {"sendrecv", "send_receive", false},
                 {"send", "send", false},           {"recv", "receive", false}};
    char word[128];
    size_t n = 0;
    for (const char *c = said; *c && n + 1 < sizeof word; c++)
        if (*c != '_')
            word[n++] = (char)tolower((unsigned char)*c);
    word[n] = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(word, names[i].part)) {
            *meets = names[i].meets;
            return names[i].name;
        }
    *meets = false;
    return "other";
}

static double number_of(const struct json_at *args, const char *key) {
    struct json_at member;
    return json_has(args, key, &member) && cJSON_IsNumber(member.node) ? fmax(member.node->valuedouble, 0) : 0;
}

/* The number of elements of a list of sizes, or of a list of such lists. */
static double elements_of(const cJSON *sizes) {
    double product = 1, sum = 0;
    bool nested = false;
    for (const cJSON *e = sizes->child; e; e = e->next) {
        nested = nested || cJSON_IsArray(e);
        sum += cJSON_IsArray(e) ? elements_of(e) : 0;
        product *= cJSON_IsNumber(e) ? fmax(e->valuedouble, 0) : 0;
    }
    return nested ? sum : product;
}

/* Of the first input: of its first tensor, if it is a list of one or some. */
static double first_elements(const struct json_at *args) {
    struct json_at dims;
    if (!json_has(args, "Input Dims", &dims) || !cJSON_IsArray(dims.node) || !cJSON_IsArray(dims.node->child))
        return 0;
    return elements_of(dims.node->child);
}

static uint64_t bytes_of(const struct json_at *args) {
    struct json_at dims, types;
    const double said = fmax(number_of(args, "In msg nelems"), number_of(args, "Out msg nelems"));
    double bytes = said * (double)bytes_of_type(json_text_of(args, "dtype"));
    if (said <= 0 && json_has(args, "Input Dims", &dims) && json_has(args, "Input type", &types) &&
        cJSON_IsArray(dims.node) && cJSON_IsArray(types.node)) {
        const char *type = cJSON_GetStringValue(types.node->child);
        bytes = elements_of(dims.node) * (double)(type ? bytes_of_type(type) : 0);
    }
    return bytes < 0x1p53 ? (uint64_t)bytes : 0;
}

/* Name and ranks of the process group, for comparing; NULL when memory is out. */
static const char *group_of(struct reading *r, const struct json_at *args) {
    struct json_at ranks;
    const char *name = json_text_of(args, "Process Group Name"), *kept = NULL;
    if (!json_has(args, "Process Group Ranks", &ranks))
        return text_set_add(r->texts, name);
    char *list = json_line(ranks.node), *whole = list ? malloc(strlen(name) + strlen(list) + 2) : NULL;
    if (whole) {
        stpcpy(stpcpy(stpcpy(whole, name), " "), list);
        kept = text_set_add(r->texts, whole);
    }
    free(whole);
    free(list);
    return kept;
}

static enum status add_collective(struct reading *r, const struct json_at *at, const struct trace_event *event,
                                  struct error *err) {
    struct rank_trace *trace = &r->trace;
    struct json_at args;
    if (!json_has(at, "args", &args) || !cJSON_IsObject(args.node))
        args = json_root(NULL, "");
    const char *said = json_text_of(&args, "Collective name"), *colon = strchr(event->name, ':');
    struct rank_collective c = {.start = event->start, .end = event->end, .ready = NAN};
    c.operation = operation_of(*said ? said : colon && colon[1] != ':' ? colon + 1 : event->name, &c.meets);
    c.group = group_of(r, &args);
    c.devices = (uint32_t)fmin(number_of(&args, "Group size"), UINT32_MAX);
    c.sequence =
        json_has(&args, "Seq", &(struct json_at){0}) ? (int64_t)fmin(number_of(&args, "Seq"), 9e15) : TRACE_NO_NUMBER;
    c.bytes = bytes_of(&args);
    c.elements = first_elements(&args);
    if (trace->n_collectives == RANK_MAX_COLLECTIVES)
        return error_at(err, ST_TOO_LARGE, trace->file, "more than %d collectives; profile fewer iterations",
                        RANK_MAX_COLLECTIVES);
    enum status st = count(r, COLLECTIVE_BYTES, err);
    if (st)
        return st;
    if (!c.group || !GROW(&trace->collectives, &trace->collectives_room, trace->n_collectives + 1))
        return error_no_memory(err);
    trace->collectives[trace->n_collectives++] = c;
    return ST_OK;
}

static enum status add_call(struct reading *r, const struct json_at *at, const struct trace_event *event,
                            struct error *err) {
    struct call call = {.start = event->start};
    struct json_at args;
    bool meets;
    if (r->trace.on_device || !json_has(at, "args", &args) || !cJSON_IsObject(args.node))
        return ST_OK;
    call.operation = operation_of(event->name, &meets);
    call.elements = first_elements(&args);
    if (r->n_calls == RANK_MAX_COLLECTIVES || call.elements <= 0)
        return ST_OK;
    if (!GROW(&r->calls, &r->calls_room, r->n_calls + 1))
        return error_no_memory(err);
    r->calls[r->n_calls++] = call;
    return ST_OK;
}

/* ---- events ---- */

static enum status add_span(struct reading *r, struct spans *to, const struct trace_event *event, struct error *err) {
    if (to->n == RANK_MAX_SPANS) {
        spans_join(to);
        if (2 * to->n > RANK_MAX_SPANS)
            return error_at(err, ST_TOO_LARGE, r->trace.file,
                            "more than %d stretches of computing; profile fewer iterations", RANK_MAX_SPANS / 2);
    }
    const size_t before = to->n;
    if (!spans_add(to, event->start, event->end))
        return error_no_memory(err);
    return to->n > before ? count(r, SPAN_BYTES, err) : ST_OK;
}

enum { ON_DEVICE, ON_PROCESSOR, BY_UPDATES };

static enum status add_step(struct reading *r, int which, const struct trace_event *event, struct error *err) {
    const char *number = strchr(event->name, '#');
    enum status st = count(r, STEP_BYTES, err);
    if (st)
        return st;
    if (!GROW(&r->steps[which], &r->room[which], r->n_steps[which] + 1))
        return error_no_memory(err);
    r->steps[which][r->n_steps[which]++] =
        (struct rank_step){number ? strtoll(number + 1, NULL, 10) : 0, event->start, event->end};
    return ST_OK;
}

static enum status add_event(struct reading *r, const struct json_at *at, const struct trace_event *event,
                             struct error *err) {
    r->first = fmin(r->first, event->start);
    r->last = fmax(r->last, event->end);
    switch (event->kind) {
    case TRACE_COLLECTIVE:
        r->trace.on_device |= strstr(event->name, "nccl") != NULL;
        return add_collective(r, at, event, err);
    case TRACE_KERNEL:
        r->trace.on_device = true;
        return add_span(r, &r->trace.compute, event, err);
    case TRACE_OPERATOR:
    case TRACE_BACKWARD:
    case TRACE_GRADIENT:
        if (!strncmp(event->name, "c10d::", 6))
            return add_call(r, at, event, err);
        if (r->trace.on_device || !strcmp(event->name, "record_param_comms")) /* within such a call: no computing */
            return ST_OK;
        return add_span(r, &r->processor, event, err);
    case TRACE_DEVICE_STEP:
        return add_step(r, ON_DEVICE, event, err);
    case TRACE_STEP:
        return add_step(r, ON_PROCESSOR, event, err);
    case TRACE_UPDATE:
        return add_step(r, BY_UPDATES, event, err);
    case TRACE_ASIDE:
    case TRACE_LAUNCH:
        break;
    }
    return ST_OK;
}

static enum status read_member(struct reading *r, const char *member, const struct json_at *at, struct error *err) {
    struct json_at rank;
    if (!strcmp(member, "distributedInfo") && cJSON_IsObject(at->node)) {
        r->trace.rank = json_has(at, "rank", &rank) ? (int64_t)fmin(number_of(at, "rank"), 9e15) : TRACE_NO_NUMBER;
        r->trace.n_ranks = (uint32_t)fmin(number_of(at, "world_size"), UINT32_MAX);
    } else if (!strcmp(member, "host_name") && cJSON_IsString(at->node) && *at->node->valuestring) {
        r->trace.host = text_set_add(r->texts, at->node->valuestring);
        return r->trace.host ? ST_OK : error_no_memory(err);
    }
    return ST_OK;
}

static enum status visit(void *context, const char *member, const struct json_at *at, struct error *err) {
    struct reading *r = context;
    struct trace_event event;
    bool kept = false;
    enum status st = member ? read_member(r, member, at, err) : trace_event_read(at, &event, &kept, err);
    return st || !kept ? st : add_event(r, at, &event, err);
}

/* ---- iterations ---- */

static int compare_steps(const void *a, const void *b) {
    const struct rank_step *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static int compare_numbers(const void *a, const void *b) {
    const struct rank_step *x = a, *y = b;
    return x->number != y->number ? (x->number > y->number) - (x->number < y->number) : compare_steps(a, b);
}

static bool same_number(const struct rank_step *x, const struct rank_step *y) {
    return x->number == y->number;
}

static bool overlap(const struct rank_step *x, const struct rank_step *y) {
    return y->start < x->end;
}

/* Sort the steps, and join each to the one before where both are `one`. */
static void join_steps(struct rank_trace *trace, int (*compare)(const void *, const void *),
                       bool (*one)(const struct rank_step *, const struct rank_step *)) {
    size_t kept = 0;
    qsort(trace->steps, trace->n_steps, sizeof *trace->steps, compare);
    for (size_t i = 0; i < trace->n_steps; i++) {
        struct rank_step *last = kept ? &trace->steps[kept - 1] : NULL;
        if (last && one(last, &trace->steps[i]))
            last->end = fmax(last->end, trace->steps[i].end);
        else
            trace->steps[kept++] = trace->steps[i];
    }
    trace->n_steps = kept;
}

/* A device marks a step once a stream: marks of one number are one step. Each step ends where the next begins. */
static void cut_by_marks(struct rank_trace *trace) {
    join_steps(trace, compare_numbers, same_number);
    qsort(trace->steps, trace->n_steps, sizeof *trace->steps, compare_steps);
    for (size_t i = 0; i + 1 < trace->n_steps; i++)
        trace->steps[i].end = trace->steps[i + 1].start;
}

/* The optimizer's steps end the iterations, the first of which begins with the trace. An optimizer that calls another
 * one marks a step within a step: these are one. */
static void cut_by_updates(struct rank_trace *trace, double first) {
    join_steps(trace, compare_steps, overlap);
    for (size_t i = 0; i < trace->n_steps; i++) {
        trace->steps[i].number = (int64_t)i;
        trace->steps[i].start = i ? trace->steps[i - 1].end : first;
    }
}

static enum status take_steps(struct reading *r, struct error *err) {
    struct rank_trace *trace = &r->trace;
    const int which = trace->on_device && r->n_steps[ON_DEVICE] ? ON_DEVICE
                      : r->n_steps[ON_PROCESSOR]                ? ON_PROCESSOR
                                                                : BY_UPDATES;
    if (!r->n_steps[which]) {
        const struct trace_event whole = {.name = "", .start = r->first, .end = r->last};
        enum status st = add_step(r, which, &whole, err);
        if (st)
            return st;
    }
    trace->steps = r->steps[which];
    trace->n_steps = r->n_steps[which];
    r->steps[which] = NULL;
    if (which == BY_UPDATES)
        cut_by_updates(trace, r->first);
    else
        cut_by_marks(trace);
    return ST_OK;
}

/* ---- calls ---- */

static int compare_collectives(const void *a, const void *b) {
    const struct rank_collective *x = a, *y = b;
    return x->start != y->start ? (x->start > y->start) - (x->start < y->start) : (x->end > y->end) - (x->end < y->end);
}

static int compare_sizes(const char *operation, double elements, const char *other, double others) {
    const int order = strcmp(operation, other);
    return order ? order : (elements > others) - (elements < others);
}

static int compare_calls(const void *a, const void *b) {
    const struct call *x = a, *y = b;
    const int order = compare_sizes(x->operation, x->elements, y->operation, y->elements);
    return order ? order : (x->start > y->start) - (x->start < y->start);
}

static int compare_by_size(const void *a, const void *b) {
    const struct rank_collective *x = a, *y = b;
    const int order = compare_sizes(x->operation, x->elements, y->operation, y->elements);
    return order ? order : compare_collectives(a, b);
}

/* The latest of n rising moments that is not after `moment`, or -INFINITY. */
static double latest_until(const double *moments, size_t n, double moment) {
    size_t low = 0, high = n;
    while (low < high) { /* the first that is later */
        const size_t middle = low + (high - low) / 2;
        if (moments[middle] <= moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? moments[low - 1] : -INFINITY;
}

/* Calls of one operation and size are served in their order. Both lists are by operation, size and start; `ends` are
 * the n moments when a collective was done, rising. A collective without a call was called before the profile began. */
static void join_calls(struct rank_collective *collectives, size_t n, const struct call *calls, size_t n_calls,
                       const double *ends) {
    for (size_t i = 0, k = 0; i < n && k < n_calls;) {
        struct rank_collective *c = &collectives[i];
        const int order = compare_sizes(calls[k].operation, calls[k].elements, c->operation, c->elements);
        if (order < 0) {
            k++;
        } else if (order > 0 || calls[k].start > c->start) {
            i++;
        } else {
            c->start = fmax(calls[k].start, latest_until(ends, n, c->start));
            i++;
            k++;
        }
    }
}

static enum status start_with_calls(struct reading *r, struct error *err) {
    struct rank_trace *trace = &r->trace;
    const size_t n = trace->n_collectives;
    double *ends = calloc(n + 1, sizeof *ends);
    if (!ends)
        return error_no_memory(err);
    for (size_t i = 0; i < n; i++)
        ends[i] = trace->collectives[i].end;
    numbers_sort(n, ends);
    if (n && r->n_calls && !trace->on_device) {
        qsort(r->calls, r->n_calls, sizeof *r->calls, compare_calls);
        qsort(trace->collectives, n, sizeof *trace->collectives, compare_by_size);
        join_calls(trace->collectives, n, r->calls, r->n_calls, ends);
    }
    free(ends);
    return ST_OK;
}

/* Once all events are there. */
static enum status complete(struct reading *r, struct error *err) {
    struct rank_trace *trace = &r->trace;
    if (!(r->last > r->first))
        return error_at(err, ST_INVALID, trace->file, "no event of a training iteration is in it");
    enum status st = take_steps(r, err);
    if (!st)
        st = start_with_calls(r, err);
    if (st)
        return st;
    if (!trace->on_device) {
        trace->compute = r->processor;
        r->processor = (struct spans){0};
    }
    spans_join(&trace->compute);
    if (trace->n_collectives)
        qsort(trace->collectives, trace->n_collectives, sizeof *trace->collectives, compare_collectives);
    return ST_OK;
}

enum status rank_trace_read(const struct source *source, struct text_set *texts, struct rank_trace *out,
                            struct error *err) {
    struct reading r = {
        .trace = {.file = source->name, .rank = TRACE_NO_NUMBER}, .texts = texts, .first = INFINITY, .last = -INFINITY};
    enum status st = trace_stream(source, visit, &r, err);
    if (!st)
        st = complete(&r, err);
    if (st)
        rank_trace_release(&r.trace);
    else
        *out = r.trace;
    spans_release(&r.processor);
    free(r.calls);
    for (int i = 0; i < 3; i++)
        free(r.steps[i]);
    return st;
}

double rank_collective_moves(const struct rank_collective *c) {
    return isnan(c->ready) ? c->start : fmin(fmax(c->ready, c->start), c->end);
}

void rank_trace_release(struct rank_trace *trace) {
    spans_release(&trace->compute);
    free(trace->steps);
    free(trace->collectives);
    work_give(trace->counted_bytes);
    *trace = (struct rank_trace){0};
}
