/* PACE's preemptive schedule. The mathematics: for messages with release r, work p and tail q on one network, the least
 * max(C + q) over preemptive schedules is the maximum over sets S of min r + sum p + min q (Carlier 1982), Jackson's
 * rule attains it, and with r and q from the graph it is the optimum of the paper's integer program (2)-(9), which
 * glpsol solves here as it stands: its variables, its constraints, nothing of our windows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "strategy/exact/gradients.h"
#include "strategy/exact/one_machine.h"
#include "tests/support/check.h"
#include "tests/support/strategy/dag.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/support/strategy/slots.h"

enum { SETS = 2000, SMALL = 5, PROGRAMS = 300, PRINTED_PROGRAMS = 150, MODELS = 300 };
enum { OPERATORS = 10, MESSAGES = 5, HORIZON = 20, EDGES = OPERATORS * OPERATORS };

/* ---- one machine ---- */

/* max over sets S of min release + sum of work + min tail (Carlier 1982). */
static double best_set(uint32_t n, const struct machine_job *jobs) {
    double best = 0;
    for (uint32_t set = 1; set < 1u << n; set++) {
        double release = INFINITY, work = 0, tail = INFINITY;
        for (uint32_t j = 0; j < n; j++)
            if (set >> j & 1) {
                release = fmin(release, jobs[j].release);
                work += jobs[j].work;
                tail = fmin(tail, jobs[j].tail);
            }
        best = fmax(best, release + work + tail);
    }
    return best;
}

static uint32_t random_jobs(struct rng *rng, bool whole, struct machine_job *jobs) {
    uint32_t n = 1 + (uint32_t)rng_below(rng, 10);
    for (uint32_t j = 0; j < n; j++) {
        jobs[j] = (struct machine_job){rng_between(rng, 0, 20), rng_below(rng, 5) ? rng_between(rng, 0, 5) : 0,
                                       rng_between(rng, 0, 20)};
        if (whole)
            jobs[j] = (struct machine_job){floor(jobs[j].release), ceil(jobs[j].work), floor(jobs[j].tail)};
    }
    return n;
}

/* A schedule: in order of time, no overlap, nothing before its release, all work done, touching slices of a job joined;
 * its value is `value`. */
static void check_schedule(uint32_t n, const struct machine_job *jobs, const struct machine_slice *slices,
                           size_t n_slices, double value) {
    double done[16] = {0}, end[16] = {0}, worst = 0;
    assert_true(n_slices <= 2 * (size_t)n - 1);
    for (size_t k = 0; k < n_slices; k++) {
        const struct machine_slice *s = &slices[k];
        assert_true(s->job < n && s->end > s->start && s->start >= jobs[s->job].release);
        if (k > 0)
            assert_true(s->start >= slices[k - 1].end && (s->job != s[-1].job || s->start > s[-1].end));
        done[s->job] += s->end - s->start;
        end[s->job] = s->end;
    }
    for (uint32_t j = 0; j < n; j++) {
        assert_true(fabs(done[j] - jobs[j].work) <= 1e-9);
        if (jobs[j].work > 0)
            worst = fmax(worst, end[j] + jobs[j].tail);
    }
    /* A job without work arrives at some time that no slice shows; it adds at most release + tail to what it meets. */
    assert_true(worst <= value * (1 + 1e-12));
    bool all_work = true;
    for (uint32_t j = 0; j < n; j++)
        all_work = all_work && jobs[j].work > 0;
    if (all_work)
        assert_close(worst, value, 1e-12);
}

static void jacksons_rule_meets_the_worst_set_of_jobs(void **state) {
    (void)state;
    struct rng rng;
    rng_split(&rng, test_seed(), 1u << 20);
    for (int i = 0; i < SETS; i++) {
        uint32_t scratch[20];
        size_t n_slices;
        struct machine_job jobs[10], copy[10];
        struct machine_slice slices[20];
        uint32_t n = random_jobs(&rng, i % 2, jobs);
        double want = best_set(n, jobs), got = one_machine_schedule(n, jobs, copy, scratch, slices, &n_slices);
        assert_close(got, want, 1e-12);
        check_schedule(n, jobs, slices, n_slices, got);
        for (size_t k = 0; k < n_slices && i % 2; k++)
            assert_true(slices[k].start == floor(slices[k].start) && slices[k].end == floor(slices[k].end));
        assert_close(one_machine_value(n, jobs, scratch), want, 1e-12);
    }
}

/* The best of all preemptive schedules of whole numbers, a unit of time at a time. */
static int best_schedule(uint32_t n, const struct machine_job *jobs, int *left, int now) {
    int best = 1 << 20;
    bool idle = true, any = false;
    for (uint32_t j = 0; j < n; j++)
        any |= left[j] > 0;
    if (!any)
        return 0;
    for (uint32_t j = 0; j < n; j++) {
        if (left[j] == 0 || jobs[j].release > now)
            continue;
        idle = false;
        int end = --left[j] == 0 ? now + 1 + (int)jobs[j].tail : 0;
        int rest = best_schedule(n, jobs, left, now + 1);
        left[j]++;
        end = end > rest ? end : rest;
        best = end < best ? end : best;
    }
    return idle ? best_schedule(n, jobs, left, now + 1) : best;
}

static void jacksons_rule_meets_every_schedule_of_small_instances(void **state) {
    (void)state;
    struct rng rng;
    rng_split(&rng, test_seed(), 1u << 21);
    for (int i = 0; i < 300; i++) {
        uint32_t n = 1 + (uint32_t)rng_below(&rng, 4), scratch[SMALL];
        int left[SMALL];
        struct machine_job jobs[SMALL];
        for (uint32_t j = 0; j < n; j++) {
            left[j] = 1 + (int)rng_below(&rng, 2);
            jobs[j] = (struct machine_job){(double)rng_below(&rng, 6), left[j], (double)rng_below(&rng, 8)};
        }
        int want = best_schedule(n, jobs, left, 0);
        assert_close(one_machine_value(n, jobs, scratch), want, 1e-12);
    }
}

static void a_later_message_with_a_longer_tail_interrupts(void **state) {
    (void)state;
    const struct machine_job jobs[] = {{0, 10, 1}, {2, 1, 8}, {2, 2, 8}, {3, 1, 1}};
    const struct machine_slice want[] = {{0, 0, 2}, {1, 2, 3}, {2, 3, 5}, {0, 5, 13}, {3, 13, 14}};
    struct machine_job copy[4];
    struct machine_slice slices[8];
    uint32_t scratch[8];
    size_t n;
    assert_close(one_machine_schedule(4, jobs, copy, scratch, slices, &n), 15, 1e-12);
    assert_int_equal(n, 5);
    for (size_t k = 0; k < n; k++)
        assert_true(slices[k].job == want[k].job && slices[k].start == want[k].start && slices[k].end == want[k].end);
}

/* ---- graphs ---- */

/* Rows of the three lists are filled in order. */
struct instance {
    struct dag dag;
    double time[OPERATORS], work[MESSAGES];
    uint32_t before_first[OPERATORS + 1], before[EDGES];
    uint32_t makers_first[MESSAGES + 1], makers[MESSAGES * OPERATORS];
    uint32_t readers_first[MESSAGES + 1], readers[MESSAGES * OPERATORS];
};

/* One to `most` operators out of names[0..n), from names[first] on. */
static uint32_t add_some(struct rng *rng, const uint32_t *names, uint32_t n, uint32_t first, uint32_t most,
                         uint32_t *item, uint32_t at) {
    uint32_t count = 1 + (uint32_t)rng_below(rng, n < most ? n : most);
    for (uint32_t k = 0; k < count; k++)
        item[at++] = names[(first + k) % n];
    return at;
}

/* Messages in half of the graphs as in training: what is made first is needed last. */
static void add_messages(struct rng *rng, struct instance *in, uint32_t m, const uint32_t *names, uint32_t n_makers,
                         uint32_t n_readers) {
    bool training = rng_below(rng, 2);
    in->makers_first[0] = in->readers_first[0] = 0;
    for (uint32_t i = 0; i < m; i++) {
        uint32_t maker = (uint32_t)rng_below(rng, n_makers), reader = (uint32_t)rng_below(rng, n_readers);
        if (training) {
            maker = i * n_makers / m;
            reader = (m - 1 - i) * n_readers / m;
        }
        in->work[i] = rng_between(rng, 0.01, rng_below(rng, 3) ? 2 : 8);
        in->makers_first[i + 1] =
            add_some(rng, names, n_makers, maker, training ? 1 : 2, in->makers, in->makers_first[i]);
        in->readers_first[i + 1] =
            add_some(rng, names + n_makers, n_readers, reader, training ? 1 : 3, in->readers, in->readers_first[i]);
    }
}

/* Operators 0..n_makers-1 in topological order come before messages, the rest may wait for them; names[] shuffles. */
static void random_graph(struct rng *rng, struct instance *in) {
    uint32_t n = 4 + (uint32_t)rng_below(rng, OPERATORS - 3), m = 2 + (uint32_t)rng_below(rng, MESSAGES - 1);
    uint32_t n_makers = 1 + (uint32_t)rng_below(rng, n - 1), names[OPERATORS], place[OPERATORS], edges = 0;
    double density = rng_uniform(rng);
    for (uint32_t i = 0; i < n; i++)
        names[i] = i;
    if (rng_below(rng, 2))
        rng_shuffle(rng, n, names);
    for (uint32_t i = 0; i < n; i++)
        place[names[i]] = i;
    for (uint32_t i = 0; i < n; i++) {
        in->time[i] = rng_below(rng, 8) ? rng_between(rng, 0, 4) : 0;
        in->before_first[i] = edges;
        for (uint32_t k = 0; k < place[i]; k++)
            if (rng_uniform(rng) < density)
                in->before[edges++] = names[k];
    }
    in->before_first[n] = edges;
    add_messages(rng, in, m, names, n_makers, n - n_makers);
    in->dag = (struct dag){n,
                           m,
                           in->time,
                           {in->before_first, in->before},
                           {in->makers_first, in->makers},
                           {in->readers_first, in->readers}};
}

/* Longest path to the end of operator j in slots: equation (5) where no message comes before. */
static int end_slot(const struct dag *dag, uint32_t j) {
    int start = 0;
    for (uint32_t k = dag->before.first[j]; k < dag->before.first[j + 1]; k++) {
        int end = end_slot(dag, dag->before.item[k]);
        start = end > start ? end : start;
    }
    return start + (int)ceil(dag->time[j]);
}

/* Last slot of the makers of message i: z of u_i. */
static int made_slot(const struct dag *dag, uint32_t i) {
    int slot = 0;
    for (uint32_t k = dag->makers.first[i]; k < dag->makers.first[i + 1]; k++) {
        int end = end_slot(dag, dag->makers.item[k]);
        slot = end > slot ? end : slot;
    }
    return slot;
}

/* Enough slots for any message order: all works after the last gradient. */
static int horizon(const struct instance *in) {
    int last = 0, work = 0;
    for (uint32_t i = 0; i < in->dag.n_messages; i++) {
        int made = made_slot(&in->dag, i);
        last = made > last ? made : last;
        work += (int)ceil(in->work[i]);
    }
    return last + work;
}

static void random_small_graph(struct rng *rng, struct instance *in) {
    do
        random_graph(rng, in);
    while (horizon(in) > HORIZON);
}

/* ---- the paper's integer program in CPLEX-LP ---- */

/* First slot in which message i may go: (7) as printed forbids t < z_u, the consistent reading t <= z_u. */
static int first_slot(const struct instance *in, uint32_t i, bool printed) {
    int made = made_slot(&in->dag, i), first = printed ? made : made + 1;
    return first < 1 ? 1 : first;
}

static void write_operators(FILE *f, const struct dag *dag) {
    for (uint32_t j = 0; j < dag->n_operators; j++) {
        fprintf(f, " z%u >= %g\n m - z%u >= 0\n", j, ceil(dag->time[j]), j);
        for (uint32_t k = dag->before.first[j]; k < dag->before.first[j + 1]; k++)
            fprintf(f, " z%u - z%u >= %g\n", j, dag->before.item[k], ceil(dag->time[j]));
    }
    for (uint32_t i = 0; i < dag->n_messages; i++)
        for (uint32_t k = dag->readers.first[i]; k < dag->readers.first[i + 1]; k++)
            fprintf(f, " z%u - y%u >= %g\n", dag->readers.item[k], i, ceil(dag->time[dag->readers.item[k]]));
}

static void write_messages(FILE *f, const struct instance *in, int slots, bool printed) {
    for (uint32_t i = 0; i < in->dag.n_messages; i++) {
        for (int t = first_slot(in, i, printed); t <= slots; t++)
            fprintf(f, " %s x%u_%d", t > first_slot(in, i, printed) ? "+" : "", i, t);
        fprintf(f, " >= %g\n", ceil(in->work[i]));
        for (int t = first_slot(in, i, printed); t <= slots; t++)
            fprintf(f, " y%u - %d x%u_%d >= 0\n", i, t, i, t);
    }
    for (int t = 1; t <= slots; t++) {
        int n = 0;
        for (uint32_t i = 0; i < in->dag.n_messages; i++)
            if (t >= first_slot(in, i, printed))
                fprintf(f, " %s x%u_%d", n++ ? "+" : "", i, t);
        if (n)
            fprintf(f, " <= 1\n");
    }
}

/* (2)-(9) with max written as "at least each of". */
static void write_program(FILE *f, const struct instance *in, bool printed) {
    int slots = horizon(in);
    fprintf(f, "Minimize\n makespan: m\nSubject To\n");
    write_operators(f, &in->dag);
    write_messages(f, in, slots, printed);
    fprintf(f, "Binary\n");
    for (uint32_t i = 0; i < in->dag.n_messages; i++)
        for (int t = first_slot(in, i, printed); t <= slots; t++)
            fprintf(f, " x%u_%d\n", i, t);
    fprintf(f, "End\n");
}

/* The optimum of PROGRAM as glpsol reports it. */
static double solve_program(const char *program) {
    char command[640], line[256];
    double value = NAN;
    bool optimal = false;
    snprintf(command, sizeof command, "glpsol --lp %s --cuts -o /dev/stdout 2>&1", program);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        optimal = optimal || strstr(line, "Status:     INTEGER OPTIMAL") == line;
        if (!strncmp(line, "Objective:", 10))
            assert_int_equal(sscanf(line, "Objective:  makespan = %lf", &value), 1);
    }
    assert_int_equal(pclose(f), 0);
    assert_true(optimal);
    return value;
}

static void check_slots(const struct instance *in, const struct slots *slots) {
    assert_int_equal(slots->n, in->dag.n_messages);
    for (uint32_t i = 0; i < slots->n; i++)
        assert_true(slots->jobs[i].work == ceil(in->work[i]));
    for (size_t k = 0; k < slots->n_slices; k++)
        assert_true(slots->slices[k].start == floor(slots->slices[k].start) &&
                    slots->slices[k].end == floor(slots->slices[k].end));
    struct machine_job used[MESSAGES];
    memcpy(used, slots->jobs, slots->n * sizeof *used);
    double value = one_machine_value(slots->n, used, (uint32_t[MESSAGES]){0});
    assert_close(slots->makespan, fmax(slots->path, value), 1e-12);
    check_schedule(slots->n, slots->jobs, slots->slices, slots->n_slices, value);
}

static void compare_with_glpsol(int programs, bool printed) {
    struct rng rng;
    struct error err;
    struct arena arena = {0};
    struct instance in;
    struct slots slots;
    int preempted = 0, bound_by_messages = 0;
    rng_split(&rng, test_seed(), printed ? 1u << 23 : 1u << 22);
    for (int i = 0; i < programs; i++) {
        random_small_graph(&rng, &in);
        arena_clear(&arena);
        assert_ok(
            slots_solve(&in.dag, in.work, 1, printed ? SLOTS_AS_PRINTED : SLOTS_CONSISTENT, &arena, &slots, &err));
        char path[512];
        snprintf(path, sizeof path, "%s/program.lp", test_dir());
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        write_program(f, &in, printed);
        assert_int_equal(fclose(f), 0);
        double want = solve_program(path);
        if (fabs(want - slots.makespan) > 1e-6)
            print_error("program %d: glpsol %g, ours %g\n", i, want, slots.makespan);
        assert_true(fabs(want - slots.makespan) <= 1e-6);
        preempted += slots.n_slices > slots.n;
        bound_by_messages += slots.makespan > slots.path;
        check_slots(&in, &slots);
    }
    printf("%d programs equal; in %d a message is preempted, in %d messages decide\n", programs, preempted,
           bound_by_messages);
    assert_true(preempted > programs / 20 && bound_by_messages > programs / 2);
    arena_release(&arena);
}

static bool have_glpsol(void) {
    return system("glpsol --version >/dev/null 2>&1") == 0;
}

static void the_schedule_is_the_optimum_of_the_papers_integer_program(void **state) {
    (void)state;
    if (!have_glpsol()) {
        print_message("# glpsol is missing; install glpk-utils\n");
        skip();
    }
    compare_with_glpsol(PROGRAMS, false);
}

static void the_program_as_printed_is_one_slot_kinder_to_every_message(void **state) {
    (void)state;
    if (!have_glpsol()) {
        print_message("# glpsol is missing; install glpk-utils\n");
        skip();
    }
    compare_with_glpsol(PRINTED_PROGRAMS, true);
}

/* ---- windows, models, refusals ---- */

static void slots_cost_at_most_one_each_an_operator_and_a_message(void **state) {
    (void)state;
    struct rng rng;
    struct error err;
    struct arena arena = {0};
    struct instance in;
    rng_split(&rng, test_seed(), 1u << 24);
    for (double length = 1; length > 0.001; length /= 4) {
        double sum = 0;
        for (int i = 0; i < 500; i++) {
            struct slots slots;
            struct machine_job jobs[MESSAGES];
            uint32_t scratch[DAG_SCRATCH(OPERATORS)], heap[MESSAGES];
            double times[DAG_SCRATCH(OPERATORS)], path;
            random_graph(&rng, &in);
            arena_clear(&arena);
            assert_ok(slots_solve(&in.dag, in.work, length, SLOTS_CONSISTENT, &arena, &slots, &err));
            assert_ok(dag_windows(&in.dag, scratch, times, jobs, &path, &err));
            for (uint32_t k = 0; k < in.dag.n_messages; k++)
                jobs[k].work = in.work[k];
            double exact = fmax(path, one_machine_value(in.dag.n_messages, jobs, heap));
            double most = exact + length * (in.dag.n_operators + in.dag.n_messages);
            assert_true(slots.makespan * length >= exact * (1 - 1e-9) && slots.makespan * length <= most);
            sum += slots.makespan * length / exact;
        }
        printf("slots of %.5f, messages of 0.01 to 8: %.2f%% longer on average\n", length, 100 * (sum / 500 - 1));
    }
    arena_release(&arena);
}

static void check_model(const struct model *model, struct arena *arena) {
    struct error err;
    struct dag stream, ideal;
    double scale = 1.5, path[2];
    uint32_t n = model->n_variables;
    assert_ok(dag_from_model(model, DAG_ONE_STREAM, scale, arena, &stream, &err));
    assert_ok(dag_from_model(model, DAG_IDEAL, scale, arena, &ideal, &err));
    uint32_t *scratch = arena_alloc(arena, DAG_SCRATCH(stream.n_operators), sizeof *scratch);
    double *times = arena_alloc(arena, DAG_SCRATCH(stream.n_operators), sizeof *times);
    struct machine_job *jobs = arena_alloc(arena, n, sizeof *jobs), *least = arena_alloc(arena, n, sizeof *least);
    struct gradient *gradients = arena_alloc(arena, n, sizeof *gradients);
    assert_ok(dag_windows(&stream, scratch, times, jobs, &path[0], &err));
    assert_ok(dag_windows(&ideal, scratch, times, least, &path[1], &err));
    assert_ok(gradients_list(model, scale, WITH_UPDATES, gradients, &err));
    assert_close(path[0], scale * (model->forward_us + model->backward_us), 1e-12);
    assert_true(path[1] <= path[0] * (1 + 1e-12));
    for (uint32_t k = 0; k < n; k++) {
        uint32_t v = gradients[k].variable;
        assert_close(jobs[v].release, gradients[k].ready_us, 1e-12);
        assert_close(jobs[v].tail, gradients[k].tail_us, 1e-12);
        assert_true(least[v].release <= jobs[v].release * (1 + 1e-12));
        assert_true(least[v].tail <= jobs[v].tail * (1 + 1e-12));
    }
}

static void one_streams_windows_are_the_gradients_and_ideal_ones_lie_within(void **state) {
    (void)state;
    struct arena arena = {0};
    for (int i = 0; i < MODELS; i++) {
        struct rng rng;
        struct error err;
        struct model model;
        rng_split(&rng, test_seed(), (uint64_t)i);
        assert_ok(random_model(&rng, &model, &err));
        arena_clear(&arena);
        check_model(&model, &arena);
        model_release(&model);
    }
    arena_release(&arena);
}

static enum status windows_of(const struct dag *dag, struct error *err) {
    uint32_t scratch[DAG_SCRATCH(4)];
    double times[DAG_SCRATCH(4)], path;
    struct machine_job jobs[2];
    return dag_windows(dag, scratch, times, jobs, &path, err);
}

static void graphs_that_are_none_are_refused(void **state) {
    (void)state;
    struct error err;
    const double time[4] = {1, 2, 3, 4};
    /* 0 -> 1 -> 2 -> 3; message 0 from 0 to 2, message 1 from 1 to 3 */
    uint32_t first[] = {0, 0, 1, 2, 3}, before[] = {0, 1, 2}, rows[] = {0, 1, 2}, makers[] = {0, 1}, readers[] = {2, 3};
    struct dag dag = {4, 2, time, {first, before}, {rows, makers}, {rows, readers}};
    assert_ok(windows_of(&dag, &err));
    makers[1] = 2;
    assert_fails(windows_of(&dag, &err), ST_INVALID, "message 0 lies before operator 2, which makes message 1");
    makers[1] = 3;
    assert_fails(windows_of(&dag, &err), ST_INVALID, "lies before operator 3");
    makers[1] = 4;
    assert_fails(windows_of(&dag, &err), ST_INVALID, "not an operator");
    makers[1] = 1;
    before[0] = 3;
    assert_fails(windows_of(&dag, &err), ST_INVALID, "cycle");
    before[0] = 0;
    rows[1] = 0;
    assert_fails(windows_of(&dag, &err), ST_INVALID, "message 0 has no maker");
    rows[1] = 1;
    struct arena arena = {0};
    struct slots slots;
    assert_fails(slots_solve(&dag, (double[]){1, 1}, 0, SLOTS_CONSISTENT, &arena, &slots, &err), ST_INVALID, "slot");
    arena_release(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jacksons_rule_meets_the_worst_set_of_jobs),
        cmocka_unit_test(jacksons_rule_meets_every_schedule_of_small_instances),
        cmocka_unit_test(a_later_message_with_a_longer_tail_interrupts),
        cmocka_unit_test(the_schedule_is_the_optimum_of_the_papers_integer_program),
        cmocka_unit_test(the_program_as_printed_is_one_slot_kinder_to_every_message),
        cmocka_unit_test(slots_cost_at_most_one_each_an_operator_and_a_message),
        cmocka_unit_test(one_streams_windows_are_the_gradients_and_ideal_ones_lie_within),
        cmocka_unit_test(graphs_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
