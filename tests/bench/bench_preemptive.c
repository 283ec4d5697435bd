/* How fast PACE's problems are solved: the windows and the exact schedule of 164 messages in a graph of 1,061 operators
 * (the size of PACE's transformer) against a linear program for glpsol, the fusions of a real transformer, and how far
 * balanced fusion is from the best. Medians of repeated runs on one core. argv[1] is a model beside the others.
 *
 * The linear program is the paper's constraints (3), (6), (7) without (8) on the same slotted instance. Its objective
 * (14) has coefficients up to (T N)^T, which no floating-point solver holds; here it is the slots by which x overshoots
 * a makespan C, a kinder one. The matrix is as unimodular, so the optimum is 0 exactly when C can be met: glpsol must
 * say 0 for our makespan and more for one slot less. */
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "strategy/exact/fusion.h"
#include "tests/bench/bench.h"
#include "tests/support/strategy/dag.h"
#include "tests/support/strategy/slots.h"

enum { REPEATS = 51, OPERATORS = 1061, MESSAGES = 164, LIMIT_S = 120 };

static void *need(void *p) {
    if (!p) {
        fprintf(stderr, "bench_preemptive: out of memory\n");
        exit(1);
    }
    return p;
}

/* ---- a graph of 1,061 operators ---- */

/* Half of the operators are backward, as chains with branches; message i is made at place i of 164 along them and
 * waited for at place 164 - i of the rest. Whole times and works, in slots. */
static struct dag random_dag(struct rng *rng, struct arena *arena, double *work) {
    const uint32_t half = OPERATORS / 2;
    double *time = need(arena_alloc(arena, OPERATORS, sizeof *time));
    uint32_t *first = need(arena_alloc(arena, OPERATORS + 1, sizeof *first)), n = 0;
    uint32_t *before = need(arena_alloc(arena, 3 * (size_t)OPERATORS, sizeof *before));
    uint32_t *rows = need(arena_alloc(arena, MESSAGES + 1, sizeof *rows));
    uint32_t *makers = need(arena_alloc(arena, MESSAGES, sizeof *makers));
    uint32_t *readers = need(arena_alloc(arena, MESSAGES, sizeof *readers));
    for (uint32_t i = 0; i < OPERATORS; i++) {
        uint32_t start = i < half ? 0 : half;
        time[i] = rng_below(rng, 4) == 0 ? 1 : 0;
        for (uint32_t k = 0; k < 3 && i > start; k++)
            before[n++] = i - 1 - (uint32_t)rng_below(rng, i - start < 6 ? i - start : 6);
        first[i + 1] = n;
    }
    for (uint32_t m = 0; m < MESSAGES; m++) {
        work[m] = 1 + (double)(rng_below(rng, 4) == 0);
        makers[m] = m * half / MESSAGES;
        readers[m] = half + (MESSAGES - 1 - m) * (OPERATORS - half) / MESSAGES;
        rows[m + 1] = m + 1;
    }
    return (struct dag){OPERATORS, MESSAGES, time, {first, before}, {rows, makers}, {rows, readers}};
}

/* Windows and schedule from the bare graph. */
static double schedule_us(const struct dag *dag, const double *work, struct arena *arena, double *makespan) {
    struct error err;
    double times[REPEATS], path, *paths = need(arena_alloc(arena, DAG_SCRATCH(dag->n_operators), sizeof *paths));
    uint32_t *scratch = need(arena_alloc(arena, DAG_SCRATCH(dag->n_operators), sizeof *scratch));
    uint32_t *heap = need(arena_alloc(arena, 2 * (size_t)dag->n_messages, sizeof *heap));
    struct machine_job *jobs = need(arena_alloc(arena, dag->n_messages, sizeof *jobs));
    struct machine_job *copy = need(arena_alloc(arena, dag->n_messages, sizeof *copy));
    struct machine_slice *slices = need(arena_alloc(arena, 2 * (size_t)dag->n_messages, sizeof *slices));
    size_t n_slices = 0;
    for (int i = 0; i < REPEATS; i++) {
        double start = clock_now_us();
        bench_check(dag_windows(dag, scratch, paths, jobs, &path, &err), &err);
        for (uint32_t m = 0; m < dag->n_messages; m++)
            jobs[m].work = work[m];
        double value = one_machine_schedule(dag->n_messages, jobs, copy, heap, slices, &n_slices);
        times[i] = clock_now_us() - start;
        *makespan = fmax(path, value);
    }
    return bench_median(REPEATS, times);
}

/* ---- the linear program ---- */

static void write_program(FILE *f, const struct slots *s, double makespan, int last) {
    fprintf(f, "Minimize\n over:\n");
    for (uint32_t i = 0; i < s->n; i++)
        for (int t = (int)s->jobs[i].release + 1; t <= last; t++)
            fprintf(f, " + %g x%u_%d\n", fmax(0, t + s->jobs[i].tail - makespan), i, t);
    fprintf(f, "Subject To\n");
    for (uint32_t i = 0; i < s->n; i++) {
        for (int t = (int)s->jobs[i].release + 1; t <= last; t++)
            fprintf(f, " + x%u_%d\n", i, t);
        fprintf(f, " >= %g\n", s->jobs[i].work);
    }
    for (int t = 1; t <= last; t++) {
        bool any = false;
        for (uint32_t i = 0; i < s->n; i++)
            if (t > s->jobs[i].release) {
                fprintf(f, " + x%u_%d\n", i, t);
                any = true;
            }
        if (any)
            fprintf(f, " <= 1\n");
    }
    fprintf(f, "End\n");
}

/* The seconds that glpsol reports; *over gets its optimum. Below 0: none within LIMIT_S. */
static double glpsol_s(const struct slots *s, double makespan, double *over) {
    char path[] = "/tmp/syncopate-bench-XXXXXX", command[128], line[256];
    double seconds = -1, last = 0, work = 0;
    bool optimal = false;
    int fd = mkstemp(path);
    FILE *f = need(fd >= 0 ? fdopen(fd, "w") : NULL);
    for (uint32_t i = 0; i < s->n; i++) {
        last = fmax(last, s->jobs[i].release);
        work += s->jobs[i].work;
    }
    write_program(f, s, makespan, (int)(last + work));
    fclose(f);
    snprintf(command, sizeof command, "glpsol --lp %s --tmlim %d -o /dev/stdout 2>&1", path, LIMIT_S);
    f = need(popen(command, "r"));
    while (fgets(line, sizeof line, f)) {
        optimal = optimal || strstr(line, "Status:     OPTIMAL") == line;
        sscanf(line, "Time used: %lf", &seconds);
        sscanf(line, "Objective:  over = %lf", over);
    }
    pclose(f);
    unlink(path);
    return optimal ? seconds : -1;
}

static void compare_with_glpsol(const struct dag *dag, const double *work, double ours_us, struct arena *arena) {
    struct error err;
    struct slots slots;
    double over = 0, less = 0;
    if (system("glpsol --version >/dev/null 2>&1") != 0) {
        printf("preemptive: glpsol is missing; install glpk-utils for the comparison\n");
        return;
    }
    bench_check(slots_solve(dag, work, 1, SLOTS_CONSISTENT, arena, &slots, &err), &err);
    double seconds = glpsol_s(&slots, slots.makespan, &over);
    if (seconds < 0) {
        printf("preemptive: glpsol found no optimum of the linear program within %d s\n", LIMIT_S);
        return;
    }
    printf(
        "preemptive: glpsol's linear program of the slotted instance: %.1f s, %.0f times ours; its optimum is %g slots "
        "over our makespan of %g\n",
        seconds, seconds * 1e6 / ours_us, over, slots.makespan);
    if (slots.makespan > slots.path && glpsol_s(&slots, slots.makespan - 1, &less) >= 0)
        printf("preemptive: for a makespan of one slot less it is %g over\n", less);
    if (over > 1e-6 || (slots.makespan > slots.path && !(less > 1e-6)))
        exit(1);
}

static void bench_schedule(void) {
    struct arena arena = {0};
    struct rng rng;
    double work[MESSAGES], makespan;
    rng_seed(&rng, 20260917);
    struct dag dag = random_dag(&rng, &arena, work);
    double us = schedule_us(&dag, work, &arena, &makespan);
    printf("preemptive: %d messages in a graph of %d operators: %.1f us, makespan %g slots\n", MESSAGES, OPERATORS, us,
           makespan);
    compare_with_glpsol(&dag, work, us, &arena);
    arena_release(&arena);
}

/* ---- fusion ---- */

struct subject {
    struct model model;
    struct cluster cluster;
    struct cost cost;
    struct cost_line line;
    struct gradient *gradients;
    uint32_t *ends;
};

static void open_subject(struct subject *s, const char *folder, const char *model, const char *cluster) {
    struct error err;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.json", folder, model);
    bench_check(model_read_file(path, &s->model, &err), &err);
    snprintf(path, sizeof path, "%s/../clusters/%s.json", folder, cluster);
    bench_check(cluster_read_file(path, &s->cluster, &err), &err);
    bench_check(cost_init(&s->cost, &s->cluster, &err), &err);
    s->line = cost_line_all_reduce(&s->cost, s->model.bytes, NULL);
    s->gradients = need(arena_alloc(&s->model.arena, s->model.n_variables, sizeof *s->gradients));
    s->ends = need(arena_alloc(&s->model.arena, s->model.n_variables, sizeof *s->ends));
    bench_check(gradients_list(&s->model, 1, WITH_UPDATES, s->gradients, &err), &err);
}

static void close_subject(struct subject *s) {
    cost_release(&s->cost);
    cluster_release(&s->cluster);
    model_release(&s->model);
}

typedef enum status rule(uint32_t n, const struct gradient *gradients, const struct cost_line *line, struct fusion *out,
                         struct error *err);

static double fusion_us(struct subject *s, rule *fuse, int repeats, struct fusion *out) {
    struct error err;
    double times[REPEATS];
    out->ends = s->ends;
    for (int i = 0; i < repeats; i++) {
        double start = clock_now_us();
        bench_check(fuse(s->model.n_variables, s->gradients, &s->line, out, &err), &err);
        times[i] = clock_now_us() - start;
    }
    return bench_median((size_t)repeats, times);
}

static void bench_fusion(const char *folder) {
    static const char *const models[] = {"transformer", "vgg16", "resnet50", "densenet201", "bert-large", "gpt2-small"};
    static const char *const clusters[] = {"lab-4x1g", "k80-8x10g", "v100-16x10g", "h100-64x8"};
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++)
        for (size_t c = 0; c < sizeof clusters / sizeof clusters[0]; c++) {
            struct subject s;
            struct fusion pace, best;
            open_subject(&s, folder, models[m], clusters[c]);
            double compute = s.model.forward_us + s.model.backward_us;
            double pace_us = fusion_us(&s, fusion_balanced, m == 0 ? REPEATS : 5, &pace);
            double best_us = fusion_us(&s, fusion_makespan, 3, &best);
            printf(
                "fusion %-12s %-12s %4u gradients: all R %8.0f us, best cut %8.0f us; %3u groups %.0f us, %3u groups "
                "%.0f us%s, %.2f%% less\n",
                models[m], clusters[c], s.model.n_variables, pace_us, best_us, pace.n_groups,
                fmax(compute, pace.value_us), best.n_groups, fmax(compute, best.value_us),
                best.proved ? " (proved)" : "",
                100 * (1 - fmax(compute, best.value_us) / fmax(compute, pace.value_us)));
            close_subject(&s);
        }
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    bench_schedule();
    bench_fusion(dirname(argv[1]));
    return 0;
}
