/* A PyTorch profiler's trace (export_chrome_trace, or a TensorBoard handler's file): operators of the forward pass,
 * steps of autograd, and the moment when each gradient was accumulated, which is when it is ready.
 *
 * The profiler's step() marks where iterations begin and end. A trace without marks is cut after each step of the
 * optimizer. A trace without either is one iteration.
 *
 * The forward pass is made of the outermost operators before the first step of autograd, on the thread that ran them,
 * if autograd numbered them. (Early versions round moments, so that small inner operators may seem to follow their
 * outer ones.) The backward pass is made of the steps of autograd in the order in which they ended. On a
 * processor an operator ends when its event does and takes the time since the operator before it ended, so what runs
 * between two operators counts for the second. Zeroing gradients, loading data and what else follows the last gradient
 * are left out, but for the optimizer's steps, which are the model's "update_us". Where the trace has kernels of a
 * device, an operator or such a step takes the time for which the kernels that it launched kept the device busy. Times
 * are medians over the iterations that did the same as the last one.
 *
 * A trace has no names of parameters, and has shapes only with record_shapes=True, as the input of AccumulateGrad. So
 * the forward operator that reads a parameter is found by numbers: the parameter's gradient follows the step of
 * autograd that made it, and this step has the sequence number of the forward operator that it differentiates. The file
 * may be of any size: of each event a few numbers are kept. O(n log n) in the events.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/statistics.h"
#include "interop/import/model_draft.h"
#include "interop/import/model_kinds.h"
#include "interop/import/trace_events.h"

/* An operator of an iteration. */
struct mark {
    const char *name;
    struct trace_event *event;
    double end, time_us; /* end: by the processor's clock */
};

struct pass {
    struct mark *marks; /* by their end; forward ones first */
    size_t n, n_forward, n_gradients;
    double start;
    bool several; /* backward passes, with forward operators between them */
};

/* A step of the optimizer. */
struct update {
    const struct trace_event *event;
    double time_us;
};

struct gradient {
    size_t made, read; /* marks */
    const char *name;
    struct shape shape;
    enum dtype dtype;
};

struct import {
    const struct source *source;
    struct arena *arena;
    struct trace trace;
    struct pass *passes;
    size_t n_passes, n_same; /* n_same: those that did the same as the last one */
    const struct pass *last;
    struct update *updates; /* by start */
    size_t n_updates;
    double update_us;           /* of an iteration */
    bool device;                /* there are kernels */
    struct gradient *gradients; /* as they become ready */
    size_t n_undefined;         /* gradients that autograd handed on without a tensor */
};

/* The precision of a double near 10^15 us, which is where moments of a trace are. */
static const double SLACK_US = 0.5;

bool torch_trace_is(const struct source *source) {
    const char *text = source_behind_mark(source).text;
    const char first = text[strspn(text, " \t\r\n")];
    return (first == '{' && strstr(text, "\"traceEvents\"")) ||
           (first == '[' && strstr(text, "\"ph\"") && strstr(text, "\"ts\""));
}

/* ---- iterations ---- */

/* The first event that began at `start` or later. */
static size_t first_from(const struct trace *trace, double start) {
    size_t low = 0, high = trace->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (trace->events[middle].start < start)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_backward(const struct trace_event *event) {
    return event->kind == TRACE_BACKWARD || event->kind == TRACE_GRADIENT;
}

/* Did the event begin after the one that ended at `before`? */
static bool follows(const struct trace_event *event, double before) {
    return event->start >= before || (event->start > before - SLACK_US && event->end > before + SLACK_US);
}

static void add_mark(struct pass *pass, struct trace_event *event, double *before) {
    const char *name = strstr(event->name, ": ");
    pass->marks[pass->n++] = (struct mark){.name = is_backward(event) && name ? name + 2 : event->name,
                                           .event = event,
                                           .end = fmax(event->end, *before),
                                           .time_us = fmax(event->end - *before, 0)};
    pass->n_gradients += event->kind == TRACE_GRADIENT;
    *before = fmax(event->end, *before);
}

/* The outermost numbered operators of a thread, up to the first step of autograd; *at is then its place. */
static void add_forward(const struct trace *trace, int64_t thread, double end, struct pass *pass, size_t *at,
                        double *before) {
    double aside = -INFINITY;
    for (; *at < trace->n && trace->events[*at].start < end && !is_backward(&trace->events[*at]); ++*at) {
        struct trace_event *event = &trace->events[*at];
        if (event->thread != thread)
            continue;
        if (event->kind == TRACE_ASIDE || event->kind == TRACE_UPDATE) {
            aside = fmax(aside, event->end);
            *before = fmax(*before, event->end);
        } else if (event->kind == TRACE_LAUNCH && event->start < aside) {
            event->correlation = TRACE_NO_NUMBER;
        } else if (event->kind == TRACE_OPERATOR && event->sequence != TRACE_NO_NUMBER && event->start >= aside &&
                   (!pass->n || follows(event, *before))) {
            if (!pass->n)
                pass->start = *before = event->start;
            add_mark(pass, event, before);
        }
    }
    pass->n_forward = pass->n;
}

static int compare_ends(const void *a, const void *b) {
    const struct mark *x = a, *y = b;
    if (x->event->end != y->event->end)
        return x->event->end < y->event->end ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

/* Is there a forward operator between two steps of autograd, from the first step on? */
static bool has_several(const struct trace *trace, int64_t thread, double end, size_t at) {
    double until = -INFINITY;
    bool again = false;
    for (; at < trace->n && trace->events[at].start < end; at++) {
        const struct trace_event *event = &trace->events[at];
        if (is_backward(event) && again)
            return true;
        if (is_backward(event))
            until = fmax(until, event->end);
        else if (event->kind == TRACE_OPERATOR && event->thread == thread && event->sequence != TRACE_NO_NUMBER)
            again = again || event->start > until + 2 * SLACK_US;
    }
    return false;
}

static void add_backward(const struct trace *trace, double end, size_t at, struct pass *pass, double before) {
    if (at < trace->n && !pass->n)
        pass->start = before = trace->events[at].start;
    for (; at < trace->n && trace->events[at].start < end; at++)
        if (is_backward(&trace->events[at]))
            pass->marks[pass->n++].event = &trace->events[at];
    const size_t n = pass->n;
    if (n > pass->n_forward)
        qsort(pass->marks + pass->n_forward, n - pass->n_forward, sizeof *pass->marks, compare_ends);
    pass->n = pass->n_forward;
    while (pass->n < n)
        add_mark(pass, pass->marks[pass->n].event, &before);
}

/* One iteration; dropped when no gradient became ready in it. */
static enum status read_pass(struct import *import, int64_t thread, double start, double end, struct error *err) {
    const struct trace *trace = &import->trace;
    struct pass *pass = &import->passes[import->n_passes];
    size_t at = first_from(trace, start);
    double before = start;
    *pass = (struct pass){.marks = arena_alloc(import->arena, first_from(trace, end) - at, sizeof *pass->marks)};
    if (!pass->marks)
        return error_no_memory(err);
    add_forward(trace, thread, end, pass, &at, &before);
    pass->several = has_several(trace, thread, end, at);
    add_backward(trace, end, at, pass, before);
    import->n_passes += pass->n_gradients > 0;
    return ST_OK;
}

static const struct trace_event *first_of(const struct trace *trace, enum trace_kind kind) {
    for (size_t i = 0; i < trace->n; i++)
        if (trace->events[i].kind == kind)
            return &trace->events[i];
    return NULL;
}

static size_t count_of(const struct trace *trace, enum trace_kind kind) {
    size_t n = 0;
    for (size_t i = 0; i < trace->n; i++)
        n += trace->events[i].kind == kind;
    return n;
}

static enum status read_passes(struct import *import, struct error *err) {
    const struct trace *trace = &import->trace;
    const bool steps = first_of(trace, TRACE_STEP);
    const enum trace_kind kind = steps ? TRACE_STEP : TRACE_UPDATE;
    const struct trace_event *first = first_of(trace, kind);
    const size_t n = count_of(trace, kind);
    double from = -INFINITY;
    enum status st = ST_OK;
    import->passes = arena_alloc(import->arena, n + 1, sizeof *import->passes);
    if (!import->passes)
        return error_no_memory(err);
    first = first ? first : first_of(trace, TRACE_OPERATOR);
    for (size_t i = 0; i < trace->n && n && !st; i++) {
        const struct trace_event *event = &trace->events[i];
        if (event->kind != kind || event->end <= from)
            continue;
        st = read_pass(import, first->thread, steps ? fmax(event->start, from) : from, event->end, err);
        from = event->end;
    }
    if (!n && first)
        st = read_pass(import, first->thread, from, INFINITY, err);
    if (!st && !import->n_passes)
        st = error_at(err, ST_INVALID, import->source->name,
                      "byte 0: no gradient becomes ready in this trace; profile training iterations, backward "
                      "pass and all");
    return st;
}

/* ---- the optimizer ---- */

/* One may be within another, as ZeroRedundancyOptimizer's. */
static enum status list_updates(struct import *import, struct error *err) {
    const struct trace *trace = &import->trace;
    double until = -INFINITY;
    import->updates = arena_alloc(import->arena, count_of(trace, TRACE_UPDATE), sizeof *import->updates);
    if (!import->updates)
        return error_no_memory(err);
    for (size_t i = 0; i < trace->n; i++) {
        const struct trace_event *event = &trace->events[i];
        if (event->kind != TRACE_UPDATE || event->start < until)
            continue;
        import->updates[import->n_updates++] = (struct update){event, event->end - event->start};
        until = event->end;
    }
    return ST_OK;
}

/* The last one that began by this moment; NULL: none. */
static struct update *update_before(const struct import *import, double moment) {
    size_t low = 0, high = import->n_updates;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (import->updates[middle].event->start <= moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &import->updates[low - 1] : NULL;
}

/* Of those that began after this pass did and before the next one. */
static double updates_us(const struct import *import, const struct pass *pass) {
    const bool last = pass + 1 == import->passes + import->n_passes;
    const struct update *update = update_before(import, last ? INFINITY : pass[1].start);
    double us = 0;
    for (; update && update->event->start >= pass->start; update = update > import->updates ? update - 1 : NULL)
        us += update->time_us;
    return us;
}

/* ---- the device ---- */

static int compare_correlations(const void *a, const void *b) {
    const struct trace_event *const *x = a, *const *y = b;
    if ((*x)->correlation != (*y)->correlation)
        return (*x)->correlation < (*y)->correlation ? -1 : 1;
    return (*x > *y) - (*x < *y);
}

static int compare_keys(const void *a, const void *b) {
    const struct trace_event *const *x = a, *const *y = b;
    return ((*x)->correlation > (*y)->correlation) - ((*x)->correlation < (*y)->correlation);
}

/* The operator within whose time something was launched; NULL: outside of all iterations. */
static struct mark *mark_at(const struct import *import, double moment) {
    size_t low = 0, high = import->n_passes;
    while (low < high) { /* the first iteration that begins later */
        const size_t middle = low + (high - low) / 2;
        if (import->passes[middle].start <= moment)
            low = middle + 1;
        else
            high = middle;
    }
    const struct pass *pass = low ? &import->passes[low - 1] : NULL;
    if (!pass || moment > pass->marks[pass->n - 1].end)
        return NULL;
    low = 0;
    high = pass->n - 1;
    while (low < high) { /* the first operator that ends no earlier */
        const size_t middle = low + (high - low) / 2;
        if (pass->marks[middle].end < moment)
            low = middle + 1;
        else
            high = middle;
    }
    return &pass->marks[low];
}

static size_t list_launches(const struct trace *trace, struct trace_event **out) {
    size_t n = 0;
    for (size_t i = 0; i < trace->n; i++)
        if (trace->events[i].kind == TRACE_LAUNCH && trace->events[i].correlation != TRACE_NO_NUMBER)
            out[n++] = &trace->events[i];
    qsort(out, n, sizeof *out, compare_correlations);
    return n;
}

static double *time_of_launch(const struct import *import, double moment) {
    struct mark *mark = mark_at(import, moment);
    struct update *update = mark ? NULL : update_before(import, moment);
    return mark ? &mark->time_us : update && moment <= update->event->end ? &update->time_us : NULL;
}

/* Each operator's time becomes that for which its kernels, and none before them, kept the device busy. */
static enum status use_kernels(struct import *import, struct error *err) {
    const struct trace *trace = &import->trace;
    double busy_until = -INFINITY;
    struct trace_event **launches = arena_alloc(import->arena, trace->n, sizeof *launches);
    if (!launches)
        return error_no_memory(err);
    const size_t n = list_launches(trace, launches);
    for (size_t p = 0; p < import->n_passes; p++)
        for (size_t k = 0; k < import->passes[p].n; k++)
            import->passes[p].marks[k].time_us = 0;
    for (size_t i = 0; i < import->n_updates; i++)
        import->updates[i].time_us = 0;
    for (size_t i = 0; i < trace->n; i++) {
        const struct trace_event *kernel = &trace->events[i];
        if (kernel->kind != TRACE_KERNEL)
            continue;
        struct trace_event **launch = n ? bsearch(&kernel, launches, n, sizeof *launches, compare_keys) : NULL;
        double *time_us = launch ? time_of_launch(import, (*launch)->start) : NULL;
        if (time_us)
            *time_us += fmax(kernel->end - fmax(kernel->start, busy_until), 0);
        busy_until = fmax(busy_until, kernel->end);
    }
    return ST_OK;
}

/* ---- what the iterations have in common ---- */

static bool same_marks(const struct pass *a, const struct pass *b) {
    if (a->n != b->n || a->n_forward != b->n_forward)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->marks[i].name, b->marks[i].name) != 0)
            return false;
    return true;
}

static double to_nanosecond(double us) {
    return round(us * 1e3) / 1e3;
}

/* The marks of the last iteration get the medians of all that are like it, and so does the update. */
static enum status take_medians(struct import *import, struct error *err) {
    struct pass *last = &import->passes[import->n_passes - 1];
    double *times = arena_alloc(import->arena, import->n_passes, sizeof *times);
    const struct pass **same = arena_alloc(import->arena, import->n_passes, sizeof *same);
    if (!times || !same)
        return error_no_memory(err);
    for (size_t p = 0; p < import->n_passes; p++)
        if (same_marks(&import->passes[p], last))
            same[import->n_same++] = &import->passes[p];
    const size_t n = import->n_same;
    for (size_t i = 0; i < last->n; i++) {
        for (size_t p = 0; p < n; p++)
            times[p] = same[p]->marks[i].time_us;
        last->marks[i].time_us = to_nanosecond(median_of(n, times));
    }
    size_t n_updated = 0; /* where gradients accumulate not every iteration has one */
    for (size_t p = 0; p < n; p++) {
        times[n_updated] = updates_us(import, same[p]);
        n_updated += times[n_updated] > 0;
    }
    import->update_us = n_updated ? to_nanosecond(median_of(n_updated, times)) : 0;
    import->last = last;
    return ST_OK;
}

/* ---- parameters ---- */

struct numbered {
    int64_t sequence;
    double start;
};

static int compare_numbered(const void *a, const void *b) {
    const struct numbered *x = a, *y = b;
    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    return (x->start > y->start) - (x->start < y->start);
}

/* Numbered operators of the forward pass, by number and start. */
static size_t list_numbered(const struct import *import, struct numbered *out) {
    const struct trace *trace = &import->trace;
    const struct pass *pass = import->last;
    const double end = pass->marks[pass->n_forward].event->start;
    size_t n = 0;
    for (size_t i = first_from(trace, pass->start); i < trace->n && trace->events[i].start < end; i++) {
        const struct trace_event *event = &trace->events[i];
        if (event->kind == TRACE_OPERATOR && event->sequence != TRACE_NO_NUMBER)
            out[n++] = (struct numbered){event->sequence, event->start};
    }
    qsort(out, n, sizeof *out, compare_numbered);
    return n;
}

/* Find the forward operator that took this number: the one with the last event that bears it. Earlier events bear it
 * because nobody had taken it yet. */
static bool find_read(const struct pass *pass, const struct numbered *numbered, size_t n, int64_t sequence,
                      size_t *out) {
    size_t low = 0, high = n, mark = 0;
    while (low < high) { /* low ends behind the last event with that number */
        const size_t middle = low + (high - low) / 2;
        if (numbered[middle].sequence <= sequence)
            low = middle + 1;
        else
            high = middle;
    }
    if (sequence == TRACE_NO_NUMBER || !low || numbered[low - 1].sequence != sequence)
        return false;
    high = pass->n_forward;
    while (mark < high) {
        const size_t middle = mark + (high - mark) / 2;
        if (pass->marks[middle].event->start <= numbered[low - 1].start)
            mark = middle + 1;
        else
            high = middle;
    }
    *out = mark - 1;
    return mark > 0;
}

/* What became of the step's gradient, from the first event inside it that recorded an input. */
static enum status find_shape(const struct import *import, const struct trace_event *step, struct gradient *out,
                              enum trace_input *found, struct error *err) {
    const struct trace *trace = &import->trace;
    const struct trace_event *end = trace->events + trace->n;
    enum status st = ST_OK;
    *found = TRACE_INPUT_NONE;
    for (const struct trace_event *e = step; e < end && e->start <= step->end && !*found && !st; e++)
        if (e->thread == step->thread)
            st = trace_input(trace, e, &out->shape, &out->dtype, found, err);
    if (!st && !*found)
        return error_at(err, ST_INVALID, import->source->name,
                        "/traceEvents/%zu: the trace has no shapes; profile with record_shapes=True, with a "
                        "PyTorch that has Kineto, or import by the module in interop/pytorch",
                        step->place);
    return st;
}

/* The gradients of the last iteration, without undefined ones: autograd then accumulates nothing. */
static enum status list_gradients(struct import *import, struct error *err) {
    struct pass *pass = &import->passes[import->n_passes - 1];
    size_t n = 0;
    import->gradients = arena_alloc(import->arena, pass->n_gradients, sizeof *import->gradients);
    if (!import->gradients)
        return error_no_memory(err);
    for (size_t i = pass->n_forward; i < pass->n; i++) {
        enum trace_input found;
        if (pass->marks[i].event->kind != TRACE_GRADIENT)
            continue;
        import->gradients[n].made = i;
        enum status st = find_shape(import, pass->marks[i].event, &import->gradients[n], &found, err);
        if (st)
            return st;
        n += found == TRACE_INPUT_TENSOR;
    }
    import->n_undefined = pass->n_gradients - n;
    pass->n_gradients = n;
    return n ? ST_OK
             : error_at(err, ST_INVALID, import->source->name,
                        "byte 0: all gradients of the last iteration are undefined: nothing is trained in it");
}

/* Find for each gradient the operator that makes it and the one that reads its parameter. Where no sequence number
 * leads to the reader, it is the reader of the gradient before. */
static enum status find_gradients(struct import *import, struct error *err) {
    const struct pass *pass = import->last;
    const struct trace_event *from = NULL; /* the step of autograd that made the gradient */
    struct numbered *numbered = arena_alloc(import->arena, import->trace.n, sizeof *numbered);
    size_t n = 0, read = pass->n_forward ? pass->n_forward - 1 : 0;
    if (!numbered)
        return error_no_memory(err);
    const size_t n_numbered = list_numbered(import, numbered);
    for (size_t i = pass->n_forward; i < pass->n && n < pass->n_gradients; i++) {
        struct gradient *gradient = &import->gradients[n];
        if (pass->marks[i].event->kind != TRACE_GRADIENT)
            from = pass->marks[i].event;
        if (gradient->made != i)
            continue;
        if (from)
            find_read(pass, numbered, n_numbered, from->sequence, &read);
        gradient->read = read;
        gradient->name = arena_printf(import->arena, "param%zu", pass->n_gradients - ++n);
        if (!gradient->name)
            return error_no_memory(err);
    }
    return pass->n_forward ? ST_OK
                           : error_at(err, ST_INVALID, import->source->name,
                                      "byte 0: no operator before the backward pass bears a \"Sequence number\"");
}

/* ---- the description ---- */

static void draft_variables(const struct import *import, struct model_draft *draft) {
    for (size_t g = import->last->n_gradients; g--;)
        model_draft_variable(draft, import->gradients[g].name, &import->gradients[g].shape, import->gradients[g].dtype,
                             0);
}

static int compare_reads(const void *a, const void *b) {
    const struct gradient *x = a, *y = b;
    return x->read != y->read ? (x->read > y->read) - (x->read < y->read) : (x->made < y->made) - (x->made > y->made);
}

/* One operator after the one before; those without time and parameters are left out. */
static void draft_mark(const struct import *import, struct model_draft *draft, size_t i, const char **before, size_t n,
                       const char *const *variables) {
    const struct mark *mark = &import->last->marks[i];
    if (mark->time_us <= 0 && !n)
        return;
    const char *name = arena_printf(draft->arena, "%s #%zu", mark->name, i + 1);
    draft->ok = draft->ok && name;
    if (draft->ok)
        model_draft_operator(draft, name, i >= import->last->n_forward, mark->time_us, *before != NULL, before, n,
                             variables);
    *before = name;
}

static void draft_forward(const struct import *import, struct model_draft *draft) {
    const struct pass *pass = import->last;
    const size_t n_gradients = pass->n_gradients;
    struct gradient *reads = arena_alloc(import->arena, n_gradients, sizeof *reads);
    const char **names = arena_alloc(import->arena, n_gradients, sizeof *names), *before = NULL;
    draft->ok = draft->ok && reads && names;
    if (!draft->ok)
        return;
    memcpy(reads, import->gradients, n_gradients * sizeof *reads);
    qsort(reads, n_gradients, sizeof *reads, compare_reads);
    for (size_t i = 0, r = 0; i < pass->n_forward && draft->ok; i++) {
        size_t n = 0;
        while (r < n_gradients && reads[r].read == i)
            names[n++] = reads[r++].name;
        draft_mark(import, draft, i, &before, n, names);
    }
}

static void draft_backward(const struct import *import, struct model_draft *draft) {
    const struct pass *pass = import->last;
    const char *before = NULL;
    for (size_t i = pass->n_forward, g = 0; i < pass->n && draft->ok; i++) {
        const bool makes = g < pass->n_gradients && import->gradients[g].made == i;
        draft_mark(import, draft, i, &before, makes, makes ? &import->gradients[g].name : NULL);
        g += makes;
    }
}

static bool add_notes(const struct import *import, const struct import_settings *settings, struct notes *notes) {
    const char *file = import->source->name;
    const size_t collectives = count_of(&import->trace, TRACE_COLLECTIVE);
    bool ok = notes_add(notes, "%s: medians of %zu iterations%s; %s", file, import->n_same,
                        import->n_same < import->n_passes ? ", others did something else" : "",
                        import->device ? "times for which kernels kept the device busy, without its pauses"
                                       : "times of the processor, what runs between operators counts to the next");
    ok = ok &&
         notes_add(notes, "%s: a trace has no names of parameters: param0 is the one whose gradient comes last", file);
    if (import->n_undefined)
        ok =
            ok && notes_add(notes, "%s: %zu gradients are undefined: their parameters are not trained and are left out",
                            file, import->n_undefined);
    if (import->last->several)
        ok = ok && notes_add(notes,
                             "%s: several backward passes in an iteration: a parameter counts once for each; profile "
                             "without accumulation of gradients, and mark iterations by the profiler's step()",
                             file);
    if (collectives)
        ok = ok && notes_add(notes, "%s: %zu collectives in it: profile one device alone, or times contain waiting",
                             file, collectives);
    if (settings->batch <= 0)
        ok = ok && notes_add(notes, "%s: a trace does not tell the batch size; give --batch", file);
    return ok;
}

static enum status read_import(struct import *import, struct error *err) {
    enum status st = trace_read(import->source, import->arena, &import->trace, err);
    if (!st)
        st = read_passes(import, err);
    if (!st)
        st = list_updates(import, err);
    import->device = !st && first_of(&import->trace, TRACE_KERNEL);
    if (!st && import->device)
        st = use_kernels(import, err);
    if (!st)
        st = take_medians(import, err);
    if (!st)
        st = list_gradients(import, err);
    return st ? st : find_gradients(import, err);
}

enum status torch_trace_read(const struct source *source, const struct import_settings *settings, struct notes *notes,
                             cJSON **out, struct error *err) {
    struct import import = {.source = source, .arena = notes->arena};
    struct model_draft draft;
    const char *name = import_name(source, settings, false, notes->arena);
    if (!name)
        return error_no_memory(err);
    enum status st = read_import(&import, err);
    if (!st && !add_notes(&import, settings, notes))
        st = error_no_memory(err);
    if (!st) {
        model_draft_init(&draft, notes->arena, name, settings->batch, DRAFT_OPERATORS);
        draft_variables(&import, &draft);
        draft_forward(&import, &draft);
        draft_backward(&import, &draft);
        draft.ok =
            draft.ok && (import.update_us <= 0 || cJSON_AddNumberToObject(draft.root, "update_us", import.update_us));
        st = model_draft_finish(&draft, source, out, err);
    }
    trace_release(&import.trace);
    return st;
}
