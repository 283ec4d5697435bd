/* Random traces of several ranks, gloo's and NCCL's, with clocks that differ and events in any order: what is said of
 * them equals what a reading of every single microsecond says. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "interop/traces/explanation.h"
#include "tests/unit/interop/rank_traces.h"

enum { INSTANCES = 150, MAX_RANKS = 5, MAX_STEPS = 5, MAX_COLLECTIVES = 4, MAX_OPERATORS = 8, MAX_US = 6000 };

struct stretch {
    int start, end;
};

struct collective {
    struct stretch of[MAX_RANKS]; /* one end for all, unless they go by one clock */
    uint64_t floats;
    int last, gap;
    double cost, beside; /* beside: share of the cost's time for which the ranks computed */
    bool alone;
};

/* A job as it really was, by one clock. */
struct job {
    int n_ranks, n_steps, length; /* length: of a step, us */
    bool device, numbered, one_clock;
    int host[MAX_RANKS]; /* 0: not said */
    long clock[MAX_RANKS];
    struct collective collectives[MAX_STEPS * MAX_COLLECTIVES];
    int n_collectives;
    struct stretch operators[MAX_RANKS][MAX_STEPS * MAX_OPERATORS];
    int n_operators[MAX_RANKS];
};

static int below(struct rng *rng, int n) {
    return (int)rng_below(rng, (uint64_t)n);
}

/* All within the step that begins at `at`; sizes differ within a step, so that they can be told apart. */
static void draw_collective(struct rng *rng, struct job *job, int at, int k) {
    struct collective *c = &job->collectives[job->n_collectives++];
    int latest = 0;
    c->floats = (uint64_t)(1 + k + MAX_COLLECTIVES * below(rng, 3));
    for (int r = 0; r < job->n_ranks; r++) {
        c->of[r].start = at + 1 + below(rng, job->length / 2);
        latest = c->of[r].start > latest ? c->of[r].start : latest;
    }
    const int room = at + job->length - 1 - latest, end = latest + 1 + below(rng, room);
    for (int r = 0; r < job->n_ranks; r++)
        c->of[r].end = job->one_clock ? latest + 1 + below(rng, room) : end;
}

static void draw_job(struct rng *rng, struct job *job) {
    *job = (struct job){.n_ranks = 1 + below(rng, MAX_RANKS),
                        .n_steps = 1 + below(rng, MAX_STEPS),
                        .length = 20 + below(rng, 1000),
                        .device = below(rng, 2),
                        .numbered = below(rng, 2),
                        .one_clock = below(rng, 3) == 0};
    long clocks[MAX_RANKS + 1];
    for (int h = 0; h <= MAX_RANKS; h++)
        clocks[h] = below(rng, 2000000) - 1000000;
    for (int r = 0; r < job->n_ranks; r++) {
        job->host[r] = job->one_clock ? 1 : below(rng, 4);
        job->clock[r] = job->host[r] ? clocks[job->host[r]] : below(rng, 2000000) - 1000000;
    }
    for (int s = 0; s < job->n_steps; s++) {
        const int n = below(rng, MAX_COLLECTIVES + 1);
        for (int k = 0; k < n; k++)
            draw_collective(rng, job, s * job->length, k);
        for (int r = 0; r < job->n_ranks; r++)
            for (int i = below(rng, MAX_OPERATORS + 1); i--;) {
                const int start = s * job->length + below(rng, job->length - 1);
                job->operators[r][job->n_operators[r]++] =
                    (struct stretch){start, start + 1 + below(rng, (s + 1) * job->length - start)};
            }
    }
}

/* ---- written ---- */

static void write_event(const struct job *job, int r, int which, struct rank_text *to) {
    const double base = 4812580000000.0 + (double)job->clock[r];
    if (which < job->n_operators[r]) {
        const struct stretch *o = &job->operators[r][which];
        rank_event(to, job->device ? "kernel" : "cpu_op", job->device ? "gemm" : "aten::mm", 7, base + o->start,
                   base + o->end, "");
        return;
    }
    which -= job->n_operators[r];
    if (which < job->n_collectives) {
        const struct collective *c = &job->collectives[which];
        if (job->device)
            rank_nccl(to, "0", job->n_ranks, job->numbered ? which : -1, c->floats, base + c->of[r].start,
                      base + c->of[r].end);
        else
            rank_gloo(to, c->floats, base + c->of[r].start, base + c->of[r].end);
        return;
    }
    which -= job->n_collectives;
    rank_step(to, job->device, 3 + which, base + which * job->length, base + (which + 1) * job->length);
}

static struct source write_rank(struct rng *rng, const struct job *job, int r, struct rank_text *to) {
    uint32_t order[MAX_STEPS * (MAX_OPERATORS + MAX_COLLECTIVES + 1)];
    const int n = job->n_operators[r] + job->n_collectives + job->n_steps;
    for (int i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    rng_shuffle(rng, (size_t)n, order);
    char host[8] = "";
    if (job->host[r])
        snprintf(host, sizeof host, "h%d", job->host[r]);
    rank_begin_on(to, host, r, job->n_ranks);
    for (int i = 0; i < n; i++)
        write_event(job, r, (int)order[i], to);
    return rank_end(to);
}

/* ---- the plain reading ---- */

/* Who came last; of those who came together nobody knows. */
static void read_collectives(struct job *job) {
    for (int i = 0; i < job->n_collectives; i++) {
        struct collective *c = &job->collectives[i];
        int latest = -1, second = -1;
        for (int r = 0; r < job->n_ranks; r++)
            if (c->of[r].start > latest) {
                second = latest;
                latest = c->of[r].start;
                c->last = r;
            } else if (c->of[r].start > second) {
                second = c->of[r].start;
            }
        c->gap = latest - second;
    }
}

/* The first moment at which the collective moves on rank r. */
static int moves_from(const struct job *job, const struct collective *c, int r) {
    return job->n_ranks > 1 ? c->of[c->last].start : c->of[r].start;
}

static bool computes(const struct job *job, int r, int t) {
    for (int i = 0; i < job->n_operators[r]; i++)
        if (job->operators[r][i].start <= t && t < job->operators[r][i].end)
            return true;
    return false;
}

static bool moves(const struct job *job, int r, int t) {
    for (int i = 0; i < job->n_collectives; i++)
        if (moves_from(job, &job->collectives[i], r) <= t && t < job->collectives[i].of[r].end)
            return true;
    return false;
}

/* The collective that waits on rank r in microsecond t, the one that began first; NULL: none. */
static const struct collective *waits(const struct job *job, int r, int t) {
    const struct collective *first = NULL;
    for (int i = 0; i < job->n_collectives; i++) {
        const struct collective *c = &job->collectives[i];
        if (c->of[r].start <= t && t < moves_from(job, c, r) &&
            (!first || c->of[r].start < first->of[r].start ||
             (c->of[r].start == first->of[r].start && c->of[r].end < first->of[r].end)))
            first = c;
    }
    return first;
}

/* What a rank did, microsecond by microsecond. */
struct account {
    double us[TIME_COUNT], hidden, for_whom[MAX_RANKS];
};

/* The stretch of rank r in which the collective moves, widened until it has all that move in it; adds up their bytes.
 */
static struct stretch read_stretch(const struct job *job, const struct collective *own, int r, double *floats) {
    struct stretch s = {moves_from(job, own, r), own->of[r].end};
    bool in[MAX_STEPS * MAX_COLLECTIVES] = {false};
    *floats = 0;
    for (int i = 0; i < job->n_collectives; i++) {
        const struct collective *c = &job->collectives[i];
        const int from = moves_from(job, c, r), to = c->of[r].end;
        if (in[i] || from >= s.end || to <= s.start)
            continue;
        in[i] = true;
        *floats += (double)c->floats;
        s.start = from < s.start ? from : s.start;
        s.end = to > s.end ? to : s.end;
        i = -1; /* others may now move beside it */
    }
    return s;
}

/* What it costs, and whether it moves alone. */
static void read_cost(const struct job *job, struct collective *c) {
    double shares[MAX_RANKS];
    c->alone = true;
    for (int r = 0; r < job->n_ranks; r++) {
        double floats;
        const struct stretch s = read_stretch(job, c, r, &floats);
        shares[r] = (s.end - s.start) * (double)c->floats / floats;
        c->alone = c->alone && floats == (double)c->floats;
    }
    c->cost = median_of((size_t)job->n_ranks, shares);
}

/* The share of the time from the last rank's coming to the end, mean over the ranks. */
static void read_costs(struct job *job) {
    for (int i = 0; i < job->n_collectives; i++) {
        struct collective *c = &job->collectives[i];
        c->beside = 0;
        read_cost(job, c);
        for (int r = 0; r < job->n_ranks; r++)
            for (int t = moves_from(job, c, r); t < c->of[r].end; t++)
                c->beside += computes(job, r, t) ? 1.0 / (c->of[r].end - moves_from(job, c, r)) / job->n_ranks : 0;
    }
}

static struct account read_rank(const struct job *job, int r) {
    struct account a = {0};
    const double one = 1.0 / job->n_steps;
    for (int t = 0; t < job->n_steps * job->length; t++) {
        const bool busy = computes(job, r, t), moving = moves(job, r, t);
        const struct collective *waiting = busy || moving ? NULL : waits(job, r, t);
        a.us[busy ? TIME_compute : moving ? TIME_exposed : waiting ? TIME_waiting : TIME_idle] += one;
        a.hidden += busy && moving ? one : 0;
        if (waiting)
            a.for_whom[waiting->last] += one;
    }
    return a;
}

static bool is_tied(const struct job *job) {
    for (int i = 0; i < job->n_collectives; i++)
        if (job->collectives[i].gap == 0)
            return true;
    return false;
}

static void check_ranks(const struct job *job, const struct explanation *e) {
    double held_up[MAX_RANKS] = {0}, most = 0;
    for (int r = 0; r < job->n_ranks; r++) {
        const struct account a = read_rank(job, r);
        assert_int_equal(e->traces[r].rank, r);
        assert_int_equal(e->traces[r].n_steps, job->n_steps);
        for (int k = 0; k < TIME_COUNT; k++)
            assert_true(fabs(e->accounts[r].us[k] - a.us[k]) < 0.01);
        assert_true(fabs(e->accounts[r].iteration_us - job->length) < 0.01);
        assert_true(fabs(e->accounts[r].hidden_us - a.hidden) < 0.01);
        for (int of = 0; of < job->n_ranks; of++)
            held_up[of] += a.for_whom[of] / (job->n_ranks > 1 ? job->n_ranks - 1 : 1);
        most = fmax(most, a.us[TIME_compute] + a.us[TIME_idle]);
    }
    for (int r = 0; r < job->n_ranks && !is_tied(job); r++)
        assert_true(fabs(e->accounts[r].held_up_us - held_up[r]) < 0.01);
    assert_true(fabs(e->most_won_us - (job->length - most)) < 0.01);
}

static void check_meetings(const struct job *job, const struct explanation *e) {
    assert_int_equal(e->meetings.n, job->n_ranks > 1 ? job->n_collectives : 0);
    assert_int_equal(e->meetings.n_unmatched, 0);
    assert_int_equal(e->meetings.n_partial, 0);
    assert_true(job->one_clock || e->meetings.clock_us < 0.01);
    for (size_t p = 0; p < e->meetings.n_points; p++) {
        const struct cost_point *point = &e->meetings.points[p];
        double costs[3][MAX_STEPS * MAX_COLLECTIVES];
        size_t n[3] = {0, 0, 0}, best = 2;
        bool close = false; /* to the limit between two kinds */
        for (int i = 0; i < job->n_collectives; i++) {
            const struct collective *c = &job->collectives[i];
            const int kind = c->alone ? 1 + (c->beside < 0.1) : 0;
            if (4 * c->floats != point->bytes)
                continue;
            costs[kind][n[kind]++] = c->cost;
            close = close || fabs(c->beside - 0.1) < 1e-3;
        }
        while (!n[best])
            best--;
        assert_int_equal(point->devices, job->n_ranks);
        assert_int_equal(point->time_us.n + point->n_left_out, n[0] + n[1] + n[2]);
        if (close)
            continue;
        assert_int_equal(point->alone, best > 0);
        assert_int_equal(point->time_us.n, n[best]);
        assert_true(fabs(point->time_us.median_us - median_of(n[best], costs[best])) < 0.01);
    }
    size_t n_last = 0, n_points = 0;
    for (int r = 0; r < job->n_ranks; r++)
        n_last += e->accounts[r].n_last;
    for (size_t p = 0; p < e->meetings.n_points; p++)
        n_points += e->meetings.points[p].time_us.n + e->meetings.points[p].n_left_out;
    assert_int_equal(n_last, e->meetings.n);
    assert_int_equal(n_points, e->meetings.n);
}

/* How often each rank came last, and by how much in the median; where some came together, any of them may be the last.
 */
static void check_late(const struct job *job, const struct explanation *e) {
    for (int r = 0; r < job->n_ranks && job->n_ranks > 1 && !is_tied(job); r++) {
        double gaps[MAX_STEPS * MAX_COLLECTIVES];
        size_t n = 0;
        for (int i = 0; i < job->n_collectives; i++)
            if (job->collectives[i].last == r)
                gaps[n++] = job->collectives[i].gap;
        assert_int_equal(e->accounts[r].n_last, n);
        assert_true(fabs(e->accounts[r].gap_us - (n ? median_of(n, gaps) : 0)) < 0.01);
    }
}

static void traces_say_what_every_microsecond_says(void **state) {
    (void)state;
    static struct job job;
    struct rank_text texts[MAX_RANKS] = {0};
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int i = 0; i < INSTANCES; i++) {
        struct source sources[MAX_RANKS];
        struct explanation e;
        struct error err;
        draw_job(&rng, &job);
        for (int r = 0; r < job.n_ranks; r++)
            sources[job.n_ranks - 1 - r] = write_rank(&rng, &job, r, &texts[r]);
        read_collectives(&job);
        read_costs(&job);
        assert_ok(explanation_of((size_t)job.n_ranks, sources, &e, &err));
        check_ranks(&job, &e);
        check_meetings(&job, &e);
        check_late(&job, &e);
        explanation_release(&e);
    }
    for (int r = 0; r < MAX_RANKS; r++)
        free(texts[r].text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(traces_say_what_every_microsecond_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
