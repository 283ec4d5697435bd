/* Categories and members have had several names: "Operator" and "cpu_op", "Kernel" and "kernel", "Input dims" and
 * "Input Dims". Unknown events are skipped, because profilers add events of their own. Source: traces of
 * PyTorch 1.8 to 2.x; torch/csrc/profiler and libkineto's output_json. O(n log n). */
#include "interop/import/trace_events.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "interop/import/text_set.h"
#include "interop/import/trace_stream.h"

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

/* The kind of an event of the processor: an operator, or a label around operators. Early versions write no category, so
 * labels are known by their names. */
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
    else if (is_one_of(category, operators) && strcmp(name, "DistributedDataParallel.forward") != 0)
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
    if (!strcasecmp(category, "gpu_user_annotation") && begins(name, "ProfilerStep#")) {
        *out = TRACE_DEVICE_STEP;
        return true;
    }
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

enum status trace_event_read(const struct json_at *at, struct trace_event *out, bool *kept, struct error *err) {
    struct json_at args;
    double start, length;
    *kept = false;
    if (!cJSON_IsObject(at->node))
        return json_fail(at, err, "an event is an object");
    *out = (struct trace_event){.place = at->index, .name = json_text_of(at, "name")};
    if (strcmp(json_text_of(at, "ph"), "X") != 0 || !kind_of(out->name, json_text_of(at, "cat"), &out->kind))
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

struct reading {
    struct trace trace;
    struct text_set texts;
};

/* The first input's sizes and type, as the event's arguments write them; the type may be missing. NULL where the
 * arguments say nothing, and when memory is out; then *ok is false. */
static const char *input_of(struct text_set *texts, const struct json_at *event, bool *ok) {
    static const char *const keys[] = {"Input Dims", "Input dims", "Input type"};
    struct json_at args, list;
    cJSON *input = NULL;
    if (!json_has(event, "args", &args) || !cJSON_IsObject(args.node))
        return NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && *ok; i++) {
        if (!json_has(&args, keys[i], &list) || !cJSON_IsArray(list.node) || !list.node->child)
            continue;
        input = input ? input : cJSON_CreateObject();
        cJSON *first = cJSON_AddArrayToObject(input, keys[i]);
        *ok = first && cJSON_AddItemToArray(first, cJSON_Duplicate(list.node->child, true));
    }
    char *line = *ok && input ? json_line(input) : NULL;
    const char *kept = line ? text_set_add(texts, line) : NULL;
    *ok = *ok && (kept || !input);
    free(line);
    cJSON_Delete(input);
    return kept;
}

static enum status keep_event(void *context, const char *member, const struct json_at *at, struct error *err) {
    struct reading *r = context;
    struct trace *trace = &r->trace;
    struct trace_event event;
    bool kept = false, ok = true;
    enum status st = member ? ST_OK : trace_event_read(at, &event, &kept, err);
    if (st || !kept)
        return st;
    if (trace->n == TRACE_MAX_EVENTS)
        return error_at(err, ST_TOO_LARGE, trace->name, "more than %d events; profile fewer iterations",
                        TRACE_MAX_EVENTS);
    trace->in_object = at->parent->parent;
    event.input = event.kind == TRACE_OPERATOR || event.kind == TRACE_GRADIENT ? input_of(&r->texts, at, &ok) : NULL;
    event.name = text_set_add(&r->texts, event.name);
    if (!ok || !event.name || !GROW(&trace->events, &trace->room, trace->n + 1))
        return error_no_memory(err);
    trace->events[trace->n++] = event;
    return ST_OK;
}

enum status trace_read(const struct source *source, struct arena *arena, struct trace *out, struct error *err) {
    struct reading r = {.trace = {.name = source->name}, .texts = {.arena = arena}};
    enum status st = trace_stream(source, keep_event, &r, err);
    text_set_release(&r.texts);
    if (!st && r.trace.n)
        qsort(r.trace.events, r.trace.n, sizeof *r.trace.events, compare_events);
    if (st)
        trace_release(&r.trace);
    else
        *out = r.trace;
    return st;
}

void trace_release(struct trace *trace) {
    free(trace->events);
    *trace = (struct trace){0};
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

/* `args` has the first input's sizes and type alone. */
static enum status read_input(const struct json_at *args, struct shape *shape, enum dtype *dtype, enum trace_input *out,
                              struct error *err) {
    struct json_at dims;
    if (!json_has(args, "Input Dims", &dims) && !json_has(args, "Input dims", &dims))
        return ST_OK;
    const struct json_at first = json_first(&dims);
    if (!cJSON_IsArray(first.node))
        return ST_OK;
    *out = is_undefined(args, &first) ? TRACE_INPUT_UNDEFINED : TRACE_INPUT_TENSOR;
    enum status st = read_shape(&first, shape, err);
    return st ? st : read_dtype(args, dtype, err);
}

enum status trace_input(const struct trace *trace, const struct trace_event *event, struct shape *shape,
                        enum dtype *dtype, enum trace_input *out, struct error *err) {
    const struct json_at root = json_root(NULL, trace->name), list = {NULL, &root, "traceEvents", 0};
    const struct json_at at = {NULL, trace->in_object ? &list : &root, NULL, event->place};
    cJSON *input;
    *out = TRACE_INPUT_NONE;
    if (!event->input)
        return ST_OK;
    enum status st = json_parse(event->input, strlen(event->input), trace->name, &input, err);
    if (st)
        return st;
    st = read_input(&(struct json_at){input, &at, "args", 0}, shape, dtype, out, err);
    cJSON_Delete(input);
    return st;
}
