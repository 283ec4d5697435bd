/* AutoSync's equation 3 with its derivatives.
 *
 * The label of a pair is only as good as its times. Trials of one strategy differ by about one per cent, so the order
 * of a pair that differs by less is chance. Therefore a pair weighs min(1, d / noise), where d says how far the pair is
 * past the indicator's threshold, as a share of the time. With noise = 0 this is equation 3 as published. Cost: one exp
 * and one log1p a pair. */
#include "simulator/learned/loss.h"

#include <math.h>

/* How far i is past the threshold at which it counts as slower than j, in microseconds. */
static double margin_us(const struct loss *loss, const struct loss_view *view, uint32_t i, uint32_t j) {
    const int more = (view->partitions[i] > view->partitions[j]) - (view->partitions[i] < view->partitions[j]);
    return view->us[i] + loss->sigma_us * more - view->us[j];
}

static double pair_weight(const struct loss *loss, const struct loss_view *view, uint32_t i, uint32_t j) {
    const double margin = margin_us(loss, view, i, j);
    if (!(margin > 0))
        return 0;
    return loss->noise > 0 ? fmin(1, margin / (loss->noise * view->us[j])) : 1;
}

/* log(1 + exp(x)) without overflow. */
static double softplus(double x) {
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* `slow` counts as slower than `fast`. */
static double add_pair(const struct loss *loss, const struct loss_view *view, uint32_t slow, uint32_t fast,
                       double weight) {
    const double x = (view->score[fast] - view->score[slow]) / loss->temperature;
    if (view->slope) {
        const double p = 1 / (1 + exp(-x)), slope = weight * p / loss->temperature;
        view->slope[slow] -= slope;
        view->slope[fast] += slope;
        if (view->curve) {
            const double curve = weight * p * (1 - p) / (loss->temperature * loss->temperature);
            view->curve[slow] += curve;
            view->curve[fast] += curve;
        }
    }
    return weight * softplus(x);
}

static double total_weight(const struct loss *loss, const struct loss_view *view, size_t n, const uint32_t *member) {
    double total = 0;
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++)
            total += pair_weight(loss, view, member[a], member[b]);
    return total;
}

static double rank_group(const struct loss *loss, const struct loss_view *view, size_t n, const uint32_t *member,
                         double weight) {
    const double total = total_weight(loss, view, n, member);
    double sum = 0;
    if (!(total > 0))
        return 0;
    for (size_t a = 0; a < n; a++) {
        for (size_t b = 0; b < n; b++) {
            const double pair = pair_weight(loss, view, member[a], member[b]);
            if (pair > 0)
                sum += add_pair(loss, view, member[a], member[b], weight * pair / total);
        }
    }
    return sum;
}

/* Quadratic within one temperature of the time, linear outside, so that one odd trial pulls no harder than one that is
 * off by one temperature. */
static double add_huber(const struct loss *loss, const struct loss_view *view, uint32_t i, double offset,
                        double weight) {
    const double x = (view->score[i] - log(view->us[i]) - offset) / loss->temperature;
    if (view->slope) {
        view->slope[i] += weight * fmax(-1, fmin(1, x)) / loss->temperature;
        if (view->curve)
            view->curve[i] += fabs(x) <= 1 ? weight / (loss->temperature * loss->temperature) : 0;
    }
    return weight * (fabs(x) <= 1 ? 0.5 * x * x : fabs(x) - 0.5);
}

double loss_group(const struct loss *loss, const struct loss_view *view, size_t n, const uint32_t *member,
                  double offset, double weight) {
    double sum = rank_group(loss, view, n, member, weight);
    if (loss->anchor > 0)
        for (size_t a = 0; a < n; a++)
            sum += add_huber(loss, view, member[a], offset, weight * loss->anchor / (double)n);
    return sum;
}
