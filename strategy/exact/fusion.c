/* PACE's balanced fusion; see strategy/exact/fusion.h.
 *
 * Cut gradients i.. into R groups so that the smallest group is as large as possible; let f(i, R) be its size. Then
 *   f(i, R) = max over j of min(bytes(i..j-1), f(j, R - 1)).
 * Within a run of one dtype bytes(i..j-1) rises with j. f(j, R - 1) never rises with j: a cut of j+1.. becomes one of
 * j.. when its first group takes j too, and no group is smaller then. So the best j is where the two cross. As i falls,
 * the crossing cannot move right. At the end of a run there must be a cut whatever the sizes, so f(end, R - 1) is
 * looked at on its own. */
#include "strategy/exact/fusion.h"

#include <stdlib.h>

void fusion_jobs(const struct gradient *gradients, const struct cost_line *line, uint32_t n_groups,
                 const uint32_t *ends, struct machine_job *jobs) {
    uint32_t i = 0;
    for (uint32_t k = 0; k < n_groups; k++) {
        uint64_t bytes = 0;
        double tail = 0;
        for (; i < ends[k]; i++) {
            bytes += gradients[i].bytes;
            tail = gradients[i].tail_us > tail ? gradients[i].tail_us : tail;
        }
        jobs[k] =
            (struct machine_job){gradients[i - 1].ready_us, line->startup_us + line->per_byte_us * (double)bytes, tail};
    }
}

static uint32_t fusion_balanced_limit(uint32_t n) {
    uint32_t limit = (uint32_t)FUSION_CELLS / n;
    return limit >= n ? n : limit > 0 ? limit : 1;
}

/* One R of the recurrence: f and g are f(., R) and f(., R - 1), 0 where there is no cut. */
static void fill_row(uint32_t n, const struct gradient *gradients, const uint64_t *prefix, const uint64_t *g,
                     uint64_t *f, uint32_t *next) {
    uint32_t end = n, cross = n;
    for (uint32_t i = n; i-- > 0;) {
        if (i + 1 < n && gradients[i].dtype != gradients[i + 1].dtype)
            end = cross = i + 1;
        /* The first j in (i, end) with bytes(i..j-1) >= g(j), or end. */
        while (cross > i + 1 && prefix[cross - 1] - prefix[i] >= g[cross - 1])
            cross--;
        f[i] = 0;
        next[i] = 0;
        uint32_t candidates[3] = {cross - 1, cross, end};
        for (int c = 0; c < 3; c++) {
            uint32_t j = candidates[c];
            uint64_t bytes = j > i ? prefix[j] - prefix[i] : 0, least = bytes < g[j] ? bytes : g[j];
            if (j > i && least > f[i]) {
                f[i] = least;
                next[i] = j;
            }
        }
    }
    f[n] = 0;
}

/* R = 1: everything that is left, when it is of one dtype. */
static void fill_first_row(uint32_t n, const struct gradient *gradients, const uint64_t *prefix, uint64_t *f,
                           uint32_t *next) {
    f[n] = 0;
    for (uint32_t i = n; i-- > 0;) {
        bool one = i + 1 == n || (next[i + 1] == n && gradients[i].dtype == gradients[i + 1].dtype);
        f[i] = one ? prefix[n] - prefix[i] : 0;
        next[i] = one ? n : 0;
    }
}

static void fill_balance(struct fusion_balance *balance, const struct gradient *gradients, const uint64_t *prefix,
                         uint64_t *f, uint64_t *g) {
    uint32_t n = balance->n;
    for (uint32_t r = 1; r <= balance->limit; r++) {
        uint32_t *next = balance->next + (size_t)r * (n + 1);
        if (r == 1)
            fill_first_row(n, gradients, prefix, f, next);
        else
            fill_row(n, gradients, prefix, g, f, next);
        balance->smallest[r] = f[0];
        uint64_t *swap = f;
        f = g;
        g = swap;
    }
}

enum status fusion_balance_init(struct fusion_balance *balance, uint32_t n, const struct gradient *gradients,
                                struct error *err) {
    uint32_t limit = fusion_balanced_limit(n);
    uint64_t *sums = calloc(3 * ((size_t)n + 1), sizeof *sums);
    *balance = (struct fusion_balance){.n = n,
                                       .limit = limit,
                                       .next = calloc(((size_t)limit + 1) * ((size_t)n + 1), sizeof *balance->next),
                                       .smallest = calloc((size_t)limit + 1, sizeof *balance->smallest)};
    if (!sums || !balance->next || !balance->smallest) {
        free(sums);
        fusion_balance_release(balance);
        return error_no_memory(err);
    }
    for (uint32_t i = 0; i < n; i++)
        sums[i + 1] = sums[i] + gradients[i].bytes;
    fill_balance(balance, gradients, sums, sums + n + 1, sums + 2 * ((size_t)n + 1));
    free(sums);
    return ST_OK;
}

void fusion_balance_release(struct fusion_balance *balance) {
    free(balance->next);
    free(balance->smallest);
    *balance = (struct fusion_balance){0};
}

bool fusion_balance_ends(const struct fusion_balance *balance, uint32_t n_groups, uint32_t *ends) {
    uint32_t i = 0;
    if (!balance->smallest[n_groups])
        return false;
    for (uint32_t k = 0; k < n_groups; k++) {
        i = balance->next[(size_t)(n_groups - k) * (balance->n + 1) + i];
        ends[k] = i;
    }
    return true;
}

static uint32_t cut_runs(uint32_t n, const struct gradient *gradients, uint32_t *ends) {
    uint32_t k = 0;
    for (uint32_t i = 1; i <= n; i++)
        if (i == n || gradients[i].dtype != gradients[i - 1].dtype)
            ends[k++] = i;
    return k;
}

struct trial {
    const struct gradient *gradients;
    const struct cost_line *line;
    struct machine_job *jobs;
    uint32_t *heap, *ends;
};

static double value_of(const struct trial *trial, uint32_t n_groups) {
    fusion_jobs(trial->gradients, trial->line, n_groups, trial->ends, trial->jobs);
    return one_machine_value(n_groups, trial->jobs, trial->heap);
}

static void keep(const struct trial *trial, uint32_t n_groups, double value, struct fusion *best) {
    best->n_groups = n_groups;
    best->value_us = value;
    for (uint32_t k = 0; k < n_groups; k++)
        best->ends[k] = trial->ends[k];
}

static void try_every_number(const struct trial *trial, const struct fusion_balance *balance, struct fusion *best) {
    uint32_t runs = cut_runs(balance->n, trial->gradients, trial->ends);
    keep(trial, runs, value_of(trial, runs), best);
    for (uint32_t r = runs; r <= balance->limit; r++) {
        if (!fusion_balance_ends(balance, r, trial->ends))
            continue;
        double value = value_of(trial, r);
        if (value < best->value_us)
            keep(trial, r, value, best);
    }
}

enum status fusion_balanced(uint32_t n, const struct gradient *gradients, const struct cost_line *line,
                            struct fusion *out, struct error *err) {
    struct fusion_balance balance;
    enum status st = fusion_balance_init(&balance, n, gradients, err);
    if (st)
        return st;
    struct trial trial = {gradients, line, calloc(n, sizeof *trial.jobs), calloc(n, sizeof *trial.heap),
                          calloc(n, sizeof *trial.ends)};
    if (trial.jobs && trial.heap && trial.ends) {
        out->proved = false;
        try_every_number(&trial, &balance, out);
    } else {
        st = error_no_memory(err);
    }
    free(trial.jobs);
    free(trial.heap);
    free(trial.ends);
    fusion_balance_release(&balance);
    return st;
}
