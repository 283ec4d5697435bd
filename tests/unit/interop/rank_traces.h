/* Traces of several ranks written by hand, as PyTorch 2.13 writes them on a processor with gloo and on devices with
 * NCCL. Moments are microseconds. */
#ifndef TESTS_UNIT_INTEROP_RANK_TRACES_H
#define TESTS_UNIT_INTEROP_RANK_TRACES_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interop/import/source.h"
#include "tests/support/check.h"

struct rank_text {
    char *text; /* malloc'd */
    size_t n, room, events;
    char name[32];
};

static inline void rank_put(struct rank_text *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline void rank_put(struct rank_text *to, const char *format, ...) {
    va_list args;
    if (to->room - to->n < 4096) {
        to->room = 2 * to->room + 8192;
        to->text = realloc(to->text, to->room);
        assert_non_null(to->text);
    }
    va_start(args, format);
    const int n = vsnprintf(to->text + to->n, to->room - to->n, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < to->room - to->n);
    to->n += (size_t)n;
}

/* The beginning, of rank `rank` of `ranks`, which runs on `host` ("": not said). */
static inline void rank_begin_on(struct rank_text *to, const char *host, int rank, int ranks) {
    char member[80] = "";
    to->n = to->events = 0;
    if (*host)
        snprintf(member, sizeof member, "  \"host_name\": \"%s\",\n", host);
    snprintf(to->name, sizeof to->name, "rank%d.json", rank);
    rank_put(to,
             "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [],\n  \"record_shapes\": 1,\n  \"distributedInfo\": "
             "{\"backend\": \"gloo\", \"rank\": %d, \"world_size\": %d, \"pg_count\": 1, \"pg_config\": [{\"pg_name\": "
             "\"0\", \"ranks\": [0, 1]}]},\n%s  \"traceEvents\": [\n",
             rank, ranks, member);
}

static inline void rank_begin(struct rank_text *to, int rank, int ranks) {
    rank_begin_on(to, "", rank, ranks);
}

/* `args` are members of the event's arguments, or "". */
static inline void rank_event(struct rank_text *to, const char *category, const char *name, int thread, double start,
                              double end, const char *args) {
    rank_put(to,
             "%s  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": 9, \"tid\": %d,\n    \"ts\": %.3f, "
             "\"dur\": %.3f,\n    \"args\": {%s}\n  }",
             to->events++ ? ",\n" : "", category, name, thread, start, end - start, args);
}

static inline void rank_step(struct rank_text *to, bool device, int number, double start, double end) {
    char name[40];
    snprintf(name, sizeof name, "ProfilerStep#%d", number);
    rank_event(to, "user_annotation", name, 1, start, end, "");
    if (device)
        rank_event(to, "gpu_user_annotation", name, 7, start, end, "");
}

static inline void rank_gloo(struct rank_text *to, uint64_t floats, double start, double end) {
    char args[200];
    snprintf(args, sizeof args,
             "\"External id\": 7, \"Concrete Inputs\": [\"\"], \"Input type\": [\"float\"], \"Input Strides\": [[1]], "
             "\"Input Dims\": [[%" PRIu64 "]]",
             floats);
    rank_event(to, "user_annotation", "gloo:all_reduce", 3, start, end, args);
}

/* `sequence` below 0: as versions before 2.6 wrote it, without. */
static inline void rank_nccl(struct rank_text *to, const char *group, int ranks, int64_t sequence, uint64_t floats,
                             double start, double end) {
    char args[400], number[40] = "";
    if (sequence >= 0)
        snprintf(number, sizeof number, ", \"Seq\": %" PRId64, sequence);
    snprintf(args, sizeof args,
             "\"stream\": 20, \"Collective name\": \"allreduce\", \"In msg nelems\": %" PRIu64
             ", \"Out msg nelems\": %" PRIu64 ", \"Group size\": %d, \"dtype\": \"Float\", \"Process Group Name\": "
             "\"%s\", \"Process Group Description\": \"default_pg\", \"Process Group Ranks\": \"[0, 1, 2, 3]\"%s",
             floats, floats, ranks, group, number);
    rank_event(to, "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 20, start,
               end, args);
}

static inline struct source rank_end(struct rank_text *to) {
    rank_put(to, "\n  ],\"traceName\": \"%s\" }\n", to->name);
    return (struct source){.name = to->name, .text = to->text, .n = to->n};
}

static inline void rank_free(size_t n, struct rank_text *texts) {
    for (size_t r = 0; r < n; r++) {
        free(texts[r].text);
        texts[r] = (struct rank_text){0};
    }
}

#endif
