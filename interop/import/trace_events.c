/* Categories and members have had several names: "Operator" and "cpu_op", "Kernel" and "kernel", "Input dims" and
 * "Input Dims". Unknown events are skipped, because profilers add events of their own. Source: traces of
 * PyTorch 1.8 to 2.x; torch/csrc/profiler and libkineto's output_json. O(n log n). */
#include "interop/import/trace_events.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static const char EVALUATE[] = "autograd::engine::evaluate_function: ";
static const double MAX_US = 1e18;

static bool begins(const char *text, const char *with) {
    return !strncmp(text, with, strlen(with));
}

/* `word` without regard to case is one of the words in `list`. */
static bool is_one_of(const char *word, const char *const list[]) {
    while (*list && strcasecmp(word, *list) != 0)
        list++;
    return *list;
}

/* The kind of an event of the processor: an operator, or a label around operators. */
static bool kind_of_label(const char *name, const char *category, enum trace_kind *out) {
    static const char *const operators[] = {"cpu_op", "operator", "", NULL};
    if (begins(name, EVALUATE))
        *out = strstr(name, "AccumulateGrad") ? TRACE_GRADIENT : TRACE_BACKWARD;
    else if (begins(name, "ProfilerStep#"))
        *out = TRACE_STEP;
    else if (begins(name, "Optimizer.step"))
        *out = TRACE_UPDATE;
    else if (begins(name, "Optimizer.") || begins(name, "enumerate(DataLoader)"))
        *out = TRACE_ASIDE;
    else if (begins(name, "gloo:") || begins(name, "mpi:"))
        *out = TRACE_COLLECTIVE;
    else if (is_one_of(category, operators))
        *out = TRACE_OPERATOR;
    else
        return false;
    return true;
}

/* What an event is from its name and category; false: nothing that matters here. */
static bool kind_of(const char *name, const char *category, enum trace_kind *out) {
    static const char *const device[] = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset", NULL};
    static const char *const launches[] = {"cuda_runtime", "cuda_driver", "runtime", "driver", "hip_runtime", NULL};
    static const char *const labels[] = {"user_annotation", "cpu_op", "operator", "", NULL};
    const bool kernel = is_one_of(category, device);
    if (!kernel && !is_one_of(category, launches))
        return is_one_of(category, labels) && kind_of_label(name, category, out);
    *out = !kernel ? TRACE_LAUNCH : strstr(name, "nccl") ? TRACE_COLLECTIVE : TRACE_KERNEL;
    return true;
}

/* A whole number, as a number or, as some versions write it, text; TRACE_NO_NUMBER otherwise. */
static int64_t number_of(const struct json_at *at, const char *key) {
    struct json_at member;
    uint64_t x;
    if (!json_has(at, key, &member))
        return TRACE_NO_NUMBER;
    if (cJSON_IsNumber(member.node) && member.node->valuedouble >= 0 && member.node->valuedouble < 9e18)
        return (int64_t)member.node->valuedouble;
    return cJSON_IsString(member.node) && word_integer(member.node->valuestring, &x) && x <= INT64_MAX
               ? (int64_t)x
               : TRACE_NO_NUMBER;
}

static const char *text_of(const struct json_at *at, const char *key) {
    struct json_at member;
    return json_has(at, key, &member) && cJSON_IsString(member.node) ? member.node->valuestring : "";
}

/* *kept tells whether the event is one of those that matter. */
static enum status read_event(const struct json_at *at, struct trace_event *out, bool *kept, struct error *err) {
    struct json_at args;
    double start, length;
    *kept = false;
    if (!cJSON_IsObject(at->node))
        return json_fail(at, err, "an event is an object");
    *out = (struct trace_event){.place = at->index, .node = at->node, .name = text_of(at, "name")};
    if (strcmp(text_of(at, "ph"), "X") != 0 || !kind_of(out->name, text_of(at, "cat"), &out->kind))
        return ST_OK;
    enum status st = json_get_number(at, "ts", JSON_REQUIRED, -MAX_US, MAX_US, &start, err);
    if (!st)
        st = json_get_number(at, "dur", JSON_REQUIRED, 0, MAX_US, &length, err);
    if (st)
        return st;
    out->start = start;
    out->end = start + length;
    out->thread = number_of(at, "tid");
    const bool has = json_has(at, "args", &args) && cJSON_IsObject(args.node);
    out->sequence = has ? number_of(&args, "Sequence number") : TRACE_NO_NUMBER;
    out->correlation = has ? number_of(&args, "correlation") : TRACE_NO_NUMBER;
    *kept = true;
    return ST_OK;
}

static int compare_events(const void *a, const void *b) {
    const struct trace_event *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end != y->end ? (x->end < y->end) - (x->end > y->end) : (x->place > y->place) - (x->place < y->place);
}

enum status trace_read(const cJSON *json, const char *name, struct arena *arena, struct trace *out, struct error *err) {
    const struct json_at root = json_root(json, name);
    struct json_at list = root;
    struct trace trace = {.name = name, .in_object = cJSON_IsObject(json)};
    enum status st = trace.in_object ? json_member(&root, "traceEvents", &list, err) : ST_OK;
    if (!st && !cJSON_IsArray(list.node))
        st = json_fail(&list, err, "the events of a trace are a list");
    if (st)
        return st;
    trace.events = arena_alloc(arena, (size_t)cJSON_GetArraySize(list.node), sizeof *trace.events);
    if (!trace.events)
        return error_no_memory(err);
    for (struct json_at e = json_first(&list); e.node; e = json_next(&e)) {
        bool kept;
        if ((st = read_event(&e, &trace.events[trace.n], &kept, err)))
            return st;
        trace.n += kept;
    }
    qsort(trace.events, trace.n, sizeof *trace.events, compare_events);
    *out = trace;
    return ST_OK;
}

/* ---- shapes ---- */

/* A tensor has a type, also one without axes; where no types are recorded, everything is taken for one. */
static bool is_undefined(const struct json_at *args, const struct json_at *sizes) {
    struct json_at list;
    if (cJSON_GetArraySize(sizes->node) || !json_has(args, "Input type", &list) || !cJSON_IsArray(list.node))
        return false;
    const struct json_at first = json_first(&list);
    return first.node && cJSON_IsString(first.node) && !*first.node->valuestring;
}

static enum status read_dtype(const struct json_at *args, enum dtype *out, struct error *err) {
    static const struct {
        const char *name;
        enum dtype dtype;
    } types[] = {{"float", DTYPE_f32},          {"double", DTYPE_f64}, {"c10::Half", DTYPE_f16},
                 {"c10::BFloat16", DTYPE_bf16}, {"__half", DTYPE_f16}, {"at::Half", DTYPE_f16},
                 {"at::BFloat16", DTYPE_bf16}};
    struct json_at list;
    *out = DTYPE_f32;
    if (!json_has(args, "Input type", &list) || !cJSON_IsArray(list.node))
        return ST_OK;
    const struct json_at first = json_first(&list);
    if (!first.node || !cJSON_IsString(first.node) || !*first.node->valuestring)
        return ST_OK;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(first.node->valuestring, types[i].name)) {
            *out = types[i].dtype;
            return ST_OK;
        }
    return json_fail(&first, err, "gradients of type \"%.60s\" are not known here", first.node->valuestring);
}

static enum status read_shape(const struct json_at *sizes, struct shape *out, struct error *err) {
    enum status st = ST_OK;
    *out = (struct shape){0};
    for (struct json_at e = json_first(sizes); e.node && !st; e = json_next(&e)) {
        if (out->rank == MODEL_MAX_RANK)
            return json_fail(sizes, err, "more than %d axes", MODEL_MAX_RANK);
        st = json_integer_at(&e, 1, UINT64_C(1) << 40, &out->sizes[out->rank++], err);
    }
    return st;
}

enum status trace_input(const struct trace *trace, const struct trace_event *event, struct shape *shape,
                        enum dtype *dtype, enum trace_input *out, struct error *err) {
    const struct json_at root = json_root(NULL, trace->name), list = {NULL, &root, "traceEvents", 0};
    const struct json_at at = {event->node, trace->in_object ? &list : &root, NULL, event->place};
    struct json_at args, dims;
    *out = TRACE_INPUT_NONE;
    if (!json_has(&at, "args", &args) || !cJSON_IsObject(args.node) ||
        !(json_has(&args, "Input Dims", &dims) || json_has(&args, "Input dims", &dims)) || !cJSON_IsArray(dims.node))
        return ST_OK;
    const struct json_at first = json_first(&dims);
    if (!first.node || !cJSON_IsArray(first.node))
        return ST_OK;
    *out = is_undefined(&args, &first) ? TRACE_INPUT_UNDEFINED : TRACE_INPUT_TENSOR;
    enum status st = read_shape(&first, shape, err);
    return st ? st : read_dtype(&args, dtype, err);
}
