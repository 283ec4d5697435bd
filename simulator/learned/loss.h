/* What training minimises: AutoSync's ranking loss (equation 3), and for rankers that predict times a Huber term.
 *
 * Of two examples i and j of a domain, with times f and partitions P, i counts as the slower when
 *
 *     f_i + sigma * I1(P_i, P_j) > f_j,        I1 = 1 when P_i > P_j, -1 when P_i < P_j, else 0
 *
 * and the pair then costs log(1 + exp((s_j - s_i) / temperature)): it falls as the slower one's score s_i rises above
 * s_j, so a lower score means a faster strategy. Equation 3 sums over all pairs; here each group (the examples of one
 * domain that meet in one step) has the mean over its pairs, or a large domain would drown a small one.
 *
 * The Huber term holds s to log(us) + offset, in units of the temperature as well; `offset` is the domain's own bias,
 * which no feature can explain (simulator/learned/training.c says who sets it).
 * Threads: no state. */
#ifndef SIMULATOR_LEARNED_LOSS_H
#define SIMULATOR_LEARNED_LOSS_H

#include <stddef.h>
#include <stdint.h>

struct loss {
    double sigma_us;
    double temperature; /* > 0; the difference of scores that counts as clear. Scores are logarithms of times */
    double noise;       /* a pair whose times differ by less than this share weighs less in proportion; 0: all alike */
    double anchor;      /* weight of the Huber term; 0: none */
};

/* Parallel arrays over examples. Scores are read, slope and curve are added to; curve may be NULL, slope with it. */
struct loss_view {
    const double *us;
    const uint64_t *partitions;
    const double *score;
    double *slope; /* d loss / d score */
    double *curve; /* the diagonal of the second derivative, for boosting */
};

/* `weight` times the loss of one group, the n examples `member` of one domain [O(n^2)]. */
double loss_group(const struct loss *loss, const struct loss_view *view, size_t n, const uint32_t *member,
                  double offset, double weight);

#endif
