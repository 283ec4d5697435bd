/* Traces of several ranks: who was late, what collectives cost though clocks differ, whose time went where, what is
 * refused. */
#include <math.h>

#include "base/rng.h"
#include "interop/traces/explanation.h"
#include "tests/unit/interop/rank_traces.h"

enum { RANKS = 4, STEPS = 30, SIZES = 3, LATE = 2 };

static struct rank_text texts[RANKS];

static int finish(void **state) {
    (void)state;
    rank_free(RANKS, texts);
    return 0;
}

static void explain(size_t n, const struct source *sources, struct explanation *out) {
    struct error err;
    assert_ok(explanation_of(n, sources, out, &err));
}

/* ---- a late rank, clocks that differ and drift ---- */

static const uint64_t floats[SIZES] = {1 << 12, 1 << 16, 1 << 20};

static double true_cost(int size) {
    return 150 + 4e-3 * 4 * (double)floats[size];
}

/* A step takes 40 ms: 10 ms of computing, which rank LATE begins 6 ms later; three all-reduces, one behind the other.
 */
static void write_job(struct rng *rng, bool device, int64_t sequence) {
    static const double offsets[RANKS] = {0, 8000, -12000, 300}, drifts[RANKS] = {0, 5e-5, -3e-5, 1e-5};
    for (int r = 0; r < RANKS; r++)
        rank_begin(&texts[r], r, RANKS);
    for (int s = 0; s < STEPS; s++) {
        const double at = 40000.0 * s;
        double ends[SIZES][RANKS], starts[SIZES][RANKS], last = 0;
        for (int k = 0; k < SIZES; k++) {
            double coming = 0;
            for (int r = 0; r < RANKS; r++) {
                starts[k][r] = at + (r == LATE ? 16000 : 10000) + rng_between(rng, 0, 300);
                starts[k][r] = k ? fmax(starts[k][r], ends[k - 1][r]) : starts[k][r];
                coming = fmax(coming, starts[k][r]);
            }
            last = coming + true_cost(k) * rng_between(rng, 0.98, 1.02);
            for (int r = 0; r < RANKS; r++)
                ends[k][r] = last + rng_between(rng, -4, 4);
        }
        for (int r = 0; r < RANKS; r++) {
            struct rank_text *to = &texts[r];
            const double clock = 4.8e12 + offsets[r], drift = 1 + drifts[r];
            rank_step(to, device, s, clock + at * drift, clock + (at + 40000) * drift);
            rank_event(to, device ? "kernel" : "cpu_op", device ? "gemm" : "aten::mm", 1,
                       clock + (at + (r == LATE ? 6000 : 0)) * drift,
                       clock + (at + (r == LATE ? 16000 : 10000)) * drift, "");
            for (int k = SIZES; k--;)
                if (device)
                    rank_nccl(to, "0", RANKS, sequence < 0 ? -1 : sequence + SIZES * s + k, floats[k],
                              clock + starts[k][r] * drift, clock + ends[k][r] * drift);
                else
                    rank_gloo(to, floats[k], clock + starts[k][r] * drift, clock + ends[k][r] * drift);
        }
    }
}

static void check_job(const struct explanation *e) {
    assert_int_equal(e->late, LATE);
    assert_int_equal(e->traces[LATE].rank, LATE);
    assert_true(e->accounts[LATE].n_last >= STEPS);
    assert_true(e->accounts[LATE].held_up_us > 5500 && e->accounts[LATE].held_up_us < 6500);
    assert_true(e->meetings.clock_us < 10);
    assert_int_equal(e->meetings.n, STEPS * SIZES);
    assert_int_equal(e->meetings.n_points, SIZES);
    for (int k = 0; k < SIZES; k++) {
        const struct cost_point *p = &e->meetings.points[k];
        assert_string_equal(p->operation, "all_reduce");
        assert_int_equal(p->bytes, 4 * floats[k]);
        assert_int_equal(p->devices, RANKS);
        assert_int_equal(p->time_us.n, STEPS);
        assert_true(p->alone);
        assert_close(p->time_us.median_us, true_cost(k), 0.05);
        assert_true(p->time_us.low_us <= p->time_us.median_us && p->time_us.high_us >= p->time_us.median_us);
    }
    for (int r = 0; r < RANKS; r++) {
        const struct rank_account *a = &e->accounts[r];
        assert_close(a->us[TIME_compute], 10000, 0.01);
        assert_close(a->us[TIME_exposed], true_cost(0) + true_cost(1) + true_cost(2), 0.05);
        assert_true(r == LATE ? a->us[TIME_waiting] < 600 : a->us[TIME_waiting] > 5500);
        assert_close(a->us[TIME_compute] + a->us[TIME_exposed] + a->us[TIME_waiting] + a->us[TIME_idle],
                     a->iteration_us, 1e-6);
    }
    const struct rank_account *busiest = &e->accounts[LATE];
    assert_close(e->most_won_us, e->iteration_us - busiest->us[TIME_compute] - busiest->us[TIME_idle], 1e-3);
}

static void the_late_rank_is_named_and_costs_are_true(void **state) {
    (void)state;
    static const struct {
        bool device;
        int64_t sequence;
    } forms[] = {{false, -1}, {true, 71}, {true, -1}};
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct source sources[RANKS];
        struct explanation e;
        write_job(&rng, forms[i].device, forms[i].sequence);
        for (int r = 0; r < RANKS; r++)
            sources[RANKS - 1 - r] = rank_end(&texts[r]);
        explain(RANKS, sources, &e);
        assert_int_equal(e.traces[0].on_device, forms[i].device);
        check_job(&e);
        explanation_release(&e);
    }
}

static void without_all_ranks_no_cost_is_told(void **state) {
    (void)state;
    struct rng rng;
    struct source sources[RANKS];
    struct explanation e;
    rng_seed(&rng, test_seed());
    write_job(&rng, true, 0);
    for (int r = 0; r < RANKS; r++)
        sources[r] = rank_end(&texts[r]);
    explain(3, sources, &e);
    assert_int_equal(e.meetings.n_partial, STEPS * SIZES);
    assert_int_equal(e.meetings.n_points, 0);
    assert_int_equal(e.late, LATE);
    explanation_release(&e);
    explain(1, sources, &e);
    assert_int_equal(e.meetings.n, 0);
    assert_int_equal(e.late, 1); /* none */
    assert_close(e.accounts[0].us[TIME_waiting], 0, 0);
    assert_true(e.accounts[0].us[TIME_exposed] > true_cost(0) + true_cost(1) + true_cost(2) + 5000);
    explanation_release(&e);
}

/* ---- what belongs together ---- */

/* Two groups use the same sequence numbers; each has two of the four ranks. */
static void groups_are_kept_apart(void **state) {
    (void)state;
    struct source sources[RANKS];
    struct explanation e;
    for (int r = 0; r < RANKS; r++) {
        const char *group = r < 2 ? "7" : "8";
        rank_begin(&texts[r], r, RANKS);
        rank_step(&texts[r], true, 0, 0, 1000);
        rank_nccl(&texts[r], group, 2, 5, 100, 100 + 10 * r, r < 2 ? 300 : 500);
        rank_nccl(&texts[r], "0", RANKS, 5, 50, 600 + r, 700);
        sources[r] = rank_end(&texts[r]);
    }
    explain(RANKS, sources, &e);
    assert_int_equal(e.meetings.n, 3);
    assert_int_equal(e.meetings.n_points, 2);
    assert_int_equal(e.meetings.points[0].devices, 2);
    assert_int_equal(e.meetings.points[0].time_us.n, 2);
    assert_close(e.meetings.points[0].time_us.median_us, (190 + 370) / 2.0, 1e-6);
    assert_close(e.meetings.points[1].time_us.median_us, 97, 1e-6);
    assert_int_equal(e.accounts[1].n_last, 1);
    assert_int_equal(e.accounts[3].n_last, 2);
    assert_int_equal(e.accounts[3].n_met, 2);
    explanation_release(&e);
}

/* Of two ranks one is always done 40 us later: on one host that is so, on two it may be the clock. Hosts of one name
 * whose clocks contradict each other are two. */
static void ranks_of_one_host_share_its_clock(void **state) {
    (void)state;
    static const struct {
        const char *hosts[2];
        double clock, cost, clock_us;
        bool one;
    } cases[] = {{{"a", "a"}, 0, 120, 40, true},
                 {{"a", "b"}, 0, 140, 0, false},
                 {{"", ""}, 0, 140, 0, false},
                 {{"a", "a"}, 1e6, 140, 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct source sources[2];
        struct explanation e;
        for (int r = 0; r < 2; r++) {
            const double clock = r ? cases[i].clock : 0;
            rank_begin_on(&texts[r], cases[i].hosts[r], r, 2);
            for (int s = 0; s < 3; s++) {
                rank_step(&texts[r], false, s, clock + 1000 * s, clock + 1000 * s + 1000);
                rank_gloo(&texts[r], 10, clock + 1000 * s + 100 + 50 * r, clock + 1000 * s + 250 + 40 * r);
            }
            sources[r] = rank_end(&texts[r]);
        }
        explain(2, sources, &e);
        assert_int_equal(e.meetings.one_clock, cases[i].one);
        assert_int_equal(e.late, cases[i].one ? 1 : 2); /* else it is 10 us late, too little to be called so */
        assert_close(e.meetings.points[0].time_us.median_us, cases[i].cost, 1e-6);
        assert_close(e.meetings.clock_us, cases[i].clock_us, 1e-6);
        explanation_release(&e);
    }
}

/* Ranks 1 and 2 are on two hosts of one name. Rank 0 has nothing in common with them, so its clock is neither's. */
static void hosts_of_one_name_are_told_apart_where_the_first_rank_is_in_no_group(void **state) {
    (void)state;
    struct source sources[3];
    struct explanation e;
    for (int r = 0; r < 3; r++) {
        const double clock = r == 2 ? 1e6 : 0;
        rank_begin_on(&texts[r], "a", r, 3);
        for (int s = 0; s < 3; s++) {
            rank_step(&texts[r], true, s, clock + 1000 * s, clock + 1000 * s + 1000);
            rank_event(&texts[r], "kernel", "gemm", 7, clock + 1000 * s, clock + 1000 * s + 100, "");
            if (r)
                rank_nccl(&texts[r], "7", 2, s, 10, clock + 1000 * s + 100 + 50 * r, clock + 1000 * s + 300);
        }
        sources[r] = rank_end(&texts[r]);
    }
    explain(3, sources, &e);
    assert_int_equal(e.meetings.n, 3);
    assert_false(e.meetings.one_clock);
    assert_int_equal(e.late, 2);
    assert_int_equal(e.meetings.n_points, 1);
    assert_close(e.meetings.points[0].time_us.median_us, 100, 1e-6);
    explanation_release(&e);
}

/* Of 400 us for which messages of 10 and of 30 floats move beside each other, each has its part. What waits meanwhile
 * for another rank does not move; a message of unknown size leaves no cost. */
static void messages_side_by_side_share_the_time(void **state) {
    (void)state;
    struct source sources[2];
    struct explanation e;
    for (int r = 0; r < 2; r++) {
        rank_begin_on(&texts[r], "a", r, 2);
        rank_step(&texts[r], false, 0, 0, 5000);
        rank_gloo(&texts[r], 10, 100 + r, 300);
        rank_gloo(&texts[r], 30, 150, 501);
        rank_gloo(&texts[r], 50, r ? 600 : 120, 700);
        rank_gloo(&texts[r], 70, 1000, 1100);
        rank_event(&texts[r], "user_annotation", "gloo:broadcast", 3, 1050, 1200, "");
        sources[r] = rank_end(&texts[r]);
    }
    explain(2, sources, &e);
    assert_int_equal(e.meetings.n, 4);
    assert_int_equal(e.meetings.n_points, 3);
    for (size_t i = 0; i < 3; i++)
        assert_close(e.meetings.points[i].time_us.median_us, 100 * (i == 1 ? 3 : 1), 1e-9);
    assert_false(e.meetings.points[0].alone || e.meetings.points[1].alone);
    assert_true(e.meetings.points[2].alone);
    explanation_release(&e);
}

/* Rank 1 holds up one of four all-reduces by 200 us, and comes last to the others by 1 us, which clocks cannot tell. */
static void rare_but_long_lateness_is_named(void **state) {
    (void)state;
    struct source sources[2];
    struct explanation e;
    for (int r = 0; r < 2; r++) {
        rank_begin_on(&texts[r], "a", r, 2);
        for (int s = 0; s < 10; s++) {
            rank_step(&texts[r], false, s, 4000 * s, 4000 * s + 4000);
            for (int k = 0; k < 4; k++) {
                const double at = 4000 * s + 1000 * k;
                rank_gloo(&texts[r], (uint64_t)(k + 1), at + 100 + (r ? k ? 1 : 200 : 0), at + 500 + 10 * r * (s % 4));
            }
        }
        sources[r] = rank_end(&texts[r]);
    }
    explain(2, sources, &e);
    assert_true(e.meetings.clock_us > 5 && e.accounts[1].gap_us < 5);
    assert_int_equal(e.late, 1);
    explanation_release(&e);
}

/* Messages of two sizes in turn, of one size twice: the first belongs to the first. Rank 1 comes 5 us later each time,
 * and has its events in another order. */
static void of_one_size_the_kth_belong_together(void **state) {
    (void)state;
    struct source sources[2];
    struct explanation e;
    for (int r = 0; r < 2; r++) {
        rank_begin_on(&texts[r], "a", r, 2);
        rank_step(&texts[r], false, 0, 0, 1000);
        for (int k = 0; k < 6; k++) {
            const int i = r ? 5 - k : k;
            rank_gloo(&texts[r], i % 3 == 1 ? 10 : 20, 100 * i + 5 * r, 100 * i + 50 + 7 * i);
        }
        sources[r] = rank_end(&texts[r]);
    }
    explain(2, sources, &e);
    assert_int_equal(e.meetings.n, 6);
    assert_int_equal(e.accounts[1].n_last, 6);
    assert_close(e.accounts[1].gap_us, 5, 1e-9);
    assert_int_equal(e.meetings.n_points, 2);
    assert_close(e.meetings.points[0].time_us.median_us, 45 + 7 * (1 + 4) / 2.0, 1e-9);
    assert_close(e.meetings.points[1].time_us.median_us, 45 + 7 * (2 + 3) / 2.0, 1e-9);
    explanation_release(&e);
}

/* On the third rank the profiler began a step later. */
static void what_a_trace_lacks_is_left_out(void **state) {
    (void)state;
    struct source sources[3];
    struct explanation e;
    for (int r = 0; r < 3; r++) {
        rank_begin(&texts[r], r, 3);
        for (int s = r == 2; s < 3; s++) {
            rank_step(&texts[r], false, s, 1000 * s, 1000 * s + 1000);
            rank_gloo(&texts[r], 10, 1000 * s + 100 + r, 1000 * s + 300);
        }
        sources[r] = rank_end(&texts[r]);
    }
    explain(3, sources, &e);
    assert_int_equal(e.meetings.n, 3);
    assert_int_equal(e.meetings.n_partial, 1);
    assert_int_equal(e.meetings.points[0].time_us.n, 2);
    assert_close(e.meetings.points[0].time_us.median_us, 198, 1e-6);
    explanation_release(&e);
}

static const char *operation_told(const char *category, const char *name, const char *args, struct explanation *e) {
    struct source source;
    rank_begin(&texts[0], 0, 2);
    rank_event(&texts[0], category, name, 1, 10, 20, args);
    source = rank_end(&texts[0]);
    explain(1, &source, e);
    assert_int_equal(e->traces[0].n_collectives, 1);
    return e->traces[0].collectives[0].operation;
}

static void every_spelling_of_an_operation_is_understood(void **state) {
    (void)state;
    static const struct {
        const char *category, *name, *args, *operation;
        uint64_t bytes;
        bool meets;
    } words[] = {
        {"user_annotation", "gloo:all_reduce", "\"Input type\":[\"double\"],\"Input Dims\":[[3,5]]", "all_reduce", 120,
         true},
        {"cpu_op", "gloo:all_gather", "\"Input type\":[\"c10::Half\",\"c10::Half\"],\"Input Dims\":[[3],[7]]",
         "all_gather", 20, true},
        {"cpu_op", "gloo:reduce_scatter", "", "reduce_scatter", 0, true},
        {"cpu_op", "gloo:barrier", "", "barrier", 0, true},
        {"cpu_op", "gloo:broadcast", "\"Input type\":[\"long int\"],\"Input Dims\":[[]]", "broadcast", 8, false},
        {"kernel", "ncclKernel_ReduceScatter_RING_LL_Sum_half(ncclWorkElem)", "", "reduce_scatter", 0, true},
        {"kernel", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "", "send_receive", 0, false},
        {"kernel", "ncclDevKernel_Generic",
         "\"Collective name\":\"_allgather_base\",\"In msg nelems\":10,\"Out msg nelems\":40,\"dtype\":\"BFloat16\"",
         "all_gather", 80, true},
        {"kernel", "ncclDevKernel_Generic",
         "\"Collective name\":\"reduce_scatter_tensor_coalesced\",\"In msg nelems\":40,\"Out msg nelems\":10,\"dtype\":"
         "\"Float8_e4m3fn\"",
         "reduce_scatter", 40, true},
        {"kernel", "ncclDevKernel_Generic", "\"Collective name\":\"all_to_allv\",\"dtype\":\"Unheard\"", "all_to_all",
         0, true},
        {"kernel", "ncclDevKernel_X", "", "other", 0, false},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct explanation e;
        assert_string_equal(operation_told(words[i].category, words[i].name, words[i].args, &e), words[i].operation);
        assert_int_equal(e.traces[0].collectives[0].bytes, words[i].bytes);
        assert_int_equal(e.traces[0].collectives[0].meets, words[i].meets);
        explanation_release(&e);
    }
}

/* gloo has two threads. The second all-reduce of 10 floats is called before the profiler sees it, and waits for a
 * thread until 200; that of 20 floats is taken up late, at 450, though gloo was idle since 400. The last call is not
 * served. */
static void with_gloo_a_rank_comes_when_it_calls(void **state) {
    (void)state;
    static const struct {
        double call, start, end;
        int floats;
    } served[] = {{-1, 0, 200, 10}, {50, 60, 300, 10}, {70, 205, 400, 10}, {410, 450, 500, 20}, {550, -1, 0, 20}};
    static const double starts[] = {0, 50, 200, 410};
    struct explanation e;
    rank_begin(&texts[0], 0, 2);
    for (size_t i = 0; i < sizeof served / sizeof *served; i++) {
        char args[80];
        snprintf(args, sizeof args, "\"Input type\": [\"TensorList\", \"\"], \"Input Dims\": [[[%d]], []]",
                 served[i].floats);
        if (served[i].call >= 0)
            rank_event(&texts[0], "cpu_op", "c10d::allreduce_", 1, served[i].call, served[i].call + 5, args);
        if (served[i].start >= 0)
            rank_gloo(&texts[0], (uint64_t)served[i].floats, served[i].start, served[i].end);
    }
    const struct source source = rank_end(&texts[0]);
    explain(1, &source, &e);
    assert_int_equal(e.traces[0].n_collectives, 4);
    for (size_t i = 0; i < 4; i++)
        assert_close(e.traces[0].collectives[i].start, starts[i], 1e-9);
    explanation_release(&e);
}

/* ---- iterations ---- */

static void a_device_marks_a_step_once_a_stream(void **state) {
    (void)state;
    struct explanation e;
    rank_begin(&texts[0], 0, 1);
    rank_event(&texts[0], "user_annotation", "ProfilerStep#4", 1, 0, 100, "");
    rank_event(&texts[0], "gpu_user_annotation", "ProfilerStep#5", 7, 300, 460, "");
    rank_event(&texts[0], "gpu_user_annotation", "ProfilerStep#4", 7, 60, 160, "");
    rank_event(&texts[0], "gpu_user_annotation", "ProfilerStep#4", 20, 90, 320, "");
    rank_event(&texts[0], "gpu_user_annotation", "ProfilerStep#5", 20, 330, 500, "");
    rank_event(&texts[0], "kernel", "gemm", 7, 60, 160, "");
    rank_event(&texts[0], "kernel", "gemm", 7, 150, 310, "");
    rank_event(&texts[0], "cpu_op", "aten::mm", 1, 0, 500, "");
    const struct source source = rank_end(&texts[0]);
    explain(1, &source, &e);
    assert_int_equal(e.traces[0].n_steps, 2);
    assert_close(e.traces[0].steps[0].start, 60, 1e-9);
    assert_close(e.traces[0].steps[0].end, 300, 1e-9);
    assert_close(e.traces[0].steps[1].end, 500, 1e-9);
    assert_close(e.accounts[0].us[TIME_compute], 125, 1e-9);
    assert_close(e.accounts[0].us[TIME_idle], (240 + 200) / 2.0 - 125, 1e-9);
    assert_close(e.accounts[0].hidden_us, 0, 0);
    explanation_release(&e);
}

static void without_marks_the_optimizer_ends_iterations(void **state) {
    (void)state;
    struct explanation e;
    rank_begin(&texts[0], 0, 1);
    rank_event(&texts[0], "cpu_op", "aten::mm", 1, 5, 80, "");
    rank_event(&texts[0], "user_annotation", "Optimizer.step#SGD.step", 1, 205, 225, "");
    rank_event(&texts[0], "user_annotation", "Optimizer.step#SGD.step", 1, 80, 105, "");
    struct source source = rank_end(&texts[0]);
    explain(1, &source, &e);
    assert_int_equal(e.traces[0].n_steps, 2);
    assert_close(e.iteration_us, 110, 1e-9);
    assert_close(e.traces[0].steps[1].start, 105, 1e-9);
    explanation_release(&e);
    rank_begin(&texts[0], 0, 1);
    rank_event(&texts[0], "cpu_op", "aten::mm", 1, 5, 80, "");
    source = rank_end(&texts[0]);
    explain(1, &source, &e);
    assert_int_equal(e.traces[0].n_steps, 1);
    assert_close(e.iteration_us, 75, 1e-9);
    explanation_release(&e);
}

static void an_optimizer_within_an_optimizer_ends_no_iteration_of_its_own(void **state) {
    (void)state;
    struct explanation e;
    rank_begin(&texts[0], 0, 1);
    rank_event(&texts[0], "cpu_op", "aten::mm", 1, 5, 80, "");
    for (int i = 0; i < 2; i++) {
        rank_event(&texts[0], "user_annotation", "Optimizer.step#Adam.step", 1, 82 + 120 * i, 95 + 120 * i, "");
        rank_event(&texts[0], "user_annotation", "Optimizer.step#ZeroRedundancyOptimizer.step", 1, 80 + 120 * i,
                   105 + 120 * i, "");
    }
    struct source source = rank_end(&texts[0]);
    explain(1, &source, &e);
    assert_int_equal(e.traces[0].n_steps, 2);
    assert_close(e.iteration_us, 110, 1e-9);
    assert_close(e.traces[0].steps[0].end, 105, 1e-9);
    assert_close(e.traces[0].steps[1].end, 225, 1e-9);
    explanation_release(&e);
}

static void the_picture_shows_what_each_part_was_for(void **state) {
    (void)state;
    struct source sources[2];
    struct explanation e;
    struct error err;
    enum time_kind cells[10];
    size_t step;
    static const enum time_kind early[] = {TIME_compute, TIME_compute, TIME_compute, TIME_waiting, TIME_waiting,
                                           TIME_waiting, TIME_exposed, TIME_exposed, TIME_idle,    TIME_compute};
    static const enum time_kind late[] = {TIME_compute, TIME_compute, TIME_compute, TIME_compute, TIME_compute,
                                          TIME_compute, TIME_exposed, TIME_exposed, TIME_idle,    TIME_idle};
    for (int r = 0; r < 2; r++) {
        rank_begin(&texts[r], r, 2);
        rank_step(&texts[r], false, 0, -500, 0);
        rank_step(&texts[r], false, 1, 0, 100);
        rank_step(&texts[r], false, 2, 100, 110);
        rank_event(&texts[r], "cpu_op", "aten::mm", 1, 0, r ? 60 : 30, "");
        rank_event(&texts[r], "cpu_op", "c10d::allreduce_", 1, 80, 90, "");
        if (!r)
            rank_event(&texts[r], "cpu_op", "aten::add_", 1, 90, 100, "");
        rank_gloo(&texts[r], 64, r ? 60 : 30, 80);
        sources[r] = rank_end(&texts[r]);
    }
    explain(2, sources, &e);
    assert_ok(explanation_typical_step(&e.traces[0], &step, &err));
    assert_int_equal(step, 1);
    assert_ok(explanation_picture(&e, 0, step, 10, cells, &err));
    assert_memory_equal(cells, early, sizeof early);
    assert_ok(explanation_picture(&e, 1, step, 10, cells, &err));
    assert_memory_equal(cells, late, sizeof late);
    explanation_release(&e);
}

/* As versions without Kineto write them: a list, without ranks and categories. */
static void early_traces_are_numbered_in_their_order(void **state) {
    (void)state;
    static const char text[] =
        "[{\"name\":\"DistributedDataParallel.forward\",\"ph\":\"X\",\"ts\":0,\"dur\":500},{\"name\":\"aten::mm\","
        "\"ph\":\"X\",\"ts\":10,\"dur\":90},{\"name\":\"gloo:all_reduce\",\"ph\":\"X\",\"ts\":200,\"dur\":300}]";
    const struct source sources[] = {{.name = "a", .text = text, .n = sizeof text - 1},
                                     {.name = "b", .text = text, .n = sizeof text - 1}};
    struct explanation e;
    explain(2, sources, &e);
    assert_true(e.numbered);
    assert_int_equal(e.traces[1].rank, 1);
    assert_string_equal(e.traces[1].file, "b");
    assert_close(e.accounts[0].us[TIME_compute], 90, 1e-9);
    assert_close(e.accounts[0].us[TIME_exposed], 300, 1e-9);
    assert_int_equal(e.meetings.n, 1);
    explanation_release(&e);
}

static void traces_that_do_not_belong_together_are_refused(void **state) {
    (void)state;
    struct error err;
    struct explanation e;
    struct source sources[2];
    for (int r = 0; r < 2; r++) {
        rank_begin(&texts[r], 0, 2);
        rank_gloo(&texts[r], 64, 60, 80);
        snprintf(texts[r].name, sizeof texts[r].name, "t%d.json", r);
        sources[r] = rank_end(&texts[r]);
    }
    assert_fails(explanation_of(2, sources, &e, &err), ST_INVALID, "of rank 0, as t");
    rank_begin(&texts[1], 1, 4);
    rank_gloo(&texts[1], 64, 60, 80);
    sources[1] = rank_end(&texts[1]);
    assert_fails(explanation_of(2, sources, &e, &err), ST_INVALID,
                 "rank1.json: of a job of 4 ranks, but t0.json of one of 2");
    rank_begin(&texts[1], 1, 2);
    rank_event(&texts[1], "python_function", "train.py", 1, 60, 80, "");
    sources[1] = rank_end(&texts[1]);
    assert_fails(explanation_of(2, sources, &e, &err), ST_INVALID, "rank1.json: no event of a training iteration");
}

#define WITH_TEXTS(test) cmocka_unit_test_teardown(test, finish)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_TEXTS(the_late_rank_is_named_and_costs_are_true),
        WITH_TEXTS(without_all_ranks_no_cost_is_told),
        WITH_TEXTS(groups_are_kept_apart),
        WITH_TEXTS(ranks_of_one_host_share_its_clock),
        WITH_TEXTS(hosts_of_one_name_are_told_apart_where_the_first_rank_is_in_no_group),
        WITH_TEXTS(messages_side_by_side_share_the_time),
        WITH_TEXTS(rare_but_long_lateness_is_named),
        WITH_TEXTS(of_one_size_the_kth_belong_together),
        WITH_TEXTS(what_a_trace_lacks_is_left_out),
        WITH_TEXTS(every_spelling_of_an_operation_is_understood),
        WITH_TEXTS(with_gloo_a_rank_comes_when_it_calls),
        WITH_TEXTS(a_device_marks_a_step_once_a_stream),
        WITH_TEXTS(without_marks_the_optimizer_ends_iterations),
        WITH_TEXTS(an_optimizer_within_an_optimizer_ends_no_iteration_of_its_own),
        WITH_TEXTS(the_picture_shows_what_each_part_was_for),
        WITH_TEXTS(early_traces_are_numbered_in_their_order),
        WITH_TEXTS(traces_that_do_not_belong_together_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
