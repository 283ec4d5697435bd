/* How fast Bayesian optimization is: one suggestion at 200 observations in 4 dimensions, refit included, and 5,000
 * candidates scored at 60 observations in 20 dimensions. How good it is: tests/evaluate/bayes.c. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "tests/bench/bench.h"
#include "tests/support/landscapes.h"
#include "tuner/search/bayes.h"
#include "tuner/search/bayes_score.h"

enum { REPEATS = 31 };

/* ---- speed ---- */

static double wavy(size_t d, const double *x) {
    double sum = 0;
    for (size_t k = 0; k < d; k++)
        sum += sin(3 * (double)(k + 1) * x[k]) / (double)(k + 1);
    return sum;
}

static void bench_suggestion(size_t n, size_t q) {
    struct error err;
    struct rng rng;
    struct bayes *b;
    struct bayes_advice advice;
    double x[200][4], out[4 * 4], times[REPEATS];
    struct bayes_trial trials[200];
    struct bayes_history history = {.n = n, .trials = trials};
    rng_seed(&rng, 1);
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < 4; k++)
            x[i][k] = rng_uniform(&rng);
        trials[i] = (struct bayes_trial){.x = x[i], .y = wavy(4, x[i]) + 0.05 * rng_normal(&rng)};
    }
    bench_check(bayes_new(4, unit_box, &(struct bayes_options){.seed = 1}, &b, &err), &err);
    for (int i = -1; i < REPEATS; i++) {
        double start = clock_now_us();
        bench_check(bayes_suggest(b, &history, q, out, &advice, &err), &err);
        times[i < 0 ? 0 : i] = clock_now_us() - start;
    }
    printf("bayes %zu suggestion%s at %3zu observations in 4 dimensions, refit included %9.2f ms\n", q,
           q > 1 ? "s" : " ", n, bench_median(REPEATS, times) / 1e3);
    bayes_free(b);
}

static void bench_candidates(void) {
    enum { N = 60, D = 20, CANDIDATES = 5000 };
    static double x[N * D], y[N], rows[CANDIDATES * D], log_ei[CANDIDATES];
    double fits[REPEATS], scores[REPEATS];
    struct error err;
    struct rng rng;
    struct gp *gp;
    rng_seed(&rng, 2);
    for (int i = 0; i < N * D; i++)
        x[i] = rng_uniform(&rng);
    for (int i = 0; i < CANDIDATES * D; i++)
        rows[i] = rng_uniform(&rng);
    for (size_t i = 0; i < N; i++)
        y[i] = wavy(D, x + i * D) + 0.05 * rng_normal(&rng);
    bench_check(gp_new(D, NULL, &gp, &err), &err);
    for (int i = 0; i < REPEATS; i++) {
        double start = clock_now_us();
        gp_forget(gp);
        bench_check(gp_fit(gp, &(struct gp_data){.n = N, .x = x, .y = y}, &err), &err);
        double between = clock_now_us();
        bayes_score(gp, CANDIDATES, rows, NULL, -1, log_ei);
        fits[i] = between - start;
        scores[i] = clock_now_us() - between;
    }
    printf("bayes %d candidates scored at %d observations in %d dimensions %9.2f ms, fit %.2f ms\n", CANDIDATES, N, D,
           bench_median(REPEATS, scores) / 1e3, bench_median(REPEATS, fits) / 1e3);
    gp_free(gp);
}

int main(void) {
    bench_suggestion(200, 1);
    bench_suggestion(60, 1);
    bench_suggestion(60, 4);
    bench_candidates();
    return 0;
}
